//! What `farline_emulator::packet::fuzz::packets` says about any bytes.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| farline_emulator::packet::fuzz::packets(data));
