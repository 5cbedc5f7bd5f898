//! Loops whose addresses are known before each turn: see [`super::plan`].
//!
//! A run that ends with a branch back to its beginning is gone around by all warps of a team, one after the other in each
//! turn, until lanes of one of them leave, or what [`super::plan`] looks at does not hold for it. (Each warp by itself would save a
//! little, but neighbouring warps read neighbouring memory.) How often they go around is bounded, for the sake of those that
//! wait for others.

use std::ops::Range;

use super::super::micro::Micro;
use super::access;
use super::assembler::{Arithmetic, Assembler, Condition, Label, R14, RAX, Vector, Ymm, at};
use super::builder::{Builder, GROUP, Name, Reads, Truth};
use super::liveness::Live;
use super::loops::{Left, TURNS};
use super::plan::{Across, Planned};
use super::{
    Body, Frame, Known, Translated, begin_function, begin_member, begin_members, end_function, next_eight,
    next_member,
};

/// A function for the loop, of the type of all compiled code. `None` if its addresses come from anything but sums and products.
pub(super) fn translate(
    ops: &[Micro],
    known: &[Known],
    start: usize,
    live: &Live,
    uniform: &Range<u16>,
) -> Option<Translated> {
    use access::{LEDGER, ROUNDS, STOPS, TAKEN};
    let (branch, ops) = ops.split_last()?;
    let known = known.get(..ops.len())?;
    let planned = Planned::of(Across::Warp, ops, known, start, live, uniform)?;
    let mut sites = Vec::new();
    let mut asm = Assembler::default();
    begin_function(&mut asm);
    let [round, member, eight, leaves, turned, stays, next] = [(); 7].map(|()| asm.label());
    asm.store_number(ROUNDS, TURNS);
    asm.place(round);
    begin_team(&mut asm);
    asm.store_number(STOPS, 0);
    asm.place(member);
    begin_member(&mut asm);
    // Those at the loop's beginning.
    asm.store_narrow(TAKEN, GROUP);
    asm.compare_number(GROUP, -1);
    asm.jump_if(Condition::NotZero, stays);
    planned.write(&mut asm, ops, known, uniform, stays)?;
    asm.place(eight);
    let remain = at(R14, std::mem::offset_of!(Left, remain) as i32);
    let turns = at(R14, std::mem::offset_of!(Left, turns) as i32);
    let quick = Quick { ops, known, start, live, planned: &planned, branch };
    let mut trial = Assembler::default();
    let nowhere = trial.label();
    let passed = quick.write(&mut trial, nowhere).is_some();
    if passed {
        quick.write(&mut asm, leaves)?;
        next_eight(&mut asm, eight);
        asm.jump(turned);
    }
    asm.place(leaves);
    let body = Body { ops, known, start, live, fault: stays, planned: Some(&planned), passed };
    body.write(&mut asm, false, &mut sites, |builder| {
        take(builder, branch)?;
        let asm = &mut *builder.asm;
        next_eight(asm, eight);
        asm.place(turned);
        asm.load_wide(R14, LEDGER);
        asm.increment(turns);
        asm.load_narrow(RAX, TAKEN);
        asm.store_narrow(remain, RAX);
        asm.compare_number(RAX, -1);
        asm.jump_if(Condition::Zero, next);
        asm.store_number(STOPS, 1);
        asm.jump(next);
        Some(())
    })?;
    asm.place(stays);
    asm.load_wide(R14, LEDGER);
    asm.load_narrow(RAX, TAKEN);
    asm.store_narrow(remain, RAX);
    asm.store_number(STOPS, 1);
    asm.place(next);
    asm.add_number(R14, size_of::<Left>() as i32);
    asm.store_wide(LEDGER, R14);
    next_member(&mut asm, member);
    let end = asm.label();
    asm.load_narrow(RAX, ROUNDS);
    asm.add_number(RAX, -1);
    asm.store_narrow(ROUNDS, RAX);
    asm.jump_if(Condition::Zero, end);
    asm.compare_memory(STOPS, 0);
    asm.jump_if(Condition::Zero, round);
    asm.place(end);
    end_function(&mut asm);
    Some((asm.finish()?, sites))
}

/// Turns to the first member of the team, and to what is told of it.
fn begin_team(asm: &mut Assembler) {
    asm.load_wide(RAX, access::FRAME);
    begin_members(asm, RAX);
    asm.load_wide(RAX, at(RAX, std::mem::offset_of!(Frame, ledger) as i32));
    asm.store_wide(access::LEDGER, RAX);
}

/// Adds the eight lanes at hand that take the branch to those before.
fn take(b: &mut Builder<'_>, branch: &Micro) -> Option<()> {
    let taken = b.condition(branch).ok()?;
    let (Truth::Where(mask) | Truth::Unless(mask)) = taken else { return None };
    b.asm.vector_one(Vector::VMOVMSKPS, Ymm(RAX.0), mask);
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

/// A turn of eight lanes that all take the branch: they leave only what the next turn reads. Where one does not, nothing has
/// happened yet but that pointers have moved on.
struct Quick<'a> {
    ops: &'a [Micro],
    known: &'a [Known],
    start: usize,
    live: &'a Live,
    planned: &'a Planned,
    branch: &'a Micro,
}

impl Quick<'_> {
    /// Writes it; lanes that do not all take the branch go to `leaves`. `None` if something would happen before that.
    fn write(&self, asm: &mut Assembler, leaves: Label) -> Option<()> {
        let end = self.start + self.ops.len();
        let stores = self
            .known
            .iter()
            .any(|known| known.emit.and_then(|emit| emit.access).is_some_and(|access| access.stores));
        let guarded = self.ops.iter().any(|op| op.kind & Micro::GUARDED != 0);
        if stores || guarded {
            return None;
        }
        let last_read = |name: Name| self.live.last_read(name, self.start, end + 1);
        let after = |name: Name, count: usize| self.live.lives(name, self.start + count);
        let reads = Reads { last: &last_read, after: &after };
        let mut b = Builder::new(asm, false, &reads)
            .of(self.ops, self.known, self.start)
            .plan(&self.planned.accesses, false);
        for ((op, known), needed) in self.ops.iter().zip(self.known).zip(&self.planned.needed_again) {
            if *needed {
                b.emit(op, known.emit?).ok()?;
            } else {
                b.leave_out();
            }
        }
        let taken = b.condition_of(self.branch, false).ok()?;
        let (Truth::Where(mask) | Truth::Unless(mask)) = taken else { return None };
        b.asm.vector_one(Vector::VMOVMSKPS, Ymm(RAX.0), mask);
        b.asm.compare_number(RAX, if taken == Truth::Where(mask) { 0xff } else { 0 });
        b.asm.jump_if(Condition::NotZero, leaves);
        if b.spilled() || b.has_cold() {
            return None;
        }
        b.finish(|name| self.live.lives(name, self.start));
        b.asm.rotate_memory(access::TAKEN, 8);
        Some(())
    }
}
