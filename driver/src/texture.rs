//! Textures and surfaces: GPU memory that kernels read by coordinates.
//!
//! An [`Image`] says what lies in a buffer. [`Device::texture`] describes it, with a sampler, to the GPU and gives a
//! [`Texture`], which is passed to kernels as CUDA's `cudaTextureObject_t`; [`Device::surface`] gives what is passed as
//! `cudaSurfaceObject_t`.
//!
//! ```no_run
//! use nv_driver::texture::{Format, Image, Sampler};
//! # fn example(device: nv_driver::Device, kernel: nv_driver::Kernel) -> Result<(), nv_driver::Error> {
//! let pixels = device.buffer_from(&vec![0.5f32; 64 * 32])?;
//! let texture = device.texture(&pixels, &Image::rows(Format::FLOAT, 64, 32, 64 * 4), &Sampler::LINEAR)?;
//! kernel.launch([1; 3], [32, 1, 1], &[(&texture).into()])?;
//! # Ok(())
//! # }
//! ```

use std::{
    fmt::Debug,
    sync::{Arc, Mutex},
};

pub use nv_abi::texture::{
    AddressMode, Comparison, Components, DataType, DescriptorError, Filter, Kind, MipFilter, Sampler, Source,
};
use nv_abi::{
    arch::Generation,
    compute::{AMPERE_COMPUTE_A as compute, HOPPER_COMPUTE_A::SET_TEXTURE_HEADER_VERSION},
    texture::{DESCRIPTOR_BYTES, Header, HeaderVersion, Memory},
};

use crate::{
    Argument, Buffer, Device, Element, Error,
    memory::{Allocation, BUFFER, Request, bounds},
    pushbuffer::{COMPUTE, Pushbuffer, upper_lower},
    system::lock,
};

/// Textures and surfaces that a device has room for. Number 0 is never given out: a handle of zero is most likely a
/// mistake.
const PLACES: u32 = 4096;
/// Bytes and rows of a GOB, in which block-linear memory is laid out.
const GOB: [u64; 2] = [64, 8];
/// Bytes of a GOB.
const GOB_BYTES: u64 = GOB[0] * GOB[1];
/// Log2 of the most GOBs in height or depth of a block.
const MOST_GOBS: u32 = 4;
/// What the class calls version 1, and the class headers V2.
const SECOND_HEADERS: u32 = 1;

/// What a texel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    components: Components,
    data_type: DataType,
    bytes: u32,
    present: usize,
}

impl Format {
    /// One float.
    pub const FLOAT: Self = Self::new(Components::R32, DataType::Float);
    /// Four floats.
    pub const FLOAT4: Self = Self::new(Components::R32G32B32A32, DataType::Float);
    /// Four bytes, 0.0 to 1.0.
    pub const UNORM8X4: Self = Self::new(Components::A8B8G8R8, DataType::Unorm);
    /// One unsigned integer of 32 bits.
    pub const UINT: Self = Self::new(Components::R32, DataType::Uint);

    /// Components of sizes and of a type.
    pub const fn new(components: Components, data_type: DataType) -> Self {
        use Components as C;
        let (bytes, present) = match components {
            C::R32G32B32A32 => (16, 4),
            C::R32G32B32 => (12, 3),
            C::R16G16B16A16 => (8, 4),
            C::R32G32 => (8, 2),
            C::A8B8G8R8 | C::A2B10G10R10 => (4, 4),
            C::X8B8G8R8 | C::E5B9G9R9 | C::BF10GF11RF11 => (4, 3),
            C::R16G16 => (4, 2),
            C::R32 => (4, 1),
            C::A4B4G4R4 | C::A5B5G5R1 | C::A1B5G5R5 => (2, 4),
            C::B5G6R5 | C::B6G5R5 => (2, 3),
            C::G8R8 => (2, 2),
            C::R16 => (2, 1),
            C::R8 => (1, 1),
            C::G4R4 => (1, 2),
        };
        Self { components, data_type, bytes, present }
    }

    /// Bytes of a texel.
    pub const fn bytes(self) -> u32 {
        self.bytes
    }

    /// Where the components of a result come from: those that are not there are 0, and the last one 1.
    const fn sources(self) -> [Source; 4] {
        let one = match self.data_type {
            DataType::Sint | DataType::Uint => Source::OneInteger,
            DataType::Snorm | DataType::Unorm | DataType::Float => Source::OneFloat,
        };
        let mut sources = [Source::R, Source::G, Source::B, Source::A];
        let mut index = self.present;
        while index < 4 {
            sources[index] = if index == 3 { one } else { Source::Zero };
            index += 1;
        }
        sources
    }
}

/// What lies in a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    header: Header,
    format: Format,
}

/// One level of an image in block-linear memory.
struct Level {
    extent: [u64; 3],
    start: u64,
    /// Log2 of a block's GOBs in height and depth.
    gobs: [u32; 2],
    /// GOBs in a row, and blocks above each other and behind each other.
    blocks: [u64; 3],
}

impl Level {
    fn bytes(&self) -> u64 {
        self.blocks.iter().product::<u64>() * (GOB_BYTES << (self.gobs[0] + self.gobs[1]))
    }

    /// The place of a byte: blocks go along x, then y, then z; in a block GOBs go along y, then z.
    fn offset(&self, x: u64, y: u64, z: u64) -> u64 {
        let [log_y, log_z] = self.gobs;
        let (column, row) = (x / GOB[0], y / GOB[1]);
        let block = (z >> log_z) * self.blocks[1] * self.blocks[0] + (row >> log_y) * self.blocks[0] + column;
        let (row, slice) = (row & ((1 << log_y) - 1), z & ((1 << log_z) - 1));
        let gob = (block << (log_y + log_z)) + (slice << log_y) + row;
        let (x, y) = (x % GOB[0], y % GOB[1]);
        // Bits of the byte in its GOB, from the lowest: x0 to x3, y0, y1, x4, y2, x5. Found on an H200.
        let inside = (x & 15) | (y & 3) << 4 | (x >> 4 & 1) << 6 | (y >> 2) << 7 | (x >> 5) << 8;
        self.start + gob * GOB_BYTES + inside
    }
}

impl Image {
    fn new(format: Format, memory: Memory, kind: Kind, extent: [u32; 3]) -> Self {
        let header = Header {
            address: 0,
            memory,
            kind,
            extent,
            components: format.components,
            data_types: [format.data_type; 4],
            sources: format.sources(),
            normalized: false,
            srgb: false,
            max_mip_level: 0,
            view_levels: [0; 2],
            min_lod_clamp: 0,
        };
        Self { header, format }
    }

    /// Texels in a row, read by number: what CUDA calls linear memory.
    pub fn texels(format: Format, count: u32) -> Self {
        Self::new(format, Memory::Buffer, Kind::OneDBuffer, [count, 1, 1])
    }

    /// Rows that are `pitch` bytes apart, a multiple of 32.
    pub fn rows(format: Format, width: u32, height: u32, pitch: u32) -> Self {
        Self::new(format, Memory::Pitch { bytes: pitch }, Kind::TwoDNoMipmap, [width, height, 1])
    }

    /// Any kind of texture in blocks: what CUDA calls an array. The third of the extent counts layers, or cubes.
    /// [`Image::arrange`] puts texels in that order.
    pub fn blocks(format: Format, kind: Kind, extent: [u32; 3]) -> Self {
        let log2 = |size: u64| size.next_power_of_two().trailing_zeros().min(MOST_GOBS) as u8;
        let flat = matches!(kind, Kind::OneD | Kind::OneDArray);
        let rows = if flat { 1 } else { u64::from(extent[1]).div_ceil(GOB[1]) };
        let depth = if kind == Kind::ThreeD { log2(extent[2].into()) } else { 0 };
        Self::new(format, Memory::BlockLinear { gobs: [0, log2(rows), depth] }, kind, extent)
    }

    /// The same with coordinates from 0 to 1.
    #[must_use]
    pub fn normalized(mut self) -> Self {
        self.header.normalized = true;
        self
    }

    /// The same with its first three components encoded as sRGB.
    #[must_use]
    pub fn srgb(mut self) -> Self {
        self.header.srgb = true;
        self
    }

    /// The same with results made of other components.
    #[must_use]
    pub fn sources(mut self, sources: [Source; 4]) -> Self {
        self.header.sources = sources;
        self
    }

    /// The same with `count` levels of detail, each of half the size of the one before.
    #[must_use]
    pub fn levels(mut self, count: u8) -> Self {
        self.header.max_mip_level = count.saturating_sub(1);
        self.header.view_levels = [0, count.saturating_sub(1)];
        self
    }

    /// Layers, six for a cube.
    fn layers(&self) -> u64 {
        let depth = u64::from(self.header.extent[2]);
        match self.header.kind {
            Kind::OneDArray | Kind::TwoDArray => depth,
            Kind::Cubemap => 6,
            Kind::CubemapArray => 6 * depth,
            _ => 1,
        }
    }

    /// The levels in block-linear memory.
    fn plan(&self, gobs: [u8; 3]) -> Vec<Level> {
        let mut levels: Vec<Level> = Vec::new();
        for level in 0..=u32::from(self.header.max_mip_level) {
            let mut extent = self.header.extent.map(|size| u64::from(size >> level.min(31)).max(1));
            if matches!(self.header.kind, Kind::OneD | Kind::OneDArray) {
                extent[1] = 1;
            }
            if self.header.kind != Kind::ThreeD {
                extent[2] = 1;
            }
            let columns = (extent[0] * u64::from(self.format.bytes)).div_ceil(GOB[0]);
            let rows = extent[1].div_ceil(GOB[1]);
            // A block is no larger than what a small level needs.
            let log2 = |size: u64| size.next_power_of_two().trailing_zeros();
            let gobs = [u32::from(gobs[1]).min(log2(rows)), u32::from(gobs[2]).min(log2(extent[2]))];
            let blocks = [columns, rows.div_ceil(1 << gobs[0]), extent[2].div_ceil(1 << gobs[1])];
            let start = levels.last().map_or(0, |last| last.start + last.bytes());
            levels.push(Level { extent, start, gobs, blocks });
        }
        levels
    }

    /// Bytes of a layer with all its levels.
    fn layer_bytes(levels: &[Level]) -> u64 {
        let block = levels.first().map_or(1, |level| GOB_BYTES << (level.gobs[0] + level.gobs[1]));
        levels.iter().map(Level::bytes).sum::<u64>().next_multiple_of(block)
    }

    /// Bytes that the image needs.
    pub fn bytes(&self) -> u64 {
        let [width, height, _] = self.header.extent.map(u64::from);
        match self.header.memory {
            Memory::Buffer => width * u64::from(self.format.bytes),
            Memory::Pitch { bytes } => {
                u64::from(bytes) * height.saturating_sub(1) + width * u64::from(self.format.bytes)
            }
            Memory::BlockLinear { gobs } => Self::layer_bytes(&self.plan(gobs)) * self.layers(),
        }
    }

    /// Puts texels in the order of the image's memory. They are given without gaps: x before y before z before layers,
    /// all of that for each level. What is missing stays zero.
    pub fn arrange(&self, texels: &[u8]) -> Vec<u8> {
        let mut out = vec![0; self.bytes() as usize];
        self.each_texel(|from, to, bytes| {
            if let (Some(from), Some(to)) = (texels.get(from..from + bytes), out.get_mut(to..to + bytes)) {
                to.copy_from_slice(from);
            }
        });
        out
    }

    /// The other way round: texels without gaps from the image's memory.
    pub fn collect(&self, memory: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        self.each_texel(|_, from, bytes| match memory.get(from..from + bytes) {
            Some(texel) => out.extend_from_slice(texel),
            None => out.resize(out.len() + bytes, 0),
        });
        out
    }

    /// Calls `f` for each texel in order: its place without gaps, its place in memory, its size.
    fn each_texel(&self, mut f: impl FnMut(usize, usize, usize)) {
        let size = u64::from(self.format.bytes);
        let mut next = 0;
        let mut put = |at: u64| {
            f(next as usize, at as usize, size as usize);
            next += size;
        };
        let [width, height, _] = self.header.extent.map(u64::from);
        match self.header.memory {
            Memory::Buffer => (0..width).for_each(|x| put(x * size)),
            Memory::Pitch { bytes } => {
                for y in 0..height {
                    (0..width).for_each(|x| put(y * u64::from(bytes) + x * size));
                }
            }
            Memory::BlockLinear { gobs } => {
                let levels = self.plan(gobs);
                let stride = Self::layer_bytes(&levels);
                for level in &levels {
                    let [width, height, depth] = level.extent;
                    for layer in 0..self.layers() {
                        for z in 0..depth {
                            for y in 0..height {
                                for x in 0..width {
                                    put(layer * stride + level.offset(x * size, y, z));
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A device's descriptors.
#[derive(Debug)]
pub(crate) struct Pool {
    memory: Allocation,
    version: HeaderVersion,
    places: Mutex<Places>,
}

#[derive(Debug)]
struct Places {
    free: Vec<u32>,
    next: u32,
}

impl Pool {
    /// Makes the pools of headers and samplers, one behind the other.
    pub(crate) fn new(device: &Device) -> Result<Self, Error> {
        let bytes = 2 * u64::from(PLACES) * DESCRIPTOR_BYTES as u64;
        let memory =
            Allocation::new(device.gpu(), Request::video("the texture descriptors", bytes).visible())?;
        // A header of zeros is refused by whoever reads it.
        memory.window()?.write(0, &vec![0; bytes as usize])?;
        let version = match device.gpu().generation {
            Generation::Ampere | Generation::Ada => HeaderVersion::V1,
            Generation::Hopper | Generation::Blackwell => HeaderVersion::V2,
        };
        Ok(Self { memory, version, places: Mutex::new(Places { free: Vec::new(), next: 1 }) })
    }

    /// The methods that tell a compute object of the pools.
    pub(crate) fn methods(&self) -> Result<Pushbuffer, Error> {
        let mut push = Pushbuffer::default();
        if self.version == HeaderVersion::V2 {
            push.methods(COMPUTE, &SET_TEXTURE_HEADER_VERSION, &[SECOND_HEADERS])?;
        }
        for (method, offset) in
            [(&compute::SET_TEX_HEADER_POOL_A, 0), (&compute::SET_TEX_SAMPLER_POOL_A, Self::samplers())]
        {
            let [upper, lower] = upper_lower(self.memory.address() + offset);
            push.methods(COMPUTE, method, &[upper, lower, PLACES - 1])?;
        }
        Ok(push)
    }

    /// Where the samplers begin.
    const fn samplers() -> u64 {
        PLACES as u64 * DESCRIPTOR_BYTES as u64
    }

    fn take(&self) -> Result<u32, Error> {
        let mut places = lock(&self.places);
        if let Some(place) = places.free.pop() {
            return Ok(place);
        }
        if places.next >= PLACES {
            return Err(Error::Descriptors { places: PLACES - 1 });
        }
        places.next += 1;
        Ok(places.next - 1)
    }

    fn give_back(&self, place: u32) {
        lock(&self.places).free.push(place);
    }

    fn write(&self, place: u32, header: &Header, sampler: &Sampler) -> Result<(), Error> {
        let window = self.memory.window()?;
        let offset = u64::from(place) * DESCRIPTOR_BYTES as u64;
        window.write(offset, &header.encode(self.version)?)?;
        window.write(Self::samplers() + offset, &sampler.encode()?)
    }
}

/// What a texture or surface holds on to.
#[derive(Debug)]
struct Described {
    place: u32,
    device: Device,
    #[allow(dead_code, reason = "the memory must not go before the descriptor")]
    memory: Arc<dyn Debug + Send + Sync>,
}

impl Drop for Described {
    fn drop(&mut self) {
        // The descriptor must not change while a kernel uses it; a dead channel uses nothing.
        let _ = self.device.synchronize();
        if let Ok(pool) = self.device.descriptors() {
            pool.give_back(self.place);
        }
    }
}

/// An image with a sampler, as kernels read it. It keeps its memory.
#[derive(Debug)]
pub struct Texture(Described);

/// An image as kernels read and write it. It keeps its memory.
#[derive(Debug)]
pub struct Surface(Described);

macro_rules! handles {
    ($($type:ty),*) => {$(
        impl $type {
            /// What kernels take for it, 64 bits.
            pub fn handle(&self) -> u64 {
                self.0.place.into()
            }
        }

        impl From<&$type> for Argument {
            fn from(this: &$type) -> Self {
                Self::from(this.handle())
            }
        }
    )*};
}

handles!(Texture, Surface);

impl Device {
    /// Describes an image in a buffer, and how it is sampled.
    ///
    /// # Errors
    /// The buffer is too small, the image is not one that the GPU can describe, or too many are described already.
    pub fn texture<T: Element>(
        &self,
        buffer: &Buffer<T>,
        image: &Image,
        sampler: &Sampler,
    ) -> Result<Texture, Error> {
        let mut image = image.clone();
        if image.header.kind == Kind::OneD {
            // Compilers read lines as planes of one row, and a card gives nothing but zeros where the header says line.
            image.header.kind = Kind::TwoD;
            image.header.extent[1] = 1;
        }
        Ok(Texture(self.describe(buffer, &image, sampler)?))
    }

    /// Describes an image in a buffer that kernels load from and store to by position.
    ///
    /// # Errors
    /// As for [`Device::texture`].
    pub fn surface<T: Element>(&self, buffer: &Buffer<T>, image: &Image) -> Result<Surface, Error> {
        Ok(Surface(self.describe(buffer, image, &Sampler::POINT)?))
    }

    fn describe<T: Element>(
        &self,
        buffer: &Buffer<T>,
        image: &Image,
        sampler: &Sampler,
    ) -> Result<Described, Error> {
        if image.bytes() > buffer.bytes() {
            return Err(bounds(BUFFER, 0, image.bytes(), buffer.bytes()));
        }
        let pool = self.descriptors()?;
        let header = Header { address: buffer.address(), ..image.header.clone() };
        let described = Described { place: pool.take()?, device: self.clone(), memory: buffer.memory() };
        pool.write(described.place, &header, sampler)?;
        Ok(described)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_hold_every_texel_once_and_give_it_back() {
        for (kind, extent, levels) in [
            (Kind::TwoD, [37, 45, 1], 1),
            (Kind::ThreeD, [19, 13, 11], 4),
            (Kind::TwoDArray, [33, 20, 5], 3),
            (Kind::Cubemap, [16, 16, 1], 1),
            (Kind::OneDArray, [70, 1, 3], 1),
        ] {
            let image = Image::blocks(Format::FLOAT, kind, extent).levels(levels);
            let mut texels = 0;
            image.each_texel(|_, _, _| texels += 1);
            let given: Vec<u8> = (0..texels as u32).flat_map(u32::to_le_bytes).collect();
            let memory = image.arrange(&given);
            assert_eq!(memory.len() as u64, image.bytes());
            assert_eq!(image.collect(&memory), given, "{kind:?}");
        }
    }

    #[test]
    fn components_that_are_not_there_read_as_zero_and_one() {
        assert_eq!(Format::FLOAT.sources(), [Source::R, Source::Zero, Source::Zero, Source::OneFloat]);
        assert_eq!(Format::UINT.sources()[3], Source::OneInteger);
        assert_eq!(Format::FLOAT4.sources()[3], Source::A);
    }
}
