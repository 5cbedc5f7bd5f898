//! A texture: a header and its sampler, checked once and used for every access.

use nv_abi::texture::{AddressMode, DataType, DescriptorError, Header, HeaderVersion, Kind, Sampler};

use crate::format::Format;
use crate::layout::Layout;

/// Something that a texture may ask for, and that is not simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unsupported(pub String);

/// Why a descriptor is of no use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextureError {
    /// The header, or the sampler where one is needed, cannot be read.
    #[error(transparent)]
    Descriptor(#[from] DescriptorError),
    /// It can, and what it asks for is not simulated.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
}

/// What coordinates an instruction gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One.
    OneD,
    /// Two.
    TwoD,
    /// Three.
    ThreeD,
    /// A direction.
    Cube,
    /// One, of a layer.
    OneDArray,
    /// Two, of a layer.
    TwoDArray,
    /// A direction, of a cube.
    CubeArray,
}

impl Shape {
    /// All of them, as instructions number them; one number is not used.
    pub const BY_NUMBER: [Option<Self>; 8] = [
        Some(Self::OneD),
        Some(Self::TwoD),
        Some(Self::ThreeD),
        Some(Self::Cube),
        Some(Self::OneDArray),
        Some(Self::TwoDArray),
        None,
        Some(Self::CubeArray),
    ];

    /// Coordinates beside the layer.
    pub const fn coordinates(self) -> usize {
        match self {
            Self::OneD | Self::OneDArray => 1,
            Self::TwoD | Self::TwoDArray => 2,
            Self::ThreeD | Self::Cube | Self::CubeArray => 3,
        }
    }

    /// Whether a layer is named.
    pub const fn is_array(self) -> bool {
        matches!(self, Self::OneDArray | Self::TwoDArray | Self::CubeArray)
    }

    /// Whether textures of a kind take these coordinates.
    const fn takes(self, kind: Kind) -> bool {
        match self {
            Self::OneD => matches!(kind, Kind::OneD | Kind::OneDBuffer),
            Self::TwoD => matches!(kind, Kind::OneD | Kind::TwoD | Kind::TwoDNoMipmap),
            Self::ThreeD => matches!(kind, Kind::ThreeD),
            Self::Cube => matches!(kind, Kind::Cubemap),
            Self::OneDArray => matches!(kind, Kind::OneDArray),
            Self::TwoDArray => matches!(kind, Kind::OneDArray | Kind::TwoDArray),
            Self::CubeArray => matches!(kind, Kind::CubemapArray),
        }
    }
}

/// A texture, ready to be read.
#[derive(Clone, Debug)]
pub struct Texture {
    pub(crate) header: Header,
    sampler: Result<Sampler, TextureError>,
    pub(crate) format: Format,
    pub(crate) layout: Layout,
}

impl Texture {
    /// Reads a header and, if there is one, a sampler.
    ///
    /// # Errors
    /// The header means nothing, or what it asks for is not simulated. What is wrong with the sampler is said where
    /// one is needed.
    pub fn new(version: HeaderVersion, header: &[u8], sampler: Option<&[u8]>) -> Result<Self, TextureError> {
        let header = Header::decode(version, header)?;
        let sampler = match sampler {
            Some(bytes) => Sampler::decode(bytes).map_err(TextureError::from).and_then(check_sampler),
            None => Err(Unsupported("a sampler outside the pool".to_owned()).into()),
        };
        let [first, rest @ ..] = header.data_types;
        if rest.iter().any(|kind| is_integer(*kind) != is_integer(first)) {
            return Err(Unsupported("integers beside other numbers in one texel".to_owned()).into());
        }
        let format = Format::new(header.components, header.data_types, header.srgb);
        let layout = Layout::new(&header, format.bytes());
        Ok(Self { header, sampler, format, layout })
    }

    /// The sampler.
    pub(crate) fn sampler(&self) -> Result<&Sampler, TextureError> {
        self.sampler.as_ref().map_err(Clone::clone)
    }

    /// Refuses coordinates that do not suit the texture.
    pub(crate) fn check_shape(&self, shape: Shape) -> Result<(), TextureError> {
        if shape.takes(self.header.kind) {
            return Ok(());
        }
        let what = format!("{shape:?} coordinates of a texture of kind {:?}", self.header.kind);
        Err(Unsupported(what).into())
    }

    /// The addresses of all texels in order: x before y before z before layers, all of that for each level.
    pub fn places(&self) -> impl Iterator<Item = u64> {
        let layers = self.layout.layers;
        (0..=u32::from(self.header.max_mip_level)).flat_map(move |level| {
            let level = self.layout.level(level);
            let [width, height, depth] = level.extent;
            (0..layers).flat_map(move |layer| {
                (0..depth).flat_map(move |z| {
                    (0..height).flat_map(move |y| {
                        (0..width).map(move |x| self.layout.texel(level, [x, y, z], layer))
                    })
                })
            })
        })
    }

    /// Width, height, depth or layers of a level, and the number of levels.
    pub fn dimensions(&self, level: u32) -> [u32; 4] {
        let [first, last] = self.header.view_levels.map(u32::from);
        let [width, height, depth] = self.layout.level(first + level).extent;
        let depth = if self.header.kind.is_array() { self.header.extent[2] } else { depth };
        [width, height, depth, last.saturating_sub(first) + 1]
    }
}

const fn is_integer(kind: DataType) -> bool {
    matches!(kind, DataType::Sint | DataType::Uint)
}

fn check_sampler(sampler: Sampler) -> Result<Sampler, TextureError> {
    use AddressMode as A;
    let half = [A::ClampOgl, A::MirrorOnceClampOgl];
    if let Some(mode) = sampler.address.iter().find(|mode| half.contains(mode)) {
        return Err(Unsupported(format!("address mode {mode:?}")).into());
    }
    Ok(sampler)
}
