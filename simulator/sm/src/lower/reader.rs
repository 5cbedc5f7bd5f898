//! An instruction as lowering reads it: every operand, mark and field must be asked for.
//!
//! [`Reader::finish`] refuses an instruction of which something was left unread that is not neutral. So a modifier that
//! an arm of lowering does not know stops the kernel, and is never skipped.

use sass::{Bank, FieldId, Half, ImmediateKind, Instruction, Marks, Operand};

use super::super::code::{ConstantUse, Pooled};
use super::super::execute::bindless;
use super::super::micro::{Execute, Features};
use super::super::micro::{Handler, Micro, PredicateIn, PredicateOut, RowIndex};
use super::super::native;

/// Why an instruction is not executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It is known, but not simulated in this form: what is missing.
    Unsupported(String),
    /// A form that decodes, and that the card takes for an illegal instruction.
    Illegal(&'static str),
    /// A register that the launch does not have.
    Register,
}

impl Refusal {
    /// Something of this form is not simulated.
    pub(super) fn unsupported(what: impl Into<String>) -> Self {
        Self::Unsupported(what.into())
    }
}

/// The result of reading something.
pub(super) type Read<T> = Result<T, Refusal>;

/// Rows of immediates and constants that a page's code reads.
#[derive(Debug, Default)]
pub(super) struct Pool {
    pub entries: Vec<Pooled>,
    pub uses: Vec<ConstantUse>,
    /// Instructions with operands of described banks.
    pub bindless: Vec<bindless::Operand>,
    /// Number of the instruction at hand.
    pub code: u16,
}

impl Pool {
    fn add(&mut self, entries: &[Pooled]) -> RowIndex {
        let known = self.entries.windows(entries.len().max(1)).position(|have| have == entries);
        let at = known.unwrap_or_else(|| {
            self.entries.extend_from_slice(entries);
            self.entries.len() - entries.len()
        });
        for (i, entry) in entries.iter().enumerate() {
            if matches!(entry, Pooled::Constant { .. }) {
                self.uses.push(ConstantUse { code: self.code, row: (at + i) as u16 });
            }
        }
        // A page has 256 instructions of at most four operands of eight words: far below the highest bit.
        RowIndex(RowIndex::POOL | at as u16)
    }
}

/// A source: its row and the marks that are left to apply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub row: RowIndex,
    pub marks: Marks,
    pub half: Half,
}

/// A memory address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address {
    pub base: RowIndex,
    /// The base is a register pair.
    pub wide: bool,
    /// Log2 of the base's factor.
    pub scale: u8,
    /// Uniform register added, a pair where `wide_uniform` says so.
    pub uniform: RowIndex,
    pub offset: i32,
}

/// One instruction being lowered.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    pub instruction: &'a Instruction,
    features: Features,
    registers: u32,
    pool: &'a mut Pool,
    operands: u32,
    fields: u32,
    /// An operand of a described bank: the description's row, byte offset, and words.
    bindless: Option<(RowIndex, u32, u16)>,
    /// The handlers that were asked for, and what they become in compiled code.
    emits: std::cell::RefCell<Vec<(Handler, Option<native::Emit>)>>,
}

/// How a 64-bit operand is made of a 32-bit immediate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Widen {
    Zero,
    Sign,
    /// The immediate is the high word.
    High,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        instruction: &'a Instruction,
        features: Features,
        registers: u32,
        pool: &'a mut Pool,
    ) -> Self {
        Self {
            instruction,
            features,
            registers,
            pool,
            operands: 0,
            fields: 0,
            bindless: None,
            emits: std::cell::RefCell::default(),
        }
    }

    /// What a micro-operation becomes in compiled code.
    pub(super) fn emit(&self, micro: &Micro) -> Option<native::Emit> {
        let emits = self.emits.borrow();
        emits.iter().rev().find(|(run, _)| std::ptr::fn_addr_eq(*run, micro.run))?.1
    }

    /// The handler of a kind of micro-operation.
    pub(super) fn handler<T: Execute>(&self) -> Handler {
        let handler = self.features.handler::<T>();
        self.emits.borrow_mut().push((handler, T::EMIT));
        handler
    }

    /// The same, compiled once: for what gains nothing from vector instructions or is rare.
    pub(super) fn plain_handler<T: Execute>(&self) -> Handler {
        let handler = Features::plain::<T>();
        self.emits.borrow_mut().push((handler, T::EMIT));
        handler
    }

    /// A micro-operation of that kind, without operands yet, compiled once.
    pub(super) fn plain_micro<T: Execute>(&self) -> Micro {
        Micro::new(self.plain_handler::<T>())
    }

    /// A micro-operation of that kind, without operands yet.
    pub(super) fn micro<T: Execute>(&self) -> Micro {
        Micro::new(self.handler::<T>())
    }

    /// A modifier field; 0 where the row has none.
    pub(super) fn field(&mut self, id: FieldId) -> u32 {
        match self.instruction.row.modifiers.iter().position(|modifier| modifier.id == id) {
            Some(index) => {
                self.fields |= 1 << index;
                self.instruction.field(id).unwrap_or(0)
            }
            None => 0,
        }
    }

    /// Whether a modifier field is there and not zero.
    pub(super) fn flag(&mut self, id: FieldId) -> bool {
        self.field(id) != 0
    }

    /// nvdisasm's spelling of a modifier field, empty where the row has none.
    pub(super) fn spelling(&mut self, id: FieldId) -> &'static str {
        self.field(id);
        self.instruction.spelling(id).unwrap_or("")
    }

    /// A field that changes no result here, such as a hint to a cache.
    pub(super) fn ignore(&mut self, id: FieldId) {
        self.field(id);
    }

    /// An operand that changes no result here.
    pub(super) fn ignore_operand(&mut self, slot: usize) {
        self.operands |= 1 << slot;
    }

    /// Whether the row has a slot of that number.
    pub(super) fn has(&self, slot: usize) -> bool {
        slot < self.instruction.operands().len()
    }

    /// An operand, of whatever kind.
    pub(super) fn operand(&mut self, slot: usize) -> Read<Operand> {
        self.operands |= 1 << slot;
        let operand = self.instruction.operands().get(slot).copied();
        operand.ok_or_else(|| Refusal::unsupported(format!("operand {slot} is missing")))
    }

    fn wrong<T>(&self, slot: usize) -> Read<T> {
        let operand = self.instruction.operands().get(slot);
        Err(Refusal::unsupported(format!("operand {slot} is {operand:?}")))
    }

    fn row(&self, index: u8, words: u16) -> Read<RowIndex> {
        if index == Operand::RZ {
            return Ok(RowIndex::ZERO);
        }
        if u32::from(index) + u32::from(words.max(1)) > self.registers {
            return Err(Refusal::Register);
        }
        Ok(RowIndex(RowIndex::REGISTERS + u16::from(index)))
    }

    fn uniform_row(&self, index: u8, words: u16) -> Read<RowIndex> {
        let zero = if self.instruction.arch >= sass::Arch::Sm100 { 255 } else { Operand::URZ };
        if index == zero {
            return Ok(RowIndex::ZERO);
        }
        if u16::from(index) + words.max(1) > RowIndex::UNIFORM {
            return Err(Refusal::Register);
        }
        Ok(RowIndex(RowIndex::REGISTERS + self.registers as u16 + u16::from(index)))
    }

    /// A destination of `words` registers, vector or uniform.
    pub(super) fn to(&mut self, slot: usize, words: u16) -> Read<RowIndex> {
        let row = match self.operand(slot)? {
            Operand::Register { index, .. } => self.row(index, words)?,
            Operand::UniformRegister { index, .. } => self.uniform_row(index, words)?,
            _ => return self.wrong(slot),
        };
        Ok(if row == RowIndex::ZERO { RowIndex::SINK } else { row })
    }

    /// A source of `words` registers with all its marks, which the caller must apply.
    pub(super) fn source(&mut self, slot: usize, words: u16, widen: Widen) -> Read<Source> {
        let (row, marks, half) = match self.operand(slot)? {
            Operand::Register { index, marks, half } => (self.row(index, words)?, marks, half),
            Operand::UniformRegister { index, marks, half } => (self.uniform_row(index, words)?, marks, half),
            Operand::Immediate { bits, kind } => {
                let low = Pooled::Immediate(bits as u32);
                let fill = match widen {
                    Widen::Sign if bits as i32 <= -1 => u32::MAX,
                    _ => 0,
                };
                let row = match (words, widen, kind) {
                    (0 | 1, ..) => self.pool.add(&[low]),
                    (2, Widen::High, _) | (2, _, ImmediateKind::F64High) => {
                        self.pool.add(&[Pooled::Immediate(0), low])
                    }
                    (2, ..) => self.pool.add(&[low, Pooled::Immediate(fill)]),
                    _ => return self.wrong(slot),
                };
                (row, Marks::default(), Half::Both)
            }
            Operand::Constant {
                bank: Bank::Number(bank), offset, index: Operand::RZ, marks, half, ..
            } => {
                let offset = offset as u32;
                let entries: Vec<_> = (0..u32::from(words.max(1)))
                    .map(|word| Pooled::Constant { bank, offset: offset + 4 * word, keep: u32::MAX, flip: 0 })
                    .collect();
                (self.pool.add(&entries), marks, half)
            }
            Operand::Constant {
                bank: Bank::Uniform(bank), offset, index: Operand::RZ, marks, half, ..
            } if words <= 2 && self.bindless.is_none() => {
                self.bindless = Some((self.uniform_row(bank, 2)?, offset as u32, words.max(1)));
                (RowIndex::scratch(self.registers, RowIndex::OPERAND), marks, half)
            }
            _ => return self.wrong(slot),
        };
        Ok(Source { row, marks, half })
    }

    /// A source of `words` registers without marks.
    pub(super) fn plain(&mut self, slot: usize, words: u16) -> Read<RowIndex> {
        let source = self.source(slot, words, Widen::Zero)?;
        if source.marks != Marks::default() || source.half != Half::Both {
            return self.wrong(slot);
        }
        Ok(source.row)
    }

    /// A 32-bit integer source that may be negated.
    pub(super) fn negatable(&mut self, slot: usize) -> Read<(RowIndex, bool)> {
        let source = self.source(slot, 1, Widen::Zero)?;
        if source.marks.absolute || source.marks.invert || source.half != Half::Both {
            return self.wrong(slot);
        }
        Ok((source.row, source.marks.negate))
    }

    /// A source that may be complemented.
    pub(super) fn invertible(&mut self, slot: usize) -> Read<(RowIndex, bool)> {
        let source = self.source(slot, 1, Widen::Zero)?;
        if source.marks.absolute || source.marks.negate || source.half != Half::Both {
            return self.wrong(slot);
        }
        Ok((source.row, source.marks.invert))
    }

    /// A source with sign and magnitude marks, of one register or with `words` 2 of FP64. Marks of constants are
    /// applied already.
    pub(super) fn float(&mut self, slot: usize, words: u16) -> Read<Source> {
        if let Operand::Constant {
            bank: Bank::Number(bank),
            offset,
            index: Operand::RZ,
            marks,
            half: Half::Both,
            ..
        } = self.operand(slot)?
            && !marks.invert
            // A mark of FP64 leaves NaNs alone, so that it needs the value.
            && (words == 1 || marks == Marks::default())
        {
            let keep = if marks.absolute { 0x7fff_ffff } else { u32::MAX };
            let flip = if marks.negate { 0x8000_0000 } else { 0 };
            let word = |offset, keep, flip| Pooled::Constant { bank, offset, keep, flip };
            let offset = offset as u32;
            let row = if words == 2 {
                self.pool.add(&[word(offset, u32::MAX, 0), word(offset + 4, keep, flip)])
            } else {
                self.pool.add(&[word(offset, keep, flip)])
            };
            return Ok(Source { row, marks: Marks::default(), half: Half::Both });
        }
        let source = self.source(slot, words, Widen::High)?;
        if source.marks.invert || source.half != Half::Both {
            return self.wrong(slot);
        }
        Ok(source)
    }

    /// A 32-bit source with sign and magnitude marks that stay to be applied, for what wants the value without them too.
    pub(super) fn marked(&mut self, slot: usize) -> Read<Source> {
        let source = self.source(slot, 1, Widen::High)?;
        if source.marks.invert || source.half != Half::Both {
            return self.wrong(slot);
        }
        Ok(source)
    }

    /// A 32-bit source of which a half or a byte may be chosen: the source, its marks left to apply, and how far to
    /// shift the part down.
    pub(super) fn part(&mut self, slot: usize) -> Read<(Source, u64)> {
        let source = self.source(slot, 1, Widen::Zero)?;
        let shift = match source.half {
            Half::Both => 0,
            Half::Byte1 => 8,
            Half::Upper | Half::Byte2 => 16,
            Half::Byte3 => 24,
            _ => return self.wrong(slot),
        };
        if source.marks.invert {
            return self.wrong(slot);
        }
        Ok((source, shift))
    }

    /// A predicate that is read.
    pub(super) fn predicate(&mut self, slot: usize) -> Read<PredicateIn> {
        match self.operand(slot)? {
            Operand::Predicate { index, negated, uniform } => {
                Ok(PredicateIn((index & 7) | u8::from(uniform) << 3 | u8::from(negated) << 4))
            }
            _ => self.wrong(slot),
        }
    }

    /// A predicate that is written.
    pub(super) fn predicate_to(&mut self, slot: usize) -> Read<PredicateOut> {
        match self.operand(slot)? {
            Operand::Predicate { index: 7, .. } => Ok(PredicateOut::NONE),
            Operand::Predicate { index, uniform, .. } => {
                Ok(PredicateOut((index & 7) | u8::from(uniform) << 3))
            }
            _ => self.wrong(slot),
        }
    }

    /// One word of the pair Rpc, by the operand's word.
    pub(super) fn scratch(&mut self, slot: usize) -> Read<RowIndex> {
        let word = self.word(slot)?;
        Ok(RowIndex::scratch(self.registers, u16::from(word & 1)))
    }

    /// An immediate.
    pub(super) fn immediate(&mut self, slot: usize) -> Read<u64> {
        match self.operand(slot)? {
            Operand::Immediate { bits, .. } => Ok(bits),
            _ => self.wrong(slot),
        }
    }

    /// One of a row's own words, by its number.
    pub(super) fn word(&mut self, slot: usize) -> Read<u8> {
        match self.operand(slot)? {
            Operand::Word(value) => Ok(value),
            _ => self.wrong(slot),
        }
    }

    /// A code address or distance.
    pub(super) fn label(&mut self, slot: usize) -> Read<u64> {
        match self.operand(slot)? {
            Operand::Label { target } => Ok(target as u64),
            _ => self.wrong(slot),
        }
    }

    /// A row that holds a number in every lane.
    pub(super) fn constant_row(&mut self, value: u32) -> RowIndex {
        self.pool.add(&[Pooled::Immediate(value)])
    }

    /// A row that holds a word of a constant bank in every lane.
    pub(super) fn constant_word(&mut self, bank: u8, offset: u32) -> RowIndex {
        self.pool.add(&[Pooled::Constant { bank, offset, keep: u32::MAX, flip: 0 }])
    }

    /// The first of `words` registers that an address operand without anything else names.
    pub(super) fn vector_address(&mut self, slot: usize, words: u16) -> Read<RowIndex> {
        match self.operand(slot)? {
            Operand::Address { base, scale: 0, uniform: None, descriptor: None, offset: 0, .. } => {
                self.row(base, words)
            }
            _ => self.wrong(slot),
        }
    }

    /// An index register that an operand names.
    pub(super) fn index(&self, index: u8, uniform: bool) -> Read<RowIndex> {
        if uniform { self.uniform_row(index, 1) } else { self.row(index, 1) }
    }

    /// The pair of uniform registers that describes a bank.
    pub(super) fn described_bank(&self, register: u8) -> Read<RowIndex> {
        self.uniform_row(register, 2)
    }

    /// A convergence barrier.
    pub(super) fn convergence(&mut self, slot: usize) -> Read<u8> {
        match self.operand(slot)? {
            Operand::Barrier(index) => Ok(index & 15),
            _ => self.wrong(slot),
        }
    }

    /// A special register's number.
    pub(super) fn special(&mut self, slot: usize) -> Read<u8> {
        match self.operand(slot)? {
            Operand::Special(register) => Ok(register.0),
            _ => self.wrong(slot),
        }
    }

    /// An address of a space with addresses of 64 bits (`long`) or 32.
    pub(super) fn address(&mut self, slot: usize, long: bool) -> Read<Address> {
        let Operand::Address { base, wide, scale, uniform, descriptor: _, offset } = self.operand(slot)?
        else {
            return self.wrong(slot);
        };
        // Without a uniform part, the base alone says how long the address is.
        let wide = long && (wide || uniform.is_none());
        let uniform = match uniform {
            Some(index) => self.uniform_row(index, if long { 2 } else { 1 })?,
            None => RowIndex::ZERO,
        };
        Ok(Address { base: self.row(base, if wide { 2 } else { 1 })?, wide, scale, uniform, offset })
    }

    /// An instruction whose operand of a described bank is put into rows before it runs; any other as it is.
    pub(super) fn with_operand(&mut self, inner: Micro) -> Micro {
        let Some((bank, offset, words)) = self.bindless else { return inner };
        let to = RowIndex::scratch(self.registers, RowIndex::OPERAND);
        self.pool.bindless.push(bindless::Operand { inner, bank, offset, to, words });
        let micro = self.plain_micro::<bindless::WithOperand>();
        let payload = self.pool.bindless.len() as u64 - 1;
        Micro { guard: inner.guard, kind: inner.kind, payload, ..micro }
    }

    /// Refuses what was not read and is not neutral.
    pub(super) fn finish(&self) -> Read<()> {
        for (index, modifier) in self.instruction.row.modifiers.iter().enumerate() {
            let spelling = self.instruction.spelling(modifier.id).unwrap_or("");
            if self.fields >> index & 1 == 0 && !spelling.is_empty() {
                return Err(Refusal::unsupported(format!("modifier {spelling}")));
            }
        }
        for (slot, operand) in self.instruction.operands().iter().enumerate() {
            let neutral = match *operand {
                Operand::Predicate { index, negated, .. } => index == Operand::PT && !negated,
                Operand::Register { index, .. } => index == Operand::RZ,
                Operand::AllPredicates => true,
                _ => false,
            };
            if self.operands >> slot & 1 == 0 && !neutral && self.instruction.shows(slot) {
                return Err(Refusal::unsupported(format!("operand {slot} ({operand:?})")));
            }
        }
        Ok(())
    }
}
