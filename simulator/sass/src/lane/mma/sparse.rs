//! 2:4 sparsity: which elements of B the stored elements of A meet.
//!
//! Two stored columns of A belong to four dense ones; two 2-bit indices say to which. The hardware uses the
//! indices as they are: equal or descending ones are legal (measured on H200).

use super::Register;

/// Metadata operand of the `.SP` forms.
#[derive(Debug, Clone, Copy)]
pub struct Sparsity<'a> {
    /// The metadata register.
    pub metadata: &'a Register,
    /// Sparsity selector, the instruction's last operand: which lanes' metadata count.
    pub selector: usize,
}

impl Sparsity<'_> {
    /// Index pair of `group` (two units of stored columns) in `row`, in the low four bits.
    ///
    /// `groups` is their number in a row. Types of 16 bits and more keep 16 bits of rows g and g + 8 in
    /// one lane, narrower ones 32 bits of one row.
    #[inline(always)]
    fn indices(self, wide: bool, groups: usize, row: usize, group: usize) -> u32 {
        let first = self.selector * (groups / 4);
        let (lane, shift) = if wide {
            (first + group / 4, group % 4 * 4 + row / 8 * 16)
        } else {
            (first + group / 8 * 2 + row / 8, group % 8 * 4)
        };
        self.metadata[row % 8 * 4 + lane % 4] >> shift & 15
    }

    /// Dense row of B that the stored `column` of A meets, for types of at most 16 bits. `bits` is the
    /// element's width, `k` the number of dense columns. Elements of four bits are selected in pairs.
    #[inline(always)]
    pub fn dense_row(self, bits: usize, k: usize, row: usize, column: usize) -> usize {
        let unit = if bits == 4 { column / 2 } else { column };
        let groups = if bits == 4 { k / 8 } else { k / 4 };
        let indices = self.indices(bits == 16, groups, row, unit / 2) as usize;
        let index = if unit % 2 == 0 { indices & 3 } else { indices >> 2 };
        let dense = unit / 2 * 4 + index;
        if bits == 4 { dense * 2 + column % 2 } else { dense }
    }

    /// TF32: the operand that the stored `column` meets, assembled from two 16-bit halves of the pair of
    /// dense rows `2 * column` and `2 * column + 1`.
    #[inline(always)]
    pub(super) fn assemble_tf32(self, k: usize, row: usize, column: usize, pair: [u32; 2]) -> u32 {
        let indices = self.indices(true, k / 2, row, column) as usize;
        let half = |index: usize| pair[index >> 1] >> (index % 2 * 16) & 0xffff;
        half(indices & 3) | half(indices >> 2) << 16
    }
}
