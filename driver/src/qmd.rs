//! From a kernel and its launch parameters to a QMD and the image of constant bank 0.

use nv_abi::{
    arch::Generation,
    qmd::{ConstantBuffer, Qmd, rows::V03_00},
};

use crate::{Error, LaunchOptions, error::LaunchError, gpu::Gpu, program::KernelInfo};

/// Where code finds shared memory in the generic address space. 4 GiB aligned: Hopper refuses others.
pub(crate) const SHARED_WINDOW: u64 = 0x7294_0000_0000;
/// Where code finds local memory in the generic address space.
pub(crate) const LOCAL_WINDOW: u64 = 0x7293_0000_0000;
/// The first stack pointer: local memory ends at 2^24, the top 0x240 bytes are the system's.
const STACK_TOP: u32 = 0xff_fdc0;
/// Local memory that the system takes from every thread, in bytes.
pub(crate) const LOCAL_RESERVED: u32 = 0x240;
/// Shared memory is handed out in this unit.
const SHARED_UNIT: u64 = 0x100;
/// The group that clients other than CUDA use.
const QMD_GROUP: u64 = 0x3f;
const QMD_GROUP_BLACKWELL: u64 = 0x1f;
/// Warps of a CTA and of an SM come in fours: one per partition.
const WARP_UNIT: u32 = 4;
/// Most blocks of a cluster that NVIDIA's runtime lets one ask for.
const CLUSTER_BLOCKS: u32 = 16;
/// Blocks of an SM that every GPU takes.
const BLOCKS_PER_SM: u32 = 16;
/// Bytes in which the blocks of a cooperative launch meet: CUDA's `grid_workspace`, a size and a counter.
const WORKSPACE: u64 = 16;

/// The constant bank of `__constant__` variables.
const USER_CONSTANTS: usize = 3;

/// One through a number, rounded up: so that a product with it is never below a whole quotient.
fn reciprocal(number: u32) -> f32 {
    let nearest = 1.0 / number as f32;
    if f64::from(nearest) * f64::from(number) < 1.0 { nearest.next_up() } else { nearest }
}

/// One launch, checked against the hardware's limits.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) info: KernelInfo,
    /// Where the module's image lies.
    pub(crate) base: u64,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    /// The cluster is that of the kernel where none was asked for.
    pub(crate) options: LaunchOptions,
    /// The parameter bytes.
    pub(crate) parameters: Vec<u8>,
}

/// Whether a grid and block fit.
fn check_dimensions(
    generation: Generation,
    info: &KernelInfo,
    grid: [u32; 3],
    block: [u32; 3],
) -> Result<(), LaunchError> {
    let limits = generation.limits();
    for (what, value, limit) in [("grid", grid, limits.grid), ("block", block, limits.block)] {
        if value.iter().zip(limit).any(|(value, limit)| *value == 0 || *value > limit) {
            return Err(LaunchError::Dimension { what, value, limit });
        }
    }
    let threads: u64 = block.iter().map(|value| u64::from(*value)).product();
    let per_warp = (info.registers * 32).next_multiple_of(limits.register_unit);
    let limit = (limits.registers / per_warp / WARP_UNIT * WARP_UNIT * 32).min(limits.threads);
    if threads > u64::from(limit) {
        return Err(LaunchError::Threads { threads, limit, registers: info.registers });
    }
    if let Some(compiled) = info.required_threads
        && compiled != block
    {
        return Err(LaunchError::CompiledBlock { compiled, block });
    }
    if let Some(compiled) = info.max_threads
        && threads > compiled.iter().map(|value| u64::from(*value)).product()
    {
        return Err(LaunchError::CompiledBlock { compiled, block });
    }
    Ok(())
}

/// Shared memory of a CTA in bytes, the system's part included.
fn shared_bytes(generation: Generation, info: &KernelInfo, dynamic: u32) -> Result<u32, LaunchError> {
    let limits = generation.limits();
    let reserved = u64::from(limits.shared_reserved);
    // From sm_90 on the section already counts the system's bytes, which come first.
    let fixed = if generation >= Generation::Hopper {
        u64::from(info.shared_bytes).max(reserved)
    } else {
        u64::from(info.shared_bytes) + reserved
    };
    let bytes = fixed + u64::from(dynamic);
    if bytes - reserved > u64::from(limits.shared_bytes) {
        return Err(LaunchError::SharedMemory { bytes: bytes - reserved, limit: limits.shared_bytes });
    }
    Ok(bytes.next_multiple_of(SHARED_UNIT) as u32)
}

impl Launch {
    /// Checks everything that can be refused before the GPU sees it.
    pub(crate) fn check(&self, gpu: &Gpu) -> Result<(), Error> {
        let refuse = |reason| Error::Launch { kernel: self.info.name.clone(), reason };
        let generation = gpu.generation;
        check_dimensions(generation, &self.info, self.grid, self.block).map_err(refuse)?;
        let shared = shared_bytes(generation, &self.info, self.options.dynamic_shared).map_err(refuse)?;
        self.check_cluster(generation).map_err(refuse)?;
        if self.options.cooperative {
            self.check_resident(gpu, shared).map_err(refuse)?;
        }
        Ok(())
    }

    fn check_cluster(&self, generation: Generation) -> Result<(), LaunchError> {
        let Some(cluster) = self.options.cluster else { return Ok(()) };
        if generation < Generation::Hopper {
            return Err(LaunchError::NoClusters);
        }
        if let Some(compiled) = self.info.required_cluster
            && compiled != cluster
        {
            return Err(LaunchError::CompiledCluster { compiled, cluster });
        }
        let size = cluster.iter().try_fold(1u32, |size, axis| size.checked_mul(*axis)).unwrap_or(u32::MAX);
        if !(1..=CLUSTER_BLOCKS).contains(&size) {
            return Err(LaunchError::ClusterSize { cluster, limit: CLUSTER_BLOCKS });
        }
        if self.grid.iter().zip(cluster).any(|(grid, cluster)| !grid.is_multiple_of(cluster)) {
            return Err(LaunchError::GridOfClusters { grid: self.grid, cluster });
        }
        Ok(())
    }

    /// Refuses more blocks than certainly fit on the SMs together.
    fn check_resident(&self, gpu: &Gpu, shared: u32) -> Result<(), LaunchError> {
        let (limits, geometry) = (gpu.generation.limits(), &gpu.geometry);
        let warps = self.block.iter().product::<u32>().div_ceil(32).next_multiple_of(WARP_UNIT);
        let registers = (self.info.registers * 32).next_multiple_of(limits.register_unit) * warps;
        let largest = limits.shared_configs.last().map_or(0, |kib| kib << 10);
        let per_sm = (geometry.warps_per_sm / warps)
            .min(limits.registers / registers.max(1))
            .min(largest / shared.max(1))
            .min(BLOCKS_PER_SM);
        let multiprocessors = geometry.gpcs * geometry.tpcs_per_gpc * geometry.sms_per_tpc;
        let limit = u64::from(per_sm) * u64::from(multiprocessors);
        let blocks = self.grid.iter().map(|axis| u64::from(*axis)).product();
        if blocks > limit { Err(LaunchError::NotResident { blocks, limit }) } else { Ok(()) }
    }

    /// What a descriptor's grid counts: blocks, or clusters.
    pub(crate) fn grid_units(&self) -> [u32; 3] {
        let cluster = self.options.cluster.unwrap_or([1; 3]);
        [0, 1, 2].map(|axis| self.grid[axis] / cluster[axis].max(1))
    }

    /// Bytes of memory of the launch: constant bank 0, and what follows it.
    pub(crate) fn memory_bytes(&self, generation: Generation) -> u64 {
        self.bank_bytes(generation) + if self.options.cooperative { WORKSPACE } else { 0 }
    }

    /// Bytes of constant bank 0, padded to its 16-byte unit.
    fn bank_bytes(&self, generation: Generation) -> u64 {
        let base = self.info.parameter_base.max(generation.constant_bank().parameters);
        (u64::from(base) + self.parameters.len() as u64).next_multiple_of(16)
    }

    /// Constant bank 0 at its address: the driver's words, then the parameters. Behind it what else belongs to the launch.
    pub(crate) fn bank(&self, generation: Generation, address: u64) -> Result<Vec<u8>, Error> {
        let layout = generation.constant_bank();
        let mut bank = vec![0; self.memory_bytes(generation) as usize];
        let mut put = |offset: u32, bytes: &[u8]| {
            let start = offset as usize;
            let size = bank.len() as u64;
            bank.get_mut(start..start + bytes.len()).map(|place| place.copy_from_slice(bytes)).ok_or_else(
                || crate::memory::bounds("constant bank 0", start as u64, bytes.len() as u64, size),
            )
        };
        for axis in 0..3 {
            let step = 4 * axis as u32;
            put(layout.block_dimensions + step, &self.block[axis].to_le_bytes())?;
            put(layout.grid_dimensions + step, &self.grid[axis].to_le_bytes())?;
        }
        if let Some(offset) = layout.shared_window {
            put(offset, &SHARED_WINDOW.to_le_bytes())?;
        }
        put(layout.local_window, &LOCAL_WINDOW.to_le_bytes())?;
        put(layout.stack_top, &STACK_TOP.to_le_bytes())?;
        put(layout.dynamic_shared_bytes, &self.options.dynamic_shared.to_le_bytes())?;
        put(layout.reserved_shared_bytes, &generation.limits().shared_reserved.to_le_bytes())?;
        if let Some(constants) = self.info.constant_banks[USER_CONSTANTS] {
            put(layout.constant_window, &(self.base + constants.offset).to_le_bytes())?;
        }
        if self.options.cooperative {
            let workspace = address + self.bank_bytes(generation);
            let [high, low] = layout.grid_workspace;
            put(high, &((workspace >> 32) as u32).to_le_bytes())?;
            put(low, &(workspace as u32).to_le_bytes())?;
        }
        if let Some(words) = layout.cluster {
            let cluster = self.options.cluster.unwrap_or([1; 3]);
            let clusters = self.grid_units();
            for axis in 0..3 {
                let step = 4 * axis as u32;
                put(words.dimensions + step, &cluster[axis].to_le_bytes())?;
                put(words.reciprocals + step, &reciprocal(cluster[axis]).to_le_bytes())?;
                put(words.clusters + step, &clusters[axis].to_le_bytes())?;
            }
            put(words.size, &cluster.iter().product::<u32>().to_le_bytes())?;
            put(words.explicit, &u32::from(self.options.cluster.is_some()).to_le_bytes())?;
        }
        put(self.info.parameter_base, &self.parameters)?;
        Ok(bank)
    }

    /// The descriptor, with constant bank 0 at `bank_address`.
    pub(crate) fn qmd(
        &self,
        generation: Generation,
        bank_address: u64,
        local_bytes: u32,
    ) -> Result<Qmd, Error> {
        let version = generation.qmd_version();
        let rows = version.rows();
        let limits = generation.limits();
        let mut qmd = Qmd::new(version);
        let group = if generation >= Generation::Blackwell { QMD_GROUP_BLACKWELL } else { QMD_GROUP };
        qmd.set(&rows.group_id, group)?;
        for field in [
            &rows.invalidate_texture_header,
            &rows.invalidate_texture_sampler,
            &rows.invalidate_texture_data,
            &rows.invalidate_shader_data,
            &rows.call_limit,
            &rows.sampler_index,
        ] {
            qmd.set(field, 1)?;
        }
        if let Some(field) = rows.layout.field("SM_GLOBAL_CACHING_ENABLE") {
            qmd.set(field, 1)?;
        }
        // The value is the same in every version.
        qmd.set(&rows.membar, V03_00::CWD_MEMBAR_TYPE::L1_SYSMEMBAR)?;
        let sm = generation.sm();
        qmd.set(&rows.sass_version, u64::from(((sm / 10) << 4) | (sm % 10)))?;

        let shared = shared_bytes(generation, &self.info, self.options.dynamic_shared)
            .map_err(|reason| Error::Launch { kernel: self.info.name.clone(), reason })?;
        let code = |kib: u32| kib / 4 + 1;
        let largest = limits.shared_configs.last().copied().unwrap_or(0);
        // The seed never asks for less than 32 KiB.
        let wanted = limits
            .shared_configs
            .iter()
            .copied()
            .find(|kib| *kib >= 32 && kib * 1024 >= shared)
            .unwrap_or(largest);
        qmd.set_shared_memory(shared, [code(wanted), code(largest), code(wanted)])?;
        qmd.set_registers(self.info.registers)?;
        qmd.set_barriers(self.info.barriers)?;
        qmd.set_local_memory(local_bytes)?;
        qmd.set_grid(self.grid_units())?;
        if let Some(cluster) = self.options.cluster {
            qmd.set_cluster(cluster)?;
        }
        qmd.set_block(self.block)?;
        qmd.set_program(self.base + self.info.code.start, self.info.code.end - self.info.code.start)?;
        let bank = ConstantBuffer { address: bank_address, bytes: self.bank_bytes(generation) };
        qmd.set_constant_buffer(0, bank)?;
        for (index, bank) in (0..).zip(&self.info.constant_banks).skip(1) {
            if let Some(bank) = bank {
                let buffer = ConstantBuffer { address: self.base + bank.offset, bytes: bank.bytes.into() };
                qmd.set_constant_buffer(index, buffer)?;
            }
        }
        Ok(qmd)
    }
}
