//! What the sending end says, in order, and what the destination has of each entry.

use farline_spec::{Failure, FailureKind};

use super::super::message::{Catalogue, Feedback, Proved, Wants, has_vanished, is_part};
use super::entry::Entry;
use super::table::{Event, Stage};
use super::{CopyReceiver, End, Hash, Heard, Key, MOST_OPEN_BYTES, broken};

/// Chunks there may be.
const CHUNKS: std::ops::RangeInclusive<u64> = 64 * 1024..=16 << 20;

/// What was found out about an entry at the destination.
#[derive(Debug)]
pub enum Looked<T> {
    /// Its content is wanted.
    Wanted {
        /// What is kept of it.
        kept: T,
        /// Its length.
        bytes: u64,
        /// What its path and attributes take, in bytes.
        facts_bytes: usize,
        /// What its path is known by, where further names may come.
        key: Option<Key>,
        /// What of it an earlier session proved.
        proved: Vec<Proved>,
    },
    /// It is a further name.
    FurtherName {
        /// What is kept of it.
        kept: T,
        /// What its path takes, in bytes.
        facts_bytes: usize,
        /// What the path of its file is known by.
        of: Key,
    },
    /// An answer settles it.
    Answered {
        /// The answer.
        wants: Wants,
        /// What its path is known by and whether it is there now, where further names may wait for it.
        file: Option<(Key, bool)>,
    },
}

impl<T: Clone> CopyReceiver<T> {
    /// Takes the next message of the sending end; what is to be done about it at once.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`] for what makes no sense.
    pub fn handle_message(&mut self, said: Catalogue) -> Result<Heard<T>, Failure> {
        if let Catalogue::Begin {
            chunk_bytes,
            top,
            asks_whole,
        } = said
        {
            self.begin(chunk_bytes, asks_whole)?;
            return Ok(Heard::Begin(top));
        }
        if self.chunk_bytes.is_none() {
            return Err(broken("a file list without a chunk size"));
        }
        match said {
            Catalogue::Entry(entry) => self.announce(entry),
            Catalogue::Hole { file, offset, bytes } => {
                self.hole(file, offset, bytes).map(|()| Heard::Nothing)
            }
            Catalogue::Settled { file, hash } => self.settle(file, hash).map(|()| Heard::Nothing),
            Catalogue::Lost { file, reason, again } => self.lose(file, reason, again),
            Catalogue::Unannounced { .. } if self.end.is_some() => {
                Err(broken("a missing name was reported after the end"))
            }
            Catalogue::Unannounced { .. } => Ok(Heard::Unannounced(said)),
            Catalogue::Owner(owner) => Ok(Heard::Owner(owner, self.next == 0)),
            Catalogue::TopXattrs(_) if self.next > 0 => {
                Err(broken("attributes of the destination folder came after an entry"))
            }
            Catalogue::TopXattrs(xattrs) => Ok(Heard::TopXattrs(xattrs)),
            Catalogue::AllAnnounced => Ok(Heard::AllAnnounced),
            Catalogue::End { entries, whole } => self.end(End { entries, whole }),
            Catalogue::Begin { .. } => Ok(Heard::Nothing),
        }
    }

    fn begin(&mut self, chunk_bytes: u64, asks_whole: bool) -> Result<(), Failure> {
        let is_asked = self.config.chunk_bytes.is_none_or(|asked| asked == chunk_bytes);
        if !is_asked || !chunk_bytes.is_power_of_two() || !CHUNKS.contains(&chunk_bytes) {
            return Err(broken(format!(
                "chunks of {chunk_bytes} bytes were not agreed on"
            )));
        }
        if self.chunk_bytes.replace(chunk_bytes).is_some() {
            return Err(broken("the file list starts twice"));
        }
        self.says_whole = asks_whole;
        Ok(())
    }

    fn announce(&mut self, entry: super::super::message::Entry) -> Result<Heard<T>, Failure> {
        let most = self.config.most_entries;
        if self.end.is_some() || self.open.len() >= most {
            return Err(broken(format!(
                "more than {most} entries in flight, or one after the end"
            )));
        }
        if std::mem::replace(&mut self.is_looking, true) {
            return Err(Failure::new(
                FailureKind::Internal,
                "an entry was not looked at before the next",
            ));
        }
        Ok(Heard::Look(self.next, entry))
    }

    /// What was found out about the entry of the last [`Heard::Look`]; bytes of it that count as proved.
    ///
    /// # Errors
    /// [`FailureKind::Limit`] for more bytes, names or parts than may be.
    pub fn looked(&mut self, looked: Looked<T>) -> Result<u64, Failure> {
        let number = self.next;
        self.next += 1;
        self.is_looking = false;
        match looked {
            Looked::Answered { wants, file } => {
                self.has_stragglers |= matches!(wants, Wants::Refused(_));
                self.outbox.answers.push_back((number, wants));
                if let Some((key, is_there)) = file {
                    self.release(key, is_there);
                }
                Ok(0)
            }
            Looked::Wanted {
                kept,
                bytes,
                facts_bytes,
                key,
                proved,
            } => {
                let mut entry = announced(kept, bytes, facts_bytes);
                entry.key = key.filter(|_| self.config.has_further_names);
                self.want(number, entry, proved)
            }
            Looked::FurtherName {
                kept,
                facts_bytes,
                of,
            } => {
                let mut entry = announced(kept, 0, facts_bytes);
                entry.of = Some(of);
                self.wait_for_file(number, entry, of).map(|()| 0)
            }
        }
    }

    fn want(&mut self, number: u64, mut entry: Entry<T>, proved: Vec<Proved>) -> Result<u64, Failure> {
        entry.on(number, Event::Want)?;
        let sum = self.config.sum;
        if !proved.is_empty() {
            entry.on(number, Event::Part)?;
            entry.parts(sum).resume(&proved);
        }
        if let Some((offset, bytes)) = self.config.range {
            if proved.is_empty() {
                entry.on(number, Event::Part)?;
            }
            let file_bytes = entry.bytes;
            entry.parts(sum).leave_out_all_but(offset, bytes, file_bytes);
        }
        let counted = entry.counted();
        let parts = entry.parts.as_ref().map_or(0, |parts| parts.claimed.count());
        self.count_wanted(entry.bytes - counted.proved_bytes.min(entry.bytes))?;
        if let Some(key) = entry.key {
            self.waiting.entry(key).or_default();
        }
        self.keep(number, entry)?;
        self.count_parts(0, parts)?;
        let wants = match proved.is_empty() {
            true => Wants::All,
            false => Wants::Rest(proved),
        };
        self.outbox.answers.push_back((number, wants));
        Ok(counted.proved_bytes)
    }

    fn wait_for_file(&mut self, number: u64, mut entry: Entry<T>, of: Key) -> Result<(), Failure> {
        entry.on(number, Event::Await)?;
        self.keep(number, entry)?;
        // Answered when its file is settled.
        match self.waiting.get_mut(&of) {
            Some(waiting) => waiting.push(number),
            None => {
                let is_there = !self.gone.contains(&of);
                self.file_settled(number, is_there);
            }
        }
        Ok(())
    }

    fn keep(&mut self, number: u64, entry: Entry<T>) -> Result<(), Failure> {
        self.open_bytes += entry.facts_bytes;
        self.open.insert(number, entry);
        if self.open_bytes > MOST_OPEN_BYTES {
            let line = format!(
                "paths and extended attributes in flight need more than the {} MiB allowed for one copy",
                MOST_OPEN_BYTES >> 20
            );
            return Err(Failure::new(FailureKind::Limit, line));
        }
        Ok(())
    }

    /// A file is asked for: a limit of the ticket ends the copy before there is a byte of it.
    fn count_wanted(&mut self, bytes: u64) -> Result<(), Failure> {
        let most = self.config.most_bytes;
        let wanted = self.wanted_bytes.checked_add(bytes);
        match wanted.filter(|sum| *sum <= most) {
            Some(sum) => {
                self.wanted_bytes = sum;
                Ok(())
            }
            None => Err(Failure::new(
                FailureKind::Limit,
                format!("exceeds the {most} bytes that the ticket allows"),
            )),
        }
    }

    /// Whether `file` is under way.
    fn known_in_catalogue(&self, file: u64) -> Result<bool, Failure> {
        if file >= self.next {
            return Err(broken(format!("number {file} was not announced")));
        }
        Ok(self.open.contains_key(&file))
    }

    fn hole(&mut self, file: u64, offset: u64, bytes: u64) -> Result<(), Failure> {
        self.known_in_catalogue(file)?;
        let Some(entry) = self.open.get(&file) else {
            return Ok(());
        };
        if !is_part(offset, bytes, entry.bytes) {
            return Err(broken(format!("an invalid hole in file {file}")));
        }
        self.queue.hole(file, offset, bytes);
        Ok(())
    }

    /// The sending end has read all of a file, and it did not change.
    fn settle(&mut self, file: u64, hash: Option<Hash>) -> Result<(), Failure> {
        self.known_in_catalogue(file)?;
        let sum = self.config.sum;
        let Some(entry) = self.open.get_mut(&file) else {
            return Ok(());
        };
        if entry.on(file, Event::Settle)? && entry.stage == Stage::Proved {
            entry.parts(sum).settled.get_or_insert(hash);
            self.complete(file)?;
        }
        Ok(())
    }

    /// The sending end gave a file up, for now (`again`) or for good.
    fn lose(&mut self, file: u64, reason: String, again: bool) -> Result<Heard<T>, Failure> {
        self.has_lost |= !again && !has_vanished(&reason);
        self.known_in_catalogue(file)?;
        let Some(kept) = self.kept(file) else {
            return Ok(Heard::Nothing);
        };
        let Some(counted) = self.conclude(file, Event::GiveUp) else {
            return Ok(Heard::Nothing);
        };
        self.has_stragglers = true;
        Ok(Heard::Lost {
            file,
            kept,
            counted,
            reason,
            again,
        })
    }

    fn end(&mut self, end: End) -> Result<Heard<T>, Failure> {
        if self.end.is_some() || self.next != end.entries {
            return Err(broken(format!(
                "the file list announces {} entries but had {}",
                end.entries, self.next
            )));
        }
        self.end = Some(end);
        self.queue.hurry();
        self.close_if_over();
        Ok(Heard::End(end.entries))
    }

    /// Says that a stream's frame `record` did not open: what it carried is asked for again, whatever it was.
    pub fn handle_unopened(&mut self, stream: u16, record: u64) {
        self.repeated_chunks += 1;
        // What comes once more may come to a file that is over.
        self.has_stragglers = true;
        self.outbox
            .messages
            .push_back(Feedback::Unopened { stream, record });
    }

    /// A stream cannot be read from frame `record` on: the others take over, unless it was the last that could be (`is_last`).
    ///
    /// # Errors
    /// [`FailureKind::Protocol`] where it was the last.
    pub fn handle_out_of_step(&mut self, stream: u16, record: u64, is_last: bool) -> Result<(), Failure> {
        if is_last {
            return Err(broken(format!(
                "stream {stream} cannot be read from frame {record} on, and no other stream is left: its data were modified in \
                 transit"
            )));
        }
        self.has_stragglers = true;
        self.outbox
            .messages
            .push_back(Feedback::OutOfStep { stream, record });
        Ok(())
    }
}

fn announced<T>(kept: T, bytes: u64, facts_bytes: usize) -> Entry<T> {
    Entry {
        kept,
        bytes,
        facts_bytes,
        key: None,
        of: None,
        stage: Stage::Announced,
        spoiled: 0,
        parts: None,
        hash: None,
    }
}
