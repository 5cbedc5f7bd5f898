//! `mmap` of a node's descriptor.
//!
//! Where the program's call reaches this library it gets the kernel module's checks and offsets; where it does not, the
//! file behind the descriptor maps the same bytes.

use std::{
    ffi::{c_int, c_void},
    os::fd::AsRawFd,
    sync::atomic::{AtomicUsize, Ordering},
};

use libc::{off_t, size_t};
use nv_abi::{Errno, Mapping};

use super::{fail, status};
use crate::{
    near,
    next::Next,
    process::{last_error, map_source, owns, shared, unmapped},
    record,
};

type Map = unsafe extern "C" fn(*mut c_void, size_t, c_int, c_int, c_int, off_t) -> *mut c_void;

// SAFETY: the signature is that of the function of this name.
static MMAP: Next<Map> = unsafe { Next::new(c"mmap") };
// SAFETY: the signature is that of the function of this name.
static MUNMAP: Next<unsafe extern "C" fn(*mut c_void, size_t) -> c_int> = unsafe { Next::new(c"munmap") };

static MPROTECT: Next<unsafe extern "C" fn(*mut c_void, size_t, c_int) -> c_int> =
    // SAFETY: the signature is that of the function of this name.
    unsafe { Next::new(c"mprotect") };

/// Maps the file behind a descriptor once more from its beginning on, shared, for reading and writing, past this library.
pub(crate) fn map_again(fd: c_int, length: u64) -> std::io::Result<u64> {
    let next = MMAP.get().ok_or(std::io::ErrorKind::Unsupported)?;
    let both = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping where the kernel finds room.
    let mapped = unsafe { next(std::ptr::null_mut(), length as size_t, both, libc::MAP_SHARED, fd, 0) };
    if mapped == libc::MAP_FAILED { Err(std::io::Error::last_os_error()) } else { Ok(mapped as u64) }
}

/// Changes what may be done with a mapping, past this library.
///
/// # Safety
/// As for the function of libc.
pub(crate) unsafe fn protect(address: u64, length: u64, protection: c_int) -> std::io::Result<()> {
    let next = MPROTECT.get().ok_or(std::io::ErrorKind::Unsupported)?;
    // SAFETY: by contract.
    let result = unsafe { next(address as *mut c_void, length as size_t, protection) };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Unmaps past this library.
///
/// # Safety
/// Nobody uses the mapping any more.
pub(crate) unsafe fn unmap(address: u64, length: u64) {
    if let Some(next) = MUNMAP.get() {
        // SAFETY: by contract.
        unsafe { next(address as *mut c_void, length as size_t) };
    }
}

fn failed(errno: Errno) -> *mut c_void {
    fail(errno);
    libc::MAP_FAILED
}

/// Maps, and writes the mapping down, or why there is none, where that is done.
fn noted(
    (fd, protection): (c_int, c_int),
    length: size_t,
    offset: off_t,
    map: impl FnOnce() -> *mut c_void,
) -> *mut c_void {
    if !record::owns(fd) {
        return map();
    }
    let mapping = Mapping { address: None, length: length as u64, offset: offset as u64 };
    let readable = protection & libc::PROT_READ != 0;
    let result = record::mapping(fd, mapping, readable, || match map() {
        libc::MAP_FAILED => Err(last_error()),
        mapped => Ok(mapped as u64),
    });
    result.map_or_else(failed, |mapped| mapped as *mut c_void)
}

/// Whether a mapping of a UVM descriptor is as the module wants it: it must see every access.
const fn is_shared_and_writable(protection: c_int, flags: c_int) -> bool {
    const BOTH: c_int = libc::PROT_READ | libc::PROT_WRITE;
    // Private mappings have one of the two types, shared ones the other or both bits.
    flags & libc::MAP_SHARED != 0 && protection & BOTH == BOTH
}

macro_rules! map {
    ($name:ident, $next:expr) => {
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
            let Some(next) = $next.get() else { return failed(Errno::ENOSYS) };
            if flags & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) == libc::MAP_FIXED {
                near::forget(address as u64, length as u64);
            }
            if flags & libc::MAP_ANONYMOUS != 0 || !owns(fd) {
                // SAFETY: the caller's arguments, passed on.
                let map = || unsafe { next(address, length, protection, flags, fd, offset) };
                return if flags & libc::MAP_ANONYMOUS == 0 {
                    noted((fd, protection), length, offset, map)
                } else {
                    map()
                };
            }
            // Where the mapping is to be exactly; elsewhere the address is only a hint.
            let fixed =
                (flags & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) != 0).then_some(address as u64);
            let mapping = Mapping { address: fixed, length: length as u64, offset: offset as u64 };
            let source = match map_source(fd, mapping) {
                Ok(source) => source,
                Err(errno) => return noted((fd, protection), length, offset, || failed(errno)),
            };
            if let Some(managed) = source.managed
                && !is_shared_and_writable(protection, flags)
            {
                unmapped(managed, mapping.offset, mapping.length);
                return noted((fd, protection), length, offset, || failed(Errno::EINVAL));
            }
            let (file, at) = (source.file.as_raw_fd(), source.offset as off_t);
            // SAFETY: as the caller asked, of the file that stands for the descriptor.
            let map = || unsafe { next(address, length, protection, flags, file, at) };
            let mapped = noted((fd, protection), length, offset, map);
            if let Some(managed) = source.managed {
                if mapped == libc::MAP_FAILED {
                    unmapped(managed, mapping.offset, mapping.length);
                } else {
                    shared().managed.insert(mapped as u64, (mapping.length, managed));
                    MANAGED.fetch_add(1, Ordering::Release);
                }
            }
            mapped
        }
    };
}

/// Mappings of managed memory: while there are none, unmapping costs one load more.
static MANAGED: AtomicUsize = AtomicUsize::new(0);

/// See munmap(2). Managed memory ends with its mapping, where this call reaches the library.
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(address: *mut c_void, length: size_t) -> c_int {
    let Some(next) = MUNMAP.get() else { return fail(Errno::ENOSYS) };
    near::forget(address as u64, length as u64);
    let result = record::unmapping(address as u64, length as u64, || {
        // SAFETY: the caller's arguments, passed on.
        if unsafe { next(address, length) } == 0 { Ok(()) } else { Err(last_error()) }
    });
    if result.is_ok() && MANAGED.load(Ordering::Acquire) != 0 {
        let start = address as u64;
        let known = shared().managed.get(&start).copied().filter(|(bytes, _)| *bytes == length as u64);
        if let Some((bytes, managed)) = known {
            shared().managed.remove(&start);
            MANAGED.fetch_sub(1, Ordering::Release);
            unmapped(managed, start, bytes);
        }
    }
    status(result)
}

/// See mprotect(2).
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mprotect(address: *mut c_void, length: size_t, protection: c_int) -> c_int {
    near::forget(address as u64, length as u64);
    match MPROTECT.get() {
        // SAFETY: the caller's arguments, passed on.
        Some(next) => unsafe { next(address, length, protection) },
        None => fail(Errno::ENOSYS),
    }
}

// SAFETY: the signature is that of the function of this name.
static MMAP64: Next<Map> = unsafe { Next::new(c"mmap64") };

map!(mmap, MMAP);
map!(mmap64, MMAP64);

#[cfg(test)]
mod tests {
    use libc::{MAP_FIXED, MAP_PRIVATE, MAP_SHARED, MAP_SHARED_VALIDATE, PROT_NONE, PROT_READ, PROT_WRITE};

    use super::*;

    #[test]
    fn managed_memory_is_mapped_shared_and_for_both() {
        let both = PROT_READ | PROT_WRITE;
        assert!(is_shared_and_writable(both, MAP_SHARED | MAP_FIXED));
        assert!(is_shared_and_writable(both, MAP_SHARED_VALIDATE));
        assert!(!is_shared_and_writable(both, MAP_PRIVATE));
        for less in [PROT_NONE, PROT_READ, PROT_WRITE] {
            assert!(!is_shared_and_writable(less, MAP_SHARED));
        }
    }
}
