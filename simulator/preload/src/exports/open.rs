//! `open` and its kin.

use std::{
    ffi::{CStr, c_char, c_int, c_uint},
    io::{Seek, Write},
    os::fd::{FromRawFd, IntoRawFd, OwnedFd, RawFd},
};

use nv_abi::Errno;

use super::{fail, look};
use crate::{
    next::Next,
    options::{Options, capture, is_card},
    path::Known,
    process::{guarded, last_error, open as open_node},
    record,
    text::Text,
};

type Open = unsafe extern "C" fn(*const c_char, c_int, ...) -> c_int;
type OpenAt = unsafe extern "C" fn(c_int, *const c_char, c_int, ...) -> c_int;
type Open2 = unsafe extern "C" fn(*const c_char, c_int) -> c_int;
type OpenAt2 = unsafe extern "C" fn(c_int, *const c_char, c_int) -> c_int;

/// A descriptor of a generated file.
pub(super) fn text_file(text: Text, options: &Options, close_on_exec: bool) -> Result<RawFd, Errno> {
    let flags = if close_on_exec { libc::MFD_CLOEXEC } else { 0 };
    // SAFETY: the name is a C string.
    let fd = unsafe { libc::memfd_create(c"mockgpu-text".as_ptr(), flags) };
    if fd < 0 {
        return Err(last_error());
    }
    // SAFETY: just opened and nobody else's.
    let mut file = std::fs::File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    let written = file.write_all(text.content(options).as_bytes()).and_then(|()| file.rewind());
    match written {
        Ok(()) => Ok(file.into_raw_fd()),
        Err(error) => Err(Errno(error.raw_os_error().unwrap_or(libc::EIO))),
    }
}

/// Writes down that a node of the card was opened, or could not be.
///
/// # Safety
/// `path` must be null or a C string.
unsafe fn opened(path: *const c_char, fd: c_int) -> c_int {
    if path.is_null() || !is_card() || capture().is_none() {
        return fd;
    }
    // SAFETY: by contract.
    let Ok(node) = unsafe { CStr::from_ptr(path) }.to_string_lossy().parse() else { return fd };
    let result = if fd < 0 { Err(last_error()) } else { Ok(fd) };
    record::opened(node, result);
    match result {
        Ok(fd) => fd,
        Err(errno) => fail(errno),
    }
}

/// Opens what the simulated module decides about; `None` for everything else.
///
/// # Safety
/// `path` must be null or a C string.
unsafe fn open_known(directory: c_int, path: *const c_char, flags: c_int) -> Option<c_int> {
    // SAFETY: by contract.
    let (known, options) = unsafe { look(directory, path) }?;
    let result = guarded(|| match known {
        Known::Node(node) => {
            let result = open_node(node, flags);
            record::opened(node, result);
            result
        }
        Known::Text(_) if flags & libc::O_ACCMODE != libc::O_RDONLY => Err(Errno::EACCES),
        Known::Text(text) => text_file(text, options, flags & libc::O_CLOEXEC != 0),
        // Generated directories have streams only (`opendir`).
        Known::Absent | Known::Directory(_) => Err(Errno::ENOENT),
        Known::Changed(_) => Err(Errno(0)),
    });
    match result {
        Ok(fd) => Some(fd),
        Err(Errno(0)) => None,
        Err(errno) => Some(fail(errno)),
    }
}

macro_rules! open {
    ($name:ident, $literal:literal) => {
        /// See open(2).
        ///
        /// # Safety
        /// As for the function of libc.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
            // SAFETY: the signature is that of the function of this name.
            static NEXT: Next<Open> = unsafe { Next::new($literal) };
            // SAFETY: the caller passes a path.
            if let Some(fd) = unsafe { open_known(libc::AT_FDCWD, path, flags) } {
                return fd;
            }
            match NEXT.get() {
                // SAFETY: the caller's arguments, passed on.
                Some(next) => unsafe { opened(path, next(path, flags, mode)) },
                None => fail(Errno::ENOSYS),
            }
        }
    };
}

macro_rules! openat {
    ($name:ident, $literal:literal) => {
        /// See openat(2).
        ///
        /// # Safety
        /// As for the function of libc.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            directory: c_int,
            path: *const c_char,
            flags: c_int,
            mode: c_uint,
        ) -> c_int {
            // SAFETY: the signature is that of the function of this name.
            static NEXT: Next<OpenAt> = unsafe { Next::new($literal) };
            // SAFETY: the caller passes a path.
            if let Some(fd) = unsafe { open_known(directory, path, flags) } {
                return fd;
            }
            match NEXT.get() {
                // SAFETY: the caller's arguments, passed on.
                Some(next) => unsafe { opened(path, next(directory, path, flags, mode)) },
                None => fail(Errno::ENOSYS),
            }
        }
    };
}

// What programs call that were compiled with _FORTIFY_SOURCE: no mode.
macro_rules! open_2 {
    ($name:ident, $literal:literal) => {
        /// `open` of fortified programs.
        ///
        /// # Safety
        /// As for the function of libc.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(path: *const c_char, flags: c_int) -> c_int {
            // SAFETY: the signature is that of the function of this name.
            static NEXT: Next<Open2> = unsafe { Next::new($literal) };
            // SAFETY: the caller passes a path.
            if let Some(fd) = unsafe { open_known(libc::AT_FDCWD, path, flags) } {
                return fd;
            }
            match NEXT.get() {
                // SAFETY: the caller's arguments, passed on.
                Some(next) => unsafe { opened(path, next(path, flags)) },
                None => fail(Errno::ENOSYS),
            }
        }
    };
}

macro_rules! openat_2 {
    ($name:ident, $literal:literal) => {
        /// `openat` of fortified programs.
        ///
        /// # Safety
        /// As for the function of libc.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(directory: c_int, path: *const c_char, flags: c_int) -> c_int {
            // SAFETY: the signature is that of the function of this name.
            static NEXT: Next<OpenAt2> = unsafe { Next::new($literal) };
            // SAFETY: the caller passes a path.
            if let Some(fd) = unsafe { open_known(directory, path, flags) } {
                return fd;
            }
            match NEXT.get() {
                // SAFETY: the caller's arguments, passed on.
                Some(next) => unsafe { opened(path, next(directory, path, flags)) },
                None => fail(Errno::ENOSYS),
            }
        }
    };
}

open!(open, c"open");
open!(open64, c"open64");
openat!(openat, c"openat");
openat!(openat64, c"openat64");
open_2!(__open_2, c"__open_2");
open_2!(__open64_2, c"__open64_2");
openat_2!(__openat_2, c"__openat_2");
openat_2!(__openat64_2, c"__openat64_2");
