//! The sending end: finds files, announces them, reads what is wanted, hands out frames.
//!
//! What it does: walks the sources, numbers what it finds, says it on the catalogue's stream; reads and hashes what the
//! other end wants, in packs and chunks that any stream can take; sees when a file changes meanwhile; writes the receipt
//! from what the other end says came of each name.
//! What it must not do: know what the destination has, or trust the other end with more than words about its own numbers.
//! Memory does not grow with the tree: entries under way are bounded, and the walk waits for them.
//!
//! ```text
//! walk (2 threads) ─► found ─► catalogue job ─► entries            answers ─► feedback job
//!                               │ announce  ▲ words                            │ handle_message
//!                               ▼           │                                  ▼
//!                            machine (`CopySender` of farline-proto, behind `driver`)
//!                               │ take, cut ▲ part_read, lose
//!                               ▼           │
//!                            readers (n threads, or the streams and helpers) ─► frames ─► data jobs
//! ```
//!
//! In: an [`EndSetup`]; the session's threads in [`SendEnd::data`], [`SendEnd::catalogue`], [`SendEnd::feedback`].
//! Out: frames, gauges, a receipt, a report.
//!
//! Nothing is known to all: each job and each thread has the parts that it uses, and `start` alone makes them.
//!
//! ```text
//! Sources        where each begins                                    walk, inspector, readers, removal
//! Inspector      what only an open file tells                         walk, second looks
//! Reading        engine, chunk, hash, holes                           readers (ReadScheduler, ChunkReader)
//! Streams        queue, lanes, limits                                 data jobs
//! Account        receipt, request, removal                            driver alone
//! Driver         the machine, and what comes of what it is asked      all who ask it
//! Run            that it goes on, why it ended                        all who wait
//! ```
//!
//! Start with `driver`, then `walk`, `catalogue`, `feedback`; a chunk goes by `read_scheduler`, `chunk_reader`, `stream`.

mod account;
mod catalogue;
mod chunk_reader;
mod driver;
pub(crate) mod expand;
mod feedback;
pub(crate) mod filter;
mod folders;
mod found;
mod held;
mod inspector;
mod lanes;
pub(crate) mod origin;
mod owners;
mod packing;
mod pool;
mod queue;
mod read_scheduler;
mod reading;
mod removal;
mod run;
mod second_look;
mod sending;
mod settle;
mod sizes;
mod start;
mod steady;
mod straight;
mod stream;
mod trouble;
mod walk;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crossbeam_channel::Receiver;
use farline_spec::{CopyEnd, CopyProgress, CopyReport, Failure, FileTally};

use crate::{EndSetup, Gauges, Inlet, Outlet};
use account::Account;
use driver::Driver;
pub use filter::looks_into;
use found::Found;
use run::Run;
use stream::Streams;

/// The sending end of one copy. Clones are the same end.
#[derive(Debug, Clone)]
pub struct SendEnd {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    streams: Streams,
    driver: Arc<Driver>,
    account: Arc<Account>,
    run: Arc<Run>,
    gauges: Arc<Gauges>,
    /// What the catalogue begins with.
    opening: catalogue::Opening,
    /// What the walk finds, for the catalogue.
    found: Receiver<Vec<Found>>,
    /// Longest frame of feedback.
    feedback_bytes: usize,
    /// Type of the first source's file system.
    file_system: String,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl SendEnd {
    /// Looks at the sources and begins to walk and read ahead.
    ///
    /// # Errors
    /// [`FailureKind::System`](farline_spec::FailureKind::System) when no source can be opened or a thread cannot be made;
    /// [`FailureKind::Spec`](farline_spec::FailureKind::Spec) for an engine that is not to be had or a pattern that is none.
    pub fn start(setup: EndSetup) -> Result<Self, Failure> {
        start::start(setup)
    }

    /// Sends data on one stream until all is done. On that stream's thread.
    ///
    /// # Errors
    /// The stream's; what ended the copy.
    pub fn data(&self, stream: u16, outlet: &mut dyn Outlet) -> Result<(), Failure> {
        self.job("copy data", || self.inner.streams.send_all(stream, outlet))
    }

    /// Sends the catalogue until the other end has finished. On that stream's thread.
    ///
    /// # Errors
    /// As [`Self::data`].
    pub fn catalogue(&self, outlet: &mut dyn Outlet) -> Result<(), Failure> {
        let inner = &*self.inner;
        let parts = (&*inner.driver, &*inner.run, &*inner.gauges);
        self.job("copy catalogue", || {
            catalogue::Announcer::new(&inner.opening, parts, inner.found.clone(), outlet).announce_all()
        })
    }

    /// Takes the other end's feedback until it ends. On that stream's thread.
    ///
    /// # Errors
    /// As [`Self::data`]; [`FailureKind::Protocol`](farline_spec::FailureKind::Protocol) for feedback that makes no sense.
    pub fn feedback(&self, inlet: &mut dyn Inlet) -> Result<(), Failure> {
        let inner = &*self.inner;
        self.job("copy feedback", || {
            feedback::take_all(&inner.driver, &inner.run, inner.feedback_bytes, inlet)
        })
    }

    /// One data stream more, which has a number of its own, before its job begins.
    pub fn join_stream(&self, stream: u16) {
        self.inner.streams.join(stream);
    }

    /// So many data streams are to end, whichever: they send what they have begun and take nothing new. Gives how many do,
    /// since one stays.
    pub fn dismiss_streams(&self, count: u16) -> u16 {
        self.inner.streams.dismiss(count)
    }

    /// Data streams that go on.
    pub fn streams(&self) -> u32 {
        self.inner.streams.lanes.staying()
    }

    /// Sends so many files at once from now on; those that are under way beyond that are finished. Gives what was said before,
    /// if anything was.
    pub fn set_concurrency(&self, files: u32) -> Option<u32> {
        self.inner.streams.set_concurrency(files)
    }

    /// Whether all is done, and well: what happens to streams from now on means nothing.
    pub fn is_done(&self) -> bool {
        let run = &self.inner.run;
        run.is_over() && run.outcome().is_ok()
    }

    /// Makes every job return soon with `why`; threads of this end's own end with it.
    pub fn abort(&self, why: &Failure) {
        self.inner.driver.stop(why);
    }

    /// How far it is.
    pub fn progress(&self) -> CopyProgress {
        let gauges = &self.inner.gauges;
        CopyProgress {
            found_files: gauges.found_files.get(),
            found_bytes: gauges.found_bytes.get(),
            all_found: gauges.all_found.get() > 0,
            settled_files: gauges.settled_files.get(),
            settled_bytes: gauges.settled_bytes.get(),
            failed_files: gauges.failed_files.get(),
            moved_bytes: gauges.moved_bytes.get(),
            spared_bytes: gauges.spared_bytes.get(),
            busy_streams: 0,
            elapsed_us: 0,
        }
    }

    /// What it came to at this end, `sender` filled in; joins this end's threads and finishes the receipt.
    ///
    /// # Errors
    /// [`FailureKind::System`](farline_spec::FailureKind::System) when the receipt cannot be written.
    pub fn finish(&self) -> Result<CopyReport, Failure> {
        let inner = &*self.inner;
        inner.driver.end();
        let threads = std::mem::take(&mut *inner.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // Its panics have been caught and told.
            let _ = thread.join();
        }
        let report = inner.account.close()?;
        let reading = &inner.streams.reading;
        Ok(CopyReport {
            found: FileTally {
                files: inner.gauges.found_files.get(),
                bytes: inner.gauges.found_bytes.get(),
            },
            hole_bytes: reading.hole_bytes.load(Ordering::Relaxed),
            repeated_chunks: inner.driver.look(|machine| machine.repeated_chunks()),
            chunk_bytes: reading.chunk_bytes,
            sender: inner.end_report(),
            ..report
        })
    }

    /// One job: what ends it badly ends the copy, a defect too.
    fn job(&self, part: &str, work: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
        let outcome =
            catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(Failure::defect(part, &*panic)));
        if let Err(failure) = &outcome {
            self.inner.driver.stop(failure);
        }
        outcome
    }
}

impl Inner {
    fn end_report(&self) -> CopyEnd {
        let gauges = &self.gauges;
        CopyEnd {
            engine: self.streams.reading.choice.engine.word().to_owned(),
            file_system: self.file_system.clone(),
            threads: self.streams.threads(),
            file_us: gauges.file_ns.get() / 1_000,
            name_us: gauges.name_ns.get() / 1_000,
            hash_us: gauges.hash_ns.get() / 1_000,
            cipher_us: gauges.cipher_ns.get() / 1_000,
            stream_us: gauges.stream_ns.get() / 1_000,
            sync_us: gauges.sync_ns.get() / 1_000,
            starved_us: gauges.starved_ns.get() / 1_000,
            // The session's: it is the whole process.
            peak_memory_bytes: 0,
        }
    }
}
