//! Entries of rings.

use fixtures::{
    properties,
    property::{any, within},
};

use nv_abi::gpfifo::*;

#[test]
fn the_seeds_entry_decodes_to_its_segment() {
    let raw = (0x10_2030_4000u64 / 4) << 2 | 26 << 42 | 1 << 41;
    assert_eq!(
        Entry::decode(raw),
        Entry::Segment {
            address: 0x10_2030_4000,
            length: 26,
            subroutine: true,
            sync: false,
            conditional: false
        }
    );
}

#[test]
fn a_length_of_zero_makes_a_control_entry() {
    assert_eq!(Entry::decode(0x1_0000_0000), Entry::Control { opcode: 1, operand: 0 });
}

#[test]
fn an_address_above_40_bits_or_off_the_grid_is_refused() {
    assert!(Entry::segment(1 << 40, 1).encode().is_err());
    assert!(Entry::segment(0x1002, 1).encode().is_err());
    assert!(Entry::segment(0x1000, 0).encode().is_err());
    assert!(Entry::segment(0x1000, 1 << 21).encode().is_err());
}

properties! { 256 cases;
    fn every_segment_encodes_and_decodes_back(address in within(0u64..1 << 38), length in within(1u32..1 << 21), flags in any::<[bool; 3]>) {
        let [subroutine, sync, conditional] = flags;
        let entry = Entry::Segment { address: address * 4, length, subroutine, sync, conditional };
        assert_eq!(Entry::decode(entry.encode().unwrap()), entry);
    }
}
