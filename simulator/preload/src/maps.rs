//! The mappings of this process, as the kernel lists them.

/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;

/// Every mapping, by address; none where the kernel does not tell.
pub(crate) fn all() -> Vec<Mapping> {
    let text = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    text.lines().filter_map(Mapping::parse).collect()
}

/// A line of `/proc/self/maps`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) start: u64,
    pub(crate) end: u64,
    offset: u64,
    pub(crate) inode: u64,
}

impl Mapping {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let hexadecimal = |text| u64::from_str_radix(text, 16).ok();
        let (start, end) = words.next()?.split_once('-')?;
        // Rights, offset, device, inode.
        let offset = hexadecimal(words.nth(1)?)?;
        let inode = words.nth(1)?.parse().ok()?;
        Some(Self { start: hexadecimal(start)?, end: hexadecimal(end)?, offset, inode })
    }

    /// Whether it is another mapping than the simulator's own at that address.
    pub(crate) fn shows(&self, own: u64) -> bool {
        !(self.start..self.end).contains(&own)
    }

    /// The address of the page that holds the byte of the file at `offset`.
    pub(crate) fn place(&self, offset: u64) -> Option<u64> {
        let address = self.start.checked_add(offset.checked_sub(self.offset)?)?;
        (address < self.end).then_some(address & !(PAGE - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_a_byte_of_a_file_is_found_in_a_mapping() {
        let line = "7f0000010000-7f0000020000 rw-s 00080000 00:01 2053   /memfd:usermode (deleted)";
        let mapping = Mapping::parse(line).expect("a line");
        let expected =
            Mapping { start: 0x7f00_0001_0000, end: 0x7f00_0002_0000, offset: 0x8_0000, inode: 2053 };
        assert_eq!(mapping, expected);
        assert_eq!(mapping.place(0x8_108c), Some(0x7f00_0001_1000));
        assert_eq!((mapping.place(0x7_0000), mapping.place(0x9_0000)), (None, None));
        assert!(mapping.shows(0x7f00_0002_0000) && !mapping.shows(0x7f00_0001_0000));
        assert_eq!(Mapping::parse(""), None);
    }
}
