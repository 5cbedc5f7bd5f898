use fixtures::{
    properties,
    property::{Draw, any, within},
};
use sass::lane::mbarrier::*;

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

/// How many arrive, how many bytes are expected or have come, and whether those who arrive leave.
fn operations(draw: &mut Draw) -> Vec<(u32, i32, bool)> {
    draw.list(0..200, |draw| (within(0..4)(draw), draw.below(80) as i32 - 40, any(draw)))
}

properties! { 300 cases;
    fn a_barrier_of_hopper_follows_the_manual(count in within(1u32..40), operations in operations) {
        let mut barrier = init(count);
        let mut model =
            Model { expected: count.into(), pending: count.into(), transactions: 0, phase: false };
        for (arrivals, transactions, leaves) in operations {
            // No more than are expected, and nobody leaves a barrier that would be left with nobody.
            let arrivals = arrivals.min(model.pending as u32);
            let leaves = leaves && i64::from(arrivals) < model.expected;
            let token = (barrier >> 32) as u32;
            assert_eq!(pending(token), model.pending as u32);
            let before = model.phase;
            model.pending -= i64::from(arrivals);
            model.expected -= if leaves { i64::from(arrivals) } else { 0 };
            model.transactions += i64::from(transactions);
            model.settle();
            barrier = arrive(barrier, Arrival { count: arrivals, transactions, leaves });
            assert_eq!(phase_is_over(barrier, token), model.phase != before);
            assert_eq!(barrier >> 63 != 0, model.phase);
        }
    }
}
