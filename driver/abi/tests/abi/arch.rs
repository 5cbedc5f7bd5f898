//! Generations.

use nv_abi::{arch::*, rm::class};

#[test]
fn every_class_of_a_generation_has_a_row_and_its_engines_a_method_table() {
    for generation in Generation::ALL {
        let classes = generation.classes();
        for number in [classes.channel, classes.usermode, classes.compute, classes.copy] {
            assert!(class::class(number).is_some(), "{generation:?} {number:#x}");
        }
        assert_eq!(generation.host_methods().number, classes.channel);
        assert_eq!(generation.compute_methods().number, classes.compute);
        assert_eq!(generation.copy_methods().number, classes.copy);
        assert_eq!(Generation::of_compute_class(classes.compute), Some(generation));
        let of_channel = Generation::of_channel_class(classes.channel).unwrap();
        assert_eq!(of_channel.classes().channel, classes.channel);
    }
}
