//! The suite of first light under every driver branch: the driver takes the branch from the version that the kernel
//! module reports, and every body that has to do with the kernel module runs under the others as under the measured version.

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

/// The fixture kernels for which the driver asks the kernel module for something of its own: memory for constants and
/// globals, local memory from the start and on demand, shared memory, blocks that are resident together. What the others
/// add is instructions, which no kernel module sees.
const KERNELS: [&str; 7] = [
    "vector_add",
    "constants_and_globals_with_first_values",
    "local_arrays_and_calls",
    "deep_local_memory_grown_on_demand",
    "blocks_that_wait_for_each_other",
    "reversal_in_dynamic_shared_memory",
    "scalars_and_a_struct_by_value",
];

/// Runs every body on a fresh machine whose kernel module has that version.
fn passes_under(version: &str) {
    assert!(VERSIONS.contains(&version), "{version}");
    let kernels: Vec<_> =
        kernels::cases::KERNEL_BODIES.iter().filter(|(name, _)| KERNELS.contains(name)).copied().collect();
    assert_eq!(kernels.len(), KERNELS.len());
    let suites = [device::bodies::BODIES, &kernels, launches::bodies::BODIES, faults::bodies::BODIES];
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
