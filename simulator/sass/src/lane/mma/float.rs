//! HMMA and QMMA: matrices of floating-point numbers.

use super::fused::{self, STEP, Term};
use super::{Accumulator, Factor, Numerics, Register, Sparsity, layout};

/// Most dense columns of A (QMMA.SP.16864), and most stored ones.
const DENSE: usize = 64;
const STORED: usize = 32;

/// Types and shape of a floating-point matrix instruction with 16 rows and 8 columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FloatMatrix {
    /// Types of A and B. They differ in QMMA only.
    pub factors: [Factor; 2],
    /// Type of C and D.
    pub accumulator: Accumulator,
    /// Number of dense columns of A: the last number of the shape.
    pub k: usize,
    /// A holds half of its columns, with metadata (`.SP`).
    pub sparse: bool,
}

/// Registers of each operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registers {
    /// Of A.
    pub a: usize,
    /// Of B.
    pub b: usize,
    /// Of C and D.
    pub c: usize,
}

impl Registers {
    /// Whether fragments of A, B and C have as many.
    #[inline(always)]
    pub const fn fit(self, [a, b, c]: [&[Register]; 3]) -> bool {
        a.len() == self.a && b.len() == self.b && c.len() == self.c
    }
}

impl FloatMatrix {
    /// Registers of the operands, or `None` where the hardware has no such form.
    ///
    /// Dense: `k` of 4 or 8 (TF32), 8 or 16 (16 bits), 16 or 32 (FP8). Sparse: twice that for the forms
    /// that exist (TF32 8 and 16, 16 bits 16 and 32, FP8 64).
    #[inline]
    pub const fn registers(self) -> Option<Registers> {
        let per = self.factors[0].per_register();
        if self.factors[1].per_register() != per || self.factors[0].is_fp8() != self.factors[1].is_fp8() {
            return None;
        }
        let unit = 4 * per;
        let (small, large) = if self.sparse { (2 * unit, 4 * unit) } else { (unit, 2 * unit) };
        let exists = self.k == large || self.k == small && !(self.sparse && per == 4);
        let wide = !matches!(self.factors[0], Factor::F16) && !self.factors[0].is_fp8();
        if !exists || wide && matches!(self.accumulator, Accumulator::F16) {
            return None;
        }
        let stored = if self.sparse { self.k / 2 } else { self.k };
        let c = if matches!(self.accumulator, Accumulator::F16) { 2 } else { 4 };
        Some(Registers { a: stored / unit * 2, b: self.k / unit, c })
    }
}

/// HMMA and QMMA, dense and sparse: `D = A * B + C`. `None` where the form does not exist or a fragment
/// has not the number of registers that [`FloatMatrix::registers`] says.
///
/// `sparsity` counts where the form is sparse, and must be there then.
pub fn float_mma(
    form: FloatMatrix,
    numerics: Numerics,
    a: &[Register],
    b: &[Register],
    c: &[Register],
    sparsity: Option<Sparsity<'_>>,
) -> Option<[Register; 4]> {
    let registers = form.registers()?;
    if !registers.fit([a, b, c]) {
        return None;
    }
    let sparsity = if form.sparse { Some(sparsity?) } else { None };
    let per = form.factors[0].per_register();
    let bits = 32 / per;
    let stored = if form.sparse { form.k / 2 } else { form.k };
    let element = |register: &Register, lane: usize, index: usize| match per {
        1 => register[lane],
        _ => register[lane] >> (bits * index) & ((1 << bits) - 1),
    };
    let mut raw_b = [[0; 8]; DENSE];
    let mut dense_b = [[Term::default(); DENSE]; 8];
    for k in 0..form.k {
        for n in 0..8 {
            let (register, lane, index) = layout::of_b(k, n, per);
            raw_b[k][n] = element(&b[register], lane, index);
            dense_b[n][k] = Term::factor(raw_b[k][n], form.factors[1]);
        }
    }
    let step = (numerics.step_bytes * per / 4).min(stored).min(STEP);
    let mut d = [[0; 32]; 4];
    for row in 0..16 {
        let mut row_a = [Term::default(); STORED];
        for (column, term) in row_a.iter_mut().enumerate().take(stored) {
            let (register, lane, index) = layout::of_a(16, row, column, per);
            *term = Term::factor(element(&a[register], lane, index), form.factors[0]);
        }
        for n in 0..8 {
            let mut column_b = [Term::default(); STORED];
            let column_b = match sparsity {
                None => &dense_b[n][..stored],
                Some(sparsity) => {
                    for (column, term) in column_b.iter_mut().enumerate().take(stored) {
                        *term = if form.factors[1] == Factor::Tf32 {
                            let pair = [raw_b[2 * column][n], raw_b[2 * column + 1][n]];
                            Term::factor(sparsity.assemble_tf32(form.k, row, column, pair), Factor::Tf32)
                        } else {
                            dense_b[n][sparsity.dense_row(bits, form.k, row, column)]
                        };
                    }
                    &column_b[..stored]
                }
            };
            let (register, lane, shift) = match form.accumulator {
                Accumulator::F32 => {
                    let (register, lane) = layout::of_c(row, n);
                    (register, lane, 0)
                }
                Accumulator::F16 => {
                    let (register, lane, index) = layout::of_c16(row, n);
                    (register, lane, 16 * index)
                }
            };
            let mut sum = c[register][lane] >> shift;
            if form.accumulator == Accumulator::F16 {
                sum &= 0xffff;
            }
            for (x, y) in row_a[..stored].chunks(step).zip(column_b.chunks(step)) {
                sum = fused::step(form.factors, form.accumulator, numerics, x, y, sum);
            }
            d[register][lane] |= sum << shift;
        }
    }
    Some(d)
}
