//! Where things go: the shape of the destination by rsync's rules, and folders below it by descriptor.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use farline_spec::{CopySpec, Failure, FailureKind, kernel_words};
use farline_sys::file::{self, FileFacts, FileKind, OpenFlags};

use super::name_result::named;
use crate::message::{EntryKind, MAX_PATH_BYTES};
use crate::reserved::is_staging;
use crate::root::{LEADS_OUT, is_link_loop, split};
use crate::{Root, path_text};

/// Longest name in a folder (NAME_MAX).
const MAX_NAME_BYTES: usize = 255;
/// Permission bits of a folder that nothing is said about.
const FOLDER_MODE: u32 = 0o777;
/// Folders that a thread keeps open.
const KEPT_FOLDERS: usize = 16;

/// What is at the destination before the first entry says what comes.
#[derive(Debug)]
pub enum DestinationLookup {
    /// A folder: everything goes into it.
    Folder(OwnedFd),
    /// Nothing, or a file: what this name in this folder becomes depends on what comes.
    Name(MissingTarget),
}

/// A name that is to become a file or a folder.
#[derive(Debug)]
pub struct MissingTarget {
    /// The folder that it is in.
    pub parent: OwnedFd,
    /// The name.
    pub name: Vec<u8>,
    /// What has it now; never a folder.
    pub facts: Option<FileFacts>,
}

/// Looks at the destination that `spec` names.
///
/// # Errors
/// [`FailureKind::System`] when not even its parent is there, or a file is where only a folder can be.
pub fn look(root: &Root, spec: &CopySpec) -> Result<DestinationLookup, Failure> {
    let path = path_text::to_bytes(&spec.destination)?;
    let explain = |error: io::Error| unreached(&format!("destination {}", spec.destination), &error);
    match root.open(&path, OpenFlags::READ | OpenFlags::FOLDER) {
        Ok(folder) => return Ok(DestinationLookup::Folder(folder)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {}
        Err(error) => return Err(explain(error)),
    }
    let (parent, name) = split_destination(&path);
    let wrong = |what: &str| {
        Failure::new(
            FailureKind::System,
            format!("destination {}: {what}", spec.destination),
        )
    };
    if matches!(name, b"" | b"." | b"..") {
        return Err(wrong("no such folder"));
    }
    let parent = root
        .open(parent, OpenFlags::READ | OpenFlags::FOLDER)
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                wrong("its parent folder does not exist; only the last folder of a destination is created, so create the others first")
            }
            io::ErrorKind::NotADirectory => wrong("its parent is a file, not a folder"),
            _ => explain(error),
        })?;
    let facts = file::stat_at(Some(parent.as_fd()), name, false).ok();
    if facts.is_some_and(|facts| facts.kind == FileKind::Folder) {
        // Another copy has made it since it was looked for.
        let opened = root.open(&path, OpenFlags::READ | OpenFlags::FOLDER);
        return opened.map(DestinationLookup::Folder).map_err(explain);
    }
    if let Some(facts) = facts.filter(|_| !may_be_file(spec)) {
        let line = format!(
            "it is {}, but several sources, or a trailing slash, need a folder",
            match facts.kind {
                FileKind::Link => "a symbolic link that leads to no folder",
                kind => word(kind),
            }
        );
        return Err(wrong(&line));
    }
    Ok(DestinationLookup::Name(MissingTarget {
        parent,
        name: name.to_vec(),
        facts,
    }))
}

/// Why `what` cannot be reached.
fn unreached(what: &str, error: &io::Error) -> Failure {
    let why = match error.kind() {
        io::ErrorKind::CrossesDevices => LEADS_OUT.to_owned(),
        io::ErrorKind::InvalidFilename => "the file system does not accept this name".to_owned(),
        _ if is_link_loop(error) => "symbolic links form a loop".to_owned(),
        _ => kernel_words(error),
    };
    Failure::new(FailureKind::System, format!("{what}: {why}"))
}

/// `a/b/` to `a/` and `b`.
fn split_destination(path: &[u8]) -> (&[u8], &[u8]) {
    let end = path
        .iter()
        .rposition(|byte| *byte != b'/')
        .map_or(0, |last| last + 1);
    let start = path[..end]
        .iter()
        .rposition(|byte| *byte == b'/')
        .map_or(0, |slash| slash + 1);
    (&path[..start], &path[start..end])
}

fn may_be_file(spec: &CopySpec) -> bool {
    spec.sources.len() == 1 && spec.source_list.is_none() && !spec.destination.ends_with('/')
}

/// Whether the first entry says that the one source is one file, which takes the destination's own name.
pub fn is_one_file(spec: &CopySpec, path: &[u8], kind: &EntryKind) -> bool {
    let source = spec
        .sources
        .first()
        .and_then(|source| path_text::to_bytes(source).ok());
    let is_source = source.is_some_and(|source| source.rsplit(|byte| *byte == b'/').next() == Some(path));
    may_be_file(spec) && is_source && matches!(kind, EntryKind::File { .. } | EntryKind::Link { .. })
}

/// Why `path` may not come from another host; `None` if it may.
pub fn refusal(path: &[u8]) -> Option<&'static str> {
    if path.is_empty() || path.len() > MAX_PATH_BYTES {
        return Some("a path must have 1 to 4096 bytes");
    }
    if path.contains(&0) {
        return Some("a path cannot contain a zero byte");
    }
    let mut names = path.split(|byte| *byte == b'/');
    if names.clone().next().is_some_and(is_staging) {
        return Some(".farline-partial is reserved for incomplete files");
    }
    if names.clone().any(|name| matches!(name, b"" | b"." | b"..")) {
        return Some("a path cannot contain an empty name, . or ..");
    }
    names
        .any(|name| name.len() > MAX_NAME_BYTES)
        .then_some("a name cannot be longer than 255 bytes")
}

/// Where links at the destination may lead that stand for folders.
#[derive(Debug)]
pub struct Reach {
    /// What no path leaves.
    pub root: Arc<Root>,
    /// The destination folder below it.
    pub base: Vec<u8>,
}

impl Reach {
    fn open(&self, path: &[u8], flags: OpenFlags) -> io::Result<OwnedFd> {
        self.root
            .open(&[&self.base, b"/".as_slice(), path].concat(), flags)
    }
}

/// Folders below the destination that one thread has open.
#[derive(Debug)]
pub struct Folders {
    base: Arc<OwnedFd>,
    /// Where links lead that stand for folders; no link is followed without it.
    reach: Option<Arc<Reach>>,
    /// What would have made way for a folder, in a dry run: nothing is below it.
    displaced: HashSet<Vec<u8>>,
    /// Made where they are missing; not in a dry run.
    makes: bool,
    /// The last used first.
    kept: Vec<(Vec<u8>, Arc<OwnedFd>)>,
}

impl Folders {
    /// Folders below `base`.
    pub fn new(base: Arc<OwnedFd>, makes: bool, reach: Option<Arc<Reach>>) -> Self {
        Self {
            base,
            reach,
            displaced: HashSet::new(),
            makes,
            kept: Vec::new(),
        }
    }

    /// The folder `path`, opened; it and those above it are made where they are missing.
    ///
    /// # Errors
    /// The kernel's; `EXDEV` where a link leads out of the destination.
    pub fn get(&mut self, path: &[u8]) -> io::Result<Arc<OwnedFd>> {
        if path.is_empty() {
            return Ok(Arc::clone(&self.base));
        }
        if let Some(place) = self.kept.iter().position(|(known, _)| known == path) {
            self.kept[..=place].rotate_right(1);
            return Ok(Arc::clone(&self.kept[0].1));
        }
        let folder = Arc::new(self.opened(path)?);
        self.kept.truncate(KEPT_FOLDERS - 1);
        self.kept.insert(0, (path.to_vec(), Arc::clone(&folder)));
        Ok(folder)
    }

    /// The destination itself.
    pub fn base(&self) -> BorrowedFd<'_> {
        self.base.as_fd()
    }

    /// Opens what is at `path`, for once.
    ///
    /// # Errors
    /// The kernel's; `EXDEV` where a link leads out of the destination.
    pub fn open(&self, path: &[u8], flags: OpenFlags) -> io::Result<OwnedFd> {
        let path = if path.is_empty() { b"." } else { path };
        let Some(reach) = &self.reach else {
            return file::open_without_links(self.base.as_fd(), path, flags, 0);
        };
        match file::open_beneath(self.base.as_fd(), path, flags, 0) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => reach.open(path, flags),
            opened => opened,
        }
    }

    /// Notes that in a dry run a folder would take the place of what is at `path`.
    pub fn displace(&mut self, path: &[u8]) {
        self.displaced.insert(path.to_vec());
    }

    fn is_displaced(&self, path: &[u8]) -> bool {
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let mut parents = slashes.map(|(at, _)| &path[..at]);
        !self.displaced.is_empty() && parents.any(|parent| self.displaced.contains(parent))
    }

    fn opened(&self, path: &[u8]) -> io::Result<OwnedFd> {
        let open = || self.open(path, OpenFlags::READ | OpenFlags::FOLDER);
        match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.makes => {}
            opened => return opened,
        }
        let ends = path
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'/')
            .map(|(at, _)| at);
        for end in ends.chain([path.len()]) {
            let (parent, name) = split(&path[..end]);
            let above = match parent {
                b"" => None,
                parent => {
                    let flags = OpenFlags::PATH | OpenFlags::FOLDER;
                    Some(self.open(parent, flags)?)
                }
            };
            let above = above.as_ref().map_or(self.base.as_fd(), AsFd::as_fd);
            match file::make_folder(above, name, FOLDER_MODE) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        open()
    }

    /// What is at `path`, links not followed; `None` if nothing is.
    ///
    /// # Errors
    /// The kernel's, besides that it is not there.
    pub fn facts(&mut self, path: &[u8]) -> io::Result<Option<FileFacts>> {
        if self.is_displaced(path) {
            return Ok(None);
        }
        let (parent, name) = split(path);
        let looked = self
            .get(parent)
            .and_then(|folder| file::stat_at(Some(folder.as_fd()), name, false));
        match looked {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            looked => named(looked.map(Some)),
        }
    }
}

/// What a thing at the destination is called in an error.
pub const fn word(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "a file",
        FileKind::Folder => "a folder",
        FileKind::Link => "a symbolic link",
        FileKind::Other => "a device, a pipe or a socket",
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn names_from_another_host_go_down_or_are_refused() {
        for fine in [&b"a"[..], b"a/b\n\xff", b"a/.farline-partial", b"...", b"a/..b"] {
            assert_eq!(refusal(fine), None, "{fine:?}");
        }
        let long = [b'a'; 256];
        let longer = b"a/".repeat(2049);
        for wrong in [
            &b""[..],
            b"/a",
            b"a/",
            b"a//b",
            b".",
            b"..",
            b"../a",
            b"a/../b",
            b"a/.",
            b"a\0b",
            b".farline-partial",
            b".farline-partial/x",
            &long,
            &longer,
        ] {
            assert!(refusal(wrong).is_some(), "{wrong:?}");
        }
    }

    #[test]
    fn a_destination_is_a_name_in_a_folder() {
        for (path, parent, name) in [
            (&b"a"[..], &b""[..], &b"a"[..]),
            (b"a/b//", b"a/", b"b"),
            (b"/a", b"/", b"a"),
            (b"/", b"", b""),
        ] {
            assert_eq!(split_destination(path), (parent, name));
        }
    }

    #[test]
    fn a_folder_that_another_copy_makes_meanwhile_is_a_folder() {
        let place = tempfile::tempdir().unwrap();
        let spec = |destination: &Path| CopySpec {
            sources: vec!["a/".to_owned()],
            destination: format!("{}/", destination.display()),
            ..CopySpec::default()
        };
        for number in 0..2000 {
            let destination = place.path().join(number.to_string());
            let both = Barrier::new(2);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    both.wait();
                    fs::create_dir(&destination)
                });
                both.wait();
                look(&Root::own(), &spec(&destination)).unwrap();
            });
        }
    }

    #[test]
    fn only_a_lone_file_takes_the_destinations_name() {
        let spec = |source: &str, destination: &str| CopySpec {
            sources: vec![source.to_owned()],
            destination: destination.to_owned(),
            ..CopySpec::default()
        };
        let file = EntryKind::File { bytes: 1, hash: None };
        assert!(is_one_file(&spec("x/a", "d"), b"a", &file));
        assert!(!is_one_file(&spec("x/a", "d/"), b"a", &file));
        assert!(!is_one_file(&spec("x/a/", "d"), b"a", &file));
        assert!(!is_one_file(&spec("x/.", "d"), b"a", &file));
        assert!(!is_one_file(&spec("x/a", "d"), b"a", &EntryKind::Folder));
    }
}
