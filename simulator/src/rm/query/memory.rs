//! Controls about video memory and its caches.

use std::sync::atomic::Ordering;

use nv_abi::{
    Record,
    rm::{
        NV0041_CTRL_GET_SURFACE_INFO_PARAMS as SurfaceInfo, NV2080_CTRL_FB_GET_INFO_PARAMS as FbInfoV1,
        NV2080_CTRL_FB_GET_INFO_V2_PARAMS as FbInfo,
        NV2080_CTRL_FB_GET_SEMAPHORE_SURFACE_LAYOUT_PARAMS as Layout, Status,
    },
};

use super::{
    super::{Kernel, Kind, Refusal, control::Target},
    ConvertedList, Listed, find,
};

/// Indices whose answers follow from the sizes (`ctrl2080fb.h`); all are in KiB.
const RAM_SIZE: u32 = 0x07;
const TOTAL_RAM_SIZE: u32 = 0x08;
const HEAP_SIZE: u32 = 0x09;
const BAR1_SIZE: u32 = 0x05;
const HEAP_FREE: u32 = 0x16;
const USABLE_RAM_SIZE: u32 = 0x20;
/// One past the highest index.
const END: u32 = 0x3c;

impl Kernel {
    fn fb_answer(&self, target: Target, index: u32) -> Result<Option<u32>, Status> {
        let gpu = self.gpu(target)?;
        let used = gpu.vram_used.load(Ordering::Relaxed);
        let bytes = match index {
            RAM_SIZE | TOTAL_RAM_SIZE => gpu.profile.vram_bytes,
            HEAP_SIZE | USABLE_RAM_SIZE => gpu.profile.heap_bytes(),
            HEAP_FREE => gpu.profile.heap_bytes().saturating_sub(used),
            BAR1_SIZE => gpu.bar(1).bytes,
            _ => return Ok(find(gpu.profile.frame_buffer_info, index)),
        };
        Ok(Some((bytes >> 10) as u32))
    }

    pub(in super::super) fn fb_info(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let list = Listed {
            name: "NV2080_CTRL_CMD_FB_GET_INFO_V2",
            size: FbInfo::fbInfoListSize,
            index: FbInfo::fbInfoList_index,
            data: FbInfo::fbInfoList_data,
            end: END,
        };
        self.answer_list(p, &list, |kernel, index| kernel.fb_answer(target, index))
    }

    /// FB_GET_INFO: the same with a list that the client points to.
    pub(in super::super) fn fb_info_v1(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let (count, pointer) = (p.get(&FbInfoV1::fbInfoListSize)?, p.get(&FbInfoV1::fbInfoList)?);
        let list = ConvertedList {
            name: "NV2080_CTRL_CMD_FB_GET_INFO",
            room: FbInfo::fbInfoList_index.count(self.branch),
            end: END,
        };
        self.answer_converted_list(&list, (pointer, count), |kernel, index| kernel.fb_answer(target, index))
    }

    /// FB_GET_SEMAPHORE_SURFACE_LAYOUT: payload and time, a threshold at 16, the highest submitted value at 24.
    pub(in super::super) fn semaphore_surface_layout(
        &mut self,
        _: Target,
        p: &mut Record,
    ) -> Result<(), Refusal> {
        /// Monitored fences, and semaphores of 64 bits: since GA102.
        const CAPS: u64 = 3;
        p.set(&Layout::maxSubmittedSemaphoreValueOffset, 24)?;
        p.set(&Layout::monitoredFenceThresholdOffset, 16)?;
        p.set(&Layout::size, 32)?;
        Ok(p.set(&Layout::caps, CAPS)?)
    }

    /// GET_SURFACE_INFO of a memory object.
    pub(in super::super) fn surface_info(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        /// NV0041_CTRL_SURFACE_INFO_INDEX.
        const ATTRS: u32 = 1;
        const PHYS_SIZE_LO: u32 = 2;
        const PHYS_SIZE_HI: u32 = 3;
        const COMPR_COVERAGE: u32 = 5;
        const PHYS_SIZE: u32 = 7;
        const PHYS_ATTR: u32 = 8;
        const ADDR_SPACE_TYPE: u32 = 9;
        /// Page size, coherency and format of NVOS32_ATTR.
        const SHOWN: u32 = 3 << 23 | 7 << 29 | 3 << 16;
        /// Elements that a list may have: the module copies no more than 1 MiB.
        const MOST: u64 = (1 << 20) / 8;
        let (count, pointer) =
            (p.get(&SurfaceInfo::surfaceInfoListSize)?, p.get(&SurfaceInfo::surfaceInfoList)?);
        if count == 0 || pointer == 0 {
            return Ok(());
        }
        if count > MOST {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        let space = self.mapped_as(target.client, target.object)?;
        let (bytes, attr) = match &self.object(target.client, target.object)?.kind {
            Kind::Memory(memory) => (memory.size, memory.attr),
            Kind::Usermode { .. } => (super::super::Gpu::USERMODE_BYTES, 0),
            Kind::VirtualMemory { offset, limit, .. } => (limit.saturating_sub(*offset).saturating_add(1), 0),
            _ => return Err(Status::INVALID_OBJECT_HANDLE.into()),
        };
        self.answer_client_list(pointer, count, |_, index| {
            Ok(match index {
                // Nothing is compressed.
                ATTRS | COMPR_COVERAGE => 0,
                PHYS_SIZE_LO => bytes as u32,
                PHYS_SIZE_HI => (bytes >> 32) as u32,
                PHYS_SIZE => u32::try_from(bytes >> 12).map_err(|_| Status::OUT_OF_RANGE)?,
                PHYS_ATTR => attr & SHOWN,
                ADDR_SPACE_TYPE => space,
                _ => return Err(Status::INVALID_ARGUMENT.into()),
            })
        })
    }

    /// FB_FLUSH_GPU_CACHE: every store of the simulated engines is visible at once, so there is no cache to flush.
    pub(in super::super) fn flush_gpu_cache(&mut self, _: Target, _: &mut Record) -> Result<(), Refusal> {
        Ok(())
    }
}
