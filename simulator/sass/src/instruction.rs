//! One decoded instruction.
use crate::{Arch, Control, FieldId, Op, Operand, Row};

/// Most operands any row has.
pub const MAX_OPERANDS: usize = 10;
/// Most modifier fields any row has.
pub const MAX_MODIFIERS: usize = 14;

/// The predicate in front of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Guard {
    /// Predicate number; 7 is always true.
    pub index: u8,
    /// The instruction runs where the predicate is false.
    pub negated: bool,
    /// A uniform predicate (instructions of the uniform datapath).
    pub uniform: bool,
}

impl Guard {
    /// The guard that never hinders.
    pub const ALWAYS: Self = Self { index: 7, negated: false, uniform: false };
}

/// A decoded instruction: its row and the values of that row's slots and fields.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    /// Mnemonic.
    pub op: Op,
    /// The row it was decoded by.
    pub row: &'static Row,
    /// The word it was decoded from.
    pub word: u128,
    /// Byte address it was decoded at.
    pub address: u64,
    /// Instruction-set version.
    pub arch: Arch,
    /// Guard predicate.
    pub guard: Guard,
    /// Scheduling information.
    pub control: Control,
    pub(crate) operands: [Operand; MAX_OPERANDS],
    pub(crate) fields: [u16; MAX_MODIFIERS],
}

impl Instruction {
    /// Operands in printed order, destinations first. A row always yields all of its slots, those included
    /// that the text leaves out because they hold their neutral value (`PT`, `RZ`).
    #[must_use]
    pub fn operands(&self) -> &[Operand] {
        &self.operands[..self.row.slots.len()]
    }

    /// Whether the text shows the operand. What it leaves out holds its neutral value, or has no meaning beside
    /// the other fields.
    #[must_use]
    pub fn shows(&self, slot: usize) -> bool {
        slot < self.row.slots.len() && !crate::code::is_hidden(self, slot)
    }

    /// Replaces an operand; `None` if the row has no such slot.
    pub fn set_operand(&mut self, slot: usize, operand: Operand) -> Option<()> {
        if slot >= self.row.slots.len() {
            return None;
        }
        self.operands[slot] = operand;
        Some(())
    }

    /// Raw value of a modifier field, `None` when the row has no such field.
    #[must_use]
    pub fn field(&self, id: FieldId) -> Option<u32> {
        self.row.modifiers.iter().position(|m| m.id == id).map(|i| u32::from(self.fields[i]))
    }

    /// Whether the row has this field with a value other than zero.
    #[must_use]
    pub fn flag(&self, id: FieldId) -> bool {
        self.field(id).is_some_and(|value| value != 0)
    }

    /// nvdisasm's spelling of a modifier's value (`".FTZ"`, or empty), `None` when the row has no such field.
    /// This is the name to match on where a field's numbers mean little (`".STRONG.GPU"`, `".U32"`).
    #[must_use]
    pub fn spelling(&self, id: FieldId) -> Option<&'static str> {
        let index = self.row.modifiers.iter().position(|m| m.id == id)?;
        self.row.modifiers[index].spelling.get(usize::from(self.fields[index])).copied()
    }
}
