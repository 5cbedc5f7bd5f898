//! FP32 arithmetic, comparisons and the special-function unit.

use sass::lane::{Rounding, mufu};
use sass::{FieldId as F, Op};

use super::super::execute::float as x;
use super::super::micro::Micro;
use super::integer::{boolean, by_comparison};
use super::reader::{Read, Reader, Refusal, Source};

pub(super) fn lower(r: &mut Reader<'_>) -> Option<Read<Micro>> {
    Some(match r.instruction.op {
        Op::Fadd => fadd(r),
        Op::Fmul => fmul(r),
        Op::Ffma => ffma(r),
        Op::Fmnmx => fmnmx(r),
        Op::Fsel => fsel(r),
        Op::Fset => fset(r),
        Op::Fsetp => fsetp(r),
        Op::Fchk => fchk(r),
        Op::Fswzadd => fswzadd(r),
        Op::Mufu => mufu(r),
        _ => return None,
    })
}

/// Rounding of arithmetic.
pub(super) fn rounding(r: &mut Reader<'_>) -> Read<Rounding> {
    match r.spelling(F::Rounding) {
        "" => Ok(Rounding::Nearest),
        ".RM" | ".FLOOR" => Ok(Rounding::Down),
        ".RP" | ".CEIL" => Ok(Rounding::Up),
        ".RZ" | ".TRUNC" => Ok(Rounding::Zero),
        other => Err(Refusal::unsupported(format!("rounding {other}"))),
    }
}

/// Puts a float source's marks into bits `slot` (negate) and `slot + 3` (absolute) of `extra`.
pub(super) fn marks(micro: &mut Micro, slot: usize, source: Source) {
    micro.extra |= u8::from(source.marks.negate) << slot | u8::from(source.marks.absolute) << (slot + 3);
    match slot {
        0 => micro.a = source.row,
        1 => micro.b = source.row,
        _ => micro.c = source.row,
    }
}

/// Modifiers of FADD, FMUL and FFMA: what is left for the general handler, or nothing but `.FTZ`.
fn mode(r: &mut Reader<'_>) -> Read<(x::Modifiers, bool)> {
    let subnormals = match r.spelling(F::Ftz) {
        "" => x::KEEP,
        ".FTZ" => x::FLUSH,
        ".FMZ" => x::FLUSH_MULTIPLY_ZERO,
        other => return Err(Refusal::unsupported(format!("modifier {other}"))),
    };
    let rounding = rounding(r)?;
    let saturate = r.flag(F::Saturate);
    let simple = rounding == Rounding::Nearest && !saturate && subnormals != x::FLUSH_MULTIPLY_ZERO;
    Ok((x::Modifiers { rounding, subnormals, saturate, scale: 0 }, simple))
}

/// The handler of an operation to nearest, which is compiled with and without `.FTZ` and marks.
macro_rules! to_nearest {
    ($r:ident, $handler:ident, $modifiers:ident, $micro:ident) => {
        match ($modifiers.subnormals == x::FLUSH, $micro.extra != 0) {
            (false, false) => $r.handler::<x::$handler<false, false>>(),
            (false, true) => $r.handler::<x::$handler<false, true>>(),
            (true, false) => $r.handler::<x::$handler<true, false>>(),
            (true, true) => $r.handler::<x::$handler<true, true>>(),
        }
    };
}

fn fadd(r: &mut Reader<'_>) -> Read<Micro> {
    let (modifiers, simple) = mode(r)?;
    let mut micro = r.plain_micro::<x::FaddGeneral>();
    micro.payload = modifiers.code();
    micro.d = r.to(0, 1)?;
    let (a, b) = (r.float(1, 1)?, r.float(2, 1)?);
    marks(&mut micro, 0, a);
    marks(&mut micro, 1, b);
    if simple {
        micro.run = to_nearest!(r, Fadd, modifiers, micro);
    }
    Ok(micro)
}

fn fmul(r: &mut Reader<'_>) -> Read<Micro> {
    let (mut modifiers, simple) = mode(r)?;
    modifiers.scale = match r.spelling(F::Scale) {
        "" => 0,
        ".D8" => -3,
        ".D4" => -2,
        ".D2" => -1,
        ".M2" => 1,
        ".M4" => 2,
        ".M8" => 3,
        other => return Err(Refusal::unsupported(format!("scale {other}"))),
    };
    let mut micro = r.plain_micro::<x::FmulGeneral>();
    micro.payload = modifiers.code();
    micro.d = r.to(0, 1)?;
    let (a, b) = (r.float(1, 1)?, r.float(2, 1)?);
    marks(&mut micro, 0, a);
    marks(&mut micro, 1, b);
    if simple && modifiers.scale == 0 {
        micro.run = to_nearest!(r, Fmul, modifiers, micro);
    }
    Ok(micro)
}

fn ffma(r: &mut Reader<'_>) -> Read<Micro> {
    let (modifiers, simple) = mode(r)?;
    let mut micro = r.plain_micro::<x::FfmaGeneral>();
    micro.payload = modifiers.code();
    micro.d = r.to(0, 1)?;
    let (a, b, c) = (r.float(1, 1)?, r.float(2, 1)?, r.float(3, 1)?);
    marks(&mut micro, 0, a);
    marks(&mut micro, 1, b);
    marks(&mut micro, 2, c);
    if simple {
        micro.run = to_nearest!(r, Ffma, modifiers, micro);
    }
    Ok(micro)
}

fn fmnmx(r: &mut Reader<'_>) -> Read<Micro> {
    let mut micro = r.micro::<x::Fmnmx>();
    micro.payload = u64::from(r.flag(F::Ftz)) | u64::from(r.flag(F::Nan)) << 1;
    let signs = r.flag(F::XorSign);
    micro.d = r.to(0, 1)?;
    let mut source = |slot| if signs { r.marked(slot) } else { r.float(slot, 1) };
    let (a, b) = (source(1)?, source(2)?);
    if signs {
        micro.run = r.plain_handler::<x::FmnmxSigns>();
    }
    marks(&mut micro, 0, a);
    marks(&mut micro, 1, b);
    micro.from[0] = r.predicate(3)?;
    Ok(micro)
}

fn fsel(r: &mut Reader<'_>) -> Read<Micro> {
    let flushes = r.flag(F::Ftz);
    let mut micro = r.micro::<x::Fsel>();
    micro.payload = flushes.into();
    micro.d = r.to(0, 1)?;
    let (a, b) = (r.float(1, 1)?, r.float(2, 1)?);
    marks(&mut micro, 0, a);
    marks(&mut micro, 1, b);
    micro.from[0] = r.predicate(3)?;
    Ok(micro)
}

fn fset(r: &mut Reader<'_>) -> Read<Micro> {
    let float = r.spelling(F::BFloat) == ".BF";
    let code = r.field(F::Compare);
    let flushes = r.flag(F::Ftz);
    let boolean = boolean(r)?;
    let mut micro = r.plain_micro::<x::Fset>();
    micro.payload =
        u64::from(code & 15) | u64::from(flushes) << 4 | u64::from(float) << 5 | u64::from(boolean) << 8;
    micro.d = r.to(0, 1)?;
    let (a, b) = (r.float(1, 1)?, r.float(2, 1)?);
    marks(&mut micro, 0, a);
    marks(&mut micro, 1, b);
    micro.from[0] = r.predicate(3)?;
    Ok(micro)
}

fn fsetp(r: &mut Reader<'_>) -> Read<Micro> {
    let code = r.field(F::Compare);
    let flushes = r.flag(F::Ftz);
    let boolean = boolean(r)?;
    let mut micro = Micro::new(if flushes {
        by_comparison!(r, code, x::Fsetp, true, [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15])?
    } else {
        by_comparison!(r, code, x::Fsetp, false, [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15])?
    });
    micro.to = [r.predicate_to(0)?, r.predicate_to(1)?];
    let (a, b) = (r.float(2, 1)?, r.float(3, 1)?);
    marks(&mut micro, 0, a);
    marks(&mut micro, 1, b);
    // The comparison's handler wants the boolean operation in `extra`.
    micro.payload = micro.extra.into();
    micro.extra = boolean;
    micro.from[0] = r.predicate(4)?;
    Ok(micro)
}

fn fchk(r: &mut Reader<'_>) -> Read<Micro> {
    let mut micro = r.micro::<x::Fchk>();
    micro.to[0] = r.predicate_to(0)?;
    let (a, b) = (r.float(1, 1)?, r.float(2, 1)?);
    marks(&mut micro, 0, a);
    marks(&mut micro, 1, b);
    Ok(micro)
}

fn fswzadd(r: &mut Reader<'_>) -> Read<Micro> {
    let (modifiers, _) = mode(r)?;
    // Which lanes of a quad take part does not depend on what `.NDV` says of derivatives.
    r.ignore(F::NoDerivative);
    let mut micro = r.plain_micro::<x::Fswzadd>();
    micro.d = r.to(0, 1)?;
    micro.a = r.plain(1, 1)?;
    micro.c = r.plain(2, 1)?;
    let signs = r.word(3)?;
    micro.payload = modifiers.code() | u64::from(signs) << x::QUAD;
    Ok(micro)
}

fn mufu(r: &mut Reader<'_>) -> Read<Micro> {
    let code = r.field(F::Function);
    if mufu::Function::from_code(code).is_none() {
        return Err(Refusal::unsupported(format!("function {code}")));
    }
    let mut micro = r.plain_micro::<x::Mufu>();
    micro.payload = code.into();
    micro.d = r.to(0, 1)?;
    let format = match r.spelling(F::Float32) {
        "" => {
            let b = r.float(1, 1)?;
            marks(&mut micro, 1, b);
            return Ok(micro);
        }
        ".F16" => 1,
        ".BF16" => 2,
        other => return Err(Refusal::unsupported(format!("format {other}"))),
    };
    // The row's immediates are printed as FP32; the lower half is what is read.
    let (source, shift) = r.part(1)?;
    let (keep, flip) = (if source.marks.absolute { 0x7fff } else { 0xffff }, u64::from(source.marks.negate));
    micro.b = source.row;
    micro.payload |= format << 8 | shift << 16 | keep << 32 | flip << 63;
    micro.run = r.plain_handler::<x::MufuHalf>();
    Ok(micro)
}
