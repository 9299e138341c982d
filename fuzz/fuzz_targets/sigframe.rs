//! See `fuzzing::sigframe`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::sigframe::run(bytes));
