//! Reads what the supply has and gives frames that are ready to be sent; on a stream's thread or one of its own.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use farline_proto::copy::sender::{Known, Piece, Reach, Span, Work};
use farline_spec::{Failure, FailureKind};
use farline_sys::file;

use super::folders::Folders;
use super::pool::Pool;
use super::sending::{Opened, Sending, Taken};
use super::settle::Trouble;
use super::shared::Shared;
use super::steady;
use super::straight::Pointer;
use crate::engine::{self, Completed, OpenFile, Reader, Request};
use crate::frame::{Frame, FrameKind, Header};
use crate::message::GRAIN_BYTES;
use crate::sum::{Sum, chunk_sum, hole_sum};
use crate::tree_hash::subtree_bytes;

/// How long a reader waits for something before it looks around.
pub(super) const PAUSE: Duration = Duration::from_millis(100);

/// A frame ready to be sent.
#[derive(Debug)]
pub(super) struct Filled {
    /// The frame.
    pub(super) frame: Frame,
    /// Bytes of content in it.
    pub(super) content_bytes: u64,
    /// The file that it is a chunk of; `None` for a pack.
    pub(super) file: Option<Arc<Sending>>,
    /// Where the payload is, if the frame has its header alone.
    pub(super) pointer: Option<Pointer>,
}

/// One reader.
pub(super) struct Producer {
    pub(super) shared: Arc<Shared>,
    pub(super) reader: Box<dyn Reader>,
    pub(super) pool: Arc<Pool>,
    pub(super) folders: Folders,
    /// The file it is at.
    file: Option<Arc<Sending>>,
    span: Option<Taken>,
    asked: Vec<Asked>,
    next_tag: u64,
    /// Nothing new is begun.
    is_leaving: bool,
}

/// A chunk that is being read.
#[derive(Debug)]
struct Asked {
    tag: u64,
    file: Arc<Sending>,
    offset: u64,
    bytes: u64,
    is_repeat: bool,
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

impl Producer {
    /// A reader that takes its frames from `pool`.
    pub(super) fn new(shared: Arc<Shared>, pool: Arc<Pool>) -> Result<Self, Failure> {
        Ok(Self {
            reader: engine::reader(shared.choice)?,
            shared,
            pool,
            folders: Folders::default(),
            file: None,
            span: None,
            asked: Vec::new(),
            next_tag: 0,
            is_leaving: false,
        })
    }

    /// From now on [`Self::next`] gives what was begun, and nothing else.
    pub(super) const fn leave(&mut self) {
        self.is_leaving = true;
    }

    /// The next frame to send; `None` when there is nothing to read now, or the copy is over.
    pub(super) fn next(&mut self) -> Result<Option<Filled>, Failure> {
        while !self.shared.halt.is_over() {
            while self.asked.len() < self.shared.depth {
                if self.span.is_none() {
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
                if !self.span.as_ref().is_some_and(|span| span.is_straight) {
                    self.ask(frame);
                } else if let Some(filled) = self.point(frame) {
                    return Ok(Some(filled));
                }
            }
            if self.asked.is_empty() {
                if self.span.is_none() {
                    return Ok(None);
                }
                self.pool.wait(PAUSE);
                continue;
            }
            let waited = self.shared.gauges.file_ns.time(|| self.reader.complete());
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
        while let Some(batch) = self.shared.ask(|machine| machine.take_pack()) {
            if let Some(filled) = self.fill_pack(batch) {
                return Some(filled);
            }
        }
        None
    }

    fn find_work(&mut self) -> Found {
        self.shared.driver.wait_for_room();
        let own = self.file.as_ref().map(|file| file.number);
        while let Some(work) = self.shared.ask(|machine| machine.take(own)) {
            match work {
                Work::Pack(batch) => {
                    if let Some(filled) = self.fill_pack(batch) {
                        return Found::Pack(filled);
                    }
                }
                Work::File(_, file) => match self.cut(&file) {
                    Err(trouble) => self.shared.lost(&file, &trouble),
                    Ok(None) => {}
                    Ok(Some(span)) if span.is_hole => self.pass_hole(&span),
                    Ok(Some(span)) => {
                        self.span = Some(span);
                        self.file = Some(file);
                        return Found::Span;
                    }
                },
            }
            if self.shared.halt.is_over() {
                break;
            }
        }
        Found::Nothing
    }

    /// The next chunks of `file`, which is opened if it is not.
    fn cut(&mut self, file: &Arc<Sending>) -> Result<Option<Taken>, Trouble> {
        let mut opened = file.opened();
        let number = file.number;
        if !self.shared.driver.look(|machine| machine.is_wanted(number)) {
            return Ok(None);
        }
        let opened = match &mut *opened {
            Some(opened) => {
                // Now and then, so that not all of a large file is sent for nothing.
                steady::end(&file.found, opened.file.fd())?;
                opened
            }
            none => none.insert(self.open(file)?),
        };
        let open = Arc::clone(&opened.file);
        let (span, is_straight) = (self.shared.next_span(file, &open), opened.place.is_some());
        Ok(span.map(|span| Taken {
            file: Arc::clone(file),
            open,
            offset: span.offset,
            end: span.end,
            is_hole: span.is_hole,
            is_repeat: span.is_repeat,
            is_straight,
        }))
    }

    fn open(&mut self, file: &Sending) -> Result<Opened, Trouble> {
        let shared = &self.shared;
        let open = shared.gauges.name_ns.time(|| {
            let opened = self.folders.open(shared, &file.found)?;
            self.reader.adopt(opened)
        })?;
        steady::begin(&file.found, open.fd())?;
        let device = file.found.facts.device;
        let straight = shared.straight.as_ref();
        let place = straight.and_then(|straight| straight.place(device));
        shared.ask(|machine| machine.go_straight(file.number, place.is_some()));
        Ok(Opened { file: open, place })
    }

    /// The first chunk of the span, which loses it.
    fn next_chunk(&mut self) -> Option<(Asked, Arc<OpenFile>)> {
        let span = self.span.as_mut()?;
        let file_bytes = span.file.found.bytes();
        // What spoils one chunk spoils a shorter one less often.
        let most = match span.is_repeat {
            true => GRAIN_BYTES,
            false => self.shared.chunk_bytes,
        };
        let bytes = subtree_bytes(span.offset, span.end, file_bytes, most);
        let asked = Asked {
            tag: self.next_tag,
            file: Arc::clone(&span.file),
            offset: span.offset,
            bytes,
            is_repeat: span.is_repeat,
        };
        let open = Arc::clone(&span.open);
        self.next_tag += 1;
        span.offset += bytes;
        if span.offset >= span.end {
            self.span = None;
        }
        Some((asked, open))
    }

    /// Begins to read the first chunk of the span.
    fn ask(&mut self, frame: Frame) {
        let Some((asked, file)) = self.next_chunk() else {
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
        self.shared.gauges.file_ns.time(|| self.reader.submit(request));
    }

    /// The first chunk of the span as a frame that has its header alone; `None` where the file is not wanted any more.
    fn point(&mut self, mut frame: Frame) -> Option<Filled> {
        let is_wanted = |span: &Taken| {
            let number = span.file.number;
            self.shared.driver.look(|machine| machine.is_wanted(number))
        };
        let chunk = match self.span.as_ref().is_some_and(is_wanted) {
            true => self.next_chunk(),
            false => None,
        };
        let Some((asked, open)) = chunk else {
            self.span = None;
            self.pool.put(frame);
            return None;
        };
        self.shared.work.fetch_add(1, Ordering::Relaxed);
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
        self.shared.work.fetch_add(1, Ordering::Relaxed);
        let trouble = match result {
            Err(error) => Some(Trouble::Kernel(error)),
            Ok(bytes) if (bytes as u64) < asked.bytes => Some(Trouble::Changed),
            Ok(_) => {
                self.shared.gauges.file_bytes.add(asked.bytes);
                let hash = self.hash(&asked, &mut request.frame);
                request.frame.set(&asked.header(hash));
                self.shared
                    .has_read(&asked.file, &request.file, &asked.piece(hash))
                    .err()
            }
        };
        let number = asked.file.number;
        let is_wanted = self.shared.driver.look(|machine| machine.is_under_way(number));
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
                    self.shared.lost(&asked.file, &trouble);
                }
                Ok(None)
            }
        }
    }

    fn hash(&self, asked: &Asked, frame: &mut Frame) -> Option<Sum> {
        let is_whole = asked.bytes == asked.file.found.bytes();
        self.shared.sum.map(|kind| {
            let content = &frame.room()[..asked.bytes as usize];
            let sum = || chunk_sum(kind, asked.offset, content, is_whole);
            self.shared.gauges.hash_ns.time(sum)
        })
    }

    /// A hole, which was said instead of sent, is hashed as the zeros it stands for.
    fn pass_hole(&self, span: &Taken) {
        let shared = &self.shared;
        shared
            .hole_bytes
            .fetch_add(span.end - span.offset, Ordering::Relaxed);
        let mut offset = span.offset;
        while offset < span.end && !shared.halt.is_over() {
            let file_bytes = span.file.found.bytes();
            let bytes = subtree_bytes(offset, span.end, file_bytes, shared.chunk_bytes);
            let is_whole = bytes == file_bytes;
            let zeros = |kind| hole_sum(kind, offset, bytes, is_whole);
            let timed = |kind| shared.gauges.hash_ns.time(|| zeros(kind));
            let piece = Piece {
                offset,
                bytes,
                hash: shared.sum.map(timed),
                is_repeat: false,
            };
            if let Err(trouble) = shared.has_read(&span.file, &span.open, &piece) {
                return shared.lost(&span.file, &trouble);
            }
            shared.worked();
            offset += bytes;
        }
    }
}

impl Shared {
    /// The next span of `file` that nobody has taken.
    fn next_span(&self, file: &Sending, open: &OpenFile) -> Option<Span> {
        let number = file.number;
        let part = self.ask(|machine| machine.next_part(number));
        let reach = part.and_then(|(offset, _)| match reach(open, offset, file.found.bytes()) {
            Ok(reach) => Some(reach),
            Err(_) => {
                // A file system that does not say where holes are: what is wrong with the file, reading it tells.
                self.ask(|machine| machine.ignore_holes(number));
                None
            }
        });
        self.ask(|machine| machine.cut(number, reach))
    }

    /// Notes that a part of `file` has been read; after the last one, looks whether the file is still what it was and says so.
    pub(super) fn has_read(
        &self,
        file: &Arc<Sending>,
        open: &OpenFile,
        piece: &Piece,
    ) -> Result<(), Trouble> {
        match self.ask(|machine| machine.part_read(file.number, piece)) {
            Known::Part | Known::Late => Ok(()),
            Known::Twice => Err(Trouble::Beyond(
                "a chunk of it was read twice: a defect".to_owned(),
            )),
            Known::All => self.settle_if_unchanged(file, open),
        }
    }

    /// Says that `file` may take its name, if it is still what was announced.
    pub(super) fn settle_if_unchanged(&self, file: &Sending, open: &OpenFile) -> Result<(), Trouble> {
        steady::end(&file.found, open.fd())?;
        if self.ask(|machine| machine.all_read(file.number)) {
            file.close();
        }
        Ok(())
    }

    /// Whether what is read is what the files have.
    pub(super) const fn reads_files(&self) -> bool {
        use farline_spec::FileEngine::{Memory, Null};
        !matches!(self.choice.engine, Null | Memory)
    }
}

/// How far the hole or the data at `offset` go.
fn reach(open: &OpenFile, offset: u64, file_bytes: u64) -> std::io::Result<Reach> {
    let data = file::data_after(open.fd(), offset)?.map_or(file_bytes, |data| data.min(file_bytes));
    let hole_end = match data == file_bytes {
        true => data,
        false => data / GRAIN_BYTES * GRAIN_BYTES,
    };
    if hole_end > offset {
        return Ok(Reach {
            end: hole_end,
            is_hole: true,
        });
    }
    let hole = file::hole_after(open.fd(), data)?;
    Ok(Reach {
        end: hole.max(offset + 1).next_multiple_of(GRAIN_BYTES),
        is_hole: false,
    })
}
