//! How late packets were handed over: a histogram that can be subtracted from a later one.

/// Buckets per doubling: a bucket is at most 1/32 of its value wide.
const PER_DOUBLING: u64 = 32;
/// Everything from 2^40 ns (18 minutes) on shares the last bucket.
const DOUBLINGS: u64 = 36;
const BUCKETS: usize = (PER_DOUBLING * DOUBLINGS) as usize;

/// Counts of latenesses in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lateness {
    counts: Box<[u64; BUCKETS]>,
}

impl Default for Lateness {
    fn default() -> Self {
        Self {
            counts: Box::new([0; BUCKETS]),
        }
    }
}

impl Lateness {
    /// Counts one lateness.
    pub fn add(&mut self, late_ns: u64) {
        self.counts[bucket(late_ns)] += 1;
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// What was counted here and not yet in `earlier`, which must be an earlier state of the same.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut difference = self.clone();
        for (count, before) in difference.counts.iter_mut().zip(earlier.counts.iter()) {
            *count -= before;
        }
        difference
    }

    /// The value below which `share` of all lie, in nanoseconds, rounded up by at most 1/32; 0 if there is none.
    pub fn quantile_ns(&self, share: f64) -> u64 {
        let wanted = (self.count() as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return upper_edge_ns(index);
            }
        }
        0
    }

    /// The largest, rounded up by at most 1/32; 0 if there is none.
    pub fn max_ns(&self) -> u64 {
        let last = self.counts.iter().rposition(|&count| count > 0);
        last.map_or(0, upper_edge_ns)
    }
}

fn bucket(value: u64) -> usize {
    if value < PER_DOUBLING {
        return value as usize;
    }
    let shift = u64::from(value.ilog2()) - u64::from(PER_DOUBLING.ilog2());
    let index = PER_DOUBLING * shift + (value >> shift);
    (index as usize).min(BUCKETS - 1)
}

/// The largest value that falls into a bucket.
fn upper_edge_ns(index: usize) -> u64 {
    let index = index as u64;
    if index < PER_DOUBLING {
        return index;
    }
    let shift = index / PER_DOUBLING - 1;
    ((index % PER_DOUBLING + PER_DOUBLING + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_bucket_is_at_most_a_32nd_wide(value in 0u64..1 << 40) {
            let edge = upper_edge_ns(bucket(value));
            prop_assert!(edge >= value && edge - value <= value / PER_DOUBLING);
        }

        #[test]
        fn larger_values_are_in_no_smaller_bucket(one: u64, other: u64) {
            prop_assert_eq!(bucket(one.min(other)), bucket(one).min(bucket(other)));
        }
    }

    #[test]
    fn quantiles_are_those_of_the_interval_alone() {
        let mut all = Lateness::default();
        (0..100).for_each(|_| all.add(1 << 30));
        let mark = all.clone();
        assert_eq!(all.since(&mark).max_ns(), 0);
        (1..=100).for_each(|late_ns| all.add(late_ns * 1000));
        let interval = all.since(&mark);
        assert_eq!(interval.count(), 100);
        let near = |value: u64, wanted: u64| (wanted..=wanted + wanted / 32).contains(&value);
        assert!(near(interval.quantile_ns(0.5), 50_000));
        assert!(near(interval.quantile_ns(0.99), 99_000));
        assert!(near(interval.max_ns(), 100_000));
    }
}
