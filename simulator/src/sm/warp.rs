//! One warp's state: registers, program counters, convergence.

/// A lane that waits for nothing.
pub(super) const RUNNING: u8 = 0xff;
/// A lane that waits in WARPSYNC.
pub(super) const WARPSYNC: u8 = 16;
/// A lane that waits at barrier 0; the others follow.
pub(super) const BARRIER: u8 = 32;

/// 32 lanes.
pub(super) type Lanes = [u32; 32];

#[derive(Debug)]
pub(super) struct Warp {
    pub registers: Vec<Lanes>,
    pub uniform: [u32; 64],
    /// One bit per lane.
    pub predicates: [u32; 8],
    pub uniform_predicates: [u32; 8],
    pub pc: [u64; 32],
    pub alive: u32,
    /// Per lane what it waits for.
    pub waits: [u8; 32],
    pub waiting: u32,
    /// B0 to B15 as each lane sees them: who meets there.
    pub convergence: [Lanes; 16],
    /// Members of the WARPSYNC that a lane waits in.
    pub members: Lanes,
    /// Lanes that give way to others.
    pub yielded: u32,
    pub index: u32,
    pub thread: [[u32; 3]; 32],
    pub local: Vec<u8>,
}

impl Warp {
    pub fn new(index: u32, block: [u32; 3], registers: u32, local: usize, pc: u64) -> Self {
        let threads = block[0] * block[1] * block[2];
        let first = index * 32;
        let live = (threads - first).min(32);
        let mut thread = [[0; 3]; 32];
        for (lane, id) in thread.iter_mut().enumerate() {
            let t = first + lane as u32;
            *id = [t % block[0], t / block[0] % block[1], t / block[0] / block[1]];
        }
        let mut predicates = [0; 8];
        predicates[7] = u32::MAX;
        Self {
            registers: vec![[0; 32]; registers as usize],
            uniform: [0; 64],
            predicates,
            uniform_predicates: predicates,
            pc: [pc; 32],
            alive: if live == 32 { u32::MAX } else { (1 << live) - 1 },
            waits: [RUNNING; 32],
            waiting: 0,
            convergence: [[0; 32]; 16],
            members: [0; 32],
            yielded: 0,
            index,
            thread,
            local: vec![0; local * 32],
        }
    }

    /// The lanes to run next, with their common program counter: lowest first among those that did not yield.
    #[inline]
    pub fn select(&mut self) -> Option<(u64, u32)> {
        let runnable = self.alive & !self.waiting;
        if runnable == 0 {
            return None;
        }
        let mut candidates = runnable & !self.yielded;
        if candidates == 0 {
            self.yielded = 0;
            candidates = runnable;
        }
        let mut pc = u64::MAX;
        for lane in 0..32 {
            if candidates >> lane & 1 != 0 && self.pc[lane] < pc {
                pc = self.pc[lane];
            }
        }
        let mut mask = 0;
        for lane in 0..32 {
            mask |= u32::from(self.pc[lane] == pc) << lane;
        }
        Some((pc, mask & runnable))
    }

    pub fn set_pc(&mut self, mask: u32, pc: u64) {
        for lane in 0..32 {
            if mask >> lane & 1 != 0 {
                self.pc[lane] = pc;
            }
        }
    }

    pub fn wait(&mut self, mask: u32, code: u8) {
        self.waiting |= mask;
        for lane in 0..32 {
            if mask >> lane & 1 != 0 {
                self.waits[lane] = code;
            }
        }
    }

    pub fn wake(&mut self, mask: u32) {
        self.waiting &= !mask;
        for lane in 0..32 {
            if mask >> lane & 1 != 0 {
                self.waits[lane] = RUNNING;
            }
        }
    }

    /// Releases every convergence point whose live members have all arrived.
    pub fn converge(&mut self) {
        for lane in 0..32 {
            let code = self.waits[lane];
            if self.waiting >> lane & 1 == 0 || code > WARPSYNC {
                continue;
            }
            let members = match self.convergence.get(code as usize) {
                Some(barrier) => barrier[lane],
                None => self.members[lane],
            } & self.alive;
            let arrived = self.at(code);
            if members & !arrived == 0 {
                self.wake((members | 1 << lane) & arrived);
            }
        }
    }

    /// Lanes that wait for `code`.
    pub fn at(&self, code: u8) -> u32 {
        let mut mask = 0;
        for lane in 0..32 {
            mask |= u32::from(self.waits[lane] == code) << lane;
        }
        mask & self.waiting & self.alive
    }

    pub fn exit(&mut self, mask: u32) {
        self.alive &= !mask;
        self.waiting &= self.alive;
        self.converge();
    }
}
