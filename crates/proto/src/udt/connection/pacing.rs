//! When the next burst may go.

use crate::Pacer;

/// Lateness that is made up for: a thread may wait so long for a CPU.
const CATCH_UP_NS: f64 = 20_000_000.0;
/// How fast at most, as a multiple of the rate, and after what lateness at once.
const PEAK: f64 = 1.5;
const BURST_NS: f64 = 500_000.0;
/// Packets that go together are those of a 16th of the round-trip time within these bounds, so that slow and short paths
/// do not get bursts that their queues cannot hold.
const QUANTUM_MIN_NS: u64 = 100_000;
const QUANTUM_MAX_NS: u64 = 250_000;

/// Two schedules, one behind the other: packets at the congestion control's rate, payload at the user's.
#[derive(Debug)]
pub(super) struct Pacing {
    ready_ns: f64,
    /// When the peak rate allows the next burst.
    peak_ns: f64,
    quantum_ns: f64,
    stated: Option<Pacer>,
}

impl Pacing {
    pub(super) fn new(now_ns: u64, stated_bps: Option<u64>) -> Self {
        Self {
            ready_ns: now_ns as f64,
            peak_ns: now_ns as f64,
            quantum_ns: QUANTUM_MAX_NS as f64,
            stated: stated_bps.map(|bps| Pacer::new(bps, now_ns)),
        }
    }

    /// From when on the next burst may go; it may be past.
    pub(super) fn ready_ns(&self) -> u64 {
        let stated_ns = self.stated.as_ref().map_or(0, Pacer::ready_ns);
        // Upwards: what is ready at a fraction of a nanosecond is ready at the next whole one.
        (self.ready_ns.max(self.peak_ns).ceil() as u64).max(stated_ns)
    }

    /// When to wake for the next bursts: when those of a whole quantum are due, so that a fast path does not cost a
    /// wake-up each.
    pub(super) fn wake_ns(&self, rate_pps: Option<f64>, burst_packets: usize) -> u64 {
        let burst_ns = rate_pps.map_or(f64::INFINITY, |rate| burst_packets as f64 * 1e9 / rate);
        self.ready_ns() + (self.quantum_ns - burst_ns).max(0.0) as u64
    }

    /// The least round-trip time is `min_rtt_ns`.
    pub(super) fn set_round_trip(&mut self, min_rtt_ns: u64) {
        self.quantum_ns = (min_rtt_ns / 16).clamp(QUANTUM_MIN_NS, QUANTUM_MAX_NS) as f64;
    }

    /// Something else than the rate is the reason to wait now: time that passes so is not made up for.
    pub(super) fn forgo(&mut self, now_ns: u64) {
        self.ready_ns = self.ready_ns.max(now_ns as f64);
    }

    /// Packets that should go together at `rate_pps`, of `burst_packets` that can.
    pub(super) fn quantum_packets(&self, rate_pps: Option<f64>, burst_packets: usize) -> usize {
        let quantum = rate_pps.map_or(f64::INFINITY, |rate| (rate * self.quantum_ns / 1e9).ceil());
        // Saturates: a rate without bound is a large number.
        (quantum as usize).clamp(1, burst_packets)
    }

    /// Notes that `packets` with `payload_bytes` in all went now at `rate_pps`.
    pub(super) fn sent(&mut self, now_ns: u64, rate_pps: Option<f64>, packets: usize, payload_bytes: usize) {
        if let Some(stated) = &mut self.stated {
            stated.sent(now_ns, payload_bytes as u64);
        }
        let now = now_ns as f64;
        (self.ready_ns, self.peak_ns) = match rate_pps {
            Some(rate) if rate > 0.0 => {
                let cost_ns = packets as f64 * 1e9 / rate;
                (
                    self.ready_ns.max(now - CATCH_UP_NS) + cost_ns,
                    self.peak_ns.max(now - BURST_NS) + cost_ns / PEAK,
                )
            }
            _ => (now, now),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_keep_their_rate_and_a_late_sender_catches_up_faster_but_not_at_once() {
        let mut pacing = Pacing::new(0, None);
        pacing.sent(0, Some(1e6), 44, 0);
        assert_eq!(pacing.ready_ns(), 44_000);
        // 10 ms late: half a millisecond's worth at once, the rest at 1.5 times the rate.
        let (mut now_ns, mut sent) = (10_000_000, 44);
        while now_ns < 40_000_000 {
            pacing.sent(now_ns, Some(1e6), 44, 0);
            sent += 44;
            assert!(
                sent <= 44 + 750 + 44 + (now_ns - 10_000_000) * 3 / 2_000,
                "{sent} by {now_ns}"
            );
            now_ns = pacing.ready_ns().max(now_ns);
        }
        assert!((39_950..=40_050).contains(&sent), "{sent}");
        pacing.sent(now_ns, None, 44, 0);
        assert_eq!(pacing.ready_ns(), now_ns);
    }

    #[test]
    fn slow_paths_get_small_bursts() {
        let pacing = Pacing::new(0, None);
        assert_eq!(pacing.quantum_packets(Some(100.0), 44), 1);
        assert_eq!(pacing.quantum_packets(Some(40_000.0), 44), 10);
        assert_eq!(pacing.quantum_packets(Some(1e7), 44), 44);
        assert_eq!(pacing.quantum_packets(None, 44), 44);
    }

    #[test]
    fn short_paths_get_smaller_bursts_than_long_ones() {
        let mut pacing = Pacing::new(0, None);
        pacing.set_round_trip(50_000);
        assert_eq!(pacing.quantum_packets(Some(100_000.0), 44), 10);
        pacing.set_round_trip(100_000_000);
        assert_eq!(pacing.quantum_packets(Some(100_000.0), 44), 25);
    }

    #[test]
    fn waiting_for_the_window_earns_no_credit() {
        let mut pacing = Pacing::new(0, None);
        pacing.sent(0, Some(1e6), 44, 0);
        pacing.forgo(1_000_000);
        assert_eq!(pacing.ready_ns(), 1_000_000);
    }

    #[test]
    fn a_stated_rate_holds_beside_the_controls() {
        let mut pacing = Pacing::new(0, Some(8_000_000));
        pacing.sent(0, Some(1e6), 1, 1_000);
        assert_eq!(pacing.ready_ns(), 1_000_000);
    }
}
