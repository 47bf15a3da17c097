//! How a name is settled: once, with a word to the other end, a line of the receipt, and what waited for it set free.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use farline_spec::{Failure, FileKind, FileStatus, ReceiptLine, kernel_words};
use tracing::debug;

use super::entry::{Body, Entry};
use super::journal::path_key;
use super::shared::{POISONED, Shared, ends_all, in_words, one_line};
use crate::message::Feedback;
use crate::path_text::{self, Shown};

impl Shared {
    /// The file has its name.
    ///
    /// # Errors
    /// As of [`Receipt::settle`].
    pub fn done(&self, files: &[(Arc<Entry>, Option<[u8; 32]>)]) -> Result<(), Failure> {
        let mut said = Vec::with_capacity(files.len());
        let mut numbers = Vec::with_capacity(files.len());
        for (entry, hash) in files {
            if entry.over.swap(true, Ordering::AcqRel) {
                continue;
            }
            let file = entry.number;
            said.push(Feedback::Done { file, hash: *hash });
            numbers.push(file);
            let (resumed, counted) = match &*entry.body() {
                Body::Large(large) => (large.resumed_bytes, large.proved_bytes),
                _ => (0, 0),
            };
            self.gauges.settled_files.add(1);
            self.gauges
                .settled_bytes
                .add(entry.source.bytes - counted.min(entry.source.bytes));
            let mut line = self.line(entry, FileStatus::Copied);
            line.resumed_bytes = resumed;
            line.blake3 = hash.map(|hash| blake3::Hash::from_bytes(hash).to_hex().to_string());
            self.receipt.settle(&line)?;
            self.release(&entry.source.path, true);
        }
        self.pulse.beat();
        self.leave(numbers.into_iter(), || self.outbox.say(said));
        Ok(())
    }

    /// The file could not be made, for `reason`; what came of it goes.
    ///
    /// # Errors
    /// As of [`Receipt::settle`].
    pub fn failed(&self, entry: &Arc<Entry>, reason: &str) -> Result<(), Failure> {
        if entry.over.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let reason = one_line(reason);
        self.has_stragglers.store(true, Ordering::Release);
        self.give_up(entry)?;
        self.protect(&entry.source.path);
        let mut line = self.line(entry, FileStatus::Failed);
        line.reason = Some(reason.clone());
        self.gauges.failed_files.add(1);
        self.receipt.settle(&line)?;
        let file = entry.number;
        self.leave([file].into_iter(), || {
            self.outbox.say([Feedback::Failed { file, reason }]);
            self.release(&entry.source.path, false);
        });
        Ok(())
    }

    /// The sending end gave the file up, for now (`again`) or for good.
    ///
    /// # Errors
    /// As of [`Receipt::settle`].
    pub fn lost(&self, entry: &Arc<Entry>, reason: &str, again: bool) -> Result<(), Failure> {
        if entry.over.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        debug!(entry = %Shown(&entry.source.path), reason, again, "entry lost at its source");
        self.has_stragglers.store(true, Ordering::Release);
        self.give_up(entry)?;
        if again {
            // Counted anew when it is announced anew.
            self.gauges.found_files.take(1);
            self.gauges.found_bytes.take(entry.source.bytes);
            let wanted = entry.source.bytes - entry.resumed_bytes();
            self.wanted_bytes.fetch_sub(wanted, Ordering::Relaxed);
        } else {
            let mut line = self.line(entry, FileStatus::Failed);
            line.reason = Some(one_line(reason));
            self.gauges.failed_files.add(1);
            self.receipt.settle(&line)?;
            self.release(&entry.source.path, false);
        }
        self.leave([entry.number].into_iter(), || ());
        Ok(())
    }

    /// An error while `entry` was handled by this machine: its own, or one that ends the copy.
    ///
    /// # Errors
    /// [`FailureKind::System`] where no file could be written after this one.
    pub fn hurt(&self, entry: &Arc<Entry>, what: &str, error: &io::Error) -> Result<(), Failure> {
        debug!(
            entry = %Shown(&entry.source.path),
            step = what,
            errno = error.raw_os_error(),
            reason = kernel_words(error),
            "entry not written"
        );
        ends_all(error)?;
        self.failed(entry, &format!("{what}: {}", in_words(error)))
    }

    /// What went wrong besides files counts as failed, under the destination's name.
    ///
    /// # Errors
    /// As of [`Receipt::settle`].
    pub fn note_problems(&self, problems: &[String]) -> Result<(), Failure> {
        problems.iter().try_for_each(|problem| {
            self.gauges.failed_files.add(1);
            self.receipt.problem(&self.spec.destination, problem)
        })
    }

    /// The sources have a name that could not be made here: what has it here, and what is below, is not deleted.
    pub fn protect(&self, path: &[u8]) {
        if self.spec.delete.is_some() {
            self.seen.keep(path);
        }
    }

    /// What is kept of a file goes.
    fn give_up(&self, entry: &Entry) -> Result<(), Failure> {
        self.gauges.settled_bytes.take(entry.proved_bytes());
        let Some(partial) = entry.partial() else {
            return Ok(());
        };
        let kept = self.site().kept();
        kept.journal.dropped(&partial)?;
        match kept.staging.remove(partial.name()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Failure::system("staging folder .farline-partial", &error))
            }
            _ => Ok(()),
        }
    }

    /// Further names of the file at `path` need not wait any longer.
    pub fn release(&self, path: &[u8], is_there: bool) {
        if !self.spec.hard_links {
            return;
        }
        let key = path_key(path);
        let waiting = {
            let mut parked = self.parked.lock().expect(POISONED);
            if !is_there {
                parked.failed.insert(key);
            }
            parked.awaited.remove(&key)
        };
        waiting
            .into_iter()
            .flatten()
            .for_each(|entry| self.works.link(entry));
    }

    /// Entries are settled, which `tell` tells the other end; if they were the last, what comes after all of them begins.
    pub fn leave(&self, numbers: impl Iterator<Item = u64>, tell: impl FnOnce()) {
        self.table.leave(numbers, tell);
        self.close_if_over();
    }

    /// Begins what comes after all entries, if all are settled.
    pub fn close_if_over(&self) {
        if self.table.is_over().is_some() {
            self.works.close();
        }
    }

    fn line(&self, entry: &Entry, status: FileStatus) -> ReceiptLine {
        let kind = match entry.link_to {
            Some(_) => FileKind::HardLink,
            None => FileKind::File,
        };
        line(&entry.source.path, kind, status, entry.source.bytes)
    }
}

/// A receipt line that says no more.
pub fn line(path: &[u8], kind: FileKind, status: FileStatus, bytes: u64) -> ReceiptLine {
    ReceiptLine {
        path: path_text::to_text(path),
        kind,
        status,
        bytes,
        resumed_bytes: 0,
        blake3: None,
        reason: None,
    }
}
