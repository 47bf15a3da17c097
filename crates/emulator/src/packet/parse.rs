//! From bytes as a device gives them to addresses and a form.

use std::net::IpAddr;

use super::form::{Form, MOST_HEADER_BYTES, Transport};
use super::malformed::Malformed;
use super::network::{self, Family, Network, u16_at};
use super::vnet::{Cut, VNET_BYTES, Vnet};

const TCP_BYTES: usize = 20;
const UDP_BYTES: usize = 8;
const ICMP_BYTES: usize = 8;

/// What a packet says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parsed {
    /// Where it comes from.
    pub source: IpAddr,
    /// Where it goes to.
    pub destination: IpAddr,
    /// Queues may mark it (RFC 3168: ECT(0), ECT(1) or CE).
    pub ecn_capable: bool,
    /// It is marked already (CE).
    pub marked: bool,
    /// Where things are in it, and how many packets on the wire it is.
    pub form: Form,
}

/// Reads a virtio-net header and the IP packet behind it.
///
/// # Errors
/// No IP header, or a super-packet whose headers do not fit the way it is to be cut.
pub fn parse(bytes: &[u8]) -> Result<Parsed, Malformed> {
    let (header, packet) = bytes
        .split_first_chunk::<VNET_BYTES>()
        .ok_or(Malformed("the virtio-net header is missing"))?;
    let vnet = Vnet::read(header)?;
    let network = Network::read(packet)?;
    let form = match vnet.cut {
        Cut::Whole => single(packet, &network, &vnet)?,
        _ => super_packet(packet, &network, &vnet)?,
    };
    Ok(Parsed {
        source: network.source,
        destination: network.destination,
        ecn_capable: network.is_ecn_capable(),
        marked: network.is_marked(),
        form,
    })
}

/// The transport header and where it ends; `None` if it is not one we know, or not whole, or the packet is longer or
/// shorter than it says.
fn locate(packet: &[u8], network: &Network) -> Option<(Transport, usize)> {
    let (start, length) = (network.header_bytes, packet.len());
    if network.stated_bytes != length || start + UDP_BYTES > length {
        return None;
    }
    let (transport, end) = match (network.protocol?, network.family) {
        (network::TCP, _) if start + TCP_BYTES <= length => {
            let bytes = usize::from(packet[start + 12] >> 4) * 4;
            (bytes >= TCP_BYTES).then_some((Transport::Tcp, start + bytes))?
        }
        (network::UDP, _) if usize::from(u16_at(packet, start + 4)) == length - start => {
            (Transport::Udp, start + UDP_BYTES)
        }
        (network::ICMP, Family::V4) | (network::ICMP_V6, Family::V6) => (Transport::Icmp, start + ICMP_BYTES),
        _ => return None,
    };
    (end <= length.min(MOST_HEADER_BYTES)).then_some((transport, end))
}

/// Whether the checksum left undone is the one of this transport header.
fn is_own_checksum(vnet: &Vnet, network: &Network, transport: Transport) -> bool {
    usize::from(vnet.checksum_start) == network.header_bytes
        && transport.checksum_offset() == Some(vnet.checksum_offset.into())
}

fn single(packet: &[u8], network: &Network, vnet: &Vnet) -> Result<Form, Malformed> {
    let fixed = fixed_bytes(network);
    let start = usize::from(vnet.checksum_start);
    let is_inside = start >= fixed && start + usize::from(vnet.checksum_offset) + 2 <= packet.len();
    if vnet.needs_checksum && !is_inside {
        return Err(Malformed("a checksum field outside its payload"));
    }
    let known = locate(packet, network)
        .filter(|(transport, _)| !vnet.needs_checksum || is_own_checksum(vnet, network, *transport));
    let (transport, header_bytes) = known.unwrap_or((Transport::Other, fixed));
    Ok(form(
        packet,
        network,
        vnet,
        (transport, header_bytes),
        packet.len() - header_bytes,
    ))
}

/// The part of the IP header that is there whatever follows.
fn fixed_bytes(network: &Network) -> usize {
    match network.family {
        Family::V4 => network.header_bytes,
        Family::V6 => network::V6_BYTES,
    }
}

fn super_packet(packet: &[u8], network: &Network, vnet: &Vnet) -> Result<Form, Malformed> {
    let (transport, header_bytes) =
        locate(packet, network).ok_or(Malformed("a super-packet with a truncated transport header"))?;
    let fits = match vnet.cut {
        Cut::TcpV4 => transport == Transport::Tcp && network.family == Family::V4,
        Cut::TcpV6 => transport == Transport::Tcp && network.family == Family::V6,
        Cut::Udp => transport == Transport::Udp,
        Cut::Whole => false,
    };
    if !fits {
        return Err(Malformed(
            "a super-packet whose protocol does not match its header",
        ));
    }
    if !vnet.needs_checksum || !is_own_checksum(vnet, network, transport) {
        return Err(Malformed(
            "a super-packet whose checksum is not left to the device",
        ));
    }
    if vnet.segment_payload == 0 {
        return Err(Malformed("a super-packet with empty segments"));
    }
    Ok(form(
        packet,
        network,
        vnet,
        (transport, header_bytes),
        vnet.segment_payload.into(),
    ))
}

fn form(
    packet: &[u8],
    network: &Network,
    vnet: &Vnet,
    (transport, header_bytes): (Transport, usize),
    segment_payload: usize,
) -> Form {
    let payload = packet.len() - header_bytes;
    let segment_payload = segment_payload.min(payload);
    let segments = if payload == 0 {
        1
    } else {
        payload.div_ceil(segment_payload)
    };
    let network_bytes = network.header_bytes.min(header_bytes);
    // Headers are within MOST_HEADER_BYTES; a super-packet is as long as it says, which is 65,575 bytes at most, so
    // its segments are fewer than 65,536 even with one byte in each.
    Form {
        family: network.family,
        transport,
        needs_checksum: vnet.needs_checksum,
        segments: segments as u16,
        network_bytes: network_bytes as u16,
        header_bytes: header_bytes as u16,
        segment_payload: segment_payload as u32,
        packet_bytes: packet.len() as u32,
        checksum_start: vnet.checksum_start,
        checksum_offset: vnet.checksum_offset,
    }
}
