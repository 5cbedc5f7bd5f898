//! Parameters of control calls.
//!
//! Offsets and sizes were computed from the headers of NVIDIA/open-gpu-kernel-modules (MIT) at tags 535.288.01,
//! 550.163.01, 560.35.03, 565.77, 570.211.01, 580.142, 590.48.01 and 595.45.04 with a compiler, not by hand.

use crate::record;

record! {
    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0000_CTRL_SYSTEM_GET_BUILD_VERSION_PARAMS: 40 {
        sizeOfStrings: u32 @ 0x0;
        pDriverVersionBuffer: pointer @ 0x8;
        pVersionBuffer: pointer @ 0x10;
        pTitleBuffer: pointer @ 0x18;
        changelistNumber: u32 @ 0x20;
        officialChangelistNumber: u32 @ 0x24;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0000_CTRL_SYSTEM_GET_BUILD_VERSION_V2_PARAMS: 776, R560 => 1032 {
        driverVersionBuffer: u8 [256] @ 0x0;
        versionBuffer: u8 [256] @ 0x100;
        driverBranch: u8 [256] @ none, R560 => 0x200;
        titleBuffer: u8 [256] @ 0x200, R560 => 0x300;
        changelistNumber: u32 @ 0x300, R560 => 0x400;
        officialChangelistNumber: u32 @ 0x304, R560 => 0x404;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0000_CTRL_GPU_GET_ATTACHED_IDS_PARAMS: 128 {
        gpuIds: u32 [32] @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0000_CTRL_GPU_GET_PROBED_IDS_PARAMS: 256, R580 => 384 {
        gpuIds: u32 [32] @ 0x0;
        excludedGpuIds: u32 [32] @ 0x80;
        gpuFlags: u32 [32] @ none, R580 => 0x100;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0000_CTRL_GPU_ATTACH_IDS_PARAMS: 132 {
        gpuIds: u32 [32] @ 0x0;
        failedId: u32 @ 0x80;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0000_CTRL_GPU_DETACH_IDS_PARAMS: 128 {
        gpuIds: u32 [32] @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0000_CTRL_GPU_GET_ID_INFO_PARAMS: 40 {
        gpuId: u32 @ 0x0;
        gpuFlags: u32 @ 0x4;
        deviceInstance: u32 @ 0x8;
        subDeviceInstance: u32 @ 0xc;
        szName: pointer @ 0x10;
        sliStatus: u32 @ 0x18;
        boardId: u32 @ 0x1c;
        gpuInstance: u32 @ 0x20;
        numaId: i32 @ 0x24;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0000_CTRL_GPU_GET_ID_INFO_V2_PARAMS: 32 {
        gpuId: u32 @ 0x0;
        gpuFlags: u32 @ 0x4;
        deviceInstance: u32 @ 0x8;
        subDeviceInstance: u32 @ 0xc;
        sliStatus: u32 @ 0x10;
        boardId: u32 @ 0x14;
        gpuInstance: u32 @ 0x18;
        numaId: i32 @ 0x1c;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0000_CTRL_GPU_GET_DEVICE_IDS_PARAMS: 4 {
        deviceIds: u32 @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0000_CTRL_GPU_GET_PCI_INFO_PARAMS: 12 {
        gpuId: u32 @ 0x0;
        domain: u32 @ 0x4;
        bus: u16 @ 0x8;
        slot: u16 @ 0xa;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0000_CTRL_GPU_GET_UUID_FROM_GPU_ID_PARAMS: 268 {
        gpuId: u32 @ 0x0;
        flags: u32 @ 0x4;
        gpuUuid: u8 [256] @ 0x8;
        uuidStrLen: u32 @ 0x108;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0000_CTRL_GPU_GET_MEMOP_ENABLE_PARAMS: 4 {
        enableMask: u32 @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0000_CTRL_SYSTEM_GET_FABRIC_STATUS_PARAMS: 4 {
        fabricStatus: u32 @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0000_CTRL_SYSTEM_GET_P2P_CAPS_MATRIX_PARAMS: 1352 {
        grpACount: u32 @ 0x0;
        grpBCount: u32 @ 0x4;
        gpuIdGrpA: u32 [8] @ 0x8;
        gpuIdGrpB: u32 [8] @ 0x28;
        p2pCaps: u32 [64] @ 0x48;
        a2bOptimalReadCes: u32 [64] @ 0x148;
        a2bOptimalWriteCes: u32 [64] @ 0x248;
        b2aOptimalReadCes: u32 [64] @ 0x348;
        b2aOptimalWriteCes: u32 [64] @ 0x448;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0000_CTRL_CLIENT_GET_ADDR_SPACE_TYPE_PARAMS: 12 {
        hObject: handle @ 0x0;
        mapFlags: u32 @ 0x4;
        addrSpaceType: u32 @ 0x8;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0080_CTRL_GPU_GET_CLASSLIST_PARAMS: 16 {
        numClasses: u32 @ 0x0;
        classList: pointer @ 0x8;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0080_CTRL_GPU_GET_CLASSLIST_V2_PARAMS: 644, R550 => 700, R560 => 404, R580 => 804 {
        numClasses: u32 @ 0x0;
        classList: class [160] @ 0x4, R550 => 0x4 x 174, R560 => 0x4 x 100, R580 => 0x4 x 200;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0080_CTRL_GPU_GET_NUM_SUBDEVICES_PARAMS: 4 {
        numSubDevices: u32 @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0080_CTRL_GPU_GET_VIRTUALIZATION_MODE_PARAMS: 4, R560 => 8 {
        virtualizationMode: u32 @ 0x0;
        isGridBuild: bool @ none, R560 => 0x4;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0080_CTRL_FB_GET_CAPS_V2_PARAMS: 3 {
        capsTbl: u8 [3] @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0080_CTRL_HOST_GET_CAPS_V2_PARAMS: 3 {
        capsTbl: u8 [3] @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0080_CTRL_FIFO_GET_CAPS_V2_PARAMS: 2 {
        capsTbl: u8 [2] @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0080_CTRL_GR_GET_CAPS_V2_PARAMS: 48 {
        capsTbl: u8 [23] @ 0x0;
        grRouteInfo_flags: u32 @ 0x18;
        grRouteInfo_route: u64 @ 0x20;
        bCapsPopulated: bool @ 0x28;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0080_CTRL_FIFO_GET_CHANNELLIST_PARAMS: 24 {
        numChannels: u32 @ 0x0;
        pChannelHandleList: pointer @ 0x8;
        pChannelList: pointer @ 0x10;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_GPU_GET_INFO_V2_PARAMS: 516, R550 => 524, R580 => 564 {
        gpuInfoListSize: u32 @ 0x0;
        gpuInfoList_index: u32 [64 + 8] @ 0x4, R550 => 0x4 x 65, R580 => 0x4 x 70;
        gpuInfoList_data: u32 [64 + 8] @ 0x8, R550 => 0x8 x 65, R580 => 0x8 x 70;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS: 132, R595 => 68 {
        gpuNameStringFlags: u32 @ 0x0;
        gpuNameString_ascii: u8 [64] @ 0x4;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_GPU_GET_SHORT_NAME_STRING_PARAMS: 64 {
        gpuShortNameString: u8 [64] @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_GPU_GET_SIMULATION_INFO_PARAMS: 4 {
        r#type: u32 @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_GPU_GET_ENGINES_V2_PARAMS: 252, R550 => 260, R560 => 340 {
        engineCount: u32 @ 0x0;
        engineList: u32 [62] @ 0x4, R550 => 0x4 x 64, R560 => 0x4 x 84;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_GPU_GET_ID_PARAMS: 4 {
        gpuId: u32 @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_GPU_GET_GID_INFO_PARAMS: 268 {
        index: u32 @ 0x0;
        flags: u32 @ 0x4;
        length: u32 @ 0x8;
        data: u8 [256] @ 0xc;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_GPU_QUERY_COMPUTE_MODE_RULES_PARAMS: 4 {
        rules: u32 @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_EVENT_SET_NOTIFICATION_PARAMS: 20 {
        event: u32 @ 0x0;
        action: u32 @ 0x4;
        bNotifyState: bool @ 0x8;
        info32: u32 @ 0xc;
        info16: u16 @ 0x10;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_TIMER_GET_TIME_PARAMS: 8 {
        time_nsec: u64 @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_TIMER_GET_GPU_CPU_TIME_CORRELATION_INFO_PARAMS: 264 {
        cpuClkId: u8 @ 0x0;
        sampleCount: u8 @ 0x1;
        samples_cpuTime: u64 [16 + 16] @ 0x8;
        samples_gpuTime: u64 [16 + 16] @ 0x10;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_GR_GET_INFO_PARAMS: 32 {
        grInfoListSize: u32 @ 0x0;
        grInfoList: pointer @ 0x8;
        grRouteInfo_flags: u32 @ 0x10;
        grRouteInfo_route: u64 @ 0x18;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_GR_GET_CAPS_V2_PARAMS: 48 {
        capsTbl: u8 [23] @ 0x0;
        grRouteInfo_flags: u32 @ 0x18;
        grRouteInfo_route: u64 @ 0x20;
        bCapsPopulated: bool @ 0x28;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_GR_GET_GPC_MASK_PARAMS: 24 {
        grRouteInfo_flags: u32 @ 0x0;
        grRouteInfo_route: u64 @ 0x8;
        gpcMask: u32 @ 0x10;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_GR_GET_TPC_MASK_PARAMS: 24 {
        grRouteInfo_flags: u32 @ 0x0;
        grRouteInfo_route: u64 @ 0x8;
        gpcId: u32 @ 0x10;
        tpcMask: u32 @ 0x14;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_GR_GET_GLOBAL_SM_ORDER_PARAMS: 6168, R580 => 9240 {
        globalSmId_gpcId: u16 [512 + 12] @ 0x0, R580 => 0x0 x 512 + 18;
        globalSmId_localTpcId: u16 [512 + 12] @ 0x2, R580 => 0x2 x 512 + 18;
        globalSmId_localSmId: u16 [512 + 12] @ 0x4, R580 => 0x4 x 512 + 18;
        globalSmId_globalTpcId: u16 [512 + 12] @ 0x6, R580 => 0x6 x 512 + 18;
        globalSmId_virtualGpcId: u16 [512 + 12] @ 0x8, R580 => 0x8 x 512 + 18;
        globalSmId_migratableTpcId: u16 [512 + 12] @ 0xa, R580 => 0xa x 512 + 18;
        globalSmId_ugpuId: u16 [512 + 18] @ none, R580 => 0xc;
        globalSmId_physicalCpcId: u16 [512 + 18] @ none, R580 => 0xe;
        globalSmId_virtualTpcId: u16 [512 + 18] @ none, R580 => 0x10;
        numSm: u16 @ 0x1800, R580 => 0x2400;
        numTpc: u16 @ 0x1802, R580 => 0x2402;
        grRouteInfo_flags: u32 @ 0x1808, R580 => 0x2408;
        grRouteInfo_route: u64 @ 0x1810, R580 => 0x2410;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_GR_GET_SM_TO_GPC_TPC_MAPPINGS_PARAMS: 1176, R560 => 1944 {
        smId_gpcId: u32 [144 + 8] @ 0x0, R560 => 0x0 x 240;
        smId_tpcId: u32 [144 + 8] @ 0x4, R560 => 0x4 x 240;
        smCount: u32 @ 0x480, R560 => 0x780;
        grRouteInfo_flags: u32 @ 0x488, R560 => 0x788;
        grRouteInfo_route: u64 @ 0x490, R560 => 0x790;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_GR_SET_CTXSW_PREEMPTION_MODE_PARAMS: 32 {
        flags: u32 @ 0x0;
        hChannel: handle @ 0x4;
        gfxpPreemptMode: u32 @ 0x8;
        cilpPreemptMode: u32 @ 0xc;
        grRouteInfo_flags: u32 @ 0x10;
        grRouteInfo_route: u64 @ 0x18;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_GR_GET_CTX_BUFFER_SIZE_PARAMS: 16 {
        hChannel: handle @ 0x0;
        totalBufferSize: u64 @ 0x8;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_FB_GET_INFO_PARAMS: 16 {
        fbInfoListSize: u32 @ 0x0;
        fbInfoList: pointer @ 0x8;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_FB_GET_INFO_V2_PARAMS: 436, R550 => 444, R560 => 460, R580 => 1028 {
        fbInfoListSize: u32 @ 0x0;
        fbInfoList_index: u32 [54 + 8] @ 0x4, R550 => 0x4 x 55, R560 => 0x4 x 57, R580 => 0x4 x 128;
        fbInfoList_data: u32 [54 + 8] @ 0x8, R550 => 0x8 x 55, R560 => 0x8 x 57, R580 => 0x8 x 128;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_FB_FLUSH_GPU_CACHE_PARAMS: 4024 {
        addressArray: u64 [500] @ 0x0;
        addressArraySize: u32 @ 0xfa0;
        addressAlign: u32 @ 0xfa4;
        memBlockSizeBytes: u64 @ 0xfa8;
        flags: u32 @ 0xfb0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_FB_GET_GPU_CACHE_INFO_PARAMS: 16 {
        powerState: u32 @ 0x0;
        writeMode: u32 @ 0x4;
        bypassMode: u32 @ 0x8;
        rcmState: u32 @ 0xc;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_MC_GET_ARCH_INFO_PARAMS: 16 {
        architecture: u32 @ 0x0;
        implementation: u32 @ 0x4;
        revision: u32 @ 0x8;
        subRevision: u8 @ 0xc;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_MC_SERVICE_INTERRUPTS_PARAMS: 4 {
        engines: u32 @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_BUS_GET_PCI_INFO_PARAMS: 16 {
        pciDeviceId: u32 @ 0x0;
        pciSubSystemId: u32 @ 0x4;
        pciRevisionId: u32 @ 0x8;
        pciExtDeviceId: u32 @ 0xc;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_BUS_GET_INFO_PARAMS: 16 {
        busInfoListSize: u32 @ 0x0;
        busInfoList: pointer @ 0x8;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_BUS_GET_INFO_V2_PARAMS: 420 {
        busInfoListSize: u32 @ 0x0;
        busInfoList_index: u32 [52 + 8] @ 0x4;
        busInfoList_data: u32 [52 + 8] @ 0x8;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_BUS_GET_PCI_BAR_INFO_PARAMS: 200 {
        pciBarCount: u32 @ 0x0;
        pciBarInfo_flags: u32 [8 + 24] @ 0x8;
        pciBarInfo_barSize: u32 [8 + 24] @ 0xc;
        pciBarInfo_barSizeBytes: u64 [8 + 24] @ 0x10;
        pciBarInfo_barOffset: u64 [8 + 24] @ 0x18;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_PERF_BOOST_PARAMS: 8 {
        flags: u32 @ 0x0;
        duration: u32 @ 0x4;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_RC_GET_WATCHDOG_INFO_PARAMS: 4 {
        watchdogStatusFlags: u32 @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_CE_GET_ALL_CAPS_PARAMS: 68, R550 => 136 {
        capsTbl: u8 [64] @ 0x0, R550 => 0x0 x 128;
        present: u32 @ 0x40, R550 => 0x80;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_CE_GET_CAPS_V2_PARAMS: 8 {
        ceEngineType: u32 @ 0x0;
        capsTbl: u8 [2] @ 0x4;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_GSP_GET_FEATURES_PARAMS: 72 {
        gspFeatures: u32 @ 0x0;
        bValid: bool @ 0x4;
        bDefaultGspRmGpu: bool @ 0x5;
        firmwareVersion: u8 [64] @ 0x6;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV83DE_CTRL_DEBUG_READ_ALL_SM_ERROR_STATES_PARAMS: 4824 {
        hTargetChannel: handle @ 0x0;
        numSMsToRead: u32 @ 0x4;
        smErrorStateArray_hwwGlobalEsr: u32 [100 + 48] @ 0x8;
        smErrorStateArray_hwwWarpEsr: u32 [100 + 48] @ 0xc;
        smErrorStateArray_hwwWarpEsrPc: u32 [100 + 48] @ 0x10;
        smErrorStateArray_hwwGlobalEsrReportMask: u32 [100 + 48] @ 0x14;
        smErrorStateArray_hwwWarpEsrReportMask: u32 [100 + 48] @ 0x18;
        smErrorStateArray_hwwEsrAddr: u64 [100 + 48] @ 0x20;
        smErrorStateArray_hwwWarpEsrPc64: u64 [100 + 48] @ 0x28;
        smErrorStateArray_hwwCgaEsr: u32 [100 + 48] @ 0x30;
        smErrorStateArray_hwwCgaEsrReportMask: u32 [100 + 48] @ 0x34;
        mmuFaultInfo: u32 @ 0x12c8;
        mmuFault_valid: bool @ 0x12cc;
        mmuFault_faultInfo: u32 @ 0x12d0;
        startingSM: u32 @ 0x12d4;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV83DE_CTRL_DEBUG_READ_SINGLE_SM_ERROR_STATE_PARAMS: 56 {
        hTargetChannel: handle @ 0x0;
        smID: u32 @ 0x4;
        smErrorState_hwwGlobalEsr: u32 @ 0x8;
        smErrorState_hwwWarpEsr: u32 @ 0xc;
        smErrorState_hwwWarpEsrPc: u32 @ 0x10;
        smErrorState_hwwGlobalEsrReportMask: u32 @ 0x14;
        smErrorState_hwwWarpEsrReportMask: u32 @ 0x18;
        smErrorState_hwwEsrAddr: u64 @ 0x20;
        smErrorState_hwwWarpEsrPc64: u64 @ 0x28;
        smErrorState_hwwCgaEsr: u32 @ 0x30;
        smErrorState_hwwCgaEsrReportMask: u32 @ 0x34;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV83DE_CTRL_DEBUG_CLEAR_SINGLE_SM_ERROR_STATE_PARAMS: 8 {
        hTargetChannel: handle @ 0x0;
        smID: u32 @ 0x4;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV83DE_CTRL_CMD_DEBUG_SUSPEND_CONTEXT_PARAMS: 8 {
        waitForEvent: u32 @ 0x0;
        hResidentChannel: handle @ 0x4;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV83DE_CTRL_DEBUG_CLEAR_ALL_SM_ERROR_STATES_PARAMS: 8 {
        hTargetChannel: handle @ 0x0;
        numSMsToClear: u32 @ 0x4;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_PARAMS: 72 {
        mmuFaultInfoList_faultAddress: u64 [4 + 16] @ 0x0;
        mmuFaultInfoList_faultType: u32 [4 + 16] @ 0x8;
        mmuFaultInfoList_accessType: u32 [4 + 16] @ 0xc;
        count: u32 @ 0x40;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV83DE_CTRL_DEBUG_SET_MODE_MMU_DEBUG_PARAMS: 4 {
        action: u32 @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV83DE_CTRL_DEBUG_SET_EXCEPTION_MASK_PARAMS: 4 {
        exceptionMask: u32 @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV83DE_CTRL_DEBUG_SET_MODE_ERRBAR_DEBUG_PARAMS: 4 {
        action: u32 @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV906F_CTRL_GET_CLASS_ENGINEID_PARAMS: 16 {
        hObject: handle @ 0x0;
        classEngineID: u32 @ 0x4;
        classID: class @ 0x8;
        engineID: u32 @ 0xc;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV906F_CTRL_CMD_RESET_CHANNEL_PARAMS: 12, R550 => 16 {
        engineID: u32 @ 0x0;
        subdeviceInstance: u32 @ 0x4;
        resetReason: u32 @ 0x8;
        bIsRcPending: bool @ none, R550 => 0xc;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV906F_CTRL_GET_MMU_FAULT_INFO_PARAMS: 104 {
        addrHi: u32 @ 0x0;
        addrLo: u32 @ 0x4;
        faultType: u32 @ 0x8;
        faultString: u8 [32] @ 0xc;
        shaderProgramVA: u64 [7] @ 0x30;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS: 2, R580 => 3 {
        bEnable: bool @ 0x0;
        bSkipSubmit: bool @ 0x1;
        bSkipEnable: bool @ none, R580 => 0x2;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NVA06C_CTRL_TIMESLICE_PARAMS: 8 {
        timesliceUs: u64 @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NVA06C_CTRL_PREEMPT_PARAMS: 8 {
        bWait: bool @ 0x0;
        bManualTimeout: bool @ 0x1;
        timeoutUs: u32 @ 0x4;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NVA06F_CTRL_GPFIFO_SCHEDULE_PARAMS: 2, R580 => 3 {
        bEnable: bool @ 0x0;
        bSkipSubmit: bool @ 0x1;
        bSkipEnable: bool @ none, R580 => 0x2;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NVA06F_CTRL_BIND_PARAMS: 4 {
        engineType: u32 @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NVA06F_CTRL_STOP_CHANNEL_PARAMS: 1 {
        bImmediate: bool @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS: 4 {
        workSubmitToken: u32 @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NVC36F_CTRL_GPFIFO_SET_WORK_SUBMIT_TOKEN_NOTIF_INDEX_PARAMS: 4 {
        index: u32 @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0041_CTRL_GET_SURFACE_INFO_PARAMS: 16 {
        surfaceInfoListSize: u32 @ 0x0;
        surfaceInfoList: pointer @ 0x8;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0000_CTRL_SYSTEM_GET_FEATURES_PARAMS: 4 {
        featuresMask: u32 @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0000_CTRL_GPU_GET_ACTIVE_DEVICE_IDS_PARAMS: 3076 {
        numDevices: u32 @ 0x0;
        devices_gpuId: u32 [256 + 12] @ 0x4;
        devices_gpuInstanceId: u32 [256 + 12] @ 0x8;
        devices_computeInstanceId: u32 [256 + 12] @ 0xc;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0000_SYNC_GPU_BOOST_GROUP_INFO_PARAMS: 2244 {
        groupCount: u32 @ 0x0;
        pBoostGroups_gpuCount: u32 [16 + 140] @ 0x4;
        pBoostGroups_boostGroupId: u32 [16 + 140] @ 0x88;
        pBoostGroups_bBridgeless: bool [16 + 140] @ 0x8c;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0000_CTRL_CLIENT_SET_INHERITED_SHARE_POLICY_PARAMS: 12 {
        sharePolicy_target: handle @ 0x0;
        sharePolicy_accessMask: u32 @ 0x4;
        sharePolicy_type: u16 @ 0x8;
        sharePolicy_action: u8 @ 0xa;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0080_CTRL_PERF_CUDA_LIMIT_CONTROL_PARAMS: 1 {
        bCudaLimit: bool @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_GPU_QUERY_ECC_STATUS_PARAMS: 984, R550 => 1024, R560 => 1264, R565 => 1464, R595 => 1664 {
        units_enabled: bool [24 + 40] @ 0x0, R550 => 0x0 x 25, R560 => 0x0 x 31, R565 => 0x0 x 36, R595 => 0x0 x 41;
        units_scrubComplete: bool [24 + 40] @ 0x1, R550 => 0x1 x 25, R560 => 0x1 x 31, R565 => 0x1 x 36, R595 => 0x1 x 41;
        units_supported: bool [24 + 40] @ 0x2, R550 => 0x2 x 25, R560 => 0x2 x 31, R565 => 0x2 x 36, R595 => 0x2 x 41;
        flags: u32 @ 0x3c4, R550 => 0x3ec, R560 => 0x4dc, R565 => 0x5a4, R595 => 0x66c;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_GPU_GET_COMPUTE_POLICY_CONFIG_PARAMS: 260 {
        numConfigs: u32 @ 0x0;
        configList_type: u32 [32 + 8] @ 0x4;
        configList_timeslice: u32 [32 + 8] @ 0x8;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_CMD_GET_GPU_FABRIC_PROBE_INFO_PARAMS: 40, R550 => 48, R580 => 56 {
        state: u8 @ 0x0;
        status: status @ 0x4;
        clusterUuid: u8 [16] @ 0x8;
        fabricPartitionId: u16 @ 0x18;
        fabricCaps: u64 @ 0x20;
        fabricCliqueId: u32 @ none, R550 => 0x28;
        fabricHealthMask: u32 @ none, R550 => 0x2c;
        fabricHealthSummary: u8 @ none, R580 => 0x30;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_GR_GET_SM_ISSUE_RATE_MODIFIER_PARAMS: 32 {
        grRouteInfo_flags: u32 @ 0x0;
        grRouteInfo_route: u64 @ 0x8;
        imla0: u8 @ 0x10;
        fmla16: u8 @ 0x11;
        dp: u8 @ 0x12;
        fmla32: u8 @ 0x13;
        ffma: u8 @ 0x14;
        imla1: u8 @ 0x15;
        imla2: u8 @ 0x16;
        imla3: u8 @ 0x17;
        imla4: u8 @ 0x18;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_CMD_BUS_GET_PCIE_SUPPORTED_GPU_ATOMICS_PARAMS: 104, R560 => 112 {
        capType: u32 @ none, R560 => 0x0;
        dbdf: u32 @ none, R560 => 0x4;
        atomicOp_bSupported: bool [13 + 8] @ 0x0, R560 => 0x8;
        atomicOp_attributes: u32 [13 + 8] @ 0x4, R560 => 0xc;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_CMD_BUS_GET_C2C_INFO_PARAMS: 28 {
        bIsLinkUp: bool @ 0x0;
        bLinkInHS: bool @ 0x1;
        nrLinks: u32 @ 0x4;
        maxNrLinks: u32 @ 0x8;
        linkMask: u32 @ 0xc;
        perLinkBwMBps: u32 @ 0x10;
        perLinkLaneWidth: u32 @ 0x14;
        remoteType: u32 @ 0x18;
    }

    /// Parameters of the control of the same name (`ctrl/`): what a GPU without links answers.
    pub mod NV2080_CTRL_CMD_NVLINK_GET_NVLINK_STATUS_PARAMS: 5896, R560 => 6152, R570 => 13320, R580 => 13344, R595 => 13864 {
        enabledLinkMask: u32 @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_GRMGR_GET_GR_FS_INFO_PARAMS: 1928 {
        numQueries: u16 @ 0x0;
        queries_queryType: u16 [96 + 20] @ 0x8;
        queries_status: status [96 + 20] @ 0xc;
        queries_queryData_0: u32 [96 + 20] @ 0x10;
        queries_queryData_1: u32 [96 + 20] @ 0x14;
        queries_queryData_2: u32 [96 + 20] @ 0x18;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV503C_CTRL_REGISTER_VA_SPACE_PARAMS: 16 {
        hVASpace: handle @ 0x0;
        vaSpaceToken: u64 @ 0x8;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV503C_CTRL_UNREGISTER_VA_SPACE_PARAMS: 4 {
        hVASpace: handle @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV503C_CTRL_REGISTER_VIDMEM_PARAMS: 32 {
        hMemory: handle @ 0x0;
        address: u64 @ 0x8;
        size: u64 @ 0x10;
        offset: u64 @ 0x18;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV503C_CTRL_UNREGISTER_VIDMEM_PARAMS: 4 {
        hMemory: handle @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV90E6_CTRL_MASTER_GET_VIRTUAL_FUNCTION_ERROR_CONT_INTR_MASK_PARAMS: 8 {
        eccMask: u32 @ 0x0;
        nvlinkMask: u32 @ 0x4;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV_CONF_COMPUTE_CTRL_CMD_SYSTEM_GET_CAPABILITIES_PARAMS: 5, R550 => 6 {
        cpuCapability: u8 @ 0x0;
        gpusCapability: u8 @ 0x1;
        environment: u8 @ 0x2;
        ccFeature: u8 @ 0x3;
        devToolsMode: u8 @ 0x4;
        multiGpuMode: u8 @ none, R550 => 0x5;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0000_CTRL_OS_UNIX_EXPORT_OBJECT_TO_FD_PARAMS: 24 {
        object_type: u32 @ 0x0;
        object_hDevice: handle @ 0x4;
        object_hParent: handle @ 0x8;
        object_hObject: handle @ 0xc;
        fd: descriptor @ 0x10;
        flags: u32 @ 0x14;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0000_CTRL_OS_UNIX_IMPORT_OBJECT_FROM_FD_PARAMS: 20 {
        fd: descriptor @ 0x0;
        object_type: u32 @ 0x4;
        object_hDevice: handle @ 0x8;
        object_hParent: handle @ 0xc;
        object_hObject: handle @ 0x10;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0000_CTRL_SYSTEM_GET_CPU_INFO_PARAMS: 104, R565 => 108 {
        r#type: u32 @ 0x0;
        capabilities: u32 @ 0x4;
        clock: u32 @ 0x8;
        L1DataCacheSize: u32 @ 0xc;
        L2DataCacheSize: u32 @ 0x10;
        dataCacheLineSize: u32 @ 0x14;
        numLogicalCpus: u32 @ 0x18;
        numPhysicalCpus: u32 @ 0x1c;
        name: u8 [52] @ 0x20;
        family: u32 @ 0x54;
        model: u32 @ 0x58;
        stepping: u8 @ 0x5c;
        coresOnDie: u32 @ 0x60;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0000_CTRL_SYSTEM_GET_P2P_CAPS_PARAMS: 168, R550 => 176 {
        gpuIds: u32 [32] @ 0x0;
        gpuCount: u32 @ 0x80;
        p2pCaps: u32 @ 0x84;
        p2pOptimalReadCEs: u32 @ 0x88;
        p2pOptimalWriteCEs: u32 @ 0x8c;
        p2pCapsStatus: u8 [9] @ 0x90;
        busPeerIds: pointer @ 0xa0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0000_CTRL_SYSTEM_GET_P2P_CAPS_V2_PARAMS: 4252, R550 => 8348 {
        gpuIds: u32 [32] @ 0x0;
        gpuCount: u32 @ 0x80;
        p2pCaps: u32 @ 0x84;
        p2pOptimalReadCEs: u32 @ 0x88;
        p2pOptimalWriteCEs: u32 @ 0x8c;
        p2pCapsStatus: u8 [9] @ 0x90;
        busPeerIds: u32 [1024] @ 0x9c;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0000_CTRL_GPU_QUERY_DRAIN_STATE_PARAMS: 12 {
        gpuId: u32 @ 0x0;
        drainState: u32 @ 0x4;
        flags: u32 @ 0x8;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0000_CTRL_GSYNC_GET_ATTACHED_IDS_PARAMS: 16 {
        gsyncIds: u32 [4] @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0000_CTRL_GPUACCT_GET_ACCOUNTING_STATE_PARAMS: 12 {
        gpuId: u32 @ 0x0;
        pid: u32 @ 0x4;
        state: u32 @ 0x8;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0000_CTRL_OS_UNIX_GET_EXPORT_OBJECT_INFO_PARAMS: 76, R550 => 80 {
        fd: i32 @ 0x0;
        deviceInstance: u32 @ 0x4;
        gpuInstanceId: u32 @ none, R550 => 0x8;
        maxObjects: u16 @ 0x8, R550 => 0xc;
        metadata: u8 [64] @ 0xa, R550 => 0xe;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0000_CTRL_OS_UNIX_EXPORT_OBJECTS_TO_FD_PARAMS: 2128 {
        fd: i32 @ 0x0;
        hDevice: handle @ 0x4;
        maxObjects: u16 @ 0x8;
        metadata: u8 [64] @ 0xa;
        objects: handle [512] @ 0x4c;
        numObjects: u16 @ 0x84c;
        index: u16 @ 0x84e;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0000_CTRL_OS_UNIX_IMPORT_OBJECTS_FROM_FD_PARAMS: 652 {
        fd: i32 @ 0x0;
        hParent: handle @ 0x4;
        objects: handle [128] @ 0x8;
        objectTypes: u8 [128] @ 0x208;
        numObjects: u16 @ 0x288;
        index: u16 @ 0x28a;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0080_CTRL_GPU_QUERY_SW_STATE_PERSISTENCE_PARAMS: 4 {
        swStatePersistence: u32 @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0080_CTRL_GR_GET_CAPS_PARAMS: 16 {
        capsTblSize: u32 @ 0x0;
        capsTbl: pointer @ 0x8;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0080_CTRL_GR_GET_INFO_PARAMS: 16 {
        grInfoListSize: u32 @ 0x0;
        grInfoList: pointer @ 0x8;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0080_CTRL_FB_GET_CAPS_PARAMS: 16 {
        capsTblSize: u32 @ 0x0;
        capsTbl: pointer @ 0x8;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0080_CTRL_FIFO_GET_CAPS_PARAMS: 16 {
        capsTblSize: u32 @ 0x0;
        capsTbl: pointer @ 0x8;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0080_CTRL_DMA_GET_CAPS_PARAMS: 12 {
        capsTblSize: u32 @ 0x0;
        capsTbl: u8 [8] @ 0x4;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV0080_CTRL_DMA_ADV_SCHED_GET_VA_CAPS_PARAMS: 192 {
        vaBitCount: u32 @ 0x0;
        pdeCoverageBitCount: u32 @ 0x4;
        num4KPageTableFormats: u32 @ 0x8;
        bigPageSize: u32 @ 0xc;
        compressionPageSize: u32 @ 0x10;
        dualPageTableSupported: u32 @ 0x14;
        idealVRAMPageSize: u32 @ 0x18;
        pageTableBigFormat_pageTableSize: u32 @ 0x1c;
        pageTableBigFormat_pageTableCoverage: u32 @ 0x20;
        pageTable4KFormat_pageTableSize: u32 [16 + 8] @ 0x24;
        pageTable4KFormat_pageTableCoverage: u32 [16 + 8] @ 0x28;
        hVASpace: handle @ 0xa4;
        vaRangeLo: u64 @ 0xa8;
        vaSpaceId: u32 @ 0xb0;
        supportedPageSizeMask: u64 @ 0xb8;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_GPU_GET_ENGINES_PARAMS: 16 {
        engineCount: u32 @ 0x0;
        engineList: pointer @ 0x8;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_GPU_GET_ENGINE_PARTNERLIST_PARAMS: 144 {
        engineType: u32 @ 0x0;
        partnershipClassId: u32 @ 0x4;
        runqueue: u32 @ 0x8;
        numPartners: u32 @ 0xc;
        partnerList: u32 [32] @ 0x10;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_GPU_GET_ENCODER_CAPACITY_PARAMS: 8 {
        queryType: u32 @ 0x0;
        encoderCapacity: u32 @ 0x4;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_GPU_GET_ACTIVE_PARTITION_IDS_PARAMS: 40 {
        swizzId: u32 [9] @ 0x0;
        partitionCount: u32 @ 0x24;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_GPU_GET_PIDS_PARAMS: 3812 {
        idType: u32 @ 0x0;
        id: u32 @ 0x4;
        pidTblCount: u32 @ 0x8;
        pidTbl: u32 [950] @ 0xc;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_GPU_GET_PID_INFO_PARAMS: 14408 {
        pidInfoListCount: u32 @ 0x0;
        pidInfoList_pid: u32 [200 + 72] @ 0x8;
        pidInfoList_index: u32 [200 + 72] @ 0xc;
        pidInfoList_result: u32 [200 + 72] @ 0x10;
        pidInfoList_memPrivate: u64 [200 + 72] @ 0x18;
        pidInfoList_memSharedOwned: u64 [200 + 72] @ 0x20;
        pidInfoList_memSharedDuped: u64 [200 + 72] @ 0x28;
        pidInfoList_computeInstanceId: u32 [200 + 72] @ 0x48;
        pidInfoList_gpuInstanceId: u32 [200 + 72] @ 0x4c;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_CMD_TIMER_SET_GR_TICK_FREQ_PARAMS: 1 {
        bSetMaxFreq: bool @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_FIFO_DISABLE_CHANNELS_PARAMS: 536 {
        bDisable: bool @ 0x0;
        numChannels: u32 @ 0x4;
        bOnlyDisableScheduling: bool @ 0x8;
        bRewindGpPut: bool @ 0x9;
        pRunlistPreemptEvent: pointer @ 0x10;
        hClientList: handle [64] @ 0x18;
        hChannelList: handle [64] @ 0x118;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_CMD_FB_GET_FB_REGION_INFO_PARAMS: 776, R580 => 904 {
        numFBRegions: u32 @ 0x0;
        fbRegion_base: u64 [16 + 48] @ 0x8, R580 => 0x8 x 16 + 56;
        fbRegion_limit: u64 [16 + 48] @ 0x10, R580 => 0x10 x 16 + 56;
        fbRegion_reserved: u64 [16 + 48] @ 0x18, R580 => 0x18 x 16 + 56;
        fbRegion_performance: u32 [16 + 48] @ 0x20, R580 => 0x20 x 16 + 56;
        fbRegion_supportCompressed: bool [16 + 48] @ 0x24, R580 => 0x24 x 16 + 56;
        fbRegion_supportISO: bool [16 + 48] @ 0x25, R580 => 0x25 x 16 + 56;
        fbRegion_bProtected: bool [16 + 48] @ 0x26, R580 => 0x26 x 16 + 56;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_FB_GET_SEMAPHORE_SURFACE_LAYOUT_PARAMS: 32 {
        maxSubmittedSemaphoreValueOffset: u64 @ 0x0;
        monitoredFenceThresholdOffset: u64 @ 0x8;
        size: u64 @ 0x10;
        caps: u32 @ 0x18;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_FB_GET_OFFLINED_PAGES_PARAMS: 2056 {
        validEntries: u32 @ 0x800;
        bRetirementPending: bool @ 0x804;
        retirementPending: u8 @ 0x805;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_GPU_QUERY_ECC_CONFIGURATION_PARAMS: 8 {
        currentConfiguration: u32 @ 0x0;
        defaultConfiguration: u32 @ 0x4;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_FLCN_GET_CTX_BUFFER_SIZE_PARAMS: 16 {
        hChannel: handle @ 0x0;
        totalBufferSize: u64 @ 0x8;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV2080_CTRL_OS_UNIX_VIDMEM_PERSISTENCE_STATUS_PARAMS: 1 {
        bVidmemPersistent: bool @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV83DE_CTRL_DEBUG_READ_MEMORY_PARAMS: 24 {
        hMemory: handle @ 0x0;
        length: u32 @ 0x4;
        offset: u64 @ 0x8;
        buffer: pointer @ 0x10;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NVA06F_CTRL_SET_ERROR_NOTIFIER_PARAMS: 1 {
        bNotifyEachChannelInTSG: bool @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NVA06F_CTRL_RESTART_RUNLIST_PARAMS: 2 {
        bForceRestart: bool @ 0x0;
        bBypassWait: bool @ 0x1;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV_CONF_COMPUTE_CTRL_CMD_SYSTEM_GET_GPUS_STATE_PARAMS: 1 {
        bAcceptClientRequest: bool @ 0x0;
    }

    /// Parameters of the control of the same name (`ctrl/`).
    pub mod NV_CONF_COMPUTE_CTRL_CMD_GPU_GET_NUM_SECURE_CHANNELS_PARAMS: 12 {
        hSubDevice: handle @ 0x0;
        maxSec2Channels: u32 @ 0x4;
        maxCeChannels: u32 @ 0x8;
    }
}
