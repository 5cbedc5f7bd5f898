//! Packed half precision.

use sass::lane::half::{self, Factors, HalfFormat, HalfMode, Swizzle, pack};
use sass::lane::{Boolean, FloatCompare};

use super::super::lanes::{LANES, bit};
use super::super::micro::{Flow, Micro};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use super::super::native::called::called;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use super::called_lanes;
use super::handlers;

const SWIZZLES: [Swizzle; 4] = [Swizzle::H1H0, Swizzle::F32, Swizzle::H0H0, Swizzle::H1H1];
/// Lowest bit of a comparison in a payload.
pub(crate) const COMPARE: u32 = 32;

/// Of a form of [`Hfma2Rare`]: the second source is crossed.
const CROSSED: u8 = 4;

/// Which rare form of HFMA2 it is, for [`Micro::extra`].
pub(crate) fn rare_code(factors: Factors, crossed: bool) -> u8 {
    factors as u8 | (u8::from(crossed) * CROSSED)
}

/// Format and modifiers in the lowest bits of a payload.
pub(crate) fn mode_code(mode: HalfMode) -> u64 {
    u64::from(mode.format == HalfFormat::Bf16)
        | u64::from(mode.flushes) << 1
        | u64::from(mode.saturate) << 2
        | u64::from(mode.relu) << 3
}

/// Swizzle and marks of a source in a payload.
pub(crate) fn source_code(swizzle: Swizzle, absolute: bool, negate: bool, slot: usize) -> u64 {
    let swizzle = SWIZZLES.iter().position(|known| *known == swizzle).unwrap_or(0) as u64;
    (swizzle | u64::from(absolute) << 2 | u64::from(negate) << 3) << (8 + 4 * slot)
}

#[inline(always)]
fn mode(op: &Micro) -> HalfMode {
    HalfMode {
        format: if op.payload & 1 != 0 { HalfFormat::Bf16 } else { HalfFormat::F16 },
        flushes: op.payload & 2 != 0,
        saturate: op.payload & 4 != 0,
        relu: op.payload & 8 != 0,
    }
}

/// The halves of a source before its marks.
#[inline(always)]
fn swizzled(op: &Micro, slot: u32, v: u32) -> (u16, u16) {
    SWIZZLES[(op.payload >> (8 + 4 * slot) & 3) as usize].apply(v, mode(op).format)
}

/// The halves of a source.
#[inline(always)]
fn halves(op: &Micro, slot: u32, v: u32) -> (u16, u16) {
    let code = op.payload >> (8 + 4 * slot);
    let swizzled = SWIZZLES[(code & 3) as usize].apply(v, mode(op).format);
    half::modify(swizzled, code & 4 != 0, code & 8 != 0)
}

#[inline(always)]
fn compare_and_boolean(op: &Micro) -> (FloatCompare, Boolean) {
    let boolean = [Boolean::And, Boolean::Or, Boolean::Xor, Boolean::Xor][usize::from(op.extra & 3)];
    (FloatCompare::from_code((op.payload >> COMPARE) as u32), boolean)
}

#[inline(always)]
fn hadd2(op: &Micro, a: u32, b: u32) -> u32 {
    half::hadd2(halves(op, 0, a), halves(op, 1, b), mode(op))
}

#[inline(always)]
fn hadd2_float(op: &Micro, a: u32, b: u32) -> u32 {
    half::hadd_f32(halves(op, 0, a).0, halves(op, 1, b).0, mode(op).format)
}

#[inline(always)]
fn hmul2(op: &Micro, a: u32, b: u32) -> u32 {
    half::hmul2(halves(op, 0, a), halves(op, 1, b), mode(op))
}

#[inline(always)]
fn hmul2_zero(op: &Micro, a: u32, b: u32) -> u32 {
    let (a, b) = (halves(op, 0, a), halves(op, 1, b));
    pack(half::hmul_zero(a.0, b.0, mode(op)), half::hmul_zero(a.1, b.1, mode(op)))
}

#[inline(always)]
fn hfma2(op: &Micro, a: u32, b: u32, c: u32) -> u32 {
    half::hfma2(halves(op, 0, a), halves(op, 1, b), halves(op, 2, c), mode(op))
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
called_lanes! {
    Hadd2 = |op, [a, b, _c]| hadd2(op, a, b), reads [true, true, false];
    Hadd2Float = |op, [a, b, _c]| hadd2_float(op, a, b), reads [true, true, false];
    Hmul2 = |op, [a, b, _c]| hmul2(op, a, b), reads [true, true, false];
    Hmul2Zero = |op, [a, b, _c]| hmul2_zero(op, a, b), reads [true, true, false];
    Hfma2 = |op, [a, b, c]| hfma2(op, a, b, c), reads [true, true, true];
}

handlers! {
    /// HADD2.
    Hadd2 [called::<Hadd2>, apart true] = |core, op, mask| {
        core.map2_slow(op, mask, |a, b| hadd2(op, a, b))
    };
    /// HADD2.F32.
    Hadd2Float [called::<Hadd2Float>, apart true] = |core, op, mask| {
        core.map2_slow(op, mask, |a, b| hadd2_float(op, a, b))
    };
    /// HMUL2.
    Hmul2 [called::<Hmul2>, apart true] = |core, op, mask| {
        core.map2_slow(op, mask, |a, b| hmul2(op, a, b))
    };
    /// HMUL2.FMZ.
    Hmul2Zero [called::<Hmul2Zero>, apart true] = |core, op, mask| {
        core.map2_slow(op, mask, |a, b| hmul2_zero(op, a, b))
    };
    /// HFMA2.
    Hfma2 [called::<Hfma2>, apart true] = |core, op, mask| {
        core.map3_slow(op, mask, |a, b, c| hfma2(op, a, b, c))
    };
    /// HFMA2 in its rarer forms, which [`rare_code`] tells apart: special factors; a second source `.H0_NH1`, whose low
    /// half stands high, and the high one, negated, low; `.RELU` in the lanes of a predicate only.
    Hfma2Rare = |core, op, mask| {
        let chosen = core.predicate(op.from[0]);
        let crosses = op.extra & CROSSED != 0;
        let factors = [Factors::Plain, Factors::ZeroWins, Factors::OutOfBounds][usize::from(op.extra & 3) % 3];
        let (a, b, c) = (core.row(op.a), core.row(op.b), core.row(op.c));
        let mut out = [0; LANES];
        for i in 0..LANES {
            let mode = HalfMode { relu: mode(op).relu && bit(chosen, i), ..mode(op) };
            let b = if crosses { b[i].rotate_left(16) ^ 0x8000 } else { b[i] };
            let (a, b, c) = (halves(op, 0, a[i]), halves(op, 1, b), halves(op, 2, c[i]));
            let of = |a, b, c| half::hfma_of(a, b, c, mode, factors);
            out[i] = pack(of(a.0, b.0, c.0), of(a.1, b.1, c.1));
        }
        core.put(op.d, mask, &out);
        Flow::Next
    };
    /// HMNMX2.XORSIGN: the sources' signs before their marks decide the result's.
    Hmnmx2Signs = |core, op, mask| {
        let nan = op.extra & 1 != 0;
        let minimum = core.predicate(op.from[0]);
        let (a, b) = (core.row(op.a), core.row(op.b));
        let mut out = [0; LANES];
        for i in 0..LANES {
            let marked = [halves(op, 0, a[i]), halves(op, 1, b[i])];
            let raw = [swizzled(op, 0, a[i]), swizzled(op, 1, b[i])];
            out[i] = half::hmnmx2_xorsign(marked, raw, bit(minimum, i), nan, mode(op));
        }
        core.put(op.d, mask, &out);
        Flow::Next
    };
    /// HMNMX2.
    Hmnmx2 = |core, op, mask| {
        let nan = op.extra & 1 != 0;
        let minimum = core.predicate(op.from[0]);
        let (a, b) = (core.row(op.a), core.row(op.b));
        let mut out = [0; LANES];
        for i in 0..LANES {
            let (a, b) = (halves(op, 0, a[i]), halves(op, 1, b[i]));
            out[i] = half::hmnmx2(a, b, bit(minimum, i), nan, mode(op));
        }
        core.put(op.d, mask, &out);
        Flow::Next
    };
    /// HSET2.
    Hset2<const FLOAT: bool> = |core, op, mask| {
        let with = core.predicate(op.from[0]);
        let (compare, boolean) = compare_and_boolean(op);
        let (a, b) = (core.row(op.a), core.row(op.b));
        let mut out = [0; LANES];
        for i in 0..LANES {
            let (a, b) = (halves(op, 0, a[i]), halves(op, 1, b[i]));
            out[i] = half::hset2(a, b, compare, mode(op), FLOAT, boolean, bit(with, i));
        }
        core.put(op.d, mask, &out);
        Flow::Next
    };
    /// HSETP2.
    Hsetp2 = |core, op, mask| {
        let with = core.predicate(op.from[0]);
        let (compare, boolean) = compare_and_boolean(op);
        let both = op.extra & 4 != 0;
        let (a, b) = (core.row(op.a), core.row(op.b));
        let (mut first, mut second) = (0, 0);
        for i in 0..LANES {
            let (a, b) = (halves(op, 0, a[i]), halves(op, 1, b[i]));
            let truth = half::hsetp2(a, b, compare, mode(op), both, boolean, bit(with, i));
            first |= u32::from(truth.0) << i;
            second |= u32::from(truth.1) << i;
        }
        core.put_predicate(op.to[0], mask, first);
        core.put_predicate(op.to[1], mask, second);
        Flow::Next
    };
}
