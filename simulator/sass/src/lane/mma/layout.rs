//! Where the elements of a matrix sit: which register, which lane, which place in the register.
//!
//! The same for every type and shape (measured on H200). `per` is the number of elements in a register, 1 in a
//! 64-bit pair. Sparse forms use the stored columns of A.

/// Register, lane, and element within the register.
pub type Place = (usize, usize, usize);

/// Element of A at `row`, `column`, of `rows` (8 or 16) rows.
#[inline(always)]
pub const fn of_a(rows: usize, row: usize, column: usize, per: usize) -> Place {
    let block = column / (4 * per);
    let register = if rows == 8 { block } else { block * 2 + row / 8 };
    (register, row % 8 * 4 + column / per % 4, column % per)
}

/// Element of B at row `k`, column `n`.
#[inline(always)]
pub const fn of_b(k: usize, n: usize, per: usize) -> Place {
    (k / (4 * per), n * 4 + k / per % 4, k % per)
}

/// Element of C or D at `row`, `column`, of 32 or 64 bits.
#[inline(always)]
pub const fn of_c(row: usize, column: usize) -> (usize, usize) {
    (row / 8 * 2 + column % 2, row % 8 * 4 + column / 2)
}

/// Element of C or D at `row`, `column`, of 16 bits.
#[inline(always)]
pub const fn of_c16(row: usize, column: usize) -> Place {
    (row / 8, row % 8 * 4 + column / 2, column % 2)
}
