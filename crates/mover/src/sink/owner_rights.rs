//! Rights of the owner of a folder, where its bits withhold some as those of a read-only source do: granted while copies work in it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use farline_sys::{file, owner, process};

/// What the owner needs to put things into a folder.
pub const OWNER: u32 = 0o700;
const SET_GROUP: u32 = 0o2000;

/// Whether bits withhold any right from a folder's owner.
pub const fn are_incomplete(mode: u32) -> bool {
    mode & OWNER != OWNER
}

/// Whether nothing can be put into `folder`, and only because its bits withhold rights from its owner, who this user is. One whose
/// set-group-id bit would go with a change of its bits, for ever, is not meant.
///
/// # Errors
/// The kernel's.
pub fn are_withheld(folder: BorrowedFd<'_>) -> io::Result<bool> {
    let is_denied =
        file::check_writable(folder).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied);
    if !is_denied {
        return Ok(false);
    }
    let facts = file::stat_fd(folder)?;
    let keeps_group = facts.mode & SET_GROUP == 0 || owner::is_in_group(facts.group);
    Ok(facts.user == process::user() && keeps_group && are_incomplete(facts.mode))
}

/// Gives the owner of `folder` all rights to it; the bits that it had.
///
/// # Errors
/// The kernel's.
pub fn grant(folder: BorrowedFd<'_>) -> io::Result<u32> {
    let mode = file::stat_fd(folder)?.mode;
    file::set_mode(folder, mode | OWNER)?;
    Ok(mode)
}

/// Gives the owner of `folder` the rights that its bits or its access control list withhold, if any: names are to be made in it.
///
/// # Errors
/// The kernel's.
pub fn complete(folder: BorrowedFd<'_>) -> io::Result<()> {
    match are_incomplete(file::stat_fd(folder)?.mode) {
        true => grant(folder).map(drop),
        false => Ok(()),
    }
}

/// Takes the rights from the owner of `folder` again that the bits `mode` withheld; what else was changed meanwhile stays.
///
/// # Errors
/// The kernel's.
pub fn withdraw(folder: BorrowedFd<'_>, mode: u32) -> io::Result<()> {
    let now = file::stat_fd(folder)?.mode;
    let closed = now & !(OWNER & !mode);
    match closed == now {
        true => Ok(()),
        false => file::set_mode(folder, closed),
    }
}

/// Does what changes the names in `folder`; if only its owner lacks the rights, he has them from now on, unless it fails nevertheless.
///
/// # Errors
/// The kernel's.
pub fn granted<T>(folder: &impl AsFd, act: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let folder = folder.as_fd();
    match act() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && are_withheld(folder)? => {
            let mode = grant(folder)?;
            act().inspect_err(|_| {
                // What matters is why it could not be done.
                let _ = withdraw(folder, mode);
            })
        }
        done => done,
    }
}
