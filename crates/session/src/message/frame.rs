//! Frames: four bytes of length, most significant first, then that many bytes of JSON.
//!
//! Rare messages, readable in a trace, one codec for types that are JSON anyway.
//! A length is judged before anything is allocated for it.

use std::marker::PhantomData;

use farline_spec::{Failure, FailureKind, from_json};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest content of one frame, in bytes.
pub const MAX_FRAME_BYTES: usize = 1 << 20;

/// Bytes before the content.
const HEADER_BYTES: usize = 4;

/// `message` as one frame.
///
/// # Errors
/// [`FailureKind::Internal`] when it does not fit in one: whoever builds messages cuts them small enough.
pub fn encode<M: Serialize>(message: &M) -> Result<Vec<u8>, Failure> {
    let mut frame = vec![0; HEADER_BYTES];
    serde_json::to_writer(&mut frame, message).map_err(|error| {
        Failure::new(
            FailureKind::Internal,
            format!("writing a control message: {error}"),
        )
    })?;
    let length = frame.len() - HEADER_BYTES;
    if length > MAX_FRAME_BYTES {
        let line = format!("control message of {length} bytes; allowed: 1 to {MAX_FRAME_BYTES}");
        return Err(Failure::new(FailureKind::Internal, line));
    }
    frame[..HEADER_BYTES].copy_from_slice(&(length as u32).to_be_bytes());
    Ok(frame)
}

/// Takes bytes as they come and gives messages as they become whole.
///
/// Call [`Decoder::push`], then [`Decoder::next_message`] until it gives `None` or an error.
/// After an error the stream is lost: every later call gives the same kind of error.
#[derive(Debug)]
pub struct Decoder<M> {
    pending: Vec<u8>,
    /// Bytes at the front of `pending` that have been used up.
    used: usize,
    broken: bool,
    message: PhantomData<fn() -> M>,
}

impl<M> Default for Decoder<M> {
    fn default() -> Self {
        Self {
            pending: Vec::new(),
            used: 0,
            broken: false,
            message: PhantomData,
        }
    }
}

impl<M: DeserializeOwned> Decoder<M> {
    /// Takes in what came from the channel.
    pub fn push(&mut self, bytes: &[u8]) {
        self.pending.drain(..self.used);
        self.used = 0;
        self.pending.extend_from_slice(bytes);
    }

    /// The next whole message, if there is one.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`] for a length out of range or content that is no message of this direction.
    pub fn next_message(&mut self) -> Result<Option<M>, Failure> {
        if self.broken {
            return Err(protocol("the control channel is unusable after an earlier error"));
        }
        let message = self.take_frame();
        self.broken = message.is_err();
        message
    }

    fn take_frame(&mut self) -> Result<Option<M>, Failure> {
        let rest = &self.pending[self.used..];
        let Some((header, content)) = rest.split_first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*header) as usize;
        if length == 0 || length > MAX_FRAME_BYTES {
            let line = format!("control frame of {length} bytes; allowed: 1 to {MAX_FRAME_BYTES}");
            return Err(protocol(&line));
        }
        let Some(content) = content.get(..length) else {
            return Ok(None);
        };
        let message = read(content)?;
        self.used += HEADER_BYTES + length;
        Ok(Some(message))
    }
}

fn read<M: DeserializeOwned>(content: &[u8]) -> Result<M, Failure> {
    let text = std::str::from_utf8(content).map_err(|_| protocol("control message is not UTF-8"))?;
    from_json(text)
        .map_err(|error| protocol(&super::tame_line(&format!("control message: {}", error.message))))
}

fn protocol(line: &str) -> Failure {
    Failure::new(FailureKind::Protocol, line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{ClientMessage, ProfilingEnd};
    use proptest::prelude::*;

    fn drain(decoder: &mut Decoder<ClientMessage>) -> Vec<ClientMessage> {
        std::iter::from_fn(|| decoder.next_message().unwrap()).collect()
    }

    #[test]
    fn an_absurd_length_is_refused_before_anything_of_it_came() {
        for header in [[0xff; 4], [0, 0x10, 0, 1], [0; 4]] {
            let mut decoder = Decoder::<ClientMessage>::default();
            decoder.push(&header);
            let refusal = decoder.next_message().unwrap_err();
            assert_eq!(refusal.kind, FailureKind::Protocol);
            assert!(refusal.message.contains("allowed: 1 to 1048576"), "{refusal}");
            assert!(decoder.pending.capacity() < 1024);
            assert!(decoder.next_message().is_err(), "an error is for good");
        }
    }

    #[test]
    fn another_protocol_is_refused_at_its_first_bytes() {
        let mut decoder = Decoder::<ClientMessage>::default();
        decoder.push(b"GET / HTTP/1.1\r\n");
        assert!(decoder.next_message().is_err());
    }

    #[test]
    fn a_message_that_does_not_fit_is_our_own_defect() {
        let failure = Failure::new(FailureKind::System, "x".repeat(MAX_FRAME_BYTES));
        assert_eq!(
            encode(&ClientMessage::Error(failure)).unwrap_err().kind,
            FailureKind::Internal
        );
    }

    #[test]
    fn deep_nesting_is_an_error_and_not_a_full_stack() {
        let mut decoder = Decoder::<ClientMessage>::default();
        let content = "[".repeat(500_000);
        decoder.push(&(content.len() as u32).to_be_bytes());
        decoder.push(content.as_bytes());
        assert!(decoder.next_message().is_err());
    }

    proptest! {
        #[test]
        fn messages_come_out_however_the_bytes_are_cut(flags in prop::collection::vec(any::<bool>(), 0..20),
                                                       cuts in prop::collection::vec(1usize..40, 1..60)) {
            let sent: Vec<_> = flags.iter().map(|&stopped| ClientMessage::ProfilingEnd(ProfilingEnd { stopped })).collect();
            let bytes: Vec<u8> = sent.iter().flat_map(|message| encode(message).unwrap()).collect();
            let mut decoder = Decoder::default();
            let (mut got, mut rest, mut cuts) = (Vec::new(), bytes.as_slice(), cuts.into_iter().cycle());
            while !rest.is_empty() {
                let (now, later) = rest.split_at(cuts.next().unwrap().min(rest.len()));
                decoder.push(now);
                got.extend(drain(&mut decoder));
                rest = later;
            }
            prop_assert_eq!(got, sent);
        }
    }
}
