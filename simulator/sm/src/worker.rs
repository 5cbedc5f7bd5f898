//! A worker: executes blocks, one after the other, and of a block those warps together that stand at one address.

use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nv_memory::AddressMap;

use super::block::Block;
use super::code::{CodeCache, LoadedCode, PAGE_CODE};
use super::control::{self, After};
use super::core::{Core, TEAM, Team};
use super::fault::{Fault, FaultKind};
use super::lanes::{Lanes, each};
use super::launch::{Prepared, Shape, Statistics};
use super::memory::Windows;
use super::micro::Flow;
use super::native;
use super::profile::Counting;
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
    pub textures: super::texture::Cache,
    /// Room of the tensor cores' quick form, from its first use on.
    #[cfg(target_arch = "x86_64")]
    pub tensor: Option<Box<sass::lane::mma::avx2::Scratch>>,
    /// Micro-operations that the last matrix product's handler executed behind its own.
    pub further_products: usize,
    pub statistics: Statistics,
    /// How often a clock was looked at.
    pub looks: u64,
    /// SMs of the GPU.
    pub multiprocessors: u32,
    /// Warps that an SM holds.
    pub warps: u32,
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

/// Where warps stand that are to run.
#[derive(Clone, Copy, Debug)]
struct Place {
    pc: u64,
    /// They have no other lanes that could run: nobody is to be met on the way, and branches back are followed.
    whole: bool,
    /// Where other warps stand.
    end: u64,
}

/// Instructions of a warp before the next has its turn.
const SLICE: i64 = 4096;
/// What a warp's instructions take off the block's budget by waiting, after which others are looked after.
const PAUSE: u32 = 4096;
/// Instructions of a block before another is looked after.
const TURN: i64 = 1 << 16;

/// A worker's state, kept from launch to launch.
#[derive(Debug)]
pub(super) struct Worker {
    pub caches: Caches,
    pub code: LoadedCode,
    /// What instructions are counted in, where they are.
    pub counting: Option<Box<Counting>>,
    /// The address map of the launch before. Its place stays its own as long as this is kept, so that another map is
    /// never taken for it.
    map: Weak<AddressMap>,
    /// Memory of blocks that finished, for blocks to come.
    spare: Vec<(Shape, Block)>,
}

/// Blocks whose memory a worker keeps.
const SPARE: usize = 64;
/// Local memory of a thread from which on a block's memory is not kept.
const SPARE_LOCAL_BYTES: u32 = 16 << 10;

impl Worker {
    pub fn new(multiprocessors: u32, warps: u32) -> Self {
        Self {
            caches: Caches {
                windows: Windows::new(),
                textures: super::texture::Cache::default(),
                #[cfg(target_arch = "x86_64")]
                tensor: None,
                further_products: 0,
                statistics: Statistics::default(),
                looks: 0,
                multiprocessors,
                warps,
                random: None,
            },
            code: LoadedCode::new(),
            counting: None,
            map: Weak::new(),
            spare: Vec::new(),
        }
    }

    /// To be called before a launch.
    pub fn start(&mut self, map: &Arc<AddressMap>, random: Option<Random>) {
        if self.map.as_ptr() != Arc::as_ptr(map) {
            self.map = Arc::downgrade(map);
            self.caches.windows.reset();
        }
        self.caches.textures.start();
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
        self.restart(launch, &mut block, number);
        block
    }

    /// Makes a block that finished another one of the same launch.
    pub fn restart(&self, launch: &Prepared, block: &mut Block, number: u64) {
        block.name(launch, number);
        if launch.cluster > 1 {
            self.begin(launch, block);
        }
    }

    fn begin(&self, launch: &Prepared, block: &mut Block) {
        // What a block finds in its registers is whatever was there, but a seeded run repeats itself.
        block.begin(launch, self.caches.random.is_some());
    }

    /// Executes a block that did not begin yet, if its code is made for blocks as a whole. Whether it was.
    fn run_at_once(&mut self, cache: &CodeCache, launch: &Prepared, block: &mut Block) -> bool {
        let pc = launch.launch.program_address;
        if !launch.line || self.caches.random.is_some() || self.counting.is_some() || pc & 15 != 0 {
            return false;
        }
        let Ok(loaded) = self.code.page(pc, launch, cache) else { return false };
        let Some(done) = native::run_at_once(loaded, pc, block, &mut self.caches, launch) else {
            return false;
        };
        self.caches.statistics.instructions += done.instructions;
        self.caches.statistics.lane_instructions += done.lanes;
        true
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
        if block.named {
            if self.run_at_once(cache, launch, block) {
                return Ok(Outcome::Finished);
            }
            self.begin(launch, block);
        }
        let mut budget = TURN;
        block.cta.spins = 0;
        if let Some(random) = &mut self.caches.random {
            budget = 1 + (random.next() % 512) as i64;
        }
        loop {
            let before = self.caches.statistics.instructions;
            block.look_at_cluster();
            let ran = if self.caches.random.is_some() {
                self.round_in_any_order(cache, launch, block)?
            } else {
                self.round(cache, launch, block)?
            };
            budget -= (self.caches.statistics.instructions - before) as i64;
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

    /// Gives every warp a slice, in an order that the seed decides. Whether any ran.
    fn round_in_any_order(
        &mut self,
        cache: &CodeCache,
        launch: &Prepared,
        block: &mut Block,
    ) -> Result<bool, Box<Fault>> {
        let mut ran = false;
        let warps = block.warps.len();
        let shift = self.caches.random.as_mut().map_or(0, Random::next) as usize;
        for i in 0..warps {
            let index = (i + shift) % warps;
            let mut left = SLICE;
            while left > 0 {
                let warp = &mut block.warps[index];
                let choice = self.caches.random.as_mut().map_or(0, Random::next);
                left = left.min(1 + (choice >> 40 & 63) as i64);
                let Some((pc, group)) = warp.select_any(choice & 0xffff) else { break };
                ran = true;
                let place = Place { pc, whole: group == warp.runnable(), end: u64::MAX };
                left -= self.run_team(cache, launch, block, Team::one(index, group), place, left)?;
            }
        }
        Ok(ran)
    }

    /// Lets every warp run until it waits, ends, or has used up its slice; those that stand at one address together, and
    /// the hindmost first, so that they meet the others. Whether any ran.
    fn round(&mut self, cache: &CodeCache, launch: &Prepared, block: &mut Block) -> Result<bool, Box<Fault>> {
        let largest = if self.counting.is_some() { 1 } else { largest_team(launch.launch.registers) };
        let mut left = [SLICE; WARPS];
        let warps = block.warps.len().min(WARPS);
        // Warps whose slice is not used up.
        let mut pending = u32::MAX >> (WARPS - warps);
        let mut ran = false;
        loop {
            let (mut first, mut place) = (None, Place { pc: u64::MAX, whole: false, end: u64::MAX });
            let mut team = Team::EMPTY;
            for index in each(pending) {
                let warp = &mut block.warps[index];
                let Some((pc, group)) = warp.select() else { continue };
                let whole = warp.standing().is_some();
                if pc < place.pc {
                    place = Place { pc, whole, end: place.pc };
                    first = Some(index);
                    team = Team::one(index, group);
                } else if pc == place.pc {
                    // Lanes that part run for themselves.
                    if whole && place.whole && team.count < largest {
                        team.add(index, group);
                    }
                } else {
                    place.end = place.end.min(pc);
                }
            }
            if first.is_none() {
                return Ok(ran);
            }
            ran = true;
            let members = team.index.into_iter().take(team.count);
            let slice = members.clone().map(|index| left[usize::from(index)]).min().unwrap_or(0);
            let before = block.cta.spins;
            let executed = self.run_team(cache, launch, block, team, place, slice)?;
            if block.alive == 0 {
                return Ok(ran);
            }
            // Warps that look at what others write, or sleep, let the others have their turn: those may be further on.
            let waited = block.cta.spins - before >= PAUSE;
            for index in members {
                left[usize::from(index)] -= executed;
                if waited || left[usize::from(index)] <= 0 {
                    pending &= !(1 << index);
                }
            }
        }
    }

    /// Runs warps that stand at one address until they part, wait or end, or have used up what is `left`. How many
    /// instructions the last of them executed.
    fn run_team(
        &mut self,
        cache: &CodeCache,
        launch: &Prepared,
        block: &mut Block,
        mut team: Team,
        Place { mut pc, whole, end }: Place,
        left: i64,
    ) -> Result<i64, Box<Fault>> {
        let fail = |block: &Block, member: usize, team: &Team, pc: u64, lanes: u32, kind: FaultKind| {
            let warp = usize::from(team.index[member]);
            Box::new(report(cache, launch, block, warp, pc, lanes, kind))
        };
        let mut done = 0;
        loop {
            if pc & 15 != 0 {
                return Err(fail(block, 0, &team, pc, team.groups[0], FaultKind::InvalidPc));
            }
            let page = match self.code.page(pc, launch, cache) {
                Ok(page) => page,
                Err(kind) => return Err(fail(block, 0, &team, pc, team.groups[0], kind)),
            };
            let start = page.start;
            let code = page.code();
            let end = match block.warps.get(usize::from(team.index[0])) {
                Some(warp) if !whole => warp.meeting(team.groups[0], pc),
                _ => end,
            };
            // Whoever was to be met may have been left behind.
            let end = if end > pc { end } else { u64::MAX };
            let at = ((pc - start) / 16) as usize;
            let stop = (end.wrapping_sub(start) / 16).min(PAGE_CODE as u64) as usize;
            let stop =
                if self.caches.random.is_some() { stop.min(at + (left - done) as usize) } else { stop };
            // What is counted stops after every instruction.
            let (meets, stop) = (stop, if self.counting.is_some() { stop.min(at + 1) } else { stop });
            let mut state = Run {
                whole: whole && self.counting.is_none(),
                start,
                at,
                stop,
                left: left - done,
                executed: 0,
                instructions: 0,
                lanes: 0,
                masks: [0; TEAM],
            };
            // SAFETY: the page's code was lowered for the launch's register count, which the block's warps have, and
            // comes with its pool.
            let core = unsafe {
                Core::new(
                    &mut block.warps,
                    &team,
                    &page.rows,
                    &page.page,
                    &mut block.cta,
                    &mut self.caches,
                    launch,
                )
            };
            let Some(mut core) = core else { return Ok(left) };
            core.alive = block.alive;
            if let (Some(counting), Some(op)) = (&mut self.counting, code.get(at)) {
                counting.before(&mut core, launch, pc, op);
            }
            // SAFETY: as above.
            let flow = unsafe { run::run(&mut core, code, &mut state) };
            team = core.team;
            let (member, fault) = (core.member, core.fault.take());
            self.caches.statistics.instructions += state.instructions;
            self.caches.statistics.lane_instructions += state.lanes;
            if let Some(counting) = &mut self.counting {
                counting.after(pc, state.instructions, state.lanes);
            }
            done += state.executed;
            let here = start + 16 * state.at as u64;
            // The end of a page is no reason to come back, and neither is a stop only for the sake of counting.
            let counted = self.counting.is_some() && state.at < meets;
            let ended = !whole || (flow == Flow::Next && state.at < PAGE_CODE && !counted);
            match flow {
                Flow::Next => pc = here,
                Flow::Branch | Flow::Around => {
                    let (taken, group) = (state.masks[0], team.groups[0]);
                    let target = code[state.at].payload;
                    if target & 15 != 0 {
                        let member = (0..team.count).find(|member| state.masks[*member] != 0).unwrap_or(0);
                        let taken = state.masks[member];
                        return Err(fail(block, member, &team, here, taken, FaultKind::InvalidPc));
                    }
                    let warp = &mut block.warps[usize::from(team.index[0])];
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
                        return Ok(done);
                    }
                }
                Flow::Control if control::ends(&code[state.at]) => {
                    block.exit_team(&team, here + 16);
                    return Ok(done);
                }
                Flow::Control => {
                    let op = code[state.at];
                    let mut together = None;
                    let mut apart = false;
                    for member in 0..team.count {
                        let (index, group) = (usize::from(team.index[member]), team.groups[member]);
                        let mask = state.masks[member];
                        let after = match mask {
                            0 => Ok(After::Together(here + 16)),
                            mask => control::step(block, index, launch, &op, here, mask, group),
                        };
                        match after {
                            Ok(After::Together(to)) => {
                                block.warps[index].set_pc(group, to);
                                apart |= together.is_some_and(|other| other != to);
                                together = Some(to);
                            }
                            Ok(After::Apart) => apart = true,
                            Err(kind) => return Err(fail(block, member, &team, here, mask, kind)),
                        }
                    }
                    match together {
                        Some(to) if !apart => pc = to,
                        _ => return Ok(done),
                    }
                }
                Flow::Fault => {
                    let kind = fault.unwrap_or(FaultKind::UnknownInstruction);
                    return Err(fail(block, member, &team, here, state.masks[member], kind));
                }
            }
            if ended || done >= left {
                for member in 0..team.count {
                    block.warps[usize::from(team.index[member])].set_pc(team.groups[member], pc);
                }
                return Ok(done);
            }
        }
    }
}

/// Most warps of a block.
pub(super) const WARPS: usize = 32;

/// Warps of a team whose registers fit into the nearest cache together.
fn largest_team(registers: u32) -> usize {
    const ROOM: usize = 64 << 10;
    (ROOM / (size_of::<Lanes>() * registers.max(1) as usize)).clamp(1, TEAM)
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
