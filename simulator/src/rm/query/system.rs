//! Controls of a client: the module's version, and which GPUs there are.

use nv_abi::{
    Record, StructField,
    rm::{
        NV_CONF_COMPUTE_CTRL_CMD_GPU_GET_NUM_SECURE_CHANNELS_PARAMS as SecureChannels,
        NV_CONF_COMPUTE_CTRL_CMD_SYSTEM_GET_CAPABILITIES_PARAMS as Confidential,
        NV_CONF_COMPUTE_CTRL_CMD_SYSTEM_GET_GPUS_STATE_PARAMS as ConfidentialState,
        NV0000_CTRL_CLIENT_GET_ADDR_SPACE_TYPE_PARAMS as AddressSpace,
        NV0000_CTRL_GPU_ATTACH_IDS_PARAMS as Attach, NV0000_CTRL_GPU_DETACH_IDS_PARAMS as Detach,
        NV0000_CTRL_GPU_GET_ACTIVE_DEVICE_IDS_PARAMS as ActiveDevices,
        NV0000_CTRL_GPU_GET_ATTACHED_IDS_PARAMS as Attached,
        NV0000_CTRL_GPU_GET_DEVICE_IDS_PARAMS as DeviceIds, NV0000_CTRL_GPU_GET_ID_INFO_PARAMS as IdInfo,
        NV0000_CTRL_GPU_GET_ID_INFO_V2_PARAMS as IdInfoV2, NV0000_CTRL_GPU_GET_MEMOP_ENABLE_PARAMS as Memop,
        NV0000_CTRL_GPU_GET_PCI_INFO_PARAMS as PciInfo, NV0000_CTRL_GPU_GET_PROBED_IDS_PARAMS as Probed,
        NV0000_CTRL_GPU_GET_UUID_FROM_GPU_ID_PARAMS as UuidOf,
        NV0000_CTRL_GPU_QUERY_DRAIN_STATE_PARAMS as Drain,
        NV0000_CTRL_GPUACCT_GET_ACCOUNTING_STATE_PARAMS as Accounting,
        NV0000_CTRL_GSYNC_GET_ATTACHED_IDS_PARAMS as Gsync,
        NV0000_CTRL_SYSTEM_GET_BUILD_VERSION_PARAMS as BuildVersion,
        NV0000_CTRL_SYSTEM_GET_BUILD_VERSION_V2_PARAMS as BuildVersionV2,
        NV0000_CTRL_SYSTEM_GET_FABRIC_STATUS_PARAMS as FabricStatus,
        NV0000_CTRL_SYSTEM_GET_FEATURES_PARAMS as Features,
        NV0000_SYNC_GPU_BOOST_GROUP_INFO_PARAMS as BoostGroups, Status,
    },
};

use super::{
    super::{Kernel, Kind, MemoryHome, Refusal, control::Target, control::set_text},
    set_uuid,
};
use crate::client_memory;

/// The end of a list of GPU ids.
const INVALID_ID: u64 = 0xffff_ffff;
/// "All GPUs" to attach or detach.
const ALL_IDS: u64 = 0x0000_ffff;
/// `sliStatus` of a GPU that is linked to no other.
const SLI_NONE: u64 = 0x41;
/// A GPU instance, compute instance or NUMA node that there is none of.
const NO_INSTANCE: u64 = 0xffff_ffff;

/// How a release was built.
struct Build {
    branch: String,
    tree: String,
    change: u32,
}

impl Build {
    /// The builds' own names are known of one release; the others' follow the same pattern.
    fn of(version: &str, branch: nv_abi::Branch) -> Self {
        if version == "580.159.04" {
            // As an H200 with this release answered.
            let branch = "r582_49".to_owned();
            return Self { branch, tree: "rel/gpu_drv/r580/r582_49-530".to_owned(), change: 0x0242_246f };
        }
        let name = format!("r{branch}_00");
        Self { tree: format!("rel/gpu_drv/r{branch}/{name}-0"), branch: name, change: 0 }
    }

    fn title(&self) -> String {
        format!("Private {} {} unknown", self.branch, self.tree)
    }
}

impl Kernel {
    pub(in super::super) fn build_version(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        let build = Build::of(&self.version, self.branch);
        let texts = [
            (p.get(&BuildVersion::pDriverVersionBuffer)?, self.version.clone()),
            (p.get(&BuildVersion::pVersionBuffer)?, build.tree.clone()),
            (p.get(&BuildVersion::pTitleBuffer)?, build.title()),
        ];
        let need = texts.iter().map(|(_, text)| text.len() + 1).max().unwrap_or(0);
        // A first call may ask for the size alone: one buffer that is missing makes it that.
        if texts.iter().any(|(pointer, _)| *pointer == 0) {
            return Ok(p.set(&BuildVersion::sizeOfStrings, need as u64)?);
        }
        if (p.get(&BuildVersion::sizeOfStrings)? as usize) < need {
            return Err(Status::INVALID_PARAM_STRUCT.into());
        }
        for (pointer, text) in texts {
            let mut bytes = text.into_bytes();
            bytes.push(0);
            client_memory::write(pointer, &bytes)?;
        }
        p.set(&BuildVersion::changelistNumber, 0)?;
        Ok(p.set(&BuildVersion::officialChangelistNumber, build.change.into())?)
    }

    pub(in super::super) fn build_version_v2(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        let build = Build::of(&self.version, self.branch);
        set_text(p, &BuildVersionV2::driverVersionBuffer, &self.version)?;
        set_text(p, &BuildVersionV2::versionBuffer, &build.tree)?;
        set_text(p, &BuildVersionV2::titleBuffer, &build.title())?;
        if BuildVersionV2::driverBranch.offset(self.branch).is_some() {
            set_text(p, &BuildVersionV2::driverBranch, &build.branch)?;
        }
        Ok(p.set(&BuildVersionV2::officialChangelistNumber, build.change.into())?)
    }

    /// SYSTEM_GET_FEATURES, as the card's machine answered.
    pub(in super::super) fn system_features(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        Ok(p.set(&Features::featuresMask, 8)?)
    }

    pub(in super::super) fn fabric_status(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        /// NV0000_CTRL_GET_SYSTEM_FABRIC_STATUS_SKIP: no fabric to wait for.
        const SKIP: u64 = 1;
        Ok(p.set(&FabricStatus::fabricStatus, SKIP)?)
    }

    pub(in super::super) fn boost_groups(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        Ok(p.set(&BoostGroups::groupCount, 0)?)
    }

    pub(in super::super) fn memop_enable(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        Ok(p.set(&Memop::enableMask, 0)?)
    }

    pub(in super::super) fn active_devices(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        p.set(&ActiveDevices::numDevices, self.gpus.len() as u64)?;
        for (i, gpu) in (0..).zip(&self.gpus) {
            p.set_at(&ActiveDevices::devices_gpuId, i, gpu.id.into())?;
            p.set_at(&ActiveDevices::devices_gpuInstanceId, i, NO_INSTANCE)?;
            p.set_at(&ActiveDevices::devices_computeInstanceId, i, NO_INSTANCE)?;
        }
        Ok(())
    }

    /// CLIENT_GET_ADDR_SPACE_TYPE: what an object would be mapped as.
    pub(in super::super) fn address_space_type(
        &mut self,
        target: Target,
        p: &mut Record,
    ) -> Result<(), Refusal> {
        let kind = self.mapped_as(target.client, p.get(&AddressSpace::hObject)? as u32)?;
        Ok(p.set(&AddressSpace::addrSpaceType, kind.into())?)
    }

    /// What an object would be mapped as (NV0000_CTRL_CMD_CLIENT_GET_ADDR_SPACE_TYPE).
    pub(in super::super) fn mapped_as(&self, client: u32, object: u32) -> Result<u32, Status> {
        const INVALID: u32 = 0;
        const SYSTEM: u32 = 1;
        const VIDEO: u32 = 2;
        const REGISTERS: u32 = 3;
        Ok(match &self.object(client, object)?.kind {
            Kind::Memory(memory) => match memory.home {
                MemoryHome::Video { .. } => VIDEO,
                MemoryHome::System | MemoryHome::Client => SYSTEM,
            },
            Kind::Usermode { in_bar1: true, .. } => VIDEO,
            Kind::Usermode { in_bar1: false, .. } => REGISTERS,
            // Addresses lie in no memory.
            Kind::VirtualMemory { .. } => INVALID,
            _ => return Err(Status::INVALID_OBJECT),
        })
    }

    /// Confidential computing: the card can, and is not set up for it.
    pub(in super::super) fn confidential_capabilities(
        &mut self,
        _: Target,
        p: &mut Record,
    ) -> Result<(), Refusal> {
        let hopper = self.gpus.iter().any(|gpu| gpu.profile.generation >= nv_abi::arch::Generation::Hopper);
        p.set(&Confidential::cpuCapability, 0)?;
        Ok(p.set(&Confidential::gpusCapability, if hopper { 2 } else { 0 })?)
    }

    /// SYSTEM_GET_GPUS_STATE: without confidential computing no GPU waits to be let in.
    pub(in super::super) fn confidential_state(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        Ok(p.set(&ConfidentialState::bAcceptClientRequest, 0)?)
    }

    /// GPU_GET_NUM_SECURE_CHANNELS: none without confidential computing.
    pub(in super::super) fn secure_channels(
        &mut self,
        target: Target,
        p: &mut Record,
    ) -> Result<(), Refusal> {
        match self.object(target.client, p.get(&SecureChannels::hSubDevice)? as u32)?.kind {
            Kind::Subdevice { .. } => {}
            _ => return Err(Status::INVALID_OBJECT_HANDLE.into()),
        }
        p.set(&SecureChannels::maxSec2Channels, 0)?;
        Ok(p.set(&SecureChannels::maxCeChannels, 0)?)
    }

    /// GPU_QUERY_DRAIN_STATE: no GPU is about to be taken away.
    pub(in super::super) fn drain_state(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        self.gpu_by_id(p.get(&Drain::gpuId)?).map_err(|_| Status::OBJECT_NOT_FOUND)?;
        p.set(&Drain::drainState, 0)?;
        Ok(p.set(&Drain::flags, 0)?)
    }

    /// GPUACCT_GET_ACCOUNTING_STATE: as after boot, no account is kept.
    pub(in super::super) fn accounting_state(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        /// NV0000_CTRL_GPU_ACCOUNTING_STATE_DISABLED.
        const DISABLED: u64 = 1;
        self.gpu_by_id(p.get(&Accounting::gpuId)?)?;
        Ok(p.set(&Accounting::state, DISABLED)?)
    }

    /// GSYNC_GET_ATTACHED_IDS: no such board.
    pub(in super::super) fn gsync_ids(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        Self::set_ids(p, &Gsync::gsyncIds, [])
    }

    fn set_ids(
        p: &mut Record,
        field: &StructField,
        ids: impl IntoIterator<Item = u32>,
    ) -> Result<(), Refusal> {
        let mut ids = ids.into_iter().map(u64::from);
        for i in 0..field.count {
            p.set_at(field, i, ids.next().unwrap_or(INVALID_ID))?;
        }
        Ok(())
    }

    pub(in super::super) fn attached_ids(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        let attached = self.gpus.iter().filter(|gpu| gpu.is_attached()).map(|gpu| gpu.id);
        Self::set_ids(p, &Attached::gpuIds, attached)
    }

    pub(in super::super) fn probed_ids(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        Self::set_ids(p, &Probed::gpuIds, self.gpus.iter().map(|gpu| gpu.id))?;
        Self::set_ids(p, &Probed::excludedGpuIds, [])
    }

    /// The GPUs that a list names, or the id that is unknown.
    fn listed(&self, p: &Record, field: &StructField) -> Result<Result<Vec<usize>, u64>, Refusal> {
        let mut gpus = Vec::new();
        for i in 0..field.count {
            match p.get_at(field, i)? {
                INVALID_ID => break,
                ALL_IDS => return Ok(Ok((0..self.gpus.len()).collect())),
                id => match self.gpu_by_id(id) {
                    Ok((gpu, _)) => gpus.push(gpu),
                    Err(_) => return Ok(Err(id)),
                },
            }
        }
        Ok(Ok(gpus))
    }

    pub(in super::super) fn attach_ids(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        match self.listed(p, &Attach::gpuIds)? {
            Ok(gpus) => gpus.into_iter().for_each(|gpu| self.gpus[gpu].attached = true),
            Err(id) => {
                p.set(&Attach::failedId, id)?;
                return Err(Status::INVALID_ARGUMENT.into());
            }
        }
        Ok(())
    }

    pub(in super::super) fn detach_ids(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        let gpus = self.listed(p, &Detach::gpuIds)?.map_err(|_| Status::INVALID_ARGUMENT)?;
        gpus.into_iter().for_each(|gpu| self.gpus[gpu].attached = false);
        Ok(())
    }

    /// Whether a client has a device on the GPU (NV0000_CTRL_GPU_ID_INFO_IN_USE).
    fn is_in_use(&self, index: usize) -> bool {
        let mut objects = self.clients.values().flat_map(|client| client.objects.values());
        objects.any(|object| matches!(object.kind, Kind::Device { gpu, .. } if gpu == index))
    }

    pub(in super::super) fn id_info(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        use IdInfo as P;
        let fields = [
            &P::gpuFlags,
            &P::sliStatus,
            &P::deviceInstance,
            &P::subDeviceInstance,
            &P::boardId,
            &P::gpuInstance,
            &P::numaId,
        ];
        self.set_id_info(p, &P::gpuId, fields)
    }

    pub(in super::super) fn id_info_v2(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        use IdInfoV2 as P;
        let fields = [
            &P::gpuFlags,
            &P::sliStatus,
            &P::deviceInstance,
            &P::subDeviceInstance,
            &P::boardId,
            &P::gpuInstance,
            &P::numaId,
        ];
        self.set_id_info(p, &P::gpuId, fields)
    }

    /// GPU_GET_ID_INFO in either form; the fields in the order of the struct.
    fn set_id_info(
        &self,
        p: &mut Record,
        id: &StructField,
        fields: [&StructField; 7],
    ) -> Result<(), Refusal> {
        let (index, gpu) = self.gpu_by_id(p.get(id)?)?;
        let instance = index as u64;
        let in_use = self.is_in_use(index).into();
        let values = [in_use, SLI_NONE, instance, 0, gpu.id.into(), instance, NO_INSTANCE];
        for (field, value) in fields.into_iter().zip(values) {
            p.set(field, value)?;
        }
        Ok(())
    }

    pub(in super::super) fn device_ids(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        // A bit per device instance.
        Ok(p.set(&DeviceIds::deviceIds, (1 << self.gpus.len()) - 1)?)
    }

    pub(in super::super) fn pci_info(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        let place = self.gpu_by_id(p.get(&PciInfo::gpuId)?)?.1.place;
        p.set(&PciInfo::domain, 0)?;
        p.set(&PciInfo::bus, place.bus.into())?;
        Ok(p.set(&PciInfo::slot, place.slot.into())?)
    }

    pub(in super::super) fn uuid_from_gpu_id(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        let uuid = self.gpu_by_id(p.get(&UuidOf::gpuId)?)?.1.uuid;
        // Bit 1 of the flags asks for bytes.
        let binary = p.get(&UuidOf::flags)? & 2 != 0;
        let length = set_uuid(p, &UuidOf::gpuUuid, &uuid, binary)?;
        Ok(p.set(&UuidOf::uuidStrLen, length)?)
    }
}
