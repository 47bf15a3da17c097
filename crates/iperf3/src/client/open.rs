//! Opens the streams of a run, one after the other: the server knows them by the order in which they come.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use farline_proto::iperf3::Cookie;
use farline_proto::iperf3::datagram::{OPENING, is_reply};
use farline_proto::iperf3::parameters::Parameters;
use farline_session::run::OpenStream;
use farline_spec::{AddressPair, Failure, FailureKind, RunSpec};
use farline_sys::option::{Family, forbid_fragments};
use farline_transport::{Connect, Role, Stream, StreamKey, connect_tcp};
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use super::datagrams::Datagrams;

/// How long an answer to an opening is waited for before it is sent again: a datagram may be lost.
const REPEAT: Duration = Duration::from_secs(1);

/// What all streams of a run have in common.
pub struct Opening<'a> {
    /// The spec.
    pub spec: &'a RunSpec,
    /// What the server was told.
    pub wanted: &'a Parameters,
    /// The server.
    pub server: SocketAddr,
    /// Names the session.
    pub cookie: &'a Cookie,
    /// When to give up.
    pub deadline: Instant,
}

impl Opening<'_> {
    /// All streams: those on which this end sends come first.
    ///
    /// # Errors
    /// [`FailureKind::Interrupted`] once `unwanted` says so, and what the kernel and the path make of it.
    pub fn streams(&self, unwanted: &dyn Fn() -> bool) -> Result<Vec<OpenStream>, Failure> {
        let numbers = 0..u16::try_from(self.wanted.total()).unwrap_or(u16::MAX);
        let open = |stream: u16| {
            if unwanted() {
                return Err(Failure::new(
                    FailureKind::Interrupted,
                    "stopped while streams were opened",
                ));
            }
            self.stream(stream)
        };
        numbers.map(open).collect()
    }

    fn stream(&self, stream: u16) -> Result<OpenStream, Failure> {
        let is_sender = usize::from(stream) < self.wanted.forward();
        let role = if is_sender { Role::Sender } else { Role::Receiver };
        let cpus = &self.spec.client_cpus;
        let cpu = usize::from(stream)
            .checked_rem(cpus.len())
            .map(|place| cpus[place]);
        let io = if self.wanted.is_udp() {
            self.udp(stream, role)?
        } else {
            self.tcp(stream, role)?
        };
        Ok(OpenStream {
            stream,
            role,
            cpu,
            io,
        })
    }

    fn pair(&self, stream: u16) -> AddressPair {
        let pairs = &self.spec.pairs;
        let place = usize::from(stream % self.spec.streams.get()).checked_rem(pairs.len());
        place.map(|place| pairs[place].clone()).unwrap_or_default()
    }

    fn tcp(&self, stream: u16, role: Role) -> Result<Stream, Failure> {
        let pair = self.pair(stream);
        let key = StreamKey {
            stream,
            session: [0; 16],
            proof: [0; 32],
        };
        let request = Connect {
            spec: self.spec,
            role,
            source: pair.source,
            source_device: pair.source_device.as_deref(),
            remote: self.server,
            key: &key,
            deadline: self.deadline,
        };
        connect_tcp(&request, self.cookie)
    }

    fn udp(&self, stream: u16, role: Role) -> Result<Stream, Failure> {
        let socket = self.udp_socket(&self.pair(stream))?;
        self.greet(&socket)?;
        let datagrams = Datagrams::new(socket, self.spec, self.wanted, role, stream)?;
        Ok(match role {
            Role::Sender => Stream::Source(Box::new(datagrams)).at_rate(self.wanted.rate_bps, role),
            Role::Receiver => Stream::Sink(Box::new(datagrams)),
        })
    }

    fn udp_socket(&self, pair: &AddressPair) -> Result<UdpSocket, Failure> {
        let failed = |what: &str, error: &io::Error| Failure::system(&format!("UDP stream: {what}"), error);
        let socket = Socket::new(Domain::for_address(self.server), Type::DGRAM, Some(Protocol::UDP))
            .map_err(|error| failed("socket", &error))?;
        let udp = self.spec.udp.clone().unwrap_or_default();
        let set = |bytes: Option<u64>, set: &dyn Fn(usize) -> io::Result<()>| {
            bytes.map_or(Ok(()), |bytes| set(bytes as usize))
        };
        set(udp.send_buffer_bytes.map(|bytes| bytes.get()), &|bytes| {
            socket.set_send_buffer_size(bytes)
        })
        .map_err(|error| failed("send buffer", &error))?;
        set(udp.receive_buffer_bytes.map(|bytes| bytes.get()), &|bytes| {
            socket.set_recv_buffer_size(bytes)
        })
        .map_err(|error| failed("receive buffer", &error))?;
        let family = if self.server.is_ipv4() {
            Family::V4
        } else {
            Family::V6
        };
        if udp.dont_fragment {
            forbid_fragments(socket.as_fd(), family)
                .map_err(|error| failed("forbidding fragments", &error))?;
        }
        if let Some(tos) = self.spec.tos {
            let tos = u32::from(tos.get());
            let set = if self.server.is_ipv4() {
                socket.set_tos_v4(tos)
            } else {
                socket.set_tclass_v6(tos)
            };
            set.map_err(|error| failed("type of service", &error))?;
        }
        if let Some(device) = &pair.source_device {
            socket
                .bind_device(Some(device.as_bytes()))
                .map_err(|error| failed(device, &error))?;
        }
        if let Some(source) = pair.source {
            let local = SocketAddr::new(source, 0);
            socket
                .bind(&local.into())
                .map_err(|error| failed(&format!("binding to {source}"), &error))?;
        }
        socket
            .connect(&self.server.into())
            .map_err(|error| failed("connecting", &error))?;
        Ok(socket.into())
    }

    /// Says that a stream is there, until the server has said that it knows.
    fn greet(&self, socket: &UdpSocket) -> Result<(), Failure> {
        let mut answer = [0; 16];
        let failed = |error: &io::Error| {
            Failure::new(FailureKind::Unreachable, format!("{}/udp: {error}", self.server))
        };
        let wait = |left: Duration| SockRef::from(socket).set_read_timeout(Some(left.min(REPEAT)));
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let line = format!(
                    "{}/udp: the server did not answer the first datagram; is UDP let through?",
                    self.server
                );
                return Err(Failure::new(FailureKind::Timeout, line));
            }
            wait(left).map_err(|error| failed(&error))?;
            socket.send(&OPENING).map_err(|error| failed(&error))?;
            match socket.recv(&mut answer) {
                Ok(length) if is_reply(&answer[..length]) => return Ok(()),
                // Data that overtook the answer: the server knows.
                Ok(_) => return Ok(()),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                }
                Err(error) => return Err(failed(&error)),
            }
        }
    }
}
