//! Loops that run in vector registers until all their lanes have left.
//!
//! What is compiled here: a straight stretch that ends with a branch back to its beginning, with branches to the place behind it
//! on the way, all of it arithmetic. (Where there are loads and stores, see [`super::rounds`].) What the next turn or the code behind needs is kept in registers of its own, and blended
//! there in the lanes that still run; everything else lives for one turn. Eight lanes go around without the other lanes of their
//! warp, which they cannot tell, since nothing in such a loop looks at others. At the end all lanes stand behind the loop, or at
//! its beginning if they used up their turns. Counts are those of lanes that go around together: what stands behind the loop
//! is executed once by all of them, where handlers have each come there by itself.

use super::super::core::TEAM;
use super::super::micro::{Micro, PredicateIn};
use super::assembler::{Arithmetic, Assembler, Condition, Memory, R14, R15, RAX, RDI, RSP, Vector, Ymm, at};
use super::builder::{ACTIVE, Builder, GROUP, Name, Reads, Truth};
use super::liveness::Live;
use super::plan::Linear;
use super::{
    Emit, Frame, Known, Reach, begin_member, load_active, next_eight, next_member, prologue, restore,
};

/// Branches of a loop at most, the one back included.
pub(super) const PARTS: usize = 3;
/// Turns after which lanes come back, so that others have theirs.
pub(super) const TURNS: i32 = 1024;
/// Instructions of a loop at most.
const LONGEST: usize = 96;

/// What a loop left, of a member of the team.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Left {
    /// The lanes that did not leave.
    pub remain: u32,
    /// How often each part was executed.
    pub turns: [u32; PARTS],
}

/// What a loop is given and what it leaves.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Ledger {
    pub members: [Left; TEAM],
    /// In how many lanes each part was executed, one for each turn.
    pub lanes: [u64; PARTS],
}

/// The loop that begins with an instruction: the number of the branch back.
pub(super) fn find(code: &[Micro], known: &[Known], page: u64, start: usize) -> Option<usize> {
    let number = |op: &Micro| (op.payload.wrapping_sub(page) / 16) as usize;
    let mut branches = Vec::new();
    let mut end = start;
    loop {
        let (op, about) = (code.get(end)?, known.get(end)?);
        if end - start >= LONGEST || op.kind & Micro::UNIFORM != 0 {
            return None;
        }
        if about.reach == Reach::Branch {
            let conditional = op.kind != 0 || op.from[0] != PredicateIn::TRUE;
            if op.extra != 0 || !conditional || op.payload & 15 != 0 {
                return None;
            }
            if number(op) == start {
                break;
            }
            branches.push(number(op));
        } else if about.emit.is_none() || !super::may_belong(op, about) {
            return None;
        }
        end += 1;
    }
    let behind = branches.iter().all(|to| *to == end + 1);
    let alone = (start + 1..=end).all(|lead| {
        code.iter().zip(known).all(|(op, known)| known.reach != Reach::Branch || number(op) != lead)
    });
    (end > start && behind && branches.len() < PARTS && alone).then_some(end)
}

/// Instructions of each part.
pub(super) fn lengths(known: &[Known]) -> [u64; PARTS] {
    let mut lengths = [0; PARTS];
    let mut part = 0;
    for known in known {
        if let Some(length) = lengths.get_mut(part) {
            *length += 1;
        }
        part += usize::from(known.reach == Reach::Branch);
    }
    lengths
}

/// Where a part's turns and lanes of the eight at hand are counted.
const fn turns(part: usize) -> Memory {
    at(RSP, 4 * part as i32)
}

const fn lanes(part: usize) -> Memory {
    at(RSP, 16 + 8 * part as i32)
}

const STACK: i32 = 48;
/// Where the ledger is kept.
const LEDGER: Memory = at(RSP, 40);

/// A function for the loop, of the type of all compiled code.
pub(super) fn translate(ops: &[Micro], known: &[Known], start: usize, live: &Live) -> Option<Vec<u8>> {
    use Arithmetic::{Or, Test, Xor};
    let apart = |emit: Emit| emit.access.is_some() || emit.linear.is_some_and(Linear::is_special);
    if known.iter().any(|known| known.emit.is_some_and(apart)) {
        return None;
    }
    let end = start + ops.len();
    let parts = known.iter().filter(|known| known.reach == Reach::Branch).count();
    let kept = live.kept(start, end);
    let mut asm = Assembler::default();
    let left = R15;
    prologue(&mut asm);
    asm.add_number(RSP, -STACK);
    asm.load_wide(left, at(RDI, std::mem::offset_of!(Frame, ledger) as i32));
    asm.store_wide(LEDGER, left);
    asm.wide(Xor, RAX, RAX);
    for part in 0..PARTS {
        asm.store_wide(lanes(part), RAX);
    }

    let [member, eight, head, done, tell, empty] = [(); 6].map(|()| asm.label());
    asm.place(member);
    begin_member(&mut asm);
    asm.place(eight);
    asm.low_byte(RAX, GROUP);
    asm.narrow(Test, RAX, RAX);
    asm.jump_if(Condition::Zero, empty);
    load_active(&mut asm);
    asm.wide(Xor, RAX, RAX);
    asm.store_wide(turns(0), RAX);
    asm.store_narrow(turns(2), RAX);
    asm.number(R14, TURNS);

    let last_read = |name: Name| live.last_read(name, start, end);
    let after = |name: Name, count: usize| live.lives(name, start + count);
    let reads = Reads { last: &last_read, after: &after };
    let mut builder = Builder::new(&mut asm, true, &reads);
    builder.keep(&kept).ok()?;
    builder.asm.place(head);
    let mut part = 0;
    let begin = |builder: &mut Builder<'_>, part: usize| {
        builder.asm.vector_one(Vector::VMOVMSKPS, Ymm(RAX.0), ACTIVE);
        builder.asm.count_ones(RAX, RAX);
        builder.asm.add_to_memory(lanes(part), RAX);
        builder.asm.increment(turns(part));
    };
    begin(&mut builder, part);
    for (op, known) in ops.iter().zip(known) {
        if known.reach != Reach::Branch {
            builder.emit(op, known.emit?).ok()?;
            continue;
        }
        builder.commit().ok()?;
        let last = part + 1 == parts;
        // What is left is what takes the branch back, and what does not take the others.
        let taken = builder.condition(op).ok()?;
        match (taken, last) {
            (Truth::Where(mask), true) | (Truth::Unless(mask), false) => {
                builder.asm.vector(Vector::VPAND, ACTIVE, ACTIVE, mask);
            }
            (Truth::Unless(mask), true) | (Truth::Where(mask), false) => {
                builder.asm.vector(Vector::VPANDN, ACTIVE, mask, ACTIVE);
            }
            _ => return None,
        }
        builder.asm.vector_one(Vector::VMOVMSKPS, Ymm(RAX.0), ACTIVE);
        builder.asm.narrow(Test, RAX, RAX);
        builder.asm.jump_if(Condition::Zero, done);
        builder.let_go();
        part += 1;
        if !last {
            begin(&mut builder, part);
        }
    }
    builder.asm.add_number(R14, -1);
    builder.asm.jump_if(Condition::NotZero, head);
    builder.asm.place(done);
    builder.store_kept();
    let (cold, behind) = (builder.has_cold(), builder.asm.label());
    if cold {
        builder.asm.jump(behind);
        builder.write_cold(None);
        builder.asm.place(behind);
    }

    asm.vector_one(Vector::VMOVMSKPS, Ymm(RAX.0), ACTIVE);
    // A warp goes around as often as any of its lanes.
    for part in 0..PARTS {
        let most = at(left, (std::mem::offset_of!(Left, turns) + 4 * part) as i32);
        asm.load_narrow(R14, turns(part));
        asm.raise_memory(most, R14);
    }
    asm.place(tell);
    asm.shift_left(RAX, 24);
    asm.load_narrow(R14, at(left, 0));
    asm.shift_right(R14, 8);
    asm.narrow(Or, R14, RAX);
    asm.store_narrow(at(left, 0), R14);
    next_eight(&mut asm, eight);
    asm.add_number(left, size_of::<Left>() as i32);
    next_member(&mut asm, member);
    asm.load_wide(left, LEDGER);
    for part in 0..PARTS {
        asm.load_wide(RAX, lanes(part));
        asm.store_wide(at(left, (std::mem::offset_of!(Ledger, lanes) + 8 * part) as i32), RAX);
    }
    asm.add_number(RSP, STACK);
    restore(&mut asm);

    asm.place(empty);
    asm.wide(Xor, RAX, RAX);
    asm.jump(tell);
    asm.finish()
}
