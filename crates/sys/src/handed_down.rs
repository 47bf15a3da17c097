//! Descriptors that whoever started this process left open for it.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use crate::call::check;

/// A duplicate of the descriptor `number`, closed in programs that this process starts (fcntl(2), F_DUPFD_CLOEXEC). The
/// descriptor itself stays as it is.
///
/// # Errors
/// `EBADF` where there is none.
pub fn duplicate(number: RawFd) -> io::Result<OwnedFd> {
    const ABOVE_STANDARD: libc::c_int = 3;
    // SAFETY: the call takes integers alone; a number that is no descriptor is refused by the kernel.
    let fd = check(unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, ABOVE_STANDARD) })?;
    // SAFETY: `fd` was just made by the kernel and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
