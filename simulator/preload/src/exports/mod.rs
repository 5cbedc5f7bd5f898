//! The interposed functions: what a program calls by libc's names.
//!
//! Each hands calls that are none of the simulator's business to the next definition of its name. Variadic functions
//! of C are defined with the arguments that they can have: on the platforms supported, integers and pointers arrive in
//! the same registers either way, and one that was not passed is not looked at.

pub(crate) mod descriptor;
pub(crate) mod directory;
mod exit;
mod ioctl;
pub(crate) mod map;
mod open;
mod poll;
pub(crate) mod signal;
mod stat;
mod stream;

use std::{
    ffi::{CStr, c_char, c_int},
    os::fd::RawFd,
};

use nv_abi::Errno;

use crate::{
    options::{Options, is_card},
    path::{self, Known},
};

/// Sets `errno` and gives what functions of libc return then.
fn fail(errno: Errno) -> c_int {
    // SAFETY: the location is this thread's own.
    unsafe { *libc::__errno_location() = errno.0 };
    -1
}

/// The result of a function of libc that gives 0 for success.
fn status(result: Result<(), Errno>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(errno) => fail(errno),
    }
}

/// What the simulated module says to a path that a program passed, relative to `directory` (`AT_FDCWD` or a
/// descriptor). `None` for paths that it has no say in.
///
/// # Safety
/// `path` must be null or a C string.
unsafe fn look(directory: RawFd, path: *const c_char) -> Option<(Known, &'static Options)> {
    if path.is_null() {
        return None;
    }
    // SAFETY: by contract.
    let bytes = unsafe { CStr::from_ptr(path) }.to_bytes();
    if !path::is_candidate(bytes) || is_card() {
        return None;
    }
    let text = std::str::from_utf8(bytes).ok()?;
    let options = Options::get();
    let absolute;
    let text = if text.starts_with('/') {
        text
    } else {
        let link = if directory == libc::AT_FDCWD {
            "/proc/self/cwd".to_owned()
        } else {
            format!("/proc/self/fd/{directory}")
        };
        let base = std::fs::read_link(link).ok()?;
        absolute = format!("{}/{text}", base.to_str()?);
        &absolute
    };
    match options {
        Ok(options) => path::look(text, options).map(|known| (known, options)),
        // Without sound options there is no machine. Opening a node says so, and never reaches a real one.
        Err(_) => {
            let plain = Options::plain()?;
            path::look(text, plain)
                .filter(|known| matches!(known, Known::Node(_)))
                .map(|known| (known, plain))
        }
    }
}
