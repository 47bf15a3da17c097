//! Notes that are not written down yet, and the order in which they are.

use std::collections::{HashMap, HashSet};

use farline_spec::Failure;

use super::super::sum::Sum;
use super::parts::Part;
use super::record::{self, Record, Source, placed_key};
use super::{part_record, parts};

/// Notes of one copy. `P` is what the caller keeps of a partial: whatever it brings to the device by.
#[derive(Debug)]
pub struct Notes<P> {
    records: Vec<u8>,
    parts: HashMap<u64, Noted<P>>,
    part_bytes: u64,
    /// Partials that the journal has, or will have with the next [`Flush`].
    begun: HashSet<u64>,
}

#[derive(Debug)]
struct Noted<P> {
    partial: P,
    source: Source,
    parts: Vec<Part>,
    is_new: bool,
}

impl<P> Default for Notes<P> {
    fn default() -> Self {
        Self {
            records: Vec::new(),
            parts: HashMap::new(),
            part_bytes: 0,
            begun: HashSet::new(),
        }
    }
}

impl<P: Clone> Notes<P> {
    /// An earlier session left this partial: the journal has it.
    pub fn resumed(&mut self, id: u64) {
        self.begun.insert(id);
    }

    /// Whether the journal has a partial, or will have it with what was taken.
    pub fn has(&self, id: u64) -> bool {
        self.begun.contains(&id)
    }

    /// A part of partial `id`, which is of `source`, was written and proved; bytes of which the proof is only here.
    pub fn part(&mut self, id: u64, partial: &P, source: &Source, part: Part) -> u64 {
        let new = || Noted {
            partial: partial.clone(),
            source: source.clone(),
            parts: Vec::new(),
            is_new: false,
        };
        self.parts.entry(id).or_insert_with(new).parts.push(part);
        self.part_bytes += part.1;
        self.part_bytes
    }

    /// Bytes of parts of which the proof is only here.
    pub const fn part_bytes(&self) -> u64 {
        self.part_bytes
    }

    /// A file is about to get its name, or has it; parts of its partial `id` need not be remembered any more.
    ///
    /// # Errors
    /// [`FailureKind::Internal`](farline_spec::FailureKind::Internal) for a record that cannot be written down.
    pub fn done(&mut self, key: [u8; 16], hash: Option<Sum>, id: Option<u64>) -> Result<(), Failure> {
        let id = id.and_then(|id| self.forget(id));
        record::append(&mut self.records, &Record::Done { key, hash, id })
    }

    /// Takes back that a file is about to get its name: it did not.
    ///
    /// # Errors
    /// As [`Self::done`].
    pub fn undone(&mut self, key: [u8; 16]) -> Result<(), Failure> {
        record::append(&mut self.records, &Record::Undone { key })
    }

    /// A file got its name; this is what it is known by where it lies.
    ///
    /// # Errors
    /// As [`Self::done`].
    pub fn placed(&mut self, source: &Source) -> Result<(), Failure> {
        let key = placed_key(&source.path, source.bytes, source.mtime_ns);
        record::append(&mut self.records, &Record::Placed { key })
    }

    /// A partial is given up.
    ///
    /// # Errors
    /// As [`Self::done`].
    pub fn dropped(&mut self, id: u64) -> Result<(), Failure> {
        match self.forget(id) {
            Some(id) => record::append(&mut self.records, &Record::Dropped { id }),
            None => Ok(()),
        }
    }

    /// Of a partial that the journal has nothing but `parts` is proved from now on.
    ///
    /// # Errors
    /// As [`Self::done`].
    pub fn begun_anew(&mut self, id: u64, source: &Source, parts: &[Part]) -> Result<(), Failure> {
        let source = source.clone();
        record::append(&mut self.records, &Record::Dropped { id })?;
        record::append(&mut self.records, &Record::Begun { id, source })?;
        parts
            .iter()
            .try_for_each(|part| record::append(&mut self.records, &part_record(id, part)))
    }

    /// Takes all notes, to be written down.
    pub fn take(&mut self) -> Flush<P> {
        self.part_bytes = 0;
        let mut parts: Vec<_> = std::mem::take(&mut self.parts).into_iter().collect();
        parts.sort_unstable_by_key(|(id, _)| *id);
        for (id, noted) in &mut parts {
            noted.is_new = self.begun.insert(*id);
        }
        Flush {
            records: std::mem::take(&mut self.records),
            parts: parts.into_iter(),
            at: None,
        }
    }

    /// Takes what does not speak of parts: it may be handed to the kernel without waiting for a device.
    pub fn take_records(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.records)
    }

    /// Parts of partial `id` go; its number if the journal has it.
    fn forget(&mut self, id: u64) -> Option<u64> {
        if let Some(noted) = self.parts.remove(&id) {
            let bytes: u64 = noted.parts.iter().map(|part| part.1).sum();
            self.part_bytes = self.part_bytes.saturating_sub(bytes);
        }
        self.begun.contains(&id).then_some(id)
    }
}

/// Notes on their way: the data of each partial go to the device ([`Self::next`]) before the records that speak of them
/// ([`Self::records`]).
#[derive(Debug)]
pub struct Flush<P> {
    records: Vec<u8>,
    parts: std::vec::IntoIter<(u64, Noted<P>)>,
    /// What is being brought to the device.
    at: Option<(u64, Noted<P>)>,
}

impl<P: Clone> Flush<P> {
    /// The next partial whose data are to be on the device before anything is said of them; then [`Self::synced`].
    #[expect(clippy::should_implement_trait, reason = "each is answered before the next")]
    pub fn next(&mut self) -> Option<P> {
        self.at = self.parts.next();
        self.at.as_ref().map(|(_, noted)| noted.partial.clone())
    }

    /// Whether the data that [`Self::next`] asked for are there: if not, nothing is said of them.
    ///
    /// # Errors
    /// As of [`Notes::done`].
    pub fn synced(&mut self, is_done: bool) -> Result<(), Failure> {
        let Some((id, noted)) = self.at.take().filter(|_| is_done) else {
            return Ok(());
        };
        let bytes = noted.source.bytes;
        if noted.is_new {
            let source = noted.source;
            record::append(&mut self.records, &Record::Begun { id, source })?;
        }
        parts::joined(&noted.parts, bytes)
            .iter()
            .try_for_each(|part| record::append(&mut self.records, &part_record(id, part)))
    }

    /// The records to be appended to the journal, which is then brought to the device itself.
    pub fn records(self) -> Vec<u8> {
        self.records
    }
}
