//! Fields of bits.

use fixtures::{
    properties,
    property::{any, list, within},
};
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

properties! { 512 cases;
    /// Also in the last bytes, and over nine bytes.
    fn a_field_is_the_bits_between_its_ends(bytes in list::<u8>(1..20), at in any::<u64>, width in within(1u32..65), value in any::<u64>) {
        let bits = 8 * bytes.len() as u32;
        let width = width.min(bits);
        let lo = (at % u64::from(bits - width + 1)) as u32;
        let field = Field::new("FIELD", lo + width - 1, lo);
        let value = value & (u64::MAX >> (64 - width));
        let bit = |bytes: &[u8], at: u32| u64::from(bytes[at as usize / 8] >> (at % 8) & 1);
        let inside = (0..width).fold(0, |word, n| word | bit(&bytes, lo + n) << n);
        assert_eq!(Bits::new(&bytes).get(&field), Ok(inside));
        let mut set = bytes.clone();
        BitsMut::new(&mut set).set(&field, value).unwrap();
        for at in 0..bits {
            let expected = if (lo..lo + width).contains(&at) { value >> (at - lo) & 1 } else { bit(&bytes, at) };
            assert_eq!(bit(&set, at), expected, "bit {at}");
        }
    }
}
