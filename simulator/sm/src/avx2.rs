//! Steps of handlers for which the compiler finds no good instructions by itself, written out for AVX2.
//!
//! Each does what a plain function beside its caller does too, for processors without; tests compare the two.

use std::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_add_epi64, _mm256_blend_epi32, _mm256_broadcastd_epi32,
    _mm256_castsi256_si128, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_mul_epi32, _mm256_mul_epu32,
    _mm256_mullo_epi32, _mm256_or_si256, _mm256_packs_epi16, _mm256_packs_epi32, _mm256_permutevar8x32_epi32,
    _mm256_set1_epi32, _mm256_setr_epi32, _mm256_setzero_si256, _mm256_slli_epi64, _mm256_srli_epi64,
    _mm256_storeu_si256, _mm256_sub_epi32, _mm256_testz_si256, _mm256_xor_si256,
};

use super::lanes::LANES;

/// Eight lanes of a row.
#[inline]
#[target_feature(enable = "avx2")]
fn eight(row: &[u32; LANES], number: usize) -> __m256i {
    let lanes = &row[8 * number..8 * number + 8];
    // SAFETY: the slice has 32 bytes, and the load needs no alignment.
    unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) }
}

/// Writes eight lanes of a row.
#[inline]
#[target_feature(enable = "avx2")]
fn put_eight(row: &mut [u32; LANES], number: usize, value: __m256i) {
    let lanes = &mut row[8 * number..8 * number + 8];
    // SAFETY: the slice has 32 bytes, and the store needs no alignment.
    unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), value) };
}

/// The mask of the lanes whose highest bit is set.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn signs(lanes: &[u32; LANES]) -> u32 {
    let low = _mm256_packs_epi32(eight(lanes, 0), eight(lanes, 1));
    let high = _mm256_packs_epi32(eight(lanes, 2), eight(lanes, 3));
    // Packing works within halves: the words are put in order last.
    let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    let bytes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
    _mm256_movemask_epi8(bytes) as u32
}

/// Whether each eight lanes rise by `step`, and whether each eight lanes are the same.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn order(at: &[u32; LANES], step: u32) -> (bool, bool) {
    let numbers = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let steps = _mm256_mullo_epi32(numbers, _mm256_set1_epi32(step as i32));
    let (mut rising, mut same) = (_mm256_setzero_si256(), _mm256_setzero_si256());
    for number in 0..4 {
        let lanes = eight(at, number);
        let first = _mm256_broadcastd_epi32(_mm256_castsi256_si128(lanes));
        let distance = _mm256_sub_epi32(lanes, first);
        same = _mm256_or_si256(same, distance);
        rising = _mm256_or_si256(rising, _mm256_xor_si256(distance, steps));
    }
    (_mm256_testz_si256(rising, rising) != 0, _mm256_testz_si256(same, same) != 0)
}

/// Whether all lanes rise by `step`, and those of `same` are the same.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn is_run(at: &[u32; LANES], step: u32, same: Option<&[u32; LANES]>) -> bool {
    let numbers = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let steps = _mm256_mullo_epi32(numbers, _mm256_set1_epi32(step as i32));
    let mut expected = _mm256_add_epi32(steps, _mm256_set1_epi32(at[0] as i32));
    let mut any = _mm256_xor_si256(eight(at, 0), expected);
    for number in 1..4 {
        expected = _mm256_add_epi32(expected, _mm256_set1_epi32(8 * step as i32));
        any = _mm256_or_si256(any, _mm256_xor_si256(eight(at, number), expected));
    }
    if let Some(same) = same {
        let first = _mm256_set1_epi32(same[0] as i32);
        for number in 0..4 {
            any = _mm256_or_si256(any, _mm256_xor_si256(eight(same, number), first));
        }
    }
    _mm256_testz_si256(any, any) != 0
}

/// Whether all lanes are the same.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn one_value(row: &[u32; LANES]) -> bool {
    let first = _mm256_set1_epi32(row[0] as i32);
    let differ = |number: usize| _mm256_xor_si256(eight(row, number), first);
    let low = _mm256_or_si256(differ(0), differ(1));
    let high = _mm256_or_si256(differ(2), differ(3));
    let any = _mm256_or_si256(low, high);
    _mm256_testz_si256(any, any) != 0
}

/// The words of `a * b + c` in 64 bits.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn multiply_wide<const SIGNED: bool>(
    a: &[u32; LANES],
    b: &[u32; LANES],
    c: [&[u32; LANES]; 2],
) -> [[u32; LANES]; 2] {
    let mut out = [[0; LANES]; 2];
    for number in 0..4 {
        let (a, b) = (eight(a, number), eight(b, number));
        let (a_odd, b_odd) = (_mm256_srli_epi64::<32>(a), _mm256_srli_epi64::<32>(b));
        let (even, odd) = if SIGNED {
            (_mm256_mul_epi32(a, b), _mm256_mul_epi32(a_odd, b_odd))
        } else {
            (_mm256_mul_epu32(a, b), _mm256_mul_epu32(a_odd, b_odd))
        };
        let (low, high) = (eight(c[0], number), eight(c[1], number));
        let even = _mm256_add_epi64(even, _mm256_blend_epi32::<0xaa>(low, _mm256_slli_epi64::<32>(high)));
        let odd = _mm256_add_epi64(odd, _mm256_blend_epi32::<0xaa>(_mm256_srli_epi64::<32>(low), high));
        put_eight(&mut out[0], number, _mm256_blend_epi32::<0xaa>(even, _mm256_slli_epi64::<32>(odd)));
        put_eight(&mut out[1], number, _mm256_blend_epi32::<0xaa>(_mm256_srli_epi64::<32>(even), odd));
    }
    out
}
