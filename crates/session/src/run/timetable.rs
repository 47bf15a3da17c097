//! When the sampler has to do what.

use std::time::{Duration, Instant};

use farline_spec::{RunSpec, Transport};

use super::enforce::LOOK_EVERY;

/// How long senders send. None where bytes end the run.
pub(super) fn sending_time(spec: &RunSpec) -> Option<Duration> {
    spec.sending_s().map(Duration::from_secs_f64)
}

/// Time after its start at which a run stops to wait for what is still under way: senders sent for as long as they should,
/// and half of what the watchdog leaves to them has passed. What was measured by then stands. None where bytes end the
/// run, of which each is to arrive, for files, and for transports other than TCP: a receiver there cannot be told to end
/// ([`Probe::end_receiving`](farline_transport::Probe::end_receiving)), and takes a sender that ends early for a failure.
pub(super) fn delivery_time(spec: &RunSpec) -> Option<Duration> {
    if spec.copy.is_some() || spec.transport != Transport::Tcp {
        return None;
    }
    let sending = sending_time(spec)?;
    Some(sending + (sending / 8).max(DELIVERY))
}

/// Least time for what is under way at the end of a run that lasts a stated time.
const DELIVERY: Duration = Duration::from_secs(15);

/// By how much receivers wait longer than senders do: who sends ends first, and meets no connection that was closed.
pub(super) const RECEIVERS_LATER: Duration = Duration::from_secs(3);

/// Moments at which something is due. What has been done is no longer in it.
#[derive(Debug)]
pub(super) struct Timetable {
    zero: Instant,
    interval: Duration,
    /// Next sample.
    pub(super) tick_at: Instant,
    /// Senders have sent for as long as they should.
    pub(super) stop_at: Option<Instant>,
    /// Next look at the rate.
    pub(super) guard_at: Option<Instant>,
    /// Next look at whether to give way to other traffic.
    pub(super) yield_at: Option<Instant>,
    /// Next look at the files of a copy.
    pub(super) look_at: Option<Instant>,
    /// What is still under way is not waited for any longer.
    pub(super) deliver_by: Option<Instant>,
    /// The run has taken longer than anything it may do.
    pub(super) watchdog_at: Option<Instant>,
    /// Streams that were aborted should have returned long ago.
    pub(super) give_up_at: Option<Instant>,
}

impl Timetable {
    /// A run that starts at `zero`, samples every `interval` and sends for `sending`, if that is given.
    pub(super) fn new(
        zero: Instant,
        interval: Duration,
        sending: Option<Duration>,
        watchdog: Duration,
    ) -> Self {
        Self {
            zero,
            interval,
            tick_at: zero + interval,
            stop_at: sending.and_then(|sending| zero.checked_add(sending)),
            guard_at: None,
            yield_at: None,
            look_at: None,
            deliver_by: None,
            watchdog_at: zero.checked_add(watchdog),
            give_up_at: None,
        }
    }

    pub(super) fn zero(&self) -> Instant {
        self.zero
    }

    /// The earliest of all.
    pub(super) fn next(&self) -> Instant {
        let others = [
            self.stop_at,
            self.guard_at,
            self.yield_at,
            self.look_at,
            self.deliver_by,
            self.watchdog_at,
            self.give_up_at,
        ];
        others.into_iter().flatten().fold(self.tick_at, Instant::min)
    }

    /// Sets the first tick after `now` on the schedule that began at zero: one that came late
    /// delays no other.
    pub(super) fn set_next_tick(&mut self, now: Instant) {
        let interval_ns = self.interval.as_nanos().max(1);
        let into_ns = now.saturating_duration_since(self.zero).as_nanos() % interval_ns;
        self.tick_at = now + Duration::from_nanos(u64::try_from(interval_ns - into_ns).unwrap_or(u64::MAX));
    }

    /// Samples half as often from the next tick on.
    pub(super) fn sample_less_often(&mut self) {
        self.interval *= 2;
    }

    pub(super) fn set_next_guard(&mut self, now: Instant) {
        self.guard_at = Some(now + LOOK_EVERY);
    }
}

/// Takes a moment out once it has come.
pub(super) fn take_due(moment: &mut Option<Instant>, now: Instant) -> bool {
    let due = moment.is_some_and(|at| at <= now);
    if due {
        *moment = None;
    }
    due
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn what_is_under_way_at_the_end_has_half_of_what_the_watchdog_leaves() {
        let delivery = |json: &str| delivery_time(&farline_spec::from_json(json).unwrap());
        assert_eq!(delivery(r#"{"duration_s":2,"omit_s":1}"#), Some(18_000 * MS));
        assert_eq!(delivery(r#"{"duration_s":800}"#), Some(900_000 * MS));
        assert_eq!(delivery(r#"{"total_bytes":1000}"#), None);
        for transport in ["udp", "udt", "rbudp", "quic", "null"] {
            let spec = format!(r#"{{"duration_s":2,"transport":"{transport}"}}"#);
            assert_eq!(delivery(&spec), None, "{transport}");
        }
    }

    #[test]
    fn what_is_omitted_comes_before_the_duration() {
        let sending = |json| sending_time(&farline_spec::from_json(json).unwrap());
        assert_eq!(sending(r#"{"duration_s":2}"#), Some(2_000 * MS));
        assert_eq!(sending(r#"{"duration_s":2,"omit_s":1.5}"#), Some(3_500 * MS));
        assert_eq!(sending(r#"{"total_bytes":9,"omit_s":1}"#), None);
    }

    #[test]
    fn a_late_tick_does_not_move_the_schedule() {
        let zero = Instant::now();
        let mut times = Timetable::new(zero, 100 * MS, None, 1000 * MS);
        assert_eq!(times.next(), zero + 100 * MS);
        times.set_next_tick(zero + 130 * MS);
        assert_eq!(times.tick_at, zero + 200 * MS);
        times.set_next_tick(zero + 200 * MS);
        assert_eq!(times.tick_at, zero + 300 * MS);
        times.set_next_tick(zero + 999 * MS);
        assert_eq!(times.next(), zero + 1000 * MS);
    }

    #[test]
    fn a_moment_comes_once() {
        let now = Instant::now();
        let mut moment = Some(now);
        assert!(!take_due(&mut moment, now.checked_sub(MS).unwrap()));
        assert!(take_due(&mut moment, now));
        assert!(!take_due(&mut moment, now + MS));
    }
}
