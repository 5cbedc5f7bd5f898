//! What can go wrong, each with the thing it happened to.

use std::time::Duration;

use nv_abi::{Errno, FieldError, Node, record::RecordError, rm::Status};

use crate::{channel::Engine, program::CubinError};

/// Every failure of this crate.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A node could not be opened.
    #[error("cannot open {node}: {errno}")]
    Open {
        /// The node.
        node: Node,
        /// Why.
        errno: Errno,
    },
    /// A system call on a device node failed.
    #[error("{call}: {errno}")]
    System {
        /// The call.
        call: &'static str,
        /// Why.
        errno: Errno,
    },
    /// The resource manager refused a call.
    #[error("{call}: {status}")]
    Rm {
        /// The call, with its class or command.
        call: String,
        /// Its status.
        status: Status,
    },
    /// UVM refused a call.
    #[error("{call}: {status}")]
    Uvm {
        /// The call.
        call: &'static str,
        /// Its status.
        status: Status,
    },
    /// A value does not fit its field.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// A struct is too short.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A cubin was refused.
    #[error(transparent)]
    Cubin(#[from] CubinError),
    /// No such GPU.
    #[error("no GPU {index}: the system has {count}")]
    NoDevice {
        /// The index asked for.
        index: usize,
        /// GPUs present.
        count: usize,
    },
    /// The kernel module's version is older than branch 535 or not a version.
    #[error("driver version {version:?} is not supported")]
    Version {
        /// What the module says.
        version: String,
    },
    /// The GPU lists none of the classes this driver can use.
    #[error("the GPU has no {what} class that this driver knows")]
    NoClass {
        /// Which kind.
        what: &'static str,
    },
    /// The GPU address range is used up.
    #[error("no GPU address range of {bytes:#x} bytes is free")]
    AddressSpace {
        /// Bytes asked for.
        bytes: u64,
    },
    /// An access outside a buffer or a mapping.
    #[error("bytes {offset:#x}..{offset:#x}+{bytes:#x} lie outside the {size:#x} bytes of {what}")]
    Bounds {
        /// The memory.
        what: &'static str,
        /// First byte.
        offset: u64,
        /// Bytes.
        bytes: u64,
        /// Its size.
        size: u64,
    },
    /// All places for descriptors of textures and surfaces are taken.
    #[error("all {places} textures and surfaces that a device has room for are in use")]
    Descriptors {
        /// How many there are.
        places: u32,
    },
    /// The GPU has no descriptor for this texture.
    #[error("texture: {0}")]
    Texture(#[from] nv_abi::texture::DescriptorError),
    /// The memory has no CPU mapping.
    #[error("{0} is not visible to the CPU")]
    NotVisible(&'static str),
    /// The two GPUs cannot reach each other's memory.
    #[error("no peer access between the two GPUs: {reason}")]
    NoPeerAccess {
        /// What UVM_ENABLE_PEER_ACCESS said.
        reason: String,
    },
    /// The module has no such kernel.
    #[error("no kernel {name:?} in the module; it has {present:?}")]
    NoKernel {
        /// The name asked for.
        name: String,
        /// What it has.
        present: Vec<String>,
    },
    /// The cubin is for another SM.
    #[error("the cubin is for sm_{cubin}, the GPU is sm_{device}")]
    Architecture {
        /// SM number of the cubin.
        cubin: u32,
        /// SM number of the GPU.
        device: u32,
    },
    /// A wrong number of arguments.
    #[error("kernel {kernel} takes {expected} arguments, {given} were given")]
    ArgumentCount {
        /// The kernel.
        kernel: String,
        /// Parameters it has.
        expected: usize,
        /// Arguments given.
        given: usize,
    },
    /// An argument of the wrong size.
    #[error("kernel {kernel}: argument {index} is {expected} bytes, {given} were given")]
    ArgumentSize {
        /// The kernel.
        kernel: String,
        /// Which, from 0.
        index: usize,
        /// Bytes of the parameter.
        expected: usize,
        /// Bytes given.
        given: usize,
    },
    /// A launch that the hardware cannot run.
    #[error("kernel {kernel}: {reason}")]
    Launch {
        /// The kernel.
        kernel: String,
        /// Why.
        reason: LaunchError,
    },
    /// A channel has died.
    #[error(transparent)]
    ChannelFault(#[from] Box<ChannelFault>),
    /// A kernel's assertion does not hold. Its channel has died.
    #[error(transparent)]
    Assertion(Box<Assertion>),
    /// A kernel gave `free` what `malloc` did not give, or not any more. Its channel has died.
    #[error(transparent)]
    InvalidFree(Box<InvalidFree>),
    /// A kernel prints, asserts or allocates, and there is no device runtime for its GPU.
    #[error("there is no device runtime for sm_{device}")]
    NoRuntime {
        /// SM number of the GPU.
        device: u32,
    },
    /// A kernel has overwritten the buffer of prints: what it held is lost.
    #[error("the buffer of prints holds no record at position {position:#x}")]
    PrintBuffer {
        /// Bytes printed before.
        position: u64,
    },
    /// The sink of prints does not take them.
    #[error("printing: {error}")]
    PrintSink {
        /// What the sink says.
        error: String,
    },
    /// A semaphore did not reach its value in time.
    #[error("timed out after {after:?} waiting for {wanted}, the value is {value}")]
    Timeout {
        /// The deadline.
        after: Duration,
        /// What was waited for.
        wanted: u64,
        /// What is there.
        value: u64,
    },
    /// The GPU has not consumed enough of a ring in time for the next submission.
    #[error("{ring} overrun: {needed} more needed, the GPU has not consumed enough after {after:?}")]
    RingOverrun {
        /// Which ring.
        ring: &'static str,
        /// Entries or bytes.
        needed: u64,
        /// The deadline.
        after: Duration,
    },
    /// A queue cannot be encoded or patched so.
    #[error("{0}")]
    Queue(String),
}

/// Why a launch was refused before it reached the GPU.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// A dimension is zero or above its limit.
    #[error("{what} {value:?} is outside 1..={limit:?}")]
    Dimension {
        /// Grid or block.
        what: &'static str,
        /// What was asked.
        value: [u32; 3],
        /// The largest.
        limit: [u32; 3],
    },
    /// Too many threads in a block.
    #[error("{threads} threads in a block, at most {limit} fit ({registers} registers each)")]
    Threads {
        /// What was asked.
        threads: u64,
        /// What fits.
        limit: u32,
        /// Registers per thread.
        registers: u32,
    },
    /// The kernel was compiled for another block.
    #[error("compiled for blocks of {compiled:?}, asked for {block:?}")]
    CompiledBlock {
        /// From the cubin.
        compiled: [u32; 3],
        /// What was asked.
        block: [u32; 3],
    },
    /// The GPU has no clusters.
    #[error("GPUs of this generation have no clusters")]
    NoClusters,
    /// The grid is not made of whole clusters.
    #[error("a grid of {grid:?} is not made of clusters of {cluster:?}")]
    GridOfClusters {
        /// What was asked.
        grid: [u32; 3],
        /// Blocks of a cluster.
        cluster: [u32; 3],
    },
    /// The cluster has no blocks or too many.
    #[error("a cluster of {cluster:?} blocks; it has 1 to {limit}")]
    ClusterSize {
        /// What was asked.
        cluster: [u32; 3],
        /// The most blocks of one.
        limit: u32,
    },
    /// The kernel was compiled for another cluster.
    #[error("compiled for clusters of {compiled:?}, asked for {cluster:?}")]
    CompiledCluster {
        /// From the cubin.
        compiled: [u32; 3],
        /// What was asked.
        cluster: [u32; 3],
    },
    /// The blocks of a cooperative launch cannot all be resident.
    #[error("{blocks} blocks of a cooperative launch, at most {limit} are resident")]
    NotResident {
        /// What was asked.
        blocks: u64,
        /// What fits.
        limit: u64,
    },
    /// Too much shared memory.
    #[error("{bytes} bytes of shared memory, at most {limit} fit")]
    SharedMemory {
        /// What was asked.
        bytes: u64,
        /// What fits.
        limit: u32,
    },
}

/// The end of a channel, as its error notifier tells it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{engine} channel died: Xid {xid}{}", mmu.as_ref().map_or(String::new(), |mmu| format!(", {mmu}")))]
pub struct ChannelFault {
    /// Which of the device's channels.
    pub engine: Engine,
    /// The Xid number.
    pub xid: u32,
    /// The notifier's engine type.
    pub engine_type: u16,
    /// Nanoseconds since the epoch.
    pub timestamp: u64,
    /// Where it was an MMU fault: what GET_MMU_FAULT_INFO says.
    pub mmu: Option<MmuFaultInfo>,
}

impl ChannelFault {
    /// Of the faults of one group's channels, the one that killed it. A fault of one channel kills all of its group, and
    /// every notifier says the same (measured on H200): only the channel that ran into it has an address, and some
    /// numbers are those of one engine. Where neither tells, it is the first channel.
    pub(crate) fn of_group(faults: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut faults: Vec<Self> = faults.into_iter().collect();
        let copies = faults.first().is_some_and(|fault| is_copy_xid(fault.xid));
        let addressed = faults.iter().position(|fault| fault.mmu.is_some());
        let of_engine = faults.iter().position(|fault| (fault.engine == Engine::Copy) == copies);
        let at = addressed.or(of_engine).unwrap_or(0);
        (at < faults.len()).then(|| faults.swap_remove(at))
    }
}

/// Whether an Xid is one of a copy engine: CE0_ERROR to CE19_ERROR (`nverror.h`).
const fn is_copy_xid(xid: u32) -> bool {
    matches!(xid, 39..=41 | 70..=72 | 75..=77 | 85 | 126..=135)
}

/// The first assertion of a channel that did not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{file}:{line}: {function}: block {block:?}, thread {thread:?}: assertion `{message}` failed{}; {fault}",
    others(*threads)
)]
pub struct Assertion {
    /// The expression. This and the other texts are cut off after 255 bytes.
    pub message: String,
    /// The source file.
    pub file: String,
    /// The line in it.
    pub line: u32,
    /// The function's signature.
    pub function: String,
    /// The block's index.
    pub block: [u32; 3],
    /// The thread's index in its block.
    pub thread: [u32; 3],
    /// Threads that had failed when the channel died, this one included.
    pub threads: u32,
    /// How the channel died.
    pub fault: ChannelFault,
}

fn others(threads: u32) -> String {
    match threads {
        0 | 1 => String::new(),
        _ => format!(" (the first of {threads} threads)"),
    }
}

/// The first `free` of a channel that was none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("block {block:?}, thread {thread:?}: free of {address:#x}, which is no block of the heap; {fault}")]
pub struct InvalidFree {
    /// What was given to free.
    pub address: u64,
    /// The block's index.
    pub block: [u32; 3],
    /// The thread's index in its block.
    pub thread: [u32; 3],
    /// How the channel died.
    pub fault: ChannelFault,
}

/// NV906F_CTRL_GET_MMU_FAULT_INFO's answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("MMU fault {name} at {address:#x}")]
pub struct MmuFaultInfo {
    /// The GPU virtual address.
    pub address: u64,
    /// The fault type's number.
    pub fault_type: u32,
    /// The fault type's name.
    pub name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_channel_that_ran_into_the_fault_is_named_whoever_was_told_first() {
        let fault = |engine, xid, address: Option<u64>| ChannelFault {
            engine,
            xid,
            engine_type: 1,
            timestamp: 0,
            mmu: address.map(|address| MmuFaultInfo { address, fault_type: 0, name: "FAULT_PDE".into() }),
        };
        let (compute, copy) = (Engine::Compute, Engine::Copy);
        for (xid, of_compute, of_copy, named) in [
            (31, Some(0x1000), None, compute),
            (31, None, Some(0x1000), copy),
            (31, None, None, compute),
            (11, None, None, compute),
            (13, None, None, compute),
            (32, None, None, compute),
            (39, None, None, copy),
            (135, None, None, copy),
        ] {
            let both = [fault(compute, xid, of_compute), fault(copy, xid, of_copy)];
            let mut reversed = both.clone();
            reversed.reverse();
            for faults in [both.to_vec(), reversed.to_vec()] {
                let found = ChannelFault::of_group(faults).map(|fault| fault.engine);
                assert_eq!(found, Some(named), "Xid {xid}");
            }
        }
        // One that is told alone is all that is known.
        assert_eq!(ChannelFault::of_group([fault(copy, 11, None)]).map(|fault| fault.engine), Some(copy));
        assert_eq!(ChannelFault::of_group([]), None);
    }
}
