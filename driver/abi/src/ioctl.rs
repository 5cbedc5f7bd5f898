//! Numbers of the frontend ioctls (`nv_escape.h`, `nv-ioctl-numbers.h`) and the command word that carries them.
//!
//! The kernel module reads only the number and the size of the word; the UVM node's requests are bare numbers and not
//! coded this way (see [`crate::uvm`]).

use crate::{Branch, Struct, rm::frontend as f};

/// The type byte that clients put into the word: `'F'`.
pub const NV_IOCTL_MAGIC: u32 = 0x46;

/// The command word of a frontend ioctl: read-write, `size` bytes (below 2^14), number `nr`.
pub const fn request(nr: u32, size: usize) -> u32 {
    (3 << 30) | (((size as u32) & 0x3fff) << 16) | (NV_IOCTL_MAGIC << 8) | (nr & 0xff)
}

/// The number in a command word.
pub const fn nr(request: u32) -> u32 {
    request & 0xff
}

/// The argument's size in a command word, in bytes.
pub const fn size(request: u32) -> usize {
    ((request >> 16) & 0x3fff) as usize
}

/// One frontend ioctl.
#[derive(Clone, Copy, Debug)]
pub struct Escape {
    /// The number.
    pub nr: u32,
    /// The vendor's name.
    pub name: &'static str,
    /// Its argument, where one struct is the only one: RM_ALLOC takes two, CARD_INFO an array.
    pub argument: Option<&'static Struct>,
}

/// The struct that an argument of so many bytes is. RM_ALLOC takes two, which their sizes tell apart.
pub fn argument(nr: u32, bytes: usize, branch: Branch) -> Option<&'static Struct> {
    match nr {
        NV_ESC_RM_ALLOC if bytes >= f::NVOS64_PARAMETERS::STRUCT.size(branch) => {
            Some(&f::NVOS64_PARAMETERS::STRUCT)
        }
        NV_ESC_RM_ALLOC => Some(&f::NVOS21_PARAMETERS::STRUCT),
        _ => escape(nr)?.argument,
    }
}

/// The row of a number.
pub fn escape(nr: u32) -> Option<&'static Escape> {
    ESCAPES.iter().find(|escape| escape.nr == nr)
}

macro_rules! escapes {
    ($($name:ident = $nr:literal $(($argument:ident))?;)*) => {
        $(
            #[doc = concat!("Number of `", stringify!($name), "`.")]
            pub const $name: u32 = $nr;
        )*
        /// Every frontend ioctl with a row, by number.
        pub const ESCAPES: &[Escape] = &[
            $(Escape { nr: $nr, name: stringify!($name), argument: escapes!(@argument $($argument)?) }),*
        ];
    };
    (@argument) => { None };
    (@argument $argument:ident) => { Some(&f::$argument::STRUCT) };
}

escapes! {
    NV_ESC_RM_ALLOC_MEMORY = 0x27 (nv_ioctl_nvos02_parameters_with_fd);
    NV_ESC_RM_ALLOC_OBJECT = 0x28 (NVOS05_PARAMETERS);
    NV_ESC_RM_FREE = 0x29 (NVOS00_PARAMETERS);
    NV_ESC_RM_CONTROL = 0x2a (NVOS54_PARAMETERS);
    NV_ESC_RM_ALLOC = 0x2b;
    NV_ESC_RM_DUP_OBJECT = 0x34 (NVOS55_PARAMETERS);
    NV_ESC_RM_SHARE = 0x35 (NVOS57_PARAMETERS);
    NV_ESC_RM_I2C_ACCESS = 0x39;
    NV_ESC_RM_IDLE_CHANNELS = 0x41 (NVOS30_PARAMETERS);
    NV_ESC_RM_VID_HEAP_CONTROL = 0x4a (NVOS32_PARAMETERS);
    NV_ESC_RM_ACCESS_REGISTRY = 0x4d;
    NV_ESC_RM_MAP_MEMORY = 0x4e (nv_ioctl_nvos33_parameters_with_fd);
    NV_ESC_RM_UNMAP_MEMORY = 0x4f (NVOS34_PARAMETERS);
    NV_ESC_RM_GET_EVENT_DATA = 0x52 (NVOS41_PARAMETERS);
    NV_ESC_RM_ALLOC_CONTEXT_DMA2 = 0x54 (NVOS39_PARAMETERS);
    NV_ESC_RM_MAP_MEMORY_DMA = 0x57 (NVOS46_PARAMETERS);
    NV_ESC_RM_UNMAP_MEMORY_DMA = 0x58 (NVOS47_PARAMETERS);
    NV_ESC_RM_BIND_CONTEXT_DMA = 0x59 (NVOS49_PARAMETERS);
    NV_ESC_RM_EXPORT_OBJECT_TO_FD = 0x5c;
    NV_ESC_RM_IMPORT_OBJECT_FROM_FD = 0x5d;
    NV_ESC_RM_UPDATE_DEVICE_MAPPING_INFO = 0x5e (NVOS56_PARAMETERS);
    NV_ESC_CARD_INFO = 200;
    NV_ESC_REGISTER_FD = 201 (nv_ioctl_register_fd_t);
    NV_ESC_ALLOC_OS_EVENT = 206 (nv_ioctl_alloc_os_event_t);
    NV_ESC_FREE_OS_EVENT = 207 (nv_ioctl_free_os_event_t);
    NV_ESC_STATUS_CODE = 209 (nv_ioctl_status_code_t);
    NV_ESC_CHECK_VERSION_STR = 210 (nv_ioctl_rm_api_version_t);
    NV_ESC_IOCTL_XFER_CMD = 211 (nv_ioctl_xfer_t);
    NV_ESC_ATTACH_GPUS_TO_FD = 212;
    NV_ESC_QUERY_DEVICE_INTR = 213 (nv_ioctl_query_device_intr);
    NV_ESC_SYS_PARAMS = 214 (nv_ioctl_sys_params_t);
    NV_ESC_NUMA_INFO = 215 (nv_ioctl_numa_info_t);
    NV_ESC_SET_NUMA_STATUS = 216;
    NV_ESC_EXPORT_TO_DMABUF_FD = 217 (nv_ioctl_export_to_dma_buf_fd_t);
    NV_ESC_WAIT_OPEN_COMPLETE = 218 (nv_ioctl_wait_open_complete_t);
}
