//! The 32 bytes in front of every datagram of an open stream.
//!
//! ```text
//!  0  token: first 8 bytes of HMAC-SHA256 under the stream's proof     8 bytes
//!  8  sequence, from 0; of an end: how many datagrams there were       8 bytes, big-endian
//! 16  time it was sent, in ns of the sender's monotonic clock          8 bytes, big-endian
//! 24  how many bytes of the datagram count (the rest is padding)       2 bytes, big-endian
//! 26  stream                                                           2 bytes, big-endian
//! 28  kind                                                             1 byte
//! 29  zero                                                             3 bytes
//! ```
//!
//! A datagram is never shorter than its header; a shorter rest of a total is padded and counts as what it is.

use crate::StreamKey;

/// Length of a header.
pub(super) const HEADER_BYTES: usize = 32;

/// What a datagram is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// Payload.
    Data = 1,
    /// Listener to opener: the stream is open.
    Welcome = 2,
    /// Opener to listener: I know that it is open.
    Confirm = 3,
    /// Listener to opener: I know that you know.
    Confirmed = 4,
    /// Sender to receiver: that was all.
    End = 5,
    /// Receiver to sender: I know that it was all.
    EndSeen = 6,
}

impl Kind {
    fn of(byte: u8) -> Option<Self> {
        let all = [
            Self::Data,
            Self::Welcome,
            Self::Confirm,
            Self::Confirmed,
            Self::End,
            Self::EndSeen,
        ];
        all.into_iter().find(|&kind| kind as u8 == byte)
    }
}

/// Marks the datagrams of one stream; only who knows the proof can make it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token([u8; 8]);

impl Token {
    pub(super) fn of(key: &StreamKey) -> Self {
        let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &key.proof);
        let tag = ring::hmac::sign(&secret, b"farline udp datagram");
        let mut token = [0; 8];
        token.copy_from_slice(&tag.as_ref()[..8]);
        Self(token)
    }
}

/// A header taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) sequence: u64,
    pub(super) sent_ns: u64,
    /// Bytes of the datagram that count; never more than there are.
    pub(super) counted: usize,
}

/// Writes what does not change from datagram to datagram into the slot of one.
pub(super) fn prepare(slot: &mut [u8], token: Token, stream: u16, kind: Kind) {
    slot[..8].copy_from_slice(&token.0);
    slot[8..26].fill(0);
    slot[26..28].copy_from_slice(&stream.to_be_bytes());
    slot[28] = kind as u8;
    slot[29..HEADER_BYTES].fill(0);
}

/// Writes what changes into a prepared slot.
#[inline]
pub(super) fn stamp(slot: &mut [u8], sequence: u64, sent_ns: u64, counted: u16) {
    slot[8..16].copy_from_slice(&sequence.to_be_bytes());
    slot[16..24].copy_from_slice(&sent_ns.to_be_bytes());
    slot[24..26].copy_from_slice(&counted.to_be_bytes());
}

/// A whole datagram without payload.
pub(super) fn bare(token: Token, stream: u16, kind: Kind, sequence: u64) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    prepare(&mut bytes, token, stream, kind);
    stamp(&mut bytes, sequence, farline_sys::time::now_ns(), 0);
    bytes
}

/// Reads the header of `datagram`; `None` unless it is one of the stream that `token` marks.
#[inline]
pub(super) fn parse(datagram: &[u8], token: Token) -> Option<Header> {
    let header: &[u8; HEADER_BYTES] = datagram.first_chunk()?;
    let [token_bytes @ .., _, _, _, _, _, _, _, _] = header.first_chunk::<16>()?;
    if *token_bytes != token.0 {
        return None;
    }
    let word = |at: usize| u64::from_be_bytes(std::array::from_fn(|index| header[at + index]));
    Some(Header {
        kind: Kind::of(header[28])?,
        sequence: word(8),
        sent_ns: word(16),
        counted: usize::from(u16::from_be_bytes([header[24], header[25]])).min(datagram.len()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn token(proof: u8) -> Token {
        Token::of(&StreamKey {
            stream: 1,
            session: [0; 16],
            proof: [proof; 32],
        })
    }

    #[test]
    fn a_stamped_header_reads_back() {
        let mut datagram = [0xff; 100];
        prepare(&mut datagram, token(1), 7, Kind::Data);
        stamp(&mut datagram, u64::MAX - 1, 12_345_678_901, 100);
        let header = parse(&datagram, token(1)).unwrap();
        assert_eq!(header.kind, Kind::Data);
        assert_eq!(
            (header.sequence, header.sent_ns, header.counted),
            (u64::MAX - 1, 12_345_678_901, 100)
        );
    }

    #[test]
    fn another_streams_token_is_none_of_ours() {
        let datagram = bare(token(1), 0, Kind::End, 3);
        assert!(parse(&datagram, token(2)).is_none());
        assert!(parse(&datagram[..31], token(1)).is_none());
        assert!(parse(&datagram, token(1)).is_some());
    }

    #[test]
    fn a_peer_cannot_count_more_than_it_sent() {
        let mut datagram = bare(token(1), 0, Kind::Data, 0);
        stamp(&mut datagram, 0, 0, 60_000);
        assert_eq!(parse(&datagram, token(1)).unwrap().counted, HEADER_BYTES);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            prop_assert!(parse(&bytes, token(1)).is_none());
        }
    }
}
