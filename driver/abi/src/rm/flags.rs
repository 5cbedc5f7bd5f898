//! Bit fields inside RM's flag words (`nvos.h`).

use crate::layout;

layout! {
    /// NVOS02 `flags`: RM_ALLOC_MEMORY.
    pub mod NVOS02_FLAGS: 32 bits {
        PHYSICALITY 7:4 { CONTIGUOUS = 0, NONCONTIGUOUS = 1 };
        LOCATION 11:8 { PCI = 0, VIDMEM = 2 };
        COHERENCY 15:12 {
            UNCACHED = 0, CACHED = 1, WRITE_COMBINE = 2, WRITE_THROUGH = 3, WRITE_PROTECT = 4, WRITE_BACK = 5,
        };
        ALLOC 17:16;
        GPU_CACHEABLE 18:18;
        USER_READ_ONLY 21:21;
        DEVICE_READ_ONLY 22:22;
        MEMORY_PROTECTION 26:25;
        MAPPING 31:30 { DEFAULT = 0, NO_MAP = 1, NEVER_MAP = 2 };
    }

    /// NVOS33 `flags`: RM_MAP_MEMORY.
    pub mod NVOS33_FLAGS: 32 bits {
        ACCESS 1:0 { READ_WRITE = 0, READ_ONLY = 1, WRITE_ONLY = 2 };
        PERSISTENT 4:4;
        SKIP_SIZE_CHECK 8:8;
        MEM_SPACE 14:14;
        MAPPING 16:15 { DEFAULT = 0, DIRECT = 1, REFLECTED = 2 };
        FIFO_MAPPING 17:17;
        MAP_FIXED 18:18;
        RESERVE_ON_UNMAP 19:19;
        OS_DESCRIPTOR 22:22;
        CACHING_TYPE 25:23 {
            CACHED = 0, UNCACHED = 1, WRITECOMBINED = 2, WRITEBACK = 5, DEFAULT = 6, UNCACHED_WEAK = 7,
        };
    }

    /// `attr` of a memory allocation (NVOS32_ATTR).
    pub mod NVOS32_ATTR: 32 bits {
        DEPTH 2:0;
        COMPR 13:12;
        FORMAT 17:16 { PITCH = 0, BLOCK_LINEAR = 2 };
        PAGE_SIZE 24:23 { DEFAULT = 0, SIZE_4KB = 1, BIG = 2, HUGE = 3 };
        LOCATION 26:25 { VIDMEM = 0, PCI = 1, ANY = 3 };
        PHYSICALITY 28:27 { DEFAULT = 0, NONCONTIGUOUS = 1, CONTIGUOUS = 2, ALLOW_NONCONTIGUOUS = 3 };
        COHERENCY 31:29;
    }

    /// `attr2` of a memory allocation (NVOS32_ATTR2).
    pub mod NVOS32_ATTR2: 32 bits {
        ZBC 1:0 { DEFAULT = 0, PREFER_NO_ZBC = 1, PREFER_ZBC = 2 };
        GPU_CACHEABLE 3:2 { DEFAULT = 0, YES = 1, NO = 2 };
        P2P_GPU_CACHEABLE 5:4;
        PAGE_SIZE_HUGE 21:20 { DEFAULT = 0, SIZE_2MB = 1, SIZE_512MB = 2, SIZE_256GB = 3 };
        PROTECTION_USER 22:22;
        PROTECTION_DEVICE 23:23;
    }

    /// `flags` of a memory allocation (NVOS32_ALLOC_FLAGS).
    pub mod NVOS32_ALLOC_FLAGS: 32 bits {
        IGNORE_BANK_PLACEMENT 0:0;
        FIXED_ADDRESS_ALLOCATE 4:4;
        ALIGNMENT_HINT 7:7;
        ALIGNMENT_FORCE 8:8;
        LAZY 10:10;
        MEMORY_HANDLE_PROVIDED 14:14;
        MAP_NOT_REQUIRED 15:15;
        PERSISTENT_VIDMEM 16:16;
        USE_BEGIN_END 17:17;
        VIRTUAL 19:19;
        SPARSE 26:26;
    }

    /// `flags` of a virtual address space (NV_VASPACE_ALLOCATION_FLAGS).
    pub mod NV_VASPACE_ALLOCATION_FLAGS: 32 bits {
        MINIMIZE_PTETABLE_SIZE 0:0;
        RETRY_PTE_ALLOC_IN_SYS 1:1;
        SHARED_MANAGEMENT 2:2;
        IS_EXTERNALLY_OWNED 3:3;
        ENABLE_NVLINK_ATS 4:4;
        IS_MIRRORED 5:5;
        ENABLE_PAGE_FAULTING 6:6;
        VA_INTERNAL_LIMIT 7:7;
        ALLOW_ZERO_ADDRESS 8:8;
        IS_FLA 9:9;
        REQUIRE_FIXED_OFFSET 12:12;
    }

    /// `flags` of a context share (NV_CTXSHARE_ALLOCATION_FLAGS).
    pub mod NV_CTXSHARE_ALLOCATION_FLAGS: 32 bits {
        SUBCONTEXT 1:0 { SYNC = 0, ASYNC = 1, SPECIFIED = 2, ASYNC_PREFER_LOWER = 3 };
    }

    /// `flags` of a channel (NVOS04_FLAGS).
    pub mod NVOS04_FLAGS: 32 bits {
        CHANNEL_TYPE 1:0 { PHYSICAL = 0 };
        CC_SECURE 2:2;
        GROUP_CHANNEL_RUNQUEUE 4:4;
        PRIVILEGED_CHANNEL 5:5;
        DELAY_CHANNEL_SCHEDULING 6:6;
        CHANNEL_DENY_PHYSICAL_MODE_CE 7:7;
        CHANNEL_USERD_INDEX_VALUE 10:8;
        CHANNEL_USERD_INDEX_FIXED 11:11;
        CHANNEL_USERD_INDEX_PAGE_VALUE 20:12;
        CHANNEL_USERD_INDEX_PAGE_FIXED 21:21;
        CHANNEL_DENY_AUTH_LEVEL_PRIV 22:22;
        CHANNEL_CLIENT_MAP_FIFO 24:24;
        SET_EVICT_LAST_CE_PREFETCH_CHANNEL 26:26;
        CHANNEL_PBDMA_ACQUIRE_TIMEOUT 27:27;
        GROUP_CHANNEL_THREAD 29:28;
        MAP_CHANNEL 30:30;
        SKIP_CTXBUFFER_ALLOC 31:31;
    }

    /// `notifyIndex` of an event (`nvos.h`, NV01_EVENT_...).
    pub mod NV01_EVENT_NOTIFY_INDEX: 32 bits {
        INDEX 15:0;
        SUBDEVICE 23:16;
        CLIENT_RM 26:26;
        NONSTALL_INTR 27:27;
        WITHOUT_EVENT_DATA 28:28;
        SUBDEVICE_SPECIFIC 29:29;
        PERMIT_NON_ROOT_EVENT_KERNEL_CALLBACK_CREATION 30:30;
        BROADCAST 31:31;
    }
}

/// `vaMode` of a device: it may hold several address spaces, and gets none by itself (`cl0080.h`).
pub const NV_DEVICE_ALLOCATION_VAMODE_OPTIONAL_MULTIPLE_VASPACES: u32 = 0;
/// `vaMode` of a device: several address spaces.
pub const NV_DEVICE_ALLOCATION_VAMODE_MULTIPLE_VASPACES: u32 = 2;
/// Engine type of the first graphics and compute engine (`cl2080.h`).
pub const NV2080_ENGINE_TYPE_GRAPHICS: u32 = 1;
/// Engine type of the first copy engine; the next nine follow it.
pub const NV2080_ENGINE_TYPE_COPY0: u32 = 9;
/// `type` of a memory allocation for notifiers and other small shared pages.
pub const NVOS32_TYPE_NOTIFIER: u32 = 13;
/// Notifier of a subdevice: the timer's (`cl2080_notification.h`).
pub const NV2080_NOTIFIERS_TIMER: u32 = 11;
/// Notifier of a subdevice: graphics and compute.
pub const NV2080_NOTIFIERS_GRAPHICS: u32 = 12;
/// Notifier of a subdevice: the first copy engine; the next nine follow it.
pub const NV2080_NOTIFIERS_CE0: u32 = 23;
/// Notifier of a subdevice: a robust-channel error.
pub const NV2080_NOTIFIERS_RC_ERROR: u32 = 37;
/// The GPU has fallen off the bus.
pub const NV2080_NOTIFIERS_GPU_UNAVAILABLE: u32 = 191;
/// One past the last notifier of a subdevice.
pub const NV2080_NOTIFIERS_MAXCOUNT: u32 = 198;
