//! The catalogue: entries are answered in the order in which they come, folders and links are made at once.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use farline_spec::{CopySpec, Failure, FailureKind, FileKind as Kind, FileStatus, ReceiptLine};
use tracing::debug;

use super::decide::{Announced, Verdict};
use super::entry::{End, Entry};
use super::journal::{Source, path_key};
use super::owner::Resolved;
use super::place::{self, Folders};
use super::settle::line;
use super::shared::{Mode, POISONED, Shared, broken, one_line};
use crate::frame::FrameKind;
use crate::message::{self, Catalogue, EntryKind, MOST_XATTR_BYTES, Wants, Xattr};
use crate::path_text::Shown;
use crate::{Arrived, Frame, Inlet, most_entries_under_way, path_text};

/// Chunks there may be.
const CHUNKS: std::ops::RangeInclusive<u64> = 64 * 1024..=16 << 20;
/// Entries beyond those agreed on: a file that is tried again may be announced before the word that its first try is lost.
const SPARE_ENTRIES: usize = 1_024;
/// Bytes of paths and attributes of entries under way.
const MOST_OPEN_BYTES: usize = 64 << 20;
/// Bytes of what is remembered of all entries.
const MOST_SEEN_BYTES: usize = if cfg!(test) { 2 << 20 } else { 1 << 30 };

/// The thread that takes the catalogue.
pub struct Reading<'a> {
    pub shared: &'a Arc<Shared>,
    pub folders: Option<Folders>,
    /// To whom entries are to belong.
    pub owner: Resolved,
    answers: Vec<(u64, Wants)>,
    most_under_way: usize,
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
            answers: Vec::new(),
            most_under_way: most_entries_under_way(&shared.spec) + SPARE_ENTRIES,
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
        self.shared.table.tell();
        self.shared.outbox.answer(self.answers.drain(..));
        self.shared.close_if_over();
        self.check_memory()?;
        let most = 2 * self.most_under_way;
        self.shared.outbox.wait_for_room(most, || self.shared.check())
    }

    /// What another host says may not take all the memory of this one.
    fn check_memory(&self) -> Result<(), Failure> {
        let too_much = |what: &str, most: usize| {
            let line = format!(
                "{what} need more than the {} MiB allowed for one copy",
                most >> 20
            );
            Err(Failure::new(FailureKind::Limit, line))
        };
        if self.shared.table.bytes() > MOST_OPEN_BYTES {
            return too_much("paths and extended attributes in flight", MOST_OPEN_BYTES);
        }
        if self.shared.remembered_bytes() > MOST_SEEN_BYTES {
            return too_much("names to remember", MOST_SEEN_BYTES);
        }
        Ok(())
    }

    fn hear(&mut self, said: Catalogue) -> Result<(), Failure> {
        let chunk = self.shared.chunk_bytes.get();
        match said {
            Catalogue::Begin {
                chunk_bytes,
                top,
                asks_whole,
            } => {
                check_chunk(&self.shared.spec, chunk_bytes)?;
                self.shared.request().check_top(top.as_ref())?;
                self.shared.says_whole.store(asks_whole, Ordering::Release);
                if let Some(top) = top {
                    // Once: what follows fails where the file list starts twice.
                    let _ = self.shared.top.set(top);
                }
                let set = self.shared.chunk_bytes.set(chunk_bytes);
                set.map_err(|_| broken("the file list starts twice"))
            }
            _ if chunk.is_none() => Err(broken("a file list without a chunk size")),
            Catalogue::Entry(entry) => self.entry(entry).map(|()| self.shared.table.announced()),
            Catalogue::Hole { file, offset, bytes } => self.hole(file, offset, bytes),
            Catalogue::Settled { file, hash } => match self.known(file)? {
                Some(entry) => self.shared.settled(&entry, hash),
                None => Ok(()),
            },
            Catalogue::Lost { file, reason, again } => self.lost(file, &reason, again),
            Catalogue::Unannounced {
                path,
                kind,
                status,
                reason,
            } => self.unannounced(&path, kind, status, &reason),
            Catalogue::Owner(said) => {
                self.owner = self.shared.owners.resolve(&said)?;
                if self.shared.table.count() == 0 {
                    // The first is the destination folder's, if it is anybody's.
                    let _ = self.shared.top_owner.set(self.owner.belongs);
                }
                Ok(())
            }
            Catalogue::AllAnnounced => {
                self.shared.gauges.all_found.set(1);
                Ok(())
            }
            Catalogue::End { entries, whole } => {
                if entries == 0 {
                    self.nothing_came()?;
                }
                debug!(entries, whole, "catalogue ended");
                self.shared.table.end(End { entries, whole })?;
                self.shared.gauges.all_found.set(1);
                self.has_ended = true;
                self.shared.works.hurry();
                Ok(())
            }
        }
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

    /// The entry of this number, if it is not settled.
    fn known(&self, file: u64) -> Result<Option<Arc<Entry>>, Failure> {
        if file >= self.shared.table.count() {
            return Err(broken(format!("number {file} was not announced")));
        }
        let found = self.shared.table.get(&[file], || self.shared.check())?;
        Ok(found.into_iter().next().flatten())
    }

    fn hole(&self, file: u64, offset: u64, bytes: u64) -> Result<(), Failure> {
        let Some(entry) = self.known(file)? else {
            return Ok(());
        };
        if !message::is_part(offset, bytes, entry.source.bytes) {
            return Err(broken(format!("an invalid hole in file {file}")));
        }
        self.shared.works.hole(entry, offset, bytes);
        Ok(())
    }

    fn lost(&self, file: u64, reason: &str, again: bool) -> Result<(), Failure> {
        if !again {
            self.shared.lost.store(true, Ordering::Relaxed);
        }
        match self.known(file)? {
            Some(entry) => self.shared.lost(&entry, reason, again),
            None => Ok(()),
        }
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
        if self.has_ended || path.len() > message::MAX_PATH_BYTES {
            return Err(broken(
                "a missing name is too long, or was reported after the end",
            ));
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

    fn entry(&mut self, mut said: message::Entry) -> Result<(), Failure> {
        let shared = self.shared;
        if self.has_ended || shared.table.open() >= self.most_under_way {
            return Err(broken(format!(
                "more than {} entries in flight, or one after the end",
                self.most_under_way
            )));
        }
        // Before anything else: what was not asked for leaves no trace.
        let unwelcome = shared.request().check(&said)?;
        let mut refusal = unwelcome.or_else(|| place::refusal(&said.path));
        if refusal.is_none() {
            // Before anything else is asked: what the sources have is not deleted.
            if shared.spec.delete.is_some() {
                shared.seen.path(&said.path);
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
        let number = shared.table.count();
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
            shared.seen.number(if is_file { &said.path } else { b"" });
        }
        if let Err(reason) = renamed {
            return self.refuse(number, &said.path, kind_of(&said.kind), bytes, reason);
        }
        if shared.spec.existing && matches!(self.facts_of(&said.path), Ok(None)) {
            return self.leave_out(number, &said.path, kind_of(&said.kind), bytes);
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
            EntryKind::Folder => self.folder(number, &said),
            EntryKind::Link { ref target } => self.link(number, &said, target),
            EntryKind::File { bytes, hash } => self.file(number, said, bytes, hash),
            EntryKind::HardLink { to } => self.hard_link(number, said, to),
        }
    }

    fn file(
        &mut self,
        number: u64,
        said: message::Entry,
        bytes: u64,
        hash: Option<[u8; 32]>,
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
        let replaces = match shared.verdict(&mut self.folders, announced)? {
            Verdict::Make(replaces) => replaces,
            Verdict::Updated(hash) => {
                shared.release(&source.path, true);
                return self.updated(number, &source.path, Kind::File, bytes, hash);
            }
            Verdict::Present(hash) => {
                shared.release(&source.path, true);
                return self.present(number, &source.path, Kind::File, bytes, hash);
            }
            Verdict::Refused(reason) => {
                // Where nothing was to be there it may come unasked.
                shared.has_stragglers.store(true, Ordering::Release);
                shared.release(&source.path, false);
                return self.refuse(number, &source.path, Kind::File, bytes, reason);
            }
        };
        if shared.mode == Mode::Dry {
            if let Some(reason) = self.unwritable(&source.path) {
                shared.release(&source.path, false);
                return self.refuse(number, &source.path, Kind::File, bytes, reason);
            }
            shared.release(&source.path, true);
            let line = line(&source.path, Kind::File, FileStatus::WouldCopy, bytes);
            return self.settle(number, line, Wants::All);
        }
        let mut entry = Entry::new(number, source, said.mode, said.xattrs);
        entry.replaces = replaces;
        entry.belongs = self.owner.belongs;
        let entry = Arc::new(entry);
        if bytes == 0 {
            return self.empty_file(&entry);
        }
        let wants = match shared.left_of(&entry.source)? {
            Some(left) => shared.resumed(&entry, left)?,
            None => Wants::All,
        };
        if shared.spec.hard_links {
            let mut parked = shared.parked.lock().expect(POISONED);
            parked.awaited.entry(path_key(&entry.source.path)).or_default();
        }
        shared.count_wanted(bytes - entry.proved_bytes())?;
        tell_wanted(&entry);
        shared.table.keep(&entry);
        self.answers.push((number, wants));
        Ok(())
    }

    fn hard_link(&mut self, number: u64, said: message::Entry, to: u64) -> Result<(), Failure> {
        let shared = self.shared;
        let Some(target) = shared.seen.path_of(to).filter(|_| to < number) else {
            let reason = "a further name of what is no file of this copy".to_owned();
            return self.refuse(number, &said.path, Kind::HardLink, 0, reason);
        };
        if shared.mode == Mode::Dry {
            let line = line(&said.path, Kind::HardLink, FileStatus::WouldCopy, 0);
            return self.settle(number, line, Wants::Made);
        }
        let source = Source {
            path: said.path,
            bytes: 0,
            mtime_ns: said.mtime_ns,
            ctime_ns: said.ctime_ns,
        };
        let mut entry = Entry::new(number, source, said.mode, Vec::new());
        let key = path_key(&target);
        entry.link_to = Some(target);
        let entry = Arc::new(entry);
        shared.table.keep(&entry);
        // Answered when its file is settled.
        let mut parked = shared.parked.lock().expect(POISONED);
        match parked.awaited.get_mut(&key) {
            Some(waiting) => waiting.push(entry),
            None => shared.works.link(entry),
        }
        Ok(())
    }

    /// The name was there.
    pub fn present(
        &mut self,
        number: u64,
        path: &[u8],
        kind: Kind,
        bytes: u64,
        hash: Option<[u8; 32]>,
    ) -> Result<(), Failure> {
        let mut line = line(path, kind, FileStatus::Present, bytes);
        line.blake3 = hash.map(|hash| blake3::Hash::from_bytes(hash).to_hex().to_string());
        self.shared.gauges.spared_bytes.add(bytes);
        self.settle(number, line, Wants::Present(hash))
    }

    /// The name was there, and its attributes were set to the source's, or would be.
    pub fn updated(
        &mut self,
        number: u64,
        path: &[u8],
        kind: Kind,
        bytes: u64,
        hash: Option<[u8; 32]>,
    ) -> Result<(), Failure> {
        if !self.shared.counts_updates {
            return self.present(number, path, kind, bytes, hash);
        }
        let status = match self.shared.mode {
            Mode::Dry => FileStatus::WouldUpdate,
            Mode::Real | Mode::Nothing => FileStatus::Updated,
        };
        let mut line = line(path, kind, status, bytes);
        line.blake3 = hash.map(|hash| blake3::Hash::from_bytes(hash).to_hex().to_string());
        self.shared.gauges.spared_bytes.add(bytes);
        self.settle(number, line, Wants::Updated(hash))
    }

    /// The destination has no such name, and only what it has is wanted.
    fn leave_out(&mut self, number: u64, path: &[u8], kind: Kind, bytes: u64) -> Result<(), Failure> {
        self.shared.release(path, false);
        let reason = "is not at the destination, and --existing makes nothing new".to_owned();
        let mut line = line(path, kind, FileStatus::Skipped, bytes);
        line.reason = Some(reason.clone());
        self.settle(number, line, Wants::LeftOut(reason))
    }

    /// The name may not be, or could not be made.
    pub fn refuse(
        &mut self,
        number: u64,
        path: &[u8],
        kind: Kind,
        bytes: u64,
        reason: String,
    ) -> Result<(), Failure> {
        let reason = one_line(&reason);
        self.shared.protect(path);
        let mut line = line(path, kind, FileStatus::Failed, bytes);
        line.reason = Some(reason.clone());
        self.settle(number, line, Wants::Refused(reason))
    }

    /// An entry is settled by its answer.
    pub fn settle(&mut self, number: u64, line: ReceiptLine, wants: Wants) -> Result<(), Failure> {
        match line.status {
            FileStatus::Failed => self.shared.gauges.failed_files.add(1),
            _ => {
                self.shared.gauges.settled_files.add(1);
                self.shared.gauges.settled_bytes.add(line.bytes);
            }
        }
        self.shared.receipt.settle(&line)?;
        self.shared.pulse.beat();
        self.answers.push((number, wants));
        Ok(())
    }
}

impl Shared {
    /// Why a path may not be where another of the sources is one with it; `None` if it may.
    fn taken_by(&self, path: &[u8]) -> Option<String> {
        let key = self.site().fold.key(path)?;
        let other = self.seen.folded(&key, path)?;
        let other = path_text::to_text(&other);
        Some(format!(
            "{other} has the same name at the destination, which does not distinguish them"
        ))
    }
}

fn tell_wanted(entry: &Entry) {
    debug!(
        entry = %Shown(&entry.source.path),
        number = entry.number,
        bytes = entry.source.bytes,
        trusted_bytes = entry.proved_bytes(),
        replaces = entry.replaces,
        "entry wanted"
    );
}

fn check_chunk(spec: &CopySpec, chunk_bytes: u64) -> Result<(), Failure> {
    let is_asked = spec.chunk_bytes.is_none_or(|asked| asked.get() == chunk_bytes);
    if is_asked && chunk_bytes.is_power_of_two() && CHUNKS.contains(&chunk_bytes) {
        return Ok(());
    }
    Err(Failure::new(
        FailureKind::Protocol,
        format!("chunks of {chunk_bytes} bytes were not agreed on"),
    ))
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
