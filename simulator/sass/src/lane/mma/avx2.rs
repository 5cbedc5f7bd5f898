//! The same results as [`float_mma`](super::float_mma) without sparsity, eight columns at a time, for processors
//! with AVX2 and F16C.
//!
//! A product of two narrow factors is exact in FP32, and so is its scaling by a power of two, as long as the
//! exponents keep away from the ends of the range. Scaled so that the last kept place weighs one, cutting a
//! term off toward zero is the conversion to an integer, and the sum is an integer sum. The largest exponent is that of
//! sums of bytes, for 32 products at a time: a zero factor has one that never counts; a subnormal factor counts with the
//! exponent of the smallest normal number. Operands that this does not hold
//! for (infinities, NaNs, exponents near the ends of BF16 and TF32) are for the long way.
//!
//! Where all factors are small whole numbers times one power of two, and so are the addends, nothing is ever cut
//! off, and the sums are sums of 16-bit products: see `whole`.
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
const LOWEST: i32 = -81;
/// The exponent of a zero, which together with any other is less than [`LOWEST`]. (Sums of bytes stop at -128.)
const NONE: i32 = -128;
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

/// The exponents of factors: [`NONE`] or one more for 0, no less than that of the smallest normal number for the rest.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn exponents<const FACTOR: u8>(value: __m256, bad: &mut __m256i) -> __m256i {
    let bits = _mm256_castps_si256(_mm256_and_ps(value, splat(EXPONENT)));
    let exponent = _mm256_sub_epi32(_mm256_srli_epi32::<23>(bits), _mm256_set1_epi32(127));
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
            exponent
        }
        _ => {
            *bad = _mm256_or_si256(*bad, _mm256_cmpeq_epi32(bits, _mm256_set1_epi32(EXPONENT)));
            let smallest = _mm256_set1_epi32(if FACTOR == E4M3 { -6 } else { -14 });
            let zero = _mm256_cmp_ps::<_CMP_EQ_OQ>(value, _mm256_setzero_ps());
            let counted = _mm256_castsi256_ps(_mm256_max_epi32(exponent, smallest));
            _mm256_castps_si256(_mm256_blendv_ps(counted, _mm256_castsi256_ps(_mm256_set1_epi32(NONE)), zero))
        }
    }
}

/// The low bytes of four vectors, one after the other.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn bytes([a, b, c, d]: [__m256i; 4]) -> __m256i {
    let packed = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    // Packing works within halves: the words are put in order last.
    _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))
}

/// Byte `k` of each eight bytes, eight times.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn eightfold(rows: __m256i, k: usize) -> __m256i {
    let places = |byte: usize| byte as i64 * 0x0101_0101_0101_0101;
    _mm256_shuffle_epi8(rows, _mm256_setr_epi64x(places(k), places(8 + k), places(k), places(8 + k)))
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

/// Eight rows of A in one step of `N` blocks.
#[derive(Clone, Copy)]
struct Left<const N: usize> {
    value: [[[f32; 8]; N]; 8],
    /// Bytes of eight elements of each of four rows.
    exponents: [[__m256i; 2]; N],
}

/// B in one step: a vector of eight columns for each k.
#[derive(Clone, Copy)]
struct Right<const N: usize> {
    value: [Block; N],
    /// Bytes of the eight columns, four times.
    exponents: [[__m256i; 8]; N],
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
    // Where there is nothing but zeros any other number will do.
    let lowest = (if HALF { -14 - numerics.floor_below } else { LOWEST }).max(-126);
    let mut most = _mm256_set1_epi8(lowest as i8);
    for block in 0..N {
        for k in 0..8 {
            let left = eightfold(a.exponents[block][first / ROWS], k);
            most = _mm256_max_epi8(most, _mm256_adds_epi8(left, b.exponents[block][k]));
        }
    }
    let (low, high) = (_mm256_castsi256_si128(most), _mm256_extracti128_si256::<1>(most));
    let lowest = splat(power_bits(lowest));
    let mut largest = [lowest; ROWS];
    for (r, (largest, c)) in largest.iter_mut().zip(&*c).enumerate() {
        let four = if r < 2 { low } else { high };
        let exponents = if r % 2 == 0 { four } else { _mm_unpackhi_epi64(four, four) };
        let fields = _mm256_add_epi32(_mm256_cvtepi8_epi32(exponents), _mm256_set1_epi32(127));
        let products = _mm256_castsi256_ps(_mm256_slli_epi32::<23>(fields));
        let power = _mm256_and_ps(*c, splat(EXPONENT));
        let power = if HALF {
            let nonzero = _mm256_cmp_ps::<_CMP_NEQ_OQ>(*c, _mm256_setzero_ps());
            _mm256_and_ps(_mm256_max_ps(power, splat(power_bits(-14))), nonzero)
        } else {
            power
        };
        *largest = _mm256_max_ps(power, products);
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

/// Factors are less than two to this many times the unit of their matrix.
const WHOLE_BITS: i32 = 12;
/// The exponent field of an FP32 unit that every addend and result is a multiple of may be this far from that of 1.0.
const WHOLE_REACH: i32 = 90;

/// Eight registers of whole numbers: words `8 * i` to `8 * i + 7` of a register as vector `i`.
type WholeRegister = [__m256i; 4];

/// Writes the elements of `N` registers as signed 16-bit multiples of the largest power of two that they are all multiples of,
/// and returns its exponent. `None` where they would need more than [`WHOLE_BITS`].
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn whole_numbers<const FACTOR: u8, const N: usize>(
    fragment: &[Register],
    registers: &mut [WholeRegister; N],
) -> Option<i32> {
    let mut largest = _mm256_setzero_si256();
    for (to, from) in registers.iter_mut().zip(fragment) {
        let (eights, _) = from.as_chunks::<8>();
        for (to, eight) in to.iter_mut().zip(eights) {
            *to = integers(eight);
            let magnitude = _mm256_and_si256(*to, _mm256_set1_epi16(i16::MAX));
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
    if unit.abs() > WHOLE_REACH {
        return None;
    }
    let (scale, weight) = (splat(power_bits(-unit)), splat(power_bits(unit)));
    let mut broken = _mm256_setzero_ps();
    for word in registers.iter_mut().flatten() {
        let [first, second] = match FACTOR {
            F16 => [
                _mm256_cvtph_ps(_mm256_castsi256_si128(*word)),
                _mm256_cvtph_ps(_mm256_extracti128_si256::<1>(*word)),
            ],
            _ => [
                _mm256_castsi256_ps(_mm256_slli_epi32::<16>(*word)),
                _mm256_castsi256_ps(_mm256_and_si256(*word, _mm256_set1_epi32(-1 << 16))),
            ],
        };
        let [low, high] = [first, second].map(|value| {
            let number = _mm256_cvttps_epi32(_mm256_mul_ps(value, scale));
            let again = _mm256_mul_ps(_mm256_cvtepi32_ps(number), weight);
            (number, _mm256_cmp_ps::<_CMP_NEQ_UQ>(again, value))
        });
        broken = _mm256_or_ps(broken, _mm256_or_ps(low.1, high.1));
        *word = match FACTOR {
            // Packing works within halves.
            F16 => _mm256_permute4x64_epi64::<0xd8>(_mm256_packs_epi32(low.0, high.0)),
            _ => _mm256_blend_epi16::<0xaa>(low.0, _mm256_slli_epi32::<16>(high.0)),
        };
    }
    if _mm256_movemask_ps(broken) != 0 {
        return None;
    }
    // The larger the unit, the more room have addends.
    let mut all = _mm256_setzero_si256();
    for word in registers.iter().flatten() {
        all = _mm256_or_si256(all, *word);
    }
    let [a, b, c, d] = words(_mm_or_si128(_mm256_castsi256_si128(all), _mm256_extracti128_si256::<1>(all)));
    let all = a | b | c | d;
    let zeros = ((all | all >> 16) & 0xffff | 1 << WHOLE_BITS).trailing_zeros() as i32;
    let count = _mm_cvtsi32_si128(zeros);
    for word in registers.iter_mut().flatten() {
        *word = _mm256_sra_epi16(*word, count);
    }
    Some(unit + zeros)
}

/// The whole numbers of a register of B, for each of the four pairs in a column: of the columns in the order of
/// [`addends`].
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn columns([a, b, c, d]: WholeRegister) -> WholeRegister {
    let (low0, high0) = (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
    let (low1, high1) = (_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
    [
        _mm256_unpacklo_epi64(low0, low1),
        _mm256_unpackhi_epi64(low0, low1),
        _mm256_unpacklo_epi64(high0, high1),
        _mm256_unpackhi_epi64(high0, high1),
    ]
}

/// A row of an FP32 addend: first the even columns.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn addends(c: &[Register], half: usize, row: usize) -> __m256 {
    let four = |register: usize| &c[register][4 * row..4 * row + 4];
    let (low, high) = (four(2 * half), four(2 * half + 1));
    let both = [low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]];
    _mm256_castsi256_ps(integers(&both))
}

/// Writes a row of an FP32 result.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn put_sums(d: &mut [Register; 4], half: usize, row: usize, sums: __m256) {
    let sums = _mm256_castps_si256(sums);
    d[2 * half][4 * row..4 * row + 4].copy_from_slice(&words(_mm256_castsi256_si128(sums)));
    d[2 * half + 1][4 * row..4 * row + 4].copy_from_slice(&words(_mm256_extracti128_si256::<1>(sums)));
}

/// Numbers less than 2^30 as FP32, cut off toward zero.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn cut_off(numbers: __m256i) -> __m256 {
    let nearest = _mm256_cvtepi32_ps(numbers);
    let again = _mm256_abs_epi32(_mm256_cvttps_epi32(nearest));
    // All ones, which is -1, where the magnitude was rounded up.
    let up = _mm256_cmpgt_epi32(again, _mm256_abs_epi32(numbers));
    _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(nearest), up))
}

/// A form with an FP32 accumulator, of `STEPS` steps of `N` registers of B each: `B` of them, and `A` of A. False where
/// the operands are not as small and whole as that takes.
///
/// Products are then whole numbers of less than 24 bits, addends of less than 25: none of them reaches below the last
/// place that the largest of them leaves. Every step's sum is exact, and only its result is cut.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn whole<const FACTOR: u8, const N: usize, const STEPS: usize, const B: usize, const A: usize>(
    numerics: Numerics,
    [a, b, c]: [&[Register]; 3],
    d: &mut [Register; 4],
) -> bool {
    let zero = [_mm256_setzero_si256(); 4];
    let (mut left, mut right) = ([zero; A], [zero; B]);
    let Some(b_unit) = whole_numbers::<FACTOR, B>(b, &mut right) else { return false };
    let Some(a_unit) = whole_numbers::<FACTOR, A>(a, &mut left) else { return false };
    let unit = a_unit + b_unit;
    if unit.abs() > WHOLE_REACH || numerics.fraction_bits < 2 * WHOLE_BITS || numerics.result_bits != 23 {
        return false;
    }
    for register in &mut right {
        *register = columns(*register);
    }
    let mut rows = [[0; LANES]; A];
    for (row, register) in rows.iter_mut().zip(left) {
        let (eights, _) = row.as_chunks_mut::<8>();
        for (eight, words) in eights.iter_mut().zip(register) {
            *eight = numbers(_mm256_castsi256_ps(words)).map(f32::to_bits);
        }
    }
    let (scale, weight) = (splat(power_bits(-unit)), splat(power_bits(unit)));
    let mut broken = _mm256_setzero_ps();
    let mut large = _mm256_setzero_si256();
    for half in 0..2 {
        for row in 0..8 {
            let c = addends(c, half, row);
            let mut sums = _mm256_cvttps_epi32(_mm256_mul_ps(c, scale));
            let again = _mm256_mul_ps(_mm256_cvtepi32_ps(sums), weight);
            broken = _mm256_or_ps(broken, _mm256_cmp_ps::<_CMP_NEQ_UQ>(again, c));
            let mut result = _mm256_setzero_ps();
            for step in 0..STEPS {
                large = _mm256_or_si256(large, _mm256_abs_epi32(sums));
                for register in N * step..N * (step + 1) {
                    for quarter in 0..4 {
                        let factors = _mm256_set1_epi32(rows[half + 2 * register][4 * row + quarter] as i32);
                        sums = _mm256_add_epi32(sums, _mm256_madd_epi16(factors, right[register][quarter]));
                    }
                }
                result = cut_off(sums);
                sums = _mm256_cvttps_epi32(result);
            }
            put_sums(d, half, row, _mm256_mul_ps(result, weight));
        }
    }
    let large = any(_mm256_srli_epi32::<{ 2 * WHOLE_BITS + 1 }>(large));
    _mm256_movemask_ps(broken) == 0 && !large
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
    let zero = Right { value: [[_mm256_setzero_ps(); 8]; N], exponents: [[_mm256_setzero_si256(); 8]; N] };
    let mut right = [zero; STEPS];
    for (i, right) in right.iter_mut().enumerate() {
        for block in 0..N {
            let n = unpack::<B>(b, (0, 1), i * N + block, &mut bad);
            // Columns in the order in which C and D have them in registers: of FP32 first the even ones.
            let n = if HALF { n } else { [n[0], n[2], n[4], n[6], n[1], n[3], n[5], n[7]] };
            right.value[block] = transpose(n);
            for four in 0..2 {
                let [i, j, k, l] = [0, 1, 2, 3].map(|k| right.value[block][4 * four + k]);
                let all = bytes([
                    exponents::<B>(i, &mut bad),
                    exponents::<B>(j, &mut bad),
                    exponents::<B>(k, &mut bad),
                    exponents::<B>(l, &mut bad),
                ]);
                right.exponents[block][4 * four] = _mm256_permute4x64_epi64::<0x00>(all);
                right.exponents[block][4 * four + 1] = _mm256_permute4x64_epi64::<0x55>(all);
                right.exponents[block][4 * four + 2] = _mm256_permute4x64_epi64::<0xaa>(all);
                right.exponents[block][4 * four + 3] = _mm256_permute4x64_epi64::<0xff>(all);
            }
        }
    }
    let mut d = [[0; LANES]; 4];
    let zero = Left { value: [[[0.0; 8]; N]; 8], exponents: [[_mm256_setzero_si256(); 2]; N] };
    let mut left = [zero; STEPS];
    let infinite = _mm256_set1_epi32(EXPONENT);
    for half in 0..2 {
        for (i, left) in left.iter_mut().enumerate() {
            for block in 0..N {
                let rows = unpack::<A>(a, (half, 2), i * N + block, &mut bad);
                for row in 0..8 {
                    left.value[row][block] = numbers(rows[row]);
                }
                for four in 0..2 {
                    let [i, j, k, l] = [0, 1, 2, 3].map(|row| rows[4 * four + row]);
                    left.exponents[block][four] = bytes([
                        exponents::<A>(i, &mut bad),
                        exponents::<A>(j, &mut bad),
                        exponents::<A>(k, &mut bad),
                        exponents::<A>(l, &mut bad),
                    ]);
                }
            }
        }
        for first in [0, ROWS] {
            let mut sums = [_mm256_setzero_ps(); ROWS];
            for (r, sum) in sums.iter_mut().enumerate() {
                let at = 4 * (first + r);
                *sum = if HALF {
                    let [x, y, z, w] = [0, 1, 2, 3].map(|i| c[half][at + i] as i32);
                    _mm256_cvtph_ps(_mm_setr_epi32(x, y, z, w))
                } else {
                    addends(c, half, first + r)
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
                    put_sums(&mut d, half, first + r, sum);
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
    let mut d = [[0; LANES]; 4];
    let fragments = [a, b, c];
    let done = match (form.factors, half, per_step, steps) {
        ([X::F16, X::F16], false, 1, 1) => whole::<F16, 1, 1, 1, 2>(numerics, fragments, &mut d),
        ([X::F16, X::F16], false, 1, 2) => whole::<F16, 1, 2, 2, 4>(numerics, fragments, &mut d),
        ([X::F16, X::F16], false, 2, 1) => whole::<F16, 2, 1, 2, 4>(numerics, fragments, &mut d),
        ([X::Bf16, X::Bf16], _, 1, 1) => whole::<BF16, 1, 1, 1, 2>(numerics, fragments, &mut d),
        ([X::Bf16, X::Bf16], _, 1, 2) => whole::<BF16, 1, 2, 2, 4>(numerics, fragments, &mut d),
        ([X::Bf16, X::Bf16], _, 2, 1) => whole::<BF16, 2, 1, 2, 4>(numerics, fragments, &mut d),
        _ => false,
    };
    if done {
        return Some(d);
    }
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
