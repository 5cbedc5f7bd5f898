//! What acquires accept and reductions compute.

use nv_simulator::host::semaphore::{Acquire, Reduction, Width};

#[test]
fn circular_comparison_wraps_and_strict_does_not() {
    // The pairs that were run on H200: memory 5, payload 0xfffffff0 passes circularly only; 6 >= 5 passes both.
    let circular = |memory, payload| Acquire::CircularGreaterOrEqual.passes(Width::Word, memory, payload);
    assert!(!circular(0xffff_fff0, 5));
    assert!(circular(5, 0xffff_fff0) && circular(6, 5) && circular(5, 5));
    let strict = |memory, payload| Acquire::StrictGreaterOrEqual.passes(Width::Word, memory, payload);
    assert!(strict(0xffff_fff0, 5) && !strict(5, 0xffff_fff0));
}

#[test]
fn a_word_acquire_ignores_the_upper_half() {
    assert!(Acquire::Equal.passes(Width::Word, 0x9_0000_0005, 0x7_0000_0005));
    assert!(!Acquire::Equal.passes(Width::Long, 0x9_0000_0005, 0x7_0000_0005));
    assert!(!Acquire::And.passes(Width::Word, 1 << 40, 1 << 40));
    assert!(Acquire::And.passes(Width::Long, 1 << 40, 1 << 40));
}

#[test]
fn nor_passes_while_a_bit_is_clear_in_both() {
    assert!(Acquire::Nor.passes(Width::Word, 0, 0xffff_fffe));
    assert!(!Acquire::Nor.passes(Width::Word, 1, 0xffff_fffe));
}

#[test]
fn inc_and_dec_wrap_at_the_payload() {
    assert_eq!(Reduction::Inc.word(false, 3, 4), 4);
    assert_eq!(Reduction::Inc.word(false, 4, 4), 0);
    assert_eq!(Reduction::Dec.word(false, 0, 4), 4);
    assert_eq!(Reduction::Dec.word(false, 9, 4), 4);
    assert_eq!(Reduction::Dec.word(false, 3, 4), 2);
}

#[test]
fn minimum_and_maximum_heed_the_sign() {
    assert_eq!(Reduction::Min.word(true, 1, u32::MAX), u32::MAX);
    assert_eq!(Reduction::Min.word(false, 1, u32::MAX), 1);
    assert_eq!(Reduction::Max.long(true, 1, u64::MAX), 1);
}

#[test]
fn illegal_widths_and_formats_are_known() {
    assert!(!Reduction::Add.is_legal(Width::Long, true) && Reduction::Add.is_legal(Width::Long, false));
    assert!(!Reduction::Inc.is_legal(Width::Long, false) && !Reduction::Inc.is_legal(Width::Word, true));
}
