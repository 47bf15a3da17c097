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

use super::locked_folder::{made_folder, opened_folder};
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
        for name in &names {
            if let Ok(folder) = opened_folder(base, name)
                && file::stat_at(Some(folder.as_fd()), key, false).is_ok()
                && is_own(folder.as_fd())
            {
                let name = name.clone();
                return Ok(Self { folder, name });
            }
        }
        for name in names {
            match made(base, &name) {
                Ok(Some(folder)) => return Ok(Self { folder, name }),
                Ok(None) => {}
                Err(error) => return Err(Failure::system(&what(&name), &error)),
            }
        }
        let name = staging_of(process::user());
        let line = format!("{}: it is another user's, or no folder; remove it", what(&name));
        Err(Failure::new(FailureKind::System, line))
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

    /// The bits that the destination folder is to get again, if nothing is here but what is called `own`.
    pub fn bits_beside(&self, own: &[u8]) -> Option<u32> {
        let noted = file::open_beneath(self.fd(), BITS, OpenFlags::READ | OpenFlags::NO_FOLLOW, 0).ok()?;
        let text = io::read_to_string(File::from(noted).take(MOST_BITS_BYTES)).ok()?;
        let bits = u32::from_str_radix(text.trim(), 8).ok()?;
        for listed in file::list(self.fd()).ok()? {
            if ![BITS, own].contains(&listed.ok()?.name.as_slice()) {
                return None;
            }
        }
        Some(bits)
    }

    /// Removes the folder, unless another copy is in it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn end(&self, base: BorrowedFd<'_>) -> io::Result<()> {
        let bits = self.bits_beside(BITS);
        if bits.is_some() {
            file::unlink(self.fd(), BITS)?;
        }
        match file::remove_folder(base, &self.name) {
            // Another copy is in it, and has begun just now if there were bits to give back.
            Err(error) if is_not_empty(&error) => bits.map_or(Ok(()), |bits| self.note_bits(bits)),
            removed => removed,
        }
    }
}

/// Whether a folder could not be removed because something is in it, or holds it.
pub fn is_not_empty(error: &io::Error) -> bool {
    use io::ErrorKind::{AlreadyExists, DirectoryNotEmpty, ResourceBusy};
    // POSIX allows either of the first two.
    matches!(error.kind(), DirectoryNotEmpty | AlreadyExists | ResourceBusy)
}

/// Whether a copy of this user has begun below `base`; it is told the bits that the folder gets when that ends.
pub fn hand_bits_on(base: BorrowedFd<'_>, bits: u32) -> bool {
    [STAGING.to_vec(), staging_of(process::user())]
        .iter()
        .filter_map(|name| opened_folder(base, name).ok())
        .any(|top| is_own(top.as_fd()) && note_bits(top.as_fd(), bits).is_ok())
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
        Ok(folder) => Ok(is_own(folder.as_fd()).then_some(folder)),
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
/// permission bits: there a file that is made in it tells whose files are whose.
fn is_own(folder: BorrowedFd<'_>) -> bool {
    let Ok(facts) = file::stat_fd(folder) else {
        return false;
    };
    if facts.user == process::user() && facts.mode & OTHERS_WRITE == 0 {
        return true;
    }
    let name = format!("{}.look", std::process::id()).into_bytes();
    let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
    let Ok(made) = file::open_beneath(folder, &name, flags, FILE_MODE) else {
        return false;
    };
    let own = file::stat_fd(made.as_fd());
    // It is empty, and of no use to anybody.
    let _ = file::unlink(folder, &name);
    own.is_ok_and(|own| {
        let has_modes = own.mode & 0o777 == FILE_MODE;
        own.user == facts.user && (!has_modes || facts.mode & OTHERS_WRITE == 0)
    })
}
