//! Atomic operations: what they compute, and on which memory.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use sass::lane::half::{self, HalfFormat, HalfMode};
use sass::lane::{FloatMode, Rounding, Subnormals, double, float};

/// Operation of an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AtomicOperation {
    Add,
    Min,
    Max,
    Increment,
    Decrement,
    And,
    Or,
    Xor,
    Exchange,
    CompareExchange,
    /// ATOMS.POPC.INC: one more for each lane.
    PopcIncrement,
    /// ATOMS.CAST: as a compare-and-swap; the result is whether it stored.
    CompareStore,
}

/// Type of an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AtomicType {
    U32,
    S32,
    U64,
    S64,
    F32,
    F16x2,
    Bf16x2,
    F64,
}

impl AtomicOperation {
    /// In the order of their codes.
    pub const ALL: [Self; 12] = [
        Self::Add,
        Self::Min,
        Self::Max,
        Self::Increment,
        Self::Decrement,
        Self::And,
        Self::Or,
        Self::Xor,
        Self::Exchange,
        Self::CompareExchange,
        Self::PopcIncrement,
        Self::CompareStore,
    ];
}

impl AtomicType {
    /// In the order of their codes.
    pub const ALL: [Self; 8] =
        [Self::U32, Self::S32, Self::U64, Self::S64, Self::F32, Self::F16x2, Self::Bf16x2, Self::F64];

    /// Bytes of the word.
    pub const fn bytes(self) -> u8 {
        match self {
            Self::U64 | Self::S64 | Self::F64 => 8,
            _ => 4,
        }
    }
}

/// What an atomic leaves behind.
pub(super) fn apply(old: u64, operation: AtomicOperation, kind: AtomicType, operand: u64, new: u64) -> u64 {
    use AtomicOperation as A;
    use AtomicType as T;
    let signed = |v: u64| if kind == T::S32 { i64::from(v as u32 as i32) } else { v as i64 };
    let is_signed = matches!(kind, T::S32 | T::S64);
    let half = |format| half::hadd2(split(old), split(operand), HalfMode::plain(format));
    match operation {
        A::Add => match kind {
            T::F32 => {
                let mode =
                    FloatMode { rounding: Rounding::Nearest, subnormals: Subnormals::Flush, saturate: false };
                u64::from(float::fadd(old as u32, operand as u32, mode))
            }
            T::F64 => double::dadd(old, operand, Rounding::Nearest),
            T::F16x2 => u64::from(half(HalfFormat::F16)),
            T::Bf16x2 => u64::from(half(HalfFormat::Bf16)),
            _ => old.wrapping_add(operand),
        },
        A::Min if is_signed => signed(old).min(signed(operand)) as u64,
        A::Max if is_signed => signed(old).max(signed(operand)) as u64,
        A::Min => old.min(operand),
        A::Max => old.max(operand),
        A::Increment if old >= operand => 0,
        A::Increment | A::PopcIncrement => old.wrapping_add(1),
        A::Decrement if old == 0 || old > operand => operand,
        A::Decrement => old - 1,
        A::And => old & operand,
        A::Or => old | operand,
        A::Xor => old ^ operand,
        A::Exchange => operand,
        A::CompareExchange | A::CompareStore if old == operand => new,
        A::CompareExchange | A::CompareStore => old,
    }
}

const fn split(v: u64) -> (u16, u16) {
    (v as u16, (v >> 16) as u16)
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
    if kind.bytes() == 8 {
        // SAFETY: the caller's promise.
        let word = unsafe { AtomicU64::from_ptr(at.cast()) };
        let mut old = word.load(Ordering::Relaxed);
        loop {
            let next = apply(old, operation, kind, operand, new);
            match word.compare_exchange_weak(old, next, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return old,
                Err(now) => old = now,
            }
        }
    }
    // SAFETY: the caller's promise.
    let word = unsafe { AtomicU32::from_ptr(at.cast()) };
    let mut old = word.load(Ordering::Relaxed);
    loop {
        let next = apply(u64::from(old), operation, kind, operand, new) as u32;
        match word.compare_exchange_weak(old, next, Ordering::SeqCst, Ordering::Relaxed) {
            Ok(_) => return u64::from(old),
            Err(now) => old = now,
        }
    }
}
