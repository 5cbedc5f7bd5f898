//! Loops whose addresses are known before each turn: see [`super::plan`].
//!
//! A run that ends with a branch back to its beginning is gone around by one warp of a team after the other, as long as all
//! its lanes take the branch, and what [`super::plan`] looks at holds. Warps have no order, so that they cannot tell; how often
//! they do is bounded, for the sake of those that wait for others.

use std::ops::Range;

use super::super::micro::Micro;
use super::access;
use super::assembler::{Arithmetic, Assembler, Condition, R14, RAX, Ymm, at};
use super::builder::{Builder, GROUP, Truth};
use super::liveness::Live;
use super::loops::{Left, TURNS};
use super::plan::Planned;
use super::{
    Body, Known, Translated, begin_again, begin_function, begin_member, end_function, next_eight, next_member,
};

/// A function for the loop, of the type of all compiled code. `None` if its addresses come from anything but sums and products.
pub(super) fn translate(
    ops: &[Micro],
    known: &[Known],
    start: usize,
    live: &Live,
    uniform: &Range<u16>,
) -> Option<Translated> {
    use access::{LEDGER, TAKEN, TURNS_MADE};
    let (branch, ops) = ops.split_last()?;
    let known = known.get(..ops.len())?;
    let planned = Planned::of(ops, known, start, live, uniform)?;
    let mut sites = Vec::new();
    let mut asm = Assembler::default();
    begin_function(&mut asm);
    let [member, again, eight, tell] = [(); 4].map(|()| asm.label());
    asm.place(member);
    begin_member(&mut asm);
    asm.store_number(TURNS_MADE, 0);
    // Those at the loop's beginning.
    asm.store_narrow(TAKEN, GROUP);
    asm.compare_number(GROUP, -1);
    asm.jump_if(Condition::NotZero, tell);
    asm.place(again);
    planned.write(&mut asm, ops, known, uniform, tell)?;
    asm.place(eight);
    let body = Body { ops, known, start, live, fault: tell, planned: Some(&planned) };
    body.write(&mut asm, false, &mut sites, |builder| {
        take(builder, branch)?;
        let asm = &mut *builder.asm;
        next_eight(asm, eight);
        asm.increment(TURNS_MADE);
        asm.compare_memory(TAKEN, -1);
        asm.jump_if(Condition::NotZero, tell);
        asm.compare_memory(TURNS_MADE, TURNS);
        asm.jump_if(Condition::Zero, tell);
        begin_again(asm);
        asm.jump(again);
        Some(())
    })?;
    asm.place(tell);
    asm.load_wide(R14, LEDGER);
    asm.load_narrow(RAX, TAKEN);
    asm.store_narrow(at(R14, std::mem::offset_of!(Left, remain) as i32), RAX);
    asm.load_narrow(RAX, TURNS_MADE);
    asm.store_narrow(at(R14, std::mem::offset_of!(Left, turns) as i32), RAX);
    asm.add_number(R14, size_of::<Left>() as i32);
    asm.store_wide(LEDGER, R14);
    next_member(&mut asm, member);
    end_function(&mut asm);
    Some((asm.finish()?, sites))
}

/// Adds the eight lanes at hand that take the branch to those before.
fn take(b: &mut Builder<'_>, branch: &Micro) -> Option<()> {
    let taken = b.condition(branch).ok()?;
    let (Truth::Where(mask) | Truth::Unless(mask)) = taken else { return None };
    b.asm.vector_one(super::assembler::Vector::VMOVMSKPS, Ymm(RAX.0), mask);
    if taken == Truth::Unless(mask) {
        b.asm.not(RAX);
    }
    b.asm.shift_left(RAX, 24);
    b.asm.load_narrow(R14, access::TAKEN);
    b.asm.shift_right(R14, 8);
    b.asm.narrow(Arithmetic::Or, R14, RAX);
    b.asm.store_narrow(access::TAKEN, R14);
    Some(())
}
