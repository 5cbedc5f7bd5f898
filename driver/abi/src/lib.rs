//! What NVIDIA hardware, the kernel module and user space agree on.
//!
//! The driver and the simulator both stand on this crate and never see each other. It holds facts, as rows of
//! data, and the engine that reads the rows; it opens no device and keeps no state.
//!
//! - [`port`]: the two traits that a real kernel module and the simulator both implement;
//! - [`mod@layout`]: bit fields declared as rows, with setters that refuse what does not fit;
//! - [`mod@record`]: C structs declared as rows, with their offsets per driver [`branch`];
//! - [`method`], [`host`], [`compute`], [`copy`], [`gpfifo`]: what a pushbuffer and its ring hold;
//! - [`texture`]: texture headers and samplers;
//! - [`qmd`]: the launch descriptor in each version; [`arch`]: what differs between GPU generations;
//! - [`dump`]: text of all of it;
//! - [`ioctl`], [`rm`], [`uvm`]: the kernel interface's numbers, structs, classes, controls and statuses.
#![warn(clippy::unwrap_used)]
#![forbid(unsafe_code)]

pub mod arch;
pub mod branch;
pub mod compute;
pub mod copy;
pub mod dump;
pub mod gpfifo;
pub mod host;
pub mod ioctl;
pub mod layout;
pub mod method;
pub mod port;
pub mod qmd;
pub mod record;
pub mod rm;
pub mod texture;
pub mod uvm;

pub use branch::Branch;
pub use layout::{Bits, BitsMut, Enumerant, Field, FieldError, Layout};
pub use port::{Errno, Fd, Ioctl, Mapping, Mmio, Node};
pub use record::{Record, Struct, StructField};
