//! Words to instructions and back, by rows.
use crate::row::{ALWAYS, Hide, NO_BIT, OPCODE_MASK, uniform_width};
use crate::rows::table;
use crate::{
    Arch, Bank, Control, FieldId, Guard, Half, HalfBits, Instruction, MarkBits, Marks, Operand, Row, Slot,
    SlotKind, SpecialRegister,
};
use crate::{MAX_MODIFIERS, MAX_OPERANDS};
use thiserror::Error;

/// Why a word is no instruction that this crate knows.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// No row has this opcode.
    #[error("unknown opcode {opcode:#06x} on {arch} (word {word:#034x})")]
    UnknownOpcode {
        /// Bit 91 above bits 11:0.
        opcode: u16,
        /// Generation.
        arch: Arch,
        /// The whole word.
        word: u128,
    },
    /// A modifier field holds a value without a meaning here.
    #[error("{mnemonic}: unknown value {value:#x} of field {field:?} on {arch} (word {word:#034x})")]
    UnknownField {
        /// Mnemonic of the row.
        mnemonic: &'static str,
        /// Field.
        field: FieldId,
        /// Value found.
        value: u64,
        /// Generation.
        arch: Arch,
        /// The whole word.
        word: u128,
    },
    /// An operand has a value without a meaning here.
    #[error("{mnemonic}: unknown operand {operand:?} on {arch} (word {word:#034x})")]
    UnknownOperand {
        /// Mnemonic of the row.
        mnemonic: &'static str,
        /// Operand found.
        operand: Operand,
        /// Generation.
        arch: Arch,
        /// The whole word.
        word: u128,
    },
    /// Bits that no slot or field of the row covers differ from the row's.
    #[error("{mnemonic}: unknown bits {bits:#034x} differ on {arch} (word {word:#034x})")]
    UnknownBits {
        /// Mnemonic of the row.
        mnemonic: &'static str,
        /// The bits that differ.
        bits: u128,
        /// Generation.
        arch: Arch,
        /// The whole word.
        word: u128,
    },
}

/// Why an instruction has no encoding.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EncodeError {
    /// The operand is of another kind than the slot, or a part of it has no bits there.
    #[error("{mnemonic}: operand {slot} ({operand:?}) does not fit its slot")]
    Operand {
        /// Mnemonic.
        mnemonic: &'static str,
        /// Index of the slot.
        slot: usize,
        /// The operand.
        operand: Operand,
    },
    /// The field has no such value.
    #[error("{mnemonic}: field {field:?} has no value {value:#x}")]
    Field {
        /// Mnemonic.
        mnemonic: &'static str,
        /// Field.
        field: FieldId,
        /// Value.
        value: u64,
    },
    /// The guard does not fit.
    #[error("{mnemonic}: guard {guard:?} does not fit")]
    Guard {
        /// Mnemonic.
        mnemonic: &'static str,
        /// Guard.
        guard: Guard,
    },
    /// The control field does not fit.
    #[error("{mnemonic}: control {control:?} does not fit")]
    Control {
        /// Mnemonic.
        mnemonic: &'static str,
        /// Control.
        control: Control,
    },
}

fn get(word: u128, lo: u8, width: u8) -> u64 {
    (word >> lo & ((1 << width) - 1)) as u64
}

fn flag(word: u128, position: u8) -> bool {
    match position {
        NO_BIT => false,
        ALWAYS => true,
        _ => word >> position & 1 != 0,
    }
}

fn sign_extend(value: u64, width: u8) -> i64 {
    if width == 0 {
        return 0;
    }
    let unused = 64 - u32::from(width);
    ((value << unused) as i64) >> unused
}

fn marks_of(word: u128, bits: MarkBits) -> Marks {
    Marks {
        negate: flag(word, bits.negate),
        absolute: flag(word, bits.absolute),
        invert: flag(word, bits.invert),
    }
}

const PACKED: [Half; 4] = [Half::Both, Half::F32, Half::Low, Half::High];
const UPPER: [Half; 2] = [Half::Both, Half::Upper];
const BYTES: [Half; 4] = [Half::Both, Half::Byte1, Half::Byte2, Half::Byte3];

fn half_of(word: u128, bits: HalfBits) -> Half {
    match bits {
        HalfBits::None | HalfBits::Whole => Half::Both,
        HalfBits::Crossed(_) if flag(word, 86) => Half::LowNegatedHigh,
        HalfBits::Packed(lo) | HalfBits::Paired(lo) | HalfBits::Crossed(lo) => {
            PACKED[get(word, lo, 2) as usize]
        }
        HalfBits::Upper(lo) => UPPER[get(word, lo, 1) as usize],
        HalfBits::Byte(lo) => BYTES[get(word, lo, 2) as usize],
    }
}

fn distance(kind: &SlotKind, word: u128, arch: Arch) -> i64 {
    let bits = kind.distance_bits(arch);
    sign_extend(bits.get(word), bits.width()).wrapping_mul(4)
}

fn read(kind: &SlotKind, word: u128, address: u64, arch: Arch) -> Operand {
    let uniform_bits = uniform_width(arch);
    match *kind {
        SlotKind::Register { lo, marks, half, .. } => Operand::Register {
            index: get(word, lo, 8) as u8,
            marks: marks_of(word, marks),
            half: half_of(word, half),
        },
        SlotKind::Uniform { lo, marks, half } => Operand::UniformRegister {
            index: get(word, lo, uniform_bits) as u8,
            marks: marks_of(word, marks),
            half: half_of(word, half),
        },
        SlotKind::Described { lo, .. } => Operand::UniformRegister {
            index: get(word, lo, uniform_bits) as u8,
            marks: Marks::default(),
            half: Half::Both,
        },
        SlotKind::Predicate { lo, not, uniform, inverted } => {
            let index = get(word, lo, 3) as u8 ^ if inverted { 7 } else { 0 };
            Operand::Predicate { index, negated: flag(word, not), uniform }
        }
        SlotKind::Immediate { bits, kind } => Operand::Immediate { bits: bits.get(word), kind },
        SlotKind::Constant { words, marks, half, index, uniform_index } => {
            let raw = if words { get(word, 40, 14) << 2 } else { get(word, 38, 16) };
            let width = if uniform_index { uniform_bits } else { 8 };
            let indexed = index != NO_BIT;
            Operand::Constant {
                bank: Bank::Number(get(word, 54, 5) as u8),
                offset: if indexed { sign_extend(raw, 16) as i32 } else { raw as i32 },
                index: if indexed { get(word, index, width) as u8 } else { Operand::RZ },
                uniform_index,
                marks: marks_of(word, marks),
                half: half_of(word, half),
            }
        }
        SlotKind::Bindless { bank, words, marks, half, index } => {
            let raw = if words { get(word, 40, 14) << 2 } else { get(word, 38, 16) };
            let indexed = index != NO_BIT;
            Operand::Constant {
                bank: Bank::Uniform(get(word, bank, uniform_bits) as u8),
                offset: if indexed { sign_extend(raw, 16) as i32 } else { raw as i32 },
                index: if indexed { get(word, index, 8) as u8 } else { Operand::RZ },
                uniform_index: false,
                marks: marks_of(word, marks),
                half: half_of(word, half),
            }
        }
        SlotKind::Address { base, offset, wide, scale, uniform, descriptor, .. } => {
            let register = (uniform != NO_BIT).then(|| get(word, uniform, uniform_bits) as u8);
            let described = flag(word, descriptor);
            Operand::Address {
                base: if base == NO_BIT { Operand::RZ } else { get(word, base, 8) as u8 },
                wide: flag(word, wide),
                scale: if scale == NO_BIT { 0 } else { [0, 2, 3, 4][get(word, scale, 2) as usize] },
                uniform: if described { None } else { register },
                descriptor: if described { register } else { None },
                offset: sign_extend(offset.get(word), offset.width()) as i32,
            }
        }
        SlotKind::Label | SlotKind::NearLabel | SlotKind::WideLabel | SlotKind::FarLabel => Operand::Label {
            target: (address as i64).wrapping_add(16).wrapping_add(distance(kind, word, arch)),
        },
        SlotKind::Displacement | SlotKind::FarDisplacement => {
            Operand::Label { target: distance(kind, word, arch) }
        }
        SlotKind::Absolute => Operand::Label { target: (kind.distance_bits(arch).get(word) << 2) as i64 },
        SlotKind::Barrier(lo) => Operand::Barrier(get(word, lo, 4) as u8),
        SlotKind::Scoreboard(lo) => Operand::Scoreboard(get(word, lo, 3) as u8),
        SlotKind::ScoreboardSet(lo) => Operand::ScoreboardSet(get(word, lo, 6) as u8),
        SlotKind::Special => Operand::Special(SpecialRegister(get(word, 72, 8) as u8)),
        SlotKind::Word { bits, .. } => Operand::Word(bits.get(word) as u8),
        SlotKind::Signs(lo) => Operand::Word(get(word, lo, 8) as u8),
        SlotKind::AllPredicates | SlotKind::Source(_) => Operand::AllPredicates,
    }
}

fn put_flag(set: bool, position: u8) -> Option<u128> {
    match (set, position) {
        (false, ALWAYS) | (true, NO_BIT) => None,
        (false, _) | (true, ALWAYS) => Some(0),
        (true, position) => Some(1 << position),
    }
}

fn put(value: u64, lo: u8, width: u8) -> Option<u128> {
    (value >> width == 0).then(|| u128::from(value) << lo)
}

fn put_marks(marks: Marks, bits: MarkBits) -> Option<u128> {
    Some(
        put_flag(marks.negate, bits.negate)?
            | put_flag(marks.absolute, bits.absolute)?
            | put_flag(marks.invert, bits.invert)?,
    )
}

fn put_half(half: Half, bits: HalfBits) -> Option<u128> {
    let place = |names: &[Half], lo: u8| Some((names.iter().position(|&h| h == half)? as u128) << lo);
    match bits {
        HalfBits::None | HalfBits::Whole => (half == Half::Both).then_some(0),
        HalfBits::Paired(_) if half == Half::F32 => None,
        HalfBits::Paired(lo) => place(&PACKED, lo),
        HalfBits::Crossed(_) if half == Half::LowNegatedHigh => Some(1 << 86),
        HalfBits::Packed(lo) | HalfBits::Crossed(lo) => place(&PACKED, lo),
        HalfBits::Upper(lo) => place(&UPPER, lo),
        HalfBits::Byte(lo) => place(&BYTES, lo),
    }
}

fn put_distance(kind: &SlotKind, distance: i64, arch: Arch) -> Option<u128> {
    let bits = kind.distance_bits(arch);
    let words = distance >> 2;
    let half = 1i64 << (bits.width() - 1);
    if distance & 3 != 0 || !(-half..half).contains(&words) {
        return None;
    }
    bits.put(words as u64 & ((1 << bits.width()) - 1))
}

fn write(kind: &SlotKind, operand: &Operand, address: u64, arch: Arch) -> Option<u128> {
    let uniform_bits = uniform_width(arch);
    match (*kind, *operand) {
        (
            SlotKind::Register { lo, marks, half, .. },
            Operand::Register { index, marks: set, half: select },
        ) => Some(put(index.into(), lo, 8)? | put_marks(set, marks)? | put_half(select, half)?),
        (
            SlotKind::Uniform { lo, marks, half },
            Operand::UniformRegister { index, marks: set, half: select },
        ) => Some(put(index.into(), lo, uniform_bits)? | put_marks(set, marks)? | put_half(select, half)?),
        (
            SlotKind::Predicate { lo, not, uniform, inverted },
            Operand::Predicate { index, negated, uniform: is_uniform },
        ) => {
            if uniform != is_uniform {
                return None;
            }
            let index = index ^ if inverted { 7 } else { 0 };
            Some(put(index.into(), lo, 3)? | put_flag(negated, not)?)
        }
        (SlotKind::Immediate { bits, kind }, Operand::Immediate { bits: value, kind: meant }) => {
            if kind == meant { bits.put(value) } else { None }
        }
        (
            SlotKind::Constant { words, marks, half, index, uniform_index },
            Operand::Constant {
                bank: Bank::Number(bank),
                offset,
                index: register,
                uniform_index: is_uniform,
                marks: set,
                half: select,
            },
        ) => {
            if uniform_index != is_uniform {
                return None;
            }
            let (range, register) = match (index, uniform_index) {
                (NO_BIT, _) => (0..0x1_0000, (register == Operand::RZ).then_some(0)?),
                (lo, true) => (-0x8000..0x8000, put(register.into(), lo, uniform_bits)?),
                (lo, false) => (-0x8000..0x8000, put(register.into(), lo, 8)?),
            };
            if !range.contains(&offset) || (words && offset & 3 != 0) {
                return None;
            }
            let offset = (offset as u128 & 0xffff) << 38;
            Some(
                offset
                    | put(bank.into(), 54, 5)?
                    | register
                    | put_marks(set, marks)?
                    | put_half(select, half)?,
            )
        }
        (
            SlotKind::Bindless { bank: place, words, marks, half, index },
            Operand::Constant {
                bank: Bank::Uniform(bank),
                offset,
                index: register,
                uniform_index: false,
                marks: set,
                half: select,
            },
        ) => {
            let (range, register) = match index {
                NO_BIT => (0..0x1_0000, (register == Operand::RZ).then_some(0)?),
                lo => (-0x8000..0x8000, put(register.into(), lo, 8)?),
            };
            if !range.contains(&offset) || (words && offset & 3 != 0) {
                return None;
            }
            let offset = (offset as u128 & 0xffff) << 38;
            let bank = put(bank.into(), place, uniform_bits)?;
            Some(offset | bank | register | put_marks(set, marks)? | put_half(select, half)?)
        }
        (
            SlotKind::Address { base: base_lo, offset: place, wide, scale, uniform, descriptor, .. },
            Operand::Address {
                base,
                wide: pair,
                scale: factor,
                uniform: register,
                descriptor: described,
                offset,
            },
        ) => {
            let factor = [0, 2, 3, 4].iter().position(|&log| log == factor)? as u128;
            let factor = match (scale, factor) {
                (_, 0) => 0,
                (NO_BIT, _) => return None,
                (lo, value) => value << lo,
            };
            let register = match (register, described, uniform) {
                (None, None, NO_BIT) => 0,
                (Some(index), None, lo) if lo != NO_BIT => put(index.into(), lo, uniform_bits)?,
                (None, Some(index), lo) if lo != NO_BIT => {
                    put(index.into(), lo, uniform_bits)? | put_flag(true, descriptor)?
                }
                _ => return None,
            };
            // Half the range; without bits, only zero fits.
            let limit = 1i64 << place.width() >> 1;
            let fits = offset == 0 || (-limit..limit).contains(&i64::from(offset));
            let offset = place.put(fits.then_some(offset as u64 & ((1 << place.width()) - 1))?)?;
            let base = match base_lo {
                NO_BIT => (base == Operand::RZ).then_some(0)?,
                lo => u128::from(base) << lo,
            };
            Some(base | put_flag(pair, wide)? | factor | register | offset)
        }
        (
            SlotKind::Label | SlotKind::NearLabel | SlotKind::WideLabel | SlotKind::FarLabel,
            Operand::Label { target },
        ) => put_distance(kind, target.wrapping_sub(address as i64).wrapping_sub(16), arch),
        (SlotKind::Displacement | SlotKind::FarDisplacement, Operand::Label { target }) => {
            put_distance(kind, target, arch)
        }
        (SlotKind::Absolute, Operand::Label { target }) => {
            let words = (target & 3 == 0).then_some(target as u64 >> 2)?;
            kind.distance_bits(arch).put(words)
        }
        (SlotKind::Described { lo, .. }, Operand::UniformRegister { index, marks, half: Half::Both })
            if marks == Marks::default() =>
        {
            put(index.into(), lo, uniform_bits)
        }
        (SlotKind::Barrier(lo), Operand::Barrier(index)) => put(index.into(), lo, 4),
        (SlotKind::Scoreboard(lo), Operand::Scoreboard(index)) => put(index.into(), lo, 3),
        (SlotKind::ScoreboardSet(lo), Operand::ScoreboardSet(set)) => put(set.into(), lo, 6),
        (SlotKind::Special, Operand::Special(register)) => Some(u128::from(register.0) << 72),
        (SlotKind::Signs(lo), Operand::Word(value)) => put(value.into(), lo, 8),
        (SlotKind::Word { bits, spelling }, Operand::Word(value)) => {
            spelling.get(usize::from(value)).filter(|word| **word != "!")?;
            bits.put(value.into())
        }
        (SlotKind::AllPredicates, Operand::AllPredicates) => Some(0),
        _ => None,
    }
}

fn decode_by(row: &'static Row, word: u128, address: u64, arch: Arch) -> Result<Instruction, DecodeError> {
    let mnemonic = row.op.name();
    let bits = (word ^ row.fixed) & !row.covered(arch);
    if bits != 0 {
        return Err(DecodeError::UnknownBits { mnemonic, bits, arch, word });
    }
    let mut fields = [0; MAX_MODIFIERS];
    for (field, modifier) in fields.iter_mut().zip(&row.modifiers) {
        let value = modifier.bits.get(word);
        match modifier.spelling.get(value as usize) {
            Some(&spelling) if spelling != "!" => *field = value as u16,
            _ => return Err(DecodeError::UnknownField { mnemonic, field: modifier.id, value, arch, word }),
        }
    }
    let mut operands = [Operand::AllPredicates; MAX_OPERANDS];
    for (operand, slot) in operands.iter_mut().zip(&row.slots) {
        *operand = read(&slot.kind, word, address, arch);
        // What does not encode back to the same bits has no meaning.
        if write(&slot.kind, operand, address, arch) != Some(word & slot.kind.mask(arch)) {
            return Err(DecodeError::UnknownOperand { mnemonic, operand: *operand, arch, word });
        }
    }
    let guard = Guard { index: get(word, 12, 3) as u8, negated: flag(word, 15), uniform: row.uniform_guard };
    let control = Control::from_word(word);
    Ok(Instruction { op: row.op, row, word, address, arch, guard, control, operands, fields })
}

/// Decodes one 128-bit word (little endian in memory) at a byte address.
///
/// # Errors
/// [`DecodeError`] when no row has the opcode, or when the word has bits that its row gives no meaning:
/// nothing is skipped, so `encode(&decode(word)?)? == word`.
pub fn decode(word: u128, address: u64, arch: Arch) -> Result<Instruction, DecodeError> {
    let opcode = (get(word, 0, 12) | (get(word, 91, 1) << 12)) as u16;
    let mut error = DecodeError::UnknownOpcode { opcode, arch, word };
    for row in table().of(opcode) {
        if !row.exists_on(arch) {
            continue;
        }
        match decode_by(row, word, address, arch) {
            Ok(instruction) => return Ok(instruction),
            // Several rows may share an opcode; a wrong modifier value says more than wrong fixed bits.
            Err(found @ DecodeError::UnknownField { .. }) => error = found,
            Err(found) if matches!(error, DecodeError::UnknownOpcode { .. }) => error = found,
            Err(_) => {}
        }
    }
    Err(error)
}

/// Encodes an instruction by its row, at its own address and generation.
///
/// # Errors
/// [`EncodeError`] names the operand, field, guard or control part that has no encoding.
pub fn encode(instruction: &Instruction) -> Result<u128, EncodeError> {
    let row = instruction.row;
    let mnemonic = row.op.name();
    let mut word = row.fixed & !row.covered(instruction.arch);
    word |= u128::from(row.opcode & 0xfff) | (u128::from(row.opcode >> 12) << 91);
    for (index, (slot, operand)) in row.slots.iter().zip(instruction.operands()).enumerate() {
        let error = EncodeError::Operand { mnemonic, slot: index, operand: *operand };
        word |= write(&slot.kind, operand, instruction.address, instruction.arch).ok_or(error)?;
    }
    for (modifier, &value) in row.modifiers.iter().zip(&instruction.fields) {
        let value = u64::from(value);
        let known = modifier.spelling.get(value as usize).is_some_and(|&spelling| spelling != "!");
        let bits = if known { modifier.bits.put(value) } else { None };
        word |= bits.ok_or(EncodeError::Field { mnemonic, field: modifier.id, value })?;
    }
    let guard = instruction.guard;
    if guard.index > 7 || guard.uniform != row.uniform_guard {
        return Err(EncodeError::Guard { mnemonic, guard });
    }
    word |= (u128::from(guard.index) << 12) | (u128::from(guard.negated) << 15);
    let control = instruction.control.to_word();
    if Control::from_word(control) != instruction.control {
        return Err(EncodeError::Control { mnemonic, control: instruction.control });
    }
    debug_assert_eq!(word & OPCODE_MASK & !(0xfff | 1 << 91), 0);
    Ok(word | control)
}

/// Whether the text leaves out an operand.
pub(crate) fn is_hidden(instruction: &Instruction, index: usize) -> bool {
    let operand = &instruction.operands[index];
    let Slot { kind: slot, hide } = &instruction.row.slots[index];
    match *hide {
        Hide::Never | Hide::Leading => false,
        Hide::Ones => match (*operand, slot) {
            (Operand::Immediate { bits: value, .. }, SlotKind::Immediate { bits, .. }) => {
                value == (1 << bits.width()) - 1
            }
            (Operand::Word(value), SlotKind::Word { bits, .. }) => {
                u64::from(value) == (1 << bits.width()) - 1
            }
            _ => false,
        },
        Hide::Always => true,
        Hide::Unless(field) => !instruction.flag(field),
        Hide::LeaOperand => !instruction.flag(FieldId::High) || instruction.flag(FieldId::SignExtend32),
        Hide::NeutralBefore(arch) if instruction.arch >= arch => false,
        Hide::Neutral | Hide::NeutralBefore(_) | Hide::LeadingOrNeutral => match *operand {
            Operand::Predicate { index, negated, .. } => index == Operand::PT && !negated,
            Operand::Register { index, .. } => index == Operand::RZ,
            Operand::UniformRegister { index, .. } => {
                usize::from(index) == (1 << uniform_width(instruction.arch)) - 1
            }
            Operand::Immediate { bits, .. } => bits == 0,
            Operand::ScoreboardSet(set) => set == 0,
            Operand::Label { target } => target == 0,
            _ => false,
        },
    }
}
