//! Looks at one name: what it is, whether it is taken, what is told of it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use farline_spec::{FileKind as Kind, FileStatus, SymbolicLinks};
use farline_sys::file::{self, FileFacts, FileKind, OpenFlags};

use super::{Folder, NOT_RECURSIVE, Walker};
use crate::message::{MAX_PATH_BYTES, VANISHED};
use crate::reserved::is_staging;
use crate::source::found::{Found, What};
use crate::source::held::{Held, Lengths};
use crate::source::origin::{is_link_loop, why};
use crate::source::steady;

/// A folder whose content is wanted too.
pub(super) struct Way {
    /// A link led to it.
    pub(super) is_through_link: bool,
}

/// What a name turned out to be.
struct Seen {
    facts: FileFacts,
    is_through_link: bool,
}

impl Walker<'_> {
    /// What a person is told of an error with `path`: what a folder had a moment ago disappeared, a source itself is missed.
    pub(super) fn told(&self, origin: u32, path: &[u8], error: &io::Error) -> String {
        let is_source = path.is_empty() || self.ground.sources.top(origin) == Some(path);
        match error.kind() {
            io::ErrorKind::NotFound if !is_source => VANISHED.to_owned(),
            _ => why(error),
        }
    }

    /// Looks at `name` in the open folder and hands on what is taken; a way if it is a folder to look into.
    pub(super) fn look(
        &mut self,
        folder: &Folder,
        open: BorrowedFd<'_>,
        kind: Option<FileKind>,
        name: &[u8],
        path: Vec<u8>,
    ) -> Option<Way> {
        let ground = self.ground;
        let is_link = matches!(kind, None | Some(FileKind::Link));
        if !is_link && !ground.filters.takes(&path, kind == Some(FileKind::Folder)) {
            return None;
        }
        let seen = match self.see(folder, open, name, &path) {
            Ok(seen) => seen,
            Err(reason) => {
                if !is_link || ground.filters.takes(&path, false) {
                    self.unread(&path, Kind::Other, &reason);
                }
                return None;
            }
        };
        let is_folder = seen.facts.kind == FileKind::Folder;
        if is_link && !ground.filters.takes(&path, is_folder) {
            return None;
        }
        let what = match seen.facts.kind {
            FileKind::File => return self.file(folder, seen, open, name, path),
            FileKind::Folder => return self.folder(folder, &seen, name, path),
            FileKind::Link if ground.spec.links == SymbolicLinks::Skip => {
                self.skip(&path, Kind::Link, "is a symbolic link");
                return None;
            }
            FileKind::Link => match file::read_link(open, name) {
                Ok(target) => What::Link(target.into()),
                Err(error) => {
                    self.unread(&path, Kind::Link, &self.told(folder.origin, &path, &error));
                    return None;
                }
            },
            FileKind::Other => {
                self.skip(&path, Kind::Other, "is a device, a pipe or a socket");
                return None;
            }
        };
        self.take(folder, &seen, path, what, None);
        None
    }

    /// A regular file; one whose length nobody knows before it is read is read now.
    fn file(
        &mut self,
        folder: &Folder,
        mut seen: Seen,
        open: BorrowedFd<'_>,
        name: &[u8],
        path: Vec<u8>,
    ) -> Option<Way> {
        let held = match self.held(folder, &mut seen, open, name, &path) {
            Ok(held) => held,
            Err(error) => {
                let reason = match error.kind() {
                    io::ErrorKind::FileTooLarge => {
                        "has an unknown length, and more than 64 MiB when read".to_owned()
                    }
                    _ => self.told(folder.origin, &path, &error),
                };
                self.unread(&path, Kind::File, &reason);
                return None;
            }
        };
        self.take(folder, &seen, path, What::File(None), held);
        None
    }

    /// The content of the file, where its file system says nothing of its length; then `seen` is of that.
    fn held(
        &mut self,
        folder: &Folder,
        seen: &mut Seen,
        open: BorrowedFd<'_>,
        name: &[u8],
        path: &[u8],
    ) -> io::Result<Option<Arc<Held>>> {
        let ground = self.ground;
        let device = seen.facts.device;
        let opened = |flags: OpenFlags| match seen.is_through_link {
            true => ground.sources.open_at(folder.origin, path, flags, true),
            false => file::open_at(Some(open), name, flags | OpenFlags::NO_FOLLOW, 0),
        };
        let lengths = match self.lengths.get(&device) {
            Some(lengths) => *lengths,
            None => Lengths::of(&opened(OpenFlags::PATH)?)?,
        };
        self.lengths.insert(device, lengths);
        let is_known = !lengths.are_unknown(seen.facts.bytes) || !ground.reads_files;
        if is_known && !ground.spec.dry_run {
            return Ok(None);
        }
        // A dry run reads nothing, but says what could not be read.
        let file = opened(OpenFlags::READ | OpenFlags::NO_WAIT)?;
        if is_known {
            return Ok(None);
        }
        let facts = file::stat_fd(file.as_fd())?;
        self.hand_on();
        let read = Held::read(&file, &facts, &self.walk.room, || ground.run.is_over())?;
        Ok(read.map(|(held, facts)| {
            seen.facts = facts;
            Arc::new(held)
        }))
    }

    /// What the name stands for; through a link where links are followed.
    fn see(&self, folder: &Folder, open: BorrowedFd<'_>, name: &[u8], path: &[u8]) -> Result<Seen, String> {
        if path.len() > MAX_PATH_BYTES {
            return Err("has a path of more than 4096 bytes".to_owned());
        }
        let facts =
            file::stat_at(Some(open), name, false).map_err(|error| self.told(folder.origin, path, &error))?;
        if facts.kind != FileKind::Link || self.ground.spec.links != SymbolicLinks::Follow {
            let is_through_link = folder.is_through_link;
            return Ok(Seen {
                facts,
                is_through_link,
            });
        }
        let facts = self.ground.sources.stat_through(folder.origin, path);
        let facts = facts.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => "is a dangling link".to_owned(),
            _ if is_link_loop(&error) => "is a link to itself".to_owned(),
            _ => why(&error),
        })?;
        Ok(Seen {
            facts,
            is_through_link: true,
        })
    }

    fn folder(&mut self, folder: &Folder, seen: &Seen, name: &[u8], path: Vec<u8>) -> Option<Way> {
        if is_staging(name) {
            self.skip(&path, Kind::Folder, "contains incomplete copies");
            return None;
        }
        if !self.ground.spec.recursive {
            self.unread(&path, Kind::Folder, NOT_RECURSIVE);
            return None;
        }
        let is_through_link = seen.is_through_link;
        self.take(folder, seen, path, What::Folder, None);
        Some(Way { is_through_link })
    }

    fn take(&mut self, folder: &Folder, seen: &Seen, path: Vec<u8>, what: What, held: Option<Arc<Held>>) {
        let mut found = Found {
            origin: folder.origin,
            is_through_link: seen.is_through_link,
            tries: 1,
            apart_from: None,
            path: path.into(),
            what,
            facts: seen.facts,
            seen_ns: steady::now_ns(),
            held,
            xattrs: Vec::new(),
        };
        match self.ground.inspector.look_inside(&mut found) {
            Ok(()) => self.found(found),
            Err(trouble) => {
                let kind = match found.what {
                    What::File(_) => Kind::File,
                    What::Folder => Kind::Folder,
                    What::Link(_) => Kind::Link,
                };
                self.unread(&found.path, kind, &trouble.reason());
            }
        }
    }

    /// Leaves out a name that the source has: what the destination has of that name is not deleted for it.
    fn skip(&self, path: &[u8], kind: Kind, reason: &str) {
        let driver = &self.ground.driver;
        driver.settle_unannounced(path, kind, FileStatus::Skipped, reason);
        driver.wait_for_room();
    }
}
