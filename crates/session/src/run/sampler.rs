//! The thread that keeps a run: samples, limits, watchdog, end.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};
use farline_spec::{CpuUse, Failure, FailureKind, RunSpec, Samples, Transport};
use farline_sys::thread::set_finest_timer_slack;
use farline_sys::wake::Waker;

use super::control::Control;
use super::cpu::{CpuMark, micros};
use super::enforce::RateGuard;
use super::lane::Lane;
use super::rows::Interval;
use super::timetable::{Timetable, sending_time, take_due};
use super::worker::{Note, WorkerEnd};
use super::{End, MAX_ROWS, RunEvent, RunOutcome};

/// Time in which an aborted stream must return: many times what a transport waits at once.
const ABORT_GRACE: Duration = Duration::from_millis(if cfg!(test) { 300 } else { 2_000 });

/// What the sampler holds a run to.
pub(super) struct Plan {
    pub(super) end: End,
    pub(super) spec: RunSpec,
    pub(super) max_rate_bps: Option<u64>,
    pub(super) watchdog: Duration,
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
    times: Timetable,
    guard: Option<RateGuard>,
    samples: Samples,
    sampled_until_us: i64,
    process_cpu_us: i64,
    cpu: CpuMark,
    failure: Option<Failure>,
}

impl Sampler {
    /// Takes the first look at everything; zero comes last, so no byte moves before it.
    pub(super) fn new(plan: Plan, mut lanes: Vec<Lane>, control: Arc<Control>, outlet: Outlet) -> Self {
        set_finest_timer_slack();
        lanes.iter_mut().for_each(Lane::start);
        let cpu = CpuMark::now();
        let process_cpu_us = CpuMark::process_us();
        let zero = Instant::now();
        let interval = Duration::from_secs_f64(plan.spec.interval_s.get());
        let sending = sending_time(&plan.spec).filter(|_| lanes.iter().any(Lane::is_sender));
        let mut times = Timetable::new(zero, interval, sending, plan.watchdog);
        let guard = plan.max_rate_bps.map(|limit_bps| RateGuard::new(limit_bps, zero));
        if guard.is_some() {
            times.set_next_guard(zero);
        }
        Self {
            plan,
            lanes,
            control,
            outlet,
            times,
            guard,
            samples: Samples::default(),
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
        self.outlet.say(RunEvent::AllDone);
        self.outcome(over, cpu)
    }

    fn is_over(&self) -> bool {
        self.lanes.iter().all(Lane::has_ended) || self.times.give_up_at.is_some_and(|at| at <= Instant::now())
    }

    fn take(&mut self, note: Note) {
        match note {
            Note::Ended { index, end } => self.worker_ended(index, end),
            Note::Cut if !self.control.is_aborted() => self.cut(),
            Note::Cut | Note::Look | Note::Ready { .. } => {}
        }
    }

    fn worker_ended(&mut self, index: usize, end: Box<WorkerEnd>) {
        let result = self.lanes[index].finish(end);
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
            self.outlet.say(RunEvent::SendersDone);
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
            self.outlet.say(RunEvent::Failed(failure));
        }
        self.control.abort();
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
        if take_due(&mut self.times.watchdog_at, now) && !self.control.is_aborted() {
            let (open, limit_s) = (self.open_streams(), self.plan.watchdog.as_secs_f64());
            let message = format!(
                "{open} had not ended {limit_s} s after the start, all a run of this length may take"
            );
            self.fail(Failure::new(FailureKind::Timeout, message));
        }
        if self.control.is_aborted() && self.times.give_up_at.is_none() {
            self.times.give_up_at = Some(now + ABORT_GRACE);
        }
    }

    fn check_rate(&mut self, now: Instant) {
        let bytes = self.lanes.iter().map(Lane::bytes).sum();
        let verdict = self.guard.as_mut().map_or(Ok(()), |guard| guard.look(now, bytes));
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
        if self.samples.len() + self.lanes.len() > MAX_ROWS && !self.control.is_aborted() {
            let message = format!(
                "{} rows of samples, allowed are {MAX_ROWS}: sample less often",
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
        let (open, grace_s) = (self.open_streams(), ABORT_GRACE.as_secs_f64());
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
            run_s: over.duration_since(zero).as_secs_f64(),
            failure: self.failure,
        }
    }
}
