//! What a simulated GPU is: its name, numbers, geometry and memory. One file per family, as data.
//!
//! Everything of the H200 was recorded from one. For Ada and Ampere, device numbers and unit counts are NVIDIA's
//! published ones, and what is not published follows the H200 by rule (older host classes stay, older engine classes do
//! not); [`Profile::measured`] tells the two apart.

mod geforce;
mod h200;

use nv_abi::arch::Generation;

/// One TPC in the order of `NV2080_CTRL_CMD_GR_GET_GLOBAL_SM_ORDER`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tpc {
    /// Logical GPC.
    pub gpc: u16,
    /// TPC in its GPC.
    pub local: u16,
    /// GPC that a partitioned GPU would show.
    pub virtual_gpc: u16,
    /// TPC in the virtual GPC.
    pub migratable: u16,
    /// Half of the chip.
    pub micro_gpu: u16,
    /// Group of TPCs in the GPC.
    pub physical_cpc: u16,
    /// TPC number in a virtual GPC, before floor sweeping.
    pub virtual_tpc: u16,
}

impl Tpc {
    const fn new(
        gpc: u16,
        local: u16,
        virtual_gpc: u16,
        migratable: u16,
        micro_gpu: u16,
        physical_cpc: u16,
        virtual_tpc: u16,
    ) -> Self {
        Self { gpc, local, virtual_gpc, migratable, micro_gpu, physical_cpc, virtual_tpc }
    }
}

/// A PCI base address register of the first GPU; the others lie a bit higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// Bus address.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
}

/// An answer to a list control: index and value.
pub type Info = (u32, u32);

/// One kind of GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Whether the values were recorded from a card; else they are public or follow by rule.
    pub measured: bool,
    /// The product's name, as `NV2080_CTRL_CMD_GPU_GET_NAME_STRING` gives it.
    pub name: &'static str,
    /// The chip's name as `NV2080_CTRL_CMD_GPU_GET_SHORT_NAME_STRING` gives it.
    pub short_name: &'static str,
    /// The chip's name in general use.
    pub chip: &'static str,
    /// The generation, which decides classes, QMD and constant-bank layout.
    pub generation: Generation,
    /// PCI device id; the vendor is 0x10de.
    pub pci_device_id: u16,
    /// PCI subsystem id: device in the high half, vendor in the low.
    pub pci_subsystem_id: u32,
    /// PCI revision.
    pub pci_revision: u8,
    /// `subRevision` of `NV2080_CTRL_CMD_MC_GET_ARCH_INFO`.
    pub pci_sub_revision: u8,
    /// `architecture` of the same control.
    pub architecture: u32,
    /// `implementation` of the same control.
    pub implementation: u32,
    /// Working TPCs of each physical GPC, as `NV2080_CTRL_CMD_GR_GET_TPC_MASK` gives them.
    pub tpc_masks: &'static [u32],
    /// Physical GPC of each logical one (`NV2080_CTRL_CMD_GRMGR_GET_GR_FS_INFO`).
    pub physical_gpcs: &'static [u32],
    /// TPCs in scheduling order; empty for one by one over the GPCs.
    pub sm_order: &'static [Tpc],
    /// GPCs that the chip has room for (LITTER_NUM_GPCS).
    pub litter_gpcs: u32,
    /// TPCs that a GPC has room for (LITTER_NUM_TPC_PER_GPC).
    pub litter_tpcs_per_gpc: u32,
    /// SMs in a TPC.
    pub sms_per_tpc: u32,
    /// Warps that an SM holds.
    pub warps_per_sm: u32,
    /// Blocks that an SM holds.
    pub blocks_per_sm: u32,
    /// SM version as GR_INFO gives it: major in 15:8, minor in 7:0 (0x809 is sm_89).
    pub sm_version: u32,
    /// Video memory in bytes.
    pub vram_bytes: u64,
    /// Bytes of it that the module keeps for itself.
    pub reserved_vram_bytes: u64,
    /// One past the highest GPU virtual address.
    pub address_limit: u64,
    /// Channel classes that can be allocated, oldest first.
    pub channel_classes: &'static [u32],
    /// Usermode classes that can be allocated, oldest first.
    pub usermode_classes: &'static [u32],
    /// Every class of `NV0080_CTRL_CMD_GPU_GET_CLASSLIST_V2`, in its order.
    pub classes: &'static [u32],
    /// NV2080 engine types of `NV2080_CTRL_CMD_GPU_GET_ENGINES_V2`.
    pub engines: &'static [u32],
    /// Capability bytes of each copy engine (`NV2080_CTRL_CMD_CE_GET_ALL_CAPS`).
    pub copy_caps: &'static [[u8; 2]],
    /// Engine type of the copy engine that a graphics channel uses.
    pub graphics_copy: u32,
    /// Runlist of each copy engine, which the work submit token carries.
    pub copy_runlists: &'static [u32],
    /// `capsTbl` of `NV2080_CTRL_CMD_GR_GET_CAPS_V2`.
    pub graphics_caps: &'static [u8],
    /// `capsTbl` of `NV0080_CTRL_CMD_FB_GET_CAPS_V2`.
    pub frame_buffer_caps: &'static [u8],
    /// `capsTbl` of `NV0080_CTRL_CMD_HOST_GET_CAPS_V2`.
    pub host_caps: &'static [u8],
    /// `totalBufferSize` of `NV2080_CTRL_CMD_GR_GET_CTX_BUFFER_SIZE`.
    pub context_buffer_bytes: u64,
    /// Units that have ECC, enabled (`NV2080_CTRL_CMD_GPU_QUERY_ECC_STATUS`).
    pub ecc_units: &'static [u32],
    /// Base address registers: the first for the chip's registers, the second for video memory.
    pub bars: &'static [Bar],
    /// `eccMask` and `nvlinkMask` of
    /// `NV90E6_CTRL_CMD_MASTER_GET_VIRTUAL_FUNCTION_ERROR_CONT_INTR_MASK`.
    pub error_interrupt_masks: (u32, u32),
    /// Whether such GPUs of one machine reach each other by NVLink; else by PCI.
    pub nvlink: bool,
    /// `virtualizationMode` of `NV0080_CTRL_CMD_GPU_GET_VIRTUALIZATION_MODE`: 0 none, 1 passed through.
    pub virtualization_mode: u32,
    /// Highest clocks.
    pub clocks: Clocks,
    /// `NV2080_CTRL_CMD_GPU_GET_INFO_V2`.
    pub gpu_info: &'static [Info],
    /// `NV2080_CTRL_CMD_FB_GET_INFO_V2`, but for what follows from the sizes above.
    pub frame_buffer_info: &'static [Info],
    /// `NV2080_CTRL_CMD_BUS_GET_INFO_V2`, but for where the GPU sits.
    pub bus_info: &'static [Info],
}

/// The highest clocks of a GPU in kHz, as CUDA tells them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// Of the multiprocessors.
    pub graphics_khz: u32,
    /// Of video memory.
    pub memory_khz: u32,
}

impl Profile {
    /// GeForce RTX 4090.
    pub fn ad102() -> Self {
        geforce::ad102()
    }

    /// GeForce RTX 3090.
    pub fn ga102() -> Self {
        geforce::ga102()
    }

    /// H200.
    pub fn h200() -> Self {
        h200::profile()
    }

    /// Working TPCs.
    pub fn tpc_count(&self) -> u32 {
        self.tpc_masks.iter().map(|mask| mask.count_ones()).sum()
    }

    /// Working SMs.
    pub fn sm_count(&self) -> u32 {
        self.tpc_count() * self.sms_per_tpc
    }

    /// The architecture that code is compiled for, as 89 for sm_89.
    pub fn sm(&self) -> u32 {
        (self.sm_version >> 8) * 10 + (self.sm_version & 0xff)
    }

    /// Bytes of video memory that clients can allocate.
    pub fn heap_bytes(&self) -> u64 {
        self.vram_bytes.saturating_sub(self.reserved_vram_bytes)
    }

    /// TPCs in scheduling order.
    pub fn tpc_order(&self) -> Vec<Tpc> {
        if !self.sm_order.is_empty() {
            return self.sm_order.to_vec();
        }
        // One of each GPC in turn.
        let counts: Vec<u32> = self.tpc_masks.iter().map(|mask| mask.count_ones()).collect();
        let most = counts.iter().copied().max().unwrap_or(0);
        let mut order = Vec::new();
        for tpc in 0..most as u16 {
            for (gpc, count) in (0..).zip(&counts) {
                if u32::from(tpc) < *count {
                    order.push(Tpc::new(gpc, tpc, gpc, tpc, 0, 0, tpc));
                }
            }
        }
        order
    }

    /// The runlist of an engine, which the work submit token carries: graphics has the first. `None` for an engine
    /// that the GPU lacks or that no work is simulated for.
    pub fn runlist(&self, engine: u32) -> Option<u32> {
        use nv_abi::rm::flags::{NV2080_ENGINE_TYPE_COPY0, NV2080_ENGINE_TYPE_GRAPHICS};
        if engine == NV2080_ENGINE_TYPE_GRAPHICS {
            return Some(0);
        }
        let copy = engine.checked_sub(NV2080_ENGINE_TYPE_COPY0)?;
        self.copy_runlists.get(copy as usize).copied()
    }
}
