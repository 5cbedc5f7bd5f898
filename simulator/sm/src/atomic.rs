//! Atomic operations on memory. What they compute is [`sass::lane::atomic`]; what is added here are those with two
//! operands, and the ways to memory.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use sass::lane::atomic::{self, AtomicOperation as Lane};

pub(super) use sass::lane::atomic::AtomicType;

/// Operation of an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AtomicOperation {
    /// With one operand.
    Lane(Lane),
    CompareExchange,
    /// ATOMS.POPC.INC: one more for each lane.
    PopcIncrement,
    /// ATOMS.CAST: as a compare-and-swap; the result is whether it stored.
    CompareStore,
}

/// In the order of their codes.
const OPERATIONS: [AtomicOperation; 12] = [
    AtomicOperation::Lane(Lane::Add),
    AtomicOperation::Lane(Lane::Min),
    AtomicOperation::Lane(Lane::Max),
    AtomicOperation::Lane(Lane::Increment),
    AtomicOperation::Lane(Lane::Decrement),
    AtomicOperation::Lane(Lane::And),
    AtomicOperation::Lane(Lane::Or),
    AtomicOperation::Lane(Lane::Xor),
    AtomicOperation::Lane(Lane::Exchange),
    AtomicOperation::CompareExchange,
    AtomicOperation::PopcIncrement,
    AtomicOperation::CompareStore,
];

/// In the order of their codes.
const TYPES: [AtomicType; 9] = [
    AtomicType::U32,
    AtomicType::S32,
    AtomicType::U64,
    AtomicType::S64,
    AtomicType::F32 { flushes: true },
    AtomicType::F32 { flushes: false },
    AtomicType::F16x2,
    AtomicType::Bf16x2,
    AtomicType::F64,
];

/// Operation and type as one byte.
pub(super) fn code(operation: AtomicOperation, kind: AtomicType) -> u8 {
    let operation = OPERATIONS.iter().position(|known| *known == operation).unwrap_or(0) as u8;
    let kind = TYPES.iter().position(|known| *known == kind).unwrap_or(0) as u8;
    operation | kind << 4
}

/// Operation and type of a byte that [`code`] made.
#[inline(always)]
pub(super) fn of_code(code: u8) -> (AtomicOperation, AtomicType) {
    (OPERATIONS[usize::from(code & 15) % OPERATIONS.len()], TYPES[usize::from(code >> 4) % TYPES.len()])
}

/// Whether there is such an operation on the type.
pub(super) fn exists(operation: AtomicOperation, kind: AtomicType) -> bool {
    match operation {
        AtomicOperation::Lane(lane) => atomic::apply(lane, kind, 0, 0).is_some(),
        _ => matches!(kind, AtomicType::U32 | AtomicType::S32 | AtomicType::U64 | AtomicType::S64),
    }
}

/// What an atomic leaves behind. Lowering asked whether the operation [`exists`]; one that does not changes nothing.
#[inline(always)]
pub(super) fn apply(old: u64, operation: AtomicOperation, kind: AtomicType, operand: u64, new: u64) -> u64 {
    match operation {
        AtomicOperation::Lane(lane) => atomic::apply(lane, kind, old, operand).unwrap_or(old),
        AtomicOperation::PopcIncrement => old.wrapping_add(1),
        _ if old == operand => new,
        _ => old,
    }
}

/// Replaces a word by what `f` makes of it, in one step; returns what it was.
///
/// # Safety
/// `at` is aligned to four bytes, and valid for reads and writes of as many.
#[inline(always)]
unsafe fn word(at: *mut u8, f: impl Fn(u32) -> u32) -> u32 {
    // SAFETY: the caller's promise.
    let word = unsafe { AtomicU32::from_ptr(at.cast()) };
    match word.fetch_update(Ordering::SeqCst, Ordering::Relaxed, |old| Some(f(old))) {
        Ok(old) | Err(old) => old,
    }
}

/// As [`word`], of eight bytes.
///
/// # Safety
/// `at` is aligned to eight bytes, and valid for reads and writes of as many.
#[inline(always)]
pub(super) unsafe fn long(at: *mut u8, f: impl Fn(u64) -> u64) -> u64 {
    // SAFETY: the caller's promise.
    let word = unsafe { AtomicU64::from_ptr(at.cast()) };
    match word.fetch_update(Ordering::SeqCst, Ordering::Relaxed, |old| Some(f(old))) {
        Ok(old) | Err(old) => old,
    }
}

/// Replaces a word by what the operation makes of it, in one step; returns what it was.
///
/// # Safety
/// `at` is aligned to the type's size, and valid for reads and writes of it.
pub(super) unsafe fn update(
    at: *mut u8,
    operation: AtomicOperation,
    kind: AtomicType,
    operand: u64,
    new: u64,
) -> u64 {
    let next = |old| apply(old, operation, kind, operand, new);
    // SAFETY: the caller's promise.
    unsafe {
        if kind.bytes() == 8 {
            long(at, next)
        } else {
            u64::from(word(at, |old| next(u64::from(old)) as u32))
        }
    }
}

/// Replaces 16 bytes, in one step, where they are `expected`, or whatever they are; returns what they were.
///
/// # Safety
/// `at` is aligned to 16 bytes, and valid for reads and writes of as many.
#[cfg(target_arch = "x86_64")]
pub(super) unsafe fn update_128(at: *mut u8, expected: Option<u128>, new: u128) -> u128 {
    // SAFETY: the caller's promise; the processor was asked.
    unsafe {
        if std::arch::is_x86_feature_detected!("cmpxchg16b") {
            update_128_at_once(at, expected, new)
        } else {
            update_128_locked(at, expected, new)
        }
    }
}

/// # Safety
/// As above, and the processor has the instruction.
#[cfg(target_arch = "x86_64")]
unsafe fn update_128_at_once(at: *mut u8, expected: Option<u128>, new: u128) -> u128 {
    let mut old = expected.unwrap_or(0);
    loop {
        let (mut low, mut high) = (old as u64, (old >> 64) as u64);
        // SAFETY: the caller's promise. RBX, which the compiler keeps for itself, is given back as it was; the others are
        // named, since it may choose RBX for those that are not. (The intrinsic of the standard library becomes a call
        // of a function that nobody has.)
        unsafe {
            std::arch::asm!(
                "xchg rsi, rbx",
                "lock cmpxchg16b [rdi]",
                "mov rbx, rsi",
                in("rdi") at,
                inout("rsi") new as u64 => _,
                in("rcx") (new >> 64) as u64,
                inout("rax") low,
                inout("rdx") high,
                options(nostack),
            );
        }
        let now = u128::from(low) | u128::from(high) << 64;
        if now == old || expected.is_some() {
            return now;
        }
        old = now;
    }
}

/// As above where the processor has no such instruction.
///
/// # Safety
/// As above.
#[cfg(not(target_arch = "x86_64"))]
pub(super) unsafe fn update_128(at: *mut u8, expected: Option<u128>, new: u128) -> u128 {
    // SAFETY: the caller's promise.
    unsafe { update_128_locked(at, expected, new) }
}

/// In one step against its like only: two words are stored.
///
/// # Safety
/// `at` is aligned to 16 bytes, and valid for reads and writes of as many.
unsafe fn update_128_locked(at: *mut u8, expected: Option<u128>, new: u128) -> u128 {
    static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _guard = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // SAFETY: the caller's promise.
    let [low, high] = unsafe { [AtomicU64::from_ptr(at.cast()), AtomicU64::from_ptr(at.add(8).cast())] };
    let old = u128::from(low.load(Ordering::SeqCst)) | u128::from(high.load(Ordering::SeqCst)) << 64;
    if expected.is_none_or(|expected| expected == old) {
        low.store(new as u64, Ordering::SeqCst);
        high.store((new >> 64) as u64, Ordering::SeqCst);
    }
    old
}
