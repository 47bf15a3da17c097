//! How an entry is settled: once, with a word to the other end, and what waited for it set free.

use super::super::message::{Feedback, Wants};
use super::table::{Event, Stage};
use super::{CopyReceiver, Hash, Key};

/// What of an entry was counted before it was settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// Bytes that are written and proved, of a file that comes in parts.
    pub proved_bytes: u64,
    /// Of them, bytes that an earlier session proved.
    pub resumed_bytes: u64,
}

/// What the other end is told of an entry that is settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parting {
    /// It has its name; its hash.
    Named(Option<Hash>),
    /// It is a further name, and this is the answer.
    Linked(Wants),
    /// It could not be made, for this reason.
    Failed(String),
    /// Its source gave it up; whether it comes once more, as a later entry.
    Lost(bool),
}

impl<T: Clone> CopyReceiver<T> {
    /// Settles an entry, by [`Event::Name`] or [`Event::GiveUp`]: once, and the first counts. What was counted of it; `None`
    /// where it is settled already, or was not ready for a name. [`Self::leave`] follows.
    pub fn conclude(&mut self, file: u64, event: Event) -> Option<Counted> {
        let entry = self.open.get_mut(&file)?;
        let turned = entry.on(file, event);
        turned.is_ok_and(|is_done| is_done).then(|| entry.counted())
    }

    /// Tells the other end what became of an entry that was settled, and lets go of it.
    pub fn leave(&mut self, file: u64, parting: Parting) {
        let Some(entry) = self.open.remove(&file) else {
            return;
        };
        self.open_bytes -= entry.facts_bytes;
        let parts = entry.parts.as_ref().map_or(0, |parts| parts.claimed.count());
        self.parts = self.parts.saturating_sub(parts);
        let is_there = match &parting {
            Parting::Named(_) => Some(true),
            Parting::Failed(_) | Parting::Lost(false) => Some(false),
            Parting::Linked(_) | Parting::Lost(true) => None,
        };
        match parting {
            Parting::Named(hash) => self.say(Feedback::Done { file, hash }),
            Parting::Linked(wants) => self.outbox.answers.push_back((file, wants)),
            Parting::Failed(reason) => {
                self.has_stragglers = true;
                self.say(Feedback::Failed { file, reason });
            }
            Parting::Lost(true) => {
                // Counted anew when it is announced anew.
                let wanted = entry.bytes.saturating_sub(entry.counted().resumed_bytes);
                self.wanted_bytes = self.wanted_bytes.saturating_sub(wanted);
            }
            Parting::Lost(false) => {}
        }
        if let (Some(key), Some(is_there)) = (entry.key, is_there) {
            self.release(key, is_there);
        }
        self.close_if_over();
    }

    /// Further names of the file at a path need not wait any longer.
    pub(super) fn release(&mut self, key: Key, is_there: bool) {
        if !self.config.has_further_names {
            return;
        }
        if !is_there {
            self.gone.insert(key);
        }
        for file in self.waiting.remove(&key).unwrap_or_default() {
            self.file_settled(file, is_there);
        }
    }

    /// The file that `file` is a further name of is there, or will not be.
    pub(super) fn file_settled(&mut self, file: u64, is_there: bool) {
        let event = match is_there {
            true => Event::FileThere,
            false => Event::FileGone,
        };
        let Some(entry) = self.open.get_mut(&file) else {
            return;
        };
        if !entry.on(file, event).is_ok_and(|is_done| is_done) {
            return;
        }
        if entry.stage == Stage::Ready {
            self.queue.link(file);
        } else if self.config.takes_names_apart {
            // It stays under way until the other end says what becomes of it.
            self.say(Feedback::Apart { file });
        } else {
            self.queue
                .give_up(file, "it is a hard link to a file that could not be copied");
        }
    }

    /// Begins what comes after all entries, if all are settled.
    pub(super) fn close_if_over(&mut self) {
        if self.end.is_some() && self.open.is_empty() {
            self.queue.close();
        }
    }
}
