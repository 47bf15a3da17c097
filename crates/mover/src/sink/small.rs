//! Packs to files: each item is proved, written, and named or handed on to its group.

use std::sync::Arc;

use farline_spec::Failure;

use super::entry::{Body, Entry};
use super::finalize_queue::Written;
use super::place::Folders;
use super::shared::{Mode, Shared, broken};
use crate::Frame;
use crate::pack::{self, Item};

/// A thread that writes the files of packs.
pub struct Small<'a> {
    shared: &'a Arc<Shared>,
    folders: Option<Folders>,
}

impl<'a> Small<'a> {
    /// One that has no folder open yet.
    pub const fn new(shared: &'a Arc<Shared>) -> Self {
        Self {
            shared,
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
        self.shared.count_moved(bytes)?;
        let numbers: Vec<u64> = items.iter().map(|item| item.file).collect();
        let entries = self.shared.table.get(&numbers, || self.shared.check())?;
        if self.folders.is_none() && entries.iter().any(Option::is_some) {
            self.folders = self.shared.folders();
        }
        let mut written = Vec::with_capacity(items.len());
        let mut done = Vec::new();
        for (item, entry) in items.iter().zip(&entries) {
            let Some(entry) = entry else {
                continue;
            };
            let Some(hash) = self.admit(item, entry)? else {
                continue;
            };
            match self.folders.as_mut() {
                Some(folders) if self.shared.mode == Mode::Real => {
                    match self.shared.write_small(folders, entry, item.content, hash) {
                        Ok(small) => written.push(small),
                        Err(error) => self.shared.hurt(entry, "new file", &error)?,
                    }
                }
                _ => done.push((Arc::clone(entry), hash)),
            }
        }
        self.shared.done(&done)?;
        self.hand_on(written)
    }

    /// Small files wait for their group where a device is to be waited for.
    fn hand_on(&mut self, written: Vec<Written>) -> Result<(), Failure> {
        if written.is_empty() {
            return Ok(());
        }
        if self.shared.durable {
            self.shared
                .gauges
                .starved_ns
                .time(|| self.shared.works.group(written));
            return Ok(());
        }
        match self.folders.as_mut() {
            Some(folders) => self.shared.finish_group(folders, written),
            None => Ok(()),
        }
    }

    /// The hash of a file that came whole; `None` if it is not to be written.
    #[expect(clippy::option_option, reason = "a file may have no hash")]
    fn admit(&self, item: &Item<'_>, entry: &Arc<Entry>) -> Result<Option<Option<[u8; 32]>>, Failure> {
        let shared = self.shared;
        if entry.link_to.is_some() || item.content.len() as u64 != entry.source.bytes {
            return Err(broken(format!(
                "file {} arrived with a different length",
                entry.number
            )));
        }
        let hash = match shared.is_hashed() {
            true => Some(
                shared
                    .gauges
                    .hash_ns
                    .time(|| *blake3::hash(item.content).as_bytes()),
            ),
            false => None,
        };
        let mut body = entry.body();
        let Body::Expected(spoiled) = &mut *body else {
            return Err(broken(format!("file {} was sent twice", entry.number)));
        };
        if shared.is_hashed() && item.hash.is_none() {
            return Err(broken("a file without its hash"));
        }
        if hash.is_some() && item.hash != hash {
            *spoiled += 1;
            let count = *spoiled;
            drop(body);
            return shared
                .once_more(entry, 0, entry.source.bytes, count)
                .map(|()| None);
        }
        *body = Body::Packed;
        Ok(Some(hash))
    }
}
