//! Arguments of the frontend ioctls on the control and GPU nodes.
//!
//! Offsets and sizes were computed from the headers of NVIDIA/open-gpu-kernel-modules (MIT) at tags 535.288.01,
//! 550.163.01, 560.35.03, 565.77, 570.211.01, 580.142, 590.48.01 and 595.45.04 with a compiler, not by hand.

use crate::record;

record! {
    /// `nv-ioctl.h`.
    pub mod nv_ioctl_xfer_t: 16 {
        cmd: u32 @ 0x0;
        size: u32 @ 0x4;
        ptr: pointer @ 0x8;
    }

    /// `nv-ioctl.h`.
    pub mod nv_ioctl_card_info_t: 72 {
        valid: bool @ 0x0;
        pci_info_domain: u32 @ 0x4;
        pci_info_bus: u8 @ 0x8;
        pci_info_slot: u8 @ 0x9;
        pci_info_function: u8 @ 0xa;
        pci_info_vendor_id: u16 @ 0xc;
        pci_info_device_id: u16 @ 0xe;
        gpu_id: u32 @ 0x10;
        interrupt_line: u16 @ 0x14;
        reg_address: u64 @ 0x18;
        reg_size: u64 @ 0x20;
        fb_address: u64 @ 0x28;
        fb_size: u64 @ 0x30;
        minor_number: u32 @ 0x38;
        dev_name: u8 [10] @ 0x3c;
    }

    /// `nv-ioctl.h`.
    pub mod nv_ioctl_rm_api_version_t: 72 {
        cmd: u32 @ 0x0;
        reply: u32 @ 0x4;
        versionString: u8 [64] @ 0x8;
    }

    /// `nv-ioctl.h`.
    pub mod nv_ioctl_register_fd_t: 4 {
        ctl_fd: descriptor @ 0x0;
    }

    /// `nv-ioctl.h`.
    pub mod nv_ioctl_sys_params_t: 8 {
        memblock_size: u64 @ 0x0;
    }

    /// `nv-ioctl.h`.
    pub mod nv_ioctl_alloc_os_event_t: 16 {
        hClient: handle @ 0x0;
        hDevice: handle @ 0x4;
        fd: descriptor @ 0x8;
        Status: status @ 0xc;
    }

    /// `nv-ioctl.h`.
    pub mod nv_ioctl_free_os_event_t: 16 {
        hClient: handle @ 0x0;
        hDevice: handle @ 0x4;
        fd: descriptor @ 0x8;
        Status: status @ 0xc;
    }

    /// `nv-ioctl.h`.
    pub mod nv_ioctl_status_code_t: 12 {
        domain: u32 @ 0x0;
        bus: u8 @ 0x4;
        slot: u8 @ 0x5;
        status: status @ 0x8;
    }

    /// `nv-ioctl.h`.
    pub mod nv_ioctl_query_device_intr: 8 {
        intrStatus: status @ 0x0;
        status: status @ 0x4;
    }

    /// `nv-ioctl.h`.
    pub mod nv_ioctl_export_to_dma_buf_fd_t: 2600, R570 => 2608 {
        fd: descriptor @ 0x0;
        hClient: handle @ 0x4;
        totalObjects: u32 @ 0x8;
        numObjects: u32 @ 0xc;
        index: u32 @ 0x10;
        totalSize: u64 @ 0x18;
        mappingType: u8 @ none, R570 => 0x20;
        bAllowMmap: bool @ none, R580 => 0x21;
        handles: handle [128] @ 0x20, R570 => 0x24;
        offsets: u64 [128] @ 0x220, R570 => 0x228;
        sizes: u64 [128] @ 0x620, R570 => 0x628;
        status: status @ 0xa20, R570 => 0xa28;
    }

    /// `nv-unix-nvos-params-wrappers.h`: the struct and a file descriptor.
    pub mod nv_ioctl_nvos02_parameters_with_fd: 56 {
        hRoot: handle @ 0x0;
        hObjectParent: handle @ 0x4;
        hObjectNew: handle @ 0x8;
        hClass: class @ 0xc;
        flags: u32 @ 0x10;
        pMemory: pointer @ 0x18;
        limit: u64 @ 0x20;
        status: status @ 0x28;
        fd: descriptor @ 0x30;
    }

    /// `nv-unix-nvos-params-wrappers.h`: the struct and a file descriptor.
    pub mod nv_ioctl_nvos33_parameters_with_fd: 56 {
        hClient: handle @ 0x0;
        hDevice: handle @ 0x4;
        hMemory: handle @ 0x8;
        offset: u64 @ 0x10;
        length: u64 @ 0x18;
        pLinearAddress: pointer @ 0x20;
        status: status @ 0x28;
        flags: u32 @ 0x2c;
        fd: descriptor @ 0x30;
    }

    /// `nv-ioctl.h`.
    pub mod nv_ioctl_wait_open_complete_t: 8 {
        rc: i32 @ 0x0;
        adapterStatus: status @ 0x4;
    }

    /// `nv-ioctl.h`.
    pub mod nv_ioctl_numa_info_t: 560 {
        nid: u32 @ 0x0;
        status: status @ 0x4;
        memblock_size: u64 @ 0x8;
        numa_mem_addr: u64 @ 0x10;
        numa_mem_size: u64 @ 0x18;
        use_auto_online: u8 @ 0x20;
        offline_addresses_addresses: u64 [64] @ 0x28;
        offline_addresses_numEntries: u32 @ 0x228;
    }

    /// `nvos.h`.
    pub mod NVOS00_PARAMETERS: 16 {
        hRoot: handle @ 0x0;
        hObjectParent: handle @ 0x4;
        hObjectOld: handle @ 0x8;
        status: status @ 0xc;
    }

    /// `nvos.h`.
    pub mod NVOS02_PARAMETERS: 48 {
        hRoot: handle @ 0x0;
        hObjectParent: handle @ 0x4;
        hObjectNew: handle @ 0x8;
        hClass: class @ 0xc;
        flags: u32 @ 0x10;
        pMemory: pointer @ 0x18;
        limit: u64 @ 0x20;
        status: status @ 0x28;
    }

    /// `nvos.h`.
    pub mod NVOS05_PARAMETERS: 20 {
        hRoot: handle @ 0x0;
        hObjectParent: handle @ 0x4;
        hObjectNew: handle @ 0x8;
        hClass: class @ 0xc;
        status: status @ 0x10;
    }

    /// `nvos.h`.
    pub mod NVOS21_PARAMETERS: 32 {
        hRoot: handle @ 0x0;
        hObjectParent: handle @ 0x4;
        hObjectNew: handle @ 0x8;
        hClass: class @ 0xc;
        pAllocParms: pointer @ 0x10;
        paramsSize: u32 @ 0x18;
        status: status @ 0x1c;
    }

    /// `nvos.h`.
    pub mod NVOS64_PARAMETERS: 48 {
        hRoot: handle @ 0x0;
        hObjectParent: handle @ 0x4;
        hObjectNew: handle @ 0x8;
        hClass: class @ 0xc;
        pAllocParms: pointer @ 0x10;
        pRightsRequested: pointer @ 0x18;
        paramsSize: u32 @ 0x20;
        flags: u32 @ 0x24;
        status: status @ 0x28;
    }

    /// `nvos.h`.
    pub mod NVOS30_PARAMETERS: 56 {
        hClient: handle @ 0x0;
        hDevice: handle @ 0x4;
        hChannel: handle @ 0x8;
        numChannels: u32 @ 0xc;
        phClients: pointer @ 0x10;
        phDevices: pointer @ 0x18;
        phChannels: pointer @ 0x20;
        flags: u32 @ 0x28;
        timeout: u32 @ 0x2c;
        status: status @ 0x30;
    }

    /// `nvos.h`.
    pub mod NVOS34_PARAMETERS: 32 {
        hClient: handle @ 0x0;
        hDevice: handle @ 0x4;
        hMemory: handle @ 0x8;
        pLinearAddress: pointer @ 0x10;
        status: status @ 0x18;
        flags: u32 @ 0x1c;
    }

    /// `nvos.h`.
    pub mod NVOS39_PARAMETERS: 56 {
        hObjectParent: handle @ 0x0;
        hSubDevice: handle @ 0x4;
        hObjectNew: handle @ 0x8;
        hClass: class @ 0xc;
        flags: u32 @ 0x10;
        selector: u32 @ 0x14;
        hMemory: handle @ 0x18;
        offset: u64 @ 0x20;
        limit: u64 @ 0x28;
        status: status @ 0x30;
    }

    /// `nvos.h`.
    pub mod NVOS41_PARAMETERS: 16 {
        pEvent: pointer @ 0x0;
        MoreEvents: u32 @ 0x8;
        status: status @ 0xc;
    }

    /// `nvos.h`.
    pub mod NVOS46_PARAMETERS: 56, R580 => 64 {
        hClient: handle @ 0x0;
        hDevice: handle @ 0x4;
        hDma: handle @ 0x8;
        hMemory: handle @ 0xc;
        offset: u64 @ 0x10;
        length: u64 @ 0x18;
        flags: u32 @ 0x20;
        flags2: u32 @ none, R580 => 0x24;
        kindOverride: u32 @ none, R580 => 0x28;
        dmaOffset: u64 @ 0x28, R580 => 0x30;
        status: status @ 0x30, R580 => 0x38;
    }

    /// `nvos.h`.
    pub mod NVOS47_PARAMETERS: 40, R550 => 48 {
        hClient: handle @ 0x0;
        hDevice: handle @ 0x4;
        hDma: handle @ 0x8;
        hMemory: handle @ 0xc;
        flags: u32 @ 0x10;
        dmaOffset: u64 @ 0x18;
        size: u64 @ none, R550 => 0x20;
        status: status @ 0x20, R550 => 0x28;
    }

    /// `nvos.h`.
    pub mod NVOS49_PARAMETERS: 16 {
        hClient: handle @ 0x0;
        hChannel: handle @ 0x4;
        hCtxDma: handle @ 0x8;
        status: status @ 0xc;
    }

    /// `nvos.h`.
    pub mod NVOS54_PARAMETERS: 32 {
        hClient: handle @ 0x0;
        hObject: handle @ 0x4;
        cmd: command @ 0x8;
        flags: u32 @ 0xc;
        params: pointer @ 0x10;
        paramsSize: u32 @ 0x18;
        status: status @ 0x1c;
    }

    /// `nvos.h`.
    pub mod NVOS55_PARAMETERS: 28 {
        hClient: handle @ 0x0;
        hParent: handle @ 0x4;
        hObject: handle @ 0x8;
        hClientSrc: handle @ 0xc;
        hObjectSrc: handle @ 0x10;
        flags: u32 @ 0x14;
        status: status @ 0x18;
    }

    /// `nvos.h`.
    pub mod NVOS56_PARAMETERS: 40 {
        hClient: handle @ 0x0;
        hDevice: handle @ 0x4;
        hMemory: handle @ 0x8;
        pOldCpuAddress: pointer @ 0x10;
        pNewCpuAddress: pointer @ 0x18;
        status: status @ 0x20;
    }

    /// `nvos.h`.
    pub mod NVOS57_PARAMETERS: 24 {
        hClient: handle @ 0x0;
        hObject: handle @ 0x4;
        sharePolicy_target: u32 @ 0x8;
        sharePolicy_accessMask_limbs: u32 @ 0xc;
        sharePolicy_type: u16 @ 0x10;
        sharePolicy_action: u8 @ 0x12;
        status: status @ 0x14;
    }

    /// Class header of the same number (`class/`).
    pub mod NvUnixEvent: 16 {
        hObject: handle @ 0x0;
        NotifyIndex: u32 @ 0x4;
        info32: u32 @ 0x8;
        info16: u16 @ 0xc;
    }

    /// `nvos.h`: RM_VID_HEAP_CONTROL. The members of the union have the function's name in front.
    pub mod NVOS32_PARAMETERS: 184 {
        hRoot: handle @ 0x0;
        hObjectParent: handle @ 0x4;
        function: u32 @ 0x8;
        hVASpace: handle @ 0xc;
        ivcHeapNumber: i16 @ 0x10;
        status: status @ 0x14;
        total: u64 @ 0x18;
        free: u64 @ 0x20;
        AllocSize_owner: u32 @ 0x28;
        AllocSize_hMemory: handle @ 0x2c;
        AllocSize_type: u32 @ 0x30;
        AllocSize_flags: u32 @ 0x34;
        AllocSize_attr: u32 @ 0x38;
        AllocSize_format: u32 @ 0x3c;
        AllocSize_comprCovg: u32 @ 0x40;
        AllocSize_zcullCovg: u32 @ 0x44;
        AllocSize_partitionStride: u32 @ 0x48;
        AllocSize_width: u32 @ 0x4c;
        AllocSize_height: u32 @ 0x50;
        AllocSize_size: u64 @ 0x58;
        AllocSize_alignment: u64 @ 0x60;
        AllocSize_offset: u64 @ 0x68;
        AllocSize_limit: u64 @ 0x70;
        AllocSize_address: pointer @ 0x78;
        AllocSize_rangeBegin: u64 @ 0x80;
        AllocSize_rangeEnd: u64 @ 0x88;
        AllocSize_attr2: u32 @ 0x90;
        AllocSize_ctagOffset: u32 @ 0x94;
        AllocSize_numaNode: i32 @ none, R550 => 0x98;
        Free_owner: u32 @ 0x28;
        Free_hMemory: handle @ 0x2c;
        Free_flags: u32 @ 0x30;
        AllocOsDesc_hMemory: handle @ 0x28;
        AllocOsDesc_type: u32 @ 0x2c;
        AllocOsDesc_flags: u32 @ 0x30;
        AllocOsDesc_attr: u32 @ 0x34;
        AllocOsDesc_attr2: u32 @ 0x38;
        AllocOsDesc_descriptor: pointer @ 0x40;
        AllocOsDesc_limit: u64 @ 0x48;
        AllocOsDesc_descriptorType: u32 @ 0x50;
    }
}
