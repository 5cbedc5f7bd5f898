//! The vector form of the floating-point matrix products against the plain one, whose results are those of the card.

use sass::lane::mma::avx2::{Fragment, Scratch};
use sass::lane::mma::{
    self, Accumulator, Factor, FloatMatrix, IntegerMatrix, LANES, Numerics, Pair, Register,
};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, count: u64) -> u64 {
        self.next() % count
    }
}

/// How the numbers of a fragment are drawn.
struct Style {
    /// Exponents are this, and up to `spread` more or less.
    exponent: i64,
    spread: i64,
    /// In 16, how many are zero; in 256, how many have any bits.
    zeros: u64,
    wild: u64,
    /// Fractions of few bits, or of all.
    few: bool,
    /// Unless zero: whole numbers of up to so many bits, in units of two to the exponent.
    whole: u32,
}

/// A number of so many exponent and fraction bits.
fn number(random: &mut Random, style: &Style, exponent_bits: u32, fraction_bits: u32) -> u64 {
    let bits = random.next();
    let all = u64::MAX >> (63 - exponent_bits - fraction_bits);
    if random.below(256) < style.wild {
        return bits & all;
    }
    let sign = (bits & 1) << (exponent_bits + fraction_bits);
    if random.below(16) < style.zeros {
        return sign;
    }
    let bias = (1 << (exponent_bits - 1)) - 1;
    let fractions = (1u64 << fraction_bits) - 1;
    if style.whole != 0 {
        let whole = (bits >> 8 & ((1 << (bits >> 40 & 31)) - 1)) & ((1 << style.whole) - 1);
        let Some(top) = whole.checked_ilog2() else { return sign };
        let field = (bias + style.exponent + i64::from(top)).clamp(0, (1 << exponent_bits) - 2) as u64;
        return sign | field << fraction_bits | (whole << fraction_bits >> top) & fractions;
    }
    let field = bias + style.exponent + random.below(2 * style.spread as u64 + 1) as i64 - style.spread;
    let field = field.clamp(0, (1 << exponent_bits) - 2) as u64;
    let fraction = bits >> 8 & fractions;
    let fraction = if style.few { fraction & fraction >> 1 & fraction << 1 } else { fraction };
    sign | field << fraction_bits | fraction & fractions
}

fn fragment(random: &mut Random, style: &Style, factor: Factor, registers: usize) -> Vec<Register> {
    let (exponent_bits, fraction_bits) = match factor {
        Factor::F16 => (5, 10),
        Factor::Bf16 => (8, 7),
        Factor::Tf32 => (8, 23),
        Factor::E4M3 => (4, 3),
        Factor::E5M2 => (5, 2),
    };
    let per = factor.per_register();
    let mut element = || number(random, style, exponent_bits, fraction_bits);
    let mut word = || (0..per).fold(0u64, |word, i| word | element() << (32 / per * i)) as u32;
    (0..registers).map(|_| std::array::from_fn(|_| word())).collect()
}

/// What was found by the vector form, where there is something, is what was found by the plain one.
fn assert_same<T: PartialEq + std::fmt::Debug>(quick: Option<&[T; 4]>, plain: Option<&[T; 4]>, count: usize) {
    if let Some(quick) = quick {
        assert_eq!(Some(&quick[..count]), plain.map(|plain| &plain[..count]));
    }
}

fn scratch() -> Option<Scratch> {
    // SAFETY: the processor has the features.
    has_features().then(|| unsafe { Scratch::new() })
}

/// D where the vector form finds it; otherwise C is still there.
///
/// # Safety
/// The processor has the features.
unsafe fn quick_float(
    form: FloatMatrix,
    numerics: Numerics,
    [a, b, c]: [&[Register]; 3],
    scratch: &mut Scratch,
) -> Option<[Register; 4]> {
    let mut d = [[0; LANES]; 4];
    d[..c.len()].copy_from_slice(c);
    let operands = [a, b].map(Fragment::unnamed);
    // SAFETY: the caller's promise.
    let done = unsafe { mma::avx2::float_mma(form, numerics, operands, &mut d[..c.len()], scratch) };
    assert!(done || d[..c.len()] == *c);
    done.then_some(d)
}

pub(super) fn compare_float(
    form: FloatMatrix,
    numerics: Numerics,
    operands: [&[Register]; 3],
    plain: Option<&[Register; 4]>,
) {
    if let Some(mut scratch) = scratch() {
        // SAFETY: the processor has the features.
        let quick = unsafe { quick_float(form, numerics, operands, &mut scratch) };
        assert_same(quick.as_ref(), plain, operands[2].len());
    }
}

pub(super) fn compare_integer(
    form: IntegerMatrix,
    operands: [&[Register]; 3],
    plain: Option<&[Register; 4]>,
) {
    if let Some(mut scratch) = scratch() {
        // SAFETY: the processor has the features.
        let quick = unsafe { mma::avx2::imma(form, operands, &mut scratch) };
        assert_eq!(quick.is_some(), !form.sparse);
        assert_same(quick, plain, operands[2].len());
    }
}

pub(super) fn compare_double(rows: usize, k: usize, operands: [&[Pair]; 3], plain: Option<&[Pair; 4]>) {
    if let Some(mut scratch) = scratch() {
        // SAFETY: the processor has the features.
        let quick = unsafe { mma::avx2::dmma(rows, k, operands, &mut scratch) };
        assert_same(quick, plain, operands[2].len());
    }
}

fn has_features() -> bool {
    use std::is_x86_feature_detected as has;
    has!("avx2") && has!("f16c") && has!("fma")
}

/// Compares so many tiles; how many went the fast way.
fn compare(form: FloatMatrix, numerics: Numerics, tiles: u64) -> u64 {
    let registers = form.registers().expect("a form");
    let mut random = Random(tiles ^ (form.k as u64) << 32 ^ (form.factors[0] as u64) << 48);
    // SAFETY: as below.
    let mut scratch = unsafe { Scratch::new() };
    let mut taken = 0;
    for tile in 0..tiles {
        let mut style = |reach: i64| Style {
            exponent: random.below(2 * reach as u64 + 1) as i64 - reach,
            spread: [0, 1, 3, 6, 12, 30][random.below(6) as usize],
            zeros: [0, 0, 1, 8, 14, 15][random.below(6) as usize],
            wild: [0, 0, 0, 0, 1, 64][random.below(6) as usize],
            few: random.below(3) == 0,
            whole: 0,
        };
        let (mut left, mut right, mut addend) = (style(8), style(8), style(24));
        if tile % 8 == 0 {
            addend.exponent *= 5;
        }
        if tile % 4 == 3 {
            // Tiny factors of types that have such, alone and among others.
            left.exponent -= random.below(100) as i64;
            right.exponent -= random.below(30) as i64;
            left.spread = [0, 10, 60, 100][random.below(4) as usize];
        }
        if tile % 4 == 2 {
            // Nothing is cut off, or just about.
            left.whole = 1 + random.below(13) as u32;
            right.whole = 1 + random.below(13) as u32;
            addend.whole = 1 + random.below(27) as u32;
            let step = random.below(3) as i64 - 1;
            addend.exponent = left.exponent + right.exponent + if tile % 8 == 2 { step } else { 0 };
        }
        let a = fragment(&mut random, &left, form.factors[0], registers.a);
        let b = fragment(&mut random, &right, form.factors[1], registers.b);
        let half = form.accumulator == Accumulator::F16;
        let kind = if half { Factor::F16 } else { Factor::Tf32 };
        let mut c = fragment(&mut random, &addend, kind, registers.c);
        if tile % 4 == 1 {
            // Cancels the product but for a few bits.
            let zero = vec![[0; LANES]; registers.c];
            let d = mma::float_mma(form, numerics, &a, &b, &zero, None).expect("a form");
            for (c, d) in c.iter_mut().zip(d) {
                let sign = if half { 0x8000_8000 } else { 0x8000_0000 };
                *c = d.map(|d| d ^ sign ^ (random.next() & random.next() & random.next() & 0x7) as u32);
            }
        }
        if tile % 2 == 0 {
            // Has not yet learned that small whole numbers are not to be expected.
            // SAFETY: as below.
            scratch = unsafe { Scratch::new() };
        }
        // SAFETY: the caller asked for the processor's features.
        let fast = unsafe { quick_float(form, numerics, [&a, &b, &c], &mut scratch) };
        if let Some(fast) = fast {
            taken += 1;
            let slow = mma::float_mma(form, numerics, &a, &b, &c, None).expect("a form");
            let count = registers.c;
            assert_eq!(fast[..count], slow[..count], "{form:?} {numerics:?} tile {tile}");
        }
    }
    taken
}

#[test]
fn the_vector_form_gives_the_same_bits() {
    if !has_features() {
        eprintln!("skipped: this processor lacks AVX2, F16C or FMA");
        return;
    }
    const FP8: [Factor; 2] = [Factor::E4M3, Factor::E5M2];
    let accumulators = [Accumulator::F32, Accumulator::F16];
    let mut forms = Vec::new();
    for numerics in [Numerics::AMPERE, Numerics::HOPPER] {
        for factor in [Factor::F16, Factor::Bf16, Factor::Tf32] {
            for k in [4, 8, 16] {
                forms.extend(accumulators.map(|accumulator| (numerics, [factor; 2], accumulator, k)));
            }
        }
    }
    for a in FP8 {
        for b in FP8 {
            for k in [16, 32] {
                forms.extend(accumulators.map(|accumulator| (Numerics::ADA_QMMA, [a, b], accumulator, k)));
            }
        }
    }
    let mut compared = 0;
    for (numerics, factors, accumulator, k) in forms {
        let form = FloatMatrix { factors, accumulator, k, sparse: false };
        if form.registers().is_none() {
            continue;
        }
        compared += 1;
        let tiles = if cfg!(debug_assertions) { 400 } else { 20_000 };
        let taken = compare(form, numerics, tiles);
        assert!(taken > tiles / 4, "{form:?}: {taken} of {tiles}");
    }
    assert_eq!(compared, 2 * (4 + 2 + 2) + 16);
}

#[test]
fn fp64_of_ordinary_numbers_goes_the_fast_way_and_gives_the_same_bits() {
    let Some(mut scratch) = scratch() else {
        eprintln!("skipped: this processor lacks AVX2, F16C or FMA");
        return;
    };
    let mut random = Random(64);
    let style = Style { exponent: 0, spread: 12, zeros: 1, wild: 0, few: false, whole: 0 };
    let mut pairs = |count: usize| -> Vec<Pair> {
        (0..count).map(|_| std::array::from_fn(|_| number(&mut random, &style, 11, 52))).collect()
    };
    for (rows, k) in [(8, 4), (16, 4), (16, 8), (16, 16)].into_iter().cycle().take(400) {
        let (a, b, mut c) = (pairs(rows * k / 32), pairs(k / 4), pairs(rows / 4));
        if rows == 8 {
            // NaNs are for the plain way.
            c[0][3] = f64::INFINITY.to_bits() | 1;
        }
        let plain = mma::dmma(rows, k, sass::lane::Rounding::Nearest, &a, &b, &c).expect("a form");
        // SAFETY: there is room, so the processor has the features.
        let quick = unsafe { mma::avx2::dmma(rows, k, [&a, &b, &c], &mut scratch) };
        assert_eq!(quick.is_none(), rows == 8);
        assert_same(quick, Some(&plain), rows / 4);
    }
}

#[test]
fn tiny_factors_among_others_go_the_fast_way() {
    let Some(mut scratch) = scratch() else {
        eprintln!("skipped: this processor lacks AVX2, F16C or FMA");
        return;
    };
    let form =
        FloatMatrix { factors: [Factor::Bf16; 2], accumulator: Accumulator::F32, k: 16, sparse: false };
    let (mut a, b) = ([[0x3fc0_3f80; LANES]; 4], [[0x3f81_3f80; LANES]; 2]);
    // 2^-100 in every row, beside 1 and 1.5; then nothing else in the first.
    a[0] = [0x0d80_3f80; LANES];
    let mut compare = |a: &[Register; 4], fast| {
        let plain = mma::float_mma(form, Numerics::HOPPER, a, &b, &[[0; LANES]; 4], None).expect("a form");
        // SAFETY: there is room, so the processor has the features.
        let quick = unsafe { quick_float(form, Numerics::HOPPER, [a, &b, &[[0; LANES]; 4]], &mut scratch) };
        assert_eq!(quick.is_some(), fast);
        assert_same(quick.as_ref(), Some(&plain), 4);
    };
    compare(&a, true);
    a[0][..4].fill(0x0d80);
    a[2][..4].fill(0x0d80);
    compare(&a, false);
}

#[test]
fn named_fragments_are_decoded_once_and_forgotten() {
    let Some(mut scratch) = scratch() else {
        eprintln!("skipped: this processor lacks AVX2, F16C or FMA");
        return;
    };
    let mut random = Random(7);
    for tile in 0..200 {
        let factor = [Factor::F16, Factor::Bf16][tile % 2];
        let form = FloatMatrix { factors: [factor; 2], accumulator: Accumulator::F32, k: 16, sparse: false };
        // Every third round is of small whole numbers, which have a decoding of their own.
        let whole = if tile % 3 == 0 { 4 } else { 0 };
        let style = Style { exponent: 0, spread: 3, zeros: 1, wild: 0, few: false, whole };
        let a: [_; 3] = std::array::from_fn(|_| fragment(&mut random, &style, factor, 4));
        let b: [_; 5] = std::array::from_fn(|_| fragment(&mut random, &style, factor, 2));
        // More than there is room for.
        for _ in 0..40 {
            let (i, j) = (random.below(3) as usize, random.below(5) as usize);
            let mut d = [[0; LANES]; 4];
            let plain = mma::float_mma(form, Numerics::AMPERE, &a[i], &b[j], &d, None).expect("a form");
            let operands = [
                Fragment { registers: &a[i], name: Some(i as u16) },
                Fragment { registers: &b[j], name: Some(j as u16) },
            ];
            // SAFETY: there is room, so the processor has the features.
            assert!(unsafe { mma::avx2::float_mma(form, Numerics::AMPERE, operands, &mut d, &mut scratch) });
            assert_eq!(d, plain, "tile {tile}");
        }
        scratch.forget();
    }
}
