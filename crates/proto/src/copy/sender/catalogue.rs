//! What is announced, what else there is to say, and when there is nothing more.

use super::super::message::Catalogue;
use super::chunks::Chunks;
use super::entry::Entry;
use super::table::Event;
use super::{Announcement, CopySender, MOST_LIVE_BYTES};

/// Something for the other end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word<T> {
    /// A message as it is.
    Message(Catalogue),
    /// A file cannot be sent as it was announced: [`Catalogue::Lost`] is said; then what it is now is announced, where `again`.
    Lost {
        /// Its number.
        file: u64,
        /// What is kept of it.
        kept: T,
        /// Why.
        reason: String,
        /// Whether it is announced anew.
        again: bool,
    },
}

impl<T: Clone> CopySender<T> {
    /// Whether one more entry may be announced now. One that comes anew always may.
    pub fn has_room(&self) -> bool {
        self.unanswered < self.config.most_unanswered
            && self.live.len() < self.config.most_live
            && self.live_bytes < MOST_LIVE_BYTES
    }

    /// Gives an entry its number, and the number of the file that it is one more name of; `keep` makes of them what is kept.
    /// Once it was said: [`Self::said`].
    pub fn announce(&mut self, about: Announcement, keep: impl FnOnce(u64, Option<u64>) -> T) -> T {
        let number = self.next;
        self.next += 1;
        self.unanswered += 1;
        if about.tries > 1 {
            self.coming = self.coming.saturating_sub(1);
        }
        let link_to = match self.config.joins_names {
            true => self.names.joined(&about, number),
            false => None,
        };
        let kept = keep(number, link_to);
        let entry = Entry::new(kept.clone(), about, link_to, self.config.takes_names_apart);
        self.unread += usize::from(entry.is_unread);
        self.live_bytes += about.facts_bytes;
        let is_wanted = self.is_fresh && entry.needs_content();
        self.live.insert(number, entry);
        if is_wanted && self.want(number) {
            self.unsaid.push(number);
        }
        kept
    }

    /// The entries that were announced are on their way: what of them is wanted without asking may be read.
    pub fn said(&mut self) {
        for file in std::mem::take(&mut self.unsaid) {
            self.add_wanted(file);
        }
    }

    /// Content of an entry is wanted, all but what is spared; false if it was before.
    pub(super) fn want(&mut self, file: u64) -> bool {
        let Some(entry) = self.live.get_mut(&file) else {
            return false;
        };
        if !entry.turn(Event::Want) {
            return false;
        }
        let about = entry.about;
        if !self.queue.is_small(about.bytes) && entry.chunks.is_none() {
            let (chunk_bytes, sum) = (self.config.chunk_bytes, self.config.sum);
            let chunks = Chunks::new(about.bytes, chunk_bytes, sum, about.may_have_holes);
            entry.chunks = Some(Box::new(match self.config.range {
                Some((offset, bytes)) => chunks.only(offset, bytes, about.bytes),
                None => chunks,
            }));
        }
        true
    }

    /// What is wanted of an entry may be read.
    pub(super) fn add_wanted(&mut self, file: u64) {
        if let Some(entry) = self.live.get(&file) {
            self.queue.add(file, entry.about.bytes);
        }
    }

    /// Something more for the other end.
    pub fn say(&mut self, message: Catalogue) {
        self.words.push_back(Word::Message(message));
    }

    /// The next thing to say.
    pub fn poll_word(&mut self) -> Option<Word<T>> {
        let word = self.words.pop_front()?;
        if let Word::Lost { file, again, .. } = &word {
            if let Some(entry) = self.live.get_mut(file) {
                entry.turn(Event::Tell);
            }
            self.remove(*file);
            self.coming += usize::from(*again);
        }
        Some(word)
    }

    /// Things to say that wait.
    pub fn words_waiting(&self) -> usize {
        self.words.len()
    }

    /// Says the end, if nothing can become a new entry any more; gives how many entries there were. For when every source was
    /// announced.
    pub fn say_end(&mut self) -> Option<u64> {
        if self.is_end_said || self.unread > 0 || self.coming > 0 || !self.words.is_empty() {
            return None;
        }
        self.is_end_said = true;
        Some(self.next)
    }

    /// Whether the end may be said as soon as every source was announced.
    pub fn may_end(&self) -> bool {
        !self.is_end_said && self.unread == 0
    }
}
