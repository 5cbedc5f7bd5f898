//! FP16 and BF16 arithmetic and comparisons, one half of a register at a time and in pairs.
//!
//! Operands and results of the element functions are 16-bit patterns in a `u16`. A NaN result is
//! [`NAN`] in both formats. Arithmetic, `.FTZ`, `.SAT`, `.RELU`, minimum and maximum were measured on H200.

use super::soft::{self, Format};
use super::{Boolean, FloatCompare, Rounding, min_max};

/// The NaN that half-precision instructions produce.
pub const NAN: u16 = 0x7fff;

const SIGN: u16 = 1 << 15;

/// Format of the two halves of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HalfFormat {
    /// FP16, no modifier.
    F16,
    /// BF16, `.BF16_V2`.
    Bf16,
}

impl HalfFormat {
    /// Field widths.
    #[inline(always)]
    pub const fn format(self) -> Format {
        match self {
            HalfFormat::F16 => Format::F16,
            HalfFormat::Bf16 => Format::BF16,
        }
    }

    /// Bits of positive infinity.
    #[inline(always)]
    pub const fn infinity(self) -> u16 {
        match self {
            HalfFormat::F16 => 0x7c00,
            HalfFormat::Bf16 => 0x7f80,
        }
    }

    /// Bits of 1.0.
    #[inline(always)]
    pub const fn one(self) -> u16 {
        match self {
            HalfFormat::F16 => 0x3c00,
            HalfFormat::Bf16 => 0x3f80,
        }
    }

    /// Whether the bits are a NaN.
    #[inline(always)]
    pub const fn is_nan(self, a: u16) -> bool {
        a & !SIGN > self.infinity()
    }

    /// The number as FP32 bits (exact; a NaN becomes the FP32 NaN).
    #[inline(always)]
    pub fn widen(self, a: u16) -> u32 {
        if self.is_nan(a) {
            return super::float::NAN;
        }
        match self {
            HalfFormat::Bf16 => u32::from(a) << 16,
            HalfFormat::F16 => {
                let sign = u32::from(a & SIGN) << 16;
                let magnitude = u32::from(a & !SIGN);
                if magnitude >= 0x7c00 {
                    return sign | 0x7f80_0000;
                }
                // Normal: shift the fields and correct the bias. Subnormal: an exact multiple of 2^-24.
                if magnitude >= 0x400 {
                    sign | ((magnitude << 13) + (112 << 23))
                } else {
                    sign | (magnitude as f32 * f32::from_bits(103 << 23)).to_bits()
                }
            }
        }
    }

    /// The number as FP64.
    #[inline(always)]
    fn value(self, a: u16) -> f64 {
        f64::from(f32::from_bits(self.widen(a)))
    }

    /// Rounds an FP64 number (possibly rounded to odd) to the format; NaN gives [`NAN`].
    #[inline(always)]
    pub fn narrow(self, value: f64, rounding: Rounding) -> u16 {
        if value.is_nan() { NAN } else { soft::round_f64(value, self.format(), rounding) as u16 }
    }
}

/// Modifiers that HADD2, HMUL2 and HFMA2 share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HalfMode {
    /// Format of operands and result.
    pub format: HalfFormat,
    /// `.FTZ`: subnormal operands and results become zeros of the same sign.
    pub flushes: bool,
    /// `.SAT`: clamp to [0, 1], NaN to +0.
    pub saturate: bool,
    /// `.RELU`: negative results become +0, NaN stays.
    pub relu: bool,
}

impl HalfMode {
    /// No modifier.
    #[inline(always)]
    pub const fn plain(format: HalfFormat) -> HalfMode {
        HalfMode { format, flushes: false, saturate: false, relu: false }
    }

    #[inline(always)]
    const fn flush(self, a: u16) -> u16 {
        let exponent = self.format.infinity();
        if self.flushes && a & exponent == 0 { a & SIGN } else { a }
    }

    #[inline(always)]
    fn finish(self, value: f64) -> u16 {
        let mut result = self.format.narrow(value, Rounding::Nearest);
        if self.flushes {
            let smallest = 1 << self.format.format().fraction_bits;
            let tiny = || soft::is_tiny(value, self.format.format(), Rounding::Nearest);
            result = if result & !SIGN == smallest && tiny() { result & SIGN } else { self.flush(result) };
        }
        let nan = self.format.is_nan(result);
        let negative = result & SIGN != 0;
        if self.relu && negative && !nan {
            result = 0;
        }
        if self.saturate {
            result = if nan || negative { 0 } else { result.min(self.format.one()) };
        }
        result
    }
}

/// The exact sum, rounded to odd where it does not fit FP64; infinities and NaNs as IEEE 754.
#[inline(always)]
fn sum(a: f64, b: f64) -> f64 {
    let plain = a + b;
    if a.is_finite() && b.is_finite() { soft::add_to_odd(a, b) } else { plain }
}

/// HADD2, one half: `a + b`.
#[inline(always)]
pub fn hadd(a: u16, b: u16, mode: HalfMode) -> u16 {
    let (a, b) = (mode.flush(a), mode.flush(b));
    mode.finish(sum(mode.format.value(a), mode.format.value(b)))
}

/// HMUL2, one half: `a * b`.
#[inline(always)]
pub fn hmul(a: u16, b: u16, mode: HalfMode) -> u16 {
    let (a, b) = (mode.flush(a), mode.flush(b));
    mode.finish(mode.format.value(a) * mode.format.value(b))
}

/// HFMA2, one half: `a * b + c`, rounded once.
#[inline(always)]
pub fn hfma(a: u16, b: u16, c: u16, mode: HalfMode) -> u16 {
    let (a, b, c) = (mode.flush(a), mode.flush(b), mode.flush(c));
    mode.finish(sum(mode.format.value(a) * mode.format.value(b), mode.format.value(c)))
}

/// Which factors make more of a product than IEEE 754 says (measured on H200).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Factors {
    /// None.
    Plain,
    /// `.FMZ`: with zero, or a subnormal number, the product is zero, whatever the other factor is.
    ZeroWins,
    /// `.OOB`: with [`OUT_OF_BOUNDS`] the result is zero, whatever is added.
    OutOfBounds,
}

/// The NaN, in both formats and with either sign, that fills what a tensor has no elements for.
pub const OUT_OF_BOUNDS: u16 = 0x7ff7;

/// [`hfma`] with special factors.
#[inline(always)]
pub fn hfma_of(a: u16, b: u16, c: u16, mode: HalfMode, factors: Factors) -> u16 {
    let zero = |x: u16| x & mode.format.infinity() == 0;
    let out = |x: u16| x & !SIGN == OUT_OF_BOUNDS;
    match factors {
        Factors::ZeroWins if zero(a) || zero(b) => hfma(0, 0, c, mode),
        Factors::OutOfBounds if out(a) || out(b) => 0,
        _ => hfma(a, b, c, mode),
    }
}

/// [`hmul`] with `.FMZ`.
#[inline(always)]
pub fn hmul_zero(a: u16, b: u16, mode: HalfMode) -> u16 {
    let zero = |x: u16| x & mode.format.infinity() == 0;
    if zero(a) || zero(b) { 0 } else { hmul(a, b, mode) }
}

/// HADD2.F32: the FP32 sum of one half of each operand; `HADD2.F32 R, -RZ, R.H0_H0` is how a half
/// is widened.
#[inline(always)]
pub fn hadd_f32(a: u16, b: u16, format: HalfFormat) -> u32 {
    let sum = f32::from_bits(format.widen(a)) + f32::from_bits(format.widen(b));
    super::float::canonical(sum.to_bits())
}

/// HMNMX2, one half: the smaller operand if `minimum`, else the larger; -0 is below +0. One NaN
/// loses against a number, or with `nan` (`.NAN`) wins.
#[inline(always)]
pub fn hmnmx(a: u16, b: u16, minimum: bool, nan: bool, mode: HalfMode) -> u16 {
    let (a, b) = (mode.flush(a), mode.flush(b));
    let nans = [mode.format.is_nan(a), mode.format.is_nan(b)];
    min_max([a, b], nans, ordered(a) < ordered(b), minimum, nan, NAN)
}

/// HMNMX2.XORSIGN, one half: [`hmnmx`] with a sign that is negative where the signs of `raw_a` and `raw_b`
/// differ, which are the halves before their modifiers. A NaN stays [`NAN`] (not measured).
#[inline(always)]
pub fn hmnmx_xorsign(
    (a, b): (u16, u16),
    (raw_a, raw_b): (u16, u16),
    minimum: bool,
    nan: bool,
    mode: HalfMode,
) -> u16 {
    let result = hmnmx(a, b, minimum, nan, mode);
    if mode.format.is_nan(result) { result } else { result & !SIGN | (raw_a ^ raw_b) & SIGN }
}

/// Maps the bits so that signed integer order is numeric order with -0 below +0.
#[inline(always)]
const fn ordered(a: u16) -> i16 {
    let a = a as i16;
    a ^ ((a >> 15) & i16::MAX)
}

/// HSETP2, HSET2, one half: the comparison alone.
#[inline(always)]
pub fn compare(a: u16, b: u16, comparison: FloatCompare, mode: HalfMode) -> bool {
    let (a, b) = (mode.flush(a), mode.flush(b));
    comparison.holds_f32(f32::from_bits(mode.format.widen(a)), f32::from_bits(mode.format.widen(b)))
}

/// HSET2, one half: all ones, or with `float` (`.BF`) 1.0; else 0.
#[inline(always)]
pub const fn hset(condition: bool, float: bool, format: HalfFormat) -> u16 {
    match (condition, float) {
        (false, _) => 0,
        (true, true) => format.one(),
        (true, false) => u16::MAX,
    }
}

/// How the two halves of an operand are chosen from its register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Swizzle {
    /// No modifier (`.H1_H0`): both halves as they are.
    H1H0,
    /// `.H0_H0`: the low half twice.
    H0H0,
    /// `.H1_H1`: the high half twice.
    H1H1,
    /// `.F32`: the register is one FP32 number, used for both halves (rounded to the format here;
    /// whether the hardware keeps its full precision was not measured).
    F32,
}

impl Swizzle {
    /// Low and high half of the operand.
    #[inline(always)]
    pub fn apply(self, register: u32, format: HalfFormat) -> (u16, u16) {
        let (low, high) = (register as u16, (register >> 16) as u16);
        match self {
            Swizzle::H1H0 => (low, high),
            Swizzle::H0H0 => (low, low),
            Swizzle::H1H1 => (high, high),
            Swizzle::F32 => {
                let half = format.narrow(f64::from(f32::from_bits(register)), Rounding::Nearest);
                (half, half)
            }
        }
    }
}

/// Source modifiers of a half operand: absolute value first, then negation. They act on the sign
/// bits alone.
#[inline(always)]
pub const fn modify(halves: (u16, u16), absolute: bool, negate: bool) -> (u16, u16) {
    let keep = if absolute { !SIGN } else { u16::MAX };
    let flip = if negate { SIGN } else { 0 };
    ((halves.0 & keep) ^ flip, (halves.1 & keep) ^ flip)
}

/// Two halves as a register.
#[inline(always)]
pub const fn pack(low: u16, high: u16) -> u32 {
    (high as u32) << 16 | low as u32
}

/// HADD2: both halves.
#[inline(always)]
pub fn hadd2(a: (u16, u16), b: (u16, u16), mode: HalfMode) -> u32 {
    pack(hadd(a.0, b.0, mode), hadd(a.1, b.1, mode))
}

/// HMUL2: both halves.
#[inline(always)]
pub fn hmul2(a: (u16, u16), b: (u16, u16), mode: HalfMode) -> u32 {
    pack(hmul(a.0, b.0, mode), hmul(a.1, b.1, mode))
}

/// HFMA2: both halves.
#[inline(always)]
pub fn hfma2(a: (u16, u16), b: (u16, u16), c: (u16, u16), mode: HalfMode) -> u32 {
    pack(hfma(a.0, b.0, c.0, mode), hfma(a.1, b.1, c.1, mode))
}

/// HMNMX2: both halves.
#[inline(always)]
pub fn hmnmx2(a: (u16, u16), b: (u16, u16), minimum: bool, nan: bool, mode: HalfMode) -> u32 {
    pack(hmnmx(a.0, b.0, minimum, nan, mode), hmnmx(a.1, b.1, minimum, nan, mode))
}

/// HMNMX2.XORSIGN: both halves; `raw` are the operands before their modifiers.
#[inline(always)]
pub fn hmnmx2_xorsign(
    [a, b]: [(u16, u16); 2],
    [raw_a, raw_b]: [(u16, u16); 2],
    minimum: bool,
    nan: bool,
    mode: HalfMode,
) -> u32 {
    let half = |a, b, raw_a, raw_b| hmnmx_xorsign((a, b), (raw_a, raw_b), minimum, nan, mode);
    pack(half(a.0, b.0, raw_a.0, raw_b.0), half(a.1, b.1, raw_a.1, raw_b.1))
}

/// HSETP2: both predicates. The first compares the low halves, the second the high halves, each combined
/// with the predicate operand. With `both` (`.H_AND`) the first says that both comparisons hold, the
/// second that not both do.
#[inline(always)]
pub fn hsetp2(
    a: (u16, u16),
    b: (u16, u16),
    comparison: FloatCompare,
    mode: HalfMode,
    both: bool,
    boolean: Boolean,
    predicate: bool,
) -> (bool, bool) {
    let (low, high) = (compare(a.0, b.0, comparison, mode), compare(a.1, b.1, comparison, mode));
    if both {
        boolean.both(low && high, predicate)
    } else {
        (boolean.apply(low, predicate), boolean.apply(high, predicate))
    }
}

/// HSET2: both halves, each comparison combined with the predicate operand.
#[inline(always)]
pub fn hset2(
    a: (u16, u16),
    b: (u16, u16),
    comparison: FloatCompare,
    mode: HalfMode,
    float: bool,
    boolean: Boolean,
    predicate: bool,
) -> u32 {
    let half = |a, b| {
        let condition = boolean.apply(compare(a, b, comparison, mode), predicate);
        hset(condition, float, mode.format)
    };
    pack(half(a.0, b.0), half(a.1, b.1))
}
