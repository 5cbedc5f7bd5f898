//! Arithmetic of atomics and reductions in memory: ATOM, ATOMG, ATOMS, RED.

use super::half::{self, HalfFormat, HalfMode};
use super::{FloatMode, Rounding, Sign, Subnormals, double, float, integer};

/// Operation, but for compare-and-exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AtomicOperation {
    /// `.ADD`
    Add,
    /// `.MIN`
    Min,
    /// `.MAX`
    Max,
    /// `.INC`: one more, or 0 where the memory holds the operand or more.
    Increment,
    /// `.DEC`: one less, or the operand where the memory holds 0 or more than the operand.
    Decrement,
    /// `.AND`
    And,
    /// `.OR`
    Or,
    /// `.XOR`
    Xor,
    /// `.EXCH`
    Exchange,
}

/// Type of the memory and the operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AtomicType {
    /// 32-bit unsigned, no modifier.
    U32,
    /// `.S32`
    S32,
    /// `.64`
    U64,
    /// `.S64`
    S64,
    /// `.F32.FTZ.RN`: subnormals become zeros, or with `flushes` false stay.
    F32 {
        /// `.FTZ`
        flushes: bool,
    },
    /// `.F64.RN`
    F64,
    /// `.F16x2.RN`: two halves; subnormals stay.
    F16x2,
    /// `.BF16_V2.RN` and the like: two halves; subnormals stay.
    Bf16x2,
}

impl AtomicType {
    /// Bytes in memory.
    #[inline(always)]
    pub const fn bytes(self) -> usize {
        match self {
            AtomicType::U64 | AtomicType::S64 | AtomicType::F64 => 8,
            _ => 4,
        }
    }

    const fn sign(self) -> Sign {
        match self {
            AtomicType::S32 | AtomicType::S64 => Sign::Signed,
            _ => Sign::Unsigned,
        }
    }
}

/// What memory holding `old` becomes, or `None` where the hardware has no such operation on the type.
///
/// Of 32-bit types the low halves count. Floating-point types add, and the 16-bit ones also take minimum
/// and maximum (vector reductions of sm_90); a NaN there loses against a number.
#[inline(always)]
pub fn apply(operation: AtomicOperation, kind: AtomicType, old: u64, operand: u64) -> Option<u64> {
    let (a, b) = (old as u32, operand as u32);
    match kind {
        AtomicType::U32 | AtomicType::S32 => word(operation, kind.sign(), a, b).map(u64::from),
        AtomicType::U64 | AtomicType::S64 => long(operation, kind.sign(), old, operand),
        AtomicType::F32 { flushes } => {
            let subnormals = if flushes { Subnormals::Flush } else { Subnormals::Keep };
            let mode = FloatMode { subnormals, ..FloatMode::PLAIN };
            match operation {
                AtomicOperation::Add => Some(u64::from(float::fadd(a, b, mode))),
                AtomicOperation::Exchange => Some(u64::from(b)),
                _ => None,
            }
        }
        AtomicType::F64 => match operation {
            AtomicOperation::Add => Some(double::dadd(old, operand, Rounding::Nearest)),
            AtomicOperation::Exchange => Some(operand),
            _ => None,
        },
        AtomicType::F16x2 => halves(operation, HalfFormat::F16, a, b).map(u64::from),
        AtomicType::Bf16x2 => halves(operation, HalfFormat::Bf16, a, b).map(u64::from),
    }
}

#[inline(always)]
fn word(operation: AtomicOperation, sign: Sign, old: u32, operand: u32) -> Option<u32> {
    Some(match operation {
        AtomicOperation::Add => old.wrapping_add(operand),
        AtomicOperation::Min => integer::imnmx(old, operand, true, sign),
        AtomicOperation::Max => integer::imnmx(old, operand, false, sign),
        AtomicOperation::Increment if sign == Sign::Unsigned => {
            if old >= operand {
                0
            } else {
                old + 1
            }
        }
        AtomicOperation::Decrement if sign == Sign::Unsigned => {
            if old == 0 || old > operand {
                operand
            } else {
                old - 1
            }
        }
        AtomicOperation::Increment | AtomicOperation::Decrement => return None,
        AtomicOperation::And => old & operand,
        AtomicOperation::Or => old | operand,
        AtomicOperation::Xor => old ^ operand,
        AtomicOperation::Exchange => operand,
    })
}

#[inline(always)]
fn long(operation: AtomicOperation, sign: Sign, old: u64, operand: u64) -> Option<u64> {
    Some(match (operation, sign) {
        (AtomicOperation::Add, _) => old.wrapping_add(operand),
        (AtomicOperation::Min, Sign::Unsigned) => old.min(operand),
        (AtomicOperation::Max, Sign::Unsigned) => old.max(operand),
        (AtomicOperation::Min, Sign::Signed) => (old as i64).min(operand as i64) as u64,
        (AtomicOperation::Max, Sign::Signed) => (old as i64).max(operand as i64) as u64,
        (AtomicOperation::Increment | AtomicOperation::Decrement, _) => return None,
        (AtomicOperation::And, _) => old & operand,
        (AtomicOperation::Or, _) => old | operand,
        (AtomicOperation::Xor, _) => old ^ operand,
        (AtomicOperation::Exchange, _) => operand,
    })
}

#[inline(always)]
fn halves(operation: AtomicOperation, format: HalfFormat, old: u32, operand: u32) -> Option<u32> {
    let pair = |word: u32| (word as u16, (word >> 16) as u16);
    let (a, b) = (pair(old), pair(operand));
    let mode = HalfMode::plain(format);
    match operation {
        AtomicOperation::Add => Some(half::hadd2(a, b, mode)),
        AtomicOperation::Min => Some(half::hmnmx2(a, b, true, false, mode)),
        AtomicOperation::Max => Some(half::hmnmx2(a, b, false, false, mode)),
        AtomicOperation::Exchange => Some(operand),
        _ => None,
    }
}
