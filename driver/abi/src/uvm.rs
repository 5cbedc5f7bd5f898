//! Unified virtual memory: ioctl numbers and arguments on `/dev/nvidia-uvm`.
//!
//! The request word is the bare number and carries no size: the kernel copies as many bytes as its own struct has.
//!
//! Offsets and sizes were computed from the headers of NVIDIA/open-gpu-kernel-modules (MIT) at tags 535.288.01,
//! 550.163.01, 560.35.03, 565.77, 570.211.01, 580.142, 590.48.01 and 595.45.04 with a compiler, not by hand.

use crate::{Branch, record};

record! {
    /// Argument of `UVM_INITIALIZE` (`uvm_ioctl.h`).
    pub mod UVM_INITIALIZE_PARAMS: 16 {
        flags: u64 @ 0x0;
        rmStatus: status @ 0x8;
    }

    /// Argument of `UVM_CREATE_RANGE_GROUP` (`uvm_ioctl.h`).
    pub mod UVM_CREATE_RANGE_GROUP_PARAMS: 16 {
        rangeGroupId: u64 @ 0x0;
        rmStatus: status @ 0x8;
    }

    /// Argument of `UVM_DESTROY_RANGE_GROUP` (`uvm_ioctl.h`).
    pub mod UVM_DESTROY_RANGE_GROUP_PARAMS: 16 {
        rangeGroupId: u64 @ 0x0;
        rmStatus: status @ 0x8;
    }

    /// Argument of `UVM_REGISTER_GPU_VASPACE` (`uvm_ioctl.h`).
    pub mod UVM_REGISTER_GPU_VASPACE_PARAMS: 32 {
        gpuUuid_uuid: u8 [16] @ 0x0;
        rmCtrlFd: descriptor @ 0x10;
        hClient: handle @ 0x14;
        hVaSpace: handle @ 0x18;
        rmStatus: status @ 0x1c;
    }

    /// Argument of `UVM_UNREGISTER_GPU_VASPACE` (`uvm_ioctl.h`).
    pub mod UVM_UNREGISTER_GPU_VASPACE_PARAMS: 20 {
        gpuUuid_uuid: u8 [16] @ 0x0;
        rmStatus: status @ 0x10;
    }

    /// Argument of `UVM_REGISTER_CHANNEL` (`uvm_ioctl.h`).
    pub mod UVM_REGISTER_CHANNEL_PARAMS: 56 {
        gpuUuid_uuid: u8 [16] @ 0x0;
        rmCtrlFd: descriptor @ 0x10;
        hClient: handle @ 0x14;
        hChannel: handle @ 0x18;
        base: u64 @ 0x20;
        length: u64 @ 0x28;
        rmStatus: status @ 0x30;
    }

    /// Argument of `UVM_UNREGISTER_CHANNEL` (`uvm_ioctl.h`).
    pub mod UVM_UNREGISTER_CHANNEL_PARAMS: 28, R590 => 12 {
        hClient: handle @ 0x10, R590 => 0x0;
        gpuUuid_uuid: u8 [16] @ 0x0, R590 => none;
        hChannel: handle @ 0x14, R590 => 0x4;
        rmStatus: status @ 0x18, R590 => 0x8;
    }

    /// Argument of `UVM_ENABLE_PEER_ACCESS` (`uvm_ioctl.h`).
    pub mod UVM_ENABLE_PEER_ACCESS_PARAMS: 36 {
        gpuUuidA_uuid: u8 [16] @ 0x0;
        gpuUuidB_uuid: u8 [16] @ 0x10;
        rmStatus: status @ 0x20;
    }

    /// Argument of `UVM_DISABLE_PEER_ACCESS` (`uvm_ioctl.h`).
    pub mod UVM_DISABLE_PEER_ACCESS_PARAMS: 36 {
        gpuUuidA_uuid: u8 [16] @ 0x0;
        gpuUuidB_uuid: u8 [16] @ 0x10;
        rmStatus: status @ 0x20;
    }

    /// Argument of `UVM_SET_RANGE_GROUP` (`uvm_ioctl.h`).
    pub mod UVM_SET_RANGE_GROUP_PARAMS: 32 {
        rangeGroupId: u64 @ 0x0;
        requestedBase: u64 @ 0x8;
        length: u64 @ 0x10;
        rmStatus: status @ 0x18;
    }

    /// Argument of `UVM_MAP_EXTERNAL_ALLOCATION` (`uvm_ioctl.h`).
    pub mod UVM_MAP_EXTERNAL_ALLOCATION_PARAMS: 1200, R550 => 9264 {
        base: u64 @ 0x0;
        length: u64 @ 0x8;
        offset: u64 @ 0x10;
        perGpuAttributes_gpuUuidLow: u64 [32 + 36] @ 0x18, R550 => 0x18 x 256;
        perGpuAttributes_gpuUuidHigh: u64 [32 + 36] @ 0x20, R550 => 0x20 x 256;
        perGpuAttributes_gpuMappingType: u32 [32 + 36] @ 0x28, R550 => 0x28 x 256;
        perGpuAttributes_gpuCachingType: u32 [32 + 36] @ 0x2c, R550 => 0x2c x 256;
        perGpuAttributes_gpuFormatType: u32 [32 + 36] @ 0x30, R550 => 0x30 x 256;
        perGpuAttributes_gpuElementBits: u32 [32 + 36] @ 0x34, R550 => 0x34 x 256;
        perGpuAttributes_gpuCompressionType: u32 [32 + 36] @ 0x38, R550 => 0x38 x 256;
        gpuAttributesCount: u64 @ 0x498, R550 => 0x2418;
        rmCtrlFd: descriptor @ 0x4a0, R550 => 0x2420;
        hClient: handle @ 0x4a4, R550 => 0x2424;
        hMemory: handle @ 0x4a8, R550 => 0x2428;
        rmStatus: status @ 0x4ac, R550 => 0x242c;
    }

    /// Argument of `UVM_FREE` (`uvm_ioctl.h`).
    pub mod UVM_FREE_PARAMS: 24, R590 => 16 {
        base: u64 @ 0x0;
        rmStatus: status @ 0x10, R590 => 0x8;
        length: u64 @ 0x8, R590 => none;
    }

    /// Argument of `UVM_REGISTER_GPU` (`uvm_ioctl.h`).
    pub mod UVM_REGISTER_GPU_PARAMS: 40 {
        gpu_uuid_uuid: u8 [16] @ 0x0;
        numaEnabled: bool @ 0x10;
        numaNodeId: i32 @ 0x14;
        rmCtrlFd: descriptor @ 0x18;
        hClient: handle @ 0x1c;
        hSmcPartRef: handle @ 0x20;
        rmStatus: status @ 0x24;
    }

    /// Argument of `UVM_UNREGISTER_GPU` (`uvm_ioctl.h`).
    pub mod UVM_UNREGISTER_GPU_PARAMS: 20 {
        gpu_uuid_uuid: u8 [16] @ 0x0;
        rmStatus: status @ 0x10;
    }

    /// Argument of `UVM_PAGEABLE_MEM_ACCESS` (`uvm_ioctl.h`).
    pub mod UVM_PAGEABLE_MEM_ACCESS_PARAMS: 8 {
        pageableMemAccess: bool @ 0x0;
        rmStatus: status @ 0x4;
    }

    /// Argument of `UVM_SET_PREFERRED_LOCATION` (`uvm_ioctl.h`).
    pub mod UVM_SET_PREFERRED_LOCATION_PARAMS: 40 {
        requestedBase: u64 @ 0x0;
        length: u64 @ 0x8;
        preferredLocation_uuid: u8 [16] @ 0x10;
        preferredCpuNumaNode: i32 @ none, R550 => 0x20;
        rmStatus: status @ 0x20, R550 => 0x24;
    }

    /// Argument of `UVM_UNSET_PREFERRED_LOCATION` (`uvm_ioctl.h`).
    pub mod UVM_UNSET_PREFERRED_LOCATION_PARAMS: 24 {
        requestedBase: u64 @ 0x0;
        length: u64 @ 0x8;
        rmStatus: status @ 0x10;
    }

    /// Argument of `UVM_ENABLE_READ_DUPLICATION` (`uvm_ioctl.h`).
    pub mod UVM_ENABLE_READ_DUPLICATION_PARAMS: 24 {
        requestedBase: u64 @ 0x0;
        length: u64 @ 0x8;
        rmStatus: status @ 0x10;
    }

    /// Argument of `UVM_DISABLE_READ_DUPLICATION` (`uvm_ioctl.h`).
    pub mod UVM_DISABLE_READ_DUPLICATION_PARAMS: 24 {
        requestedBase: u64 @ 0x0;
        length: u64 @ 0x8;
        rmStatus: status @ 0x10;
    }

    /// Argument of `UVM_SET_ACCESSED_BY` (`uvm_ioctl.h`).
    pub mod UVM_SET_ACCESSED_BY_PARAMS: 40 {
        requestedBase: u64 @ 0x0;
        length: u64 @ 0x8;
        accessedByUuid_uuid: u8 [16] @ 0x10;
        rmStatus: status @ 0x20;
    }

    /// Argument of `UVM_UNSET_ACCESSED_BY` (`uvm_ioctl.h`).
    pub mod UVM_UNSET_ACCESSED_BY_PARAMS: 40 {
        requestedBase: u64 @ 0x0;
        length: u64 @ 0x8;
        accessedByUuid_uuid: u8 [16] @ 0x10;
        rmStatus: status @ 0x20;
    }

    /// Argument of `UVM_MIGRATE` (`uvm_ioctl.h`).
    pub mod UVM_MIGRATE_PARAMS: 80 {
        base: u64 @ 0x0;
        length: u64 @ 0x8;
        destinationUuid_uuid: u8 [16] @ 0x10;
        flags: u32 @ 0x20;
        semaphoreAddress: u64 @ 0x28;
        semaphorePayload: u32 @ 0x30;
        cpuNumaNode: u32 @ 0x34;
        userSpaceStart: u64 @ 0x38;
        userSpaceLength: u64 @ 0x40;
        rmStatus: status @ 0x48;
    }

    /// Argument of `UVM_MAP_DYNAMIC_PARALLELISM_REGION` (`uvm_ioctl.h`).
    pub mod UVM_MAP_DYNAMIC_PARALLELISM_REGION_PARAMS: 40 {
        base: u64 @ 0x0;
        length: u64 @ 0x8;
        gpuUuid_uuid: u8 [16] @ 0x10;
        rmStatus: status @ 0x20;
    }

    /// Argument of `UVM_UNMAP_EXTERNAL` (`uvm_ioctl.h`).
    pub mod UVM_UNMAP_EXTERNAL_PARAMS: 40 {
        base: u64 @ 0x0;
        length: u64 @ 0x8;
        gpuUuid_uuid: u8 [16] @ 0x10;
        rmStatus: status @ 0x20;
    }

    /// Argument of `UVM_ALLOC_SEMAPHORE_POOL` (`uvm_ioctl.h`).
    pub mod UVM_ALLOC_SEMAPHORE_POOL_PARAMS: 1184, R550 => 9248 {
        base: u64 @ 0x0;
        length: u64 @ 0x8;
        perGpuAttributes_gpuUuidLow: u64 [32 + 36] @ 0x10, R550 => 0x10 x 256;
        perGpuAttributes_gpuUuidHigh: u64 [32 + 36] @ 0x18, R550 => 0x18 x 256;
        perGpuAttributes_gpuMappingType: u32 [32 + 36] @ 0x20, R550 => 0x20 x 256;
        perGpuAttributes_gpuCachingType: u32 [32 + 36] @ 0x24, R550 => 0x24 x 256;
        perGpuAttributes_gpuFormatType: u32 [32 + 36] @ 0x28, R550 => 0x28 x 256;
        perGpuAttributes_gpuElementBits: u32 [32 + 36] @ 0x2c, R550 => 0x2c x 256;
        perGpuAttributes_gpuCompressionType: u32 [32 + 36] @ 0x30, R550 => 0x30 x 256;
        gpuAttributesCount: u64 @ 0x490, R550 => 0x2410;
        rmStatus: status @ 0x498, R550 => 0x2418;
    }

    /// Argument of `UVM_PREVENT_MIGRATION_RANGE_GROUPS` and of `UVM_ALLOW_MIGRATION_RANGE_GROUPS` (`uvm_ioctl.h`).
    pub mod UVM_PREVENT_MIGRATION_RANGE_GROUPS_PARAMS: 272 {
        rangeGroupIds: u64 [32] @ 0x0;
        numGroupIds: u64 @ 0x100;
        rmStatus: status @ 0x108;
    }

    /// Argument of `UVM_MIGRATE_RANGE_GROUP` (`uvm_ioctl.h`).
    pub mod UVM_MIGRATE_RANGE_GROUP_PARAMS: 32 {
        rangeGroupId: u64 @ 0x0;
        destinationUuid_uuid: u8 [16] @ 0x8;
        rmStatus: status @ 0x18;
    }

    /// Argument of `UVM_ENABLE_SYSTEM_WIDE_ATOMICS` and of its opposite (`uvm_ioctl.h`).
    pub mod UVM_ENABLE_SYSTEM_WIDE_ATOMICS_PARAMS: 20 {
        gpu_uuid_uuid: u8 [16] @ 0x0;
        rmStatus: status @ 0x10;
    }

    /// Argument of `UVM_ALLOC_DEVICE_P2P` (`uvm_ioctl.h`).
    pub mod UVM_ALLOC_DEVICE_P2P_PARAMS: 56 {
        base: u64 @ 0x0;
        length: u64 @ 0x8;
        offset: u64 @ 0x10;
        gpuUuid_uuid: u8 [16] @ 0x18;
        rmCtrlFd: descriptor @ 0x28;
        hClient: handle @ 0x2c;
        hMemory: handle @ 0x30;
        rmStatus: status @ 0x34;
    }

    /// Argument of `UVM_CLEAR_ALL_ACCESS_COUNTERS` (`uvm_ioctl.h`).
    pub mod UVM_CLEAR_ALL_ACCESS_COUNTERS_PARAMS: 4 {
        rmStatus: status @ 0x0;
    }

    /// Argument of `UVM_DISCARD` (`uvm_ioctl.h`).
    pub mod UVM_DISCARD_PARAMS: 32 {
        base: u64 @ 0x0;
        length: u64 @ 0x8;
        flags: u64 @ 0x10;
        rmStatus: status @ 0x18;
    }

    /// Argument of `UVM_CLEAN_UP_ZOMBIE_RESOURCES` (`uvm_ioctl.h`).
    pub mod UVM_CLEAN_UP_ZOMBIE_RESOURCES_PARAMS: 4 {
        rmStatus: status @ 0x0;
    }

    /// Argument of `UVM_PAGEABLE_MEM_ACCESS_ON_GPU` (`uvm_ioctl.h`).
    pub mod UVM_PAGEABLE_MEM_ACCESS_ON_GPU_PARAMS: 24 {
        gpu_uuid_uuid: u8 [16] @ 0x0;
        pageableMemAccess: bool @ 0x10;
        rmStatus: status @ 0x14;
    }

    /// Argument of `UVM_POPULATE_PAGEABLE` (`uvm_ioctl.h`).
    pub mod UVM_POPULATE_PAGEABLE_PARAMS: 24 {
        base: u64 @ 0x0;
        length: u64 @ 0x8;
        flags: u32 @ 0x10;
        rmStatus: status @ 0x14;
    }

    /// Argument of `UVM_VALIDATE_VA_RANGE` (`uvm_ioctl.h`).
    pub mod UVM_VALIDATE_VA_RANGE_PARAMS: 24 {
        base: u64 @ 0x0;
        length: u64 @ 0x8;
        rmStatus: status @ 0x10;
    }

    /// Argument of `UVM_CREATE_EXTERNAL_RANGE` (`uvm_ioctl.h`).
    pub mod UVM_CREATE_EXTERNAL_RANGE_PARAMS: 24 {
        base: u64 @ 0x0;
        length: u64 @ 0x8;
        rmStatus: status @ 0x10;
    }

    /// Argument of `UVM_MAP_EXTERNAL_SPARSE` (`uvm_ioctl.h`).
    pub mod UVM_MAP_EXTERNAL_SPARSE_PARAMS: 40 {
        base: u64 @ 0x0;
        length: u64 @ 0x8;
        gpuUuid_uuid: u8 [16] @ 0x10;
        rmStatus: status @ 0x20;
    }

    /// Argument of `UVM_TOOLS_READ_PROCESS_MEMORY` (`uvm_ioctl.h`).
    pub mod UVM_TOOLS_READ_PROCESS_MEMORY_PARAMS: 40 {
        buffer: pointer @ 0x0;
        size: u64 @ 0x8;
        targetVa: u64 @ 0x10;
        bytesRead: u64 @ 0x18;
        rmStatus: status @ 0x20;
    }

    /// Argument of `UVM_TOOLS_WRITE_PROCESS_MEMORY` (`uvm_ioctl.h`).
    pub mod UVM_TOOLS_WRITE_PROCESS_MEMORY_PARAMS: 40 {
        buffer: pointer @ 0x0;
        size: u64 @ 0x8;
        targetVa: u64 @ 0x10;
        bytesWritten: u64 @ 0x18;
        rmStatus: status @ 0x20;
    }

    /// Argument of `UVM_TOOLS_GET_PROCESSOR_UUID_TABLE` and of its second form (`uvm_ioctl.h`).
    pub mod UVM_TOOLS_GET_PROCESSOR_UUID_TABLE_PARAMS: 16, R550 => 24, R560 => 16 {
        tablePtr: pointer @ 0x0;
        count: u32 @ 0x8, R560 => none;
        version: u32 @ none, R550 => 0x10, R560 => 0x8, R565 => none;
        rmStatus: status @ 0xc, R565 => 0x8;
    }

    /// Argument of `UVM_TOOLS_FLUSH_EVENTS` (`uvm_ioctl.h`).
    pub mod UVM_TOOLS_FLUSH_EVENTS_PARAMS: 4 {
        rmStatus: status @ 0x0;
    }

    /// Argument of `UVM_MM_INITIALIZE` (`uvm_ioctl.h`).
    pub mod UVM_MM_INITIALIZE_PARAMS: 8 {
        uvmFd: descriptor @ 0x0;
        rmStatus: status @ 0x4;
    }
}

/// One UVM call.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The request word.
    pub number: u32,
    /// The vendor's name.
    pub name: &'static str,
    /// Its argument; `None` where the kernel reads none.
    pub argument: Option<&'static crate::Struct>,
    /// The first branch that has it, and the first one that has it no more.
    pub branches: (Branch, Option<Branch>),
}

impl Call {
    /// Whether the module of a branch has the call.
    pub fn exists(&self, branch: Branch) -> bool {
        let (since, until) = self.branches;
        since <= branch && until.is_none_or(|until| branch < until)
    }
}

macro_rules! calls {
    ($($name:ident = $number:literal $(($argument:ident))? $([since $since:ident])? $([until $until:ident])?;)*) => {
        $(
            #[doc = concat!("Request word of `", stringify!($name), "`.")]
            pub const $name: u32 = $number;
        )*
        /// Every call with a row, by number.
        pub const CALLS: &[Call] = &[
            $(Call {
                number: $number,
                name: stringify!($name),
                argument: calls!(@argument $($argument)?),
                branches: (calls!(@since $($since)?), calls!(@until $($until)?)),
            }),*
        ];
    };
    (@since) => { Branch::R535 };
    (@since $since:ident) => { Branch::$since };
    (@until) => { None };
    (@until $until:ident) => { Some(Branch::$until) };
    (@argument) => { None };
    (@argument $argument:ident) => { Some(&$argument::STRUCT) };
}

calls! {
    UVM_CREATE_RANGE_GROUP = 23 (UVM_CREATE_RANGE_GROUP_PARAMS) [until R610];
    UVM_DESTROY_RANGE_GROUP = 24 (UVM_DESTROY_RANGE_GROUP_PARAMS) [until R610];
    UVM_REGISTER_GPU_VASPACE = 25 (UVM_REGISTER_GPU_VASPACE_PARAMS);
    UVM_UNREGISTER_GPU_VASPACE = 26 (UVM_UNREGISTER_GPU_VASPACE_PARAMS);
    UVM_REGISTER_CHANNEL = 27 (UVM_REGISTER_CHANNEL_PARAMS);
    UVM_UNREGISTER_CHANNEL = 28 (UVM_UNREGISTER_CHANNEL_PARAMS);
    UVM_ENABLE_PEER_ACCESS = 29 (UVM_ENABLE_PEER_ACCESS_PARAMS);
    UVM_DISABLE_PEER_ACCESS = 30 (UVM_DISABLE_PEER_ACCESS_PARAMS);
    UVM_SET_RANGE_GROUP = 31 (UVM_SET_RANGE_GROUP_PARAMS) [until R610];
    UVM_MAP_EXTERNAL_ALLOCATION = 33 (UVM_MAP_EXTERNAL_ALLOCATION_PARAMS);
    UVM_FREE = 34 (UVM_FREE_PARAMS);
    UVM_REGISTER_GPU = 37 (UVM_REGISTER_GPU_PARAMS);
    UVM_UNREGISTER_GPU = 38 (UVM_UNREGISTER_GPU_PARAMS);
    UVM_PAGEABLE_MEM_ACCESS = 39 (UVM_PAGEABLE_MEM_ACCESS_PARAMS);
    UVM_PREVENT_MIGRATION_RANGE_GROUPS = 40 (UVM_PREVENT_MIGRATION_RANGE_GROUPS_PARAMS) [until R610];
    UVM_ALLOW_MIGRATION_RANGE_GROUPS = 41 (UVM_PREVENT_MIGRATION_RANGE_GROUPS_PARAMS) [until R610];
    UVM_SET_PREFERRED_LOCATION = 42 (UVM_SET_PREFERRED_LOCATION_PARAMS);
    UVM_UNSET_PREFERRED_LOCATION = 43 (UVM_UNSET_PREFERRED_LOCATION_PARAMS);
    UVM_ENABLE_READ_DUPLICATION = 44 (UVM_ENABLE_READ_DUPLICATION_PARAMS);
    UVM_DISABLE_READ_DUPLICATION = 45 (UVM_DISABLE_READ_DUPLICATION_PARAMS);
    UVM_SET_ACCESSED_BY = 46 (UVM_SET_ACCESSED_BY_PARAMS);
    UVM_UNSET_ACCESSED_BY = 47 (UVM_UNSET_ACCESSED_BY_PARAMS);
    UVM_MIGRATE = 51 (UVM_MIGRATE_PARAMS);
    UVM_MIGRATE_RANGE_GROUP = 53 (UVM_MIGRATE_RANGE_GROUP_PARAMS) [until R610];
    UVM_ENABLE_SYSTEM_WIDE_ATOMICS = 54 (UVM_ENABLE_SYSTEM_WIDE_ATOMICS_PARAMS) [until R590];
    UVM_DISABLE_SYSTEM_WIDE_ATOMICS = 55 (UVM_ENABLE_SYSTEM_WIDE_ATOMICS_PARAMS) [until R590];
    UVM_TOOLS_READ_PROCESS_MEMORY = 62 (UVM_TOOLS_READ_PROCESS_MEMORY_PARAMS);
    UVM_TOOLS_WRITE_PROCESS_MEMORY = 63 (UVM_TOOLS_WRITE_PROCESS_MEMORY_PARAMS);
    UVM_TOOLS_GET_PROCESSOR_UUID_TABLE = 64 (UVM_TOOLS_GET_PROCESSOR_UUID_TABLE_PARAMS);
    UVM_MAP_DYNAMIC_PARALLELISM_REGION = 65 (UVM_MAP_DYNAMIC_PARALLELISM_REGION_PARAMS);
    UVM_UNMAP_EXTERNAL = 66 (UVM_UNMAP_EXTERNAL_PARAMS);
    UVM_TOOLS_FLUSH_EVENTS = 67 (UVM_TOOLS_FLUSH_EVENTS_PARAMS);
    UVM_ALLOC_SEMAPHORE_POOL = 68 (UVM_ALLOC_SEMAPHORE_POOL_PARAMS);
    UVM_CLEAN_UP_ZOMBIE_RESOURCES = 69 (UVM_CLEAN_UP_ZOMBIE_RESOURCES_PARAMS);
    UVM_PAGEABLE_MEM_ACCESS_ON_GPU = 70 (UVM_PAGEABLE_MEM_ACCESS_ON_GPU_PARAMS);
    UVM_POPULATE_PAGEABLE = 71 (UVM_POPULATE_PAGEABLE_PARAMS);
    UVM_VALIDATE_VA_RANGE = 72 (UVM_VALIDATE_VA_RANGE_PARAMS);
    UVM_CREATE_EXTERNAL_RANGE = 73 (UVM_CREATE_EXTERNAL_RANGE_PARAMS);
    UVM_MAP_EXTERNAL_SPARSE = 74 (UVM_MAP_EXTERNAL_SPARSE_PARAMS);
    UVM_MM_INITIALIZE = 75 (UVM_MM_INITIALIZE_PARAMS);
    UVM_TOOLS_GET_PROCESSOR_UUID_TABLE_V2 = 77 (UVM_TOOLS_GET_PROCESSOR_UUID_TABLE_PARAMS) [since R565];
    UVM_ALLOC_DEVICE_P2P = 78 (UVM_ALLOC_DEVICE_P2P_PARAMS) [since R565];
    UVM_CLEAR_ALL_ACCESS_COUNTERS = 79 (UVM_CLEAR_ALL_ACCESS_COUNTERS_PARAMS) [since R565];
    UVM_DISCARD = 80 (UVM_DISCARD_PARAMS) [since R580];
    UVM_INITIALIZE = 0x30000001 (UVM_INITIALIZE_PARAMS);
    UVM_DEINITIALIZE = 0x30000002;
}

/// The row of a request word.
pub fn call(number: u32) -> Option<&'static Call> {
    CALLS.iter().find(|call| call.number == number)
}
