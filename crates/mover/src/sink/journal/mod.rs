//! The journal of a copy as a file: what is noted and believed is `farline_proto`'s, here it is written, synced and read.
//!
//! What it does: takes notes of parts written, files done and partials given up, and writes them down in groups, at least
//! every second or every 256 MiB, in the order that [`farline_proto::copy::journal::Flush`] gives.
//! What it must not do: decide what is believed, what a file is or where it goes.
//!
//! In: notes from the threads that write. Out: [`Memory`] at the next start.
//!
//! Start with [`Journal::flush`].

mod pages;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use farline_proto::copy::journal as rules;
use farline_spec::Failure;

use self::pages::Pages;
use super::partial::Partial;
use crate::sum::Sum;
pub use rules::{Memory, Part, Resumable, SHARED_ID, Source, path_key, shared_id, sixteen};
#[cfg(test)]
pub use rules::{Record, record_at};

/// Longest time for which a proof is only in memory.
const EVERY: Duration = Duration::from_secs(1);
/// Most bytes of which the proof is only in memory.
const EVERY_BYTES: u64 = 256 << 20;
/// What is read of a journal at once.
const PIECE_BYTES: usize = 1 << 20;

/// The journal of one copy, open for notes.
#[derive(Debug)]
pub struct Journal {
    inner: Mutex<Inner>,
    wake: Condvar,
    /// Locked by whoever writes: notes are written in the order in which they were taken. Gone once nothing is written any
    /// more.
    file: Mutex<Option<Pages>>,
    /// Whether records wait for the device.
    durable: bool,
}

#[derive(Debug, Default)]
struct Inner {
    notes: rules::Notes<Arc<Partial>>,
    closed: bool,
}

impl Journal {
    /// A journal that goes on in `file`, at its end.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new(file: File, durable: bool) -> io::Result<Self> {
        Ok(Self {
            inner: Mutex::default(),
            wake: Condvar::new(),
            file: Mutex::new(Some(Pages::new(file)?)),
            durable,
        })
    }

    /// An earlier session left this partial, and the journal has it.
    pub fn resumed(&self, partial: &Partial) {
        self.lock().notes.resumed(partial.id());
    }

    /// Whether the journal has this partial, or will have it with what is being written down.
    pub fn has(&self, partial: &Partial) -> bool {
        self.lock().notes.has(partial.id())
    }

    /// Notes a part that was written and proved.
    pub fn part(&self, partial: &Arc<Partial>, part: Part) {
        let mut inner = self.lock();
        if inner.notes.part(partial.id(), partial, partial.source(), part) >= EVERY_BYTES {
            self.wake.notify_all();
        }
    }

    /// Notes that a file is about to get its name; parts of it need not be remembered any more.
    ///
    /// # Errors
    /// [`FailureKind::Internal`](farline_spec::FailureKind::Internal) for a record that cannot be written down.
    pub fn done(&self, key: [u8; 16], hash: Option<Sum>, partial: Option<&Partial>) -> Result<(), Failure> {
        self.lock().notes.done(key, hash, partial.map(Partial::id))
    }

    /// Takes back that a file is about to get its name: it did not. Handed to the kernel at once, as [`Self::done`] may be.
    ///
    /// # Errors
    /// As [`Self::flush`].
    pub fn undone(&self, key: [u8; 16]) -> Result<(), Failure> {
        self.lock().notes.undone(key)?;
        self.hand_over()
    }

    /// Notes that a file got its name and what it is known by where it lies.
    ///
    /// # Errors
    /// As [`Self::done`].
    pub fn placed(&self, source: &Source) -> Result<(), Failure> {
        self.lock().notes.placed(source)
    }

    /// Notes that a partial is given up.
    ///
    /// # Errors
    /// As [`Self::done`].
    pub fn dropped(&self, partial: &Partial) -> Result<(), Failure> {
        self.lock().notes.dropped(partial.id())
    }

    /// Of a partial that the journal has nothing but `parts` is proved from now on.
    ///
    /// # Errors
    /// As [`Self::done`].
    pub fn begun_anew(&self, partial: &Partial, parts: &[Part]) -> Result<(), Failure> {
        self.lock()
            .notes
            .begun_anew(partial.id(), partial.source(), parts)
    }

    /// Writes down every note there is.
    ///
    /// # Errors
    /// [`FailureKind::System`](farline_spec::FailureKind::System) when data or journal cannot be brought to the device.
    pub fn flush(&self) -> Result<(), Failure> {
        let mut file = self.file.lock().expect(POISONED);
        let mut flush = self.lock().notes.take();
        let mut synced = Ok(());
        while let Some(partial) = flush.next() {
            let brought = match self.durable {
                true => partial.sync(),
                false => Ok(()),
            };
            flush.synced(brought.is_ok())?;
            // What one file lost is no reason to forget the others.
            if let Err(error) = brought {
                synced = Err(Failure::system("flushing a file to the device", &error));
            }
        }
        let records = flush.records();
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
        let records = self.lock().notes.take_records();
        match file.as_mut() {
            Some(file) => file.append(&records).map_err(explain),
            None => Ok(()),
        }
    }

    /// Flushes whenever it is time, until [`Self::close`]. On a thread of its own.
    ///
    /// # Errors
    /// As [`Self::flush`].
    pub fn keep(&self) -> Result<(), Failure> {
        loop {
            let early = |inner: &mut Inner| !inner.closed && inner.notes.part_bytes() < EVERY_BYTES;
            let waited = self.wake.wait_timeout_while(self.lock(), EVERY, early);
            let closed = waited.expect(POISONED).0.closed;
            self.flush()?;
            if closed {
                return Ok(());
            }
        }
    }

    /// Ends [`Self::keep`] after one more flush.
    pub fn close(&self) {
        self.lock().closed = true;
        self.wake.notify_all();
    }

    /// As [`Self::close`], and what is not written down need not be any more: the journal goes. Closed before it is removed:
    /// some file systems keep what is removed while it is open under another name.
    pub fn forget(&self) {
        drop(self.file.lock().expect(POISONED).take());
        // What was noted is dropped.
        drop(self.lock().notes.take());
        self.close();
    }

    /// Gives back room that was reserved and is not needed: nothing more is written.
    pub fn give_back(&self) {
        if let Some(file) = &mut *self.file.lock().expect(POISONED) {
            file.give_back();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect(POISONED)
    }
}

const POISONED: &str = "a thread of the copy panicked while it held the journal";

fn explain(error: io::Error) -> Failure {
    Failure::system("journal of the copy", &error)
}

/// Reads the journal of the copy `key`. `boot` names this start of the machine; `has` says whether the partial of this number
/// and file is there with its whole length.
///
/// # Errors
/// The kernel's.
pub fn load(
    mut journal: &File,
    key: &[u8; 16],
    boot: &str,
    has: impl Fn(u64, &Source) -> bool,
) -> io::Result<Memory> {
    let mut reader = rules::Reader::new(*key, boot);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match journal.read(&mut piece)? {
            read if read > 0 && reader.take(&piece[..read]) => {}
            _ => return Ok(reader.end(has)),
        }
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
    rules::compact(key, boot, memory, |piece| out.write_all(piece).map_err(explain))
}
