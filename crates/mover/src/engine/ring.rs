//! The engine with many requests under way: io_uring past the page cache.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use farline_spec::Failure;
use farline_sys::page_buffer::PAGE_BYTES;
use farline_sys::uring::{Direction, Ring, Transfer};

use super::open_file::{explain_direct, whole_pages};
use super::{Completed, OpenFile, Reader, Request, Writer};

/// Requests under way; a disk is fully used with fewer, and each holds a frame.
const DEPTH: u16 = 16;

/// Many requests at a time, in whatever order they are over.
#[derive(Debug)]
pub(super) struct Uring {
    ring: Ring<UnderWay>,
    /// What needed no request of the kernel's.
    over: VecDeque<Completed>,
    is_auto: bool,
}

/// A request without its frame's memory, which the ring has.
#[derive(Debug)]
struct UnderWay(Request);

impl AsFd for UnderWay {
    fn as_fd(&self) -> BorrowedFd<'_> {
        let file = &self.0.file;
        file.direct_fd().unwrap_or_else(|| file.fd())
    }
}

impl Uring {
    /// # Errors
    /// [`FailureKind::System`](farline_spec::FailureKind::System) when the kernel does not give one.
    pub(super) fn new(is_auto: bool) -> Result<Self, Failure> {
        let ring = Ring::new(DEPTH).map_err(|error| {
            let line = "engine uring: io_uring is not available here; use buffered or direct";
            Failure::system(line, &error)
        })?;
        Ok(Self {
            ring,
            over: VecDeque::new(),
            is_auto,
        })
    }

    fn begin(&mut self, mut request: Request, direction: Direction, bytes: usize) {
        let memory = request.frame.lend();
        self.ring.begin(Transfer {
            direction,
            offset: request.offset,
            memory,
            start: PAGE_BYTES,
            bytes,
            file: UnderWay(request),
        });
    }

    /// The next that is over, its frame whole again, and which way it went.
    fn next(&mut self) -> Option<(Request, Direction, io::Result<usize>)> {
        let (transfer, result) = self.ring.next()?;
        let mut request = transfer.file.0;
        request.frame.give_back(transfer.memory);
        Some((request, transfer.direction, result.map_err(explain_direct)))
    }

    fn next_completed(&mut self) -> Option<Completed> {
        if let Some(over) = self.over.pop_front() {
            return Some(over);
        }
        let (mut request, direction, result) = self.next()?;
        let result = match direction {
            Direction::Read => result.and_then(|done| {
                let wanted = &mut request.frame.room()[..request.bytes];
                request.file.read_rest(wanted, done, request.offset)
            }),
            Direction::Write => result.and_then(|whole| {
                let payload = request.frame.payload();
                request.file.write_tail(payload, whole, request.offset)?;
                Ok(payload.len())
            }),
        };
        Some(Completed { request, result })
    }
}

impl Reader for Uring {
    fn depth(&self) -> usize {
        DEPTH.into()
    }

    fn adopt(&self, file: OwnedFd) -> io::Result<Arc<OpenFile>> {
        OpenFile::direct_to_read(file, self.is_auto).map(Arc::new)
    }

    fn adopt_small(&self, file: OwnedFd) -> io::Result<OpenFile> {
        Ok(OpenFile::cached_to_read(file))
    }

    fn submit(&mut self, mut request: Request) {
        if request.offset % PAGE_BYTES as u64 == 0 && request.file.direct_fd().is_some() {
            let bytes = request.bytes.next_multiple_of(PAGE_BYTES);
            self.begin(request, Direction::Read, bytes);
            return;
        }
        let room = request.frame.room();
        let result = request.file.read(room, request.bytes, request.offset);
        self.over.push_back(Completed { request, result });
    }

    fn complete(&mut self) -> Option<Completed> {
        self.next_completed()
    }
}

impl Writer for Uring {
    fn depth(&self) -> usize {
        DEPTH.into()
    }

    fn adopt(&self, file: OwnedFd) -> io::Result<Arc<OpenFile>> {
        OpenFile::direct_to_write(file, self.is_auto).map(Arc::new)
    }

    fn submit(&mut self, request: Request) {
        let whole = whole_pages(request.frame.payload().len(), request.offset);
        if whole > 0 && request.file.direct_fd().is_some() {
            self.begin(request, Direction::Write, whole);
            return;
        }
        let result = request.file.write(request.frame.payload(), request.offset);
        self.over.push_back(Completed { request, result });
    }

    fn complete(&mut self) -> Option<Completed> {
        self.next_completed()
    }
}
