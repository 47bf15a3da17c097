//! Messages out of the bytes of a TCP connection.

use super::message::{
    DONE, END, END_SEEN, FAILED, MISSING, MOST_TEXT_BYTES, Message, Missing, WHOLE, WireError,
    read_done_body, word,
};
use crate::rbudp::PacketSet;

const LENGTH_BYTES: usize = 4;
/// Bytes of a [`Missing`] before its packets, the kind included.
const MISSING_HEAD_BYTES: usize = 17;

/// Takes bytes as they come and gives messages.
#[derive(Debug)]
pub struct Decoder {
    bytes: Vec<u8>,
    /// What of `bytes` has been read.
    taken: usize,
    max_packets: u32,
}

impl Decoder {
    /// Nothing read yet. `max_packets`: packets of a full blast of the stream, which bounds the length of a report.
    pub fn new(max_packets: u32) -> Self {
        Self {
            bytes: Vec::new(),
            taken: 0,
            max_packets,
        }
    }

    /// Takes bytes. What is kept is bounded if [`Decoder::next`] is called until it gives `None` after each call.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message; `None` if none has come whole.
    ///
    /// # Errors
    /// For what is no message of the protocol. The connection is of no use after that: the same error comes again.
    #[allow(clippy::should_implement_trait, reason = "an error is no item")]
    pub fn next(&mut self) -> Result<Option<Message>, WireError> {
        let bytes = &self.bytes[self.taken..];
        let Some(length) = word(bytes, 0).map(|length| length as usize) else {
            return Ok(None);
        };
        let most = self.most_bytes();
        if length == 0 || length > most {
            return Err(WireError(format!(
                "a message of {length} bytes; allowed: 1 to {most}"
            )));
        }
        let Some(frame) = bytes.get(LENGTH_BYTES..LENGTH_BYTES + length) else {
            return Ok(None);
        };
        let (kind, body) = (frame[0], &frame[1..]);
        let message = read(kind, body, self.max_packets).ok_or_else(|| wrong(kind, length))?;
        self.taken += LENGTH_BYTES + length;
        Ok(Some(message))
    }

    fn most_bytes(&self) -> usize {
        let report = MISSING_HEAD_BYTES + PacketSet::most_encoded_bytes(self.max_packets);
        report.max(1 + MOST_TEXT_BYTES)
    }
}

fn wrong(kind: u8, length: usize) -> WireError {
    WireError(match kind {
        DONE..=FAILED => {
            format!("an invalid message of kind {kind} with {length} bytes")
        }
        _ => format!("a message of kind {kind}; allowed: {DONE} to {FAILED}"),
    })
}

fn read(kind: u8, body: &[u8], max_packets: u32) -> Option<Message> {
    let only = |count: usize| (body.len() == count).then(|| word(body, 0)).flatten();
    match kind {
        DONE => read_done_body(word(body, 0)?, &body[4..]).map(Message::Done),
        MISSING => read_missing(body, max_packets).map(Message::Missing),
        WHOLE => only(4).map(|blast| Message::Whole { blast }),
        END => only(4).map(|blasts| Message::End { blasts }),
        END_SEEN => body.is_empty().then_some(Message::EndSeen),
        FAILED if body.len() <= MOST_TEXT_BYTES => {
            Some(Message::Failed(String::from_utf8_lossy(body).into_owned()))
        }
        _ => None,
    }
}

fn read_missing(body: &[u8], max_packets: u32) -> Option<Missing> {
    Some(Missing {
        blast: word(body, 0)?,
        upto: word(body, 4)?,
        served: word(body, 8)?,
        report: word(body, 12)?,
        packets: PacketSet::decode(&body[16..], max_packets)?,
    })
}
