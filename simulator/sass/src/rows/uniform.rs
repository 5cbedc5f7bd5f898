//! The uniform datapath.
use super::FieldId as F;
use super::Op::*;
use super::build::*;
use super::float::BOOL;
use super::integer::{INT_COMPARE, IS_EXTENDED, NOT_EXTENDED, SHIFT, SIGNED, WRAP};
use crate::row::NO_BIT;
use crate::{Hide, MarkBits, Slot, SlotKind};

const D: Slot = ureg(16);
const A: Slot = ureg(24);
const A_N: Slot =
    slot(SlotKind::Uniform { lo: 24, marks: marks(72, NO_BIT, NO_BIT), half: crate::HalfBits::None });
const A_I: Slot =
    slot(SlotKind::Uniform { lo: 24, marks: marks(NO_BIT, NO_BIT, 72), half: crate::HalfBits::None });
const SOURCE: Slot =
    slot(SlotKind::Uniform { lo: 32, marks: marks(NO_BIT, NO_BIT, 63), half: crate::HalfBits::None });
const P1: Slot = upred(81);
const P2: Slot = upred(84);
const PS: Slot = upred_not(87, 90);
const CARRY: Slot = PS.hidden(Hide::Unless(F::Extended));
/// Forms: register, immediate third, immediate second. Register operands sit at 32 and 64 as in the vector forms.
const BC: &[u16] = &[1, 2, 4];
const B_ONLY: &[u16] = &[1, 4];

pub(super) fn add(t: &mut Rows) {
    let carry2 = upred_not(77, 80).hidden(Hide::Unless(F::Extended));
    let carry = Hide::NeutralBefore(crate::Arch::Sm100);
    let sum = |a, b, c| [D, P1.hidden(carry), P2.hidden(carry), a, b, c, CARRY, carry2];
    t.ualu(Uiadd3, 0x090, B_ONLY, 0, &sum(A_N, B_NS, third(B_NS)), &[NOT_EXTENDED]);
    t.ualu(Uiadd3, 0x090, B_ONLY, 0, &sum(A_I, B_IS, third(B_IS)), &[IS_EXTENDED]);
    t.ualu(Uimad, 0x0a4, BC, 7 << 81, &[D, A, B_S, third(B_NS), CARRY], &[SIGNED, NOT_EXTENDED]);
    t.ualu(Uimad, 0x0a4, BC, 7 << 81, &[D, A, B_S, third(B_IS), CARRY], &[SIGNED, IS_EXTENDED]);
    let wide = |c| [D, P1.hidden(Hide::Neutral), A, B_S, c, CARRY];
    t.ualu(UimadWide, 0x0a5, B_ONLY, 0, &wide(third(B_NS)), &[SIGNED, NOT_EXTENDED]);
    t.ualu(UimadWide, 0x0a5, B_ONLY, 0, &wide(third(B_IS)), &[SIGNED, IS_EXTENDED]);
    let low = upred_not(68, 71).hidden(Hide::Unless(F::Extended));
    let compare = field(F::Compare, 76, 3, INT_COMPARE);
    let ex = field(F::Extended, 72, 1, &["", ".EX"]);
    t.ualu(Uisetp, 0x08c, B_ONLY, 0, &[P1, P2, A, B_S, PS, low], &[compare, SIGNED, BOOL, ex]);
    let lut = imm(72, 8);
    t.ualu(Ulop3, 0x092, B_ONLY, 0, &[P1.hidden(Hide::Neutral), D, A, B, third(B), lut, PS], &[]);
    t.ualu(Ushf, 0x099, BC, 0, &[D, A, B, third(B)], &SHIFT);
    t.ualu(Uprmt, 0x096, B_ONLY, 0, &[D, A, B, third(B)], &[]);
    let lea =
        |a, b| [D, P1.hidden(Hide::Neutral), a, b, ureg(64).hidden(Hide::LeaOperand), imm(75, 5), CARRY];
    for (high, sx32) in super::integer::LEA_PARTS {
        t.ualu(Ulea, 0x091, B_ONLY, 0, &lea(A_N, B_N), &[high, NOT_EXTENDED, sx32]);
        t.ualu(Ulea, 0x091, B_ONLY, 0, &lea(A_I, B_I), &[high, IS_EXTENDED, sx32]);
    }
    t.ualu(Usel, 0x087, B_ONLY, 0, &[D, A, B, PS], &[]);
    t.ualu(Ubmsk, 0x09b, B_ONLY, 0, &[D, A, B], &[WRAP]);
    t.ualu(Usgxt, 0x09a, B_ONLY, 0, &[D, A, B], &[WRAP, SIGNED]);
    t.row(Umov, 0x882, 0, &[D, imm(32, 32)], &[]).uniform_guard = true;
    t.row(Umov, 0x1c82, 0, &[D, ureg(32)], &[]).uniform_guard = true;
    let sh = field(F::ShiftResult, 74, 1, &["", ".SH"]);
    t.row(Uflo, 0x12bd, 0, &[P1.hidden(Hide::Neutral), D.hidden(Hide::Leading), SOURCE], &[SIGNED, sh])
        .uniform_guard = true;
    t.row(Upopc, 0x12bf, 0, &[D, SOURCE], &[]).uniform_guard = true;
    t.row(Ubrev, 0x12be, 0, &[D, ureg(32)], &[]).uniform_guard = true;
    let size = field(F::Size, 73, 3, &[".U8", ".S8", ".U16", ".S16", "", ".64"]);
    let constant = |index, uniform_index| {
        slot(SlotKind::Constant {
            words: false,
            marks: MarkBits::NONE,
            half: crate::HalfBits::None,
            index,
            uniform_index,
        })
    };
    t.row(Uldc, 0xab9, 0, &[D, constant(NO_BIT, false)], &[size]).uniform_guard = true;
    let (marks, half) = (MarkBits::NONE, crate::HalfBits::None);
    let bindless = slot(SlotKind::Bindless { bank: 24, words: false, marks, half, index: NO_BIT });
    let row = t.row(Uldc, 0x1ab9, 0, &[D, bindless], &[size]);
    (row.uniform_guard, row.until) = (true, crate::Arch::Sm90);
    t.row(Uldc, 0x1abb, 0, &[D, constant(24, true)], &[size]).uniform_guard = true;
}
