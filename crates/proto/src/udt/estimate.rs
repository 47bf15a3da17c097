//! What a receiver tells its peer about speed: how fast packets arrive, and how fast the path could carry them.
//!
//! The reference library takes the times between single packets in whole microseconds, so that it knows the rates
//! 1,000,000, 500,000, 333,333 ... and nothing else there, and none if packets come several at once. Here the
//! times are those of batches: packets that one receive call brought have no times of their own, and batches of
//! one time count as one.

use super::wire::Sequence;
use std::collections::VecDeque;

const NS_PER_S: f64 = 1e9;

/// Packets that came at one time, when it is known that no more of them follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Batch {
    /// Since the batch before.
    gap_ns: u64,
    first: u64,
    packets: u64,
    /// The batch before ended just before `first`: how many packets it had, and with which it began.
    before: Option<(u64, u64)>,
}

/// Makes batches out of what receive calls brought.
#[derive(Debug, Default)]
struct Batches {
    /// Time, first index and packets of the batch that may still grow.
    open: Option<(u64, u64, u64)>,
    /// What is known of it already, but for its packets. None for the very first batch.
    known: Option<Batch>,
}

impl Batches {
    /// Gives the batch that is complete because this one is later.
    fn add(&mut self, now_ns: u64, first: u64, packets: u64) -> Option<Batch> {
        if let Some((then_ns, _, count)) = &mut self.open {
            if now_ns <= *then_ns {
                *count = count.saturating_add(packets);
                return None;
            }
        }
        let earlier = self.open.replace((now_ns, first, packets));
        let (then_ns, earlier_first, earlier_packets) = earlier?;
        let is_adjacent = earlier_first.checked_add(earlier_packets) == Some(first);
        let next = Batch {
            gap_ns: now_ns - then_ns,
            first,
            packets: 0,
            before: is_adjacent.then_some((earlier_first, earlier_packets)),
        };
        let complete = self.known.replace(next)?;
        Some(Batch {
            packets: earlier_packets,
            ..complete
        })
    }
}

/// Time that is measured before a rate is taken from it.
const WINDOW_NS: u64 = 1_000_000;
const WINDOWS: usize = 8;
/// No shorter gap is a pause of the sender: bursts may be that far apart.
const PAUSE_NS: u64 = 4_000_000;
/// In a gap that is a pause, this many times the packets that came would have come at the rate of before.
const PAUSE_FACTOR: f64 = 8.0;
/// So many long gaps without a short one between them are no pauses, but a slow sender.
const MAX_PAUSES: u32 = 8;
/// From so many packets on, a window that is not complete tells what rate to expect.
const TELLING_PACKETS: u64 = 16;

/// How fast packets arrive while they do.
///
/// Packets are counted against time in windows of at least 1 ms; the rate is the mean of the middle half of the
/// last 8. Gaps in which the sender had nothing to send, or was not allowed to send, belong to no window: they are
/// longer than 4 ms and eight times what fits the rate. A receiver that was not scheduled for a while makes one
/// window too low and one too high, which the middle half leaves out.
#[derive(Debug, Default)]
pub struct ArrivalRate {
    batches: Batches,
    window_ns: u64,
    window_packets: u64,
    rates_pps: VecDeque<f64>,
    /// Of `rates_pps`.
    middle_pps: Option<f64>,
    /// Long gaps since the last short one.
    pauses: u32,
}

impl ArrivalRate {
    /// Nothing has come so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes that `packets` came, at a time that is not before that of the last call.
    pub fn observe(&mut self, now_ns: u64, packets: u64) {
        let Some(batch) = self.batches.add(now_ns, 0, packets) else {
            return;
        };
        if self.is_pause(&batch) {
            return;
        }
        self.window_ns = self.window_ns.saturating_add(batch.gap_ns);
        self.window_packets = self.window_packets.saturating_add(batch.packets);
        if self.window_ns < WINDOW_NS {
            return;
        }
        if self.rates_pps.len() == WINDOWS {
            self.rates_pps.pop_front();
        }
        self.rates_pps
            .push_back(self.window_packets as f64 * NS_PER_S / self.window_ns as f64);
        (self.window_ns, self.window_packets) = (0, 0);
        self.middle_pps = middle(&self.rates_pps);
    }

    /// Packets per second, also while nothing comes; none before packets came for one window.
    pub fn pps(&self) -> Option<f64> {
        self.middle_pps
    }

    fn is_pause(&mut self, batch: &Batch) -> bool {
        let is_telling = self.window_packets >= TELLING_PACKETS && self.window_ns > 0;
        let window_pps = is_telling.then(|| self.window_packets as f64 * NS_PER_S / self.window_ns as f64);
        let expected = self
            .middle_pps
            .or(window_pps)
            .map(|pps| pps * batch.gap_ns as f64 / NS_PER_S);
        let is_long = batch.gap_ns > PAUSE_NS
            && expected.is_none_or(|expected| expected > PAUSE_FACTOR * batch.packets as f64);
        if !is_long {
            self.pauses = 0;
            return false;
        }
        self.pauses = (self.pauses + 1).min(MAX_PAUSES + 1);
        self.pauses <= MAX_PAUSES
    }
}

/// Mean of the middle half; of one or two, of all.
fn middle(values: &VecDeque<f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let cut = sorted.len() / 4;
    let middle = &sorted[cut..sorted.len() - cut];
    (!middle.is_empty()).then(|| middle.iter().sum::<f64>() / middle.len() as f64)
}

/// Spacings that the capacity is taken from.
const SPACINGS: usize = 16;
/// Spacings further than this from the median are left out.
const SPACING_FACTOR: f64 = 8.0;
/// Of so many spacings of batches only the shortest counts: senders pace bursts, and only within one of them does
/// the path show its own speed.
const BATCH_GROUP: u32 = 4;
/// A libudt sender sends the packet after every sixteenth without waiting.
const PAIR_PERIOD: u32 = 16;

/// How many packets per second the path could carry, from the times between packets that were sent back to back.
///
/// Those are the two of a probe pair, where packets come one by one (draft-gg-udt, section 6.4), and otherwise
/// adjacent batches of one burst. The mean of the last 16 spacings per packet is taken, without those that are more
/// than eight times shorter or longer than their median, as libudt 4.11 does with 64. If all bursts come as one
/// batch each, there are no spacings within bursts, and the figure is the rate at which bursts come.
#[derive(Debug)]
pub struct Capacity {
    isn: Sequence,
    batches: Batches,
    spacings_ns: VecDeque<f64>,
    /// Of the batches since the last spacing was taken: how many there were, and the shortest spacing.
    group: (u32, f64),
}

impl Capacity {
    /// Nothing has come so far. Probe pairs are told by their sequence numbers, which begin with `isn`.
    pub fn new(isn: Sequence) -> Self {
        Self {
            isn,
            batches: Batches::default(),
            spacings_ns: VecDeque::with_capacity(SPACINGS),
            group: (0, f64::INFINITY),
        }
    }

    /// Notes that `packets` adjacent packets came, at a time that is not before that of the last call.
    pub fn observe(&mut self, now_ns: u64, first_index: u64, packets: u64) {
        let Some(batch) = self.batches.add(now_ns, first_index, packets) else {
            return;
        };
        let Some((before_first, before_packets)) = batch.before else {
            return;
        };
        let spacing_ns = batch.gap_ns as f64 / batch.packets.max(1) as f64;
        if batch.packets > 1 {
            let (count, shortest_ns) = self.group;
            self.group = (count + 1, shortest_ns.min(spacing_ns));
            if self.group.0 == BATCH_GROUP {
                self.push(self.group.1);
                self.group = (0, f64::INFINITY);
            }
        } else if before_packets == 1 && self.isn.plus(before_first).get() % PAIR_PERIOD == 0 {
            self.push(spacing_ns);
        }
    }

    /// Packets per second; none before there are 16 spacings, or while no half of them agree.
    pub fn pps(&self) -> Option<f64> {
        if self.spacings_ns.len() < SPACINGS {
            return None;
        }
        let mut sorted: Vec<f64> = self.spacings_ns.iter().copied().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let median_ns = sorted[SPACINGS / 2];
        let is_near =
            |&&spacing: &&f64| spacing * SPACING_FACTOR > median_ns && spacing < median_ns * SPACING_FACTOR;
        let near: Vec<f64> = sorted.iter().filter(is_near).copied().collect();
        (near.len() > SPACINGS / 2).then(|| near.len() as f64 * NS_PER_S / near.iter().sum::<f64>())
    }

    fn push(&mut self, spacing_ns: f64) {
        if self.spacings_ns.len() == SPACINGS {
            self.spacings_ns.pop_front();
        }
        self.spacings_ns.push_back(spacing_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A sender of batches at one rate, with jitter, and both estimators.
    struct Flow {
        arrival: ArrivalRate,
        capacity: Capacity,
        now_ns: f64,
        index: u64,
        state: u64,
    }

    impl Flow {
        fn new() -> Self {
            Self {
                arrival: ArrivalRate::new(),
                capacity: Capacity::new(Sequence::new(5)),
                now_ns: 0.0,
                index: 0,
                state: 1,
            }
        }

        /// Between -1 and 1.
        fn noise(&mut self) -> f64 {
            self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.state >> 33) as f64 / (1u64 << 30) as f64 - 1.0
        }

        fn batch(&mut self, late_ns: f64, packets: u64) {
            let now_ns = (self.now_ns + late_ns) as u64;
            self.arrival.observe(now_ns, packets);
            self.capacity.observe(now_ns, self.index, packets);
            self.index += packets;
        }

        /// Batches of `packets` at `pps`, for at least `seconds` and 70 batches, each up to a tenth early or late.
        fn steady(&mut self, pps: f64, packets: u64, seconds: f64) -> &mut Self {
            let period_ns = packets as f64 * 1e9 / pps;
            for _ in 0..(seconds * 1e9 / period_ns) as u64 + 70 {
                self.now_ns += period_ns;
                let late_ns = self.noise() * period_ns / 10.0;
                self.batch(late_ns, packets);
            }
            self
        }

        fn pause(&mut self, seconds: f64) -> &mut Self {
            self.now_ns += seconds * 1e9;
            self
        }

        fn arrival_is_near(&self, pps: f64) -> bool {
            self.arrival
                .pps()
                .is_some_and(|got| (got / pps - 1.0).abs() < 0.12)
        }
    }

    proptest! {
        #[test]
        fn steady_rates_are_read_as_they_are(exponent in 2.0f64..6.48, packets in 1u64..=44) {
            let pps = 10f64.powf(exponent);
            let mut flow = Flow::new();
            flow.steady(pps, packets, 0.01);
            prop_assert!(flow.arrival_is_near(pps), "{:?} instead of {pps}", flow.arrival.pps());
        }

        #[test]
        fn a_pause_changes_nothing(
            exponent in 3.5f64..6.48, packets in 1u64..=44, pauses in prop::collection::vec(0.1f64..5.0, 1..9)
        ) {
            let pps = 10f64.powf(exponent);
            let mut flow = Flow::new();
            flow.steady(pps, packets, 0.01);
            for seconds in pauses {
                flow.pause(seconds).batch(0.0, packets);
                prop_assert!(flow.arrival_is_near(pps), "{:?} instead of {pps}", flow.arrival.pps());
            }
        }

        #[test]
        fn a_new_rate_is_learnt_within_twenty_windows(
            from in 2.0f64..6.48, to in 2.0f64..6.48, packets in 1u64..=44
        ) {
            let (from, to) = (10f64.powf(from), 10f64.powf(to));
            let mut flow = Flow::new();
            flow.steady(from, packets, 0.01).steady(to, packets, 0.02);
            prop_assert!(flow.arrival_is_near(to), "{:?} instead of {to}", flow.arrival.pps());
        }
    }

    #[test]
    fn there_is_no_rate_before_there_is_a_window() {
        let mut rate = ArrivalRate::new();
        assert_eq!(rate.pps(), None);
        for step in 0..10 {
            rate.observe(step * 50_000, 44);
        }
        assert_eq!(rate.pps(), None);
    }

    #[test]
    fn a_window_limited_sender_is_read_at_the_speed_of_its_bursts() {
        let mut flow = Flow::new();
        for _ in 0..20 {
            flow.steady(500_000.0, 8, 0.0).pause(0.1);
        }
        assert!(flow.arrival_is_near(500_000.0), "{:?}", flow.arrival.pps());
    }

    #[test]
    fn a_receiver_that_sleeps_and_catches_up_reads_the_same_rate() {
        let mut flow = Flow::new();
        flow.steady(800_000.0, 40, 0.02);
        // 3 ms late, and then all that had come meanwhile, a batch each microsecond.
        flow.now_ns += 3e6;
        for _ in 0..60 {
            flow.now_ns += 1e3;
            flow.batch(0.0, 40);
        }
        flow.steady(800_000.0, 40, 0.002);
        assert!(flow.arrival_is_near(800_000.0), "{:?}", flow.arrival.pps());
    }

    #[test]
    fn calls_at_one_time_are_one_batch() {
        let mut flow = Flow::new();
        for _ in 0..400 {
            flow.now_ns += 100_000.0;
            for packets in [44, 44, 1, 11] {
                flow.batch(0.0, packets);
            }
        }
        assert!(flow.arrival_is_near(1e6), "{:?}", flow.arrival.pps());
        assert!(
            flow.capacity
                .pps()
                .is_some_and(|pps| (pps / 1e6 - 1.0).abs() < 0.01)
        );
    }

    #[test]
    fn probe_pairs_tell_the_capacity_and_paced_packets_do_not() {
        let mut flow = Flow::new();
        for index in 0..1_000u64 {
            assert!(
                index > 15 * 16 || flow.capacity.pps().is_none(),
                "after {index} packets"
            );
            // Sequence numbers begin with 5, so that index 11 is a sixteenth one.
            flow.now_ns += if index % 16 == 12 { 1_200.0 } else { 50_000.0 };
            let late_ns = flow.noise() * 100.0;
            flow.batch(late_ns, 1);
        }
        let pps = flow.capacity.pps().expect("60 pairs");
        assert!((pps * 1.2e-6 - 1.0).abs() < 0.1, "{pps}");
    }

    #[test]
    fn batches_of_one_burst_tell_the_capacity() {
        let mut flow = Flow::new();
        for _ in 0..100 {
            // Four batches of 11 at 800,000 packets/s, bursts at 20,000.
            for batch in 0..4 {
                flow.now_ns += if batch == 0 { 2_200_000.0 } else { 13_750.0 };
                let late_ns = flow.noise() * 500.0;
                flow.batch(late_ns, 11);
            }
        }
        let pps = flow.capacity.pps().expect("100 groups");
        assert!((pps / 800_000.0 - 1.0).abs() < 0.1, "{pps}");
    }

    #[test]
    fn a_few_wild_spacings_do_not_count() {
        let mut flow = Flow::new();
        for index in 0..1_000u64 {
            let is_wild = index % 5 == 0;
            let pair_ns = if is_wild { 900_000.0 } else { 1_000.0 };
            flow.now_ns += 50_000.0;
            flow.capacity.observe(flow.now_ns as u64, index * 32 + 11, 1);
            flow.now_ns += pair_ns;
            flow.capacity.observe(flow.now_ns as u64, index * 32 + 12, 1);
        }
        flow.capacity.observe(flow.now_ns as u64 + 50_000, 40_000, 1);
        let pps = flow.capacity.pps().expect("1000 pairs");
        assert!((pps / 1e6 - 1.0).abs() < 0.01, "{pps}");
    }

    #[test]
    fn lost_packets_between_batches_make_no_spacing() {
        let mut flow = Flow::new();
        for _ in 0..1_000 {
            flow.now_ns += 10_000.0;
            flow.batch(0.0, 44);
            flow.index += 1;
        }
        assert_eq!(flow.capacity.pps(), None);
    }

    #[test]
    fn clocks_that_stand_still_and_the_largest_numbers_do_no_harm() {
        let (mut arrival, mut capacity) = (ArrivalRate::new(), Capacity::new(Sequence::new(0)));
        for now_ns in [0, 0, 5, 3, u64::MAX, u64::MAX, 0] {
            for packets in [0, 1, u64::MAX] {
                arrival.observe(now_ns, packets);
                capacity.observe(now_ns, u64::MAX - 1, packets);
            }
        }
        assert!(arrival.pps().is_none_or(f64::is_finite));
        assert_eq!(capacity.pps(), None);
    }
}
