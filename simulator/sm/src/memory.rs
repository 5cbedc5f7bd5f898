//! Global memory as a worker sees it: windows on the address map, kept like a TLB, and accesses through them.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::fault::FaultKind;
use nv_memory::{AccessKind, AddressMap};

/// A mapping.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(super) struct Window {
    start: u64,
    length: u64,
    pointer: *mut u8,
}

/// Bytes of a window among others.
pub(super) const WINDOW_BYTES: usize = size_of::<Window>();

impl Window {
    /// Where compiled code finds the first address.
    pub(super) const START: usize = std::mem::offset_of!(Self, start);
    /// Where it finds the bytes.
    pub(super) const LENGTH: usize = std::mem::offset_of!(Self, length);
    /// Where it finds the memory.
    pub(super) const POINTER: usize = std::mem::offset_of!(Self, pointer);

    const EMPTY: Self = Self { start: 0, length: 0, pointer: std::ptr::null_mut() };

    /// The memory at `address`, if the window holds `bytes` from there on.
    #[inline(always)]
    fn at(&self, address: u64, bytes: u64) -> Option<*mut u8> {
        let offset = address.wrapping_sub(self.start);
        if offset < self.length && self.length - offset >= bytes {
            Some(self.pointer.wrapping_add(offset as usize))
        } else {
            None
        }
    }
}

/// Windows of each kind of access: as many as a kernel is likely to have arrays.
pub(super) const WINDOWS: usize = 32;
/// Log2 of the bytes that share a place among the windows.
pub(super) const PLACE: u32 = 16;

/// A worker's windows. They are valid for one address map: see [`Windows::reset`].
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Windows {
    read: [Window; WINDOWS],
    write: [Window; WINDOWS],
    atomic: [Window; WINDOWS],
}

// SAFETY: the pointers are used by the worker that owns the windows only, and only while the launch holds the map.
unsafe impl Send for Windows {}

impl Windows {
    pub fn new() -> Self {
        let empty = [Window::EMPTY; WINDOWS];
        Self { read: empty, write: empty, atomic: empty }
    }

    /// Where compiled code finds the windows of a kind.
    pub(super) const fn offset(kind: AccessKind) -> usize {
        match kind {
            AccessKind::Read => std::mem::offset_of!(Self, read),
            AccessKind::Write => std::mem::offset_of!(Self, write),
            AccessKind::Atomic => std::mem::offset_of!(Self, atomic),
        }
    }

    /// Forgets all windows. To be called whenever the address map is another.
    pub fn reset(&mut self) {
        *self = Self::new();
    }

    #[inline(always)]
    fn of(&mut self, kind: AccessKind, address: u64) -> &mut Window {
        let windows = match kind {
            AccessKind::Read => &mut self.read,
            AccessKind::Write => &mut self.write,
            AccessKind::Atomic => &mut self.atomic,
        };
        &mut windows[(address >> PLACE) as usize % WINDOWS]
    }

    /// The memory at `address`, if `bytes` of it lie in a window that is known.
    #[inline(always)]
    pub fn known(&mut self, kind: AccessKind, address: u64, bytes: u64) -> Option<*mut u8> {
        self.of(kind, address).at(address, bytes)
    }

    /// The memory at `address`: `bytes` of it, or a fault. `None` where it does not lie in one mapping.
    #[inline(always)]
    pub fn find(
        &mut self,
        map: &AddressMap,
        kind: AccessKind,
        address: u64,
        bytes: u64,
    ) -> Result<Option<*mut u8>, FaultKind> {
        match self.of(kind, address).at(address, bytes) {
            Some(pointer) => Ok(Some(pointer)),
            None => self.fill(map, kind, address, bytes),
        }
    }

    #[cold]
    fn fill(
        &mut self,
        map: &AddressMap,
        kind: AccessKind,
        address: u64,
        bytes: u64,
    ) -> Result<Option<*mut u8>, FaultKind> {
        let span = map.translate(address, bytes, kind).map_err(FaultKind::Mmu)?;
        let mut window = Window { start: address, length: span.available, pointer: span.pointer };
        if let Some((start, length, _)) = map.at(address)
            && let Ok(whole) = map.translate(start, 1, kind)
            && whole.available == length
        {
            window = Window { start, length, pointer: whole.pointer };
        }
        *self.of(kind, address) = window;
        Ok((span.available >= bytes).then_some(span.pointer))
    }

    /// The memory of one lane's access: aligned, of up to 16 bytes.
    #[inline(always)]
    pub fn lane(
        &mut self,
        map: &AddressMap,
        kind: AccessKind,
        address: u64,
        bytes: u64,
    ) -> Result<*mut u8, FaultKind> {
        if address & (bytes - 1) != 0 {
            return Err(FaultKind::Misaligned { address });
        }
        // Mappings are whole pages, so that an aligned access never leaves one.
        self.find(map, kind, address, bytes)?.ok_or(FaultKind::Misaligned { address })
    }
}

/// Loads up to 16 bytes.
///
/// # Safety
/// `from` is aligned to `BYTES` and valid for reads of that many.
#[inline(always)]
pub(super) unsafe fn load<const BYTES: usize>(from: *const u8) -> [u32; 4] {
    let mut out = [0; 4];
    let p = from.cast_mut();
    // SAFETY: the caller's promise. Other threads and processes use the same bytes, hence the atomics.
    unsafe {
        match BYTES {
            1 => out[0] = u32::from(AtomicU8::from_ptr(p).load(Ordering::Relaxed)),
            2 => out[0] = u32::from(AtomicU16::from_ptr(p.cast()).load(Ordering::Relaxed)),
            4 => out[0] = AtomicU32::from_ptr(p.cast()).load(Ordering::Relaxed),
            _ => {
                for i in 0..BYTES / 8 {
                    let v = AtomicU64::from_ptr(p.add(8 * i).cast()).load(Ordering::Relaxed);
                    out[2 * i] = v as u32;
                    out[2 * i + 1] = (v >> 32) as u32;
                }
            }
        }
    }
    out
}

/// Stores up to 16 bytes.
///
/// # Safety
/// `to` is aligned to `BYTES` and valid for writes of that many.
#[inline(always)]
pub(super) unsafe fn store<const BYTES: usize>(to: *mut u8, v: [u32; 4]) {
    // SAFETY: the caller's promise.
    unsafe {
        match BYTES {
            1 => AtomicU8::from_ptr(to).store(v[0] as u8, Ordering::Relaxed),
            2 => AtomicU16::from_ptr(to.cast()).store(v[0] as u16, Ordering::Relaxed),
            4 => AtomicU32::from_ptr(to.cast()).store(v[0], Ordering::Relaxed),
            _ => {
                for i in 0..BYTES / 8 {
                    let word = u64::from(v[2 * i]) | u64::from(v[2 * i + 1]) << 32;
                    AtomicU64::from_ptr(to.add(8 * i).cast()).store(word, Ordering::Relaxed);
                }
            }
        }
    }
}

/// 32 bytes that need no more alignment than their words.
#[derive(Clone, Copy)]
#[repr(C, packed(4))]
struct Octet(Vector);

#[cfg(target_arch = "x86_64")]
type Vector = std::arch::x86_64::__m256i;
#[cfg(not(target_arch = "x86_64"))]
type Vector = [u32; 8];

/// Loads 8 neighbouring words.
///
/// # Safety
/// `from` is aligned to 4 and valid for reads of 32 bytes.
#[inline(always)]
pub(super) unsafe fn load_octet(from: *const u8, to: &mut [u32; 8]) {
    // SAFETY: the caller's promise; a volatile load takes whatever others write at the same time.
    unsafe { std::ptr::from_mut(to).cast::<Octet>().write(from.cast::<Octet>().read_volatile()) };
}

/// Stores 8 neighbouring words.
///
/// # Safety
/// `to` is aligned to 4 and valid for writes of 32 bytes.
#[inline(always)]
pub(super) unsafe fn store_octet(to: *mut u8, from: &[u32; 8]) {
    // SAFETY: the caller's promise.
    unsafe { to.cast::<Octet>().write_volatile(std::ptr::from_ref(from).cast::<Octet>().read()) };
}

/// Tells the processor that what lies ahead of a run of loads is likely to be wanted soon.
#[inline(always)]
pub(super) fn prefetch(from: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        const AHEAD: usize = 1024;
        // SAFETY: a prefetch of any address does nothing but load caches.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(AHEAD).cast());
            _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(AHEAD + 64).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = from;
}
