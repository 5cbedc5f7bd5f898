//! Branches, and what belongs to convergence but moves no program counter. The rest is in [`crate::control`].

use super::super::fault::FaultKind;
use super::super::lanes::{LANES, each};
use super::super::micro::Flow;
use super::handlers;

handlers! {
    /// BSSY: the active lanes will meet at the barrier.
    Bssy = |core, op, mask| {
        let barrier = &mut core.warp_mut().convergence[op.payload as usize & 15];
        *barrier = super::super::lanes::blend(mask, &[mask; LANES], barrier);
        Flow::Next
    };
    /// BMOV from a convergence barrier.
    BmovFrom = |core, op, mask| {
        let index = op.payload as usize & 15;
        let v = core.warp().convergence[index];
        core.put(op.d, mask, &v);
        if op.extra != 0 {
            each(mask).for_each(|lane| core.warp_mut().convergence[index][lane] = 0);
        }
        Flow::Next
    };
    /// BMOV to a convergence barrier.
    BmovTo = |core, op, mask| {
        let v = *core.row(op.b);
        each(mask).for_each(|lane| core.warp_mut().convergence[op.payload as usize & 15][lane] = v[lane]);
        Flow::Next
    };
    /// LEPC.
    Lepc = |core, op, mask| {
        core.put_pair(op.d, mask, &[op.payload; LANES]);
        Flow::Next
    };
    /// B2R.RESULT.
    B2r = |core, op, mask| {
        let v = core.cta.result;
        core.put(op.d, mask, &[v; LANES]);
        core.put_predicate(op.to[0], mask, u32::from(v != 0).wrapping_neg());
        Flow::Next
    };
    /// BPT.TRAP.
    Trap = |core, _op, _mask| core.fail(FaultKind::Trap);
}
