//! Tensor cores and matrix moves.

use sass::lane::mma::{
    self, Accumulator, BitOperation, Factor, FloatMatrix, Integer, IntegerMatrix, Numerics, Pair, Registers,
    Sparsity,
};
use sass::lane::{Rounding, warp};

use super::super::core::Core;
use super::super::fault::FaultKind;
use super::super::lanes::LANES;
use super::super::micro::{Flow, Micro, RowIndex};
use super::handlers;

const FACTORS: [Factor; 5] = [Factor::F16, Factor::Bf16, Factor::Tf32, Factor::E4M3, Factor::E5M2];
const INTEGERS: [Integer; 4] = [Integer::U8, Integer::S8, Integer::U4, Integer::S4];

/// Which floating-point tensor core runs an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// HMMA of sm_80 to sm_89.
    Ampere,
    /// HMMA of sm_90.
    Hopper,
    /// QMMA of sm_89.
    AdaQmma,
}

const NUMERICS: [Numerics; 4] = [Numerics::AMPERE, Numerics::HOPPER, Numerics::ADA_QMMA, Numerics::ADA_QMMA];

/// Where payloads have the number of columns.
const COLUMNS: u32 = 16;

/// The metadata of `.SP` in a payload.
pub(crate) fn sparsity_code(metadata: RowIndex, selector: u8) -> u64 {
    u64::from(selector & 3) << 28 | u64::from(metadata.0) << 32
}

/// The metadata register that lowering checked and put into a payload, and the selector.
#[inline(always)]
fn sparsity(core: &Core<'_>, op: &Micro) -> ([u32; LANES], usize) {
    let metadata = *core.row(RowIndex((op.payload >> 32) as u16));
    (metadata, (op.payload >> 28 & 3) as usize)
}

/// HMMA's and QMMA's form as a payload.
pub(crate) fn float_code(form: FloatMatrix, unit: Unit) -> u64 {
    let factor = |i: usize| FACTORS.iter().position(|known| *known == form.factors[i]).unwrap_or(0) as u64;
    factor(0)
        | factor(1) << 3
        | u64::from(form.accumulator == Accumulator::F16) << 6
        | u64::from(form.sparse) << 7
        | (unit as u64) << 8
        | (form.k as u64) << COLUMNS
}

fn float_form(code: u64) -> (FloatMatrix, Numerics) {
    let factor = |shift: u32| FACTORS[(code >> shift & 7) as usize % FACTORS.len()];
    let form = FloatMatrix {
        factors: [factor(0), factor(3)],
        accumulator: if code >> 6 & 1 != 0 { Accumulator::F16 } else { Accumulator::F32 },
        k: (code >> COLUMNS & 0xfff) as usize,
        sparse: code >> 7 & 1 != 0,
    };
    (form, NUMERICS[(code >> 8 & 3) as usize])
}

/// IMMA's form as a payload.
pub(crate) fn integer_code(form: IntegerMatrix) -> u64 {
    let factor = |i: usize| INTEGERS.iter().position(|known| *known == form.factors[i]).unwrap_or(0) as u64;
    factor(0)
        | factor(1) << 2
        | u64::from(form.saturate) << 4
        | u64::from(form.sparse) << 5
        | u64::from(form.rows == 16) << 6
        | (form.k as u64) << COLUMNS
}

fn integer_form(code: u64) -> IntegerMatrix {
    IntegerMatrix {
        rows: if code >> 6 & 1 != 0 { 16 } else { 8 },
        k: (code >> COLUMNS & 0xfff) as usize,
        factors: [INTEGERS[(code & 3) as usize], INTEGERS[(code >> 2 & 3) as usize]],
        saturate: code >> 4 & 1 != 0,
        sparse: code >> 5 & 1 != 0,
    }
}

/// BMMA's form as a payload.
pub(crate) fn bit_code(rows: usize, k: usize, operation: BitOperation) -> u64 {
    u64::from(operation == BitOperation::Xor) | (rows as u64) << 8 | (k as u64) << COLUMNS
}

/// DMMA's form as a payload.
pub(crate) fn double_code(rows: u8, k: u8, rounding: Rounding) -> u64 {
    let rounding = Rounding::ALL.iter().position(|known| *known == rounding).unwrap_or(0) as u64;
    rounding | u64::from(rows) << 8 | u64::from(k) << COLUMNS
}

/// The registers of a fragment.
#[inline(always)]
fn fragment<const N: usize>(core: &Core<'_>, first: RowIndex, count: usize) -> [[u32; LANES]; N] {
    let mut registers = [[0; LANES]; N];
    for (word, to) in registers.iter_mut().enumerate().take(count) {
        *to = *core.row(first.plus(word as u16));
    }
    registers
}

/// The register pairs of source number `slot`, with its marks.
#[inline(always)]
fn pairs<const N: usize>(core: &Core<'_>, op: &Micro, slot: u32, count: usize) -> [Pair; N] {
    let first = [op.a, op.b, op.c][slot as usize];
    let mut registers = [[0; LANES]; N];
    for (pair, to) in registers.iter_mut().enumerate().take(count) {
        *to = super::double::source(core, first.plus(2 * pair as u16), op.extra.into(), slot);
    }
    registers
}

/// The room of the quick forms, made at their first use.
///
/// # Safety
/// The processor must have AVX2 and F16C.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn scratch(room: &mut Option<Box<mma::avx2::Scratch>>) -> &mut mma::avx2::Scratch {
    // SAFETY: the caller knows the processor.
    room.get_or_insert_with(|| Box::new(unsafe { mma::avx2::Scratch::new() }))
}

/// Flips the signs of a fragment's numbers.
fn negate(registers: &mut [[u32; LANES]], factor: Factor) {
    let signs = match factor {
        Factor::F16 | Factor::Bf16 => 0x8000_8000,
        Factor::Tf32 => 0x8000_0000,
        Factor::E4M3 | Factor::E5M2 => 0x8080_8080,
    };
    registers.iter_mut().flatten().for_each(|v| *v ^= signs);
}

/// Writes D; a form that there is not stops the kernel.
#[inline(always)]
fn put(core: &mut Core<'_>, op: &Micro, mask: u32, d: Option<&[[u32; LANES]; 4]>, count: usize) -> Flow {
    match d {
        Some(d) => {
            for (word, v) in d.iter().enumerate().take(count) {
                core.put(op.d.plus(word as u16), mask, v);
            }
            Flow::Next
        }
        None => core.fail(FaultKind::Unsupported("this shape of a matrix product".to_owned())),
    }
}

const NO_REGISTERS: Registers = Registers { a: 0, b: 0, c: 0 };

handlers! {
    /// HMMA and QMMA.
    FloatMma = |core, op, mask| {
        let (form, numerics) = float_form(op.payload);
        let Registers { a: na, b: nb, c: nc } = form.registers().unwrap_or(NO_REGISTERS);
        // Taken out, so that it may be written while operands are read where they are.
        #[cfg(target_arch = "x86_64")]
        let mut tensor = core.caches.tensor.take();
        // SAFETY: lowering checked the sources for the form's numbers of registers.
        let [mut a, mut b, c] =
            unsafe { [(op.a, na), (op.b, nb), (op.c, nc)].map(|(row, count)| core.source_rows(row, count)) };
        let (mut negated_a, mut negated_b): ([_; 4], [_; 4]);
        if op.extra & 1 != 0 {
            negated_a = fragment(core, op.a, na);
            negate(&mut negated_a, form.factors[0]);
            a = &negated_a[..na];
        }
        if op.extra & 2 != 0 {
            negated_b = fragment(core, op.b, nb);
            negate(&mut negated_b, form.factors[1]);
            b = &negated_b[..nb];
        }
        #[cfg(target_arch = "x86_64")]
        if L::AVX2 {
            // SAFETY: handlers of this level run only on processors that have the features.
            let d = unsafe { mma::avx2::float_mma(form, numerics, [a, b, c], scratch(&mut tensor)) };
            if d.is_some() {
                let flow = put(core, op, mask, d, nc);
                core.caches.tensor = tensor;
                return flow;
            }
        }
        let d = if form.sparse {
            let (metadata, selector) = sparsity(core, op);
            mma::float_mma(form, numerics, a, b, c, Some(Sparsity { metadata: &metadata, selector }))
        } else {
            mma::float_mma(form, numerics, a, b, c, None)
        };
        #[cfg(target_arch = "x86_64")]
        {
            core.caches.tensor = tensor;
        }
        put(core, op, mask, d.as_ref(), nc)
    };
    /// IMMA.
    Imma = |core, op, mask| {
        let form = integer_form(op.payload);
        let Registers { a: na, b: nb, c: nc } = form.registers().unwrap_or(NO_REGISTERS);
        #[cfg(target_arch = "x86_64")]
        let mut tensor = core.caches.tensor.take();
        // SAFETY: as above.
        let [a, b, c] =
            unsafe { [(op.a, na), (op.b, nb), (op.c, nc)].map(|(row, count)| core.source_rows(row, count)) };
        #[cfg(target_arch = "x86_64")]
        if L::AVX2 {
            // SAFETY: as above.
            let d = unsafe { mma::avx2::imma(form, [a, b, c], scratch(&mut tensor)) };
            if d.is_some() {
                let flow = put(core, op, mask, d, nc);
                core.caches.tensor = tensor;
                return flow;
            }
        }
        let d = if form.sparse {
            let (metadata, selector) = sparsity(core, op);
            mma::imma(form, a, b, c, Some(Sparsity { metadata: &metadata, selector }))
        } else {
            mma::imma(form, a, b, c, None)
        };
        #[cfg(target_arch = "x86_64")]
        {
            core.caches.tensor = tensor;
        }
        put(core, op, mask, d.as_ref(), nc)
    };
    /// BMMA.
    Bmma = |core, op, mask| {
        let (rows, k) = ((op.payload >> 8 & 0xff) as usize, (op.payload >> COLUMNS & 0xfff) as usize);
        let operation = if op.payload & 1 != 0 { BitOperation::Xor } else { BitOperation::And };
        let (na, nb, nc) = (k / 128 * rows / 8, k / 128, rows / 4);
        let a: [_; 4] = fragment(core, op.a, na);
        let b: [_; 2] = fragment(core, op.b, nb);
        let c: [_; 4] = fragment(core, op.c, nc);
        let d = mma::bmma(rows, k, operation, &a[..na.min(4)], &b[..nb.min(2)], &c[..nc.min(4)]);
        put(core, op, mask, d.as_ref(), nc)
    };
    /// DMMA.
    Dmma = |core, op, mask| {
        let (rows, k) = ((op.payload >> 8 & 0xff) as usize, (op.payload >> COLUMNS & 0xfff) as usize);
        let rounding = Rounding::from_code(op.payload as u32);
        let (na, nb, nc) = (rows * k / 32, 8 * k / 32, rows / 4);
        let a: [_; 8] = pairs(core, op, 0, na);
        let b: [_; 4] = pairs(core, op, 1, nb);
        let c: [_; 4] = pairs(core, op, 2, nc);
        let operands = [&a[..na.min(8)], &b[..nb.min(4)], &c[..nc.min(4)]];
        #[cfg(target_arch = "x86_64")]
        if L::AVX2 && rounding == Rounding::Nearest {
            let mut tensor = core.caches.tensor.take();
            // SAFETY: as above.
            let d = unsafe { mma::avx2::dmma(rows, k, operands, scratch(&mut tensor)) };
            let done = d.is_some();
            for (pair, v) in d.into_iter().flatten().enumerate().take(nc) {
                core.put_pair(op.d.plus(2 * pair as u16), mask, v);
            }
            core.caches.tensor = tensor;
            if done {
                return Flow::Next;
            }
        }
        match mma::dmma(rows, k, rounding, operands[0], operands[1], operands[2]) {
            Some(d) => {
                for (pair, v) in d.iter().enumerate().take(nc) {
                    core.put_pair(op.d.plus(2 * pair as u16), mask, v);
                }
                Flow::Next
            }
            None => core.fail(FaultKind::Unsupported("this shape of a matrix product".to_owned())),
        }
    };
    /// MOVM.16.MT88.
    Movm = |core, op, mask| {
        let out = warp::movm_transpose(core.row(op.a));
        core.put(op.d, mask, &out);
        Flow::Next
    };
}
