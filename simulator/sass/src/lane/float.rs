//! FP32 arithmetic and comparisons.
//!
//! Every NaN result is [`NAN`]. Flushing takes subnormal operands and results as zeros of the same
//! sign; a result counts as subnormal if it is below 2^-126 when rounded to 24 bits without a lower end
//! of the exponent (measured on H200). Saturation, minimum and maximum were measured too.

use super::soft::{self, Format};
use super::{FloatCompare, FloatMode, Rounding, Subnormals, min_max};

/// The NaN that FP32 instructions produce (measured on H200).
pub const NAN: u32 = 0x7fff_ffff;

const SIGN: u32 = 1 << 31;
const INFINITY: u32 = 0x7f80_0000;

/// Whether the bits are a NaN.
#[inline(always)]
pub const fn is_nan(a: u32) -> bool {
    a & !SIGN > INFINITY
}

/// A subnormal becomes a zero of the same sign.
#[inline(always)]
pub const fn flush(a: u32) -> u32 {
    if a & INFINITY == 0 { a & SIGN } else { a }
}

/// [`flush`] if the instruction says so.
#[inline(always)]
pub const fn flush_if(a: u32, flushes: bool) -> u32 {
    if flushes { flush(a) } else { a }
}

/// Any NaN becomes [`NAN`].
#[inline(always)]
pub const fn canonical(a: u32) -> u32 {
    if is_nan(a) { NAN } else { a }
}

/// `.SAT`: clamps to [0, 1]; NaN, -0 and everything negative give +0.
#[inline(always)]
pub fn saturate(a: u32) -> u32 {
    let value = f32::from_bits(a);
    if value >= 1.0 {
        1.0f32.to_bits()
    } else if value > 0.0 {
        a
    } else {
        0
    }
}

/// Bits of 2^-126, the smallest normal number.
const SMALLEST_NORMAL: u32 = 0x0080_0000;

/// What is left to do after the rounding. `exact` is asked for only where a flushed result was
/// rounded up to the smallest normal number.
#[inline(always)]
fn finish(result: u32, exact: impl FnOnce() -> f64, mode: FloatMode) -> u32 {
    let result = flush_result(result, exact, mode.rounding, mode.subnormals.flushes());
    let result = canonical(result);
    if mode.saturate { saturate(result) } else { result }
}

/// Flushes a result that was rounded with subnormals kept.
#[inline(always)]
pub(super) fn flush_result(
    result: u32,
    exact: impl FnOnce() -> f64,
    rounding: Rounding,
    flushes: bool,
) -> u32 {
    if flushes && result & !SIGN == SMALLEST_NORMAL && soft::is_tiny(exact(), Format::F32, rounding) {
        return result & SIGN;
    }
    flush_if(result, flushes)
}

/// FP32 bits as an FP64 number (exact).
#[inline(always)]
fn widen(a: u32) -> f64 {
    f64::from(f32::from_bits(a))
}

/// Rounds `exact`, an FP64 number that may be rounded to odd, to FP32.
#[inline(always)]
fn narrow(exact: f64, rounding: Rounding) -> u32 {
    if exact.is_nan() { NAN } else { soft::round_f64(exact, Format::F32, rounding) as u32 }
}

/// The sum of two FP64 numbers for a directed rounding.
#[inline(always)]
fn directed_sum(a: f64, b: f64, rounding: Rounding) -> u32 {
    if !a.is_finite() || !b.is_finite() {
        return narrow(a + b, rounding);
    }
    let sum = soft::add_to_odd(a, b);
    if sum == 0.0 {
        let negative = if a.is_sign_negative() == b.is_sign_negative() {
            a.is_sign_negative()
        } else {
            rounding == Rounding::Down
        };
        return if negative { SIGN } else { 0 };
    }
    narrow(sum, rounding)
}

/// FADD: `a + b`.
#[inline(always)]
pub fn fadd(a: u32, b: u32, mode: FloatMode) -> u32 {
    let flushes = mode.subnormals.flushes();
    let (a, b) = (flush_if(a, flushes), flush_if(b, flushes));
    let result = match mode.rounding {
        Rounding::Nearest => (f32::from_bits(a) + f32::from_bits(b)).to_bits(),
        rounding => directed_sum(widen(a), widen(b), rounding),
    };
    // A sum this small is exact.
    finish(result, || widen(a) + widen(b), mode)
}

/// FMUL: `a * b`.
#[inline(always)]
pub fn fmul(a: u32, b: u32, mode: FloatMode) -> u32 {
    fmul_scaled(a, b, 0, mode)
}

/// FMUL with a scale (`.D8` … `.M8`): `a * b * 2^scale`, rounded once. `scale` is -3 to 3.
#[inline(always)]
pub fn fmul_scaled(a: u32, b: u32, scale: i32, mode: FloatMode) -> u32 {
    let flushes = mode.subnormals.flushes();
    let (a, b) = (flush_if(a, flushes), flush_if(b, flushes));
    if mode.subnormals == Subnormals::FlushMultiplyZero && (a & !SIGN == 0 || b & !SIGN == 0) {
        return 0;
    }
    // The product has at most 48 bits: exact, and so is the scaling.
    let factor = f64::from_bits(((1023 + scale.clamp(-3, 3)) as u64) << 52);
    let exact = || widen(a) * widen(b) * factor;
    let result = match mode.rounding {
        Rounding::Nearest if scale == 0 => (f32::from_bits(a) * f32::from_bits(b)).to_bits(),
        rounding => narrow(exact(), rounding),
    };
    finish(result, exact, mode)
}

/// FFMA: `a * b + c`, rounded once.
#[inline(always)]
pub fn ffma(a: u32, b: u32, c: u32, mode: FloatMode) -> u32 {
    let flushes = mode.subnormals.flushes();
    let (a, b, c) = (flush_if(a, flushes), flush_if(b, flushes), flush_if(c, flushes));
    let result = if mode.subnormals == Subnormals::FlushMultiplyZero && (a & !SIGN == 0 || b & !SIGN == 0) {
        match mode.rounding {
            Rounding::Nearest => (0.0 + f32::from_bits(c)).to_bits(),
            rounding => directed_sum(0.0, widen(c), rounding),
        }
    } else {
        match mode.rounding {
            Rounding::Nearest => f32::from_bits(a).mul_add(f32::from_bits(b), f32::from_bits(c)).to_bits(),
            rounding => directed_sum(widen(a) * widen(b), widen(c), rounding),
        }
    };
    // Wanted only for results of normal size, so operands are finite here.
    finish(result, || soft::add_to_odd(widen(a) * widen(b), widen(c)), mode)
}

/// FMNMX: the smaller operand if `minimum`, else the larger; -0 is below +0. One NaN loses against a
/// number, or with `nan` (`.NAN`) wins.
#[inline(always)]
pub fn fmnmx(a: u32, b: u32, minimum: bool, flushes: bool, nan: bool) -> u32 {
    let (a, b) = (flush_if(a, flushes), flush_if(b, flushes));
    min_max([a, b], [is_nan(a), is_nan(b)], ordered(a) < ordered(b), minimum, nan, NAN)
}

/// FMNMX.XORSIGN: [`fmnmx`] with a sign that is negative where the signs of `raw_a` and `raw_b` differ.
///
/// Those are the registers before their modifiers, since the compiler passes absolute values
/// (`FMNMX.XORSIGN R, |R|, |R|`). A NaN stays [`NAN`] (not measured).
#[inline(always)]
pub fn fmnmx_xorsign(
    (a, b): (u32, u32),
    (raw_a, raw_b): (u32, u32),
    minimum: bool,
    flushes: bool,
    nan: bool,
) -> u32 {
    let result = fmnmx(a, b, minimum, flushes, nan);
    if is_nan(result) { result } else { result & !SIGN | (raw_a ^ raw_b) & SIGN }
}

/// Maps the bits so that signed integer order is numeric order with -0 below +0.
#[inline(always)]
const fn ordered(a: u32) -> i32 {
    let a = a as i32;
    a ^ ((a >> 31) & i32::MAX)
}

/// FSEL: `a` if `predicate`, else `b`; the bits of a NaN are kept. With `flushes` (`.FTZ`) a
/// subnormal becomes zero.
#[inline(always)]
pub const fn fsel(a: u32, b: u32, predicate: bool, flushes: bool) -> u32 {
    flush_if(if predicate { a } else { b }, flushes)
}

/// FSETP: the comparison alone. [`super::Boolean::both`] makes the two predicates of it.
#[inline(always)]
pub fn compare(a: u32, b: u32, comparison: FloatCompare, flushes: bool) -> bool {
    comparison.holds_f32(f32::from_bits(flush_if(a, flushes)), f32::from_bits(flush_if(b, flushes)))
}

/// FSET: register result of a comparison: all ones, or with `float` (`.BF`) 1.0; else 0.
#[inline(always)]
pub const fn fset(condition: bool, float: bool) -> u32 {
    match (condition, float) {
        (false, _) => 0,
        (true, true) => 0x3f80_0000,
        (true, false) => u32::MAX,
    }
}

/// FCHK.DIVIDE: whether `a / b` needs the slow path.
///
/// False where both operands are normal, the quotient is inside the normal range and no remainder on the way can be
/// subnormal. Measured on an H200 for every pair of exponents with four pairs of mantissas, which do not matter.
#[inline(always)]
pub const fn fchk(a: u32, b: u32) -> bool {
    let exponent_a = (a >> 23 & 255) as i32;
    let exponent_b = (b >> 23 & 255) as i32;
    let quotient = exponent_a - exponent_b;
    let fast = exponent_a >= 25
        && exponent_a <= 254
        && exponent_b >= 2
        && exponent_b <= 251
        && quotient >= -124
        && quotient <= 126;
    !fast
}

/// What FSWZADD does in one lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SwizzleAdd {
    /// `PP`: `a + b`.
    Add,
    /// `PN`: `a - b`.
    Subtract,
    /// `NP`: `b - a`.
    SubtractReverse,
    /// `ZP`: `b`.
    Pass,
}

/// FSWZADD: adds with signs that the lane's place in its quad selects.
#[inline(always)]
pub fn fswzadd(a: u32, b: u32, operation: SwizzleAdd, mode: FloatMode) -> u32 {
    match operation {
        SwizzleAdd::Add => fadd(a, b, mode),
        SwizzleAdd::Subtract => fadd(a, b ^ SIGN, mode),
        SwizzleAdd::SubtractReverse => fadd(a ^ SIGN, b, mode),
        SwizzleAdd::Pass => fadd(0, b, mode),
    }
}
