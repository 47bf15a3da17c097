//! What of the entries is remembered to the end of the copy: folders for their times, paths for deletion and further names.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard};

use super::journal::path_key;
use super::owner::Belongs;

/// What a key takes in a set that is neither full nor empty.
const KEY_BYTES: usize = 24;

/// What was announced, as small as it can be kept.
#[derive(Debug, Default)]
pub struct Seen {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
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

/// A folder that gets its permission bits and time when everything in it is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateFolder {
    /// Where it is.
    pub path: Vec<u8>,
    /// Permission bits.
    pub mode: u32,
    /// Time of last change, nanoseconds since 1970.
    pub mtime_ns: i64,
    /// To whom it is to belong.
    pub belongs: Belongs,
}

/// What stands for no user or group.
const NOBODY: u32 = u32::MAX;

impl Seen {
    /// A folder was announced.
    pub fn folder(&self, path: &[u8], mode: u32, mtime_ns: i64, belongs: Belongs) {
        let mut inner = self.lock();
        let start = inner.folders.len();
        inner.starts.push(start);
        inner
            .folders
            .extend_from_slice(&(path.len() as u16).to_le_bytes());
        inner.folders.extend_from_slice(&mode.to_le_bytes());
        inner.folders.extend_from_slice(&mtime_ns.to_le_bytes());
        for id in [belongs.user, belongs.group] {
            inner
                .folders
                .extend_from_slice(&id.unwrap_or(NOBODY).to_le_bytes());
        }
        inner.folders.extend_from_slice(path);
    }

    /// The folder that was announced last and not taken before: what is in a folder comes before it.
    pub fn pop_folder(&self) -> Option<LateFolder> {
        let mut inner = self.lock();
        let start = inner.starts.pop()?;
        let record = inner.folders.split_off(start);
        let (mode, rest) = record.get(2..)?.split_first_chunk::<4>()?;
        let (mtime_ns, rest) = rest.split_first_chunk::<8>()?;
        let (user, rest) = rest.split_first_chunk::<4>()?;
        let (group, path) = rest.split_first_chunk::<4>()?;
        let id = |bytes: &[u8; 4]| Some(u32::from_le_bytes(*bytes)).filter(|id| *id != NOBODY);
        Some(LateFolder {
            path: path.to_vec(),
            mode: u32::from_le_bytes(*mode),
            mtime_ns: i64::from_le_bytes(*mtime_ns),
            belongs: Belongs {
                user: id(user),
                group: id(group),
            },
        })
    }

    /// A path was announced.
    pub fn path(&self, path: &[u8]) {
        self.lock().paths.insert(path_key(path));
    }

    /// A path was announced at a destination where others with the same `key` are one with it; the other one, if there is one.
    pub fn folded(&self, key: &[u8], path: &[u8]) -> Option<Vec<u8>> {
        let mut inner = self.lock();
        let key = path_key(key);
        if let Some(other) = inner.folded.get(&key) {
            return (other != path).then(|| other.clone());
        }
        inner.folded_bytes += path.len();
        inner.folded.insert(key, path.to_vec());
        None
    }

    /// Whether a path that is one with others of this key was announced.
    pub fn has_folded(&self, key: &[u8]) -> bool {
        self.lock().folded.contains_key(&path_key(key))
    }

    /// A path that the sources have, though it does not come: neither it nor what is below it is deleted.
    pub fn keep(&self, path: &[u8]) {
        let key = path_key(path);
        let mut inner = self.lock();
        inner.paths.insert(key);
        inner.kept.insert(key);
    }

    /// Whether nothing below a path is deleted.
    pub fn is_kept(&self, path: &[u8]) -> bool {
        let inner = self.lock();
        !inner.kept.is_empty() && inner.kept.contains(&path_key(path))
    }

    /// Bytes that all of it takes, about.
    pub fn bytes(&self) -> usize {
        let inner = self.lock();
        let keys = (inner.paths.len() + inner.kept.len()) * KEY_BYTES;
        let places = (inner.starts.len() + inner.ends.len()) * size_of::<usize>();
        let folded = inner.folded_bytes + inner.folded.len() * 2 * KEY_BYTES;
        inner.folders.len() + inner.files.len() + keys + places + folded
    }

    /// Whether a path was announced.
    pub fn has(&self, path: &[u8]) -> bool {
        self.lock().paths.contains(&path_key(path))
    }

    /// The path of the next number: empty for what is no file.
    pub fn number(&self, path: &[u8]) {
        let mut inner = self.lock();
        inner.files.extend_from_slice(path);
        let end = inner.files.len();
        inner.ends.push(end);
    }

    /// The path of the file of this number; `None` if it is none.
    pub fn path_of(&self, number: u64) -> Option<Vec<u8>> {
        let inner = self.lock();
        let place = usize::try_from(number).ok()?;
        let end = *inner.ends.get(place)?;
        let start = place.checked_sub(1).map_or(0, |before| inner.ends[before]);
        (end > start).then(|| inner.files[start..end].to_vec())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner
            .lock()
            .expect("a thread of the copy panicked while it held what was announced")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_come_back_last_first_and_as_they_were() {
        let seen = Seen::default();
        let belongs = Belongs {
            user: Some(7),
            group: None,
        };
        seen.folder(b"a", 0o755, -5, Belongs::default());
        seen.folder(b"a/\xff", 0o700, i64::MAX, belongs);
        let last = seen.pop_folder().unwrap();
        assert_eq!(
            (last.path.as_slice(), last.mode, last.mtime_ns, last.belongs),
            (&b"a/\xff"[..], 0o700, i64::MAX, belongs)
        );
        assert_eq!(seen.pop_folder().unwrap().path, b"a");
        assert_eq!(seen.pop_folder(), None);
    }

    #[test]
    fn a_number_gives_its_path() {
        let seen = Seen::default();
        seen.number(b"a");
        seen.number(b"");
        seen.number(b"b/c");
        assert_eq!(seen.path_of(0).unwrap(), b"a");
        assert_eq!(seen.path_of(1), None);
        assert_eq!(seen.path_of(2).unwrap(), b"b/c");
        assert_eq!(seen.path_of(3), None);
    }
}
