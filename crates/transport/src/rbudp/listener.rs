//! Waits on one port for the two halves of each stream: a connection and a hello by datagram.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use farline_spec::{Failure, FailureKind, RunSpec};
use farline_sys::wake::poll_readable;
use socket2::Socket;

use super::opening::Opened;
use super::options::check;
use crate::failure::timed_out;
use crate::preamble::next_hello;
use crate::socket::{bound_socket, labelled, time_left, while_listening};
use crate::tcp::listener::TcpListener;
use crate::{Listener, Role, Stream, StreamKey};

/// Ports that are tried where the kernel may choose: its choice for one protocol may be taken for the other.
const TRIES: usize = 32;
/// Longest wait for connections: their openers must not hold up the datagrams.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time in which an opener that has proved who it is must bring its opening to an end.
const OPENING_TIME: Duration = Duration::from_secs(15);

/// A port that waits for openers.
pub(super) struct RbudpListener {
    tcp: TcpListener,
    udp: UdpSocket,
    local: SocketAddr,
    halves: Vec<Half>,
}

/// A stream one or both of whose sockets are there.
struct Half {
    stream: u16,
    tcp: Option<Socket>,
    udp: Option<Socket>,
}

impl RbudpListener {
    pub(super) fn bind(local: SocketAddr, spec: &RunSpec) -> Result<Self, Failure> {
        check(spec)?;
        if local.ip().is_unspecified() {
            // Datagrams must leave from the address the hello came to.
            return Err(Failure::option(
                "pairs.destination",
                format!("{local}: RBUDP listens on one address, not on all"),
            ));
        }
        for _ in 0..TRIES {
            let tcp = TcpListener::bind(local, spec)?;
            let at = tcp.local_addr();
            match bound_socket(at, spec, false) {
                Ok(socket) => return Self::new(tcp, socket, at),
                Err(failure) if failure.kind == FailureKind::Busy && local.port() == 0 => {}
                Err(failure) => return Err(failure),
            }
        }
        let line = format!("data port {local}: no port that is free for TCP and UDP in {TRIES} tries");
        Err(Failure::new(FailureKind::Busy, line))
    }

    fn new(tcp: TcpListener, socket: Socket, local: SocketAddr) -> Result<Self, Failure> {
        let failed = |error: io::Error| while_listening(local, &error);
        // The port was nobody else's; from now on this listener's own streams share it.
        socket.set_reuse_port(true).map_err(failed)?;
        let udp = UdpSocket::from(socket);
        udp.set_nonblocking(true).map_err(failed)?;
        Ok(Self {
            tcp,
            udp,
            local,
            halves: Vec::new(),
        })
    }

    fn half(&mut self, stream: u16) -> &mut Half {
        let found = self.halves.iter().position(|half| half.stream == stream);
        let index = found.unwrap_or_else(|| {
            self.halves.push(Half {
                stream,
                tcp: None,
                udp: None,
            });
            self.halves.len() - 1
        });
        &mut self.halves[index]
    }

    /// Takes what has come; gives whether there was anything of use.
    fn look(&mut self, expected: &[StreamKey], spec: &RunSpec) -> Result<bool, Failure> {
        let mut progress = false;
        while let Some((stream, socket)) = self.tcp.next(expected)? {
            self.half(stream).tcp.get_or_insert(socket);
            progress = true;
        }
        while let Some((key, from)) = next_hello(&self.udp, self.local, expected)? {
            let stream = key.stream;
            if self.half(stream).udp.is_none() {
                let socket = bound_socket(self.local, spec, true)?;
                let target = labelled(&socket, spec, from)?;
                let failed = |error| Failure::system(&format!("data stream from {from}"), &error);
                socket.connect(&target).map_err(failed)?;
                self.half(stream).udp = Some(socket);
                progress = true;
            }
        }
        Ok(progress)
    }

    fn take_complete(&mut self) -> Option<(u16, Socket, Socket)> {
        let is_complete = |half: &Half| half.tcp.is_some() && half.udp.is_some();
        let index = self.halves.iter().position(is_complete)?;
        let half = self.halves.swap_remove(index);
        Some((half.stream, half.tcp?, half.udp?))
    }

    fn wait(&self, deadline: Instant) -> Result<(), Failure> {
        let left = time_left(deadline).ok_or_else(|| timed_out(format!("data port {}", self.local)))?;
        let mut fds = self.tcp.fds();
        fds.push(self.udp.as_fd());
        poll_readable(&fds, Some(left.min(PATIENCE)))
            .map(drop)
            .map_err(|error| Failure::system("waiting for data streams", &error))
    }
}

impl Listener for RbudpListener {
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
        loop {
            let progress = self.look(expected, spec)?;
            if let Some((stream, tcp, udp)) = self.take_complete() {
                let Some(key) = expected.iter().find(|key| key.stream == stream) else {
                    continue;
                };
                let failed = |error: io::Error| Failure::system("data stream", &error);
                tcp.set_nonblocking(false).map_err(failed)?;
                let opened = Opened {
                    tcp: tcp.into(),
                    udp,
                    is_client: false,
                };
                let until = Instant::now() + OPENING_TIME;
                // A time-out here is the opener's, not that of waiting for one.
                let opened =
                    opened
                        .finish(spec, role_of(stream), key, until)
                        .map_err(|failure| match failure.kind {
                            FailureKind::Timeout => Failure::new(FailureKind::Protocol, failure.message),
                            _ => failure,
                        })?;
                return Ok((stream, opened));
            }
            if !progress {
                self.wait(deadline)?;
            }
        }
    }
}
