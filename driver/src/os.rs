//! The operating system: the real device nodes, and the pages that this process owns.
//!
//! All system calls of the crate are here. The simulator replaces [`NvidiaNodes`]; pinned host memory is real memory
//! of this process either way.

use std::{
    ffi::CString,
    os::fd::{FromRawFd, IntoRawFd, OwnedFd},
    ptr,
    sync::atomic::{Ordering, fence},
};

use nix::{fcntl::OFlag, sys::stat::Mode};
use nv_abi::{Errno, Fd, Ioctl, Mapping, Mmio, Node};

use crate::{Error, memory::bounds};

/// The real thing: `/dev/nvidiactl`, `/dev/nvidia-uvm` and `/dev/nvidiaN`.
#[derive(Debug, Default)]
pub struct NvidiaNodes {
    /// Doorbell pages given out: address and length.
    pages: std::sync::Mutex<Vec<(u64, u64)>>,
}

impl NvidiaNodes {
    /// Opens nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    fn pages(&self) -> std::sync::MutexGuard<'_, Vec<(u64, u64)>> {
        self.pages.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn register(&self, page: u64, offset: u32) -> Result<*mut u32, Errno> {
        let inside = self.pages().iter().any(|(address, length)| {
            *address == page && u64::from(offset) + 4 <= *length && offset.is_multiple_of(4)
        });
        if inside { Ok((page + u64::from(offset)) as *mut u32) } else { Err(Errno::EFAULT) }
    }
}

fn errno(error: nix::errno::Errno) -> Errno {
    Errno(error as i32)
}

fn last() -> Errno {
    errno(nix::errno::Errno::last())
}

impl Ioctl for NvidiaNodes {
    fn open(&self, node: Node) -> Result<Fd, Errno> {
        let path = CString::new(node.to_string()).map_err(|_| Errno::ENOENT)?;
        let fd = nix::fcntl::open(path.as_c_str(), OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty())
            .map_err(errno)?;
        Ok(Fd(fd.into_raw_fd()))
    }

    fn close(&self, fd: Fd) -> Result<(), Errno> {
        if fd.0 < 0 {
            return Err(Errno::EBADF);
        }
        // SAFETY: the number came from `open` of this value, whose callers close it once.
        nix::unistd::close(unsafe { OwnedFd::from_raw_fd(fd.0) }).map_err(errno)
    }

    fn ioctl(&self, fd: Fd, request: u32, argument: &mut [u8]) -> Result<(), Errno> {
        // SAFETY: the module reads and writes as many bytes as the request's struct has, which the caller allocated;
        // nested pointers are checked by the module against this process's mappings.
        let result = unsafe { libc::ioctl(fd.0, request as libc::Ioctl, argument.as_mut_ptr()) };
        if result < 0 { Err(last()) } else { Ok(()) }
    }

    fn mmap(&self, fd: Fd, mapping: Mapping) -> Result<u64, Errno> {
        let address = map(fd.0, mapping, libc::MAP_SHARED)?;
        self.pages().push((address, mapping.length));
        Ok(address)
    }

    fn munmap(&self, address: u64, length: u64) -> Result<(), Errno> {
        {
            let mut pages = self.pages();
            let known = pages.iter().position(|page| *page == (address, length)).ok_or(Errno::EINVAL)?;
            pages.swap_remove(known);
        }
        unmap(address, length)
    }
}

impl Mmio for NvidiaNodes {
    fn write32(&self, page: u64, offset: u32, value: u32) -> Result<(), Errno> {
        let register = self.register(page, offset)?;
        // Write-combined stores before it must have left the CPU when the doorbell rings.
        fence(Ordering::SeqCst);
        // SAFETY: the register lies inside a live mapping of this value.
        unsafe { register.write_volatile(value) };
        Ok(())
    }

    fn read32(&self, page: u64, offset: u32) -> Result<u32, Errno> {
        let register = self.register(page, offset)?;
        // SAFETY: as above.
        Ok(unsafe { register.read_volatile() })
    }
}

fn map(fd: i32, mapping: Mapping, flags: i32) -> Result<u64, Errno> {
    let fixed = if mapping.address.is_some() { libc::MAP_FIXED_NOREPLACE } else { 0 };
    let wanted = mapping.address.unwrap_or(0);
    let length = usize::try_from(mapping.length).map_err(|_| Errno::EINVAL)?;
    let offset = libc::off_t::try_from(mapping.offset).map_err(|_| Errno::EINVAL)?;
    // SAFETY: a new mapping; MAP_FIXED_NOREPLACE never replaces one that exists.
    let address = unsafe {
        libc::mmap(wanted as *mut _, length, libc::PROT_READ | libc::PROT_WRITE, flags | fixed, fd, offset)
    };
    if address == libc::MAP_FAILED {
        return Err(last());
    }
    // Kernels before 4.17 take the flag for a hint.
    if mapping.address.is_some() && address as u64 != wanted {
        unmap(address as u64, mapping.length)?;
        return Err(Errno::EEXIST);
    }
    Ok(address as u64)
}

fn unmap(address: u64, length: u64) -> Result<(), Errno> {
    // SAFETY: callers unmap only what they mapped, by its exact range, and hold no pointer into it.
    let result = unsafe { libc::munmap(address as *mut _, length as usize) };
    if result < 0 { Err(last()) } else { Ok(()) }
}

/// Anonymous shared pages of this process at a chosen address.
pub(crate) fn anonymous(address: u64, length: u64) -> Result<u64, Errno> {
    map(-1, Mapping { address: Some(address), length, offset: 0 }, libc::MAP_SHARED | libc::MAP_ANONYMOUS)
}

/// Unmaps what [`anonymous`] mapped.
pub(crate) fn free_anonymous(address: u64, length: u64) -> Result<(), Errno> {
    unmap(address, length)
}

/// Zeroed pages of this process that can be shared with a GPU (`NV01_MEMORY_SYSTEM_OS_DESCRIPTOR`). Dropping the value
/// unmaps them.
#[derive(Debug)]
pub struct SharedPages {
    address: u64,
    length: u64,
}

impl SharedPages {
    /// So many bytes, in whole pages.
    pub fn new(bytes: u64) -> Result<Self, Errno> {
        let length = bytes.max(1).checked_next_multiple_of(4 << 10).ok_or(Errno::ENOMEM)?;
        let mapping = Mapping { address: None, length, offset: 0 };
        let address = map(-1, mapping, libc::MAP_SHARED | libc::MAP_ANONYMOUS)?;
        Ok(Self { address, length })
    }

    /// Where they lie.
    pub fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for SharedPages {
    fn drop(&mut self) {
        // Nothing can be reported from a drop; the mapping is this value's own.
        let _ = unmap(self.address, self.length);
    }
}

/// A window of mapped memory that the GPU shares: bounded, volatile access by offset.
///
/// The owner of the mapping keeps it alive for as long as the window is used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// What is mapped there, for errors.
    name: &'static str,
    address: u64,
    length: u64,
}

impl Window {
    /// A window over a live mapping of the whole range.
    ///
    /// # Safety
    /// The range must stay mapped, readable and writable for as long as the value or a copy of it is used.
    pub(crate) unsafe fn new(name: &'static str, address: u64, length: u64) -> Self {
        Self { name, address, length }
    }

    /// A pointer to bytes of the window; an error outside it or misaligned.
    fn pointer(&self, offset: u64, bytes: u64, alignment: u64) -> Result<*mut u8, Error> {
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= self.length);
        if inside && (self.address + offset).is_multiple_of(alignment) {
            Ok((self.address + offset) as *mut u8)
        } else {
            Err(bounds(self.name, offset, bytes, self.length))
        }
    }

    /// Loads 32 bits.
    pub(crate) fn load32(&self, offset: u64) -> Result<u32, Error> {
        let pointer = self.pointer(offset, 4, 4)?;
        // SAFETY: in bounds and aligned; the window's creator keeps it mapped.
        Ok(unsafe { ptr::read_volatile(pointer.cast::<u32>()) })
    }

    /// Loads 64 bits.
    pub(crate) fn load64(&self, offset: u64) -> Result<u64, Error> {
        let pointer = self.pointer(offset, 8, 8)?;
        // SAFETY: as above.
        let value = unsafe { ptr::read_volatile(pointer.cast::<u64>()) };
        fence(Ordering::Acquire);
        Ok(value)
    }

    /// Stores 32 bits, after every earlier store.
    pub(crate) fn store32(&self, offset: u64, value: u32) -> Result<(), Error> {
        let pointer = self.pointer(offset, 4, 4)?;
        fence(Ordering::SeqCst);
        // SAFETY: as above.
        unsafe { ptr::write_volatile(pointer.cast::<u32>(), value) };
        Ok(())
    }

    /// Stores 64 bits, after every earlier store.
    pub(crate) fn store64(&self, offset: u64, value: u64) -> Result<(), Error> {
        let pointer = self.pointer(offset, 8, 8)?;
        fence(Ordering::SeqCst);
        // SAFETY: as above.
        unsafe { ptr::write_volatile(pointer.cast::<u64>(), value) };
        Ok(())
    }

    /// Copies into the window.
    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let pointer = self.pointer(offset, bytes.len() as u64, 1)?;
        // SAFETY: in bounds; the caller's slice is not GPU memory, so the ranges do not overlap.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), pointer, bytes.len()) };
        fence(Ordering::Release);
        Ok(())
    }

    /// Copies out of the window.
    pub(crate) fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let pointer = self.pointer(offset, bytes.len() as u64, 1)?;
        fence(Ordering::Acquire);
        // SAFETY: as above.
        unsafe { ptr::copy_nonoverlapping(pointer, bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }
}
