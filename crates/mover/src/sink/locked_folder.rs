//! Folders below `.farline-partial` of which a lock is held: alone, or together with other parts of one copy.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use farline_sys::file::{self, OpenFlags};

use super::lock::Lock;

/// The lock's name in a folder.
pub const LOCK: &[u8] = b"lock";
/// Only the owner reads what is not whole.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Why a folder is not open and locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotLocked {
    /// The last copy out took the folder with it, perhaps just now.
    Gone,
    /// Another has the lock.
    Busy,
}

/// A folder of which the lock is held.
#[derive(Debug)]
pub struct LockedFolder {
    /// The folder.
    pub folder: OwnedFd,
    /// Its lock.
    pub lock: Lock,
}

/// Makes the folder `name`, or opens it, and takes its lock: alone, or together with others who do so.
///
/// # Errors
/// The kernel's.
pub fn locked(
    top: BorrowedFd<'_>,
    name: &[u8],
    together: bool,
) -> io::Result<Result<LockedFolder, NotLocked>> {
    let opened = made_folder(top, name).and_then(|folder| {
        let lock = file::open_beneath(folder.as_fd(), LOCK, lock_flags(), FILE_MODE)?;
        Ok((folder, lock))
    });
    let (folder, lock) = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Err(NotLocked::Gone)),
        opened => opened?,
    };
    if together {
        let Some(lock) = Lock::share(lock)? else {
            return Ok(Err(NotLocked::Busy));
        };
        // The file that is locked may have lost its name meanwhile; the others write nothing to it.
        let is_named = match file::stat_at(Some(folder.as_fd()), LOCK, false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            named => lock.is_at(&named?)?,
        };
        return Ok(match is_named {
            true => Ok(LockedFolder { folder, lock }),
            false => Err(NotLocked::Gone),
        });
    }
    let Some(lock) = Lock::take(folder.as_fd(), lock)? else {
        return Ok(Err(NotLocked::Busy));
    };
    Ok(match lock.is_in(folder.as_fd(), LOCK)? {
        true => Ok(LockedFolder { folder, lock }),
        false => Err(NotLocked::Gone),
    })
}

/// Makes the folder `name`, or opens it.
///
/// # Errors
/// The kernel's.
pub fn made_folder(from: BorrowedFd<'_>, name: &[u8]) -> io::Result<OwnedFd> {
    match file::make_folder(from, name, FOLDER_MODE) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    opened_folder(from, name)
}

/// Opens the folder `name`.
///
/// # Errors
/// The kernel's.
pub fn opened_folder(from: BorrowedFd<'_>, name: &[u8]) -> io::Result<OwnedFd> {
    let flags = OpenFlags::READ | OpenFlags::FOLDER | OpenFlags::NO_FOLLOW;
    file::open_beneath(from, name, flags, 0)
}

fn lock_flags() -> OpenFlags {
    OpenFlags::READ_WRITE | OpenFlags::CREATE | OpenFlags::NO_FOLLOW
}
