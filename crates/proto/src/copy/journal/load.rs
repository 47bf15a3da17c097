//! What an earlier session proved: reads a journal as far as it is sound, and keeps what the partials still bear out.

use std::collections::hash_map::Entry as MapEntry;
use std::collections::{HashMap, HashSet};

use farline_spec::SumKind;

use super::super::message::{Proved, is_part};
use super::super::ranges::Ranges;
use super::super::sum::Sum;
use super::super::tree_hash::TreeHash;
use super::parts::{self, Part};
use super::record::{self, FIRST_VERSION, Record, SHARED_ID, Source, VERSION};

/// Parts of a file that are told; the sending end reads the rest again.
const MOST_PARTS: usize = 2_000;
/// What stands for the sum of a file that was not hashed.
const NO_SUM: [u8; 32] = [0; 32];

/// A partial of an earlier session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resumable {
    /// Its number.
    pub id: u64,
    /// The file that it is of.
    pub source: Source,
    /// What of it is proved.
    pub parts: Vec<Part>,
}

/// All that a journal says. Files that are done take 48 bytes each.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Partials by [`record::path_key`].
    pub partials: HashMap<[u8; 16], Resumable>,
    /// Files done: [`record::source_key`] and hash (zeros where nothing was hashed), by key.
    done: Vec<([u8; 16], [u8; 32])>,
    /// Files that this copy put there: [`record::placed_key`].
    placed: HashSet<[u8; 16]>,
    /// Largest number of a partial.
    pub largest_id: u64,
}

impl Memory {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.partials.is_empty() && self.done.is_empty() && self.placed.is_empty()
    }

    /// The hash of a file that is done (`Some(None)` where nothing was hashed); `None` if it is not known to be.
    pub fn done(&self, key: &[u8; 16]) -> Option<Option<Sum>> {
        let place = self.done.binary_search_by(|(known, _)| known.cmp(key)).ok()?;
        Some(sum_of(self.done[place].1))
    }

    /// What another journal of the same copy says, besides. Of a file that both speak of, what both prove counts where it is
    /// the same partial of the same source; where it is not, what is said of the source that changed last.
    pub fn merge(&mut self, other: Self) {
        for (path, theirs) in other.partials {
            match self.partials.entry(path) {
                MapEntry::Vacant(free) => {
                    free.insert(theirs);
                }
                MapEntry::Occupied(mut ours) => ours.get_mut().merge(theirs),
            }
        }
        self.done.extend(other.done);
        self.done.sort_unstable();
        self.done.dedup_by_key(|(key, _)| *key);
        self.placed.extend(other.placed);
        self.largest_id = self.largest_id.max(other.largest_id);
    }

    /// Whether this copy put the file there that lies at `path` with this length and time.
    pub fn has_placed(&self, path: &[u8], bytes: u64, mtime_ns: i64) -> bool {
        self.placed.contains(&record::placed_key(path, bytes, mtime_ns))
    }

    /// Every file that this copy put there.
    pub fn all_placed(&self) -> impl Iterator<Item = Record> {
        self.placed.iter().map(|key| Record::Placed { key: *key })
    }

    /// Every file that is done.
    pub fn all_done(&self) -> impl Iterator<Item = Record> {
        self.done.iter().map(|(key, hash)| Record::Done {
            key: *key,
            hash: sum_of(*hash),
            id: None,
        })
    }
}

impl Resumable {
    fn merge(&mut self, other: Self) {
        if self.id == other.id && self.source == other.source {
            self.parts.extend(other.parts);
            self.parts = parts::joined(&self.parts, self.source.bytes);
        } else if self.source.ctime_ns < other.source.ctime_ns {
            *self = other;
        }
    }

    /// Whether all of the `bytes` bytes from `offset` on are proved, by whatever sum.
    pub fn covers(&self, offset: u64, bytes: u64) -> bool {
        let mut ranges = Ranges::default();
        for &(at, length, _) in &self.parts {
            ranges.claim_gaps(at, length);
        }
        ranges.claim_gaps(offset, bytes).is_empty()
    }

    /// The same, with nothing that is not within the `bytes` bytes from `offset` on.
    #[must_use]
    pub fn within(mut self, offset: u64, bytes: u64) -> Self {
        let end = offset.saturating_add(bytes);
        self.parts
            .retain(|&(at, length, _)| at >= offset && at + length <= end);
        self
    }

    /// What is proved of it, by offset, as large as it can be joined and no more than can be told; where things are hashed only what has
    /// a sum of that kind.
    pub fn proved(&self, sum: Option<SumKind>) -> Vec<Proved> {
        let length = self.source.bytes;
        let parts = self.parts.iter().filter(|part| is_part(part.0, part.1, length));
        let Some(kind) = sum else {
            let mut ranges = Ranges::default();
            for &(offset, bytes, _) in parts {
                ranges.claim(offset, bytes);
            }
            let plain = ranges.parts().into_iter().map(|(at, bytes)| (at, bytes, None));
            return told(plain.collect());
        };
        // What another sum proved, or none, is not proved here.
        let mut tree = TreeHash::new(kind, length);
        for &(offset, bytes, hash) in parts {
            if let Some(hash) = hash {
                tree.insert(offset, bytes, hash);
            }
        }
        let hashed = tree.parts().into_iter();
        told(hashed.map(|(at, bytes, hash)| (at, bytes, Some(hash))).collect())
    }
}

/// The largest of `parts`, as they are told, by offset.
fn told(mut parts: Vec<Part>) -> Vec<Proved> {
    if parts.len() > MOST_PARTS {
        parts.sort_unstable_by_key(|part| std::cmp::Reverse(part.1));
        parts.truncate(MOST_PARTS);
        parts.sort_unstable_by_key(|part| part.0);
    }
    let proved = |(offset, bytes, hash)| Proved { offset, bytes, hash };
    parts.into_iter().map(proved).collect()
}

fn sum_of(bytes: [u8; 32]) -> Option<Sum> {
    (bytes != NO_SUM).then_some(Sum::from_bytes(bytes))
}

/// A journal being read, piece by piece.
#[derive(Debug)]
pub struct Reader {
    key: [u8; 16],
    boot: String,
    /// What of it came and is not a whole record yet.
    pending: Vec<u8>,
    has_header: bool,
    /// Something was not sound: nothing behind it is believed.
    is_over: bool,
    reading: Reading,
}

impl Reader {
    /// Of the journal of the copy `key`; `boot` names this start of the machine.
    pub fn new(key: [u8; 16], boot: &str) -> Self {
        Self {
            key,
            boot: boot.to_owned(),
            pending: Vec::new(),
            has_header: false,
            is_over: false,
            reading: Reading::default(),
        }
    }

    /// The next bytes of the journal; whether more of it would be believed.
    pub fn take(&mut self, bytes: &[u8]) -> bool {
        self.pending.extend_from_slice(bytes);
        let mut at = 0;
        while !self.is_over {
            let rest = &self.pending[at..];
            match record::bytes_of(rest) {
                Some(bytes) if rest.len() < bytes => break,
                Some(_) => {}
                None => self.is_over = true,
            }
            match record::take(rest) {
                Some((record, bytes)) => {
                    at += bytes;
                    self.believe(record);
                }
                None => self.is_over = true,
            }
        }
        self.pending.drain(..at);
        !self.is_over
    }

    fn believe(&mut self, record: Record) {
        if self.has_header {
            self.reading.take(record);
            return;
        }
        self.has_header = matches!(record, Record::Header { version: FIRST_VERSION..=VERSION, key, boot }
            if key == self.key && boot.as_deref().is_none_or(|at| at == self.boot));
        self.is_over |= !self.has_header;
    }

    /// What it says; `has` says whether the partial of this number and file is there with its whole length.
    pub fn end(self, has: impl Fn(u64, &Source) -> bool) -> Memory {
        self.reading.end(has)
    }
}

#[derive(Debug, Default)]
struct Reading {
    begun: HashMap<u64, Resumable>,
    done: Vec<([u8; 16], [u8; 32])>,
    /// Partials that were about to become files, and which of `done` that is.
    becoming: Vec<(u64, usize)>,
    /// Files done of which that was taken back.
    undone: HashSet<[u8; 16]>,
    placed: HashSet<[u8; 16]>,
    largest_id: u64,
}

impl Reading {
    fn take(&mut self, record: Record) {
        match record {
            // Only the first can be one.
            Record::Header { .. } => {}
            Record::Begun { id, source } => {
                let parts = Vec::new();
                if id & SHARED_ID == 0 {
                    self.largest_id = self.largest_id.max(id);
                }
                self.begun.insert(id, Resumable { id, source, parts });
            }
            Record::Part {
                id,
                offset,
                bytes,
                hash,
            } => {
                if let Some(partial) = self.begun.get_mut(&id) {
                    partial.parts.push((offset, bytes, hash));
                }
            }
            Record::Done { key, hash, id } => {
                if let Some(id) = id {
                    self.becoming.push((id, self.done.len()));
                }
                self.undone.remove(&key);
                self.done
                    .push((key, hash.map_or(NO_SUM, |hash| *hash.as_bytes())));
            }
            Record::Dropped { id } => {
                self.begun.remove(&id);
            }
            Record::Undone { key } => {
                self.undone.insert(key);
            }
            Record::Placed { key } => {
                self.placed.insert(key);
            }
        }
    }

    fn end(mut self, has: impl Fn(u64, &Source) -> bool) -> Memory {
        self.begun.retain(|id, partial| has(*id, &partial.source));
        // One whose partial is still there did not get its name.
        let mut undone: Vec<usize> = Vec::new();
        for (id, place) in self.becoming {
            if self.begun.contains_key(&id) {
                undone.push(place);
            }
        }
        for place in undone.into_iter().rev() {
            self.done.swap_remove(place);
        }
        self.done.retain(|(key, _)| !self.undone.contains(key));
        self.done.sort_unstable();
        self.done.dedup_by_key(|(key, _)| *key);
        self.done.shrink_to_fit();
        let by_path = |(_, mut partial): (u64, Resumable)| {
            partial.parts = parts::joined(&partial.parts, partial.source.bytes);
            (record::path_key(&partial.source.path), partial)
        };
        Memory {
            partials: self.begun.into_iter().map(by_path).collect(),
            done: self.done,
            placed: self.placed,
            largest_id: self.largest_id,
        }
    }
}
