//! What lanes of a warp exchange: SHFL, MATCH, REDUX, VOTE, MOVM, and where LDSM and STSM put what.
//!
//! A register is the array of its 32 lanes; `active` has a bit for each lane that takes part. Results of lanes
//! outside `active` are for the caller to drop.

use super::integer;
use super::mma::{LANES, Register};
use super::{IntegerType, Sign};

/// Addressing of SHFL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shuffle {
    /// `.IDX`: the lane that the operand names, within the segment.
    Index,
    /// `.UP`: as many lanes below.
    Up,
    /// `.DOWN`: as many lanes above.
    Down,
    /// `.BFLY`: the lane number with bits inverted.
    Butterfly,
}

/// SHFL: the values, and a bit for each lane whose source lay inside its segment. A lane whose source
/// does not keeps its own value.
///
/// Of `clamp`, bits 12:8 are the segment mask, bits 4:0 the bound. What an inactive lane gives is
/// undefined in PTX; here it is its register.
#[inline(always)]
pub fn shfl(mode: Shuffle, value: &Register, lane_operand: &Register, clamp: &Register) -> (Register, u32) {
    let mut result = *value;
    let mut inside = 0;
    for lane in 0..LANES {
        let own = lane as u32;
        let segment = clamp[lane] >> 8 & 31;
        let bound = clamp[lane] & 31;
        let by = lane_operand[lane] & 31;
        let lowest = own & segment;
        let limit = lowest | bound & !segment;
        let (source, fits) = match mode {
            Shuffle::Index => {
                let source = lowest | by & !segment;
                (source, source <= limit)
            }
            // The bound is a lower one here.
            Shuffle::Up => (own.wrapping_sub(by), own as i32 - by as i32 >= limit as i32),
            Shuffle::Down => (own + by, own + by <= limit),
            Shuffle::Butterfly => (own ^ by, own ^ by <= limit),
        };
        if fits {
            result[lane] = value[(source & 31) as usize];
            inside |= 1 << lane;
        }
    }
    (result, inside)
}

/// MATCH.ANY: for each active lane the active lanes with the same value. `high` holds the upper words of `.U64`.
#[inline(always)]
pub fn match_any(active: u32, value: &Register, high: Option<&Register>) -> Register {
    let mut result = [0; LANES];
    let mut left = active;
    // One turn for each distinct value.
    while left != 0 {
        let leader = left.trailing_zeros() as usize;
        let same = equal_lanes(value, high, leader) & active;
        for lane in 0..LANES {
            if same >> lane & 1 != 0 {
                result[lane] = same;
            }
        }
        left &= !same;
    }
    result
}

/// MATCH.ALL: the active lanes and true if all of them have the same value, else 0 and false.
#[inline(always)]
pub fn match_all(active: u32, value: &Register, high: Option<&Register>) -> (u32, bool) {
    let leader = (active.trailing_zeros() & 31) as usize;
    let same = equal_lanes(value, high, leader) & active;
    if same == active { (active, true) } else { (0, false) }
}

/// Lanes whose value is that of `leader`.
#[inline(always)]
fn equal_lanes(value: &Register, high: Option<&Register>, leader: usize) -> u32 {
    let mut same = 0;
    for lane in 0..LANES {
        let equal = value[lane] == value[leader] && high.is_none_or(|high| high[lane] == high[leader]);
        same |= u32::from(equal) << lane;
    }
    same
}

/// Operation of REDUX, in the order of the instruction's field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the vendor's and say it all")]
pub enum Reduction {
    And,
    Or,
    Xor,
    Sum,
    Min,
    Max,
}

/// REDUX: the reduction over the active lanes. No active lane gives the neutral element.
#[inline(always)]
pub fn redux(operation: Reduction, sign: Sign, active: u32, value: &Register) -> u32 {
    let (smallest, largest) = IntegerType { sign, ..IntegerType::U32 }.range();
    let neutral = match operation {
        Reduction::And => u32::MAX,
        Reduction::Or | Reduction::Xor | Reduction::Sum => 0,
        Reduction::Min => largest as u32,
        Reduction::Max => smallest as u32,
    };
    let mut result = neutral;
    for lane in 0..LANES {
        let value = if active >> lane & 1 != 0 { value[lane] } else { neutral };
        result = match operation {
            Reduction::And => result & value,
            Reduction::Or => result | value,
            Reduction::Xor => result ^ value,
            Reduction::Sum => result.wrapping_add(value),
            Reduction::Min => integer::imnmx(result, value, true, sign),
            Reduction::Max => integer::imnmx(result, value, false, sign),
        };
    }
    result
}

/// Condition of VOTE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Vote {
    /// `.ALL`: the predicate holds in every active lane.
    All,
    /// `.ANY`: it holds in some active lane.
    Any,
    /// `.EQ`: it is the same in every active lane.
    Equal,
}

/// VOTE: the active lanes in which the predicate holds, and the condition.
#[inline(always)]
pub const fn vote(condition: Vote, active: u32, predicate: u32) -> (u32, bool) {
    let ballot = predicate & active;
    let holds = match condition {
        Vote::All => ballot == active,
        Vote::Any => ballot != 0,
        Vote::Equal => ballot == active || ballot == 0,
    };
    (ballot, holds)
}

/// MOVM.16.MT88: the 8 by 8 transpose of 16-bit elements (measured on H200). Lane l gets element l/4 of rows
/// 2(l mod 4) and 2(l mod 4) + 1.
#[inline(always)]
pub fn movm_transpose(value: &Register) -> Register {
    let mut result = [0; LANES];
    for (lane, result) in result.iter_mut().enumerate() {
        let (row, column) = (lane % 4 * 2, lane / 4);
        let element = |row: usize| value[row * 4 + column / 2] >> (column % 2 * 16) & 0xffff;
        *result = element(row) | element(row + 1) << 16;
    }
    result
}

/// The eight rows of a matrix of 16-bit elements as LDSM reads them from memory: row r is the 16 bytes at the address that lane
/// 8i + r gives, for matrix i.
pub type MatrixRows = [[u16; 8]; 8];

/// LDSM.16.M88, or with `transposed` .MT88: the register that the loaded matrix becomes (measured on
/// H200).
#[inline(always)]
pub fn ldsm(rows: &MatrixRows, transposed: bool) -> Register {
    std::array::from_fn(|lane| {
        let (outer, inner) = (lane / 4, lane % 4 * 2);
        let [low, high] = if transposed {
            [rows[inner][outer], rows[inner + 1][outer]]
        } else {
            [rows[outer][inner], rows[outer][inner + 1]]
        };
        u32::from(high) << 16 | u32::from(low)
    })
}

/// STSM.16.M88, or with `transposed` .MT88: the rows to store, the inverse of [`ldsm`] (measured on
/// H200).
#[inline(always)]
pub fn stsm(value: &Register, transposed: bool) -> MatrixRows {
    let mut rows = [[0; 8]; 8];
    for (lane, &word) in value.iter().enumerate() {
        let (outer, inner) = (lane / 4, lane % 4 * 2);
        let [low, high] = [word as u16, (word >> 16) as u16];
        if transposed {
            rows[inner][outer] = low;
            rows[inner + 1][outer] = high;
        } else {
            rows[outer][inner] = low;
            rows[outer][inner + 1] = high;
        }
    }
    rows
}
