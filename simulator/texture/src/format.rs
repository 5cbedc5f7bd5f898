//! Texel formats: from bits in memory to components.

use nv_abi::texture::{Components, DataType, Source};

/// A texel's four components: numbers, or with an integer format integers.
pub(crate) type Texel = [Value; 4];

/// A component.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value {
    /// A number.
    Float(f32),
    /// An integer, as bits.
    Integer(u32),
}

impl Value {
    /// The register's bits.
    pub(crate) const fn bits(self) -> u32 {
        match self {
            Self::Float(value) => value.to_bits(),
            Self::Integer(value) => value,
        }
    }

    /// As a number; integers are taken for their bits' worth.
    pub(crate) const fn number(self) -> f32 {
        match self {
            Self::Float(value) => value,
            Self::Integer(value) => value as f32,
        }
    }
}

/// How a texel's bits are to be read.
#[derive(Clone, Debug)]
pub(crate) struct Format {
    components: Components,
    /// Lowest bit and number of bits of each component; none for those that are not there.
    fields: [(u8, u8); 4],
    types: [DataType; 4],
    bytes: u32,
    srgb: bool,
}

/// Places of the components, from R on: lowest bit and number of bits.
fn fields(components: Components) -> ([(u8, u8); 4], u32) {
    use Components as C;
    const NO: (u8, u8) = (0, 0);
    match components {
        C::R32G32B32A32 => ([(0, 32), (32, 32), (64, 32), (96, 32)], 16),
        C::R32G32B32 => ([(0, 32), (32, 32), (64, 32), NO], 12),
        C::R16G16B16A16 => ([(0, 16), (16, 16), (32, 16), (48, 16)], 8),
        C::R32G32 => ([(0, 32), (32, 32), NO, NO], 8),
        C::X8B8G8R8 => ([(0, 8), (8, 8), (16, 8), NO], 4),
        C::A8B8G8R8 => ([(0, 8), (8, 8), (16, 8), (24, 8)], 4),
        C::A2B10G10R10 => ([(0, 10), (10, 10), (20, 10), (30, 2)], 4),
        C::R16G16 => ([(0, 16), (16, 16), NO, NO], 4),
        C::R32 => ([(0, 32), NO, NO, NO], 4),
        C::A4B4G4R4 => ([(0, 4), (4, 4), (8, 4), (12, 4)], 2),
        C::A5B5G5R1 => ([(0, 1), (1, 5), (6, 5), (11, 5)], 2),
        C::A1B5G5R5 => ([(0, 5), (5, 5), (10, 5), (15, 1)], 2),
        C::B5G6R5 => ([(0, 5), (5, 6), (11, 5), NO], 2),
        C::B6G5R5 => ([(0, 5), (5, 5), (10, 6), NO], 2),
        C::G8R8 => ([(0, 8), (8, 8), NO, NO], 2),
        C::R16 => ([(0, 16), NO, NO, NO], 2),
        C::R8 => ([(0, 8), NO, NO, NO], 1),
        C::G4R4 => ([(0, 4), (4, 4), NO, NO], 1),
        C::E5B9G9R9 => ([(0, 9), (9, 9), (18, 9), NO], 4),
        C::BF10GF11RF11 => ([(0, 11), (11, 11), (22, 10), NO], 4),
    }
}

impl Format {
    pub(crate) fn new(components: Components, types: [DataType; 4], srgb: bool) -> Self {
        let (fields, bytes) = fields(components);
        Self { components, fields, types, bytes, srgb }
    }

    /// Bytes of a texel.
    pub(crate) const fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Whether components are integers.
    pub(crate) const fn is_integer(&self) -> bool {
        matches!(self.types[0], DataType::Sint | DataType::Uint)
    }

    /// Lowest bit and number of bits of each component.
    pub(crate) const fn fields(&self) -> [(u8, u8); 4] {
        self.fields
    }

    /// Bits of a component, from a register.
    pub(crate) fn pack(&self, index: usize, register: u32) -> Result<u32, crate::TextureError> {
        crate::surface::pack(register, self.fields[index & 3].1, self.types[index & 3])
    }

    /// Components of a texel's bits.
    pub(crate) fn unpack(&self, texel: u128) -> Texel {
        let mut out = [Value::Float(0.0); 4];
        if self.components == Components::E5B9G9R9 {
            let exponent = (texel >> 27 & 31) as i32 - 15 - 9;
            for (out, (low, _)) in out.iter_mut().zip(self.fields).take(3) {
                *out = Value::Float((texel >> low & 0x1ff) as f32 * 2f32.powi(exponent));
            }
            out[3] = Value::Float(1.0);
            return out;
        }
        for (index, out) in out.iter_mut().enumerate() {
            let ((low, width), kind) = (self.fields[index], self.types[index]);
            if width == 0 {
                *out = match (index == 3, self.is_integer()) {
                    (alpha, true) => Value::Integer(alpha.into()),
                    (alpha, false) => Value::Float(if alpha { 1.0 } else { 0.0 }),
                };
                continue;
            }
            let bits = (texel >> low) as u32 & (u32::MAX >> (32 - u32::from(width)));
            *out = component(bits, width, kind);
            if self.srgb && index < 3 && width == 8 && kind == DataType::Unorm {
                *out = Value::Float(srgb_to_linear(bits));
            }
        }
        out
    }
}

/// One component of a texel.
fn component(bits: u32, width: u8, kind: DataType) -> Value {
    let width = u32::from(width);
    let signed = (bits << (32 - width)) as i32 >> (32 - width);
    match kind {
        DataType::Uint => Value::Integer(bits),
        DataType::Sint => Value::Integer(signed as u32),
        DataType::Unorm => {
            let most = u32::MAX >> (32 - width);
            Value::Float((f64::from(bits) / f64::from(most)) as f32)
        }
        DataType::Snorm => {
            // The lowest number is as the one above it.
            let most = f64::from((u32::MAX >> (32 - width)) >> 1).max(1.0);
            Value::Float((f64::from(signed) / most).max(-1.0) as f32)
        }
        DataType::Float => Value::Float(match width {
            32 => f32::from_bits(bits),
            16 => short_float(bits & 0x7fff, 10) * if bits & 0x8000 != 0 { -1.0 } else { 1.0 },
            // Without a sign, as R, G and B of 11, 11 and 10 bits.
            _ => short_float(bits, width - 5),
        }),
    }
}

/// A floating-point number with five bits of exponent above those of the mantissa, and no sign.
fn short_float(bits: u32, mantissa: u32) -> f32 {
    let fraction = (bits & ((1 << mantissa) - 1)) as f32;
    let one = (1u32 << mantissa) as f32;
    match bits >> mantissa & 31 {
        0 => fraction / one * 2f32.powi(-14),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::from_bits(0x7fc0_0000 | (bits & ((1 << mantissa) - 1)) << (23 - mantissa)),
        exponent => (1.0 + fraction / one) * 2f32.powi(exponent as i32 - 15),
    }
}

/// A byte of sRGB as a linear number: the standard's curve.
fn srgb_to_linear(byte: u32) -> f32 {
    let c = f64::from(byte) / 255.0;
    let linear = if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) };
    linear as f32
}

/// The components of a result by their sources.
pub(crate) fn swizzle(texel: &Texel, sources: [Source; 4]) -> Texel {
    sources.map(|source| match source {
        Source::Zero => Value::Integer(0),
        Source::R => texel[0],
        Source::G => texel[1],
        Source::B => texel[2],
        Source::A => texel[3],
        Source::OneInteger => Value::Integer(1),
        Source::OneFloat => Value::Float(1.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(components: Components, kind: DataType, texel: u128) -> [f32; 4] {
        Format::new(components, [kind; 4], false).unpack(texel).map(Value::number)
    }

    #[test]
    fn components_lie_as_their_names_say() {
        use Components as C;
        assert_eq!(one(C::A8B8G8R8, DataType::Uint, 0x0403_0201), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(one(C::B5G6R5, DataType::Uint, 0b00011_000010_00001), [1.0, 2.0, 3.0, 1.0]);
        assert_eq!(
            one(C::A2B10G10R10, DataType::Uint, 3 << 30 | 2 << 20 | 1 << 10 | 9),
            [9.0, 1.0, 2.0, 3.0]
        );
        assert_eq!(one(C::R16G16, DataType::Uint, 7 << 16 | 5), [5.0, 7.0, 0.0, 1.0]);
    }

    #[test]
    fn normalized_numbers_reach_both_ends() {
        use Components as C;
        assert_eq!(one(C::R8, DataType::Unorm, 255)[0], 1.0);
        assert_eq!(one(C::R8, DataType::Snorm, 0x80)[0], -1.0);
        assert_eq!(one(C::R8, DataType::Snorm, 0x81)[0], -1.0);
        assert_eq!(one(C::R16, DataType::Snorm, 0x7fff)[0], 1.0);
        assert_eq!(one(C::R16, DataType::Unorm, 1)[0], 1.0 / 65535.0);
    }

    #[test]
    fn short_floats_have_subnormals_infinities_and_no_sign_below_sixteen_bits() {
        use Components as C;
        assert_eq!(one(C::R16, DataType::Float, 0x3c00)[0], 1.0);
        assert_eq!(one(C::R16, DataType::Float, 0xc000)[0], -2.0);
        assert_eq!(one(C::R16, DataType::Float, 1)[0], 2f32.powi(-24));
        assert_eq!(one(C::R16, DataType::Float, 0x7c00)[0], f32::INFINITY);
        assert_eq!(one(C::BF10GF11RF11, DataType::Float, 15 << 6)[0], 1.0);
        assert_eq!(one(C::BF10GF11RF11, DataType::Float, (15 << 5) << 22)[2], 1.0);
        // One exponent for three mantissas.
        assert_eq!(one(C::E5B9G9R9, DataType::Float, 16 << 27 | 256)[0], 1.0);
    }
}
