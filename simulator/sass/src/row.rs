//! What a row is: one opcode with its operand slots and modifier fields.
use crate::{Arch, FieldId, ImmediateKind, Op};

/// Bit position that means "this slot has no such bit".
pub const NO_BIT: u8 = 255;

/// Bit position that means "as if set": the address of the row is always a pair.
pub const ALWAYS: u8 = 254;

/// Positions of a source's sign, magnitude and complement bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkBits {
    /// Bit of `-`.
    pub negate: u8,
    /// Bit of `|..|`.
    pub absolute: u8,
    /// Bit of `~`.
    pub invert: u8,
}

impl MarkBits {
    /// A source without marks.
    pub const NONE: Self = Self { negate: NO_BIT, absolute: NO_BIT, invert: NO_BIT };
}

/// Bits that choose which part of a register a source reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HalfBits {
    /// The whole register.
    None,
    /// Two bits from here: both halves, one 32-bit float, the low one twice, the high one twice.
    Packed(u8),
    /// The same without the float, from Hopper on.
    Paired(u8),
    /// Two bits from here as for packed halves, and bit 86, which with zeros in them negates the high half.
    Crossed(u8),
    /// Both halves in place, with the marks where packed sources have them.
    Whole,
    /// One bit: the low or the high half.
    Upper(u8),
    /// Two bits from here: one of four bytes.
    Byte(u8),
}

impl HalfBits {
    const fn mask(self) -> u128 {
        match self {
            Self::None | Self::Whole => 0,
            Self::Packed(lo) | Self::Paired(lo) | Self::Byte(lo) => 3 << lo,
            Self::Crossed(lo) => 3 << lo | 1 << 86,
            Self::Upper(lo) => 1 << lo,
        }
    }
}

/// A value split over at most two runs of bits, the first run being the low part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    /// Lowest bit and width of the low part.
    pub low: (u8, u8),
    /// Lowest bit and width of the high part; width 0 when there is none.
    pub high: (u8, u8),
}

impl Bits {
    /// One run of bits.
    #[must_use]
    pub const fn run(lo: u8, width: u8) -> Self {
        Self { low: (lo, width), high: (0, 0) }
    }

    /// Two runs of bits.
    #[must_use]
    pub const fn split(low: (u8, u8), high: (u8, u8)) -> Self {
        Self { low, high }
    }

    /// Number of bits.
    #[must_use]
    pub const fn width(self) -> u8 {
        self.low.1 + self.high.1
    }

    /// The bits of the word that belong to the value.
    #[must_use]
    pub const fn mask(self) -> u128 {
        (((1u128 << self.low.1) - 1) << self.low.0) | (((1u128 << self.high.1) - 1) << self.high.0)
    }

    /// Takes the value out of a word.
    #[must_use]
    pub const fn get(self, word: u128) -> u64 {
        let low = word >> self.low.0 & ((1 << self.low.1) - 1);
        let high = word >> self.high.0 & ((1 << self.high.1) - 1);
        (low | (high << self.low.1)) as u64
    }

    /// The value in place; `None` if it is too wide.
    #[must_use]
    pub const fn put(self, value: u64) -> Option<u128> {
        let value = value as u128;
        if value >> self.width() != 0 {
            return None;
        }
        let low = value & ((1 << self.low.1) - 1);
        Some((low << self.low.0) | ((value >> self.low.1) << self.high.0))
    }
}

/// Where an operand sits in the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotKind {
    /// Vector register of eight bits.
    Register {
        /// Lowest bit.
        lo: u8,
        /// Marks.
        marks: MarkBits,
        /// Part of the register that is read.
        half: HalfBits,
        /// The operand-reuse flags that apply, as a mask of [`crate::Control::reuse`].
        reuse: u8,
        /// Printed after the register (`.ROW`).
        tag: &'static str,
    },
    /// Uniform register of six bits (eight from sm_100 on).
    Uniform {
        /// Lowest bit.
        lo: u8,
        /// Marks.
        marks: MarkBits,
        /// Part of the register that is read.
        half: HalfBits,
    },
    /// Predicate of three bits.
    Predicate {
        /// Lowest bit.
        lo: u8,
        /// Bit of `!`.
        not: u8,
        /// Names a uniform predicate.
        uniform: bool,
        /// The number is stored inverted, so that zero bits mean `PT`.
        inverted: bool,
    },
    /// Immediate.
    Immediate {
        /// Place.
        bits: Bits,
        /// Spelling.
        kind: ImmediateKind,
    },
    /// Constant bank word: bank in 58:54, signed byte offset in 53:38.
    Constant {
        /// The offset counts words, in 53:40.
        words: bool,
        /// Marks.
        marks: MarkBits,
        /// Part of the word that is read.
        half: HalfBits,
        /// Lowest bit of an index register.
        index: u8,
        /// The index is uniform.
        uniform_index: bool,
    },
    /// Word of a constant bank that a pair of uniform registers describes: byte offset in 53:38.
    Bindless {
        /// Lowest bit of the uniform register.
        bank: u8,
        /// The offset counts words, in 53:40.
        words: bool,
        /// Marks.
        marks: MarkBits,
        /// Part of the word that is read.
        half: HalfBits,
        /// Lowest bit of an index register.
        index: u8,
    },
    /// Memory address: base register and signed offset.
    Address {
        /// Lowest bit of the base register.
        base: u8,
        /// Place of the offset.
        offset: Bits,
        /// Bit that makes the base a register pair, or `ALWAYS`.
        wide: u8,
        /// `.64` is not printed although the base is a pair.
        quiet: bool,
        /// Lowest of two scale bits.
        scale: u8,
        /// Lowest bit of the uniform register.
        uniform: u8,
        /// Bit that makes the uniform register a descriptor instead of an addend.
        descriptor: u8,
    },
    /// Address relative to the next instruction, in units of four bytes at bit 34.
    Label,
    /// The same in 63:34.
    NearLabel,
    /// Absolute address in units of four bytes in 80:34, with eight more low bits at 23:16 from sm_90 on.
    Absolute,
    /// The same with eight more low bits at 23:16 from sm_90 on.
    FarLabel,
    /// Address relative to the next instruction in 81:34, from sm_90 on in 81:26.
    WideLabel,
    /// Byte offset in the same place as a label's, printed as it stands.
    Displacement,
    /// A displacement with eight more low bits at 23:16 from sm_90 on.
    FarDisplacement,
    /// Uniform registers that describe memory, `gdesc[UR4]`.
    Described {
        /// Lowest bit.
        lo: u8,
        /// What stands in front of the brackets.
        name: &'static str,
    },
    /// Signs of two sources for each of four lanes, two bits a lane, the last lane printed first: `PP`, `PN`, `NP`,
    /// `ZP`.
    Signs(u8),
    /// Convergence barrier of four bits.
    Barrier(u8),
    /// Scoreboard of three bits.
    Scoreboard(u8),
    /// Set of the scoreboards 0 to 5.
    ScoreboardSet(u8),
    /// Special register at 79:72.
    Special,
    /// `PR`.
    AllPredicates,
    /// One of a list of words printed as an operand; `"!"` marks a value that decoding refuses.
    Word {
        /// Place.
        bits: Bits,
        /// nvdisasm's spelling of each value.
        spelling: &'static [&'static str],
    },
    /// Second or third source whose kind the opcode's form decides. Never in a finished row.
    Source(Source),
}

/// A source that takes a register, an immediate, a constant or a uniform register, by the opcode's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The third source (else the second).
    pub third: bool,
    /// Has a sign bit.
    pub negate: bool,
    /// Has a magnitude bit.
    pub absolute: bool,
    /// Has a complement bit (in the sign's place).
    pub invert: bool,
    /// Part of the register that is read; `Packed` moves with the place.
    pub half: HalfBits,
    /// How an immediate is meant.
    pub kind: ImmediateKind,
}

/// When the text leaves an operand out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hide {
    /// Never.
    Never,
    /// When it is `PT`, `RZ` or zero.
    Neutral,
    /// When it is neutral, before this generation.
    NeutralBefore(Arch),
    /// When all its bits are set.
    Ones,
    /// Always.
    Always,
    /// Unless the field is set.
    Unless(FieldId),
    /// Never, and it comes first in the text.
    Leading,
    /// When it is neutral; otherwise it comes first in the text, before the operands that the row lists before it.
    LeadingOrNeutral,
    /// Unless it is the third source that LEA reads with `.HI` and without `.SX32` only.
    LeaOperand,
}

/// An operand slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Where the operand sits.
    pub kind: SlotKind,
    /// When the text leaves it out.
    pub hide: Hide,
}

impl Slot {
    /// The same slot, left out of the text under a condition.
    #[must_use]
    pub const fn hidden(self, hide: Hide) -> Self {
        Self { kind: self.kind, hide }
    }
}

/// A modifier field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modifier {
    /// Which field.
    pub id: FieldId,
    /// Place.
    pub bits: Bits,
    /// nvdisasm's spelling of each value; `"!"` marks a value that decoding refuses. Values past the end
    /// are refused too.
    pub spelling: &'static [&'static str],
    /// The text has it behind this operand instead of behind the mnemonic.
    pub operand: Option<u8>,
}

/// One row of the instruction table.
#[derive(Clone, Debug)]
pub struct Row {
    /// Mnemonic.
    pub op: Op,
    /// Bit 91 above bits 11:0.
    pub opcode: u16,
    /// Value of the bits that no slot and no field covers.
    pub fixed: u128,
    /// Operand slots in printed order.
    pub slots: Vec<Slot>,
    /// Modifier fields in printed order.
    pub modifiers: Vec<Modifier>,
    /// First generation that has the row.
    pub since: Arch,
    /// Last generation that has the row.
    pub until: Arch,
    /// The guard is a uniform predicate.
    pub uniform_guard: bool,
}

/// Bits of the opcode: 91 and 11:0.
pub const OPCODE_MASK: u128 = 1 << 91 | 0xfff;
/// Bits of the guard.
pub const GUARD_MASK: u128 = 0xf000;

const fn bit(position: u8) -> u128 {
    if position >= ALWAYS { 0 } else { 1 << position }
}

const fn mark_mask(marks: MarkBits) -> u128 {
    bit(marks.negate) | bit(marks.absolute) | bit(marks.invert)
}

/// Width of a uniform register's number.
#[must_use]
pub fn uniform_width(arch: Arch) -> u8 {
    if arch >= Arch::Sm100 { 8 } else { 6 }
}

impl SlotKind {
    /// Place of a branch distance in units of four bytes; no bits for what is no code address.
    #[must_use]
    pub fn distance_bits(&self, arch: Arch) -> Bits {
        let far = arch >= Arch::Sm90;
        match *self {
            Self::WideLabel if far => Bits::run(26, 56),
            Self::FarLabel | Self::FarDisplacement if far => Bits::split((16, 8), (34, 48)),
            Self::Absolute if far => Bits::split((16, 8), (34, 47)),
            Self::Label | Self::WideLabel | Self::Displacement | Self::FarLabel | Self::FarDisplacement => {
                Bits::run(34, 48)
            }
            Self::Absolute => Bits::run(34, 47),
            Self::NearLabel => Bits::run(34, 30),
            _ => Bits::run(0, 0),
        }
    }

    /// Bits of the word that the slot covers.
    #[must_use]
    pub fn mask(&self, arch: Arch) -> u128 {
        let uniform = (1u128 << uniform_width(arch)) - 1;
        match *self {
            Self::Register { lo, marks, half, .. } => (0xff << lo) | mark_mask(marks) | half.mask(),
            Self::Uniform { lo, marks, half } => (uniform << lo) | mark_mask(marks) | half.mask(),
            Self::Predicate { lo, not, .. } => (7 << lo) | bit(not),
            Self::Immediate { bits, .. } => bits.mask(),
            Self::Constant { words, marks, half, index, uniform_index } => {
                let index = match (index, uniform_index) {
                    (NO_BIT, _) => 0,
                    (lo, true) => uniform << lo,
                    (lo, false) => 0xff << lo,
                };
                let offset = if words { 0x1f_fffc } else { 0x1f_ffff };
                (offset << 38) | index | mark_mask(marks) | half.mask()
            }
            Self::Bindless { bank, words, marks, half, index } => {
                let index = if index == NO_BIT { 0 } else { 0xff << index };
                // The bank's place holds nothing, whatever it holds.
                let offset = if words { 0xfffc } else { 0xffff };
                (offset << 38) | (uniform << bank) | index | mark_mask(marks) | half.mask()
            }
            Self::Address { base, offset, wide, scale, uniform: lo, descriptor, .. } => {
                let register = if lo == NO_BIT { 0 } else { uniform << lo };
                let scale = if scale == NO_BIT { 0 } else { 3 << scale };
                let base = if base == NO_BIT { 0 } else { 0xff << base };
                base | offset.mask() | bit(wide) | scale | register | bit(descriptor)
            }
            Self::Label
            | Self::NearLabel
            | Self::WideLabel
            | Self::Displacement
            | Self::FarLabel
            | Self::FarDisplacement
            | Self::Absolute => self.distance_bits(arch).mask(),
            Self::Described { lo, .. } => uniform << lo,
            Self::Signs(lo) => 0xff << lo,
            Self::Barrier(lo) => 15 << lo,
            Self::Scoreboard(lo) => 7 << lo,
            Self::ScoreboardSet(lo) => 63 << lo,
            Self::Special => 0xff << 72,
            Self::Word { bits, .. } => bits.mask(),
            Self::AllPredicates | Self::Source(_) => 0,
        }
    }
}

impl Row {
    /// Whether the generation has this row.
    #[must_use]
    pub fn exists_on(&self, arch: Arch) -> bool {
        self.since <= arch && arch <= self.until
    }

    /// Bits of the word that slots, fields, opcode, guard and control cover.
    #[must_use]
    pub fn covered(&self, arch: Arch) -> u128 {
        let slots = self.slots.iter().fold(0, |mask, slot| mask | slot.kind.mask(arch));
        let fields = self.modifiers.iter().fold(0, |mask, field| mask | field.bits.mask());
        slots | fields | OPCODE_MASK | GUARD_MASK | crate::Control::MASK
    }
}
