//! Counters of a stream: written by its one thread, read by others at any time.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// A counter or gauge with one writer. Adding is a load and a store, not a locked instruction.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicI64);

impl Count {
    /// Adds; only the stream's own thread may.
    pub(crate) fn add(&self, amount: i64) {
        // Relaxed: each figure stands for itself. Saturating: a null stream of large blocks passes 2^63.
        self.0.store(self.get().saturating_add(amount), Ordering::Relaxed);
    }

    /// Replaces the value; only the stream's own thread may.
    pub(crate) fn set(&self, value: i64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// The value now.
    pub(crate) fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What every stream counts. Aligned so that two streams never write to one cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Tally {
    pub(crate) bytes: Count,
    pub(crate) blocks: Count,
    pub(crate) paced_wait_us: Count,
    aborted: AtomicBool,
}

impl Tally {
    /// Counts one call that moved `bytes`.
    pub(crate) fn count_block(&self, bytes: usize) {
        self.bytes.add(as_i64(bytes as u64));
        self.blocks.add(1);
    }

    /// Marks the stream as aborted; any thread may.
    pub(crate) fn abort(&self) {
        self.aborted.store(true, Ordering::Release);
    }

    /// Whether it was aborted.
    pub(crate) fn is_aborted(&self) -> bool {
        self.aborted.load(Ordering::Acquire)
    }
}

/// As samples count; what is too large becomes the largest.
pub(crate) fn as_i64(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_stops_at_its_largest_value() {
        let count = Count::default();
        count.add(i64::MAX - 1);
        count.add(5);
        assert_eq!(count.get(), i64::MAX);
        assert_eq!(as_i64(u64::MAX), i64::MAX);
    }

    #[test]
    fn blocks_and_bytes_go_together() {
        let tally = Tally::default();
        tally.count_block(10);
        tally.count_block(5);
        assert_eq!((tally.bytes.get(), tally.blocks.get()), (15, 2));
        assert!(!tally.is_aborted());
        tally.abort();
        assert!(tally.is_aborted());
    }
}
