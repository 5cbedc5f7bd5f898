//! A software NVIDIA GPU behind the driver's own `Ioctl` and `Mmio` traits.
//!
//! The crate stands where the kernel module and the card stand: above it any user-space driver runs as it is. It
//! shares only facts with the driver ([`nv_abi`]) and never sees its code.
//!
//! - [`profile`]: what a simulated GPU is;
//! - [`host`]: channels, rings, pushbuffers, semaphores; [`engine`]: copy and compute; [`fault`]: what ends a channel;
//! - [`source`]: which function and source line an instruction is of;
//! - [`machine`]: the nodes, as a driver opens them; behind it the kernel module's resource manager and UVM;
//! - [`memory`]: memory objects and GPU address spaces; [`sm`]: the interpreter of machine code. Both are packages of
//!   their own.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod client_memory;
pub mod engine;
pub mod fault;
pub mod host;
pub mod machine;
pub mod profile;
mod rm;
pub mod source;
mod uvm;

pub use nv_memory as memory;
pub use nv_sm as sm;
