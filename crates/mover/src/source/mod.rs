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
//! Start with `shared` (what all have in common) and `driver`, then `walk`, `catalogue`, `feedback`, `producer`.

mod carried;
mod catalogue;
mod driver;
mod expand;
mod feedback;
pub(crate) mod filter;
mod folders;
mod found;
mod halt;
mod held;
mod lanes;
mod origin;
mod owners;
mod packing;
mod pool;
mod producer;
mod removal;
mod second_look;
mod sending;
mod settle;
mod shared;
mod start;
mod steady;
mod straight;
mod stream;
mod walk;

pub(crate) use expand::has_wildcard;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crossbeam_channel::Receiver;
use farline_spec::{CopyEnd, CopyProgress, CopyReport, Failure, FileTally};

use crate::{EndSetup, Inlet, Outlet};
pub use filter::looks_into;
use found::Found;
pub(crate) use origin::name as source_name;
use shared::Shared;

/// Frames between reader threads and streams that each stream needs.
const FRAMES_OF_STREAM: usize = 2;

/// The sending end of one copy. Clones are the same end.
#[derive(Debug, Clone)]
pub struct SendEnd {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    /// What the walk finds, for the catalogue.
    found: Receiver<Vec<Found>>,
    /// Two names may be one at the destination.
    may_repeat: bool,
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
        self.job("copy data", || stream::run(&self.inner.shared, stream, outlet))
    }

    /// Sends the catalogue until the other end has finished. On that stream's thread.
    ///
    /// # Errors
    /// As [`Self::data`].
    pub fn catalogue(&self, outlet: &mut dyn Outlet) -> Result<(), Failure> {
        let Inner {
            shared,
            found,
            may_repeat,
            ..
        } = &*self.inner;
        self.job("copy catalogue", || {
            catalogue::Announcer::new(shared, outlet, found.clone(), *may_repeat).run()
        })
    }

    /// Takes the other end's feedback until it ends. On that stream's thread.
    ///
    /// # Errors
    /// As [`Self::data`]; [`FailureKind::Protocol`](farline_spec::FailureKind::Protocol) for feedback that makes no sense.
    pub fn feedback(&self, inlet: &mut dyn Inlet) -> Result<(), Failure> {
        self.job("copy feedback", || feedback::run(&self.inner.shared, inlet))
    }

    /// One data stream more, which has a number of its own, before its job begins.
    pub fn join_stream(&self, stream: u16) {
        let shared = &self.inner.shared;
        shared.ask(|machine| machine.add_stream(stream));
        if let Some(queue) = &shared.queue {
            queue.pool.allow(FRAMES_OF_STREAM);
        }
        let streams = shared.lanes.join();
        self.follow_streams(streams);
    }

    /// So many data streams are to end, whichever: they send what they have begun and take nothing new. Gives how many do,
    /// since one stays.
    pub fn dismiss_streams(&self, count: u16) -> u16 {
        let shared = &self.inner.shared;
        let dismissed = shared.lanes.dismiss(count.into());
        shared.driver.wake_readers();
        // No more than was asked for.
        u16::try_from(dismissed).unwrap_or(count)
    }

    /// Data streams that go on.
    pub fn streams(&self) -> u32 {
        self.inner.shared.lanes.staying()
    }

    /// Sends so many files at once from now on; those that are under way beyond that are finished. Gives what was said before,
    /// if anything was.
    pub fn set_concurrency(&self, files: u32) -> Option<u32> {
        let shared = &self.inner.shared;
        let was_said = shared.is_concurrency_said.swap(true, Ordering::AcqRel);
        let before = shared.ask(|machine| {
            let before = machine.most_under_way();
            machine.set_most_under_way(files as usize);
            before
        });
        was_said.then_some(u32::try_from(before).unwrap_or(u32::MAX))
    }

    /// Whether all is done, and well: what happens to streams from now on means nothing.
    pub fn is_done(&self) -> bool {
        let halt = &self.inner.shared.halt;
        halt.is_over() && halt.outcome().is_ok()
    }

    /// Where nobody said how many files are sent at once, each stream that reads for itself has one.
    fn follow_streams(&self, streams: u32) {
        let shared = &self.inner.shared;
        if shared.choice.threads == 0 && !shared.is_concurrency_said.load(Ordering::Acquire) {
            let most = streams as usize + shared.helpers;
            shared.ask(|machine| machine.set_most_under_way(most.max(machine.most_under_way())));
        }
    }

    /// Makes every job return soon with `why`; threads of this end's own end with it.
    pub fn abort(&self, why: &Failure) {
        self.inner.shared.stop(why);
    }

    /// How far it is.
    pub fn progress(&self) -> CopyProgress {
        let gauges = &self.inner.shared.gauges;
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
        let shared = &self.inner.shared;
        shared.end();
        let threads = std::mem::take(&mut *self.inner.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // Its panics have been caught and told.
            let _ = thread.join();
        }
        shared.receipt.finish()?;
        Ok(CopyReport {
            found: FileTally {
                files: shared.gauges.found_files.get(),
                bytes: shared.gauges.found_bytes.get(),
            },
            hole_bytes: shared.hole_bytes.load(Ordering::Relaxed),
            repeated_chunks: shared.driver.look(|machine| machine.repeated_chunks()),
            chunk_bytes: shared.chunk_bytes,
            sender: shared.end_report(),
            removed: shared.removal.count(),
            ..shared.receipt.report()
        })
    }

    /// One job: what ends it badly ends the copy, a defect too.
    fn job(&self, part: &str, work: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
        let outcome =
            catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(Failure::defect(part, &*panic)));
        if let Err(failure) = &outcome {
            self.inner.shared.stop(failure);
        }
        outcome
    }
}

impl Shared {
    /// Threads that read; 0 where each stream does it for itself and nobody helps.
    fn threads(&self) -> u32 {
        // No more streams than sixteen bits count, and a few helpers.
        match self.helpers as u32 {
            0 => self.choice.threads.into(),
            helpers => u32::from(self.streams) + helpers,
        }
    }

    fn end_report(&self) -> CopyEnd {
        let gauges = &self.gauges;
        CopyEnd {
            engine: self.choice.engine.word().to_owned(),
            file_system: self.file_system.clone(),
            threads: self.threads(),
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
