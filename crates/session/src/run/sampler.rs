//! The thread that keeps a run: samples, limits, watchdog, end.

use std::convert::Infallible;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};
use farline_spec::{CopyReport, CpuUse, Failure, FailureKind, MoverSamples, RunSpec, Samples, Transport};
use farline_sys::thread::set_finest_timer_slack;
use farline_sys::wake::Waker;
use farline_transport::{Role, SharedRate};

use super::control::Control;
use super::cpu::{CpuMark, micros};
use super::enforce::RateGuard;
use super::events::{OpenStream, RunEvent, RunOutcome};
use super::files::{Files, LOOK_EVERY};
use super::lane::Lane;
use super::rows::{Interval, MAX_ROWS};
use super::timetable::{RECEIVERS_LATER, Timetable, delivery_time, sending_time, take_due};
use super::worker::{Note, Worker, WorkerEnd, spawn};
use crate::copy::{GIVE_WAY_INTERVAL, ScavengerController, messages_bps};
use crate::machine::RunTurn;
use crate::streams::End;
use crate::streams::is_data;

/// Time in which an aborted stream must return: many times what a transport waits at once.
const ABORT_GRACE: Duration = Duration::from_millis(if cfg!(test) { 300 } else { 2_000 });
/// As [`ABORT_GRACE`], of a copy: a disk may be at it.
const COPY_ABORT_GRACE: Duration = Duration::from_millis(if cfg!(test) { 300 } else { 10_000 });

/// How long the stream of a thread that has ended stays open while others go on: the other end may want to hear its last word
/// once more.
const LINGER: Duration = Duration::from_secs(5);
/// Rows after which a copy, whose end nobody knows, is sampled half as often; again after as many more.
const ROWS_BEFORE_HALF: usize = 20_000;

/// What the sampler holds a run to.
pub(super) struct Plan {
    pub(super) end: End,
    pub(super) spec: RunSpec,
    pub(super) max_rate_bps: Option<u64>,
    pub(super) watchdog: Duration,
    pub(super) rate: Option<Arc<SharedRate>>,
    pub(super) give_way: Option<ScavengerController>,
}

/// Where events go.
pub(super) struct Outlet {
    pub(super) events: Sender<RunEvent>,
    pub(super) wake: Arc<Waker>,
}

impl Outlet {
    fn say(&self, event: RunEvent) {
        // Whoever listened may be gone; the outcome still has everything.
        let _ = self.events.send(event);
        self.wake.wake();
    }
}

/// The state of the sampler thread.
pub(super) struct Sampler {
    plan: Plan,
    lanes: Vec<Lane>,
    control: Arc<Control>,
    outlet: Outlet,
    /// For the threads of streams that come later.
    notes: Sender<Note>,
    times: Timetable,
    guard: Option<RateGuard>,
    messages_guard: Option<RateGuard>,
    samples: Samples,
    mover_samples: MoverSamples,
    files: Option<Files>,
    rows_before_half: usize,
    sampled_until_us: i64,
    process_cpu_us: i64,
    cpu: CpuMark,
    failure: Option<Failure>,
}

impl Sampler {
    /// Takes the first look at everything; zero comes last, so no byte moves before it.
    pub(super) fn new(
        plan: Plan,
        mut lanes: Vec<Lane>,
        control: Arc<Control>,
        outlet: Outlet,
        notes: Sender<Note>,
    ) -> Self {
        set_finest_timer_slack();
        lanes.iter_mut().for_each(Lane::start);
        let cpu = CpuMark::now();
        let process_cpu_us = CpuMark::process_us();
        let zero = Instant::now();
        let interval = Duration::from_secs_f64(plan.spec.interval_s.get());
        let sending = sending_time(&plan.spec).filter(|_| lanes.iter().any(Lane::is_sender));
        let mut times = Timetable::new(zero, interval, sending, plan.watchdog);
        let guard = plan.max_rate_bps.map(|limit_bps| RateGuard::new(limit_bps, zero));
        let messages_guard = plan
            .max_rate_bps
            .map(|limit_bps| RateGuard::new(messages_bps(limit_bps), zero));
        if guard.is_some() {
            times.set_next_guard(zero);
        }
        let files = control.copy().map(|copy| Files::new(Arc::clone(copy), zero));
        times.look_at = files.as_ref().map(|_| zero + LOOK_EVERY);
        times.deliver_by =
            delivery_time(&plan.spec).and_then(|delivery| zero.checked_add(delivery + RECEIVERS_LATER));
        times.yield_at = plan.give_way.as_ref().map(|_| zero);
        Self {
            plan,
            lanes,
            control,
            outlet,
            notes,
            times,
            guard,
            messages_guard,
            samples: Samples::default(),
            mover_samples: MoverSamples::default(),
            files,
            rows_before_half: ROWS_BEFORE_HALF,
            sampled_until_us: 0,
            process_cpu_us,
            cpu,
            failure: None,
        }
    }

    /// Opens the barrier, and keeps the run until its last stream has ended.
    pub(super) fn run(mut self, inbox: &Receiver<Note>, barrier: Sender<Infallible>) -> RunOutcome {
        drop(barrier);
        while !self.is_over() {
            if let Ok(note) = inbox.recv_deadline(self.times.next()) {
                self.take(note);
            }
            self.keep_time(Instant::now());
        }
        let cpu = self.cpu.elapsed();
        self.name_the_lost();
        let over = Instant::now();
        self.sample(over);
        let copy = self.finish_copy(over);
        self.outlet.say(RunEvent::Turn(RunTurn::AllDone));
        RunOutcome {
            copy,
            ..self.outcome(over, cpu)
        }
    }

    fn is_over(&self) -> bool {
        self.lanes.iter().all(Lane::has_ended) || self.times.give_up_at.is_some_and(|at| at <= Instant::now())
    }

    fn take(&mut self, note: Note) {
        match note {
            Note::Ended { index, end } => self.worker_ended(index, end),
            Note::Cut if !self.control.is_aborted() => self.cut(),
            Note::Join(open) => self.join(*open),
            Note::MostRate(most_bps) => self
                .plan
                .give_way
                .iter_mut()
                .for_each(|give_way| give_way.set_most(most_bps)),
            // Of a stream that came later; the others are known before the run begins.
            Note::Ready { index, clock } => match clock {
                Ok(clock) => self.lanes[index].set_clock(clock),
                Err(failure) => self.fail(failure),
            },
            Note::Cut | Note::Look => {}
        }
    }

    /// One data stream more: its thread begins at once.
    fn join(&mut self, open: OpenStream) {
        let (stream, is_sender) = (open.stream, open.role == Role::Sender);
        let Some(files) = &self.files else { return };
        if self.control.is_stopping() || files.copy().is_done() {
            return;
        }
        files.copy().join_stream(stream, open.role);
        let probe = open.io.probe();
        self.control.join(stream, Arc::clone(&probe));
        if is_sender && let Some(give_way) = &mut self.plan.give_way {
            give_way.join(stream, probe);
        }
        let mut lane = Lane::new(&open);
        lane.start();
        let begun = self.begin(open);
        self.lanes.push(lane);
        match (begun, self.lanes.last_mut()) {
            (Ok(thread), Some(lane)) => lane.set_thread(thread),
            (Err(failure), _) => {
                // There is no thread that could end.
                self.lanes.pop();
                self.fail(failure);
            }
            (Ok(_), None) => {}
        }
    }

    fn begin(&self, open: OpenStream) -> Result<JoinHandle<()>, Failure> {
        // Nobody holds it back: the other side is gone.
        let (_, barrier) = crossbeam_channel::bounded(0);
        let worker = Worker {
            index: self.lanes.len(),
            open,
            control: Arc::clone(&self.control),
            budget: None,
            block_bytes: usize::MAX,
            watchdog: self.plan.watchdog,
            delivery: self.plan.watchdog,
            ends_when_stopped: false,
            notes: self.notes.clone(),
            barrier,
        };
        let name = worker.name();
        spawn(&name, move || worker.run())
    }

    /// A data stream of a copy has ended; if others go on, it is told of and looked at no more.
    fn retire(&mut self, index: usize) {
        let spec = &self.plan.spec;
        let goes_on = |lane: &Lane| !lane.has_ended() && is_data(spec, lane.stream());
        let stream = self.lanes[index].stream();
        if self.files.is_none() || !is_data(spec, stream) || !self.lanes.iter().any(goes_on) {
            return;
        }
        self.lanes[index].retire();
        if let Some(give_way) = &mut self.plan.give_way {
            give_way.part(stream);
        }
    }

    /// Streams that ended long ago are closed: there may be many.
    fn close_retired(&mut self) {
        for lane in &mut self.lanes {
            if lane.close_if_old(LINGER) {
                self.control.part(lane.stream());
            }
        }
    }

    fn worker_ended(&mut self, index: usize, end: Box<WorkerEnd>) {
        let result = self.lanes[index].finish(end);
        self.retire(index);
        // What an aborted stream complains about is the abort.
        if self.control.is_aborted() {
            return;
        }
        if let Err(failure) = result {
            return self.fail(failure);
        }
        let senders_left = self
            .lanes
            .iter()
            .any(|lane| lane.is_sender() && !lane.has_ended());
        if self.lanes[index].is_sender() && !senders_left {
            self.outlet.say(RunEvent::Turn(RunTurn::SendersDone));
            self.end_receivers();
        }
    }

    /// The end that gets the files has said that it has them all: it does not wait a round trip for streams to say it too.
    fn end_receivers(&self) {
        let may_close = self.files.as_ref().is_some_and(|files| files.copy().may_close());
        if may_close && !self.control.is_stopping() {
            self.lanes.iter().for_each(Lane::end_receiving);
        }
    }

    /// Whoever waits for the run will not wait longer.
    fn cut(&mut self) {
        // A datagram that says "the end" may be lost, and where nothing is carried nothing says it.
        if matches!(self.plan.spec.transport, Transport::Udp | Transport::Null) {
            return self.control.abort();
        }
        let message = format!(
            "{} had not ended by the deadline for the end of the run",
            self.open_streams()
        );
        self.fail(Failure::new(FailureKind::Timeout, message));
    }

    fn open_streams(&self) -> String {
        let open: Vec<_> = self
            .lanes
            .iter()
            .filter(|lane| !lane.has_ended())
            .map(Lane::stream)
            .collect();
        format!("streams {open:?}")
    }

    /// Notes the first failure and ends the rest of the run.
    fn fail(&mut self, failure: Failure) {
        if self.failure.is_none() {
            self.failure = Some(failure.clone());
            self.outlet.say(RunEvent::Turn(RunTurn::Failed(failure.clone())));
        }
        self.control.abort_because(&failure);
    }

    /// Looks at the copy: it must not stand still, and its owner wants to see how far it is.
    fn look_at_copy(&mut self, now: Instant) {
        let Some(files) = &mut self.files else { return };
        let spec = &self.plan.spec;
        files.note_received(self.lanes.iter().map(Lane::received_packets).sum());
        let lanes = || self.lanes.iter().filter(|lane| is_data(spec, lane.stream()));
        let under_way_bytes = lanes().map(Lane::unacknowledged_bytes).sum();
        let progress = files.progress(now, lanes().map(Lane::bytes).collect(), under_way_bytes);
        let stalled = files.copy().check_stall();
        self.outlet.say(RunEvent::Progress(progress));
        match stalled {
            Err(failure) if !self.control.is_aborted() => self.fail(failure),
            _ => {}
        }
    }

    /// What the copy came to. Its receipt is closed and its lock given back even where a stream never came back; what holds
    /// that one may hold these too, so they are waited for no longer than it was.
    fn finish_copy(&mut self, now: Instant) -> Option<CopyReport> {
        self.look_at_copy(now);
        let copy = Arc::clone(self.control.copy()?);
        if self.lanes.iter().all(Lane::has_ended) {
            return copy.finish().map_err(|failure| self.fail(failure)).ok();
        }
        let (finished, outcome) = crossbeam_channel::bounded(1);
        let body = move || {
            // Whoever waits no longer has said why already.
            let _ = finished.send(copy.finish());
        };
        let session = tracing::Span::current();
        let thread = std::thread::Builder::new()
            .name("fl-finish".into())
            .spawn(move || session.in_scope(body));
        if let Err(error) = thread {
            self.fail(Failure::system("starting thread fl-finish", &error));
            return None;
        }
        outcome.recv_timeout(COPY_ABORT_GRACE).ok()?.ok()
    }

    /// Time in which streams must return once they are aborted.
    fn abort_grace(&self) -> Duration {
        if self.files.is_some() {
            COPY_ABORT_GRACE
        } else {
            ABORT_GRACE
        }
    }

    fn keep_time(&mut self, now: Instant) {
        if take_due(&mut self.times.stop_at, now) {
            self.control.stop();
        }
        if self.times.tick_at <= now {
            self.sample(now);
            self.times.set_next_tick(now);
        }
        if take_due(&mut self.times.guard_at, now) {
            self.check_rate(now);
        }
        if take_due(&mut self.times.yield_at, now) {
            self.times.yield_at = Some(now + GIVE_WAY_INTERVAL);
            self.plan
                .give_way
                .iter_mut()
                .for_each(|give_way| give_way.look(now));
        }
        if take_due(&mut self.times.look_at, now) {
            self.times.look_at = Some(now + LOOK_EVERY);
            self.look_at_copy(now);
        }
        if take_due(&mut self.times.deliver_by, now) {
            self.lanes.iter().for_each(Lane::end_receiving);
        }
        if take_due(&mut self.times.watchdog_at, now) && !self.control.is_aborted() {
            let (open, limit_s) = (self.open_streams(), self.plan.watchdog.as_secs_f64());
            let message = format!(
                "{open} had not ended {limit_s} s after the start, the limit for a run of this length"
            );
            self.fail(Failure::new(FailureKind::Timeout, message));
        }
        if self.control.is_aborted() && self.times.give_up_at.is_none() {
            self.times.give_up_at = Some(now + self.abort_grace());
        }
    }

    fn check_rate(&mut self, now: Instant) {
        let spec = &self.plan.spec;
        let bytes = |carries_data: bool| -> u64 {
            let lanes = self.lanes.iter();
            let lanes = lanes.filter(|lane| is_data(spec, lane.stream()) == carries_data);
            lanes.map(Lane::bytes).sum()
        };
        let guards = [
            (&mut self.guard, bytes(true), "data"),
            (&mut self.messages_guard, bytes(false), "messages"),
        ];
        let look = |(guard, bytes, what): (&mut Option<RateGuard>, u64, &str)| {
            let verdict = guard.as_mut().map_or(Ok(()), |guard| guard.look(now, bytes));
            verdict.map_err(|failure| Failure {
                message: format!("{what}: {}", failure.message),
                ..failure
            })
        };
        let verdict = guards.into_iter().try_for_each(look);
        match verdict {
            Ok(()) => self.times.set_next_guard(now),
            Err(failure) => self.fail(failure),
        }
    }

    /// One row per stream for the time since the last one.
    fn sample(&mut self, now: Instant) {
        let since_zero_us = micros(now.duration_since(self.times.zero()));
        let process_cpu_us = CpuMark::process_us();
        let interval = Interval {
            end: self.plan.end,
            start_us: self.sampled_until_us,
            end_us: since_zero_us.max(self.sampled_until_us + 1),
            process_cpu_us: process_cpu_us - self.process_cpu_us,
        };
        self.process_cpu_us = process_cpu_us;
        self.sampled_until_us = interval.end_us;
        let mut batch = Samples::default();
        self.lanes
            .iter_mut()
            .for_each(|lane| lane.push_row(&mut batch, &interval));
        self.outlet.say(RunEvent::Samples(batch.clone()));
        self.samples.append(&mut batch);
        if let Some(files) = &mut self.files {
            let rate = self.plan.rate.as_ref().filter(|rate| !rate.is_unlimited());
            let held = rate.map_or(0, |rate| rate.rate_bps());
            files.copy().gauges().held_rate_bps.set(held);
            let mut row = files.row(&interval);
            self.outlet.say(RunEvent::MoverSamples(row.clone()));
            let spec = &self.plan.spec;
            let data = self.lanes.iter().filter(|lane| is_data(spec, lane.stream()));
            let retransmits = data.map(Lane::retransmits).sum();
            self.outlet.say(RunEvent::Stages(files.stages(now, retransmits)));
            self.mover_samples.append(&mut row);
        }
        self.close_retired();
        self.bound_rows();
    }

    /// A run must not fill the memory with rows. How long a copy takes nobody knows, so it is sampled less and less often.
    fn bound_rows(&mut self) {
        if self.files.is_some() && self.samples.len() >= self.rows_before_half {
            self.rows_before_half += ROWS_BEFORE_HALF;
            self.times.sample_less_often();
        }
        if self.samples.len() + self.lanes.len() > MAX_ROWS && !self.control.is_aborted() {
            let message = format!(
                "interval_s: {} rows of samples; allowed: {MAX_ROWS}; use a longer interval",
                self.samples.len()
            );
            self.fail(Failure::new(FailureKind::Limit, message));
        }
    }

    /// Streams that did not come back although they were told to.
    fn name_the_lost(&mut self) {
        if self.lanes.iter().all(Lane::has_ended) {
            return;
        }
        let (open, grace_s) = (self.open_streams(), self.abort_grace().as_secs_f64());
        let message = format!("{open} did not return within {grace_s} s of being aborted");
        self.fail(Failure::new(FailureKind::Internal, message));
    }

    fn outcome(self, over: Instant, cpu: CpuUse) -> RunOutcome {
        let (end, zero) = (self.plan.end, self.times.zero());
        RunOutcome {
            samples: self.samples,
            streams: self
                .lanes
                .into_iter()
                .map(|lane| lane.record(end, zero, over))
                .collect(),
            cpu,
            mover_samples: self.mover_samples,
            run_s: over.duration_since(zero).as_secs_f64(),
            copy: None,
            failure: self.failure,
        }
    }
}
