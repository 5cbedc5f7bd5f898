//! Reading textures: texels by number, filtered samples, gathers.

use nv_abi::texture::{AddressMode, Comparison, Filter, MipFilter, Sampler};

use crate::coordinate::{Axis, FRACTION, ONE, Tap, face};
use crate::format::{Texel, Value, swizzle};
use crate::layout::Level;
use crate::{Shape, Texels, Texture, TextureError, Unsupported};

/// Where a sample is taken.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    /// What the coordinates are.
    pub shape: Shape,
    /// As many as the shape has.
    pub coordinates: [f32; 3],
    /// The layer of an array.
    pub layer: u32,
    /// Texels that are added to each coordinate.
    pub offset: [i32; 3],
}

/// Which level of detail is wanted.
#[derive(Clone, Copy, Debug)]
pub enum Lod {
    /// The first.
    Zero,
    /// By number.
    Level(f32),
    /// By how coordinates change to the neighbours in both directions of the screen; and what is added.
    Derivatives {
        /// Change of each coordinate in the two directions.
        change: [[f32; 2]; 3],
        /// Added to the level.
        bias: f32,
    },
}

/// A reference value that samples are compared with.
pub type Compare = Option<f32>;

/// A result: four registers.
pub type Filtered = [u32; 4];

/// What a read may fail with: the texture, or the memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError<E> {
    /// The texture cannot be read so.
    Texture(TextureError),
    /// The memory cannot.
    Memory(E),
}

impl<E> From<TextureError> for ReadError<E> {
    fn from(error: TextureError) -> Self {
        Self::Texture(error)
    }
}

fn unsupported(what: &str) -> TextureError {
    Unsupported(what.to_owned()).into()
}

/// One level with the axes set up for it.
struct Plan<'a> {
    level: &'a Level,
    axes: [Axis; 3],
    layer: u32,
    filter: Filter,
}

impl Texture {
    /// A filtered sample.
    ///
    /// # Errors
    /// The memory cannot be read, or the texture's settings are not simulated.
    pub fn sample<T: Texels>(
        &self,
        position: &Position,
        lod: Lod,
        reference: Compare,
        memory: &mut T,
    ) -> Result<Filtered, ReadError<T::Error>> {
        self.check_shape(position.shape)?;
        let sampler = self.sampler()?;
        let compare = self.comparison(sampler, reference)?;
        let lambda = self.lambda(sampler, position, lod);
        let filter = if lambda > 0 { sampler.min_filter } else { sampler.mag_filter };
        let (levels, fraction) = self.choose_levels(sampler, lambda);
        let mut texel = self.filtered(&self.plan(sampler, position, levels[0], filter), compare, memory)?;
        if fraction > 0 {
            let second = self.filtered(&self.plan(sampler, position, levels[1], filter), compare, memory)?;
            for (first, second) in texel.iter_mut().zip(second) {
                let (a, b) = (f64::from(first.number()), f64::from(second.number()));
                let sum = a * (ONE - fraction) as f64 + b * fraction as f64;
                *first = Value::Float((sum / ONE as f64) as f32);
            }
        }
        Ok(swizzle(&texel, self.header.sources).map(Value::bits))
    }

    /// The four texels around a point, one component of each: those at the left below, right below, right above and
    /// left above, where y points down.
    ///
    /// # Errors
    /// As for [`Texture::sample`].
    pub fn gather<T: Texels>(
        &self,
        position: &Position,
        component: usize,
        reference: Compare,
        memory: &mut T,
    ) -> Result<Filtered, ReadError<T::Error>> {
        self.check_shape(position.shape)?;
        let sampler = self.sampler()?;
        let compare = self.comparison(sampler, reference)?;
        let level = u32::from(self.header.view_levels[0]);
        let plan = self.plan(sampler, position, level, Filter::Linear);
        let [x, y] = [plan.axes[0].taps(Filter::Linear), plan.axes[1].taps(Filter::Linear)];
        let z = Tap { texel: Some(0), weight: ONE };
        let mut out = [0; 4];
        for (out, (i, j)) in out.iter_mut().zip([(0, 1), (1, 1), (1, 0), (0, 0)]) {
            let texel = self.tap(&plan, [x[i], y[j], z], compare, memory)?;
            *out = swizzle(&texel, self.header.sources)[component & 3].bits();
        }
        Ok(out)
    }

    /// A texel by number; zero outside.
    ///
    /// # Errors
    /// As for [`Texture::sample`].
    pub fn fetch<T: Texels>(
        &self,
        shape: Shape,
        at: [i32; 3],
        layer: u32,
        level: u32,
        memory: &mut T,
    ) -> Result<Filtered, ReadError<T::Error>> {
        self.check_shape(shape)?;
        let [first, last] = self.header.view_levels.map(u32::from);
        let Some(level) = first.checked_add(level).filter(|level| *level <= last) else {
            return Ok([0; 4]);
        };
        let level = self.layout.level(level);
        let mut texel = [0; 3];
        for ((texel, at), size) in texel.iter_mut().zip(at).zip(level.extent) {
            match u32::try_from(at).ok().filter(|at| *at < size) {
                Some(at) => *texel = at,
                None => return Ok([0; 4]),
            }
        }
        let layer = layer.min(self.layout.layers.saturating_sub(1));
        let texel = self.texel(level, texel, layer, memory)?;
        Ok(swizzle(&texel, self.header.sources).map(Value::bits))
    }

    fn comparison(
        &self,
        sampler: &Sampler,
        reference: Compare,
    ) -> Result<Option<(Comparison, f32)>, TextureError> {
        match (sampler.compare, reference) {
            (Some(how), Some(value)) => Ok(Some((how, value))),
            (None, Some(_)) => Err(unsupported("a reference value for a sampler that does not compare")),
            (_, None) => Ok(None),
        }
    }

    /// The level of detail in 1/256, from the first level in use on.
    fn lambda(&self, sampler: &Sampler, position: &Position, lod: Lod) -> i64 {
        let wanted = match lod {
            Lod::Zero => 0.0,
            Lod::Level(level) => level,
            Lod::Derivatives { change, bias } => {
                let mut longest = 0f32;
                for direction in 0..2 {
                    let mut square = 0f32;
                    for (axis, change) in change.iter().enumerate().take(position.shape.coordinates()) {
                        let scale =
                            if self.normalized(sampler) { self.header.extent[axis] as f32 } else { 1.0 };
                        square += (change[direction] * scale).powi(2);
                    }
                    longest = longest.max(square.sqrt());
                }
                longest.log2() + bias
            }
        };
        let scaled = (f64::from(wanted) * ONE as f64).round_ties_even() as i64;
        let biased = match lod {
            Lod::Zero => 0,
            _ => scaled.saturating_add(sampler.lod_bias.into()),
        };
        let [low, high] = sampler.lod_clamp.map(i64::from);
        biased.min(high).max(low).max(self.header.min_lod_clamp.into())
    }

    /// The one or two levels to read, and the weight of the second in 1/256.
    fn choose_levels(&self, sampler: &Sampler, lambda: i64) -> ([u32; 2], i64) {
        let [first, last] = self.header.view_levels.map(i64::from);
        let level = |lod: i64| (first + lod).clamp(first, last.max(first)) as u32;
        match sampler.mip_filter {
            MipFilter::None => ([level(0); 2], 0),
            MipFilter::Point => ([level((lambda + ONE / 2) >> FRACTION); 2], 0),
            MipFilter::Linear => {
                let lambda = lambda.max(0);
                let levels = [level(lambda >> FRACTION), level((lambda >> FRACTION) + 1)];
                (levels, if levels[0] == levels[1] { 0 } else { lambda & (ONE - 1) })
            }
        }
    }

    fn normalized(&self, sampler: &Sampler) -> bool {
        self.header.normalized && !sampler.force_unnormalized
    }

    fn plan(&self, sampler: &Sampler, position: &Position, level: u32, filter: Filter) -> Plan<'_> {
        let level = self.layout.level(level);
        let normalized = self.normalized(sampler);
        let mut coordinates = position.coordinates;
        let mut modes = sampler.address;
        let mut layer = position.layer.min(self.header.extent[2].saturating_sub(1));
        if self.header.kind.is_cube() {
            let (face, [s, t]) = face(coordinates);
            coordinates = [(s + 1.0) / 2.0, (t + 1.0) / 2.0, 0.0];
            // Without a filter across edges, a face goes on beyond them.
            modes = [AddressMode::ClampToEdge; 3];
            layer = if self.header.kind.is_array() { 6 * layer + face } else { face };
        } else if !self.header.kind.is_array() {
            layer = 0;
        }
        let axes = [0, 1, 2].map(|axis| Axis {
            coordinate: coordinates[axis],
            normalized,
            size: level.extent[axis],
            mode: modes[axis],
            offset: position.offset[axis],
        });
        let filter = if self.format.is_integer() { Filter::Point } else { filter };
        Plan { level, axes, layer, filter }
    }

    fn filtered<T: Texels>(
        &self,
        plan: &Plan<'_>,
        compare: Option<(Comparison, f32)>,
        memory: &mut T,
    ) -> Result<Texel, ReadError<T::Error>> {
        // Axes that the texture does not have are of one texel, which the coordinate does not change.
        let dimensions = match self.header.kind {
            k if k.is_cube() => 2,
            nv_abi::texture::Kind::ThreeD => 3,
            nv_abi::texture::Kind::OneD | nv_abi::texture::Kind::OneDArray => 1,
            _ => 2,
        };
        let mut taps = [[Tap { texel: Some(0), weight: ONE }, Tap { texel: Some(0), weight: 0 }]; 3];
        for (taps, axis) in taps.iter_mut().zip(&plan.axes).take(dimensions) {
            *taps = axis.taps(plan.filter);
        }
        if plan.filter == Filter::Point {
            return self.tap(plan, taps.map(|taps| taps[0]), compare, memory);
        }
        let mut sum = [0f64; 4];
        for z in taps[2] {
            for y in taps[1] {
                for x in taps[0] {
                    let weight = x.weight * y.weight * z.weight;
                    if weight == 0 {
                        continue;
                    }
                    let texel = self.tap(plan, [x, y, z], compare, memory)?;
                    for (sum, value) in sum.iter_mut().zip(texel) {
                        *sum += f64::from(value.number()) * weight as f64;
                    }
                }
            }
        }
        Ok(sum.map(|sum| Value::Float((sum / (ONE * ONE * ONE) as f64) as f32)))
    }

    /// The texel of one tap, or the border's colour.
    fn tap<T: Texels>(
        &self,
        plan: &Plan<'_>,
        taps: [Tap; 3],
        compare: Option<(Comparison, f32)>,
        memory: &mut T,
    ) -> Result<Texel, ReadError<T::Error>> {
        let texel = match taps.map(|tap| tap.texel) {
            [Some(x), Some(y), Some(z)] => self.texel(plan.level, [x, y, z], plan.layer, memory)?,
            _ => {
                let border = self.sampler()?.border;
                border.map(|bits| match self.format.is_integer() {
                    true => Value::Integer(bits),
                    false => Value::Float(f32::from_bits(bits)),
                })
            }
        };
        Ok(match compare {
            None => texel,
            Some((how, reference)) => {
                let truth = holds(how, reference, texel[0].number());
                [Value::Float(if truth { 1.0 } else { 0.0 }); 4]
            }
        })
    }

    fn texel<T: Texels>(
        &self,
        level: &Level,
        at: [u32; 3],
        layer: u32,
        memory: &mut T,
    ) -> Result<Texel, ReadError<T::Error>> {
        let address = self.layout.texel(level, at, layer);
        let mut read = |address, bytes| memory.read(address, bytes).map_err(ReadError::Memory);
        let bits = match self.format.bytes() {
            12 => read(address, 4)? | read(address + 4, 4)? << 32 | read(address + 8, 4)? << 64,
            bytes => read(address, bytes)?,
        };
        Ok(self.format.unpack(bits))
    }
}

/// Whether a reference value compares with a texel as asked.
fn holds(how: Comparison, reference: f32, texel: f32) -> bool {
    match how {
        Comparison::Never => false,
        Comparison::Less => reference < texel,
        Comparison::Equal => reference == texel,
        Comparison::LessEqual => reference <= texel,
        Comparison::Greater => reference > texel,
        Comparison::NotEqual => reference != texel,
        Comparison::GreaterEqual => reference >= texel,
        Comparison::Always => true,
    }
}
