//! What this end keeps of one entry under way, beside what the machine knows of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::found::Found;
use super::straight::Place;
use crate::engine::OpenFile;

/// One entry under way.
#[derive(Debug)]
pub(super) struct Sending {
    /// Number of the entry.
    pub(super) number: u64,
    /// What it is.
    pub(super) found: Found,
    /// Number of the file, announced before, that it is one more name of.
    pub(super) link_to: Option<u64>,
    open: Mutex<Option<Opened>>,
    /// What it is now, where it is not what it was.
    again: Mutex<Option<Found>>,
}

/// The file, while chunks of it are read, or go straight to streams.
#[derive(Debug)]
pub(super) struct Opened {
    /// It.
    pub(super) file: Arc<OpenFile>,
    /// Its place among the files that go straight to streams, if it has one.
    pub(super) place: Option<Place>,
}

/// Neighbouring chunks that one reader takes.
#[derive(Debug)]
pub(super) struct Taken {
    /// The file.
    pub(super) file: Arc<Sending>,
    /// The file, open.
    pub(super) open: Arc<OpenFile>,
    /// Where the next chunk begins.
    pub(super) offset: u64,
    /// Where the last one ends.
    pub(super) end: u64,
    /// It is a hole: nothing to read or send.
    pub(super) is_hole: bool,
    /// It was read before and counts no more.
    pub(super) is_repeat: bool,
    /// Its bytes are not read here.
    pub(super) is_straight: bool,
}

impl Sending {
    /// An entry just announced.
    pub(super) const fn new(number: u64, found: Found, link_to: Option<u64>) -> Self {
        Self {
            number,
            found,
            link_to,
            open: Mutex::new(None),
            again: Mutex::new(None),
        }
    }

    /// The file, if it is open. Held while it is opened, and while holes are looked for.
    pub(super) fn opened(&self) -> MutexGuard<'_, Option<Opened>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing of it is read any more; whoever is at it finishes.
    pub(super) fn close(&self) {
        *self.opened() = None;
    }

    /// Keeps what the file is now.
    pub(super) fn is_now(&self, found: Found) {
        *self.again.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
    }

    /// What the file is now, once.
    pub(super) fn take_again(&self) -> Option<Found> {
        self.again.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
