//! GPU virtual addresses: one allocator for the whole process.
//!
//! A CPU-visible allocation lies at one address for CPU and GPU, and several machines may live in one process, so all
//! of them draw from the same range. It ends below 2^40: QMD pointers and ring entries reach no further.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use crate::Error;

const START: u64 = 0x10_0000_0000;
const END: u64 = 1 << 40;

/// Free ranges: start to end.
#[derive(Debug)]
struct Ranges(BTreeMap<u64, u64>);

static FREE: Mutex<Option<Ranges>> = Mutex::new(None);

impl Ranges {
    fn take(&mut self, bytes: u64, alignment: u64) -> Option<u64> {
        let (start, end, at) = self.0.iter().find_map(|(&start, &end)| {
            let at = start.checked_next_multiple_of(alignment)?;
            (at.checked_add(bytes)? <= end).then_some((start, end, at))
        })?;
        self.0.remove(&start);
        if start < at {
            self.0.insert(start, at);
        }
        if at + bytes < end {
            self.0.insert(at + bytes, end);
        }
        Some(at)
    }

    fn give(&mut self, mut start: u64, mut end: u64) {
        if let Some((&before, &before_end)) = self.0.range(..start).next_back()
            && before_end == start
        {
            self.0.remove(&before);
            start = before;
        }
        if let Some(&after_end) = self.0.get(&end) {
            self.0.remove(&end);
            end = after_end;
        }
        self.0.insert(start, end);
    }
}

/// Takes a range; `alignment` is a power of two.
pub(crate) fn allocate(bytes: u64, alignment: u64) -> Result<u64, Error> {
    FREE.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get_or_insert_with(|| Ranges(BTreeMap::from([(START, END)])))
        .take(bytes, alignment)
        .ok_or(Error::AddressSpace { bytes })
}

/// Gives a range back, once nothing is mapped there any more.
pub(crate) fn release(address: u64, bytes: u64) {
    if let Some(ranges) = FREE.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        ranges.give(address, address + bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_ranges_join_their_neighbours() {
        let mut ranges = Ranges(BTreeMap::from([(0x1000, 0x10000)]));
        let a = ranges.take(0x1000, 0x1000).unwrap();
        let b = ranges.take(0x2000, 0x4000).unwrap();
        assert_eq!((a, b), (0x1000, 0x4000));
        assert_eq!(ranges.take(0x10000, 1), None);
        ranges.give(a, a + 0x1000);
        ranges.give(b, b + 0x2000);
        assert_eq!(ranges.0, BTreeMap::from([(0x1000, 0x10000)]));
    }
}
