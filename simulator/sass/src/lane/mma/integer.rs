//! IMMA and BMMA: matrices of integers and of single bits. Both are exact.

use super::{Register, Sparsity, layout};

/// Type of the factors of IMMA, in the order of the instruction's field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the vendor's and say it all")]
pub enum Integer {
    U8,
    S8,
    U4,
    S4,
}

impl Integer {
    /// Bits of an element.
    pub const fn bits(self) -> usize {
        match self {
            Integer::U8 | Integer::S8 => 8,
            Integer::U4 | Integer::S4 => 4,
        }
    }

    /// The number that the low bits hold.
    #[inline(always)]
    const fn value(self, bits: u32) -> i32 {
        match self {
            Integer::U8 => (bits & 0xff) as i32,
            Integer::S8 => bits as i8 as i32,
            Integer::U4 => (bits & 15) as i32,
            Integer::S4 => ((bits << 28) as i32) >> 28,
        }
    }
}

/// Types and shape of an integer matrix instruction with 8 columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntegerMatrix {
    /// Rows: 8 or 16.
    pub rows: usize,
    /// Number of dense columns of A: the last number of the shape.
    pub k: usize,
    /// Types of A and B, of the same width.
    pub factors: [Integer; 2],
    /// `.SAT`: the sum is clamped to 32 bits once, at the end; else it wraps.
    pub saturate: bool,
    /// A holds half of its columns, with metadata (`.SP`).
    pub sparse: bool,
}

impl IntegerMatrix {
    /// Registers of A, B, and of C and D, or `None` where the hardware has no such form: `.8816`, `.16816`
    /// and `.16832` of bytes, `.8832`, `.16832` and `.16864` of nibbles; sparse `.16832` and `.16864` of
    /// bytes, `.16864` and `.168128` of nibbles.
    #[inline]
    pub const fn registers(self) -> Option<super::Registers> {
        let bits = self.factors[0].bits();
        let unit = 128 / bits;
        let exists = match (self.rows, self.sparse) {
            (8, false) => self.k == unit,
            (16, false) => self.k == unit || self.k == 2 * unit,
            (16, true) => self.k == 2 * unit || self.k == 4 * unit,
            _ => false,
        };
        if !exists || self.factors[1].bits() != bits {
            return None;
        }
        let stored = if self.sparse { self.k / 2 } else { self.k };
        let c = self.rows / 4;
        Some(super::Registers { a: stored / unit * self.rows / 8, b: self.k / unit, c })
    }
}

/// Most dense columns (IMMA.SP.168128), and most stored ones.
const DENSE: usize = 128;
const STORED: usize = 64;

/// IMMA, dense and sparse: `D = A * B + C`. `None` where the form does not exist or a fragment has not the
/// number of registers that [`IntegerMatrix::registers`] says. With 8 rows the last two registers of the result
/// are zero.
pub fn imma(
    form: IntegerMatrix,
    a: &[Register],
    b: &[Register],
    c: &[Register],
    sparsity: Option<Sparsity<'_>>,
) -> Option<[Register; 4]> {
    let registers = form.registers()?;
    if !registers.fit([a, b, c]) {
        return None;
    }
    let sparsity = if form.sparse { Some(sparsity?) } else { None };
    let bits = form.factors[0].bits();
    let per = 32 / bits;
    let stored = if form.sparse { form.k / 2 } else { form.k };
    let mut dense_b = [[0i32; 8]; DENSE];
    for (k, row) in dense_b.iter_mut().enumerate().take(form.k) {
        for (n, value) in row.iter_mut().enumerate() {
            let (register, lane, index) = layout::of_b(k, n, per);
            *value = form.factors[1].value(b[register][lane] >> (bits * index));
        }
    }
    let mut d = [[0; 32]; 4];
    for row in 0..form.rows {
        let mut row_a = [0i32; STORED];
        for (column, value) in row_a.iter_mut().enumerate().take(stored) {
            let (register, lane, index) = layout::of_a(form.rows, row, column, per);
            *value = form.factors[0].value(a[register][lane] >> (bits * index));
        }
        // At most 128 products below 2^16: no overflow.
        let mut sums = [0i32; 8];
        for (column, &x) in row_a[..stored].iter().enumerate() {
            let k = sparsity.map_or(column, |sparsity| sparsity.dense_row(bits, form.k, row, column));
            for (sum, y) in sums.iter_mut().zip(dense_b[k]) {
                *sum += x * y;
            }
        }
        for (n, &sum) in sums.iter().enumerate() {
            let (register, lane) = layout::of_c(row, n);
            let addend = c[register][lane] as i32;
            let sum = if form.saturate { addend.saturating_add(sum) } else { addend.wrapping_add(sum) };
            d[register][lane] = sum as u32;
        }
    }
    Some(d)
}

/// Operation of BMMA on two bits; their number is counted (`.POPC`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BitOperation {
    /// `.AND`
    And,
    /// `.XOR`
    Xor,
}

/// BMMA: `.88128` (8 rows, `k` 128), `.168128` and `.168256`: `C` plus the number of ones of `A op B` along k,
/// wrapping. Other shapes and fragments of other sizes give `None`.
pub fn bmma(
    rows: usize,
    k: usize,
    operation: BitOperation,
    a: &[Register],
    b: &[Register],
    c: &[Register],
) -> Option<[Register; 4]> {
    if !matches!((rows, k), (8, 128) | (16, 128 | 256)) {
        return None;
    }
    let blocks = k / 128;
    if a.len() != blocks * rows / 8 || b.len() != blocks || c.len() != rows / 4 {
        return None;
    }
    let mut d = [[0; 32]; 4];
    for row in 0..rows {
        for n in 0..8 {
            let (register, lane) = layout::of_c(row, n);
            let mut sum = c[register][lane];
            for word in 0..k / 32 {
                let (ra, la, _) = layout::of_a(rows, row, word * 32, 32);
                let (rb, lb, _) = layout::of_b(word * 32, n, 32);
                let (x, y) = (a[ra][la], b[rb][lb]);
                let bits = match operation {
                    BitOperation::And => x & y,
                    BitOperation::Xor => x ^ y,
                };
                sum = sum.wrapping_add(bits.count_ones());
            }
            d[register][lane] = sum;
        }
    }
    Some(d)
}
