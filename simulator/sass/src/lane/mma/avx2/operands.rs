//! A and B, decoded once for all products that they take part in.

use std::arch::x86_64::*;

use super::super::{LANES, Register};
use super::step::power_bits;
use super::words::*;

pub(super) const F16: u8 = 0;
pub(super) const BF16: u8 = 1;
pub(super) const TF32: u8 = 2;
pub(super) const E4M3: u8 = 3;
pub(super) const E5M2: u8 = 4;

/// Exponents of BF16 and TF32 factors may be so much more than that of 1.0, and so much less without further ado.
const REACH: u8 = 40;

/// What is to be taken off an exponent's field.
const fn bias<const FACTOR: u8>() -> u8 {
    match FACTOR {
        F16 | E5M2 => 15,
        E4M3 => 7,
        _ => 127,
    }
}

/// The largest exponent of a factor that is worked with, or of any that it is multiplied with.
const fn largest_exponent<const FACTOR: u8>() -> u8 {
    match FACTOR {
        F16 | E4M3 | E5M2 => 15,
        _ => REACH,
    }
}

/// Most groups of sixteen elements in a row of A or column of B.
pub(super) const GROUPS: usize = 2;

/// The sixteen rows of A, in groups of sixteen elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    /// What there is, if all can be worked with.
    pub numbers: Option<Numbers>,
    pub value: [[[f32; 16]; GROUPS]; 16],
    /// Bytes from which those of [`Right`] are taken off, which leaves the field of the product's exponent in FP32, or 0 if
    /// there is a zero. A word has an element of rows 0, 2, 4 and 6 of one half of the rows, or of rows 1, 3, 5 and 7: four
    /// elements of the former, and the same ones of the latter.
    pub exponents: [[[[u32; 8]; 4]; GROUPS]; 2],
}

/// The eight columns of B, in the order of [`transpose_words`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Right {
    /// What there is, if all can be worked with.
    pub numbers: Option<Numbers>,
    pub value: [[__m256; 16]; GROUPS],
    /// See [`Left`]. Words have the same byte four times.
    pub exponents: [[__m256i; 16]; GROUPS],
}

/// Magnitudes that were met, to tell whether all of them can be worked with.
#[derive(Clone, Copy)]
struct Seen {
    /// The largest: exponent fields, of FP8 whole magnitudes.
    largest: __m256i,
    /// The smallest of BF16 and TF32, as twice the bits less one: of zero the largest number.
    smallest: __m256i,
}

impl Seen {
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    fn nothing() -> Self {
        Seen { largest: _mm256_setzero_si256(), smallest: _mm256_set1_epi32(-1) }
    }

    /// What is to be known of the numbers. `None` where there is an infinity, a NaN, or an exponent near the upper end of
    /// BF16 and TF32.
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    fn kind<const FACTOR: u8>(self) -> Option<Numbers> {
        let limit = match FACTOR {
            F16 => 31,
            E4M3 => 0x7f,
            E5M2 => 0x7c,
            _ => 127 + REACH + 1,
        };
        let limit = _mm256_set1_epi8(limit as i8);
        let large = _mm256_cmpeq_epi8(_mm256_max_epu8(self.largest, limit), self.largest);
        let least = 127 - i32::from(REACH);
        let near = match FACTOR {
            BF16 => {
                let least = _mm256_set1_epi16(((least << 8) - 1) as i16);
                _mm256_cmpeq_epi16(_mm256_min_epu16(self.smallest, least), least)
            }
            TF32 => {
                let least = _mm256_set1_epi32((least << 24) - 1);
                _mm256_cmpeq_epi32(_mm256_min_epu32(self.smallest, least), least)
            }
            _ => _mm256_set1_epi32(-1),
        };
        if _mm256_testz_si256(large, large) == 0 {
            return None;
        }
        let all = _mm256_testc_si256(near, _mm256_set1_epi32(-1)) != 0;
        Some(if all { Numbers::Ordinary } else { Numbers::SomeTiny })
    }
}

/// What a matrix has beside zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbers {
    /// No products of two such are as small as [`super::step::LOWEST`] says.
    Ordinary,
    /// Some are smaller: BF16 and TF32 only.
    SomeTiny,
}

/// The exponents' fields of sixteen elements of two rows of A or columns of B, as bytes. Those are in two registers, of FP8
/// in the first. 0 is that of zeros only, or of something as good as zero.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn fields<const FACTOR: u8>(registers: [__m256i; 2], seen: &mut Seen) -> __m256i {
    match FACTOR {
        F16 => {
            let [first, second] = registers.map(|v| {
                let shifted = _mm256_add_epi16(v, v);
                let nonzero = _mm256_min_epu16(shifted, _mm256_set1_epi16(1));
                _mm256_max_epi16(_mm256_srli_epi16::<11>(shifted), nonzero)
            });
            let fields = _mm256_packus_epi16(first, second);
            seen.largest = _mm256_max_epu8(seen.largest, fields);
            fields
        }
        BF16 => {
            let [first, second] = registers.map(|v| {
                let shifted = _mm256_add_epi16(v, v);
                let below = _mm256_sub_epi16(shifted, _mm256_set1_epi16(1));
                (_mm256_srli_epi16::<8>(shifted), below)
            });
            seen.smallest = _mm256_min_epu16(seen.smallest, _mm256_min_epu16(first.1, second.1));
            let fields = _mm256_packus_epi16(first.0, second.0);
            seen.largest = _mm256_max_epu8(seen.largest, fields);
            fields
        }
        TF32 => {
            let [first, second] = registers.map(|v| {
                let read = _mm256_and_si256(v, _mm256_set1_epi32(0xffff_e000_u32 as i32));
                let shifted = _mm256_add_epi32(read, read);
                let below = _mm256_sub_epi32(shifted, _mm256_set1_epi32(1));
                (_mm256_srli_epi32::<24>(shifted), below)
            });
            seen.smallest = _mm256_min_epu32(seen.smallest, _mm256_min_epu32(first.1, second.1));
            let fields = _mm256_packs_epi32(first.0, second.0);
            let fields = _mm256_packus_epi16(fields, _mm256_setzero_si256());
            seen.largest = _mm256_max_epu8(seen.largest, fields);
            fields
        }
        _ => {
            let magnitude = _mm256_and_si256(registers[0], _mm256_set1_epi8(0x7f));
            seen.largest = _mm256_max_epu8(seen.largest, magnitude);
            let fields = if FACTOR == E4M3 {
                _mm256_and_si256(_mm256_srli_epi16::<3>(magnitude), _mm256_set1_epi8(15))
            } else {
                _mm256_and_si256(_mm256_srli_epi16::<2>(magnitude), _mm256_set1_epi8(31))
            };
            _mm256_max_epu8(fields, _mm256_min_epu8(magnitude, _mm256_set1_epi8(1)))
        }
    }
}

/// The bytes of [`Left::exponents`].
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn left_exponents<const FACTOR: u8>(fields: __m256i) -> __m256i {
    let offset = const { 127u8.wrapping_add(largest_exponent::<FACTOR>()).wrapping_sub(bias::<FACTOR>()) };
    let exponents = _mm256_add_epi8(fields, _mm256_set1_epi8(offset as i8));
    match FACTOR {
        // A zero's is so little that the floor counts.
        BF16 | TF32 => exponents,
        _ => _mm256_andnot_si256(_mm256_cmpeq_epi8(fields, _mm256_setzero_si256()), exponents),
    }
}

/// The bytes of [`Right::exponents`].
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn right_exponents<const FACTOR: u8>(fields: __m256i) -> __m256i {
    let most = const { largest_exponent::<FACTOR>() + bias::<FACTOR>() };
    let exponents = _mm256_sub_epi8(_mm256_set1_epi8(most as i8), fields);
    match FACTOR {
        BF16 | TF32 => exponents,
        _ => _mm256_or_si256(_mm256_cmpeq_epi8(fields, _mm256_setzero_si256()), exponents),
    }
}

/// Sixteen FP8 numbers as FP16, for [`wide`]: elements 0 to 7 and 8 to 15 of both halves.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn halves_of_bytes<const FACTOR: u8>(v: __m256i) -> [__m256i; 2] {
    let zero = _mm256_setzero_si256();
    [_mm256_unpacklo_epi8(zero, v), _mm256_unpackhi_epi8(zero, v)].map(|half| {
        if FACTOR == E4M3 {
            // One exponent bit less: the fields one place lower, under another bias.
            _mm256_and_si256(_mm256_srai_epi16::<1>(half), _mm256_set1_epi16(0xbfff_u16 as i16))
        } else {
            half
        }
    })
}

/// FP16 numbers of both halves as FP32.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn wide<const FACTOR: u8>(halves: __m256i) -> [__m256; 2] {
    [_mm256_castsi256_si128(halves), _mm256_extracti128_si256::<1>(halves)].map(|half| {
        let number = _mm256_cvtph_ps(half);
        if FACTOR == E4M3 { _mm256_mul_ps(number, splat(power_bits(8))) } else { number }
    })
}

/// Two FP32 numbers of each pair of BF16 ones.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn wide_bf16(v: __m256i) -> [__m256; 2] {
    let upper = _mm256_set1_epi32(0xffff_0000_u32 as i32);
    [_mm256_castsi256_ps(_mm256_slli_epi32::<16>(v)), _mm256_castsi256_ps(_mm256_and_si256(v, upper))]
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
fn read_tf32(v: __m256i) -> __m256 {
    _mm256_castsi256_ps(_mm256_and_si256(v, _mm256_set1_epi32(0xffff_e000_u32 as i32)))
}

/// Registers of a group of sixteen elements.
const fn registers_of_group<const FACTOR: u8>() -> usize {
    if FACTOR == E4M3 || FACTOR == E5M2 { 1 } else { 2 }
}

impl Left {
    pub const ZERO: Self =
        Left { numbers: None, value: [[[0.0; 16]; GROUPS]; 16], exponents: [[[[0; 8]; 4]; GROUPS]; 2] };

    /// Reads A of twice `COUNT` registers. `None` where it has numbers that need the long way.
    #[inline(never)]
    #[target_feature(enable = "avx2,f16c")]
    pub fn decode<const FACTOR: u8, const COUNT: usize>(&mut self, fragment: &[Register]) -> Option<Numbers> {
        let mut seen = Seen::nothing();
        let groups = COUNT.div_ceil(registers_of_group::<FACTOR>());
        let (pairs, _) = self.value.as_chunks_mut::<2>();
        let halves = pairs.as_chunks_mut::<4>().0.iter_mut().zip(&mut self.exponents);
        for (half, (pairs, exponents)) in halves.enumerate() {
            let fragment = [0, 1].map(|i| if i < COUNT { &fragment[half + 2 * i] } else { &[0; LANES] });
            let mut bytes = [[_mm256_setzero_si256(); 4]; GROUPS];
            for (pair, rows) in pairs.iter_mut().enumerate() {
                let registers = fragment.map(|register| pair_of_rows(register, pair));
                for group in 0..groups {
                    // The second counts for types that have it.
                    let both = [registers[group], registers[1]];
                    bytes[group][pair] = left_exponents::<FACTOR>(fields::<FACTOR>(both, &mut seen));
                }
                for (register, v) in registers.into_iter().enumerate().take(COUNT) {
                    match FACTOR {
                        F16 => {
                            for (row, v) in rows.iter_mut().zip(wide::<FACTOR>(v)) {
                                let (eights, _) = row[0].as_chunks_mut::<8>();
                                eights[register % 2] = numbers(v);
                            }
                        }
                        BF16 => {
                            // First the even elements, then the odd ones: see `Right`.
                            let [even, odd] = wide_bf16(v);
                            let both = [
                                _mm256_permute2f128_ps::<0x20>(even, odd),
                                _mm256_permute2f128_ps::<0x31>(even, odd),
                            ];
                            for (row, v) in rows.iter_mut().zip(both) {
                                let (eights, _) = row[0].as_chunks_mut::<8>();
                                eights[register % 2] = numbers(v);
                            }
                        }
                        TF32 => {
                            let both = numbers(read_tf32(v));
                            let (fours, _) = both.as_chunks::<4>();
                            for (row, four) in rows.iter_mut().zip(fours) {
                                let (row, _) = row[0].as_chunks_mut::<4>();
                                row[register % 2] = *four;
                            }
                        }
                        _ => {
                            for (part, halves) in halves_of_bytes::<FACTOR>(v).into_iter().enumerate() {
                                for (row, v) in rows.iter_mut().zip(wide::<FACTOR>(halves)) {
                                    let (eights, _) = row[register % 2].as_chunks_mut::<8>();
                                    eights[part] = numbers(v);
                                }
                            }
                        }
                    }
                }
            }
            for (exponents, bytes) in exponents.iter_mut().zip(bytes).take(groups) {
                *exponents = interleave_bytes(bytes).map(|v| words(v));
            }
        }
        seen.kind::<FACTOR>()
    }
}

impl Right {
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    pub fn zero() -> Self {
        Right {
            numbers: None,
            value: [[_mm256_setzero_ps(); 16]; GROUPS],
            exponents: [[_mm256_setzero_si256(); 16]; GROUPS],
        }
    }

    /// Reads B of `COUNT` registers. `None` where it has numbers that need the long way.
    #[inline(never)]
    #[target_feature(enable = "avx2,f16c")]
    pub fn decode<const FACTOR: u8, const COUNT: usize>(&mut self, fragment: &[Register]) -> Option<Numbers> {
        let mut seen = Seen::nothing();
        let mut registers = [[_mm256_setzero_si256(); 4]; 2];
        for (to, register) in registers.iter_mut().zip(fragment).take(COUNT) {
            for (pair, to) in to.iter_mut().enumerate() {
                *to = pair_of_rows(register, pair);
            }
        }
        for group in 0..COUNT.div_ceil(registers_of_group::<FACTOR>()) {
            let mut pairs = registers[group];
            for (pair, to) in pairs.iter_mut().enumerate() {
                let both = [registers[group][pair], registers[1][pair]];
                *to = right_exponents::<FACTOR>(fields::<FACTOR>(both, &mut seen));
            }
            let (fours, _) = self.exponents[group].as_chunks_mut::<4>();
            for (four, v) in fours.iter_mut().zip(transpose_words(pairs)) {
                *four = repeat_bytes(v);
            }
        }
        for (register, pairs) in registers.into_iter().enumerate().take(COUNT) {
            match FACTOR {
                F16 => {
                    for (i, v) in transpose_halves(pairs).into_iter().enumerate() {
                        let at = 8 * (register % 2) + 2 * i;
                        [self.value[0][at], self.value[0][at + 1]] = wide::<FACTOR>(v);
                    }
                }
                BF16 => {
                    for (i, v) in transpose_words(pairs).into_iter().enumerate() {
                        let at = 8 * (register % 2) + i;
                        [self.value[0][at], self.value[0][at + 4]] = wide_bf16(v);
                    }
                }
                TF32 => {
                    for (i, v) in transpose_words(pairs).into_iter().enumerate() {
                        self.value[0][4 * (register % 2) + i] = read_tf32(v);
                    }
                }
                _ => {
                    // Elements 0 to 7 of all columns, and 8 to 15.
                    let halves = pairs.map(|v| halves_of_bytes::<FACTOR>(v));
                    for part in 0..2 {
                        let eights = transpose_halves([0, 1, 2, 3].map(|pair| halves[pair][part]));
                        for (i, v) in eights.into_iter().enumerate() {
                            let at = 8 * part + 2 * i;
                            [self.value[register % 2][at], self.value[register % 2][at + 1]] =
                                wide::<FACTOR>(v);
                        }
                    }
                }
            }
        }
        seen.kind::<FACTOR>()
    }
}
