//! See `tests::fuzz::qmd_reader`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tests::fuzz::qmd_reader(data));
