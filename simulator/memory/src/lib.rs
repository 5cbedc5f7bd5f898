//! The memory of simulated GPUs: what holds bytes ([`Backing`]) and how a GPU finds them ([`AddressSpace`]).
//!
//! Every GPU access of every engine goes through an [`AddressMap`]; raw pointers into backings exist only here and in
//! the interpreter, which takes them from [`AddressMap::translate`].

mod address_space;
mod alias;
mod backing;
mod client;
mod words;

pub use address_space::{Access, AccessKind, AddressMap, AddressSpace, FaultKind, MapError, MmuFault, Span};
pub use alias::AliasError;
pub use backing::{Backing, BackingError};
pub use client::unmap_for_client;

/// The smallest page of the GPU MMU and of the CPU, in bytes.
pub const PAGE: u64 = 4096;
