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
            _ => return None,
        })
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

/// A relocation of the device image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Byte offset in the device image.
    pub offset: u64,
    /// What is patched.
    pub kind: RelocationKind,
    /// The symbol's value; relative to the image's address if `in_image`.
    pub value: u64,
    /// Whether the symbol lies in the device image, or is an absolute value such as a shared-memory offset.
    pub in_image: bool,
    /// RELA's addend; `None` takes the field's present content (REL).
    pub addend: Option<i64>,
}

const FIELD_47: u128 = (1 << 47) - 1;

impl Relocation {
    /// Patches `image`, which will lie at `base`.
    pub fn apply(&self, image: &mut [u8], base: u64) -> Result<(), CubinError> {
        let out_of_range =
            |value| CubinError::RelocationRange { offset: self.offset, value, kind: self.kind };
        let start = self.offset as usize;
        let place = image
            .get_mut(start..start.saturating_add(self.kind.bytes() as usize))
            .ok_or_else(|| out_of_range(self.value))?;
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
        };
        let addend = self.addend.map_or(implicit, |addend| addend as u64);
        let symbol = if self.in_image { base.wrapping_add(self.value) } else { self.value };
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
        Relocation { offset: 0, kind, value, in_image: false, addend: Some(0) }.apply(&mut image, 0).unwrap();
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
    fn rel_takes_the_addend_from_the_field() {
        let mut image = 8u64.to_le_bytes();
        let relocation = Relocation {
            offset: 0,
            kind: RelocationKind::Word64,
            value: 0x100,
            in_image: true,
            addend: None,
        };
        relocation.apply(&mut image, 0x10_0000_0000).unwrap();
        assert_eq!(u64::from_le_bytes(image), 0x10_0000_0108);
    }
}
