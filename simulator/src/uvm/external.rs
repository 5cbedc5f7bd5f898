//! External ranges: addresses that the client reserves and maps memory objects into, GPU by GPU.

use std::sync::Arc;

use nv_abi::{
    Branch, Record, StructField,
    rm::Status,
    uvm::{
        UVM_CREATE_EXTERNAL_RANGE_PARAMS as CreateRange, UVM_FREE_PARAMS as Free,
        UVM_MAP_EXTERNAL_ALLOCATION_PARAMS as Map, UVM_MAP_EXTERNAL_SPARSE_PARAMS as Sparse,
        UVM_UNMAP_EXTERNAL_PARAMS as Unmap,
    },
};

use super::{Mapping, Range, RangeKind, Space, Uuid, client, range_end, uuid};
use crate::{
    memory::{Access, Backing, PAGE},
    rm::{Kernel, MemoryHome, Refusal},
};

pub(super) fn create(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    let (base, length) = (p.get(&CreateRange::base)?, p.get(&CreateRange::length)?);
    let end = range_end(base, length)?;
    if space.overlaps(base, end) {
        return Err(Status::UVM_ADDRESS_IN_USE.into());
    }
    space.ranges.insert(base, Range::new(end, RangeKind::External));
    Ok(())
}

/// Whom to map for, and how.
pub(super) struct Attribute {
    pub(super) uuid: Uuid,
    pub(super) access: Access,
    pub(super) cached: bool,
}

/// Where a call has its array of UvmGpuMappingAttributes.
pub(super) struct AttributeFields {
    pub(super) count: StructField,
    pub(super) uuid: [StructField; 2],
    pub(super) mapping: StructField,
    pub(super) caching: StructField,
    pub(super) format: StructField,
}

const MAP_ATTRIBUTES: AttributeFields = AttributeFields {
    count: Map::gpuAttributesCount,
    uuid: [Map::perGpuAttributes_gpuUuidLow, Map::perGpuAttributes_gpuUuidHigh],
    mapping: Map::perGpuAttributes_gpuMappingType,
    caching: Map::perGpuAttributes_gpuCachingType,
    format: Map::perGpuAttributes_gpuFormatType,
};

impl AttributeFields {
    /// How many there are; refused where the struct has no room for as many.
    pub(super) fn count(&self, p: &Record) -> Result<u32, Refusal> {
        let count = p.get(&self.count)?;
        if count > self.mapping.count(p.branch()).into() {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        Ok(count as u32)
    }

    /// One of them. Types are checked before any GPU is looked for.
    pub(super) fn get(&self, p: &Record, i: u32) -> Result<Attribute, Refusal> {
        let mut uuid = [0; 16];
        for (half, field) in uuid.as_chunks_mut::<8>().0.iter_mut().zip(&self.uuid) {
            *half = p.get_at(field, i)?.to_le_bytes();
        }
        // UvmGpuMappingType: default, read-write-atomic, read-write, read-only.
        let access = match p.get_at(&self.mapping, i)? {
            0 | 1 => Access::ReadWriteAtomic,
            2 => Access::ReadWrite,
            3 => Access::ReadOnly,
            _ => return Err(Status::INVALID_ARGUMENT.into()),
        };
        // Caching: default, uncached, cached. Format: default, block linear.
        let caching = p.get_at(&self.caching, i)?;
        if caching > 2 || p.get_at(&self.format, i)? > 1 {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        Ok(Attribute { uuid, access, cached: caching == 2 })
    }
}

pub(super) fn map_allocation(kernel: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    let (base, length, offset) = (p.get(&Map::base)?, p.get(&Map::length)?, p.get(&Map::offset)?);
    let end = range_end(base, length)?;
    if !offset.is_multiple_of(PAGE) {
        return Err(Status::INVALID_ADDRESS.into());
    }
    let count = MAP_ATTRIBUTES.count(p)?;
    if count == 0 {
        return Err(Status::INVALID_ARGUMENT.into());
    }
    let range_base = space.external_range(base, end)?;
    let attributes = (0..count).map(|i| MAP_ATTRIBUTES.get(p, i)).collect::<Result<Vec<_>, _>>()?;
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
    mappings.or_default().insert(base, Mapping { end, page_size, memory: Some(memory) });
    Ok(())
}

/// MAP_EXTERNAL_SPARSE: pages of 64 KiB without memory, which replace what is mapped there.
pub(super) fn map_sparse(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    /// The pages that can be sparse.
    const SPARSE_PAGE: u64 = 64 << 10;
    let (base, length) = (p.get(&Sparse::base)?, p.get(&Sparse::length)?);
    let end = range_end(base, length)?;
    if !base.is_multiple_of(SPARSE_PAGE) || !length.is_multiple_of(SPARSE_PAGE) {
        return Err(Status::INVALID_ADDRESS.into());
    }
    let range = space.external_range(base, end)?;
    let uuid = uuid(p, &Sparse::gpuUuid_uuid)?;
    let va_space = space.gpu_space(&uuid)?;
    if end > va_space.space.limit() {
        return Err(Status::OUT_OF_RANGE.into());
    }
    space.unmap(range, &uuid, base, end)?;
    // Both are backed only where they are touched.
    let memory = |name| Backing::new(name, length).map(Arc::new).map_err(|_| Status::NO_MEMORY);
    let (zeroes, sink) = (memory("sparse range")?, memory("stores to a sparse range")?);
    let mapped = va_space.space.map_sparse(base, length, zeroes, sink);
    mapped.map_err(|_| Status::INVALID_ADDRESS)?;
    let mappings = space.ranges.get_mut(&range).ok_or(Status::INVALID_ADDRESS)?.mappings.entry(uuid);
    mappings.or_default().insert(base, Mapping { end, page_size: SPARSE_PAGE, memory: None });
    Ok(())
}

pub(super) fn unmap(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    let (base, length) = (p.get(&Unmap::base)?, p.get(&Unmap::length)?);
    let end = range_end(base, length)?;
    let range = space.external_range(base, end)?;
    let uuid = uuid(p, &Unmap::gpuUuid_uuid)?;
    space.gpu_space(&uuid)?;
    Ok(space.unmap(range, &uuid, base, end)?)
}

pub(super) fn free(kernel: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    let base = p.get(&Free::base)?;
    let range = space.ranges.get(&base).ok_or(Status::INVALID_ADDRESS)?;
    // From 590 on the base alone names the range.
    let length_differs =
        kernel.branch < Branch::R590 && Some(range.end) != base.checked_add(p.get(&Free::length)?);
    let freeable = matches!(
        range.kind,
        RangeKind::External | RangeKind::SemaphorePool { .. } | RangeKind::SkedReflected { .. }
    );
    if !freeable || length_differs {
        return Err(Status::INVALID_ADDRESS.into());
    }
    space.remove_range(base);
    Ok(())
}

impl Space {
    /// The base of the one external range that holds `base..end`.
    fn external_range(&self, base: u64, end: u64) -> Result<u64, Status> {
        match self.ranges.range(..=base).next_back() {
            Some((start, range)) if range.end >= end && matches!(range.kind, RangeKind::External) => {
                Ok(*start)
            }
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

    /// Removes what a GPU has mapped of another's memory.
    pub(super) fn unmap_peer(&mut self, uuid: &Uuid, owner: usize) {
        let Ok(va_space) = self.gpu_space(uuid) else { return };
        for mappings in self.ranges.values_mut().filter_map(|range| range.mappings.get_mut(uuid)) {
            mappings.retain(|start, mapping| {
                let home = mapping.memory.as_ref().map(|memory| memory.home);
                let peers = home == Some(MemoryHome::Video { gpu: owner });
                if peers {
                    // As above; nothing is left to be done about a failure.
                    let _ = va_space.space.unmap(*start, mapping.end - start);
                }
                !peers
            });
        }
    }
}
