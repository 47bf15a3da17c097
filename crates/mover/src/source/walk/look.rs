//! Looks at one name: what it is, whether it is taken, what is told of it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use farline_proto::copy::sender::MOST_TRIES;
use farline_spec::{FileKind as Kind, FileStatus, SumKind, SymbolicLinks, SyncLevel};
use farline_sys::file::{self, FileFacts, FileKind, OpenFlags};

use super::{Folder, Walker};
use crate::message::{MAX_PATH_BYTES, MOST_XATTR_BYTES, Xattr, takes_xattr};
use crate::source::found::{Found, What};
use crate::source::held::{Held, Lengths};
use crate::source::origin::{is_link_loop, why};
use crate::source::settle::{Trouble, VANISHED};
use crate::source::shared::Shared;
use crate::source::steady;
use crate::sum::{Hasher, Sum};

/// Folder of unfinished copies; never part of another copy.
const STAGING: &[u8] = b".farline-partial";
/// Bytes read at a time where a file is hashed before it is sent.
const HASH_BYTES: usize = 1 << 20;

/// Why a folder is left out.
pub(super) const NOT_RECURSIVE: &str = "is a folder, but the copy is not recursive";

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
    /// Looks at `name` in the open folder and hands on what is taken; a way if it is a folder to look into.
    pub(super) fn look(
        &mut self,
        folder: &Folder,
        open: BorrowedFd<'_>,
        kind: Option<FileKind>,
        name: &[u8],
        path: Vec<u8>,
    ) -> Option<Way> {
        let shared = self.shared;
        let is_link = matches!(kind, None | Some(FileKind::Link));
        if !is_link && !shared.filters.takes(&path, kind == Some(FileKind::Folder)) {
            return None;
        }
        let seen = match self.see(folder, open, name, &path) {
            Ok(seen) => seen,
            Err(reason) => {
                if !is_link || shared.filters.takes(&path, false) {
                    self.unread(&path, Kind::Other, &reason);
                }
                return None;
            }
        };
        let is_folder = seen.facts.kind == FileKind::Folder;
        if is_link && !shared.filters.takes(&path, is_folder) {
            return None;
        }
        let what = match seen.facts.kind {
            FileKind::File => return self.file(folder, seen, open, name, path),
            FileKind::Folder => return self.folder(folder, &seen, name, path),
            FileKind::Link if shared.spec.links == SymbolicLinks::Skip => {
                self.skip(&path, Kind::Link, "is a symbolic link");
                return None;
            }
            FileKind::Link => match file::read_link(open, name) {
                Ok(target) => What::Link(target.into()),
                Err(error) => {
                    self.unread(&path, Kind::Link, &why(&error));
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
                    io::ErrorKind::NotFound => VANISHED.to_owned(),
                    _ => why(&error),
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
        let shared = self.shared;
        let device = seen.facts.device;
        let opened = |flags: OpenFlags| match seen.is_through_link {
            true => shared.origins[folder.origin as usize].open_at(&shared.root, path, flags, true),
            false => file::open_at(Some(open), name, flags | OpenFlags::NO_FOLLOW, 0),
        };
        let lengths = match self.lengths.get(&device) {
            Some(lengths) => *lengths,
            None => Lengths::of(&opened(OpenFlags::PATH)?)?,
        };
        self.lengths.insert(device, lengths);
        let is_known = !lengths.are_unknown(seen.facts.bytes) || !shared.reads_files();
        if is_known && !shared.spec.dry_run {
            return Ok(None);
        }
        // A dry run reads nothing, but says what could not be read.
        let file = opened(OpenFlags::READ | OpenFlags::NO_WAIT)?;
        if is_known {
            return Ok(None);
        }
        let facts = file::stat_fd(file.as_fd())?;
        self.hand_on();
        let read = Held::read(&file, &facts, &shared.held, || shared.halt.is_over())?;
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
        let told = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => VANISHED.to_owned(),
            _ => why(&error),
        };
        let facts = file::stat_at(Some(open), name, false).map_err(told)?;
        if facts.kind != FileKind::Link || self.shared.spec.links != SymbolicLinks::Follow {
            let is_through_link = folder.is_through_link;
            return Ok(Seen {
                facts,
                is_through_link,
            });
        }
        let origin = &self.shared.origins[folder.origin as usize];
        let facts = origin.stat_through(&self.shared.root, path);
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
        if name == STAGING {
            self.skip(&path, Kind::Folder, "contains incomplete copies");
            return None;
        }
        if !self.shared.spec.recursive {
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
        match self.shared.look_inside(&mut found) {
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
        self.shared
            .settle_unannounced(path, kind, FileStatus::Skipped, reason);
        self.shared.driver.wait_for_room();
    }
}

impl Shared {
    /// Reads of a name what its entry has to tell and only an open file tells: attributes and hash, where asked for. What is
    /// announced of a file without content is all that comes of it, so it is proved here.
    pub(in crate::source) fn look_inside(&self, found: &mut Found) -> Result<(), Trouble> {
        for _ in 1..MOST_TRIES {
            match self.look_inside_once(found) {
                Err(Trouble::Changed) => {}
                looked => return looked,
            }
        }
        self.look_inside_once(found)
    }

    fn look_inside_once(&self, found: &mut Found) -> Result<(), Trouble> {
        let is_file = matches!(found.what, What::File(_));
        // What changed before may be in the middle of a change.
        let is_held = found.held.is_some();
        let is_doubtful =
            is_file && !is_held && self.reads_files() && (found.bytes() == 0 || found.tries > 1);
        let wants_hash = is_file && self.spec.sync_level == SyncLevel::Checksum && self.reads_files();
        let wants_xattrs = self.spec.xattrs && !matches!(found.what, What::Link(_));
        if !wants_hash && !wants_xattrs && !is_doubtful {
            return Ok(());
        }
        let flags = OpenFlags::READ | OpenFlags::NO_WAIT;
        let origin = &self.origins[found.origin as usize];
        let opened = origin.open_at(&self.root, &found.path, flags, found.is_through_link)?;
        if is_file && !is_held {
            steady::look(found, opened.as_fd())?;
        }
        if wants_xattrs {
            let read = file::get_xattrs(opened.as_fd(), takes_xattr, MOST_XATTR_BYTES);
            let read = read.map_err(|error| match error.kind() {
                io::ErrorKind::FileTooLarge => {
                    Trouble::Beyond("has more than 65536 bytes of extended attributes".to_owned())
                }
                _ => Trouble::Kernel(error),
            })?;
            found.xattrs = read
                .into_iter()
                .map(|(name, value)| Xattr { name, value })
                .collect();
        }
        if wants_hash {
            let content = match &found.held {
                Some(held) => held.open()?,
                None => opened,
            };
            let hash = self.hash_all(&content)?;
            steady::end(found, content.as_fd())?;
            found.what = What::File(Some(Box::new(hash)));
        }
        Ok(())
    }

    fn hash_all(&self, file: &OwnedFd) -> Result<Sum, Trouble> {
        let mut buffer = vec![0; HASH_BYTES];
        let mut hasher = Hasher::new(SumKind::Blake3);
        let mut offset = 0;
        loop {
            let read = || file::read_at(file.as_fd(), &mut buffer, offset);
            let bytes = self.gauges.file_ns.time(read)?;
            offset += bytes as u64;
            if bytes == 0 || self.halt.is_over() {
                return Ok(hasher.sum());
            }
            self.gauges.file_bytes.add(bytes as u64);
            self.gauges.hash_ns.time(|| hasher.update(&buffer[..bytes]));
            self.worked();
        }
    }
}
