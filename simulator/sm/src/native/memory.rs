//! Memory that can be executed.

use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nix::unistd::ftruncate;

/// Bytes of the code of a page. They cost nothing until they are written.
const BYTES: usize = 1 << 20;

/// Code of one page of instructions, written once and never changed. The same bytes are mapped twice, to be written and to be
/// executed, so that no page is ever both.
#[derive(Debug)]
pub(super) struct Executable {
    write: NonNull<u8>,
    execute: NonNull<u8>,
    used: usize,
}

// SAFETY: the mappings belong to this value alone; only `add` writes, and takes it exclusively.
unsafe impl Send for Executable {}

impl Executable {
    /// Nothing yet; `None` where the system does not allow it.
    pub(super) fn new() -> Option<Self> {
        let file = memfd_create("mockgpu code", MFdFlags::MFD_CLOEXEC).ok()?;
        ftruncate(&file, BYTES as i64).ok()?;
        let write = map(&file, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE)?;
        let Some(execute) = map(&file, ProtFlags::PROT_READ | ProtFlags::PROT_EXEC) else {
            unmap(write);
            return None;
        };
        Some(Self { write, execute, used: 0 })
    }

    /// Adds code; where it can be called, as long as this value lives. `None` if there is no room.
    pub(super) fn add(&mut self, code: &[u8]) -> Option<NonNull<u8>> {
        let start = self.used;
        let end = start.checked_add(code.len()).filter(|end| *end <= BYTES)?;
        // SAFETY: the range lies in the mapping, and has never been given out.
        unsafe {
            self.write.add(start).copy_from_nonoverlapping(NonNull::from(code).cast(), code.len());
        }
        // Functions begin on lines of their own.
        self.used = end.next_multiple_of(64).min(BYTES);
        // SAFETY: as above.
        Some(unsafe { self.execute.add(start) })
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        unmap(self.write);
        unmap(self.execute);
    }
}

fn map(file: &OwnedFd, protection: ProtFlags) -> Option<NonNull<u8>> {
    let length = NonZeroUsize::new(BYTES)?;
    // SAFETY: a new mapping at a place that the system chooses.
    unsafe { mmap(None, length, protection, MapFlags::MAP_SHARED, file, 0) }.ok().map(NonNull::cast)
}

fn unmap(mapping: NonNull<u8>) {
    // SAFETY: the mapping was made by `map` with this length, and nothing refers to it any more.
    let result = unsafe { munmap(mapping.cast(), BYTES) };
    debug_assert!(result.is_ok(), "the range was mapped");
}
