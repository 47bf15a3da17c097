//! Folders whose own permission bits forbid their owner to write, as those of a read-only source do: open while copies work in them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use farline_sys::{file, owner, process};

use super::make::OWNER;

const SET_GROUP: u32 = 0o2000;

/// Whether bits lack any right of a folder's owner.
pub const fn lacks_owner_rights(mode: u32) -> bool {
    mode & OWNER != OWNER
}

/// Whether nothing can be put into `folder`, and only because its bits lack rights of its owner, who this user is. One whose
/// set-group-id bit would go with a change of its bits, for ever, is not meant.
///
/// # Errors
/// The kernel's.
pub fn is_locked(folder: BorrowedFd<'_>) -> io::Result<bool> {
    let is_denied =
        file::check_writable(folder).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied);
    if !is_denied {
        return Ok(false);
    }
    let facts = file::stat_fd(folder)?;
    let keeps_group = facts.mode & SET_GROUP == 0 || owner::is_in_group(facts.group);
    Ok(facts.user == process::user() && keeps_group && lacks_owner_rights(facts.mode))
}

/// Gives the owner of `folder` all rights to it; the bits that it had.
///
/// # Errors
/// The kernel's.
pub fn open(folder: BorrowedFd<'_>) -> io::Result<u32> {
    let mode = file::stat_fd(folder)?.mode;
    file::set_mode(folder, mode | OWNER)?;
    Ok(mode)
}

/// Takes from the owner of `folder` what it lacked when it had the bits `mode`; what else was changed meanwhile stays.
///
/// # Errors
/// The kernel's.
pub fn close(folder: BorrowedFd<'_>, mode: u32) -> io::Result<()> {
    let now = file::stat_fd(folder)?.mode;
    let closed = now & !(OWNER & !mode);
    match closed == now {
        true => Ok(()),
        false => file::set_mode(folder, closed),
    }
}

/// Does what changes the names in `folder`; if its bits alone forbid that, they allow it from now on, unless it fails nevertheless.
///
/// # Errors
/// The kernel's.
pub fn opened<T>(folder: &impl AsFd, act: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let folder = folder.as_fd();
    match act() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && is_locked(folder)? => {
            let mode = open(folder)?;
            act().inspect_err(|_| {
                // What matters is why it could not be done.
                let _ = close(folder, mode);
            })
        }
        done => done,
    }
}
