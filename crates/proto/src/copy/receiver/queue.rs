//! What is to be done besides writing, by number, and what goes first.

use std::collections::VecDeque;

/// Large files that get their names together.
const BATCH: usize = 64;
/// A group of small files goes to the device when it has so many.
const GROUP_FILES: usize = 1024;
/// Or so many bytes.
const GROUP_BYTES: u64 = 16 << 20;
/// Or is so old.
const GROUP_AGE_NS: u64 = 100_000_000;
/// And never has more than these.
const MOST_GROUP_BYTES: u64 = 64 << 20;
/// Files that wait for their names before those who bring more have to wait too.
const MOST_WAITING: usize = 256;
/// Holes are hashed in pieces of so many bytes, in turn: a long one keeps nothing else waiting.
const HOLE_BYTES: u64 = 256 << 20;

/// The next thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Work {
    /// Gives up an entry that cannot be made, for this reason.
    GiveUp(u64, &'static str),
    /// Makes a further name.
    Link(u64),
    /// Names large files.
    Finish(Vec<u64>),
    /// Names small files.
    Group(Vec<u64>),
    /// Hashes this part of a hole: offset and length.
    Hole(u64, u64, u64),
    /// Does what comes after all entries.
    Close,
}

/// What waits to be done, and how much of it is being done.
#[derive(Debug)]
pub(super) struct Queue {
    most_group: usize,
    unsound: VecDeque<(u64, &'static str)>,
    links: VecDeque<u64>,
    whole: VecDeque<u64>,
    holes: VecDeque<(u64, u64, u64)>,
    group: Vec<u64>,
    group_bytes: u64,
    group_since_ns: Option<u64>,
    hurry: bool,
    close: bool,
    closed: bool,
    at_work: usize,
}

impl Queue {
    /// Where at most `open_files` small files may wait written, each of them open.
    pub fn new(open_files: usize) -> Self {
        Self {
            most_group: open_files.clamp(8, 2 * GROUP_FILES),
            unsound: VecDeque::new(),
            links: VecDeque::new(),
            whole: VecDeque::new(),
            holes: VecDeque::new(),
            group: Vec::new(),
            group_bytes: 0,
            group_since_ns: None,
            hurry: false,
            close: false,
            closed: false,
            at_work: 0,
        }
    }

    pub fn give_up(&mut self, file: u64, reason: &'static str) {
        self.unsound.push_back((file, reason));
    }

    pub fn link(&mut self, file: u64) {
        self.links.push_back(file);
    }

    pub fn finish(&mut self, file: u64) {
        self.whole.push_back(file);
    }

    pub fn group(&mut self, file: u64, bytes: u64, now_ns: u64) {
        self.group_since_ns.get_or_insert(now_ns);
        self.group_bytes += bytes;
        self.group.push(file);
    }

    pub fn hole(&mut self, file: u64, offset: u64, bytes: u64) {
        self.holes.push_back((file, offset, bytes));
    }

    /// Nothing more will be waited for: a group goes at once.
    pub const fn hurry(&mut self) {
        self.hurry = true;
    }

    /// All entries are settled.
    pub const fn close(&mut self) {
        self.close = true;
    }

    /// Whether who brings files that are whole has to wait.
    pub fn is_full_of_files(&self) -> bool {
        self.whole.len() >= MOST_WAITING
    }

    /// Whether who brings small files has to wait.
    pub fn is_full_of_small(&self) -> bool {
        self.group.len() >= self.most_group || self.group_bytes >= MOST_GROUP_BYTES
    }

    /// Whether who brings holes has to wait.
    pub fn is_full_of_holes(&self) -> bool {
        self.holes.len() >= MOST_WAITING
    }

    /// The next thing to do. What is taken is given back by [`Self::did`].
    pub fn next(&mut self, now_ns: u64) -> Option<Work> {
        let next = self.take(now_ns);
        self.at_work += usize::from(next.is_some());
        next
    }

    /// A thing that was taken is done.
    pub const fn did(&mut self) {
        self.at_work = self.at_work.saturating_sub(1);
    }

    /// Things that wait.
    pub fn waiting(&self) -> usize {
        let files = self.unsound.len() + self.links.len() + self.whole.len() + self.group.len();
        files + self.holes.len() + usize::from(self.close && !self.closed)
    }

    /// Whether anything is being done, or waits.
    pub fn is_busy(&self) -> bool {
        self.at_work + self.waiting() > 0
    }

    fn take(&mut self, now_ns: u64) -> Option<Work> {
        if let Some((file, reason)) = self.unsound.pop_front() {
            return Some(Work::GiveUp(file, reason));
        }
        if let Some(file) = self.links.pop_front() {
            return Some(Work::Link(file));
        }
        if !self.whole.is_empty() {
            let batch = self.whole.len().min(BATCH);
            return Some(Work::Finish(self.whole.drain(..batch).collect()));
        }
        if self.is_group_due(now_ns) {
            self.group_bytes = 0;
            self.group_since_ns = None;
            return Some(Work::Group(std::mem::take(&mut self.group)));
        }
        if let Some((file, offset, bytes)) = self.holes.pop_front() {
            let piece = bytes.min(HOLE_BYTES);
            if bytes > piece {
                self.holes.push_back((file, offset + piece, bytes - piece));
            }
            return Some(Work::Hole(file, offset, piece));
        }
        let closes = self.close && !self.closed;
        self.closed |= closes;
        closes.then_some(Work::Close)
    }

    fn is_group_due(&self, now_ns: u64) -> bool {
        let is_old = |since: u64| now_ns.saturating_sub(since) >= GROUP_AGE_NS;
        let files = self.group.len();
        files > 0
            && (self.hurry
                || files >= GROUP_FILES.min(self.most_group)
                || self.group_bytes >= GROUP_BYTES
                || self.group_since_ns.is_some_and(is_old))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_holes_take_turns() {
        let mut queue = Queue::new(1024);
        for (file, bytes) in [(0, 2 * HOLE_BYTES + 1), (1, 5)] {
            queue.hole(file, 0, bytes);
        }
        let expected = [
            (0, 0, HOLE_BYTES),
            (1, 0, 5),
            (0, HOLE_BYTES, HOLE_BYTES),
            (0, 2 * HOLE_BYTES, 1),
        ];
        for (file, offset, bytes) in expected {
            assert_eq!(queue.next(0), Some(Work::Hole(file, offset, bytes)));
        }
        assert_eq!(queue.next(0), None);
    }

    #[test]
    fn a_group_goes_when_it_is_large_old_or_the_last() {
        let mut queue = Queue::new(1024);
        queue.group(0, 5, 7);
        assert_eq!(queue.next(6 + GROUP_AGE_NS), None);
        assert_eq!(queue.next(7 + GROUP_AGE_NS), Some(Work::Group(vec![0])));
        queue.group(1, GROUP_BYTES, 0);
        assert_eq!(queue.next(0), Some(Work::Group(vec![1])));
        queue.group(2, 5, 0);
        queue.hurry();
        assert_eq!(queue.next(0), Some(Work::Group(vec![2])));
    }

    #[test]
    fn what_comes_after_all_entries_comes_once_and_last() {
        let mut queue = Queue::new(1024);
        queue.close();
        queue.link(3);
        assert_eq!(queue.next(0), Some(Work::Link(3)));
        assert_eq!(queue.next(0), Some(Work::Close));
        assert_eq!(queue.next(0), None);
        assert!(queue.is_busy());
        queue.did();
        queue.did();
        assert!(!queue.is_busy());
    }
}
