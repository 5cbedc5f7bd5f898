//! What ends a channel, and the report of it for people.
//!
//! A driver meets a fault as the kernel module shows it: the error notifier, an event, a dead channel. [`FaultReport`]
//! says the same in words, with where it happened.

use std::fmt;

pub use crate::rm::{SmState, registers};

use crate::{
    engine::ShaderFault,
    host::ChannelId,
    memory::{AddressMap, MmuFault},
    source::Source,
};

/// A bit of the PBDMA's interrupt register, as printed with Xid 32 (dev_pbdma).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PbdmaInterrupt {
    /// The put pointer of the ring is outside the ring.
    GpPtr = 14,
    /// A ring entry is not one.
    GpEntry = 15,
    /// A pushbuffer header is not one.
    PbEntry = 18,
    /// A method that the host does not have, or that has no such value.
    Method = 21,
    /// A semaphore operation that is misaligned or has no meaning.
    Semaphore = 25,
    /// An acquire that did not pass in time, on a channel that limits it.
    Acquire = 26,
}

impl PbdmaInterrupt {
    /// The register's value with this bit alone.
    pub const fn mask(self) -> u32 {
        1 << self as u8
    }
}

/// Why the compute scheduler refused a QMD.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum LaunchError {
    #[error("a block dimension is 0: {0:?}")]
    ThreadDimensionZero([u32; 3]),
    #[error("a grid dimension is 0 or above the limit: {0:?}")]
    GridDimension([u32; 3]),
    #[error("a grid of {grid:?} clusters of {cluster:?} blocks")]
    ClusterDimension { cluster: [u32; 3], grid: [u32; 3] },
    #[error("{threads} threads in a block of {block:?}, the limit is {limit}")]
    TotalThreads { block: [u32; 3], threads: u64, limit: u64 },
    #[error("{registers} registers for each of {threads} threads, an SM has {limit}")]
    TotalRegisterCount { registers: u32, threads: u64, limit: u64 },
    #[error("{registers} registers per thread, the limit is {limit}")]
    RegisterCount { registers: u32, limit: u32 },
    #[error("{bytes:#x} bytes of shared memory, the limit is {limit:#x}")]
    SharedMemorySize { bytes: u32, limit: u32 },
    #[error(
        "{bytes:#x} bytes of local memory per thread need {need:#x} bytes, SET_SHADER_LOCAL_MEMORY_NON_THROTTLED gave {have:#x}"
    )]
    TotalTempSize { bytes: u64, need: u64, have: u64 },
    #[error("{count} barriers, the limit is {limit}")]
    BarrierCount { count: u32, limit: u32 },
    #[error("the program address {0:#x} is not a multiple of 128 bytes")]
    ProgramOffset(u64),
    #[error("the shared window {shared:#x} overlaps the local window {local:#x}")]
    MemoryWindowOverlap { shared: u64, local: u64 },
    #[error("{0}")]
    Undecodable(String),
}

/// Why a channel died.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Fault {
    /// An access that the MMU refused. Xid 31.
    #[error("{client}: MMU fault: {fault}{near}")]
    Mmu {
        /// Who tried.
        client: &'static str,
        /// What was refused.
        fault: MmuFault,
        /// The nearest mapping in words, with a leading separator, or nothing.
        near: String,
    },
    /// The host refused a ring entry, a header, a host method or a semaphore. Xid 32.
    #[error("PBDMA interrupt {:#010x} ({interrupt:?}): {reason}", interrupt.mask())]
    Pbdma {
        /// The bit that is set.
        interrupt: PbdmaInterrupt,
        /// What is wrong.
        reason: String,
    },
    /// SET_OBJECT named a class that no object of the channel has. Xid 13.
    #[error("SET_OBJECT: class {class:#06x} on subchannel {subchannel} is not one of the channel's objects")]
    ClassMismatch {
        /// Subchannel 0 to 7.
        subchannel: u32,
        /// The class asked for.
        class: u32,
    },
    /// A method for a subchannel without an object. Xid 13.
    #[error("method {address:#06x} on subchannel {subchannel}, which has no object")]
    NoObject {
        /// Subchannel 0 to 7.
        subchannel: u32,
        /// The method's byte address.
        address: u32,
    },
    /// The class has no such method. Xid 11.
    #[error("class {class:#06x} has no method {address:#06x} (data {data:#010x})")]
    UnknownMethod {
        /// The class of the subchannel.
        class: u32,
        /// The method's byte address.
        address: u32,
        /// The data word.
        data: u32,
    },
    /// The method takes no such value. Xid 69.
    #[error("class {class:#06x} {method} = {data:#010x}: {reason}")]
    BadValue {
        /// The class of the subchannel.
        class: u32,
        /// The method's name.
        method: &'static str,
        /// The data word.
        data: u32,
        /// What is wrong.
        reason: String,
    },
    /// The hardware does this, the simulator does not yet. Reported as a class error, Xid 69.
    #[error("class {class:#06x} {method}: not simulated: {what}")]
    NotSimulated {
        /// The class of the subchannel; the channel's own for host methods.
        class: u32,
        /// The method's name.
        method: &'static str,
        /// What was asked for.
        what: String,
    },
    /// The copy engine refused a transfer. Xid 39.
    #[error("copy engine: {0}")]
    Copy(String),
    /// The compute scheduler refused a QMD. Xid 13.
    #[error("QMD at {address:#x}: {error}")]
    Launch {
        /// Where the QMD lies.
        address: u64,
        /// What is wrong.
        error: LaunchError,
    },
    /// A warp faulted. Xid 31 for an MMU fault, else 13.
    #[error("kernel of the QMD at {qmd_address:#x}: {fault}")]
    Shader {
        /// Where the QMD lies.
        qmd_address: u64,
        /// Where the kernel's first instruction lies.
        program_address: u64,
        /// What the warp did.
        fault: Box<ShaderFault>,
    },
    /// Measured on H200: the QMD is accepted and never completes; nothing is reported to the driver.
    #[error("QMD at {address:#x} never completes: {reason}")]
    Hang {
        /// Where the QMD lies.
        address: u64,
        /// Why.
        reason: String,
    },
}

impl Fault {
    /// An MMU fault of `client`, with the nearest mapping of `map` named.
    pub(crate) fn mmu(client: &'static str, fault: MmuFault, map: &AddressMap) -> Self {
        Self::Mmu { client, fault, near: near(map, fault.va) }
    }

    /// The Xid number that the error notifier carries (nverror.h; 11 is older than it). `None` for a hang, which the
    /// driver is not told of.
    pub fn xid(&self) -> Option<u32> {
        Some(match self {
            Self::Mmu { .. } => 31,
            Self::Pbdma { .. } => 32,
            Self::ClassMismatch { .. } | Self::NoObject { .. } | Self::Launch { .. } => 13,
            Self::UnknownMethod { .. } => 11,
            Self::BadValue { .. } | Self::NotSimulated { .. } => 69,
            Self::Copy(_) => 39,
            Self::Shader { .. } => match self.mmu_fault() {
                Some(_) => 31,
                None => 13,
            },
            Self::Hang { .. } => return None,
        })
    }

    /// The exception of a warp, if that was it.
    pub fn exception(&self) -> Option<&crate::sm::Fault> {
        match self {
            Self::Shader { fault, .. } => fault.exception.as_deref(),
            _ => None,
        }
    }

    /// What the MMU refused, if that was it.
    pub fn mmu_fault(&self) -> Option<MmuFault> {
        match self {
            Self::Mmu { fault, .. } => Some(*fault),
            Self::Shader { fault, .. } => fault.mmu,
            _ => None,
        }
    }
}

/// The mapping nearest to an address, in words with a leading separator, and how far off it is.
pub(crate) fn near(map: &AddressMap, va: u64) -> String {
    let Some((start, bytes, name)) = map.nearest(va) else { return String::new() };
    let end = start + bytes;
    let off = if va < start {
        format!("{:#x} bytes before", start - va)
    } else if va >= end {
        format!("{:#x} bytes past the end of", va - end)
    } else {
        format!("{:#x} bytes into", va - start)
    };
    format!("; {off} {name} at {start:#x}, {bytes:#x} bytes")
}

/// Where the host was in its work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// Index of the ring entry.
    pub entry: u32,
    /// GPU virtual address of the pushbuffer word; 0 where the ring itself is at fault.
    pub word_address: u64,
    /// The word.
    pub word: u32,
}

/// One fault, for people.
#[derive(Clone, Debug)]
pub struct FaultReport {
    /// The channel that faulted.
    pub channel: ChannelId,
    /// Its doorbell token.
    pub token: u32,
    /// Its channel group; all channels of it died.
    pub group: u32,
    /// NV2080 engine type of the group.
    pub engine: u32,
    /// Nanoseconds since the Unix epoch.
    pub time: u64,
    /// What happened.
    pub fault: Fault,
    /// Where.
    pub location: Location,
    /// The methods that the channel executed last, oldest first: the one at fault is not among them.
    pub before: Vec<String>,
    /// The kernel and its source, where [`crate::machine::Machine::add_cubin`] was told of the cubin.
    pub source: Option<Source>,
}

impl fmt::Display for FaultReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fault.xid() {
            Some(xid) => write!(f, "Xid {xid}: ")?,
            None => write!(f, "no Xid: ")?,
        }
        write!(f, "channel {} (token {:#x}): {}", self.channel.0, self.token, self.fault)?;
        if let Some(source) = &self.source {
            write!(f, "; {source}")?;
        }
        let at = &self.location;
        write!(f, " [ring entry {}", at.entry)?;
        if at.word_address != 0 {
            write!(f, ", pushbuffer word {:#010x} at {:#x}", at.word, at.word_address)?;
        }
        if !self.before.is_empty() {
            write!(f, ", after {}", self.before.join(", "))?;
        }
        write!(f, "]")
    }
}
