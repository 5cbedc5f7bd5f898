//! Surfaces: texels loaded and stored by position, without a sampler.

use nv_abi::texture::{DataType, Kind};

use crate::{Texture, TextureError, Unsupported};

/// What an access outside a surface does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutOfRange {
    /// Loads give zero, and stores do nothing: `.IGN`.
    Ignore,
    /// The nearest place inside is meant.
    Clamp,
    /// The kernel is stopped: `.TRAP`.
    Trap,
}

/// Where an access goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// To this address.
    At(u64),
    /// Nowhere.
    Outside,
    /// It stops the kernel.
    Trap,
}

/// How the coordinates of a surface are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SurfaceShape {
    /// x.
    OneD,
    /// x of a buffer.
    OneDBuffer,
    /// x and layer.
    OneDArray,
    /// x and y.
    TwoD,
    /// x, y and layer.
    TwoDArray,
    /// x, y and z.
    ThreeD,
}

impl SurfaceShape {
    /// As instructions number them.
    pub const BY_NUMBER: [Self; 6] =
        [Self::OneD, Self::OneDBuffer, Self::OneDArray, Self::TwoD, Self::TwoDArray, Self::ThreeD];

    /// Registers of the coordinates.
    pub const fn coordinates(self) -> usize {
        match self {
            Self::OneD | Self::OneDBuffer => 1,
            Self::OneDArray | Self::TwoD => 2,
            Self::TwoDArray | Self::ThreeD => 3,
        }
    }
}

impl Texture {
    /// Bytes of a texel.
    pub fn texel_bytes(&self) -> u32 {
        self.format.bytes()
    }

    /// Where an access of `bytes` bytes goes. The first coordinate counts bytes or, with `by_texel`, texels.
    ///
    /// # Errors
    /// The coordinates do not suit the surface.
    pub fn place(
        &self,
        shape: SurfaceShape,
        at: [i32; 3],
        bytes: u32,
        by_texel: bool,
        out_of_range: OutOfRange,
    ) -> Result<Place, TextureError> {
        use SurfaceShape as S;
        let kind = self.header.kind;
        let [x, a, b] = at;
        let (y, z, layer) = match (shape, kind) {
            (S::OneD, Kind::OneD) | (S::OneDBuffer | S::OneD, Kind::OneDBuffer) => (0, 0, 0),
            (S::OneDArray, Kind::OneDArray) => (0, 0, a),
            (S::TwoD, Kind::TwoD | Kind::TwoDNoMipmap) => (a, 0, 0),
            (S::TwoDArray, Kind::TwoDArray | Kind::Cubemap | Kind::CubemapArray) => (a, 0, b),
            (S::ThreeD, Kind::ThreeD) => (a, b, 0),
            _ => return Err(Unsupported(format!("{shape:?} access to a surface of kind {kind:?}")).into()),
        };
        let level = self.layout.level(self.header.view_levels[0].into());
        let texel = i64::from(self.format.bytes());
        let x = i64::from(x) * if by_texel { texel } else { 1 };
        let row = i64::from(level.extent[0]) * texel;
        // The last x at which the access still fits.
        let last = (row - i64::from(bytes)).max(0);
        let inside = |at: i32, size: u32| u32::try_from(at).is_ok_and(|at| at < size);
        let [_, height, depth] = level.extent;
        let fits = (0..=last).contains(&x) && i64::from(bytes) <= row;
        if fits && inside(y, height) && inside(z, depth) && inside(layer, self.layout.layers) {
            let address = self.layout.byte(level, x as u64, [y as u32, z as u32], layer as u32);
            return Ok(Place::At(address));
        }
        Ok(match out_of_range {
            OutOfRange::Ignore => Place::Outside,
            OutOfRange::Trap => Place::Trap,
            OutOfRange::Clamp => {
                let clamp = |at: i32, size: u32| i64::from(at).clamp(0, i64::from(size.max(1)) - 1) as u32;
                let layer = clamp(layer, self.layout.layers);
                let x = x.clamp(0, last) as u64;
                Place::At(self.layout.byte(level, x, [clamp(y, height), clamp(z, depth)], layer))
            }
        })
    }

    /// A texel's bits from up to four registers, as stores by the surface's format make them.
    ///
    /// # Errors
    /// The format is not one that registers are packed into.
    pub fn pack(&self, registers: [u32; 4]) -> Result<u128, TextureError> {
        let mut texel = 0;
        for (index, (low, width)) in self.format.fields().into_iter().enumerate() {
            if width == 0 {
                continue;
            }
            let bits = self.format.pack(index, registers[index])?;
            texel |= u128::from(bits) << low;
        }
        Ok(texel)
    }
}

/// Bits of a component of a format, from a register.
pub(crate) fn pack(register: u32, width: u8, kind: DataType) -> Result<u32, TextureError> {
    let most = u32::MAX >> (32 - u32::from(width));
    Ok(match (kind, width) {
        (DataType::Uint, _) => register.min(most),
        (DataType::Sint, _) => {
            let high = (most >> 1) as i32;
            (register as i32).clamp(-high - 1, high) as u32 & most
        }
        (DataType::Float, 32) => register,
        _ => {
            let what = format!("stores by format of {kind:?} components of {width} bits");
            return Err(Unsupported(what).into());
        }
    })
}
