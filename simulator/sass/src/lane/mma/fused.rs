//! The floating-point unit of the tensor core: one addend and a number of products, added at once.

use super::{Accumulator, Factor, Numerics};

/// A factor or addend: `significand * 2^(exponent - fraction bits)`, not normalised.
#[derive(Debug, Clone, Copy, Default)]
pub struct Term {
    /// Its sign.
    pub negative: bool,
    /// It is no number.
    pub nan: bool,
    /// It is infinite.
    pub infinite: bool,
    /// Of the significand's highest place.
    pub exponent: i32,
    /// With the place before the point.
    pub significand: u32,
}

impl Term {
    /// The number that IEEE-like fields hold; a subnormal's exponent is that of the smallest normal one.
    #[inline(always)]
    const fn fields(bits: u32, (exponent_bits, fraction_bits): (u32, u32)) -> Term {
        let fraction = bits & ((1 << fraction_bits) - 1);
        let all = (1 << exponent_bits) - 1;
        let field = bits >> fraction_bits & all;
        let significand = if field == 0 { fraction } else { fraction | 1 << fraction_bits };
        let exponent = if field == 0 { 1 } else { field as i32 };
        Term {
            negative: bits >> (exponent_bits + fraction_bits) & 1 != 0,
            nan: field == all && fraction != 0,
            infinite: field == all && fraction == 0,
            exponent: exponent - (all >> 1) as i32,
            significand,
        }
    }

    /// A factor from the element's bits (TF32: from the whole register).
    #[inline(always)]
    pub const fn factor(bits: u32, factor: Factor) -> Term {
        let bits = if matches!(factor, Factor::Tf32) { bits >> 13 } else { bits };
        let term = Term::fields(bits, factor.fields());
        if matches!(factor, Factor::E4M3) {
            // No infinity, and the highest exponent holds numbers but for one pattern.
            let nan = bits & 0x7f == 0x7f;
            return Term { nan, infinite: false, ..term };
        }
        term
    }
}

/// Cuts `significand` off below the last kept place, toward zero.
#[inline(always)]
const fn align(significand: u32, shift: i32) -> i64 {
    if significand == 0 {
        0
    } else if shift >= 0 {
        // A significand has at most 24 bits and is shifted by at most the kept bits.
        (significand as i64) << shift
    } else if shift > -32 {
        (significand >> -shift) as i64
    } else {
        0
    }
}

/// Most products of one step.
pub const STEP: usize = 16;

/// One fused step: the addend plus the sum of the products. Terms are cut off below the largest
/// exponent's last kept place, added exactly, and rounded once. A zero result is +0.
pub fn step(
    factors: [Factor; 2],
    accumulator: Accumulator,
    numerics: Numerics,
    a: &[Term],
    b: &[Term],
    c: u32,
) -> u32 {
    let (result_fields, smallest) = match accumulator {
        Accumulator::F16 => ((5, 10), -14),
        Accumulator::F32 => ((8, 23), -126),
    };
    let addend = Term::fields(c, result_fields);
    let mut nan = addend.nan;
    let mut infinity = [addend.infinite && !addend.negative, addend.infinite && addend.negative];
    let mut largest = smallest - numerics.floor_below;
    if addend.significand != 0 {
        largest = largest.max(addend.exponent);
    }
    let mut products = [(0u32, 0i32, false); STEP];
    for ((x, y), product) in a.iter().zip(b).zip(&mut products) {
        let negative = x.negative != y.negative;
        nan |= x.nan || y.nan;
        if x.infinite || y.infinite {
            nan |= x.significand == 0 || y.significand == 0;
            infinity[usize::from(negative)] = true;
        }
        let significand = x.significand * y.significand;
        let exponent = x.exponent + y.exponent;
        if significand != 0 {
            largest = largest.max(exponent);
        }
        *product = (significand, exponent, negative);
    }
    nan |= infinity[0] && infinity[1];
    match accumulator {
        Accumulator::F32 if nan => return 0x7fff_ffff,
        Accumulator::F16 if nan => return 0x7fff,
        Accumulator::F32 if infinity[0] => return 0x7f80_0000,
        Accumulator::F32 if infinity[1] => return 0xff80_0000,
        Accumulator::F16 if infinity[0] => return 0x7c00,
        Accumulator::F16 if infinity[1] => return 0xfc00,
        _ => {}
    }
    let kept = numerics.fraction_bits;
    let signed = |value: i64, negative: bool| if negative { -value } else { value };
    let shift = kept - result_fields.1 as i32 - (largest - addend.exponent);
    let mut sum = signed(align(addend.significand, shift), addend.negative);
    let fraction_bits = (factors[0].fields().1 + factors[1].fields().1) as i32;
    for (significand, exponent, negative) in products {
        if significand != 0 {
            let shift = kept - fraction_bits - (largest - exponent);
            sum += signed(align(significand, shift), negative);
        }
    }
    pack(sum, largest - kept, accumulator, numerics.result_bits, smallest)
}

/// Rounds `sum * 2^exponent` to the accumulator's format, of FP32 keeping `result_bits` fraction bits.
fn pack(sum: i64, exponent: i32, accumulator: Accumulator, result_bits: u32, smallest: i32) -> u32 {
    let magnitude = sum.unsigned_abs();
    if magnitude == 0 {
        return 0;
    }
    let (fraction_bits, sign, infinity) = match accumulator {
        Accumulator::F16 => (10, 0x8000, 0x7c00),
        Accumulator::F32 => (23, 0x8000_0000, 0x7f80_0000),
    };
    let sign = if sum < 0 { sign } else { 0 };
    let leading = exponent + 63 - magnitude.leading_zeros() as i32;
    let place = leading.max(smallest);
    // The sum is below 2^32 places, so a drop of 63 leaves nothing, not even a tie.
    let drop = (place - fraction_bits - exponent).min(63);
    let mut result = if drop <= 0 { magnitude << -drop } else { magnitude >> drop };
    match accumulator {
        Accumulator::F32 => result &= u64::MAX << (23 - result_bits),
        Accumulator::F16 if drop > 0 => {
            const TIE: u64 = 1 << 63;
            let lost = magnitude << (64 - drop);
            result += u64::from(lost > TIE || lost == TIE && result & 1 != 0);
        }
        Accumulator::F16 => {}
    }
    if result == 0 {
        return 0;
    }
    let bits = (((place - smallest) as u64) << fraction_bits) + result;
    if bits >= u64::from(infinity) { sign | infinity } else { sign | bits as u32 }
}
