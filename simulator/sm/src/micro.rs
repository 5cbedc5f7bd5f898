//! Micro-operations: instructions with everything decided that can be decided before they run.

#[cfg(target_arch = "x86_64")]
use super::avx2;
use super::core::Core;
use super::lanes::{self, LANES};
use super::run::chain;

/// A row of 32 lanes that a micro-operation reads or writes: of the warp's registers, or with the highest bit set of
/// the page's pool of immediates and constants. Only lowering makes them, after checking their range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowIndex(pub(super) u16);

impl RowIndex {
    /// Bit that selects the pool.
    pub(super) const POOL: u16 = 0x8000;
    /// Rows that read as zero, and that nothing writes. As many as the longest operand has registers.
    pub(crate) const ZERO: Self = Self(0);
    /// Rows that take what is written to RZ.
    pub(crate) const SINK: Self = Self(Self::SPAN);
    /// Registers of the longest operand.
    pub(super) const SPAN: u16 = 16;
    /// Row of R0.
    pub(super) const REGISTERS: u16 = 2 * Self::SPAN;
    /// Uniform registers of a warp that have a row: UR0 to UR62.
    pub(super) const UNIFORM: u16 = 63;

    /// Words of Rpc, behind the uniform registers, and of an operand that is not known before it is read.
    const SCRATCH: u16 = 4;
    /// The first of the latter.
    pub(super) const OPERAND: u16 = 2;

    /// The row of a word of Rpc in a warp whose threads have that many registers.
    pub(super) const fn scratch(registers: u32, word: u16) -> Self {
        Self(Self::REGISTERS + registers as u16 + Self::UNIFORM + word)
    }

    /// The row of the register `words` above this one's.
    #[inline(always)]
    pub(crate) const fn plus(self, words: u16) -> Self {
        Self(self.0 + words)
    }

    /// Whether the row lies in the pool.
    pub(super) const fn is_pool(self) -> bool {
        self.0 & Self::POOL != 0
    }
}

/// Rows of a warp whose threads have that many registers.
pub(super) const fn rows_of(registers: u32) -> usize {
    RowIndex::scratch(registers, RowIndex::SCRATCH).0 as usize
}

/// A predicate that is read: its number in bits 3:0 (uniform ones from 8 on, 7 and 15 are true), bit 4 for `!`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PredicateIn(pub(super) u8);

impl PredicateIn {
    /// PT.
    pub(crate) const TRUE: Self = Self(7);
}

/// A predicate that is written; PT is a number of its own that nothing reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PredicateOut(pub(super) u8);

impl PredicateOut {
    /// PT.
    pub(crate) const NONE: Self = Self(16);
}

/// How the loop goes on after a micro-operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Flow {
    /// With the next one.
    Next,
    /// The lanes for which the first predicate holds go to the address in the payload: see [`super::run`].
    Branch,
    /// The micro-operation moves program counters or waits: see [`super::control`].
    Control,
    /// As after a branch that the lanes take that [`Core::around`] names: those that a compiled loop keeps.
    Around,
    /// [`Core::fault`] says why the warp stops.
    Fault,
}

/// Executes one micro-operation for all warps of a team, and those that follow in its chain.
pub(crate) type Handler = for<'a, 'b> unsafe fn(&'b mut Core<'a>, &Micro) -> Flow;

/// One micro-operation.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(crate) struct Micro {
    /// What to do.
    pub run: Handler,
    /// Further parameters, as the handler understands them.
    pub payload: u64,
    /// Destination.
    pub d: RowIndex,
    /// First source.
    pub a: RowIndex,
    /// Second source.
    pub b: RowIndex,
    /// Third source.
    pub c: RowIndex,
    /// Guard predicate.
    pub guard: PredicateIn,
    /// 0: runs in the lanes at hand. Bit 0: the guard is not PT. Bit 1: for the whole warp (uniform datapath). Bit 2:
    /// BSYNC, for all lanes that come to it.
    pub kind: u8,
    /// Predicates written.
    pub to: [PredicateOut; 2],
    /// Predicates read.
    pub from: [PredicateIn; 3],
    /// One more parameter.
    pub extra: u8,
}

impl Micro {
    /// Bit of [`Micro::kind`].
    pub(super) const GUARDED: u8 = 1;
    /// Bit of [`Micro::kind`].
    pub(super) const UNIFORM: u8 = 2;
    /// Bit of [`Micro::kind`].
    pub(super) const BSYNC: u8 = 4;

    /// [`Micro::extra`] of a branch that all lanes take where one does.
    pub(super) const ANY: u8 = 1;
    /// [`Micro::extra`] of a branch that no lane takes where one does not.
    pub(super) const ALL: u8 = 2;

    /// A micro-operation without operands.
    pub(crate) const fn new(run: Handler) -> Self {
        Self {
            run,
            payload: 0,
            d: RowIndex::SINK,
            a: RowIndex::ZERO,
            b: RowIndex::ZERO,
            c: RowIndex::ZERO,
            guard: PredicateIn::TRUE,
            kind: 0,
            to: [PredicateOut::NONE; 2],
            from: [PredicateIn::TRUE; 3],
            extra: 0,
        }
    }
}

const _: () = assert!(size_of::<Micro>() == 32);

/// What a kind of micro-operation does, as a type, so that one body is compiled for every [`Level`].
pub(crate) trait Execute {
    /// What it becomes in compiled code.
    const EMIT: Option<super::native::Emit> = None;

    /// Runs `op` for all warps of the team. Must be `#[inline(always)]`: the processor's features belong to the caller.
    fn run<L: Level>(core: &mut Core<'_>, op: &Micro) -> Flow;

    /// The last micro-operation that [`Execute::run`] executed: `op`, or one that [`super::run::Chain::further`] gave, since
    /// the chain goes on behind it.
    #[inline(always)]
    fn last(_core: &Core<'_>, op: &Micro) -> *const Micro {
        op
    }
}

/// What a kind of micro-operation does in one warp.
pub(crate) trait ExecuteOne {
    /// Runs `op` for the lanes of `mask`. Must be `#[inline(always)]` too.
    fn one<L: Level>(core: &mut Core<'_>, op: &Micro, mask: u32) -> Flow;
}

/// A set of processor features, as a type: closures inside handlers are then compiled once per set.
pub(crate) trait Level {
    /// The processor has AVX2 and F16C: a handler is run at this level only where they were found.
    const AVX2: bool = false;

    /// The mask of the lanes whose highest bit is set.
    #[inline(always)]
    fn signs(lanes: &[u32; LANES]) -> u32 {
        #[cfg(target_arch = "x86_64")]
        if Self::AVX2 {
            // SAFETY: the processor has the feature.
            return unsafe { avx2::signs(lanes) };
        }
        lanes::signs(lanes)
    }

    /// The mask of the lanes for which `f` holds.
    #[inline(always)]
    fn ballot(f: impl Fn(usize) -> bool) -> u32 {
        let mut truth = [0; LANES];
        for i in 0..LANES {
            truth[i] = u32::from(f(i)).wrapping_neg();
        }
        Self::signs(&truth)
    }
}

/// What every processor of the target has.
#[derive(Debug)]
pub(crate) struct Baseline;
impl Level for Baseline {}

/// x86-64 with AVX2, FMA and the bit instructions of that time.
#[derive(Debug)]
pub(crate) struct Avx2;
impl Level for Avx2 {
    const AVX2: bool = true;
}

/// x86-64 with the AVX-512 of servers since 2017. Left out of builds that are not for speed: every set costs time to
/// compile.
#[cfg(not(debug_assertions))]
#[derive(Debug)]
pub(crate) struct Avx512;
#[cfg(not(debug_assertions))]
impl Level for Avx512 {
    const AVX2: bool = true;
}

/// The features that were found in this processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Features {
    /// See [`Baseline`].
    Baseline,
    /// See [`Avx2`].
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// x86-64 with AVX-512 F, BW, DQ and VL.
    #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
    Avx512,
}

impl Features {
    /// Looks at the processor.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn detect() -> Self {
        use std::arch::is_x86_feature_detected as has;
        let avx2 = has!("avx2")
            && has!("f16c")
            && has!("fma")
            && has!("bmi1")
            && has!("bmi2")
            && has!("popcnt")
            && has!("lzcnt");
        #[cfg(not(debug_assertions))]
        if avx2 && has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl") {
            return Self::Avx512;
        }
        if avx2 { Self::Avx2 } else { Self::Baseline }
    }

    /// Looks at the processor.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn detect() -> Self {
        Self::Baseline
    }

    /// The handler of a kind of micro-operation for this processor.
    pub(crate) fn handler<T: Execute>(self) -> Handler {
        match self {
            Self::Baseline => baseline::<T>,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2::<T>,
            #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
            Self::Avx512 => avx512::<T>,
        }
    }

    /// The handler of a kind of micro-operation that gains nothing from vector instructions, or that is too rare for
    /// it to matter: compiled once.
    pub(crate) fn plain<T: Execute>() -> Handler {
        baseline::<T>
    }
}

/// # Safety
/// As for [`chain`].
unsafe fn baseline<T: Execute>(core: &mut Core<'_>, op: &Micro) -> Flow {
    let flow = T::run::<Baseline>(core, op);
    // SAFETY: whoever calls handlers keeps the chain's promise.
    unsafe { chain(core, &*T::last(core, op), flow) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c,fma,bmi1,bmi2,popcnt,lzcnt")]
unsafe fn avx2<T: Execute>(core: &mut Core<'_>, op: &Micro) -> Flow {
    let flow = T::run::<Avx2>(core, op);
    // SAFETY: whoever calls handlers keeps the chain's promise.
    unsafe { chain(core, &*T::last(core, op), flow) }
}

#[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
#[target_feature(enable = "avx2,f16c,fma,bmi1,bmi2,popcnt,lzcnt,avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn avx512<T: Execute>(core: &mut Core<'_>, op: &Micro) -> Flow {
    let flow = T::run::<Avx512>(core, op);
    // SAFETY: whoever calls handlers keeps the chain's promise.
    unsafe { chain(core, &*T::last(core, op), flow) }
}
