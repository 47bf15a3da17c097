//! BLAKE3 of a file from the hashes of its chunks, in whatever order they come.
//!
//! BLAKE3 is a binary tree over pieces of 1 KiB: of a length `n`, the left subtree is the largest power of two that is
//! less than `n`, the right one the rest. So a whole chunk at a multiple of its length is a subtree, and so is what is
//! behind the last multiple (section 2.1 of the BLAKE3 paper).

use std::collections::BTreeMap;

use blake3::hazmat::{ChainingValue, HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};

/// What the leaves of the tree are over (section 2.1 of the BLAKE3 paper, where they are called chunks).
const LEAF_BYTES: u64 = 1024;
/// Zeros that holes are hashed from.
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// Chaining value of the chunk of `content` that begins at `offset` of its file; of a file that is one chunk, its hash.
///
/// # Panics
/// When `offset` is no multiple of 1024, or there is no such subtree: more content than `offset`'s lowest bit, or none.
pub fn chunk_hash(offset: u64, content: &[u8], is_whole_file: bool) -> [u8; 32] {
    if is_whole_file {
        return *blake3::hash(content).as_bytes();
    }
    let mut hasher = blake3::Hasher::new();
    hasher.set_input_offset(offset).update(content);
    hasher.finalize_non_root()
}

/// As [`chunk_hash`], of `bytes` zeros that are nowhere.
///
/// # Panics
/// As [`chunk_hash`].
pub fn hole_hash(offset: u64, bytes: u64, is_whole_file: bool) -> [u8; 32] {
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
    if is_whole_file {
        *hasher.finalize().as_bytes()
    } else {
        hasher.finalize_non_root()
    }
}

/// Whether these bytes are a node of the tree of a file of `file_bytes` bytes: a power of two of them at a multiple of
/// itself, at least 1024, or all from a multiple of what they fit into to the end of the file.
pub fn is_subtree(offset: u64, bytes: u64, file_bytes: u64) -> bool {
    let Some(end) = offset.checked_add(bytes).filter(|_| bytes > 0) else {
        return false;
    };
    if end > file_bytes || offset % LEAF_BYTES != 0 {
        return false;
    }
    if end == file_bytes {
        return offset == 0 || bytes <= 1 << offset.trailing_zeros();
    }
    bytes >= LEAF_BYTES && bytes.is_power_of_two() && offset % bytes == 0
}

/// Length of the longest subtree ([`is_subtree`]) of at most `most` bytes that begins at `offset` and ends at `end` or before.
/// `offset` and `end` are multiples of 1024, unless the file of `file_bytes` bytes ends there; `most` is a power of two.
pub fn subtree_bytes(offset: u64, end: u64, file_bytes: u64, most: u64) -> u64 {
    let left = end - offset;
    let widest = match offset {
        0 => most,
        _ => most.min(1 << offset.trailing_zeros()),
    };
    if end == file_bytes && left <= widest {
        return left;
    }
    widest.min(1 << left.ilog2())
}

/// The tree of one file, as far as it is known. Aligned neighbours are joined at once, so that a file that comes nearly
/// in order needs no more memory than its height.
#[derive(Debug)]
pub struct TreeHash {
    file_bytes: u64,
    /// By offset: length and chaining value of subtrees that are known, none of which can be joined with another.
    known: BTreeMap<u64, (u64, ChainingValue)>,
}

impl TreeHash {
    /// Tree of a file of `file_bytes` of which nothing is known, unless it is empty.
    pub fn new(file_bytes: u64) -> Self {
        let mut known = BTreeMap::new();
        if file_bytes == 0 {
            known.insert(0, (0, chunk_hash(0, &[], true)));
        }
        Self { file_bytes, known }
    }

    /// Adds the subtree over `bytes` bytes at `offset`: a chunk, or aligned chunks joined ([`Self::parts`] of another tree).
    /// False if it is no subtree of this file, or covers what is known already.
    pub fn insert(&mut self, offset: u64, bytes: u64, hash: [u8; 32]) -> bool {
        if !is_subtree(offset, bytes, self.file_bytes) || self.overlaps(offset, bytes) {
            return false;
        }
        let (mut offset, mut bytes, mut hash) = (offset, bytes, hash);
        while let Some((left, right, at)) = self.joined(offset, bytes, hash) {
            // The root is hashed as such and is no chaining value.
            let parent_bytes = bytes + self.known.remove(&at).map_or(0, |(other, _)| other);
            hash = if parent_bytes == self.file_bytes {
                *merge_subtrees_root(&left, &right, Mode::Hash).as_bytes()
            } else {
                merge_subtrees_non_root(&left, &right, Mode::Hash)
            };
            (offset, bytes) = (offset.min(at), parent_bytes);
        }
        self.known.insert(offset, (bytes, hash));
        true
    }

    /// Both halves of the parent of a subtree, left first, and where its sibling begins; `None` while that is not known.
    fn joined(
        &self,
        offset: u64,
        bytes: u64,
        hash: ChainingValue,
    ) -> Option<(ChainingValue, ChainingValue, u64)> {
        let end = offset + bytes;
        // What ends with the file is the right child of every parent it has, and so is the second of an aligned pair.
        let is_right = offset > 0 && (end == self.file_bytes || offset & bytes != 0);
        let (sibling, sibling_bytes) = if is_right {
            let before = 1 << offset.trailing_zeros();
            (offset - before, before)
        } else {
            (end, bytes.min(self.file_bytes - end))
        };
        let (found_bytes, other) = self.known.get(&sibling)?;
        if *found_bytes != sibling_bytes {
            return None;
        }
        Some(if is_right {
            (*other, hash, sibling)
        } else {
            (hash, *other, sibling)
        })
    }

    fn overlaps(&self, offset: u64, bytes: u64) -> bool {
        let before = self.known.range(..offset + bytes).next_back();
        before.is_some_and(|(start, (length, _))| start + length > offset)
    }

    /// The subtrees known, joined as far as they can be, by offset: offset, bytes, hash. That of the whole file is its hash.
    pub fn parts(&self) -> Vec<(u64, u64, [u8; 32])> {
        let part = |(offset, (bytes, hash)): (&u64, &(u64, ChainingValue))| (*offset, *bytes, *hash);
        self.known.iter().map(part).collect()
    }

    /// The file's BLAKE3 once every chunk is known.
    pub fn root(&self) -> Option<[u8; 32]> {
        let (bytes, hash) = self.known.get(&0)?;
        (*bytes == self.file_bytes).then_some(*hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CHUNK: u64 = 1024;

    fn content(bytes: u64) -> Vec<u8> {
        (0..bytes).map(|at| (at * 7 % 251) as u8).collect()
    }

    /// Chunks of a file: offset, length, hash.
    fn chunks(content: &[u8], chunk: u64) -> Vec<(u64, u64, [u8; 32])> {
        let whole = content.len() as u64 <= chunk;
        let hashed = |(place, part): (usize, &[u8])| {
            let offset = place as u64 * chunk;
            (offset, part.len() as u64, chunk_hash(offset, part, whole))
        };
        content.chunks(chunk as usize).enumerate().map(hashed).collect()
    }

    #[test]
    fn chunks_in_order_and_backwards_make_the_hash_of_the_file() {
        let mut sizes = vec![0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 2 * CHUNK + 1];
        sizes.extend((3..=33).flat_map(|count| [count * CHUNK - 1, count * CHUNK, count * CHUNK + 1]));
        for bytes in sizes {
            let content = content(bytes);
            let mut orders = [chunks(&content, CHUNK), chunks(&content, CHUNK)];
            orders[1].reverse();
            for order in orders {
                let mut tree = TreeHash::new(bytes);
                for (offset, length, hash) in order {
                    assert!(tree.root().is_none() || bytes == 0);
                    assert!(tree.insert(offset, length, hash), "{bytes} {offset}");
                }
                let whole = *blake3::hash(&content).as_bytes();
                assert_eq!(tree.root(), Some(whole), "{bytes}");
                assert_eq!(tree.parts(), [(0, bytes, whole)]);
            }
        }
    }

    #[test]
    fn a_file_in_order_needs_no_more_than_the_height_of_its_tree() {
        let content = content(1000 * CHUNK + 5);
        let mut tree = TreeHash::new(content.len() as u64);
        for (offset, bytes, hash) in chunks(&content, CHUNK) {
            tree.insert(offset, bytes, hash);
            assert!(tree.parts().len() <= 10);
        }
    }

    #[test]
    fn what_is_no_subtree_or_known_already_is_refused_and_changes_nothing() {
        let content = content(6 * CHUNK + 5);
        let mut tree = TreeHash::new(content.len() as u64);
        assert!(tree.insert(CHUNK, CHUNK, [1; 32]));
        let wrong = [
            (CHUNK, CHUNK),
            (0, 2 * CHUNK),
            (0, 4 * CHUNK),
            (0, content.len() as u64),
            (0, 0),
            (0, 5),
            (0, CHUNK + 1),
            (5, CHUNK),
            (0, 3 * CHUNK),
            (3 * CHUNK, 2 * CHUNK),
            (2 * CHUNK, 4 * CHUNK + 5),
            (3 * CHUNK, 3 * CHUNK + 5),
            (6 * CHUNK, CHUNK),
            (6 * CHUNK, 4),
            (7 * CHUNK, CHUNK),
            (8 * CHUNK, 5),
            (u64::MAX - 1023, CHUNK),
            (u64::MAX, u64::MAX),
        ];
        for (offset, bytes) in wrong {
            assert!(!tree.insert(offset, bytes, [2; 32]), "{offset} {bytes}");
        }
        assert_eq!(tree.parts(), [(CHUNK, CHUNK, [1; 32])]);
        for (offset, bytes) in [(4 * CHUNK, 2 * CHUNK + 5), (2 * CHUNK, 2 * CHUNK)] {
            assert!(tree.insert(offset, bytes, [3; 32]), "{offset} {bytes}");
        }
        let mut empty = TreeHash::new(0);
        assert!(!empty.insert(0, 0, [0; 32]) && !empty.insert(0, CHUNK, [0; 32]));
        assert_eq!(empty.root(), Some(*blake3::hash(&[]).as_bytes()));
    }

    #[test]
    fn the_longest_subtree_is_as_long_as_place_end_and_bound_allow() {
        const FILE: u64 = 20 * CHUNK + 5;
        let longest =
            |offset: u64, end: u64, most: u64| subtree_bytes(offset * CHUNK, end * CHUNK, FILE, most * CHUNK);
        assert_eq!(longest(0, 20, 8), 8 * CHUNK);
        assert_eq!(longest(0, 7, 8), 4 * CHUNK);
        assert_eq!(longest(1, 20, 8), CHUNK);
        assert_eq!(longest(4, 20, 8), 4 * CHUNK);
        let to_the_end = |offset: u64, most: u64| subtree_bytes(offset * CHUNK, FILE, FILE, most * CHUNK);
        assert_eq!(to_the_end(16, 16), 4 * CHUNK + 5);
        assert_eq!(to_the_end(16, 4), 4 * CHUNK);
        assert_eq!(to_the_end(20, 8), 5);
        assert_eq!(subtree_bytes(0, 5, 5, 1024), 5);
        assert_eq!(subtree_bytes(0, FILE, FILE, 32 * CHUNK), FILE);
    }

    #[test]
    fn a_whole_file_s_part_is_its_hash() {
        let mut tree = TreeHash::new(5 * CHUNK);
        assert!(tree.insert(0, 5 * CHUNK, [9; 32]));
        assert_eq!(tree.root(), Some([9; 32]));
    }

    #[test]
    fn holes_hash_as_the_zeros_they_are() {
        let zeros = vec![0; 300_000];
        assert_eq!(hole_hash(0, 300_000, true), chunk_hash(0, &zeros, true));
        let place = 1 << 19;
        assert_eq!(hole_hash(place, 300_000, false), chunk_hash(place, &zeros, false));
        let here = chunk_hash(1 << 20, &zeros, false);
        assert_ne!(hole_hash(place, 300_000, false), here);
    }

    proptest! {
        #[test]
        fn any_order_any_chunk_and_any_rest_of_a_former_run_make_the_hash_of_the_file(
            bytes in 0_u64..70_000,
            chunk_bits in 10_u32..15,
            order in any::<u64>(),
            stop in 0_usize..80,
        ) {
            let chunk = 1 << chunk_bits;
            let content = content(bytes);
            let mut pieces = chunks(&content, chunk);
            // Some order that the number names.
            pieces.sort_by_key(|(offset, ..)| (offset / chunk + 1).wrapping_mul(order | 1).rotate_left(17));
            let mut first = TreeHash::new(bytes);
            let stop = stop.min(pieces.len());
            for (offset, length, hash) in &pieces[..stop] {
                prop_assert!(first.insert(*offset, *length, *hash));
                prop_assert!(!first.insert(*offset, *length, *hash));
            }
            let mut next = TreeHash::new(bytes);
            for (offset, length, hash) in first.parts().into_iter().rev() {
                prop_assert!(next.insert(offset, length, hash) || bytes == 0);
            }
            prop_assert_eq!(next.parts(), first.parts());
            for (offset, length, hash) in &pieces[stop..] {
                prop_assert!(next.insert(*offset, *length, *hash));
            }
            let whole = *blake3::hash(&content).as_bytes();
            prop_assert_eq!(next.root(), Some(whole));
        }

        #[test]
        fn a_file_cut_anywhere_into_longest_subtrees_makes_its_hash(
            bytes in 1_u64..70_000,
            cuts in prop::collection::btree_set(1_u64..69, 0..12),
            most_bits in 10_u32..15,
        ) {
            let content = content(bytes);
            let mut tree = TreeHash::new(bytes);
            let ends = cuts.into_iter().map(|cut| cut * LEAF_BYTES).filter(|end| *end < bytes);
            let mut offset = 0;
            for end in ends.chain([bytes]) {
                while offset < end {
                    let part = subtree_bytes(offset, end, bytes, 1 << most_bits);
                    prop_assert!(part <= 1 << most_bits && is_subtree(offset, part, bytes));
                    let hash = chunk_hash(offset, &content[offset as usize..][..part as usize], part == bytes);
                    prop_assert!(tree.insert(offset, part, hash));
                    offset += part;
                }
            }
            prop_assert_eq!(tree.root(), Some(*blake3::hash(&content).as_bytes()));
        }

        #[test]
        fn no_insert_makes_a_tree_panic(
            file_bytes in prop_oneof![0..10_000_u64, any::<u64>()],
            inserts in prop::collection::vec((any::<u64>(), any::<u64>(), 0_u32..64), 0..20),
        ) {
            let mut tree = TreeHash::new(file_bytes);
            for (offset, bytes, shift) in inserts {
                tree.insert(offset >> shift, bytes >> shift, [0; 32]);
                tree.insert(offset >> shift << shift, 1 << shift, [0; 32]);
            }
            let total: u64 = tree.parts().iter().map(|(_, bytes, _)| bytes).sum();
            prop_assert!(total <= file_bytes);
        }
    }
}
