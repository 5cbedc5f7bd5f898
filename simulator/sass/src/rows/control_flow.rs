//! Branches, convergence, barriers.
use super::FieldId as F;
use super::Op::*;
use super::build::*;
use crate::row::NO_BIT;
use crate::{Arch, Hide, Slot, SlotKind};

const FAR: Slot = slot(SlotKind::FarLabel);
const COND: Slot = pred_not(87, 90).hidden(Hide::Neutral);

/// What BMOV reaches beside the convergence barriers.
#[rustfmt::skip]
const WARP_STATE: &[&str] = &[
    "!", "!", "!", "!", "!", "!", "!", "!", "!", "!", "!", "!", "!", "!", "!", "!",
    "THREAD_STATE_ENUM.0",
    "THREAD_STATE_ENUM.1",
    "THREAD_STATE_ENUM.2",
    "THREAD_STATE_ENUM.3",
    "THREAD_STATE_ENUM.4",
    "TRAP_RETURN_PC.LO",
    "TRAP_RETURN_PC.HI",
    "TRAP_RETURN_MASK",
    "MEXITED",
    "MKILL",
    "MACTIVE",
    "MATEXIT",
    "OPT_STACK",
    "API_CALL_DEPTH",
    "ATEXIT_PC.LO",
    "ATEXIT_PC.HI",
];

pub(super) fn add(t: &mut Rows) {
    t.row(Nop, 0x918, 0, &[], &[]);
    t.row(Exit, 0x94d, 0, &[COND], &[]);
    // A branch that the whole warp takes or not, and tests of convergence.
    let all = field(F::Divergence, 32, 2, &["", ".U", ".DIV", ".CONV"]);
    t.row(Bra, 0x947, 0, &[COND, FAR], &[all]).until = Arch::Sm89;
    let unanimous = field_split(F::Divergence, (32, 2), (84, 1), &["", ".U", ".DIV", ".CONV", "!", ".U.ANY"]);
    t.row(Bra, 0x947, 0, &[COND, FAR], &[unanimous]).since = Arch::Sm90;
    let mask =
        slot(SlotKind::Uniform { lo: 24, marks: marks(NO_BIT, NO_BIT, 30), half: crate::HalfBits::None });
    let test = field(F::Divergence, 32, 2, &["!", "!", ".DIV", ".CONV"]);
    t.row(Bra, 0x1947, 0, &[COND, mask, FAR], &[test]).since = Arch::Sm80;
    let barrier = slot(SlotKind::Barrier(16));
    let reliable = field(F::Reliable, 72, 2, &["", ".RELIABLE", ".RECONVERGENT"]);
    for (since, until, fields) in
        [(Arch::Sm75, Arch::Sm90, &[][..]), (Arch::Sm100, Arch::Sm120, &[reliable][..])]
    {
        t.span(since, until, |t| {
            t.row(Bssy, 0x945, 0, &[COND, barrier, slot(SlotKind::NearLabel)], fields);
            t.row(Bsync, 0x941, 0, &[COND, barrier], fields);
            t.row(Break, 0x942, 0, &[COND, barrier], fields);
        });
    }
    t.row(Brx, 0x949, 0, &[COND, reg(24), slot(SlotKind::FarDisplacement)], &[]);
    t.row(Jmx, 0x94c, 0, &[COND, reg(24), slot(SlotKind::FarDisplacement)], &[]);
    t.row(Jmp, 0x94a, 0, &[COND, slot(SlotKind::Absolute)], &[]);
    let noinc = field(F::NoIncrement, 86, 1, &["", ".NOINC"]);
    let relative = field(F::Absolute, 85, 1, &[".REL"]);
    t.row(Call, 0x944, 0, &[COND, FAR], &[relative, noinc]);
    t.row(Call, 0x344, 0, &[COND, reg(24), FAR], &[relative, noinc]);
    let absolute = field(F::Absolute, 85, 1, &[".ABS"]);
    t.row(Call, 0x943, 0, &[COND, slot(SlotKind::Absolute)], &[absolute, noinc]);
    let offset = slot(SlotKind::Absolute).hidden(Hide::Neutral);
    t.row(Call, 0x343, 0, &[COND, reg(24), offset], &[absolute, noinc]);
    let nodec = field(F::NoDecrement, 86, 1, &["", ".NODEC"]);
    t.row(Ret, 0x950, 0, &[COND, reg(24), FAR], &[relative, nodec]);
    let absolute = field(F::Absolute, 85, 1, &["!", ".ABS"]);
    t.row(Ret, 0x950, 0, &[COND, reg(24), slot(SlotKind::FarDisplacement)], &[absolute, nodec]);
    t.row(Warpsync, 0x948, 0, &[COND, imm(32, 32)], &[field(F::Exclusive, 86, 1, &["", "!"])]).until =
        Arch::Sm89;
    t.span(Arch::Sm80, Arch::Sm89, |t| {
        t.row(Warpsync, 0x348, 0, &[COND, reg(32)], &[field(F::Exclusive, 86, 1, &["", ".EXCLUSIVE"])]);
    });
    t.row(Warpsync, 0x348, 0, &[COND, reg(32)], &[field(F::Exclusive, 86, 1, &[""])]).until = Arch::Sm75;
    let alone = field(F::Exclusive, 85, 2, &["", ".EXCLUSIVE"]);
    t.row(Warpsync, 0x348, 0, &[COND, reg(24)], &[alone]).since = Arch::Sm90;
    t.row(Warpsync, 0x948, 0, &[COND], &[field(F::Exclusive, 86, 1, &[".ALL"])]).since = Arch::Sm90;
    t.row(Warpsync, 0x948, 0, &[COND, FAR], &[field(F::Exclusive, 86, 1, &["!", ".COLLECTIVE.ALL"])]).since =
        Arch::Sm90;
    t.row(Warpsync, 0x348, 0, &[COND, reg(24), FAR], &[field(F::Exclusive, 86, 1, &["!", ".COLLECTIVE"])])
        .since = Arch::Sm90;
    t.row(Yield, 0x946, 0, &[COND], &[]);
    t.row(Kill, 0x95b, 0, &[COND], &[]);
    t.row(Bpt, 0x95c, 3 << 84, &[imm(34, 3).hidden(Hide::Neutral)], &[]);
    let sleep = [field(F::Random, 86, 1, &["", ".RAND"]), field(F::Warp, 85, 1, &["", ".WARP"])];
    let waken = field(F::WakenBySyncs, 84, 1, &["", ".SYNCS"]);
    for (since, until, fields) in
        [(Arch::Sm75, Arch::Sm89, sleep.to_vec()), (Arch::Sm90, Arch::Sm120, [&sleep[..], &[waken]].concat())]
    {
        t.span(since, until, |t| {
            t.row(Nanosleep, 0x95d, 0, &[COND, imm(32, 32)], &fields);
            t.row(Nanosleep, 0x35d, 0, &[COND, reg(32)], &fields);
        });
    }
    let clear = field(F::Clear, 84, 1, &["", ".CLEAR"]);
    let quad = field(F::Quad, 84, 1, &["", ".PQUAD"]);
    let state = slot(SlotKind::Word { bits: crate::Bits::run(24, 5), spelling: WARP_STATE });
    t.row(Bmov, 0x355, 0, &[reg(16), slot(SlotKind::Barrier(24))], &[clear]);
    t.row(Bmov, 0x355, 0, &[reg(16), state], &[clear]);
    t.row(Bmov, 0x356, 0, &[slot(SlotKind::Barrier(24)), reg(32)], &[quad]);
    t.row(Bmov, 0x356, 0, &[state, reg(32)], &[quad]);
    t.row(Bmov, 0xf55, 0, &[slot(SlotKind::Barrier(16)), state], &[field(F::Clear, 84, 1, &[""])]);
    t.row(Bmov, 0xf56, 0, &[state, slot(SlotKind::Barrier(16))], &[quad]);
    // A register pair of each lane, which nvcc uses where it has no other left.
    let pair = slot(SlotKind::Word { bits: crate::Bits::run(31, 1), spelling: &["Rpc.LO", "Rpc.HI"] });
    t.row(Rpcmov, 0x352, 0, &[pair, reg(32)], &[]);
    t.row(Rpcmov, 0x353, 0, &[reg(16), pair], &[]);
    t.row(Lepc, 0x34e, 0, &[reg(16)], &[]);
    t.row(Lepc, 0x94e, 0, &[reg(16), slot(SlotKind::WideLabel)], &[]).since = Arch::Sm90;
    t.row(Endcollective, 0x91b, 7 << 87, &[], &[]).since = Arch::Sm90;

    let sync = field(F::Mode, 77, 2, &[".SYNC"]);
    let arrive = field(F::Mode, 77, 2, &["!", ".ARV"]);
    let defer = field(F::Defer, 80, 1, &["", ".DEFER_BLOCKING"]);
    let now = field(F::Defer, 80, 1, &[""]);
    let unused = pred_not(87, 90).hidden(Hide::Always);
    let count = imm(42, 12);
    let whole = imm(42, 12).hidden(Hide::Neutral);
    for (mode, defer, count) in [(sync, defer, whole), (arrive, now, count)] {
        t.row(Bar, 0xb1d, 0, &[imm(54, 4), count, unused], &[mode, defer]);
        // One register holds barrier and count, and is printed for both.
        t.row(Bar, 0x31d, 0, &[reg(32), reg(32), unused], &[mode, defer]);
    }
    t.row(Bar, 0x91d, 0, &[imm(54, 4), reg(32), unused], &[sync, defer]);
    t.row(Bar, 0x91d, 0, &[imm(54, 4), reg(32), unused], &[arrive, now]);
    t.row(Bar, 0x51d, 0, &[reg(32), unused, whole], &[sync, defer]);
    t.row(Bar, 0x51d, 0, &[reg(32), unused, count], &[arrive, now]);
    let reduce = field(F::Mode, 77, 2, &["!", "!", ".RED"]);
    let function = field(F::Reduction, 74, 2, &[".POPC", ".AND", ".OR"]);
    t.row(Bar, 0xb1d, 0, &[imm(54, 4), whole, pred_not(87, 90)], &[reduce, function, defer]);
    t.row(Bar, 0x91d, 0, &[imm(54, 4), reg(32), pred_not(87, 90)], &[reduce, function, defer]);
    t.row(Bar, 0x31d, 0, &[reg(32), reg(32), pred_not(87, 90)], &[reduce, function, defer]);
    t.row(Bar, 0x51d, 0, &[reg(32), whole, pred_not(87, 90)], &[reduce, function, defer]);
    t.row(
        B2r,
        0x31c,
        0,
        &[reg(16), pred(81).hidden(Hide::Neutral)],
        &[field(F::Mode, 78, 1, &["!", ".RESULT"])],
    );
}
