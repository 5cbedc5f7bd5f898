//! Runs whose addresses are known before they begin.
//!
//! Addresses are mostly made of the thread's number: of a warp's 32 lanes each is a step behind the one before, through all
//! sums, products and shifts that lead there. So two numbers stand for all lanes, and the code that is made here computes with
//! those, once for a warp: from registers of which it looks whether they rise so, to the memory of every access of the run, and
//! whether accesses keep out of each other's way. Where all of that holds, lanes go through the run without any further look, and
//! what only led to addresses is left out. Where anything does not, nothing has happened yet, and the run is executed part
//! by part: see [`super::translate`].

use std::ops::Range;

use super::super::execute::memory::{SCALE, SHARED, WIDE};
use super::super::micro::{Micro, PredicateIn, RowIndex};
use super::access::{self, Access, SCALARS, Span, scalar};
use super::assembler::{
    Arithmetic, Assembler, Condition, General, Label, Memory, R14, RAX, SHIFT_LEFT, Vector, Ymm, at,
};
use super::builder::{Builder, Name, Number};
use super::liveness::Live;
use super::straight::Missed;
use super::{COUNT, EIGHTS_LEFT, Frame, Known, Reach, special};

/// How an instruction's result depends on its sources, where it does so by sums and products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linear {
    /// The second source, or as many registers as `extra` says.
    Copy,
    Rows,
    /// `a + b`.
    Sum,
    /// `a - b`.
    Difference,
    /// `a + b + c`, each negated where `extra` says so.
    SumOfThree,
    /// `a * b`.
    Product,
    /// `a * b + c`.
    ProductSum,
    /// The same of 64 bits.
    Wide {
        signed: bool,
    },
    /// `(a << payload) + b`.
    Scaled,
    /// `a << payload`.
    Shifted,
    /// A part of the block's index.
    BlockIndex,
    /// A part of the thread's index.
    ThreadIndex,
    /// A predicate: whether the first source is less (bit 0 of the code), equal (1) or greater (2).
    Comparison {
        code: u32,
        signed: bool,
    },
}

impl Linear {
    /// Whether only functions with a [`super::access::Stack`] can make it.
    pub(super) fn is_special(self) -> bool {
        matches!(self, Self::BlockIndex | Self::ThreadIndex)
    }
}

/// Lanes of a warp.
const LANES: i32 = 32;

/// Of which lanes a plan tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Across {
    /// Those of the warp at hand.
    Warp,
    /// Those of a block from its beginning on, which is whole warps, of threads that differ only in x.
    Block,
}

/// A value of 32 lanes: what the first one has, and by how much each is above the one before, `None` if all are the same. 32
/// bits, in 8 bytes on the stack or in a row.
#[derive(Clone, Copy, Debug)]
struct Value {
    first: Memory,
    step: Option<Memory>,
}

/// An access whose memory is known before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reached {
    /// Number of its scalar, which points to what the eight lanes at hand access.
    pub scalar: usize,
    /// All lanes access one item.
    pub same: bool,
    pub access: Access,
}

/// A run whose addresses are known before it begins.
#[derive(Debug)]
pub(super) struct Planned {
    across: Across,
    /// Of each instruction the memory that it accesses.
    pub accesses: Vec<Option<Reached>>,
    /// Whether it is executed: others only led to addresses.
    pub needed: Vec<bool>,
    /// The same where a loop's next turn follows.
    pub needed_again: Vec<bool>,
}

impl Planned {
    /// What is known of a run, if its addresses come from sums and products. `start` is the number of its first instruction.
    pub(super) fn of(
        across: Across,
        ops: &[Micro],
        known: &[Known],
        start: usize,
        live: &Live,
        uniform: &Range<u16>,
    ) -> Option<Self> {
        if known.iter().all(|known| known.emit.is_none_or(|emit| emit.access.is_none())) {
            return None;
        }
        let mut asm = Assembler::default();
        let fail = asm.label();
        let accesses = Plan::new(across, &mut asm, ops, known, uniform, fail).write()?;
        // Lanes that a guard excludes are counted.
        let guarded =
            |number: usize| ops[number].kind & Micro::GUARDED != 0 && known[number].reach != Reach::Exit;
        let data = |number: usize| {
            accesses[number].map(|Reached { access, .. }| {
                let words = if access.stores { access.words() } else { 0 };
                (0..words).map(|word| Name::Row(ops[number].b.0 + word)).collect()
            })
        };
        let [needed, needed_again] =
            [false, true].map(|again| live.needed(start, ops.len(), again, guarded, data));
        Some(Self { across, accesses, needed, needed_again })
    }

    /// Writes what is executed before.
    pub(super) fn write(
        &self,
        asm: &mut Assembler,
        ops: &[Micro],
        known: &[Known],
        uniform: &Range<u16>,
        fail: Label,
    ) -> Option<()> {
        Plan::new(self.across, asm, ops, known, uniform, fail).write().map(|_| ())
    }
}

/// Code that computes addresses for all lanes at once.
struct Plan<'a> {
    across: Across,
    asm: &'a mut Assembler,
    ops: &'a [Micro],
    known: &'a [Known],
    /// Rows of uniform registers.
    uniform: &'a Range<u16>,
    /// Where it goes when something does not hold.
    fail: Label,
    scalars: usize,
    /// What registers, and pairs of them, hold before an instruction.
    values: Vec<((u16, Option<usize>), Value)>,
    pairs: Vec<((u16, Option<usize>), Value)>,
    /// Products of 64 bits, by the places of their factors.
    products: Vec<((Memory, Memory, bool), Value)>,
    /// Of a block the number of its last lane, and how long its lanes' items are together, by the bytes of one.
    last: Option<Memory>,
    spans: Vec<(u8, Memory)>,
    /// Where it goes when no window holds an access: of loads, and of stores.
    missed: [Option<Label>; 2],
}

impl<'a> Plan<'a> {
    fn new(
        across: Across,
        asm: &'a mut Assembler,
        ops: &'a [Micro],
        known: &'a [Known],
        uniform: &'a Range<u16>,
        fail: Label,
    ) -> Self {
        Self {
            across,
            asm,
            ops,
            known,
            uniform,
            fail,
            scalars: 0,
            values: Vec::new(),
            pairs: Vec::new(),
            products: Vec::new(),
            last: None,
            spans: Vec::new(),
            missed: [None; 2],
        }
    }

    /// Writes the code for all accesses of a run; what they are, by instruction. `None` if addresses come from anything else.
    fn write(mut self) -> Option<Vec<Option<Reached>>> {
        let plan = &mut self;
        if plan.across == Across::Block {
            plan.begin_block()?;
        }
        let mut all = Vec::new();
        for (number, known) in plan.known.iter().enumerate() {
            if known.reach == Reach::Exit {
                plan.settles(plan.ops[number].guard, number, false)?;
            }
            all.push(match known.emit.and_then(|emit| emit.access) {
                Some(access) => Some(plan.access(number, access)?),
                None => None,
            });
        }
        let accesses: Vec<Reached> = all.iter().flatten().copied().collect();
        for (number, one) in accesses.iter().enumerate() {
            for other in &accesses[..number] {
                if one.access.space == other.access.space && (one.access.stores || other.access.stores) {
                    plan.keep_apart(one, other)?;
                }
            }
        }
        plan.write_missed();
        Some(all)
    }

    /// Computes how many lanes there are.
    fn begin_block(&mut self) -> Option<()> {
        self.asm.wide(Arithmetic::Move, RAX, COUNT);
        self.asm.shift_left_wide(RAX, LANES.trailing_zeros() as u8);
        self.asm.add_number(RAX, -1);
        self.last = Some(self.keep()?);
        Some(())
    }

    /// RAX, of 64 bits, times the number of the last lane.
    fn times_last(&mut self) {
        match self.last {
            Some(last) => self.asm.multiply_memory(true, RAX, last),
            None => self.asm.multiply_number(RAX, LANES - 1),
        }
    }

    /// How long an access is in all lanes together.
    fn span(&mut self, same: bool, bytes: u8) -> Option<Span> {
        if same {
            return Some(Span::Fixed(bytes.into()));
        }
        if self.across == Across::Warp {
            return Some(Span::Fixed(i32::from(bytes) * LANES));
        }
        if let Some((_, span)) = self.spans.iter().find(|(known, _)| *known == bytes) {
            return Some(Span::At(*span));
        }
        self.asm.wide(Arithmetic::Move, R14, COUNT);
        self.asm.shift_left_wide(R14, (LANES.trailing_zeros() + u32::from(bytes).trailing_zeros()) as u8);
        let (_, span) = self.scalar()?;
        self.asm.store_wide(span, R14);
        self.spans.push((bytes, span));
        Some(Span::At(span))
    }

    /// Tells of an address that no window holds.
    fn write_missed(&mut self) {
        let [loads, stores] = self.missed;
        if loads.or(stores).is_none() {
            return;
        }
        let past = self.asm.label();
        self.asm.jump(past);
        for (label, stores) in [(loads, false), (stores, true)] {
            let Some(label) = label else { continue };
            self.asm.place(label);
            access::unreach(self.asm, stores);
            self.asm.load_wide(R14, access::FRAME);
            self.asm.load_wide(R14, at(R14, std::mem::offset_of!(Frame, missed) as i32));
            self.asm.store_wide(at(R14, std::mem::offset_of!(Missed, address) as i32), RAX);
            self.asm.store_number(at(R14, std::mem::offset_of!(Missed, stores) as i32), stores.into());
            self.asm.jump(self.fail);
        }
        self.asm.place(past);
    }

    /// Fails unless a predicate has one value in all lanes before an instruction.
    fn settles(&mut self, operand: PredicateIn, before: usize, value: bool) -> Option<()> {
        let (index, inverted) = (operand.0 & 15, operand.0 >> 4 & 1 != 0);
        let value = value != inverted;
        if index & 7 == 7 {
            return value.then_some(());
        }
        let writer = (0..before).rev().find(|number| self.ops[*number].to.iter().any(|to| to.0 == index))?;
        let op = self.ops[writer];
        let Linear::Comparison { code, signed } = self.linear(writer)? else { return None };
        if op.to[0].0 != index || op.to[1].0 == index {
            return None;
        }
        match (op.extra & 3, value) {
            // Of both one is enough.
            (0, false) if op.from[0] == PredicateIn::TRUE => {}
            (0, true) | (1, false) => self.settles(op.from[0], writer, value)?,
            _ => return None,
        }
        self.compares(&op, if value { code } else { code ^ 7 }, signed, writer)
    }

    /// Fails unless the sources of an instruction compare so in all lanes. It is enough to look at the first and the last one.
    fn compares(&mut self, op: &Micro, code: u32, signed: bool, number: usize) -> Option<()> {
        let (a, b) = (self.value(op.a, number)?, self.value(op.b, number)?);
        let (line, with, code) = match (a.step, b.step) {
            (_, None) => (a, b.first, code),
            // The other way round less is greater.
            (None, _) => (b, a.first, code & 2 | code << 2 & 4 | code >> 2 & 1),
            _ => return None,
        };
        let unless = match (code, signed) {
            (1, false) => Condition::NotBelow,
            (3, false) => Condition::Above,
            (4, false) => Condition::NotAbove,
            (6, false) => Condition::Below,
            (1, true) => Condition::NotLess,
            (3, true) => Condition::Greater,
            (4, true) => Condition::NotGreater,
            (6, true) => Condition::Less,
            (2, _) => Condition::NotZero,
            // What both ends differ from may be between them.
            (5, _) if line.step.is_none() => Condition::Zero,
            (7, _) => return Some(()),
            _ => return None,
        };
        self.stays_in_range(line, signed);
        self.asm.load_narrow(RAX, line.first);
        self.asm.narrow_memory(Arithmetic::Compare, RAX, with);
        self.asm.jump_if(unless, self.fail);
        if let Some(step) = line.step {
            self.asm.load_narrow(RAX, step);
            self.times_last();
            self.asm.narrow_memory(Arithmetic::Add, RAX, line.first);
            self.asm.narrow_memory(Arithmetic::Compare, RAX, with);
            self.asm.jump_if(unless, self.fail);
        }
        Some(())
    }

    /// Room for a number of 64 bits.
    fn scalar(&mut self) -> Option<(usize, Memory)> {
        let number = self.scalars;
        self.scalars += 1;
        (number < SCALARS).then(|| (number, scalar(number)))
    }

    /// What RAX holds becomes a number.
    fn keep(&mut self) -> Option<Memory> {
        let (_, memory) = self.scalar()?;
        self.asm.store_wide(memory, RAX);
        Some(memory)
    }

    /// The last instruction before `before` that writes a row.
    fn writer(&self, row: RowIndex, before: usize) -> Option<usize> {
        (0..before).rev().find(|number| {
            let op = &self.ops[*number];
            let emit = self.known[*number].emit;
            let rows = match (emit.and_then(|emit| emit.access), emit.and_then(|emit| emit.linear)) {
                (Some(access), _) if access.stores => 0,
                (Some(access), _) => access.words(),
                (None, Some(Linear::Rows)) => op.extra.into(),
                (None, Some(Linear::Wide { .. }) | None) => 2,
                (None, Some(_)) => 1,
            };
            (op.d.0..op.d.0 + rows).contains(&row.0)
        })
    }

    /// How an instruction makes its result, if it does so in all lanes.
    fn linear(&self, number: usize) -> Option<Linear> {
        let op = &self.ops[number];
        if op.kind & Micro::GUARDED != 0 { None } else { self.known[number].emit?.linear }
    }

    /// The value of a register before an instruction.
    fn value(&mut self, row: RowIndex, before: usize) -> Option<Value> {
        if row.0 < RowIndex::SPAN {
            let zero = Builder::number_memory(Number::Zero);
            return Some(Value { first: zero, step: None });
        }
        if row.is_pool() {
            return Some(Value { first: Builder::memory(Name::Row(row.0)), step: None });
        }
        let writer = self.writer(row, before);
        if writer.is_none() && self.across == Across::Block {
            // Its warps may hold anything.
            return None;
        }
        if writer.is_none() && self.uniform.contains(&row.0) {
            return Some(Value { first: Builder::memory(Name::Row(row.0)), step: None });
        }
        let key = (row.0, writer);
        if let Some((_, value)) = self.values.iter().find(|(known, _)| *known == key) {
            return Some(*value);
        }
        let value = match writer {
            None => self.look(Builder::memory(Name::Row(row.0)))?,
            Some(number) => self.result(number, row)?,
        };
        self.values.push((key, value));
        Some(value)
    }

    /// What an instruction leaves in a row.
    fn result(&mut self, number: usize, row: RowIndex) -> Option<Value> {
        let op = self.ops[number];
        let shift = op.payload as u8 & 31;
        match self.linear(number)? {
            Linear::Copy => self.value(op.b, number),
            Linear::Rows => self.value(op.b.plus(row.0 - op.d.0), number),
            Linear::Sum => self.sum(&[(op.a, false), (op.b, false)], number),
            Linear::Difference => self.sum(&[(op.a, false), (op.b, true)], number),
            Linear::SumOfThree => {
                let negated = |slot: u8| op.extra >> slot & 1 != 0;
                self.sum(&[(op.a, negated(0)), (op.b, negated(1)), (op.c, negated(2))], number)
            }
            Linear::Product => self.product(&op, None, number),
            Linear::ProductSum => self.product(&op, Some(op.c), number),
            Linear::Scaled => self.shifted(op.a, shift, Some(op.b), number),
            Linear::Shifted => self.shifted(op.a, shift, None, number),
            Linear::BlockIndex => Some(Value { first: special::block_index_at(&op), step: None }),
            Linear::ThreadIndex if self.across == Across::Block => Some(match op.payload % 3 {
                0 => Value {
                    first: Builder::number_memory(Number::Zero),
                    step: Some(Builder::number_memory(Number::One)),
                },
                _ => Value { first: Builder::number_memory(Number::Zero), step: None },
            }),
            Linear::ThreadIndex => {
                let [bad, good] = [(); 2].map(|()| self.asm.label());
                let indices = special::find_thread_indices(self.asm, EIGHTS_LEFT, &op);
                let fail = std::mem::replace(&mut self.fail, bad);
                let value = self.look(indices);
                self.fail = fail;
                // Either way the eights are counted from the first on.
                self.asm.number(EIGHTS_LEFT, 4);
                self.asm.jump(good);
                self.asm.place(bad);
                self.asm.number(EIGHTS_LEFT, 4);
                self.asm.jump(fail);
                self.asm.place(good);
                value
            }
            // The low word of the pair.
            Linear::Wide { .. } if row == op.d => self.pair(row, number + 1),
            Linear::Wide { .. } | Linear::Comparison { .. } => None,
        }
    }

    fn sum(&mut self, parts: &[(RowIndex, bool)], number: usize) -> Option<Value> {
        let mut values = Vec::new();
        for (row, negated) in parts {
            values.push((self.value(*row, number)?, *negated));
        }
        let add = |plan: &mut Self, parts: &[(Memory, bool)]| {
            plan.asm.narrow(Arithmetic::Xor, RAX, RAX);
            for (part, negated) in parts {
                let operation = if *negated { Arithmetic::Subtract } else { Arithmetic::Add };
                plan.asm.narrow_memory(operation, RAX, *part);
            }
            plan.keep()
        };
        let firsts: Vec<_> = values.iter().map(|(value, negated)| (value.first, *negated)).collect();
        let steps: Vec<_> =
            values.iter().filter_map(|(value, negated)| value.step.map(|step| (step, *negated))).collect();
        let first = add(self, &firsts)?;
        let step = if steps.is_empty() { None } else { Some(add(self, &steps)?) };
        Some(Value { first, step })
    }

    /// The factors of a product, of which the second is the same in all lanes.
    fn factors(&mut self, op: &Micro, number: usize) -> Option<(Value, Value)> {
        let (a, b) = (self.value(op.a, number)?, self.value(op.b, number)?);
        match (a.step, b.step) {
            (_, None) => Some((a, b)),
            (None, _) => Some((b, a)),
            (_, Some(step)) => {
                // It may still be.
                self.asm.load_narrow(RAX, step);
                self.asm.narrow(Arithmetic::Test, RAX, RAX);
                self.asm.jump_if(Condition::NotZero, self.fail);
                Some((a, Value { step: None, ..b }))
            }
        }
    }

    fn product(&mut self, op: &Micro, addend: Option<RowIndex>, number: usize) -> Option<Value> {
        let (a, b) = self.factors(op, number)?;
        self.scaled(a, addend, number, |asm| asm.multiply_memory(false, RAX, b.first))
    }

    fn shifted(&mut self, a: RowIndex, shift: u8, b: Option<RowIndex>, number: usize) -> Option<Value> {
        let a = self.value(a, number)?;
        self.scaled(a, b, number, |asm| asm.shift_left(RAX, shift))
    }

    /// What `scale` makes of a number in RAX, and an addend, if there is one.
    fn scaled(
        &mut self,
        a: Value,
        addend: Option<RowIndex>,
        number: usize,
        scale: impl Fn(&mut Assembler),
    ) -> Option<Value> {
        let b = match addend {
            Some(row) => Some(self.value(row, number)?),
            None => None,
        };
        let one = |plan: &mut Self, a: Option<Memory>, b: Option<Memory>| {
            match a {
                Some(a) => {
                    plan.asm.load_narrow(RAX, a);
                    scale(plan.asm);
                }
                None => plan.asm.narrow(Arithmetic::Xor, RAX, RAX),
            }
            if let Some(b) = b {
                plan.asm.narrow_memory(Arithmetic::Add, RAX, b);
            }
            plan.keep()
        };
        let first = one(self, Some(a.first), b.map(|b| b.first))?;
        let step = b.and_then(|b| b.step);
        let step = if a.step.is_some() || step.is_some() { Some(one(self, a.step, step)?) } else { None };
        Some(Value { first, step })
    }

    /// The value of a register pair before an instruction: 64 bits each.
    fn pair(&mut self, row: RowIndex, before: usize) -> Option<Value> {
        let (low, high) = (self.writer(row, before), self.writer(row.plus(1), before));
        if row.is_pool() || row.0 < RowIndex::SPAN {
            return self.words(row, row.plus(1), before);
        }
        let key = (row.0, low);
        if low != high {
            // Both words are moved there one by one.
            let (first, second) = (self.value(row, before)?, self.value(row.plus(1), before)?);
            return match (first.step, second.step) {
                (None, None) => Some(Value { first: self.widened(first.first, second.first)?, step: None }),
                _ => None,
            };
        }
        if low.is_none() && self.across == Across::Block {
            return None;
        }
        if low.is_none() && self.uniform.contains(&row.0) {
            return self.words(row, row.plus(1), before);
        }
        if let Some((_, value)) = self.pairs.iter().find(|(known, _)| *known == key) {
            return Some(*value);
        }
        let value = match low {
            None => {
                let value = self.value(row, before)?;
                let high = self.value(row.plus(1), before)?;
                if let Some(step) = high.step {
                    self.asm.load_narrow(RAX, step);
                    self.asm.narrow(Arithmetic::Test, RAX, RAX);
                    self.asm.jump_if(Condition::NotZero, self.fail);
                }
                self.stays_in_range(value, false);
                let (first, step) = (self.widened(value.first, high.first)?, value.step);
                let step = match step {
                    Some(step) => {
                        self.asm.load_signed(RAX, step);
                        Some(self.keep()?)
                    }
                    None => None,
                };
                Value { first, step }
            }
            Some(number) => {
                let op = self.ops[number];
                match self.linear(number)? {
                    Linear::Rows => self.pair(op.b.plus(row.0 - op.d.0), number)?,
                    Linear::Wide { signed } if op.d == row => self.wide(&op, signed, number)?,
                    _ => return None,
                }
            }
        };
        self.pairs.push((key, value));
        Some(value)
    }

    /// A pair that is the same in all lanes, of two rows.
    fn words(&mut self, low: RowIndex, high: RowIndex, before: usize) -> Option<Value> {
        let (low, high) = (self.value(low, before)?, self.value(high, before)?);
        Some(Value { first: self.widened(low.first, high.first)?, step: None })
    }

    fn widened(&mut self, low: Memory, high: Memory) -> Option<Memory> {
        self.asm.load_narrow(R14, high);
        self.asm.shift_left_wide(R14, 32);
        self.asm.load_narrow(RAX, low);
        self.asm.wide(Arithmetic::Or, RAX, R14);
        self.keep()
    }

    /// Fails where lanes of a value of 32 bits are not apart as numbers of that kind.
    fn stays_in_range(&mut self, value: Value, signed: bool) {
        let Some(step) = value.step else { return };
        self.asm.load_signed(RAX, step);
        self.times_last();
        if signed {
            self.asm.load_signed(R14, value.first);
            self.asm.wide(Arithmetic::Add, RAX, R14);
            self.asm.extend_signed(R14, RAX);
            self.asm.wide(Arithmetic::Compare, R14, RAX);
        } else {
            self.asm.load_narrow(R14, value.first);
            self.asm.wide(Arithmetic::Add, RAX, R14);
            self.asm.shift_right_wide(RAX, 32);
        }
        self.asm.jump_if(Condition::NotZero, self.fail);
    }

    /// `a * b + c` of 64 bits.
    fn wide(&mut self, op: &Micro, signed: bool, number: usize) -> Option<Value> {
        let (a, b) = self.factors(op, number)?;
        let product = self.wide_product(a, b, signed)?;
        if op.c == RowIndex::ZERO {
            return Some(product);
        }
        let c = self.pair(op.c, number)?;
        let first = self.wide_sum(product.first, c.first)?;
        let step = match (product.step, c.step) {
            (Some(a), Some(c)) => Some(self.wide_sum(a, c)?),
            (one, other) => one.or(other),
        };
        Some(Value { first, step })
    }

    fn wide_sum(&mut self, a: Memory, b: Memory) -> Option<Memory> {
        self.asm.load_wide(RAX, a);
        self.asm.wide_memory(Arithmetic::Add, RAX, b);
        self.keep()
    }

    /// `a * b` of 64 bits, where `b` is the same in all lanes. Addresses of several arrays are often made of one product.
    fn wide_product(&mut self, a: Value, b: Value, signed: bool) -> Option<Value> {
        let key = (a.first, b.first, signed);
        if let Some((_, product)) = self.products.iter().find(|(known, _)| *known == key) {
            return Some(*product);
        }
        self.stays_in_range(a, signed);
        let extend = |asm: &mut Assembler, to: General, from: Memory| {
            if signed { asm.load_signed(to, from) } else { asm.load_narrow(to, from) }
        };
        extend(self.asm, RAX, a.first);
        extend(self.asm, R14, b.first);
        self.asm.multiply(RAX, R14);
        let first = self.keep()?;
        let step = match a.step {
            Some(step) => {
                self.asm.load_signed(RAX, step);
                self.asm.multiply(RAX, R14);
                Some(self.keep()?)
            }
            None => None,
        };
        let product = Value { first, step };
        self.products.push((key, product));
        Some(product)
    }

    /// Looks whether a row rises evenly from lane to lane.
    fn look(&mut self, row: Memory) -> Option<Value> {
        let eight = |number: i32| Memory { offset: row.offset + 32 * number, ..row };
        self.asm.load_narrow(RAX, eight(0));
        self.asm.load_narrow(R14, Memory { offset: eight(0).offset + 4, ..eight(0) });
        let first = self.keep()?;
        self.asm.narrow(Arithmetic::Subtract, R14, RAX);
        let (_, step) = self.scalar()?;
        self.asm.store_wide(step, R14);
        let [all, steps, eighth, part] = [0, 1, 2, 3].map(Ymm);
        self.asm.vector_one(Vector::VPBROADCASTD, eighth, step);
        self.asm.vector(Vector::VPMULLD, steps, eighth, Builder::number_memory(Number::Steps1));
        self.asm.vector_one(Vector::VPBROADCASTD, part, first);
        self.asm.vector(Vector::VPADDD, steps, steps, part);
        self.asm.shift(SHIFT_LEFT, eighth, eighth, 3);
        self.asm.vector(Vector::VPXOR, all, steps, eight(0));
        for number in 1..4 {
            self.asm.vector(Vector::VPADDD, steps, steps, eighth);
            self.asm.vector(Vector::VPXOR, part, steps, eight(number));
            self.asm.vector(Vector::VPOR, all, all, part);
        }
        self.asm.vector_one(Vector::VPTEST, all, all);
        self.asm.jump_if(Condition::NotZero, self.fail);
        Some(Value { first, step: Some(step) })
    }

    /// The memory of an access, if all lanes access neighbouring items, or load one.
    fn access(&mut self, number: usize, access: Access) -> Option<Reached> {
        let op = self.ops[number];
        let wide = op.payload & WIDE != 0;
        let uniform = RowIndex((op.payload >> 32) as u16);
        let scale = (op.payload >> SCALE & 7) as u8;
        let offset = op.payload as u32 as i32;
        if op.kind & Micro::GUARDED != 0
            || op.from != [PredicateIn::TRUE; 3]
            || access.space != SHARED && scale != 0
        {
            return None;
        }
        let base = if wide { self.pair(op.a, number)? } else { self.value(op.a, number)? };
        let more = match (uniform, access.space) {
            (RowIndex::ZERO, _) => None,
            (_, SHARED) => Some(self.value(uniform, number)?),
            _ => Some(self.pair(uniform, number)?),
        };
        let mut same = base.step.is_none() && !access.stores;
        if more.is_some_and(|more| more.step.is_some()) {
            return None;
        }
        if let Some(step) = base.step {
            // What most lanes do is what the code is made for.
            same = access.space == SHARED && access.bytes > 4 && !access.stores;
            let expected = if same { 0 } else { i32::from(access.bytes) };
            if wide {
                self.asm.load_wide(RAX, step);
                self.asm.add_number(RAX, -expected);
                self.asm.wide(Arithmetic::Test, RAX, RAX);
            } else {
                self.asm.load_narrow(RAX, step);
                self.asm.shift_left(RAX, scale);
                self.asm.compare_number(RAX, expected);
            }
            self.asm.jump_if(Condition::NotZero, self.fail);
            if !wide && access.space != SHARED {
                self.stays_in_range(base, false);
            }
        } else if access.stores {
            return None;
        }
        let span = self.span(same, access.bytes)?;
        if wide {
            self.asm.load_wide(RAX, base.first);
        } else {
            self.asm.load_narrow(RAX, base.first);
        }
        if access.space == SHARED && scale != 0 {
            self.asm.shift_left(RAX, scale);
        }
        match (more, access.space) {
            (None, _) => {}
            (Some(more), SHARED) => self.asm.narrow_memory(Arithmetic::Add, RAX, more.first),
            (Some(more), _) => self.asm.wide_memory(Arithmetic::Add, RAX, more.first),
        }
        let missed = match self.across {
            Across::Warp => self.fail,
            Across::Block => *self.missed[usize::from(access.stores)].get_or_insert_with(|| self.asm.label()),
        };
        access::reach(self.asm, access, offset, span, self.fail, missed);
        let (scalar, memory) = self.scalar()?;
        span.take_off(self.asm, RAX);
        self.asm.store_wide(memory, RAX);
        Some(Reached { scalar, same, access })
    }

    /// Fails where two accesses meet, unless each lane meets itself.
    fn keep_apart(&mut self, one: &Reached, other: &Reached) -> Option<()> {
        let alike = one.access.bytes == other.access.bytes && !one.same && !other.same;
        let spans = [one, other].map(|access| self.span(access.same, access.access.bytes));
        let (Some(span), Some(other_span)) = (spans[0], spans[1]) else { return None };
        let apart = self.asm.label();
        self.asm.load_wide(RAX, scalar(one.scalar));
        self.asm.wide_memory(Arithmetic::Subtract, RAX, scalar(other.scalar));
        if alike {
            self.asm.jump_if(Condition::Zero, apart);
        }
        // From the first place before the other that meets it, they are as many as both are long together, less one.
        span.add_to(self.asm, RAX);
        self.asm.add_number(RAX, -1);
        if let (Span::Fixed(bytes), Span::Fixed(other_bytes)) = (span, other_span) {
            self.asm.compare_wide_number(RAX, bytes + other_bytes - 1);
        } else {
            self.asm.wide(Arithmetic::Xor, R14, R14);
            span.add_to(self.asm, R14);
            other_span.add_to(self.asm, R14);
            self.asm.add_number(R14, -1);
            self.asm.wide(Arithmetic::Compare, RAX, R14);
        }
        self.asm.jump_if(Condition::Below, self.fail);
        self.asm.place(apart);
        Some(())
    }
}
