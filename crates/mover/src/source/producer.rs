//! Reads what the supply has and gives frames that are ready to be sent; on a stream's thread or one of its own.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use farline_spec::{CopyShare, Failure, FailureKind};

use super::folders::Folders;
use super::pool::Pool;
use super::read_scheduler::Work;
use super::sending::{Chunks, Phase, Sending, Span, State};
use super::settle::Trouble;
use super::shared::{CatalogueUpdate, Shared};
use super::steady;
use super::straight::Pointer;
use crate::engine::{self, Completed, OpenFile, Reader, Request};
use crate::frame::{Frame, FrameKind, Header};
use crate::message::{Catalogue, GRAIN_BYTES};
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
    span: Option<Span>,
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
        while let Some(batch) = self.shared.supply.take_small() {
            if let Some(filled) = self.fill_pack(batch) {
                return Some(filled);
            }
        }
        None
    }

    fn find_work(&mut self) -> Found {
        while let Some(work) = self.shared.supply.take(self.file.as_ref()) {
            match work {
                Work::Pack(batch) => {
                    if let Some(filled) = self.fill_pack(batch) {
                        return Found::Pack(filled);
                    }
                }
                Work::File(file) => match self.cut(&file) {
                    Err(trouble) => self.shared.lost(&file, &trouble),
                    Ok(None) => self.shared.supply.handed_out(&file),
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
    fn cut(&mut self, file: &Arc<Sending>) -> Result<Option<Span>, Trouble> {
        let mut state = file.lock();
        let State { phase, chunks, .. } = &mut *state;
        let Some(chunks) = chunks.as_mut().filter(|_| *phase == Phase::Wanted) else {
            return Ok(None);
        };
        let open = match &chunks.open {
            Some(open) => {
                // Now and then, so that not all of a large file is sent for nothing.
                steady::end(&file.found, open.fd())?;
                Arc::clone(open)
            }
            None => {
                let open = self.shared.gauges.name_ns.time(|| {
                    let opened = self.folders.open(&self.shared, &file.found)?;
                    self.reader.adopt(opened)
                })?;
                steady::begin(&file.found, open.fd())?;
                let device = file.found.facts.device;
                let straight = self.shared.straight.as_ref();
                chunks.place = straight.and_then(|straight| straight.place(device));
                Arc::clone(chunks.open.insert(open))
            }
        };
        let span = chunks.cut(file, &open);
        if !chunks.has_more() {
            self.shared.supply.handed_out(file);
        }
        Ok(span)
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
        let is_wanted = |span: &Span| span.file.lock().phase == Phase::Wanted;
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
                piece: Piece::of(&asked, None),
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
                    .has_read(&asked.file, &request.file, &Piece::of(&asked, hash))
                    .err()
            }
        };
        let is_wanted = asked.file.lock().phase != Phase::Over;
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

    /// A hole is hashed as the zeros it stands for, and said instead of sent.
    fn pass_hole(&self, span: &Span) {
        let shared = &self.shared;
        shared.say(CatalogueUpdate::Message(Catalogue::Hole {
            file: span.file.number,
            offset: span.offset,
            bytes: span.end - span.offset,
        }));
        shared
            .hole_bytes
            .fetch_add(span.end - span.offset, Ordering::Relaxed);
        shared.gauges.spared_bytes.add(span.end - span.offset);
        shared.credit(&span.file, span.end - span.offset);
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

/// A part of a file that is known now.
#[derive(Debug)]
pub(super) struct Piece {
    /// Where it begins.
    pub(super) offset: u64,
    bytes: u64,
    hash: Option<Sum>,
    is_repeat: bool,
}

impl Piece {
    const fn of(asked: &Asked, hash: Option<Sum>) -> Self {
        Self {
            offset: asked.offset,
            bytes: asked.bytes,
            hash,
            is_repeat: asked.is_repeat,
        }
    }
}

impl Shared {
    /// Notes that a part of `file` has been read; after the last one, looks whether the file is still what it was and says so.
    pub(super) fn has_read(
        &self,
        file: &Arc<Sending>,
        open: &OpenFile,
        piece: &Piece,
    ) -> Result<(), Trouble> {
        {
            let mut state = file.lock();
            let State { phase, chunks, .. } = &mut *state;
            let Some(chunks) = chunks.as_mut().filter(|_| *phase == Phase::Wanted) else {
                return Ok(());
            };
            let is_new = match (&mut chunks.tree, piece.hash) {
                (Some(tree), Some(hash)) if !piece.is_repeat => tree.insert(piece.offset, piece.bytes, hash),
                _ => true,
            };
            if !is_new {
                return Err(Trouble::Beyond(
                    "a chunk of it was read twice: a defect".to_owned(),
                ));
            }
            chunks.read(piece.bytes, piece.is_repeat);
            if !chunks.is_known() {
                return Ok(());
            }
        }
        self.settle_if_unchanged(file, open)
    }

    /// Says that `file` may take its name, if it is still what was announced.
    pub(super) fn settle_if_unchanged(&self, file: &Sending, open: &OpenFile) -> Result<(), Trouble> {
        steady::end(&file.found, open.fd())?;
        self.all_of_it_read(file);
        Ok(())
    }

    /// Every part of `file` is known: it may take its name at the other end.
    pub(super) fn all_of_it_read(&self, file: &Sending) {
        let (is_first, was_unread, hash) = {
            let mut state = file.lock();
            let State { phase, chunks, .. } = &mut *state;
            let Some(chunks) = chunks
                .as_mut()
                .filter(|chunks| *phase == Phase::Wanted && chunks.is_known())
            else {
                return;
            };
            (chunks.open, chunks.place) = (None, None);
            let root = chunks.tree.take().and_then(|tree| tree.root());
            let is_first = chunks.settle();
            state.hash = state.hash.or(root);
            state.phase = Phase::Read;
            (is_first, state.take_unread(), state.hash)
        };
        if is_first {
            self.say(CatalogueUpdate::Message(Catalogue::Settled {
                file: file.number,
                hash,
            }));
        }
        self.all_read(usize::from(was_unread));
    }

    /// `bytes` more of `file` count as settled until it is, or fails.
    pub(super) fn credit(&self, file: &Sending, bytes: u64) {
        let mut state = file.lock();
        if state.phase != Phase::Over {
            let bytes = bytes.min(file.found.bytes().saturating_sub(state.credited_bytes));
            state.credited_bytes += bytes;
            self.gauges.settled_bytes.add(bytes);
        }
    }

    /// How a wanted file in chunks begins.
    pub(super) fn chunks_of(&self, file: &Sending) -> Box<Chunks> {
        let facts = &file.found.facts;
        let has_holes = facts.blocks_512.saturating_mul(512) < facts.bytes;
        let may_have_holes = self.spec.sparse && has_holes && self.reads_files();
        let chunks = Chunks::new(facts.bytes, self.chunk_bytes, self.sum, may_have_holes);
        let range = self.spec.share.as_ref().and_then(CopyShare::range);
        Box::new(match range {
            Some((offset, bytes)) => chunks.only(offset, bytes, facts.bytes),
            None => chunks,
        })
    }

    /// Whether what is read is what the files have.
    pub(super) const fn reads_files(&self) -> bool {
        use farline_spec::FileEngine::{Memory, Null};
        !matches!(self.choice.engine, Null | Memory)
    }
}
