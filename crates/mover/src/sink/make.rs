//! What has no content of its own: folders, links, further names, empty files.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use farline_proto::copy::receiver::Parting;
use farline_proto::copy::receiver::table::Event;
use farline_spec::{Attribute, Failure, FileKind as Kind, FileStatus, SyncLevel};
use farline_sys::file::{self, FileFacts, FileKind, OpenFlags};

use super::able::synced;
use super::attributes::{Attributes, FOLDER_BITS};
use super::catalogue::Reading;
use super::decide::Verdict;
use super::entry::Entry;
use super::name::named;
use super::owner::Belongs;
use super::place::{Folders, word};
use super::shared::{Destination, Mode, Shared, ends_all, in_words};
use crate::message::{self, Wants};
use crate::receipt::line;
use crate::root::split;
use crate::sum::{content_sum, note_sum};

/// What is copied at once of a file that becomes two.
const COPIED_BYTES: usize = 1 << 20;
/// What the owner needs to put things into a folder.
pub const OWNER: u32 = 0o700;

/// Whether a folder could not be made because another part of the same copy has just made it.
fn is_of_another_part(shared: &Shared, error: &io::Error, parent: BorrowedFd<'_>, name: &[u8]) -> bool {
    shared
        .spec
        .share
        .as_ref()
        .is_some_and(|share| share.part.is_some())
        && error.kind() == io::ErrorKind::AlreadyExists
        && file::stat_at(Some(parent), name, false).is_ok_and(|at| at.kind == FileKind::Folder)
}

impl Reading<'_> {
    /// A folder: made or there. What it should be like in the end is done when all that is in it is.
    pub fn folder(&mut self, said: &message::Entry) -> Result<(), Failure> {
        let shared = self.shared;
        let facts = match self.facts_of(&said.path) {
            Ok(facts) => facts,
            Err(error) => return self.refused_by(said, Kind::Folder, &error),
        };
        let is_there = match facts {
            Some(facts) if facts.kind == FileKind::Folder => true,
            Some(facts) if self.is_kept_link(&said.path, &facts) => true,
            Some(facts) => match self.clear_for_folder(&said.path, &facts) {
                Ok(None) => false,
                Ok(Some(reason)) => return self.refuse(&said.path, Kind::Folder, 0, reason),
                Err(error) => return self.refused_by(said, Kind::Folder, &error),
            },
            None => false,
        };
        let differs = match self.make_folder(said, is_there) {
            Ok(differs) => differs,
            Err(error) => return self.refused_by(said, Kind::Folder, &error),
        };
        let has_more = shared.spec.times || shared.spec.modes || self.owner.belongs != Belongs::default();
        if shared.mode == Mode::Real && has_more {
            shared
                .seen()
                .folder(&said.path, said.mode, said.mtime_ns, self.owner.belongs.ids());
        }
        match is_there {
            true if differs => self.updated(&said.path, Kind::Folder, 0, None),
            true => self.present(&said.path, Kind::Folder, 0, None),
            false => self.made(&said.path, Kind::Folder),
        }
    }

    /// Whether it is a link that stands for the folder it leads to.
    fn is_kept_link(&mut self, path: &[u8], facts: &FileFacts) -> bool {
        self.shared.spec.keep_dirlinks && facts.kind == FileKind::Link && self.leads_to_folder(path)
    }

    /// Takes away what has the name of a folder and is none, if it may be replaced; the reason where it may not.
    fn clear_for_folder(&mut self, path: &[u8], facts: &FileFacts) -> io::Result<Option<String>> {
        let Some(folders) = self.folders.as_mut() else {
            return Ok(None);
        };
        let (parent, name) = split(path);
        let parent = folders.get(parent)?;
        let leads = facts.kind == FileKind::Link
            && file::stat_at(Some(parent.as_fd()), name, true).is_ok_and(|at| at.kind == FileKind::Folder);
        if let Verdict::Refused(reason) = self.shared.in_the_way_of_folder(facts, leads) {
            return Ok(Some(reason));
        }
        match self.shared.mode {
            Mode::Real => file::unlink(parent.as_fd(), name)?,
            Mode::Dry | Mode::Nothing => folders.displace(path),
        }
        Ok(None)
    }

    /// What is there, if anything can be.
    pub fn facts_of(&mut self, path: &[u8]) -> io::Result<Option<FileFacts>> {
        match self.folders.as_mut() {
            Some(folders) => folders.facts(path),
            None => Ok(None),
        }
    }

    /// Why nothing could be made at `path`, found out without making anything; nothing where its folder is not there yet.
    pub fn unwritable(&mut self, path: &[u8]) -> Option<String> {
        let folder = self.folders.as_mut()?.get(split(path).0).ok()?;
        let error = file::check_writable(folder.as_fd()).err()?;
        Some(format!("its folder at the destination: {}", in_words(&error)))
    }

    fn leads_to_folder(&mut self, path: &[u8]) -> bool {
        self.folders
            .as_mut()
            .is_some_and(|folders| folders.get(path).is_ok())
    }

    /// Makes the folder unless it is there; whether one that is there differs from what it should be like.
    fn make_folder(&mut self, said: &message::Entry, is_there: bool) -> io::Result<bool> {
        let shared = self.shared;
        let is_real = shared.mode == Mode::Real;
        let Some(folders) = self.folders.as_mut().filter(|_| is_real || is_there) else {
            return Ok(false);
        };
        if !is_there {
            let (parent, name) = split(&said.path);
            let parent = folders.get(parent)?;
            match file::make_folder(parent.as_fd(), name, said.mode & 0o777 | OWNER) {
                Err(error) if is_of_another_part(shared, &error, parent.as_fd(), name) => {}
                made => named(made)?,
            }
        }
        let belongs = self.owner.belongs;
        let has_more = shared.spec.times || shared.spec.modes || shared.spec.xattrs;
        let has_more = has_more || belongs != Belongs::default();
        if !has_more || (!is_there && said.xattrs.is_empty()) {
            return Ok(false);
        }
        let folder = folders.get(&said.path)?;
        let facts = file::stat_fd(folder.as_fd())?;
        if is_real && shared.spec.modes && facts.mode & OWNER != OWNER {
            shared.keep_mode(folder.as_fd(), facts.mode | OWNER)?;
        }
        let wanted = Attributes {
            mode: said.mode,
            mtime_ns: said.mtime_ns,
            ctime_ns: said.ctime_ns,
            belongs,
            xattrs: &said.xattrs,
        };
        shared.update_folder(folder.as_fd(), wanted, &facts)
    }

    /// A symbolic link.
    pub fn link(&mut self, said: &message::Entry, target: &[u8]) -> Result<(), Failure> {
        let verdict = match self.link_verdict(said, target) {
            Ok(verdict) => verdict,
            Err(error) => return self.refused_by(said, Kind::Link, &error),
        };
        let replaces = match verdict {
            Verdict::Present(_) => return self.present(&said.path, Kind::Link, 0, None),
            Verdict::Updated(_) => return self.updated(&said.path, Kind::Link, 0, None),
            Verdict::Refused(reason) => return self.refuse(&said.path, Kind::Link, 0, reason),
            Verdict::Make(replaces) => replaces,
        };
        if self.shared.mode == Mode::Real
            && let Err(error) = self.make_link(said, target, replaces)
        {
            if file::is_unsupported(&error) {
                let reason = "the file system takes no symbolic links: --links follow copies what they point at, \
                              --links skip leaves them out";
                return self.refuse(&said.path, Kind::Link, 0, reason.to_owned());
            }
            return self.refused_by(said, Kind::Link, &error);
        }
        self.made(&said.path, Kind::Link)
    }

    fn link_verdict(&mut self, said: &message::Entry, target: &[u8]) -> io::Result<Verdict> {
        let Some(folders) = self.folders.as_mut() else {
            return Ok(Verdict::Make(false));
        };
        let Some(facts) = folders.facts(&said.path)? else {
            return Ok(Verdict::Make(false));
        };
        let (parent, name) = split(&said.path);
        if facts.kind == FileKind::Folder {
            return self.shared.folder_in_the_way(folders, &said.path);
        }
        let is_link = facts.kind == FileKind::Link;
        let is_same = is_link && file::read_link(folders.get(parent)?.as_fd(), name)? == target;
        if self.shared.spec.sync_level == SyncLevel::Exists {
            return Ok(Verdict::Present(None));
        }
        if is_same {
            let wanted = Attributes {
                mode: said.mode,
                mtime_ns: said.mtime_ns,
                ctime_ns: said.ctime_ns,
                belongs: self.owner.belongs,
                xattrs: &[],
            };
            return Ok(match self.shared.update(folders, &said.path, wanted, &facts) {
                true => Verdict::Updated(None),
                false => Verdict::Present(None),
            });
        }
        let difference = format!(
            "{} with different content exists at the destination",
            word(facts.kind)
        );
        let older_ns = is_link.then_some(said.mtime_ns);
        Ok(self.shared.replacement(difference, &facts, older_ns))
    }

    fn make_link(&mut self, said: &message::Entry, target: &[u8], replaces: bool) -> io::Result<()> {
        let Some(folders) = self.folders.as_mut() else {
            return Ok(());
        };
        let (parent, name) = split(&said.path);
        let parent = folders.get(parent)?;
        if replaces {
            let staging = &self.shared.site().kept().staging;
            let new = staging.new_name();
            file::make_link(target, staging.fd(), &new)?;
            self.shared
                .put_in_place(&new, parent.as_fd(), name, &said.path)
                .inspect_err(|_| staging.discard(&new))?;
        } else {
            file::make_link(target, parent.as_fd(), name)?;
        }
        if let Err(error) = self.owner.belongs.give_at(parent.as_fd(), name) {
            self.shared
                .problem(&said.path, &format!("owner of the link: {}", in_words(&error)));
        }
        if self.shared.spec.times
            && let Err(error) = file::set_times_at(parent.as_fd(), name, said.mtime_ns)
        {
            self.shared.lose(Attribute::LinkTime, &in_words(&error), 1);
        }
        Ok(())
    }

    /// A file without content needs nothing to be sent.
    pub fn empty_file(&mut self, entry: &Arc<Entry>) -> Result<(), Failure> {
        let shared = self.shared;
        let hash = shared.sum.map(|kind| content_sum(kind, b""));
        if shared.mode == Mode::Real {
            let named = match self.folders.as_mut() {
                Some(folders) => shared.make_small(folders, entry, b"", hash),
                None => Ok(Ok(())),
            };
            if let Err(reason) = named? {
                self.file_is_there(&entry.source.path, false);
                return self.refuse(&entry.source.path, Kind::File, 0, reason);
            }
        }
        self.file_is_there(&entry.source.path, true);
        let mut line = line(&entry.source.path, Kind::File, FileStatus::Copied, 0);
        note_sum(&mut line, hash);
        self.settle(line, Wants::Made)
    }

    fn made(&mut self, path: &[u8], kind: Kind) -> Result<(), Failure> {
        let status = match self.shared.mode {
            Mode::Dry => FileStatus::WouldCopy,
            Mode::Real | Mode::Nothing => FileStatus::Copied,
        };
        self.settle(line(path, kind, status, 0), Wants::Made)
    }

    fn refused_by(&mut self, said: &message::Entry, kind: Kind, error: &io::Error) -> Result<(), Failure> {
        ends_all(error)?;
        self.refuse(&said.path, kind, 0, in_words(error))
    }
}

impl Shared {
    /// Makes a further name of a file that is settled.
    ///
    /// # Errors
    /// As of [`Shared::failed`].
    pub fn make_further_name(
        &self,
        folders: &mut Option<Folders>,
        entry: &Arc<Entry>,
    ) -> Result<(), Failure> {
        let target = entry.link_to.as_deref().unwrap_or_default();
        let made = match folders.as_mut() {
            Some(folders) if self.mode == Mode::Real => self.further_name(folders, entry, target),
            _ => Ok(Verdict::Make(false)),
        };
        let (status, wants) = match made {
            Ok(Verdict::Make(_)) => (FileStatus::Copied, Wants::Made),
            Ok(Verdict::Present(_) | Verdict::Updated(_)) => (FileStatus::Present, Wants::Present(None)),
            Ok(Verdict::Refused(reason)) => return self.failed(entry, &reason),
            Err(error) => return self.hurt(entry, "further name", &error),
        };
        let file = entry.number;
        let conclude = |machine: &mut super::driver::Receiver| machine.conclude(file, Event::Name);
        if self.machine.with(conclude).is_none() {
            return Ok(());
        }
        self.gauges.settled_files.add(1);
        let line = line(&entry.source.path, Kind::HardLink, status, 0);
        self.receipt.settle(&line)?;
        self.machine
            .with(|machine| machine.leave(file, Parting::Linked(wants)));
        Ok(())
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
            FileKind::Folder => self.folder_in_the_way(folders, &entry.source.path)?,
            _ => {
                let difference = "is a different file at the destination".to_owned();
                self.replacement(difference, &facts, Some(entry.source.mtime_ns))
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
        let staging = &self.site().kept().staging;
        let new = staging.new_name();
        let linked = match replaces {
            false => file::hard_link(from, target, into, name),
            true => file::hard_link(from, target, staging.fd(), &new)
                .and_then(|()| self.put_in_place(&new, into, name, path))
                .inspect_err(|_| staging.discard(&new)),
        };
        match linked {
            Err(error) if cannot_link(&error) => {}
            linked => return named(linked),
        }
        self.copy_of(from, target, &new)?;
        let renamed = match replaces {
            true => self.put_in_place(&new, into, name, path),
            false => file::rename(staging.fd(), &new, into, name, false),
        };
        named(renamed).inspect_err(|_| {
            // What is left there goes with the folder.
            let _ = staging.remove(&new);
        })?;
        self.lose(Attribute::HardLink, "copied as separate files", 1);
        Ok(())
    }

    /// The file `target` once more, in the staging folder under `new`.
    fn copy_of(&self, from: BorrowedFd<'_>, target: &[u8], new: &[u8]) -> io::Result<()> {
        let (read, write) = (OpenFlags::READ | OpenFlags::NO_FOLLOW, OpenFlags::WRITE);
        let old = file::open_beneath(from, target, read, 0)?;
        let facts = file::stat_fd(old.as_fd())?;
        let make = write | OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
        let copy = file::open_beneath(self.site().kept().staging.fd(), new, make, 0o600)?;
        let mut buffer = vec![0; COPIED_BYTES];
        let mut offset = 0;
        loop {
            if self.check().is_err() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            self.pulse.beat();
            match file::read_at(old.as_fd(), &mut buffer, offset)? {
                0 => break,
                bytes => {
                    file::write_all_at(copy.as_fd(), &buffer[..bytes], offset)?;
                    offset += bytes as u64;
                }
            }
        }
        if self.spec.times {
            self.keep_time(copy.as_fd(), facts.mtime_ns)?;
        }
        self.keep_mode(copy.as_fd(), facts.mode)?;
        match self.durable {
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
        let staging = &self.site().kept().staging;
        let new = staging.new_name();
        match file::hard_link(folder, name, staging.fd(), &new) {
            Err(error) => Ok(cannot_link(&error)),
            Ok(()) => staging.remove(&new).map(|()| false),
        }
    }

    /// Gives folders their permission bits and times, what is in a folder before it. Problems, a line each.
    ///
    /// # Errors
    /// That the copy is over.
    pub fn finish_folders(&self, folders: &Folders) -> Result<Vec<String>, Failure> {
        let mut problems = Vec::new();
        let next = || self.seen().pop_folder();
        while let Some(late) = next() {
            self.check()?;
            self.pulse.beat();
            let finished = folders
                .open(&late.path, OpenFlags::READ | OpenFlags::FOLDER)
                .and_then(|folder| {
                    Belongs::of_ids(late.owner).give(folder.as_fd())?;
                    self.finish_folder(folder.as_fd(), self.spec.modes, late.mode, late.mtime_ns)
                });
            if let Err(error) = finished {
                let path = crate::path_text::to_text(&late.path);
                let reason = in_words(&error);
                problems.push(format!("{path}: times and modes of the folder: {reason}"));
            }
        }
        Ok(problems)
    }

    /// The same for the destination folder itself, last of all. Permission bits only where this copy made it: it may be
    /// anybody's home, or /tmp.
    pub fn finish_top(&self, site: &Destination) -> Option<String> {
        let (top, base) = (self.top.get()?, site.base.as_ref()?);
        let with_mode = self.spec.modes && site.is_new;
        let belongs = self.top_owner.get().copied().filter(|_| site.is_new);
        belongs
            .map_or(Ok(()), |belongs| belongs.give(base.as_fd()))
            .and_then(|()| self.finish_folder(base.as_fd(), with_mode, top.mode, top.mtime_ns))
            .err()
            .map(|error| format!("times and modes of the folder: {}", in_words(&error)))
    }

    fn finish_folder(
        &self,
        folder: BorrowedFd<'_>,
        with_mode: bool,
        mode: u32,
        mtime_ns: i64,
    ) -> io::Result<()> {
        if with_mode {
            self.keep_mode(folder, mode & FOLDER_BITS)?;
        }
        match self.spec.times {
            true => self.keep_time(folder, mtime_ns),
            false => Ok(()),
        }
    }
}

/// Whether a file cannot have one more name here, as some have one only and some no more than a few.
fn cannot_link(error: &io::Error) -> bool {
    use io::ErrorKind::{CrossesDevices, TooManyLinks};
    file::is_unsupported(error) || matches!(error.kind(), CrossesDevices | TooManyLinks)
}
