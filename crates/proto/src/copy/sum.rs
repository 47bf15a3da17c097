//! Sums of content: which there are, how they are made, and how those of two halves become that of the whole.
//!
//! Both kinds are trees of one shape: of a length `n`, the left subtree is the largest power of two that is less than `n`, the
//! right one the rest. So chunks that come in any order, over any stream, in any session, add up to the sum of their file.
//!
//! | kind | leaves | parent | the sum of a whole file |
//! |---|---|---|---|
//! | BLAKE3 | 1 KiB | as it has them itself (section 2.1 of the BLAKE3 paper) | what `b3sum` prints |
//! | XXH3 | 64 KiB, XXH3-128 of each | XXH3-128 of both sums, left first, 16 bytes each, big-endian | of one leaf, what `xxhsum -H128` prints |
//!
//! XXH3-128 of a long file as `xxhsum` makes it goes from the first byte to the last and cannot be put together from parts.

use blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};
use farline_spec::{FileKind, FileStatus, ReceiptLine, SumKind};
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_128;

/// Leaves of the tree of XXH3; where a file may be cut ([`GRAIN_BYTES`](super::message::GRAIN_BYTES)), so that every part is a subtree.
pub const XXH3_LEAF_BYTES: usize = 64 * 1024;
/// What stands behind the sixteen bytes of an XXH3-128. A BLAKE3 ends so once in 2^128.
const XXH3_MARK: [u8; 16] = *b"XXH3-128 of tree";
/// Zeros that holes are hashed from.
static ZEROS: [u8; XXH3_LEAF_BYTES] = [0; XXH3_LEAF_BYTES];

/// A sum of content, or of a part of it. Its 32 bytes say of which kind it is, so that it is never taken for one of another,
/// in a frame, a message or a journal of whatever version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Sum([u8; 32]);

impl Sum {
    /// The sum whose bytes these are.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    fn of_xxh3(value: u128) -> Self {
        let (value, mut bytes) = (value.to_be_bytes(), [0; 32]);
        let (left, right) = bytes.split_at_mut(16);
        left.copy_from_slice(&value);
        right.copy_from_slice(&XXH3_MARK);
        Self(bytes)
    }

    /// Its bytes without what says of which kind it is.
    fn value(&self) -> &[u8] {
        match self.kind() {
            SumKind::Blake3 => &self.0,
            SumKind::Xxh3 => &self.0[..16],
        }
    }

    /// Of which kind it is.
    pub fn kind(&self) -> SumKind {
        match self.0[16..] == XXH3_MARK {
            true => SumKind::Xxh3,
            false => SumKind::Blake3,
        }
    }

    /// In hexadecimal: 64 digits of BLAKE3, 32 of XXH3.
    pub fn hex(&self) -> String {
        self.value().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The sum of two subtrees side by side; `is_root`: they are all of a file.
    pub(crate) fn joined(left: &Self, right: &Self, is_root: bool) -> Self {
        match (left.kind(), is_root) {
            // The root is hashed as such and is no chaining value.
            (SumKind::Blake3, true) => Self(*merge_subtrees_root(&left.0, &right.0, Mode::Hash).as_bytes()),
            (SumKind::Blake3, false) => Self(merge_subtrees_non_root(&left.0, &right.0, Mode::Hash)),
            (SumKind::Xxh3, _) => {
                let mut both = [0; 32];
                both[..16].copy_from_slice(&left.0[..16]);
                both[16..].copy_from_slice(&right.0[..16]);
                Self::of_xxh3(XxHash3_128::oneshot(&both))
            }
        }
    }
}

/// Writes a sum down in a line of a receipt, under the name of its kind; of content that was copied without one, that it was.
pub fn note_sum(line: &mut ReceiptLine, sum: Option<Sum>) {
    match sum {
        Some(sum) => match sum.kind() {
            SumKind::Blake3 => line.blake3 = Some(sum.hex()),
            SumKind::Xxh3 => line.xxh3_tree = Some(sum.hex()),
        },
        None if line.kind == FileKind::File && line.status == FileStatus::Copied => {
            line.hash = Some("none".to_owned());
        }
        None => {}
    }
}

/// Bytes of the leaves of the tree of a kind.
pub(crate) const fn leaf_bytes(kind: SumKind) -> u64 {
    match kind {
        SumKind::Blake3 => 1024,
        SumKind::Xxh3 => XXH3_LEAF_BYTES as u64,
    }
}

/// The sum of a whole file.
pub fn content_sum(kind: SumKind, content: &[u8]) -> Sum {
    match kind {
        SumKind::Blake3 => Sum(*blake3::hash(content).as_bytes()),
        SumKind::Xxh3 => xxh3_tree(content),
    }
}

/// The sum of the chunk of `content` that begins at `offset` of its file, as a part of the file's tree.
///
/// # Panics
/// With BLAKE3, when `offset` is no multiple of 1024, or there is no such subtree: more content than `offset`'s lowest bit, or
/// none.
pub fn chunk_sum(kind: SumKind, offset: u64, content: &[u8], is_whole_file: bool) -> Sum {
    if is_whole_file || kind == SumKind::Xxh3 {
        return content_sum(kind, content);
    }
    let mut hasher = blake3::Hasher::new();
    hasher.set_input_offset(offset).update(content);
    Sum(hasher.finalize_non_root())
}

/// As [`chunk_sum`], of `bytes` zeros that are nowhere.
///
/// # Panics
/// As [`chunk_sum`].
pub fn hole_sum(kind: SumKind, offset: u64, bytes: u64, is_whole_file: bool) -> Sum {
    if kind == SumKind::Xxh3 {
        return zeros_xxh3(bytes);
    }
    let mut hasher = blake3::Hasher::new();
    if !is_whole_file {
        hasher.set_input_offset(offset);
    }
    let mut left = bytes;
    while left > 0 {
        let step = left.min(ZEROS.len() as u64);
        hasher.update(&ZEROS[..step as usize]);
        left -= step;
    }
    Sum(match is_whole_file {
        true => *hasher.finalize().as_bytes(),
        false => hasher.finalize_non_root(),
    })
}

/// The last half first: what was read or opened last is what the cache has, and what is sealed or written next is the
/// beginning.
fn xxh3_tree(content: &[u8]) -> Sum {
    if content.len() <= XXH3_LEAF_BYTES {
        return Sum::of_xxh3(XxHash3_128::oneshot(content));
    }
    let (left, right) = content.split_at(1 << (content.len() - 1).ilog2());
    let right = xxh3_tree(right);
    Sum::joined(&xxh3_tree(left), &right, false)
}

/// Of zeros every whole leaf, and every whole pair of them, is the same.
fn zeros_xxh3(bytes: u64) -> Sum {
    let mut sums = Hasher::new(SumKind::Xxh3);
    let whole = Sum::of_xxh3(XxHash3_128::oneshot(&ZEROS));
    if let Hasher::Xxh3(tree) = &mut sums {
        (0..bytes / XXH3_LEAF_BYTES as u64).for_each(|_| tree.push(whole));
    }
    sums.update(&ZEROS[..(bytes % XXH3_LEAF_BYTES as u64) as usize]);
    sums.sum()
}

/// Sums content that comes from its beginning to its end.
#[derive(Debug)]
pub enum Hasher {
    /// BLAKE3.
    Blake3(Box<blake3::Hasher>),
    /// The tree of XXH3.
    Xxh3(LeafSums),
}

impl Hasher {
    /// One that nothing has come to.
    pub fn new(kind: SumKind) -> Self {
        match kind {
            SumKind::Blake3 => Self::Blake3(Box::new(blake3::Hasher::new())),
            SumKind::Xxh3 => Self::Xxh3(LeafSums::default()),
        }
    }

    /// So much more comes.
    pub fn update(&mut self, content: &[u8]) {
        match self {
            Self::Blake3(hasher) => {
                hasher.update(content);
            }
            Self::Xxh3(sums) => sums.update(content),
        }
    }

    /// The sum of all that came so far.
    pub fn sum(&self) -> Sum {
        match self {
            Self::Blake3(hasher) => Sum(*hasher.finalize().as_bytes()),
            Self::Xxh3(sums) => sums.sum(),
        }
    }
}

/// The tree of XXH3 as far as leaves have come, joined as far as they can be.
#[derive(Debug, Default)]
pub struct LeafSums {
    /// What is not a whole leaf yet.
    rest: Vec<u8>,
    /// Subtrees, the largest first.
    joined: Vec<Sum>,
    leaves: u64,
}

impl LeafSums {
    fn update(&mut self, mut content: &[u8]) {
        if !self.rest.is_empty() {
            let missing = XXH3_LEAF_BYTES - self.rest.len();
            let (more, after) = content.split_at(missing.min(content.len()));
            self.rest.extend_from_slice(more);
            content = after;
            if self.rest.len() < XXH3_LEAF_BYTES {
                return;
            }
            let leaf = XxHash3_128::oneshot(&self.rest);
            self.rest.clear();
            self.push(Sum::of_xxh3(leaf));
        }
        let leaves = content.chunks_exact(XXH3_LEAF_BYTES);
        self.rest.extend_from_slice(leaves.remainder());
        for leaf in leaves {
            self.push(Sum::of_xxh3(XxHash3_128::oneshot(leaf)));
        }
    }

    /// One more leaf; aligned neighbours are joined at once.
    fn push(&mut self, leaf: Sum) {
        self.leaves += 1;
        let mut sum = leaf;
        for _ in 0..self.leaves.trailing_zeros() {
            if let Some(left) = self.joined.pop() {
                sum = Sum::joined(&left, &sum, false);
            }
        }
        self.joined.push(sum);
    }

    fn sum(&self) -> Sum {
        let rest = || Sum::of_xxh3(XxHash3_128::oneshot(&self.rest));
        let last = (!self.rest.is_empty()).then(rest);
        let all = last.into_iter().chain(self.joined.iter().rev().copied());
        all.reduce(|right, left| Sum::joined(&left, &right, false))
            .unwrap_or_else(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KINDS: [SumKind; 2] = [SumKind::Blake3, SumKind::Xxh3];
    const LEAF: usize = XXH3_LEAF_BYTES;

    fn content(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|at| (at * 7 % 251) as u8).collect()
    }

    #[test]
    fn of_one_leaf_the_sum_is_what_xxhsum_prints() {
        // `xxhsum -H128` 0.8.1 of the same bytes, at the lengths at which XXH3 takes another way.
        for (bytes, printed) in [
            (0, "99aa06d3014798d86001c324468d497f"),
            (1, "a6cd5e9392000f6ac44bdff4074eecdb"),
            (3, "656e81c56e41fe02c3489259e968ad9e"),
            (4, "ab5c3e7474d809db81a65295de8e7dde"),
            (8, "e4b9dd0b66ff3c50ebabbd0695002ff6"),
            (9, "82ddc95bc76007671c69c3f04aaed08c"),
            (16, "ddf6c1254d70f76794eaa17b20756f46"),
            (17, "263f67af63088041735fe434ded90c3c"),
            (128, "381610c474b8adfb2dfb73305de1f91a"),
            (129, "4e05eed4427255d51f8b5092c9ba3be8"),
            (240, "17ffe035d71c1ec8e6bf81617aad6c4a"),
            (241, "29bc1e9cffb6d79bc614c8c3575348c1"),
            (1024, "07fe8eadab1cf098f22ef3dc84ff47ea"),
            (65_535, "c3e15cf7c673c9e8b57411860c2ecc00"),
            (65_536, "da25096a04743fc0db485bf0653067e1"),
        ] {
            assert_eq!(
                content_sum(SumKind::Xxh3, &content(bytes)).hex(),
                printed,
                "{bytes}"
            );
        }
    }

    #[test]
    fn a_sum_says_of_which_kind_it_is_and_none_is_one_of_another() {
        for kind in KINDS {
            let sum = content_sum(kind, b"abc");
            assert_eq!(sum.kind(), kind);
            assert_eq!(Sum::from_bytes(*sum.as_bytes()), sum);
        }
        assert_ne!(
            content_sum(SumKind::Blake3, b"abc"),
            content_sum(SumKind::Xxh3, b"abc")
        );
        assert_eq!(content_sum(SumKind::Xxh3, b"abc").hex().len(), 32);
        assert_eq!(
            content_sum(SumKind::Blake3, b"abc").hex(),
            blake3::hash(b"abc").to_hex().as_str()
        );
    }

    #[test]
    fn of_two_leaves_the_sum_is_that_of_both_sums() {
        let content = content(LEAF + 5);
        let mut both = XxHash3_128::oneshot(&content[..LEAF]).to_be_bytes().to_vec();
        both.extend(XxHash3_128::oneshot(&content[LEAF..]).to_be_bytes());
        let whole = content_sum(SumKind::Xxh3, &content);
        assert_eq!(whole.hex(), format!("{:032x}", XxHash3_128::oneshot(&both)));
    }

    #[test]
    fn holes_sum_up_as_the_zeros_they_are() {
        let zeros = vec![0; 5 * LEAF + 300];
        for kind in KINDS {
            for bytes in [1, 300, LEAF, 2 * LEAF, 5 * LEAF + 300] {
                let hole = hole_sum(kind, 0, bytes as u64, true);
                assert_eq!(hole, chunk_sum(kind, 0, &zeros[..bytes], true), "{bytes}");
            }
            let place = 1 << 19;
            let hole = hole_sum(kind, place, 300_000, false);
            assert_eq!(hole, chunk_sum(kind, place, &zeros[..300_000], false));
        }
        let there = |place| hole_sum(SumKind::Blake3, place, 300_000, false);
        assert_ne!(there(1 << 19), there(1 << 20));
    }

    proptest! {
        #[test]
        fn in_whatever_pieces_content_comes_its_sum_is_the_same(
            bytes in 0_usize..5 * LEAF,
            cuts in prop::collection::vec(0_usize..5 * LEAF, 0..6),
        ) {
            let content = content(bytes);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes)).chain([0, bytes]).collect();
            cuts.sort_unstable();
            for kind in KINDS {
                let mut hasher = Hasher::new(kind);
                cuts.windows(2).for_each(|piece| hasher.update(&content[piece[0]..piece[1]]));
                prop_assert_eq!(hasher.sum(), content_sum(kind, &content));
            }
        }

        #[test]
        fn one_changed_bit_anywhere_changes_the_sum(
            bytes in 1_usize..3 * LEAF,
            place in any::<prop::sample::Index>(),
            bit in 0_u8..8,
        ) {
            let mut content = content(bytes);
            for kind in KINDS {
                let before = content_sum(kind, &content);
                content[place.index(bytes)] ^= 1 << bit;
                prop_assert_ne!(content_sum(kind, &content), before);
                content[place.index(bytes)] ^= 1 << bit;
            }
        }
    }
}
