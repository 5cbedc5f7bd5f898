//! Controls about video memory and its caches.

use std::sync::atomic::Ordering;

use nv_abi::{
    Record,
    rm::{NV2080_CTRL_FB_GET_INFO_PARAMS as FbInfoV1, NV2080_CTRL_FB_GET_INFO_V2_PARAMS as FbInfo, Status},
};

use super::{
    super::{Kernel, Refusal, control::Target},
    Listed, find,
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
        if count > END.into() || (count != 0 && pointer == 0) {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        self.answer_client_list(pointer, count, |kernel, index| {
            let value = kernel.fb_answer(target, index)?;
            value.ok_or_else(|| kernel.not_supported(format!("NV2080_CTRL_CMD_FB_GET_INFO index {index:#x}")))
        })
    }

    /// FB_FLUSH_GPU_CACHE: every store of the simulated engines is visible at once, so there is no cache to flush.
    pub(in super::super) fn flush_gpu_cache(&mut self, _: Target, _: &mut Record) -> Result<(), Refusal> {
        Ok(())
    }
}
