//! What exceptions leave in the error registers.

use nv_simulator::{
    fault::registers,
    sm::{Fault, FaultKind},
};

#[test]
fn every_exception_of_a_warp_has_its_number_program_counter_and_address() {
    const PC: u64 = 0x7_0000_0120;
    let state = |kind: FaultKind, program_counter| {
        let cta = [0; 3];
        registers(&Fault { kind, program_counter, text: String::new(), cta, warp: 3, lanes: 2 })
    };
    let address = 0x12_3456;
    // The warp is in bits 23:16; bit 24 says that the address counts.
    for (kind, number, told) in [
        (FaultKind::UnknownInstruction, 0x09, None),
        (FaultKind::IllegalForm("of no card"), 0x09, None),
        (FaultKind::Unsupported("by this interpreter".to_owned()), 0x09, None),
        (FaultKind::IllegalBarrier { index: 9, threads: 0, barriers: 1 }, 0x0b, None),
        (FaultKind::Constant { bank: 3, offset: 0x100 }, 0x0c, None),
        (FaultKind::OutOfRangeRegister { registers: 8 }, 0x0d, None),
        (FaultKind::OutOfRangeShared { address }, 0x0e, Some(address)),
        (FaultKind::OutOfRangeLocal { address }, 0x0e, Some(address)),
        (FaultKind::Misaligned { address }, 0x0f, Some(address)),
        (FaultKind::InvalidAddressSpace { address }, 0x10, Some(address)),
        (FaultKind::InvalidPc, 0x06, None),
    ] {
        let found = state(kind.clone(), PC).unwrap_or_else(|| panic!("{kind}"));
        let valid = if told.is_some() { 1 << 24 } else { 0 };
        assert_eq!((found.global_esr, found.warp_esr), (0, number | 3 << 16 | valid), "{kind}");
        assert_eq!((found.program_counter, found.address), (PC, told.unwrap_or(0)), "{kind}");
    }
    let misaligned = state(FaultKind::InvalidPc, PC + 8).map(|state| state.warp_esr);
    assert_eq!(misaligned, Some(0x05 | 3 << 16));
    // What assert and __trap end in.
    let trap =
        state(FaultKind::Trap, PC).map(|state| (state.global_esr, state.warp_esr, state.program_counter));
    assert_eq!(trap, Some((0x10, 0, PC)));
    // The MMU tells of its faults itself.
    assert_eq!(state(FaultKind::Stopped, PC), None);
}
