//! Sources that are removed once they are at the destination: when the other end has finished, which is when all of them are
//! there under their names and on the device.

use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use farline_spec::unit::counted;
use farline_spec::{CopySpec, FileStatus, SyncLevel};
use farline_sys::file::{self, FileFacts, OpenFlags};

use super::found::What;
use super::origin::{Sources, why};
use super::run::Run;
use super::sending::Sending;
use super::steady::is_unchanged;
use crate::path_text::to_text;
use crate::sink;

/// Bytes of names that are remembered; what comes after them stays.
const MOST_BYTES: usize = 1 << 30;

/// What is to be removed.
#[derive(Debug)]
pub(super) struct Removal {
    spec: Arc<CopySpec>,
    sources: Arc<Sources>,
    run: Arc<Run>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    names: Vec<Copied>,
    bytes: usize,
    left_out: u64,
    removed: u64,
}

#[derive(Debug)]
struct Copied {
    origin: u32,
    path: Box<[u8]>,
    facts: FileFacts,
}

impl Removal {
    /// Nothing yet of these sources.
    pub(super) fn new(spec: &Arc<CopySpec>, sources: &Arc<Sources>, run: &Arc<Run>) -> Self {
        Self {
            spec: Arc::clone(spec),
            sources: Arc::clone(sources),
            run: Arc::clone(run),
            inner: Mutex::default(),
        }
    }

    /// Names that were removed.
    pub(super) fn count(&self) -> u64 {
        self.lock().removed
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a name that is at the destination, if such names are to be removed.
    pub(super) fn note(&self, file: &Sending, status: FileStatus) {
        let was_there = matches!(status, FileStatus::Present | FileStatus::Updated);
        let is_copied =
            status == FileStatus::Copied || (was_there && self.spec.sync_level != SyncLevel::Exists);
        let found = &file.found;
        let is_name = !matches!(found.what, What::Folder) && found.held.is_none();
        if !self.spec.remove_source_files || !is_copied || !is_name || self.spec.dry_run {
            return;
        }
        let is_itself = was_there && self.is_own_destination(found.origin);
        let mut inner = self.lock();
        let bytes = found.path.len() + size_of::<Copied>();
        if is_itself || inner.bytes + bytes > MOST_BYTES {
            inner.left_out += 1;
            return;
        }
        inner.bytes += bytes;
        inner.names.push(Copied {
            origin: found.origin,
            path: found.path.clone(),
            facts: found.facts,
        });
    }

    /// Whether the folder that a source is in is the destination itself: then what the other end keeps of this copy stands in it.
    fn is_own_destination(&self, origin: u32) -> bool {
        let folder = self.sources.folder(origin);
        sink::has_staging(
            folder,
            &self.spec,
            self.spec.origin.as_deref().unwrap_or_default(),
        )
    }

    /// Removes what was remembered, unless it changed since it was read. What could not be removed, a line each.
    pub(super) fn remove_sources(&self) -> Vec<String> {
        let (names, left_out) = {
            let mut inner = self.lock();
            (std::mem::take(&mut inner.names), inner.left_out)
        };
        let mut problems = Vec::new();
        for copied in names {
            match self.remove(&copied) {
                Ok(()) => self.lock().removed += 1,
                Err(reason) => {
                    let path = to_text(&copied.path);
                    problems.push(format!("{path} was not removed at the source: {reason}"));
                }
            }
            self.run.worked();
        }
        if left_out > 0 {
            problems.push(format!(
                "{} not removed at the source: in the destination as well, or more than can be remembered",
                counted(left_out, "name")
            ));
        }
        problems
    }

    fn remove(&self, copied: &Copied) -> Result<(), String> {
        let slash = copied.path.iter().rposition(|byte| *byte == b'/');
        let (parent, name) = match slash {
            Some(slash) => (&copied.path[..slash], &copied.path[slash + 1..]),
            None => (&[][..], &copied.path[..]),
        };
        let flags = OpenFlags::PATH | OpenFlags::FOLDER;
        let folder = self.sources.open_at(copied.origin, parent, flags, false);
        let folder = folder.map_err(|error| why(&error))?;
        let now = file::stat_at(Some(folder.as_fd()), name, false).map_err(|error| why(&error))?;
        if !is_same(&copied.facts, &now) {
            return Err("it changed after it was copied".to_owned());
        }
        file::unlink(folder.as_fd(), name).map_err(|error| why(&error))
    }
}

/// Whether it is what was read. Of a file with several names another of them may have been removed meanwhile, which changes the
/// time of its last change of anything.
fn is_same(then: &FileFacts, now: &FileFacts) -> bool {
    match then.links > 1 {
        true => is_unchanged(
            &FileFacts {
                ctime_ns: now.ctime_ns,
                ..*then
            },
            now,
        ),
        false => is_unchanged(then, now),
    }
}
