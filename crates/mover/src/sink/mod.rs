//! The receiving end: looks at the destination, writes what comes, gives it its name, as the machine of `farline_proto::copy` says.
//!
//! What it does: finds out where things go (rsync's rules) and what is there; writes chunks in any order into partials and small
//! files without a name; keeps the journal; brings to the device, names, deletes, and ends what an earlier session began.
//! What it must not do: believe a name, length, count or hash of the other end; write outside the destination; decide when
//! something is proved or ready for its name (the machine does); wait for the sending end on a thread that gives names.
//!
//! ```text
//!                       ┌───────────┐
//! catalogue ─► answer ─►│           │─► outbox ─► feedback
//! data ─► chunk_writer ─►  machine  │─► close ─► finalizer: device ─► names
//!          └► small ───►│           │
//!                       └───────────┘      journal: what was proved?
//! ```
//!
//! In: three kinds of streams, a thread of the session's on each. Out: files, a receipt, a report.
//! Own threads: two that give names, one that keeps the journal, those that write where the spec or the disk wants them, one
//! that writes what several streams bring of one file, and where there are processors without a stream, those that help with
//! small files.
//!
//! Nothing is known to all: each job and each thread has the parts that it uses, and `start` alone makes them.
//!
//! ```text
//! Plan           what never changes                                   all who go by it
//! Destination    where things go, what is kept there and can be       all who touch files
//! Gate, Answers  request, owners; what is wanted of an entry          catalogue
//! Intake         limits, hashes of what came                          data jobs
//! Writing        partials, proofs                                     ChunkWriter of each thread
//! Finalizer      device, attributes, names, holes                     threads that give names, small files
//! Closer         deletion, folders, the end                           threads that give names
//! Ledger         receipt, figures: an entry is settled once           all who settle
//! Run            that it goes on, why it ended                        all who wait
//! ```
//!
//! Start with `driver` and `farline_proto::copy::receiver`, then `catalogue` (what is announced), `data`, `chunk_writer` and
//! `finalizer`; `start`, `site` and `close` are first and last.

mod able;
mod across;
mod answer;
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
mod finalizer;
mod fold;
mod frames;
mod further_name;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod hands;
mod intake;
mod journal;
mod keeping;
mod lanes;
mod lock;
mod locked_folder;
mod losses;
mod make;
mod name;
mod name_result;
mod outbox;
mod owner;
mod owner_rights;
mod pack_workers;
mod partial;
mod partials;
mod place;
mod plan;
mod remembered;
mod run;
mod settle;
mod site;
mod small;
mod staging;
mod staging_top;
mod start;
#[cfg(test)]
mod tests;
mod tree;
mod update;
mod way;
mod words;

use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use farline_spec::{CopyEnd, CopyProgress, CopyReport, CopySpec, Failure, FailureKind};
use farline_sys::process;
use tracing::{Span, debug};

use self::answer::{Answerer, Answers};
use self::catalogue::{Gate, Reading};
use self::chunk_writer::Writing;
use self::close::Closer;
use self::data::Stream;
use self::driver::Machine;
use self::hands::Hands;
use self::intake::Intake;
use self::lanes::Lanes;
use self::plan::Plan;
use self::run::Run;
use self::site::{Destination, NAMERS};
use self::small::Small;
use self::words::{NO_MORE, POISONED, broken};
use crate::{EndSetup, Gauges, Inlet, Outlet};

pub use site::is_vacant;
pub use staging::copy_key;

/// Whether what is kept of the copy of `spec`, asked for by `origin`, stands in `folder`.
pub fn has_staging(folder: BorrowedFd<'_>, spec: &CopySpec, origin: &str) -> bool {
    staging::is_there(folder, &copy_key(spec, origin))
}

/// Streams that have ended and nothing in hand for so long: nothing more comes. A fuzzer has nobody to wait for.
const LONG_QUIET: Duration = Duration::from_millis(if cfg!(feature = "fuzzing") { 5 } else { 1_000 });

/// Frames that each stream needs where others write: one in hand, one on its way.
const FRAMES_OF_STREAM: usize = 2;
/// The receiving end of one copy. Clones are the same end.
#[derive(Debug, Clone)]
pub struct ReceiveEnd {
    inner: Arc<Inner>,
}

/// The parts of an end that its jobs begin with.
#[derive(Debug)]
struct Inner {
    plan: Arc<Plan>,
    destination: Arc<Destination>,
    gate: Gate,
    answers: Answers,
    intake: Arc<Intake>,
    writing: Arc<Writing>,
    closer: Arc<Closer>,
    lanes: Lanes,
    machine: Arc<Machine>,
    run: Arc<Run>,
    gauges: Arc<Gauges>,
    hands: Hands,
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
        let end = Self {
            inner: Arc::new(start::build(setup)?),
        };
        end.begin_threads()?;
        Ok(end)
    }

    fn begin_threads(&self) -> Result<(), Failure> {
        let hands = &self.inner.hands;
        for namer in 0..NAMERS {
            let closer = Arc::clone(&self.inner.closer);
            self.begin("names", move || closer.work(namer))?;
        }
        if let Some(line) = &hands.line {
            for _ in 0..hands.writers {
                let (writing, line) = (Arc::clone(&self.inner.writing), line.clone());
                self.begin("writer", move || chunk_writer::write_for_streams(&writing, &line))?;
            }
        }
        if let Some(crew) = &hands.crew {
            for _ in 0..hands.helpers {
                let (crew, small) = (crew.clone(), self.inner.small());
                let (run, gauges) = (Arc::clone(&self.inner.run), Arc::clone(&self.inner.gauges));
                self.begin("helper", move || crew.work(small, &run, &gauges))?;
            }
        }
        self.keep_journal()
    }

    /// Begins to keep the journal, as soon as there is one.
    fn keep_journal(&self) -> Result<(), Failure> {
        let destination = &self.inner.destination;
        if destination.kept_if_any().is_none() || self.inner.keeps.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let destination = Arc::clone(destination);
        self.begin("journal", move || destination.site().kept().journal.keep())
    }

    fn begin(
        &self,
        name: &str,
        work: impl FnOnce() -> Result<(), Failure> + Send + 'static,
    ) -> Result<(), Failure> {
        let run = Arc::clone(&self.inner.run);
        let session = Span::current();
        let body = move || {
            let _within = session.enter();
            let worked = catch_unwind(AssertUnwindSafe(work));
            match worked {
                Ok(Ok(())) => {}
                Ok(Err(why)) => run.fail(why),
                Err(panic) => run.fail(Failure::defect("the receiving end", panic.as_ref())),
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
        let inner = &*self.inner;
        let chunks = (&inner.writing, inner.hands.line.clone());
        let packs = (inner.small(), inner.hands.crew.clone());
        let taken = Stream::new(&inner.intake, &inner.lanes, stream, chunks, packs).and_then(|mut stream| {
            stream.run(inlet)?;
            Ok(stream.is_lost())
        });
        let was_lost = inner.or_fail(taken)?;
        if inner.lanes.end(was_lost) && !inner.run.is_finished() {
            self.wait_for_the_rest()?;
        }
        Ok(())
    }

    /// So many data streams more will come, each with a number of its own. Before the other end may open them.
    pub fn expect_streams(&self, count: u16) {
        self.inner.lanes.expect(count);
        if let Some(line) = &self.inner.hands.line {
            line.frames.allow(FRAMES_OF_STREAM * usize::from(count));
        }
    }

    /// Data streams that are there or on their way.
    pub fn streams(&self) -> u32 {
        self.inner.lanes.open()
    }

    /// So many of those will not come after all.
    pub fn give_up_streams(&self, count: u16) {
        self.inner.lanes.give_up(count);
    }

    /// No more data will come: what is not settled by what is here never will be.
    fn wait_for_the_rest(&self) -> Result<(), Failure> {
        let inner = &*self.inner;
        let is_busy = || inner.machine.quietly(|machine| machine.is_busy());
        let is_quiet = || !is_busy() && inner.gauges.queued_frames.get() == 0;
        let mut quiet_since = Instant::now();
        while !inner.run.wait(entry::TICK.min(LONG_QUIET)) {
            inner.run.check()?;
            if !is_quiet() {
                quiet_since = Instant::now();
            }
            // Quiet for a while: what one thread has in its hand is nowhere else.
            if !inner.lanes.is_over() {
                // More were asked for meanwhile: the last of them waits.
                return Ok(());
            }
            if quiet_since.elapsed() >= LONG_QUIET && inner.machine.quietly(|machine| machine.open()) > 0 {
                return inner.or_fail(Err(broken("the data streams ended before all files were sent")));
            }
        }
        inner.run.check()
    }

    /// Takes the catalogue until it ends. On that stream's thread.
    ///
    /// # Errors
    /// As [`Self::data`]; [`FailureKind::Protocol`] for a catalogue that makes no sense.
    pub fn catalogue(&self, inlet: &mut dyn Inlet) -> Result<(), Failure> {
        let mut begin = || self.keep_journal();
        let inner = &*self.inner;
        inner.or_fail(Reading::new(&inner.gate, Answerer::new(&inner.answers), &mut begin).run(inlet))
    }

    /// Sends feedback until `Finished` is said. On that stream's thread.
    ///
    /// # Errors
    /// As [`Self::data`].
    pub fn feedback(&self, outlet: &mut dyn Outlet) -> Result<(), Failure> {
        let inner = &*self.inner;
        let beat = crate::heartbeat(&inner.plan.spec);
        let (check, works) = (|| inner.run.check(), || inner.is_at_work());
        let sent = outbox::send_all(&inner.machine, outlet, beat, check, works);
        inner.or_fail(sent)
    }

    /// Whether data may still come once all is settled: who closes the streams before their end breaks the other end's.
    pub fn has_stragglers(&self) -> bool {
        self.inner.machine.quietly(|machine| machine.has_stragglers())
    }

    /// Makes every job return soon with `why`; threads of this end's own end with it.
    pub fn abort(&self, why: &Failure) {
        self.inner.abort(why);
    }

    /// How far it is.
    pub fn progress(&self) -> CopyProgress {
        let gauges = &self.inner.gauges;
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
        let inner = &*self.inner;
        let closer = &inner.closer;
        closer.ledger.receipt.finish()?;
        let mut report = closer.ledger.receipt.report();
        let gauges = &inner.gauges;
        report.found.files = gauges.found_files.get();
        report.found.bytes = gauges.found_bytes.get();
        report.hole_bytes = closer.finalizer.hole_bytes.load(Ordering::Relaxed);
        report.repeated_chunks = inner.machine.quietly(|machine| machine.repeated_chunks());
        report.not_kept = inner.destination.losses.told();
        (report.unset_owners, report.unset_groups) = inner.gate.owners.unset();
        let chunk_bytes = inner.machine.quietly(|machine| machine.chunk_bytes());
        report.chunk_bytes = chunk_bytes.unwrap_or_default();
        let us = |gauge: &crate::gauges::Gauge| gauge.get() / 1_000;
        report.receiver = CopyEnd {
            engine: inner.plan.choice.engine.word().to_owned(),
            file_system: inner.plan.device.file_system.clone(),
            threads: inner
                .hands
                .threads(inner.plan.choice.threads, inner.writing.streams),
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
    fn small(&self) -> Small {
        let Closer {
            finalizer, ledger, ..
        } = &*self.closer;
        Small::new(&self.intake, &self.destination, finalizer, ledger)
    }

    /// Whether this end is at work that the other end cannot see; if so, that is no stall.
    fn is_at_work(&self) -> bool {
        let works = self.machine.quietly(|machine| machine.is_busy());
        if works {
            self.run.beat();
        }
        works
    }

    /// Passes on `result`; a failure ends the copy.
    ///
    /// # Errors
    /// That of `result`.
    fn or_fail<T>(&self, result: Result<T, Failure>) -> Result<T, Failure> {
        result
            .map_err(|why| self.placed(why))
            .inspect_err(|why| self.run.fail(why.clone()))
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
        let message = format!("destination {}: {rest}{kept}", self.plan.spec.destination);
        Failure { message, ..why }
    }

    /// Bytes that are written and proved of files that have no name yet.
    fn kept_bytes(&self) -> u64 {
        let report = self.closer.ledger.receipt.report();
        let named = report.copied.bytes + report.present.bytes;
        self.gauges.settled_bytes.get().saturating_sub(named)
    }

    fn abort(&self, why: &Failure) {
        debug!(reason = why.message, "copy ended from outside");
        self.run.fail(why.clone());
        self.close_journal();
    }

    fn close_journal(&self) {
        if let Some(kept) = self.destination.kept_if_any() {
            kept.journal.close();
        }
    }

    fn join(&self) {
        let is_finished = self.run.is_finished();
        if !is_finished {
            let line = "the copy ended before it was complete";
            self.run.fail(Failure::new(FailureKind::Interrupted, line));
        }
        self.machine.stop();
        self.close_journal();
        let threads = std::mem::take(&mut *self.threads.lock().expect(POISONED));
        for thread in threads {
            // What went wrong on it was caught there.
            let _ = thread.join();
        }
        if let Some(kept) = self.destination.kept_if_any() {
            // Once: when the lock is given back another session may be at the same files.
            if !is_finished && kept.staging.with_lock(|_| ()).is_some() {
                self.writing.partials.give_back_rest(&self.machine);
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
