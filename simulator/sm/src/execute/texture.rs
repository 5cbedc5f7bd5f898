//! Textures and surfaces: operands and results of what [`nv_texture`] computes, lane by lane.

use std::sync::Arc;

use nv_memory::AccessKind;
use nv_texture::{Filtered, Lod, OutOfRange, Place, Position, ReadError, Shape, SurfaceShape, Texture};

use super::super::atomic;
use super::super::core::Core;
use super::super::fault::FaultKind;
use super::super::lanes::{LANES, each, first};
use super::super::memory::{load, store};
use super::super::micro::{Flow, Micro, RowIndex};
use super::super::texture::{self, fault};
use super::handlers;

/// Payload: the row of the handle in 15:0.
pub(crate) const HANDLE_IS_OPERAND: u64 = 1 << 16;
/// Number of the shape in 19:17.
pub(crate) const SHAPE: u32 = 17;
/// Which level of detail, in 21:20.
pub(crate) const LOD: u32 = 20;
/// From the coordinates of the quad.
pub(crate) const LOD_COMPUTED: u64 = 0;
/// The first.
pub(crate) const LOD_ZERO: u64 = 1;
/// From the coordinates of the quad, and an operand more.
pub(crate) const LOD_BIAS: u64 = 2;
/// By an operand.
pub(crate) const LOD_LEVEL: u64 = 3;
/// Operands of the first vector in 25:22.
pub(crate) const FIRST: u32 = 22;
/// Components that are wanted, in 29:26.
pub(crate) const MASK: u32 = 26;
/// An operand holds texels to add.
pub(crate) const HAS_OFFSET: u64 = 1 << 30;
/// An operand is a reference value.
pub(crate) const COMPARES: u64 = 1 << 31;
/// What an access outside a surface does, in 33:32.
pub(crate) const OUT_OF_RANGE: u32 = 32;
/// The first coordinate of a surface counts bytes.
pub(crate) const BY_BYTES: u64 = 1 << 34;
/// The value is sign-extended.
pub(crate) const SIGNED: u64 = 1 << 35;
/// The handle is a pair of registers.
pub(crate) const HANDLE_IS_PAIR: u64 = 1 << 36;

/// The operands of one lane, taken one after the other.
struct Operands<'a, 'c> {
    core: &'a Core<'c>,
    lane: usize,
    a: RowIndex,
    b: RowIndex,
    first: u16,
    next: u16,
}

impl<'a, 'c> Operands<'a, 'c> {
    fn new(core: &'a Core<'c>, op: &Micro, lane: usize) -> Self {
        let first = (op.payload >> FIRST & 15) as u16;
        Self { core, lane, a: op.a, b: op.b, first, next: 0 }
    }

    fn row(&mut self) -> RowIndex {
        let at = self.next;
        self.next += 1;
        if at < self.first { self.a.plus(at) } else { self.b.plus(at - self.first) }
    }

    fn word(&mut self) -> u32 {
        let row = self.row();
        self.core.row(row)[self.lane]
    }

    fn number(&mut self) -> f32 {
        f32::from_bits(self.word())
    }
}

/// How far apart offsets lie in their register, in bits: four of signed numbers, or of a gather eight.
fn offsets(word: u32, step: u32, width: u32) -> [i32; 3] {
    [0, 1, 2].map(|axis| {
        let bits = word >> (step * axis);
        (bits << (32 - width)) as i32 >> (32 - width)
    })
}

fn shape(op: &Micro) -> Shape {
    let number = op.payload >> SHAPE & 7;
    // Lowering refused the number that has none.
    Shape::BY_NUMBER[number as usize].unwrap_or(Shape::OneD)
}

impl Core<'_> {
    /// The handle that all lanes have.
    fn common_handle(&self, op: &Micro) -> Result<u32, FaultKind> {
        let row = RowIndex(op.payload as u16);
        if op.payload & HANDLE_IS_PAIR != 0 && self.row(row.plus(1))[0] != 0 {
            // Compilers put zero there.
            return Err(FaultKind::Unsupported("texture handles of more than 32 bits".to_owned()));
        }
        Ok(self.row(row)[0])
    }

    fn texture_of(&mut self, handle: u32) -> Result<Arc<Texture>, FaultKind> {
        let (caches, launch) = (&mut *self.caches, self.launch);
        caches.textures.get(launch, &mut caches.windows, handle)
    }

    /// Runs a read for each lane and puts the components that are wanted into the destinations.
    fn texture_lanes(
        &mut self,
        op: &Micro,
        mask: u32,
        mut read: impl FnMut(&mut Self, usize, Option<u32>) -> Result<(Arc<Texture>, Request), FaultKind>,
    ) -> Flow {
        let wanted = op.payload >> MASK & 15;
        let handle = if op.payload & HANDLE_IS_OPERAND != 0 {
            None
        } else {
            match self.common_handle(op) {
                Ok(handle) => Some(handle),
                Err(kind) => return self.fail(kind),
            }
        };
        let mut out = [[0; LANES]; 4];
        for lane in each(mask) {
            let result = read(self, lane, handle).and_then(|(texture, request)| request.run(self, &texture));
            match result {
                Ok(texel) => {
                    for (out, component) in out.iter_mut().zip(texel) {
                        out[lane] = component;
                    }
                }
                Err(kind) => return self.fail(kind),
            }
        }
        let components = (0..4).filter(|component| wanted >> component & 1 != 0);
        for (place, component) in (0u16..).zip(components) {
            let to = if place < 2 { op.d.plus(place) } else { op.c.plus(place - 2) };
            self.put(to, mask, &out[component]);
        }
        // Everything is resident.
        self.put_predicate(op.to[0], mask, 0);
        Flow::Next
    }

    /// How a coordinate changes to the neighbours in a quad of lanes, in both directions.
    fn quad_change(&self, row: RowIndex, lane: usize) -> [f32; 2] {
        let value = |lane: usize| f32::from_bits(self.row(row)[lane & 31]);
        let first = lane & !3;
        let (left, top) = (first | lane & 2, first | lane & 1);
        [value(left | 1) - value(left), value(top | 2) - value(top)]
    }
}

/// What a lane asks of a texture.
enum Request {
    Sample(Position, Lod, Option<f32>),
    Gather(Position, usize, Option<f32>),
    Fetch(Shape, [i32; 3], u32, u32),
    Query(u32),
}

impl Request {
    fn run(self, core: &mut Core<'_>, texture: &Texture) -> Result<Filtered, FaultKind> {
        let (caches, launch) = (&mut *core.caches, core.launch);
        let mut memory = texture::Memory { windows: &mut caches.windows, map: &launch.map };
        let result = match self {
            Self::Sample(position, lod, reference) => texture.sample(&position, lod, reference, &mut memory),
            Self::Gather(position, component, reference) => {
                texture.gather(&position, component, reference, &mut memory)
            }
            Self::Fetch(shape, at, layer, level) => texture.fetch(shape, at, layer, level, &mut memory),
            Self::Query(level) => Ok(texture.dimensions(level)),
        };
        result.map_err(|error| match error {
            ReadError::Texture(error) => fault(&error),
            ReadError::Memory(kind) => kind,
        })
    }
}

/// The layer and the coordinates.
fn position(operands: &mut Operands<'_, '_>, shape: Shape) -> Position {
    // Layers have 16 bits.
    let layer = if shape.is_array() { operands.word() & 0xffff } else { 0 };
    let mut coordinates = [0.0; 3];
    for coordinate in coordinates.iter_mut().take(shape.coordinates()) {
        *coordinate = operands.number();
    }
    Position { shape, coordinates, layer, offset: [0; 3] }
}

/// Where one lane's access to a surface goes.
fn surface_place(core: &mut Core<'_>, op: &Micro, lane: usize, bytes: u32) -> Result<Place, FaultKind> {
    let handle = core.row(RowIndex(op.payload as u16))[lane];
    let texture = core.texture_of(handle)?;
    let shape = SurfaceShape::BY_NUMBER[(op.payload >> SHAPE & 7) as usize % SurfaceShape::BY_NUMBER.len()];
    let mut at = [0; 3];
    for (at, word) in at.iter_mut().zip(0..).take(shape.coordinates()) {
        *at = core.row(op.a.plus(word))[lane] as i32;
    }
    let out_of_range = match op.payload >> OUT_OF_RANGE & 3 {
        0 => OutOfRange::Ignore,
        1 => OutOfRange::Clamp,
        _ => OutOfRange::Trap,
    };
    let bytes = if bytes == 0 { texture.texel_bytes() } else { bytes };
    let by_texel = op.payload & BY_BYTES == 0;
    match texture.place(shape, at, bytes, by_texel, out_of_range).map_err(|error| fault(&error))? {
        Place::Trap => Err(FaultKind::OutOfRangeSurface { coordinates: at }),
        place => Ok(place),
    }
}

/// Stores up to 16 bytes to an address of global memory.
fn store_at(core: &mut Core<'_>, address: u64, bytes: u32, data: [u32; 4]) -> Result<(), FaultKind> {
    if !matches!(bytes, 1 | 2 | 4 | 8 | 16) {
        return Err(FaultKind::Unsupported(format!("stores to a surface of {bytes} bytes a texel")));
    }
    let launch = core.launch;
    let to = core.caches.windows.lane(&launch.map, AccessKind::Write, address, bytes.into())?;
    // SAFETY: the look-up made sure of range, alignment and rights.
    unsafe {
        match bytes {
            1 => store::<1>(to, data),
            2 => store::<2>(to, data),
            4 => store::<4>(to, data),
            8 => store::<8>(to, data),
            _ => store::<16>(to, data),
        }
    }
    Ok(())
}

handlers! {
    /// TEX.
    Sample = |core, op, mask| {
        core.texture_lanes(op, mask, |core, lane, handle| {
            let shape = shape(op);
            let mut operands = Operands::new(core, op, lane);
            let mut position = position(&mut operands, shape);
            let handle = handle.unwrap_or_else(|| operands.word());
            let lod = match op.payload >> LOD & 3 {
                LOD_ZERO => Lod::Zero,
                LOD_LEVEL => Lod::Level(operands.number()),
                computed => {
                    let bias = if computed == LOD_BIAS { operands.number() } else { 0.0 };
                    let mut rows = Operands::new(core, op, lane);
                    if shape.is_array() {
                        rows.row();
                    }
                    let mut change = [[0.0; 2]; 3];
                    for change in change.iter_mut().take(shape.coordinates()) {
                        *change = core.quad_change(rows.row(), lane);
                    }
                    Lod::Derivatives { change, bias }
                }
            };
            if op.payload & HAS_OFFSET != 0 {
                position.offset = offsets(operands.word(), 4, 4);
            }
            let reference = (op.payload & COMPARES != 0).then(|| operands.number());
            Ok((core.texture_of(handle)?, Request::Sample(position, lod, reference)))
        })
    };
    /// TXD.
    SampleByDerivatives = |core, op, mask| {
        core.texture_lanes(op, mask, |core, lane, handle| {
            let shape = shape(op);
            let mut at = op.a;
            let mut take = || {
                let value = core.row(at)[lane];
                at = at.plus(1);
                value
            };
            let handle = handle.unwrap_or_else(&mut take);
            let mut coordinates = [0.0; 3];
            for coordinate in coordinates.iter_mut().take(shape.coordinates()) {
                *coordinate = f32::from_bits(take());
            }
            let layer = if shape.is_array() { take() & 0xffff } else { 0 };
            let mut change = [[0.0; 2]; 3];
            for (axis, change) in (0..).zip(&mut change).take(shape.coordinates()) {
                let row = op.b.plus(2 * axis);
                *change = [core.row(row)[lane], core.row(row.plus(1))[lane]].map(f32::from_bits);
            }
            let position = Position { shape, coordinates, layer, offset: [0; 3] };
            let lod = Lod::Derivatives { change, bias: 0.0 };
            Ok((core.texture_of(handle)?, Request::Sample(position, lod, None)))
        })
    };
    /// TLD4.
    Gather = |core, op, mask| {
        core.texture_lanes(op, mask, |core, lane, handle| {
            let mut operands = Operands::new(core, op, lane);
            let mut position = position(&mut operands, shape(op));
            let handle = handle.unwrap_or_else(|| operands.word());
            if op.payload & HAS_OFFSET != 0 {
                position.offset = offsets(operands.word(), 8, 6);
            }
            let reference = (op.payload & COMPARES != 0).then(|| operands.number());
            let component = usize::from(op.extra);
            Ok((core.texture_of(handle)?, Request::Gather(position, component, reference)))
        })
    };
    /// TLD.
    Fetch = |core, op, mask| {
        core.texture_lanes(op, mask, |core, lane, handle| {
            let shape = shape(op);
            let mut operands = Operands::new(core, op, lane);
            let layer = if shape.is_array() { operands.word() & 0xffff } else { 0 };
            let mut at = [0; 3];
            for at in at.iter_mut().take(shape.coordinates()) {
                *at = operands.word() as i32;
            }
            let handle = handle.unwrap_or_else(|| operands.word());
            let level = if op.payload >> LOD & 3 == LOD_LEVEL { operands.word() } else { 0 };
            if op.payload & HAS_OFFSET != 0 {
                for (at, offset) in at.iter_mut().zip(offsets(operands.word(), 4, 4)) {
                    *at = at.wrapping_add(offset);
                }
            }
            Ok((core.texture_of(handle)?, Request::Fetch(shape, at, layer, level)))
        })
    };
    /// BMOV.MACTIVE: the lanes of a convergence barrier, with `.PQUAD` all lanes of their quads, become active. Those at
    /// hand do already, unless lanes of a quad went other ways.
    LanesOfBarrier = |core, op, mask| {
        let barrier = core.warp().convergence[op.payload as usize & 15][first(mask)];
        let wanted = if op.extra != 0 {
            let any = (barrier | barrier >> 1 | barrier >> 2 | barrier >> 3) & 0x1111_1111;
            any * 15
        } else {
            barrier
        };
        if wanted == mask {
            Flow::Next
        } else {
            core.fail(FaultKind::Unsupported("lanes that are made active only to help others of their quad".to_owned()))
        }
    };
    /// TXQ.TEX_HEADER_DIMENSION.
    Query = |core, op, mask| {
        core.texture_lanes(op, mask, |core, lane, handle| {
            let bound = handle.is_some();
            let handle = handle.unwrap_or_else(|| core.row(op.a)[lane]);
            let level = core.row(op.a.plus(u16::from(!bound)))[lane];
            Ok((core.texture_of(handle)?, Request::Query(level)))
        })
    };
    /// SULD.D.
    SurfaceLoad = |core, op, mask| {
        let bytes = u32::from(op.extra);
        let mut out = [[0; LANES]; 4];
        for lane in each(mask) {
            let launch = core.launch;
            let data = surface_place(core, op, lane, bytes).and_then(|place| match place {
                Place::At(address) => {
                    let mut memory = texture::Memory { windows: &mut core.caches.windows, map: &launch.map };
                    memory.words(address, bytes)
                }
                Place::Outside | Place::Trap => Ok([0; 4]),
            });
            match data {
                Ok(data) => {
                    for (out, word) in out.iter_mut().zip(data) {
                        out[lane] = word;
                    }
                }
                Err(kind) => return core.fail(kind),
            }
        }
        if op.payload & SIGNED != 0 {
            let shift = 32 - 8 * bytes;
            out[0] = out[0].map(|word| ((word << shift) as i32 >> shift) as u32);
        }
        for (word, out) in (0..).zip(&out).take(bytes.div_ceil(4) as usize) {
            core.put(op.d.plus(word), mask, out);
        }
        core.put_predicate(op.to[0], mask, 0);
        Flow::Next
    };
    /// SUST.D.
    SurfaceStore = |core, op, mask| {
        let bytes = u32::from(op.extra);
        for lane in each(mask) {
            let mut data = [0; 4];
            for (word, data) in (0..).zip(&mut data).take(bytes.div_ceil(4) as usize) {
                *data = core.row(op.b.plus(word))[lane];
            }
            let done = surface_place(core, op, lane, bytes).and_then(|place| match place {
                Place::At(address) => store_at(core, address, bytes, data),
                Place::Outside | Place::Trap => Ok(()),
            });
            if let Err(kind) = done {
                return core.fail(kind);
            }
        }
        Flow::Next
    };
    /// SUST.P.
    SurfaceStoreFormat = |core, op, mask| {
        for lane in each(mask) {
            let mut data = [0; 4];
            for (word, data) in (0..).zip(&mut data).take(usize::from(op.extra)) {
                *data = core.row(op.b.plus(word))[lane];
            }
            let done = surface_place(core, op, lane, 0).and_then(|place| {
                let Place::At(address) = place else { return Ok(()) };
                let handle = core.row(RowIndex(op.payload as u16))[lane];
                let texture = core.texture_of(handle)?;
                let texel = texture.pack(data).map_err(|error| fault(&error))?;
                let words = [0, 32, 64, 96].map(|shift| (texel >> shift) as u32);
                store_at(core, address, texture.texel_bytes(), words)
            });
            if let Err(kind) = done {
                return core.fail(kind);
            }
        }
        Flow::Next
    };
    /// SURED.D.
    SurfaceReduce = |core, op, mask| {
        let (operation, kind) = atomic::of_code(op.extra);
        let bytes = kind.bytes() as u32;
        for lane in each(mask) {
            let low = core.row(op.b)[lane];
            let value = if bytes == 8 { core.pair_lane(op.b, lane) } else { low.into() };
            let launch = core.launch;
            let at = surface_place(core, op, lane, bytes).and_then(|place| match place {
                Place::At(address) => {
                    let at = core.caches.windows.lane(&launch.map, AccessKind::Atomic, address, bytes.into());
                    at.map(Some)
                }
                Place::Outside | Place::Trap => Ok(None),
            });
            match at {
                // SAFETY: the look-up made sure of range, alignment and rights.
                Ok(Some(at)) => drop(unsafe { atomic::update(at, operation, kind, value, 0) }),
                Ok(None) => {}
                Err(kind) => return core.fail(kind),
            }
        }
        Flow::Next
    };
}

impl texture::Memory<'_> {
    /// Loads up to 16 bytes.
    fn words(&mut self, address: u64, bytes: u32) -> Result<[u32; 4], FaultKind> {
        if !matches!(bytes, 1 | 2 | 4 | 8 | 16) {
            return Err(FaultKind::Unsupported(format!("a texel of {bytes} bytes")));
        }
        let from = self.windows.lane(self.map, AccessKind::Read, address, bytes.into())?;
        // SAFETY: the look-up made sure of range and alignment; the map outlives the launch.
        Ok(unsafe {
            match bytes {
                1 => load::<1>(from),
                2 => load::<2>(from),
                4 => load::<4>(from),
                8 => load::<8>(from),
                _ => load::<16>(from),
            }
        })
    }
}

impl nv_texture::Texels for texture::Memory<'_> {
    type Error = FaultKind;

    fn read(&mut self, address: u64, bytes: u32) -> Result<u128, FaultKind> {
        let words = self.words(address, bytes)?;
        Ok(words.iter().rev().fold(0, |all, word| all << 32 | u128::from(*word)))
    }
}
