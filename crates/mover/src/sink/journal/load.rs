//! What an earlier session proved: reads a journal as far as it is sound, and keeps what the partials still bear out.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufReader, Read};

use super::parts;
use super::record::{self, MOST_BYTES, PREFIX_BYTES, Record, Source, VERSION};

/// A subtree that is on the device and proved: offset, bytes, hash.
pub type Part = (u64, u64, Option<[u8; 32]>);

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
    pub fn done(&self, key: &[u8; 16]) -> Option<Option<[u8; 32]>> {
        let place = self.done.binary_search_by(|(known, _)| known.cmp(key)).ok()?;
        let hash = self.done[place].1;
        Some((hash != [0; 32]).then_some(hash))
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
            hash: (*hash != [0; 32]).then_some(*hash),
            id: None,
        })
    }
}

/// A journal being read.
#[derive(Default)]
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

/// Reads the journal of the copy `key`. `boot` names this start of the machine; `has` says whether the partial of this number
/// and file is there with its whole length.
///
/// # Errors
/// The kernel's.
pub fn load(
    journal: &File,
    key: &[u8; 16],
    boot: &str,
    has: impl Fn(u64, &Source) -> bool,
) -> io::Result<Memory> {
    let mut records = Records::new(journal);
    let mut reading = Reading::default();
    match records.next()? {
        Some(Record::Header {
            version: VERSION,
            key: found,
            boot: at,
        }) if found == *key && at.as_deref().is_none_or(|at| at == boot) => {}
        _ => return Ok(Memory::default()),
    }
    while let Some(record) = records.next()? {
        reading.take(record);
    }
    Ok(reading.end(has))
}

impl Reading {
    fn take(&mut self, record: Record) {
        match record {
            // Only the first can be one.
            Record::Header { .. } => {}
            Record::Begun { id, source } => {
                let parts = Vec::new();
                self.largest_id = self.largest_id.max(id);
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
                self.done.push((key, hash.unwrap_or_default()));
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

/// The records of a file up to the first that is not sound.
struct Records<'a> {
    file: BufReader<&'a File>,
    content: Vec<u8>,
}

impl<'a> Records<'a> {
    fn new(file: &'a File) -> Self {
        Self {
            file: BufReader::with_capacity(1 << 20, file),
            content: Vec::with_capacity(PREFIX_BYTES + MOST_BYTES),
        }
    }

    fn next(&mut self) -> io::Result<Option<Record>> {
        self.content.resize(PREFIX_BYTES, 0);
        if !filled(&mut self.file, &mut self.content)? {
            return Ok(None);
        }
        let mut length = [0; 4];
        length.copy_from_slice(&self.content[..4]);
        let length = u32::from_le_bytes(length) as usize;
        if length > MOST_BYTES {
            return Ok(None);
        }
        self.content.resize(PREFIX_BYTES + length, 0);
        if !filled(&mut self.file, &mut self.content[PREFIX_BYTES..])? {
            return Ok(None);
        }
        Ok(record::take(&self.content).map(|(record, _)| record))
    }
}

fn filled(file: &mut impl Read, place: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(place) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
