//! Memory objects: what RM_ALLOC, RM_ALLOC_MEMORY and RM_VID_HEAP_CONTROL make of sizes and attributes.

use std::sync::{Arc, atomic::Ordering};

use nv_abi::{
    Bits, BitsMut, Fd, Record,
    rm::{
        NV_MEMORY_ALLOCATION_PARAMS as P, NVOS02_PARAMETERS, NVOS32_PARAMETERS as Heap, Status,
        class::{self, class},
        flags::{NVOS02_FLAGS, NVOS32_ALLOC_FLAGS, NVOS32_ATTR, NVOS32_ATTR2},
        nv_ioctl_nvos02_parameters_with_fd as AllocMemory,
    },
};

use super::{Kernel, Kind, Memory, MemoryHome, Object, Refusal, VaSpace, allocate::Allocation};
use crate::memory::{AliasError, Backing, PAGE};

/// The page table kind of plain memory on Turing and later (NV_MMU_PTE_KIND_GENERIC_MEMORY, `dev_mmu`).
const GENERIC_MEMORY: u64 = 6;
/// Bytes of the page that user-mode clients share with the module (`RM_USER_SHARED_DATA`).
const SHARED_DATA_BYTES: u64 = 4096;

/// Bytes of the pages that the heap of video memory gives out, and of the MMU's big pages.
const BIG_PAGE: u64 = 64 << 10;

/// What a client asks of memory.
struct Request {
    home: MemoryHome,
    size: u64,
    alignment: u64,
    /// NVOS32_ALLOC_FLAGS.
    flags: u32,
    attr: u32,
    attr2: u32,
}

impl Request {
    /// The alignment that an object of these pages gets: what is asked for counts where a flag says so, and where whole
    /// pages make it up or it divides a page.
    fn aligned(&self, page_size: u64) -> Result<u64, Refusal> {
        let flags = self.flags.to_le_bytes();
        let flag = |row| Bits::new(&flags).get(row).map(|bit| bit != 0);
        let forced = flag(&NVOS32_ALLOC_FLAGS::ALIGNMENT_FORCE)?;
        let asked = if forced || flag(&NVOS32_ALLOC_FLAGS::ALIGNMENT_HINT)? { self.alignment } else { PAGE };
        let fits = |asked: u64| {
            if asked > page_size { asked.is_multiple_of(page_size) } else { page_size.is_multiple_of(asked) }
        };
        match asked {
            0 => Ok(page_size),
            asked if fits(asked) => Ok(asked.max(page_size)),
            _ if forced => Err(Status::INVALID_ARGUMENT.into()),
            _ => Ok(page_size),
        }
    }
}

/// What it gets: the object, and the answers.
struct Grant {
    memory: Memory,
    attr: u32,
    attr2: u32,
    alignment: u64,
    /// Where in video memory.
    offset: Option<u64>,
}

impl Kernel {
    pub(super) fn new_video_memory(&mut self, a: &mut Allocation) -> Result<Kind, Refusal> {
        let gpu = self.gpu_of(a.client, a.parent)?;
        self.new_memory(a, MemoryHome::Video { gpu })
    }

    pub(super) fn new_system_memory(&mut self, a: &mut Allocation) -> Result<Kind, Refusal> {
        self.new_memory(a, MemoryHome::System)
    }

    fn new_memory(&mut self, a: &mut Allocation, home: MemoryHome) -> Result<Kind, Refusal> {
        let grant = self.grant(&Request {
            home,
            size: a.get(&P::size)?,
            alignment: a.get(&P::alignment)?,
            flags: a.get(&P::flags)? as u32,
            attr: a.get(&P::attr)? as u32,
            attr2: a.get(&P::attr2)? as u32,
        })?;
        a.set(&P::attr, grant.attr.into())?;
        a.set(&P::attr2, grant.attr2.into())?;
        a.set(&P::format, GENERIC_MEMORY)?;
        a.set(&P::size, grant.memory.size)?;
        a.set(&P::limit, grant.memory.size - 1)?;
        a.set(&P::alignment, grant.alignment)?;
        if let Some(offset) = grant.offset {
            a.set(&P::offset, offset)?;
        }
        Ok(Kind::Memory(Arc::new(grant.memory)))
    }

    /// The page that a client reads the module's counters from. Nothing is counted here: it stays zero.
    pub(super) fn new_shared_data(&mut self, _: &mut Allocation) -> Result<Kind, Refusal> {
        let backing =
            Backing::new("RM_USER_SHARED_DATA", SHARED_DATA_BYTES).map_err(|_| Status::NO_MEMORY)?;
        let memory = Memory {
            backing: Arc::new(backing),
            home: MemoryHome::System,
            size: SHARED_DATA_BYTES,
            page_size: PAGE,
            attr: 0,
            device_read_only: true,
            accounted: None,
        };
        Ok(Kind::Memory(Arc::new(memory)))
    }

    /// Finds room and fills the attributes in that the client left open.
    fn grant(&mut self, request: &Request) -> Result<Grant, Refusal> {
        use NVOS32_ATTR::{COHERENCY, LOCATION, PAGE_SIZE, PHYSICALITY};
        use NVOS32_ATTR2::{GPU_CACHEABLE, PAGE_SIZE_HUGE, PROTECTION_DEVICE, ZBC};
        let (mut attr, mut attr2) = (request.attr.to_le_bytes(), request.attr2.to_le_bytes());
        let video = matches!(request.home, MemoryHome::Video { .. });
        let bytes = request.size;
        if bytes == 0 {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        // A class stands for a place; attributes that name another contradict it.
        let place = Bits::new(&attr).get(&LOCATION)?;
        if place == if video { LOCATION::PCI } else { LOCATION::VIDMEM } {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        // Recorded from an H200: video memory gets huge pages from 2 MiB on and big ones below (`mem_mgr.c`), system memory
        // small ones.
        let wanted = match Bits::new(&attr).get(&PAGE_SIZE)? {
            PAGE_SIZE::DEFAULT if video && bytes >= 2 << 20 => PAGE_SIZE::HUGE,
            PAGE_SIZE::DEFAULT if video => PAGE_SIZE::BIG,
            PAGE_SIZE::DEFAULT => PAGE_SIZE::SIZE_4KB,
            named => named,
        };
        let page_size = match wanted {
            PAGE_SIZE::HUGE => match Bits::new(&attr2).get(&PAGE_SIZE_HUGE)? {
                PAGE_SIZE_HUGE::DEFAULT | PAGE_SIZE_HUGE::SIZE_2MB => 2 << 20,
                PAGE_SIZE_HUGE::SIZE_512MB => 512 << 20,
                _ => return Err(self.not_supported("256 GiB pages")),
            },
            PAGE_SIZE::BIG => BIG_PAGE,
            _ => PAGE,
        };
        let size = bytes.checked_next_multiple_of(page_size).ok_or(Status::NO_MEMORY)?;
        let set = |bytes: &mut [u8; 4], field, value| BitsMut::new(bytes).set(field, value);
        set(&mut attr, &PAGE_SIZE, wanted)?;
        set(&mut attr, &LOCATION, if video { LOCATION::VIDMEM } else { LOCATION::PCI })?;
        let physicality = if video { PHYSICALITY::CONTIGUOUS } else { PHYSICALITY::NONCONTIGUOUS };
        if matches!(
            Bits::new(&attr).get(&PHYSICALITY)?,
            PHYSICALITY::DEFAULT | PHYSICALITY::ALLOW_NONCONTIGUOUS
        ) {
            set(&mut attr, &PHYSICALITY, physicality)?;
        }
        if video {
            set(&mut attr, &COHERENCY, 0)?;
        }
        if Bits::new(&attr2).get(&ZBC)? == ZBC::DEFAULT {
            set(&mut attr2, &ZBC, ZBC::PREFER_NO_ZBC)?;
        }
        if Bits::new(&attr2).get(&GPU_CACHEABLE)? == GPU_CACHEABLE::DEFAULT {
            set(&mut attr2, &GPU_CACHEABLE, if video { GPU_CACHEABLE::YES } else { GPU_CACHEABLE::NO })?;
        }
        if page_size == 2 << 20 {
            set(&mut attr2, &PAGE_SIZE_HUGE, PAGE_SIZE_HUGE::SIZE_2MB)?;
        }
        let alignment = request.aligned(page_size)?;

        let mut offset = None;
        let mut accounted = None;
        let mut name = "system memory".to_owned();
        if let MemoryHome::Video { gpu } = request.home {
            // The heap's own pages are big ones, and its alignments powers of two.
            if !alignment.is_power_of_two() {
                return Err(Status::INVALID_ARGUMENT.into());
            }
            let taken = size.checked_next_multiple_of(BIG_PAGE).ok_or(Status::NO_MEMORY)?;
            let state = &mut self.gpus[gpu];
            let used = state.vram_used.load(Ordering::Relaxed);
            if used.checked_add(taken).is_none_or(|sum| sum > state.profile.heap_bytes()) {
                return Err(Status::NO_MEMORY.into());
            }
            let at = state.next_physical.checked_next_multiple_of(alignment.max(BIG_PAGE));
            let at = at.ok_or(Status::NO_MEMORY)?;
            state.next_physical = at.checked_add(taken).ok_or(Status::NO_MEMORY)?;
            offset = Some(at);
            accounted = Some((Arc::clone(&state.vram_used), taken));
            name = format!("video memory of GPU {gpu}");
        }
        let backing = Backing::new(&name, size).map_err(|_| Status::NO_MEMORY)?;
        if let Some((used, taken)) = &accounted {
            used.fetch_add(*taken, Ordering::Relaxed);
        }
        let (attr, attr2) = (u32::from_le_bytes(attr), u32::from_le_bytes(attr2));
        let memory = Memory {
            backing: Arc::new(backing),
            home: request.home,
            size,
            page_size,
            attr: if video { attr } else { 0 },
            device_read_only: Bits::new(&attr2.to_le_bytes()).get(&PROTECTION_DEVICE)? != 0,
            accounted,
        };
        Ok(Grant { memory, attr, attr2, alignment, offset })
    }

    /// One past the highest address of a space that an NV50_MEMORY_VIRTUAL holds, mapped or not.
    fn reserved_end(&self, space: &Arc<VaSpace>) -> u64 {
        let objects = self.clients.values().flat_map(|client| client.objects.values());
        let ends = objects.filter_map(|object| match &object.kind {
            Kind::VirtualMemory { space: of, limit, .. }
                if object.class.number == class::NV50_MEMORY_VIRTUAL && Arc::ptr_eq(of, space) =>
            {
                Some(limit.saturating_add(1))
            }
            _ => None,
        });
        ends.max().unwrap_or(0)
    }

    /// NV50_MEMORY_VIRTUAL: a range of an address space, at a fixed place or wherever there is room.
    pub(super) fn new_virtual_allocation(&mut self, a: &mut Allocation) -> Result<Kind, Refusal> {
        use NVOS32_ATTR::{LOCATION, PHYSICALITY};
        use NVOS32_ATTR2::{GPU_CACHEABLE, PAGE_SIZE_HUGE, ZBC};
        /// The page that ranges are cut to.
        const UNIT: u64 = 2 << 20;
        let space = self.space_of(a, &P::hVASpace)?;
        let flags = (a.get(&P::flags)? as u32).to_le_bytes();
        let fixed = Bits::new(&flags).get(&NVOS32_ALLOC_FLAGS::FIXED_ADDRESS_ALLOCATE)? != 0;
        let size = a.get(&P::size)?;
        if size == 0 {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        let offset = if fixed {
            a.get(&P::offset)?
        } else {
            let reserved = self.reserved_end(&space);
            let lowest = space.space.snapshot().end().max(reserved).max(1 << 32);
            lowest.checked_next_multiple_of(UNIT).ok_or(Status::NO_MEMORY)?
        };
        let last = offset.checked_add(size - 1).filter(|last| *last < space.space.limit());
        let last = last.ok_or(Status::INVALID_OFFSET)?;
        let (mut attr, mut attr2) = ([0; 4], [0; 4]);
        BitsMut::new(&mut attr).set(&LOCATION, LOCATION::ANY)?;
        BitsMut::new(&mut attr).set(&PHYSICALITY, PHYSICALITY::CONTIGUOUS)?;
        BitsMut::new(&mut attr2).set(&ZBC, ZBC::PREFER_NO_ZBC)?;
        BitsMut::new(&mut attr2).set(&GPU_CACHEABLE, GPU_CACHEABLE::YES)?;
        BitsMut::new(&mut attr2).set(&PAGE_SIZE_HUGE, PAGE_SIZE_HUGE::SIZE_2MB)?;
        let attr = u64::from(u32::from_le_bytes(attr)) | a.get(&P::attr)?;
        let attr2 = u64::from(u32::from_le_bytes(attr2)) | a.get(&P::attr2)?;
        a.set(&P::attr, attr)?;
        a.set(&P::attr2, attr2)?;
        a.set(&P::format, GENERIC_MEMORY)?;
        a.set(&P::rangeLo, offset)?;
        a.set(&P::rangeHi, last)?;
        if a.get(&P::alignment)? == 0 {
            a.set(&P::alignment, UNIT)?;
        }
        a.set(&P::offset, offset)?;
        a.set(&P::limit, size - 1)?;
        Ok(Kind::VirtualMemory { space, offset, limit: last })
    }

    /// Pins memory that the client has mapped.
    fn pin(&mut self, address: u64, limit: u64, device_read_only: bool) -> Result<Memory, Refusal> {
        let size = limit
            .checked_add(1)
            .and_then(|bytes| bytes.checked_next_multiple_of(PAGE))
            .ok_or(Status::INVALID_LIMIT)?;
        let backing = match Backing::alias("client memory", address, size) {
            Ok(backing) => backing,
            Err(AliasError::NotMapped { .. } | AliasError::Range { .. }) => {
                return Err(Status::INVALID_ADDRESS.into());
            }
            Err(AliasError::Private { .. }) => {
                return Err(self.not_supported("NV01_MEMORY_SYSTEM_OS_DESCRIPTOR of a private mapping"));
            }
            Err(AliasError::Maps(_) | AliasError::System { .. }) => {
                return Err(Status::OPERATING_SYSTEM.into());
            }
        };
        Ok(Memory {
            backing: Arc::new(backing),
            home: MemoryHome::Client,
            size,
            page_size: PAGE,
            attr: 0,
            device_read_only,
            accounted: None,
        })
    }

    /// RM_ALLOC_MEMORY on a GPU's node: pins memory that the client has mapped.
    pub(super) fn rm_alloc_memory(&mut self, fd: Fd, p: &mut Record) -> Result<(), Refusal> {
        use AllocMemory as P;
        let (root, parent) = (p.get(&P::hRoot)? as u32, p.get(&P::hObjectParent)? as u32);
        let number = p.get(&P::hClass)? as u32;
        let row = class(number).ok_or(Status::INVALID_CLASS)?;
        self.client(fd, root, Status::INVALID_CLIENT)?;
        if row.internal != "OsDescMemory" {
            return Err(self.not_supported(format!("{} of {}", NVOS02_PARAMETERS::STRUCT.name, row.name)));
        }
        let handle = self.place(root, parent, p.get(&P::hObjectNew)? as u32, row)?;
        let (address, limit) = (p.get(&P::pMemory)?, p.get(&P::limit)?);
        if !address.is_multiple_of(PAGE) {
            return Err(Status::NOT_SUPPORTED.into());
        }
        let flags = (p.get(&P::flags)? as u32).to_le_bytes();
        let flags = Bits::new(&flags);
        let coherency = flags.get(&NVOS02_FLAGS::COHERENCY)?;
        if flags.get(&NVOS02_FLAGS::LOCATION)? != NVOS02_FLAGS::LOCATION::PCI
            || flags.get(&NVOS02_FLAGS::MAPPING)? != NVOS02_FLAGS::MAPPING::NO_MAP
            || !matches!(
                coherency,
                NVOS02_FLAGS::COHERENCY::UNCACHED
                    | NVOS02_FLAGS::COHERENCY::CACHED
                    | NVOS02_FLAGS::COHERENCY::WRITE_BACK
            )
        {
            return Err(Status::INVALID_FLAGS.into());
        }
        let memory = self.pin(address, limit, flags.get(&NVOS02_FLAGS::DEVICE_READ_ONLY)? != 0)?;
        self.insert(root, handle, Object::new(parent, row, Kind::Memory(Arc::new(memory))))?;
        Ok(p.set(&P::hObjectNew, handle.into())?)
    }

    /// RM_VID_HEAP_CONTROL: the older way to memory objects.
    pub(super) fn rm_vid_heap_control(&mut self, fd: Fd, p: &mut Record) -> Result<(), Refusal> {
        /// NVOS32_FUNCTION.
        const ALLOC_SIZE: u64 = 2;
        const FREE: u64 = 3;
        const INFO: u64 = 5;
        const ALLOC_OS_DESCRIPTOR: u64 = 27;
        let (root, parent) = (p.get(&Heap::hRoot)? as u32, p.get(&Heap::hObjectParent)? as u32);
        self.client(fd, root, Status::INVALID_CLIENT)?;
        match p.get(&Heap::function)? {
            ALLOC_SIZE => self.heap_alloc(root, parent, p)?,
            ALLOC_OS_DESCRIPTOR => self.heap_pin(root, parent, p)?,
            FREE => {
                let handle = p.get(&Heap::Free_hMemory)? as u32;
                self.memory(root, handle)?;
                self.free_object(root, handle);
            }
            INFO => {}
            function => return Err(self.not_supported(format!("NVOS32_FUNCTION {function}"))),
        }
        // Every function answers the heap's state.
        let gpu = self.gpu_of(root, parent)?;
        let total = self.gpus[gpu].profile.heap_bytes();
        let used = self.gpus[gpu].vram_used.load(Ordering::Relaxed);
        p.set(&Heap::total, total)?;
        Ok(p.set(&Heap::free, total.saturating_sub(used))?)
    }

    fn heap_alloc(&mut self, root: u32, parent: u32, p: &mut Record) -> Result<(), Refusal> {
        let gpu = self.gpu_of(root, parent)?;
        let attr = p.get(&Heap::AllocSize_attr)? as u32;
        let flags = (p.get(&Heap::AllocSize_flags)? as u32).to_le_bytes();
        let flags = Bits::new(&flags);
        if flags.get(&NVOS32_ALLOC_FLAGS::VIRTUAL)? != 0 {
            return Err(self.not_supported("NVOS32_FUNCTION_ALLOC_SIZE of virtual memory"));
        }
        let place = Bits::new(&attr.to_le_bytes()).get(&NVOS32_ATTR::LOCATION)?;
        let (home, number) = match place {
            NVOS32_ATTR::LOCATION::PCI => (MemoryHome::System, class::NV01_MEMORY_SYSTEM),
            _ => (MemoryHome::Video { gpu }, class::NV01_MEMORY_LOCAL_USER),
        };
        let row = class(number).ok_or(Status::INVALID_CLASS)?;
        let wanted = match flags.get(&NVOS32_ALLOC_FLAGS::MEMORY_HANDLE_PROVIDED)? {
            0 => 0,
            _ => p.get(&Heap::AllocSize_hMemory)? as u32,
        };
        let handle = self.place(root, parent, wanted, row)?;
        let grant = self.grant(&Request {
            home,
            size: p.get(&Heap::AllocSize_size)?,
            alignment: p.get(&Heap::AllocSize_alignment)?,
            flags: p.get(&Heap::AllocSize_flags)? as u32,
            attr,
            attr2: p.get(&Heap::AllocSize_attr2)? as u32,
        })?;
        p.set(&Heap::AllocSize_hMemory, handle.into())?;
        p.set(&Heap::AllocSize_attr, grant.attr.into())?;
        p.set(&Heap::AllocSize_attr2, grant.attr2.into())?;
        p.set(&Heap::AllocSize_format, GENERIC_MEMORY)?;
        p.set(&Heap::AllocSize_size, grant.memory.size)?;
        p.set(&Heap::AllocSize_limit, grant.memory.size - 1)?;
        p.set(&Heap::AllocSize_alignment, grant.alignment)?;
        if let Some(offset) = grant.offset {
            p.set(&Heap::AllocSize_offset, offset)?;
        }
        self.insert(root, handle, Object::new(parent, row, Kind::Memory(Arc::new(grant.memory))))
    }

    fn heap_pin(&mut self, root: u32, parent: u32, p: &mut Record) -> Result<(), Refusal> {
        // NVOS32_DESCRIPTOR_TYPE_VIRTUAL_ADDRESS; the others are the kernel's own.
        if p.get(&Heap::AllocOsDesc_descriptorType)? != 0 {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        let row = class(class::NV01_MEMORY_SYSTEM_OS_DESCRIPTOR).ok_or(Status::INVALID_CLASS)?;
        let handle = self.place(root, parent, p.get(&Heap::AllocOsDesc_hMemory)? as u32, row)?;
        let (address, limit) = (p.get(&Heap::AllocOsDesc_descriptor)?, p.get(&Heap::AllocOsDesc_limit)?);
        if !address.is_multiple_of(PAGE) {
            return Err(Status::NOT_SUPPORTED.into());
        }
        let attr2 = (p.get(&Heap::AllocOsDesc_attr2)? as u32).to_le_bytes();
        let read_only = Bits::new(&attr2).get(&NVOS32_ATTR2::PROTECTION_DEVICE)? != 0;
        let memory = self.pin(address, limit, read_only)?;
        p.set(&Heap::AllocOsDesc_hMemory, handle.into())?;
        self.insert(root, handle, Object::new(parent, row, Kind::Memory(Arc::new(memory))))
    }
}
