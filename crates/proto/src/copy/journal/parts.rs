//! Parts of a file that touch are remembered as one.

use farline_spec::SumKind;

use super::super::Ranges;
use super::super::sum::Sum;
use super::super::tree_hash::TreeHash;

/// A subtree that is on the device and proved: offset, bytes, hash.
pub type Part = (u64, u64, Option<Sum>);

/// The same parts of a file of `file_bytes`, as few as they can be: subtrees joined, or ranges where nothing is hashed.
pub fn joined(parts: &[Part], file_bytes: u64) -> Vec<Part> {
    let mut trees = [SumKind::Blake3, SumKind::Xxh3].map(|kind| TreeHash::new(kind, file_bytes));
    let mut ranges = Ranges::default();
    for &(offset, bytes, hash) in parts {
        match hash {
            // Each takes its own kind; what is no subtree proves nothing.
            Some(hash) => {
                trees.iter_mut().any(|tree| tree.insert(offset, bytes, hash));
            }
            None if offset.checked_add(bytes).is_some_and(|end| end <= file_bytes) => {
                ranges.claim(offset, bytes);
            }
            None => {}
        }
    }
    let hashed = trees
        .iter()
        .flat_map(TreeHash::parts)
        .map(|(at, bytes, hash)| (at, bytes, Some(hash)));
    let plain = ranges.parts().into_iter().map(|(at, bytes)| (at, bytes, None));
    hashed.chain(plain).filter(|part| part.1 > 0).collect()
}
