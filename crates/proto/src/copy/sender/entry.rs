//! One entry under way.

use std::collections::HashMap;

use farline_spec::Failure;

use super::super::sum::Sum;
use super::chunks::Chunks;
use super::table::{Event, Stage, Turn, after};
use super::{Announcement, broken};

/// How often one chunk is sent again before its file fails.
const MOST_REPEATS: u8 = 3;

/// What an entry is, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// Anything else: it has no content.
    Other,
}

/// An entry under way. `T` is what the caller keeps of it.
#[derive(Debug)]
pub(super) struct Entry<T> {
    pub kept: T,
    pub about: Announcement,
    /// Number of the file, announced before, that it is one more name of.
    pub link_to: Option<u64>,
    pub stage: Stage,
    /// The other end has said what it wants.
    pub is_answered: bool,
    /// It counts among the files that may have to be read still.
    pub is_unread: bool,
    /// Its sum, once read.
    pub hash: Option<Sum>,
    /// Bytes of it that count as settled already.
    pub credited_bytes: u64,
    /// Bytes that a journal proved.
    pub resumed_bytes: u64,
    /// Of files that go in chunks.
    pub chunks: Option<Box<Chunks>>,
    /// Chunks sent again: where, how often.
    repeats: HashMap<u64, u8>,
}

impl<T> Entry<T> {
    /// One just announced; `may_come_apart`: what is one more name of a file may have to be read by itself.
    pub fn new(kept: T, about: Announcement, link_to: Option<u64>, may_come_apart: bool) -> Self {
        Self {
            kept,
            about,
            link_to,
            stage: Stage::Announced,
            is_answered: false,
            is_unread: about.kind == Kind::File && (link_to.is_none() || may_come_apart),
            hash: None,
            credited_bytes: 0,
            resumed_bytes: 0,
            chunks: None,
            repeats: HashMap::new(),
        }
    }

    /// Lets an event happen; false where it comes too late.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`](farline_spec::FailureKind::Protocol) for what no sound end lets happen.
    pub fn on(&mut self, number: u64, event: Event) -> Result<bool, Failure> {
        match after(self.stage, event) {
            Turn::To(stage) => {
                self.stage = stage;
                Ok(true)
            }
            Turn::Late => Ok(false),
            Turn::Broken(why) => Err(broken(format!("entry {number} {why}"))),
        }
    }

    /// As [`Self::on`], for what this end lets happen: nothing of it is ever broken.
    pub fn turn(&mut self, event: Event) -> bool {
        match after(self.stage, event) {
            Turn::To(stage) => {
                self.stage = stage;
                true
            }
            Turn::Late | Turn::Broken(_) => false,
        }
    }

    /// Whether it has content of its own.
    pub const fn has_content(&self) -> bool {
        matches!(self.about.kind, Kind::File) && self.link_to.is_none()
    }

    /// Whether any of it has to be sent.
    pub const fn needs_content(&self) -> bool {
        self.has_content() && self.about.bytes > 0
    }

    /// It need not be read any more, or not again; whether it counted until now.
    pub const fn take_unread(&mut self) -> bool {
        std::mem::replace(&mut self.is_unread, false)
    }

    /// Notes that the chunk at `offset` is wanted once more; false when it was too often.
    pub fn may_repeat(&mut self, offset: u64) -> bool {
        let times = self.repeats.entry(offset).or_default();
        *times += 1;
        *times <= MOST_REPEATS
    }

    /// So many of its bytes count as settled already; gives how many more those are.
    pub fn credit(&mut self, bytes: u64) -> u64 {
        let bytes = bytes.min(self.about.bytes.saturating_sub(self.credited_bytes));
        self.credited_bytes += bytes;
        bytes
    }
}
