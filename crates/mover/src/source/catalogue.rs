//! The catalogue's stream: entries as they are found, and what other threads have to say of files under way.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, TryRecvError, never, select};
use farline_proto::copy::sender::{Announcement, Inode, Kind, Word};
use farline_spec::{CopySpec, Failure, FileKind, FileStatus};
use farline_sys::file::FileFacts;
use tracing::debug;
use twox_hash::XxHash3_128;

use super::driver::Driver;
use super::found::{Found, What};
use super::owners::Owners;
use super::run::Run;
use super::sending::Sending;
use crate::frame::{Frame, FrameKind, Header};
use crate::message::{self, Catalogue, MESSAGE_FRAME_BYTES, Top, Xattr};
use crate::path_text::Shown;
use crate::{Gauges, Outlet};

/// Bytes of messages that go out without waiting for more: the other end begins while this one goes on.
const FULL_BYTES: usize = 64 * 1024;
/// The same of the first frame, from which it doubles: until then nobody at either end has anything to do.
const FIRST_FULL_BYTES: usize = 2 * 1024;
/// Entries announced before words are looked for again.
const ENTRIES_AT_ONCE: usize = 256;
/// How long the catalogue waits for something before it looks around.
const PAUSE: Duration = Duration::from_millis(500);

/// What is said first, and what is known before anything is found.
#[derive(Debug)]
pub(super) struct Opening {
    /// What to copy and how.
    pub(super) spec: Arc<CopySpec>,
    /// Chunk in use.
    pub(super) chunk_bytes: u64,
    /// What is known of the folder that is the source, where that is what the destination folder should be like.
    pub(super) top: Option<FileFacts>,
    /// Its extended attributes, where the other end is to hear them.
    pub(super) top_xattrs: Option<Vec<Xattr>>,
    /// Whether the other end is to say which files it has whole.
    pub(super) asks_whole: bool,
    /// What is read of a file is what it has.
    pub(super) reads_files: bool,
    /// Several sources, any of which may be the one to have said a name.
    pub(super) has_several: bool,
    /// Two names may be one at the destination.
    pub(super) may_repeat: bool,
    /// Whether everything could be read so far.
    pub(super) is_whole: Arc<AtomicBool>,
}

/// The catalogue of one copy.
pub(super) struct Announcer<'a> {
    opening: &'a Opening,
    driver: &'a Driver,
    run: &'a Run,
    gauges: &'a Gauges,
    outlet: &'a mut dyn Outlet,
    found: Receiver<Vec<Found>>,
    frame: Frame,
    payload: Vec<u8>,
    /// Bytes of messages that go out now without waiting for more.
    full_bytes: usize,
    batch: VecDeque<Found>,
    /// Whose names are.
    owners: Owners,
    /// Hashes of the paths said, where two sources can give one name.
    said: Option<HashSet<u128>>,
    is_walk_over: bool,
    /// Whether the other end knows that.
    is_all_said: bool,
    needs_flush: bool,
    last_frame: Instant,
    last_work: u64,
}

impl<'a> Announcer<'a> {
    /// A catalogue of what comes through `found`.
    pub(super) fn new(
        opening: &'a Opening,
        (driver, run, gauges): (&'a Driver, &'a Run, &'a Gauges),
        found: Receiver<Vec<Found>>,
        outlet: &'a mut dyn Outlet,
    ) -> Self {
        Self {
            opening,
            driver,
            run,
            gauges,
            owners: Owners::new(&opening.spec),
            outlet,
            found,
            frame: Frame::new(MESSAGE_FRAME_BYTES),
            payload: Vec::with_capacity(MESSAGE_FRAME_BYTES),
            full_bytes: FIRST_FULL_BYTES,
            batch: VecDeque::new(),
            said: opening.may_repeat.then(HashSet::new),
            is_walk_over: false,
            is_all_said: false,
            needs_flush: false,
            last_frame: Instant::now(),
            last_work: 0,
        }
    }

    /// Announces until the copy is over.
    pub(super) fn announce_all(mut self) -> Result<(), Failure> {
        let opening = self.opening;
        self.add(&Catalogue::Begin {
            chunk_bytes: opening.chunk_bytes,
            top: opening.top.map(likeness),
            asks_whole: opening.asks_whole,
        })?;
        if let Some(xattrs) = &opening.top_xattrs {
            self.add(&Catalogue::TopXattrs(xattrs.clone()))?;
        }
        if let Some(owner) = opening.top.and_then(|top| self.owners.next(&top)) {
            self.add(&Catalogue::Owner(owner))?;
        }
        self.send()?;
        while !self.run.is_over() {
            let did_something = self.say_words()? | self.announce()? | self.say_end()?;
            if !did_something {
                self.send()?;
                self.wait()?;
            }
        }
        self.run.outcome()
    }

    fn say_words(&mut self) -> Result<bool, Failure> {
        let mut said = false;
        while let Some(word) = self.driver.ask(|machine| machine.poll_word()) {
            self.say(word)?;
            said = true;
        }
        if said {
            self.driver.words_taken();
        }
        Ok(said)
    }

    fn say(&mut self, word: Word<Arc<Sending>>) -> Result<(), Failure> {
        match word {
            Word::Message(message) => self.add(&message),
            Word::Lost {
                file,
                kept,
                reason,
                again,
            } => {
                self.add(&Catalogue::Lost { file, reason, again })?;
                match kept.take_again().filter(|_| again) {
                    Some(found) => {
                        let gauges = self.gauges;
                        gauges.found_bytes.take(kept.found.bytes());
                        gauges.found_bytes.add(found.bytes());
                        self.announce_one(found)
                    }
                    None => Ok(()),
                }
            }
        }
    }

    /// Announces what has been found, as far as the window goes.
    fn announce(&mut self) -> Result<bool, Failure> {
        for announced in 0..ENTRIES_AT_ONCE {
            if self.batch.is_empty() && !self.fetch() {
                return Ok(announced > 0);
            }
            if !self.driver.look(|machine| machine.has_room()) {
                return Ok(announced > 0);
            }
            if let Some(found) = self.batch.pop_front() {
                self.announce_one(found)?;
            }
        }
        Ok(true)
    }

    fn fetch(&mut self) -> bool {
        match self.found.try_recv() {
            Ok(batch) => self.batch = batch.into(),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => self.is_walk_over = true,
        }
        !self.batch.is_empty()
    }

    fn announce_one(&mut self, found: Found) -> Result<(), Failure> {
        if found.tries == 1 && self.is_said(&found) {
            return self.said_again(&found);
        }
        if let Some(owner) = self.owners.next(&found.facts) {
            self.add(&Catalogue::Owner(owner))?;
        }
        let about = self.opening.about(&found);
        let keep = |number, link_to| Arc::new(Sending::new(number, found, link_to));
        let file = self.driver.ask(|machine| machine.announce(about, keep));
        let path = Shown(&file.found.path);
        debug!(entry = %path, number = file.number, bytes = file.found.bytes(), "entry announced");
        self.add(&Catalogue::Entry(file.found.entry(file.link_to)))
    }

    /// Whether the name was said before.
    fn is_said(&mut self, found: &Found) -> bool {
        let Some(said) = &mut self.said else {
            return false;
        };
        !said.insert(XxHash3_128::oneshot(&found.path))
    }

    /// A name was found again. A folder that two sources have is one folder; of two files the first is taken.
    fn said_again(&mut self, found: &Found) -> Result<(), Failure> {
        self.gauges.found_files.take(1);
        self.gauges.found_bytes.take(found.bytes());
        let kind = match found.what {
            What::Folder => return Ok(()),
            What::Link(_) => FileKind::Link,
            What::File(_) => FileKind::File,
        };
        if !self.opening.has_several {
            return Ok(());
        }
        let reason = "two sources give this name; the first of them was taken";
        let message = self
            .driver
            .note_unannounced(&found.path, kind, FileStatus::Failed, reason);
        self.add(&message)
    }

    /// Says that there is nothing more, once nothing can become a new entry.
    fn say_end(&mut self) -> Result<bool, Failure> {
        if !self.is_walk_over || !self.batch.is_empty() {
            return Ok(false);
        }
        let is_first = !std::mem::replace(&mut self.is_all_said, true);
        if is_first {
            self.add(&Catalogue::AllAnnounced)?;
        }
        let entries = self.driver.ask(|machine| machine.say_end());
        let Some(entries) = entries else {
            return Ok(is_first);
        };
        let whole = self.opening.is_whole.load(Ordering::Relaxed);
        debug!(entries, whole, "all entries announced");
        self.add(&Catalogue::End { entries, whole })?;
        Ok(true)
    }

    fn add(&mut self, message: &Catalogue) -> Result<(), Failure> {
        let before = self.payload.len();
        message::append(&mut self.payload, message)?;
        if self.payload.len() > MESSAGE_FRAME_BYTES {
            self.send_first(before)?;
        }
        if self.payload.len() >= self.full_bytes {
            self.full_bytes = FULL_BYTES.min(2 * self.full_bytes);
            self.send_first(self.payload.len())?;
        }
        Ok(())
    }

    /// Sends all there is and sees to it that it does not wait for more.
    fn send(&mut self) -> Result<(), Failure> {
        if !self.payload.is_empty() {
            self.send_first(self.payload.len())?;
        }
        if std::mem::take(&mut self.needs_flush) {
            self.outlet.flush()?;
        }
        Ok(())
    }

    fn send_first(&mut self, bytes: usize) -> Result<(), Failure> {
        self.frame.room()[..bytes].copy_from_slice(&self.payload[..bytes]);
        self.frame.set(&Header {
            // No more than a frame of messages takes.
            payload_bytes: bytes as u32,
            ..Header::of_messages(FrameKind::Catalogue)
        });
        self.outlet.send(&mut self.frame)?;
        self.payload.drain(..bytes);
        self.needs_flush = true;
        self.last_frame = Instant::now();
        self.driver.ask(|machine| machine.said());
        Ok(())
    }

    fn wait(&mut self) -> Result<(), Failure> {
        let nothing = never();
        let can_announce = self.batch.is_empty() && !self.is_walk_over;
        let found = if can_announce { &self.found } else { &nothing };
        select! {
            recv(found) -> batch => match batch {
                Ok(batch) => self.batch = batch.into(),
                Err(_) => self.is_walk_over = true,
            },
            recv(self.driver.bell) -> _ => {}
            recv(self.run.closed()) -> _ => {}
            default(PAUSE) => {}
        }
        self.beat()
    }

    /// Tells the other end that this one works, when it works and has nothing to say.
    fn beat(&mut self) -> Result<(), Failure> {
        if self.last_frame.elapsed() < crate::heartbeat(&self.opening.spec) {
            return Ok(());
        }
        let work = self.run.work();
        if std::mem::replace(&mut self.last_work, work) != work {
            self.run.beat();
            self.send_first(0)?;
            self.send()?;
        }
        Ok(())
    }
}

impl Opening {
    /// What the machine is to know of a name that was found.
    fn about(&self, found: &Found) -> Announcement {
        let facts = &found.facts;
        let is_file = matches!(found.what, What::File(_));
        let has_holes = facts.blocks_512.saturating_mul(512) < facts.bytes;
        let inode = Inode {
            device: facts.device,
            number: facts.inode,
        };
        Announcement {
            kind: if is_file { Kind::File } else { Kind::Other },
            bytes: found.bytes(),
            facts_bytes: found.entry_bytes(),
            names: (is_file && facts.links > 1).then_some((inode, facts.links)),
            tries: found.tries,
            apart_from: found.apart_from,
            may_have_holes: self.spec.sparse && has_holes && self.reads_files,
        }
    }
}

const fn likeness(facts: FileFacts) -> Top {
    Top {
        mode: facts.mode,
        mtime_ns: facts.mtime_ns,
    }
}
