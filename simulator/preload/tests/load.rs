//! The built library loads into a process and answers its launcher.

use std::ffi::{CStr, CString, c_char};
use std::os::unix::ffi::OsStrExt;

#[test]
fn the_library_loads_and_says_its_version() {
    // The test binary lies in `deps`, the library beside that folder.
    let binary = std::env::current_exe().expect("the path of the running test");
    let library = binary
        .ancestors()
        .skip(1)
        .map(|folder| folder.join("libmockgpu_preload.so"))
        .find(|path| path.exists())
        .expect("cargo builds the library before the tests of its package");
    let path = CString::new(library.as_os_str().as_bytes()).expect("a path has no zero byte");
    // SAFETY: the path is a C string; loading runs no code of the library, which has no constructors.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    assert!(!handle.is_null(), "{} does not load", library.display());
    // SAFETY: the handle is open and the name a C string.
    let symbol = unsafe { libc::dlsym(handle, c"mockgpu_preload_version".as_ptr()) };
    assert!(!symbol.is_null());
    // SAFETY: the symbol is the library's function of this signature.
    let version =
        unsafe { std::mem::transmute::<*mut libc::c_void, extern "C" fn() -> *const c_char>(symbol) };
    // SAFETY: the function returns a static C string, and the library stays loaded.
    let version = unsafe { CStr::from_ptr(version()) };
    assert_eq!(version.to_str(), Ok(env!("CARGO_PKG_VERSION")));
}
