//! Special registers in compiled code: the number of the thread and of the block.

use super::super::lanes::Lanes;
use super::super::micro::Micro;
use super::super::warp::Warp;
use super::access::{Common, common};
use super::assembler::{Arithmetic, Assembler, General, Memory, R14, Vector, at};
use super::builder::{Builder, Emitted, ROWS};
use super::{ALL_ROWS, WARPS};

/// Indices of a warp's threads: x, y and z.
pub(crate) type ThreadIndices = [Lanes; 3];

/// Where a part of the block's index is, by the number of its axis.
pub(super) fn block_index_at(op: &Micro) -> Memory {
    common(std::mem::offset_of!(Common, block) + 4 * (op.payload as usize % 3))
}

/// Makes `to` the indices of the member's first thread; what is returned is where those of an axis begin.
pub(super) fn find_thread_indices(asm: &mut Assembler, to: General, op: &Micro) -> Memory {
    asm.load_wide(to, at(WARPS, 0));
    asm.load_narrow(to, at(to, std::mem::offset_of!(Warp, index) as i32));
    asm.multiply_number(to, size_of::<ThreadIndices>() as i32);
    asm.wide_memory(Arithmetic::Add, to, common(std::mem::offset_of!(Common, threads)));
    at(to, (size_of::<Lanes>() * (op.payload as usize % 3)) as i32)
}

pub(crate) fn block_index(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    let out = b.temporary()?;
    b.asm.vector_one(Vector::VPBROADCASTD, out, block_index_at(op));
    b.put(op.d, out)
}

pub(crate) fn thread_index(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    let out = b.temporary()?;
    let indices = find_thread_indices(b.asm, R14, op);
    // As far on as the rows.
    b.asm.wide(Arithmetic::Add, R14, ROWS);
    b.asm.wide_memory(Arithmetic::Subtract, R14, at(ALL_ROWS, 0));
    b.asm.load(out, indices);
    b.put(op.d, out)
}
