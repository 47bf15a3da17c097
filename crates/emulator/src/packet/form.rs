//! Where things are in a packet, as found by [`super::parse`].

use super::network::Family;

/// Longest headers that are rebuilt, from the start of the IP packet: IPv6, extension headers, TCP with options.
pub(super) const MOST_HEADER_BYTES: usize = 240;

/// What the IP packet carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// ICMP or ICMPv6.
    Icmp,
    /// Anything else, fragments, and what is not as its protocol says.
    Other,
}

impl Transport {
    /// Place of the checksum in the transport header.
    pub(super) fn checksum_offset(self) -> Option<usize> {
        match self {
            Self::Tcp => Some(16),
            Self::Udp => Some(6),
            Self::Icmp => Some(2),
            Self::Other => None,
        }
    }
}

/// The shape of a packet: enough to cut it without reading it again. All offsets are from the start of the IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    pub(super) family: Family,
    pub(super) transport: Transport,
    pub(super) needs_checksum: bool,
    /// Segments in the packet, 1 at least.
    pub(super) segments: u16,
    /// IP header, with options and extension headers.
    pub(super) network_bytes: u16,
    /// All headers; the payload starts here.
    pub(super) header_bytes: u16,
    /// Payload bytes of each segment but the last.
    pub(super) segment_payload: u32,
    /// The whole IP packet.
    pub(super) packet_bytes: u32,
    pub(super) checksum_start: u16,
    pub(super) checksum_offset: u16,
}

impl Form {
    /// What the IP packet carries.
    pub fn transport(&self) -> Transport {
        self.transport
    }

    /// Segments in the packet: packets on the wire.
    pub fn segments(&self) -> u16 {
        self.segments
    }

    /// Bytes of a full segment on IP level.
    pub fn segment_bytes(&self) -> u32 {
        u32::from(self.header_bytes) + self.segment_payload
    }

    /// Bytes of the last segment on IP level.
    pub fn last_bytes(&self) -> u32 {
        let before = u32::from(self.segments - 1) * self.segment_payload;
        self.packet_bytes - before
    }
}
