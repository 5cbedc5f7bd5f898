//! Instructions that move program counters or let lanes wait.

use super::block::{BARRIERS, BarrierForm, Block};
use super::core::{Core, TEAM};
use super::fault::FaultKind;
use super::lanes::{each, first};
use super::launch::Prepared;
use super::micro::{Micro, PredicateIn, RowIndex};
use super::warp::{WARPSYNC, Warp};

/// What to do, in [`Micro::extra`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Step {
    Exit,
    /// To the register pair plus the payload.
    Jump,
    /// To the payload, if the lanes at hand are not the live ones of a uniform register, or if they are.
    BranchIfDivergent,
    Bsync,
    Break,
    Warpsync,
    Yield,
    Nanosleep,
    BarSync,
    BarArrive,
    BarPopc,
    BarAnd,
    BarOr,
    ClusterArrive,
    ClusterWait,
}

impl Step {
    const ALL: [Self; 15] = [
        Self::Exit,
        Self::Jump,
        Self::BranchIfDivergent,
        Self::Bsync,
        Self::Break,
        Self::Warpsync,
        Self::Yield,
        Self::Nanosleep,
        Self::BarSync,
        Self::BarArrive,
        Self::BarPopc,
        Self::BarAnd,
        Self::BarOr,
        Self::ClusterArrive,
        Self::ClusterWait,
    ];
}

/// Flag of a BAR's payload: the barrier is in the first source. Below: the barrier in 15:0, the threads in 31:16.
const BAR_INDEX: u64 = 1 << 32;
/// Flag of a BAR's payload: the threads are in the first source.
const BAR_THREADS: u64 = 1 << 33;

/// Where BAR's numbers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BarOperands {
    Immediate {
        index: u32,
        threads: u32,
    },
    /// The first source holds the barrier.
    Index {
        threads: u32,
    },
    /// The first source holds the threads in 27:16.
    Threads {
        index: u32,
    },
    /// The first source holds the barrier in 3:0 and the threads in 27:16.
    IndexAndThreads,
}

impl BarOperands {
    /// As a payload.
    pub fn code(self) -> u64 {
        match self {
            Self::Immediate { index, threads } => u64::from(index) | u64::from(threads) << 16,
            Self::Index { threads } => u64::from(threads) << 16 | BAR_INDEX,
            Self::Threads { index } => u64::from(index) | BAR_THREADS,
            Self::IndexAndThreads => BAR_INDEX | BAR_THREADS,
        }
    }
}

/// How the group of lanes goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// All of it, at this address.
    Together(u64),
    /// Program counters are set; the warp chooses whom to run next.
    Apart,
}

fn predicate(warp: &Warp, operand: PredicateIn) -> u32 {
    let value = warp.predicates[usize::from(operand.0 & 15)];
    if operand.0 & 16 != 0 { !value } else { value }
}

/// A register of a control instruction: never one of the pool.
fn row(warp: &Warp, index: RowIndex) -> Result<&[u32; 32], FaultKind> {
    warp.rows.get(usize::from(index.0)).map(|row| &row.0).ok_or(FaultKind::InvalidPc)
}

/// Whether an instruction ends all lanes that come to it.
pub(super) fn ends(op: &Micro) -> bool {
    op.extra == Step::Exit as u8 && op.kind == 0 && op.from[0] == PredicateIn::TRUE
}

/// Whether an instruction is a BAR at which every thread of the block waits, by a number that it names itself.
fn meets_all(op: &Micro, launch: &Prepared) -> Option<usize> {
    let plain = op.extra == Step::BarSync as u8 && op.payload & (BAR_INDEX | BAR_THREADS) == 0;
    let (barrier, threads) = (op.payload as usize & 0xffff, op.payload as u32 >> 16);
    let there = barrier < BARRIERS.min(launch.launch.barriers as usize);
    (plain && threads == 0 && there).then_some(barrier)
}

/// Whether a team goes on right behind a control instruction, since it is a barrier for all threads of the block, and they are
/// the team. `masks` are the lanes of each member that come to it.
pub(super) fn passes(core: &mut Core<'_>, op: &Micro, masks: &[u32; TEAM]) -> bool {
    let Some(barrier) = meets_all(op, core.launch) else { return false };
    core.team.count == core.alive
        && core.cta.is_unused(barrier)
        && (0..core.team.count).all(|member| {
            core.enter(member);
            let group = core.team.groups[member];
            group == masks[member] && core.warp().alive == group
        })
}

/// Executes a control instruction at `pc` for `mask`, the lanes of `group` whose guard holds.
pub(super) fn step(
    block: &mut Block,
    index: usize,
    launch: &Prepared,
    op: &Micro,
    pc: u64,
    mask: u32,
    group: u32,
) -> Result<After, FaultKind> {
    let next = pc.wrapping_add(16);
    let warp = &mut block.warps[index];
    let active = mask & predicate(warp, op.from[0]);
    let step = Step::ALL.get(usize::from(op.extra)).copied().unwrap_or(Step::Exit);
    match step {
        Step::Exit => {
            warp.set_pc(group, next);
            if active != 0 {
                block.exit(index, active);
            }
        }
        Step::Jump => {
            let (low, high) = (row(warp, op.a)?, row(warp, op.a.plus(1))?);
            let target =
                |lane: usize| (u64::from(low[lane]) | u64::from(high[lane]) << 32).wrapping_add(op.payload);
            let to = target(first(active));
            let mut bad = 0;
            let mut same = true;
            for lane in each(active) {
                bad |= target(lane) & 15;
                same &= target(lane) == to;
            }
            if bad != 0 {
                return Err(FaultKind::InvalidPc);
            }
            if active == group && same && (to > pc || group == warp.runnable()) {
                return Ok(After::Together(to));
            }
            if to <= pc {
                warp.yielded |= active;
            }
            let (low, high) = (row(warp, op.a)?, row(warp, op.a.plus(1))?);
            let target =
                |lane: usize| (u64::from(low[lane]) | u64::from(high[lane]) << 32).wrapping_add(op.payload);
            let mut targets = [0; 32];
            each(active).for_each(|lane| targets[lane] = target(lane));
            warp.set_pc(group, next);
            for lane in each(active) {
                warp.set_pc(1 << lane, targets[lane]);
            }
        }
        Step::BranchIfDivergent => {
            let value = row(warp, op.a)?[0];
            let (invert, converged) = (op.to[0].0 & 1 != 0, op.to[0].0 & 2 != 0);
            let members = if invert { !value } else { value };
            let together = group == members & warp.alive;
            if together != converged || active == 0 {
                return Ok(After::Together(next));
            }
            if active == group {
                return Ok(After::Together(op.payload));
            }
            warp.set_pc(group, next);
            warp.set_pc(active, op.payload);
        }
        Step::Bsync => {
            if active == warp.alive {
                // Whoever else is expected has exited.
                return Ok(After::Together(next));
            }
            warp.set_pc(group, next);
            warp.wait(active, op.payload as u8 & 15);
            warp.converge();
        }
        Step::Break => {
            warp.set_pc(group, next);
            let barrier = &mut warp.convergence[op.payload as usize & 15];
            let members = each(active).fold(0, |all, lane| all | barrier[lane]);
            each(members).for_each(|lane| barrier[lane] &= !active);
            warp.converge();
        }
        Step::Warpsync => {
            let members = if op.to[0].0 & 1 == 0 { [op.payload as u32; 32] } else { *row(warp, op.a)? };
            let exclusive = op.to[0].0 & 2 != 0;
            let alike = !exclusive || each(active).all(|lane| members[lane] == members[first(active)]);
            if active == warp.alive && alike {
                return Ok(After::Together(next));
            }
            warp.set_pc(group, next);
            for lane in each(active) {
                warp.members[lane] = members[lane] | 1 << lane;
            }
            warp.wait(active, WARPSYNC);
            if exclusive {
                warp.keep_apart(active);
            }
            warp.converge();
        }
        Step::Yield | Step::Nanosleep => {
            if step == Step::Nanosleep {
                block.cta.spins += NAP;
            }
            if warp.waiting != 0 {
                warp.relieve(active);
            }
            if group == warp.runnable() && step == Step::Yield {
                return Ok(After::Together(next));
            }
            warp.set_pc(group, next);
            warp.yielded |= active;
        }
        // Measured on H200: without clusters there is no such instruction.
        Step::ClusterArrive | Step::ClusterWait if launch.cluster == 1 => {
            return Err(FaultKind::IllegalForm("the launch has no clusters"));
        }
        Step::ClusterArrive => {
            block.arrive_at_cluster(index, mask & group);
            return Ok(After::Together(next));
        }
        Step::ClusterWait => {
            warp.set_pc(group, next);
            if block.wait_for_cluster(index, mask & group) {
                return Ok(After::Together(next));
            }
        }
        Step::BarSync | Step::BarArrive | Step::BarPopc | Step::BarAnd | Step::BarOr => {
            let (mut barrier, mut threads) = (op.payload as u32 & 0xffff, op.payload as u32 >> 16);
            if op.payload & (BAR_INDEX | BAR_THREADS) != 0 {
                let value = row(warp, op.a)?[first(mask)];
                if op.payload & BAR_INDEX != 0 {
                    barrier = value & 15;
                }
                if op.payload & BAR_THREADS != 0 {
                    threads = value >> 16 & 0xfff;
                }
            }
            let barriers = launch.launch.barriers.min(BARRIERS as u32);
            if barrier >= barriers || !threads.is_multiple_of(32) {
                return Err(FaultKind::IllegalBarrier { index: barrier, threads, barriers });
            }
            let form = match step {
                Step::BarArrive => BarrierForm::Arrive,
                Step::BarPopc => BarrierForm::ReducePopc,
                Step::BarAnd => BarrierForm::ReduceAnd,
                Step::BarOr => BarrierForm::ReduceOr,
                _ => BarrierForm::Sync,
            };
            warp.set_pc(group, next);
            block.bar(index, mask, form, barrier as usize, threads, active);
        }
    }
    Ok(After::Apart)
}

/// What NANOSLEEP takes off the budget.
const NAP: u32 = 4096;
