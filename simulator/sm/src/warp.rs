//! One warp's state: registers, program counters, convergence.

use super::lanes::{FULL, LANES, Lanes, ballot, bit, each, first, spread};
use super::micro::{RowIndex, rows_of};

/// What a lane waits for in WARPSYNC; B0 to B15 are their own numbers.
pub(super) const WARPSYNC: u8 = 16;
/// What a lane waits for in UCGABAR_WAIT.
pub(super) const CLUSTER: u8 = 17;
/// What a lane waits for at barrier 0; the others follow.
pub(super) const BARRIER: u8 = 32;

/// How often lanes give way before those that wait for them do not any more.
const PATIENCE: u32 = 32;

/// How often lanes of a WARPSYNC.EXCLUSIVE run before the others of their warp, at most.
const TURNS: u32 = 16;

/// Predicates of a warp that starts: PT and UPT hold.
const PREDICATES: [u32; 32] = {
    let mut predicates = [0; 32];
    (predicates[7], predicates[15]) = (FULL, FULL);
    predicates
};

/// One warp.
#[derive(Debug)]
pub(crate) struct Warp {
    /// Zero rows, sink rows, registers, uniform registers: see [`RowIndex`].
    pub(super) rows: Vec<Lanes>,
    /// P0 to P6 and PT, UP0 to UP6 and UPT, then a place for what is written to PT.
    pub predicates: [u32; 32],
    /// Lanes that did not exit.
    pub alive: u32,
    /// Lanes that wait for something; [`Warp::waits`] says for what.
    pub waiting: u32,
    /// What each lane waits for, where it does.
    waits: [u8; LANES],
    /// Lanes that give way to others.
    pub yielded: u32,
    /// How often lanes gave way while others waited for some, and which did.
    patience: u32,
    given_way: u32,
    /// Program counters of the lanes for which `common` does not speak.
    scattered: [u64; LANES],
    /// The program counter of all lanes that could run, where it is the same; of all live lanes if none could run.
    common: Option<u64>,
    /// B0 to B15 as each lane sees them: who meets there.
    pub convergence: [[u32; LANES]; 16],
    /// Members of the WARPSYNC that a lane waits in, or came from last.
    pub members: [u32; LANES],
    /// Lanes that run with no others than those of their WARPSYNC, until they wait again.
    exclusive: u32,
    /// Of those the lanes whose turn it is, since uniform registers are all lanes', and how often they are still to run first.
    turn: u32,
    turns: u32,
    /// The phase of the cluster's barrier that lanes have come to, and which did.
    pub cluster_phase: u32,
    pub cluster_arrived: u32,
    /// Number in the block.
    pub index: u32,
    /// Local memory: word w of the thread in lane l is `local[w].0[l]`.
    pub local: Vec<Lanes>,
}

impl Warp {
    /// A warp to be started.
    pub(super) fn new(index: u32, registers: u32, local_bytes: u32) -> Self {
        Self {
            rows: vec![Lanes::splat(0); rows_of(registers)],
            predicates: PREDICATES,
            alive: 0,
            waiting: 0,
            waits: [0; LANES],
            yielded: 0,
            patience: 0,
            given_way: 0,
            scattered: [0; LANES],
            common: None,
            convergence: [[0; LANES]; 16],
            members: [0; LANES],
            exclusive: 0,
            turn: 0,
            turns: 0,
            cluster_phase: 0,
            cluster_arrived: 0,
            index,
            local: vec![Lanes::splat(0); local_bytes.div_ceil(4) as usize],
        }
    }

    /// Starts the warp anew in a block of so many threads. Registers and local memory keep what was in them, as the card's do.
    pub(super) fn start(&mut self, threads: u32, pc: u64) {
        let threads = threads - 32 * self.index;
        self.alive = if threads >= 32 { FULL } else { (1 << threads) - 1 };
        self.waiting = 0;
        (self.yielded, self.exclusive) = (0, 0);
        (self.patience, self.given_way) = (0, 0);
        self.cluster_arrived = 0;
        self.common = Some(pc);
        self.predicates = PREDICATES;
    }

    /// Clears what [`Warp::start`] leaves as it was.
    pub(super) fn clear(&mut self) {
        self.rows.fill(Lanes::splat(0));
        self.local.fill(Lanes::splat(0));
        self.convergence = [[0; LANES]; 16];
    }

    /// Lanes that could run.
    #[inline(always)]
    pub fn runnable(&self) -> u32 {
        self.alive & !self.waiting
    }

    /// The lanes that `common` speaks for.
    #[inline(always)]
    fn spoken_for(&self) -> u32 {
        match self.runnable() {
            0 => self.alive,
            runnable => runnable,
        }
    }

    /// Writes program counters down lane by lane.
    fn scatter(&mut self) {
        if let Some(common) = self.common.take() {
            let lanes = spread(self.spoken_for());
            for i in 0..LANES {
                self.scattered[i] = if lanes[i] != 0 { common } else { self.scattered[i] };
            }
        }
    }

    /// The program counter of a lane.
    #[inline(always)]
    pub fn pc(&self, lane: usize) -> u64 {
        match self.common {
            Some(common) if bit(self.spoken_for(), lane) => common,
            _ => self.scattered[lane & 31],
        }
    }

    /// The address at which all lanes that could run stand, if that is known and there are any.
    #[inline(always)]
    pub fn standing(&self) -> Option<u64> {
        if self.runnable() == 0 { None } else { self.common }
    }

    /// Sends lanes that could run to an address.
    #[inline]
    pub fn set_pc(&mut self, mask: u32, pc: u64) {
        if mask == 0 {
            return;
        }
        if mask == self.runnable() {
            self.common = Some(pc);
            return;
        }
        self.scatter();
        for lane in each(mask) {
            self.scattered[lane] = pc;
        }
    }

    /// Lets some of the lanes that stand together wait at another address, and the rest go on from `pc`. Whether the
    /// rest are all that could run now.
    pub fn park(&mut self, mask: u32, at: u64, code: u8, pc: u64) -> bool {
        let rest = self.runnable() & !mask;
        for lane in each(mask) {
            self.scattered[lane] = at;
            self.waits[lane] = code;
        }
        self.waiting |= mask;
        self.exclusive &= !mask;
        self.common = Some(pc);
        self.converge();
        self.runnable() == rest
    }

    /// The lanes to run next, with their common program counter: lowest first among those that did not yield.
    #[inline]
    pub fn select(&mut self) -> Option<(u64, u32)> {
        let runnable = self.runnable();
        if runnable == 0 {
            return None;
        }
        if let Some(pc) = self.common {
            return Some((pc, runnable));
        }
        if let Some(lane) = self.in_turn() {
            return Some((self.scattered[lane], self.group(runnable, lane)));
        }
        let mut candidates = runnable & !self.yielded;
        if candidates == 0 {
            self.yielded = 0;
            candidates = runnable;
        }
        let lane = each(candidates).min_by_key(|lane| self.scattered[*lane])?;
        Some((self.scattered[lane], self.group(runnable, lane)))
    }

    /// As [`Warp::select`], but any of the groups, by a number.
    pub fn select_any(&mut self, choice: u64) -> Option<(u64, u32)> {
        let runnable = self.runnable();
        if runnable == 0 {
            return None;
        }
        if let Some(pc) = self.common {
            return Some((pc, runnable));
        }
        let lane = match self.in_turn() {
            Some(lane) => lane,
            None => each(runnable).nth((choice % u64::from(runnable.count_ones())) as usize)?,
        };
        Some((self.scattered[lane], self.group(runnable, lane)))
    }

    /// A lane of those that are to run before others, if any still are.
    fn in_turn(&mut self) -> Option<usize> {
        self.turn &= self.exclusive & self.runnable();
        if self.turn == 0 || self.turns == 0 {
            return None;
        }
        self.turns -= 1;
        Some(first(self.turn))
    }

    /// The lanes that stand where one stands and may run with it.
    fn group(&mut self, runnable: u32, with: usize) -> u32 {
        let pc = self.scattered[with & 31];
        let mut mask = 0;
        for lane in 0..LANES {
            mask |= u32::from(self.scattered[lane] == pc) << lane;
        }
        let mut group = mask & runnable;
        if group & self.exclusive != 0 {
            group &= if bit(self.exclusive, with) {
                self.exclusive & ballot(|i| self.members[i] == self.members[with & 31])
            } else {
                !self.exclusive
            };
            if group & self.exclusive & !self.turn != 0 {
                (self.turn, self.turns) = (group, TURNS);
            }
        }
        if group == runnable {
            self.common = Some(pc);
        }
        group
    }

    /// The lowest address above `pc` at which lanes outside `group` stand: where it meets them.
    pub fn meeting(&self, group: u32, pc: u64) -> u64 {
        let others = self.runnable() & !group;
        each(others).map(|lane| self.pc(lane)).filter(|other| *other > pc).min().unwrap_or(u64::MAX)
    }

    /// Lets lanes wait.
    #[inline]
    pub fn wait(&mut self, mask: u32, code: u8) {
        if mask == self.alive {
            self.waits = [code; LANES];
        } else {
            let (common, rest) = (self.common, self.runnable() & !mask);
            self.scatter();
            if rest != 0 {
                self.common = common;
            }
            for lane in each(mask) {
                self.waits[lane] = code;
            }
        }
        self.waiting |= mask;
        self.exclusive &= !mask;
    }

    /// Keeps lanes that wait in a WARPSYNC from running with any but its members.
    pub fn keep_apart(&mut self, mask: u32) {
        self.exclusive |= mask;
    }

    /// Ends the waiting of lanes.
    #[inline]
    pub fn wake(&mut self, mask: u32) {
        if mask == 0 {
            return;
        }
        if mask != self.alive {
            self.scatter();
        }
        self.waiting &= !mask;
    }

    /// Lanes that wait for `code`.
    #[inline]
    pub fn at(&self, code: u8) -> u32 {
        let mut mask = 0;
        for lane in 0..LANES {
            mask |= u32::from(self.waits[lane] == code) << lane;
        }
        mask & self.waiting & self.alive
    }

    /// Releases every convergence point whose live members have all arrived.
    pub fn converge(&mut self) {
        let mut left = self.waiting & self.alive;
        while left != 0 {
            let lane = first(left);
            left &= left - 1;
            let code = self.waits[lane];
            if code > WARPSYNC || !bit(self.waiting, lane) {
                continue;
            }
            let members = match self.convergence.get(usize::from(code)) {
                Some(barrier) => barrier[lane],
                None => self.members[lane],
            } & self.alive;
            let mut arrived = self.at(code);
            // A lane that called something may wait there at a barrier of the same number, with others; and lanes of
            // several groups in a WARPSYNC of their own each.
            arrived &= match self.convergence.get(usize::from(code)) {
                Some(barrier) => ballot(|i| (barrier[i] ^ barrier[lane]) & self.alive == 0),
                None => ballot(|i| (self.members[i] ^ self.members[lane]) & self.alive == 0),
            };
            if members & !arrived == 0 {
                self.wake((members | 1 << lane) & arrived);
            } else {
                // Others who wait for the same lanes wait on.
                let same = match self.convergence.get(usize::from(code)) {
                    Some(barrier) => ballot(|i| barrier[i] == barrier[lane]),
                    None => ballot(|i| self.members[i] == self.members[lane]),
                };
                left &= !(same & arrived);
            }
        }
    }

    /// Lanes give way, and others wait at convergence barriers. Compilers let the holder of a lock wait there for those
    /// that spin for it: a barrier at which all that are missing have given way, again and again, is one that those who
    /// wait leave without them.
    pub fn relieve(&mut self, active: u32) {
        self.patience += 1;
        self.given_way |= active;
        if self.patience < PATIENCE {
            return;
        }
        for code in 0..WARPSYNC {
            let waiting = self.at(code);
            let barrier = self.convergence[usize::from(code)];
            let given_way = self.given_way & self.runnable();
            let relieved = ballot(|i| {
                let missing = barrier[i] & self.alive & !waiting;
                bit(waiting, i) && missing & !given_way == 0
            });
            if relieved != 0 {
                for lane in each(self.alive & !relieved) {
                    self.convergence[usize::from(code)][lane] &= !relieved;
                }
                self.wake(relieved);
                (self.patience, self.given_way) = (0, 0);
            }
        }
    }

    /// Ends all lanes.
    pub fn end(&mut self) {
        (self.alive, self.waiting, self.common) = (0, 0, None);
    }

    /// Ends lanes.
    pub fn exit(&mut self, mask: u32) {
        self.alive &= !mask;
        self.waiting &= self.alive;
        if self.waiting == self.alive {
            // Those that wait wrote down where they stand.
            self.common = None;
        }
        if self.waiting != 0 {
            self.converge();
        }
    }
}

const _: () = assert!(RowIndex::SINK.0 < RowIndex::REGISTERS);
