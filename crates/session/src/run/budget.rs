//! What is left of the bytes that all senders of a direction are to send together.

use std::sync::atomic::{AtomicI64, Ordering};

/// A total that several threads take from until it is exactly used up.
///
/// A thread that takes more than it then sends keeps the rest for its next block, so
/// nothing is ever given back and one subtraction per block is all it costs.
#[derive(Debug)]
pub(super) struct Budget(AtomicI64);

impl Budget {
    /// A budget of `total` bytes, at most 2^60 ([`farline_spec::TotalBytes`]).
    pub(super) fn new(total: u64) -> Self {
        Self(AtomicI64::new(i64::try_from(total).unwrap_or(i64::MAX)))
    }

    /// Takes up to `wanted` bytes; 0 once nothing is left.
    pub(super) fn take(&self, wanted: usize) -> usize {
        let wanted = i64::try_from(wanted).unwrap_or(i64::MAX);
        // Relaxed: the number itself is all that is shared. It may go below zero, by one
        // block for each call after the end, and each thread calls at most once after it.
        let left = self.0.fetch_sub(wanted, Ordering::Relaxed);
        usize::try_from(left.min(wanted)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_add_up_to_the_total(
            total in 1u64..10_000,
            wanted in proptest::collection::vec(1usize..500, 1..8),
        ) {
            let budget = Budget::new(total);
            let mut taken = 0;
            for wanted in wanted.iter().cycle() {
                match budget.take(*wanted) {
                    0 => break,
                    part => taken += part as u64,
                }
            }
            prop_assert_eq!(taken, total);
            prop_assert_eq!(budget.take(1), 0);
        }
    }

    #[test]
    fn threads_together_take_exactly_the_total() {
        let budget = Budget::new(1_000_003);
        let take_all = || {
            std::iter::repeat_with(|| budget.take(7))
                .take_while(|&part| part > 0)
                .sum::<usize>()
        };
        let taken: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(take_all)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(taken, 1_000_003);
    }
}
