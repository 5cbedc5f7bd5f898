//! Controls about how the GPU is attached: PCI, NVLink, C2C.

use nv_abi::{
    Record,
    rm::{
        NV2080_CTRL_BUS_GET_INFO_PARAMS as BusInfoV1, NV2080_CTRL_BUS_GET_INFO_V2_PARAMS as BusInfo,
        NV2080_CTRL_BUS_GET_PCI_BAR_INFO_PARAMS as Bars, NV2080_CTRL_BUS_GET_PCI_INFO_PARAMS as BusPci,
        NV2080_CTRL_CMD_BUS_GET_C2C_INFO_PARAMS as C2c,
        NV2080_CTRL_CMD_BUS_GET_PCIE_SUPPORTED_GPU_ATOMICS_PARAMS as Atomics,
        NV2080_CTRL_CMD_NVLINK_GET_NVLINK_STATUS_PARAMS as Nvlink, Status,
    },
};

use super::{
    super::{Kernel, Refusal, control::Target},
    ConvertedList, Listed, find,
};

/// Indices of BUS_GET_INFO whose answers follow from where the GPU sits (`ctrl2080bus.h`).
const BUS_NUMBER: u32 = 0x0f;
const DEVICE_NUMBER: u32 = 0x10;
const DOMAIN_NUMBER: u32 = 0x2c;
/// One past the highest index.
const END: u32 = 0x34;

impl Kernel {
    fn bus_answer(&self, target: Target, index: u32) -> Result<Option<u32>, Status> {
        let gpu = self.gpu(target)?;
        Ok(match index {
            BUS_NUMBER => Some(gpu.place.bus.into()),
            DEVICE_NUMBER => Some(gpu.place.slot.into()),
            DOMAIN_NUMBER => Some(0),
            _ => find(gpu.profile.bus_info, index),
        })
    }

    pub(in super::super) fn bus_info(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let list = Listed {
            name: "NV2080_CTRL_CMD_BUS_GET_INFO_V2",
            size: BusInfo::busInfoListSize,
            index: BusInfo::busInfoList_index,
            data: BusInfo::busInfoList_data,
            end: END,
        };
        self.answer_list(p, &list, |kernel, index| kernel.bus_answer(target, index))
    }

    /// BUS_GET_INFO: the same with a list that the client points to.
    pub(in super::super) fn bus_info_v1(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let (count, pointer) = (p.get(&BusInfoV1::busInfoListSize)?, p.get(&BusInfoV1::busInfoList)?);
        let list = ConvertedList {
            name: "NV2080_CTRL_CMD_BUS_GET_INFO",
            room: BusInfo::busInfoList_index.count(self.branch),
            end: END,
        };
        self.answer_converted_list(&list, (pointer, count), |kernel, index| kernel.bus_answer(target, index))
    }

    pub(in super::super) fn bus_pci_info(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let profile = &self.gpu(target)?.profile;
        p.set(&BusPci::pciDeviceId, u64::from(profile.pci_device_id) << 16 | 0x10de)?;
        p.set(&BusPci::pciSubSystemId, profile.pci_subsystem_id.into())?;
        p.set(&BusPci::pciRevisionId, profile.pci_revision.into())?;
        Ok(p.set(&BusPci::pciExtDeviceId, profile.pci_device_id.into())?)
    }

    pub(in super::super) fn bar_info(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let gpu = self.gpu(target)?;
        let count = gpu.profile.bars.len();
        p.set(&Bars::pciBarCount, count as u64)?;
        for i in 0..count {
            let (bar, at) = (gpu.bar(i), i as u32);
            p.set_at(&Bars::pciBarInfo_flags, at, 0)?;
            p.set_at(&Bars::pciBarInfo_barSize, at, bar.bytes >> 20)?;
            p.set_at(&Bars::pciBarInfo_barSizeBytes, at, bar.bytes)?;
            p.set_at(&Bars::pciBarInfo_barOffset, at, bar.offset)?;
        }
        Ok(())
    }

    /// BUS_GET_PCIE_SUPPORTED_GPU_ATOMICS: none, as behind a root port without them.
    pub(in super::super) fn pcie_atomics(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        for i in 0..Atomics::atomicOp_bSupported.count {
            p.set_at(&Atomics::atomicOp_bSupported, i, 0)?;
        }
        Ok(())
    }

    pub(in super::super) fn c2c_info(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        Ok(p.set(&C2c::bIsLinkUp, 0)?)
    }

    pub(in super::super) fn nvlink_status(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        Ok(p.set(&Nvlink::enabledLinkMask, 0)?)
    }
}
