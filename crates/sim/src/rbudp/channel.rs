//! A TCP connection's worth of order: messages arrive once, in order, whatever is lost, and large ones take rounds.
//!
//! Slow start from ten segments (RFC 6928), one more for each that is acknowledged; repetition after three
//! acknowledgements that say nothing new, or after a round trip and 200 ms. No congestion avoidance: what goes here is
//! little beside the blast.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use farline_proto::rbudp::wire::{Message, encode};

/// Payload of a segment on Ethernet with timestamps, and the headers of IP and TCP around it.
const SEGMENT_BYTES: usize = 1448;
const HEADERS_BYTES: u32 = 52;
const INITIAL_WINDOW: u64 = 10;
const MIN_TIMEOUT_NS: u64 = 200_000_000;
const DUPLICATES: u32 = 3;

/// What travels: a piece of a message, or an acknowledgement.
#[derive(Debug, Clone)]
pub enum Segment {
    /// Number `number`; `message` with the last piece of one.
    Piece {
        /// Counted from 0.
        number: u64,
        /// The message that is whole with it.
        message: Option<Rc<Message>>,
    },
    /// All below have come.
    Ack(u64),
}

#[derive(Debug)]
struct Queued {
    bytes: u32,
    message: Option<Rc<Message>>,
}

/// One end of the connection.
#[derive(Debug)]
pub struct Channel {
    rtt_ns: u64,
    /// Pieces from `acked` on; those below `next` have been sent.
    pieces: VecDeque<Queued>,
    acked: u64,
    next: u64,
    window: u64,
    duplicates: u32,
    repeats_oldest: bool,
    /// Repairing: an acknowledgement below this says that the next piece is lost too (RFC 6582).
    repairs_to: u64,
    sent_ns: u64,
    /// What has come: all below `expected`, and these.
    expected: u64,
    ahead: BTreeMap<u64, Option<Rc<Message>>>,
    owes_ack: bool,
}

impl Channel {
    pub(super) fn new(rtt_ns: u64) -> Self {
        Self {
            rtt_ns,
            pieces: VecDeque::new(),
            acked: 0,
            next: 0,
            window: INITIAL_WINDOW,
            duplicates: 0,
            repeats_oldest: false,
            repairs_to: 0,
            sent_ns: 0,
            expected: 0,
            ahead: BTreeMap::new(),
            owes_ack: false,
        }
    }

    /// Puts a message in the queue; gives its bytes.
    pub(super) fn push(&mut self, message: Message) -> usize {
        let mut bytes = Vec::new();
        encode(&message, &mut bytes);
        let pieces = bytes.len().div_ceil(SEGMENT_BYTES);
        for piece in 1..pieces {
            self.pieces.push_back(Queued {
                bytes: SEGMENT_BYTES as u32,
                message: None,
            });
            debug_assert!(piece < pieces);
        }
        self.pieces.push_back(Queued {
            bytes: (bytes.len() - (pieces - 1) * SEGMENT_BYTES) as u32,
            message: Some(Rc::new(message)),
        });
        bytes.len()
    }

    /// The next segment to send now and its bytes, headers included.
    pub(super) fn poll(&mut self, now_ns: u64) -> Option<(Segment, u32)> {
        if std::mem::take(&mut self.owes_ack) {
            return Some((Segment::Ack(self.expected), HEADERS_BYTES));
        }
        let number = if std::mem::take(&mut self.repeats_oldest) {
            self.acked
        } else if self.next < self.acked + self.window.min(self.pieces.len() as u64) {
            self.next += 1;
            self.next - 1
        } else {
            return None;
        };
        let piece = self.pieces.get((number - self.acked) as usize)?;
        self.sent_ns = now_ns;
        let message = piece.message.clone();
        Some((Segment::Piece { number, message }, piece.bytes + HEADERS_BYTES))
    }

    /// Takes a segment; gives the messages that are whole with it.
    pub(super) fn handle(&mut self, segment: &Segment) -> Vec<Rc<Message>> {
        match segment {
            Segment::Ack(below) => {
                self.take_ack(*below);
                Vec::new()
            }
            Segment::Piece { number, message } => {
                self.owes_ack = true;
                if *number >= self.expected {
                    self.ahead.insert(*number, message.clone());
                }
                self.take_ready()
            }
        }
    }

    fn take_ack(&mut self, below: u64) {
        if below > self.acked {
            let count = below - self.acked;
            self.pieces.drain(..count as usize);
            self.window += count;
            self.acked = below;
            self.next = self.next.max(below);
            self.duplicates = 0;
            self.repeats_oldest = below < self.repairs_to;
        } else if self.next > self.acked {
            self.duplicates += 1;
            if self.duplicates == DUPLICATES {
                self.repair();
            }
        }
    }

    fn take_ready(&mut self) -> Vec<Rc<Message>> {
        let mut messages = Vec::new();
        while let Some(message) = self.ahead.remove(&self.expected) {
            self.expected += 1;
            messages.extend(message);
        }
        messages
    }

    /// When the oldest piece is to be sent again.
    pub(super) fn timeout_ns(&self) -> Option<u64> {
        (self.next > self.acked).then(|| self.sent_ns + self.rtt_ns + MIN_TIMEOUT_NS)
    }

    pub(super) fn handle_timeout(&mut self, now_ns: u64) {
        if self.timeout_ns().is_some_and(|at_ns| at_ns <= now_ns) {
            self.repair();
            self.duplicates = 0;
        }
    }

    fn repair(&mut self) {
        self.repeats_oldest = true;
        self.repairs_to = self.next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn messages_arrive_once_and_in_order_whatever_is_lost(lost in prop::collection::vec(0u8..3, 0..200), count in 1u32..40) {
            let mut ends = [Channel::new(1_000), Channel::new(1_000)];
            for blast in 0..count {
                ends[0].push(Message::Whole { blast });
            }
            let (mut now_ns, mut came, mut lost) = (0, Vec::new(), lost.into_iter());
            while came.len() < count as usize {
                for end in 0..2 {
                    while let Some((segment, _)) = ends[end].poll(now_ns) {
                        if lost.next() != Some(0) {
                            came.extend(ends[1 - end].handle(&segment));
                        }
                    }
                }
                now_ns += MIN_TIMEOUT_NS;
                ends[0].handle_timeout(now_ns);
                prop_assert!(now_ns < 1_000 * MIN_TIMEOUT_NS);
            }
            let blasts = (0..).map(|blast| Message::Whole { blast });
            prop_assert!(came.iter().zip(blasts).all(|(message, expected)| **message == expected));
        }
    }

    #[test]
    fn a_large_message_takes_rounds_as_the_window_doubles() {
        let mut ends = [Channel::new(1_000), Channel::new(1_000)];
        let runs = (0..30_000).map(|index| (3 * index, 1));
        let packets = farline_proto::rbudp::PacketSet::from_runs(runs).expect("ascending");
        let missing = farline_proto::rbudp::wire::Missing {
            blast: 0,
            upto: 90_000,
            served: 0,
            report: 1,
            packets,
        };
        let bytes = ends[0].push(Message::Missing(missing));
        let mut rounds = Vec::new();
        for _ in 0..8 {
            let segments: Vec<_> = std::iter::from_fn(|| ends[0].poll(0)).collect();
            rounds.push(segments.len());
            for (segment, _) in segments {
                ends[1].handle(&segment);
                let (ack, _) = ends[1].poll(0).expect("an acknowledgement");
                ends[0].handle(&ack);
            }
        }
        let segments = bytes.div_ceil(SEGMENT_BYTES);
        assert_eq!(segments, 8, "a bitmap of 90,000 bits");
        assert_eq!(rounds[..2], [segments, 0]);
    }
}
