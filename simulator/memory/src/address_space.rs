//! A GPU's virtual address space: which memory lies where, and with which rights.

use std::sync::{
    Arc, PoisonError, RwLock,
    atomic::{AtomicU32, AtomicU64, Ordering},
};

use super::{Backing, PAGE, words};

/// What a mapping allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Loads, stores and atomics.
    ReadWriteAtomic,
    /// Loads and stores; an atomic faults.
    ReadWrite,
    /// Loads only.
    ReadOnly,
}

/// What an engine is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// A load.
    Read,
    /// A store.
    Write,
    /// A read-modify-write.
    Atomic,
}

/// Why the MMU refused, numbered as `dev_fault` headers number them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Nothing is mapped in the 2 MiB around the address.
    Pde,
    /// The page itself is not mapped, although pages near it are.
    Pte,
    /// The address is above what the address space can hold.
    VaLimit,
    /// A store or atomic to a read-only page.
    ReadOnly,
    /// An atomic to a page that forbids it.
    Atomic,
}

impl FaultKind {
    /// The number that `NV906F_CTRL_CMD_GET_MMU_FAULT_INFO` reports.
    pub const fn number(self) -> u32 {
        match self {
            Self::Pde => 0,
            Self::Pte => 2,
            Self::VaLimit => 3,
            Self::ReadOnly => 6,
            Self::Atomic => 0xf,
        }
    }

    /// The name that the kernel log and the same control report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pde => "FAULT_PDE",
            Self::Pte => "FAULT_PTE",
            Self::VaLimit => "FAULT_VA_LIMIT_VIOLATION",
            Self::ReadOnly => "FAULT_RO_VIOLATION",
            Self::Atomic => "FAULT_ATOMIC_VIOLATION",
        }
    }
}

/// An access that the MMU refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} at {va:#x} ({access:?})", kind.name())]
pub struct MmuFault {
    /// The first virtual address that could not be accessed.
    pub va: u64,
    /// Why.
    pub kind: FaultKind,
    /// What was tried.
    pub access: AccessKind,
}

/// A mapping that could not be made or removed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// Not whole pages, empty, or past the end of the address space.
    #[error("{va:#x}+{length:#x} is not a range of whole pages below {limit:#x}")]
    Range {
        /// First address.
        va: u64,
        /// Bytes.
        length: u64,
        /// One past the last address of the space.
        limit: u64,
    },
    /// The memory object ends before the mapping does.
    #[error("bytes {offset:#x}+{length:#x} of {name}, which has {have:#x}")]
    Memory {
        /// The object.
        name: String,
        /// First byte.
        offset: u64,
        /// Bytes.
        length: u64,
        /// Bytes the object has.
        have: u64,
    },
    /// Another mapping is there.
    #[error("{va:#x}+{length:#x} overlaps the mapping at {other:#x}")]
    Overlap {
        /// First address.
        va: u64,
        /// Bytes.
        length: u64,
        /// First address of the mapping that is there.
        other: u64,
    },
}

/// Where bytes of GPU virtual memory lie in this process.
///
/// The pointer is valid for `available` bytes while the [`AddressMap`] lives that gave it. Other threads and processes
/// use the same bytes, so it must be accessed atomically.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The byte at the address asked for.
    pub pointer: *mut u8,
    /// Bytes from there to the end of the mapping.
    pub available: u64,
}

/// One mapping.
#[derive(Clone, Debug)]
struct Entry {
    va: u64,
    end: u64,
    backing: Arc<Backing>,
    offset: u64,
    access: Access,
    /// Where stores and atomics go instead, of a mapping without memory.
    sink: Option<Arc<Backing>>,
}

impl Entry {
    fn allows(&self, access: AccessKind) -> Result<(), FaultKind> {
        match (access, self.access) {
            (AccessKind::Read, _)
            | (AccessKind::Write, Access::ReadWrite | Access::ReadWriteAtomic)
            | (AccessKind::Atomic, Access::ReadWriteAtomic) => Ok(()),
            (AccessKind::Write | AccessKind::Atomic, Access::ReadOnly) => Err(FaultKind::ReadOnly),
            (AccessKind::Atomic, Access::ReadWrite) => Err(FaultKind::Atomic),
        }
    }
}

/// A snapshot of an address space: immutable, so that lookups take no lock.
#[derive(Clone, Debug)]
pub struct AddressMap {
    /// By address, without overlaps.
    entries: Vec<Entry>,
    limit: u64,
}

/// Accessors of words of one width.
macro_rules! words {
    ($word:ident, $atomic:ident, $load:ident, $store:ident, $update:ident) => {
        #[doc = concat!("Loads a `", stringify!($word), "`: one atomic acquire load where aligned, in parts otherwise.")]
        pub fn $load(&self, va: u64) -> Result<$word, MmuFault> {
            let mut bytes = [0; size_of::<$word>()];
            if !va.is_multiple_of(bytes.len() as u64) {
                self.read(va, &mut bytes)?;
                return Ok($word::from_le_bytes(bytes));
            }
            let span = self.translate(va, bytes.len() as u64, AccessKind::Read)?;
            // SAFETY: aligned, and inside the span.
            Ok(unsafe { $atomic::from_ptr(span.pointer.cast()) }.load(Ordering::Acquire))
        }

        #[doc = concat!("Stores a `", stringify!($word), "`: one atomic release store where aligned, in parts otherwise.")]
        pub fn $store(&self, va: u64, value: $word) -> Result<(), MmuFault> {
            let bytes = value.to_le_bytes();
            if !va.is_multiple_of(bytes.len() as u64) {
                return self.write(va, &bytes);
            }
            let span = self.translate(va, bytes.len() as u64, AccessKind::Write)?;
            // SAFETY: aligned, inside the span, writable.
            unsafe { $atomic::from_ptr(span.pointer.cast()) }.store(value, Ordering::Release);
            Ok(())
        }

        #[doc = concat!("Replaces an aligned `", stringify!($word), "` by `update` of it in one step and returns what it \
                         was. `None` where `va` is not aligned.")]
        pub fn $update(
            &self,
            va: u64,
            mut update: impl FnMut($word) -> $word,
        ) -> Result<Option<$word>, MmuFault> {
            let bytes = size_of::<$word>() as u64;
            if !va.is_multiple_of(bytes) {
                return Ok(None);
            }
            let span = self.translate(va, bytes, AccessKind::Atomic)?;
            // SAFETY: aligned, inside the span, writable.
            let word = unsafe { $atomic::from_ptr(span.pointer.cast()) };
            let mut old = word.load(Ordering::Relaxed);
            while let Err(now) =
                word.compare_exchange_weak(old, update(old), Ordering::AcqRel, Ordering::Relaxed)
            {
                old = now;
            }
            Ok(Some(old))
        }
    };
}

impl AddressMap {
    /// Index of the first entry that ends after `va`.
    fn first_after(&self, va: u64) -> usize {
        self.entries.partition_point(|entry| entry.end <= va)
    }

    #[cold]
    fn unmapped(&self, va: u64) -> FaultKind {
        const PDE_REACH: u64 = 2 << 20;
        if va >= self.limit {
            return FaultKind::VaLimit;
        }
        let start = va & !(PDE_REACH - 1);
        match self.entries.get(self.first_after(start)) {
            Some(entry) if entry.va < start + PDE_REACH => FaultKind::Pte,
            _ => FaultKind::Pde,
        }
    }

    /// Finds the memory at `va`.
    ///
    /// Mappings are whole pages, so an access of up to [`PAGE`] bytes that is aligned to its size lies inside the span
    /// returned. A longer or unaligned range may continue in the next mapping: then `available` is less than `bytes`,
    /// the rest is known to be accessible too, and the caller asks again for it.
    pub fn translate(&self, va: u64, bytes: u64, access: AccessKind) -> Result<Span, MmuFault> {
        let mut at = va;
        let mut index = self.first_after(va);
        let mut span = None;
        let end = va.saturating_add(bytes.max(1));
        loop {
            let fault = |kind| MmuFault { va: at, kind, access };
            let Some(entry) = self.entries.get(index).filter(|entry| entry.va <= at) else {
                return Err(fault(self.unmapped(at)));
            };
            entry.allows(access).map_err(fault)?;
            let span = match span {
                Some(span) => span,
                None => {
                    let available = entry.end - at;
                    let backing = match (&entry.sink, access) {
                        (None, _) | (_, AccessKind::Read) => &entry.backing,
                        (Some(sink), _) => sink,
                    };
                    // `map` checked that the object holds the whole mapping.
                    let Some(pointer) = backing.pointer(entry.offset + (at - entry.va), available) else {
                        return Err(fault(FaultKind::Pte));
                    };
                    *span.insert(Span { pointer: pointer.as_ptr(), available })
                }
            };
            if entry.end >= end {
                return Ok(span);
            }
            at = entry.end;
            index += 1;
        }
    }

    /// Copies GPU memory out. Nothing is copied unless all of it may be read.
    pub fn read(&self, va: u64, to: &mut [u8]) -> Result<(), MmuFault> {
        let mut done = 0;
        while done < to.len() {
            let rest = &mut to[done..];
            let span = self.translate(va.saturating_add(done as u64), rest.len() as u64, AccessKind::Read)?;
            let length = span.available.min(rest.len() as u64) as usize;
            // SAFETY: the span is valid for `available` bytes while `self` lives.
            unsafe { words::load(span.pointer, &mut rest[..length]) };
            done += length;
        }
        Ok(())
    }

    /// Whether GPU memory holds these bytes.
    ///
    /// # Errors
    /// Some of it may not be read.
    pub fn holds(&self, va: u64, bytes: &[u8]) -> Result<bool, MmuFault> {
        let mut done = 0;
        while done < bytes.len() {
            let rest = &bytes[done..];
            let span = self.translate(va.saturating_add(done as u64), rest.len() as u64, AccessKind::Read)?;
            let length = span.available.min(rest.len() as u64) as usize;
            // SAFETY: the span is valid for `available` bytes while `self` lives.
            if !unsafe { words::equal(span.pointer, &rest[..length]) } {
                return Ok(false);
            }
            done += length;
        }
        Ok(true)
    }

    /// Copies into GPU memory. Nothing is written unless all of it may be.
    pub fn write(&self, va: u64, from: &[u8]) -> Result<(), MmuFault> {
        let mut done = 0;
        while done < from.len() {
            let rest = &from[done..];
            let span =
                self.translate(va.saturating_add(done as u64), rest.len() as u64, AccessKind::Write)?;
            let length = span.available.min(rest.len() as u64) as usize;
            // SAFETY: as in `read`; the mapping allows writes, so the memory is writable.
            unsafe { words::store(span.pointer, &rest[..length]) };
            done += length;
        }
        Ok(())
    }

    words!(u32, AtomicU32, load_u32, store_u32, update_u32);
    words!(u64, AtomicU64, load_u64, store_u64, update_u64);

    /// The mapping that holds `va`: first address, bytes, name of the memory.
    pub fn at(&self, va: u64) -> Option<(u64, u64, &str)> {
        let entry = self.entries.get(self.first_after(va)).filter(|entry| entry.va <= va)?;
        Some((entry.va, entry.end - entry.va, entry.backing.name()))
    }

    /// One past the highest address that is mapped; 0 where nothing is.
    pub fn end(&self) -> u64 {
        self.entries.last().map_or(0, |entry| entry.end)
    }

    /// The mapping nearest to `va`, for fault reports: first address, bytes, name of the memory.
    pub fn nearest(&self, va: u64) -> Option<(u64, u64, &str)> {
        let after = self.first_after(va);
        let distance =
            |entry: &&Entry| if va < entry.va { entry.va - va } else { va.saturating_sub(entry.end) };
        let candidates = [after.checked_sub(1).and_then(|i| self.entries.get(i)), self.entries.get(after)];
        let entry = candidates.into_iter().flatten().min_by_key(distance)?;
        Some((entry.va, entry.end - entry.va, entry.backing.name()))
    }
}

/// A GPU virtual address space, changed by the resource manager and UVM, read by the engines through snapshots.
#[derive(Debug)]
pub struct AddressSpace {
    map: RwLock<Arc<AddressMap>>,
}

impl AddressSpace {
    /// One past the highest address of Ampere and Ada: 49 bits.
    pub const LIMIT_49_BITS: u64 = 1 << 49;
    /// One past the highest address of Hopper and Blackwell: 57 bits.
    pub const LIMIT_57_BITS: u64 = 1 << 57;

    /// An empty address space for addresses below `limit`.
    pub fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self { map: RwLock::new(Arc::new(AddressMap { entries: Vec::new(), limit })) })
    }

    /// One past the highest address that can be mapped.
    pub fn limit(&self) -> u64 {
        self.snapshot().limit
    }

    /// The mappings as they are now. Spans taken from a snapshot stay valid while it is held, also over an unmap.
    pub fn snapshot(&self) -> Arc<AddressMap> {
        // A panic while the lock was held cannot have left a half-made map: it is replaced as a whole.
        Arc::clone(&self.map.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn check(va: u64, length: u64, limit: u64) -> Result<u64, MapError> {
        let bad = MapError::Range { va, length, limit };
        let end = va.checked_add(length).filter(|end| *end <= limit).ok_or(bad.clone())?;
        if length == 0 || !va.is_multiple_of(PAGE) || !length.is_multiple_of(PAGE) {
            return Err(bad);
        }
        Ok(end)
    }

    /// Maps `length` bytes of `backing` from `offset` on at `va`. All three are multiples of [`PAGE`]; a range that is
    /// partly mapped already is refused.
    pub fn map(
        &self,
        va: u64,
        length: u64,
        backing: Arc<Backing>,
        offset: u64,
        access: Access,
    ) -> Result<(), MapError> {
        let access = if backing.writable() { access } else { Access::ReadOnly };
        self.insert(va, length, Entry { va, end: va, backing, offset, access, sink: None })
    }

    /// Maps `length` bytes without memory at `va`, as sparse page table entries do: loads give zeroes, stores go
    /// nowhere. `zeroes` is an object of that length that nothing is ever written to, and `sink` one that nothing is
    /// ever read from but by atomics.
    pub fn map_sparse(
        &self,
        va: u64,
        length: u64,
        zeroes: Arc<Backing>,
        sink: Arc<Backing>,
    ) -> Result<(), MapError> {
        if sink.pointer(0, length).is_none() {
            let (name, have) = (sink.name().to_owned(), sink.len());
            return Err(MapError::Memory { name, offset: 0, length, have });
        }
        let access = Access::ReadWriteAtomic;
        self.insert(va, length, Entry { va, end: va, backing: zeroes, offset: 0, access, sink: Some(sink) })
    }

    /// Puts an entry where nothing is, after it was checked.
    fn insert(&self, va: u64, length: u64, entry: Entry) -> Result<(), MapError> {
        let Entry { backing, offset, .. } = &entry;
        let mut slot = self.map.write().unwrap_or_else(PoisonError::into_inner);
        let end = Self::check(va, length, slot.limit)?;
        if !offset.is_multiple_of(PAGE) || backing.pointer(*offset, length).is_none() {
            return Err(MapError::Memory {
                name: backing.name().to_owned(),
                offset: *offset,
                length,
                have: backing.len(),
            });
        }
        let index = slot.first_after(va);
        if let Some(other) = slot.entries.get(index).filter(|entry| entry.va < end) {
            return Err(MapError::Overlap { va, length, other: other.va });
        }
        Arc::make_mut(&mut slot).entries.insert(index, Entry { end, ..entry });
        Ok(())
    }

    /// Removes whatever is mapped in the range; mappings that reach out of it keep their rest. Returns the bytes that
    /// were mapped.
    pub fn unmap(&self, va: u64, length: u64) -> Result<u64, MapError> {
        let mut slot = self.map.write().unwrap_or_else(PoisonError::into_inner);
        let end = Self::check(va, length, slot.limit)?;
        let first = slot.first_after(va);
        let last = first + slot.entries[first..].partition_point(|entry| entry.va < end);
        if first == last {
            return Ok(0);
        }
        let map = Arc::make_mut(&mut slot);
        let mut rest = Vec::new();
        let mut bytes = 0;
        for entry in &map.entries[first..last] {
            bytes += entry.end.min(end) - entry.va.max(va);
            if entry.va < va {
                rest.push(Entry { end: va, ..entry.clone() });
            }
            if entry.end > end {
                let offset = entry.offset + (end - entry.va);
                rest.push(Entry { va: end, offset, ..entry.clone() });
            }
        }
        map.entries.splice(first..last, rest);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn space() -> Arc<AddressSpace> {
        AddressSpace::new(AddressSpace::LIMIT_49_BITS)
    }

    fn memory(bytes: u64) -> Arc<Backing> {
        Arc::new(Backing::new("memory", bytes).expect("a small memory object"))
    }

    #[test]
    fn two_mappings_of_one_object_are_aliases() {
        let (space, memory) = (space(), memory(2 * PAGE));
        space.map(0x10000, 2 * PAGE, Arc::clone(&memory), 0, Access::ReadWrite).expect("free");
        space.map(0x50000, PAGE, memory, PAGE, Access::ReadOnly).expect("free");
        let map = space.snapshot();
        map.write(0x10000 + PAGE + 3, b"abc").expect("mapped");
        let mut out = [0; 3];
        map.read(0x50003, &mut out).expect("mapped");
        assert_eq!(&out, b"abc");
    }

    #[test]
    fn without_memory_loads_give_zeroes_and_stores_go_nowhere() {
        let (space, zeroes, sink) = (space(), memory(2 * PAGE), memory(2 * PAGE));
        let sparse = |length| space.map_sparse(0x10000, length, Arc::clone(&zeroes), Arc::clone(&sink));
        assert!(matches!(sparse(3 * PAGE), Err(MapError::Memory { .. })));
        sparse(2 * PAGE).expect("free");
        let map = space.snapshot();
        map.write(0x10ffc, &[1; 8]).expect("mapped");
        assert_eq!(map.load_u64(0x11000), Ok(0));
        map.update_u32(0x10000, |word| word + 7).expect("mapped");
        assert_eq!(map.load_u32(0x10000), Ok(0));
        // What is left of a mapping that is cut works on.
        space.unmap(0x10000, PAGE).expect("mapped");
        let map = space.snapshot();
        map.store_u32(0x11004, 5).expect("mapped");
        assert_eq!(map.load_u32(0x11004), Ok(0));
    }

    #[test]
    fn a_miss_names_the_level_and_the_first_bad_address() {
        let space = space();
        space.map(2 * MIB, PAGE, memory(PAGE), 0, Access::ReadWrite).expect("free");
        let map = space.snapshot();
        let fault = |va, bytes, access| map.translate(va, bytes, access).expect_err("not mapped");
        let read = AccessKind::Read;
        assert_eq!(fault(2 * MIB + PAGE, 4, read).kind, FaultKind::Pte);
        assert_eq!(fault(MIB, 4, read).kind, FaultKind::Pde);
        assert_eq!(fault(4 * MIB, 4, read).kind, FaultKind::Pde);
        assert_eq!(fault(1 << 49, 4, read).kind, FaultKind::VaLimit);
        assert_eq!(fault(u64::MAX, 8, read).kind, FaultKind::VaLimit);
        assert_eq!(fault(2 * MIB + PAGE - 4, 8, read).va, 2 * MIB + PAGE);
    }

    #[test]
    fn rights_are_checked_and_a_refused_write_changes_nothing() {
        let space = space();
        space.map(0x10000, PAGE, memory(PAGE), 0, Access::ReadWrite).expect("free");
        space.map(0x11000, PAGE, memory(PAGE), 0, Access::ReadOnly).expect("free");
        let map = space.snapshot();
        assert_eq!(map.write(0x10ffc, &[1; 8]).expect_err("second page").kind, FaultKind::ReadOnly);
        assert_eq!(map.load_u32(0x10ffc), Ok(0));
        assert_eq!(map.update_u32(0x10000, |v| v + 1).expect_err("no atomics").kind, FaultKind::Atomic);
        let mut across = [0xff; 8];
        map.read(0x10ffc, &mut across).expect("both pages may be read");
        assert_eq!(across, [0; 8]);
    }

    #[test]
    fn unmapping_a_hole_splits_and_old_snapshots_live_on() {
        let space = space();
        space.map(0x10000, 3 * PAGE, memory(3 * PAGE), 0, Access::ReadWriteAtomic).expect("free");
        let before = space.snapshot();
        before.store_u64(0x12000, 9).expect("mapped");
        assert_eq!(space.unmap(0x11000, PAGE), Ok(PAGE));
        let after = space.snapshot();
        assert_eq!(after.load_u64(0x12000), Ok(9));
        assert_eq!(after.load_u64(0x11000).expect_err("hole").kind, FaultKind::Pte);
        assert_eq!(before.load_u64(0x11000), Ok(0));
        assert_eq!(space.unmap(0x11000, PAGE), Ok(0));
        assert!(matches!(
            space.map(0xf000, 2 * PAGE, memory(2 * PAGE), 0, Access::ReadOnly),
            Err(MapError::Overlap { other: 0x10000, .. })
        ));
    }

    #[test]
    fn bad_ranges_are_refused() {
        let (space, memory) = (space(), memory(PAGE));
        let map = |va, length, offset| space.map(va, length, Arc::clone(&memory), offset, Access::ReadOnly);
        assert!(matches!(map(0x10001, PAGE, 0), Err(MapError::Range { .. })));
        assert!(matches!(map(0x10000, 0, 0), Err(MapError::Range { .. })));
        assert!(matches!(map((1 << 49) - PAGE, 2 * PAGE, 0), Err(MapError::Range { .. })));
        assert!(matches!(map(0x10000, PAGE, PAGE), Err(MapError::Memory { .. })));
        assert!(matches!(map(0x10000, 2 * PAGE, 0), Err(MapError::Memory { .. })));
    }
}
