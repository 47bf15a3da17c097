//! The catalogue: entries are answered in the order in which they come, folders and links are made at once.

use std::sync::Arc;

use farline_proto::copy::receiver::{Heard, Key, Looked};
use farline_spec::{CopySpec, Failure, FailureKind, FileKind as Kind, FileStatus, ReceiptLine};
use tracing::debug;

use super::decide::{Announced, Verdict};
use super::driver::Receiver;
use super::entry::Entry;
use super::journal::{Source, path_key};
use super::owner::Resolved;
use super::place::{self, Folders};
use super::shared::{Mode, Shared, broken, one_line};
use crate::frame::FrameKind;
use crate::message::{self, Catalogue, EntryKind, MOST_XATTR_BYTES, Proved, Wants, Xattr};
use crate::path_text::Shown;
use crate::receipt::line;
use crate::sum::{Sum, note_sum};
use crate::{Arrived, Frame, Inlet, most_entries_under_way, path_text};

/// Entries beyond those agreed on: a file that is tried again may be announced before the word that its first try is lost.
const SPARE_ENTRIES: usize = 1_024;
/// Bytes of what is remembered of all entries.
const MOST_SEEN_BYTES: usize = if cfg!(test) { 2 << 20 } else { 1 << 30 };

/// The thread that takes the catalogue.
pub struct Reading<'a> {
    pub shared: &'a Arc<Shared>,
    pub folders: Option<Folders>,
    /// To whom entries are to belong.
    pub owner: Resolved,
    /// Of the file that is looked at: what its path is known by, and whether it is there now.
    settled_file: Option<(Key, bool)>,
    has_ended: bool,
    /// Called when it is settled where things go.
    is_settled: &'a mut dyn FnMut() -> Result<(), Failure>,
}

impl<'a> Reading<'a> {
    /// A reader of the one catalogue.
    pub fn new(shared: &'a Arc<Shared>, is_settled: &'a mut dyn FnMut() -> Result<(), Failure>) -> Self {
        Self {
            shared,
            folders: None,
            owner: Resolved::default(),
            settled_file: None,
            has_ended: false,
            is_settled,
        }
    }

    /// Takes frames until the stream ends.
    ///
    /// # Errors
    /// The stream's; [`FailureKind::Protocol`] for a catalogue that makes no sense; what ended the copy.
    pub fn run(&mut self, inlet: &mut dyn Inlet) -> Result<(), Failure> {
        let mut frame = Frame::new(message::MESSAGE_FRAME_BYTES);
        loop {
            self.shared.check()?;
            match inlet.receive(&mut frame)? {
                Arrived::Frame => self.take(&frame)?,
                Arrived::Void | Arrived::Unopened { .. } | Arrived::OutOfStep { .. } => {
                    return Err(broken("an empty frame among messages"));
                }
                Arrived::Nothing => {}
                Arrived::End if self.has_ended => return Ok(()),
                Arrived::End => return Err(broken("the file list ended too early")),
            }
        }
    }

    fn take(&mut self, frame: &Frame) -> Result<(), Failure> {
        if frame.header()?.kind != FrameKind::Catalogue {
            return Err(broken("a data frame on the stream of the file list"));
        }
        for said in message::messages(frame.payload())? {
            self.hear(said)?;
        }
        self.shared.machine.tell();
        self.check_memory()?;
        let most = 2 * most_under_way(&self.shared.spec);
        self.shared.machine.wait_for_room(most, || self.shared.check())
    }

    /// What another host says may not take all the memory of this one.
    fn check_memory(&self) -> Result<(), Failure> {
        if self.shared.remembered_bytes() > MOST_SEEN_BYTES {
            let line = format!(
                "names to remember need more than the {} MiB allowed for one copy",
                MOST_SEEN_BYTES >> 20
            );
            return Err(Failure::new(FailureKind::Limit, line));
        }
        Ok(())
    }

    fn hear(&mut self, said: Catalogue) -> Result<(), Failure> {
        let shared = self.shared;
        if matches!(said, Catalogue::End { entries: 0, .. }) {
            // Before the machine hears of it: what comes after all entries is done at a destination that is there.
            self.nothing_came()?;
        }
        let (heard, is_full) = shared.machine.quietly(|machine| {
            let heard = machine.handle_message(said)?;
            Ok::<_, Failure>((heard, machine.is_full_of_holes()))
        })?;
        if is_full {
            shared.machine.tell();
            shared
                .machine
                .wait_while(|machine: &Receiver| machine.is_full_of_holes());
        }
        match heard {
            Heard::Nothing => {}
            Heard::Begin(top) => {
                shared.request().check_top(top.as_ref())?;
                if let Some(top) = top {
                    // The file list starts once.
                    let _ = shared.top.set(top);
                }
            }
            Heard::Look(number, entry) => self.entry(number, entry)?,
            Heard::Owner(owner, is_first) => {
                self.owner = shared.owners.resolve(&owner)?;
                if is_first {
                    // The first is the destination folder's, if it is anybody's.
                    let _ = shared.top_owner.set(self.owner.belongs);
                }
            }
            Heard::Unannounced(Catalogue::Unannounced {
                path,
                kind,
                status,
                reason,
            }) => self.unannounced(&path, kind, status, &reason)?,
            Heard::Unannounced(_) => {}
            Heard::AllAnnounced => shared.gauges.all_found.set(1),
            Heard::Lost {
                kept,
                counted,
                reason,
                again,
                ..
            } => shared.lost(&kept, counted, &reason, again)?,
            Heard::End(entries) => {
                debug!(entries, "catalogue ended");
                shared.gauges.all_found.set(1);
                self.has_ended = true;
            }
        }
        Ok(())
    }

    /// A folder with nothing in it to copy is a folder at the destination too.
    fn nothing_came(&mut self) -> Result<(), Failure> {
        let shared = self.shared;
        if shared.top.get().is_some() && shared.site.get().is_none() {
            shared.settle_as_folder()?;
            self.folders = shared.folders();
            (self.is_settled)()?;
        }
        Ok(())
    }

    /// A name that does not come. It counts at this end too: whoever asked for the copy may be here.
    fn unannounced(&self, path: &[u8], kind: Kind, status: FileStatus, reason: &str) -> Result<(), Failure> {
        let gauges = &self.shared.gauges;
        let counted = match status {
            FileStatus::Failed => &gauges.failed_files,
            FileStatus::Skipped => &gauges.settled_files,
            _ => {
                return Err(broken(
                    "a name was reported missing without being skipped or failed",
                ));
            }
        };
        if path.len() > message::MAX_PATH_BYTES {
            return Err(broken("a missing name is too long"));
        }
        self.shared.request().check_unannounced(path)?;
        // A path that may not be is none of the destination's.
        if place::refusal(path).is_none() {
            self.shared.protect(path);
        }
        gauges.found_files.add(1);
        counted.add(1);
        let mut line = line(path, kind, status, 0);
        line.reason = Some(one_line(reason));
        self.shared.receipt.settle(&line)
    }

    fn entry(&mut self, number: u64, mut said: message::Entry) -> Result<(), Failure> {
        let shared = self.shared;
        // Before anything else: what was not asked for leaves no trace.
        let unwelcome = shared.request().check(&said)?;
        let mut refusal = unwelcome.or_else(|| place::refusal(&said.path));
        if refusal.is_none() {
            // Before anything else is asked: what the sources have is not deleted.
            if shared.spec.delete.is_some() {
                shared.seen().path(&said.path);
            }
            self.drop_strange_xattrs(&mut said);
            refusal = refused_facts(&said);
        }
        let mut taken = None;
        if refusal.is_none() {
            shared.settle_by(&said)?;
            if self.folders.is_none() {
                self.folders = shared.folders();
                (self.is_settled)()?;
            }
            taken = shared.taken_by(&said.path);
        }
        let bytes = match said.kind {
            EntryKind::File { bytes, .. } => bytes,
            EntryKind::Folder | EntryKind::Link { .. } | EntryKind::HardLink { .. } => 0,
        };
        debug!(entry = %Shown(&said.path), number, kind = kind_of(&said.kind).word(), bytes, "entry announced");
        shared.gauges.found_files.add(1);
        shared.gauges.found_bytes.add(bytes);
        shared.owners.count(&self.owner);
        let renamed = match refusal {
            Some(refusal) => Err(refusal.to_owned()),
            None => taken.map_or_else(|| self.renamed(&mut said.path), Err),
        };
        let is_file = renamed.is_ok() && matches!(said.kind, EntryKind::File { .. });
        if shared.spec.hard_links {
            shared.seen().number(if is_file { &said.path } else { b"" });
        }
        if let Err(reason) = renamed {
            return self.refuse(&said.path, kind_of(&said.kind), bytes, reason);
        }
        if shared.spec.existing && matches!(self.facts_of(&said.path), Ok(None)) {
            return self.leave_out(&said.path, kind_of(&said.kind), bytes);
        }
        self.answer(number, said)
    }

    /// Attributes that another host may not set are left out.
    fn drop_strange_xattrs(&self, said: &mut message::Entry) {
        let path = &said.path;
        said.xattrs.retain(|xattr| {
            let is_taken = message::takes_xattr(&xattr.name);
            if !is_taken {
                let name = path_text::to_text(&xattr.name);
                let what =
                    format!("extended attribute {name}: only user.* and access control lists are accepted");
                self.shared.problem(path, &what);
            }
            is_taken
        });
    }

    /// A lone file gets its new name; nothing else may come with it.
    fn renamed(&self, path: &mut Vec<u8>) -> Result<(), String> {
        match &self.shared.site().single {
            Some((from, to)) if from == path => to.clone_into(path),
            // The one name asked for had no content of a folder when it came first.
            Some(_) => return Err("this is not the file that was announced".to_owned()),
            None => {}
        }
        Ok(())
    }

    fn answer(&mut self, number: u64, said: message::Entry) -> Result<(), Failure> {
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
        let shared = self.shared;
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
        if shared.range().is_some_and(|(offset, _)| offset >= bytes) {
            // It has become shorter: nothing of it is this session's.
            return self.present(&source.path, Kind::File, bytes, None);
        }
        let replaces = match shared.verdict(&mut self.folders, announced)? {
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
                return self.refuse(&source.path, Kind::File, bytes, reason);
            }
        };
        if shared.mode == Mode::Dry {
            if let Some(reason) = self.unwritable(&source.path) {
                self.file_is_there(&source.path, false);
                return self.refuse(&source.path, Kind::File, bytes, reason);
            }
            self.file_is_there(&source.path, true);
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
        let (shared, bytes) = (self.shared, entry.source.bytes);
        let left = shared.left_of(&entry.source)?;
        if let (Some(left), Some((offset, length))) = (&left, shared.range())
            && left.covers(offset, length.min(bytes - offset))
        {
            return self.present(&entry.source.path, Kind::File, bytes, None);
        }
        let proved = match left {
            Some(left) => shared.resumed(&entry, left)?,
            None => Vec::new(),
        };
        tell_wanted(&entry, &proved);
        let trusted_bytes = self.looked(Looked::Wanted {
            bytes,
            facts_bytes: entry.facts_bytes(),
            key: shared.spec.hard_links.then(|| path_key(&entry.source.path)),
            kept: entry,
            proved,
        })?;
        shared.gauges.settled_bytes.add(trusted_bytes);
        shared.gauges.spared_bytes.add(trusted_bytes);
        Ok(())
    }

    /// Tells the machine what was found out about an entry; bytes of it that are proved already.
    fn looked(&mut self, looked: Looked<Arc<Entry>>) -> Result<u64, Failure> {
        self.shared.machine.quietly(|machine| machine.looked(looked))
    }

    /// The file that is looked at is there now, or will not be: further names of it need not wait.
    pub fn file_is_there(&mut self, path: &[u8], is_there: bool) {
        if self.shared.spec.hard_links {
            self.settled_file = Some((path_key(path), is_there));
        }
    }

    fn hard_link(&mut self, number: u64, said: message::Entry, to: u64) -> Result<(), Failure> {
        let shared = self.shared;
        let Some(target) = shared.seen().path_of(to).filter(|_| to < number) else {
            let reason = "a further name of what is no file of this copy".to_owned();
            return self.refuse(&said.path, Kind::HardLink, 0, reason);
        };
        if shared.mode == Mode::Dry {
            let line = line(&said.path, Kind::HardLink, FileStatus::WouldCopy, 0);
            return self.settle(line, Wants::Made);
        }
        let source = Source {
            path: said.path,
            bytes: 0,
            mtime_ns: said.mtime_ns,
            ctime_ns: said.ctime_ns,
        };
        let mut entry = Entry::new(number, source, said.mode, Vec::new());
        let of = path_key(&target);
        entry.link_to = Some(target);
        self.looked(Looked::FurtherName {
            facts_bytes: entry.facts_bytes(),
            kept: Arc::new(entry),
            of,
        })?;
        Ok(())
    }

    /// The name was there.
    pub fn present(&mut self, path: &[u8], kind: Kind, bytes: u64, hash: Option<Sum>) -> Result<(), Failure> {
        let mut line = line(path, kind, FileStatus::Present, bytes);
        note_sum(&mut line, hash);
        self.shared.gauges.spared_bytes.add(bytes);
        self.settle(line, Wants::Present(hash))
    }

    /// The name was there, and its attributes were set to the source's, or would be.
    pub fn updated(&mut self, path: &[u8], kind: Kind, bytes: u64, hash: Option<Sum>) -> Result<(), Failure> {
        if !self.shared.counts_updates {
            return self.present(path, kind, bytes, hash);
        }
        let status = match self.shared.mode {
            Mode::Dry => FileStatus::WouldUpdate,
            Mode::Real | Mode::Nothing => FileStatus::Updated,
        };
        let mut line = line(path, kind, status, bytes);
        note_sum(&mut line, hash);
        self.shared.gauges.spared_bytes.add(bytes);
        self.settle(line, Wants::Updated(hash))
    }

    /// The destination has no such name, and only what it has is wanted.
    fn leave_out(&mut self, path: &[u8], kind: Kind, bytes: u64) -> Result<(), Failure> {
        self.file_is_there(path, false);
        let reason = "is not at the destination, and --existing makes nothing new".to_owned();
        let mut line = line(path, kind, FileStatus::Skipped, bytes);
        line.reason = Some(reason.clone());
        self.settle(line, Wants::LeftOut(reason))
    }

    /// The name may not be, or could not be made.
    pub fn refuse(&mut self, path: &[u8], kind: Kind, bytes: u64, reason: String) -> Result<(), Failure> {
        let reason = one_line(&reason);
        self.shared.protect(path);
        let mut line = line(path, kind, FileStatus::Failed, bytes);
        line.reason = Some(reason.clone());
        self.settle(line, Wants::Refused(reason))
    }

    /// An entry is settled by its answer.
    pub fn settle(&mut self, line: ReceiptLine, wants: Wants) -> Result<(), Failure> {
        match line.status {
            FileStatus::Failed => self.shared.gauges.failed_files.add(1),
            _ => {
                self.shared.gauges.settled_files.add(1);
                self.shared.gauges.settled_bytes.add(line.bytes);
            }
        }
        self.shared.receipt.settle(&line)?;
        self.shared.pulse.beat();
        let file = self.settled_file.take();
        self.looked(Looked::Answered { wants, file })?;
        Ok(())
    }
}

impl Shared {
    /// Why a path may not be where another of the sources is one with it; `None` if it may.
    fn taken_by(&self, path: &[u8]) -> Option<String> {
        let key = self.site().fold.key(path)?;
        let other = self.seen().folded(&key, path)?;
        let other = path_text::to_text(&other);
        Some(format!(
            "{other} has the same name at the destination, which does not distinguish them"
        ))
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

/// Entries that may be under way.
pub fn most_under_way(spec: &CopySpec) -> usize {
    most_entries_under_way(spec) + SPARE_ENTRIES
}

fn kind_of(kind: &EntryKind) -> Kind {
    match kind {
        EntryKind::File { .. } => Kind::File,
        EntryKind::Folder => Kind::Folder,
        EntryKind::Link { .. } => Kind::Link,
        EntryKind::HardLink { .. } => Kind::HardLink,
    }
}

/// What besides the path another host may not say of a name.
fn refused_facts(said: &message::Entry) -> Option<&'static str> {
    let length = |xattr: &Xattr| xattr.name.len() + xattr.value.len();
    if said.xattrs.iter().map(length).sum::<usize>() > MOST_XATTR_BYTES {
        return Some("its extended attributes have more than 65536 bytes");
    }
    match &said.kind {
        EntryKind::File { bytes, .. } if i64::try_from(*bytes).is_err() => Some("an impossible file size"),
        EntryKind::Link { target } if target.is_empty() || target.len() > message::MAX_PATH_BYTES => {
            Some("a link target must have 1 to 4096 bytes")
        }
        EntryKind::Link { target } if target.contains(&0) => Some("a link target cannot contain a zero byte"),
        _ => None,
    }
}
