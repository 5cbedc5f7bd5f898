//! Status numbers: the result of every RM and UVM call (`nvstatuscodes.h`).

use std::fmt;

/// The result of an RM or UVM call.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(pub u32);

macro_rules! statuses {
    ($($name:ident = $value:literal;)*) => {
        #[allow(missing_docs)]
        impl Status {
            $(pub const $name: Self = Self($value);)*
            /// Every named status.
            pub const ALL: &[(Self, &'static str)] = &[$((Self($value), stringify!($name))),*];
        }
    };
}

statuses! {
    NV_OK = 0x0;
    BROKEN_FB = 0x1;
    BUFFER_TOO_SMALL = 0x2;
    BUSY_RETRY = 0x3;
    CALLBACK_NOT_SCHEDULED = 0x4;
    CARD_NOT_PRESENT = 0x5;
    CYCLE_DETECTED = 0x6;
    DMA_IN_USE = 0x7;
    DMA_MEM_NOT_LOCKED = 0x8;
    DMA_MEM_NOT_UNLOCKED = 0x9;
    DUAL_LINK_INUSE = 0xa;
    ECC_ERROR = 0xb;
    FIFO_BAD_ACCESS = 0xc;
    FREQ_NOT_SUPPORTED = 0xd;
    GPU_DMA_NOT_INITIALIZED = 0xe;
    GPU_IS_LOST = 0xf;
    GPU_IN_FULLCHIP_RESET = 0x10;
    GPU_NOT_FULL_POWER = 0x11;
    GPU_UUID_NOT_FOUND = 0x12;
    HOT_SWITCH = 0x13;
    I2C_ERROR = 0x14;
    I2C_SPEED_TOO_HIGH = 0x15;
    ILLEGAL_ACTION = 0x16;
    IN_USE = 0x17;
    INFLATE_COMPRESSED_DATA_FAILED = 0x18;
    INSERT_DUPLICATE_NAME = 0x19;
    INSUFFICIENT_RESOURCES = 0x1a;
    INSUFFICIENT_PERMISSIONS = 0x1b;
    INSUFFICIENT_POWER = 0x1c;
    INVALID_ACCESS_TYPE = 0x1d;
    INVALID_ADDRESS = 0x1e;
    INVALID_ARGUMENT = 0x1f;
    INVALID_BASE = 0x20;
    INVALID_CHANNEL = 0x21;
    INVALID_CLASS = 0x22;
    INVALID_CLIENT = 0x23;
    INVALID_COMMAND = 0x24;
    INVALID_DATA = 0x25;
    INVALID_DEVICE = 0x26;
    INVALID_DMA_SPECIFIER = 0x27;
    INVALID_EVENT = 0x28;
    INVALID_FLAGS = 0x29;
    INVALID_FUNCTION = 0x2a;
    INVALID_HEAP = 0x2b;
    INVALID_INDEX = 0x2c;
    INVALID_IRQ_LEVEL = 0x2d;
    INVALID_LIMIT = 0x2e;
    INVALID_LOCK_STATE = 0x2f;
    INVALID_METHOD = 0x30;
    INVALID_OBJECT = 0x31;
    INVALID_OBJECT_BUFFER = 0x32;
    INVALID_OBJECT_HANDLE = 0x33;
    INVALID_OBJECT_NEW = 0x34;
    INVALID_OBJECT_OLD = 0x35;
    INVALID_OBJECT_PARENT = 0x36;
    INVALID_OFFSET = 0x37;
    INVALID_OPERATION = 0x38;
    INVALID_OWNER = 0x39;
    INVALID_PARAM_STRUCT = 0x3a;
    INVALID_PARAMETER = 0x3b;
    INVALID_PATH = 0x3c;
    INVALID_POINTER = 0x3d;
    INVALID_REGISTRY_KEY = 0x3e;
    INVALID_REQUEST = 0x3f;
    INVALID_STATE = 0x40;
    INVALID_STRING_LENGTH = 0x41;
    INVALID_READ = 0x42;
    INVALID_WRITE = 0x43;
    INVALID_XLATE = 0x44;
    IRQ_NOT_FIRING = 0x45;
    IRQ_EDGE_TRIGGERED = 0x46;
    MEMORY_TRAINING_FAILED = 0x47;
    MISMATCHED_SLAVE = 0x48;
    MISMATCHED_TARGET = 0x49;
    MISSING_TABLE_ENTRY = 0x4a;
    MODULE_LOAD_FAILED = 0x4b;
    MORE_DATA_AVAILABLE = 0x4c;
    MORE_PROCESSING_REQUIRED = 0x4d;
    MULTIPLE_MEMORY_TYPES = 0x4e;
    NO_FREE_FIFOS = 0x4f;
    NO_INTR_PENDING = 0x50;
    NO_MEMORY = 0x51;
    NO_SUCH_DOMAIN = 0x52;
    NO_VALID_PATH = 0x53;
    NOT_COMPATIBLE = 0x54;
    NOT_READY = 0x55;
    NOT_SUPPORTED = 0x56;
    OBJECT_NOT_FOUND = 0x57;
    OBJECT_TYPE_MISMATCH = 0x58;
    OPERATING_SYSTEM = 0x59;
    OTHER_DEVICE_FOUND = 0x5a;
    OUT_OF_RANGE = 0x5b;
    OVERLAPPING_UVM_COMMIT = 0x5c;
    PAGE_TABLE_NOT_AVAIL = 0x5d;
    PID_NOT_FOUND = 0x5e;
    PROTECTION_FAULT = 0x5f;
    RC_ERROR = 0x60;
    REJECTED_VBIOS = 0x61;
    RESET_REQUIRED = 0x62;
    STATE_IN_USE = 0x63;
    SIGNAL_PENDING = 0x64;
    TIMEOUT = 0x65;
    TIMEOUT_RETRY = 0x66;
    TOO_MANY_PRIMARIES = 0x67;
    UVM_ADDRESS_IN_USE = 0x68;
    MAX_SESSION_LIMIT_REACHED = 0x69;
    LIB_RM_VERSION_MISMATCH = 0x6a;
    PRIV_SEC_VIOLATION = 0x6b;
    GPU_IN_DEBUG_MODE = 0x6c;
    FEATURE_NOT_ENABLED = 0x6d;
    RESOURCE_LOST = 0x6e;
    PMU_NOT_READY = 0x6f;
    FLCN_ERROR = 0x70;
    FATAL_ERROR = 0x71;
    MEMORY_ERROR = 0x72;
    INVALID_LICENSE = 0x73;
    NVLINK_INIT_ERROR = 0x74;
    NVLINK_MINION_ERROR = 0x75;
    NVLINK_CLOCK_ERROR = 0x76;
    NVLINK_TRAINING_ERROR = 0x77;
    NVLINK_CONFIGURATION_ERROR = 0x78;
    RISCV_ERROR = 0x79;
    FABRIC_MANAGER_NOT_PRESENT = 0x7a;
    ALREADY_SIGNALLED = 0x7b;
    QUEUE_TASK_SLOT_NOT_AVAILABLE = 0x7c;
    KEY_ROTATION_IN_PROGRESS = 0x7d;
    TEST_ONLY_CODE_NOT_ENABLED = 0x7e;
    SECURE_BOOT_FAILED = 0x7f;
    INSUFFICIENT_ZBC_ENTRY = 0x80;
    NVLINK_FABRIC_NOT_READY = 0x81;
    NVLINK_FABRIC_FAILURE = 0x82;
    GPU_MEMORY_ONLINING_FAILURE = 0x83;
    REDUCTION_MANAGER_NOT_AVAILABLE = 0x84;
    THRESHOLD_CROSSED = 0x85;
    RESOURCE_RETIREMENT_ERROR = 0x86;
    FABRIC_STATE_OUT_OF_SYNC = 0x87;
    BUFFER_FULL = 0x88;
    BUFFER_EMPTY = 0x89;
    MC_FLA_OFFSET_TABLE_FULL = 0x8a;
    DMA_XFER_FAILED = 0x8b;
    GENERIC = 0xffff;
    WARN_HOT_SWITCH = 0x10001;
    WARN_INCORRECT_PERFMON_DATA = 0x10002;
    WARN_MISMATCHED_SLAVE = 0x10003;
    WARN_MISMATCHED_TARGET = 0x10004;
    WARN_MORE_PROCESSING_REQUIRED = 0x10005;
    WARN_NOTHING_TO_DO = 0x10006;
    WARN_NULL_OBJECT = 0x10007;
    WARN_OUT_OF_RANGE = 0x10008;
    WARN_THRESHOLD_CROSSED = 0x10009;
}

impl Status {
    /// The vendor's name, without the common prefix `NV_ERR_` or `NV_`.
    pub fn name(self) -> Option<&'static str> {
        Self::ALL.iter().find(|(status, _)| *status == self).map(|(_, name)| *name)
    }

    /// Whether the call did what was asked.
    pub const fn is_ok(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({:#x})", self.0),
            None => write!(f, "status {:#x}", self.0),
        }
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Status {}

impl From<u64> for Status {
    /// The low 32 bits, as a record's status field gives them.
    fn from(value: u64) -> Self {
        Self(value as u32)
    }
}
