//! What a program does with SIGSEGV while doorbells are watched through it: see [`guard`].

use std::{ffi::c_int, io};

use libc::{sighandler_t, sigset_t};

use super::fail;
use crate::{
    guard::{self, Action},
    next::Next,
    options::capture,
};

type Mask = unsafe extern "C" fn(c_int, *const sigset_t, *mut sigset_t) -> c_int;
type SetAction = unsafe extern "C" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;

// SAFETY: the signature is that of the function of this name.
static SIGACTION: Next<SetAction> = unsafe { Next::new(c"sigaction") };
// SAFETY: the signature is that of the function of this name.
static PTHREAD_SIGMASK: Next<Mask> = unsafe { Next::new(c"pthread_sigmask") };

/// The system's own `sigaction`.
///
/// # Safety
/// As for the function of libc.
pub(crate) unsafe fn set_action(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> io::Result<()> {
    let next = SIGACTION.get().ok_or(io::ErrorKind::Unsupported)?;
    // SAFETY: by contract.
    if unsafe { next(signal, new, old) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The system's own `pthread_sigmask`.
///
/// # Safety
/// As for the function of libc.
pub(crate) unsafe fn mask(how: c_int, new: *const sigset_t, old: *mut sigset_t) {
    if let Some(next) = PTHREAD_SIGMASK.get() {
        // SAFETY: by contract.
        unsafe { next(how, new, old) };
    }
}

/// See sigaction(2).
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    if !guard::takes(signal) {
        return match SIGACTION.get() {
            // SAFETY: the caller's arguments, passed on.
            Some(next) => unsafe { next(signal, new, old) },
            None => fail(nv_abi::Errno::ENOSYS),
        };
    }
    // SAFETY: the caller's pointers, which may be null.
    unsafe {
        let before = guard::exchange(new.as_ref().map(|action| Action(*action)));
        if let (Some(old), Some(before)) = (old.as_mut(), before) {
            *old = before.0;
        }
    }
    0
}

/// See signal(2).
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn signal(number: c_int, handler: sighandler_t) -> sighandler_t {
    // SAFETY: the signature is that of the function of this name.
    static NEXT: Next<unsafe extern "C" fn(c_int, sighandler_t) -> sighandler_t> =
        unsafe { Next::new(c"signal") };
    if !guard::takes(number) {
        return match NEXT.get() {
            // SAFETY: the caller's arguments, passed on.
            Some(next) => unsafe { next(number, handler) },
            None => libc::SIG_ERR,
        };
    }
    // SAFETY: an action of zeros is one, and is filled in as signal(2) says.
    let mut new: libc::sigaction = unsafe { std::mem::zeroed() };
    (new.sa_sigaction, new.sa_flags) = (handler, libc::SA_RESTART);
    guard::exchange(Some(Action(new))).map_or(libc::SIG_DFL, |before| before.0.sa_sigaction)
}

/// Calls `next` with a set that does not block SIGSEGV, where doorbells may be watched through it.
///
/// # Safety
/// `next` and the arguments must fit together.
unsafe fn masked(next: Mask, how: c_int, set: *const sigset_t, old: *mut sigset_t) -> c_int {
    if set.is_null() || how == libc::SIG_UNBLOCK || capture().is_none() {
        // SAFETY: by contract.
        return unsafe { next(how, set, old) };
    }
    // SAFETY: the caller's set, copied.
    unsafe {
        let mut without = *set;
        libc::sigdelset(&raw mut without, libc::SIGSEGV);
        next(how, &raw const without, old)
    }
}

/// See pthread_sigmask(3).
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_sigmask(how: c_int, set: *const sigset_t, old: *mut sigset_t) -> c_int {
    match PTHREAD_SIGMASK.get() {
        // SAFETY: the caller's arguments.
        Some(next) => unsafe { masked(next, how, set, old) },
        None => libc::ENOSYS,
    }
}

/// See sigprocmask(2).
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigprocmask(how: c_int, set: *const sigset_t, old: *mut sigset_t) -> c_int {
    // SAFETY: the signature is that of the function of this name.
    static NEXT: Next<Mask> = unsafe { Next::new(c"sigprocmask") };
    match NEXT.get() {
        // SAFETY: the caller's arguments.
        Some(next) => unsafe { masked(next, how, set, old) },
        None => fail(nv_abi::Errno::ENOSYS),
    }
}
