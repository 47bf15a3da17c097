//! The virtio-net header in front of every packet (virtio 1.2, section 5.1.6), little endian.

use super::malformed::Malformed;

/// Bytes of the header.
pub const VNET_BYTES: usize = 10;

const NEEDS_CHECKSUM: u8 = 1;
const GSO_ECN: u8 = 0x80;

/// How a super-packet is to be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// Not at all: it is one packet.
    Whole,
    TcpV4,
    TcpV6,
    Udp,
}

/// The header's fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Vnet {
    /// The checksum field holds the sum over the pseudo-header only.
    pub(super) needs_checksum: bool,
    pub(super) cut: Cut,
    /// Payload bytes of each segment but the last.
    pub(super) segment_payload: u16,
    /// Where checksumming starts, from the start of the IP packet.
    pub(super) checksum_start: u16,
    /// Place of the checksum field behind that.
    pub(super) checksum_offset: u16,
}

impl Vnet {
    pub(super) fn read(bytes: &[u8; VNET_BYTES]) -> Result<Self, Malformed> {
        let word = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let cut = match bytes[1] & !GSO_ECN {
            0 => Cut::Whole,
            1 => Cut::TcpV4,
            4 => Cut::TcpV6,
            5 => Cut::Udp,
            _ => {
                return Err(Malformed(
                    "a kind of super-packet that was not requested from the device",
                ));
            }
        };
        Ok(Self {
            needs_checksum: bytes[0] & NEEDS_CHECKSUM != 0,
            cut,
            segment_payload: word(4),
            checksum_start: word(6),
            checksum_offset: word(8),
        })
    }
}

/// Changes a header so that its packet is one segment.
pub(super) fn set_whole(header: &mut [u8]) {
    header[1] = 0;
    header[4..6].fill(0);
}

/// Changes a header so that the congestion window reduced flag is in none of its segments.
pub(super) fn clear_ecn(header: &mut [u8]) {
    header[1] &= !GSO_ECN;
}

/// Changes a header so that it says nothing about checksums: the receiver verifies them.
pub(super) fn set_checked(header: &mut [u8]) {
    header[0] = 0;
    header[6..10].fill(0);
}
