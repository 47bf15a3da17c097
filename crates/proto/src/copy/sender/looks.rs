//! Files that changed while they were read: each is looked at once more when it has been left alone for a moment, and then
//! announced as it is. Who empties a file to write it anew would otherwise find it copied empty.

use std::collections::BTreeMap;

use super::table::{Event, Stage};
use super::{CHANGED, CopySender};

/// Names that a source of one copy may stand for once more because they changed while they were read.
pub const MOST_TRIES: u8 = 3;
/// How long a file has to be left alone.
const QUIET_NS: u64 = 500_000_000;
/// How long that is waited for, about: a file that is never left alone is read once more all the same.
const PATIENCE_NS: u64 = 3_000_000_000;

/// Files that wait for their second look: by when it is due, with the time since when they wait.
#[derive(Debug, Default)]
pub(super) struct Looks {
    waiting: BTreeMap<(u64, u64), u64>,
    /// Those being looked at: since when they wait.
    taken: BTreeMap<u64, u64>,
}

impl Looks {
    fn add(&mut self, file: u64, since_ns: u64, due_ns: u64) {
        self.waiting.insert((due_ns, file), since_ns);
    }
}

/// What a second look found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// A file, which nothing has changed for so many nanoseconds.
    Rested(u64),
    /// A file that changed while it was looked at.
    Changing,
    /// Nothing that can be announced, for this reason.
    Gone(String),
}

impl<T: Clone> CopySender<T> {
    /// `file` changed: it rests.
    pub(super) fn rest(&mut self, file: u64, now_ns: u64) {
        self.looks.add(file, now_ns, now_ns + QUIET_NS);
    }

    /// When the next look is due.
    pub fn next_look_ns(&self) -> Option<u64> {
        self.looks.waiting.keys().next().map(|(due_ns, _)| *due_ns)
    }

    /// The next file that is to be looked at, where one is due at `now_ns`; then [`Self::looked`].
    pub fn poll_look(&mut self, now_ns: u64) -> Option<(u64, T)> {
        loop {
            let place = self.looks.waiting.first_entry()?;
            let (due_ns, file) = *place.key();
            if due_ns > now_ns {
                return None;
            }
            let since_ns = place.remove();
            let entry = self.live.get(&file);
            if let Some(entry) = entry.filter(|entry| entry.stage == Stage::Resting) {
                self.looks.taken.insert(file, since_ns);
                return Some((file, entry.kept.clone()));
            }
        }
    }

    /// `file` was looked at: it is announced anew, rests on, or is given up. For the first its driver has what it is now
    /// ([`Word::Lost`](super::Word::Lost)).
    pub fn looked(&mut self, file: u64, look: Look, now_ns: u64) {
        let Some(since_ns) = self.looks.taken.remove(&file) else {
            return;
        };
        let rested_ns = match &look {
            Look::Rested(rested_ns) => *rested_ns,
            Look::Changing => 0,
            Look::Gone(_) => QUIET_NS,
        };
        let is_late = now_ns.saturating_sub(since_ns) >= PATIENCE_NS;
        if rested_ns < QUIET_NS && !is_late {
            return self.looks.add(file, since_ns, now_ns + (QUIET_NS - rested_ns));
        }
        match look {
            Look::Rested(_) => self.announce_again(file),
            Look::Changing => self.give_up(file, CHANGED.to_owned()),
            Look::Gone(reason) => self.give_up(file, reason),
        }
    }

    fn announce_again(&mut self, file: u64) {
        let Some(entry) = self.live.get_mut(&file) else {
            return;
        };
        if !entry.turn(Event::Lose) {
            return;
        }
        self.progress.settled_bytes -= std::mem::take(&mut entry.credited_bytes) as i64;
        self.tell_lost(file, CHANGED.to_owned(), true);
    }
}
