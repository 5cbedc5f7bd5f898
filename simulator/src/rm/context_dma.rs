//! Context DMAs: windows into memory objects, by which older clients name notifiers.

use std::sync::Arc;

use nv_abi::{
    Fd, Record,
    rm::{
        NV_CONTEXT_DMA_ALLOCATION_PARAMS as P, NVOS39_PARAMETERS as Alloc, NVOS49_PARAMETERS as Bind, Status,
        class::{self, class},
    },
};

use super::{Kernel, Kind, Memory, Object, Refusal, allocate::Allocation};

impl Kernel {
    /// The memory behind a window, and where the window begins. It must be a child of the window's parent.
    fn window(
        &self,
        client: u32,
        parent: Option<u32>,
        handle: u32,
        offset: u64,
        limit: u64,
    ) -> Result<(Arc<Memory>, u32), Status> {
        let object = self.object(client, handle)?;
        let Kind::Memory(memory) = &object.kind else { return Err(Status::INVALID_OBJECT_HANDLE) };
        if parent.is_some_and(|parent| parent != object.parent) {
            return Err(Status::INVALID_OBJECT_PARENT);
        }
        if offset.checked_add(limit).is_none_or(|last| last >= memory.size) {
            return Err(Status::INVALID_LIMIT);
        }
        Ok((Arc::clone(memory), object.parent))
    }

    pub(super) fn new_context_dma(&mut self, a: &mut Allocation) -> Result<Kind, Refusal> {
        let (handle, offset, limit) = (a.handle(&P::hMemory)?, a.get(&P::offset)?, a.get(&P::limit)?);
        let (memory, _) = self.window(a.client, Some(a.parent), handle, offset, limit)?;
        a.depends.push(handle);
        Ok(Kind::ContextDma { memory, offset })
    }

    /// RM_ALLOC_CONTEXT_DMA2: the parent is that of the memory.
    pub(super) fn rm_alloc_context_dma(&mut self, fd: Fd, p: &mut Record) -> Result<(), Refusal> {
        let client = p.get(&Alloc::hObjectParent)? as u32;
        self.client(fd, client, Status::INVALID_CLIENT)?;
        let row = class(p.get(&Alloc::hClass)? as u32).ok_or(Status::INVALID_CLASS)?;
        if row.number != class::NV01_CONTEXT_DMA {
            return Err(Status::INVALID_CLASS.into());
        }
        let handle = p.get(&Alloc::hMemory)? as u32;
        let (offset, limit) = (p.get(&Alloc::offset)?, p.get(&Alloc::limit)?);
        let (memory, parent) = self.window(client, None, handle, offset, limit)?;
        let new = self.place(client, parent, p.get(&Alloc::hObjectNew)? as u32, row)?;
        let mut object = Object::new(parent, row, Kind::ContextDma { memory, offset });
        object.depends.push(handle);
        self.insert(client, new, object)?;
        Ok(p.set(&Alloc::hObjectNew, new.into())?)
    }

    /// RM_BIND_CONTEXT_DMA: makes a window known to a channel; every channel here knows all.
    pub(super) fn rm_bind_context_dma(&mut self, fd: Fd, p: &mut Record) -> Result<(), Refusal> {
        let client = p.get(&Bind::hClient)? as u32;
        self.client(fd, client, Status::INVALID_CLIENT)?;
        let channel = self.object(client, p.get(&Bind::hChannel)? as u32)?;
        if !matches!(channel.kind, Kind::Channel(_)) {
            return Err(Status::INVALID_CHANNEL.into());
        }
        match self.object(client, p.get(&Bind::hCtxDma)? as u32)?.kind {
            Kind::ContextDma { .. } => Ok(()),
            _ => Err(Status::INVALID_OBJECT_HANDLE.into()),
        }
    }

    /// The notifiers that a channel names: a memory object, or a window into one.
    pub(super) fn notifiers(&self, client: u32, handle: u32) -> Result<(Arc<Memory>, u64), Status> {
        match &self.object(client, handle)?.kind {
            Kind::Memory(memory) => Ok((Arc::clone(memory), 0)),
            Kind::ContextDma { memory, offset } => Ok((Arc::clone(memory), *offset)),
            _ => Err(Status::INVALID_OBJECT_HANDLE),
        }
    }
}
