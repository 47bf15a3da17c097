//! The handshake's body: the same 12 words for every step.

use std::net::IpAddr;

use super::{CONTROL_BIT, HANDSHAKE_BYTES, HEADER_BYTES, Sequence, word};

/// The version that this is.
pub const VERSION: u32 = 4;
/// The request type of a refusal.
pub const REFUSED: i32 = 1002;

const BODY_WORDS: usize = 12;

/// What a connection carries. The draft numbers them 0 and 1; on the wire they are 1 and 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SocketKind {
    /// Bytes in order.
    Stream = 1,
    /// Messages.
    Message = 2,
}

impl SocketKind {
    /// The kind with this number on the wire.
    pub const fn from_wire(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::Stream),
            2 => Some(Self::Message),
            _ => None,
        }
    }
}

/// What a farline end puts where the header of a handshake has a word without a meaning, which every other end ignores:
/// "Farl", with its socket id taken in, so that an end that repeats the header of what it answers is not taken for one.
const MARK: u32 = 0x4661_726c;

/// A handshake: its body, and the word of its header that the draft leaves undefined. Nothing in it is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handshake {
    /// 0, or what tells farline ends from others ([`Handshake::marked`]).
    pub mark: u32,
    /// 4; 0 in libudt's repeated answers.
    pub version: u32,
    /// A [`SocketKind`]; 0 in libudt's repeated answers.
    pub kind: u32,
    /// Number of the first data packet.
    pub initial_sequence: Sequence,
    /// Largest packet with the headers of IP and UDP.
    pub mss_bytes: u32,
    /// Packets that may be unacknowledged.
    pub flight_packets: u32,
    /// 1 request or challenge, 0 rendezvous, -1 conclusion, -2 answer of a connection from a rendezvous, from 1000
    /// on an error ([`REFUSED`]).
    pub request: i32,
    /// The sender's socket id; in a challenge, the caller's.
    pub socket: u32,
    /// The listener's challenge.
    pub cookie: u32,
    /// The address that the datagram goes to, as [`ip_words`] gives it.
    pub peer_ip: [u32; 4],
}

impl Handshake {
    /// Reads what follows a header with `mark` in its second word. What is longer than a handshake is read as one.
    pub(super) fn read_body(mark: u32, body: &[u8]) -> Option<Self> {
        let mut words = [0; BODY_WORDS];
        for (index, place) in words.iter_mut().enumerate() {
            *place = word(body, index)?;
        }
        let [
            version,
            kind,
            initial_sequence,
            mss_bytes,
            flight_packets,
            request,
            socket,
            cookie,
            ip @ ..,
        ] = words;
        Some(Self {
            mark,
            version,
            kind,
            initial_sequence: Sequence::new(initial_sequence),
            mss_bytes,
            flight_packets,
            request: request as i32,
            socket,
            cookie,
            peer_ip: ip,
        })
    }

    /// The same, saying that its sender is farline.
    pub fn marked(self) -> Self {
        Self {
            mark: MARK ^ self.socket,
            ..self
        }
    }

    /// Whether its sender says that it is farline. It is not to be asked of a challenge, which repeats the caller's words.
    pub fn is_marked(&self) -> bool {
        self.mark == MARK ^ self.socket
    }

    pub(super) fn words(&self) -> [u32; BODY_WORDS] {
        let [a, b, c, d] = self.peer_ip;
        [
            self.version,
            self.kind,
            self.initial_sequence.get(),
            self.mss_bytes,
            self.flight_packets,
            self.request as u32,
            self.socket,
            self.cookie,
            a,
            b,
            c,
            d,
        ]
    }

    /// The whole datagram, with timestamp 0 as libudt's are.
    pub fn datagram(&self, destination: u32) -> [u8; HANDSHAKE_BYTES] {
        let mut datagram = [0; HANDSHAKE_BYTES];
        datagram[..4].copy_from_slice(&CONTROL_BIT.to_be_bytes());
        datagram[4..8].copy_from_slice(&self.mark.to_be_bytes());
        datagram[12..HEADER_BYTES].copy_from_slice(&destination.to_be_bytes());
        for (place, word) in datagram[HEADER_BYTES..].chunks_exact_mut(4).zip(self.words()) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        datagram
    }
}

/// An address as libudt writes it: each group of four bytes reversed, IPv4 in the first one.
///
/// 127.0.0.1 is `01 00 00 7f` on the wire, and 12 zero bytes.
pub fn ip_words(ip: IpAddr) -> [u32; 4] {
    let mut bytes = [0; 16];
    match ip.to_canonical() {
        IpAddr::V4(ip) => bytes[..4].copy_from_slice(&ip.octets()),
        IpAddr::V6(ip) => bytes = ip.octets(),
    }
    let mut words = [0; 4];
    for (word, group) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = group
            .iter()
            .rev()
            .fold(0, |word, &byte| word << 8 | u32::from(byte));
    }
    words
}
