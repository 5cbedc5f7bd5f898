//! Matrices of small whole numbers times a power of two.
//!
//! Where all factors are such, and so are the addends, nothing is ever cut off, and sums are sums of 16-bit products.

use std::arch::x86_64::*;

use super::super::{Numerics, Register};
use super::Fragment;
use super::operands::{F16, wide, wide_bf16};
use super::slots::Slot;
use super::step::{number_toward_zero, power_bits, read_rows, write_rows};
use super::words::*;

/// Factors are less than two to this many times the unit of their matrix.
const WHOLE_BITS: i32 = 12;
/// The exponent field of an FP32 unit that every addend and result is a multiple of may be this far from that of 1.0.
const WHOLE_REACH: i32 = 90;

/// Whole numbers in the places of a register's words.
type Wholes = [[u32; 8]; 4];

/// The unit of a matrix.
#[derive(Clone, Copy, Debug)]
struct Unit {
    /// Its exponent.
    exponent: i32,
    /// How many of the lowest bits of all multiples are zero.
    zeros: i32,
}

/// A as whole numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    unit: Option<Unit>,
    wholes: [Wholes; 4],
}

/// B as whole numbers, in the order of [`transpose_words`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Right {
    unit: Option<Unit>,
    wholes: [[__m256i; 4]; 2],
}

impl Left {
    pub const ZERO: Self = Left { unit: None, wholes: [[[0; 8]; 4]; 4] };

    #[inline(never)]
    #[target_feature(enable = "avx2,f16c")]
    fn read<const FACTOR: u8>(&mut self, fragment: &[Register]) {
        self.unit = unit::<FACTOR>(fragment).and_then(|exponent| {
            multiples::<FACTOR>(fragment, exponent, &mut self.wholes).map(|zeros| Unit { exponent, zeros })
        });
    }
}

impl Right {
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    pub fn zero() -> Self {
        Right { unit: None, wholes: [[_mm256_setzero_si256(); 4]; 2] }
    }

    #[inline(never)]
    #[target_feature(enable = "avx2,f16c")]
    fn read<const FACTOR: u8>(&mut self, fragment: &[Register]) {
        let mut wholes = [[[0; 8]; 4]; 2];
        self.unit = unit::<FACTOR>(fragment).and_then(|exponent| {
            multiples::<FACTOR>(fragment, exponent, &mut wholes).map(|zeros| Unit { exponent, zeros })
        });
        for (to, [a, b, c, d]) in self.wholes.iter_mut().zip(&wholes) {
            *to = transpose_words([integers(a), integers(b), integers(c), integers(d)]);
        }
    }
}

/// The exponent of the unit in which the numbers of a fragment have [`WHOLE_BITS`]. `None` where it is out of reach.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn unit<const FACTOR: u8>(fragment: &[Register]) -> Option<i32> {
    let mut largest = _mm256_setzero_si256();
    for register in fragment {
        for pair in 0..4 {
            let magnitude = _mm256_and_si256(pair_of_rows(register, pair), _mm256_set1_epi16(i16::MAX));
            largest = _mm256_max_epu16(largest, magnitude);
        }
    }
    let largest = _mm_max_epu16(_mm256_castsi256_si128(largest), _mm256_extracti128_si256::<1>(largest));
    // The instruction finds the smallest: of the complements.
    let least = _mm_minpos_epu16(_mm_xor_si128(largest, _mm_set1_epi32(-1)));
    let largest = !(_mm_extract_epi16::<0>(least) as u16);
    // One more than the exponent of the largest element; of tiny ones it may be too large, and then they are no
    // multiples of the unit.
    let exponent = match FACTOR {
        F16 => i32::from(largest >> 10).max(1) - 14,
        _ => (i32::from(largest >> 7) - 126).max(-WHOLE_REACH),
    };
    let unit = exponent - WHOLE_BITS;
    (unit.abs() <= WHOLE_REACH).then_some(unit)
}

/// Writes a fragment's numbers as signed 16-bit multiples of their unit. Returns how many of the lowest bits are zero
/// everywhere; `None` where there are others.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn multiples<const FACTOR: u8>(fragment: &[Register], unit: i32, to: &mut [Wholes]) -> Option<i32> {
    let scale = splat(power_bits(-unit));
    let mut broken = _mm256_setzero_ps();
    let mut all = _mm256_set1_epi16(1 << WHOLE_BITS);
    for (register, to) in fragment.iter().zip(to) {
        for (pair, to) in to.iter_mut().enumerate() {
            let v = pair_of_rows(register, pair);
            let numbers = if FACTOR == F16 { wide::<F16>(v) } else { wide_bf16(v) };
            let [first, second] = numbers.map(|number| {
                let scaled = _mm256_mul_ps(number, scale);
                let whole = _mm256_cvttps_epi32(scaled);
                let cut = _mm256_cmp_ps::<_CMP_NEQ_UQ>(_mm256_cvtepi32_ps(whole), scaled);
                broken = _mm256_or_ps(broken, cut);
                whole
            });
            let both = match FACTOR {
                F16 => in_order(_mm256_packs_epi32(first, second)),
                _ => _mm256_blend_epi16::<0xaa>(first, _mm256_slli_epi32::<16>(second)),
            };
            all = _mm256_or_si256(all, both);
            *to = words(both);
        }
    }
    if _mm256_movemask_ps(broken) != 0 {
        return None;
    }
    // The lowest set bit of each number is the lowest of all of them in one at least.
    let lowest = _mm256_and_si256(all, _mm256_sub_epi16(_mm256_setzero_si256(), all));
    let least = _mm_min_epu16(_mm256_castsi256_si128(lowest), _mm256_extracti128_si256::<1>(lowest));
    Some((_mm_extract_epi16::<0>(_mm_minpos_epu16(least)) as u32).trailing_zeros() as i32)
}

/// Like [`step::product`](super::step::product) for FP16 and BF16 with an FP32 accumulator, of `STEPS` steps of four
/// times `FOURS` products. False where the operands are not as small and whole as that takes.
///
/// Products are then whole numbers of less than 24 bits, addends of less than 25: none of them reaches below the last
/// place that the largest of them leaves. Every step's sum is exact, and only its result is cut: where that of a step but
/// the last would be, the operands are refused.
#[inline(never)]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn product<const FACTOR: u8, const STEPS: usize, const FOURS: usize>(
    numerics: &Numerics,
    [a, b]: [Fragment<'_>; 2],
    left: Slot<'_, Left>,
    right: Slot<'_, Right>,
    d: &mut [Register],
) -> bool {
    if !left.known {
        left.decoded.read::<FACTOR>(a.registers);
    }
    if !right.known {
        right.decoded.read::<FACTOR>(b.registers);
    }
    if numerics.fraction_bits < 2 * WHOLE_BITS || numerics.result_bits != 23 {
        return false;
    }
    let (Left { unit: Some(a), wholes: left }, Right { unit: Some(b), wholes: right }) =
        (left.decoded, right.decoded)
    else {
        return false;
    };
    // The larger the unit, the more room have addends.
    let zeros = a.zeros + b.zeros;
    let unit = a.exponent + b.exponent + zeros;
    if unit.abs() > WHOLE_REACH {
        return false;
    }
    let zeros = _mm_cvtsi32_si128(zeros);
    let (scale, weight) = (splat(power_bits(-unit)), splat(power_bits(unit)));
    let mut broken = _mm256_setzero_ps();
    let (mut addends, mut between) = (_mm256_setzero_si256(), _mm256_setzero_si256());
    let mut pairs = [[_mm256_setzero_ps(); 2]; 8];
    for (at, results) in pairs.iter_mut().enumerate() {
        // Of two rows.
        *results = read_rows(d, at);
        for (r, result) in results.iter_mut().enumerate() {
            let scaled = _mm256_mul_ps(*result, scale);
            let mut sum = _mm256_cvttps_epi32(scaled);
            let cut = _mm256_cmp_ps::<_CMP_NEQ_UQ>(_mm256_cvtepi32_ps(sum), scaled);
            broken = _mm256_or_ps(broken, cut);
            addends = _mm256_or_si256(addends, _mm256_abs_epi32(sum));
            for step in 0..STEPS {
                if step != 0 {
                    between = _mm256_or_si256(between, _mm256_abs_epi32(sum));
                }
                let mut products = _mm256_setzero_si256();
                // A word has two of them, so a register eight.
                for word in 2 * FOURS * step..2 * FOURS * (step + 1) {
                    let (register, word) = (word / 4, word % 4);
                    let row = left[at / 4 + 2 * register][at % 4][4 * r + word];
                    let row = _mm256_set1_epi32(row as i32);
                    products = _mm256_add_epi32(products, _mm256_madd_epi16(row, right[register][word]));
                }
                sum = _mm256_add_epi32(sum, _mm256_sra_epi32(products, zeros));
            }
            *result = _mm256_mul_ps(number_toward_zero(sum, _mm256_abs_epi32(sum)), weight);
        }
    }
    let large = _mm256_or_si256(
        _mm256_srli_epi32::<{ 2 * WHOLE_BITS + 1 }>(addends),
        _mm256_srli_epi32::<24>(between),
    );
    if _mm256_movemask_ps(broken) != 0 || _mm256_testz_si256(large, large) == 0 {
        return false;
    }
    for (at, results) in pairs.into_iter().enumerate() {
        write_rows(d, at, results);
    }
    true
}
