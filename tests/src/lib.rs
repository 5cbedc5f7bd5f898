//! End-to-end tests: the driver above the boundary, the simulator or a card below it.
//!
//! The tests are one binary, `e2e`. A test is a body, a function of a [`Place`], that [`everywhere!`] runs on
//! simulated GPUs of each generation and, with the feature `hw`, on the card. `README.md` beside this package says how
//! to run that binary on another machine.
#![forbid(unsafe_code)]

pub mod fuzz;
mod place;
pub mod probe;
pub mod questions;
pub mod raw;
pub mod recipe;

pub use place::{DEADLINE, DRIVER, Place, skip};
