//! Which rows and predicates are read again: what is not need not be stored.
//!
//! Only what is known for certain counts. An instruction that is not compiled may read anything, unless it is one of those that
//! are told here, and so may whatever stands further away than in the next page.

use super::super::micro::{Micro, PredicateIn, RowIndex};
use super::assembler::Assembler;
use super::builder::{Builder, Name, Reads};
use super::{Emit, Known};

/// What an instruction that is not compiled does with registers, and where it leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Anything may be read.
    Anything,
    /// It reads its sources, each of at most four registers, and goes on with the next.
    Sources,
    /// It ends, or goes on with the next.
    Exit,
    /// It leads to the address in its payload, or goes on with the next.
    Branch,
}

impl Reach {
    /// What is known of an instruction.
    pub(crate) fn of(op: sass::Op) -> Self {
        use sass::Op;
        match op {
            Op::Exit => Self::Exit,
            Op::Ldg | Op::Stg | Op::Lds | Op::Sts | Op::Ldl | Op::Stl | Op::Ld | Op::St | Op::Ldc => {
                Self::Sources
            }
            Op::S2r | Op::S2ur | Op::Cs2r | Op::Mufu | Op::Shfl | Op::Vote | Op::F2i | Op::I2f | Op::F2f => {
                Self::Sources
            }
            Op::Nop | Op::Bssy | Op::Bsync | Op::Bar | Op::Warpsync | Op::Fchk => Self::Sources,
            _ => Self::Anything,
        }
    }
}

/// A set of rows and predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Names([u64; Names::WORDS]);

impl Names {
    /// Rows of a warp are fewer.
    const ROWS: usize = 512;
    const WORDS: usize = Self::ROWS / 64 + 1;
    const NONE: Self = Self([0; Self::WORDS]);
    const ALL: Self = Self([u64::MAX; Self::WORDS]);

    fn place(name: Name) -> Option<(usize, u64)> {
        let bit = match name {
            Name::Row(row) if usize::from(row) < Self::ROWS => usize::from(row),
            Name::Row(_) => return None,
            Name::Predicate(number) => Self::ROWS + usize::from(number & 31),
        };
        Some((bit / 64, 1 << (bit % 64)))
    }

    fn add(&mut self, name: Name) {
        if let Some((word, bit)) = Self::place(name) {
            self.0[word] |= bit;
        }
    }

    fn has(&self, name: Name) -> bool {
        Self::place(name).is_some_and(|(word, bit)| self.0[word] & bit != 0)
    }

    fn all(self) -> Vec<Name> {
        let rows = (0..Self::ROWS).map(|row| Name::Row(row as u16));
        let predicates = (0..PREDICATES).map(Name::Predicate);
        rows.chain(predicates).filter(|name| self.has(*name)).collect()
    }

    fn map2(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        let mut out = self;
        out.0.iter_mut().zip(other.0).for_each(|(a, b)| *a = f(*a, b));
        out
    }

    fn or(self, other: Self) -> Self {
        self.map2(other, |a, b| a | b)
    }

    fn meets(self, other: Self) -> bool {
        self.map2(other, |a, b| a & b) != Self::NONE
    }

    fn without(self, other: Self) -> Self {
        self.map2(other, |a, b| a & !b)
    }
}

/// One instruction.
#[derive(Clone, Copy, Debug)]
struct Facts {
    reads: Names,
    /// In all lanes that go on.
    writes: Names,
    /// Whether the next one follows.
    next: bool,
    /// The number of the one that may follow instead; past the end if it is in another page.
    other: Option<usize>,
}

/// What lives in a page.
#[derive(Debug)]
pub(super) struct Live {
    /// Instructions of the page before that are known.
    ahead: usize,
    facts: Vec<Facts>,
    /// What is read from each instruction on.
    before: Vec<Names>,
}

/// Predicates of a warp, uniform ones included.
const PREDICATES: u8 = 16;

/// Registers of the longest source of [`Reach::Sources`].
const SPAN: u16 = 4;

fn add_predicate(names: &mut Names, operand: PredicateIn) {
    names.add(Name::Predicate(operand.0 & 15));
}

impl Facts {
    fn compiled(op: &Micro, emit: Emit) -> Option<Self> {
        let mut asm = Assembler::default();
        let reads = Reads { last: &|_| 0, after: &|_, _| true };
        let mut builder = Builder::new(&mut asm, false, &reads);
        builder.emit(op, emit).ok()?;
        let mut facts = Self { reads: Names::NONE, writes: Names::NONE, next: true, other: None };
        for (name, written) in builder.log() {
            if written { facts.writes.add(name) } else { facts.reads.add(name) }
        }
        Some(facts)
    }

    fn of(op: &Micro, reach: Reach, start: u64, length: usize) -> Self {
        let mut facts = Self { reads: Names::ALL, writes: Names::NONE, next: true, other: None };
        if reach == Reach::Anything {
            return facts;
        }
        facts.reads = Names::NONE;
        op.from.into_iter().chain([op.guard]).for_each(|operand| add_predicate(&mut facts.reads, operand));
        let always = op.kind == 0 && op.from[0] == PredicateIn::TRUE;
        match reach {
            Reach::Exit => facts.next = !always,
            Reach::Branch => {
                facts.next = !always;
                let number = op.payload.wrapping_sub(start) / 16;
                facts.other = Some(usize::try_from(number).unwrap_or(length).min(length));
            }
            Reach::Sources | Reach::Anything => {
                // Addresses have a uniform part, whose row is in the payload.
                let uniform = RowIndex((op.payload >> 32) as u16);
                for row in [op.a, op.b, op.c, uniform] {
                    (0..SPAN).for_each(|word| facts.reads.add(Name::Row(row.0.saturating_add(word))));
                }
                if op.kind == 0 && op.from == [PredicateIn::TRUE; 3] {
                    facts.writes.add(Name::Row(op.d.0));
                }
            }
        }
        facts
    }
}

impl Live {
    /// Looks through a page of the address `start`, and the pages before and behind, which are empty if they are not known.
    pub(super) fn new(pages: [(&[Micro], &[Known]); 3], start: u64) -> Self {
        let ahead = pages[0].0.len();
        let start = start.wrapping_sub(16 * ahead as u64);
        let length = pages.iter().map(|(code, _)| code.len()).sum();
        let facts: Vec<Facts> = pages
            .into_iter()
            .flat_map(|(code, known)| code.iter().zip(known))
            .map(|(op, known)| {
                let compiled = known.emit.and_then(|emit| Facts::compiled(op, emit));
                compiled.unwrap_or_else(|| Facts::of(op, known.reach, start, length))
            })
            .collect();
        let mut before = vec![Names::NONE; facts.len()];
        loop {
            let mut changed = false;
            for (number, facts) in facts.iter().enumerate().rev() {
                let from = |number: usize| before.get(number).copied().unwrap_or(Names::ALL);
                let mut after = Names::NONE;
                if facts.next {
                    after = after.or(from(number + 1));
                }
                if let Some(other) = facts.other {
                    after = after.or(from(other));
                }
                let new = facts.reads.or(after.without(facts.writes));
                changed |= new != before[number];
                before[number] = new;
            }
            if !changed {
                return Self { ahead, facts, before };
            }
        }
    }

    /// Which instructions of a run are needed, of which the first has the number `start`: those that write what is read later
    /// (`again`: by the branch behind them, or where it leads, to their beginning), and those that are kept. Of accesses `data` says what they read.
    pub(super) fn needed(
        &self,
        start: usize,
        count: usize,
        again: bool,
        kept: impl Fn(usize) -> bool,
        data: impl Fn(usize) -> Option<Vec<Name>>,
    ) -> Vec<bool> {
        let start = self.ahead + start;
        let before = |number: usize| self.before.get(number).copied().unwrap_or(Names::ALL);
        let mut wanted = before(start + count);
        if again && let Some(branch) = self.facts.get(start + count) {
            wanted = before(start).or(branch.reads);
        }
        let mut needed = vec![true; count];
        for (number, needed) in needed.iter_mut().enumerate().rev() {
            let Some(facts) = self.facts.get(start + number) else { continue };
            let data = data(number);
            *needed = data.is_some() || kept(number) || facts.writes.meets(wanted);
            if !*needed {
                continue;
            }
            wanted = wanted.without(facts.writes);
            match data {
                Some(names) => names.into_iter().for_each(|name| wanted.add(name)),
                None => wanted = wanted.or(facts.reads),
            }
        }
        needed
    }

    /// Whether something may read what the name holds before the instruction of that number.
    pub(super) fn lives(&self, name: Name, number: usize) -> bool {
        self.before.get(self.ahead + number).is_none_or(|names| names.has(name))
    }

    /// What a loop keeps: what the next turn or the code behind reads of what it writes.
    pub(super) fn kept(&self, start: usize, end: usize) -> Vec<Name> {
        let mut written = Names::NONE;
        for facts in self.facts.get(self.ahead + start..self.ahead + end).unwrap_or(&[]) {
            written = written.or(facts.writes);
        }
        let needed = |name: &Name| self.lives(*name, start) || self.lives(*name, end);
        written.all().into_iter().filter(needed).collect()
    }

    /// How many instructions from `start` on until the last one before `end` that reads it; 0 if there is none.
    pub(super) fn last_read(&self, name: Name, start: usize, end: usize) -> usize {
        let run = self.facts.get(self.ahead + start..self.ahead + end).unwrap_or(&[]);
        run.iter().rposition(|facts| facts.reads.has(name)).map_or(0, |number| number + 1)
    }
}
