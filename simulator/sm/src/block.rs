//! A block (CTA): its warps, what they share, and their barriers.

use std::sync::Arc;

use super::cluster::{Cluster, RANK};
use super::core::Team;
use super::lanes::{Lanes, count, each};
use super::launch::Prepared;
use super::warp::{BARRIER, CLUSTER, Warp};

/// Named barriers of a block.
pub(super) const BARRIERS: usize = 16;

/// One barrier.
#[derive(Clone, Copy, Debug)]
struct Barrier {
    /// Threads that wait here, those of a warp that is here as a whole counted as 32.
    waiting: u32,
    /// Threads that arrived without waiting.
    arrived: u32,
    /// Threads that BAR named; 0 for all of the block.
    threads: u32,
    /// Threads whose predicate held.
    popc: u32,
    /// Whether all predicates held.
    and: bool,
    /// What those who wait want to know.
    form: BarrierForm,
}

impl Barrier {
    const EMPTY: Self =
        Self { waiting: 0, arrived: 0, threads: 0, popc: 0, and: true, form: BarrierForm::Sync };
}

/// What BAR does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BarrierForm {
    /// Waits.
    Sync,
    /// Arrives and goes on.
    Arrive,
    /// Waits; the result is how many predicates held.
    ReducePopc,
    /// Waits; the result is whether all predicates held.
    ReduceAnd,
    /// Waits; the result is whether one predicate held.
    ReduceOr,
}

/// What the warps of a block share.
#[derive(Debug)]
pub(crate) struct Cta {
    /// Shared memory, in rows for the sake of alignment. Zero-length where the launch has none.
    pub(super) shared: Vec<Lanes>,
    /// Block index.
    pub index: [u32; 3],
    /// Number of the block in its grid.
    pub number: u64,
    barriers: [Barrier; BARRIERS],
    /// Bits of the barriers at which somebody waits.
    busy: u32,
    /// Result of the last BAR.RED.
    pub result: u32,
    /// The cluster that the block is in, if only of itself.
    pub cluster: Arc<Cluster>,
    /// Where the block's own shared memory lies in that of the cluster: its number in it, in bits 31:24.
    pub window: u32,
    /// The phase of the cluster's barrier that warps wait for the end of.
    awaited: Option<u32>,
    /// Budget that instructions which look like waiting have used up, in this turn.
    pub spins: u32,
}

impl Cta {
    /// Whether nobody has come to a barrier.
    pub(super) fn is_unused(&self, index: usize) -> bool {
        self.busy >> index & 1 == 0 && self.barriers[index].arrived == 0
    }
}

/// A resident block.
#[derive(Debug)]
pub(super) struct Block {
    pub warps: Vec<Warp>,
    pub cta: Cta,
    /// Warps with live lanes.
    pub alive: usize,
    /// Only named so far: see [`Block::begin`].
    pub named: bool,
}

impl Block {
    /// Memory for a block of the launch.
    pub fn new(launch: &Prepared) -> Self {
        let shape = launch.shape();
        Self {
            warps: (0..shape.warps)
                .map(|index| Warp::new(index, shape.registers, shape.local_bytes))
                .collect(),
            cta: Cta {
                shared: vec![Lanes::splat(0); shape.shared_bytes.div_ceil(128) as usize],
                index: [0; 3],
                number: 0,
                barriers: [Barrier::EMPTY; BARRIERS],
                busy: 0,
                result: 0,
                cluster: Arc::new(Cluster::new(launch.threads, std::iter::once(std::ptr::null_mut()))),
                window: 0,
                awaited: None,
                spins: 0,
            },
            alive: 0,
            named: true,
        }
    }

    /// Makes this memory the block of that number, which is still to begin.
    pub fn name(&mut self, launch: &Prepared, number: u64) {
        self.cta.index = launch.block_index(number);
        self.cta.number = number;
        self.named = true;
    }

    /// Begins with all warps at the program's first instruction. With `clear` nothing is left of the block before.
    pub fn begin(&mut self, launch: &Prepared, clear: bool) {
        self.named = false;
        self.cta.barriers = [Barrier::EMPTY; BARRIERS];
        self.cta.busy = 0;
        self.cta.result = 0;
        self.alive = self.warps.len();
        let threads = launch.threads;
        for warp in &mut self.warps {
            if clear {
                warp.clear();
            }
            warp.start(threads, launch.launch.program_address);
        }
        if clear {
            self.cta.shared.fill(Lanes::splat(0));
        }
        let shared = self.cta.shared.as_mut_ptr();
        let again =
            Arc::get_mut(&mut self.cta.cluster).is_some_and(|cluster| cluster.restart(threads, shared));
        if !again {
            self.cta.cluster = Arc::new(Cluster::new(threads, std::iter::once(shared)));
        }
        (self.cta.window, self.cta.awaited) = (0, None);
    }

    /// Makes blocks that were started the blocks of a cluster, in the order of their numbers in it.
    pub fn join(blocks: &mut [Self], launch: &Prepared) {
        let shared = blocks.iter_mut().map(|block| block.cta.shared.as_mut_ptr());
        let cluster = Arc::new(Cluster::new(launch.threads, shared));
        for (rank, block) in (0..).zip(blocks) {
            block.cta.cluster = Arc::clone(&cluster);
            block.cta.window = rank << RANK;
        }
    }

    /// All threads of the block have exited. Whether all blocks of its cluster have ended.
    pub fn end(&self) -> bool {
        self.cta.cluster.end(self.cta.window >> RANK)
    }

    /// UCGABAR_ARV by lanes of a warp.
    pub fn arrive_at_cluster(&mut self, warp: usize, mask: u32) {
        let phase = self.cta.cluster.phase();
        let warp = &mut self.warps[warp];
        if warp.cluster_phase != phase {
            (warp.cluster_phase, warp.cluster_arrived) = (phase, 0);
        }
        let new = mask & !warp.cluster_arrived;
        warp.cluster_arrived |= new;
        self.cta.cluster.arrive(new.count_ones());
    }

    /// UCGABAR_WAIT by lanes of a warp, whose program counters are already past it if they have to wait. Whether they
    /// need not.
    pub fn wait_for_cluster(&mut self, warp: usize, mask: u32) -> bool {
        let phase = self.cta.cluster.phase();
        let warp = &mut self.warps[warp];
        if warp.cluster_phase != phase || warp.cluster_arrived & mask == 0 {
            return true;
        }
        warp.wait(mask, CLUSTER);
        self.cta.awaited = Some(phase);
        false
    }

    /// Lets warps go on that wait for a phase of the cluster's barrier which is over.
    #[inline]
    pub fn look_at_cluster(&mut self) {
        if self.cta.awaited.is_some_and(|awaited| awaited != self.cta.cluster.phase()) {
            self.cta.awaited = None;
            for warp in &mut self.warps {
                let here = warp.at(CLUSTER);
                warp.wake(here);
            }
        }
    }

    /// Counts again who waits at a barrier.
    fn recount(&mut self, index: usize) {
        let code = BARRIER + index as u8;
        self.cta.barriers[index].waiting = self
            .warps
            .iter()
            .map(|warp| match warp.at(code) {
                0 => 0,
                here if here == warp.alive => 32,
                here => here.count_ones(),
            })
            .sum();
    }

    /// Releases a barrier whose threads are all there. Warps that exited count as arrived.
    fn release(&mut self, index: usize) {
        let barrier = self.cta.barriers[index];
        let expected = if barrier.threads == 0 { 32 * self.alive as u32 } else { barrier.threads };
        let here = barrier.waiting + barrier.arrived;
        if here == 0 || here < expected {
            return;
        }
        let code = BARRIER + index as u8;
        for warp in &mut self.warps {
            if warp.waiting != 0 {
                let here = warp.at(code);
                warp.wake(here);
            }
        }
        match barrier.form {
            BarrierForm::ReducePopc => self.cta.result = barrier.popc,
            BarrierForm::ReduceAnd => self.cta.result = u32::from(barrier.and),
            BarrierForm::ReduceOr => self.cta.result = u32::from(barrier.popc != 0),
            BarrierForm::Sync | BarrierForm::Arrive => {}
        }
        self.cta.barriers[index] = Barrier::EMPTY;
        self.cta.busy &= !(1 << index);
    }

    /// BAR by lanes of a warp, whose program counters are already past it. `value` is the predicate.
    pub fn bar(&mut self, warp: usize, mask: u32, form: BarrierForm, index: usize, threads: u32, value: u32) {
        let alive = self.warps[warp].alive;
        let count = if mask == alive { 32 } else { mask.count_ones() };
        let state = &mut self.cta.barriers[index];
        state.threads = threads;
        state.popc += (value & mask).count_ones();
        state.and &= value & mask == mask;
        if form == BarrierForm::Arrive {
            state.arrived += count;
        } else {
            state.form = form;
            state.waiting += count;
            self.cta.busy |= 1 << index;
            self.warps[warp].wait(mask, BARRIER + index as u8);
            if mask != alive {
                self.recount(index);
            }
        }
        self.release(index);
    }

    /// Ends the lanes of a team, which came to an EXIT before `next`.
    pub fn exit_team(&mut self, team: &Team, next: u64) {
        let whole = |(index, group): (usize, u32)| self.warps[index].alive == group;
        if self.cta.busy == 0 && team.members().all(whole) {
            // Nobody is left in their warps, and nobody waits for them.
            let (mut threads, mut arrived) = (0, 0);
            let phase = self.cta.cluster.phase();
            for (index, group) in team.members() {
                let warp = &mut self.warps[index];
                threads += count(group);
                if warp.cluster_arrived != 0 && warp.cluster_phase == phase {
                    arrived += count(warp.cluster_arrived & group);
                }
                warp.end();
            }
            self.alive -= team.count;
            self.cta.cluster.leave(threads, arrived);
            return;
        }
        for (index, group) in team.members() {
            self.warps[index].set_pc(group, next);
            self.exit(index, group);
        }
    }

    /// Lanes of a warp that exit do not come to the cluster's barrier.
    #[inline(always)]
    fn leave_cluster(&mut self, warp: usize, mask: u32) {
        let cluster = &self.cta.cluster;
        let warp = &mut self.warps[warp];
        let arrived = if warp.cluster_phase == cluster.phase() { warp.cluster_arrived & mask } else { 0 };
        cluster.leave((mask & warp.alive).count_ones(), arrived.count_ones());
        warp.cluster_arrived &= !mask;
    }

    /// Ends lanes of a warp, and releases the barriers that waited only for them.
    pub fn exit(&mut self, warp: usize, mask: u32) {
        self.leave_cluster(warp, mask);
        self.warps[warp].exit(mask);
        if self.warps[warp].alive == 0 {
            self.alive -= 1;
        }
        if self.alive == 0 {
            return;
        }
        for index in each(self.cta.busy) {
            self.recount(index);
            self.release(index);
        }
    }
}
