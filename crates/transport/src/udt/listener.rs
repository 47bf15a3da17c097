//! Waits for callers on one port.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use farline_proto::udt::handshake::{Heard, Listening, Offer};
use farline_proto::udt::wire::{HANDSHAKE_BYTES, Handshake, IP_UDP_BYTES, Sequence};
use farline_spec::{Failure, FailureKind};
use farline_sys::time;
use farline_sys::wake::poll_readable;

use super::chance;
use super::driver::Driver;
use super::opening::{bare_socket, connect_socket};
use super::options::{Setup, SocketOptions};
use super::port::{Inbox, Member, Port};
use super::socket::Socket;
use crate::failure::{is_slice, timed_out};
use crate::socket::{canonical, time_left, while_listening};

/// Answers that are kept for callers who ask again.
const REMEMBERED: usize = 1024;
/// Datagrams that are looked at before the next caller is given away.
const LOOKS: usize = 256;

/// A port that waits for callers. It keeps nothing about those who have not proved that they are where they say.
#[derive(Debug)]
pub struct Listener {
    socket: UdpSocket,
    local: SocketAddr,
    options: SocketOptions,
    listening: Listening,
    limits: Offer,
    /// What came to a connection's socket but is from a new caller.
    inbox: Arc<Inbox>,
    answered: VecDeque<Answered>,
    /// Why the latest caller that could not be let in was not.
    trouble: Option<Failure>,
}

/// A caller that has its connection.
#[derive(Debug)]
struct Answered {
    from: SocketAddr,
    socket: u32,
    initial_sequence: Sequence,
    answer: [u8; HANDSHAKE_BYTES],
}

impl Listener {
    /// Listens on `local`, one address; port 0 is the kernel's choice.
    ///
    /// # Errors
    /// `Busy` when the port is taken, `Spec` when the address is not one of this host.
    pub fn bind(local: SocketAddr, options: &SocketOptions) -> Result<Self, Failure> {
        let local = canonical(local);
        if local.ip().is_unspecified() {
            // Answers must leave from the address the call came to.
            return Err(Failure::option(
                "pairs.destination",
                format!("{local}: UDT listens on one address, not on all"),
            ));
        }
        let failed = |error: io::Error| while_listening(local, &error);
        let socket = bare_socket(local, options)?;
        // The port must be nobody else's now, though this listener's own connections will share it.
        socket.bind(&local.into()).map_err(failed)?;
        socket.set_reuse_port(true).map_err(failed)?;
        let socket = UdpSocket::from(socket);
        let local = socket.local_addr().map_err(failed)?;
        let limits = Offer {
            socket: 1,
            initial_sequence: Sequence::new(0),
            mss_bytes: (65_507 + IP_UDP_BYTES) as u32,
            flight_packets: 2,
            kind: options.kind,
        };
        Ok(Self {
            socket,
            local,
            options: options.clone(),
            listening: Listening::new(chance::bytes()?),
            limits,
            inbox: Inbox::for_listener()?,
            answered: VecDeque::new(),
            trouble: None,
        })
    }

    /// Address and port that it listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Next connection. Its caller may have missed the answer and ask again, which the calls of the socket see to: it
    /// is not to be left alone.
    ///
    /// # Errors
    /// `Timeout` when `deadline` has passed; call again to wait on. The kernel's.
    pub fn accept(&mut self, deadline: Instant) -> Result<Socket, Failure> {
        loop {
            if let Some(socket) = self.next(&mut || {})? {
                return Ok(socket);
            }
            let left = time_left(deadline).ok_or_else(|| self.timed_out("UDT port"))?;
            poll_readable(&self.fds(), Some(left))
                .map_err(|error| Failure::system("waiting for UDT callers", &error))?;
        }
    }

    /// The failure of waiting in vain.
    pub(super) fn timed_out(&self, what: &str) -> Failure {
        let mut failure = timed_out(format!("{what} {}", self.local));
        if let Some(trouble) = &self.trouble {
            failure
                .message
                .push_str(&format!("; a caller could not be accepted: {}", trouble.message));
        }
        failure
    }

    /// What to wait for before [`Self::next`] has something.
    pub(super) fn fds(&self) -> [BorrowedFd<'_>; 2] {
        [self.socket.as_fd(), self.inbox.waker.as_fd()]
    }

    /// A connection whose caller has come to the end of its handshake, if there is one now; `make_room` is called
    /// before it is made.
    pub(super) fn next(&mut self, make_room: &mut dyn FnMut()) -> Result<Option<Socket>, Failure> {
        self.inbox.waker.drain();
        let found = self.look(make_room);
        if !self.inbox.is_empty() {
            // Whoever leaves more there will not wake.
            self.inbox.waker.wake();
        }
        found
    }

    fn look(&mut self, make_room: &mut dyn FnMut()) -> Result<Option<Socket>, Failure> {
        for _ in 0..LOOKS {
            let Some((from, datagram)) = self.next_datagram()? else {
                break;
            };
            match self
                .listening
                .handle(time::now_ns(), from, &datagram, &self.limits)
            {
                Heard::Nothing => {}
                Heard::Answer(answer) => self.answer(from, &answer),
                Heard::Wanted(call) if self.is_answered_again(from, &call) => {}
                Heard::Wanted(call) => {
                    make_room();
                    match self.admit(from, &call) {
                        Ok(socket) => return Ok(Some(socket)),
                        Err(failure) if failure.kind == FailureKind::Spec => return Err(failure),
                        // One caller's trouble is not the next one's, and this one asks again.
                        Err(failure) => self.trouble = Some(failure),
                    }
                }
            }
        }
        Ok(None)
    }

    /// Handshakes are all that is for a listener; what is longer is cut and is none.
    fn next_datagram(&self) -> Result<Option<(SocketAddr, Vec<u8>)>, Failure> {
        if let Some(parcel) = self.inbox.take() {
            return Ok(Some((parcel.from, parcel.bytes.into_vec())));
        }
        let mut buffer = [0; 2 * HANDSHAKE_BYTES];
        loop {
            match self.socket.recv_from(&mut buffer) {
                Ok((length, from)) => return Ok(Some((from, buffer[..length].to_vec()))),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                // An ICMP error of an answer to someone who is gone.
                Err(error) if is_slice(&error) || error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(Failure::system(&format!("UDT port {}", self.local), &error)),
            }
        }
    }

    /// One that is lost here is as one lost on the way: the caller asks again.
    fn answer(&self, to: SocketAddr, answer: &[u8; HANDSHAKE_BYTES]) {
        let _ = self.socket.send_to(answer, to);
    }

    /// Whether a caller has its connection already: then it has missed the answer.
    fn is_answered_again(&self, from: SocketAddr, call: &Handshake) -> bool {
        let is_same = |known: &&Answered| {
            known.from == from
                && known.socket == call.socket
                && known.initial_sequence == call.initial_sequence
        };
        let known = self.answered.iter().find(is_same);
        if let Some(known) = known {
            self.answer(from, &known.answer);
        }
        known.is_some()
    }

    /// Makes the connection for a caller that does not have it yet.
    fn admit(&mut self, from: SocketAddr, call: &Handshake) -> Result<Socket, Failure> {
        let port = Port::between(self.local, from, || self.connected(from))?;
        port.set_listener(&self.inbox);
        let setup = Setup::apply(&port.socket, &self.options)?;
        let member = Member::join(port)?;
        let offer = setup.offer(member.id, Some(call.initial_sequence.get()))?;
        let (agreed, answer) = Listening::accept(call, from.ip(), &offer);
        let driver = Driver::new(member, setup, (agreed, offer), &self.options)?;
        self.answer(from, &answer);
        if self.answered.len() == REMEMBERED {
            self.answered.pop_front();
        }
        self.answered.push_back(Answered {
            from,
            socket: call.socket,
            initial_sequence: call.initial_sequence,
            answer,
        });
        Ok(Socket::new(driver, &self.options))
    }

    /// A socket on this port for one caller. The kernel gives a datagram to the socket that is connected to where it
    /// comes from, and to this listener's otherwise.
    fn connected(&self, from: SocketAddr) -> Result<socket2::Socket, Failure> {
        let failed = |error: io::Error| Failure::system(&format!("UDT connection from {from}"), &error);
        let socket = bare_socket(self.local, &self.options)?;
        socket.set_reuse_port(true).map_err(failed)?;
        socket.bind(&self.local.into()).map_err(failed)?;
        connect_socket(&socket, &self.options.spec, from)?;
        self.take_misdelivered(UdpSocket::from(socket)).map_err(failed)
    }

    /// Between being bound and being connected a socket gets what others send to the port. Nothing that the caller
    /// sends is lost by this: it has no answer yet.
    fn take_misdelivered(&self, socket: UdpSocket) -> io::Result<socket2::Socket> {
        let mut buffer = [0; 2 * HANDSHAKE_BYTES];
        for _ in 0..LOOKS {
            match socket.recv_from(&mut buffer) {
                Ok((length, from)) => self.inbox.put(from, &buffer[..length], length.max(1)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => {}
            }
        }
        Ok(socket.into())
    }
}
