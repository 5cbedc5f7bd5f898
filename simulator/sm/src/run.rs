//! The innermost loop: micro-operations of one page, one after the other, for lanes that stand together.
//!
//! Handlers form chains: each calls the next one itself (see [`chain`]), and comes back here only where something has to
//! be decided: at a guard, a branch, or the end. A loop that calls every handler from one place is more than twice as
//! slow, because processors predict an indirect jump by the place it is at.

use super::code::{PAGE_BYTES, PAGE_CODE};
use super::core::Core;
use super::lanes::FULL;
use super::micro::{Flow, Micro};

/// Where a run of micro-operations stands.
#[derive(Debug)]
pub(super) struct Run {
    /// Lanes that run.
    pub group: u32,
    /// Whether nobody else of the warp could run: branches are followed within the page.
    pub whole: bool,
    /// Address of the page.
    pub start: u64,
    /// Number of the micro-operation in the page: the first, and in the end the one that ended the run.
    pub at: usize,
    /// Number at which the run ends.
    pub stop: usize,
    /// Instructions after which a step back ends the run.
    pub left: i64,
    /// Instructions executed.
    pub executed: i64,
    /// Lanes in which they were executed.
    pub lanes: u64,
    /// Lanes of the last one.
    pub mask: u32,
}

/// The part of [`Core`] that chains of handlers need.
#[derive(Debug)]
pub(crate) struct Chain {
    /// Lanes that run.
    group: u32,
    /// Where the run ends.
    stop: *const Micro,
    /// Where a chain ended.
    at: *const Micro,
}

impl Chain {
    /// Before a run.
    pub const NONE: Self = Self { group: 0, stop: std::ptr::null(), at: std::ptr::null() };
}

/// Micro-operations after which a chain ends, as a power of two. It bounds the stack if the compiler makes calls of what
/// should be jumps.
const CHAIN: usize = 64;

/// Goes on after a handler: with the next micro-operation, if that has no guard.
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
    if next == core.chain.stop || next.addr() & (CHAIN * size_of::<Micro>() - 1) == 0 {
        core.chain.at = next;
        return Flow::Next;
    }
    // SAFETY: the end of the run was looked at, so there is a next one, whose handler was chosen for this processor.
    unsafe {
        let next = &*next;
        if next.kind != 0 {
            core.chain.at = next;
            return Flow::Next;
        }
        (next.run)(core, next, core.chain.group)
    }
}

/// The lanes for which an instruction with a guard, or of the uniform datapath, runs.
#[inline(always)]
fn guarded(core: &Core<'_>, op: &Micro, group: u32) -> u32 {
    let lanes = if op.kind & Micro::UNIFORM != 0 { FULL } else { group };
    lanes & core.predicate(op.guard)
}

/// Runs until `stop`, or until something other than going on is to be done; says what.
///
/// # Safety
/// As for [`Core::new`]: `code` was lowered for the warp and the pool of `core`.
pub(super) unsafe fn run(core: &mut Core<'_>, code: &[Micro], state: &mut Run) -> Flow {
    let Some(code) = code.get(..PAGE_CODE) else { return Flow::Next };
    let (group, start) = (state.group, state.start);
    let stop = state.stop.min(PAGE_CODE);
    core.chain = Chain { group, stop: code[..stop].as_ptr_range().end, at: std::ptr::null() };
    let mut at = state.at;
    let mut first = at;
    let mut count = 0;
    // Lanes of guarded instructions, and how many of those there were: the others run in the whole group.
    let (mut lanes, mut guards) = (0u64, 0u64);
    let flow = loop {
        if at >= stop {
            break Flow::Next;
        }
        let op = &code[at];
        let mut mask = group;
        if op.kind != 0 {
            mask = guarded(core, op, group);
            guards += 1;
            lanes += u64::from((mask & group).count_ones());
            if mask == 0 {
                at += 1;
                continue;
            }
        }
        // SAFETY: the handler was chosen for this processor; see above for the operands and for the chain.
        let flow = unsafe { (op.run)(core, op, mask) };
        // SAFETY: a chain ends at a micro-operation of the page, or one past the last.
        at = unsafe { core.chain.at.offset_from_unsigned(code.as_ptr()) };
        match flow {
            Flow::Next => {}
            Flow::Branch if core.taken == group => {
                let offset = code[at].payload.wrapping_sub(start);
                if offset >= PAGE_BYTES || offset & 15 != 0 || !state.whole {
                    break flow;
                }
                let to = (offset / 16) as usize;
                count += (at + 1 - first) as i64;
                let back = to <= at;
                (at, first) = (to, to);
                // An eye on the budget at every step back.
                if back && count >= state.left {
                    break Flow::Next;
                }
            }
            Flow::Branch if core.taken == 0 => at += 1,
            _ => break flow,
        }
    };
    let last = if flow == Flow::Next { at } else { at + 1 };
    state.executed = count + (last - first) as i64;
    state.lanes = lanes + (state.executed as u64 - guards) * u64::from(group.count_ones());
    // What did not simply go on changed no predicate: its guard holds for the lanes for which it held.
    let mask = match code.get(at) {
        Some(op) if flow != Flow::Next && op.kind != 0 => guarded(core, op, group),
        _ => group,
    };
    (state.at, state.mask) = (at, mask);
    flow
}
