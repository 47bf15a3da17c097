//! Any run of a super-packet's segments as a packet of its own: headers anew, payload by reference.

use std::ops::{Deref, Range};

use super::checksum;
use super::form::{Form, MOST_HEADER_BYTES, Transport};
use super::network::{self, Family, put_u16, u16_at};
use super::vnet::{self, VNET_BYTES};

/// Place of the flags in a TCP header, and those that one segment alone carries (RFC 9293, RFC 3168).
const TCP_FLAGS: usize = 13;
const FIN_AND_PSH: u8 = 0x01 | 0x08;
const CWR: u8 = 0x80;

/// Segments of a packet that go on together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The first of them, counted from 0.
    pub first: u16,
    /// How many.
    pub count: u16,
    /// Congestion experienced on the way: marked as such.
    pub marked: bool,
}

/// Header bytes, virtio-net header first; none if the packet goes on as it came.
#[derive(Clone)]
pub struct Header {
    bytes: [u8; VNET_BYTES + MOST_HEADER_BYTES],
    length: usize,
}

impl Deref for Header {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// What to write for a run: `header`, then `payload` of the packet as it was read.
pub struct Piece {
    /// New header bytes; empty if `payload` begins with the packet's own.
    pub header: Header,
    /// Range of the bytes as read, virtio-net header included in the count.
    pub payload: Range<usize>,
}

impl Form {
    /// Builds `run` out of `packet`, the bytes that this form was read from.
    ///
    /// A whole run without a mark is the packet as it is. Otherwise lengths, IPv4 identification and checksum, TCP
    /// sequence number and flags, UDP length and the undone checksum become those of the run; a run of one segment is
    /// no super-packet any more.
    ///
    /// # Panics
    /// If `run` is empty or not within the packet, or `packet` is not the one the form belongs to.
    pub fn piece(&self, packet: &[u8], run: Run) -> Piece {
        let end = run.first.checked_add(run.count);
        let is_within = run.count > 0 && end.is_some_and(|end| end <= self.segments);
        assert!(is_within, "{run:?} of {} segments", self.segments);
        assert_eq!(
            packet.len(),
            VNET_BYTES + self.packet_bytes as usize,
            "a packet of another form"
        );
        let is_whole = run.count == self.segments;
        if is_whole && !run.marked {
            return Piece {
                header: Header::empty(),
                payload: 0..packet.len(),
            };
        }
        let start = VNET_BYTES + usize::from(self.header_bytes);
        let payload = self.payload(run);
        let mut header = Header::copied(&packet[..start]);
        self.rewrite(&mut header.bytes[..start], run, is_whole, payload.len());
        Piece {
            header,
            payload: start + payload.start..start + payload.end,
        }
    }

    /// Payload of `run`, from the start of the whole payload.
    fn payload(&self, run: Run) -> Range<usize> {
        let all = self.packet_bytes as usize - usize::from(self.header_bytes);
        let each = self.segment_payload as usize;
        let start = usize::from(run.first) * each;
        start..all.min(start + usize::from(run.count) * each)
    }

    fn rewrite(&self, header: &mut [u8], run: Run, is_whole: bool, payload_bytes: usize) {
        let (vnet, ip) = header.split_at_mut(VNET_BYTES);
        if !is_whole {
            self.cut_vnet(vnet, run);
            self.cut_transport(&mut ip[usize::from(self.network_bytes)..], run, payload_bytes);
            network::set_length(
                ip,
                self.family,
                u32::from(self.header_bytes) + payload_bytes as u32,
            );
            if self.family == Family::V4 {
                network::advance_identification(ip, run.first);
            }
        }
        if run.marked {
            network::mark(ip, self.family);
        }
        if self.family == Family::V4 {
            network::write_checksum(ip);
        }
    }

    fn cut_vnet(&self, vnet: &mut [u8], run: Run) {
        if run.first > 0 {
            vnet::clear_ecn(vnet);
        }
        if run.count == 1 {
            vnet::set_whole(vnet);
        }
    }

    /// Only packets of known transport have more than one segment, so only those are ever cut.
    fn cut_transport(&self, header: &mut [u8], run: Run, payload_bytes: usize) {
        let transport_bytes = usize::from(self.header_bytes - self.network_bytes);
        let old = self.packet_bytes as usize - usize::from(self.network_bytes);
        let (old, new) = (old as u16, (transport_bytes + payload_bytes) as u16);
        match self.transport {
            Transport::Tcp => self.cut_tcp(header, run),
            Transport::Udp => put_u16(header, 4, new),
            Transport::Icmp | Transport::Other => return,
        }
        let at = usize::from(self.checksum_offset);
        put_u16(header, at, checksum::replace(u16_at(header, at), old, new));
    }

    fn cut_tcp(&self, header: &mut [u8], run: Run) {
        let sequence = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
        let sequence = sequence.wrapping_add(u32::from(run.first) * self.segment_payload);
        header[4..8].copy_from_slice(&sequence.to_be_bytes());
        if run.first + run.count < self.segments {
            header[TCP_FLAGS] &= !FIN_AND_PSH;
        }
        if run.first > 0 {
            header[TCP_FLAGS] &= !CWR;
        }
    }
}

impl Header {
    fn empty() -> Self {
        Self {
            bytes: [0; VNET_BYTES + MOST_HEADER_BYTES],
            length: 0,
        }
    }

    fn copied(from: &[u8]) -> Self {
        let mut header = Self::empty();
        header.bytes[..from.len()].copy_from_slice(from);
        header.length = from.len();
        header
    }
}
