//! What is to be done besides writing: files that are whole and want their names, holes to be hashed, further names, the end.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::entry::{Entry, TICK};

/// Files that wait for their names before those who bring more have to wait too.
const MOST_WAITING: usize = 256;
/// Large files that get their names together.
const BATCH: usize = 64;
/// A group of small files goes to the device when it has so many.
const GROUP_FILES: usize = 1024;
/// Or so many bytes.
const GROUP_BYTES: u64 = 16 << 20;
/// And never has more than these.
const MOST_GROUP_BYTES: u64 = 64 << 20;
/// Holes are hashed in pieces of so many bytes, in turn: a long one keeps nothing else waiting.
const HOLE_BYTES: u64 = 256 << 20;
/// Or is so old.
const GROUP_AGE: Duration = Duration::from_millis(100);

/// A small file that is written and has no name yet.
#[derive(Debug)]
pub struct Written {
    /// What it is.
    pub entry: Arc<Entry>,
    /// The file.
    pub file: OwnedFd,
    /// Its name in the staging folder, where it could not be made without one.
    pub staged: Option<Vec<u8>>,
    /// Its hash.
    pub hash: Option<[u8; 32]>,
}

/// One thing to do.
#[derive(Debug)]
pub enum Work {
    /// Large files that are whole.
    Finish(Vec<Arc<Entry>>),
    /// Small files.
    Group(Vec<Written>),
    /// A hole of a file: offset and length.
    Hole(Arc<Entry>, u64, u64),
    /// A further name whose file is settled.
    Link(Arc<Entry>),
    /// All entries are settled.
    Close,
}

/// What waits to be done, and by how many it is being done.
#[derive(Debug)]
pub struct FinalizeQueue {
    inner: Mutex<Inner>,
    /// Something is to be done.
    more: Condvar,
    /// Something has been taken.
    less: Condvar,
    /// Files that a group may have: each is an open descriptor.
    most_group: usize,
}

#[derive(Debug, Default)]
struct Inner {
    whole: VecDeque<Arc<Entry>>,
    holes: VecDeque<(Arc<Entry>, u64, u64)>,
    links: VecDeque<Arc<Entry>>,
    group: Vec<Written>,
    group_bytes: u64,
    group_since: Option<Instant>,
    hurry: bool,
    close: bool,
    closed: bool,
    stopped: bool,
    at_work: usize,
}

impl FinalizeQueue {
    /// For a process that may have so many files open.
    pub fn new(open_files: u64) -> Self {
        let share = usize::try_from(open_files / 8).unwrap_or(usize::MAX);
        Self {
            inner: Mutex::default(),
            more: Condvar::new(),
            less: Condvar::new(),
            most_group: share.clamp(8, 2 * GROUP_FILES),
        }
    }

    /// A large file is whole. Waits while too many wait already, unless the caller is one who does these things.
    pub fn finish(&self, entry: Arc<Entry>, may_wait: bool) {
        let full = |inner: &Inner| may_wait && inner.whole.len() >= MOST_WAITING;
        self.push(full, |inner| inner.whole.push_back(entry));
    }

    /// Small files are written. Waits while there are too many.
    pub fn group(&self, files: Vec<Written>) {
        let full =
            |inner: &Inner| inner.group.len() >= self.most_group || inner.group_bytes >= MOST_GROUP_BYTES;
        self.push(full, |inner| {
            inner.group_since.get_or_insert_with(Instant::now);
            inner.group_bytes += files.iter().map(|file| file.entry.source.bytes).sum::<u64>();
            inner.group.extend(files);
        });
    }

    /// A hole is to be hashed.
    pub fn hole(&self, entry: Arc<Entry>, offset: u64, bytes: u64) {
        let full = |inner: &Inner| inner.holes.len() >= MOST_WAITING;
        self.push(full, |inner| inner.holes.push_back((entry, offset, bytes)));
    }

    /// A further name need not wait any longer.
    pub fn link(&self, entry: Arc<Entry>) {
        self.push(|_| false, |inner| inner.links.push_back(entry));
    }

    /// All entries are settled.
    pub fn close(&self) {
        self.push(|_| false, |inner| inner.close = true);
    }

    /// Nothing more will be waited for: a group goes at once.
    pub fn hurry(&self) {
        self.push(|_| false, |inner| inner.hurry = true);
    }

    /// What waits for its names never gets them: what of it has a name meanwhile is given to `discard`.
    pub fn discard_group(&self, discard: impl Fn(&[u8])) {
        let group = std::mem::take(&mut self.lock().group);
        group
            .iter()
            .filter_map(|file| file.staged.as_deref())
            .for_each(discard);
    }

    /// Nothing more is done, and nobody waits.
    pub fn stop(&self) {
        self.lock().stopped = true;
        self.more.notify_all();
        self.less.notify_all();
    }

    fn push(&self, full: impl Fn(&Inner) -> bool, add: impl FnOnce(&mut Inner)) {
        let waits = |inner: &mut Inner| full(inner) && !inner.stopped;
        let mut inner = self.less.wait_while(self.lock(), waits).expect(POISONED);
        add(&mut inner);
        drop(inner);
        self.more.notify_one();
    }

    /// The next thing to do; waits for it. `None` when it is over. Everything taken is given back by [`Self::did`].
    pub fn next(&self) -> Option<Work> {
        let mut inner = self.lock();
        loop {
            if inner.stopped {
                return None;
            }
            if let Some(work) = inner.take(self.most_group) {
                inner.at_work += 1;
                drop(inner);
                self.less.notify_all();
                return Some(work);
            }
            inner = self.more.wait_timeout(inner, TICK).expect(POISONED).0;
        }
    }

    /// A thing that was taken is done.
    pub fn did(&self) {
        self.lock().at_work -= 1;
    }

    /// Whether anything is being done, or waits.
    pub fn is_busy(&self) -> bool {
        let inner = self.lock();
        let waits = inner.whole.len() + inner.holes.len() + inner.links.len() + inner.group.len();
        inner.at_work + waits > 0 || (inner.close && !inner.closed)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect(POISONED)
    }
}

impl Inner {
    fn take(&mut self, most_group: usize) -> Option<Work> {
        if let Some(entry) = self.links.pop_front() {
            return Some(Work::Link(entry));
        }
        if !self.whole.is_empty() {
            let batch = self.whole.len().min(BATCH);
            return Some(Work::Finish(self.whole.drain(..batch).collect()));
        }
        let files = self.group.len();
        let is_due = self.hurry
            || files >= GROUP_FILES.min(most_group)
            || self.group_bytes >= GROUP_BYTES
            || self.group_since.is_some_and(|since| since.elapsed() >= GROUP_AGE);
        if files > 0 && is_due {
            self.group_bytes = 0;
            self.group_since = None;
            return Some(Work::Group(std::mem::take(&mut self.group)));
        }
        if let Some((entry, offset, bytes)) = self.holes.pop_front() {
            let piece = bytes.min(HOLE_BYTES);
            if bytes > piece {
                let rest = (Arc::clone(&entry), offset + piece, bytes - piece);
                self.holes.push_back(rest);
            }
            return Some(Work::Hole(entry, offset, piece));
        }
        let closes = self.close && !self.closed;
        self.closed |= closes;
        closes.then_some(Work::Close)
    }
}

const POISONED: &str = "a thread of the copy panicked while it held the finalize queue";

#[cfg(test)]
mod tests {
    use super::super::journal::Source;
    use super::*;

    #[test]
    fn long_holes_take_turns() {
        let works = FinalizeQueue::new(1024);
        for (number, bytes) in [(0, 2 * HOLE_BYTES + 1), (1, 5)] {
            let source = Source {
                path: b"a".to_vec(),
                bytes,
                mtime_ns: 0,
                ctime_ns: 0,
            };
            works.hole(Arc::new(Entry::new(number, source, 0, Vec::new())), 0, bytes);
        }
        let next = || match works.next() {
            Some(Work::Hole(entry, offset, bytes)) => (entry.number, offset, bytes),
            other => panic!("{other:?} is no hole"),
        };
        let expected = [
            (0, 0, HOLE_BYTES),
            (1, 0, 5),
            (0, HOLE_BYTES, HOLE_BYTES),
            (0, 2 * HOLE_BYTES, 1),
        ];
        assert_eq!([next(), next(), next(), next()], expected);
    }
}
