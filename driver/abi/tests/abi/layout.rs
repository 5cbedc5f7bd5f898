//! Fields of bits.

use nv_abi::layout::*;

#[test]
fn a_field_of_a_word_decodes_as_the_getter_reads_it() {
    let word = 0xfedc_ba98_7654_3210u64;
    for (field, value) in [
        (Field::new("LOW", 3, 0), 0x0),
        (Field::new("MIDDLE", 43, 28), 0xa987),
        (Field::new("ALL", 63, 0), word),
        (Field { shift: 8, ..Field::new("ADDRESS", 63, 32) }, 0xfe_dcba_9800),
    ] {
        assert_eq!(field.decode(word), value, "{}", field.name);
        assert_eq!(Bits::new(&word.to_le_bytes()).get(&field), Ok(value), "{}", field.name);
    }
    assert_eq!(Field::new("BEYOND", 95, 64).decode(word), 0);
}
