//! See `tests::fuzz::sass_decoder`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tests::fuzz::sass_decoder(data));
