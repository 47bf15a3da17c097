//! One bit for each packet of a blast.

use super::PacketSet;

/// Packets in one word.
const WORD: u32 = u64::BITS;

/// A set of packet numbers below a limit, and how many there are.
#[derive(Debug, Default)]
pub(super) struct Bits {
    words: Vec<u64>,
    len: u32,
}

impl Bits {
    /// An empty set for numbers below `limit`.
    pub(super) fn new(limit: u32) -> Self {
        Self {
            words: vec![0; limit.div_ceil(WORD) as usize],
            len: 0,
        }
    }

    pub(super) fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    pub(super) fn contains(&self, number: u32) -> bool {
        let word = self.words.get((number / WORD) as usize);
        word.is_some_and(|word| word >> (number % WORD) & 1 != 0)
    }

    /// Puts a number in; whether it was not in before. Numbers from the limit on are not taken.
    #[inline]
    pub(super) fn insert(&mut self, number: u32) -> bool {
        let Some(word) = self.words.get_mut((number / WORD) as usize) else {
            return false;
        };
        let bit = 1 << (number % WORD);
        let is_new = *word & bit == 0;
        *word |= bit;
        self.len += u32::from(is_new);
        is_new
    }

    /// Puts in the numbers of `packets`, which are below `limit`, the same in each call. No memory is taken before there
    /// are any.
    pub(super) fn extend(&mut self, packets: &PacketSet, limit: u32) {
        if self.words.is_empty() && !packets.is_empty() {
            *self = Self::new(limit);
        }
        for number in packets.iter() {
            self.insert(number);
        }
    }

    /// Takes a number out; whether it was in.
    #[inline]
    pub(super) fn remove(&mut self, number: u32) -> bool {
        let Some(word) = self.words.get_mut((number / WORD) as usize) else {
            return false;
        };
        let bit = 1 << (number % WORD);
        let was_in = *word & bit != 0;
        *word &= !bit;
        self.len -= u32::from(was_in);
        was_in
    }

    /// The lowest number from `from` on that is in the set.
    pub(super) fn next(&self, from: u32) -> Option<u32> {
        self.find(from, |word| word)
    }

    /// The lowest number from `from` on that is not in the set; the limit rounded up to a word if all are.
    pub(super) fn next_absent(&self, from: u32) -> u32 {
        self.find(from, |word| !word)
            .unwrap_or(self.words.len() as u32 * WORD)
    }

    #[inline]
    fn find(&self, from: u32, see: impl Fn(u64) -> u64) -> Option<u32> {
        let first = (from / WORD) as usize;
        let mut mask = u64::MAX << (from % WORD);
        for (index, &word) in self.words.iter().enumerate().skip(first) {
            let bits = see(word) & mask;
            if bits != 0 {
                return Some(index as u32 * WORD + bits.trailing_zeros());
            }
            mask = u64::MAX;
        }
        None
    }

    /// Runs of numbers in `from .. to` that are not in the set: first number and length.
    pub(super) fn absent_runs(&self, from: u32, to: u32) -> impl Iterator<Item = (u32, u32)> {
        let mut at = from;
        std::iter::from_fn(move || {
            let first = self.next_absent(at);
            if first >= to {
                return None;
            }
            at = self.next(first).map_or(to, |next| next.min(to));
            Some((first, at - first))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const LIMIT: u32 = 300;

    proptest! {
        #[test]
        fn it_holds_what_a_set_would_hold(steps in prop::collection::vec((0..LIMIT, any::<bool>()), 0..400)) {
            let mut bits = Bits::new(LIMIT);
            let mut model = BTreeSet::new();
            for (number, is_insert) in steps {
                if is_insert {
                    prop_assert_eq!(bits.insert(number), model.insert(number));
                } else {
                    prop_assert_eq!(bits.remove(number), model.remove(&number));
                }
                prop_assert_eq!(bits.len() as usize, model.len());
                prop_assert_eq!(bits.contains(number), is_insert);
            }
            for from in 0..LIMIT {
                prop_assert_eq!(bits.next(from), model.range(from..).next().copied());
                prop_assert_eq!(bits.next_absent(from), (from..).find(|number| !model.contains(number)).unwrap());
            }
        }

        #[test]
        fn absent_runs_are_what_is_not_there(there in prop::collection::btree_set(0..LIMIT, 0..300), from in 0..LIMIT, more in 0..LIMIT) {
            let mut bits = Bits::new(LIMIT);
            there.iter().for_each(|&number| { bits.insert(number); });
            let to = (from + more).min(LIMIT);
            let numbers = bits.absent_runs(from, to).flat_map(|(first, count)| first..first + count);
            prop_assert!(numbers.eq((from..to).filter(|number| !there.contains(number))));
            prop_assert!(bits.absent_runs(from, to).all(|(first, count)| count > 0 && bits.contains(first + count) | (first + count == to)));
        }
    }

    #[test]
    fn numbers_past_the_limit_are_not_taken() {
        let mut bits = Bits::new(64);
        assert!(!bits.insert(64) && !bits.remove(u32::MAX) && !bits.contains(64));
        assert_eq!((bits.len(), bits.next(64), bits.next_absent(900)), (0, None, 64));
    }
}
