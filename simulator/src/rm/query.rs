//! Controls that answer what the GPU and the module are.

use nv_abi::{
    Errno, Record, StructField,
    rm::{
        NV0000_CTRL_GPU_ATTACH_IDS_PARAMS as Attach, NV0000_CTRL_GPU_DETACH_IDS_PARAMS as Detach,
        NV0000_CTRL_GPU_GET_ATTACHED_IDS_PARAMS as Attached,
        NV0000_CTRL_GPU_GET_DEVICE_IDS_PARAMS as DeviceIds, NV0000_CTRL_GPU_GET_ID_INFO_PARAMS as IdInfo,
        NV0000_CTRL_GPU_GET_ID_INFO_V2_PARAMS as IdInfoV2, NV0000_CTRL_GPU_GET_PCI_INFO_PARAMS as PciInfo,
        NV0000_CTRL_GPU_GET_PROBED_IDS_PARAMS as Probed,
        NV0000_CTRL_GPU_GET_UUID_FROM_GPU_ID_PARAMS as UuidOf,
        NV0000_CTRL_SYSTEM_GET_BUILD_VERSION_PARAMS as BuildVersion,
        NV0000_CTRL_SYSTEM_GET_BUILD_VERSION_V2_PARAMS as BuildVersionV2,
        NV0080_CTRL_GPU_GET_CLASSLIST_PARAMS as ClassList,
        NV0080_CTRL_GPU_GET_CLASSLIST_V2_PARAMS as ClassListV2,
        NV0080_CTRL_GPU_GET_NUM_SUBDEVICES_PARAMS as NumSubdevices,
        NV0080_CTRL_GPU_GET_VIRTUALIZATION_MODE_PARAMS as Virtualization,
        NV2080_CTRL_BUS_GET_PCI_INFO_PARAMS as BusPci, NV2080_CTRL_GPU_GET_GID_INFO_PARAMS as Gid,
        NV2080_CTRL_GPU_GET_ID_PARAMS as GpuId, NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS as NameString,
        NV2080_CTRL_GPU_GET_SHORT_NAME_STRING_PARAMS as ShortName,
        NV2080_CTRL_GR_GET_GPC_MASK_PARAMS as GpcMask, NV2080_CTRL_GR_GET_INFO_PARAMS as GrInfo,
        NV2080_CTRL_GR_GET_TPC_MASK_PARAMS as TpcMask, NV2080_CTRL_MC_GET_ARCH_INFO_PARAMS as ArchInfo,
        NV2080_CTRL_TIMER_GET_TIME_PARAMS as Time, Status,
    },
};

use super::{Gpu, Kernel, Refusal, control::Target, control::set_text};
use crate::{client_memory, host, profile::Profile};

/// The end of a list of GPU ids.
const INVALID_ID: u64 = 0xffff_ffff;
/// "All GPUs" to attach or detach.
const ALL_IDS: u64 = 0x0000_ffff;
/// The module's name for its releases.
const TITLE: &str = "NVIDIA UNIX Open Kernel Module for x86_64";

type Answer = fn(&Profile) -> u32;

/// Indices of GR_GET_INFO (`ctrl0080gr.h`) with their answers.
const GR_INFO: &[(u32, Answer)] = &[
    (0x0c, |profile| profile.sm_version),
    (0x0d, |profile| profile.warps_per_sm),
    (0x0e, |_| 32),
    (0x14, |profile| profile.litter_gpcs),
    (0x17, |profile| profile.litter_tpcs_per_gpc),
    (0x20, |profile| profile.sms_per_tpc),
];
/// Elements that a list of GR_GET_INFO may have (NV0080_CTRL_GR_INFO_MAX_SIZE, rounded up over the branches).
const GR_INFO_MAX: u64 = 0x40;

/// A UUID as text: `GPU-` and the bytes in hexadecimal, grouped.
fn uuid_text(uuid: &[u8; 16]) -> String {
    let mut text = String::from("GPU");
    for (i, byte) in uuid.iter().enumerate() {
        if matches!(i, 0 | 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// Fills a UUID in, as bytes or as text with its terminating zero; returns its length.
fn set_uuid(p: &mut Record, field: &StructField, uuid: &[u8; 16], binary: bool) -> Result<u64, Refusal> {
    let text = uuid_text(uuid);
    let bytes: &[u8] = if binary { uuid } else { text.as_bytes() };
    for (i, byte) in bytes.iter().enumerate() {
        p.set_at(field, i as u32, (*byte).into())?;
    }
    if binary {
        return Ok(16);
    }
    p.set_at(field, bytes.len() as u32, 0)?;
    Ok(bytes.len() as u64 + 1)
}

impl Kernel {
    fn gpu(&self, target: Target) -> Result<&Gpu, Status> {
        Ok(&self.gpus[self.gpu_of(target.client, target.object)?])
    }

    fn gpu_by_id(&self, id: u64) -> Result<(usize, &Gpu), Status> {
        let found = self.gpus.iter().enumerate().find(|(_, gpu)| u64::from(gpu.id) == id);
        found.ok_or(Status::INVALID_ARGUMENT)
    }

    pub(super) fn build_version(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        let size = p.get(&BuildVersion::sizeOfStrings)? as usize;
        let texts = [
            (&BuildVersion::pDriverVersionBuffer, self.version.as_str()),
            (&BuildVersion::pVersionBuffer, self.version.as_str()),
            (&BuildVersion::pTitleBuffer, TITLE),
        ];
        let need = texts.iter().map(|(_, text)| text.len() + 1).max().unwrap_or(0);
        p.set(&BuildVersion::sizeOfStrings, need as u64)?;
        // A first call may ask for the size alone.
        if size == 0 {
            return Ok(());
        }
        if size < need {
            return Err(Status::INVALID_STRING_LENGTH.into());
        }
        for (pointer, text) in texts {
            let mut bytes = text.as_bytes().to_vec();
            bytes.resize(size.min(need), 0);
            client_memory::write(p.get(pointer)?, &bytes)?;
        }
        Ok(())
    }

    pub(super) fn build_version_v2(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        set_text(p, &BuildVersionV2::driverVersionBuffer, &self.version)?;
        set_text(p, &BuildVersionV2::versionBuffer, &self.version)?;
        set_text(p, &BuildVersionV2::titleBuffer, TITLE)?;
        if BuildVersionV2::driverBranch.offset(self.branch).is_some() {
            set_text(p, &BuildVersionV2::driverBranch, &format!("r{}_00", self.branch))?;
        }
        Ok(())
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

    pub(super) fn attached_ids(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        let attached = self.gpus.iter().filter(|gpu| gpu.is_attached()).map(|gpu| gpu.id);
        Self::set_ids(p, &Attached::gpuIds, attached)
    }

    pub(super) fn probed_ids(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
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

    pub(super) fn attach_ids(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        match self.listed(p, &Attach::gpuIds)? {
            Ok(gpus) => gpus.into_iter().for_each(|gpu| self.gpus[gpu].attached = true),
            Err(id) => {
                p.set(&Attach::failedId, id)?;
                return Err(Status::INVALID_ARGUMENT.into());
            }
        }
        Ok(p.set(&Attach::failedId, INVALID_ID)?)
    }

    pub(super) fn detach_ids(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        let gpus = self.listed(p, &Detach::gpuIds)?.map_err(|_| Status::INVALID_ARGUMENT)?;
        gpus.into_iter().for_each(|gpu| self.gpus[gpu].attached = false);
        Ok(())
    }

    pub(super) fn id_info(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        let (index, id) = self.gpu_by_id(p.get(&IdInfo::gpuId)?).map(|(index, gpu)| (index, gpu.id))?;
        p.set(&IdInfo::gpuFlags, 0)?;
        p.set(&IdInfo::deviceInstance, index as u64)?;
        p.set(&IdInfo::subDeviceInstance, 0)?;
        p.set(&IdInfo::boardId, id.into())?;
        p.set(&IdInfo::gpuInstance, index as u64)?;
        p.set(&IdInfo::numaId, 0xffff_ffff)?;
        Ok(())
    }

    pub(super) fn id_info_v2(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        let (index, id) = self.gpu_by_id(p.get(&IdInfoV2::gpuId)?).map(|(index, gpu)| (index, gpu.id))?;
        p.set(&IdInfoV2::gpuFlags, 0)?;
        p.set(&IdInfoV2::deviceInstance, index as u64)?;
        p.set(&IdInfoV2::subDeviceInstance, 0)?;
        p.set(&IdInfoV2::boardId, id.into())?;
        p.set(&IdInfoV2::gpuInstance, index as u64)?;
        p.set(&IdInfoV2::numaId, 0xffff_ffff)?;
        Ok(())
    }

    pub(super) fn device_ids(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        // A bit per device instance.
        Ok(p.set(&DeviceIds::deviceIds, (1 << self.gpus.len()) - 1)?)
    }

    pub(super) fn pci_info(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        let bus = self.gpu_by_id(p.get(&PciInfo::gpuId)?)?.1.bus;
        p.set(&PciInfo::domain, 0)?;
        p.set(&PciInfo::bus, bus.into())?;
        Ok(p.set(&PciInfo::slot, 0)?)
    }

    pub(super) fn uuid_from_gpu_id(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        let uuid = self.gpu_by_id(p.get(&UuidOf::gpuId)?)?.1.uuid;
        // Bit 1 of the flags asks for bytes.
        let binary = p.get(&UuidOf::flags)? & 2 != 0;
        let length = set_uuid(p, &UuidOf::gpuUuid, &uuid, binary)?;
        Ok(p.set(&UuidOf::uuidStrLen, length)?)
    }

    pub(super) fn class_list(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let classes = self.gpu(target)?.profile.classes();
        let (given, pointer) = (p.get(&ClassList::numClasses)?, p.get(&ClassList::classList)?);
        // Without a list the call answers how long it has to be.
        if pointer != 0 {
            if given < classes.len() as u64 {
                return Err(Status::INVALID_ARGUMENT.into());
            }
            let bytes: Vec<u8> = classes.iter().flat_map(|class| class.to_le_bytes()).collect();
            client_memory::write(pointer, &bytes)?;
        }
        Ok(p.set(&ClassList::numClasses, classes.len() as u64)?)
    }

    pub(super) fn class_list_v2(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let classes = self.gpu(target)?.profile.classes();
        for (i, class) in classes.iter().enumerate() {
            p.set_at(&ClassListV2::classList, i as u32, (*class).into())?;
        }
        Ok(p.set(&ClassListV2::numClasses, classes.len() as u64)?)
    }

    pub(super) fn num_subdevices(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        Ok(p.set(&NumSubdevices::numSubDevices, 1)?)
    }

    pub(super) fn virtualization_mode(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        Ok(p.set(&Virtualization::virtualizationMode, 0)?)
    }

    pub(super) fn name_string(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        // Flag 1 asks for UTF-16.
        if p.get(&NameString::gpuNameStringFlags)? != 0 {
            return Err(self.not_supported("NV2080_CTRL_CMD_GPU_GET_NAME_STRING in UTF-16"));
        }
        let name = self.gpu(target)?.profile.name;
        set_text(p, &NameString::gpuNameString_ascii, name)
    }

    pub(super) fn short_name_string(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let chip = self.gpu(target)?.profile.chip;
        set_text(p, &ShortName::gpuShortNameString, chip)
    }

    pub(super) fn gpu_id(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let id = self.gpu(target)?.id;
        Ok(p.set(&GpuId::gpuId, id.into())?)
    }

    pub(super) fn gid_info(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let uuid = self.gpu(target)?.uuid;
        if p.get(&Gid::index)? != 0 {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        // Bit 1 of the flags asks for bytes, bit 0 for a digest that no module has any more.
        let flags = p.get(&Gid::flags)?;
        if flags & !2 != 0 {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        let length = set_uuid(p, &Gid::data, &uuid, flags & 2 != 0)?;
        Ok(p.set(&Gid::length, length)?)
    }

    pub(super) fn timer_get_time(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        Ok(p.set(&Time::time_nsec, host::now())?)
    }

    pub(super) fn gr_get_info(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let (count, pointer) = (p.get(&GrInfo::grInfoListSize)?, p.get(&GrInfo::grInfoList)?);
        if count == 0 || count > GR_INFO_MAX || pointer == 0 {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        // Elements are {index, data}, 32 bits each.
        let mut list = vec![0; count as usize * 8];
        client_memory::read(pointer, &mut list)?;
        let mut unknown = None;
        let profile = &self.gpu(target)?.profile;
        for element in list.chunks_exact_mut(8) {
            let index = u32::from_le_bytes([element[0], element[1], element[2], element[3]]);
            match GR_INFO.iter().find(|(known, _)| *known == index) {
                Some((_, answer)) => element[4..].copy_from_slice(&answer(profile).to_le_bytes()),
                None => unknown = Some(index),
            }
        }
        if let Some(index) = unknown {
            return Err(self.not_supported(format!("NV2080_CTRL_CMD_GR_GET_INFO index {index:#x}")));
        }
        client_memory::write(pointer, &list).map_err(|_| Errno::EFAULT)?;
        Ok(())
    }

    pub(super) fn gpc_mask(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let gpcs = self.gpu(target)?.profile.tpcs.len();
        Ok(p.set(&GpcMask::gpcMask, (1 << gpcs) - 1)?)
    }

    pub(super) fn tpc_mask(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let gpc = p.get(&TpcMask::gpcId)? as usize;
        let tpcs = self.gpu(target)?.profile.tpcs.get(gpc).copied().ok_or(Status::INVALID_ARGUMENT)?;
        Ok(p.set(&TpcMask::tpcMask, (1 << tpcs) - 1)?)
    }

    pub(super) fn flush_gpu_cache(&mut self, _: Target, _: &mut Record) -> Result<(), Refusal> {
        // Every store of the simulated engines is visible at once: there is no cache to flush.
        Ok(())
    }

    pub(super) fn arch_info(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let profile = &self.gpu(target)?.profile;
        p.set(&ArchInfo::architecture, profile.architecture.into())?;
        p.set(&ArchInfo::implementation, profile.implementation.into())?;
        p.set(&ArchInfo::revision, profile.pci_revision.into())?;
        Ok(p.set(&ArchInfo::subRevision, 0)?)
    }

    pub(super) fn bus_pci_info(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let profile = &self.gpu(target)?.profile;
        p.set(&BusPci::pciDeviceId, u64::from(profile.pci_device_id) << 16 | 0x10de)?;
        p.set(&BusPci::pciSubSystemId, profile.pci_subsystem_id.into())?;
        p.set(&BusPci::pciRevisionId, profile.pci_revision.into())?;
        Ok(p.set(&BusPci::pciExtDeviceId, profile.pci_device_id.into())?)
    }

    pub(super) fn perf_boost(&mut self, _: Target, _: &mut Record) -> Result<(), Refusal> {
        // A request for clocks, which the simulated GPU does not have: always at its best.
        Ok(())
    }
}
