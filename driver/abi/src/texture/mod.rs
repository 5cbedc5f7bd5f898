//! Texture headers and samplers: 32 bytes each, in pools whose addresses the compute class is told.
//!
//! [`rows`] has the bits of every form; [`Header`] and [`Sampler`] are what they say, whatever the form.

pub mod rows;

use crate::{Bits, BitsMut, Field, FieldError, Layout};
use rows::{
    TEXHEAD_1D, TEXHEAD_BL, TEXHEAD_PITCH, TEXHEAD_V2_1DRT, TEXHEAD_V2_1DSB, TEXHEAD_V2_BL, TEXHEAD_V2_PITCH,
    TEXSAMP,
};

/// Bytes of a texture header or sampler.
pub const DESCRIPTOR_BYTES: usize = 32;

/// Which family of texture headers a channel uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeaderVersion {
    /// The only one before Hopper.
    V1,
    /// What the class headers call V2: Hopper's by `SET_TEXTURE_HEADER_VERSION`, and the only one after it.
    V2,
}

/// Why a descriptor cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DescriptorError {
    /// A field has a value that means nothing, or that no field of the form can say.
    #[error("{form}.{field} is {value:#x}{}", .name.map_or(String::new(), |name| format!(" ({name})")))]
    Value {
        /// The form, by the vendor's name.
        form: &'static str,
        /// The field, by the vendor's name.
        field: &'static str,
        /// What it holds.
        value: u64,
        /// The vendor's name of the value, if it has one.
        name: Option<&'static str>,
    },
    /// The form cannot describe this.
    #[error("{form} has no {what}")]
    Absent {
        /// The form, by the vendor's name.
        form: &'static str,
        /// What is asked for.
        what: &'static str,
    },
    /// A value does not fit its field.
    #[error(transparent)]
    Field(#[from] FieldError),
}

/// Declares an enumeration whose values are those of a row, by the row's names.
macro_rules! named {
    ($(
        $(#[$meta:meta])*
        $name:ident { $($(#[$vmeta:meta])* $variant:ident = $value:expr),* $(,)? }
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vmeta])* $variant),* }

        impl $name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The number in the descriptor's field.
            pub const fn value(self) -> u64 {
                match self { $(Self::$variant => $value),* }
            }

            /// The one with that number.
            pub fn from_value(value: u64) -> Option<Self> {
                Self::ALL.iter().copied().find(|this| this.value() == value)
            }
        }
    )*};
}

named! {
    /// Shape of a texture: `TEXTURE_TYPE`.
    Kind {
        /// A line.
        OneD = TEXHEAD_BL::TEXTURE_TYPE::ONE_D,
        /// A plane.
        TwoD = TEXHEAD_BL::TEXTURE_TYPE::TWO_D,
        /// A box.
        ThreeD = TEXHEAD_BL::TEXTURE_TYPE::THREE_D,
        /// Six planes.
        Cubemap = TEXHEAD_BL::TEXTURE_TYPE::CUBEMAP,
        /// Lines.
        OneDArray = TEXHEAD_BL::TEXTURE_TYPE::ONE_D_ARRAY,
        /// Planes.
        TwoDArray = TEXHEAD_BL::TEXTURE_TYPE::TWO_D_ARRAY,
        /// Texels in a row, by number.
        OneDBuffer = TEXHEAD_BL::TEXTURE_TYPE::ONE_D_BUFFER,
        /// A plane of one level.
        TwoDNoMipmap = TEXHEAD_BL::TEXTURE_TYPE::TWO_D_NO_MIPMAP,
        /// Cubes.
        CubemapArray = TEXHEAD_BL::TEXTURE_TYPE::CUBEMAP_ARRAY,
    }

    /// Where a component of the result comes from: `X_SOURCE` to `W_SOURCE`.
    Source {
        /// Nothing.
        Zero = TEXHEAD_BL::X_SOURCE::IN_ZERO,
        /// The first component.
        R = TEXHEAD_BL::X_SOURCE::IN_R,
        /// The second.
        G = TEXHEAD_BL::X_SOURCE::IN_G,
        /// The third.
        B = TEXHEAD_BL::X_SOURCE::IN_B,
        /// The fourth.
        A = TEXHEAD_BL::X_SOURCE::IN_A,
        /// The integer 1.
        OneInteger = TEXHEAD_BL::X_SOURCE::IN_ONE_INT,
        /// 1.0.
        OneFloat = TEXHEAD_BL::X_SOURCE::IN_ONE_FLOAT,
    }

    /// What a component's bits are: `R_DATA_TYPE` to `A_DATA_TYPE` of [`HeaderVersion::V1`].
    DataType {
        /// -1.0 to 1.0.
        Snorm = TEXHEAD_BL::R_DATA_TYPE::NUM_SNORM,
        /// 0.0 to 1.0.
        Unorm = TEXHEAD_BL::R_DATA_TYPE::NUM_UNORM,
        /// A signed integer.
        Sint = TEXHEAD_BL::R_DATA_TYPE::NUM_SINT,
        /// An unsigned integer.
        Uint = TEXHEAD_BL::R_DATA_TYPE::NUM_UINT,
        /// A floating-point number.
        Float = TEXHEAD_BL::R_DATA_TYPE::NUM_FLOAT,
    }

    /// Sizes and order of components, from the highest bits to the lowest, or in memory order where underscores stand
    /// between them: `COMPONENTS`. Those that are neither compressed nor of depth buffers nor of video.
    Components {
        /// Four words.
        R32G32B32A32 = TEXHEAD_BL::COMPONENTS::SIZES_R32_G32_B32_A32,
        /// Three words.
        R32G32B32 = TEXHEAD_BL::COMPONENTS::SIZES_R32_G32_B32,
        /// Four halves.
        R16G16B16A16 = TEXHEAD_BL::COMPONENTS::SIZES_R16_G16_B16_A16,
        /// Two words.
        R32G32 = TEXHEAD_BL::COMPONENTS::SIZES_R32_G32,
        /// Three bytes in four.
        X8B8G8R8 = TEXHEAD_BL::COMPONENTS::SIZES_X8B8G8R8,
        /// Four bytes.
        A8B8G8R8 = TEXHEAD_BL::COMPONENTS::SIZES_A8B8G8R8,
        /// Three times ten bits, and two.
        A2B10G10R10 = TEXHEAD_BL::COMPONENTS::SIZES_A2B10G10R10,
        /// Two halves.
        R16G16 = TEXHEAD_BL::COMPONENTS::SIZES_R16_G16,
        /// A word.
        R32 = TEXHEAD_BL::COMPONENTS::SIZES_R32,
        /// Four times four bits.
        A4B4G4R4 = TEXHEAD_BL::COMPONENTS::SIZES_A4B4G4R4,
        /// One bit, and three times five.
        A5B5G5R1 = TEXHEAD_BL::COMPONENTS::SIZES_A5B5G5R1,
        /// Three times five bits, and one.
        A1B5G5R5 = TEXHEAD_BL::COMPONENTS::SIZES_A1B5G5R5,
        /// Five, six and five bits.
        B5G6R5 = TEXHEAD_BL::COMPONENTS::SIZES_B5G6R5,
        /// Five, five and six bits.
        B6G5R5 = TEXHEAD_BL::COMPONENTS::SIZES_B6G5R5,
        /// Two bytes.
        G8R8 = TEXHEAD_BL::COMPONENTS::SIZES_G8R8,
        /// A half.
        R16 = TEXHEAD_BL::COMPONENTS::SIZES_R16,
        /// A byte.
        R8 = TEXHEAD_BL::COMPONENTS::SIZES_R8,
        /// Two times four bits.
        G4R4 = TEXHEAD_BL::COMPONENTS::SIZES_G4R4,
        /// Three mantissas with one exponent.
        E5B9G9R9 = TEXHEAD_BL::COMPONENTS::SIZES_E5B9G9R9_SHAREDEXP,
        /// Three short floating-point numbers without signs.
        BF10GF11RF11 = TEXHEAD_BL::COMPONENTS::SIZES_BF10GF11RF11,
    }

    /// What happens to coordinates outside a texture: `ADDRESS_U`, `ADDRESS_V`, `ADDRESS_P`.
    AddressMode {
        /// It repeats.
        Wrap = TEXSAMP::ADDRESS_U::WRAP,
        /// It repeats, every other time mirrored.
        Mirror = TEXSAMP::ADDRESS_U::MIRROR,
        /// Its edge goes on.
        ClampToEdge = TEXSAMP::ADDRESS_U::CLAMP_TO_EDGE,
        /// The border begins.
        Border = TEXSAMP::ADDRESS_U::BORDER,
        /// Half a texel of border, which goes on.
        ClampOgl = TEXSAMP::ADDRESS_U::CLAMP_OGL,
        /// Mirrored once, then its edge goes on.
        MirrorOnceClampToEdge = TEXSAMP::ADDRESS_U::MIRROR_ONCE_CLAMP_TO_EDGE,
        /// Mirrored once, then the border begins.
        MirrorOnceBorder = TEXSAMP::ADDRESS_U::MIRROR_ONCE_BORDER,
        /// Mirrored once, then half a texel of border, which goes on.
        MirrorOnceClampOgl = TEXSAMP::ADDRESS_U::MIRROR_ONCE_CLAMP_OGL,
    }

    /// How texels of a level are combined: `MAG_FILTER` and, of those values, `MIN_FILTER`.
    Filter {
        /// The nearest one.
        Point = TEXSAMP::MAG_FILTER::MAG_POINT,
        /// The nearest two in each direction, by distance.
        Linear = TEXSAMP::MAG_FILTER::MAG_LINEAR,
    }

    /// How levels are combined: `MIP_FILTER`.
    MipFilter {
        /// The first one only.
        None = TEXSAMP::MIP_FILTER::MIP_NONE,
        /// The nearest one.
        Point = TEXSAMP::MIP_FILTER::MIP_POINT,
        /// The nearest two, by distance.
        Linear = TEXSAMP::MIP_FILTER::MIP_LINEAR,
    }

    /// How a reference value is compared with a texel: `DEPTH_COMPARE_FUNC`.
    Comparison {
        /// False.
        Never = TEXSAMP::DEPTH_COMPARE_FUNC::ZC_NEVER,
        /// Less.
        Less = TEXSAMP::DEPTH_COMPARE_FUNC::ZC_LESS,
        /// Equal.
        Equal = TEXSAMP::DEPTH_COMPARE_FUNC::ZC_EQUAL,
        /// Less or equal.
        LessEqual = TEXSAMP::DEPTH_COMPARE_FUNC::ZC_LEQUAL,
        /// Greater.
        Greater = TEXSAMP::DEPTH_COMPARE_FUNC::ZC_GREATER,
        /// Not equal.
        NotEqual = TEXSAMP::DEPTH_COMPARE_FUNC::ZC_NOTEQUAL,
        /// Greater or equal.
        GreaterEqual = TEXSAMP::DEPTH_COMPARE_FUNC::ZC_GEQUAL,
        /// True.
        Always = TEXSAMP::DEPTH_COMPARE_FUNC::ZC_ALWAYS,
    }
}

impl DataType {
    /// The number that [`HeaderVersion::V2`] has for it, in one field for all components.
    const fn value_v2(self) -> u64 {
        use TEXHEAD_V2_BL::DATA_TYPE as v;
        match self {
            Self::Snorm => v::TEX_DATA_TYPE_SNORM,
            Self::Unorm => v::TEX_DATA_TYPE_UNORM,
            Self::Sint => v::TEX_DATA_TYPE_SINT,
            Self::Uint => v::TEX_DATA_TYPE_UINT,
            Self::Float => v::TEX_DATA_TYPE_FLOAT,
        }
    }
}

impl Kind {
    /// Whether its depth counts layers.
    pub const fn is_array(self) -> bool {
        matches!(self, Self::OneDArray | Self::TwoDArray | Self::CubemapArray)
    }

    /// Whether it is made of cubes.
    pub const fn is_cube(self) -> bool {
        matches!(self, Self::Cubemap | Self::CubemapArray)
    }
}

/// How a texture's texels lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Memory {
    /// In a row.
    Buffer,
    /// In rows.
    Pitch {
        /// Bytes from one row to the next, a multiple of 32.
        bytes: u32,
    },
    /// In blocks of GOBs, each of 64 bytes by 8 rows.
    BlockLinear {
        /// Log2 of the GOBs of a block in each direction.
        gobs: [u8; 3],
    },
}

/// A texture header.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    /// Virtual address of the first texel.
    pub address: u64,
    /// How texels lie in memory.
    pub memory: Memory,
    /// Its shape.
    pub kind: Kind,
    /// Texels in each direction; the third counts layers of arrays, and cubes of arrays of cubes.
    pub extent: [u32; 3],
    /// Sizes of a texel's components.
    pub components: Components,
    /// What each of the four is.
    pub data_types: [DataType; 4],
    /// Where each component of a result comes from.
    pub sources: [Source; 4],
    /// Coordinates run from 0 to 1.
    pub normalized: bool,
    /// The first three components are encoded as sRGB has it.
    pub srgb: bool,
    /// The last level of detail there is.
    pub max_mip_level: u8,
    /// The levels in use, the first and the last.
    pub view_levels: [u8; 2],
    /// The smallest level of detail, in 1/256.
    pub min_lod_clamp: u16,
}

/// A sampler.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sampler {
    /// What happens outside, in each direction.
    pub address: [AddressMode; 3],
    /// How texels are combined where the texture is enlarged.
    pub mag_filter: Filter,
    /// How they are where it is reduced.
    pub min_filter: Filter,
    /// How levels are.
    pub mip_filter: MipFilter,
    /// Results are truths of a comparison with a reference value, where the instruction has one.
    pub compare: Option<Comparison>,
    /// Textures that say so are decoded from sRGB.
    pub srgb: bool,
    /// `MAX_ANISOTROPY`: 0 for none.
    pub max_anisotropy: u8,
    /// Added to the level of detail, in 1/256.
    pub lod_bias: i16,
    /// Smallest and largest level of detail, in 1/256.
    pub lod_clamp: [u16; 2],
    /// Whatever the header says, coordinates count texels.
    pub force_unnormalized: bool,
    /// `CUBEMAP_INTERFACE_FILTERING`: what happens where faces of a cube meet.
    pub cubemap_filtering: u8,
    /// The border's components, as bits.
    pub border: [u32; 4],
}

/// One form, ready to read.
struct Form<'a> {
    layout: Layout,
    bits: Bits<'a>,
}

impl Form<'_> {
    fn get(&self, name: &'static str) -> Result<u64, DescriptorError> {
        Ok(self.bits.get(self.field(name)?)?)
    }

    fn field(&self, name: &'static str) -> Result<&'static Field, DescriptorError> {
        self.layout.field(name).ok_or(DescriptorError::Absent { form: self.layout.name, what: name })
    }

    fn bad<T>(&self, name: &'static str, value: u64) -> Result<T, DescriptorError> {
        let named = self.layout.field(name).and_then(|field| field.enumerant(value));
        Err(DescriptorError::Value { form: self.layout.name, field: name, value, name: named })
    }

    fn named<T>(&self, name: &'static str, find: fn(u64) -> Option<T>) -> Result<T, DescriptorError> {
        let value = self.get(name)?;
        find(value).map_or_else(|| self.bad(name, value), Ok)
    }

    /// Refuses a field that is not zero: it asks for something that [`Header`] cannot say.
    fn zero(&self, names: &[&'static str]) -> Result<(), DescriptorError> {
        for name in names {
            if let Some(field) = self.layout.field(name) {
                match self.bits.get(field)? {
                    0 => {}
                    value => return self.bad(name, value),
                }
            }
        }
        Ok(())
    }
}

/// The layout that a texture header's own field names.
///
/// # Errors
/// It names none, or one with a colour key.
pub fn header_layout(version: HeaderVersion, bytes: &[u8]) -> Result<Layout, DescriptorError> {
    use TEXHEAD_BL::HEADER_VERSION as v1;
    use TEXHEAD_V2_BL::HEADER_VERSION as v2;
    let any = match version {
        HeaderVersion::V1 => TEXHEAD_BL::LAYOUT,
        HeaderVersion::V2 => TEXHEAD_V2_BL::LAYOUT,
    };
    let form = Form { layout: any, bits: Bits::new(bytes) };
    let value = form.get("HEADER_VERSION")?;
    match (version, value) {
        (HeaderVersion::V1, v1::SELECT_ONE_D_BUFFER) => Ok(TEXHEAD_1D::LAYOUT),
        (HeaderVersion::V1, v1::SELECT_PITCH) => Ok(TEXHEAD_PITCH::LAYOUT),
        (HeaderVersion::V1, v1::SELECT_BLOCKLINEAR) => Ok(TEXHEAD_BL::LAYOUT),
        (HeaderVersion::V2, v2::SELECT_PITCH_V2) => Ok(TEXHEAD_V2_PITCH::LAYOUT),
        (HeaderVersion::V2, v2::SELECT_BLOCKLINEAR_V2) => Ok(TEXHEAD_V2_BL::LAYOUT),
        (HeaderVersion::V2, v2::SELECT_ONE_D_RAW_TYPED) => Ok(TEXHEAD_V2_1DRT::LAYOUT),
        (HeaderVersion::V2, v2::SELECT_ONE_D_STRUCT_BUF) => Ok(TEXHEAD_V2_1DSB::LAYOUT),
        _ => form.bad("HEADER_VERSION", value),
    }
}

const SOURCES: [&str; 4] = ["X_SOURCE", "Y_SOURCE", "Z_SOURCE", "W_SOURCE"];
const TYPES: [&str; 4] = ["R_DATA_TYPE", "G_DATA_TYPE", "B_DATA_TYPE", "A_DATA_TYPE"];

/// Fields that are about how memory is looked up or which texels anisotropic filters take, and that change no result
/// of what [`Header`] describes.
const UNSAID: &[&str] =
    &["PACK_COMPONENTS", "GOB_DEPTH_OFFSET", "GOB3D", "TILE_WIDTH_IN_GOBS", "MULTI_SAMPLE_COUNT"];

impl Header {
    /// Reads a header of 32 bytes.
    ///
    /// # Errors
    /// What it says and this type cannot: a colour key, a compressed format, several samples.
    pub fn decode(version: HeaderVersion, bytes: &[u8]) -> Result<Self, DescriptorError> {
        let form = Form { layout: header_layout(version, bytes)?, bits: Bits::new(bytes) };
        form.zero(UNSAID)?;
        let name = form.layout.name;
        let memory = if name == TEXHEAD_1D::LAYOUT.name || name == TEXHEAD_V2_1DRT::LAYOUT.name {
            Memory::Buffer
        } else if name == TEXHEAD_V2_1DSB::LAYOUT.name {
            return form.bad("HEADER_VERSION", form.get("HEADER_VERSION")?);
        } else if name == TEXHEAD_PITCH::LAYOUT.name {
            Memory::Pitch { bytes: (form.get("PITCH_BIT21")? | form.get("PITCH_BITS20TO5")?) as u32 }
        } else if name == TEXHEAD_V2_PITCH::LAYOUT.name {
            Memory::Pitch { bytes: form.get("PITCH_BITS21TO5")? as u32 }
        } else {
            let mut gobs = [0; 3];
            let names = ["GOBS_PER_BLOCK_WIDTH", "GOBS_PER_BLOCK_HEIGHT", "GOBS_PER_BLOCK_DEPTH"];
            for (gobs, name) in gobs.iter_mut().zip(names) {
                *gobs = form.get(name)? as u8;
                if *gobs > 5 || name == names[0] && *gobs != 0 {
                    return form.bad(name, u64::from(*gobs));
                }
            }
            Memory::BlockLinear { gobs }
        };
        let buffer = memory == Memory::Buffer;
        let kind = match (buffer, version) {
            (true, HeaderVersion::V2) => Kind::OneDBuffer,
            _ => form.named("TEXTURE_TYPE", Kind::from_value)?,
        };
        if buffer != (kind == Kind::OneDBuffer) {
            return form.bad("TEXTURE_TYPE", kind.value());
        }
        let mut sources = [Source::Zero; 4];
        for (source, name) in sources.iter_mut().zip(SOURCES) {
            *source = form.named(name, Source::from_value)?;
        }
        Ok(Self {
            address: Self::address_of(&form)?,
            memory,
            kind,
            extent: Self::extent_of(&form, version, buffer)?,
            components: form.named("COMPONENTS", Components::from_value)?,
            data_types: Self::data_types_of(&form, version)?,
            sources,
            normalized: !buffer && form.get("NORMALIZED_COORDS")? != 0,
            srgb: form.layout.field("S_R_G_B_CONVERSION").is_some() && form.get("S_R_G_B_CONVERSION")? != 0,
            max_mip_level: if buffer { 0 } else { form.get("MAX_MIP_LEVEL")? as u8 },
            view_levels: if buffer {
                [0; 2]
            } else {
                [form.get("RES_VIEW_MIN_MIP_LEVEL")? as u8, form.get("RES_VIEW_MAX_MIP_LEVEL")? as u8]
            },
            min_lod_clamp: if buffer { 0 } else { form.get("MIN_LOD_CLAMP")? as u16 },
        })
    }

    fn address_of(form: &Form<'_>) -> Result<u64, DescriptorError> {
        let mut address = 0;
        for field in form.layout.fields.iter().filter(|field| field.name.starts_with("ADDRESS_BITS")) {
            let high = field.name.ends_with("TO32");
            address |= form.bits.get(field)? << if high { 32 } else { 0 };
        }
        Ok(address)
    }

    fn extent_of(form: &Form<'_>, version: HeaderVersion, buffer: bool) -> Result<[u32; 3], DescriptorError> {
        let split = |high: &'static str, low: &'static str, bit: u32| -> Result<u64, DescriptorError> {
            let high = form.layout.field(high).map_or(Ok(0), |field| form.bits.get(field))?;
            Ok(high << bit | form.layout.field(low).map_or(Ok(0), |field| form.bits.get(field))?)
        };
        let width = match (buffer, version) {
            (true, HeaderVersion::V1) => {
                split("WIDTH_MINUS_ONE_BITS31TO16", "WIDTH_MINUS_ONE_BITS15TO0", 16)?
            }
            _ => form.get("WIDTH_MINUS_ONE")?,
        };
        let height = split("HEIGHT_MINUS_ONE_BIT16", "HEIGHT_MINUS_ONE", 16)?;
        let depth = split("DEPTH_MINUS_ONE_BIT14", "DEPTH_MINUS_ONE", 14)?;
        // A buffer of 2^32 texels would be too much for any address that counts them.
        Ok([(width as u32).saturating_add(1), height as u32 + 1, depth as u32 + 1])
    }

    fn data_types_of(form: &Form<'_>, version: HeaderVersion) -> Result<[DataType; 4], DescriptorError> {
        let mut types = [DataType::Unorm; 4];
        match version {
            HeaderVersion::V1 => {
                for (kind, name) in types.iter_mut().zip(TYPES) {
                    *kind = form.named(name, DataType::from_value)?;
                }
            }
            HeaderVersion::V2 => {
                let find = |value| DataType::ALL.iter().copied().find(|kind| kind.value_v2() == value);
                types = [form.named("DATA_TYPE", find)?; 4];
            }
        }
        Ok(types)
    }

    /// The header's 32 bytes.
    ///
    /// # Errors
    /// A value does not fit, or the form has no field for it.
    pub fn encode(&self, version: HeaderVersion) -> Result<[u8; DESCRIPTOR_BYTES], DescriptorError> {
        use TEXHEAD_BL::HEADER_VERSION as v1;
        use TEXHEAD_V2_BL::HEADER_VERSION as v2;
        let (layout, select) = match (version, self.memory) {
            (HeaderVersion::V1, Memory::Buffer) => (TEXHEAD_1D::LAYOUT, v1::SELECT_ONE_D_BUFFER),
            (HeaderVersion::V1, Memory::Pitch { .. }) => (TEXHEAD_PITCH::LAYOUT, v1::SELECT_PITCH),
            (HeaderVersion::V1, Memory::BlockLinear { .. }) => (TEXHEAD_BL::LAYOUT, v1::SELECT_BLOCKLINEAR),
            (HeaderVersion::V2, Memory::Buffer) => (TEXHEAD_V2_1DRT::LAYOUT, v2::SELECT_ONE_D_RAW_TYPED),
            (HeaderVersion::V2, Memory::Pitch { .. }) => (TEXHEAD_V2_PITCH::LAYOUT, v2::SELECT_PITCH_V2),
            (HeaderVersion::V2, Memory::BlockLinear { .. }) => {
                (TEXHEAD_V2_BL::LAYOUT, v2::SELECT_BLOCKLINEAR_V2)
            }
        };
        let mut bytes = [0; DESCRIPTOR_BYTES];
        let mut form = Writer { layout, bits: BitsMut::new(&mut bytes) };
        form.set("HEADER_VERSION", select)?;
        self.put_address(&mut form)?;
        form.set("COMPONENTS", self.components.value())?;
        for (source, name) in self.sources.iter().zip(SOURCES) {
            form.set(name, source.value())?;
        }
        match version {
            HeaderVersion::V1 => {
                for (kind, name) in self.data_types.iter().zip(TYPES) {
                    form.set(name, kind.value())?;
                }
            }
            HeaderVersion::V2 => {
                let [first, rest @ ..] = self.data_types;
                if rest != [first; 3] {
                    return Err(form.absent("components of several types"));
                }
                form.set("DATA_TYPE", first.value_v2())?;
            }
        }
        let [width, height, depth] = self.extent.map(|size| u64::from(size).saturating_sub(1));
        if let Memory::Buffer = self.memory {
            match version {
                HeaderVersion::V1 => {
                    form.set("WIDTH_MINUS_ONE_BITS31TO16", width >> 16)?;
                    form.set("WIDTH_MINUS_ONE_BITS15TO0", width & 0xffff)?;
                    form.set("TEXTURE_TYPE", self.kind.value())?;
                }
                HeaderVersion::V2 => form.set("WIDTH_MINUS_ONE", width)?,
            }
            return Ok(bytes);
        }
        form.set("WIDTH_MINUS_ONE", width)?;
        match version {
            HeaderVersion::V1 => {
                form.set("HEIGHT_MINUS_ONE_BIT16", height >> 16)?;
                form.set("HEIGHT_MINUS_ONE", height & 0xffff)?;
            }
            HeaderVersion::V2 => form.set("HEIGHT_MINUS_ONE", height)?,
        }
        match self.memory {
            Memory::Buffer => {}
            Memory::Pitch { bytes } => {
                let bytes = u64::from(bytes);
                match version {
                    HeaderVersion::V1 => {
                        form.set("PITCH_BIT21", bytes & 1 << 21)?;
                        form.set("PITCH_BITS20TO5", bytes & !(1 << 21))?;
                        form.set("DEPTH_MINUS_ONE", depth)?;
                    }
                    HeaderVersion::V2 if depth != 0 => return Err(form.absent("depth")),
                    HeaderVersion::V2 => form.set("PITCH_BITS21TO5", bytes)?,
                }
            }
            Memory::BlockLinear { gobs: [x, y, z] } => {
                form.set("GOBS_PER_BLOCK_WIDTH", x.into())?;
                form.set("GOBS_PER_BLOCK_HEIGHT", y.into())?;
                form.set("GOBS_PER_BLOCK_DEPTH", z.into())?;
                match version {
                    HeaderVersion::V1 => {
                        form.set("DEPTH_MINUS_ONE_BIT14", depth >> 14)?;
                        form.set("DEPTH_MINUS_ONE", depth & 0x3fff)?;
                    }
                    HeaderVersion::V2 => form.set("DEPTH_MINUS_ONE", depth)?,
                }
            }
        }
        match version {
            HeaderVersion::V1 => form.set("BORDER_SIZE", TEXHEAD_BL::BORDER_SIZE::BORDER_SAMPLER_COLOR)?,
            HeaderVersion::V2 => form.set("BORDER_SOURCE", TEXHEAD_V2_BL::BORDER_SOURCE::BORDER_COLOR)?,
        }
        form.set("TEXTURE_TYPE", self.kind.value())?;
        form.set("NORMALIZED_COORDS", self.normalized.into())?;
        form.set("S_R_G_B_CONVERSION", self.srgb.into())?;
        form.set("MAX_MIP_LEVEL", self.max_mip_level.into())?;
        form.set("RES_VIEW_MIN_MIP_LEVEL", self.view_levels[0].into())?;
        form.set("RES_VIEW_MAX_MIP_LEVEL", self.view_levels[1].into())?;
        form.set("MIN_LOD_CLAMP", self.min_lod_clamp.into())?;
        form.set("LOD_ANISO_QUALITY", TEXHEAD_BL::LOD_ANISO_QUALITY::LOD_QUALITY_HIGH)?;
        form.set("LOD_ISO_QUALITY", TEXHEAD_BL::LOD_ISO_QUALITY::LOD_QUALITY_HIGH)?;
        Ok(bytes)
    }

    fn put_address(&self, form: &mut Writer<'_>) -> Result<(), DescriptorError> {
        for field in form.layout.fields.iter().filter(|field| field.name.starts_with("ADDRESS_BITS")) {
            let high = field.name.ends_with("TO32");
            form.bits.set(field, if high { self.address >> 32 } else { self.address & 0xffff_ffff })?;
        }
        Ok(())
    }
}

/// One form, being written.
struct Writer<'a> {
    layout: Layout,
    bits: BitsMut<'a>,
}

impl Writer<'_> {
    fn set(&mut self, name: &'static str, value: u64) -> Result<(), DescriptorError> {
        let field = self.layout.field(name).ok_or_else(|| self.absent(name))?;
        Ok(self.bits.set(field, value)?)
    }

    fn absent(&self, what: &'static str) -> DescriptorError {
        DescriptorError::Absent { form: self.layout.name, what }
    }
}

/// The value of a field of two's complement.
const fn signed(value: u64, width: u32) -> i16 {
    ((value << (64 - width)) as i64 >> (64 - width)) as i16
}

impl Sampler {
    /// The nearest texel; coordinates outside mean the nearest one inside.
    pub const POINT: Self = Self {
        address: [AddressMode::ClampToEdge; 3],
        mag_filter: Filter::Point,
        min_filter: Filter::Point,
        mip_filter: MipFilter::None,
        compare: None,
        srgb: true,
        max_anisotropy: 0,
        lod_bias: 0,
        lod_clamp: [0, 0xfff],
        force_unnormalized: false,
        cubemap_filtering: 0,
        border: [0; 4],
    };

    /// The same with the nearest texels combined by distance.
    pub const LINEAR: Self = Self { mag_filter: Filter::Linear, min_filter: Filter::Linear, ..Self::POINT };

    /// Reads a sampler of 32 bytes.
    ///
    /// # Errors
    /// What it says and this type cannot: reductions, anisotropic minification.
    pub fn decode(bytes: &[u8]) -> Result<Self, DescriptorError> {
        let form = Form { layout: TEXSAMP::LAYOUT, bits: Bits::new(bytes) };
        form.zero(&["FORCED_INVALID", "REDUCTION_FILTER"])?;
        let border = ["BORDER_COLOR_R", "BORDER_COLOR_G", "BORDER_COLOR_B", "BORDER_COLOR_A"];
        let mut sampler = Self {
            address: [
                form.named("ADDRESS_U", AddressMode::from_value)?,
                form.named("ADDRESS_V", AddressMode::from_value)?,
                form.named("ADDRESS_P", AddressMode::from_value)?,
            ],
            mag_filter: form.named("MAG_FILTER", Filter::from_value)?,
            min_filter: form.named("MIN_FILTER", Filter::from_value)?,
            mip_filter: form.named("MIP_FILTER", MipFilter::from_value)?,
            compare: match form.get("DEPTH_COMPARE")? {
                0 => None,
                _ => Some(form.named("DEPTH_COMPARE_FUNC", Comparison::from_value)?),
            },
            srgb: form.get("S_R_G_B_CONVERSION")? != 0,
            max_anisotropy: form.get("MAX_ANISOTROPY")? as u8,
            lod_bias: signed(form.get("MIP_LOD_BIAS")?, TEXSAMP::MIP_LOD_BIAS.width()),
            lod_clamp: [form.get("MIN_LOD_CLAMP")? as u16, form.get("MAX_LOD_CLAMP")? as u16],
            force_unnormalized: form.get("FLOAT_COORD_NORMALIZATION")? != 0,
            cubemap_filtering: form.get("CUBEMAP_INTERFACE_FILTERING")? as u8,
            border: [0; 4],
        };
        for (component, name) in sampler.border.iter_mut().zip(border) {
            *component = form.get(name)? as u32;
        }
        Ok(sampler)
    }

    /// The sampler's 32 bytes.
    ///
    /// # Errors
    /// A value does not fit.
    pub fn encode(&self) -> Result<[u8; DESCRIPTOR_BYTES], DescriptorError> {
        let mut bytes = [0; DESCRIPTOR_BYTES];
        let mut form = Writer { layout: TEXSAMP::LAYOUT, bits: BitsMut::new(&mut bytes) };
        let bias = self.lod_bias as u64 & ((1 << TEXSAMP::MIP_LOD_BIAS.width()) - 1);
        if signed(bias, TEXSAMP::MIP_LOD_BIAS.width()) != self.lod_bias {
            let (form, field) = (form.layout.name, TEXSAMP::MIP_LOD_BIAS.name);
            return Err(DescriptorError::Value { form, field, value: self.lod_bias as u64, name: None });
        }
        for (name, value) in [
            ("ADDRESS_U", self.address[0].value()),
            ("ADDRESS_V", self.address[1].value()),
            ("ADDRESS_P", self.address[2].value()),
            ("DEPTH_COMPARE", self.compare.is_some().into()),
            ("DEPTH_COMPARE_FUNC", self.compare.map_or(0, Comparison::value)),
            ("S_R_G_B_CONVERSION", self.srgb.into()),
            ("MAX_ANISOTROPY", self.max_anisotropy.into()),
            ("MAG_FILTER", self.mag_filter.value()),
            ("MIN_FILTER", self.min_filter.value()),
            ("MIP_FILTER", self.mip_filter.value()),
            ("CUBEMAP_INTERFACE_FILTERING", self.cubemap_filtering.into()),
            ("MIP_LOD_BIAS", bias),
            ("FLOAT_COORD_NORMALIZATION", self.force_unnormalized.into()),
            ("MIN_LOD_CLAMP", self.lod_clamp[0].into()),
            ("MAX_LOD_CLAMP", self.lod_clamp[1].into()),
            ("BORDER_COLOR_R", self.border[0].into()),
            ("BORDER_COLOR_G", self.border[1].into()),
            ("BORDER_COLOR_B", self.border[2].into()),
            ("BORDER_COLOR_A", self.border[3].into()),
        ] {
            form.set(name, value)?;
        }
        Ok(bytes)
    }
}
