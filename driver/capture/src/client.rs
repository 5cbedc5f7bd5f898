//! The memory of this process, read as a debugger reads it: an address that is not mapped is an error, never a crash.
//!
//! Through `/proc/self/mem`, because that also reaches the mappings of device nodes, whose memory the cross-process
//! copies of the kernel refuse.

use std::{
    fmt,
    fs::{File, OpenOptions},
    io,
    os::unix::fs::FileExt,
    sync::OnceLock,
};

/// Reads bytes at an address, as many as the slice has; false where it knows nothing of the address.
pub type Near = Box<dyn Fn(u64, &mut [u8]) -> bool + Send + Sync>;

/// Reads memory by address.
pub struct ClientMemory {
    file: File,
    /// Whoever can read some addresses faster than the system does.
    near: OnceLock<Near>,
}

impl fmt::Debug for ClientMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientMemory").field("file", &self.file).finish_non_exhaustive()
    }
}

impl ClientMemory {
    /// Opens the process's own memory.
    pub fn open() -> io::Result<Self> {
        File::open("/proc/self/mem").map(Self::of)
    }

    fn of(file: File) -> Self {
        Self { file, near: OnceLock::new() }
    }

    /// From now on asks `near` first, before the system. Only the first one that is given is asked.
    pub fn ask(&self, near: Near) {
        // Another one knows the same memory.
        let _ = self.near.set(near);
    }

    /// Opens it for writing as well.
    pub fn open_writable() -> io::Result<Self> {
        OpenOptions::new().read(true).write(true).open("/proc/self/mem").map(Self::of)
    }

    /// Writes bytes; `None` if any of them is not mapped, or the memory was not opened for writing.
    ///
    /// Meant for memory that a device shares with this process. Writing to memory that Rust owns is as wrong as it is
    /// by any other way.
    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> Option<()> {
        self.file.write_all_at(bytes, address).ok()
    }

    /// Reads exactly so many bytes; `None` if any of them is not mapped.
    pub fn read(&self, address: u64, bytes: usize) -> Option<Vec<u8>> {
        let mut found = vec![0; bytes];
        self.fill(address, &mut found)?;
        Some(found)
    }

    /// Reads 32 bits.
    pub fn word(&self, address: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        self.fill(address, &mut bytes)?;
        Some(u32::from_le_bytes(bytes))
    }

    fn fill(&self, address: u64, to: &mut [u8]) -> Option<()> {
        if self.near.get().is_some_and(|near| near(address, to)) {
            return Some(());
        }
        self.file.read_exact_at(to, address).ok()
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
        memory.ask(Box::new(|address, to| {
            to.fill(3);
            address == 16
        }));
        assert_eq!((memory.word(16), memory.word(20)), (Some(0x0303_0303), None));
        assert_eq!(memory.word(address + 4), Some(9));
    }
}
