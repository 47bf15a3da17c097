//! Reads what the scheduler gives and makes frames that are ready to be sent; on a stream's thread or one of its own.

use std::sync::Arc;

use farline_proto::copy::sender::Piece;
use farline_spec::{Failure, FailureKind};

use super::driver::Driver;
use super::pool::Pool;
use super::queue::{Filled, Queue};
use super::read_scheduler::{Asked, Next, ReadScheduler};
use super::reading::Reading;
use super::run::{PAUSE, Run};
use super::straight::Pointer;
use super::trouble::Trouble;
use crate::engine::{self, Completed, Reader, Request};
use crate::frame::{Frame, FrameKind, Header};
use crate::sum::{Sum, chunk_sum};

/// One reader.
pub(super) struct ChunkReader {
    pub(super) reading: Arc<Reading>,
    pub(super) driver: Arc<Driver>,
    pub(super) run: Arc<Run>,
    pub(super) reader: Box<dyn Reader>,
    pub(super) pool: Arc<Pool>,
    /// What comes next.
    pub(super) scheduler: ReadScheduler,
    asked: Vec<Asked>,
    /// Nothing new is begun.
    is_leaving: bool,
}

impl Asked {
    const fn piece(&self, hash: Option<Sum>) -> Piece {
        Piece {
            offset: self.offset,
            bytes: self.bytes,
            hash,
            is_repeat: self.is_repeat,
        }
    }

    fn header(&self, hash: Option<Sum>) -> Header {
        Header {
            kind: FrameKind::Chunk,
            file: self.file.number,
            offset: self.offset,
            hash,
            payload_bytes: self.bytes as u32,
        }
    }
}

/// What there is to do at the moment.
enum Found {
    Span,
    Pack(Filled),
    Nothing,
}

impl ChunkReader {
    /// A reader that takes its frames from `pool`.
    pub(super) fn new(
        reading: &Arc<Reading>,
        driver: &Arc<Driver>,
        run: &Arc<Run>,
        pool: &Arc<Pool>,
    ) -> Result<Self, Failure> {
        Ok(Self {
            reader: engine::reader(reading.choice)?,
            scheduler: ReadScheduler::new(reading, driver, run),
            reading: Arc::clone(reading),
            driver: Arc::clone(driver),
            run: Arc::clone(run),
            pool: Arc::clone(pool),
            asked: Vec::new(),
            is_leaving: false,
        })
    }

    /// The body of a reader thread: fills the queue until the copy is over.
    pub(super) fn fill(mut self, queue: &Queue) -> Result<(), Failure> {
        while !self.run.is_over() {
            match self.next()? {
                Some(filled) => queue.put(filled),
                None => self.driver.wait_for_work(PAUSE, |_| false),
            }
        }
        Ok(())
    }

    /// The body of a helper: fills packs until the copy is over, for streams that read for themselves.
    #[expect(clippy::unnecessary_wraps, reason = "a body as that of a reader thread is")]
    pub(super) fn help(mut self, queue: &Queue) -> Result<(), Failure> {
        while !self.run.is_over() {
            match self.next_pack() {
                Some(filled) => {
                    queue.put(filled);
                    self.driver.wake_readers();
                }
                None => self.driver.wait_for_packs(PAUSE),
            }
        }
        Ok(())
    }

    /// From now on [`Self::next`] gives what was begun, and nothing else.
    pub(super) const fn leave(&mut self) {
        self.is_leaving = true;
    }

    /// The next frame to send; `None` when there is nothing to read now, or the copy is over.
    pub(super) fn next(&mut self) -> Result<Option<Filled>, Failure> {
        while !self.run.is_over() {
            while self.asked.len() < self.reading.depth {
                if !self.scheduler.has_span() {
                    if self.is_leaving {
                        break;
                    }
                    match self.find_work() {
                        Found::Span => {}
                        Found::Pack(filled) => return Ok(Some(filled)),
                        Found::Nothing => break,
                    }
                }
                let Some(frame) = self.pool.try_take() else { break };
                if !self.scheduler.goes_straight() {
                    self.ask(frame);
                } else if let Some(filled) = self.point(frame) {
                    return Ok(Some(filled));
                }
            }
            if self.asked.is_empty() {
                if !self.scheduler.has_span() {
                    return Ok(None);
                }
                self.pool.wait(PAUSE);
                continue;
            }
            let waited = self.reading.gauges.file_ns.time(|| self.reader.complete());
            if let Some(filled) = waited
                .map(|completed| self.check(completed))
                .transpose()?
                .flatten()
            {
                return Ok(Some(filled));
            }
        }
        Ok(None)
    }

    /// The next pack of small files to send; `None` when there is none now, or the copy is over.
    pub(super) fn next_pack(&mut self) -> Option<Filled> {
        while let Some(batch) = self.driver.ask(|machine| machine.take_pack()) {
            if let Some(filled) = self.fill_pack(batch) {
                return Some(filled);
            }
        }
        None
    }

    fn find_work(&mut self) -> Found {
        self.driver.wait_for_room();
        while let Some(next) = self.scheduler.next(&*self.reader) {
            match next {
                Next::Span => return Found::Span,
                Next::Pack(batch) => {
                    if let Some(filled) = self.fill_pack(batch) {
                        return Found::Pack(filled);
                    }
                }
            }
            if self.run.is_over() {
                break;
            }
        }
        Found::Nothing
    }

    /// Begins to read the first chunk of the span.
    fn ask(&mut self, frame: Frame) {
        let Some((asked, file)) = self.scheduler.next_chunk() else {
            return self.pool.put(frame);
        };
        let request = Request {
            file,
            offset: asked.offset,
            // A chunk fits into a frame, so into memory.
            bytes: asked.bytes as usize,
            frame,
            tag: asked.tag,
        };
        self.asked.push(asked);
        self.reading.gauges.file_ns.time(|| self.reader.submit(request));
    }

    /// The first chunk of the span as a frame that has its header alone; `None` where the file is not wanted any more.
    fn point(&mut self, mut frame: Frame) -> Option<Filled> {
        let Some((asked, open)) = self.scheduler.next_wanted_chunk() else {
            self.pool.put(frame);
            return None;
        };
        self.run.count_work();
        frame.set(&asked.header(None));
        Some(Filled {
            frame,
            content_bytes: asked.bytes,
            pointer: Some(Pointer {
                open,
                piece: asked.piece(None),
            }),
            file: Some(asked.file),
        })
    }

    /// The frame of a chunk that has been read; `None` if it is not wanted any more or is not what it was.
    fn check(&mut self, completed: Completed) -> Result<Option<Filled>, Failure> {
        let Completed { mut request, result } = completed;
        let place = self.asked.iter().position(|asked| asked.tag == request.tag);
        let place =
            place.ok_or_else(|| Failure::new(FailureKind::Internal, "a read that was not requested"))?;
        let asked = self.asked.swap_remove(place);
        self.run.count_work();
        let trouble = match result {
            Err(error) => Some(Trouble::Kernel(error)),
            Ok(bytes) if (bytes as u64) < asked.bytes => Some(Trouble::Changed),
            Ok(_) => {
                self.reading.gauges.file_bytes.add(asked.bytes);
                let hash = self.hash(&asked, &mut request.frame);
                request.frame.set(&asked.header(hash));
                self.driver
                    .has_read(&asked.file, &request.file, &asked.piece(hash))
                    .err()
            }
        };
        let number = asked.file.number;
        let is_wanted = self.driver.look(|machine| machine.is_under_way(number));
        match trouble {
            None if is_wanted => Ok(Some(Filled {
                frame: request.frame,
                content_bytes: asked.bytes,
                file: Some(asked.file),
                pointer: None,
            })),
            trouble => {
                self.pool.put(request.frame);
                if let Some(trouble) = trouble {
                    self.driver.lost(&asked.file, &trouble);
                }
                Ok(None)
            }
        }
    }

    fn hash(&self, asked: &Asked, frame: &mut Frame) -> Option<Sum> {
        let is_whole = asked.bytes == asked.file.found.bytes();
        self.reading.sum.map(|kind| {
            let content = &frame.room()[..asked.bytes as usize];
            let sum = || chunk_sum(kind, asked.offset, content, is_whole);
            self.reading.gauges.hash_ns.time(sum)
        })
    }
}
