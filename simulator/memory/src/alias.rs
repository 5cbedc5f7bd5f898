//! Client memory as a memory object: what `NV01_MEMORY_SYSTEM_OS_DESCRIPTOR` pins.

use std::{fs, num::NonZeroUsize, ptr::NonNull};

use nix::sys::mman::{MRemapFlags, MapFlags, ProtFlags, mmap_anonymous, mremap};

use super::{Backing, PAGE};

/// Why client memory could not be aliased.
#[derive(Debug, thiserror::Error)]
pub enum AliasError {
    /// Not whole pages, or empty.
    #[error("{address:#x}+{length:#x} is not a range of whole pages")]
    Range {
        /// First address.
        address: u64,
        /// Bytes.
        length: u64,
    },
    /// The client has nothing mapped there.
    #[error("nothing is mapped at {address:#x}")]
    NotMapped {
        /// The first address that is not mapped, or not readable.
        address: u64,
    },
    /// The memory is private to its mapping. A real kernel module pins such pages too; a process has no means to.
    #[error("the mapping at {address:#x} is private; only shared mappings can be aliased")]
    Private {
        /// First address of the mapping.
        address: u64,
    },
    /// The host's list of mappings could not be read.
    #[error("the process's mappings: {0}")]
    Maps(#[from] std::io::Error),
    /// The host system refused.
    #[error("{what} at {address:#x} failed: {source}")]
    System {
        /// The system call.
        what: &'static str,
        /// Where.
        address: u64,
        /// The host's reason.
        source: nix::Error,
    },
}

/// One line of the process's memory map.
struct Area {
    start: u64,
    end: u64,
    readable: bool,
    writable: bool,
    shared: bool,
}

fn areas(text: &str) -> impl Iterator<Item = Area> {
    text.lines().filter_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let flags = rest.as_bytes();
        Some(Area {
            start: u64::from_str_radix(start, 16).ok()?,
            end: u64::from_str_radix(end, 16).ok()?,
            readable: flags.first() == Some(&b'r'),
            writable: flags.get(1) == Some(&b'w'),
            shared: flags.get(3) == Some(&b's'),
        })
    })
}

impl Backing {
    /// An object over `length` bytes of this process's memory at `address`: the same pages under a second mapping, so
    /// that they stay when the client unmaps its own.
    pub fn alias(name: &str, address: u64, length: u64) -> Result<Self, AliasError> {
        let range = || AliasError::Range { address, length };
        let end = address.checked_add(length).ok_or_else(range)?;
        let mapped = usize::try_from(length).ok().and_then(NonZeroUsize::new).ok_or_else(range)?;
        if !address.is_multiple_of(PAGE) || !length.is_multiple_of(PAGE) {
            return Err(range());
        }
        let text = fs::read_to_string("/proc/self/maps")?;
        let mut pieces = Vec::new();
        let mut at = address;
        let mut writable = true;
        for area in areas(&text).filter(|area| area.end > address && area.start < end) {
            if area.start > at || !area.readable {
                return Err(AliasError::NotMapped { address: at });
            }
            if !area.shared {
                return Err(AliasError::Private { address: area.start });
            }
            writable &= area.writable;
            let stop = area.end.min(end);
            pieces.push((at, stop - at));
            at = stop;
        }
        if at != end {
            return Err(AliasError::NotMapped { address: at });
        }

        // SAFETY: a new mapping at an address of the system's choice replaces nothing.
        let base = unsafe { mmap_anonymous(None, mapped, ProtFlags::PROT_NONE, MapFlags::MAP_PRIVATE) }
            .map_err(|source| AliasError::System { what: "mmap", address, source })?;
        // SAFETY: the placeholder is ours, `mapped` bytes long; from here on the object owns it.
        let backing = unsafe { Self::from_mapping(name, base.cast(), mapped, writable) };
        for (from, bytes) in pieces {
            let target = backing.pointer(from - address, bytes).ok_or_else(range)?;
            let source = NonNull::new(from as *mut std::ffi::c_void).ok_or_else(range)?;
            // SAFETY: an old size of 0 leaves the client's mapping as it is and makes a second one of the same pages,
            // over our own placeholder.
            unsafe {
                mremap(
                    source,
                    0,
                    bytes as usize,
                    MRemapFlags::MREMAP_MAYMOVE | MRemapFlags::MREMAP_FIXED,
                    Some(target.cast()),
                )
            }
            .map_err(|source| AliasError::System { what: "mremap", address: from, source })?;
        }
        Ok(backing)
    }
}

/// Unmaps a mapping of this process.
///
/// # Safety
/// Nothing may use the range any more.
#[cfg(test)]
unsafe fn unmap(address: u64, length: u64) {
    if let Some(pointer) = NonNull::new(address as *mut std::ffi::c_void) {
        // SAFETY: the caller vouches for it.
        let _ = unsafe { nix::sys::mman::munmap(pointer, length as usize) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anonymous(flags: MapFlags) -> u64 {
        let length = NonZeroUsize::new(2 * PAGE as usize).expect("not zero");
        // SAFETY: a new mapping replaces nothing.
        let mapping =
            unsafe { mmap_anonymous(None, length, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, flags) };
        mapping.expect("two pages").as_ptr() as u64
    }

    #[test]
    fn an_alias_shares_bytes_and_outlives_the_clients_mapping() {
        let address = anonymous(MapFlags::MAP_SHARED);
        let backing = Backing::alias("client", address, 2 * PAGE).expect("shared memory");
        backing.write_u32(PAGE, 42).expect("in bounds");
        // SAFETY: mapped, aligned, and nobody else writes.
        assert_eq!(unsafe { std::ptr::read_volatile((address + PAGE) as *const u32) }, 42);
        // SAFETY: nothing uses the mapping any more.
        unsafe { unmap(address, 2 * PAGE) };
        assert_eq!(backing.read_u32(PAGE), Ok(42));
        assert!(matches!(Backing::alias("client", address & !0xfff, 1), Err(AliasError::Range { .. })));
    }

    #[test]
    fn private_and_unmapped_memory_is_refused() {
        let address = anonymous(MapFlags::MAP_PRIVATE);
        assert!(matches!(Backing::alias("client", address, PAGE), Err(AliasError::Private { .. })));
        // SAFETY: nothing uses the mapping.
        unsafe { unmap(address, 2 * PAGE) };
        assert!(matches!(Backing::alias("client", PAGE, PAGE), Err(AliasError::NotMapped { .. })));
    }
}
