//! Semaphore operations: what acquires accept, what reductions compute, what a release writes (dev_pbdma; the
//! comparisons and widths were measured on H200).

use nv_abi::host::AMPERE_CHANNEL_GPFIFO_A::{SEM_EXECUTE, SEMAPHORED};

use super::clock;
use crate::memory::{AddressMap, MmuFault};

/// Bits of a payload that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 32.
    Word,
    /// 64.
    Long,
}

impl Width {
    /// Bytes of a payload, and the alignment of its semaphore.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Word => 4,
            Self::Long => 8,
        }
    }
}

/// When an acquire goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquire {
    /// Memory equals the payload.
    Equal,
    /// Memory is not below the payload, unsigned.
    StrictGreaterOrEqual,
    /// Memory minus payload is not negative at the payload's width.
    CircularGreaterOrEqual,
    /// Memory and payload have a common bit.
    /// And.
    And,
    /// Some bit is set in neither.
    Nor,
}

impl Acquire {
    /// Whether `memory` satisfies it.
    pub fn passes(self, width: Width, memory: u64, payload: u64) -> bool {
        let mask = if width == Width::Word { u64::from(u32::MAX) } else { u64::MAX };
        let (memory, payload) = (memory & mask, payload & mask);
        match self {
            Self::Equal => memory == payload,
            Self::StrictGreaterOrEqual => memory >= payload,
            Self::CircularGreaterOrEqual => match width {
                Width::Word => (memory as u32).wrapping_sub(payload as u32) as i32 >= 0,
                Width::Long => memory.wrapping_sub(payload) as i64 >= 0,
            },
            Self::And => memory & payload != 0,
            Self::Nor => !(memory | payload) & mask != 0,
        }
    }
}

/// What a reduction does with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// The lesser.
    Min,
    /// The greater.
    Max,
    /// Exclusive or.
    Xor,
    /// And.
    And,
    /// Or.
    Or,
    /// The sum.
    Add,
    /// One more, and zero from the payload on.
    Inc,
    /// One less, and the payload from zero or above it.
    Dec,
}

impl Reduction {
    /// By the number that SEM_EXECUTE, SEMAPHORED and the copy engine use; `None` for floating point and reserved.
    pub fn from_host(number: u64) -> Option<Self> {
        use SEM_EXECUTE::REDUCTION;
        // The legacy method numbers its operations alike.
        const _: () = assert!(
            SEMAPHORED::REDUCTION::MIN == REDUCTION::IMIN && SEMAPHORED::REDUCTION::DEC == REDUCTION::DEC
        );
        Some(match number {
            REDUCTION::IMIN => Self::Min,
            REDUCTION::IMAX => Self::Max,
            REDUCTION::IXOR => Self::Xor,
            REDUCTION::IAND => Self::And,
            REDUCTION::IOR => Self::Or,
            REDUCTION::IADD => Self::Add,
            REDUCTION::INC => Self::Inc,
            REDUCTION::DEC => Self::Dec,
            _ => return None,
        })
    }

    /// By the number that compute methods and QMDs use.
    pub fn from_graphics(number: u64) -> Option<Self> {
        use nv_abi::compute::AMPERE_COMPUTE_B::REPORT_SEMAPHORE_EXECUTE::REDUCTION_OP as OP;
        Some(match number {
            OP::RED_ADD => Self::Add,
            OP::RED_MIN => Self::Min,
            OP::RED_MAX => Self::Max,
            OP::RED_INC => Self::Inc,
            OP::RED_DEC => Self::Dec,
            OP::RED_AND => Self::And,
            OP::RED_OR => Self::Or,
            OP::RED_XOR => Self::Xor,
            _ => return None,
        })
    }

    /// Whether hardware has this operation at this width and format.
    pub fn is_legal(self, width: Width, signed: bool) -> bool {
        match self {
            Self::Min | Self::Max | Self::Xor | Self::And | Self::Or => true,
            Self::Add => width == Width::Word || !signed,
            Self::Inc | Self::Dec => width == Width::Word && !signed,
        }
    }

    /// What memory becomes at 64 bits.
    pub fn long(self, signed: bool, memory: u64, payload: u64) -> u64 {
        match self {
            Self::Min if signed => (memory as i64).min(payload as i64) as u64,
            Self::Max if signed => (memory as i64).max(payload as i64) as u64,
            Self::Min => memory.min(payload),
            Self::Max => memory.max(payload),
            Self::Xor => memory ^ payload,
            Self::And => memory & payload,
            Self::Or => memory | payload,
            Self::Add => memory.wrapping_add(payload),
            Self::Inc if memory >= payload => 0,
            Self::Inc => memory + 1,
            Self::Dec if memory == 0 || memory > payload => payload,
            Self::Dec => memory - 1,
        }
    }

    /// What memory becomes at 32 bits: the low half of what its extension becomes at 64.
    pub fn word(self, signed: bool, memory: u32, payload: u32) -> u32 {
        let extend = |word: u32| if signed { word as i32 as u64 } else { word.into() };
        self.long(signed, extend(memory), extend(payload)) as u32
    }

    /// Applies it to memory in one step.
    fn apply(
        self,
        map: &AddressMap,
        address: u64,
        width: Width,
        signed: bool,
        payload: u64,
    ) -> Result<(), SemaphoreError> {
        let before = match width {
            Width::Word => {
                map.update_u32(address, |memory| self.word(signed, memory, payload as u32))?.map(u64::from)
            }
            Width::Long => map.update_u64(address, |memory| self.long(signed, memory, payload))?,
        };
        let misaligned = SemaphoreError::Misaligned { address, alignment: width.bytes() };
        before.map(|_| ()).ok_or(misaligned)
    }
}

/// A release: the host's, an engine's or a QMD slot's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// GPU virtual address.
    pub address: u64,
    /// The value; the upper half counts for [`Width::Long`] only.
    pub payload: u64,
    /// Width of the payload.
    pub width: Width,
    /// Sixteen bytes: the time goes to +8, and a payload of 32 bits is written zero-extended.
    pub timestamp: bool,
    /// A reduction in place of the store, and whether it is signed.
    pub reduction: Option<(Reduction, bool)>,
}

/// Why a semaphore operation was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SemaphoreError {
    /// The address is not a multiple of what the operation needs.
    #[error("the semaphore at {address:#x} is not aligned to {alignment} bytes")]
    Misaligned {
        /// GPU virtual address.
        address: u64,
        /// Bytes.
        alignment: u64,
    },
    /// Hardware has no such reduction at this width and format.
    #[error(
        "hardware has no {} reduction {reduction:?} of {} bits",
        if *signed { "signed" } else { "unsigned" },
        8 * width.bytes()
    )]
    Reduction {
        /// The reduction.
        reduction: Reduction,
        /// Whether of signed numbers.
        signed: bool,
        /// Of that width.
        width: Width,
    },
    /// The MMU refused.
    #[error(transparent)]
    Mmu(#[from] MmuFault),
}

fn check_alignment(address: u64, alignment: u64) -> Result<(), SemaphoreError> {
    if address.is_multiple_of(alignment) {
        Ok(())
    } else {
        Err(SemaphoreError::Misaligned { address, alignment })
    }
}

impl Release {
    /// Does it. The time is written before the payload, so that who sees the payload sees a valid time.
    pub fn perform(&self, map: &AddressMap) -> Result<(), SemaphoreError> {
        check_alignment(self.address, if self.timestamp { 16 } else { self.width.bytes() })?;
        if let Some((reduction, signed)) = self.reduction
            && !reduction.is_legal(self.width, signed)
        {
            return Err(SemaphoreError::Reduction { reduction, signed, width: self.width });
        }
        if self.timestamp {
            map.store_u64(self.address + 8, clock::now())?;
        }
        match (self.reduction, self.width) {
            (Some((reduction, signed)), width) => {
                reduction.apply(map, self.address, width, signed, self.payload)?;
            }
            (None, Width::Word) if !self.timestamp => map.store_u32(self.address, self.payload as u32)?,
            (None, Width::Word) => map.store_u64(self.address, self.payload & u64::from(u32::MAX))?,
            (None, Width::Long) => map.store_u64(self.address, self.payload)?,
        }
        Ok(())
    }
}

/// Reads a semaphore: one load of its width.
pub fn load(map: &AddressMap, address: u64, width: Width) -> Result<u64, SemaphoreError> {
    check_alignment(address, width.bytes())?;
    Ok(match width {
        Width::Word => map.load_u32(address)?.into(),
        Width::Long => map.load_u64(address)?,
    })
}
