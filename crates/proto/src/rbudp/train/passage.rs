//! How one train went through the path.

use std::cmp::Ordering;

use super::{EXCESS_NS, STRETCH, TrainPlan};

/// What came of one train. Its memory is bounded by the train's packets, whatever comes.
#[derive(Debug, Clone)]
pub struct Arrivals {
    packets: u32,
    came: Vec<u64>,
    count: u32,
    /// Number and time of the packets that have a time.
    pub(super) stamped: Vec<(u32, u64)>,
}

impl Arrivals {
    /// Nothing of a train of `plan` has come.
    pub fn new(plan: &TrainPlan) -> Self {
        Self {
            packets: plan.packets(),
            came: vec![0; plan.packets().div_ceil(64) as usize],
            count: 0,
            stamped: Vec::new(),
        }
    }

    /// Packet `index` came, at `arrived_ns` if that is known: of packets that the kernel collected it is known of the first.
    /// One that is not of the train, or came before, changes nothing.
    pub fn note(&mut self, index: u32, arrived_ns: Option<u64>) {
        let (word, bit) = ((index / 64) as usize, 1 << (index % 64));
        if index >= self.packets || self.came[word] & bit != 0 {
            return;
        }
        self.came[word] |= bit;
        self.count += 1;
        self.stamped.extend(arrived_ns.map(|at_ns| (index, at_ns)));
    }

    /// How many packets came.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Whether all of them came.
    pub fn is_whole(&self) -> bool {
        self.count == self.packets
    }

    /// How many packets before `end` came.
    fn count_before(&self, end: u32) -> u32 {
        let came = |index: &u32| self.came[(index / 64) as usize] & (1 << (index % 64)) != 0;
        (0..end).filter(came).count() as u32
    }
}

/// How one train went through the path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Passage {
    stretch: f64,
    excess_ns: f64,
    carried_bps: u64,
    is_late: bool,
}

/// A packet with both its times: when it was sent, and how much later it came by the other clock.
#[derive(Debug, Clone, Copy)]
struct Point {
    index: u32,
    sent_ns: i64,
    delay_ns: i64,
}

/// One train at both ends: when its bursts were sent, and what came of it.
struct Train<'a> {
    plan: &'a TrainPlan,
    sent_ns: &'a [u64],
    arrivals: &'a Arrivals,
}

impl Train<'_> {
    /// The soonest packet of those from `first` on.
    fn soonest_from(&self, first: u32) -> Option<Point> {
        let at = |&(index, arrived_ns): &(u32, u64)| {
            let burst = (index / self.plan.burst_packets()) as usize;
            let sent_ns = i64::try_from(*self.sent_ns.get(burst)?).ok()?;
            let delay_ns = i64::try_from(arrived_ns).ok()?.checked_sub(sent_ns)?;
            Some(Point {
                index,
                sent_ns,
                delay_ns,
            })
        };
        let late_enough = |&&(index, _): &&(u32, u64)| index >= first;
        let points = self.arrivals.stamped.iter().filter(late_enough).filter_map(at);
        points.min_by_key(|point| point.delay_ns)
    }

    /// How the train went through, if `least_ns` is the delay of a packet that nothing holds up.
    fn passage(&self, least_ns: i64) -> Option<Passage> {
        let plan = self.plan;
        let (&begin_ns, &end_ns) = (self.sent_ns.first()?, self.sent_ns.last()?);
        if self.sent_ns.len() != plan.bursts() as usize || self.arrivals.packets != plan.packets() {
            return None;
        }
        let last = self.soonest_from(plan.packets() - plan.packets() / 4)?;
        let sent_ns = u64::try_from(last.sent_ns).ok()?.checked_sub(begin_ns)? as f64;
        let span_ns = end_ns.checked_sub(begin_ns)? as f64;
        let later_ns = last.delay_ns.checked_sub(least_ns)?.max(0) as f64;
        if sent_ns <= 0.0 {
            return None;
        }
        let stretch = 1.0 + later_ns / sent_ns;
        let mut passage = Passage {
            stretch,
            excess_ns: (stretch - 1.0) * span_ns,
            carried_bps: 0,
            is_late: plan.is_late(self.sent_ns),
        };
        let mut carried_bps = plan.rate_bps as f64 * pace(plan, self.sent_ns) / stretch;
        if passage.is_stretched() {
            // What the queue had no room for was not carried.
            let bits = u64::from(self.arrivals.count_before(last.index)) * plan.payload_bytes() * 8;
            carried_bps = carried_bps.min(bits as f64 * 1e9 / (sent_ns + later_ns));
        }
        passage.carried_bps = carried_bps as u64;
        Some(passage)
    }
}

impl Passage {
    /// Reads the passages of trains of `plan`: `sent_ns` are the times of the bursts of each, in order and by one clock.
    ///
    /// Left out is a train that cannot be read: its times are not those of its bursts, nothing stamped came of its last
    /// quarter, or a clock ran back.
    pub fn read(plan: &TrainPlan, sent_ns: &[Vec<u64>], arrivals: &[Arrivals]) -> Vec<Self> {
        let trains: Vec<_> = sent_ns
            .iter()
            .zip(arrivals)
            .map(|(sent_ns, arrivals)| Train {
                plan,
                sent_ns,
                arrivals,
            })
            .collect();
        let soonest = trains.iter().filter_map(|train| train.soonest_from(0));
        let Some(least_ns) = soonest.map(|point| point.delay_ns).min() else {
            return Vec::new();
        };
        trains
            .iter()
            .filter_map(|train| train.passage(least_ns))
            .collect()
    }

    /// Payload rate at which the path let the train through: the rate of its bursts over its stretch, so that neither losses
    /// nor a stall of the sender count; by what came where a queue grew. Never more than the stated rate.
    pub fn carried_bps(&self) -> u64 {
        self.carried_bps
    }

    /// Whether the end of the train came later than its beginning, compared to how it was sent: a queue grew.
    pub fn is_stretched(&self) -> bool {
        self.stretch > STRETCH && self.excess_ns > EXCESS_NS
    }

    /// The better of two comes first: the one that was sent in time, then the one that was stretched less.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        let by_stretch = self.stretch.total_cmp(&other.stretch);
        self.is_late.cmp(&other.is_late).then(by_stretch)
    }
}

/// The rate of most bursts, as a share of the stated one.
fn pace(plan: &TrainPlan, sent_ns: &[u64]) -> f64 {
    let mut gaps: Vec<u64> = sent_ns
        .windows(2)
        .map(|pair| pair[1].saturating_sub(pair[0]))
        .collect();
    gaps.sort_unstable();
    let median_ns = gaps.get(gaps.len() / 2).copied().unwrap_or(0);
    (plan.burst_ns() as f64 / median_ns.max(1) as f64).min(1.0)
}
