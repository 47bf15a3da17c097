//! Round-trip times: smoothed, their deviation, the least.

/// Before the first sample (libudt 4.11).
const INITIAL_NS: u64 = 100_000_000;
const INITIAL_VARIANCE_NS: u64 = 50_000_000;
/// How much longer than the path's a round trip is by the wait of an ACK, and by what it waits for a CPU.
const ACK_DELAY_NS: u64 = 2_000_000;

/// Estimate of the round-trip time with the weights of draft-gg-udt, section 3.6: 1/8 and 1/4.
#[derive(Debug, Clone)]
pub(super) struct RoundTrip {
    smoothed_ns: u64,
    variance_ns: u64,
    min_ns: Option<u64>,
    /// That of the packets resolved last: unlike the smoothed one it does not grow while holes are being filled.
    latest_ns: u64,
}

impl RoundTrip {
    pub(super) fn new() -> Self {
        Self {
            smoothed_ns: INITIAL_NS,
            variance_ns: INITIAL_VARIANCE_NS,
            min_ns: None,
            latest_ns: 0,
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

    /// Packets were resolved that had been sent `rtt_ns` ago.
    pub(super) fn resolved(&mut self, rtt_ns: u64) {
        self.latest_ns = rtt_ns;
    }

    /// Packets are sent after a pause: queues may have drained since.
    pub(super) fn resumed(&mut self) {
        self.latest_ns = 0;
    }

    /// What was sent less than this ago cannot have been missed at the other end: a report crossed it, or it still
    /// waits in a queue. Less an eighth and the delay of an ACK, which a report does not have.
    pub(super) fn report_age_ns(&self) -> u64 {
        // After a cut one packet may have taken as long as that; the smoothed time does not follow at once.
        let latest_ns = self.latest_ns.min(self.smoothed_ns);
        let crossed_ns = (latest_ns - latest_ns / 8).saturating_sub(ACK_DELAY_NS);
        crossed_ns.max(self.min_ns() / 4)
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

    #[test]
    fn a_report_younger_than_the_latest_round_trip_tells_nothing_of_a_repetition() {
        let mut rtt = RoundTrip::new();
        rtt.sample(80_000_000);
        assert_eq!(rtt.report_age_ns(), 20_000_000, "nothing was resolved");
        rtt.resolved(80_000_000);
        assert_eq!(rtt.report_age_ns(), 68_000_000);
        rtt.resolved(5_000_000_000);
        assert_eq!(rtt.report_age_ns(), 68_000_000, "sent before a cut");
        rtt.resumed();
        assert_eq!(rtt.report_age_ns(), 20_000_000, "after a pause");
    }
}
