//! Grids: from a QMD in memory through the scheduler's checks to its executor, its semaphores and its dependents.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::atomic::Ordering,
};

use nv_abi::{
    arch::Generation,
    compute::AMPERE_COMPUTE_A::{
        SET_SHADER_LOCAL_MEMORY_A, SET_SHADER_LOCAL_MEMORY_B, SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A,
        SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_B, SET_SHADER_LOCAL_MEMORY_WINDOW_A,
        SET_SHADER_LOCAL_MEMORY_WINDOW_B, SET_SHADER_SHARED_MEMORY_WINDOW_A,
        SET_SHADER_SHARED_MEMORY_WINDOW_B, SET_TEX_HEADER_POOL_A, SET_TEX_HEADER_POOL_B,
        SET_TEX_HEADER_POOL_C, SET_TEX_SAMPLER_POOL_A, SET_TEX_SAMPLER_POOL_B, SET_TEX_SAMPLER_POOL_C,
    },
    compute::HOPPER_COMPUTE_A::SET_TEXTURE_HEADER_VERSION,
    qmd::{self, StructureSize, rows::V04_00},
    texture::HeaderVersion,
};

use super::{Context, Registers};
use crate::{
    fault::{Fault, LaunchError},
    host::semaphore::{Reduction, Release, Width},
    memory::AccessKind,
    sm,
};

/// Bytes of a constant bank that instructions can address.
const CONSTANT_BANK_BYTES: u64 = 64 << 10;
/// Bytes of a shared or local window: generic addresses within 16 MiB of its start.
const WINDOW_BYTES: u64 = 16 << 20;
/// Most blocks of a cluster that were tried on a card: an H200 takes them.
const CLUSTER_BLOCKS: u64 = 32;
/// Named barriers of a CTA.
const BARRIERS: u32 = 16;
/// Registers of a thread that instructions can name.
const REGISTERS_PER_THREAD: u32 = 255;
/// Instruction fetch needs this alignment of a program.
const PROGRAM_ALIGNMENT: u64 = 128;
/// Bytes to which the local memory of a warp is rounded up.
const LOCAL_UNIT: u64 = 0x200;

/// Interrupts of a release: none, and always one that stalls nobody.
const TRAP_NONE: u64 = V04_00::RELEASE_TRAP_TYPE::TRAP_NONE;
const TRAP_UNCONDITIONAL: u64 = V04_00::RELEASE_TRAP_TYPE::TRAP_UNCONDITIONAL;

/// Actions of DEPENDENT_QMD_ACTION that start the dependent.
const DEPENDENT_SCHEDULE: u64 = V04_00::DEPENDENT_QMD_ACTION::QMD_SCHEDULE;
const DEPENDENT_INVALIDATE_COPY_SCHEDULE: u64 = V04_00::DEPENDENT_QMD_ACTION::QMD_INVALIDATE_COPY_SCHEDULE;
const DEPENDENT_DECREMENT: u64 = V04_00::DEPENDENT_QMD_ACTION::QMD_DECREMENT_DEPENDENCE;

/// Grids that were scheduled and wait for others, by the address of their QMD, with how many decrements they lack.
pub(super) type Waiting = BTreeMap<u64, u32>;

/// How a descriptor comes to the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// It is to start.
    Scheduled,
    /// It is handed over, and starts unless it says that it waits to be scheduled, as those of a graph but the first do.
    HandedOver,
}

/// Runs the QMD at `address` unless it waits for others; then what depends on it, breadth first.
pub(super) fn schedule(
    context: &mut Context<'_>,
    registers: &Registers,
    class: u32,
    generation: Generation,
    waiting: &mut Waiting,
    (address, arrival): (u64, Arrival),
) -> Result<(), Fault> {
    // With each: whether it waited for its turn already.
    let mut queue = VecDeque::from([(address, false)]);
    let mut handed_over = arrival == Arrival::HandedOver;
    while let Some((address, waited)) = queue.pop_front() {
        if context.slot.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let launch = read(context, generation, address)?;
        // Only the first comes from outside: those behind it were scheduled by the one before.
        if std::mem::replace(&mut handed_over, false) && launch.require_scheduling_pcas {
            return Ok(());
        }
        // NVIDIA's library schedules null grids with a counter of 2 that one grid decrements: they never start.
        if !waited && launch.dependence_counter > 0 {
            waiting.insert(address, launch.dependence_counter);
            continue;
        }
        // A null grid has no blocks, only what follows one. NVIDIA's library starts its graphs with a grid of zeros.
        let is_null = launch.qmd_type.map(u64::from) == Some(V04_00::QMD_TYPE::GRID_NULL);
        if !is_null && launch.grid != [0; 3] {
            execute(context, registers, generation, address, &launch)?;
        }
        if context.slot.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        for release in &launch.releases {
            complete(context, class, address, release)?;
        }
        for dependent in &launch.dependents {
            match u64::from(dependent.action) {
                DEPENDENT_SCHEDULE | DEPENDENT_INVALIDATE_COPY_SCHEDULE => {
                    queue.push_back((dependent.address, false));
                }
                DEPENDENT_DECREMENT => {
                    if decrement(context, generation, waiting, dependent.address)? {
                        queue.push_back((dependent.address, true));
                    }
                }
                action => {
                    let what = format!("DEPENDENT_QMD_ACTION {action} of the QMD at {address:#x}");
                    return Err(Fault::NotSimulated { class, method: "QMD", what });
                }
            }
        }
    }
    Ok(())
}

/// Counts one of those that a grid waits for; whether it was the last. One that was not scheduled yet has what its QMD
/// says before it.
fn decrement(
    context: &Context<'_>,
    generation: Generation,
    waiting: &mut Waiting,
    address: u64,
) -> Result<bool, Fault> {
    let lacks = match waiting.get(&address) {
        Some(lacks) => *lacks,
        None => read(context, generation, address)?.dependence_counter,
    };
    match lacks {
        0 | 1 => {
            waiting.remove(&address);
            Ok(lacks == 1)
        }
        _ => {
            waiting.insert(address, lacks - 1);
            Ok(false)
        }
    }
}

fn read(context: &Context<'_>, generation: Generation, address: u64) -> Result<qmd::Launch, Fault> {
    let version = generation.qmd_version();
    let mut bytes = vec![0; version.bytes()];
    context.read("compute, QMD", address, &mut bytes)?;
    let hang = |reason: String| Err(Fault::Hang { address, reason });
    let launch = match qmd::read(version, &bytes) {
        Ok(launch) => launch,
        // Measured on H200: neither completion nor an error notifier.
        Err(error @ qmd::ReadError::Version { .. }) => return hang(error.to_string()),
        Err(error) => return refuse(address, LaunchError::Undecodable(error.to_string())),
    };
    match launch.qmd_type.map(u64::from) {
        None
        | Some(V04_00::QMD_TYPE::GRID_CTA | V04_00::QMD_TYPE::GRID_GPC_CGA | V04_00::QMD_TYPE::GRID_NULL) => {
            Ok(launch)
        }
        // Measured on H200 for QUEUE, likewise.
        Some(V04_00::QMD_TYPE::QUEUE) => hang("QMD_TYPE is QUEUE, not GRID_CTA".to_owned()),
        Some(other) => {
            let name = V04_00::QMD_TYPE.enumerant(other).unwrap_or("reserved");
            refuse(address, LaunchError::Undecodable(format!("QMD_TYPE {name} is not simulated")))
        }
    }
}

fn refuse<T>(address: u64, error: LaunchError) -> Result<T, Fault> {
    Err(Fault::Launch { address, error })
}

/// What the scheduler checks before it starts a CTA.
fn check(registers: &Registers, generation: Generation, launch: &qmd::Launch) -> Result<(), LaunchError> {
    let limits = generation.limits();
    let threads: u64 = launch.block.iter().map(|size| u64::from(*size)).product();
    if launch.block.contains(&0) {
        return Err(LaunchError::ThreadDimensionZero(launch.block));
    }
    let above = |sizes: [u32; 3], most: [u32; 3]| sizes.iter().zip(most).any(|(size, most)| *size > most);
    if threads > u64::from(limits.threads) || above(launch.block, limits.block) {
        let limit = limits.threads.into();
        return Err(LaunchError::TotalThreads { block: launch.block, threads, limit });
    }
    if launch.grid.contains(&0) || above(launch.grid, limits.grid) {
        return Err(LaunchError::GridDimension(launch.grid));
    }
    if launch.registers > REGISTERS_PER_THREAD {
        return Err(LaunchError::RegisterCount { registers: launch.registers, limit: REGISTERS_PER_THREAD });
    }
    let warps = threads.div_ceil(32);
    let unit = u64::from(limits.register_unit);
    let used = (u64::from(launch.registers) * 32).next_multiple_of(unit) * warps;
    if used > u64::from(limits.registers) {
        let (registers, limit) = (launch.registers, limits.registers.into());
        return Err(LaunchError::TotalRegisterCount { registers, threads, limit });
    }
    let shared_limit = limits.shared_bytes + limits.shared_reserved;
    if launch.shared_bytes > shared_limit {
        return Err(LaunchError::SharedMemorySize { bytes: launch.shared_bytes, limit: shared_limit });
    }
    if launch.barriers > BARRIERS {
        return Err(LaunchError::BarrierCount { count: launch.barriers, limit: BARRIERS });
    }
    if !launch.program_address.is_multiple_of(PROGRAM_ALIGNMENT) {
        return Err(LaunchError::ProgramOffset(launch.program_address));
    }
    if let Some(cluster) = launch.cluster {
        let size = cluster.iter().map(|axis| u64::from(*axis)).product::<u64>();
        if !(1..=CLUSTER_BLOCKS).contains(&size) || blocks(launch).is_none() {
            return Err(LaunchError::ClusterDimension { cluster, grid: launch.grid });
        }
    }
    let (shared, local) = windows(registers);
    if shared.abs_diff(local) < WINDOW_BYTES {
        return Err(LaunchError::MemoryWindowOverlap { shared, local });
    }
    let bytes = u64::from(launch.local_low_bytes) + u64::from(launch.local_high_bytes);
    let have =
        registers.address(&SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A, &SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_B);
    let need = (bytes * 32).next_multiple_of(LOCAL_UNIT) * warps;
    if bytes > 0 && need > have {
        return Err(LaunchError::TotalTempSize { bytes, need, have });
    }
    Ok(())
}

/// The grid in blocks: with clusters, the descriptor's counts those. `None` where that is no grid.
fn blocks(launch: &qmd::Launch) -> Option<[u32; 3]> {
    let mut grid = launch.grid;
    for (axis, cluster) in grid.iter_mut().zip(launch.cluster.unwrap_or([1; 3])) {
        *axis = axis.checked_mul(cluster)?;
    }
    Some(grid)
}

fn windows(registers: &Registers) -> (u64, u64) {
    (
        registers.address(&SET_SHADER_SHARED_MEMORY_WINDOW_A, &SET_SHADER_SHARED_MEMORY_WINDOW_B),
        registers.address(&SET_SHADER_LOCAL_MEMORY_WINDOW_A, &SET_SHADER_LOCAL_MEMORY_WINDOW_B),
    )
}

/// Where the channel says that textures are described.
fn textures(registers: &Registers, generation: Generation, launch: &qmd::Launch) -> sm::Textures {
    let pool = |a, b, c| {
        let address = registers.address(a, b);
        (address != 0).then(|| sm::DescriptorPool { address, last: registers.get(c) })
    };
    let headers = pool(&SET_TEX_HEADER_POOL_A, &SET_TEX_HEADER_POOL_B, &SET_TEX_HEADER_POOL_C);
    // Measured on H200: a channel that names no pool has one at address 0, without an end.
    let headers = headers.or(Some(sm::DescriptorPool { address: 0, last: u32::MAX }));
    let mut samplers = pool(&SET_TEX_SAMPLER_POOL_A, &SET_TEX_SAMPLER_POOL_B, &SET_TEX_SAMPLER_POOL_C);
    if let (true, Some(headers), Some(samplers)) = (launch.sampler_by_header, headers, &mut samplers) {
        // NVIDIA's library gives 0 as the last sampler then.
        samplers.last = headers.last;
    }
    let version = match generation {
        Generation::Ampere | Generation::Ada => HeaderVersion::V1,
        // Compute::method refuses other values.
        Generation::Hopper if registers.get(&SET_TEXTURE_HEADER_VERSION) == 0 => HeaderVersion::V1,
        Generation::Hopper | Generation::Blackwell => HeaderVersion::V2,
    };
    sm::Textures { headers, samplers, sampler_by_header: launch.sampler_by_header, version }
}

fn execute(
    context: &Context<'_>,
    registers: &Registers,
    generation: Generation,
    address: u64,
    launch: &qmd::Launch,
) -> Result<(), Fault> {
    if let Err(error) = check(registers, generation, launch) {
        return refuse(address, error);
    }
    let mmu = |fault| Fault::mmu("compute, local memory", fault, context.map);
    let local_bytes = launch.local_low_bytes + launch.local_high_bytes;
    if local_bytes > 0 {
        let base = registers.address(&SET_SHADER_LOCAL_MEMORY_A, &SET_SHADER_LOCAL_MEMORY_B);
        context.map.translate(base, 1, AccessKind::Write).map_err(mmu)?;
    }
    let (shared_window, local_window) = windows(registers);
    let counters = &context.slot.counters;
    let grid = sm::Launch {
        program_address: launch.program_address,
        grid: blocks(launch).unwrap_or(launch.grid),
        block: launch.block,
        cluster: launch.cluster.unwrap_or([1; 3]),
        registers: launch.registers,
        shared_bytes: launch.shared_bytes,
        local_bytes,
        barriers: launch.barriers,
        constant_buffers: launch.constant_buffers.map(|buffer| {
            buffer.map(|buffer| sm::ConstantBuffer {
                address: buffer.address,
                bytes: buffer.bytes.min(CONSTANT_BANK_BYTES) as u32,
            })
        }),
        shared_window,
        local_window,
        sm: context.slot.sm,
        textures: textures(registers, generation, launch),
        grid_id: counters.launches.fetch_add(1, Ordering::Relaxed),
    };
    let statistics =
        context.slot.executor.execute(&grid, context.map, &context.slot.stop).map_err(|fault| {
            Fault::Shader {
                qmd_address: address,
                program_address: launch.program_address,
                fault: Box::new(fault),
            }
        })?;
    counters.instructions.fetch_add(statistics.instructions, Ordering::Relaxed);
    counters.lane_instructions.fetch_add(statistics.lane_instructions, Ordering::Relaxed);
    Ok(())
}

/// A release slot of a completed grid.
fn complete(context: &Context<'_>, class: u32, address: u64, release: &qmd::Release) -> Result<(), Fault> {
    let long = release.payload_64 || release.structure_size == StructureSize::TwoWords;
    let reduction = match release.reduction {
        None => None,
        Some((number, signed)) => match Reduction::from_graphics(number.into()) {
            Some(reduction) => Some((reduction, signed)),
            None => return refuse(address, LaunchError::Undecodable(format!("reduction {number}"))),
        },
    };
    let semaphore = Release {
        address: release.address,
        payload: release.payload,
        width: if long { Width::Long } else { Width::Word },
        timestamp: release.structure_size == StructureSize::FourWords,
        reduction,
    };
    let trap = u64::from(release.trap_type);
    if !matches!(trap, TRAP_NONE | TRAP_UNCONDITIONAL) {
        let what = format!("RELEASE_TRAP_TYPE {trap} of the QMD at {address:#x}");
        return Err(Fault::NotSimulated { class, method: "QMD", what });
    }
    let undecodable = |reason| Fault::Launch { address, error: LaunchError::Undecodable(reason) };
    context.release("compute, QMD release", &semaphore, undecodable)?;
    if trap == TRAP_UNCONDITIONAL {
        context.interrupt();
    }
    Ok(())
}
