//! What a reader reads next: a span of a file that nobody has taken, cut into chunks, or small files for a pack. Holes are passed
//! over here.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use farline_proto::copy::sender::{Batch, Piece, Reach, Span, Work};
use farline_sys::file;

use super::driver::Driver;
use super::folders::Folders;
use super::reading::Reading;
use super::run::Run;
use super::sending::{Opened, Sending, Taken};
use super::steady;
use super::trouble::Trouble;
use crate::engine::{OpenFile, Reader};
use crate::message::GRAIN_BYTES;
use crate::sum::hole_sum;
use crate::tree_hash::subtree_bytes;

/// A chunk that is being read.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) tag: u64,
    pub(super) file: Arc<Sending>,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) is_repeat: bool,
}

/// What comes next.
pub(super) enum Next {
    /// A span, which the scheduler has.
    Span,
    /// Small files.
    Pack(Batch<Arc<Sending>>),
}

/// What one reader reads next.
pub(super) struct ReadScheduler {
    reading: Arc<Reading>,
    driver: Arc<Driver>,
    run: Arc<Run>,
    folders: Folders,
    /// The file it is at.
    file: Option<Arc<Sending>>,
    span: Option<Taken>,
    next_tag: u64,
}

impl ReadScheduler {
    /// One that has begun nothing.
    pub(super) fn new(reading: &Arc<Reading>, driver: &Arc<Driver>, run: &Arc<Run>) -> Self {
        Self {
            reading: Arc::clone(reading),
            driver: Arc::clone(driver),
            run: Arc::clone(run),
            folders: Folders::default(),
            file: None,
            span: None,
            next_tag: 0,
        }
    }

    /// Whether chunks of a span are left.
    pub(super) const fn has_span(&self) -> bool {
        self.span.is_some()
    }

    /// Whether those chunks are not read here.
    pub(super) fn goes_straight(&self) -> bool {
        self.span.as_ref().is_some_and(|span| span.is_straight)
    }

    /// Takes what is next, for `reader`, once there is no span left; `None` if there is nothing, or the copy is over.
    pub(super) fn next(&mut self, reader: &dyn Reader) -> Option<Next> {
        let own = self.file.as_ref().map(|file| file.number);
        while let Some(work) = self.driver.ask(|machine| machine.take(own)) {
            match work {
                Work::Pack(batch) => return Some(Next::Pack(batch)),
                Work::File(_, file) => match self.cut(reader, &file) {
                    Err(trouble) => self.driver.lost(&file, &trouble),
                    Ok(None) => {}
                    Ok(Some(span)) if span.is_hole => self.pass_hole(&span),
                    Ok(Some(span)) => {
                        self.span = Some(span);
                        self.file = Some(file);
                        return Some(Next::Span);
                    }
                },
            }
            if self.run.is_over() {
                break;
            }
        }
        None
    }

    /// Opens a file that is read at once.
    ///
    /// # Errors
    /// What keeps it from being read.
    pub(super) fn open_small(&mut self, reader: &dyn Reader, file: &Sending) -> Result<OpenFile, Trouble> {
        let reading = &self.reading;
        let opened = reading.gauges.name_ns.time(|| {
            let opened = self.folders.open(&reading.sources, &file.found)?;
            reader.adopt_small(opened)
        })?;
        Ok(opened)
    }

    /// The next chunks of `file`, which is opened if it is not.
    fn cut(&mut self, reader: &dyn Reader, file: &Arc<Sending>) -> Result<Option<Taken>, Trouble> {
        let mut opened = file.opened();
        let number = file.number;
        if !self.driver.look(|machine| machine.is_wanted(number)) {
            return Ok(None);
        }
        let opened = match &mut *opened {
            Some(opened) => {
                // Now and then, so that not all of a large file is sent for nothing.
                steady::end(&file.found, opened.file.fd())?;
                opened
            }
            none => none.insert(self.open(reader, file)?),
        };
        let open = Arc::clone(&opened.file);
        let (span, is_straight) = (self.next_span(file, &open), opened.place.is_some());
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

    fn open(&mut self, reader: &dyn Reader, file: &Sending) -> Result<Opened, Trouble> {
        let reading = &self.reading;
        let open = reading.gauges.name_ns.time(|| {
            let opened = self.folders.open(&reading.sources, &file.found)?;
            reader.adopt(opened)
        })?;
        steady::begin(&file.found, open.fd())?;
        let device = file.found.facts.device;
        let straight = reading.straight.as_ref();
        let place = straight.and_then(|straight| straight.place(device));
        self.driver
            .ask(|machine| machine.go_straight(file.number, place.is_some()));
        Ok(Opened { file: open, place })
    }

    /// The first chunk of the span, which loses it.
    pub(super) fn next_chunk(&mut self) -> Option<(Asked, Arc<OpenFile>)> {
        let span = self.span.as_mut()?;
        let file_bytes = span.file.found.bytes();
        // What spoils one chunk spoils a shorter one less often.
        let most = match span.is_repeat {
            true => GRAIN_BYTES,
            false => self.reading.chunk_bytes,
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

    /// As [`Self::next_chunk`]; `None` where its file is not wanted any more: then none of the span is.
    pub(super) fn next_wanted_chunk(&mut self) -> Option<(Asked, Arc<OpenFile>)> {
        let number = self.span.as_ref()?.file.number;
        if self.driver.look(|machine| machine.is_wanted(number)) {
            return self.next_chunk();
        }
        self.span = None;
        None
    }

    /// The next span of `file` that nobody has taken.
    fn next_span(&self, file: &Sending, open: &OpenFile) -> Option<Span> {
        let number = file.number;
        let part = self.driver.ask(|machine| machine.next_part(number));
        let reach = part.and_then(|(offset, _)| match reach(open, offset, file.found.bytes()) {
            Ok(reach) => Some(reach),
            Err(_) => {
                // A file system that does not say where holes are: what is wrong with the file, reading it tells.
                self.driver.ask(|machine| machine.ignore_holes(number));
                None
            }
        });
        self.driver.ask(|machine| machine.cut(number, reach))
    }

    /// A hole, which was said instead of sent, is hashed as the zeros it stands for.
    fn pass_hole(&self, span: &Taken) {
        let reading = &self.reading;
        reading
            .hole_bytes
            .fetch_add(span.end - span.offset, Ordering::Relaxed);
        let mut offset = span.offset;
        while offset < span.end && !self.run.is_over() {
            let file_bytes = span.file.found.bytes();
            let bytes = subtree_bytes(offset, span.end, file_bytes, reading.chunk_bytes);
            let is_whole = bytes == file_bytes;
            let zeros = |kind| hole_sum(kind, offset, bytes, is_whole);
            let timed = |kind| reading.gauges.hash_ns.time(|| zeros(kind));
            let piece = Piece {
                offset,
                bytes,
                hash: reading.sum.map(timed),
                is_repeat: false,
            };
            if let Err(trouble) = self.driver.has_read(&span.file, &span.open, &piece) {
                return self.driver.lost(&span.file, &trouble);
            }
            self.run.worked();
            offset += bytes;
        }
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
