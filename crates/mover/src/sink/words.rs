//! Errors in words, and the lines that a report ends with.

use std::io;
use std::sync::Mutex;

use farline_spec::{Failure, FailureKind, kernel_words};
use tracing::debug;

use crate::path_text::{self, Shown, one_line};
use crate::root::is_link_loop;

/// Problems that are said; of the others only how many they are.
const MOST_PROBLEMS: usize = 100;

/// What went wrong besides files, a line each: the first hundred, and how many there were.
#[derive(Debug, Default)]
pub struct Problems(Mutex<Lines>);

#[derive(Debug, Default)]
struct Lines {
    lines: Vec<String>,
    count: u64,
}

impl Problems {
    /// Something besides a file's content went wrong at `path`: said at the end.
    pub fn add(&self, path: &[u8], what: &str) {
        debug!(entry = %Shown(path), reason = what, "attribute not set");
        let mut problems = self.0.lock().expect(POISONED);
        problems.count += 1;
        if problems.lines.len() < MOST_PROBLEMS {
            let line = format!("{}: {what}", path_text::to_text(path));
            problems.lines.push(one_line(&line));
        }
    }

    /// What [`Self::add`] was told.
    pub fn take(&self) -> Vec<String> {
        let mut problems = self.0.lock().expect(POISONED);
        let mut lines = std::mem::take(&mut problems.lines);
        let more = problems.count - lines.len() as u64;
        if more > 0 {
            lines.push(format!("{more} more problems like these"));
        }
        lines
    }
}

/// How the failure of a destination begins until its name is put there.
pub const NO_MORE: &str = "the destination is full: ";

/// Passes on an error after which no file can be written.
///
/// # Errors
/// [`FailureKind::System`]: no space, no quota, a file system that takes no writes.
pub fn ends_all(error: &io::Error) -> Result<(), Failure> {
    use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    match error.kind() {
        StorageFull | QuotaExceeded | ReadOnlyFilesystem => Err(Failure::new(
            FailureKind::System,
            format!("{NO_MORE}{}", kernel_words(error)),
        )),
        _ => Ok(()),
    }
}

/// An error of the kernel in words, as the reason of one name.
pub fn in_words(error: &io::Error) -> String {
    use io::ErrorKind::{CrossesDevices, InvalidFilename, NotADirectory, NotSeekable, PermissionDenied};
    match error.kind() {
        CrossesDevices => "leads outside the destination, or to another file system".to_owned(),
        NotADirectory => "a file with this name is in the way".to_owned(),
        PermissionDenied => "permission denied at the destination".to_owned(),
        InvalidFilename => "the file system does not accept this name".to_owned(),
        NotSeekable => {
            "the file system takes a file only from its start to its end; rclone takes it in any order \
                        if mounted with --vfs-cache-mode writes"
                .to_owned()
        }
        _ if is_link_loop(error) => {
            "a symbolic link is in the way at the destination; -K follows links to folders".to_owned()
        }
        _ => kernel_words(error).to_lowercase(),
    }
}

/// A protocol failure.
pub fn broken(line: impl Into<String>) -> Failure {
    Failure::new(FailureKind::Protocol, line)
}

pub const POISONED: &str = "a thread of the copy panicked while it held shared state";
