//! What the threads of the receiving end have in common.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use farline_proto::copy::receiver::{Fold, Seen};
use farline_spec::{CopyShare, CopySpec, Failure, FailureKind, SumKind, kernel_words, plain_line};
use tracing::{debug, trace};

use super::able::{Able, Losses};
use super::chunk_writer;
use super::driver::Machine;
use super::journal::{Journal, Memory, Resumable};
use super::lanes::Lanes;
use super::owner::{Belongs, Owners};
use super::place::{DestinationLookup, Folders, Reach};
use super::staging::Staging;
use crate::engine::{Choice, Device};
use crate::message::Top;
use crate::path_text::Shown;
use crate::receipt::Receipt;
use crate::request::Request;
use crate::root::is_link_loop;
use crate::{ActivityMonitor, Gauges, path_text};

/// Problems that are said; of the others only how many they are.
const MOST_PROBLEMS: usize = 100;

/// What is done with what comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It is kept.
    Real,
    /// It is only said what would be done.
    Dry,
    /// It is checked and dropped: no disk.
    Nothing,
}

/// Where things go, once that is known.
#[derive(Debug)]
pub struct Destination {
    /// The destination folder; nothing where there is none, or none is wanted.
    pub base: Option<Arc<OwnedFd>>,
    /// The one path that may come, and the name that it gets.
    pub single: Option<(Vec<u8>, Vec<u8>)>,
    /// Whether nothing was there.
    pub fresh: bool,
    /// Whether this copy made the destination folder.
    pub is_new: bool,
    /// What the destination does not tell apart.
    pub fold: Fold,
    /// What is kept beside the files; only where files are.
    kept: Option<ResumeState>,
}

/// What is kept beside the files until all of them are done.
#[derive(Debug)]
pub struct ResumeState {
    /// The folder for it.
    pub staging: Staging,
    /// What the destination can.
    pub able: Able,
    /// What is proved.
    pub journal: Journal,
    /// What was proved by earlier sessions.
    pub memory: Memory,
    /// Partials of earlier sessions that no entry has asked for yet.
    pub left: Mutex<HashMap<[u8; 16], Resumable>>,
    /// The destination folder once more for each thread that gives names: the kernel tells each descriptor once of what
    /// could not be written since it was opened.
    pub bases: Vec<Arc<OwnedFd>>,
}

impl Destination {
    /// A destination that nothing is kept at.
    pub const fn bare(base: Option<Arc<OwnedFd>>, single: Option<(Vec<u8>, Vec<u8>)>, fresh: bool) -> Self {
        Self {
            base,
            single,
            fresh,
            is_new: false,
            fold: Fold::NOTHING,
            kept: None,
        }
    }

    /// A destination that files go to.
    pub fn of_files(
        base: Arc<OwnedFd>,
        single: Option<(Vec<u8>, Vec<u8>)>,
        fresh: bool,
        kept: ResumeState,
    ) -> Self {
        Self {
            base: Some(base),
            single,
            fresh,
            is_new: false,
            fold: Fold::NOTHING,
            kept: Some(kept),
        }
    }

    /// What is kept beside the files.
    ///
    /// # Panics
    /// Where no files are kept.
    pub fn kept(&self) -> &ResumeState {
        self.kept
            .as_ref()
            .expect("files are kept only at a site of files")
    }

    /// The same, if files are kept.
    pub const fn kept_if_any(&self) -> Option<&ResumeState> {
        self.kept.as_ref()
    }
}

/// What all threads of the receiving end know.
#[derive(Debug)]
pub struct Shared {
    pub spec: CopySpec,
    pub mode: Mode,
    /// What content is proved with, if it is.
    pub sum: Option<SumKind>,
    /// Whether what is received reaches the device before it gets its name.
    pub durable: bool,
    pub device: Device,
    pub choice: Choice,
    /// Threads that write small files beside the streams.
    pub helpers: usize,
    /// Bytes that streams handed to threads that write.
    pub handed_bytes: AtomicU64,
    pub most_bytes: u64,
    /// Where links at the destination lead that stand for folders, if they do.
    pub reach: Option<Arc<Reach>>,
    /// Users and groups.
    pub owners: Owners,
    /// To whom the destination folder itself is to belong.
    pub top_owner: OnceLock<Belongs>,
    /// Whether the other end knows of names whose attributes alone are updated.
    pub counts_updates: bool,
    /// Data streams at first.
    pub streams: u16,
    /// Data streams that there may be at once later.
    pub most_streams: u16,
    /// Data streams now.
    pub lanes: Lanes,
    /// Who asks.
    pub origin: String,
    pub gauges: Arc<Gauges>,
    pub pulse: Arc<ActivityMonitor>,
    pub receipt: Receipt,
    /// What was asked for.
    pub request: Mutex<Request>,
    /// What is said, wanted, proved and to be done.
    pub machine: Machine,
    /// What the destination folder itself should be like, if there is such a thing.
    pub top: OnceLock<Top>,
    pub outlook: Mutex<Option<DestinationLookup>>,
    pub site: OnceLock<Destination>,
    /// What of the entries is remembered.
    pub seen: Mutex<Seen>,
    /// What was in folders that made way for files, or would.
    pub displaced: Mutex<Vec<(Vec<u8>, farline_spec::FileKind)>>,
    /// Everything is settled and was said.
    pub finished: AtomicBool,
    pub hole_bytes: AtomicU64,
    /// Tells those who wait for the end.
    pub over: Over,
    /// What went wrong besides files, a line each.
    pub problems: Mutex<Problems>,
    /// What the destination could not keep.
    pub losses: Losses,
    pub failure: OnceLock<Failure>,
}

/// The end of the copy, for those who wait for it beside something else.
#[derive(Debug)]
pub struct Over {
    /// Dropped when it comes.
    hold: Mutex<Option<Sender<()>>>,
    /// Nothing ever comes, but that it is over.
    pub gone: Receiver<()>,
}

impl Default for Over {
    fn default() -> Self {
        let (hold, gone) = bounded(0);
        Self {
            hold: Mutex::new(Some(hold)),
            gone,
        }
    }
}

impl Over {
    /// It is over, well or not.
    pub fn tell(&self) {
        drop(self.hold.lock().expect(POISONED).take());
    }

    /// Waits for it for at most `time`; whether it came.
    pub fn wait(&self, time: Duration) -> bool {
        self.gone.recv_timeout(time) == Err(RecvTimeoutError::Disconnected)
    }
}

/// Lines for the end, the first hundred, and how many there were.
#[derive(Debug, Default)]
pub struct Problems {
    lines: Vec<String>,
    count: u64,
}

impl Shared {
    /// Whether what is on the device is read once more.
    pub fn reads_back(&self) -> bool {
        self.mode == Mode::Real && self.spec.verify == farline_spec::Verify::ReadBack
    }

    /// Offset and length of what comes of each file, where other sessions carry the rest.
    pub fn range(&self) -> Option<(u64, u64)> {
        self.spec.share.as_ref().and_then(CopyShare::range)
    }

    /// Threads that write chunks for streams, or beside them.
    pub fn writers(&self) -> u16 {
        let relief = chunk_writer::relief(&self.spec, self.choice, self.most_streams.max(self.streams));
        self.choice.threads.max(relief)
    }

    /// Threads that wrote; 0 where each stream did it for itself and nobody helped.
    pub fn threads(&self) -> u32 {
        let handed_bytes = self.handed_bytes.load(Ordering::Relaxed);
        let own = if self.choice.threads > 0 || 2 * handed_bytes > self.gauges.file_bytes.get() {
            self.writers()
        } else if self.helpers > 0 {
            self.streams
        } else {
            0
        };
        // A few helpers at most.
        u32::from(own) + self.helpers as u32
    }

    /// Where things go.
    ///
    /// # Panics
    /// Before the first entry.
    pub fn site(&self) -> &Destination {
        self.site
            .get()
            .expect("an entry is known only at a known destination")
    }

    /// Folders for one thread.
    pub fn folders(&self) -> Option<Folders> {
        let base = self.site().base.as_ref()?;
        let makes = self.mode == Mode::Real && !self.spec.existing;
        Some(Folders::new(Arc::clone(base), makes, self.reach.clone()))
    }

    /// Something besides a file's content went wrong at `path`: said at the end.
    pub fn problem(&self, path: &[u8], what: &str) {
        debug!(entry = %Shown(path), reason = what, "attribute not set");
        let mut problems = self.problems.lock().expect(POISONED);
        problems.count += 1;
        if problems.lines.len() < MOST_PROBLEMS {
            let line = format!("{}: {what}", path_text::to_text(path));
            problems.lines.push(one_line(&line));
        }
    }

    /// What [`Self::problem`] was told.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = self.problems.lock().expect(POISONED);
        let mut lines = std::mem::take(&mut problems.lines);
        let more = problems.count - lines.len() as u64;
        if more > 0 {
            lines.push(format!("{more} more problems like these"));
        }
        lines
    }

    fn too_many_bytes(&self) -> Failure {
        let line = format!("exceeds the {} bytes that the ticket allows", self.most_bytes);
        Failure::new(FailureKind::Limit, line)
    }

    /// Folders for the thread `namer` that gives names, with a descriptor of its own.
    pub fn folders_of(&self, namer: usize) -> Option<Folders> {
        let kept = self.site().kept_if_any();
        match kept.and_then(|kept| kept.bases.get(namer)) {
            Some(base) => Some(Folders::new(
                Arc::clone(base),
                !self.spec.existing,
                self.reach.clone(),
            )),
            None => self.folders(),
        }
    }

    /// Bytes of what is remembered of all that was announced.
    pub fn remembered_bytes(&self) -> usize {
        let names_bytes = self.machine.quietly(|machine| machine.names_bytes());
        let seen_bytes = self.seen().bytes();
        seen_bytes + self.request().bytes() + self.owners.bytes() + names_bytes
    }

    /// What of the entries is remembered.
    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().expect(POISONED)
    }

    /// What was asked for, to hold something against it.
    pub fn request(&self) -> MutexGuard<'_, Request> {
        self.request.lock().expect(POISONED)
    }

    /// Why the copy is over; nothing while it goes on.
    ///
    /// # Errors
    /// What ended it.
    pub fn check(&self) -> Result<(), Failure> {
        self.failure.get().map_or(Ok(()), |why| Err(why.clone()))
    }

    /// Ends the copy with `why`, unless it is over.
    pub fn fail(&self, why: Failure) {
        if !self.finished.load(Ordering::Acquire) {
            // The first counts.
            if let Err(why) = self.failure.set(why) {
                trace!(reason = why.message, "receiving end fails once more");
            } else if let Some(why) = self.failure.get() {
                debug!(
                    kind = why.kind.word(),
                    reason = why.message,
                    "receiving end fails"
                );
            }
        }
        self.machine.stop();
        self.over.tell();
    }

    /// Passes on `result`; a failure ends the copy.
    ///
    /// # Errors
    /// That of `result`.
    pub fn or_fail<T>(&self, result: Result<T, Failure>) -> Result<T, Failure> {
        result
            .map_err(|why| self.placed(why))
            .inspect_err(|why| self.fail(why.clone()))
    }

    /// The failure of a destination that takes nothing more, with its name and with what it keeps.
    fn placed(&self, why: Failure) -> Failure {
        let Some(rest) = why.message.strip_prefix(NO_MORE) else {
            return why;
        };
        let kept = match self.kept_bytes() {
            0 => String::new(),
            bytes => format!("; {bytes} bytes of incomplete files are kept there"),
        };
        let message = format!("destination {}: {rest}{kept}", self.spec.destination);
        Failure { message, ..why }
    }

    /// Bytes that are written and proved of files that have no name yet.
    fn kept_bytes(&self) -> u64 {
        let report = self.receipt.report();
        let named = report.copied.bytes + report.present.bytes;
        self.gauges.settled_bytes.get().saturating_sub(named)
    }

    /// Counts what came; a limit of the ticket ends the copy.
    ///
    /// # Errors
    /// [`FailureKind::Limit`].
    pub fn count_moved(&self, bytes: u64) -> Result<(), Failure> {
        self.gauges.moved_bytes.add(bytes);
        if self.gauges.moved_bytes.get() > self.most_bytes {
            return Err(self.too_many_bytes());
        }
        Ok(())
    }
}

/// How the failure of a destination begins until [`Shared::or_fail`] names it.
const NO_MORE: &str = "the destination is full: ";

/// Passes on an error after which no file can be written.
///
/// # Errors
/// [`FailureKind::System`]: no space, no quota, a file system that takes no writes.
pub fn ends_all(error: &io::Error) -> Result<(), Failure> {
    use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    match error.kind() {
        StorageFull | QuotaExceeded | ReadOnlyFilesystem => Err(Failure::new(
            FailureKind::System,
            format!("{NO_MORE}{}", kernel_words(error)),
        )),
        _ => Ok(()),
    }
}

/// An error of the kernel in words, as the reason of one name.
pub fn in_words(error: &io::Error) -> String {
    use io::ErrorKind::{CrossesDevices, InvalidFilename, NotADirectory, PermissionDenied};
    match error.kind() {
        CrossesDevices => "leads outside the destination, or to another file system".to_owned(),
        NotADirectory => "a file with this name is in the way".to_owned(),
        PermissionDenied => "permission denied at the destination".to_owned(),
        InvalidFilename => "the file system does not accept this name".to_owned(),
        _ if is_link_loop(error) => {
            "a symbolic link is in the way at the destination; -K follows links to folders".to_owned()
        }
        _ => kernel_words(error).to_lowercase(),
    }
}

/// A protocol failure.
pub fn broken(line: impl Into<String>) -> Failure {
    Failure::new(FailureKind::Protocol, line)
}

/// Text of the other end or the kernel as one line of bounded length.
pub fn one_line(text: &str) -> String {
    const MOST_BYTES: usize = 1_000;
    plain_line(text, MOST_BYTES)
}

pub const POISONED: &str = "a thread of the copy panicked while it held shared state";
