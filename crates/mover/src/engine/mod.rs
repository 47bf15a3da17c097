//! How bytes get from files into frames and back: one file per way, chosen by looking at the file system.
//!
//! What it does: opens files the way an engine needs them, reads into and writes from the room of frames, several requests
//! under way where the engine can.
//! What it must not do: know streams, hashes, names or journals.
//!
//! In: descriptors and frames. Out: frames filled or written, with what the kernel said.
//!
//! ```text
//! buffered   pread, pwrite                         one request at a time on each thread
//! direct     the same past the page cache          whole pages; the tail of a file through the page cache
//! uring      io_uring past the page cache          up to 16 requests under way on each thread
//! sendfile   nothing: the stream takes what is in the page cache by itself; small files as buffered
//! null       nothing; zeros of the file's length   the network without the disk
//! memory     a copy from or to memory              the network and the copying without the disk
//! ```
//!
//! Start with [`Reader`] and [`Writer`], then [`choose`].

mod device;
mod in_turn;
mod memory;
mod open_file;
mod ring;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use farline_spec::{Failure, FileEngine};
use farline_sys::file::OpenFlags;

use crate::Root;
use crate::frame::Frame;

pub use device::{Choice, Device, choose, device_of};
pub(crate) use open_file::explain_direct;
pub use open_file::{NoRegularFile, OpenFile};

/// One read of at most the frame's room, or one write of part of its payload.
#[derive(Debug)]
pub struct Request {
    /// The file.
    pub file: Arc<OpenFile>,
    /// Where in the file.
    pub offset: u64,
    /// Bytes to read to the start of the frame's room; to write from the frame's payload, all of it.
    pub bytes: usize,
    /// The memory.
    pub frame: Frame,
    /// Whose it is; given back as it was.
    pub tag: u64,
}

/// A request that is over.
#[derive(Debug)]
pub struct Completed {
    /// The request, frame included.
    pub request: Request,
    /// Bytes read (fewer than asked for only at the end of the file) or written (always all).
    pub result: io::Result<usize>,
}

/// Reads on one thread.
pub trait Reader: Send {
    /// Requests that may be under way at once.
    fn depth(&self) -> usize;

    /// Takes over a file open for reading and not past the page cache.
    ///
    /// # Errors
    /// The kernel's; `Unsupported` where the file system does not do what the engine needs.
    fn adopt(&self, file: OwnedFd) -> io::Result<Arc<OpenFile>>;

    /// As [`Self::adopt`], of a file so small that it is read with one [`OpenFile::read_at`]: the way there is not worth
    /// preparing.
    ///
    /// # Errors
    /// The kernel's.
    fn adopt_small(&self, file: OwnedFd) -> io::Result<OpenFile>;

    /// Opens a file at the sending end, read only, never through a link at its end unless `follow`. What has its name may
    /// be something else by now, a pipe for one, on which opening does not wait: see [`OpenFile::facts`].
    ///
    /// # Errors
    /// As [`Self::adopt`].
    fn open(&self, root: &Root, path: &[u8], follow: bool) -> io::Result<Arc<OpenFile>> {
        let flags = OpenFlags::READ | OpenFlags::NO_WAIT;
        let flags = if follow {
            flags
        } else {
            flags | OpenFlags::NO_FOLLOW
        };
        self.adopt(root.open(path, flags)?)
    }

    /// Begins a read; at most [`Self::depth`] may be under way.
    fn submit(&mut self, request: Request);

    /// Waits for the next that is over, in whatever order; `None` if nothing is under way.
    fn complete(&mut self) -> Option<Completed>;
}

/// Writes on one thread.
pub trait Writer: Send {
    /// Requests that may be under way at once.
    fn depth(&self) -> usize;

    /// Takes over a file just made, open for writing and not past the page cache. An engine that leaves files alone takes
    /// any, `/dev/null` for one.
    ///
    /// # Errors
    /// The kernel's; `Unsupported` where the file system does not do what the engine needs.
    fn adopt(&self, file: OwnedFd) -> io::Result<Arc<OpenFile>>;

    /// Begins a write of the whole payload; at most [`Self::depth`] may be under way.
    fn submit(&mut self, request: Request);

    /// Waits for the next that is over; `None` if nothing is under way.
    fn complete(&mut self) -> Option<Completed>;
}

/// A reader as it was chosen, for one thread.
///
/// # Errors
/// [`FailureKind::System`](farline_spec::FailureKind::System) when the kernel refuses what it needs.
pub fn reader(choice: Choice) -> Result<Box<dyn Reader>, Failure> {
    Ok(match choice.engine {
        FileEngine::Uring => Box::new(ring::Uring::new(choice.is_auto)?),
        engine => Box::new(in_turn::InTurn::new(engine, choice.is_auto)),
    })
}

/// A writer as it was chosen, for one thread.
///
/// # Errors
/// As [`reader`].
pub fn writer(choice: Choice) -> Result<Box<dyn Writer>, Failure> {
    Ok(match choice.engine {
        FileEngine::Uring => Box::new(ring::Uring::new(choice.is_auto)?),
        engine => Box::new(in_turn::InTurn::new(engine, choice.is_auto)),
    })
}

#[cfg(test)]
mod tests;
