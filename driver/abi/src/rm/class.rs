//! The class table: which objects exist, under which parents, with which allocation parameters.
//!
//! Source: the resource list of NVIDIA/open-gpu-kernel-modules (MIT) at tag 580.142, display, video and vGPU left out.

use super::allocation as a;
use crate::{Branch, Struct};

/// What an object is for the purposes of its children's parent rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Parent {
    /// No parent: a client.
    Root,
    Client,
    Device,
    Subdevice,
    ChannelGroup,
    Channel,
    GpuInstanceSubscription,
    Display,
    /// Any object.
    Any,
}

/// Who may allocate a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Privilege {
    /// Every user.
    User,
    /// Root only.
    Root,
    /// Only the kernel module itself.
    Kernel,
}

/// Whether the parameters pointer of an allocation must be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameters {
    /// The class takes none.
    None,
    /// NULL is fine.
    Optional(Option<&'static Struct>),
    /// NULL is refused; the rows, where this crate has them.
    Required(Option<&'static Struct>),
}

impl Parameters {
    /// The rows, where the class takes parameters and this crate has them.
    pub const fn rows(self) -> Option<&'static Struct> {
        match self {
            Self::None => None,
            Self::Optional(rows) | Self::Required(rows) => rows,
        }
    }
}

/// One class.
#[derive(Clone, Copy, Debug)]
pub struct Class {
    /// The class number.
    pub number: u32,
    /// The vendor's name.
    pub name: &'static str,
    /// The kernel module's internal class, which decides what its objects can do.
    pub internal: &'static str,
    /// At most one instance under one parent.
    pub single: bool,
    /// Parents it may be allocated under.
    pub parents: &'static [Parent],
    /// Its allocation parameters.
    pub parameters: Parameters,
    /// Who may allocate it.
    pub privilege: Privilege,
    /// The first branch that has it.
    pub since: Branch,
}

/// Classes without rows that are older than none of the branches but R580 (the resource list at each tag): they are
/// for tests of the module itself.
const TESTS_SINCE_R580: [u32; 2] = [0x0100, 0x0101];

/// Whether the module of a branch has a class. A class without a row is taken for one that every module has.
pub fn exists(number: u32, branch: Branch) -> bool {
    let since = if TESTS_SINCE_R580.contains(&number) {
        Branch::R580
    } else {
        class(number).map_or(Branch::R535, |class| class.since)
    };
    since <= branch
}

/// The row of a class number.
pub fn class(number: u32) -> Option<&'static Class> {
    CLASSES.iter().find(|class| class.number == number)
}

macro_rules! classes {
    ($($name:ident = $number:literal: $internal:ident $(($single:ident))? [$($parent:ident),*], $presence:ident $($parameters:ident)?, $privilege:ident $([since $since:ident])?;)*) => {
        $(
            #[doc = concat!("Class number of `", stringify!($name), "`.")]
            pub const $name: u32 = $number;
        )*
        /// Every class with a row.
        pub const CLASSES: &[Class] = &[
            $(Class {
                number: $number,
                name: stringify!($name),
                internal: stringify!($internal),
                single: classes!(@single $($single)?),
                parents: &[$(Parent::$parent),*],
                parameters: classes!(@parameters $presence $($parameters)?),
                privilege: Privilege::$privilege,
                since: classes!(@since $($since)?),
            }),*
        ];
    };
    (@since) => { Branch::R535 };
    (@since $since:ident) => { Branch::$since };
    (@single) => { false };
    (@single single) => { true };
    (@parameters none) => { Parameters::None };
    (@parameters optional) => { Parameters::Optional(None) };
    (@parameters required) => { Parameters::Required(None) };
    (@parameters optional $parameters:ident) => { Parameters::Optional(Some(&a::$parameters::STRUCT)) };
    (@parameters required $parameters:ident) => { Parameters::Required(Some(&a::$parameters::STRUCT)) };
}

classes! {
    NV01_ROOT = 0x0000: RmClientResource (single) [Root], optional, User;
    NV01_ROOT_NON_PRIV = 0x0001: RmClientResource (single) [Root], optional, User;
    NV01_ROOT_CLIENT = 0x0041: RmClientResource (single) [Root], optional, User;
    MPS_COMPUTE = 0x900e: MpsApi (single) [Client], none, User;
    FABRIC_MANAGER_SESSION = 0x000f: FmSessionApi (single) [Client], required, User;
    NV_IMEX_SESSION = 0x00f1: ImexSessionApi (single) [Client], required, User [since R550];
    NV_EVENT_BUFFER = 0x90cd: EventBuffer [Client], required, User;
    NV_SEMAPHORE_SURFACE = 0x00da: SemaphoreSurface [Subdevice], required, User;
    NV50_P2P = 0x503b: P2PApi [Client], required NV503B_ALLOC_PARAMETERS, User;
    NV01_DEVICE_0 = 0x0080: Device [Client], optional NV0080_ALLOC_PARAMETERS, User;
    GT200_DEBUGGER = 0x83de: KernelSMDebuggerSession [Device], required NV83DE_ALLOC_PARAMETERS, User;
    GF100_PROFILER = 0x90cc: Profiler [Subdevice, Channel, ChannelGroup], none, User;
    MAXWELL_PROFILER_CONTEXT = 0xb1cc: ProfilerCtx [Channel, ChannelGroup], required, User [since R565];
    MAXWELL_PROFILER_DEVICE = 0xb2cc: ProfilerDev [Subdevice], required, User;
    GF100_CHANNEL_GPFIFO = 0x906f: KernelChannel [Device, ChannelGroup], required NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS, User;
    KEPLER_CHANNEL_GPFIFO_A = 0xa06f: KernelChannel [Device, ChannelGroup], required NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS, User;
    KEPLER_CHANNEL_GPFIFO_B = 0xa16f: KernelChannel [Device, ChannelGroup], required NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS, User;
    MAXWELL_CHANNEL_GPFIFO_A = 0xb06f: KernelChannel [Device, ChannelGroup], required NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS, User;
    PASCAL_CHANNEL_GPFIFO_A = 0xc06f: KernelChannel [Device, ChannelGroup], required NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS, User;
    VOLTA_CHANNEL_GPFIFO_A = 0xc36f: KernelChannel [Device, ChannelGroup], required NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS, User;
    TURING_CHANNEL_GPFIFO_A = 0xc46f: KernelChannel [Device, ChannelGroup], required NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS, User;
    AMPERE_CHANNEL_GPFIFO_A = 0xc56f: KernelChannel [Device, ChannelGroup], required NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS, User;
    HOPPER_CHANNEL_GPFIFO_A = 0xc86f: KernelChannel [Device, ChannelGroup], required NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS, User;
    BLACKWELL_CHANNEL_GPFIFO_A = 0xc96f: KernelChannel [Device, ChannelGroup], required NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS, User;
    BLACKWELL_CHANNEL_GPFIFO_B = 0xca6f: KernelChannel [Device, ChannelGroup], required NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS, User;
    UVM_CHANNEL_RETAINER = 0xc574: UvmChannelRetainer [Device, ChannelGroup], required, Kernel;
    FERMI_CONTEXT_SHARE_A = 0x9067: KernelCtxShareApi [ChannelGroup], required NV_CTXSHARE_ALLOCATION_PARAMETERS, User;
    KERNEL_GRAPHICS_CONTEXT = 0x0090: KernelGraphicsContext [ChannelGroup, Channel], none, User;
    NV20_SUBDEVICE_0 = 0x2080: Subdevice [Device], optional NV2080_ALLOC_PARAMETERS, User;
    NV2081_BINAPI = 0x2081: BinaryApi [Subdevice], optional NV2081_ALLOC_PARAMETERS, User;
    NV2082_BINAPI_PRIVILEGED = 0x2082: BinaryApiPrivileged [Subdevice], optional, Root;
    KEPLER_CHANNEL_GROUP_A = 0xa06c: KernelChannelGroupApi [Device], required NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS, User;
    NV01_MEMORY_LOCAL_PRIVILEGED = 0x003f: RegisterMemory [Device], none, User;
    NV01_MEMORY_LOCAL_USER = 0x0040: VideoMemory [Device, Subdevice], required NV_MEMORY_ALLOCATION_PARAMS, User;
    NV_MEMORY_EXTENDED_USER = 0x0042: ExtendedGpuMemory [Device, Subdevice], required NV_MEMORY_ALLOCATION_PARAMS, User;
    NV01_MEMORY_LOCAL_PHYSICAL = 0x00c2: PhysicalMemory [Device], required, Root;
    NV50_MEMORY_VIRTUAL = 0x50a0: VirtualMemory [Device], required NV_MEMORY_ALLOCATION_PARAMS, User;
    NV01_MEMORY_SYSTEM = 0x003e: SystemMemory [Device], required NV_MEMORY_ALLOCATION_PARAMS, User;
    NV01_MEMORY_VIRTUAL = 0x0070: VirtualMemoryRange [Device], required NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS, User;
    NV_MEMORY_MAPPER = 0x00fe: MemoryMapper [Subdevice], required, User;
    NV01_MEMORY_SYSTEM_OS_DESCRIPTOR = 0x0071: OsDescMemory [Device], required NV_OS_DESC_MEMORY_ALLOCATION_PARAMS, User;
    NV01_MEMORY_DEVICELESS = 0x90ce: NoDeviceMemory [Client], required NV_MEMORY_ALLOCATION_PARAMS, User;
    NV01_MEMORY_HW_RESOURCES = 0x00b1: MemoryHwResources [Device, Subdevice], required, User;
    NV01_MEMORY_LIST_SYSTEM = 0x0081: MemoryList [Device, Subdevice], required, Root;
    NV01_MEMORY_LIST_FBMEM = 0x0082: MemoryList [Device, Subdevice], required, Root;
    NV01_MEMORY_LIST_OBJECT = 0x0083: MemoryList [Device, Subdevice], required, Root;
    NV01_MEMORY_FLA = 0x00f3: FlaMemory [Device], required, User;
    NV_MEMORY_EXPORT = 0x00e0: MemoryExport [Client], required, User [since R550];
    NV_MEMORY_FABRIC_IMPORT_V2 = 0x00f9: MemoryFabricImportV2 [Client], required, User [since R550];
    NV_MEMORY_FABRIC = 0x00f8: MemoryFabric [Subdevice], required, User;
    NV_MEMORY_FABRIC_IMPORTED_REF = 0x00fb: MemoryFabricImportedRef [Client], required, User [since R550];
    FERMI_VASPACE_A = 0x90f1: VaSpaceApi [Device, Subdevice], required NV_VASPACE_ALLOCATION_PARAMETERS, User;
    NV_MEMORY_MULTICAST_FABRIC = 0x00fd: MemoryMulticastFabric [Client], required, User;
    NV50_THIRD_PARTY_P2P = 0x503c: ThirdPartyP2P (single) [Subdevice], optional NV503C_ALLOC_PARAMETERS, User;
    GF100_SUBDEVICE_MASTER = 0x90e6: GenericEngineApi [Subdevice], none, User;
    GF100_SUBDEVICE_INFOROM = 0x90e7: GenericEngineApi [Subdevice], none, User;
    NV01_TIMER = 0x0004: TimerApi (single) [Subdevice], none, User;
    NV20_SUBDEVICE_DIAG = 0x208f: DiagApi (single) [Subdevice], none, User;
    GF100_ZBC_CLEAR = 0x9096: ZbcApi [Subdevice], none, User;
    NV40_DEBUG_BUFFER = 0x00db: DebugBufferApi [Subdevice], required, User;
    RM_USER_SHARED_DATA = 0x00de: GpuUserSharedData [Subdevice], required NV00DE_ALLOC_PARAMETERS, User;
    VOLTA_USERMODE_A = 0xc361: UserModeApi [Subdevice], none, User;
    TURING_USERMODE_A = 0xc461: UserModeApi [Subdevice], none, User;
    AMPERE_USERMODE_A = 0xc561: UserModeApi [Subdevice], none, User;
    HOPPER_USERMODE_A = 0xc661: UserModeApi [Subdevice], optional NV_HOPPER_USERMODE_A_PARAMS, User;
    BLACKWELL_USERMODE_A = 0xc761: UserModeApi [Subdevice], optional NV_HOPPER_USERMODE_A_PARAMS, User;
    MMU_FAULT_BUFFER = 0xc369: MmuFaultBuffer (single) [Subdevice], none, Kernel;
    ACCESS_COUNTER_NOTIFY_BUFFER = 0xc365: AccessCounterBuffer [Subdevice], required, User;
    MMU_VIDMEM_ACCESS_BIT_BUFFER = 0xc763: VidmemAccessBitBuffer (single) [Subdevice], required, User;
    HOPPER_MMU_VIDMEM_ACCESS_BIT_BUFFER = 0xc863: VidmemAccessBitBuffer (single) [Subdevice], required, User [since R580];
    AMPERE_SMC_PARTITION_REF = 0xc637: GPUInstanceSubscription (single) [Subdevice], required, User;
    AMPERE_SMC_EXEC_PARTITION_REF = 0xc638: ComputeInstanceSubscription (single) [GpuInstanceSubscription], required, User;
    AMPERE_SMC_CONFIG_SESSION = 0xc639: MIGConfigSession (single) [Client], required, User;
    AMPERE_SMC_MONITOR_SESSION = 0xc640: MIGMonitorSession (single) [Client], required, User;
    NV0092_RG_LINE_CALLBACK = 0x0092: RgLineCallback [Display], required, Kernel;
    NVC57D_CORE_CHANNEL_DMA = 0xc57d: DispChannelDma [Display], required, Root;
    NVC67D_CORE_CHANNEL_DMA = 0xc67d: DispChannelDma [Display], required, Root;
    NVC77D_CORE_CHANNEL_DMA = 0xc77d: DispChannelDma [Display], required, Root;
    NVC77F_ANY_CHANNEL_DMA = 0xc77f: DispChannelDma [Display], required, Root;
    NVC97D_CORE_CHANNEL_DMA = 0xc97d: DispChannelDma [Display], required, Root;
    NVCA7D_CORE_CHANNEL_DMA = 0xca7d: DispChannelDma [Display], required, Root;
    NVCB7D_CORE_CHANNEL_DMA = 0xcb7d: DispChannelDma [Display], required, Root;
    NVCC7D_CORE_CHANNEL_DMA = 0xcc7d: DispChannelDma [Display], required, Root;
    GF100_TIMED_SEMAPHORE_SW = 0x9074: TimedSemaSwObject [Channel], none, User;
    NV50_DEFERRED_API_CLASS = 0x5080: DeferredApiObject [Channel], optional, User;
    GP100_UVM_SW = 0xc076: UvmSwObject [Channel], none, Root;
    NV04_SOFTWARE_TEST = 0x007d: SoftwareMethodTest [Channel], none, User;
    MAXWELL_DMA_COPY_A = 0xb0b5: KernelCeContext [Channel], optional NVB0B5_ALLOCATION_PARAMETERS, User;
    PASCAL_DMA_COPY_A = 0xc0b5: KernelCeContext [Channel], optional NVB0B5_ALLOCATION_PARAMETERS, User;
    TURING_DMA_COPY_A = 0xc5b5: KernelCeContext [Channel], optional NVB0B5_ALLOCATION_PARAMETERS, User;
    AMPERE_DMA_COPY_A = 0xc6b5: KernelCeContext [Channel], optional NVB0B5_ALLOCATION_PARAMETERS, User;
    AMPERE_DMA_COPY_B = 0xc7b5: KernelCeContext [Channel], optional NVB0B5_ALLOCATION_PARAMETERS, User;
    HOPPER_DMA_COPY_A = 0xc8b5: KernelCeContext [Channel], optional NVB0B5_ALLOCATION_PARAMETERS, User;
    BLACKWELL_DMA_COPY_A = 0xc9b5: KernelCeContext [Channel], optional NVB0B5_ALLOCATION_PARAMETERS, User;
    BLACKWELL_DMA_COPY_B = 0xcab5: KernelCeContext [Channel], optional NVB0B5_ALLOCATION_PARAMETERS, User;
    HOPPER_SEC2_WORK_LAUNCH_A = 0xcba2: Sec2Context [Channel], none, User;
    AMPERE_A = 0xc697: KernelGraphicsObject [Channel], optional NV_GR_ALLOCATION_PARAMETERS, User;
    AMPERE_COMPUTE_A = 0xc6c0: KernelGraphicsObject [Channel], optional NV_GR_ALLOCATION_PARAMETERS, User;
    AMPERE_B = 0xc797: KernelGraphicsObject [Channel], optional NV_GR_ALLOCATION_PARAMETERS, User;
    AMPERE_COMPUTE_B = 0xc7c0: KernelGraphicsObject [Channel], optional NV_GR_ALLOCATION_PARAMETERS, User;
    ADA_A = 0xc997: KernelGraphicsObject [Channel], optional NV_GR_ALLOCATION_PARAMETERS, User;
    ADA_COMPUTE_A = 0xc9c0: KernelGraphicsObject [Channel], optional NV_GR_ALLOCATION_PARAMETERS, User;
    HOPPER_A = 0xcb97: KernelGraphicsObject [Channel], optional NV_GR_ALLOCATION_PARAMETERS, User;
    HOPPER_COMPUTE_A = 0xcbc0: KernelGraphicsObject [Channel], optional NV_GR_ALLOCATION_PARAMETERS, User;
    BLACKWELL_A = 0xcd97: KernelGraphicsObject [Channel], optional NV_GR_ALLOCATION_PARAMETERS, User;
    BLACKWELL_COMPUTE_A = 0xcdc0: KernelGraphicsObject [Channel], optional NV_GR_ALLOCATION_PARAMETERS, User;
    BLACKWELL_INLINE_TO_MEMORY_A = 0xcd40: KernelGraphicsObject [Channel], optional NV_GR_ALLOCATION_PARAMETERS, User;
    BLACKWELL_B = 0xce97: KernelGraphicsObject [Channel], optional NV_GR_ALLOCATION_PARAMETERS, User;
    BLACKWELL_COMPUTE_B = 0xcec0: KernelGraphicsObject [Channel], optional NV_GR_ALLOCATION_PARAMETERS, User;
    FERMI_TWOD_A = 0x902d: KernelGraphicsObject [Channel], optional NV_GR_ALLOCATION_PARAMETERS, User;
    KEPLER_INLINE_TO_MEMORY_B = 0xa140: KernelGraphicsObject [Channel], optional NV_GR_ALLOCATION_PARAMETERS, User;
    TURING_A = 0xc597: KernelGraphicsObject [Channel], optional NV_GR_ALLOCATION_PARAMETERS, User;
    TURING_COMPUTE_A = 0xc5c0: KernelGraphicsObject [Channel], optional NV_GR_ALLOCATION_PARAMETERS, User;
    NV01_CONTEXT_DMA = 0x0002: ContextDma [Any], required NV_CONTEXT_DMA_ALLOCATION_PARAMS, User;
    NV01_EVENT = 0x0005: Event [Any], required NV0005_ALLOC_PARAMETERS, User;
    NV01_EVENT_OS_EVENT = 0x0079: Event [Any], required NV0005_ALLOC_PARAMETERS, User;
    NV01_EVENT_KERNEL_CALLBACK = 0x0078: Event [Any], required NV0005_ALLOC_PARAMETERS, User;
    NV01_EVENT_KERNEL_CALLBACK_EX = 0x007e: Event [Any], required NV0005_ALLOC_PARAMETERS, User;
    NV_CONFIDENTIAL_COMPUTE = 0xcb33: ConfidentialComputeApi [Client], optional NV_CONFIDENTIAL_COMPUTE_ALLOC_PARAMS, User;
    NV_COUNTER_COLLECTION_UNIT = 0xcbca: KernelCcuApi (single) [Subdevice], none, User;
    NV_CE_UTILS = 0x0050: CeUtilsApi [Subdevice], required, Root;
}
