//! MUFU, the special-function unit, bit for bit.
//!
//! Rules and coefficients were measured on an H200: no difference over all 2^32 inputs of each of
//! the ten functions, and over all 2^16 inputs of the 16-bit forms. The unit has no modes; each
//! function is one quadratic per segment in integers. Subnormal operands count as zeros (TANH hands
//! small operands through untouched), subnormal results become zeros, every NaN is 0x7fffffff.

mod tables;

use tables::{EX2, LG2, RCP, RSQ, SINCOS, SQRT, TANH};

use super::float::NAN;
use super::half::HalfFormat;
use super::soft::Format;

const SIGN: u32 = 1 << 31;
const INFINITY: u32 = 0x7f80_0000;
const FRACTION: u32 = 0x7f_ffff;

field_values! {
    /// Function of a MUFU instruction. The numbers are the instruction field's.
    pub enum Function {
        /// Cosine of 2πx.
        Cos,
        /// Sine of 2πx.
        Sin,
        /// 2^x.
        Ex2,
        /// log2(x).
        Lg2,
        /// 1/x.
        Rcp,
        /// 1/sqrt(x).
        Rsq,
        /// 1/x of the high word of an FP64 number.
        Rcp64h,
        /// 1/sqrt(x) of the high word of an FP64 number.
        Rsq64h,
        /// sqrt(x).
        Sqrt,
        /// tanh(x).
        Tanh,
    }
}

impl Function {
    /// The function that the four-bit field names; 10 to 15 name none.
    pub fn from_code(code: u32) -> Option<Function> {
        Function::ALL.get(code as usize).copied()
    }
}

/// MUFU: the function of one register.
#[inline]
pub fn mufu(function: Function, x: u32) -> u32 {
    match function {
        Function::Cos => sine(x, true),
        Function::Sin => sine(x, false),
        Function::Ex2 => ex2(x),
        Function::Lg2 => lg2(x),
        Function::Rcp => rcp(x),
        Function::Rsq => rsq(x),
        Function::Rcp64h => rcp64h(x),
        Function::Rsq64h => rsq64h(x),
        Function::Sqrt => sqrt(x),
        Function::Tanh => tanh(x),
    }
}

/// MUFU.F16 and MUFU.BF16: the operand is widened, the result cut off toward zero. Subnormal FP16
/// results are kept. The result sits in the low half, the high half is zero.
#[inline]
pub fn mufu_half(function: Function, x: u16, format: HalfFormat) -> u32 {
    let result = mufu(function, format.widen(x));
    let magnitude = result & !SIGN;
    if magnitude > INFINITY {
        return 0x7fff;
    }
    if format == HalfFormat::Bf16 {
        return result >> 16;
    }
    let sign = result >> 16 & 0x8000;
    let exponent = (magnitude >> 23) as i32 - 112;
    let cut = if exponent >= 31 {
        0x7c00
    } else if exponent >= 1 {
        (exponent as u32) << 10 | (magnitude & FRACTION) >> 13
    } else if magnitude < 1 << 23 {
        0
    } else {
        ((magnitude & FRACTION) | 1 << 23) >> 13 >> (1 - exponent).min(31)
    };
    sign | cut
}

/// Sign bit, biased exponent and fraction.
#[inline(always)]
const fn split(x: u32) -> (u32, i32, u32) {
    (x & SIGN, (x >> 23 & 255) as i32, x & FRACTION)
}

/// The truncated squarer: about `x * x / 2^19` of a 17-bit number, each partial product cut off by
/// itself.
#[inline(always)]
const fn square(x: u32) -> i64 {
    let mut sum = 0;
    let mut bit = 0;
    while bit < 17 {
        sum += (x >> (18 - bit)) & 0u32.wrapping_sub(x >> bit & 1);
        bit += 1;
    }
    (sum >> 1) as i64
}

/// `A * 2^scale_a + B * x + C * 2^scale_c * sq`.
#[inline(always)]
fn quadratic(row: [i64; 3], x: u32, scale_a: u32, scale_c: u32, squared: i64) -> i64 {
    (row[0] << scale_a) + row[1] * i64::from(x) + ((row[2] * squared) << scale_c)
}

/// A positive fixed-point number with `places` binary places as an FP32 magnitude, cut off.
#[inline(always)]
const fn truncate(value: u64, places: i32) -> u32 {
    let top = 63 - value.leading_zeros() as i32;
    let fraction = if top >= 23 { value >> (top - 23) } else { value << (23 - top) };
    ((127 + top - places) as u32) << 23 | fraction as u32 & FRACTION
}

fn rcp(u: u32) -> u32 {
    let (sign, exponent, fraction) = split(u);
    if exponent == 255 {
        return if fraction != 0 { NAN } else { sign };
    }
    if exponent == 0 {
        return sign | INFINITY;
    }
    let x = fraction & 0xffff;
    let row = RCP[(fraction >> 16) as usize & 127];
    let y = (quadratic(row, x, 13, 0, square(2 * x)) + 0x47e7) >> 15;
    // 2^24 only for a fraction of 0: powers of two are exact.
    let carry = (y >> 24) as i32;
    let exponent = 253 - exponent + carry;
    if exponent <= 0 { sign } else { sign | (exponent as u32) << 23 | (y >> carry) as u32 & FRACTION }
}

fn rsq(u: u32) -> u32 {
    let (sign, exponent, fraction) = split(u);
    if exponent == 255 && fraction != 0 {
        return NAN;
    }
    if exponent == 0 {
        return sign | INFINITY;
    }
    if sign != 0 {
        return NAN;
    }
    if exponent == 255 {
        return 0;
    }
    let unbiased = exponent - 127;
    let g = ((unbiased & 1) as u32) << 23 | fraction;
    let x = g & 0x1_ffff;
    let y = if g == 0 {
        1 << 24
    } else {
        (quadratic(RSQ[(g >> 17) as usize & 127], x, 14, 2, square(x)) + 0x7fff) >> 16
    };
    let carry = (y >> 24) as i32;
    ((126 - (unbiased >> 1) + carry) as u32) << 23 | (y >> carry) as u32 & FRACTION
}

fn sqrt(u: u32) -> u32 {
    let (sign, exponent, fraction) = split(u);
    if exponent == 255 && fraction != 0 {
        return NAN;
    }
    if exponent == 0 {
        return sign;
    }
    if sign != 0 {
        return NAN;
    }
    if exponent == 255 {
        return u;
    }
    let unbiased = exponent - 127;
    let odd = unbiased & 1 != 0;
    let g = u32::from(odd) << 23 | fraction;
    let x = g & 0x1_ffff;
    let row = SQRT[(g >> 17) as usize & 127];
    let y = if odd {
        (quadratic(row, x, 14, 0, square(x)) + 0x7fff) >> 16
    } else {
        (quadratic(row, x, 15, 1, square(x)) + 0xffff) >> 17
    };
    ((127 + (unbiased >> 1)) as u32) << 23 | y as u32 & FRACTION
}

fn ex2(u: u32) -> u32 {
    let (sign, exponent, fraction) = split(u);
    if exponent == 255 && fraction != 0 {
        return NAN;
    }
    if exponent >= 134 {
        return if sign != 0 { 0 } else { INFINITY };
    }
    let mantissa = if exponent == 0 { 0 } else { fraction | 1 << 23 };
    // |x| with 23 binary places, cut off.
    let fixed = if exponent >= 127 {
        mantissa << (exponent - 127)
    } else {
        mantissa.checked_shr((127 - exponent) as u32).unwrap_or(0)
    };
    let (mut whole, mut part) = ((fixed >> 23) as i32, fixed & FRACTION);
    if sign != 0 {
        whole = -whole;
        if part != 0 {
            whole -= 1;
            part = !part & FRACTION;
        }
    }
    let x = part & 0x1_ffff;
    let y = (quadratic(EX2[(part >> 17) as usize & 63], x, 13, 0, square(x)) + 0x77e2) >> 15;
    match 127 + whole {
        ..=0 => 0,
        255.. => INFINITY,
        result => (result as u32) << 23 | y as u32 & FRACTION,
    }
}

fn lg2(u: u32) -> u32 {
    let (sign, exponent, fraction) = split(u);
    if exponent == 255 && fraction != 0 {
        return NAN;
    }
    if exponent == 0 {
        return SIGN | INFINITY;
    }
    if sign != 0 {
        return NAN;
    }
    if exponent == 255 {
        return u;
    }
    let x = fraction & 0x1_ffff;
    let row = LG2[(fraction >> 17) as usize & 63];
    let part = if exponent == 127 && fraction == 0 {
        0
    } else {
        (quadratic(row, x, 12, 1, square(x)) + 0x3345) >> 2
    };
    let result = part + (i64::from(exponent - 127) << 36);
    let (sign, magnitude) = if result < 0 { (SIGN, !result) } else { (0, result) };
    if magnitude == 0 { sign } else { sign | truncate(magnitude as u64, 36) }
}

fn sine(u: u32, cosine: bool) -> u32 {
    let (sign, exponent, fraction) = split(u);
    if exponent == 255 {
        return NAN;
    }
    let mantissa = if exponent == 0 { 0 } else { fraction | 1 << 23 };
    // Turns with 25 binary places, cut off, modulo one turn.
    let turns = if exponent >= 125 {
        mantissa.checked_shl((exponent - 125) as u32).unwrap_or(0)
    } else {
        mantissa.checked_shr((125 - exponent) as u32).unwrap_or(0)
    } & 0x1ff_ffff;
    let mut quadrant = turns >> 23;
    let mut phase = turns & FRACTION;
    let mut negative = sign != 0;
    if cosine {
        quadrant += 1;
        negative = false;
    }
    if quadrant & 1 != 0 {
        phase = !phase & FRACTION;
    }
    let sign = if negative != (quadrant & 2 != 0) { SIGN } else { 0 };
    let x = phase & 0x1_ffff;
    let result = quadratic(SINCOS[(phase >> 17) as usize & 63], x, 11, 0, square(x));
    if result <= 0 { sign } else { sign | truncate(result as u64, 37) }
}

/// Index bits of each octave of TANH, and its first row.
const TANH_OCTAVES: [(u32, u32); 11] =
    [(0, 0), (0, 1), (0, 2), (1, 3), (1, 5), (2, 7), (2, 11), (2, 15), (3, 19), (4, 27), (3, 43)];

fn tanh(u: u32) -> u32 {
    let (sign, exponent, fraction) = split(u);
    if exponent == 255 && fraction != 0 {
        return NAN;
    }
    if exponent < 119 {
        return u;
    }
    if exponent >= 130 {
        return sign | 0x3f80_0000;
    }
    let (bits, first) = TANH_OCTAVES[(exponent - 119) as usize];
    let x = fraction >> (6 - bits) & 0x1_ffff;
    let row = TANH[(first + (fraction >> (23 - bits))) as usize];
    let result = quadratic(row, x, 15, 0, square(x));
    sign | truncate(result as u64, 39)
}

/// Sign bit, biased exponent and fraction of the high word of an FP64 number.
#[inline(always)]
const fn split_high(x: u32) -> (u32, i32, u32) {
    (x & SIGN, (x >> 20 & 2047) as i32, x & 0xf_ffff)
}

/// High word of FP64 infinity.
const INFINITY_HIGH: u32 = (Format::F64.infinity() >> 32) as u32;

fn rcp64h(u: u32) -> u32 {
    let (sign, exponent, fraction) = split_high(u);
    if exponent == 2047 {
        return if fraction != 0 { NAN } else { sign };
    }
    if exponent == 0 {
        return sign | INFINITY_HIGH;
    }
    let r = rcp(0x3f80_0000 | fraction << 3);
    let result = (r >> 23) as i32 - 127 + 2046 - exponent;
    if result <= 0 { sign } else { sign | (result as u32) << 20 | (r & FRACTION) >> 3 }
}

fn rsq64h(u: u32) -> u32 {
    let (sign, exponent, fraction) = split_high(u);
    if exponent == 2047 && fraction != 0 {
        return NAN;
    }
    if exponent == 0 {
        return sign | INFINITY_HIGH;
    }
    if sign != 0 {
        return NAN;
    }
    if exponent == 2047 {
        return 0;
    }
    let unbiased = exponent - 1023;
    let r = rsq((127 + (unbiased & 1) as u32) << 23 | fraction << 3);
    ((((r >> 23) as i32) - 127 + 1023 - (unbiased >> 1)) as u32) << 20 | (r & FRACTION) >> 3
}
