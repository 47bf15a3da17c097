//! The sources of a copy: where each begins, and how what is below it is opened.
//!
//! As rsync has it: `data/` is what is in the folder, `data` is the folder itself, and the path below the destination
//! is the path below the folder that a source is opened at. So one path serves both ends.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use farline_spec::{FailureKind, kernel_words};
use farline_sys::file::{self, FileFacts, OpenFlags};

use super::expand::expand;
use crate::Root;
use crate::engine::NoRegularFile;
use crate::path_text;
use crate::root::LEADS_OUT;
pub(super) use crate::root::is_link_loop;

/// One source.
#[derive(Debug)]
pub(super) struct Origin {
    /// Path of the folder, for what is only reached through links.
    base: Vec<u8>,
    folder: Arc<OwnedFd>,
    top: Option<Vec<u8>>,
}

/// All sources of a copy that are there.
#[derive(Debug)]
pub(super) struct Sources {
    /// What paths are relative to.
    root: Root,
    origins: Vec<Origin>,
}

impl Sources {
    /// These, opened below `root`.
    pub(super) const fn new(root: Root, origins: Vec<Origin>) -> Self {
        Self { root, origins }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.origins.len()
    }

    /// The one name that is taken of the source of this number; `None`: all that is in it.
    pub(super) fn top(&self, origin: u32) -> Option<&[u8]> {
        self.of(origin).top()
    }

    /// The folder that the source of this number is opened at.
    pub(super) fn folder(&self, origin: u32) -> BorrowedFd<'_> {
        self.of(origin).folder()
    }

    /// As [`Origin::open_at`], of the source of this number.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn open_at(
        &self,
        origin: u32,
        path: &[u8],
        flags: OpenFlags,
        through_link: bool,
    ) -> io::Result<OwnedFd> {
        self.of(origin).open_at(&self.root, path, flags, through_link)
    }

    /// What a link at `path` leads to.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn stat_through(&self, origin: u32, path: &[u8]) -> io::Result<FileFacts> {
        let path = self.of(origin).full(path);
        file::stat_fd(self.root.open(&path, OpenFlags::PATH)?.as_fd())
    }

    fn of(&self, origin: u32) -> &Origin {
        &self.origins[origin as usize]
    }
}

/// A source that cannot be had.
#[derive(Debug)]
pub(super) struct Missing {
    /// As the spec has it.
    pub(super) text: String,
    /// Why, one line.
    pub(super) reason: String,
    /// Whose fault it is: whoever names what is not there, or the host that does not let it be read.
    pub(super) kind: FailureKind,
}

impl Missing {
    fn new(text: &str, reason: String, kind: FailureKind) -> Self {
        Self {
            text: text.to_owned(),
            reason,
            kind,
        }
    }

    /// From what the kernel said.
    fn of(text: &str, error: &io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::NotFound => FailureKind::Usage,
            _ => FailureKind::System,
        };
        Self::new(text, why(error), kind)
    }
}

impl Origin {
    /// Opens the folder that `text` is in, or is. Sources in one folder share its descriptor with `before`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn open(root: &Root, text: &str, before: Option<&Self>) -> Result<Self, Missing> {
        let path = path_text::to_bytes(text)
            .map_err(|failure| Missing::new(text, failure.message, FailureKind::Usage))?;
        Self::open_path(root, text, &path, before)
    }

    /// As [`Self::open`], of each path that the pattern `text` stands for.
    ///
    /// # Errors
    /// What is wrong with one of them, or that nothing fits; then nothing is added.
    pub(super) fn open_pattern(root: &Root, text: &str, origins: &mut Vec<Self>) -> Result<(), Missing> {
        let path = path_text::to_bytes(text)
            .map_err(|failure| Missing::new(text, failure.message, FailureKind::Usage))?;
        let found = expand(root, &path).map_err(|error| Missing::of(text, &error))?;
        if found.is_empty() {
            let reason = "no such file or folder, and no name matches it as a pattern".to_owned();
            return Err(Missing::new(text, reason, FailureKind::Usage));
        }
        let begin = origins.len();
        for path in found {
            match Self::open_path(root, text, &path, origins.last()) {
                Ok(origin) => origins.push(origin),
                Err(missing) => {
                    origins.truncate(begin);
                    return Err(missing);
                }
            }
        }
        Ok(())
    }

    fn open_path(root: &Root, text: &str, path: &[u8], before: Option<&Self>) -> Result<Self, Missing> {
        let (base, top) = split(path);
        let shared = before.filter(|before| before.base == base && before.top.is_some() && top.is_some());
        let folder = match shared {
            Some(before) => Arc::clone(&before.folder),
            None => {
                let opened = root.open(&base, OpenFlags::PATH | OpenFlags::FOLDER);
                Arc::new(opened.map_err(|error| Missing::of(text, &error))?)
            }
        };
        if let Some(top) = &top {
            file::stat_at(Some(folder.as_fd()), top, false).map_err(|error| Missing::of(text, &error))?;
        }
        Ok(Self { base, folder, top })
    }

    /// The one name that is taken of the folder; `None`: all that is in it.
    pub(super) fn top(&self) -> Option<&[u8]> {
        self.top.as_deref()
    }

    /// The folder itself.
    pub(super) fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// Opens what is at `path` below the folder. No link is followed, unless `through_link`: then the root alone
    /// decides where links may lead.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn open_at(
        &self,
        root: &Root,
        path: &[u8],
        flags: OpenFlags,
        through_link: bool,
    ) -> io::Result<OwnedFd> {
        if through_link {
            return root.open(&self.full(path), flags);
        }
        let path = if path.is_empty() { b"." } else { path };
        file::open_without_links(self.folder(), path, flags, 0)
    }

    /// Its path, for people.
    pub(super) fn shown(&self) -> String {
        path_text::to_text(&self.full(self.top().unwrap_or_default()))
    }

    fn full(&self, path: &[u8]) -> Vec<u8> {
        match (self.base.as_slice(), path) {
            (base, b"") => base.to_vec(),
            (b"/", path) => [b"/", path].concat(),
            (base, path) => [base, b"/", path].concat(),
        }
    }
}

/// What a person is told of an error with a source.
pub(super) fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or folder".to_owned(),
        io::ErrorKind::CrossesDevices => LEADS_OUT.to_owned(),
        io::ErrorKind::NotADirectory => "is not a folder".to_owned(),
        _ if is_link_loop(error) => "is reached through a link".to_owned(),
        _ => format!("cannot be read: {}", kernel_words(error)),
    }
}

/// The name that the source at `path` has at the destination; none where it stands for what is in a folder.
pub(crate) fn name(path: &[u8]) -> Option<Vec<u8>> {
    split(path).1
}

/// Whether an error says that a file's name stands for something else by now: a link, a socket, a pipe, a file that is gone at
/// its server.
pub(super) fn is_another(error: &io::Error) -> bool {
    /// ENXIO and ESTALE on Linux.
    const NO_SUCH_FILE_ANY_MORE: [i32; 2] = [6, 116];
    let is_there = |number| NO_SUCH_FILE_ANY_MORE.contains(&number);
    let is_pipe = error.get_ref().is_some_and(|inner| inner.is::<NoRegularFile>());
    is_pipe || is_link_loop(error) || error.raw_os_error().is_some_and(is_there)
}

/// The folder to open, and the name in it; no name where `path` means what is in the folder.
fn split(path: &[u8]) -> (Vec<u8>, Option<Vec<u8>>) {
    let names = path
        .iter()
        .rposition(|byte| *byte != b'/')
        .map_or(0, |last| last + 1);
    let stem = &path[..names];
    let start = stem
        .iter()
        .rposition(|byte| *byte == b'/')
        .map_or(0, |slash| slash + 1);
    let (parent, name) = stem.split_at(start);
    if names < path.len() || matches!(name, b"." | b".." | b"") {
        let base = if stem.is_empty() { b"/" } else { stem };
        return (base.to_vec(), None);
    }
    let end = parent
        .iter()
        .rposition(|byte| *byte != b'/')
        .map_or(0, |last| last + 1);
    let base: &[u8] = match (parent.is_empty(), end) {
        (true, _) => b".",
        (false, 0) => b"/",
        (false, end) => &parent[..end],
    };
    (base.to_vec(), Some(name.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_split_as_rsync_does() {
        let cases: [(&str, &str, Option<&str>); 12] = [
            ("data", ".", Some("data")),
            ("data/", "data", None),
            ("a/data", "a", Some("data")),
            ("a//data//", "a//data", None),
            ("/data", "/", Some("data")),
            ("/", "/", None),
            ("//", "/", None),
            (".", ".", None),
            ("a/.", "a/.", None),
            ("..", "..", None),
            ("a//b", "a", Some("b")),
            ("./f", ".", Some("f")),
        ];
        for (path, base, top) in cases {
            let expected = (base.as_bytes().to_vec(), top.map(|top| top.as_bytes().to_vec()));
            assert_eq!(split(path.as_bytes()), expected, "{path}");
        }
    }

    #[test]
    fn a_source_that_is_not_there_is_told() {
        let missing = Origin::open(&Root::own(), "/no/such/file", None).unwrap_err();
        assert_eq!(
            (missing.text.as_str(), missing.reason.as_str()),
            ("/no/such/file", "no such file or folder")
        );
        let here = Origin::open(&Root::own(), "/dev/null/x", None).unwrap_err();
        assert_eq!(here.reason, "is not a folder");
    }
}
