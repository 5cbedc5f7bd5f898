//! Blocks over worker threads.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::execute::{Block, Context, Outcome, Page, turn};
use super::fault::{Fault, FaultKind};
use crate::memory::AddressMap;

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
    /// Registers of a thread.
    pub registers: u32,
    /// Shared memory of a block in bytes.
    pub shared_bytes: u32,
    /// Local memory of a thread in bytes.
    pub local_bytes: u32,
    /// Barriers of a block.
    pub barriers: u32,
    /// Constant banks 0 to 7.
    pub constant_buffers: [Option<ConstantBuffer>; 8],
    /// First address of the generic window on shared memory.
    pub shared_window: u64,
    /// First address of the generic window on local memory.
    pub local_window: u64,
    /// Architecture number, as 89 for sm_89.
    pub sm: u32,
    /// Grid number for reports.
    pub grid_id: u64,
}

/// How to run.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Worker threads; 0 means as many as the machine has.
    pub threads: usize,
    /// Blocks resident at the same time, at least one per worker.
    pub resident: usize,
    /// Instructions of a warp before the next has its turn.
    pub slice: u32,
    /// Raised to end the launch early.
    pub stop: &'a AtomicBool,
}

impl<'a> Options<'a> {
    /// Sensible values.
    pub fn new(stop: &'a AtomicBool) -> Self {
        Self { threads: 0, resident: 256, slice: 1024, stop }
    }
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

/// Runs a grid to its end, or to its first fault.
///
/// # Errors
/// The first fault found; other blocks stop at their next turn.
pub fn run(launch: &Launch, map: &Arc<AddressMap>, options: &Options<'_>) -> Result<Statistics, Fault> {
    let refuse = |kind| Fault {
        kind,
        program_counter: launch.program_address,
        text: String::from("launch"),
        cta: [0; 3],
        warp: 0,
        lanes: 0,
    };
    let product = |v: [u32; 3]| v.iter().try_fold(1u64, |n, d| n.checked_mul(u64::from(*d)));
    let threads = product(launch.block).filter(|n| (1..=1024).contains(n));
    if threads.is_none() {
        return Err(refuse(FaultKind::Launch("a block has 1 to 1024 threads")));
    }
    let Some(blocks) = product(launch.grid) else {
        return Err(refuse(FaultKind::Launch("the grid is too large")));
    };
    if launch.registers == 0 || launch.registers > 255 {
        return Err(refuse(FaultKind::Launch("a thread has 1 to 255 registers")));
    }
    if launch.shared_bytes > 256 << 10 {
        return Err(refuse(FaultKind::Launch("too much shared memory")));
    }
    if launch.local_bytes > 512 << 10 {
        return Err(refuse(FaultKind::Launch("too much local memory")));
    }
    let mut banks = Vec::new();
    for buffer in &launch.constant_buffers {
        let mut bytes = Vec::new();
        if let Some(buffer) = buffer {
            if buffer.bytes > 64 << 10 {
                return Err(refuse(FaultKind::Launch("a constant bank has at most 64 KiB")));
            }
            bytes.resize(buffer.bytes as usize, 0);
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
        banks.push(bytes);
    }
    let wanted = match options.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n,
    };
    let workers = wanted.min(usize::try_from(blocks).unwrap_or(usize::MAX)).max(1);
    let share = (options.resident / workers).max(1);
    let next = AtomicU64::new(0);
    let failed = AtomicBool::new(false);
    let first: Mutex<Option<Fault>> = Mutex::new(None);
    let total: Mutex<Statistics> = Mutex::new(Statistics::default());
    let worker = || {
        let mut context = Context {
            launch,
            map,
            banks: &banks,
            pages: HashMap::new(),
            page: Page::empty(),
            statistics: Statistics::default(),
        };
        let mut resident: Vec<Block> = Vec::new();
        loop {
            while resident.len() < share {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= blocks {
                    break;
                }
                resident.push(Block::new(launch, index));
            }
            if resident.is_empty() {
                break;
            }
            let stopped = options.stop.load(Ordering::Relaxed);
            if stopped || failed.load(Ordering::Relaxed) {
                if stopped {
                    let mut slot = first.lock().unwrap_or_else(PoisonError::into_inner);
                    slot.get_or_insert_with(|| refuse(FaultKind::Stopped));
                }
                break;
            }
            let mut progress = false;
            let mut i = 0;
            while i < resident.len() {
                match turn(&mut context, &mut resident[i], options.slice) {
                    Ok(Outcome::Finished) => {
                        context.statistics.ctas += 1;
                        resident.swap_remove(i);
                        progress = true;
                        continue;
                    }
                    Ok(Outcome::Ran) => progress = true,
                    Ok(Outcome::Blocked) => {}
                    Err(fault) => {
                        let mut slot = first.lock().unwrap_or_else(PoisonError::into_inner);
                        slot.get_or_insert(*fault);
                        failed.store(true, Ordering::Relaxed);
                        break;
                    }
                }
                i += 1;
            }
            if !progress {
                std::thread::sleep(std::time::Duration::from_micros(100));
            }
        }
        let mut sum = total.lock().unwrap_or_else(PoisonError::into_inner);
        sum.instructions += context.statistics.instructions;
        sum.lane_instructions += context.statistics.lane_instructions;
        sum.ctas += context.statistics.ctas;
    };
    std::thread::scope(|scope| {
        for _ in 1..workers {
            scope.spawn(worker);
        }
        worker();
    });
    match first.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(fault) => Err(fault),
        None => Ok(total.into_inner().unwrap_or_else(PoisonError::into_inner)),
    }
}
