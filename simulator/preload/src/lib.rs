//! The library that gives an unmodified process a simulated GPU, by `LD_PRELOAD`.
//!
//! It stands between a program and libc: calls that name NVIDIA's device nodes, or descriptors of them, go to a
//! [`nv_simulator::machine::Machine`] inside the process; all others pass on untouched. The machine is made when the
//! first node is opened, so that a process which opens none (a compiler that a program starts, say) carries nothing
//! but a few comparisons. Every process has a machine of its own.
//!
//! - `options`: what is simulated, from environment variables that `mockgpu run` sets;
//! - `path` and `text`: which paths are nodes, generated files or hidden;
//! - `descriptor`: which descriptor numbers are simulated; `process`: the machine, `fork` and exit;
//! - `doorbell`: seeing a plain store to a doorbell page of a simulated GPU; `guard`: the same for every other one, of
//!   which `store` reads the instructions;
//! - `record`: writing down what the program does with nodes, simulated or a real card's; `maps`: where it mapped them;
//!   `near`: reading what lies there;
//! - `report`: what is left for people to read; `next`: the functions behind the interposed ones;
//! - `exports`: the interposed functions themselves.
//!
//! A descriptor of a node is really an eventfd, until RM_MAP_MEMORY attaches memory to it: then the memory's own file
//! takes the number over (`dup2`). A client's `mmap` maps the right pages in this way even where it reaches libc past
//! this library, as Python's `ctypes` does.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]
// The harness of unit tests leaves out what would replace libc in it, and so uses only parts of the rest.
#![cfg_attr(test, allow(dead_code))]

mod client;
mod descriptor;
#[cfg(not(test))]
mod doorbell;
#[cfg(not(test))]
mod exports;
#[cfg(not(test))]
mod guard;
mod maps;
mod near;
#[cfg(not(test))]
mod next;
mod options;
mod path;
#[cfg(not(test))]
mod process;
#[cfg(not(test))]
mod record;
mod report;
mod store;
mod text;

use std::ffi::c_char;

/// The package's version as a C string, for a launcher that loads the library to ask for.
#[unsafe(no_mangle)]
pub extern "C" fn mockgpu_preload_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
