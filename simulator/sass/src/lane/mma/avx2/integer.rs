//! IMMA: sums of 16-bit products.

use std::arch::x86_64::*;

use super::super::{Integer, IntegerMatrix, Register};
use super::Scratch;
use super::step::{read_rows, write_rows};
use super::words::*;

/// Most parts into which the elements of a word fall.
const PARTS: usize = 4;
/// A part of every word of a register.
pub(super) type Part = [[u32; 8]; 4];
/// Parts of every word of a fragment of A.
pub(super) type Left = [[Part; PARTS]; 4];

/// Elements `part` and `part + PARTS` of each word as 16-bit numbers.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn widen<const PARTS: usize>(words: __m256i, part: usize, signed: bool) -> __m256i {
    let bits = 16 / PARTS as i32;
    let above = _mm_cvtsi32_si128(16 - bits * (part as i32 + 1));
    let below = _mm_cvtsi32_si128(16 - bits);
    let top = _mm256_sll_epi16(words, above);
    if signed { _mm256_sra_epi16(top, below) } else { _mm256_srl_epi16(top, below) }
}

/// Two numbers' sum, which saturates.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn saturating_add(a: __m256i, b: __m256i) -> __m256i {
    let sum = _mm256_add_epi32(a, b);
    let limit = _mm256_xor_si256(_mm256_srai_epi32::<31>(a), _mm256_set1_epi32(i32::MAX));
    // Too large where both have the sign that the sum has not.
    let large = _mm256_and_si256(_mm256_xor_si256(a, sum), _mm256_xor_si256(b, sum));
    let [sum, limit, large] = [sum, limit, large].map(|v| _mm256_castsi256_ps(v));
    _mm256_castps_si256(_mm256_blendv_ps(sum, limit, large))
}

/// A product whose B has `COUNT` registers, of elements that make `PARTS` parts.
#[inline(never)]
#[target_feature(enable = "avx2,f16c")]
fn product<const PARTS: usize, const COUNT: usize>(
    form: IntegerMatrix,
    [a, b, c]: [&[Register]; 3],
    left: &mut Left,
    d: &mut [Register; 4],
) {
    let signed = form.factors.map(|factor| matches!(factor, Integer::S8 | Integer::S4));
    for (register, parts) in a.iter().zip(left.iter_mut()) {
        for pair in 0..4 {
            let v = pair_of_rows(register, pair);
            for (part, to) in parts.iter_mut().enumerate().take(PARTS) {
                to[pair] = words(widen::<PARTS>(v, part, signed[0]));
            }
        }
    }
    let mut right = [[[_mm256_setzero_si256(); PARTS]; 4]; COUNT];
    for (register, to) in b.iter().zip(&mut right) {
        let columns = transpose_words([0, 1, 2, 3].map(|pair| pair_of_rows(register, pair)));
        for (column, to) in columns.into_iter().zip(to) {
            for (part, to) in to.iter_mut().enumerate() {
                *to = widen::<PARTS>(column, part, signed[1]);
            }
        }
    }
    let halves = form.rows / 8;
    for at in 0..4 * halves {
        let (half, pair) = (at / 4, at % 4);
        let mut results = read_rows(c, at);
        for (r, result) in results.iter_mut().enumerate() {
            // At most 128 products below 2^16: no overflow.
            let mut sum = _mm256_setzero_si256();
            for register in 0..COUNT {
                let row = &left[(register * halves + half) % 4];
                for word in 0..4 {
                    for part in 0..PARTS {
                        let row = _mm256_set1_epi32(row[part][pair][4 * r + word] as i32);
                        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(row, right[register][word][part]));
                    }
                }
            }
            let addend = _mm256_castps_si256(*result);
            let sum = if form.saturate { saturating_add(sum, addend) } else { _mm256_add_epi32(sum, addend) };
            *result = _mm256_castsi256_ps(sum);
        }
        write_rows(d, at, results);
    }
}

/// [`imma`](super::super::imma) of a dense form. `None` also where the form is for the long way. With 8 rows the last two
/// registers of the result are of no use.
///
/// # Safety
///
/// Callers compiled without these features must have seen that the processor has them; nothing else can go wrong.
#[target_feature(enable = "avx2,f16c")]
pub fn imma<'a>(
    form: IntegerMatrix,
    operands: [&[Register]; 3],
    Scratch { wholes, d, .. }: &'a mut Scratch,
) -> Option<&'a [Register; 4]> {
    let registers = form.registers()?;
    if form.sparse || !registers.fit(operands) {
        return None;
    }
    match (form.factors[0].bits(), registers.b) {
        (8, 1) => product::<2, 1>(form, operands, wholes, d),
        (8, 2) => product::<2, 2>(form, operands, wholes, d),
        (4, 1) => product::<4, 1>(form, operands, wholes, d),
        (4, 2) => product::<4, 2>(form, operands, wholes, d),
        _ => return None,
    }
    Some(d)
}
