//! What `farline_session::fuzz::operations` says about any bytes.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| farline_session::fuzz::operations(data));
