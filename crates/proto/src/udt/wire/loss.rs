//! The list of lost packets in a NAK.

use super::header::write_header;
use super::{CONTROL_BIT, HEADER_BYTES, Sequence, word};

pub(super) const NAK: u32 = 3;

/// The ranges of a NAK, first and last included, in the order in which they stand.
///
/// A word without its top bit is a single packet; one with it begins a range that ends with the next word. What is
/// malformed ends the iteration: a range without an end, or one whose end is before its beginning. A range may
/// name packets that were never sent, up to 2^30 of them: whoever uses it limits it first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossRanges<'a>(&'a [u8]);

impl<'a> LossRanges<'a> {
    /// The ranges in the body of a NAK.
    pub const fn new(body: &'a [u8]) -> Self {
        Self(body)
    }

    /// What is left of the body.
    pub(super) const fn body(&self) -> &'a [u8] {
        self.0
    }
}

impl Iterator for LossRanges<'_> {
    type Item = (Sequence, Sequence);

    fn next(&mut self) -> Option<Self::Item> {
        let body = std::mem::take(&mut self.0);
        let first = word(body, 0)?;
        if first & CONTROL_BIT == 0 {
            self.0 = &body[4..];
            return Some((Sequence::new(first), Sequence::new(first)));
        }
        let last = word(body, 1).filter(|last| last & CONTROL_BIT == 0)?;
        let (first, last) = (Sequence::new(first), Sequence::new(last));
        if !last.is_at_or_after(first) {
            return None;
        }
        self.0 = &body[8..];
        Some((first, last))
    }
}

/// Writes a NAK of as many of the ranges as fit into a datagram of `max_bytes`, and says how many those are.
///
/// `out` is replaced; it is empty if not even one fits. A range is first and last packet, both included.
pub fn write_nak(
    ranges: &[(Sequence, Sequence)],
    max_bytes: usize,
    timestamp_us: u32,
    destination: u32,
    out: &mut Vec<u8>,
) -> usize {
    write_header(NAK << 16, 0, timestamp_us, destination, out);
    let mut written = 0;
    for &(first, last) in ranges {
        let words = if first == last { 1 } else { 2 };
        if out.len() + 4 * words > max_bytes {
            break;
        }
        if first == last {
            out.extend(first.get().to_be_bytes());
        } else {
            out.extend((CONTROL_BIT | first.get()).to_be_bytes());
            out.extend(last.get().to_be_bytes());
        }
        written += 1;
    }
    if out.len() == HEADER_BYTES {
        out.clear();
    }
    written
}
