//! The data streams: each sends what it reads itself, or what reader threads have put in the queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use farline_proto::copy::sender::Cargo;
use farline_spec::{Failure, FailureKind};

use super::chunk_reader::ChunkReader;
use super::driver::{Driver, Machine};
use super::lanes::Lanes;
use super::pool::Pool;
use super::queue::{Filled, Queue};
use super::reading::Reading;
use super::run::{PAUSE, Run};
use super::sending::Sending;
use super::straight::Pointer;
use super::trouble::Trouble;
use crate::frame::FrameKind;
use crate::{Frame, Gauges, Outlet, pack};

/// Frames between reader threads and streams that each stream needs.
const FRAMES_OF_STREAM: usize = 2;

/// The data streams of one copy, and who fills frames for them.
#[derive(Debug)]
pub(super) struct Streams {
    /// How they read for themselves.
    pub(super) reading: Arc<Reading>,
    /// Frames between reader threads and streams; `None`: streams read for themselves, without help.
    pub(super) queue: Option<Arc<Queue>>,
    /// Threads that fill packs while streams, which read for themselves, are at others.
    pub(super) helpers: usize,
    /// How many there were at the start.
    pub(super) at_first: u16,
    /// How many there are.
    pub(super) lanes: Arc<Lanes>,
    /// Whether it was said how many files are sent at once; otherwise that follows from the streams.
    pub(super) is_concurrency_said: AtomicBool,
    /// Whether frames may be asked for again by their number.
    pub(super) remembers_frames: bool,
    /// Most payload bytes that may move.
    pub(super) most_bytes: Option<u64>,
    /// The machine.
    pub(super) driver: Arc<Driver>,
    /// That it goes on.
    pub(super) run: Arc<Run>,
    /// Figures.
    pub(super) gauges: Arc<Gauges>,
}

/// A stream and its number.
struct Lane<'a> {
    number: u16,
    outlet: &'a mut dyn Outlet,
}

/// Frames that a reader with requests of so many under way needs by itself.
pub(super) const fn frames_of_reader(depth: usize) -> usize {
    depth + 1
}

impl Streams {
    /// One data stream more, which has a number of its own, before its job begins.
    pub(super) fn join(&self, stream: u16) {
        self.driver.ask(|machine| machine.add_stream(stream));
        if let Some(queue) = &self.queue {
            queue.pool.allow(FRAMES_OF_STREAM);
        }
        let streams = self.lanes.join();
        self.follow(streams);
    }

    /// Where nobody said how many files are sent at once, each stream that reads for itself has one.
    fn follow(&self, streams: u32) {
        if self.reading.choice.threads == 0 && !self.is_concurrency_said.load(Ordering::Acquire) {
            let most = streams as usize + self.helpers;
            let driver = &self.driver;
            driver.ask(|machine| machine.set_most_under_way(most.max(machine.most_under_way())));
        }
    }

    /// So many are to end, if one stays; gives how many do.
    pub(super) fn dismiss(&self, count: u16) -> u16 {
        let dismissed = self.lanes.dismiss(count.into());
        self.driver.wake_readers();
        // No more than was asked for.
        u16::try_from(dismissed).unwrap_or(count)
    }

    /// Sends so many files at once from now on; gives what was said before, if anything was.
    pub(super) fn set_concurrency(&self, files: u32) -> Option<u32> {
        let was_said = self.is_concurrency_said.swap(true, Ordering::AcqRel);
        let before = self.driver.ask(|machine| {
            let before = machine.most_under_way();
            machine.set_most_under_way(files as usize);
            before
        });
        was_said.then_some(u32::try_from(before).unwrap_or(u32::MAX))
    }

    /// Threads that read; 0 where each stream does it for itself and nobody helps.
    pub(super) fn threads(&self) -> u32 {
        // No more streams than sixteen bits count, and a few helpers.
        match self.helpers as u32 {
            0 => self.reading.choice.threads.into(),
            helpers => u32::from(self.at_first) + helpers,
        }
    }

    /// Sends data on stream `number` until the copy is over or the other end cannot read that stream any more.
    pub(super) fn send_all(&self, number: u16, outlet: &mut dyn Outlet) -> Result<(), Failure> {
        let mut lane = Lane { number, outlet };
        match &self.queue {
            Some(queue) if self.reading.choice.threads > 0 => self.send_queued(queue, &mut lane)?,
            helped => self.read_and_send(helped.as_deref(), &mut lane)?,
        }
        match self.driver.is_closed(number) {
            true => Ok(()),
            false => self.run.outcome(),
        }
    }

    fn read_and_send(&self, helped: Option<&Queue>, lane: &mut Lane<'_>) -> Result<(), Failure> {
        let frames = frames_of_reader(self.reading.depth);
        let pool = Arc::new(Pool::new(frames, self.reading.frame_bytes()));
        let mut reader = ChunkReader::new(&self.reading, &self.driver, &self.run, &pool)?;
        let mut needs_flush = false;
        let lane_number = lane.number;
        // Asked while the machine is held: asks it, and not its driver.
        let is_due = |machine: &Machine| {
            let is_queued = || helped.is_some_and(|queue| !queue.is_empty());
            machine.is_closed(lane_number) || self.lanes.is_due() || is_queued()
        };
        while !self.run.is_over() {
            if self.driver.is_closed(lane_number) {
                return self.hand_back(reader, &pool);
            }
            if self.lanes.may_leave() {
                return self.send_begun(reader, &pool, lane);
            }
            if let Some((queue, filled)) = helped.and_then(|queue| Some((queue, queue.try_take()?))) {
                self.send(filled, &queue.pool, lane)?;
                needs_flush = true;
                continue;
            }
            match reader.next()? {
                Some(filled) => {
                    self.send(filled, &pool, lane)?;
                    needs_flush = true;
                }
                None => {
                    if std::mem::take(&mut needs_flush) {
                        lane.outlet.flush()?;
                    }
                    let wait = || self.driver.wait_for_work(PAUSE, is_due);
                    self.gauges.starved_ns.time(wait);
                }
            }
        }
        Ok(())
    }

    /// What `reader` has begun for a stream that is to end goes over it still; then there is nothing of that stream's anywhere.
    fn send_begun(&self, mut reader: ChunkReader, pool: &Pool, lane: &mut Lane<'_>) -> Result<(), Failure> {
        reader.leave();
        while let Some(filled) = reader.next()? {
            self.send(filled, pool, lane)?;
        }
        lane.outlet.flush()
    }

    /// What `reader` has begun for a stream that was given up goes over the others.
    fn hand_back(&self, mut reader: ChunkReader, pool: &Pool) -> Result<(), Failure> {
        reader.leave();
        while let Some(filled) = reader.next()? {
            let cargo = cargo_of(&filled.frame)?;
            self.driver.ask(|machine| machine.carry_again(&cargo))?;
            pool.put(filled.frame);
        }
        Ok(())
    }

    fn send_queued(&self, queue: &Queue, lane: &mut Lane<'_>) -> Result<(), Failure> {
        let mut needs_flush = false;
        while !self.run.is_over() && !self.driver.is_closed(lane.number) {
            if self.lanes.may_leave() {
                return lane.outlet.flush();
            }
            let next = match queue.try_take() {
                Some(filled) => Some(filled),
                None => {
                    if std::mem::take(&mut needs_flush) {
                        lane.outlet.flush()?;
                    }
                    queue.wait()
                }
            };
            if let Some(filled) = next {
                self.send(filled, &queue.pool, lane)?;
                needs_flush = true;
            }
        }
        Ok(())
    }

    fn send(&self, filled: Filled, pool: &Pool, lane: &mut Lane<'_>) -> Result<(), Failure> {
        let Filled {
            mut frame,
            content_bytes,
            file,
            pointer,
        } = filled;
        if !self.may_carry(lane.number, &frame)? {
            pool.put(frame);
            return Ok(());
        }
        self.gauges.moved_bytes.add(content_bytes);
        if let Some(most) = self
            .most_bytes
            .filter(|most| self.gauges.moved_bytes.get() > *most)
        {
            let line = format!("the copy moves more than the {most} bytes that are allowed");
            return Err(Failure::new(FailureKind::Limit, line));
        }
        match (pointer, &file) {
            (Some(pointer), Some(file)) => self.send_straight(file, &pointer, &mut frame, lane.outlet)?,
            _ => lane.outlet.send(&mut frame)?,
        }
        pool.put(frame);
        if let Some(file) = file {
            self.driver
                .ask(|machine| machine.credit(file.number, content_bytes));
        }
        Ok(())
    }

    /// Notes that `frame` goes over `stream` next; false where that stream was given up: then what is in it goes over another.
    fn may_carry(&self, stream: u16, frame: &Frame) -> Result<bool, Failure> {
        if !self.remembers_frames {
            return Ok(true);
        }
        let cargo = cargo_of(frame)?;
        self.driver.ask(|machine| machine.carry(stream, cargo))
    }

    /// Sends a chunk of `file` of which `frame` has the header.
    fn send_straight(
        &self,
        file: &Arc<Sending>,
        pointer: &Pointer,
        frame: &mut Frame,
        outlet: &mut dyn Outlet,
    ) -> Result<(), Failure> {
        let Pointer { open, piece } = pointer;
        let taken = outlet
            .send_from(frame, open.fd(), piece.offset)?
            .map_err(Trouble::of_taking);
        self.gauges.file_bytes.add(frame.payload().len() as u64);
        if let Err(trouble) = taken.and_then(|()| self.driver.has_read(file, open, piece)) {
            self.driver.lost(file, &trouble);
        }
        Ok(())
    }
}

/// What is in `frame`, as the machine knows it.
///
/// # Errors
/// [`FailureKind::Internal`] for a frame that this end did not fill.
fn cargo_of(frame: &Frame) -> Result<Cargo, Failure> {
    let header = frame.header()?;
    match header.kind {
        FrameKind::Chunk => Ok(Cargo::Chunk {
            file: header.file,
            offset: header.offset,
            bytes: header.payload_bytes,
        }),
        FrameKind::Pack => {
            let numbers = pack::items(frame.payload()).map(|item| item.map(|item| item.file));
            numbers.collect::<Result<_, _>>().map(Cargo::Pack)
        }
        FrameKind::Catalogue | FrameKind::Feedback => {
            let line = "messages among the data that are to be sent";
            Err(Failure::new(FailureKind::Internal, line))
        }
    }
}
