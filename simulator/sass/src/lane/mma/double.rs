//! DMMA: matrices of FP64.

use super::{LANES, layout};
use crate::lane::{Rounding, double};

/// A register pair of every lane.
pub type Pair = [u64; LANES];

/// DMMA: fused multiply-adds in order of k, each rounded (measured on H200). `.884` and `.8x8x4` have 8 rows, `.16x8x4`, `.16x8x8` and
/// `.16x8x16` have 16; other shapes and fragments of other sizes give `None`.
///
/// With 8 rows A and B are one pair a lane, C and D two. With 16 rows A has `k / 2` pairs, B `k / 4`, C and
/// D four. With 8 rows the last two pairs of the result are zero.
pub fn dmma(
    rows: usize,
    k: usize,
    rounding: Rounding,
    a: &[Pair],
    b: &[Pair],
    c: &[Pair],
) -> Option<[Pair; 4]> {
    if !matches!((rows, k), (8, 4) | (16, 4 | 8 | 16)) {
        return None;
    }
    if a.len() != rows * k / LANES || b.len() != 8 * k / LANES || c.len() != rows / 4 {
        return None;
    }
    let mut d = [[0; LANES]; 4];
    for row in 0..rows {
        for n in 0..8 {
            let (register, lane) = layout::of_c(row, n);
            let mut sum = c[register][lane];
            for i in 0..k {
                let (ra, la, _) = layout::of_a(rows, row, i, 1);
                let (rb, lb, _) = layout::of_b(i, n, 1);
                sum = double::dfma(a[ra][la], b[rb][lb], sum, rounding);
            }
            d[register][lane] = sum;
        }
    }
    Some(d)
}
