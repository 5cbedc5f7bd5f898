//! See `tests::fuzz::executor`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tests::fuzz::executor(data));
