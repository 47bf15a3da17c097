//! Large files that are whole, and the holes that make them so: hash, device, name. On the threads that give names.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use farline_proto::copy::naming::{Naming, Step};
use farline_proto::copy::receiver::Ready;
use farline_spec::Failure;
use farline_sys::file;
use tracing::debug;

use super::chunk_writer::{Chunk, Proofs};
use super::driver::{Machine, Receiver};
use super::entry::Entry;
use super::name_result::{named, reason_of, tell_named};
use super::partial::Partial;
use super::partials::Partials;
use super::place::Folders;
use super::plan::Plan;
use super::run::Run;
use super::settle::Ledger;
use super::site::Destination;
use super::way::Way;
use super::words;
use crate::Gauges;
use crate::message::GRAIN_BYTES;
use crate::path_text::Shown;
use crate::root::split;
use crate::sum::hole_sum;
use crate::tree_hash::subtree_bytes;

/// From so many files on, all of a file system is flushed to the device at once.
const MANY_FILES: usize = 4;

/// Gives files their names, and does what comes before that.
#[derive(Debug)]
pub struct Finalizer {
    pub plan: Arc<Plan>,
    pub destination: Arc<Destination>,
    pub way: Arc<Way>,
    pub partials: Arc<Partials>,
    pub proofs: Arc<Proofs>,
    pub ledger: Arc<Ledger>,
    pub machine: Arc<Machine>,
    pub run: Arc<Run>,
    pub gauges: Arc<Gauges>,
    /// Bytes of holes that came to be.
    pub hole_bytes: AtomicU64,
}

impl Finalizer {
    /// Makes and hashes what of a hole has not come yet: its zeros count as parts that came.
    ///
    /// # Errors
    /// What ends the copy.
    pub fn hole(&self, entry: &Arc<Entry>, offset: u64, bytes: u64) -> Result<(), Failure> {
        // Claimed before anything is punched: what came as data is not touched.
        let claim = |machine: &mut Receiver| machine.claim_hole(entry.number, offset, bytes);
        let gaps = self.machine.with(claim)?;
        if gaps.is_empty() {
            return Ok(());
        }
        let partial = match self.partials.begun(entry) {
            Ok(partial) => partial,
            Err(error) => return self.ledger.hurt(entry, "new file", &error),
        };
        for (offset, bytes) in gaps {
            if let Some(partial) = &partial
                && !self.plan.device.is_memory
            {
                // A block is given back only if all of it is named, the last of the file too. Where it cannot be done the
                // zeros stay allocated: the content is the same.
                let _ = file::punch(partial.fd(), offset, bytes.next_multiple_of(GRAIN_BYTES));
            }
            self.hash_hole(entry, offset, bytes)?;
        }
        Ok(())
    }

    fn hash_hole(&self, entry: &Arc<Entry>, offset: u64, bytes: u64) -> Result<(), Failure> {
        let most = self
            .machine
            .quietly(|machine| machine.chunk_bytes())
            .unwrap_or(GRAIN_BYTES);
        let (length, end) = (entry.source.bytes, offset + bytes);
        let mut at = offset;
        while at < end && !entry.store().is_over {
            self.run.check()?;
            let part = subtree_bytes(at, end, length, most);
            let zeros = |kind| hole_sum(kind, at, part, part == length);
            let hash = self.plan.sum.map(|kind| self.gauges.hash_ns.time(|| zeros(kind)));
            self.run.beat();
            self.hole_bytes.fetch_add(part, Ordering::Relaxed);
            self.gauges.spared_bytes.add(part);
            let entry = Arc::clone(entry);
            let part_of_hole = Chunk {
                entry,
                offset: at,
                bytes: part,
                hash,
            };
            self.proofs.proved(&part_of_hole, false)?;
            at += part;
        }
        Ok(())
    }

    /// Large files that are whole: hash, device, name.
    ///
    /// # Errors
    /// What ends the copy.
    pub fn finish_large(
        &self,
        folders: &mut Option<Folders>,
        batch: Vec<Ready<Arc<Entry>>>,
    ) -> Result<(), Failure> {
        let is_synced = self.plan.durable && batch.len() >= MANY_FILES;
        if is_synced {
            self.sync_all(folders.as_ref())?;
        }
        let mut done = Vec::with_capacity(batch.len());
        for ready in batch {
            if self.finish_one(folders, &ready, is_synced)? {
                done.push(ready);
            }
        }
        self.ledger.done(&done)
    }

    /// Whether a file got its name.
    fn finish_one(
        &self,
        folders: &mut Option<Folders>,
        ready: &Ready<Arc<Entry>>,
        is_synced: bool,
    ) -> Result<bool, Failure> {
        let entry = &ready.kept;
        let (partial, written) = {
            let mut store = entry.store();
            // The engine's own descriptor is not needed any more.
            (store.partial.clone(), store.file.take())
        };
        if let Err(reason) = reason_of(written.map_or(Ok(()), |file| file.flush()))? {
            return self.ledger.failed(entry, &reason).map(|()| false);
        }
        let (Some(partial), Some(folders)) = (partial, folders.as_mut()) else {
            return Ok(true);
        };
        if self.plan.range().is_some() {
            // The session that ends the copy gives the name: here its parts are all that is to come.
            return Ok(true);
        }
        let mut naming = Naming::new(self.plan.naming_rules(), entry.replaces, is_synced);
        while let Some(step) = naming.next() {
            let done = self
                .large_step(folders, ready, &partial, step)
                .inspect_err(|_| self.leave_unnamed(&mut naming, entry))?;
            naming.did(done.is_ok());
            if let Err(reason) = done {
                self.leave_unnamed(&mut naming, entry);
                return self.ledger.failed(entry, &reason).map(|()| false);
            }
        }
        Ok(true)
    }

    /// Takes back that a file is done that will not be named.
    fn leave_unnamed(&self, naming: &mut Naming, entry: &Entry) {
        naming.did(false);
        if let Some(step) = naming.next()
            && let Err(why) = self.note(entry, None, None, step)
        {
            self.run.fail(why);
        }
    }

    fn large_step(
        &self,
        folders: &mut Folders,
        ready: &Ready<Arc<Entry>>,
        partial: &Partial,
        step: Step,
    ) -> Result<Result<(), String>, Failure> {
        let entry = &ready.kept;
        match step {
            Step::Sync => self.bring_to_device(partial),
            Step::ReadBack => self.read_back(partial.fd(), entry.source.bytes, ready.hash),
            Step::Dress if partial.is_broken() => Ok(Err("the device reported a write error".to_owned())),
            Step::Dress => {
                debug!(entry = %Shown(&entry.source.path), synced = self.plan.durable, "entry is whole, hashed and written");
                reason_of(self.gauges.name_ns.time(|| self.dress(partial.fd(), entry)))
            }
            Step::Name => {
                self.run.check()?;
                let renamed = self
                    .gauges
                    .name_ns
                    .time(|| self.name_large(folders, entry, partial));
                tell_named(entry, &renamed);
                reason_of(renamed)
            }
            Step::NoteDone | Step::HandOver | Step::NotePlaced | Step::TakeBack => {
                self.note(entry, ready.hash, Some(partial), step).map(Ok)
            }
        }
    }

    fn bring_to_device(&self, partial: &Partial) -> Result<Result<(), String>, Failure> {
        match self.gauges.sync_ns.time(|| partial.sync()) {
            Ok(()) => Ok(Ok(())),
            Err(error) => {
                words::ends_all(&error)?;
                let reason = words::in_words(&error);
                Ok(Err(format!("flushing to the device: {reason}")))
            }
        }
    }

    fn name_large(&self, folders: &mut Folders, entry: &Entry, partial: &Partial) -> std::io::Result<()> {
        let staging = &self.destination.site().kept().staging;
        let (parent, name) = split(&entry.source.path);
        let folder = folders.get(parent)?;
        let put = match entry.replaces {
            true => self
                .way
                .put_in_place(partial.name(), folder.as_fd(), name, &entry.source.path),
            false => file::rename(staging.fd(), partial.name(), folder.as_fd(), name, false),
        };
        named(self.unless_across(put, (partial.fd(), Some(partial.name())), entry, folder.as_fd()))
    }
}
