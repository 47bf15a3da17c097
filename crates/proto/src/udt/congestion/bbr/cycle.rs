//! Which phase comes when.

use super::{Bbr, DRAIN_GAIN, STARTUP_GAIN};
use crate::udt::congestion::AckEvent;

/// Growth of the rate per round that shows that startup has not found the path's rate yet.
const STARTUP_GROWTH: f64 = 1.25;
/// Rounds, and at least as much time, without such growth: on very short paths a round is one acknowledgement.
const STARTUP_ROUNDS: u64 = 3;
/// The same where a queue of this flow's own can be seen. Not one: where round trips vary, one may grow by less.
const QUEUED_ROUNDS: u64 = 2;
const STARTUP_LEAST_NS: u64 = 10_000_000;
/// A shorter round trip: several rounds' losses are counted together, and longer ones are as likely the hosts' as a queue's.
const SHORT_NS: u64 = 10_000_000;
/// Round-trip time that shows a queue, in least ones, packets under way that show that it is this flow's own, in
/// bandwidth-delay products, and by how much the time must be longer at least: hosts are late too.
const QUEUED: f64 = 1.2;
const QUEUED_LEAST_NS: f64 = 5_000_000.0;
/// Most rounds of draining after startup.
const DRAIN_ROUNDS: u64 = 5;
/// Time between two probes for more rate, drawn between these, in seconds.
const PROBE_AFTER_S: [f64; 2] = [2.0, 3.0];
/// Rounds after which a probe comes earlier than that, so that Reno flows beside are left their share, but not
/// earlier than this.
const PROBE_ROUNDS: u64 = 63;
const PROBE_LEAST_NS: u64 = 200_000_000;
/// Share of the bound on packets under way that is left free between probes.
const HEADROOM: f64 = 0.85;
/// Packets under way that show that a probe has built a queue, in bandwidth-delay products.
const PROBED: f64 = 1.25;
/// Least time of a probe: two of the times over which the rate of delivery is averaged.
const PROBE_UP_LEAST_NS: u64 = 20_000_000;
/// Share by which the bound rises in the first round of a probe; twice as much in each round that follows.
const BOUND_STEP: f64 = 1.0 / 64.0;
/// Rate after a bound was met and at losses that are not by chance.
const BETA: f64 = 0.7;
/// Time with half a bandwidth-delay product under way, to see the least round-trip time again.
const PROBE_RTT_NS: u64 = 200_000_000;

/// Phases of draft-ietf-ccwg-bbr, section 4.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Multiplies the rate every round.
    Startup,
    /// Empties the queue that startup made.
    Drain,
    /// Empties the queue that a probe made, and leaves room for others.
    Down,
    /// Holds what was found.
    Cruise,
    /// Fills the path before a probe, so that the probe's losses are its own.
    Refill,
    /// Probes for more.
    Up,
    /// Draws back to see the least round-trip time.
    ProbeRtt,
}

impl Phase {
    /// Rate in terms of the path's.
    pub(super) fn pacing_gain(self) -> f64 {
        match self {
            Self::Startup => STARTUP_GAIN,
            Self::Drain => DRAIN_GAIN,
            Self::Down => 0.9,
            Self::Up => 1.25,
            Self::Cruise | Self::Refill | Self::ProbeRtt => 1.0,
        }
    }
}

/// Where the cycle stands.
#[derive(Debug)]
pub(super) struct Cycle {
    pub(super) phase: Phase,
    since_ns: u64,
    since_round: u64,
    /// When the last probe ended, and how long to wait for the next.
    probed_ns: u64,
    probed_round: u64,
    wait_ns: u64,
    /// Startup: the rate that growth is measured against, and when it was reached.
    plateau_pps: f64,
    plateau_ns: u64,
    plateau_round: u64,
    /// Startup: more was lost than chance explains, once.
    is_loss_seen: bool,
    /// ProbeRtt: since when as little is under way as is wanted.
    drained: Option<(u64, u64)>,
}

impl Cycle {
    pub(super) fn new(now_ns: u64) -> Self {
        Self {
            phase: Phase::Startup,
            since_ns: now_ns,
            since_round: 0,
            probed_ns: now_ns,
            probed_round: 0,
            wait_ns: 0,
            plateau_pps: 0.0,
            plateau_ns: now_ns,
            plateau_round: 0,
            is_loss_seen: false,
            drained: None,
        }
    }

    pub(super) fn is_startup_over(&self) -> bool {
        self.phase != Phase::Startup
    }
}

impl Bbr {
    /// After every acknowledgement.
    pub(super) fn advance(&mut self, ack: &AckEvent, is_round_start: bool) {
        match self.cycle.phase {
            Phase::Startup => self.advance_startup(ack, is_round_start),
            Phase::Drain => self.advance_drain(ack),
            Phase::Down => self.advance_down(ack),
            Phase::Cruise if self.is_probe_due(ack.now_ns) => self.enter_refill(ack.now_ns),
            Phase::Cruise => {}
            Phase::Refill if self.round > self.cycle.since_round => self.enter(Phase::Up, ack.now_ns),
            Phase::Refill => {}
            Phase::Up => self.advance_up(ack, is_round_start),
            Phase::ProbeRtt => self.advance_probe_rtt(ack),
        }
        if self.cycle.phase != Phase::ProbeRtt && self.rtt.is_stale(ack.now_ns) {
            self.rtt.begin_probe();
            self.cycle.drained = None;
            self.enter(Phase::ProbeRtt, ack.now_ns);
        }
    }

    /// More was lost than chance explains. Gives whether that changes anything.
    pub(super) fn bound(&mut self, now_ns: u64) -> bool {
        match self.cycle.phase {
            // On a short path one burst that a queue cannot take is as much as that; it must happen twice.
            Phase::Startup if self.rtt.ns() < SHORT_NS && !self.cycle.is_loss_seen => {
                self.cycle.is_loss_seen = true;
                return false;
            }
            Phase::Startup => {
                self.bound_packets = Some(self.needed_packets());
                self.enter(Phase::Drain, now_ns);
            }
            Phase::Up => {
                let kept = BETA * self.sampled_in_flight;
                self.bound_packets = Some(kept.max(self.needed_packets()));
                self.enter_down(now_ns);
            }
            Phase::Cruise => self.bandwidth.lower(BETA),
            Phase::Drain | Phase::Down | Phase::Refill | Phase::ProbeRtt => return false,
        }
        true
    }

    fn enter(&mut self, phase: Phase, now_ns: u64) {
        if phase == Phase::Up || self.cycle.phase == Phase::Up {
            self.bandwidth.end_mean(now_ns);
        }
        self.cycle.phase = phase;
        self.cycle.since_ns = now_ns;
        self.cycle.since_round = self.round;
    }

    fn enter_down(&mut self, now_ns: u64) {
        let [least_s, most_s] = PROBE_AFTER_S;
        let wait_s = least_s + (most_s - least_s) * self.random.uniform();
        self.cycle.wait_ns = (wait_s * 1e9) as u64;
        self.cycle.probed_ns = now_ns;
        self.cycle.probed_round = self.round;
        self.enter(Phase::Down, now_ns);
        self.bandwidth.end_cycle();
    }

    fn enter_refill(&mut self, now_ns: u64) {
        self.bandwidth.forget_low();
        self.enter(Phase::Refill, now_ns);
    }

    fn is_probe_due(&self, now_ns: u64) -> bool {
        let waited_ns = now_ns.saturating_sub(self.cycle.probed_ns);
        let rounds = self.round - self.cycle.probed_round;
        waited_ns >= self.cycle.wait_ns || (rounds >= PROBE_ROUNDS && waited_ns >= PROBE_LEAST_NS)
    }

    fn advance_startup(&mut self, ack: &AckEvent, is_round_start: bool) {
        if !is_round_start {
            return;
        }
        let is_limited = ack.sample.is_some_and(|sample| sample.is_app_limited);
        // A host that sends as fast as it can looks like a slow application; a queue shows that the path is full.
        let has_queue = self.has_queue(ack);
        if is_limited && !has_queue {
            return;
        }
        let max_pps = self.bandwidth.max_pps();
        if max_pps >= self.cycle.plateau_pps * STARTUP_GROWTH {
            self.cycle.plateau_pps = max_pps;
            self.cycle.plateau_ns = ack.now_ns;
            self.cycle.plateau_round = self.round;
        }
        let rounds = self.round - self.cycle.plateau_round;
        let time_ns = ack.now_ns.saturating_sub(self.cycle.plateau_ns);
        let enough_rounds = if has_queue { QUEUED_ROUNDS } else { STARTUP_ROUNDS };
        if rounds >= enough_rounds && time_ns >= STARTUP_LEAST_NS {
            self.enter(Phase::Drain, ack.now_ns);
        }
    }

    /// Window in bandwidth-delay products.
    pub(super) fn window_gain(&self) -> f64 {
        match self.cycle.phase {
            // With clumps and bursts on top of 2, a queue of one product would overflow at the end.
            Phase::Startup if self.rtt.ns() >= SHORT_NS => 1.75,
            Phase::Up => 2.25,
            Phase::ProbeRtt => 0.5,
            _ => 2.0,
        }
    }

    /// Whether round trips have become so much longer, with so much under way, that packets of this flow must be waiting
    /// on the path. The time of the newest packet tells: older ones waited for the acknowledgement too. On a short path
    /// a host that is late looks the same.
    fn has_queue(&self, ack: &AckEvent) -> bool {
        let rtt_ns = ack.sample.and_then(|sample| sample.rtt_ns).unwrap_or(0);
        let is_longer =
            rtt_ns.min(ack.smoothed_rtt_ns) as f64 > QUEUED * self.rtt.ns() as f64 + QUEUED_LEAST_NS;
        let is_own = ack.in_flight as f64 >= QUEUED * self.bdp_packets();
        is_longer && is_own && self.rtt.ns() >= SHORT_NS
    }

    fn advance_drain(&mut self, ack: &AckEvent) {
        let is_drained = ack.in_flight as f64 <= self.bdp_packets() + self.quantum_packets();
        // A round-trip time that grew meanwhile must not hold the flow here.
        if is_drained || self.round >= self.cycle.since_round + DRAIN_ROUNDS {
            self.enter_down(ack.now_ns);
        }
    }

    fn advance_down(&mut self, ack: &AckEvent) {
        let headroom = self.bound_packets.map_or(f64::INFINITY, |bound| HEADROOM * bound);
        let target = (self.bdp_packets() + self.quantum_packets()).min(headroom);
        if self.is_probe_due(ack.now_ns) {
            self.enter_refill(ack.now_ns);
        } else if ack.in_flight as f64 <= target {
            self.enter(Phase::Cruise, ack.now_ns);
        }
    }

    fn advance_up(&mut self, ack: &AckEvent, is_round_start: bool) {
        if let Some(bound) = self.bound_packets.filter(|_| is_round_start) {
            let rounds = (self.round - self.cycle.since_round).min(5);
            let step = BOUND_STEP * f64::from(1u32 << rounds);
            self.bound_packets = Some(bound * (1.0 + step));
        }
        let time_ns = ack.now_ns.saturating_sub(self.cycle.since_ns);
        let is_a_round_old =
            self.round > self.cycle.since_round + 1 && time_ns > self.rtt.ns().max(PROBE_UP_LEAST_NS);
        let has_queue = ack.in_flight as f64 >= PROBED * self.bdp_packets() + self.quantum_packets();
        if is_a_round_old && has_queue {
            self.enter_down(ack.now_ns);
        }
    }

    fn advance_probe_rtt(&mut self, ack: &AckEvent) {
        let Some((since_ns, since_round)) = self.cycle.drained else {
            if ack.in_flight as f64 <= self.window_packets + self.quantum_packets() {
                self.cycle.drained = Some((ack.now_ns, self.round));
            }
            return;
        };
        let is_long_enough = ack.now_ns.saturating_sub(since_ns) >= PROBE_RTT_NS;
        if is_long_enough && self.round > since_round {
            self.rtt.end_probe(ack.now_ns);
            self.enter_refill(ack.now_ns);
        }
    }

    /// The bound on packets under way in this phase.
    pub(super) fn bound_now(&self) -> f64 {
        let Some(bound) = self.bound_packets else {
            return f64::INFINITY;
        };
        match self.cycle.phase {
            // Room for others, but no less than the path needs.
            Phase::Cruise | Phase::Down | Phase::Drain => {
                (HEADROOM * bound).max(bound.min(self.needed_packets()))
            }
            _ => bound,
        }
    }
}
