//! Why a kernel was stopped.

use nv_memory::MmuFault;

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultKind {
    /// The word is no instruction that the table knows. The card calls it an illegal instruction.
    #[error("illegal instruction")]
    UnknownInstruction,
    /// The instruction is known, but no card takes it in this form.
    #[error("illegal instruction: {0}")]
    IllegalForm(&'static str),
    /// The instruction is known, and this interpreter does not execute it, or not with these modifiers. The card does.
    #[error("not simulated: {0}")]
    Unsupported(String),
    /// A register number at or above the launch's register count.
    #[error("register number outside the {registers} registers of the launch")]
    OutOfRangeRegister {
        /// Registers that the launch gives each thread.
        registers: u32,
    },
    /// BAR with a barrier number that the launch does not have, or a thread count that is not whole warps.
    #[error("barrier {index} with {threads} threads; the launch has {barriers} barriers")]
    IllegalBarrier {
        /// Barrier number.
        index: u32,
        /// Threads that the instruction names, 0 for all.
        threads: u32,
        /// Barriers of the launch.
        barriers: u32,
    },
    /// The MMU refused an access.
    #[error("{0}")]
    Mmu(MmuFault),
    /// The address is not a multiple of the access size.
    #[error("misaligned address {address:#x}")]
    Misaligned {
        /// The address.
        address: u64,
    },
    /// A shared-memory address past what the launch asked for.
    #[error("shared address {address:#x} out of range")]
    OutOfRangeShared {
        /// Offset in the shared window.
        address: u64,
    },
    /// A shared-memory address of a block that is not in the cluster, or has ended.
    #[error("shared address {address:#x} names no block of the cluster")]
    ClusterTarget {
        /// Offset in the shared window.
        address: u64,
    },
    /// A local-memory address outside the thread's local memory: among others a stack that grew too long.
    #[error("local address {address:#x} out of range")]
    OutOfRangeLocal {
        /// Offset in the local window.
        address: u64,
    },
    /// An atomic on local memory, of vectors or 16 bytes.
    #[error("address {address:#x} is in a space that the instruction does not take")]
    InvalidAddressSpace {
        /// The generic address.
        address: u64,
    },
    /// A constant bank that is not bound, or an offset past its end.
    #[error("constant c[{bank:#x}][{offset:#x}] is not bound")]
    Constant {
        /// Bank.
        bank: u8,
        /// Offset in bytes.
        offset: u32,
    },
    /// A constant past the end of a bank that registers describe.
    #[error("constant {offset:#x} of a bank of {bytes:#x} bytes at {address:#x}")]
    BindlessConstant {
        /// The bank's virtual address.
        address: u64,
        /// Its size.
        bytes: u64,
        /// Offset in bytes.
        offset: u32,
    },
    /// A texture's handle or descriptor is of no use.
    #[error("texture: {0}")]
    Texture(String),
    /// An access outside a surface by an instruction with `.TRAP`.
    #[error("surface coordinates {coordinates:?} out of range")]
    OutOfRangeSurface {
        /// x (in bytes or texels), and what else the instruction names.
        coordinates: [i32; 3],
    },
    /// BPT.TRAP was executed.
    #[error("trap")]
    Trap,
    /// The program counter left mapped code or is not a multiple of 16.
    #[error("invalid program counter")]
    InvalidPc,
    /// The launch itself cannot run.
    #[error("launch refused: {0}")]
    Launch(&'static str),
    /// The caller's stop flag was raised.
    #[error("stopped")]
    Stopped,
}

/// A stopped kernel: what happened and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at pc {program_counter:#x} ({text}), block {cta:?}, warp {warp}, lanes {lanes:#010x}")]
pub struct Fault {
    /// What happened.
    pub kind: FaultKind,
    /// Virtual address of the instruction.
    pub program_counter: u64,
    /// The instruction in words.
    pub text: String,
    /// Block index.
    pub cta: [u32; 3],
    /// Warp in the block.
    pub warp: u32,
    /// Lanes that executed the instruction.
    pub lanes: u32,
}
