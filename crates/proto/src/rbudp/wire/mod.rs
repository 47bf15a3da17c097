//! What RBUDP looks like on the wire.
//!
//! What it does: reads and writes the header of a datagram, a DONE as a datagram, and the messages on the TCP
//! connection.
//! What it must not do: remember anything but the bytes of a message that has not come whole. Whether a message makes
//! sense for a stream is the machines' question.
//!
//! In: bytes, in whatever shape they came. Out: values, or `None` or an error for what is no RBUDP. Nothing here panics
//! on foreign bytes; every length has a limit.
//!
//! ```text
//!  datagram  token 4 | blast 4 | packet 4 | check 4 | payload
//!  a DONE    token 4 | blast 4 | MARK   4 | check 4 | upto 4 | served 4 [| bytes 8 | sum 8]
//!  message   length 4 | kind 1 | body            length: of kind and body
//! ```
//!
//! Everything is big-endian. `check` is the low half of the hash of what follows it.

mod decoder;
mod message;

pub use decoder::Decoder;
pub use message::{Done, Message, Missing, Total, WireError, encode};

use twox_hash::XxHash3_64;

/// Bytes of a datagram before its payload.
pub const HEADER_BYTES: usize = 16;
/// Packet number of a DONE as a datagram.
pub const MARK: u32 = u32::MAX;
/// Most packets of a blast; what is above is for datagrams that are no data.
pub const MAX_PACKETS: u32 = 1 << 28;

/// Bytes of a DONE's body, without and with the total.
const DONE_BYTES: usize = 8;
const DONE_TOTAL_BYTES: usize = 24;

/// What stands before the payload of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Tells the datagrams of the stream from others'.
    pub token: u32,
    /// Which blast the packet belongs to.
    pub blast: u32,
    /// Which packet of the blast it is; [`MARK`] for a DONE.
    pub packet: u32,
    /// Low half of [`packet_hash`]; 0 without checksum.
    pub check: u32,
}

impl Header {
    /// Writes the first [`HEADER_BYTES`] of `datagram`.
    ///
    /// # Panics
    /// If `datagram` is shorter than that.
    #[inline]
    pub fn write(self, datagram: &mut [u8]) {
        let words = [self.token, self.blast, self.packet, self.check];
        for (slot, word) in datagram[..HEADER_BYTES].chunks_exact_mut(4).zip(words) {
            slot.copy_from_slice(&word.to_be_bytes());
        }
    }

    /// The header of a datagram; `None` if it is too short to have one.
    #[inline]
    pub fn read(datagram: &[u8]) -> Option<Self> {
        let header: [u8; HEADER_BYTES] = datagram.get(..HEADER_BYTES)?.try_into().ok()?;
        let all = u128::from_be_bytes(header);
        Some(Self {
            token: (all >> 96) as u32,
            blast: (all >> 64) as u32,
            packet: (all >> 32) as u32,
            check: all as u32,
        })
    }
}

/// XXH3-64 of `payload`, seeded by blast and packet, so that a packet in a wrong place does not match either.
#[inline]
pub fn packet_hash(blast: u32, packet: u32, payload: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(u64::from(blast) << 32 | u64::from(packet), payload)
}

/// Writes a DONE as a datagram, over what was in `out`.
pub fn encode_mark(token: u32, done: &Done, out: &mut Vec<u8>) {
    out.clear();
    out.resize(HEADER_BYTES, 0);
    message::write_done_body(done, out);
    let header = Header {
        token,
        blast: done.blast,
        packet: MARK,
        check: packet_hash(done.blast, MARK, &out[HEADER_BYTES..]) as u32,
    };
    header.write(out);
}

/// The DONE of a datagram whose header says [`MARK`]; `None` if a byte of it is wrong. Whose it is the caller knows from
/// the token.
pub fn decode_mark(datagram: &[u8]) -> Option<Done> {
    let header = Header::read(datagram)?;
    let body = &datagram[HEADER_BYTES..];
    if header.packet != MARK || header.check != packet_hash(header.blast, MARK, body) as u32 {
        return None;
    }
    message::read_done_body(header.blast, body)
}

#[cfg(test)]
mod tests;
