//! Sorts those who open connections: the ones we wait for from strangers and the silent.

use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use farline_spec::{Failure, RunSpec};
use farline_sys::flow_label;
use farline_sys::wake::poll_readable;
use socket2::Socket;

use super::{held_to_rate, options, stream};
use crate::failure::timed_out;
use crate::preamble::{PREAMBLE_BYTES, identify};
use crate::socket::{family, set_tos, time_left, while_listening};
use crate::{Listener, Role, Stream, StreamKey};

/// Openers that may be half-way through at once besides the streams that are expected, all of which may
/// arrive together. One more takes the place of the oldest.
const MAX_STRANGERS: usize = 64;
/// Connections that the kernel may hold ready for us (it caps this at net.core.somaxconn).
const BACKLOG: i32 = 1024;
/// Time an opener has for its preamble.
const PREAMBLE_TIME: Duration = Duration::from_secs(5);

/// A listening socket and those who have not yet said who they are.
pub(crate) struct TcpListener {
    socket: Socket,
    local: SocketAddr,
    openers: Vec<Opener>,
    notes: Vec<String>,
}

/// A connection that has not proved anything yet.
struct Opener {
    socket: Socket,
    bytes: [u8; PREAMBLE_BYTES],
    filled: usize,
    since: Instant,
}

enum Progress {
    Waiting,
    Complete,
    Dead,
}

impl TcpListener {
    pub(crate) fn bind(local: SocketAddr, spec: &RunSpec) -> Result<Self, Failure> {
        let failed = |error: io::Error| while_listening(local, &error);
        let socket = options::open(local, spec)?;
        socket.set_reuse_address(true).map_err(failed)?;
        options::before_connection(&socket, spec, Role::Receiver)?;
        set_tos(&socket, spec, family(local))?;
        let notes = reflect_label(&socket, spec, local);
        socket.bind(&local.into()).map_err(failed)?;
        socket.listen(BACKLOG).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let local = socket.local_addr().map_err(failed)?.as_socket().unwrap_or(local);
        Ok(Self {
            socket,
            local,
            openers: Vec::new(),
            notes,
        })
    }

    /// A connection of one of `expected` that has proved who it is, without waiting. It does not block.
    ///
    /// # Errors
    /// The kernel's, of the listening socket.
    pub(crate) fn next(&mut self, expected: &[StreamKey]) -> Result<Option<(u16, Socket)>, Failure> {
        self.take_connections(MAX_STRANGERS + expected.len())?;
        Ok(self.next_proved(expected))
    }

    /// What to wait on before [`Self::next`] can have anything new.
    pub(crate) fn fds(&self) -> Vec<BorrowedFd<'_>> {
        let openers = self.openers.iter().map(|opener| opener.socket.as_fd());
        std::iter::once(self.socket.as_fd()).chain(openers).collect()
    }

    /// Waits for a connection or a byte of a preamble, at most until `deadline`.
    fn wait(&mut self, deadline: Instant) -> Result<(), Failure> {
        let Some(left) = time_left(deadline) else {
            return Err(timed_out(format!("data port {}", self.local)));
        };
        let fds = self.fds();
        let oldest = self.openers.first().map(|opener| opener.since + PREAMBLE_TIME);
        let patience = oldest.map_or(left, |oldest| {
            left.min(oldest.saturating_duration_since(Instant::now()))
        });
        let failed = |error| Failure::system("waiting for data streams", &error);
        poll_readable(&fds, Some(patience)).map(drop).map_err(failed)
    }

    fn take_connections(&mut self, places: usize) -> Result<(), Failure> {
        loop {
            match self.socket.accept() {
                Ok((socket, _)) => self.add_opener(socket, places),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if is_openers_fault(&error) => {}
                Err(error) => return Err(Failure::system(&format!("data port {}", self.local), &error)),
            }
        }
    }

    fn add_opener(&mut self, socket: Socket, places: usize) {
        if self.openers.len() >= places {
            self.openers.remove(0);
        }
        if socket.set_nonblocking(true).is_ok() {
            let bytes = [0; PREAMBLE_BYTES];
            self.openers.push(Opener {
                socket,
                bytes,
                filled: 0,
                since: Instant::now(),
            });
        }
    }

    /// Reads what openers sent and drops the dead, the slow and the strangers.
    fn next_proved(&mut self, expected: &[StreamKey]) -> Option<(u16, Socket)> {
        let mut index = 0;
        while index < self.openers.len() {
            match self.openers[index].read() {
                Progress::Waiting => index += 1,
                Progress::Dead => drop(self.openers.remove(index)),
                Progress::Complete => {
                    let opener = self.openers.remove(index);
                    if let Some(key) = identify(&opener.bytes, expected) {
                        return Some((key.stream, opener.socket));
                    }
                }
            }
        }
        None
    }
}

impl Opener {
    fn read(&mut self) -> Progress {
        // Never more than the preamble: what follows belongs to the stream.
        match (&self.socket).read(&mut self.bytes[self.filled..]) {
            Ok(0) => Progress::Dead,
            Ok(count) => {
                self.filled += count;
                if self.filled == PREAMBLE_BYTES {
                    Progress::Complete
                } else {
                    Progress::Waiting
                }
            }
            Err(error) if is_again(&error) && self.since.elapsed() < PREAMBLE_TIME => Progress::Waiting,
            Err(_) => Progress::Dead,
        }
    }
}

fn is_again(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

/// Whether accept(2) reports an error of the connection that was to be accepted, which Linux passes on.
fn is_openers_fault(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Interrupted
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::TimedOut
    )
}

/// An accepted connection cannot choose its flow label; it can answer with the opener's, where the host
/// allows that. Where it does not, the label stands on one direction only, and the record says so.
fn reflect_label(socket: &Socket, spec: &RunSpec, local: SocketAddr) -> Vec<String> {
    if spec.flow_label.is_none() || local.is_ipv4() {
        return Vec::new();
    }
    let refused = flow_label::reflect(socket.as_fd()).err();
    let note = |error| {
        format!("flow label: not on packets from this end ({error}): net.ipv6.flowlabel_consistency is 1")
    };
    refused.map(note).into_iter().collect()
}

impl Listener for TcpListener {
    fn local_addr(&self) -> SocketAddr {
        self.local
    }

    fn accept(
        &mut self,
        spec: &RunSpec,
        expected: &[StreamKey],
        role_of: &dyn Fn(u16) -> Role,
        deadline: Instant,
    ) -> Result<(u16, Box<dyn Stream>), Failure> {
        let (number, socket) = loop {
            if let Some(proved) = self.next(expected)? {
                break proved;
            }
            self.wait(deadline)?;
        };
        let role = role_of(number);
        let failed = |error| Failure::system("data stream", &error);
        socket.set_nonblocking(false).map_err(failed)?;
        options::for_role(&socket, spec, role)?;
        set_tos(&socket, spec, family(self.local))?;
        let stream = stream::TcpStream::new(socket, spec, role, number, self.notes.clone())?;
        Ok((number, held_to_rate(Box::new(stream), spec, role)))
    }
}
