//! The sending end of a copy as a machine: what of each entry is wanted, handed out and read, and how it ends.
//!
//! What it does: numbers what is announced and keeps every entry that is not settled at its place in the [`table`]; takes what
//! the receiving end says; gives out what is to be read next and what is to be said; knows what each frame carried, for the
//! one that does not open; lets a file that changed rest and be announced anew.
//! What it must not do: see `lib.rs`; look at a source, hash or read a byte: whoever drives it does, with [`steady`]'s rules.
//!
//! ```text
//! CopySender::new ─► announce ─► (say the entry) ─► said …  say_end         one thread, in order
//!                    poll_word ─► (say it)                                  the same
//!                    handle_message ─► poll_outcome                         one thread, in order
//!                    take ─► (open) ─► next_part ─► (holes?) ─► cut ─► (read, hash) ─► part_read ─► (look) ─► all_read
//!                    take ─► (read, hash) ─► item_read … more … pack_done   any thread, in any order
//!                    carry ─► (send) ─► credit                              a thread for each stream
//!                    lose                                                   any thread
//!                    poll_look ─► (look) ─► looked                          any thread
//! ```
//!
//! An entry is settled once: by what the receiving end says, or because its source is not what it was. The second is told
//! before the entry is let go of. Memory is bounded: entries that are under way have a limit, in number and bytes, and what is
//! remembered of frames as well.
//!
//! Call order: outcomes are taken after every call that may bring one ([`CopySender::handle_message`], [`CopySender::lose`],
//! [`CopySender::looked`]); what was taken with [`CopySender::take`] as a pack is given back with [`CopySender::pack_done`].
//! Times are nanoseconds of any monotonic clock.

mod carried;
mod catalogue;
mod chunks;
mod entry;
mod feedback;
mod looks;
mod names;
mod queue;
mod reading;
mod settle;
pub mod steady;
pub mod table;

use std::collections::{HashMap, VecDeque};

use farline_spec::{Failure, FailureKind, FileStatus, SumKind};

use super::sum::Sum;
use carried::Carried;
use entry::Entry;
use looks::Looks;
use names::Names;
use queue::Queue;

pub use carried::Cargo;
pub use catalogue::Word;
pub use chunks::{Piece, Reach, Span};
pub use entry::Kind;
pub use looks::{Look, MOST_TRIES};
pub use names::Inode;
pub use reading::{Batch, Known, Work};
pub use settle::{CHANGED, Loss};

/// Bytes of names and attributes of entries under way from which others wait; the other end takes twice that.
const MOST_LIVE_BYTES: usize = 32 << 20;

/// What a copy is to be like, as far as this end decides by it.
#[derive(Debug, Clone)]
pub struct Config {
    /// With what content is proved; `None` where nothing is hashed.
    pub sum: Option<SumKind>,
    /// Longest chunk.
    pub chunk_bytes: u64,
    /// Longest pack; a file that does not fit in one goes in chunks.
    pub pack_bytes: usize,
    /// Offset and length of what is carried of each file, where that is not all of it: other sessions carry the rest.
    pub range: Option<(u64, u64)>,
    /// Whether nothing is made: the other end says what it would want.
    pub is_dry: bool,
    /// Whether nothing is at the destination, known before it was asked.
    pub is_fresh: bool,
    /// Whether what the other end lacks is wanted without asking, where nothing is at the destination.
    pub wants_unasked: bool,
    /// Whether names of one file are said to be that.
    pub joins_names: bool,
    /// Whether such names may have to come by themselves in the end.
    pub takes_names_apart: bool,
    /// Whether frames may be asked for again by their number.
    pub remembers_frames: bool,
    /// Entries that may wait for their answer.
    pub most_unanswered: usize,
    /// Entries that may be under way.
    pub most_live: usize,
    /// Files and packs that are read at once.
    pub most_under_way: usize,
}

/// What is announced, as far as it matters here.
#[derive(Debug, Clone, Copy)]
pub struct Announcement {
    /// What it is.
    pub kind: Kind,
    /// Bytes of content.
    pub bytes: u64,
    /// Bytes that its name and attributes take.
    pub facts_bytes: usize,
    /// What tells the file from others, and how many names it has, where it has several.
    pub names: Option<(Inode, u64)>,
    /// How often it has been announced, this time included.
    pub tries: u8,
    /// Number of the file that it was one more name of, which could not be copied.
    pub apart_from: Option<u64>,
    /// Whether there may be holes to look for.
    pub may_have_holes: bool,
}

/// What came of something that was said or done, for whoever drives the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome<T> {
    /// Content of the entry is wanted.
    Wanted {
        /// Its number.
        file: u64,
        /// What is kept of it.
        kept: T,
        /// Bytes that the other end has of it.
        resumed_bytes: u64,
    },
    /// A part that came spoiled is sent again.
    Repeated {
        /// What is kept of its file.
        kept: T,
        /// Where it begins.
        offset: u64,
        /// How long it is.
        bytes: u64,
    },
    /// The entry has become something.
    Settled(Settled<T>),
    /// The other end has every byte of a file that was sent straight: it is looked at, then [`CopySender::all_read`] or
    /// [`CopySender::lose`].
    Arrived {
        /// Its number.
        file: u64,
        /// What is kept of it.
        kept: T,
    },
    /// The other end deleted this name, or would.
    Deleted(Vec<u8>),
    /// The other end can read no frame of the stream from this one on: nothing is sent on it any more.
    StreamLost {
        /// The stream.
        stream: u16,
        /// The frame.
        record: u64,
    },
    /// Everything is settled. The other end's problems besides files, a line each.
    Finished(Vec<String>),
}

/// What an entry has become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled<T> {
    /// Its number.
    pub file: u64,
    /// What is kept of it.
    pub kept: T,
    /// What.
    pub status: FileStatus,
    /// Why, one line, as the other end says it where it does.
    pub reason: Option<String>,
    /// The sum of its content, if it is known.
    pub hash: Option<Sum>,
    /// Whether it has content of its own.
    pub has_content: bool,
    /// Bytes that the other end had of it.
    pub resumed_bytes: u64,
}

/// How figures moved since they were asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Names settled well.
    pub settled_files: u64,
    /// Names that failed.
    pub failed_files: u64,
    /// Bytes of them, and of files under way what is on the other end's side; less where something has to be sent again.
    pub settled_bytes: i64,
    /// Bytes that needed no sending.
    pub spared_bytes: u64,
}

/// The sending end of one copy. `T` is what its driver keeps of an entry: whatever names it by.
#[derive(Debug)]
pub struct CopySender<T> {
    config: Config,
    /// Entries that are not settled.
    live: HashMap<u64, Entry<T>>,
    /// Bytes of their names and attributes.
    live_bytes: usize,
    /// Number of the next entry.
    next: u64,
    unanswered: usize,
    /// Files that may have to be read still, so that any of them may become a new entry.
    unread: usize,
    /// Files that are about to be announced anew.
    coming: usize,
    is_end_said: bool,
    /// `Ready` has come.
    is_ready: bool,
    /// Nothing is at the destination, as the other end said there or before.
    is_fresh: bool,
    names: Names,
    /// Wanted without asking, as soon as the other end can know of them.
    unsaid: Vec<u64>,
    queue: Queue,
    looks: Looks,
    carried: Carried,
    words: VecDeque<Word<T>>,
    outcomes: VecDeque<Outcome<T>>,
    progress: Progress,
    /// Chunks and packs that were asked for again.
    repeated_chunks: u64,
}

impl<T: Clone> CopySender<T> {
    /// A copy that has not begun.
    pub fn new(config: Config) -> Self {
        Self {
            queue: Queue::new(config.most_under_way, config.pack_bytes),
            carried: Carried::new(config.remembers_frames),
            is_fresh: config.is_fresh && config.wants_unasked,
            config,
            live: HashMap::new(),
            live_bytes: 0,
            next: 0,
            unanswered: 0,
            unread: 0,
            coming: 0,
            is_end_said: false,
            is_ready: false,
            names: Names::default(),
            unsaid: Vec::new(),
            looks: Looks::default(),
            words: VecDeque::new(),
            outcomes: VecDeque::new(),
            progress: Progress::default(),
            repeated_chunks: 0,
        }
    }

    /// What came of what was said or done.
    pub fn poll_outcome(&mut self) -> Option<Outcome<T>> {
        self.outcomes.pop_front()
    }

    /// How figures moved since the last call.
    pub fn take_progress(&mut self) -> Progress {
        std::mem::take(&mut self.progress)
    }

    /// Chunks and packs that were asked for again.
    pub const fn repeated_chunks(&self) -> u64 {
        self.repeated_chunks
    }

    /// Entries under way.
    pub fn live(&self) -> usize {
        self.live.len()
    }

    /// The entry of this number, if the other end may still say what becomes of it.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`] for a number that was not announced.
    fn under_way(&mut self, number: u64) -> Result<Option<&mut Entry<T>>, Failure> {
        if number >= self.next {
            return Err(broken(format!(
                "feedback for entry {number}, which was not announced"
            )));
        }
        let entry = self.live.get_mut(&number);
        Ok(entry.filter(|entry| entry.stage.is_under_way()))
    }

    /// Files that need no reading any more.
    const fn no_longer_unread(&mut self, was_unread: bool) {
        if was_unread {
            self.unread = self.unread.saturating_sub(1);
        }
    }
}

fn broken(line: impl Into<String>) -> Failure {
    Failure::new(FailureKind::Protocol, line)
}
