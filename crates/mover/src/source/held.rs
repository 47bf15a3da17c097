//! Files whose length only reading them tells: read whole when they are found, and kept in memory until they are sent.
//!
//! The kernel makes the content of `/proc` and its like when it is read. Their length is said to be 0, or a page; another
//! read may give something else. What was read first is what is announced and sent.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use farline_sys::file::{self, FileFacts, OpenFlags};

use super::run::PAUSE;

/// Longest such file.
const MOST_BYTES: usize = 64 << 20;
/// Bytes of them in memory at a time, unless one alone has more.
const MOST_HELD_BYTES: usize = 128 << 20;
/// Such files in memory at a time: each is an open descriptor.
const MOST_HELD: usize = 128;
/// Bytes read at a time.
const READ_BYTES: usize = 64 * 1024;

/// File systems whose files have no length before they are read.
const MADE_UP: [&str; 16] = [
    "proc",
    "sysfs",
    "cgroup",
    "cgroup2",
    "debugfs",
    "tracefs",
    "securityfs",
    "configfs",
    "selinuxfs",
    "bpf",
    "pstore",
    "binfmt_misc",
    "fusectl",
    "mqueue",
    "nfsd",
    "resctrl",
];
/// File systems that may say a length of 0 of files that have content: programs behind FUSE do, and who knows of others.
const MAY_BE_WRONG: [&str; 1] = ["fuse"];

/// What the lengths of files on one file system are worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lengths {
    /// They are right.
    Right,
    /// 0 may be anything.
    ZeroIsUnknown,
    /// None says anything.
    Unknown,
}

impl Lengths {
    /// Those of the file system that `file` is on; a name says enough of it.
    pub(super) fn of(file: &OwnedFd) -> io::Result<Self> {
        let name = file::file_system(file.as_fd())?;
        Ok(if MADE_UP.contains(&name.as_str()) {
            Self::Unknown
        } else if MAY_BE_WRONG.contains(&name.as_str()) || name.starts_with("0x") {
            Self::ZeroIsUnknown
        } else {
            Self::Right
        })
    }

    /// Whether a file of so many bytes has to be read to know how long it is.
    pub(super) const fn are_unknown(self, bytes: u64) -> bool {
        match self {
            Self::Right => false,
            Self::ZeroIsUnknown => bytes == 0,
            Self::Unknown => true,
        }
    }
}

/// How much is held.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// Files and bytes.
    held: Mutex<(usize, usize)>,
    less: Condvar,
}

/// The content of one file.
#[derive(Debug)]
pub(super) struct Held {
    file: OwnedFd,
    bytes: usize,
    room: Arc<Room>,
}

impl Room {
    /// Waits until there is room for a file of `bytes` bytes, and takes it; false when the copy is over.
    fn take(&self, bytes: usize, is_over: impl Fn() -> bool) -> bool {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        while held.0 > 0 && (held.0 >= MOST_HELD || held.1 + bytes > MOST_HELD_BYTES) {
            if is_over() {
                return false;
            }
            let waited = self.less.wait_timeout(held, PAUSE);
            held = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        held.0 += 1;
        held.1 += bytes;
        true
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut held = self.room.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.0 = held.0.saturating_sub(1);
        held.1 = held.1.saturating_sub(self.bytes);
        drop(held);
        self.room.less.notify_all();
    }
}

impl Held {
    /// Reads all of `file`, of which `facts` are known, and keeps it; with the facts of what is kept. `None` when the copy is
    /// over. Waits for room: whoever has found others hands them on before.
    ///
    /// # Errors
    /// The kernel's; `FileTooLarge` for more than 64 MiB.
    pub(super) fn read(
        file: &OwnedFd,
        facts: &FileFacts,
        room: &Arc<Room>,
        is_over: impl Fn() -> bool,
    ) -> io::Result<Option<(Self, FileFacts)>> {
        let content = all_of(file, &is_over)?;
        if !room.take(content.len(), is_over) {
            return Ok(None);
        }
        let kept = Self {
            file: file::in_memory()?,
            bytes: content.len(),
            room: Arc::clone(room),
        };
        file::write_all_at(kept.file.as_fd(), &content, 0)?;
        file::set_times(kept.file.as_fd(), facts.mtime_ns)?;
        let own = file::stat_fd(kept.file.as_fd())?;
        // What it is known by is what is read later; what is told of it is the file's own.
        let facts = FileFacts {
            mode: facts.mode,
            links: 1,
            user: facts.user,
            group: facts.group,
            ..own
        };
        Ok(Some((kept, facts)))
    }

    /// Opens it once more.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn open(&self) -> io::Result<OwnedFd> {
        file::reopen(self.file.as_fd(), OpenFlags::READ)
    }
}

fn all_of(file: &OwnedFd, is_over: impl Fn() -> bool) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    loop {
        let at = content.len();
        content.resize(at + READ_BYTES, 0);
        // Some give one line at a time: it has ended when nothing more comes.
        let read = file::read_once_at(file.as_fd(), &mut content[at..], at as u64)?;
        content.truncate(at + read);
        if read == 0 || is_over() {
            return Ok(content);
        }
        if content.len() > MOST_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_proc_says_is_read_whole_and_stays_what_it_was() {
        let file = file::open_at(None, b"/proc/version", OpenFlags::READ, 0).unwrap();
        let facts = file::stat_fd(file.as_fd()).unwrap();
        assert_eq!(facts.bytes, 0);
        let lengths = Lengths::of(&file).unwrap();
        assert!(lengths.are_unknown(0) && lengths.are_unknown(4096));
        let room = Arc::new(Room::default());
        let (held, own) = Held::read(&file, &facts, &room, || false).unwrap().unwrap();
        let content = std::fs::read("/proc/version").unwrap();
        assert_eq!((own.bytes, own.mtime_ns), (content.len() as u64, facts.mtime_ns));
        let opened = held.open().unwrap();
        assert_eq!(all_of(&opened, || false).unwrap(), content);
        assert_eq!(file::stat_fd(opened.as_fd()).unwrap().ctime_ns, own.ctime_ns);
        assert_eq!(*room.held.lock().unwrap(), (1, content.len()));
        drop(held);
        assert_eq!(*room.held.lock().unwrap(), (0, 0));
    }

    #[test]
    fn files_on_a_disk_have_the_length_that_they_have() {
        let file = OwnedFd::from(tempfile::tempfile().unwrap());
        assert!(!Lengths::of(&file).unwrap().are_unknown(0));
    }
}
