//! Puts chunks of a stream in order that the protocol machine gives as they come.
//!
//! The machine would do so by itself, but ends the connection once what waits behind a gap is in more than 1,024 pieces, which
//! a few megabytes behind one lost packet are (quinn-proto 0.11.19). Here what waits is bounded by the window, which it takes from.

use std::collections::BTreeMap;

use bytes::{Buf, Bytes};

/// What has come of a stream and cannot be read yet, by where it begins.
#[derive(Debug, Default)]
pub(super) struct InOrder {
    waiting: BTreeMap<u64, Bytes>,
    waiting_bytes: u64,
    /// Where the next byte to be read is.
    at: u64,
}

impl InOrder {
    /// Takes a chunk; no byte comes twice.
    pub(super) fn take(&mut self, offset: u64, bytes: Bytes) {
        self.waiting_bytes += bytes.len() as u64;
        self.waiting.insert(offset, bytes);
    }

    /// Bytes that wait.
    pub(super) const fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    /// Whether the next byte to be read is here.
    pub(super) fn has_next(&self) -> bool {
        self.waiting
            .first_key_value()
            .is_some_and(|(offset, _)| *offset == self.at)
    }

    /// Reads what is in order; how much that was.
    pub(super) fn read(&mut self, into: &mut [u8]) -> usize {
        let mut filled = 0;
        while filled < into.len() && self.has_next() {
            let Some((offset, mut bytes)) = self.waiting.pop_first() else {
                break;
            };
            let count = bytes.len().min(into.len() - filled);
            bytes.copy_to_slice(&mut into[filled..filled + count]);
            filled += count;
            self.at += count as u64;
            if !bytes.is_empty() {
                self.waiting.insert(offset + count as u64, bytes);
            }
        }
        self.waiting_bytes -= filled as u64;
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn chunks_in_any_order_are_read_as_they_were_sent(
            lengths in prop::collection::vec(1usize..50, 1..60),
            order in any::<u64>(),
            room in 1usize..70,
        ) {
            let sent: Vec<u8> = (0..lengths.iter().sum::<usize>()).map(|at| at as u8).collect();
            let mut chunks = Vec::new();
            let mut at = 0;
            for length in lengths {
                chunks.push((at as u64, Bytes::copy_from_slice(&sent[at..at + length])));
                at += length;
            }
            let mut state = order;
            for place in (1..chunks.len()).rev() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                chunks.swap(place, (state >> 33) as usize % (place + 1));
            }
            let (mut stream, mut read, mut into) = (InOrder::default(), Vec::new(), vec![0; room]);
            for (offset, bytes) in chunks {
                stream.take(offset, bytes);
                while stream.has_next() {
                    let count = stream.read(&mut into);
                    read.extend_from_slice(&into[..count]);
                }
            }
            prop_assert_eq!(stream.read(&mut into), 0);
            prop_assert_eq!(stream.waiting_bytes(), 0);
            prop_assert!(read == sent);
        }
    }
}
