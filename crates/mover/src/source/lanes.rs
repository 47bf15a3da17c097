//! The data streams of a sending end: how many there are, and how many are to end.
//!
//! A stream that is to end finishes what it has begun and takes nothing new; which one it is nobody says: the first that
//! comes between two frames. One always stays.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The streams of one copy.
#[derive(Debug)]
pub(super) struct Lanes {
    counts: Mutex<Counts>,
    /// As in the counts: looked at between two frames.
    leaving: AtomicU32,
}

#[derive(Debug, Clone, Copy)]
struct Counts {
    /// Streams that send, those that are to end with them.
    live: u32,
    /// How many of them are to end.
    leaving: u32,
}

impl Lanes {
    /// So many.
    pub(super) fn new(streams: u16) -> Self {
        let counts = Counts {
            live: streams.into(),
            leaving: 0,
        };
        Self {
            counts: Mutex::new(counts),
            leaving: AtomicU32::new(0),
        }
    }

    /// One more; gives how many there are then.
    pub(super) fn join(&self) -> u32 {
        let mut counts = self.lock();
        counts.live += 1;
        counts.live - counts.leaving
    }

    /// Those that go on.
    pub(super) fn staying(&self) -> u32 {
        let counts = self.lock();
        counts.live - counts.leaving
    }

    /// So many are to end; gives how many will: one stays.
    pub(super) fn dismiss(&self, count: u32) -> u32 {
        let mut counts = self.lock();
        let most = counts.live.saturating_sub(counts.leaving + 1);
        let count = count.min(most);
        counts.leaving += count;
        self.leaving.store(counts.leaving, Ordering::Release);
        count
    }

    /// Whether a stream is to end that has not heard of it.
    pub(super) fn is_due(&self) -> bool {
        self.leaving.load(Ordering::Acquire) > 0
    }

    /// Whether the stream that asks is to end; if so, it does.
    pub(super) fn may_leave(&self) -> bool {
        if !self.is_due() {
            return false;
        }
        let mut counts = self.lock();
        if counts.leaving == 0 {
            return false;
        }
        counts.leaving -= 1;
        counts.live -= 1;
        self.leaving.store(counts.leaving, Ordering::Release);
        true
    }

    /// A stream cannot be used any more; gives how many are left. What was to end in its place may stay.
    pub(super) fn lose(&self) -> u32 {
        let mut counts = self.lock();
        counts.live = counts.live.saturating_sub(1);
        counts.leaving = counts.leaving.min(counts.live.saturating_sub(1));
        self.leaving.store(counts.leaving, Ordering::Release);
        counts.live
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn as_many_end_as_were_asked_to_and_one_stays() {
        let lanes = Lanes::new(3);
        assert!(!lanes.may_leave());
        assert_eq!((lanes.dismiss(1), lanes.dismiss(5)), (1, 1));
        assert_eq!(
            std::iter::repeat_with(|| lanes.may_leave())
                .take_while(|left| *left)
                .count(),
            2
        );
        assert_eq!(lanes.dismiss(1), 0);
        assert_eq!(lanes.join(), 2);
        assert_eq!(lanes.dismiss(1), 1);
    }

    #[test]
    fn a_stream_that_is_lost_goes_instead_of_one_that_was_to_end() {
        let lanes = Lanes::new(2);
        lanes.dismiss(1);
        assert_eq!(lanes.lose(), 1);
        assert!(!lanes.is_due() && !lanes.may_leave());
        assert_eq!(lanes.lose(), 0);
    }

    proptest! {
        #[test]
        fn whatever_happens_one_stays_until_it_is_lost(steps in prop::collection::vec((0u8..3, 0u32..5), 1..60)) {
            let lanes = Lanes::new(1);
            let mut live = 1u32;
            for (kind, count) in steps {
                match kind {
                    0 => { lanes.join(); live += 1; }
                    1 => { prop_assert!(lanes.dismiss(count) <= count); }
                    _ => live -= u32::from(lanes.may_leave()),
                }
                prop_assert!(live >= 1);
                prop_assert_eq!(lanes.lock().live, live);
                prop_assert!(lanes.lock().leaving < live);
            }
        }
    }
}
