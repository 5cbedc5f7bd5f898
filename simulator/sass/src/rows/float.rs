//! Floating point of all widths, and conversions.
use super::FieldId as F;
use super::Op::*;
use super::build::*;
use crate::row::NO_BIT;
use crate::{Arch, HalfBits, Hide, ImmediateKind, Modifier, Slot, Source};

pub(super) const FTZ: Modifier = field(F::Ftz, 80, 1, &["", ".FTZ"]);
/// With the multiplications' own mode, in which zero times anything is zero.
const FMZ: Modifier = field_split(F::Ftz, (80, 1), (76, 1), &["", ".FTZ", ".FMZ"]);
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
const A_H: Slot = reg_half(24, marks(72, 73, NO_BIT), HalfBits::Packed(74));
const P1: Slot = pred(81);
const P2: Slot = pred(84);
const PS: Slot = pred_not(87, 90);
const A_PLAIN: Slot = reg(24);
/// A float source without marks.
const B_F32_PLAIN: Slot = no_marks(ImmediateKind::F32, HalfBits::None, false);
const fn c(slot: Slot) -> Slot {
    third(slot)
}
const fn no_marks(kind: ImmediateKind, half: HalfBits, negate: bool) -> Slot {
    source(Source { third: false, negate, absolute: false, invert: false, half, kind })
}

pub(super) fn add(t: &mut Rows) {
    t.alu(Fadd, 0x021, FORMS_C, 0, &[D, A, B_F32], &[FTZ, ROUND, SAT]);
    let scale = field(F::Scale, 84, 3, &["!", ".D8", ".D4", ".D2", "", ".M2", ".M4", ".M8"]);
    t.alu(Fmul, 0x020, FORMS_B, 0, &[D, A, B_F32], &[FMZ, scale, ROUND, SAT]);
    t.alu(Ffma, 0x023, FORMS_BC, 0, &[D, A, B_F32, c(B_F32)], &[FMZ, ROUND, SAT]);
    let nan = field(F::Nan, 81, 1, &["", ".NAN"]);
    let xorsign = field(F::XorSign, 82, 1, &["", ".XORSIGN"]);
    t.alu(Fmnmx, 0x009, FORMS_B, 0, &[D, A, B_F32, PS], &[FTZ, nan, xorsign]);
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
    let chk = B_F32;
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
    let hbrain = field(F::BFloat16, 65, 1, &["", ".BF16_V2"]);
    let both = field(F::HalvesAnd, 71, 1, &["", ".H_AND"]);
    t.alu(Hset2, 0x033, FORMS_C, 0, &[D, A_H, B_F16, PS], &[hbrain, hbf, hcompare, FTZ, hbool]);
    t.alu(Hsetp2, 0x034, FORMS_C, 0, &[P1, P2, A_H, B_F16, PS], &[hbrain, hcompare, both, FTZ, hbool]);

    // Conversions: format 1 is 16 bits, 2 is 32, 3 is 64.
    let src_marks = B_F32;
    let source_float = field(F::SourceType, 84, 2, &["!", "!", "", ".F64"]);
    let source_half = field(F::SourceType, 84, 2, &["!", ".F16"]);
    let half_marks = with_half(B_F32, HalfBits::Upper(60));
    let destination_int = field_split(
        F::DestinationType,
        (75, 2),
        (72, 1),
        &[".U8", ".U16", ".U32", ".U64", ".S8", ".S16", "", ".S64"],
    );
    let ntz = field(F::Ntz, 77, 1, &["", ".NTZ"]);
    for base in [0x105, 0x111] {
        for (read, from) in [(src_marks, source_float), (half_marks, source_half)] {
            t.alu(F2i, base, FORMS_B, 0, &[D, read], &[FTZ, destination_int, from, ROUND_INT, ntz]);
        }
    }
    let destination_float = field(F::DestinationType, 75, 2, &["!", ".F16", "", ".F64"]);
    let source_int = |names| field_split(F::SourceType, (84, 2), (74, 1), names);
    let plain = no_marks(ImmediateKind::Unsigned, HalfBits::None, false);
    for base in [0x106, 0x112] {
        for (half, names) in [
            (HalfBits::None, &["!", "!", ".U32", ".U64", "!", "!", "", ".S64"][..]),
            (HalfBits::Upper(60), &["!", ".U16", "!", "!", "!", ".S16"]),
            (HalfBits::Byte(60), &[".U8", "!", "!", "!", ".S8"]),
        ] {
            let fields = [destination_float, source_int(names), ROUND];
            t.alu(I2f, base, FORMS_B, 0, &[D, with_half(plain, half)], &fields);
        }
    }
    let source_fp = field_split(F::SourceType, (84, 2), (74, 1), &["!", "!", ".U32", "!", "!", "!", ".S32"]);
    let fp = field(F::DestinationType, 75, 2, &["!", "!", ".F32"]);
    t.alu(I2fp, 0x045, FORMS_B, 0, &[D, plain], &[fp, source_fp, ROUND]);
    let to = field(F::DestinationType, 75, 3, &["!", ".F16", ".F32", ".F64", ".BF16"]);
    let from = field(F::SourceType, 84, 2, &["!", "!", ".F32", ".F64"]);
    let from_half = field(F::SourceType, 84, 2, &["!", ".F16"]);
    for base in [0x104, 0x110] {
        t.alu(F2f, base, FORMS_B, 0, &[D, src_marks], &[FTZ, to, from, ROUND]);
        t.alu(F2f, base, FORMS_B, 0, &[D, half_marks], &[FTZ, to, from_half, ROUND]);
    }
    for base in [0x107, 0x113] {
        for (value, names) in [
            (half_marks, [&["!", ".F16"][..], &["!", ""]]),
            (src_marks, [&["!", "!", ""], &["!", "!", ""]]),
            (src_marks, [&["!", "!", "!", ".F64"], &["!", "!", "!", ""]]),
        ] {
            let to = field(F::DestinationType, 75, 2, names[0]);
            let from = field(F::SourceType, 84, 2, names[1]);
            t.alu(Frnd, base, FORMS_B, 0, &[D, value], &[FTZ, to, from, ROUND_INT]);
        }
    }
    pack(t);
}

/// F2FP: two narrow floats from two wide ones, or wide ones from two narrow ones.
fn pack(t: &mut Rows) {
    const KIND: [u8; 6] = [73, 74, 78, 88, 89, 90];
    let saturate = field(F::Saturate, 77, 1, &["", ".SATFINITE"]);
    let relu = field(F::Relu, 75, 1, &["", ".RELU"]);
    // Bit 76, then 87:86.
    let to =
        field_split(F::DestinationType, (76, 1), (86, 2), &[".F16", ".BF16", "!", ".TF32", ".E5M2", ".E4M3"]);
    let round = field(F::Rounding, 79, 3, &["", "!", "!", ".RZ"]);
    let exact = field(F::Rounding, 79, 3, &[""]);
    let unused_a = reg(24).hidden(Hide::Always);
    let unused_c = reg(64).hidden(Hide::Always);
    let c = with_half(reg(64), HalfBits::Upper(72));
    let fixed =
        |bits: [u8; 6]| KIND.iter().zip(bits).fold(0, |word, (&lo, bit)| word | u128::from(bit) << lo);
    let first = t.0.len();
    let f32 = field(F::SourceType, 73, 2, &[".F32"]);
    let mode = |name| field(F::Mode, 78, 1, name);
    let kind = |t: &mut Rows, forms, bits, slots: &[Slot], fields: &[Modifier]| {
        t.alu(F2fp, 0x03e, forms, fixed(bits), slots, fields);
    };
    kind(
        t,
        FORMS_B,
        [0; 6],
        &[D, A_PLAIN, B_F32_PLAIN, unused_c],
        &[saturate, relu, to, f32, mode(&[".PACK_AB"]), round],
    );
    kind(
        t,
        FORMS_B,
        [0, 0, 1, 0, 0, 0],
        &[D, unused_a, B_F32_PLAIN, c],
        &[saturate, relu, to, f32, mode(&["!", ".MERGE_C"]), round],
    );
    kind(
        t,
        FORMS_B,
        [0, 0, 1, 0, 0, 1],
        &[D, A_PLAIN, B_F32_PLAIN, c],
        &[saturate, relu, to, f32, mode(&["!", ".PACK_AB_MERGE_C"]), exact],
    );
    kind(
        t,
        FORMS_B,
        [0, 0, 1, 0, 1, 0],
        &[D, unused_a, B_F32_PLAIN, unused_c],
        &[relu, to, f32, mode(&["!", ".PACK_B"]), round],
    );
    kind(
        t,
        FORMS_B,
        [1, 0, 0, 0, 0, 1],
        &[D, unused_a, B, c],
        &[
            saturate,
            relu,
            to,
            field(F::SourceType, 73, 2, &["!", ".F16"]),
            mode(&[".UNPACK_B_MERGE_C"]),
            exact,
        ],
    );
    kind(
        t,
        FORMS_B,
        [0, 1, 0, 0, 1, 0],
        &[D, unused_a, with_half(B, HalfBits::Upper(88)), unused_c],
        &[relu, to, field(F::SourceType, 73, 2, &["!", "!", ".E5M2", ".E4M3"]), mode(&[".UNPACK_B"]), exact],
    );
    for row in &mut t.0[first..] {
        row.since = Arch::Sm89;
    }
    // Before Ada the formats of the two sides go without saying.
    let first = t.0.len();
    let to = field(F::DestinationType, 76, 1, &["", ".BF16"]);
    kind(
        t,
        FORMS_B,
        [0; 6],
        &[D, A_PLAIN, B_F32_PLAIN, unused_c],
        &[saturate, relu, to, mode(&[".PACK_AB"]), round],
    );
    kind(
        t,
        FORMS_B,
        [0, 0, 1, 0, 0, 0],
        &[D, unused_a, B_F32_PLAIN, c],
        &[saturate, relu, to, mode(&["!", ".MERGE_C"]), round],
    );
    for row in &mut t.0[first..] {
        row.until = Arch::Sm86;
    }
}
