//! Parts of a file: what is claimed, what is proved, what is missing.

use std::collections::BTreeMap;

/// Parts of a file, joined where they touch.
#[derive(Debug, Default, Clone)]
pub struct Ranges {
    /// Start to end.
    parts: BTreeMap<u64, u64>,
}

/// What became of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// It is the caller's.
    Taken,
    /// All of it is someone's already.
    Known,
    /// Only a part of it is: no sound sender cuts a file twice.
    Torn,
}

impl Ranges {
    /// Claims `bytes` bytes from `offset` on.
    pub fn claim(&mut self, offset: u64, bytes: u64) -> Claim {
        let end = offset + bytes;
        if let Some((_, known_end)) = self.parts.range(..end).next_back()
            && *known_end > offset
        {
            let around = self.parts.range(..=offset).next_back();
            let is_known = around.is_some_and(|(_, known_end)| *known_end >= end);
            return if is_known { Claim::Known } else { Claim::Torn };
        }
        let after = self.parts.remove(&end).unwrap_or(end);
        match self.parts.range_mut(..=offset).next_back() {
            Some((_, before)) if *before == offset => *before = after,
            _ => {
                self.parts.insert(offset, after);
            }
        }
        Claim::Taken
    }

    /// Claims what of `bytes` bytes from `offset` on is nobody's; these parts.
    pub fn claim_gaps(&mut self, offset: u64, bytes: u64) -> Vec<(u64, u64)> {
        let end = offset + bytes;
        let before = self.parts.range(..=offset).next_back();
        let mut at = before.map_or(offset, |(_, known_end)| offset.max(*known_end));
        let mut gaps = Vec::new();
        for (start, known_end) in self.parts.range(at.min(end)..end) {
            if *start > at {
                gaps.push((at, start - at));
            }
            at = *known_end;
        }
        if at < end {
            gaps.push((at, end - at));
        }
        for &(offset, bytes) in &gaps {
            self.claim(offset, bytes);
        }
        gaps
    }

    /// What of a file of `bytes` bytes is none of them: offset and length.
    pub fn gaps(&self, bytes: u64) -> Vec<(u64, u64)> {
        let mut rest = self.clone();
        rest.claim_gaps(0, bytes)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.parts.len()
    }

    /// Whether they are the whole of a file of `bytes` bytes.
    pub fn is_all(&self, bytes: u64) -> bool {
        self.parts.first_key_value() == Some((&0, &bytes))
    }

    /// The parts: offset and length.
    pub fn parts(&self) -> Vec<(u64, u64)> {
        self.parts
            .iter()
            .map(|(start, end)| (*start, end - start))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_part_is_claimed_once() {
        let mut ranges = Ranges::default();
        assert_eq!(ranges.claim(10, 10), Claim::Taken);
        assert_eq!(ranges.claim(10, 10), Claim::Known);
        assert_eq!(ranges.claim(12, 4), Claim::Known);
        assert_eq!(ranges.claim(5, 10), Claim::Torn);
        assert_eq!(ranges.claim(15, 10), Claim::Torn);
        assert_eq!(ranges.claim(0, 100), Claim::Torn);
        assert_eq!(ranges.claim(20, 10), Claim::Taken);
        assert_eq!(ranges.claim(0, 10), Claim::Taken);
        assert_eq!(ranges.parts(), [(0, 30)]);
    }

    proptest! {
        #[test]
        fn claims_are_what_a_list_of_blocks_says(claims in prop::collection::vec((0u64..20, 1u64..6), 0..40)) {
            let mut ranges = Ranges::default();
            let mut blocks = [false; 30];
            for (offset, bytes) in claims {
                let part = &mut blocks[offset as usize..(offset + bytes) as usize];
                let taken = part.iter().filter(|block| **block).count();
                let expected = if taken == 0 {
                    Claim::Taken
                } else if taken == part.len() {
                    Claim::Known
                } else {
                    Claim::Torn
                };
                prop_assert_eq!(ranges.claim(offset, bytes), expected);
                if taken == 0 {
                    part.fill(true);
                }
            }
            let gaps = ranges.claim_gaps(3, 20);
            for (offset, bytes) in gaps {
                let part = &mut blocks[offset as usize..(offset + bytes) as usize];
                prop_assert!(bytes > 0 && part.iter().all(|block| !block));
                part.fill(true);
            }
            prop_assert!(blocks[3..23].iter().all(|block| *block));
            prop_assert_eq!(ranges.claim_gaps(3, 20), vec![]);
        }
    }
}
