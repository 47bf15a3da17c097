//! Sorts those who open connections: the ones we wait for from strangers and the silent.

use std::io::{self, Read};
use std::net::{self, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, TryRecvError};
use farline_spec::{Failure, FailureKind, RunSpec, kernel_words};
use farline_sys::flow_label;
use farline_sys::wake::poll_readable;
use socket2::Socket;
use tracing::debug;

use super::{bytes, held_to_rate, options, stream};
use crate::crowd::Crowd;
use crate::failure::timed_out;
use crate::preamble::{PREAMBLE_BYTES, identify};
use crate::socket::{family, set_tos, time_left, while_listening};
use crate::{Listener, Role, Stream, StreamKey};

/// Openers that may be half-way through at once besides the streams that are expected, all of which may
/// arrive together. Of more, the oldest of the host with the most gives way.
const MAX_STRANGERS: usize = 64;
/// Connections that the kernel may hold ready for us (it caps this at net.core.somaxconn).
const BACKLOG: i32 = 1024;
/// Time an opener has for its preamble.
const PREAMBLE_TIME: Duration = Duration::from_secs(5);
/// How often a wait for a byte of a preamble looks whether another connection has been handed on: no descriptor tells.
const HANDED_LOOK: Duration = Duration::from_millis(10);

/// Waits for streams on a port that is somebody else's: `receiver` brings their connections, with nothing read from them yet,
/// and whoever sends there listens on `local`. For TCP alone; options that must stand before a connection exists are refused
/// ([`crate::needs_own_listener`]).
pub fn handoff_listener(receiver: Receiver<TcpStream>, local: SocketAddr) -> Box<dyn Listener> {
    Box::new(TcpListener::handed(receiver, local))
}

/// A port and those who have come to it and not yet said who they are.
pub(crate) struct TcpListener {
    door: Door,
    local: SocketAddr,
    openers: Crowd<Opener>,
    notes: Vec<String>,
}

/// Where connections come from.
enum Door {
    Own(Socket),
    /// Somebody else accepts them.
    Handed(Receiver<net::TcpStream>),
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
        bytes::check(spec)?;
        let socket = options::open(local, spec)?;
        socket.set_reuse_address(true).map_err(failed)?;
        options::before_connection(&socket, spec, Role::Receiver)?;
        set_tos(&socket, spec, family(local))?;
        let notes = reflect_label(&socket, spec, local);
        socket.bind(&local.into()).map_err(failed)?;
        socket.listen(BACKLOG).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let local = socket.local_addr().map_err(failed)?.as_socket().unwrap_or(local);
        Ok(Self::new(Door::Own(socket), local, notes))
    }

    /// Waits for those whom somebody else who listens on `local` hands on.
    pub(super) fn handed(door: Receiver<net::TcpStream>, local: SocketAddr) -> Self {
        Self::new(Door::Handed(door), local, Vec::new())
    }

    fn new(door: Door, local: SocketAddr, notes: Vec<String>) -> Self {
        Self {
            door,
            local,
            openers: Crowd::default(),
            notes,
        }
    }

    /// A connection of one of `expected` that has proved who it is, without waiting. It does not block.
    ///
    /// # Errors
    /// The kernel's, of the listening socket.
    pub(crate) fn next(&mut self, expected: &[StreamKey]) -> Result<Option<(u16, Socket)>, Failure> {
        let places = MAX_STRANGERS + expected.len();
        // Who has come is looked at before anybody gives way to those behind: a preamble comes with its connection.
        while self.take_connections(places)? {
            if let Some(proved) = self.next_proved(expected) {
                return Ok(Some(proved));
            }
            if let Some(index) = self.openers.busiest().filter(|_| self.openers.len() >= places) {
                drop(self.openers.remove(index));
            }
        }
        Ok(self.next_proved(expected))
    }

    /// What to wait on before [`Self::next`] can have anything new, as far as there are descriptors for it.
    pub(crate) fn fds(&self) -> Vec<BorrowedFd<'_>> {
        let own = match &self.door {
            Door::Own(socket) => Some(socket.as_fd()),
            Door::Handed(_) => None,
        };
        let openers = self.openers.iter().map(|opener| opener.socket.as_fd());
        own.into_iter().chain(openers).collect()
    }

    /// Waits for a connection or a byte of a preamble, at most until `deadline`.
    fn wait(&mut self, deadline: Instant) -> Result<(), Failure> {
        let Some(left) = time_left(deadline) else {
            return Err(timed_out(format!("data port {}", self.local)));
        };
        let oldest = self.openers.get(0).map(|opener| opener.since + PREAMBLE_TIME);
        let patience = oldest.map_or(left, |oldest| {
            left.min(oldest.saturating_duration_since(Instant::now()))
        });
        match &self.door {
            Door::Handed(door) if self.openers.is_empty() => {
                if let Ok(stream) = door.recv_timeout(patience) {
                    self.add_opener(stream.into());
                }
                return Ok(());
            }
            Door::Handed(_) | Door::Own(_) => {}
        }
        let patience = match self.door {
            Door::Own(_) => patience,
            Door::Handed(_) => patience.min(HANDED_LOOK),
        };
        let failed = |error| Failure::system("waiting for data streams", &error);
        poll_readable(&self.fds(), Some(patience))
            .map(drop)
            .map_err(failed)
    }

    /// Takes those who have come as long as there are `places`; gives whether these are taken, and more may wait.
    fn take_connections(&mut self, places: usize) -> Result<bool, Failure> {
        while self.openers.len() < places {
            match self.next_connection()? {
                Some(socket) => self.add_opener(socket),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// A connection that has come.
    fn next_connection(&self) -> Result<Option<Socket>, Failure> {
        let door = match &self.door {
            Door::Own(socket) => socket,
            Door::Handed(door) => {
                return match door.try_recv() {
                    Ok(stream) => Ok(Some(stream.into())),
                    Err(TryRecvError::Empty) => Ok(None),
                    Err(TryRecvError::Disconnected) if !self.openers.is_empty() => Ok(None),
                    Err(TryRecvError::Disconnected) => Err(nobody_hands_on(self.local)),
                };
            }
        };
        loop {
            match door.accept() {
                Ok((socket, _)) => return Ok(Some(socket)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if is_openers_fault(&error) => {}
                Err(error) => return Err(Failure::system(&format!("data port {}", self.local), &error)),
            }
        }
    }

    /// One whose address is not known any more has gone.
    fn add_opener(&mut self, socket: Socket) {
        let from = socket.peer_addr().ok().and_then(|address| address.as_socket());
        if let (Some(from), Ok(())) = (from, socket.set_nonblocking(true)) {
            let opener = Opener {
                socket,
                bytes: [0; PREAMBLE_BYTES],
                filled: 0,
                since: Instant::now(),
            };
            self.openers.join(from.ip(), opener);
        }
    }

    /// Reads what openers sent and drops the dead, the slow and the strangers.
    fn next_proved(&mut self, expected: &[StreamKey]) -> Option<(u16, Socket)> {
        let mut index = 0;
        while let Some(opener) = self.openers.get_mut(index) {
            match opener.read() {
                Progress::Waiting => index += 1,
                Progress::Dead => {
                    let opener = self.openers.remove(index);
                    debug!(peer = ?peer_of(&opener), "connection ended before it said which stream it is");
                }
                Progress::Complete => {
                    let opener = self.openers.remove(index);
                    if let Some(key) = identify(&opener.bytes, expected) {
                        debug!(peer = ?peer_of(&opener), stream = key.stream, "stream has proved that it is expected");
                        return Some((key.stream, opener.socket));
                    }
                    debug!(peer = ?peer_of(&opener), "connection refused: it is no stream of this session");
                }
            }
        }
        None
    }
}

/// Where an opener is, as far as the kernel still knows.
fn peer_of(opener: &Opener) -> Option<SocketAddr> {
    let peer = opener.socket.peer_addr().ok()?;
    peer.as_socket()
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

fn nobody_hands_on(local: SocketAddr) -> Failure {
    Failure::new(
        FailureKind::Interrupted,
        format!("port {local}: connections are no longer accepted"),
    )
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
        format!(
            "flow label: not on packets from this end ({}): net.ipv6.flowlabel_consistency is 1",
            kernel_words(&error)
        )
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
    ) -> Result<(u16, Stream), Failure> {
        if matches!(self.door, Door::Handed(_)) {
            super::own_listener::check(spec)?;
        }
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
        Ok((number, held_to_rate(stream, spec, role)))
    }
}
