//! Loads, stores and atomics of one lane.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use sass::lane::half::{HalfFormat, HalfMode};
use sass::lane::{FloatMode, Rounding, Subnormals, double, float, half};

use super::fault::FaultKind;
use super::micro::{AtomicOperation, AtomicType};
use crate::memory::{AccessKind, AddressMap};

/// A piece of the address map, so that neighbouring lanes need one lookup.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    start: u64,
    end: u64,
    pointer: *mut u8,
}

impl Window {
    pub const EMPTY: Window = Window { start: 0, end: 0, pointer: std::ptr::null_mut() };

    fn find(
        &mut self,
        map: &AddressMap,
        address: u64,
        bytes: u8,
        kind: AccessKind,
    ) -> Result<*mut u8, FaultKind> {
        if address & u64::from(bytes - 1) != 0 {
            return Err(FaultKind::Misaligned { address });
        }
        if address < self.start || address >= self.end {
            let span = map.translate(address, u64::from(bytes), kind).map_err(FaultKind::Mmu)?;
            *self = Window { start: address, end: address + span.available, pointer: span.pointer };
        }
        Ok(self.pointer.wrapping_add((address - self.start) as usize))
    }

    /// Loads up to 16 bytes, aligned.
    pub fn load(&mut self, map: &AddressMap, address: u64, bytes: u8) -> Result<[u32; 4], FaultKind> {
        let p = self.find(map, address, bytes, AccessKind::Read)?;
        let mut out = [0; 4];
        // SAFETY: aligned; a window is valid while `map` lives, and an aligned access inside it does not leave it
        // because mappings are whole pages.
        unsafe {
            match bytes {
                1 => out[0] = u32::from(AtomicU8::from_ptr(p).load(Ordering::Relaxed)),
                2 => out[0] = u32::from(AtomicU16::from_ptr(p.cast()).load(Ordering::Relaxed)),
                4 => out[0] = AtomicU32::from_ptr(p.cast()).load(Ordering::Relaxed),
                _ => {
                    for i in 0..usize::from(bytes / 8) {
                        let v = AtomicU64::from_ptr(p.add(8 * i).cast()).load(Ordering::Relaxed);
                        out[2 * i] = v as u32;
                        out[2 * i + 1] = (v >> 32) as u32;
                    }
                }
            }
        }
        Ok(out)
    }

    /// Stores up to 16 bytes, aligned.
    pub fn store(&mut self, map: &AddressMap, address: u64, bytes: u8, v: [u32; 4]) -> Result<(), FaultKind> {
        let p = self.find(map, address, bytes, AccessKind::Write)?;
        // SAFETY: as in `load`; the mapping allows writes.
        unsafe {
            match bytes {
                1 => AtomicU8::from_ptr(p).store(v[0] as u8, Ordering::Relaxed),
                2 => AtomicU16::from_ptr(p.cast()).store(v[0] as u16, Ordering::Relaxed),
                4 => AtomicU32::from_ptr(p.cast()).store(v[0], Ordering::Relaxed),
                _ => {
                    for i in 0..usize::from(bytes / 8) {
                        let word = u64::from(v[2 * i]) | u64::from(v[2 * i + 1]) << 32;
                        AtomicU64::from_ptr(p.add(8 * i).cast()).store(word, Ordering::Relaxed);
                    }
                }
            }
        }
        Ok(())
    }
}

/// An atomic on mapped memory; returns the old value.
pub(super) fn global_atomic(
    map: &AddressMap,
    address: u64,
    operation: AtomicOperation,
    kind: AtomicType,
    operand: u64,
    new: u64,
) -> Result<u64, FaultKind> {
    let misaligned = FaultKind::Misaligned { address };
    if kind.bytes() == 8 {
        map.update_u64(address, |old| apply(old, operation, kind, operand, new))
            .map_err(FaultKind::Mmu)?
            .ok_or(misaligned)
    } else {
        map.update_u32(address, |old| apply(u64::from(old), operation, kind, operand, new) as u32)
            .map_err(FaultKind::Mmu)?
            .map(u64::from)
            .ok_or(misaligned)
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
        A::Increment => old + 1,
        A::Decrement if old == 0 || old > operand => operand,
        A::Decrement => old - 1,
        A::And => old & operand,
        A::Or => old | operand,
        A::Xor => old ^ operand,
        A::Exchange => operand,
        A::CompareExchange if old == operand => new,
        A::CompareExchange => old,
    }
}

const fn split(v: u64) -> (u16, u16) {
    (v as u16, (v >> 16) as u16)
}
