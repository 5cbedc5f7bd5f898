//! `poll` and `ppoll`.
//!
//! A descriptor of a node is an eventfd that is readable while events wait (`process`), so that every way of waiting sees
//! them. These two also see to what an eventfd cannot: the module wakes who asks for POLLPRI, and tells of an event
//! without data once.

use std::ffi::c_int;

use libc::{POLLIN, POLLPRI, nfds_t, pollfd, sigset_t, timespec};
use nv_abi::Errno;

use super::fail;
use crate::{
    next::Next,
    process::{owns, taken},
};

/// What the module tells of a waiting event.
const READY: i16 = POLLIN | POLLPRI;

/// Asks for POLLIN where POLLPRI alone was asked for, waits, and answers as the module does.
///
/// # Safety
/// `fds` must be null or `count` entries.
unsafe fn wait(fds: *mut pollfd, count: nfds_t, call: impl FnOnce() -> c_int) -> c_int {
    let length = usize::try_from(count).ok().filter(|_| !fds.is_null()).unwrap_or(0);
    let simulated = || {
        (0..length).filter(|index| {
            // SAFETY: by contract.
            owns(unsafe { (*fds.add(*index)).fd })
        })
    };
    if simulated().next().is_none() {
        return call();
    }
    let mut added = Vec::new();
    for index in simulated() {
        // SAFETY: by contract.
        let entry = unsafe { &mut *fds.add(index) };
        if entry.events & READY == POLLPRI {
            entry.events |= POLLIN;
            added.push(index);
        }
    }
    let result = call();
    for index in added {
        // SAFETY: by contract.
        unsafe { (*fds.add(index)).events &= !POLLIN };
    }
    if result > 0 {
        for index in simulated() {
            // SAFETY: by contract.
            let entry = unsafe { &mut *fds.add(index) };
            if entry.revents & POLLIN != 0 && entry.events & READY != 0 {
                taken(entry.fd);
                entry.revents = entry.revents & !READY | entry.events & READY;
            }
        }
    }
    result
}

/// See poll(2).
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    // SAFETY: the signature is that of the function of this name.
    static NEXT: Next<unsafe extern "C" fn(*mut pollfd, nfds_t, c_int) -> c_int> =
        unsafe { Next::new(c"poll") };
    let Some(next) = NEXT.get() else { return fail(Errno::ENOSYS) };
    // SAFETY: the caller's arguments, passed on.
    unsafe { wait(fds, count, || next(fds, count, timeout)) }
}

/// See ppoll(2).
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ppoll(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    type Function = unsafe extern "C" fn(*mut pollfd, nfds_t, *const timespec, *const sigset_t) -> c_int;
    // SAFETY: the signature is that of the function of this name.
    static NEXT: Next<Function> = unsafe { Next::new(c"ppoll") };
    let Some(next) = NEXT.get() else { return fail(Errno::ENOSYS) };
    // SAFETY: the caller's arguments, passed on.
    unsafe { wait(fds, count, || next(fds, count, timeout, mask)) }
}
