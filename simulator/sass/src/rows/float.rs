//! Floating point of all widths, and conversions.
use super::FieldId as F;
use super::Op::*;
use super::build::*;
use crate::row::NO_BIT;
use crate::{Arch, Hide, ImmediateKind, Modifier, Slot};

pub(super) const FTZ: Modifier = field(F::Ftz, 80, 1, &["", ".FTZ"]);
const ROUND: Modifier = field(F::Rounding, 78, 2, &["", ".RM", ".RP", ".RZ"]);
const ROUND_INT: Modifier = field(F::Rounding, 78, 2, &["", ".FLOOR", ".CEIL", ".TRUNC"]);
const SAT: Modifier = field(F::Saturate, 77, 1, &["", ".SAT"]);
pub(super) const BOOL: Modifier = field(F::Boolean, 74, 2, &[".AND", ".OR", ".XOR"]);
const COMPARE: &[&str] = &[
    ".F", ".LT", ".EQ", ".LE", ".GT", ".NE", ".GE", ".NUM", ".NAN", ".LTU", ".EQU", ".LEU", ".GTU", ".NEU",
    ".GEU", ".T",
];
const COMPARE_D: &[&str] = &[
    ".MIN", ".LT", ".EQ", ".LE", ".GT", ".NE", ".GE", ".NUM", ".NAN", ".LTU", ".EQU", ".LEU", ".GTU", ".NEU",
    ".GEU", ".MAX",
];
const BF16: Modifier = field(F::BFloat16, 85, 1, &["", ".BF16_V2"]);
const D: Slot = reg(16);
const A: Slot = reg_m(24, marks(72, 73, NO_BIT));
const A_H: Slot = reg_half(24, marks(72, 73, NO_BIT), 74);
const P1: Slot = pred(81);
const P2: Slot = pred(84);
const PS: Slot = pred_not(87, 90);
const fn c(slot: Slot) -> Slot {
    third(slot)
}
const fn no_marks(kind: ImmediateKind, halves: bool, negate: bool) -> Slot {
    source(crate::Source { third: false, negate, absolute: false, invert: false, halves, kind })
}

pub(super) fn add(t: &mut Rows) {
    t.alu(Fadd, 0x021, FORMS_C, 0, &[D, A, B_F32], &[FTZ, SAT, ROUND]);
    let scale = field(F::Scale, 84, 3, &["!", "!", "!", ".D2", "", "!", "!", "!"]);
    t.alu(Fmul, 0x020, FORMS_B, 0, &[D, A, B_F32], &[scale, FTZ, ROUND, SAT]);
    t.alu(Ffma, 0x023, FORMS_BC, 0, &[D, A, B_F32, c(B_F32)], &[FTZ, SAT, ROUND]);
    let nan = field(F::Nan, 81, 1, &["", ".NAN"]);
    t.alu(Fmnmx, 0x009, FORMS_B, 0, &[D, A, B_F32, PS], &[FTZ, nan]);
    t.alu(Fsel, 0x008, FORMS_B, 0, &[D, A, B_F32, PS], &[FTZ]);
    let compare = field(F::Compare, 76, 4, COMPARE);
    t.alu(
        Fset,
        0x00a,
        FORMS_B,
        0,
        &[D, A, B_F32, PS],
        &[field(F::BFloat, 71, 1, &[".BF"]), compare, FTZ, BOOL],
    );
    t.alu(Fsetp, 0x00b, FORMS_B, 0, &[P1, P2, A, B_F32, PS], &[compare, FTZ, BOOL]);
    let chk = no_marks(ImmediateKind::F32, false, true);
    t.alu(Fchk, 0x102, FORMS_B, 0, &[P1, A, chk], &[]);
    let mufu = field(
        F::Function,
        74,
        4,
        &[".COS", ".SIN", ".EX2", ".LG2", ".RCP", ".RSQ", ".RCP64H", ".RSQ64H", ".SQRT", ".TANH"],
    );
    t.alu(Mufu, 0x108, FORMS_B, 0, &[D, B_F32], &[mufu, field(F::Float32, 73, 1, &["", ".F16"])]);

    t.alu(Dadd, 0x029, FORMS_C, 0, &[D, A, c(B_F64)], &[ROUND]);
    t.alu(Dmul, 0x028, FORMS_B, 0, &[D, A, B_F64], &[ROUND]);
    t.alu(Dfma, 0x02b, FORMS_BC, 0, &[D, A, B_F64, c(B_F64)], &[ROUND]);
    let compare_d = field(F::Compare, 76, 4, COMPARE_D);
    t.alu(Dsetp, 0x02a, FORMS_C, 0, &[P1, P2, A, B_F64, PS], &[compare_d, BOOL]);

    let f32_result = field(F::Float32, 78, 1, &["", ".F32"]);
    t.alu(Hadd2, 0x030, FORMS_C, 0, &[D, A_H, B_F16], &[f32_result, BF16, FTZ, SAT]);
    t.alu(Hmul2, 0x032, FORMS_B, 0, &[D, A_H, B_F16], &[BF16, FTZ, SAT]);
    let relu = field(F::Relu, 79, 1, &["", ".RELU"]);
    let hfma = [BF16, relu, FTZ, SAT];
    // The predicate field at 89:87 is unused and reads all ones where RELU is set.
    for fixed in [0, 7 << 87] {
        t.alu(Hfma2, 0x031, FORMS_BC, fixed, &[D, A_H, B_F16, c(B_F16)], &hfma);
        t.alu(Hfma2Mma, 0x035, FORMS_BC, fixed, &[D, A_H, B_F16, c(B_F16)], &hfma);
    }
    t.alu(Hmnmx2, 0x040, FORMS_B, 0, &[D, A_H, B_F16, PS], &[BF16]);
    let hbool = field(F::Boolean, 69, 2, &[".AND", ".OR", ".XOR"]);
    let hbf = field(F::BFloat, 71, 1, &["", ".BF"]);
    let hcompare = field(F::Compare, 76, 4, COMPARE);
    t.alu(Hset2, 0x033, FORMS_C, 0, &[D, A_H, B_F16, PS], &[hbf, hcompare, hbool]);
    t.alu(Hsetp2, 0x034, FORMS_C, 0, &[P1, P2, A_H, B_F16, PS], &[hcompare, hbool]);

    // Conversions: format 1 is 16 bits, 2 is 32, 3 is 64.
    let src_marks = B_F32;
    let source_float = field(F::SourceType, 84, 2, &["!", ".F16", "", ".F64"]);
    let destination_int = field_split(
        F::DestinationType,
        (75, 2),
        (72, 1),
        &[".U8", ".U16", ".U32", ".U64", ".S8", ".S16", "", ".S64"],
    );
    let ntz = field(F::Ntz, 77, 1, &["", ".NTZ"]);
    for base in [0x105, 0x111] {
        t.alu(F2i, base, FORMS_B, 0, &[D, src_marks], &[FTZ, destination_int, source_float, ROUND_INT, ntz]);
    }
    let destination_float = field(F::DestinationType, 75, 2, &["!", ".F16", "", ".F64"]);
    let source_int = field_split(
        F::SourceType,
        (84, 2),
        (74, 1),
        &[".U8", ".U16", ".U32", ".U64", ".S8", ".S16", "", ".S64"],
    );
    let plain = no_marks(ImmediateKind::Unsigned, false, false);
    for base in [0x106, 0x112] {
        t.alu(I2f, base, FORMS_B, 0, &[D, plain], &[destination_float, source_int, ROUND]);
    }
    let source_fp = field_split(F::SourceType, (84, 2), (74, 1), &["!", "!", ".U32", "!", "!", "!", ".S32"]);
    let fp = field(F::DestinationType, 75, 2, &["!", "!", ".F32"]);
    t.alu(I2fp, 0x045, FORMS_B, 0, &[D, plain], &[fp, source_fp, ROUND]);
    let to = field(F::DestinationType, 75, 3, &["!", ".F16", ".F32", ".F64", ".BF16"]);
    let from = field(F::SourceType, 84, 2, &["!", ".F16", ".F32", ".F64"]);
    for base in [0x104, 0x110] {
        t.alu(F2f, base, FORMS_B, 0, &[D, src_marks], &[FTZ, to, from, ROUND]);
    }
    let same = field(F::DestinationType, 75, 2, &["!", ".F16", "", ".F64"]);
    let read = field(F::SourceType, 84, 2, &["!", "", "", ""]);
    for base in [0x107, 0x113] {
        t.alu(Frnd, base, FORMS_B, 0, &[D, src_marks], &[FTZ, same, read, ROUND_INT]);
    }
    let pack = field(F::DestinationType, 76, 1, &[".F16.F32.PACK_AB", ".BF16.F32.PACK_AB"]);
    let pack_round = field(F::Rounding, 79, 2, &["", "!", "!", ".RZ"]);
    let unused_c = reg(64).hidden(Hide::Always);
    t.alu(F2fp, 0x03e, FORMS_B, 0, &[D, A, B_F32, unused_c], &[pack, pack_round]);
    // Before Ada the formats of the two sides go without saying.
    let short = field(F::DestinationType, 76, 1, &[".PACK_AB", ".BF16.PACK_AB"]);
    let first = t.0.iter().position(|row| row.op == F2fp).unwrap_or(t.0.len());
    for row in &mut t.0[first..] {
        row.since = Arch::Sm89;
    }
    let first = t.0.len();
    t.alu(F2fp, 0x03e, FORMS_B, 0, &[D, A, B_F32, unused_c], &[short, pack_round]);
    for row in &mut t.0[first..] {
        row.until = Arch::Sm86;
    }
    let unpack = field(F::SourceType, 73, 2, &["!", "!", ".F16.E5M2.UNPACK_B", ".F16.E4M3.UNPACK_B"]);
    let unused_a = reg(24).hidden(Hide::Always);
    t.alu(F2fp, 0x03e, &[1], 1 << 89, &[D, unused_a, B, unused_c], &[unpack]);
    let merge = field(
        F::DestinationType,
        76,
        3,
        &[
            "!",
            "!",
            "!",
            "!",
            "!",
            "!",
            ".SATFINITE.E5M2.F32.PACK_AB_MERGE_C",
            ".SATFINITE.E4M3.F32.PACK_AB_MERGE_C",
        ],
    );
    t.alu(F2fp, 0x03e, &[1], 9 << 87, &[D, A, B_F32, reg(64)], &[merge]);
}
