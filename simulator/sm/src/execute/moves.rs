//! Moves, selections, predicates, votes, shuffles and special registers.

use sass::lane::{Sign, integer};

use super::super::cluster::RANK;
use super::super::core::Core;
use super::super::lanes::{FULL, LANES, ballot, bit, each, first, signs, spread};
use super::super::micro::{Flow, Micro};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use super::super::native::{emit, plan::Linear, special};
use super::handlers;
use super::memory::LOCAL_TOP;

/// Where a special register goes, for [`Micro::extra`].
pub(crate) const fn destination(wide: bool, uniform: bool) -> u8 {
    wide as u8 | (uniform as u8) << 1
}

/// Writes a special register that is the same for all lanes; only CLOCK and the timers have a high word.
#[inline(always)]
fn put_same(core: &mut Core<'_>, op: &Micro, mask: u32, value: u64) -> Flow {
    if op.extra & 2 != 0 {
        core.put_uniform(op.d, value as u32);
        return Flow::Next;
    }
    core.put(op.d, mask, &[value as u32; LANES]);
    if op.extra & 1 != 0 {
        core.put(op.d.plus(1), mask, &[(value >> 32) as u32; LANES]);
    }
    Flow::Next
}

/// Writes a special register that differs by lane.
#[inline(always)]
fn put_lanes(core: &mut Core<'_>, op: &Micro, mask: u32, value: &[u32; LANES]) -> Flow {
    if op.extra & 2 != 0 {
        core.put_uniform(op.d, value[first(mask)]);
        return Flow::Next;
    }
    core.put(op.d, mask, value);
    if op.extra & 1 != 0 {
        core.put(op.d.plus(1), mask, &[0; LANES]);
    }
    Flow::Next
}

/// The SM that a block is said to be on.
#[inline(always)]
fn multiprocessor(core: &Core<'_>) -> u64 {
    core.cta.number % u64::from(core.caches.multiprocessors.max(1))
}

const NUMBERS: [u32; LANES] = {
    let mut numbers = [0; LANES];
    let mut i = 0;
    while i < LANES {
        numbers[i] = i as u32;
        i += 1;
    }
    numbers
};

/// The truth that a vote finds.
#[inline(always)]
fn vote(op: &Micro, mask: u32, held: u32) -> bool {
    match op.payload {
        0 => held == mask,
        1 => held != 0,
        _ => held == mask || held == 0,
    }
}

/// Writes what PLOP3's tables, in the payload, make of three masks.
#[inline(always)]
fn put_plop3(core: &mut Core<'_>, op: &Micro, mask: u32, [a, b, c]: [u32; 3]) -> Flow {
    for (to, shift) in op.to.into_iter().zip([0, 8]) {
        let value = integer::lop3(a, b, c, (op.payload >> shift) as u8);
        core.put_predicate(to, mask, value);
    }
    Flow::Next
}

handlers! {
    /// SEL.
    Sel [emit::choose] = |core, op, mask| {
        let p = core.predicate(op.from[0]);
        let (a, b) = (core.row(op.a), core.row(op.b));
        let mut out = [0; LANES];
        for i in 0..LANES {
            out[i] = if bit(p, i) { a[i] } else { b[i] };
        }
        core.put(op.d, mask, &out);
        Flow::Next
    };
    /// SR_LANEID.
    LaneNumber = |core, op, mask| put_lanes(core, op, mask, &NUMBERS);
    /// SR_CgaCtaId: the number of the block in its cluster.
    ClusterRank = |core, op, mask| {
        let rank = core.cta.window >> RANK;
        put_same(core, op, mask, rank.into())
    };
    /// SR_TID.X, Y, Z, into a uniform register or others.
    ThreadIndex<const UNIFORM: bool> [special::thread_index, linear Linear::ThreadIndex, if !UNIFORM] = |core, op, mask| {
        let launch = core.launch;
        match launch.thread_index.get(core.warp().index as usize) {
            Some(index) => put_lanes(core, op, mask, &index[op.payload as usize % 3].0),
            None => Flow::Next,
        }
    };
    /// SR_TID: x in 15:0, y in 25:16, z in 31:26.
    ThreadIndexPacked = |core, op, mask| {
        let launch = core.launch;
        let Some([x, y, z]) = launch.thread_index.get(core.warp().index as usize) else { return Flow::Next };
        let mut out = [0; LANES];
        for i in 0..LANES {
            out[i] = x.0[i] | y.0[i] << 16 | z.0[i] << 26;
        }
        put_lanes(core, op, mask, &out)
    };
    /// SR_CTAID.X, Y, Z, likewise.
    BlockIndex<const UNIFORM: bool> [special::block_index, linear Linear::BlockIndex, if !UNIFORM] = |core, op, mask| {
        let value = core.cta.index[op.payload as usize % 3];
        put_same(core, op, mask, value.into())
    };
    /// SR_SWINLO, SR_SWINHI: where shared memory lies among generic addresses.
    SharedWindow = |core, op, mask| {
        let value = core.launch.launch.shared_window >> op.payload;
        put_same(core, op, mask, value & 0xffff_ffff)
    };
    /// SR_LWINLO, SR_LWINHI: where local memory lies.
    LocalWindow = |core, op, mask| {
        let value = core.launch.launch.local_window >> op.payload;
        put_same(core, op, mask, value & 0xffff_ffff)
    };
    /// SR_NTID: threads of a block.
    Threads = |core, op, mask| {
        let value = core.launch.launch.block.iter().map(|size| u64::from(*size)).product();
        put_same(core, op, mask, value)
    };
    /// SR_BARRIERALLOC: the barriers that the launch asked for.
    Barriers = |core, op, mask| {
        let value = core.launch.launch.barriers;
        put_same(core, op, mask, value.into())
    };
    /// SR_SMEMSZ.
    SharedBytes = |core, op, mask| {
        let value = core.launch.launch.shared_bytes;
        put_same(core, op, mask, value.into())
    };
    /// SR_EQMASK and the like.
    LaneMask = |core, op, mask| {
        let out = NUMBERS.map(|lane| match op.payload {
            0 => 1 << lane,
            1 => (1 << lane) - 1,
            2 => FULL >> (31 - lane),
            3 => FULL.checked_shl(lane + 1).unwrap_or(0),
            _ => FULL << lane,
        });
        put_lanes(core, op, mask, &out)
    };
    /// The clock: instructions that the worker has executed. Every look at it takes time.
    Clock = |core, op, mask| {
        core.caches.looks += 1;
        let value = core.caches.statistics.instructions + core.caches.looks;
        put_same(core, op, mask, value >> op.payload)
    };
    /// The global timer, in nanoseconds.
    GlobalTimer = |core, op, mask| {
        let value = core.caches.nanoseconds();
        put_same(core, op, mask, value >> op.payload)
    };
    /// SRZ, and what reads as zero.
    Zero [emit::zero] = |core, op, mask| put_same(core, op, mask, 0);
    /// A number.
    Fixed = |core, op, mask| put_same(core, op, mask, op.payload);
    /// SR_VIRTUALSMID.
    MultiprocessorNumber = |core, op, mask| {
        let value = multiprocessor(core);
        put_same(core, op, mask, value)
    };
    /// SR_VIRTID: the lane in 4:0, the warp in 14:8, as `%warpid` takes it out, and the SM in 28:20.
    VirtualNumber = |core, op, mask| {
        let value = core.warp().index << 8 | (multiprocessor(core) as u32) << 20;
        put_lanes(core, op, mask, &NUMBERS.map(|lane| lane | value))
    };
    /// SR_VIRTCFG: the lanes of a warp in 7:0, the warps that an SM holds in 15:8, as `%nwarpid` takes them out, the SMs
    /// in 28:20, and the payload.
    VirtualConfiguration = |core, op, mask| {
        let value = u64::from(core.caches.warps) << 8 | u64::from(core.caches.multiprocessors) << 20;
        put_same(core, op, mask, value | LANES as u64 | op.payload)
    };
    /// SR_LMEMHIOFF: where the local memory that hangs from the top of its window ends. Code for debugging traps when
    /// its stack pointer is below.
    StackBottom = |core, op, mask| {
        let value = LOCAL_TOP - core.launch.launch.local_bytes.min(LOCAL_TOP);
        put_same(core, op, mask, value.into())
    };
    /// P2R, with the lowest bit of its byte as payload.
    P2r = |core, op, mask| {
        let (keep, select) = (core.row(op.a), core.row(op.b));
        let mut out = [0; LANES];
        for i in 0..LANES {
            let mut predicates = 0;
            for p in 0..7 {
                predicates |= (core.warp().predicates[p] >> i & 1) << p;
            }
            let field = select[i] & 0xff;
            out[i] = (keep[i] & !(field << op.payload)) | (predicates & field) << op.payload;
        }
        core.put(op.d, mask, &out);
        Flow::Next
    };
    /// R2P, likewise.
    R2p = |core, op, mask| {
        for p in 0..7 {
            let (value, select) = (core.row(op.a), core.row(op.b));
            let chosen = ballot(|i| bit(select[i], p)) & mask;
            let value = ballot(|i| bit(value[i], p + op.payload as usize));
            let predicate = &mut core.warp_mut().predicates[p];
            *predicate = (*predicate & !chosen) | (value & chosen);
        }
        Flow::Next
    };
    /// PLOP3.
    Plop3 [emit::predicate_logic] = |core, op, mask| {
        let sources = op.from.map(|operand| core.predicate(operand));
        put_plop3(core, op, mask, sources)
    };
    /// PLOP3 where sources are the signs of registers, those of which [`Micro::extra`] says so.
    Plop3Signs = |core, op, mask| {
        let rows = [op.a, op.b, op.c];
        let mut sources = [0; 3];
        for (i, source) in sources.iter_mut().enumerate() {
            let from_row = op.extra >> i & 1 != 0;
            *source = if from_row { signs(core.row(rows[i])) } else { core.predicate(op.from[i]) };
        }
        put_plop3(core, op, mask, sources)
    };
    /// ELECT: the lowest lane for which the predicate holds; nobody says that the card takes the same.
    Elect = |core, op, mask| {
        let among = mask & core.predicate(op.from[0]);
        let lane = first(among);
        core.put_predicate(op.to[0], mask, among & (1 << lane));
        if among != 0 {
            core.put_uniform(op.d, lane as u32);
        }
        Flow::Next
    };
    /// MOV in the lanes of each quad that the payload names.
    MoveQuad = |core, op, mask| {
        let v = *core.row(op.b);
        core.put(op.d, mask & (op.payload as u32 & 15).wrapping_mul(0x1111_1111), &v);
        Flow::Next
    };
    /// VOTE.
    Vote = |core, op, mask| {
        let held = core.predicate(op.from[0]) & mask;
        core.put(op.d, mask, &[held; LANES]);
        core.put_predicate(op.to[0], mask, u32::from(vote(op, mask, held)).wrapping_neg());
        Flow::Next
    };
    /// VOTEU.
    Voteu = |core, op, mask| {
        let held = core.predicate(op.from[0]) & mask;
        core.put_uniform(op.d, held);
        core.put_uniform_predicate(op.to[0], vote(op, mask, held));
        Flow::Next
    };
    /// SHFL: 0 `.IDX`, 1 `.UP`, 2 `.DOWN`, 3 `.BFLY`. What an inactive lane gives is undefined: here its register, and
    /// 0 from one that exited.
    Shuffle<const MODE: u32> = |core, op, mask| {
        let mut v = *core.row(op.a);
        if core.warp().alive != FULL {
            let alive = spread(core.warp().alive);
            for i in 0..LANES {
                v[i] &= alive[i];
            }
        }
        let (b, c) = (core.row(op.b), core.row(op.c));
        let (mut out, mut inside) = ([0; LANES], [0; LANES]);
        for i in 0..LANES {
            let lane = i as u32;
            let segment = c[i] >> 8 & 31;
            let clamp = c[i] & 31;
            let by = b[i] & 31;
            let most = (lane & segment) | (clamp & !segment);
            let least = lane & segment;
            let (from, ok) = match MODE {
                0 => {
                    let from = least | (by & !segment);
                    (from, from <= most)
                }
                // The clamp is a lower bound here.
                1 => (lane.wrapping_sub(by), lane as i32 - by as i32 >= most as i32),
                2 => (lane + by, lane + by <= most),
                _ => (lane ^ by, lane ^ by <= most),
            };
            out[i] = if ok { v[(from & 31) as usize] } else { v[i] };
            inside[i] = u32::from(ok).wrapping_neg();
        }
        core.put(op.d, mask, &out);
        core.put_predicate(op.to[0], mask, signs(&inside));
        Flow::Next
    };
    /// MATCH.ALL: the mask and true where all lanes have one value, else 0 and false.
    MatchAll = |core, op, mask| {
        let v = core.sized(op.a, op.extra != 0);
        let one = v[first(mask)];
        let all = each(mask).all(|lane| v[lane] == one);
        core.put(op.d, mask, &[if all { mask } else { 0 }; LANES]);
        core.put_predicate(op.to[0], mask, u32::from(all).wrapping_neg());
        Flow::Next
    };
    /// MATCH.ANY: the lanes that have this lane's value.
    MatchAny = |core, op, mask| {
        let v = core.sized(op.a, op.extra != 0);
        let mut out = [0; LANES];
        let mut left = mask;
        while left != 0 {
            let value = v[first(left)];
            let same = ballot(|i| v[i] == value) & left;
            each(same).for_each(|lane| out[lane] = same);
            left &= !same;
        }
        core.put(op.d, mask, &out);
        Flow::Next
    };
    /// R2UR: the value of the lowest lane.
    R2ur = |core, op, mask| {
        let value = core.lowest(op.a, mask);
        let v = core.row(op.a);
        let others = ballot(|lane| v[lane] != value);
        let before = if op.payload != 0 { core.predicate(op.from[0]) } else { 0 };
        core.put_predicate(op.to[0], mask, others | before);
        core.put_uniform(op.d, value);
        Flow::Next
    };
    /// REDUX.
    Redux = |core, op, mask| {
        let sign = if op.payload >> 8 != 0 { Sign::Signed } else { Sign::Unsigned };
        let v = core.row(op.a);
        let result = each(mask).map(|lane| v[lane]).reduce(|a, b| match op.payload & 0xff {
            0 => a & b,
            1 => a | b,
            2 => a ^ b,
            3 => a.wrapping_add(b),
            4 => integer::imnmx(a, b, true, sign),
            _ => integer::imnmx(a, b, false, sign),
        });
        core.put_uniform(op.d, result.unwrap_or(0));
        Flow::Next
    };
}
