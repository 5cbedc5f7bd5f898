//! Numbers as kernels take them: from text to bytes and back.

use std::fmt;

use sass::lane::{Rounding, convert::FloatFormat, half::HalfFormat};

/// The type of a scalar or of a buffer's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Element {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F16,
    Bf16,
    F32,
    F64,
}

const NAMES: [(&str, Element); 12] = [
    ("u8", Element::U8),
    ("i8", Element::I8),
    ("u16", Element::U16),
    ("i16", Element::I16),
    ("u32", Element::U32),
    ("i32", Element::I32),
    ("u64", Element::U64),
    ("i64", Element::I64),
    ("f16", Element::F16),
    ("bf16", Element::Bf16),
    ("f32", Element::F32),
    ("f64", Element::F64),
];

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(_, element)| element == self).map_or("?", |(name, _)| name);
        f.write_str(name)
    }
}

/// A number before it has a type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A whole number; wide enough for every integer type.
    Whole(i128),
    /// Any other.
    Real(f64),
}

impl Number {
    /// Reads decimal, hexadecimal (`0x`), a float, `inf` or `nan`.
    pub fn parse(text: &str) -> Option<Self> {
        let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
        if let Some(hex) = digits.strip_prefix("0x") {
            return i128::from_str_radix(hex, 16).ok().map(|number| Self::Whole(sign * number));
        }
        text.parse().map(Self::Whole).or_else(|_| text.parse().map(Self::Real)).ok()
    }

    fn real(self) -> f64 {
        match self {
            Self::Whole(number) => number as f64,
            Self::Real(number) => number,
        }
    }
}

/// A 16-bit float, rounded to nearest even.
fn narrow(number: Number, format: HalfFormat) -> Vec<u8> {
    format.narrow(number.real(), Rounding::Nearest).to_le_bytes().to_vec()
}

impl Element {
    /// The type of that name.
    pub fn parse(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, element)| *element)
    }

    /// The names of all types.
    pub fn names() -> String {
        NAMES.map(|(name, _)| name).join(", ")
    }

    /// Bytes of one element.
    pub const fn bytes(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// Whether it is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F32 | Self::F64)
    }

    /// The smallest and largest whole number of the type; a bit pattern of an unsigned kind fits as well.
    fn range(self) -> (i128, i128) {
        let bits = 8 * self.bytes();
        match self {
            Self::I8 | Self::I16 | Self::I32 | Self::I64 => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            _ => (0, (1 << bits) - 1),
        }
    }

    /// The element's bytes, little-endian; `None` where an integer does not fit or has a fraction. Floats are rounded to
    /// nearest even.
    pub fn encode(self, number: Number) -> Option<Vec<u8>> {
        let whole = || match number {
            Number::Whole(number) => {
                let (least, most) = self.range();
                (least..=most).contains(&number).then(|| number.to_le_bytes()[..self.bytes()].to_vec())
            }
            Number::Real(_) => None,
        };
        match self {
            Self::F16 => Some(narrow(number, HalfFormat::F16)),
            Self::Bf16 => Some(narrow(number, HalfFormat::Bf16)),
            Self::F32 => Some((number.real() as f32).to_le_bytes().to_vec()),
            Self::F64 => Some(number.real().to_le_bytes().to_vec()),
            _ => whole(),
        }
    }

    /// One element as a number. The bytes are as many as the type has.
    pub fn decode(self, bytes: &[u8]) -> Number {
        let mut wide = [0; 8];
        let length = bytes.len().min(8);
        wide[..length].copy_from_slice(&bytes[..length]);
        let raw = u64::from_le_bytes(wide);
        let signed = |bits: u32| Number::Whole(((raw << (64 - bits)) as i64 >> (64 - bits)).into());
        match self {
            Self::U8 | Self::U16 | Self::U32 | Self::U64 => Number::Whole(raw.into()),
            Self::I8 => signed(8),
            Self::I16 => signed(16),
            Self::I32 => signed(32),
            Self::I64 => signed(64),
            Self::F16 => Number::Real(FloatFormat::F16.value(raw)),
            Self::Bf16 => Number::Real(FloatFormat::Bf16.value(raw)),
            Self::F32 => Number::Real(f32::from_bits(raw as u32).into()),
            Self::F64 => Number::Real(f64::from_bits(raw)),
        }
    }

    /// One element as text, as short as it reads back.
    pub fn text(self, bytes: &[u8]) -> String {
        match self.decode(bytes) {
            Number::Whole(number) => number.to_string(),
            Number::Real(number) if self == Self::F64 => number.to_string(),
            Number::Real(number) => (number as f32).to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_and_bfloat16_reads_back_from_its_value() {
        let encode = |element: Element, value| {
            let bytes = element.encode(Number::Real(value)).unwrap();
            u16::from_le_bytes([bytes[0], bytes[1]])
        };
        for element in [Element::F16, Element::Bf16] {
            for bits in 0..=u16::MAX {
                let Number::Real(value) = element.decode(&bits.to_le_bytes()) else { panic!("{element}") };
                if value.is_nan() {
                    assert_eq!(encode(element, value), 0x7fff, "the NaN that kernels make");
                } else {
                    assert_eq!(encode(element, value), bits, "{value}");
                }
            }
        }
        assert_eq!(encode(Element::F16, 65_519.0), 0x7bff);
        assert_eq!(encode(Element::F16, 65_520.0), 0x7c00);
        assert_eq!(encode(Element::F16, 1.000_488_281_25), 0x3c00);
    }

    #[test]
    fn integers_that_do_not_fit_are_refused() {
        let encode = |element: Element, text| element.encode(Number::parse(text).unwrap());
        assert_eq!(encode(Element::U8, "255"), Some(vec![255]));
        assert_eq!(encode(Element::U8, "256"), None);
        assert_eq!(encode(Element::I8, "-128"), Some(vec![0x80]));
        assert_eq!(encode(Element::U32, "-1"), None);
        assert_eq!(encode(Element::U32, "1.5"), None);
        assert_eq!(encode(Element::U64, "0xffffffffffffffff"), Some(vec![255; 8]));
        assert_eq!(encode(Element::F32, "7"), Some(7f32.to_le_bytes().to_vec()));
        assert_eq!(Number::parse("seven"), None);
    }
}
