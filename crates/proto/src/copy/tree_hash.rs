//! The sum of a file from the sums of its chunks, in whatever order they come.
//!
//! Every kind of sum is a binary tree over pieces ([`sum`](super::sum)): of a length `n`, the left subtree is the largest power of
//! two that is less than `n`, the right one the rest. So a whole chunk at a multiple of its length is a subtree, and so is
//! what is behind the last multiple.

use std::collections::BTreeMap;

use farline_spec::SumKind;

use super::sum::{Sum, chunk_sum, leaf_bytes};

/// The finest leaves of any tree: those of BLAKE3, where they are called chunks.
const LEAF_BYTES: u64 = leaf_bytes(SumKind::Blake3);

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
    kind: SumKind,
    file_bytes: u64,
    /// By offset: length and sum of subtrees that are known, none of which can be joined with another.
    known: BTreeMap<u64, (u64, Sum)>,
}

impl TreeHash {
    /// Tree of a file of `file_bytes` of which nothing is known, unless it is empty.
    pub fn new(kind: SumKind, file_bytes: u64) -> Self {
        let mut known = BTreeMap::new();
        if file_bytes == 0 {
            known.insert(0, (0, chunk_sum(kind, 0, &[], true)));
        }
        Self {
            kind,
            file_bytes,
            known,
        }
    }

    /// Adds the subtree over `bytes` bytes at `offset`: a chunk, or aligned chunks joined ([`Self::parts`] of another tree).
    /// False if it is no subtree of this file, a sum of another kind, or covers what is known already.
    pub fn insert(&mut self, offset: u64, bytes: u64, hash: Sum) -> bool {
        if hash.kind() != self.kind || !self.is_node(offset, bytes) || self.overlaps(offset, bytes) {
            return false;
        }
        let (mut offset, mut bytes, mut hash) = (offset, bytes, hash);
        while let Some((left, right, at)) = self.joined(offset, bytes, hash) {
            let parent_bytes = bytes + self.known.remove(&at).map_or(0, |(other, _)| other);
            hash = Sum::joined(&left, &right, parent_bytes == self.file_bytes);
            (offset, bytes) = (offset.min(at), parent_bytes);
        }
        self.known.insert(offset, (bytes, hash));
        true
    }

    /// Both halves of the parent of a subtree, left first, and where its sibling begins; `None` while that is not known.
    fn joined(&self, offset: u64, bytes: u64, hash: Sum) -> Option<(Sum, Sum, u64)> {
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

    /// Whether these bytes are a node of this tree.
    fn is_node(&self, offset: u64, bytes: u64) -> bool {
        let leaf = leaf_bytes(self.kind);
        let is_fine = |bytes: u64| bytes % leaf == 0;
        is_subtree(offset, bytes, self.file_bytes)
            && is_fine(offset)
            && (is_fine(bytes) || offset + bytes == self.file_bytes)
    }

    fn overlaps(&self, offset: u64, bytes: u64) -> bool {
        let before = self.known.range(..offset + bytes).next_back();
        before.is_some_and(|(start, (length, _))| start + length > offset)
    }

    /// The subtrees known, joined as far as they can be, by offset: offset, bytes, hash. That of the whole file is its hash.
    pub fn parts(&self) -> Vec<(u64, u64, Sum)> {
        let part = |(offset, (bytes, hash)): (&u64, &(u64, Sum))| (*offset, *bytes, *hash);
        self.known.iter().map(part).collect()
    }

    /// The file's sum once every chunk is known.
    pub fn root(&self) -> Option<Sum> {
        let (bytes, hash) = self.known.get(&0)?;
        (*bytes == self.file_bytes).then_some(*hash)
    }
}

#[cfg(test)]
mod tests {
    use super::super::sum::content_sum;
    use super::*;
    use proptest::prelude::*;

    const KINDS: [SumKind; 2] = [SumKind::Blake3, SumKind::Xxh3];
    const CHUNK: u64 = 1024;

    fn content(bytes: u64) -> Vec<u8> {
        (0..bytes).map(|at| (at * 7 % 251) as u8).collect()
    }

    fn blake3(file_bytes: u64) -> TreeHash {
        TreeHash::new(SumKind::Blake3, file_bytes)
    }

    fn sum(byte: u8) -> Sum {
        Sum::from_bytes([byte; 32])
    }

    /// Chunks of a file: offset, length, hash.
    fn chunks(kind: SumKind, content: &[u8], chunk: u64) -> Vec<(u64, u64, Sum)> {
        let whole = content.len() as u64 <= chunk;
        let hashed = |(place, part): (usize, &[u8])| {
            let offset = place as u64 * chunk;
            (offset, part.len() as u64, chunk_sum(kind, offset, part, whole))
        };
        content.chunks(chunk as usize).enumerate().map(hashed).collect()
    }

    #[test]
    fn chunks_in_order_and_backwards_make_the_hash_of_the_file() {
        let mut sizes = vec![0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 2 * CHUNK + 1];
        sizes.extend((3..=33).flat_map(|count| [count * CHUNK - 1, count * CHUNK, count * CHUNK + 1]));
        let sizes = KINDS
            .into_iter()
            .flat_map(|kind| sizes.iter().map(move |bytes| (kind, *bytes)));
        for (kind, bytes) in sizes {
            // As many leaves of either.
            let (chunk, scale) = (leaf_bytes(kind), leaf_bytes(kind) / CHUNK);
            let bytes = if bytes % CHUNK == 0 {
                bytes * scale
            } else {
                (bytes - bytes % CHUNK) * scale + 5
            };
            let content = content(bytes);
            let mut orders = [chunks(kind, &content, chunk), chunks(kind, &content, chunk)];
            orders[1].reverse();
            for order in orders {
                let mut tree = TreeHash::new(kind, bytes);
                for (offset, length, hash) in order {
                    assert!(tree.root().is_none() || bytes == 0);
                    assert!(tree.insert(offset, length, hash), "{bytes} {offset}");
                }
                let whole = content_sum(kind, &content);
                assert_eq!(tree.root(), Some(whole), "{bytes}");
                assert_eq!(tree.parts(), [(0, bytes, whole)]);
            }
        }
    }

    #[test]
    fn a_file_in_order_needs_no_more_than_the_height_of_its_tree() {
        let content = content(1000 * CHUNK + 5);
        let mut tree = blake3(content.len() as u64);
        for (offset, bytes, hash) in chunks(SumKind::Blake3, &content, CHUNK) {
            tree.insert(offset, bytes, hash);
            assert!(tree.parts().len() <= 10);
        }
    }

    #[test]
    fn what_is_no_subtree_or_known_already_is_refused_and_changes_nothing() {
        let content = content(6 * CHUNK + 5);
        let mut tree = blake3(content.len() as u64);
        assert!(tree.insert(CHUNK, CHUNK, sum(1)));
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
            assert!(!tree.insert(offset, bytes, sum(2)), "{offset} {bytes}");
        }
        assert_eq!(tree.parts(), [(CHUNK, CHUNK, sum(1))]);
        for (offset, bytes) in [(4 * CHUNK, 2 * CHUNK + 5), (2 * CHUNK, 2 * CHUNK)] {
            assert!(tree.insert(offset, bytes, sum(3)), "{offset} {bytes}");
        }
        let mut empty = blake3(0);
        assert!(!empty.insert(0, 0, sum(0)) && !empty.insert(0, CHUNK, sum(0)));
        assert_eq!(empty.root(), Some(content_sum(SumKind::Blake3, &[])));
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
        let mut tree = blake3(5 * CHUNK);
        assert!(tree.insert(0, 5 * CHUNK, sum(9)));
        assert_eq!(tree.root(), Some(sum(9)));
    }

    #[test]
    fn a_tree_takes_no_sum_of_another_kind_and_no_part_finer_than_its_leaves() {
        const LEAF: u64 = leaf_bytes(SumKind::Xxh3);
        let content = content(3 * LEAF + 5);
        let mut tree = TreeHash::new(SumKind::Xxh3, content.len() as u64);
        let of = |kind, offset: u64, bytes: u64| {
            chunk_sum(kind, offset, &content[offset as usize..][..bytes as usize], false)
        };
        assert!(!tree.insert(0, LEAF, of(SumKind::Blake3, 0, LEAF)));
        assert!(!tree.insert(0, CHUNK, of(SumKind::Xxh3, 0, CHUNK)));
        assert!(!tree.insert(LEAF + CHUNK, CHUNK, of(SumKind::Xxh3, LEAF + CHUNK, CHUNK)));
        assert!(tree.insert(2 * LEAF, LEAF + 5, of(SumKind::Xxh3, 2 * LEAF, LEAF + 5)));
        assert!(tree.insert(0, 2 * LEAF, of(SumKind::Xxh3, 0, 2 * LEAF)));
        assert_eq!(tree.root(), Some(content_sum(SumKind::Xxh3, &content)));
    }

    proptest! {
        #[test]
        fn any_order_any_chunk_and_any_rest_of_a_former_run_make_the_hash_of_the_file(
            kind in prop::sample::select(&KINDS),
            bytes in 0_u64..70_000,
            chunk_bits in 10_u32..15,
            order in any::<u64>(),
            stop in 0_usize..80,
        ) {
            let scale = leaf_bytes(kind) / CHUNK;
            let (chunk, bytes) = (scale << chunk_bits, bytes * scale);
            let content = content(bytes);
            let mut pieces = chunks(kind, &content, chunk);
            // Some order that the number names.
            pieces.sort_by_key(|(offset, ..)| (offset / chunk + 1).wrapping_mul(order | 1).rotate_left(17));
            let mut first = TreeHash::new(kind, bytes);
            let stop = stop.min(pieces.len());
            for (offset, length, hash) in &pieces[..stop] {
                prop_assert!(first.insert(*offset, *length, *hash));
                prop_assert!(!first.insert(*offset, *length, *hash));
            }
            let mut next = TreeHash::new(kind, bytes);
            for (offset, length, hash) in first.parts().into_iter().rev() {
                prop_assert!(next.insert(offset, length, hash) || bytes == 0);
            }
            prop_assert_eq!(next.parts(), first.parts());
            for (offset, length, hash) in &pieces[stop..] {
                prop_assert!(next.insert(*offset, *length, *hash));
            }
            prop_assert_eq!(next.root(), Some(content_sum(kind, &content)));
        }

        #[test]
        fn a_file_cut_anywhere_into_longest_subtrees_makes_its_hash(
            kind in prop::sample::select(&KINDS),
            bytes in 1_u64..70_000,
            cuts in prop::collection::btree_set(1_u64..69, 0..12),
            most_bits in 10_u32..15,
        ) {
            let leaf = leaf_bytes(kind);
            let (bytes, most) = (bytes * (leaf / CHUNK), leaf << (most_bits - 10));
            let content = content(bytes);
            let mut tree = TreeHash::new(kind, bytes);
            let ends = cuts.into_iter().map(|cut| cut * leaf).filter(|end| *end < bytes);
            let mut offset = 0;
            for end in ends.chain([bytes]) {
                while offset < end {
                    let part = subtree_bytes(offset, end, bytes, most);
                    prop_assert!(part <= most && is_subtree(offset, part, bytes));
                    let hash = chunk_sum(kind, offset, &content[offset as usize..][..part as usize], part == bytes);
                    prop_assert!(tree.insert(offset, part, hash));
                    offset += part;
                }
            }
            prop_assert_eq!(tree.root(), Some(content_sum(kind, &content)));
        }

        #[test]
        fn no_insert_makes_a_tree_panic(
            file_bytes in prop_oneof![0..10_000_u64, any::<u64>()],
            inserts in prop::collection::vec((any::<u64>(), any::<u64>(), 0_u32..64), 0..20),
        ) {
            let mut tree = blake3(file_bytes);
            for (offset, bytes, shift) in inserts {
                tree.insert(offset >> shift, bytes >> shift, sum(0));
                tree.insert(offset >> shift << shift, 1 << shift, sum(0));
            }
            let total: u64 = tree.parts().iter().map(|(_, bytes, _)| bytes).sum();
            prop_assert!(total <= file_bytes);
        }
    }
}
