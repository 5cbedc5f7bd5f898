//! Conversions between formats.
//!
//! Register contents in, register contents out; a 16- or 8-bit number sits in the low bits and the
//! rest of the register is zero.

use super::half::{self, HalfFormat};
use super::soft::{self, Format, Number};
use super::{IntegerType, Rounding, Sign, Width, double, float};

/// A floating-point format that conversions read and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FloatFormat {
    /// `.F16`
    F16,
    /// `.BF16`
    Bf16,
    /// `.F32`
    F32,
    /// `.F64`
    F64,
}

impl FloatFormat {
    /// Field widths.
    #[inline(always)]
    pub const fn format(self) -> Format {
        match self {
            FloatFormat::F16 => Format::F16,
            FloatFormat::Bf16 => Format::BF16,
            FloatFormat::F32 => Format::F32,
            FloatFormat::F64 => Format::F64,
        }
    }

    /// The NaN that instructions without an FP64 side give in this format.
    #[inline(always)]
    pub const fn nan(self) -> u64 {
        match self {
            FloatFormat::F16 | FloatFormat::Bf16 => half::NAN as u64,
            FloatFormat::F32 => float::NAN as u64,
            FloatFormat::F64 => double::NAN,
        }
    }

    /// The number as FP64 (exact).
    #[inline(always)]
    pub fn value(self, bits: u64) -> f64 {
        match self {
            FloatFormat::F16 => f64::from(f32::from_bits(HalfFormat::F16.widen(bits as u16))),
            FloatFormat::Bf16 => f64::from(f32::from_bits(HalfFormat::Bf16.widen(bits as u16))),
            FloatFormat::F32 => f64::from(f32::from_bits(bits as u32)),
            FloatFormat::F64 => f64::from_bits(bits),
        }
    }
}

/// F2F: converts between floating-point formats, rounding once. With `flushes` (`.FTZ`) FP32
/// subnormals on either side become zeros of the same sign.
///
/// A NaN gives the result format's canonical NaN; with FP64 on either side its sign and the leading
/// bits of its payload are kept and it is made quiet (measured on H200 for F64.F32, F32.F64, F16.F64,
/// F16.F32 and BF16.F32).
#[inline(always)]
pub fn f2f(bits: u64, from: FloatFormat, to: FloatFormat, rounding: Rounding, flushes: bool) -> u64 {
    let bits = if from == FloatFormat::F32 { u64::from(float::flush_if(bits as u32, flushes)) } else { bits };
    let value = from.value(bits);
    if value.is_nan() {
        let wide = from == FloatFormat::F64 || to == FloatFormat::F64;
        return if wide { convert_nan(bits, from.format(), to.format()) } else { to.nan() };
    }
    let result = match (to, rounding) {
        (FloatFormat::F64, _) => value.to_bits(),
        (FloatFormat::F32, Rounding::Nearest) => u64::from((value as f32).to_bits()),
        _ => soft::round_f64(value, to.format(), rounding),
    };
    if to == FloatFormat::F32 {
        u64::from(float::flush_result(result as u32, || value, rounding, flushes))
    } else {
        result
    }
}

/// A NaN in another format: sign and leading payload bits kept, made quiet.
#[inline(always)]
const fn convert_nan(bits: u64, from: Format, to: Format) -> u64 {
    let sign = if bits & from.sign_bit() != 0 { to.sign_bit() } else { 0 };
    let fraction = bits & ((1 << from.fraction_bits) - 1);
    let payload = if to.fraction_bits >= from.fraction_bits {
        fraction << (to.fraction_bits - from.fraction_bits)
    } else {
        fraction >> (from.fraction_bits - to.fraction_bits)
    };
    sign | to.infinity() | 1 << (to.fraction_bits - 1) | payload
}

/// Rounds to an integral value in FP64.
#[inline(always)]
fn integral(value: f64, rounding: Rounding) -> f64 {
    match rounding {
        Rounding::Nearest => value.round_ties_even(),
        Rounding::Down => value.floor(),
        Rounding::Up => value.ceil(),
        Rounding::Zero => value.trunc(),
    }
}

/// FRND: rounds to an integral value of the same format (no modifier: to nearest even). The sign of
/// a zero is kept. A NaN gives the canonical NaN; FP64 keeps the payload
/// and is made quiet (measured on H200).
#[inline(always)]
pub fn frnd(bits: u64, format: FloatFormat, rounding: Rounding, flushes: bool) -> u64 {
    let bits =
        if format == FloatFormat::F32 { u64::from(float::flush_if(bits as u32, flushes)) } else { bits };
    let value = format.value(bits);
    if value.is_nan() {
        return if format == FloatFormat::F64 { bits | 1 << 51 } else { format.nan() };
    }
    let value = integral(value, rounding);
    match format {
        FloatFormat::F64 => value.to_bits(),
        // Exact but for FP16 and BF16 values that round up past their last place, which cannot
        // happen: numbers with a fraction are below 2^11 or 2^8, where integers are exact.
        _ => soft::round_f64(value, format.format(), Rounding::Zero),
    }
}

/// F2I: rounds to an integer and saturates. 8- and 16-bit results are extended to the register by
/// their signedness.
///
/// A NaN gives 0 where neither side is 64 bits wide, else the pattern with only the highest bit of
/// the result set (measured on H200).
#[inline(always)]
pub fn f2i(bits: u64, from: FloatFormat, to: IntegerType, rounding: Rounding, flushes: bool) -> u64 {
    let wide = from == FloatFormat::F64 || to.width == Width::B64;
    f2i_nan(bits, from, to, rounding, flushes, !wide)
}

/// [`f2i`] with the instruction's own choice for NaN: with `nan_to_zero` (`.NTZ`) it gives 0, else the
/// pattern with only the highest bit of the result set. The compiler writes `.NTZ` exactly where neither
/// side is 64 bits wide, which is what was measured.
#[inline(always)]
pub fn f2i_nan(
    bits: u64,
    from: FloatFormat,
    to: IntegerType,
    rounding: Rounding,
    flushes: bool,
    nan_to_zero: bool,
) -> u64 {
    let bits = if from == FloatFormat::F32 { u64::from(float::flush_if(bits as u32, flushes)) } else { bits };
    let value = from.value(bits);
    if value.is_nan() {
        return if nan_to_zero { 0 } else { 1 << (to.width.bits() - 1) };
    }
    let value = integral(value, rounding);
    // `as` saturates, and every narrower range lies inside.
    match (to.width, to.sign) {
        (Width::B64, Sign::Signed) => value as i64 as u64,
        (Width::B64, Sign::Unsigned) => value as u64,
        (Width::B32, Sign::Signed) => u64::from(value as i32 as u32),
        (Width::B32, Sign::Unsigned) => u64::from(value as u32),
        (Width::B16, Sign::Signed) => u64::from(value as i16 as i32 as u32),
        (Width::B16, Sign::Unsigned) => u64::from(value as u16),
        (Width::B8, Sign::Signed) => u64::from(value as i8 as i32 as u32),
        (Width::B8, Sign::Unsigned) => u64::from(value as u8),
    }
}

/// I2F, I2FP: converts an integer to a floating-point format, rounding once. Bits of the register
/// above the integer's width are not looked at.
#[inline(always)]
pub fn i2f(bits: u64, from: IntegerType, to: FloatFormat, rounding: Rounding) -> u64 {
    let value = from.value(bits);
    if rounding == Rounding::Nearest {
        match to {
            FloatFormat::F32 => return u64::from((value as f32).to_bits()),
            FloatFormat::F64 => return (value as f64).to_bits(),
            FloatFormat::F16 | FloatFormat::Bf16 => {}
        }
    }
    let number = Number { negative: value < 0, exponent: 0, magnitude: value.unsigned_abs() };
    number.round(to.format(), rounding)
}

/// [`i2f`] of a 32-bit integer to FP32, for the common case in a plain loop.
#[inline(always)]
pub fn i2f_f32(bits: u32, sign: Sign) -> u32 {
    match sign {
        Sign::Signed => (bits as i32 as f32).to_bits(),
        Sign::Unsigned => (bits as f32).to_bits(),
    }
}

/// FP32 to FP16 or BF16, as F2FP does it: round, then with `relu` negative results and -0 become +0.
#[inline(always)]
pub fn narrow_f32(a: u32, to: HalfFormat, rounding: Rounding, relu: bool) -> u16 {
    let result = to.narrow(f64::from(f32::from_bits(a)), rounding);
    if relu && result & 0x8000 != 0 { 0 } else { result }
}

/// F2FP.F16.F32.PACK_AB, F2FP.BF16.F32.PACK_AB: `a` goes to the high half, `b` to the low half.
#[inline(always)]
pub fn f2fp_pack(a: u32, b: u32, to: HalfFormat, rounding: Rounding, relu: bool) -> u32 {
    half::pack(narrow_f32(b, to, rounding, relu), narrow_f32(a, to, rounding, relu))
}

/// F2FP.F16.F32.MERGE_C, F2FP.BF16.F32.MERGE_C: `b` in the low half, the low half of `c` above it.
///
/// The compiler passes RZ for `c`; its place is taken over from the FP8 form, where it was measured.
#[inline(always)]
pub fn f2fp_merge(b: u32, c: u32, to: HalfFormat, rounding: Rounding, relu: bool) -> u32 {
    half::pack(narrow_f32(b, to, rounding, relu), c as u16)
}

/// An 8-bit floating-point format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fp8 {
    /// 4 exponent bits, 3 fraction bits; no infinity, 0x7f is NaN.
    E4M3,
    /// 5 exponent bits, 2 fraction bits; a shortened FP16.
    E5M2,
}

/// One FP8 number as FP16 (exact), as F2FP.F16.E4M3.UNPACK_B and E5M2 do it (measured on H200, all
/// inputs).
#[inline(always)]
pub fn fp8_to_f16(a: u8, from: Fp8) -> u16 {
    let magnitude = u16::from(a & 0x7f);
    let sign = u16::from(a & 0x80) << 8;
    match from {
        Fp8::E5M2 if magnitude > 0x7c => half::NAN,
        Fp8::E5M2 => u16::from(a) << 8,
        Fp8::E4M3 if magnitude == 0x7f => half::NAN,
        Fp8::E4M3 if magnitude >= 8 => sign | ((magnitude << 7) + (8 << 10)),
        // Subnormal: a multiple of 2^-9.
        Fp8::E4M3 => {
            let value = f32::from(magnitude) * f32::from_bits(118 << 23);
            sign | HalfFormat::F16.narrow(f64::from(value), Rounding::Nearest)
        }
    }
}

/// F2FP.F16.E4M3.UNPACK_B, F2FP.F16.E5M2.UNPACK_B: two FP8 numbers in the low half, or with `high`
/// (`.H1`) in the high half, as a pair of FP16.
#[inline(always)]
pub fn f2fp_unpack_fp8(a: u32, from: Fp8, high: bool) -> u32 {
    let pair = if high { a >> 16 } else { a };
    half::pack(fp8_to_f16(pair as u8, from), fp8_to_f16((pair >> 8) as u8, from))
}

/// F2FP.RELU on a pair of halves: negative ones and -0 become +0, NaN stays.
#[inline(always)]
pub const fn relu_pair(pair: u32) -> u32 {
    let low = if pair & 0x8000 != 0 { 0 } else { pair & 0xffff };
    let high = if pair & 0x8000_0000 != 0 { 0 } else { pair & 0xffff_0000 };
    high | low
}

/// Rounds to nearest even to FP8 with `.SATFINITE`: magnitudes too large, infinity included, become
/// the largest finite number; NaN becomes 0x7f (measured on H200). With `relu` negative numbers
/// become +0.
#[inline(always)]
pub fn f64_to_fp8(value: f64, to: Fp8, relu: bool) -> u8 {
    if value.is_nan() {
        return 0x7f;
    }
    if relu && value.is_sign_negative() {
        return 0;
    }
    let sign = if value.is_sign_negative() { 0x80 } else { 0 };
    let (format, largest) = match to {
        // One exponent more than the format that ends at infinity: 0x78 to 0x7e are numbers here.
        Fp8::E4M3 => (Format { exponent_bits: 4, fraction_bits: 3 }, 0x7e),
        Fp8::E5M2 => (Format { exponent_bits: 5, fraction_bits: 2 }, 0x7b),
    };
    let magnitude = value.abs();
    if to == Fp8::E4M3 && magnitude >= 256.0 {
        // Numbers 256 to 448, steps of 32: rounded here as the shared routine ends below them.
        let steps = (magnitude.min(448.0) / 32.0).round_ties_even() as u8;
        return sign | (0x70 + steps).min(largest);
    }
    sign | (soft::round_f64(magnitude, format, Rounding::Nearest) as u8).min(largest)
}

/// F2FP.SATFINITE.{E4M3,E5M2}.F32.PACK_AB_MERGE_C: `a` in byte 1, `b` in byte 0, and the low half of
/// `c` above them (measured on H200).
#[inline(always)]
pub fn f2fp_pack_fp8(a: u32, b: u32, c: u32, to: Fp8, relu: bool) -> u32 {
    let byte = |x: u32| u32::from(f64_to_fp8(f64::from(f32::from_bits(x)), to, relu));
    c << 16 | byte(a) << 8 | byte(b)
}

/// F2FP.SATFINITE.{E4M3,E5M2}.F16.UNPACK_B_MERGE_C: the pair of FP16 in `a` to two bytes, and the
/// low half of `c` above them (the place of `c` taken over from the FP32 form).
#[inline(always)]
pub fn f2fp_pack_fp8_from_f16(a: u32, c: u32, to: Fp8, relu: bool) -> u32 {
    let byte = |x: u32| u32::from(f64_to_fp8(FloatFormat::F16.value(u64::from(x & 0xffff)), to, relu));
    c << 16 | byte(a >> 16) << 8 | byte(a)
}

/// How FP32 is rounded to TF32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tf32Rounding {
    /// To nearest, ties to even.
    Nearest,
    /// `RNA`: to nearest, ties away from zero.
    NearestAway,
    /// Towards zero.
    Zero,
}

/// FP32 to TF32: 10 fraction bits, the low 13 bits of the register zero. On sm_90 this is
/// F2FP.TF32.F32.PACK_B, to nearest or `.RZ`. NaN gives the FP32 NaN (not measured: `ptxas` builds
/// `cvt.rna.tf32` from integer additions, on every generation).
#[inline(always)]
pub const fn f32_to_tf32(a: u32, rounding: Tf32Rounding) -> u32 {
    const DROPPED: u32 = 0x1fff;
    if float::is_nan(a) {
        return float::NAN;
    }
    // An infinity has no fraction: nothing is added that could carry out of it.
    let bump = match rounding {
        Tf32Rounding::Zero => 0,
        Tf32Rounding::NearestAway => 0x1000,
        Tf32Rounding::Nearest => 0xfff + (a >> 13 & 1),
    };
    let magnitude = (a & 0x7fff_ffff) + bump;
    (a & 0x8000_0000) | (magnitude & !DROPPED)
}

/// F2FP.TF32.F32.PACK_B: [`f32_to_tf32`], with `relu` negative results and -0 become +0.
#[inline(always)]
pub const fn f2fp_tf32(a: u32, rounding: Tf32Rounding, relu: bool) -> u32 {
    let result = f32_to_tf32(a, rounding);
    if relu && result >> 31 != 0 { 0 } else { result }
}
