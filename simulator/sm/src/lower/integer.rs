//! Integer arithmetic, logic and shifts, of the vector and the uniform datapath.

use sass::lane::Sign;
use sass::lane::integer::{Direction, PermuteMode, ShiftKind};
use sass::{FieldId as F, Marks, Op, Operand};

use super::super::execute::integer as x;
use super::super::micro::{Micro, PredicateOut, RowIndex};
use super::reader::{Read, Reader, Refusal, Widen};

pub(super) fn lower(r: &mut Reader<'_>) -> Option<Read<Micro>> {
    Some(match r.instruction.op {
        Op::Iadd3 | Op::Uiadd3 => iadd3(r),
        Op::Imad | Op::Uimad => imad(r),
        Op::ImadWide | Op::UimadWide => imad_wide(r),
        Op::ImadHi => imad_hi(r),
        Op::Isetp | Op::Uisetp => isetp(r),
        Op::Imnmx => imnmx(r),
        Op::Vimnmx => vimnmx(r),
        Op::Vimnmx3 => vimnmx3(r),
        Op::Viaddmnmx => viaddmnmx(r),
        Op::Vabsdiff => vabsdiff(r),
        Op::Vabsdiff4 => vabsdiff4(r),
        Op::I2i => i2i(r),
        Op::I2ip => i2ip(r),
        Op::Iabs => unary::<x::Iabs>(r, 0),
        Op::Brev | Op::Ubrev => unary::<x::Brev>(r, 0),
        Op::Popc | Op::Upopc => unary::<x::Popc>(r, 0),
        Op::Flo | Op::Uflo => flo(r),
        Op::Lop3 | Op::Ulop3 => lop3(r),
        Op::Shf | Op::Ushf => shf(r),
        Op::Lea | Op::Ulea => lea(r),
        Op::Prmt | Op::Uprmt => prmt(r),
        Op::Bmsk => bmsk(r),
        Op::Sgxt => sgxt(r),
        Op::Idp => idp(r),
        Op::Viadd => viadd(r),
        _ => return None,
    })
}

/// The value of `.U32` against the default, signed.
fn sign(r: &mut Reader<'_>, field: F) -> Read<Sign> {
    match r.spelling(field) {
        ".U32" | ".U8" | ".U16" => Ok(Sign::Unsigned),
        "" | ".S32" | ".S8" | ".S16" => Ok(Sign::Signed),
        other => Err(Refusal::unsupported(format!("type {other}"))),
    }
}

/// An H200 refuses IADD3 and LEA, and their uniform forms, so.
const BOTH_NEGATED: &str = "the first two sources are both negated";

fn bits(flags: &[bool]) -> u8 {
    flags.iter().enumerate().fold(0, |bits, (i, flag)| bits | u8::from(*flag) << i)
}

fn iadd3(r: &mut Reader<'_>) -> Read<Micro> {
    let extended = r.flag(F::Extended);
    let mut micro = r.micro::<x::Add3>();
    micro.d = r.to(0, 1)?;
    micro.to = [r.predicate_to(1)?, r.predicate_to(2)?];
    let mut flip = [false; 3];
    for (i, flip) in flip.iter_mut().enumerate() {
        let (row, mark) = if extended { r.invertible(3 + i)? } else { r.negatable(3 + i)? };
        *flip = mark;
        *[&mut micro.a, &mut micro.b, &mut micro.c][i] = row;
    }
    if extended {
        micro.from[0] = r.predicate(6)?;
        micro.from[1] = r.predicate(7)?;
    } else {
        // Printed, and read, with `.X` only.
        r.ignore_operand(6);
        r.ignore_operand(7);
    }
    if flip[0] && flip[1] {
        return Err(Refusal::Illegal(BOTH_NEGATED));
    }
    micro.extra = bits(&flip);
    let carries = micro.to != [PredicateOut::NONE; 2];
    micro.run = match (extended, carries, micro.extra, micro.c) {
        (false, false, 0, RowIndex::ZERO) => r.handler::<x::Add>(),
        (false, false, 0, _) => r.handler::<x::Add3>(),
        (false, false, ..) => r.handler::<x::Add3Negated>(),
        (false, true, 0, RowIndex::ZERO) => r.handler::<x::AddCarry>(),
        (false, true, ..) => r.handler::<x::Add3Carry<false>>(),
        (true, false, ..) => r.handler::<x::Add3Extended>(),
        (true, true, ..) => r.handler::<x::Add3Carry<true>>(),
    };
    Ok(micro)
}

fn imad(r: &mut Reader<'_>) -> Read<Micro> {
    let extended = r.flag(F::Extended);
    // The low 32 bits of a product are the same for both.
    r.ignore(F::Signed);
    let mut micro = r.micro::<x::Mad>();
    micro.d = r.to(0, 1)?;
    micro.a = r.plain(1, 1)?;
    let one = matches!(r.operand(2)?, Operand::Immediate { bits: 1, .. });
    micro.b = r.plain(2, 1)?;
    let (c, flip) = if extended { r.invertible(3)? } else { r.negatable(3)? };
    micro.c = c;
    if extended {
        micro.from[0] = r.predicate(4)?;
        micro.extra = bits(&[flip]);
        micro.run = r.handler::<x::MadExtended>();
        return Ok(micro);
    }
    r.ignore_operand(4);
    let none = micro.a == RowIndex::ZERO || micro.b == RowIndex::ZERO;
    if flip {
        micro.run = r.handler::<x::MadNegated>();
    } else if none {
        micro = Micro { b: micro.c, ..micro };
        micro.run = r.handler::<x::Move>();
    } else if one {
        micro = Micro { b: micro.c, ..micro };
        micro.run = r.handler::<x::Add>();
    } else if micro.c == RowIndex::ZERO {
        micro.run = r.handler::<x::Mul>();
    }
    Ok(micro)
}

/// The operands of IMAD.WIDE and IMAD.HI.
fn wide(r: &mut Reader<'_>, words: u16) -> Read<(Micro, Sign, bool, bool)> {
    let sign = sign(r, F::Signed)?;
    let extended = r.flag(F::Extended);
    let mut micro = r.plain_micro::<x::MadWideCarry>();
    micro.d = r.to(0, words)?;
    micro.to[0] = r.predicate_to(1)?;
    micro.a = r.plain(2, 1)?;
    micro.b = r.plain(3, 1)?;
    let widen = if sign == Sign::Signed { Widen::Sign } else { Widen::Zero };
    let c = r.source(4, 2, widen)?;
    if c.marks.absolute || (if extended { c.marks.negate } else { c.marks.invert }) {
        return Err(Refusal::unsupported("marks of the addend"));
    }
    micro.c = c.row;
    if extended {
        micro.from[0] = r.predicate(5)?;
    } else {
        r.ignore_operand(5);
    }
    let flip = c.marks.negate || c.marks.invert;
    micro.extra = bits(&[flip, extended, sign == Sign::Signed]);
    Ok((micro, sign, extended, flip))
}

fn imad_wide(r: &mut Reader<'_>) -> Read<Micro> {
    let (mut micro, sign, extended, flip) = wide(r, 2)?;
    if !extended && !flip && micro.to[0] == PredicateOut::NONE {
        micro.run = match sign {
            Sign::Signed => r.handler::<x::MadWide<true>>(),
            Sign::Unsigned => r.handler::<x::MadWide<false>>(),
        };
    }
    Ok(micro)
}

fn imad_hi(r: &mut Reader<'_>) -> Read<Micro> {
    let (mut micro, sign, extended, flip) = wide(r, 1)?;
    micro.run = if extended || flip || micro.to[0] != PredicateOut::NONE {
        r.plain_handler::<x::MadHigh>()
    } else {
        match sign {
            Sign::Signed => r.handler::<x::MadHighPlain<true>>(),
            Sign::Unsigned => r.handler::<x::MadHighPlain<false>>(),
        }
    };
    Ok(micro)
}

/// Calls a handler that is generic over a comparison's number.
macro_rules! by_comparison {
    ($r:expr, $code:expr, $x:path, $flag:literal, [$($n:literal)*]) => {{
        use $x as Handler;
        match $code {
            $($n => Ok($r.handler::<Handler<$n, $flag>>()),)*
            other => Err(Refusal::unsupported(format!("comparison {other}"))),
        }
    }};
}
pub(super) use by_comparison;

/// The number of `.AND`, `.OR`, `.XOR` in [`Micro::extra`].
pub(super) fn boolean(r: &mut Reader<'_>) -> Read<u8> {
    match r.spelling(F::Boolean) {
        ".AND" => Ok(0),
        ".OR" => Ok(1),
        ".XOR" => Ok(2),
        other => Err(Refusal::unsupported(format!("boolean operation {other:?}"))),
    }
}

fn isetp(r: &mut Reader<'_>) -> Read<Micro> {
    let code = r.field(F::Compare);
    let sign = sign(r, F::Signed)?;
    let extended = r.flag(F::Extended);
    let run = match sign {
        Sign::Signed => by_comparison!(r, code, x::Isetp, true, [0 1 2 3 4 5 6 7])?,
        Sign::Unsigned => by_comparison!(r, code, x::Isetp, false, [0 1 2 3 4 5 6 7])?,
    };
    let mut micro = Micro::new(run);
    micro.extra = boolean(r)?;
    micro.to = [r.predicate_to(0)?, r.predicate_to(1)?];
    micro.a = r.plain(2, 1)?;
    micro.b = r.plain(3, 1)?;
    micro.from[0] = r.predicate(4)?;
    if extended {
        micro.from[1] = r.predicate(5)?;
        micro.payload = u64::from(code) | u64::from(sign == Sign::Signed) << 8;
        micro.run = r.plain_handler::<x::IsetpExtended>();
    } else {
        r.ignore_operand(5);
    }
    Ok(micro)
}

fn imnmx(r: &mut Reader<'_>) -> Read<Micro> {
    let mut micro = match sign(r, F::Signed)? {
        Sign::Signed => r.micro::<x::Imnmx<true>>(),
        Sign::Unsigned => r.micro::<x::Imnmx<false>>(),
    };
    micro.d = r.to(0, 1)?;
    micro.a = r.plain(1, 1)?;
    micro.b = r.plain(2, 1)?;
    micro.from[0] = r.predicate(3)?;
    Ok(micro)
}

/// `D, B` with B possibly complemented.
fn unary<T: super::super::micro::Execute>(r: &mut Reader<'_>, slot: usize) -> Read<Micro> {
    let mut micro = r.micro::<T>();
    micro.d = r.to(slot, 1)?;
    let (b, invert) = r.invertible(slot + 1)?;
    micro.b = b;
    if invert && matches!(r.instruction.op, Op::Iabs | Op::Brev | Op::Ubrev) {
        return Err(Refusal::unsupported("a complemented source"));
    }
    micro.extra = bits(&[invert]);
    Ok(micro)
}

fn flo(r: &mut Reader<'_>) -> Read<Micro> {
    let sign = sign(r, F::Signed)?;
    let shift = r.flag(F::ShiftResult);
    let mut micro = unary::<x::Flo>(r, 1)?;
    micro.to[0] = r.predicate_to(0)?;
    micro.extra |= bits(&[false, sign == Sign::Signed, shift]);
    Ok(micro)
}

fn lop3(r: &mut Reader<'_>) -> Read<Micro> {
    let mut micro = r.micro::<x::Lop3>();
    micro.to[0] = r.predicate_to(0)?;
    micro.d = r.to(1, 1)?;
    micro.a = r.plain(2, 1)?;
    micro.b = r.plain(3, 1)?;
    micro.c = r.plain(4, 1)?;
    let table = r.immediate(5)? as u8;
    micro.payload = u64::from(table);
    micro.from[0] = r.predicate(6)?;
    if micro.to[0] != PredicateOut::NONE {
        micro.run = r.handler::<x::Lop3Predicate>();
        return Ok(micro);
    }
    // The tables that compilers use for two operands have handlers of their own.
    micro.run = match table {
        0xc0 => r.handler::<x::And>(),
        0xfc => r.handler::<x::Or>(),
        0x3c => r.handler::<x::Xor>(),
        0x96 => r.handler::<x::Xor3>(),
        _ => micro.run,
    };
    Ok(micro)
}

fn shf(r: &mut Reader<'_>) -> Read<Micro> {
    let (wide, sign) = match r.spelling(F::ShiftType) {
        ".S64" => (true, Sign::Signed),
        ".U64" => (true, Sign::Unsigned),
        ".S32" => (false, Sign::Signed),
        ".U32" => (false, Sign::Unsigned),
        other => return Err(Refusal::unsupported(format!("type {other}"))),
    };
    let direction = if r.flag(F::Direction) { Direction::Right } else { Direction::Left };
    let kind = ShiftKind { direction, wide, sign, wrap: r.flag(F::Wrap), high: r.flag(F::High) };
    let mut micro = if wide { r.micro::<x::Shf>() } else { r.micro::<x::ShfWord>() };
    micro.d = r.to(0, 1)?;
    micro.a = r.plain(1, 1)?;
    let count = match r.operand(2)? {
        Operand::Immediate { bits, .. } => Some(bits as u32),
        _ => None,
    };
    micro.b = r.plain(2, 1)?;
    micro.c = r.plain(3, 1)?;
    micro.payload = x::shift_code(kind);
    // A known count of less than 32 leaves one word of the pair shifted: plain shifts.
    if let Some(count) = count.map(|count| if kind.wrap { count & if wide { 63 } else { 31 } } else { count })
        && count < 32
    {
        let run = match (kind.direction, kind.sign, kind.high) {
            (Direction::Left, _, false) => Some(r.handler::<x::ShiftLeft>()),
            (Direction::Right, Sign::Unsigned, true) => Some(r.handler::<x::ShiftRight>()),
            (Direction::Right, Sign::Signed, true) => Some(r.handler::<x::ShiftRightSigned>()),
            (Direction::Left, _, true) if count > 0 => Some(r.handler::<x::FunnelLeft>()),
            (Direction::Right, _, false) if count > 0 => Some(r.handler::<x::FunnelRight>()),
            _ => None,
        };
        if let Some(run) = run {
            micro.run = run;
            micro.payload = u64::from(count);
        }
    }
    Ok(micro)
}

fn lea(r: &mut Reader<'_>) -> Read<Micro> {
    let (high, extended, sign_extend) = (r.flag(F::High), r.flag(F::Extended), r.flag(F::SignExtend32));
    let mut micro = r.plain_micro::<x::Lea>();
    micro.d = r.to(0, 1)?;
    micro.to[0] = r.predicate_to(1)?;
    let mut source = |slot| if extended { r.invertible(slot) } else { r.negatable(slot) };
    let ((a, negate_a), (b, negate_b)) = (source(2)?, source(3)?);
    (micro.a, micro.b) = (a, b);
    if high && !sign_extend {
        micro.c = r.plain(4, 1)?;
    } else {
        r.ignore_operand(4);
    }
    let shift = r.immediate(5)?;
    if extended {
        micro.from[0] = r.predicate(6)?;
    } else {
        r.ignore_operand(6);
    }
    if negate_a && negate_b {
        return Err(Refusal::Illegal(BOTH_NEGATED));
    }
    micro.payload = shift & 31;
    micro.extra = bits(&[negate_a, negate_b, high, extended, sign_extend]);
    if micro.extra == 0 && micro.to[0] == PredicateOut::NONE {
        micro.run = r.handler::<x::LeaPlain>();
    }
    Ok(micro)
}

fn prmt(r: &mut Reader<'_>) -> Read<Micro> {
    let mode = match r.spelling(F::Mode) {
        "" => PermuteMode::Index,
        ".F4E" => PermuteMode::ForwardExtract,
        ".B4E" => PermuteMode::BackwardExtract,
        ".RC8" => PermuteMode::ReplicateByte,
        ".ECL" => PermuteMode::EdgeClampLeft,
        ".ECR" => PermuteMode::EdgeClampRight,
        ".RC16" => PermuteMode::ReplicateHalf,
        other => return Err(Refusal::unsupported(format!("mode {other}"))),
    };
    let mut micro = r.micro::<x::Prmt>();
    micro.d = r.to(0, 1)?;
    micro.a = r.plain(1, 1)?;
    micro.b = r.plain(2, 1)?;
    micro.c = r.plain(3, 1)?;
    micro.payload = x::permute_code(mode);
    Ok(micro)
}

fn bmsk(r: &mut Reader<'_>) -> Read<Micro> {
    let wrap = r.flag(F::Wrap);
    let mut micro = r.plain_micro::<x::Bmsk>();
    micro.d = r.to(0, 1)?;
    micro.a = r.plain(1, 1)?;
    micro.b = r.plain(2, 1)?;
    micro.extra = bits(&[wrap]);
    Ok(micro)
}

fn sgxt(r: &mut Reader<'_>) -> Read<Micro> {
    let wrap = r.flag(F::Wrap);
    let sign = sign(r, F::Signed)?;
    let mut micro = r.plain_micro::<x::Sgxt>();
    micro.d = r.to(0, 1)?;
    micro.a = r.plain(1, 1)?;
    micro.b = r.plain(2, 1)?;
    micro.extra = bits(&[wrap, sign == Sign::Signed]);
    Ok(micro)
}

fn idp(r: &mut Reader<'_>) -> Read<Micro> {
    let signs = [sign(r, F::Signed)?, sign(r, F::SourceSigned)?].map(|sign| sign == Sign::Signed);
    let mut micro = match r.spelling(F::Mode) {
        ".4A" => r.plain_micro::<x::Idp4>(),
        ".2A.LO" => r.plain_micro::<x::Idp2<false>>(),
        ".2A.HI" => r.plain_micro::<x::Idp2<true>>(),
        other => return Err(Refusal::unsupported(format!("mode {other}"))),
    };
    micro.d = r.to(0, 1)?;
    micro.a = r.plain(1, 1)?;
    micro.b = r.plain(2, 1)?;
    let (c, negate) = r.negatable(3)?;
    micro.c = c;
    micro.extra = bits(&[signs[0], signs[1], negate]);
    Ok(micro)
}

fn viadd(r: &mut Reader<'_>) -> Read<Micro> {
    let packed = r.flag(F::Packed);
    let mut micro = r.micro::<x::Add>();
    micro.d = r.to(0, 1)?;
    micro.a = r.plain(1, 1)?;
    let (b, negate) = r.negatable(2)?;
    micro.b = b;
    if packed {
        micro.run = r.plain_handler::<x::ViaddPacked>();
        micro.extra = bits(&[negate]);
    } else if negate {
        micro.run = r.handler::<x::Subtract>();
    }
    Ok(micro)
}

/// Bits of [`Micro::extra`] for what VIMNMX, VIMNMX3 and VIADDMNMX share: numbers with sign, two of 16 bits, `.RELU`.
fn video(r: &mut Reader<'_>) -> Read<u8> {
    let (signed, packed) = match r.spelling(F::Signed) {
        ".U32" => (false, false),
        "" => (true, false),
        ".U16x2" => (false, true),
        ".S16x2" => (true, true),
        other => return Err(Refusal::unsupported(format!("type {other}"))),
    };
    Ok(bits(&[signed, packed, r.flag(F::Relu)]))
}

fn vimnmx(r: &mut Reader<'_>) -> Read<Micro> {
    let extra = video(r)?;
    if matches!(r.instruction.operands().get(1), Some(Operand::Predicate { .. })) {
        if r.flag(F::Relu) && matches!(r.spelling(F::Signed), ".U32" | ".U16x2") {
            return Err(Refusal::Illegal("an H200 has no .RELU of numbers without signs here"));
        }
        let mut micro = r.plain_micro::<x::VimnmxWhich>();
        micro.extra = extra;
        micro.d = r.to(0, 1)?;
        micro.to = [r.predicate_to(1)?, r.predicate_to(2)?];
        micro.a = r.plain(3, 1)?;
        micro.b = r.plain(4, 1)?;
        micro.from[0] = r.predicate(5)?;
        return Ok(micro);
    }
    // Without the first predicate the second is none either, whatever its bits.
    r.ignore_operand(4);
    if extra <= bits(&[true]) {
        return imnmx(r);
    }
    let mut micro = r.plain_micro::<x::Vimnmx>();
    micro.extra = extra;
    micro.d = r.to(0, 1)?;
    micro.a = r.plain(1, 1)?;
    micro.b = r.plain(2, 1)?;
    micro.from[0] = r.predicate(3)?;
    Ok(micro)
}

fn vimnmx3(r: &mut Reader<'_>) -> Read<Micro> {
    let mut micro = r.plain_micro::<x::Vimnmx3>();
    micro.extra = video(r)?;
    micro.d = r.to(0, 1)?;
    micro.a = r.plain(1, 1)?;
    micro.b = r.plain(2, 1)?;
    micro.c = r.plain(3, 1)?;
    micro.from[0] = r.predicate(4)?;
    Ok(micro)
}

fn viaddmnmx(r: &mut Reader<'_>) -> Read<Micro> {
    let extra = video(r)?;
    let mut micro = r.plain_micro::<x::Viaddmnmx>();
    micro.d = r.to(0, 1)?;
    micro.a = r.plain(1, 1)?;
    let (b, negate) = r.negatable(2)?;
    micro.b = b;
    micro.c = r.plain(3, 1)?;
    micro.from[0] = r.predicate(4)?;
    micro.extra = extra | bits(&[false, false, false, negate]);
    Ok(micro)
}

fn vabsdiff(r: &mut Reader<'_>) -> Read<Micro> {
    let sign = sign(r, F::Signed)?;
    let mut micro = r.plain_micro::<x::Vabsdiff>();
    micro.d = r.to(0, 1)?;
    micro.a = r.plain(1, 1)?;
    micro.b = r.plain(2, 1)?;
    micro.c = r.plain(3, 1)?;
    micro.extra = bits(&[sign == Sign::Signed]);
    Ok(micro)
}

fn vabsdiff4(r: &mut Reader<'_>) -> Read<Micro> {
    let accumulate = r.flag(F::Accumulate);
    let mut micro = vabsdiff(r)?;
    micro.run = r.plain_handler::<x::Vabsdiff4>();
    micro.extra |= bits(&[false, accumulate]);
    Ok(micro)
}

/// What I2I and I2IP make, in bits, and whether it has a sign: always from 32 bits with sign, and always clamped.
fn narrowed(r: &mut Reader<'_>) -> Read<(u64, bool)> {
    let to = match r.spelling(F::DestinationType) {
        ".U2" => (2, false),
        ".S2" => (2, true),
        ".U4" => (4, false),
        ".S4" => (4, true),
        ".U8" => (8, false),
        ".S8" => (8, true),
        ".U16" => (16, false),
        ".S16" => (16, true),
        other => return Err(Refusal::unsupported(format!("type {other}"))),
    };
    match (r.spelling(F::SourceType), r.spelling(F::Saturate)) {
        (".S32", ".SAT") => {}
        (from, saturate) => return Err(Refusal::unsupported(format!("form {from}{saturate}"))),
    }
    Ok(to)
}

fn i2i(r: &mut Reader<'_>) -> Read<Micro> {
    let (width, signed) = narrowed(r)?;
    let mut micro = r.plain_micro::<x::I2i>();
    micro.d = r.to(0, 1)?;
    micro.b = r.plain(1, 1)?;
    micro.payload = width;
    micro.extra = bits(&[signed]);
    Ok(micro)
}

/// I2IP: the bits of a number in the payload. The third source is what stands above the packed numbers.
fn i2ip(r: &mut Reader<'_>) -> Read<Micro> {
    let (width, signed) = narrowed(r)?;
    let mut micro = r.plain_micro::<x::I2ip>();
    micro.d = r.to(0, 1)?;
    micro.a = r.plain(1, 1)?;
    micro.b = r.plain(2, 1)?;
    let (c, shift) = r.part(3)?;
    if c.marks != Marks::default() {
        return Err(Refusal::unsupported("marks of the third source"));
    }
    micro.c = c.row;
    micro.payload = width | shift << 8;
    micro.extra = bits(&[signed]);
    Ok(micro)
}
