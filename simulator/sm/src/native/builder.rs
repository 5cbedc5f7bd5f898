//! One run of micro-operations being compiled, for eight lanes: which values are in vector registers.
//!
//! A value is the newest content of a row or a predicate. It is loaded when it is first read, lives in a register as long
//! as there is one for it, and is stored when the run ends or its register is wanted. What is overwritten within the run is
//! never stored. Predicates are masks here: all ones in the lanes where they hold.
//!
//! Results of FP32 arithmetic are not made canonical where that does not show: a NaN is one for all arithmetic, whatever
//! its bits. Such values are `loose`.

use super::super::micro::{Micro, PredicateIn, PredicateOut, RowIndex};
use super::access::{Access, Base, Cold, Looked};
use super::aid::{Aid, Site, Sites};
use super::assembler::{
    Arithmetic, Assembler, Condition, General, Label, Memory, Operand, R8, R9, R10, R11, R14, RAX, RCX, RDI,
    RDX, RSI, RSP, Vector, Ymm, at,
};
use super::called;
use super::emit::Help;
use super::plan::Reached;
use super::{COUNT, Known};

/// Numbers that compiled code reads.
#[derive(Debug)]
#[repr(C, align(32))]
pub(super) struct Numbers([[u32; 8]; Number::COUNT]);

/// Declares [`Number`] and [`NUMBERS`], a row each.
macro_rules! numbers {
    ($($(#[$meta:meta])* $name:ident = $value:expr;)*) => {
        /// Which one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Number {
            $($(#[$meta])* $name,)*
        }

        impl Number {
            const COUNT: usize = [$(Self::$name),*].len();
        }

        /// Each for eight lanes.
        pub(super) static NUMBERS: Numbers = Numbers([$($value),*]);
    };
}

/// One number for all lanes.
const fn all(number: u32) -> [u32; 8] {
    [number; 8]
}

/// From zero on, rising by `step`.
const fn steps(step: u32) -> [u32; 8] {
    [0, step, 2 * step, 3 * step, 4 * step, 5 * step, 6 * step, 7 * step]
}

numbers! {
    Zero = all(0);
    One = all(1);
    Ones = all(u32::MAX);
    Sign = all(1 << 31);
    Magnitude = all(!(1 << 31));
    Nan = all(sass::lane::float::NAN);
    Exponent = all(0x7f80_0000);
    LowByte = all(0xff);
    LowHalf = all(0xffff);
    Float65536 = all(65536_f32.to_bits());
    SmallestNormal = all(1 << 23);
    /// Ones in five bits.
    Five = all(31);
    ThirtyTwo = all(32);
    Steps1 = steps(1);
    Steps2 = steps(2);
    Steps4 = steps(4);
    Steps8 = steps(8);
    Steps16 = steps(16);
}

impl Number {
    /// That rises by `step`, a power of two.
    pub(super) const fn steps(step: u32) -> Self {
        match step {
            0 | 1 => Self::Steps1,
            2 => Self::Steps2,
            4 => Self::Steps4,
            8 => Self::Steps8,
            _ => Self::Steps16,
        }
    }
}

/// Where rows of the warp begin, for the lanes at hand.
pub(super) const ROWS: General = RDX;
/// Where rows of the pool begin.
pub(super) const POOL: General = RSI;
/// The byte of P0 with the lanes at hand.
pub(super) const PREDICATES: General = RCX;
/// The lanes that run, in its lowest byte.
pub(super) const GROUP: General = R8;
/// Counts lanes that guards keep from an instruction.
pub(super) const SKIPPED: General = R9;
/// [`NUMBERS`].
pub(super) const CONSTANTS: General = R10;
/// Masks of lanes by their byte.
pub(super) const EIGHTS: General = R11;
/// The mask of the lanes that run, where not all do.
pub(super) const ACTIVE: Ymm = Ymm(15);
/// What is needed for a moment.
pub(super) const SCRATCH: Ymm = Ymm(14);
/// Registers for values.
const VALUES: usize = 14;

/// What a value belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Name {
    Row(u16),
    Predicate(u8),
}

/// What a vector register holds.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    name: Option<Name>,
    /// It has to be stored.
    dirty: bool,
    /// A NaN in it may be any.
    loose: bool,
    /// For all lanes, whichever run.
    whole: bool,
    /// The instruction at hand uses it.
    held: bool,
    /// It is for one name of a loop.
    kept: bool,
    /// When it was last used.
    used: usize,
}

/// A predicate that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Truth {
    Always,
    Never,
    /// In the lanes of a mask.
    Where(Ymm),
    /// In the others.
    Unless(Ymm),
}

/// The registers gave out: the run is too complicated for one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// What emitting gives.
pub(crate) type Emitted = Result<(), Full>;

/// Who reads what names hold.
pub(super) struct Reads<'a> {
    /// The instruction of the run that reads a name last, counted from 1; 0 if none does.
    pub last: &'a dyn Fn(Name) -> usize,
    /// Whether anything may read what a name holds after so many instructions of the run.
    pub after: &'a dyn Fn(Name, usize) -> bool,
}

/// A run being compiled.
pub(crate) struct Builder<'a> {
    pub(super) asm: &'a mut Assembler,
    /// Not all lanes run.
    masked: bool,
    slots: [Slot; VALUES],
    /// Counts instructions, for the age of values.
    time: usize,
    reads: &'a Reads<'a>,
    /// The guard of the instruction at hand.
    guard: Truth,
    /// It is of the uniform datapath.
    whole: bool,
    /// What was read, and written in all lanes that run.
    log: Vec<(Name, bool)>,
    /// What a loop keeps in registers, the first of all, and stores in the end.
    kept: Vec<Name>,
    /// The instructions, and the number of the first in its page.
    ops: &'a [Micro],
    known: &'a [Known],
    start: usize,
    /// Of each the memory that it accesses, where that is known before.
    planned: &'a [Option<Reached>],
    /// Pointers to it are already those of the next eight.
    passed: bool,
    /// Something was stored since its register was wanted.
    spilled: bool,
    /// Bases of loads that were looked at.
    pub(super) looked: Looked,
    /// What is to be written behind the run.
    pub(super) cold: Vec<Cold>,
    /// What calls for accesses are given, for as long as the code is there.
    pub(super) sites: Sites,
    calls: Vec<Call>,
}

/// General registers that calls save, in the order of pushes, and bytes below them: for the vector registers, and to align
/// the stack.
const SAVED: [General; 8] = [RCX, RDX, RSI, RDI, R8, R9, R10, R11];
const SAVED_BYTES: i32 = 16 * 32 + 8;

/// What registers held at some point that has to be stored.
#[derive(Debug)]
pub(super) struct Held(Vec<(usize, Slot)>);

/// A call for rare lanes, which is written behind the run.
#[derive(Debug)]
struct Call {
    here: Label,
    back: Label,
    help: Help,
    /// Three sources and the result.
    registers: [Ymm; 4],
}

impl<'a> Builder<'a> {
    pub(super) fn new(asm: &'a mut Assembler, masked: bool, reads: &'a Reads<'a>) -> Self {
        Self {
            asm,
            masked,
            slots: [Slot::default(); VALUES],
            time: 0,
            reads,
            guard: Truth::Always,
            whole: false,
            log: Vec::new(),
            kept: Vec::new(),
            ops: &[],
            known: &[],
            start: 0,
            planned: &[],
            passed: false,
            spilled: false,
            looked: Looked::default(),
            cold: Vec::new(),
            sites: Vec::new(),
            calls: Vec::new(),
        }
    }

    /// The guard of the instruction at hand.
    pub(super) fn guard(&self) -> Truth {
        self.guard
    }

    /// Whether code is for lanes of which not all run.
    pub(super) fn is_masked(&self) -> bool {
        self.masked
    }

    /// The same for the instructions of a run from the one of that number in its page on, all of which will be emitted.
    pub(super) fn of(mut self, ops: &'a [Micro], known: &'a [Known], start: usize) -> Self {
        (self.ops, self.known, self.start) = (ops, known, start);
        self
    }

    /// The same where the memory of all accesses is known before.
    pub(super) fn plan(mut self, planned: &'a [Option<Reached>], passed: bool) -> Self {
        (self.planned, self.passed) = (planned, passed);
        self
    }

    /// Whether pointers to it are already those of the next eight.
    pub(super) fn passed(&self) -> bool {
        self.passed
    }

    /// Whether something was stored before the end, since its register was wanted.
    pub(super) fn spilled(&self) -> bool {
        self.spilled
    }

    /// The memory of the access at hand, if it is known before.
    pub(super) fn planned(&self) -> Option<Reached> {
        self.planned.get(self.time.checked_sub(1)?).copied().flatten()
    }

    /// Leaves out an instruction that nobody needs.
    pub(super) fn leave_out(&mut self) {
        self.time += 1;
    }

    /// A name is read, by something else than the instruction's usual way.
    pub(super) fn reads(&mut self, name: Name) {
        self.log.push((name, false));
    }

    /// A name is read from memory, where the newest content is.
    pub(super) fn reads_in_memory(&mut self, name: Name) {
        if let Some(number) = self.find(name)
            && self.slots[number].dirty
        {
            self.write_back(number);
        }
        self.reads(name);
    }

    /// The register that holds a row, if one does.
    pub(super) fn near(&self, row: RowIndex) -> Option<Ymm> {
        self.find(Name::Row(row.0)).map(|number| Ymm(number as u8))
    }

    /// The loads that come next, until one name is written that `depends` names, from the instruction at hand on.
    pub(super) fn loads_ahead(&self, depends: impl Fn(Name) -> bool) -> Vec<(Micro, Access)> {
        let mut loads = Vec::new();
        let at_hand = self.time.saturating_sub(1);
        for (number, (op, known)) in self.ops.iter().zip(self.known).enumerate().skip(at_hand) {
            let access = known.emit.and_then(|emit| emit.access);
            if let Some(access) = access
                && !access.stores
                && number != at_hand
            {
                loads.push((*op, access));
            }
            if super::writes(op, access).any(&depends) {
                break;
            }
        }
        loads
    }

    /// What calls for the access at hand are given.
    pub(super) fn site(&self, base: Base, registers: [Option<Ymm>; 3], slot: usize) -> Site {
        let at_hand = self.time.saturating_sub(1);
        let destination = self.ops.get(at_hand).map_or(RowIndex::SINK, |op| op.d);
        let number = self.start + at_hand;
        Site { number, start: self.start, base, registers, slot, destination }
    }

    /// What is in registers and has to be stored.
    pub(super) fn held(&self) -> Held {
        let dirty = self.slots.iter().enumerate().filter(|(_, slot)| slot.dirty);
        Held(dirty.map(|(number, slot)| (number, *slot)).collect())
    }

    /// Stores what was held when the straight way was left.
    pub(super) fn copy_back(&mut self, held: &Held) {
        for (number, slot) in &held.0 {
            self.store_slot(*number, slot);
        }
    }

    /// Calls for an access, with the result in RAX.
    pub(super) fn call_aid(&mut self, aid: Aid, site: &Site) {
        let site = Box::new(site.clone());
        self.save();
        self.asm.wide(Arithmetic::Move, RDI, RSP);
        self.asm.address(RSI, std::ptr::from_ref(&*site).addr() as u64);
        self.asm.wide(Arithmetic::Move, RDX, COUNT);
        self.sites.push(site);
        self.asm.address(RAX, aid as usize as u64);
        self.restore();
    }

    /// Lets `help` compute a result anew where any lane of a mask holds.
    pub(super) fn call_where(&mut self, mask: Ymm, help: Help, registers: [Ymm; 4]) {
        let (here, back) = (self.asm.label(), self.asm.label());
        self.asm.vector_one(Vector::VMOVMSKPS, Ymm(RAX.0), mask);
        self.asm.narrow(Arithmetic::Test, RAX, RAX);
        self.asm.jump_if(Condition::NotZero, here);
        self.asm.place(back);
        self.calls.push(Call { here, back, help, registers });
    }

    /// Calls what computes an instruction of the lanes at hand from the registers of its sources.
    pub(super) fn call_lanes(&mut self, help: called::Help, op: &Micro, sources: [Ymm; 3], out: Ymm) {
        // Only what registers hold is saved.
        let mut held: Vec<Ymm> = (0..VALUES)
            .filter(|number| {
                let slot = &self.slots[*number];
                slot.name.is_some() || slot.held || slot.kept
            })
            .map(|number| Ymm(number as u8))
            .collect();
        if self.masked {
            held.push(ACTIVE);
        }
        let saved = |register: &Ymm| at(RSP, 32 * i32::from(register.0));
        for register in SAVED {
            self.asm.push(register);
        }
        self.asm.add_number(RSP, -SAVED_BYTES);
        for register in &held {
            self.asm.store(saved(register), *register);
        }
        let [a, b, c] = sources.map(|register| register.0);
        self.asm.wide(Arithmetic::Move, RDI, RSP);
        self.asm.number(RSI, i32::from_le_bytes([a, b, c, out.0]));
        self.asm.address(RDX, op.payload);
        self.asm.number(RCX, op.extra.into());
        self.asm.address(RAX, help as usize as u64);
        self.asm.zero_upper();
        self.asm.call(RAX);
        for register in &held {
            self.asm.load(*register, saved(register));
        }
        self.asm.add_number(RSP, SAVED_BYTES);
        for register in SAVED.into_iter().rev() {
            self.asm.pop(register);
        }
    }

    fn write_call(&mut self, call: &Call) {
        self.asm.place(call.here);
        self.save();
        self.asm.wide(Arithmetic::Move, RDI, RSP);
        self.asm.number(RSI, i32::from_le_bytes(call.registers.map(|register| register.0)));
        self.asm.address(RAX, call.help as usize as u64);
        self.restore();
        self.asm.jump(call.back);
    }

    /// Saves what a function may change, with the stack aligned as it expects it, see `prologue`: as [`super::aid::Saved`]
    /// has it.
    fn save(&mut self) {
        for register in SAVED {
            self.asm.push(register);
        }
        self.asm.add_number(RSP, -SAVED_BYTES);
        for number in 0..16 {
            self.asm.store(at(RSP, 32 * i32::from(number)), Ymm(number));
        }
    }

    /// Calls what RAX names, and takes back what was saved. RAX is the result.
    fn restore(&mut self) {
        self.asm.zero_upper();
        self.asm.call(RAX);
        for number in 0..16 {
            self.asm.load(Ymm(number), at(RSP, 32 * i32::from(number)));
        }
        self.asm.add_number(RSP, SAVED_BYTES);
        for register in SAVED.into_iter().rev() {
            self.asm.pop(register);
        }
    }

    /// Whether there is something to be written behind the run.
    pub(super) fn has_cold(&self) -> bool {
        !self.cold.is_empty() || !self.calls.is_empty()
    }

    /// Writes what belongs behind the run.
    ///
    /// `fault` is where accesses go that found one.
    pub(super) fn write_cold(&mut self, fault: Option<Label>) {
        for call in std::mem::take(&mut self.calls) {
            self.write_call(&call);
        }
        for cold in std::mem::take(&mut self.cold) {
            if let Some(fault) = fault {
                cold.write(self, fault);
            }
        }
    }

    /// Gives names that a loop writes registers of their own, and loads them.
    ///
    /// # Errors
    /// They are too many to leave enough for anything else.
    pub(super) fn keep(&mut self, names: &[Name]) -> Emitted {
        const MOST: usize = 8;
        if names.len() > MOST {
            return Err(Full);
        }
        for (number, name) in names.iter().enumerate() {
            let register = self.value(*name, false)?;
            debug_assert_eq!(usize::from(register.0), number, "they are the first");
            self.slots[number].kept = true;
            self.slots[number].held = false;
        }
        self.kept = names.to_vec();
        Ok(())
    }

    /// Blends what a loop's lanes wrote into its registers.
    ///
    /// # Errors
    /// There is no register to do it with.
    pub(super) fn commit(&mut self) -> Emitted {
        for number in 0..self.kept.len() {
            let name = self.kept[number];
            if self.slots[number].name.is_some() {
                continue;
            }
            // It may be in memory by now.
            let new = self.value(name, false)?;
            let register = Ymm(number as u8);
            self.asm.blend(register, register, new, ACTIVE);
            self.slots[usize::from(new.0)] = Slot::default();
            self.slots[number].name = Some(name);
        }
        Ok(())
    }

    /// The lanes in which a branch is taken. Those that its guard keeps from it are counted.
    pub(super) fn condition(&mut self, op: &Micro) -> Result<Truth, Full> {
        self.condition_of(op, true)
    }

    /// The same, where lanes are counted only if `counts` says so.
    pub(super) fn condition_of(&mut self, op: &Micro, counts: bool) -> Result<Truth, Full> {
        self.time += 1;
        self.guard = self.predicate(op.guard)?;
        if counts {
            self.count_skipped();
        }
        let taken = match (self.guard, self.predicate(op.from[0])?) {
            (guard, Truth::Always) => guard,
            (Truth::Always, taken) => taken,
            (guard, taken) => {
                let (guard, taken) = (self.mask(guard)?, self.mask(taken)?);
                Truth::Where(self.make(Vector::VPAND, guard, taken)?)
            }
        };
        self.guard = Truth::Always;
        Ok(taken)
    }

    /// Ends an instruction that was not emitted by [`Builder::emit`].
    pub(super) fn let_go(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.held = false);
    }

    /// Stores what a loop kept.
    pub(super) fn store_kept(&mut self) {
        for number in 0..self.kept.len() {
            // Lanes that do not run hold what they held.
            let name = Some(self.kept[number]);
            self.slots[number] = Slot { name, dirty: true, whole: true, ..Slot::default() };
            self.write_back(number);
        }
    }

    /// What was read so far, and with `true` what was written.
    pub(super) fn log(&self) -> impl Iterator<Item = (Name, bool)> {
        self.log.iter().copied()
    }

    /// Emits one micro-operation.
    pub(super) fn emit(&mut self, op: &Micro, emit: super::Emit) -> Emitted {
        self.time += 1;
        self.whole = op.kind & Micro::UNIFORM != 0;
        self.guard = Truth::Always;
        if op.kind & Micro::GUARDED != 0 {
            self.guard = self.predicate(op.guard)?;
            self.count_skipped();
        }
        if self.guard != Truth::Never {
            (emit.run)(self, op)?;
        }
        for slot in &mut self.slots {
            slot.held = false;
        }
        Ok(())
    }

    /// Adds the lanes that the guard excludes to the count.
    fn count_skipped(&mut self) {
        match self.guard {
            Truth::Always => return,
            Truth::Never => self.asm.number(RAX, -1),
            Truth::Where(_) | Truth::Unless(_) if self.masked => {
                let (mask, vector) = match self.guard {
                    Truth::Unless(mask) => (mask, Vector::VPAND),
                    Truth::Where(mask) => (mask, Vector::VPANDN),
                    Truth::Always | Truth::Never => return,
                };
                self.asm.vector(vector, SCRATCH, mask, ACTIVE);
                self.asm.vector_one(Vector::VMOVMSKPS, Ymm(RAX.0), SCRATCH);
                self.asm.count_ones(RAX, RAX);
                self.asm.wide(Arithmetic::Add, SKIPPED, RAX);
                return;
            }
            Truth::Where(mask) => {
                self.asm.vector_one(Vector::VMOVMSKPS, Ymm(RAX.0), mask);
                self.asm.not(RAX);
            }
            Truth::Unless(mask) => self.asm.vector_one(Vector::VMOVMSKPS, Ymm(RAX.0), mask),
        }
        self.asm.narrow(Arithmetic::And, RAX, GROUP);
        self.asm.low_byte(RAX, RAX);
        self.asm.count_ones(RAX, RAX);
        self.asm.wide(Arithmetic::Add, SKIPPED, RAX);
    }

    /// Stores everything that has to be, of which `lives` says so.
    pub(super) fn finish(&mut self, lives: impl Fn(Name) -> bool) {
        self.time += 1;
        for number in 0..VALUES {
            if let Some(name) = self.slots[number].name
                && self.slots[number].dirty
                && lives(name)
            {
                self.write_back(number);
            }
        }
    }

    pub(super) fn memory(name: Name) -> Memory {
        match name {
            Name::Row(row) if row & RowIndex::POOL != 0 => at(POOL, i32::from(row & !RowIndex::POOL) * 128),
            Name::Row(row) => at(ROWS, i32::from(row) * 128),
            Name::Predicate(number) => at(PREDICATES, i32::from(number) * 4),
        }
    }

    /// A number that code reads from memory.
    pub(super) fn number(&self, number: Number) -> Operand {
        Self::number_memory(number).into()
    }

    /// Where that is.
    pub(super) fn number_memory(number: Number) -> Memory {
        at(CONSTANTS, 32 * number as i32)
    }

    fn write_back(&mut self, number: usize) {
        let slot = self.slots[number];
        self.store_slot(number, &slot);
        (self.slots[number].dirty, self.slots[number].loose) = (false, false);
    }

    /// Stores what a register holds, or held.
    fn store_slot(&mut self, number: usize, slot: &Slot) {
        if slot.loose {
            self.canonical(Ymm(number as u8));
        }
        let register = Ymm(number as u8);
        let Some(name) = slot.name else { return };
        let memory = Self::memory(name);
        let partial = self.masked && !slot.whole;
        match name {
            Name::Row(_) if partial => {
                self.asm.load(SCRATCH, memory);
                self.asm.blend(SCRATCH, SCRATCH, register, ACTIVE);
                self.asm.store(memory, SCRATCH);
            }
            Name::Row(_) => self.asm.store(memory, register),
            Name::Predicate(_) => {
                self.asm.vector_one(Vector::VMOVMSKPS, Ymm(RAX.0), register);
                if partial {
                    // old ^ ((old ^ new) & group)
                    self.asm.load_byte(R14, memory);
                    self.asm.narrow(Arithmetic::Xor, RAX, R14);
                    self.asm.narrow(Arithmetic::And, RAX, GROUP);
                    self.asm.narrow(Arithmetic::Xor, RAX, R14);
                }
                self.asm.store_byte(memory, RAX);
            }
        }
    }

    /// Makes NaN canonical.
    fn settle(&mut self, number: usize) {
        if self.slots[number].loose {
            self.canonical(Ymm(number as u8));
            self.slots[number].loose = false;
        }
    }

    fn canonical(&mut self, register: Ymm) {
        self.asm.vector_immediate(Vector::VCMPPS, SCRATCH, register, register, UNORDERED);
        self.asm.blend(register, register, self.number(Number::Nan), SCRATCH);
    }

    /// A register without content, until the instruction ends.
    pub(super) fn temporary(&mut self) -> Result<Ymm, Full> {
        let free = (0..VALUES).find(|number| {
            let slot = &self.slots[*number];
            slot.name.is_none() && !slot.held && !slot.kept
        });
        let number = match free {
            Some(number) => number,
            None => {
                // What is never read again goes first, and of the rest what was not used for longest.
                let time = self.time;
                let rank = |slot: &Slot| {
                    let dead = slot.name.is_none_or(|name| (self.reads.last)(name) < time);
                    (!dead, slot.used)
                };
                let victim = (0..VALUES)
                    .filter(|number| !self.slots[*number].held && !self.slots[*number].kept)
                    .min_by_key(|number| rank(&self.slots[*number]))
                    .ok_or(Full)?;
                // The instruction at hand may still be about to read it.
                let wanted = |name| (self.reads.after)(name, self.time.saturating_sub(1));
                if self.slots[victim].dirty && self.slots[victim].name.is_some_and(wanted) {
                    self.spilled = true;
                    self.write_back(victim);
                }
                victim
            }
        };
        self.slots[number] = Slot { held: true, used: self.time, ..Slot::default() };
        Ok(Ymm(number as u8))
    }

    /// Gives a temporary register back before the instruction ends.
    pub(super) fn release(&mut self, register: Ymm) {
        let slot = &mut self.slots[usize::from(register.0)];
        if slot.name.is_none() {
            slot.held = false;
        }
    }

    fn find(&self, name: Name) -> Option<usize> {
        self.slots.iter().position(|slot| slot.name == Some(name))
    }

    fn value(&mut self, name: Name, loose: bool) -> Result<Ymm, Full> {
        self.log.push((name, false));
        if let Some(number) = self.find(name) {
            self.slots[number].held = true;
            self.slots[number].used = self.time;
            if !loose {
                self.settle(number);
            }
            return Ok(Ymm(number as u8));
        }
        let register = self.temporary()?;
        match name {
            Name::Row(row) if row < RowIndex::SPAN => {
                self.asm.vector(Vector::VPXOR, register, register, register);
            }
            Name::Row(_) => self.asm.load(register, Self::memory(name)),
            Name::Predicate(_) => {
                self.asm.load_byte(RAX, Self::memory(name));
                self.asm.shift_left(RAX, 5);
                self.asm.load(register, Memory { base: EIGHTS, index: Some(RAX), offset: 0 });
            }
        }
        self.slots[usize::from(register.0)].name = Some(name);
        Ok(register)
    }

    /// A source, in a register that must not be written.
    pub(super) fn bits(&mut self, row: RowIndex) -> Result<Ymm, Full> {
        self.value(Name::Row(row.0), false)
    }

    /// The same for FP32 arithmetic.
    pub(super) fn float(&mut self, row: RowIndex) -> Result<Ymm, Full> {
        self.value(Name::Row(row.0), true)
    }

    fn operand_of(&mut self, row: RowIndex, loose: bool) -> Result<Operand, Full> {
        let name = Name::Row(row.0);
        // What is read once more is loaded.
        let again = (self.reads.last)(name) > self.time && !row.is_pool();
        if self.find(name).is_none() && !again {
            self.log.push((name, false));
            return Ok(Self::memory(name).into());
        }
        Ok(self.value(name, loose)?.into())
    }

    /// A source, in a register or in memory.
    pub(super) fn bits_operand(&mut self, row: RowIndex) -> Result<Operand, Full> {
        self.operand_of(row, false)
    }

    /// The same for FP32 arithmetic.
    pub(super) fn float_operand(&mut self, row: RowIndex) -> Result<Operand, Full> {
        self.operand_of(row, true)
    }

    /// Whether the source is in a register.
    pub(super) fn is_near(&self, row: RowIndex) -> bool {
        self.find(Name::Row(row.0)).is_some()
    }

    /// A copy of a source for FP32 arithmetic, that may be written. `to` is what the instruction writes: a source that dies
    /// by that, or that nobody reads later, is not copied.
    pub(super) fn float_copy(&mut self, row: RowIndex, to: RowIndex) -> Result<Ymm, Full> {
        let name = Name::Row(row.0);
        self.log.push((name, false));
        if (row == to && self.guard == Truth::Always || !(self.reads.after)(name, self.time))
            && let Some(number) = self.find(name)
            && !self.slots[number].held
            && !self.slots[number].kept
        {
            self.slots[number] = Slot { held: true, used: self.time, ..Slot::default() };
            return Ok(Ymm(number as u8));
        }
        let source = self.operand_of(row, true)?;
        let copy = self.temporary()?;
        self.asm.load(copy, source);
        Ok(copy)
    }

    /// `vector(a, b)` in a new register.
    pub(super) fn make(&mut self, vector: Vector, a: Ymm, b: impl Into<Operand>) -> Result<Ymm, Full> {
        let out = self.temporary()?;
        self.asm.vector(vector, out, a, b);
        Ok(out)
    }

    /// Whether a row takes what nobody reads.
    fn is_sink(row: RowIndex) -> bool {
        (RowIndex::SINK.0..RowIndex::SINK.0 + RowIndex::SPAN).contains(&row.0)
    }

    /// The row becomes what is in a register, which is given away.
    pub(super) fn put(&mut self, row: RowIndex, register: Ymm) -> Emitted {
        if Self::is_sink(row) { Ok(()) } else { self.put_value(Name::Row(row.0), register, false) }
    }

    /// The same for a result of FP32 arithmetic.
    pub(super) fn put_float(&mut self, row: RowIndex, register: Ymm) -> Emitted {
        if Self::is_sink(row) { Ok(()) } else { self.put_value(Name::Row(row.0), register, true) }
    }

    /// The predicate becomes a mask, of which the register is given away.
    pub(super) fn put_predicate(&mut self, to: PredicateOut, register: Ymm) -> Emitted {
        if to == PredicateOut::NONE {
            return Ok(());
        }
        self.put_value(Name::Predicate(to.0), register, false)
    }

    fn put_value(&mut self, name: Name, register: Ymm, mut loose: bool) -> Emitted {
        let guard = self.guard;
        if guard != Truth::Always {
            // What is kept may be no number at all, and must stay as it is.
            let old = self.value(name, false)?;
            if loose {
                self.canonical(register);
                loose = false;
            }
            match guard {
                Truth::Where(mask) => self.asm.blend(register, old, register, mask),
                Truth::Unless(mask) => self.asm.blend(register, register, old, mask),
                Truth::Always | Truth::Never => {}
            }
        }
        self.log.push((name, true));
        self.looked.forget(name);
        // The instruction may still read what is overwritten.
        if let Some(number) = self.find(name) {
            self.slots[number].name = None;
            self.slots[number].dirty = false;
            self.slots[number].loose = false;
        }
        self.slots[usize::from(register.0)] = Slot {
            name: Some(name),
            dirty: true,
            loose,
            whole: self.whole,
            held: true,
            kept: false,
            used: self.time,
        };
        Ok(())
    }

    /// A predicate that is read.
    pub(super) fn predicate(&mut self, operand: PredicateIn) -> Result<Truth, Full> {
        let (number, inverted) = (operand.0 & 15, operand.0 >> 4 & 1 != 0);
        if number & 7 == 7 {
            return Ok(if inverted { Truth::Never } else { Truth::Always });
        }
        let mask = self.value(Name::Predicate(number), false)?;
        Ok(if inverted { Truth::Unless(mask) } else { Truth::Where(mask) })
    }

    /// A predicate as a mask, in a register that must not be written.
    pub(super) fn mask(&mut self, truth: Truth) -> Result<Ymm, Full> {
        match truth {
            Truth::Where(mask) => Ok(mask),
            Truth::Unless(mask) => self.make(Vector::VPXOR, mask, self.number(Number::Ones)),
            Truth::Always => {
                let out = self.temporary()?;
                self.asm.vector(Vector::VPCMPEQD, out, out, out);
                Ok(out)
            }
            Truth::Never => {
                let out = self.temporary()?;
                self.asm.vector(Vector::VPXOR, out, out, out);
                Ok(out)
            }
        }
    }
}

/// VCMPPS: one of both is NaN.
pub(super) const UNORDERED: u8 = 3;
