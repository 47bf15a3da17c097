//! What the receiving end of a copy does with any bytes.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| farline_mover::sink::fuzz::anywhere(data));
