//! What `farline_proto::fuzz::copy_sender` says about any bytes.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| farline_proto::fuzz::copy_sender(data));
