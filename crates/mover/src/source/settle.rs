//! What keeps a file from being sent as it was announced, and the words for it.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use farline_proto::copy::sender::{CHANGED, Loss};
use farline_spec::FileKind;
use farline_sys::file::{self, FileFacts};
use tracing::debug;

use super::found::{Found, What};
use super::origin::{is_another, why};
use super::sending::Sending;
use super::shared::{Shared, one_line};
use super::steady::{self, NO_FILE};
use crate::path_text::Shown;

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
            Self::Changed => CHANGED.to_owned(),
            Self::Beyond(reason) => one_line(reason),
            Self::Kernel(error) if is_gone(error) => VANISHED.to_owned(),
            Self::Kernel(error) => why(error),
        }
    }

    fn loss(&self) -> Loss {
        match self {
            Self::Changed => Loss::Changed,
            Self::Beyond(_) | Self::Kernel(_) => Loss::For(self.reason()),
        }
    }
}

/// What a file that was there before and is not now is said to have done.
pub(super) const VANISHED: &str = "disappeared while it was copied";

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

impl Shared {
    /// `file` cannot be sent as it was announced: it is looked at once more and announced as it is then, or fails by name.
    pub(super) fn lost(&self, file: &Arc<Sending>, trouble: &Trouble) {
        let now_ns = self.driver.now_ns();
        let was_under_way = self.ask(|machine| {
            let was_under_way = machine.is_under_way(file.number);
            machine.lose(file.number, trouble.loss(), now_ns);
            was_under_way
        });
        file.close();
        if was_under_way {
            debug!(
                entry = %Shown(&file.found.path),
                reason = trouble.reason(),
                errno = trouble.errno(),
                "entry cannot be read as announced"
            );
        }
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
        let flags = file::OpenFlags::PATH | file::OpenFlags::NO_FOLLOW;
        let opened = origin.open_at(&self.root, &found.path, flags, false)?;
        file::stat_fd(opened.as_fd())
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
