//! Unified virtual memory: the kernel module's side of `/dev/nvidia-uvm`.
//!
//! A descriptor holds a VA space. GPUs are registered in it with the address spaces that RM made (`gpu`); ranges of
//! addresses are reserved, and memory is mapped into them for each GPU: memory objects (`external`), semaphore pools
//! (`pool`), and managed memory, which `mmap` of the descriptor makes (`managed`). Simulated GPUs read and write the
//! computer's pages, so that migration moves nothing.
#![forbid(unsafe_code)]

mod external;
mod gpu;
mod managed;
mod pool;
mod tools;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::Ordering},
};

use nv_abi::{
    Errno, Fd, Node, Record, StructField,
    rm::Status,
    uvm::{
        self as u, UVM_INITIALIZE_PARAMS as Initialize, UVM_MM_INITIALIZE_PARAMS as MmInitialize,
        UVM_PAGEABLE_MEM_ACCESS_PARAMS as Pageable, UVM_POPULATE_PAGEABLE_PARAMS as Populate,
        UVM_VALIDATE_VA_RANGE_PARAMS as Validate,
    },
};

use crate::{
    memory::{Access, Backing, PAGE},
    rm::{Kernel, Memory, Refusal, VaSpace, with_record},
};

type Uuid = [u8; 16];

/// The UUID that stands for the CPU (`nvCpuUuid.c`).
const CPU: Uuid =
    [0xa6, 0x5e, 0x0f, 0x4e, 0xd7, 0xd4, 0x7b, 0xa2, 0x50, 0x47, 0x41, 0x2c, 0x14, 0x2a, 0x77, 0x73];

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
    memory: Option<Arc<Memory>>,
}

/// A channel whose context lies in a range.
type ChannelKey = (u32, u32);

/// What a range of addresses is for.
#[derive(Debug)]
enum RangeKind {
    /// Memory objects, which the client maps.
    External,
    /// The buffers of channels of one group, which the module maps.
    Channels { gpu: Uuid, group: u32, users: BTreeSet<ChannelKey> },
    /// Semaphores of the computer's memory: mapped for every GPU.
    SemaphorePool { backing: Arc<Backing>, attributes: BTreeMap<Uuid, Access> },
    /// A window to a GPU's scheduler; nothing can be read there.
    SkedReflected { gpu: Uuid },
    /// Managed memory.
    Managed(managed::Range),
}

/// A range of addresses.
#[derive(Debug)]
struct Range {
    end: u64,
    kind: RangeKind,
    mappings: BTreeMap<Uuid, BTreeMap<u64, Mapping>>,
}

impl Range {
    fn new(end: u64, kind: RangeKind) -> Self {
        Self { end, kind, mappings: BTreeMap::new() }
    }
}

/// A VA space.
#[derive(Debug)]
pub(crate) struct Space {
    flags: u64,
    mm: Mm,
    /// Who gave it its memory.
    process: u32,
    gpus: BTreeMap<Uuid, Registered>,
    peers: BTreeSet<(Uuid, Uuid)>,
    ranges: BTreeMap<u64, Range>,
    /// Channels by client and handle: their GPU, and the base of the range that holds their buffers.
    channels: BTreeMap<ChannelKey, (Uuid, Option<u64>)>,
    /// Range groups, and whether their memory may migrate.
    groups: BTreeMap<u64, bool>,
    last_group: u64,
}

type Handler = fn(&mut Kernel, &mut Space, &mut Record) -> Result<(), Refusal>;

/// Every call on a VA space that is simulated.
const HANDLERS: &[(u32, Handler)] = &[
    (u::UVM_REGISTER_GPU, gpu::register),
    (u::UVM_UNREGISTER_GPU, gpu::unregister),
    (u::UVM_REGISTER_GPU_VASPACE, gpu::register_vaspace),
    (u::UVM_UNREGISTER_GPU_VASPACE, gpu::unregister_vaspace),
    (u::UVM_REGISTER_CHANNEL, gpu::register_channel),
    (u::UVM_UNREGISTER_CHANNEL, gpu::unregister_channel),
    (u::UVM_ENABLE_PEER_ACCESS, gpu::enable_peer_access),
    (u::UVM_DISABLE_PEER_ACCESS, gpu::disable_peer_access),
    (u::UVM_PAGEABLE_MEM_ACCESS_ON_GPU, gpu::pageable_mem_access),
    (u::UVM_ENABLE_SYSTEM_WIDE_ATOMICS, gpu::system_wide_atomics),
    (u::UVM_DISABLE_SYSTEM_WIDE_ATOMICS, gpu::system_wide_atomics),
    (u::UVM_CREATE_EXTERNAL_RANGE, external::create),
    (u::UVM_MAP_EXTERNAL_ALLOCATION, external::map_allocation),
    (u::UVM_MAP_EXTERNAL_SPARSE, external::map_sparse),
    (u::UVM_UNMAP_EXTERNAL, external::unmap),
    (u::UVM_FREE, external::free),
    (u::UVM_ALLOC_SEMAPHORE_POOL, pool::allocate),
    (u::UVM_ALLOC_DEVICE_P2P, gpu::allocate_device_p2p),
    (u::UVM_TOOLS_READ_PROCESS_MEMORY, tools::read_memory),
    (u::UVM_TOOLS_WRITE_PROCESS_MEMORY, tools::write_memory),
    (u::UVM_TOOLS_GET_PROCESSOR_UUID_TABLE, tools::uuid_table),
    (u::UVM_TOOLS_GET_PROCESSOR_UUID_TABLE_V2, tools::uuid_table_v2),
    (u::UVM_TOOLS_FLUSH_EVENTS, tools::flush_events),
    (u::UVM_MAP_DYNAMIC_PARALLELISM_REGION, pool::map_sked_reflected),
    (u::UVM_CREATE_RANGE_GROUP, managed::create_group),
    (u::UVM_DESTROY_RANGE_GROUP, managed::destroy_group),
    (u::UVM_SET_RANGE_GROUP, managed::set_group),
    (u::UVM_PREVENT_MIGRATION_RANGE_GROUPS, managed::prevent_migration),
    (u::UVM_ALLOW_MIGRATION_RANGE_GROUPS, managed::allow_migration),
    (u::UVM_SET_PREFERRED_LOCATION, managed::set_preferred_location),
    (u::UVM_UNSET_PREFERRED_LOCATION, managed::unset_preferred_location),
    (u::UVM_ENABLE_READ_DUPLICATION, managed::read_duplication),
    (u::UVM_DISABLE_READ_DUPLICATION, managed::read_duplication),
    (u::UVM_SET_ACCESSED_BY, managed::accessed_by),
    (u::UVM_UNSET_ACCESSED_BY, managed::accessed_by),
    (u::UVM_MIGRATE, managed::migrate),
    (u::UVM_MIGRATE_RANGE_GROUP, managed::migrate_group),
    (u::UVM_DISCARD, managed::discard),
    (u::UVM_VALIDATE_VA_RANGE, validate_va_range),
    (u::UVM_PAGEABLE_MEM_ACCESS, pageable_mem_access),
    (u::UVM_POPULATE_PAGEABLE, populate_pageable),
    (u::UVM_CLEAN_UP_ZOMBIE_RESOURCES, nothing_to_do),
    (u::UVM_CLEAR_ALL_ACCESS_COUNTERS, nothing_to_do),
];

/// Runs a call of a UVM descriptor. The request is the bare number; the size is the module's own.
pub(crate) fn ioctl(kernel: &mut Kernel, fd: Fd, request: u32, argument: &mut [u8]) -> Result<(), Errno> {
    // The module's own call does nothing: the descriptor's end is what ends its VA space.
    if request == u::UVM_DEINITIALIZE {
        return Ok(());
    }
    let branch = kernel.branch;
    let call = u::call(request).filter(|call| call.exists(branch)).ok_or(Errno::ENOSYS)?;
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
pub(crate) fn close(kernel: &mut Kernel, file: File) {
    match file {
        File::Fresh => {}
        File::Mm { of } => {
            if let Some(space) = kernel.uvm_space(of) {
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

/// What `mmap` of a UVM descriptor maps.
pub(crate) struct ClientView {
    pub(crate) backing: Arc<Backing>,
    pub(crate) offset: u64,
}

impl Kernel {
    /// The VA space of a file, by serial; `None` where it is gone or has none.
    fn uvm_space(&mut self, serial: u64) -> Option<&mut Space> {
        match &mut self.files.get_mut(&serial)?.uvm {
            File::Space(space) => Some(space),
            File::Fresh | File::Mm { .. } => None,
        }
    }

    /// `mmap` of a UVM descriptor: a semaphore pool that is there, or managed memory that this makes. The file offset
    /// is the address. `process` is the caller's: a VA space that keeps a process's memory is for that one alone.
    pub(crate) fn uvm_mmap(
        &mut self,
        fd: Fd,
        mapping: nv_abi::Mapping,
        process: u32,
    ) -> Result<ClientView, Errno> {
        let File::Space(space) = &mut self.file_mut(fd)?.uvm else { return Err(Errno::EBADFD) };
        if space.mm == Mm::Held && space.process != process {
            return Err(Errno::EOPNOTSUPP);
        }
        if mapping.address != Some(mapping.offset) {
            return Err(Errno::EINVAL);
        }
        let length = mapping.length.checked_next_multiple_of(PAGE).ok_or(Errno::EINVAL)?;
        let end = range_end(mapping.offset, length).map_err(|_| Errno::EINVAL)?;
        managed::map(space, mapping.offset, end)
    }

    /// `munmap` of a mapping of a UVM descriptor: managed memory goes with it, from whichever VA space has it.
    pub(crate) fn uvm_munmap(&mut self, serial: u64, base: u64, length: u64) {
        if let Some(space) = self.uvm_space(serial) {
            managed::unmap(space, base, base.saturating_add(length));
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
fn range_end(base: u64, length: u64) -> Result<u64, Status> {
    let aligned = base.is_multiple_of(PAGE) && length.is_multiple_of(PAGE);
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
                process: 0,
                gpus: BTreeMap::new(),
                peers: BTreeSet::new(),
                ranges: BTreeMap::new(),
                channels: BTreeMap::new(),
                groups: BTreeMap::new(),
                last_group: 0,
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
            space.process = std::process::id();
            *file = File::Mm { of };
            Ok(())
        }
        Mm::Held => Err(Status::INVALID_STATE.into()),
        Mm::Released => Err(Status::PAGE_TABLE_NOT_AVAIL.into()),
    }
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

fn validate_va_range(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    let (base, length) = (p.get(&Validate::base)?, p.get(&Validate::length)?);
    match space.ranges.get(&base) {
        Some(range) if Some(range.end) == base.checked_add(length) => Ok(()),
        _ => Err(Status::INVALID_ADDRESS.into()),
    }
}

fn pageable_mem_access(_: &mut Kernel, _: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    // Measured on H200: a GPU on PCI reaches no memory that was not given to it.
    Ok(p.set(&Pageable::pageableMemAccess, 0)?)
}

/// POPULATE_PAGEABLE: the client's pages are there whenever they are touched.
fn populate_pageable(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    // Every flag is for tests or for the module itself.
    if p.get(&Populate::flags)? != 0 {
        return Err(Status::INVALID_ARGUMENT.into());
    }
    let (base, length) = (p.get(&Populate::base)?, p.get(&Populate::length)?);
    let end = range_end(base, length)?;
    // Managed memory is not pageable, and what is not mapped cannot be populated.
    if space.overlaps(base, end) || crate::client_memory::read(end - 1, &mut [0]).is_err() {
        return Err(Status::INVALID_ADDRESS.into());
    }
    Ok(())
}

/// CLEAN_UP_ZOMBIE_RESOURCES and CLEAR_ALL_ACCESS_COUNTERS: managed memory goes with its mapping, so that no zombie is
/// ever left, and no access is counted.
fn nothing_to_do(_: &mut Kernel, _: &mut Space, _: &mut Record) -> Result<(), Refusal> {
    Ok(())
}

impl Space {
    /// The address space of a GPU that is registered with one.
    fn gpu_space(&self, uuid: &Uuid) -> Result<Arc<VaSpace>, Status> {
        let space = self.gpus.get(uuid).and_then(|registered| registered.space.clone());
        space.ok_or(Status::INVALID_DEVICE)
    }

    /// GPUs that have an address space here.
    fn gpus_with_space(&self) -> Vec<(Uuid, Arc<VaSpace>)> {
        self.gpus.iter().filter_map(|(uuid, gpu)| Some((*uuid, gpu.space.clone()?))).collect()
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

    /// Maps a whole range for one GPU, with memory of the computer's.
    fn map_whole(
        &mut self,
        base: u64,
        uuid: Uuid,
        space: &VaSpace,
        backing: &Arc<Backing>,
        offset: u64,
        access: Access,
    ) -> Result<(), Status> {
        let range = self.ranges.get_mut(&base).ok_or(Status::INVALID_ADDRESS)?;
        if range.end > space.space.limit() {
            return Err(Status::OUT_OF_RANGE);
        }
        space
            .space
            .map(base, range.end - base, Arc::clone(backing), offset, access)
            .map_err(|_| Status::UVM_ADDRESS_IN_USE)?;
        let mapping = Mapping { end: range.end, page_size: PAGE, memory: None };
        range.mappings.entry(uuid).or_default().insert(base, mapping);
        Ok(())
    }

    /// Takes a range away, with everything that is mapped there.
    fn remove_range(&mut self, base: u64) {
        let Some(range) = self.ranges.remove(&base) else { return };
        for (uuid, mappings) in range.mappings {
            let Ok(va_space) = self.gpu_space(&uuid) else { continue };
            for (start, mapping) in mappings {
                // Made by `map` of the same address space, so that the range is sound; nothing is left to be done
                // about a failure.
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
        self.channels.retain(|_, (of, _)| of != uuid);
        self.ranges.retain(|_, range| match &range.kind {
            RangeKind::Channels { gpu, .. } | RangeKind::SkedReflected { gpu } => gpu != uuid,
            _ => true,
        });
        if let Some(registered) = self.gpus.get_mut(uuid) {
            registered.release();
            registered.space = None;
        }
    }
}
