//! The journal's file: room for it is reserved ahead, so that a full disk still takes what was proved until it was full.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use farline_sys::file;

use super::super::able::synced;

/// Room that is reserved behind what is written: more than one flush writes.
const ROOM_BYTES: u64 = 4 << 20;

/// A file that grows by whole groups of records.
#[derive(Debug)]
pub struct Pages {
    file: File,
    /// What is written and whole.
    good_bytes: u64,
    /// Up to where room was asked for.
    reserved_bytes: u64,
}

impl Pages {
    /// Goes on at the end of `file`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new(file: File) -> io::Result<Self> {
        let good_bytes = file.metadata()?.len();
        let mut pages = Self {
            file,
            good_bytes,
            reserved_bytes: good_bytes,
        };
        pages.reserve(0);
        Ok(pages)
    }

    /// Writes `records` behind the others; all of them or none.
    ///
    /// # Errors
    /// The kernel's.
    pub fn append(&mut self, records: &[u8]) -> io::Result<()> {
        self.reserve(records.len() as u64);
        let written = file::write_all_at(self.file.as_fd(), records, self.good_bytes);
        match written {
            Ok(()) => self.good_bytes += records.len() as u64,
            // What matters is why it could not be written; a torn end is not believed.
            Err(_) => drop(file::set_length(self.file.as_fd(), self.good_bytes)),
        }
        written
    }

    /// Brings what is written to the device.
    ///
    /// # Errors
    /// The kernel's.
    pub fn sync(&self) -> io::Result<()> {
        synced(file::sync_data(self.file.as_fd()))
    }

    /// Gives back the room behind what is written. Where it cannot be done it stays taken.
    pub fn give_back(&mut self) {
        if file::set_length(self.file.as_fd(), self.good_bytes).is_ok() {
            self.reserved_bytes = self.good_bytes;
        }
    }

    fn reserve(&mut self, bytes: u64) {
        let wanted = self.good_bytes + bytes + ROOM_BYTES / 2;
        if wanted > self.reserved_bytes {
            self.reserved_bytes = wanted + ROOM_BYTES / 2;
            // Where there is no room, or the file system cannot, it may still be written.
            let _ = file::allocate(self.file.as_fd(), 0, self.reserved_bytes);
        }
    }
}
