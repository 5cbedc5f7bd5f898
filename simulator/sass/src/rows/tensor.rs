//! Tensor cores and matrix moves.
use super::FieldId as F;
use super::Op::*;
use super::build::*;
use crate::Arch;

pub(super) fn add(t: &mut Rows) {
    let shape = field_split(F::Shape, (75, 1), (78, 1), &[".1688", ".16816", ".1684"]);
    let accumulate = field(F::Accumulate, 76, 1, &[".F16", ".F32"]);
    let kind = field(F::SourceType, 82, 2, &["", ".BF16", ".TF32"]);
    t.row(Hmma, 0x23c, 0, &[reg(16), reg(24), reg(32), reg(64)], &[shape, accumulate, kind]);
    let dmma = [reg(16), reg(24), reg(32), reg(64)];
    t.row(Dmma, 0x23f, 0, &dmma, &[field(F::Shape, 78, 1, &[".884"])]).until = Arch::Sm89;
    t.row(Dmma, 0x23f, 0, &dmma, &[field(F::Shape, 78, 1, &[".8x8x4"])]).since = Arch::Sm90;
    let operands = [reg(16), reg_tag(24, ".ROW"), reg_tag(32, ".COL"), reg(64)];
    let shape =
        field_split(F::Shape, (75, 1), (85, 2), &[".8816", "!", ".8832", "!", ".16816", ".16832", ".16864"]);
    let integers: &'static [&'static str] = &[".U8", ".S8", ".U4", ".S4"];
    let modifiers = [
        shape,
        field_split(F::SourceType, (76, 1), (83, 1), integers),
        field_split(F::DestinationType, (78, 1), (84, 1), integers),
        field(F::Saturate, 82, 1, &["", ".SAT"]),
    ];
    t.row(Imma, 0x237, 1 << 74, &operands, &modifiers);
    t.row(Movm, 0x23a, 0, &[reg(16), reg(24)], &[]);
}
