//! Packets that have not come although later ones have, and when to report them (again).
//!
//! The reference library reports a gap once, at once; when that report or the repeated packet is lost, only the
//! sender's expiry timer, 0.3 s or more, repairs it. Here a gap is reported again until it is filled, with a wait
//! that grows: the first repetition after one wait, the next after one and a half, and so on up to four.
//!
//! Ranges are kept by their last index, because repeated packets come smallest first: filling a long gap from its
//! front then changes one number in place. Beside them stand the ranges in the order of their reports, one order
//! for each number of reports, so that asking what is due looks at a handful of ranges however many there are.

use std::collections::{BTreeMap, BTreeSet};

/// Ranges handed out by one call at most. A report of that many is 23 packets of 1472 bytes.
const MOST_RANGES: usize = 4096;
/// Waits before the next report in halves, after 1, 2, 3 ... reports. The last one holds for all that follow.
const HALF_WAITS: [u64; 7] = [2, 3, 4, 5, 6, 7, 8];
/// One order for ranges that were never reported, and one for each number of reports that is told apart.
const LEVELS: usize = HALF_WAITS.len() + 1;

/// What is known about a range of missing packets, beside its last index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Gap {
    first: u64,
    /// When it was reported last, or seen first if it never was.
    since_ns: u64,
    /// How many times it was reported, as far as that is told apart.
    level: usize,
}

/// Ranges of missing packets.
#[derive(Debug)]
pub struct Gaps {
    by_last: BTreeMap<u64, Gap>,
    /// `(since_ns, last)` of the ranges with as many reports as the place says.
    levels: [BTreeSet<(u64, u64)>; LEVELS],
    packets: u64,
}

impl Default for Gaps {
    fn default() -> Self {
        Self::new()
    }
}

impl Gaps {
    /// No gaps.
    pub fn new() -> Self {
        Self {
            by_last: BTreeMap::new(),
            levels: std::array::from_fn(|_| BTreeSet::new()),
            packets: 0,
        }
    }

    /// How many packets are missing.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Notes that the packets from `first` to `last`, inclusive, are missing. What was known of them is forgotten.
    pub fn open(&mut self, first: u64, last: u64, now_ns: u64) {
        if first > last {
            return;
        }
        self.fill_range(first, last);
        let gap = Gap {
            first,
            since_ns: now_ns,
            level: 0,
        };
        self.insert(last, gap);
    }

    /// Notes that a packet has come. True if it was missing.
    pub fn fill(&mut self, index: u64) -> bool {
        let Some((&last, gap)) = self.by_last.range_mut(index..).next() else {
            return false;
        };
        if index < gap.first {
            return false;
        }
        if index == gap.first && index < last {
            gap.first += 1;
            self.packets -= 1;
        } else {
            let gap = *gap;
            self.cut(last, gap, index, index);
        }
        true
    }

    /// Notes that the packets from `first` to `last`, inclusive, are not missing. Gives how many of them were.
    pub fn fill_range(&mut self, first: u64, last: u64) -> u64 {
        let before = self.packets;
        while let Some((&end, &gap)) = self.by_last.range(first..).next() {
            if gap.first > last {
                break;
            }
            self.cut(end, gap, first.max(gap.first), last.min(end));
        }
        before - self.packets
    }

    /// Replaces the content of `ranges` by what is to be reported now, and notes that it was: ranges that never
    /// were reported, and those whose last report is longer ago than `wait_ns` times a factor that grows with each
    /// report from 1 to 4. At most 4096 of
    /// them, in order of their indices; the next call gives the rest.
    pub fn due(&mut self, now_ns: u64, wait_ns: u64, ranges: &mut Vec<(u64, u64)>) {
        ranges.clear();
        for level in 0..LEVELS {
            while let Some(last) = self.first_due(level, now_ns, wait_ns) {
                if ranges.len() == MOST_RANGES {
                    break;
                }
                let gap = self.remove(last);
                ranges.push((gap.first, last));
                let reported = Gap {
                    since_ns: now_ns,
                    level: (level + 1).min(LEVELS - 1),
                    ..gap
                };
                self.insert(last, reported);
            }
        }
        ranges.sort_unstable();
    }

    /// When [`Gaps::due`] will next have something, if nothing is filled before. That may be past.
    pub fn next_due_ns(&self, wait_ns: u64) -> Option<u64> {
        let earliest = |(level, order): (usize, &BTreeSet<(u64, u64)>)| {
            let &(since_ns, _) = order.first()?;
            Some(since_ns.saturating_add(wait_of(level, wait_ns)))
        };
        self.levels.iter().enumerate().filter_map(earliest).min()
    }

    /// The last index of the range of one level that has waited longest, if it is due.
    fn first_due(&self, level: usize, now_ns: u64, wait_ns: u64) -> Option<u64> {
        let &(since_ns, last) = self.levels[level].first()?;
        // At least a nanosecond: what this call reports is not due again within it.
        let is_due = level == 0 || now_ns.saturating_sub(since_ns) >= wait_of(level, wait_ns).max(1);
        is_due.then_some(last)
    }

    /// Takes the packets from `first` to `end` out of the range that ends with `last`, which holds them all.
    fn cut(&mut self, last: u64, gap: Gap, first: u64, end: u64) {
        self.remove(last);
        if first > gap.first {
            self.insert(first - 1, gap);
        }
        if end < last {
            self.insert(
                last,
                Gap {
                    first: end + 1,
                    ..gap
                },
            );
        }
    }

    fn insert(&mut self, last: u64, gap: Gap) {
        self.packets += last - gap.first + 1;
        self.levels[gap.level].insert((gap.since_ns, last));
        self.by_last.insert(last, gap);
    }

    fn remove(&mut self, last: u64) -> Gap {
        let gap = self.by_last.remove(&last).expect("a range that was just found");
        self.levels[gap.level].remove(&(gap.since_ns, last));
        self.packets -= last - gap.first + 1;
        gap
    }
}

/// How long ago the last report of a range has to be.
fn wait_of(level: usize, wait_ns: u64) -> u64 {
    match level.checked_sub(1) {
        None => 0,
        Some(reports) => wait_ns.saturating_mul(HALF_WAITS[reports]) / 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WAIT_NS: u64 = 1_000;

    fn due(gaps: &mut Gaps, now_ns: u64) -> Vec<(u64, u64)> {
        let mut ranges = vec![(7, 7)];
        gaps.due(now_ns, WAIT_NS, &mut ranges);
        ranges
    }

    #[test]
    fn a_new_gap_is_reported_at_once_and_once() {
        let mut gaps = Gaps::new();
        assert_eq!(gaps.next_due_ns(WAIT_NS), None);
        gaps.open(5, 9, 100);
        assert!(gaps.next_due_ns(WAIT_NS) <= Some(100));
        assert_eq!(due(&mut gaps, 100), [(5, 9)]);
        assert_eq!(due(&mut gaps, 1_099), []);
        assert_eq!(gaps.packets(), 5);
    }

    #[test]
    fn the_wait_grows_by_halves_up_to_four_times() {
        let mut gaps = Gaps::new();
        gaps.open(5, 9, 0);
        let mut times = vec![];
        for now_ns in 0..30_000 {
            assert_eq!(
                gaps.next_due_ns(WAIT_NS).is_some_and(|due_ns| due_ns <= now_ns),
                {
                    let is_due = !due(&mut gaps, now_ns).is_empty();
                    times.extend(is_due.then_some(now_ns));
                    is_due
                }
            );
        }
        let waits: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(
            waits,
            [
                1_000, 1_500, 2_000, 2_500, 3_000, 3_500, 4_000, 4_000, 4_000, 4_000
            ]
        );
    }

    #[test]
    fn a_filled_packet_splits_its_gap_and_both_parts_keep_their_time() {
        let mut gaps = Gaps::new();
        gaps.open(10, 20, 0);
        due(&mut gaps, 0);
        assert!(gaps.fill(15));
        assert!(!gaps.fill(15));
        assert_eq!(due(&mut gaps, 999), []);
        assert_eq!(due(&mut gaps, 1_000), [(10, 14), (16, 20)]);
        assert!(gaps.fill(10) && gaps.fill(14) && !gaps.fill(9));
        assert_eq!(due(&mut gaps, 2_500), [(11, 13), (16, 20)]);
    }

    #[test]
    fn a_shorter_wait_is_heeded_at_once() {
        let mut gaps = Gaps::new();
        gaps.open(1, 1, 0);
        due(&mut gaps, 0);
        assert_eq!(gaps.next_due_ns(1_000_000), Some(1_000_000));
        assert_eq!(gaps.next_due_ns(10), Some(10));
        let mut ranges = vec![];
        gaps.due(10, 10, &mut ranges);
        assert_eq!(ranges, [(1, 1)]);
    }

    #[test]
    fn very_many_gaps_are_handed_out_in_parts_and_none_is_left_out() {
        let mut gaps = Gaps::new();
        for gap in 0..10_000 {
            gaps.open(gap * 2, gap * 2, gap);
        }
        let mut all = vec![];
        for part in [4_096, 4_096, 1_808, 0] {
            let ranges = due(&mut gaps, 10_000);
            assert_eq!(ranges.len(), part);
            all.extend(ranges);
        }
        let want: Vec<(u64, u64)> = (0..10_000).map(|gap| (gap * 2, gap * 2)).collect();
        assert_eq!(all, want);
    }

    #[test]
    fn the_largest_numbers_do_no_harm() {
        let mut gaps = Gaps::new();
        gaps.open(u64::MAX - 3, u64::MAX - 1, u64::MAX);
        gaps.open(9, 3, 0);
        assert_eq!(gaps.packets(), 3);
        let mut ranges = vec![];
        gaps.due(u64::MAX, u64::MAX, &mut ranges);
        assert_eq!(gaps.next_due_ns(u64::MAX), Some(u64::MAX));
        gaps.fill_range(0, u64::MAX);
        assert_eq!(gaps.packets(), 0);
    }

    #[derive(Debug, Clone)]
    enum Action {
        Open(u64, u64),
        Fill(u64),
        FillRange(u64, u64),
        Report,
    }

    fn action() -> impl Strategy<Value = Action> {
        prop_oneof![
            3 => (0u64..200, 0u64..40).prop_map(|(first, more)| Action::Open(first, first + more)),
            6 => (0u64..240).prop_map(Action::Fill),
            1 => (0u64..240, 0u64..40).prop_map(|(first, more)| Action::FillRange(first, first + more)),
            2 => Just(Action::Report),
        ]
    }

    /// The model: for each missing packet, when it was reported last and how often.
    type Model = BTreeMap<u64, (Option<u64>, u64)>;

    fn report(model: &mut Model, now_ns: u64) -> Vec<u64> {
        let is_due = |&(reported_ns, reports): &(Option<u64>, u64)| match reported_ns {
            None => true,
            Some(then_ns) => now_ns - then_ns >= WAIT_NS * (reports + 1).min(8) / 2,
        };
        let due = model.iter_mut().filter(|(_, state)| is_due(state));
        due.map(|(&index, state)| {
            *state = (Some(now_ns), state.1 + 1);
            index
        })
        .collect()
    }

    proptest! {
        #[test]
        fn gaps_say_what_a_list_of_single_packets_says(
            actions in proptest::collection::vec((action(), 0u64..2_000), 1..120),
        ) {
            let (mut gaps, mut model, mut now_ns) = (Gaps::new(), Model::new(), 0);
            for (action, later_ns) in actions {
                now_ns += later_ns;
                match action {
                    Action::Open(first, last) => {
                        gaps.open(first, last, now_ns);
                        model.extend((first..=last).map(|index| (index, (None, 0))));
                    }
                    Action::Fill(index) => prop_assert_eq!(gaps.fill(index), model.remove(&index).is_some()),
                    Action::FillRange(first, last) => {
                        let before = model.len();
                        model.retain(|index, _| !(first..=last).contains(index));
                        prop_assert_eq!(gaps.fill_range(first, last), (before - model.len()) as u64);
                    }
                    Action::Report => {
                        let ranges = due(&mut gaps, now_ns);
                        let got: Vec<u64> = ranges.iter().flat_map(|&(first, last)| first..=last).collect();
                        prop_assert_eq!(got, report(&mut model, now_ns));
                    }
                }
                prop_assert_eq!(gaps.packets(), model.len() as u64);
            }
        }
    }
}
