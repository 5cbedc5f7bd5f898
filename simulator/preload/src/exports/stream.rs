//! `fopen` of generated files.

use std::ffi::{CStr, c_char};

use libc::FILE;
use nv_abi::Errno;

use super::{fail, look, open::text_file};
use crate::{next::Next, options::Options, path::Known, process::guarded, text::Text};

fn text_stream(text: Text, options: &Options) -> *mut FILE {
    let fd = match guarded(|| text_file(text, options, true)) {
        Ok(fd) => fd,
        Err(errno) => {
            fail(errno);
            return std::ptr::null_mut();
        }
    };
    // SAFETY: the descriptor is open and the stream's from here on.
    unsafe { libc::fdopen(fd, c"r".as_ptr()) }
}

macro_rules! stream {
    ($($name:ident $literal:literal;)*) => { $(
        /// See fopen(3).
        ///
        /// # Safety
        /// As for the function of libc.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(path: *const c_char, mode: *const c_char) -> *mut FILE {
            // SAFETY: the signature is that of the function of this name.
            static NEXT: Next<unsafe extern "C" fn(*const c_char, *const c_char) -> *mut FILE> =
                // SAFETY: the signature is that of the function of this name.
                unsafe { Next::new($literal) };
            // SAFETY: the caller passes a path and a mode.
            let (known, writes) = unsafe {
                let writes = !mode.is_null() && CStr::from_ptr(mode).to_bytes().first() != Some(&b'r');
                (look(libc::AT_FDCWD, path), writes)
            };
            let refused = match known {
                Some((Known::Text(text), options)) if !writes => return text_stream(text, options),
                Some((Known::Text(_), _)) => Some(Errno::EACCES),
                Some((Known::Absent | Known::Directory(_), _)) => Some(Errno::ENOENT),
                // A stream buffers, and no client of a node opens one.
                Some((Known::Node(_), _)) => Some(Errno::EINVAL),
                Some((Known::Changed(_), _)) | None => None,
            };
            match (refused, NEXT.get()) {
                // SAFETY: the caller's arguments, passed on.
                (None, Some(next)) => unsafe { next(path, mode) },
                (refused, _) => {
                    fail(refused.unwrap_or(Errno::ENOSYS));
                    std::ptr::null_mut()
                }
            }
        }
    )* };
}

stream! {
    fopen c"fopen";
    fopen64 c"fopen64";
}
