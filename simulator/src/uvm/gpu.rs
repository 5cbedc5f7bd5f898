//! GPUs in a VA space: registration, their address spaces and channels, peers.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
};

use nv_abi::{
    Record,
    rm::{Status, flags::NV2080_ENGINE_TYPE_GRAPHICS},
    uvm::{
        UVM_ALLOC_DEVICE_P2P_PARAMS as DeviceP2p, UVM_ENABLE_PEER_ACCESS_PARAMS as Peer,
        UVM_ENABLE_SYSTEM_WIDE_ATOMICS_PARAMS as Atomics, UVM_PAGEABLE_MEM_ACCESS_ON_GPU_PARAMS as Pageable,
        UVM_REGISTER_CHANNEL_PARAMS as RegisterChannel, UVM_REGISTER_GPU_PARAMS as RegisterGpu,
        UVM_REGISTER_GPU_VASPACE_PARAMS as RegisterSpace, UVM_UNREGISTER_CHANNEL_PARAMS as UnregisterChannel,
        UVM_UNREGISTER_GPU_PARAMS as UnregisterGpu, UVM_UNREGISTER_GPU_VASPACE_PARAMS as UnregisterSpace,
    },
};

use super::{Mm, Range, RangeKind, Registered, Space, Uuid, client, range_end, uuid};
use crate::{
    memory::PAGE,
    rm::{Kernel, Kind, Refusal},
};

pub(super) fn register(kernel: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    let uuid = uuid(p, &RegisterGpu::gpu_uuid_uuid)?;
    let gpu = kernel.gpus.iter().position(|gpu| gpu.uuid == uuid).ok_or(Status::GPU_UUID_NOT_FOUND)?;
    if space.gpus.contains_key(&uuid) {
        return Err(Status::INVALID_DEVICE.into());
    }
    // GPUs behind NVLink are peers from the start.
    let linked: Vec<Uuid> = space
        .gpus
        .iter()
        .filter(|(_, other)| nvlink(kernel, gpu, other.gpu))
        .map(|(uuid, _)| *uuid)
        .collect();
    space.peers.extend(linked.into_iter().map(|other| (uuid.min(other), uuid.max(other))));
    space.gpus.insert(uuid, Registered { gpu, space: None });
    p.set(&RegisterGpu::numaEnabled, 0)?;
    Ok(p.set(&RegisterGpu::numaNodeId, 0xffff_ffff)?)
}

pub(super) fn unregister(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    let uuid = uuid(p, &UnregisterGpu::gpu_uuid_uuid)?;
    if !space.gpus.contains_key(&uuid) {
        return Err(Status::INVALID_DEVICE.into());
    }
    // Memory of the GPU goes from its peers too.
    let peers: Vec<(Uuid, Uuid)> =
        space.peers.iter().filter(|(a, b)| *a == uuid || *b == uuid).copied().collect();
    for pair in peers {
        disconnect(space, pair);
    }
    space.drop_gpu_space(&uuid);
    space.gpus.remove(&uuid);
    Ok(())
}

pub(super) fn register_vaspace(
    kernel: &mut Kernel,
    space: &mut Space,
    p: &mut Record,
) -> Result<(), Refusal> {
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
    registered.space = Some(Arc::clone(&found));
    if let Err(status) = space.map_shared_ranges(uuid, &found) {
        space.drop_gpu_space(&uuid);
        return Err(status.into());
    }
    Ok(())
}

pub(super) fn unregister_vaspace(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    let uuid = uuid(p, &UnregisterSpace::gpuUuid_uuid)?;
    space.gpu_space(&uuid)?;
    space.drop_gpu_space(&uuid);
    Ok(())
}

pub(super) fn register_channel(
    kernel: &mut Kernel,
    space: &mut Space,
    p: &mut Record,
) -> Result<(), Refusal> {
    let uuid = uuid(p, &RegisterChannel::gpuUuid_uuid)?;
    let va_space = space.gpu_space(&uuid)?;
    if space.mm == Mm::Released {
        return Err(Status::INVALID_STATE.into());
    }
    let client = client(kernel, p, &RegisterChannel::rmCtrlFd, &RegisterChannel::hClient)?;
    let handle = p.get(&RegisterChannel::hChannel)? as u32;
    let key = (client, handle);
    if space.channels.contains_key(&key) {
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
    if channel.engine == NV2080_ENGINE_TYPE_GRAPHICS {
        let (base, length) = (p.get(&RegisterChannel::base)?, p.get(&RegisterChannel::length)?);
        let end = range_end(base, length)?;
        if end > va_space.space.limit() {
            return Err(Status::OUT_OF_RANGE.into());
        }
        // Measured on H200: channels of one group share their context's buffers.
        let shared = space.ranges.iter_mut().find_map(|(start, range)| match &mut range.kind {
            RangeKind::Channels { gpu, group, users } if *gpu == uuid && *group == channel.group => {
                users.insert(key);
                Some(*start)
            }
            _ => None,
        });
        let start = match shared {
            Some(start) => start,
            None => {
                // The buffers themselves are the module's own; no simulated engine looks into them.
                let bytes = kernel.gpus[channel.gpu].profile.context_buffer_bytes;
                let bytes = bytes.min(length).next_multiple_of(PAGE);
                let start = space.find_room(base, end, bytes).ok_or(Status::INVALID_ADDRESS)?;
                let kind =
                    RangeKind::Channels { gpu: uuid, group: channel.group, users: BTreeSet::from([key]) };
                space.ranges.insert(start, Range::new(start + bytes, kind));
                start
            }
        };
        at = Some(start);
    }
    space.channels.insert(key, (uuid, at));
    Ok(())
}

pub(super) fn unregister_channel(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    // The UUID is gone from 590 on: the pair of handles is enough.
    let client = p.get(&UnregisterChannel::hClient)? as u32;
    let key = (client, p.get(&UnregisterChannel::hChannel)? as u32);
    let (_, base) = space.channels.remove(&key).ok_or(Status::INVALID_CHANNEL)?;
    if let Some(base) = base
        && let Some(range) = space.ranges.get_mut(&base)
        && let RangeKind::Channels { users, .. } = &mut range.kind
    {
        users.remove(&key);
        if users.is_empty() {
            space.ranges.remove(&base);
        }
    }
    Ok(())
}

/// A pair of registered GPUs, in one order.
fn pair(space: &Space, p: &Record) -> Result<(Uuid, Uuid), Refusal> {
    let (a, b) = (uuid(p, &Peer::gpuUuidA_uuid)?, uuid(p, &Peer::gpuUuidB_uuid)?);
    if a == b || !space.gpus.contains_key(&a) || !space.gpus.contains_key(&b) {
        return Err(Status::INVALID_DEVICE.into());
    }
    Ok((a.min(b), a.max(b)))
}

/// Whether two GPUs of the machine are connected by NVLink.
fn nvlink(kernel: &Kernel, a: usize, b: usize) -> bool {
    kernel.gpus[a].profile.nvlink && kernel.gpus[b].profile.nvlink
}

pub(super) fn enable_peer_access(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    let pair = pair(space, p)?;
    if space.peers.insert(pair) { Ok(()) } else { Err(Status::INVALID_DEVICE.into()) }
}

/// The struct is the same as that of enabling.
pub(super) fn disable_peer_access(
    kernel: &mut Kernel,
    space: &mut Space,
    p: &mut Record,
) -> Result<(), Refusal> {
    let pair = pair(space, p)?;
    if !space.peers.contains(&pair) || nvlink(kernel, space.gpus[&pair.0].gpu, space.gpus[&pair.1].gpu) {
        return Err(Status::INVALID_DEVICE.into());
    }
    disconnect(space, pair);
    Ok(())
}

/// Ends peer access, with the mappings that live from it.
fn disconnect(space: &mut Space, pair: (Uuid, Uuid)) {
    space.peers.remove(&pair);
    let index = |uuid: &Uuid| space.gpus.get(uuid).map(|registered| registered.gpu);
    let (Some(a), Some(b)) = (index(&pair.0), index(&pair.1)) else { return };
    space.unmap_peer(&pair.0, b);
    space.unmap_peer(&pair.1, a);
}

/// ALLOC_DEVICE_P2P: needs all video memory in the window on the bus, mapped without write combining, which the module
/// does only when it is told to (`RmForceDisableIomapWC`).
pub(super) fn allocate_device_p2p(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    let (base, offset) = (p.get(&DeviceP2p::base)?, p.get(&DeviceP2p::offset)?);
    let start = base.checked_add(offset).ok_or(Status::INVALID_ARGUMENT)?;
    range_end(start, p.get(&DeviceP2p::length)?).map_err(|_| Status::INVALID_ARGUMENT)?;
    if !space.gpus.contains_key(&uuid(p, &DeviceP2p::gpuUuid_uuid)?) {
        return Err(Status::INVALID_DEVICE.into());
    }
    Err(Status::NOT_SUPPORTED.into())
}

pub(super) fn pageable_mem_access(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    if !space.gpus.contains_key(&uuid(p, &Pageable::gpu_uuid_uuid)?) {
        return Err(Status::INVALID_DEVICE.into());
    }
    Ok(p.set(&Pageable::pageableMemAccess, 0)?)
}

/// System-wide atomics are a matter of each instruction since Volta: there is nothing to enable.
pub(super) fn system_wide_atomics(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    if !space.gpus.contains_key(&uuid(p, &Atomics::gpu_uuid_uuid)?) {
        return Err(Status::INVALID_DEVICE.into());
    }
    Err(Status::NOT_SUPPORTED.into())
}
