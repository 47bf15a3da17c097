//! What is under a path, and which engine suits it.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use farline_spec::{Failure, FailureKind, FileEngine};
use farline_sys::file::{self, FileKind, OpenFlags};
use farline_sys::uring::Ring;

/// Names looked at in a folder for a file to try with.
const MOST_NAMES: usize = 64;

/// What a device under a path is like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Type of the file system (`ext4`, `tmpfs`).
    pub file_system: String,
    /// Which device: paths on one device have the same number.
    pub number: u64,
    /// Whether it is memory: no device to wait for or to bring data to.
    pub is_memory: bool,
    /// Whether files can be opened past the page cache; `None` where there was nothing to try it with.
    pub takes_direct: Option<bool>,
}

/// The device under an open folder or file; not one opened only to name it.
///
/// # Errors
/// The kernel's.
pub fn device_of(file: BorrowedFd<'_>) -> io::Result<Device> {
    let file_system = file::file_system(file)?;
    let facts = file::stat_fd(file)?;
    let is_memory = is_memory(&file_system);
    let takes_direct = match facts.kind {
        _ if is_memory => Some(false),
        FileKind::File => takes_direct(file::reopen(file, OpenFlags::READ | OpenFlags::DIRECT)),
        FileKind::Folder => try_in_folder(file),
        FileKind::Link | FileKind::Other => None,
    };
    Ok(Device {
        number: facts.device,
        is_memory,
        takes_direct,
        file_system,
    })
}

/// Whether a file system of this type keeps its files in memory alone.
pub(super) fn is_memory(file_system: &str) -> bool {
    matches!(file_system, "tmpfs" | "ramfs" | "hugetlbfs")
}

/// Whether it is best read and written past the page cache, where that can be: those on disks of this machine. Clients of
/// network file systems read ahead and write behind for themselves, through it.
fn is_on_disk(file_system: &str) -> bool {
    matches!(file_system, "ext4" | "xfs" | "f2fs" | "btrfs" | "overlay")
}

/// Tries a file without a name, or where none can be made the first file that is there.
fn try_in_folder(folder: BorrowedFd<'_>) -> Option<bool> {
    let nameless = OpenFlags::NAMELESS | OpenFlags::WRITE | OpenFlags::DIRECT;
    let made = takes_direct(file::open_at(Some(folder), b".", nameless, 0o600));
    made.or_else(|| {
        let names = file::list(folder).ok()?.take(MOST_NAMES).flatten();
        let mut files = names.filter(|listed| listed.kind == Some(FileKind::File));
        let flags = OpenFlags::READ | OpenFlags::NO_FOLLOW | OpenFlags::NO_WAIT | OpenFlags::DIRECT;
        files.find_map(|listed| takes_direct(file::open_at(Some(folder), &listed.name, flags, 0)))
    })
}

/// What an attempt to open tells; other errors than `EINVAL` tell nothing.
fn takes_direct(opened: io::Result<OwnedFd>) -> Option<bool> {
    match opened {
        Ok(_) => Some(true),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Some(false),
        Err(_) => None,
    }
}

/// What was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// The engine; never `Auto`.
    pub engine: FileEngine,
    /// Threads of their own; 0: the streams do it themselves.
    pub threads: u16,
    /// Nobody asked for this engine: a file that it does not suit, because it lies in the page cache already or on another
    /// device, is read or written through the page cache.
    pub is_auto: bool,
}

impl Choice {
    /// Whether what is read is what the files have.
    pub const fn reads_files(&self) -> bool {
        !matches!(self.engine, FileEngine::Null | FileEngine::Memory)
    }

    /// The same for a sending end whose files may go straight to streams: then they do, unless it was said how to read.
    #[must_use]
    pub fn straight(self, may: bool) -> Self {
        let is_better = may && self.is_auto && self.engine == FileEngine::Buffered && self.threads == 0;
        Self {
            engine: if is_better {
                FileEngine::Sendfile
            } else {
                self.engine
            },
            ..self
        }
    }
}

/// How to read from `device`, or write to it, for `streams` streams, unless the spec says (`asked`, `threads`). Past the page
/// cache where that can be: as fast as the device and at a tenth of the processor's time (`examples/engine_speed`).
///
/// # Errors
/// [`FailureKind::Spec`] for an engine that the device or the kernel has not.
pub fn choose(
    asked: FileEngine,
    threads: Option<u16>,
    device: &Device,
    streams: u16,
) -> Result<Choice, Failure> {
    let engine = match asked {
        FileEngine::Auto if device.takes_direct != Some(true) || !is_on_disk(&device.file_system) => {
            FileEngine::Buffered
        }
        FileEngine::Auto if has_uring().is_ok() => FileEngine::Uring,
        FileEngine::Auto => FileEngine::Direct,
        FileEngine::Direct | FileEngine::Uring if device.takes_direct == Some(false) => {
            let reason = format!("{} keeps its files only in the page cache", device.file_system);
            return Err(refused(asked, &reason));
        }
        FileEngine::Uring => {
            has_uring().map_err(|error| refused(asked, &format!("no io_uring here: {error}")))?;
            asked
        }
        other => other,
    };
    let own_threads = match engine {
        // One thread keeps a device busy.
        FileEngine::Uring => 1,
        // A request at a time on each: as many as it takes to have one wait at the device while another is handed on.
        FileEngine::Direct => streams.clamp(2, 4),
        _ => 0,
    };
    Ok(Choice {
        engine,
        threads: threads.unwrap_or(own_threads),
        is_auto: asked == FileEngine::Auto,
    })
}

fn has_uring() -> io::Result<()> {
    Ring::<OwnedFd>::new(1).map(drop)
}

fn refused(asked: FileEngine, reason: &str) -> Failure {
    let line = format!("engine {}: {reason}; use auto or buffered", asked.word());
    Failure::new(FailureKind::Spec, line)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::*;

    fn device(file_system: &str, takes_direct: Option<bool>) -> Device {
        Device {
            file_system: file_system.to_owned(),
            number: 1,
            is_memory: false,
            takes_direct,
        }
    }

    #[test]
    fn what_is_asked_for_is_chosen_or_refused_and_never_another() {
        let real = [FileEngine::Direct, FileEngine::Uring];
        for asked in real {
            let failure = choose(asked, None, &device("somefs", Some(false)), 1).unwrap_err();
            assert_eq!(failure.kind, FailureKind::Spec);
            assert!(failure.message.contains(asked.word()) && failure.message.contains("somefs"));
        }
        for asked in [
            FileEngine::Buffered,
            FileEngine::Null,
            FileEngine::Memory,
            FileEngine::Direct,
        ] {
            let chosen = choose(asked, Some(7), &device("somefs", None), 1).unwrap();
            assert_eq!((chosen.engine, chosen.threads, chosen.is_auto), (asked, 7, false));
        }
    }

    #[test]
    fn left_alone_it_goes_past_the_page_cache_only_on_disks_where_that_was_tried() {
        let chosen = |name, takes| choose(FileEngine::Auto, None, &device(name, takes), 4).unwrap();
        for (name, takes) in [
            ("ext4", None),
            ("ext4", Some(false)),
            ("tmpfs", Some(true)),
            ("nfs", Some(true)),
        ] {
            let chosen = chosen(name, takes);
            assert_eq!((chosen.engine, chosen.threads), (FileEngine::Buffered, 0));
        }
        let chosen = chosen("xfs", Some(true));
        assert!([FileEngine::Uring, FileEngine::Direct].contains(&chosen.engine));
        assert!(chosen.is_auto && chosen.threads > 0);
    }

    #[test]
    fn files_go_straight_where_they_may_unless_it_was_said_how_to_read() {
        let memory = device("tmpfs", Some(false));
        let engine = |asked, threads, may| {
            let chosen = choose(asked, threads, &memory, 4).unwrap();
            chosen.straight(may).engine
        };
        assert_eq!(engine(FileEngine::Auto, None, true), FileEngine::Sendfile);
        assert_eq!(engine(FileEngine::Auto, None, false), FileEngine::Buffered);
        assert_eq!(engine(FileEngine::Auto, Some(2), true), FileEngine::Buffered);
        assert_eq!(engine(FileEngine::Buffered, None, true), FileEngine::Buffered);
        assert_eq!(engine(FileEngine::Null, None, true), FileEngine::Null);
    }

    #[test]
    fn a_device_is_the_same_for_a_folder_and_a_file_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "content").unwrap();
        let in_folder = device_of(File::open(folder.path()).unwrap().as_fd()).unwrap();
        let of_file = device_of(File::open(path).unwrap().as_fd()).unwrap();
        assert_eq!(in_folder, of_file);
        assert_eq!(in_folder.is_memory, in_folder.file_system == "tmpfs");
        let proc = device_of(File::open("/proc/self/status").unwrap().as_fd()).unwrap();
        assert_eq!((proc.takes_direct, proc.is_memory), (Some(false), false));
    }

    #[test]
    fn a_folder_in_which_nothing_can_be_made_is_tried_by_what_is_there() {
        let proc = File::open("/proc/self").unwrap();
        assert_eq!(try_in_folder(proc.as_fd()), Some(false));
        let names = file::list(proc.as_fd()).unwrap().count();
        assert!(names > 0, "whoever lists it next finds all of it");
    }
}
