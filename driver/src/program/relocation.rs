//! Relocations: symbol addresses written into data words and into the bit fields of instructions.

use super::CubinError;

/// What a relocation patches. Numbers are the ELF types that ptxas emits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelocationKind {
    /// `R_CUDA_32` (1) and `R_CUDA_G32` (3): a 32-bit word.
    Word32,
    /// `R_CUDA_64` (2) and `R_CUDA_G64` (4): a 64-bit word.
    Word64,
    /// `R_CUDA_ABS32_LO_32` (56): the low half, into bits 63:32 of an instruction.
    Low32,
    /// `R_CUDA_ABS32_HI_32` (57): the high half, into bits 63:32 of an instruction.
    High32,
    /// `R_CUDA_ABS47_34` (58): a code address in words of 4 bytes, into bits 80:34 of an instruction.
    Absolute47,
    /// `R_CUDA_ABS55_16_34` (75): a code address in words of 4 bytes, its low 8 bits into bits 23:16, the rest into
    /// bits 80:34 of an instruction.
    Absolute55,
    /// `R_CUDA_YIELD_OPCODE9_0` (68): an opcode, into bits 8:0 of an instruction. Functions that are compiled apart
    /// carry YIELDs which a linker turns into NOPs.
    YieldOpcode,
    /// `R_CUDA_YIELD_CLEAR_PRED4_87` (69): clears bits 90:87 of such an instruction, its predicate operand.
    YieldPredicate,
}

impl RelocationKind {
    /// The kind of an ELF relocation type.
    pub const fn from_elf(kind: u32) -> Option<Self> {
        Some(match kind {
            1 | 3 => Self::Word32,
            2 | 4 => Self::Word64,
            56 => Self::Low32,
            57 => Self::High32,
            58 => Self::Absolute47,
            75 => Self::Absolute55,
            68 => Self::YieldOpcode,
            69 => Self::YieldPredicate,
            _ => return None,
        })
    }

    /// Whether it is about the instruction alone and names no symbol.
    pub(super) const fn is_local(self) -> bool {
        matches!(self, Self::YieldOpcode | Self::YieldPredicate)
    }

    /// Bytes it reads and writes.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Word32 => 4,
            Self::Word64 => 8,
            _ => 16,
        }
    }
}

/// What a relocation refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// A byte offset in the device image.
    Image(u64),
    /// A value that does not depend on where the image lies, such as an offset in shared memory.
    Absolute(u64),
    /// What the cubin leaves undefined: an index of [`super::Cubin::externals`].
    External(usize),
}

/// A relocation of the device image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Byte offset in the device image.
    pub offset: u64,
    /// What is patched.
    pub kind: RelocationKind,
    /// The symbol.
    pub symbol: Symbol,
    /// RELA's addend; `None` takes the field's present content (REL).
    pub addend: Option<i64>,
}

const FIELD_47: u128 = (1 << 47) - 1;
const FIELD_9: u128 = (1 << 9) - 1;

impl Relocation {
    /// Patches `image`, with the symbol's value as it is on the device.
    pub fn apply(&self, image: &mut [u8], symbol: u64) -> Result<(), CubinError> {
        let out_of_range =
            |value| CubinError::RelocationRange { offset: self.offset, value, kind: self.kind };
        let start = self.offset as usize;
        let place = image
            .get_mut(start..start.saturating_add(self.kind.bytes() as usize))
            .ok_or_else(|| out_of_range(symbol))?;
        let mut wide = [0; 16];
        wide[..place.len()].copy_from_slice(place);
        let old = u128::from_le_bytes(wide);
        let implicit = match self.kind {
            RelocationKind::Word32 => old as u32 as u64,
            RelocationKind::Word64 => old as u64,
            // The field itself is the addend; a half has room for no more than 32 bits of it.
            RelocationKind::Low32 | RelocationKind::High32 => (old >> 32) as u32 as u64,
            RelocationKind::Absolute47 => ((old >> 34 & FIELD_47) << 2) as u64,
            RelocationKind::Absolute55 => ((old >> 34 & FIELD_47) << 10 | (old >> 16 & 0xff) << 2) as u64,
            RelocationKind::YieldOpcode => (old & FIELD_9) as u64,
            RelocationKind::YieldPredicate => 0,
        };
        let addend = self.addend.map_or(implicit, |addend| addend as u64);
        let value = symbol.wrapping_add(addend);
        let field = |old: u128, lo: u32, mask: u128, bits: u128| old & !(mask << lo) | (bits & mask) << lo;
        let new = match self.kind {
            RelocationKind::Word32 => u128::from(u32::try_from(value).map_err(|_| out_of_range(value))?),
            RelocationKind::Word64 => u128::from(value),
            RelocationKind::Low32 => field(old, 32, 0xffff_ffff, u128::from(value)),
            RelocationKind::High32 => field(old, 32, 0xffff_ffff, u128::from(value >> 32)),
            RelocationKind::Absolute47 => {
                if value & 3 != 0 || value >> 49 != 0 {
                    return Err(out_of_range(value));
                }
                field(old, 34, FIELD_47, u128::from(value >> 2))
            }
            RelocationKind::Absolute55 => {
                if value & 3 != 0 || value >> 57 != 0 {
                    return Err(out_of_range(value));
                }
                field(field(old, 16, 0xff, u128::from(value >> 2)), 34, FIELD_47, u128::from(value >> 10))
            }
            RelocationKind::YieldOpcode => {
                if u128::from(value) > FIELD_9 {
                    return Err(out_of_range(value));
                }
                field(old, 0, FIELD_9, u128::from(value))
            }
            RelocationKind::YieldPredicate => field(old, 87, 0xf, 0),
        };
        let length = place.len();
        place.copy_from_slice(&new.to_le_bytes()[..length]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patched(kind: RelocationKind, value: u64) -> u128 {
        let mut image = [0; 16];
        let symbol = Symbol::Absolute(value);
        Relocation { offset: 0, kind, symbol, addend: Some(0) }.apply(&mut image, value).unwrap();
        u128::from_le_bytes(image)
    }

    #[test]
    fn code_relocations_touch_only_their_field() {
        let value = 0x12_3456_7000;
        assert_eq!(patched(RelocationKind::Low32, value), 0x3456_7000 << 32);
        assert_eq!(patched(RelocationKind::High32, value), 0x12 << 32);
        assert_eq!(patched(RelocationKind::Absolute47, value), u128::from(value) << 32);
        assert_eq!(
            patched(RelocationKind::Absolute55, value + 0x44),
            (u128::from(value >> 10) << 34) | (0x11 << 16)
        );
    }

    #[test]
    fn a_yield_of_a_function_compiled_apart_becomes_a_nop() {
        // YIELD as ptxas leaves it for sm_80, and NOP with the same control bits.
        let mut image = ((0x000f_c000_0380_0000_u128 << 64) | 0x7946).to_le_bytes();
        let relocation = |kind, addend| Relocation { offset: 0, kind, symbol: Symbol::Absolute(0), addend };
        relocation(RelocationKind::YieldOpcode, Some(0x118)).apply(&mut image, 0).unwrap();
        relocation(RelocationKind::YieldPredicate, None).apply(&mut image, 0).unwrap();
        assert_eq!(u128::from_le_bytes(image), (0x000f_c000_0000_0000_u128 << 64) | 0x7918);
    }

    #[test]
    fn rel_takes_the_addend_from_the_field() {
        let mut image = 8u64.to_le_bytes();
        let symbol = Symbol::Image(0x100);
        let relocation = Relocation { offset: 0, kind: RelocationKind::Word64, symbol, addend: None };
        relocation.apply(&mut image, 0x10_0000_0100).unwrap();
        assert_eq!(u64::from_le_bytes(image), 0x10_0000_0108);
    }
}
