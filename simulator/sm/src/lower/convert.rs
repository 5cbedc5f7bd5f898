//! Conversions.

use sass::lane::convert::{FloatFormat, Fp8};
use sass::lane::half::HalfFormat;
use sass::lane::{IntegerType, Rounding, Sign, Width};
use sass::{FieldId as F, Op, Operand};

use super::super::execute::convert as x;
use super::super::micro::Micro;
use super::float::{marks, rounding};
use super::reader::{Read, Reader, Refusal, Widen};

pub(super) fn lower(r: &mut Reader<'_>) -> Option<Read<Micro>> {
    Some(match r.instruction.op {
        Op::F2i => f2i(r),
        Op::I2f | Op::I2fp => i2f(r),
        Op::F2f => f2f(r),
        Op::Frnd => frnd(r),
        Op::F2fp => f2fp(r),
        _ => return None,
    })
}

/// Nothing is the 32-bit format.
fn float_format(spelling: &str) -> Read<FloatFormat> {
    match spelling {
        ".F16" => Ok(FloatFormat::F16),
        ".BF16" => Ok(FloatFormat::Bf16),
        "" | ".F32" => Ok(FloatFormat::F32),
        ".F64" => Ok(FloatFormat::F64),
        other => Err(Refusal::unsupported(format!("format {other}"))),
    }
}

/// Nothing is the signed 32-bit type.
fn integer_type(spelling: &str) -> Read<IntegerType> {
    let (width, sign) = match spelling {
        ".U8" => (Width::B8, Sign::Unsigned),
        ".U16" => (Width::B16, Sign::Unsigned),
        ".U32" => (Width::B32, Sign::Unsigned),
        ".U64" => (Width::B64, Sign::Unsigned),
        ".S8" => (Width::B8, Sign::Signed),
        ".S16" => (Width::B16, Sign::Signed),
        "" | ".S32" => (Width::B32, Sign::Signed),
        ".S64" => (Width::B64, Sign::Signed),
        other => return Err(Refusal::unsupported(format!("type {other}"))),
    };
    Ok(IntegerType { width, sign })
}

const fn words(wide: bool) -> u16 {
    if wide { 2 } else { 1 }
}

fn float_words(format: FloatFormat) -> u16 {
    words(format == FloatFormat::F64)
}

/// Reads the second source, a float of that format, of which a half may be chosen.
fn float_source(r: &mut Reader<'_>, micro: &mut Micro, format: FloatFormat) -> Read<u64> {
    if !matches!(format, FloatFormat::F16 | FloatFormat::Bf16) {
        let source = r.float(1, float_words(format))?;
        marks(micro, 1, source);
        return Ok(0);
    }
    let (source, shift) = r.part(1)?;
    marks(micro, 1, source);
    Ok(shift)
}

fn f2i(r: &mut Reader<'_>) -> Read<Micro> {
    let from = float_format(r.spelling(F::SourceType))?;
    let to = integer_type(r.spelling(F::DestinationType))?;
    let rounding = rounding(r)?;
    let flushes = r.flag(F::Ftz);
    let nan_to_zero = r.flag(F::Ntz);
    let wide = from == FloatFormat::F64 || to.width == Width::B64;
    let mut micro = if wide { r.plain_micro::<x::F2i<true>>() } else { r.plain_micro::<x::F2i<false>>() };
    micro.d = r.to(0, words(to.width == Width::B64))?;
    let shift = float_source(r, &mut micro, from)?;
    micro.payload =
        x::Formats { shift, float: from, integer: to, rounding, flushes, ..x::Formats::NONE }.code();
    // Bit 0 and up hold the marks of the source.
    micro.extra |= u8::from(nan_to_zero) << 7;
    Ok(micro)
}

fn i2f(r: &mut Reader<'_>) -> Read<Micro> {
    let from = integer_type(r.spelling(F::SourceType))?;
    let to = float_format(r.spelling(F::DestinationType))?;
    let rounding = rounding(r)?;
    let wide = from.width == Width::B64 || to == FloatFormat::F64;
    let mut micro = if wide { r.plain_micro::<x::I2f<true>>() } else { r.plain_micro::<x::I2f<false>>() };
    micro.d = r.to(0, float_words(to))?;
    let widen = if from.sign == Sign::Signed { Widen::Sign } else { Widen::Zero };
    let (source, shift) = if from.width == Width::B64 { (r.source(1, 2, widen)?, 0) } else { r.part(1)? };
    if source.marks != sass::Marks::default() {
        return Err(Refusal::unsupported("marks of the source"));
    }
    micro.b = source.row;
    if to == FloatFormat::F32 && from.width == Width::B32 && rounding == Rounding::Nearest {
        micro.run = match from.sign {
            Sign::Signed => r.handler::<x::I2fFast<true>>(),
            Sign::Unsigned => r.handler::<x::I2fFast<false>>(),
        };
    }
    micro.payload = x::Formats { shift, float: to, integer: from, rounding, ..x::Formats::NONE }.code();
    Ok(micro)
}

fn f2f(r: &mut Reader<'_>) -> Read<Micro> {
    let from = float_format(r.spelling(F::SourceType))?;
    let to = float_format(r.spelling(F::DestinationType))?;
    let rounding = rounding(r)?;
    let flushes = r.flag(F::Ftz);
    let wide = [from, to].contains(&FloatFormat::F64);
    let mut micro = if wide { r.plain_micro::<x::F2f<true>>() } else { r.plain_micro::<x::F2f<false>>() };
    micro.d = r.to(0, float_words(to))?;
    let shift = float_source(r, &mut micro, from)?;
    micro.payload =
        x::Formats { shift, float: from, other: to, rounding, flushes, ..x::Formats::NONE }.code();
    Ok(micro)
}

fn frnd(r: &mut Reader<'_>) -> Read<Micro> {
    let format = float_format(r.spelling(F::DestinationType))?;
    // Always the same format as the result.
    r.ignore(F::SourceType);
    let rounding = rounding(r)?;
    let flushes = r.flag(F::Ftz);
    let wide = format == FloatFormat::F64;
    let mut micro = if wide { r.plain_micro::<x::Frnd<true>>() } else { r.plain_micro::<x::Frnd<false>>() };
    micro.d = r.to(0, float_words(format))?;
    let shift = float_source(r, &mut micro, format)?;
    micro.payload = x::Formats { shift, float: format, rounding, flushes, ..x::Formats::NONE }.code();
    Ok(micro)
}

/// F2FP: what goes where is its mode, the formats are fields of their own.
fn f2fp(r: &mut Reader<'_>) -> Read<Micro> {
    let (mode, from) = (r.spelling(F::Mode), r.spelling(F::SourceType));
    let to = r.spelling(F::DestinationType);
    let (rounding, relu, saturate) = (rounding(r)?, r.flag(F::Relu), r.flag(F::Saturate));
    let half = match to {
        "" | ".F16" => Some(HalfFormat::F16),
        ".BF16" => Some(HalfFormat::Bf16),
        _ => None,
    };
    let fp8 = |spelling| match spelling {
        ".E4M3" => Some(Fp8::E4M3),
        ".E5M2" => Some(Fp8::E5M2),
        _ => None,
    };
    let refused = || Refusal::unsupported(format!("form {to}{from}{mode}"));
    let mut micro = match (mode, from, half, fp8(to)) {
        (".PACK_AB", "" | ".F32", Some(half), _) if !saturate => {
            let mut micro = r.plain_micro::<x::F2fp>();
            micro.payload = x::pack_code(half, rounding, relu);
            micro.a = r.plain(1, 1)?;
            // The field of a third source is there and not used.
            r.ignore_operand(3);
            micro
        }
        (".MERGE_C", "" | ".F32", Some(half), _) if !saturate => {
            let mut micro = r.plain_micro::<x::F2fpMerge>();
            micro.payload = x::pack_code(half, rounding, relu);
            r.ignore_operand(1);
            // Where a merged half would go was not measured; compilers pass RZ.
            if !matches!(r.operand(3)?, Operand::Register { index: Operand::RZ, .. }) {
                return Err(Refusal::unsupported("merging into a register"));
            }
            micro
        }
        (".PACK_AB_MERGE_C", ".F32", _, Some(fp8)) if saturate => {
            let mut micro = r.plain_micro::<x::F2fp8>();
            micro.payload = x::fp8_code(fp8, relu);
            micro.a = r.plain(1, 1)?;
            merged(r, &mut micro)?;
            micro
        }
        (".UNPACK_B_MERGE_C", ".F16", _, Some(fp8)) if saturate => {
            let mut micro = r.plain_micro::<x::F2fp8FromHalf>();
            micro.payload = x::fp8_code(fp8, relu);
            r.ignore_operand(1);
            merged(r, &mut micro)?;
            micro
        }
        (".UNPACK_B", _, Some(HalfFormat::F16), _) => {
            let from = fp8(from).ok_or_else(refused)?;
            let mut micro = r.plain_micro::<x::F2fpUnpack>();
            r.ignore_operand(1);
            r.ignore_operand(3);
            let (source, shift) = r.part(2)?;
            if source.marks != sass::Marks::default() {
                return Err(Refusal::unsupported("marks of the source"));
            }
            micro.b = source.row;
            micro.payload = x::fp8_code(from, relu) | shift << 8;
            micro.d = r.to(0, 1)?;
            return Ok(micro);
        }
        (".PACK_B", ".F32", ..) if to == ".TF32" => {
            let mut micro = r.plain_micro::<x::F2fpTf32>();
            micro.payload = x::pack_code(HalfFormat::F16, rounding, relu);
            r.ignore_operand(1);
            r.ignore_operand(3);
            micro
        }
        _ => return Err(refused()),
    };
    micro.d = r.to(0, 1)?;
    micro.b = r.plain(2, 1)?;
    Ok(micro)
}

/// The third source of F2FP, of which a half is merged into the result.
fn merged(r: &mut Reader<'_>, micro: &mut Micro) -> Read<()> {
    let (source, shift) = r.part(3)?;
    if source.marks != sass::Marks::default() {
        return Err(Refusal::unsupported("marks of the source"));
    }
    micro.c = source.row;
    micro.payload |= shift << 8;
    Ok(())
}
