//! What this end keeps of an entry that is under way: what was said of it, and what there is of it on disk. What it is, and what
//! of it is proved, the machine knows.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::journal::Source;
use super::owner::Belongs;
use super::partial::Partial;
use crate::engine::OpenFile;
use crate::message::Xattr;

/// How often a wait looks whether the copy is still wanted.
pub const TICK: Duration = Duration::from_millis(50);

/// A file, or a further name of one, that is to come.
#[derive(Debug)]
pub struct Entry {
    /// Its number.
    pub number: u64,
    /// Where it goes and what it is known by.
    pub source: Source,
    /// Path of the file that this is a further name of.
    pub link_to: Option<Vec<u8>>,
    /// Permission bits.
    pub mode: u32,
    /// To whom it is to belong.
    pub belongs: Belongs,
    /// Extended attributes.
    pub xattrs: Vec<Xattr>,
    /// Whether it takes the place of what has its name.
    pub replaces: bool,
    store: Mutex<Store>,
}

/// What there is of a file.
#[derive(Debug, Default)]
pub struct Store {
    /// Where a file grows that comes in parts; absent where nothing is kept.
    pub partial: Option<Arc<Partial>>,
    /// The same, as the engine writes to it.
    pub file: Option<Arc<OpenFile>>,
    /// A file that came in a pack and waits for its group.
    pub small: Option<Small>,
    /// What there was of it went: nothing of it is made any more.
    pub is_over: bool,
}

/// A small file that is written and has no name.
#[derive(Debug)]
pub struct Small {
    /// The file.
    pub file: OwnedFd,
    /// Its name in the staging folder, where it could not be made without one.
    pub staged: Option<Vec<u8>>,
}

impl Entry {
    /// An entry of which nothing has come.
    pub fn new(number: u64, source: Source, mode: u32, xattrs: Vec<Xattr>) -> Self {
        Self {
            number,
            source,
            link_to: None,
            mode,
            belongs: Belongs::default(),
            xattrs,
            replaces: false,
            store: Mutex::default(),
        }
    }

    /// Bytes that its path and attributes take.
    pub fn facts_bytes(&self) -> usize {
        let xattrs = self
            .xattrs
            .iter()
            .map(|xattr| xattr.name.len() + xattr.value.len());
        let further = self.link_to.as_ref().map_or(0, Vec::len);
        self.source.path.len() + further + xattrs.sum::<usize>()
    }

    /// What there is of it.
    pub fn store(&self) -> MutexGuard<'_, Store> {
        self.store
            .lock()
            .expect("a thread of the copy panicked while it held a file")
    }

    /// Its partial, if it has one.
    pub fn partial(&self) -> Option<Arc<Partial>> {
        self.store().partial.clone()
    }

    /// Whether one stream has found another one writing to the file.
    pub fn is_shared(&self) -> bool {
        let store = self.store();
        store.file.as_ref().is_some_and(|file| file.is_shared())
    }
}
