//! What of the names that the sources have is remembered until the end.

use std::sync::{Mutex, MutexGuard};

use farline_proto::copy::receiver::Seen;

use super::words::POISONED;

/// The names of one copy, for all threads.
#[derive(Debug)]
pub struct Remembered {
    seen: Mutex<Seen>,
    /// Names that the sources have not are deleted.
    deletes: bool,
}

impl Remembered {
    /// No name yet; `deletes`: those that are none of the sources' are deleted in the end.
    pub fn new(deletes: bool) -> Self {
        Self {
            seen: Mutex::default(),
            deletes,
        }
    }

    /// What of the entries is remembered.
    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().expect(POISONED)
    }

    /// The sources have a name that could not be made here: what has it here, and what is below, is not deleted.
    pub fn protect(&self, path: &[u8]) {
        if self.deletes {
            self.seen().keep(path);
        }
    }
}
