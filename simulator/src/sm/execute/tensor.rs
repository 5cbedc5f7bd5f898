//! Tensor cores and matrix moves.

use sass::lane::mma::{self, Accumulator, Factor, Generation};

use super::super::fault::FaultKind;
use super::super::lanes::LANES;
use super::super::micro::Flow;
use super::handlers;

const FACTORS: [Factor; 3] = [Factor::F16, Factor::Bf16, Factor::Tf32];

/// What an HMMA multiplies.
#[derive(Clone, Copy, Debug)]
pub(in crate::sm) struct Shape {
    pub factor: Factor,
    pub accumulator: Accumulator,
    /// Columns of A: 4, 8 or 16.
    pub k: u8,
    pub hopper: bool,
}

impl Shape {
    /// Registers of B; A has twice as many.
    pub fn registers(self) -> u16 {
        u16::from(self.k) / if self.factor == Factor::Tf32 { 4 } else { 8 }
    }

    /// Registers of C and D.
    pub fn results(self) -> u16 {
        if self.accumulator == Accumulator::F16 { 2 } else { 4 }
    }

    /// As a payload.
    pub fn code(self) -> u64 {
        let factor = FACTORS.iter().position(|known| *known == self.factor).unwrap_or(0) as u64;
        factor
            | u64::from(self.accumulator == Accumulator::F16) << 2
            | u64::from(self.hopper) << 3
            | u64::from(self.k) << 8
    }

    fn of(code: u64) -> Self {
        Self {
            factor: FACTORS[(code & 3) as usize % FACTORS.len()],
            accumulator: if code & 4 != 0 { Accumulator::F16 } else { Accumulator::F32 },
            k: (code >> 8) as u8,
            hopper: code & 8 != 0,
        }
    }
}

handlers! {
    /// HMMA.
    Hmma = |core, op, mask| {
        let shape = Shape::of(op.payload);
        let (registers, results) = (usize::from(shape.registers()), usize::from(shape.results()));
        let (mut a, mut b, mut c) = ([[0; LANES]; 4], [[0; LANES]; 2], [[0; LANES]; 4]);
        for (word, to) in a.iter_mut().enumerate().take(2 * registers) {
            *to = *core.row(op.a.plus(word as u16));
        }
        for (word, to) in b.iter_mut().enumerate().take(registers) {
            *to = *core.row(op.b.plus(word as u16));
        }
        for (word, to) in c.iter_mut().enumerate().take(results) {
            *to = *core.row(op.c.plus(word as u16));
        }
        let generation = if shape.hopper { Generation::HOPPER } else { Generation::AMPERE };
        let (a, b, c) = (&a[..2 * registers], &b[..registers], &c[..results]);
        match mma::hmma(shape.factor, shape.accumulator, shape.k.into(), generation, a, b, c) {
            Some(d) => {
                for (word, v) in d.iter().enumerate().take(results) {
                    core.put(op.d.plus(word as u16), mask, v);
                }
                Flow::Next
            }
            None => core.fail(FaultKind::Unsupported(format!("HMMA of {shape:?}"))),
        }
    };
    /// MOVM.16.MT88: transposes an 8 by 8 matrix of 16-bit elements, of which lane l holds elements 2 (l mod 4) and the
    /// next of row l / 4.
    Movm = |core, op, mask| {
        let v = *core.row(op.a);
        let mut out = [0; LANES];
        for (lane, out) in out.iter_mut().enumerate() {
            let (row, column) = (lane / 4, lane % 4 * 2);
            for half in 0..2 {
                let from = v[(column + half) * 4 + row / 2] >> (16 * (row % 2)) & 0xffff;
                *out |= from << (16 * half);
            }
        }
        core.put(op.d, mask, &out);
        Flow::Next
    };
}
