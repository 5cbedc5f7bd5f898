//! The program's own memory, behind pointers that it passes to `ioctl`.
//!
//! The host kernel copies, and checks the addresses: a bad pointer is EFAULT and never a crash.

use std::ffi::c_void;

use nv_abi::Errno;

fn outcome(done: isize, bytes: usize) -> Result<(), Errno> {
    if usize::try_from(done) == Ok(bytes) { Ok(()) } else { Err(Errno::EFAULT) }
}

fn vector(address: u64, bytes: usize) -> libc::iovec {
    libc::iovec { iov_base: address as *mut c_void, iov_len: bytes }
}

/// Copies the program's bytes at `address`; EFAULT unless all are readable.
pub(crate) fn read(address: u64, to: &mut [u8]) -> Result<(), Errno> {
    let local = vector(to.as_mut_ptr() as u64, to.len());
    let remote = vector(address, to.len());
    // SAFETY: `local` is exactly `to`, which is borrowed mutably; the kernel checks `remote`.
    let done =
        unsafe { libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0) };
    outcome(done, to.len())
}

/// Copies bytes to the program's memory at `address`; EFAULT unless all are writable.
///
/// # Safety
/// The program must have passed the address to be written to, as the argument of a call.
pub(crate) unsafe fn write(address: u64, from: &[u8]) -> Result<(), Errno> {
    let local = vector(from.as_ptr() as u64, from.len());
    let remote = vector(address, from.len());
    // SAFETY: `local` is only read; the kernel checks `remote`, which is the program's to have written, by contract.
    let done =
        unsafe { libc::process_vm_writev(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0) };
    outcome(done, from.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_pointer_is_efault() {
        let mut bytes = [0; 4];
        assert_eq!(read(8, &mut bytes), Err(Errno::EFAULT));
        // SAFETY: nothing is mapped there.
        assert_eq!(unsafe { write(8, &bytes) }, Err(Errno::EFAULT));
        let source = [1, 2, 3, 4];
        assert_eq!(read(source.as_ptr() as u64, &mut bytes), Ok(()));
        assert_eq!(bytes, source);
        // SAFETY: `bytes` is ours and not borrowed elsewhere.
        assert_eq!(unsafe { write(bytes.as_mut_ptr() as u64, &[9; 4]) }, Ok(()));
        assert_eq!(bytes, [9; 4]);
    }
}
