//! Which datagrams came, came late, came twice or never came: a bounded window over sequence numbers.

/// How far back a late datagram is still told from one that came twice.
const WINDOW: u64 = 65_536;

/// How a datagram stands to those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// First of its number: its bytes count.
    Fresh,
    /// First of its number, after a later one: its bytes count.
    Late,
    /// Came before: its bytes do not count.
    Duplicate,
    /// Later than the window: may be either, so its bytes do not count and it stays lost.
    TooLate,
}

/// Account of the sequence numbers of one stream.
#[derive(Debug, Clone)]
pub(super) struct Tracker {
    /// One more than the highest number seen.
    next: u64,
    /// Bit `n % WINDOW` says whether number `n` of the last `WINDOW` came.
    seen: Box<[u64]>,
    lost: i64,
    reordered: i64,
    duplicate: i64,
}

impl Tracker {
    pub(super) fn new() -> Self {
        Self {
            next: 0,
            seen: vec![0; (WINDOW / 64) as usize].into_boxed_slice(),
            lost: 0,
            reordered: 0,
            duplicate: 0,
        }
    }

    /// Takes note of number `sequence`.
    #[inline]
    pub(super) fn arrive(&mut self, sequence: u64) -> Arrival {
        if sequence >= self.next {
            self.miss_until(sequence);
            self.mark(sequence, true);
            self.next = sequence.saturating_add(1);
            return Arrival::Fresh;
        }
        if self.next - sequence > WINDOW {
            self.reordered += 1;
            return Arrival::TooLate;
        }
        if self.is_marked(sequence) {
            self.duplicate += 1;
            return Arrival::Duplicate;
        }
        self.mark(sequence, true);
        self.reordered += 1;
        self.lost -= 1;
        Arrival::Late
    }

    /// The sender says that it sent `total`: what is missing at the end is lost, too.
    pub(super) fn finish(&mut self, total: u64) {
        self.miss_until(total);
        self.next = self.next.max(total);
    }

    /// Whether all of `total` came.
    pub(super) fn is_complete(&self, total: u64) -> bool {
        self.next >= total && self.lost <= 0
    }

    /// Datagrams missing so far.
    pub(super) fn lost(&self) -> i64 {
        self.lost
    }

    /// Datagrams that came after a later one.
    pub(super) fn reordered(&self) -> i64 {
        self.reordered
    }

    /// Datagrams that came twice.
    pub(super) fn duplicate(&self) -> i64 {
        self.duplicate
    }

    fn miss_until(&mut self, sequence: u64) {
        let missing = sequence.saturating_sub(self.next);
        if missing == 0 {
            return;
        }
        self.lost = self
            .lost
            .saturating_add(i64::try_from(missing).unwrap_or(i64::MAX));
        // Only the last window matters, however far a peer says it jumped.
        for number in (sequence - missing.min(WINDOW))..sequence {
            self.mark(number, false);
        }
    }

    fn mark(&mut self, sequence: u64, came: bool) {
        let (word, bit) = position(sequence);
        if came {
            self.seen[word] |= bit;
        } else {
            self.seen[word] &= !bit;
        }
    }

    fn is_marked(&self, sequence: u64) -> bool {
        let (word, bit) = position(sequence);
        self.seen[word] & bit != 0
    }
}

fn position(sequence: u64) -> (usize, u64) {
    (((sequence % WINDOW) / 64) as usize, 1 << (sequence % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn arrivals(numbers: impl IntoIterator<Item = u64>) -> (Tracker, Vec<Arrival>) {
        let mut tracker = Tracker::new();
        let all = numbers.into_iter().map(|number| tracker.arrive(number)).collect();
        (tracker, all)
    }

    #[test]
    fn in_order_nothing_is_missing() {
        let (tracker, all) = arrivals(0..200_000);
        assert!(all.iter().all(|&arrival| arrival == Arrival::Fresh));
        assert_eq!(
            (tracker.lost(), tracker.reordered(), tracker.duplicate()),
            (0, 0, 0)
        );
        assert!(tracker.is_complete(200_000) && !tracker.is_complete(200_001));
    }

    #[test]
    fn a_gap_that_fills_later_is_reordering_not_loss() {
        let (tracker, all) = arrivals([0, 3, 1, 3, 2]);
        assert_eq!(all[2..], [Arrival::Late, Arrival::Duplicate, Arrival::Late]);
        assert_eq!(
            (tracker.lost(), tracker.reordered(), tracker.duplicate()),
            (0, 2, 1)
        );
    }

    #[test]
    fn what_never_comes_at_the_end_is_lost_once_the_total_is_known() {
        let (mut tracker, _) = arrivals([0, 1, 4]);
        tracker.finish(10);
        tracker.finish(10);
        assert_eq!(tracker.lost(), 7);
        assert_eq!(tracker.arrive(9), Arrival::Late);
        assert_eq!(tracker.lost(), 6);
    }

    #[test]
    fn beyond_the_window_a_late_one_stays_lost() {
        let (mut tracker, _) = arrivals([WINDOW]);
        assert_eq!(tracker.arrive(0), Arrival::TooLate);
        assert_eq!(tracker.arrive(1), Arrival::Late);
        assert_eq!(tracker.lost(), WINDOW as i64 - 1);
    }

    #[test]
    fn a_peer_that_jumps_to_the_end_of_numbers_is_survived() {
        let (mut tracker, _) = arrivals([u64::MAX, u64::MAX - 1, 0, u64::MAX]);
        tracker.finish(u64::MAX);
        assert!(tracker.lost() > 0);
    }

    proptest! {
        /// Against a plain set, for any order within the window.
        #[test]
        fn the_account_is_right(numbers in proptest::collection::vec(0u64..3_000, 1..2_000)) {
            let (tracker, all) = arrivals(numbers.iter().copied());
            let mut set = HashSet::new();
            for (number, arrival) in numbers.iter().zip(&all) {
                let fresh = set.insert(*number);
                prop_assert_eq!(fresh, matches!(arrival, Arrival::Fresh | Arrival::Late));
            }
            let highest = *numbers.iter().max().unwrap();
            prop_assert_eq!(tracker.lost(), (highest + 1) as i64 - set.len() as i64);
            prop_assert_eq!(tracker.duplicate(), (numbers.len() - set.len()) as i64);
        }
    }
}
