//! The streams of a run as a copy uses them: frames in, sealed bytes out, and back.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

use farline_mover::frame::{PREFIX_BYTES, TRAILER_BYTES};
use farline_mover::{ActivityMonitor, Arrived, Frame, Gauges, Inlet, Outlet};
use farline_spec::{Failure, FailureKind};
use farline_transport::{ByteStream, Received};

use super::pieces::{Piece, Pieces};
use super::seal::{Opened, Seal};
use super::spoiled::{MOST_IN_A_ROW, Spoiled};

/// Bytes at the end of a chunk that is not read which are read all the same, so that its mark need not go by itself.
const TAIL_BYTES: usize = 4096;

const RUNNING: u8 = 0;
const STOPPING: u8 = 1;
const ABORTED: u8 = 2;

/// What all streams of a copy are told at once; it only ever moves forward.
#[derive(Debug, Default)]
pub struct EndSignal(AtomicU8);

impl EndSignal {
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
    pub word: &'a EndSignal,
    pub pieces: &'a Pieces,
    pub gauges: &'a Gauges,
    pub pulse: &'a ActivityMonitor,
    pub spoiled: &'a Spoiled,
}

/// A stream on which this end sends frames.
pub struct Sending<'a> {
    io: &'a mut dyn ByteStream,
    seal: Seal,
    line: Line<'a>,
    /// Whether it carries data: then bytes that leave show that the copy moves. Messages fit a socket's buffer while nobody
    /// reads them.
    is_data: bool,
    last_byte: Option<Instant>,
}

impl<'a> Sending<'a> {
    /// A stream of data (`is_data`) or of messages.
    pub fn new(io: &'a mut dyn ByteStream, seal: Seal, line: Line<'a>, is_data: bool) -> Self {
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

impl Sending<'_> {
    /// Gives all of `bytes` to the stream by `send`, as parts of `piece`.
    fn push(
        &mut self,
        bytes: &[u8],
        piece: &mut Piece<'_>,
        send: impl Fn(&mut dyn ByteStream, &[u8]) -> Result<usize, Failure>,
    ) -> Result<(), Failure> {
        let mut done = 0;
        while done < bytes.len() {
            let taken = send(&mut *self.io, bytes.get(done..).unwrap_or_default())?;
            self.took(taken, piece)?;
            done += taken;
        }
        Ok(())
    }

    /// The stream took so much more.
    fn took(&self, bytes: usize, piece: &mut Piece<'_>) -> Result<(), Failure> {
        if bytes == 0 && self.line.word.is_aborted() {
            return Err(ended());
        }
        if bytes > 0 && self.is_data {
            self.line.pulse.moved(bytes);
        }
        piece.note(bytes);
        Ok(())
    }

    /// All of a frame went, from `began` on.
    fn sent(&mut self, began: Instant) {
        let sent = Instant::now();
        self.line.gauges.stream_ns.add(nanos(began, sent));
        self.last_byte = Some(sent);
    }

    fn check(&self) -> Result<(), Failure> {
        match self.line.word.is_ending() {
            true => Err(ended()),
            false => Ok(()),
        }
    }
}

impl Outlet for Sending<'_> {
    fn send(&mut self, frame: &mut Frame) -> Result<(), Failure> {
        self.check()?;
        let began = Instant::now();
        let wire = self.seal.close(frame.wire())?;
        let sealed = Instant::now();
        self.line.gauges.cipher_ns.add(nanos(began, sealed));
        let mut piece = Piece::of(self.line.pieces, self.is_data, wire.len());
        self.push(wire, &mut piece, |io, bytes| io.send(bytes))?;
        drop(piece);
        self.sent(sealed);
        Ok(())
    }

    fn send_from(
        &mut self,
        frame: &mut Frame,
        file: BorrowedFd<'_>,
        offset: u64,
    ) -> Result<io::Result<()>, Failure> {
        self.check()?;
        let began = Instant::now();
        let mark = self.seal.begin(frame.wire())?;
        let bytes = mark + 1;
        let payload_bytes = frame.payload().len();
        let head_bytes = mark - payload_bytes;
        let mut piece = Piece::of(self.line.pieces, self.is_data, bytes);
        let head = &frame.wire()[..head_bytes];
        self.push(head, &mut piece, |io, bytes| io.send_ahead(bytes))?;
        let tail = mark - payload_bytes.min(TAIL_BYTES);
        while piece.moved < tail {
            let done = (piece.moved - head_bytes) as u64;
            match self.io.send_file(file, offset + done, tail - piece.moved)? {
                Some(taken) => self.took(taken, &mut piece)?,
                None => break,
            }
        }
        // The tail goes with the mark. Before it the file may end, or the kernel does not take from it by itself: reading
        // tells which.
        let filled = frame.fill_from(file, offset, piece.moved - head_bytes);
        let wire = frame.wire();
        Seal::mark(wire, mark, filled.is_ok());
        self.push(&wire[piece.moved..bytes], &mut piece, |io, bytes| io.send(bytes))?;
        drop(piece);
        self.sent(began);
        Ok(filled)
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.io.flush()
    }
}

/// A stream on which this end receives frames.
pub struct Receiving<'a> {
    io: &'a mut dyn ByteStream,
    seal: Seal,
    line: Line<'a>,
    is_data: bool,
    prefix: [u8; PREFIX_BYTES],
    filled: usize,
    has_ended: bool,
    last_byte: Option<Instant>,
    /// Frames that did not open since the last that did.
    unopened: u32,
    /// Where a frame begins is not known any more: what comes is dropped.
    is_out_of_step: bool,
}

impl<'a> Receiving<'a> {
    /// A stream of data (`is_data`) or of messages, at its first frame.
    pub fn new(io: &'a mut dyn ByteStream, seal: Seal, line: Line<'a>, is_data: bool) -> Self {
        Self {
            io,
            seal,
            line,
            is_data,
            prefix: [0; PREFIX_BYTES],
            filled: 0,
            has_ended: false,
            last_byte: None,
            unopened: 0,
            is_out_of_step: false,
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
                    self.line.pulse.moved(bytes);
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

    /// Whether a frame that does not open is asked for again. Messages are not: each builds on those before.
    const fn heals(&self) -> bool {
        self.is_data && self.line.spoiled.heals()
    }

    /// Frame `record`, which is in `frame`, did not open: whoever asks for it again learns its place and nothing else.
    fn unopened(&mut self, record: u64, frame: &mut Frame) -> Result<Arrived, Failure> {
        frame.clear();
        if !self.heals() {
            return Err(changed());
        }
        self.line.spoiled.one_more()?;
        self.unopened += 1;
        if self.unopened > MOST_IN_A_ROW {
            return Ok(self.lose_step(record));
        }
        Ok(Arrived::Unopened { record })
    }

    /// From frame `record` on it is not known any more where one begins.
    const fn lose_step(&mut self, record: u64) -> Arrived {
        self.is_out_of_step = true;
        Arrived::OutOfStep { record }
    }

    /// Drops what comes out of step, until the other end has heard of it and ends the stream.
    fn pass_over(&mut self, frame: &mut Frame) -> Result<Arrived, Failure> {
        frame.clear();
        self.has_ended = self.io.receive(frame.room())? == Received::End;
        Ok(match self.has_ended {
            true => Arrived::End,
            false => Arrived::Nothing,
        })
    }
}

impl Inlet for Receiving<'_> {
    fn receive(&mut self, frame: &mut Frame) -> Result<Arrived, Failure> {
        if self.line.word.is_ending() {
            return Err(ended());
        }
        if self.is_out_of_step {
            return self.pass_over(frame);
        }
        if let Some(nothing_or_end) = self.begin()? {
            return Ok(nothing_or_end);
        }
        let began = Instant::now();
        let record = self.seal.number();
        let expected = self.seal.payload_bytes(&self.prefix);
        let wire = match expected.and_then(|bytes| frame.expect(bytes)) {
            Ok(wire) => wire,
            Err(_) if self.heals() => return Ok(self.lose_step(record)),
            Err(why) => return Err(why),
        };
        wire[..PREFIX_BYTES].copy_from_slice(&self.prefix);
        let end = wire.len() - TRAILER_BYTES + self.seal.trailer_bytes(&self.prefix);
        self.gather(&mut wire[PREFIX_BYTES..end])?;
        let whole = Instant::now();
        let opened = self.seal.open(wire)?;
        self.filled = 0;
        self.line.gauges.stream_ns.add(nanos(began, whole));
        self.line.gauges.cipher_ns.add(nanos(whole, Instant::now()));
        self.last_byte = Some(whole);
        let arrived = match opened {
            Opened::Whole => Arrived::Frame,
            Opened::Void => Arrived::Void,
            Opened::Not => return self.unopened(record, frame),
        };
        self.unopened = 0;
        Ok(arrived)
    }
}

fn nanos(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.duration_since(from).as_nanos()).unwrap_or(u64::MAX)
}

fn ended() -> Failure {
    Failure::new(FailureKind::Interrupted, "the copy was stopped")
}

fn changed() -> Failure {
    Failure::new(
        FailureKind::Protocol,
        "a frame was modified in transit: authentication failed",
    )
}

fn cut_off() -> Failure {
    Failure::new(FailureKind::Protocol, "the stream ended within a frame")
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
