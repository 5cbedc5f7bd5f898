//! QMD, the queue metadata: the descriptor of one kernel launch, in the version that each generation takes.
//!
//! [`rows`] holds the bits of each version as NVIDIA's headers give them. [`Qmd`] sets and reads what a launch needs
//! without its caller knowing the version: which row, which unit and which split into words is data in [`Rows`].
//!
//! Hopper takes V04_00 with `QMD_TYPE` `GRID_CTA`; a V03_00 descriptor hangs there without any error (measured on H200).

pub mod rows;

use crate::{Bits, BitsMut, Field, FieldError, Layout};
use rows::{V03_00, V04_00, V05_00};

/// Alignment of a QMD in memory, in bytes: methods and dependence pointers hold its address shifted right by 8.
pub const ALIGNMENT: u64 = 256;
/// Constant buffers of a launch.
pub const CONSTANT_BUFFERS: u32 = 8;

/// The version of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(non_camel_case_types)]
pub enum Version {
    /// Ampere and Ada.
    V03_00,
    /// Hopper.
    V04_00,
    /// Blackwell.
    V05_00,
}

/// An address split over two fields, in a unit of `1 << shift` bytes.
#[derive(Clone, Copy, Debug)]
pub struct Split {
    /// The low bits.
    pub lower: Field,
    /// The bits above them.
    pub upper: Field,
    /// The unit.
    pub shift: u32,
}

impl Split {
    const fn new(lower: Field, upper: Field, shift: u32) -> Self {
        Self { lower, upper, shift }
    }

    fn set(&self, bits: &mut BitsMut<'_>, index: u32, value: u64) -> Result<(), FieldError> {
        let raw = value >> self.shift;
        if raw << self.shift != value {
            return Err(FieldError::Misaligned { field: self.lower.name, value, alignment: 1 << self.shift });
        }
        let width = self.lower.width();
        // The upper half is checked first, so that nothing is changed if it does not fit.
        bits.set_at(&self.upper, index, raw >> width)?;
        bits.set_at(&self.lower, index, raw & ((1 << width) - 1))
    }

    fn get(&self, bits: &Bits<'_>, index: u32) -> Result<u64, FieldError> {
        let raw = bits.get_at(&self.upper, index)? << self.lower.width() | bits.get_at(&self.lower, index)?;
        Ok(raw << self.shift)
    }
}

/// The fields of one release slot.
#[derive(Clone, Copy, Debug)]
pub struct ReleaseRows {
    /// The slot does something.
    pub enable: Field,
    /// Where it writes.
    pub address: Split,
    /// What it writes.
    pub payload: Split,
    /// Four words (payload, then a time at +8), one or two words.
    pub structure_size: Field,
    /// A membar before the write.
    pub membar_type: Field,
    /// A reduction instead of a store.
    pub reduction_enable: Field,
    /// Which one.
    pub reduction_op: Field,
    /// Signed or unsigned.
    pub reduction_format: Field,
    /// An interrupt after the write.
    pub trap_type: Field,
    /// The payload has 64 bits.
    pub payload_64: Field,
}

/// The fields of one dependence slot.
#[derive(Clone, Copy, Debug)]
pub struct DependentRows {
    /// The slot does something.
    pub enable: Field,
    /// Address of the QMD, shifted right by 8. The headers give V03_00's second slot none.
    pub pointer: Option<Field>,
    /// What happens to it.
    pub action: Field,
    /// It is prefetched.
    pub prefetch: Field,
}

impl DependentRows {
    /// The pointer's row with its unit, or that this slot has none.
    fn pointer(&self, slot: u32) -> Result<Field, FieldError> {
        match self.pointer {
            Some(pointer) => Ok(Field { shift: 8, ..pointer }),
            None => Err(FieldError::Index { field: "DEPENDENT_QMD_POINTER", index: slot, count: 1 }),
        }
    }
}

/// Which row of a version means what.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Rows {
    pub layout: Layout,
    pub major: Field,
    pub minor: Field,
    pub qmd_type: Option<Field>,
    pub dependence_counter: Field,
    pub require_scheduling_pcas: Field,
    /// CTAs of a cluster along each axis.
    pub cluster: Option<[Field; 3]>,
    pub group_id: Field,
    pub grid: [Field; 3],
    pub block: [Field; 3],
    pub program: Split,
    pub prefetch: Split,
    pub prefetch_size: Field,
    pub registers: Field,
    pub barriers: Field,
    pub shared_memory: Field,
    pub shared_memory_shift: u32,
    pub shared_config: [Field; 3],
    pub local_low: Field,
    pub local_high: Field,
    pub local_shift: u32,
    pub constant_valid: Field,
    pub constant_invalidate: Field,
    pub constant_address: Split,
    /// In units of 16 bytes.
    pub constant_size: Field,
    pub sass_version: Field,
    pub sampler_index: Field,
    pub call_limit: Field,
    pub membar: Field,
    pub invalidate_texture_header: Field,
    pub invalidate_texture_sampler: Field,
    pub invalidate_texture_data: Field,
    pub invalidate_shader_data: Field,
    pub releases: &'static [ReleaseRows],
    pub dependents: [DependentRows; 2],
}

impl Rows {
    /// A constant bank, if it is valid.
    fn constant_buffer(&self, bits: &Bits<'_>, index: u32) -> Result<Option<ConstantBuffer>, FieldError> {
        if bits.get_at(&self.constant_valid, index)? == 0 {
            return Ok(None);
        }
        Ok(Some(ConstantBuffer {
            address: self.constant_address.get(bits, index)?,
            bytes: bits.get_at(&self.constant_size, index)? * 16,
        }))
    }
}

macro_rules! release_v3 {
    ($enable:ident $lower:ident $upper:ident $payload_lower:ident $payload_upper:ident $size:ident $membar:ident
     $reduce:ident $op:ident $format:ident $trap:ident $wide:ident) => {
        ReleaseRows {
            enable: V03_00::$enable,
            address: Split::new(V03_00::$lower, V03_00::$upper, 0),
            payload: Split::new(V03_00::$payload_lower, V03_00::$payload_upper, 0),
            structure_size: V03_00::$size,
            membar_type: V03_00::$membar,
            reduction_enable: V03_00::$reduce,
            reduction_op: V03_00::$op,
            reduction_format: V03_00::$format,
            trap_type: V03_00::$trap,
            payload_64: V03_00::$wide,
        }
    };
}

/// From V04_00 on the slots' control bits are arrays and the addresses single fields.
macro_rules! release {
    ($version:ident $index:literal $lower:ident $upper:ident $payload_lower:ident $payload_upper:ident) => {
        ReleaseRows {
            enable: $version::RELEASE_ENABLE.element($index),
            address: Split::new($version::$lower, $version::$upper, 0),
            payload: Split::new($version::$payload_lower, $version::$payload_upper, 0),
            structure_size: $version::RELEASE_STRUCTURE_SIZE.element($index),
            membar_type: $version::RELEASE_MEMBAR_TYPE.element($index),
            reduction_enable: $version::RELEASE_REDUCTION_ENABLE.element($index),
            reduction_op: $version::RELEASE_REDUCTION_OP.element($index),
            reduction_format: $version::RELEASE_REDUCTION_FORMAT.element($index),
            trap_type: $version::RELEASE_TRAP_TYPE.element($index),
            payload_64: $version::RELEASE_PAYLOAD64B.element($index),
        }
    };
}

macro_rules! releases {
    ($version:ident) => {
        &[
            release!($version 0 RELEASE_SEMAPHORE0_ADDR_LOWER RELEASE_SEMAPHORE0_ADDR_UPPER
                RELEASE_SEMAPHORE0_PAYLOAD_LOWER RELEASE_SEMAPHORE0_PAYLOAD_UPPER),
            release!($version 1 RELEASE_SEMAPHORE1_ADDR_LOWER RELEASE_SEMAPHORE1_ADDR_UPPER
                RELEASE_SEMAPHORE1_PAYLOAD_LOWER RELEASE_SEMAPHORE1_PAYLOAD_UPPER),
            release!($version 2 RELEASE_SEMAPHORE2_ADDR_LOWER RELEASE_SEMAPHORE2_ADDR_UPPER
                RELEASE_SEMAPHORE2_PAYLOAD_LOWER RELEASE_SEMAPHORE2_PAYLOAD_UPPER),
        ]
    };
}

macro_rules! rows {
    ($version:ident { $($field:ident: $value:expr),* $(,)? }) => {
        Rows {
            dependence_counter: $version::DEPENDENCE_COUNTER,
            require_scheduling_pcas: $version::REQUIRE_SCHEDULING_PCAS,
            layout: $version::LAYOUT,
            major: $version::QMD_MAJOR_VERSION,
            group_id: $version::QMD_GROUP_ID,
            block: [$version::CTA_THREAD_DIMENSION0, $version::CTA_THREAD_DIMENSION1, $version::CTA_THREAD_DIMENSION2],
            prefetch: Split::new(
                $version::PROGRAM_PREFETCH_ADDR_LOWER_SHIFTED,
                $version::PROGRAM_PREFETCH_ADDR_UPPER_SHIFTED,
                8,
            ),
            prefetch_size: $version::PROGRAM_PREFETCH_SIZE,
            barriers: $version::BARRIER_COUNT,
            shared_config: [
                $version::MIN_SM_CONFIG_SHARED_MEM_SIZE,
                $version::MAX_SM_CONFIG_SHARED_MEM_SIZE,
                $version::TARGET_SM_CONFIG_SHARED_MEM_SIZE,
            ],
            constant_valid: $version::CONSTANT_BUFFER_VALID,
            constant_invalidate: $version::CONSTANT_BUFFER_INVALIDATE,
            constant_size: $version::CONSTANT_BUFFER_SIZE_SHIFTED4,
            sass_version: $version::SASS_VERSION,
            sampler_index: $version::SAMPLER_INDEX,
            call_limit: $version::API_VISIBLE_CALL_LIMIT,
            membar: $version::CWD_MEMBAR_TYPE,
            invalidate_texture_header: $version::INVALIDATE_TEXTURE_HEADER_CACHE,
            invalidate_texture_sampler: $version::INVALIDATE_TEXTURE_SAMPLER_CACHE,
            invalidate_texture_data: $version::INVALIDATE_TEXTURE_DATA_CACHE,
            invalidate_shader_data: $version::INVALIDATE_SHADER_DATA_CACHE,
            $($field: $value),*
        }
    };
}

/// From V04_00 on the control bits are arrays, and both slots have a pointer.
macro_rules! dependents {
    ($version:ident) => {
        [
            DependentRows {
                enable: $version::DEPENDENT_QMD_ENABLE.element(0),
                pointer: Some($version::DEPENDENT_QMD0_POINTER),
                action: $version::DEPENDENT_QMD_ACTION.element(0),
                prefetch: $version::DEPENDENT_QMD_PREFETCH.element(0),
            },
            DependentRows {
                enable: $version::DEPENDENT_QMD_ENABLE.element(1),
                pointer: Some($version::DEPENDENT_QMD1_POINTER),
                action: $version::DEPENDENT_QMD_ACTION.element(1),
                prefetch: $version::DEPENDENT_QMD_PREFETCH.element(1),
            },
        ]
    };
}

static ROWS_V03_00: Rows = rows!(V03_00 {
    minor: V03_00::QMD_VERSION,
    qmd_type: None,
    cluster: None,
    grid: [V03_00::CTA_RASTER_WIDTH, V03_00::CTA_RASTER_HEIGHT, V03_00::CTA_RASTER_DEPTH],
    program: Split::new(V03_00::PROGRAM_ADDRESS_LOWER, V03_00::PROGRAM_ADDRESS_UPPER, 0),
    registers: V03_00::REGISTER_COUNT_V,
    shared_memory: V03_00::SHARED_MEMORY_SIZE,
    shared_memory_shift: 0,
    local_low: V03_00::SHADER_LOCAL_MEMORY_LOW_SIZE,
    local_high: V03_00::SHADER_LOCAL_MEMORY_HIGH_SIZE,
    local_shift: 0,
    constant_address: Split::new(V03_00::CONSTANT_BUFFER_ADDR_LOWER, V03_00::CONSTANT_BUFFER_ADDR_UPPER, 0),
    releases: &[
        release_v3!(RELEASE0_ENABLE RELEASE0_ADDRESS_LOWER RELEASE0_ADDRESS_UPPER RELEASE0_PAYLOAD_LOWER
            RELEASE0_PAYLOAD_UPPER RELEASE0_STRUCTURE_SIZE RELEASE0_MEMBAR_TYPE RELEASE0_REDUCTION_ENABLE
            RELEASE0_REDUCTION_OP RELEASE0_REDUCTION_FORMAT RELEASE0_TRAP_TYPE RELEASE0_PAYLOAD64B),
        release_v3!(RELEASE1_ENABLE RELEASE1_ADDRESS_LOWER RELEASE1_ADDRESS_UPPER RELEASE1_PAYLOAD_LOWER
            RELEASE1_PAYLOAD_UPPER RELEASE1_STRUCTURE_SIZE RELEASE1_MEMBAR_TYPE RELEASE1_REDUCTION_ENABLE
            RELEASE1_REDUCTION_OP RELEASE1_REDUCTION_FORMAT RELEASE1_TRAP_TYPE RELEASE1_PAYLOAD64B),
        release_v3!(RELEASE2_ENABLE RELEASE2_ADDRESS_LOWER RELEASE2_ADDRESS_UPPER RELEASE2_PAYLOAD_LOWER
            RELEASE2_PAYLOAD_UPPER RELEASE2_STRUCTURE_SIZE RELEASE2_MEMBAR_TYPE RELEASE2_REDUCTION_ENABLE
            RELEASE2_REDUCTION_OP RELEASE2_REDUCTION_FORMAT RELEASE2_TRAP_TYPE RELEASE2_PAYLOAD64B),
    ],
    dependents: [
        DependentRows {
            enable: V03_00::DEPENDENT_QMD0_ENABLE,
            pointer: Some(V03_00::DEPENDENT_QMD0_POINTER),
            action: V03_00::DEPENDENT_QMD0_ACTION,
            prefetch: V03_00::DEPENDENT_QMD0_PREFETCH,
        },
        DependentRows {
            enable: V03_00::DEPENDENT_QMD1_ENABLE,
            pointer: None,
            action: V03_00::DEPENDENT_QMD1_ACTION,
            prefetch: V03_00::DEPENDENT_QMD1_PREFETCH,
        },
    ],
});

static ROWS_V04_00: Rows = rows!(V04_00 {
    minor: V04_00::QMD_MINOR_VERSION,
    qmd_type: Some(V04_00::QMD_TYPE),
    cluster: Some([V04_00::GPC_CGA_WIDTH, V04_00::GPC_CGA_HEIGHT, V04_00::GPC_CGA_DEPTH]),
    grid: [V04_00::GRID_WIDTH, V04_00::GRID_HEIGHT, V04_00::GRID_DEPTH],
    program: Split::new(V04_00::PROGRAM_ADDRESS_LOWER, V04_00::PROGRAM_ADDRESS_UPPER, 0),
    registers: V04_00::REGISTER_COUNT,
    shared_memory: V04_00::SHARED_MEMORY_SIZE,
    shared_memory_shift: 0,
    local_low: V04_00::SHADER_LOCAL_MEMORY_LOW_SIZE,
    local_high: V04_00::SHADER_LOCAL_MEMORY_HIGH_SIZE,
    local_shift: 0,
    constant_address: Split::new(
        V04_00::CONSTANT_BUFFER_ADDR_LOWER_SHIFTED6,
        V04_00::CONSTANT_BUFFER_ADDR_UPPER_SHIFTED6,
        6,
    ),
    releases: releases!(V04_00),
    dependents: dependents!(V04_00),
});

static ROWS_V05_00: Rows = rows!(V05_00 {
    minor: V05_00::QMD_MINOR_VERSION,
    qmd_type: Some(V05_00::QMD_TYPE),
    cluster: Some([V05_00::GPC_CGA_WIDTH, V05_00::GPC_CGA_HEIGHT, V05_00::GPC_CGA_DEPTH]),
    grid: [V05_00::GRID_WIDTH, V05_00::GRID_HEIGHT, V05_00::GRID_DEPTH],
    program: Split::new(V05_00::PROGRAM_ADDRESS_LOWER_SHIFTED4, V05_00::PROGRAM_ADDRESS_UPPER_SHIFTED4, 4),
    registers: V05_00::REGISTER_COUNT,
    shared_memory: V05_00::SHARED_MEMORY_SIZE_SHIFTED7,
    shared_memory_shift: 7,
    local_low: V05_00::SHADER_LOCAL_MEMORY_LOW_SIZE_SHIFTED4,
    local_high: V05_00::SHADER_LOCAL_MEMORY_HIGH_SIZE_SHIFTED4,
    local_shift: 4,
    constant_address: Split::new(
        V05_00::CONSTANT_BUFFER_ADDR_LOWER_SHIFTED6,
        V05_00::CONSTANT_BUFFER_ADDR_UPPER_SHIFTED6,
        6,
    ),
    releases: releases!(V05_00),
    dependents: dependents!(V05_00),
});

impl Version {
    /// Every version that this crate knows.
    pub const ALL: [Self; 3] = [Self::V03_00, Self::V04_00, Self::V05_00];

    /// Which row means what.
    pub const fn rows(self) -> &'static Rows {
        match self {
            Self::V03_00 => &ROWS_V03_00,
            Self::V04_00 => &ROWS_V04_00,
            Self::V05_00 => &ROWS_V05_00,
        }
    }

    /// Bytes of a descriptor.
    pub const fn bytes(self) -> usize {
        self.rows().layout.bytes()
    }

    /// The value of `QMD_MAJOR_VERSION`.
    pub const fn major(self) -> u64 {
        match self {
            Self::V03_00 => 3,
            Self::V04_00 => 4,
            Self::V05_00 => 5,
        }
    }
}

/// Sizes of a semaphore that a release slot writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StructureSize {
    /// Payload, then the time in nanoseconds at +8.
    FourWords,
    /// A payload of 32 bits.
    OneWord,
    /// A payload of 64 bits.
    TwoWords,
}

/// One semaphore release of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Release {
    /// Where.
    pub address: u64,
    /// What; the upper half counts only where `payload_64` is set or the size is two words.
    pub payload: u64,
    /// How much is written.
    pub structure_size: StructureSize,
    /// The payload has 64 bits.
    pub payload_64: bool,
    /// A system membar before the write.
    pub membar: bool,
    /// A reduction in place of a store: the operation's number (0 add, 1 min, 2 max, 3 inc, 4 dec, 5 and, 6 or, 7 xor)
    /// and whether it is signed.
    pub reduction: Option<(u8, bool)>,
    /// An interrupt after the write: 0 none, 1 always, 2 and 3 on a condition.
    pub trap_type: u8,
}

/// A descriptor that is started or changed when this one completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dependent {
    /// Its address, a multiple of 256 below 2^40.
    pub address: u64,
    /// What happens to it: 0 increment put, 1 schedule, 3 invalidate, copy and schedule, 4 decrement dependence.
    pub action: u8,
    /// It is prefetched.
    pub prefetch: bool,
}

/// One constant bank of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConstantBuffer {
    /// Address, in the version's unit.
    pub address: u64,
    /// Size in bytes.
    pub bytes: u64,
}

/// What a descriptor asks for, in any version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// `QMD_TYPE`; `None` in versions without it.
    pub qmd_type: Option<u8>,
    /// `DEPENDENCE_COUNTER`: how often other grids must decrement it before this one starts.
    pub dependence_counter: u32,
    /// `REQUIRE_SCHEDULING_PCAS`: the descriptor does not start when its last word was loaded inline, but when it is
    /// scheduled.
    pub require_scheduling_pcas: bool,
    /// CTAs; clusters where `QMD_TYPE` is `GRID_GPC_CGA` (measured on H200).
    pub grid: [u32; 3],
    /// CTAs of a cluster, where that is the type.
    pub cluster: Option<[u32; 3]>,
    /// Threads of a CTA.
    pub block: [u32; 3],
    /// Address of the first instruction.
    pub program_address: u64,
    /// Registers of a thread.
    pub registers: u32,
    /// Named barriers.
    pub barriers: u32,
    /// Shared memory of a CTA in bytes.
    pub shared_bytes: u32,
    /// Local memory of a thread in bytes: the low size.
    pub local_low_bytes: u32,
    /// Local memory of a thread in bytes: the high size.
    pub local_high_bytes: u32,
    /// A texture's sampler has the index of its header: `SAMPLER_INDEX` is `VIA_HEADER_INDEX`.
    pub sampler_by_header: bool,
    /// Constant banks that are valid.
    pub constant_buffers: [Option<ConstantBuffer>; CONSTANT_BUFFERS as usize],
    /// Semaphores written on completion, in slot order.
    pub releases: Vec<Release>,
    /// Descriptors that depend on this one, in slot order.
    pub dependents: Vec<Dependent>,
}

/// Why a descriptor in memory cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The buffer is too short.
    #[error("QMD: {0}")]
    Field(#[from] FieldError),
    /// The version fields say another version.
    #[error("QMD of version {major:02}_{minor:02} where {expected:?} is taken")]
    Version {
        /// `QMD_MAJOR_VERSION`.
        major: u64,
        /// The minor version.
        minor: u64,
        /// What the class takes.
        expected: Version,
    },
    /// A release slot has a structure size without a meaning.
    #[error("QMD: {field} {value} is no structure size")]
    StructureSize {
        /// The field.
        field: &'static str,
        /// Its value.
        value: u64,
    },
}

/// A descriptor being built: its bytes, with setters that refuse what does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qmd {
    version: Version,
    bytes: Vec<u8>,
}

impl Qmd {
    /// A descriptor of zeroes but for its version and, where there is one, its type `GRID_CTA`.
    pub fn new(version: Version) -> Self {
        let rows = version.rows();
        let mut qmd = Self { version, bytes: vec![0; version.bytes()] };
        let mut bits = BitsMut::new(&mut qmd.bytes);
        // These values fit their rows: the test `a_new_descriptor_says_its_version` holds for every version.
        let _ = bits.set(&rows.major, version.major());
        if let Some(qmd_type) = &rows.qmd_type {
            let _ = bits.set(qmd_type, V04_00::QMD_TYPE::GRID_CTA);
        }
        qmd
    }

    /// The version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The bytes, as they go to memory.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Sets any row of the version by itself.
    pub fn set(&mut self, field: &Field, value: u64) -> Result<(), FieldError> {
        BitsMut::new(&mut self.bytes).set(field, value)
    }

    /// Reads any row of the version.
    pub fn get(&self, field: &Field) -> Result<u64, FieldError> {
        Bits::new(&self.bytes).get(field)
    }

    fn bits(&mut self) -> (&'static Rows, BitsMut<'_>) {
        (self.version.rows(), BitsMut::new(&mut self.bytes))
    }

    /// The number of CTAs, or of clusters after [`Qmd::set_cluster`].
    pub fn set_grid(&mut self, grid: [u32; 3]) -> Result<(), FieldError> {
        let (rows, mut bits) = self.bits();
        rows.grid.iter().zip(grid).try_for_each(|(field, value)| bits.set(field, value.into()))
    }

    /// The number of CTAs of a cluster, which makes this a launch of clusters, and its grid one of clusters. Versions without them refuse it.
    pub fn set_cluster(&mut self, cluster: [u32; 3]) -> Result<(), FieldError> {
        let (rows, mut bits) = self.bits();
        let (Some(fields), Some(qmd_type)) = (&rows.cluster, &rows.qmd_type) else {
            return Err(FieldError::Index { field: "GPC_CGA_WIDTH", index: 0, count: 0 });
        };
        bits.set(qmd_type, V04_00::QMD_TYPE::GRID_GPC_CGA)?;
        fields.iter().zip(cluster).try_for_each(|(field, value)| bits.set(field, value.into()))
    }

    /// The number of threads of a CTA.
    pub fn set_block(&mut self, block: [u32; 3]) -> Result<(), FieldError> {
        let (rows, mut bits) = self.bits();
        rows.block.iter().zip(block).try_for_each(|(field, value)| bits.set(field, value.into()))
    }

    /// Where the program lies, and how many bytes of it to prefetch.
    pub fn set_program(&mut self, address: u64, prefetch_bytes: u64) -> Result<(), FieldError> {
        let (rows, mut bits) = self.bits();
        rows.program.set(&mut bits, 0, address)?;
        rows.prefetch.set(&mut bits, 0, address & !0xff)?;
        bits.set(&rows.prefetch_size, (prefetch_bytes >> 8).min(rows.prefetch_size.max()))
    }

    /// Registers of a thread.
    pub fn set_registers(&mut self, registers: u32) -> Result<(), FieldError> {
        let (rows, mut bits) = self.bits();
        bits.set(&rows.registers, registers.into())
    }

    /// Named barriers.
    pub fn set_barriers(&mut self, barriers: u32) -> Result<(), FieldError> {
        let (rows, mut bits) = self.bits();
        bits.set(&rows.barriers, barriers.into())
    }

    /// Shared memory of a CTA in bytes, and the SM's carve-out codes: least, most, wanted.
    pub fn set_shared_memory(&mut self, bytes: u32, config: [u32; 3]) -> Result<(), FieldError> {
        let (rows, mut bits) = self.bits();
        let shifted = Field { shift: rows.shared_memory_shift, ..rows.shared_memory };
        bits.set(&shifted, bytes.into())?;
        rows.shared_config.iter().zip(config).try_for_each(|(field, value)| bits.set(field, value.into()))
    }

    /// Local memory of a thread in bytes (the high size, as compilers' code uses it).
    pub fn set_local_memory(&mut self, bytes: u32) -> Result<(), FieldError> {
        let (rows, mut bits) = self.bits();
        bits.set(&Field { shift: rows.local_shift, ..rows.local_high }, bytes.into())
    }

    /// One constant bank, valid and invalidated in the cache. The size is in bytes and rounded up to 16.
    pub fn set_constant_buffer(&mut self, index: u32, buffer: ConstantBuffer) -> Result<(), FieldError> {
        let (rows, mut bits) = self.bits();
        rows.constant_address.set(&mut bits, index, buffer.address)?;
        bits.set_at(&rows.constant_size, index, buffer.bytes.div_ceil(16))?;
        bits.set_at(&rows.constant_valid, index, 1)?;
        bits.set_at(&rows.constant_invalidate, index, 1)
    }

    /// One release slot, 0 to 2; `None` switches it off.
    pub fn set_release(&mut self, slot: u32, release: Option<Release>) -> Result<(), FieldError> {
        let (rows, mut bits) = self.bits();
        let count = rows.releases.len() as u32;
        let Some(row) = rows.releases.get(slot as usize) else {
            return Err(FieldError::Index { field: "RELEASE", index: slot, count });
        };
        let Some(release) = release else { return bits.set(&row.enable, 0) };
        row.address.set(&mut bits, 0, release.address)?;
        row.payload.set(&mut bits, 0, release.payload)?;
        let size = match release.structure_size {
            StructureSize::FourWords => V04_00::RELEASE_STRUCTURE_SIZE::SEMAPHORE_FOUR_WORDS,
            StructureSize::OneWord => V04_00::RELEASE_STRUCTURE_SIZE::SEMAPHORE_ONE_WORD,
            StructureSize::TwoWords => V04_00::RELEASE_STRUCTURE_SIZE::SEMAPHORE_TWO_WORDS,
        };
        bits.set(&row.structure_size, size)?;
        bits.set(&row.payload_64, release.payload_64.into())?;
        bits.set(&row.membar_type, release.membar.into())?;
        let (op, signed) = release.reduction.unwrap_or_default();
        bits.set(&row.reduction_enable, release.reduction.is_some().into())?;
        bits.set(&row.reduction_op, op.into())?;
        bits.set(&row.reduction_format, signed.into())?;
        bits.set(&row.trap_type, release.trap_type.into())?;
        bits.set(&row.enable, 1)
    }

    /// One dependence slot, 0 or 1; `None` switches it off.
    pub fn set_dependent(&mut self, slot: u32, dependent: Option<Dependent>) -> Result<(), FieldError> {
        let (rows, mut bits) = self.bits();
        let Some(row) = rows.dependents.get(slot as usize) else {
            return Err(FieldError::Index { field: "DEPENDENT_QMD", index: slot, count: 2 });
        };
        let Some(dependent) = dependent else { return bits.set(&row.enable, 0) };
        bits.set(&row.pointer(slot)?, dependent.address)?;
        bits.set(&row.action, dependent.action.into())?;
        bits.set(&row.prefetch, dependent.prefetch.into())?;
        bits.set(&row.enable, 1)
    }
}

/// The rows of a version and the bits of a descriptor, which must say that it is of this version.
fn open(version: Version, bytes: &[u8]) -> Result<(&'static Rows, Bits<'_>), ReadError> {
    let rows = version.rows();
    let bits = Bits::new(bytes);
    let (major, minor) = (bits.get(&rows.major)?, bits.get(&rows.minor)?);
    if major != version.major() || minor != 0 {
        return Err(ReadError::Version { major, minor, expected: version });
    }
    Ok((rows, bits))
}

/// Where a descriptor points to: what one must know to follow launches, and no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Links {
    /// Constant bank 0.
    pub bank: Option<ConstantBuffer>,
    /// Addresses and payloads of the releases.
    pub releases: Vec<(u64, u64)>,
    /// Addresses of the dependents.
    pub dependents: Vec<u64>,
}

/// Reads where a descriptor points to: a small part of what [`read`] reads, in a small part of its time.
///
/// # Errors
/// The descriptor is shorter than `version`, or says that it is of another one.
pub fn links(version: Version, bytes: &[u8]) -> Result<Links, ReadError> {
    let (rows, bits) = open(version, bytes)?;
    let mut links =
        Links { bank: rows.constant_buffer(&bits, 0)?, releases: Vec::new(), dependents: Vec::new() };
    for row in rows.releases {
        if bits.get(&row.enable)? != 0 {
            links.releases.push((row.address.get(&bits, 0)?, row.payload.get(&bits, 0)?));
        }
    }
    for (slot, row) in (0..).zip(&rows.dependents) {
        if bits.get(&row.enable)? != 0 {
            links.dependents.push(bits.get(&row.pointer(slot)?)?);
        }
    }
    Ok(links)
}

/// Reads a descriptor from memory as `version`, which must be what it says it is.
pub fn read(version: Version, bytes: &[u8]) -> Result<Launch, ReadError> {
    let (rows, bits) = open(version, bytes)?;
    let number = |field: &Field| bits.get(field).map(|value| value as u32);
    let mut constant_buffers = [None; CONSTANT_BUFFERS as usize];
    for (index, buffer) in (0..).zip(&mut constant_buffers) {
        *buffer = rows.constant_buffer(&bits, index)?;
    }
    let mut releases = Vec::new();
    for row in rows.releases {
        if bits.get(&row.enable)? == 0 {
            continue;
        }
        let structure_size = match bits.get(&row.structure_size)? {
            V04_00::RELEASE_STRUCTURE_SIZE::SEMAPHORE_FOUR_WORDS => StructureSize::FourWords,
            V04_00::RELEASE_STRUCTURE_SIZE::SEMAPHORE_ONE_WORD => StructureSize::OneWord,
            V04_00::RELEASE_STRUCTURE_SIZE::SEMAPHORE_TWO_WORDS => StructureSize::TwoWords,
            value => return Err(ReadError::StructureSize { field: row.structure_size.name, value }),
        };
        let reduction = match bits.get(&row.reduction_enable)? {
            0 => None,
            _ => Some((bits.get(&row.reduction_op)? as u8, bits.get(&row.reduction_format)? != 0)),
        };
        releases.push(Release {
            address: row.address.get(&bits, 0)?,
            payload: row.payload.get(&bits, 0)?,
            structure_size,
            payload_64: bits.get(&row.payload_64)? != 0,
            membar: bits.get(&row.membar_type)? != 0,
            reduction,
            trap_type: bits.get(&row.trap_type)? as u8,
        });
    }
    let mut dependents = Vec::new();
    for (slot, row) in (0..).zip(&rows.dependents) {
        if bits.get(&row.enable)? != 0 {
            dependents.push(Dependent {
                address: bits.get(&row.pointer(slot)?)?,
                action: bits.get(&row.action)? as u8,
                prefetch: bits.get(&row.prefetch)? != 0,
            });
        }
    }
    let qmd_type = rows.qmd_type.as_ref().map(|field| bits.get(field)).transpose()?.map(|value| value as u8);
    let cluster = match &rows.cluster {
        Some([x, y, z]) if qmd_type.map(u64::from) == Some(V04_00::QMD_TYPE::GRID_GPC_CGA) => {
            Some([number(x)?, number(y)?, number(z)?])
        }
        _ => None,
    };
    Ok(Launch {
        qmd_type,
        dependence_counter: number(&rows.dependence_counter)?,
        require_scheduling_pcas: bits.get(&rows.require_scheduling_pcas)? != 0,
        cluster,
        grid: [number(&rows.grid[0])?, number(&rows.grid[1])?, number(&rows.grid[2])?],
        block: [number(&rows.block[0])?, number(&rows.block[1])?, number(&rows.block[2])?],
        program_address: rows.program.get(&bits, 0)?,
        registers: number(&rows.registers)?,
        barriers: number(&rows.barriers)?,
        shared_bytes: number(&rows.shared_memory)? << rows.shared_memory_shift,
        local_low_bytes: number(&rows.local_low)? << rows.local_shift,
        local_high_bytes: number(&rows.local_high)? << rows.local_shift,
        sampler_by_header: bits.get(&rows.sampler_index)? != 0,
        constant_buffers,
        releases,
        dependents,
    })
}

/// Replaces every address that a descriptor holds (program, constant banks, releases, dependents) by what `map` makes of
/// it. A descriptor that is refused is left as it is.
pub fn relocate(
    version: Version,
    bytes: &mut [u8],
    mut map: impl FnMut(u64) -> u64,
) -> Result<(), RelocateError> {
    read(version, bytes)?;
    let rows = version.rows();
    let mut moved = bytes.to_vec();
    let old = Bits::new(bytes);
    let mut new = BitsMut::new(&mut moved);
    for split in [&rows.program, &rows.prefetch] {
        split.set(&mut new, 0, map(split.get(&old, 0)?))?;
    }
    for index in 0..CONSTANT_BUFFERS {
        if old.get_at(&rows.constant_valid, index)? != 0 {
            let address = rows.constant_address.get(&old, index)?;
            rows.constant_address.set(&mut new, index, map(address))?;
        }
    }
    for row in rows.releases {
        if old.get(&row.enable)? != 0 {
            row.address.set(&mut new, 0, map(row.address.get(&old, 0)?))?;
        }
    }
    for (slot, row) in (0..).zip(&rows.dependents) {
        if old.get(&row.enable)? != 0 {
            let pointer = row.pointer(slot)?;
            new.set(&pointer, map(old.get(&pointer)?))?;
        }
    }
    bytes.copy_from_slice(&moved);
    Ok(())
}

/// Why a descriptor cannot be relocated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RelocateError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A new address does not fit its field.
    #[error("QMD: {0}")]
    Field(#[from] FieldError),
}
