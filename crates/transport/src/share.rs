//! One rate for several streams, which may change while they run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use farline_sys::{thread, time};

use crate::tally::as_i64;

/// As a rate: none.
const UNLIMITED_BPS: u64 = u64::MAX;
/// Longest wait inside one call, so that the caller can look at its stop flag.
const SLICE_NS: u64 = 100_000_000;
/// Lateness that is made up for, for senders that are off their CPU now and then: what was missed before has been missed.
const MEMORY_NS: u64 = 25_000_000;
/// The same where what is made up for would be taken for somebody else's queue.
const EVEN_MEMORY_NS: u64 = 5_000_000;
/// How long a piece takes at the rate, within bounds that make it neither costly nor a burst.
const PIECE_NS: u64 = 1_000_000;
const PIECE_BYTES: std::ops::RangeInclusive<u64> = 4_096..=262_144;

/// What all streams that share it may send together. Who sends takes the next turn on one schedule, so that a stream
/// with nothing to send leaves its share to the others.
#[derive(Debug)]
pub struct SharedRate {
    rate_bps: AtomicU64,
    memory_ns: AtomicU64,
    /// When the next turn begins.
    next_ns: AtomicU64,
}

impl SharedRate {
    /// `rate_bps` payload bits per second, at least 1.
    pub fn new(rate_bps: u64) -> Self {
        Self {
            rate_bps: AtomicU64::new(rate_bps.max(1)),
            memory_ns: AtomicU64::new(MEMORY_NS),
            next_ns: AtomicU64::new(0),
        }
    }

    /// No rate at all, until one is set.
    pub fn unlimited() -> Self {
        Self::new(UNLIMITED_BPS)
    }

    /// Whether there is no rate.
    pub fn is_unlimited(&self) -> bool {
        self.rate_bps() == UNLIMITED_BPS
    }

    /// Lifts the rate.
    pub fn lift(&self) {
        self.set(UNLIMITED_BPS);
    }

    /// From now on the rate is even rather than exact: hardly anything that was missed is made up for.
    pub fn keep_even(&self) {
        self.memory_ns.store(EVEN_MEMORY_NS, Ordering::Relaxed);
    }

    /// Goes on at another rate, at least 1: at once but for turns that have been taken.
    pub fn set(&self, rate_bps: u64) {
        // Relaxed: the figure stands for itself.
        self.rate_bps.store(rate_bps.max(1), Ordering::Relaxed);
    }

    /// The rate now.
    pub fn rate_bps(&self) -> u64 {
        self.rate_bps.load(Ordering::Relaxed)
    }

    /// Takes the next turn for up to `most` bytes: when it begins, how many bytes it is good for and how long they take;
    /// `None` if it is not within a time slice.
    fn take(&self, now_ns: u64, most: usize) -> Option<Turn> {
        let rate_bps = self.rate_bps();
        let fair = u128::from(rate_bps) * u128::from(PIECE_NS) / 8_000_000_000;
        let fair = u64::try_from(fair).unwrap_or(u64::MAX);
        let piece = fair
            .clamp(*PIECE_BYTES.start(), *PIECE_BYTES.end())
            .min(most as u64);
        let cost_ns = u128::from(piece) * 8_000_000_000 / u128::from(rate_bps);
        let cost_ns = u64::try_from(cost_ns).unwrap_or(u64::MAX / 2);
        let memory_ns = self.memory_ns.load(Ordering::Relaxed);
        let mut next_ns = self.next_ns.load(Ordering::Relaxed);
        loop {
            let begin_ns = next_ns.max(now_ns.saturating_sub(memory_ns));
            if begin_ns > now_ns + SLICE_NS {
                return None;
            }
            let behind_ns = begin_ns.saturating_add(cost_ns);
            let swapped =
                self.next_ns
                    .compare_exchange_weak(next_ns, behind_ns, Ordering::Relaxed, Ordering::Relaxed);
            match swapped {
                Ok(_) => {
                    return Some(Turn {
                        begin_ns,
                        bytes: piece as usize,
                        cost_ns,
                    });
                }
                Err(other) => next_ns = other,
            }
        }
    }

    /// Gives back what was not used of a turn.
    fn give_back(&self, turn: &Turn, sent: usize) {
        let unused = turn.bytes.saturating_sub(sent) as u128;
        let unused_ns = u128::from(turn.cost_ns) * unused / turn.bytes.max(1) as u128;
        // Never more than the turn was long.
        let unused_ns = u64::try_from(unused_ns).unwrap_or(turn.cost_ns);
        let earlier = |next_ns: u64| Some(next_ns.saturating_sub(unused_ns));
        // The closure always gives a value.
        let _ = self
            .next_ns
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, earlier);
    }
}

/// A place on the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Turn {
    begin_ns: u64,
    bytes: usize,
    cost_ns: u64,
}

/// One stream's dealings with a rate that is shared.
#[derive(Debug)]
pub struct Share {
    rate: Arc<SharedRate>,
    turn: Option<Turn>,
    waited_ns: u64,
    is_started: bool,
}

impl Share {
    /// Begins to deal with `rate`.
    pub fn of(rate: Arc<SharedRate>) -> Self {
        Self {
            rate,
            turn: None,
            waited_ns: 0,
            is_started: false,
        }
    }

    /// Waits for the next turn; gives how many of `most` bytes may go in it, 0 if it is not within the next 100 ms, which
    /// have then passed.
    pub fn wait(&mut self, most: usize) -> usize {
        if !std::mem::replace(&mut self.is_started, true) {
            // Here, not in `of`: it is the thread that sends that has to wake in time.
            thread::set_finest_timer_slack();
        }
        if most == 0 {
            return 0;
        }
        if self.rate.is_unlimited() {
            self.turn = None;
            return most;
        }
        let now_ns = time::now_ns();
        self.turn = self.rate.take(now_ns, most);
        let until_ns = self.turn.map_or(now_ns + SLICE_NS, |turn| turn.begin_ns);
        if until_ns > now_ns {
            time::sleep_until(until_ns, 0);
            self.waited_ns += time::now_ns() - now_ns;
        }
        self.turn.map_or(0, |turn| turn.bytes)
    }

    /// Notes that `bytes` went in the turn that was waited for.
    pub fn sent(&mut self, bytes: usize) {
        if let Some(turn) = self.turn.take() {
            self.rate.give_back(&turn, bytes);
        }
    }

    /// Time waited in all.
    pub(crate) fn waited_us(&self) -> i64 {
        as_i64(self.waited_ns / 1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn turns_follow_each_other_at_the_rate() {
        let rate = SharedRate::new(8_000_000_000);
        let one = rate.take(S, 1 << 20).unwrap();
        let other = rate.take(S, 1 << 20).unwrap();
        assert_eq!((one.bytes, one.cost_ns), (262_144, 262_144));
        assert_eq!(other.begin_ns, one.begin_ns + one.cost_ns);
    }

    #[test]
    fn a_turn_too_far_away_is_not_taken() {
        let rate = SharedRate::new(8_000);
        assert!(rate.take(S, 1_000_000).is_some());
        assert_eq!(rate.take(S, 1), None);
        assert!(rate.take(6 * S, 1).is_some(), "it comes in its time");
    }

    #[test]
    fn what_is_not_used_is_there_for_others() {
        let rate = SharedRate::new(8_000_000);
        let turn = rate.take(S, 4_000).unwrap();
        rate.give_back(&turn, 1_000);
        assert_eq!(rate.take(S, 1).unwrap().begin_ns, turn.begin_ns + S / 1_000);
    }

    #[test]
    fn what_was_missed_is_made_up_for_within_bounds() {
        let rate = SharedRate::new(8_000_000);
        rate.take(S, 1_000).unwrap();
        assert_eq!(rate.take(3 * S, 1_000).unwrap().begin_ns, 3 * S - MEMORY_NS);
        rate.keep_even();
        assert_eq!(rate.take(6 * S, 1_000).unwrap().begin_ns, 6 * S - EVEN_MEMORY_NS);
    }

    #[test]
    fn without_a_rate_nobody_waits_until_there_is_one() {
        let rate = Arc::new(SharedRate::unlimited());
        let mut share = Share::of(Arc::clone(&rate));
        assert_eq!((share.wait(usize::MAX), share.waited_us()), (usize::MAX, 0));
        share.sent(1 << 30);
        rate.set(8_000_000_000);
        assert_eq!(share.wait(1 << 20), 262_144);
        share.sent(262_144);
        rate.lift();
        assert_eq!((rate.is_unlimited(), share.wait(1 << 30)), (true, 1 << 30));
    }

    #[test]
    fn another_rate_counts_at_once() {
        let rate = SharedRate::new(8_000_000);
        rate.take(S, 1_000).unwrap();
        rate.set(80_000_000);
        assert_eq!(rate.take(S, 1_000).unwrap().cost_ns, 100_000);
        rate.set(0);
        assert_eq!(rate.rate_bps(), 1);
    }

    proptest! {
        #[test]
        fn no_second_brings_more_than_the_rate(rate_bps in 1_000_000u64..100_000_000_000, calls in prop::collection::vec((1usize..2_000_000, 0u64..20_000_000, 0usize..3), 1..300)) {
            let rate = SharedRate::new(rate_bps);
            let (mut now_ns, mut sent) = (S, 0u64);
            for (most, later_ns, part) in calls {
                now_ns += later_ns;
                if let Some(turn) = rate.take(now_ns, most) {
                    now_ns = now_ns.max(turn.begin_ns);
                    let used = turn.bytes * part / 2;
                    rate.give_back(&turn, used);
                    sent += used as u64;
                }
            }
            let seconds = (now_ns - S + MEMORY_NS) as f64 / 1e9;
            // One piece is in its turn still.
            prop_assert!(sent as f64 * 8.0 <= seconds * rate_bps as f64 * 1.001 + 8.0 * 262_144.0);
        }
    }
}
