//! Where texels lie.

use nv_abi::texture::{Header, Kind, Memory};

/// Bytes of a row of a GOB.
const GOB_WIDTH: u64 = 64;
/// Rows of a GOB.
const GOB_HEIGHT: u64 = 8;
/// Bytes of a GOB.
const GOB_BYTES: u64 = GOB_WIDTH * GOB_HEIGHT;

/// The byte of a GOB that holds byte `x` of row `y`, as an H200 lays it out: four rows of 16 bytes, two of those beside each
/// other, two of these below each other, and again two beside each other. (Older GPUs had other orders.)
const fn in_gob(x: u64, y: u64) -> u64 {
    (x & 63) / 32 * 256 + (y & 7) / 4 * 128 + (x & 31) / 16 * 64 + (y & 3) * 16 + (x & 15)
}

/// One level of detail of a texture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Level {
    /// Texels in each direction, layers not among them.
    pub(crate) extent: [u32; 3],
    /// Bytes from the layer's start.
    offset: u64,
    /// Log2 of a block's GOBs in height and depth.
    gobs: [u8; 2],
    /// Bytes of a row: of GOBs where there are blocks.
    row: u64,
}

/// The levels of a texture.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    memory: Memory,
    address: u64,
    texel_bytes: u64,
    levels: Vec<Level>,
    /// Bytes from one layer to the next.
    layer_bytes: u64,
    /// Layers, six for each cube.
    pub(crate) layers: u32,
}

/// Log2 of a block's GOBs where a level is smaller than the block.
const fn shrink(mut log2: u8, size: u64) -> u8 {
    while log2 > 0 && size <= 1 << (log2 - 1) {
        log2 -= 1;
    }
    log2
}

impl Layout {
    pub(crate) fn new(header: &Header, texel_bytes: u32) -> Self {
        let texel_bytes = u64::from(texel_bytes);
        let [width, height, depth] = header.extent;
        let (height, depth, layers) = match header.kind {
            Kind::OneD | Kind::OneDBuffer => (1, 1, 1),
            Kind::OneDArray => (1, 1, depth),
            Kind::TwoD | Kind::TwoDNoMipmap => (height, 1, 1),
            Kind::TwoDArray => (height, 1, depth),
            Kind::ThreeD => (height, depth, 1),
            Kind::Cubemap => (height, 1, 6),
            Kind::CubemapArray => (height, 1, depth.saturating_mul(6)),
        };
        let mut levels = Vec::new();
        let mut end = 0u64;
        for level in 0..=u32::from(header.max_mip_level) {
            let extent = [width, height, depth].map(|size| (size >> level.min(31)).max(1));
            let (row, gobs, bytes) = match header.memory {
                Memory::Buffer => (u64::from(width) * texel_bytes, [0; 2], 0),
                Memory::Pitch { bytes } => (bytes.into(), [0; 2], 0),
                Memory::BlockLinear { gobs: [_, y, z] } => {
                    let row = (u64::from(extent[0]) * texel_bytes).div_ceil(GOB_WIDTH) * GOB_BYTES;
                    let rows = u64::from(extent[1]).div_ceil(GOB_HEIGHT);
                    let gobs = [shrink(y, rows), shrink(z, extent[2].into())];
                    let blocks = rows.div_ceil(1 << gobs[0]) * u64::from(extent[2]).div_ceil(1 << gobs[1]);
                    (row, gobs, blocks * (row << (gobs[0] + gobs[1])))
                }
            };
            levels.push(Level { extent, offset: end, gobs, row });
            end += bytes;
        }
        // Layers begin with whole blocks.
        let layer_bytes = match header.memory {
            Memory::BlockLinear { .. } => {
                let [y, z] = levels.first().map_or([0; 2], |level| level.gobs);
                end.next_multiple_of(GOB_BYTES << (y + z))
            }
            Memory::Pitch { bytes } => u64::from(bytes) * u64::from(height),
            Memory::Buffer => 0,
        };
        Self { memory: header.memory, address: header.address, texel_bytes, levels, layer_bytes, layers }
    }

    /// A level; one that the texture does not have is its last.
    pub(crate) fn level(&self, level: u32) -> &Level {
        const NOTHING: Level = Level { extent: [1; 3], offset: 0, gobs: [0; 2], row: 0 };
        self.levels.get(level as usize).or(self.levels.last()).unwrap_or(&NOTHING)
    }

    /// The address of byte `x` in row `y` of slice `z`.
    pub(crate) fn byte(&self, level: &Level, x: u64, [y, z]: [u32; 2], layer: u32) -> u64 {
        let (y, z) = (u64::from(y), u64::from(z));
        let offset = match self.memory {
            Memory::Buffer => x,
            Memory::Pitch { .. } => y * level.row + z * level.row * u64::from(level.extent[1]) + x,
            Memory::BlockLinear { .. } => {
                let [log_y, log_z] = level.gobs;
                let (gob_y, rows) = (y / GOB_HEIGHT, u64::from(level.extent[1]).div_ceil(GOB_HEIGHT));
                let slab = (level.row << log_y << log_z) * rows.div_ceil(1 << log_y);
                let block = (z >> log_z) * slab
                    + (gob_y >> log_y) * (level.row << log_y << log_z)
                    + (x / GOB_WIDTH) * (GOB_BYTES << log_y << log_z);
                let inside = ((z & ((1 << log_z) - 1)) << log_y | gob_y & ((1 << log_y) - 1)) * GOB_BYTES;
                block + inside + in_gob(x, y)
            }
        };
        let layer = u64::from(layer) * self.layer_bytes;
        self.address.wrapping_add(level.offset).wrapping_add(layer).wrapping_add(offset)
    }

    /// The address of a texel.
    pub(crate) fn texel(&self, level: &Level, [x, y, z]: [u32; 3], layer: u32) -> u64 {
        self.byte(level, u64::from(x) * self.texel_bytes, [y, z], layer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nv_abi::texture::{Components, DataType, Source};

    fn header(memory: Memory, kind: Kind, extent: [u32; 3]) -> Header {
        Header {
            address: 0x1000,
            memory,
            kind,
            extent,
            components: Components::R32,
            data_types: [DataType::Float; 4],
            sources: [Source::R; 4],
            normalized: false,
            srgb: false,
            max_mip_level: 0,
            view_levels: [0; 2],
            min_lod_clamp: 0,
        }
    }

    #[test]
    fn every_byte_of_a_gob_has_one_place() {
        let mut seen = [false; 512];
        for y in 0..8 {
            for x in 0..64 {
                let at = in_gob(x, y) as usize;
                assert!(!seen[at], "byte {x} of row {y}");
                seen[at] = true;
            }
        }
        assert_eq!([in_gob(16, 0), in_gob(0, 1), in_gob(0, 4), in_gob(32, 0)], [64, 16, 128, 256]);
    }

    #[test]
    fn texels_of_all_layers_and_levels_are_apart() {
        let mut header = header(Memory::BlockLinear { gobs: [0, 2, 1] }, Kind::ThreeD, [37, 45, 5]);
        header.max_mip_level = 3;
        let layout = Layout::new(&header, 4);
        let mut seen = std::collections::HashSet::new();
        for level in 0..4 {
            let level = layout.level(level);
            let [w, h, d] = level.extent;
            for z in 0..d {
                for y in 0..h {
                    for x in 0..w {
                        assert!(seen.insert(layout.texel(level, [x, y, z], 0)), "{x} {y} {z}");
                    }
                }
            }
        }
        header.kind = Kind::TwoDArray;
        let layout = Layout::new(&header, 4);
        let last = layout.texel(layout.level(3), [3, 4, 0], 0);
        assert!(layout.texel(layout.level(0), [0; 3], 1) > last);
    }

    #[test]
    fn rows_of_pitch_memory_are_a_pitch_apart() {
        let layout = Layout::new(&header(Memory::Pitch { bytes: 256 }, Kind::TwoD, [37, 9, 1]), 4);
        assert_eq!(layout.texel(layout.level(0), [3, 2, 0], 0), 0x1000 + 512 + 12);
    }
}
