//! The same results as [`float_mma`](super::float_mma) without sparsity, eight columns at a time, for processors
//! with AVX2 and F16C.
//!
//! A product of two narrow factors is exact in FP32, and so is its scaling by a power of two, as long as the
//! exponents keep away from the ends of the range. Scaled so that the last kept place weighs one, cutting a
//! term off toward zero is the conversion to an integer, and the sum is an integer sum. The largest exponent comes
//! from the same products with all fractions cleared: a zero factor leaves a zero there, which never counts; a
//! subnormal factor counts with the exponent of the smallest normal number. Operands that this does not hold
//! for (infinities, NaNs, exponents near the ends of BF16 and TF32) are for the long way.
//!
//! The functions are safe for code that has the features itself; any other caller must know the processor.

use std::arch::x86_64::*;

use super::{Accumulator, Factor, FloatMatrix, LANES, Numerics, Register};

const F16: u8 = 0;
const BF16: u8 = 1;
const TF32: u8 = 2;
const E4M3: u8 = 3;
const E5M2: u8 = 4;

/// Exponent field of FP32.
const EXPONENT: i32 = 0x7f80_0000;
/// Exponents of BF16 and TF32 factors may be this far from that of 1.0.
const REACH: i32 = 40;
/// Terms are aligned to no less than this exponent with an FP32 accumulator; every nonzero product that is let in
/// lies above it.
const LOWEST: i32 = -90;
/// Rows that are worked on at once, to read B once for all of them.
const ROWS: usize = 4;

/// Bits of a power of two.
const fn power_bits(exponent: i32) -> i32 {
    (127 + exponent) << 23
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
fn integers(words: &[u32; 8]) -> __m256i {
    let [a, b, c, d, e, f, g, h] = words.map(|word| word as i32);
    _mm256_setr_epi32(a, b, c, d, e, f, g, h)
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
fn numbers(v: __m256) -> [f32; 8] {
    let v = _mm256_castps_si256(v);
    [
        _mm256_extract_epi32::<0>(v),
        _mm256_extract_epi32::<1>(v),
        _mm256_extract_epi32::<2>(v),
        _mm256_extract_epi32::<3>(v),
        _mm256_extract_epi32::<4>(v),
        _mm256_extract_epi32::<5>(v),
        _mm256_extract_epi32::<6>(v),
        _mm256_extract_epi32::<7>(v),
    ]
    .map(|word| f32::from_bits(word as u32))
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
fn words(v: __m128i) -> [u32; 4] {
    [
        _mm_extract_epi32::<0>(v),
        _mm_extract_epi32::<1>(v),
        _mm_extract_epi32::<2>(v),
        _mm_extract_epi32::<3>(v),
    ]
    .map(|word| word as u32)
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
fn splat(bits: i32) -> __m256 {
    _mm256_castsi256_ps(_mm256_set1_epi32(bits))
}

/// Eight elements of each of eight rows of A or columns of B. Which of the row's elements is first does not
/// matter, as long as A and B agree.
type Block = [__m256; 8];

/// Two lanes of four 32-bit words to two rows, with the same lanes of another vector behind them.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn rows_of(first: __m256, second: __m256) -> [__m256; 2] {
    [_mm256_permute2f128_ps::<0x20>(first, second), _mm256_permute2f128_ps::<0x31>(first, second)]
}

/// The elements of block `block` in a fragment of A or B; `first` and `stride` say which registers are its rows'.
/// Bits are set in `bad` for elements that are for the long way.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn unpack<const FACTOR: u8>(
    fragment: &[Register],
    (first, stride): (usize, usize),
    block: usize,
    bad: &mut __m256i,
) -> Block {
    // A register has half a block of TF32, one of 16 bits, two of 8 bits.
    let number = match FACTOR {
        TF32 => 2 * block,
        F16 | BF16 => block,
        _ => block / 2,
    };
    let zero = [0; LANES];
    let register = fragment.get(first + number * stride).unwrap_or(&zero);
    let other =
        if FACTOR == TF32 { fragment.get(first + (number + 1) * stride).unwrap_or(&zero) } else { &zero };
    let (eights, _) = register.as_chunks::<8>();
    let (others, _) = other.as_chunks::<8>();
    let mut rows = [_mm256_setzero_ps(); 8];
    for i in 0..4 {
        let word = integers(&eights[i]);
        let pair = match FACTOR {
            F16 => [
                _mm256_cvtph_ps(_mm256_castsi256_si128(word)),
                _mm256_cvtph_ps(_mm256_extracti128_si256::<1>(word)),
            ],
            BF16 => {
                let low = _mm256_slli_epi32::<16>(word);
                let high = _mm256_and_si256(word, _mm256_set1_epi32(0xffff_0000_u32 as i32));
                rows_of(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high))
            }
            TF32 => {
                let read = splat(0xffff_e000_u32 as i32);
                rows_of(
                    _mm256_and_ps(_mm256_castsi256_ps(word), read),
                    _mm256_and_ps(_mm256_castsi256_ps(integers(&others[i])), read),
                )
            }
            _ => {
                if FACTOR == E4M3 {
                    let magnitude = _mm256_and_si256(word, _mm256_set1_epi8(0x7f));
                    *bad = _mm256_or_si256(*bad, _mm256_cmpeq_epi8(magnitude, _mm256_set1_epi8(0x7f)));
                }
                // Bytes 0 and 1, or 2 and 3, to the upper bytes of two halves.
                let part = if block.is_multiple_of(2) { word } else { _mm256_srli_epi32::<16>(word) };
                let upper = _mm256_or_si256(
                    _mm256_slli_epi32::<8>(_mm256_and_si256(part, _mm256_set1_epi32(0x00ff))),
                    _mm256_slli_epi32::<16>(_mm256_and_si256(part, _mm256_set1_epi32(0xff00))),
                );
                let half = if FACTOR == E5M2 {
                    upper
                } else {
                    // One exponent bit less: the fields one place lower, under another bias.
                    let sign = _mm256_and_si256(upper, _mm256_set1_epi16(i16::MIN));
                    let rest = _mm256_and_si256(upper, _mm256_set1_epi16(0x7f00));
                    _mm256_or_si256(sign, _mm256_srli_epi16::<1>(rest))
                };
                let scale = splat(power_bits(if FACTOR == E5M2 { 0 } else { 8 }));
                let low = _mm256_cvtph_ps(_mm256_castsi256_si128(half));
                let high = _mm256_cvtph_ps(_mm256_extracti128_si256::<1>(half));
                [_mm256_mul_ps(low, scale), _mm256_mul_ps(high, scale)]
            }
        };
        [rows[2 * i], rows[2 * i + 1]] = pair;
    }
    rows
}

/// The powers of two of factors: 0 for 0, no less than that of the smallest normal number for the rest.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn powers<const FACTOR: u8>(value: __m256, bad: &mut __m256i) -> __m256 {
    let power = _mm256_and_ps(value, splat(EXPONENT));
    let bits = _mm256_castps_si256(power);
    match FACTOR {
        BF16 | TF32 => {
            // Below, a zero wraps round to the largest number.
            let magnitude = _mm256_and_si256(_mm256_castps_si256(value), _mm256_set1_epi32(i32::MAX));
            let below = _mm256_sub_epi32(magnitude, _mm256_set1_epi32(1));
            let least = _mm256_set1_epi32(power_bits(-REACH) - 1);
            let high = _mm256_cmpgt_epi32(bits, _mm256_set1_epi32(power_bits(REACH)));
            let low = _mm256_cmpeq_epi32(_mm256_min_epu32(below, least), least);
            // `low` is all ones where the number is large enough.
            let low = _mm256_xor_si256(low, _mm256_set1_epi32(-1));
            *bad = _mm256_or_si256(*bad, _mm256_or_si256(high, low));
            power
        }
        _ => {
            *bad = _mm256_or_si256(*bad, _mm256_cmpeq_epi32(bits, _mm256_set1_epi32(EXPONENT)));
            let smallest = splat(power_bits(if FACTOR == E4M3 { -6 } else { -14 }));
            let nonzero = _mm256_cmp_ps::<_CMP_NEQ_OQ>(value, _mm256_setzero_ps());
            _mm256_and_ps(_mm256_max_ps(power, smallest), nonzero)
        }
    }
}

/// Eight rows of eight to eight columns of eight.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn transpose(r: Block) -> Block {
    let pair = |a, b| [_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b)];
    let [a0, a1] = pair(r[0], r[1]);
    let [a2, a3] = pair(r[2], r[3]);
    let [a4, a5] = pair(r[4], r[5]);
    let [a6, a7] = pair(r[6], r[7]);
    let four = |a, b| [_mm256_shuffle_ps::<0x44>(a, b), _mm256_shuffle_ps::<0xee>(a, b)];
    let [b0, b1] = four(a0, a2);
    let [b2, b3] = four(a1, a3);
    let [b4, b5] = four(a4, a6);
    let [b6, b7] = four(a5, a7);
    let [c0, c4] = rows_of(b0, b4);
    let [c1, c5] = rows_of(b1, b5);
    let [c2, c6] = rows_of(b2, b6);
    let [c3, c7] = rows_of(b3, b7);
    [c0, c1, c2, c3, c4, c5, c6, c7]
}

/// Eight rows of A in one step of `N` blocks: values and powers.
#[derive(Clone, Copy)]
struct Left<const N: usize> {
    value: [[[f32; 8]; N]; 8],
    power: [[[f32; 8]; N]; 8],
}

/// B in one step: a vector of eight columns for each k.
#[derive(Clone, Copy)]
struct Right<const N: usize> {
    value: [Block; N],
    power: [Block; N],
}

/// Whether any bit is set.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn any(v: __m256i) -> bool {
    _mm256_testz_si256(v, v) == 0
}

/// One fused step of rows `first` to `first + 3`. `c` holds the addends and then the results: FP32 numbers also
/// for an FP16 accumulator.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn step<const N: usize, const HALF: bool>(
    numerics: Numerics,
    a: &Left<N>,
    first: usize,
    b: &Right<N>,
    c: &mut [__m256; ROWS],
) {
    let lowest = splat(power_bits(if HALF { -14 - numerics.floor_below } else { LOWEST }));
    let mut largest = [lowest; ROWS];
    for (largest, c) in largest.iter_mut().zip(&*c) {
        let power = _mm256_and_ps(*c, splat(EXPONENT));
        let power = if HALF {
            let nonzero = _mm256_cmp_ps::<_CMP_NEQ_OQ>(*c, _mm256_setzero_ps());
            _mm256_and_ps(_mm256_max_ps(power, splat(power_bits(-14))), nonzero)
        } else {
            power
        };
        *largest = _mm256_max_ps(power, lowest);
    }
    for block in 0..N {
        for k in 0..8 {
            for r in 0..ROWS {
                let factor = _mm256_set1_ps(a.power[first + r][block][k]);
                largest[r] = _mm256_max_ps(_mm256_mul_ps(factor, b.power[block][k]), largest[r]);
            }
        }
    }
    // 2^(fraction bits - E), by subtracting exponent fields.
    let one = _mm256_set1_epi32((254 + numerics.fraction_bits) << 23);
    // Eight products of less than 2^28 and an addend fit 32 bits, all sixteen may not.
    let mut sums = [[_mm256_setzero_si256(); ROWS]; 2];
    let mut scale = [_mm256_setzero_ps(); ROWS];
    for r in 0..ROWS {
        scale[r] = _mm256_castsi256_ps(_mm256_sub_epi32(one, _mm256_castps_si256(largest[r])));
        sums[0][r] = _mm256_cvttps_epi32(_mm256_mul_ps(c[r], scale[r]));
    }
    for block in 0..N {
        let sums = &mut sums[block % 2];
        for k in 0..8 {
            for r in 0..ROWS {
                let factor = _mm256_set1_ps(a.value[first + r][block][k]);
                let product = _mm256_mul_ps(_mm256_mul_ps(factor, b.value[block][k]), scale[r]);
                sums[r] = _mm256_add_epi32(sums[r], _mm256_cvttps_epi32(product));
            }
        }
    }
    let unit = splat(power_bits(-numerics.fraction_bits));
    for r in 0..ROWS {
        let weight = _mm256_mul_ps(largest[r], unit);
        let low = finish::<HALF>(
            numerics,
            _mm256_castsi256_si128(sums[0][r]),
            _mm256_castsi256_si128(sums[1][r]),
            _mm256_castps256_ps128(weight),
        );
        let high = finish::<HALF>(
            numerics,
            _mm256_extracti128_si256::<1>(sums[0][r]),
            _mm256_extracti128_si256::<1>(sums[1][r]),
            _mm256_extractf128_ps::<1>(weight),
        );
        let cut = _mm256_set_m128(high, low);
        c[r] = if HALF {
            // The conversion rounds to nearest even; what it makes zero is +0.
            let half = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(cut);
            let wide = _mm256_cvtph_ps(half);
            _mm256_and_ps(wide, _mm256_cmp_ps::<_CMP_NEQ_OQ>(wide, _mm256_setzero_ps()))
        } else {
            // Nothing but an addend is that small; it stands for itself, but for -0.
            let kept = splat(-1 << (23 - numerics.result_bits));
            let alone = _mm256_add_ps(_mm256_and_ps(c[r], kept), _mm256_setzero_ps());
            _mm256_blendv_ps(cut, alone, _mm256_cmp_ps::<_CMP_EQ_OQ>(largest[r], lowest))
        };
    }
}

/// Four sums as FP32: cut off, or for an FP16 accumulator rounded to odd.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn finish<const HALF: bool>(numerics: Numerics, first: __m128i, second: __m128i, weight: __m128) -> __m128 {
    let sum = _mm256_add_pd(_mm256_cvtepi32_pd(first), _mm256_cvtepi32_pd(second));
    let exact = _mm256_mul_pd(sum, _mm256_cvtps_pd(weight));
    if HALF {
        let bits = _mm256_castpd_si256(exact);
        let rest = _mm256_and_si256(bits, _mm256_set1_epi64x((1 << 29) - 1));
        let none = _mm256_cmpeq_epi64(rest, _mm256_setzero_si256());
        let odd = _mm256_andnot_si256(none, _mm256_set1_epi64x(1 << 29));
        let cut = _mm256_and_si256(bits, _mm256_set1_epi64x(-1 << 29));
        _mm256_cvtpd_ps(_mm256_castsi256_pd(_mm256_or_si256(cut, odd)))
    } else {
        let kept = _mm256_set1_epi64x(-1 << (52 - numerics.result_bits));
        _mm256_cvtpd_ps(_mm256_and_pd(exact, _mm256_castsi256_pd(kept)))
    }
}

/// A form of `STEPS` steps of `N` blocks each.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn run<const A: u8, const B: u8, const N: usize, const STEPS: usize, const HALF: bool>(
    numerics: Numerics,
    a: &[Register],
    b: &[Register],
    c: &[Register],
) -> Option<[Register; 4]> {
    let mut bad = _mm256_setzero_si256();
    let zero = [[_mm256_setzero_ps(); 8]; N];
    let mut right = [Right { value: zero, power: zero }; STEPS];
    for (i, right) in right.iter_mut().enumerate() {
        for block in 0..N {
            let n = unpack::<B>(b, (0, 1), i * N + block, &mut bad);
            // Columns in the order in which C and D have them in registers: of FP32 first the even ones.
            let n = if HALF { n } else { [n[0], n[2], n[4], n[6], n[1], n[3], n[5], n[7]] };
            right.value[block] = transpose(n);
            for k in 0..8 {
                right.power[block][k] = powers::<B>(right.value[block][k], &mut bad);
            }
        }
    }
    let mut d = [[0; LANES]; 4];
    let mut left = [Left { value: [[[0.0; 8]; N]; 8], power: [[[0.0; 8]; N]; 8] }; STEPS];
    let infinite = _mm256_set1_epi32(EXPONENT);
    for half in 0..2 {
        for (i, left) in left.iter_mut().enumerate() {
            for block in 0..N {
                let rows = unpack::<A>(a, (half, 2), i * N + block, &mut bad);
                for row in 0..8 {
                    left.value[row][block] = numbers(rows[row]);
                    left.power[row][block] = numbers(powers::<A>(rows[row], &mut bad));
                }
            }
        }
        for first in [0, ROWS] {
            let mut sums = [_mm256_setzero_ps(); ROWS];
            for (r, sum) in sums.iter_mut().enumerate() {
                let at = 4 * (first + r);
                let row = |register: usize| &c[register][at..at + 4];
                *sum = if HALF {
                    let [x, y, z, w] = [0, 1, 2, 3].map(|i| row(half)[i] as i32);
                    _mm256_cvtph_ps(_mm_setr_epi32(x, y, z, w))
                } else {
                    let (low, high) = (row(2 * half), row(2 * half + 1));
                    let both = [low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]];
                    _mm256_castsi256_ps(integers(&both))
                };
            }
            for i in 0..STEPS {
                for sum in sums {
                    let power = _mm256_and_si256(_mm256_castps_si256(sum), infinite);
                    bad = _mm256_or_si256(bad, _mm256_cmpeq_epi32(power, infinite));
                }
                if any(bad) {
                    return None;
                }
                step::<N, HALF>(numerics, &left[i], first, &right[i], &mut sums);
            }
            for (r, sum) in sums.into_iter().enumerate() {
                let at = 4 * (first + r);
                if HALF {
                    let half_sums = words(_mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(sum));
                    d[half][at..at + 4].copy_from_slice(&half_sums);
                } else {
                    let sum = _mm256_castps_si256(sum);
                    d[2 * half][at..at + 4].copy_from_slice(&words(_mm256_castsi256_si128(sum)));
                    let high = words(_mm256_extracti128_si256::<1>(sum));
                    d[2 * half + 1][at..at + 4].copy_from_slice(&high);
                }
            }
        }
    }
    Some(d)
}

/// [`float_mma`](super::float_mma) of a dense form; `None` also where the operands or the form are for the long way.
///
/// # Safety
///
/// Callers compiled without these features must have seen that the processor has them; nothing else can go wrong.
#[target_feature(enable = "avx2,f16c")]
pub fn float_mma(
    form: FloatMatrix,
    numerics: Numerics,
    a: &[Register],
    b: &[Register],
    c: &[Register],
) -> Option<[Register; 4]> {
    let registers = form.registers()?;
    if form.sparse || a.len() != registers.a || b.len() != registers.b || c.len() != registers.c {
        return None;
    }
    let half = form.accumulator == Accumulator::F16;
    // A register of each of a row's four lanes holds 16 bytes.
    let per_step = (numerics.step_bytes / 16).min(registers.b);
    let steps = registers.b / per_step.max(1);
    macro_rules! by_accumulator {
        ($a:ident, $b:ident, $n:literal, $steps:literal) => {
            if half {
                run::<$a, $b, $n, $steps, true>(numerics, a, b, c)
            } else {
                run::<$a, $b, $n, $steps, false>(numerics, a, b, c)
            }
        };
    }
    use Factor as X;
    match (form.factors, per_step, steps) {
        ([X::F16, X::F16], 1, 1) => by_accumulator!(F16, F16, 1, 1),
        ([X::F16, X::F16], 1, 2) => by_accumulator!(F16, F16, 1, 2),
        ([X::F16, X::F16], 2, 1) => by_accumulator!(F16, F16, 2, 1),
        ([X::Bf16, X::Bf16], 1, 1) => run::<BF16, BF16, 1, 1, false>(numerics, a, b, c),
        ([X::Bf16, X::Bf16], 1, 2) => run::<BF16, BF16, 1, 2, false>(numerics, a, b, c),
        ([X::Bf16, X::Bf16], 2, 1) => run::<BF16, BF16, 2, 1, false>(numerics, a, b, c),
        // One block holds both registers; a step of one register has half a block, so it is for the long way.
        ([X::Tf32, X::Tf32], _, 1) => run::<TF32, TF32, 1, 1, false>(numerics, a, b, c),
        ([X::E4M3, X::E4M3], 1, 1) => by_accumulator!(E4M3, E4M3, 2, 1),
        ([X::E4M3, X::E4M3], 1, 2) => by_accumulator!(E4M3, E4M3, 2, 2),
        ([X::E4M3, X::E5M2], 1, 1) => by_accumulator!(E4M3, E5M2, 2, 1),
        ([X::E4M3, X::E5M2], 1, 2) => by_accumulator!(E4M3, E5M2, 2, 2),
        ([X::E5M2, X::E4M3], 1, 1) => by_accumulator!(E5M2, E4M3, 2, 1),
        ([X::E5M2, X::E4M3], 1, 2) => by_accumulator!(E5M2, E4M3, 2, 2),
        ([X::E5M2, X::E5M2], 1, 1) => by_accumulator!(E5M2, E5M2, 2, 1),
        ([X::E5M2, X::E5M2], 1, 2) => by_accumulator!(E5M2, E5M2, 2, 2),
        _ => None,
    }
}
