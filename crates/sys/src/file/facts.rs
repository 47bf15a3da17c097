//! What is known of a file without reading it, and what its file system is.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, CWD, FileType, Statx, StatxFlags, StatxTimestamp};

use super::again;

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A device, a pipe, a socket.
    Other,
}

impl FileKind {
    /// `None` where the file system does not say.
    pub(super) fn of(found: FileType) -> Option<Self> {
        match found {
            FileType::Unknown => None,
            FileType::RegularFile => Some(Self::File),
            FileType::Directory => Some(Self::Folder),
            FileType::Symlink => Some(Self::Link),
            _ => Some(Self::Other),
        }
    }
}

/// What statx(2) says of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFacts {
    /// What it is.
    pub kind: FileKind,
    /// Permission bits, the lowest twelve.
    pub mode: u32,
    /// Length.
    pub bytes: u64,
    /// What it takes on the device, in units of 512 bytes.
    pub blocks_512: u64,
    /// Last change of its content, nanoseconds since 1970.
    pub mtime_ns: i64,
    /// Last change of anything about it, nanoseconds since 1970.
    pub ctime_ns: i64,
    /// Device that it is on.
    pub device: u64,
    /// Number on that device.
    pub inode: u64,
    /// Names that it has.
    pub links: u64,
    /// Number of the user that it belongs to.
    pub user: u32,
    /// Number of its group.
    pub group: u32,
}

/// What `path` from the folder `dir` (where the process is, if absent) is; of a link at its end: what it leads to if
/// `follow`, itself otherwise. Not held below the folder.
///
/// # Errors
/// The kernel's.
pub fn stat_at(dir: Option<BorrowedFd<'_>>, path: &[u8], follow: bool) -> io::Result<FileFacts> {
    let flags = if follow {
        AtFlags::empty()
    } else {
        AtFlags::SYMLINK_NOFOLLOW
    };
    stat(dir.unwrap_or(CWD), path, flags)
}

/// What an open file is, also one opened only to name it.
///
/// # Errors
/// The kernel's.
pub fn stat_fd(file: BorrowedFd<'_>) -> io::Result<FileFacts> {
    stat(file, b"", AtFlags::EMPTY_PATH)
}

/// As [`stat_fd`], and a file system that is elsewhere is asked anew.
///
/// # Errors
/// The kernel's.
pub fn stat_fd_anew(file: BorrowedFd<'_>) -> io::Result<FileFacts> {
    stat(file, b"", AtFlags::EMPTY_PATH.union(AtFlags::STATX_FORCE_SYNC))
}

fn stat(dir: BorrowedFd<'_>, path: &[u8], flags: AtFlags) -> io::Result<FileFacts> {
    let flags = flags.union(AtFlags::NO_AUTOMOUNT);
    again(|| rustix::fs::statx(dir, path, flags, StatxFlags::BASIC_STATS)).map(|found| facts(&found))
}

fn facts(found: &Statx) -> FileFacts {
    let kind = FileType::from_raw_mode(found.stx_mode.into());
    FileFacts {
        kind: FileKind::of(kind).unwrap_or(FileKind::Other),
        mode: u32::from(found.stx_mode) & 0o7777,
        bytes: found.stx_size,
        blocks_512: found.stx_blocks,
        mtime_ns: nanoseconds(&found.stx_mtime),
        ctime_ns: nanoseconds(&found.stx_ctime),
        device: rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor),
        inode: found.stx_ino,
        links: found.stx_nlink.into(),
        user: found.stx_uid,
        group: found.stx_gid,
    }
}

/// Times that 64 bits of nanoseconds cannot say become the nearest that they can.
fn nanoseconds(time: &StatxTimestamp) -> i64 {
    time.tv_sec
        .saturating_mul(1_000_000_000)
        .saturating_add(time.tv_nsec.into())
}

/// Of linux/magic.h and the file systems' own headers; ext2, ext3 and ext4 have one number.
const FILE_SYSTEMS: [(u32, &str); 42] = [
    (0x0000_ef53, "ext4"),
    (0x0102_1994, "tmpfs"),
    (0x8584_58f6, "ramfs"),
    (0x9584_58f6, "hugetlbfs"),
    (0x5846_5342, "xfs"),
    (0x9123_683e, "btrfs"),
    (0x2fc1_2fc1, "zfs"),
    (0xca45_1a4e, "bcachefs"),
    (0xf2f5_2010, "f2fs"),
    (0x794c_7630, "overlay"),
    (0x6573_5546, "fuse"),
    (0x0000_6969, "nfs"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb2"),
    (0x0102_1997, "9p"),
    (0x0bd0_0bd0, "lustre"),
    (0x4750_4653, "gpfs"),
    (0x00c3_6400, "ceph"),
    (0x1983_0326, "beegfs"),
    (0x2003_0528, "orangefs"),
    (0x5346_414f, "afs"),
    (0x0000_4d44, "vfat"),
    (0x2011_bab0, "exfat"),
    (0x7366_746e, "ntfs3"),
    (0x7371_7368, "squashfs"),
    (0xe0f5_e1e2, "erofs"),
    (0x0000_9fa0, "proc"),
    (0x6265_6572, "sysfs"),
    (0x0027_e0eb, "cgroup"),
    (0x6367_7270, "cgroup2"),
    (0x6462_6720, "debugfs"),
    (0x7472_6163, "tracefs"),
    (0x7363_6673, "securityfs"),
    (0x6265_6570, "configfs"),
    (0xf97c_ff8c, "selinuxfs"),
    (0xcafe_4a11, "bpf"),
    (0x6165_676c, "pstore"),
    (0x4249_4e4d, "binfmt_misc"),
    (0x6573_5543, "fusectl"),
    (0x1980_0202, "mqueue"),
    (0x6e66_7364, "nfsd"),
    (0x0765_5821, "resctrl"),
];

/// Type of the file system that an open file is on (fstatfs): `ext4`, `tmpfs`; of one unknown here its number, `0x…`.
///
/// # Errors
/// The kernel's.
pub fn file_system(file: BorrowedFd<'_>) -> io::Result<String> {
    let number = again(|| rustix::fs::fstatfs(file))?.f_type as u32;
    let known = FILE_SYSTEMS.iter().find(|(magic, _)| *magic == number);
    Ok(known.map_or_else(|| format!("{number:#x}"), |(_, name)| (*name).to_owned()))
}
