//! Reading textures: texels by number, filtered samples, gathers.

use nv_abi::texture::{Comparison, Filter, Kind, MipFilter, Sampler};

use crate::coordinate::{Axis, FRACTION, ONE, face, weights};
use crate::format::{Texel, Value, combine, swizzle};
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

/// Texels with their weights: of two levels, eight each.
struct Taps {
    list: [(i64, Texel); 16],
    count: usize,
}

impl Taps {
    const NONE: Self = Self { list: [(0, [Value::Integer(0); 4]); 16], count: 0 };

    fn push(&mut self, tap: (i64, Texel)) {
        if let Some(place) = self.list.get_mut(self.count) {
            *place = tap;
            self.count += 1;
        }
    }

    fn all(&self) -> &[(i64, Texel)] {
        &self.list[..self.count]
    }
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
        if position.shape == Shape::TwoD && self.header.kind == Kind::OneD {
            // As on an H200, where compilers' planes of one row are no lines.
            return Ok([0; 4]);
        }
        if self.header.kind.is_cube()
            && sampler.cubemap_filtering != 0
            && sampler.mag_filter == Filter::Linear
        {
            return Err(unsupported("filters across the edges of a cube").into());
        }
        let lambda = self.lambda(sampler, position, lod);
        let filter = if lambda > 0 { sampler.min_filter } else { sampler.mag_filter };
        let (levels, fraction) = self.choose_levels(sampler, lambda);
        let first = self.plan(sampler, position, levels[0], filter);
        let texel = if fraction == 0 && first.filter == Filter::Point {
            self.tap(&first, self.nearest(&first), compare, memory)?
        } else {
            let mut texels = Taps::NONE;
            self.corners(&first, ONE - fraction, compare, memory, &mut texels)?;
            if fraction > 0 {
                let second = self.plan(sampler, position, levels[1], filter);
                self.corners(&second, fraction, compare, memory, &mut texels)?;
            }
            combine(texels.all())
        };
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
        let [x, y] = [plan.axes[0].nearest_two().0, plan.axes[1].nearest_two().0];
        let mut out = [0; 4];
        for (out, (i, j)) in out.iter_mut().zip([(0, 1), (1, 1), (1, 0), (0, 0)]) {
            // Through the filter, which has less precision than some formats, but integers.
            let mut texel = self.tap(&plan, [x[i], y[j], Some(0)], compare, memory)?;
            if !self.format.is_integer() {
                texel = combine(&[(ONE, texel)]);
            }
            *out = swizzle(&texel, self.header.sources)[component & 3].bits();
        }
        Ok(out)
    }

    /// A texel by number; outside, its components are zero.
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
        let level =
            first.checked_add(level).filter(|level| *level <= last).map(|level| self.layout.level(level));
        let fits = |(at, size): (i32, u32)| u32::try_from(at).ok().filter(|at| *at < size);
        let place = level.and_then(|level| {
            let mut place = [0; 3];
            for (place, pair) in place.iter_mut().zip(at.into_iter().zip(level.extent)) {
                *place = fits(pair)?;
            }
            Some((level, place))
        });
        let layer = layer.min(self.layout.layers.saturating_sub(1));
        let texel = match place {
            Some((level, place)) => self.texel(level, place, layer, memory)?,
            None => [Value::Integer(0); 4],
        };
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
        // As an H200 has it, cut off behind eight bits.
        let scaled = (f64::from(wanted) * ONE as f64).floor() as i64;
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
        let mut layer = position.layer.min(self.header.extent[2].saturating_sub(1));
        if self.header.kind.is_cube() {
            let (face, [s, t]) = face(coordinates);
            coordinates = [(s + 1.0) / 2.0, (t + 1.0) / 2.0, 0.0];
            layer = if self.header.kind.is_array() { 6 * layer + face } else { face };
        } else if !self.header.kind.is_array() {
            layer = 0;
        }
        let axes = [0, 1, 2].map(|axis| Axis {
            coordinate: coordinates[axis],
            normalized,
            size: level.extent[axis],
            mode: sampler.address[axis],
            offset: position.offset[axis],
        });
        let filter = if self.format.is_integer() { Filter::Point } else { filter };
        Plan { level, axes, layer, filter }
    }

    /// Axes along which texels are told apart.
    fn axes(&self) -> usize {
        match self.header.kind {
            Kind::ThreeD => 3,
            Kind::OneD | Kind::OneDArray => 1,
            _ => 2,
        }
    }

    /// The texel that holds a position.
    fn nearest(&self, plan: &Plan<'_>) -> [Option<u32>; 3] {
        let mut place = [Some(0); 3];
        for (place, axis) in place.iter_mut().zip(&plan.axes).take(self.axes()) {
            *place = axis.nearest();
        }
        place
    }

    /// Adds the texels that a sample of one level is made of, with their parts of `total`.
    fn corners<T: Texels>(
        &self,
        plan: &Plan<'_>,
        total: i64,
        compare: Option<(Comparison, f32)>,
        memory: &mut T,
        texels: &mut Taps,
    ) -> Result<(), ReadError<T::Error>> {
        if plan.filter == Filter::Point {
            texels.push((total, self.tap(plan, self.nearest(plan), compare, memory)?));
            return Ok(());
        }
        let mut places = [[Some(0); 2]; 3];
        let mut fractions = [0; 3];
        for axis in 0..self.axes() {
            (places[axis], fractions[axis]) = plan.axes[axis].nearest_two();
        }
        for (corner, weight) in weights(total, fractions).into_iter().enumerate() {
            if weight != 0 {
                let place = [0, 1, 2].map(|axis| places[axis][corner >> axis & 1]);
                texels.push((weight, self.tap(plan, place, compare, memory)?));
            }
        }
        Ok(())
    }

    /// The texel of one tap, or the border's colour.
    fn tap<T: Texels>(
        &self,
        plan: &Plan<'_>,
        place: [Option<u32>; 3],
        compare: Option<(Comparison, f32)>,
        memory: &mut T,
    ) -> Result<Texel, ReadError<T::Error>> {
        let texel = match place {
            [Some(x), Some(y), Some(z)] => self.texel(plan.level, [x, y, z], plan.layer, memory)?,
            _ => self.format.border(self.sampler()?.border),
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
