//! The caller's memory behind the pointers that nested parameters hold.
//!
//! The kernel module copies from and to user space and answers `EFAULT` for what is not mapped. The simulator does the
//! same through the host kernel's cross-process copy on its own process, which checks the addresses: a bad pointer is
//! an error and never a crash.
#![forbid(unsafe_code)]

use std::io::{IoSlice, IoSliceMut};

use nix::{
    sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev},
    unistd::Pid,
};
use nv_abi::Errno;

fn remote(address: u64, length: usize) -> Result<RemoteIoVec, Errno> {
    let base = usize::try_from(address).map_err(|_| Errno::EFAULT)?;
    Ok(RemoteIoVec { base, len: length })
}

/// Reads the caller's bytes at `address`; `EFAULT` unless all are readable.
pub(crate) fn read(address: u64, to: &mut [u8]) -> Result<(), Errno> {
    if to.is_empty() {
        return Ok(());
    }
    let length = to.len();
    let from = [remote(address, length)?];
    match process_vm_readv(Pid::this(), &mut [IoSliceMut::new(to)], &from) {
        Ok(done) if done == length => Ok(()),
        _ => Err(Errno::EFAULT),
    }
}

/// Writes the caller's bytes at `address`; `EFAULT` unless all are writable.
pub(crate) fn write(address: u64, from: &[u8]) -> Result<(), Errno> {
    if from.is_empty() {
        return Ok(());
    }
    let to = [remote(address, from.len())?];
    match process_vm_writev(Pid::this(), &[IoSlice::new(from)], &to) {
        Ok(done) if done == from.len() => Ok(()),
        _ => Err(Errno::EFAULT),
    }
}
