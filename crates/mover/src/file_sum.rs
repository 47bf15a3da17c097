//! The sum of one file, for who holds a receipt against it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use farline_spec::SumKind;
use farline_sys::file::{self, OpenFlags};

use crate::sum::{Hasher, Sum};

/// Read at once.
const READ_BYTES: usize = 1 << 20;

/// The sum of a file that lies somewhere, a piece at a time: whoever waits for it may want no more of it.
#[derive(Debug)]
pub struct FileSum {
    file: OwnedFd,
    hasher: Hasher,
    buffer: Vec<u8>,
    offset: u64,
}

impl FileSum {
    /// Of the regular file at `path`, links followed.
    ///
    /// # Errors
    /// The kernel's; `InvalidInput` for what is no regular file.
    pub fn open(path: &[u8], kind: SumKind) -> io::Result<Self> {
        // A pipe would be waited for.
        let file = file::open_at(None, path, OpenFlags::READ | OpenFlags::NO_WAIT, 0)?;
        if file::stat_fd(file.as_fd())?.kind != file::FileKind::File {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Ok(Self {
            file,
            hasher: Hasher::new(kind),
            buffer: vec![0; READ_BYTES],
            offset: 0,
        })
    }

    /// Reads about `bytes` more; the sum once the file's end was seen.
    ///
    /// # Errors
    /// The kernel's.
    pub fn advance(&mut self, bytes: u64) -> io::Result<Option<Sum>> {
        let until = self.offset.saturating_add(bytes);
        while self.offset < until {
            let read = file::read_at(self.file.as_fd(), &mut self.buffer, self.offset)?;
            self.hasher.update(&self.buffer[..read]);
            self.offset += read as u64;
            if read < self.buffer.len() {
                return Ok(Some(self.hasher.sum()));
            }
        }
        Ok(None)
    }
}
