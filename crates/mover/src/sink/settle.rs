//! How a name is settled: once, with a word to the other end, a line of the receipt, and what waited for it set free.

use std::io;
use std::sync::Arc;

use farline_proto::copy::receiver::table::Event;
use farline_proto::copy::receiver::{Counted, Parting, Ready};
use farline_spec::{Failure, FileKind, FileStatus, ReceiptLine, kernel_words};
use tracing::debug;

use super::driver::{Machine, Receiver};
use super::entry::Entry;
use super::plan::Plan;
use super::remembered::Remembered;
use super::run::Run;
use super::site::Destination;
use super::words::{ends_all, in_words};
use crate::Gauges;
use crate::message::Wants;
use crate::path_text::{Shown, one_line};
use crate::receipt::{Receipt, line};
use crate::sum::note_sum;

/// Settles entries: for the machine, the receipt and the figures.
#[derive(Debug)]
pub struct Ledger {
    plan: Arc<Plan>,
    machine: Arc<Machine>,
    destination: Arc<Destination>,
    names: Arc<Remembered>,
    pub receipt: Receipt,
    gauges: Arc<Gauges>,
    run: Arc<Run>,
}

impl Ledger {
    /// Nothing is settled yet.
    pub fn new(
        destination: &Arc<Destination>,
        names: &Arc<Remembered>,
        receipt: Receipt,
        (machine, run, gauges): (&Arc<Machine>, &Arc<Run>, &Arc<Gauges>),
    ) -> Self {
        Self {
            plan: Arc::clone(&destination.plan),
            machine: Arc::clone(machine),
            destination: Arc::clone(destination),
            names: Arc::clone(names),
            receipt,
            gauges: Arc::clone(gauges),
            run: Arc::clone(run),
        }
    }

    /// The files have their names.
    ///
    /// # Errors
    /// As of [`Receipt::settle`].
    pub fn done(&self, files: &[Ready<Arc<Entry>>]) -> Result<(), Failure> {
        let conclude = |machine: &mut Receiver| -> Vec<Option<Counted>> {
            let each = files.iter();
            each.map(|ready| machine.conclude(ready.file, Event::Name))
                .collect()
        };
        let counted = self.machine.with(conclude);
        for (ready, counted) in files.iter().zip(&counted) {
            let (entry, Some(counted)) = (&ready.kept, counted) else {
                continue;
            };
            let bytes = entry.source.bytes;
            self.gauges.settled_files.add(1);
            self.gauges
                .settled_bytes
                .add(bytes - counted.proved_bytes.min(bytes));
            let mut line = self.line(entry, FileStatus::Copied);
            line.resumed_bytes = counted.resumed_bytes;
            note_sum(&mut line, ready.hash);
            self.receipt.settle(&line)?;
        }
        self.run.beat();
        self.machine.with(|machine| {
            let concluded = files
                .iter()
                .zip(&counted)
                .filter(|(_, counted)| counted.is_some());
            concluded.for_each(|(ready, _)| machine.leave(ready.file, Parting::Named(ready.hash)));
        });
        Ok(())
    }

    /// The further name was made, or was there.
    ///
    /// # Errors
    /// As of [`Receipt::settle`].
    pub fn linked(&self, entry: &Entry, status: FileStatus, wants: Wants) -> Result<(), Failure> {
        let file = entry.number;
        let conclude = |machine: &mut Receiver| machine.conclude(file, Event::Name);
        if self.machine.with(conclude).is_none() {
            return Ok(());
        }
        self.gauges.settled_files.add(1);
        let line = line(&entry.source.path, FileKind::HardLink, status, 0);
        self.receipt.settle(&line)?;
        self.machine
            .with(|machine| machine.leave(file, Parting::Linked(wants)));
        Ok(())
    }

    /// An entry is settled by its answer.
    ///
    /// # Errors
    /// As of [`Receipt::settle`].
    pub fn answered(&self, line: &ReceiptLine) -> Result<(), Failure> {
        match line.status {
            FileStatus::Failed => self.gauges.failed_files.add(1),
            _ => {
                self.gauges.settled_files.add(1);
                self.gauges.settled_bytes.add(line.bytes);
            }
        }
        self.receipt.settle(line)?;
        self.run.beat();
        Ok(())
    }

    /// So many bytes need not come.
    pub fn spared(&self, bytes: u64) {
        self.gauges.spared_bytes.add(bytes);
    }

    /// So many bytes of a file that is wanted are proved already.
    pub fn trusted(&self, bytes: u64) {
        self.gauges.settled_bytes.add(bytes);
        self.spared(bytes);
    }

    /// The file could not be made, for `reason`; what came of it goes.
    ///
    /// # Errors
    /// As of [`Receipt::settle`].
    pub fn failed(&self, entry: &Arc<Entry>, reason: &str) -> Result<(), Failure> {
        let file = entry.number;
        let Some(counted) = self.machine.with(|machine| machine.conclude(file, Event::GiveUp)) else {
            return Ok(());
        };
        let reason = one_line(reason);
        self.give_up(entry, counted)?;
        self.names.protect(&entry.source.path);
        let mut line = self.line(entry, FileStatus::Failed);
        line.reason = Some(reason.clone());
        self.gauges.failed_files.add(1);
        self.receipt.settle(&line)?;
        self.machine
            .with(|machine| machine.leave(file, Parting::Failed(reason)));
        Ok(())
    }

    /// The sending end gave the file up, for now (`again`) or for good.
    ///
    /// # Errors
    /// As of [`Receipt::settle`].
    pub fn lost(
        &self,
        entry: &Arc<Entry>,
        counted: Counted,
        reason: &str,
        again: bool,
    ) -> Result<(), Failure> {
        debug!(entry = %Shown(&entry.source.path), reason, again, "entry lost at its source");
        self.give_up(entry, counted)?;
        if again {
            // Counted anew when it is announced anew.
            self.gauges.found_files.take(1);
            self.gauges.found_bytes.take(entry.source.bytes);
        } else {
            let mut line = self.line(entry, FileStatus::Failed);
            line.reason = Some(one_line(reason));
            self.gauges.failed_files.add(1);
            self.receipt.settle(&line)?;
        }
        self.machine
            .with(|machine| machine.leave(entry.number, Parting::Lost(again)));
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
            self.receipt.problem(&self.plan.spec.destination, problem)
        })
    }

    /// What is kept of a file goes.
    fn give_up(&self, entry: &Entry, counted: Counted) -> Result<(), Failure> {
        self.gauges.settled_bytes.take(counted.proved_bytes);
        let mut store = entry.store();
        store.is_over = true;
        if let Some(small) = store.small.take() {
            self.destination.unstage(&small);
        }
        let Some(partial) = &store.partial else {
            return Ok(());
        };
        let kept = self.destination.site().kept();
        kept.journal.dropped(partial)?;
        if self.plan.range().is_some() {
            // Other sessions write to it; the one that ends the copy removes it.
            return Ok(());
        }
        match kept.staging.remove(partial.name()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Failure::system(
                "folder .farline-partial for incomplete files, at the destination",
                &error,
            )),
            _ => Ok(()),
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
