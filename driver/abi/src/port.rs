//! The boundary: what a process can ask of NVIDIA's device nodes.
//!
//! The real backend (`nv-driver`'s `os` module) and the simulator's `Machine` both implement these traits, so the
//! driver above them is one code base. They are the lowest software boundary there is: file descriptors, ioctl
//! numbers with argument bytes, mappings, and stores to the doorbell page.

use std::{fmt, str::FromStr};

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

/// A path that is none of the device nodes'.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("none of the device nodes")]
pub struct NodeError;

impl FromStr for Node {
    type Err = NodeError;

    /// Reads a node's path, as [`Node`] is displayed.
    fn from_str(path: &str) -> Result<Self, NodeError> {
        match path.strip_prefix("/dev/nvidia").ok_or(NodeError)? {
            "ctl" => Ok(Self::Ctl),
            "-uvm" => Ok(Self::Uvm),
            minor => minor.parse().map(Self::Gpu).map_err(|_| NodeError),
        }
    }
}

/// A file descriptor of one [`Ioctl`] implementation. Numbers of different implementations have no relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fd(pub i32);

/// A failed system call: Linux's error number.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(pub i32);

macro_rules! errnos {
    ($($(#[$meta:meta])* $name:ident = $number:literal;)*) => {
        impl Errno {
            $($(#[$meta])* pub const $name: Self = Self($number);)*

            /// The symbol, where this crate names it.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

errnos! {
    /// Operation not permitted.
    EPERM = 1;
    /// No such file or directory: the node does not exist.
    ENOENT = 2;
    /// No such device or address.
    ENXIO = 6;
    /// Bad file descriptor.
    EBADF = 9;
    /// Out of memory.
    ENOMEM = 12;
    /// Permission denied.
    EACCES = 13;
    /// Bad address.
    EFAULT = 14;
    /// Device or resource busy.
    EBUSY = 16;
    /// File exists: a mapping at a fixed address would replace another.
    EEXIST = 17;
    /// No such device.
    ENODEV = 19;
    /// Invalid argument.
    EINVAL = 22;
    /// Too many open files.
    EMFILE = 24;
    /// Result out of range.
    ERANGE = 34;
    /// Function not implemented.
    ENOSYS = 38;
    /// File descriptor in bad state.
    EBADFD = 77;
    /// Operation not supported.
    EOPNOTSUPP = 95;
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
