//! Bytes of GPU memory, as far as what wrote them was seen.

use std::collections::BTreeMap;

/// What was written, by address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents(BTreeMap<u64, Vec<u8>>);

impl Contents {
    /// Notes what was written. What it covers of earlier writes is forgotten.
    pub(crate) fn write(&mut self, address: u64, bytes: &[u8]) {
        let end = address.saturating_add(bytes.len() as u64);
        let below = self.0.range(..end).rev();
        let old: Vec<u64> = below
            .take_while(|(start, old)| start.saturating_add(old.len() as u64) > address)
            .map(|(start, _)| *start)
            .collect();
        for start in old {
            let Some(mut head) = self.0.remove(&start) else { continue };
            if let Some(skip) = end.checked_sub(start).filter(|skip| *skip < head.len() as u64) {
                self.0.insert(end, head[skip as usize..].to_vec());
            }
            if start < address {
                head.truncate((address - start) as usize);
                self.0.insert(start, head);
            }
        }
        self.0.insert(address, bytes.to_vec());
    }

    /// Bytes, if all of them are known.
    pub(crate) fn read(&self, address: u64, bytes: usize) -> Option<Vec<u8>> {
        let found = self.read_part(address, bytes)?;
        (found.len() == bytes).then_some(found)
    }

    /// The same up to the last byte that was written, with zeroes in between: clients declare longer banks than they
    /// fill. `None` if the first byte was not written.
    pub(crate) fn read_part(&self, address: u64, bytes: usize) -> Option<Vec<u8>> {
        let end = address.checked_add(bytes as u64)?;
        let (first, _) = self.0.range(..=address).next_back()?;
        let mut found = Vec::new();
        for (start, data) in self.0.range(*first..end) {
            let skip = address.saturating_sub(*start) as usize;
            let Some(data) = data.get(skip..).filter(|data| !data.is_empty()) else { continue };
            let at = (start + skip as u64 - address) as usize;
            let data = &data[..data.len().min(bytes - at)];
            found.resize(at + data.len(), 0);
            found[at..].copy_from_slice(data);
        }
        let begins = self
            .0
            .range(..=address)
            .next_back()
            .is_some_and(|(start, data)| address - start < data.len() as u64);
        (begins && !found.is_empty()).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_writes_cover_earlier_ones_and_gaps_read_as_zeroes() {
        let mut contents = Contents::default();
        contents.write(0x1000, &[1; 16]);
        contents.write(0x1004, &[2; 4]);
        contents.write(0x1014, &[3; 4]);
        assert_eq!(contents.read(0x1002, 8), Some(vec![1, 1, 2, 2, 2, 2, 1, 1]));
        assert_eq!(
            contents.read(0x1000, 0x18).map(|bytes| bytes[15..21].to_vec()),
            Some(vec![1, 0, 0, 0, 0, 3])
        );
        assert_eq!(contents.read_part(0x1010, 8), None);
        assert_eq!(contents.read_part(0x1014, 100), Some(vec![3; 4]));
        contents.write(0xff0, &[4; 0x40]);
        assert_eq!(contents.read(0x1000, 16), Some(vec![4; 16]));
        assert_eq!(contents.read(0x1030, 1), None);
    }
}
