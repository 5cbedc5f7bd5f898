//! Unified virtual memory: the kernel module's side of `/dev/nvidia-uvm`.
//!
//! A descriptor holds a VA space. GPUs are registered in it with the address spaces that RM made, external ranges
//! reserve addresses, and memory is mapped into a range for each GPU. Managed memory, range groups and migration are
//! not simulated: refused and remembered.
#![forbid(unsafe_code)]

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::Ordering},
};

use nv_abi::{
    Branch, Errno, Fd, Node, Record, StructField,
    rm::Status,
    uvm::{
        self as u, UVM_CREATE_EXTERNAL_RANGE_PARAMS as CreateRange, UVM_ENABLE_PEER_ACCESS_PARAMS as Peer,
        UVM_FREE_PARAMS as Free, UVM_INITIALIZE_PARAMS as Initialize,
        UVM_MAP_EXTERNAL_ALLOCATION_PARAMS as Map, UVM_MM_INITIALIZE_PARAMS as MmInitialize,
        UVM_PAGEABLE_MEM_ACCESS_ON_GPU_PARAMS as PageableOnGpu, UVM_PAGEABLE_MEM_ACCESS_PARAMS as Pageable,
        UVM_REGISTER_CHANNEL_PARAMS as RegisterChannel, UVM_REGISTER_GPU_PARAMS as RegisterGpu,
        UVM_REGISTER_GPU_VASPACE_PARAMS as RegisterSpace, UVM_UNMAP_EXTERNAL_PARAMS as Unmap,
        UVM_UNREGISTER_CHANNEL_PARAMS as UnregisterChannel, UVM_UNREGISTER_GPU_PARAMS as UnregisterGpu,
        UVM_UNREGISTER_GPU_VASPACE_PARAMS as UnregisterSpace, UVM_VALIDATE_VA_RANGE_PARAMS as Validate,
    },
};

use crate::{
    memory::{Access, PAGE},
    rm::{self, Kernel, Kind, Memory, MemoryHome, Refusal, VaSpace, with_record},
};

type Uuid = [u8; 16];

/// What a UVM descriptor is.
#[derive(Debug, Default)]
pub(crate) enum File {
    /// Neither initialised nor tied to another.
    #[default]
    Fresh,
    /// A VA space.
    Space(Box<Space>),
    /// Keeps the process's memory for the VA space of another descriptor, by serial.
    Mm { of: u64 },
}

/// Whether the VA space has the process's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mm {
    None,
    Held,
    Released,
}

/// A GPU in a VA space.
#[derive(Debug)]
struct Registered {
    gpu: usize,
    space: Option<Arc<VaSpace>>,
}

/// Memory of one GPU in a range.
#[derive(Clone, Debug)]
struct Mapping {
    end: u64,
    page_size: u64,
    /// Keeps the memory while it is mapped, whatever becomes of its handle.
    _memory: Arc<Memory>,
}

/// What a range of addresses is for.
#[derive(Debug, PartialEq, Eq)]
enum RangeKind {
    External,
    /// The buffers of a channel's context.
    Channel,
}

/// A range of addresses.
#[derive(Debug)]
struct Range {
    end: u64,
    kind: RangeKind,
    mappings: BTreeMap<Uuid, BTreeMap<u64, Mapping>>,
}

/// A VA space.
#[derive(Debug)]
pub(crate) struct Space {
    flags: u64,
    mm: Mm,
    gpus: BTreeMap<Uuid, Registered>,
    peers: BTreeSet<(Uuid, Uuid)>,
    ranges: BTreeMap<u64, Range>,
    /// Channels by client and handle: their GPU, and the base of the range that holds their buffers.
    channels: BTreeMap<(u32, u32), (Uuid, Option<u64>)>,
}

type Handler = fn(&mut Kernel, &mut Space, &mut Record) -> Result<(), Refusal>;

/// Every call on a VA space that is simulated.
const HANDLERS: &[(u32, Handler)] = &[
    (u::UVM_REGISTER_GPU, register_gpu),
    (u::UVM_UNREGISTER_GPU, unregister_gpu),
    (u::UVM_REGISTER_GPU_VASPACE, register_gpu_vaspace),
    (u::UVM_UNREGISTER_GPU_VASPACE, unregister_gpu_vaspace),
    (u::UVM_REGISTER_CHANNEL, register_channel),
    (u::UVM_UNREGISTER_CHANNEL, unregister_channel),
    (u::UVM_ENABLE_PEER_ACCESS, enable_peer_access),
    (u::UVM_DISABLE_PEER_ACCESS, disable_peer_access),
    (u::UVM_CREATE_EXTERNAL_RANGE, create_external_range),
    (u::UVM_MAP_EXTERNAL_ALLOCATION, map_external_allocation),
    (u::UVM_UNMAP_EXTERNAL, unmap_external),
    (u::UVM_FREE, free),
    (u::UVM_VALIDATE_VA_RANGE, validate_va_range),
    (u::UVM_PAGEABLE_MEM_ACCESS, pageable_mem_access),
    (u::UVM_PAGEABLE_MEM_ACCESS_ON_GPU, pageable_mem_access_on_gpu),
];

/// Runs a call of a UVM descriptor. The request is the bare number; the size is the module's own.
pub(crate) fn ioctl(kernel: &mut Kernel, fd: Fd, request: u32, argument: &mut [u8]) -> Result<(), Errno> {
    if request == u::UVM_DEINITIALIZE {
        return Ok(());
    }
    let call = u::call(request).ok_or(Errno::ENOSYS)?;
    let layout = call.argument.ok_or(Errno::ENOSYS)?;
    // The descriptor's state is taken out while the call runs, so that it can use the rest of the kernel.
    let mut file = std::mem::take(&mut kernel.file_mut(fd)?.uvm);
    let result = with_record(kernel, layout, argument, "rmStatus", |kernel, p| match request {
        u::UVM_INITIALIZE => initialize(&mut file, p),
        u::UVM_MM_INITIALIZE => mm_initialize(kernel, &mut file, p),
        _ => {
            let File::Space(space) = &mut file else { return Err(Status::ILLEGAL_ACTION.into()) };
            match HANDLERS.iter().find(|(number, _)| *number == request) {
                Some((_, handler)) => handler(kernel, space, p),
                None => Err(kernel.not_supported(call.name)),
            }
        }
    });
    kernel.file_mut(fd)?.uvm = file;
    result
}

/// Closes a UVM descriptor: the VA space with all its mappings, or the hold on the process's memory.
pub(crate) fn close(kernel: &mut Kernel, file: rm::File) {
    match file.uvm {
        File::Fresh => {}
        File::Mm { of } => {
            let owner = kernel.files.values_mut().find(|file| file.serial == of);
            if let Some(File::Space(space)) = owner.map(|file| &mut file.uvm) {
                space.mm = Mm::Released;
            }
        }
        File::Space(mut space) => {
            let bases: Vec<u64> = space.ranges.keys().copied().collect();
            for base in bases {
                space.remove_range(base);
            }
            for registered in space.gpus.values() {
                registered.release();
            }
        }
    }
}

impl Kernel {
    /// `mmap` of a UVM descriptor would make managed memory, which is not simulated.
    pub(crate) fn uvm_mmap(&mut self, fd: Fd) -> Errno {
        match self.file(fd).map(|file| &file.uvm) {
            Ok(File::Space(_)) => {
                let _ = self.not_supported("mmap of /dev/nvidia-uvm (managed memory)");
                Errno::EOPNOTSUPP
            }
            Ok(_) => Errno::EBADFD,
            Err(errno) => errno,
        }
    }
}

impl Registered {
    fn release(&self) {
        if let Some(space) = &self.space {
            space.registered.store(false, Ordering::Relaxed);
        }
    }
}

fn uuid(p: &Record, field: &StructField) -> Result<Uuid, Refusal> {
    let mut uuid = [0; 16];
    for (i, byte) in (0..).zip(&mut uuid) {
        *byte = p.get_at(field, i)? as u8;
    }
    Ok(uuid)
}

/// The end of a range of whole pages that is neither empty nor at address 0.
fn range_end(base: u64, length: u64, unit: u64) -> Result<u64, Status> {
    let aligned = base.is_multiple_of(unit) && length.is_multiple_of(unit);
    match base.checked_add(length) {
        Some(end) if aligned && base != 0 && length != 0 => Ok(end),
        _ => Err(Status::INVALID_ADDRESS),
    }
}

fn initialize(file: &mut File, p: &mut Record) -> Result<(), Refusal> {
    let flags = p.get(&Initialize::flags)?;
    match file {
        File::Fresh => {
            let space = Space {
                flags,
                mm: Mm::None,
                gpus: BTreeMap::new(),
                peers: BTreeSet::new(),
                ranges: BTreeMap::new(),
                channels: BTreeMap::new(),
            };
            *file = File::Space(Box::new(space));
            Ok(())
        }
        File::Space(space) if space.flags == flags => Ok(()),
        File::Space(_) | File::Mm { .. } => Err(Status::INVALID_ARGUMENT.into()),
    }
}

fn mm_initialize(kernel: &mut Kernel, file: &mut File, p: &mut Record) -> Result<(), Refusal> {
    let needed = kernel.uvm_needs_mm;
    let target = Fd(p.get(&MmInitialize::uvmFd)? as u32 as i32);
    let found = kernel.file_mut(target).map_err(|_| Status::INVALID_ARGUMENT)?;
    let of = found.serial;
    // The descriptor itself is no VA space: its own state is taken out during the call.
    let (Node::Uvm, File::Space(space)) = (found.node, &mut found.uvm) else {
        return Err(Status::INVALID_ARGUMENT.into());
    };
    match file {
        File::Fresh => {}
        File::Mm { .. } => return Err(Status::INVALID_STATE.into()),
        File::Space(_) => return Err(Status::INVALID_ARGUMENT.into()),
    }
    if !needed {
        return Err(Status::WARN_NOTHING_TO_DO.into());
    }
    match space.mm {
        Mm::None => {
            space.mm = Mm::Held;
            *file = File::Mm { of };
            Ok(())
        }
        Mm::Held => Err(Status::INVALID_STATE.into()),
        Mm::Released => Err(Status::PAGE_TABLE_NOT_AVAIL.into()),
    }
}

fn register_gpu(kernel: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    let uuid = uuid(p, &RegisterGpu::gpu_uuid_uuid)?;
    let gpu = kernel.gpus.iter().position(|gpu| gpu.uuid == uuid).ok_or(Status::GPU_UUID_NOT_FOUND)?;
    if space.gpus.contains_key(&uuid) {
        return Err(Status::INVALID_DEVICE.into());
    }
    space.gpus.insert(uuid, Registered { gpu, space: None });
    p.set(&RegisterGpu::numaEnabled, 0)?;
    p.set(&RegisterGpu::numaNodeId, 0xffff_ffff)?;
    Ok(())
}

fn unregister_gpu(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    let uuid = uuid(p, &UnregisterGpu::gpu_uuid_uuid)?;
    if !space.gpus.contains_key(&uuid) {
        return Err(Status::INVALID_DEVICE.into());
    }
    space.drop_gpu_space(&uuid);
    space.gpus.remove(&uuid);
    space.peers.retain(|(a, b)| *a != uuid && *b != uuid);
    Ok(())
}

fn register_gpu_vaspace(kernel: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    let uuid = uuid(p, &RegisterSpace::gpuUuid_uuid)?;
    let registered = space.gpus.get_mut(&uuid).ok_or(Status::INVALID_DEVICE)?;
    if kernel.uvm_needs_mm && space.mm != Mm::Held {
        return Err(Status::PAGE_TABLE_NOT_AVAIL.into());
    }
    if registered.space.is_some() {
        return Err(Status::INVALID_DEVICE.into());
    }
    let client = client(kernel, p, &RegisterSpace::rmCtrlFd, &RegisterSpace::hClient)?;
    let found = kernel.va_space(client, p.get(&RegisterSpace::hVaSpace)? as u32)?;
    if found.gpu != registered.gpu {
        return Err(Status::INVALID_DEVICE.into());
    }
    // RM hands over only spaces that it made to be owned by another, and only once.
    if !found.externally_owned {
        return Err(Status::INVALID_FLAGS.into());
    }
    if found.registered.swap(true, Ordering::Relaxed) {
        return Err(Status::INVALID_STATE.into());
    }
    registered.space = Some(found);
    Ok(())
}

fn unregister_gpu_vaspace(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    let uuid = uuid(p, &UnregisterSpace::gpuUuid_uuid)?;
    space.gpu_space(&uuid)?;
    space.drop_gpu_space(&uuid);
    Ok(())
}

/// The client behind a control descriptor and a handle.
fn client(kernel: &Kernel, p: &Record, fd: &StructField, handle: &StructField) -> Result<u32, Refusal> {
    let (fd, handle) = (Fd(p.get(fd)? as u32 as i32), p.get(handle)? as u32);
    match kernel.client(fd, handle, Status::INVALID_CLIENT) {
        Ok(client) => Ok(client.handle),
        // A descriptor that is none is a bad argument here, not a failed system call.
        Err(Refusal::Errno(_)) => Err(Status::INVALID_ARGUMENT.into()),
        Err(refusal) => Err(refusal),
    }
}

/// Bytes of address space that a channel's context buffers take. The buffers themselves are the module's own and no
/// simulated engine looks into them.
const CHANNEL_BUFFERS: u64 = 2 << 20;

fn register_channel(kernel: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    let uuid = uuid(p, &RegisterChannel::gpuUuid_uuid)?;
    let va_space = space.gpu_space(&uuid)?;
    let client = client(kernel, p, &RegisterChannel::rmCtrlFd, &RegisterChannel::hClient)?;
    let handle = p.get(&RegisterChannel::hChannel)? as u32;
    if space.channels.contains_key(&(client, handle)) {
        return Err(Status::INVALID_CHANNEL.into());
    }
    let Kind::Channel(channel) = &kernel.object(client, handle)?.kind else {
        return Err(Status::INVALID_CHANNEL.into());
    };
    if !Arc::ptr_eq(&channel.space, &va_space) {
        return Err(Status::INVALID_CHANNEL.into());
    }
    let mut at = None;
    // Only graphics and compute channels have buffers that need addresses.
    if channel.engine == nv_abi::rm::flags::NV2080_ENGINE_TYPE_GRAPHICS {
        let (base, length) = (p.get(&RegisterChannel::base)?, p.get(&RegisterChannel::length)?);
        let end = range_end(base, length, PAGE)?;
        if end > va_space.space.limit() {
            return Err(Status::OUT_OF_RANGE.into());
        }
        let start = space.find_room(base, end, CHANNEL_BUFFERS).ok_or(Status::INVALID_ADDRESS)?;
        let range =
            Range { end: start + CHANNEL_BUFFERS, kind: RangeKind::Channel, mappings: BTreeMap::new() };
        space.ranges.insert(start, range);
        at = Some(start);
    }
    space.channels.insert((client, handle), (uuid, at));
    Ok(())
}

fn unregister_channel(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    // The UUID is gone from 590 on: the pair of handles is enough.
    let client = p.get(&UnregisterChannel::hClient)? as u32;
    let channel = p.get(&UnregisterChannel::hChannel)? as u32;
    let (_, base) = space.channels.remove(&(client, channel)).ok_or(Status::INVALID_CHANNEL)?;
    if let Some(base) = base {
        space.ranges.remove(&base);
    }
    Ok(())
}

/// A pair of GPUs, in one order.
fn pair(p: &Record) -> Result<(Uuid, Uuid), Refusal> {
    let (a, b) = (uuid(p, &Peer::gpuUuidA_uuid)?, uuid(p, &Peer::gpuUuidB_uuid)?);
    Ok((a.min(b), a.max(b)))
}

fn enable_peer_access(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    let pair = pair(p)?;
    let known = space.gpus.contains_key(&pair.0) && space.gpus.contains_key(&pair.1);
    if pair.0 == pair.1 || !known || !space.peers.insert(pair) {
        return Err(Status::INVALID_DEVICE.into());
    }
    Ok(())
}

fn disable_peer_access(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    // The struct is the same as that of enabling.
    let pair = pair(p)?;
    if space.peers.remove(&pair) { Ok(()) } else { Err(Status::INVALID_DEVICE.into()) }
}

fn create_external_range(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    let (base, length) = (p.get(&CreateRange::base)?, p.get(&CreateRange::length)?);
    let end = range_end(base, length, PAGE)?;
    if space.overlaps(base, end) {
        return Err(Status::UVM_ADDRESS_IN_USE.into());
    }
    space.ranges.insert(base, Range { end, kind: RangeKind::External, mappings: BTreeMap::new() });
    Ok(())
}

/// Whom to map for, and how.
struct Attribute {
    uuid: Uuid,
    access: Access,
}

/// The attributes of a call: types are checked before any GPU is looked for.
fn attributes(p: &Record, branch: Branch) -> Result<Vec<Attribute>, Refusal> {
    let count = p.get(&Map::gpuAttributesCount)?;
    if count == 0 || count > Map::perGpuAttributes_gpuMappingType.count(branch).into() {
        return Err(Status::INVALID_ARGUMENT.into());
    }
    let mut attributes = Vec::new();
    for i in 0..count as u32 {
        let mut uuid = [0; 16];
        uuid[..8].copy_from_slice(&p.get_at(&Map::perGpuAttributes_gpuUuidLow, i)?.to_le_bytes());
        uuid[8..].copy_from_slice(&p.get_at(&Map::perGpuAttributes_gpuUuidHigh, i)?.to_le_bytes());
        // UvmGpuMappingType: default, read-write-atomic, read-write, read-only.
        let access = match p.get_at(&Map::perGpuAttributes_gpuMappingType, i)? {
            0 | 1 => Access::ReadWriteAtomic,
            2 => Access::ReadWrite,
            3 => Access::ReadOnly,
            _ => return Err(Status::INVALID_ARGUMENT.into()),
        };
        // Caching: default, uncached, cached. Format: default, block linear.
        if p.get_at(&Map::perGpuAttributes_gpuCachingType, i)? > 2
            || p.get_at(&Map::perGpuAttributes_gpuFormatType, i)? > 1
        {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        attributes.push(Attribute { uuid, access });
    }
    Ok(attributes)
}

fn map_external_allocation(kernel: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    let (base, length, offset) = (p.get(&Map::base)?, p.get(&Map::length)?, p.get(&Map::offset)?);
    let end = range_end(base, length, PAGE)?;
    if !offset.is_multiple_of(PAGE) {
        return Err(Status::INVALID_ADDRESS.into());
    }
    let count = p.get(&Map::gpuAttributesCount)?;
    if count == 0 || count > Map::perGpuAttributes_gpuMappingType.count(kernel.branch).into() {
        return Err(Status::INVALID_ARGUMENT.into());
    }
    let range_base = space.external_range(base, end)?;
    let attributes = attributes(p, kernel.branch)?;
    let mut done: Vec<Uuid> = Vec::new();
    for attribute in &attributes {
        if let Err(refusal) = map_one(kernel, space, p, range_base, (base, end, offset), attribute) {
            // What this call mapped goes away again; what it replaced does not come back.
            for uuid in done {
                space.unmap(range_base, &uuid, base, end)?;
            }
            return Err(refusal);
        }
        done.push(attribute.uuid);
    }
    Ok(())
}

fn map_one(
    kernel: &Kernel,
    space: &mut Space,
    p: &Record,
    range: u64,
    (base, end, offset): (u64, u64, u64),
    attribute: &Attribute,
) -> Result<(), Refusal> {
    let uuid = &attribute.uuid;
    let va_space = space.gpu_space(uuid)?;
    let gpu = va_space.gpu;
    if end > va_space.space.limit() {
        return Err(Status::OUT_OF_RANGE.into());
    }
    space.unmap(range, uuid, base, end)?;
    let client = client(kernel, p, &Map::rmCtrlFd, &Map::hClient)?;
    let memory = Arc::clone(kernel.memory(client, p.get(&Map::hMemory)? as u32)?);
    if let MemoryHome::Video { gpu: owner } = memory.home
        && owner != gpu
    {
        let owner = kernel.gpus[owner].uuid;
        let pair = (owner.min(*uuid), owner.max(*uuid));
        if !space.gpus.contains_key(&owner) || !space.peers.contains(&pair) {
            return Err(Status::INVALID_DEVICE.into());
        }
    }
    // The largest page that the memory has and that addresses and offset allow.
    let fits = |page: &u64| {
        *page <= memory.page_size
            && base.is_multiple_of(*page)
            && end.is_multiple_of(*page)
            && offset.is_multiple_of(*page)
    };
    let page_size =
        [512 << 20, 2 << 20, 64 << 10, PAGE].into_iter().find(fits).ok_or(Status::INVALID_ADDRESS)?;
    if offset.checked_add(end - base).is_none_or(|end| end > memory.size) {
        return Err(Status::INVALID_OFFSET.into());
    }
    let access = if memory.device_read_only { Access::ReadOnly } else { attribute.access };
    va_space
        .space
        .map(base, end - base, Arc::clone(&memory.backing), offset, access)
        .map_err(|_| Status::INVALID_ADDRESS)?;
    let mappings = space.ranges.get_mut(&range).ok_or(Status::INVALID_ADDRESS)?.mappings.entry(*uuid);
    mappings.or_default().insert(base, Mapping { end, page_size, _memory: memory });
    Ok(())
}

fn unmap_external(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    let (base, length) = (p.get(&Unmap::base)?, p.get(&Unmap::length)?);
    let end = range_end(base, length, PAGE)?;
    let range = space.external_range(base, end)?;
    let uuid = uuid(p, &Unmap::gpuUuid_uuid)?;
    space.gpu_space(&uuid)?;
    Ok(space.unmap(range, &uuid, base, end)?)
}

fn free(kernel: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    let base = p.get(&Free::base)?;
    let range = space.ranges.get(&base).ok_or(Status::INVALID_ADDRESS)?;
    // From 590 on the base alone names the range.
    let length_differs =
        kernel.branch < Branch::R590 && Some(range.end) != base.checked_add(p.get(&Free::length)?);
    if range.kind != RangeKind::External || length_differs {
        return Err(Status::INVALID_ADDRESS.into());
    }
    space.remove_range(base);
    Ok(())
}

fn validate_va_range(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    let (base, length) = (p.get(&Validate::base)?, p.get(&Validate::length)?);
    match space.ranges.get(&base) {
        Some(range) if Some(range.end) == base.checked_add(length) => Ok(()),
        _ => Err(Status::INVALID_ADDRESS.into()),
    }
}

fn pageable_mem_access(_: &mut Kernel, _: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    Ok(p.set(&Pageable::pageableMemAccess, 0)?)
}

fn pageable_mem_access_on_gpu(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    if !space.gpus.contains_key(&uuid(p, &PageableOnGpu::gpu_uuid_uuid)?) {
        return Err(Status::INVALID_DEVICE.into());
    }
    Ok(p.set(&PageableOnGpu::pageableMemAccess, 0)?)
}

impl Space {
    /// The address space of a GPU that is registered with one.
    fn gpu_space(&self, uuid: &Uuid) -> Result<Arc<VaSpace>, Status> {
        let space = self.gpus.get(uuid).and_then(|registered| registered.space.clone());
        space.ok_or(Status::INVALID_DEVICE)
    }

    /// Whether any range lies in `base..end`.
    fn overlaps(&self, base: u64, end: u64) -> bool {
        self.ranges.range(..end).next_back().is_some_and(|(_, range)| range.end > base)
    }

    /// The lowest free place for `bytes` in `base..end`, on a boundary of pages.
    fn find_room(&self, base: u64, end: u64, bytes: u64) -> Option<u64> {
        let mut at = base;
        loop {
            let stop = at.checked_add(bytes).filter(|stop| *stop <= end)?;
            match self.ranges.range(..stop).next_back() {
                Some((_, range)) if range.end > at => at = range.end,
                _ => return Some(at),
            }
        }
    }

    /// The base of the one external range that holds `base..end`.
    fn external_range(&self, base: u64, end: u64) -> Result<u64, Status> {
        match self.ranges.range(..=base).next_back() {
            Some((start, range)) if range.end >= end && range.kind == RangeKind::External => Ok(*start),
            _ => Err(Status::INVALID_ADDRESS),
        }
    }

    /// Removes what a GPU has mapped in `base..end` of a range. A mapping can only be cut at its page size.
    fn unmap(&mut self, range: u64, uuid: &Uuid, base: u64, end: u64) -> Result<(), Status> {
        let va_space = self.gpu_space(uuid)?;
        let range = self.ranges.get_mut(&range).ok_or(Status::INVALID_ADDRESS)?;
        let Some(mappings) = range.mappings.get_mut(uuid) else { return Ok(()) };
        let touched: Vec<(u64, Mapping)> = mappings
            .range(..end)
            .filter(|(_, mapping)| mapping.end > base)
            .map(|(start, mapping)| (*start, mapping.clone()))
            .collect();
        for (start, mapping) in &touched {
            let cuts = [(*start < base, base), (mapping.end > end, end)];
            if cuts.into_iter().any(|(cut, at)| cut && !at.is_multiple_of(mapping.page_size)) {
                return Err(Status::INVALID_ADDRESS);
            }
        }
        for (start, mapping) in touched {
            mappings.remove(&start);
            let (from, to) = (start.max(base), mapping.end.min(end));
            // Made by `map` of the same address space, so that the range is sound.
            va_space.space.unmap(from, to - from).map_err(|_| Status::INVALID_ADDRESS)?;
            if start < base {
                mappings.insert(start, Mapping { end: base, ..mapping.clone() });
            }
            if mapping.end > end {
                mappings.insert(end, mapping);
            }
        }
        Ok(())
    }

    fn remove_range(&mut self, base: u64) {
        let Some(range) = self.ranges.remove(&base) else { return };
        for (uuid, mappings) in range.mappings {
            let Ok(va_space) = self.gpu_space(&uuid) else { continue };
            for (start, mapping) in mappings {
                // As above; nothing is left to be done about a failure.
                let _ = va_space.space.unmap(start, mapping.end - start);
            }
        }
    }

    /// Takes the address space of a GPU away, with everything that is mapped there.
    fn drop_gpu_space(&mut self, uuid: &Uuid) {
        if let Ok(va_space) = self.gpu_space(uuid) {
            for range in self.ranges.values_mut() {
                for (start, mapping) in range.mappings.remove(uuid).unwrap_or_default() {
                    let _ = va_space.space.unmap(start, mapping.end - start);
                }
            }
        }
        let of_gpu = self.channels.iter().filter(|(_, (gpu, _))| gpu == uuid);
        let gone: Vec<_> = of_gpu.map(|(key, (_, base))| (*key, *base)).collect();
        for (key, base) in gone {
            self.channels.remove(&key);
            if let Some(base) = base {
                self.ranges.remove(&base);
            }
        }
        if let Some(registered) = self.gpus.get_mut(uuid) {
            registered.release();
            registered.space = None;
        }
    }
}
