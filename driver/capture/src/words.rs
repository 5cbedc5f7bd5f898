//! Bytes as words, and the addresses among words.

/// Little-endian words; up to three bytes at the end are left out.
pub(crate) fn of_bytes(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

/// The bytes of words.
pub(crate) fn to_bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The address that two words from `index` on are: a number in a range that `known` knows. Numbers of 32 bits are none.
pub(crate) fn address_at(words: &[u32], index: usize, known: impl Fn(u64) -> bool) -> Option<u64> {
    let (lower, upper) = (*words.get(index)?, *words.get(index + 1)?);
    let address = u64::from(upper) << 32 | u64::from(lower);
    (upper != 0 && known(address)).then_some(address)
}

/// Whether a range of so many bytes from `start` on holds an address.
pub(crate) fn holds((start, bytes): (u64, u64), address: u64) -> bool {
    address.checked_sub(start).is_some_and(|inside| inside < bytes)
}
