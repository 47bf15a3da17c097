//! What UDT version 4 looks like on the wire.
//!
//! What it does: reads and writes headers, control packets and handshakes, bit for bit as libudt 4.11 does on a
//! little-endian machine (draft-gg-udt, sections 2 and 4, where the two agree), and turns sequence numbers of 31
//! bits into indices that never wrap.
//! What it must not do: remember anything. Whether a packet makes sense for a connection is the connection's question.
//!
//! In: one datagram, in whatever shape it came. Out: values, or `None` for what is no packet of UDT. Nothing here
//! panics on foreign bytes, and the work is bounded by the datagram's length. Readers are liberal: padding may be
//! missing, bodies may be longer than what is known. Writers are strict: padding is always there.
//!
//! ```text
//!  data     0 | sequence 31      FF O | number 29     timestamp_us      destination      payload
//!  control  1 | type 15 | 16     information          timestamp_us      destination      words
//! ```
//!
//! Everything is big-endian. `destination` is the id of the receiving socket, 0 while that is not known.

mod control;
mod data;
mod handshake;
mod header;
mod loss;
mod sequence;

pub use control::{Ack, AckDetail, Control, ControlPacket, Rates, read_control, write_control};
pub use data::{Boundary, DataHeader, MessageWord, stamp};
pub use handshake::{Handshake, REFUSED, SocketKind, VERSION, ip_words};
pub use loss::{LossRanges, write_nak};
pub use sequence::{Sequence, expand};

/// Bytes of a packet before its payload or body.
pub const HEADER_BYTES: usize = 16;
/// Bytes of the IP and UDP headers that UDT_MSS counts. libudt takes 28 for IPv6 too.
pub const IP_UDP_BYTES: usize = 28;
/// Bytes of a handshake as a whole datagram.
pub const HANDSHAKE_BYTES: usize = 64;
/// The smallest UDT_MSS with which a handshake fits a packet, and libudt's limit too.
pub const MIN_MSS_BYTES: u32 = 76;

/// The bit that makes a packet a control packet.
const CONTROL_BIT: u32 = 1 << 31;

/// Whether this is a control packet. Too short a datagram is none.
#[inline]
pub fn is_control(datagram: &[u8]) -> bool {
    datagram.len() >= HEADER_BYTES && datagram[0] & 0x80 != 0
}

/// The socket id that a packet is for; `None` if the datagram is too short to be one.
#[inline]
pub fn destination_of(datagram: &[u8]) -> Option<u32> {
    word(datagram, 3)
}

/// The word at `index`, counted in words.
#[inline]
fn word(bytes: &[u8], index: usize) -> Option<u32> {
    let bytes = bytes.get(4 * index..4 * index + 4)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests;
