//! The receiving end of a copy as a machine: what is wanted of each entry, what of it is proved, and when it is ready for its name.
//!
//! What it does: takes what the sending end says and what became of what it asked for; keeps every entry that is not settled
//! at its place in the [`table`]; gives out answers and messages, and what is to be done, in an order that may be relied on.
//! What it must not do: see `lib.rs`; look at a destination, hash or write a byte: whoever drives it does.
//!
//! ```text
//! CopyReceiver::new ─► handle_message ─► Heard::Look ─► looked ─► handle_message …      one thread, in order
//!                      check_chunk ─► (hash) ─► take_chunk ─► (write) ─► written        any thread, in any order
//!                      check_item ─► (hash) ─► take_item ─► (write) ─► items_written
//!                      poll_action ─► (do it) ─► conclude ─► (receipt) ─► leave ─► did
//!                      poll_message
//! ```
//!
//! An entry is settled in two steps: [`CopyReceiver::conclude`] makes sure that it is done once, [`CopyReceiver::leave`] tells
//! it and lets go of it. Nothing that comes after all entries begins between them. Memory is bounded: entries under way,
//! what they say of themselves, and parts that do not touch have limits, and the copy ends where the other end passes one.
//!
//! Call order: what was taken with [`CopyReceiver::poll_action`] is given back with [`CopyReceiver::did`]; [`Heard::Look`] is
//! answered with [`CopyReceiver::looked`] before the next message; [`Action::Close`] is answered with
//! [`CopyReceiver::finish`]. Times are nanoseconds of any monotonic clock.

mod catalogue;
mod data;
mod decide;
mod entry;
mod fold;
mod outbox;
mod queue;
mod seen;
mod settle;
pub mod table;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use farline_spec::{Failure, FailureKind, SumKind};

use super::message::{Feedback, Owner, Top};
use super::sum::Sum;
use entry::Entry;
use outbox::Outbox;
use queue::{Queue, Work};

pub use catalogue::Looked;
pub use data::{Admission, Chunk, Item, Known, Proof};
pub use decide::{Compared, OTHER_CONTENT, Verdict, compare, replacement};
pub use fold::Fold;
pub use seen::{LateFolder, OwnerIds, Seen};
pub use settle::{Counted, Parting};

/// The sum of a file, or of a part of one.
pub type Hash = Sum;
/// Sixteen bytes that stand for a path ([`super::journal::path_key`]).
pub type Key = [u8; 16];

/// Bytes of paths and attributes of entries under way.
const MOST_OPEN_BYTES: usize = 64 << 20;

/// What a copy is to be like, as far as this end decides by it.
#[derive(Debug, Clone)]
pub struct Config {
    /// With what content is proved; `None` where nothing is hashed.
    pub sum: Option<SumKind>,
    /// Whether small files wait until a group of them is brought to the device.
    pub is_durable: bool,
    /// Whether further names of files are kept as such.
    pub has_further_names: bool,
    /// Whether the other end knows of further names that come by themselves ([`Feedback::Apart`]).
    pub takes_names_apart: bool,
    /// Offset and length of what is to come of each file, where that is not all of it: other sessions carry the rest.
    pub range: Option<(u64, u64)>,
    /// The length of chunks that was asked for; any that may be, if none was.
    pub chunk_bytes: Option<u64>,
    /// Entries that may be under way.
    pub most_entries: usize,
    /// Bytes that may be wanted in all: a ticket's limit.
    pub most_bytes: u64,
    /// Small files that may wait, written and open, for their group.
    pub most_open_files: usize,
    /// Parts of files that do not touch, of all files under way; each takes about a hundred bytes with its hash.
    pub most_parts: usize,
}

/// What is to be done at once about what the sending end said.
#[derive(Debug)]
pub enum Heard<T> {
    /// Nothing.
    Nothing,
    /// The catalogue begins; this is what the destination folder itself should be like, if it is told.
    Begin(Option<Top>),
    /// The destination is to be looked at for the entry of this number; then [`CopyReceiver::looked`].
    Look(u64, super::message::Entry),
    /// The extended attributes that the destination folder itself should have.
    TopXattrs(Vec<super::message::Xattr>),
    /// Whose the entries that follow are; whether it is said before all entries.
    Owner(Owner, bool),
    /// A name of the sources that does not come.
    Unannounced(super::message::Catalogue),
    /// Every name that the sources have was said.
    AllAnnounced,
    /// The sending end gave this file up: what came of it goes, then [`CopyReceiver::leave`] with [`Parting::Lost`].
    Lost {
        /// Its number.
        file: u64,
        /// What is kept of it.
        kept: T,
        /// What of it was counted.
        counted: Counted,
        /// Why, as the other end says it.
        reason: String,
        /// Whether it is tried once more, as a later entry.
        again: bool,
    },
    /// There are no more entries; how many there were.
    End(u64),
}

/// What is to be done besides writing. Any thread does it; [`CopyReceiver::did`] when it is done.
#[derive(Debug)]
pub enum Action<T> {
    /// The entry cannot be made, for this reason: what came of it goes.
    GiveUp(T, &'static str),
    /// A further name is made: its file is there.
    Link(T),
    /// Large files are brought to the device where that is asked for, noted and named ([`super::naming`]).
    Finish(Vec<Ready<T>>),
    /// The same for small files, which stand under no name.
    Group(Vec<Ready<T>>),
    /// A part of a hole is claimed ([`CopyReceiver::claim_hole`]), punched and hashed: offset and length.
    Hole(T, u64, u64),
    /// Every entry is settled: what comes after all of them ([`super::naming::closing`]), then [`CopyReceiver::finish`].
    Close {
        /// Whether every source could be read.
        whole: bool,
    },
}

/// A file of which nothing is missing but its name.
#[derive(Debug, Clone)]
pub struct Ready<T> {
    /// Its number.
    pub file: u64,
    /// What is kept of it.
    pub kept: T,
    /// Its sum; `None` where nothing is hashed.
    pub hash: Option<Hash>,
}

/// What the last message of the catalogue said.
#[derive(Debug, Clone, Copy)]
struct End {
    entries: u64,
    whole: bool,
}

/// The receiving end of one copy. `T` is what its driver keeps of an entry: whatever names it by.
#[derive(Debug)]
pub struct CopyReceiver<T> {
    config: Config,
    /// Chunk in use, once it is told.
    chunk_bytes: Option<u64>,
    /// Whether the other end wants to hear of files that are whole before it settles them.
    says_whole: bool,
    /// Numbers so far; that of the next entry.
    next: u64,
    /// Whether an entry is being looked at.
    is_looking: bool,
    open: HashMap<u64, Entry<T>>,
    open_bytes: usize,
    end: Option<End>,
    /// Further names that wait, by the path of their file.
    waiting: HashMap<Key, Vec<u64>>,
    /// Files that are not there, by path, where further names may come.
    gone: HashSet<Key>,
    queue: Queue,
    outbox: Outbox,
    /// Parts that do not touch, of all files under way.
    parts: usize,
    repeated_chunks: u64,
    wanted_bytes: u64,
    /// Whether a file was given up for good at its source.
    has_lost: bool,
    /// Whether data may still come that nobody waits for.
    has_stragglers: bool,
}

impl<T: Clone> CopyReceiver<T> {
    /// A copy that has not begun.
    pub fn new(config: Config) -> Self {
        Self {
            queue: Queue::new(config.most_open_files),
            config,
            chunk_bytes: None,
            says_whole: false,
            next: 0,
            is_looking: false,
            open: HashMap::new(),
            open_bytes: 0,
            end: None,
            waiting: HashMap::new(),
            gone: HashSet::new(),
            outbox: Outbox::default(),
            parts: 0,
            repeated_chunks: 0,
            wanted_bytes: 0,
            has_lost: false,
            has_stragglers: false,
        }
    }

    /// The destination was looked at; `fresh` if nothing of it is there, so that the sending end need not wait for answers. The first
    /// message.
    pub fn start(&mut self, fresh: bool) {
        self.outbox.first = Some(Feedback::Ready { fresh });
    }

    /// The next message to the sending end.
    pub fn poll_message(&mut self) -> Option<Feedback> {
        self.outbox.next()
    }

    /// Whether there is a message.
    pub fn has_messages(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Answers and messages that wait: who makes more waits until they are few.
    pub fn messages_waiting(&self) -> usize {
        self.outbox.len()
    }

    /// Says something of what is at the destination: [`Feedback::Deleted`].
    pub fn say(&mut self, message: Feedback) {
        self.outbox.messages.push_back(message);
    }

    /// The next thing to do at `now_ns`.
    pub fn poll_action(&mut self, now_ns: u64) -> Option<Action<T>> {
        while let Some(work) = self.queue.next(now_ns) {
            let action = match work {
                Work::GiveUp(file, reason) => self.kept(file).map(|kept| Action::GiveUp(kept, reason)),
                Work::Link(file) => self.kept(file).map(Action::Link),
                Work::Finish(files) => some(self.ready(&files)).map(Action::Finish),
                Work::Group(files) => some(self.ready(&files)).map(Action::Group),
                Work::Hole(file, offset, bytes) => {
                    self.kept(file).map(|kept| Action::Hole(kept, offset, bytes))
                }
                Work::Close => self.end.map(|end| Action::Close {
                    whole: end.whole && !self.has_lost,
                }),
            };
            if action.is_some() {
                return action;
            }
            // What it was about is settled.
            self.queue.did();
        }
        None
    }

    /// An action is done.
    pub const fn did(&mut self) {
        self.queue.did();
    }

    /// Things to do that wait.
    pub fn work_waiting(&self) -> usize {
        self.queue.waiting()
    }

    /// Whether anything is being done, or waits to be.
    pub fn is_busy(&self) -> bool {
        self.queue.is_busy()
    }

    /// Whether who brings files that are whole has to wait.
    pub fn is_full_of_files(&self) -> bool {
        self.queue.is_full_of_files()
    }

    /// Whether who brings small files has to wait.
    pub fn is_full_of_small(&self) -> bool {
        self.queue.is_full_of_small()
    }

    /// Whether who brings holes has to wait.
    pub fn is_full_of_holes(&self) -> bool {
        self.queue.is_full_of_holes()
    }

    /// What comes after all entries is done; `problems` are said to the other end, a line each. The last message.
    pub fn finish(&mut self, problems: Vec<String>) {
        self.outbox.last = Some(Feedback::Finished { problems });
    }

    /// Entries under way.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// What is kept of all entries under way.
    pub fn all(&self) -> Vec<T> {
        self.open.values().map(|entry| entry.kept.clone()).collect()
    }

    /// What of a file under way is proved, and what is not: offset and length.
    pub fn proved_and_gaps(&self, file: u64) -> (usize, Vec<(u64, u64)>) {
        let Some(entry) = self.open.get(&file) else {
            return (0, Vec::new());
        };
        match &entry.parts {
            Some(parts) => (parts.proved.count(), parts.proved.gaps(entry.bytes)),
            None => (0, vec![(0, entry.bytes)]),
        }
    }

    /// Numbers so far; that of the next entry.
    pub const fn entries(&self) -> u64 {
        self.next
    }

    /// Chunk in use, once it is told.
    pub const fn chunk_bytes(&self) -> Option<u64> {
        self.chunk_bytes
    }

    /// Chunks and packs that came damaged or did not open, and were asked for again.
    pub const fn repeated_chunks(&self) -> u64 {
        self.repeated_chunks
    }

    /// Whether data may still come that nobody waits for: of files that were given up while they came.
    pub const fn has_stragglers(&self) -> bool {
        self.has_stragglers
    }

    /// Bytes that further names and what they wait for take besides their entries, about.
    pub fn names_bytes(&self) -> usize {
        const WAITING_BYTES: usize = 64;
        const GONE_BYTES: usize = 24;
        self.waiting.len() * WAITING_BYTES + self.gone.len() * GONE_BYTES
    }

    fn kept(&self, file: u64) -> Option<T> {
        self.open.get(&file).map(|entry| entry.kept.clone())
    }

    /// Those of `files` that are ready still.
    fn ready(&self, files: &[u64]) -> Vec<Ready<T>> {
        let of = |file: &u64| {
            let entry = self.open.get(file)?;
            (entry.stage == table::Stage::Ready).then(|| Ready {
                file: *file,
                kept: entry.kept.clone(),
                hash: entry.hash,
            })
        };
        files.iter().filter_map(of).collect()
    }
}

fn some<R>(files: Vec<R>) -> Option<Vec<R>> {
    (!files.is_empty()).then_some(files)
}

fn broken(line: impl Into<String>) -> Failure {
    Failure::new(FailureKind::Protocol, line)
}
