//! The streaming multiprocessors: run a grid's machine code.
//!
//! [`run`] executes one launch. Words are decoded on first use into micro-operations; a warp executes them 32 lanes at
//! a time; each worker thread owns several blocks and gives each a slice in turn, so that blocks which wait for each
//! other finish.

mod access;
mod execute;
mod fault;
mod micro;
mod run;
mod warp;

#[cfg(test)]
mod tests;

pub use fault::{Fault, FaultKind};
pub use run::{ConstantBuffer, Launch, Options, Statistics, run};
