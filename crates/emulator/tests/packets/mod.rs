//! Packets made from a description, one segment or several, by code that shares nothing with the crate's.

#![allow(dead_code, reason = "each test uses its part")]

use proptest::prelude::*;

pub const VNET_BYTES: usize = 10;

/// A stream or a batch of datagrams, of which packets can be made.
#[derive(Debug, Clone)]
pub struct Source {
    pub is_v6: bool,
    pub is_udp: bool,
    /// IPv4 options, or one IPv6 destination options header: a multiple of 8 bytes.
    pub network_options: Vec<u8>,
    /// TCP options: a multiple of 4 bytes.
    pub transport_options: Vec<u8>,
    pub payload: Vec<u8>,
    pub segment_payload: usize,
    pub congestion: u8,
    pub identification: u16,
    pub sequence: u32,
    pub flags: u8,
}

pub const CWR: u8 = 0x80;
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;

impl Source {
    pub fn segments(&self) -> usize {
        self.payload.len().div_ceil(self.segment_payload).max(1)
    }

    pub fn network_bytes(&self) -> usize {
        (if self.is_v6 { 40 } else { 20 }) + self.network_options.len()
    }

    pub fn header_bytes(&self) -> usize {
        let transport = if self.is_udp {
            8
        } else {
            20 + self.transport_options.len()
        };
        self.network_bytes() + transport
    }

    /// Packet of segments `first` to `first + count`, with the header a device puts in front of it.
    pub fn as_read(&self, first: usize, count: usize) -> Vec<u8> {
        let kind = match (self.is_udp, self.is_v6) {
            (true, _) => 5,
            (false, false) => 1,
            (false, true) => 4,
        };
        let has_cwr = !self.is_udp && first == 0 && self.flags & CWR != 0;
        let (kind, size) = match count {
            1 => (0, 0),
            _ => (kind | if has_cwr { 0x80 } else { 0 }, self.segment_payload as u16),
        };
        let offset = if self.is_udp { 6u16 } else { 16 };
        let mut bytes = vec![1, kind];
        for word in [
            self.header_bytes() as u16,
            size,
            self.network_bytes() as u16,
            offset,
        ] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(self.packet(first, count, false));
        bytes
    }

    /// Segment `index` on the wire, every checksum done.
    pub fn on_wire(&self, index: usize) -> Vec<u8> {
        self.packet(index, 1, true)
    }

    fn packet(&self, first: usize, count: usize, is_complete: bool) -> Vec<u8> {
        let start = first * self.segment_payload;
        let end = self.payload.len().min(start + count * self.segment_payload);
        let is_last = first + count == self.segments();
        let mut transport = self.transport(first, is_last, end - start);
        let body = &self.payload[start..end];
        let pseudo = self.pseudo(transport.len() + body.len());
        let sum = match is_complete {
            true => finished([&pseudo[..], &transport, body]),
            false => folded([&pseudo[..], &[], &[]]),
        };
        let at = if self.is_udp { 6 } else { 16 };
        transport[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        let network = self.network(first, transport.len() + body.len());
        [&network[..], &transport, body].concat()
    }

    fn transport(&self, first: usize, is_last: bool, body: usize) -> Vec<u8> {
        if self.is_udp {
            let length = (8 + body) as u16;
            return [&[0x13, 0x88, 0x14, 0x51][..], &length.to_be_bytes(), &[0, 0]].concat();
        }
        let mut flags = self.flags;
        if !is_last {
            flags &= !(FIN | PSH);
        }
        if first > 0 {
            flags &= !CWR;
        }
        let sequence = self.sequence.wrapping_add((first * self.segment_payload) as u32);
        let mut bytes = vec![0x13, 0x88, 0x14, 0x51];
        bytes.extend(sequence.to_be_bytes());
        bytes.extend([9, 8, 7, 6]);
        bytes.extend([
            (((20 + self.transport_options.len()) / 4) << 4) as u8,
            flags,
            0x20,
            0,
            0,
            0,
            0,
            0,
        ]);
        bytes.extend(&self.transport_options);
        bytes
    }

    fn network(&self, first: usize, rest: usize) -> Vec<u8> {
        let protocol = if self.is_udp { 17 } else { 6 };
        if self.is_v6 {
            let next = if self.network_options.is_empty() {
                protocol
            } else {
                60
            };
            let length = (self.network_options.len() + rest) as u16;
            let mut bytes = vec![0x60, self.congestion << 4, 1, 2];
            bytes.extend(length.to_be_bytes());
            bytes.extend([next, 63]);
            bytes.extend(self.addresses());
            let options = bytes.len();
            bytes.extend(&self.network_options);
            if !self.network_options.is_empty() {
                bytes[options] = protocol;
                bytes[options + 1] = (self.network_options.len() / 8 - 1) as u8;
            }
            return bytes;
        }
        let header = 20 + self.network_options.len();
        let identification = self.identification.wrapping_add(first as u16);
        let mut bytes = vec![0x40 | (header / 4) as u8, self.congestion];
        bytes.extend(((header + rest) as u16).to_be_bytes());
        bytes.extend(identification.to_be_bytes());
        bytes.extend([0x40, 0, 63, protocol, 0, 0]);
        bytes.extend(self.addresses());
        bytes.extend(&self.network_options);
        let sum = !folded([&bytes[..], &[], &[]]);
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    fn addresses(&self) -> Vec<u8> {
        let host = |last| {
            if self.is_v6 {
                (0..15).chain([last]).collect()
            } else {
                vec![10, 77, 0, last]
            }
        };
        [host(1), host(2)].concat()
    }

    fn pseudo(&self, length: usize) -> Vec<u8> {
        let protocol = if self.is_udp { 17 } else { 6 };
        let mut bytes = self.addresses();
        bytes.extend((length as u32).to_be_bytes());
        bytes.extend([0, 0, 0, protocol]);
        bytes
    }
}

/// One's complement sum of the parts, put together and taken as 16-bit words.
pub fn folded(parts: [&[u8]; 3]) -> u16 {
    let mut sum = 0u64;
    for (at, byte) in parts.concat().into_iter().enumerate() {
        sum += u64::from(byte) << if at % 2 == 0 { 8 } else { 0 };
    }
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The sum as it is sent: complemented, and never 0.
fn finished(parts: [&[u8]; 3]) -> u16 {
    match !folded(parts) {
        0 => 0xffff,
        sum => sum,
    }
}

/// Whether the checksums of a wire packet are right, of IPv4 and of TCP or UDP behind `network_bytes`.
pub fn is_right(ip: &[u8], network_bytes: usize) -> bool {
    let addresses = if ip[0] >> 4 == 4 { &ip[12..20] } else { &ip[8..40] };
    let protocol = if ip[0] >> 4 == 4 {
        ip[9]
    } else if network_bytes > 40 {
        ip[40]
    } else {
        ip[6]
    };
    let length = ((ip.len() - network_bytes) as u32).to_be_bytes();
    let pseudo = [addresses, &length[..], &[0, 0, 0, protocol]].concat();
    let header_is_right = ip[0] >> 4 == 6 || folded([&ip[..network_bytes], &[], &[]]) == 0xffff;
    header_is_right && folded([&pseudo, &ip[network_bytes..], &[]]) == 0xffff
}

/// Any stream or batch, of up to `most` segments.
pub fn sources(most: usize) -> impl Strategy<Value = Source> {
    let shape = (
        any::<bool>(),
        any::<bool>(),
        0usize..3,
        0usize..11,
        1usize..200,
        0..=most,
        any::<prop::sample::Index>(),
    );
    let values = (any::<u16>(), any::<u32>(), any::<u8>(), 0u8..4, any::<u64>());
    (shape, values).prop_map(|(shape, values)| {
        let (is_v6, is_udp, options, words, segment_payload, segments, cut) = shape;
        let (identification, sequence, flags, congestion, seed) = values;
        let short = if segments == 0 {
            0
        } else {
            cut.index(segment_payload)
        };
        Source {
            is_v6,
            is_udp,
            network_options: vec![1; options * 8],
            transport_options: vec![1; words * 4],
            payload: noise(seed, segments * segment_payload - short),
            segment_payload,
            congestion,
            identification,
            sequence,
            flags,
        }
    })
}

/// Bytes without a pattern, the same for the same seed.
pub fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..length).map(|_| next()).collect()
}
