//! `ioctl`.

use std::{
    ffi::{c_int, c_ulong, c_void},
    sync::atomic::{AtomicBool, Ordering},
};

use nv_abi::Errno;

use super::{fail, status};
use crate::{
    descriptor::INHERITED,
    next::Next,
    process::{self, owns},
    record,
    report::{self, Line},
};

/// Requests that the host's file layer answers for any file, whatever its driver.
const OF_ANY_FILE: &[c_ulong] = &[libc::FIOCLEX, libc::FIONCLEX, libc::FIONBIO, libc::FIOASYNC];

/// See ioctl(2).
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    // SAFETY: the signature is that of the function of this name.
    static NEXT: Next<unsafe extern "C" fn(c_int, c_ulong, ...) -> c_int> = unsafe { Next::new(c"ioctl") };
    let any = OF_ANY_FILE.contains(&request);
    if !any && INHERITED.contains(fd) && !owns(fd) {
        static SAID: AtomicBool = AtomicBool::new(false);
        if !SAID.swap(true, Ordering::Relaxed) {
            let text = "ioctl on a node that was opened before fork: a child has a machine of its own and \
                        must open the nodes itself";
            report::write(Line::Trouble, text);
        }
        return fail(Errno(libc::EIO));
    }
    let call = || {
        if !any && owns(fd) {
            // SAFETY: the program's own argument.
            return status(unsafe { process::ioctl(fd, request as u32, argument as u64) });
        }
        match NEXT.get() {
            // SAFETY: the caller's arguments, passed on.
            Some(next) => unsafe { next(fd, request, argument) },
            None => fail(Errno::ENOSYS),
        }
    };
    if any || !record::owns(fd) {
        return call();
    }
    let result = record::ioctl(fd, request as u32, argument as u64, || {
        let result = call();
        if result == 0 { Ok(()) } else { Err(process::last_error()) }
    });
    status(result)
}
