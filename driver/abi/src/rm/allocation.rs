//! Allocation parameters of classes, and the structs that channels share with user space.
//!
//! Offsets and sizes were computed from the headers of NVIDIA/open-gpu-kernel-modules (MIT) at tags 535.288.01,
//! 550.163.01, 560.35.03, 565.77, 570.211.01, 580.142, 590.48.01 and 595.45.04 with a compiler, not by hand.
//! The channel parameters of branch 610 follow gVisor's nvproxy, not a header.

use crate::record;

record! {
    /// Class header of the same number (`class/`).
    pub mod NvNotification: 16 {
        timeStamp_nanoseconds: u32 [2] @ 0x0;
        info32: u32 @ 0x8;
        info16: u16 @ 0xc;
        status: u16 @ 0xe;
    }

    /// Class header of the same number (`class/`).
    pub mod NV0005_ALLOC_PARAMETERS: 24 {
        hParentClient: handle @ 0x0;
        hSrcResource: handle @ 0x4;
        hClass: class @ 0x8;
        notifyIndex: u32 @ 0xc;
        data: pointer @ 0x10;
    }

    /// Class header of the same number (`class/`).
    pub mod NV0080_ALLOC_PARAMETERS: 56 {
        deviceId: u32 @ 0x0;
        hClientShare: handle @ 0x4;
        hTargetClient: handle @ 0x8;
        hTargetDevice: handle @ 0xc;
        flags: u32 @ 0x10;
        vaSpaceSize: u64 @ 0x18;
        vaStartInternal: u64 @ 0x20;
        vaLimitInternal: u64 @ 0x28;
        vaMode: u32 @ 0x30;
    }

    /// Class header of the same number (`class/`).
    pub mod NV2080_ALLOC_PARAMETERS: 4 {
        subDeviceId: u32 @ 0x0;
    }

    /// `nvos.h`.
    pub mod NV_MEMORY_ALLOCATION_PARAMS: 120, R550 => 128 {
        owner: u32 @ 0x0;
        r#type: u32 @ 0x4;
        flags: u32 @ 0x8;
        width: u32 @ 0xc;
        height: u32 @ 0x10;
        pitch: i32 @ 0x14;
        attr: u32 @ 0x18;
        attr2: u32 @ 0x1c;
        format: u32 @ 0x20;
        comprCovg: u32 @ 0x24;
        zcullCovg: u32 @ 0x28;
        rangeLo: u64 @ 0x30;
        rangeHi: u64 @ 0x38;
        size: u64 @ 0x40;
        alignment: u64 @ 0x48;
        offset: u64 @ 0x50;
        limit: u64 @ 0x58;
        address: pointer @ 0x60;
        ctagOffset: u32 @ 0x68;
        hVASpace: handle @ 0x6c;
        internalflags: u32 @ 0x70;
        tag: u32 @ 0x74;
        numaNode: i32 @ none, R550 => 0x78;
    }

    /// `nvos.h`.
    pub mod NV_VASPACE_ALLOCATION_PARAMETERS: 48, R580 => 56 {
        index: u32 @ 0x0;
        flags: u32 @ 0x4;
        vaSize: u64 @ 0x8;
        vaStartInternal: u64 @ 0x10;
        vaLimitInternal: u64 @ 0x18;
        bigPageSize: u32 @ 0x20;
        vaBase: u64 @ 0x28;
        pasid: u32 @ none, R580 => 0x30;
    }

    /// `nvos.h`.
    pub mod NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS: 20 {
        hObjectError: handle @ 0x0;
        hObjectEccError: handle @ 0x4;
        hVASpace: handle @ 0x8;
        engineType: u32 @ 0xc;
        bIsCallingContextVgpuPlugin: bool @ 0x10;
    }

    /// `nvos.h`.
    pub mod NV_CTXSHARE_ALLOCATION_PARAMETERS: 12 {
        hVASpace: handle @ 0x0;
        flags: u32 @ 0x4;
        subctxId: u32 @ 0x8;
    }

    /// `nvos.h`.
    pub mod NV_GR_ALLOCATION_PARAMETERS: 16 {
        version: u32 @ 0x0;
        flags: u32 @ 0x4;
        size: u32 @ 0x8;
        caps: u32 @ 0xc;
    }

    /// `nvos.h`.
    pub mod NV_HOPPER_USERMODE_A_PARAMS: 2 {
        bBar1Mapping: bool @ 0x0;
        bPriv: bool @ 0x1;
    }

    /// Class header of the same number (`class/`).
    pub mod NV83DE_ALLOC_PARAMETERS: 12 {
        hDebuggerClient_Obsolete: handle @ 0x0;
        hAppClient: handle @ 0x4;
        hClass3dObject: handle @ 0x8;
    }

    /// Class header of the same number (`class/`).
    pub mod NV503B_ALLOC_PARAMETERS: 72, R590 => 88 {
        hSubDevice: handle @ 0x0;
        hPeerSubDevice: handle @ 0x4;
        subDevicePeerIdMask: u32 @ 0x8;
        peerSubDevicePeerIdMask: u32 @ 0xc;
        mailboxBar1Addr: u64 @ 0x10;
        mailboxTotalSize: u32 @ 0x18;
        flags: u32 @ 0x1c;
        subDeviceEgmPeerIdMask: u32 @ 0x20;
        peerSubDeviceEgmPeerIdMask: u32 @ 0x24;
        l2pBar1P2PDmaInfo_dma_address: u64 @ 0x28;
        l2pBar1P2PDmaInfo_dma_size: u64 @ 0x30;
        p2lBar1P2PDmaInfo_dma_address: u64 @ 0x38;
        p2lBar1P2PDmaInfo_dma_size: u64 @ 0x40;
        l2pFabricP2PInfo_gpa: u64 @ none, R590 => 0x48;
        p2lFabricP2PInfo_gpa: u64 @ none, R590 => 0x50;
    }

    /// Class header of the same number (`class/`).
    pub mod NV503C_ALLOC_PARAMETERS: 4 {
        flags: u32 @ 0x0;
    }

    /// Class header of the same number (`class/`).
    pub mod NV00DE_ALLOC_PARAMETERS: 4, R550 => 8 {
        polledDataMask: u64 @ none, R550 => 0x0;
        reserved: u32 @ 0x0, R550 => none;
    }

    /// Class header of the same number (`class/`).
    pub mod NVB0B5_ALLOCATION_PARAMETERS: 8 {
        version: u32 @ 0x0;
        engineType: u32 @ 0x4;
    }

    /// `nvos.h`.
    pub mod NV_OS_DESC_MEMORY_ALLOCATION_PARAMS: 40 {
        r#type: u32 @ 0x0;
        flags: u32 @ 0x4;
        attr: u32 @ 0x8;
        attr2: u32 @ 0xc;
        descriptor: pointer @ 0x10;
        limit: u64 @ 0x18;
        descriptorType: u32 @ 0x20;
        tag: u32 @ 0x24;
    }

    /// `nvos.h`.
    pub mod NV_CONTEXT_DMA_ALLOCATION_PARAMS: 32 {
        hSubDevice: handle @ 0x0;
        flags: u32 @ 0x4;
        hMemory: handle @ 0x8;
        offset: u64 @ 0x10;
        limit: u64 @ 0x18;
    }

    /// `nvos.h`.
    pub mod NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS: 360, R570 => 368, R610 => 376 {
        hObjectError: handle @ 0x0;
        hObjectBuffer: handle @ 0x4;
        gpFifoOffset: u64 @ 0x8;
        gpFifoEntries: u32 @ 0x10;
        flags: u32 @ 0x14;
        hContextShare: handle @ 0x18;
        hVASpace: handle @ 0x1c;
        hUserdMemory: handle [8] @ 0x20, R610 => 0x24;
        userdOffset: u64 [8] @ 0x40, R610 => 0x48;
        engineType: u32 @ 0x80, R610 => 0x88;
        cid: u32 @ 0x84, R610 => 0x8c;
        subDeviceId: u32 @ 0x88, R610 => 0x90;
        hObjectEccError: handle @ 0x8c, R610 => 0x94;
        instanceMem_base: u64 @ 0x90, R610 => 0x98;
        instanceMem_size: u64 @ 0x98, R610 => 0xa0;
        instanceMem_addressSpace: u32 @ 0xa0, R610 => 0xa8;
        instanceMem_cacheAttrib: u32 @ 0xa4, R610 => 0xac;
        userdMem_base: u64 @ 0xa8, R610 => 0xb0;
        userdMem_size: u64 @ 0xb0, R610 => 0xb8;
        userdMem_addressSpace: u32 @ 0xb8, R610 => 0xc0;
        userdMem_cacheAttrib: u32 @ 0xbc, R610 => 0xc4;
        ramfcMem_base: u64 @ 0xc0, R610 => 0xc8;
        ramfcMem_size: u64 @ 0xc8, R610 => 0xd0;
        ramfcMem_addressSpace: u32 @ 0xd0, R610 => 0xd8;
        ramfcMem_cacheAttrib: u32 @ 0xd4, R610 => 0xdc;
        mthdbufMem_base: u64 @ 0xd8, R610 => 0xe0;
        mthdbufMem_size: u64 @ 0xe0, R610 => 0xe8;
        mthdbufMem_addressSpace: u32 @ 0xe8, R610 => 0xf0;
        mthdbufMem_cacheAttrib: u32 @ 0xec, R610 => 0xf4;
        hPhysChannelGroup: handle @ 0xf0, R610 => 0xf8;
        internalFlags: u32 @ 0xf4, R610 => 0xfc;
        errorNotifierMem_base: u64 @ 0xf8, R610 => 0x100;
        errorNotifierMem_size: u64 @ 0x100, R610 => 0x108;
        errorNotifierMem_addressSpace: u32 @ 0x108, R610 => 0x110;
        errorNotifierMem_cacheAttrib: u32 @ 0x10c, R610 => 0x114;
        eccErrorNotifierMem_base: u64 @ 0x110, R610 => 0x118;
        eccErrorNotifierMem_size: u64 @ 0x118, R610 => 0x120;
        eccErrorNotifierMem_addressSpace: u32 @ 0x120, R610 => 0x128;
        eccErrorNotifierMem_cacheAttrib: u32 @ 0x124, R610 => 0x12c;
        ProcessID: u32 @ 0x128, R610 => 0x130;
        SubProcessID: u32 @ 0x12c, R610 => 0x134;
        encryptIv: u32 [3] @ 0x130, R610 => 0x138;
        decryptIv: u32 [3] @ 0x13c, R610 => 0x144;
        hmacNonce: u32 [8] @ 0x148, R610 => 0x150;
        tpcConfigID: u32 @ none, R570 => 0x168, R610 => 0x170;
        hHandleVASpace: handle @ none, R610 => 0x20;
    }

    /// `nvos.h`.
    pub mod NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS: 24 {
        offset: u64 @ 0x0;
        limit: u64 @ 0x8;
        hVASpace: handle @ 0x10;
    }

    /// Class header of the same number (`class/`).
    pub mod NV2081_ALLOC_PARAMETERS: 4 {
        reserved: u32 @ 0x0;
    }

    /// Class header of the same number (`class/`).
    pub mod NV_CONFIDENTIAL_COMPUTE_ALLOC_PARAMS: 4 {
        hClient: handle @ 0x0;
    }
}
