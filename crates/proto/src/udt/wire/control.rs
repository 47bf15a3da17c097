//! Control packets.

use super::header::{push_words, write_header};
use super::loss::NAK;
use super::{CONTROL_BIT, HEADER_BYTES, Handshake, LossRanges, Sequence, word};

const HANDSHAKE: u32 = 0;
const KEEP_ALIVE: u32 = 1;
const ACK: u32 = 2;
const DELAY_WARNING: u32 = 4;
const SHUTDOWN: u32 = 5;
const ACK2: u32 = 6;
const DROP_REQUEST: u32 = 7;
const PEER_ERROR: u32 = 8;
const CUSTOM: u32 = 0x7FFF;

/// What a control packet says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control<'a> {
    /// A connection is being opened.
    Handshake(Handshake),
    /// The peer is alive and has nothing to say.
    KeepAlive,
    /// Packets have come.
    Ack(Ack),
    /// Packets have not come.
    Nak(LossRanges<'a>),
    /// Delay grows. In libudt, not in the draft; 4.11 reads it and never sends it.
    DelayWarning,
    /// The connection ends.
    Shutdown {
        /// What proves, between two farline ends, who sent it; 0 from everyone else.
        token: u32,
    },
    /// An ACK has come; what the time between the two is, is the RTT.
    Ack2 {
        /// Number of the ACK.
        number: u32,
    },
    /// A message will not be repeated any more.
    DropRequest {
        /// Number of the message.
        message: u32,
        /// Its first packet.
        first: Sequence,
        /// Its last packet; from 4.11 it may be the one after that.
        last: Sequence,
    },
    /// Something is wrong with the peer. In libudt, not in the draft.
    PeerError {
        /// 4000: it could not write its file.
        code: u32,
    },
    /// User-defined: libudt hands it to the congestion control.
    Custom {
        /// The user's type.
        kind: u16,
        /// The rest, as it is on the wire.
        body: &'a [u8],
    },
}

/// An acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack {
    /// Its own number, from 1; what an ACK2 repeats. 0 in a light ACK.
    pub number: u32,
    /// The first packet that has not come: all before it have.
    pub next: Sequence,
    /// `None` is a light ACK, which takes from the sender's window and is not answered.
    pub detail: Option<AckDetail>,
}

/// What a full ACK says besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckDetail {
    /// Round-trip time, smoothed.
    pub rtt_us: u32,
    /// Its mean deviation.
    pub rtt_variance_us: u32,
    /// Free packets of the receive buffer. The draft says bytes.
    pub window_packets: u32,
    /// What the receiver has measured. Two zeros on the wire are `None`: nothing measured.
    pub rates: Option<Rates>,
    /// How many different data packets have come so far, mod 2^32. Only farline ends say it, and only to each other.
    pub received: Option<u32>,
}

/// What a receiver measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// Packets a second, as they come.
    pub arrival_pps: u32,
    /// Packets a second that the link could carry.
    pub capacity_pps: u32,
}

/// A control packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlPacket<'a> {
    /// Microseconds since the sender's socket was opened; always 0 from libudt 4.11.
    pub timestamp_us: u32,
    /// Id of the receiving socket.
    pub destination: u32,
    /// What it says.
    pub control: Control<'a>,
}

/// Reads a control packet.
///
/// `None`: a data packet, too short for its type, or of a type that does not exist. Padding may be missing, and
/// what is longer than expected is read as if it were not.
pub fn read_control(datagram: &[u8]) -> Option<ControlPacket<'_>> {
    let (first, information) = (word(datagram, 0)?, word(datagram, 1)?);
    let (timestamp_us, destination) = (word(datagram, 2)?, word(datagram, 3)?);
    if first & CONTROL_BIT == 0 {
        return None;
    }
    let body = &datagram[HEADER_BYTES..];
    let control = match (first & !CONTROL_BIT) >> 16 {
        HANDSHAKE => Control::Handshake(Handshake::read_body(information, body)?),
        KEEP_ALIVE => Control::KeepAlive,
        ACK => Control::Ack(read_ack(information, body)?),
        NAK => Control::Nak(LossRanges::new(body)),
        DELAY_WARNING => Control::DelayWarning,
        SHUTDOWN => Control::Shutdown {
            token: word(body, 0).unwrap_or(0),
        },
        ACK2 => Control::Ack2 { number: information },
        DROP_REQUEST => Control::DropRequest {
            message: information,
            first: Sequence::new(word(body, 0)?),
            last: Sequence::new(word(body, 1)?),
        },
        PEER_ERROR => Control::PeerError { code: information },
        CUSTOM => Control::Custom {
            kind: first as u16,
            body,
        },
        _ => return None,
    };
    Some(ControlPacket {
        timestamp_us,
        destination,
        control,
    })
}

fn read_ack(number: u32, body: &[u8]) -> Option<Ack> {
    Some(Ack {
        number,
        next: Sequence::new(word(body, 0)?),
        detail: read_detail(body),
    })
}

fn read_detail(body: &[u8]) -> Option<AckDetail> {
    let (rtt_us, rtt_variance_us, window_packets) = (word(body, 1)?, word(body, 2)?, word(body, 3)?);
    let rates = word(body, 4).zip(word(body, 5)).filter(|&rates| rates != (0, 0));
    Some(AckDetail {
        rtt_us,
        rtt_variance_us,
        window_packets,
        rates: rates.map(|(arrival_pps, capacity_pps)| Rates {
            arrival_pps,
            capacity_pps,
        }),
        received: word(body, 6),
    })
}

/// Writes a control packet; `out` is replaced.
pub fn write_control(control: &Control<'_>, timestamp_us: u32, destination: u32, out: &mut Vec<u8>) {
    let (kind, information) = kind_and_information(control);
    write_header(kind, information, timestamp_us, destination, out);
    match control {
        Control::Handshake(handshake) => push_words(&handshake.words(), out),
        Control::Ack(ack) => push_ack(ack, out),
        Control::Nak(ranges) => out.extend(ranges.body()),
        Control::DropRequest { first, last, .. } => push_words(&[first.get(), last.get()], out),
        Control::Custom { body, .. } => out.extend(*body),
        // libudt sends four bytes where the draft has none.
        Control::Shutdown { token } => push_words(&[*token], out),
        Control::KeepAlive | Control::DelayWarning | Control::Ack2 { .. } | Control::PeerError { .. } => {
            push_words(&[0], out);
        }
    }
}

/// The first word without its top bit, and the second.
fn kind_and_information(control: &Control<'_>) -> (u32, u32) {
    let (kind, information) = match *control {
        Control::Handshake(handshake) => (HANDSHAKE, handshake.mark),
        Control::KeepAlive => (KEEP_ALIVE, 0),
        Control::Ack(ack) => (ACK, ack.number),
        Control::Nak(_) => (NAK, 0),
        Control::DelayWarning => (DELAY_WARNING, 0),
        Control::Shutdown { .. } => (SHUTDOWN, 0),
        Control::Ack2 { number } => (ACK2, number),
        Control::DropRequest { message, .. } => (DROP_REQUEST, message),
        Control::PeerError { code } => (PEER_ERROR, code),
        Control::Custom { kind, .. } => return (CUSTOM << 16 | u32::from(kind), 0),
    };
    (kind << 16, information)
}

fn push_ack(ack: &Ack, out: &mut Vec<u8>) {
    push_words(&[ack.next.get()], out);
    let Some(detail) = ack.detail else { return };
    push_words(
        &[detail.rtt_us, detail.rtt_variance_us, detail.window_packets],
        out,
    );
    match (detail.rates, detail.received) {
        (Some(rates), _) => push_words(&[rates.arrival_pps, rates.capacity_pps], out),
        (None, Some(_)) => push_words(&[0, 0], out),
        (None, None) => {}
    }
    if let Some(received) = detail.received {
        push_words(&[received], out);
    }
}
