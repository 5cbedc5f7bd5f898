//! Integer arithmetic, logic and shifts.
use super::FieldId as F;
use super::Op::*;
use super::build::*;
use super::float::BOOL;
use crate::row::NO_BIT;
use crate::{Arch, HalfBits, Hide, MarkBits, Modifier, Slot, SlotKind};

const D: Slot = reg(16);
const A: Slot = reg(24);
const A_N: Slot = reg_m(24, marks(72, NO_BIT, NO_BIT));
const A_I: Slot = reg_m(24, marks(NO_BIT, NO_BIT, 72));
const P1: Slot = pred(81);
const P2: Slot = pred(84);
const PS: Slot = pred_not(87, 90);
/// Carry-in, printed with `.X` only.
const CARRY: Slot = PS.hidden(Hide::Unless(F::Extended));
pub(super) const SIGNED: Modifier = field(F::Signed, 73, 1, &[".U32", ""]);
pub(super) const INT_COMPARE: &[&str] = &[".F", ".LT", ".EQ", ".LE", ".GT", ".NE", ".GE", ".T"];
pub(super) const WRAP: Modifier = field(F::Wrap, 75, 1, &["", ".W"]);
pub(super) const SHIFT: [Modifier; 4] = [
    field(F::Direction, 76, 1, &[".L", ".R"]),
    WRAP,
    field(F::ShiftType, 73, 2, &[".S64", ".U64", ".S32", ".U32"]),
    field(F::High, 80, 1, &["", ".HI"]),
];
/// A field that is off in one row and on in the next, because it changes how sources read.
pub(super) const NOT_EXTENDED: Modifier = field(F::Extended, 74, 1, &[""]);
pub(super) const IS_EXTENDED: Modifier = field(F::Extended, 74, 1, &["!", ".X"]);

/// LEA's choice of a part: the low one, or the high one of a pair or of a sign-extended register.
pub(super) const LEA_PARTS: [(Modifier, Modifier); 2] = [
    (field(F::High, 80, 1, &[""]), field(F::SignExtend32, 73, 1, &[""])),
    (field(F::High, 80, 1, &["!", ".HI"]), field(F::SignExtend32, 73, 1, &["", ".SX32"])),
];
/// Said, though nothing else exists.
const SATURATES: Modifier = field(F::Saturate, 79, 1, &[".SAT"]);

pub(super) fn add(t: &mut Rows) {
    let carry = Hide::NeutralBefore(Arch::Sm100);
    let sum = [P1.hidden(carry), P2.hidden(carry)];
    let carry2 = pred_not(77, 80).hidden(Hide::Unless(F::Extended));
    let add = |a, b, c| [D, sum[0], sum[1], a, b, c, CARRY, carry2];
    t.alu(Iadd3, 0x010, FORMS_B, 0, &add(A_N, B_NS, third(B_NS)), &[NOT_EXTENDED]);
    t.alu(Iadd3, 0x010, FORMS_B, 0, &add(A_I, B_IS, third(B_IS)), &[IS_EXTENDED]);

    let carry_out = P1.hidden(Hide::Neutral);
    t.alu(Imad, 0x024, FORMS_BC, 7 << 81, &[D, A, B_S, third(B_NS), CARRY], &[SIGNED, NOT_EXTENDED]);
    t.alu(Imad, 0x024, FORMS_BC, 7 << 81, &[D, A, B_S, third(B_IS), CARRY], &[SIGNED, IS_EXTENDED]);
    for (op, base) in [(ImadWide, 0x025), (ImadHi, 0x027)] {
        let slots = |c| [D, carry_out, A, B_S, c, CARRY];
        t.alu(op, base, &[1, 3, 4, 5, 6, 7], 0, &slots(third(B_NS)), &[SIGNED, NOT_EXTENDED]);
        t.alu(op, base, &[1, 3, 4, 5, 6, 7], 0, &slots(third(B_IS)), &[SIGNED, IS_EXTENDED]);
    }
    let low = pred_not(68, 71).hidden(Hide::Unless(F::Extended));
    let compare = field(F::Compare, 76, 3, INT_COMPARE);
    let ex = field(F::Extended, 72, 1, &["", ".EX"]);
    let early = pred_not(68, 71).hidden(Hide::Neutral);
    for (low, since, until) in [(early, Arch::Sm75, Arch::Sm75), (low, Arch::Sm80, Arch::Sm120)] {
        t.span(since, until, |t| {
            t.alu(Isetp, 0x00c, FORMS_B, 0, &[P1, P2, A, B_S, PS, low], &[compare, SIGNED, BOOL, ex]);
        });
    }
    t.alu(Imnmx, 0x017, FORMS_B, 0, &[D, A, B_S, PS], &[SIGNED]);
    t.alu(Iabs, 0x013, FORMS_B, 0, &[D, B_S], &[]);
    let lut = imm(72, 8);
    t.alu(Lop3, 0x012, FORMS_B, 0, &[P1.hidden(Hide::Neutral), D, A, B, third(B), lut, PS], &[]);
    t.alu(Shf, 0x019, FORMS_BC, 0, &[D, A, B, third(B)], &SHIFT);
    let lea = |a, b| [D, P1.hidden(Hide::Neutral), a, b, reg(64).hidden(Hide::LeaOperand), imm(75, 5), CARRY];
    for (high, sx32) in LEA_PARTS {
        t.alu(Lea, 0x011, FORMS_B, 0, &lea(A_N, B_N), &[high, NOT_EXTENDED, sx32]);
        t.alu(Lea, 0x011, FORMS_B, 0, &lea(A_I, B_I), &[high, IS_EXTENDED, sx32]);
    }
    let permute = field(F::Mode, 72, 3, &["", ".F4E", ".B4E", ".RC8", ".ECL", ".ECR", ".RC16"]);
    t.alu(Prmt, 0x016, FORMS_BC, 0, &[D, A, B, third(B)], &[permute]);
    t.alu(Bmsk, 0x01b, FORMS_B, 0, &[D, A, B], &[WRAP]);
    t.alu(Sgxt, 0x01a, FORMS_B, 0, &[D, A, B], &[WRAP, SIGNED]);
    t.alu(Brev, 0x101, FORMS_B, 0, &[D, B], &[]);
    t.alu(Popc, 0x109, FORMS_B, 0, &[D, B_I], &[]);
    let sh = field(F::ShiftResult, 74, 1, &["", ".SH"]);
    t.alu(Flo, 0x100, FORMS_B, 0, &[P1.hidden(Hide::Neutral), D.hidden(Hide::Leading), B_I], &[SIGNED, sh]);
    let four = [
        field(F::Mode, 76, 2, &[".4A"]),
        field(F::Signed, 73, 1, &[".U8", ".S8"]),
        field(F::SourceSigned, 74, 1, &[".U8", ".S8"]),
    ];
    t.alu(Idp, 0x026, &[1, 5, 6], 0, &[D, A, B, third(B_N)], &four);
    let two = [
        field(F::Mode, 76, 2, &["!", ".2A.LO", "!", ".2A.HI"]),
        field(F::Signed, 73, 1, &[".U16", ".S16"]),
        four[2],
    ];
    t.alu(Idp, 0x026, &[1, 5, 6], 0, &[D, A, B, third(B_N)], &two);
    t.alu(Vabsdiff, 0x014, FORMS_BC, 7 << 81, &[D, A, B, third(B)], &[SIGNED]);
    let accumulate = field(F::Accumulate, 75, 1, &["", ".ACC"]);
    t.alu(
        Vabsdiff4,
        0x015,
        FORMS_BC,
        7 << 81,
        &[D, A, B, third(B)],
        &[field(F::Signed, 73, 1, &[".U8", ""]), accumulate],
    );
    let narrow = field(F::DestinationType, 76, 2, &[".U8", ".S8", ".U16", ".S16"]);
    t.alu(I2i, 0x038, FORMS_B, 0, &[D, B_S], &[narrow, field(F::SourceType, 78, 1, &[".S32"]), SATURATES]);
    // Two numbers clamped and packed, with the low bits of a third above them as far as they fit.
    let to = |names| field(F::DestinationType, 76, 3, names);
    let from = field(F::SourceType, 79, 1, &[".S32"]);
    let above = |half| slot(SlotKind::Register { lo: 64, marks: MarkBits::NONE, half, reuse: 4, tag: "" });
    for (since, until, mode) in [
        (Arch::Sm75, Arch::Sm80, &[".SAT"][..]),
        (Arch::Sm86, Arch::Sm89, &[".SAT", "", ".SATRELU"]),
        (Arch::Sm90, Arch::Sm120, &["", ".SAT", ".SATRELU"]),
    ] {
        let mode = field(F::Saturate, 74, 2, mode);
        t.span(since, until, |t| {
            for (third, fixed, names) in [
                (above(HalfBits::Upper(72)), 0, &[".U8", ".S8"][..]),
                (reg(64), 0, &["!", "!", ".U16", ".S16"]),
                (reg_tag(64, ".28"), 3 << 72, &["!", "!", "!", "!", ".U2", ".S2"]),
                (reg_tag(64, ".24"), 2 << 72, &["!", "!", "!", "!", "!", "!", ".U4", ".S4"]),
            ] {
                t.alu(I2ip, 0x039, FORMS_B, fixed, &[D, A, B_S, third], &[to(names), from, mode]);
            }
        });
    }
    let mut hopper = Rows::default();
    let first = hopper.0.len();
    let packed = field(F::Packed, 73, 1, &["", ".16x2"]);
    hopper.alu(Viadd, 0x036, FORMS_B, 0, &[D, A, B_N], &[packed]);
    let kind = field(F::Signed, 72, 2, &[".U32", "", ".U16x2", ".S16x2"]);
    let relu = field(F::Relu, 76, 1, &["", ".RELU"]);
    hopper.alu(Vimnmx3, 0x00f, FORMS_B, 0, &[D, A, B, third(B), PS], &[kind, relu]);
    // With two predicates that are written, if the first is not PT.
    hopper.alu(
        Vimnmx,
        0x048,
        FORMS_B,
        7 << 81,
        &[D, A, B_S, PS, pred(84).hidden(Hide::Always)],
        &[kind, relu],
    );
    hopper.alu(Vimnmx, 0x048, FORMS_B, 0, &[D, pred(81), pred(84), A, B_S, PS], &[kind, relu]);
    hopper.alu(Viaddmnmx, 0x046, FORMS_BC, 0, &[D, A, B_N, third(B), PS], &[kind, relu]);
    // Blackwell writes predicates too, which is not in the table.
    for row in hopper.0[first..].iter_mut().filter(|row| row.op == Vimnmx) {
        row.until = Arch::Sm90;
    }
    for mut row in hopper.0 {
        row.since = Arch::Sm90;
        t.0.push(row);
    }
}
