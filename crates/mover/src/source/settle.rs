//! How entries end: settled as the other end says, or lost because their source is not what it was.

use std::io;
use std::sync::Arc;

use farline_spec::{FileKind, FileStatus, ReceiptLine};
use farline_sys::file::{self, FileFacts};
use tracing::debug;

use super::found::{Found, MOST_TRIES, What};
use super::origin::{is_another, why};
use super::sending::{Phase, Sending};
use super::shared::{CatalogueUpdate, Shared, one_line};
use super::steady::{self, NO_FILE};
use crate::path_text::{Shown, to_text};
use crate::sum::{Sum, note_sum};

/// What keeps a file from being read.
#[derive(Debug)]
pub(super) enum Trouble {
    /// It is not what was announced any more.
    Changed,
    /// It is given up for this reason.
    Beyond(String),
    /// The kernel says so.
    Kernel(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        if is_another(&error) {
            Self::Changed
        } else {
            Self::Kernel(error)
        }
    }
}

impl Trouble {
    /// The kernel's number, where it was the kernel.
    fn errno(&self) -> Option<i32> {
        match self {
            Self::Kernel(error) => error.raw_os_error(),
            Self::Changed | Self::Beyond(_) => None,
        }
    }

    /// One line for a person.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Changed => "changed while it was read".to_owned(),
            Self::Beyond(reason) => one_line(reason),
            Self::Kernel(error) if is_gone(error) => VANISHED.to_owned(),
            Self::Kernel(error) => why(error),
        }
    }
}

/// What a file that was there before and is not now is said to have done.
pub(super) const VANISHED: &str = "disappeared while it was copied";

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

impl Shared {
    /// `file` has become what `status` says. Whoever calls has set its phase to `Over`, and takes it from the table.
    pub(super) fn settled(
        &self,
        file: &Sending,
        status: FileStatus,
        reason: Option<&str>,
        hash: Option<Sum>,
    ) {
        let (own_hash, credited, resumed_bytes) = {
            let state = file.lock();
            (state.hash, state.credited_bytes, state.resumed_bytes)
        };
        self.note_removal(file, status);
        let bytes = file.found.bytes();
        if status == FileStatus::Failed {
            self.gauges.failed_files.add(1);
            self.gauges.settled_bytes.take(credited);
        } else {
            self.gauges.settled_files.add(1);
            self.gauges.settled_bytes.add(bytes.saturating_sub(credited));
        }
        let is_content = file.has_content();
        let hash = hash
            .or(own_hash)
            .filter(|_| is_content && status != FileStatus::Failed);
        let mut line = ReceiptLine {
            path: to_text(&file.found.path),
            kind: kind_of(file),
            status,
            bytes: if is_content { bytes } else { 0 },
            resumed_bytes: if status == FileStatus::Copied {
                resumed_bytes
            } else {
                0
            },
            blake3: None,
            xxh3_tree: None,
            hash: None,
            reason: reason.map(one_line),
        };
        note_sum(&mut line, hash);
        self.note(&line);
    }

    /// `file` cannot be sent as it was announced: it is looked at once more and announced as it is then, or fails by name.
    pub(super) fn lost(&self, file: &Arc<Sending>, trouble: &Trouble) {
        let is_unread = {
            let mut state = file.lock();
            if state.phase == Phase::Over {
                return;
            }
            state.phase = Phase::Over;
            state.chunks = None;
            state.is_unread
        };
        debug!(
            entry = %Shown(&file.found.path),
            reason = trouble.reason(),
            errno = trouble.errno(),
            "entry cannot be read as announced"
        );
        self.supply.handed_out(file);
        let is_stale = matches!(trouble, Trouble::Changed) && file.found.tries < MOST_TRIES;
        // While it counts as unread the end of the catalogue has not been said.
        if is_stale && is_unread {
            self.second_looks.add(file);
        } else {
            self.give_up(file, &trouble.reason());
        }
    }

    /// `file`, which was lost, fails by name.
    pub(super) fn give_up(&self, file: &Sending, reason: &str) {
        self.settled(file, FileStatus::Failed, Some(reason), None);
        self.say_lost(file, reason, None);
    }

    /// `file`, which was lost, is announced as it is now.
    pub(super) fn announce_again(&self, file: &Sending, found: Found) {
        self.count_again(file, &found);
        self.say_lost(file, &Trouble::Changed.reason(), Some(found));
    }

    fn say_lost(&self, file: &Sending, reason: &str, again: Option<Found>) {
        let (is_unread, is_answered) = {
            let mut state = file.lock();
            (state.take_unread(), state.is_answered)
        };
        self.say(CatalogueUpdate::Lost {
            number: file.number,
            reason: reason.to_owned(),
            again,
        });
        if !is_answered {
            // An answer that comes later finds nothing and counts no more: its place in the window is given back now.
            self.table.answered();
            self.outbox.ring();
        }
        self.all_read(usize::from(is_unread));
    }

    /// The file as it is now.
    ///
    /// # Errors
    /// Why it cannot be announced.
    pub(super) fn look_again(&self, found: &Found) -> Result<Found, Trouble> {
        let facts = self.facts_of(found)?;
        if facts.kind != file::FileKind::File {
            return Err(Trouble::Beyond(NO_FILE.to_owned()));
        }
        let mut fresh = Found {
            origin: found.origin,
            is_through_link: found.is_through_link,
            tries: found.tries + 1,
            apart_from: None,
            path: found.path.clone(),
            what: What::File(None),
            facts,
            seen_ns: steady::now_ns(),
            held: None,
            xattrs: Vec::new(),
        };
        self.look_inside(&mut fresh)?;
        Ok(fresh)
    }

    fn facts_of(&self, found: &Found) -> io::Result<FileFacts> {
        let origin = &self.origins[found.origin as usize];
        if found.is_through_link {
            return origin.stat_through(&self.root, &found.path);
        }
        use std::os::fd::AsFd;
        let flags = file::OpenFlags::PATH | file::OpenFlags::NO_FOLLOW;
        let opened = origin.open_at(&self.root, &found.path, flags, false)?;
        file::stat_fd(opened.as_fd())
    }

    /// What is found and settled is `found` from now on instead of `file`.
    fn count_again(&self, file: &Sending, found: &Found) {
        self.gauges.found_bytes.take(file.found.bytes());
        self.gauges.found_bytes.add(found.bytes());
        let credited = std::mem::take(&mut file.lock().credited_bytes);
        self.gauges.settled_bytes.take(credited);
    }
}

/// The word of a receipt for what an entry is.
pub(super) const fn kind_of(file: &Sending) -> FileKind {
    match &file.found.what {
        What::File(_) if file.link_to.is_some() => FileKind::HardLink,
        What::File(_) => FileKind::File,
        What::Folder => FileKind::Folder,
        What::Link(_) => FileKind::Link,
    }
}
