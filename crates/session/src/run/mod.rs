//! The run engine: moves blocks over open streams and measures while it does.
//!
//! What it does: gives every stream a thread of its own (named, pinned on
//! request), starts all of them at one instant, keeps the clock of the senders,
//! samples every stream on a fixed schedule, holds the run to its limits and
//! comes back with one record per stream.
//! What it must not do: know who the other end is, speak on the control
//! channel, open or close streams, decide what the figures mean.
//!
//! In: a [`RunRequest`] with a resolved spec and open streams. Out: a
//! [`RunEvent`] for everything that happens, and a [`RunOutcome`] at the end.
//!
//! ```text
//! Run::start ─► worker 0 … n−1   send_block / receive_block, one loop each
//!           └─► sampler          ticks, clock of the senders and of what is under way, limits, watchdog
//!                 ▲ notes: a worker ended, look again, cut
//! ```
//!
//! The workers share two words with the rest: the phase of the run
//! ([`control`]) and, when a total is to be sent, what is left of it
//! ([`budget`]). They take no lock, allocate nothing and read no clock per
//! block. Everything else is owned by the sampler thread, so nothing here
//! needs a lock at all.
//!
//! Start with [`Run`] and `events.rs` (what goes in and comes out), then `worker.rs` (the two loops) and `sampler.rs`.

mod budget;
mod control;
mod cpu;
mod enforce;
mod events;
mod files;
mod lane;
mod rows;
mod sampler;
mod timetable;
mod worker;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod loopback_tests;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};
use farline_spec::unit::counted;
use farline_spec::{Failure, FailureKind, RunSpec, Transport};
use farline_sys::wake::Waker;
use farline_transport::SharedRate;

use crate::copy::{Copying, ScavengerController};
pub use crate::machine::RunTurn;
pub use crate::streams::End;
use budget::Budget;
use control::Control;
pub use events::{OpenStream, OwnStages, RunEvent, RunOutcome};
use lane::Lane;
use rows::MAX_ROWS;
use sampler::{Outlet, Plan, Sampler};
use worker::{Note, Worker, spawn};

/// Everything that [`Run::start`] needs.
pub struct RunRequest {
    /// The resolved spec: duration or total, block size, interval.
    pub spec: RunSpec,
    /// Which end this is.
    pub end: End,
    /// The streams of the run, at least one.
    pub streams: Vec<OpenStream>,
    /// Bits per second over all streams, sent and received together, above which the run is ended.
    pub max_rate_bps: Option<u64>,
    /// Time from the start after which the run is ended whatever it does.
    pub watchdog: Duration,
    /// Where events go. The sampler must never wait for a reader, so this should be unbounded.
    pub events: Sender<RunEvent>,
    /// Told after each event.
    pub wake: Arc<Waker>,
    /// What the streams carry, if it is files.
    pub copy: Option<Arc<Copying>>,
    /// Rate that the streams which send files hold to together.
    pub rate: Option<Arc<SharedRate>>,
    /// What makes that rate give way to other traffic.
    pub give_way: Option<ScavengerController>,
}

/// A run that has started.
pub struct Run {
    control: Arc<Control>,
    notes: Sender<Note>,
    outcome: Receiver<RunOutcome>,
    sampler: JoinHandle<()>,
}

impl Run {
    /// Starts a thread per stream, lets them all go at once, and samples them.
    ///
    /// # Errors
    /// [`FailureKind::Spec`] for a CPU that does not exist or more samples than can be kept,
    /// [`FailureKind::System`] when a thread cannot be made. Nothing runs then.
    pub fn start(request: RunRequest) -> Result<Self, Failure> {
        check(&request)?;
        let probes = request.streams.iter().map(|open| (open.stream, open.io.probe()));
        let control = Arc::new(Control::new(probes, request.copy));
        let (notes, inbox) = unbounded();
        let (gate, barrier) = crossbeam_channel::bounded(0);
        let crew = Crew {
            control: &control,
            notes: &notes,
            barrier,
        };
        let lanes = crew
            .muster(&request.spec, request.watchdog, request.streams, &inbox)
            .inspect_err(|_| {
                control.abort();
            })?;
        let (finished, outcome) = crossbeam_channel::bounded(1);
        let late = notes.clone();
        let plan = Plan {
            end: request.end,
            spec: request.spec,
            max_rate_bps: request.max_rate_bps,
            watchdog: request.watchdog,
            rate: request.rate,
            give_way: request.give_way,
        };
        let outlet = Outlet {
            events: request.events,
            wake: request.wake,
        };
        let shared = Arc::clone(&control);
        let sampler = spawn("fl-sampler", move || {
            let sampler = Sampler::new(plan, lanes, shared, outlet, late);
            // The channel holds one outcome and has one writer: there is always room.
            let _ = finished.send(sampler.run(&inbox, gate));
        })
        .inspect_err(|_| control.abort())?;
        Ok(Self {
            control,
            notes,
            outcome,
            sampler,
        })
    }

    /// One data stream of a copy more: it begins at once. Closed where the run has ended.
    pub fn join(&self, open: OpenStream) {
        let _ = self.notes.send(Note::Join(Box::new(open)));
    }

    /// What gives way to other traffic may have at most this rate from now on.
    pub fn set_most_rate(&self, most_bps: Option<u64>) {
        // A sampler that has already ended needs no telling.
        let _ = self.notes.send(Note::MostRate(most_bps));
    }

    /// Senders send no more and say so to the other end; receivers read on until the end
    /// (over the null transport, which carries no end, they stop too).
    pub fn stop(&self) {
        self.control.stop();
    }

    /// Every stream returns now, and nothing more is sent or read.
    pub fn abort(&self) {
        self.control.abort();
        // A sampler that has already ended needs no telling.
        let _ = self.notes.send(Note::Look);
    }

    /// Waits for the streams to end, at most until `deadline`, and gives what was measured.
    ///
    /// Streams that have not ended by then are aborted. Over TCP, whose end always comes, that is a
    /// failure of the run; over a transport that may lose its last word it is an end like any other.
    pub fn finish(self, deadline: Instant) -> RunOutcome {
        let outcome = self.outcome.recv_deadline(deadline).or_else(|_| {
            let _ = self.notes.send(Note::Cut);
            self.outcome.recv()
        });
        let joined = self.sampler.join();
        outcome.ok().filter(|_| joined.is_ok()).unwrap_or_else(|| {
            self.control.abort();
            let failure = Failure::new(FailureKind::Internal, "the sampler of the run panicked");
            RunOutcome {
                failure: Some(failure),
                ..RunOutcome::default()
            }
        })
    }
}

/// What every worker gets a copy of.
struct Crew<'a> {
    control: &'a Arc<Control>,
    notes: &'a Sender<Note>,
    barrier: Receiver<std::convert::Infallible>,
}

impl Crew<'_> {
    /// Starts the workers and waits until each stands at the barrier.
    fn muster(
        self,
        spec: &RunSpec,
        watchdog: Duration,
        streams: Vec<OpenStream>,
        inbox: &Receiver<Note>,
    ) -> Result<Vec<Lane>, Failure> {
        let budget = spec.total_bytes.map(|total| Arc::new(Budget::new(total.get())));
        let mut lanes = Vec::with_capacity(streams.len());
        for (index, open) in streams.into_iter().enumerate() {
            lanes.push(Lane::new(&open));
            let worker = Worker {
                index,
                open,
                control: Arc::clone(self.control),
                budget: budget.clone(),
                block_bytes: spec.block_bytes.map_or(usize::MAX, |block| block.get() as usize),
                watchdog,
                delivery: timetable::delivery_time(spec).unwrap_or(watchdog).min(watchdog),
                ends_when_stopped: spec.transport == Transport::Null,
                notes: self.notes.clone(),
                barrier: self.barrier.clone(),
            };
            let name = worker.name();
            lanes[index].set_thread(spawn(&name, move || worker.run())?);
        }
        for _ in 0..lanes.len() {
            if let Ok(Note::Ready { index, clock }) = inbox.recv() {
                lanes[index].set_clock(clock?);
            }
        }
        Ok(lanes)
    }
}

fn check(request: &RunRequest) -> Result<(), Failure> {
    if request.streams.is_empty() {
        return Err(Failure::new(
            FailureKind::Internal,
            "a run needs at least one stream",
        ));
    }
    let Some(sending) = timetable::sending_time(&request.spec) else {
        return Ok(());
    };
    let (sending_s, interval_s) = (sending.as_secs_f64(), request.spec.interval_s.get());
    let rows = request.streams.len() as f64 * (sending_s / interval_s).ceil();
    if rows <= MAX_ROWS as f64 {
        return Ok(());
    }
    Err(Failure::new(
        FailureKind::Spec,
        format!(
            "interval_s: a sample each {interval_s} s for {sending_s} s of {} makes {rows} rows; allowed: {MAX_ROWS}; use a longer interval",
            counted(request.streams.len(), "stream"),
        ),
    ))
}
