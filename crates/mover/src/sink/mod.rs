//! The receiving end: looks at the destination, writes what comes, gives it its name, as the machine of `farline_proto::copy` says.
//!
//! What it does: finds out where things go (rsync's rules) and what is there; writes chunks in any order into partials and small
//! files without a name; keeps the journal; brings to the device, names, deletes, and ends what an earlier session began.
//! What it must not do: believe a name, length, count or hash of the other end; write outside the destination; decide when
//! something is proved or ready for its name (the machine does); wait for the sending end on a thread that gives names.
//!
//! ```text
//!                       ┌───────────┐
//! catalogue ─► decide ─►│           │─► outbox ─► feedback
//! data ─► large, small ─►  machine  │─► finish, name, close: device ─► names
//!          └► pens ────►│           │
//!                       └───────────┘      journal: what was proved?
//! ```
//!
//! In: three kinds of streams, a thread of the session's on each. Out: files, a receipt, a report.
//! Own threads: two that give names, one that keeps the journal, those that write where the spec or the disk wants them, one
//! that writes what several streams bring of one file, and where there are processors without a stream, those that help with
//! small files.
//!
//! Start with `driver` and `farline_proto::copy::receiver`, then `catalogue` (what is announced), `data`, `large` and `finish`;
//! `site` and `close` are first and last.

mod able;
mod attributes;
mod catalogue;
mod chunk_writer;
mod clock;
mod close;
mod data;
mod decide;
mod delete;
mod driver;
mod entry;
mod finish;
mod fold;
mod frames;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod journal;
mod lanes;
mod large;
mod lock;
mod locked_folder;
mod make;
mod name;
mod outbox;
mod owner;
mod pack_workers;
mod partial;
mod place;
mod settle;
mod shared;
mod site;
mod small;
mod staging;
#[cfg(test)]
mod tests;
mod way;

use std::os::fd::{AsFd, BorrowedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use farline_proto::copy::receiver::Config;
use farline_spec::{
    CopyEnd, CopyProgress, CopyReport, CopyShare, CopySpec, Failure, FailureKind, FileEngine, SumKind,
};
use farline_sys::process;
use tracing::{Span, debug};

use self::catalogue::Reading;
use self::chunk_writer::WriteQueue;
use self::data::Stream;
use self::driver::Machine;
use self::lanes::Lanes;
use self::owner::Owners;
use self::pack_workers::PackWorkerPool;
use self::place::{DestinationLookup, Reach};
use self::shared::{Mode, Over, POISONED, Shared, broken};
use crate::engine::{self, Choice, Device};
use crate::receipt::Receipt;
use crate::request::Request;
use crate::{EndSetup, Inlet, Outlet, Root, most_frame_bytes, path_text};

pub use site::is_vacant;
pub use staging::copy_key;

/// Whether what is kept of the copy of `spec`, asked for by `origin`, stands in `folder`.
pub fn has_staging(folder: BorrowedFd<'_>, spec: &CopySpec, origin: &str) -> bool {
    staging::is_there(folder, &copy_key(spec, origin))
}

/// Threads that give names: while one waits for the device the other goes on.
const NAMERS: usize = 2;
/// Streams that have ended and nothing in hand for so long: nothing more comes. A fuzzer has nobody to wait for.
const LONG_QUIET: Duration = Duration::from_millis(if cfg!(feature = "fuzzing") { 5 } else { 1_000 });

/// Frames that each stream needs where others write: one in hand, one on its way.
const FRAMES_OF_STREAM: usize = 2;
/// Parts that do not touch of all files under way; each takes about a hundred bytes with its hash.
const MOST_PARTS: usize = if cfg!(test) { 1 << 10 } else { 1 << 20 };

/// The receiving end of one copy. Clones are the same end.
#[derive(Debug, Clone)]
pub struct ReceiveEnd {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    /// Where there are threads that write for streams.
    line: Option<WriteQueue>,
    /// Where there are processors for threads that help with small files.
    crew: Option<PackWorkerPool>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// What the journal's thread may be begun with, once.
    keeps: AtomicBool,
}

impl ReceiveEnd {
    /// Looks at the destination, opens the journal and takes its lock.
    ///
    /// # Errors
    /// [`FailureKind::System`] when the destination cannot be written to;
    /// [`FailureKind::Busy`] when another copy of the same key runs.
    pub fn start(setup: EndSetup) -> Result<Self, Failure> {
        let shared = Arc::new(shared_of(setup)?);
        let fresh = shared.is_fresh()?;
        shared.machine.with(|machine| machine.start(fresh));
        let line = match shared.writers() {
            0 => None,
            writers => {
                let depth = match shared.choice.engine {
                    FileEngine::Null => 1,
                    _ => engine::writer(shared.choice)?.depth(),
                };
                let frame_bytes = most_frame_bytes(&shared.spec);
                let streams = (shared.streams, shared.most_streams);
                Some(WriteQueue::new(streams, writers, depth, frame_bytes))
            }
        };
        let room = line.as_ref().map_or(0, |line| line.frames.room());
        shared.gauges.room_frames.set(room as u64);
        let crew = PackWorkerPool::new(shared.helpers, most_frame_bytes(&shared.spec));
        let end = Self {
            inner: Arc::new(Inner {
                shared,
                line,
                crew,
                threads: Mutex::default(),
                keeps: AtomicBool::new(false),
            }),
        };
        end.begin_threads()?;
        Ok(end)
    }

    fn begin_threads(&self) -> Result<(), Failure> {
        for namer in 0..NAMERS {
            self.begin("names", move |shared| shared.work(namer))?;
        }
        if let Some(line) = &self.inner.line {
            for _ in 0..self.inner.shared.writers() {
                let line = line.clone();
                self.begin("writer", move |shared| {
                    chunk_writer::write_for_streams(shared, &line)
                })?;
            }
        }
        if let Some(crew) = &self.inner.crew {
            for _ in 0..self.inner.shared.helpers {
                let crew = crew.clone();
                self.begin("helper", move |shared| crew.work(shared))?;
            }
        }
        self.keep_journal()
    }

    /// Begins to keep the journal, as soon as there is one.
    fn keep_journal(&self) -> Result<(), Failure> {
        let site = self.inner.shared.site.get();
        let has_journal = site.is_some_and(|site| site.kept_if_any().is_some());
        if !has_journal || self.inner.keeps.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.begin("journal", |shared| shared.site().kept().journal.keep())
    }

    fn begin(
        &self,
        name: &str,
        work: impl FnOnce(&Arc<Shared>) -> Result<(), Failure> + Send + 'static,
    ) -> Result<(), Failure> {
        let shared = Arc::clone(&self.inner.shared);
        let session = Span::current();
        let body = move || {
            let _within = session.enter();
            let worked = catch_unwind(AssertUnwindSafe(|| work(&shared)));
            match worked {
                Ok(Ok(())) => {}
                Ok(Err(why)) => shared.fail(why),
                Err(panic) => shared.fail(Failure::defect("the receiving end", panic.as_ref())),
            }
        };
        let began = std::thread::Builder::new()
            .name(format!("copy {name}"))
            .spawn(body);
        let thread = began.map_err(|error| Failure::system("new thread", &error))?;
        self.inner.threads.lock().expect(POISONED).push(thread);
        Ok(())
    }

    /// Takes data from one stream until it ends. On that stream's thread.
    ///
    /// # Errors
    /// The stream's; what ended the copy.
    pub fn data(&self, stream: u16, inlet: &mut dyn Inlet) -> Result<(), Failure> {
        let shared = &self.inner.shared;
        let (line, crew) = (self.inner.line.clone(), self.inner.crew.clone());
        let taken = Stream::new(shared, stream, line, crew).and_then(|mut stream| {
            stream.run(inlet)?;
            Ok(stream.is_lost())
        });
        let was_lost = shared.or_fail(taken)?;
        if shared.lanes.end(was_lost) && !shared.finished.load(Ordering::Acquire) {
            self.wait_for_the_rest()?;
        }
        Ok(())
    }

    /// So many data streams more will come, each with a number of its own. Before the other end may open them.
    pub fn expect_streams(&self, count: u16) {
        self.inner.shared.lanes.expect(count);
        if let Some(line) = &self.inner.line {
            line.frames.allow(FRAMES_OF_STREAM * usize::from(count));
        }
    }

    /// Data streams that are there or on their way.
    pub fn streams(&self) -> u32 {
        self.inner.shared.lanes.open()
    }

    /// So many of those will not come after all.
    pub fn give_up_streams(&self, count: u16) {
        self.inner.shared.lanes.give_up(count);
    }

    /// No more data will come: what is not settled by what is here never will be.
    fn wait_for_the_rest(&self) -> Result<(), Failure> {
        let shared = &self.inner.shared;
        let is_busy = || shared.machine.quietly(|machine| machine.is_busy());
        let is_quiet = || !is_busy() && shared.gauges.queued_frames.get() == 0;
        let mut quiet_since = Instant::now();
        while !shared.over.wait(entry::TICK.min(LONG_QUIET)) {
            shared.check()?;
            if !is_quiet() {
                quiet_since = Instant::now();
            }
            // Quiet for a while: what one thread has in its hand is nowhere else.
            if !shared.lanes.is_over() {
                // More were asked for meanwhile: the last of them waits.
                return Ok(());
            }
            if quiet_since.elapsed() >= LONG_QUIET && shared.machine.quietly(|machine| machine.open()) > 0 {
                return shared.or_fail(Err(broken("the data streams ended before all files were sent")));
            }
        }
        shared.check()
    }

    /// Takes the catalogue until it ends. On that stream's thread.
    ///
    /// # Errors
    /// As [`Self::data`]; [`FailureKind::Protocol`] for a catalogue that makes no sense.
    pub fn catalogue(&self, inlet: &mut dyn Inlet) -> Result<(), Failure> {
        let mut begin = || self.keep_journal();
        let shared = &self.inner.shared;
        shared.or_fail(Reading::new(shared, &mut begin).run(inlet))
    }

    /// Sends feedback until `Finished` is said. On that stream's thread.
    ///
    /// # Errors
    /// As [`Self::data`].
    pub fn feedback(&self, outlet: &mut dyn Outlet) -> Result<(), Failure> {
        let shared = &self.inner.shared;
        let beat = crate::heartbeat(&shared.spec);
        let (check, works) = (|| shared.check(), || shared.is_at_work());
        let sent = outbox::send_all(&shared.machine, outlet, beat, check, works);
        shared.or_fail(sent)
    }

    /// Whether data may still come once all is settled: who closes the streams before their end breaks the other end's.
    pub fn has_stragglers(&self) -> bool {
        self.inner
            .shared
            .machine
            .quietly(|machine| machine.has_stragglers())
    }

    /// Makes every job return soon with `why`; threads of this end's own end with it.
    pub fn abort(&self, why: &Failure) {
        self.inner.abort(why);
    }

    /// How far it is.
    pub fn progress(&self) -> CopyProgress {
        let gauges = &self.inner.shared.gauges;
        CopyProgress {
            found_files: gauges.found_files.get(),
            found_bytes: gauges.found_bytes.get(),
            all_found: gauges.all_found.get() == 1,
            settled_files: gauges.settled_files.get(),
            settled_bytes: gauges.settled_bytes.get(),
            failed_files: gauges.failed_files.get(),
            moved_bytes: gauges.moved_bytes.get(),
            spared_bytes: gauges.spared_bytes.get(),
            ..CopyProgress::default()
        }
    }

    /// What it came to at this end, `receiver` filled in; joins this end's threads and finishes the receipt.
    ///
    /// # Errors
    /// [`FailureKind::System`] when the receipt cannot be written.
    pub fn finish(&self) -> Result<CopyReport, Failure> {
        self.inner.join();
        let shared = &self.inner.shared;
        shared.receipt.finish()?;
        let mut report = shared.receipt.report();
        let gauges = &shared.gauges;
        report.found.files = gauges.found_files.get();
        report.found.bytes = gauges.found_bytes.get();
        report.hole_bytes = shared.hole_bytes.load(Ordering::Relaxed);
        report.repeated_chunks = shared.machine.quietly(|machine| machine.repeated_chunks());
        report.not_kept = shared.losses.told();
        (report.unset_owners, report.unset_groups) = shared.owners.unset();
        let chunk_bytes = shared.machine.quietly(|machine| machine.chunk_bytes());
        report.chunk_bytes = chunk_bytes.unwrap_or_default();
        let us = |gauge: &crate::gauges::Gauge| gauge.get() / 1_000;
        report.receiver = CopyEnd {
            engine: shared.choice.engine.word().to_owned(),
            file_system: shared.device.file_system.clone(),
            threads: shared.threads(),
            file_us: us(&gauges.file_ns),
            name_us: us(&gauges.name_ns),
            hash_us: us(&gauges.hash_ns),
            cipher_us: us(&gauges.cipher_ns),
            stream_us: us(&gauges.stream_ns),
            sync_us: us(&gauges.sync_ns),
            starved_us: us(&gauges.starved_ns),
            peak_memory_bytes: process::peak_memory_bytes().unwrap_or_default(),
        };
        Ok(report)
    }
}

impl Inner {
    fn abort(&self, why: &Failure) {
        debug!(reason = why.message, "copy ended from outside");
        self.shared.fail(why.clone());
        self.close_journal();
    }

    fn close_journal(&self) {
        let site = self.shared.site.get();
        if let Some(kept) = site.and_then(|site| site.kept_if_any()) {
            kept.journal.close();
        }
    }

    fn join(&self) {
        let is_finished = self.shared.finished.load(Ordering::Acquire);
        if !is_finished {
            let line = "the copy ended before it was complete";
            self.shared.fail(Failure::new(FailureKind::Interrupted, line));
        }
        self.shared.machine.stop();
        self.close_journal();
        let threads = std::mem::take(&mut *self.threads.lock().expect(POISONED));
        for thread in threads {
            // What went wrong on it was caught there.
            let _ = thread.join();
        }
        let site = self.shared.site.get();
        if let Some(kept) = site.and_then(|site| site.kept_if_any()) {
            // Once: when the lock is given back another session may be at the same files.
            if !is_finished && kept.staging.with_lock(|_| ()).is_some() {
                self.shared.give_back_rest();
            }
            kept.staging.release();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.join();
    }
}

/// Whether what comes goes to the device. What one node wrote must be on the file system before another believes it.
const fn is_synced(spec: &CopySpec) -> bool {
    spec.fsync || spec.share.is_some()
}

fn config_of(
    spec: &CopySpec,
    sum: Option<SumKind>,
    durable: bool,
    takes_names_apart: bool,
    most_bytes: Option<u64>,
    open_files: u64,
) -> Config {
    Config {
        sum,
        is_durable: durable,
        has_further_names: spec.hard_links,
        takes_names_apart,
        range: spec.share.as_ref().and_then(CopyShare::range),
        chunk_bytes: spec.chunk_bytes.map(|chunk| chunk.get()),
        most_entries: catalogue::most_under_way(spec),
        most_bytes: most_bytes.unwrap_or(u64::MAX),
        most_open_files: usize::try_from(open_files / 8).unwrap_or(usize::MAX),
        most_parts: MOST_PARTS,
    }
}

fn shared_of(setup: EndSetup) -> Result<Shared, Failure> {
    let EndSetup {
        spec,
        root,
        origin,
        is_own_request,
        streams,
        most_streams,
        receipt,
        most_bytes,
        gauges,
        pulse,
        counts_updates,
        takes_names_apart,
        sum,
        ..
    } = setup;
    let mode = mode_of(&spec);
    let open_files =
        process::raise_open_files().map_err(|error| Failure::system("the limit of open files", &error))?;
    let (device, outlook) = look(&root, &spec, mode)?;
    let choice = choose(&spec, mode, &device, streams)?;
    let durable = mode == Mode::Real && is_synced(&spec) && !device.is_memory;
    let config = config_of(&spec, sum, durable, takes_names_apart, most_bytes, open_files);
    Ok(Shared {
        helpers: pack_workers::helpers(&spec, streams),
        mode,
        sum,
        request: Mutex::new(Request::new(&spec, is_own_request)?),
        durable,
        device,
        choice,
        origin,
        problems: Mutex::default(),
        losses: able::Losses::default(),
        over: Over::default(),
        most_bytes: most_bytes.unwrap_or(u64::MAX),
        streams,
        most_streams,
        lanes: Lanes::new(streams),
        reach: reach(&spec, root)?,
        owners: Owners::new(&spec),
        top_owner: OnceLock::new(),
        counts_updates,
        displaced: Mutex::default(),
        gauges,
        pulse,
        receipt: Receipt::open(receipt.as_deref())?,
        machine: Machine::new(config),
        top: OnceLock::new(),
        outlook: Mutex::new(outlook),
        site: OnceLock::new(),
        seen: Mutex::default(),
        finished: AtomicBool::new(false),
        hole_bytes: AtomicU64::new(0),
        handed_bytes: AtomicU64::new(0),
        failure: OnceLock::new(),
        spec,
    })
}

fn mode_of(spec: &CopySpec) -> Mode {
    match spec.write_engine {
        FileEngine::Null | FileEngine::Memory => Mode::Nothing,
        _ if spec.dry_run => Mode::Dry,
        _ => Mode::Real,
    }
}

fn look(root: &Root, spec: &CopySpec, mode: Mode) -> Result<(Device, Option<DestinationLookup>), Failure> {
    if mode == Mode::Nothing {
        return Ok((no_device(), None));
    }
    let outlook = place::look(root, spec)?;
    let device = device_of(&outlook).map_err(|error| Failure::system("destination", &error))?;
    Ok((device, Some(outlook)))
}

fn reach(spec: &CopySpec, root: Root) -> Result<Option<Arc<Reach>>, Failure> {
    if !spec.keep_dirlinks {
        return Ok(None);
    }
    let base = path_text::to_bytes(&spec.destination)?;
    let root = Arc::new(root);
    Ok(Some(Arc::new(Reach { root, base })))
}

fn choose(spec: &CopySpec, mode: Mode, device: &Device, streams: u16) -> Result<Choice, Failure> {
    let threads = spec.writers.map(|writers| writers.get());
    match mode {
        Mode::Nothing => Ok(Choice {
            engine: spec.write_engine,
            threads: threads.unwrap_or(0),
            is_auto: false,
        }),
        Mode::Real | Mode::Dry => engine::choose(spec.write_engine, threads, device, streams),
    }
}

fn device_of(outlook: &DestinationLookup) -> std::io::Result<Device> {
    match outlook {
        DestinationLookup::Folder(folder) => engine::device_of(folder.as_fd()),
        DestinationLookup::Name(vacancy) => engine::device_of(vacancy.parent.as_fd()),
    }
}

fn no_device() -> Device {
    Device {
        file_system: String::new(),
        number: 0,
        is_memory: true,
        takes_direct: None,
    }
}
