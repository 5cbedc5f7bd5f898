//! Straight runs of micro-operations, compiled to native code where they are executed often.
//!
//! A handler computes one instruction for 32 lanes, and leaves its result in memory. A compiled run takes eight lanes through
//! many instructions, with what they compute in vector registers, then the next eight. It may do so because what is
//! compiled concerns each lane alone: arithmetic, comparisons, selections, and memory as far as no lane of the warp finds there what
//! another one stores. Where one might, the run is cut into [`parts`], of which all lanes have gone through one before
//! the next begins.
//!
//! The way of an instruction stays the one that the crate's root describes. Its handler, in [`super::execute`], names what it
//! becomes here: a function of [`emit`], which has a [`builder::Builder`] and an [`assembler::Assembler`] to write with. What
//! has no such function ends a run, and so does whatever is jumped to. The first micro-operation of a run gets another
//! handler, [`enter`]; all others stay, so that code may be entered anywhere, and stops wherever it has to.
//!
//! Loads and stores look at their addresses themselves, by eight lanes ([`access`]), and call what looks further, or the handler,
//! where those lie otherwise than most do, or where there is a fault to be found ([`aid`]). Where addresses are made of the
//! thread's number by sums and products, as they mostly are, they are looked at once for a whole warp, before it begins
//! ([`plan`]). Loops of arithmetic stay in registers ([`loops`]); those with loads and stores whose addresses are known before each
//! turn are gone around without coming back ([`rounds`]). Where all of a program is one straight way, blocks are executed at once
//! ([`straight`]). What has no form in vector instructions is called there, and in loops ([`called`]).
//!
//! Compiled code is as good as the handlers bit for bit, and counts the same instructions, with one exception that
//! [`loops`] tells. A fault is the one that handlers would find: the first in the order of instructions of the warp that runs
//! first. Where the system does not let memory be executed, or the processor has no AVX2, there is none.

pub(crate) mod access;
mod aid;
mod assembler;
mod builder;
pub(crate) mod called;
pub(crate) mod emit;
mod liveness;
pub(crate) mod loops;
mod memory;
pub(crate) mod plan;
mod rounds;
pub(crate) mod special;
mod straight;

use std::ops::Range;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use self::assembler::{
    Arithmetic, Assembler, Condition, General, Label, Memory, R12, R13, R14, R15, RAX, RBP, RBX, RDI, RSP, at,
};
use self::builder::{Builder, EIGHTS, GROUP, NUMBERS, Name, POOL, PREDICATES, ROWS, Reads, SKIPPED};
use self::memory::Executable;
use super::code::{Neighbours, PAGE_BYTES};
use super::core::Core;
use super::execute::memory::STRONG;
use super::lanes::{self, Lanes};
use super::lower;
use super::micro::{Flow, Handler, Micro, PredicateIn, RowIndex};
use super::processor::Compile;
use super::run;
use super::warp::Warp;
pub(crate) use access::Common;
pub(crate) use liveness::Reach;
pub(crate) use straight::run_at_once;

/// Instructions of the shortest run that is worth it.
const SHORTEST: usize = 2;
/// Instructions of the longest.
const LONGEST: usize = 64;
/// How often a run is entered before it is compiled.
const OFTEN: u32 = 32;

/// What a micro-operation becomes in compiled code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Emit {
    pub run: fn(&mut Builder<'_>, &Micro) -> builder::Emitted,
    /// What it does with memory; of arithmetic nothing.
    pub access: Option<access::Access>,
    /// How its result depends on its sources, where that is by sums and products.
    pub linear: Option<plan::Linear>,
    /// Whether it is only for loops, and for blocks that are executed at once: by itself it is no better than its handler.
    pub apart: bool,
}

/// What lowering says of an instruction beside its micro-operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// What it becomes in compiled code.
    pub emit: Option<Emit>,
    /// What it does otherwise.
    pub reach: Reach,
}

/// Whether this machine runs compiled code.
///
/// # Errors
/// What it lacks.
pub(super) fn available() -> Result<(), &'static str> {
    if super::micro::Features::detect() == super::micro::Features::Baseline {
        return Err("the processor has no AVX2");
    }
    Executable::new().map(|_| ()).ok_or("the system lets no memory be executed")
}

/// A run of a page.
#[derive(Debug)]
struct Run {
    /// Number of its first instruction.
    start: usize,
    length: usize,
    /// The handler of its first instruction.
    first: Handler,
    /// How often it was entered.
    entered: AtomicU32,
    /// Null as long as there is none.
    code: AtomicPtr<u8>,
    /// Instructions of each of its parts: see [`parts`].
    parts: Vec<usize>,
    /// The loop that begins with it.
    around: Option<Loop>,
    /// The way to the end of the program that begins with it.
    straight: Option<straight::Straight>,
}

/// A loop of a page.
#[derive(Debug)]
struct Loop {
    length: usize,
    /// Instructions of each of its parts.
    parts: [u64; loops::PARTS],
    /// It has loads or stores: see [`rounds`].
    accesses: bool,
    /// Null as long as there is none.
    code: AtomicPtr<u8>,
    /// How often in a row nobody went around.
    fruitless: AtomicU32,
}

/// What a micro-operation may write, if it has a form in compiled code.
fn writes(op: &Micro, access: Option<access::Access>) -> impl Iterator<Item = Name> {
    // No arithmetic writes more than two.
    let rows = match access {
        Some(access) if access.stores => 0,
        Some(access) => access.words(),
        None => 2,
    };
    let rows = (0..rows).map(|word| Name::Row(op.d.0.saturating_add(word)));
    rows.chain(op.to.map(|to| Name::Predicate(to.0)))
}

/// A part of a run: lanes go through one by eights, but all lanes of a warp are through before its next part begins. So what
/// one instruction stores is there for all lanes before the next one looks, and lanes that fault can be told what others
/// meet before.
#[derive(Debug, Default)]
struct Part {
    accesses: bool,
    /// Spaces in which it stores.
    stores: Vec<u8>,
    /// Guards of accesses.
    guards: Vec<u8>,
    /// Uniform registers that become constants.
    constants: Vec<Name>,
    /// It computes other uniform registers.
    uniform: bool,
}

impl Part {
    /// Takes another instruction in, if it may belong to the part.
    fn allow(&mut self, op: &Micro, access: Option<access::Access>) -> bool {
        if let Some(access) = access {
            let row = RowIndex((op.payload >> 32) as u16);
            let changed = |row: RowIndex| self.constants.contains(&Name::Row(row.0));
            let waits = if access.stores { self.accesses } else { self.stores.contains(&access.space) };
            if waits || self.uniform || changed(row) || changed(row.plus(1)) {
                return false;
            }
            self.accesses = true;
            self.guards.push(op.guard.0 & 15);
            if access.stores {
                self.stores.push(access.space);
            }
        }
        if op.kind & Micro::UNIFORM != 0 {
            if self.accesses {
                return false;
            }
            // What may be done once more changes nothing then.
            let constant = [op.a, op.b, op.c].iter().all(|row| row.is_pool() || *row == RowIndex::ZERO);
            if constant && op.kind == Micro::UNIFORM && op.from == [PredicateIn::TRUE; 3] {
                self.constants.extend(writes(op, None));
            } else {
                self.uniform = true;
            }
        }
        op.to.iter().all(|to| !self.guards.contains(&to.0))
    }
}

/// Instructions of each part of a run.
fn parts(ops: &[Micro], known: &[Known]) -> Vec<usize> {
    let mut parts = Vec::new();
    let mut part = Part::default();
    for (op, known) in ops.iter().zip(known) {
        let access = known.emit.and_then(|emit| emit.access);
        if parts.is_empty() || !part.allow(op, access) {
            part = Part::default();
            part.allow(op, access);
            parts.push(0);
        }
        if let Some(length) = parts.last_mut() {
            *length += 1;
        }
    }
    parts
}

/// Whether an instruction with a form in compiled code may belong to a run: one that looks for what others write takes something
/// off the budget, and does not.
fn may_belong(op: &Micro, known: &Known) -> bool {
    let access = known.emit.and_then(|emit| emit.access);
    access.is_none() || op.payload & STRONG == 0 && op.from == [PredicateIn::TRUE; 3]
}

/// The runs of a page.
#[derive(Debug)]
pub(super) struct Runs {
    known: Vec<Known>,
    /// Address of the page.
    page: u64,
    /// Registers of a thread.
    registers: u32,
    /// Rows of uniform registers.
    uniform: Range<u16>,
    neighbours: Neighbours,
    /// How often what is compiled later is wanted before it is.
    often: u32,
    runs: Vec<Run>,
    /// For each instruction one more than the number of the run that begins with it.
    of: Vec<u16>,
    compiled: Mutex<Compiled>,
}

/// What was compiled of a page.
#[derive(Debug, Default)]
struct Compiled {
    memory: Option<Executable>,
    live: Option<liveness::Live>,
    /// What the code refers to.
    sites: aid::Sites,
}

impl Runs {
    /// Finds the runs of a page, and gives the first instruction of each the handler [`enter`].
    pub(super) fn new(
        compile: Compile,
        page: u64,
        registers: u32,
        code: &mut [Micro],
        known: Vec<Known>,
        neighbours: Neighbours,
    ) -> Self {
        let of = vec![0; code.len()];
        let (runs, compiled) = (Vec::new(), Mutex::default());
        let uniform = RowIndex::scratch(registers, 0).0;
        let uniform = uniform - RowIndex::UNIFORM..uniform;
        let often = if compile == Compile::Always { 0 } else { OFTEN };
        let mut found = Self { known, page, registers, uniform, neighbours, often, runs, of, compiled };
        if compile == Compile::Never {
            return found;
        }
        let shortest = if compile == Compile::Always { 1 } else { SHORTEST };
        // What is jumped to begins a run.
        let mut leads = vec![false; code.len()];
        for (op, known) in code.iter().zip(&found.known) {
            if known.reach == Reach::Branch
                && let Some(lead) = leads.get_mut((op.payload.wrapping_sub(page) / 16) as usize)
            {
                *lead = true;
            }
        }
        let mut start = 0;
        while start < code.len() {
            let mut end = start;
            while let Some(known @ Known { emit: Some(_), .. }) = found.known.get(end)
                && end - start < LONGEST
                && (end == start || !leads[end])
                && may_belong(&code[end], known)
                && known.emit.is_none_or(|emit| !emit.apart)
            {
                end += 1;
            }
            if end - start >= shortest {
                let first = std::mem::replace(&mut code[start].run, enter);
                found.runs.push(Run {
                    start,
                    length: end - start,
                    first,
                    entered: AtomicU32::new(0),
                    code: AtomicPtr::default(),
                    parts: parts(&code[start..end], &found.known[start..end]),
                    around: loops::find(code, &found.known, page, start).map(|end| Loop {
                        length: end + 1 - start,
                        parts: loops::lengths(&found.known[start..=end]),
                        accesses: found.known[start..=end]
                            .iter()
                            .any(|known| known.emit.is_some_and(|emit| emit.access.is_some())),
                        code: AtomicPtr::default(),
                        fruitless: AtomicU32::new(0),
                    }),
                    straight: straight::find(code, &found.known, start),
                });
                found.of[start] = found.runs.len() as u16;
            }
            start = end.max(start + 1);
        }
        if compile == Compile::Always {
            for run in &found.runs {
                found.compile(run, code);
            }
        }
        found
    }

    /// The micro-operation of that number in the page's code, with its own handler.
    fn handled(&self, code: &[Micro], number: usize) -> Option<Micro> {
        let op = *code.get(number)?;
        Some(Micro { run: self.at(number).map_or(op.run, |run| run.first), ..op })
    }

    /// Gives the first instructions their own handlers again.
    pub(super) fn undo(&self, code: &mut [Micro]) {
        for run in &self.runs {
            if let Some(op) = code.get_mut(run.start) {
                op.run = run.first;
            }
        }
    }

    fn at(&self, number: usize) -> Option<&Run> {
        let number = usize::from(*self.of.get(number)?);
        self.runs.get(number.checked_sub(1)?)
    }

    /// The pages before and behind, if what was compiled depends on them.
    pub(super) fn neighbours(&self) -> &Neighbours {
        &self.neighbours
    }

    /// What lives in the page.
    fn live(&self, code: &[Micro]) -> liveness::Live {
        let Neighbours { pages, sm, features } = &self.neighbours;
        let about = |number: usize, start: u64| match &pages[number] {
            Some(bytes) => lower::about(bytes, start, *sm, self.registers, *features),
            None => (Vec::new(), Vec::new()),
        };
        let before = about(0, self.page.wrapping_sub(PAGE_BYTES));
        let behind = about(1, self.page.wrapping_add(PAGE_BYTES));
        let own = (code, self.known.as_slice());
        liveness::Live::new([(&before.0, &before.1), own, (&behind.0, &behind.1)], self.page)
    }

    /// Compiles a run. Without success everything stays as it is: handlers compute the same.
    #[cold]
    fn compile(&self, run: &Run, code: &[Micro]) {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if !run.code.load(Ordering::Relaxed).is_null() {
            return;
        }
        let Compiled { memory, live, sites } = &mut *compiled;
        let live = live.get_or_insert_with(|| self.live(code));
        let end = run.start + run.length;
        let (Some(ops), Some(known)) = (code.get(run.start..end), self.known.get(run.start..end)) else {
            return;
        };
        let Some((bytes, new)) = translate(ops, known, run, live, &self.uniform) else { return };
        if memory.is_none() {
            *memory = Executable::new();
        }
        if let Some(place) = memory.as_mut().and_then(|memory| memory.add(&bytes)) {
            sites.extend(new);
            run.code.store(place.as_ptr(), Ordering::Release);
        }
        self.compile_loop(run, code, &mut compiled);
    }

    /// Compiles the loop that begins with a run.
    fn compile_loop(&self, run: &Run, code: &[Micro], compiled: &mut Compiled) {
        let Compiled { memory: Some(memory), live: Some(live), sites } = compiled else { return };
        let Some(around) = &run.around else { return };
        let end = run.start + around.length;
        let (Some(ops), Some(known)) = (code.get(run.start..end), self.known.get(run.start..end)) else {
            return;
        };
        let uniform = &self.uniform;
        let translated = loops::translate(ops, known, run.start, live)
            .map(|bytes| (bytes, Vec::new()))
            .or_else(|| rounds::translate(ops, known, run.start, live, uniform));
        if let Some((bytes, new)) = translated
            && let Some(place) = memory.add(&bytes)
        {
            sites.extend(new);
            around.code.store(place.as_ptr(), Ordering::Release);
        }
    }

    /// The straight way to the end of the program from an instruction on.
    fn straight(&self, number: usize) -> Option<&straight::Straight> {
        self.at(number)?.straight.as_ref()
    }

    /// A straight way that is not compiled yet is wanted.
    #[cold]
    fn want_straight(&self, straight: &straight::Straight, number: usize, code: &[Micro]) {
        if straight.wanted.fetch_add(1, Ordering::Relaxed) != self.often {
            return;
        }
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let Compiled { memory, live, .. } = &mut *compiled;
        let live = live.get_or_insert_with(|| self.live(code));
        let end = number + straight.length - 1;
        let (Some(ops), Some(known)) = (code.get(number..end), self.known.get(number..end)) else { return };
        let Some(bytes) = straight::translate(ops, known, number, live, &self.uniform) else { return };
        if memory.is_none() {
            *memory = Executable::new();
        }
        if let Some(place) = memory.as_mut().and_then(|memory| memory.add(&bytes)) {
            straight.code.store(place.as_ptr(), Ordering::Release);
        }
    }
}

/// What compiled code is given.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Frame {
    /// Of each member the rows and the pool.
    pub rows: *const [*mut Lanes; 2],
    pub warps: *const *mut Warp,
    /// The lanes of each that run.
    pub groups: *const u32,
    pub count: usize,
    /// What loops leave.
    pub ledger: *mut loops::Ledger,
    /// What blocks that are executed at once do not reach.
    pub missed: *mut straight::Missed,
    /// The worker's windows on global memory.
    pub windows: *const super::memory::Windows,
    /// What accesses need beside.
    pub common: Common,
}

/// What compiled code returns that found a fault.
const FAULT: u64 = u64::MAX;

/// Compiled code: how many lanes guards kept from instructions, or [`FAULT`].
type Native = unsafe extern "sysv64" fn(&Frame) -> u64;

/// The handler of a run's first instruction. It keeps nothing on the stack, so that it goes on with a jump.
///
/// # Safety
/// As for [`run::chain`].
pub(super) unsafe fn enter(core: &mut Core<'_>, op: &Micro) -> Flow {
    let page = core.page;
    let Some(run) = page.runs.at(core.chain.number(op)) else {
        return core.fail(super::fault::FaultKind::UnknownInstruction);
    };
    // A seeded run counts what it would without compiled code, since clocks show it.
    if let Some(around) = &run.around
        && core.caches.random.is_none()
        && core.chain.goes_around(op, around.length)
        && let Some(code) = code(&around.code)
    {
        // SAFETY: the code is the loop's.
        match unsafe { go_around(core, op, around, code) } {
            Went::Nowhere => {}
            Went::Around => return Flow::Around,
            // SAFETY: the caller's promise, and all of the loop lies before the run's stop.
            Went::Behind => return unsafe { run::go_on(core, op, around.length) },
        }
    }
    if core.chain.holds(op, run.length) {
        if let Some(code) = code(&run.code) {
            // SAFETY: the code is the run's.
            if !unsafe { execute(core, code) } {
                return Flow::Fault;
            }
            // SAFETY: the caller's promise, and all of the run lies before its stop.
            return unsafe { run::go_on(core, op, run.length) };
        } else if run.entered.fetch_add(1, Ordering::Relaxed) == OFTEN {
            page.runs.compile(run, &page.code);
        }
    }
    // SAFETY: the caller's promise; this is the handler that lowering chose.
    unsafe { (run.first)(core, op) }
}

/// The code that was put somewhere, if there is any yet.
fn code(place: &AtomicPtr<u8>) -> Option<Native> {
    let code = place.load(Ordering::Acquire);
    // SAFETY: `compile` puts functions of this type there, or nothing, and the page that keeps them is borrowed by whoever
    // has the place.
    (!code.is_null()).then(|| unsafe { std::mem::transmute::<*mut u8, Native>(code) })
}

/// Executes a run. Whether there was no fault; of one the core says what and where.
///
/// # Safety
/// `code` is that of the run.
#[inline(never)]
unsafe fn execute(core: &mut Core<'_>, code: Native) -> bool {
    let frame = core.frame();
    // SAFETY: the rows and predicates of the team's members are read and written, as handlers do, by indices that lowering
    // checked, and memory where windows or the block's shared memory hold it.
    let result = unsafe { code(&frame) };
    if result == FAULT {
        return false;
    }
    core.skipped += result;
    true
}

/// Where lanes are after a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Went {
    /// Where they were, since the loop's code is not for them.
    Nowhere,
    /// Some of them at its beginning.
    Around,
    /// All of them behind its end.
    Behind,
}

/// How often in a row a loop's code may be tried in vain.
const FRUITLESS: u32 = 64;

/// Executes a loop.
///
/// # Safety
/// `code` is that of the loop.
#[inline(never)]
unsafe fn go_around(core: &mut Core<'_>, op: &Micro, around: &Loop, code: Native) -> Went {
    if around.accesses && around.fruitless.load(Ordering::Relaxed) >= FRUITLESS {
        return Went::Nowhere;
    }
    let mut ledger = loops::Ledger::default();
    let frame = Frame { ledger: &raw mut ledger, ..core.frame() };
    // SAFETY: as in `execute`.
    core.skipped += unsafe { code(&frame) };
    let members = ledger.members.iter().take(core.team.count);
    if around.accesses {
        // All lanes of a warp go around, or none.
        let turns = members.clone().map(|left| u64::from(left.turns[0])).sum::<u64>();
        if turns == 0 {
            around.fruitless.fetch_add(1, Ordering::Relaxed);
            return Went::Nowhere;
        }
        // Other workers read it: written only where it changes.
        if around.fruitless.load(Ordering::Relaxed) != 0 {
            around.fruitless.store(0, Ordering::Relaxed);
        }
        ledger.lanes[0] = turns * lanes::LANES as u64;
    }
    let mut most = 0;
    let mut stay = false;
    for (member, left) in members.enumerate() {
        let parts = left.turns.iter().zip(around.parts);
        let instructions = parts.map(|(turns, length)| u64::from(*turns) * length).sum();
        core.around.instructions += instructions;
        most = most.max(instructions);
        core.around.remain[member] = left.remain;
        stay |= left.remain != 0;
    }
    core.around.lanes +=
        ledger.lanes.iter().zip(around.parts).map(|(lanes, length)| lanes * length).sum::<u64>();
    core.chain.went_around(op, around.length, most as i64);
    if !stay {
        return Went::Behind;
    }
    core.chain.end_at(op, around.length - 1);
    Went::Around
}

/// The code of a run, and what it refers to.
type Translated = (Vec<u8>, aid::Sites);

const SAVED: [General; 6] = [RBX, RBP, R12, R13, R14, R15];

/// Where compiled functions have what the frame names of the members that are left, and how many eights are.
const ALL_ROWS: General = RBP;
const WARPS: General = R12;
const GROUPS: General = RBX;
const COUNT: General = R13;
const EIGHTS_LEFT: General = RDI;

/// What all compiled functions begin with.
fn prologue(asm: &mut Assembler) {
    for register in SAVED {
        asm.push(register);
    }
    begin_members(asm, RDI);
    asm.address(builder::CONSTANTS, std::ptr::from_ref(&NUMBERS).addr() as u64);
    asm.address(EIGHTS, lanes::eights().as_ptr().addr() as u64);
    asm.wide(Arithmetic::Xor, SKIPPED, SKIPPED);
}

/// Turns to the first member of the team.
fn begin_members(asm: &mut Assembler, frame: General) {
    asm.load_wide(ALL_ROWS, at(frame, std::mem::offset_of!(Frame, rows) as i32));
    asm.load_wide(WARPS, at(frame, std::mem::offset_of!(Frame, warps) as i32));
    asm.load_wide(GROUPS, at(frame, std::mem::offset_of!(Frame, groups) as i32));
    asm.load_wide(COUNT, at(frame, std::mem::offset_of!(Frame, count) as i32));
}

/// Turns to a member of the team, and its first eight lanes.
fn begin_member(asm: &mut Assembler) {
    asm.load_wide(ROWS, at(ALL_ROWS, 0));
    asm.load_wide(POOL, at(ALL_ROWS, 8));
    asm.load_wide(PREDICATES, at(WARPS, 0));
    asm.add_number(PREDICATES, std::mem::offset_of!(Warp, predicates) as i32);
    asm.load_narrow(GROUP, at(GROUPS, 0));
    asm.number(EIGHTS_LEFT, 4);
}

/// Goes on with the next eight lanes, if the member has any left.
fn next_eight(asm: &mut Assembler, eight: Label) {
    asm.shift_right(GROUP, 8);
    asm.add_number(ROWS, 32);
    asm.add_number(PREDICATES, 1);
    asm.add_number(EIGHTS_LEFT, -1);
    asm.jump_if(Condition::NotZero, eight);
}

/// Goes on with the next member, if there is one left.
fn next_member(asm: &mut Assembler, member: Label) {
    asm.add_number(ALL_ROWS, size_of::<[*mut Lanes; 2]>() as i32);
    asm.add_number(WARPS, size_of::<*mut Warp>() as i32);
    asm.add_number(GROUPS, size_of::<u32>() as i32);
    asm.add_number(COUNT, -1);
    asm.jump_if(Condition::NotZero, member);
}

/// Makes a mask of the lanes in RAX's lowest byte, which is the only one.
fn load_active(asm: &mut Assembler) {
    asm.shift_left(RAX, 5);
    asm.load(builder::ACTIVE, Memory { base: EIGHTS, index: Some(RAX), offset: 0 });
}

/// What they end with: the lanes that guards kept from instructions are the result.
fn restore(asm: &mut Assembler) {
    asm.wide(Arithmetic::Move, RAX, SKIPPED);
    asm.zero_upper();
    for register in SAVED.into_iter().rev() {
        asm.pop(register);
    }
    asm.ret();
}

/// Goes back to a member's first eight lanes.
fn begin_again(asm: &mut Assembler) {
    asm.add_number(ROWS, -4 * 32);
    asm.add_number(PREDICATES, -4);
    asm.load_narrow(GROUP, at(GROUPS, 0));
    asm.number(EIGHTS_LEFT, 4);
}

/// Bytes of the stack of functions with accesses.
const STACK: i32 = size_of::<access::Stack>() as i32;

/// What functions with accesses begin with.
fn begin_function(asm: &mut Assembler) {
    prologue(asm);
    asm.load_wide(access::WINDOWS_AT, at(RDI, std::mem::offset_of!(Frame, windows) as i32));
    asm.add_number(RSP, -STACK);
    for word in 0..size_of::<Common>() / 8 {
        asm.load_wide(RAX, at(RDI, (std::mem::offset_of!(Frame, common) + 8 * word) as i32));
        asm.store_wide(at(RSP, (std::mem::offset_of!(access::Stack, common) + 8 * word) as i32), RAX);
    }
    asm.store_wide(access::FRAME, RDI);
}

/// What they end with.
fn end_function(asm: &mut Assembler) {
    asm.add_number(RSP, STACK);
    restore(asm);
}

/// A function for a run: all members of a team, and of each all parts, by eight lanes at a time.
fn translate(
    ops: &[Micro],
    known: &[Known],
    run: &Run,
    live: &liveness::Live,
    uniform: &Range<u16>,
) -> Option<Translated> {
    let mut asm = Assembler::default();
    let mut sites = Vec::new();
    begin_function(&mut asm);
    let [member, fault] = [(); 2].map(|()| asm.label());
    asm.store_number(access::UNPLANNED, 0);
    asm.place(member);
    begin_member(&mut asm);
    let [general, done] = [(); 2].map(|()| asm.label());
    if let Some(planned) = plan::Planned::of(plan::Across::Warp, ops, known, run.start, live, uniform) {
        let fails = asm.label();
        asm.compare_number(GROUP, -1);
        asm.jump_if(Condition::NotZero, general);
        asm.compare_memory(access::UNPLANNED, 0);
        asm.jump_if(Condition::NotZero, general);
        planned.write(&mut asm, ops, known, uniform, fails)?;
        let eight = asm.label();
        asm.place(eight);
        let body = Body { ops, known, start: run.start, live, fault, planned: Some(&planned), passed: false };
        body.write(&mut asm, false, &mut sites, |builder| {
            next_eight(builder.asm, eight);
            builder.asm.jump(done);
            Some(())
        })?;
        asm.place(fails);
        asm.store_number(access::UNPLANNED, 1);
    }
    asm.place(general);
    let mut at = 0;
    for length in &run.parts {
        let part = at..at + length;
        let (ops, known) = (ops.get(part.clone())?, known.get(part)?);
        let start = run.start + at;
        if at != 0 {
            begin_again(&mut asm);
        }
        at += length;
        // Uniform registers are written whichever lanes run.
        let whole = ops.iter().any(|op| op.kind & Micro::UNIFORM != 0);
        let [eight, partial, next, end] = [(); 4].map(|()| asm.label());
        asm.place(eight);
        asm.low_byte(RAX, GROUP);
        asm.compare_number(RAX, 0xff);
        asm.jump_if(Condition::NotZero, partial);
        let body = Body { ops, known, start, live, fault, planned: None, passed: false };
        body.write(&mut asm, false, &mut sites, |builder| {
            next_eight(builder.asm, eight);
            builder.asm.jump(end);
            Some(())
        })?;
        asm.place(partial);
        if !whole {
            asm.narrow(Arithmetic::Test, RAX, RAX);
            asm.jump_if(Condition::Zero, next);
        }
        load_active(&mut asm);
        body.write(&mut asm, true, &mut sites, |builder| {
            builder.asm.jump(next);
            Some(())
        })?;
        asm.place(next);
        next_eight(&mut asm, eight);
        asm.place(end);
    }
    asm.place(done);
    next_member(&mut asm, member);
    end_function(&mut asm);
    asm.place(fault);
    asm.address(SKIPPED, FAULT);
    end_function(&mut asm);
    Some((asm.finish()?, sites))
}

/// A part of a run for eight lanes.
struct Body<'a> {
    ops: &'a [Micro],
    known: &'a [Known],
    /// Number of its first instruction in the page.
    start: usize,
    live: &'a liveness::Live,
    /// Where it goes when an access found a fault.
    fault: Label,
    /// What is known before, if all addresses are.
    planned: Option<&'a plan::Planned>,
    /// Pointers to what it accesses are already those of the next eight.
    passed: bool,
}

impl Body<'_> {
    /// Writes it, with what follows, and behind that what is rarely executed.
    fn write(
        &self,
        asm: &mut Assembler,
        masked: bool,
        sites: &mut aid::Sites,
        follow: impl FnOnce(&mut Builder<'_>) -> Option<()>,
    ) -> Option<()> {
        let end = self.start + self.ops.len();
        let last_read = |name: Name| self.live.last_read(name, self.start, end);
        let after = |name: Name, count: usize| self.live.lives(name, self.start + count);
        let reads = Reads { last: &last_read, after: &after };
        let mut builder = Builder::new(asm, masked, &reads).of(self.ops, self.known, self.start);
        if let Some(planned) = self.planned {
            builder = builder.plan(&planned.accesses, self.passed);
        }
        for (number, (op, known)) in self.ops.iter().zip(self.known).enumerate() {
            if self.planned.is_some_and(|planned| !planned.needed[number]) {
                builder.leave_out();
            } else {
                builder.emit(op, known.emit?).ok()?;
            }
        }
        builder.finish(|name| self.live.lives(name, end));
        follow(&mut builder)?;
        builder.write_cold(Some(self.fault));
        sites.append(&mut builder.sites);
        Some(())
    }
}
