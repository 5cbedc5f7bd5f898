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

use super::fail;
use crate::{
    next::Next,
    process::{last_error, map_source, owns, shared, unmapped},
    record,
};

type Map = unsafe extern "C" fn(*mut c_void, size_t, c_int, c_int, c_int, off_t) -> *mut c_void;

fn failed(errno: Errno) -> *mut c_void {
    fail(errno);
    libc::MAP_FAILED
}

/// Writes down a mapping, or why there is none, where that is done.
fn noted(fd: c_int, length: size_t, offset: off_t, mapped: *mut c_void) -> *mut c_void {
    if !record::owns(fd) {
        return mapped;
    }
    let result = if mapped == libc::MAP_FAILED { Err(last_error()) } else { Ok(mapped as u64) };
    record::mapped(fd, Mapping { address: None, length: length as u64, offset: offset as u64 }, result);
    match result {
        Ok(_) => mapped,
        Err(errno) => failed(errno),
    }
}

/// Whether a mapping of a UVM descriptor is as the module wants it: it must see every access.
const fn is_shared_and_writable(protection: c_int, flags: c_int) -> bool {
    const BOTH: c_int = libc::PROT_READ | libc::PROT_WRITE;
    // Private mappings have one of the two types, shared ones the other or both bits.
    flags & libc::MAP_SHARED != 0 && protection & BOTH == BOTH
}

macro_rules! map {
    ($name:ident, $literal:literal) => {
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
            // SAFETY: the signature is that of the function of this name.
            static NEXT: Next<Map> = unsafe { Next::new($literal) };
            let Some(next) = NEXT.get() else { return failed(Errno::ENOSYS) };
            if flags & libc::MAP_ANONYMOUS != 0 || !owns(fd) {
                // SAFETY: the caller's arguments, passed on.
                let mapped = unsafe { next(address, length, protection, flags, fd, offset) };
                if flags & libc::MAP_ANONYMOUS == 0 && record::owns(fd) {
                    return noted(fd, length, offset, mapped);
                }
                return mapped;
            }
            // Where the mapping is to be exactly; elsewhere the address is only a hint.
            let fixed =
                (flags & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) != 0).then_some(address as u64);
            let mapping = Mapping { address: fixed, length: length as u64, offset: offset as u64 };
            let source = match map_source(fd, mapping) {
                Ok(source) => source,
                Err(errno) => {
                    failed(errno);
                    return noted(fd, length, offset, libc::MAP_FAILED);
                }
            };
            if let Some(managed) = source.managed
                && !is_shared_and_writable(protection, flags)
            {
                unmapped(managed, mapping.offset, mapping.length);
                failed(Errno::EINVAL);
                return noted(fd, length, offset, libc::MAP_FAILED);
            }
            let at = source.offset as off_t;
            // SAFETY: as the caller asked, of the file that stands for the descriptor.
            let mapped = unsafe { next(address, length, protection, flags, source.file.as_raw_fd(), at) };
            if let Some(managed) = source.managed {
                if mapped == libc::MAP_FAILED {
                    unmapped(managed, mapping.offset, mapping.length);
                } else {
                    shared().managed.insert(mapped as u64, (mapping.length, managed));
                    MANAGED.fetch_add(1, Ordering::Release);
                }
            }
            noted(fd, length, offset, mapped)
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
    // SAFETY: the signature is that of the function of this name.
    static NEXT: Next<unsafe extern "C" fn(*mut c_void, size_t) -> c_int> = unsafe { Next::new(c"munmap") };
    let Some(next) = NEXT.get() else { return fail(Errno::ENOSYS) };
    let recorded = record::unmapping(address as u64);
    // SAFETY: the caller's arguments, passed on.
    let result = unsafe { next(address, length) };
    if recorded && result == 0 {
        record::unmapped(address as u64, length as u64);
    }
    if result == 0 && MANAGED.load(Ordering::Acquire) != 0 {
        let start = address as u64;
        let known = shared().managed.get(&start).copied().filter(|(bytes, _)| *bytes == length as u64);
        if let Some((bytes, managed)) = known {
            shared().managed.remove(&start);
            MANAGED.fetch_sub(1, Ordering::Release);
            unmapped(managed, start, bytes);
        }
    }
    result
}

map!(mmap, c"mmap");
map!(mmap64, c"mmap64");

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
