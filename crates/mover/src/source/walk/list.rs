//! A list of names instead of a whole source: a line each, or between zero bytes where it has any.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::os::fd::{AsFd, OwnedFd};

use farline_spec::{Failure, FileKind as Kind};
use farline_sys::file::{self, FileKind, OpenFlags};
use twox_hash::XxHash3_128;

use super::{Folder, Walker};
use crate::Root;
use crate::message::MAX_PATH_BYTES;
use crate::source::found::{Found, What};
use crate::source::origin::why;

/// Bytes at the begin of a list in which a zero byte is looked for: more than one name can have.
const LOOKED_AT_BYTES: u64 = 64 * 1024;
/// Names taken from the list at a time.
const NAMES_AT_ONCE: usize = 256;

/// A list that is being read.
pub(in crate::source) struct List {
    text: String,
    lines: Box<dyn BufRead + Send>,
    separator: u8,
    /// Hashes of the names taken: one that comes twice is taken once.
    taken: HashSet<u128>,
    /// Hashes of the folders above names: each is said once.
    said: HashSet<u128>,
    /// The folder of the name before.
    parent: Option<(Vec<u8>, OwnedFd)>,
}

impl std::fmt::Debug for List {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("List")
            .field("text", &self.text)
            .finish_non_exhaustive()
    }
}

impl List {
    /// Opens the list at `path`, a path at this end.
    ///
    /// # Errors
    /// [`FailureKind::System`](farline_spec::FailureKind::System) when it cannot be read.
    pub(in crate::source) fn open(path: &str) -> Result<Self, Failure> {
        let explain = |error: io::Error| Failure::system(&format!("list of names {path}"), &error);
        let opened = Root::own().open(path.as_bytes(), OpenFlags::READ);
        let mut file = File::from(opened.map_err(explain)?);
        let mut begin = Vec::new();
        (&mut file)
            .take(LOOKED_AT_BYTES)
            .read_to_end(&mut begin)
            .map_err(explain)?;
        let separator = if begin.contains(&0) { 0 } else { b'\n' };
        Ok(Self {
            text: path.to_owned(),
            lines: Box::new(BufReader::new(Cursor::new(begin).chain(file))),
            separator,
            taken: HashSet::new(),
            said: HashSet::new(),
            parent: None,
        })
    }

    /// The next name as it is written; `None` at the end.
    fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        // One byte more than a path may have, and its separator: a longer one is found out by the walk.
        let most = MAX_PATH_BYTES as u64 + 2;
        let read = (&mut self.lines)
            .take(most)
            .read_until(self.separator, &mut line)?;
        if read as u64 == most && line.last() != Some(&self.separator) {
            self.lines.skip_until(self.separator)?;
        }
        if read == 0 {
            return Ok(None);
        }
        if line.last() == Some(&self.separator) {
            line.pop();
        }
        if self.separator == b'\n' && line.last() == Some(&b'\r') {
            line.pop();
        }
        Ok(Some(line))
    }
}

/// `line` as a path below the source: no empty names, no `.`; `None` if it leads out by `..`.
fn path_of(line: &[u8]) -> Option<Vec<u8>> {
    let names = line.split(|byte| *byte == b'/');
    let names: Vec<&[u8]> = names.filter(|name| !matches!(*name, b"" | b".")).collect();
    (!names.contains(&b"..".as_slice())).then(|| names.join(&b'/'))
}

impl Walker<'_> {
    /// Takes the next names; whether there may be more.
    pub(super) fn take_listed(&mut self, list: &mut List) -> bool {
        for _ in 0..NAMES_AT_ONCE {
            if self.ground.run.is_over() {
                return false;
            }
            match list.next() {
                // Lines for people, as in rsync: a name that begins so is written with ./ before it.
                Ok(Some(line)) if line.is_empty() || matches!(line[0], b'#' | b';') => {}
                Ok(Some(line)) => self.take_line(list, &line),
                Ok(None) => return false,
                Err(error) => {
                    self.ground
                        .driver
                        .stop(&Failure::system(&format!("list of names {}", list.text), &error));
                    return false;
                }
            }
        }
        true
    }

    fn take_line(&mut self, list: &mut List, line: &[u8]) {
        let Some(path) = path_of(line) else {
            return self.unread(line, Kind::Other, "has .. in it; write the name without");
        };
        if path.is_empty() {
            // The source itself: all that is in it.
            return match self.ground.spec.recursive {
                true => self.visit(&whole()),
                false => self.unread(b".", Kind::Folder, super::NOT_RECURSIVE),
            };
        }
        if path.len() > MAX_PATH_BYTES {
            return self.unread(
                &path[..MAX_PATH_BYTES],
                Kind::Other,
                "has a path of more than 4096 bytes",
            );
        }
        if !list.taken.insert(XxHash3_128::oneshot(&path)) {
            return;
        }
        let slash = path.iter().rposition(|byte| *byte == b'/');
        let (parent, name) = slash.map_or((&[][..], &path[..]), |slash| (&path[..slash], &path[slash + 1..]));
        if let Err(error) = self.take_parents(list, parent) {
            return self.unread(&path, Kind::Other, &why(&error));
        }
        let Some((_, open)) = &list.parent else { return };
        if file::stat_at(Some(open.as_fd()), name, false)
            .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        {
            return self.unread(&path, Kind::Other, "no such file or folder");
        }
        let folder = Folder {
            path: parent.to_vec(),
            ..whole()
        };
        self.look_and_push(&folder, open.as_fd(), name);
    }

    /// Says the folders above a name, each once, and opens the last of them.
    fn take_parents(&mut self, list: &mut List, parent: &[u8]) -> io::Result<()> {
        if list.parent.as_ref().is_some_and(|(known, _)| known == parent) {
            return Ok(());
        }
        let sources = &self.ground.sources;
        let open = |path: &[u8]| {
            let flags = OpenFlags::PATH | OpenFlags::FOLDER;
            sources.open_at(0, path, flags, false)
        };
        let slashes = parent.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let mut ends: Vec<usize> = slashes.map(|(place, _)| place).collect();
        ends.extend((!parent.is_empty()).then_some(parent.len()));
        for end in ends {
            let path = &parent[..end];
            if !list.said.insert(XxHash3_128::oneshot(path)) {
                continue;
            }
            let facts = file::stat_fd(open(path)?.as_fd())?;
            debug_assert_eq!(facts.kind, FileKind::Folder);
            let mut found = Found {
                origin: 0,
                is_through_link: false,
                tries: 1,
                apart_from: None,
                path: path.into(),
                what: What::Folder,
                facts,
                seen_ns: 0,
                held: None,
                xattrs: Vec::new(),
            };
            if self.ground.inspector.look_inside(&mut found).is_ok() {
                self.found(found);
            }
        }
        list.parent = Some((parent.to_vec(), open(parent)?));
        Ok(())
    }
}

/// The source that a list is about.
const fn whole() -> Folder {
    Folder {
        origin: 0,
        path: Vec::new(),
        is_through_link: false,
        lineage: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &[u8]) -> Vec<Vec<u8>> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let mut list = List::open(file.path().to_str().unwrap()).unwrap();
        std::iter::from_fn(|| list.next().unwrap()).collect()
    }

    #[test]
    fn names_are_lines_unless_there_is_a_zero_byte() {
        assert_eq!(names(b"a\n#b\r\n\nc d"), [&b"a"[..], b"#b", b"", b"c d"]);
        assert_eq!(names(b"a\nb\0c\r\0"), [&b"a\nb"[..], b"c\r"]);
        assert!(names(b"").is_empty());
        let long = [vec![b'x'; 9_000], b"\ny".to_vec()].concat();
        assert_eq!(names(&long)[1], b"y");
        assert!(names(&long)[0].len() > MAX_PATH_BYTES);
    }

    #[test]
    fn a_listed_name_stays_below_the_source() {
        assert_eq!(path_of(b"/a//./b/").unwrap(), b"a/b");
        assert_eq!(path_of(b"./").unwrap(), b"");
        assert!(path_of(b"a/../b").is_none());
        assert_eq!(path_of(b"..a").unwrap(), b"..a");
    }
}
