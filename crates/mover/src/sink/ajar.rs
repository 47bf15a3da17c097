//! Folders whose own permission bits forbid their owner to write, as those of a read-only source do: open while a copy works in
//! them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use farline_sys::{file, process};

use super::make::OWNER;

/// Whether nothing can be put into `folder`, and only because of the bits that this user gave it.
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
    Ok(facts.user == process::user() && forbids_writing(facts.mode))
}

/// Does what changes the names in `folder`; if its bits alone forbid that, they allow it from now on.
///
/// # Errors
/// The kernel's.
pub fn opened<T>(folder: BorrowedFd<'_>, act: impl Fn() -> io::Result<T>) -> io::Result<T> {
    match act() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && is_locked(folder)? => {
            let mode = file::stat_fd(folder)?.mode;
            file::set_mode(folder, mode | OWNER)?;
            act()
        }
        done => done,
    }
}

/// Whether bits forbid the owner of a folder to put anything into it.
pub const fn forbids_writing(mode: u32) -> bool {
    mode & OWNER != OWNER
}

/// A folder that its owner may write to until this is closed.
#[derive(Debug)]
pub struct Ajar {
    folder: Arc<OwnedFd>,
    /// The bits that it had.
    mode: u32,
    is_closed: AtomicBool,
}

impl Ajar {
    /// Gives the owner of `folder` all rights to it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new(folder: &Arc<OwnedFd>) -> io::Result<Self> {
        let mode = file::stat_fd(folder.as_fd())?.mode;
        file::set_mode(folder.as_fd(), mode | OWNER)?;
        Ok(Self {
            folder: Arc::clone(folder),
            mode,
            is_closed: AtomicBool::new(false),
        })
    }

    /// Gives it the bits that it had.
    ///
    /// # Errors
    /// The kernel's.
    pub fn close(&self) -> io::Result<()> {
        match self.is_closed.swap(true, Ordering::Relaxed) {
            true => Ok(()),
            false => file::set_mode(self.folder.as_fd(), self.mode),
        }
    }
}

impl Drop for Ajar {
    fn drop(&mut self) {
        // A copy that ends early has said why; nobody hears of this.
        let _ = self.close();
    }
}
