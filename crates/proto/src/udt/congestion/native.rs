//! The reference library's rate control (CUDTCC of libudt 4.11; draft-gg-udt, section 4).
//!
//! A rate that grows every 10 ms by a step that depends on the order of magnitude of the spare capacity, and falls by
//! a ninth at a loss. What differs from the reference: periods are not rounded up to whole microseconds (at 10 Gbit/s
//! that made one decrease cost 42 %); a slow start that ends before the peer has reported a rate of arrival goes on
//! with this end's own measurement instead of 16 packets a second; the rate has a floor of 16 packets per window time.

use super::{AckEvent, Control, ControlConfig, LossEvent, Random, SYN_NS, first_window, seconds};

/// How much longer the period is after a decrease.
const DECREASE: f64 = 1.125;
/// Most decreases in one congestion period.
const MOST_DECREASES: u32 = 5;
/// Step of the rate per spare bit (beta of the draft), and the least step, in packets per SYN.
const STEP_PER_BPS: f64 = 1.5e-6;
const LEAST_STEP_PACKETS: f64 = 0.01;
/// Packets that the window has on top of what a window time carries, and least packets of a window time.
const SPARE_PACKETS: f64 = 16.0;
/// Weight of a new measurement in this end's own mean.
const WEIGHT: f64 = 0.125;

/// The state between the losses of two congestion periods (sections 4 and 5 of the draft).
#[derive(Debug)]
struct Period {
    /// Losses below this index belong to the period that has begun.
    decided_until: u64,
    reports: u32,
    mean_reports: f64,
    decreases: u32,
    /// Every so many reports in a period there is one more decrease.
    decrease_every: u32,
}

/// A rate and a window.
#[derive(Debug)]
pub(super) struct Native {
    window_packets: f64,
    first_packets: f64,
    /// None in slow start.
    period_s: Option<f64>,
    last_decrease_s: f64,
    period: Period,
    is_heard: bool,
    is_loss_seen: bool,
    decided_ns: u64,
    acked_packets: u64,
    packet_bits: f64,
    rtt_s: f64,
    arrival_pps: Option<f64>,
    own_pps: Option<f64>,
    capacity_pps: Option<f64>,
    random: Random,
}

impl Native {
    pub(super) fn new(config: &ControlConfig) -> Self {
        let first_packets = first_window(config.burst_packets);
        Self {
            window_packets: first_packets,
            first_packets,
            period_s: None,
            last_decrease_s: 1e-6,
            period: Period {
                decided_until: 0,
                reports: 1,
                mean_reports: 1.0,
                decreases: 1,
                decrease_every: 1,
            },
            is_heard: false,
            is_loss_seen: false,
            decided_ns: config.now_ns,
            acked_packets: 0,
            packet_bits: (config.packet_bytes + 28) as f64 * 8.0,
            rtt_s: 0.1,
            arrival_pps: None,
            own_pps: None,
            capacity_pps: None,
            random: Random(config.seed),
        }
    }

    /// The rate of delivery: what the peer reports, this end's own measurement without that.
    fn delivery_pps(&self) -> Option<f64> {
        self.arrival_pps.filter(|pps| *pps > 0.0).or(self.own_pps)
    }

    /// A window's time: a round trip and the time between two acknowledgements.
    fn window_s(&self) -> f64 {
        self.rtt_s + seconds(SYN_NS)
    }

    fn set_period(&mut self, period_s: f64) {
        self.period_s = Some(period_s.min(self.window_s() / SPARE_PACKETS));
    }

    fn leave_slow_start(&mut self) {
        let by_window_s = self.window_s() / self.window_packets;
        let period_s = self.delivery_pps().map_or(by_window_s, |pps| 1.0 / pps);
        self.set_period(period_s);
    }

    fn increase(&mut self, period_s: f64) {
        let rate_pps = 1.0 / period_s;
        let capacity_pps = self.capacity_pps.or(self.own_pps).unwrap_or(0.0);
        let mut spare_pps = capacity_pps - rate_pps;
        if period_s > self.last_decrease_s {
            spare_pps = spare_pps.min(capacity_pps / 9.0);
        }
        let step_packets = if spare_pps > 0.0 {
            let step = STEP_PER_BPS * 8.0 / self.packet_bits * power_above(spare_pps * self.packet_bits);
            step.max(LEAST_STEP_PACKETS)
        } else {
            LEAST_STEP_PACKETS
        };
        let syn_s = seconds(SYN_NS);
        self.set_period(period_s * syn_s / (period_s * step_packets + syn_s));
    }

    fn decrease(&mut self) {
        if let Some(period_s) = self.period_s {
            self.set_period(period_s * DECREASE);
        }
    }

    fn begin_period(&mut self, loss: &LossEvent) {
        self.last_decrease_s = self.period_s.unwrap_or(self.last_decrease_s);
        self.decrease();
        let period = &mut self.period;
        period.mean_reports += WEIGHT * (f64::from(period.reports) - period.mean_reports);
        period.reports = 1;
        period.decreases = 1;
        period.decided_until = loss.largest_sent + 1;
        period.decrease_every = (period.mean_reports * self.random.uniform()).ceil().max(1.0) as u32;
    }

    fn note_rates(&mut self, ack: &AckEvent) {
        self.is_heard = true;
        self.rtt_s = seconds(ack.smoothed_rtt_ns);
        self.arrival_pps = ack.arrival_pps.or(self.arrival_pps);
        self.capacity_pps = ack.capacity_pps.or(self.capacity_pps);
        if let Some(sample) = ack.sample {
            let mean = self.own_pps.unwrap_or(sample.pps);
            self.own_pps = Some(mean + WEIGHT * (sample.pps - mean));
        }
    }
}

impl Control for Native {
    fn name(&self) -> &'static str {
        "native"
    }

    fn on_ack(&mut self, ack: &AckEvent) {
        self.note_rates(ack);
        self.acked_packets += ack.acked_packets;
        if self.acked_packets == 0 || ack.now_ns.saturating_sub(self.decided_ns) < SYN_NS {
            return;
        }
        self.decided_ns = ack.now_ns;
        let acked_packets = std::mem::take(&mut self.acked_packets);
        if self.period_s.is_none() {
            self.window_packets += acked_packets as f64;
            if self.window_packets > ack.flow_window_packets as f64 {
                self.leave_slow_start();
            }
        } else if let Some(pps) = self.delivery_pps() {
            self.window_packets = (pps * self.window_s() + SPARE_PACKETS).max(self.first_packets);
        }
        if let Some(period_s) = self.period_s.filter(|_| !self.is_loss_seen) {
            self.increase(period_s);
        }
        self.is_loss_seen = false;
    }

    fn on_loss(&mut self, loss: &LossEvent) {
        if self.period_s.is_none() {
            self.leave_slow_start();
        }
        self.is_loss_seen = true;
        if loss.first >= self.period.decided_until {
            self.begin_period(loss);
            return;
        }
        self.period.reports = self.period.reports.saturating_add(1);
        let is_due = self.period.reports % self.period.decrease_every == 0;
        if self.period.decreases < MOST_DECREASES && is_due {
            self.period.decreases += 1;
            self.period.decided_until = loss.largest_sent + 1;
            self.decrease();
        }
    }

    fn on_timeout(&mut self, _now_ns: u64, _in_flight: u64) {
        // Before the first acknowledgement it says no more than that the round trip is long.
        if self.period_s.is_none() && self.is_heard {
            self.leave_slow_start();
        }
    }

    fn on_delay_warning(&mut self, _now_ns: u64) {
        self.decrease();
    }

    fn window_packets(&self) -> f64 {
        self.window_packets
    }

    fn rate_pps(&self) -> Option<f64> {
        self.period_s.map(|period_s| 1.0 / period_s)
    }
}

/// The least power of ten that is at least `value`.
fn power_above(value: f64) -> f64 {
    let mut power = 1.0;
    while power < value {
        power *= 10.0;
    }
    power
}
