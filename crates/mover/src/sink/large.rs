//! Files that come in chunks: any chunk by any stream, each proved by its own hash before it counts.

use std::collections::HashMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use farline_proto::copy::{Claim, Ranges};
use farline_spec::{Failure, FailureKind};
use farline_sys::file::{self, OpenFlags};
use tracing::debug;

use super::entry::{Body, Entry, Large};
use super::journal::Resumable;
use super::shared::{Mode, Shared, broken};
use crate::engine::{OpenFile, Writer};
use crate::frame::Header;
use crate::message::{Feedback, GRAIN_BYTES, Wants, is_chunk};
use crate::path_text::Shown;
use crate::tree_hash::{TreeHash, chunk_hash};

/// How often a chunk may come damaged before its file is given up.
const MOST_SPOILED: u8 = 3;
/// Chunks of one copy that may come damaged: a path that spoils more carries no copy.
const MOST_REPEATED_CHUNKS: u64 = 65_536;
/// Parts that do not touch of all files under way; each takes about a hundred bytes with its hash.
const MOST_PARTS: usize = if cfg!(test) { 1 << 10 } else { 1 << 20 };

/// A chunk that was proved and is to be written.
#[derive(Debug)]
pub struct Chunk {
    /// Its file.
    pub entry: Arc<Entry>,
    /// Where in the file.
    pub offset: u64,
    /// How long it is.
    pub bytes: u64,
    /// Its chaining value, where it is hashed.
    pub hash: Option<[u8; 32]>,
}

impl Shared {
    /// Checks a chunk that came; `None` if it is not to be written.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`](farline_spec::FailureKind::Protocol) for a chunk that no file has; what ends the copy.
    pub fn admit(&self, header: &Header, content: &[u8]) -> Result<Option<Chunk>, Failure> {
        let found = self.table.get(&[header.file], || self.check())?;
        let Some(entry) = found.into_iter().next().flatten() else {
            return Ok(None);
        };
        let (offset, bytes) = (header.offset, content.len() as u64);
        let length = entry.source.bytes;
        if entry.link_to.is_some() || !is_chunk(offset, bytes, length, self.chunk_bytes()) {
            return Err(broken(format!("an invalid chunk of file {}", header.file)));
        }
        if self.is_hashed() {
            let Some(said) = header.hash else {
                return Err(broken("a chunk without its hash"));
            };
            let is_whole_file = bytes == length;
            let found = self
                .gauges
                .hash_ns
                .time(|| chunk_hash(offset, content, is_whole_file));
            if found != said {
                return self.spoiled(&entry, offset, bytes).map(|()| None);
            }
        }
        let hash = header.hash.filter(|_| self.is_hashed());
        let claimed = self.with_large(&entry, |large| {
            let claim = large.claimed.claim(offset, bytes);
            self.check_parts(large).map(|()| claim)
        })?;
        let Some(claim) = claimed.transpose()? else {
            return Ok(None);
        };
        match claim {
            Claim::Torn => Err(broken(format!("chunks of file {} overlap", header.file))),
            Claim::Known => Ok(None),
            Claim::Taken => Ok(Some(Chunk {
                entry,
                offset,
                bytes,
                hash,
            })),
        }
    }

    /// A chunk came damaged: once more, or the file is given up.
    fn spoiled(&self, entry: &Arc<Entry>, offset: u64, bytes: u64) -> Result<(), Failure> {
        let count = self.with_large(entry, |large| {
            let count = large.spoiled.entry(offset).or_default();
            *count += 1;
            *count
        })?;
        match count {
            Some(count) => self.once_more(entry, offset, bytes, count),
            None => Ok(()),
        }
    }

    /// Asks for the chunk of `bytes` bytes at `offset` again, which came damaged `count` times.
    ///
    /// # Errors
    /// As of [`Shared::failed`].
    pub fn once_more(&self, entry: &Arc<Entry>, offset: u64, bytes: u64, count: u8) -> Result<(), Failure> {
        if self.repeated_chunks.fetch_add(1, Ordering::Relaxed) >= MOST_REPEATED_CHUNKS {
            return Err(broken(format!(
                "more than {MOST_REPEATED_CHUNKS} chunks arrived corrupted"
            )));
        }
        if count > MOST_SPOILED {
            let line = format!("the chunk at byte {offset} arrived corrupted {count} times");
            return self.failed(entry, &line);
        }
        let file = entry.number;
        debug!(
            entry = %Shown(&entry.source.path),
            offset,
            bytes,
            times = count,
            "chunk came damaged and is asked for again"
        );
        self.outbox.say([Feedback::Again { file, offset, bytes }]);
        Ok(())
    }

    /// Frame `record` of `stream` did not open: what it carried is asked for again, whatever it was.
    pub fn unopened(&self, stream: u16, record: u64) {
        self.repeated_chunks.fetch_add(1, Ordering::Relaxed);
        // What comes once more may come to a file that is over.
        self.has_stragglers.store(true, Ordering::Release);
        self.outbox.say([Feedback::Unopened { stream, record }]);
    }

    /// `stream` cannot be read from frame `record` on: the others take over, if there are any.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`](farline_spec::FailureKind::Protocol) where it was the last.
    pub fn out_of_step(&self, stream: u16, record: u64) -> Result<(), Failure> {
        if self.lanes.lose() {
            return Err(broken(format!(
                "stream {stream} cannot be read from frame {record} on, and no other stream is left: its data were modified in \
                 transit"
            )));
        }
        self.has_stragglers.store(true, Ordering::Release);
        self.outbox.say([Feedback::OutOfStep { stream, record }]);
        Ok(())
    }

    /// Parts that do not touch are few where both ends are sound.
    ///
    /// # Errors
    /// [`FailureKind::Limit`](farline_spec::FailureKind::Limit) for too many.
    pub fn check_parts(&self, large: &mut Large) -> Result<(), Failure> {
        let own = large.claimed.count();
        match large.parts.set(own) > MOST_PARTS {
            true => Err(Failure::new(
                FailureKind::Limit,
                format!(
                    "more than {MOST_PARTS} parts of files that do not touch: the other end cuts them too small"
                ),
            )),
            false => Ok(()),
        }
    }

    /// Does `work` with the file's parts, which begin to exist here; `None` if the file failed or is over.
    ///
    /// # Errors
    /// What ends the copy.
    pub fn with_large<T>(
        &self,
        entry: &Arc<Entry>,
        work: impl FnOnce(&mut Large) -> T,
    ) -> Result<Option<T>, Failure> {
        let mut body = entry.body();
        if entry.over.load(Ordering::Acquire) {
            return Ok(None);
        }
        match &mut *body {
            Body::Packed => {
                return Err(broken(format!(
                    "file {} was sent both in a pack and in chunks",
                    entry.number
                )));
            }
            Body::Expected(_) => match self.begin(entry) {
                Ok(large) => *body = Body::Large(Box::new(large)),
                Err(error) => {
                    drop(body);
                    return self.hurt(entry, "new file", &error).map(|()| None);
                }
            },
            Body::Large(_) => {}
        }
        match &mut *body {
            Body::Large(large) => Ok(Some(work(large))),
            Body::Expected(_) | Body::Packed => Ok(None),
        }
    }

    /// Parts of a file of which nothing is there.
    fn nothing_of(&self, length: u64) -> Large {
        Large {
            partial: None,
            file: None,
            tree: self.is_hashed().then(|| TreeHash::new(length)),
            claimed: Ranges::default(),
            parts: self.parts.of_file(),
            proved: Ranges::default(),
            proved_bytes: 0,
            resumed_bytes: 0,
            settled: None,
            spoiled: HashMap::new(),
            is_finishing: false,
        }
    }

    fn begin(&self, entry: &Entry) -> io::Result<Large> {
        let length = entry.source.bytes;
        let mut large = self.nothing_of(length);
        if self.mode != Mode::Real {
            return Ok(large);
        }
        let staging = &self.site().kept().staging;
        let partial = self
            .gauges
            .name_ns
            .time(|| staging.begin(entry.source.clone(), entry.mode & 0o777))?;
        if !self.device.is_memory
            && let Err(error) = file::allocate(partial.fd(), length)
            // Not every file system can.
            && error.kind() == io::ErrorKind::StorageFull
        {
            // What matters is that there is no room.
            let given_back = file::punch(partial.fd(), 0, length);
            if !self.spec.sparse || given_back.is_err() {
                let _ = staging.remove(partial.name());
                return Err(error);
            }
            // A file of holes needs less than its length.
        }
        large.partial = Some(Arc::new(partial));
        Ok(large)
    }

    /// Gives back the room of what did not come, of all files under way: a session that broke off keeps what it proved, and
    /// no more. A file of which nothing is proved goes.
    pub fn give_back_rest(&self) {
        for entry in self.table.all() {
            let body = entry.body();
            let Body::Large(large) = &*body else { continue };
            let Some(partial) = &large.partial else { continue };
            if large.proved.count() == 0 && !self.site().kept().journal.has(partial) {
                // Whoever goes on sweeps away what could not be removed now.
                let _ = self.site().kept().staging.remove(partial.name());
                continue;
            }
            give_back(partial.fd(), &large.proved, entry.source.bytes);
        }
        self.site().kept().journal.give_back();
        self.works
            .discard_group(|name| self.site().kept().staging.discard(name));
    }

    /// Goes on with what an earlier session left of a file.
    ///
    /// # Errors
    /// [`FailureKind::System`](farline_spec::FailureKind::System) when a part that cannot be used cannot be removed.
    pub fn resumed(&self, entry: &Entry, left: Resumable) -> Result<Wants, Failure> {
        let staging = &self.site().kept().staging;
        let Ok(partial) = staging.resume(left.id, left.source.clone()) else {
            let removed = staging.remove_left(left.id, &left.source);
            return removed
                .map(|()| Wants::All)
                .map_err(|error| Failure::system("staging folder .farline-partial", &error));
        };
        let mut large = self.nothing_of(entry.source.bytes);
        self.site().kept().journal.resumed(&partial);
        large.partial = Some(Arc::new(partial));
        let parts = left.proved(self.is_hashed());
        for part in &parts {
            large.claimed.claim(part.offset, part.bytes);
            large.proved.claim(part.offset, part.bytes);
            large.proved_bytes += part.bytes;
            if let (Some(tree), Some(hash)) = (&mut large.tree, part.hash) {
                tree.insert(part.offset, part.bytes, hash);
            }
        }
        large.resumed_bytes = large.proved_bytes;
        self.check_parts(&mut large)?;
        self.gauges.settled_bytes.add(large.proved_bytes);
        self.gauges.spared_bytes.add(large.proved_bytes);
        *entry.body() = Body::Large(Box::new(large));
        match parts.is_empty() {
            true => Ok(Wants::All),
            false => Ok(Wants::Rest(parts)),
        }
    }

    /// The file of a chunk as `writer` takes it; `None` where nothing is written, or the file is over.
    ///
    /// # Errors
    /// The kernel's.
    pub fn file_of(&self, writer: &dyn Writer, entry: &Entry) -> io::Result<Option<Arc<OpenFile>>> {
        let mut body = entry.body();
        let Body::Large(large) = &mut *body else {
            return Ok(None);
        };
        if let Some(file) = &large.file {
            return Ok(Some(Arc::clone(file)));
        }
        let opened = match &large.partial {
            Some(partial) => self.site().kept().staging.open_again(partial)?,
            None => file::open_at(None, b"/dev/null", OpenFlags::WRITE, 0)?,
        };
        let file = writer.adopt(opened)?;
        large.file = Some(Arc::clone(&file));
        Ok(Some(file))
    }

    /// Whether one stream has found another one writing to the file.
    pub fn is_shared(&self, entry: &Entry) -> bool {
        match &*entry.body() {
            Body::Large(large) => large.file.as_ref().is_some_and(|file| file.is_shared()),
            Body::Expected(_) | Body::Packed => false,
        }
    }

    /// Whether every part of the file has come, though not all may be written.
    pub fn is_all_claimed(&self, entry: &Entry) -> bool {
        match &*entry.body() {
            Body::Large(large) => large.claimed.is_all(entry.source.bytes),
            Body::Expected(_) | Body::Packed => false,
        }
    }

    /// A part of a file is proved and written. `may_wait`: not on a thread that gives names.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`](farline_spec::FailureKind::Protocol) for a part that is none of its tree.
    pub fn proved(&self, chunk: &Chunk, may_wait: bool) -> Result<(), Failure> {
        let Chunk {
            entry, offset, bytes, ..
        } = chunk;
        let mut body = entry.body();
        let Body::Large(large) = &mut *body else {
            return Ok(());
        };
        if entry.over.load(Ordering::Acquire) {
            return Ok(());
        }
        if let (Some(tree), Some(hash)) = (&mut large.tree, chunk.hash)
            && !tree.insert(*offset, *bytes, hash)
        {
            return Err(broken(format!("an invalid part of file {}", entry.number)));
        }
        large.proved_bytes += bytes;
        large.proved.claim(*offset, *bytes);
        self.gauges.settled_bytes.add(*bytes);
        if let Some(partial) = &large.partial {
            self.site()
                .kept()
                .journal
                .part(partial, (*offset, *bytes, chunk.hash));
        }
        let is_ready = large.is_ready(entry.source.bytes);
        let is_whole = large.proved_bytes == entry.source.bytes && large.settled.is_none();
        drop(body);
        if is_whole || is_ready {
            debug!(entry = %Shown(&entry.source.path), bytes = entry.source.bytes, "all of entry proved");
        }
        if is_ready {
            self.works.finish(Arc::clone(entry), may_wait);
        } else if is_whole && self.says_whole.load(Ordering::Acquire) {
            let file = entry.number;
            self.outbox.say([Feedback::Whole { file }]);
        }
        Ok(())
    }

    /// The sending end has read all of a file, and it did not change.
    ///
    /// # Errors
    /// What ends the copy.
    pub fn settled(&self, entry: &Arc<Entry>, hash: Option<[u8; 32]>) -> Result<(), Failure> {
        if entry.link_to.is_some() {
            return Err(broken(format!("entry {} has no content", entry.number)));
        }
        if matches!(&*entry.body(), Body::Packed) {
            return Ok(());
        }
        let ready = self.with_large(entry, |large| {
            large.settled.get_or_insert(hash);
            large.is_ready(entry.source.bytes)
        })?;
        if ready == Some(true) {
            self.works.finish(Arc::clone(entry), true);
        }
        Ok(())
    }
}

/// Gives back the room of all of a file of `bytes` bytes but what is `proved`. Where it cannot be done it stays taken.
fn give_back(file: BorrowedFd<'_>, proved: &Ranges, bytes: u64) {
    for (offset, length) in proved.gaps(bytes) {
        // A block is given back only if all of it is named, the last of the file too.
        let _ = file::punch(file, offset, length.next_multiple_of(GRAIN_BYTES));
    }
}
