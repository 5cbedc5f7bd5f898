//! Barriers in shared memory (`mbarrier`): what arrivals make of their 64 bits.
//!
//! How the bits lie follows from the code that ptxas makes of `mbarrier.init`, `pending_count` and `arrive_drop`. Where
//! Hopper keeps its count of transactions is what those leave over, and was not measured; programs see it in a barrier
//! that they read as data only.

/// The phase, the highest bit of the barrier and of the token that an arrival gives.
const PHASE: u64 = 1 << 63;

/// Whether the phase of a token, the high word of what an arrival found, is over: SYNCS.PHASECHK.
#[inline(always)]
pub const fn phase_is_over(barrier: u64, token: u32) -> bool {
    (barrier >> 32) as u32 >> 31 != token >> 31
}

/// ATOMS.ARRIVE.64: one arrival at a barrier of Ampere or Ada.
///
/// The high word counts up to the phase bit; the low word holds what it starts from, less one bit.
#[inline(always)]
pub const fn arrive_ampere(barrier: u64) -> u64 {
    let low = barrier as u32;
    let high = ((barrier >> 32) as u32).wrapping_add(1);
    let over = (high ^ (barrier >> 32) as u32) >> 31 != 0;
    let start = low.wrapping_add(0x4000_0000) & 0x7fff_ffff;
    let high = if over { high & 1 << 31 | start } else { high };
    (high as u64) << 32 | low as u64
}

/// What SYNCS.ARRIVE.TRANS64 does to a barrier of Hopper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Arrival {
    /// Arrivals.
    pub count: u32,
    /// Bytes, or copies, that are still to come; negative for those that came.
    pub transactions: i32,
    /// `.OPTOUT`: those who arrive do not take part in later phases.
    pub leaves: bool,
}

/// Bits of a count of arrivals, kept as what is missing to 2^20.
const COUNT: u64 = (1 << 20) - 1;
/// Lowest bits of the counts: of a phase, and of what is left of this one.
const OF_PHASE: u32 = 1;
const LEFT: u32 = 43;
/// Lowest bit, and bits, of the count of transactions.
const TRANSACTIONS: (u32, u64) = (21, (1 << 22) - 1);

/// SYNCS.ARRIVE.TRANS64: the barrier after it. The phase is over when nobody and nothing is left to come.
#[inline(always)]
pub const fn arrive(barrier: u64, arrival: Arrival) -> u64 {
    let leaving = if arrival.leaves { arrival.count as u64 } else { 0 };
    let of_phase = ((barrier >> OF_PHASE & COUNT) + leaving) & COUNT;
    let left = ((barrier >> LEFT & COUNT) + arrival.count as u64) & COUNT;
    let (lowest, mask) = TRANSACTIONS;
    let transactions = (barrier >> lowest).wrapping_add(arrival.transactions as i64 as u64) & mask;
    let kept = barrier & (PHASE | 1) | of_phase << OF_PHASE;
    if left == 0 && transactions == 0 {
        kept ^ PHASE | of_phase << LEFT
    } else {
        kept | transactions << lowest | left << LEFT
    }
}
