//! Packets to be sent again: one bit for each index in the window.
//!
//! A bitmap of 64-bit words in a ring that moves with the window. Nothing is stored while nothing is lost, a run of
//! any length is marked word by word, and the lowest word with a bit in it is known, so that the sender does not
//! search. The reference library keeps a sorted array of ranges instead, which costs a walk for each insertion.

use std::collections::VecDeque;

/// Packets in one word.
pub(super) const WORD_PACKETS: u64 = 64;

/// The bits of word `word` that stand for the indices `first ..= last`.
pub(super) fn mask_in_word(word: u64, first: u64, last: u64) -> u64 {
    let (first_word, last_word) = (first / WORD_PACKETS, last / WORD_PACKETS);
    if first > last || word < first_word || word > last_word {
        return 0;
    }
    let from = if word == first_word {
        u64::MAX << (first % WORD_PACKETS)
    } else {
        u64::MAX
    };
    let to = if word == last_word {
        u64::MAX >> (WORD_PACKETS - 1 - last % WORD_PACKETS)
    } else {
        u64::MAX
    };
    from & to
}

/// A set of indices in a window of bounded length that only moves up.
#[derive(Debug)]
pub(super) struct LossList {
    words: VecDeque<u64>,
    /// Number of the first word in `words`: its index divided by 64.
    base: u64,
    /// Number of the lowest word with a bit in it; without meaning while `len` is 0.
    lowest: u64,
    /// What is below cannot be in the set any more.
    floor: u64,
    capacity_packets: u64,
    len: u64,
}

impl LossList {
    /// An empty set for a window of `capacity_packets`: indices at or past the window's end are ignored.
    pub(super) fn new(capacity_packets: u64) -> Self {
        Self {
            words: VecDeque::new(),
            base: 0,
            lowest: 0,
            floor: 0,
            capacity_packets,
            len: 0,
        }
    }

    /// How many indices are in the set.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Puts in what of `first ..= last` is in the window; gives how many were not in before.
    #[cfg(test)]
    pub(super) fn insert(&mut self, first: u64, last: u64) -> u64 {
        let first = first.max(self.floor);
        let last = last.min(self.floor.saturating_add(self.capacity_packets - 1));
        if first > last {
            return 0;
        }
        let words = first / WORD_PACKETS..=last / WORD_PACKETS;
        words
            .map(|word| self.insert_in_word(word, mask_in_word(word, first, last)))
            .sum()
    }

    /// The bits of a word: what of its 64 indices is in the set.
    pub(super) fn word(&self, word: u64) -> u64 {
        let position = word.checked_sub(self.base).map(usize::try_from);
        position
            .and_then(Result::ok)
            .and_then(|position| self.words.get(position))
            .copied()
            .unwrap_or(0)
    }

    /// Puts in the indices of word `word` whose bits are set in `mask` and that are in the window; gives how many were
    /// not in before.
    pub(super) fn insert_in_word(&mut self, word: u64, mask: u64) -> u64 {
        let last = self.floor.saturating_add(self.capacity_packets - 1);
        let added = mask & mask_in_word(word, self.floor, last) & !self.word(word);
        if added == 0 {
            return 0;
        }
        if self.words.is_empty() {
            self.base = self.floor / WORD_PACKETS;
        }
        let position = (word - self.base) as usize;
        if position >= self.words.len() {
            self.words.resize(position + 1, 0);
        }
        self.words[position] |= added;
        self.lowest = if self.len == 0 {
            word
        } else {
            self.lowest.min(word)
        };
        let count = u64::from(added.count_ones());
        self.len += count;
        count
    }

    /// Moves the window up to begin at `index`: what is below leaves the set.
    pub(super) fn remove_below(&mut self, index: u64) {
        if index <= self.floor {
            return;
        }
        self.floor = index;
        let word = index / WORD_PACKETS;
        let passed = usize::try_from(word.saturating_sub(self.base)).unwrap_or(usize::MAX);
        let gone: u32 = self
            .words
            .drain(..passed.min(self.words.len()))
            .map(u64::count_ones)
            .sum();
        self.len -= u64::from(gone);
        self.base = self.base.max(word);
        if let Some(front) = self.words.front_mut() {
            let below = *front & !(u64::MAX << (index % WORD_PACKETS));
            *front &= !below;
            self.len -= u64::from(below.count_ones());
        }
        self.lowest = self.lowest.max(self.base);
        self.settle();
    }

    /// The lowest index in the set and the length of the run that begins there, at most `max`.
    pub(super) fn first_run(&self, max: u64) -> Option<(u64, u64)> {
        if self.len == 0 || max == 0 {
            return None;
        }
        let bits = self.word(self.lowest);
        let skipped = bits.trailing_zeros();
        let first = self.lowest * WORD_PACKETS + u64::from(skipped);
        let mut count = u64::from((bits >> skipped).trailing_ones());
        let mut word = self.lowest + 1;
        while count < max && (first + count) == word * WORD_PACKETS {
            let more = u64::from(self.word(word).trailing_ones());
            if more == 0 {
                break;
            }
            count += more;
            word += 1;
        }
        Some((first, count.min(max)))
    }

    /// Takes `count` indices from `first` on out of the set, as far as they are in it.
    pub(super) fn take(&mut self, first: u64, count: u64) {
        let last = first.saturating_add(count);
        if self.len == 0 || count == 0 {
            return;
        }
        let last = last - 1;
        let end = self.base + self.words.len() as u64;
        for word in (first / WORD_PACKETS).max(self.lowest)..(last / WORD_PACKETS + 1).min(end) {
            let bits = &mut self.words[(word - self.base) as usize];
            let taken = *bits & mask_in_word(word, first, last);
            *bits &= !taken;
            self.len -= u64::from(taken.count_ones());
        }
        self.settle();
    }

    /// Finds the lowest word with a bit again; forgets all words when there is none.
    fn settle(&mut self) {
        if self.len == 0 {
            self.words.clear();
            return;
        }
        while self.word(self.lowest) == 0 {
            self.lowest += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[derive(Debug, Clone)]
    enum Step {
        Insert(u64, u64),
        RemoveBelow(u64),
        Take(u64),
    }

    const CAPACITY: u64 = 700;

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0u64..1_500, 0u64..200).prop_map(|(first, more)| Step::Insert(first, first + more)),
            1 => (0u64..1_500).prop_map(Step::RemoveBelow),
            3 => (1u64..100).prop_map(Step::Take),
        ]
    }

    /// The lowest run of a set, at most `max` long.
    fn first_run(set: &BTreeSet<u64>, max: u64) -> Option<(u64, u64)> {
        let first = *set.first()?;
        let count = (first..first + max)
            .take_while(|index| set.contains(index))
            .count();
        Some((first, count as u64))
    }

    proptest! {
        #[test]
        fn it_holds_what_a_set_would_hold(steps in proptest::collection::vec(step(), 1..120)) {
            let mut list = LossList::new(CAPACITY);
            let mut model = BTreeSet::new();
            let mut floor = 0;
            for step in steps {
                match step {
                    Step::Insert(first, last) => {
                        let new = (first..=last)
                            .filter(|index| (floor..floor + CAPACITY).contains(index))
                            .filter(|&index| model.insert(index))
                            .count();
                        prop_assert_eq!(list.insert(first, last), new as u64);
                    }
                    Step::RemoveBelow(index) => {
                        floor = floor.max(index);
                        model.retain(|&kept| kept >= floor);
                        list.remove_below(index);
                    }
                    Step::Take(max) => {
                        let run = list.first_run(max);
                        prop_assert_eq!(run, first_run(&model, max));
                        if let Some((first, count)) = run {
                            (first..first + count).for_each(|index| { model.remove(&index); });
                            list.take(first, count);
                        }
                    }
                }
                prop_assert_eq!(list.len(), model.len() as u64);
                prop_assert_eq!(list.first_run(u64::MAX), first_run(&model, CAPACITY));
            }
        }
    }

    #[test]
    fn indices_outside_the_window_change_nothing() {
        let mut list = LossList::new(100);
        list.remove_below(1_000);
        assert_eq!(list.insert(0, 999), 0);
        assert_eq!(list.insert(1_100, u64::MAX), 0);
        assert_eq!(list.insert(0, u64::MAX), 100);
        assert_eq!(list.first_run(u64::MAX), Some((1_000, 100)));
    }

    #[test]
    fn taking_from_the_middle_leaves_the_rest() {
        let mut list = LossList::new(1_000);
        list.insert(10, 500);
        list.take(64, 64);
        assert_eq!(list.len(), 491 - 64);
        assert_eq!(list.first_run(1_000), Some((10, 54)));
        list.take(0, 128);
        assert_eq!(list.first_run(1_000), Some((128, 373)));
        list.take(0, u64::MAX);
        assert_eq!(list.first_run(1), None);
    }

    #[test]
    fn an_empty_list_that_moves_far_holds_no_memory_for_the_way() {
        let mut list = LossList::new(740_000);
        list.remove_below(1 << 50);
        assert_eq!(list.insert((1 << 50) + 700_000, (1 << 50) + 700_001), 2);
        assert!(list.words.len() <= 740_000 / 64 + 2);
        list.take(1 << 50, 740_000);
        assert_eq!((list.len(), list.words.len()), (0, 0));
    }
}
