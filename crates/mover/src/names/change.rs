//! Changes of names: folders that are made, names that are changed, names that go.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use farline_spec::NameRefusal;
use farline_sys::file::{self, FileKind, OpenFlags};

use super::{Answer, Names, Refused, known, refused};
use crate::path_text::Shown;
use crate::root::split;

/// Folders within each other that are removed.
const MOST_DEPTH: usize = 500;
/// How often a folder is listed to be emptied: names may come meanwhile.
const MOST_PASSES: usize = 8;
/// Permission bits of a new folder, less the umask.
const NEW_FOLDER_MODE: u32 = 0o777;

impl Names {
    pub(super) fn make_folder(&self, path: &str, parents: bool) -> Answer<u64> {
        self.check_write("making folders")?;
        let path = known(path)?;
        let (above, name) = self.named(&path)?;
        let mut count = if parents { self.make_all(above)? } else { 0 };
        let folder = self.folder(above, &path)?;
        match file::make_folder(folder.as_fd(), name, NEW_FOLDER_MODE) {
            Ok(()) => count += 1,
            Err(error) if parents && error.kind() == io::ErrorKind::AlreadyExists => {
                let there = self.root.open(&path, OpenFlags::PATH | OpenFlags::FOLDER);
                there.map_err(|_| refused(&path, &error))?;
            }
            Err(error) => return Err(refused(&path, &error)),
        }
        Ok(count)
    }

    /// Makes the folders of `path` that are missing; how many.
    fn make_all(&self, path: &[u8]) -> Answer<u64> {
        let mut count = 0;
        let ends = (1..=path.len()).filter(|&end| path.get(end).is_none_or(|byte| *byte == b'/'));
        for part in ends.map(|end| &path[..end]) {
            let (above, name) = split(part);
            if matches!(name, b"" | b"." | b"..") {
                continue;
            }
            if self.root.open(part, OpenFlags::PATH | OpenFlags::FOLDER).is_ok() {
                continue;
            }
            let folder = self.folder(above, part)?;
            match file::make_folder(folder.as_fd(), name, NEW_FOLDER_MODE) {
                Ok(()) => count += 1,
                // By somebody else, or a file: the next look tells.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(refused(part, &error)),
            }
        }
        Ok(count)
    }

    pub(super) fn rename(&self, path: &str, to: &str, replace: bool, parents: bool) -> Answer<u64> {
        self.check_write("renaming")?;
        let (path, to) = (known(path)?, known(to)?);
        let (above, name) = self.named(&path)?;
        let (new_above, new_name) = self.named(&to)?;
        let from = self.folder(above, &path)?;
        file::stat_at(Some(from.as_fd()), name, false).map_err(|error| refused(&path, &error))?;
        if parents {
            self.make_all(new_above)?;
        }
        let into = self.folder(new_above, &to)?;
        file::rename(from.as_fd(), name, into.as_fd(), new_name, replace).map_err(|error| {
            let is_invalid = error.kind() == io::ErrorKind::InvalidInput;
            if is_invalid {
                let line = format!("{}: a folder cannot go into itself", Shown(&to));
                return Refused(NameRefusal::Invalid, line);
            }
            if error.kind() == io::ErrorKind::CrossesDevices {
                let line = format!("{}: is on another file system; copy it there", Shown(&to));
                return Refused(NameRefusal::System, line);
            }
            refused(&to, &error)
        })?;
        Ok(1)
    }

    pub(super) fn remove(&self, path: &str, recursive: bool, is_wanted: &dyn Fn() -> bool) -> Answer<u64> {
        self.check_write("removing")?;
        let path = known(path)?;
        let (above, name) = self.named(&path)?;
        let folder = self.folder(above, &path)?;
        let explain = |error: io::Error| refused(&path, &error);
        let facts = file::stat_at(Some(folder.as_fd()), name, false).map_err(explain)?;
        if recursive {
            let mut removal = Removal { count: 0, is_wanted };
            let ended = removal.remove(folder.as_fd(), name, &path, facts.kind, 0);
            return ended.map(|()| removal.count);
        }
        if facts.kind == FileKind::Folder {
            file::remove_folder(folder.as_fd(), name).map_err(explain)?;
        } else {
            file::unlink(folder.as_fd(), name).map_err(explain)?;
        }
        Ok(1)
    }
}

/// Removes a folder with all that is in it.
struct Removal<'a> {
    count: u64,
    is_wanted: &'a dyn Fn() -> bool,
}

impl Removal<'_> {
    fn remove(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &[u8],
        path: &[u8],
        found: FileKind,
        depth: usize,
    ) -> Answer<()> {
        let explain = |error: io::Error| refused(path, &error);
        if !(self.is_wanted)() {
            let line = format!("{}: stopped; removed so far: {}", Shown(path), self.count);
            return Err(Refused(NameRefusal::System, line));
        }
        if found != FileKind::Folder {
            return self.gone(file::unlink(dir, name)).map_err(explain);
        }
        if depth == MOST_DEPTH {
            let line = format!(
                "{}: more than {MOST_DEPTH} folders within each other",
                Shown(path)
            );
            return Err(Refused(NameRefusal::Invalid, line));
        }
        let flags = OpenFlags::READ | OpenFlags::FOLDER | OpenFlags::NO_FOLLOW;
        let folder = match file::open_at(Some(dir), name, flags, 0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened.map_err(explain)?,
        };
        for pass in 1.. {
            for listed in file::list(folder.as_fd()).map_err(explain)? {
                let listed = listed.map_err(explain)?;
                let below = [path, &listed.name].join(&b'/');
                let kind = listed.kind_in(folder.as_fd());
                let kind = kind.map_err(|error| refused(&below, &error))?;
                self.remove(folder.as_fd(), &listed.name, &below, kind, depth + 1)?;
            }
            match file::remove_folder(dir, name) {
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty && pass < MOST_PASSES => {}
                removed => return self.gone(removed).map_err(explain),
            }
        }
        Ok(())
    }

    /// Counts a name that is gone now; one that was gone before is no error.
    fn gone(&mut self, removed: io::Result<()>) -> io::Result<()> {
        match removed {
            Ok(()) => self.count += 1,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
