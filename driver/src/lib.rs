//! A user-space NVIDIA compute driver: raw ioctls, no libcuda.
//!
//! It stands on `nv-abi` alone and talks to the device nodes through that crate's two traits: [`os::NvidiaNodes`] is
//! the real kernel module, a simulated machine is another. Nothing below this line knows which one it has.
//!
//! ```no_run
//! use std::sync::Arc;
//! use nv_driver::{Device, Module, os::NvidiaNodes};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = Device::open(Arc::new(NvidiaNodes::new()), 0)?;
//! let module = Module::load(&device, &std::fs::read("vector_add.cubin")?)?;
//! let a = device.buffer_from(&[1.0f32; 1000])?;
//! let sum = device.video::<f32>(1000)?;
//! let kernel = module.kernel("vector_add")?;
//! kernel.launch([4, 1, 1], [256, 1, 1], &[(&a).into(), (&a).into(), (&sum).into(), 1000i32.into()])?;
//! assert_eq!(sum.to_vec()?[999], 2.0);
//! # Ok(())
//! # }
//! ```
//!
//! From the bottom up: `os` (system calls, mapped memory), `rm` and `uvm` (calls), [`System`] (a client), `gpu` (one
//! GPU's objects), `memory`, `channel`, `pushbuffer`, [`queue`], [`program`], [`texture`], `runtime` (what kernels call), [`Device`].

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod channel;
mod device;
mod error;
mod gpu;
mod memory;
pub mod os;
pub mod program;
mod pushbuffer;
mod qmd;
pub mod queue;
mod rm;
mod runtime;
mod signal;
mod system;
pub mod texture;
mod uvm;

pub use channel::Engine;
pub use device::{Device, DeviceInfo, Options};
pub use error::{Assertion, ChannelFault, Error, InvalidFree, LaunchError, MmuFaultInfo};
pub use gpu::Geometry;
pub use memory::{Buffer, Element, Location};
pub use nv_abi::arch::Classes;
pub use program::{Argument, Kernel, LaunchOptions, Module};
pub use queue::{ArgumentPath, BoundQueue, CommandId, ComputeQueue, Condition, CopyQueue, Lines};
pub use signal::Signal;
pub use system::{Backend, System};
