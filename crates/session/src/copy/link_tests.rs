//! Frames over streams in memory that cut them as they like.

#[path = "healing_tests.rs"]
mod healing;

use super::*;
use crate::copy::SealKeys;
use farline_mover::frame::{FrameKind, HEADER_BYTES, Header};
use farline_spec::{Cipher, CopyProgress, Granted};
use farline_transport::{Counters, Probe, StreamEnd};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;

/// Room for the payload of frames that come.
const CAPACITY: usize = 16_384;

/// A stream in memory that moves at most `piece` bytes a call, and nothing in every third.
#[derive(Default)]
struct Memory {
    bytes: VecDeque<u8>,
    piece: usize,
    calls: usize,
    ends: bool,
    takes_no_files: bool,
}

impl Memory {
    fn may_move(&mut self, wanted: usize) -> usize {
        self.calls += 1;
        if self.calls.is_multiple_of(3) {
            0
        } else {
            wanted.min(self.piece)
        }
    }
}

impl ByteStream for Memory {
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Failure> {
        let count = self.may_move(bytes.len());
        self.bytes.extend(&bytes[..count]);
        Ok(count)
    }

    fn send_file(
        &mut self,
        file: BorrowedFd<'_>,
        offset: u64,
        most: usize,
    ) -> Result<Option<usize>, Failure> {
        if self.takes_no_files {
            return Ok(None);
        }
        let most = self.may_move(most);
        let mut bytes = vec![0; most];
        let read = farline_sys::file::read_at(file, &mut bytes, offset).unwrap();
        self.bytes.extend(&bytes[..read]);
        Ok((most == 0 || read > 0).then_some(read))
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<Received, Failure> {
        if self.bytes.is_empty() && self.ends {
            return Ok(Received::End);
        }
        let count = self.may_move(into.len()).min(self.bytes.len());
        into.iter_mut()
            .zip(self.bytes.drain(..count))
            .for_each(|(to, from)| *to = from);
        Ok(Received::Bytes(count))
    }
}

impl StreamEnd for Memory {
    fn finish_sending(&mut self, _deadline: Instant) -> Result<(), Failure> {
        self.ends = true;
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

#[derive(Default)]
struct Shared {
    word: EndSignal,
    pieces: Pieces,
    gauges: Gauges,
    pulse: ActivityMonitor,
    spoiled: Spoiled,
}

impl Shared {
    /// Of ends that heal what comes spoiled.
    fn healing() -> Self {
        Self {
            spoiled: Spoiled::new(true),
            ..Self::default()
        }
    }

    fn line(&self) -> Line<'_> {
        Line {
            word: &self.word,
            pieces: &self.pieces,
            gauges: &self.gauges,
            pulse: &self.pulse,
            spoiled: &self.spoiled,
        }
    }
}

fn seal(cipher: Cipher) -> Seal {
    SealKeys::new(&[1; 32], cipher).seal(2).unwrap()
}

fn frame(content: &[u8]) -> Frame {
    let mut frame = Frame::new(content.len().max(1));
    frame.room()[..content.len()].copy_from_slice(content);
    let mut header = Header::of_messages(FrameKind::Feedback);
    header.payload_bytes = u32::try_from(content.len()).unwrap();
    frame.set(&header);
    frame
}

/// What comes out of `io` until it ends or fails.
fn drain(io: &mut Memory, cipher: Cipher) -> (Vec<Vec<u8>>, Result<(), Failure>) {
    let shared = Shared::default();
    let mut inlet = Receiving::new(io, seal(cipher), shared.line(), true);
    let (mut frame, mut payloads) = (Frame::new(CAPACITY), Vec::new());
    loop {
        match inlet.receive(&mut frame) {
            Ok(Arrived::Frame) => payloads.push(frame.payload().to_vec()),
            Ok(Arrived::Void) => payloads.push(b"void".to_vec()),
            Ok(Arrived::Unopened { .. } | Arrived::OutOfStep { .. }) => panic!("nobody heals"),
            Ok(Arrived::Nothing) => {}
            Ok(Arrived::End) => return (payloads, Ok(())),
            Err(failure) => return (payloads, Err(failure)),
        }
    }
}

fn sent(contents: &[Vec<u8>], cipher: Cipher, piece: usize) -> Memory {
    let shared = Shared::default();
    let mut io = Memory {
        piece,
        ..Memory::default()
    };
    let mut outlet = Sending::new(&mut io, seal(cipher), shared.line(), true);
    for content in contents {
        outlet.send(&mut frame(content)).unwrap();
    }
    io.ends = true;
    io
}

proptest! {
    #[test]
    fn frames_arrive_whole_however_the_stream_cuts_them(
        contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..8),
        piece in 1usize..100,
        plain in any::<bool>(),
    ) {
        let cipher = if plain { Cipher::None } else { Cipher::Aes128Gcm };
        let (payloads, result) = drain(&mut sent(&contents, cipher, piece), cipher);
        prop_assert_eq!(payloads, contents);
        prop_assert_eq!(result, Ok(()));
    }

    #[test]
    fn no_bytes_make_the_receiver_panic_or_wait_for_ever(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut io = Memory { bytes: bytes.into(), piece: 7, ends: true, ..Memory::default() };
        let (_, result) = drain(&mut io, Cipher::None);
        if let Err(failure) = result {
            prop_assert_eq!(failure.kind, FailureKind::Protocol);
        }
    }
}

#[test]
fn what_lies_in_a_file_arrives_whole_or_as_a_void_frame() {
    use std::io::Write;
    use std::os::fd::AsFd;
    let mut file = tempfile::tempfile().unwrap();
    let content: Vec<u8> = (0..20_000_u32).map(|number| (number % 251) as u8).collect();
    file.write_all(&content).unwrap();
    for (takes_no_files, offset, bytes) in [
        (false, 0, 15_000),
        (true, 0, 15_000),
        (false, 50, 200),
        (false, 4096, 4097),
        (false, 12_000, 10_000),
        (true, 12_000, 10_000),
        (false, 15_000, 10_000),
        (false, 19_000, 2_000),
        (false, 30_000, 9),
    ] {
        let shared = Shared::default();
        let mut io = Memory {
            piece: 700,
            takes_no_files,
            ..Memory::default()
        };
        let mut outlet = Sending::new(&mut io, seal(Cipher::None), shared.line(), true);
        let there = content.get(offset..).unwrap_or_default();
        let there = &there[..there.len().min(bytes)];
        let filled = outlet
            .send_from(&mut frame(&vec![9; bytes]), file.as_fd(), offset as u64)
            .unwrap();
        let missing = filled.map_err(|error| error.kind());
        let expected = if there.len() == bytes {
            Ok(())
        } else {
            Err(io::ErrorKind::UnexpectedEof)
        };
        assert_eq!(missing, expected);
        outlet.send(&mut frame(b"next")).unwrap();
        io.ends = true;
        let (payloads, result) = drain(&mut io, Cipher::None);
        assert_eq!(result, Ok(()));
        let came = if there.len() == bytes { there } else { b"void" };
        assert_eq!(payloads, [came, b"next"], "{takes_no_files} {offset}");
    }
}

#[test]
fn a_mark_that_there_is_not_or_in_a_sealed_frame_is_refused() {
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, &[7; 100]).unwrap();
    let shared = Shared::default();
    let mut io = Memory {
        piece: 1000,
        ..Memory::default()
    };
    let mut outlet = Sending::new(&mut io, seal(Cipher::None), shared.line(), true);
    let went = outlet.send_from(&mut frame(&[0; 100]), std::os::fd::AsFd::as_fd(&file), 0);
    assert!(went.unwrap().is_ok());
    io.ends = true;
    for (change, at) in [(2, io.bytes.len() - 1), (2, 5), (1, 6)] {
        let mut changed = Memory {
            bytes: io.bytes.clone(),
            piece: 1000,
            ends: true,
            ..Memory::default()
        };
        changed.bytes[at] = change;
        let refused = drain(&mut changed, Cipher::None).1.unwrap_err();
        assert_eq!(refused.kind, FailureKind::Protocol);
    }
    let mut sealed = sent(&[vec![1; 100]], Cipher::Aes128Gcm, 1000);
    sealed.bytes[5] = 1;
    assert!(drain(&mut sealed, Cipher::Aes128Gcm).1.is_err());
}

#[test]
fn what_nobody_has_read_is_not_sent_where_a_cipher_was_agreed_on() {
    use std::os::fd::AsFd;
    let (shared, mut io) = (Shared::default(), Memory::default());
    let mut outlet = Sending::new(&mut io, seal(Cipher::Aes128Gcm), shared.line(), true);
    let file = tempfile::tempfile().unwrap();
    let refused = outlet.send_from(&mut frame(b"content"), file.as_fd(), 0);
    assert_eq!(refused.unwrap_err().kind, FailureKind::Internal);
    assert!(io.bytes.is_empty());
}

#[test]
fn a_stream_that_ends_in_a_frame_says_so() {
    let whole = sent(&[vec![1; 100]], Cipher::Aes128Gcm, 1000);
    let all: Vec<u8> = whole.bytes.into();
    for kept in 1..all.len() {
        let mut io = Memory {
            bytes: all[..kept].to_vec().into(),
            piece: 1000,
            ends: true,
            ..Memory::default()
        };
        let (payloads, result) = drain(&mut io, Cipher::Aes128Gcm);
        assert!(payloads.is_empty());
        assert_eq!(
            result.unwrap_err().message,
            "the stream ended within a frame",
            "{kept} bytes"
        );
    }
}

#[test]
fn a_length_beyond_what_was_agreed_on_costs_no_memory() {
    for length in [
        CAPACITY as u32 + 1 + HEADER_BYTES as u32,
        u32::MAX,
        HEADER_BYTES as u32 - 1,
        0,
    ] {
        let mut prefix = [0; PREFIX_BYTES];
        prefix[..4].copy_from_slice(&length.to_le_bytes());
        let mut io = Memory {
            bytes: prefix.to_vec().into(),
            piece: 8,
            ends: true,
            ..Memory::default()
        };
        let (_, result) = drain(&mut io, Cipher::None);
        let failure = result.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Protocol);
        assert!(!failure.message.contains("middle"), "{length}: {failure}");
    }
}

#[test]
fn clear_text_is_not_taken_where_a_cipher_was_agreed_on() {
    let mut io = sent(&[vec![1; 100]], Cipher::None, 1000);
    let (payloads, result) = drain(&mut io, Cipher::Aes256Gcm);
    assert!(payloads.is_empty());
    assert_eq!(result.unwrap_err().kind, FailureKind::Protocol);
}

#[test]
fn a_stopped_copy_begins_no_frame_and_drops_what_comes() {
    let shared = Shared::default();
    shared.word.stop();
    let mut io = sent(&[vec![1; 100]], Cipher::None, 1000);
    let mut outlet = Sending::new(&mut io, seal(Cipher::None), shared.line(), true);
    assert_eq!(
        outlet.send(&mut frame(b"more")).unwrap_err().kind,
        FailureKind::Interrupted
    );
    let mut inlet = Receiving::new(&mut io, seal(Cipher::None), shared.line(), true);
    assert_eq!(
        inlet.receive(&mut Frame::new(200)).unwrap_err().kind,
        FailureKind::Interrupted
    );
    inlet.discard_rest().unwrap();
    assert!(inlet.has_ended && io.bytes.is_empty());
}

/// A stream that looks at the pieces before each call.
struct Watched<'a> {
    io: Memory,
    shared: &'a Shared,
    seen: Vec<u64>,
}

impl Watched<'_> {
    /// As a mover shows it that counts the frame as moved from its beginning, or, if it `comes`, not yet.
    fn look(&mut self, whole: u64) {
        let mut seen = CopyProgress {
            moved_bytes: whole,
            settled_bytes: 1_000,
            ..CopyProgress::default()
        };
        self.shared.pieces.correct(&mut seen, 300);
        assert!((700..=1_000).contains(&seen.settled_bytes));
        self.seen.push(seen.moved_bytes);
    }
}

impl ByteStream for Watched<'_> {
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Failure> {
        self.look((PREFIX_BYTES + HEADER_BYTES + 1_000) as u64);
        self.io.send(bytes)
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<Received, Failure> {
        self.look(0);
        self.io.receive(into)
    }
}

impl StreamEnd for Watched<'_> {
    fn finish_sending(&mut self, deadline: Instant) -> Result<(), Failure> {
        self.io.finish_sending(deadline)
    }

    fn probe(&self) -> Arc<dyn Probe> {
        self.io.probe()
    }

    fn granted(&self) -> Granted {
        self.io.granted()
    }
}

#[test]
fn a_frame_that_takes_long_counts_as_it_moves() {
    let shared = Shared::default();
    let io = Memory {
        piece: 100,
        ..Memory::default()
    };
    let mut io = Watched {
        io,
        shared: &shared,
        seen: Vec::new(),
    };
    Sending::new(&mut io, seal(Cipher::None), shared.line(), true)
        .send(&mut frame(&[1; 1_000]))
        .unwrap();
    let went = std::mem::take(&mut io.seen);
    let mut inlet = Receiving::new(&mut io, seal(Cipher::None), shared.line(), true);
    let mut whole = Frame::new(1_000);
    while inlet.receive(&mut whole).unwrap() != Arrived::Frame {}
    for (what, seen) in [("goes", went), ("comes", io.seen)] {
        let apart = seen
            .windows(2)
            .all(|two| (two[0]..=two[0] + 100).contains(&two[1]));
        assert!(
            apart && seen[0] == 0 && *seen.last().unwrap() > 800,
            "{what}: {seen:?}"
        );
    }
    let mut after = CopyProgress::default();
    shared.pieces.correct(&mut after, 0);
    assert_eq!(after.moved_bytes, 0, "the rest is the mover's");
}

#[test]
fn messages_that_leave_are_no_sign_of_life() {
    let shared = Shared::default();
    let mut io = Memory {
        piece: 1000,
        ..Memory::default()
    };
    let quiet = shared.pulse.silence();
    Sending::new(&mut io, seal(Cipher::None), shared.line(), false)
        .send(&mut frame(b"x"))
        .unwrap();
    assert!(shared.pulse.silence() >= quiet);
    Sending::new(&mut io, seal(Cipher::None), shared.line(), true)
        .send(&mut frame(b"x"))
        .unwrap();
    assert!(shared.pulse.silence() < std::time::Duration::from_millis(100));
}
