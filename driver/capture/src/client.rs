//! The memory of this process, read as a debugger reads it: an address that is not mapped is an error, never a crash.
//!
//! Through `/proc/self/mem`, because that also reaches the mappings of device nodes, whose memory the cross-process
//! copies of the kernel refuse.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::FileExt,
};

/// Reads memory by address.
#[derive(Debug)]
pub struct ClientMemory(File);

impl ClientMemory {
    /// Opens the process's own memory.
    pub fn open() -> io::Result<Self> {
        File::open("/proc/self/mem").map(Self)
    }

    /// Opens it for writing as well.
    pub fn open_writable() -> io::Result<Self> {
        OpenOptions::new().read(true).write(true).open("/proc/self/mem").map(Self)
    }

    /// Writes bytes; `None` if any of them is not mapped, or the memory was not opened for writing.
    ///
    /// Meant for memory that a device shares with this process. Writing to memory that Rust owns is as wrong as it is
    /// by any other way.
    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> Option<()> {
        self.0.write_all_at(bytes, address).ok()
    }

    /// Reads exactly so many bytes; `None` if any of them is not mapped.
    pub fn read(&self, address: u64, bytes: usize) -> Option<Vec<u8>> {
        let mut found = vec![0; bytes];
        self.0.read_exact_at(&mut found, address).ok()?;
        Some(found)
    }

    /// Reads 32 bits.
    pub fn word(&self, address: u64) -> Option<u32> {
        let bytes = self.read(address, 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_where_it_is_mapped_and_refused_elsewhere() {
        let memory = ClientMemory::open().unwrap();
        let data = vec![7u32, 9];
        let address = data.as_ptr() as u64;
        assert_eq!(memory.word(address + 4), Some(9));
        assert_eq!(memory.read(16, 4), None);
        assert_eq!(memory.read(u64::MAX - 2, 8), None);
        assert_eq!(data, [7, 9]);
    }
}
