//! What a handler works with: the registers of the warp at hand, its block's shared memory, its worker's caches.
//!
//! This is one of the places where `unsafe` is: rows are reached through raw pointers, without a range check. It is
//! sound because a [`RowIndex`] is only made by lowering, which checks the whole span of every operand against the
//! launch's register count, and because [`Core::new`] is given a warp with that many registers and the pool that was
//! made together with the code.

use super::block::Cta;
use super::fault::FaultKind;
use super::lanes::{FULL, LANES, Lanes, bit, blend, first, map};
use super::launch::Prepared;
use super::micro::{Flow, Micro, PredicateIn, PredicateOut, RowIndex};
use super::run::Chain;
use super::warp::Warp;
use super::worker::Caches;

/// A warp that is being executed.
pub(crate) struct Core<'a> {
    /// The warp's rows, and the pool of the page.
    rows: [*mut Lanes; 2],
    /// The warp, but for its rows.
    pub warp: &'a mut Warp,
    /// What the warps of the block share.
    pub cta: &'a mut Cta,
    /// What the worker has at hand.
    pub caches: &'a mut Caches,
    /// The launch.
    pub launch: &'a Prepared,
    /// How handlers follow each other.
    pub(super) chain: Chain,
    /// Lanes that go to the target of [`Flow::Branch`].
    pub taken: u32,
    /// Faults of the page, by number.
    pub faults: &'a [FaultKind],
    /// Why [`Flow::Fault`] was returned.
    pub fault: Option<FaultKind>,
}

impl<'a> Core<'a> {
    /// Brings together what handlers need.
    ///
    /// # Safety
    /// Handlers may be run only with micro-operations whose row indices lie inside the warp's rows or inside `pool`,
    /// as lowering makes them for a launch with the warp's number of registers.
    #[inline(always)]
    pub(super) unsafe fn new(
        warp: &'a mut Warp,
        pool: &'a [Lanes],
        faults: &'a [FaultKind],
        cta: &'a mut Cta,
        caches: &'a mut Caches,
        launch: &'a Prepared,
    ) -> Self {
        // The pool is never written: `row_mut` takes rows of the warp only.
        let rows = [warp.rows.as_mut_ptr(), pool.as_ptr().cast_mut()];
        Self { rows, warp, cta, caches, launch, chain: Chain::NONE, taken: 0, faults, fault: None }
    }

    /// Ends the warp.
    #[cold]
    pub fn fail(&mut self, kind: FaultKind) -> Flow {
        self.fault = Some(kind);
        Flow::Fault
    }

    #[inline(always)]
    fn pointer(&self, index: RowIndex) -> *mut Lanes {
        let base = self.rows[usize::from(index.is_pool())];
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
        let row = self.rows[0].wrapping_add(usize::from(index.0 & !RowIndex::POOL));
        // SAFETY: as above; `&mut self` keeps other references away.
        unsafe { &mut (*row).0 }
    }

    /// Destination rows of an operand of `WORDS` registers, as one array.
    ///
    /// # Safety
    /// `index` is a destination for which lowering checked as many registers.
    #[inline(always)]
    pub unsafe fn rows_mut<const WORDS: usize>(&mut self, index: RowIndex) -> &mut [[u32; LANES]; WORDS] {
        let row = self.rows[0].wrapping_add(usize::from(index.0 & !RowIndex::POOL));
        // SAFETY: rows of a warp lie one after the other without gaps, and `&mut self` keeps other references away.
        unsafe { &mut *row.cast() }
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
        self.warp.predicates[usize::from(operand.0 & 15)] ^ invert
    }

    /// Writes a predicate in the lanes of the mask.
    #[inline(always)]
    pub fn put_predicate(&mut self, to: PredicateOut, mask: u32, value: u32) {
        let predicate = &mut self.warp.predicates[usize::from(to.0 & 31)];
        *predicate = (*predicate & !mask) | (value & mask);
    }

    /// Writes a uniform predicate.
    #[inline(always)]
    pub fn put_uniform_predicate(&mut self, to: PredicateOut, value: bool) {
        self.put_predicate(to, FULL, u32::from(value).wrapping_neg());
    }

    /// The destination becomes `f` of the second source.
    #[inline(always)]
    pub fn map1(&mut self, op: &Micro, mask: u32, f: impl Fn(u32) -> u32) -> Flow {
        let b = self.row(op.b);
        let mut out = [0; LANES];
        for i in 0..LANES {
            out[i] = f(b[i]);
        }
        self.put(op.d, mask, &out);
        Flow::Next
    }

    /// As [`Core::map1`] for functions that take longer than looking at the mask.
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

    /// The destination becomes `f` of the first and second source.
    #[inline(always)]
    pub fn map2(&mut self, op: &Micro, mask: u32, f: impl Fn(u32, u32) -> u32) -> Flow {
        let (a, b) = (self.row(op.a), self.row(op.b));
        let mut out = [0; LANES];
        for i in 0..LANES {
            out[i] = f(a[i], b[i]);
        }
        self.put(op.d, mask, &out);
        Flow::Next
    }

    /// As [`Core::map2`] for functions that take longer than looking at the mask.
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

    /// The destination becomes `f` of the three sources.
    #[inline(always)]
    pub fn map3(&mut self, op: &Micro, mask: u32, f: impl Fn(u32, u32, u32) -> u32) -> Flow {
        let (a, b, c) = (self.row(op.a), self.row(op.b), self.row(op.c));
        let mut out = [0; LANES];
        for i in 0..LANES {
            out[i] = f(a[i], b[i], c[i]);
        }
        self.put(op.d, mask, &out);
        Flow::Next
    }

    /// As [`Core::map3`] for functions that take longer than looking at the mask.
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
