//! Tensor cores and matrix moves.
use super::FieldId as F;
use super::Op::*;
use super::build::*;

pub(super) fn add(t: &mut Rows) {
    let shape = field_split(F::Shape, (75, 1), (78, 1), &[".1688", ".16816", ".1684"]);
    let accumulate = field(F::Accumulate, 76, 1, &[".F16", ".F32"]);
    let kind = field(F::SourceType, 82, 2, &["", ".BF16", ".TF32"]);
    t.row(Hmma, 0x23c, 0, &[reg(16), reg(24), reg(32), reg(64)], &[shape, accumulate, kind]);
    t.row(Dmma, 0x23f, 0, &[reg(16), reg(24), reg(32), reg(64)], &[]);
    t.row(Movm, 0x23a, 0, &[reg(16), reg(24)], &[]);
}
