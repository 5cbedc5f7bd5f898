//! `close`, and what gives a descriptor another number.

use std::ffi::{c_int, c_uint, c_void};

use nv_abi::Errno;

use super::fail;
use crate::{
    descriptor::{INHERITED, RECORDED, SIMULATED},
    next::Next,
    process::{closing, duplicated, owns},
    record,
};

// SAFETY: the signature is that of the function of this name.
static CLOSE: Next<unsafe extern "C" fn(c_int) -> c_int> = unsafe { Next::new(c"close") };
// SAFETY: the signature is that of the function of this name.
static DUP: Next<unsafe extern "C" fn(c_int) -> c_int> = unsafe { Next::new(c"dup") };
// SAFETY: the signature is that of the function of this name.
static DUP2: Next<unsafe extern "C" fn(c_int, c_int) -> c_int> = unsafe { Next::new(c"dup2") };
// SAFETY: the signature is that of the function of this name.
static DUP3: Next<unsafe extern "C" fn(c_int, c_int, c_int) -> c_int> = unsafe { Next::new(c"dup3") };
static CLOSE_RANGE: Next<unsafe extern "C" fn(c_uint, c_uint, c_int) -> c_int> =
    // SAFETY: as above.
    unsafe { Next::new(c"close_range") };
// SAFETY: the signature is that of the function of this name.
static CLOSE_FROM: Next<unsafe extern "C" fn(c_int)> = unsafe { Next::new(c"closefrom") };

type Control = unsafe extern "C" fn(c_int, c_int, ...) -> c_int;

/// Puts the file of `from` in the place of `to`, which stays what it is for the machine.
///
/// # Safety
/// Whatever uses the file that `to` stood for must not need it any more.
pub(crate) unsafe fn replace(from: c_int, to: c_int, close_on_exec: bool) -> c_int {
    let flags = if close_on_exec { libc::O_CLOEXEC } else { 0 };
    match DUP3.get() {
        // SAFETY: by contract.
        Some(next) => unsafe { next(from, to, flags) },
        None => fail(Errno::ENOSYS),
    }
}

/// Takes a descriptor off the books that is about to be closed or replaced.
fn forget(fd: c_int) {
    if record::owns(fd) {
        record::closing(fd);
    }
    if owns(fd) {
        // The number goes away whatever the machine says to it.
        let _ = closing(fd);
    } else if !SIMULATED.contains(fd) {
        INHERITED.remove(fd);
    }
}

/// The same for all from `first` to `last`.
fn forget_between(first: c_uint, last: c_uint) {
    for known in [&SIMULATED, &RECORDED] {
        known.between(first, last).into_iter().for_each(forget);
    }
}

/// Books a new number of a file.
fn copied(from: c_int, to: c_int) -> c_int {
    if to < 0 {
        return to;
    }
    if INHERITED.contains(from) {
        INHERITED.insert(to);
    }
    if record::owns(from) {
        record::duplicated(from, to);
    }
    if owns(from)
        && let Err(errno) = duplicated(from, to)
    {
        if let Some(close) = CLOSE.get() {
            // SAFETY: made by the call before and handed to nobody.
            unsafe { close(to) };
        }
        return fail(errno);
    }
    to
}

/// See close(2).
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    forget(fd);
    match CLOSE.get() {
        // SAFETY: the caller's argument, passed on.
        Some(next) => unsafe { next(fd) },
        None => fail(Errno::ENOSYS),
    }
}

/// See close_range(2).
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    if flags & libc::CLOSE_RANGE_CLOEXEC as c_int == 0 {
        forget_between(first, last);
    }
    match CLOSE_RANGE.get() {
        // SAFETY: the caller's arguments, passed on.
        Some(next) => unsafe { next(first, last, flags) },
        None => fail(Errno::ENOSYS),
    }
}

/// See closefrom(3).
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn closefrom(first: c_int) {
    forget_between(first.max(0) as c_uint, c_uint::MAX);
    if let Some(next) = CLOSE_FROM.get() {
        // SAFETY: the caller's argument, passed on.
        unsafe { next(first) };
    }
}

/// See dup(2).
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup(fd: c_int) -> c_int {
    match DUP.get() {
        // SAFETY: the caller's argument, passed on.
        Some(next) => copied(fd, unsafe { next(fd) }),
        None => fail(Errno::ENOSYS),
    }
}

/// See dup2(2).
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup2(fd: c_int, to: c_int) -> c_int {
    let Some(next) = DUP2.get() else { return fail(Errno::ENOSYS) };
    // SAFETY: a query of a descriptor.
    if fd != to && unsafe { libc::fcntl(fd, libc::F_GETFD) } >= 0 {
        forget(to);
    }
    // SAFETY: the caller's arguments, passed on.
    let made = unsafe { next(fd, to) };
    if fd == to { made } else { copied(fd, made) }
}

/// See dup3(2).
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int {
    let Some(next) = DUP3.get() else { return fail(Errno::ENOSYS) };
    // SAFETY: a query of a descriptor.
    if fd != to && unsafe { libc::fcntl(fd, libc::F_GETFD) } >= 0 {
        forget(to);
    }
    // SAFETY: the caller's arguments, passed on.
    copied(fd, unsafe { next(fd, to, flags) })
}

macro_rules! control {
    ($name:ident, $literal:literal) => {
        /// See fcntl(2).
        ///
        /// # Safety
        /// As for the function of libc.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(fd: c_int, command: c_int, argument: *mut c_void) -> c_int {
            // SAFETY: the signature is that of the function of this name.
            static NEXT: Next<Control> = unsafe { Next::new($literal) };
            let Some(next) = NEXT.get() else { return fail(Errno::ENOSYS) };
            // SAFETY: the caller's arguments, passed on.
            let result = unsafe { next(fd, command, argument) };
            match command {
                libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => copied(fd, result),
                _ => result,
            }
        }
    };
}

control!(fcntl, c"fcntl");
control!(fcntl64, c"fcntl64");
