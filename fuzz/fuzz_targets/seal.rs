//! What `farline_session::fuzz::seal` says about any bytes.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| farline_session::fuzz::seal(data));
