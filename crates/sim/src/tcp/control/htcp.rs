//! H-TCP (Leith and Shorten, PFLDnet 2004; draft-leith-tcp-htcp-06).

use super::{AckEvent, CongestionControl};
use crate::{NS_PER_S, seconds};

/// Time after congestion for which it is Reno (delta_L).
const LEGACY_S: f64 = 1.0;

/// Round trip at which growth is not scaled, and the limits of the scale, as kernels have them.
const REFERENCE_RTT_S: f64 = 0.1;

/// Change of throughput from one congestion to the next above which half the window is given up (delta_B).
const THROUGHPUT_CHANGE: f64 = 0.2;

/// Growth follows the time since the last congestion, the share given up follows the queue.
#[derive(Debug)]
pub struct Htcp {
    congested_ns: Option<u64>,
    beta: f64,
    min_rtt_ns: u64,
    max_rtt_ns: u64,
    /// Segments acknowledged in the round trip that is being counted, and when it began.
    counted: f64,
    counted_from_ns: u64,
    /// Segments per second: the largest round of this epoch and of the one before.
    rate: f64,
    last_rate: f64,
}

impl Default for Htcp {
    fn default() -> Self {
        Self {
            congested_ns: None,
            beta: 0.5,
            min_rtt_ns: u64::MAX,
            max_rtt_ns: 0,
            counted: 0.0,
            counted_from_ns: 0,
            rate: 0.0,
            last_rate: 0.0,
        }
    }
}

/// Segments more per round trip, `since_s` after congestion: 1 + 10 (t - 1) + ((t - 1) / 2)^2 beyond the first second.
pub fn increase(since_s: f64) -> f64 {
    if since_s <= LEGACY_S {
        return 1.0;
    }
    let beyond_s = since_s - LEGACY_S;
    1.0 + 10.0 * beyond_s + (beyond_s / 2.0) * (beyond_s / 2.0)
}

/// How the increase is scaled to the round trip, so that growth per second does not depend on it.
pub fn rtt_scale(rtt_s: f64) -> f64 {
    (rtt_s / REFERENCE_RTT_S).clamp(0.1, 2.0)
}

impl Htcp {
    fn count(&mut self, event: &AckEvent<'_>) {
        self.counted += event.segments;
        let round_ns = event.now_ns - self.counted_from_ns;
        if round_ns < event.rtt.smoothed_ns().max(1) {
            return;
        }
        self.rate = self.rate.max(self.counted / seconds(round_ns));
        self.counted = 0.0;
        self.counted_from_ns = event.now_ns;
    }

    /// The share kept: what empties the queue and no more, unless the throughput has changed a lot.
    fn adapt(&self) -> f64 {
        let changed = (self.rate - self.last_rate).abs() > THROUGHPUT_CHANGE * self.last_rate;
        if changed || self.max_rtt_ns == 0 {
            return 0.5;
        }
        (self.min_rtt_ns as f64 / self.max_rtt_ns as f64).clamp(0.5, 0.8)
    }
}

impl CongestionControl for Htcp {
    fn observe(&mut self, event: &AckEvent<'_>) {
        self.min_rtt_ns = event.rtt.min_ns();
        self.max_rtt_ns = self.max_rtt_ns.max(event.rtt.latest_ns());
        self.count(event);
    }

    fn grow(&mut self, window: f64, event: &AckEvent<'_>) -> f64 {
        let since_ns = event.now_ns - *self.congested_ns.get_or_insert(event.now_ns);
        let scaled =
            (increase(since_ns as f64 / NS_PER_S as f64) * rtt_scale(seconds(self.min_rtt_ns))).max(1.0);
        window + 2.0 * (1.0 - self.beta) * scaled * event.segments / window
    }

    fn reduce(&mut self, now_ns: u64, window: f64) -> f64 {
        self.beta = self.adapt();
        self.congested_ns = Some(now_ns);
        self.last_rate = self.rate;
        self.rate = 0.0;
        self.max_rtt_ns = 0;
        window * self.beta
    }
}

#[cfg(test)]
mod tests {
    use super::{increase, rtt_scale};

    #[test]
    fn growth_is_renos_for_a_second_and_then_quadratic() {
        let growth: Vec<f64> = [0.0, 1.0, 2.0, 3.0, 11.0].into_iter().map(increase).collect();
        assert_eq!(growth, [1.0, 1.0, 11.25, 22.0, 126.0]);
        assert_eq!(
            (rtt_scale(0.001), rtt_scale(0.05), rtt_scale(0.366)),
            (0.1, 0.5, 2.0)
        );
    }
}
