//! Large files that are whole, and the holes that make them so: hash, device, name. On the threads that give names.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use farline_spec::Failure;
use farline_sys::file;
use tracing::debug;

use super::entry::{Body, Entry};
use super::large::Chunk;
use super::name::{named, reason_of, tell_named};
use super::place::{Folders, split};
use super::shared::Shared;
use super::staging::Partial;
use crate::message::GRAIN_BYTES;
use crate::path_text::Shown;
use crate::tree_hash::{TreeHash, hole_hash, subtree_bytes};

/// From so many files on, all of a file system is flushed to the device at once.
const MANY_FILES: usize = 4;

impl Shared {
    /// Makes and hashes what of a hole has not come yet: its zeros count as parts that came.
    ///
    /// # Errors
    /// What ends the copy.
    pub fn hole(&self, entry: &Arc<Entry>, offset: u64, bytes: u64) -> Result<(), Failure> {
        // Claimed before anything is punched: what came as data is not touched.
        let claimed = self.with_large(entry, |large| {
            let gaps = large.claimed.claim_gaps(offset, bytes);
            self.check_parts(large).map(|()| (large.partial.clone(), gaps))
        })?;
        let Some((partial, gaps)) = claimed.transpose()? else {
            return Ok(());
        };
        for (offset, bytes) in gaps {
            if let Some(partial) = &partial
                && !self.device.is_memory
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
        let (most, length) = (self.chunk_bytes(), entry.source.bytes);
        let end = offset + bytes;
        let mut at = offset;
        while at < end && !entry.over.load(Ordering::Acquire) {
            self.check()?;
            let part = subtree_bytes(at, end, length, most);
            let hash = self
                .is_hashed()
                .then(|| self.gauges.hash_ns.time(|| hole_hash(at, part, part == length)));
            self.pulse.beat();
            self.hole_bytes.fetch_add(part, Ordering::Relaxed);
            self.gauges.spared_bytes.add(part);
            let entry = Arc::clone(entry);
            let part_of_hole = Chunk {
                entry,
                offset: at,
                bytes: part,
                hash,
            };
            self.proved(&part_of_hole, false)?;
            at += part;
        }
        Ok(())
    }

    /// Large files that are whole: hash, device, name.
    ///
    /// # Errors
    /// What ends the copy.
    pub fn finish_large(&self, folders: &mut Option<Folders>, batch: Vec<Arc<Entry>>) -> Result<(), Failure> {
        if self.durable && batch.len() >= MANY_FILES {
            self.sync_all(folders.as_ref())?;
        }
        let is_synced = !self.durable || batch.len() >= MANY_FILES;
        let mut done = Vec::with_capacity(batch.len());
        for entry in batch {
            if let Some(hash) = self.finish_one(folders, &entry, is_synced)? {
                done.push((entry, hash));
            }
        }
        self.done(&done)
    }

    /// The hash of a file that got its name; `None` if it failed.
    fn finish_one(
        &self,
        folders: &mut Option<Folders>,
        entry: &Arc<Entry>,
        is_synced: bool,
    ) -> Result<Option<Option<[u8; 32]>>, Failure> {
        let (hash, said, partial) = match &mut *entry.body() {
            Body::Large(large) => {
                // The engine's own descriptor is not needed any more.
                large.file = None;
                let hash = large.tree.as_ref().and_then(TreeHash::root);
                (hash, large.settled.flatten(), large.partial.clone())
            }
            Body::Expected(_) | Body::Packed => return Ok(None),
        };
        if said.is_some_and(|said| hash.is_some_and(|hash| hash != said))
            || (self.is_hashed() && hash.is_none())
        {
            self.failed(entry, "its parts do not add up to the file that was read")?;
            return Ok(None);
        }
        let (Some(partial), Some(folders)) = (partial, folders.as_mut()) else {
            return Ok(Some(hash));
        };
        if !is_synced && let Err(error) = self.gauges.sync_ns.time(|| partial.sync()) {
            return self.hurt(entry, "flushing to the device", &error).map(|()| None);
        }
        if partial.is_broken() {
            self.failed(entry, "the device reported a write error")?;
            return Ok(None);
        }
        if let Err(reason) = self.read_back(partial.fd(), entry.source.bytes, hash)? {
            self.failed(entry, &reason)?;
            return Ok(None);
        }
        debug!(entry = %Shown(&entry.source.path), synced = self.durable, "entry is whole, hashed and written");
        let named = self
            .gauges
            .name_ns
            .time(|| self.name_large(folders, entry, &partial, hash))?;
        match named {
            Ok(()) => Ok(Some(hash)),
            Err(reason) => self.failed(entry, &reason).map(|()| None),
        }
    }

    fn name_large(
        &self,
        folders: &mut Folders,
        entry: &Entry,
        partial: &Partial,
        hash: Option<[u8; 32]>,
    ) -> Result<Result<(), String>, Failure> {
        let kept = self.site().kept();
        let (parent, name) = split(&entry.source.path);
        let dressed = self.dress(partial.fd(), entry).and_then(|()| folders.get(parent));
        let folder = match dressed {
            Ok(folder) => folder,
            Err(error) => return reason_of(Err(error)),
        };
        self.check()?;
        let key = entry.source.key();
        let is_before = self.is_noted_before(entry);
        if is_before {
            kept.journal.done(key, hash, Some(partial))?;
            kept.journal.hand_over()?;
        }
        let renamed = named(match entry.replaces {
            true => self.put_in_place(partial.name(), folder.as_fd(), name, &entry.source.path),
            false => file::rename(kept.staging.fd(), partial.name(), folder.as_fd(), name, false),
        });
        tell_named(entry, &renamed);
        match &renamed {
            Ok(()) if is_before => {}
            Ok(()) => {
                kept.journal.done(key, hash, Some(partial))?;
                kept.journal.placed(&entry.source)?;
            }
            Err(_) if is_before => kept.journal.undone(key)?,
            Err(_) => {}
        }
        reason_of(renamed)
    }
}
