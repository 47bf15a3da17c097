//! One entry under way: announced, not settled yet. What it takes to read it and to know what has been read.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use farline_spec::SumKind;
use farline_sys::file;

use super::found::{Found, What};
use super::straight::Place;
use crate::engine::OpenFile;
use crate::message::{GRAIN_BYTES, Proved, is_part};
use crate::sum::Sum;
use crate::tree_hash::TreeHash;

/// How often one chunk is sent again before its file fails.
const MOST_REPEATS: u8 = 3;
/// Bytes of neighbouring chunks that one reader takes at a time, to a multiple of them.
const SPAN_BYTES: u64 = 4 << 20;
/// Bytes of a hole that one reader takes at a time, to a multiple of them.
const HOLE_BYTES: u64 = 256 << 20;

/// One entry under way.
#[derive(Debug)]
pub(super) struct Sending {
    /// Number of the entry.
    pub(super) number: u64,
    /// What it is.
    pub(super) found: Found,
    /// Number of the file, announced before, that it is one more name of.
    pub(super) link_to: Option<u64>,
    /// Bytes not handed out yet; who helps goes where most is left.
    pub(super) left_bytes: AtomicU64,
    state: Mutex<State>,
}

/// How far it is.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Where it stands.
    pub(super) phase: Phase,
    /// The other end has said what it wants.
    pub(super) is_answered: bool,
    /// It counts among the files that may have to be read still.
    pub(super) is_unread: bool,
    /// Its sum, once read.
    pub(super) hash: Option<Sum>,
    /// Bytes of it that the progress counts as settled.
    pub(super) credited_bytes: u64,
    /// Bytes that a journal proved.
    pub(super) resumed_bytes: u64,
    /// Chunks sent again: where, how often.
    repeats: HashMap<u64, u8>,
    /// Of files that go in chunks.
    pub(super) chunks: Option<Box<Chunks>>,
}

/// Where an entry stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Phase {
    /// Announced; nothing of it is read yet.
    #[default]
    Announced,
    /// Its content is wanted and being read.
    Wanted,
    /// All has been read, and it had not changed.
    Read,
    /// Settled, or given up: nothing of it is read any more.
    Over,
}

/// How far a file in chunks is.
#[derive(Debug)]
pub(super) struct Chunks {
    chunk_bytes: u64,
    /// Where what is carried of it ends.
    limit: u64,
    /// Its hash as far as it is known; `None` where nothing is hashed.
    pub(super) tree: Option<TreeHash>,
    /// The file, while chunks of it are read, or go straight to streams.
    pub(super) open: Option<Arc<OpenFile>>,
    /// Its place among the files that go straight to streams, if it has one.
    pub(super) place: Option<Place>,
    /// What is handed out is before this.
    cursor: u64,
    /// What needs no reading: offset and end, in order.
    spared: VecDeque<(u64, u64)>,
    /// Bytes that are neither read nor spared nor holes.
    unread_bytes: u64,
    /// Whether there may be holes to look for.
    pub(super) may_have_holes: bool,
    /// Chunks to be read once more: offset and end.
    repeat: VecDeque<(u64, u64)>,
    /// Bytes of those that have not been read yet, those handed out included.
    repeat_bytes: u64,
    /// The other end has been told that all of it was read.
    is_told: bool,
    /// The other end has all of it.
    pub(super) has_arrived: bool,
}

/// Neighbouring chunks that one reader takes.
#[derive(Debug)]
pub(super) struct Span {
    /// The file.
    pub(super) file: Arc<Sending>,
    /// The file, open.
    pub(super) open: Arc<OpenFile>,
    /// Where the next chunk begins.
    pub(super) offset: u64,
    /// Where the last one ends.
    pub(super) end: u64,
    /// It is a hole: nothing to read or send.
    pub(super) is_hole: bool,
    /// It was read before and counts no more.
    pub(super) is_repeat: bool,
    /// Its bytes are not read here.
    pub(super) is_straight: bool,
}

impl Sending {
    /// An entry just announced; `may_come_apart`: what is one more name of a file may have to be read by itself.
    pub(super) fn new(number: u64, found: Found, link_to: Option<u64>, may_come_apart: bool) -> Self {
        let is_unread = matches!(found.what, What::File(_)) && (link_to.is_none() || may_come_apart);
        let state = State {
            is_unread,
            ..State::default()
        };
        Self {
            number,
            link_to,
            left_bytes: AtomicU64::new(found.bytes()),
            found,
            state: Mutex::new(state),
        }
    }

    /// Whether it has content of its own.
    pub(super) const fn has_content(&self) -> bool {
        matches!(self.found.what, What::File(_)) && self.link_to.is_none()
    }

    /// How far it is. Held for moments, and while the file is opened.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// It need not be read any more, or not again; whether it counted until now.
    pub(super) const fn take_unread(&mut self) -> bool {
        std::mem::replace(&mut self.is_unread, false)
    }

    /// Notes that the chunk at `offset` is wanted once more; false when it was too often.
    pub(super) fn may_repeat(&mut self, offset: u64) -> bool {
        let times = self.repeats.entry(offset).or_default();
        *times += 1;
        *times <= MOST_REPEATS
    }
}

impl Chunks {
    /// A file of `bytes` bytes of which nothing has been read.
    pub(super) fn new(bytes: u64, chunk_bytes: u64, sum: Option<SumKind>, may_have_holes: bool) -> Self {
        Self {
            chunk_bytes,
            limit: bytes,
            tree: sum.map(|kind| TreeHash::new(kind, bytes)),
            open: None,
            place: None,
            cursor: 0,
            spared: VecDeque::new(),
            unread_bytes: bytes,
            may_have_holes,
            repeat: VecDeque::new(),
            repeat_bytes: 0,
            is_told: false,
            has_arrived: false,
        }
    }

    /// Only the `bytes` bytes from `offset` on, of a file of `file_bytes`: other sessions carry the rest.
    pub(super) fn only(mut self, offset: u64, bytes: u64, file_bytes: u64) -> Self {
        self.limit = offset.saturating_add(bytes).min(file_bytes);
        self.cursor = offset.min(self.limit);
        self.unread_bytes = self.limit - self.cursor;
        self
    }

    /// Leaves out what the other end has; gives its bytes, or `None` for parts that cannot be.
    pub(super) fn spare(&mut self, parts: &[Proved], file_bytes: u64) -> Option<u64> {
        let mut parts: Vec<Proved> = parts.to_vec();
        parts.sort_unstable_by_key(|part| part.offset);
        let mut at = self.cursor;
        for part in &parts {
            if part.offset < at || !is_part(part.offset, part.bytes, file_bytes) {
                return None;
            }
            let end = part.offset + part.bytes;
            if end > self.limit {
                return None;
            }
            if let Some(tree) = &mut self.tree {
                tree.insert(part.offset, part.bytes, part.hash?).then_some(())?;
            }
            self.spared.push_back((part.offset, end));
            at = end;
        }
        let spared = parts.iter().map(|part| part.bytes).sum();
        self.unread_bytes -= spared;
        Some(spared)
    }

    /// The next chunks that nobody has taken; `None` when all have been handed out.
    pub(super) fn cut(&mut self, file: &Arc<Sending>, open: &Arc<OpenFile>) -> Option<Span> {
        let file_bytes = file.found.bytes();
        let (offset, end, is_hole, is_repeat) = match self.repeat.pop_front() {
            Some((offset, end)) => (offset, end, false, true),
            None => {
                let (offset, end, is_hole) = self.advance(open, file_bytes)?;
                file.left_bytes.store(file_bytes - end, Ordering::Relaxed);
                (offset, end, is_hole, false)
            }
        };
        Some(Span {
            file: Arc::clone(file),
            open: Arc::clone(open),
            offset,
            end,
            is_hole,
            is_repeat,
            is_straight: self.place.is_some(),
        })
    }

    fn advance(&mut self, open: &OpenFile, file_bytes: u64) -> Option<(u64, u64, bool)> {
        while let Some(&(_, end)) = self.spared.front().filter(|(start, _)| *start <= self.cursor) {
            self.cursor = end;
            self.spared.pop_front();
        }
        let offset = self.cursor;
        let stop = self.spared.front().map_or(self.limit, |(start, _)| *start);
        if offset >= self.limit {
            return None;
        }
        let full = stop.min((offset + 1).next_multiple_of(SPAN_BYTES.max(self.chunk_bytes)));
        let (end, is_hole) = match self.reach(open, offset, stop, file_bytes) {
            Ok(Some((end, is_hole))) => (end.min(if is_hole { stop } else { full }), is_hole),
            Ok(None) => (full, false),
            Err(_) => {
                // A file system that does not say where holes are: what is wrong with the file, reading it tells.
                self.may_have_holes = false;
                (full, false)
            }
        };
        self.cursor = end;
        Some((offset, end, is_hole))
    }

    /// How far the hole or the data at `offset` go, and whether it is a hole; `None` where nobody looks.
    fn reach(
        &self,
        open: &OpenFile,
        offset: u64,
        stop: u64,
        file_bytes: u64,
    ) -> std::io::Result<Option<(u64, bool)>> {
        if !self.may_have_holes {
            return Ok(None);
        }
        let data = file::data_after(open.fd(), offset)?.map_or(file_bytes, |data| data.min(file_bytes));
        let hole_end = match data == file_bytes {
            true => data,
            false => data / GRAIN_BYTES * GRAIN_BYTES,
        };
        if hole_end > offset {
            let full = (offset + 1).next_multiple_of(HOLE_BYTES);
            return Ok(Some((hole_end.min(stop).min(full), true)));
        }
        let hole = file::hole_after(open.fd(), data)?;
        let data_end = hole.max(offset + 1).next_multiple_of(GRAIN_BYTES);
        Ok(Some((data_end, false)))
    }

    /// Whether something is left to hand out.
    pub(super) fn has_more(&self) -> bool {
        let mut cursor = self.cursor;
        for (start, end) in &self.spared {
            if *start <= cursor {
                cursor = *end;
            }
        }
        !self.repeat.is_empty() || cursor < self.limit
    }

    /// Asks for the chunk of `bytes` bytes at `offset` once more.
    pub(super) fn repeat(&mut self, offset: u64, bytes: u64) {
        self.repeat_bytes += bytes;
        self.repeat.push_back((offset, offset + bytes));
    }

    /// Notes that `bytes` more are known.
    pub(super) const fn read(&mut self, bytes: u64, is_repeat: bool) {
        if is_repeat {
            self.repeat_bytes = self.repeat_bytes.saturating_sub(bytes);
        } else {
            self.unread_bytes = self.unread_bytes.saturating_sub(bytes);
        }
    }

    /// Whether it is known what was sent: everything has been read, and what went straight to streams has arrived.
    pub(super) const fn is_known(&self) -> bool {
        self.is_read() && (self.place.is_none() || self.has_arrived)
    }

    /// Whether everything has been read.
    pub(super) const fn is_read(&self) -> bool {
        self.unread_bytes == 0 && self.repeat_bytes == 0
    }

    /// The other end is told that all of it was read; whether it is the first time.
    pub(super) const fn settle(&mut self) -> bool {
        !std::mem::replace(&mut self.is_told, true)
    }
}
