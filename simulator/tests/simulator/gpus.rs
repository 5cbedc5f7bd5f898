//! What the simulated GPUs are.

use nv_simulator::profile::Profile;

fn all() -> [Profile; 3] {
    [Profile::ad102(), Profile::ga102(), Profile::h200()]
}

#[test]
fn sm_counts_are_the_products() {
    assert_eq!(Profile::ad102().sm_count(), 128);
    assert_eq!(Profile::ga102().sm_count(), 82);
    assert_eq!(Profile::h200().sm_count(), 132);
}

#[test]
fn the_newest_host_classes_are_the_generations_own() {
    for profile in all() {
        let classes = profile.generation.classes();
        assert_eq!(profile.channel_classes.last(), Some(&classes.channel));
        assert_eq!(profile.usermode_classes.last(), Some(&classes.usermode));
    }
}

#[test]
fn the_class_list_holds_what_can_be_allocated() {
    for profile in all() {
        let engines = profile.generation.classes();
        let host = profile.channel_classes.iter().chain(profile.usermode_classes);
        for class in host.chain([&engines.compute, &engines.copy]) {
            assert!(profile.classes.contains(class), "{}: {class:#06x}", profile.name);
        }
    }
}

#[test]
fn the_sm_order_names_each_tpc_once() {
    for profile in all() {
        let mut seen: Vec<_> = profile.tpc_order().iter().map(|tpc| (tpc.gpc, tpc.local)).collect();
        assert_eq!(seen.len() as u32, profile.tpc_count(), "{}", profile.name);
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len() as u32, profile.tpc_count(), "{}", profile.name);
    }
}
