//! Profiles as lines.

use std::collections::BTreeMap;

use nv_simulator::{
    engine::{KernelProfile, Profiles},
    sm::{Executed, Traffic},
};

#[test]
fn a_profile_is_what_its_lines_say() {
    let traffic = Traffic { bytes: 4, sectors: 3, least_sectors: 2, passes: 1, least_passes: 1 };
    let executed = |traffic| Executed { word: 0x7919 << 64, warps: 7, lanes: 224, traffic };
    let profile = KernelProfile {
        sm: 89,
        program_address: 0x1000,
        launches: 2,
        blocks: 8,
        threads: 256,
        instructions: BTreeMap::from([(0x1000, executed(None)), (0x1010, executed(Some(traffic)))]),
    };
    let mut read = Profiles::new();
    profile.lines().iter().for_each(|line| read.read_line(line).unwrap());
    assert_eq!(read.into_sorted(), [profile]);
    for wrong in ["", "kernel 89", "1000 7919 1", "kernel x 1 1 1 1", "1000 1 1 1 2"] {
        assert!(Profiles::new().read_line(wrong).is_err(), "{wrong:?}");
    }
}
