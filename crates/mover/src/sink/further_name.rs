//! Further names of files that are settled.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use farline_spec::{Attribute, Failure, FileStatus, SyncLevel};
use farline_sys::file::{self, FileFacts, FileKind, OpenFlags};

use super::able::synced;
use super::attributes::xattr_changes;
use super::decide::Verdict;
use super::entry::Entry;
use super::finalizer::Finalizer;
use super::name_result::named;
use super::place::Folders;
use super::plan::Mode;
use crate::message::Wants;
use crate::root::split;
use crate::xattrs::xattrs_of;

/// What a dry run said of the first name of a file.
#[derive(Debug, Clone, Copy)]
pub struct FirstName {
    /// Whether it would be copied; it would fail otherwise, and each further name be copied by itself.
    pub is_copied: bool,
    /// Length at the source.
    pub bytes: u64,
    /// Time of last change at the source, nanoseconds since 1970.
    pub mtime_ns: i64,
}

impl FirstName {
    fn is_like(self, facts: &FileFacts) -> bool {
        facts.kind == FileKind::File && (facts.bytes, facts.mtime_ns) == (self.bytes, self.mtime_ns)
    }

    /// What becomes of a further name that is like the source.
    fn verdict(self) -> Verdict {
        match self.is_copied {
            true => Verdict::Make(true),
            false => Verdict::Present(None),
        }
    }
}

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
        let made = match folders.as_mut() {
            Some(folders) => self.further_name(folders, entry, None),
            None => Ok(Verdict::Make(false)),
        };
        let (status, wants) = match made {
            Ok(Verdict::Make(_)) => (FileStatus::Copied, Wants::Made),
            Ok(Verdict::Present(_) | Verdict::Updated(_)) => (FileStatus::Present, Wants::Present(None)),
            Ok(Verdict::Refused(reason)) => return self.ledger.failed(entry, &reason),
            Err(error) => return self.ledger.hurt(entry, "further name", &error),
        };
        self.ledger.linked(entry, status, wants)
    }

    /// Makes a further name, in a dry run only looks: then `first` is what it said of the first name, where that is not there already.
    ///
    /// # Errors
    /// The kernel's.
    pub fn further_name(
        &self,
        folders: &mut Folders,
        entry: &Entry,
        first: Option<FirstName>,
    ) -> io::Result<Verdict> {
        let target = entry.link_to.as_deref().unwrap_or_default();
        let path = &entry.source.path;
        let is_real = self.plan.mode == Mode::Real;
        let (target_parent, target_name) = split(target);
        let there = folders.facts(path)?;
        let verdict = match &there {
            None => Verdict::Make(false),
            Some(facts) => self.judged(folders, entry, target, facts, first)?,
        };
        if let Verdict::Make(replaces) = verdict
            && is_real
        {
            let (parent, name) = split(path);
            let (from, into) = (folders.get(target_parent)?, folders.get(parent)?);
            self.one_more_name(from.as_fd(), target_name, into.as_fd(), (name, replaces), path)?;
        }
        Ok(verdict)
    }

    /// What becomes of what has the name already.
    fn judged(
        &self,
        folders: &mut Folders,
        entry: &Entry,
        target: &[u8],
        facts: &FileFacts,
        first: Option<FirstName>,
    ) -> io::Result<Verdict> {
        let level = self.plan.spec.sync_level;
        let (parent, name) = split(target);
        let is_same = match (first, folders.facts(target)?) {
            (Some(_), _) | (None, None) => false,
            (None, Some(_)) if self.plan.mode == Mode::Real => {
                self.is_same_file(folders.get(parent)?.as_fd(), name, facts)?
            }
            (None, Some(there)) => is_one(&there, facts),
        };
        if is_same || level == SyncLevel::Exists {
            return Ok(Verdict::Present(None));
        }
        if facts.kind == FileKind::Folder {
            return self.way.folder_in_the_way(folders, &entry.source.path);
        }
        let difference = "is a different file at the destination".to_owned();
        let mtime_ns = Some(entry.source.mtime_ns);
        match self.way.replacement(difference, facts, mtime_ns) {
            // A file of its own with what the other has, as a copy without hard links made it: nothing is lost with it.
            Verdict::Refused(reason) => match first {
                Some(first) if first.is_like(facts) => Ok(first.verdict()),
                None if self.is_spare(folders, target, &entry.source.path)? => Ok(Verdict::Make(true)),
                _ => Ok(Verdict::Refused(reason)),
            },
            verdict => Ok(verdict),
        }
    }

    /// Whether two names stand for files of the same length, time and content.
    fn is_spare(&self, folders: &mut Folders, first: &[u8], second: &[u8]) -> io::Result<bool> {
        let mut open = |path: &[u8]| {
            let (parent, name) = split(path);
            let flags = OpenFlags::READ | OpenFlags::NO_FOLLOW | OpenFlags::NO_WAIT;
            file::open_beneath(folders.get(parent)?.as_fd(), name, flags, 0)
        };
        let (first, second) = match (open(first), open(second)) {
            (Ok(first), Ok(second)) => (first, second),
            // What cannot be read is not taken for the same.
            _ => return Ok(false),
        };
        if !is_like(&file::stat_fd(first.as_fd())?, &file::stat_fd(second.as_fd())?) {
            return Ok(false);
        }
        let mut there = Vec::new();
        let compared = self.each_part(first.as_fd(), |part, offset| {
            there.resize(part.len(), 0);
            let read = file::read_at(second.as_fd(), &mut there, offset)?;
            match read == part.len() && there == part {
                true => Ok(()),
                false => Err(io::ErrorKind::InvalidData.into()),
            }
        });
        match compared {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(false),
            compared => compared.map(|()| true),
        }
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
            .losses
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
            xattr_changes(copy.as_fd(), &xattrs)?.apply(&self.destination.losses, copy.as_fd())?;
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
        if is_one(&target, facts) {
            return Ok(true);
        }
        if !is_like(&target, facts) {
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

/// Whether both are of one file.
fn is_one(first: &FileFacts, second: &FileFacts) -> bool {
    (first.device, first.inode) == (second.device, second.inode)
}

/// Whether both are of files, of the same length and time.
fn is_like(first: &FileFacts, second: &FileFacts) -> bool {
    let said = |facts: &FileFacts| (facts.kind, facts.bytes, facts.mtime_ns);
    said(first) == said(second) && first.kind == FileKind::File
}

/// Whether a file cannot have one more name here, as some have one only and some no more than a few.
fn cannot_link(error: &io::Error) -> bool {
    use io::ErrorKind::{CrossesDevices, TooManyLinks};
    file::is_lacking(error) || matches!(error.kind(), CrossesDevices | TooManyLinks)
}
