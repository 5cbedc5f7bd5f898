//! Tensor cores: HMMA, IMMA and DMMA, dense forms, one warp at a time.
//!
//! The Hopper rules were measured on an H200 without a differing bit; the Ampere and Ada constants
//! are published ones (MMA-Sim, arXiv 2511.10909; Khattak and Mikaitis, arXiv 2512.07004), checked
//! against results recorded on A100, A2, L40S and RTX 1000 Ada for single steps. The order of the two
//! steps there, and their special values, were not measured.
//!
//! Fragments are arrays of registers: `fragment[register][lane]`.

use super::{IntegerType, Rounding, Sign, Width, double};

/// Lanes of a warp.
pub const LANES: usize = 32;

/// One register of every lane.
pub type Register = [u32; LANES];

/// Type of the factors of HMMA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Factor {
    /// FP16.
    F16,
    /// BF16.
    Bf16,
    /// TF32: the low 13 bits of a register are not read.
    Tf32,
}

impl Factor {
    /// Elements in a register.
    const fn per_register(self) -> usize {
        match self {
            Factor::F16 | Factor::Bf16 => 2,
            Factor::Tf32 => 1,
        }
    }

    /// Exponent and fraction bits.
    const fn fields(self) -> (u32, u32) {
        match self {
            Factor::F16 => (5, 10),
            Factor::Bf16 => (8, 7),
            Factor::Tf32 => (8, 10),
        }
    }
}

/// Type of the addend and result of HMMA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Accumulator {
    /// `.F16`: two elements in a register, rounded to nearest even.
    F16,
    /// `.F32`: cut off toward zero.
    F32,
}

/// What differs between generations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Generation {
    /// Fraction bits kept below the largest exponent.
    pub fraction_bits: i32,
    /// Bytes of a row of A that one fused step takes in.
    pub step_bytes: usize,
    /// The largest exponent never counts as less than the accumulator's smallest normal exponent
    /// minus this.
    pub floor_below: i32,
}

impl Generation {
    /// sm_80, sm_86, sm_89 (published).
    pub const AMPERE: Generation = Generation { fraction_bits: 24, step_bytes: 16, floor_below: 6 };
    /// sm_90 (measured on H200).
    pub const HOPPER: Generation = Generation { fraction_bits: 25, step_bytes: 32, floor_below: 7 };
}

/// A factor or addend: `significand * 2^(exponent - fraction bits)`, not normalised.
#[derive(Debug, Clone, Copy)]
struct Term {
    negative: bool,
    exponent: i32,
    significand: u32,
    special: bool,
}

impl Term {
    #[inline(always)]
    const fn unpack(bits: u32, (exponent_bits, fraction_bits): (u32, u32)) -> Term {
        let fraction = bits & ((1 << fraction_bits) - 1);
        let all = (1 << exponent_bits) - 1;
        let field = bits >> fraction_bits & all;
        let significand = if field == 0 { fraction } else { fraction | 1 << fraction_bits };
        let exponent = if field == 0 { 1 } else { field as i32 };
        Term {
            negative: bits >> (exponent_bits + fraction_bits) & 1 != 0,
            exponent: exponent - (all >> 1) as i32,
            significand,
            special: field == all,
        }
    }

    /// A NaN (an infinity has no fraction).
    #[inline(always)]
    const fn is_nan(self, fraction_bits: u32) -> bool {
        self.special && self.significand != 1 << fraction_bits
    }
}

/// Cuts `significand` off below the last kept place, toward zero.
#[inline(always)]
const fn align(significand: u32, shift: i32) -> i64 {
    if shift >= 0 {
        // A product has at most 22 bits and is shifted by at most the kept bits.
        (significand as i64) << shift
    } else if shift > -32 {
        (significand >> -shift) as i64
    } else {
        0
    }
}

/// Longest fused step: sixteen products.
const STEP: usize = 16;

/// One fused step: the addend plus the sum of the products. Terms are cut off below the largest
/// exponent's last kept place, added exactly, and rounded once. A zero result is +0.
fn fused_step(
    factor: Factor,
    accumulator: Accumulator,
    generation: Generation,
    a: &[u32],
    b: &[u32],
    c: u32,
) -> u32 {
    let fields = factor.fields();
    let (result_fields, smallest) = match accumulator {
        Accumulator::F16 => ((5, 10), -14),
        Accumulator::F32 => ((8, 23), -126),
    };
    let addend = Term::unpack(c, result_fields);
    let mut nan = addend.is_nan(result_fields.1);
    let mut infinity = [addend.special && !addend.negative, addend.special && addend.negative];
    let mut largest = smallest - generation.floor_below;
    if addend.significand != 0 {
        largest = largest.max(addend.exponent);
    }
    let mut products = [(0u32, 0i32, false); STEP];
    for ((&a, &b), product) in a.iter().zip(b).zip(&mut products) {
        let (x, y) = (Term::unpack(a, fields), Term::unpack(b, fields));
        let negative = x.negative != y.negative;
        if x.special || y.special {
            nan |= x.is_nan(fields.1) || y.is_nan(fields.1) || x.significand == 0 || y.significand == 0;
            infinity[usize::from(negative)] = true;
        }
        let significand = x.significand * y.significand;
        let exponent = x.exponent + y.exponent;
        if significand != 0 {
            largest = largest.max(exponent);
        }
        *product = (significand, exponent, negative);
    }
    nan |= infinity[0] && infinity[1];
    match accumulator {
        Accumulator::F32 if nan => return 0x7fff_ffff,
        Accumulator::F16 if nan => return 0x7fff,
        Accumulator::F32 if infinity[0] => return 0x7f80_0000,
        Accumulator::F32 if infinity[1] => return 0xff80_0000,
        Accumulator::F16 if infinity[0] => return 0x7c00,
        Accumulator::F16 if infinity[1] => return 0xfc00,
        _ => {}
    }
    let kept = generation.fraction_bits;
    let signed = |value: i64, negative: bool| if negative { -value } else { value };
    let shift = kept - result_fields.1 as i32 - (largest - addend.exponent);
    let mut sum = signed(align(addend.significand, shift), addend.negative);
    for (significand, exponent, negative) in products {
        if significand != 0 {
            let shift = kept - 2 * fields.1 as i32 - (largest - exponent);
            sum += signed(align(significand, shift), negative);
        }
    }
    pack(sum, largest - kept, accumulator, smallest)
}

/// Rounds `sum * 2^exponent` to the accumulator's format.
fn pack(sum: i64, exponent: i32, accumulator: Accumulator, smallest: i32) -> u32 {
    let magnitude = sum.unsigned_abs();
    if magnitude == 0 {
        return 0;
    }
    let (fraction_bits, sign, infinity) = match accumulator {
        Accumulator::F16 => (10, 0x8000, 0x7c00),
        Accumulator::F32 => (23, 0x8000_0000, 0x7f80_0000),
    };
    let sign = if sum < 0 { sign } else { 0 };
    let leading = exponent + 63 - magnitude.leading_zeros() as i32;
    let place = leading.max(smallest);
    // The sum is below 2^32 places, so a drop of 63 leaves nothing, not even a tie.
    let drop = (place - fraction_bits - exponent).min(63);
    let mut result = if drop <= 0 { magnitude << -drop } else { magnitude >> drop };
    if drop > 0 && accumulator == Accumulator::F16 {
        let lost = magnitude << (64 - drop);
        const TIE: u64 = 1 << 63;
        result += u64::from(lost > TIE || lost == TIE && result & 1 != 0);
    }
    if result == 0 {
        return 0;
    }
    let bits = (((place - smallest) as u64) << fraction_bits) + result;
    if bits >= u64::from(infinity) { sign | infinity } else { sign | bits as u32 }
}

/// Element of A at `row`, `column`, with `per` elements a register.
#[inline(always)]
const fn place_a(row: usize, column: usize, per: usize) -> (usize, usize, usize) {
    let register = column / (4 * per) * 2 + row / 8;
    (register, row % 8 * 4 + column / per % 4, column % per)
}

/// Element of B at row `k`, column `n`.
#[inline(always)]
const fn place_b(k: usize, n: usize, per: usize) -> (usize, usize, usize) {
    (k / (4 * per), n * 4 + k / per % 4, k % per)
}

/// HMMA with 16 rows and 8 columns: `.1684` and `.1688` for TF32, `.1688` and `.16816` for FP16 and
/// BF16. `k` is the last number (4, 8 or 16); other values and short fragments give `None`.
///
/// A has `k / 8` times two registers (TF32 twice that), B half as many, C and D four (F16: two).
pub fn hmma(
    factor: Factor,
    accumulator: Accumulator,
    k: usize,
    generation: Generation,
    a: &[Register],
    b: &[Register],
    c: &[Register],
) -> Option<[Register; 4]> {
    let per = factor.per_register();
    let columns = 4 * per;
    let results = if accumulator == Accumulator::F16 { 2 } else { 4 };
    let legal = k > 0 && k.is_multiple_of(columns) && k <= 2 * columns;
    let registers = k / columns;
    if !legal || a.len() != 2 * registers || b.len() != registers || c.len() != results {
        return None;
    }
    let bits = 32 / per;
    let element = |register: &Register, lane: usize, index: usize| match factor {
        Factor::Tf32 => register[lane] >> 13,
        _ => register[lane] >> (bits * index) & 0xffff,
    };
    let step = (generation.step_bytes * 8 / bits).min(k);
    let mut d = [[0; LANES]; 4];
    for row in 0..16 {
        for column in 0..8 {
            let lane = row % 8 * 4 + column / 2;
            let (register, shift) = match accumulator {
                Accumulator::F16 => (row / 8, column % 2 * 16),
                Accumulator::F32 => (row / 8 * 2 + column % 2, 0),
            };
            let mut sum = c[register][lane] >> shift;
            if accumulator == Accumulator::F16 {
                sum &= 0xffff;
            }
            for first in (0..k).step_by(step) {
                let (mut x, mut y) = ([0; STEP], [0; STEP]);
                for i in 0..step {
                    let (register, lane, index) = place_a(row, first + i, per);
                    x[i] = element(&a[register], lane, index);
                    let (register, lane, index) = place_b(first + i, column, per);
                    y[i] = element(&b[register], lane, index);
                }
                sum = fused_step(factor, accumulator, generation, &x[..step], &y[..step], sum);
            }
            d[register][lane] |= sum << shift;
        }
    }
    Some(d)
}

/// IMMA on bytes with 16 rows (`.16816`, `.16832`) and 8 columns: exact, wrapping to 32 bits or with
/// `saturate` (`.SAT`) clamped once at the end. `k` is 16 or 32; else `None`.
pub fn imma_bytes(
    k: usize,
    sign_a: Sign,
    sign_b: Sign,
    saturate: bool,
    a: &[Register],
    b: &[Register],
    c: &[Register; 4],
) -> Option<[Register; 4]> {
    if !matches!(k, 16 | 32) || a.len() != k / 8 || b.len() != k / 16 {
        return None;
    }
    let number = |register: &Register, lane: usize, index: usize, sign| {
        let bits = u64::from(register[lane] >> (8 * index));
        IntegerType { width: Width::B8, sign }.value(bits) as i64
    };
    let mut d = [[0; LANES]; 4];
    for row in 0..16 {
        for column in 0..8 {
            let (register, lane) = (row / 8 * 2 + column % 2, row % 8 * 4 + column / 2);
            let mut sum = i64::from(c[register][lane] as i32);
            for i in 0..k {
                let (ra, la, ia) = place_a(row, i, 4);
                let (rb, lb, ib) = place_b(i, column, 4);
                sum += number(&a[ra], la, ia, sign_a) * number(&b[rb], lb, ib, sign_b);
            }
            let sum = if saturate { sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) } else { sum };
            d[register][lane] = sum as u32;
        }
    }
    Some(d)
}

/// DMMA.884: 8 rows, 8 columns, 4 products: fused multiply-adds in order of k, each rounded.
///
/// A and B are one 64-bit pair a lane, C and D two.
pub fn dmma_884(
    rounding: Rounding,
    a: &[u64; LANES],
    b: &[u64; LANES],
    c: &[[u64; LANES]; 2],
) -> [[u64; LANES]; 2] {
    let mut d = *c;
    for row in 0..8 {
        for column in 0..8 {
            let value = &mut d[column % 2][row * 4 + column / 2];
            for k in 0..4 {
                *value = double::dfma(a[row * 4 + k], b[column * 4 + k], *value, rounding);
            }
        }
    }
    d
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of a line, register by register.
    fn fragment(line: &str) -> Vec<Register> {
        let words: Vec<u32> = line
            .split_whitespace()
            .map(|word| u32::from_str_radix(word, 16).expect("a hexadecimal number"))
            .collect();
        let count = words.len() / LANES;
        (0..count).map(|r| std::array::from_fn(|lane| words[lane * count + r])).collect()
    }

    /// The same for 64-bit words.
    fn pairs(line: &str) -> Vec<[u64; LANES]> {
        let words: Vec<u64> = line
            .split_whitespace()
            .map(|word| u64::from_str_radix(word, 16).expect("a hexadecimal number"))
            .collect();
        let count = words.len() / LANES;
        (0..count).map(|r| std::array::from_fn(|lane| words[lane * count + r])).collect()
    }

    fn results(form: &[&str], lines: [&str; 4], generation: Generation) -> (Vec<Register>, Vec<Register>) {
        let [a, b, c, d] = lines;
        let k = form[2].parse().expect("a number");
        let sign = |name: &str| if name == "s8" { Sign::Signed } else { Sign::Unsigned };
        if form[3] == "f64" {
            let rounding = Rounding::from_code([0, 3, 1, 2][form[7].parse::<usize>().expect("a mode")]);
            let (a, b, c) = (pairs(a), pairs(b), pairs(c));
            let result = dmma_884(rounding, &a[0], &b[0], &[c[0], c[1]]);
            let split = |d: &[[u64; LANES]]| {
                d.iter().flat_map(|d| [d.map(|x| x as u32), d.map(|x| (x >> 32) as u32)]).collect()
            };
            return (split(&result), split(&pairs(d)));
        }
        let (a, b, c, d) = (fragment(a), fragment(b), fragment(c), fragment(d));
        let result = if form[5] == "s32" {
            let c: &[Register; 4] = c.as_slice().try_into().expect("four registers");
            imma_bytes(k, sign(form[3]), sign(form[4]), form[6] == "1", &a, &b, c)
        } else {
            let factor = match form[3] {
                "f16" => Factor::F16,
                "bf16" => Factor::Bf16,
                _ => Factor::Tf32,
            };
            let accumulator = if form[5] == "f16" { Accumulator::F16 } else { Accumulator::F32 };
            hmma(factor, accumulator, k, generation, &a, &b, &c)
        };
        (result.expect("a legal form")[..d.len()].to_vec(), d)
    }

    /// Tiles and how many of them differ, over the forms that `wanted` picks.
    fn replay(generation: Generation, wanted: impl Fn(&str) -> bool) -> (usize, usize) {
        let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/mma/h200.txt"));
        let (mut tiles, mut differing) = (0, 0);
        let mut form = Vec::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if line.starts_with("form ") {
                form = line.split_whitespace().collect();
            } else if line.starts_with("tile ") {
                let tile = [(); 4].map(|()| lines.next().map_or("", |line| &line[2..]));
                if wanted(form[3]) {
                    let (result, expected) = results(&form, tile, generation);
                    tiles += 1;
                    differing += usize::from(result != expected);
                }
            }
        }
        (tiles, differing)
    }

    #[test]
    fn results_are_those_of_the_card() {
        let (tiles, differing) = replay(Generation::HOPPER, |_| true);
        assert_eq!(differing, 0, "of {tiles}");
        assert!(tiles >= 300, "{tiles}");
    }

    #[test]
    fn ampere_cuts_off_elsewhere() {
        // The card's tiles tell the generations apart, so the test above can fail.
        let (_, differing) = replay(Generation::AMPERE, |factor| factor == "f16" || factor == "bf16");
        assert!(differing > 0);
    }

    #[test]
    fn ampere_adds_eight_products_at_a_time() {
        let mut a = [[0; LANES]; 4];
        let mut b = [[0; LANES]; 2];
        let c = [[0; LANES]; 4];
        // Row 0, column 0; k 0 and 1 in the first register, k 8 in the second.
        a[0][0] = 0x3c00 << 16 | 0x7800; // k 1: 1, k 0: 2^15
        b[0][0] = 0x1400 << 16 | 0x6400; // k 1: 2^-10, k 0: 2^10
        a[2][0] = 0xf800;
        b[1][0] = 0x6400;
        let run = |b: &[Register], generation| {
            hmma(Factor::F16, Accumulator::F32, 16, generation, &a, b, &c).expect("legal")[0][0]
        };
        // 2^25 + 2^-10 - 2^25: 35 places apart, lost in either.
        assert_eq!([run(&b, Generation::HOPPER), run(&b, Generation::AMPERE)], [0, 0]);
        // 2^25 + 1 - 2^25: Hopper keeps 25 bits below 2^25 in one step, Ampere's first result keeps 23.
        b[0][0] = 0x3c00 << 16 | 0x6400;
        assert_eq!(run(&b, Generation::HOPPER), 1f32.to_bits());
        assert_eq!(run(&b, Generation::AMPERE), 0);
    }

    #[test]
    fn short_fragments_are_refused() {
        let a = [[0; LANES]; 2];
        let none = hmma(Factor::F16, Accumulator::F32, 16, Generation::HOPPER, &a, &a, &a);
        assert!(none.is_none());
    }
}
