//! GPU generations: what differs between them, each as a delta over its parent.
//!
//! Class numbers: NVIDIA/open-gpu-kernel-modules class headers; the H200's were confirmed by its class list. Constant
//! bank layouts: measured on code that nvcc emits for each architecture, and what tinygrad's backend fills.

use crate::{compute, copy, host, method::ClassTable, qmd, rm::class};

/// A GPU generation that this crate describes, by the compute class it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Generation {
    /// GA10x: sm_86.
    Ampere,
    /// AD10x: sm_89.
    Ada,
    /// GH100: sm_90.
    Hopper,
    /// GB20x: sm_120.
    Blackwell,
}

/// The class numbers of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classes {
    /// The channel.
    pub channel: u32,
    /// The doorbell page.
    pub usermode: u32,
    /// Compute.
    pub compute: u32,
    /// The copy engine.
    pub copy: u32,
}

/// Byte offsets of the driver's words in constant bank 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConstantBank {
    /// Threads of a CTA, three words.
    pub block_dimensions: u32,
    /// CTAs, three words.
    pub grid_dimensions: u32,
    /// Base of the shared window, 64 bits; `None` where code reads a special register instead.
    pub shared_window: Option<u32>,
    /// Base of the local window, 64 bits.
    pub local_window: u32,
    /// Initial stack pointer (R1).
    pub stack_top: u32,
    /// Bytes of dynamic shared memory.
    pub dynamic_shared_bytes: u32,
    /// Number of the grid, 64 bits; `None` where code does not read it here.
    pub grid_id: Option<u32>,
    /// Bytes of shared memory that the system takes.
    pub reserved_shared_bytes: u32,
    /// The memory descriptor of global accesses, 64 bits; zero works.
    pub memory_descriptor: u32,
    /// Address of constant bank 3, 64 bits: where generic addresses of constants begin.
    pub constant_window: u32,
    /// Address of the memory in which the blocks of a cooperative launch meet: the high word's offset, the low word's.
    pub grid_workspace: [u32; 2],
    /// What code reads of its cluster; `None` before there were any, and where it is not known.
    pub cluster: Option<ClusterWords>,
    /// The first parameter.
    pub parameters: u32,
}

/// Byte offsets of the words that say what a cluster is. Without clusters a block is one of its own. Measured: what
/// NVIDIA's library fills in on an H200, and which word code reads for each special register of PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterWords {
    /// 1 where the launch was one of clusters.
    pub explicit: u32,
    /// CTAs of a cluster, three words.
    pub dimensions: u32,
    /// One through each of those, three FP32 numbers.
    pub reciprocals: u32,
    /// Clusters of the grid, three words.
    pub clusters: u32,
    /// CTAs of a cluster.
    pub size: u32,
}

/// Driver words in constant bank 0 that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// What they are.
    pub name: &'static str,
    /// Byte offset of the first.
    pub offset: u32,
    /// How many words.
    pub words: u32,
}

impl ConstantBank {
    /// The driver's words, by offset; the parameters are not among them.
    pub fn slots(&self) -> Vec<Slot> {
        let rows = [
            ("block dimensions", Some(self.block_dimensions), 3),
            ("grid dimensions", Some(self.grid_dimensions), 3),
            ("shared window", self.shared_window, 2),
            ("local window", Some(self.local_window), 2),
            ("stack top", Some(self.stack_top), 1),
            ("dynamic shared bytes", Some(self.dynamic_shared_bytes), 1),
            ("grid id", self.grid_id, 2),
            ("reserved shared bytes", Some(self.reserved_shared_bytes), 1),
            ("memory descriptor", Some(self.memory_descriptor), 2),
            ("constant window", Some(self.constant_window), 2),
            ("grid workspace, high", Some(self.grid_workspace[0]), 1),
            ("grid workspace, low", Some(self.grid_workspace[1]), 1),
            ("explicit clusters", self.cluster.map(|c| c.explicit), 1),
            ("cluster dimensions", self.cluster.map(|c| c.dimensions), 3),
            ("reciprocals of them", self.cluster.map(|c| c.reciprocals), 3),
            ("clusters", self.cluster.map(|c| c.clusters), 3),
            ("blocks of a cluster", self.cluster.map(|c| c.size), 1),
        ];
        let present =
            rows.into_iter().filter_map(|(name, offset, words)| Some(Slot { name, offset: offset?, words }));
        let mut slots: Vec<Slot> = present.collect();
        slots.sort_by_key(|slot| slot.offset);
        slots
    }
}

/// What a launch may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// CTAs along each axis.
    pub grid: [u32; 3],
    /// Threads along each axis.
    pub block: [u32; 3],
    /// Threads of a CTA.
    pub threads: u32,
    /// Registers of an SM.
    pub registers: u32,
    /// Registers are handed out to a warp in this unit.
    pub register_unit: u32,
    /// Shared memory of a CTA in bytes, the opt-in maximum.
    pub shared_bytes: u32,
    /// Shared memory carve-outs of an SM in KiB, ascending.
    pub shared_configs: &'static [u32],
    /// Bytes of shared memory that the system takes from every CTA.
    pub shared_reserved: u32,
}

const AMPERE_LIMITS: Limits = Limits {
    grid: [0x7fff_ffff, 65_535, 65_535],
    block: [1024, 1024, 64],
    threads: 1024,
    registers: 65_536,
    register_unit: 256,
    shared_bytes: 99 * 1024,
    shared_configs: &[8, 16, 32, 64, 100],
    shared_reserved: 1024,
};

const AMPERE_BANK: ConstantBank = ConstantBank {
    block_dimensions: 0x00,
    grid_dimensions: 0x0c,
    shared_window: Some(0x18),
    local_window: 0x20,
    stack_top: 0x28,
    dynamic_shared_bytes: 0x2c,
    grid_id: Some(0x30),
    reserved_shared_bytes: 0x114,
    memory_descriptor: 0x118,
    constant_window: 0x50,
    grid_workspace: [0x8c, 0x90],
    cluster: None,
    parameters: 0x160,
};

impl Generation {
    /// Every generation, oldest first.
    pub const ALL: [Self; 4] = [Self::Ampere, Self::Ada, Self::Hopper, Self::Blackwell];

    /// The class numbers.
    pub const fn classes(self) -> Classes {
        match self {
            Self::Ampere => Classes {
                channel: class::AMPERE_CHANNEL_GPFIFO_A,
                usermode: class::AMPERE_USERMODE_A,
                compute: class::AMPERE_COMPUTE_B,
                copy: class::AMPERE_DMA_COPY_B,
            },
            Self::Ada => Classes { compute: class::ADA_COMPUTE_A, ..Self::Ampere.classes() },
            Self::Hopper => Classes {
                channel: class::HOPPER_CHANNEL_GPFIFO_A,
                usermode: class::HOPPER_USERMODE_A,
                compute: class::HOPPER_COMPUTE_A,
                copy: class::HOPPER_DMA_COPY_A,
            },
            Self::Blackwell => Classes {
                channel: class::BLACKWELL_CHANNEL_GPFIFO_B,
                usermode: class::BLACKWELL_USERMODE_A,
                compute: class::BLACKWELL_COMPUTE_B,
                copy: class::BLACKWELL_DMA_COPY_B,
            },
        }
    }

    /// The generation that runs a compute class.
    pub fn of_compute_class(number: u32) -> Option<Self> {
        match number {
            class::AMPERE_COMPUTE_A => Some(Self::Ampere),
            class::BLACKWELL_COMPUTE_A => Some(Self::Blackwell),
            _ => Self::ALL.into_iter().find(|generation| generation.classes().compute == number),
        }
    }

    /// The generation whose channels are of a class; of those that share one, the oldest.
    pub fn of_channel_class(number: u32) -> Option<Self> {
        match number {
            class::BLACKWELL_CHANNEL_GPFIFO_A => Some(Self::Blackwell),
            _ => Self::ALL.into_iter().find(|generation| generation.classes().channel == number),
        }
    }

    /// The method table of its channel class.
    pub const fn host_methods(self) -> &'static ClassTable {
        match self {
            Self::Ampere | Self::Ada => &host::AMPERE_CHANNEL_GPFIFO_A::TABLE,
            Self::Hopper => &host::HOPPER_CHANNEL_GPFIFO_A::TABLE,
            Self::Blackwell => &host::BLACKWELL_CHANNEL_GPFIFO_B::TABLE,
        }
    }

    /// The method table of its compute class.
    pub const fn compute_methods(self) -> &'static ClassTable {
        match self {
            Self::Ampere => &compute::AMPERE_COMPUTE_B::TABLE,
            Self::Ada => &compute::ADA_COMPUTE_A::TABLE,
            Self::Hopper => &compute::HOPPER_COMPUTE_A::TABLE,
            Self::Blackwell => &compute::BLACKWELL_COMPUTE_B::TABLE,
        }
    }

    /// The method table of its copy class.
    pub const fn copy_methods(self) -> &'static ClassTable {
        match self {
            Self::Ampere | Self::Ada => &copy::AMPERE_DMA_COPY_B::TABLE,
            Self::Hopper => &copy::HOPPER_DMA_COPY_A::TABLE,
            Self::Blackwell => &copy::BLACKWELL_DMA_COPY_B::TABLE,
        }
    }

    /// The launch descriptor that it takes.
    pub const fn qmd_version(self) -> qmd::Version {
        match self {
            Self::Ampere | Self::Ada => qmd::Version::V03_00,
            Self::Hopper => qmd::Version::V04_00,
            Self::Blackwell => qmd::Version::V05_00,
        }
    }

    /// Where the driver's words lie in constant bank 0.
    pub const fn constant_bank(self) -> ConstantBank {
        match self {
            Self::Ampere | Self::Ada => AMPERE_BANK,
            Self::Hopper => ConstantBank {
                memory_descriptor: 0x208,
                constant_window: 0xd0,
                grid_workspace: [0x44, 0x48],
                cluster: Some(ClusterWords {
                    explicit: 0x140,
                    dimensions: 0x144,
                    reciprocals: 0x150,
                    clusters: 0x15c,
                    size: 0x188,
                }),
                parameters: 0x210,
                ..AMPERE_BANK
            },
            Self::Blackwell => ConstantBank {
                block_dimensions: 0x360,
                grid_dimensions: 0x370,
                shared_window: None,
                local_window: 0x2f8,
                stack_top: 0x37c,
                dynamic_shared_bytes: 0x2ac,
                grid_id: None,
                reserved_shared_bytes: 0x16c,
                memory_descriptor: 0x358,
                constant_window: 0x120,
                grid_workspace: [0x254, 0x258],
                cluster: None,
                parameters: 0x380,
            },
        }
    }

    /// What a launch may ask for. Figures: NVIDIA's table of compute capabilities.
    pub const fn limits(self) -> Limits {
        match self {
            Self::Ampere | Self::Ada => AMPERE_LIMITS,
            Self::Hopper => Limits {
                shared_bytes: 227 * 1024,
                shared_configs: &[8, 16, 32, 64, 100, 132, 164, 196, 228],
                ..AMPERE_LIMITS
            },
            Self::Blackwell => AMPERE_LIMITS,
        }
    }

    /// The number in `sm_NN` of the parts that this crate's profiles describe.
    pub const fn sm(self) -> u32 {
        match self {
            Self::Ampere => 86,
            Self::Ada => 89,
            Self::Hopper => 90,
            Self::Blackwell => 120,
        }
    }
}
