//! Which descriptor numbers are simulated: a set that costs one load to ask.
//!
//! `close`, `ioctl` and `mmap` ask for every descriptor of the process, also between `vfork` and `exec`: no lock, no
//! allocation.

use std::sync::atomic::{AtomicU64, Ordering};

/// Descriptor numbers that can be simulated. Above, opening a node fails with EMFILE.
const LIMIT: usize = 1 << 16;

/// A set of descriptor numbers.
pub(crate) struct Set([AtomicU64; LIMIT / 64]);

/// Descriptors of the machine of this process.
pub(crate) static SIMULATED: Set = Set::new();
/// Descriptors of nodes, real or simulated, where what is done with them is written down.
pub(crate) static RECORDED: Set = Set::new();
/// Descriptors of the machine of the process that forked this one.
pub(crate) static INHERITED: Set = Set::new();

impl Set {
    const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; LIMIT / 64])
    }

    fn word(&self, fd: i32) -> Option<(&AtomicU64, u64)> {
        let index = usize::try_from(fd).ok()?;
        Some((self.0.get(index / 64)?, 1 << (index % 64)))
    }

    pub(crate) fn contains(&self, fd: i32) -> bool {
        self.word(fd).is_some_and(|(word, bit)| word.load(Ordering::Acquire) & bit != 0)
    }

    /// False if the number is too large for the set.
    pub(crate) fn insert(&self, fd: i32) -> bool {
        self.word(fd).map(|(word, bit)| word.fetch_or(bit, Ordering::AcqRel)).is_some()
    }

    /// Whether it was there.
    pub(crate) fn remove(&self, fd: i32) -> bool {
        self.word(fd).is_some_and(|(word, bit)| word.fetch_and(!bit, Ordering::AcqRel) & bit != 0)
    }

    /// Moves everything to another set. Safe in a child between `fork` and `exec`.
    pub(crate) fn move_to(&self, other: &Self) {
        for (from, to) in self.0.iter().zip(&other.0) {
            let bits = from.swap(0, Ordering::AcqRel);
            if bits != 0 {
                to.fetch_or(bits, Ordering::AcqRel);
            }
        }
    }

    /// Forgets every member. Safe in a child between `fork` and `exec`.
    pub(crate) fn clear(&self) {
        self.0.iter().for_each(|word| word.store(0, Ordering::Release));
    }

    /// The members from `first` to `last`, both included.
    pub(crate) fn between(&self, first: u32, last: u32) -> Vec<i32> {
        let last = last.min(LIMIT as u32 - 1);
        (first..=last).filter_map(|fd| i32::try_from(fd).ok()).filter(|fd| self.contains(*fd)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_outside_the_set_are_never_members() {
        let set = Set::new();
        assert!(!set.insert(-1) && !set.insert(1 << 16) && !set.contains(1 << 20) && !set.remove(-1));
    }

    #[test]
    fn members_are_found_by_range_and_can_move() {
        let (set, other) = (Set::new(), Set::new());
        for fd in [0, 63, 64, 65_535] {
            assert!(set.insert(fd));
        }
        assert_eq!(set.between(1, u32::MAX), [63, 64, 65_535]);
        set.move_to(&other);
        assert!(!set.contains(64) && other.contains(64) && other.remove(64) && !other.remove(64));
        other.clear();
        assert!(other.between(0, u32::MAX).is_empty());
    }
}
