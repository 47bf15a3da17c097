//! The streams of a run as a copy uses them: frames in, sealed bytes out, and back.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

use farline_mover::frame::{PREFIX_BYTES, TRAILER_BYTES};
use farline_mover::{Arrived, Frame, Gauges, Inlet, Outlet, Pulse};
use farline_spec::{Failure, FailureKind};
use farline_transport::{Received, Stream};

use super::pieces::{Piece, Pieces};
use super::seal::Seal;

const RUNNING: u8 = 0;
const STOPPING: u8 = 1;
const ABORTED: u8 = 2;

/// What all streams of a copy are told at once; it only ever moves forward.
#[derive(Debug, Default)]
pub struct Word(AtomicU8);

impl Word {
    /// No new frame; one that is under way is finished.
    pub fn stop(&self) {
        self.0.fetch_max(STOPPING, Ordering::Release);
    }

    /// Nothing more, not even the rest of a frame.
    pub fn abort(&self) {
        self.0.fetch_max(ABORTED, Ordering::Release);
    }

    /// Whether the copy was stopped or aborted.
    pub fn is_ending(&self) -> bool {
        self.0.load(Ordering::Acquire) != RUNNING
    }

    /// Whether it was stopped, and nothing worse.
    pub fn is_stopping(&self) -> bool {
        self.0.load(Ordering::Acquire) == STOPPING
    }

    /// Whether it was aborted.
    pub fn is_aborted(&self) -> bool {
        self.0.load(Ordering::Acquire) == ABORTED
    }
}

/// What the links of one end of a copy share.
#[derive(Clone, Copy)]
pub struct Line<'a> {
    pub word: &'a Word,
    pub pieces: &'a Pieces,
    pub gauges: &'a Gauges,
    pub pulse: &'a Pulse,
}

/// A stream on which this end sends frames.
pub struct Sending<'a> {
    io: &'a mut dyn Stream,
    seal: Seal,
    line: Line<'a>,
    /// Whether it carries data: then bytes that leave show that the copy moves. Messages fit a socket's buffer while nobody
    /// reads them.
    is_data: bool,
    last_byte: Option<Instant>,
}

impl<'a> Sending<'a> {
    /// A stream of data (`is_data`) or of messages.
    pub fn new(io: &'a mut dyn Stream, seal: Seal, line: Line<'a>, is_data: bool) -> Self {
        Self {
            io,
            seal,
            line,
            is_data,
            last_byte: None,
        }
    }

    /// When the last byte left; `None` if none ever did.
    pub fn last_byte(&self) -> Option<Instant> {
        self.last_byte
    }
}

impl Outlet for Sending<'_> {
    fn send(&mut self, frame: &mut Frame) -> Result<(), Failure> {
        if self.line.word.is_ending() {
            return Err(ended());
        }
        let (seal, gauges) = (&mut self.seal, self.line.gauges);
        let began = Instant::now();
        let wire = seal.close(frame.wire())?;
        let sealed = Instant::now();
        gauges.cipher_ns.add(nanos(began, sealed));
        let mut piece = Piece::of(self.line.pieces, self.is_data, wire.len());
        while piece.moved < wire.len() {
            let taken = self.io.send(wire.get(piece.moved..).unwrap_or_default())?;
            if taken == 0 && self.line.word.is_aborted() {
                return Err(ended());
            }
            if taken > 0 && self.is_data {
                self.line.pulse.beat();
            }
            piece.note(taken);
        }
        drop(piece);
        let sent = Instant::now();
        gauges.stream_ns.add(nanos(sealed, sent));
        self.last_byte = Some(sent);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.io.flush()
    }
}

/// A stream on which this end receives frames.
pub struct Receiving<'a> {
    io: &'a mut dyn Stream,
    seal: Seal,
    line: Line<'a>,
    is_data: bool,
    prefix: [u8; PREFIX_BYTES],
    filled: usize,
    has_ended: bool,
    last_byte: Option<Instant>,
}

impl<'a> Receiving<'a> {
    /// A stream of data (`is_data`) or of messages, at its first frame.
    pub fn new(io: &'a mut dyn Stream, seal: Seal, line: Line<'a>, is_data: bool) -> Self {
        Self {
            io,
            seal,
            line,
            is_data,
            prefix: [0; PREFIX_BYTES],
            filled: 0,
            has_ended: false,
            last_byte: None,
        }
    }

    /// When the last frame was whole; `None` if none ever was.
    pub fn last_byte(&self) -> Option<Instant> {
        self.last_byte
    }

    /// Drops what is still on its way until the other end says that it was all.
    ///
    /// # Errors
    /// The stream's.
    pub fn discard_rest(&mut self) -> Result<(), Failure> {
        let mut bytes = vec![0; 64 * 1024];
        while !self.has_ended && !self.line.word.is_aborted() {
            self.has_ended = self.io.receive(&mut bytes)? == Received::End;
        }
        Ok(())
    }

    /// Gathers a prefix; false if nothing came for a while.
    fn begin(&mut self) -> Result<Option<Arrived>, Failure> {
        while self.filled < PREFIX_BYTES {
            match self.io.receive(&mut self.prefix[self.filled..])? {
                Received::Bytes(0) if self.line.word.is_ending() => return Err(ended()),
                Received::Bytes(0) => return Ok(Some(Arrived::Nothing)),
                Received::Bytes(bytes) => self.filled += bytes,
                Received::End => {
                    self.has_ended = true;
                    return if self.filled == 0 {
                        Ok(Some(Arrived::End))
                    } else {
                        Err(cut_off())
                    };
                }
            }
        }
        Ok(None)
    }

    fn gather(&mut self, place: &mut [u8]) -> Result<(), Failure> {
        let mut piece = Piece::of(self.line.pieces, self.is_data, 0);
        while piece.moved < place.len() {
            match self.io.receive(&mut place[piece.moved..])? {
                Received::Bytes(0) if self.line.word.is_ending() => return Err(ended()),
                Received::Bytes(0) => {}
                Received::Bytes(bytes) => {
                    self.line.pulse.beat();
                    piece.note(bytes);
                }
                Received::End => {
                    self.has_ended = true;
                    return Err(cut_off());
                }
            }
        }
        Ok(())
    }
}

impl Inlet for Receiving<'_> {
    fn receive(&mut self, frame: &mut Frame) -> Result<Arrived, Failure> {
        if self.line.word.is_ending() {
            return Err(ended());
        }
        if let Some(nothing_or_end) = self.begin()? {
            return Ok(nothing_or_end);
        }
        let began = Instant::now();
        let wire = frame.expect(self.seal.payload_bytes(&self.prefix)?)?;
        wire[..PREFIX_BYTES].copy_from_slice(&self.prefix);
        let end = wire.len() - TRAILER_BYTES + self.seal.trailer_bytes();
        self.gather(&mut wire[PREFIX_BYTES..end])?;
        let whole = Instant::now();
        self.seal.open(wire)?;
        self.filled = 0;
        self.line.gauges.stream_ns.add(nanos(began, whole));
        self.line.gauges.cipher_ns.add(nanos(whole, Instant::now()));
        self.last_byte = Some(whole);
        Ok(Arrived::Frame)
    }
}

fn nanos(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.duration_since(from).as_nanos()).unwrap_or(u64::MAX)
}

fn ended() -> Failure {
    Failure::new(FailureKind::Interrupted, "the copy was ended")
}

fn cut_off() -> Failure {
    Failure::new(FailureKind::Protocol, "the stream ended in the middle of a frame")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::SealKeys;
    use farline_mover::frame::{FrameKind, HEADER_BYTES, Header};
    use farline_spec::{Cipher, CopyProgress, Granted};
    use farline_transport::{Counters, Probe};
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use std::sync::Arc;

    /// A stream in memory that moves at most `piece` bytes a call, and nothing in every third.
    #[derive(Default)]
    struct Memory {
        bytes: VecDeque<u8>,
        piece: usize,
        calls: usize,
        ends: bool,
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

    impl Stream for Memory {
        fn send_block(&mut self, _limit: usize) -> Result<usize, Failure> {
            unreachable!("a copy sends bytes")
        }
        fn receive_block(&mut self) -> Result<Received, Failure> {
            unreachable!("a copy receives bytes")
        }
        fn send(&mut self, bytes: &[u8]) -> Result<usize, Failure> {
            let count = self.may_move(bytes.len());
            self.bytes.extend(&bytes[..count]);
            Ok(count)
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
        word: Word,
        pieces: Pieces,
        gauges: Gauges,
        pulse: Pulse,
    }

    impl Shared {
        fn line(&self) -> Line<'_> {
            Line {
                word: &self.word,
                pieces: &self.pieces,
                gauges: &self.gauges,
                pulse: &self.pulse,
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
        let (mut frame, mut payloads) = (Frame::new(4096), Vec::new());
        loop {
            match inlet.receive(&mut frame) {
                Ok(Arrived::Frame) => payloads.push(frame.payload().to_vec()),
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
            let mut io = Memory { bytes: bytes.into(), piece: 7, ends: true, calls: 0 };
            let (_, result) = drain(&mut io, Cipher::None);
            if let Err(failure) = result {
                prop_assert_eq!(failure.kind, FailureKind::Protocol);
            }
        }
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
                calls: 0,
            };
            let (payloads, result) = drain(&mut io, Cipher::Aes128Gcm);
            assert!(payloads.is_empty());
            assert_eq!(
                result.unwrap_err().message,
                "the stream ended in the middle of a frame",
                "{kept} bytes"
            );
        }
    }

    #[test]
    fn a_length_beyond_what_was_agreed_on_costs_no_memory() {
        for length in [5000 + HEADER_BYTES as u32, u32::MAX, HEADER_BYTES as u32 - 1, 0] {
            let mut prefix = [0; PREFIX_BYTES];
            prefix[..4].copy_from_slice(&length.to_le_bytes());
            let mut io = Memory {
                bytes: prefix.to_vec().into(),
                piece: 8,
                ends: true,
                calls: 0,
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

    impl Stream for Watched<'_> {
        fn send_block(&mut self, limit: usize) -> Result<usize, Failure> {
            self.io.send_block(limit)
        }
        fn receive_block(&mut self) -> Result<Received, Failure> {
            self.io.receive_block()
        }
        fn send(&mut self, bytes: &[u8]) -> Result<usize, Failure> {
            self.look((PREFIX_BYTES + HEADER_BYTES + 1_000) as u64);
            self.io.send(bytes)
        }
        fn receive(&mut self, into: &mut [u8]) -> Result<Received, Failure> {
            self.look(0);
            self.io.receive(into)
        }
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
}
