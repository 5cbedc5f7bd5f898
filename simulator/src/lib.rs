//! A software NVIDIA GPU behind the driver's own `Ioctl` and `Mmio` traits.
//!
//! The crate stands where the kernel module and the card stand: above it any user-space driver runs as it is. It
//! shares only facts with the driver ([`nv_abi`]) and never sees its code.
//!
//! - [`profile`]: what a simulated GPU is;
//! - [`memory`]: memory objects and GPU address spaces.

pub mod memory;
pub mod profile;
