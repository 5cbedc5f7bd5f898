//! FP64.

use sass::lane::{FloatCompare, Rounding, double};

use super::super::core::Core;
use super::super::lanes::{LANES, ballot, bit};
use super::super::micro::{Flow, Micro, RowIndex};
use super::handlers;

/// A rounding as a payload.
pub(crate) fn rounding_code(rounding: Rounding) -> u64 {
    Rounding::ALL.iter().position(|known| *known == rounding).unwrap_or(0) as u64
}

/// A register pair with the marks of its slot. They leave NaNs as they are (measured on H200).
#[inline(always)]
pub(super) fn source(core: &Core<'_>, index: RowIndex, marks: u64, slot: u32) -> [u64; LANES] {
    let keep = if marks >> (slot + 3) & 1 != 0 { u64::MAX >> 1 } else { u64::MAX };
    let flip = (marks >> slot & 1) << 63;
    let mut out = core.pair(index);
    if keep != u64::MAX || flip != 0 {
        for v in &mut out {
            *v = if double::is_nan(*v) { *v } else { (*v & keep) ^ flip };
        }
    }
    out
}

#[inline(always)]
fn arithmetic(core: &mut Core<'_>, op: &Micro, mask: u32, f: impl Fn(usize, Rounding) -> u64) -> Flow {
    let mut out = [0; LANES];
    // The common rounding is a loop of its own, so that it becomes plain vector arithmetic.
    match Rounding::from_code(op.payload as u32) {
        Rounding::Nearest => {
            for i in 0..LANES {
                out[i] = f(i, Rounding::Nearest);
            }
        }
        rounding => {
            for i in 0..LANES {
                if bit(mask, i) {
                    out[i] = f(i, rounding);
                }
            }
        }
    }
    core.put_pair(op.d, mask, &out);
    Flow::Next
}

handlers! {
    /// DADD.
    Dadd = |core, op, mask| {
        let (a, b) = (source(core, op.a, op.extra.into(), 0), source(core, op.b, op.extra.into(), 1));
        arithmetic(core, op, mask, |i, rounding| double::dadd(a[i], b[i], rounding))
    };
    /// DMUL.
    Dmul = |core, op, mask| {
        let (a, b) = (source(core, op.a, op.extra.into(), 0), source(core, op.b, op.extra.into(), 1));
        arithmetic(core, op, mask, |i, rounding| double::dmul(a[i], b[i], rounding))
    };
    /// DFMA.
    Dfma = |core, op, mask| {
        let marks = op.extra.into();
        let (a, b) = (source(core, op.a, marks, 0), source(core, op.b, marks, 1));
        let c = source(core, op.c, marks, 2);
        arithmetic(core, op, mask, |i, rounding| double::dfma(a[i], b[i], c[i], rounding))
    };
    /// DSETP. The marks are in the payload.
    Dsetp = |core, op, mask| {
        let (a, b) = (source(core, op.a, op.payload, 0), source(core, op.b, op.payload, 1));
        let compare = FloatCompare::from_code((op.payload >> 8) as u32);
        let truth = ballot(|i| double::compare(a[i], b[i], compare));
        super::integer::put_comparison(core, op, mask, truth)
    };
    /// DSETP.MIN and DSETP.MAX. Only the first result is joined with the source (measured on H200).
    DsetpExtremum<const MINIMUM: bool> = |core, op, mask| {
        let (a, b) = (source(core, op.a, op.payload, 0), source(core, op.b, op.payload, 1));
        let first = ballot(|i| double::min_max(a[i], b[i], MINIMUM).0);
        let second = ballot(|i| double::min_max(a[i], b[i], MINIMUM).1);
        let with = core.predicate(op.from[0]);
        core.put_predicate(op.to[0], mask, first & with);
        core.put_predicate(op.to[1], mask, second);
        Flow::Next
    };
}
