//! Streams of data: what comes is checked, then written by the stream's own thread, or handed to others.

use std::sync::Arc;

use farline_proto::copy::receiver::{self, Admission, Known};
use farline_spec::{Failure, FailureKind};

use super::chunk_writer::{Chunk, ChunkWriter, WriteQueue, Writing};
use super::driver::{Machine, Receiver};
use super::entry::{Entry, TICK};
use super::lanes::Lanes;
use super::pack_workers::PackWorkerPool;
use super::plan::Plan;
use super::run::Run;
use super::settle::Ledger;
use super::small::Small;
use super::words::broken;
use crate::frame::{FrameKind, Header};
use crate::sum::chunk_sum;
use crate::{Arrived, Frame, Gauges, Inlet, most_frame_bytes};

/// Checks what comes, and counts it.
#[derive(Debug)]
pub struct Intake {
    pub plan: Arc<Plan>,
    pub machine: Arc<Machine>,
    pub run: Arc<Run>,
    pub gauges: Arc<Gauges>,
    ledger: Arc<Ledger>,
    most_bytes: u64,
}

impl Intake {
    /// Nothing has come yet of the `most_bytes` that may.
    pub fn new(
        plan: &Arc<Plan>,
        ledger: &Arc<Ledger>,
        most_bytes: u64,
        (machine, run, gauges): (&Arc<Machine>, &Arc<Run>, &Arc<Gauges>),
    ) -> Self {
        Self {
            plan: Arc::clone(plan),
            machine: Arc::clone(machine),
            run: Arc::clone(run),
            gauges: Arc::clone(gauges),
            ledger: Arc::clone(ledger),
            most_bytes,
        }
    }

    /// Checks a chunk that came; `None` if it is not to be written.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`](farline_spec::FailureKind::Protocol) for a chunk that no file has; what ends the copy.
    pub fn admit(&self, header: &Header, content: &[u8]) -> Result<Option<Chunk>, Failure> {
        let (offset, bytes) = (header.offset, content.len() as u64);
        let chunk = receiver::Chunk {
            file: header.file,
            offset,
            bytes,
            hash: header.hash,
        };
        let known = |receiver: &Receiver| match receiver.check_chunk(&chunk)? {
            Known::NotYet => Ok(None),
            Known::Over => Ok(Some(None)),
            Known::Open(entry) => Ok(Some(Some(entry))),
        };
        let Some(entry) = self.machine.wait_for(known, || self.run.check())? else {
            return Ok(None);
        };
        let is_whole_file = bytes == entry.source.bytes;
        let sum = |kind| chunk_sum(kind, offset, content, is_whole_file);
        let found = self.plan.sum.map(|kind| self.gauges.hash_ns.time(|| sum(kind)));
        let admission = self.machine.with(|machine| machine.take_chunk(&chunk, found))?;
        Ok(self.admitted(&entry, admission)?.then_some(Chunk {
            entry,
            offset,
            bytes,
            hash: found,
        }))
    }

    /// Whether data that came for `entry` are to be written.
    ///
    /// # Errors
    /// As of [`Ledger::failed`].
    pub fn admitted(&self, entry: &Arc<Entry>, admission: Admission) -> Result<bool, Failure> {
        match admission {
            Admission::Write => Ok(true),
            Admission::Drop => Ok(false),
            Admission::GiveUp(reason) => self.ledger.failed(entry, &reason).map(|()| false),
        }
    }

    /// Counts what came; a limit of the ticket ends the copy.
    ///
    /// # Errors
    /// [`FailureKind::Limit`].
    pub fn count_moved(&self, bytes: u64) -> Result<(), Failure> {
        self.gauges.moved_bytes.add(bytes);
        if self.gauges.moved_bytes.get() > self.most_bytes {
            let line = format!("exceeds the {} bytes that the ticket allows", self.most_bytes);
            return Err(Failure::new(FailureKind::Limit, line));
        }
        Ok(())
    }
}

/// The thread of one stream.
pub struct Stream<'a> {
    intake: &'a Intake,
    lanes: &'a Lanes,
    number: u16,
    /// Where chunks go: through the stream's own pen, unless there is none or their file is shared with other streams.
    pen: Option<ChunkWriter>,
    line: Option<WriteQueue>,
    /// Where packs go, unless nobody is free there.
    crew: Option<PackWorkerPool>,
    small: Small,
    /// It cannot be read any more.
    is_lost: bool,
}

impl<'a> Stream<'a> {
    /// The stream of this number, which writes for itself, or hands chunks to `line`, all of them or those of files that are shared, and packs to
    /// `crew` while somebody there is free.
    ///
    /// # Errors
    /// As of [`ChunkWriter::new`].
    pub fn new(
        intake: &'a Intake,
        lanes: &'a Lanes,
        number: u16,
        (writing, line): (&Arc<Writing>, Option<WriteQueue>),
        (small, crew): (Small, Option<PackWorkerPool>),
    ) -> Result<Self, Failure> {
        let writes = intake.plan.choice.threads == 0;
        let pen = writes.then(|| ChunkWriter::new(writing)).transpose()?;
        Ok(Self {
            intake,
            lanes,
            number,
            pen,
            line,
            crew,
            small,
            is_lost: false,
        })
    }

    /// Takes frames until the stream ends.
    ///
    /// # Errors
    /// The stream's; what ended the copy.
    pub fn run(&mut self, inlet: &mut dyn Inlet) -> Result<(), Failure> {
        let mut frame = self.next_frame()?;
        loop {
            self.intake.run.check()?;
            match inlet.receive(&mut frame)? {
                Arrived::Frame => {
                    frame = match self.take(frame)? {
                        Some(frame) => frame,
                        None => self.next_frame()?,
                    }
                }
                Arrived::Void => self.intake.count_moved(frame.payload().len() as u64)?,
                Arrived::Unopened { record } => {
                    let stream = self.number;
                    self.intake
                        .machine
                        .with(|machine| machine.handle_unopened(stream, record));
                }
                Arrived::OutOfStep { record } => {
                    self.is_lost = true;
                    let (stream, is_last) = (self.number, self.lanes.lose());
                    self.intake
                        .machine
                        .with(|machine| machine.handle_out_of_step(stream, record, is_last))?;
                }
                Arrived::Nothing => self.drain()?,
                Arrived::End => {
                    self.drain()?;
                    return Ok(());
                }
            }
        }
    }

    /// Whether it could not be read to its end.
    pub const fn is_lost(&self) -> bool {
        self.is_lost
    }

    fn drain(&mut self) -> Result<(), Failure> {
        self.pen.as_mut().map_or(Ok(()), |pen| pen.drain(0))
    }

    fn next_frame(&mut self) -> Result<Frame, Failure> {
        let frame_bytes = most_frame_bytes(&self.intake.plan.spec);
        if let Some(frame) = self.pen.as_mut().and_then(|pen| pen.free.pop()) {
            return Ok(frame);
        }
        let Some(line) = &self.line else {
            return Ok(Frame::new(frame_bytes));
        };
        self.intake.gauges.starved_ns.time(|| {
            loop {
                self.intake.run.check()?;
                match line.frames.take(TICK) {
                    Some(frame) => return Ok(frame),
                    None if self.intake.run.is_finished() => {
                        return Ok(Frame::new(frame_bytes));
                    }
                    None => {}
                }
            }
        })
    }

    /// The frame, if it may be used again at once.
    fn take(&mut self, frame: Frame) -> Result<Option<Frame>, Failure> {
        let header = frame.header()?;
        match header.kind {
            FrameKind::Pack => self.pack(frame).map(Some),
            FrameKind::Chunk => {
                self.intake.count_moved(u64::from(header.payload_bytes))?;
                match self.intake.admit(&header, frame.payload())? {
                    Some(chunk) => self.write(chunk, frame).map(|()| None),
                    None => Ok(Some(frame)),
                }
            }
            FrameKind::Catalogue | FrameKind::Feedback => Err(broken("messages on a data stream")),
        }
    }

    fn write(&mut self, chunk: Chunk, frame: Frame) -> Result<(), Failure> {
        let line = self
            .line
            .as_ref()
            .filter(|_| self.pen.is_none() || chunk.entry.is_shared());
        if let Some(line) = line {
            line.hand_on(chunk, frame);
            return Ok(());
        }
        self.pen.as_mut().map_or(Ok(()), |pen| pen.write(chunk, frame))
    }

    /// Hands a pack to whoever is free; a frame for the next.
    fn pack(&mut self, frame: Frame) -> Result<Frame, Failure> {
        let handed = match &self.crew {
            Some(crew) => {
                self.intake.gauges.queued_frames.add(1);
                crew.hand_on(frame)
                    .inspect_err(|_| self.intake.gauges.queued_frames.take(1))
            }
            None => Err(frame),
        };
        handed.or_else(|frame| self.small.write(&frame).map(|()| frame))
    }
}
