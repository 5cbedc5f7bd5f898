//! The boundary: what a process can ask of NVIDIA's device nodes.
//!
//! The real backend (`nv-driver`'s `os` module) and the simulator's `Machine` both implement these traits, so the
//! driver above them is one code base. They are the lowest software boundary there is: file descriptors, ioctl
//! numbers with argument bytes, mappings, and stores to the doorbell page.

use std::fmt;

/// A device node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// `/dev/nvidiactl`: the resource manager.
    Ctl,
    /// `/dev/nvidiaN`, by minor number: one GPU's memory and registers.
    Gpu(u32),
    /// `/dev/nvidia-uvm`: unified virtual memory, which maps memory into GPU address spaces.
    Uvm,
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ctl => write!(f, "/dev/nvidiactl"),
            Self::Gpu(minor) => write!(f, "/dev/nvidia{minor}"),
            Self::Uvm => write!(f, "/dev/nvidia-uvm"),
        }
    }
}

/// A file descriptor of one [`Ioctl`] implementation. Numbers of different implementations have no relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fd(pub i32);

/// A failed system call: Linux's error number.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(pub i32);

impl Errno {
    /// Operation not permitted.
    pub const EPERM: Self = Self(1);
    /// No such file or directory: the node does not exist.
    pub const ENOENT: Self = Self(2);
    /// No such device or address.
    pub const ENXIO: Self = Self(6);
    /// Bad file descriptor.
    pub const EBADF: Self = Self(9);
    /// Out of memory.
    pub const ENOMEM: Self = Self(12);
    /// Permission denied.
    pub const EACCES: Self = Self(13);
    /// Bad address.
    pub const EFAULT: Self = Self(14);
    /// Device or resource busy.
    pub const EBUSY: Self = Self(16);
    /// File exists: a mapping at a fixed address would replace another.
    pub const EEXIST: Self = Self(17);
    /// No such device.
    pub const ENODEV: Self = Self(19);
    /// Invalid argument.
    pub const EINVAL: Self = Self(22);
    /// Too many open files.
    pub const EMFILE: Self = Self(24);
    /// Result out of range.
    pub const ERANGE: Self = Self(34);
    /// Function not implemented.
    pub const ENOSYS: Self = Self(38);
    /// File descriptor in bad state.
    pub const EBADFD: Self = Self(77);
    /// Operation not supported.
    pub const EOPNOTSUPP: Self = Self(95);

    /// The symbol, where this crate names it.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::EPERM => "EPERM",
            Self::ENOENT => "ENOENT",
            Self::ENXIO => "ENXIO",
            Self::EBADF => "EBADF",
            Self::ENOMEM => "ENOMEM",
            Self::EACCES => "EACCES",
            Self::EFAULT => "EFAULT",
            Self::EBUSY => "EBUSY",
            Self::EEXIST => "EEXIST",
            Self::ENODEV => "ENODEV",
            Self::EINVAL => "EINVAL",
            Self::EMFILE => "EMFILE",
            Self::ERANGE => "ERANGE",
            Self::ENOSYS => "ENOSYS",
            Self::EBADFD => "EBADFD",
            Self::EOPNOTSUPP => "EOPNOTSUPP",
            _ => return None,
        })
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({})", self.0),
            None => write!(f, "errno {}", self.0),
        }
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Errno {}

/// What to map, as `mmap(2)` takes it: always shared, readable and writable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Where to map. `Some` maps exactly there and fails with `EEXIST` rather than replace another mapping
    /// (`MAP_FIXED_NOREPLACE`); `None` lets the kernel choose.
    pub address: Option<u64>,
    /// Bytes.
    pub length: u64,
    /// File offset; 0 for memory objects and register pages.
    pub offset: u64,
}

/// The kernel's side of the device nodes.
///
/// Argument bytes may hold pointers into the caller's memory (RM's nested parameters); an implementation reads and
/// writes what they point to, and answers `EFAULT` for what is not mapped.
pub trait Ioctl: Send + Sync + fmt::Debug {
    /// Opens a node, read-write and close-on-exec.
    fn open(&self, node: Node) -> Result<Fd, Errno>;

    /// Closes a descriptor. Objects that belong to it are freed as the kernel module frees them.
    fn close(&self, fd: Fd) -> Result<(), Errno>;

    /// Issues `request` (the whole command word) with its argument, which is updated in place.
    fn ioctl(&self, fd: Fd, request: u32, argument: &mut [u8]) -> Result<(), Errno>;

    /// Maps what an earlier call attached to the descriptor; the mapping outlives the descriptor. Returns its address.
    fn mmap(&self, fd: Fd, mapping: Mapping) -> Result<u64, Errno>;

    /// Unmaps a mapping that [`Ioctl::mmap`] of the same implementation made, by its exact address and length.
    fn munmap(&self, address: u64, length: u64) -> Result<(), Errno>;
}

/// Register access through a page that [`Ioctl::mmap`] mapped: the doorbell page (usermode object).
///
/// `page` is the address that `mmap` returned. An address that is not such a page, or an offset outside it, is
/// `EFAULT`; nothing is read or written then.
pub trait Mmio: Send + Sync + fmt::Debug {
    /// Stores 32 bits, after everything that the calling thread stored before.
    fn write32(&self, page: u64, offset: u32, value: u32) -> Result<(), Errno>;

    /// Loads 32 bits.
    fn read32(&self, page: u64, offset: u32) -> Result<u32, Errno>;
}
