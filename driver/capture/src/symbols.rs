//! Names for addresses.

use std::collections::BTreeMap;

use crate::{
    Capture,
    event::{Event, Symbol},
    tracker::Tracker,
};

/// Named ranges of GPU addresses. A later name hides an earlier one at the same first address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symbols {
    named: BTreeMap<u64, (u64, String)>,
    /// Memory without a name, by the handle of its object; for text only.
    memory: BTreeMap<u64, (u64, u32)>,
}

impl Symbols {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// The symbols of a capture. Memory that was mapped for the GPU and has no name is called by its handle, unless
    /// different objects lay at one address in the course of time.
    pub fn of(capture: &Capture) -> Self {
        let mut symbols = Self::new();
        let mut tracker = Tracker::new(capture.branch);
        let mut reused = Vec::new();
        for event in &capture.events {
            match event {
                Event::Symbol(Symbol { address, bytes, name }) => symbols.insert(*address, *bytes, name),
                Event::Ioctl(call) => {
                    tracker.ioctl(call);
                    for (address, bytes) in tracker.take_new_gpu_ranges() {
                        // A recording may have cut off the handle.
                        let Some(handle) = tracker.handle(address).filter(|handle| *handle != 0) else {
                            continue;
                        };
                        let overlaps = symbols
                            .memory
                            .range(..address + bytes)
                            .rev()
                            .take_while(|(start, (length, _))| **start + length > address);
                        // The two calls that map an object name it twice.
                        let other = |(start, known): (&u64, &(u64, u32))| {
                            ((*start, *known) != (address, (bytes, handle))).then_some(*start)
                        };
                        let others: Vec<u64> = overlaps.filter_map(other).collect();
                        if !others.is_empty() {
                            reused.extend(others);
                            reused.push(address);
                        }
                        symbols.memory.insert(address, (bytes, handle));
                    }
                }
                _ => {}
            }
        }
        for address in reused {
            symbols.memory.remove(&address);
        }
        symbols
    }

    /// Names a range.
    pub fn insert(&mut self, address: u64, bytes: u64, name: &str) {
        self.named.insert(address, (bytes, name.to_owned()));
    }

    /// Every range by address: its first address, bytes and name.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64, &str)> {
        self.named.iter().map(|(address, (bytes, name))| (*address, *bytes, name.as_str()))
    }

    /// The range that holds an address: its first address, bytes and name.
    pub fn find(&self, address: u64) -> Option<(u64, u64, &str)> {
        let (start, (bytes, name)) = self.named.range(..=address).next_back()?;
        (address - start < *bytes).then_some((*start, *bytes, name.as_str()))
    }

    /// An address as `name+0x10`, or as a number.
    pub fn text(&self, address: u64) -> String {
        match self.find(address) {
            Some((start, _, name)) if start == address => name.to_owned(),
            Some((start, _, name)) => format!("{name}+{:#x}", address - start),
            None => match self.memory.range(..=address).next_back() {
                Some((start, (_, handle))) if *start == address => format!("memory {handle:#x}"),
                Some((start, (bytes, handle))) if address - start < *bytes => {
                    format!("memory {handle:#x}+{:#x}", address - start)
                }
                _ => format!("{address:#x}"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_without_a_name_is_called_by_its_handle() {
        let mut symbols = Symbols::new();
        symbols.memory.insert(0x1000, (0x100, 0xcaf0_0001));
        assert_eq!(symbols.text(0x1000), "memory 0xcaf00001");
        assert_eq!(symbols.text(0x1010), "memory 0xcaf00001+0x10");
        assert_eq!(symbols.text(0x1100), "0x1100");
        symbols.insert(0x1000, 0x20, "sum");
        assert_eq!(
            (symbols.text(0x1010), symbols.text(0x1020)),
            ("sum+0x10".into(), "memory 0xcaf00001+0x20".into())
        );
    }

    #[test]
    fn an_address_is_shown_as_its_range_and_offset() {
        let mut symbols = Symbols::new();
        symbols.insert(0x1000, 0x100, "sum");
        assert_eq!(symbols.text(0x1000), "sum");
        assert_eq!(symbols.text(0x10f0), "sum+0xf0");
        assert_eq!(symbols.text(0x1100), "0x1100");
        assert_eq!(symbols.text(0xfff), "0xfff");
    }
}
