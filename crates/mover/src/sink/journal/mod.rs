//! What is proved, remembered so that a copy that was cut goes on where it was.
//!
//! What it does: takes notes of parts written, files done and partials given up, and writes them down in groups, at least
//! every second or every 256 MiB: first the data of the parts to the device, then the records, then the journal itself.
//! What it must not do: believe anything behind a record that is damaged; decide what a file is or where it goes.
//!
//! In: notes from the threads that write. Out: [`Memory`] at the next start.
//!
//! A partial gets a record of its own only when a part of it is written down: a file that is whole within a second leaves
//! one record, of itself. Start with [`record`], then [`Journal::flush`].

mod load;
mod pages;
mod parts;
mod record;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use farline_spec::Failure;

use self::pages::Pages;
use super::staging::Partial;
pub use load::{Memory, Part, Resumable, load};
#[cfg(test)]
pub use record::take as record_at;
pub use record::{Record, Source, path_key, placed_key, sixteen};

/// Longest time for which a proof is only in memory.
const EVERY: Duration = Duration::from_secs(1);
/// Most bytes of which the proof is only in memory.
const EVERY_BYTES: u64 = 256 << 20;
/// What is written at once when a journal is made anew.
const PIECE_BYTES: usize = 1 << 20;

/// The journal of one copy, open for notes.
#[derive(Debug)]
pub struct Journal {
    notes: Mutex<Notes>,
    wake: Condvar,
    /// Locked by whoever writes: notes are written in the order in which they were taken. Gone once nothing is written any
    /// more.
    file: Mutex<Option<Pages>>,
    /// Whether records wait for the device.
    durable: bool,
}

#[derive(Debug, Default)]
struct Notes {
    records: Vec<u8>,
    parts: HashMap<u64, Noted>,
    part_bytes: u64,
    closed: bool,
}

#[derive(Debug)]
struct Noted {
    partial: Arc<Partial>,
    parts: Vec<Part>,
}

impl Journal {
    /// A journal that goes on in `file`, at its end.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new(file: File, durable: bool) -> io::Result<Self> {
        Ok(Self {
            notes: Mutex::default(),
            wake: Condvar::new(),
            file: Mutex::new(Some(Pages::new(file)?)),
            durable,
        })
    }

    /// Notes a part that was written and proved.
    pub fn part(&self, partial: &Arc<Partial>, part: Part) {
        let mut notes = self.notes();
        let new = || Noted {
            partial: Arc::clone(partial),
            parts: Vec::new(),
        };
        notes
            .parts
            .entry(partial.id())
            .or_insert_with(new)
            .parts
            .push(part);
        notes.part_bytes += part.1;
        if notes.part_bytes >= EVERY_BYTES {
            self.wake.notify_all();
        }
    }

    /// Notes that a file is about to get its name; parts of it need not be remembered any more.
    ///
    /// # Errors
    /// [`FailureKind::Internal`](farline_spec::FailureKind::Internal) for a record that cannot be written down.
    pub fn done(
        &self,
        key: [u8; 16],
        hash: Option<[u8; 32]>,
        partial: Option<&Partial>,
    ) -> Result<(), Failure> {
        let mut notes = self.notes();
        let id = partial.and_then(|partial| notes.forget(partial));
        record::append(&mut notes.records, &Record::Done { key, hash, id })
    }

    /// Takes back that a file is about to get its name: it did not. Handed to the kernel at once, as [`Self::done`] may be.
    ///
    /// # Errors
    /// As [`Self::flush`].
    pub fn undone(&self, key: [u8; 16]) -> Result<(), Failure> {
        record::append(&mut self.notes().records, &Record::Undone { key })?;
        self.hand_over()
    }

    /// Notes that a file got its name and what it is known by where it lies ([`placed_key`]).
    ///
    /// # Errors
    /// As [`Self::done`].
    pub fn placed(&self, source: &Source) -> Result<(), Failure> {
        let key = placed_key(&source.path, source.bytes, source.mtime_ns);
        record::append(&mut self.notes().records, &Record::Placed { key })
    }

    /// Notes that a partial is given up.
    ///
    /// # Errors
    /// As [`Self::done`].
    pub fn dropped(&self, partial: &Partial) -> Result<(), Failure> {
        let mut notes = self.notes();
        match notes.forget(partial) {
            Some(id) => record::append(&mut notes.records, &Record::Dropped { id }),
            None => Ok(()),
        }
    }

    /// Writes down every note there is.
    ///
    /// # Errors
    /// [`FailureKind::System`](farline_spec::FailureKind::System) when data or journal cannot be brought to the device.
    pub fn flush(&self) -> Result<(), Failure> {
        let explain = |error: io::Error| Failure::system("journal of the copy", &error);
        let mut file = self.file.lock().expect(POISONED);
        let (mut records, parts) = self.notes().take();
        let mut synced = Ok(());
        for (id, noted) in &parts {
            // What one file lost is no reason to forget the others.
            match if self.durable {
                noted.partial.sync()
            } else {
                Ok(())
            } {
                Ok(()) => noted.write_down(*id, &mut records)?,
                Err(error) => synced = Err(Failure::system("flushing a file to the device", &error)),
            }
        }
        if let Some(file) = file.as_mut().filter(|_| !records.is_empty()) {
            file.append(&records).map_err(explain)?;
            if self.durable {
                file.sync().map_err(explain)?;
            }
        }
        synced
    }

    /// Hands records to the kernel without waiting for a device: they outlive this process.
    ///
    /// # Errors
    /// As [`Self::flush`].
    pub fn hand_over(&self) -> Result<(), Failure> {
        let mut file = self.file.lock().expect(POISONED);
        let records = std::mem::take(&mut self.notes().records);
        match file.as_mut() {
            Some(file) => file
                .append(&records)
                .map_err(|error| Failure::system("journal of the copy", &error)),
            None => Ok(()),
        }
    }

    /// Flushes whenever it is time, until [`Self::close`]. On a thread of its own.
    ///
    /// # Errors
    /// As [`Self::flush`].
    pub fn keep(&self) -> Result<(), Failure> {
        loop {
            let notes = self.notes();
            let early = |notes: &mut Notes| !notes.closed && notes.part_bytes < EVERY_BYTES;
            let waited = self.wake.wait_timeout_while(notes, EVERY, early);
            let closed = waited.expect(POISONED).0.closed;
            self.flush()?;
            if closed {
                return Ok(());
            }
        }
    }

    /// Ends [`Self::keep`] after one more flush.
    pub fn close(&self) {
        self.notes().closed = true;
        self.wake.notify_all();
    }

    /// As [`Self::close`], and what is not written down need not be any more: the journal goes. Closed before it is removed:
    /// some file systems keep what is removed while it is open under another name.
    pub fn forget(&self) {
        drop(self.file.lock().expect(POISONED).take());
        // What was noted is dropped.
        let _ = self.notes().take();
        self.close();
    }

    /// Gives back room that was reserved and is not needed: nothing more is written.
    pub fn give_back(&self) {
        if let Some(file) = &mut *self.file.lock().expect(POISONED) {
            file.give_back();
        }
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().expect(POISONED)
    }
}

const POISONED: &str = "a thread of the copy panicked while it held the journal";

impl Notes {
    fn take(&mut self) -> (Vec<u8>, HashMap<u64, Noted>) {
        self.part_bytes = 0;
        (std::mem::take(&mut self.records), std::mem::take(&mut self.parts))
    }

    /// Parts of `partial` go; its number if the journal knows it.
    fn forget(&mut self, partial: &Partial) -> Option<u64> {
        if let Some(noted) = self.parts.remove(&partial.id()) {
            let bytes: u64 = noted.parts.iter().map(|part| part.1).sum();
            self.part_bytes = self.part_bytes.saturating_sub(bytes);
        }
        partial.is_noted().then_some(partial.id())
    }
}

impl Noted {
    fn write_down(&self, id: u64, records: &mut Vec<u8>) -> Result<(), Failure> {
        if !self.partial.note() {
            let source = self.partial.source().clone();
            record::append(records, &Record::Begun { id, source })?;
        }
        parts::joined(&self.parts, self.partial.source().bytes)
            .iter()
            .try_for_each(|part| record::append(records, &part_record(id, part)))
    }
}

/// Writes everything that is still true to `out`, as a new journal.
///
/// # Errors
/// [`FailureKind::Internal`](farline_spec::FailureKind::Internal) for a record that cannot be written down,
/// [`FailureKind::System`](farline_spec::FailureKind::System) when `out` does not take it.
pub fn compact(
    key: [u8; 16],
    boot: Option<String>,
    memory: &Memory,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let explain = |error: io::Error| Failure::system("journal of the copy", &error);
    let mut bytes = Vec::new();
    let version = record::VERSION;
    record::append(&mut bytes, &Record::Header { version, key, boot })?;
    for partial in memory.partials.values() {
        let (id, source) = (partial.id, partial.source.clone());
        record::append(&mut bytes, &Record::Begun { id, source })?;
        partial
            .parts
            .iter()
            .try_for_each(|part| record::append(&mut bytes, &part_record(id, part)))?;
    }
    for done in memory.all_done().chain(memory.all_placed()) {
        record::append(&mut bytes, &done)?;
        if bytes.len() > PIECE_BYTES {
            out.write_all(&bytes).map_err(explain)?;
            bytes.clear();
        }
    }
    out.write_all(&bytes).map_err(explain)
}

const fn part_record(id: u64, &(offset, bytes, hash): &Part) -> Record {
    Record::Part {
        id,
        offset,
        bytes,
        hash,
    }
}
