//! Exact arithmetic in integers, for what the host's floating point does not offer: directed
//! rounding, small formats, 64-bit conversions.

use super::Rounding;

/// A binary floating-point format with IEEE 754 special values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// Bits of the exponent field.
    pub exponent_bits: u32,
    /// Bits of the fraction field.
    pub fraction_bits: u32,
}

impl Format {
    /// FP16.
    pub const F16: Format = Format { exponent_bits: 5, fraction_bits: 10 };
    /// BF16.
    pub const BF16: Format = Format { exponent_bits: 8, fraction_bits: 7 };
    /// FP32.
    pub const F32: Format = Format { exponent_bits: 8, fraction_bits: 23 };
    /// FP64.
    pub const F64: Format = Format { exponent_bits: 11, fraction_bits: 52 };

    /// Exponent bias.
    #[inline(always)]
    pub const fn bias(self) -> i32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    /// Bits of positive infinity.
    #[inline(always)]
    pub const fn infinity(self) -> u64 {
        ((1 << self.exponent_bits) - 1) << self.fraction_bits
    }

    /// The sign bit.
    #[inline(always)]
    pub const fn sign_bit(self) -> u64 {
        1 << (self.exponent_bits + self.fraction_bits)
    }

    /// Whether the bits are a NaN.
    #[inline(always)]
    pub const fn is_nan(self, bits: u64) -> bool {
        bits & (self.sign_bit() - 1) > self.infinity()
    }

    /// Whether the bits are an infinity of either sign.
    #[inline(always)]
    pub const fn is_infinite(self, bits: u64) -> bool {
        bits & (self.sign_bit() - 1) == self.infinity()
    }
}

/// A finite number: `±magnitude * 2^exponent`. Bits that were lost below are jammed into bit 0,
/// which is harmless as long as bit 0 lies at least two places below the rounding position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number {
    /// Negative.
    pub negative: bool,
    /// Weight of bit 0.
    pub exponent: i32,
    /// Magnitude.
    pub magnitude: u128,
}

impl Number {
    /// The finite number that the bits hold (of infinities and NaNs the fraction is taken as is).
    #[inline]
    pub const fn unpack(bits: u64, format: Format) -> Number {
        let fraction = bits & ((1 << format.fraction_bits) - 1);
        let field = (bits >> format.fraction_bits) & ((1 << format.exponent_bits) - 1);
        let (magnitude, exponent) =
            if field == 0 { (fraction, 1) } else { (fraction | 1 << format.fraction_bits, field as i32) };
        Number {
            negative: bits & format.sign_bit() != 0,
            exponent: exponent - format.bias() - format.fraction_bits as i32,
            magnitude: magnitude as u128,
        }
    }

    /// The exact product; both magnitudes are below 2^64.
    #[inline]
    pub const fn multiply(self, other: Number) -> Number {
        Number {
            negative: self.negative != other.negative,
            exponent: self.exponent + other.exponent,
            magnitude: self.magnitude * other.magnitude,
        }
    }

    /// Moves the highest bit to bit 125, leaving room for one carry. Zero stays zero.
    #[inline]
    const fn normalised(self) -> Number {
        let shift = self.magnitude.leading_zeros() as i32 - 2;
        if self.magnitude == 0 {
            self
        } else if shift >= 0 {
            Number { exponent: self.exponent - shift, magnitude: self.magnitude << shift, ..self }
        } else {
            Number { exponent: self.exponent - shift, magnitude: jam(self.magnitude, -shift as u32), ..self }
        }
    }

    /// The sum, with lost bits jammed. An exact zero of unlike signs is negative only when rounding
    /// down, as IEEE 754 has it.
    #[inline]
    pub const fn add(self, other: Number, rounding: Rounding) -> Number {
        if self.magnitude == 0 && other.magnitude == 0 {
            let negative = if self.negative == other.negative {
                self.negative
            } else {
                matches!(rounding, Rounding::Down)
            };
            return Number { negative, exponent: 0, magnitude: 0 };
        }
        if self.magnitude == 0 {
            return other;
        }
        if other.magnitude == 0 {
            return self;
        }
        let (x, y) = (self.normalised(), other.normalised());
        let (large, small) = if x.exponent >= y.exponent { (x, y) } else { (y, x) };
        let aligned = jam(small.magnitude, (large.exponent - small.exponent) as u32);
        let exponent = large.exponent;
        if large.negative == small.negative {
            return Number { negative: large.negative, exponent, magnitude: large.magnitude + aligned };
        }
        if large.magnitude == aligned {
            return Number { negative: matches!(rounding, Rounding::Down), exponent: 0, magnitude: 0 };
        }
        if large.magnitude > aligned {
            Number { negative: large.negative, exponent, magnitude: large.magnitude - aligned }
        } else {
            Number { negative: small.negative, exponent, magnitude: aligned - large.magnitude }
        }
    }

    /// Rounds once to a format. Overflow gives infinity or, where the mode points inwards, the
    /// largest finite number. Tininess plays no part: subnormal results are kept.
    #[inline]
    pub const fn round(self, format: Format, rounding: Rounding) -> u64 {
        let sign = if self.negative { format.sign_bit() } else { 0 };
        if self.magnitude == 0 {
            return sign;
        }
        let fraction_bits = format.fraction_bits as i32;
        let top = 127 - self.magnitude.leading_zeros() as i32;
        // Exponent of the leading bit, held at the smallest normal exponent for subnormal results.
        let smallest = 1 - format.bias();
        let leading = self.exponent + top;
        let exponent = if leading < smallest { smallest } else { leading };
        if exponent > format.bias() {
            return sign | overflow(format, self.negative, rounding);
        }
        // Bits to drop so that bit 0 weighs one unit of the last place.
        let drop = exponent - fraction_bits - self.exponent;
        let (mut kept, half, rest) = if drop <= 0 {
            (self.magnitude << -drop, false, false)
        } else if drop > 128 {
            (0, false, true)
        } else {
            let kept = if drop == 128 { 0 } else { self.magnitude >> drop };
            let half = (self.magnitude >> (drop - 1)) & 1 != 0;
            let rest = self.magnitude & ((1 << (drop - 1)) - 1) != 0;
            (kept, half, rest)
        };
        let away = match rounding {
            Rounding::Nearest => half && (rest || kept & 1 != 0),
            Rounding::Down => self.negative && (half || rest),
            Rounding::Up => !self.negative && (half || rest),
            Rounding::Zero => false,
        };
        kept += away as u128;
        // `kept` is below 2^(fraction_bits + 1), or equal to it after a carry. Adding it to the
        // exponent field lets the hidden bit, and a carry, count one each.
        let field = (exponent - smallest) as u64;
        let bits = (field << fraction_bits) + kept as u64;
        if bits >= format.infinity() { sign | overflow(format, self.negative, rounding) } else { sign | bits }
    }
}

/// Shifts right, setting bit 0 if anything was lost.
#[inline]
const fn jam(magnitude: u128, shift: u32) -> u128 {
    if shift == 0 {
        magnitude
    } else if shift >= 128 {
        (magnitude != 0) as u128
    } else {
        magnitude >> shift | (magnitude & ((1 << shift) - 1) != 0) as u128
    }
}

/// Magnitude of an overflowed result.
#[inline(always)]
const fn overflow(format: Format, negative: bool, rounding: Rounding) -> u64 {
    let inwards = match rounding {
        Rounding::Nearest => false,
        Rounding::Zero => true,
        Rounding::Down => !negative,
        Rounding::Up => negative,
    };
    format.infinity() - inwards as u64
}

/// Rounds a finite or infinite FP64 number to a narrower format; NaN must be dealt with before.
#[inline]
pub fn round_f64(value: f64, format: Format, rounding: Rounding) -> u64 {
    let bits = value.to_bits();
    if value.is_infinite() {
        let sign = if value.is_sign_negative() { format.sign_bit() } else { 0 };
        return sign | format.infinity();
    }
    round_small(value.is_sign_negative(), bits & (u64::MAX >> 1), format, rounding)
}

/// [`round_f64`] of a finite magnitude, in 64-bit integers.
#[inline(always)]
fn round_small(negative: bool, bits: u64, format: Format, rounding: Rounding) -> u64 {
    let sign = if negative { format.sign_bit() } else { 0 };
    if bits == 0 {
        return sign;
    }
    let field = (bits >> 52) as i32;
    let fraction = bits & ((1 << 52) - 1);
    let (magnitude, leading) = if field == 0 {
        // An FP64 subnormal is far below every narrower format: only that it is not zero counts.
        (1u64 << 52, -1022)
    } else {
        (fraction | 1 << 52, field - 1023)
    };
    let smallest = 1 - format.bias();
    let exponent = if leading < smallest { smallest } else { leading };
    if exponent > format.bias() {
        return sign | overflow(format, negative, rounding);
    }
    let fraction_bits = format.fraction_bits as i32;
    let drop = (52 - fraction_bits + (exponent - leading)).min(60);
    let (mut kept, lost) =
        if drop > 0 { (magnitude >> drop, magnitude << (64 - drop)) } else { (magnitude, 0) };
    const TIE: u64 = 1 << 63;
    let away = match rounding {
        Rounding::Nearest => lost > TIE || lost == TIE && kept & 1 != 0,
        Rounding::Down => negative && lost != 0,
        Rounding::Up => !negative && lost != 0,
        Rounding::Zero => false,
    };
    kept += u64::from(away);
    let result = (((exponent - smallest) as u64) << fraction_bits) + kept;
    if result >= format.infinity() { sign | overflow(format, negative, rounding) } else { sign | result }
}

/// Whether `.FTZ` takes a nonzero result as subnormal: rounded to the format's precision as if the
/// exponent had no lower end, it lies below the smallest normal number (measured on H200 for FP32, the
/// same taken for the 16-bit formats).
///
/// `exact` may be rounded to odd; its magnitude is near the smallest normal number or below.
#[inline]
pub fn is_tiny(exact: f64, format: Format, rounding: Rounding) -> bool {
    // Far enough up for the rounding to be that of normal numbers, and still inside the format.
    let up: u64 = if format.exponent_bits == 5 { 8 } else { 64 };
    let scaled = exact * f64::from_bits((1023 + up) << 52);
    let rounded = round_f64(scaled, format, rounding) & (format.sign_bit() - 1);
    rounded < (1 + up) << format.fraction_bits
}

/// `a + b` rounded to odd: the exact sum cut off toward zero, with the last bit set if anything was
/// cut. Rounding that once more to a format of at most 50 bits is the same as rounding the exact sum.
///
/// Both operands are finite and the sum does not overflow.
#[inline(always)]
pub fn add_to_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    // Knuth's two-sum: `error` is exactly what the sum lacks.
    let b_part = sum - a;
    let error = (a - (sum - b_part)) + (b - b_part);
    let bits = sum.to_bits();
    if error == 0.0 || bits & 1 != 0 {
        return sum;
    }
    // The sum was rounded and is even: one of its neighbours, on the side of the error, is odd.
    if (error > 0.0) == (sum > 0.0) { f64::from_bits(bits + 1) } else { f64::from_bits(bits - 1) }
}
