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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What ptxas stores for `mbarrier.init`.
    fn init_ampere(count: u32) -> u64 {
        u64::from(0x4000_0000 - count) | u64::from(0x8000_0000 - count) << 32
    }

    fn init(count: u32) -> u64 {
        u64::from((0x10_0000 - count) << 1) | u64::from((0x10_0000 - count) << 11) << 32
    }

    /// `mbarrier.pending_count`, as ptxas compiles it.
    fn pending_ampere(token: u32) -> u32 {
        0x8000_0000u32.wrapping_sub(token & 0x7fff_ffff)
    }

    /// The same; who arrives never finds nobody missing, but here others look too.
    fn pending(token: u32) -> u32 {
        (0x10_0000 - (token >> 11 & 0xf_ffff)) & 0xf_ffff
    }

    /// A barrier as the PTX manual describes it.
    #[derive(Clone, Copy)]
    struct Model {
        expected: i64,
        pending: i64,
        transactions: i64,
        phase: bool,
    }

    impl Model {
        fn settle(&mut self) {
            if self.pending == 0 && self.transactions == 0 {
                self.pending = self.expected;
                self.phase = !self.phase;
            }
        }
    }

    #[test]
    fn a_phase_of_ampere_ends_with_its_last_arrival() {
        for count in [1, 2, 256, 1 << 19, (1 << 20) - 1] {
            let mut barrier = init_ampere(count);
            for phase in 0..3 {
                for arrived in 0..count.min(1000) {
                    let token = (barrier >> 32) as u32;
                    assert_eq!((token >> 31, pending_ampere(token)), (phase & 1, count - arrived));
                    barrier = arrive_ampere(barrier);
                    let last = arrived + 1 == count;
                    assert_eq!(phase_is_over(barrier, token), last, "{arrived} of {count}");
                }
                if count > 1000 {
                    break;
                }
            }
        }
        // `arrive_drop` adds one to the low word first.
        let dropped = arrive_ampere(init_ampere(2) + 1);
        let next = arrive_ampere(dropped);
        assert_eq!(pending_ampere((next >> 32) as u32), 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_barrier_of_hopper_follows_the_manual(
            count in 1u32..40, operations in prop::collection::vec((0u32..4, -40i32..40, any::<bool>()), 0..200),
        ) {
            let mut barrier = init(count);
            let mut model =
                Model { expected: count.into(), pending: count.into(), transactions: 0, phase: false };
            for (arrivals, transactions, leaves) in operations {
                // No more than are expected, and nobody leaves a barrier that would be left with nobody.
                let arrivals = arrivals.min(model.pending as u32);
                let leaves = leaves && i64::from(arrivals) < model.expected;
                let token = (barrier >> 32) as u32;
                prop_assert_eq!(pending(token), model.pending as u32);
                let before = model.phase;
                model.pending -= i64::from(arrivals);
                model.expected -= if leaves { i64::from(arrivals) } else { 0 };
                model.transactions += i64::from(transactions);
                model.settle();
                barrier = arrive(barrier, Arrival { count: arrivals, transactions, leaves });
                prop_assert_eq!(phase_is_over(barrier, token), model.phase != before);
                prop_assert_eq!(barrier >> 63 != 0, model.phase);
            }
        }
    }
}
