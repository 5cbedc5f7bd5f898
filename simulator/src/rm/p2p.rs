//! `NV50_THIRD_PARTY_P2P`: what other devices on the bus may reach. There are none; the registrations are kept.

use nv_abi::{
    Record,
    rm::{
        NV503C_CTRL_REGISTER_VA_SPACE_PARAMS as RegisterSpace,
        NV503C_CTRL_REGISTER_VIDMEM_PARAMS as RegisterMemory,
        NV503C_CTRL_UNREGISTER_VA_SPACE_PARAMS as UnregisterSpace,
        NV503C_CTRL_UNREGISTER_VIDMEM_PARAMS as UnregisterMemory, Status,
    },
};

use super::{Kernel, Kind, MemoryHome, Refusal, control::Target};

/// The token of the first address space of an object; opaque to clients.
const FIRST_TOKEN: u64 = 0xfe00;

impl Kernel {
    fn p2p(&mut self, target: Target) -> Result<(&mut Vec<u32>, &mut Vec<u32>), Status> {
        match &mut self.object_mut(target.client, target.object)?.kind {
            Kind::ThirdPartyP2p { spaces, memory, .. } => Ok((spaces, memory)),
            _ => Err(Status::INVALID_OBJECT_HANDLE),
        }
    }

    pub(super) fn p2p_register_space(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let handle = p.get(&RegisterSpace::hVASpace)? as u32;
        self.va_space(target.client, handle)?;
        let (spaces, _) = self.p2p(target)?;
        if spaces.contains(&handle) {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        let token = FIRST_TOKEN + spaces.len() as u64;
        spaces.push(handle);
        // It cannot live without the space from now on.
        self.object_mut(target.client, target.object)?.depends.push(handle);
        Ok(p.set(&RegisterSpace::vaSpaceToken, token)?)
    }

    pub(super) fn p2p_unregister_space(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let handle = p.get(&UnregisterSpace::hVASpace)? as u32;
        let (spaces, _) = self.p2p(target)?;
        let at = spaces.iter().position(|known| *known == handle).ok_or(Status::OBJECT_NOT_FOUND)?;
        spaces.remove(at);
        self.object_mut(target.client, target.object)?.depends.retain(|known| *known != handle);
        Ok(())
    }

    pub(super) fn p2p_register_memory(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let handle = p.get(&RegisterMemory::hMemory)? as u32;
        let memory = self.memory(target.client, handle)?;
        let (size, offset) = (p.get(&RegisterMemory::size)?, p.get(&RegisterMemory::offset)?);
        if !matches!(memory.home, MemoryHome::Video { .. }) {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        if offset.checked_add(size).is_none_or(|end| end > memory.size) {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        let (_, registered) = self.p2p(target)?;
        registered.push(handle);
        Ok(())
    }

    pub(super) fn p2p_unregister_memory(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let handle = p.get(&UnregisterMemory::hMemory)? as u32;
        let (_, registered) = self.p2p(target)?;
        let at = registered.iter().position(|known| *known == handle).ok_or(Status::OBJECT_NOT_FOUND)?;
        registered.remove(at);
        Ok(())
    }
}
