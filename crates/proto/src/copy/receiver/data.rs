//! What comes over the data streams: any part by any stream, each proved by its own hash before it counts.

use super::super::message::{Feedback, is_chunk};
use super::super::ranges::Claim;
use super::table::{Event, Stage};
use super::{CopyReceiver, Hash, broken};
use farline_spec::{Failure, FailureKind};

/// How often a chunk may come damaged before its file is given up.
const MOST_SPOILED: u8 = 3;
/// Chunks of one copy that may come damaged: a path that spoils more carries no copy.
const MOST_REPEATED_CHUNKS: u64 = 65_536;

/// What is known of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known<T> {
    /// Its entry has not come: data may overtake it. Ask again when more of the catalogue was heard.
    NotYet,
    /// It is settled: what comes of it is dropped.
    Over,
    /// It is under way.
    Open(T),
}

/// A chunk of a file as a frame says it, or a part of a hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// Number of the file.
    pub file: u64,
    /// Where in it.
    pub offset: u64,
    /// How long it is.
    pub bytes: u64,
    /// Its sum; `None` where nothing is hashed.
    pub hash: Option<Hash>,
}

/// A file of a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item {
    /// Its number.
    pub file: u64,
    /// How long it is.
    pub bytes: u64,
    /// Its sum as the pack says it.
    pub hash: Option<Hash>,
}

/// What becomes of data that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// They are written.
    Write,
    /// They are dropped: nobody wants them, or they are asked for again.
    Drop,
    /// They came damaged too often: their file is given up, for this reason.
    GiveUp(String),
}

/// What a part that was written came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// Its file is settled: it counts for nothing.
    Late,
    /// It counts.
    Part,
    /// It was the last: all of the file is written and proved.
    All,
}

impl<T: Clone> CopyReceiver<T> {
    /// What is known of the number `file`, of which data came.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`] for a number that no entry has.
    pub fn known(&self, file: u64) -> Result<Known<T>, Failure> {
        if file < self.next {
            return Ok(self.kept(file).map_or(Known::Over, Known::Open));
        }
        match self.end {
            Some(_) => Err(broken(format!("data for file {file}, which was not announced"))),
            None => Ok(Known::NotYet),
        }
    }

    /// As [`Self::known`], for a chunk that came: it may be where it says it is.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`] for a chunk that no file has.
    pub fn check_chunk(&self, chunk: &Chunk) -> Result<Known<T>, Failure> {
        let known = self.known(chunk.file)?;
        let Some(entry) = self.open.get(&chunk.file) else {
            return Ok(known);
        };
        let most = self.chunk_bytes.unwrap_or(0);
        if entry.of.is_some() || !is_chunk(chunk.offset, chunk.bytes, entry.bytes, most) {
            return Err(broken(format!("an invalid chunk of file {}", chunk.file)));
        }
        self.check_kind(chunk.hash, "a chunk")?;
        Ok(known)
    }

    /// Takes a chunk that [`Self::check_chunk`] let pass and whose content has the hash `found`.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`] for one that overlaps others; [`FailureKind::Limit`] for too many parts.
    pub fn take_chunk(&mut self, chunk: &Chunk, found: Option<Hash>) -> Result<Admission, Failure> {
        let (sum, file) = (self.config.sum, chunk.file);
        let Some(entry) = self.open.get_mut(&file) else {
            return Ok(Admission::Drop);
        };
        if !entry.on(file, Event::Part)? {
            return Ok(Admission::Drop);
        }
        let parts = entry.parts(sum);
        if sum.is_some() && found != chunk.hash {
            let count = parts.spoiled.entry(chunk.offset).or_default();
            *count = count.saturating_add(1);
            let count = *count;
            return self.once_more(file, chunk.offset, chunk.bytes, count);
        }
        let before = parts.claimed.count();
        let claim = parts.claimed.claim(chunk.offset, chunk.bytes);
        let after = parts.claimed.count();
        self.count_parts(before, after)?;
        match claim {
            Claim::Torn => Err(broken(format!("chunks of file {file} overlap"))),
            Claim::Known => Ok(Admission::Drop),
            Claim::Taken => Ok(Admission::Write),
        }
    }

    /// Claims what of a hole nobody has yet; these parts, to be punched and hashed.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`] where the file came in a pack; [`FailureKind::Limit`] for too many parts.
    pub fn claim_hole(&mut self, file: u64, offset: u64, bytes: u64) -> Result<Vec<(u64, u64)>, Failure> {
        let sum = self.config.sum;
        let Some(entry) = self.open.get_mut(&file) else {
            return Ok(Vec::new());
        };
        if !entry.on(file, Event::Part)? {
            return Ok(Vec::new());
        }
        let parts = entry.parts(sum);
        let before = parts.claimed.count();
        let gaps = parts.claimed.claim_gaps(offset, bytes);
        let after = parts.claimed.count();
        self.count_parts(before, after)?;
        Ok(gaps)
    }

    /// A part is written, or was a hole: it is proved. Whoever wrote it has noted it in the journal before.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`] for a part that is none of its file's tree.
    pub fn written(&mut self, chunk: &Chunk) -> Result<Proof, Failure> {
        let file = chunk.file;
        let Some(entry) = self.open.get_mut(&file) else {
            return Ok(Proof::Late);
        };
        let (Stage::Proved, Some(parts)) = (entry.stage, entry.parts.as_deref_mut()) else {
            return Ok(Proof::Late);
        };
        parts.prove(chunk)?;
        if parts.proved_bytes < entry.bytes {
            return Ok(Proof::Part);
        }
        if parts.settled.is_some() {
            self.complete(file)?;
        } else if self.says_whole {
            self.outbox.messages.push_back(Feedback::Whole { file });
        }
        Ok(Proof::All)
    }

    /// Whether every part of a file has come, though not all may be written.
    pub fn is_all_claimed(&self, file: u64) -> bool {
        let all = |entry: &super::Entry<T>| {
            let parts = entry.parts.as_deref();
            parts.is_some_and(|parts| parts.claimed.is_all(entry.bytes))
        };
        self.open.get(&file).is_some_and(all)
    }

    /// A file of which everything is there, if that is so, waits for its name; or is given up where its parts are not what was read.
    pub(super) fn complete(&mut self, file: u64) -> Result<(), Failure> {
        let Some(entry) = self.open.get_mut(&file).filter(|entry| entry.is_complete()) else {
            return Ok(());
        };
        let hash = entry.parts.as_deref().map_or(Ok(None), |parts| parts.hash());
        match hash {
            Err(reason) => self.queue.give_up(file, reason),
            Ok(hash) => {
                if entry.on(file, Event::Complete)? {
                    entry.hash = hash;
                    self.queue.finish(file);
                }
            }
        }
        Ok(())
    }

    /// Checks a file of a pack against its entry, as [`Self::check_chunk`].
    ///
    /// # Errors
    /// [`FailureKind::Protocol`] for one of another length, without its hash, or of a number that no entry has.
    pub fn check_item(&self, item: &Item) -> Result<Known<T>, Failure> {
        let known = self.known(item.file)?;
        let Some(entry) = self.open.get(&item.file) else {
            return Ok(known);
        };
        if entry.of.is_some() || item.bytes != entry.bytes {
            return Err(broken(format!(
                "file {} arrived with a different length",
                item.file
            )));
        }
        self.check_kind(item.hash, "a file")?;
        Ok(known)
    }

    /// Whether `what` came with a sum of the kind that was agreed on, where content is hashed.
    fn check_kind(&self, said: Option<Hash>, what: &str) -> Result<(), Failure> {
        match (self.config.sum, said.map(|said| said.kind())) {
            (Some(_), None) => Err(broken(format!("{what} without its hash"))),
            (Some(agreed), Some(kind)) if kind != agreed => Err(broken(format!(
                "{what} with a hash of another kind than the agreed {}",
                agreed.word()
            ))),
            _ => Ok(()),
        }
    }

    /// Takes a file of a pack that [`Self::check_item`] let pass and whose content has the hash `found`.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`] for a file that came already.
    pub fn take_item(&mut self, item: &Item, found: Option<Hash>) -> Result<Admission, Failure> {
        let (is_hashed, file) = (self.config.sum.is_some(), item.file);
        let Some(entry) = self.open.get_mut(&file) else {
            return Ok(Admission::Drop);
        };
        if is_hashed && found != item.hash && entry.stage == Stage::Wanted {
            entry.spoiled = entry.spoiled.saturating_add(1);
            let count = entry.spoiled;
            return self.once_more(file, 0, item.bytes, count);
        }
        if !entry.on(file, Event::Item)? {
            return Ok(Admission::Drop);
        }
        entry.hash = found.filter(|_| is_hashed);
        Ok(Admission::Write)
    }

    /// These files of a pack are written. Those that are given back are named at once by whoever wrote them; the others wait for
    /// their group, or are settled.
    ///
    /// # Errors
    /// None that a sound driver causes.
    pub fn items_written(&mut self, files: &[u64], now_ns: u64) -> Result<Vec<u64>, Failure> {
        let mut ready = Vec::with_capacity(files.len());
        for &file in files {
            let Some(entry) = self.open.get_mut(&file) else {
                continue;
            };
            if entry.stage != Stage::Packed || !entry.on(file, Event::Complete)? {
                continue;
            }
            if self.config.is_durable {
                let bytes = entry.bytes;
                self.queue.group(file, bytes, now_ns);
            } else {
                ready.push(file);
            }
        }
        Ok(ready)
    }

    /// Asks for what came damaged `count` times again, or says that its file is given up.
    fn once_more(&mut self, file: u64, offset: u64, bytes: u64, count: u8) -> Result<Admission, Failure> {
        if self.repeated_chunks >= MOST_REPEATED_CHUNKS {
            return Err(broken(format!(
                "more than {MOST_REPEATED_CHUNKS} chunks arrived corrupted"
            )));
        }
        self.repeated_chunks += 1;
        if count > MOST_SPOILED {
            let line = format!("the chunk at byte {offset} arrived corrupted {count} times");
            return Ok(Admission::GiveUp(line));
        }
        self.outbox
            .messages
            .push_back(Feedback::Again { file, offset, bytes });
        Ok(Admission::Drop)
    }

    /// A file that had `before` parts that do not touch has `after` now.
    pub(super) fn count_parts(&mut self, before: usize, after: usize) -> Result<(), Failure> {
        let most = self.config.most_parts;
        self.parts = (self.parts + after).saturating_sub(before);
        match self.parts > most {
            true => Err(Failure::new(
                FailureKind::Limit,
                format!(
                    "more than {most} parts of files that do not touch: the other end cuts them too small"
                ),
            )),
            false => Ok(()),
        }
    }
}
