//! Nodes and descriptors of a machine.

use std::sync::Arc;

use nv_abi::{Errno, Fd, Ioctl, Mapping, Node};
use nv_simulator::{
    machine::{BuildError, Builder, Machine, PciPlace},
    memory::PAGE,
    profile::Profile,
};

fn machine() -> Arc<Machine> {
    Machine::builder().gpu(Profile::ad102()).vram(1 << 30).build().expect("a machine")
}

#[test]
fn a_chosen_number_is_the_descriptor_until_its_last_duplicate_is_closed() {
    let machine = machine();
    machine.open_at(Node::Gpu(0), Fd(700)).expect("a free number");
    assert_eq!(machine.open_at(Node::Ctl, Fd(700)), Err(Errno::EEXIST));
    assert_eq!(machine.duplicate(Fd(700), Fd(701)), Ok(()));
    assert_eq!(machine.duplicate(Fd(5), Fd(702)), Err(Errno::EBADF));
    machine.close(Fd(700)).expect("open");
    assert_eq!(machine.node(Fd(700)), None);
    assert_eq!(machine.node(Fd(701)), Some(Node::Gpu(0)));
    machine.close(Fd(701)).expect("open");
    assert_eq!(machine.close(Fd(701)), Err(Errno::EBADF));
}

#[test]
fn places_that_a_bus_does_not_have_or_has_once_are_refused() {
    let at = |slots: &[u8]| {
        let add =
            |builder: Builder, slot: &u8| builder.gpu_at(Profile::ad102(), PciPlace { bus: 1, slot: *slot });
        slots.iter().fold(Machine::builder(), add).vram(1 << 30).build().map(|_| ())
    };
    assert!(matches!(at(&[31]), Ok(())));
    assert!(matches!(at(&[32]), Err(BuildError::Slot(PciPlace { bus: 1, slot: 32 }))));
    assert!(matches!(at(&[3, 3]), Err(BuildError::Occupied(_))));
    let many = (0..300).fold(Machine::builder(), |builder, _| builder.gpu(Profile::ad102()));
    assert!(matches!(many.build(), Err(BuildError::TooMany(300))));
}

#[test]
fn nothing_is_attached_before_a_mapping_call() {
    let machine = machine();
    machine.open_at(Node::Gpu(0), Fd(9)).expect("a free number");
    assert!(machine.attached(Fd(9)).expect("open").is_none());
    let mapping = Mapping { address: None, length: PAGE, offset: 0 };
    assert_eq!(machine.map_source(Fd(9), mapping).expect_err("nothing to map"), Errno::EINVAL);
}
