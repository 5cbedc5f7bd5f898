//! The masks and lanes that handlers compute with. The library itself has no test build, which would compile every handler
//! once more, so its module is taken in here.

#[allow(dead_code)]
#[path = "../src/lanes.rs"]
mod lanes;

use lanes::*;

#[test]
fn masks_and_lanes_are_two_views_of_one_thing() {
    for mask in [0, 1, 0x8000_0000, 0x1234_5678, FULL] {
        assert_eq!(signs(&spread(mask)), mask);
        assert_eq!(ballot(|i| bit(mask, i)), mask);
        assert_eq!(each(mask).fold(0, |m, lane| m | 1 << lane), mask);
    }
    let (a, b) = ([1; LANES], [2; LANES]);
    assert_eq!(blend(4, &a, &b)[1..4], [2, 1, 2]);
}
