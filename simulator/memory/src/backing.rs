//! Memory objects' bytes: lazily touched, shareable with the client, mapped once by the simulator.

use std::{
    ffi::CString,
    fmt,
    num::NonZeroUsize,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    ptr::NonNull,
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
};

use nix::{
    sys::{
        memfd::{MFdFlags, memfd_create},
        mman::{MapFlags, ProtFlags, mmap, munmap},
    },
    unistd::ftruncate,
};

use super::{PAGE, words};

/// Why a backing could not be made, read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BackingError {
    /// An object without bytes.
    #[error("{name}: a memory object of {bytes} bytes")]
    Size {
        /// The object's name.
        name: String,
        /// The size asked for.
        bytes: u64,
    },
    /// The host system refused.
    #[error("{name}: {what} of {bytes} bytes failed: {source}")]
    System {
        /// The object's name.
        name: String,
        /// The system call.
        what: &'static str,
        /// Bytes of the object.
        bytes: u64,
        /// The host's reason.
        source: nix::Error,
    },
    /// Bytes outside the object.
    #[error("{name}: bytes {offset:#x}+{bytes:#x} of an object of {length:#x} bytes")]
    Bounds {
        /// The object's name.
        name: String,
        /// First byte.
        offset: u64,
        /// Bytes asked for.
        bytes: u64,
        /// Bytes the object has.
        length: u64,
    },
    /// A word that is not aligned to its size.
    #[error("{name}: a word of {bytes} bytes at offset {offset:#x}")]
    Misaligned {
        /// The object's name.
        name: String,
        /// Its offset.
        offset: u64,
        /// Its size.
        bytes: u64,
    },
    /// The client mapped the aliased memory read-only.
    #[error("{name}: the memory is read-only")]
    ReadOnly {
        /// The object's name.
        name: String,
    },
}

/// The bytes of one memory object.
///
/// The simulator keeps one mapping of its own for as long as the object lives. Pages cost nothing until they are
/// touched. All access is atomic, word by word: the client and other engines use the same bytes at the same time.
pub struct Backing {
    name: String,
    length: u64,
    base: NonNull<u8>,
    mapped: NonZeroUsize,
    file: Option<OwnedFd>,
    writable: bool,
}

// SAFETY: the mapping is owned, never moves while the value lives, and is only accessed atomically.
unsafe impl Send for Backing {}
// SAFETY: as above.
unsafe impl Sync for Backing {}

impl Backing {
    /// A zeroed object of `bytes` bytes, rounded up to pages, in an anonymous file of its own.
    pub fn new(name: &str, bytes: u64) -> Result<Self, BackingError> {
        let size_error = || BackingError::Size { name: name.to_owned(), bytes };
        let length = bytes.checked_next_multiple_of(PAGE).ok_or_else(size_error)?;
        let mapped = usize::try_from(length).ok().and_then(NonZeroUsize::new).ok_or_else(size_error)?;
        let file_length = i64::try_from(length).map_err(|_| size_error())?;
        let failed = |what| move |source| BackingError::System { name: name.to_owned(), what, bytes, source };
        let label = CString::new(name.replace('\0', "")).map_err(|_| size_error())?;
        let file = memfd_create(label.as_c_str(), MFdFlags::MFD_CLOEXEC).map_err(failed("memfd_create"))?;
        ftruncate(&file, file_length).map_err(failed("ftruncate"))?;
        // SAFETY: a new mapping at an address of the system's choice replaces nothing.
        let base = unsafe {
            mmap(
                None,
                mapped,
                ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
                MapFlags::MAP_SHARED | MapFlags::MAP_NORESERVE,
                &file,
                0,
            )
        }
        .map_err(failed("mmap"))?;
        Ok(Self {
            name: name.to_owned(),
            length,
            base: base.cast(),
            mapped,
            file: Some(file),
            writable: true,
        })
    }

    /// An object over a mapping that the caller hands over.
    ///
    /// # Safety
    /// `base` must be a shared mapping of `mapped` bytes that nothing else unmaps.
    pub(super) unsafe fn from_mapping(
        name: &str,
        base: NonNull<u8>,
        mapped: NonZeroUsize,
        writable: bool,
    ) -> Self {
        Self { name: name.to_owned(), length: mapped.get() as u64, base, mapped, file: None, writable }
    }

    /// What the object is, for reports.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes, a multiple of [`PAGE`].
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Never: an object has at least one page.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Whether the object may be written. Only aliased client memory may be read-only.
    pub fn writable(&self) -> bool {
        self.writable
    }

    /// The file that holds the bytes from offset 0; `None` for aliased client memory.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.file.as_ref().map(|file| file.as_fd())
    }

    /// The inode of the file that holds the bytes; `None` for aliased client memory.
    pub fn inode(&self) -> Option<u64> {
        self.fd().and_then(|fd| nix::sys::stat::fstat(fd).ok()).map(|stat| stat.st_ino)
    }

    /// The address of the simulator's own mapping, to tell it from mappings of clients.
    pub fn address(&self) -> u64 {
        self.base.as_ptr() as u64
    }

    /// Where byte `offset` lies, if `offset + bytes` is inside the object. The pointer is valid while the object
    /// lives; whoever uses it must access it atomically and not write to a read-only object.
    pub fn pointer(&self, offset: u64, bytes: u64) -> Option<NonNull<u8>> {
        let end = offset.checked_add(bytes)?;
        if end > self.length {
            return None;
        }
        // SAFETY: the offset is at most the length of the mapping that starts at `base`.
        Some(unsafe { self.base.add(offset as usize) })
    }

    fn checked(&self, offset: u64, bytes: u64) -> Result<NonNull<u8>, BackingError> {
        self.pointer(offset, bytes).ok_or_else(|| BackingError::Bounds {
            name: self.name.clone(),
            offset,
            bytes,
            length: self.length,
        })
    }

    fn for_write(&self, offset: u64, bytes: u64) -> Result<NonNull<u8>, BackingError> {
        if !self.writable {
            return Err(BackingError::ReadOnly { name: self.name.clone() });
        }
        self.checked(offset, bytes)
    }

    fn aligned(&self, offset: u64, bytes: u64) -> Result<(), BackingError> {
        if offset.is_multiple_of(bytes) {
            Ok(())
        } else {
            Err(BackingError::Misaligned { name: self.name.clone(), offset, bytes })
        }
    }

    /// Copies bytes out.
    pub fn read(&self, offset: u64, to: &mut [u8]) -> Result<(), BackingError> {
        let pointer = self.checked(offset, to.len() as u64)?;
        // SAFETY: `checked` found the range inside the mapping, which lives as long as `self`.
        unsafe { words::load(pointer.as_ptr(), to) };
        Ok(())
    }

    /// Copies bytes in.
    pub fn write(&self, offset: u64, from: &[u8]) -> Result<(), BackingError> {
        let pointer = self.for_write(offset, from.len() as u64)?;
        // SAFETY: as in `read`, and the mapping is writable.
        unsafe { words::store(pointer.as_ptr(), from) };
        Ok(())
    }

    /// Loads an aligned 32-bit word, and sees all that was stored before it (acquire).
    pub fn read_u32(&self, offset: u64) -> Result<u32, BackingError> {
        self.aligned(offset, 4)?;
        let pointer = self.checked(offset, 4)?;
        // SAFETY: inside the mapping and aligned: the base is page aligned.
        Ok(unsafe { AtomicU32::from_ptr(pointer.as_ptr().cast()) }.load(Ordering::Acquire))
    }

    /// Stores an aligned 32-bit word after all that was stored before it (release).
    pub fn write_u32(&self, offset: u64, value: u32) -> Result<(), BackingError> {
        self.aligned(offset, 4)?;
        let pointer = self.for_write(offset, 4)?;
        // SAFETY: as in `read_u32`, and the mapping is writable.
        unsafe { AtomicU32::from_ptr(pointer.as_ptr().cast()) }.store(value, Ordering::Release);
        Ok(())
    }

    /// Loads an aligned 64-bit word (acquire).
    pub fn read_u64(&self, offset: u64) -> Result<u64, BackingError> {
        self.aligned(offset, 8)?;
        let pointer = self.checked(offset, 8)?;
        // SAFETY: as in `read_u32`.
        Ok(unsafe { AtomicU64::from_ptr(pointer.as_ptr().cast()) }.load(Ordering::Acquire))
    }

    /// Stores an aligned 64-bit word (release).
    pub fn write_u64(&self, offset: u64, value: u64) -> Result<(), BackingError> {
        self.aligned(offset, 8)?;
        let pointer = self.for_write(offset, 8)?;
        // SAFETY: as in `write_u32`.
        unsafe { AtomicU64::from_ptr(pointer.as_ptr().cast()) }.store(value, Ordering::Release);
        Ok(())
    }
}

impl Drop for Backing {
    fn drop(&mut self) {
        // SAFETY: the mapping is owned and every span of it has ended: spans borrow from holders of this object.
        // A failure leaves the mapping in place, which is harmless.
        let _ = unsafe { munmap(self.base.cast(), self.mapped.get()) };
    }
}

impl fmt::Debug for Backing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backing")
            .field("name", &self.name)
            .field("length", &self.length)
            .field("writable", &self.writable)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_huge_object_costs_nothing_until_touched() -> Result<(), BackingError> {
        let backing = Backing::new("vram", 24 << 30)?;
        backing.write_u32((24 << 30) - 4, 7)?;
        assert_eq!(backing.read_u32((24 << 30) - 4)?, 7);
        assert_eq!(backing.read_u64(0)?, 0);
        Ok(())
    }

    #[test]
    fn access_outside_or_misaligned_is_refused() -> Result<(), BackingError> {
        let backing = Backing::new("page", 1)?;
        assert_eq!(backing.len(), PAGE);
        assert!(matches!(backing.read(PAGE - 1, &mut [0; 2]), Err(BackingError::Bounds { .. })));
        assert!(matches!(backing.write(u64::MAX, &[0; 2]), Err(BackingError::Bounds { .. })));
        assert!(matches!(backing.read_u32(PAGE), Err(BackingError::Bounds { .. })));
        assert!(matches!(backing.write_u64(4, 0), Err(BackingError::Misaligned { .. })));
        assert!(matches!(Backing::new("none", 0), Err(BackingError::Size { .. })));
        assert!(matches!(Backing::new("all", u64::MAX), Err(BackingError::Size { .. })));
        Ok(())
    }
}
