//! Loads, stores, atomics, fences.
use super::FieldId as F;
use super::Op::*;
use super::build::*;
use crate::row::{ALWAYS, NO_BIT};
use crate::{Arch, Bits, Hide, MarkBits, Modifier, Slot, SlotKind};

const D: Slot = reg(16);
const SIZE: Modifier = field(F::Size, 73, 3, &[".U8", ".S8", ".U16", ".S16", "", ".64", ".128"]);
const E: Modifier = field(F::Wide64, 72, 1, &["", ".E"]);
const ORDERS: &[&str] = &[
    "",
    ".CONSTANT.PRIVATE",
    ".CONSTANT.CTA",
    "!",
    ".CONSTANT",
    ".STRONG.SM",
    "!",
    ".STRONG.GPU",
    ".MMIO.GPU",
    "!",
    ".STRONG.SYS",
];
const ORDER: Modifier = field(F::Order, 77, 4, ORDERS);
const EVICT: Modifier = field(F::Evict, 84, 2, &[".EF", "", ".EL", ".LU"]);
const ATOMIC_TYPE: Modifier =
    field(F::Size, 73, 3, &["", ".S32", ".64", ".F32.FTZ.RN", ".F16x2.RN", ".S64", ".F64.RN", ".BF16x2.RN"]);
const ATOMIC: Modifier =
    field(F::Function, 87, 4, &[".ADD", ".MIN", ".MAX", ".INC", ".DEC", ".AND", ".OR", ".XOR", ".EXCH"]);

/// Functions of ATOMS without data: arrival at an mbarrier, and a count of the lanes.
const COUNTING: Modifier =
    field(F::Function, 87, 4, &["!", "!", "!", "!", "!", "!", "!", "!", "!", ".ARRIVE"]);
const INCREMENT: Modifier =
    field(F::Function, 87, 4, &["!", "!", "!", "!", "!", "!", "!", "!", "!", "!", ".POPC.INC"]);
/// The same from sm_90 on.
const INCREMENT_HOPPER: Modifier =
    field(F::Function, 87, 4, &["!", "!", "!", "!", "!", "!", "!", "!", "!", "!", "!", ".POPC.INC"]);
/// Three bits where the instruction has room for them.
const EVICT3: Modifier = field(F::Evict, 84, 3, &[".EF", "", ".EL", ".LU", ".EU", ".NA"]);
const COPY_ORDERS: &[&str] = &[
    "",
    ".CONSTANT.PRIVATE",
    ".CONSTANT.CTA",
    ".CONSTANT.CTA.PRIVATE",
    ".CONSTANT",
    ".MMIO.CTA",
    ".GPU.PRIVATE",
    ".MMIO.CTA.PRIVATE",
    ".MMIO.SM",
    ".CONSTANT.SM",
    ".MMIO.VC",
    ".CONSTANT.SM.PRIVATE",
    ".MMIO.GPU",
    ".CONSTANT.VC",
    ".CONSTANT.VC.PRIVATE",
    ".CONSTANT.GPU",
];

const fn address(wide: u8, scale: u8, uniform: u8, descriptor: u8) -> Slot {
    slot(SlotKind::Address {
        base: 24,
        offset: Bits::run(40, 24),
        wide,
        quiet: false,
        scale,
        uniform,
        descriptor,
    })
}
/// Plain `[R+offset]`.
const LOCAL: Slot = address(NO_BIT, NO_BIT, NO_BIT, NO_BIT);

pub(super) fn add(t: &mut Rows) {
    let prefetch = field(F::Prefetch, 68, 2, &["", ".LTC64B", ".LTC128B", "!"]);
    // Global and generic loads and stores, with and without a uniform register.
    t.row(Ldg, 0x381, 0, &[D, LOCAL, pred(81).hidden(Hide::Always)], &[E, EVICT, prefetch, SIZE, ORDER]);
    t.row(
        Ldg,
        0x1981,
        0,
        &[D, address(90, NO_BIT, 32, 76), pred(81).hidden(Hide::Always)],
        &[E, EVICT, prefetch, SIZE, ORDER],
    );
    t.row(Ld, 0x980, 0, &[D, LOCAL, pred(81).hidden(Hide::Always)], &[E, EVICT, SIZE, ORDER]);
    t.row(
        Ld,
        0x1980,
        0,
        &[D, address(90, NO_BIT, 32, 76), pred(81).hidden(Hide::Always)],
        &[E, EVICT, SIZE, ORDER],
    );
    for (op, plain, with) in [(Stg, 0x386, 0x1986), (St, 0x385, 0x1985)] {
        t.row(op, plain, 0, &[LOCAL, reg(32)], &[E, EVICT, SIZE, ORDER]);
        t.row(op, with, 0, &[address(90, NO_BIT, 64, 76), reg(32)], &[E, EVICT, SIZE, ORDER]);
    }
    t.row(Ldl, 0x983, 0, &[D, LOCAL], &[field(F::Evict, 84, 2, &[".EF", "", ".EL", ".LU"]), SIZE]);
    t.row(Stl, 0x387, 0, &[LOCAL, reg(32)], &[field(F::Evict, 84, 2, &[".EF", "", ".EL", ".LU"]), SIZE]);
    let shared = address(NO_BIT, 78, NO_BIT, NO_BIT);
    t.row(Lds, 0x984, 0, &[D, shared], &[SIZE]);
    t.row(Lds, 0x1984, 0, &[D, address(NO_BIT, 78, 32, NO_BIT)], &[SIZE]);
    t.row(Sts, 0x388, 0, &[shared, reg(32)], &[SIZE]);
    t.row(Sts, 0x1988, 0, &[address(NO_BIT, 78, 64, NO_BIT), reg(32)], &[SIZE]);
    let indexed = slot(SlotKind::Constant {
        marks: MarkBits::NONE,
        half: crate::HalfBits::None,
        index: 24,
        uniform_index: false,
    });
    t.row(Ldc, 0xb82, 0, &[D, indexed], &[SIZE]);

    let target = pred(81);
    for (op, plain, with) in [(Atom, 0x38a, 0x198a), (Atomg, 0x3a8, 0x19a8)] {
        t.row(op, plain, 0, &[target, D, LOCAL, reg(32)], &[E, EVICT, ATOMIC, ATOMIC_TYPE, ORDER]);
        t.row(
            op,
            with,
            0,
            &[target, D, address(70, NO_BIT, 64, 71), reg(32)],
            &[E, EVICT, ATOMIC, ATOMIC_TYPE, ORDER],
        );
    }
    for (op, opcode) in [(AtomCas, 0x38b), (AtomgCas, 0x3a9)] {
        let kind = field(F::Size, 73, 3, &["", "!", ".64"]);
        t.row(
            op,
            opcode,
            0,
            &[target, D, LOCAL, reg(32), reg(64)],
            &[E, field(F::Function, 87, 4, &[".CAS"]), kind, field(F::Order, 77, 4, ORDERS), EVICT],
        );
    }
    let reduction =
        field(F::Function, 87, 3, &[".ADD", ".MIN", ".MAX", ".INC", ".DEC", ".AND", ".OR", ".XOR"]);
    let red_slots = [address(90, NO_BIT, 64, 71), reg(32)];
    t.row(Red, 0x198e, 0, &red_slots, &[E, EVICT, reduction, ATOMIC_TYPE, ORDER]);
    t.row(Red, 0x98e, 0, &[LOCAL, reg(32)], &[E, EVICT, reduction, ATOMIC_TYPE, ORDER]);
    // sm_90 gave the floating-point additions opcodes and types of their own, renumbered the others,
    // and renamed RED.
    for row in &mut t.0 {
        if matches!(row.op, Atom | Atomg | Red) {
            row.until = Arch::Sm89;
        }
    }
    let integers = field(F::Size, 73, 3, &["", ".S32", ".64", ".S64"]);
    let floats = field(
        F::Size,
        73,
        4,
        &[
            ".F16x2.RN",
            "!",
            "!",
            ".BF16x2.RN",
            "!",
            "!",
            "!",
            "!",
            "!",
            ".F32.FTZ.RN",
            ".F32x2.FTZ.RN",
            ".F32x4.FTZ.RN",
            "!",
            "!",
            "!",
            ".F64.RN",
        ],
    );
    let atom_slots = [target, D, address(70, NO_BIT, 64, 71), reg(32)];
    let add = field(F::Function, 87, 3, &[".ADD"]);
    let mut hopper = Rows::default();
    for (op, whole, float) in [(Atom, 0x198a, 0x19a2), (Atomg, 0x19a8, 0x19a3)] {
        hopper.row(op, whole, 0, &atom_slots, &[E, EVICT, ATOMIC, integers, ORDER]);
        hopper.row(op, float, 0, &atom_slots, &[E, EVICT, add, floats, ORDER]);
    }
    hopper.row(Redg, 0x198e, 0, &red_slots, &[E, EVICT, reduction, integers, ORDER]);
    hopper.row(Redg, 0x19a6, 0, &red_slots, &[E, EVICT, add, floats, ORDER]);
    for mut row in hopper.0 {
        row.since = Arch::Sm90;
        t.0.push(row);
    }
    // Turing numbers orders and scopes otherwise.
    for row in t.0.iter_mut().filter(|row| row.modifiers.iter().any(|m| m.id == F::Order)) {
        row.since = row.since.max(Arch::Sm80);
    }
    let atoms_type = field(F::Size, 73, 2, &["", ".S32", ".64"]);
    t.row(Atoms, 0x38c, 0, &[D, shared, reg(32)], &[ATOMIC, atoms_type]);
    t.row(Atoms, 0x198c, 0, &[D, address(NO_BIT, 78, 64, NO_BIT), reg(32)], &[ATOMIC, atoms_type]);
    let cas_type = field(F::Size, 73, 2, &["", "!", ".64"]);
    t.row(
        AtomsCas,
        0x38d,
        0,
        &[D, shared, reg(32), reg(64)],
        &[field(F::Function, 87, 2, &[".CAS"]), cas_type],
    );
    t.row(
        AtomsCast,
        0x38d,
        0,
        &[D, shared, reg(32), reg(64)],
        &[field(F::Function, 87, 2, &["!", "!", "!", ""]), cas_type],
    );

    let strength = field(F::Mode, 79, 2, &[".SC", ".ALL"]);
    let scope = field(F::Scope, 76, 3, &[".CTA", "!", ".GPU", ".SYS", "!", ".VC"]);
    t.row(Membar, 0x992, 0, &[], &[strength, scope]);
    t.row(Errbar, 0x9ab, 0, &[], &[]);
    t.row(Cgaerrbar, 0x5ab, 0, &[], &[]);
    t.row(Cctl, 0x98f, 2 << 88 | 0xff << 24, &[], &[]);
    t.row(Ldgdepbar, 0x9af, 0, &[], &[]);
    t.row(Depbar, 0x91a, 1 << 47, &[slot(SlotKind::Scoreboard(44)), imm(38, 6)], &[]);
    let space = field(F::Mode, 73, 2, &[".G", ".L", ".S", ".D"]);
    t.row(Qspc, 0x3aa, 0, &[pred(81), D, LOCAL], &[E, space]);
    let transpose = field(F::Transpose, 78, 2, &[".M88", ".MT88", ".M816", ".M832"]);
    let count = field(F::Count, 72, 2, &["", ".2", ".4"]);
    t.row(
        Atoms,
        0x1f8c,
        0,
        &[D, address(NO_BIT, 78, 64, NO_BIT)],
        &[COUNTING, field(F::Size, 73, 2, &["!", "!", ".64"])],
    );
    let count_type = field(F::Size, 73, 2, &[".32"]);
    let counted = [D, address(NO_BIT, 78, 64, NO_BIT)];
    t.row(Atoms, 0x1f8c, 0, &counted, &[INCREMENT, count_type]).until = Arch::Sm89;
    t.row(Atoms, 0x1f8c, 0, &counted, &[INCREMENT_HOPPER, count_type]).since = Arch::Sm90;
    let destination = slot(SlotKind::Address {
        base: 16,
        offset: Bits::run(44, 20),
        wide: NO_BIT,
        quiet: false,
        scale: NO_BIT,
        uniform: NO_BIT,
        descriptor: NO_BIT,
    });
    let copied = slot(SlotKind::Address {
        base: 24,
        offset: Bits::run(32, 12),
        wide: ALWAYS,
        quiet: false,
        scale: NO_BIT,
        uniform: 64,
        descriptor: 76,
    });
    let copy = [
        field(F::Wide64, 70, 1, &["!", ".E"]),
        field(F::Bypass, 81, 1, &[".BYPASS", ""]),
        EVICT3,
        field(F::Prefetch, 71, 2, &["", ".LTC64B", ".LTC128B", ".LTC256B"]),
        field(F::Size, 73, 3, &["!", "!", "!", "!", "", ".64", ".128"]),
        field(F::Order, 77, 4, COPY_ORDERS),
        field(F::ZeroFill, 82, 1, &["", ".ZFILL"]),
    ];
    let enable = pred_not(87, 90).hidden(Hide::Neutral);
    let row = t.row(Ldgsts, 0x1fae, 0, &[destination, copied, enable], &copy);
    (row.since, row.until) = (Arch::Sm80, Arch::Sm90);
    t.row(Ldsm, 0x83b, 0, &[D, LOCAL], &[transpose, count]);
}
