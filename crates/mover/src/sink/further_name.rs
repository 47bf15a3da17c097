//! Further names of files that are settled.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use farline_spec::{Attribute, Failure, FileStatus};
use farline_sys::file::{self, FileFacts, FileKind, OpenFlags};

use super::able::synced;
use super::attributes::{xattr_changes, xattrs_of};
use super::decide::Verdict;
use super::entry::Entry;
use super::finalizer::Finalizer;
use super::name::named;
use super::place::Folders;
use super::plan::Mode;
use crate::message::Wants;
use crate::root::split;

impl Finalizer {
    /// Makes a further name of a file that is settled.
    ///
    /// # Errors
    /// As of [`Ledger::failed`].
    pub fn make_further_name(
        &self,
        folders: &mut Option<Folders>,
        entry: &Arc<Entry>,
    ) -> Result<(), Failure> {
        let target = entry.link_to.as_deref().unwrap_or_default();
        let made = match folders.as_mut() {
            Some(folders) if self.plan.mode == Mode::Real => self.further_name(folders, entry, target),
            _ => Ok(Verdict::Make(false)),
        };
        let (status, wants) = match made {
            Ok(Verdict::Make(_)) => (FileStatus::Copied, Wants::Made),
            Ok(Verdict::Present(_) | Verdict::Updated(_)) => (FileStatus::Present, Wants::Present(None)),
            Ok(Verdict::Refused(reason)) => return self.ledger.failed(entry, &reason),
            Err(error) => return self.ledger.hurt(entry, "further name", &error),
        };
        self.ledger.linked(entry, status, wants)
    }

    fn further_name(&self, folders: &mut Folders, entry: &Entry, target: &[u8]) -> io::Result<Verdict> {
        let (parent, name) = split(&entry.source.path);
        let (target_parent, target_name) = split(target);
        let from = folders.get(target_parent)?;
        let into = folders.get(parent)?;
        let Some(facts) = folders.facts(&entry.source.path)? else {
            self.one_more_name(
                from.as_fd(),
                target_name,
                into.as_fd(),
                (name, false),
                &entry.source.path,
            )?;
            return Ok(Verdict::Make(false));
        };
        if self.is_same_file(from.as_fd(), target_name, &facts)? {
            return Ok(Verdict::Present(None));
        }
        let verdict = match facts.kind {
            FileKind::Folder => self.way.folder_in_the_way(folders, &entry.source.path)?,
            _ => {
                let difference = "is a different file at the destination".to_owned();
                self.way
                    .replacement(difference, &facts, Some(entry.source.mtime_ns))
            }
        };
        if let Verdict::Make(_) = verdict {
            let path = &entry.source.path;
            self.one_more_name(from.as_fd(), target_name, into.as_fd(), (name, true), path)?;
        }
        Ok(verdict)
    }

    /// Gives a file one more name, in the place of what has it where it `replaces`; where it can have one name only, the other
    /// becomes a file of its own.
    fn one_more_name(
        &self,
        from: BorrowedFd<'_>,
        target: &[u8],
        into: BorrowedFd<'_>,
        (name, replaces): (&[u8], bool),
        path: &[u8],
    ) -> io::Result<()> {
        let staging = &self.destination.site().kept().staging;
        let new = staging.new_name();
        let linked = match replaces {
            false => file::hard_link(from, target, into, name),
            true => file::hard_link(from, target, staging.fd(), &new)
                .and_then(|()| self.way.put_in_place(&new, into, name, path))
                .inspect_err(|_| staging.discard(&new)),
        };
        match linked {
            Err(error) if cannot_link(&error) => {}
            linked => return named(linked),
        }
        self.copy_of(from, target, &new)?;
        let renamed = match replaces {
            true => self.way.put_in_place(&new, into, name, path),
            false => file::rename(staging.fd(), &new, into, name, false),
        };
        named(renamed).inspect_err(|_| {
            // What is left there goes with the folder.
            let _ = staging.remove(&new);
        })?;
        self.destination
            .lose(Attribute::HardLink, "copied as separate files", 1);
        Ok(())
    }

    /// The file `target` once more, in the staging folder under `new`.
    fn copy_of(&self, from: BorrowedFd<'_>, target: &[u8], new: &[u8]) -> io::Result<()> {
        let (read, write) = (OpenFlags::READ | OpenFlags::NO_FOLLOW, OpenFlags::WRITE);
        let old = file::open_beneath(from, target, read, 0)?;
        let facts = file::stat_fd(old.as_fd())?;
        let make = write | OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
        let copy = file::open_beneath(self.destination.site().kept().staging.fd(), new, make, 0o600)?;
        self.each_part(old.as_fd(), |part, offset| {
            file::write_all_at(copy.as_fd(), part, offset)
        })?;
        file::flush(copy.as_fd())?;
        if self.plan.spec.xattrs {
            let xattrs = xattrs_of(old.as_fd())?;
            xattr_changes(copy.as_fd(), &xattrs)?.apply(&self.destination, copy.as_fd())?;
        }
        if self.plan.spec.times {
            self.destination.keep_time(copy.as_fd(), facts.mtime_ns)?;
        }
        self.destination.keep_mode(copy.as_fd(), facts.mode)?;
        match self.plan.durable {
            true => synced(file::sync_data(copy.as_fd())),
            false => Ok(()),
        }
    }

    /// Whether a name stands for the file `name`; or for a file of its own that is like it, where a file has one name only.
    fn is_same_file(&self, folder: BorrowedFd<'_>, name: &[u8], facts: &FileFacts) -> io::Result<bool> {
        let look = || file::stat_at(Some(folder), name, false);
        let target = look()?;
        if (target.device, target.inode) == (facts.device, facts.inode) {
            return Ok(true);
        }
        let is_like =
            (target.kind, target.bytes, target.mtime_ns) == (facts.kind, facts.bytes, facts.mtime_ns);
        if !is_like || target.kind != FileKind::File {
            return Ok(false);
        }
        if look()?.inode != target.inode {
            // Numbers that change tell nothing.
            return Ok(true);
        }
        let staging = &self.destination.site().kept().staging;
        let new = staging.new_name();
        match file::hard_link(folder, name, staging.fd(), &new) {
            Err(error) => Ok(cannot_link(&error)),
            Ok(()) => staging.remove(&new).map(|()| false),
        }
    }
}

/// Whether a file cannot have one more name here, as some have one only and some no more than a few.
fn cannot_link(error: &io::Error) -> bool {
    use io::ErrorKind::{CrossesDevices, TooManyLinks};
    file::is_lacking(error) || matches!(error.kind(), CrossesDevices | TooManyLinks)
}
