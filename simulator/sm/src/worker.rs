//! A worker: executes blocks, one warp at a time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::block::Block;
use super::code::{CodeCache, LoadedCode, PAGE_CODE};
use super::control::{self, After};
use super::core::Core;
use super::fault::{Fault, FaultKind};
use super::launch::{Prepared, Shape, Statistics};
use super::memory::Windows;
use super::micro::Flow;
use super::run::{self, Run};

/// A source of numbers that decides what a seeded run leaves open: xorshift64*.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        // Neighbouring seeds should not give neighbouring runs, and zero would stay zero.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }
}

/// What handlers may use of their worker.
#[derive(Debug)]
pub(crate) struct Caches {
    pub windows: Windows,
    pub statistics: Statistics,
    /// How often a clock was looked at.
    pub looks: u64,
    /// SMs of the GPU.
    pub multiprocessors: u32,
    /// Present in a seeded run.
    pub(super) random: Option<Random>,
}

impl Caches {
    /// The global timer. In a seeded run an instruction takes a nanosecond.
    pub fn nanoseconds(&mut self) -> u64 {
        if self.random.is_some() {
            self.looks += 1;
            return self.statistics.instructions + self.looks;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        now.as_nanos() as u64
    }
}

/// How a turn of a block ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All its threads exited.
    Finished,
    /// Its budget is used up.
    Ran,
    /// Its budget is used up, mostly by looking at what others write.
    Spun,
    /// No warp can go on: they wait at barriers that nobody else will reach.
    Stuck,
}

/// Instructions of a warp before the next has its turn.
const SLICE: i64 = 4096;
/// Instructions of a block before another is looked after.
const TURN: i64 = 1 << 16;

/// A worker's state, kept from launch to launch.
#[derive(Debug)]
pub(super) struct Worker {
    pub caches: Caches,
    pub code: LoadedCode,
    /// Memory of blocks that finished, for blocks to come.
    spare: Vec<(Shape, Block)>,
}

/// Blocks whose memory a worker keeps.
const SPARE: usize = 64;
/// Local memory of a thread from which on a block's memory is not kept.
const SPARE_LOCAL_BYTES: u32 = 16 << 10;

impl Worker {
    pub fn new(multiprocessors: u32) -> Self {
        Self {
            caches: Caches {
                windows: Windows::new(),
                statistics: Statistics::default(),
                looks: 0,
                multiprocessors,
                random: None,
            },
            code: LoadedCode::new(),
            spare: Vec::new(),
        }
    }

    /// To be called before a launch.
    pub fn start(&mut self, random: Option<Random>) {
        self.caches.windows.reset();
        self.caches.statistics = Statistics::default();
        self.caches.random = random;
        self.code.start();
    }

    /// A block of the launch, ready to run.
    pub fn block(&mut self, launch: &Prepared, number: u64) -> Block {
        let shape = launch.shape();
        let mut block = match self.spare.iter().rposition(|(have, _)| *have == shape) {
            Some(index) => self.spare.swap_remove(index).1,
            None => Block::new(launch),
        };
        // What a block finds in its registers is whatever was there, but a seeded run repeats itself.
        block.start(launch, number, self.caches.random.is_some());
        block
    }

    /// Takes back the memory of a block.
    pub fn recycle(&mut self, launch: &Prepared, block: Block) {
        let shape = launch.shape();
        if shape.local_bytes <= SPARE_LOCAL_BYTES {
            if self.spare.len() == SPARE {
                self.spare.swap_remove(0);
            }
            self.spare.push((shape, block));
        }
    }

    /// Gives every warp of the block turns until the block ends or its budget is used up.
    pub fn turn(
        &mut self,
        cache: &CodeCache,
        launch: &Prepared,
        block: &mut Block,
    ) -> Result<Outcome, Box<Fault>> {
        let mut budget = TURN;
        block.cta.spins = 0;
        if let Some(random) = &mut self.caches.random {
            budget = 1 + (random.next() % 512) as i64;
        }
        loop {
            let mut ran = false;
            let shift = match &mut self.caches.random {
                Some(random) => random.next() as usize,
                None => 0,
            };
            for i in 0..block.warps.len() {
                let index = if shift == 0 { i } else { (i + shift) % block.warps.len() };
                let before = self.caches.statistics.instructions;
                ran |= self.run_warp(cache, launch, block, index)?;
                budget -= (self.caches.statistics.instructions - before) as i64;
            }
            if block.alive == 0 {
                return Ok(Outcome::Finished);
            }
            if !ran {
                return Ok(Outcome::Stuck);
            }
            let spins = i64::from(block.cta.spins);
            if budget <= spins {
                return Ok(if spins > TURN / 2 { Outcome::Spun } else { Outcome::Ran });
            }
        }
    }

    /// Runs a warp until it waits, ends, or has used up its slice. Whether it ran at all.
    fn run_warp(
        &mut self,
        cache: &CodeCache,
        launch: &Prepared,
        block: &mut Block,
        index: usize,
    ) -> Result<bool, Box<Fault>> {
        let mut left = SLICE;
        let mut ran = false;
        while left > 0 {
            let warp = &mut block.warps[index];
            let group = match &mut self.caches.random {
                None => warp.select(),
                Some(random) => {
                    let choice = random.next();
                    left = left.min(1 + (choice >> 40 & 63) as i64);
                    warp.select_any(choice & 0xffff)
                }
            };
            let Some((pc, group)) = group else { break };
            ran = true;
            self.run_group(cache, launch, block, index, pc, group, &mut left)?;
        }
        Ok(ran)
    }

    /// Runs lanes that stand at one address until they part, wait or end, or have used up what is `left`.
    #[expect(
        clippy::too_many_arguments,
        reason = "the loop's state, which would be a struct of no other use"
    )]
    fn run_group(
        &mut self,
        cache: &CodeCache,
        launch: &Prepared,
        block: &mut Block,
        index: usize,
        mut pc: u64,
        group: u32,
        left: &mut i64,
    ) -> Result<(), Box<Fault>> {
        // The lanes at hand are all that could run: nobody is to be met on the way.
        let whole = group == block.warps[index].runnable();
        let fail = |block: &Block, pc: u64, lanes: u32, kind: FaultKind| {
            Box::new(report(cache, launch, block, index, pc, lanes, kind))
        };
        loop {
            if pc & 15 != 0 {
                return Err(fail(block, pc, group, FaultKind::InvalidPc));
            }
            let page = match self.code.page(pc, launch, cache) {
                Ok(page) => page,
                Err(kind) => return Err(fail(block, pc, group, kind)),
            };
            let start = page.start;
            let code = page.code();
            let warp = &mut block.warps[index];
            let end = if whole { u64::MAX } else { warp.meeting(group, pc) };
            let stop = (end.wrapping_sub(start) / 16).min(PAGE_CODE as u64) as usize;
            let at = ((pc - start) / 16) as usize;
            let stop = if self.caches.random.is_some() { stop.min(at + *left as usize) } else { stop };
            let mut state =
                Run { group, whole, start, at, stop, left: *left, executed: 0, lanes: 0, mask: group };
            // SAFETY: the page's code was lowered for the launch's register count, which the block's warps have, and
            // comes with its pool.
            let (flow, taken, fault) = unsafe {
                let mut core =
                    Core::new(warp, &page.rows, &page.page.faults, &mut block.cta, &mut self.caches, launch);
                let flow = run::run(&mut core, code, &mut state);
                (flow, core.taken, core.fault.take())
            };
            let Run { at, mask, executed, lanes, .. } = state;
            self.caches.statistics.instructions += executed as u64;
            self.caches.statistics.lane_instructions += lanes;
            *left -= executed;
            let here = start + 16 * at as u64;
            let warp = &mut block.warps[index];
            match flow {
                Flow::Next => pc = here,
                Flow::Branch => {
                    let target = code[at].payload;
                    if target & 15 != 0 {
                        return Err(fail(block, here, taken, FaultKind::InvalidPc));
                    }
                    if taken == group {
                        pc = target;
                    } else {
                        warp.set_pc(group, here + 16);
                        warp.set_pc(taken, target);
                    }
                    if target <= here && !(whole && taken == group) {
                        warp.yielded |= taken;
                    }
                    if taken != group {
                        return Ok(());
                    }
                }
                Flow::Control => {
                    let op = code[at];
                    match control::step(block, index, launch, &op, here, mask, group) {
                        Ok(After::Together(to)) => pc = to,
                        Ok(After::Apart) => {
                            if block.cta.spins as i64 > TURN {
                                *left = 0;
                            }
                            return Ok(());
                        }
                        Err(kind) => return Err(fail(block, here, mask, kind)),
                    }
                }
                Flow::Fault => {
                    let kind = fault.unwrap_or(FaultKind::UnknownInstruction);
                    return Err(fail(block, here, mask, kind));
                }
            }
            if !whole || *left <= 0 {
                block.warps[index].set_pc(group, pc);
                return Ok(());
            }
        }
    }
}

#[cold]
fn report(
    cache: &CodeCache,
    launch: &Prepared,
    block: &Block,
    warp: usize,
    pc: u64,
    lanes: u32,
    kind: FaultKind,
) -> Fault {
    if let FaultKind::Unsupported(what) = &kind {
        cache.count_unsupported(what);
    }
    let mut bytes = [0; 16];
    let text = match launch.map.read(pc, &mut bytes) {
        Ok(()) => {
            let word = u128::from_le_bytes(bytes);
            let arch = sass::Arch::from_sm(launch.launch.sm);
            match arch.map(|arch| sass::decode(word, pc, arch)) {
                Some(Ok(instruction)) => instruction.to_string(),
                _ => format!("word {word:#034x}"),
            }
        }
        Err(fault) => format!("no code: {fault}"),
    };
    Fault { kind, program_counter: pc, text, cta: block.cta.index, warp: block.warps[warp].index, lanes }
}
