//! How two ends agree to be a connection.
//!
//! What it does: the handshakes of UDT version 4 as libudt 4.11 speaks them: a caller with a listener, two ends of a
//! rendezvous, and what an open connection says to a handshake that comes late or again.
//! What it must not do: choose numbers. Socket ids, initial sequence numbers and the listener's secret are given.
//!
//! ```text
//!  caller                              listener          rendezvous
//!    ── 1, id ────────────────────────►                    ── 0, id ──►    ◄── 0, id ──
//!    ◄───────── 1, the same with a cookie ──  nothing kept  ── -1, id ─►    ◄─ -1, id ──
//!    ── -1, id, cookie ───────────────►                    ── -2, id ─►    ◄─ -2, id ──
//!    ◄──── -1, the listener's id, minima ──                 either -1, -2 or data ends it
//! ```
//!
//! Both directions of a called connection begin with the caller's number; in a rendezvous each end keeps its own.
//! Every step may be lost, doubled or late. Whoever asks repeats, whoever answers answers again and keeps nothing
//! for it, and no answer is longer than what it answers. An end takes only what is addressed to its own socket id
//! and repeats its number: who cannot see its packets cannot answer them.
//!
//! Who calls or meets marks its handshakes in a word that has no meaning to others ([`Handshake::marked`]); who is called
//! marks its answer only for a caller that did. What else farline ends say to each other follows such marks alone.
//!
//! Start with [`Opening`]; a listener is a [`Listening`].

mod caller;
mod late;
mod listening;
mod opening;
mod rendezvous;
mod step;

use std::fmt::{self, Display, Formatter};

pub use late::late_answer;
pub use listening::{Heard, Listening};
pub use opening::Opening;
pub use step::Step;

use super::wire::{
    Control, HANDSHAKE_BYTES, Handshake, MIN_MSS_BYTES, REFUSED, Sequence, SocketKind, VERSION, read_control,
};

/// A connection without room for two packets would stand still: libudt never says less either.
const MIN_FLIGHT_PACKETS: u32 = 2;
/// More than this unacknowledged, and sequence numbers of 31 bits would be ambiguous.
const MAX_FLIGHT_PACKETS: u32 = 1 << 29;
/// Request types from here on are errors.
const FIRST_ERROR: i32 = 1000;

const REQUEST: i32 = 1;
const RENDEZVOUS: i32 = 0;
const CONCLUSION: i32 = -1;
const ANSWER: i32 = -2;

/// What one end brings to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// Its socket id, not 0; libudt takes it for a signed number and wants it positive.
    pub socket: u32,
    /// The number of its first packet. A listener takes the caller's instead.
    pub initial_sequence: Sequence,
    /// UDT_MSS: its largest packet with 28 bytes for the headers of IP and UDP.
    pub mss_bytes: u32,
    /// How many unacknowledged packets it can take.
    pub flight_packets: u32,
    /// What it carries.
    pub kind: SocketKind,
}

/// What two ends have agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreed {
    /// Our socket id.
    pub socket: u32,
    /// The peer's.
    pub peer_socket: u32,
    /// The number of our first data packet.
    pub send_isn: Sequence,
    /// The number of the peer's first data packet.
    pub receive_isn: Sequence,
    /// UDT_MSS: the smaller of both offers.
    pub mss_bytes: u32,
    /// How many unacknowledged packets the peer can take, between 2 and 2^29.
    pub peer_flight_packets: u32,
    /// What it carries.
    pub kind: SocketKind,
    /// Whether it was opened from both ends.
    pub is_rendezvous: bool,
    /// Whether the peer's handshake says that it is farline: what only farline knows may be said to it.
    pub is_marked: bool,
}

/// Why there is no connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The peer said no; 1002 is all that libudt says.
    Rejected {
        /// The request type of its answer.
        code: i32,
    },
    /// The peer speaks another version.
    Version {
        /// Which.
        version: u32,
    },
    /// The peer carries something else.
    Kind {
        /// What, as a number on the wire.
        kind: u32,
    },
    /// The peer's packets would be too small for a handshake.
    SegmentSize {
        /// Its UDT_MSS.
        mss_bytes: u32,
    },
    /// The listener answered with a sequence number of its own, as the draft allows and libudt does not (1004).
    InitialSequence,
}

impl Display for Refusal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected { code: REFUSED } => write!(f, "the peer refuses the connection"),
            Self::Rejected { code } => write!(f, "the peer refuses the connection with code {code}"),
            Self::Version { version } => write!(f, "the peer uses UDT version {version}, not {VERSION}"),
            Self::Kind { kind: 1 } => write!(f, "the peer has a stream socket, not one for messages"),
            Self::Kind { kind: 2 } => write!(f, "the peer has a socket for messages, not a stream"),
            Self::Kind { kind } => write!(f, "the peer has a socket of the unknown type {kind}"),
            Self::SegmentSize { mss_bytes } => {
                write!(f, "the peer's UDT_MSS is {mss_bytes}, less than {MIN_MSS_BYTES}")
            }
            Self::InitialSequence => write!(f, "the peer answers with a different initial sequence number"),
        }
    }
}

impl std::error::Error for Refusal {}

/// A handshake and the socket id that it is for.
fn read(datagram: &[u8]) -> Option<(u32, Handshake)> {
    let packet = read_control(datagram)?;
    match packet.control {
        Control::Handshake(handshake) => Some((packet.destination, handshake)),
        _ => None,
    }
}

/// What keeps the two from being a connection. Zeros are accepted: libudt's repeated answers leave version and
/// kind out.
fn objection(offer: &Offer, theirs: &Handshake) -> Option<Refusal> {
    let (version, kind, mss_bytes) = (theirs.version, theirs.kind, theirs.mss_bytes);
    if version != VERSION && version != 0 {
        return Some(Refusal::Version { version });
    }
    if kind != offer.kind as u32 && kind != 0 {
        return Some(Refusal::Kind { kind });
    }
    (mss_bytes < MIN_MSS_BYTES).then_some(Refusal::SegmentSize { mss_bytes })
}

/// What an offer and the peer's handshake come to, with our own number for both directions.
fn agree(offer: &Offer, theirs: &Handshake) -> Agreed {
    Agreed {
        socket: offer.socket,
        peer_socket: theirs.socket,
        send_isn: offer.initial_sequence,
        receive_isn: offer.initial_sequence,
        mss_bytes: offer.mss_bytes.min(theirs.mss_bytes).max(MIN_MSS_BYTES),
        peer_flight_packets: theirs
            .flight_packets
            .clamp(MIN_FLIGHT_PACKETS, MAX_FLIGHT_PACKETS),
        kind: offer.kind,
        is_rendezvous: false,
        is_marked: theirs.is_marked(),
    }
}

/// An offer as a handshake, without a mark.
fn introduce(offer: &Offer, request: i32, peer_ip: [u32; 4]) -> Handshake {
    Handshake {
        mark: 0,
        version: VERSION,
        kind: offer.kind as u32,
        initial_sequence: offer.initial_sequence,
        mss_bytes: offer.mss_bytes,
        flight_packets: offer.flight_packets,
        request,
        socket: offer.socket,
        cookie: 0,
        peer_ip,
    }
}

/// The same handshake as a refusal, for its sender.
fn refuse(theirs: &Handshake) -> [u8; HANDSHAKE_BYTES] {
    let refusal = Handshake {
        mark: 0,
        request: REFUSED,
        ..*theirs
    };
    refusal.datagram(theirs.socket)
}

#[cfg(test)]
mod tests;
