//! Times, permission bits and extended attributes of files.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{Access, AtFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, XattrFlags};
use rustix::io::Errno;

use super::{again, bits, path_of};

const SECOND_NS: i64 = 1_000_000_000;

/// Sets the time of last change, in nanoseconds since 1970; the time of last access stays. Also of what was opened with `PATH`.
///
/// # Errors
/// The kernel's.
pub fn set_times(file: BorrowedFd<'_>, mtime_ns: i64) -> io::Result<()> {
    match again(|| rustix::fs::futimens(file, &times(mtime_ns))) {
        Err(error) if is_only_a_path(&error) => {
            again(|| rustix::fs::utimensat(file, "", &times(mtime_ns), AtFlags::EMPTY_PATH))
        }
        result => result,
    }
}

/// As [`set_times`], and the time of last access becomes that of now: some file systems of users take both times or none.
///
/// # Errors
/// The kernel's.
pub fn set_both_times(file: BorrowedFd<'_>, mtime_ns: i64) -> io::Result<()> {
    let times = both_times(mtime_ns);
    match again(|| rustix::fs::futimens(file, &times)) {
        Err(error) if is_only_a_path(&error) => {
            again(|| rustix::fs::utimensat(file, "", &times, AtFlags::EMPTY_PATH))
        }
        result => result,
    }
}

/// As [`set_times`], of a name in a folder; of a link itself.
///
/// # Errors
/// The kernel's.
pub fn set_times_at(dir: BorrowedFd<'_>, name: &[u8], mtime_ns: i64) -> io::Result<()> {
    again(|| rustix::fs::utimensat(dir, name, &times(mtime_ns), AtFlags::SYMLINK_NOFOLLOW))
}

/// As [`set_times_at`], with the time of last access, as [`set_both_times`].
///
/// # Errors
/// The kernel's.
pub fn set_both_times_at(dir: BorrowedFd<'_>, name: &[u8], mtime_ns: i64) -> io::Result<()> {
    again(|| rustix::fs::utimensat(dir, name, &both_times(mtime_ns), AtFlags::SYMLINK_NOFOLLOW))
}

fn both_times(mtime_ns: i64) -> Timestamps {
    let mut times = times(mtime_ns);
    times.last_access.tv_nsec = UTIME_NOW;
    times
}

fn times(mtime_ns: i64) -> Timestamps {
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: mtime_ns.div_euclid(SECOND_NS),
            tv_nsec: mtime_ns.rem_euclid(SECOND_NS),
        },
    }
}

/// Sets the permission bits, the lowest twelve, umask or not. Also of what was opened with `PATH`.
///
/// # Errors
/// The kernel's.
pub fn set_mode(file: BorrowedFd<'_>, mode: u32) -> io::Result<()> {
    match again(|| rustix::fs::fchmod(file, bits(mode))) {
        Err(error) if is_only_a_path(&error) => {
            let path = path_of(file);
            again(|| rustix::fs::chmod(path.as_str(), bits(mode)))
        }
        result => result,
    }
}

fn is_only_a_path(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::BADF.raw_os_error())
}

/// Most bytes of names of one file's extended attributes (Linux: XATTR_LIST_MAX).
const XATTR_NAMES_BYTES: usize = 64 * 1024;

/// The extended attributes of a file whose names are `wanted`, name and value, in the file system's order; none where it has
/// no such thing.
///
/// # Errors
/// The kernel's; `FileTooLarge` when names and values are more than `most_bytes` together.
pub fn get_xattrs(
    file: BorrowedFd<'_>,
    wanted: impl Fn(&[u8]) -> bool,
    most_bytes: usize,
) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let names = match filled(|room| rustix::fs::flistxattr(file, room), XATTR_NAMES_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(Vec::new()),
        names => names?,
    };
    let mut left = most_bytes;
    let mut found = Vec::new();
    let names = names.split(|byte| *byte == 0);
    for name in names.filter(|name| !name.is_empty() && wanted(name)) {
        left = left.checked_sub(name.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        let value = match filled(|room| rustix::fs::fgetxattr(file, name, room), left) {
            // Taken away since the names were listed.
            Err(error) if error.raw_os_error() == Some(Errno::NODATA.raw_os_error()) => continue,
            value => value?,
        };
        left -= value.len();
        found.push((name.to_vec(), value));
    }
    Ok(found)
}

/// What a call gives that takes room and refuses too little of it, never more than `most_bytes`.
fn filled(call: impl Fn(&mut [u8]) -> rustix::io::Result<usize>, most_bytes: usize) -> io::Result<Vec<u8>> {
    // One more than allowed, so that what just fits is told from what does not; and no room at all would be a question
    // for the size.
    let limit = most_bytes + 1;
    let mut room = vec![0; limit.min(256)];
    loop {
        match call(&mut room) {
            Ok(bytes) if bytes > most_bytes => return Err(io::ErrorKind::FileTooLarge.into()),
            Ok(bytes) => {
                room.truncate(bytes);
                return Ok(room);
            }
            Err(Errno::RANGE) if room.len() < limit => room.resize(limit.min(room.len() * 8), 0),
            Err(Errno::RANGE) => return Err(io::ErrorKind::FileTooLarge.into()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether this process may make and remove names in an open folder; where the kernel does not tell, it is taken to.
///
/// # Errors
/// The kernel's: `PermissionDenied`, `ReadOnlyFilesystem`.
pub fn check_writable(folder: BorrowedFd<'_>) -> io::Result<()> {
    let access = Access::WRITE_OK.union(Access::EXEC_OK);
    let checked = again(|| rustix::fs::accessat(folder, ".", access, AtFlags::EACCESS));
    match checked {
        Err(error) if error.raw_os_error() == Some(Errno::NOSYS.raw_os_error()) => Ok(()),
        checked => checked,
    }
}

/// Removes one extended attribute.
///
/// # Errors
/// The kernel's.
pub fn remove_xattr(file: BorrowedFd<'_>, name: &[u8]) -> io::Result<()> {
    again(|| rustix::fs::fremovexattr(file, name))
}

/// Sets one extended attribute, whether there was one of that name or not.
///
/// # Errors
/// The kernel's.
pub fn set_xattr(file: BorrowedFd<'_>, name: &[u8], value: &[u8]) -> io::Result<()> {
    again(|| rustix::fs::fsetxattr(file, name, value, XattrFlags::empty()))
}
