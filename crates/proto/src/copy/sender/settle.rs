//! How entries end: settled as the other end says, or lost because their source is not what it was.

use farline_spec::FileStatus;

use super::super::sum::Sum;
use super::table::Event;
use super::{CopySender, MOST_TRIES, Outcome, Settled, Word};

/// What is said of a file that is not what was announced.
pub const CHANGED: &str = "changed while it was read";

/// Why a file cannot be sent as it was announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loss {
    /// It is not what was announced any more: it may be announced as it is then.
    Changed,
    /// It cannot be read, for this reason.
    For(String),
}

impl<T: Clone> CopySender<T> {
    /// `file` cannot be sent as it was announced: it is looked at once more and announced as it is then, or fails by name.
    pub fn lose(&mut self, file: u64, loss: Loss, now_ns: u64) {
        let Some(entry) = self.live.get_mut(&file) else {
            return;
        };
        if !entry.stage.is_under_way() {
            return;
        }
        entry.chunks = None;
        self.queue.handed_out(file);
        // While it counts as unread the end of the catalogue has not been said.
        let may_come_again = entry.is_unread && entry.about.tries < MOST_TRIES;
        match loss {
            Loss::Changed if may_come_again => {
                entry.turn(Event::Change);
                self.rest(file, now_ns);
            }
            Loss::Changed => self.give_up(file, CHANGED.to_owned()),
            Loss::For(reason) => self.give_up(file, reason),
        }
    }

    /// `file` fails by name, and the other end is told.
    pub(super) fn give_up(&mut self, file: u64, reason: String) {
        let Some(entry) = self.live.get_mut(&file) else {
            return;
        };
        if entry.turn(Event::Lose) {
            self.settled(file, FileStatus::Failed, Some(reason.clone()), None);
            self.tell_lost(file, reason, false);
        }
    }

    /// Leaves word that `file` was lost; whether it is announced anew.
    pub(super) fn tell_lost(&mut self, file: u64, reason: String, again: bool) {
        let Some(entry) = self.live.get_mut(&file) else {
            return;
        };
        let was_unread = entry.take_unread();
        let was_answered = std::mem::replace(&mut entry.is_answered, true);
        let kept = entry.kept.clone();
        self.words.push_back(Word::Lost {
            file,
            kept,
            reason,
            again,
        });
        // An answer that comes later finds nothing and counts no more: its place in the window is given back now.
        self.unanswered -= usize::from(!was_answered);
        self.no_longer_unread(was_unread);
    }

    /// The entry is what the other end says, unless it was settled before.
    pub(super) fn settle_as(
        &mut self,
        file: u64,
        event: Event,
        status: FileStatus,
        reason: Option<String>,
        hash: Option<Sum>,
    ) -> Result<(), farline_spec::Failure> {
        self.answered(file);
        let Some(entry) = self.live.get_mut(&file) else {
            return Ok(());
        };
        if !entry.on(file, event)? {
            return Ok(());
        }
        let was_unread = entry.take_unread();
        self.queue.handed_out(file);
        self.settled(file, status, reason, hash);
        self.remove(file);
        self.no_longer_unread(was_unread);
        Ok(())
    }

    /// Notes that the other end has spoken of this entry; false if it had before.
    pub(super) fn answered(&mut self, file: u64) -> bool {
        let entry = self.live.get_mut(&file);
        let Some(entry) = entry.filter(|entry| entry.stage.is_under_way()) else {
            return false;
        };
        let is_first = !std::mem::replace(&mut entry.is_answered, true);
        self.unanswered -= usize::from(is_first);
        is_first
    }

    /// Lets go of an entry.
    pub(super) fn remove(&mut self, file: u64) {
        if let Some(entry) = self.live.remove(&file) {
            self.live_bytes -= entry.about.facts_bytes;
        }
    }

    fn settled(&mut self, file: u64, status: FileStatus, reason: Option<String>, hash: Option<Sum>) {
        let Some(entry) = self.live.get(&file) else {
            return;
        };
        if status == FileStatus::Failed {
            self.progress.failed_files += 1;
            self.progress.settled_bytes -= entry.credited_bytes as i64;
        } else {
            self.progress.settled_files += 1;
            self.progress.settled_bytes += entry.about.bytes.saturating_sub(entry.credited_bytes) as i64;
        }
        let has_content = entry.has_content();
        self.outcomes.push_back(Outcome::Settled(Settled {
            file,
            kept: entry.kept.clone(),
            status,
            reason,
            hash: hash
                .or(entry.hash)
                .filter(|_| has_content && status != FileStatus::Failed),
            has_content,
            resumed_bytes: entry.resumed_bytes,
        }));
    }
}
