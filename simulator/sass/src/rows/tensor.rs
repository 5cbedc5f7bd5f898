//! Tensor cores and matrix moves.
use super::FieldId as F;
use super::Op::*;
use super::build::*;
use super::float::ROUND;
use crate::row::NO_BIT;
use crate::{Arch, Hide, Slot};

const D: Slot = reg(16);
const A: Slot = reg(24);
const C: Slot = reg(64);
/// Sparsity metadata: the register, and which quarter of the lanes supplies it.
const METADATA: Slot = reg(40);
const SELECTOR: Slot = imm(48, 2);
/// Counted from zero: D, A, B, C, predicate, metadata.
const METADATA_REUSE: crate::Modifier = behind(5, field(F::MetadataReuse, 50, 1, &["", ".reuse"]));

const NEGATED_A: Slot = reg_m(24, marks(72, NO_BIT, NO_BIT));
const NEGATED_B: Slot = reg_m(32, marks(63, NO_BIT, NO_BIT));

pub(super) fn add(t: &mut Rows) {
    // A uniform predicate switches the whole product off, from the second Ampere on.
    let enable = upred_inverted(87, 90);
    let never = enable.hidden(Hide::Always);
    t.span(Arch::Sm75, Arch::Sm75, |t| products(t, never, Arch::Sm75));
    t.span(Arch::Sm80, Arch::Sm80, |t| products(t, never, Arch::Sm80));
    t.span(Arch::Sm86, Arch::Sm89, |t| products(t, enable, Arch::Sm86));
    t.span(Arch::Sm90, Arch::Sm120, |t| products(t, enable, Arch::Sm90));
    t.row(Movm, 0x23a, 0, &[D, A], &[field(F::Transpose, 78, 2, &[".MT88", ".M832", ".M864"])]);
}

/// Matrix products of the generations that begin with this one.
fn products(t: &mut Rows, enable: Slot, first: Arch) {
    let start = t.0.len();
    let sparsity = first >= Arch::Sm80;
    let hopper = first >= Arch::Sm90;
    let dense = field(F::Sparse, 73, 1, &[""]);
    let sparse = field(F::Sparse, 73, 1, &["!", ".SP"]);
    let shape = field_split(F::Shape, (75, 1), (78, 1), &[".1688", ".16816", ".1684"]);
    let sparse_shape = field_split(F::Shape, (75, 1), (78, 1), &[".1688", ".16816", "!", ".16832"]);
    let accumulate = field(F::Accumulate, 76, 1, &[".F16", ".F32"]);
    let kind = field(F::SourceType, 82, 2, if sparsity { &["", ".BF16", ".TF32"] } else { &[""] });
    t.row(Hmma, 0x23c, 0, &[D, NEGATED_A, NEGATED_B, C, enable], &[dense, shape, accumulate, kind]);
    t.row(
        Hmma,
        0x23c,
        0,
        &[D, NEGATED_A, NEGATED_B, C, enable, METADATA, SELECTOR],
        &[sparse, sparse_shape, accumulate, kind, METADATA_REUSE],
    );

    let dmma = [
        D,
        reg_m(24, marks(72, 73, NO_BIT)),
        reg_m(32, marks(63, 62, NO_BIT)),
        reg_m(64, marks(75, 74, NO_BIT)),
        enable,
    ];
    t.row(Dmma, 0x23f, 0, &dmma, &[field(F::Shape, 76, 1, &[".884"]), ROUND]).until = Arch::Sm89;
    t.row(
        Dmma,
        0x23f,
        0,
        &dmma,
        &[field(F::Shape, 76, 2, &[".8x8x4", ".16x8x4", ".16x8x8", ".16x8x16"]), ROUND],
    )
    .since = Arch::Sm90;

    let row_a = reg_tag(24, ".ROW");
    let column_b = reg_tag(32, ".COL");
    let dense = field(F::Sparse, 72, 1, &[""]);
    let sparse = field(F::Sparse, 72, 1, &["!", ".SP"]);
    let shapes: &'static [&'static str] = match first {
        Arch::Sm75 => &[".8816", "!", ".8832"],
        _ if hopper => &[".8816", "!", "!", "!", ".16816", ".16832"],
        _ => &[".8816", "!", ".8832", "!", ".16816", ".16832", ".16864"],
    };
    let shape = field_split(F::Shape, (75, 1), (85, 2), shapes);
    let shapes: &'static [&'static str] = match hopper {
        true => &["!", "!", ".8832", "!", "!", ".16832", ".16864"],
        false => &["!", "!", ".8832", ".8864", "!", ".16832", ".16864", ".168128"],
    };
    let sparse_shape = field_split(F::Shape, (75, 1), (85, 2), shapes);
    // Hopper gave up products of four bits.
    let integers: &'static [&'static str] =
        if hopper { &[".U8", ".S8"] } else { &[".U8", ".S8", ".U4", ".S4"] };
    let source_a = field_split(F::SourceType, (76, 1), (83, 1), integers);
    let source_b = field_split(F::DestinationType, (78, 1), (84, 1), integers);
    let saturate = field(F::Saturate, 82, 1, &["", ".SAT"]);
    let operands = [D, row_a, column_b, C, enable];
    let with_metadata = [D, row_a, column_b, C, enable, METADATA, SELECTOR];
    t.row(Imma, 0x237, 1 << 74, &operands, &[dense, shape, source_a, source_b, saturate]);
    t.row(
        Imma,
        0x237,
        1 << 74,
        &with_metadata,
        &[sparse, sparse_shape, source_a, source_b, saturate, METADATA_REUSE],
    );

    let shape = field(F::Shape, 75, 2, &[".88128", ".168128", ".168256"]);
    let functions: &'static [&'static str] = match first {
        Arch::Sm75 => &[".XOR"],
        _ if hopper => &["!", "!", ".AND"],
        _ => &[".XOR", "!", ".AND"],
    };
    let function = field(F::Function, 77, 2, functions);
    t.row(
        Bmma,
        0x23d,
        1 << 74 | 1 << 80,
        &operands,
        &[shape, function, field(F::Accumulate, 80, 1, &["!", ".POPC"])],
    );

    let formats: &'static [&'static str] = &[".E4M3", ".E5M2"];
    let accumulate = field(F::Accumulate, 77, 1, &[".F16", ".F32"]);
    let source_a = field(F::SourceType, 78, 1, formats);
    let source_b = field(F::DestinationType, 79, 1, formats);
    let dense = field(F::Sparse, 80, 1, &[""]);
    let sparse = field(F::Sparse, 80, 1, &["!", ".SP"]);
    let shape = field(F::Shape, 75, 2, &[".16816", ".16832"]);
    let sparse_shape = field(F::Shape, 75, 2, &["!", ".16832", ".16864"]);
    let a = reg_tag_m(24, ".ROW", marks(72, NO_BIT, NO_BIT));
    let b = reg_tag_m(32, ".COL", marks(63, NO_BIT, NO_BIT));
    t.span(Arch::Sm89, Arch::Sm89, |t| {
        let fields = [dense, shape, accumulate, source_a, source_b];
        t.row(Qmma, 0x27a, 1 << 74, &[D, a, b, C, enable], &fields);
        t.row(
            Qmma,
            0x27a,
            1 << 74,
            &[D, a, b, C, enable, METADATA, SELECTOR],
            &[sparse, sparse_shape, accumulate, source_a, source_b, METADATA_REUSE],
        );
    });
    if !sparsity {
        // Turing knows dense products of halves and integers.
        let all = t.0.split_off(start);
        t.0.extend(all.into_iter().filter(|row| row.op != Dmma && row.slots.len() == operands.len()));
    }
}
