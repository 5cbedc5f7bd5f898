//! From coordinates to texels and their weights.

use nv_abi::texture::{AddressMode, Filter};

/// Bits behind the point of weights between texels and between levels.
pub(crate) const FRACTION: u32 = 8;
/// A weight of one.
pub(crate) const ONE: i64 = 1 << FRACTION;

/// A texel along one axis, or the border, with its weight in 1/256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tap {
    pub(crate) texel: Option<u32>,
    pub(crate) weight: i64,
}

/// The texel that the texel number `i` of an axis of `size` texels stands for; `None` is the border.
pub(crate) fn address(mode: AddressMode, i: i64, size: u32) -> Option<u32> {
    use AddressMode as A;
    let n = i64::from(size);
    let inside = |i: i64| u32::try_from(i).ok().filter(|i| *i < size);
    let once = if i < 0 { -1 - i } else { i };
    match mode {
        A::Wrap => inside(i.rem_euclid(n)),
        A::Mirror => {
            let i = i.rem_euclid(2 * n);
            inside(i.min(2 * n - 1 - i))
        }
        A::ClampToEdge | A::ClampOgl => inside(i.clamp(0, n - 1)),
        A::Border => inside(i),
        A::MirrorOnceClampToEdge | A::MirrorOnceClampOgl => inside(once.min(n - 1)),
        A::MirrorOnceBorder => inside(once),
    }
}

/// A coordinate in texels, in 1/256.
fn fixed(coordinate: f32, size: u32, normalized: bool) -> i64 {
    let texels = if normalized { f64::from(coordinate) * f64::from(size) } else { f64::from(coordinate) };
    // NaN becomes 0, and what is too large the largest number.
    (texels * ONE as f64).round_ties_even() as i64
}

/// A coordinate along one axis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    pub(crate) coordinate: f32,
    pub(crate) normalized: bool,
    pub(crate) size: u32,
    pub(crate) mode: AddressMode,
    /// Texels that the instruction adds.
    pub(crate) offset: i32,
}

impl Axis {
    /// The first of the two nearest texels, not yet put into the texture, and the weight of the second in 1/256.
    fn nearest_two(&self) -> (i64, i64) {
        let at = fixed(self.coordinate, self.size, self.normalized).clamp(-(1 << 40), 1 << 40) - ONE / 2;
        ((at >> FRACTION) + i64::from(self.offset), at & (ONE - 1))
    }

    /// The texels that a filter reads, one or two.
    pub(crate) fn taps(&self, filter: Filter) -> [Tap; 2] {
        let put = |i| address(self.mode, i, self.size);
        match filter {
            Filter::Point => {
                let c = f64::from(self.coordinate);
                let texels = if self.normalized { c * f64::from(self.size) } else { c };
                // NaN becomes 0.
                let i = texels.floor().clamp(-(2f64.powi(40)), 2f64.powi(40)) as i64;
                let nearest = Tap { texel: put(i + i64::from(self.offset)), weight: ONE };
                [nearest, Tap { weight: 0, ..nearest }]
            }
            Filter::Linear => {
                let (i, fraction) = self.nearest_two();
                [Tap { texel: put(i), weight: ONE - fraction }, Tap { texel: put(i + 1), weight: fraction }]
            }
        }
    }
}

/// The face that a direction meets, and where: -1 to 1 in both directions.
pub(crate) fn face([x, y, z]: [f32; 3]) -> (u32, [f32; 2]) {
    let (ax, ay, az) = (x.abs(), y.abs(), z.abs());
    let (face, s, t, major) = if az >= ax && az >= ay {
        if z < 0.0 { (5, -x, -y, az) } else { (4, x, -y, az) }
    } else if ay >= ax {
        if y < 0.0 { (3, x, -z, ay) } else { (2, x, z, ay) }
    } else if x < 0.0 {
        (1, z, -y, ax)
    } else {
        (0, -z, -y, ax)
    };
    (face, [s / major, t / major])
}

#[cfg(test)]
mod tests {
    use super::*;
    use AddressMode as A;

    #[test]
    fn texels_outside_are_found_by_mode() {
        let all = |mode| (-5..8).map(|i| address(mode, i, 3)).collect::<Vec<_>>();
        let some = |list: [u32; 13]| list.map(Some).to_vec();
        assert_eq!(all(A::Wrap), some([1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1]));
        assert_eq!(all(A::Mirror), some([1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0, 0, 1]));
        assert_eq!(all(A::ClampToEdge), some([0, 0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2]));
        assert_eq!(all(A::MirrorOnceClampToEdge), some([2, 2, 2, 1, 0, 0, 1, 2, 2, 2, 2, 2, 2]));
        assert_eq!(address(A::Border, -1, 3), None);
        assert_eq!(address(A::Border, 2, 3), Some(2));
        assert_eq!(address(A::MirrorOnceBorder, -4, 3), None);
    }

    #[test]
    fn a_direction_meets_the_face_of_its_largest_component() {
        assert_eq!(face([2.0, 1.0, 0.5]), (0, [-0.25, -0.5]));
        assert_eq!(face([-2.0, 1.0, 0.5]), (1, [0.25, -0.5]));
        assert_eq!(face([0.5, 2.0, 1.0]), (2, [0.25, 0.5]));
        assert_eq!(face([0.5, -2.0, 1.0]), (3, [0.25, -0.5]));
        assert_eq!(face([0.5, 1.0, 2.0]), (4, [0.25, -0.5]));
        assert_eq!(face([0.5, 1.0, -2.0]), (5, [-0.25, -0.5]));
    }
}
