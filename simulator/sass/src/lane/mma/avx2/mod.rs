//! The same results as [`float_mma`](super::float_mma), [`imma`](super::imma) and [`dmma`](super::dmma) without sparsity,
//! eight columns at a time, for processors with AVX2, F16C and FMA.
//!
//! A product of two narrow factors is exact in FP32, and so is its scaling by a power of two, as long as the
//! exponents keep away from the ends of the range. Scaled so that the last kept place weighs one, cutting a
//! term off toward zero is the conversion to an integer, and the sum is an integer sum: see `step`. The largest exponent
//! is that of sums of bytes, for 32 products at a time: see `operands`. What this does not hold for (infinities, NaNs,
//! the largest numbers of BF16 and TF32, and results of which all that goes into them is tiny) is for the long way.
//! Small whole numbers have a shorter one: see `whole`.
//!
//! The functions are safe for code that has the features itself; any other caller must know the processor.

mod double;
mod integer;
mod operands;
mod slots;
mod step;
mod whole;
mod words;

use super::{Accumulator, Factor, FloatMatrix, LANES, Numerics, Pair, Register};
pub use double::dmma;
pub use integer::imma;
use operands::{BF16, E4M3, E5M2, F16, Left, Numbers, Right, TF32};
use slots::Slots;
use step::{Constants, Work, product};

/// A form of `STEPS` steps of four times `FOURS` products, with `COUNT` registers of B.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn run<
    const A: u8,
    const B: u8,
    const COUNT: usize,
    const STEPS: usize,
    const FOURS: usize,
    const HALF: bool,
>(
    numerics: &Numerics,
    [a, b]: [Fragment<'_>; 2],
    d: &mut [Register],
    scratch: &mut Scratch,
) -> bool {
    let Scratch { left, right, whole_left, whole_right, work, passes, .. } = scratch;
    if (A == F16 || A == BF16) && !HALF {
        if *passes > 0 {
            *passes -= 1;
        } else {
            let (left, right) = (whole_left.of(a.name), whole_right.of(b.name));
            if whole::product::<A, STEPS, FOURS>(numerics, [a, b], left, right, d) {
                return true;
            }
            *passes = PASSES;
        }
    }
    let (left, right) = (left.of(a.name), right.of(b.name));
    if !left.known {
        left.decoded.numbers = left.decoded.decode::<A, COUNT>(a.registers);
    }
    if !right.known {
        right.decoded.numbers = right.decoded.decode::<B, COUNT>(b.registers);
    }
    let (left, right) = (left.decoded, right.decoded);
    let (Some(in_a), Some(in_b)) = (left.numbers, right.numbers) else { return false };
    let numbers = if in_a == in_b { in_a } else { Numbers::SomeTiny };
    let constants = Constants::new(numerics, HALF);
    // Of terms below four: in places of the last kept one.
    let largest_sum = (16 * FOURS as i64 + 2) << numerics.fraction_bits.clamp(0, 32);
    if HALF || largest_sum > i64::from(i32::MAX) {
        product::<A, STEPS, FOURS, true, HALF>(&constants, left, right, numbers, work, d)
    } else {
        product::<A, STEPS, FOURS, false, HALF>(&constants, left, right, numbers, work, d)
    }
}

/// A or B of a product.
#[derive(Clone, Copy, Debug)]
pub struct Fragment<'a> {
    /// Its registers.
    pub registers: &'a [Register],
    /// What it is known by, so that it need not be decoded anew: until [`Scratch::forget`] only registers that hold the same,
    /// in products of the same form, may have the same name.
    pub name: Option<u16>,
}

impl<'a> Fragment<'a> {
    /// Registers that are read once.
    pub const fn unnamed(registers: &'a [Register]) -> Self {
        Fragment { registers, name: None }
    }
}

/// Room for decoded operands and results, to be used again and again.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Scratch {
    left: Slots<Left, 2>,
    right: Slots<Right, 4>,
    whole_left: Slots<whole::Left, 2>,
    whole_right: Slots<whole::Right, 4>,
    wholes: integer::Left,
    work: Work,
    d: [Register; 4],
    pairs: [Pair; 4],
    /// Products for which it is not tried whether they are of small whole numbers.
    passes: u8,
}

/// Where one product was not of small whole numbers the next ones hardly are.
const PASSES: u8 = 31;

impl Scratch {
    /// Room with nothing in it.
    ///
    /// # Safety
    ///
    /// Callers compiled without these features must have seen that the processor has them; nothing else can go wrong.
    #[target_feature(enable = "avx2,f16c")]
    pub fn new() -> Self {
        Scratch {
            left: Slots::new(Left::ZERO),
            right: Slots::new(Right::zero()),
            whole_left: Slots::new(whole::Left::ZERO),
            whole_right: Slots::new(whole::Right::zero()),
            wholes: [[[[0; 8]; 4]; 4]; 4],
            d: [[0; LANES]; 4],
            pairs: [[0; LANES]; 4],
            work: Work::new(),
            passes: 0,
        }
    }

    /// From here on names mean other fragments.
    #[inline]
    pub fn forget(&mut self) {
        self.left.forget();
        self.right.forget();
        self.whole_left.forget();
        self.whole_right.forget();
    }
}

/// [`float_mma`](super::float_mma) of a dense form, in place: `d` holds C before, and D after. False, with C still there,
/// where the operands or the form are for the long way.
///
/// # Safety
///
/// Callers compiled without these features must have seen that the processor has them; nothing else can go wrong.
#[target_feature(enable = "avx2,f16c")]
pub fn float_mma(
    form: FloatMatrix,
    numerics: Numerics,
    operands: [Fragment<'_>; 2],
    d: &mut [Register],
    scratch: &mut Scratch,
) -> bool {
    let Some(registers) = form.registers() else { return false };
    if form.sparse || !registers.fit([operands[0].registers, operands[1].registers, d]) {
        return false;
    }
    let half = form.accumulator == Accumulator::F16;
    // Registers of B that a step takes in: in each of a column's four lanes a register holds 16 bytes.
    let per_step = (numerics.step_bytes / 16).min(registers.b);
    macro_rules! run {
        ($a:ident, $b:ident, $count:literal, $steps:literal, $fours:literal) => {
            if half {
                run::<$a, $b, $count, $steps, $fours, true>(&numerics, operands, d, scratch)
            } else {
                run::<$a, $b, $count, $steps, $fours, false>(&numerics, operands, d, scratch)
            }
        };
    }
    macro_rules! fp8 {
        ($a:ident, $b:ident) => {
            match registers.b {
                1 => run!($a, $b, 1, 1, 4),
                _ => run!($a, $b, 2, 2, 4),
            }
        };
    }
    use Factor as X;
    match (form.factors, registers.b, per_step) {
        ([X::F16, X::F16], 1, 1) => run!(F16, F16, 1, 1, 2),
        ([X::F16, X::F16], 2, 1) => run!(F16, F16, 2, 2, 2),
        ([X::F16, X::F16], 2, 2) => run!(F16, F16, 2, 1, 4),
        ([X::Bf16, X::Bf16], 1, 1) => run::<BF16, BF16, 1, 1, 2, false>(&numerics, operands, d, scratch),
        ([X::Bf16, X::Bf16], 2, 1) => run::<BF16, BF16, 2, 2, 2, false>(&numerics, operands, d, scratch),
        ([X::Bf16, X::Bf16], 2, 2) => run::<BF16, BF16, 2, 1, 4, false>(&numerics, operands, d, scratch),
        ([X::Tf32, X::Tf32], 1, 1) => run::<TF32, TF32, 1, 1, 1, false>(&numerics, operands, d, scratch),
        ([X::Tf32, X::Tf32], 2, 1) => run::<TF32, TF32, 2, 2, 1, false>(&numerics, operands, d, scratch),
        ([X::Tf32, X::Tf32], 2, 2) => run::<TF32, TF32, 2, 1, 2, false>(&numerics, operands, d, scratch),
        ([X::E4M3, X::E4M3], _, 1) => fp8!(E4M3, E4M3),
        ([X::E4M3, X::E5M2], _, 1) => fp8!(E4M3, E5M2),
        ([X::E5M2, X::E4M3], _, 1) => fp8!(E5M2, E4M3),
        ([X::E5M2, X::E5M2], _, 1) => fp8!(E5M2, E5M2),
        _ => false,
    }
}
