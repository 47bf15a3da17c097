//! How far a file is that goes in chunks: what of it is handed out, spared, read, and to be read once more.

use std::collections::VecDeque;

use farline_spec::SumKind;

use super::super::message::{Proved, is_part};
use super::super::sum::Sum;
use super::super::tree_hash::TreeHash;

/// Bytes of neighbouring chunks that one reader takes at a time, to a multiple of them.
const SPAN_BYTES: u64 = 4 << 20;
/// Bytes of a hole that one reader takes at a time, to a multiple of them.
const HOLE_BYTES: u64 = 256 << 20;

/// Neighbouring chunks that one reader takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Where the first begins.
    pub offset: u64,
    /// Where the last ends.
    pub end: u64,
    /// It is a hole: nothing to read or send.
    pub is_hole: bool,
    /// It was read before and counts no more.
    pub is_repeat: bool,
}

/// How far the hole or the data go that a span begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// Where they end: at a multiple of [`GRAIN_BYTES`](super::super::message::GRAIN_BYTES), or with the file.
    pub end: u64,
    /// Whether it is a hole.
    pub is_hole: bool,
}

/// A part of a file that is known now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Where it begins.
    pub offset: u64,
    /// How long it is.
    pub bytes: u64,
    /// Its sum; `None` where nothing is hashed.
    pub hash: Option<Sum>,
    /// It was read before and counts no more.
    pub is_repeat: bool,
}

/// How far a file in chunks is.
#[derive(Debug)]
pub(super) struct Chunks {
    chunk_bytes: u64,
    /// Where what is carried of it ends.
    limit: u64,
    /// Its hash as far as it is known; `None` where nothing is hashed.
    pub tree: Option<TreeHash>,
    /// What is handed out is before this.
    cursor: u64,
    /// What needs no reading: offset and end, in order.
    spared: VecDeque<(u64, u64)>,
    /// Bytes that are neither read nor spared nor holes.
    unread_bytes: u64,
    /// Chunks to be read once more: offset and end.
    repeat: VecDeque<(u64, u64)>,
    /// Bytes of those that have not been read yet, those handed out included.
    repeat_bytes: u64,
    /// Whether there may be holes to look for.
    pub may_have_holes: bool,
    /// Nobody reads it here: its bytes are taken from the file when they leave.
    pub is_straight: bool,
    /// The other end has all of it.
    pub has_arrived: bool,
    /// The other end was told that all of it was read.
    is_told: bool,
}

impl Chunks {
    /// A file of `bytes` bytes of which nothing has been read.
    pub fn new(bytes: u64, chunk_bytes: u64, sum: Option<SumKind>, may_have_holes: bool) -> Self {
        Self {
            chunk_bytes,
            limit: bytes,
            tree: sum.map(|kind| TreeHash::new(kind, bytes)),
            cursor: 0,
            spared: VecDeque::new(),
            unread_bytes: bytes,
            repeat: VecDeque::new(),
            repeat_bytes: 0,
            may_have_holes,
            is_straight: false,
            has_arrived: false,
            is_told: false,
        }
    }

    /// Only the `bytes` bytes from `offset` on, of a file of `file_bytes`: other sessions carry the rest.
    pub fn only(mut self, offset: u64, bytes: u64, file_bytes: u64) -> Self {
        self.limit = offset.saturating_add(bytes).min(file_bytes);
        self.cursor = offset.min(self.limit);
        self.unread_bytes = self.limit - self.cursor;
        self
    }

    /// Leaves out what the other end has; gives its bytes, or `None` for parts that cannot be.
    pub fn spare(&mut self, parts: &[Proved], file_bytes: u64) -> Option<u64> {
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

    /// Passes over what is spared at the cursor; then where the next span begins, and where it ends at the latest.
    pub fn next(&mut self) -> Option<(u64, u64)> {
        while let Some(&(_, end)) = self.spared.front().filter(|(start, _)| *start <= self.cursor) {
            self.cursor = end;
            self.spared.pop_front();
        }
        let stop = self.spared.front().map_or(self.limit, |(start, _)| *start);
        (self.cursor < self.limit).then_some((self.cursor, stop))
    }

    /// The next chunks that nobody has taken, as far as `reach` goes; `None` when all have been handed out.
    pub fn cut(&mut self, reach: Option<Reach>) -> Option<Span> {
        if let Some((offset, end)) = self.repeat.pop_front() {
            return Some(Span {
                offset,
                end,
                is_hole: false,
                is_repeat: true,
            });
        }
        let (offset, stop) = self.next()?;
        let full = |most: u64| stop.min((offset + 1).next_multiple_of(most));
        let is_hole = reach.is_some_and(|reach| reach.is_hole);
        let most = match is_hole {
            true => full(HOLE_BYTES),
            false => full(SPAN_BYTES.max(self.chunk_bytes)),
        };
        // A reach that ends before this was of an earlier span.
        let reached = reach.map(|reach| reach.end).filter(|end| *end > offset);
        let end = reached.map_or(most, |end| end.min(most));
        self.cursor = end;
        Some(Span {
            offset,
            end,
            is_hole: is_hole && reached.is_some(),
            is_repeat: false,
        })
    }

    /// Bytes behind what is handed out.
    pub const fn left_bytes(&self) -> u64 {
        self.limit - self.cursor
    }

    /// Whether something is left to hand out.
    pub fn has_more(&mut self) -> bool {
        !self.repeat.is_empty() || self.next().is_some()
    }

    /// Whether the next span is one that is read once more.
    pub fn is_to_repeat(&self) -> bool {
        !self.repeat.is_empty()
    }

    /// Asks for the chunk of `bytes` bytes at `offset` once more.
    pub fn repeat(&mut self, offset: u64, bytes: u64) {
        self.repeat_bytes += bytes;
        self.repeat.push_back((offset, offset + bytes));
    }

    /// Notes a part that is known now; false for one that was known before.
    pub fn read(&mut self, piece: &Piece) -> bool {
        let left = match piece.is_repeat {
            true => &mut self.repeat_bytes,
            false => &mut self.unread_bytes,
        };
        *left = left.saturating_sub(piece.bytes);
        match (&mut self.tree, piece.hash) {
            (Some(tree), Some(hash)) if !piece.is_repeat => tree.insert(piece.offset, piece.bytes, hash),
            _ => true,
        }
    }

    /// Whether it is known what was sent: everything has been read, and what went straight to streams has arrived.
    pub const fn is_known(&self) -> bool {
        self.is_read() && (!self.is_straight || self.has_arrived)
    }

    /// Whether everything has been read.
    pub const fn is_read(&self) -> bool {
        self.unread_bytes == 0 && self.repeat_bytes == 0
    }

    /// The other end is told that all of it was read; whether it is the first time.
    pub const fn tell(&mut self) -> bool {
        !std::mem::replace(&mut self.is_told, true)
    }
}
