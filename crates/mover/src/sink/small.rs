//! Packs to files: each item is proved, written, and named or handed on to its group.

use std::sync::Arc;

use farline_proto::copy::receiver::{self, Known, Ready};
use farline_spec::Failure;

use super::driver::Receiver;
use super::entry::Entry;
use super::finalizer::Finalizer;
use super::intake::Intake;
use super::place::Folders;
use super::plan::Mode;
use super::settle::Ledger;
use super::site::Destination;
use crate::Frame;
use crate::pack::{self, Item};
use crate::sum::{Sum, content_sum};

/// A thread that writes the files of packs.
pub struct Small {
    intake: Arc<Intake>,
    destination: Arc<Destination>,
    finalizer: Arc<Finalizer>,
    ledger: Arc<Ledger>,
    folders: Option<Folders>,
}

/// A file of a pack that is to be written.
struct Taken<'a> {
    entry: Arc<Entry>,
    content: &'a [u8],
    hash: Option<Sum>,
}

impl Small {
    /// One that has no folder open yet.
    pub fn new(
        intake: &Arc<Intake>,
        destination: &Arc<Destination>,
        finalizer: &Arc<Finalizer>,
        ledger: &Arc<Ledger>,
    ) -> Self {
        Self {
            intake: Arc::clone(intake),
            destination: Arc::clone(destination),
            finalizer: Arc::clone(finalizer),
            ledger: Arc::clone(ledger),
            folders: None,
        }
    }

    /// Writes the files of one pack.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`](farline_spec::FailureKind::Protocol) for a pack that makes no sense; what ends the copy.
    pub fn write(&mut self, frame: &Frame) -> Result<(), Failure> {
        let items = pack::items(frame.payload()).collect::<Result<Vec<_>, _>>()?;
        let bytes = items.iter().map(|item| item.content.len() as u64).sum();
        self.intake.count_moved(bytes)?;
        let taken = self.take(&items)?;
        if self.folders.is_none() && !taken.is_empty() {
            self.folders = self.destination.folders();
        }
        let mut written = Vec::with_capacity(taken.len());
        for one in taken {
            let Some(folders) = self
                .folders
                .as_mut()
                .filter(|_| self.intake.plan.mode == Mode::Real)
            else {
                written.push(ready(&one.entry, one.hash));
                continue;
            };
            match self.finalizer.write_small(folders, &one.entry, one.content) {
                Ok(()) => written.push(ready(&one.entry, one.hash)),
                Err(error) => self.ledger.hurt(&one.entry, "new file", &error)?,
            }
        }
        self.hand_on(&written)
    }

    /// Those of the items that are wanted and whole.
    fn take<'b>(&self, items: &[Item<'b>]) -> Result<Vec<Taken<'b>>, Failure> {
        let intake = &self.intake;
        let facts: Vec<receiver::Item> = items.iter().map(facts).collect();
        let known = |receiver: &Receiver| known(receiver, &facts);
        let entries = intake.machine.wait_for(known, || intake.run.check())?;
        let sum = |item: &Item<'_>, kind| intake.gauges.hash_ns.time(|| content_sum(kind, item.content));
        let kind = |entry: &Option<Arc<Entry>>| intake.plan.sum.filter(|_| entry.is_some());
        let hashes: Vec<Option<Sum>> = items
            .iter()
            .zip(&entries)
            .map(|(item, entry)| kind(entry).map(|kind| sum(item, kind)))
            .collect();
        let admissions = intake.machine.with(|machine| {
            let pairs = facts.iter().zip(&hashes);
            pairs
                .map(|(item, found)| machine.take_item(item, *found))
                .collect::<Result<Vec<_>, _>>()
        })?;
        let mut taken = Vec::with_capacity(items.len());
        for (((item, entry), admission), hash) in items.iter().zip(entries).zip(admissions).zip(hashes) {
            if let Some(entry) = entry
                && intake.admitted(&entry, admission)?
            {
                let content = item.content;
                taken.push(Taken { entry, content, hash });
            }
        }
        Ok(taken)
    }

    /// Small files wait for their group where a device is to be waited for; others are named now.
    fn hand_on(&mut self, written: &[Ready<Arc<Entry>>]) -> Result<(), Failure> {
        let intake = &self.intake;
        if written.is_empty() {
            return Ok(());
        }
        let numbers: Vec<u64> = written.iter().map(|ready| ready.file).collect();
        let now_ns = intake.machine.now_ns();
        let to_name = intake
            .machine
            .with(|machine| machine.items_written(&numbers, now_ns))?;
        if intake.plan.durable {
            let full = |machine: &Receiver| machine.is_full_of_small();
            intake.gauges.starved_ns.time(|| intake.machine.wait_while(full));
            return Ok(());
        }
        // In the same order, without those that were settled meanwhile.
        let mut to_name = to_name.into_iter().peekable();
        let is_to_name = |ready: &&Ready<Arc<Entry>>| to_name.next_if_eq(&ready.file).is_some();
        let ready: Vec<_> = written.iter().filter(is_to_name).cloned().collect();
        match self.folders.as_mut() {
            Some(folders) if intake.plan.mode == Mode::Real => self.finalizer.finish_group(folders, &ready),
            _ => self.ledger.done(&ready),
        }
    }
}

fn facts(item: &Item<'_>) -> receiver::Item {
    receiver::Item {
        file: item.file,
        bytes: item.content.len() as u64,
        hash: item.hash,
    }
}

/// The entries of items, `None` for those that are settled, as soon as all of them were announced.
fn known(receiver: &Receiver, items: &[receiver::Item]) -> Result<Option<Vec<Option<Arc<Entry>>>>, Failure> {
    let mut entries = Vec::with_capacity(items.len());
    for item in items {
        entries.push(match receiver.check_item(item)? {
            Known::NotYet => return Ok(None),
            Known::Over => None,
            Known::Open(entry) => Some(entry),
        });
    }
    Ok(Some(entries))
}

fn ready(entry: &Arc<Entry>, hash: Option<Sum>) -> Ready<Arc<Entry>> {
    Ready {
        file: entry.number,
        kept: Arc::clone(entry),
        hash,
    }
}
