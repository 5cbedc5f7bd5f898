//! DMMA, rounded to nearest: the processor's own fused multiply-adds.

use std::arch::x86_64::*;

use super::super::{LANES, Pair};
use super::Scratch;

/// Rows that are worked on at once, so that sums need not wait for each other.
const ROWS: usize = 4;

/// Most products of a sum.
const MOST: usize = 16;

#[inline]
#[target_feature(enable = "avx2,fma")]
fn numbers(register: &Pair, four: usize) -> __m256d {
    let (fours, _) = register.as_chunks::<4>();
    let [a, b, c, d] = fours[four].map(u64::cast_signed);
    _mm256_castsi256_pd(_mm256_setr_epi64x(a, b, c, d))
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn bits(v: __m256d) -> [u64; 4] {
    let v = _mm256_castpd_si256(v);
    [
        _mm256_extract_epi64::<0>(v),
        _mm256_extract_epi64::<1>(v),
        _mm256_extract_epi64::<2>(v),
        _mm256_extract_epi64::<3>(v),
    ]
    .map(i64::cast_unsigned)
}

/// Four rows of four to four columns of four.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn transpose([a, b, c, d]: [__m256d; 4]) -> [__m256d; 4] {
    let (low0, high0) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
    let (low1, high1) = (_mm256_unpacklo_pd(c, d), _mm256_unpackhi_pd(c, d));
    [
        _mm256_permute2f128_pd::<0x20>(low0, low1),
        _mm256_permute2f128_pd::<0x20>(high0, high1),
        _mm256_permute2f128_pd::<0x31>(low0, low1),
        _mm256_permute2f128_pd::<0x31>(high0, high1),
    ]
}

/// [`dmma`](super::super::dmma), rounded to nearest. `None` where the form does not exist, and for the long way where a
/// result is a NaN: which one is not what the processor says.
///
/// # Safety
///
/// Callers compiled without these features must have seen that the processor has them; nothing else can go wrong.
#[target_feature(enable = "avx2,fma")]
pub fn dmma<'a>(
    rows: usize,
    k: usize,
    [a, b, c]: [&[Pair]; 3],
    Scratch { pairs: d, .. }: &'a mut Scratch,
) -> Option<&'a [Pair; 4]> {
    if !matches!((rows, k), (8, 4) | (16, 4 | 8 | 16)) {
        return None;
    }
    if a.len() != rows * k / LANES || b.len() != 8 * k / LANES || c.len() != rows / 4 {
        return None;
    }
    // Even and odd columns, as C has them.
    let mut right = [[_mm256_setzero_pd(); 2]; MOST];
    for (register, to) in b.iter().zip(right.as_chunks_mut::<4>().0) {
        for odd in 0..2 {
            let columns = transpose([0, 2, 4, 6].map(|column| numbers(register, column + odd)));
            for (to, column) in to.iter_mut().zip(columns) {
                to[odd] = column;
            }
        }
    }
    let halves = rows / 8;
    let mut unordered = _mm256_setzero_pd();
    for first in (0..rows).step_by(ROWS) {
        let half = first / 8;
        let mut sums = [[_mm256_setzero_pd(); 2]; ROWS];
        for (r, sums) in sums.iter_mut().enumerate() {
            for (odd, sum) in sums.iter_mut().enumerate() {
                *sum = numbers(&c[2 * half + odd], first % 8 + r);
            }
        }
        for (register, columns) in right.as_chunks::<4>().0.iter().enumerate().take(k / 4) {
            let (fours, _) = a[register * halves + half].as_chunks::<4>();
            for (i, columns) in columns.iter().enumerate() {
                for (sums, row) in sums.iter_mut().zip(&fours[first % 8..]) {
                    let factor = _mm256_set1_pd(f64::from_bits(row[i]));
                    for (sum, column) in sums.iter_mut().zip(columns) {
                        *sum = _mm256_fmadd_pd(factor, *column, *sum);
                    }
                }
            }
        }
        for (r, sums) in sums.into_iter().enumerate() {
            for (odd, sum) in sums.into_iter().enumerate() {
                unordered = _mm256_or_pd(unordered, _mm256_cmp_pd::<_CMP_UNORD_Q>(sum, sum));
                let (fours, _) = d[2 * half + odd].as_chunks_mut::<4>();
                fours[first % 8 + r] = bits(sum);
            }
        }
    }
    (_mm256_movemask_pd(unordered) == 0).then_some(d)
}
