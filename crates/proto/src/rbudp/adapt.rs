//! A rate that gives way to loss, where a bound for it is stated: He et al. 2002 leaves it to future work.
//!
//! The share of packets that reports name, smoothed over about one round trip, is held against the bound. Above it the
//! rate falls by that share, so that what got through before is what is sent after; at most once in a round trip, and
//! never below 1/64 of the stated rate. It takes more losses than chance explains. At or below the bound the rate grows up to the stated one: in the first round trip
//! after a cut by 1/256 of itself, in each further one by a quarter more than that, to 1/4, so that a bottleneck is tried
//! gently and one that is gone is forgotten after some 20 round trips. Reports about packets that were sent before the last cut say nothing about the rate after it.
//!
//! It stays gentle while answers take longer than they did: then a queue grows, and what is lost once it is full is lost
//! for a round trip and more.
//!
//! A sender that does not send as fast as it may finds out nothing about the path at that rate: it grows no further
//! (after RFC 7661), or it would overwhelm the receiver as soon as it can.

use std::collections::VecDeque;

use super::SenderOptions;
use super::wire::{Done, Missing};

/// Part of the stated rate below which it does not fall; of the measured one, if none was stated: what a host can do says
/// little about a path.
const FLOOR: f64 = 1.0 / 64.0;
const MEASURED_FLOOR: f64 = 1.0 / 4096.0;
/// Parts by which it grows in the first round trip after a cut, and in any at most.
const FIRST_GROWTH: f64 = 1.0 / 256.0;
const MOST_GROWTH: f64 = 1.0 / 4.0;
/// How much faster it grows after each round trip.
const ACCELERATION: f64 = 0.25;
/// Part of the least time to an answer by which others take longer where no queue grows, and what is too little to tell.
const QUEUED: f64 = 1.0 / 8.0;
const MIN_QUEUED_NS: u64 = 2_000_000;
/// Part of the rate that has to be used for it to grow.
const USED: f64 = 0.75;
/// Largest part by which it falls at once: a path that is down for a moment loses everything.
const MOST_CUT: f64 = 7.0 / 8.0;
/// How much of the losses may be chance, in standard deviations of a Poisson distribution.
const DEVIATIONS: f64 = 3.0;
/// Least round-trip time that is believed: hosts are later than that.
const MIN_RTT_NS: u64 = 1_000_000;
/// Statements without answers that are remembered.
const MOST_STATEMENTS: usize = 1024;

/// What was stated: packets of `blast` that were sent from `since_ns` to `at_ns`.
#[derive(Debug, Clone, Copy)]
struct Statement {
    blast: u32,
    upto: u32,
    served: u32,
    since_ns: u64,
    at_ns: u64,
}

/// The rate, and what is known of losses.
#[derive(Debug)]
pub(super) struct Adapt {
    bound: f64,
    rtt_ns: f64,
    packet_bits: f64,
    /// Whether a rate was stated. If not, the highest that was measured stands for it.
    is_stated: bool,
    stated_bps: f64,
    rate_bps: f64,
    statements: VecDeque<Statement>,
    /// Packets that reports said something of, and that they named; decaying.
    covered: f64,
    lost: f64,
    heard_ns: u64,
    cut_ns: u64,
    /// Least time from a statement to its answer.
    least_ns: u64,
    /// Part by which the rate grows in a round trip now.
    growth: f64,
}

impl Adapt {
    pub(super) fn new(options: &SenderOptions, bound: f64) -> Self {
        Self {
            bound,
            rtt_ns: options.rtt_ns.max(MIN_RTT_NS) as f64,
            packet_bits: 8.0 * options.packet_bytes as f64,
            is_stated: options.rate_bps > 0,
            stated_bps: options.rate_bps as f64,
            rate_bps: options.rate_bps as f64,
            statements: VecDeque::new(),
            covered: 0.0,
            lost: 0.0,
            heard_ns: 0,
            cut_ns: 0,
            least_ns: u64::MAX,
            growth: MOST_GROWTH,
        }
    }

    /// The rate to send at; 0 is without limit.
    pub(super) fn rate_bps(&self) -> u64 {
        if !self.is_stated && self.rate_bps >= self.stated_bps {
            return 0;
        }
        self.rate_bps as u64
    }

    /// A statement goes out at `now_ns` about packets the first of which went at `since_ns`.
    pub(super) fn state(&mut self, now_ns: u64, since_ns: u64, done: &Done) {
        if self.statements.len() == MOST_STATEMENTS {
            self.statements.pop_front();
        }
        self.statements.push_back(Statement {
            blast: done.blast,
            upto: done.upto,
            served: done.served,
            since_ns,
            at_ns: now_ns,
        });
    }

    /// A report came that is about `covered` packets.
    pub(super) fn take_report(&mut self, now_ns: u64, missing: &Missing, covered: u64) {
        let Some((since_ns, at_ns)) = self.answered(missing) else {
            return;
        };
        if since_ns < self.cut_ns || covered == 0 {
            return;
        }
        self.measure(covered, at_ns - since_ns);
        let took_ns = now_ns.saturating_sub(at_ns);
        self.least_ns = self.least_ns.min(took_ns);
        if self.is_queued(took_ns) {
            self.growth = self.growth.min(FIRST_GROWTH);
        }
        let passed_ns = now_ns.saturating_sub(self.heard_ns) as f64;
        let kept = self.rtt_ns / (self.rtt_ns + passed_ns);
        self.heard_ns = now_ns;
        self.covered = self.covered * kept + covered as f64;
        self.lost = self.lost * kept + missing.packets.len() as f64;
        let certain = self.lost - DEVIATIONS * self.lost.sqrt();
        if certain > self.bound * self.covered {
            self.cut(now_ns);
        } else if self.lost <= self.bound * self.covered && self.is_used() {
            self.grow(passed_ns);
        }
    }

    /// From when to when the packets went that a report is about.
    fn answered(&mut self, missing: &Missing) -> Option<(u64, u64)> {
        let is_about = |statement: &Statement| {
            statement.blast == missing.blast
                && statement.upto <= missing.upto
                && statement.served <= missing.served
        };
        let about = self.statements.iter().filter(|statement| is_about(statement));
        let times = about
            .map(|statement| (statement.since_ns, statement.at_ns))
            .reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)));
        self.statements.retain(|statement| !is_about(statement));
        times
    }

    fn measure(&mut self, covered: u64, took_ns: u64) {
        if self.is_stated || took_ns == 0 {
            return;
        }
        let measured_bps = covered as f64 * self.packet_bits * 1e9 / took_ns as f64;
        if measured_bps > self.stated_bps {
            self.stated_bps = measured_bps;
            self.rate_bps = measured_bps;
        }
    }

    /// Whether an answer took so long that a queue must be growing.
    fn is_queued(&self, took_ns: u64) -> bool {
        let queued_ns = took_ns - self.least_ns;
        queued_ns > MIN_QUEUED_NS && queued_ns as f64 > QUEUED * self.least_ns as f64
    }

    /// Whether about as much was sent in the last round trip as the rate allows.
    fn is_used(&self) -> bool {
        let sent_bps = self.covered * self.packet_bits * 1e9 / self.rtt_ns;
        sent_bps >= USED * self.rate_bps
    }

    fn grow(&mut self, passed_ns: f64) {
        let round_trips = (passed_ns / self.rtt_ns).min(1.0);
        self.rate_bps = (self.rate_bps * (1.0 + self.growth * round_trips)).min(self.stated_bps);
        self.growth = (self.growth * (1.0 + ACCELERATION * round_trips)).min(MOST_GROWTH);
    }

    fn cut(&mut self, now_ns: u64) {
        if self.cut_ns > 0 && ((now_ns - self.cut_ns) as f64) < self.rtt_ns {
            return;
        }
        let floor = if self.is_stated { FLOOR } else { MEASURED_FLOOR };
        let share = (self.lost / self.covered).min(MOST_CUT);
        self.rate_bps = (self.rate_bps * (1.0 - share)).max(floor * self.stated_bps);
        (self.covered, self.lost) = (0.0, 0.0);
        self.cut_ns = now_ns;
        self.growth = FIRST_GROWTH;
    }
}
