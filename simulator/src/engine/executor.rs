//! Who executes the machine code of a grid.

use std::{
    fmt,
    sync::{Arc, atomic::AtomicBool},
};

use crate::{
    memory::{AddressMap, MmuFault},
    profile::Profile,
    sm,
};

/// A constant bank of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConstantBank {
    /// GPU virtual address.
    pub address: u64,
    /// Bytes, at most 64 KiB. Clients declare more than they map; only what is read has to be mapped.
    pub bytes: u32,
}

/// A grid that passed the scheduler's checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// GPU virtual address of the first instruction.
    pub program_address: u64,
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// Registers of a thread.
    pub registers: u32,
    /// Shared memory of a CTA in bytes.
    pub shared_bytes: u32,
    /// Local memory of a thread in bytes.
    pub local_bytes: u32,
    /// Named barriers.
    pub barriers: u32,
    /// Constant banks 0 to 7.
    pub constant_banks: [Option<ConstantBank>; 8],
    /// Where shared memory appears in the generic address space.
    pub shared_window: u64,
    /// Where local memory appears in the generic address space.
    pub local_window: u64,
    /// The SM version as GR_INFO gives it: major in 15:8, minor in 7:0.
    pub sm_version: u32,
    /// Counts the grids of a GPU.
    pub grid_id: u64,
}

/// What executing a grid took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GridStatistics {
    /// Warp instructions.
    pub instructions: u64,
    /// Instructions counted once per active lane.
    pub lane_instructions: u64,
}

/// What a warp did that ends its grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShaderFault {
    /// In words: the exception, instruction, program counter, lane.
    pub text: String,
    /// What the MMU refused, if that was it.
    pub mmu: Option<MmuFault>,
    /// The exception as the SM has it; `None` from executors that are none.
    pub exception: Option<Box<sm::Fault>>,
}

impl fmt::Display for ShaderFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for ShaderFault {}

/// Executes grids.
pub trait Executor: Send + Sync {
    /// Executes a grid to its end, or until `stop` is set.
    fn execute(
        &self,
        grid: &Grid,
        map: &Arc<AddressMap>,
        stop: &AtomicBool,
    ) -> Result<GridStatistics, ShaderFault>;

    /// Instructions that grids reached and that are not simulated, with how often.
    fn unsupported(&self) -> Vec<(String, u64)> {
        Vec::new()
    }
}

/// Executes machine code with [`crate::sm`].
#[derive(Debug)]
pub struct Interpreter {
    processor: sm::Processor,
}

impl Interpreter {
    /// For GPUs of that profile, on all threads of the machine.
    pub fn new(profile: &Profile) -> Self {
        Self::with(profile, None)
    }

    /// For GPUs of that profile. With a seed everything is executed by one thread, in an order that the seed decides.
    pub fn with(profile: &Profile, seed: Option<u64>) -> Self {
        let limits = profile.generation.limits();
        let configuration = sm::Configuration {
            seed,
            multiprocessors: profile.sm_count(),
            warps: profile.warps_per_sm,
            blocks: match profile.sm_version {
                0x806 => 16,
                0x809 => 24,
                _ => 32,
            },
            registers: limits.registers,
            shared_bytes: limits.shared_bytes + limits.shared_reserved,
            ..sm::Configuration::default()
        };
        Self { processor: sm::Processor::new(configuration) }
    }
}

impl Executor for Interpreter {
    fn execute(
        &self,
        grid: &Grid,
        map: &Arc<AddressMap>,
        stop: &AtomicBool,
    ) -> Result<GridStatistics, ShaderFault> {
        let launch = sm::Launch {
            program_address: grid.program_address,
            grid: grid.grid,
            block: grid.block,
            registers: grid.registers,
            shared_bytes: grid.shared_bytes,
            local_bytes: grid.local_bytes,
            barriers: grid.barriers,
            constant_buffers: grid
                .constant_banks
                .map(|bank| bank.map(|b| sm::ConstantBuffer { address: b.address, bytes: b.bytes })),
            shared_window: grid.shared_window,
            local_window: grid.local_window,
            sm: (grid.sm_version >> 8) * 10 + (grid.sm_version & 0xff),
            grid_id: grid.grid_id,
        };
        match self.processor.run(&launch, map, stop) {
            Ok(done) => Ok(GridStatistics {
                instructions: done.instructions,
                lane_instructions: done.lane_instructions,
            }),
            Err(fault) => {
                let mmu = match fault.kind {
                    sm::FaultKind::Mmu(mmu) => Some(mmu),
                    _ => None,
                };
                let near = mmu.map_or_else(String::new, |mmu| crate::fault::near(map, mmu.va));
                Err(ShaderFault { text: format!("{fault}{near}"), mmu, exception: Some(Box::new(fault)) })
            }
        }
    }

    fn unsupported(&self) -> Vec<(String, u64)> {
        self.processor.unsupported()
    }
}
