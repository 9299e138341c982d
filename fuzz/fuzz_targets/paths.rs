//! See `fuzzing::paths`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::paths::run(bytes));
