//! The suite of first light under every driver branch: the driver takes the branch from the version that the kernel
//! module reports, and every body that runs under the measured version runs under the others.

use nv_simulator::profile::Profile;
use tests::Place;

use crate::{device, faults, kernels, launches, raw};

/// A version of each branch, as its modules report it.
pub const VERSIONS: [&str; 9] = [
    "535.288.01",
    "550.163.01",
    "560.35.03",
    "565.77",
    "570.211.01",
    "580.159.04",
    "590.48.01",
    "595.45.04",
    "610.43.02",
];

/// Runs every body on a fresh machine whose kernel module has that version.
fn passes_under(version: &str) {
    assert!(VERSIONS.contains(&version), "{version}");
    let suites = [
        device::bodies::BODIES,
        kernels::cases::KERNEL_BODIES,
        launches::bodies::BODIES,
        faults::bodies::BODIES,
    ];
    for (name, body) in suites.into_iter().chain([raw::bodies::BODIES]).flatten() {
        eprintln!("{name} under {version}");
        Place::simulated_under("ada", &[Profile::ad102()], version).run(body);
    }
}

macro_rules! branches {
    ($($name:ident $version:literal;)*) => {$(
        #[test]
        fn $name() {
            passes_under($version);
        }
    )*};
}

branches! {
    first_light_under_535 "535.288.01";
    first_light_under_550 "550.163.01";
    first_light_under_560 "560.35.03";
    first_light_under_565 "565.77";
    first_light_under_570 "570.211.01";
    // 580.159.04 is the version of every other test.
    first_light_under_590 "590.48.01";
    first_light_under_595 "595.45.04";
    first_light_under_610 "610.43.02";
}
