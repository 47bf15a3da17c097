//! Where the files of one copy grow: made, gone on with, and given back.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use farline_spec::Failure;
use farline_sys::file::{self, OpenFlags};

use super::driver::Machine;
use super::entry::{Entry, Store};
use super::journal::{Part, Resumable};
use super::partial::Partial;
use super::plan::{Mode, Plan};
use super::site::Destination;
use crate::Gauges;
use crate::engine::{OpenFile, Writer};
use crate::message::{GRAIN_BYTES, Proved};

/// Where the files of one copy grow.
#[derive(Debug)]
pub struct Partials {
    plan: Arc<Plan>,
    destination: Arc<Destination>,
    gauges: Arc<Gauges>,
}

impl Partials {
    /// None yet.
    pub fn new(destination: &Arc<Destination>, gauges: &Arc<Gauges>) -> Self {
        Self {
            plan: Arc::clone(&destination.plan),
            destination: Arc::clone(destination),
            gauges: Arc::clone(gauges),
        }
    }

    /// Where a file grows, made when it is first needed; `None` where nothing is kept, or the file is over.
    fn partial_of(&self, entry: &Entry, store: &mut Store) -> io::Result<Option<Arc<Partial>>> {
        if store.is_over || self.plan.mode != Mode::Real {
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
        let staging = &self.destination.site().kept().staging;
        let partial = self.gauges.name_ns.time(|| {
            staging.begin(
                entry.source.clone(),
                entry.mode & 0o777,
                self.plan.range().is_some(),
            )
        })?;
        // Of a file that other sessions write to, only what comes here: theirs may have holes already.
        let (offset, bytes) = self.plan.range().unwrap_or((0, length));
        let bytes = bytes.min(length.saturating_sub(offset));
        if !self.plan.device.is_memory
            && let Err(error) = file::allocate(partial.fd(), offset, bytes)
            // Not every file system can.
            && error.kind() == io::ErrorKind::StorageFull
        {
            if partial.is_shared() {
                // Other sessions write to it: nothing of it is given back here.
                return Err(error);
            }
            // What matters is that there is no room.
            let given_back = file::punch(partial.fd(), offset, bytes);
            if !self.plan.spec.sparse || given_back.is_err() {
                let _ = staging.remove(partial.name());
                return Err(error);
            }
            // A file of holes needs less than its length.
        }
        Ok(partial)
    }

    /// Gives back the room of what did not come, of all files under way: a session that broke off keeps what it proved, and
    /// no more. A file of which nothing is proved goes, and so does what waits for its name.
    pub fn give_back_rest(&self, machine: &Machine) {
        let kept = self.destination.site().kept();
        for entry in machine.quietly(|machine| machine.all()) {
            let store = entry.store();
            if let Some(staged) = store.small.as_ref().and_then(|small| small.staged.as_deref()) {
                kept.staging.discard(staged);
            }
            let Some(partial) = store.partial.as_ref().filter(|partial| !partial.is_shared()) else {
                continue;
            };
            let (parts, gaps) = machine.quietly(|machine| machine.proved_and_gaps(entry.number));
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
        let kept = self.destination.site().kept();
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
        if let Some((offset, bytes)) = self.plan.range() {
            let parts = left.within(offset, bytes).proved(self.plan.sum);
            entry.store().partial = Some(Arc::new(partial));
            return Ok(parts);
        }
        let parts = left.proved(self.plan.sum);
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
            true => self.destination.site().kept().journal.begun_anew(partial, &kept),
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
            Some(partial) => self.destination.site().kept().staging.open_again(&partial)?,
            None => file::open_at(None, b"/dev/null", OpenFlags::WRITE, 0)?,
        };
        let file = writer.adopt(opened)?;
        store.file = Some(Arc::clone(&file));
        Ok(Some(file))
    }
}

/// Gives back the room of these parts of a file. Where it cannot be done it stays taken.
fn give_back(file: BorrowedFd<'_>, gaps: &[(u64, u64)]) {
    for &(offset, length) in gaps {
        // A block is given back only if all of it is named, the last of the file too.
        let _ = file::punch(file, offset, length.next_multiple_of(GRAIN_BYTES));
    }
}
