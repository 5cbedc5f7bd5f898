//! `ioctl`.

use std::{
    ffi::{c_int, c_ulong, c_void},
    sync::atomic::{AtomicBool, Ordering},
};

use nv_abi::Errno;

use super::{fail, status};
use crate::{
    descriptor::{INHERITED, RECORDED},
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
    if !OF_ANY_FILE.contains(&request) {
        if owns(fd) {
            // SAFETY: the program's own argument.
            return status(unsafe { process::ioctl(fd, request as u32, argument as u64) });
        }
        if INHERITED.contains(fd) {
            static SAID: AtomicBool = AtomicBool::new(false);
            if !SAID.swap(true, Ordering::Relaxed) {
                let text = "ioctl on a node that was opened before fork: a child has a machine of its own and \
                            must open the nodes itself";
                report::write(Line::Trouble, text);
            }
            return fail(Errno(libc::EIO));
        }
    }
    let Some(next) = NEXT.get() else { return fail(Errno::ENOSYS) };
    // SAFETY: the caller's arguments, passed on.
    let call = || unsafe { next(fd, request, argument) };
    if !RECORDED.contains(fd) || OF_ANY_FILE.contains(&request) {
        return call();
    }
    let path = process::shared().recorded.get(&fd).cloned();
    let Some(path) = path else { return call() };
    let (result, errno) = record::ioctl(&path, fd, request as u32, argument as u64, || {
        let result = call();
        (result, if result == 0 { 0 } else { process::last_error().0 })
    });
    if result == 0 { 0 } else { fail(Errno(errno)) }
}
