//! A launch, and what is made of it once for all workers.

use std::sync::Arc;

use super::fault::FaultKind;
use super::lanes::{LANES, Lanes};
use super::texture::Textures;
use nv_memory::AddressMap;

/// A constant bank of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConstantBuffer {
    /// Virtual address.
    pub address: u64,
    /// Size.
    pub bytes: u32,
}

/// What a QMD says about a grid, as far as execution needs it.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Virtual address of the first instruction.
    pub program_address: u64,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Blocks of a cluster, 1 along every axis where there are none.
    pub cluster: [u32; 3],
    /// Registers of a thread.
    pub registers: u32,
    /// Shared memory of a block in bytes.
    pub shared_bytes: u32,
    /// Local memory of a thread in bytes.
    pub local_bytes: u32,
    /// Barriers of a block: BAR may name those below.
    pub barriers: u32,
    /// Constant banks 0 to 7.
    pub constant_buffers: [Option<ConstantBuffer>; 8],
    /// First address of the generic window on shared memory.
    pub shared_window: u64,
    /// First address of the generic window on local memory.
    pub local_window: u64,
    /// Architecture number, as 89 for sm_89.
    pub sm: u32,
    /// Where textures are described.
    pub textures: Textures,
    /// Grid number for reports.
    pub grid_id: u64,
}

/// What a launch did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Instructions, counted once per warp.
    pub instructions: u64,
    /// Instructions, counted once per active lane.
    pub lane_instructions: u64,
    /// Blocks finished.
    pub ctas: u64,
}

/// Most bytes of a constant bank.
const BANK_BYTES: u32 = 64 << 10;
/// Registers of an SM, which a block cannot exceed.
const REGISTERS: u64 = 64 << 10;
/// Most bytes of shared memory of a block, reserved ones included.
const SHARED_BYTES: u32 = 228 << 10;
/// Most blocks of a cluster that were tried on a card.
const CLUSTER_BLOCKS: u64 = 32;
/// Most bytes of local memory of a thread.
const LOCAL_BYTES: u32 = 512 << 10;

/// Numbers that decide how much memory a block needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub warps: u32,
    pub registers: u32,
    pub shared_bytes: u32,
    pub local_bytes: u32,
}

/// A launch that passed its checks, with its constants read.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub launch: Launch,
    pub map: Arc<AddressMap>,
    /// Bytes of each bank, as far as they are mapped.
    pub banks: Vec<Vec<u8>>,
    pub blocks: u64,
    /// Blocks of a cluster.
    pub cluster: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Thread indices x, y, z of each warp of a block.
    pub thread_index: Vec<[Lanes; 3]>,
    /// A block is whole warps, of threads that differ only in x.
    pub line: bool,
}

impl Prepared {
    /// Checks a launch and reads its constants.
    pub fn new(launch: &Launch, map: &Arc<AddressMap>) -> Result<Self, FaultKind> {
        let refuse = |reason| Err(FaultKind::Launch(reason));
        let product = |v: [u32; 3]| v.iter().try_fold(1u64, |n, d| n.checked_mul(u64::from(*d)));
        let Some(threads) = product(launch.block).filter(|n| (1..=1024).contains(n)) else {
            return refuse("a block has 1 to 1024 threads");
        };
        let Some(blocks) = product(launch.grid) else {
            return refuse("the grid is too large");
        };
        let Some(cluster) = product(launch.cluster).filter(|n| (1..=CLUSTER_BLOCKS).contains(n)) else {
            return refuse("a cluster has 1 to 32 blocks");
        };
        if launch.grid.iter().zip(launch.cluster).any(|(grid, cluster)| !grid.is_multiple_of(cluster)) {
            return refuse("the grid is not made of whole clusters");
        }
        if launch.registers == 0 || launch.registers > 255 {
            return refuse("a thread has 1 to 255 registers");
        }
        if u64::from(launch.registers) * threads.next_multiple_of(32) > REGISTERS {
            return refuse("the registers of a block are more than an SM has");
        }
        if launch.shared_bytes > SHARED_BYTES {
            return refuse("too much shared memory");
        }
        if launch.local_bytes > LOCAL_BYTES {
            return refuse("too much local memory");
        }
        let mut banks = Vec::with_capacity(8);
        for buffer in &launch.constant_buffers {
            let mut bytes = Vec::new();
            if let Some(buffer) = buffer {
                if buffer.bytes > BANK_BYTES {
                    return refuse("a constant bank has at most 64 KiB");
                }
                bytes.resize(buffer.bytes as usize, 0);
                if map.read(buffer.address, &mut bytes).is_err() {
                    // Clients declare more than they map: what is not mapped faults when an instruction reads it.
                    let mut mapped = 0;
                    for chunk in bytes.chunks_mut(256) {
                        if map.read(buffer.address + mapped, chunk).is_err() {
                            break;
                        }
                        mapped += chunk.len() as u64;
                    }
                    bytes.truncate(mapped as usize);
                }
            }
            banks.push(bytes);
        }
        let threads = threads as u32;
        let [x, y, _] = launch.block;
        let thread_index = (0..threads.div_ceil(32))
            .map(|warp| {
                let mut index = [Lanes::splat(0); 3];
                let t = 32 * warp;
                let mut at = [t % x, t / x % y, t / x / y];
                for lane in 0..LANES {
                    for (row, value) in index.iter_mut().zip(at) {
                        row.0[lane] = value;
                    }
                    at[0] += 1;
                    if at[0] == x {
                        at = [0, at[1] + 1, at[2]];
                    }
                    if at[1] == y {
                        at = [at[0], 0, at[2] + 1];
                    }
                }
                index
            })
            .collect();
        let line = x == threads && threads.is_multiple_of(32);
        let (launch, map, cluster) = (launch.clone(), Arc::clone(map), cluster as u32);
        Ok(Self { launch, map, banks, blocks, cluster, threads, thread_index, line })
    }

    /// What a block needs.
    pub fn shape(&self) -> Shape {
        Shape {
            warps: self.threads.div_ceil(32),
            registers: self.launch.registers,
            shared_bytes: self.launch.shared_bytes,
            local_bytes: self.launch.local_bytes,
        }
    }

    /// A block's index. Blocks are numbered cluster by cluster.
    pub fn block_index(&self, number: u64) -> [u32; 3] {
        // Divisions of 64 bits are slow.
        if let (1, [_, 1, 1], Ok(x)) = (self.cluster, self.launch.grid, u32::try_from(number)) {
            return [x, 0, 0];
        }
        let place = |number: u64, [x, y, _]: [u32; 3]| {
            let (x, y) = (u64::from(x), u64::from(y));
            [number % x, number / x % y, number / x / y].map(|at| at as u32)
        };
        let Launch { grid, cluster, .. } = self.launch;
        let clusters = [0, 1, 2].map(|axis| grid[axis] / cluster[axis]);
        let first = place(number / u64::from(self.cluster), clusters);
        let rank = place(number % u64::from(self.cluster), cluster);
        [0, 1, 2].map(|axis| first[axis] * cluster[axis] + rank[axis])
    }

    /// A word of a constant bank.
    pub fn constant(&self, bank: u8, offset: u32) -> Result<u32, FaultKind> {
        let at = offset as usize;
        self.banks
            .get(usize::from(bank))
            .and_then(|bytes| bytes.get(at..at + 4))
            .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .ok_or(FaultKind::Constant { bank, offset })
    }
}
