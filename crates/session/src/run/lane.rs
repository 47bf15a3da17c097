//! One stream as the sampler sees it.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use farline_spec::{Failure, Samples, StreamRecord};
use farline_sys::thread::CpuClock;
use farline_transport::{Counters, Probe, Role};

use super::cpu::micros;
use super::events::OpenStream;
use super::rows::{self, Interval, Look, Name};
use super::worker::WorkerEnd;
use crate::streams::End;

/// A stream, its thread, and what was last seen of both.
pub(super) struct Lane {
    name: Name,
    /// Until the stream is closed.
    probe: Option<Arc<dyn Probe>>,
    clock: Option<CpuClock>,
    thread: Option<JoinHandle<()>>,
    first: Look,
    before: Look,
    end: Option<(Look, Box<WorkerEnd>)>,
    retired: Option<Retired>,
}

/// A data stream that ended while others go on.
#[derive(Debug, Clone, Copy)]
struct Retired {
    since: Instant,
    /// Its last row is there.
    is_told: bool,
}

impl Lane {
    pub(super) fn new(open: &OpenStream) -> Self {
        let role = match open.role {
            Role::Sender => 0,
            Role::Receiver => 1,
        };
        let unknown = Look {
            counters: Counters::UNKNOWN,
            cpu_us: 0,
            wait_us: -1,
        };
        Self {
            name: Name {
                stream: open.stream,
                role,
            },
            probe: Some(open.io.probe()),
            clock: None,
            thread: None,
            first: unknown,
            before: unknown,
            end: None,
            retired: None,
        }
    }

    pub(super) fn set_thread(&mut self, thread: JoinHandle<()>) {
        self.thread = Some(thread);
    }

    pub(super) fn set_clock(&mut self, clock: CpuClock) {
        self.clock = Some(clock);
    }

    /// The first look, from which all counters are counted.
    pub(super) fn start(&mut self) {
        self.before = self.look();
        self.first = self.before;
    }

    pub(super) fn stream(&self) -> u16 {
        self.name.stream
    }

    pub(super) fn is_sender(&self) -> bool {
        self.name.role == 0
    }

    pub(super) fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// The worker has ended: nothing of this stream changes after this look.
    pub(super) fn finish(&mut self, end: Box<WorkerEnd>) -> Result<(), Failure> {
        let look = Look {
            counters: self.sample(),
            cpu_us: end.cpu_us,
            wait_us: end.wait_us,
        };
        let result = end.result.clone();
        self.end = Some((look, end));
        if let Some(thread) = self.thread.take() {
            // The note was the last thing the thread did, and it catches its own panics.
            let _ = thread.join();
        }
        result
    }

    /// Payload bytes moved since the start.
    pub(super) fn bytes(&self) -> u64 {
        rows::totals(&self.first, &self.look()).bytes
    }

    /// Bytes sent that the other end has not acknowledged, as far as that is known.
    pub(super) fn unacknowledged_bytes(&self) -> u64 {
        if self.end.is_some() || !self.is_sender() {
            return 0;
        }
        self.sample().unacknowledged_bytes.max(0).unsigned_abs()
    }

    /// The other end has said that it was all.
    pub(super) fn end_receiving(&self) {
        if self.end.is_none() && !self.is_sender() {
            self.probe.iter().for_each(|probe| probe.end_receiving());
        }
    }

    /// Packets received since the start: a sign of life before they make up a whole block or blast.
    pub(super) fn received_packets(&self) -> u64 {
        if self.is_sender() {
            0
        } else {
            rows::totals(&self.first, &self.look()).packets
        }
    }

    /// The stream has ended and the run goes on without it: after one row more there is nothing to tell.
    pub(super) fn retire(&mut self) {
        self.retired = Some(Retired {
            since: Instant::now(),
            is_told: false,
        });
    }

    /// Closes a stream that has been without its thread for so long that the other end needs no answer of it; whether it did.
    pub(super) fn close_if_old(&mut self, linger: Duration) -> bool {
        let is_old = self
            .retired
            .is_some_and(|retired| retired.since.elapsed() >= linger);
        match &mut self.end {
            Some((_, end)) if is_old && self.probe.take().is_some() => {
                end.io = None;
                true
            }
            _ => false,
        }
    }

    /// Segments or packets sent again so far.
    pub(super) fn retransmits(&self) -> u64 {
        let look = self.look();
        look.counters.retransmits.max(0).unsigned_abs()
    }

    fn sample(&self) -> Counters {
        self.probe
            .as_ref()
            .map_or(Counters::UNKNOWN, |probe| probe.sample())
    }

    /// Appends the row of this interval.
    pub(super) fn push_row(&mut self, samples: &mut Samples, interval: &Interval) {
        if let Some(retired) = &mut self.retired
            && std::mem::replace(&mut retired.is_told, true)
        {
            return;
        }
        let now = self.look();
        rows::push(samples, interval, self.name, &self.before, &now);
        self.before = now;
    }

    fn look(&self) -> Look {
        if let Some((look, _)) = &self.end {
            return *look;
        }
        // The clock is gone between the end of the thread and the note about it.
        let clock = self.clock.as_ref();
        let cpu = clock.and_then(CpuClock::read).map(micros);
        let wait = clock.and_then(CpuClock::waited).map(micros);
        Look {
            counters: self.sample(),
            cpu_us: cpu.unwrap_or(self.before.cpu_us),
            wait_us: wait.unwrap_or(self.before.wait_us),
        }
    }

    /// The record of the stream, from the first look to the last row, of a run from `zero` until `over`.
    pub(super) fn record(self, end: End, zero: Instant, over: Instant) -> StreamRecord {
        // A thread that never came back may have moved bytes to the end.
        let last_byte = self.end.as_ref().map_or(Some(over), |(_, end)| end.last_byte);
        let elapsed = last_byte.map_or(Duration::ZERO, |at| at.saturating_duration_since(zero));
        let (granted, report) = self
            .end
            .map(|(_, end)| (end.granted, end.report))
            .unwrap_or_default();
        StreamRecord {
            stream: self.name.stream.into(),
            end: end.number(),
            role: self.name.role,
            elapsed_us: micros(elapsed).unsigned_abs(),
            blasts: report.blasts,
            whole_blasts: report.whole_blasts,
            path_check: report.path_check,
            granted,
            ..rows::totals(&self.first, &self.before)
        }
    }
}
