//! Three ways to take bytes from the kernel.

use std::io;
use std::os::fd::BorrowedFd;

use farline_spec::ReceiveMode;
use farline_sys::byte_stream::{discard, receive_repeated};

use farline_sys::page_buffer::PageBuffer;

/// Memory that `read` fills over and over, however long the block: as with the payload, what stays in a
/// core's cache costs the receiver nothing but the kernel's copy.
const READ_BYTES: usize = 256 << 10;
/// Most memory for a block that an application wants whole. Bounds what a client can make a server allocate.
const APPLICATION_BYTES: usize = 4 << 20;

/// One way to take bytes from the kernel.
pub(super) struct Drain {
    mode: ReceiveMode,
    block: usize,
    buffer: PageBuffer,
    /// Where the application wants its bytes (`ReceiveMode::Copy`).
    application: PageBuffer,
    last: usize,
}

impl Drain {
    pub(super) fn new(mode: ReceiveMode, block: usize) -> Self {
        let (buffer, application) = match mode {
            ReceiveMode::Read => (block.min(READ_BYTES), 0),
            ReceiveMode::Copy => (block.min(APPLICATION_BYTES), block.min(APPLICATION_BYTES)),
            ReceiveMode::Discard => (0, 0),
        };
        let (buffer, application) = (PageBuffer::new(buffer), PageBuffer::new(application));
        Self {
            mode,
            block,
            buffer,
            application,
            last: 0,
        }
    }

    /// Takes up to a block; 0 is the end of the stream.
    pub(super) fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        self.last = 0;
        self.last = match self.mode {
            ReceiveMode::Discard => return discard(socket, self.block),
            ReceiveMode::Read => receive_repeated(socket, &mut self.buffer, self.block)?,
            // Not more at once than the buffer holds: what is overwritten cannot be copied.
            ReceiveMode::Copy => {
                receive_repeated(socket, &mut self.buffer, self.block.min(APPLICATION_BYTES))?
            }
        };
        if self.mode == ReceiveMode::Copy {
            self.application[..self.last].copy_from_slice(&self.buffer[..self.last]);
            // The copy is what is measured: it must happen although nobody reads it.
            std::hint::black_box(&mut self.application);
        }
        Ok(self.last)
    }

    /// Bytes of the last receive; none if they were more than the buffer holds.
    pub(super) fn last(&self) -> &[u8] {
        let kept = if self.mode == ReceiveMode::Copy {
            &self.application
        } else {
            &self.buffer
        };
        kept.get(..self.last).unwrap_or_default()
    }
}
