//! See `tests::fuzz::kernel_module`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tests::fuzz::kernel_module(data));
