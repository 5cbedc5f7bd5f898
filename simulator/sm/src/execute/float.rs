//! FP32 arithmetic and comparisons.
//!
//! What the lane functions compute for the common modifiers is written out here once more, in a form that the compiler
//! turns into vector instructions; the few inputs for which the short form would differ go to the lane functions. A
//! test compares the two.

use sass::lane::float::{self, NAN, SwizzleAdd};
use sass::lane::half::HalfFormat;
use sass::lane::mufu::{self, Function};
use sass::lane::{Boolean, FloatCompare, FloatMode, Rounding, Subnormals};

use super::super::core::Core;
use super::super::lanes::{LANES, ballot, bit};
use super::super::micro::{Flow, Micro};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use super::super::native::{
    called::{Called, called},
    emit,
};
use super::handlers;

pub(crate) const KEEP: Subnormals = Subnormals::Keep;
pub(crate) const FLUSH: Subnormals = Subnormals::Flush;
pub(crate) const FLUSH_MULTIPLY_ZERO: Subnormals = Subnormals::FlushMultiplyZero;

/// Modifiers of FADD, FMUL and FFMA.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Modifiers {
    pub rounding: Rounding,
    pub subnormals: Subnormals,
    pub saturate: bool,
    /// FMUL's power of two.
    pub scale: i32,
}

impl Modifiers {
    /// As a payload.
    pub fn code(self) -> u64 {
        let subnormals = match self.subnormals {
            Subnormals::Keep => 0,
            Subnormals::Flush => 1,
            Subnormals::FlushMultiplyZero => 2,
        };
        let rounding = Rounding::ALL.iter().position(|known| *known == self.rounding).unwrap_or(0) as u64;
        rounding | subnormals << 2 | u64::from(self.saturate) << 4 | ((self.scale + 4) as u64) << 8
    }

    #[inline(always)]
    fn of(code: u64) -> (FloatMode, i32) {
        let subnormals = [KEEP, FLUSH, FLUSH_MULTIPLY_ZERO, KEEP][(code >> 2 & 3) as usize];
        let rounding = Rounding::from_code(code as u32);
        (FloatMode { rounding, subnormals, saturate: code & 16 != 0 }, (code >> 8) as i32 - 4)
    }
}

/// Bits of a payload that [`Modifiers`] use.
const MODIFIERS: u64 = 0xffff;
/// Lowest bit of FSWZADD's signs in a payload.
pub(crate) const QUAD: u32 = 16;
/// In the order of their codes.
const SWIZZLE_ADDS: [SwizzleAdd; 4] =
    [SwizzleAdd::Add, SwizzleAdd::Subtract, SwizzleAdd::SubtractReverse, SwizzleAdd::Pass];

const SIGN: u32 = 1 << 31;
const SMALLEST_NORMAL: u32 = 1 << 23;

/// What a source's marks do: bits that are kept, and bits that are flipped.
#[inline(always)]
pub(crate) const fn marks(extra: u64, slot: u32) -> (u32, u32) {
    let keep = if extra >> (slot + 3) & 1 != 0 { !SIGN } else { u32::MAX };
    let flip = if extra >> slot & 1 != 0 { SIGN } else { 0 };
    (keep, flip)
}

/// A source with its marks applied.
#[inline(always)]
fn marked(row: &[u32; LANES], (keep, flip): (u32, u32)) -> [u32; LANES] {
    let mut out = [0; LANES];
    for i in 0..LANES {
        out[i] = (row[i] & keep) ^ flip;
    }
    out
}

/// The first two sources.
#[inline(always)]
fn sources(core: &Core<'_>, op: &Micro, marks_in: u64) -> ([u32; LANES], [u32; LANES]) {
    (marked(core.row(op.a), marks(marks_in, 0)), marked(core.row(op.b), marks(marks_in, 1)))
}

/// A source of an instruction with or without marks, flushed or not.
#[inline(always)]
fn operand<const FLUSH: bool, const MARKS: bool>(v: u32, (keep, flip): (u32, u32)) -> f32 {
    let v = if MARKS { (v & keep) ^ flip } else { v };
    f32::from_bits(float::flush_if(v, FLUSH))
}

/// A result: NaN made canonical, subnormals flushed.
#[inline(always)]
fn result<const FLUSH: bool>(v: f32) -> u32 {
    let bits = float::flush_if(v.to_bits(), FLUSH);
    if v.is_nan() { NAN } else { bits }
}

handlers! {
    /// FADD to nearest. Sums near the smallest normal number are exact, so that flushing them is simple.
    Fadd<const FLUSH: bool, const MARKS: bool> [emit::float_add::<FLUSH>] = |core, op| {
        let (ma, mb) = (marks(op.extra.into(), 0), marks(op.extra.into(), 1));
        core.team2(op, |a, b| {
            result::<FLUSH>(operand::<FLUSH, MARKS>(a, ma) + operand::<FLUSH, MARKS>(b, mb))
        })
    };
    /// FADD with everything.
    FaddGeneral = |core, op, mask| {
        let (mode, _) = Modifiers::of(op.payload);
        let (a, b) = sources(core, op, op.extra.into());
        let mut out = [0; LANES];
        for i in 0..LANES {
            if bit(mask, i) {
                out[i] = float::fadd(a[i], b[i], mode);
            }
        }
        core.put(op.d, mask, &out);
        Flow::Next
    };
    /// FMUL to nearest. A result that was rounded to the smallest normal number may have to be flushed: rare, and
    /// left to the lane function.
    Fmul<const FLUSH: bool, const MARKS: bool> [emit::float_multiply::<FLUSH>] = |core, op| {
        let (ma, mb) = (marks(op.extra.into(), 0), marks(op.extra.into(), 1));
        core.rows3(op, |a, b, _| {
            let mut out = [0; LANES];
            let mut rare = 0;
            for i in 0..LANES {
                let v = operand::<FLUSH, MARKS>(a[i], ma) * operand::<FLUSH, MARKS>(b[i], mb);
                if FLUSH {
                    rare |= u32::from(v.to_bits() & !SIGN == SMALLEST_NORMAL);
                }
                out[i] = result::<FLUSH>(v);
            }
            if rare != 0 {
                let subnormals = super::float::FLUSH;
                let mode = FloatMode { rounding: Rounding::Nearest, subnormals, saturate: false };
                for i in 0..LANES {
                    out[i] = float::fmul((a[i] & ma.0) ^ ma.1, (b[i] & mb.0) ^ mb.1, mode);
                }
            }
            out
        })
    };
    /// FMUL with everything.
    FmulGeneral = |core, op, mask| {
        let (mode, scale) = Modifiers::of(op.payload);
        let (a, b) = sources(core, op, op.extra.into());
        let mut out = [0; LANES];
        for i in 0..LANES {
            if bit(mask, i) {
                out[i] = float::fmul_scaled(a[i], b[i], scale, mode);
            }
        }
        core.put(op.d, mask, &out);
        Flow::Next
    };
    /// FFMA to nearest; see [`Fmul`].
    Ffma<const FLUSH: bool, const MARKS: bool> [emit::float_multiply_add::<FLUSH>] = |core, op| {
        let all = [0, 1, 2].map(|slot| marks(op.extra.into(), slot));
        core.rows3(op, |a, b, c| {
            let mut out = [0; LANES];
            let mut rare = 0;
            for i in 0..LANES {
                let (x, y) = (operand::<FLUSH, MARKS>(a[i], all[0]), operand::<FLUSH, MARKS>(b[i], all[1]));
                let v = x.mul_add(y, operand::<FLUSH, MARKS>(c[i], all[2]));
                if FLUSH {
                    rare |= u32::from(v.to_bits() & !SIGN == SMALLEST_NORMAL);
                }
                out[i] = result::<FLUSH>(v);
            }
            if rare != 0 {
                let subnormals = super::float::FLUSH;
                let mode = FloatMode { rounding: Rounding::Nearest, subnormals, saturate: false };
                let one = |v: u32, (keep, flip): (u32, u32)| (v & keep) ^ flip;
                for i in 0..LANES {
                    out[i] = float::ffma(one(a[i], all[0]), one(b[i], all[1]), one(c[i], all[2]), mode);
                }
            }
            out
        })
    };
    /// FFMA with everything.
    FfmaGeneral = |core, op, mask| {
        let (mode, _) = Modifiers::of(op.payload);
        let (a, b) = sources(core, op, op.extra.into());
        let c = marked(core.row(op.c), marks(op.extra.into(), 2));
        let mut out = [0; LANES];
        for i in 0..LANES {
            if bit(mask, i) {
                out[i] = float::ffma(a[i], b[i], c[i], mode);
            }
        }
        core.put(op.d, mask, &out);
        Flow::Next
    };
    /// FMNMX.
    Fmnmx [emit::float_minimum_maximum] = |core, op, mask| {
        let (flushes, nan) = (op.payload & 1 != 0, op.payload & 2 != 0);
        let minimum = core.predicate(op.from[0]);
        let (a, b) = sources(core, op, op.extra.into());
        let mut out = [0; LANES];
        for i in 0..LANES {
            out[i] = float::fmnmx(a[i], b[i], bit(minimum, i), flushes, nan);
        }
        core.put(op.d, mask, &out);
        Flow::Next
    };
    /// FMNMX.XORSIGN: the sources' signs before their marks decide the result's.
    FmnmxSigns = |core, op, mask| {
        let (flushes, nan) = (op.payload & 1 != 0, op.payload & 2 != 0);
        let minimum = core.predicate(op.from[0]);
        let (a, b) = sources(core, op, op.extra.into());
        let (raw_a, raw_b) = (core.row(op.a), core.row(op.b));
        let mut out = [0; LANES];
        for i in 0..LANES {
            let raw = (raw_a[i], raw_b[i]);
            out[i] = float::fmnmx_xorsign((a[i], b[i]), raw, bit(minimum, i), flushes, nan);
        }
        core.put(op.d, mask, &out);
        Flow::Next
    };
    /// FSWZADD: what each lane of a quad does, two bits a lane, lies in the payload.
    Fswzadd = |core, op, mask| {
        let (mode, _) = Modifiers::of(op.payload & MODIFIERS);
        let (a, c) = (core.row(op.a), core.row(op.c));
        let mut out = [0; LANES];
        for i in 0..LANES {
            let code = op.payload >> (QUAD + 2 * (i as u32 & 3)) & 3;
            out[i] = float::fswzadd(a[i], c[i], SWIZZLE_ADDS[code as usize], mode);
        }
        core.put(op.d, mask, &out);
        Flow::Next
    };
    /// FSEL.
    Fsel [emit::choose_float] = |core, op, mask| {
        let flushes = op.payload != 0;
        let p = core.predicate(op.from[0]);
        let (a, b) = sources(core, op, op.extra.into());
        let mut out = [0; LANES];
        for i in 0..LANES {
            out[i] = float::fsel(a[i], b[i], bit(p, i), flushes);
        }
        core.put(op.d, mask, &out);
        Flow::Next
    };
    /// FSET.
    Fset = |core, op, mask| {
        let compare = FloatCompare::from_code(op.payload as u32 & 15);
        let (flushes, float_result) = (op.payload & 16 != 0, op.payload & 32 != 0);
        let boolean = [Boolean::And, Boolean::Or, Boolean::Xor, Boolean::Xor][(op.payload >> 8 & 3) as usize];
        let with = core.predicate(op.from[0]);
        let (a, b) = sources(core, op, op.extra.into());
        let mut out = [0; LANES];
        for i in 0..LANES {
            let truth = boolean.apply(float::compare(a[i], b[i], compare, flushes), bit(with, i));
            out[i] = float::fset(truth, float_result);
        }
        core.put(op.d, mask, &out);
        Flow::Next
    };
    /// FSETP. The marks are in the payload.
    Fsetp<const COMPARE: u32, const FLUSH: bool> [emit::compare_floats::<COMPARE, FLUSH>] = |core, op, mask| {
        let (ma, mb) = (marks(op.payload, 0), marks(op.payload, 1));
        let (a, b) = (core.row(op.a), core.row(op.b));
        let compare = FloatCompare::from_code(COMPARE);
        let truth = L::ballot(|i| {
            float::compare((a[i] & ma.0) ^ ma.1, (b[i] & mb.0) ^ mb.1, compare, FLUSH)
        });
        super::integer::put_comparison(core, op, mask, truth)
    };
    /// FCHK.
    Fchk = |core, op, mask| {
        let (a, b) = sources(core, op, op.extra.into());
        core.put_predicate(op.to[0], mask, ballot(|i| float::fchk(a[i], b[i])));
        Flow::Next
    };
    /// MUFU.
    Mufu [called::<Mufu>, apart true] = |core, op, mask| {
        let (keep, flip) = marks(op.extra.into(), 1);
        let function = Function::from_code(op.payload as u32).unwrap_or(Function::Rcp);
        // What all lanes have in common, such as a divisor of the launch, is computed once.
        let first = core.lowest(op.b, mask);
        let common = mufu::mufu(function, (first & keep) ^ flip);
        core.map1_slow(op, mask, |v| if v == first { common } else { mufu::mufu(function, (v & keep) ^ flip) })
    };
    /// MUFU of a half.
    MufuHalf [called::<MufuHalf>, apart true] = |core, op, mask| core.map1_slow(op, mask, |v| mufu_half(op, v));
}

/// A lane of [`MufuHalf`].
#[inline(always)]
fn mufu_half(op: &Micro, v: u32) -> u32 {
    let function = Function::from_code(op.payload as u32 & 0xff).unwrap_or(Function::Rcp);
    let format = if op.payload >> 8 & 3 == 2 { HalfFormat::Bf16 } else { HalfFormat::F16 };
    let shift = (op.payload >> 16 & 31) as u32;
    // Marks are those of the half that is read.
    let (keep, flip) = ((op.payload >> 32) as u16, ((op.payload >> 63) as u16) << 15);
    mufu::mufu_half(function, (v >> shift) as u16 & keep ^ flip, format)
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
impl Called for Mufu {
    const SOURCES: [bool; 3] = [false, true, false];

    #[inline(always)]
    fn lane(op: &Micro, [_, v, _]: [u32; 3]) -> u32 {
        let (keep, flip) = marks(op.extra.into(), 1);
        let function = Function::from_code(op.payload as u32).unwrap_or(Function::Rcp);
        mufu::mufu(function, (v & keep) ^ flip)
    }

    #[inline(always)]
    fn lanes(op: &Micro, [a, v, c]: [&[u32; 8]; 3]) -> [u32; 8] {
        // As above.
        let first = Self::lane(op, [a[0], v[0], c[0]]);
        std::array::from_fn(|i| if v[i] == v[0] { first } else { Self::lane(op, [a[i], v[i], c[i]]) })
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
impl Called for MufuHalf {
    const SOURCES: [bool; 3] = [false, true, false];

    #[inline(always)]
    fn lane(op: &Micro, [_, v, _]: [u32; 3]) -> u32 {
        mufu_half(op, v)
    }
}
