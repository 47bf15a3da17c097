//! Opens a stream from this end.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use farline_spec::{Failure, FailureKind};
use quinn_proto::{ClientConfig, ConnectionId};
use ring::rand::{SecureRandom, SystemRandom};
use socket2::{Protocol, Socket, Type};
use tracing::debug;

use super::link::Link;
use super::options::{check, cipher_of, most_packet_bytes, options_of, set_buffers, transport_config};
use super::port::Port;
use super::stream::QuicStream;
use super::tls::{SERVER_NAME, of_opener};
use crate::failure::{timed_out, while_connecting};
use crate::generated::over;
use crate::socket::{bind_source, canonical, family, open as open_socket};
use crate::{Connect, Stream, StreamKey};

/// Time between two looks whether anybody is there.
const KNOCK: Duration = Duration::from_millis(100);
/// Bytes of a connection id that name a stream: session, stream.
pub(super) const NAME_BYTES: usize = 18;
/// Bytes behind them by which tries differ: one that failed, or a stranger's, does not stand in the way of the next.
const TRY_BYTES: usize = 2;

/// The connection id under which the stream of `key` is asked for; it tells a port whose it is, and proves nothing. What is
/// chosen by chance in it is the session (RFC 9000, section 7.2: at least 8 bytes that cannot be foretold).
pub(super) fn name_of(key: &StreamKey) -> [u8; NAME_BYTES] {
    let mut name = [0; NAME_BYTES];
    name[..16].copy_from_slice(&key.session);
    name[16..].copy_from_slice(&key.stream.to_be_bytes());
    name
}

fn id_of(key: &StreamKey) -> Result<ConnectionId, Failure> {
    let mut id = [0; NAME_BYTES + TRY_BYTES];
    id[..NAME_BYTES].copy_from_slice(&name_of(key));
    SystemRandom::new()
        .fill(&mut id[NAME_BYTES..])
        .map_err(|_| Failure::new(FailureKind::System, "random numbers: none to be had"))?;
    Ok(ConnectionId::new(&id))
}

/// Opens the stream that `request` names.
pub(super) fn open(request: &Connect<'_>) -> Result<Stream, Failure> {
    let (spec, key, remote) = (request.spec, request.key, canonical(request.remote));
    check(spec)?;
    let knock = Knock::new(request, remote)?;
    let port = Port::of_opener(opener_socket(request, remote)?)?;
    let local = SocketAddr::new(knock.local()?, port.local.port());
    let most = most_packet_bytes(&knock.socket, family(remote), spec);
    let mut config = ClientConfig::new(Arc::new(of_opener(&key.proof, cipher_of(spec))?));
    config.transport_config(transport_config(spec, most));
    let id = id_of(key)?;
    config.initial_dst_cid_provider(Arc::new(move || id));
    let link = {
        let mut core = port.core();
        let connected = core.endpoint.connect(Instant::now(), config, remote, SERVER_NAME);
        let connected = connected.map_err(|error| {
            Failure::new(FailureKind::Internal, format!("data stream to {remote}: {error}"))
        })?;
        Link::join(
            port.port(),
            &mut core,
            connected,
            options_of(spec).window_bytes.get(),
        )
    };
    let opened = wait_until_open(&link, &knock, request.deadline, remote);
    if opened.is_err() {
        link.close();
    }
    opened?;
    debug!(local = %local, remote = %remote, "QUIC connected");
    let stream = QuicStream::new(link, port, spec, request.role, local)?;
    let rate_bps = spec.rate_bps.map_or(0, |rate| rate.get());
    Ok(over(Box::new(stream), spec, request.role, key.stream).at_rate(rate_bps, request.role))
}

/// The socket of a stream. It is not connected: where the host gets another address it goes on from there.
fn opener_socket(request: &Connect<'_>, remote: SocketAddr) -> Result<Socket, Failure> {
    let failed = |error| Failure::system("UDP socket", &error);
    let socket = open_socket(remote, Type::DGRAM, Some(Protocol::UDP)).map_err(failed)?;
    set_buffers(&socket, request.spec)?;
    bind_source(&socket, request, remote)?;
    if request.source.is_none() {
        let any: IpAddr = match remote {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        socket.bind(&SocketAddr::new(any, 0).into()).map_err(failed)?;
    }
    Ok(socket)
}

fn wait_until_open(link: &Link, knock: &Knock, deadline: Instant, remote: SocketAddr) -> Result<(), Failure> {
    let mut next_knock = Instant::now();
    loop {
        let (is_open, loss) = link.with(|state| (state.is_open, state.loss()));
        if let Some(failure) = loss {
            return Err(Failure {
                message: format!("{remote}: {}", failure.message),
                ..failure
            });
        }
        if is_open {
            return Ok(());
        }
        let now = Instant::now();
        if now >= deadline {
            return Err(timed_out(format!("QUIC connection to {remote}")));
        }
        if now >= next_knock {
            knock.knock(remote)?;
            next_knock = now + KNOCK;
        }
        link.wait(deadline.min(next_knock));
    }
}

/// A connected socket beside that of the stream: the kernel tells it by which address the path begins, how large a packet
/// may be there, and when nobody has the port.
struct Knock {
    socket: Socket,
}

impl Knock {
    fn new(request: &Connect<'_>, remote: SocketAddr) -> Result<Self, Failure> {
        let failed = |error| Failure::system("UDP socket", &error);
        let socket = open_socket(remote, Type::DGRAM, Some(Protocol::UDP)).map_err(failed)?;
        bind_source(&socket, request, remote)?;
        socket.set_nonblocking(true).map_err(failed)?;
        socket
            .connect(&remote.into())
            .map_err(|error| while_connecting(remote, &error))?;
        Ok(Self { socket })
    }

    fn local(&self) -> Result<IpAddr, Failure> {
        let local = self.socket.local_addr();
        let local = local.map_err(|error| Failure::system("UDP socket", &error))?;
        Ok(local
            .as_socket()
            .map_or(Ipv4Addr::UNSPECIFIED.into(), |local| local.ip()))
    }

    /// Sends a byte that is no packet of QUIC, so that whoever has the port drops it (RFC 9000, section 17.2: the fixed bit).
    ///
    /// # Errors
    /// `Unreachable` when a byte before has come back: nobody has the port.
    fn knock(&self, remote: SocketAddr) -> Result<(), Failure> {
        match self.socket.send(&[0]) {
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                Err(while_connecting(remote, &error))
            }
            _ => Ok(()),
        }
    }
}
