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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FULL: u32 = u32::MAX;

    fn lanes(f: impl Fn(usize) -> u32) -> Register {
        std::array::from_fn(f)
    }

    #[test]
    fn shuffles_follow_the_warp_intrinsics() {
        let value = lanes(|lane| 100 + lane as u32);
        // __shfl_down_sync(…, 4): width 32.
        let (down, inside) = shfl(Shuffle::Down, &value, &[4; 32], &[0x1f; 32]);
        assert_eq!(down, lanes(|lane| 100 + if lane < 28 { lane + 4 } else { lane } as u32));
        assert_eq!(inside, 0x0fff_ffff);
        // __shfl_up_sync(…, 1, 8): segments of eight.
        let (up, inside) = shfl(Shuffle::Up, &value, &[1; 32], &[0x1800; 32]);
        assert_eq!(up, lanes(|lane| 100 + if lane % 8 == 0 { lane } else { lane - 1 } as u32));
        assert_eq!(inside, 0xfefe_fefe);
        let (xor, inside) = shfl(Shuffle::Butterfly, &value, &[16; 32], &[0x1f; 32]);
        assert_eq!((xor, inside), (lanes(|lane| 100 + (lane as u32 ^ 16)), FULL));
        // __shfl_sync(…, 3, 4): lane 3 of each four.
        let (index, inside) = shfl(Shuffle::Index, &value, &[3; 32], &[0x1c1f; 32]);
        assert_eq!((index, inside), (lanes(|lane| 100 + lane as u32 / 4 * 4 + 3), FULL));
        // The operand is taken modulo 32.
        let (wrapped, _) = shfl(Shuffle::Index, &value, &[32 + 7; 32], &[0x1f; 32]);
        assert_eq!(wrapped, [107; 32]);
    }

    #[test]
    fn a_matrix_survives_store_and_load_and_two_transposes() {
        let value = lanes(|lane| (lane as u32).wrapping_mul(0x9e37_79b9));
        for transposed in [false, true] {
            assert_eq!(ldsm(&stsm(&value, transposed), transposed), value);
            assert_eq!(ldsm(&stsm(&value, !transposed), transposed), movm_transpose(&value));
        }
        let rows: MatrixRows = std::array::from_fn(|row| std::array::from_fn(|i| (row * 16 + i) as u16));
        let plain = ldsm(&rows, false);
        assert_eq!([plain[0], plain[1], plain[4]], [0x0001_0000, 0x0003_0002, 0x0011_0010]);
        let turned = ldsm(&rows, true);
        assert_eq!([turned[0], turned[1], turned[4]], [0x0010_0000, 0x0030_0020, 0x0011_0001]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn matches_agree_with_pairwise_comparison(
            value in prop::array::uniform32(0u32..4), high in prop::array::uniform32(0u32..2), active in any::<u32>(), wide in any::<bool>(),
        ) {
            let high = wide.then_some(&high);
            let same = |i: usize, j: usize| value[i] == value[j] && high.is_none_or(|high| high[i] == high[j]);
            let any = match_any(active, &value, high);
            for i in (0..32).filter(|i| active >> i & 1 != 0) {
                let expected = (0..32).filter(|&j| active >> j & 1 != 0 && same(i, j)).fold(0u32, |m, j| m | 1 << j);
                prop_assert_eq!(any[i], expected);
            }
            let members: Vec<usize> = (0..32).filter(|i| active >> i & 1 != 0).collect();
            let all = members.windows(2).all(|pair| same(pair[0], pair[1]));
            prop_assert_eq!(match_all(active, &value, high), (if all { active } else { 0 }, all));
        }

        #[test]
        fn reductions_agree_with_wide_arithmetic(value in prop::array::uniform32(any::<u32>()), active in 1u32.., signed in any::<bool>()) {
            let sign = if signed { Sign::Signed } else { Sign::Unsigned };
            let members: Vec<u32> = (0..32).filter(|i| active >> i & 1 != 0).map(|i| value[i]).collect();
            let wide = |x: u32| if signed { i64::from(x as i32) } else { i64::from(x) };
            let run = |operation| redux(operation, sign, active, &value);
            prop_assert_eq!(run(Reduction::Sum), members.iter().map(|&x| u64::from(x)).sum::<u64>() as u32);
            prop_assert_eq!(wide(run(Reduction::Min)), members.iter().map(|&x| wide(x)).min().unwrap_or(0));
            prop_assert_eq!(wide(run(Reduction::Max)), members.iter().map(|&x| wide(x)).max().unwrap_or(0));
            for bit in 0..32 {
                let ones = members.iter().filter(|&&x| x >> bit & 1 != 0).count();
                prop_assert_eq!(run(Reduction::And) >> bit & 1 != 0, ones == members.len());
                prop_assert_eq!(run(Reduction::Or) >> bit & 1 != 0, ones != 0);
                prop_assert_eq!(run(Reduction::Xor) >> bit & 1 != 0, ones % 2 == 1);
            }
        }

        #[test]
        fn votes_count_active_lanes_only(active in any::<u32>(), predicate in any::<u32>()) {
            let of = |condition| vote(condition, active, predicate);
            let members: Vec<bool> = (0..32).filter(|i| active >> i & 1 != 0).map(|i| predicate >> i & 1 != 0).collect();
            prop_assert_eq!(of(Vote::All), (active & predicate, members.iter().all(|&x| x)));
            prop_assert_eq!(of(Vote::Any).1, members.iter().any(|&x| x));
            prop_assert_eq!(of(Vote::Equal).1, members.windows(2).all(|pair| pair[0] == pair[1]));
        }
    }
}
