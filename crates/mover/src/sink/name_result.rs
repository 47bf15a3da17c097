//! What giving a name came to, in words.

use std::io;
use std::os::fd::BorrowedFd;

use farline_spec::{Failure, kernel_words};
use farline_sys::file;
use tracing::debug;

use super::entry::Entry;
use super::words::{ends_all, in_words};
use crate::path_text::Shown;

/// A result of the kernel as the reason why one file failed.
///
/// # Errors
/// What ends the copy.
pub fn reason_of(result: io::Result<()>) -> Result<Result<(), String>, Failure> {
    match result {
        Ok(()) => Ok(Ok(())),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Err(
            "another file took its name at the destination in the meantime".to_owned(),
        )),
        Err(error) => {
            ends_all(&error)?;
            Ok(Err(in_words(&error)))
        }
    }
}

/// Says what became of giving `entry` its name: with the kernel's number where it refused.
pub fn tell_named(entry: &Entry, result: &io::Result<()>) {
    let (path, replaces) = (Shown(&entry.source.path), entry.replaces);
    match result {
        Ok(()) => debug!(entry = %path, replaces, "entry named"),
        Err(error) => debug!(
            entry = %path,
            replaces,
            errno = error.raw_os_error(),
            reason = kernel_words(error),
            "entry not named"
        ),
    }
}

/// The result of giving a name: what is invalid then is the name.
///
/// # Errors
/// `InvalidFilename` where the file system does not accept this name; else the kernel's.
pub fn named<T>(result: io::Result<T>) -> io::Result<T> {
    result.map_err(|error| match file::is_bad_name(&error) {
        true => file::bad_name(),
        false => error,
    })
}

/// `error`, which came of making a file without a name in `folder`; that the folder is gone, where it is: ext4 calls that forbidden.
pub fn or_removed(folder: BorrowedFd<'_>, error: io::Error) -> io::Error {
    let is_forbidden = error.kind() == io::ErrorKind::PermissionDenied;
    match is_forbidden && file::stat_fd(folder).is_ok_and(|facts| facts.links == 0) {
        true => io::Error::new(io::ErrorKind::NotFound, "its folder was removed in the meantime"),
        false => error,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn what_is_forbidden_in_a_folder_that_is_gone_is_that_it_is_gone() {
        let top = tempfile::tempdir().unwrap();
        let forbidden = || io::Error::from(io::ErrorKind::PermissionDenied);
        let folder = fs::File::open(top.path()).unwrap();
        assert_eq!(
            or_removed(folder.as_fd(), forbidden()).kind(),
            io::ErrorKind::PermissionDenied
        );
        drop(top);
        let said = or_removed(folder.as_fd(), forbidden());
        assert_eq!(
            super::super::words::in_words(&said),
            "its folder was removed in the meantime"
        );
        let full = or_removed(folder.as_fd(), io::ErrorKind::StorageFull.into());
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
    }
}
