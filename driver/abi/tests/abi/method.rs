//! Headers of methods.

use fixtures::{
    properties,
    property::{any, list},
};

use nv_abi::method::*;

#[test]
fn the_seeds_header_words_decode_to_what_it_meant() {
    // Arithmetic of the seed: (2 << 28) | count << 16 | subchannel << 13 | address >> 2, typ 6 for inline data.
    let release = Header::decode(0x2005_0017).unwrap();
    assert_eq!(release, Header { form: Form::Increment, subchannel: 0, address: 0x5c, count: 5 });
    let inline = Header::decode(0x6fff_206d).unwrap();
    assert_eq!(inline, Header { form: Form::NonIncrement, subchannel: 1, address: 0x1b4, count: 4095 });
}

#[test]
fn a_zero_word_is_a_header_without_data() {
    let header = Header::decode(0).unwrap();
    assert_eq!((header.form, header.count), (Form::OldIncrement, 0));
    assert_eq!(walk(&[0; 1024]).count(), 0);
}

#[test]
fn a_segment_that_ends_inside_its_data_is_an_error() {
    let calls: Vec<_> = walk(&[0x2005_0017, 1, 2]).collect();
    assert_eq!(calls, [Err(HeaderError::Truncated { index: 0, count: 5, left: 2 })]);
}

#[test]
fn what_follows_an_end_of_segment_is_not_executed() {
    assert_eq!(walk(&[0xe000_0000, 0x2001_0017, 1]).count(), 0);
}

#[test]
fn one_increment_sends_all_words_but_the_first_to_the_next_method() {
    let calls: Vec<_> = walk(&[0xa003_2060, 1, 2, 3]).map(|call| call.unwrap().address).collect();
    assert_eq!(calls, [0x180, 0x184, 0x184]);
}

properties! { 256 cases;
    fn every_word_is_refused_or_encodes_back_but_for_bits_that_its_form_ignores(word in any::<u32>) {
        if let Ok(header) = Header::decode(word) {
            let again = header.encode().unwrap();
            assert_eq!(Header::decode(again).unwrap(), header);
        }
    }

    fn walking_any_words_ends(words in list::<u32>(0..64)) {
        assert!(walk(&words).count() <= words.len() + 1);
    }
}
