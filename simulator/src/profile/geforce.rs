//! GeForce cards. Names, device numbers, unit counts, memory and caches are NVIDIA's published ones. What only a card
//! could tell (capability bytes, list answers without a public source) follows the H200's recording; the engines'
//! classes are the generation's own.

use nv_abi::{arch::Generation, rm::class};

use super::{Bar, Clocks, Info, Profile};
use crate::memory::AddressSpace;

/// `NV0080_CTRL_CMD_GPU_GET_CLASSLIST_V2` with a generation's own classes in place: graphics and compute, and its
/// video engines.
const fn classes([graphics, compute]: [u32; 2], video: [u32; 3]) -> [u32; 87] {
    [
        0x0100, 0x0101, 0x0002, 0x0080, 0x0005, 0x0078, 0x007e, 0x0079, 0x0081, 0x003e, 0x0071, 0x0000,
        0x0041, 0x0001, 0x2080, 0x000f, 0x906f, 0x90cc, 0x83de, 0x0090, 0xb1cc, 0xb2cc, 0xc763, 0x900e,
        0x0020, 0x0092, 0x90ce, 0x00f3, 0x0076, 0x00b1, 0x0082, 0x0083, 0x00c2, 0x003f, 0x0004, 0x2081,
        0x2082, 0x208f, 0x30f1, 0x00db, 0x402c, 0x9010, 0xa0bc, 0xa0bd, 0x0050, 0x90cd, 0x0042, 0x00fe,
        0x00da, 0xc574, 0xc365, 0xc56f, 0xc561, 0x9067, 0x902d, 0x90f1, 0x844c, 0x90e7, 0x90e6, 0x9074,
        0x9096, 0xc076, graphics, compute, 0xc7b5, 0xa06c, 0xa080, 0xa140, 0xc369, 0x0060, 0x0040, 0x0070,
        0x007d, 0x5080, 0x50a0, 0x503b, 0x503c, 0xa081, 0xa084, video[0], video[1], video[2], 0x00de, 0xc46f,
        0xc461, 0xc36f, 0xc361,
    ]
}

/// `NV2080_CTRL_CMD_FB_GET_INFO_V2` of cards with 384 bits of memory bus, by the bytes of their second-level cache.
const fn frame_buffer_info(l2_bytes: u32) -> [Info; 11] {
    [
        (0x0b, 384),
        (0x0d, 0x12),
        (0x10, 0),
        (0x17, 0),
        (0x18, 0),
        (0x19, 6),
        (0x1a, 0x3f),
        (0x1b, l2_bytes),
        (0x22, 12),
        (0x23, 48),
        (0x3b, 0xffff_ffff),
    ]
}

const AD102_CLASSES: [u32; 87] = classes([0xc997, 0xc9c0], [0xc9b0, 0xc9d1, 0xc9fa]);
const GA102_CLASSES: [u32; 87] = classes([0xc797, 0xc7c0], [0xc7b0, 0xc7b7, 0xc7fa]);
const AD102_FRAME_BUFFER: [Info; 11] = frame_buffer_info(72 << 20);
const GA102_FRAME_BUFFER: [Info; 11] = frame_buffer_info(6 << 20);

/// GeForce RTX 4090.
pub(super) fn ad102() -> Profile {
    Profile {
        measured: false,
        name: "NVIDIA GeForce RTX 4090",
        short_name: "AD102-A",
        chip: "AD102",
        generation: Generation::Ada,
        pci_device_id: 0x2684,
        pci_subsystem_id: 0x16f4_10de,
        pci_revision: 0xa1,
        pci_sub_revision: 0,
        architecture: 0x190,
        implementation: 2,
        tpc_masks: &[0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x1f, 0x1f],
        physical_gpcs: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
        sm_order: &[],
        litter_gpcs: 12,
        litter_tpcs_per_gpc: 6,
        sms_per_tpc: 2,
        warps_per_sm: 48,
        blocks_per_sm: 24,
        sm_version: 0x809,
        vram_bytes: 24 << 30,
        reserved_vram_bytes: 512 << 20,
        address_limit: AddressSpace::LIMIT_49_BITS,
        channel_classes: &[
            class::VOLTA_CHANNEL_GPFIFO_A,
            class::TURING_CHANNEL_GPFIFO_A,
            class::AMPERE_CHANNEL_GPFIFO_A,
        ],
        usermode_classes: &[class::VOLTA_USERMODE_A, class::TURING_USERMODE_A, class::AMPERE_USERMODE_A],
        classes: &AD102_CLASSES,
        engines: &[0x01, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x13, 0x1b, 0x1c, 0x22, 0x26, 0x2b, 0x33],
        copy_caps: &[[0xe3, 0x03], [0xe3, 0x03], [0xe2, 0x03], [0xe2, 0x03], [0xe0, 0x03]],
        graphics_copy: 0x0a,
        copy_runlists: &[0, 0, 1, 2, 3],
        graphics_caps: &[
            0xb0, 0x2e, 0, 0, 0, 0, 0, 0x01, 0, 0, 0, 0x10, 0x01, 0x08, 0, 0x10, 0x10, 0, 0x80, 0, 0x04,
            0x40, 0,
        ],
        frame_buffer_caps: &[0x0b, 0x81, 0x12],
        host_caps: &[0, 0, 0],
        context_buffer_bytes: 0x40_0000,
        ecc_units: &[],
        bars: &[
            Bar { bytes: 16 << 20, offset: 0xf000_0000 },
            Bar { bytes: 32 << 30, offset: 0x100_0000_0000 },
            Bar { bytes: 32 << 20, offset: 0x108_0000_0000 },
            Bar { bytes: 0, offset: 0 },
        ],
        error_interrupt_masks: (0, 0),
        nvlink: false,
        virtualization_mode: 0,
        // The boost clock that NVIDIA names, and the memory's.
        clocks: Clocks { graphics_khz: 2_520_000, memory_khz: 10_501_000 },
        gpu_info: &[
            (0x11, 1),
            (0x22, 0),
            (0x27, 0),
            (0x2a, 0),
            (0x2d, 0),
            (0x37, 1),
            (0x3a, 0),
            (0x3b, 0),
            (0x3c, 0),
            (0x3d, 1),
            (0x44, 0),
        ],
        frame_buffer_info: &AD102_FRAME_BUFFER,
        bus_info: &[(0x00, 3), (0x02, 0), (0x03, 0x45_7904), (0x06, 0), (0x0b, 5), (0x2d, 0x33_3000)],
    }
}

/// GeForce RTX 3090.
pub(super) fn ga102() -> Profile {
    Profile {
        name: "NVIDIA GeForce RTX 3090",
        short_name: "GA102-A",
        chip: "GA102",
        generation: Generation::Ampere,
        pci_device_id: 0x2204,
        pci_subsystem_id: 0x1454_10de,
        architecture: 0x170,
        tpc_masks: &[0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x1f],
        physical_gpcs: &[0, 1, 2, 3, 4, 5, 6],
        litter_gpcs: 7,
        blocks_per_sm: 16,
        sm_version: 0x806,
        classes: &GA102_CLASSES,
        clocks: Clocks { graphics_khz: 1_695_000, memory_khz: 9_751_000 },
        frame_buffer_info: &GA102_FRAME_BUFFER,
        ..ad102()
    }
}
