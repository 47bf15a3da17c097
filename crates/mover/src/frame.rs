//! Frames: what goes over a stream of a copy, whole or not at all.
//!
//! ```text
//! prefix    8 bytes   the session's: length, kind of seal; never the mover's business
//! header   64 bytes   [`Header`]
//! payload   n bytes   begins at a page, so that a disk can be read into it without the page cache
//! trailer  16 bytes   the session's: the seal, a mark of one byte, or nothing
//! ```
//! All four lie one behind the other, so that a frame is sent with one call and sealed where it stands.

use std::io;
use std::os::fd::BorrowedFd;

use farline_spec::{Failure, FailureKind};
use farline_sys::file;
use farline_sys::page_buffer::{PAGE_BYTES, PageBuffer, PageBuffers};

pub use farline_proto::copy::header::{FrameKind, HEADER_BYTES, Header};

/// Bytes before the header that belong to the session.
pub const PREFIX_BYTES: usize = 8;
/// Bytes behind the payload that belong to the session.
pub const TRAILER_BYTES: usize = 16;
/// Largest payload of any frame.
pub const MAX_PAYLOAD_BYTES: usize = 16 << 20;

fn broken(line: &str) -> Failure {
    Failure::new(FailureKind::Protocol, line)
}

/// Memory of one frame. Used over and over; its payload begins at a page.
#[derive(Debug)]
pub struct Frame {
    memory: PageBuffer,
    payload_bytes: usize,
}

impl Frame {
    /// Room for payloads of up to `capacity` bytes.
    pub fn new(capacity: usize) -> Self {
        Self::of(PageBuffer::new(memory_bytes(capacity)))
    }

    const fn of(memory: PageBuffer) -> Self {
        Self {
            memory,
            payload_bytes: 0,
        }
    }

    /// Largest payload.
    pub fn capacity(&self) -> usize {
        self.memory.len().saturating_sub(2 * PAGE_BYTES)
    }

    /// The payload.
    pub fn payload(&self) -> &[u8] {
        &self.memory[PAGE_BYTES..PAGE_BYTES + self.payload_bytes]
    }

    /// The payload, to be changed in place.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        &mut self.memory[PAGE_BYTES..PAGE_BYTES + self.payload_bytes]
    }

    /// All the room that payload may take; begins at a page and is whole pages long.
    pub fn room(&mut self) -> &mut [u8] {
        let end = self.memory.len() - PAGE_BYTES;
        &mut self.memory[PAGE_BYTES..end]
    }

    /// Takes the memory out while somebody else owns it: a request of the kernel's. Until [`Self::give_back`] the frame has
    /// no room. The payload begins at [`PAGE_BYTES`].
    pub(crate) fn lend(&mut self) -> PageBuffer {
        std::mem::take(&mut self.memory)
    }

    /// Puts lent memory back.
    pub(crate) fn give_back(&mut self, memory: PageBuffer) {
        self.memory = memory;
    }

    /// Says what the frame carries: the first `header.payload_bytes` of [`Self::room`].
    ///
    /// # Panics
    /// When there is less room than that.
    pub fn set(&mut self, header: &Header) {
        let payload_bytes = header.payload_bytes as usize;
        assert!(
            payload_bytes <= self.capacity(),
            "a payload larger than its frame"
        );
        self.payload_bytes = payload_bytes;
        self.memory[PAGE_BYTES - HEADER_BYTES..PAGE_BYTES].copy_from_slice(&header.encode());
    }

    /// Nothing is in it any more; a header that was there is none.
    pub fn clear(&mut self) {
        self.payload_bytes = 0;
        self.memory[PAGE_BYTES - HEADER_BYTES..PAGE_BYTES].fill(0);
    }

    /// Reads the payload from its byte `done` on from `file`, which has byte 0 of it at `offset`. What the file has not is
    /// zeros: a frame that was begun goes to its end, and what an earlier one had there does not.
    ///
    /// # Errors
    /// The kernel's; `UnexpectedEof` when the file ends before.
    pub fn fill_from(&mut self, file: BorrowedFd<'_>, offset: u64, done: usize) -> io::Result<()> {
        let rest = self.payload_mut().get_mut(done..).unwrap_or_default();
        let read = file::read_at(file, rest, offset + done as u64);
        let missing = &mut rest[*read.as_ref().unwrap_or(&0)..];
        missing.fill(0);
        match read {
            Ok(_) if missing.is_empty() => Ok(()),
            Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) => Err(error),
        }
    }

    /// What the frame carries.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`] for a header that came damaged or says what cannot be.
    pub fn header(&self) -> Result<Header, Failure> {
        let mut bytes = [0; HEADER_BYTES];
        bytes.copy_from_slice(&self.memory[PAGE_BYTES - HEADER_BYTES..PAGE_BYTES]);
        let header = Header::decode(&bytes)?;
        if header.payload_bytes as usize != self.payload_bytes {
            return Err(broken("the length of a frame does not match its header"));
        }
        Ok(header)
    }

    /// Prefix, header, payload and trailer, one behind the other: what the session seals and sends.
    pub fn wire(&mut self) -> &mut [u8] {
        let end = PAGE_BYTES + self.payload_bytes + TRAILER_BYTES;
        &mut self.memory[PAGE_BYTES - HEADER_BYTES - PREFIX_BYTES..end]
    }

    /// Makes room for a frame of `payload_bytes` that is about to come and gives it as [`Self::wire`] does.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`] for one that is larger than what was agreed on.
    pub fn expect(&mut self, payload_bytes: usize) -> Result<&mut [u8], Failure> {
        if payload_bytes > self.capacity() {
            return Err(broken("a frame larger than the agreed maximum"));
        }
        self.payload_bytes = payload_bytes;
        Ok(self.wire())
    }
}

const fn memory_bytes(capacity: usize) -> usize {
    PAGE_BYTES + capacity.next_multiple_of(PAGE_BYTES) + PAGE_BYTES
}

/// Makes frames of one size when they are first needed, at most so many, side by side in memory ([`PageBuffers`]).
#[derive(Debug)]
pub struct FrameMaker(PageBuffers);

impl FrameMaker {
    /// At most `most` frames with room for `capacity`.
    pub fn new(most: usize, capacity: usize) -> Self {
        Self(PageBuffers::new(most, memory_bytes(capacity)))
    }

    /// As [`Self::new`], of which at first only `allowed` are made.
    pub fn with_room(most: usize, allowed: usize, capacity: usize) -> Self {
        Self(PageBuffers::with_room(most, allowed, memory_bytes(capacity)))
    }

    /// How many may be made now.
    pub fn allowed(&self) -> usize {
        self.0.allowed()
    }

    /// Lets `more` be made, as far as there is room.
    pub fn allow(&self, more: usize) {
        self.0.allow(more);
    }

    /// Another frame; `None` after the last.
    pub fn make(&self) -> Option<Frame> {
        self.0.take().map(Frame::of)
    }

    /// Whether there is another.
    pub fn has_more(&self) -> bool {
        self.0.has_more()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sum::Sum;

    fn header(hash: Option<Sum>) -> Header {
        Header {
            kind: FrameKind::Chunk,
            file: 7,
            offset: 1 << 40,
            hash,
            payload_bytes: 100,
        }
    }

    #[test]
    fn what_a_frame_carries_is_read_as_it_was_written_and_damage_is_found() {
        for hash in [None, Some(Sum::from_bytes([3; 32]))] {
            let mut frame = Frame::new(100);
            frame.set(&header(hash));
            assert_eq!(frame.header().unwrap(), header(hash));
            assert_eq!(
                frame.wire().len(),
                PREFIX_BYTES + HEADER_BYTES + 100 + TRAILER_BYTES
            );
            let mut cleared = Frame::new(100);
            cleared.set(&header(hash));
            cleared.clear();
            assert!(cleared.header().is_err() && cleared.payload().is_empty());
            for place in 0..HEADER_BYTES {
                frame.wire()[PREFIX_BYTES + place] ^= 1;
                assert!(frame.header().is_err(), "at {place}");
                frame.wire()[PREFIX_BYTES + place] ^= 1;
            }
        }
    }

    #[test]
    fn a_payload_begins_at_a_page_and_has_its_room() {
        let mut frame = Frame::new(5000);
        assert_eq!(frame.capacity(), 8192);
        assert_eq!(frame.room().as_ptr() as usize % PAGE_BYTES, 0);
        assert!(frame.expect(8193).is_err());
    }
}
