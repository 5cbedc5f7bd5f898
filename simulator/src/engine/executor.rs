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

/// Executes grids that passed the scheduler's checks.
pub trait Executor: Send + Sync {
    /// Executes a grid to its end, or until `stop` is set.
    fn execute(
        &self,
        grid: &sm::Launch,
        map: &Arc<AddressMap>,
        stop: &AtomicBool,
    ) -> Result<sm::Statistics, ShaderFault>;

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
    /// For GPUs of that profile, on all threads of the machine. With a seed everything is executed by one thread, in an
    /// order that the seed decides.
    pub fn new(profile: &Profile, seed: Option<u64>) -> Self {
        let limits = profile.generation.limits();
        let configuration = sm::Configuration {
            seed,
            multiprocessors: profile.sm_count(),
            warps: profile.warps_per_sm,
            blocks: profile.blocks_per_sm,
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
        grid: &sm::Launch,
        map: &Arc<AddressMap>,
        stop: &AtomicBool,
    ) -> Result<sm::Statistics, ShaderFault> {
        self.processor.run(grid, map, stop).map_err(|fault| {
            let mmu = match fault.kind {
                sm::FaultKind::Mmu(mmu) => Some(mmu),
                _ => None,
            };
            let near = mmu.map_or_else(String::new, |mmu| crate::fault::near(map, mmu.va));
            ShaderFault { text: format!("{fault}{near}"), mmu, exception: Some(Box::new(fault)) }
        })
    }

    fn unsupported(&self) -> Vec<(String, u64)> {
        self.processor.unsupported()
    }
}
