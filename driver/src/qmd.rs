//! From a kernel and its launch parameters to a QMD and the image of constant bank 0.

use nv_abi::{
    arch::Generation,
    qmd::{ConstantBuffer, Qmd, rows::V03_00},
};

use crate::{Error, error::LaunchError, program::KernelInfo};

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

/// One launch, checked against the hardware's limits.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) info: KernelInfo,
    /// Where the module's image lies.
    pub(crate) base: u64,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) dynamic_shared: u32,
    /// The parameter bytes.
    pub(crate) parameters: Vec<u8>,
}

/// Whether a grid and block fit.
pub(crate) fn check_dimensions(
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
    pub(crate) fn check(&self, generation: Generation) -> Result<(), Error> {
        let refuse = |reason| Error::Launch { kernel: self.info.name.clone(), reason };
        check_dimensions(generation, &self.info, self.grid, self.block).map_err(refuse)?;
        shared_bytes(generation, &self.info, self.dynamic_shared).map_err(refuse)?;
        Ok(())
    }

    /// Bytes of constant bank 0, padded to its 16-byte unit.
    pub(crate) fn bank_bytes(&self, generation: Generation) -> u64 {
        let base = self.info.parameter_base.max(generation.constant_bank().parameters);
        (u64::from(base) + self.parameters.len() as u64).next_multiple_of(16)
    }

    /// Constant bank 0: the driver's words, then the parameters.
    pub(crate) fn bank(&self, generation: Generation) -> Result<Vec<u8>, Error> {
        let layout = generation.constant_bank();
        let mut bank = vec![0; self.bank_bytes(generation) as usize];
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

        let shared = shared_bytes(generation, &self.info, self.dynamic_shared)
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
        qmd.set_grid(self.grid)?;
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
