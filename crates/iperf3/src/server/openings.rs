//! UDP's openings: a datagram from nowhere asks for a socket of its own.
//!
//! The socket that listens stays as it is. One more is bound to the same port and connected to the sender; from then on the
//! kernel brings it what that sender sends. Between binding and connecting it may catch the openings of others, so that what it
//! has by then is looked at as well.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use farline_proto::iperf3::datagram::{REPLY, is_opening};
use farline_session::server::listen::{self, plain};
use farline_spec::Failure;
use socket2::{Domain, Protocol, Socket, Type};

use super::Shared;

/// Openings looked at before others have their turn.
const ROUND: usize = 64;
/// Longer than any opening, so that what is longer is not taken for one.
const ROOM: usize = 16;

/// The sockets on which openings come.
#[derive(Debug)]
pub struct Openings {
    sockets: Vec<UdpSocket>,
    order: u64,
}

impl Openings {
    /// Listens on UDP wherever `addresses` listen on TCP.
    ///
    /// # Errors
    /// [`FailureKind::System`](farline_spec::FailureKind::System) that names the address that cannot be had.
    pub fn bind(addresses: &[SocketAddr]) -> Result<Self, Failure> {
        let bind = |address: &SocketAddr| {
            let failed = |error: io::Error| listen::failed(format_args!("{address}/udp"), &error);
            bound(*address, address.ip().is_unspecified()).map_err(failed)
        };
        let sockets = addresses.iter().map(bind).collect::<Result<_, _>>()?;
        Ok(Self { sockets, order: 0 })
    }

    /// What to wait for.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sockets.iter().map(AsFd::as_fd)
    }

    /// Takes what has come and brings streams to their sessions.
    pub fn take(&mut self, shared: &Shared) {
        let mut peers: VecDeque<SocketAddr> = VecDeque::new();
        for socket in &self.sockets {
            peers.extend(openers(socket));
        }
        while let Some(peer) = peers.pop_front() {
            let Some(local) = shared.register.reached_at(peer.ip()) else {
                continue;
            };
            match open(local, peer, &mut peers) {
                Ok(socket) => self.deliver(shared, peer, socket),
                Err(error) => shared
                    .log
                    .trouble(Failure::system("opening a datagram stream", &error)),
            }
        }
    }

    fn deliver(&mut self, shared: &Shared, peer: SocketAddr, socket: UdpSocket) {
        self.order += 1;
        if socket.send(&REPLY).is_ok() {
            shared
                .register
                .deliver_datagrams(peer.ip(), self.order, socket.into());
        }
    }
}

/// A socket at `local` that is connected to `peer`. Openings of others that it caught go to `peers`.
fn open(local: SocketAddr, peer: SocketAddr, peers: &mut VecDeque<SocketAddr>) -> io::Result<UdpSocket> {
    let socket = bound(local, false)?;
    socket.connect(peer)?;
    peers.extend(openers(&socket).into_iter().filter(|other| *other != peer));
    Ok(socket)
}

/// A UDP socket that shares its port with others of this user.
fn bound(address: SocketAddr, is_dual: bool) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_port(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(!is_dual)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// Who asks for a stream on `socket`.
fn openers(socket: &UdpSocket) -> Vec<SocketAddr> {
    let mut peers = Vec::new();
    for _ in 0..ROUND {
        let mut room = [0; ROOM];
        match socket.recv_from(&mut room) {
            Ok((length, peer)) => peers.extend(is_opening(&room[..length]).then(|| plain(peer))),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(_) => break,
        }
    }
    peers
}
