//! Where a session's driver keeps its run: streams being opened, then the run, then nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded, unbounded};
use farline_spec::unit::counted;
use farline_spec::{Failure, FailureKind, RunSpec};
use farline_sys::wake::Waker;
use farline_transport::SharedRate;
use tracing::Span;

use crate::copy::{CopyPlan, Copying, prepare, prepare_data};
use crate::machine::LocalChange;
use crate::message::profile::MAX_ROWS;
use crate::run::{OpenStream, Run, RunEvent, RunOutcome, RunRequest, RunTurn};
use crate::streams::{End, is_data};

/// How much a run of this end may do.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bounds {
    /// Bits per second over all streams.
    pub rate_bps: Option<u64>,
    /// Payload bytes over all streams.
    pub bytes: Option<u64>,
}

/// The streams and the run of one end of one session.
pub struct RunController {
    end: End,
    waker: Arc<Waker>,
    opening: Option<Opening>,
    streams: Vec<OpenStream>,
    run: Option<(Run, Receiver<RunEvent>)>,
    /// The copy that the run carries, and the rate of its data streams.
    copy: Option<(Arc<Copying>, Option<Arc<SharedRate>>)>,
    late: Option<Late>,
    /// What gives way to other traffic sets the rate.
    gives_way: bool,
    bytes_allowed: Option<u64>,
    bytes_moved: u64,
}

/// Streams that are being opened on another thread.
struct Opening {
    cancelled: Arc<AtomicBool>,
    result: Receiver<Result<Vec<OpenStream>, Failure>>,
    thread: JoinHandle<()>,
}

/// Data streams of a copy that come while it runs.
struct Late {
    cancelled: Arc<AtomicBool>,
    streams: Receiver<Result<OpenStream, Failure>>,
    /// Streams that have not come yet.
    missing: u16,
    why: Option<String>,
}

/// Where streams go that come while a copy runs, one by one.
#[derive(Clone)]
pub struct LateSink {
    into: Sender<Result<OpenStream, Failure>>,
    waker: Arc<Waker>,
}

impl LateSink {
    /// One more, or why one did not come.
    pub fn put(&self, stream: Result<OpenStream, Failure>) {
        // Whoever waits no longer closes it.
        let _ = self.into.send(stream);
        self.waker.wake();
    }
}

impl RunController {
    /// An empty seat whose events wake `waker`.
    pub fn new(end: End, waker: Arc<Waker>) -> Self {
        Self {
            end,
            waker,
            opening: None,
            streams: Vec::new(),
            run: None,
            copy: None,
            late: None,
            gives_way: false,
            bytes_allowed: None,
            bytes_moved: 0,
        }
    }

    /// Opens streams on another thread by `open`, which gives up soon after its argument becomes true.
    ///
    /// # Errors
    /// [`FailureKind::System`] when no thread can be made.
    pub fn open(
        &mut self,
        open: impl FnOnce(&AtomicBool) -> Result<Vec<OpenStream>, Failure> + Send + 'static,
    ) -> Result<(), Failure> {
        let cancelled = Arc::new(AtomicBool::new(false));
        let (sender, result) = bounded(1);
        let (flag, waker) = (Arc::clone(&cancelled), Arc::clone(&self.waker));
        let session = Span::current();
        let thread = std::thread::Builder::new().name("fl-open".into()).spawn(move || {
            let _within = session.enter();
            // Whoever gave up waiting has dropped the other half; the streams go with it.
            let _ = sender.send(open(&flag));
            waker.wake();
        });
        let thread = thread.map_err(|error| Failure::system("starting thread fl-open", &error))?;
        self.opening = Some(Opening {
            cancelled,
            result,
            thread,
        });
        Ok(())
    }

    /// Starts the run over the open streams, with the files of `plan` if it is a copy.
    ///
    /// # Errors
    /// Those of [`Run::start`] and of the copy; [`FailureKind::Internal`] without open streams.
    pub fn start(
        &mut self,
        spec: &RunSpec,
        watchdog: Duration,
        bounds: Bounds,
        plan: Option<CopyPlan>,
    ) -> Result<(), Failure> {
        let (events, inbox) = unbounded();
        let prepared = prepare(std::mem::take(&mut self.streams), spec);
        let rate = prepared.rate.clone();
        self.gives_way = prepared.give_way.is_some();
        let copy = plan
            .map(|plan| Copying::start(spec, self.end, plan))
            .transpose()?;
        let copy = copy.map(Arc::new);
        let started = Run::start(RunRequest {
            spec: spec.clone(),
            end: self.end,
            streams: prepared.streams,
            max_rate_bps: bounds.rate_bps,
            watchdog,
            events,
            wake: Arc::clone(&self.waker),
            copy: copy.clone(),
            rate: rate.clone(),
            give_way: prepared.give_way,
        });
        let run = started.inspect_err(|failure| {
            copy.iter().for_each(|copy| copy.abort(failure));
        })?;
        self.copy = copy.map(|copy| (copy, rate));
        self.bytes_allowed = bounds.bytes;
        self.run = Some((run, inbox));
        Ok(())
    }

    /// Opens `count` data streams more on another thread, while the copy runs: `open` puts each into its argument as it comes,
    /// and gives up soon after its flag becomes true. At the end comes [`RunEvent::LateStreams`].
    ///
    /// # Errors
    /// [`FailureKind::System`] when no thread can be made.
    pub fn open_late(
        &mut self,
        count: u16,
        open: impl FnOnce(&LateSink, &AtomicBool) + Send + 'static,
    ) -> Result<(), Failure> {
        let cancelled = Arc::new(AtomicBool::new(false));
        let (into, streams) = unbounded();
        let sink = LateSink {
            into,
            waker: Arc::clone(&self.waker),
        };
        let (flag, session, waker) = (Arc::clone(&cancelled), Span::current(), Arc::clone(&self.waker));
        if let Some((copy, _)) = &self.copy {
            copy.expect_streams(count);
        }
        let body = move || {
            session.in_scope(|| open(&sink, &flag));
            drop(sink);
            waker.wake();
        };
        let begun = std::thread::Builder::new().name("fl-open".into()).spawn(body);
        if let Err(error) = begun {
            self.give_up_late(count);
            return Err(Failure::system("starting thread fl-open", &error));
        }
        self.late = Some(Late {
            cancelled,
            streams,
            missing: count,
            why: None,
        });
        Ok(())
    }

    /// Data streams of the copy that runs, without those that are to end.
    pub fn streams(&self) -> u32 {
        self.copy.as_ref().map_or(0, |(copy, _)| copy.streams())
    }

    /// Whether streams are being opened for an earlier change.
    pub fn is_opening_late(&self) -> bool {
        self.late.is_some()
    }

    /// Changes this end of the copy, as far as it is the sending one; streams to be opened are others' business.
    pub fn change(&self, change: &LocalChange) {
        let (Some((copy, rate)), Some((run, _))) = (&self.copy, &self.run) else {
            return;
        };
        copy.dismiss_streams(change.dismiss);
        if let Some(files) = change.concurrency {
            copy.set_concurrency(files.get());
        }
        let (Some(wanted), Some(rate)) = (change.total_rate_bps, rate) else {
            return;
        };
        let most_bps = Some(wanted.get()).filter(|&rate| rate > 0);
        match (self.gives_way, most_bps) {
            (true, most_bps) => run.set_most_rate(most_bps),
            (false, Some(most_bps)) => rate.set(most_bps),
            (false, None) => rate.lift(),
        }
    }

    fn give_up_late(&self, count: u16) {
        if let Some((copy, _)) = &self.copy {
            copy.give_up_streams(count);
        }
    }

    /// Takes the streams that have come; tells once there will be no more.
    fn poll_late(&mut self) -> Option<RunEvent> {
        loop {
            let late = self.late.as_mut()?;
            match late.streams.try_recv() {
                Ok(Ok(stream)) => {
                    late.missing = late.missing.saturating_sub(1);
                    self.join(stream);
                }
                Ok(Err(failure)) => late.why = Some(failure.message),
                Err(TryRecvError::Empty) => return None,
                Err(TryRecvError::Disconnected) => {
                    let Late { missing, why, .. } = self.late.take()?;
                    self.give_up_late(missing);
                    return Some(RunEvent::LateStreams { missing, why });
                }
            }
        }
    }

    /// A stream that came while the copy runs becomes part of the run.
    fn join(&self, stream: OpenStream) {
        let (Some((_, rate)), Some((run, _))) = (&self.copy, &self.run) else {
            return;
        };
        run.join(prepare_data(stream, rate.as_ref()));
    }

    /// Whether a run has begun and has not been joined.
    pub fn is_running(&self) -> bool {
        self.run.is_some()
    }

    /// Lets the run's senders stop.
    pub fn stop(&self) {
        if let Some((run, _)) = &self.run {
            run.stop();
        }
    }

    /// The next thing that happened.
    pub fn poll(&mut self) -> Option<RunEvent> {
        if let Some(opened) = self
            .opening
            .as_ref()
            .and_then(|opening| opening.result.try_recv().ok())
        {
            self.opening = None;
            return Some(match opened {
                Ok(streams) => {
                    self.streams = streams;
                    RunEvent::Turn(RunTurn::StreamsOpen)
                }
                Err(failure) => RunEvent::Turn(RunTurn::NotOpen(failure)),
            });
        }
        if let Some(event) = self.poll_late() {
            return Some(event);
        }
        let event = self.run.as_ref()?.1.try_recv().ok()?;
        Some(self.weigh(event))
    }

    /// Ends a run that moves more than it may.
    fn weigh(&mut self, event: RunEvent) -> RunEvent {
        if let RunEvent::Samples(samples) = &event {
            let moved = samples.bytes.iter().map(|&bytes| bytes.max(0).unsigned_abs());
            self.bytes_moved += moved.sum::<u64>();
            if let Some(allowed) = self.bytes_allowed.filter(|allowed| self.bytes_moved > *allowed) {
                return RunEvent::Turn(RunTurn::Failed(too_many_bytes(allowed)));
            }
        }
        event
    }

    /// Joins the run, at the latest after `within`, and gives what it came to and what [`Self::poll`] has not given yet. Without a
    /// run nothing comes.
    pub fn finish(&mut self, within: Duration) -> (RunOutcome, Vec<RunEvent>) {
        self.cancel_late();
        let Some((run, inbox)) = self.run.take() else {
            return (RunOutcome::default(), Vec::new());
        };
        let outcome = run.finish(Instant::now() + within);
        (outcome, inbox.try_iter().collect())
    }

    /// Ends everything now. The streams still being opened are given up; their thread ends by itself.
    pub fn abort(&mut self) -> (RunOutcome, Vec<RunEvent>) {
        self.give_up();
        self.streams.clear();
        if let Some((run, _)) = &self.run {
            run.abort();
        }
        self.finish(Duration::from_secs(5))
    }

    /// As [`Self::abort`], but waits for the thread that opens streams.
    pub fn abort_and_join(&mut self) -> RunOutcome {
        let thread = self.give_up();
        let (outcome, _) = self.abort();
        if let Some(thread) = thread {
            // A panic there was already reported by the panic hook, and there is nothing to save.
            let _ = thread.join();
        }
        outcome
    }

    /// Streams that are still being opened come too late.
    fn cancel_late(&mut self) {
        if let Some(late) = self.late.take() {
            late.cancelled.store(true, Ordering::Release);
        }
    }

    fn give_up(&mut self) -> Option<JoinHandle<()>> {
        self.cancel_late();
        let opening = self.opening.take()?;
        opening.cancelled.store(true, Ordering::Release);
        Some(opening.thread)
    }
}

/// Refuses a spec that would make more rows of samples than one end may send to the other.
///
/// # Errors
/// [`FailureKind::Spec`] that says how many there would be.
pub fn check_rows(spec: &RunSpec) -> Result<(), Failure> {
    let Some(sending_s) = spec.sending_s() else {
        return Ok(());
    };
    let rows = spec.stream_total() as f64 * (sending_s / spec.interval_s.get()).ceil();
    if rows <= MAX_ROWS as f64 {
        return Ok(());
    }
    let line = format!(
        "interval_s: a sample each {} s for {sending_s} s of {} makes {rows} rows; allowed: {MAX_ROWS}; use a longer interval",
        spec.interval_s.get(),
        counted(spec.stream_total(), "stream"),
    );
    Err(Failure::new(FailureKind::Spec, line))
}

/// Payload bytes that an end of a run of `spec` sent and received; a copy's messages are no payload.
pub fn payload_bytes(spec: &RunSpec, outcome: &RunOutcome) -> (u64, u64) {
    let carries_data = |stream: u32| u16::try_from(stream).is_ok_and(|stream| is_data(spec, stream));
    let total = |role| {
        outcome
            .streams
            .iter()
            .filter(|record| record.role == role && carries_data(record.stream))
            .map(|record| record.bytes)
            .sum()
    };
    (total(0), total(1))
}

fn too_many_bytes(allowed: u64) -> Failure {
    let line = format!("the run moved more than the allowed {allowed} bytes");
    Failure::new(FailureKind::Limit, line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farline_spec::{Samples, from_json};

    #[test]
    fn rows_are_bounded_before_anything_runs() {
        let check = |text| check_rows(&from_json::<RunSpec>(text).unwrap());
        assert!(check(r#"{"duration_s":10,"interval_s":0.005,"streams":256}"#).is_ok());
        let refusal = check(r#"{"duration_s":100,"interval_s":0.005,"streams":256}"#).unwrap_err();
        assert_eq!(refusal.kind, FailureKind::Spec);
        assert!(refusal.message.contains("allowed: 2000000"), "{refusal}");
    }

    #[test]
    fn streams_that_cannot_be_opened_are_told_and_wake() {
        let waker = Arc::new(Waker::new().unwrap());
        let mut seat = RunController::new(End::Client, Arc::clone(&waker));
        seat.open(|_| Err(Failure::new(FailureKind::Unreachable, "no")))
            .unwrap();
        farline_sys::wake::poll_readable(&[std::os::fd::AsFd::as_fd(&*waker)], Some(Duration::from_secs(5)))
            .unwrap();
        assert!(
            matches!(seat.poll(), Some(RunEvent::Turn(RunTurn::NotOpen(failure))) if failure.message == "no")
        );
        assert!(seat.poll().is_none());
    }

    #[test]
    fn giving_up_reaches_the_thread_that_opens() {
        let mut seat = RunController::new(End::Server, Arc::new(Waker::new().unwrap()));
        seat.open(|cancelled| {
            while !cancelled.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(Vec::new())
        })
        .unwrap();
        assert_eq!(seat.abort_and_join(), RunOutcome::default());
    }

    #[test]
    fn more_bytes_than_allowed_end_the_run() {
        let mut seat = RunController::new(End::Server, Arc::new(Waker::new().unwrap()));
        seat.bytes_allowed = Some(10);
        let moved = |bytes| {
            let bytes = vec![bytes, -1];
            RunEvent::Samples(Samples {
                bytes,
                ..Samples::default()
            })
        };
        assert!(matches!(seat.weigh(moved(10)), RunEvent::Samples(_)));
        let ended = seat.weigh(moved(1));
        assert!(
            matches!(ended, RunEvent::Turn(RunTurn::Failed(failure)) if failure.kind == FailureKind::Limit)
        );
    }
}
