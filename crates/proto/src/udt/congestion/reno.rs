//! A window as TCP's NewReno has it (RFC 5681, RFC 6582), paced so that a window does not leave as one burst.

use super::{AckEvent, Control, ControlConfig, LossEvent, first_window, seconds};

/// How much faster than a window per round trip: enough to fill a growing window, as Linux paces TCP.
const SLOW_START_PACE: f64 = 2.0;
const AVOIDANCE_PACE: f64 = 1.25;
/// Least window after a reduction (RFC 5681, section 3.1, has two segments).
const LEAST_PACKETS: f64 = 4.0;
/// Delay of acknowledgements that the pace must not be slowed by: on short paths the round trip is mostly that.
const ACK_DELAY_S: f64 = 0.001;

/// A congestion window.
#[derive(Debug)]
pub(super) struct Reno {
    window_packets: f64,
    threshold_packets: f64,
    /// Losses below this index belong to the reduction that was made for them already.
    reduced_until: u64,
    /// No growth before everything below this index has arrived.
    recovered_from: u64,
    /// Nothing has arrived since a time-out.
    is_timed_out: bool,
    rtt_s: Option<f64>,
}

impl Reno {
    pub(super) fn new(config: &ControlConfig) -> Self {
        Self {
            window_packets: first_window(config.burst_packets),
            threshold_packets: f64::INFINITY,
            reduced_until: 0,
            recovered_from: 0,
            is_timed_out: false,
            rtt_s: None,
        }
    }

    fn is_slow_start(&self) -> bool {
        self.window_packets < self.threshold_packets
    }

    fn grow(&mut self, acked_packets: f64) {
        if self.is_slow_start() {
            self.window_packets += acked_packets;
        } else {
            self.window_packets += acked_packets / self.window_packets;
        }
    }
}

impl Control for Reno {
    fn name(&self) -> &'static str {
        "reno"
    }

    fn on_ack(&mut self, ack: &AckEvent) {
        self.rtt_s = Some(seconds(ack.smoothed_rtt_ns));
        // One without news is an answer to what was sent before.
        if self.is_timed_out && ack.acked_packets > 0 {
            self.is_timed_out = false;
            self.reduced_until = ack.largest_sent + 1;
        }
        // A window that is not used says nothing about the path (RFC 7661), and one that recovers does not grow,
        // unless it recovers from a time-out.
        let was_in_flight = ack.in_flight + ack.acked_packets;
        // While holes are repaired there is something to send; what a time-out took for lost may have arrived, and then
        // less is counted as under way than is.
        let is_repairing = ack.next < self.reduced_until;
        let is_used = is_repairing || was_in_flight as f64 >= self.window_packets / 2.0;
        if is_used && ack.next >= self.recovered_from {
            self.grow(ack.acked_packets as f64);
        }
    }

    fn on_loss(&mut self, loss: &LossEvent) {
        if loss.first < self.reduced_until || self.is_timed_out {
            return;
        }
        self.reduced_until = loss.largest_sent + 1;
        self.recovered_from = self.reduced_until;
        let was_in_flight = (loss.in_flight + loss.packets) as f64;
        self.threshold_packets = (was_in_flight.min(self.window_packets) / 2.0).max(LEAST_PACKETS);
        self.window_packets = self.threshold_packets;
    }

    fn on_timeout(&mut self, _now_ns: u64, in_flight: u64) {
        // Before the first acknowledgement it says no more than that the round trip is long, and one that follows
        // another nothing new (RFC 5681, section 3.1).
        if self.rtt_s.is_some() && !self.is_timed_out {
            let used = (in_flight as f64).min(self.window_packets);
            self.threshold_packets = (used / 2.0).max(LEAST_PACKETS);
        }
        self.is_timed_out = true;
        self.recovered_from = 0;
        self.window_packets = LEAST_PACKETS;
    }

    fn window_packets(&self) -> f64 {
        self.window_packets
    }

    fn rate_pps(&self) -> Option<f64> {
        let gain = if self.is_slow_start() {
            SLOW_START_PACE
        } else {
            AVOIDANCE_PACE
        };
        let rtt_s = self.rtt_s?;
        Some(gain * self.window_packets / (rtt_s - ACK_DELAY_S).max(rtt_s / 4.0).max(1e-6))
    }
}
