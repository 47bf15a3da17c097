//! Bytes of somebody else's over a connection, in and out.

use std::io;
use std::os::fd::BorrowedFd;

use farline_spec::{Failure, FailureKind, ReceiveMode, RunSpec, SendMode};
use farline_sys::byte_stream::{receive_now, send_repeated};
use farline_sys::option::set_receive_low_water;
use farline_sys::wake::{Interest, wait_ready};
use socket2::SockRef;

use crate::failure::{is_slice, while_moving};
use crate::socket::SLICE;

/// Bytes that must be there before the receiver is woken, where so many are wanted: a wake-up for every segment costs
/// the end that delivers it (on loopback the sender) more than the copy itself.
const GATHERED_BYTES: usize = 256 << 10;

/// Bytes that the window of a receiver has room for from the start. It grows by itself beyond them, but a round trip later
/// each time than the sender's, which on a long path is what small files wait for.
const FIRST_WINDOW_BYTES: usize = 2 << 20;

/// The receiving end of a connection that carries files.
#[derive(Debug)]
pub(super) struct Intake {
    /// As the kernel has it; 0 where it has its own.
    low_water: usize,
    /// The sender goes by how long a round trip takes: nothing may wait here for more to come before it is acknowledged.
    is_prompt: bool,
}

/// Refuses options that decide how bytes made up on the spot are sent, or what becomes of bytes that nobody wants.
///
/// # Errors
/// `Spec` that names the option.
pub(super) fn check(spec: &RunSpec) -> Result<(), Failure> {
    let Some(tcp) = spec.tcp.as_ref().filter(|_| spec.copy.is_some()) else {
        return Ok(());
    };
    if tcp.send_mode != SendMode::Copy {
        return Err(Failure::option(
            "tcp.send_mode",
            "applies only to generated data; for files use copy.read_engine",
        ));
    }
    if tcp.receive_mode != ReceiveMode::Read {
        return Err(Failure::option(
            "tcp.receive_mode",
            "files can only be received with read",
        ));
    }
    Ok(())
}

/// Gives the kernel what it takes of `bytes` within the socket's time-out.
///
/// # Errors
/// The kernel's; `WouldBlock` when it took nothing.
pub(super) fn send(socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    if bytes.is_empty() {
        return Ok(0);
    }
    send_repeated(socket, bytes, 0, bytes.len())
}

/// Whether an error of a call that takes from a file and gives to a socket is the socket's, as a time-out may be. All others
/// are the file's: its device fails, its server is gone, its file system does not hand pages on.
pub(super) fn is_of_socket(error: &io::Error) -> bool {
    is_slice(error) || while_moving("sending", error).kind != FailureKind::System
}

impl Intake {
    /// For a run of `spec`.
    pub(super) fn of(spec: &RunSpec) -> Self {
        Self {
            low_water: 0,
            is_prompt: spec.copy.as_ref().is_some_and(|copy| copy.give_way),
        }
    }

    /// Takes what has come, once all that `into` holds or a good part of it has, or a time slice is over; 0 is the end of
    /// the stream.
    ///
    /// # Errors
    /// The kernel's; `WouldBlock` when nothing has come.
    pub(super) fn receive(&mut self, socket: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<usize> {
        let most = if self.is_prompt { 1 } else { GATHERED_BYTES };
        let wanted = into.len().clamp(1, most);
        if self.low_water == 0 {
            // The kernel makes room for what is waited for, and unlike with SO_RCVBUF goes on making more.
            let _ = set_receive_low_water(socket, FIRST_WINDOW_BYTES);
        }
        if self.low_water != wanted {
            // A kernel that cannot wait for more wakes more often: nothing else changes.
            let _ = set_receive_low_water(socket, wanted);
            self.low_water = wanted;
        }
        wait_ready([(socket, Interest::Readable)], SLICE)?;
        let received = receive_now(socket, into);
        if self.is_prompt {
            // The kernel keeps acknowledgements back for 40 ms, which looks like a queue (tcp(7)). Without it: a lower rate.
            let _ = SockRef::from(&socket).set_tcp_quickack(true);
        }
        received
    }
}
