//! `.farline-partial`: the folder that folders of copies are in, and the bits that the destination folder gets again when the last
//! of them is gone.
//!
//! Where another user has that name, or something that is no folder, it is `.farline-partial.USER`, by the user's number. What is
//! in it is believed, so nobody else may write to it.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use farline_spec::{Failure, FailureKind};
use farline_sys::file::{self, FileKind, OpenFlags};
use farline_sys::process;

use super::lock::token;
use super::locked_folder::{LOCK, made_folder, opened_folder};
use crate::path_text;
use crate::reserved::{STAGING, staging_of};

/// The bits of the destination folder that were changed for copies, octal.
const BITS: &[u8] = b"bits";
/// More than they take.
const MOST_BITS_BYTES: u64 = 16;
/// Only the owner reads what is not whole.
const FILE_MODE: u32 = 0o600;
/// What lets others write.
const OTHERS_WRITE: u32 = 0o022;

/// The folder, open.
#[derive(Debug)]
pub struct StagingTop {
    folder: OwnedFd,
    name: Vec<u8>,
}

impl StagingTop {
    /// Opens the folder below `base` in which there is something of the copy `key`, or makes one.
    ///
    /// # Errors
    /// [`FailureKind::System`] when there can be none.
    pub fn open(base: BorrowedFd<'_>, key: &[u8]) -> Result<Self, Failure> {
        let names = [STAGING.to_vec(), staging_of(process::user())];
        let explain = |name: &[u8]| {
            let what = what(name);
            move |error: io::Error| Failure::system(&what, &error)
        };
        for name in &names {
            if let Ok(folder) = opened_folder(base, name)
                && file::stat_at(Some(folder.as_fd()), key, false).is_ok()
                && is_own(folder.as_fd()).map_err(explain(name))?
            {
                let name = name.clone();
                return Ok(Self { folder, name });
            }
        }
        for name in names {
            if let Some(folder) = made(base, &name).map_err(explain(&name))? {
                return Ok(Self { folder, name });
            }
        }
        let name = staging_of(process::user());
        let line = format!(
            "{}: it is no folder, another user's, or one that others may write to; remove it",
            what(&name)
        );
        Err(Failure::new(FailureKind::System, line))
    }

    /// What it is called, for people.
    pub fn shown_name(&self) -> String {
        path_text::to_text(&self.name)
    }

    /// The folder.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// Notes the bits that the destination folder is to get again, unless others are noted already.
    ///
    /// # Errors
    /// The kernel's.
    pub fn note_bits(&self, bits: u32) -> io::Result<()> {
        note_bits(self.fd(), bits)
    }

    /// The bits that the destination folder is to get again, unless a copy other than `own` is at work.
    pub fn bits_beside(&self, own: &[u8]) -> Option<u32> {
        noted_bits(self.fd()).filter(|_| !has_work(self.fd(), own))
    }

    /// Removes the folder, unless another copy is in it; the bits that the destination folder is to get again now.
    ///
    /// # Errors
    /// The kernel's.
    pub fn end(&self, base: BorrowedFd<'_>) -> io::Result<Option<u32>> {
        let mut bits = None;
        if is_empty_but_for(self.fd(), BITS)? {
            bits = noted_bits(self.fd());
            match file::unlink(self.fd(), BITS) {
                // None are noted, or another copy that ends now has taken them.
                Err(error) if error.kind() == io::ErrorKind::NotFound => bits = None,
                removed => removed?,
            }
        }
        match file::remove_folder(base, &self.name) {
            Err(error) if is_not_empty(&error) => {
                // Another copy is in it, at work or not; it may have begun just now.
                if let Some(bits) = bits {
                    self.note_bits(bits)?;
                }
                Ok(self.bits_beside(b""))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(bits),
            removed => removed.map(|()| bits),
        }
    }
}

/// Whether a copy other than `own` is at work in the folder: its lock is held, or it is just being begun or ended. Where that cannot
/// be seen it is taken to be.
fn has_work(top: BorrowedFd<'_>, own: &[u8]) -> bool {
    let is_at_work = |name: &[u8]| -> io::Result<bool> {
        if [BITS, own].contains(&name) {
            return Ok(false);
        }
        let folder = match opened_folder(top, name) {
            // No copy's: what a look left behind, or what somebody put there.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(false),
            opened => opened?,
        };
        let lock = file::open_beneath(folder.as_fd(), LOCK, OpenFlags::READ | OpenFlags::NO_FOLLOW, 0)?;
        Ok(!file::lock_exclusive(lock.as_fd())?)
    };
    let looked = file::list(top).and_then(|listing| {
        for listed in listing {
            if is_at_work(&listed?.name)? {
                return Ok(true);
            }
        }
        Ok(false)
    });
    looked.unwrap_or(true)
}

fn is_empty_but_for(folder: BorrowedFd<'_>, name: &[u8]) -> io::Result<bool> {
    for listed in file::list(folder)? {
        if listed?.name != name {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a folder could not be removed because something is in it, or holds it.
pub fn is_not_empty(error: &io::Error) -> bool {
    use io::ErrorKind::{AlreadyExists, DirectoryNotEmpty, ResourceBusy};
    // POSIX allows either of the first two.
    matches!(error.kind(), DirectoryNotEmpty | AlreadyExists | ResourceBusy)
}

/// Whether a copy of this user is at work below `base`; it is told the bits that the folder gets when that ends.
pub fn hand_bits_on(base: BorrowedFd<'_>, bits: u32) -> bool {
    [STAGING.to_vec(), staging_of(process::user())]
        .iter()
        .filter_map(|name| opened_folder(base, name).ok())
        .filter(|top| is_own(top.as_fd()).unwrap_or(false) && has_work(top.as_fd(), b""))
        .any(|top| note_bits(top.as_fd(), bits).is_ok())
}

fn noted_bits(top: BorrowedFd<'_>) -> Option<u32> {
    let noted = file::open_beneath(top, BITS, OpenFlags::READ | OpenFlags::NO_FOLLOW, 0).ok()?;
    let text = io::read_to_string(File::from(noted).take(MOST_BITS_BYTES)).ok()?;
    u32::from_str_radix(text.trim(), 8).ok()
}

fn note_bits(top: BorrowedFd<'_>, bits: u32) -> io::Result<()> {
    let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
    match file::open_beneath(top, BITS, flags, FILE_MODE) {
        Ok(noted) => file::write_all_at(noted.as_fd(), format!("{bits:o}\n").as_bytes(), 0),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn what(name: &[u8]) -> String {
    format!(
        "folder {} for incomplete files, at the destination",
        path_text::to_text(name)
    )
}

/// The folder of this name, made or there; nothing where somebody else has the name, or no folder does.
fn made(base: BorrowedFd<'_>, name: &[u8]) -> io::Result<Option<OwnedFd>> {
    match made_folder(base, name) {
        Ok(folder) => Ok(is_own(folder.as_fd())?.then_some(folder)),
        Err(error) => {
            let is_closed = error.kind() == io::ErrorKind::PermissionDenied;
            let there = file::stat_at(Some(base), name, false);
            match there {
                Ok(facts) if is_closed || facts.kind != FileKind::Folder => Ok(None),
                _ => Err(error),
            }
        }
    }
}

/// Whether nobody else may put anything into a folder. Not every file system knows its users by their numbers here, or has
/// permission bits: there what is made in it tells whose files are whose, and what bits are worth.
fn is_own(folder: BorrowedFd<'_>) -> io::Result<bool> {
    let facts = file::stat_fd(folder)?;
    let is_closed = |mode: u32| mode & OTHERS_WRITE == 0;
    if facts.user == process::user() && is_closed(facts.mode) {
        return Ok(true);
    }
    let new_name = || format!("{}.look", &blake3::Hash::from(token()).to_hex()[..16]).into_bytes();
    let (name, inner) = (new_name(), new_name());
    let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
    // Open from its begin, a file cannot be another user's in disguise.
    let made = match file::open_beneath(folder, &name, flags, FILE_MODE) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(false),
        made => made?,
    };
    let own = file::stat_fd(made.as_fd());
    file::unlink(folder, &name)?;
    if own?.user != facts.user {
        return Ok(false);
    }
    if is_closed(facts.mode) {
        return Ok(true);
    }
    // Bits that a new folder does not have either are nobody's doing.
    let looked = made_folder(folder, &inner).and_then(|made| file::stat_fd(made.as_fd()));
    let _ = file::remove_folder(folder, &inner);
    Ok(looked.is_ok_and(|looked| looked.user == facts.user && !is_closed(looked.mode)))
}
