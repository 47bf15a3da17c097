//! Small helpers that every module here shares: the -1 convention and time conversion.

use std::io;
use std::time::Duration;

/// Turns the -1 of a system call into the error that errno names.
pub(crate) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// As [`check`], for calls that return a length.
pub(crate) fn check_length(result: libc::ssize_t) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// `duration` as the kernel takes it; what is too long for it becomes the longest it takes.
pub(crate) fn timespec(duration: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

/// What the kernel gave as seconds and nanoseconds.
pub(crate) fn duration(time: &libc::timespec) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// `error` with the place and what is needed there, in one line and of the same kind.
pub(crate) fn explain(error: &io::Error, place: impl std::fmt::Display) -> io::Error {
    io::Error::new(error.kind(), format!("{place}: {error}"))
}
