//! Fused steps of four rows and eight columns.

use std::arch::x86_64::*;

use super::super::{Numerics, Register};
use super::operands::{E4M3, E5M2, GROUPS, Left, Numbers, Right};
use super::words::{pair_of_rows, splat, words};

/// Rows that are worked on at once, to read B once for all of them.
const ROWS: usize = 4;

/// Exponent field of FP32.
const EXPONENT: i32 = 0x7f80_0000;
const SIGN: i32 = i32::MIN;
/// Sums of sixteen products and an addend are less than 2^31 + 2^26; where they do not fit, and a little below, the
/// long way is taken. What is made of infinities and NaNs is larger too.
const LARGE: i32 = 0x7800_0000;
/// With an FP32 accumulator the largest exponent never counts as less: as much as a zero and the largest factor add up to.
/// Where it is larger it is the right one. Where it is not, there must be nothing but zeros: no smaller products, and no
/// smaller addend. (Those of later steps may be smaller, but have no places that this could cut off.)
pub(super) const LOWEST: i32 = -86;

/// Bits of a power of two.
pub(super) const fn power_bits(exponent: i32) -> i32 {
    (127 + exponent) << 23
}

/// A unit's numbers as FP32 bits.
#[derive(Clone, Copy)]
pub(super) struct Constants {
    /// A term's scale is this less its largest exponent's field.
    scale: __m256i,
    /// A sum's weight is the largest exponent's field less this.
    weight: __m256i,
    /// What is kept of an FP32 result.
    kept: __m256,
    /// The largest exponent never counts as less: bytes.
    floor: __m256i,
}

impl Constants {
    /// Of a unit, with an FP16 accumulator if `half`.
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    pub fn new(numerics: &Numerics, half: bool) -> Self {
        let floor = if half { (-14 - numerics.floor_below).max(LOWEST) } else { LOWEST };
        Constants {
            scale: _mm256_set1_epi32((254 + numerics.fraction_bits) << 23),
            weight: _mm256_set1_epi32(numerics.fraction_bits << 23),
            kept: splat(-1 << (23 - numerics.result_bits)),
            floor: _mm256_set1_epi8((127 + floor) as i8),
        }
    }
}

/// What of all rows is to be looked at in the end.
#[derive(Clone, Copy)]
struct Extremes {
    /// The least of the largest exponents, as a field.
    exponent: __m256i,
    /// The largest sum.
    sum: __m256i,
    /// The largest result as an unsigned integer: of negative ones with the largest magnitude, if there is any.
    result: __m256i,
}

impl Extremes {
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    fn none() -> Self {
        let zero = _mm256_setzero_si256();
        Extremes { exponent: _mm256_set1_epi32(i32::MAX), sum: zero, result: zero }
    }

    /// No sum was too large, and no addend an infinity or NaN: with such the sum is the least integer, and the result minus
    /// infinity.
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    fn sums_are_fine(self) -> bool {
        let large = _mm256_max_epu32(self.sum, _mm256_set1_epi32(LARGE));
        let large = _mm256_cmpeq_epi32(large, self.sum);
        let infinite = _mm256_max_epu32(self.result, _mm256_set1_epi32(SIGN | EXPONENT));
        let infinite = _mm256_cmpeq_epi32(infinite, self.result);
        _mm256_testz_si256(_mm256_or_si256(large, infinite), _mm256_set1_epi32(-1)) != 0
    }

    /// All exponents were above [`LOWEST`].
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    fn exponents_are_fine(self) -> bool {
        let above = _mm256_cmpgt_epi32(self.exponent, _mm256_set1_epi32(power_bits(LOWEST)));
        _mm256_movemask_epi8(above) == -1
    }
}

/// An FP32 addend other than zero has a lower exponent than [`LOWEST`].
const fn is_small(addend: u32) -> bool {
    let magnitude = addend << 1 >> 1;
    magnitude != 0 && magnitude < power_bits(LOWEST) as u32
}

/// The largest exponents of a step's products, no less than the floor, as fields: in words as in [`Left::exponents`].
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn largest_products<const FOURS: usize>(
    constants: &Constants,
    left: &[[u32; 8]; FOURS],
    right: &[[__m256i; 4]; FOURS],
    odd: usize,
) -> __m256i {
    let mut most = constants.floor;
    for (rows, columns) in left.iter().zip(right) {
        for k in 0..4 {
            let rows = _mm256_set1_epi32(rows[4 * odd + k] as i32);
            most = _mm256_max_epu8(most, _mm256_subs_epu8(rows, columns[k]));
        }
    }
    most
}

/// What of sixteens belongs to a step of four times `FOURS`.
fn of_step<T, const FOURS: usize>(all: &[T], step: usize) -> &[[T; 4]; FOURS] {
    &all.as_chunks::<4>().0.as_chunks::<FOURS>().0[step]
}

/// Byte `i` of each word as the exponent of an FP32 number.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn exponent_of_byte(v: __m256i, i: usize) -> __m256i {
    match i {
        0 => _mm256_srli_epi32::<1>(_mm256_slli_epi32::<24>(v)),
        1 => _mm256_slli_epi32::<15>(_mm256_and_si256(v, _mm256_set1_epi32(0xff << 8))),
        2 => _mm256_slli_epi32::<7>(_mm256_and_si256(v, _mm256_set1_epi32(0xff << 16))),
        _ => _mm256_slli_epi32::<23>(_mm256_srli_epi32::<24>(v)),
    }
}

/// Room for what a product is in the middle of: kept, so that nothing has to be cleared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    /// Addends and results of all rows.
    sums: [__m256; 16],
    /// The largest exponents of their products.
    products: [__m256i; 16],
}

impl Work {
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    pub fn new() -> Self {
        Work { sums: [_mm256_setzero_ps(); 16], products: [_mm256_setzero_si256(); 16] }
    }
}

/// A product of `STEPS` steps of four times `FOURS` products, whose addends are in `d` before, and results after. False
/// where its numbers need the long way. `LOOK` says that sums of a step's products and an addend may be more than fits, so that
/// each must be looked at.
#[inline(never)]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn product<
    const FACTOR: u8,
    const STEPS: usize,
    const FOURS: usize,
    const LOOK: bool,
    const HALF: bool,
>(
    constants: &Constants,
    left: &Left,
    right: &Right,
    numbers: Numbers,
    work: &mut Work,
    d: &mut [Register],
) -> bool {
    // FP8 only: the others' results have all bits.
    let cut_results = !HALF && (FACTOR == E4M3 || FACTOR == E5M2);
    let mut extremes = Extremes::none();
    let Work { sums, products } = work;
    for (at, sums) in sums.as_chunks_mut::<2>().0.iter_mut().enumerate() {
        *sums = if HALF { read_halves(d, at) } else { read_rows(d, at) };
    }
    for step in 0..STEPS {
        let columns = of_step(right.exponents.as_flattened(), step);
        for (rows, products) in left.exponents.iter().zip(products.as_chunks_mut::<8>().0) {
            let rows = &rows.as_flattened().as_chunks::<FOURS>().0[step];
            for odd in 0..2 {
                let most = largest_products(constants, rows, columns, odd);
                for i in 0..4 {
                    products[2 * i + odd] = exponent_of_byte(most, i);
                }
            }
        }
        let groups = sums.as_chunks_mut::<ROWS>().0.iter_mut().zip(products.as_chunks::<ROWS>().0);
        for ((sums, products), rows) in groups.zip(left.value.as_chunks::<ROWS>().0) {
            fused_step::<FOURS, LOOK, HALF>(constants, rows, right, step, products, sums, &mut extremes);
            if cut_results {
                *sums = sums.map(|sum| _mm256_and_ps(sum, constants.kept));
            }
        }
    }
    if !LOOK {
        for sum in &*sums {
            extremes.result = _mm256_max_epu32(extremes.result, _mm256_castps_si256(*sum));
        }
    }
    // Nothing that is added to FP16 is that small.
    let zeros = || numbers == Numbers::Ordinary && !d.iter().flatten().any(|&c| is_small(c));
    if !extremes.sums_are_fine() || !(HALF || extremes.exponents_are_fine() || zeros()) {
        return false;
    }
    for (at, sums) in sums.as_chunks::<2>().0.iter().enumerate() {
        if HALF { write_halves(d, at, *sums) } else { write_rows(d, at, *sums) }
    }
    true
}

/// One fused step of a few rows. `sums` holds the addends, and then the results.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn fused_step<const FOURS: usize, const LOOK: bool, const HALF: bool>(
    constants: &Constants,
    rows: &[[[f32; 16]; GROUPS]; ROWS],
    right: &Right,
    step: usize,
    products: &[__m256i; ROWS],
    sums: &mut [__m256; ROWS],
    extremes: &mut Extremes,
) {
    let mut largest = [_mm256_setzero_si256(); ROWS];
    let mut scale = [_mm256_setzero_ps(); ROWS];
    let mut whole = largest;
    for r in 0..ROWS {
        let mut addend = _mm256_and_si256(_mm256_castps_si256(sums[r]), _mm256_set1_epi32(EXPONENT));
        if HALF {
            // Subnormals of FP16 have no lower exponent; nothing else but zero has none.
            let nonzero = _mm256_cmpgt_epi32(addend, _mm256_setzero_si256());
            let smallest = _mm256_and_si256(nonzero, _mm256_set1_epi32(power_bits(-14)));
            addend = _mm256_max_epi32(addend, smallest);
        }
        largest[r] = _mm256_max_epi32(products[r], addend);
        scale[r] = _mm256_castsi256_ps(_mm256_sub_epi32(constants.scale, largest[r]));
        whole[r] = _mm256_cvttps_epi32(_mm256_mul_ps(sums[r], scale[r]));
    }
    for four in step * FOURS..(step + 1) * FOURS {
        for k in 4 * four % 16..4 * four % 16 + 4 {
            let column = right.value[four / 4][k];
            for r in 0..ROWS {
                let row = _mm256_set1_ps(rows[r][four / 4][k]);
                let product = _mm256_mul_ps(_mm256_mul_ps(row, column), scale[r]);
                whole[r] = _mm256_add_epi32(whole[r], _mm256_cvttps_epi32(product));
            }
        }
    }
    for r in 0..ROWS {
        let magnitude = _mm256_abs_epi32(whole[r]);
        if LOOK {
            extremes.sum = _mm256_max_epu32(extremes.sum, magnitude);
        }
        if !HALF {
            extremes.exponent = _mm256_min_epi32(extremes.exponent, largest[r]);
        }
        let weight = _mm256_castsi256_ps(_mm256_sub_epi32(largest[r], constants.weight));
        sums[r] = if HALF {
            // Rounded to odd, so that it may be rounded once more.
            let number = number_toward_zero(whole[r], magnitude);
            let exact = _mm256_cmpeq_epi32(_mm256_cvttps_epi32(number), whole[r]);
            let odd = _mm256_andnot_si256(exact, _mm256_set1_epi32(1));
            let bits = _mm256_or_si256(_mm256_castps_si256(number), odd);
            let result = _mm256_mul_ps(_mm256_castsi256_ps(bits), weight);
            let half = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(result);
            // What rounds to zero is +0.
            _mm256_add_ps(_mm256_cvtph_ps(half), _mm256_setzero_ps())
        } else {
            _mm256_mul_ps(number_toward_zero(whole[r], magnitude), weight)
        };
    }
}

/// A whole number and its magnitude as FP32, cut off toward zero.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn number_toward_zero(whole: __m256i, magnitude: __m256i) -> __m256 {
    // Without the bit behind the 24th the nearest FP32 number is the next one toward zero.
    let cut = _mm256_andnot_si256(_mm256_srli_epi32::<24>(magnitude), magnitude);
    _mm256_cvtepi32_ps(_mm256_sign_epi32(cut, whole))
}

/// Two rows of FP32 addends, first the even columns.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn read_rows(c: &[Register], at: usize) -> [__m256; 2] {
    let (half, pair) = (at / 4, at % 4);
    let both = [pair_of_rows(&c[2 * half], pair), pair_of_rows(&c[2 * half + 1], pair)];
    swap_halves(both.map(|v| _mm256_castsi256_ps(v)))
}

/// Writes two rows of FP32 results.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn write_rows(d: &mut [Register], at: usize, results: [__m256; 2]) {
    let (half, pair) = (at / 4, at % 4);
    let [even, odd] = swap_halves(results).map(|v| words(_mm256_castps_si256(v)));
    let (pairs, _) = d[2 * half].as_chunks_mut::<8>();
    pairs[pair] = even;
    let (pairs, _) = d[2 * half + 1].as_chunks_mut::<8>();
    pairs[pair] = odd;
}

/// The lower halves, then the upper halves.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn swap_halves([a, b]: [__m256; 2]) -> [__m256; 2] {
    [_mm256_permute2f128_ps::<0x20>(a, b), _mm256_permute2f128_ps::<0x31>(a, b)]
}

/// Two rows of FP16 addends, first the even columns.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn read_halves(c: &[Register], at: usize) -> [__m256; 2] {
    let even_first = _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    let both =
        _mm256_shuffle_epi8(pair_of_rows(&c[at / 4], at % 4), _mm256_set_m128i(even_first, even_first));
    [_mm256_cvtph_ps(_mm256_castsi256_si128(both)), _mm256_cvtph_ps(_mm256_extracti128_si256::<1>(both))]
}

/// Writes two rows of FP16 results, of numbers that are FP16 already.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn write_halves(d: &mut [Register], at: usize, results: [__m256; 2]) {
    let (half, pair) = (at / 4, at % 4);
    let in_turn = _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
    let [first, second] = results.map(|v| _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v));
    let both = _mm256_set_m128i(second, first);
    let (pairs, _) = d[half].as_chunks_mut::<8>();
    pairs[pair] = words(_mm256_shuffle_epi8(both, _mm256_set_m128i(in_turn, in_turn)));
}
