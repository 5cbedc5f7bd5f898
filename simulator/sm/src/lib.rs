//! The streaming multiprocessors of a simulated GPU: they run a grid's machine code.
//!
//! Above stands `nv-simulator`, whose compute engine launches grids; below, [`sass`] says what instructions are and
//! compute, [`nv_memory`] where addresses lead, and [`nv_texture`] what textures hold. A package of its own, so that what is slow to compile is compiled once.
//!
//! [`Processor::run`] executes one launch. The way of an instruction:
//!
//! 1. [`sass`] decodes its word by the row of its opcode.
//! 2. `lower` makes a micro-operation of it, 32 bytes in which everything is decided: handler, rows, predicates. It
//!    refuses what it does not know, by name. Pages of micro-operations are kept as long as the code stays the same.
//! 3. `worker` brings together warps of a block that stand at one address: a team. For its innermost loop, `run`, it
//!    lends them to a `core`, and micro-operations are executed there, each for all warps of the team.
//! 4. `execute` holds the handlers. Each computes 32 lanes at a time with the functions of [`sass::lane`], and is
//!    compiled for several sets of processor features, of which the best is chosen at run time.
//! 5. `native` takes the place of handlers where straight code is executed often: it compiles runs of micro-operations,
//!    for what handlers name a form there. What both leave is the same bit for bit, counts included.
//!
//! How fast that is, and what was tried, is in `benches/README.md`.
//!
//! Sources and destinations are rows of 32 lanes: registers, uniform registers (the same value in all lanes), and a
//! pool of immediates and constants that is filled once per launch. So a handler never asks what kind of operand it has.
//!
//! `lower`'s documentation says how an instruction is added. `control` moves program counters, `block` keeps barriers,
//! `processor` spreads blocks over threads, `profile` counts what they do where that is asked for.

mod atomic;
#[cfg(target_arch = "x86_64")]
mod avx2;
mod block;
mod cluster;
mod code;
mod control;
mod core;
mod execute;
mod fault;
mod lanes;
mod launch;
mod lower;
mod memory;
mod micro;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod native;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
#[path = "native/absent.rs"]
mod native;
mod pool;
mod processor;
mod profile;
mod run;
mod texture;
mod warp;
mod worker;

pub use fault::{Fault, FaultKind};
pub use launch::{ConstantBuffer, Launch, Statistics};
/// Whether code that is executed often is compiled on this machine.
///
/// # Errors
/// Why it is not: then handlers execute everything, with the same results.
pub fn compiles_here() -> Result<(), &'static str> {
    native::available()
}

pub use lower::{compiles, executes};
pub use processor::{Compile, Configuration, Processor};
pub use profile::{Executed, Observe, Observed, Ran, Traffic};
pub use texture::{DescriptorPool, Textures};
