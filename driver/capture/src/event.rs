//! What crosses the boundary, one event at a time.

use nv_abi::{
    Branch, Errno, Fd, Node,
    dump::{DecodedCall, Handles, KernelCall, kernel_call},
};

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A node was opened.
    Open {
        /// The node.
        node: Node,
        /// Its descriptor, or why there is none.
        result: Result<Fd, Errno>,
    },
    /// A descriptor was closed.
    Close {
        /// The descriptor.
        fd: Fd,
        /// Whether it was one.
        result: Result<(), Errno>,
    },
    /// A call on a descriptor.
    Ioctl(Box<IoctlEvent>),
    /// A mapping was made.
    Map {
        /// The descriptor.
        fd: Fd,
        /// Bytes.
        length: u64,
        /// File offset.
        offset: u64,
        /// The address, or why there is none.
        result: Result<u64, Errno>,
    },
    /// A mapping went.
    Unmap {
        /// Its address.
        address: u64,
        /// Bytes.
        length: u64,
        /// Whether it was one.
        result: Result<(), Errno>,
    },
    /// A store to a doorbell page.
    Doorbell {
        /// Byte offset in the page.
        offset: u32,
        /// The value: the channel's token.
        value: u32,
    },
    /// A ring entry that was handed to the GPU.
    Submission(Submission),
    /// Bytes of GPU memory, as they were when a submission needed them.
    Memory(Memory),
    /// Something at an address has a name.
    Symbol(Symbol),
    /// A channel died, in words.
    Fault(String),
    /// What whoever recorded has to say about the capture: that it may have seen something late, say.
    Note(String),
    /// A grid ran, where that can be seen: on a simulated GPU.
    Grid(Grid),
}

/// A grid that ran, in nanoseconds since the capture began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// GPU address of the program.
    pub program: u64,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// When it began.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// Its blocks as they ended, at most [`Grid::MOST`] of them.
    pub blocks: Vec<Block>,
}

impl Grid {
    /// Blocks of a grid that a capture keeps; what the others did is not noted.
    pub const MOST: usize = 4096;
}

/// A block that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its index in the grid.
    pub index: [u32; 3],
    /// Which of the simulator's workers, each of which does the work of SMs, executed it.
    pub worker: u32,
    /// When it began.
    pub start: u64,
    /// When it ended.
    pub end: u64,
}

/// A call on a descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoctlEvent {
    /// The descriptor.
    pub fd: Fd,
    /// What it is a descriptor of.
    pub node: Node,
    /// The request word.
    pub request: u32,
    /// The argument before the call.
    pub before: Vec<u8>,
    /// The argument after it.
    pub after: Vec<u8>,
    /// What the argument points to, before; empty where it points to nothing.
    pub nested_before: Vec<u8>,
    /// The same after.
    pub nested_after: Vec<u8>,
    /// What the call returned.
    pub result: Result<(), Errno>,
}

impl IoctlEvent {
    /// The call in terms of its structs; see [`kernel_call`].
    pub fn decode(&self, branch: Branch, handles: &mut Handles) -> DecodedCall {
        let call = KernelCall {
            node: self.node,
            request: self.request,
            before: &self.before,
            after: &self.after,
            nested_before: &self.nested_before,
            nested_after: &self.nested_after,
        };
        kernel_call(&call, branch, handles)
    }
}

/// A ring entry with what it points to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// The channel's object handle.
    pub channel: u32,
    /// The channel's class.
    pub class: u32,
    /// Which entry of the ring.
    pub slot: u32,
    /// The entry's 64 bits.
    pub entry: u64,
    /// The pushbuffer; `None` where the entry is a segment and its memory could not be read.
    pub words: Option<Vec<u32>>,
    /// Nanoseconds since the capture began, where that was noted.
    pub time: Option<u64>,
}

/// What bytes of GPU memory are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MemoryKind {
    /// A launch descriptor.
    Qmd,
    /// Constant bank 0 of a launch.
    ConstantBank,
    /// Anything else.
    Other,
}

impl MemoryKind {
    /// The word for it in a capture.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Qmd => "qmd",
            Self::ConstantBank => "bank0",
            Self::Other => "data",
        }
    }
}

/// Bytes of GPU memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// What they are.
    pub kind: MemoryKind,
    /// GPU virtual address.
    pub address: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// A named range of GPU addresses: an allocation, a kernel's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The first address.
    pub address: u64,
    /// Bytes.
    pub bytes: u64,
    /// The name.
    pub name: String,
}
