//! Holds a run to a rate that the one who allowed it has set.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use farline_spec::unit::rate_text;
use farline_spec::{Failure, FailureKind};

/// Time over which the rate is a mean. Shorter bursts are what pacing and socket buffers are for.
const WINDOW: Duration = Duration::from_secs(2);
/// How often to look. A window is found late by at most this much.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Headers, clocks and the last block make an honest sender a little faster than agreed.
const TOLERANCE: f64 = 1.1;

/// The last two seconds of a run, and what they may hold.
#[derive(Debug)]
pub(super) struct RateGuard {
    limit_bps: u64,
    seen: VecDeque<(Instant, u64)>,
}

impl RateGuard {
    /// A guard for a run that starts at `zero`.
    pub(super) fn new(limit_bps: u64, zero: Instant) -> Self {
        Self {
            limit_bps,
            seen: VecDeque::from([(zero, 0)]),
        }
    }

    /// Notes that `bytes` have moved since the start.
    ///
    /// # Errors
    /// [`FailureKind::Limit`] when more moved within the last two seconds than the limit allows.
    pub(super) fn look(&mut self, now: Instant, bytes: u64) -> Result<(), Failure> {
        while self.seen.len() > 1 && now.duration_since(self.seen[0].0) > WINDOW {
            self.seen.pop_front();
        }
        let (since, before) = self.seen[0];
        self.seen.push_back((now, bytes));
        // A window that is not full yet counts as full: what moved in it is already too
        // much, or else time is left to say so. A late look makes the window longer.
        let window_s = now.duration_since(since).max(WINDOW).as_secs_f64();
        let rate_bps = (bytes - before.min(bytes)) as f64 * 8.0 / window_s;
        if rate_bps <= TOLERANCE * self.limit_bps as f64 {
            return Ok(());
        }
        Err(Failure::new(
            FailureKind::Limit,
            format!(
                "the rate over {window_s:.1} s was {rate_bps:.0} bit/s in total; the limit is {}",
                rate_text(self.limit_bps)
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(limit_bps: u64, bytes_at: impl Fn(u64) -> u64, looks: u64) -> Result<(), Failure> {
        let zero = Instant::now();
        let mut guard = RateGuard::new(limit_bps, zero);
        (1..=looks).try_for_each(|look| guard.look(zero + LOOK_EVERY * look as u32, bytes_at(look)))
    }

    #[test]
    fn a_rate_just_below_the_tolerance_passes_for_ever() {
        assert_eq!(feed(8_000, |look| look * 250 * 109 / 100, 1_000), Ok(()));
    }

    #[test]
    fn a_rate_above_the_tolerance_is_refused_within_the_window() {
        let failure = feed(8_000, |look| look * 250 * 112 / 100, 12).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Limit);
        assert!(failure.message.contains("the limit is 8 kbit/s"), "{failure}");
    }

    #[test]
    fn a_burst_of_more_than_a_window_holds_is_refused_at_once() {
        assert!(feed(8_000, |_| 2_201, 1).is_err());
        assert!(feed(8_000, |_| 2_199, 1).is_ok());
    }

    #[test]
    fn a_fast_second_after_a_slow_minute_is_seen() {
        let bytes_at = |look: u64| look + look.saturating_sub(240) * 2_000;
        assert!(feed(8_000, bytes_at, 240).is_ok());
        assert!(feed(8_000, bytes_at, 244).is_err());
    }

    #[test]
    fn memory_of_the_past_is_bounded() {
        let zero = Instant::now();
        let mut guard = RateGuard::new(u64::MAX, zero);
        for look in 0..10_000 {
            guard.look(zero + LOOK_EVERY * look, u64::from(look)).unwrap();
        }
        assert!(guard.seen.len() < 16);
    }
}
