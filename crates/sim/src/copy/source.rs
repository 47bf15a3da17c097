//! Files of the sending end, and what a grain of one has.

use farline_proto::copy::message::GRAIN_BYTES;
use farline_proto::copy::receiver::Hash;
use farline_proto::copy::tree_hash::TreeHash;
use farline_spec::SumKind;

use crate::Random;

/// A file of the source; a change makes it another version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Its path below the destination.
    pub path: Vec<u8>,
    /// Its length.
    pub bytes: u64,
    /// Whose content it has: a further name has its file's.
    pub content: u64,
    /// Which state of it this is.
    pub version: u64,
    /// Whether whole grains of it are zeros that are not sent.
    pub has_holes: bool,
    /// The file that it is a further name of, by its place among the files.
    pub link_to: Option<usize>,
}

impl SourceFile {
    /// One drawn at random: small, as long as a grain, or of some grains.
    pub fn draw(random: &mut Random, place: usize) -> Self {
        let grains = random.bits() % 6;
        let odd = 1 + random.bits() % (GRAIN_BYTES - 1);
        let bytes = match random.bits() % 4 {
            0 => odd,
            1 => GRAIN_BYTES * (1 + grains),
            _ => GRAIN_BYTES * grains + odd,
        };
        Self {
            path: format!("d{}/f{place}", place % 2).into_bytes(),
            bytes,
            content: place as u64,
            version: 1,
            has_holes: random.bits() % 3 == 0,
            link_to: None,
        }
    }

    /// Its time of last change: that of its version.
    pub const fn mtime_ns(&self) -> i64 {
        self.version as i64 * 1_000
    }

    /// Grains of it, the last one perhaps in part.
    pub const fn grains(&self) -> usize {
        self.bytes.div_ceil(GRAIN_BYTES) as usize
    }

    /// What a grain has.
    pub fn tag(&self, grain: usize) -> u64 {
        if self.has_holes && grain % 3 == 1 && (grain as u64 + 1) * GRAIN_BYTES <= self.bytes {
            return 0;
        }
        let state = self.content * 1_000 + self.version;
        Random::new(state * 1_000 + grain as u64).bits() | 1
    }

    /// All of it, by grain.
    pub fn tags(&self) -> Vec<u64> {
        (0..self.grains()).map(|grain| self.tag(grain)).collect()
    }

    /// Its hash.
    pub fn hash(&self) -> Option<Hash> {
        chunk_hash(self.bytes, 0, self.bytes, &self.tags())
    }
}

/// The hash of the part of a file of `file_bytes` from `offset` on whose grains have these `tags`; `None` for one that is no
/// subtree. Not BLAKE3 of anything, but joined as BLAKE3 is.
pub fn chunk_hash(file_bytes: u64, offset: u64, bytes: u64, tags: &[u64]) -> Option<Hash> {
    let mut tree = TreeHash::new(SumKind::Blake3, file_bytes);
    for (place, tag) in tags.iter().enumerate() {
        let at = offset + place as u64 * GRAIN_BYTES;
        let length = GRAIN_BYTES.min(file_bytes - at);
        if !tree.insert(at, length, leaf(*tag, at)) {
            return None;
        }
    }
    let parts = tree.parts();
    let whole = parts.first().filter(|part| (part.0, part.1) == (offset, bytes));
    whole.map(|part| part.2)
}

fn leaf(tag: u64, offset: u64) -> Hash {
    let mut random = Random::new(tag ^ offset.rotate_left(32));
    let mut hash = [0; 32];
    for eight in hash.chunks_exact_mut(8) {
        eight.copy_from_slice(&random.bits().to_le_bytes());
    }
    Hash::from_bytes(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_a_file_is_that_of_its_chunks_however_it_is_cut() {
        let file = SourceFile {
            path: b"a".to_vec(),
            bytes: 5 * GRAIN_BYTES + 9,
            content: 2,
            version: 3,
            has_holes: true,
            link_to: None,
        };
        let tags = file.tags();
        assert_eq!(tags[1], 0);
        let mut tree = TreeHash::new(SumKind::Blake3, file.bytes);
        for (first, grains) in [(4, 1), (0, 4), (5, 1)] {
            let offset = first as u64 * GRAIN_BYTES;
            let bytes = (grains as u64 * GRAIN_BYTES).min(file.bytes - offset);
            let part = &tags[first..first + grains];
            let hash = chunk_hash(file.bytes, offset, bytes, part).unwrap();
            assert!(tree.insert(offset, bytes, hash));
        }
        assert_eq!(tree.root(), file.hash());
    }
}
