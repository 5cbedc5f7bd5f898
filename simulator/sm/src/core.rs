//! What a handler works with: the registers of the warp at hand, its block's shared memory, its worker's caches.
//!
//! Warps of a block that stand at one address run as a team: a handler is called once, and its body runs for one warp
//! after the other. So the cost of getting from one instruction to the next is shared.
//!
//! This is one of the places where `unsafe` is: rows are reached through raw pointers, without a range check. It is
//! sound because a [`RowIndex`] is only made by lowering, which checks the whole span of every operand against the
//! launch's register count, and because [`Core::new`] is given a warp with that many registers and the pool that was
//! made together with the code.

use std::marker::PhantomData;

use super::block::Cta;
use super::fault::FaultKind;
use super::lanes::{FULL, LANES, Lanes, bit, blend, count, first, map};
use super::launch::Prepared;
use super::micro::{ExecuteOne, Flow, Level, Micro, PredicateIn, PredicateOut, RowIndex};
use super::run::Chain;
use super::warp::Warp;
use super::worker::Caches;

/// Most warps of a team.
pub(super) const TEAM: usize = 8;

/// Warps of a block that stand at one address, with the lanes of each that run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Team {
    pub count: usize,
    /// Their numbers in the block, which all differ.
    pub index: [u8; TEAM],
    pub groups: [u32; TEAM],
}

impl Team {
    /// Nobody yet.
    pub const EMPTY: Self = Self { count: 0, index: [0; TEAM], groups: [0; TEAM] };

    /// One warp.
    pub fn one(index: usize, group: u32) -> Self {
        let mut team = Self::EMPTY;
        team.add(index, group);
        team
    }

    /// The number in the block and the lanes of each member.
    pub fn members(&self) -> impl Iterator<Item = (usize, u32)> {
        self.index.into_iter().map(usize::from).zip(self.groups).take(self.count)
    }

    /// Adds a warp. Whether there was room.
    pub fn add(&mut self, index: usize, group: u32) -> bool {
        let room = self.count < TEAM;
        if room {
            (self.index[self.count], self.groups[self.count]) = (index as u8, group);
            self.count += 1;
        }
        room
    }

    /// Takes a member out; the last one takes its place.
    pub fn remove(&mut self, member: usize) {
        self.count -= 1;
        self.index[member] = self.index[self.count];
        self.groups[member] = self.groups[self.count];
    }

    /// Lanes that run.
    pub fn lanes(&self) -> u64 {
        self.groups.iter().take(self.count).map(|group| u64::from(count(*group))).sum()
    }
}

/// Warps that are being executed.
pub(crate) struct Core<'a> {
    /// For each member of the team its rows, and the pool of the page.
    rows: [[*mut Lanes; 2]; TEAM],
    /// The members.
    warps: [*mut Warp; TEAM],
    /// They are of the block that is lent.
    block: PhantomData<&'a mut [Warp]>,
    /// Which warps those are.
    pub(super) team: Team,
    /// Warps of the block with live lanes, for barriers; 0 where that is not told.
    pub(super) alive: usize,
    /// Number of the member at hand.
    pub(super) member: usize,
    /// Lanes of guarded instructions that did not run.
    pub(super) skipped: u64,
    /// What the warps of the block share.
    pub cta: &'a mut Cta,
    /// What the worker has at hand.
    pub caches: &'a mut Caches,
    /// The launch.
    pub launch: &'a Prepared,
    /// How handlers follow each other.
    pub(super) chain: Chain,
    /// The page.
    pub(super) page: &'a super::code::Page,
    /// Faults of the page, by number.
    pub faults: &'a [FaultKind],
    /// Instructions of the page with operands of described banks, by number.
    pub(super) bindless: &'a [super::execute::bindless::Operand],
    /// Why [`Flow::Fault`] was returned.
    pub fault: Option<FaultKind>,
    /// What compiled loops did.
    pub(super) around: Around,
}

/// What compiled loops did, beside what the run's own counts say.
#[derive(Debug, Default)]
pub(super) struct Around {
    pub instructions: u64,
    pub lanes: u64,
    /// The lanes of each member that stay in the loop.
    pub remain: [u32; TEAM],
}

impl<'a> Core<'a> {
    /// Brings together what handlers need.
    ///
    /// # Safety
    /// Handlers may be run only with micro-operations whose row indices lie inside the warps' rows or inside `pool`,
    /// as lowering makes them for a launch with the warps' number of registers.
    ///
    /// # Errors
    /// The team has a member that the block does not have.
    #[inline(always)]
    pub(super) unsafe fn new(
        all: &'a mut [Warp],
        team: &Team,
        pool: &'a [Lanes],
        page: &'a super::code::Page,
        cta: &'a mut Cta,
        caches: &'a mut Caches,
        launch: &'a Prepared,
    ) -> Option<Self> {
        let base = all.as_mut_ptr();
        // The pool is never written: destinations are rows of the warp only.
        let pool = pool.as_ptr().cast_mut();
        let mut warps = [base; TEAM];
        let mut rows = [[std::ptr::null_mut(), pool]; TEAM];
        for (member, index) in team.index.into_iter().enumerate().take(team.count) {
            let warp = all.get_mut(usize::from(index))?;
            rows[member][0] = warp.rows.as_mut_ptr();
            warps[member] = base.wrapping_add(index.into());
        }
        Some(Self {
            rows,
            warps,
            block: PhantomData,
            team: *team,
            alive: 0,
            member: 0,
            skipped: 0,
            cta,
            caches,
            launch,
            chain: Chain::NONE,
            page,
            faults: &page.faults,
            bindless: &page.bindless,
            fault: None,
            around: Around::default(),
        })
    }

    /// What compiled code is given.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    #[inline(always)]
    pub(super) fn frame(&mut self) -> super::native::Frame {
        super::native::Frame {
            rows: self.rows.as_ptr(),
            warps: self.warps.as_ptr(),
            groups: self.team.groups.as_ptr(),
            count: self.team.count,
            ledger: std::ptr::null_mut(),
            missed: std::ptr::null_mut(),
            windows: &raw const self.caches.windows,
            common: super::native::Common {
                shared: self.cta.shared.as_mut_ptr().cast(),
                shared_bytes: self.launch.launch.shared_bytes.into(),
                window: self.cta.window.into(),
                core: std::ptr::from_mut(self).cast(),
                threads: self.launch.thread_index.as_ptr(),
                block: [self.cta.index[0], self.cta.index[1], self.cta.index[2], 0],
                aligned: 0,
            },
        }
    }

    /// Lets `f` work with some lanes of one member, as if there were no others.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    pub(super) fn as_one<T>(&mut self, member: usize, lanes: u32, f: impl FnOnce(&mut Self) -> T) -> T {
        let (team, rows, warps) = (self.team, self.rows, self.warps);
        let member = member & (TEAM - 1);
        self.team = Team::one(team.index[member].into(), lanes);
        (self.rows[0], self.warps[0], self.member) = (rows[member], warps[member], 0);
        let out = f(self);
        (self.team, self.rows, self.warps, self.member) = (team, rows, warps, member);
        out
    }

    /// Turns to a member of the team.
    #[inline(always)]
    pub(super) fn enter(&mut self, member: usize) {
        debug_assert!(member < self.team.count, "members are counted");
        self.member = member & (TEAM - 1);
    }

    /// The warp at hand.
    #[inline(always)]
    pub fn warp(&self) -> &Warp {
        // SAFETY: `new` took the members from the block that is lent, and they only ever become fewer. A reference to a
        // warp lives no longer than the borrow of the core.
        unsafe { &*self.warps[self.member & (TEAM - 1)] }
    }

    /// The warp at hand.
    #[inline(always)]
    pub fn warp_mut(&mut self) -> &mut Warp {
        // SAFETY: as above.
        unsafe { &mut *self.warps[self.member & (TEAM - 1)] }
    }

    /// Takes a member out of the team; the last one takes its place.
    pub(super) fn leave(&mut self, member: usize) {
        self.team.remove(member);
        self.warps[member] = self.warps[self.team.count];
        self.rows[member] = self.rows[self.team.count];
        self.member = 0;
    }

    /// The lanes of the member at hand for which an instruction runs.
    #[inline(always)]
    pub(super) fn guarded(&self, op: &Micro) -> u32 {
        let group = self.team.groups[self.member & (TEAM - 1)];
        if op.kind == 0 {
            return group;
        }
        let lanes = if op.kind & Micro::UNIFORM != 0 { FULL } else { group };
        lanes & self.predicate(op.guard)
    }

    /// The lanes of each member for which an instruction runs. Those that a guard keeps from it are counted.
    #[inline(always)]
    pub(super) fn masks(&mut self, op: &Micro) -> [u32; TEAM] {
        if op.kind == 0 { self.team.groups } else { self.guarded_masks(op) }
    }

    #[inline(never)]
    fn guarded_masks(&mut self, op: &Micro) -> [u32; TEAM] {
        let mut masks = [0; TEAM];
        for member in 0..self.team.count {
            self.enter(member);
            let mask = self.guarded(op);
            let group = self.team.groups[member & (TEAM - 1)];
            if mask != group {
                self.skipped += u64::from((group & !mask).count_ones());
            }
            masks[member & (TEAM - 1)] = mask;
        }
        masks
    }

    /// Runs a handler for one member of the team after the other, until one does not simply go on.
    #[inline(always)]
    pub(super) fn each_warp<T: ExecuteOne, L: Level>(&mut self, op: &Micro) -> Flow {
        let masks = self.masks(op);
        for member in 0..self.team.count {
            let mask = masks[member & (TEAM - 1)];
            if mask != 0 {
                self.member = member;
                let flow = T::one::<L>(self, op, mask);
                if flow != Flow::Next {
                    return flow;
                }
            }
        }
        Flow::Next
    }

    /// The destination of every member becomes `f` of the three sources' rows.
    #[inline(always)]
    pub fn rows3(
        &mut self,
        op: &Micro,
        f: impl Fn(&[u32; LANES], &[u32; LANES], &[u32; LANES]) -> [u32; LANES],
    ) -> Flow {
        let masks = self.masks(op);
        let place = |index: RowIndex| (usize::from(index.is_pool()), usize::from(index.0 & !RowIndex::POOL));
        let ((_, d), a, b, c) = (place(op.d), place(op.a), place(op.b), place(op.c));
        for member in 0..self.team.count {
            let (rows, mask) = (&self.rows[member & (TEAM - 1)], masks[member & (TEAM - 1)]);
            let row = |(pool, at): (usize, usize)| rows[pool].wrapping_add(at);
            // SAFETY: see the module: the rows exist, and nothing else refers to them while they are written.
            unsafe {
                let out = f(&(*row(a)).0, &(*row(b)).0, &(*row(c)).0);
                let to = &mut (*row((0, d))).0;
                *to = if mask == FULL { out } else { blend(mask, &out, to) };
            }
        }
        Flow::Next
    }

    /// The destination of every member becomes `f` of the second source.
    ///
    /// As everywhere here `f` must be a closure of the handler: that is a type of its own for each [`Level`], and is
    /// compiled with the features of its only caller. A function's name is one type for all, and stays a call.
    #[inline(always)]
    pub fn team1(&mut self, op: &Micro, f: impl Fn(u32) -> u32) -> Flow {
        self.rows3(op, |_, b, _| map(b, &f))
    }

    /// The destination of every member becomes `f` of the first and second source.
    #[inline(always)]
    pub fn team2(&mut self, op: &Micro, f: impl Fn(u32, u32) -> u32) -> Flow {
        self.rows3(op, |a, b, _| {
            let mut out = [0; LANES];
            for i in 0..LANES {
                out[i] = f(a[i], b[i]);
            }
            out
        })
    }

    /// The destination of every member becomes `f` of the three sources.
    #[inline(always)]
    pub fn team3(&mut self, op: &Micro, f: impl Fn(u32, u32, u32) -> u32) -> Flow {
        self.rows3(op, |a, b, c| {
            let mut out = [0; LANES];
            for i in 0..LANES {
                out[i] = f(a[i], b[i], c[i]);
            }
            out
        })
    }

    /// Ends the warp.
    #[cold]
    pub fn fail(&mut self, kind: FaultKind) -> Flow {
        self.fault = Some(kind);
        Flow::Fault
    }

    #[inline(always)]
    fn pointer(&self, index: RowIndex) -> *mut Lanes {
        let base = self.rows[self.member & (TEAM - 1)][usize::from(index.is_pool())];
        base.wrapping_add(usize::from(index.0 & !RowIndex::POOL))
    }

    /// The lanes of a source.
    #[inline(always)]
    pub fn row(&self, index: RowIndex) -> &[u32; LANES] {
        // SAFETY: see the module: the row exists; handlers hold no other reference while they write one.
        unsafe { &(*self.pointer(index)).0 }
    }

    #[inline(always)]
    fn row_mut(&mut self, index: RowIndex) -> &mut [u32; LANES] {
        debug_assert!(!index.is_pool(), "lowering makes destinations from registers only");
        let row = self.pointer(RowIndex(index.0 & !RowIndex::POOL));
        // SAFETY: as above; `&mut self` keeps other references away.
        unsafe { &mut (*row).0 }
    }

    /// Destination rows of an operand of `WORDS` registers, as one array.
    ///
    /// # Safety
    /// `index` is a destination for which lowering checked as many registers.
    #[inline(always)]
    pub unsafe fn rows_mut<const WORDS: usize>(&mut self, index: RowIndex) -> &mut [[u32; LANES]; WORDS] {
        let row = self.pointer(RowIndex(index.0 & !RowIndex::POOL));
        // SAFETY: rows of a warp lie one after the other without gaps, and `&mut self` keeps other references away.
        unsafe { &mut *row.cast() }
    }

    /// Source rows of an operand of so many registers.
    ///
    /// # Safety
    /// `index` is a source for which lowering checked as many registers.
    #[inline(always)]
    pub unsafe fn source_rows(&self, index: RowIndex, count: usize) -> &[[u32; LANES]] {
        // SAFETY: rows lie one after the other without gaps, and handlers hold no other reference while they write one.
        unsafe { std::slice::from_raw_parts(self.pointer(index).cast(), count) }
    }

    /// Source rows of two operands and destination rows of one, of so many registers each.
    ///
    /// # Safety
    /// Lowering checked the operands for as many registers, and the destination shares none with the sources.
    #[inline(always)]
    pub unsafe fn rows_between(
        &mut self,
        [a, b]: [(RowIndex, usize); 2],
        (d, count): (RowIndex, usize),
    ) -> ([&[[u32; LANES]]; 2], &mut [[u32; LANES]]) {
        let row = self.pointer(RowIndex(d.0 & !RowIndex::POOL));
        // SAFETY: as for source rows; `&mut self` keeps other references away from those that are written.
        unsafe {
            (
                [self.source_rows(a.0, a.1), self.source_rows(b.0, b.1)],
                std::slice::from_raw_parts_mut(row.cast(), count),
            )
        }
    }

    /// A register pair: the low word in the first row.
    #[inline(always)]
    pub fn pair(&self, index: RowIndex) -> [u64; LANES] {
        let (low, high) = (self.row(index), self.row(index.plus(1)));
        let mut out = [0; LANES];
        for i in 0..LANES {
            out[i] = u64::from(low[i]) | u64::from(high[i]) << 32;
        }
        out
    }

    /// One lane of a register pair.
    #[inline(always)]
    pub fn pair_lane(&self, index: RowIndex, lane: usize) -> u64 {
        u64::from(self.row(index)[lane]) | u64::from(self.row(index.plus(1))[lane]) << 32
    }

    /// A source of one register, or of a register pair.
    #[inline(always)]
    pub fn sized(&self, index: RowIndex, wide: bool) -> [u64; LANES] {
        if wide { self.pair(index) } else { map(self.row(index), u64::from) }
    }

    /// Writes the lanes of the mask.
    #[inline(always)]
    pub fn put(&mut self, index: RowIndex, mask: u32, lanes: &[u32; LANES]) {
        let to = self.row_mut(index);
        if mask == FULL {
            *to = *lanes;
        } else {
            *to = blend(mask, lanes, to);
        }
    }

    /// Writes a register pair in the lanes of the mask.
    #[inline(always)]
    pub fn put_pair(&mut self, index: RowIndex, mask: u32, lanes: &[u64; LANES]) {
        self.put(index, mask, &map(lanes, |v| v as u32));
        self.put(index.plus(1), mask, &map(lanes, |v| (v >> 32) as u32));
    }

    /// Writes one register, or a register pair.
    #[inline(always)]
    pub fn put_sized(&mut self, index: RowIndex, mask: u32, lanes: &[u64; LANES], wide: bool) {
        self.put(index, mask, &map(lanes, |v| v as u32));
        if wide {
            self.put(index.plus(1), mask, &map(lanes, |v| (v >> 32) as u32));
        }
    }

    /// Writes a uniform register.
    #[inline(always)]
    pub fn put_uniform(&mut self, index: RowIndex, value: u32) {
        *self.row_mut(index) = [value; LANES];
    }

    /// The lanes where a predicate operand holds.
    #[inline(always)]
    pub fn predicate(&self, operand: PredicateIn) -> u32 {
        let invert = u32::from(operand.0 >> 4 & 1).wrapping_neg();
        self.warp().predicates[usize::from(operand.0 & 15)] ^ invert
    }

    /// Writes a predicate in the lanes of the mask.
    #[inline(always)]
    pub fn put_predicate(&mut self, to: PredicateOut, mask: u32, value: u32) {
        let predicate = &mut self.warp_mut().predicates[usize::from(to.0 & 31)];
        *predicate = (*predicate & !mask) | (value & mask);
    }

    /// Writes a uniform predicate.
    #[inline(always)]
    pub fn put_uniform_predicate(&mut self, to: PredicateOut, value: bool) {
        self.put_predicate(to, FULL, u32::from(value).wrapping_neg());
    }

    /// As [`Core::team1`] for one warp, for functions that take longer than looking at the mask.
    #[inline(always)]
    pub fn map1_slow(&mut self, op: &Micro, mask: u32, f: impl Fn(u32) -> u32) -> Flow {
        let b = self.row(op.b);
        let mut out = [0; LANES];
        for i in 0..LANES {
            if bit(mask, i) {
                out[i] = f(b[i]);
            }
        }
        self.put(op.d, mask, &out);
        Flow::Next
    }

    /// As [`Core::team2`] for one warp, for functions that take longer than looking at the mask.
    #[inline(always)]
    pub fn map2_slow(&mut self, op: &Micro, mask: u32, f: impl Fn(u32, u32) -> u32) -> Flow {
        let (a, b) = (self.row(op.a), self.row(op.b));
        let mut out = [0; LANES];
        for i in 0..LANES {
            if bit(mask, i) {
                out[i] = f(a[i], b[i]);
            }
        }
        self.put(op.d, mask, &out);
        Flow::Next
    }

    /// As [`Core::team3`] for one warp, for functions that take longer than looking at the mask.
    #[inline(always)]
    pub fn map3_slow(&mut self, op: &Micro, mask: u32, f: impl Fn(u32, u32, u32) -> u32) -> Flow {
        let (a, b, c) = (self.row(op.a), self.row(op.b), self.row(op.c));
        let mut out = [0; LANES];
        for i in 0..LANES {
            if bit(mask, i) {
                out[i] = f(a[i], b[i], c[i]);
            }
        }
        self.put(op.d, mask, &out);
        Flow::Next
    }

    /// The value of the lowest lane of a mask.
    #[inline(always)]
    pub fn lowest(&self, index: RowIndex, mask: u32) -> u32 {
        self.row(index)[first(mask)]
    }
}
