//! UDP: the two datagrams that open a stream, and the header of those that carry data.

/// What a client sends to open a stream, from 3.10 on and before; the reply makes it begin.
const OPENINGS: [[u8; 4]; 2] = [*b"9876", 123_456_789u32.to_le_bytes()];
/// What the server answers, to clients of any version.
pub const REPLY: [u8; 4] = *b"6789";
/// What servers answered before 3.10.
const OLD_REPLY: [u8; 4] = 987_654_321u32.to_le_bytes();
/// What our client sends.
pub const OPENING: [u8; 4] = OPENINGS[0];

/// Bytes of the header with a number of 64 bits.
pub const HEADER_BYTES: usize = 16;

/// Whether a datagram opens a stream.
pub fn is_opening(datagram: &[u8]) -> bool {
    OPENINGS.iter().any(|opening| opening == datagram)
}

/// Whether a datagram is the answer to an opening.
pub fn is_reply(datagram: &[u8]) -> bool {
    datagram == REPLY || datagram == OLD_REPLY
}

/// When a datagram was sent and as which; numbers begin with 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Time by the sender's clock, in microseconds.
    pub sent_us: u64,
    /// Number of the datagram.
    pub number: u64,
}

impl Header {
    /// Reads a header; `None` from a datagram too short for one.
    pub fn read(datagram: &[u8], is_wide: bool) -> Option<Self> {
        let word = |at: usize| {
            datagram
                .get(at..)?
                .first_chunk::<4>()
                .copied()
                .map(u32::from_be_bytes)
        };
        let (seconds, micros) = (u64::from(word(0)?), u64::from(word(4)?));
        let number = if is_wide {
            u64::from_be_bytes(*datagram.get(8..)?.first_chunk()?)
        } else {
            word(8)?.into()
        };
        Some(Self {
            sent_us: seconds * 1_000_000 + micros,
            number,
        })
    }

    /// Writes a header to the front of `datagram`, which has room for it. Numbers of 32 bits wrap, as in iperf3.
    pub fn write(self, datagram: &mut [u8], is_wide: bool) {
        let (seconds, micros) = (self.sent_us / 1_000_000, self.sent_us % 1_000_000);
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&(seconds as u32).to_be_bytes());
        bytes[4..8].copy_from_slice(&(micros as u32).to_be_bytes());
        let length = if is_wide {
            bytes[8..].copy_from_slice(&self.number.to_be_bytes());
            HEADER_BYTES
        } else {
            bytes[8..12].copy_from_slice(&(self.number as u32).to_be_bytes());
            12
        };
        datagram[..length].copy_from_slice(&bytes[..length]);
    }
}
