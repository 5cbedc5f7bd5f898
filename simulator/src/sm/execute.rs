//! The interpreter's loop: one warp's turn.

use std::collections::HashMap;
use std::sync::Arc;

use sass::lane::convert::{self, FloatFormat};
use sass::lane::half;
use sass::lane::mma;
use sass::lane::mufu;
use sass::lane::{Sign, Width, double, float, integer};

use super::access::{Window, apply, global_atomic};
use super::fault::{Fault, FaultKind};
use super::micro::{
    Address, AtomicOperation, BarrierForm, Micro, Op, Reduction, Shuffle, Slot, Source, Space, decode,
};
use super::run::{Launch, Statistics};
use super::warp::{BARRIER, Lanes, WARPSYNC, Warp};
use crate::memory::AddressMap;

const PAGE_BYTES: u64 = 1024;

/// Decoded code: 64 instructions.
#[derive(Clone, Debug)]
pub(super) struct Page {
    start: u64,
    code: Arc<[Micro]>,
}

impl Page {
    pub fn empty() -> Self {
        Self { start: u64::MAX, code: Arc::from([]) }
    }
}

/// What a worker has at hand.
pub(super) struct Context<'a> {
    pub launch: &'a Launch,
    pub map: &'a Arc<AddressMap>,
    pub banks: &'a [Vec<u8>],
    pub pages: HashMap<u64, Page>,
    pub page: Page,
    pub statistics: Statistics,
}

/// State of one barrier of a block.
#[derive(Clone, Copy, Debug, Default)]
struct Barrier {
    /// Threads that arrived without waiting.
    arrived: u32,
    /// Threads that BAR named; 0 for all of the block.
    threads: u32,
    popc: u32,
    and: bool,
    or: bool,
    any: bool,
}

/// A resident block.
#[derive(Debug)]
pub(super) struct Block {
    warps: Vec<Warp>,
    shared: Vec<u8>,
    barriers: [Barrier; 16],
    result: u32,
    index: [u32; 3],
}

/// How a turn ended.
pub(super) enum Outcome {
    Finished,
    Ran,
    Blocked,
}

impl Block {
    pub fn new(launch: &Launch, number: u64) -> Self {
        let [x, y, _] = launch.grid.map(u64::from);
        let index = [(number % x) as u32, (number / x % y) as u32, (number / x / y) as u32];
        let threads = launch.block[0] * launch.block[1] * launch.block[2];
        let local = launch.local_bytes as usize;
        let warps = (0..threads.div_ceil(32))
            .map(|i| Warp::new(i, launch.block, launch.registers, local, launch.program_address))
            .collect();
        Self {
            warps,
            shared: vec![0; launch.shared_bytes as usize],
            barriers: [Barrier::default(); 16],
            result: 0,
            index,
        }
    }

    /// Releases barriers whose threads are all there. Exited threads count as arrived.
    fn release(&mut self, index: usize) -> bool {
        let code = BARRIER + index as u8;
        let waiting: u32 = self.warps.iter().map(|w| w.at(code).count_ones()).sum();
        let alive: u32 = self.warps.iter().map(|w| w.alive.count_ones()).sum();
        let barrier = self.barriers[index];
        let expected = if barrier.threads == 0 { alive } else { barrier.threads };
        if waiting + barrier.arrived < expected || (waiting == 0 && barrier.arrived == 0) {
            return false;
        }
        for warp in &mut self.warps {
            let mask = warp.at(code);
            warp.wake(mask);
        }
        self.barriers[index] = Barrier::default();
        true
    }
}

/// Gives every warp of the block `slice` instructions.
pub(super) fn turn(context: &mut Context<'_>, block: &mut Block, slice: u32) -> Result<Outcome, Box<Fault>> {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2")
        && std::arch::is_x86_feature_detected!("fma")
        && std::arch::is_x86_feature_detected!("bmi2")
    {
        // SAFETY: the processor has the features that the function is compiled for.
        return unsafe { turn_avx2(context, block, slice) };
    }
    turn_body(context, block, slice)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi2")]
fn turn_avx2(context: &mut Context<'_>, block: &mut Block, slice: u32) -> Result<Outcome, Box<Fault>> {
    turn_body(context, block, slice)
}

#[inline(always)]
fn turn_body(context: &mut Context<'_>, block: &mut Block, slice: u32) -> Result<Outcome, Box<Fault>> {
    let mut ran = false;
    let mut alive = 0;
    for i in 0..block.warps.len() {
        let mut left = slice;
        while left > 0 {
            let Some((pc, mask)) = block.warps[i].select() else { break };
            ran = true;
            let mut at = pc;
            let mut active = mask;
            let result = run_group(context, block, i, &mut at, &mut active, &mut left);
            if let Err(kind) = result {
                return Err(Box::new(report(context, block, i, at, active, kind)));
            }
        }
        alive |= block.warps[i].alive;
    }
    Ok(if alive == 0 {
        Outcome::Finished
    } else if ran {
        Outcome::Ran
    } else {
        Outcome::Blocked
    })
}

#[cold]
fn report(context: &Context<'_>, block: &Block, warp: usize, pc: u64, lanes: u32, kind: FaultKind) -> Fault {
    let mut bytes = [0; 16];
    let text = match context.map.read(pc, &mut bytes) {
        Ok(()) => {
            let word = u128::from_le_bytes(bytes);
            let arch = sass::Arch::from_sm(context.launch.sm);
            match arch.map(|arch| sass::decode(word, pc, arch)) {
                Some(Ok(instruction)) => instruction.to_string(),
                _ => format!("word {word:#034x}"),
            }
        }
        Err(fault) => format!("no code: {fault}"),
    };
    Fault { kind, program_counter: pc, text, cta: block.index, warp: block.warps[warp].index, lanes }
}

impl Context<'_> {
    fn fetch(&mut self, pc: u64) -> Result<Micro, FaultKind> {
        let offset = pc.wrapping_sub(self.page.start);
        if offset >= PAGE_BYTES {
            self.turn_page(pc)?;
        }
        let offset = pc.wrapping_sub(self.page.start);
        self.page.code.get((offset / 16) as usize).copied().ok_or(FaultKind::InvalidPc)
    }

    #[cold]
    fn turn_page(&mut self, pc: u64) -> Result<(), FaultKind> {
        if !pc.is_multiple_of(16) {
            return Err(FaultKind::InvalidPc);
        }
        let start = pc & !(PAGE_BYTES - 1);
        let (map, launch) = (self.map, self.launch);
        let page = self.pages.entry(start).or_insert_with(|| {
            let code = (0..PAGE_BYTES / 16)
                .map(|i| {
                    let address = start + 16 * i;
                    let mut bytes = [0; 16];
                    let readable = map.read(address, &mut bytes).is_ok();
                    let mut micro = decode(u128::from_le_bytes(bytes), address, launch.sm, launch.registers);
                    if !readable {
                        micro.op = Op::Unmapped;
                        micro.guard = 7;
                    }
                    micro
                })
                .collect();
            Page { start, code }
        });
        self.page = page.clone();
        Ok(())
    }

    fn constant(&self, bank: u8, offset: u32) -> Result<u32, FaultKind> {
        let at = offset as usize;
        self.banks
            .get(usize::from(bank))
            .and_then(|bytes| bytes.get(at..at + 4))
            .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .ok_or(FaultKind::Constant { bank, offset })
    }

    /// Bits of an operand, modifiers not applied; `word` selects the second register of a pair.
    #[inline(always)]
    fn raw(&self, warp: &Warp, slot: Slot, word: u8) -> Result<Lanes, FaultKind> {
        Ok(match slot {
            Slot::Zero => [0; 32],
            Slot::Register(index) => warp.registers[usize::from(index) + usize::from(word)],
            Slot::Uniform(index) => [warp.uniform[usize::from(index + word) & 63]; 32],
            Slot::Immediate(value) => [if word == 0 { value } else { 0 }; 32],
            Slot::Constant { bank, offset } => [self.constant(bank, offset + 4 * u32::from(word))?; 32],
        })
    }

    /// An FP32 operand.
    #[inline(always)]
    fn float(&self, warp: &Warp, source: Source) -> Result<Lanes, FaultKind> {
        let mut v = self.raw(warp, source.slot, 0)?;
        if source.absolute || source.negate {
            let keep = if source.absolute { 0x7fff_ffff } else { u32::MAX };
            let flip = if source.negate { 0x8000_0000 } else { 0 };
            for x in &mut v {
                *x = (*x & keep) ^ flip;
            }
        }
        Ok(v)
    }

    /// A 32-bit integer operand, negated where the slot says so.
    #[inline(always)]
    fn integer(&self, warp: &Warp, source: Source) -> Result<Lanes, FaultKind> {
        let mut v = self.raw(warp, source.slot, 0)?;
        if source.negate {
            for x in &mut v {
                *x = x.wrapping_neg();
            }
        }
        Ok(v)
    }

    /// A register pair or 64-bit constant.
    #[inline(always)]
    fn pair(&self, warp: &Warp, slot: Slot) -> Result<[u64; 32], FaultKind> {
        let low = self.raw(warp, slot, 0)?;
        let high = self.raw(warp, slot, 1)?;
        Ok(std::array::from_fn(|i| u64::from(low[i]) | u64::from(high[i]) << 32))
    }

    /// An FP64 operand; an immediate is its high word.
    #[inline(always)]
    fn double(&self, warp: &Warp, source: Source) -> Result<[u64; 32], FaultKind> {
        let mut v = match source.slot {
            Slot::Immediate(high) => [u64::from(high) << 32; 32],
            slot => self.pair(warp, slot)?,
        };
        let keep = if source.absolute { u64::MAX >> 1 } else { u64::MAX };
        let flip = if source.negate { 1 << 63 } else { 0 };
        for x in &mut v {
            *x = (*x & keep) ^ flip;
        }
        Ok(v)
    }
}

#[inline(always)]
fn predicate(warp: &Warp, uniform: bool, operand: u8) -> u32 {
    let file = if uniform { &warp.uniform_predicates } else { &warp.predicates };
    let value = file[usize::from(operand & 7)];
    if operand & 8 != 0 { !value } else { value }
}

#[inline(always)]
fn set_predicate(warp: &mut Warp, uniform: bool, index: u8, mask: u32, value: u32) {
    if index >= 7 {
        return;
    }
    if uniform {
        let first = mask.trailing_zeros() & 31;
        warp.uniform_predicates[usize::from(index)] = if value >> first & 1 != 0 { u32::MAX } else { 0 };
    } else {
        let p = &mut warp.predicates[usize::from(index)];
        *p = (*p & !mask) | (value & mask);
    }
}

#[inline(always)]
fn put(warp: &mut Warp, m: &Micro, word: u8, mask: u32, v: &Lanes) {
    if m.uniform {
        put_uniform(warp, m.destination, word, mask, v);
    } else if m.destination != 255 {
        let to = &mut warp.registers[usize::from(m.destination) + usize::from(word)];
        if mask == u32::MAX {
            *to = *v;
        } else {
            for lane in 0..32 {
                let keep = ((mask >> lane & 1) as i32).wrapping_neg() as u32;
                to[lane] = (v[lane] & keep) | (to[lane] & !keep);
            }
        }
    }
}

fn put_uniform(warp: &mut Warp, destination: u8, word: u8, mask: u32, v: &Lanes) {
    if destination & 63 != 63 {
        warp.uniform[usize::from((destination & 63) + word) & 63] = v[(mask.trailing_zeros() & 31) as usize];
    }
}

#[inline(always)]
fn put_pair(warp: &mut Warp, m: &Micro, mask: u32, v: &[u64; 32]) {
    put(warp, m, 0, mask, &v.map(|x| x as u32));
    put(warp, m, 1, mask, &v.map(|x| (x >> 32) as u32));
}

#[inline(always)]
fn ballot(f: impl Fn(usize) -> bool) -> u32 {
    let mut mask = 0;
    for lane in 0..32 {
        mask |= u32::from(f(lane)) << lane;
    }
    mask
}

const fn bit(mask: u32, lane: usize) -> bool {
    mask >> lane & 1 != 0
}

/// Runs lanes that stand at one program counter until they part, wait or end, or `left` is used up.
#[inline(always)]
fn run_group(
    context: &mut Context<'_>,
    block: &mut Block,
    index: usize,
    pc: &mut u64,
    active: &mut u32,
    left: &mut u32,
) -> Result<(), FaultKind> {
    let group = *active;
    let whole = group == block.warps[index].alive & !block.warps[index].waiting;
    loop {
        let m = context.fetch(*pc)?;
        let warp = &mut block.warps[index];
        let mask = group & predicate(warp, m.uniform, m.guard);
        *active = mask;
        *left = left.saturating_sub(1);
        context.statistics.instructions += 1;
        context.statistics.lane_instructions += u64::from(mask.count_ones());
        let next = *pc + 16;
        if mask != 0 {
            if is_control(&m.op) {
                warp.set_pc(group, next);
                *active = mask;
                control(context, block, index, &m, *pc, mask, group)?;
                return Ok(());
            }
            execute(context, block, index, &m, mask, *pc)?;
        }
        *pc = next;
        if !whole || *left == 0 {
            block.warps[index].set_pc(group, next);
            return Ok(());
        }
    }
}

const fn is_control(op: &Op) -> bool {
    matches!(
        op,
        Op::Bra { .. }
            | Op::BraDiv { .. }
            | Op::Brx { .. }
            | Op::Jmx { .. }
            | Op::Bsync { .. }
            | Op::Break { .. }
            | Op::Warpsync
            | Op::Yield
            | Op::Call { .. }
            | Op::Ret { .. }
            | Op::Exit
            | Op::Bar { .. }
    )
}

/// Instructions that move program counters or wait. Program counters are already at the next instruction.
fn control(
    context: &Context<'_>,
    block: &mut Block,
    index: usize,
    m: &Micro,
    pc: u64,
    mask: u32,
    group: u32,
) -> Result<(), FaultKind> {
    let warp = &mut block.warps[index];
    match m.op {
        Op::Bra { target } => {
            let taken = mask & predicate(warp, false, m.from[0]);
            warp.set_pc(taken, target);
            if target <= pc {
                warp.yielded |= taken;
            }
        }
        Op::Call { target } => {
            let taken = mask & predicate(warp, false, m.from[0]);
            warp.set_pc(taken, target);
        }
        Op::BraDiv { target, invert, converged } => {
            let value = context.raw(warp, m.a.slot, 0)?[0];
            let members = if invert { !value } else { value };
            let together = group == members & warp.alive;
            if together == converged {
                warp.set_pc(mask, target);
            }
        }
        Op::Brx { base } | Op::Ret { base } => {
            let offset = context.pair(warp, m.a.slot)?;
            for lane in 0..32 {
                if bit(mask, lane) {
                    warp.pc[lane] = base.wrapping_add(offset[lane]);
                }
            }
        }
        Op::Jmx { offset } => {
            let to = context.pair(warp, m.a.slot)?;
            for lane in 0..32 {
                if bit(mask, lane) {
                    warp.pc[lane] = to[lane].wrapping_add(offset);
                }
            }
        }
        Op::Bsync { barrier } => {
            let mask = mask & predicate(warp, false, m.from[0]);
            warp.wait(mask, barrier);
            warp.converge();
        }
        Op::Break { barrier } => {
            let leaving = mask & predicate(warp, false, m.from[0]);
            let b = &mut warp.convergence[usize::from(barrier)];
            let members = (0..32).filter(|l| bit(leaving, *l)).fold(0, |all, l| all | b[l]);
            for lane in 0..32 {
                if bit(members, lane) {
                    b[lane] &= !leaving;
                }
            }
            warp.converge();
        }
        Op::Warpsync => {
            let members = context.raw(warp, m.b.slot, 0)?;
            for lane in 0..32 {
                if bit(mask, lane) {
                    warp.members[lane] = members[lane] | 1 << lane;
                }
            }
            warp.wait(mask, WARPSYNC);
            warp.converge();
        }
        Op::Yield => warp.yielded |= group,
        Op::Exit => {
            let leaving = mask & predicate(warp, false, m.from[0]);
            warp.exit(leaving);
            if leaving != 0 {
                for i in 0..16 {
                    block.release(i);
                }
            }
        }
        Op::Bar { form, index: barrier, threads } => {
            let value = predicate(warp, false, m.from[0]);
            let state = &mut block.barriers[usize::from(barrier)];
            if !state.any {
                *state = Barrier { any: true, and: true, ..*state };
            }
            state.threads = u32::from(threads);
            state.popc += (value & mask).count_ones();
            state.and &= value & mask == mask;
            state.or |= value & mask != 0;
            let result = match form {
                BarrierForm::ReducePopc => state.popc,
                BarrierForm::ReduceAnd => u32::from(state.and),
                BarrierForm::ReduceOr => u32::from(state.or),
                BarrierForm::Sync | BarrierForm::Arrive => 0,
            };
            if form == BarrierForm::Arrive {
                state.arrived += mask.count_ones();
            } else {
                warp.wait(mask, BARRIER + barrier);
            }
            if block.release(usize::from(barrier)) {
                block.result = result;
            }
        }
        _ => return Err(FaultKind::IllegalInstruction),
    }
    for lane in 0..32 {
        if bit(mask, lane) && !block.warps[index].pc[lane].is_multiple_of(16) {
            return Err(FaultKind::InvalidPc);
        }
    }
    Ok(())
}

#[inline(always)]
fn map1(a: &Lanes, f: impl Fn(u32) -> u32) -> Lanes {
    let mut out = [0; 32];
    for i in 0..32 {
        out[i] = f(a[i]);
    }
    out
}

#[inline(always)]
fn map2(a: &Lanes, b: &Lanes, f: impl Fn(u32, u32) -> u32) -> Lanes {
    let mut out = [0; 32];
    for i in 0..32 {
        out[i] = f(a[i], b[i]);
    }
    out
}

#[inline(always)]
fn map3(a: &Lanes, b: &Lanes, c: &Lanes, f: impl Fn(u32, u32, u32) -> u32) -> Lanes {
    let mut out = [0; 32];
    for i in 0..32 {
        out[i] = f(a[i], b[i], c[i]);
    }
    out
}

/// Both results of a comparison.
#[inline(always)]
fn compare(warp: &mut Warp, m: &Micro, mask: u32, boolean: sass::lane::Boolean, truth: u32) {
    let with = predicate(warp, m.uniform, m.from[0]);
    let both = |t: u32| match boolean {
        sass::lane::Boolean::And => t & with,
        sass::lane::Boolean::Or => t | with,
        sass::lane::Boolean::Xor => t ^ with,
    };
    set_predicate(warp, m.uniform, m.to[0], mask, both(truth));
    set_predicate(warp, m.uniform, m.to[1], mask, both(!truth));
}

/// Everything that goes on to the next instruction.
#[inline(always)]
fn execute(
    context: &Context<'_>,
    block: &mut Block,
    index: usize,
    m: &Micro,
    mask: u32,
    pc: u64,
) -> Result<(), FaultKind> {
    let x = context;
    let u = m.uniform;
    let warp = &mut block.warps[index];
    macro_rules! one {
        ($v:expr) => {{
            let v = $v;
            put(warp, m, 0, mask, &v);
        }};
    }
    match m.op {
        Op::Illegal => return Err(FaultKind::IllegalInstruction),
        Op::Register => return Err(FaultKind::OutOfRangeRegister { registers: x.launch.registers }),
        Op::Unmapped => return Err(FaultKind::InvalidPc),
        Op::Trap => return Err(FaultKind::Trap),
        Op::Nop => {}
        Op::Mov => one!(x.raw(warp, m.b.slot, 0)?),
        Op::Sel | Op::Fsel { .. } => {
            let p = predicate(warp, u, m.from[0]);
            let flushes = matches!(m.op, Op::Fsel { flushes: true });
            let (a, b) = if matches!(m.op, Op::Sel) {
                (x.raw(warp, m.a.slot, 0)?, x.raw(warp, m.b.slot, 0)?)
            } else {
                (x.float(warp, m.a)?, x.float(warp, m.b)?)
            };
            let mut out = [0; 32];
            for i in 0..32 {
                out[i] = float::fsel(a[i], b[i], bit(p, i), flushes);
            }
            put(warp, m, 0, mask, &out);
        }
        Op::Fmnmx { flushes, nan } => {
            let p = predicate(warp, u, m.from[0]);
            let (a, b) = (x.float(warp, m.a)?, x.float(warp, m.b)?);
            let mut out = [0; 32];
            for i in 0..32 {
                out[i] = float::fmnmx(a[i], b[i], bit(p, i), flushes, nan);
            }
            put(warp, m, 0, mask, &out);
        }
        Op::Imnmx { sign } => {
            let p = predicate(warp, u, m.from[0]);
            let (a, b) = (x.integer(warp, m.a)?, x.integer(warp, m.b)?);
            let mut out = [0; 32];
            for i in 0..32 {
                out[i] = integer::imnmx(a[i], b[i], bit(p, i), sign);
            }
            put(warp, m, 0, mask, &out);
        }
        Op::Viadd => {
            one!(map2(&x.raw(warp, m.a.slot, 0)?, &x.integer(warp, m.b)?, integer::viadd));
        }
        Op::Fsetp { compare: c, boolean, flushes } => {
            let (a, b) = (x.float(warp, m.a)?, x.float(warp, m.b)?);
            let truth = ballot(|i| float::compare(a[i], b[i], c, flushes));
            compare(warp, m, mask, boolean, truth);
        }
        Op::Isetp { compare: c, boolean, sign, extended } => {
            let (a, b) = (x.raw(warp, m.a.slot, 0)?, x.raw(warp, m.b.slot, 0)?);
            let low = predicate(warp, u, m.from[2]);
            let truth = if extended {
                ballot(|i| integer::compare_ex(a[i], b[i], c, sign, bit(low, i)))
            } else {
                ballot(|i| integer::compare(a[i], b[i], c, sign))
            };
            compare(warp, m, mask, boolean, truth);
        }
        Op::Dsetp { compare: c, boolean } => {
            let (a, b) = (x.double(warp, m.a)?, x.double(warp, m.b)?);
            let truth = ballot(|i| double::compare(a[i], b[i], c));
            compare(warp, m, mask, boolean, truth);
        }
        Op::DoubleMinMax { minimum } => {
            let (a, b) = (x.double(warp, m.a)?, x.double(warp, m.b)?);
            let first = ballot(|i| double::min_max(a[i], b[i], minimum).0);
            let second = ballot(|i| double::min_max(a[i], b[i], minimum).1);
            let with = predicate(warp, u, m.from[0]);
            set_predicate(warp, u, m.to[0], mask, first & with);
            set_predicate(warp, u, m.to[1], mask, second & with);
        }
        Op::Iadd3 { extended } => {
            let a = x.raw(warp, m.a.slot, 0)?;
            let b = x.raw(warp, m.b.slot, 0)?;
            let c = x.raw(warp, m.c.slot, 0)?;
            let negate = [m.a.negate, m.b.negate, m.c.negate];
            let (p, q) = (predicate(warp, u, m.from[0]), predicate(warp, u, m.from[1]));
            let mut out = [0; 32];
            let (mut first, mut second) = (0, 0);
            for i in 0..32 {
                let sum = if extended {
                    integer::iadd3_x(a[i], b[i], c[i], negate, [bit(p, i), bit(q, i)])
                } else {
                    integer::iadd3(a[i], b[i], c[i], negate)
                };
                out[i] = sum.value;
                first |= u32::from(sum.carry0) << i;
                second |= u32::from(sum.carry1) << i;
            }
            put(warp, m, 0, mask, &out);
            set_predicate(warp, u, m.to[0], mask, first);
            set_predicate(warp, u, m.to[1], mask, second);
        }
        Op::Lea { shift, high, extended, sign_extend } => {
            let a = x.raw(warp, m.a.slot, 0)?;
            let b = x.integer(warp, Source { negate: m.b.negate && !extended, ..m.b })?;
            let c = x.raw(warp, m.c.slot, 0)?;
            let p = predicate(warp, u, m.from[0]);
            let mut out = [0; 32];
            let mut carry = 0;
            for i in 0..32 {
                let upper = if sign_extend { integer::sign_fill(a[i]) } else { c[i] };
                let (v, over) = match (high, extended) {
                    (false, false) => integer::lea(a[i], b[i], shift, m.a.negate),
                    (false, true) => integer::lea_x(a[i], b[i], shift, m.a.negate, bit(p, i)),
                    (true, false) => integer::lea_hi(a[i], upper, b[i], shift, m.a.negate),
                    (true, true) => integer::lea_hi_x(a[i], upper, b[i], shift, m.a.negate, bit(p, i)),
                };
                out[i] = v;
                carry |= u32::from(over) << i;
            }
            put(warp, m, 0, mask, &out);
            set_predicate(warp, u, m.to[0], mask, carry);
        }
        Op::Lop3 { table, and } => {
            let a = x.raw(warp, m.a.slot, 0)?;
            let b = x.raw(warp, m.b.slot, 0)?;
            let c = x.raw(warp, m.c.slot, 0)?;
            let out = map3(&a, &b, &c, |a, b, c| integer::lop3(a, b, c, table));
            put(warp, m, 0, mask, &out);
            if m.to[0] < 7 {
                let p = predicate(warp, u, m.from[0]);
                let set = ballot(|i| out[i] != 0);
                set_predicate(warp, u, m.to[0], mask, if and { set & p } else { set | p });
            }
        }
        Op::Plop3 { tables } => {
            let p = m.from.map(|operand| predicate(warp, u, operand));
            for (to, table) in m.to.into_iter().zip(tables) {
                let value = ballot(|i| integer::plop3(bit(p[0], i), bit(p[1], i), bit(p[2], i), table));
                set_predicate(warp, u, to, mask, value);
            }
        }
        Op::Iabs => one!(map1(&x.raw(warp, m.b.slot, 0)?, integer::iabs)),
        Op::Popc => {
            let invert = if m.b.negate { u32::MAX } else { 0 };
            one!(map1(&x.raw(warp, m.b.slot, 0)?, |v| integer::popc(v ^ invert)));
        }
        Op::Flo { sign, shift } => {
            let invert = if m.b.negate { u32::MAX } else { 0 };
            let out = map1(&x.raw(warp, m.b.slot, 0)?, |v| integer::flo(v ^ invert, sign, shift));
            put(warp, m, 0, mask, &out);
            set_predicate(warp, u, m.to[0], mask, ballot(|i| out[i] != u32::MAX));
        }
        Op::Brev => one!(map1(&x.raw(warp, m.b.slot, 0)?, integer::brev)),
        Op::Prmt { mode } => one!(map3(
            &x.raw(warp, m.a.slot, 0)?,
            &x.raw(warp, m.b.slot, 0)?,
            &x.raw(warp, m.c.slot, 0)?,
            |a, b, c| integer::prmt(a, b, c, mode)
        )),
        Op::Shf { kind } => one!(map3(
            &x.raw(warp, m.a.slot, 0)?,
            &x.raw(warp, m.b.slot, 0)?,
            &x.raw(warp, m.c.slot, 0)?,
            |a, b, c| integer::shf(a, b, c, kind)
        )),
        Op::Sgxt { sign, wrap } => {
            one!(map2(&x.raw(warp, m.a.slot, 0)?, &x.raw(warp, m.b.slot, 0)?, |a, b| integer::sgxt(
                a, b, sign, wrap
            )));
        }
        Op::Bmsk { wrap } => {
            one!(map2(&x.raw(warp, m.a.slot, 0)?, &x.raw(warp, m.b.slot, 0)?, |a, b| integer::bmsk(
                a, b, wrap
            )));
        }
        Op::Fadd { mode } => {
            one!(map2(&x.float(warp, m.a)?, &x.float(warp, m.b)?, |a, b| float::fadd(a, b, mode)));
        }
        Op::Fmul { mode, scale } => {
            one!(map2(&x.float(warp, m.a)?, &x.float(warp, m.b)?, |a, b| float::fmul_scaled(
                a, b, scale, mode
            )));
        }
        Op::Ffma { mode } => {
            one!(map3(&x.float(warp, m.a)?, &x.float(warp, m.b)?, &x.float(warp, m.c)?, |a, b, c| {
                float::ffma(a, b, c, mode)
            }));
        }
        Op::Imad { extended, negate_product } => {
            let a = x.integer(warp, Source { negate: negate_product, ..m.a })?;
            let b = x.integer(warp, m.b)?;
            let c = x.raw(warp, m.c.slot, 0)?;
            let p = predicate(warp, u, m.from[0]);
            let mut out = [0; 32];
            for i in 0..32 {
                out[i] = if extended {
                    let c = if m.c.negate { !c[i] } else { c[i] };
                    integer::imad_x(a[i], b[i], c, bit(p, i))
                } else {
                    let c = if m.c.negate { c[i].wrapping_neg() } else { c[i] };
                    integer::imad(a[i], b[i], c)
                };
            }
            put(warp, m, 0, mask, &out);
        }
        Op::ImadWide { sign, extended, negate_product } => {
            if negate_product || m.b.negate {
                return Err(FaultKind::IllegalInstruction);
            }
            let a = x.raw(warp, m.a.slot, 0)?;
            let b = x.raw(warp, m.b.slot, 0)?;
            let c = match m.c.slot {
                Slot::Immediate(v) if sign == Sign::Signed => [v as i32 as i64 as u64; 32],
                slot => x.pair(warp, slot)?,
            };
            let p = predicate(warp, u, m.from[0]);
            let mut out = [0; 32];
            let mut carries = 0;
            for i in 0..32 {
                let c = if m.c.negate { !c[i] } else { c[i] };
                let carry = if extended { bit(p, i) } else { m.c.negate };
                let (v, over) = integer::imad_wide_carry(a[i], b[i], c, carry, sign);
                out[i] = v;
                carries |= u32::from(over) << i;
            }
            put_pair(warp, m, mask, &out);
            set_predicate(warp, u, m.to[0], mask, carries);
        }
        Op::ImadHi { sign } => {
            if m.b.negate || m.c.negate || m.a.negate {
                return Err(FaultKind::IllegalInstruction);
            }
            let (a, b) = (x.raw(warp, m.a.slot, 0)?, x.raw(warp, m.b.slot, 0)?);
            let c = x.pair(warp, m.c.slot)?;
            let mut out = [0; 32];
            let mut carries = 0;
            for i in 0..32 {
                let (v, over) = integer::imad_wide_carry(a[i], b[i], c[i], false, sign);
                out[i] = (v >> 32) as u32;
                carries |= u32::from(over) << i;
            }
            put(warp, m, 0, mask, &out);
            set_predicate(warp, u, m.to[0], mask, carries);
        }
        Op::Idp4 { sign_a, sign_b } => one!(map3(
            &x.raw(warp, m.a.slot, 0)?,
            &x.raw(warp, m.b.slot, 0)?,
            &x.raw(warp, m.c.slot, 0)?,
            |a, b, c| integer::idp_4a(a, b, c, sign_a, sign_b)
        )),
        Op::Dadd { rounding } => {
            let (a, b) = (x.double(warp, m.a)?, x.double(warp, m.b)?);
            let out = std::array::from_fn(|i| double::dadd(a[i], b[i], rounding));
            put_pair(warp, m, mask, &out);
        }
        Op::Dmul { rounding } => {
            let (a, b) = (x.double(warp, m.a)?, x.double(warp, m.b)?);
            let out = std::array::from_fn(|i| double::dmul(a[i], b[i], rounding));
            put_pair(warp, m, mask, &out);
        }
        Op::Dfma { rounding } => {
            let (a, b, c) = (x.double(warp, m.a)?, x.double(warp, m.b)?, x.double(warp, m.c)?);
            let out = std::array::from_fn(|i| double::dfma(a[i], b[i], c[i], rounding));
            put_pair(warp, m, mask, &out);
        }
        Op::Hadd2 { mode, swizzle, f32 } => {
            let (a, b) = (x.raw(warp, m.a.slot, 0)?, x.raw(warp, m.b.slot, 0)?);
            one!(map2(&a, &b, |a, b| {
                let a = half::modify(swizzle[0].apply(a, mode.format), m.a.absolute, m.a.negate);
                let b = half::modify(swizzle[1].apply(b, mode.format), m.b.absolute, m.b.negate);
                if f32 { half::hadd_f32(a.0, b.0, mode.format) } else { half::hadd2(a, b, mode) }
            }));
        }
        Op::Fset { compare: c, boolean, flushes } => {
            let (a, b) = (x.float(warp, m.a)?, x.float(warp, m.b)?);
            let with = predicate(warp, u, m.from[0]);
            one!(std::array::from_fn(|i| {
                let truth = boolean.apply(float::compare(a[i], b[i], c, flushes), bit(with, i));
                float::fset(truth, true)
            }));
        }
        Op::Hsetp2 { compare: c, boolean, mode, swizzle } => {
            let (a, b) = (x.raw(warp, m.a.slot, 0)?, x.raw(warp, m.b.slot, 0)?);
            let with = predicate(warp, u, m.from[0]);
            let (mut low, mut high) = (0, 0);
            for i in 0..32 {
                let a = half::modify(swizzle[0].apply(a[i], mode.format), m.a.absolute, m.a.negate);
                let b = half::modify(swizzle[1].apply(b[i], mode.format), m.b.absolute, m.b.negate);
                let with = bit(with, i);
                low |= u32::from(boolean.apply(half::compare(a.0, b.0, c, mode), with)) << i;
                high |= u32::from(boolean.apply(half::compare(a.1, b.1, c, mode), with)) << i;
            }
            set_predicate(warp, u, m.to[0], mask, low);
            set_predicate(warp, u, m.to[1], mask, high);
        }
        Op::Hset2 { compare: c, boolean, mode, swizzle, float } => {
            let (a, b) = (x.raw(warp, m.a.slot, 0)?, x.raw(warp, m.b.slot, 0)?);
            let with = predicate(warp, u, m.from[0]);
            one!(std::array::from_fn(|i| {
                let a = half::modify(swizzle[0].apply(a[i], mode.format), m.a.absolute, m.a.negate);
                let b = half::modify(swizzle[1].apply(b[i], mode.format), m.b.absolute, m.b.negate);
                let with = bit(with, i);
                let set =
                    |a, b| half::hset(boolean.apply(half::compare(a, b, c, mode), with), float, mode.format);
                half::pack(set(a.0, b.0), set(a.1, b.1))
            }));
        }
        Op::Hmul2 { mode, swizzle } => {
            let (a, b) = (x.raw(warp, m.a.slot, 0)?, x.raw(warp, m.b.slot, 0)?);
            one!(map2(&a, &b, |a, b| {
                let a = half::modify(swizzle[0].apply(a, mode.format), m.a.absolute, m.a.negate);
                let b = half::modify(swizzle[1].apply(b, mode.format), m.b.absolute, m.b.negate);
                half::hmul2(a, b, mode)
            }));
        }
        Op::Hfma2 { mode, swizzle } => {
            let a = x.raw(warp, m.a.slot, 0)?;
            let (b, c) = (x.raw(warp, m.b.slot, 0)?, x.raw(warp, m.c.slot, 0)?);
            one!(map3(&a, &b, &c, |a, b, c| {
                let a = half::modify(swizzle[0].apply(a, mode.format), m.a.absolute, m.a.negate);
                let b = half::modify(swizzle[1].apply(b, mode.format), m.b.absolute, m.b.negate);
                let c = half::modify(swizzle[2].apply(c, mode.format), m.c.absolute, m.c.negate);
                half::hfma2(a, b, c, mode)
            }));
        }
        Op::Hmma { factor, accumulator, k, generation } => {
            let registers = usize::from(k) / if factor == mma::Factor::Tf32 { 4 } else { 8 };
            let results = if accumulator == mma::Accumulator::F16 { 2 } else { 4 };
            let (mut a, mut b, mut c) = ([[0; 32]; 4], [[0; 32]; 2], [[0; 32]; 4]);
            for (slot, to) in [(m.a.slot, &mut a[..2 * registers]), (m.b.slot, &mut b[..registers])] {
                for (word, to) in to.iter_mut().enumerate() {
                    *to = x.raw(warp, slot, word as u8)?;
                }
            }
            for (word, to) in c.iter_mut().enumerate().take(results) {
                *to = x.raw(warp, m.c.slot, word as u8)?;
            }
            let (a, b) = (&a[..2 * registers], &b[..registers]);
            let d = mma::hmma(factor, accumulator, usize::from(k), generation, a, b, &c[..results])
                .ok_or(FaultKind::IllegalInstruction)?;
            for (word, v) in d.iter().enumerate().take(results) {
                put(warp, m, word as u8, mask, v);
            }
        }
        Op::F2fp { format, rounding, relu } => {
            one!(map2(&x.float(warp, m.a)?, &x.float(warp, m.b)?, |a, b| convert::f2fp_pack(
                a, b, format, rounding, relu
            )));
        }
        Op::Mufu { function } => one!(map1(&x.float(warp, m.b)?, |v| mufu::mufu(function, v))),
        Op::Fchk => {
            let (a, b) = (x.float(warp, m.a)?, x.float(warp, m.b)?);
            set_predicate(warp, u, m.to[0], mask, ballot(|i| float::fchk(a[i], b[i])));
        }
        Op::F2f { from, to, rounding, flushes } => {
            let v = wide_float(x, warp, m.b, from)?;
            let out = v.map(|v| convert::f2f(v, from, to, rounding, flushes));
            put_sized(warp, m, mask, &out, to == FloatFormat::F64);
        }
        Op::Frnd { format, rounding, flushes } => {
            let v = wide_float(x, warp, m.b, format)?;
            let out = v.map(|v| convert::frnd(v, format, rounding, flushes));
            put_sized(warp, m, mask, &out, format == FloatFormat::F64);
        }
        Op::F2i { from, to, rounding, flushes } => {
            let v = wide_float(x, warp, m.b, from)?;
            let out = v.map(|v| convert::f2i(v, from, to, rounding, flushes));
            put_sized(warp, m, mask, &out, to.width == Width::B64);
        }
        Op::I2f { from, to, rounding, byte } => {
            let mut v = if from.width == Width::B64 {
                x.pair(warp, m.b.slot)?
            } else {
                x.integer(warp, m.b)?.map(u64::from)
            };
            for v in &mut v {
                *v >>= 8 * byte;
            }
            let out = v.map(|v| convert::i2f(v, from, to, rounding));
            put_sized(warp, m, mask, &out, to == FloatFormat::F64);
        }
        Op::P2r { byte } => {
            let keep = x.raw(warp, m.a.slot, 0)?;
            let select = x.raw(warp, m.b.slot, 0)?;
            let mut out = [0; 32];
            for i in 0..32 {
                let pr = (0..7).fold(0, |all, p| all | u32::from(bit(warp.predicates[p], i)) << p);
                let shift = 8 * u32::from(byte);
                let field = (select[i] & 0xff) << shift;
                out[i] = (keep[i] & !field) | (pr << shift & field);
            }
            put(warp, m, 0, mask, &out);
        }
        Op::R2p { byte } => {
            let v = x.raw(warp, m.a.slot, 0)?;
            let select = x.raw(warp, m.b.slot, 0)?;
            for p in 0..7 {
                let chosen = ballot(|i| bit(select[i], p)) & mask;
                let value = ballot(|i| bit(v[i] >> (8 * byte), p));
                set_predicate(warp, false, p as u8, chosen, value);
            }
        }
        Op::S2r { register, wide } => {
            let out = special(context, block, index, register)?;
            let warp = &mut block.warps[index];
            if m.op_is_uniform_special() {
                put_uniform(warp, m.destination, 0, mask, &out.map(|v| v as u32));
            } else {
                put_sized(warp, m, mask, &out, wide);
            }
        }
        Op::R2ur => {
            let v = x.raw(warp, m.a.slot, 0)?;
            put_uniform(warp, m.destination, 0, mask, &v);
        }
        Op::Vote { mode } => {
            let v = predicate(warp, false, m.from[0]) & mask;
            let truth = match mode {
                0 => v == mask,
                1 => v != 0,
                2 => v == mask || v == 0,
                _ => return Err(FaultKind::IllegalInstruction),
            };
            put(warp, m, 0, mask, &[v; 32]);
            set_predicate(warp, u, m.to[0], mask, if truth { u32::MAX } else { 0 });
        }
        Op::Shfl { mode } => {
            let v = x.raw(warp, m.a.slot, 0)?;
            let (b, c) = (x.raw(warp, m.b.slot, 0)?, x.raw(warp, m.c.slot, 0)?);
            let mut out = v;
            let mut inside = 0;
            for lane in 0..32u32 {
                let i = lane as usize;
                let segment = c[i] >> 8 & 31;
                let clamp = c[i] & 31;
                let by = b[i] & 31;
                let most = (lane & segment) | (clamp & !segment);
                let least = lane & segment;
                let (from, ok) = match mode {
                    Shuffle::Index => {
                        let j = least | (by & !segment);
                        (j, j <= most)
                    }
                    // SHFL.UP's clamp is a lower bound.
                    Shuffle::Up => (lane.wrapping_sub(by), lane as i32 - by as i32 >= most as i32),
                    Shuffle::Down => (lane + by, lane + by <= most),
                    Shuffle::Butterfly => (lane ^ by, lane ^ by <= most),
                };
                if ok {
                    // What an inactive lane gives is undefined; its register is what the card reads too.
                    out[i] = v[(from & 31) as usize];
                    inside |= 1 << lane;
                }
            }
            put(warp, m, 0, mask, &out);
            set_predicate(warp, u, m.to[0], mask, inside);
        }
        Op::Redux { operation, sign } => {
            let v = x.raw(warp, m.a.slot, 0)?;
            let lanes = (0..32).filter(|i| bit(mask, *i)).map(|i| v[i]);
            let result = lanes.reduce(|a, b| match operation {
                Reduction::And => a & b,
                Reduction::Or => a | b,
                Reduction::Xor => a ^ b,
                Reduction::Sum => a.wrapping_add(b),
                Reduction::Min => integer::imnmx(a, b, true, sign),
                Reduction::Max => integer::imnmx(a, b, false, sign),
            });
            put_uniform(warp, m.destination, 0, mask, &[result.unwrap_or(0); 32]);
        }
        Op::Ldc { size, bank, offset } => {
            let base = x.raw(warp, m.a.slot, 0)?;
            let mut out = [[0; 32]; 2];
            for i in 0..32 {
                if !bit(mask, i) {
                    continue;
                }
                let at = base[i].wrapping_add(offset as u32);
                if !at.is_multiple_of(u32::from(size.bytes)) {
                    return Err(FaultKind::Misaligned { address: u64::from(at) });
                }
                let word = x.constant(bank, at & !3)?;
                out[0][i] = extend(word >> (8 * (at & 3)), size.bytes, size.signed);
                if size.bytes == 8 {
                    out[1][i] = x.constant(bank, at + 4)?;
                }
            }
            put(warp, m, 0, mask, &out[0]);
            if size.bytes == 8 {
                put(warp, m, 1, mask, &out[1]);
            }
        }
        Op::Load { space, size, address } => {
            let at = addresses(x, warp, address, m.a.slot)?;
            let mut out = [[0; 32]; 4];
            let mut window = Window::EMPTY;
            for i in 0..32 {
                if !bit(mask, i) {
                    continue;
                }
                let v = match place(x.launch, space, at[i]) {
                    (Space::Shared, offset) => load_bytes(&block.shared, offset, offset, size.bytes, true)?,
                    (Space::Local, offset) => {
                        let place = local_place(x.launch, i, offset, size.bytes)?;
                        load_bytes(&warp.local, place, offset, size.bytes, false)?
                    }
                    (_, va) => window.load(x.map, va, size.bytes)?,
                };
                out[0][i] = extend(v[0], size.bytes, size.signed);
                for w in 1..4 {
                    out[w][i] = v[w];
                }
            }
            for (w, v) in out.iter().enumerate().take(usize::from(size.bytes.div_ceil(4))) {
                put(warp, m, w as u8, mask, v);
            }
        }
        Op::Store { space, size, address } => {
            let at = addresses(x, warp, address, m.a.slot)?;
            let mut data = [[0; 32]; 4];
            for (w, v) in data.iter_mut().enumerate().take(usize::from(size.bytes.div_ceil(4))) {
                *v = x.raw(warp, m.b.slot, w as u8)?;
            }
            let mut window = Window::EMPTY;
            for i in 0..32 {
                if !bit(mask, i) {
                    continue;
                }
                let v = [data[0][i], data[1][i], data[2][i], data[3][i]];
                match place(x.launch, space, at[i]) {
                    (Space::Shared, offset) => {
                        store_bytes(&mut block.shared, offset, offset, size.bytes, v, true)?;
                    }
                    (Space::Local, offset) => {
                        let place = local_place(x.launch, i, offset, size.bytes)?;
                        store_bytes(&mut warp.local, place, offset, size.bytes, v, false)?;
                    }
                    (_, va) => window.store(x.map, va, size.bytes, v)?,
                }
            }
        }
        Op::Atomic { space, operation, kind, address } => {
            let at = addresses(x, warp, address, m.a.slot)?;
            let wide = kind.bytes() == 8;
            let read = |warp: &Warp, slot| -> Result<[u64; 32], FaultKind> {
                if wide { x.pair(warp, slot) } else { Ok(x.raw(warp, slot, 0)?.map(u64::from)) }
            };
            let operand = read(warp, m.b.slot)?;
            let new =
                if operation == AtomicOperation::CompareExchange { read(warp, m.c.slot)? } else { [0; 32] };
            let mut out = [0; 32];
            for i in 0..32 {
                if !bit(mask, i) {
                    continue;
                }
                out[i] = match place(x.launch, space, at[i]) {
                    (Space::Shared, offset) => {
                        let old = load_bytes(&block.shared, offset, offset, kind.bytes(), true)?;
                        let old = u64::from(old[0]) | u64::from(old[1]) << 32;
                        let v = apply(old, operation, kind, operand[i], new[i]);
                        let v = [v as u32, (v >> 32) as u32, 0, 0];
                        store_bytes(&mut block.shared, offset, offset, kind.bytes(), v, true)?;
                        old
                    }
                    (Space::Local, _) => return Err(FaultKind::IllegalInstruction),
                    (_, va) => global_atomic(x.map, va, operation, kind, operand[i], new[i])?,
                };
            }
            put_sized(warp, m, mask, &out, wide);
        }
        Op::AtomicPopcIncrement { address } => {
            let at = addresses(x, warp, address, m.a.slot)?;
            let mut out = [0; 32];
            for i in 0..32 {
                if bit(mask, i) {
                    let old = load_bytes(&block.shared, at[i], at[i], 4, true)?;
                    out[i] = old[0];
                    let v = [old[0].wrapping_add(1), 0, 0, 0];
                    store_bytes(&mut block.shared, at[i], at[i], 4, v, true)?;
                }
            }
            put(warp, m, 0, mask, &out);
        }
        Op::Fence => std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst),
        Op::B2r => {
            let v = block.result;
            put(warp, m, 0, mask, &[v; 32]);
            set_predicate(warp, false, m.to[0], mask, if v != 0 { u32::MAX } else { 0 });
        }
        Op::Bssy { barrier } => {
            let b = &mut warp.convergence[usize::from(barrier)];
            for (lane, members) in b.iter_mut().enumerate() {
                if bit(mask, lane) {
                    *members = mask;
                }
            }
        }
        Op::BmovFrom { barrier, clear } => {
            let v = warp.convergence[usize::from(barrier)];
            put(warp, m, 0, mask, &v);
            if clear {
                for lane in 0..32 {
                    if bit(mask, lane) {
                        warp.convergence[usize::from(barrier)][lane] = 0;
                    }
                }
            }
        }
        Op::BmovTo { barrier } => {
            let v = x.raw(warp, m.b.slot, 0)?;
            for lane in 0..32 {
                if bit(mask, lane) {
                    warp.convergence[usize::from(barrier)][lane] = v[lane];
                }
            }
        }
        Op::Lepc => put_pair(warp, m, mask, &[pc + 16; 32]),
        _ => return Err(FaultKind::IllegalInstruction),
    }
    Ok(())
}

impl Micro {
    /// S2UR writes a uniform register.
    const fn op_is_uniform_special(&self) -> bool {
        self.word & 0x1ff == 0x1c3
    }
}

fn wide_float(
    x: &Context<'_>,
    warp: &Warp,
    source: Source,
    format: FloatFormat,
) -> Result<[u64; 32], FaultKind> {
    Ok(match format {
        FloatFormat::F64 => x.double(warp, source)?,
        FloatFormat::F32 => x.float(warp, source)?.map(u64::from),
        FloatFormat::F16 | FloatFormat::Bf16 => x.raw(warp, source.slot, 0)?.map(|v| {
            let v = half::modify((v as u16, 0), source.absolute, source.negate);
            u64::from(v.0)
        }),
    })
}

#[inline(always)]
fn put_sized(warp: &mut Warp, m: &Micro, mask: u32, v: &[u64; 32], wide: bool) {
    put(warp, m, 0, mask, &v.map(|x| x as u32));
    if wide {
        put(warp, m, 1, mask, &v.map(|x| (x >> 32) as u32));
    }
}

fn special(context: &Context<'_>, block: &Block, index: usize, register: u8) -> Result<[u64; 32], FaultKind> {
    let warp = &block.warps[index];
    let clock = context.statistics.instructions;
    let each = |f: &dyn Fn(u32) -> u32| std::array::from_fn(|i| u64::from(f(i as u32)));
    Ok(match register {
        0x00 => each(&|i| i),
        0x20 => each(&|i| {
            let t = warp.thread[i as usize];
            t[0] | t[1] << 16 | t[2] << 26
        }),
        0x21..=0x23 => each(&|i| warp.thread[i as usize][usize::from(register - 0x21)]),
        0x25..=0x27 => [u64::from(block.index[usize::from(register - 0x25)]); 32],
        0x32 => [context.launch.shared_bytes.into(); 32],
        0x2f => [context.launch.shared_window >> 32; 32],
        0x38 => each(&|i| 1 << i),
        0x39 => each(&|i| (1 << i) - 1),
        0x3a => each(&|i| u32::MAX >> (31 - i)),
        0x3b => each(&|i| u32::MAX.checked_shl(i + 1).unwrap_or(0)),
        0x3c => each(&|i| u32::MAX << i),
        0x50 => [clock; 32],
        0x51 => [clock >> 32; 32],
        0x52 | 0x53 => {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            let now = now.map_or(0, |d| d.as_nanos() as u64);
            [if register == 0x52 { now } else { now >> 32 }; 32]
        }
        0x88 | 0xff => [0; 32],
        _ => return Err(FaultKind::IllegalInstruction),
    })
}

#[inline(always)]
fn addresses(x: &Context<'_>, warp: &Warp, address: Address, base: Slot) -> Result<[u64; 32], FaultKind> {
    let offset = address.offset as i64 as u64;
    if address.wide {
        let base = x.pair(warp, base)?;
        let uniform = x.pair(warp, address.uniform)?;
        return Ok(std::array::from_fn(|i| base[i].wrapping_add(uniform[i]).wrapping_add(offset)));
    }
    let base = x.raw(warp, base, 0)?;
    let uniform = x.raw(warp, address.uniform, 0)?;
    Ok(std::array::from_fn(|i| {
        u64::from((base[i] << address.scale).wrapping_add(uniform[i]).wrapping_add(offset as u32))
    }))
}

/// Resolves a generic address.
#[inline(always)]
fn place(launch: &Launch, space: Space, address: u64) -> (Space, u64) {
    const WINDOW: u64 = 1 << 32;
    if space != Space::Generic {
        return (space, address);
    }
    if address.wrapping_sub(launch.shared_window) < WINDOW && launch.shared_window != 0 {
        (Space::Shared, address - launch.shared_window)
    } else if address.wrapping_sub(launch.local_window) < WINDOW && launch.local_window != 0 {
        (Space::Local, address - launch.local_window)
    } else {
        (Space::Global, address)
    }
}

/// Where a thread's local address lies in its warp's memory: the stack hangs from the top of a 16 MiB window.
fn local_place(launch: &Launch, lane: usize, address: u64, bytes: u8) -> Result<u64, FaultKind> {
    const TOP: u64 = 1 << 24;
    let size = u64::from(launch.local_bytes);
    let fault = FaultKind::OutOfRangeLocal { address };
    let offset = if address < size {
        address
    } else {
        let below = TOP.checked_sub(address).filter(|below| *below <= size).ok_or(fault.clone())?;
        size - below
    };
    if offset + u64::from(bytes) > size {
        return Err(fault);
    }
    Ok(lane as u64 * size + offset)
}

fn range(memory: &[u8], at: u64, address: u64, bytes: u8, shared: bool) -> Result<usize, FaultKind> {
    if !address.is_multiple_of(u64::from(bytes)) {
        return Err(FaultKind::Misaligned { address });
    }
    match at.checked_add(u64::from(bytes)) {
        Some(end) if end <= memory.len() as u64 => Ok(at as usize),
        _ if shared => Err(FaultKind::OutOfRangeShared { address }),
        _ => Err(FaultKind::OutOfRangeLocal { address }),
    }
}

fn load_bytes(memory: &[u8], at: u64, address: u64, bytes: u8, shared: bool) -> Result<[u32; 4], FaultKind> {
    let at = range(memory, at, address, bytes, shared)?;
    let mut all = [0; 16];
    all[..usize::from(bytes)].copy_from_slice(&memory[at..at + usize::from(bytes)]);
    let v = u128::from_le_bytes(all);
    Ok([v as u32, (v >> 32) as u32, (v >> 64) as u32, (v >> 96) as u32])
}

fn store_bytes(
    memory: &mut [u8],
    at: u64,
    address: u64,
    bytes: u8,
    v: [u32; 4],
    shared: bool,
) -> Result<(), FaultKind> {
    let at = range(memory, at, address, bytes, shared)?;
    for (i, byte) in memory[at..at + usize::from(bytes)].iter_mut().enumerate() {
        *byte = v[i / 4].to_le_bytes()[i % 4];
    }
    Ok(())
}

const fn extend(v: u32, bytes: u8, signed: bool) -> u32 {
    match (bytes, signed) {
        (1, false) => v & 0xff,
        (1, true) => v as i8 as i32 as u32,
        (2, false) => v & 0xffff,
        (2, true) => v as i16 as i32 as u32,
        _ => v,
    }
}
