//! Folders that a reader has open, so that a file is opened by its last name.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use farline_sys::file::{self, OpenFlags};

use super::found::Found;
use super::origin::Sources;

/// Folders kept open by each reader: the walk brings files of a few folders at a time.
const MOST_OPEN: usize = 8;

/// Open folders of one reader, the last used at the end.
#[derive(Debug, Default)]
pub(super) struct Folders {
    open: Vec<Folder>,
}

#[derive(Debug)]
struct Folder {
    origin: u32,
    path: Box<[u8]>,
    file: OwnedFd,
}

impl Folders {
    /// Opens a file to read it; never through a link unless links were followed to it. What has its name may be
    /// something else by now, a pipe for one, on which opening does not wait.
    pub(super) fn open(&mut self, sources: &Sources, found: &Found) -> io::Result<OwnedFd> {
        if let Some(held) = &found.held {
            return held.open();
        }
        let flags = OpenFlags::READ | OpenFlags::NO_WAIT;
        if found.is_through_link {
            return sources.open_at(found.origin, &found.path, flags, true);
        }
        let flags = flags | OpenFlags::NO_FOLLOW;
        let Some(slash) = found.path.iter().rposition(|byte| *byte == b'/') else {
            return file::open_at(Some(sources.folder(found.origin)), &found.path, flags, 0);
        };
        let (parent, name) = (&found.path[..slash], &found.path[slash + 1..]);
        let place = self.place_of(sources, found.origin, parent)?;
        file::open_at(Some(self.open[place].file.as_fd()), name, flags, 0)
    }

    fn place_of(&mut self, sources: &Sources, origin: u32, path: &[u8]) -> io::Result<usize> {
        let is_it = |folder: &Folder| folder.origin == origin && *folder.path == *path;
        if let Some(place) = self.open.iter().rposition(is_it) {
            return Ok(place);
        }
        let flags = OpenFlags::PATH | OpenFlags::FOLDER;
        let file = sources.open_at(origin, path, flags, false)?;
        if self.open.len() == MOST_OPEN {
            self.open.remove(0);
        }
        self.open.push(Folder {
            origin,
            path: path.into(),
            file,
        });
        Ok(self.open.len() - 1)
    }
}
