//! Entries are answered in the order in which they come; what has no content of its own is made at once (`make`).

use std::collections::HashMap;
use std::sync::Arc;

use farline_proto::copy::receiver::{Key, Looked};
use farline_spec::{Failure, FileKind as Kind, FileStatus, ReceiptLine};
use tracing::debug;

use super::decide::{Announced, Decider, Verdict};
use super::driver::Machine;
use super::entry::Entry;
use super::finalizer::Finalizer;
use super::further_name::FirstName;
use super::journal::{Source, path_key};
use super::owner::Resolved;
use super::partials::Partials;
use super::place::Folders;
use super::plan::{Mode, Plan};
use super::remembered::Remembered;
use super::settle::Ledger;
use super::site::Destination;
use super::way::Way;
use super::words::{Problems, in_words};
use crate::message::{self, EntryKind, Proved, Wants};
use crate::path_text::{Shown, one_line};
use crate::receipt::line;
use crate::sum::{Sum, note_sum};

/// What entries are answered with.
#[derive(Debug)]
pub struct Answers {
    pub plan: Arc<Plan>,
    pub destination: Arc<Destination>,
    pub names: Arc<Remembered>,
    pub decider: Decider,
    pub way: Arc<Way>,
    pub partials: Arc<Partials>,
    pub finalizer: Arc<Finalizer>,
    pub ledger: Arc<Ledger>,
    pub problems: Arc<Problems>,
    pub machine: Arc<Machine>,
    /// Whether the other end knows of names whose attributes alone are updated.
    pub counts_updates: bool,
}

/// Answers entries, on the thread that takes the catalogue.
pub struct Answerer<'a> {
    pub parts: &'a Answers,
    pub folders: Option<Folders>,
    /// To whom entries are to belong.
    pub owner: Resolved,
    /// Of the file that is looked at: what its path is known by, and whether it is there now.
    settled_file: Option<(Key, bool)>,
    /// What a dry run said of files that may have further names, by number.
    first_names: HashMap<u64, FirstName>,
}

impl<'a> Answerer<'a> {
    /// One that has answered nothing.
    pub fn new(parts: &'a Answers) -> Self {
        Self {
            parts,
            folders: None,
            owner: Resolved::default(),
            settled_file: None,
            first_names: HashMap::new(),
        }
    }

    /// Answers an entry that may be.
    ///
    /// # Errors
    /// What ends the copy.
    pub fn answer(&mut self, number: u64, said: message::Entry) -> Result<(), Failure> {
        match said.kind {
            EntryKind::Folder => self.folder(&said),
            EntryKind::Link { ref target } => self.link(&said, target),
            EntryKind::File { bytes, hash } => self.file(number, said, bytes, hash),
            EntryKind::HardLink { to } => self.hard_link(number, said, to),
        }
    }

    fn file(
        &mut self,
        number: u64,
        said: message::Entry,
        bytes: u64,
        hash: Option<Sum>,
    ) -> Result<(), Failure> {
        let parts = self.parts;
        let source = Source {
            path: said.path,
            bytes,
            mtime_ns: said.mtime_ns,
            ctime_ns: said.ctime_ns,
        };
        let announced = Announced {
            source: &source,
            mode: said.mode,
            belongs: self.owner.belongs,
            xattrs: &said.xattrs,
            hash,
        };
        if parts.plan.range().is_some_and(|(offset, _)| offset >= bytes) {
            // It has become shorter: nothing of it is this session's.
            return self.present(&source.path, Kind::File, bytes, None);
        }
        let replaces = match parts.decider.verdict(&mut self.folders, announced)? {
            Verdict::Make(replaces) => replaces,
            Verdict::Updated(hash) => {
                self.file_is_there(&source.path, true);
                return self.updated(&source.path, Kind::File, bytes, hash);
            }
            Verdict::Present(hash) => {
                self.file_is_there(&source.path, true);
                return self.present(&source.path, Kind::File, bytes, hash);
            }
            Verdict::Refused(reason) => {
                self.file_is_there(&source.path, false);
                self.note_first_name(number, &source, false);
                return self.refuse(&source.path, Kind::File, bytes, reason);
            }
        };
        if parts.plan.mode == Mode::Dry {
            if let Some(reason) = self.unwritable(&source.path) {
                self.file_is_there(&source.path, false);
                self.note_first_name(number, &source, false);
                return self.refuse(&source.path, Kind::File, bytes, reason);
            }
            self.file_is_there(&source.path, true);
            self.note_first_name(number, &source, true);
            let line = line(&source.path, Kind::File, FileStatus::WouldCopy, bytes);
            return self.settle(line, Wants::All);
        }
        let mut entry = Entry::new(number, source, said.mode, said.xattrs);
        entry.replaces = replaces;
        entry.belongs = self.owner.belongs;
        let entry = Arc::new(entry);
        if bytes == 0 {
            return self.empty_file(&entry);
        }
        self.want(entry)
    }

    /// The content of a file is wanted, but for what is proved.
    fn want(&mut self, entry: Arc<Entry>) -> Result<(), Failure> {
        let (parts, bytes) = (self.parts, entry.source.bytes);
        let left = parts.decider.left_of(&entry.source)?;
        if let (Some(left), Some((offset, length))) = (&left, parts.plan.range())
            && left.covers(offset, length.min(bytes - offset))
        {
            return self.present(&entry.source.path, Kind::File, bytes, None);
        }
        let proved = match left {
            Some(left) => parts.partials.resumed(&entry, left)?,
            None => Vec::new(),
        };
        tell_wanted(&entry, &proved);
        let trusted_bytes = self.looked(Looked::Wanted {
            bytes,
            facts_bytes: entry.facts_bytes(),
            key: parts.plan.spec.hard_links.then(|| path_key(&entry.source.path)),
            kept: entry,
            proved,
        })?;
        parts.ledger.trusted(trusted_bytes);
        Ok(())
    }

    /// Tells the machine what was found out about an entry; bytes of it that are proved already.
    fn looked(&mut self, looked: Looked<Arc<Entry>>) -> Result<u64, Failure> {
        self.parts.machine.quietly(|machine| machine.looked(looked))
    }

    /// The file that is looked at is there now, or will not be: further names of it need not wait.
    pub fn file_is_there(&mut self, path: &[u8], is_there: bool) {
        if self.parts.plan.spec.hard_links {
            self.settled_file = Some((path_key(path), is_there));
        }
    }

    fn note_first_name(&mut self, number: u64, source: &Source, is_copied: bool) {
        if self.parts.plan.mode == Mode::Dry && self.parts.plan.spec.hard_links {
            let (bytes, mtime_ns) = (source.bytes, source.mtime_ns);
            let first = FirstName {
                is_copied,
                bytes,
                mtime_ns,
            };
            self.first_names.insert(number, first);
        }
    }

    fn hard_link(&mut self, number: u64, said: message::Entry, to: u64) -> Result<(), Failure> {
        let parts = self.parts;
        let Some(target) = parts.names.seen().path_of(to).filter(|_| to < number) else {
            let reason = "a further name of what is no file of this copy".to_owned();
            return self.refuse(&said.path, Kind::HardLink, 0, reason);
        };
        let source = Source {
            path: said.path,
            bytes: 0,
            mtime_ns: said.mtime_ns,
            ctime_ns: said.ctime_ns,
        };
        let mut entry = Entry::new(number, source, said.mode, Vec::new());
        let of = path_key(&target);
        entry.link_to = Some(target);
        if parts.plan.mode == Mode::Dry {
            return self.would_link(&entry, to);
        }
        self.looked(Looked::FurtherName {
            facts_bytes: entry.facts_bytes(),
            kept: Arc::new(entry),
            of,
        })?;
        Ok(())
    }

    /// What a copy would do about a further name of a file.
    fn would_link(&mut self, entry: &Entry, to: u64) -> Result<(), Failure> {
        let path = &entry.source.path;
        let first = self.first_names.get(&to).copied();
        let verdict = match self.folders.as_mut() {
            Some(folders) => self.parts.finalizer.further_name(folders, entry, first),
            None => Ok(Verdict::Make(false)),
        };
        // A name whose first name fails is copied by itself.
        let (kind, bytes) = match first.filter(|first| !first.is_copied) {
            Some(first) => (Kind::File, first.bytes),
            None => (Kind::HardLink, 0),
        };
        match verdict {
            Ok(Verdict::Make(_)) => {
                if let Some(reason) = self.unwritable(path) {
                    return self.refuse(path, Kind::HardLink, 0, reason);
                }
                let line = line(path, kind, FileStatus::WouldCopy, bytes);
                self.settle(line, Wants::Made)
            }
            Ok(Verdict::Present(_) | Verdict::Updated(_)) => self.present(path, kind, bytes, None),
            Ok(Verdict::Refused(reason)) => self.refuse(path, Kind::HardLink, 0, reason),
            Err(error) => self.refuse(path, Kind::HardLink, 0, in_words(&error)),
        }
    }

    /// The name was there.
    pub fn present(&mut self, path: &[u8], kind: Kind, bytes: u64, hash: Option<Sum>) -> Result<(), Failure> {
        let mut line = line(path, kind, FileStatus::Present, bytes);
        note_sum(&mut line, hash);
        self.parts.ledger.spared(bytes);
        self.settle(line, Wants::Present(hash))
    }

    /// The name was there, and its attributes were set to the source's, or would be.
    pub fn updated(&mut self, path: &[u8], kind: Kind, bytes: u64, hash: Option<Sum>) -> Result<(), Failure> {
        if !self.parts.counts_updates {
            return self.present(path, kind, bytes, hash);
        }
        let status = match self.parts.plan.mode {
            Mode::Dry => FileStatus::WouldUpdate,
            Mode::Real | Mode::Nothing => FileStatus::Updated,
        };
        let mut line = line(path, kind, status, bytes);
        note_sum(&mut line, hash);
        self.parts.ledger.spared(bytes);
        self.settle(line, Wants::Updated(hash))
    }

    /// The destination has no such name, and only what it has is wanted.
    pub fn leave_out(&mut self, path: &[u8], kind: Kind, bytes: u64) -> Result<(), Failure> {
        self.file_is_there(path, false);
        let reason = "is not at the destination, and --existing makes nothing new".to_owned();
        let mut line = line(path, kind, FileStatus::Skipped, bytes);
        line.reason = Some(reason.clone());
        self.settle(line, Wants::LeftOut(reason))
    }

    /// The name may not be, or could not be made.
    pub fn refuse(&mut self, path: &[u8], kind: Kind, bytes: u64, reason: String) -> Result<(), Failure> {
        let reason = one_line(&reason);
        self.parts.names.protect(path);
        let mut line = line(path, kind, FileStatus::Failed, bytes);
        line.reason = Some(reason.clone());
        self.settle(line, Wants::Refused(reason))
    }

    /// An entry is settled by its answer.
    pub fn settle(&mut self, line: ReceiptLine, wants: Wants) -> Result<(), Failure> {
        self.parts.ledger.answered(&line)?;
        let file = self.settled_file.take();
        self.looked(Looked::Answered { wants, file })?;
        Ok(())
    }
}

fn tell_wanted(entry: &Entry, proved: &[Proved]) {
    debug!(
        entry = %Shown(&entry.source.path),
        number = entry.number,
        bytes = entry.source.bytes,
        trusted_bytes = proved.iter().map(|part| part.bytes).sum::<u64>(),
        replaces = entry.replaces,
        "entry wanted"
    );
}
