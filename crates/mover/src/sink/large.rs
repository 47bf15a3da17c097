//! Files that come in chunks: any chunk by any stream, each proved by its own hash before it counts.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use farline_proto::copy::receiver::{self, Admission, Known, Proof};
use farline_spec::Failure;
use farline_sys::file::{self, OpenFlags};
use tracing::debug;

use super::entry::{Entry, Store};
use super::journal::{Part, Resumable};
use super::partial::Partial;
use super::shared::{Mode, Shared};
use crate::engine::{OpenFile, Writer};
use crate::frame::Header;
use crate::message::{GRAIN_BYTES, Proved};
use crate::path_text::Shown;
use crate::sum::{Sum, chunk_sum};

/// A chunk that was proved and is to be written.
#[derive(Debug)]
pub struct Chunk {
    /// Its file.
    pub entry: Arc<Entry>,
    /// Where in the file.
    pub offset: u64,
    /// How long it is.
    pub bytes: u64,
    /// Its sum, where it is hashed.
    pub hash: Option<Sum>,
}

impl Chunk {
    fn facts(&self) -> receiver::Chunk {
        receiver::Chunk {
            file: self.entry.number,
            offset: self.offset,
            bytes: self.bytes,
            hash: self.hash,
        }
    }
}

impl Shared {
    /// Checks a chunk that came; `None` if it is not to be written.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`](farline_spec::FailureKind::Protocol) for a chunk that no file has; what ends the copy.
    pub fn admit(&self, header: &Header, content: &[u8]) -> Result<Option<Chunk>, Failure> {
        let (offset, bytes) = (header.offset, content.len() as u64);
        let chunk = receiver::Chunk {
            file: header.file,
            offset,
            bytes,
            hash: header.hash,
        };
        let known = |receiver: &super::driver::Receiver| match receiver.check_chunk(&chunk)? {
            Known::NotYet => Ok(None),
            Known::Over => Ok(Some(None)),
            Known::Open(entry) => Ok(Some(Some(entry))),
        };
        let Some(entry) = self.machine.wait_for(known, || self.check())? else {
            return Ok(None);
        };
        let is_whole_file = bytes == entry.source.bytes;
        let sum = |kind| chunk_sum(kind, offset, content, is_whole_file);
        let found = self.sum.map(|kind| self.gauges.hash_ns.time(|| sum(kind)));
        let admission = self.machine.with(|machine| machine.take_chunk(&chunk, found))?;
        Ok(self.admitted(&entry, admission)?.then_some(Chunk {
            entry,
            offset,
            bytes,
            hash: found,
        }))
    }

    /// Whether data that came for `entry` are to be written.
    ///
    /// # Errors
    /// As of [`Shared::failed`].
    pub fn admitted(&self, entry: &Arc<Entry>, admission: Admission) -> Result<bool, Failure> {
        match admission {
            Admission::Write => Ok(true),
            Admission::Drop => Ok(false),
            Admission::GiveUp(reason) => self.failed(entry, &reason).map(|()| false),
        }
    }

    /// Where a file grows, made when it is first needed; `None` where nothing is kept, or the file is over.
    fn partial_of(&self, entry: &Entry, store: &mut Store) -> io::Result<Option<Arc<Partial>>> {
        if store.is_over || self.mode != Mode::Real {
            return Ok(None);
        }
        if let Some(partial) = &store.partial {
            return Ok(Some(Arc::clone(partial)));
        }
        let partial = Arc::new(self.begin(entry)?);
        store.partial = Some(Arc::clone(&partial));
        Ok(Some(partial))
    }

    /// As the file of a hole, of which nothing is written.
    ///
    /// # Errors
    /// The kernel's.
    pub fn begun(&self, entry: &Entry) -> io::Result<Option<Arc<Partial>>> {
        self.partial_of(entry, &mut entry.store())
    }

    fn begin(&self, entry: &Entry) -> io::Result<Partial> {
        let length = entry.source.bytes;
        let staging = &self.site().kept().staging;
        let partial = self
            .gauges
            .name_ns
            .time(|| staging.begin(entry.source.clone(), entry.mode & 0o777, self.range().is_some()))?;
        if !self.device.is_memory
            && let Err(error) = file::allocate(partial.fd(), length)
            // Not every file system can.
            && error.kind() == io::ErrorKind::StorageFull
        {
            if partial.is_shared() {
                // Other sessions write to it: nothing of it is given back here.
                return Err(error);
            }
            // What matters is that there is no room.
            let given_back = file::punch(partial.fd(), 0, length);
            if !self.spec.sparse || given_back.is_err() {
                let _ = staging.remove(partial.name());
                return Err(error);
            }
            // A file of holes needs less than its length.
        }
        Ok(partial)
    }

    /// Gives back the room of what did not come, of all files under way: a session that broke off keeps what it proved, and
    /// no more. A file of which nothing is proved goes, and so does what waits for its name.
    pub fn give_back_rest(&self) {
        let kept = self.site().kept();
        for entry in self.machine.quietly(|machine| machine.all()) {
            let store = entry.store();
            if let Some(staged) = store.small.as_ref().and_then(|small| small.staged.as_deref()) {
                kept.staging.discard(staged);
            }
            let Some(partial) = store.partial.as_ref().filter(|partial| !partial.is_shared()) else {
                continue;
            };
            let (parts, gaps) = self
                .machine
                .quietly(|machine| machine.proved_and_gaps(entry.number));
            if parts == 0 && !kept.journal.has(partial) {
                // Whoever goes on sweeps away what could not be removed now.
                let _ = kept.staging.remove(partial.name());
                continue;
            }
            give_back(partial.fd(), &gaps);
        }
        kept.journal.give_back();
    }

    /// Goes on with what an earlier session left of a file; what of it is proved.
    ///
    /// # Errors
    /// [`FailureKind::System`](farline_spec::FailureKind::System) when a part that cannot be used cannot be removed.
    pub fn resumed(&self, entry: &Entry, left: Resumable) -> Result<Vec<Proved>, Failure> {
        let kept = self.site().kept();
        let Ok(partial) = kept.staging.resume(left.id, left.source.clone()) else {
            let removed = kept.staging.remove_left(left.id, &left.source);
            return removed.map(|()| Vec::new()).map_err(|error| {
                Failure::system(
                    "folder .farline-partial for incomplete files, at the destination",
                    &error,
                )
            });
        };
        kept.journal.resumed(&partial);
        if let Some((offset, bytes)) = self.range() {
            let parts = left.within(offset, bytes).proved(self.sum);
            entry.store().partial = Some(Arc::new(partial));
            return Ok(parts);
        }
        let parts = left.proved(self.sum);
        // What is not gone on with is written anew, and may be given back: from now on nothing says that it is there.
        self.keep_only(&partial, &left, &parts)?;
        entry.store().partial = Some(Arc::new(partial));
        Ok(parts)
    }

    /// Takes back in the journal what it says of `partial` besides `parts`.
    fn keep_only(&self, partial: &Partial, left: &Resumable, parts: &[Proved]) -> Result<(), Failure> {
        let kept: Vec<Part> = parts
            .iter()
            .map(|part| (part.offset, part.bytes, part.hash))
            .collect();
        let length = |parts: &[Part]| parts.iter().map(|part| part.1).sum::<u64>();
        match length(&left.parts) > length(&kept) {
            true => self.site().kept().journal.begun_anew(partial, &kept),
            false => Ok(()),
        }
    }

    /// The file of a chunk as `writer` takes it; `None` where nothing is written, or the file is over.
    ///
    /// # Errors
    /// The kernel's.
    pub fn file_of(&self, writer: &dyn Writer, entry: &Entry) -> io::Result<Option<Arc<OpenFile>>> {
        let mut store = entry.store();
        if let Some(file) = &store.file {
            return Ok(Some(Arc::clone(file)));
        }
        if store.is_over {
            return Ok(None);
        }
        let opened = match self.partial_of(entry, &mut store)? {
            Some(partial) => self.site().kept().staging.open_again(&partial)?,
            None => file::open_at(None, b"/dev/null", OpenFlags::WRITE, 0)?,
        };
        let file = writer.adopt(opened)?;
        store.file = Some(Arc::clone(&file));
        Ok(Some(file))
    }

    /// Whether one stream has found another one writing to the file.
    pub fn is_shared(&self, entry: &Entry) -> bool {
        let store = entry.store();
        store.file.as_ref().is_some_and(|file| file.is_shared())
    }

    /// A part of a file is written. `may_wait`: not on a thread that gives names.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`](farline_spec::FailureKind::Protocol) for a part that is none of its tree.
    pub fn proved(&self, chunk: &Chunk, may_wait: bool) -> Result<(), Failure> {
        let entry = &chunk.entry;
        if let Some(partial) = entry.partial() {
            // Before it counts: what is named next needs no notes of its parts.
            let part = (chunk.offset, chunk.bytes, chunk.hash);
            self.site().kept().journal.part(&partial, part);
        }
        let proof = self.machine.with(|machine| machine.written(&chunk.facts()))?;
        if proof == Proof::Late {
            return Ok(());
        }
        self.gauges.settled_bytes.add(chunk.bytes);
        if proof == Proof::All {
            debug!(entry = %Shown(&entry.source.path), bytes = entry.source.bytes, "all of entry proved");
            if may_wait {
                self.machine.wait_while(|machine| machine.is_full_of_files());
            }
        }
        Ok(())
    }
}

/// Gives back the room of these parts of a file. Where it cannot be done it stays taken.
fn give_back(file: BorrowedFd<'_>, gaps: &[(u64, u64)]) {
    for &(offset, length) in gaps {
        // A block is given back only if all of it is named, the last of the file too.
        let _ = file::punch(file, offset, length.next_multiple_of(GRAIN_BYTES));
    }
}
