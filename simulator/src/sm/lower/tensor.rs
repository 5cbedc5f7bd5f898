//! Tensor cores and matrix moves.

use sass::lane::mma::{Accumulator, Factor};
use sass::{Arch, FieldId as F, Op};

use super::super::execute::tensor as x;
use super::super::micro::Micro;
use super::reader::{Read, Reader, Refusal};

pub(super) fn lower(r: &mut Reader<'_>) -> Option<Read<Micro>> {
    Some(match r.instruction.op {
        Op::Hmma => hmma(r),
        Op::Movm => movm(r),
        _ => return None,
    })
}

fn hmma(r: &mut Reader<'_>) -> Read<Micro> {
    let factor = match r.spelling(F::SourceType) {
        "" => Factor::F16,
        ".BF16" => Factor::Bf16,
        ".TF32" => Factor::Tf32,
        other => return Err(Refusal::unsupported(format!("type {other}"))),
    };
    let k: u16 = match (r.spelling(F::Shape), factor) {
        (".1684", Factor::Tf32) => 4,
        (".1688", _) => 8,
        (".16816", Factor::F16 | Factor::Bf16) => 16,
        (other, _) => return Err(Refusal::unsupported(format!("shape {other} of {factor:?}"))),
    };
    let accumulator = match r.spelling(F::Accumulate) {
        ".F32" => Accumulator::F32,
        ".F16" if factor == Factor::F16 => Accumulator::F16,
        other => return Err(Refusal::unsupported(format!("accumulator {other}"))),
    };
    let mut micro = r.plain_micro::<x::Hmma>();
    let shape = x::Shape { factor, accumulator, k: k as u8, hopper: r.instruction.arch >= Arch::Sm90 };
    micro.d = r.to(0, shape.results())?;
    micro.a = r.plain(1, 2 * shape.registers())?;
    micro.b = r.plain(2, shape.registers())?;
    micro.c = r.plain(3, shape.results())?;
    micro.payload = shape.code();
    Ok(micro)
}

fn movm(r: &mut Reader<'_>) -> Read<Micro> {
    let mut micro = r.plain_micro::<x::Movm>();
    micro.d = r.to(0, 1)?;
    micro.a = r.plain(1, 1)?;
    Ok(micro)
}
