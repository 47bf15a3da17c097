//! Waits for hellos on one port and gives each stream a connected socket of its own on it.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use farline_spec::{Failure, RunSpec};
use farline_sys::wake::poll_readable;
use socket2::Socket;

use super::handshake::{Sign, read_sign, tell};
use super::header::{Kind, Token};
use super::stream::UdpStream;
use crate::failure::timed_out;
use crate::preamble::next_hello;
use crate::socket::{bound_socket, labelled, time_left, while_listening};
use crate::{Listener, Role, Stream, StreamKey};

/// Time between two welcomes to an opener that has not confirmed.
const WELCOME_EVERY: Duration = Duration::from_millis(20);

/// A port that waits for hellos.
pub(super) struct UdpListener {
    socket: UdpSocket,
    local: SocketAddr,
    unconfirmed: Vec<Unconfirmed>,
}

/// A stream whose opener has not said that it knows of its welcome.
struct Unconfirmed {
    socket: Socket,
    key: StreamKey,
    token: Token,
    welcome_at: Instant,
}

impl UdpListener {
    pub(super) fn bind(local: SocketAddr, spec: &RunSpec) -> Result<Self, Failure> {
        if local.ip().is_unspecified() {
            // Answers must leave from the address the hello came to.
            return Err(Failure::option(
                "pairs.destination",
                format!("{local}: UDP listens on one address, not on all"),
            ));
        }
        let failed = |error: io::Error| while_listening(local, &error);
        // The port must be nobody else's now, though this listener's own streams will share it.
        let socket = bound_socket(local, spec, false)?;
        socket.set_reuse_port(true).map_err(failed)?;
        let socket = UdpSocket::from(socket);
        socket.set_nonblocking(true).map_err(failed)?;
        let local = socket.local_addr().map_err(failed)?;
        Ok(Self {
            socket,
            local,
            unconfirmed: Vec::new(),
        })
    }

    /// Next hello of an expected stream that has no socket yet.
    fn next_hello<'a>(
        &self,
        expected: &'a [StreamKey],
    ) -> Result<Option<(&'a StreamKey, SocketAddr)>, Failure> {
        while let Some((key, from)) = next_hello(&self.socket, self.local, expected)? {
            if !self.unconfirmed.iter().any(|open| open.key == *key) {
                return Ok(Some((key, from)));
            }
        }
        Ok(None)
    }

    fn welcome(&self, key: &StreamKey, peer: SocketAddr, spec: &RunSpec) -> Result<Unconfirmed, Failure> {
        let socket = bound_socket(self.local, spec, true)?;
        let target = labelled(&socket, spec, peer)?;
        let failed = |error| Failure::system(&format!("data stream from {peer}"), &error);
        socket.connect(&target).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let token = Token::of(key);
        tell(&socket, key, token, Kind::Welcome, 0);
        Ok(Unconfirmed {
            socket,
            key: key.clone(),
            token,
            welcome_at: Instant::now() + WELCOME_EVERY,
        })
    }

    /// Looks at all that are unconfirmed; gives one that is so no longer and is still expected.
    fn next_confirmed(&mut self, expected: &[StreamKey]) -> Option<Unconfirmed> {
        let confirmed = self.unconfirmed.iter_mut().position(Unconfirmed::is_confirmed)?;
        let open = self.unconfirmed.remove(confirmed);
        expected.contains(&open.key).then_some(open)
    }

    fn wait(&self, deadline: Instant) -> Result<(), Failure> {
        let left = time_left(deadline).ok_or_else(|| timed_out(format!("data port {}", self.local)))?;
        let mut fds = vec![self.socket.as_fd()];
        fds.extend(self.unconfirmed.iter().map(|open| open.socket.as_fd()));
        let patience = if self.unconfirmed.is_empty() {
            left
        } else {
            left.min(WELCOME_EVERY)
        };
        poll_readable(&fds, Some(patience))
            .map(drop)
            .map_err(|error| Failure::system("waiting for data streams", &error))
    }
}

impl Unconfirmed {
    fn is_confirmed(&mut self) -> bool {
        let now = Instant::now();
        let mut answer = now >= self.welcome_at;
        loop {
            match read_sign(&self.socket, &self.key, self.token) {
                // Data of an opener whose five confirmations were lost say the same.
                Ok(Some(Sign::Of(Kind::Confirm | Kind::Data))) => {
                    tell(&self.socket, &self.key, self.token, Kind::Confirmed, 0);
                    return true;
                }
                Ok(Some(Sign::Hello)) => answer = true,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        if answer {
            tell(&self.socket, &self.key, self.token, Kind::Welcome, 0);
            self.welcome_at = now + WELCOME_EVERY;
        }
        false
    }
}

impl Listener for UdpListener {
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
        let open = loop {
            if let Some((key, peer)) = self.next_hello(expected)? {
                let open = self.welcome(key, peer, spec)?;
                self.unconfirmed.push(open);
            } else if let Some(open) = self.next_confirmed(expected) {
                break open;
            } else {
                self.wait(deadline)?;
            }
        };
        open.socket
            .set_nonblocking(false)
            .map_err(|error| Failure::system("data stream", &error))?;
        let (number, role) = (open.key.stream, role_of(open.key.stream));
        let stream = UdpStream::new(open.socket, spec, role, &open.key)?;
        Ok((number, Stream::of_payload(stream, role)))
    }
}
