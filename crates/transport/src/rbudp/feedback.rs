//! The TCP connection of a stream: messages in and out, never blocking.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use farline_proto::rbudp::wire::{Decoder, Message, encode};
use farline_spec::{Failure, FailureKind};
use farline_sys::tcp_info::TcpInfo;
use farline_sys::wake::Interest;
use socket2::{SockRef, TcpKeepalive};

use crate::failure::while_moving;

/// Messages that wait for a peer which does not read, at most.
const MAX_WAITING_BYTES: usize = 64 << 20;
/// Reads before what has come is looked at.
const MOST_READS: usize = 64;
/// Bytes taken from the kernel at once.
const READ_BYTES: usize = 64 << 10;
/// Time after which a peer that answers nothing at all is taken for dead.
pub(super) const DEAD_AFTER: Duration = Duration::from_secs(30);

/// Messages over a TCP connection.
pub(super) struct Feedback {
    socket: TcpStream,
    decoder: Decoder,
    buffer: Box<[u8]>,
    waiting: Vec<u8>,
    written: usize,
    is_closed: bool,
}

impl Feedback {
    /// Takes over a connection on which nothing but messages will come, about blasts of up to `max_packets`.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn new(socket: TcpStream, max_packets: u32) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::system("feedback connection", &error);
        socket.set_nonblocking(true).map_err(failed)?;
        socket.set_nodelay(true).map_err(failed)?;
        let keepalive = TcpKeepalive::new()
            .with_time(DEAD_AFTER / 3)
            .with_interval(DEAD_AFTER / 6)
            .with_retries(4);
        SockRef::from(&socket)
            .set_tcp_keepalive(&keepalive)
            .map_err(failed)?;
        SockRef::from(&socket)
            .set_tcp_user_timeout(Some(DEAD_AFTER))
            .map_err(failed)?;
        // Few messages are under way. On a path that loses many, waits that double after each loss would soon be longer than
        // any run.
        SockRef::from(&socket)
            .set_tcp_thin_linear_timeouts(true)
            .map_err(failed)?;
        Ok(Self {
            socket,
            decoder: Decoder::new(max_packets),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            waiting: Vec::new(),
            written: 0,
            is_closed: false,
        })
    }

    /// Takes what has come from the kernel.
    ///
    /// # Errors
    /// The kernel's. An end is none: [`Self::is_closed`] tells, once all messages before it have been taken.
    pub(super) fn read(&mut self) -> Result<(), Failure> {
        for _ in 0..MOST_READS {
            if self.is_closed {
                break;
            }
            match self.socket.read(&mut self.buffer) {
                Ok(0) => self.is_closed = true,
                Ok(count) => {
                    self.decoder.push(&self.buffer[..count]);
                    if count < self.buffer.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(while_moving("waiting for reports", &error)),
            }
        }
        Ok(())
    }

    /// Next message that came whole.
    ///
    /// # Errors
    /// `Protocol` for what is no message.
    pub(super) fn next(&mut self) -> Result<Option<Message>, Failure> {
        let failed = |error| Failure::new(FailureKind::Protocol, format!("data stream: {error}"));
        self.decoder.next().map_err(failed)
    }

    /// Puts a message behind those that wait.
    ///
    /// # Errors
    /// `Protocol` when the other end does not read.
    pub(super) fn put(&mut self, message: &Message) -> Result<(), Failure> {
        if self.written > MAX_WAITING_BYTES / 64 {
            self.waiting.drain(..self.written);
            self.written = 0;
        }
        encode(message, &mut self.waiting);
        if self.waiting.len() - self.written > MAX_WAITING_BYTES {
            let line = format!("data stream: the other end left {MAX_WAITING_BYTES} bytes of reports unread");
            return Err(Failure::new(FailureKind::Protocol, line));
        }
        Ok(())
    }

    /// Gives the kernel what it takes.
    ///
    /// # Errors
    /// The kernel's. An end that has closed is none: [`Self::read`] finds out, after the other end's last words.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        while self.has_waiting() {
            match self.socket.write(&self.waiting[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::BrokenPipe => break,
                Err(error) => return Err(while_moving("sending reports", &error)),
            }
        }
        self.waiting.clear();
        self.written = 0;
        Ok(())
    }

    /// Whether the kernel has not taken everything.
    pub(super) fn has_waiting(&self) -> bool {
        self.written < self.waiting.len()
    }

    /// Whether the other end has closed.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// What to wait for: room for what the kernel has not taken yet, or the other end's next word.
    pub(super) fn wanted(&self) -> (BorrowedFd<'_>, Interest) {
        let interest = if self.has_waiting() {
            Interest::Writable
        } else {
            Interest::Readable
        };
        (self.socket.as_fd(), interest)
    }

    /// Tells the other end why this one gives up, as far as it still listens.
    pub(super) fn give_up(&mut self, reason: &str) {
        let told = self.put(&Message::Failed(reason.to_owned()));
        let _ = told.and_then(|()| self.flush());
    }

    /// As [`Self::give_up`], unless it is the user who ended it.
    pub(super) fn give_up_for(&mut self, failure: &Failure) {
        if failure.kind != FailureKind::Interrupted {
            self.give_up(&failure.message);
        }
    }

    /// A handle by which another thread may end all waits.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn breaker(&self) -> Result<Breaker, Failure> {
        let socket = self
            .socket
            .try_clone()
            .map_err(|error| Failure::system("feedback connection", &error))?;
        Ok(Breaker(socket))
    }
}

/// Ends a feedback connection from another thread, and knows its round-trip time.
#[derive(Debug)]
pub(super) struct Breaker(TcpStream);

impl Breaker {
    pub(super) fn cut(&self) {
        // Whoever waits on it wakes up; it may have been closed by the other end before.
        let _ = self.0.shutdown(Shutdown::Both);
    }

    /// What the kernel knows of the connection.
    pub(super) fn info(&self) -> Option<TcpInfo> {
        TcpInfo::of(self.0.as_fd()).ok()
    }
}

/// Round-trip time by the kernel's account of a connection, in ns: 0 before it has one.
pub(super) fn rtt_ns(socket: BorrowedFd<'_>) -> u64 {
    TcpInfo::of(socket).map_or(0, |info| {
        let raw = info.raw();
        let least = if raw.min_rtt == u32::MAX {
            raw.rtt
        } else {
            raw.min_rtt.min(raw.rtt)
        };
        u64::from(least) * 1_000
    })
}
