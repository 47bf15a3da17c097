//! The messages, and how they are written.

use super::{DONE_BYTES, DONE_TOTAL_BYTES};
use crate::rbudp::PacketSet;

/// What a sender says of a blast: every packet below `upto` has been sent at least once, and so has all that the
/// reports up to number `served` asked for. Both only grow, so that a DONE may be lost or doubled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// Which blast.
    pub blast: u32,
    /// How many packets of it have been sent, from the first on.
    pub upto: u32,
    /// The last report all packets of which have been sent again; 0 before the first.
    pub served: u32,
    /// The blast as a whole; known once its last packet has been sent.
    pub total: Option<Total>,
}

/// A blast as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Total {
    /// Payload bytes.
    pub bytes: u64,
    /// Sum of the hashes of its packets, modulo 2^64; 0 without checksum.
    pub sum: u64,
}

/// A report: what a receiver lacks of what a DONE is about. It answers the DONE with the same `upto` and `served`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Which blast.
    pub blast: u32,
    /// `upto` of the DONE.
    pub upto: u32,
    /// `served` of the DONE.
    pub served: u32,
    /// Number of the report: 1, 2, 3 ... for each blast.
    pub report: u32,
    /// What is to be sent again; may be empty.
    pub packets: PacketSet,
}

/// A message on the TCP connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// From the sender: what it has sent.
    Done(Done),
    /// From the receiver: what it lacks.
    Missing(Missing),
    /// From the receiver: a blast is whole and out of the way; its slot is free.
    Whole {
        /// Which blast.
        blast: u32,
    },
    /// From the sender: no more blasts come.
    End {
        /// How many there were.
        blasts: u32,
    },
    /// From the receiver: it has them all.
    EndSeen,
    /// From either: it cannot go on; one line that says why, at most 1024 bytes.
    Failed(String),
}

/// A message that no end of this protocol writes: one line, what is wrong and what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WireError(pub String);

/// Most bytes of the text of [`Message::Failed`]; what is longer is cut.
pub(super) const MOST_TEXT_BYTES: usize = 1024;

pub(super) const DONE: u8 = 1;
pub(super) const MISSING: u8 = 2;
pub(super) const WHOLE: u8 = 3;
pub(super) const END: u8 = 4;
pub(super) const END_SEEN: u8 = 5;
pub(super) const FAILED: u8 = 6;

/// Appends a message as a frame for the TCP connection.
pub fn encode(message: &Message, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend([0; 4]);
    match message {
        Message::Done(done) => {
            out.push(DONE);
            out.extend(done.blast.to_be_bytes());
            write_done_body(done, out);
        }
        Message::Missing(missing) => {
            out.push(MISSING);
            for word in [missing.blast, missing.upto, missing.served, missing.report] {
                out.extend(word.to_be_bytes());
            }
            missing.packets.encode(out);
        }
        Message::Whole { blast } => {
            out.push(WHOLE);
            out.extend(blast.to_be_bytes());
        }
        Message::End { blasts } => {
            out.push(END);
            out.extend(blasts.to_be_bytes());
        }
        Message::EndSeen => out.push(END_SEEN),
        Message::Failed(text) => {
            out.push(FAILED);
            let fits = (0..=text.len().min(MOST_TEXT_BYTES)).rfind(|&end| text.is_char_boundary(end));
            out.extend(&text.as_bytes()[..fits.unwrap_or(0)]);
        }
    }
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// What a DONE says, but for which blast.
pub(super) fn write_done_body(done: &Done, out: &mut Vec<u8>) {
    out.extend(done.upto.to_be_bytes());
    out.extend(done.served.to_be_bytes());
    if let Some(total) = done.total {
        out.extend(total.bytes.to_be_bytes());
        out.extend(total.sum.to_be_bytes());
    }
}

pub(super) fn read_done_body(blast: u32, body: &[u8]) -> Option<Done> {
    let total = match body.len() {
        DONE_BYTES => None,
        DONE_TOTAL_BYTES => Some(Total {
            bytes: long(body, 8)?,
            sum: long(body, 16)?,
        }),
        _ => return None,
    };
    Some(Done {
        blast,
        upto: word(body, 0)?,
        served: word(body, 4)?,
        total,
    })
}

/// The word of 4 bytes at `place`.
pub(super) fn word(bytes: &[u8], place: usize) -> Option<u32> {
    let bytes = bytes.get(place..place + 4)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

fn long(bytes: &[u8], place: usize) -> Option<u64> {
    let bytes = bytes.get(place..place + 8)?;
    Some(u64::from_be_bytes(bytes.try_into().ok()?))
}
