//! Round-trip time and the retransmission time-out that follows from it (RFC 6298).

use crate::NS_PER_S;

/// Longest time-out (RFC 6298, 2.5, allows any of 60 s and more).
const MAX_TIMEOUT_NS: u64 = 60 * NS_PER_S;

/// Smoothed round-trip time, its variation, and the time-out.
#[derive(Debug, Clone)]
pub struct RttEstimator {
    min_timeout_ns: u64,
    smoothed_ns: Option<u64>,
    variation_ns: u64,
    latest_ns: u64,
    min_ns: u64,
    backoff: u32,
}

impl RttEstimator {
    /// An estimator without a sample; `min_timeout_ns` is 1 s by RFC 6298, 2.4.
    pub fn new(min_timeout_ns: u64) -> Self {
        Self {
            min_timeout_ns,
            smoothed_ns: None,
            variation_ns: 0,
            latest_ns: 0,
            min_ns: u64::MAX,
            backoff: 0,
        }
    }

    /// Takes a sample of a segment that was sent once (RFC 6298, 2.2 and 2.3) and ends any back-off.
    pub fn sample(&mut self, rtt_ns: u64) {
        self.latest_ns = rtt_ns;
        self.min_ns = self.min_ns.min(rtt_ns);
        self.backoff = 0;
        let Some(smoothed_ns) = self.smoothed_ns else {
            self.smoothed_ns = Some(rtt_ns);
            self.variation_ns = rtt_ns / 2;
            return;
        };
        self.variation_ns = (3 * self.variation_ns + smoothed_ns.abs_diff(rtt_ns)) / 4;
        self.smoothed_ns = Some((7 * smoothed_ns + rtt_ns) / 8);
    }

    /// Doubles the time-out (RFC 6298, 5.5).
    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(16);
    }

    /// The time-out as it stands; 1 s before the first sample, or the minimum if that is more (RFC 6298, 2.1).
    pub fn timeout_ns(&self) -> u64 {
        let base_ns = match self.smoothed_ns {
            Some(smoothed_ns) => smoothed_ns + 4 * self.variation_ns,
            None => NS_PER_S,
        };
        (base_ns.max(self.min_timeout_ns) << self.backoff).min(MAX_TIMEOUT_NS)
    }

    /// Smoothed round-trip time; 0 before the first sample.
    pub fn smoothed_ns(&self) -> u64 {
        self.smoothed_ns.unwrap_or(0)
    }

    /// The latest sample; 0 before the first.
    pub fn latest_ns(&self) -> u64 {
        self.latest_ns
    }

    /// Smallest sample; `u64::MAX` before the first.
    pub fn min_ns(&self) -> u64 {
        self.min_ns
    }
}

#[cfg(test)]
mod tests {
    use super::RttEstimator;

    #[test]
    fn the_first_sample_sets_three_times_itself_and_the_next_follow_the_gains() {
        let mut rtt = RttEstimator::new(0);
        assert_eq!(rtt.timeout_ns(), 1_000_000_000);
        rtt.sample(100_000_000);
        assert_eq!(rtt.timeout_ns(), 300_000_000);
        rtt.sample(180_000_000);
        assert_eq!(
            (rtt.smoothed_ns(), rtt.timeout_ns()),
            (110_000_000, 110_000_000 + 4 * 57_500_000)
        );
        assert_eq!((rtt.min_ns(), rtt.latest_ns()), (100_000_000, 180_000_000));
    }

    #[test]
    fn timeouts_double_up_to_a_minute_and_a_sample_ends_it() {
        let mut rtt = RttEstimator::new(1_000_000_000);
        rtt.sample(10_000_000);
        let mut timeouts_s = Vec::new();
        for _ in 0..8 {
            timeouts_s.push(rtt.timeout_ns() / 1_000_000_000);
            rtt.back_off();
        }
        assert_eq!(timeouts_s, [1, 2, 4, 8, 16, 32, 60, 60]);
        rtt.sample(10_000_000);
        assert_eq!(rtt.timeout_ns(), 1_000_000_000);
    }
}
