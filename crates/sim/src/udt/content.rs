//! Bytes that follow from a seed and their place, so that any one that is wrong, missing or doubled shows.

/// SplitMix64's mixing (Steele, Lea, Flood 2014).
fn mixed(seed: u64, word: u64) -> [u8; 8] {
    let mut bits = seed.wrapping_add(word.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (bits ^ (bits >> 31)).to_le_bytes()
}

/// Calls `each` with every place of `length` from `position` on, cut into words: offset, bytes that belong there.
fn words(seed: u64, position: u64, length: usize, mut each: impl FnMut(usize, &[u8])) {
    let mut offset = 0;
    while offset < length {
        let at = position + offset as u64;
        let skip = (at % 8) as usize;
        let word = mixed(seed, at / 8);
        let take = (8 - skip).min(length - offset);
        each(offset, &word[skip..skip + take]);
        offset += take;
    }
}

/// Writes the bytes from `position` on.
pub(super) fn fill(seed: u64, position: u64, into: &mut [u8]) {
    let length = into.len();
    words(seed, position, length, |offset, word| {
        into[offset..offset + word.len()].copy_from_slice(word);
    });
}

/// Whether `bytes` are those from `position` on.
pub(super) fn is_right(seed: u64, position: u64, bytes: &[u8]) -> bool {
    let mut right = true;
    words(seed, position, bytes.len(), |offset, word| {
        right &= bytes[offset..offset + word.len()] == *word;
    });
    right
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_piece_is_right_in_its_place_and_wrong_in_any_other(position in 0u64..1 << 40, length in 9usize..100, other in 0u64..1 << 40) {
            let mut piece = vec![0; length];
            fill(7, position, &mut piece);
            prop_assert!(is_right(7, position, &piece));
            prop_assert!(other == position || !is_right(7, other, &piece));
            piece[length / 2] ^= 1;
            prop_assert!(!is_right(7, position, &piece));
        }
    }
}
