//! The header of a control packet.

use super::CONTROL_BIT;

/// Replaces `out` by a header. `kind` is the first word without its top bit.
pub(super) fn write_header(
    kind: u32,
    information: u32,
    timestamp_us: u32,
    destination: u32,
    out: &mut Vec<u8>,
) {
    out.clear();
    push_words(&[CONTROL_BIT | kind, information, timestamp_us, destination], out);
}

pub(super) fn push_words(words: &[u32], out: &mut Vec<u8>) {
    for word in words {
        out.extend(word.to_be_bytes());
    }
}
