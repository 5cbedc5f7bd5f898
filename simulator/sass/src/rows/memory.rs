//! Loads, stores, atomics, fences.
use super::FieldId as F;
use super::Op::*;
use super::build::*;
use crate::row::{ALWAYS, NO_BIT};
use crate::{Arch, Bits, Hide, MarkBits, Modifier, Row, Slot, SlotKind};

const D: Slot = reg(16);
pub(super) const SIZE: Modifier = field(F::Size, 73, 3, &[".U8", ".S8", ".U16", ".S16", "", ".64", ".128"]);
const E: Modifier = field(F::Wide64, 72, 1, &["", ".E"]);
/// The same where the form with a uniform register knows 64-bit addresses only.
const ALWAYS_E: Modifier = field(F::Wide64, 72, 1, &["!", ".E"]);
#[rustfmt::skip]
const LOAD_ORDERS: &[&str] = &[
    "", ".CONSTANT.PRIVATE", ".CONSTANT.CTA", ".CONSTANT.CTA.PRIVATE",
    ".CONSTANT", ".STRONG.SM", ".STRONG.GPU.PRIVATE", ".STRONG.GPU",
    ".MMIO.GPU", ".CONSTANT.SM", ".STRONG.SYS", ".CONSTANT.SM.PRIVATE",
    ".MMIO.SYS", ".CONSTANT.VC", ".CONSTANT.VC.PRIVATE", ".CONSTANT.GPU",
];
#[rustfmt::skip]
const STORE_ORDERS: &[&str] = &[
    "", ".CONSTANT.PRIVATE", ".CONSTANT.CTA", ".CONSTANT.CTA.PRIVATE",
    ".STRONG.SM.PRIVATE", ".STRONG.SM", ".STRONG.GPU.PRIVATE", ".STRONG.GPU",
    ".MMIO.GPU", ".CONSTANT.SM", ".STRONG.SYS", ".CONSTANT.SM.PRIVATE",
    ".MMIO.SYS", ".CONSTANT.VC", ".CONSTANT.VC.PRIVATE", ".CONSTANT.GPU",
];
#[rustfmt::skip]
const COPY_ORDERS: &[&str] = &[
    "", ".CONSTANT.PRIVATE", ".CONSTANT.CTA", ".CONSTANT.CTA.PRIVATE",
    ".CONSTANT", ".MMIO.CTA", ".GPU.PRIVATE", ".MMIO.CTA.PRIVATE",
    ".MMIO.SM", ".CONSTANT.SM", ".MMIO.VC", ".CONSTANT.SM.PRIVATE",
    ".MMIO.GPU", ".CONSTANT.VC", ".CONSTANT.VC.PRIVATE", ".CONSTANT.GPU",
];
/// Turing has the scope in the two low bits and the strength in the two high ones.
#[rustfmt::skip]
const TURING_LOAD_ORDERS: &[&str] = &[
    ".CONSTANT.CTA", ".CONSTANT.SM", ".CONSTANT.GPU", ".CONSTANT.SYS",
    ".CTA", ".SM", ".GPU", ".SYS",
    ".STRONG.CTA", ".STRONG.SM", ".STRONG.GPU", ".STRONG.SYS",
    ".MMIO.CTA", ".MMIO.SM", ".MMIO.GPU", ".MMIO.SYS",
];
#[rustfmt::skip]
const TURING_STORE_ORDERS: &[&str] = &[
    "!", "!", "!", "!",
    ".CTA", ".SM", ".GPU", ".SYS",
    ".STRONG.CTA", ".STRONG.SM", ".STRONG.GPU", ".STRONG.SYS",
    ".MMIO.CTA", ".MMIO.SM", ".MMIO.GPU", ".MMIO.SYS",
];
#[rustfmt::skip]
const TURING_ATOMIC_ORDERS: &[&str] = &[
    "!", "!", "!", "!",
    ".CTA", ".SM", ".GPU", ".SYS",
    ".STRONG.CTA", ".STRONG.SM", ".STRONG.GPU", ".STRONG.SYS",
];
pub(super) const EVICT: Modifier = field(F::Evict, 84, 3, &[".EF", "", ".EL", ".LU", ".EU", ".NA"]);
const ATOMIC_TYPE: Modifier =
    field(F::Size, 73, 3, &["", ".S32", ".64", ".F32.FTZ.RN", ".F16x2.RN", ".S64", ".F64.RN", ".BF16x2.RN"]);
pub(super) const ATOMIC: Modifier =
    field(F::Function, 87, 4, &[".ADD", ".MIN", ".MAX", ".INC", ".DEC", ".AND", ".OR", ".XOR", ".EXCH"]);
pub(super) const REDUCTION: Modifier =
    field(F::Function, 87, 3, &[".ADD", ".MIN", ".MAX", ".INC", ".DEC", ".AND", ".OR", ".XOR"]);
/// Functions of ATOMS without data: arrival at an mbarrier, and a count of the lanes.
const ARRIVE: Modifier = field(F::Function, 87, 4, &["!", "!", "!", "!", "!", "!", "!", "!", "!", ".ARRIVE"]);
const INCREMENT: Modifier =
    field(F::Function, 87, 4, &["!", "!", "!", "!", "!", "!", "!", "!", "!", "!", ".POPC.INC"]);
const INCREMENT_HOPPER: Modifier =
    field(F::Function, 87, 4, &["!", "!", "!", "!", "!", "!", "!", "!", "!", "!", "!", ".POPC.INC"]);

const fn address(wide: u8, scale: u8, uniform: u8, descriptor: u8) -> Slot {
    placed(24, (40, 24), wide, scale, uniform, descriptor)
}
const fn placed(base: u8, offset: (u8, u8), wide: u8, scale: u8, uniform: u8, descriptor: u8) -> Slot {
    let offset = Bits::run(offset.0, offset.1);
    slot(SlotKind::Address { base, offset, wide, quiet: false, scale, uniform, descriptor })
}
/// Plain `[R+offset]`.
const LOCAL: Slot = address(NO_BIT, NO_BIT, NO_BIT, NO_BIT);
const SHARED: Slot = address(NO_BIT, 78, NO_BIT, NO_BIT);
const SHARED_UNIFORM: Slot = address(NO_BIT, 78, 64, NO_BIT);
/// What orders an instruction knows, from Ampere on and on Turing.
pub(super) type Orders = [&'static [&'static str]; 2];
pub(super) const LOAD: Orders = [LOAD_ORDERS, TURING_LOAD_ORDERS];
pub(super) const STORE: Orders = [STORE_ORDERS, TURING_STORE_ORDERS];
const ATOM: Orders = [STORE_ORDERS, TURING_ATOMIC_ORDERS];

/// The same slots with the base register a pair for certain, and the bits that say so.
fn always_paired(slots: &[Slot]) -> (Vec<Slot>, u128) {
    let mut fixed = 0;
    let mut paired = slots.to_vec();
    for slot in &mut paired {
        if let SlotKind::Address { wide, .. } = &mut slot.kind
            && *wide != NO_BIT
        {
            fixed |= 1 << *wide;
            *wide = ALWAYS;
        }
    }
    (paired, fixed)
}

/// Adds a row with a memory order among its fields, once for Turing and once for what came after. A field
/// of the caller's with the identity `Order` marks the place.
pub(super) fn ordered(
    t: &mut Rows,
    op: super::Op,
    opcode: u16,
    slots: &[Slot],
    fields: &[Modifier],
    orders: Orders,
) {
    let with = |names: &'static [&'static str], lo| -> Vec<Modifier> {
        let order = |m: &Modifier| {
            if m.id == F::Order { field(F::Order, lo, 4, names) } else { *m }
        };
        fields.iter().map(order).collect()
    };
    // From Ampere on, the base beside a uniform register is always a pair.
    let (paired, fixed) = always_paired(slots);
    t.row(op, opcode, fixed, &paired, &with(orders[0], 77)).since = Arch::Sm80;
    // `.PRIVATE` is printed behind the scope; there are no descriptors.
    let mut turing = with(orders[1], 77);
    if let Some(index) = turing.iter().position(|m| m.id == F::Order) {
        turing.insert(index + 1, field(F::Private, 76, 1, &["", ".PRIVATE"]));
    }
    let mut bare = slots.to_vec();
    for slot in &mut bare {
        if let SlotKind::Address { descriptor, .. } = &mut slot.kind {
            *descriptor = NO_BIT;
        }
    }
    t.row(op, opcode, 0, &bare, &turing).until = Arch::Sm75;
}
pub(super) const ORDER: Modifier = field(F::Order, 77, 4, &[]);

pub(super) fn add(t: &mut Rows) {
    let first = t.0.len();
    loads_and_stores(t);
    atomics(t);
    // Blackwell's uniform registers have two more bits, which some rows use for something else.
    let full = |row: &Row| {
        let others = row.modifiers.iter().fold(row.fixed, |mask, m| mask | m.bits.mask());
        row.slots.iter().any(|slot| match slot.kind {
            SlotKind::Address { uniform, wide, descriptor, .. } if uniform != NO_BIT => {
                let bit = |position: u8| if position < ALWAYS { 1 << position } else { 0 };
                (others | bit(wide) | bit(descriptor)) & 0xc0 << uniform != 0
            }
            _ => false,
        })
    };
    for row in t.0[first..].iter_mut().filter(|row| full(row)) {
        row.until = row.until.min(Arch::Sm90);
    }
    t.span(Arch::Sm90, Arch::Sm90, barriers_in_memory);
    t.row(Fence, 0x3c6, 0, &[], &[field(F::Scope, 72, 1, &[".S", ".G"])]).since = Arch::Sm90;
    fences(t);
    let transpose = field(F::Transpose, 78, 2, &[".M88", ".MT88", ".M816", ".M832"]);
    let count = field(F::Count, 72, 2, &["", ".2", ".4"]);
    t.row(Ldsm, 0x83b, 0, &[D, LOCAL], &[transpose, count]);
    t.row(Ldsm, 0x183b, 0, &[D, address(NO_BIT, NO_BIT, 32, NO_BIT)], &[transpose, count]);
    let plain = field(F::Transpose, 78, 1, &[".M88", ".MT88"]);
    t.span(Arch::Sm90, Arch::Sm120, |t| {
        t.row(Stsm, 0x844, 0, &[LOCAL, reg(32)], &[plain, count]);
        t.row(Stsm, 0x1844, 0, &[address(NO_BIT, NO_BIT, 64, NO_BIT), reg(32)], &[plain, count]);
    });
    // Copies that are under way count at an mbarrier.
    let arrived = address(NO_BIT, NO_BIT, 64, NO_BIT);
    let pair = field(F::Size, 73, 3, &["!", "!", "!", "!", "!", ".64"]);
    t.span(Arch::Sm80, Arch::Sm89, |t| {
        t.row(Arrives, 0x19b0, 0, &[arrived], &[pair]);
    });
    let counted = field(F::Count, 70, 2, &["", ".ARVCNT", ".TRANSCNT"]);
    t.span(Arch::Sm90, Arch::Sm90, |t| {
        t.row(Arrives, 0x19b0, 0, &[arrived], &[pair, counted]);
    });
}

fn loads_and_stores(t: &mut Rows) {
    let prefetch = field(F::Prefetch, 68, 2, &["", ".LTC64B", ".LTC128B", ".LTC256B"]);
    let found = pred(81).hidden(Hide::LeadingOrNeutral);
    let enable = pred_inverted(64, 67);
    // Global and generic loads and stores, with and without a uniform register.
    let long = placed(24, (32, 32), NO_BIT, NO_BIT, NO_BIT, NO_BIT);
    let described = address(90, NO_BIT, 32, 76);
    let load = |e| [e, EVICT, prefetch, SIZE, ORDER];
    ordered(t, Ldg, 0x381, &[D, LOCAL, found, enable], &load(E), LOAD);
    ordered(t, Ldg, 0x1981, &[D, described, found, enable], &load(ALWAYS_E), LOAD);
    let found = pred(81).hidden(Hide::Always);
    ordered(t, Ld, 0x980, &[D, long, found, enable], &load(E), LOAD);
    ordered(t, Ld, 0x1980, &[D, described, found, enable], &load(ALWAYS_E), LOAD);
    let described = address(90, NO_BIT, 64, 76);
    let store = |e| [e, EVICT, SIZE, ORDER];
    ordered(t, Stg, 0x386, &[LOCAL, reg(32)], &store(E), STORE);
    ordered(t, Stg, 0x1986, &[described, reg(32)], &store(ALWAYS_E), STORE);
    ordered(t, St, 0x385, &[long, reg(64)], &store(E), STORE);
    ordered(t, St, 0x1985, &[described, reg(32)], &store(ALWAYS_E), STORE);
    t.row(Ldl, 0x983, 0, &[D, LOCAL], &[EVICT, SIZE]);
    t.row(Stl, 0x387, 0, &[LOCAL, reg(32)], &[EVICT, SIZE]);
    t.row(Ldl, 0x1983, 0, &[D, address(NO_BIT, NO_BIT, 32, NO_BIT)], &[EVICT, SIZE]);
    t.row(Stl, 0x1987, 0, &[address(NO_BIT, NO_BIT, 64, NO_BIT), reg(32)], &[EVICT, SIZE]);
    let uniform_data = field(F::Unordered, 76, 1, &["", ".U"]);
    t.row(Lds, 0x984, 0, &[D, SHARED], &[uniform_data, SIZE]).until = Arch::Sm75;
    t.row(Lds, 0x984, 0, &[D, SHARED], &[SIZE]).since = Arch::Sm80;
    t.row(Lds, 0x1984, 0, &[D, address(NO_BIT, 78, 32, NO_BIT)], &[uniform_data, SIZE]).until = Arch::Sm75;
    t.row(Lds, 0x1984, 0, &[D, address(NO_BIT, 78, 32, NO_BIT)], &[SIZE]).since = Arch::Sm80;
    t.row(Sts, 0x388, 0, &[SHARED, reg(32)], &[SIZE]);
    t.row(Sts, 0x1988, 0, &[SHARED_UNIFORM, reg(32)], &[SIZE]);
    let indexed = slot(SlotKind::Constant {
        words: false,
        marks: MarkBits::NONE,
        half: crate::HalfBits::None,
        index: 24,
        uniform_index: false,
    });
    let narrow = field(F::Size, 73, 3, &[".U8", ".S8", ".U16", ".S16", "", ".64"]);
    let mode = field(F::Mode, 78, 2, &["", ".IL", ".IS", ".ISL"]);
    t.row(Ldc, 0xb82, 0, &[D, indexed], &[narrow, mode]);
    let (marks, half) = (MarkBits::NONE, crate::HalfBits::None);
    let bindless = slot(SlotKind::Bindless { bank: 24, words: false, marks, half, index: 64 });
    t.row(Ldc, 0x1582, 0, &[D, bindless], &[narrow, mode]).until = Arch::Sm90;

    // The global address is always a pair.
    let copy = [
        field(F::Wide64, 70, 1, &["!", ".E"]),
        field(F::Bypass, 81, 1, &[".BYPASS", ""]),
        EVICT,
        field(F::Prefetch, 71, 2, &["", ".LTC64B", ".LTC128B", ".LTC256B"]),
        field(F::Size, 73, 3, &["!", "!", "!", "!", "", ".64", ".128"]),
        field(F::ZeroFill, 82, 1, &["", ".ZFILL"]),
        field(F::Order, 77, 4, COPY_ORDERS),
    ];
    let to = placed(16, (44, 20), NO_BIT, NO_BIT, NO_BIT, NO_BIT);
    let from = placed(24, (32, 12), ALWAYS, NO_BIT, 64, 76);
    let enable = pred_not(87, 90).hidden(Hide::Neutral);
    t.row(Ldgsts, 0x1fae, 0, &[to, from, enable], &copy).since = Arch::Sm80;
}

fn atomics(t: &mut Rows) {
    let target = pred(81);
    // Turing wants the unused third source to be RZ.
    let unused = reg(64).hidden(Hide::Always);
    let plain = [target, D, LOCAL, reg(32), unused];
    let described = [target, D, address(70, NO_BIT, 64, 71), reg(32)];
    let red_slots = [address(90, NO_BIT, 64, 71), reg(32)];
    // sm_90 gave the floating-point additions opcodes and types of their own, renumbered the others,
    // and renamed RED.
    t.span(Arch::Sm75, Arch::Sm89, |t| {
        for (op, opcode, with) in [(Atom, 0x38a, 0x198a), (Atomg, 0x3a8, 0x19a8)] {
            let fields = |e| [e, ATOMIC, EVICT, ATOMIC_TYPE, ORDER];
            ordered(t, op, opcode, &plain, &fields(E), ATOM);
            ordered(t, op, with, &described, &fields(ALWAYS_E), ATOM);
        }
        ordered(t, Red, 0x198e, &red_slots, &[ALWAYS_E, REDUCTION, EVICT, ATOMIC_TYPE, ORDER], ATOM);
        ordered(t, Red, 0x98e, &[LOCAL, reg(32)], &[E, REDUCTION, EVICT, ATOMIC_TYPE, ORDER], ATOM);
    });
    for (op, opcode) in [(AtomCas, 0x38b), (AtomgCas, 0x3a9)] {
        let kind = field(F::Size, 73, 3, &["", ".S32", ".64"]);
        let wide = field(F::Size, 73, 3, &["!", "!", "!", "!", ".128"]);
        let order = field(F::Order, 77, 4, STORE_ORDERS);
        let compare = field(F::Function, 87, 1, &[".CAS"]);
        let slots = [target, D, LOCAL, reg(32), reg(64)];
        t.row(op, opcode, 0, &slots, &[E, compare, EVICT, wide, order]).since = Arch::Sm90;
        ordered(t, op, opcode, &slots, &[E, compare, EVICT, kind, ORDER], ATOM);
        if op == AtomCas {
            let spin = field(F::Function, 87, 2, &["!", ".CAST", "!", ".CAST.SPIN"]);
            ordered(t, op, opcode, &slots, &[E, spin, EVICT, kind, ORDER], ATOM);
        }
    }
    let integers = field(F::Size, 73, 3, &["", ".S32", ".64", ".S64", ".128"]);
    let floats = field(
        F::Size,
        73,
        4,
        &[
            ".F16x2.RN",
            ".F16x4.RN",
            ".F16x8.RN",
            ".BF16x2.RN",
            ".BF16x4.RN",
            ".BF16x8.RN",
            "!",
            "!",
            "!",
            ".F32.FTZ.RN",
            ".F32x2.FTZ.RN",
            ".F32x4.FTZ.RN",
            ".F32.RN",
            ".F32x2.RN",
            ".F32x4.RN",
            ".F64.RN",
        ],
    );
    let (atom_slots, wide) = always_paired(&described);
    let (red_slots, red_wide) = always_paired(&red_slots);
    let add = field(F::Function, 88, 2, &[".ADD", ".MIN", ".MAX"]);
    let order = field(F::Order, 77, 4, STORE_ORDERS);
    t.span(Arch::Sm90, Arch::Sm120, |t| {
        for (op, whole, float) in [(Atom, 0x198a, 0x19a2), (Atomg, 0x19a8, 0x19a3)] {
            t.row(op, whole, wide, &atom_slots, &[ALWAYS_E, ATOMIC, EVICT, integers, order]);
            t.row(op, float, wide, &atom_slots, &[ALWAYS_E, add, EVICT, floats, order]);
        }
        for (op, whole, float) in [(Atom, 0x38a, 0x3a2), (Atomg, 0x3a8, 0x3a3)] {
            t.row(op, whole, 0, &plain, &[E, ATOMIC, EVICT, integers, order]);
            t.row(op, float, 0, &plain, &[E, add, EVICT, floats, order]);
        }
        t.row(Redg, 0x98e, 0, &[LOCAL, reg(32)], &[E, REDUCTION, EVICT, integers, order]);
        t.row(Redg, 0x9a6, 0, &[LOCAL, reg(32)], &[E, add, EVICT, floats, order]);
        t.row(Redg, 0x198e, red_wide, &red_slots, &[ALWAYS_E, REDUCTION, EVICT, integers, order]);
        t.row(Redg, 0x19a6, red_wide, &red_slots, &[ALWAYS_E, add, EVICT, floats, order]);
    });

    let atoms_type = field(F::Size, 73, 2, &["", ".S32", ".64"]);
    t.row(Atoms, 0x38c, 0, &[D, SHARED, reg(32)], &[ATOMIC, atoms_type]).since = Arch::Sm80;
    t.row(Atoms, 0x38c, 0xff << 64, &[D, SHARED, reg(32)], &[ATOMIC, atoms_type]).until = Arch::Sm75;
    t.row(Atoms, 0x198c, 0, &[D, SHARED_UNIFORM, reg(32)], &[ATOMIC, atoms_type]);
    let word = field(F::Size, 73, 2, &[".32"]);
    let pair = field(F::Size, 73, 2, &["!", "!", ".64"]);
    t.span(Arch::Sm80, Arch::Sm89, |t| {
        t.row(Atoms, 0x1f8c, 0, &[D, SHARED_UNIFORM], &[ARRIVE, pair]);
        t.row(Atoms, 0x1f8c, 0, &[D, SHARED_UNIFORM], &[INCREMENT, word]);
    });
    let word = field(F::Size, 73, 3, &[".32"]);
    t.row(Atoms, 0x1f8c, 0, &[D, SHARED_UNIFORM], &[INCREMENT_HOPPER, word]).since = Arch::Sm90;
    let operands = [D, SHARED, reg(32), reg(64)];
    t.row(AtomsCas, 0x38d, 0, &operands, &[field(F::Function, 87, 2, &[".CAS"]), atoms_type]);
    let wide = field(F::Size, 73, 3, &["!", "!", "!", "!", ".128"]);
    t.row(AtomsCas, 0x38d, 0, &operands, &[field(F::Function, 87, 2, &[".CAS"]), wide]).since = Arch::Sm90;
    t.row(AtomsCast, 0x38d, 0, &operands, &[field(F::Function, 87, 2, &["!", "", "!", ".SPIN"]), atoms_type]);
}

fn barriers_in_memory(t: &mut Rows) {
    let place = |wide| placed(24, (40, 24), wide, NO_BIT, 64, NO_BIT);
    let try_wait = field(F::TryWait, 72, 1, &["", ".TRYWAIT"]);
    let phase = field(F::Function, 70, 2, &["!", ".PHASECHK.TRANS64"]);
    t.row(Syncs, 0x15a7, 0, &[pred(81), place(NO_BIT), reg(32)], &[phase, try_wait]);
    let arrive = field(F::Function, 70, 2, &[".ARRIVE.TRANS64"]);
    let mask = field(F::Tmask, 73, 1, &["", ".TMASK"]);
    let red = field(F::Reduction, 74, 1, &["", ".RED"]);
    let opt_out = field(F::OptOut, 75, 1, &["", ".OPTOUT"]);
    let count = field(F::Count, 84, 3, &["", ".A1T0", ".A0T1", ".A0TR", ".A0TX", ".ART0"]);
    t.row(Syncs, 0x19a7, 0, &[reg(16), place(NO_BIT), reg(32)], &[arrive, red, mask, opt_out, count]);
    let control = field(F::Function, 72, 2, &[".CCTL.IV", ".CCTL.WB"]);
    t.row(Syncs, 0x19b1, 0, &[place(NO_BIT)], &[control]);
    let exchange = field(F::Function, 72, 2, &["!", ".EXCH.64"]);
    let uniform = slot(SlotKind::Address {
        base: NO_BIT,
        offset: Bits::run(40, 24),
        wide: NO_BIT,
        quiet: false,
        scale: NO_BIT,
        uniform: 24,
        descriptor: NO_BIT,
    });
    t.row(Syncs, 0x15b2, 0, &[ureg(16), uniform, ureg(32)], &[exchange]).uniform_guard = true;
}

fn fences(t: &mut Rows) {
    let strength = field(F::Mode, 79, 2, &[".SC", ".ALL", "", ".MMIO"]);
    let scope = field(F::Scope, 76, 3, &[".CTA", ".SM", ".GPU", ".SYS", "!", ".VC"]);
    t.row(Membar, 0x992, 0, &[], &[strength, scope]);
    t.row(Errbar, 0x9ab, 0, &[], &[]);
    t.row(Cgaerrbar, 0x5ab, 0, &[], &[]).since = Arch::Sm90;
    let cache = field(F::Mode, 78, 2, &["", ".U", ".C", ".I"]);
    let all = field(F::Function, 87, 4, &["!", "!", "!", "!", ".IVALL"]);
    t.row(Cctl, 0x98f, 0xff << 24, &[], &[cache, all]);
    let line = placed(24, (32, 32), NO_BIT, NO_BIT, NO_BIT, NO_BIT);
    for (since, until, names) in [
        (Arch::Sm75, Arch::Sm75, &[".PF1", ".PF2", ".WB", ".IV", "!", ".RS"][..]),
        (
            Arch::Sm80,
            Arch::Sm120,
            &[".PF1", ".PF2", ".WB", ".IV", "!", ".RS", "!", "!", "!", ".PML2", ".DML2", ".RML2"],
        ),
    ] {
        t.span(since, until, |t| {
            t.row(CctlLine, 0x98f, 0, &[line], &[E, cache, field(F::Function, 87, 4, names)]);
        });
    }
    t.row(Ldgdepbar, 0x9af, 0, &[], &[]).since = Arch::Sm80;
    let set = slot(SlotKind::ScoreboardSet(32)).hidden(Hide::Neutral);
    t.row(Depbar, 0x91a, 1 << 47, &[slot(SlotKind::Scoreboard(44)), imm(38, 6), set], &[]);
    let space = field(F::Mode, 73, 2, &[".G", ".L", ".S", ".D"]);
    t.row(Qspc, 0x3aa, 0, &[pred(81), D, LOCAL], &[E, space]);
}
