//! The library that will give an unmodified process a simulated GPU, by `LD_PRELOAD`.
//!
//! It interposes nothing yet: loading it changes nothing in a process. What stands here is its one entry point, by
//! which a launcher can tell that the library it found is of its own version.

use std::ffi::c_char;

/// The package's version as a C string, for a launcher that loads the library to ask for.
#[unsafe(no_mangle)]
pub extern "C" fn mockgpu_preload_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
