//! The streams of a copy as the mover sees them; the session lends them.

use std::io;
use std::os::fd::BorrowedFd;

use farline_spec::Failure;

use crate::frame::Frame;

/// What a receive brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrived {
    /// A whole frame.
    Frame,
    /// A frame that its sender could not fill ([`Outlet::send_from`]): it counts as nothing but bytes.
    Void,
    /// Nothing within about 100 ms: look whether the copy is still wanted, and go on.
    Nothing,
    /// A sealed frame that did not open, of data: its number on the stream, from 0. Nothing else is known of it.
    Unopened {
        /// Its number.
        record: u64,
    },
    /// From this number on nothing on the stream can be told apart; once, then only [`Self::Nothing`] and [`Self::End`] come.
    OutOfStep {
        /// The first that did not come.
        record: u64,
    },
    /// The other end has finished; nothing more will come.
    End,
}

/// A stream on which this end sends. Used by one thread.
pub trait Outlet: Send {
    /// Sends `frame` whole; its bytes are changed by the seal. Blocks until the transport took them.
    ///
    /// # Errors
    /// The transport's; [`FailureKind::Interrupted`](farline_spec::FailureKind::Interrupted) when the run is aborted.
    fn send(&mut self, frame: &mut Frame) -> Result<(), Failure>;

    /// As [`Self::send`], of a frame that has its header alone: its payload lies in `file`, from `offset` on, and need not be
    /// read to be sent. Gives what kept the file from having all of it: it ends before, or the kernel says so. Then nothing
    /// arrives, or a frame that is void ([`Arrived::Void`]).
    ///
    /// # Errors
    /// As [`Self::send`].
    fn send_from(
        &mut self,
        frame: &mut Frame,
        file: BorrowedFd<'_>,
        offset: u64,
    ) -> Result<io::Result<()>, Failure> {
        let filled = frame.fill_from(file, offset, 0);
        if filled.is_ok() {
            self.send(frame)?;
        }
        Ok(filled)
    }

    /// Nothing may follow for a while: what was sent must not wait for more.
    ///
    /// # Errors
    /// As [`Self::send`].
    fn flush(&mut self) -> Result<(), Failure>;
}

/// A stream on which this end receives. Used by one thread.
pub trait Inlet: Send {
    /// Receives the next frame into `frame`, opened and checked as far as the seal goes.
    ///
    /// # Errors
    /// The transport's; [`FailureKind::Protocol`](farline_spec::FailureKind::Protocol) for what is no frame or was changed on its way.
    fn receive(&mut self, frame: &mut Frame) -> Result<Arrived, Failure>;
}
