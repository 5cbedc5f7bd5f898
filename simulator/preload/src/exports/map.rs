//! `mmap` of a node's descriptor.
//!
//! Where the program's call reaches this library it gets the kernel module's checks and offsets; where it does not, the
//! file behind the descriptor maps the same bytes.

use std::{
    ffi::{c_int, c_void},
    os::fd::AsRawFd,
};

use libc::{off_t, size_t};
use nv_abi::Errno;

use super::fail;
use crate::{
    next::Next,
    process::{map_source, owns},
};

type Map = unsafe extern "C" fn(*mut c_void, size_t, c_int, c_int, c_int, off_t) -> *mut c_void;

fn failed(errno: Errno) -> *mut c_void {
    fail(errno);
    libc::MAP_FAILED
}

macro_rules! map {
    ($name:ident, $literal:literal) => {
        /// See mmap(2).
        ///
        /// # Safety
        /// As for the function of libc.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            address: *mut c_void,
            length: size_t,
            protection: c_int,
            flags: c_int,
            fd: c_int,
            offset: off_t,
        ) -> *mut c_void {
            // SAFETY: the signature is that of the function of this name.
            static NEXT: Next<Map> = unsafe { Next::new($literal) };
            let Some(next) = NEXT.get() else { return failed(Errno::ENOSYS) };
            if flags & libc::MAP_ANONYMOUS != 0 || !owns(fd) {
                // SAFETY: the caller's arguments, passed on.
                return unsafe { next(address, length, protection, flags, fd, offset) };
            }
            match map_source(fd, length as u64, offset as u64) {
                Ok(source) => {
                    let offset = source.offset as off_t;
                    // SAFETY: as the caller asked, of the file that stands for the descriptor.
                    unsafe { next(address, length, protection, flags, source.file.as_raw_fd(), offset) }
                }
                Err(errno) => failed(errno),
            }
        }
    };
}

map!(mmap, c"mmap");
map!(mmap64, c"mmap64");
