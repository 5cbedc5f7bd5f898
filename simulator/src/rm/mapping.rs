//! Mappings that RM makes: of memory into the client through `mmap`, and of memory into a GPU address space.

use std::sync::Arc;

use nv_abi::{
    Bits, BitsMut, Branch, Fd, Node, Record,
    rm::{
        NVOS34_PARAMETERS as Unmap, NVOS46_PARAMETERS as MapDma, NVOS47_PARAMETERS as UnmapDma,
        NVOS56_PARAMETERS as UpdateMapping, Status, flags::NVOS33_FLAGS,
        nv_ioctl_nvos33_parameters_with_fd as Map,
    },
};

use super::{
    CpuMapping, DmaMapping, Gpu, Kernel, Kind, MapContext, MemoryHome, Refusal, VaSpace, channel::USERD_BYTES,
};
use crate::memory::{Access, MapError, PAGE};

nv_abi::layout! {
    /// NVOS46 `flags` (`nvos.h`): the ones that decide where and how.
    mod NVOS46_FLAGS: 32 bits {
        ACCESS 1:0 { READ_WRITE = 0, READ_ONLY = 1, WRITE_ONLY = 2 };
        DMA_OFFSET_FIXED 15:15;
    }
}

impl Kernel {
    /// RM_MAP_MEMORY: leaves on a descriptor what its next `mmap` maps.
    pub(super) fn rm_map_memory(&mut self, fd: Fd, p: &mut Record) -> Result<(), Refusal> {
        use NVOS33_FLAGS::{CACHING_TYPE, MAPPING};
        let (client, device) = (p.get(&Map::hClient)? as u32, p.get(&Map::hDevice)? as u32);
        let handle = p.get(&Map::hMemory)? as u32;
        let (offset, length) = (p.get(&Map::offset)?, p.get(&Map::length)?);
        let mut flags = (p.get(&Map::flags)? as u32).to_le_bytes();
        let read_only = Bits::new(&flags).get(&NVOS33_FLAGS::ACCESS)? == NVOS33_FLAGS::ACCESS::READ_ONLY;
        self.client(fd, client, Status::INVALID_CLIENT)?;
        if !matches!(self.object(client, device)?.kind, Kind::Device { .. } | Kind::Subdevice { .. }) {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        // Measured on H200: the answer's flags say how the mapping was made.
        let (backing, size, node, doorbell, (caching, way)) = match &self.object(client, handle)?.kind {
            Kind::Usermode { gpu, in_bar1 } => {
                let backing = Arc::clone(&self.gpus[*gpu].usermode);
                let how = if *in_bar1 {
                    (CACHING_TYPE::UNCACHED, Some(MAPPING::REFLECTED))
                } else {
                    (CACHING_TYPE::DEFAULT, None)
                };
                (backing, Gpu::USERMODE_BYTES, Node::Gpu(*gpu as u32), Some(*gpu), how)
            }
            Kind::Memory(memory) => {
                let (node, how) = match memory.home {
                    MemoryHome::Video { gpu } => {
                        let how = (CACHING_TYPE::WRITECOMBINED, Some(MAPPING::REFLECTED));
                        (Node::Gpu(gpu as u32), how)
                    }
                    MemoryHome::System => (Node::Ctl, (CACHING_TYPE::DEFAULT, Some(MAPPING::DIRECT))),
                    // Pinned with NO_MAP: the client has its own mapping.
                    MemoryHome::Client => return Err(Status::INVALID_OBJECT_HANDLE.into()),
                };
                (Arc::clone(&memory.backing), memory.size, node, None, how)
            }
            Kind::Channel(channel) => {
                let userd = channel.own_userd.as_ref().ok_or(Status::INVALID_REQUEST)?;
                if offset >= USERD_BYTES {
                    return Err(Status::INVALID_BASE.into());
                }
                let node = Node::Gpu(channel.gpu as u32);
                (Arc::clone(userd), USERD_BYTES, node, None, (CACHING_TYPE::DEFAULT, None))
            }
            _ => return Err(Status::INVALID_OBJECT_HANDLE.into()),
        };
        let inside = offset.checked_add(length).is_some_and(|end| end <= size);
        if length == 0 || !inside || !offset.is_multiple_of(PAGE) {
            return Err(Status::INVALID_LIMIT.into());
        }
        let target = Fd(p.get(&Map::fd)? as u32 as i32);
        let file = self.file_mut(target).map_err(|_| Status::INVALID_ARGUMENT)?;
        if file.node != node {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        if file.context.is_some() {
            return Err(Status::STATE_IN_USE.into());
        }
        file.context = Some(MapContext { backing, offset, length, read_only, doorbell });
        // What the client names the mapping by later; nothing is mapped there.
        let cookie = self.next_cookie * PAGE;
        self.next_cookie += 1;
        self.cpu_mappings.insert(cookie, CpuMapping { client, memory: handle });
        p.set(&Map::pLinearAddress, cookie)?;
        BitsMut::new(&mut flags).set(&CACHING_TYPE, caching)?;
        if let Some(way) = way {
            BitsMut::new(&mut flags).set(&MAPPING, way)?;
        }
        Ok(p.set(&Map::flags, u32::from_le_bytes(flags).into())?)
    }

    /// Forgets the CPU mapping of a client's memory that goes by an address.
    fn take_cpu_mapping(&mut self, mapping: CpuMapping, address: u64) -> Result<(), Status> {
        match self.cpu_mappings.get(&address) {
            Some(known) if *known == mapping => {
                self.cpu_mappings.remove(&address);
                Ok(())
            }
            _ => Err(Status::INVALID_ADDRESS),
        }
    }

    /// RM_UNMAP_MEMORY: forgets a mapping; the client's own `munmap` takes it away.
    pub(super) fn rm_unmap_memory(&mut self, fd: Fd, p: &mut Record) -> Result<(), Refusal> {
        let (client, handle) = (p.get(&Unmap::hClient)? as u32, p.get(&Unmap::hMemory)? as u32);
        self.client(fd, client, Status::INVALID_CLIENT)?;
        self.object(client, handle)?;
        let mapping = CpuMapping { client, memory: handle };
        Ok(self.take_cpu_mapping(mapping, p.get(&Unmap::pLinearAddress)?)?)
    }

    /// RM_UPDATE_DEVICE_MAPPING_INFO: the client names a mapping by another address from now on.
    pub(super) fn rm_update_device_mapping_info(&mut self, fd: Fd, p: &mut Record) -> Result<(), Refusal> {
        let client = p.get(&UpdateMapping::hClient)? as u32;
        let handle = p.get(&UpdateMapping::hMemory)? as u32;
        self.client(fd, client, Status::INVALID_CLIENT)?;
        self.object(client, handle)?;
        let (old, new) = (p.get(&UpdateMapping::pOldCpuAddress)?, p.get(&UpdateMapping::pNewCpuAddress)?);
        let mapping = CpuMapping { client, memory: handle };
        self.take_cpu_mapping(mapping, old)?;
        self.cpu_mappings.insert(new, mapping);
        Ok(())
    }

    /// The address space and range of a virtual memory object.
    fn virtual_memory(&self, client: u32, handle: u32) -> Result<(Arc<VaSpace>, u64, u64), Status> {
        match &self.object(client, handle)?.kind {
            Kind::VirtualMemory { space, offset, limit } => Ok((Arc::clone(space), *offset, *limit)),
            _ => Err(Status::INVALID_OBJECT_HANDLE),
        }
    }

    /// RM_MAP_MEMORY_DMA: maps memory into the address space of a virtual memory object.
    pub(super) fn rm_map_memory_dma(&mut self, fd: Fd, p: &mut Record) -> Result<(), Refusal> {
        let (client, device) = (p.get(&MapDma::hClient)? as u32, p.get(&MapDma::hDevice)? as u32);
        let (dma, handle) = (p.get(&MapDma::hDma)? as u32, p.get(&MapDma::hMemory)? as u32);
        self.client(fd, client, Status::INVALID_CLIENT)?;
        if !matches!(self.object(client, device)?.kind, Kind::Device { .. } | Kind::Subdevice { .. }) {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        let (space, first, limit) = self.virtual_memory(client, dma)?;
        let memory = Arc::clone(self.memory(client, handle)?);
        let (offset, length) = (p.get(&MapDma::offset)?, p.get(&MapDma::length)?);
        let length = length.checked_next_multiple_of(PAGE).ok_or(Status::INVALID_LIMIT)?;
        let inside = offset.checked_add(length).is_some_and(|end| end <= memory.size);
        if length == 0 || !inside || !offset.is_multiple_of(PAGE) {
            return Err(Status::INVALID_LIMIT.into());
        }
        let flags = (p.get(&MapDma::flags)? as u32).to_le_bytes();
        let flags = Bits::new(&flags);
        let access = match flags.get(&NVOS46_FLAGS::ACCESS)? {
            NVOS46_FLAGS::ACCESS::READ_ONLY => Access::ReadOnly,
            _ if memory.device_read_only => Access::ReadOnly,
            _ => Access::ReadWriteAtomic,
        };
        let va = if flags.get(&NVOS46_FLAGS::DMA_OFFSET_FIXED)? != 0 {
            p.get(&MapDma::dmaOffset)?
        } else {
            // Above everything else, on a boundary that any page size suits.
            let lowest = space.space.snapshot().end().max(first).max(1 << 32);
            lowest.checked_next_multiple_of(2 << 20).ok_or(Status::INVALID_OFFSET)?
        };
        let last = va.checked_add(length - 1).ok_or(Status::INVALID_OFFSET)?;
        if va < first || last > limit {
            return Err(Status::INVALID_OFFSET.into());
        }
        space.space.map(va, length, Arc::clone(&memory.backing), offset, access).map_err(
            |error| match error {
                MapError::Overlap { .. } => Status::NO_MEMORY,
                MapError::Range { .. } => Status::INVALID_OFFSET,
                MapError::Memory { .. } => Status::INVALID_LIMIT,
            },
        )?;
        p.set(&MapDma::dmaOffset, va)?;
        let mapping = DmaMapping { client, memory: handle, virtual_memory: dma, space, va, bytes: length };
        self.dma_mappings.push(mapping);
        Ok(())
    }

    /// RM_UNMAP_MEMORY_DMA: takes away what RM_MAP_MEMORY_DMA mapped at an address.
    pub(super) fn rm_unmap_memory_dma(&mut self, fd: Fd, p: &mut Record) -> Result<(), Refusal> {
        let client = p.get(&UnmapDma::hClient)? as u32;
        self.client(fd, client, Status::INVALID_CLIENT)?;
        let (space, ..) = self.virtual_memory(client, p.get(&UnmapDma::hDma)? as u32)?;
        let va = p.get(&UnmapDma::dmaOffset)?;
        let (start, bytes, _) = space.space.snapshot().at(va).ok_or(Status::INVALID_OFFSET)?;
        if start != va {
            return Err(Status::INVALID_OFFSET.into());
        }
        // Since 550 a size may name a part.
        let part = if self.branch >= Branch::R550 { p.get(&UnmapDma::size)? } else { 0 };
        if part > bytes || !part.is_multiple_of(PAGE) {
            return Err(Status::INVALID_LIMIT.into());
        }
        let bytes = if part == 0 { bytes } else { part };
        space.space.unmap(va, bytes).map_err(|_| Status::INVALID_OFFSET)?;
        // What is left of a mapping lies behind the part.
        for mapping in &mut self.dma_mappings {
            if mapping.va == va && Arc::ptr_eq(&mapping.space, &space) {
                mapping.va += bytes;
                mapping.bytes = mapping.bytes.saturating_sub(bytes);
            }
        }
        self.dma_mappings.retain(|mapping| mapping.bytes > 0);
        Ok(())
    }
}
