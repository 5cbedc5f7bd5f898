//! What only Hopper has: bulk and tensor copies (TMA), products of four warps (WGMMA), clusters.
use super::FieldId as F;
use super::Op::*;
use super::build::*;
use super::memory::REDUCTION;
use crate::row::NO_BIT;
use crate::{Arch, Bits, HalfBits, Hide, MarkBits, Modifier, Slot, SlotKind};

/// `[UR4]`: an address, or what describes one, in uniform registers.
const fn at(lo: u8) -> Slot {
    slot(SlotKind::Address {
        base: NO_BIT,
        offset: Bits::run(0, 0),
        wide: NO_BIT,
        quiet: false,
        scale: NO_BIT,
        uniform: lo,
        descriptor: NO_BIT,
    })
}

pub(super) fn add(t: &mut Rows) {
    t.span(Arch::Sm90, Arch::Sm90, |t| {
        clusters(t);
        copies(t);
        products(t);
    });
}

fn clusters(t: &mut Rows) {
    t.row(UcgabarArv, 0x19c7, 0, &[], &[]).uniform_guard = true;
    t.row(UcgabarWait, 0x1dc7, 0, &[], &[]).uniform_guard = true;
    t.row(Acqbulk, 0x82e, 0, &[], &[]);
    t.row(Preexit, 0x82d, 0, &[], &[]);
    let ignore = field(F::IgnoreKill, 85, 1, &["", ".IGNOREKILL"]);
    t.row(Elect, 0x82f, 0, &[pred(81), ureg(16), pred_not(87, 90)], &[ignore]);
    // What a warp group gives back to the block, or takes from it.
    let free = field(F::Mode, 72, 3, &["!", "!", "!", "!", "!", ".DEALLOC.CTAPOOL"]);
    let take = field(F::Mode, 72, 3, &["!", "!", "!", "!", "!", "!", ".TRY_ALLOC.CTAPOOL"]);
    for (opcode, count) in [(0x13c8, ureg(32)), (0x19c8, imm(32, 10))] {
        t.row(Usetmaxreg, opcode, 0, &[count, upred(81).hidden(Hide::Always)], &[free]).uniform_guard = true;
        t.row(Usetmaxreg, opcode, 0, &[upred(81), count], &[take]).uniform_guard = true;
    }
    let size = field(F::Size, 73, 3, &["!", "!", "!", "!", "", ".64", ".128"]);
    // URZ is not printed.
    for (uniform, fixed) in [(NO_BIT, 0x3f << 64), (64, 0)] {
        let pair = SlotKind::Address {
            base: 24,
            offset: Bits::run(40, 24),
            wide: crate::row::ALWAYS,
            quiet: false,
            scale: NO_BIT,
            uniform,
            descriptor: NO_BIT,
        };
        t.row(Stas, 0x1dbd, 1 << 90 | fixed, &[slot(pair), reg(32)], &[size]);
    }
}

fn copies(t: &mut Rows) {
    let dimensions = field(F::Shape, 79, 3, &[".1D", ".2D", ".3D", ".4D", ".5D"]);
    let gather = field(F::Im2col, 82, 1, &["", ".IM2COL"]);
    let multicast = field(F::Multicast, 75, 1, &["", ".MULTICAST"]);
    let hint = field(F::CacheHint, 76, 1, &["", ""]);
    let cached = slot(SlotKind::Described { lo: 40, name: "desc" }).hidden(Hide::Unless(F::CacheHint));
    let mut uniform = |op, opcode, fixed, slots: &[Slot], fields: &[Modifier]| {
        t.row(op, opcode, fixed, slots, fields).uniform_guard = true;
    };
    uniform(Utmaldg, 0x15b4, 0, &[at(32), at(24), cached], &[dimensions, hint]);
    uniform(Utmaldg, 0x13b4, 0, &[at(32), at(24), ureg(64), cached], &[dimensions, gather, multicast, hint]);
    uniform(Utmapf, 0x15b8, 0, &[at(32), at(24), cached], &[dimensions, hint]);
    let gathers = field(F::Im2col, 82, 1, &["!", ".IM2COL"]);
    uniform(Utmapf, 0x13b8, 0, &[at(32), at(24), ureg(64), cached], &[dimensions, gathers, hint]);
    uniform(Utmastg, 0x13b5, 0, &[at(32), at(24), cached], &[dimensions, gather, hint]);
    uniform(Utmaredg, 0x13b6, 0, &[at(32), at(24), cached], &[dimensions, gather, REDUCTION, hint]);
    let to = field(F::DestinationSpace, 73, 1, &[".G", ".S"]);
    let from = field(F::SourceSpace, 74, 1, &[".G", ".S"]);
    let from_shared = field(F::SourceSpace, 74, 1, &["!", ".S"]);
    let prefetch = field(F::Prefetch, 81, 2, &["", ".LTC64B", ".LTC128B", ".LTC256B"]);
    let sequenced = field(F::Sequenced, 83, 1, &["", ".SEQUENCED"]);
    let bulk = [at(32), at(24), ureg(64), cached];
    uniform(Ublkcp, 0x13ba, 0, &bulk, &[to, from, multicast, prefetch, sequenced, hint]);
    let kinds = field(
        F::Size,
        81,
        4,
        &["", ".S32", ".U64", ".S64", ".F16.RN", ".F32.RN", ".F32.FTZ.RN", ".F64.RN", ".BF16.RN"],
    );
    uniform(Ublkred, 0x13bb, 0, &bulk, &[to, from_shared, REDUCTION, kinds, hint]);
    uniform(Ublkpf, 0x13bc, 0, &[at(24), ureg(64), cached], &[hint]);
    uniform(Utmacctl, 0x19b9, 0, &[at(24)], &[field(F::Mode, 82, 1, &[".IV", ".PF"])]);
    uniform(Utmacmdflush, 0x9b7, 0, &[], &[]);
}

/// Sizes in the order of their encodings.
macro_rules! tiles {
    ($k:literal: $($n:literal)*) => { &[$(concat!(".64x", $n, "x", $k)),*] };
}
const HALF_TILES: &[&str] = tiles!(16: 8 16 24 32 40 48 56 64 72 80 88 96 104 112 120 128 136 144 152 160 168 176 184
    192 200 208 216 224 232 240 248 256);
const TF32_TILES: &[&str] = tiles!(8: 8 16 24 32 40 48 56 64 72 80 88 96 104 112 120 128 136 144 152 160 168 176 184
    192 200 208 216 224 232 240 248 256);
const BYTE_TILES: &[&str] = tiles!(32: 8 16 24 32 40 48 56 64 72 80 88 96 104 112 120 128 136 144 152 160 168 176 184
    192 200 208 216 224 232 240 248 256);
const BIT_TILES: &[&str] = tiles!(256: 8 16 24 32 48 64 80 96 112 128 144 160 176 192 208 224 240 256);

fn products(t: &mut Rows) {
    let mode = field(F::Mode, 79, 2, &[".ARRIVE", ".WAIT"]);
    t.row(Warpgroup, 0x9c5, 0, &[], &[mode]);
    let wait = field(F::Mode, 79, 2, &["!", "!", ".DEPBAR.LE"]);
    let group = slot(SlotKind::Word { bits: Bits::run(84, 3), spelling: &["gsb0"] });
    t.row(Warpgroup, 0x9c5, 1 << 47, &[group, imm(72, 3)], &[wait]);

    // The accumulators, A in registers or in shared memory, B in shared memory, what is added, whether it is, and the
    // scoreboard of the last product of a group.
    let shared = slot(SlotKind::Described { lo: 24, name: "gdesc" });
    let added = upred_inverted(87, 90);
    let signal = slot(SlotKind::Word {
        bits: Bits::run(84, 3),
        spelling: &["gsb0", "!", "!", "!", "!", "!", "!", ""],
    })
    .hidden(Hide::Ones);
    let minus = MarkBits { negate: 72, absolute: NO_BIT, invert: NO_BIT };
    let a = |marks| slot(SlotKind::Register { lo: 24, marks, half: HalfBits::None, reuse: 0, tag: "" });
    let from_shared = [reg(16), shared, reg(64), added, signal];
    let second = slot(SlotKind::Described { lo: 32, name: "gdesc" });
    let from_registers = |marks| [reg(16), a(marks), second, reg(64), added, signal];
    let negate = behind(1, field(F::NegateA, 72, 1, &["", ".negA"]));
    let transposed = |operand, first: u8, names: &'static [&'static str]| {
        behind(operand, field(F::Transpose, first, if first == 61 { 2 } else { 1 }, names))
    };
    let both = transposed(1, 61, &["", ".tnspA", ".tnspB", ".tnspA.tnspB"]);
    let only_b = transposed(2, 62, &["", ".tnspB"]);
    let accumulate = field(F::Accumulate, 75, 1, &[".F16", ".F32"]);
    let halves = field(F::SourceType, 76, 2, &["", ".BF16"]);
    let tf32 = field(F::SourceType, 76, 2, &["!", "!", ".TF32"]);
    let dense = field(F::Sparse, 73, 1, &[""]);
    for (first_k, tiles, kind) in [(0u8, HALF_TILES, halves), (1, TF32_TILES, tf32)] {
        let short = field(F::ShortK, 58, 1, if first_k == 0 { &[""] } else { &["!", ""] });
        let shape = field(F::Shape, 53, 5, tiles);
        let fields = [dense, shape, short, accumulate, kind];
        t.row(Hgmma, 0x19f0, 0, &from_shared, &[&fields[..], &[negate, both]].concat());
        t.row(Hgmma, 0x1df0, 0, &from_registers(minus), &[&fields[..], &[only_b]].concat());
    }
    let eights: &'static [&'static str] = &[".E4M3", ".E5M2"];
    let fields = [
        dense,
        field(F::Shape, 53, 5, BYTE_TILES),
        accumulate,
        field(F::SourceType, 76, 1, eights),
        field(F::DestinationType, 77, 1, eights),
    ];
    t.row(Qgmma, 0x19f3, 0, &from_shared, &[&fields[..], &[negate]].concat());
    t.row(Qgmma, 0x1df3, 0, &from_registers(minus), &fields);
    let integers: &'static [&'static str] = &[".U8", ".S8"];
    let fields = [
        dense,
        field(F::Shape, 53, 5, INTEGER_TILES),
        field(F::SourceType, 76, 1, integers),
        field(F::DestinationType, 82, 1, integers),
        field(F::Saturate, 75, 1, &["", ".SAT"]),
    ];
    t.row(Igmma, 0x19f1, 0, &from_shared, &fields);
    t.row(Igmma, 0x1df1, 0, &from_registers(MarkBits::NONE), &fields);
    let fields = [
        dense,
        field(F::Shape, 53, 5, BIT_TILES),
        field(F::Function, 77, 2, &["!", "!", ".AND"]),
        field(F::Accumulate, 80, 1, &["!", ".POPC"]),
    ];
    t.row(Bgmma, 0x19f2, 0, &from_shared, &fields);
    t.row(Bgmma, 0x1df2, 0, &from_registers(MarkBits::NONE), &fields);
}

/// Every third encoding is one; the width doubles its step where four no longer fit.
const INTEGER_TILES: &[&str] = &[
    ".64x8x32",
    "!",
    "!",
    ".64x16x32",
    "!",
    "!",
    ".64x24x32",
    "!",
    "!",
    ".64x32x32",
    "!",
    "!",
    ".64x48x32",
    "!",
    "!",
    ".64x64x32",
    "!",
    "!",
    ".64x80x32",
    "!",
    "!",
    ".64x96x32",
    "!",
    "!",
    ".64x112x32",
    "!",
    "!",
    ".64x128x32",
    "!",
    "!",
    ".64x144x32",
];
