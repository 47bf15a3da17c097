//! Body of the fuzz target `seal`: sealed frames changed, cut, doubled, moved and made up, as a stream of data or messages
//! brings them.

use std::sync::Arc;
use std::time::Instant;

use farline_mover::frame::{FrameKind, Header};
use farline_mover::{ActivityMonitor, Arrived, Frame, Gauges, Inlet, Outlet};
use farline_spec::{Cipher, Failure, FailureKind, Granted};
use farline_transport::{ByteStream, Counters, Probe, Received, StreamEnd};

use super::link::{EndSignal, Line, Receiving, Sending};
use super::pieces::Pieces;
use super::seal::{Seal, SealKeys};
use super::spoiled::{MOST_IN_A_ROW, Spoiled};

const STREAM: u16 = 1;
const FRAMES: u64 = 9;
/// Room for the payload of a frame.
const CAPACITY: usize = 4_096;

/// Bytes of a stream, given in pieces.
#[derive(Default)]
struct Bytes {
    bytes: Vec<u8>,
    at: usize,
    piece: usize,
}

impl ByteStream for Bytes {
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Failure> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<Received, Failure> {
        let rest = &self.bytes[self.at..];
        let count = rest.len().min(into.len()).min(self.piece);
        into[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(match count {
            0 => Received::End,
            _ => Received::Bytes(count),
        })
    }
}

impl StreamEnd for Bytes {
    fn finish_sending(&mut self, _deadline: Instant) -> Result<(), Failure> {
        Ok(())
    }

    fn probe(&self) -> Arc<dyn Probe> {
        struct Nothing;
        impl Probe for Nothing {
            fn sample(&self) -> Counters {
                Counters::UNKNOWN
            }
            fn abort(&self) {}
        }
        Arc::new(Nothing)
    }

    fn granted(&self) -> Granted {
        Granted::default()
    }
}

/// What the links of one end share.
struct Shared {
    word: EndSignal,
    pieces: Pieces,
    gauges: Gauges,
    pulse: ActivityMonitor,
    spoiled: Spoiled,
}

impl Shared {
    fn new(heals: bool) -> Self {
        Self {
            word: EndSignal::default(),
            pieces: Pieces::default(),
            gauges: Gauges::default(),
            pulse: ActivityMonitor::default(),
            spoiled: Spoiled::new(heals),
        }
    }

    const fn line(&self) -> Line<'_> {
        Line {
            word: &self.word,
            pieces: &self.pieces,
            gauges: &self.gauges,
            pulse: &self.pulse,
            spoiled: &self.spoiled,
        }
    }
}

fn seal() -> Seal {
    let keys = SealKeys::new(&[7; 32], Cipher::Aes128Gcm);
    keys.seal(STREAM).expect("a key of the right length")
}

fn content(number: u64) -> Vec<u8> {
    vec![number as u8; 40 + 11 * number as usize]
}

/// The stream that was sent, and where each of its frames begins and the last one ends.
fn sent() -> (Vec<u8>, Vec<usize>) {
    let (shared, mut io, mut begins) = (Shared::new(true), Bytes::default(), vec![0]);
    let mut outlet = Sending::new(&mut io, seal(), shared.line(), true);
    for number in 0..FRAMES {
        let content = content(number);
        let mut frame = Frame::new(CAPACITY);
        frame.room()[..content.len()].copy_from_slice(&content);
        frame.set(&Header {
            payload_bytes: content.len() as u32,
            ..Header::of_messages(FrameKind::Pack)
        });
        begins.push(begins[number as usize] + frame.wire().len());
        outlet.send(&mut frame).expect("memory takes all");
    }
    (io.bytes, begins)
}

/// Any bytes: how the stream is read, and either what comes on it or what is done to what was sent. Whatever opens is what was
/// sent at its place, and it comes to an end.
pub fn frames(data: &[u8]) {
    let [how, piece, rest @ ..] = data else { return };
    let (bytes, begins) = sent();
    let bytes = match how & 1 {
        0 => rest.to_vec(),
        _ => changed(bytes, &begins, rest),
    };
    let io = Bytes {
        bytes,
        at: 0,
        piece: usize::from(*piece) + 1,
    };
    read(io, how & 2 == 0, how & 4 == 0);
}

/// `bytes` after each of the changes that `data` says, four bytes each.
fn changed(mut bytes: Vec<u8>, begins: &[usize], data: &[u8]) -> Vec<u8> {
    for change in data.chunks_exact(4).take(64) {
        let [what, high, low, value] = change else {
            continue;
        };
        if bytes.is_empty() {
            break;
        }
        let place = usize::from(u16::from_be_bytes([*high, *low])) % bytes.len();
        let frame = usize::from(*high) % (begins.len() - 1);
        let whole = begins[frame].min(bytes.len())..begins[frame + 1].min(bytes.len());
        match what % 6 {
            0 => bytes[place] ^= 1 << (value % 8),
            1 => bytes[place] = *value,
            2 => bytes.insert(place, *value),
            3 => drop(bytes.drain(place..(place + usize::from(*value)).min(bytes.len()))),
            4 => bytes.truncate(place),
            _ if whole.is_empty() => {}
            _ => {
                let again = bytes[whole].to_vec();
                bytes.splice(place..place, again);
            }
        }
    }
    bytes
}

fn read(mut io: Bytes, heals: bool, is_data: bool) {
    let shared = Shared::new(heals);
    let bytes = io.bytes.len();
    let mut inlet = Receiving::new(&mut io, seal(), shared.line(), is_data);
    let (mut frame, mut number, mut in_a_row, mut is_lost) = (Frame::new(CAPACITY), 0, 0, false);
    // Each brings a byte at least, but the last.
    for _ in 0..=bytes {
        match inlet.receive(&mut frame) {
            Ok(Arrived::Frame) => {
                assert!(!is_lost, "a frame after the stream was lost");
                frame.header().expect("what was sealed has a header");
                assert!(
                    frame.payload() == content(number),
                    "frame {number} is another one"
                );
                (number, in_a_row) = (number + 1, 0);
            }
            Ok(Arrived::Unopened { record }) => {
                assert!(heals && is_data && !is_lost && record == number);
                assert!(frame.header().is_err() && frame.payload().is_empty());
                (number, in_a_row) = (number + 1, in_a_row + 1);
                assert!(in_a_row <= MOST_IN_A_ROW);
            }
            Ok(Arrived::OutOfStep { record }) => {
                assert!(heals && is_data && !is_lost && record >= number);
                is_lost = true;
            }
            Ok(Arrived::Nothing) => assert!(is_lost),
            Ok(Arrived::End) => return,
            Ok(Arrived::Void) => panic!("a sealed frame is never void"),
            Err(failure) => {
                assert_eq!(failure.kind, FailureKind::Protocol);
                return;
            }
        }
    }
    panic!("the stream has no end");
}

/// Streams to begin with: as they were sent, and with one change of each kind.
pub fn seeds() -> Vec<(String, Vec<u8>)> {
    let (bytes, begins) = sent();
    let mut seeds = vec![("sent".to_owned(), [&[0, 200], bytes.as_slice()].concat())];
    for how in [1, 3, 5] {
        for what in 0..6 {
            let place = begins[3] as u16 + 9;
            let [high, low] = place.to_be_bytes();
            seeds.push((format!("changed-{how}-{what}"), vec![how, 50, what, high, low, 5]));
        }
    }
    seeds
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_seeds_are_what_they_are_meant_to_be() {
        let (bytes, begins) = sent();
        assert_eq!((bytes.len(), begins.len()), (begins[FRAMES as usize], 10));
        for (_, seed) in seeds() {
            frames(&seed);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn whatever_is_done_to_sealed_frames_nothing_else_opens(
            how in 0u8..8, piece in any::<u8>(), changes in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            frames(&[&[how, piece], changes.as_slice()].concat());
        }
    }
}
