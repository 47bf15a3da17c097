//! What is to be read next, by number: packs of small files and chunks of large ones, in the order in which they were announced.
//!
//! ```text
//! again    ─────────────► packs     those that came spoiled, few at a time
//! small    ─────────────► packs     as many as fit into a frame
//! waiting  ─► active ───► spans     a reader stays with its file; when there is no other, it helps where most is left
//! ```
//! Files of which chunks are handed out and packs being filled are together at most so many.

use std::collections::VecDeque;

use super::super::pack::ITEM_HEADER_BYTES;

/// Small files that are taken with one look at the queue: more would leave none for the other streams.
const MOST_TAKEN: usize = 64;
/// Longest pack of files that are sent once more, unless one of them is longer: what spoils one pack spoils a shorter one less
/// often.
const AGAIN_BYTES: usize = 64 * 1024;

/// What is read next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Small files that are wanted once more.
    Again,
    /// Small files.
    Small,
    /// Chunks of this file, which none was handed out of.
    Large(u64),
}

/// What waits to be read.
#[derive(Debug)]
pub(super) struct Queue {
    most_under_way: usize,
    pack_bytes: usize,
    again: VecDeque<Small>,
    small: VecDeque<Small>,
    waiting: VecDeque<u64>,
    /// Chunks of these are still to be handed out.
    active: Vec<u64>,
    /// How many are active, and packs being filled.
    under_way: usize,
}

#[derive(Debug, Clone, Copy)]
struct Small {
    file: u64,
    bytes: usize,
}

impl Queue {
    /// An empty one, of which so many files and packs are read at once; packs are up to `pack_bytes` long.
    pub fn new(most_under_way: usize, pack_bytes: usize) -> Self {
        Self {
            most_under_way: most_under_way.max(1),
            pack_bytes,
            again: VecDeque::new(),
            small: VecDeque::new(),
            waiting: VecDeque::new(),
            active: Vec::new(),
            under_way: 0,
        }
    }

    /// Files and packs at once, at most.
    pub const fn most_under_way(&self) -> usize {
        self.most_under_way
    }

    /// From now on so many. What is under way beyond that is finished.
    pub fn set_most_under_way(&mut self, most: usize) {
        self.most_under_way = most.max(1);
    }

    /// Bytes of the longest file that goes in a pack.
    pub const fn small_bytes(&self) -> u64 {
        (self.pack_bytes - ITEM_HEADER_BYTES) as u64
    }

    /// Whether a file of so many bytes goes in a pack.
    pub const fn is_small(&self, bytes: u64) -> bool {
        bytes <= self.small_bytes()
    }

    /// This is wanted, after all others.
    pub fn add(&mut self, file: u64, bytes: u64) {
        match self.is_small(bytes) {
            true => self.small.push_back(Small::new(file, bytes)),
            false => self.waiting.push_back(file),
        }
    }

    /// This is wanted once more, before the others.
    pub fn add_again(&mut self, file: u64, bytes: u64) {
        if self.is_small(bytes) {
            self.again.push_back(Small::new(file, bytes));
        } else if !self.active.contains(&file) {
            self.waiting.push_front(file);
        }
    }

    /// Whether chunks of `file` are being handed out.
    pub fn is_active(&self, file: u64) -> bool {
        self.active.contains(&file)
    }

    /// The files of which chunks are being handed out.
    pub fn active(&self) -> &[u64] {
        &self.active
    }

    /// Whether one more may be begun, and there is one.
    pub fn may_begin(&self) -> bool {
        self.may_pack() || (self.has_place() && !self.waiting.is_empty())
    }

    /// Whether one more pack may be filled, and there is something for it.
    pub fn may_pack(&self) -> bool {
        self.has_place() && !(self.small.is_empty() && self.again.is_empty())
    }

    /// Whether a reader has something to do.
    pub fn has_work(&self) -> bool {
        !self.active.is_empty() || self.may_begin()
    }

    const fn has_place(&self) -> bool {
        self.under_way < self.most_under_way
    }

    /// What is begun next. A large file is taken by that.
    pub fn next(&mut self) -> Option<Next> {
        if !self.has_place() {
            return None;
        }
        if !self.again.is_empty() {
            return Some(Next::Again);
        }
        let small = self.small.front().map(|small| small.file);
        let large = self.waiting.front().copied();
        match (small, large) {
            (Some(small), large) if large.is_none_or(|large| small < large) => Some(Next::Small),
            (_, Some(large)) => {
                self.waiting.pop_front();
                Some(Next::Large(large))
            }
            (Some(_), None) | (None, None) => None,
        }
    }

    /// A large file that was taken keeps its place.
    pub fn put_back(&mut self, file: u64) {
        self.waiting.push_front(file);
    }

    /// Chunks of `file` are handed out from now on.
    pub fn begin_file(&mut self, file: u64) {
        self.under_way += 1;
        self.active.push(file);
    }

    /// A pack is filled from now on.
    pub const fn begin_pack(&mut self) {
        self.under_way += 1;
    }

    /// A pack has been filled.
    pub const fn pack_done(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    /// All chunks of `file` have been handed out, or no more of them are wanted.
    pub fn handed_out(&mut self, file: u64) {
        if let Some(place) = self.active.iter().position(|active| *active == file) {
            self.active.remove(place);
            self.under_way = self.under_way.saturating_sub(1);
        }
    }

    /// How long the next pack may get, of files that are wanted once more or others.
    pub fn room_of(&self, next: Next) -> usize {
        match next {
            Next::Again => AGAIN_BYTES.max(self.again.front().map_or(0, Small::item_bytes)),
            Next::Small | Next::Large(_) => self.pack_bytes,
        }
    }

    /// The first small files that fit into so much room.
    pub fn pack(&mut self, next: Next, mut room_bytes: usize) -> Vec<u64> {
        let queue = match next {
            Next::Again => &mut self.again,
            Next::Small | Next::Large(_) => &mut self.small,
        };
        let mut files = Vec::new();
        while files.len() < MOST_TAKEN {
            let Some(bytes) = queue.front().map(Small::item_bytes) else {
                break;
            };
            if bytes > room_bytes {
                break;
            }
            room_bytes -= bytes;
            files.extend(queue.pop_front().map(|small| small.file));
        }
        files
    }
}

impl Small {
    /// It fits into a pack, so into memory.
    const fn new(file: u64, bytes: u64) -> Self {
        Self {
            file,
            bytes: bytes as usize,
        }
    }

    /// What it takes of a pack.
    const fn item_bytes(&self) -> usize {
        ITEM_HEADER_BYTES + self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_files_go_in_the_order_in_which_they_were_announced() {
        let mut queue = Queue::new(2, 1_000);
        queue.add(0, 10);
        queue.add(1, 5_000);
        queue.add(2, 20);
        assert_eq!(queue.next(), Some(Next::Small));
        assert_eq!(queue.pack(Next::Small, 1_000), [0, 2]);
        queue.begin_pack();
        assert_eq!(queue.next(), Some(Next::Large(1)));
        queue.begin_file(1);
        queue.add(3, 10);
        assert_eq!(queue.next(), None, "two are under way");
        queue.handed_out(1);
        queue.handed_out(1);
        assert_eq!(queue.next(), Some(Next::Small));
    }

    #[test]
    fn what_came_spoiled_goes_first_and_in_shorter_packs() {
        let mut queue = Queue::new(4, 1 << 20);
        queue.add(5, 10);
        for file in 0..3 {
            queue.add_again(file, 40_000);
        }
        assert_eq!(queue.next(), Some(Next::Again));
        let room = queue.room_of(Next::Again);
        assert_eq!(queue.pack(Next::Again, room), [0]);
        queue.add_again(7, 900_000);
        assert_eq!(queue.pack(Next::Again, 2 * room), [1, 2]);
        let room = queue.room_of(Next::Again);
        assert_eq!(queue.pack(Next::Again, room), [7], "one that is longer");
    }

    #[test]
    fn a_pack_takes_what_fits_and_a_bounded_number() {
        let mut queue = Queue::new(1, 1 << 20);
        (0..100).for_each(|file| queue.add(file, 0));
        assert_eq!(queue.pack(Next::Small, 1 << 20).len(), MOST_TAKEN);
        let room = 3 * ITEM_HEADER_BYTES + 1;
        assert_eq!(queue.pack(Next::Small, room).len(), 3);
    }
}
