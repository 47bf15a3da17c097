//! Records of the journal: length 4, XXH3-64 of what follows 8, postcard. Anything else ends what is believed.

use farline_spec::{Failure, FailureKind};
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use super::super::message::MAX_PATH_BYTES;
use super::super::sum::Sum;

/// Version of the records that are written. Those before had sums of BLAKE3 alone, and do not know of others.
pub(super) const VERSION: u32 = 3;
/// The first version that is read, as this one; a journal of another is not.
pub(super) const FIRST_VERSION: u32 = 2;
/// Bytes before a record's content.
const PREFIX_BYTES: usize = 12;
/// Longest content of a record: a path and a few numbers.
const MOST_BYTES: usize = MAX_PATH_BYTES + 256;

/// What a file of the source is known by: path, length, and times of last change of content and of anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Path below the destination.
    #[serde(with = "serde_bytes")]
    pub path: Vec<u8>,
    /// Length.
    pub bytes: u64,
    /// Time of last change of the content, nanoseconds since 1970.
    pub mtime_ns: i64,
    /// Time of last change of anything about it.
    pub ctime_ns: i64,
}

impl Source {
    /// Sixteen bytes that stand for all of it.
    pub fn key(&self) -> [u8; 16] {
        source_key(&self.path, self.bytes, self.mtime_ns, self.ctime_ns)
    }
}

/// Numbers of partials that several sessions write to together have this bit; others have not.
pub const SHARED_ID: u64 = 1 << 63;

/// The number of the partial of a file that several sessions write to together: each finds it without asking another, and what
/// the source was before has another.
pub fn shared_id(source: &Source) -> u64 {
    let mut id = [0; 8];
    id.copy_from_slice(&source.key()[..8]);
    u64::from_le_bytes(id) | SHARED_ID
}

/// Sixteen bytes that stand for a file of the source.
pub fn source_key(path: &[u8], bytes: u64, mtime_ns: i64, ctime_ns: i64) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&bytes.to_le_bytes());
    hasher.update(&mtime_ns.to_le_bytes());
    hasher.update(&ctime_ns.to_le_bytes());
    hasher.update(path);
    sixteen(&hasher.finalize())
}

/// Sixteen bytes that stand for a file as it lies at the destination.
pub fn placed_key(path: &[u8], bytes: u64, mtime_ns: i64) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"placed");
    hasher.update(&bytes.to_le_bytes());
    hasher.update(&mtime_ns.to_le_bytes());
    hasher.update(path);
    sixteen(&hasher.finalize())
}

/// Sixteen bytes that stand for a path.
pub fn path_key(path: &[u8]) -> [u8; 16] {
    sixteen(&blake3::hash(path))
}

/// The first sixteen bytes of a hash.
pub fn sixteen(hash: &blake3::Hash) -> [u8; 16] {
    let mut key = [0; 16];
    key.copy_from_slice(&hash.as_bytes()[..16]);
    key
}

/// One thing that is true once it is in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Record {
    /// The first: whose journal this is, and how much a power cut can have taken from it.
    Header {
        /// [`VERSION`].
        version: u32,
        /// Key of the copy.
        key: [u8; 16],
        /// Which start of the machine, if data were not brought to a device before their records: after another they are not believed.
        boot: Option<String>,
    },
    /// A partial was begun.
    Begun {
        /// Number of the partial.
        id: u64,
        /// The file.
        source: Source,
    },
    /// A part of a partial is on the device and proved.
    Part {
        /// Number of the partial.
        id: u64,
        /// Where it begins.
        offset: u64,
        /// How long it is.
        bytes: u64,
        /// Sum of the subtree; `None` where nothing is hashed.
        hash: Option<Sum>,
    },
    /// A file is under its name or just about to be: if it is there, it is this one.
    Done {
        /// [`source_key`].
        key: [u8; 16],
        /// Sum of the content; `None` where nothing is hashed.
        hash: Option<Sum>,
        /// Number of the partial that becomes it.
        id: Option<u64>,
    },
    /// A partial is given up.
    Dropped {
        /// Number of the partial.
        id: u64,
    },
    /// A file that was said to be done did not get its name.
    Undone {
        /// [`source_key`].
        key: [u8; 16],
    },
    /// This copy put a file there: where it is found, this copy may put the next state of its source in its place. Versions
    /// that do not know this record stop at it.
    Placed {
        /// [`placed_key`].
        key: [u8; 16],
    },
}

/// Appends `record` to `bytes`.
pub fn append(bytes: &mut Vec<u8>, record: &Record) -> Result<(), Failure> {
    let start = bytes.len();
    let mut taken = std::mem::take(bytes);
    taken.extend_from_slice(&[0; PREFIX_BYTES]);
    *bytes = postcard::to_extend(record, taken)
        .map_err(|error| Failure::new(FailureKind::Internal, format!("journal record: {error}")))?;
    let content = &bytes[start + PREFIX_BYTES..];
    let length = (content.len() as u32).to_le_bytes();
    let check = XxHash3_64::oneshot(content).to_le_bytes();
    bytes[start..start + 4].copy_from_slice(&length);
    bytes[start + 4..start + PREFIX_BYTES].copy_from_slice(&check);
    Ok(())
}

/// Bytes of the record at the start of `bytes` with everything, or of its prefix where even that is not there; `None` if no
/// record is so long.
pub(super) fn bytes_of(bytes: &[u8]) -> Option<usize> {
    let Some(prefix) = bytes.first_chunk::<4>() else {
        return Some(PREFIX_BYTES);
    };
    let length = u32::from_le_bytes(*prefix) as usize;
    (length <= MOST_BYTES).then_some(PREFIX_BYTES + length)
}

/// The record at the start of `bytes` and its length with everything; `None` if there is no whole, sound one.
pub fn take(bytes: &[u8]) -> Option<(Record, usize)> {
    let (prefix, rest) = bytes.split_first_chunk::<PREFIX_BYTES>()?;
    let length = u32::from_le_bytes(*prefix.first_chunk::<4>()?) as usize;
    if length > MOST_BYTES {
        return None;
    }
    let content = rest.get(..length)?;
    if u64::from_le_bytes(*prefix.last_chunk::<8>()?) != XxHash3_64::oneshot(content) {
        return None;
    }
    let (record, left) = postcard::take_from_bytes(content).ok()?;
    left.is_empty().then_some((record, PREFIX_BYTES + length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_record_is_read_as_it_was_written_and_damage_anywhere_is_found() {
        let record = Record::Begun {
            id: 7,
            source: Source {
                path: b"a\xff/b".to_vec(),
                bytes: 1 << 40,
                mtime_ns: -1,
                ctime_ns: i64::MAX,
            },
        };
        let mut bytes = Vec::new();
        append(&mut bytes, &record).unwrap();
        assert_eq!(take(&bytes), Some((record, bytes.len())));
        for place in 0..bytes.len() {
            bytes[place] ^= 1;
            assert_eq!(take(&bytes), None, "at {place}");
            bytes[place] ^= 1;
            assert_eq!(take(&bytes[..place]), None, "cut at {place}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = take(&bytes);
        }
    }
}
