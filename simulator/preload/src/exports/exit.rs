//! Ends of a process that run no exit handlers.

use std::ffi::c_int;

use crate::process::finish;

fn end(code: c_int) -> ! {
    finish();
    // SAFETY: ends the process, as the caller asked; no other thread's state matters any more.
    unsafe {
        libc::syscall(libc::SYS_exit_group, code);
        std::hint::unreachable_unchecked()
    }
}

/// See _exit(2).
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _exit(code: c_int) -> ! {
    end(code)
}

/// See _Exit(3).
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _Exit(code: c_int) -> ! {
    end(code)
}
