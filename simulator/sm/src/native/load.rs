//! Loads in compiled code, and what makes them safe.
//!
//! Before a run begins, [`prepare`] looks at every address that its loads will read from: range, alignment, rights. Where
//! anything is not as it should be the handlers execute the run, and find the fault. So compiled loads need no check, and
//! what all loads with one base share is looked at once. It works because nothing in a run changes a base before the load:
//! such a load begins a run of its own.

use std::mem::MaybeUninit;

use super::super::avx2;
use super::super::core::{Core, TEAM};
use super::super::execute::memory::{SCALE, SHARED, WIDE};
use super::super::lanes::{FULL, LANES};
use super::super::micro::{Micro, PredicateIn, RowIndex};
use super::assembler::{Condition, General, Label, R15, RAX, SHIFT_LEFT, Vector, Ymm, at};
use super::builder::{ACTIVE, Builder, Emitted, Full, Name, SCRATCH, Truth};
use nv_memory::AccessKind;

/// Bases of a run at most.
pub(super) const BASES: usize = 8;
/// Where the places of the lanes at hand are.
pub(super) const PLACES: General = R15;

/// Loads that share a base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Base {
    space: u8,
    row: RowIndex,
    uniform: RowIndex,
    scale: u8,
    wide: bool,
    guarded: bool,
    guard: PredicateIn,
    /// What offsets are beside multiples of the items' size.
    rest: i32,
    /// Bytes of the largest item.
    align: u32,
    /// The first byte from the base on, and the one behind the last.
    range: [i32; 2],
}

impl Base {
    fn of(op: &Micro, space: u8, bytes: u32) -> Self {
        let offset = op.payload as u32 as i32;
        Self {
            space,
            row: op.a,
            uniform: RowIndex((op.payload >> 32) as u16),
            scale: (op.payload >> SCALE & 7) as u8,
            wide: op.payload & WIDE != 0,
            guarded: op.kind & Micro::GUARDED != 0,
            guard: op.guard,
            rest: offset & (bytes as i32 - 1),
            align: bytes,
            range: [offset, offset.saturating_add(bytes as i32)],
        }
    }

    /// Takes another load in, if it has the same base.
    fn join(&mut self, other: &Self) -> bool {
        let same = Self { align: self.align, range: self.range, ..*other } == *self;
        let fits = self.rest == 0 || self.align == other.align;
        let range = [self.range[0].min(other.range[0]), self.range[1].max(other.range[1])];
        let joins = same && fits && range[1].checked_sub(range[0]).is_some();
        if joins {
            self.align = self.align.max(other.align);
            self.range = range;
        }
        joins
    }
}

/// Where eight lanes read.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(crate) struct Place {
    /// The base of the first lane.
    first: *const u8,
    /// What is added to lanes' indices.
    all: *const u8,
    /// Bytes from lane to lane, or [`Place::MIXED`].
    stride: u32,
    /// What makes an index of a lane's register.
    bias: u32,
}

impl Place {
    const MIXED: u32 = u32::MAX;
    const BYTES: i32 = size_of::<Self>() as i32;
}

/// Places of all bases, of each eight lanes of each member of a team.
pub(crate) type Places = [MaybeUninit<Place>; TEAM * 4 * BASES];

/// A load's way for lanes that do not lie as most do, which is written behind the run.
#[derive(Debug)]
pub(super) struct Cold {
    here: Label,
    back: Label,
    number: usize,
    op: Micro,
    words: usize,
    outs: [Ymm; 4],
    /// The lanes that load, if not all do.
    mask: Option<Ymm>,
    spare: Ymm,
    /// Whether the usual way is the same item for all lanes, or else neighbouring ones.
    same: bool,
}

/// Emits a load of so many words by each lane.
pub(crate) fn load<const BYTES: usize, const SPACE: u8>(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    let words = BYTES / 4;
    let base = Base::of(op, SPACE, BYTES as u32);
    let pair = |row: RowIndex| [Name::Row(row.0), Name::Row(row.plus(1).0)];
    b.reads_before(&pair(base.row))?;
    b.reads_before(&pair(base.uniform))?;
    if base.guarded {
        b.reads_before(&[Name::Predicate(base.guard.0 & 15)])?;
    }
    let number = match b.bases.iter_mut().position(|known| known.join(&base)) {
        Some(number) => number,
        None if b.bases.len() < BASES => {
            b.bases.push(base);
            b.bases.len() - 1
        }
        None => return Err(Full),
    };
    let mut outs = [Ymm(0); 4];
    for out in outs.iter_mut().take(words) {
        *out = b.temporary()?;
    }
    let spare = b.temporary()?;
    let guard = b.guard();
    let mask = match guard {
        Truth::Always => b.is_masked().then_some(ACTIVE),
        Truth::Never => return Ok(()),
        _ => {
            let guard = b.mask(guard)?;
            if b.is_masked() { Some(b.make(Vector::VPAND, guard, ACTIVE)?) } else { Some(guard) }
        }
    };
    let place = number as i32 * Place::BYTES;
    let offset = op.payload as u32 as i32;
    let (here, back) = (b.asm.label(), b.asm.label());
    b.asm.load_wide(RAX, at(PLACES, place + std::mem::offset_of!(Place, first) as i32));
    // Vectors in shared memory are usually read by all lanes at once, anything else by neighbours.
    let usual = if words > 1 && (SPACE == SHARED || mask.is_some()) { 0 } else { BYTES as i32 };
    b.asm.compare_memory(at(PLACES, place + std::mem::offset_of!(Place, stride) as i32), usual);
    b.asm.jump_if(Condition::NotZero, here);
    if usual == 0 {
        same(b, &outs[..words], offset);
    } else {
        rising(b, &outs, words, offset, mask);
    }
    b.asm.place(back);
    b.cold.push(Cold { here, back, number, op: *op, words, outs, mask, spare, same: usual == 0 });
    b.release(spare);
    for (word, out) in outs.into_iter().enumerate().take(words) {
        b.put(op.d.plus(word as u16), out)?;
    }
    Ok(())
}

/// One item for all lanes.
fn same(b: &mut Builder<'_>, outs: &[Ymm], offset: i32) {
    for (word, out) in outs.iter().enumerate() {
        b.asm.vector_one(Vector::VPBROADCASTD, *out, at(RAX, offset.wrapping_add(4 * word as i32)));
    }
}

/// Neighbouring items for neighbouring lanes.
fn rising(b: &mut Builder<'_>, outs: &[Ymm; 4], words: usize, offset: i32, mask: Option<Ymm>) {
    let part = |number: i32| at(RAX, offset.wrapping_add(32 * number));
    match (words, mask) {
        (1, None) => b.asm.load(outs[0], part(0)),
        (1, Some(mask)) => b.asm.vector(Vector::VPMASKMOVD, outs[0], mask, part(0)),
        (2, _) => {
            // Even words, then odd ones; halves are put in order last.
            let [low, high, ..] = *outs;
            b.asm.load(low, part(0));
            b.asm.vector_immediate(Vector::VSHUFPS, high, low, part(1), 0xdd);
            b.asm.vector_immediate(Vector::VSHUFPS, low, low, part(1), 0x88);
            b.asm.quarters(low, low, 0xd8);
            b.asm.quarters(high, high, 0xd8);
        }
        _ => {
            // Lanes 0 and 4, 1 and 5, 2 and 6, 3 and 7 beside each other, then four by four words are turned.
            let [a, b1, c, d] = *outs;
            b.asm.load(SCRATCH, part(0));
            b.asm.vector_immediate(Vector::VPERM2I128, c, SCRATCH, part(2), 0x20);
            b.asm.vector_immediate(Vector::VPERM2I128, b1, SCRATCH, part(2), 0x31);
            b.asm.load(SCRATCH, part(1));
            b.asm.vector_immediate(Vector::VPERM2I128, d, SCRATCH, part(3), 0x20);
            b.asm.vector_immediate(Vector::VPERM2I128, a, SCRATCH, part(3), 0x31);
            b.asm.vector(Vector::VPUNPCKLDQ, SCRATCH, c, b1);
            b.asm.vector(Vector::VPUNPCKHDQ, c, c, b1);
            b.asm.vector(Vector::VPUNPCKLDQ, b1, d, a);
            b.asm.vector(Vector::VPUNPCKHDQ, d, d, a);
            b.asm.vector(Vector::VPUNPCKLQDQ, a, SCRATCH, b1);
            b.asm.vector(Vector::VPUNPCKHQDQ, b1, SCRATCH, b1);
            b.asm.vector(Vector::VPUNPCKLQDQ, SCRATCH, c, d);
            b.asm.vector(Vector::VPUNPCKHQDQ, d, c, d);
            b.asm.load(c, SCRATCH);
        }
    }
}

impl Cold {
    /// Writes the other ways.
    pub(super) fn write(&self, b: &mut Builder<'_>) {
        b.asm.place(self.here);
        let place = self.number as i32 * Place::BYTES;
        let offset = self.op.payload as u32 as i32;
        let stride = at(PLACES, place + std::mem::offset_of!(Place, stride) as i32);
        let outs = &self.outs[..self.words];
        let mixed = b.asm.label();
        let other = if self.same { 4 * self.words as i32 } else { 0 };
        if !(self.same && self.mask.is_some() && self.words > 1) {
            b.asm.compare_memory(stride, other);
            b.asm.jump_if(Condition::NotZero, mixed);
            if self.same {
                rising(b, &self.outs, self.words, offset, self.mask);
            } else {
                same(b, outs, offset);
            }
            b.asm.jump(self.back);
        }
        b.asm.place(mixed);
        b.asm.load_wide(RAX, at(PLACES, place + std::mem::offset_of!(Place, all) as i32));
        let bias = at(PLACES, place + std::mem::offset_of!(Place, bias) as i32);
        for (word, out) in outs.iter().enumerate() {
            // The index, from the base register: nothing has changed it.
            b.asm.vector_one(Vector::VPBROADCASTD, SCRATCH, bias);
            b.asm.load(*out, Builder::memory(Name::Row(self.op.a.0)));
            b.asm.shift(SHIFT_LEFT, *out, *out, (self.op.payload >> SCALE & 7) as u8);
            b.asm.vector(Vector::VPADDD, SCRATCH, SCRATCH, *out);
            match self.mask {
                Some(mask) => b.asm.load(self.spare, mask),
                None => b.asm.vector(Vector::VPCMPEQD, self.spare, self.spare, self.spare),
            }
            b.asm.gather(*out, RAX, SCRATCH, offset.wrapping_add(4 * word as i32), self.spare);
        }
        b.asm.jump(self.back);
    }
}

/// Looks at everything that a run's loads will read. Whether all of it may be read; otherwise handlers have to find out.
#[target_feature(enable = "avx2")]
pub(super) fn prepare(core: &mut Core<'_>, bases: &[Base], places: &mut Places) -> bool {
    let count = bases.len();
    for member in 0..core.team.count {
        core.enter(member);
        let group = core.team.groups[member & (TEAM - 1)];
        for (number, base) in bases.iter().enumerate() {
            let mask = if base.guarded { group & core.predicate(base.guard) } else { group };
            let Some(to) = places.get_mut(4 * member * count + number..) else { return false };
            let mut slots = to.iter_mut().step_by(count);
            let usual = mask == FULL && in_order(core, base, &mut slots).is_some();
            if !usual && look(core, base, mask, to, count).is_none() {
                return false;
            }
        }
    }
    true
}

/// The places of all lanes, if each eight of them reads neighbours, or one item. `None` also where something is not as it
/// should be.
#[target_feature(enable = "avx2")]
fn in_order<'a>(
    core: &mut Core<'_>,
    base: &Base,
    to: &mut impl Iterator<Item = &'a mut MaybeUninit<Place>>,
) -> Option<()> {
    let row = core.row(base.row);
    let (order, starts) = avx2::order_of(row, base.scale.into(), base.align);
    let stride = match order {
        (true, _) => base.align,
        (_, true) => 0,
        _ => return None,
    };
    let [low, high] = base.range;
    let (least, most) = (starts.into_iter().min()?, starts.into_iter().max()?);
    // From the first byte that any reads to behind the last.
    let span = u64::from(most - least) + u64::from(7 * stride) + u64::from(high.abs_diff(low));
    let rest = base.rest as u32;
    let misaligned = |start: u32| start.wrapping_add(rest) & (base.align - 1) != 0;
    let (all, bias) = if base.space == SHARED {
        let bias = core.row(base.uniform)[0].wrapping_sub(core.cta.window);
        let from = |start: u32| start.wrapping_add(bias).wrapping_add(low as u32);
        // What lies before the memory's beginning wraps around, and is behind its end.
        let end = starts.into_iter().map(from).max().map(u64::from)?
            + u64::from(7 * stride)
            + u64::from(high.abs_diff(low));
        if end > u64::from(core.launch.launch.shared_bytes) {
            return None;
        }
        if starts.into_iter().any(|start| misaligned(start.wrapping_add(bias))) {
            return None;
        }
        (core.cta.shared.as_ptr().cast::<u8>(), bias)
    } else {
        let uniform = core.pair_lane(base.uniform, 0);
        let top = core.row(base.row.plus(1));
        if base.scale != 0 || most.checked_add(7 * stride).is_none() || span >= 1 << 31 {
            return None;
        }
        if base.wide && !avx2::one_value(top) {
            return None;
        }
        if starts.into_iter().any(|start| misaligned(start.wrapping_add(uniform as u32))) {
            return None;
        }
        let top = if base.wide { top[0] } else { 0 };
        let start = (u64::from(top) << 32 | u64::from(least)).wrapping_add(uniform);
        let address = start.wrapping_add(low as i64 as u64);
        let memory = core.caches.windows.find(&core.launch.map, AccessKind::Read, address, span).ok()??;
        (memory.cast_const().wrapping_offset(-(low as isize)), least.wrapping_neg())
    };
    for (start, to) in starts.into_iter().zip(to) {
        let first = all.wrapping_offset(start.wrapping_add(bias) as i32 as isize);
        to.write(Place { first, all, stride, bias });
    }
    Some(())
}

/// Where the lanes of the member at hand find a base.
#[cold]
#[target_feature(enable = "avx2")]
fn look(
    core: &mut Core<'_>,
    base: &Base,
    mask: u32,
    to: &mut [MaybeUninit<Place>],
    count: usize,
) -> Option<()> {
    let mut to = to.iter_mut().step_by(count);
    if mask == 0 {
        let nothing = Place { first: std::ptr::null(), all: std::ptr::null(), stride: Place::MIXED, bias: 0 };
        to.by_ref().take(4).for_each(|to| _ = to.write(nothing));
        return Some(());
    }
    let (all, bias) =
        if base.space == SHARED { shared(core, base, mask)? } else { global(core, base, mask)? };
    let row = core.row(base.row);
    let mut index = [0; LANES];
    for i in 0..LANES {
        index[i] = (row[i] << base.scale).wrapping_add(bias);
    }
    let mut strides = [Place::MIXED; 4];
    if mask == FULL {
        strides = match avx2::order(&index, base.align) {
            (true, _) => [base.align; 4],
            (_, true) => [0; 4],
            _ => [0, 1, 2, 3].map(|eight| stride(&index, eight, 0xff)),
        };
    } else {
        for (eight, stride_of) in strides.iter_mut().enumerate() {
            *stride_of = stride(&index, eight, (mask >> (8 * eight)) as u8);
        }
    }
    for (eight, to) in to.take(4).enumerate() {
        let active = (mask >> (8 * eight)) as u8;
        let lane = (active.trailing_zeros() & 7) as usize;
        let back = if strides[eight] == Place::MIXED { 0 } else { strides[eight].wrapping_mul(lane as u32) };
        let first = index[8 * eight + lane].wrapping_sub(back) as i32;
        let first = all.wrapping_offset(first as isize);
        to.write(Place { first, all, stride: strides[eight], bias });
    }
    Some(())
}

/// By how much the indices of the active lanes of an eight rise.
fn stride(index: &[u32; LANES], eight: usize, active: u8) -> u32 {
    let lanes = &index[8 * eight..8 * eight + 8];
    if active == 0 {
        return Place::MIXED;
    }
    let start = (active.trailing_zeros() & 7) as usize;
    let rest = active & (active - 1);
    if rest == 0 {
        return 0;
    }
    let next = (rest.trailing_zeros() & 7) as usize;
    let distance = lanes[next].wrapping_sub(lanes[start]);
    let steps = (next - start) as u32;
    let step = distance / steps;
    let mut other = distance ^ step.wrapping_mul(steps);
    for (lane, index) in lanes.iter().enumerate() {
        let expected = lanes[start].wrapping_add(step.wrapping_mul((lane as u32).wrapping_sub(start as u32)));
        let keep = u32::from(active >> lane & 1).wrapping_neg();
        other |= (index ^ expected) & keep;
    }
    if other == 0 { step } else { Place::MIXED }
}

/// The least and the most of the active lanes, and all bits of any.
#[target_feature(enable = "avx2")]
fn range(lanes: &[u32; LANES], mask: u32) -> (u32, u32, u32) {
    let keep = super::super::lanes::spread(mask);
    let (mut least, mut most, mut any) = (u32::MAX, 0, 0);
    for i in 0..LANES {
        least = least.min(lanes[i] | !keep[i]);
        most = most.max(lanes[i] & keep[i]);
        any |= lanes[i] & keep[i];
    }
    (least, most, any)
}

/// Where the block's shared memory begins, and what makes a distance from there of a register.
#[target_feature(enable = "avx2")]
fn shared(core: &mut Core<'_>, base: &Base, mask: u32) -> Option<(*const u8, u32)> {
    let uniform = core.row(base.uniform)[0];
    let bias = uniform.wrapping_sub(core.cta.window);
    let [low, high] = base.range;
    let row = core.row(base.row);
    let mut from = [0; LANES];
    for i in 0..LANES {
        from[i] = (row[i] << base.scale).wrapping_add(bias).wrapping_add(low as u32);
    }
    let (_, most, _) = range(&from, mask);
    let end = u64::from(most) + high.abs_diff(low) as u64;
    if end > u64::from(core.launch.launch.shared_bytes) {
        return None;
    }
    aligned(base, &from, mask)?;
    Some((core.cta.shared.as_ptr().cast(), bias))
}

/// Whether all items are aligned, where the first bytes of the range lie so.
#[target_feature(enable = "avx2")]
fn aligned(base: &Base, from: &[u32; LANES], mask: u32) -> Option<()> {
    let [low, _] = base.range;
    let mut at = *from;
    for at in &mut at {
        *at = at.wrapping_sub(low as u32).wrapping_add(base.rest as u32);
    }
    let (.., any) = range(&at, mask);
    (any & (base.align - 1) == 0).then_some(())
}

/// The memory of the lowest lane's base, and what makes a distance from there of a register's low word.
#[target_feature(enable = "avx2")]
fn global(core: &mut Core<'_>, base: &Base, mask: u32) -> Option<(*const u8, u32)> {
    let [low, high] = base.range;
    let uniform = core.pair_lane(base.uniform, 0);
    let (words, top) = (core.row(base.row), core.row(base.row.plus(1)));
    let first = super::super::lanes::first(mask);
    let top_word = |lane: usize| if base.wide { top[lane] } else { 0 };
    // All lanes in one part of 4 GiB of the register, which holds all that lies near.
    let same = if base.wide {
        let keep = super::super::lanes::spread(mask);
        let mut differ = 0;
        for i in 0..LANES {
            differ |= (top[i] ^ top[first]) & keep[i];
        }
        differ == 0
    } else {
        true
    };
    if !same || base.scale != 0 {
        return None;
    }
    let (least, most, _) = range(words, mask);
    let span = u64::from(most - least) + u64::from(high.abs_diff(low));
    if span >= 1 << 31 {
        return None;
    }
    let start = (u64::from(top_word(first)) << 32 | u64::from(least)).wrapping_add(uniform);
    let address = start.wrapping_add(low as i64 as u64);
    let mut from = [0; LANES];
    for i in 0..LANES {
        from[i] = words[i].wrapping_add(uniform as u32).wrapping_add(low as u32);
    }
    aligned(base, &from, mask)?;
    let map = &core.launch.map;
    let memory = core.caches.windows.find(map, AccessKind::Read, address, span).ok()??;
    Some((memory.wrapping_offset(-(low as isize)), least.wrapping_neg()))
}
