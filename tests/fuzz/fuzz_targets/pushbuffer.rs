//! See `tests::fuzz::pushbuffer`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tests::fuzz::pushbuffer(data));
