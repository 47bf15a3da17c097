//! Four ways to give bytes to the kernel.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use farline_spec::{Failure, SendMode};
use farline_sys::byte_stream::{MemoryFile, PagePipe, block_pipe_signal, send_repeated};
use farline_sys::option::allow_zerocopy;
use farline_sys::wake::poll_readable;
use farline_sys::zerocopy::ZerocopySender;

use farline_sys::page_buffer::PageBuffer;

/// How many completions may be outstanding before they are fetched: often enough that the kernel's limit on
/// them (`net.core.optmem_max`) is not reached, rarely enough to cost nothing.
const REAP_EVERY: usize = 16;

/// One way to give bytes to the kernel, with the payload it gives.
pub(super) enum Feed {
    Copy(PageBuffer),
    Zerocopy(ZerocopySender),
    Sendfile(MemoryFile),
    Splice(Splice),
}

impl Feed {
    pub(super) fn new(mode: SendMode, payload: Box<[u8]>, socket: BorrowedFd<'_>) -> Result<Self, Failure> {
        let file = || MemoryFile::new(&payload).map_err(|error| Failure::system("memory file", &error));
        Ok(match mode {
            SendMode::Copy => {
                let mut buffer = PageBuffer::new(payload.len());
                buffer.copy_from_slice(&payload);
                Self::Copy(buffer)
            }
            SendMode::Zerocopy => {
                allow_zerocopy(socket)
                    .map_err(|error| Failure::option("tcp.send_mode", format!("zerocopy: {error}")))?;
                Self::Zerocopy(ZerocopySender::new(payload))
            }
            SendMode::Sendfile => Self::Sendfile(file()?),
            SendMode::Splice => Self::Splice(Splice::new(file()?)?),
        })
    }

    /// To be called by the thread that sends, before its first send.
    pub(super) fn start(&self) {
        if matches!(self, Self::Sendfile(_) | Self::Splice(_)) {
            block_pipe_signal();
        }
    }

    /// Gives up to `length` bytes to `socket`: the payload from `offset` on, repeated where the way can do
    /// that in one call. Gives the bytes taken.
    pub(super) fn send(&mut self, socket: BorrowedFd<'_>, offset: usize, length: usize) -> io::Result<usize> {
        match self {
            Self::Copy(payload) => send_repeated(socket, payload, offset, length),
            Self::Zerocopy(sender) => send_zerocopy(sender, socket, offset, length),
            Self::Sendfile(file) => file.send(socket, offset, length.min(file.len() - offset)),
            Self::Splice(splice) => splice.send(socket, offset, length),
        }
    }

    /// Bytes that the kernel copied after all and bytes it did not, if this way counts them.
    pub(super) fn zerocopy_bytes(&self) -> Option<(u64, u64)> {
        match self {
            Self::Zerocopy(sender) => Some((sender.copied_bytes(), sender.true_bytes())),
            _ => None,
        }
    }

    /// Fetches completions; gives how many sends the kernel has not completed.
    pub(super) fn settle(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        match self {
            Self::Zerocopy(sender) => sender.reap(socket).map(|_| sender.outstanding()),
            _ => Ok(0),
        }
    }
}

fn send_zerocopy(
    sender: &mut ZerocopySender,
    socket: BorrowedFd<'_>,
    offset: usize,
    length: usize,
) -> io::Result<usize> {
    if sender.outstanding() >= REAP_EVERY {
        sender.reap(socket)?;
    }
    match sender.send(socket, offset, length) {
        Err(error) if error.raw_os_error() == Some(NO_BUFFERS) => {
            // Completions wake a poll as an error does.
            poll_readable(&[socket], Some(Duration::from_millis(10)))?;
            sender.reap(socket)?;
            Err(io::ErrorKind::WouldBlock.into())
        }
        result => result,
    }
}

/// ENOBUFS: too many completions are outstanding for the socket's memory limit.
const NO_BUFFERS: i32 = 105;

/// `splice` from a memory file through a pipe.
pub(super) struct Splice {
    file: MemoryFile,
    pipe: PagePipe,
    /// Bytes in the pipe that the socket has not taken.
    held: usize,
}

impl Splice {
    fn new(file: MemoryFile) -> Result<Self, Failure> {
        let pipe = PagePipe::new(file.len()).map_err(|error| Failure::system("pipe", &error))?;
        Ok(Self { file, pipe, held: 0 })
    }

    fn send(&mut self, socket: BorrowedFd<'_>, offset: usize, length: usize) -> io::Result<usize> {
        if self.held == 0 {
            self.held = self
                .pipe
                .fill(&self.file, offset, length.min(self.file.len() - offset))?;
        }
        let sent = self.pipe.send(socket, self.held.min(length))?;
        self.held -= sent;
        Ok(sent)
    }
}
