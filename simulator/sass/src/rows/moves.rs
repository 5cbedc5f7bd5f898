//! Moves, selections, predicates, votes and shuffles.
use super::FieldId as F;
use super::Op::*;
use super::build::*;
use super::float::{FTZ, ROUND};
use crate::{Arch, Hide, Slot, SlotKind};

const D: Slot = reg(16);
const A: Slot = reg(24);
const P1: Slot = pred(81);
const PS: Slot = pred_not(87, 90);
const SPECIAL: Slot = slot(SlotKind::Special);
const PR: Slot = slot(SlotKind::AllPredicates);

/// Signs with which FSWZADD takes its sources, lane by lane of a quad, the last lane first.
const SWIZZLE: Slot = slot(SlotKind::Signs(32));

pub(super) fn add(t: &mut Rows) {
    let derivative = field(F::NoDerivative, 77, 1, &["", ".NDV"]);
    t.row(Fswzadd, 0x822, 0, &[D, A, reg(64), SWIZZLE], &[FTZ, ROUND, derivative]);
    // Which lanes of each quad are written, printed where not all are.
    t.alu(Mov, 0x002, FORMS_B, 0, &[D, B, imm(72, 4).hidden(Hide::Ones)], &[]);
    t.alu(Sel, 0x007, FORMS_B, 0, &[D, A, B, PS], &[]);
    t.row(S2r, 0x919, 0, &[D, SPECIAL], &[]);
    t.row(S2ur, 0x9c3, 0, &[ureg(16), SPECIAL], &[]).uniform_guard = true;
    t.row(Cs2r, 0x805, 0, &[D, SPECIAL], &[field(F::Pair64, 80, 1, &[".32", ""])]);
    let byte = field(F::PredicateByte, 76, 2, &["", ".B1", ".B2", ".B3"]);
    t.span(Arch::Sm75, Arch::Sm89, |t| t.alu(P2r, 0x003, FORMS_B, 0, &[D, PR, A, B_S], &[byte]));
    t.span(Arch::Sm90, Arch::Sm120, |t| t.alu(P2r, 0x003, FORMS_B, 0, &[D, PR, A, B], &[byte]));
    t.alu(R2p, 0x004, FORMS_B, 0, &[PR, A, B], &[behind(1, byte)]);
    let vote = field(F::Function, 72, 2, &[".ALL", ".ANY", ".EQ"]);
    t.row(Vote, 0x806, 0, &[D.hidden(Hide::Neutral), P1, PS], &[vote]);
    t.row(Voteu, 0x886, 0, &[ureg(16).hidden(Hide::Neutral), upred(81), PS], &[vote]);
    let lut_a = imm_split((64, 3), (72, 5));
    let lut_b = imm(16, 8);
    t.row(Plop3, 0x81c, 0, &[P1, pred(84), PS, pred_not(77, 80), pred_not(68, 71), lut_a, lut_b], &[]);
    let shuffle = field(F::Function, 58, 2, &[".IDX", ".UP", ".DOWN", ".BFLY"]);
    let lane_imm = imm(53, 5);
    let clamp_imm = imm(40, 13);
    for (opcode, lane, clamp) in [
        (0x389, reg(32), reg(64)),
        (0x589, reg(32), clamp_imm),
        (0x989, lane_imm, reg(64)),
        (0xf89, lane_imm, clamp_imm),
    ] {
        t.row(Shfl, opcode, 0, &[P1, D, A, lane, clamp], &[shuffle]);
    }
    let pair = field(F::Pair64, 73, 1, &["", ".U64"]);
    t.row(Match, 0x3a1, 0, &[P1, D, A], &[field(F::Function, 79, 1, &[".ALL"]), pair]);
    t.row(
        Match,
        0x3a1,
        0,
        &[D, A, P1.hidden(Hide::Always)],
        &[field(F::Function, 79, 1, &["!", ".ANY"]), pair],
    );
    let plain = field(F::Function, 84, 1, &[""]);
    let or = field(F::Function, 84, 1, &["!", ".OR"]);
    t.span(Arch::Sm90, Arch::Sm120, |t| {
        t.row(R2ur, 0x2ca, 0, &[P1.hidden(Hide::Neutral), ureg(16), A], &[plain]);
        t.row(R2ur, 0x2ca, 0, &[P1, ureg(16), A], &[or]);
    });
    // The signs of registers instead of predicates.
    let signs = |lo| reg_tag(lo, ".SIGN");
    let sign = |operand| behind(operand, field(F::SignOf, 91, 1, &[".SIGN", ".SIGN"]));
    let table = imm(72, 8);
    t.alu(Plop3, 0x01f, &[1, 5, 6], 0, &[P1, pred(84), signs(24), B, signs(64), table, lut_b], &[sign(3)]);
    t.alu(Plop3, 0x01e, &[1, 5, 6], 0, &[P1, pred(84), PS, B, signs(64), table, lut_b], &[sign(3)]);
    t.span(Arch::Sm80, Arch::Sm120, |t| {
        let c = pred_not(68, 71);
        t.alu(Plop3, 0x01d, &[1, 5, 6], 0, &[P1, pred(84), PS, B, c, table, lut_b], &[sign(3)]);
    });
    // Bit 67 takes the third source from the uniform predicates.
    t.row(Plop3, 0x81c, 1 << 67, &[P1, pred(84), PS, pred_not(77, 80), upred_not(68, 71), lut_a, lut_b], &[]);
    t.row(R2ur, 0x3c2, 0, &[P1.hidden(Hide::Neutral), ureg(16), A], &[]).until = Arch::Sm89;
    let redux = field(F::Function, 78, 3, &["", ".OR", ".XOR", ".SUM", ".MIN", ".MAX"]);
    t.row(Redux, 0x3c4, 0, &[ureg(16), A], &[redux, field(F::Signed, 73, 1, &["", ".S32"])]).since =
        Arch::Sm80;
}
