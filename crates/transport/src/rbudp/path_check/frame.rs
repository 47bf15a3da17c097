//! What the two ends say to each other on the connection: `length 4 | kind 1 | body`, big-endian.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::Instant;

use farline_proto::rbudp::train::{MAX_BURSTS, MAX_TRAINS, RoundTrips};
use farline_spec::{Failure, FailureKind, PathCheck};
use farline_sys::wake::{Interest, wait_ready};

use crate::failure::{timed_out, while_moving};
use crate::socket::time_left;

const READY: u8 = 1;
const SENT: u8 = 2;
const RESULT: u8 = 3;
const HEAD_BYTES: usize = 5;
/// Longest body: the times of all trains.
const MAX_BODY_BYTES: usize = 24 + MAX_TRAINS * (4 + 4 * MAX_BURSTS as usize);

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Frame {
    /// Receiver: arrivals are noted from now on, of what I take for the plan.
    Ready { rate_bps: u64, packet_bytes: u64 },
    /// Sender: all is sent.
    Sent(Sent),
    /// Receiver: what it came to.
    Result(PathCheck),
}

/// What a sender knows of its trains.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Sent {
    pub(super) trips: RoundTrips,
    /// When the bursts of each train went, in ns since the first of all.
    pub(super) trains: Vec<Vec<u64>>,
}

/// A violation by the other end.
pub(super) fn violated(what: &str) -> Failure {
    Failure::new(FailureKind::Protocol, format!("path check: {what}"))
}

impl Frame {
    fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let kind = match self {
            Self::Ready {
                rate_bps,
                packet_bytes,
            } => {
                put(&mut body, &[*rate_bps, *packet_bytes]);
                READY
            }
            Self::Sent(sent) => {
                let trips = sent.trips;
                put(&mut body, &[trips.min_us, trips.median_us, trips.count as u64]);
                put_trains(&mut body, &sent.trains);
                SENT
            }
            Self::Result(check) => {
                let (lost, shared) = (check.lost_share.to_bits(), u64::from(check.shared));
                let [rate, carried] = [check.rate_bps, check.carried_bps];
                put(
                    &mut body,
                    &[rate, carried, check.min_rtt_us, check.idle_rtt_us, lost, shared],
                );
                RESULT
            }
        };
        // A body is never longer than MAX_BODY_BYTES.
        let length = (body.len() as u32).to_be_bytes();
        [&length[..], &[kind], &body].concat()
    }

    fn decode(kind: u8, body: &[u8]) -> Option<Self> {
        let mut body = Body(body);
        let frame = match kind {
            READY => Self::Ready {
                rate_bps: body.u64()?,
                packet_bytes: body.u64()?,
            },
            SENT => Self::Sent(body.sent()?),
            RESULT => Self::Result(body.result()?),
            _ => return None,
        };
        body.0.is_empty().then_some(frame)
    }

    /// Sends the frame.
    ///
    /// # Errors
    /// `Timeout` after `deadline`, else the kernel's.
    pub(super) fn send(&self, feedback: &mut TcpStream, deadline: Instant) -> Result<(), Failure> {
        let bytes = self.encode();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            match feedback.write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    wait_for(feedback, Interest::Writable, deadline)?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(while_moving("checking the path", &error)),
            }
        }
        Ok(())
    }

    /// Waits for a frame.
    ///
    /// # Errors
    /// `Timeout` after `deadline`, `Protocol` for what is no frame, else the kernel's.
    pub(super) fn receive(feedback: &mut TcpStream, deadline: Instant) -> Result<Self, Failure> {
        let mut reader = Reader::default();
        loop {
            match reader.read(feedback)? {
                Some(frame) => return Ok(frame),
                None => wait_for(feedback, Interest::Readable, deadline)?,
            }
        }
    }
}

fn wait_for(feedback: &TcpStream, interest: Interest, deadline: Instant) -> Result<(), Failure> {
    let left = time_left(deadline).ok_or_else(|| timed_out("path check"))?;
    wait_ready([(feedback.as_fd(), interest)], left)
        .map(drop)
        .map_err(|error| Failure::system("path check", &error))
}

/// A frame on its way in. Never takes a byte of what follows it.
#[derive(Debug, Default)]
pub(super) struct Reader {
    bytes: Vec<u8>,
}

impl Reader {
    /// Takes what has come; gives the frame once it is whole.
    ///
    /// # Errors
    /// `Protocol` for what is no frame, and when the other end has closed.
    pub(super) fn read(&mut self, feedback: &mut TcpStream) -> Result<Option<Frame>, Failure> {
        if !self.fill(feedback, HEAD_BYTES)? {
            return Ok(None);
        }
        let &[a, b, c, d, kind] = &self.bytes[..HEAD_BYTES] else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if length > MAX_BODY_BYTES {
            let what = format!("the other end announced {length} bytes; allowed: {MAX_BODY_BYTES}");
            return Err(violated(&what));
        }
        if !self.fill(feedback, HEAD_BYTES + length)? {
            return Ok(None);
        }
        let frame = Frame::decode(kind, &self.bytes[HEAD_BYTES..]);
        self.bytes.clear();
        frame
            .map(Some)
            .ok_or_else(|| violated("the other end sent an invalid message"))
    }

    /// Reads until there are `want` bytes; false when more has to come.
    fn fill(&mut self, feedback: &mut TcpStream, want: usize) -> Result<bool, Failure> {
        while self.bytes.len() < want {
            let have = self.bytes.len();
            self.bytes.resize(want, 0);
            let result = feedback.read(&mut self.bytes[have..]);
            self.bytes
                .truncate(have + result.as_ref().map_or(0, |&count| count));
            match result {
                Ok(0) => return Err(violated("the other end closed the connection")),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(while_moving("checking the path", &error)),
            }
        }
        Ok(true)
    }
}

fn put(body: &mut Vec<u8>, words: &[u64]) {
    words.iter().for_each(|word| body.extend(word.to_be_bytes()));
}

/// Trains: of each how many bursts, and for each the time since the one before it, be it of the train before.
fn put_trains(body: &mut Vec<u8>, trains: &[Vec<u64>]) {
    let mut before_ns = trains
        .first()
        .and_then(|train| train.first())
        .copied()
        .unwrap_or(0);
    for sent_ns in trains {
        body.extend((sent_ns.len() as u32).to_be_bytes());
        for &at_ns in sent_ns {
            let gap_ns = u32::try_from(at_ns.saturating_sub(before_ns)).unwrap_or(u32::MAX);
            body.extend(gap_ns.to_be_bytes());
            before_ns = at_ns;
        }
    }
}

/// What is left of a body.
struct Body<'a>(&'a [u8]);

impl Body<'_> {
    fn u64(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_be_bytes(*word))
    }

    fn u32(&mut self) -> Option<u32> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*word))
    }

    fn sent(&mut self) -> Option<Sent> {
        let trips = RoundTrips {
            min_us: self.u64()?,
            median_us: self.u64()?,
            count: usize::try_from(self.u64()?).ok()?,
        };
        let (mut trains, mut at_ns) = (Vec::new(), 0);
        while !self.0.is_empty() {
            trains.push(self.train(&mut at_ns)?);
        }
        (trains.len() <= MAX_TRAINS).then_some(Sent { trips, trains })
    }

    fn train(&mut self, at_ns: &mut u64) -> Option<Vec<u64>> {
        let bursts = self.u32().filter(|&bursts| bursts <= MAX_BURSTS)?;
        let next = |_| {
            *at_ns += u64::from(self.u32()?);
            Some(*at_ns)
        };
        (0..bursts).map(next).collect()
    }

    fn result(&mut self) -> Option<PathCheck> {
        let check = PathCheck {
            rate_bps: self.u64()?,
            carried_bps: self.u64()?,
            min_rtt_us: self.u64()?,
            idle_rtt_us: self.u64()?,
            lost_share: f64::from_bits(self.u64()?),
            shared: self.u64()? != 0,
        };
        (0.0..=1.0).contains(&check.lost_share).then_some(check)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read_back(frame: &Frame) -> Option<Frame> {
        let bytes = frame.encode();
        assert!(bytes.len() <= HEAD_BYTES + MAX_BODY_BYTES);
        assert_eq!(
            bytes.len() - HEAD_BYTES,
            u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize
        );
        Frame::decode(bytes[4], &bytes[HEAD_BYTES..])
    }

    proptest! {
        #[test]
        fn frames_read_back(
            words in proptest::array::uniform4(any::<u64>()),
            lost_share in 0.0..=1.0,
            shared: bool,
            gaps in proptest::collection::vec(proptest::collection::vec(any::<u32>(), 1..=MAX_BURSTS as usize), 0..=MAX_TRAINS),
        ) {
            let [rate_bps, carried_bps, min_rtt_us, idle_rtt_us] = words;
            let result = PathCheck { rate_bps, carried_bps, min_rtt_us, idle_rtt_us, lost_share, shared };
            let trips = RoundTrips { min_us: words[0], median_us: words[1], count: 20 };
            let mut at_ns = None;
            let mut next = |gap| *at_ns.insert(at_ns.map_or(0, |at_ns: u64| at_ns + u64::from(gap)));
            let trains = gaps.into_iter().map(|gaps| gaps.into_iter().map(&mut next).collect()).collect();
            let all = [
                Frame::Ready { rate_bps, packet_bytes: carried_bps },
                Frame::Result(result),
                Frame::Sent(Sent { trips, trains }),
            ];
            for frame in all {
                prop_assert_eq!(read_back(&frame), Some(frame));
            }
        }

        #[test]
        fn noise_never_panics_nor_becomes_more_than_it_is(kind in 0u8..5, body in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Some(Frame::Sent(sent)) = Frame::decode(kind, &body) {
                prop_assert!(sent.trains.len() <= MAX_TRAINS);
                prop_assert!(sent.trains.iter().map(Vec::len).sum::<usize>() <= body.len() / 4);
            }
        }
    }

    #[test]
    fn what_cannot_be_is_no_frame() {
        let nan = PathCheck {
            lost_share: f64::NAN,
            ..PathCheck::default()
        };
        assert_eq!(read_back(&Frame::Result(nan)), None);
        let many = Sent {
            trains: vec![vec![0]; MAX_TRAINS + 1],
            ..Sent::default()
        };
        assert_eq!(
            Frame::decode(SENT, &Frame::Sent(many).encode()[HEAD_BYTES..]),
            None
        );
        let mut long = Frame::Ready {
            rate_bps: 1,
            packet_bytes: 2,
        }
        .encode();
        long.push(0);
        assert_eq!(Frame::decode(READY, &long[HEAD_BYTES..]), None);
    }
}
