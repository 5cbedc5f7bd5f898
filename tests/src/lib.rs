//! End-to-end tests: the driver above the boundary, the simulator or a card below it.
//!
//! The tests are one binary, `e2e`.
#![forbid(unsafe_code)]

pub mod probe;
