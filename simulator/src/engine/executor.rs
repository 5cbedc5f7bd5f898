//! Who executes the machine code of a grid.

use std::{
    fmt,
    sync::{Arc, OnceLock, atomic::AtomicBool},
    time::Instant,
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

/// A grid that was executed while somebody observed.
#[derive(Clone, Debug)]
pub struct Grid {
    /// What was launched.
    pub launch: sm::Launch,
    /// When it began.
    pub start: Instant,
    /// When it ended.
    pub end: Instant,
    /// What it did in all; `None` if it faulted or was stopped.
    pub statistics: Option<sm::Statistics>,
    /// What was asked for.
    pub observed: sm::Observed,
}

/// Who is told of grids. Called on the thread of the channel.
pub type GridObserver = Box<dyn Fn(Grid) + Send + Sync>;

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

    /// Tells `observer` of every grid from now on. False if somebody observes already, or if this executor cannot.
    fn observe(&self, _what: sm::Observe, _observer: GridObserver) -> bool {
        false
    }
}

/// The first lane that faulted and which thread of its block that is, in words with a leading separator.
fn thread(fault: &sm::Fault, block: [u32; 3]) -> String {
    let lane = fault.lanes.trailing_zeros();
    let index = fault.warp.saturating_mul(32).saturating_add(lane);
    let (Some(rest), Some(x)) = (index.checked_div(block[0]), index.checked_rem(block[0])) else {
        return String::new();
    };
    match (fault.lanes, rest.checked_rem(block[1]), rest.checked_div(block[1])) {
        (1.., Some(y), Some(z)) => format!("; lane {lane} is thread {:?}", [x, y, z]),
        _ => String::new(),
    }
}

/// Executes machine code with [`crate::sm`].
pub struct Interpreter {
    processor: sm::Processor,
    observer: OnceLock<(sm::Observe, GridObserver)>,
}

impl fmt::Debug for Interpreter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interpreter").field("processor", &self.processor).finish_non_exhaustive()
    }
}

impl Interpreter {
    /// For GPUs of that profile, on all threads of the machine. With a seed everything is executed by one thread, in an
    /// order that the seed decides.
    pub fn new(profile: &Profile, seed: Option<u64>, compile: sm::Compile) -> Self {
        let limits = profile.generation.limits();
        let configuration = sm::Configuration {
            seed,
            compile,
            multiprocessors: profile.sm_count(),
            warps: profile.warps_per_sm,
            blocks: profile.blocks_per_sm,
            registers: limits.registers,
            shared_bytes: limits.shared_bytes + limits.shared_reserved,
            ..sm::Configuration::default()
        };
        Self { processor: sm::Processor::new(configuration), observer: OnceLock::new() }
    }
}

impl Executor for Interpreter {
    fn execute(
        &self,
        grid: &sm::Launch,
        map: &Arc<AddressMap>,
        stop: &AtomicBool,
    ) -> Result<sm::Statistics, ShaderFault> {
        let result = match self.observer.get() {
            None => self.processor.run(grid, map, stop),
            Some((what, observer)) => {
                let start = Instant::now();
                let (result, observed) = self.processor.run_observed(grid, map, stop, *what);
                let statistics = result.as_ref().ok().copied();
                observer(Grid { launch: grid.clone(), start, end: Instant::now(), statistics, observed });
                result
            }
        };
        result.map_err(|fault| {
            let mmu = match fault.kind {
                sm::FaultKind::Mmu(mmu) => Some(mmu),
                _ => None,
            };
            let near = mmu.map_or_else(String::new, |mmu| crate::fault::near(map, mmu.va));
            let thread = thread(&fault, grid.block);
            ShaderFault { text: format!("{fault}{thread}{near}"), mmu, exception: Some(Box::new(fault)) }
        })
    }

    fn unsupported(&self) -> Vec<(String, u64)> {
        self.processor.unsupported()
    }

    fn observe(&self, what: sm::Observe, observer: GridObserver) -> bool {
        self.observer.set((what, observer)).is_ok()
    }
}
