//! Trees of files: made, and read back for comparing.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thing {
    /// Content, or where a link leads; nothing of a folder.
    pub content: Option<Vec<u8>>,
    /// `f`, `d` or `l`.
    pub kind: char,
    /// Permission bits; 0 of links.
    pub mode: u32,
    /// Time of last change, nanoseconds since 1970; 0 of links.
    pub mtime_ns: i64,
}

/// All that is below `top`, by path.
pub fn read(top: &Path) -> BTreeMap<Vec<u8>, Thing> {
    let mut found = BTreeMap::new();
    read_folder(top, b"", &mut found);
    found
}

fn read_folder(folder: &Path, prefix: &[u8], found: &mut BTreeMap<Vec<u8>, Thing>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        let path = [prefix, entry.file_name().as_bytes()].concat();
        let facts = fs::symlink_metadata(entry.path()).expect("facts");
        let (kind, content) = if facts.is_dir() {
            ('d', None)
        } else if facts.is_symlink() {
            let target = fs::read_link(entry.path()).expect("a target");
            ('l', Some(target.as_os_str().as_bytes().to_vec()))
        } else {
            ('f', Some(fs::read(entry.path()).expect("content")))
        };
        let is_link = kind == 'l';
        let thing = Thing {
            content,
            kind,
            mode: if is_link {
                0
            } else {
                facts.permissions().mode() & 0o7777
            },
            mtime_ns: if is_link {
                0
            } else {
                facts.mtime() * 1_000_000_000 + facts.mtime_nsec()
            },
        };
        if kind == 'd' {
            read_folder(&entry.path(), &[path.as_slice(), b"/"].concat(), found);
        }
        found.insert(path, thing);
    }
}

/// `bytes` bytes that differ from place to place and from `seed` to `seed`.
pub fn content(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut content: Vec<u8> = std::iter::repeat_with(next)
        .take(bytes.div_ceil(8))
        .flatten()
        .collect();
    content.truncate(bytes);
    content
}

/// Makes a file, and the folders it is in.
pub fn put(top: &Path, path: impl AsRef<Path>, content: &[u8]) {
    let path = top.join(path);
    fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
    fs::write(&path, content).expect("a file");
}

/// Gives a path its mode and time.
pub fn dress(path: &Path, mode: u32, mtime_s: u64, nanos: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
    let time = SystemTime::UNIX_EPOCH + Duration::new(mtime_s, nanos);
    fs::File::open(path)
        .and_then(|file| file.set_modified(time))
        .expect("a time");
}
