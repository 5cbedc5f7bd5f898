//! Packed half precision.

use sass::lane::half::{Factors, HalfFormat, HalfMode, Swizzle};
use sass::{FieldId as F, Half, Op, Operand};

use super::super::execute::half as x;
use super::super::micro::{Micro, PredicateIn};
use super::integer::boolean;
use super::reader::{Read, Reader, Refusal, Widen};

pub(super) fn lower(r: &mut Reader<'_>) -> Option<Read<Micro>> {
    Some(match r.instruction.op {
        Op::Hadd2 => hadd2(r),
        Op::Hmul2 => hmul2(r),
        Op::Hfma2 | Op::Hfma2Mma => hfma2(r),
        Op::Hmnmx2 => hmnmx2(r),
        Op::Hset2 => hset2(r),
        Op::Hsetp2 => hsetp2(r),
        _ => return None,
    })
}

/// Format and modifiers.
fn mode(r: &mut Reader<'_>) -> Read<HalfMode> {
    let format = match r.spelling(F::BFloat16) {
        "" => HalfFormat::F16,
        ".BF16_V2" | ".BF16" => HalfFormat::Bf16,
        other => return Err(Refusal::unsupported(format!("format {other}"))),
    };
    let (flushes, saturate) = (r.spelling(F::Ftz), r.flag(F::Saturate));
    let flushes = match flushes {
        "" | ".OOB" => false,
        ".FTZ" => true,
        ".FMZ" if format == HalfFormat::Bf16 => {
            return Err(Refusal::Illegal("an H200 has no .FMZ of bfloat16"));
        }
        ".FMZ" => true,
        other => return Err(Refusal::unsupported(format!("modifier {other}"))),
    };
    Ok(HalfMode { format, flushes, saturate, relu: r.flag(F::Relu) })
}

/// Which factors are special.
fn factors(r: &mut Reader<'_>) -> Factors {
    match r.spelling(F::Ftz) {
        ".FMZ" => Factors::ZeroWins,
        ".OOB" => Factors::OutOfBounds,
        _ => Factors::Plain,
    }
}

fn hmul2(r: &mut Reader<'_>) -> Read<Micro> {
    let mut micro = arithmetic::<x::Hmul2>(r, 2)?;
    if factors(r) == Factors::ZeroWins {
        micro.run = r.plain_handler::<x::Hmul2Zero>();
    }
    Ok(micro)
}

/// Reads source `slot` of the micro-operation from operand `slot + 1`, with its swizzle and marks.
fn source(r: &mut Reader<'_>, micro: &mut Micro, operand: usize, slot: usize) -> Read<()> {
    let source = r.source(operand, 1, Widen::Zero)?;
    if source.marks.invert {
        return Err(Refusal::unsupported("a complemented source"));
    }
    let swizzle = match source.half {
        Half::Both => Swizzle::H1H0,
        Half::F32 => Swizzle::F32,
        Half::Low => Swizzle::H0H0,
        Half::High => Swizzle::H1H1,
        // The handler crosses them, before the marks of both.
        Half::LowNegatedHigh if r.instruction.op == Op::Hfma2 => Swizzle::H1H0,
        other => return Err(Refusal::unsupported(format!("halves {other:?}"))),
    };
    micro.payload |= x::source_code(swizzle, source.marks.absolute, source.marks.negate, slot);
    match slot {
        0 => micro.a = source.row,
        1 => micro.b = source.row,
        _ => micro.c = source.row,
    }
    Ok(())
}

/// HFMA2, whose second source may be crossed with one half negated. A predicate behind its sources says where .RELU
/// applies (measured on H200).
fn hfma2(r: &mut Reader<'_>) -> Read<Micro> {
    let crossed = match r.operand(2)? {
        Operand::Register { half, .. }
        | Operand::UniformRegister { half, .. }
        | Operand::Constant { half, .. } => half == Half::LowNegatedHigh,
        _ => false,
    };
    let mut micro = arithmetic::<x::Hfma2>(r, 3)?;
    let factors = factors(r);
    if r.flag(F::Relu) && r.instruction.operands().len() > 4 {
        micro.from[0] = r.predicate(4)?;
    }
    if crossed || factors != Factors::Plain || micro.from[0] != PredicateIn::TRUE {
        micro.run = r.plain_handler::<x::Hfma2Rare>();
        micro.extra = x::rare_code(factors, crossed);
    }
    Ok(micro)
}

fn arithmetic<T: super::super::micro::Execute>(r: &mut Reader<'_>, sources: usize) -> Read<Micro> {
    let mut micro = r.micro::<T>();
    micro.payload = x::mode_code(mode(r)?);
    micro.d = r.to(0, 1)?;
    for slot in 0..sources {
        source(r, &mut micro, slot + 1, slot)?;
    }
    Ok(micro)
}

fn hadd2(r: &mut Reader<'_>) -> Read<Micro> {
    let float = r.flag(F::Float32);
    let mut micro = arithmetic::<x::Hadd2>(r, 2)?;
    if float {
        if !matches!(r.operand(1)?, Operand::Register { index: Operand::RZ, .. }) {
            return Err(Refusal::Illegal("HADD2.F32 converts: its first source is RZ"));
        }
        micro.run = r.handler::<x::Hadd2Float>();
    }
    Ok(micro)
}

fn hmnmx2(r: &mut Reader<'_>) -> Read<Micro> {
    let nan = r.flag(F::Nan);
    let signs = r.flag(F::XorSign);
    let mut micro = arithmetic::<x::Hmnmx2>(r, 2)?;
    micro.run = if signs { r.plain_handler::<x::Hmnmx2Signs>() } else { r.plain_handler::<x::Hmnmx2>() };
    micro.extra = u8::from(nan);
    micro.from[0] = r.predicate(3)?;
    Ok(micro)
}

/// HSET2 and HSETP2 from operand `first` on.
fn comparison(r: &mut Reader<'_>, micro: &mut Micro, first: usize) -> Read<()> {
    micro.payload = x::mode_code(mode(r)?);
    let code = r.field(F::Compare);
    micro.payload |= u64::from(code & 15) << x::COMPARE;
    micro.extra = boolean(r)?;
    source(r, micro, first, 0)?;
    source(r, micro, first + 1, 1)?;
    micro.from[0] = r.predicate(first + 2)?;
    Ok(())
}

fn hset2(r: &mut Reader<'_>) -> Read<Micro> {
    let mut micro = r.plain_micro::<x::Hset2<false>>();
    if r.flag(F::BFloat) {
        micro.run = r.plain_handler::<x::Hset2<true>>();
    }
    micro.d = r.to(0, 1)?;
    comparison(r, &mut micro, 1)?;
    Ok(micro)
}

fn hsetp2(r: &mut Reader<'_>) -> Read<Micro> {
    let mut micro = r.plain_micro::<x::Hsetp2>();
    micro.to = [r.predicate_to(0)?, r.predicate_to(1)?];
    let both = r.flag(F::HalvesAnd);
    comparison(r, &mut micro, 2)?;
    micro.extra |= u8::from(both) << 2;
    Ok(micro)
}
