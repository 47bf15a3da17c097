//! What is known of the path: its rate, its delay, how acknowledgements clump, how much is lost.

use super::super::seconds;

/// How long the least round-trip time holds without being seen again.
pub(super) const RTT_HOLDS_NS: u64 = 10_000_000_000;
/// Rounds over which the clumping of acknowledgements is remembered.
const CLUMP_ROUNDS: u64 = 10;
/// Share of a round's packets whose loss is taken for chance.
const TOLERATED_LOSS: f64 = 0.02;
/// Least time over which losses are counted together: a round of 50 us has too few packets to tell.
const LOSS_ROUND_NS: u64 = 10_000_000;
/// Least number of losses in a round that can mean anything.
const LEAST_LOSSES: f64 = 3.0;

/// Samples of so long are averaged: each is off by up to a burst per round trip, and the largest of many would be the
/// one that is off most.
const MEAN_NS: u64 = 10_000_000;

/// Mean of samples, weighted by the packets that they brought.
#[derive(Debug, Default)]
struct Mean {
    began_ns: u64,
    packets: f64,
    weighted_pps: f64,
}

impl Mean {
    /// The mean, each time that enough has been seen.
    fn observe(&mut self, now_ns: u64, pps: f64, packets: u64) -> Option<f64> {
        self.packets += packets as f64;
        self.weighted_pps += pps * packets as f64;
        if now_ns.saturating_sub(self.began_ns) < MEAN_NS {
            return None;
        }
        let mean_pps = self.weighted_pps / self.packets;
        *self = Self {
            began_ns: now_ns,
            ..Self::default()
        };
        Some(mean_pps)
    }
}

/// The largest rate of delivery in this probing cycle and the one before.
#[derive(Debug, Default)]
pub(super) struct Bandwidth {
    mean: Mean,
    cycles_pps: [f64; 2],
    /// The latest two measurements.
    latest_pps: [f64; 2],
    /// Bound from losses outside probing.
    low_pps: Option<f64>,
}

impl Bandwidth {
    /// Without the bound from losses; 0 before the first sample.
    pub(super) fn max_pps(&self) -> f64 {
        self.cycles_pps[0].max(self.cycles_pps[1])
    }

    /// The rate to go by.
    pub(super) fn pps(&self) -> f64 {
        self.low_pps.map_or(self.max_pps(), |low| low.min(self.max_pps()))
    }

    /// A sample by itself, while the rate doubles every round.
    pub(super) fn observe_now(&mut self, pps: f64, is_app_limited: bool) {
        self.latest_pps = [pps, self.latest_pps[0]];
        if !is_app_limited || pps > self.max_pps() {
            self.cycles_pps[0] = self.cycles_pps[0].max(pps);
        }
    }

    /// A probe begins or ends: what was measured before it says nothing about what comes.
    pub(super) fn end_mean(&mut self, now_ns: u64) {
        if self.mean.packets > 0.0 {
            let mean_pps = self.mean.weighted_pps / self.mean.packets;
            self.observe_now(mean_pps, false);
        }
        self.mean = Mean {
            began_ns: now_ns,
            ..Mean::default()
        };
    }

    /// A sample of `packets`, one of many.
    pub(super) fn observe(&mut self, now_ns: u64, pps: f64, packets: u64, is_app_limited: bool) {
        if let Some(mean_pps) = self.mean.observe(now_ns, pps, packets) {
            self.observe_now(mean_pps, is_app_limited);
        }
    }

    /// A cycle ends; one in which nothing was measured leaves what was known.
    pub(super) fn end_cycle(&mut self) {
        if self.cycles_pps[0] > 0.0 {
            self.cycles_pps = [0.0, self.cycles_pps[0]];
        }
    }

    /// Losses outside probing: the path carries what it carried lately, or somewhat less than was thought.
    pub(super) fn lower(&mut self, beta: f64) {
        let latest_pps = self.latest_pps[0].max(self.latest_pps[1]);
        self.low_pps = Some(latest_pps.max(beta * self.pps()));
    }

    pub(super) fn forget_low(&mut self) {
        self.low_pps = None;
    }
}

/// The least round-trip time.
#[derive(Debug, Default)]
pub(super) struct RoundTrip {
    least_ns: Option<u64>,
    seen_ns: u64,
    /// Least since the flow drew back to let queues drain.
    probed_ns: Option<u64>,
}

impl RoundTrip {
    pub(super) fn seconds(&self) -> Option<f64> {
        self.least_ns.map(seconds)
    }

    pub(super) fn ns(&self) -> u64 {
        self.least_ns.unwrap_or(0)
    }

    /// A time that is longer by no more than a 32th and `slack_ns` counts as the least one seen again.
    pub(super) fn observe(&mut self, now_ns: u64, rtt_ns: u64, slack_ns: u64) {
        let rtt_ns = rtt_ns.max(1);
        let least_ns = self.least_ns.unwrap_or(u64::MAX);
        if rtt_ns <= least_ns.saturating_add(least_ns / 32).saturating_add(slack_ns) {
            self.least_ns = Some(least_ns.min(rtt_ns));
            self.seen_ns = now_ns;
        }
        self.probed_ns = Some(self.probed_ns.map_or(rtt_ns, |probed_ns| probed_ns.min(rtt_ns)));
    }

    pub(super) fn is_stale(&self, now_ns: u64) -> bool {
        self.least_ns.is_some() && now_ns.saturating_sub(self.seen_ns) > RTT_HOLDS_NS
    }

    pub(super) fn begin_probe(&mut self) {
        self.probed_ns = None;
    }

    pub(super) fn end_probe(&mut self, now_ns: u64) {
        self.least_ns = self.probed_ns.or(self.least_ns);
        self.seen_ns = now_ns;
    }
}

/// How many packets more are acknowledged at once than the rate explains: peers acknowledge every 1 or 10 ms.
#[derive(Debug, Default)]
pub(super) struct Clumps {
    since_ns: u64,
    delivered: u64,
    /// Largest excess of the last ten rounds and of the ten before, and the round in which the last ten began.
    most: [f64; 2],
    began_round: u64,
}

impl Clumps {
    pub(super) fn most_packets(&self) -> f64 {
        self.most[0].max(self.most[1])
    }

    pub(super) fn observe(&mut self, now_ns: u64, round: u64, delivered: u64, pps: f64, limit: f64) {
        let expected = pps * seconds(now_ns.saturating_sub(self.since_ns));
        let excess = if self.delivered as f64 <= expected {
            self.since_ns = now_ns;
            self.delivered = delivered;
            delivered as f64
        } else {
            self.delivered += delivered;
            self.delivered as f64 - expected
        };
        if round >= self.began_round + CLUMP_ROUNDS {
            self.began_round = round;
            self.most = [0.0, self.most[0]];
        }
        self.most[0] = self.most[0].max(excess.min(limit));
    }
}

/// Losses of the round that goes on, or of the rounds of ten milliseconds where rounds are shorter.
#[derive(Debug, Default)]
pub(super) struct Losses {
    began_ns: u64,
    delivered: u64,
    lost: u64,
    is_noted: bool,
}

impl Losses {
    pub(super) fn begin_round(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.began_ns) >= LOSS_ROUND_NS {
            *self = Self {
                began_ns: now_ns,
                ..Self::default()
            };
        }
    }

    /// How long a round is for this purpose.
    pub(super) fn round_s(&self, rtt_ns: u64) -> f64 {
        seconds(rtt_ns.max(LOSS_ROUND_NS))
    }

    pub(super) fn note_delivered(&mut self, packets: u64) {
        self.delivered += packets;
    }

    pub(super) fn note_lost(&mut self, packets: u64) {
        self.lost += packets;
    }

    /// Whether more was lost than chance explains, of at least `round_packets` in a round; true once a round.
    pub(super) fn is_news(&mut self, round_packets: f64) -> bool {
        let packets = (self.delivered + self.lost) as f64;
        let packets = packets.max(round_packets);
        let by_chance = TOLERATED_LOSS * packets;
        // Three standard deviations: a path with so much loss by chance must not look worse in one round of many.
        let limit = (by_chance + 3.0 * by_chance.sqrt()).max(LEAST_LOSSES);
        let is_news = !self.is_noted && self.lost as f64 > limit;
        self.is_noted |= is_news;
        is_news
    }
}
