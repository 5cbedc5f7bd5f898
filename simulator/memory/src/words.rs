//! Copies between private memory and memory that other threads, processes and engines write at the same time.
//!
//! Shared bytes are only ever touched by relaxed atomic loads and stores, eight bytes at a time where both ends allow.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Bytes before the first aligned word of `pointer`, at most `length`.
fn head(pointer: *const u8, length: usize) -> usize {
    pointer.align_offset(8).min(length)
}

/// Copies shared bytes out.
///
/// # Safety
/// `from` must be valid for reads of `to.len()` bytes, and all concurrent writers must be atomic or lie outside this
/// program.
pub(super) unsafe fn load(from: *const u8, to: &mut [u8]) {
    let head = head(from, to.len());
    let words = (to.len() - head) / 8;
    for (i, byte) in to[..head].iter_mut().enumerate() {
        // SAFETY: inside the range that the caller vouches for.
        *byte = unsafe { AtomicU8::from_ptr(from.add(i).cast_mut()) }.load(Ordering::Relaxed);
    }
    let (body, tail) = to[head..].split_at_mut(words * 8);
    for (i, word) in body.chunks_exact_mut(8).enumerate() {
        // SAFETY: as above; `from + head` is aligned to 8.
        let value = unsafe { AtomicU64::from_ptr(from.add(head + 8 * i).cast_mut().cast()) };
        word.copy_from_slice(&value.load(Ordering::Relaxed).to_ne_bytes());
    }
    for (i, byte) in tail.iter_mut().enumerate() {
        // SAFETY: as above.
        *byte =
            unsafe { AtomicU8::from_ptr(from.add(head + 8 * words + i).cast_mut()) }.load(Ordering::Relaxed);
    }
}

/// Whether shared bytes are these.
///
/// # Safety
/// As for [`load`], of `bytes.len()` bytes.
pub(super) unsafe fn equal(from: *const u8, bytes: &[u8]) -> bool {
    let head = head(from, bytes.len());
    let (first, rest) = bytes.split_at(head);
    let (words, last) = rest.as_chunks::<8>();
    let byte = |at: usize| {
        // SAFETY: inside the range that the caller vouches for.
        unsafe { AtomicU8::from_ptr(from.add(at).cast_mut()) }.load(Ordering::Relaxed)
    };
    let word = |i: usize| {
        // SAFETY: as above; `from + head` is aligned to 8.
        unsafe { AtomicU64::from_ptr(from.add(head + 8 * i).cast_mut().cast()) }.load(Ordering::Relaxed)
    };
    words.iter().enumerate().all(|(i, expected)| word(i).to_ne_bytes() == *expected)
        && first.iter().enumerate().all(|(at, expected)| byte(at) == *expected)
        && last.iter().enumerate().all(|(i, expected)| byte(bytes.len() - last.len() + i) == *expected)
}

/// Copies bytes into shared memory.
///
/// # Safety
/// `to` must be valid for writes of `from.len()` bytes, and all concurrent accesses must be atomic or lie outside
/// this program.
pub(super) unsafe fn store(to: *mut u8, from: &[u8]) {
    let head = head(to, from.len());
    let words = (from.len() - head) / 8;
    for (i, byte) in from[..head].iter().enumerate() {
        // SAFETY: inside the range that the caller vouches for.
        unsafe { AtomicU8::from_ptr(to.add(i)) }.store(*byte, Ordering::Relaxed);
    }
    let (body, tail) = from[head..].split_at(words * 8);
    for (i, word) in body.chunks_exact(8).enumerate() {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(word);
        // SAFETY: as above; `to + head` is aligned to 8.
        unsafe { AtomicU64::from_ptr(to.add(head + 8 * i).cast()) }
            .store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
    }
    for (i, byte) in tail.iter().enumerate() {
        // SAFETY: as above.
        unsafe { AtomicU8::from_ptr(to.add(head + 8 * words + i)) }.store(*byte, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_alignment_and_length_copies_exactly_its_bytes() {
        let source: Vec<u8> = (0..64).collect();
        for offset in 0..9 {
            for length in 0..40 {
                let mut out = vec![0; length];
                // SAFETY: `source` is private and long enough.
                unsafe { load(source[offset..].as_ptr(), &mut out) };
                assert_eq!(out, source[offset..offset + length]);
                // SAFETY: as above.
                assert!(unsafe { equal(source[offset..].as_ptr(), &out) });
                for at in 0..length {
                    let mut other = out.clone();
                    other[at] ^= 0x80;
                    // SAFETY: as above.
                    assert!(!unsafe { equal(source[offset..].as_ptr(), &other) });
                }
                let mut target = [0xff; 64];
                // SAFETY: `target` is private and long enough.
                unsafe { store(target[offset..].as_mut_ptr(), &out) };
                assert_eq!(target[offset..offset + length], out);
                assert!(target[..offset].iter().chain(&target[offset + length..]).all(|b| *b == 0xff));
            }
        }
    }
}
