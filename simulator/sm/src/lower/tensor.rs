//! Tensor cores and matrix moves.

use sass::lane::mma::{Accumulator, BitOperation, Factor, FloatMatrix, Integer, IntegerMatrix, Registers};
use sass::{Arch, FieldId as F, Op};

use super::super::execute::tensor as x;
use super::super::micro::Micro;
use super::float::{marks, rounding};
use super::reader::{Read, Reader, Refusal};

pub(super) fn lower(r: &mut Reader<'_>) -> Option<Read<Micro>> {
    Some(match r.instruction.op {
        Op::Hmma => hmma(r),
        Op::Qmma => qmma(r),
        Op::Imma => imma(r),
        Op::Bmma => bmma(r),
        Op::Dmma => dmma(r),
        Op::Movm => movm(r),
        _ => return None,
    })
}

/// Numbers of a shape as nvdisasm spells it: rows and columns of A.
fn shape(r: &mut Reader<'_>) -> Read<(u8, u8)> {
    let spelling = r.spelling(F::Shape);
    Ok(match spelling {
        ".1684" => (16, 4),
        ".1688" => (16, 8),
        ".16816" => (16, 16),
        ".16832" => (16, 32),
        ".16864" => (16, 64),
        ".168128" => (16, 128),
        ".8816" => (8, 16),
        ".8832" => (8, 32),
        ".88128" => (8, 128),
        ".884" | ".8x8x4" => (8, 4),
        ".16x8x4" => (16, 4),
        ".16x8x8" => (16, 8),
        ".16x8x16" => (16, 16),
        _ => return Err(Refusal::unsupported(format!("shape {spelling}"))),
    })
}

/// Reads D, A, B, C of so many registers, with the marks of those that have some.
fn fragments(r: &mut Reader<'_>, micro: &mut Micro, registers: Registers) -> Read<()> {
    let Registers { a, b, c } = registers;
    micro.d = r.to(0, c as u16)?;
    for (slot, registers) in [a, b, c].into_iter().enumerate() {
        let source = r.float(slot + 1, registers as u16)?;
        marks(micro, slot, source);
    }
    Ok(())
}

/// `.SP`: reads the metadata register and the selector into the payload.
fn sparsity(r: &mut Reader<'_>, micro: &mut Micro) -> Read<()> {
    r.ignore(F::MetadataReuse);
    let metadata = r.plain(5, 1)?;
    let selector = r.immediate(6)?;
    micro.payload |= x::sparsity_code(metadata, selector as u8);
    Ok(())
}

fn float(r: &mut Reader<'_>, factors: [Factor; 2], numerics: x::Unit) -> Read<Micro> {
    let sparse = r.spelling(F::Sparse) == ".SP";
    let (_, k) = shape(r)?;
    let accumulator = match r.spelling(F::Accumulate) {
        ".F32" => Accumulator::F32,
        ".F16" => Accumulator::F16,
        other => return Err(Refusal::unsupported(format!("accumulator {other}"))),
    };
    let form = FloatMatrix { factors, accumulator, k: k.into(), sparse };
    let Some(registers) = form.registers() else {
        return Err(Refusal::unsupported("this shape of these types"));
    };
    let mut micro = r.micro::<x::FloatMma>();
    micro.payload = x::float_code(form, numerics);
    fragments(r, &mut micro, registers)?;
    if sparse {
        sparsity(r, &mut micro)?;
    }
    Ok(micro)
}

fn hmma(r: &mut Reader<'_>) -> Read<Micro> {
    let factor = match r.spelling(F::SourceType) {
        "" => Factor::F16,
        ".BF16" => Factor::Bf16,
        ".TF32" => Factor::Tf32,
        other => return Err(Refusal::unsupported(format!("type {other}"))),
    };
    let unit = if r.instruction.arch >= Arch::Sm90 { x::Unit::Hopper } else { x::Unit::Ampere };
    float(r, [factor; 2], unit)
}

fn qmma(r: &mut Reader<'_>) -> Read<Micro> {
    let factor = |spelling| match spelling {
        ".E4M3" => Ok(Factor::E4M3),
        ".E5M2" => Ok(Factor::E5M2),
        other => Err(Refusal::unsupported(format!("type {other}"))),
    };
    let factors = [factor(r.spelling(F::SourceType))?, factor(r.spelling(F::DestinationType))?];
    float(r, factors, x::Unit::AdaQmma)
}

fn imma(r: &mut Reader<'_>) -> Read<Micro> {
    let sparse = r.spelling(F::Sparse) == ".SP";
    let (rows, k) = shape(r)?;
    let integer = |spelling| match spelling {
        ".U8" => Ok(Integer::U8),
        ".S8" => Ok(Integer::S8),
        ".U4" => Ok(Integer::U4),
        ".S4" => Ok(Integer::S4),
        other => Err(Refusal::unsupported(format!("type {other}"))),
    };
    let factors = [integer(r.spelling(F::SourceType))?, integer(r.spelling(F::DestinationType))?];
    let saturate = r.flag(F::Saturate);
    let form = IntegerMatrix { rows: rows.into(), k: k.into(), factors, saturate, sparse };
    let Some(registers) = form.registers() else {
        return Err(Refusal::unsupported("this shape of these types"));
    };
    let mut micro = r.micro::<x::Imma>();
    micro.payload = x::integer_code(form);
    fragments(r, &mut micro, registers)?;
    if sparse {
        sparsity(r, &mut micro)?;
    }
    Ok(micro)
}

fn bmma(r: &mut Reader<'_>) -> Read<Micro> {
    let (rows, k) = match r.spelling(F::Shape) {
        ".168256" => (16, 256),
        ".168128" => (16, 128),
        ".88128" => (8, 128),
        other => return Err(Refusal::unsupported(format!("shape {other}"))),
    };
    let operation = match r.spelling(F::Function) {
        ".AND" => BitOperation::And,
        ".XOR" => BitOperation::Xor,
        other => return Err(Refusal::unsupported(format!("function {other}"))),
    };
    match r.spelling(F::Accumulate) {
        ".POPC" => {}
        other => return Err(Refusal::unsupported(format!("count {other}"))),
    }
    let mut micro = r.plain_micro::<x::Bmma>();
    micro.payload = x::bit_code(rows, k, operation);
    let blocks = k / 128;
    fragments(r, &mut micro, Registers { a: blocks * rows / 8, b: blocks, c: rows / 4 })?;
    Ok(micro)
}

fn dmma(r: &mut Reader<'_>) -> Read<Micro> {
    let (rows, k) = shape(r)?;
    let rounding = rounding(r)?;
    let mut micro = r.plain_micro::<x::Dmma>();
    micro.payload = x::double_code(rows, k, rounding);
    // Register pairs.
    let (rows, k) = (usize::from(rows), usize::from(k));
    fragments(r, &mut micro, Registers { a: 2 * (rows * k / 32), b: 2 * (8 * k / 32), c: 2 * (rows / 4) })?;
    Ok(micro)
}

fn movm(r: &mut Reader<'_>) -> Read<Micro> {
    match r.spelling(F::Transpose) {
        ".MT88" => {}
        other => return Err(Refusal::unsupported(format!("move {other}"))),
    }
    let mut micro = r.plain_micro::<x::Movm>();
    micro.d = r.to(0, 1)?;
    micro.a = r.plain(1, 1)?;
    Ok(micro)
}
