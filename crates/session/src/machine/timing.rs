//! How long each wait may last.

use std::time::Duration;

use farline_spec::RunSpec;
use farline_spec::unit::DurationS;

use super::table::Wait;
use crate::streams::{End, sends};

/// Rate below which a run of a stated number of bytes without a stated rate counts as stuck, in bit/s.
const SLOWEST_RATE_BPS: f64 = 1e6;

/// As good as no limit, and nothing that a clock could not add.
const UNLIMITED: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Limits on waiting. The defaults are those of decision 0001; tests shorten them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// From the TCP connection to the client's greeting: the whole first message of TLS, or the name of a data stream.
    pub greeting: Duration,
    /// From the greeting to the client's first message.
    pub setup: Duration,
    /// Between two sessions on one connection.
    pub kept: Duration,
    /// Between two messages.
    pub message: Duration,
    /// Work of this end that should take milliseconds.
    pub own: Duration,
    /// For receivers to read what is still under way once the other end sends no more.
    pub drain: Duration,
    /// The same where somebody stopped the run.
    pub stop: Duration,
    /// For the other end to say what it knows about a failure of the run.
    pub grace: Duration,
    /// Between two requests about names.
    pub request: Duration,
    /// By how much the machine's watchdog comes after the run engine's own, which says more.
    pub watchdog_slack: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            greeting: Duration::from_secs(2),
            setup: Duration::from_secs(5),
            kept: Duration::from_secs(30),
            message: Duration::from_secs(30),
            own: Duration::from_secs(60),
            drain: Duration::from_secs(10),
            stop: Duration::from_secs(10),
            grace: Duration::from_secs(1),
            request: Duration::from_secs(60),
            watchdog_slack: Duration::from_secs(10),
        }
    }
}

/// For chunks that are under way when a copy is stopped: who stops it waits.
const COPY_STOP: Duration = Duration::from_secs(3);
/// Least time for a message of a copy, however short its time-out: what a busy host needs.
const LEAST_COPY_MESSAGE: Duration = Duration::from_secs(2);

impl Timing {
    /// The same for a run of `spec`: of a copy nobody waits longer for a word than for its bytes.
    #[must_use]
    pub fn of_copy(self, spec: &RunSpec) -> Self {
        let Some(copy) = &spec.copy else {
            return self;
        };
        let stall = Duration::from_secs_f64(copy.stall_timeout_s.get()).max(LEAST_COPY_MESSAGE);
        Self {
            message: self.message.min(stall),
            ..self.stopping(spec)
        }
    }

    /// The same for a run of `spec`: a copy that is stopped waits for little.
    #[must_use]
    pub fn stopping(self, spec: &RunSpec) -> Self {
        let stop = match &spec.copy {
            Some(_) => self.stop.min(COPY_STOP),
            None => self.stop,
        };
        Self { stop, ..self }
    }
}

/// Time after its start at which a run is ended whatever it does: duration + omit + max(30 s, duration / 4).
///
/// Where `spec` gives bytes instead of a duration, the duration is what they take at the stated
/// rate, or at 1 Mbit/s without one, but no more than `limit` and no more than a run may last. How long
/// files take nobody knows: a copy has `limit`, or ten years; one that stands still ends by its own rule.
pub fn watchdog(spec: &RunSpec, limit: Option<DurationS>) -> Duration {
    if spec.copy.is_some() {
        return limit.map_or(UNLIMITED, |limit| Duration::from_secs_f64(limit.get()));
    }
    let stated = spec.duration_s.map(DurationS::get);
    let most = limit.map_or(DurationS::MAX.get(), DurationS::get);
    let duration_s = stated.unwrap_or_else(|| seconds_for_bytes(spec).min(most));
    let omit_s = spec.omit_s.map_or(0.0, |omit| omit.get());
    Duration::from_secs_f64(duration_s + omit_s + f64::max(30.0, duration_s / 4.0))
}

fn seconds_for_bytes(spec: &RunSpec) -> f64 {
    let bits = spec.total_bytes.map_or(0.0, |total| total.get() as f64) * 8.0;
    let each_bps = spec.rate_bps.map_or(0, |rate| rate.get()) as f64;
    let rate_bps = each_bps * f64::from(spec.streams.get());
    bits / if rate_bps > 0.0 {
        rate_bps
    } else {
        SLOWEST_RATE_BPS
    }
}

/// What the deadlines of a session depend on.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    pub timing: Timing,
    /// Time to open the data streams.
    pub connect: Duration,
    /// The run, once it has begun.
    pub run: Option<RunClock>,
    /// When a session about names is over at the latest.
    pub most: Option<Duration>,
}

/// What the deadlines of a run depend on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunClock {
    /// When the watchdog ends it, since the session began.
    pub until: Duration,
    /// Whether this end still sends.
    pub sending: bool,
    /// Whether the other end has streams to send on.
    pub peer_sends: bool,
    /// Whether one of the ends stopped the run.
    pub stopped: bool,
}

impl Clock {
    /// Starts the run's clock at `now` and gives the engine's watchdog.
    pub fn start_run(
        &mut self,
        now: Duration,
        spec: &RunSpec,
        end: End,
        limit: Option<DurationS>,
    ) -> Duration {
        let watchdog = watchdog(spec, limit);
        self.run = Some(RunClock {
            until: now + watchdog + self.timing.watchdog_slack,
            sending: sends(spec, end),
            peer_sends: sends(spec, end.other()),
            stopped: false,
        });
        watchdog
    }

    /// Notes something about the run, if there is one.
    pub fn note(&mut self, change: impl FnOnce(&mut RunClock)) {
        if let Some(run) = &mut self.run {
            change(run);
        }
    }

    /// Whether one of the ends stopped the run.
    pub fn stopped(&self) -> bool {
        self.run.is_some_and(|run| run.stopped)
    }

    /// When a wait that begins `now` is over; `None` for one that never is.
    pub fn deadline(&self, wait: Wait, now: Duration) -> Option<Duration> {
        let timing = &self.timing;
        let within = match wait {
            Wait::Nothing => return None,
            Wait::Setup => return Some(timing.setup),
            Wait::Watchdog => return Some(self.watchdog(now)),
            Wait::PeerEnd if self.peer_may_send() => return Some(self.watchdog(now)),
            Wait::Drain if self.still_sending() => return Some(self.watchdog(now)),
            Wait::Message | Wait::PeerEnd => timing.message,
            Wait::Connect => self.connect + timing.drain,
            Wait::Own => timing.own,
            Wait::Drain => self.drain(),
            Wait::Grace => timing.grace,
            Wait::Request => {
                let soon = now + timing.request;
                return Some(self.most.map_or(soon, |most| most.min(soon)));
            }
        };
        Some(now + within)
    }

    /// For receivers to read what is still under way.
    pub fn drain(&self) -> Duration {
        if self.stopped() {
            self.timing.stop
        } else {
            self.timing.drain
        }
    }

    fn watchdog(&self, now: Duration) -> Duration {
        self.run.map_or(now, |run| run.until)
    }

    fn peer_may_send(&self) -> bool {
        self.run.is_some_and(|run| run.peer_sends && !run.stopped)
    }

    fn still_sending(&self) -> bool {
        self.run.is_some_and(|run| run.sending && !run.stopped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farline_spec::from_json;

    fn seconds(spec: &str, limit: Option<f64>) -> f64 {
        let spec = from_json::<RunSpec>(spec).unwrap().resolved().unwrap();
        watchdog(&spec, limit.map(|limit| DurationS::new(limit).unwrap())).as_secs_f64()
    }

    #[test]
    fn the_watchdog_leaves_room_in_proportion() {
        assert_eq!(seconds(r#"{"duration_s":10}"#, None), 40.0);
        assert_eq!(seconds(r#"{"duration_s":400,"omit_s":5}"#, None), 505.0);
    }

    #[test]
    fn bytes_are_timed_by_their_rate_and_held_to_the_limit() {
        assert_eq!(
            seconds(r#"{"total_bytes":1000000,"rate_bps":100000,"streams":2}"#, None),
            70.0
        );
        assert_eq!(seconds(r#"{"total_bytes":125000}"#, None), 31.0);
        assert_eq!(seconds(r#"{"total_bytes":1000000000000}"#, Some(60.0)), 90.0);
        assert!(seconds(r#"{"total_bytes":1000000000000000}"#, None) < 760_000.0);
    }

    #[test]
    fn a_copy_that_is_stopped_waits_for_little() {
        let spec = |text| from_json::<RunSpec>(text).unwrap().resolved().unwrap();
        let copy = spec(r#"{"copy":{"sources":["s"],"destination":"d"}}"#);
        let usual = Timing::default();
        let drain_s = |spec: &RunSpec, stopped| {
            let mut clock = Clock {
                timing: usual.of_copy(spec),
                connect: Duration::ZERO,
                run: None,
                most: None,
            };
            clock.start_run(Duration::ZERO, spec, End::Client, None);
            clock.note(|run| run.stopped = stopped);
            clock.drain().as_secs()
        };
        assert_eq!((drain_s(&copy, false), drain_s(&copy, true)), (10, 3));
        let probe = spec(r#"{"duration_s":10}"#);
        assert_eq!((drain_s(&probe, false), drain_s(&probe, true)), (10, 10));
    }

    #[test]
    fn a_copy_has_the_time_of_its_ticket_or_any() {
        let copy = r#"{"copy":{"sources":["s"],"destination":"d"}}"#;
        assert_eq!(seconds(copy, Some(60.0)), 60.0);
        assert!(seconds(copy, None) > 3e8);
    }
}
