//! Streams of data: what comes is checked ([`Intake`]), then written by the stream's own thread, or handed to others.

use std::sync::Arc;

use farline_spec::Failure;

use super::chunk_writer::{Chunk, ChunkWriter, WriteQueue, Writing};
use super::entry::TICK;
use super::intake::Intake;
use super::lanes::Lanes;
use super::pack_workers::PackWorkerPool;
use super::small::Small;
use super::words::broken;
use crate::frame::FrameKind;
use crate::{Arrived, Frame, Inlet, most_frame_bytes};

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
