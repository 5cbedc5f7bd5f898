//! Barriers in shared memory: ATOMS.ARRIVE, SYNCS, ARRIVES. What they compute is [`sass::lane::mbarrier`].

use sass::lane::mbarrier::{self, Arrival};

use super::super::atomic;
use super::super::core::Core;
use super::super::fault::FaultKind;
use super::super::lanes::{LANES, each, first};
use super::super::micro::{Flow, Micro};
use super::handlers;
use super::memory::LOOK;

/// Bits of [`Micro::extra`]: what arrives.
pub(crate) const COUNT_ONE: u8 = 1;
/// As many arrivals as the second source says.
pub(crate) const COUNTS: u8 = 2;
/// One transaction is to come.
pub(crate) const TRANSACTION_ONE: u8 = 4;
/// As many are to come as the second source says.
pub(crate) const TRANSACTIONS: u8 = 8;
/// As many came as the second source says.
pub(crate) const TRANSACTIONS_DONE: u8 = 16;
/// One transaction came.
pub(crate) const TRANSACTION_ONE_DONE: u8 = 32;
/// Who arrives takes part no more.
pub(crate) const LEAVES: u8 = 64;

/// Replaces the barrier that a lane names by what `f` makes of it; returns what it was.
fn update(core: &mut Core<'_>, at: u32, f: impl Fn(u64) -> u64) -> Result<u64, FaultKind> {
    let at = core.shared_lane(at, 8)?;
    // SAFETY: range and alignment were checked.
    Ok(unsafe { atomic::long(at, f) })
}

/// What an instruction lets arrive, with the number in its second source.
const fn arrival(op: &Micro, number: u32) -> Arrival {
    let count = if op.extra & COUNT_ONE != 0 {
        1
    } else if op.extra & COUNTS != 0 {
        number
    } else {
        0
    };
    let transactions = if op.extra & TRANSACTION_ONE != 0 {
        1
    } else if op.extra & TRANSACTION_ONE_DONE != 0 {
        -1
    } else if op.extra & TRANSACTIONS != 0 {
        number as i32
    } else if op.extra & TRANSACTIONS_DONE != 0 {
        (number as i32).wrapping_neg()
    } else {
        0
    };
    Arrival { count, transactions, leaves: op.extra & LEAVES != 0 }
}

/// Lets lanes arrive one after the other, and gives each the barrier as it found it.
#[inline(always)]
fn one_by_one(core: &mut Core<'_>, op: &Micro, mask: u32, f: impl Fn(usize, u64) -> u64) -> Flow {
    let at = core.short_addresses(op);
    let mut out = [0; LANES];
    for lane in each(mask) {
        match update(core, at[lane], |barrier| f(lane, barrier)) {
            Ok(old) => out[lane] = old,
            Err(kind) => return core.fail(kind),
        }
    }
    core.put_pair(op.d, mask, &out);
    Flow::Next
}

handlers! {
    /// ATOMS.ARRIVE.64, and ARRIVES before Hopper.
    ArriveAmpere = |core, op, mask| {
        one_by_one(core, op, mask, |_, barrier| mbarrier::arrive_ampere(barrier))
    };
    /// SYNCS.ARRIVE.TRANS64, and Hopper's ARRIVES.
    Arrive = |core, op, mask| {
        let numbers = *core.row(op.b);
        one_by_one(core, op, mask, |lane, barrier| mbarrier::arrive(barrier, arrival(op, numbers[lane])))
    };
    /// SYNCS.ARRIVE.TRANS64.TMASK: lanes with one barrier arrive together. Each gets their mask as the low word, and the
    /// barrier's high word before them.
    ArriveTogether = |core, op, mask| {
        let numbers = *core.row(op.b);
        let at = core.short_addresses(op);
        let mut out = [0; LANES];
        let mut left = mask;
        while left != 0 {
            let place = at[first(left)];
            let same = each(left).fold(0u32, |same, lane| same | u32::from(at[lane] == place) << lane);
            let all = |barrier| {
                each(same).fold(barrier, |barrier, lane| mbarrier::arrive(barrier, arrival(op, numbers[lane])))
            };
            match update(core, place, all) {
                Ok(old) => each(same).for_each(|lane| out[lane] = old >> 32 << 32 | u64::from(same)),
                Err(kind) => return core.fail(kind),
            }
            left &= !same;
        }
        core.put_pair(op.d, mask, &out);
        Flow::Next
    };
    /// SYNCS.PHASECHK.TRANS64: whether the phase of the token in the second source is over.
    CheckPhase = |core, op, mask| {
        let at = core.short_addresses(op);
        let mut over = 0;
        for lane in each(mask) {
            match update(core, at[lane], |barrier| barrier) {
                Ok(barrier) => {
                    over |= u32::from(mbarrier::phase_is_over(barrier, core.row(op.b)[lane])) << lane;
                }
                Err(kind) => return core.fail(kind),
            }
        }
        if over != mask {
            core.cta.spins += LOOK;
        }
        core.put_predicate(op.to[0], mask, over);
        Flow::Next
    };
    /// SYNCS.EXCH.64, of the uniform datapath.
    Exchange = |core, op, _mask| {
        let at = core.short_addresses(op)[0];
        let new = core.pair_lane(op.b, 0);
        match update(core, at, |_| new) {
            Ok(old) => {
                core.put_uniform(op.d, old as u32);
                core.put_uniform(op.d.plus(1), (old >> 32) as u32);
                Flow::Next
            }
            Err(kind) => core.fail(kind),
        }
    };
}
