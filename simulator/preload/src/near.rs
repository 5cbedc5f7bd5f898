//! Reading memory that the program has mapped without a call of the system for each piece: of a card's memory such a call
//! maps every page anew, and takes ten times as long.
//!
//! Only mappings that were made through this library are read so, and only until anything is done to them through it. What
//! else there is, and what another thread is busy with, is left to the system.

use std::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// Bytes that are loaded at once.
const AT_ONCE: u64 = 16;

/// First address and bytes of mappings.
static MAPPED: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());
/// How many there are: while there are none, mapping anything costs one load more.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// This is a child of `fork`.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

fn is_idle() -> bool {
    COUNT.load(Ordering::Acquire) == 0 || IS_CHILD.load(Ordering::Acquire)
}

fn change(act: impl FnOnce(&mut Vec<(u64, u64)>)) {
    let mut mapped = MAPPED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    act(&mut mapped);
    COUNT.store(mapped.len(), Ordering::Release);
}

/// A mapping of a node's memory was made that can be read.
pub(crate) fn mapped(address: u64, bytes: u64) {
    if !IS_CHILD.load(Ordering::Acquire) {
        change(|mapped| mapped.push((address, bytes)));
    }
}

/// Something is about to happen to a range of addresses: what overlaps it is not read any more.
pub(crate) fn forget(address: u64, bytes: u64) {
    if is_idle() {
        return;
    }
    let end = address.saturating_add(bytes);
    let apart = |(start, length): &(u64, u64)| start + length <= address || *start >= end;
    if MAPPED.try_lock().is_ok_and(|mapped| mapped.iter().all(apart)) {
        return;
    }
    change(|mapped| mapped.retain(apart));
}

/// In a child of `fork`: nothing is read any more. What is locked may be locked for ever there.
pub(crate) fn forget_all() {
    IS_CHILD.store(true, Ordering::Release);
}

/// Reads bytes at an address, as many as the slice has; false where this module does not.
pub(crate) fn read(address: u64, to: &mut [u8]) -> bool {
    if is_idle() {
        return false;
    }
    let Ok(mapped) = MAPPED.try_lock() else { return false };
    let shows = |(start, length): &(u64, u64)| {
        address
            .checked_sub(*start)
            .and_then(|inside| length.checked_sub(inside))
            .is_some_and(|left| left >= to.len() as u64)
    };
    let known = mapped.iter().any(shows);
    if known {
        // SAFETY: the mapping is there, and nobody does anything to it as long as the lock is held.
        unsafe { load(address, to) };
    }
    known
}

/// Copies bytes out of memory that a device may change.
///
/// # Safety
/// The bytes are mapped and can be read.
unsafe fn load(address: u64, to: &mut [u8]) {
    let mut at = address & !(AT_ONCE - 1);
    let end = address + to.len() as u64;
    let wide = is_wide();
    while at < end {
        // SAFETY: a chunk lies in one page, of which bytes are asked for.
        let chunk = unsafe { if wide { stream(at) } else { words(at) } };
        let (first, last) = (at.max(address), (at + AT_ONCE).min(end));
        let inside = (first - at) as usize..(last - at) as usize;
        to[(first - address) as usize..(last - address) as usize].copy_from_slice(&chunk[inside]);
        at += AT_ONCE;
    }
}

/// # Safety
/// The address is a multiple of [`AT_ONCE`] and can be read.
unsafe fn words(at: u64) -> [u8; AT_ONCE as usize] {
    // SAFETY: by contract.
    let words = unsafe { [(at as *const u64).read_volatile(), (at as *const u64).add(1).read_volatile()] };
    let mut chunk = [0; AT_ONCE as usize];
    for (to, word) in chunk.chunks_exact_mut(8).zip(words) {
        to.copy_from_slice(&word.to_ne_bytes());
    }
    chunk
}

/// Whether the processor has loads that take write-combining memory a line at a time, and not a word.
#[cfg(target_arch = "x86_64")]
fn is_wide() -> bool {
    if !std::is_x86_feature_detected!("sse4.1") {
        return false;
    }
    // What this thread has stored, and lines that were loaded before, must not stand between memory and the loads.
    // SAFETY: every processor of this architecture has it.
    unsafe { std::arch::x86_64::_mm_mfence() };
    true
}

#[cfg(not(target_arch = "x86_64"))]
fn is_wide() -> bool {
    false
}

/// # Safety
/// As for [`words`], and [`is_wide`] said so.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.1")]
unsafe fn stream(at: u64) -> [u8; AT_ONCE as usize] {
    // SAFETY: by contract; a register of 16 bytes is 16 bytes.
    unsafe {
        std::mem::transmute(std::arch::x86_64::_mm_stream_load_si128(at as *const std::arch::x86_64::__m128i))
    }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn stream(at: u64) -> [u8; AT_ONCE as usize] {
    // SAFETY: by contract.
    unsafe { words(at) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_what_is_mapped_are_read_at_any_place_and_others_are_not() {
        let memory: Vec<u8> = (0..=255).cycle().take(4096).collect();
        let start = memory.as_ptr() as u64;
        let at = |offset: u64, bytes| {
            let mut found = vec![0; bytes];
            read(start + offset, &mut found).then_some(found)
        };
        assert_eq!(at(0, 4), None);
        mapped(start, 4096);
        for offset in [0, 1, 7, 15, 16, 100, 4000] {
            for bytes in [0, 1, 4, 15, 16, 17, 64, 96] {
                let expected = &memory[offset as usize..offset as usize + bytes];
                assert_eq!(at(offset, bytes).as_deref(), Some(expected), "{bytes} at {offset}");
            }
        }
        assert_eq!((at(4095, 2), at(4096, 1)), (None, None));
        let aligned = start.next_multiple_of(16);
        // SAFETY: the bytes are the test's own.
        let chunk = unsafe { words(aligned) };
        assert_eq!(chunk, memory[(aligned - start) as usize..][..16]);
        forget(start + 4096, 4096);
        assert!(at(0, 4).is_some());
        forget(start + 100, 1);
        assert_eq!(at(0, 4), None);
    }
}
