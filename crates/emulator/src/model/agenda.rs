//! Which of many pipes has something to do next.

/// Never.
pub(super) const NEVER: u64 = u64::MAX;

/// A time for each of a fixed number of entries, and the earliest of them: a binary tree of minima, so that a change costs
/// the logarithm of the number of entries and idle ones cost nothing.
#[derive(Debug)]
pub(super) struct Agenda {
    /// Inner nodes 1 up to `leaves`, then the entries; node n has the children 2n and 2n + 1.
    earliest_ns: Vec<u64>,
    leaves: usize,
}

impl Agenda {
    pub(super) fn new(entries: usize) -> Self {
        let leaves = entries.next_power_of_two();
        Self {
            earliest_ns: vec![NEVER; 2 * leaves],
            leaves,
        }
    }

    /// Sets an entry's time.
    pub(super) fn set(&mut self, entry: usize, at_ns: u64) {
        let mut node = self.leaves + entry;
        self.earliest_ns[node] = at_ns;
        while node > 1 {
            node /= 2;
            let earliest = self.earliest_ns[2 * node].min(self.earliest_ns[2 * node + 1]);
            if self.earliest_ns[node] == earliest {
                return;
            }
            self.earliest_ns[node] = earliest;
        }
    }

    /// The earliest time, or [`NEVER`].
    pub(super) fn earliest_ns(&self) -> u64 {
        self.earliest_ns[1]
    }

    /// Whether something is due until `now_ns`.
    pub(super) fn is_due(&self, now_ns: u64) -> bool {
        self.earliest_ns() <= now_ns && self.earliest_ns() != NEVER
    }

    /// The entry with the earliest time, the lowest number among equals.
    pub(super) fn first(&self) -> usize {
        let mut node = 1;
        while node < self.leaves {
            node *= 2;
            if self.earliest_ns[node] > self.earliest_ns[node + 1] {
                node += 1;
            }
        }
        node - self.leaves
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_entry_is_the_one_with_the_earliest_time(
            entries in 1usize..40,
            changes in proptest::collection::vec((0usize..40, 0u64..20), 1..200),
        ) {
            let mut agenda = Agenda::new(entries);
            let mut times = vec![NEVER; entries];
            for (entry, at_ns) in changes {
                let at_ns = if at_ns == 0 { NEVER } else { at_ns };
                agenda.set(entry % entries, at_ns);
                times[entry % entries] = at_ns;
                let earliest = *times.iter().min().unwrap();
                prop_assert_eq!(agenda.earliest_ns(), earliest);
                let first = times.iter().position(|time| *time == earliest).unwrap();
                prop_assert_eq!(agenda.first(), first);
            }
        }
    }
}
