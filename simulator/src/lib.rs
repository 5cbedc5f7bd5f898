//! A software NVIDIA GPU behind the driver's own `Ioctl` and `Mmio` traits.
//!
//! The crate stands where the kernel module and the card stand: above it any user-space driver runs as it is. It
//! shares only facts with the driver ([`nv_abi`]) and never sees its code.
//!
//! - [`profile`]: what a simulated GPU is;
//! - [`host`]: channels, rings, pushbuffers, semaphores; [`engine`]: copy and compute; [`fault`]: what ends a channel;
//! - [`memory`]: memory objects and GPU address spaces.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod engine;
pub mod fault;
pub mod host;
pub mod memory;
pub mod profile;
