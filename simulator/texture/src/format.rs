//! Texel formats: from bits in memory to components.

use nv_abi::texture::{Components, DataType, Source};

use crate::coordinate::FRACTION;

/// A texel's four components: numbers, or with an integer format integers.
pub(crate) type Texel = [Value; 4];

/// A component.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value {
    /// A number.
    Float(f32),
    /// A number that filters round to half precision.
    Half(f32),
    /// An integer, as bits.
    Integer(u32),
    /// A part of `most`.
    Part {
        /// How many.
        value: i64,
        /// What one is.
        most: i64,
        /// What one is in the results of filters.
        steps: i64,
    },
    /// A number of 8 bits, in 1/2^19 shifted by the exponent. Filters share the largest exponent among their texels.
    Shared {
        /// The bits.
        mantissa: u32,
        /// How far they are shifted.
        exponent: u32,
    },
}

/// What one is in [`Value::Shared`].
const SHARED_ONE: u32 = 1 << 19;

impl Value {
    /// The register's bits.
    pub(crate) fn bits(self) -> u32 {
        match self {
            Self::Integer(value) => value,
            _ => self.number().to_bits(),
        }
    }

    /// As a number; integers are taken for their bits' worth.
    pub(crate) fn number(self) -> f32 {
        match self {
            Self::Float(value) | Self::Half(value) => value,
            Self::Integer(value) => value as f32,
            // The lowest number is as the one above it.
            Self::Part { value, most, .. } => (value as f64 / most as f64).max(-1.0) as f32,
            Self::Shared { mantissa, exponent } => (mantissa << exponent) as f32 / SHARED_ONE as f32,
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
                *out = Value::Half((texel >> low & 0x1ff) as f32 * 2f32.powi(exponent));
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
                *out = srgb_to_linear(bits as u8);
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
            Value::Part { value: bits.into(), most: (u32::MAX >> (32 - width)).into(), steps: 0xffff }
        }
        DataType::Snorm => Value::Part {
            value: signed.into(),
            most: (u32::MAX >> (33 - width)).max(1).into(),
            steps: 0x7fff,
        },
        DataType::Float => match width {
            32 => Value::Float(f32::from_bits(bits)),
            16 => Value::Half(short_float(bits & 0x7fff, 10) * if bits & 0x8000 != 0 { -1.0 } else { 1.0 }),
            // Without a sign, as R, G and B of 11, 11 and 10 bits.
            _ => Value::Half(short_float(bits, width - 5)),
        },
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

/// The first byte of sRGB with a larger exponent than those before.
const SRGB_EXPONENTS: [u8; 13] = [1, 2, 4, 7, 13, 22, 32, 48, 64, 96, 136, 184, 248];

/// The linear numbers of sRGB's bytes as an H200 has them: not quite those of the curve. Those of one exponent `e` are in
/// 2^e parts of 2^19.
#[rustfmt::skip]
const SRGB: [u8; 256] = [
    0, 160, 160, 240, 160, 200, 240, 140, 160, 180, 200, 220, 240, 132, 144, 156,
    170, 184, 198, 214, 230, 246, 131, 140, 150, 159, 169, 180, 190, 201, 213, 224,
    118, 125, 131, 138, 145, 152, 159, 166, 174, 182, 190, 198, 206, 215, 224, 233,
    121, 126, 131, 136, 141, 146, 151, 156, 162, 168, 173, 179, 185, 191, 197, 204,
    105, 108, 112, 115, 118, 122, 125, 129, 133, 136, 140, 144, 148, 152, 156, 160,
    164, 169, 173, 177, 182, 186, 191, 195, 200, 205, 209, 214, 219, 224, 229, 234,
    120, 122, 125, 128, 130, 133, 136, 139, 142, 145, 148, 151, 154, 157, 160, 163,
    166, 169, 172, 176, 179, 182, 186, 189, 192, 196, 199, 203, 206, 210, 214, 217,
    221, 225, 229, 232, 236, 240, 244, 248, 126, 128, 130, 132, 134, 136, 138, 141,
    143, 145, 147, 149, 152, 154, 156, 158, 161, 163, 165, 168, 170, 173, 175, 178,
    180, 182, 185, 188, 190, 193, 195, 198, 200, 203, 206, 209, 211, 214, 217, 219,
    222, 225, 228, 231, 234, 237, 240, 242, 123, 124, 126, 127, 129, 130, 132, 133,
    135, 137, 138, 140, 141, 143, 145, 146, 148, 150, 151, 153, 155, 156, 158, 160,
    161, 163, 165, 167, 169, 170, 172, 174, 176, 178, 179, 181, 183, 185, 187, 189,
    191, 193, 195, 197, 199, 201, 203, 205, 207, 209, 211, 213, 215, 217, 219, 221,
    223, 225, 227, 229, 232, 234, 236, 238, 120, 121, 122, 123, 125, 126, 127, 128,
];

/// A byte of sRGB as a linear number.
fn srgb_to_linear(byte: u8) -> Value {
    let exponent = SRGB_EXPONENTS.iter().filter(|first| **first <= byte).count().saturating_sub(1);
    Value::Shared { mantissa: SRGB[usize::from(byte)].into(), exponent: exponent as u32 }
}

/// A number from 0 to 1 with as many bits.
fn shared(number: f64) -> Value {
    let parts = (number * f64::from(SHARED_ONE)) as u32;
    let exponent = parts.checked_ilog2().unwrap_or(0).saturating_sub(7);
    Value::Shared { mantissa: parts >> exponent, exponent }
}

impl Format {
    /// The border's colour in this format: components are rounded to it, halves towards zero.
    pub(crate) fn border(&self, bits: [u32; 4]) -> Texel {
        let mut out = bits.map(|bits| Value::Float(f32::from_bits(bits)));
        for (index, out) in out.iter_mut().enumerate() {
            let (kind, width) = (self.types[index], u32::from(self.fields[index].1));
            let number = f64::from(f32::from_bits(bits[index]));
            *out = match (kind, width) {
                (DataType::Uint | DataType::Sint, _) => Value::Integer(bits[index]),
                (_, 0) | (DataType::Float, 32) => *out,
                (DataType::Float, _) => Value::Half(f32::from_bits(bits[index])),
                (DataType::Unorm, 8) if self.srgb && index < 3 => shared(number.clamp(0.0, 1.0)),
                (DataType::Unorm | DataType::Snorm, _) => {
                    let signed = kind == DataType::Snorm;
                    let most = i64::from(u32::MAX >> (32 - width)) >> u32::from(signed);
                    let lowest = if signed { -1.0 } else { 0.0 };
                    let parts = number.clamp(lowest, 1.0) * most as f64;
                    let value = (parts.abs() - 0.5).ceil().copysign(parts) as i64;
                    Value::Part { value, most, steps: if signed { 0x7fff } else { 0xffff } }
                }
            };
        }
        out
    }
}

/// Components of several texels combined: each with its weight in 1/256, which sum up to one.
///
/// As an H200 does it, bit for bit where that was compared: floats to the nearest, halves away from zero, shorter floats
/// then to half precision the same way, and parts of a whole to a part of 65535, or 32767 where there are signs. Bytes with
/// signs come to parts of 32767 by shifts, and components of sRGB lose bits to the largest exponent among them.
pub(crate) fn combine(texels: &[(i64, Texel)]) -> Texel {
    let mut out = [Value::Float(0.0); 4];
    for (index, out) in out.iter_mut().enumerate() {
        let component = |texel: &Texel| texel[index];
        let first = texels.first().map_or(Value::Float(0.0), |(_, texel)| component(texel));
        if let Value::Part { most, steps, .. } = first {
            let parts = texels.iter().map(|(weight, texel)| match component(texel) {
                Value::Part { value, .. } => weight * value,
                _ => 0,
            });
            let parts = parts.sum::<i64>();
            let value = if most == i8::MAX.into() {
                // 32767 / 127 is 258 and a little, which is 256 and a part of 128 with a part of 256 of that.
                parts + (((parts >> 4) + (parts >> 12) + 4) >> 3)
            } else {
                let whole = i128::from(most) << FRACTION;
                (2 * i128::from(parts) * i128::from(steps) + whole).div_euclid(2 * whole) as i64
            };
            let value = value.clamp(-steps, steps);
            *out = Value::Part { value, most: steps, steps };
            continue;
        }
        if let Value::Shared { .. } = first {
            let exponents = texels.iter().map(|(_, texel)| match component(texel) {
                Value::Shared { exponent, .. } => exponent,
                _ => 0,
            });
            let largest = exponents.max().unwrap_or(0);
            let sum = texels.iter().fold(0, |sum, (weight, texel)| match component(texel) {
                Value::Shared { mantissa, exponent } => {
                    sum + weight * i64::from(mantissa >> (largest - exponent))
                }
                _ => sum,
            });
            *out = Value::Half(half_away((sum << largest) as f64 / f64::from(SHARED_ONE << FRACTION)));
            continue;
        }
        let sum = texels
            .iter()
            .fold(0f64, |sum, (weight, texel)| sum + *weight as f64 * f64::from(component(texel).number()));
        let sum = sum / f64::from(1 << FRACTION);
        *out = match first {
            Value::Half(_) => Value::Half(half_away(sum)),
            _ => Value::Float(single_away(sum)),
        };
    }
    out
}

/// Rounded to a float, halves away from zero.
fn single_away(number: f64) -> f32 {
    const LOST: u32 = f64::MANTISSA_DIGITS - f32::MANTISSA_DIGITS;
    if number.abs() < f64::from(f32::MIN_POSITIVE) || !number.is_finite() {
        return number as f32;
    }
    let up = number.to_bits() + (1 << (LOST - 1));
    f64::from_bits(up & !((1 << LOST) - 1)) as f32
}

/// Rounded to half precision, halves away from zero.
fn half_away(number: f64) -> f32 {
    /// The smallest normal number, the smallest step, and the largest number.
    const NORMAL: f64 = 1.0 / 16384.0;
    const STEP: f64 = NORMAL / 1024.0;
    const LARGEST: f64 = 65504.0;
    const LOST: u32 = f64::MANTISSA_DIGITS - 11;
    if !number.is_finite() {
        return number as f32;
    }
    let rounded = if number.abs() < NORMAL {
        (number / STEP).round() * STEP
    } else {
        f64::from_bits((number.to_bits() + (1 << (LOST - 1))) & !((1 << LOST) - 1))
    };
    if rounded.abs() > LARGEST { f32::INFINITY.copysign(number as f32) } else { rounded as f32 }
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
        assert_eq!(one(C::B5G6R5, DataType::Uint, 0x1841), [1.0, 2.0, 3.0, 1.0]);
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
    fn weights_round_as_an_h200_rounds_them() {
        let float = |value: f32| [Value::Float(value); 4];
        // 130/256 of a way, from a recording: a tie goes away from zero.
        assert_eq!(single_away(f64::from(1.0f32) + 2f64.powi(-24)).to_bits(), 0x3f80_0001);
        assert_eq!(single_away(-(1.0 + 2f64.powi(-24))).to_bits(), 0xbf80_0001);
        assert_eq!(combine(&[(64, float(1.0)), (192, float(2.0))])[0], Value::Float(1.75));
        assert_eq!(half_away(1.0 + 2f64.powi(-11)), 1.0 + 2f32.powi(-10));
        assert_eq!(half_away(70_000.0), f32::INFINITY);
        let part = |value| [Value::Part { value, most: 255, steps: 0xffff }; 4];
        // One byte more at 1/256 is one part of 65535 more.
        assert_eq!(combine(&[(255, part(10)), (1, part(11))])[0].number(), (2571.0 / 65535.0) as f32);
    }

    #[test]
    fn a_border_is_of_the_textures_format() {
        let border = [0.25f32, -2.0, 7.0, 0.5].map(f32::to_bits);
        let of =
            |components, kind| Format::new(components, [kind; 4], false).border(border).map(Value::number);
        let bytes = of(Components::A8B8G8R8, DataType::Unorm);
        assert_eq!(bytes, [64.0 / 255.0, 0.0, 1.0, 127.0 / 255.0]);
        let signed = of(Components::A8B8G8R8, DataType::Snorm);
        assert_eq!(signed, [32.0 / 127.0, -1.0, 1.0, 63.0 / 127.0]);
        assert_eq!(of(Components::R32G32B32A32, DataType::Float), [0.25, -2.0, 7.0, 0.5]);
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
