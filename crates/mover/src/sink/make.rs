//! What has no content of its own: folders, links, further names, empty files.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use farline_spec::{Attribute, CopySpec, Failure, FileKind as Kind, FileStatus, SyncLevel};
use farline_sys::file::{self, FileFacts, FileKind};

use super::answer::Answerer;
use super::attributes::Attributes;
use super::decide::Verdict;
use super::entry::Entry;
use super::losses::FOLLOWS;
use super::name_result::named;
use super::owner::Belongs;
use super::owner_rights::{self, OWNER};
use super::place::word;
use super::plan::Mode;
use super::words::{ends_all, in_words};
use crate::message::{self, Wants};
use crate::receipt::line;
use crate::root::split;
use crate::sum::{content_sum, note_sum};

/// The longest name of Linux. What a link leads to may be longer.
const MOST_NAME_BYTES: usize = 255;

/// Whether a folder could not be made because another part of the same copy has just made it.
fn is_of_another_part(spec: &CopySpec, error: &io::Error, parent: BorrowedFd<'_>, name: &[u8]) -> bool {
    spec.share.as_ref().is_some_and(|share| share.part.is_some())
        && error.kind() == io::ErrorKind::AlreadyExists
        && file::stat_at(Some(parent), name, false).is_ok_and(|at| at.kind == FileKind::Folder)
}

impl Answerer<'_> {
    /// A folder: made or there. What it should be like in the end is done when all that is in it is.
    pub fn folder(&mut self, said: &message::Entry) -> Result<(), Failure> {
        let parts = self.parts;
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
        let has_more =
            parts.plan.spec.times || parts.plan.spec.modes || self.owner.belongs != Belongs::default();
        if parts.plan.mode == Mode::Real && has_more {
            parts
                .names
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
        self.parts.plan.spec.keep_dirlinks && facts.kind == FileKind::Link && self.leads_to_folder(path)
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
        if let Verdict::Refused(reason) = self.parts.way.in_the_way_of_folder(facts, leads) {
            return Ok(Some(reason));
        }
        match self.parts.plan.mode {
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
        let parent = split(path).0;
        let folder = self.folders.as_mut()?.get(parent).ok()?;
        let error = file::check_writable(folder.as_fd()).err()?;
        let is_opened =
            self.parts.destination.opens(parent) && owner_rights::are_withheld(folder.as_fd()).ok()?;
        if is_opened {
            return None;
        }
        Some(format!("its folder at the destination: {}", in_words(&error)))
    }

    fn leads_to_folder(&mut self, path: &[u8]) -> bool {
        self.folders
            .as_mut()
            .is_some_and(|folders| folders.get(path).is_ok())
    }

    /// Makes the folder unless it is there; whether one that is there differs from what it should be like.
    fn make_folder(&mut self, said: &message::Entry, is_there: bool) -> io::Result<bool> {
        let parts = self.parts;
        let is_real = parts.plan.mode == Mode::Real;
        let Some(folders) = self.folders.as_mut().filter(|_| is_real || is_there) else {
            return Ok(false);
        };
        if !is_there {
            let (parent, name) = split(&said.path);
            let parent = folders.get(parent)?;
            match file::make_folder(parent.as_fd(), name, said.mode & 0o777 | OWNER) {
                Err(error) if is_of_another_part(&parts.plan.spec, &error, parent.as_fd(), name) => {}
                made => named(made)?,
            }
        }
        let belongs = self.owner.belongs;
        let has_more = parts.plan.spec.times || parts.plan.spec.modes || parts.plan.spec.xattrs;
        let has_more = has_more || belongs != Belongs::default();
        if !has_more || (!is_there && !parts.plan.spec.xattrs) {
            return Ok(false);
        }
        let folder = folders.get(&said.path)?;
        let facts = file::stat_fd(folder.as_fd())?;
        let wanted = Attributes {
            mode: said.mode,
            mtime_ns: said.mtime_ns,
            ctime_ns: said.ctime_ns,
            belongs,
            xattrs: &said.xattrs,
        };
        parts.decider.update_folder(folder.as_fd(), wanted, &facts)
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
        if self.parts.plan.mode == Mode::Real
            && let Err(error) = self.make_link(said, target, replaces)
        {
            if file::is_lacking(&error) {
                let reason = "the file system takes no symbolic links: --links follow copies what they point at, \
                              --links skip leaves them out";
                return self.refuse(&said.path, Kind::Link, 0, reason.to_owned());
            }
            if file::is_bad_name(&error) && target.len() > MOST_NAME_BYTES {
                let reason = "the path that the link leads to is too long for the file system";
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
            return self.parts.way.folder_in_the_way(folders, &said.path);
        }
        let is_link = facts.kind == FileKind::Link;
        let is_same = is_link && file::read_link(folders.get(parent)?.as_fd(), name)? == target;
        if self.parts.plan.spec.sync_level == SyncLevel::Exists {
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
            return Ok(
                match self.parts.decider.update(folders, &said.path, wanted, &facts) {
                    true => Verdict::Updated(None),
                    false => Verdict::Present(None),
                },
            );
        }
        let difference = format!(
            "{} with different content exists at the destination",
            word(facts.kind)
        );
        let older_ns = is_link.then_some(said.mtime_ns);
        Ok(self.parts.way.replacement(difference, &facts, older_ns))
    }

    fn make_link(&mut self, said: &message::Entry, target: &[u8], replaces: bool) -> io::Result<()> {
        let Some(folders) = self.folders.as_mut() else {
            return Ok(());
        };
        let (parent, name) = split(&said.path);
        let parent = folders.get(parent)?;
        if replaces {
            let staging = &self.parts.destination.site().kept().staging;
            let new = staging.new_name();
            file::make_link(target, staging.fd(), &new)?;
            self.parts
                .way
                .put_in_place(&new, parent.as_fd(), name, &said.path)
                .inspect_err(|_| staging.discard(&new))?;
        } else {
            file::make_link(target, parent.as_fd(), name)?;
        }
        self.dress_link(said, parent.as_fd());
        Ok(())
    }

    /// Gives a link that was made its owner and its time.
    fn dress_link(&self, said: &message::Entry, parent: BorrowedFd<'_>) {
        let (parts, belongs, name) = (self.parts, self.owner.belongs, split(&said.path).1);
        let (has_owner, has_time) = (belongs != Belongs::default(), parts.plan.spec.times);
        let follows = (has_owner || has_time) && parts.destination.follows_links();
        let unless_followed = |set: &dyn Fn() -> io::Result<()>| match follows {
            true => Err(FOLLOWS.to_owned()),
            false => set().map_err(|error| in_words(&error)),
        };
        if has_owner && let Err(why) = unless_followed(&|| belongs.give_at(parent, name)) {
            parts
                .problems
                .add(&said.path, &format!("owner of the link: {why}"));
        }
        if has_time
            && let Err(why) =
                unless_followed(&|| parts.destination.set_link_time(parent, name, said.mtime_ns))
        {
            parts.destination.losses.lose(Attribute::LinkTime, &why, 1);
        }
    }

    /// A file without content needs nothing to be sent.
    pub fn empty_file(&mut self, entry: &Arc<Entry>) -> Result<(), Failure> {
        let parts = self.parts;
        let hash = parts.plan.sum.map(|kind| content_sum(kind, b""));
        if parts.plan.mode == Mode::Real {
            let named = match self.folders.as_mut() {
                Some(folders) => parts.finalizer.make_small(folders, entry, b"", hash),
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
        let status = match self.parts.plan.mode {
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
