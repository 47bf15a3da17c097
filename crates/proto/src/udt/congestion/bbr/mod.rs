//! From a model of the path: after BBR (draft-ietf-ccwg-bbr, which describes its version 3).
//!
//! The rate is what the path was seen to deliver, the window is twice what fills it at its least round-trip time.
//! Losses do not slow it down while they are so few that they may be by chance (2 % of a round); more of them bound
//! what is under way. From time to time it sends more than the path was seen to carry, to find out if it carries
//! more.
//!
//! `model` is what is known of the path, `cycle` which phase comes when; here is what follows: window and rate.
//!
//! What differs from the draft, since a UDT peer acknowledges on a clock (every 1 or 10 ms) and packets go in bursts:
//! the window has room for the clumps in which acknowledgements come and for three bursts; a round-trip time within
//! two bursts of the least one counts as the least one; startup has a smaller window on long paths, and ends on a
//! plateau of 10 ms or more, earlier where a queue of its own can be seen; losses of what was under way at an answer
//! are not answered again; the bound rises by shares of itself, not by packets; the flow draws back to half a
//! bandwidth-delay product every ten seconds only if the least round-trip time was not seen meanwhile.

mod cycle;
mod model;

use super::{AckEvent, Control, ControlConfig, LossEvent, Random, first_window};
use cycle::Cycle;
use model::{Bandwidth, Clumps, Losses, RoundTrip};

/// 4 ln 2: the least rate gain that lets the rate of delivery double every round (draft, section 5.6.2).
const STARTUP_GAIN: f64 = 2.77;
/// Half the rate of the path, so that startup's queue drains in about a round (draft, section 5.3.2).
const DRAIN_GAIN: f64 = 0.5;
/// The rate stays below the path's by this share, so that a queue drains in time.
const MARGIN: f64 = 0.01;
/// How late an end may be for want of a CPU: the least round-trip time of a short path says nothing of that.
const HOST_S: f64 = 0.001;
/// Time of sending that leaves in one burst; the connection's pacing has the same.
const QUANTUM_S: f64 = 0.000_25;
/// Most time of sending that clumps of acknowledgements add to the window.
const CLUMP_S: f64 = 0.025;
/// Fewest packets under way.
const LEAST_PACKETS: f64 = 8.0;

/// The model and where in its cycle it is.
#[derive(Debug)]
pub(super) struct Bbr {
    burst_packets: f64,
    first_packets: f64,
    bandwidth: Bandwidth,
    rtt: RoundTrip,
    clumps: Clumps,
    losses: Losses,
    cycle: Cycle,
    /// Most packets under way that the path was seen to take.
    bound_packets: Option<f64>,
    /// Losses of packets before this index have been answered.
    answered_below: u64,
    window_packets: f64,
    /// The window is held down until something arrives again.
    is_stalled: bool,
    round: u64,
    delivered: u64,
    /// Packets that were under way when those went that were acknowledged last.
    sampled_in_flight: f64,
    random: Random,
}

impl Bbr {
    pub(super) fn new(config: &ControlConfig) -> Self {
        let first_packets = first_window(config.burst_packets);
        Self {
            burst_packets: config.burst_packets as f64,
            first_packets,
            bandwidth: Bandwidth::default(),
            rtt: RoundTrip::default(),
            clumps: Clumps::default(),
            losses: Losses::default(),
            cycle: Cycle::new(config.now_ns),
            bound_packets: None,
            answered_below: 0,
            window_packets: first_packets,
            is_stalled: false,
            round: 0,
            delivered: 0,
            sampled_in_flight: first_packets,
            random: Random(config.seed),
        }
    }

    /// One bandwidth-delay product.
    fn bdp_packets(&self) -> f64 {
        self.bandwidth.pps() * self.rtt.seconds().unwrap_or(0.0)
    }

    /// What leaves at once at the present rate.
    fn quantum_packets(&self) -> f64 {
        (self.bandwidth.pps() * QUANTUM_S).clamp(1.0, self.burst_packets)
    }

    /// What is under way besides the bandwidth-delay product: clumps of acknowledgements, or what comes while the
    /// other end's thread waits for a CPU, and bursts.
    fn slack_packets(&self) -> f64 {
        let clump = self.clumps.most_packets().max(self.bandwidth.pps() * HOST_S);
        clump + 3.0 * self.quantum_packets()
    }

    /// What must be under way to keep the path full.
    fn needed_packets(&self) -> f64 {
        self.bdp_packets() + self.slack_packets()
    }

    fn least_window(&self) -> f64 {
        (4.0 * self.quantum_packets()).max(LEAST_PACKETS)
    }

    fn update_model(&mut self, ack: &AckEvent, arrived: u64) -> bool {
        self.losses.note_delivered(arrived);
        let Some(sample) = ack.sample else { return false };
        let is_round_start = sample.round > self.round;
        if is_round_start {
            self.round = sample.round;
            self.losses.begin_round(ack.now_ns);
        }
        self.sampled_in_flight = sample.prior_in_flight as f64;
        let (pps, is_limited) = (sample.pps, sample.is_app_limited);
        if self.cycle.is_startup_over() {
            self.bandwidth.observe(ack.now_ns, pps, arrived, is_limited);
        } else {
            self.bandwidth.observe_now(pps, is_limited);
        }
        self.observe_rtt(ack, sample.rtt_ns);
        let pps = self.bandwidth.pps();
        let limit = (pps * CLUMP_S).min(self.window_packets);
        self.clumps.observe(ack.now_ns, self.round, arrived, pps, limit);
        is_round_start
    }

    /// A time that an acknowledgement measures may be too long by the wait for a repeat, the smoothed one may not.
    fn observe_rtt(&mut self, ack: &AckEvent, rtt_ns: Option<u64>) {
        // Before a round trip was measured without doubt, what looks like one may be a packet that was sent twice.
        if let Some(rtt_ns) = rtt_ns.filter(|_| ack.min_rtt_ns > 0) {
            let rtt_ns = rtt_ns.min(ack.smoothed_rtt_ns).max(ack.min_rtt_ns);
            let slack_s = 2.0 * self.quantum_packets() / self.bandwidth.pps();
            self.rtt.observe(ack.now_ns, rtt_ns, (slack_s * 1e9) as u64);
        }
    }

    fn update_window(&mut self, arrived: u64) {
        let target = self.window_gain() * self.bdp_packets() + self.slack_packets();
        if self.cycle.is_startup_over() {
            self.window_packets = target;
        } else if self.window_packets < target || self.delivered < 2 * self.first_packets as u64 {
            self.window_packets += arrived as f64;
        }
        self.window_packets = self.window_packets.min(self.bound_now()).max(self.least_window());
    }
}

impl Control for Bbr {
    fn name(&self) -> &'static str {
        "bbr"
    }

    fn on_ack(&mut self, ack: &AckEvent) {
        let arrived = ack.delivered.saturating_sub(self.delivered);
        if arrived == 0 {
            return;
        }
        self.delivered = ack.delivered;
        self.is_stalled = false;
        let is_round_start = self.update_model(ack, arrived);
        self.advance(ack, is_round_start);
        self.update_window(arrived);
    }

    fn on_loss(&mut self, loss: &LossEvent) {
        // What was under way when the flow drew back tells nothing new.
        if loss.last < self.answered_below {
            return;
        }
        self.losses.note_lost(loss.packets);
        let round_packets = self.bandwidth.pps() * self.losses.round_s(self.rtt.ns());
        if self.losses.is_news(round_packets) && self.bound(loss.now_ns) {
            self.answered_below = loss.largest_sent + 1;
        }
    }

    fn on_timeout(&mut self, _now_ns: u64, _in_flight: u64) {
        self.is_stalled = true;
        self.answered_below = 0;
    }

    fn window_packets(&self) -> f64 {
        if self.is_stalled {
            self.least_window()
        } else {
            self.window_packets
        }
    }

    fn rate_pps(&self) -> Option<f64> {
        let mut pps = self.bandwidth.pps();
        if !self.cycle.is_startup_over() {
            // What a short opening exchange measured is no measure of the path: the first window goes in a round trip.
            pps = pps.max(self.first_packets / self.rtt.seconds()?);
        }
        // A first sample without a round-trip time is no measure of the path.
        (pps > 0.0 && self.rtt.ns() > 0).then(|| self.cycle.phase.pacing_gain() * (1.0 - MARGIN) * pps)
    }
}
