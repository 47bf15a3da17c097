//! Files by descriptor: opening beneath a folder, files without a name, holes, attributes, what a file system is.
//!
//! Paths and names are bytes. What is given is made with close-on-exec; errors are the kernel's, untouched, and an
//! interrupted call is begun again.
//!
//! Start with [`open_beneath`], then [`FileFacts`], [`rename`], [`read_at`] and [`get_xattrs`].

mod attributes;
mod content;
mod facts;
mod names;
mod walk;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

pub use attributes::{
    check_writable, get_xattrs, remove_xattr, set_both_times, set_both_times_at, set_mode, set_times,
    set_times_at, set_xattr,
};
pub use content::{
    allocate, cached_bytes, cached_bytes_in, data_after, flush, forget, hole_after, in_memory,
    lock_exclusive, lock_shared, punch, read_at, read_once_at, sequential, set_length, start_writeback,
    sync_data, sync_file, sync_file_system, will_read, write_all_at,
};
pub use facts::{FileFacts, FileKind, file_system, stat_at, stat_fd, stat_fd_anew};
pub use names::{
    Listed, Listing, hard_link, link_fd, list, make_folder, make_link, read_link, remove_folder, rename,
    unlink,
};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// Flags of open(2); joined with `|`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenFlags(OFlags);

impl OpenFlags {
    /// To read.
    pub const READ: Self = Self(OFlags::RDONLY);
    /// To write.
    pub const WRITE: Self = Self(OFlags::WRONLY);
    /// To read and write.
    pub const READ_WRITE: Self = Self(OFlags::RDWR);
    /// Made if it is not there.
    pub const CREATE: Self = Self(OFlags::CREATE);
    /// Refused if it is there.
    pub const EXCLUSIVE: Self = Self(OFlags::EXCL);
    /// Emptied.
    pub const TRUNCATE: Self = Self(OFlags::TRUNC);
    /// A folder and nothing else.
    pub const FOLDER: Self = Self(OFlags::DIRECTORY);
    /// Not through a link at the end of the path.
    pub const NO_FOLLOW: Self = Self(OFlags::NOFOLLOW);
    /// Only to name it (O_PATH).
    pub const PATH: Self = Self(OFlags::PATH);
    /// A file without a name in this folder (O_TMPFILE); goes with [`Self::WRITE`] or [`Self::READ_WRITE`].
    pub const NAMELESS: Self = Self(OFlags::TMPFILE);
    /// Past the page cache.
    pub const DIRECT: Self = Self(OFlags::DIRECT);
    /// Without waiting, should it be a pipe.
    pub const NO_WAIT: Self = Self(OFlags::NONBLOCK);
    /// Without changing the time of last access; refused for files of others.
    pub const KEEP_ACCESS_TIME: Self = Self(OFlags::NOATIME);
}

impl std::ops::BitOr for OpenFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0.union(other.0))
    }
}

/// Opens `path` from the folder `from` (where the process is, if absent), close-on-exec; made files get the permission
/// bits `mode` less the umask.
///
/// # Errors
/// The kernel's; `InvalidInput` for a path with a zero byte.
pub fn open_at(
    from: Option<BorrowedFd<'_>>,
    path: &[u8],
    flags: OpenFlags,
    mode: u32,
) -> io::Result<OwnedFd> {
    let from = from.unwrap_or(CWD);
    again(|| rustix::fs::openat(from, path, flags.0.union(OFlags::CLOEXEC), bits(mode)))
}

/// As [`open_at`], and the path may not lead out of `from`: not by `..`, not by a link, not as an absolute one
/// (openat2 with RESOLVE_BENEATH and RESOLVE_NO_MAGICLINKS; walked a name at a time on a kernel without it).
///
/// # Errors
/// As [`open_at`]; `EXDEV` for a path that would leave.
pub fn open_beneath(from: BorrowedFd<'_>, path: &[u8], flags: OpenFlags, mode: u32) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);
    open_resolved(from, path, flags, mode, resolve)
}

/// As [`open_beneath`], and no part of the path may be a link: for paths that were walked or made before.
///
/// # Errors
/// As [`open_beneath`]; `ELOOP` for a link.
pub fn open_without_links(
    from: BorrowedFd<'_>,
    path: &[u8],
    flags: OpenFlags,
    mode: u32,
) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);
    open_resolved(from, path, flags, mode, resolve)
}

fn open_resolved(
    from: BorrowedFd<'_>,
    path: &[u8],
    flags: OpenFlags,
    mode: u32,
    resolve: ResolveFlags,
) -> io::Result<OwnedFd> {
    /// The kernel gives up a path with `..` while folders are renamed anywhere; this often it is tried again.
    const TRIES: usize = 128;
    // Unlike openat, openat2 refuses a mode where nothing can be made.
    let makes = flags.0.intersects(OFlags::CREATE) || flags.0.contains(OFlags::TMPFILE);
    let mode = if makes { bits(mode) } else { Mode::empty() };
    if !kernel_resolves() {
        let follows = !resolve.contains(ResolveFlags::NO_SYMLINKS);
        let flags = flags.0.union(OFlags::CLOEXEC);
        return again(|| walk::open(from, path, flags, mode, follows));
    }
    let open = || rustix::fs::openat2(from, path, flags.0.union(OFlags::CLOEXEC), mode, resolve);
    for _ in 1..TRIES {
        match again(open) {
            Err(error) if error.raw_os_error() == Some(Errno::AGAIN.raw_os_error()) => {}
            result => return result,
        }
    }
    again(open)
}

/// Whether there is openat2. A filter of system calls that does not know it may say that it is not permitted.
fn kernel_resolves() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| {
        let flags = OFlags::PATH.union(OFlags::CLOEXEC);
        let tried = rustix::fs::openat2(CWD, c".", flags, Mode::empty(), ResolveFlags::BENEATH);
        !matches!(tried, Err(Errno::NOSYS | Errno::PERM))
    })
}

/// Opens once more what `file` has open, with other flags; what it may do is asked again.
///
/// # Errors
/// The kernel's; `InvalidInput` for [`OpenFlags::DIRECT`] where the file system cannot; `NotFound` without `/proc`.
pub fn reopen(file: BorrowedFd<'_>, flags: OpenFlags) -> io::Result<OwnedFd> {
    open_at(None, path_of(file).as_bytes(), flags, 0)
}

/// Path of an open file for calls that take paths alone.
fn path_of(file: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Permission bits, the lowest twelve.
fn bits(mode: u32) -> Mode {
    Mode::from_bits_truncate(mode & 0o7777)
}

/// Whether an error says that a file system has no such thing, rather than that this time it went wrong.
pub fn is_unsupported(error: &io::Error) -> bool {
    // Which of them it is, file systems do not agree on; NOLCK is what NFS says without a lock manager.
    let lacking = [
        Errno::INVAL,
        Errno::NOSYS,
        Errno::NOTSUP,
        Errno::OPNOTSUPP,
        Errno::PERM,
        Errno::NOTTY,
        Errno::NOLCK,
    ];
    lacking
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Whether an error of a call for links or attributes says that a file system has no such thing. An input/output error does as
/// well: it is what some that pass requests on, such as mounts of rclone, say of all that they do not know.
pub fn is_lacking(error: &io::Error) -> bool {
    is_unsupported(error) || error.raw_os_error() == Some(Errno::IO.raw_os_error())
}

/// Whether an error of a call that gives a name says that the file system does not accept this name.
pub fn is_bad_name(error: &io::Error) -> bool {
    let bad = [Errno::INVAL, Errno::ILSEQ, Errno::NAMETOOLONG];
    bad.iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// What is said of a name that a file system does not take, whatever it says itself.
pub fn bad_name() -> io::Error {
    Errno::NAMETOOLONG.into()
}

/// Whether an extended attribute is more than the file system takes of one.
pub fn is_too_large(error: &io::Error) -> bool {
    // A full device says NOSPC too: what is written next says so again.
    let large = [Errno::NOSPC, Errno::TOOBIG, Errno::RANGE];
    large
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Does a call again that a signal interrupted.
pub(crate) fn again<T>(call: impl Fn() -> rustix::io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result.map_err(io::Error::from),
        }
    }
}
