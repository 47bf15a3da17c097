//! What of the entries is remembered to the end of the copy: folders for their times, paths for deletion and further names.

use std::collections::{HashMap, HashSet};

use super::super::journal::path_key;

/// What a key takes in a set that is neither full nor empty.
const KEY_BYTES: usize = 24;

/// What was announced, as small as it can be kept.
#[derive(Debug, Default)]
pub struct Seen {
    /// Folders one behind the other: length of the path 2, mode 4, time 8, user 4, group 4, path.
    folders: Vec<u8>,
    /// Where in `folders` each begins.
    starts: Vec<usize>,
    /// Keys of all paths.
    paths: HashSet<[u8; 16]>,
    /// Of them, those below which nothing is deleted.
    kept: HashSet<[u8; 16]>,
    /// Paths by what those have in common that are one at the destination, where it does not tell them apart.
    folded: HashMap<[u8; 16], Vec<u8>>,
    folded_bytes: usize,
    /// Paths of files one behind the other, and where that of each number ends.
    files: Vec<u8>,
    ends: Vec<usize>,
}

/// Numbers of a user and a group; what is absent stays as it is.
pub type OwnerIds = (Option<u32>, Option<u32>);

/// A folder that gets its permission bits and time when everything in it is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateFolder {
    /// Where it is.
    pub path: Vec<u8>,
    /// Permission bits.
    pub mode: u32,
    /// Time of last change, nanoseconds since 1970.
    pub mtime_ns: i64,
    /// User and group to whom it is to belong; what is absent stays as it is.
    pub owner: OwnerIds,
}

/// What stands for no user or group.
const NOBODY: u32 = u32::MAX;

impl Seen {
    /// A folder was announced.
    pub fn folder(&mut self, path: &[u8], mode: u32, mtime_ns: i64, owner: OwnerIds) {
        let start = self.folders.len();
        self.starts.push(start);
        self.folders.extend_from_slice(&(path.len() as u16).to_le_bytes());
        self.folders.extend_from_slice(&mode.to_le_bytes());
        self.folders.extend_from_slice(&mtime_ns.to_le_bytes());
        for id in [owner.0, owner.1] {
            self.folders
                .extend_from_slice(&id.unwrap_or(NOBODY).to_le_bytes());
        }
        self.folders.extend_from_slice(path);
    }

    /// The folder that was announced last and not taken before: what is in a folder comes before it.
    pub fn pop_folder(&mut self) -> Option<LateFolder> {
        let start = self.starts.pop()?;
        let record = self.folders.split_off(start);
        let (mode, rest) = record.get(2..)?.split_first_chunk::<4>()?;
        let (mtime_ns, rest) = rest.split_first_chunk::<8>()?;
        let (user, rest) = rest.split_first_chunk::<4>()?;
        let (group, path) = rest.split_first_chunk::<4>()?;
        let id = |bytes: &[u8; 4]| Some(u32::from_le_bytes(*bytes)).filter(|id| *id != NOBODY);
        Some(LateFolder {
            path: path.to_vec(),
            mode: u32::from_le_bytes(*mode),
            mtime_ns: i64::from_le_bytes(*mtime_ns),
            owner: (id(user), id(group)),
        })
    }

    /// A path was announced.
    pub fn path(&mut self, path: &[u8]) {
        self.paths.insert(path_key(path));
    }

    /// A path was announced at a destination where others with the same `key` are one with it; the other one, if there is one.
    pub fn folded(&mut self, key: &[u8], path: &[u8]) -> Option<Vec<u8>> {
        let key = path_key(key);
        if let Some(other) = self.folded.get(&key) {
            return (other != path).then(|| other.clone());
        }
        self.folded_bytes += path.len();
        self.folded.insert(key, path.to_vec());
        None
    }

    /// Whether a path that is one with others of this key was announced.
    pub fn has_folded(&self, key: &[u8]) -> bool {
        self.folded.contains_key(&path_key(key))
    }

    /// A path that the sources have, though it does not come: neither it nor what is below it is deleted.
    pub fn keep(&mut self, path: &[u8]) {
        let key = path_key(path);
        self.paths.insert(key);
        self.kept.insert(key);
    }

    /// Whether nothing below a path is deleted.
    pub fn is_kept(&self, path: &[u8]) -> bool {
        !self.kept.is_empty() && self.kept.contains(&path_key(path))
    }

    /// Bytes that all of it takes, about.
    pub fn bytes(&self) -> usize {
        let keys = (self.paths.len() + self.kept.len()) * KEY_BYTES;
        let places = (self.starts.len() + self.ends.len()) * size_of::<usize>();
        let folded = self.folded_bytes + self.folded.len() * 2 * KEY_BYTES;
        self.folders.len() + self.files.len() + keys + places + folded
    }

    /// Whether a path was announced.
    pub fn has(&self, path: &[u8]) -> bool {
        self.paths.contains(&path_key(path))
    }

    /// The path of the next number: empty for what is no file.
    pub fn number(&mut self, path: &[u8]) {
        self.files.extend_from_slice(path);
        let end = self.files.len();
        self.ends.push(end);
    }

    /// The path of the file of this number; `None` if it is none.
    pub fn path_of(&self, number: u64) -> Option<Vec<u8>> {
        let place = usize::try_from(number).ok()?;
        let end = *self.ends.get(place)?;
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        (end > start).then(|| self.files[start..end].to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_come_back_last_first_and_as_they_were() {
        let mut seen = Seen::default();
        let owner = (Some(7), None);
        seen.folder(b"a", 0o755, -5, (None, None));
        seen.folder(b"a/\xff", 0o700, i64::MAX, owner);
        let last = seen.pop_folder().unwrap();
        assert_eq!(
            (last.path.as_slice(), last.mode, last.mtime_ns, last.owner),
            (&b"a/\xff"[..], 0o700, i64::MAX, owner)
        );
        assert_eq!(seen.pop_folder().unwrap().path, b"a");
        assert_eq!(seen.pop_folder(), None);
    }

    #[test]
    fn a_number_gives_its_path() {
        let mut seen = Seen::default();
        seen.number(b"a");
        seen.number(b"");
        seen.number(b"b/c");
        assert_eq!(seen.path_of(0).unwrap(), b"a");
        assert_eq!(seen.path_of(1), None);
        assert_eq!(seen.path_of(2).unwrap(), b"b/c");
        assert_eq!(seen.path_of(3), None);
    }
}
