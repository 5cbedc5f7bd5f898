//! What a driver and a GPU say to each other, written down.
//!
//! It stands on `nv-abi` alone, beside the driver and the simulator, and works with either and with neither:
//!
//! - [`Recorder`] wraps anything that implements the boundary's two traits and notes every call, mapping and
//!   submission, with pushbuffers, launch descriptors and constant banks; [`Recording`] is the same for who catches a
//!   client's calls in another way;
//! - [`action`] reads pushbuffers as what they do; [`normal`] makes two runs of one program read the same; [`text`]
//!   prints both; [`naming`] names kernels by their code; [`format`](mod@format) is how a capture is kept in a file; [`import`] reads recordings of other tools;
//! - [`replay`] does again what a capture says, on any backend, or a submission of it that [`cut`] takes out; [`timeline`] shows it in a browser's trace viewer, [`page`]
//!   as a page with everything in it;
//! - [`diff`] says what two captures mean differently; [`lint`] what in one is wrong;
//! - [`assert_pushbuffer_snapshot!`] compares a driver's pushbuffer with a snapshot in one line.
//!
//! ```no_run
//! use std::sync::Arc;
//! use nv_abi::{Branch, Ioctl, Mmio};
//! use nv_capture::{Event, Recorder};
//!
//! fn record<B: Ioctl + Mmio>(nodes: Arc<B>) -> std::io::Result<()> {
//!     let recorder = Recorder::new(nodes, Branch::R580)?;
//!     // Hand `recorder` to the driver instead of `nodes`, and let it work. Then:
//!     for event in recorder.events() {
//!         if let Event::Submission(submission) = event {
//!             println!("channel {:#x}: {:x?}", submission.channel, submission.words);
//!         }
//!     }
//!     Ok(())
//! }
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod action;
mod board;
mod client;
mod contents;
pub mod cut;
mod describe;
pub mod diff;
mod event;
pub mod format;
mod found;
pub mod import;
pub mod lint;
pub mod naming;
pub mod normal;
pub mod page;
mod recorder;
mod recording;
pub mod replay;
mod symbols;
pub mod text;
pub mod timeline;
mod tracker;
mod words;

pub use action::{Action, Step, Stream};
pub use client::{ClientMemory, Near};
pub use describe::describe;
pub use event::{Block, Event, Grid, IoctlEvent, Memory, MemoryKind, Submission, Symbol};
pub use recorder::Recorder;
pub use recording::{Call, Recording};
pub use symbols::Symbols;
pub use text::Listing;

/// A recording as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The kernel module's branch, which decides how the structs of calls are laid out.
    pub branch: nv_abi::Branch,
    /// What happened, in order.
    pub events: Vec<Event>,
}
