//! Names of files: giving, changing, taking and listing them.

use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, CWD, RawDir, RenameFlags};
use rustix::io::Errno;

use super::{FileKind, OpenFlags, again, bits, is_lacking, is_unsupported, open_at, path_of, stat_at};

/// Bytes of names fetched with one call.
const LISTING_BYTES: usize = 64 * 1024;

/// Gives the nameless `file` the name `name` in the folder `into`; what has that name already stays.
///
/// # Errors
/// The kernel's; `AlreadyExists` when the name is taken.
pub fn link_fd(file: BorrowedFd<'_>, into: BorrowedFd<'_>, name: &[u8]) -> io::Result<()> {
    /// Whether this kernel lets this process name files by descriptor: since 6.10 whoever opened them.
    static BY_DESCRIPTOR: AtomicBool = AtomicBool::new(true);
    if BY_DESCRIPTOR.load(Ordering::Relaxed) {
        let direct = again(|| rustix::fs::linkat(file, "", into, name, AtFlags::EMPTY_PATH));
        match direct {
            // Also said of a folder that is gone; the other way tells the two apart.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => return result,
        }
    }
    let path = path_of(file);
    again(|| rustix::fs::linkat(CWD, path.as_str(), into, name, AtFlags::SYMLINK_FOLLOW))?;
    BY_DESCRIPTOR.store(false, Ordering::Relaxed);
    Ok(())
}

/// Renames. Unless `replace`, what has the new name already stays; where a file system cannot promise that of renaming,
/// a file gets its new name and then loses the old one; and where a file has one name only, it is looked whether something has
/// the new one: threads of this process do that in turn, another process may come between.
///
/// # Errors
/// The kernel's; `AlreadyExists` when the name is taken.
pub fn rename(
    from: BorrowedFd<'_>,
    name: &[u8],
    to: BorrowedFd<'_>,
    new_name: &[u8],
    replace: bool,
) -> io::Result<()> {
    if replace {
        return again(|| rustix::fs::renameat(from, name, to, new_name));
    }
    match again(|| rustix::fs::renameat_with(from, name, to, new_name, RenameFlags::NOREPLACE)) {
        Err(error) if is_unsupported(&error) => {}
        result => return result,
    }
    match hard_link(from, name, to, new_name) {
        Ok(()) => unlink(from, name),
        Err(error) if is_lacking(&error) => rename_if_free(from, name, to, new_name),
        Err(error) => Err(error),
    }
}

fn rename_if_free(from: BorrowedFd<'_>, name: &[u8], to: BorrowedFd<'_>, new_name: &[u8]) -> io::Result<()> {
    static TURN: Mutex<()> = Mutex::new(());
    let _mine = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    match stat_at(Some(to), new_name, false) {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            again(|| rustix::fs::renameat(from, name, to, new_name))
        }
        Err(error) => Err(error),
    }
}

/// Takes the name from a file or link.
///
/// # Errors
/// The kernel's.
pub fn unlink(dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<()> {
    again(|| rustix::fs::unlinkat(dir, name, AtFlags::empty()))
}

/// Removes an empty folder.
///
/// # Errors
/// The kernel's.
pub fn remove_folder(dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<()> {
    again(|| rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR))
}

/// Makes a folder with the permission bits `mode` less the umask.
///
/// # Errors
/// The kernel's; `AlreadyExists` when the name is taken.
pub fn make_folder(dir: BorrowedFd<'_>, name: &[u8], mode: u32) -> io::Result<()> {
    again(|| rustix::fs::mkdirat(dir, name, bits(mode)))
}

/// Makes a symbolic link to `target`.
///
/// # Errors
/// As [`make_folder`].
pub fn make_link(target: &[u8], dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<()> {
    again(|| rustix::fs::symlinkat(target, dir, name))
}

/// Where a symbolic link leads, as it is written; for an empty name `dir` is the link itself, opened with `PATH | NO_FOLLOW`.
///
/// # Errors
/// The kernel's; `InvalidInput` for what is no link.
pub fn read_link(dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<Vec<u8>> {
    again(|| rustix::fs::readlinkat(dir, name, Vec::new())).map(std::ffi::CString::into_bytes)
}

/// Gives a file one more name; a link at the end of the old one is not followed.
///
/// # Errors
/// As [`make_folder`].
pub fn hard_link(from: BorrowedFd<'_>, name: &[u8], to: BorrowedFd<'_>, new_name: &[u8]) -> io::Result<()> {
    again(|| rustix::fs::linkat(from, name, to, new_name, AtFlags::empty()))
}

/// One name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The name.
    pub name: Vec<u8>,
    /// What it stands for; `None` where only a look at it tells.
    pub kind: Option<FileKind>,
}

impl Listed {
    /// What it stands for in `folder`, which lists it; looked at where only that tells.
    ///
    /// # Errors
    /// The kernel's.
    pub fn kind_in(&self, folder: BorrowedFd<'_>) -> io::Result<FileKind> {
        match self.kind {
            Some(kind) => Ok(kind),
            None => stat_at(Some(folder), &self.name, false).map(|facts| facts.kind),
        }
    }
}

/// The names in a folder, `.` and `..` left out, in the file system's order. After an error there are no more.
#[derive(Debug)]
pub struct Listing {
    folder: OwnedFd,
    buffer: Box<[MaybeUninit<u8>]>,
    found: VecDeque<Listed>,
    is_over: bool,
}

/// Lists an open folder from its begin. Opened anew: a copy of the descriptor would share its place in the listing.
///
/// # Errors
/// The kernel's.
pub fn list(folder: BorrowedFd<'_>) -> io::Result<Listing> {
    Ok(Listing {
        folder: open_at(Some(folder), b".", OpenFlags::READ | OpenFlags::FOLDER, 0)?,
        buffer: vec![MaybeUninit::uninit(); LISTING_BYTES].into_boxed_slice(),
        found: VecDeque::new(),
        is_over: false,
    })
}

impl Listing {
    /// Fetches a buffer full of names. None come of an empty folder, or of a buffer with nothing but `.` and `..`.
    fn fetch(&mut self) -> io::Result<()> {
        let mut names = RawDir::new(&self.folder, &mut self.buffer);
        loop {
            let entry = match names.next() {
                None => {
                    self.is_over = true;
                    return Ok(());
                }
                Some(Err(Errno::INTR)) => continue,
                Some(entry) => entry?,
            };
            let name = entry.file_name().to_bytes();
            if !matches!(name, b"." | b"..") {
                self.found.push_back(Listed {
                    name: name.to_vec(),
                    kind: FileKind::of(entry.file_type()),
                });
            }
            if names.is_buffer_empty() {
                return Ok(());
            }
        }
    }
}

impl Iterator for Listing {
    type Item = io::Result<Listed>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.found.is_empty() && !self.is_over {
            if let Err(error) = self.fetch() {
                self.is_over = true;
                return Some(Err(error));
            }
        }
        self.found.pop_front().map(Ok)
    }
}
