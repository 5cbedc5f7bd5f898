//! Controls about which processes use a GPU. All simulated clients are of this one.

use std::{collections::BTreeSet, sync::Arc};

use nv_abi::{
    Record,
    rm::{
        NV2080_CTRL_GPU_GET_PID_INFO_PARAMS as PidInfo, NV2080_CTRL_GPU_GET_PIDS_PARAMS as Pids, Status,
        class::{MPS_COMPUTE, NV20_SUBDEVICE_0},
    },
};

use super::super::{Client, Kernel, Kind, MemoryHome, Object, Refusal, control::Target};

/// NV2080_CTRL_GPU_GET_PIDS_ID_TYPE.
const BY_CLASS: u64 = 0;
const BY_GUEST: u64 = 1;
/// NV2080_CTRL_GPU_PID_INFO_INDEX_VIDEO_MEMORY_USAGE.
const VIDEO_MEMORY: u64 = 0;
/// PARTITIONID_INVALID: no part of a GPU.
const NO_PARTITION: u64 = 0xffff_ffff;

/// Bytes of video memory that a process has.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    /// Its own alone.
    private: u64,
    /// Its own, which others have handles of.
    owned: u64,
    /// Other handles.
    duplicated: u64,
}

impl Kernel {
    /// Clients that have a device of the GPU.
    fn users(&self, gpu: usize) -> impl Iterator<Item = &Client> {
        let is_device =
            move |object: &Object| matches!(object.kind, Kind::Device { gpu: of, .. } if of == gpu);
        self.clients.values().filter(move |client| client.objects.values().any(is_device))
    }

    /// GPU_GET_PIDS: processes with an object of a class.
    pub(in super::super) fn pids(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let gpu = self.gpu_of(target.client, target.object)?;
        let id = p.get(&Pids::id)? as u32;
        let used = match p.get(&Pids::idType)? {
            BY_CLASS => self.users(gpu).any(|client| {
                client.objects.values().filter(|object| object.class.number == id).any(|object| match id {
                    // Of any GPU: the module looks only whether the client has a device of this one.
                    NV20_SUBDEVICE_0 | MPS_COMPUTE => true,
                    _ => {
                        matches!(object.kind, Kind::Engine)
                            && self.gpu_of(client.handle, object.parent) == Ok(gpu)
                    }
                })
            }),
            BY_GUEST => false,
            _ => return Err(Status::INVALID_ARGUMENT.into()),
        };
        if used {
            p.set(&Pids::pidTbl, std::process::id().into())?;
        }
        Ok(p.set(&Pids::pidTblCount, used.into())?)
    }

    /// GPU_GET_PID_INFO: the video memory that processes have.
    pub(in super::super) fn pid_info(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let gpu = self.gpu_of(target.client, target.object)?;
        let count = p.get(&PidInfo::pidInfoListCount)?;
        if count == 0 || count > u64::from(PidInfo::pidInfoList_pid.count) {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        for i in 0..count as u32 {
            p.set_at(&PidInfo::pidInfoList_computeInstanceId, i, NO_PARTITION)?;
            p.set_at(&PidInfo::pidInfoList_gpuInstanceId, i, NO_PARTITION)?;
            let pid = p.get_at(&PidInfo::pidInfoList_pid, i)?;
            if p.get_at(&PidInfo::pidInfoList_index, i)? != VIDEO_MEMORY || pid == 0 {
                p.set_at(&PidInfo::pidInfoList_result, i, Status::INVALID_ARGUMENT.0.into())?;
                continue;
            }
            let own = pid == u64::from(std::process::id());
            let usage = if own { self.memory_usage(gpu) } else { Usage::default() };
            p.set_at(&PidInfo::pidInfoList_memPrivate, i, usage.private)?;
            p.set_at(&PidInfo::pidInfoList_memSharedOwned, i, usage.owned)?;
            p.set_at(&PidInfo::pidInfoList_memSharedDuped, i, usage.duplicated)?;
            p.set_at(&PidInfo::pidInfoList_result, i, 0)?;
        }
        Ok(())
    }

    /// The GPU's memory behind clients' handles.
    fn memory_usage(&self, gpu: usize) -> Usage {
        let mut usage = Usage::default();
        let mut seen = BTreeSet::new();
        for object in self.users(gpu).flat_map(|client| client.objects.values()) {
            let Kind::Memory(memory) = &object.kind else { continue };
            if memory.home != (MemoryHome::Video { gpu }) {
                continue;
            }
            // Shared is what another handle or UVM holds as well.
            let bytes = match (seen.insert(Arc::as_ptr(memory)), Arc::strong_count(memory)) {
                (true, 1) => &mut usage.private,
                (true, _) => &mut usage.owned,
                (false, _) => &mut usage.duplicated,
            };
            *bytes += memory.size;
        }
        usage
    }
}
