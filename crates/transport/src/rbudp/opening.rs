//! Opening a stream: two sockets that belong together, datagrams that fit both ends, a look at the path.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use farline_proto::rbudp::train::advice;
use farline_spec::{Failure, FailureKind, RunSpec, SharedPath};
use farline_sys::option::bind_address_without_port;
use farline_sys::wake::poll_readable;
use socket2::{Protocol, Socket, Type};

use super::feedback::{Feedback, rtt_ns};
use super::options::{Setup, check, options_of};
use super::parts::Parts;
use super::path_check::{CheckPlan, measure};
use super::stream::RbudpStream;
use crate::failure::{is_slice, timed_out, while_connecting};
use crate::preamble;
use crate::socket::{
    SLICE, bind_source, canonical, family, labelled, open as open_socket, set_tos, time_left,
};
use crate::{Connect, Role, Stream, StreamKey};

/// Time between two hellos at first; it doubles up to [`SLOWEST`].
const FASTEST: Duration = Duration::from_millis(25);
const SLOWEST: Duration = Duration::from_millis(400);
/// Length of an offer: mark, version, and the UDP payload of a datagram that fits here.
const OFFER_BYTES: usize = 8;
const OFFER: [u8; 4] = *b"RB\0\x01";

/// Opens the stream that `request` names.
pub(super) fn open(request: &Connect<'_>) -> Result<Stream, Failure> {
    let remote = canonical(request.remote);
    check(request.spec)?;
    let tcp = connected(request, remote, Type::STREAM, Protocol::TCP)?;
    (&tcp)
        .write_all(&preamble::encode(request.key))
        .map_err(|error| while_connecting(remote, &error))?;
    let udp = connected(request, remote, Type::DGRAM, Protocol::UDP)?;
    greet(&tcp, &udp, request, remote)?;
    let opened = Opened {
        tcp: tcp.into(),
        udp,
        is_client: true,
    };
    opened.finish(request.spec, request.role, request.key, request.deadline)
}

fn connected(
    request: &Connect<'_>,
    remote: SocketAddr,
    kind: Type,
    protocol: Protocol,
) -> Result<Socket, Failure> {
    let socket = open_socket(remote, kind, Some(protocol))
        .map_err(|error| Failure::system(&format!("{protocol:?} socket"), &error))?;
    set_tos(&socket, request.spec, family(remote))?;
    if kind == Type::STREAM {
        // Saves ports when many streams leave from one address; without it they are only fewer.
        let _ = bind_address_without_port(socket.as_fd());
    }
    bind_source(&socket, request, remote)?;
    let target = labelled(&socket, request.spec, remote)?;
    let left = time_left(request.deadline).ok_or_else(|| timed_out(format!("data stream to {remote}")))?;
    let result = if kind == Type::STREAM {
        socket.connect_timeout(&target, left)
    } else {
        socket.connect(&target)
    };
    result.map_err(|error| while_connecting(remote, &error))?;
    Ok(socket)
}

/// Says hello by datagrams until the other end answers on the connection.
fn greet(tcp: &Socket, udp: &Socket, request: &Connect<'_>, remote: SocketAddr) -> Result<(), Failure> {
    let hello = preamble::encode(request.key);
    let mut every = FASTEST;
    loop {
        let left = time_left(request.deadline).ok_or_else(|| {
            let line =
                format!("data stream to {remote}: no datagram arrived: check that UDP to its data port is allowed by the firewall");
            Failure::new(FailureKind::Timeout, line)
        })?;
        match udp.send(&hello) {
            // The port may not be open for datagrams yet, and a hello that is lost is sent again.
            Err(error) if error.kind() != io::ErrorKind::ConnectionRefused && !is_slice(&error) => {
                return Err(while_connecting(remote, &error));
            }
            _ => {}
        }
        let failed = |error| while_connecting(remote, &error);
        if poll_readable(&[tcp.as_fd()], Some(every.min(left))).map_err(failed)?[0] {
            return Ok(());
        }
        every = (every * 2).min(SLOWEST);
    }
}

/// Two sockets whose other ends have proved to be one stream's.
pub(super) struct Opened {
    /// The connection, blocking, its preamble read or written.
    pub(super) tcp: TcpStream,
    /// Connected to the other end's socket.
    pub(super) udp: Socket,
    /// Whether this is the end that has the client's file.
    pub(super) is_client: bool,
}

impl Opened {
    /// Agrees with the other end and makes the stream.
    ///
    /// # Errors
    /// `Spec` for what cannot be honoured here, `Timeout`, `Protocol`, and `Unreachable` when the path is not to be
    /// shared but is.
    pub(super) fn finish(
        mut self,
        spec: &RunSpec,
        role: Role,
        key: &StreamKey,
        deadline: Instant,
    ) -> Result<Stream, Failure> {
        let failed = |error: io::Error| Failure::system("data stream", &error);
        self.tcp.set_nodelay(true).map_err(failed)?;
        for set in [TcpStream::set_read_timeout, TcpStream::set_write_timeout] {
            set(&self.tcp, Some(SLICE)).map_err(failed)?;
        }
        let mut setup = Setup::apply(&self.udp, spec, role)?;
        let other_bytes = self.exchange_offers(setup.datagram_bytes, deadline)?;
        let rate_bps = spec.rate_bps.map_or(0, |rate| rate.get());
        setup.agree(other_bytes, rate_bps)?;
        let token = token_of(key);
        let rtt_ns = rtt_ns(self.tcp.as_fd());
        let check = self.check_path(spec, role, key.stream, &setup, (token, rtt_ns), deadline)?;
        if let Some(line) = check.as_ref().and_then(advice) {
            if options_of(spec).shared_path == SharedPath::Refuse {
                return Err(Failure::new(
                    FailureKind::Unreachable,
                    format!("rbudp.shared_path: {line}"),
                ));
            }
            setup.notes.push(line);
        }
        let parts = Parts {
            udp: self.udp,
            feedback: Feedback::new(self.tcp, max_packets(spec, &setup))?,
            setup,
            token,
            rtt_ns,
            check,
            is_client: self.is_client,
        };
        RbudpStream::open(parts, spec, role, key.stream)
    }

    fn exchange_offers(&mut self, datagram_bytes: usize, deadline: Instant) -> Result<usize, Failure> {
        let mut offer = [0; OFFER_BYTES];
        offer[..4].copy_from_slice(&OFFER);
        // A datagram is at most 65,507 bytes.
        offer[4..].copy_from_slice(&(datagram_bytes as u32).to_be_bytes());
        self.tcp
            .write_all(&offer)
            .map_err(|error| Failure::system("data stream", &error))?;
        let mut theirs = [0; OFFER_BYTES];
        read_exact(&mut self.tcp, &mut theirs, deadline)?;
        let [mark @ .., a, b, c, d] = theirs;
        if mark != OFFER {
            let line = format!("data stream: an offer that starts with {mark:02x?}; expected {OFFER:02x?}");
            return Err(Failure::new(FailureKind::Protocol, line));
        }
        Ok(u32::from_be_bytes([a, b, c, d]) as usize)
    }

    /// Looks at the path on the first stream of each pair of addresses.
    fn check_path(
        &mut self,
        spec: &RunSpec,
        role: Role,
        stream: u16,
        setup: &Setup,
        (token, rtt_ns): (u32, u64),
        deadline: Instant,
    ) -> Result<Option<farline_spec::PathCheck>, Failure> {
        let streams = spec.streams.get();
        let pairs = u16::try_from(spec.pairs.len().max(1)).unwrap_or(u16::MAX);
        let place = stream % streams;
        // Beside streams that run already it would measure those, and disturb them.
        let is_late = usize::from(stream) >= spec.stream_total();
        if options_of(spec).shared_path == SharedPath::Allow || place >= pairs || is_late {
            return Ok(None);
        }
        let on_this_pair = (place..streams).step_by(usize::from(pairs)).count() as u64;
        let plan = CheckPlan {
            rate_bps: spec.rate_bps.map_or(0, |rate| rate.get()) * on_this_pair,
            packet_bytes: setup.datagram_bytes,
            token,
            rtt_hint_us: rtt_ns / 1_000,
        };
        measure(&mut self.tcp, &self.udp, role, &plan, deadline).map(Some)
    }
}

/// Reads exactly what `buffer` holds.
///
/// # Errors
/// `Timeout` at `deadline`, `Protocol` when the other end closes.
fn read_exact(tcp: &mut TcpStream, buffer: &mut [u8], deadline: Instant) -> Result<(), Failure> {
    let mut filled = 0;
    while filled < buffer.len() {
        if time_left(deadline).is_none() {
            return Err(timed_out("opening a data stream"));
        }
        match tcp.read(&mut buffer[filled..]) {
            Ok(0) => {
                let line = "data stream: the other end closed it while it was being opened";
                return Err(Failure::new(FailureKind::Protocol, line));
            }
            Ok(count) => filled += count,
            Err(error) if is_slice(&error) => {}
            Err(error) => return Err(Failure::system("data stream", &error)),
        }
    }
    Ok(())
}

/// Packets of a full blast.
fn max_packets(spec: &RunSpec, setup: &Setup) -> u32 {
    let packets = options_of(spec)
        .payload_bytes
        .get()
        .div_ceil(setup.packet_bytes() as u64);
    u32::try_from(packets).unwrap_or(u32::MAX)
}

/// Marks the datagrams of one stream; only who knows the proof can make it.
pub(super) fn token_of(key: &StreamKey) -> u32 {
    let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &key.proof);
    let tag = ring::hmac::sign(&secret, b"farline rbudp datagram");
    let tag = tag.as_ref();
    u32::from_be_bytes([tag[0], tag[1], tag[2], tag[3]])
}
