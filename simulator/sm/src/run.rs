//! The innermost loop: micro-operations of one page, one after the other, for warps that stand together.
//!
//! Handlers form chains: each calls the next one itself (see [`chain`]), and comes back here only where something has to
//! be decided: at a branch, or the end. A loop that calls every handler from one place is more than twice as
//! slow, because processors predict an indirect jump by the place it is at.

use super::code::{PAGE_BYTES, PAGE_CODE};
use super::control;
use super::core::{Core, TEAM, Team};
use super::micro::{Flow, Micro};

/// Where a run of micro-operations stands.
#[derive(Debug)]
pub(super) struct Run {
    /// Whether nobody else of the warps could run: branches are followed within the page.
    pub whole: bool,
    /// Address of the page.
    pub start: u64,
    /// Number of the micro-operation in the page: the first, and in the end the one that ended the run.
    pub at: usize,
    /// Number at which the run ends.
    pub stop: usize,
    /// Instructions after which a step back ends the run.
    pub left: i64,
    /// Instructions that a warp which stayed executed.
    pub executed: i64,
    /// Instructions executed by all.
    pub instructions: u64,
    /// Lanes in which they were executed.
    pub lanes: u64,
    /// Lanes of each member in which the last one was executed, or, of a branch, was taken.
    pub masks: [u32; TEAM],
}

/// The part of [`Core`] that chains of handlers need.
#[derive(Debug)]
pub(crate) struct Chain {
    /// First of the page.
    code: *const Micro,
    /// Where the run ends.
    stop: *const Micro,
    /// Where a chain ended.
    at: *const Micro,
    /// Address of the page.
    page: u64,
    /// Whether branches are followed within the page.
    follows: bool,
    /// Instructions after which no step back is followed.
    left: i64,
    /// Steps back that the chain may still follow.
    back: u32,
    count: Count,
}

impl Chain {
    /// Before a run.
    pub const NONE: Self = Self {
        code: std::ptr::null(),
        stop: std::ptr::null(),
        at: std::ptr::null(),
        page: 0,
        follows: false,
        left: 0,
        back: 0,
        count: Count { first: 0, before: 0, settled: 0 },
    };

    /// Whether so many micro-operations from `op` on lie before the end of the run.
    #[inline(always)]
    pub(super) fn holds(&self, op: *const Micro, length: usize) -> bool {
        op.wrapping_add(length) <= self.stop
    }

    /// The micro-operation so many behind `op`, if the chain goes on with it.
    #[inline(always)]
    pub(super) fn further(&self, op: &Micro, count: usize) -> Option<&Micro> {
        let further = std::ptr::from_ref(op).wrapping_add(count);
        // SAFETY: it lies before the end of the run.
        (further < self.stop && !ends_chain(further)).then(|| unsafe { &*further })
    }

    /// Whether so many micro-operations from `op` on may be gone around: nobody is to be met, and there is time.
    pub(super) fn goes_around(&self, op: *const Micro, length: usize) -> bool {
        self.follows && self.holds(op, length) && self.count.at(self.number(op)) < self.left
    }

    /// A loop from `op` on was left behind its end, or will be, after so many instructions, which are counted elsewhere.
    pub(super) fn went_around(&mut self, op: *const Micro, length: usize, instructions: i64) {
        let number = self.number(op);
        self.count.before = self.count.at(number) + instructions;
        self.count.first = number + length;
        self.count.settled += instructions;
    }

    /// The chain ends at the micro-operation so many behind `op`.
    pub(super) fn end_at(&mut self, op: *const Micro, further: usize) {
        self.at = op.wrapping_add(further);
    }

    /// The chain ends at the micro-operation of that number in the page.
    pub(super) fn end_in_page(&mut self, number: usize) {
        self.at = self.code.wrapping_add(number);
    }

    /// Number in the page of one of its micro-operations, or of the end.
    pub(super) fn number(&self, op: *const Micro) -> usize {
        op.addr().wrapping_sub(self.code.addr()) / size_of::<Micro>()
    }

    /// The micro-operation to which all lanes of the team branch from `op`, if the chain may go on there.
    fn target(&mut self, op: &Micro) -> Option<*const Micro> {
        let at = self.number(op);
        let offset = op.payload.wrapping_sub(self.page);
        if !self.follows || offset >= PAGE_BYTES || offset & 15 != 0 {
            return None;
        }
        let to = (offset / 16) as usize;
        let target = self.code.wrapping_add(to);
        if target >= self.stop {
            return None;
        }
        if to <= at {
            // An eye on the budget at every step back.
            if self.back == 0 || self.count.at(at + 1) >= self.left {
                return None;
            }
            self.back -= 1;
        }
        self.count.jump(at, to);
        Some(target)
    }
}

/// Micro-operations after which a chain ends, as a power of two. It bounds the stack if the compiler makes calls of what
/// should be jumps.
const CHAIN: usize = 64;
/// Steps back that a chain follows before it ends, for the same reason.
const BACK: u32 = 8;

/// Whether a chain ends before the micro-operation.
#[inline(always)]
fn ends_chain(op: *const Micro) -> bool {
    op.addr() & (CHAIN * size_of::<Micro>() - 1) == 0
}

/// Goes on after a handler: with the next micro-operation.
///
/// # Safety
/// `op` is one of the run that [`Chain`] describes.
#[inline(always)]
pub(super) unsafe fn chain(core: &mut Core<'_>, op: &Micro, flow: Flow) -> Flow {
    let op = std::ptr::from_ref(op);
    if flow != Flow::Next {
        core.chain.at = op;
        return flow;
    }
    let next = op.wrapping_add(1);
    if next == core.chain.stop || ends_chain(next) {
        core.chain.at = next;
        return Flow::Next;
    }
    // SAFETY: the end of the run was looked at, so there is a next one, whose handler was chosen for this processor.
    unsafe {
        let next = &*next;
        (next.run)(core, next)
    }
}

/// Goes on after `length` micro-operations from `op` on, which were executed at once.
///
/// # Safety
/// They lie in the run that [`Chain`] describes.
#[inline(always)]
pub(super) unsafe fn go_on(core: &mut Core<'_>, op: &Micro, length: usize) -> Flow {
    let op = std::ptr::from_ref(op);
    let next = op.wrapping_add(length);
    let part = |op: *const Micro| op.addr() / (CHAIN * size_of::<Micro>());
    if next == core.chain.stop || part(op) != part(next) {
        core.chain.at = next;
        return Flow::Next;
    }
    // SAFETY: the end of the run was looked at, so there is a next one, whose handler was chosen for this processor.
    unsafe {
        let next = &*next;
        (next.run)(core, next)
    }
}

/// Executes one micro-operation that does not lie in the run.
///
/// # Safety
/// As for [`Core::new`]: it was lowered for the warps and the pool of `core`. It neither branches nor waits.
pub(super) unsafe fn alone(core: &mut Core<'_>, op: &Micro) -> Flow {
    let after = std::ptr::from_ref(op).wrapping_add(1);
    let stop = std::mem::replace(&mut core.chain.stop, after);
    // SAFETY: the caller's promise; the chain ends behind the one.
    let flow = unsafe { (op.run)(core, op) };
    core.chain.stop = stop;
    flow
}

/// Instructions and lanes since the team last changed.
#[derive(Debug)]
struct Count {
    /// Number of the micro-operation from which on is counted.
    first: usize,
    /// Instructions before that.
    before: i64,
    /// Of those, the ones that are in the sums of [`Run`].
    settled: i64,
}

impl Count {
    /// Instructions up to the micro-operation of that number, without it.
    fn at(&self, number: usize) -> i64 {
        self.before + (number as i64 - self.first as i64)
    }

    /// Goes on at `to` after the one at `at`.
    fn jump(&mut self, at: usize, to: usize) {
        (self.before, self.first) = (self.at(at + 1), to);
    }

    /// Adds what the team executed up to `end`, before it changes.
    fn settle(&mut self, team: &Team, state: &mut Run, end: usize) {
        let new = self.at(end) - self.settled;
        self.settled += new;
        state.instructions += new as u64 * team.count as u64;
        state.lanes += new as u64 * team.lanes();
    }
}

/// How a team comes out of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// All lanes go on behind it.
    Past,
    /// All lanes take it.
    Taken,
    /// Lanes of one warp part.
    Apart,
}

/// The lanes of each member that take a branch.
struct Branching {
    taken: [u32; TEAM],
    /// The way, if no warp's lanes part.
    way: Option<Way>,
    /// Lanes that the guard keeps from it.
    skipped: u64,
}

/// The same of the lanes that a compiled loop keeps.
fn lanes_around(core: &Core<'_>) -> Branching {
    let kept = core.around.remain.iter().zip(&core.team.groups).take(core.team.count);
    let all = kept.clone().all(|(remain, group)| remain == group);
    Branching { taken: core.around.remain, way: all.then_some(Way::Taken), skipped: 0 }
}

fn lanes_of_branch(core: &mut Core<'_>, op: &Micro) -> Branching {
    let mut branching = Branching { taken: [0; TEAM], way: None, skipped: 0 };
    let (mut all, mut none) = (true, true);
    for member in 0..core.team.count {
        core.enter(member);
        let group = core.team.groups[member & (TEAM - 1)];
        let guarded = core.guarded(op);
        if guarded != group {
            branching.skipped += u64::from((group & !guarded).count_ones());
        }
        let mut taken = guarded & core.predicate(op.from[0]);
        match op.extra {
            Micro::ANY if taken != 0 => taken = group,
            Micro::ALL if taken != group => taken = 0,
            _ => {}
        }
        branching.taken[member & (TEAM - 1)] = taken;
        all &= taken == group;
        none &= taken == 0;
    }
    branching.way = match (none, all) {
        (true, _) => Some(Way::Past),
        (_, true) => Some(Way::Taken),
        _ => None,
    };
    branching
}

/// The handler of branches: goes on at the target where all lanes take it and the run allows it, or behind the branch
/// where none does. Everything else is for [`run`].
///
/// # Safety
/// As for [`chain`].
pub(super) unsafe fn branch(core: &mut Core<'_>, op: &Micro) -> Flow {
    let Branching { way, skipped, .. } = lanes_of_branch(core, op);
    if way == Some(Way::Past) {
        core.skipped += skipped;
        // SAFETY: the caller's promise.
        return unsafe { chain(core, op, Flow::Next) };
    }
    if way == Some(Way::Taken)
        && let Some(target) = core.chain.target(op)
    {
        core.skipped += skipped;
        // SAFETY: the target lies in the page, before the end of the run; its handler was chosen for this processor.
        return unsafe {
            let target = &*target;
            (target.run)(core, target)
        };
    }
    core.chain.at = op;
    Flow::Branch
}

/// Whether a micro-operation is a BSYNC that every lane that comes to it takes part in; its barrier.
fn meeting(op: Option<&Micro>) -> Option<u8> {
    op.filter(|op| op.kind == Micro::BSYNC).map(|op| op.payload as u8 & 15)
}

/// Lets members whose lanes do not all go one way leave the team, until the others do. `at` is the branch.
#[cold]
#[inline(never)]
fn part(core: &mut Core<'_>, code: &[Micro], at: usize, state: &mut Run) -> Way {
    let target = code[at].payload;
    let next = state.start + 16 * (at as u64 + 1);
    core.chain.count.settle(&core.team, state, at + 1);
    let offset = target.wrapping_sub(state.start);
    let to = if offset < PAGE_BYTES { (offset / 16) as usize } else { PAGE_CODE };
    // Lanes that go where they would wait for others do so at once; the rest need not look back.
    if let Some(barrier) = meeting(code.get(to)) {
        let mut member = 0;
        while member < core.team.count {
            core.enter(member);
            let (group, taken) = (core.team.groups[member], state.masks[member]);
            if taken != 0 && taken != group {
                // The BSYNC was executed in these lanes.
                state.instructions += 1;
                state.lanes += u64::from(taken.count_ones());
                if !core.warp_mut().park(taken, target.wrapping_add(16), barrier, next) {
                    drop_member(core, state, member);
                    if core.team.count == 0 {
                        return Way::Apart;
                    }
                    continue;
                }
                core.team.groups[member] = group & !taken;
                state.masks[member] = 0;
            }
            member += 1;
        }
    }
    // Of those who go different ways the hindmost goes on, and the others will be met.
    let full = |core: &Core<'_>, state: &Run, member: usize| state.masks[member] == core.team.groups[member];
    let some_take = (0..core.team.count).any(|member| full(core, state, member));
    let some_pass = (0..core.team.count).any(|member| state.masks[member] == 0);
    let way = match (some_take, some_pass) {
        (false, false) => Way::Apart,
        (true, true) if target < next => Way::Taken,
        (_, true) => Way::Past,
        (true, false) => Way::Taken,
    };
    let mut member = 0;
    while member < core.team.count {
        core.enter(member);
        let (group, taken) = (core.team.groups[member], state.masks[member]);
        let stays = match way {
            Way::Taken => taken == group,
            Way::Past => taken == 0,
            Way::Apart => member == 0,
        };
        if stays {
            member += 1;
            continue;
        }
        core.warp_mut().set_pc(group & !taken, next);
        core.warp_mut().set_pc(taken, target);
        if taken != 0 && taken != group && target < next {
            core.warp_mut().yielded |= taken;
        }
        for pc in [next, target] {
            let number = (pc.wrapping_sub(state.start) / 16) as usize;
            if number > at {
                state.stop = state.stop.min(number);
            }
        }
        drop_member(core, state, member);
    }
    way
}

/// Takes a member out of the team.
fn drop_member(core: &mut Core<'_>, state: &mut Run, member: usize) {
    core.leave(member);
    state.masks[member] = state.masks[core.team.count & (TEAM - 1)];
}

/// Runs until `stop`, or until something other than going on is to be done; says what.
///
/// # Safety
/// As for [`Core::new`]: `code` was lowered for the warps and the pool of `core`.
pub(super) unsafe fn run(core: &mut Core<'_>, code: &[Micro], state: &mut Run) -> Flow {
    let Some(code) = code.get(..PAGE_CODE) else { return Flow::Next };
    let start = state.start;
    let mut at = state.at;
    let end = |stop: usize| code[..stop.min(PAGE_CODE)].as_ptr_range().end;
    core.chain = Chain {
        code: code.as_ptr(),
        stop: end(state.stop),
        page: start,
        follows: state.whole,
        left: state.left,
        count: Count { first: at, before: 0, settled: 0 },
        ..Chain::NONE
    };
    let flow = loop {
        if at >= state.stop {
            break Flow::Next;
        }
        let op = &code[at];
        core.chain.back = BACK;
        // SAFETY: the handler was chosen for this processor; see above for the operands and for the chain.
        let flow = unsafe { (op.run)(core, op) };
        // SAFETY: a chain ends at a micro-operation of the page, or one past the last.
        at = unsafe { core.chain.at.offset_from_unsigned(code.as_ptr()) };
        if flow == Flow::Next {
            continue;
        }
        let op = &code[at];
        if flow == Flow::Control {
            state.masks = core.masks(op);
            let masks = state.masks;
            if masks.iter().take(core.team.count).all(|mask| *mask == 0) || control::passes(core, op, &masks)
            {
                at += 1;
                continue;
            }
            break flow;
        }
        if flow == Flow::Fault {
            state.masks[core.member & (TEAM - 1)] = core.guarded(op);
            break flow;
        }
        let branching = if flow == Flow::Around { lanes_around(core) } else { lanes_of_branch(core, op) };
        core.skipped += branching.skipped;
        state.masks = branching.taken;
        let way = match branching.way {
            Some(way) => way,
            None if !state.whole || op.payload & 15 != 0 => Way::Apart,
            None => {
                let way = part(core, code, at, state);
                core.chain.stop = end(state.stop);
                if core.team.count == 0 {
                    at += 1;
                    break Flow::Next;
                }
                way
            }
        };
        match way {
            Way::Past => at += 1,
            Way::Apart => break flow,
            Way::Taken => {
                let offset = op.payload.wrapping_sub(start);
                if offset >= PAGE_BYTES || offset & 15 != 0 || !state.whole {
                    break flow;
                }
                let to = (offset / 16) as usize;
                let back = to <= at;
                core.chain.count.jump(at, to);
                at = to;
                // An eye on the budget at every step back.
                if back && core.chain.count.before >= state.left {
                    break Flow::Next;
                }
            }
        }
    };
    let last = if flow == Flow::Next { at } else { at + 1 };
    core.chain.count.settle(&core.team, state, last);
    state.executed = core.chain.count.settled;
    state.instructions += core.around.instructions;
    state.lanes = state.lanes + core.around.lanes - core.skipped;
    state.at = at;
    flow
}
