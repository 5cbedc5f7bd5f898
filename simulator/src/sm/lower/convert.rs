//! Conversions.

use sass::lane::convert::FloatFormat;
use sass::lane::half::HalfFormat;
use sass::lane::{IntegerType, Rounding, Sign, Width};
use sass::{FieldId as F, Op};

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
    // Says that the result is not wanted as a trap; there are none.
    r.ignore(F::Ntz);
    let mut micro = r.plain_micro::<x::F2i>();
    micro.d = r.to(0, words(to.width == Width::B64))?;
    let shift = float_source(r, &mut micro, from)?;
    micro.payload =
        x::Formats { shift, float: from, integer: to, rounding, flushes, ..x::Formats::NONE }.code();
    Ok(micro)
}

fn i2f(r: &mut Reader<'_>) -> Read<Micro> {
    let from = integer_type(r.spelling(F::SourceType))?;
    let to = float_format(r.spelling(F::DestinationType))?;
    let rounding = rounding(r)?;
    let mut micro = r.plain_micro::<x::I2f>();
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
    let mut micro = r.plain_micro::<x::F2f>();
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
    let mut micro = r.plain_micro::<x::Frnd>();
    micro.d = r.to(0, float_words(format))?;
    let shift = float_source(r, &mut micro, format)?;
    micro.payload = x::Formats { shift, float: format, rounding, flushes, ..x::Formats::NONE }.code();
    Ok(micro)
}

fn f2fp(r: &mut Reader<'_>) -> Read<Micro> {
    match (r.spelling(F::Mode), r.spelling(F::SourceType)) {
        (".PACK_AB", "" | ".F32") => {}
        (mode, from) => return Err(Refusal::unsupported(format!("form {from}{mode}"))),
    }
    let format = match r.spelling(F::DestinationType) {
        "" | ".F16" => HalfFormat::F16,
        ".BF16" => HalfFormat::Bf16,
        other => return Err(Refusal::unsupported(format!("format {other}"))),
    };
    if r.flag(F::Saturate) {
        return Err(Refusal::unsupported(".SATFINITE"));
    }
    let rounding = rounding(r)?;
    let relu = r.flag(F::Relu);
    let mut micro = r.plain_micro::<x::F2fp>();
    micro.d = r.to(0, 1)?;
    micro.a = r.plain(1, 1)?;
    micro.b = r.plain(2, 1)?;
    // The field of a third source is there and not used.
    r.ignore_operand(3);
    micro.payload = x::pack_code(format, rounding, relu);
    Ok(micro)
}
