//! What is said of a payload before it comes: the header of a frame.
//!
//! Little-endian: kind 1, flags 1, zero 2, payload bytes 4, file 8, offset 8, sum 32, check 8. The check is XXH3-64 of what is
//! before it; it finds damage where there is no cipher.

use farline_spec::{Failure, FailureKind};
use twox_hash::XxHash3_64;

use super::sum::Sum;

/// Bytes of a header.
pub const HEADER_BYTES: usize = 64;

const CHECKED_BYTES: usize = HEADER_BYTES - 8;

/// What a frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// One chunk of one file: `file`, `offset` and the payload.
    Chunk,
    /// Whole small files, one behind the other ([`super::pack`]).
    Pack,
    /// Messages of the sending end ([`super::message::Catalogue`]).
    Catalogue,
    /// Messages of the receiving end ([`super::message::Feedback`]).
    Feedback,
}

impl FrameKind {
    const ALL: [Self; 4] = [Self::Chunk, Self::Pack, Self::Catalogue, Self::Feedback];

    const fn number(self) -> u8 {
        match self {
            Self::Chunk => 1,
            Self::Pack => 2,
            Self::Catalogue => 3,
            Self::Feedback => 4,
        }
    }
}

/// What is said of a payload before it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What it is.
    pub kind: FrameKind,
    /// Number of the file, for a chunk; 0 otherwise.
    pub file: u64,
    /// Where in the file a chunk belongs; 0 otherwise.
    pub offset: u64,
    /// Sum of the chunk, a part of the file's ([`super::tree_hash`]); `None` where nothing is hashed.
    pub hash: Option<Sum>,
    /// Length of the payload.
    pub payload_bytes: u32,
}

impl Header {
    /// Header of messages.
    pub const fn of_messages(kind: FrameKind) -> Self {
        Self {
            kind,
            file: 0,
            offset: 0,
            hash: None,
            payload_bytes: 0,
        }
    }

    /// The header as it goes over a stream.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0] = self.kind.number();
        bytes[1] = self.hash.is_some().into();
        bytes[4..8].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.file.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_le_bytes());
        bytes[24..CHECKED_BYTES].copy_from_slice(&self.hash.map_or([0; 32], |hash| *hash.as_bytes()));
        let check = XxHash3_64::oneshot(&bytes[..CHECKED_BYTES]);
        bytes[CHECKED_BYTES..].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// The header that these bytes are.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`] for one that came damaged or says what cannot be.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, Failure> {
        let number = |range: std::ops::Range<usize>| {
            let mut eight = [0; 8];
            eight[..range.len()].copy_from_slice(&bytes[range]);
            u64::from_le_bytes(eight)
        };
        if number(CHECKED_BYTES..HEADER_BYTES) != XxHash3_64::oneshot(&bytes[..CHECKED_BYTES]) {
            return Err(broken("the header of a frame arrived corrupted"));
        }
        let kind = FrameKind::ALL.into_iter().find(|kind| kind.number() == bytes[0]);
        let kind = kind.ok_or_else(|| broken(&format!("unknown frame kind {:#x}", bytes[0])))?;
        if bytes[1] > 1 || bytes[2..4] != [0; 2] {
            let flags = u32::from_le_bytes([bytes[1], bytes[2], bytes[3], 0]);
            return Err(broken(&format!("unknown frame flags {flags:#x}")));
        }
        let mut hash = [0; 32];
        hash.copy_from_slice(&bytes[24..CHECKED_BYTES]);
        Ok(Self {
            kind,
            file: number(8..16),
            offset: number(16..24),
            hash: (bytes[1] == 1).then_some(Sum::from_bytes(hash)),
            payload_bytes: number(4..8) as u32,
        })
    }
}

fn broken(line: &str) -> Failure {
    Failure::new(FailureKind::Protocol, line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_header_is_read_as_it_was_written_and_damage_is_found() {
        for hash in [None, Some(Sum::from_bytes([3; 32]))] {
            let header = Header {
                kind: FrameKind::Chunk,
                file: 7,
                offset: 1 << 40,
                hash,
                payload_bytes: 100,
            };
            let bytes = header.encode();
            assert_eq!(Header::decode(&bytes), Ok(header));
            for place in 0..HEADER_BYTES {
                let mut damaged = bytes;
                damaged[place] ^= 1;
                assert!(Header::decode(&damaged).is_err(), "at {place}");
            }
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_header_panic(bytes in prop::array::uniform32(any::<u8>()), more in prop::array::uniform32(any::<u8>())) {
            let mut all = [0; HEADER_BYTES];
            all[..32].copy_from_slice(&bytes);
            all[32..].copy_from_slice(&more);
            let _ = Header::decode(&all);
        }
    }
}
