//! Loads, stores, atomics, constants and fences.
//!
//! How the lanes' addresses lie decides the way: a rising run is one vector access, one address for all is one scalar
//! access, and everything else goes lane by lane after a check of the whole range, or, where that fails, with a check of
//! each lane that finds the one at fault.

use std::sync::atomic::{AtomicU32, Ordering, fence};

use sass::lane::{atomic::AtomicOperation as LaneOperation, warp};

use super::super::atomic::{self, AtomicOperation, AtomicType};
#[cfg(target_arch = "x86_64")]
use super::super::avx2;
use super::super::cluster::RANK;
use super::super::core::Core;
use super::super::fault::FaultKind;
use super::super::lanes::{FULL, LANES, ballot, each, first, map};
use super::super::memory::{load, load_octet, prefetch, store, store_octet};
use super::super::micro::{Flow, Level, Micro, PredicateOut, RowIndex};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use super::super::native::{access, emit, plan::Linear};
use super::handlers;
use nv_memory::AccessKind;

/// Spaces, as parameters of handlers.
pub(crate) const GLOBAL: u8 = 0;
/// Generic addresses.
pub(crate) const GENERIC: u8 = 1;
/// Shared memory.
pub(crate) const SHARED: u8 = 2;
/// Local memory.
pub(crate) const LOCAL: u8 = 3;

/// Flags of a payload. Below them: the offset in 31:0, the uniform register's row in 47:32.
pub(crate) const WIDE: u64 = 1 << 48;
/// The base's factor in bits 51:49.
pub(crate) const SCALE: u32 = 49;
/// The value is sign-extended.
pub(crate) const SIGNED: u64 = 1 << 52;
/// The load looks for something that others write.
pub(crate) const STRONG: u64 = 1 << 53;
/// The old value is not wanted.
pub(crate) const NO_RESULT: u64 = 1 << 54;
/// Log2 of the elements of an atomic in bits 56:55.
pub(crate) const COUNT: u32 = 55;

/// What a look at others' writes takes off the budget: a warp that does little else is likely to wait.
pub(super) const LOOK: u32 = 64;

/// Bytes of a generic window.
const WINDOW: u64 = 1 << 32;

const fn extend(v: u32, bytes: usize, signed: bool) -> u32 {
    match (bytes, signed) {
        (1, true) => v as i8 as i32 as u32,
        (2, true) => v as i16 as i32 as u32,
        _ => v,
    }
}

/// Top of the window on local memory, from which the stack hangs.
pub(super) const LOCAL_TOP: u32 = 1 << 24;

/// Where an address of a generic space lies.
pub(crate) enum Place {
    Global(u64),
    /// In the block's own shared memory. The highest byte is its number in the cluster, or else it is a fault (measured on
    /// H200).
    Shared(u32),
    /// In the shared memory of the cluster, with the number of a block in the highest byte.
    Cluster(u32),
    Local(u32),
}

impl Core<'_> {
    /// What is added to the base of 64 bits.
    #[inline(always)]
    fn long_offset(&self, op: &Micro) -> u64 {
        let uniform = RowIndex((op.payload >> 32) as u16);
        let offset = op.payload as u32 as i32 as i64 as u64;
        self.pair_lane(uniform, 0).wrapping_add(offset)
    }

    /// The address of a lane in a space with 64 bits.
    #[inline(always)]
    fn long_address(&self, op: &Micro, lane: usize) -> u64 {
        let base =
            if op.payload & WIDE != 0 { self.pair_lane(op.a, lane) } else { u64::from(self.row(op.a)[lane]) };
        base.wrapping_add(self.long_offset(op))
    }

    /// The addresses in a space with 32 bits.
    #[inline(always)]
    pub(super) fn short_addresses(&self, op: &Micro) -> [u32; LANES] {
        self.addresses_from(op, 0)
    }

    /// The addresses in shared memory, from where the block's own begins.
    #[inline(always)]
    fn shared_addresses(&self, op: &Micro) -> [u32; LANES] {
        self.addresses_from(op, self.cta.window)
    }

    #[inline(always)]
    fn addresses_from(&self, op: &Micro, start: u32) -> [u32; LANES] {
        let uniform = self.row(RowIndex((op.payload >> 32) as u16))[0];
        let add = uniform.wrapping_add(op.payload as u32).wrapping_sub(start);
        let scale = op.payload >> SCALE & 7;
        let base = self.row(op.a);
        let mut out = [0; LANES];
        for i in 0..LANES {
            out[i] = (base[i] << scale).wrapping_add(add);
        }
        out
    }

    #[inline(always)]
    fn shared_pointer(&mut self) -> *mut u8 {
        self.cta.shared.as_mut_ptr().cast()
    }

    #[inline(always)]
    fn shared_bytes(&self) -> u32 {
        self.launch.launch.shared_bytes
    }

    pub(super) fn place(&self, address: u64) -> Place {
        let launch = &self.launch.launch;
        let (shared, local) = (launch.shared_window, launch.local_window);
        if shared != 0 && address.wrapping_sub(shared) < WINDOW {
            Place::Cluster((address - shared) as u32)
        } else if local != 0 && address.wrapping_sub(local) < WINDOW {
            Place::Local((address - local) as u32)
        } else {
            Place::Global(address)
        }
    }

    /// The memory of one lane's access to shared memory, if the block's own.
    fn own_shared(&mut self, at: u32, bytes: u32) -> Result<*mut u8, FaultKind> {
        let (offset, address) = (at.wrapping_sub(self.cta.window), u64::from(at));
        if at & (bytes - 1) != 0 {
            return Err(FaultKind::Misaligned { address });
        }
        if u64::from(offset) + u64::from(bytes) > u64::from(self.shared_bytes()) {
            return Err(FaultKind::OutOfRangeShared { address });
        }
        Ok(self.shared_pointer().wrapping_add(offset as usize))
    }

    /// The memory of one lane's access to the shared memory of the cluster.
    pub(super) fn shared_lane(&mut self, at: u32, bytes: u32) -> Result<*mut u8, FaultKind> {
        if self.cta.cluster.size() == 1 || (at ^ self.cta.window) >> RANK == 0 {
            return self.own_shared(at, bytes);
        }
        let (offset, address) = (at & ((1 << RANK) - 1), u64::from(at));
        if at & (bytes - 1) != 0 {
            return Err(FaultKind::Misaligned { address });
        }
        let Some(memory) = self.cta.cluster.shared(at >> RANK) else {
            return Err(FaultKind::ClusterTarget { address });
        };
        if offset + bytes > self.shared_bytes() {
            return Err(FaultKind::OutOfRangeShared { address });
        }
        Ok(memory.cast::<u8>().wrapping_add(offset as usize))
    }

    /// The byte of its local memory that a thread names: the stack hangs from [`LOCAL_TOP`].
    fn local_offset(&self, at: u32, bytes: u32) -> Result<u32, FaultKind> {
        let address = u64::from(at);
        if at & (bytes - 1) != 0 {
            return Err(FaultKind::Misaligned { address });
        }
        let size = self.launch.launch.local_bytes;
        let fault = FaultKind::OutOfRangeLocal { address };
        let offset = if at < size {
            at
        } else {
            let below = LOCAL_TOP.checked_sub(at).filter(|below| *below <= size).ok_or(fault.clone())?;
            size - below
        };
        if offset.checked_add(bytes).is_none_or(|end| end > size) {
            return Err(fault);
        }
        Ok(offset)
    }

    /// Loads from a lane's local memory.
    fn load_local<const BYTES: usize>(&self, lane: usize, at: u32) -> Result<[u32; 4], FaultKind> {
        let offset = self.local_offset(at, BYTES as u32)?;
        let mut out = [0; 4];
        for (word, out) in out.iter_mut().enumerate().take(BYTES.div_ceil(4)) {
            *out = self.warp().local.get(offset as usize / 4 + word).map_or(0, |row| row.0[lane & 31]);
        }
        if BYTES < 4 {
            out[0] = out[0] >> (8 * (offset & 3)) & ((1 << (8 * BYTES)) - 1);
        }
        Ok(out)
    }

    /// Stores to a lane's local memory.
    fn store_local<const BYTES: usize>(
        &mut self,
        lane: usize,
        at: u32,
        v: [u32; 4],
    ) -> Result<(), FaultKind> {
        let offset = self.local_offset(at, BYTES as u32)?;
        for (word, v) in v.iter().enumerate().take(BYTES.div_ceil(4)) {
            if let Some(row) = self.warp_mut().local.get_mut(offset as usize / 4 + word) {
                let to = &mut row.0[lane & 31];
                if BYTES < 4 {
                    let shift = 8 * (offset & 3);
                    let ones = ((1 << (8 * BYTES)) - 1) << shift;
                    *to = (*to & !ones) | (v << shift & ones);
                } else {
                    *to = *v;
                }
            }
        }
        Ok(())
    }

    /// One lane's load.
    fn load_lane<const BYTES: usize>(&mut self, lane: usize, place: Place) -> Result<[u32; 4], FaultKind> {
        let from = match place {
            Place::Global(address) => {
                self.caches.windows.lane(&self.launch.map, AccessKind::Read, address, BYTES as u64)?
            }
            Place::Shared(at) => self.own_shared(at, BYTES as u32)?,
            Place::Cluster(at) => self.shared_lane(at, BYTES as u32)?,
            Place::Local(at) => return self.load_local::<BYTES>(lane, at),
        };
        // SAFETY: the look-up made sure of range and alignment; the map outlives the launch.
        Ok(unsafe { load::<BYTES>(from) })
    }

    /// One lane's store.
    pub(super) fn store_lane<const BYTES: usize>(
        &mut self,
        lane: usize,
        place: Place,
        v: [u32; 4],
    ) -> Result<(), FaultKind> {
        let to = match place {
            Place::Global(address) => {
                self.caches.windows.lane(&self.launch.map, AccessKind::Write, address, BYTES as u64)?
            }
            Place::Shared(at) => self.own_shared(at, BYTES as u32)?,
            Place::Cluster(at) => self.shared_lane(at, BYTES as u32)?,
            Place::Local(at) => return self.store_local::<BYTES>(lane, at, v),
        };
        // SAFETY: the look-up made sure of range, alignment and rights.
        unsafe { store::<BYTES>(to, v) };
        Ok(())
    }

    /// The place of a lane's access.
    #[inline(always)]
    fn lane_place<const SPACE: u8>(&self, op: &Micro, lane: usize) -> Place {
        match SPACE {
            SHARED | LOCAL => {
                let uniform = self.row(RowIndex((op.payload >> 32) as u16))[0];
                let base = self.row(op.a)[lane] << (op.payload >> SCALE & 7);
                let at = base.wrapping_add(uniform).wrapping_add(op.payload as u32);
                if SPACE == SHARED { Place::Shared(at) } else { Place::Local(at) }
            }
            GLOBAL => Place::Global(self.long_address(op, lane)),
            _ => self.place(self.long_address(op, lane)),
        }
    }

    /// Where the access of a lane in a space would go, for those who count accesses.
    pub(crate) fn touched(&self, op: &Micro, space: u8, lane: usize) -> Place {
        match space {
            GLOBAL => self.lane_place::<GLOBAL>(op, lane),
            SHARED => self.lane_place::<SHARED>(op, lane),
            LOCAL => self.lane_place::<LOCAL>(op, lane),
            _ => self.lane_place::<GENERIC>(op, lane),
        }
    }

    /// Lane by lane, with checks.
    #[cold]
    #[inline(never)]
    fn load_slowly<const BYTES: usize, const SPACE: u8>(&mut self, op: &Micro, mask: u32) -> Flow {
        let mut out = [[0; LANES]; 4];
        for lane in each(mask) {
            let place = self.lane_place::<SPACE>(op, lane);
            match self.load_lane::<BYTES>(lane, place) {
                Ok(v) => {
                    for (out, v) in out.iter_mut().zip(v) {
                        out[lane] = v;
                    }
                }
                Err(kind) => return self.fail(kind),
            }
        }
        if BYTES < 4 && op.payload & SIGNED != 0 {
            out[0] = map(&out[0], |v| extend(v, BYTES, true));
        }
        for (word, out) in out.iter().enumerate().take(BYTES.div_ceil(4)) {
            self.put(op.d.plus(word as u16), mask, out);
        }
        Flow::Next
    }

    /// Lane by lane, with checks.
    #[cold]
    #[inline(never)]
    fn store_slowly<const BYTES: usize, const SPACE: u8>(&mut self, op: &Micro, mask: u32) -> Flow {
        for lane in each(mask) {
            let place = self.lane_place::<SPACE>(op, lane);
            let v = self.data::<BYTES>(op, lane);
            if let Err(kind) = self.store_lane::<BYTES>(lane, place, v) {
                return self.fail(kind);
            }
        }
        Flow::Next
    }

    /// A lane's data to be stored.
    #[inline(always)]
    pub(super) fn data<const BYTES: usize>(&self, op: &Micro, lane: usize) -> [u32; 4] {
        let mut v = [0; 4];
        for (word, v) in v.iter_mut().enumerate().take(BYTES.div_ceil(4)) {
            *v = self.row(op.b.plus(word as u16))[lane];
        }
        v
    }

    /// Lets `f` fill in what was loaded: into the destination itself where all lanes are active.
    #[inline(always)]
    fn put_loaded<const BYTES: usize, const WORDS: usize>(
        &mut self,
        op: &Micro,
        mask: u32,
        f: impl FnOnce(&mut [[u32; LANES]; WORDS]),
    ) {
        let direct = mask == FULL && BYTES >= 4;
        let mut rest;
        let out = if direct {
            // SAFETY: lowering checked the destination of a load for as many registers as it has words.
            unsafe { self.rows_mut::<WORDS>(op.d) }
        } else {
            rest = [[0; LANES]; WORDS];
            &mut rest
        };
        // Called in one place, and of a type of its own for each set of processor features, so that it is compiled with
        // those of its caller.
        f(out);
        if direct {
            return;
        }
        let mut loaded = *out;
        if BYTES < 4 && op.payload & SIGNED != 0 {
            loaded[0] = map(&loaded[0], |v| extend(v, BYTES, true));
        }
        for (word, lanes) in loaded.iter().enumerate() {
            self.put(op.d.plus(word as u16), mask, lanes);
        }
    }
}

/// How the addresses of the active lanes lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pattern {
    /// Each lane's right after the one before's.
    Rising,
    /// All the same.
    Same,
    Mixed,
}

/// Looks at the base registers of the active lanes. `low` and `high` are the words of the addresses.
#[inline(always)]
fn pattern<const BYTES: u32>(low: &[u32; LANES], high: &[u32; LANES], mask: u32) -> Pattern {
    let lane = first(mask);
    let (low0, high0) = (low[lane], high[lane]);
    let start = low0.wrapping_sub(lane as u32 * BYTES);
    let (mut rising, mut same) = (0, 0);
    if mask == FULL {
        for i in 0..LANES {
            let other = high[i] ^ high0;
            rising |= (low[i].wrapping_sub(i as u32 * BYTES) ^ start) | other;
            same |= (low[i] ^ low0) | other;
        }
    } else {
        for i in 0..LANES {
            let keep = (mask >> i & 1).wrapping_neg();
            let other = high[i] ^ high0;
            rising |= ((low[i].wrapping_sub(i as u32 * BYTES) ^ start) | other) & keep;
            same |= ((low[i] ^ low0) | other) & keep;
        }
    }
    if same == 0 {
        Pattern::Same
    } else if rising == 0 && low0.checked_add((31 - lane as u32) * BYTES).is_some() {
        Pattern::Rising
    } else {
        Pattern::Mixed
    }
}

/// How the addresses within each eight lanes lie, if it is the same in all four.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Eights {
    /// Each lane's right after the one before's.
    Rising,
    /// All the same.
    Same,
    Mixed,
}

/// Looks at the addresses of all 32 lanes, which rise by `step` if they do.
#[inline(always)]
fn eights<L: Level>(at: &[u32; LANES], step: u32) -> Eights {
    #[cfg(target_arch = "x86_64")]
    if L::AVX2 {
        // SAFETY: the processor has the feature.
        return match unsafe { avx2::order(at, step) } {
            (true, _) => Eights::Rising,
            (_, true) => Eights::Same,
            _ => Eights::Mixed,
        };
    }
    let (mut rising, mut same) = ([0; 8], [0; 8]);
    for eight in 0..4 {
        let first = at[8 * eight];
        for i in 0..8 {
            let distance = at[8 * eight + i].wrapping_sub(first);
            same[i] |= distance;
            rising[i] |= distance ^ (step * i as u32);
        }
    }
    let any = |lanes: &[u32; 8]| lanes.iter().fold(0, |any, lane| any | lane);
    if any(&rising) == 0 {
        Eights::Rising
    } else if any(&same) == 0 {
        Eights::Same
    } else {
        Eights::Mixed
    }
}

/// The addresses with which the eights begin.
#[inline(always)]
fn starts(at: &[u32; LANES]) -> [u32; 4] {
    [at[0], at[8], at[16], at[24]]
}

/// The lowest and the highest of four addresses, and the bits in which any differ.
#[inline(always)]
fn spread_of([a, b, c, d]: [u32; 4]) -> (u32, u32, u32) {
    (a.min(b).min(c.min(d)), a.max(b).max(c.max(d)), (a ^ b) | (a ^ c) | (a ^ d))
}

/// Loads the items of all lanes.
///
/// # Safety
/// `order` is that of the addresses; where every eight starts, `from + start` is aligned to `BYTES`, and valid for reads
/// of as many, or where they rise of eight times as many. With `OWN` nobody else uses the memory.
#[inline(always)]
unsafe fn load_eights<const OWN: bool, const BYTES: usize, const WORDS: usize>(
    order: Eights,
    from: *const u8,
    starts: [u32; 4],
    out: &mut [[u32; LANES]; WORDS],
) {
    for eight in 0..4 {
        let from = from.wrapping_add(starts[eight] as usize);
        // SAFETY: the caller's promise.
        unsafe {
            if order == Eights::Same {
                let v = if OWN && BYTES >= 4 {
                    let mut v = [0; 4];
                    for (word, v) in v.iter_mut().enumerate().take(WORDS) {
                        *v = from.cast::<u32>().add(word).read();
                    }
                    v
                } else {
                    load::<BYTES>(from)
                };
                for word in 0..WORDS {
                    for i in 0..8 {
                        out[word][8 * eight + i] = v[word];
                    }
                }
            } else if BYTES < 4 {
                for i in 0..8 {
                    out[0][8 * eight + i] = load::<BYTES>(from.add(i * BYTES))[0];
                }
            } else {
                let mut words = [[0; 8]; WORDS];
                for (i, words) in words.iter_mut().enumerate() {
                    load_octet(from.add(32 * i), words);
                }
                for i in 0..8 {
                    for word in 0..WORDS {
                        let at = WORDS * i + word;
                        out[word][8 * eight + i] = words[at / 8][at % 8];
                    }
                }
            }
        }
    }
}

/// Stores the items of all lanes, whose addresses rise within each eight.
///
/// # Safety
/// Where every eight starts, `to + start` is aligned to `BYTES`, and valid for writes of eight times as many.
#[inline(always)]
unsafe fn store_eights<const BYTES: usize, const WORDS: usize>(
    core: &Core<'_>,
    op: &Micro,
    to: *mut u8,
    starts: [u32; 4],
) {
    for eight in 0..4 {
        let to = to.wrapping_add(starts[eight] as usize);
        // SAFETY: the caller's promise.
        unsafe {
            if BYTES < 4 {
                for i in 0..8 {
                    store::<BYTES>(to.add(i * BYTES), core.data::<BYTES>(op, 8 * eight + i));
                }
            } else {
                let mut words = [[0; 8]; WORDS];
                for word in 0..WORDS {
                    let row = core.row(op.b.plus(word as u16));
                    for i in 0..8 {
                        let at = WORDS * i + word;
                        words[at / 8][at % 8] = row[8 * eight + i];
                    }
                }
                for (i, words) in words.iter().enumerate() {
                    store_octet(to.add(32 * i), words);
                }
            }
        }
    }
}

/// The range of the active lanes' words: smallest, largest, and all of them or-ed.
#[inline(always)]
fn range(at: &[u32; LANES], mask: u32) -> (u32, u32, u32) {
    let (mut least, mut most, mut any) = (u32::MAX, 0, 0);
    if mask == FULL {
        for i in 0..LANES {
            least = least.min(at[i]);
            most = most.max(at[i]);
            any |= at[i];
        }
    } else {
        for i in 0..LANES {
            let keep = (mask >> i & 1).wrapping_neg();
            least = least.min(at[i] | !keep);
            most = most.max(at[i] & keep);
            any |= at[i] & keep;
        }
    }
    (least, most, any)
}

/// Loads the items at offsets from `from`, eight lanes at a time where they lie well.
///
/// # Safety
/// For every lane of `mask`, `from + at[lane]` is aligned to `BYTES` and valid for reads of that many.
#[inline(always)]
unsafe fn gather<const BYTES: usize, const WORDS: usize>(
    from: *const u8,
    at: &[u32; LANES],
    mask: u32,
    out: &mut [[u32; LANES]; WORDS],
) {
    for group in 0..4 {
        let lanes = 8 * group..8 * group + 8;
        let active = mask >> (8 * group) & 0xff;
        if active == 0xff {
            let start = at[8 * group];
            let (mut rising, mut same) = (0, 0);
            for i in lanes.clone() {
                same |= at[i] ^ start;
                rising |= at[i].wrapping_sub(((i - 8 * group) * BYTES) as u32) ^ start;
            }
            if same == 0 {
                // SAFETY: the caller's promise for the group's first lane.
                let v = unsafe { load::<BYTES>(from.add(start as usize)) };
                for word in 0..WORDS {
                    out[word][lanes.clone()].fill(v[word]);
                }
                continue;
            }
            if rising == 0
                && BYTES == 4
                && let Some((to, _)) = out[0][lanes.clone()].split_first_chunk_mut::<8>()
            {
                // SAFETY: the caller's promise for each of the lanes.
                unsafe { load_octet(from.add(start as usize), to) };
                continue;
            }
        }
        for i in each(active << (8 * group)) {
            // SAFETY: the caller's promise.
            let v = unsafe { load::<BYTES>(from.add(at[i] as usize)) };
            for word in 0..WORDS {
                out[word][i] = v[word];
            }
        }
    }
}

/// The words of the addresses that a global access names, without what is added to all.
#[inline(always)]
fn address_rows(op: &Micro) -> (RowIndex, RowIndex) {
    (op.a, if op.payload & WIDE != 0 { op.a.plus(1) } else { RowIndex::ZERO })
}

/// Whether all lanes are the same.
#[inline(always)]
fn one_value<L: Level>(high: &[u32; LANES]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if L::AVX2 {
        // SAFETY: the processor has the feature.
        return unsafe { avx2::one_value(high) };
    }
    let mut any = [0; 8];
    for eight in 0..4 {
        for i in 0..8 {
            any[i] |= high[8 * eight + i] ^ high[0];
        }
    }
    any.iter().fold(0, |any, lane| any | lane) == 0
}

/// The memory of an access by all lanes whose addresses lie in order.
struct Ordered {
    order: Eights,
    /// Where offset 0 would be.
    base: *mut u8,
    /// Offsets with which the eights start.
    starts: [u32; 4],
}

/// The memory of a global access by all lanes, if it is one range and lies in order.
#[inline(always)]
fn global_in_order<L: Level, const BYTES: usize>(
    core: &mut Core<'_>,
    op: &Micro,
    kind: AccessKind,
) -> Option<Ordered> {
    let (low, high) = address_rows(op);
    let at = core.row(low);
    let order = eights::<L>(at, BYTES as u32);
    let high = core.row(high);
    if order == Eights::Mixed || !one_value::<L>(high) {
        return None;
    }
    let starts = starts(at);
    let (least, most, differ) = spread_of(starts);
    let bytes = if order == Eights::Same { BYTES } else { 8 * BYTES } as u64;
    let start = (u64::from(high[0]) << 32 | u64::from(least)).wrapping_add(core.long_offset(op));
    let range = u64::from(most - least) + bytes;
    let askew = (differ | start as u32) & (BYTES as u32 - 1);
    if askew != 0 || u64::from(most) + bytes > 1 << 32 {
        return None;
    }
    let first = core.caches.windows.find(&core.launch.map, kind, start, range).ok()??;
    Some(Ordered { order, base: first.wrapping_sub(least as usize), starts })
}

/// Whether the addresses of all 32 lanes rise by `step`, and those of `same` are the same.
#[inline(always)]
fn is_run<L: Level>(at: &[u32; LANES], step: u32, same: Option<&[u32; LANES]>) -> bool {
    // Tiles are told apart soon.
    if at[LANES - 1].wrapping_sub(at[0]) != (LANES as u32 - 1) * step {
        return false;
    }
    #[cfg(target_arch = "x86_64")]
    if L::AVX2 {
        // SAFETY: the processor has the feature.
        return unsafe { avx2::is_run(at, step, same) };
    }
    let mut any = [0; LANES];
    for i in 0..LANES {
        any[i] = at[i].wrapping_sub(at[0]) ^ (step * i as u32);
        any[i] |= same.map_or(0, |same| same[i] ^ same[0]);
    }
    any.iter().fold(0, |any, lane| any | lane) == 0
}

/// Offsets of the eights of a run.
const fn run_starts(bytes: usize) -> [u32; 4] {
    let eight = 8 * bytes as u32;
    [0, eight, 2 * eight, 3 * eight]
}

/// The memory of a global access by all lanes, if it is one run in a window that is known: the most frequent way.
#[inline(always)]
fn global_run<L: Level, const BYTES: usize>(
    core: &mut Core<'_>,
    op: &Micro,
    kind: AccessKind,
) -> Option<*mut u8> {
    let (low, high) = address_rows(op);
    let (low, high) = (core.row(low), core.row(high));
    if !is_run::<L>(low, BYTES as u32, Some(high)) || low[0] > u32::MAX - 31 * BYTES as u32 {
        return None;
    }
    let start = (u64::from(high[0]) << 32 | u64::from(low[0])).wrapping_add(core.long_offset(op));
    if start & (BYTES as u64 - 1) != 0 {
        return None;
    }
    core.caches.windows.known(kind, start, 32 * BYTES as u64)
}

/// The memory of an access to shared memory by all lanes, if it is one run, and the addresses are good.
#[inline(always)]
fn shared_run<L: Level, const BYTES: usize>(core: &mut Core<'_>, op: &Micro) -> Option<*mut u8> {
    let uniform = core.row(RowIndex((op.payload >> 32) as u16))[0];
    let scale = op.payload >> SCALE & 7;
    let at = core.row(op.a);
    if BYTES as u32 & ((1 << scale) - 1) != 0 || !is_run::<L>(at, BYTES as u32 >> scale, None) {
        return None;
    }
    let add = uniform.wrapping_add(op.payload as u32).wrapping_sub(core.cta.window);
    let start = (at[0] << scale).wrapping_add(add);
    let good = start & (BYTES as u32 - 1) == 0
        && u64::from(start) + 32 * BYTES as u64 <= u64::from(core.shared_bytes());
    good.then(|| core.shared_pointer().wrapping_add(start as usize))
}

/// Loads from global memory.
#[inline(always)]
fn load_global<L: Level, const BYTES: usize, const WORDS: usize>(
    core: &mut Core<'_>,
    op: &Micro,
    mask: u32,
) -> Flow {
    if mask == FULL
        && BYTES >= 4
        && let Some(from) = global_run::<L, BYTES>(core, op, AccessKind::Read)
    {
        core.put_loaded::<BYTES, WORDS>(op, mask, |out| {
            prefetch(from);
            // SAFETY: the window holds the run, whose alignment was checked.
            unsafe { load_eights::<false, BYTES, WORDS>(Eights::Rising, from, run_starts(BYTES), out) };
        });
        return Flow::Next;
    }
    if mask == FULL
        && let Some(Ordered { order, base, starts }) = global_in_order::<L, BYTES>(core, op, AccessKind::Read)
    {
        core.put_loaded::<BYTES, WORDS>(op, mask, |out| {
            prefetch(base.wrapping_add(starts[0] as usize));
            // SAFETY: the window holds the range of all lanes, and their alignment was checked.
            unsafe { load_eights::<false, BYTES, WORDS>(order, base, starts, out) };
        });
        return Flow::Next;
    }
    load_scattered::<BYTES, WORDS>(core, op, mask)
}

/// Loads from global memory where the addresses lie anyhow.
#[inline(never)]
fn load_scattered<const BYTES: usize, const WORDS: usize>(
    core: &mut Core<'_>,
    op: &Micro,
    mask: u32,
) -> Flow {
    let (low, high) = address_rows(op);
    // One range for all lanes, if they are within 4 GiB of each other.
    let offset = core.long_offset(op);
    let high0 = core.row(high)[first(mask)];
    let high = core.row(high);
    if ballot(|i| high[i] != high0) & mask != 0 {
        return core.load_slowly::<BYTES, GLOBAL>(op, mask);
    }
    let at = *core.row(low);
    let (least, most, _) = range(&at, mask);
    let start = (u64::from(high0) << 32 | u64::from(least)).wrapping_add(offset);
    let bytes = u64::from(most - least) + BYTES as u64;
    let mut any = 0;
    let mut relative = [0; LANES];
    for i in 0..LANES {
        relative[i] = at[i].wrapping_sub(least);
        any |= relative[i] & (mask >> i & 1).wrapping_neg();
    }
    if (u64::from(any) | start) & (BYTES as u64 - 1) != 0 {
        return core.load_slowly::<BYTES, GLOBAL>(op, mask);
    }
    let Ok(Some(from)) = core.caches.windows.find(&core.launch.map, AccessKind::Read, start, bytes) else {
        return core.load_slowly::<BYTES, GLOBAL>(op, mask);
    };
    core.put_loaded::<BYTES, WORDS>(op, mask, |out| {
        // SAFETY: the window holds the range of all lanes, whose alignment was checked.
        unsafe { gather::<BYTES, WORDS>(from, &relative, mask, out) };
    });
    Flow::Next
}

/// The memory of an access to shared memory by all lanes, if it lies in order, and the addresses are good.
#[inline(always)]
fn shared_in_order<L: Level, const BYTES: usize>(core: &mut Core<'_>, op: &Micro) -> Option<Ordered> {
    let uniform = core.row(RowIndex((op.payload >> 32) as u16))[0];
    let add = uniform.wrapping_add(op.payload as u32).wrapping_sub(core.cta.window);
    let scale = op.payload >> SCALE & 7;
    if BYTES as u32 & ((1 << scale) - 1) != 0 {
        return None;
    }
    let at = core.row(op.a);
    let order = eights::<L>(at, BYTES as u32 >> scale);
    if order == Eights::Mixed {
        return None;
    }
    let starts = starts(at).map(|start| (start << scale).wrapping_add(add));
    let (_, most, differ) = spread_of(starts);
    let bytes = if order == Eights::Same { BYTES } else { 8 * BYTES } as u64;
    let good = (differ | most) & (BYTES as u32 - 1) == 0
        && u64::from(most) + bytes <= u64::from(core.shared_bytes());
    good.then(|| Ordered { order, base: core.shared_pointer(), starts })
}

/// Loads from shared memory.
#[inline(always)]
fn load_shared<L: Level, const BYTES: usize, const WORDS: usize>(
    core: &mut Core<'_>,
    op: &Micro,
    mask: u32,
) -> Flow {
    if mask == FULL
        && BYTES >= 4
        && let Some(from) = shared_run::<L, BYTES>(core, op)
    {
        core.put_loaded::<BYTES, WORDS>(op, mask, |out| {
            // SAFETY: range and alignment were checked; the destination is not in shared memory.
            unsafe { load_eights::<true, BYTES, WORDS>(Eights::Rising, from, run_starts(BYTES), out) };
        });
        return Flow::Next;
    }
    if mask == FULL
        && let Some(Ordered { order, base, starts }) = shared_in_order::<L, BYTES>(core, op)
    {
        core.put_loaded::<BYTES, WORDS>(op, mask, |out| {
            // SAFETY: range and alignment were checked; the destination is not in shared memory.
            unsafe { load_eights::<true, BYTES, WORDS>(order, base, starts, out) };
        });
        return Flow::Next;
    }
    load_shared_scattered::<BYTES, WORDS>(core, op, mask)
}

/// Loads from shared memory where the addresses lie anyhow.
#[inline(never)]
fn load_shared_scattered<const BYTES: usize, const WORDS: usize>(
    core: &mut Core<'_>,
    op: &Micro,
    mask: u32,
) -> Flow {
    let at = core.shared_addresses(op);
    let (_, most, any) = range(&at, mask);
    if any & (BYTES as u32 - 1) != 0 || u64::from(most) + BYTES as u64 > u64::from(core.shared_bytes()) {
        return core.load_slowly::<BYTES, SHARED>(op, mask);
    }
    let from = core.shared_pointer();
    core.put_loaded::<BYTES, WORDS>(op, mask, |out| {
        // SAFETY: every lane's range and alignment was checked; the destination is not in shared memory.
        unsafe { gather::<BYTES, WORDS>(from, &at, mask, out) };
    });
    Flow::Next
}

/// The row of local memory that all active lanes name, if they do.
#[inline(always)]
fn local_row<const BYTES: usize>(core: &Core<'_>, at: &[u32; LANES], mask: u32) -> Option<usize> {
    if BYTES < 4 || pattern::<4>(at, at, mask) != Pattern::Same {
        return None;
    }
    let offset = core.local_offset(at[first(mask)], BYTES as u32).ok()?;
    Some(offset as usize / 4)
}

/// Loads from local memory.
#[inline(always)]
fn load_local<const BYTES: usize>(core: &mut Core<'_>, op: &Micro, mask: u32) -> Flow {
    let at = core.short_addresses(op);
    let Some(row) = local_row::<BYTES>(core, &at, mask) else {
        return core.load_slowly::<BYTES, LOCAL>(op, mask);
    };
    for word in 0..BYTES / 4 {
        let Some(v) = core.warp().local.get(row + word).map(|row| row.0) else { break };
        core.put(op.d.plus(word as u16), mask, &v);
    }
    Flow::Next
}

/// Whether no active lane's address can lie in a window.
#[inline(always)]
fn all_global(core: &Core<'_>, op: &Micro, mask: u32) -> bool {
    each(mask).all(|lane| matches!(core.place(core.long_address(op, lane)), Place::Global(_)))
}

/// Stores to global memory.
#[inline(always)]
fn store_global<L: Level, const BYTES: usize, const WORDS: usize>(
    core: &mut Core<'_>,
    op: &Micro,
    mask: u32,
) -> Flow {
    if mask == FULL
        && BYTES >= 4
        && let Some(to) = global_run::<L, BYTES>(core, op, AccessKind::Write)
    {
        // SAFETY: the window holds the run, whose alignment was checked.
        unsafe { store_eights::<BYTES, WORDS>(core, op, to, run_starts(BYTES)) };
        return Flow::Next;
    }
    if mask == FULL
        && let Some(Ordered { order: Eights::Rising, base, starts }) =
            global_in_order::<L, BYTES>(core, op, AccessKind::Write)
    {
        // SAFETY: the window holds the range of all lanes, and their alignment was checked.
        unsafe { store_eights::<BYTES, WORDS>(core, op, base, starts) };
        return Flow::Next;
    }
    store_scattered::<BYTES>(core, op, mask)
}

/// Stores to global memory where the addresses lie anyhow.
#[inline(never)]
fn store_scattered<const BYTES: usize>(core: &mut Core<'_>, op: &Micro, mask: u32) -> Flow {
    for lane in each(mask) {
        let address = core.long_address(op, lane);
        match core.caches.windows.lane(&core.launch.map, AccessKind::Write, address, BYTES as u64) {
            // SAFETY: the look-up made sure of range, alignment and rights.
            Ok(to) => unsafe { store::<BYTES>(to, core.data::<BYTES>(op, lane)) },
            Err(kind) => return core.fail(kind),
        }
    }
    Flow::Next
}

/// Stores to shared memory.
#[inline(always)]
fn store_shared<L: Level, const BYTES: usize, const WORDS: usize>(
    core: &mut Core<'_>,
    op: &Micro,
    mask: u32,
) -> Flow {
    if mask == FULL
        && BYTES >= 4
        && let Some(to) = shared_run::<L, BYTES>(core, op)
    {
        // SAFETY: range and alignment were checked.
        unsafe { store_eights::<BYTES, WORDS>(core, op, to, run_starts(BYTES)) };
        return Flow::Next;
    }
    if mask == FULL
        && let Some(Ordered { order: Eights::Rising, base, starts }) = shared_in_order::<L, BYTES>(core, op)
    {
        // SAFETY: range and alignment were checked.
        unsafe { store_eights::<BYTES, WORDS>(core, op, base, starts) };
        return Flow::Next;
    }
    store_shared_scattered::<BYTES>(core, op, mask)
}

/// Stores to shared memory where the addresses lie anyhow.
#[inline(never)]
fn store_shared_scattered<const BYTES: usize>(core: &mut Core<'_>, op: &Micro, mask: u32) -> Flow {
    let at = core.shared_addresses(op);
    let (_, most, any) = range(&at, mask);
    if any & (BYTES as u32 - 1) != 0 || u64::from(most) + BYTES as u64 > u64::from(core.shared_bytes()) {
        return core.store_slowly::<BYTES, SHARED>(op, mask);
    }
    let to = core.shared_pointer();
    for lane in each(mask) {
        // SAFETY: every lane's range and alignment was checked.
        unsafe { store::<BYTES>(to.add(at[lane] as usize), core.data::<BYTES>(op, lane)) };
    }
    Flow::Next
}

/// Stores to local memory.
#[inline(always)]
fn store_local<const BYTES: usize>(core: &mut Core<'_>, op: &Micro, mask: u32) -> Flow {
    let at = core.short_addresses(op);
    let Some(row) = local_row::<BYTES>(core, &at, mask) else {
        return core.store_slowly::<BYTES, LOCAL>(op, mask);
    };
    for word in 0..BYTES / 4 {
        let v = *core.row(op.b.plus(word as u16));
        if let Some(to) = core.warp_mut().local.get_mut(row + word) {
            to.0 = super::super::lanes::blend(mask, &v, &to.0);
        }
    }
    Flow::Next
}

/// The lanes of a generic atomic that it is for: all, or with a predicate result those with addresses in global memory, and
/// in shared memory where it `replaces` (compilers have code of their own for the others: for EXCH and CAS only for local
/// memory).
fn in_reach(core: &Core<'_>, op: &Micro, mask: u32, replaces: bool) -> u32 {
    if op.to[0] == PredicateOut::NONE {
        return mask;
    }
    let reached = |lane: &usize| match core.place(core.long_address(op, *lane)) {
        Place::Global(_) => true,
        Place::Shared(_) | Place::Cluster(_) => replaces,
        Place::Local(_) => false,
    };
    each(mask).filter(reached).fold(0, |done, lane| done | 1 << lane)
}

/// The memory of one lane's atomic, aligned.
fn atomic_pointer<const SPACE: u8>(
    core: &mut Core<'_>,
    op: &Micro,
    lane: usize,
    bytes: u32,
) -> Result<*mut u8, FaultKind> {
    match core.lane_place::<SPACE>(op, lane) {
        Place::Global(address) => {
            core.caches.windows.lane(&core.launch.map, AccessKind::Atomic, address, bytes.into())
        }
        Place::Shared(at) => core.own_shared(at, bytes),
        Place::Cluster(at) => core.shared_lane(at, bytes),
        // Not measured: vectors and 16 bytes.
        Place::Local(_) => Err(FaultKind::InvalidAddressSpace { address: core.long_address(op, lane) }),
    }
}

/// A generic atomic on the lane's own local memory: it is done there as elsewhere (measured on H200 for ADD of 32 bits).
fn atomic_local(
    core: &mut Core<'_>,
    lane: usize,
    at: u32,
    (operation, kind): (AtomicOperation, AtomicType),
    (value, new): (u64, u64),
) -> Result<u64, FaultKind> {
    let wide = kind.bytes() == 8;
    let words = if wide { core.load_local::<8>(lane, at)? } else { core.load_local::<4>(lane, at)? };
    let mut all = u64::from(words[0]) | u64::from(words[1]) << 32;
    // SAFETY: no other thread knows the number, and it is aligned for either size.
    let old = unsafe { atomic::update((&raw mut all).cast(), operation, kind, value, new) };
    let words = [all as u32, (all >> 32) as u32, 0, 0];
    let stored =
        if wide { core.store_local::<8>(lane, at, words) } else { core.store_local::<4>(lane, at, words) };
    stored.map(|()| old)
}

/// Bit of what QSPC gives: there is no memory at the address, in local memory or another block's.
const NOWHERE: u32 = 1 << 31;
/// Bits of what QSPC gives: the space that the address is in.
pub(crate) const IN_GLOBAL: u32 = 1;
/// As above.
pub(crate) const IN_SHARED: u32 = 2;
/// As above.
pub(crate) const IN_LOCAL: u32 = 4;
/// As above.
pub(crate) const IN_CLUSTER: u32 = 8;

handlers! {
    /// LDG, LD, LDS, LDL.
    Load<const BYTES: usize, const SPACE: u8> [access::load::<BYTES, SPACE>, access access::Access { space: SPACE, bytes: BYTES as u8, stores: false }, apart BYTES < 4, if SPACE == GLOBAL || SPACE == SHARED] =
        |core, op, mask| {
        if op.payload & STRONG != 0 {
            core.cta.spins += LOOK;
        }
        match (SPACE, BYTES) {
            (GLOBAL, 16) => load_global::<L, BYTES, 4>(core, op, mask),
            (GLOBAL, 8) => load_global::<L, BYTES, 2>(core, op, mask),
            (GLOBAL, _) => load_global::<L, BYTES, 1>(core, op, mask),
            (SHARED, 16) => load_shared::<L, BYTES, 4>(core, op, mask),
            (SHARED, 8) => load_shared::<L, BYTES, 2>(core, op, mask),
            (SHARED, _) => load_shared::<L, BYTES, 1>(core, op, mask),
            (LOCAL, _) => load_local::<BYTES>(core, op, mask),
            _ if all_global(core, op, mask) => match BYTES {
                16 => load_global::<L, BYTES, 4>(core, op, mask),
                8 => load_global::<L, BYTES, 2>(core, op, mask),
                _ => load_global::<L, BYTES, 1>(core, op, mask),
            },
            _ => core.load_slowly::<BYTES, GENERIC>(op, mask),
        }
    };
    /// LDG and LD with a predicate: lanes for which it does not hold access nothing and get zeros. One that LDG writes
    /// becomes false.
    LoadWhere<const BYTES: usize, const SPACE: u8> = |core, op, mask| {
        let enabled = mask & core.predicate(op.from[0]);
        if enabled != 0 {
            let flow = Load::<BYTES, SPACE>::one::<L>(core, op, enabled);
            if flow != Flow::Next {
                return flow;
            }
        }
        for word in 0..(BYTES / 4).max(1) as u16 {
            core.put(op.d.plus(word), mask & !enabled, &[0; LANES]);
        }
        core.put_predicate(op.to[0], mask, 0);
        Flow::Next
    };
    /// STG, ST, STS, STL.
    Store<const BYTES: usize, const SPACE: u8> [access::store::<BYTES, SPACE>, access access::Access { space: SPACE, bytes: BYTES as u8, stores: true }, apart BYTES < 4, if SPACE == GLOBAL || SPACE == SHARED] = |core, op, mask| match (SPACE, BYTES) {
        (GLOBAL, 16) => store_global::<L, BYTES, 4>(core, op, mask),
        (GLOBAL, 8) => store_global::<L, BYTES, 2>(core, op, mask),
        (GLOBAL, _) => store_global::<L, BYTES, 1>(core, op, mask),
        (SHARED, 16) => store_shared::<L, BYTES, 4>(core, op, mask),
        (SHARED, 8) => store_shared::<L, BYTES, 2>(core, op, mask),
        (SHARED, _) => store_shared::<L, BYTES, 1>(core, op, mask),
        (LOCAL, _) => store_local::<BYTES>(core, op, mask),
        _ if all_global(core, op, mask) => match BYTES {
            16 => store_global::<L, BYTES, 4>(core, op, mask),
            8 => store_global::<L, BYTES, 2>(core, op, mask),
            _ => store_global::<L, BYTES, 1>(core, op, mask),
        },
        _ => core.store_slowly::<BYTES, GENERIC>(op, mask),
    };
    /// Copies one or two rows.
    CopyRows [emit::copy_rows, linear Linear::Rows] = |core, op, mask| {
        for word in 0..u16::from(op.extra) {
            let v = *core.row(op.b.plus(word));
            core.put(op.d.plus(word), mask, &v);
        }
        Flow::Next
    };
    /// LDC with an index.
    LoadConstant = |core, op, mask| {
        let (bank, bytes) = ((op.payload >> 32) as u8, (op.payload >> 40) as u32 & 15);
        let mut out = [[0; LANES]; 2];
        for i in each(mask) {
            let at = core.row(op.a)[i].wrapping_add(op.payload as u32);
            if !at.is_multiple_of(bytes.max(1)) {
                return core.fail(FaultKind::Misaligned { address: at.into() });
            }
            let words = [core.launch.constant(bank, at & !3), core.launch.constant(bank, (at & !3).wrapping_add(4))];
            match words {
                [Ok(low), Ok(high)] if bytes == 8 => (out[0][i], out[1][i]) = (low, high),
                [Err(kind), _] => return core.fail(kind),
                [_, Err(kind)] if bytes == 8 => return core.fail(kind),
                [Ok(word), _] => {
                    let word = word >> (8 * (at & 3));
                    let word = if bytes < 4 { word & ((1 << (8 * bytes)) - 1) } else { word };
                    out[0][i] = extend(word, bytes as usize, op.extra != 0);
                }
            }
        }
        // A uniform load has one address; its row is written as a whole.
        core.put(op.d, mask, &out[0]);
        if bytes == 8 {
            core.put(op.d.plus(1), mask, &out[1]);
        }
        Flow::Next
    };
    /// ATOM, ATOMG, ATOMS, RED. Where there is a predicate result, lanes of ATOM that are out of its reach do nothing: the
    /// code that comes next looks after them. That of ATOMG becomes false (measured on H200).
    Atomic<const SPACE: u8> = |core, op, mask| {
        let (operation, kind) = atomic::of_code(op.extra);
        let wide = kind.bytes() == 8;
        let elements = 1 << (op.payload >> COUNT & 3);
        if op.payload & NO_RESULT == 0 && SPACE != SHARED {
            core.cta.spins += LOOK;
        }
        let replaces = matches!(
            operation,
            AtomicOperation::CompareExchange | AtomicOperation::Lane(LaneOperation::Exchange)
        );
        let done = if SPACE == GENERIC { in_reach(core, op, mask, replaces) } else { mask };
        // The elements of a vector are aligned as a whole, and each of them is replaced by itself.
        let mut out = [[0; LANES]; 4];
        for (element, out) in (0..elements).zip(&mut out) {
            for lane in each(done) {
                let operand = |row: RowIndex, core: &Core<'_>| {
                    let row = row.plus(element);
                    if wide { core.pair_lane(row, lane) } else { core.row(row)[lane].into() }
                };
                let (value, new) = (operand(op.b, core), operand(op.c, core));
                let bytes = kind.bytes() as u32 * u32::from(elements);
                let local = match core.lane_place::<SPACE>(op, lane) {
                    Place::Local(at) if matches!(bytes, 4 | 8) && elements == 1 => Some(at),
                    _ => None,
                };
                let old = if let Some(at) = local {
                    atomic_local(core, lane, at, (operation, kind), (value, new))
                } else {
                    let at = atomic_pointer::<SPACE>(core, op, lane, bytes);
                    at.map(|at| at.wrapping_add(kind.bytes() * usize::from(element))).map(|at| {
                        // SAFETY: the look-up made sure of range, alignment and rights.
                        unsafe { atomic::update(at, operation, kind, value, new) }
                    })
                };
                out[lane] = match old {
                    Ok(old) => old,
                    Err(kind) => return core.fail(kind),
                };
                if operation == AtomicOperation::CompareStore {
                    out[lane] = u64::from(out[lane] == value);
                }
            }
        }
        for (element, out) in (0..elements).zip(&out) {
            core.put_sized(op.d.plus(element), done, out, wide);
        }
        core.put_predicate(op.to[0], mask, if SPACE == GENERIC { done } else { 0 });
        Flow::Next
    };
    /// EXCH and CAS of 16 bytes. A predicate result is as that of the others.
    Atomic128<const SPACE: u8, const COMPARE: bool> = |core, op, mask| {
        if op.payload & NO_RESULT == 0 && SPACE != SHARED {
            core.cta.spins += LOOK;
        }
        let done = if SPACE == GENERIC { in_reach(core, op, mask, true) } else { mask };
        let mut out = [[0; LANES]; 4];
        for lane in each(done) {
            let whole = |row: RowIndex, core: &Core<'_>| {
                (0..4).fold(0, |all, word| all | u128::from(core.row(row.plus(word))[lane]) << (32 * word))
            };
            let (value, new) = (whole(op.b, core), whole(op.c, core));
            let at = match atomic_pointer::<SPACE>(core, op, lane, 16) {
                Ok(at) => at,
                Err(kind) => return core.fail(kind),
            };
            let (expected, new) = if COMPARE { (Some(value), new) } else { (None, value) };
            // SAFETY: the look-up made sure of range, alignment and rights.
            let old = unsafe { atomic::update_128(at, expected, new) };
            for (word, out) in out.iter_mut().enumerate() {
                out[lane] = (old >> (32 * word)) as u32;
            }
        }
        for (word, out) in (0..).zip(&out) {
            core.put(op.d.plus(word), done, out);
        }
        core.put_predicate(op.to[0], mask, if SPACE == GENERIC { done } else { 0 });
        Flow::Next
    };
    /// ATOMG.ADD and RED.ADD of 32-bit integers. Lanes with one address add once for all.
    AddGlobal = |core, op, mask| {
        let high = if op.payload & WIDE != 0 { op.a.plus(1) } else { RowIndex::ZERO };
        let wanted = op.payload & NO_RESULT == 0;
        if wanted {
            core.cta.spins += LOOK;
        }
        let mut out = [0; LANES];
        let same = pattern::<4>(core.row(op.a), core.row(high), mask) == Pattern::Same;
        let leaders = if same { 1 << first(mask) } else { mask };
        for lane in each(leaders) {
            let at = match atomic_pointer::<GLOBAL>(core, op, lane, 4) {
                Ok(at) => at,
                Err(kind) => return core.fail(kind),
            };
            let value = core.row(op.b);
            let sum = if same { each(mask).fold(0u32, |sum, i| sum.wrapping_add(value[i])) } else { value[lane] };
            // SAFETY: the look-up made sure of range, alignment and rights.
            let word = unsafe { AtomicU32::from_ptr(at.cast()) };
            out[lane] = word.fetch_add(sum, Ordering::SeqCst);
        }
        if wanted {
            if same {
                let mut old = out[first(mask)];
                for lane in each(mask) {
                    out[lane] = old;
                    old = old.wrapping_add(core.row(op.b)[lane]);
                }
            }
            core.put(op.d, mask, &out);
        }
        Flow::Next
    };
    /// ATOMS.ADD of 32-bit integers.
    AddShared = |core, op, mask| {
        let mut out = [0; LANES];
        for lane in each(mask) {
            match atomic_pointer::<SHARED>(core, op, lane, 4) {
                // SAFETY: the look-up made sure of range and alignment; the block's warps run one after the other.
                Ok(at) => unsafe {
                    out[lane] = at.cast::<u32>().read();
                    at.cast::<u32>().write(out[lane].wrapping_add(core.row(op.b)[lane]));
                },
                Err(kind) => return core.fail(kind),
            }
        }
        core.put(op.d, mask, &out);
        Flow::Next
    };
    /// LDSM: up to four 8 by 8 matrices of 16-bit elements, whose rows of 16 bytes lie where lanes 0 to 7, 8 to 15 and
    /// so on say.
    LoadMatrix = |core, op, mask| {
        let (count, transpose) = (usize::from(op.extra & 0x7f), op.extra >> 7 != 0);
        let at = core.short_addresses(op);
        let mut out = [[0; LANES]; 4];
        for matrix in 0..count.min(4) {
            let mut rows = [[0; 4]; 8];
            for (row, words) in rows.iter_mut().enumerate() {
                match core.own_shared(at[8 * matrix + row], 16) {
                    // SAFETY: range and alignment were checked.
                    Ok(from) => *words = unsafe { load::<16>(from) },
                    Err(kind) => return core.fail(kind),
                }
            }
            for lane in 0..LANES {
                let (row, pair) = (lane / 4, lane % 4);
                out[matrix][lane] = if transpose {
                    let element = |r: usize| rows[r][row / 2] >> (16 * (row % 2)) & 0xffff;
                    element(2 * pair) | element(2 * pair + 1) << 16
                } else {
                    rows[row][pair]
                };
            }
        }
        for (word, out) in out.iter().enumerate().take(count) {
            core.put(op.d.plus(word as u16), mask, out);
        }
        Flow::Next
    };
    /// STSM: the inverse of LDSM.
    StoreMatrix = |core, op, _mask| {
        let (count, transpose) = (usize::from(op.extra & 0x7f), op.extra >> 7 != 0);
        let at = core.short_addresses(op);
        for matrix in 0..count.min(4) {
            let rows = warp::stsm(core.row(op.b.plus(matrix as u16)), transpose);
            for (row, halves) in rows.iter().enumerate() {
                let to = match core.own_shared(at[8 * matrix + row], 16) {
                    Ok(to) => to,
                    Err(kind) => return core.fail(kind),
                };
                let pair = |i: usize| u32::from(halves[2 * i]) | u32::from(halves[2 * i + 1]) << 16;
                // SAFETY: range and alignment were checked.
                unsafe { store::<16>(to, [pair(0), pair(1), pair(2), pair(3)]) };
            }
        }
        Flow::Next
    };
    /// LDGSTS: from global memory (first source and payload) to shared memory (second source plus the third). Where the
    /// predicate does not hold, zeros are written. With `.ZFILL` the lowest bits of the global address say how many of
    /// the last bytes are zeros; so ptxas compiles cp.async with a source size.
    CopyToShared<const BYTES: usize> = |core, op, mask| {
        let enabled = core.predicate(op.from[0]);
        for lane in each(mask) {
            let address = core.long_address(op, lane);
            let zeros = if op.extra != 0 { address & (BYTES as u64 - 1) } else { 0 };
            let mut v = [0; 4];
            if enabled >> lane & 1 != 0 {
                match core.load_lane::<BYTES>(lane, Place::Global(address - zeros)) {
                    Ok(words) => v = words,
                    Err(kind) => return core.fail(kind),
                }
                let all = u128::from(v[0]) | u128::from(v[1]) << 32 | u128::from(v[2]) << 64 | u128::from(v[3]) << 96;
                let kept = all & (u128::MAX >> (128 - 8 * (BYTES as u64 - zeros)));
                v = [kept as u32, (kept >> 32) as u32, (kept >> 64) as u32, (kept >> 96) as u32];
            }
            let to = Place::Shared(core.row(op.b)[lane].wrapping_add(core.row(op.c)[lane]));
            if let Err(kind) = core.store_lane::<BYTES>(lane, to, v) {
                return core.fail(kind);
            }
        }
        Flow::Next
    };
    /// QSPC: the spaces of an address, and whether a wanted one is among them. The block's own shared memory is one
    /// space, that of all blocks another, though they may not be there (measured on H200).
    QuerySpace = |core, op, mask| {
        let mut spaces = [0; LANES];
        for lane in each(mask) {
            spaces[lane] = match core.place(core.long_address(op, lane)) {
                Place::Global(_) => IN_GLOBAL,
                Place::Local(at) if at < LOCAL_TOP - core.launch.launch.local_bytes.min(LOCAL_TOP) => {
                    IN_LOCAL | NOWHERE
                }
                Place::Local(_) => IN_LOCAL,
                Place::Shared(at) | Place::Cluster(at) if (at ^ core.cta.window) >> RANK == 0 => {
                    IN_SHARED | IN_CLUSTER
                }
                Place::Shared(at) | Place::Cluster(at) if at >> RANK >= core.launch.cluster => {
                    IN_CLUSTER | NOWHERE
                }
                Place::Shared(_) | Place::Cluster(_) => IN_CLUSTER,
            };
        }
        core.put_predicate(op.to[0], mask, ballot(|lane| spaces[lane] & u32::from(op.extra) != 0));
        core.put(op.d, mask, &spaces);
        Flow::Next
    };
    /// MEMBAR.
    Fence = |_core, _op, _mask| {
        fence(Ordering::SeqCst);
        Flow::Next
    };
}
