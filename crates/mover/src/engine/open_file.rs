//! One open file, and how its bytes are got at.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use farline_sys::file::{self, FileFacts, FileKind, OpenFlags};
use farline_sys::page_buffer::PAGE_BYTES;

use super::memory::Memory;

/// Bytes written through the page cache after which the kernel is asked to begin to bring them to the device.
const WRITEBACK_BYTES: u64 = 8 << 20;

/// Why a file is not opened past the page cache: by now its name stands for something else.
#[derive(Debug)]
pub struct NoRegularFile;

impl std::error::Error for NoRegularFile {}

impl fmt::Display for NoRegularFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("not a regular file")
    }
}

/// A file opened the way its engine needs it. Closed when the last request on it is gone.
#[derive(Debug)]
pub struct OpenFile {
    file: OwnedFd,
    way: Way,
}

/// Where its bytes are.
#[derive(Debug)]
enum Way {
    /// Behind the page cache.
    Cached {
        /// Bytes written since the kernel was last asked to bring them to the device, where there is one.
        unsent: Option<AtomicU64>,
        /// Whoever writes. The kernel lets one thread at a time write to a file and has the others spin; they sleep here
        /// instead, and leave the processor to streams.
        turn: Mutex<()>,
        /// Whether one found another at it.
        is_shared: AtomicBool,
    },
    /// On the device. The tail of a file, which is no whole page, is written through the page cache.
    Direct(OwnedFd),
    /// Nowhere: as many zeros as the file has bytes; what is written is dropped.
    Zeros { bytes: u64 },
    /// In memory: as many bytes as the file has.
    Memory { memory: Arc<Memory>, bytes: u64 },
}

impl Way {
    const fn cached(unsent: Option<AtomicU64>) -> Self {
        Self::Cached {
            unsent,
            turn: Mutex::new(()),
            is_shared: AtomicBool::new(false),
        }
    }
}

impl OpenFile {
    /// A file that is read through the page cache.
    pub(super) fn cached_to_read(file: OwnedFd) -> Self {
        Self {
            file,
            way: Way::cached(None),
        }
    }

    /// A file that is written through the page cache.
    pub(super) fn cached_to_write(file: OwnedFd) -> io::Result<Self> {
        let has_device = !super::device::is_memory(&file::file_system(file.as_fd())?);
        let unsent = has_device.then(|| AtomicU64::new(0));
        Ok(Self {
            file,
            way: Way::cached(unsent),
        })
    }

    /// A file that is read past the page cache. If `or_cached`, one that lies in it already, or that cannot be read so, is
    /// read through it.
    pub(super) fn direct_to_read(file: OwnedFd, or_cached: bool) -> io::Result<Self> {
        if or_cached && is_mostly_cached(&file)? {
            return Ok(Self::cached_to_read(file));
        }
        match open_direct(&file, OpenFlags::READ) {
            Err(_) if or_cached => Ok(Self::cached_to_read(file)),
            direct => Ok(Self {
                way: Way::Direct(direct?),
                file,
            }),
        }
    }

    /// A file whose whole pages are written past the page cache. If `or_cached`, one that cannot be written so is written
    /// through it.
    pub(super) fn direct_to_write(file: OwnedFd, or_cached: bool) -> io::Result<Self> {
        match open_direct(&file, OpenFlags::WRITE) {
            Err(_) if or_cached => Self::cached_to_write(file),
            direct => Ok(Self {
                way: Way::Direct(direct?),
                file,
            }),
        }
    }

    /// A file that is not touched.
    pub(super) fn zeros(file: OwnedFd) -> io::Result<Self> {
        let bytes = file::stat_fd(file.as_fd())?.bytes;
        Ok(Self {
            file,
            way: Way::Zeros { bytes },
        })
    }

    /// A file in whose place is memory.
    pub(super) fn memory(file: OwnedFd, memory: Arc<Memory>) -> io::Result<Self> {
        let bytes = file::stat_fd(file.as_fd())?.bytes;
        Ok(Self {
            file,
            way: Way::Memory { memory, bytes },
        })
    }

    /// What the file is now.
    ///
    /// # Errors
    /// The kernel's.
    pub fn facts(&self) -> io::Result<FileFacts> {
        file::stat_fd(self.file.as_fd())
    }

    /// The file itself: to sync it, set its times, name it.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// What closing it would say.
    ///
    /// # Errors
    /// The kernel's.
    pub fn flush(&self) -> io::Result<()> {
        self.direct_fd().map_or(Ok(()), file::flush)?;
        file::flush(self.fd())
    }

    /// The descriptor past the page cache, where it has one.
    pub(super) fn direct_fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.way {
            Way::Direct(direct) => Some(direct.as_fd()),
            _ => None,
        }
    }

    /// Reads at `offset`, all of `into` unless the file ends before; through the page cache where there is a file.
    ///
    /// # Errors
    /// The kernel's.
    pub fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        match &self.way {
            Way::Cached { .. } | Way::Direct(_) => file::read_at(self.file.as_fd(), into, offset),
            Way::Zeros { bytes } => {
                let there = within(into, offset, *bytes);
                there.fill(0);
                Ok(there.len())
            }
            Way::Memory { memory, bytes } => {
                let there = within(into, offset, *bytes);
                memory.read(there, offset);
                Ok(there.len())
            }
        }
    }

    /// Reads `bytes` bytes at `offset` into `room`, which begins at a page and is whole pages long; fewer at the end of the file.
    pub(super) fn read(&self, room: &mut [u8], bytes: usize, offset: u64) -> io::Result<usize> {
        match &self.way {
            Way::Direct(direct) if offset % PAGE_BYTES as u64 == 0 => {
                let pages = &mut room[..bytes.next_multiple_of(PAGE_BYTES)];
                let done = read_pages(direct.as_fd(), pages, offset).map_err(explain_direct)?;
                self.read_rest(&mut room[..bytes], done, offset)
            }
            _ => self.read_at(&mut room[..bytes], offset),
        }
    }

    /// Reads through the page cache what the kernel did not give past it: nothing at the end of the file, but some file systems
    /// stop before. Gives how much there is in all.
    pub(super) fn read_rest(&self, into: &mut [u8], done: usize, offset: u64) -> io::Result<usize> {
        match into.get_mut(done..) {
            Some(rest) if !rest.is_empty() => Ok(done + self.read_at(rest, offset + done as u64)?),
            _ => Ok(into.len()),
        }
    }

    /// Whether a thread that came to write has ever found another one at it.
    pub fn is_shared(&self) -> bool {
        match &self.way {
            Way::Cached { turn, is_shared, .. } => {
                if !is_shared.load(Ordering::Relaxed)
                    && matches!(turn.try_lock(), Err(TryLockError::WouldBlock))
                {
                    is_shared.store(true, Ordering::Relaxed);
                }
                is_shared.load(Ordering::Relaxed)
            }
            Way::Direct(_) | Way::Zeros { .. } | Way::Memory { .. } => false,
        }
    }

    /// As if a thread had found another one at it.
    #[cfg(test)]
    pub fn share(&self) {
        if let Way::Cached { is_shared, .. } = &self.way {
            is_shared.store(true, Ordering::Relaxed);
        }
    }

    /// Writes all of `payload`, which begins at a page, at `offset`.
    pub(super) fn write(&self, payload: &[u8], offset: u64) -> io::Result<usize> {
        match &self.way {
            Way::Cached { unsent, turn, .. } => {
                let mine = turn.lock().unwrap_or_else(PoisonError::into_inner);
                file::write_all_at(self.file.as_fd(), payload, offset)?;
                drop(mine);
                if let Some(unsent) = unsent {
                    self.send_to_device(unsent, payload.len() as u64);
                }
            }
            Way::Direct(direct) => {
                let whole = whole_pages(payload.len(), offset);
                file::write_all_at(direct.as_fd(), &payload[..whole], offset).map_err(explain_direct)?;
                self.write_tail(payload, whole, offset)?;
            }
            Way::Zeros { .. } => {}
            Way::Memory { memory, .. } => memory.write(payload, offset),
        }
        Ok(payload.len())
    }

    /// Writes what of `payload` comes after its `whole` pages.
    pub(super) fn write_tail(&self, payload: &[u8], whole: usize, offset: u64) -> io::Result<()> {
        file::write_all_at(self.file.as_fd(), &payload[whole..], offset + whole as u64)
    }

    /// Dirty pages do not pile up, and the sync at the end has little left to wait for.
    fn send_to_device(&self, unsent: &AtomicU64, bytes: u64) {
        let before = unsent.fetch_add(bytes, Ordering::Relaxed);
        if before / WRITEBACK_BYTES != (before + bytes) / WRITEBACK_BYTES {
            // Only a head start: what it could not bring to the device, the sync does or says why not.
            let _ = file::start_writeback(self.file.as_fd(), 0, 0);
        }
    }
}

fn open_direct(file: &OwnedFd, flags: OpenFlags) -> io::Result<OwnedFd> {
    if file::stat_fd(file.as_fd())?.kind != FileKind::File {
        // Opening a pipe again would wait for its other end.
        return Err(io::Error::new(io::ErrorKind::InvalidInput, NoRegularFile));
    }
    file::reopen(file.as_fd(), flags | OpenFlags::DIRECT).map_err(explain_direct)
}

/// Whether more than half of a file need not be fetched from the device. A kernel that does not tell counts as no.
fn is_mostly_cached(file: &OwnedFd) -> io::Result<bool> {
    let cached = file::cached_bytes(file.as_fd()).unwrap_or(0);
    Ok(cached > 0 && cached > file::stat_fd(file.as_fd())?.bytes / 2)
}

/// How much of a write can go past the page cache: whole pages of the file.
pub(super) const fn whole_pages(bytes: usize, offset: u64) -> usize {
    if offset % PAGE_BYTES as u64 == 0 {
        bytes - bytes % PAGE_BYTES
    } else {
        0
    }
}

/// As [`file::read_at`] for a descriptor past the page cache: what it gives is whole pages but at the end of the file, behind
/// which it may not be asked again.
fn read_pages(direct: BorrowedFd<'_>, pages: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < pages.len() {
        let bytes = file::read_once_at(direct, &mut pages[done..], offset + done as u64)?;
        done += bytes;
        if bytes == 0 || done % PAGE_BYTES != 0 {
            break;
        }
    }
    Ok(done)
}

/// The part of `into` that a file of `bytes` bytes fills from `offset` on.
fn within(into: &mut [u8], offset: u64, bytes: u64) -> &mut [u8] {
    let left = usize::try_from(bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
    let end = into.len().min(left);
    &mut into[..end]
}

/// The kernel's `EINVAL` does not say what is invalid.
pub(crate) fn explain_direct(error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::InvalidInput {
        return error;
    }
    let line = "the file system does not support direct I/O: use the engine buffered";
    io::Error::new(io::ErrorKind::Unsupported, line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_shared_from_the_first_time_that_one_found_another_at_it() {
        let file = OpenFile::cached_to_write(tempfile::tempfile().unwrap().into()).unwrap();
        assert!(!file.is_shared());
        let Way::Cached { turn, .. } = &file.way else {
            panic!("{:?} is not cached", file.way);
        };
        let mine = turn.lock().unwrap();
        assert!(file.is_shared());
        drop(mine);
        assert!(file.is_shared());
    }
}
