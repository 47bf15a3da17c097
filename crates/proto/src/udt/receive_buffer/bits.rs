//! One bit for each index of a moving window.

const WORD_BITS: u64 = u64::BITS as u64;

/// A ring of bits. Indices that are set at the same time may lie at most as far apart as it is long; whoever moves
/// the window on clears what falls out of it, which [`Bits::take_run`] and [`Bits::clear`] do.
#[derive(Debug)]
pub(super) struct Bits {
    words: Vec<u64>,
    mask: u64,
}

impl Bits {
    /// Room for a window of `window` indices.
    pub(super) fn new(window: u64) -> Self {
        // One word more, because a window may begin and end within words.
        let words = (window.div_ceil(WORD_BITS) + 1).next_power_of_two();
        Self {
            words: vec![0; usize::try_from(words).expect("a window that fits into memory")],
            mask: words - 1,
        }
    }

    fn place(&self, index: u64) -> usize {
        ((index / WORD_BITS) & self.mask) as usize
    }

    pub(super) fn contains(&self, index: u64) -> bool {
        self.words[self.place(index)] >> (index % WORD_BITS) & 1 == 1
    }

    pub(super) fn set(&mut self, index: u64) {
        let place = self.place(index);
        self.words[place] |= 1 << (index % WORD_BITS);
    }

    /// Sets the bits from `first` up to, but not including, `end`.
    pub(super) fn set_range(&mut self, first: u64, end: u64) {
        self.for_words(first, end, |word, bits| *word |= bits);
    }

    /// Sets the bits from `first` up to, but not including, `end`, and in `fresh` those of them that were not set
    /// here. Both have room for the same window.
    pub(super) fn set_missing(&mut self, first: u64, end: u64, fresh: &mut Self) {
        let mut index = first;
        self.for_words(first, end, |word, bits| {
            let place = fresh.place(index);
            fresh.words[place] |= bits & !*word;
            *word |= bits;
            index += u64::from(bits.count_ones());
        });
    }

    /// Whether all bits from `first` up to, but not including, `end` are set. `end` is within the window.
    pub(super) fn is_full(&self, first: u64, end: u64) -> bool {
        let mut index = first;
        while index < end {
            let shift = index % WORD_BITS;
            let count = (end - index).min(WORD_BITS - shift);
            let bits = mask_of(shift, count);
            if self.words[self.place(index)] & bits != bits {
                return false;
            }
            index += count;
        }
        true
    }

    /// Clears the bits from `first` up to, but not including, `end`.
    pub(super) fn clear(&mut self, first: u64, end: u64) {
        self.for_words(first, end, |word, bits| *word &= !bits);
    }

    /// Clears the bits that are set from `first` on without a break, and gives how many there were.
    pub(super) fn take_run(&mut self, first: u64) -> u64 {
        let mut index = first;
        loop {
            let shift = index % WORD_BITS;
            let place = self.place(index);
            let ones = u64::from((self.words[place] >> shift).trailing_ones());
            if ones == 0 {
                return index - first;
            }
            self.words[place] &= !mask_of(shift, ones);
            index += ones;
        }
    }

    /// Calls `each` with every word that has bits of the range, and with a word in which those bits are set.
    fn for_words(&mut self, first: u64, end: u64, mut each: impl FnMut(&mut u64, u64)) {
        let mut index = first;
        while index < end {
            let shift = index % WORD_BITS;
            let count = (end - index).min(WORD_BITS - shift);
            let place = self.place(index);
            each(&mut self.words[place], mask_of(shift, count));
            index += count;
        }
    }
}

/// `count` ones, at least 1, above `shift` zeros.
fn mask_of(shift: u64, count: u64) -> u64 {
    (u64::MAX >> (WORD_BITS - count)) << shift
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn bits_of_a_moving_window_are_those_of_a_set(
            window in 1u64..300,
            steps in proptest::collection::vec((0u64..300, 0u64..300, 0u64..4), 1..100),
        ) {
            let (mut bits, mut model, mut low) = (Bits::new(window), BTreeSet::new(), u64::from(u32::MAX));
            for (first, count, kind) in steps {
                let first = low + first % window;
                let end = (first + count).min(low + window);
                match kind {
                    0 => {
                        bits.set(first);
                        model.insert(first);
                    }
                    1 => {
                        prop_assert_eq!(
                            bits.is_full(first, end),
                            (first..end).all(|index| model.contains(&index))
                        );
                        bits.set_range(first, end);
                        model.extend(first..end);
                    }
                    2 => {
                        bits.clear(low, first);
                        model = model.split_off(&first);
                        low = first;
                    }
                    _ => {
                        let run = (low..).take_while(|index| model.remove(index)).count() as u64;
                        prop_assert_eq!(bits.take_run(low), run);
                        low += run;
                    }
                }
                prop_assert!((low..low + window).all(|index| bits.contains(index) == model.contains(&index)));
            }
        }
    }
}
