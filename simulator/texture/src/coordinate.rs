//! From coordinates to texels and their weights.

use nv_abi::texture::AddressMode;

/// Bits behind the point of weights between texels and between levels.
pub(crate) const FRACTION: u32 = 8;
/// A weight of one.
pub(crate) const ONE: i64 = 1 << FRACTION;

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

/// Bits behind the point that a normalized coordinate keeps: an H200 cuts off what is smaller.
const NORMALIZED: u32 = 21;
/// More than any texture has texels, in 1/2^21.
const FAR: f64 = (1u64 << 62) as f64;

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
    /// The coordinate in texels, in 1/2^`bits`, rounded down after `half` of such a part is added. NaN becomes 0.
    fn texels(&self, bits: u32, half: bool) -> i64 {
        let mut coordinate = f64::from(self.coordinate);
        if !self.normalized {
            let scaled = coordinate * f64::from(1u32 << bits) + if half { 0.5 } else { 0.0 };
            return scaled.floor().clamp(-FAR, FAR) as i64;
        }
        if coordinate.is_infinite() && matches!(self.mode, AddressMode::Wrap | AddressMode::Mirror) {
            coordinate = 0.0;
        }
        let cut = (coordinate * f64::from(1u32 << NORMALIZED)).floor().clamp(-FAR, FAR) as i128;
        let texels = (cut * i128::from(self.size)) << bits;
        let half = if half { 1 << (NORMALIZED - 1) } else { 0 };
        ((texels + half) >> NORMALIZED).clamp(-(1 << 62), 1 << 62) as i64
    }

    /// The texel that holds the coordinate; `None` is the border.
    pub(crate) fn nearest(&self) -> Option<u32> {
        address(self.mode, self.texels(0, false) + i64::from(self.offset), self.size)
    }

    /// The two nearest texels, and the weight of the second in 1/256.
    pub(crate) fn nearest_two(&self) -> ([Option<u32>; 2], i64) {
        let at = self.texels(FRACTION, true) - ONE / 2;
        let first = (at >> FRACTION) + i64::from(self.offset);
        let places = [first, first + 1].map(|i| address(self.mode, i, self.size));
        // Beyond an edge that goes on there is nothing between two texels, which matters to how weights round.
        let edge = self.mode == AddressMode::ClampToEdge && places[0] == places[1];
        (places, if edge { 0 } else { at & (ONE - 1) })
    }
}

/// Parts of `total` for the texels at the corners of a box, whose upper corners have such weights in 1/256 along each axis.
/// The lowest bit of an index is x's. They sum up to the total: z is divided first, then x, then y, each to the nearest.
pub(crate) fn weights(total: i64, [x, y, z]: [i64; 3]) -> [i64; 8] {
    let mut out = [0; 8];
    let behind = (total * z + ONE / 2) >> FRACTION;
    for (slice, z) in [total - behind, behind].into_iter().enumerate() {
        let right = (z * x + ONE / 2) >> FRACTION;
        let left = z - right;
        let right_lower = (right * y + ONE / 2) >> FRACTION;
        let left_lower = (left * y + ONE / 2 - 1) >> FRACTION;
        out[4 * slice..4 * slice + 4].copy_from_slice(&[
            left - left_lower,
            right - right_lower,
            left_lower,
            right_lower,
        ]);
    }
    out
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
    fn weights_sum_up_to_one_and_ties_are_divided_as_an_h200_divides_them() {
        for x in (0..256).step_by(3) {
            for y in (0..256).step_by(5) {
                for z in (0..256).step_by(7) {
                    let all = weights(ONE, [x, y, z]);
                    assert_eq!(all.iter().sum::<i64>(), ONE);
                    assert!(all.iter().all(|weight| *weight >= 0), "{x} {y} {z}");
                }
            }
        }
        // From recordings: 172 * 160 is 107.5 of 256, and 6 * 192 is 4.5.
        assert_eq!(weights(ONE, [172, 160, 0])[..4], [256 - 172 - 160 + 108, 172 - 108, 160 - 108, 108]);
        let [a, b, c, d, ..] = weights(ONE, [6, 0, 192]);
        assert_eq!([a, b, c, d], [62, 2, 0, 0]);
    }

    #[test]
    fn small_parts_of_normalized_coordinates_are_cut_off() {
        // 0.70270276 * 37 is a little more than 26, but an H200 reads texel 25.
        let axis =
            Axis { coordinate: 0.702_702_76, normalized: true, size: 37, mode: A::ClampToEdge, offset: 0 };
        assert_eq!(axis.nearest(), Some(25));
        // Halves of 1/256 count as whole ones.
        let axis = Axis { coordinate: 2.5 + 0.5 / 256.0, normalized: false, ..axis };
        assert_eq!(axis.nearest_two(), ([Some(2), Some(3)], 1));
        let infinite = |mode| Axis { coordinate: f32::INFINITY, normalized: true, mode, ..axis }.nearest();
        assert_eq!([infinite(A::Wrap), infinite(A::ClampToEdge)], [Some(0), Some(36)]);
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
