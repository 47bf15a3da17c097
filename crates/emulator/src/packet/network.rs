//! The IP header: addresses, protocol, length, congestion mark (RFC 791, RFC 8200, RFC 3168).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::checksum::{fold, sum};
use super::malformed::Malformed;

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const ICMP: u8 = 1;
pub(super) const ICMP_V6: u8 = 58;

const MIN_V4_BYTES: usize = 20;
pub(super) const V6_BYTES: usize = 40;
/// Extension headers that are followed; more is not a packet that anyone sends.
const MOST_EXTENSIONS: usize = 8;
/// Both bits of the congestion field: congestion experienced.
const MARK: u8 = 0b11;

/// Version of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
}

/// What an IP header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Network {
    pub(super) family: Family,
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    /// Of the packet, as the header has it.
    pub(super) stated_bytes: usize,
    /// Header with options and extension headers.
    pub(super) header_bytes: usize,
    /// What follows the header; `None` for a fragment, and where extension headers make no sense.
    pub(super) protocol: Option<u8>,
    /// The two bits of RFC 3168.
    pub(super) congestion: u8,
}

impl Network {
    pub(super) fn read(packet: &[u8]) -> Result<Self, Malformed> {
        match packet.first().map(|first| first >> 4) {
            Some(4) => read_v4(packet),
            Some(6) => read_v6(packet),
            Some(_) => Err(Malformed("neither IPv4 nor IPv6")),
            None => Err(Malformed("the IP header is missing")),
        }
    }

    /// May be marked instead of dropped.
    pub(super) fn is_ecn_capable(&self) -> bool {
        self.congestion != 0
    }

    pub(super) fn is_marked(&self) -> bool {
        self.congestion == MARK
    }
}

fn read_v4(packet: &[u8]) -> Result<Network, Malformed> {
    let header: &[u8; MIN_V4_BYTES] = packet.first_chunk().ok_or(Malformed("a truncated IPv4 header"))?;
    let header_bytes = usize::from(header[0] & 15) * 4;
    if header_bytes < MIN_V4_BYTES || header_bytes > packet.len() {
        return Err(Malformed("an IPv4 header of invalid length"));
    }
    let is_fragment = u16_at(header, 6) & 0x3fff != 0;
    Ok(Network {
        family: Family::V4,
        source: Ipv4Addr::from([header[12], header[13], header[14], header[15]]).into(),
        destination: Ipv4Addr::from([header[16], header[17], header[18], header[19]]).into(),
        stated_bytes: u16_at(header, 2).into(),
        header_bytes,
        protocol: (!is_fragment).then_some(header[9]),
        congestion: header[1] & MARK,
    })
}

fn read_v6(packet: &[u8]) -> Result<Network, Malformed> {
    let header: &[u8; V6_BYTES] = packet.first_chunk().ok_or(Malformed("a truncated IPv6 header"))?;
    let address = |at: usize| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&header[at..at + 16]);
        IpAddr::from(Ipv6Addr::from(octets))
    };
    let (header_bytes, protocol) = skip_extensions(packet, header[6]);
    Ok(Network {
        family: Family::V6,
        source: address(8),
        destination: address(24),
        stated_bytes: V6_BYTES + usize::from(u16_at(header, 4)),
        header_bytes,
        protocol,
        congestion: (header[1] >> 4) & MARK,
    })
}

/// Length of all headers up to the transport header, and its protocol (RFC 8200, section 4). Where the chain is cut,
/// too long or leads to a fragment, the headers are the fixed one alone and there is no protocol.
fn skip_extensions(packet: &[u8], first: u8) -> (usize, Option<u8>) {
    let (mut next, mut at) = (first, V6_BYTES);
    for _ in 0..=MOST_EXTENSIONS {
        let unit = match next {
            // Hop-by-hop, routing, destination options, mobility, HIP, Shim6: units of 8 bytes after the first.
            0 | 43 | 60 | 135 | 139 | 140 => 8,
            // Fragment.
            44 => return (V6_BYTES, None),
            _ => return (at, Some(next)),
        };
        let Some(&[following, units]) = packet.get(at..).and_then(|rest| rest.first_chunk()) else {
            break;
        };
        at += unit * (usize::from(units) + 1);
        next = following;
        if at > packet.len() {
            break;
        }
    }
    (V6_BYTES, None)
}

/// Sets the congestion mark of the packet's IP header, checksum included.
pub(super) fn mark(header: &mut [u8], family: Family) {
    match family {
        Family::V4 => {
            header[1] |= MARK;
            write_checksum(header);
        }
        Family::V6 => header[1] |= MARK << 4,
    }
}

/// Writes the length of the packet, `bytes` on IP level. Checksums are left to the caller.
pub(super) fn set_length(header: &mut [u8], family: Family, bytes: u32) {
    // Only packets that say their true length are cut, so every length here fits its field.
    match family {
        Family::V4 => put_u16(header, 2, u16::try_from(bytes).unwrap_or(0)),
        Family::V6 => put_u16(header, 4, u16::try_from(bytes - V6_BYTES as u32).unwrap_or(0)),
    }
}

/// Counts the identification on by `segments`, as the kernel does for each segment.
pub(super) fn advance_identification(header: &mut [u8], segments: u16) {
    let identification = u16_at(header, 4).wrapping_add(segments);
    put_u16(header, 4, identification);
}

/// Works out an IPv4 header's checksum anew. `header` starts with it and covers it.
pub(super) fn write_checksum(header: &mut [u8]) {
    let length = usize::from(header[0] & 15) * 4;
    put_u16(header, 10, 0);
    let value = !fold(sum(0, &header[..length]));
    put_u16(header, 10, value);
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

pub(super) fn put_u16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}
