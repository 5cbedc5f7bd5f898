//! Names for addresses.

use std::collections::BTreeMap;

use crate::event::{Event, Symbol};

/// Named ranges of GPU addresses. A later name hides an earlier one at the same first address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symbols(BTreeMap<u64, (u64, String)>);

impl Symbols {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// The symbols among events.
    pub fn of(events: &[Event]) -> Self {
        let mut symbols = Self::new();
        for event in events {
            if let Event::Symbol(Symbol { address, bytes, name }) = event {
                symbols.insert(*address, *bytes, name);
            }
        }
        symbols
    }

    /// Names a range.
    pub fn insert(&mut self, address: u64, bytes: u64, name: &str) {
        self.0.insert(address, (bytes, name.to_owned()));
    }

    /// Every range by address: its first address, bytes and name.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64, &str)> {
        self.0.iter().map(|(address, (bytes, name))| (*address, *bytes, name.as_str()))
    }

    /// The range that holds an address: its first address, bytes and name.
    pub fn find(&self, address: u64) -> Option<(u64, u64, &str)> {
        let (start, (bytes, name)) = self.0.range(..=address).next_back()?;
        (address - start < *bytes).then_some((*start, *bytes, name.as_str()))
    }

    /// An address as `name+0x10`, or as a number.
    pub fn text(&self, address: u64) -> String {
        match self.find(address) {
            Some((start, _, name)) if start == address => name.to_owned(),
            Some((start, _, name)) => format!("{name}+{:#x}", address - start),
            None => format!("{address:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
