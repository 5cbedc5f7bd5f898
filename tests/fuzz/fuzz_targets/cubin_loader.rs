//! See `tests::fuzz::cubin_loader`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tests::fuzz::cubin_loader(data));
