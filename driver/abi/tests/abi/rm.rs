//! Structs, classes and controls of the resource manager.

use nv_abi::Branch;
use nv_abi::rm::*;

#[test]
fn sizes_per_branch_are_those_that_the_modules_check() {
    // reference: the sizes that clients of each branch were seen to send or that strict checks demand.
    assert_eq!(NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS::STRUCT.size(Branch::R570), 2);
    assert_eq!(NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS::STRUCT.size(Branch::R580), 3);
    assert_eq!(NVOS46_PARAMETERS::STRUCT.size(Branch::R570), 56);
    assert_eq!(NVOS46_PARAMETERS::STRUCT.size(Branch::R580), 64);
    assert_eq!(NVOS46_PARAMETERS::status.offset(Branch::R570), Some(0x30));
    assert_eq!(NVOS46_PARAMETERS::status.offset(Branch::R580), Some(0x38));
    assert_eq!(nv_abi::uvm::UVM_FREE_PARAMS::STRUCT.size(Branch::R580), 24);
    assert_eq!(nv_abi::uvm::UVM_FREE_PARAMS::STRUCT.size(Branch::R590), 16);
    assert_eq!(nv_abi::uvm::UVM_MAP_EXTERNAL_ALLOCATION_PARAMS::STRUCT.size(Branch::R535), 1200);
    assert_eq!(nv_abi::uvm::UVM_MAP_EXTERNAL_ALLOCATION_PARAMS::STRUCT.size(Branch::R550), 9264);
    assert_eq!(class::class(class::NV01_DEVICE_0).map(|c| c.name), Some("NV01_DEVICE_0"));
}

#[test]
fn class_and_control_numbers_are_unique() {
    for (i, class) in class::CLASSES.iter().enumerate() {
        assert!(class::CLASSES[..i].iter().all(|c| c.number != class.number), "{}", class.name);
    }
    for (i, control) in control::CONTROLS.iter().enumerate() {
        assert!(control::CONTROLS[..i].iter().all(|c| c.command != control.command), "{}", control.name);
    }
}
