//! The catalogue: what comes is heard in its order, and an entry is held against what was asked for before it is answered.

use std::sync::{Arc, Mutex, MutexGuard};

use farline_proto::copy::receiver::Heard;
use farline_spec::{CopySpec, Failure, FailureKind, FileKind as Kind, FileStatus};
use tracing::debug;

use super::answer::Answerer;
use super::driver::{Machine, Receiver};
use super::owner::Owners;
use super::place;
use super::remembered::Remembered;
use super::run::Run;
use super::settle::Ledger;
use super::site::Destination;
use super::words::{POISONED, Problems, broken};
use crate::frame::FrameKind;
use crate::message::{self, Catalogue, EntryKind, MOST_XATTR_BYTES, Xattr};
use crate::path_text::{Shown, one_line};
use crate::receipt::line;
use crate::request::Request;
use crate::{Arrived, Frame, Gauges, Inlet, most_entries_under_way, path_text};

/// Entries beyond those agreed on: a file that is tried again may be announced before the word that its first try is lost.
const SPARE_ENTRIES: usize = 1_024;
/// Bytes of what is remembered of all entries.
const MOST_SEEN_BYTES: usize = if cfg!(test) { 2 << 20 } else { 1 << 30 };

/// What the catalogue is held against before anything is made.
#[derive(Debug)]
pub struct Gate {
    /// What was asked for.
    pub request: Mutex<Request>,
    /// Users and groups.
    pub owners: Owners,
    pub destination: Arc<Destination>,
    pub names: Arc<Remembered>,
    pub problems: Arc<Problems>,
    pub ledger: Arc<Ledger>,
    pub machine: Arc<Machine>,
    pub run: Arc<Run>,
    pub gauges: Arc<Gauges>,
}

impl Gate {
    /// What was asked for, to hold something against it.
    fn request(&self) -> MutexGuard<'_, Request> {
        self.request.lock().expect(POISONED)
    }

    fn spec(&self) -> &CopySpec {
        &self.destination.plan.spec
    }

    /// Bytes of what is remembered of all that was announced.
    fn remembered_bytes(&self) -> usize {
        let names_bytes = self.machine.quietly(|machine| machine.names_bytes());
        let seen_bytes = self.names.seen().bytes();
        seen_bytes + self.request().bytes() + self.owners.bytes() + names_bytes
    }

    /// Why a path may not be where another of the sources is one with it; `None` if it may.
    fn taken_by(&self, path: &[u8]) -> Option<String> {
        let key = self.destination.site().fold.key(path)?;
        let other = self.names.seen().folded(&key, path)?;
        let other = path_text::to_text(&other);
        Some(format!(
            "{other} has the same name at the destination, which does not distinguish them"
        ))
    }
}

/// The thread that takes the catalogue.
pub struct Reading<'a> {
    gate: &'a Gate,
    answerer: Answerer<'a>,
    has_ended: bool,
    /// Called when it is settled where things go.
    is_settled: &'a mut dyn FnMut() -> Result<(), Failure>,
}

impl<'a> Reading<'a> {
    /// A reader of the one catalogue, whose entries `answerer` answers.
    pub fn new(
        gate: &'a Gate,
        answerer: Answerer<'a>,
        is_settled: &'a mut dyn FnMut() -> Result<(), Failure>,
    ) -> Self {
        Self {
            gate,
            answerer,
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
            self.gate.run.check()?;
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
        self.gate.machine.tell();
        self.check_memory()?;
        let most = 2 * most_under_way(self.gate.spec());
        self.gate.machine.wait_for_room(most, || self.gate.run.check())
    }

    /// What another host says may not take all the memory of this one.
    fn check_memory(&self) -> Result<(), Failure> {
        if self.gate.remembered_bytes() > MOST_SEEN_BYTES {
            let line = format!(
                "names to remember need more than the {} MiB allowed for one copy",
                MOST_SEEN_BYTES >> 20
            );
            return Err(Failure::new(FailureKind::Limit, line));
        }
        Ok(())
    }

    fn hear(&mut self, said: Catalogue) -> Result<(), Failure> {
        let gate = self.gate;
        if matches!(said, Catalogue::End { entries: 0, .. }) {
            // Before the machine hears of it: what comes after all entries is done at a destination that is there.
            self.nothing_came()?;
        }
        let (heard, is_full) = gate.machine.quietly(|machine| {
            let heard = machine.handle_message(said)?;
            Ok::<_, Failure>((heard, machine.is_full_of_holes()))
        })?;
        if is_full {
            gate.machine.tell();
            gate.machine
                .wait_while(|machine: &Receiver| machine.is_full_of_holes());
        }
        match heard {
            Heard::Nothing => {}
            Heard::Begin(top) => {
                gate.request().check_top(top.as_ref())?;
                if let Some(top) = top {
                    // The file list starts once.
                    let _ = gate.destination.top.set(top);
                }
            }
            Heard::TopXattrs(xattrs) => self.top_xattrs(xattrs)?,
            Heard::Look(number, entry) => self.entry(number, entry)?,
            Heard::Owner(owner, is_first) => {
                self.answerer.owner = gate.owners.resolve(&owner)?;
                if is_first {
                    // The first is the destination folder's, if it is anybody's.
                    let _ = gate.destination.top_owner.set(self.answerer.owner.belongs);
                }
            }
            Heard::Unannounced(Catalogue::Unannounced {
                path,
                kind,
                status,
                reason,
            }) => self.unannounced(&path, kind, status, &reason)?,
            Heard::Unannounced(_) => {}
            Heard::AllAnnounced => gate.gauges.all_found.set(1),
            Heard::Lost {
                kept,
                counted,
                reason,
                again,
                ..
            } => gate.ledger.lost(&kept, counted, &reason, again)?,
            Heard::End(entries) => {
                debug!(entries, "catalogue ended");
                gate.gauges.all_found.set(1);
                self.has_ended = true;
            }
        }
        Ok(())
    }

    /// A folder with nothing in it to copy is a folder at the destination too.
    fn nothing_came(&mut self) -> Result<(), Failure> {
        let gate = self.gate;
        if gate.destination.top.get().is_some() && gate.destination.site_if_any().is_none() {
            gate.destination.settle_as_folder()?;
            self.answerer.folders = gate.destination.folders();
            (self.is_settled)()?;
        }
        Ok(())
    }

    /// Those of the destination folder itself, in which nothing is yet.
    fn top_xattrs(&self, mut xattrs: Vec<Xattr>) -> Result<(), Failure> {
        let destination = &self.gate.destination;
        if destination.top.get().is_none() || !self.gate.spec().xattrs {
            return Err(broken(
                "attributes of the destination folder, which were not requested",
            ));
        }
        if xattr_bytes(&xattrs) > MOST_XATTR_BYTES {
            return Err(broken(
                "the destination folder's attributes have more than 65536 bytes",
            ));
        }
        self.drop_strange_xattrs(b".", &mut xattrs);
        // The file list starts once.
        let _ = destination.top_xattrs.set(xattrs);
        Ok(())
    }

    /// A name that does not come. It counts at this end too: whoever asked for the copy may be here.
    fn unannounced(&self, path: &[u8], kind: Kind, status: FileStatus, reason: &str) -> Result<(), Failure> {
        let gauges = &self.gate.gauges;
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
        self.gate.request().check_unannounced(path)?;
        // A path that may not be is none of the destination's.
        if place::refusal(path).is_none() {
            self.gate.names.protect(path);
        }
        gauges.found_files.add(1);
        counted.add(1);
        let mut line = line(path, kind, status, 0);
        line.reason = Some(one_line(reason));
        self.gate.ledger.receipt.settle(&line)
    }

    fn entry(&mut self, number: u64, mut said: message::Entry) -> Result<(), Failure> {
        let gate = self.gate;
        // Before anything else: what was not asked for leaves no trace.
        let unwelcome = gate.request().check(&said)?;
        let mut refusal = unwelcome.or_else(|| place::refusal(&said.path));
        if refusal.is_none() {
            // Before anything else is asked: what the sources have is not deleted.
            if gate.spec().delete.is_some() {
                gate.names.seen().path(&said.path);
            }
            self.drop_strange_xattrs(&said.path, &mut said.xattrs);
            refusal = refused_facts(&said);
        }
        let mut taken = None;
        if refusal.is_none() {
            gate.destination.settle_by(&said)?;
            if self.answerer.folders.is_none() {
                self.answerer.folders = gate.destination.folders();
                (self.is_settled)()?;
            }
            taken = gate.taken_by(&said.path);
        }
        let bytes = match said.kind {
            EntryKind::File { bytes, .. } => bytes,
            EntryKind::Folder | EntryKind::Link { .. } | EntryKind::HardLink { .. } => 0,
        };
        debug!(entry = %Shown(&said.path), number, kind = kind_of(&said.kind).word(), bytes, "entry announced");
        gate.gauges.found_files.add(1);
        gate.gauges.found_bytes.add(bytes);
        gate.owners.count(&self.answerer.owner);
        let renamed = match refusal {
            Some(refusal) => Err(refusal.to_owned()),
            None => taken.map_or_else(|| self.renamed(&mut said.path), Err),
        };
        let is_file = renamed.is_ok() && matches!(said.kind, EntryKind::File { .. });
        if gate.spec().hard_links {
            gate.names.seen().number(if is_file { &said.path } else { b"" });
        }
        if let Err(reason) = renamed {
            return self
                .answerer
                .refuse(&said.path, kind_of(&said.kind), bytes, reason);
        }
        if gate.spec().existing && matches!(self.answerer.facts_of(&said.path), Ok(None)) {
            return self.answerer.leave_out(&said.path, kind_of(&said.kind), bytes);
        }
        self.answerer.answer(number, said)
    }

    /// Attributes that another host may not set are left out.
    fn drop_strange_xattrs(&self, path: &[u8], xattrs: &mut Vec<Xattr>) {
        xattrs.retain(|xattr| {
            let is_taken = message::takes_xattr(&xattr.name);
            if !is_taken {
                let name = path_text::to_text(&xattr.name);
                let what =
                    format!("extended attribute {name}: only user.* and access control lists are accepted");
                self.gate.problems.add(path, &what);
            }
            is_taken
        });
    }

    /// A lone file gets its new name; nothing else may come with it.
    fn renamed(&self, path: &mut Vec<u8>) -> Result<(), String> {
        match &self.gate.destination.site().single {
            Some((from, to)) if from == path => to.clone_into(path),
            // The one name asked for had no content of a folder when it came first.
            Some(_) => return Err("this is not the file that was announced".to_owned()),
            None => {}
        }
        Ok(())
    }
}

/// Entries that may be under way.
pub fn most_under_way(spec: &CopySpec) -> usize {
    most_entries_under_way(spec) + SPARE_ENTRIES
}

/// The word of a receipt for it.
fn kind_of(kind: &EntryKind) -> Kind {
    match kind {
        EntryKind::File { .. } => Kind::File,
        EntryKind::Folder => Kind::Folder,
        EntryKind::Link { .. } => Kind::Link,
        EntryKind::HardLink { .. } => Kind::HardLink,
    }
}

fn xattr_bytes(xattrs: &[Xattr]) -> usize {
    let length = |xattr: &Xattr| xattr.name.len() + xattr.value.len();
    xattrs.iter().map(length).sum()
}

/// What besides the path another host may not say of a name.
fn refused_facts(said: &message::Entry) -> Option<&'static str> {
    if xattr_bytes(&said.xattrs) > MOST_XATTR_BYTES {
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
