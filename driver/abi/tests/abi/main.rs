//! The rows against outside sources, and what reads and writes by them. One binary, beside the library, which is
//! compiled once.

#![allow(clippy::unwrap_used)]

mod arch;
mod branch;
mod class_headers;
mod dump;
mod gpfifo;
mod ioctl;
mod layout;
mod method;
mod port;
mod qmd;
mod record;
mod recording;
mod rm;
mod texture;
