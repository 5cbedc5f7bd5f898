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
}

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
                *out = Value::Half(srgb_to_linear(bits));
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

/// A byte of sRGB as a linear number.
fn srgb_to_linear(byte: u32) -> f32 {
    SRGB.get(byte as usize).map_or(0.0, |value| *value as f32 / 65536.0)
}

/// The numbers of sRGB's bytes in 1/65536, as an H200 has them: not quite those of the curve. Those of 36, 77, 139 and 170
/// were not seen, and are the nearest on the grid of their neighbours.
#[rustfmt::skip]
const SRGB: [u32; 256] = [
    0, 20, 40, 60, 80, 100, 120, 140, 160, 180, 200, 220,
    240, 264, 288, 312, 340, 368, 396, 428, 460, 492, 524, 560,
    600, 636, 676, 720, 760, 804, 852, 896, 944, 1000, 1048, 1104,
    1156, 1216, 1272, 1328, 1392, 1456, 1520, 1584, 1648, 1720, 1792, 1864,
    1936, 2016, 2096, 2176, 2256, 2336, 2416, 2496, 2592, 2688, 2768, 2864,
    2960, 3056, 3152, 3264, 3360, 3456, 3584, 3680, 3776, 3904, 4000, 4128,
    4256, 4352, 4480, 4608, 4736, 4864, 4992, 5120, 5248, 5408, 5536, 5664,
    5824, 5952, 6112, 6240, 6400, 6560, 6688, 6848, 7008, 7168, 7328, 7488,
    7680, 7808, 8000, 8192, 8320, 8512, 8704, 8896, 9088, 9280, 9472, 9664,
    9856, 10048, 10240, 10432, 10624, 10816, 11008, 11264, 11456, 11648, 11904, 12096,
    12288, 12544, 12736, 12992, 13184, 13440, 13696, 13888, 14144, 14400, 14656, 14848,
    15104, 15360, 15616, 15872, 16128, 16384, 16640, 16896, 17152, 17408, 17664, 18048,
    18304, 18560, 18816, 19072, 19456, 19712, 19968, 20224, 20608, 20864, 21120, 21504,
    21760, 22144, 22400, 22784, 23040, 23296, 23680, 24064, 24320, 24704, 24960, 25344,
    25600, 25984, 26368, 26752, 27008, 27392, 27776, 28032, 28416, 28800, 29184, 29568,
    29952, 30336, 30720, 30976, 31488, 31744, 32256, 32512, 33024, 33280, 33792, 34048,
    34560, 35072, 35328, 35840, 36096, 36608, 37120, 37376, 37888, 38400, 38656, 39168,
    39680, 39936, 40448, 40960, 41216, 41728, 42240, 42752, 43264, 43520, 44032, 44544,
    45056, 45568, 45824, 46336, 46848, 47360, 47872, 48384, 48896, 49408, 49920, 50432,
    50944, 51456, 51968, 52480, 52992, 53504, 54016, 54528, 55040, 55552, 56064, 56576,
    57088, 57600, 58112, 58624, 59392, 59904, 60416, 60928, 61440, 61952, 62464, 62976,
    64000, 64512, 65024, 65536,
];

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
                (DataType::Unorm, 8) if self.srgb && index < 3 => Value::Half(number.clamp(0.0, 1.0) as f32),
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
/// then to half precision the same way, and parts of a whole to a part of 65535, or 32767 where there are signs. Of the
/// latter, one of 8-bit components in twenty differs by one such part, and components of sRGB differ by up to 1/256.
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
            let sum = i128::from(parts.sum::<i64>()) * i128::from(steps);
            let whole = i128::from(most) << FRACTION;
            let value = ((2 * sum + whole).div_euclid(2 * whole) as i64).max(-steps);
            *out = Value::Part { value, most: steps, steps };
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
