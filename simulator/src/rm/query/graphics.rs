//! Controls about graphics, compute and copy engines: geometry, capabilities, context sizes.

use nv_abi::{
    Branch, Record,
    rm::{
        NV0080_CTRL_DMA_GET_CAPS_PARAMS as DmaCaps, NV0080_CTRL_FB_GET_CAPS_PARAMS as FbCapsV1,
        NV0080_CTRL_FB_GET_CAPS_V2_PARAMS as FbCaps, NV0080_CTRL_FIFO_GET_CAPS_PARAMS as FifoCaps,
        NV0080_CTRL_FIFO_GET_CAPS_V2_PARAMS as FifoCapsV2,
        NV0080_CTRL_FIFO_GET_CHANNELLIST_PARAMS as ChannelList,
        NV0080_CTRL_GR_GET_CAPS_PARAMS as DeviceGrCaps, NV0080_CTRL_GR_GET_CAPS_V2_PARAMS as DeviceGrCapsV2,
        NV0080_CTRL_GR_GET_INFO_PARAMS as DeviceGrInfo, NV0080_CTRL_HOST_GET_CAPS_V2_PARAMS as HostCaps,
        NV2080_CTRL_CE_GET_ALL_CAPS_PARAMS as CopyCaps, NV2080_CTRL_CE_GET_CAPS_V2_PARAMS as OneCopyCaps,
        NV2080_CTRL_FLCN_GET_CTX_BUFFER_SIZE_PARAMS as FalconContext,
        NV2080_CTRL_GR_GET_CAPS_V2_PARAMS as GrCaps,
        NV2080_CTRL_GR_GET_CTX_BUFFER_SIZE_PARAMS as ContextSize,
        NV2080_CTRL_GR_GET_GLOBAL_SM_ORDER_PARAMS as SmOrder, NV2080_CTRL_GR_GET_GPC_MASK_PARAMS as GpcMask,
        NV2080_CTRL_GR_GET_INFO_PARAMS as GrInfo,
        NV2080_CTRL_GR_GET_SM_ISSUE_RATE_MODIFIER_PARAMS as IssueRate,
        NV2080_CTRL_GR_GET_SM_TO_GPC_TPC_MAPPINGS_PARAMS as SmMappings,
        NV2080_CTRL_GR_GET_TPC_MASK_PARAMS as TpcMask,
        NV2080_CTRL_GR_SET_CTXSW_PREEMPTION_MODE_PARAMS as Preemption,
        NV2080_CTRL_GRMGR_GET_GR_FS_INFO_PARAMS as FloorSweeping, Status, flags::NV2080_ENGINE_TYPE_COPY0,
    },
};

use super::{
    super::{Kernel, Kind, Refusal, control::Target},
    set_bytes,
};
use crate::{client_memory, profile::Profile};

type Answer = fn(&Profile) -> u32;

/// What hosts can since Turing, as a module with a GSP reports it (`kfifoGetDeviceCaps`): pushbuffers in system and video
/// memory, no pipelined writes of page tables; several address spaces in a channel group.
const FIFO_CAPS: &[u8] = &[0x86, 0x20];
/// What the MMU can since Turing (`g_virt_mem_allocator_nvoc.c`): pointers of 32 bits kept low, sparse ranges, several
/// address spaces.
const DMA_CAPS: &[u8] = &[0x19, 0, 0, 0, 0, 0, 0, 0];

/// Indices of GR_GET_INFO (`ctrl0080gr.h`) with their answers.
const GR_INFO: &[(u32, Answer)] = &[
    // SHADER_PIPE_COUNT, SHADER_PIPE_SUB_COUNT: GPCs, SMs.
    (0x07, |profile| profile.tpc_masks.len() as u32),
    (0x09, Profile::sm_count),
    // SM_REG_BANK_COUNT, SM_REG_BANK_REG_COUNT: 64 Ki registers in four partitions.
    (0x0a, |_| 4),
    (0x0b, |_| 16384),
    // SM_VERSION, MAX_WARPS_PER_SM, MAX_THREADS_PER_WARP.
    (0x0c, |profile| profile.sm_version),
    (0x0d, |profile| profile.warps_per_sm),
    (0x0e, |_| 32),
    // LITTER_NUM_GPCS, LITTER_NUM_FBPS, LITTER_NUM_TPC_PER_GPC.
    (0x14, |profile| profile.litter_gpcs),
    (0x15, |profile| fb_info(profile, 0x19)),
    (0x17, |profile| profile.litter_tpcs_per_gpc),
    // GPU_CORE_COUNT: 128 FP32 lanes an SM since GA102, also on Hopper.
    (0x1d, |profile| profile.sm_count() * 128),
    // LITTER_NUM_SM_PER_TPC.
    (0x20, |profile| profile.sms_per_tpc),
    // TENSOR_CORE_COUNT, LITTER_NUM_GRS.
    (0x23, |profile| profile.sm_count() * 4),
    (0x24, |_| 1),
    // LITTER_NUM_LTCS, FAMILY_MAX_TPC_PER_GPC.
    (0x25, |profile| fb_info(profile, 0x22)),
    (0x2a, |profile| profile.litter_tpcs_per_gpc),
    // MAX_SUBCONTEXT_COUNT, MAX_LEGACY_SUBCONTEXT_COUNT, MAX_PER_ENGINE_SUBCONTEXT_COUNT.
    (0x2c, |_| 64),
    (0x2d, |_| 64),
    (0x2e, |_| 64),
];
/// Indices that have no public answer. A module answers them; this one answers 0 and says so in its report.
const GR_INFO_UNKNOWN: &str = "NV2080_CTRL_CMD_GR_GET_INFO without a public value, answered 0: index";
/// One past the highest index (NV0080_CTRL_GR_INFO_MAX_SIZE of each branch's `ctrl0080gr.h`).
const fn gr_info_end(branch: Branch) -> u32 {
    match branch {
        Branch::R535 => 0x35,
        Branch::R550 | Branch::R560 | Branch::R565 => 0x38,
        Branch::R570 | Branch::R580 => 0x3a,
        Branch::R590 | Branch::R595 | Branch::R610 => 0x3b,
    }
}

fn fb_info(profile: &Profile, index: u32) -> u32 {
    super::find(profile.frame_buffer_info, index).unwrap_or(0)
}

impl Kernel {
    pub(in super::super) fn gr_get_info(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let (count, pointer) = (p.get(&GrInfo::grInfoListSize)?, p.get(&GrInfo::grInfoList)?);
        self.gr_info_list(target, count, pointer)
    }

    /// GR_GET_INFO of a device: the same.
    pub(in super::super) fn device_gr_info(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let (count, pointer) = (p.get(&DeviceGrInfo::grInfoListSize)?, p.get(&DeviceGrInfo::grInfoList)?);
        self.gr_info_list(target, count, pointer)
    }

    fn gr_info_list(&mut self, target: Target, count: u64, pointer: u64) -> Result<(), Refusal> {
        if count == 0 || pointer == 0 {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        let end = gr_info_end(self.branch);
        // What is past the longest list is not looked at.
        self.answer_client_list(pointer, count.min(end.into()), |kernel, index| {
            if index >= end {
                return Err(Status::INVALID_ARGUMENT.into());
            }
            match GR_INFO.iter().find(|(known, _)| *known == index) {
                Some((_, answer)) => Ok(answer(&kernel.gpu(target)?.profile)),
                None => {
                    kernel.note_gap(format!("{GR_INFO_UNKNOWN} {index:#x}"));
                    Ok(0)
                }
            }
        })
    }

    pub(in super::super) fn gpc_mask(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let gpcs = self.gpu(target)?.profile.tpc_masks.len();
        Ok(p.set(&GpcMask::gpcMask, (1 << gpcs) - 1)?)
    }

    pub(in super::super) fn tpc_mask(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let gpc = p.get(&TpcMask::gpcId)? as usize;
        let mask = self.gpu(target)?.profile.tpc_masks.get(gpc).copied().ok_or(Status::INVALID_ARGUMENT)?;
        Ok(p.set(&TpcMask::tpcMask, mask.into())?)
    }

    pub(in super::super) fn gr_caps(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let caps = self.gpu(target)?.profile.graphics_caps;
        set_bytes(p, &GrCaps::capsTbl, caps)?;
        Ok(p.set(&GrCaps::bCapsPopulated, 1)?)
    }

    /// A table of capabilities in the client's memory, of exactly its length.
    fn write_caps(given: u64, pointer: u64, caps: &[u8]) -> Result<(), Refusal> {
        if given != caps.len() as u64 || pointer == 0 {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        Ok(client_memory::write(pointer, caps)?)
    }

    /// GR_GET_CAPS of a device.
    pub(in super::super) fn device_gr_caps(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let caps = self.gpu(target)?.profile.graphics_caps;
        Self::write_caps(p.get(&DeviceGrCaps::capsTblSize)?, p.get(&DeviceGrCaps::capsTbl)?, caps)
    }

    /// GR_GET_CAPS_V2 of a device: what is filled in already is left alone.
    pub(in super::super) fn device_gr_caps_v2(
        &mut self,
        target: Target,
        p: &mut Record,
    ) -> Result<(), Refusal> {
        if p.get(&DeviceGrCapsV2::bCapsPopulated)? != 0 {
            return Ok(());
        }
        let caps = self.gpu(target)?.profile.graphics_caps;
        set_bytes(p, &DeviceGrCapsV2::capsTbl, caps)?;
        Ok(p.set(&DeviceGrCapsV2::bCapsPopulated, 1)?)
    }

    /// FB_GET_CAPS.
    pub(in super::super) fn fb_caps_v1(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let caps = self.gpu(target)?.profile.frame_buffer_caps;
        Self::write_caps(p.get(&FbCapsV1::capsTblSize)?, p.get(&FbCapsV1::capsTbl)?, caps)
    }

    /// FIFO_GET_CAPS.
    pub(in super::super) fn fifo_caps(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        Self::write_caps(p.get(&FifoCaps::capsTblSize)?, p.get(&FifoCaps::capsTbl)?, FIFO_CAPS)
    }

    /// FIFO_GET_CAPS_V2.
    pub(in super::super) fn fifo_caps_v2(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        set_bytes(p, &FifoCapsV2::capsTbl, FIFO_CAPS)
    }

    /// DMA_GET_CAPS: the length lies before the table, in the parameters.
    pub(in super::super) fn dma_caps(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        if p.get(&DmaCaps::capsTblSize)? != u64::from(DmaCaps::capsTbl.count) {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        set_bytes(p, &DmaCaps::capsTbl, DMA_CAPS)
    }

    pub(in super::super) fn fb_caps(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let caps = self.gpu(target)?.profile.frame_buffer_caps;
        set_bytes(p, &FbCaps::capsTbl, caps)
    }

    pub(in super::super) fn host_caps(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let caps = self.gpu(target)?.profile.host_caps;
        set_bytes(p, &HostCaps::capsTbl, caps)
    }

    pub(in super::super) fn copy_caps(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let caps = self.gpu(target)?.profile.copy_caps;
        set_bytes(p, &CopyCaps::capsTbl, caps.as_flattened())?;
        Ok(p.set(&CopyCaps::present, (1 << caps.len()) - 1)?)
    }

    pub(in super::super) fn one_copy_caps(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let engine = p.get(&OneCopyCaps::ceEngineType)? as u32;
        let index = engine.checked_sub(NV2080_ENGINE_TYPE_COPY0).ok_or(Status::INVALID_ARGUMENT)?;
        let caps = self.gpu(target)?.profile.copy_caps.get(index as usize).ok_or(Status::INVALID_ARGUMENT)?;
        set_bytes(p, &OneCopyCaps::capsTbl, caps)
    }

    /// GR_GET_SM_ISSUE_RATE_MODIFIER: every unit at full speed, which is 0.
    pub(in super::super) fn issue_rate(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        use IssueRate::{dp, ffma, fmla16, fmla32, imla0, imla1, imla2, imla3, imla4};
        for unit in [&imla0, &fmla16, &dp, &fmla32, &ffma, &imla1, &imla2, &imla3, &imla4] {
            p.set(unit, 0)?;
        }
        Ok(())
    }

    pub(in super::super) fn sm_order(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let profile = &self.gpu(target)?.profile;
        let order = profile.tpc_order();
        let (mut sm, per_tpc) = (0, profile.sms_per_tpc);
        for (global, tpc) in (0_u64..).zip(&order) {
            for local in 0..per_tpc {
                p.set_at(&SmOrder::globalSmId_gpcId, sm, tpc.gpc.into())?;
                p.set_at(&SmOrder::globalSmId_localTpcId, sm, tpc.local.into())?;
                p.set_at(&SmOrder::globalSmId_localSmId, sm, local.into())?;
                p.set_at(&SmOrder::globalSmId_globalTpcId, sm, global)?;
                p.set_at(&SmOrder::globalSmId_virtualGpcId, sm, tpc.virtual_gpc.into())?;
                p.set_at(&SmOrder::globalSmId_migratableTpcId, sm, tpc.migratable.into())?;
                if SmOrder::globalSmId_ugpuId.offset(p.branch()).is_some() {
                    p.set_at(&SmOrder::globalSmId_ugpuId, sm, tpc.micro_gpu.into())?;
                    p.set_at(&SmOrder::globalSmId_physicalCpcId, sm, tpc.physical_cpc.into())?;
                    p.set_at(&SmOrder::globalSmId_virtualTpcId, sm, tpc.virtual_tpc.into())?;
                }
                sm += 1;
            }
        }
        p.set(&SmOrder::numSm, sm.into())?;
        Ok(p.set(&SmOrder::numTpc, order.len() as u64)?)
    }

    pub(in super::super) fn sm_mappings(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let profile = &self.gpu(target)?.profile;
        let (order, per_tpc) = (profile.tpc_order(), profile.sms_per_tpc);
        let sms = order.iter().flat_map(|tpc| std::iter::repeat_n(tpc, per_tpc as usize));
        let mut count = 0;
        for (sm, tpc) in (0..).zip(sms) {
            p.set_at(&SmMappings::smId_gpcId, sm, tpc.gpc.into())?;
            p.set_at(&SmMappings::smId_tpcId, sm, tpc.local.into())?;
            count = sm + 1;
        }
        Ok(p.set(&SmMappings::smCount, count.into())?)
    }

    pub(in super::super) fn preemption_mode(
        &mut self,
        target: Target,
        p: &mut Record,
    ) -> Result<(), Refusal> {
        // Work is never preempted, so that every mode is kept as well as the others; the channel must exist.
        let handle = p.get(&Preemption::hChannel)? as u32;
        match self.object(target.client, handle)?.kind {
            Kind::Channel(_) | Kind::ChannelGroup { .. } => Ok(()),
            _ => Err(Status::INVALID_CHANNEL.into()),
        }
    }

    pub(in super::super) fn context_size(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let handle = p.get(&ContextSize::hChannel)? as u32;
        if !matches!(self.object(target.client, handle)?.kind, Kind::Channel(_)) {
            return Err(Status::INVALID_CHANNEL.into());
        }
        let bytes = self.gpu(target)?.profile.context_buffer_bytes;
        Ok(p.set(&ContextSize::totalBufferSize, bytes)?)
    }

    pub(in super::super) fn floor_sweeping(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        /// NV2080_CTRL_GRMGR_GR_FS_INFO_QUERY.
        const GPC_COUNT: u64 = 1;
        const CHIPLET_GPC_MAP: u64 = 2;
        const TPC_MASK: u64 = 3;
        const CHIPLET_SYSPIPE_MASK: u64 = 6;
        let queries = p.get(&FloorSweeping::numQueries)? as u32;
        if queries > FloorSweeping::queries_queryType.count {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        for i in 0..queries {
            let kind = p.get_at(&FloorSweeping::queries_queryType, i)?;
            let first = p.get_at(&FloorSweeping::queries_queryData_0, i)?;
            let profile = &self.gpu(target)?.profile;
            let physical = profile.physical_gpcs.get(first as usize).copied();
            // Each query has a status of its own.
            let status = match (kind, physical) {
                (GPC_COUNT, _) => {
                    p.set_at(&FloorSweeping::queries_queryData_0, i, profile.tpc_masks.len() as u64)?;
                    Status::NV_OK
                }
                (CHIPLET_GPC_MAP, Some(physical)) => {
                    p.set_at(&FloorSweeping::queries_queryData_1, i, physical.into())?;
                    Status::NV_OK
                }
                (TPC_MASK, Some(physical)) => {
                    let mask = profile.tpc_masks.get(physical as usize).copied().unwrap_or(0);
                    p.set_at(&FloorSweeping::queries_queryData_1, i, mask.into())?;
                    Status::NV_OK
                }
                (CHIPLET_SYSPIPE_MASK, _) => {
                    p.set_at(&FloorSweeping::queries_queryData_0, i, 1)?;
                    Status::NV_OK
                }
                (CHIPLET_GPC_MAP | TPC_MASK, None) => Status::INVALID_ARGUMENT,
                _ => {
                    self.note_gap(format!("NV2080_CTRL_CMD_GRMGR_GET_GR_FS_INFO query {kind}"));
                    Status::NOT_SUPPORTED
                }
            };
            p.set_at(&FloorSweeping::queries_status, i, status.0.into())?;
        }
        Ok(())
    }

    /// FLCN_GET_CTX_BUFFER_SIZE: only channels of the SEC2 engine have such a buffer, and none is simulated.
    pub(in super::super) fn falcon_context_size(
        &mut self,
        target: Target,
        p: &mut Record,
    ) -> Result<(), Refusal> {
        match self.object(target.client, p.get(&FalconContext::hChannel)? as u32)?.kind {
            Kind::Channel(_) => Err(Status::NOT_SUPPORTED.into()),
            _ => Err(Status::INVALID_CHANNEL.into()),
        }
    }

    /// FIFO_GET_CHANNELLIST: the hardware's ids of channels.
    pub(in super::super) fn channel_list(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        /// Channels that one call may name.
        const MAX: u64 = 4096;
        /// The id of what is no channel (NV0080_CTRL_FIFO_GET_CHANNELLIST_INVALID_CHANNEL).
        const INVALID: u32 = 0xffff_ffff;
        let count = p.get(&ChannelList::numChannels)?;
        let (handles, ids) = (p.get(&ChannelList::pChannelHandleList)?, p.get(&ChannelList::pChannelList)?);
        if count == 0 || count > MAX || handles == 0 || ids == 0 {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        let mut bytes = vec![0; count as usize * 4];
        client_memory::read(handles, &mut bytes)?;
        for word in bytes.chunks_exact_mut(4) {
            let handle = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
            let id = match self.object(target.client, handle).map(|object| &object.kind) {
                Ok(Kind::Channel(channel)) => channel.number,
                _ => INVALID,
            };
            word.copy_from_slice(&id.to_le_bytes());
        }
        Ok(client_memory::write(ids, &bytes)?)
    }
}
