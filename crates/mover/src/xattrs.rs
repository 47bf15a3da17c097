//! Extended attributes that copies take, as a file has them.

use std::io;
use std::os::fd::BorrowedFd;

use farline_sys::file;

use crate::message::{MOST_XATTR_BYTES, Xattr, takes_xattr};

/// Why a source with more of them than [`MOST_XATTR_BYTES`] does not come.
pub(crate) const TOO_MANY: &str = "has more than 65536 bytes of extended attributes";

/// The attributes of `file` that copies take; none where the file system has no such thing.
///
/// # Errors
/// [`io::ErrorKind::FileTooLarge`] for more than [`MOST_XATTR_BYTES`]; the kernel's.
pub(crate) fn xattrs_of(file: BorrowedFd<'_>) -> io::Result<Vec<Xattr>> {
    let there = match file::get_xattrs(file, takes_xattr, MOST_XATTR_BYTES) {
        Err(error) if file::is_lacking(&error) => Vec::new(),
        there => there?,
    };
    let xattr = |(name, value)| Xattr { name, value };
    Ok(there.into_iter().map(xattr).collect())
}
