//! Floating point of all widths, and conversions.
use super::FieldId as F;
use super::Op::*;
use super::build::*;
use crate::row::NO_BIT;
use crate::{Arch, HalfBits, Hide, ImmediateKind, Modifier, Slot, SlotKind, Source};

pub(super) const FTZ: Modifier = field(F::Ftz, 80, 1, &["", ".FTZ"]);
/// With the multiplications' own mode, in which zero times anything is zero.
const FMZ: Modifier = field_split(F::Ftz, (80, 1), (76, 1), &["", ".FTZ", ".FMZ"]);
/// Hopper's products of halves also know a NaN that stands for what lies outside a tensor.
const FMZ_OOB: Modifier = field_split(F::Ftz, (80, 1), (76, 1), &["", ".FTZ", ".FMZ", ".OOB"]);
pub(super) const ROUND: Modifier = field(F::Rounding, 78, 2, &["", ".RM", ".RP", ".RZ"]);
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
    let minimum = [D, A, B_F32, PS];
    t.span(Arch::Sm75, Arch::Sm75, |t| t.alu(Fmnmx, 0x009, FORMS_B, 0, &minimum, &[FTZ]));
    t.span(Arch::Sm80, Arch::Sm80, |t| t.alu(Fmnmx, 0x009, FORMS_B, 0, &minimum, &[FTZ, nan]));
    t.span(Arch::Sm86, Arch::Sm120, |t| t.alu(Fmnmx, 0x009, FORMS_B, 0, &minimum, &[FTZ, nan, xorsign]));
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
    let part = with_half(B_F32, HalfBits::Upper(60));
    for (since, until, lo, width, names) in [
        (Arch::Sm75, Arch::Sm89, 73, 1, &["!", ".F16"][..]),
        (Arch::Sm90, Arch::Sm120, 72, 2, &["!", ".F16", ".BF16"]),
    ] {
        t.span(since, until, |t| {
            let whole = field(F::Float32, lo, width, &[""]);
            t.alu(Mufu, 0x108, FORMS_B, 0, &[D, B_F32], &[mufu, whole]);
            t.alu(Mufu, 0x108, FORMS_B, 0, &[D, part], &[mufu, field(F::Float32, lo, width, names)]);
        });
    }

    t.alu(Dadd, 0x029, FORMS_C, 0, &[D, A, c(B_F64)], &[ROUND]);
    t.alu(Dmul, 0x028, FORMS_B, 0, &[D, A, B_F64], &[ROUND]);
    t.alu(Dfma, 0x02b, FORMS_BC, 0, &[D, A, B_F64, c(B_F64)], &[ROUND]);
    let compare_d = field(F::Compare, 76, 4, COMPARE_D);
    t.alu(Dsetp, 0x02a, FORMS_C, 0, &[P1, P2, A, B_F64, PS], &[compare_d, BOOL]);

    t.span(Arch::Sm75, Arch::Sm75, |t| halves(t, HalfBits::Packed(74), Arch::Sm75));
    t.span(Arch::Sm80, Arch::Sm80, |t| halves(t, HalfBits::Packed(74), Arch::Sm80));
    t.span(Arch::Sm86, Arch::Sm89, |t| halves(t, HalfBits::Packed(74), Arch::Sm86));
    t.span(Arch::Sm90, Arch::Sm120, |t| halves(t, HalfBits::Paired(74), Arch::Sm90));

    t.span(Arch::Sm75, Arch::Sm89, |t| convert(t, false));
    t.span(Arch::Sm90, Arch::Sm120, |t| convert(t, true));
    pack(t);
}

/// Conversions. Format 0 is 8 bits, 1 is 16, 2 is 32, 3 is 64; what has 64 bits on either side has an opcode of
/// its own.
fn convert(t: &mut Rows, hopper: bool) {
    // Hopper made room for bfloat16 on both sides.
    let bits = if hopper { 3 } else { 2 };
    const WIDE: u16 = 0xc;
    const NOT_BYTES: &[u16] = &[1, 5, 6];
    let float = |kind, half| {
        let source = Source { kind, half, negate: true, absolute: true, third: false, invert: false };
        slot(SlotKind::Source(source))
    };
    // A 16-bit source may be the high half.
    let half =
        (float(ImmediateKind::F16, HalfBits::Upper(60)), field(F::SourceType, 84, bits, &["!", ".F16"]));
    let single = |name: &'static [&'static str]| (B_F32, field(F::SourceType, 84, bits, name));
    let double = |name: &'static [&'static str]| (B_F64, field(F::SourceType, 84, bits, name));
    let unnamed = single(&["!", "!", ""]);
    let named = single(&["!", "!", ".F32"]);
    let brain = (
        float(ImmediateKind::Bf16, HalfBits::Upper(60)),
        field(F::SourceType, 84, bits, &["!", "!", "!", "!", ".BF16"]),
    );
    let from_double = double(&["!", "!", "!", ".F64"]);
    let ntz = field(F::Ntz, 77, 1, &["", ".NTZ"]);
    for (difference, (read, from), to) in [
        (0, unnamed, &[".U8", ".U16", ".U32", "!", ".S8", ".S16", ""][..]),
        (0, half, &[".U8", ".U16", ".U32", "!", ".S8", ".S16", ""]),
        (WIDE, unnamed, &["!", "!", "!", ".U64", "!", "!", "!", ".S64"]),
        (WIDE, half, &["!", "!", "!", ".U64", "!", "!", "!", ".S64"]),
        (WIDE, from_double, &[".U8", ".U16", ".U32", ".U64", ".S8", ".S16", "", ".S64"]),
    ] {
        let to = field_split(F::DestinationType, (75, 2), (72, 1), to);
        t.alu(F2i, 0x105 + difference, FORMS_B, 0, &[D, read], &[FTZ, to, from, ROUND_INT, ntz]);
    }
    if hopper {
        let (read, from) = brain;
        for (difference, to) in [
            (0, &[".U8", ".U16", ".U32", "!", ".S8", ".S16", ""][..]),
            (WIDE, &["!", "!", "!", ".U64", "!", "!", "!", ".S64"]),
        ] {
            let to = field_split(F::DestinationType, (75, 2), (72, 1), to);
            t.alu(F2i, 0x105 + difference, FORMS_B, 0, &[D, read], &[FTZ, to, from, ROUND_INT, ntz]);
        }
    }
    let integer = |half| no_marks(ImmediateKind::Signed, half, false);
    let narrow: &[&str] = if hopper { &["!", ".F16", "", "!", ".BF16"] } else { &["!", ".F16", ""] };
    let wide: &[&str] = &["!", "!", "!", ".F64"];
    for (difference, to, forms, half, from) in [
        (0, narrow, FORMS_B, HalfBits::None, &["!", "!", ".U32", "!", "!", "!", ""][..]),
        (0, narrow, NOT_BYTES, HalfBits::Upper(60), &["!", ".U16", "!", "!", "!", ".S16"]),
        (0, narrow, NOT_BYTES, HalfBits::Byte(60), &[".U8", "!", "!", "!", ".S8"]),
        (WIDE, narrow, FORMS_B, HalfBits::None, &["!", "!", "!", ".U64", "!", "!", "!", ".S64"]),
        (WIDE, wide, FORMS_B, HalfBits::None, &["!", "!", ".U32", ".U64", "!", "!", "", ".S64"]),
        (WIDE, wide, NOT_BYTES, HalfBits::Upper(60), &["!", ".U16", "!", "!", "!", ".S16"]),
        (WIDE, wide, NOT_BYTES, HalfBits::Byte(60), &[".U8", "!", "!", "!", ".S8"]),
    ] {
        let to = field(F::DestinationType, 75, bits, to);
        let from = field_split(F::SourceType, (84, 2), (74, 1), from);
        t.alu(I2f, 0x106 + difference, forms, 0, &[D, integer(half)], &[to, from, ROUND]);
    }
    let from = field_split(F::SourceType, (84, 2), (74, 1), &["!", "!", ".U32", "!", "!", "!", ".S32"]);
    let to = field(F::DestinationType, 75, 2, &["!", "!", ".F32"]);
    let round = field(F::Rounding, 78, 2, &["", "!", "!", ".RZ"]);
    t.span(Arch::Sm86, Arch::Sm120, |t| {
        t.alu(I2fp, 0x045, FORMS_B, 0, &[D, integer(HalfBits::None)], &[to, from, round]);
    });

    for (difference, (read, from), to) in [
        (0, named, &["!", ".F16"][..]),
        (0, named, &["!", "!", "!", "!", ".BF16"]),
        (0, half, &["!", "!", ".F32"]),
        (WIDE, named, &["!", "!", "!", ".F64"]),
        (WIDE, half, &["!", "!", "!", ".F64"]),
        (WIDE, from_double, &["!", ".F16", ".F32"]),
    ] {
        let since = if to.len() > 4 { Arch::Sm80 } else { Arch::Sm75 };
        let to = field(F::DestinationType, 75, 3, to);
        t.span(since, Arch::Sm120, |t| {
            t.alu(F2f, 0x104 + difference, FORMS_B, 0, &[D, read], &[FTZ, to, from, ROUND]);
        });
    }
    if hopper {
        let (read, from) = brain;
        for (difference, to) in [(0, &["!", ".F16", ".F32"][..]), (WIDE, &["!", "!", "!", ".F64"])] {
            let to = field(F::DestinationType, 75, 3, to);
            t.alu(F2f, 0x104 + difference, FORMS_B, 0, &[D, read], &[FTZ, to, from, ROUND]);
        }
        let to = field(F::DestinationType, 75, 3, &["!", "!", "!", "!", ".BF16"]);
        for (difference, (read, from)) in [(0, half), (WIDE, from_double)] {
            t.alu(F2f, 0x104 + difference, FORMS_B, 0, &[D, read], &[FTZ, to, from, ROUND]);
        }
        let from = field(F::SourceType, 84, 3, &["!", "!", "!", "!", ""]);
        t.alu(Frnd, 0x107, FORMS_B, 0, &[D, read], &[FTZ, to, from, ROUND_INT]);
    }
    let read_half = (half.0, field(F::SourceType, 84, bits, &["!", ""]));
    for (opcode, (read, from), to) in [
        (0x107, read_half, &["!", ".F16"][..]),
        (0x107, unnamed, &["!", "!", ""]),
        (0x113, double(&["!", "!", "!", ""]), &["!", "!", "!", ".F64"]),
    ] {
        let to = field(F::DestinationType, 75, bits, to);
        t.alu(Frnd, opcode, FORMS_B, 0, &[D, read], &[FTZ, to, from, ROUND_INT]);
    }
}

/// Packed arithmetic on two halves. Only Hopper and later do all of it in bfloat16 too.
fn halves(t: &mut Rows, half: HalfBits, first: Arch) {
    let hopper = first >= Arch::Sm90;
    let turing = first == Arch::Sm75;
    let a = reg_half(24, marks(72, 73, NO_BIT), half);
    let b = with_half(B_F16, half);
    // Only the second Ampere and later cross the halves of one source.
    let crossed = if first >= Arch::Sm86 { with_half(B_F16, HalfBits::Crossed(60)) } else { b };
    let c = third(b);
    let brain = if hopper { BF16 } else { field(F::BFloat16, 85, 1, &[""]) };
    let mma_brain = field(F::BFloat16, 85, 1, if hopper { &["", ".BF16_V2"] } else { &[""] });
    let any_single = field(F::Float32, 78, 1, &["", ".F32"]);
    let no_single = field(F::Float32, 78, 1, &[""]);
    let no_brain = field(F::BFloat16, 85, 1, &[""]);
    let only_single = field(F::Float32, 78, 1, &["!", ".F32"]);
    let only_brain = field(F::BFloat16, 85, 1, &["!", ".BF16_V2"]);
    let single = if hopper { no_single } else { any_single };
    t.alu(Hadd2, 0x030, FORMS_C, 0, &[D, a, b], &[no_single, brain, FTZ, SAT]);
    // A single-precision sum has no magnitude of its first source from the second Ampere on.
    let signed = with_half(reg_m(24, marks(72, NO_BIT, NO_BIT)), half);
    t.span(Arch::Sm75, Arch::Sm80, |t| t.alu(Hadd2, 0x030, FORMS_C, 0, &[D, a, b], &[only_single, FTZ, SAT]));
    t.span(Arch::Sm86, Arch::Sm120, |t| {
        t.alu(Hadd2, 0x030, FORMS_C, 0, &[D, signed, b], &[only_single, FTZ, SAT]);
    });
    t.alu(Hmul2, 0x032, FORMS_B, 0, &[D, a, b], &[single, brain, FMZ, SAT]);
    let product = if hopper { FMZ_OOB } else { FMZ };
    // A predicate says where RELU looks; without RELU its bits mean nothing.
    for (relu, saturate, enable) in [
        (field(F::Relu, 79, 1, &[""]), SAT, PS.hidden(Hide::Always)),
        (field(F::Relu, 79, 1, &["!", ".RELU"]), field(F::Saturate, 77, 1, &[""]), PS.hidden(Hide::Neutral)),
    ] {
        let whole = [D, A, B_F16_WHOLE, third(B_F16_WHOLE), enable];
        let relus = relu.spelling.len() > 1;
        for (single, brain) in [(any_single, no_brain), (no_single, only_brain)] {
            if turing && (relus || brain == only_brain) {
                continue;
            }
            t.alu(
                Hfma2,
                0x031,
                FORMS_BC,
                0,
                &[D, a, crossed, c, enable],
                &[single, brain, product, relu, saturate],
            );
        }
        t.span(Arch::Sm80, Arch::Sm90, |t| {
            t.alu(Hfma2Mma, 0x035, FORMS_BC, 0, &whole, &[mma_brain, FMZ, relu, saturate]);
        });
    }
    let nan = field(F::Nan, 81, 1, &["", ".NAN"]);
    let xorsign = field(F::XorSign, 82, 1, &["", ".XORSIGN"]);
    let minimum = [D, a, b, PS];
    for (single, brain) in [(single, no_brain), (no_single, only_brain)] {
        t.span(Arch::Sm80, Arch::Sm80, |t| {
            t.alu(Hmnmx2, 0x040, FORMS_B, 0, &minimum, &[single, brain, FTZ, nan]);
        });
        t.span(Arch::Sm86, Arch::Sm120, |t| {
            t.alu(Hmnmx2, 0x040, FORMS_B, 0, &minimum, &[single, brain, FTZ, nan, xorsign]);
        });
    }
    let boolean = field(F::Boolean, 69, 2, &[".AND", ".OR", ".XOR"]);
    let as_float = field(F::BFloat, 71, 1, &["", ".BF"]);
    let compare = field(F::Compare, 76, 4, COMPARE);
    let brain = field(F::BFloat16, 65, 1, if hopper { &["", ".BF16_V2"] } else { &[""] });
    let both = field(F::HalvesAnd, 71, 1, &["", ".H_AND"]);
    t.alu(Hset2, 0x033, FORMS_C, 0, &[D, a, b, PS], &[brain, as_float, compare, FTZ, boolean]);
    t.alu(Hsetp2, 0x034, FORMS_C, 0, &[P1, P2, a, b, PS], &[brain, compare, both, FTZ, boolean]);
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
    let f32 = field(F::SourceType, 73, 2, &[".F32"]);
    let mode = |name| field(F::Mode, 78, 1, name);
    let kind = |t: &mut Rows, bits, slots: &[Slot], fields: &[Modifier]| {
        t.alu(F2fp, 0x03e, FORMS_B, fixed(bits), slots, fields);
    };
    t.span(Arch::Sm89, Arch::Sm120, |t| {
        kind(
            t,
            [0; 6],
            &[D, A_PLAIN, B_F32_PLAIN, unused_c],
            &[saturate, relu, to, f32, mode(&[".PACK_AB"]), round],
        );
        kind(
            t,
            [0, 0, 1, 0, 0, 0],
            &[D, unused_a, B_F32_PLAIN, c],
            &[saturate, relu, to, f32, mode(&["!", ".MERGE_C"]), round],
        );
        kind(
            t,
            [0, 0, 1, 0, 0, 1],
            &[D, A_PLAIN, B_F32_PLAIN, c],
            &[saturate, relu, to, f32, mode(&["!", ".PACK_AB_MERGE_C"]), exact],
        );
        kind(
            t,
            [0, 0, 1, 0, 1, 0],
            &[D, unused_a, B_F32_PLAIN, unused_c],
            &[
                relu,
                field_split(F::DestinationType, (76, 1), (86, 2), &["!", "!", "!", ".TF32"]),
                f32,
                mode(&["!", ".PACK_B"]),
                round,
            ],
        );
        kind(
            t,
            [1, 0, 0, 0, 0, 1],
            &[D, unused_a, B_F32_PLAIN, c],
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
            [0, 1, 0, 0, 1, 0],
            &[D, unused_a, with_half(B_F32_PLAIN, HalfBits::Upper(88)), unused_c],
            &[
                relu,
                to,
                field(F::SourceType, 73, 2, &["!", "!", ".E5M2", ".E4M3"]),
                mode(&[".UNPACK_B"]),
                exact,
            ],
        );
    });
    // Before Ada the formats of the two sides go without saying.
    let to = field(F::DestinationType, 76, 1, &["", ".BF16"]);
    t.span(Arch::Sm80, Arch::Sm86, |t| {
        kind(
            t,
            [0; 6],
            &[D, A_PLAIN, B_F32_PLAIN, unused_c],
            &[saturate, relu, to, mode(&[".PACK_AB"]), round],
        );
        kind(
            t,
            [0, 0, 1, 0, 0, 0],
            &[D, unused_a, B_F32_PLAIN, c],
            &[saturate, relu, to, mode(&["!", ".MERGE_C"]), round],
        );
    });
}
