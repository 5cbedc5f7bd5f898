//! Tensor cores and matrix moves.

use sass::lane::mma::{
    self, Accumulator, BitOperation, Factor, FloatMatrix, Integer, IntegerMatrix, Numerics, Pair, Registers,
    Sparsity,
};
use sass::lane::{Rounding, warp};

use super::super::core::{Core, TEAM};
use super::super::fault::FaultKind;
#[cfg(target_arch = "x86_64")]
use super::super::lanes::FULL;
use super::super::lanes::LANES;
use super::super::micro::{Execute, Flow, Level, Micro, RowIndex};
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

/// Most registers of a factor.
const MOST_FACTORS: usize = 4;

/// Most matrix products that are executed at once.
const PRODUCTS: usize = 16;

/// HMMA and QMMA. Those that follow one another are executed warp by warp, as far as no factor comes out of one of them:
/// then factors that several have in common are decoded once.
#[derive(Debug)]
pub(crate) struct FloatMma;

impl Execute for FloatMma {
    #[inline(always)]
    fn run<L: Level>(core: &mut Core<'_>, op: &Micro) -> Flow {
        let (form, numerics) = float_form(op.payload);
        let registers = form.registers().unwrap_or(NO_REGISTERS);
        core.caches.further_products = 0;
        let mut products = [*op; PRODUCTS];
        let count = if L::AVX2 && !form.sparse { in_a_row(core, op, registers, &mut products) } else { 1 };
        // Taken out, so that it may be written while operands are read where they are.
        #[cfg(target_arch = "x86_64")]
        let mut tensor = core.caches.tensor.take();
        let masks = core.masks(op);
        let mut flow = Flow::Next;
        'team: for member in 0..core.team.count {
            let mask = masks[member & (TEAM - 1)];
            if mask == 0 {
                continue;
            }
            core.member = member;
            #[cfg(target_arch = "x86_64")]
            if let Some(tensor) = &mut tensor {
                tensor.forget();
            }
            for op in products.iter().take(count) {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: handlers of this level run only on processors that have the features.
                if L::AVX2 && unsafe { quick_float(core, op, mask, form, numerics, scratch(&mut tensor)) } {
                    continue;
                }
                flow = plain_float(core, op, mask, form, numerics);
                if flow != Flow::Next {
                    break 'team;
                }
            }
        }
        #[cfg(target_arch = "x86_64")]
        {
            core.caches.tensor = tensor;
        }
        if flow == Flow::Next {
            core.caches.further_products = count - 1;
        }
        flow
    }

    #[inline(always)]
    fn last(core: &Core<'_>, op: &Micro) -> *const Micro {
        std::ptr::from_ref(op).wrapping_add(core.caches.further_products)
    }
}

/// Whether so many rows from one on and from another on have one in common.
fn overlap((a, rows_of_a): (RowIndex, usize), (b, rows_of_b): (RowIndex, usize)) -> bool {
    let (a, b) = (usize::from(a.0), usize::from(b.0));
    a < b + rows_of_b && b < a + rows_of_a
}

/// Finds the products from `op` on that can be executed at once, and how many there are.
#[inline(never)]
fn in_a_row(core: &Core<'_>, op: &Micro, registers: Registers, products: &mut [Micro; PRODUCTS]) -> usize {
    let mut count = 1;
    while count < PRODUCTS && op.kind == 0 {
        let Some(next) = core.chain.further(op, count) else { break };
        let same = std::ptr::fn_addr_eq(next.run, op.run)
            && (next.payload, next.kind, next.extra) == (op.payload, op.kind, op.extra);
        let depends = products.iter().take(count).any(|earlier| {
            let d = (earlier.d, registers.c);
            overlap((next.a, registers.a), d) || overlap((next.b, registers.b), d)
        });
        if !same || depends {
            break;
        }
        products[count] = *next;
        count += 1;
    }
    count
}

/// A product by vectors. False if it is for [`plain_float`], which finds its sources as they were.
///
/// # Safety
/// The processor must have AVX2 and F16C.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn quick_float(
    core: &mut Core<'_>,
    op: &Micro,
    mask: u32,
    form: FloatMatrix,
    numerics: Numerics,
    scratch: &mut mma::avx2::Scratch,
) -> bool {
    let Registers { a: na, b: nb, c: nc } = form.registers().unwrap_or(NO_REGISTERS);
    let (a, b, c, d) = ((op.a, na), (op.b, nb), (op.c, nc), (op.d, nc));
    let apart = !overlap(d, a) && !overlap(d, b) && (op.c == op.d || !overlap(c, d));
    if mask == FULL && op.extra == 0 && apart {
        if op.c != op.d {
            for word in 0..nc as u16 {
                let addends = *core.row(op.c.plus(word));
                core.put(op.d.plus(word), FULL, &addends);
            }
        }
        // SAFETY: lowering checked the operands for the form's numbers of registers, and they are apart.
        let ([a, b], d) = unsafe { core.rows_between([a, b], d) };
        let operands = [
            mma::avx2::Fragment { registers: a, name: Some(op.a.0) },
            mma::avx2::Fragment { registers: b, name: Some(op.b.0) },
        ];
        // SAFETY: the caller's promise.
        return unsafe { mma::avx2::float_mma(form, numerics, operands, d, scratch) };
    }
    let [mut a, mut b]: [[_; MOST_FACTORS]; 2] = [fragment(core, op.a, na), fragment(core, op.b, nb)];
    let mut d: [_; 4] = fragment(core, op.c, nc);
    negate_marked(op, form, &mut a, &mut b);
    let operands = [&a[..na], &b[..nb]].map(mma::avx2::Fragment::unnamed);
    // SAFETY: the caller's promise.
    let done = unsafe { mma::avx2::float_mma(form, numerics, operands, &mut d[..nc], scratch) };
    if done {
        put(core, op, mask, Some(&d), nc);
    }
    done
}

/// A product by the rules, a result at a time.
#[inline(never)]
fn plain_float(core: &mut Core<'_>, op: &Micro, mask: u32, form: FloatMatrix, numerics: Numerics) -> Flow {
    let Registers { a: na, b: nb, c: nc } = form.registers().unwrap_or(NO_REGISTERS);
    let [mut a, mut b]: [[_; MOST_FACTORS]; 2] = [fragment(core, op.a, na), fragment(core, op.b, nb)];
    let c: [_; 4] = fragment(core, op.c, nc);
    negate_marked(op, form, &mut a, &mut b);
    let (metadata, selector) = sparsity(core, op);
    let sparsity = form.sparse.then_some(Sparsity { metadata: &metadata, selector });
    let d = mma::float_mma(form, numerics, &a[..na], &b[..nb], &c[..nc], sparsity);
    put(core, op, mask, d.as_ref(), nc)
}

/// Flips the signs of factors that are marked so.
fn negate_marked(op: &Micro, form: FloatMatrix, a: &mut [[u32; LANES]], b: &mut [[u32; LANES]]) {
    if op.extra & 1 != 0 {
        negate(a, form.factors[0]);
    }
    if op.extra & 2 != 0 {
        negate(b, form.factors[1]);
    }
}

const NO_REGISTERS: Registers = Registers { a: 0, b: 0, c: 0 };

handlers! {
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
