//! Round-trip times: smoothed, their deviation, the least.

/// Before the first sample (libudt 4.11).
const INITIAL_NS: u64 = 100_000_000;
const INITIAL_VARIANCE_NS: u64 = 50_000_000;

/// Estimate of the round-trip time with the weights of draft-gg-udt, section 3.6: 1/8 and 1/4.
#[derive(Debug, Clone)]
pub(super) struct RoundTrip {
    smoothed_ns: u64,
    variance_ns: u64,
    min_ns: Option<u64>,
}

impl RoundTrip {
    pub(super) fn new() -> Self {
        Self {
            smoothed_ns: INITIAL_NS,
            variance_ns: INITIAL_VARIANCE_NS,
            min_ns: None,
        }
    }

    /// A time measured here. The first one replaces the guess (RFC 6298, section 2.2).
    pub(super) fn sample(&mut self, rtt_ns: u64) {
        if self.min_ns.is_none() {
            self.smoothed_ns = rtt_ns;
            self.variance_ns = rtt_ns / 2;
            self.min_ns = Some(rtt_ns);
            return;
        }
        let difference_ns = self.smoothed_ns.abs_diff(rtt_ns);
        self.variance_ns = (3 * self.variance_ns + difference_ns) / 4;
        self.smoothed_ns = (7 * self.smoothed_ns + rtt_ns) / 8;
        self.min_ns = self.min_ns.map(|min_ns| min_ns.min(rtt_ns));
    }

    pub(super) fn smoothed_ns(&self) -> u64 {
        self.smoothed_ns
    }

    pub(super) fn variance_ns(&self) -> u64 {
        self.variance_ns
    }

    /// The least one; 0 before the first sample.
    pub(super) fn min_ns(&self) -> u64 {
        self.min_ns.unwrap_or(0)
    }

    /// After this long an answer is overdue.
    pub(super) fn overdue_ns(&self) -> u64 {
        (self.smoothed_ns + 4 * self.variance_ns).max(self.smoothed_ns * 5 / 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sample_counts_whole_and_later_ones_an_eighth() {
        let mut rtt = RoundTrip::new();
        assert_eq!((rtt.smoothed_ns(), rtt.min_ns()), (INITIAL_NS, 0));
        rtt.sample(8_000);
        assert_eq!((rtt.smoothed_ns(), rtt.variance_ns()), (8_000, 4_000));
        rtt.sample(16_000);
        assert_eq!((rtt.smoothed_ns(), rtt.variance_ns()), (9_000, 5_000));
        assert_eq!(rtt.min_ns(), 8_000);
    }
}
