//! See `fuzzing::decode`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::decode::run(bytes));
