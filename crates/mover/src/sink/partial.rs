//! A file of the staging folder that is to become one of the destination.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;

use farline_proto::copy::journal::{SHARED_ID, Source};
use farline_sys::file;

use super::able::synced;

/// A file that grows, known by its number and name.
#[derive(Debug)]
pub struct Partial {
    id: u64,
    name: Vec<u8>,
    source: Source,
    file: OwnedFd,
    /// Whether the device refused what was written: the kernel says so once only.
    broken: Mutex<bool>,
}

impl Partial {
    /// A partial that is open.
    pub fn new(id: u64, name: Vec<u8>, source: Source, file: OwnedFd) -> Self {
        Self {
            id,
            name,
            source,
            file,
            broken: Mutex::new(false),
        }
    }

    /// Brings its content to the device. Once that failed it fails for everyone.
    ///
    /// # Errors
    /// The kernel's.
    pub fn sync(&self) -> io::Result<()> {
        let mut broken = self.broken.lock().expect(POISONED);
        if *broken {
            return Err(io::Error::other("the device reported an earlier write error"));
        }
        synced(file::sync_data(self.fd())).inspect_err(|_| *broken = true)
    }

    /// Whether the device refused something of it.
    pub fn is_broken(&self) -> bool {
        *self.broken.lock().expect(POISONED)
    }

    /// Its number.
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// Its name in the staging folder.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Whether other sessions may write to it.
    pub const fn is_shared(&self) -> bool {
        self.id & SHARED_ID != 0
    }

    /// The file it is of.
    pub const fn source(&self) -> &Source {
        &self.source
    }

    /// The file, open to read and write.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

const POISONED: &str = "a thread of the copy panicked while it held a file";
