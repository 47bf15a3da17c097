//! The answer to a packet that is too big for a link: fragmentation needed (RFC 792, RFC 1191 section 4) and packet
//! too big (RFC 4443, section 3.2).

use std::net::IpAddr;

use super::checksum;
use super::form::{Form, Transport};
use super::network::{self, Family, Network, put_u16, u16_at};
use super::segment::append_segment;
use super::vnet::VNET_BYTES;

const ICMP_BYTES: usize = 8;
const V4_BYTES: usize = 20;
const HOP_LIMIT: u8 = 64;
/// Longest answers: what every host can receive (RFC 1812 section 4.3.2.3, RFC 4443 section 2.4).
const MOST_V4_BYTES: usize = 576;
const MOST_V6_BYTES: usize = 1280;

/// The message that tells the sender of `packet` that its segment `segment` was longer than `mtu_bytes`: a virtio-net
/// header that asks for nothing, then an IP packet from `router`.
///
/// `None` where no such message may be sent (RFC 1122 section 3.2.2, RFC 4443 section 2.4): about ICMP errors, later
/// fragments and multicast, or to a sender without an address; and when `router` is of the other family. A packet
/// that allows fragments is answered like any other: links here do not fragment.
///
/// # Panics
/// As [`append_segment`].
pub fn too_big(packet: &[u8], form: &Form, segment: u16, mtu_bytes: u32, router: IpAddr) -> Option<Vec<u8>> {
    let mut original = Vec::new();
    append_segment(&mut original, packet, form, segment, false);
    let original = &original[VNET_BYTES..];
    let network = Network::read(original).ok()?;
    if !may_be_answered(original, form, &network) {
        return None;
    }
    match (router, network.source) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            Some(answer_v4(original, mtu_bytes, from.octets(), to.octets()))
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            Some(answer_v6(original, mtu_bytes, from.octets(), to.octets()))
        }
        _ => None,
    }
}

fn may_be_answered(original: &[u8], form: &Form, network: &Network) -> bool {
    let is_later_fragment = form.family == Family::V4 && u16_at(original, 6) & 0x1fff != 0;
    let is_one_to_one = !network.destination.is_multicast()
        && !network.source.is_multicast()
        && !network.source.is_unspecified();
    is_one_to_one && !is_later_fragment && !is_icmp_error(original, form)
}

/// Errors are types 3, 4, 5, 11 and 12 of ICMP and all below 128 of ICMPv6.
fn is_icmp_error(original: &[u8], form: &Form) -> bool {
    let kind = original.get(usize::from(form.network_bytes));
    match (form.transport, form.family, kind) {
        (Transport::Icmp, Family::V4, Some(kind)) => matches!(kind, 3 | 4 | 5 | 11 | 12),
        (Transport::Icmp, Family::V6, Some(kind)) => *kind < 128,
        _ => false,
    }
}

fn answer_v4(original: &[u8], mtu_bytes: u32, from: [u8; 4], to: [u8; 4]) -> Vec<u8> {
    let quoted = &original[..original.len().min(MOST_V4_BYTES - V4_BYTES - ICMP_BYTES)];
    let mut icmp = [3, 4, 0, 0, 0, 0, 0, 0];
    put_u16(&mut icmp, 6, u16::try_from(mtu_bytes).unwrap_or(u16::MAX));
    let sum = checksum::sum(checksum::sum(0, &icmp), quoted);
    put_u16(&mut icmp, 2, !checksum::fold(sum));
    let mut ip = [
        0x45,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        HOP_LIMIT,
        network::ICMP,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
    ];
    put_u16(&mut ip, 2, (V4_BYTES + ICMP_BYTES + quoted.len()) as u16);
    ip[12..16].copy_from_slice(&from);
    ip[16..].copy_from_slice(&to);
    network::write_checksum(&mut ip);
    [&[0; VNET_BYTES][..], &ip, &icmp, quoted].concat()
}

fn answer_v6(original: &[u8], mtu_bytes: u32, from: [u8; 16], to: [u8; 16]) -> Vec<u8> {
    let quoted = &original[..original.len().min(MOST_V6_BYTES - network::V6_BYTES - ICMP_BYTES)];
    let mut icmp = [2, 0, 0, 0, 0, 0, 0, 0];
    icmp[4..].copy_from_slice(&mtu_bytes.to_be_bytes());
    let length = ICMP_BYTES + quoted.len();
    let pseudo = checksum::pseudo_header(from.into(), to.into(), network::ICMP_V6, length as u32);
    let sum = checksum::sum(checksum::sum(pseudo, &icmp), quoted);
    put_u16(&mut icmp, 2, checksum::finish(sum));
    let mut ip = [0; network::V6_BYTES];
    ip[0] = 0x60;
    put_u16(&mut ip, 4, length as u16);
    (ip[6], ip[7]) = (network::ICMP_V6, HOP_LIMIT);
    ip[8..24].copy_from_slice(&from);
    ip[24..].copy_from_slice(&to);
    [&[0; VNET_BYTES][..], &ip, &icmp, quoted].concat()
}
