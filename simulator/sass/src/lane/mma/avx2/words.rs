//! Vectors from and to words. The compiler makes single loads and stores of all of these.

use std::arch::x86_64::*;

use super::super::Register;

/// Eight words.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn integers(words: &[u32; 8]) -> __m256i {
    let [a, b, c, d, e, f, g, h] = words.map(|word| word as i32);
    _mm256_setr_epi32(a, b, c, d, e, f, g, h)
}

/// Rows `2 * pair` and `2 * pair + 1` of a register: of A, or columns of B.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn pair_of_rows(register: &Register, pair: usize) -> __m256i {
    let (pairs, _) = register.as_chunks::<8>();
    integers(&pairs[pair])
}

/// The words of a vector.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn words(v: __m256i) -> [u32; 8] {
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
    .map(|word| word as u32)
}

/// The numbers of a vector.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn numbers(v: __m256) -> [f32; 8] {
    words(_mm256_castps_si256(v)).map(f32::from_bits)
}

/// The same FP32 bits eight times.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn splat(bits: i32) -> __m256 {
    _mm256_castsi256_ps(_mm256_set1_epi32(bits))
}

/// The word of number `i` of each of eight rows of four words, as vector `i`. Of the rows first the even ones, then the
/// odd ones: in this order C and D have their columns in registers.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn transpose_words([a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
    let (low0, high0) = (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
    let (low1, high1) = (_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
    [
        _mm256_unpacklo_epi64(low0, low1),
        _mm256_unpackhi_epi64(low0, low1),
        _mm256_unpacklo_epi64(high0, high1),
        _mm256_unpackhi_epi64(high0, high1),
    ]
}

/// Of eight rows of eight 16-bit elements elements `2 * i` and `2 * i + 1` of all rows, one after the other, as vector
/// `i`; rows in the order of [`transpose_words`].
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn transpose_halves([a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
    let (low0, high0) = (_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b));
    let (low1, high1) = (_mm256_unpacklo_epi16(c, d), _mm256_unpackhi_epi16(c, d));
    [
        in_order(_mm256_unpacklo_epi32(low0, low1)),
        in_order(_mm256_unpackhi_epi32(low0, low1)),
        in_order(_mm256_unpacklo_epi32(high0, high1)),
        in_order(_mm256_unpackhi_epi32(high0, high1)),
    ]
}

/// Quarters 0 and 2 first.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn in_order(v: __m256i) -> __m256i {
    _mm256_permute4x64_epi64::<0xd8>(v)
}

/// The byte of number `4 * i + j` of each of four rows as word `j` of vector `i`, of both halves.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn interleave_bytes([a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
    let (low0, high0) = (_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b));
    let (low1, high1) = (_mm256_unpacklo_epi8(c, d), _mm256_unpackhi_epi8(c, d));
    [
        _mm256_unpacklo_epi16(low0, low1),
        _mm256_unpackhi_epi16(low0, low1),
        _mm256_unpacklo_epi16(high0, high1),
        _mm256_unpackhi_epi16(high0, high1),
    ]
}

/// Byte `i` of each word four times, as vector `i`.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn repeat_bytes(v: __m256i) -> [__m256i; 4] {
    let firsts =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12));
    [0, 1, 2, 3].map(|i| _mm256_shuffle_epi8(v, _mm256_add_epi8(firsts, _mm256_set1_epi8(i))))
}
