//! Memory objects in the client's address space.

use std::{
    fs::File,
    num::NonZeroUsize,
    os::fd::{AsRawFd, OwnedFd},
    ptr::NonNull,
};

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nv_abi::Errno;

use super::Backing;

impl Backing {
    /// Maps bytes of the object into this process for the client: shared, at `address` if that is free, else at an
    /// address of the system's choice. Aliased client memory has no file to map and is `EINVAL`.
    pub fn map_for_client(
        &self,
        address: Option<u64>,
        offset: u64,
        length: u64,
        writable: bool,
    ) -> Result<u64, Errno> {
        let to_usize = |value: u64| usize::try_from(value).map_err(|_| Errno::EINVAL);
        let length = NonZeroUsize::new(to_usize(length)?).ok_or(Errno::EINVAL)?;
        let offset = i64::try_from(offset).map_err(|_| Errno::EINVAL)?;
        let fixed = address.is_some();
        let address = match address {
            Some(address) => Some(NonZeroUsize::new(to_usize(address)?).ok_or(Errno::EINVAL)?),
            None => None,
        };
        let mut flags = MapFlags::MAP_SHARED | MapFlags::MAP_NORESERVE;
        flags.set(MapFlags::MAP_FIXED_NOREPLACE, fixed);
        let mut protection = ProtFlags::PROT_READ;
        protection.set(ProtFlags::PROT_WRITE, writable);
        let file = self.fd().ok_or(Errno::EINVAL)?;
        // SAFETY: MAP_FIXED_NOREPLACE and an address of the system's choice both replace no mapping.
        let mapped = unsafe { mmap(address, length, protection, flags, file, offset) }
            .map_err(|errno| Errno(errno as i32))?;
        Ok(mapped.as_ptr() as u64)
    }

    /// A descriptor of the object's file for the client to map, which allows writing only if `writable`. Aliased client
    /// memory has no file and is `EINVAL`.
    pub fn client_file(&self, writable: bool) -> Result<OwnedFd, Errno> {
        let file = self.fd().ok_or(Errno::EINVAL)?;
        let failed = |error: std::io::Error| Errno(error.raw_os_error().unwrap_or(libc::EIO));
        if writable {
            return file.try_clone_to_owned().map_err(failed);
        }
        // Only a file that was opened anew has access of its own.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        File::open(path).map(OwnedFd::from).map_err(failed)
    }
}

/// Takes away a mapping that [`Backing::map_for_client`] made.
pub fn unmap_for_client(address: u64, length: u64) -> Result<(), Errno> {
    let pointer = NonNull::new(address as *mut std::ffi::c_void).ok_or(Errno::EINVAL)?;
    let length = usize::try_from(length).map_err(|_| Errno::EINVAL)?;
    // SAFETY: the machine checked that it made exactly this mapping for its client, who asks to have it taken away and
    // answers for its own pointers into it, as with munmap(2).
    unsafe { munmap(pointer, length) }.map_err(|errno| Errno(errno as i32))
}
