//! Waits for the streams of one session on a port that others may wait on too.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use farline_spec::{Failure, RunSpec};
use quinn_proto::{Incoming, ServerConfig};
use socket2::{Protocol, Socket, Type};
use tracing::debug;

use super::link::Link;
use super::opening::name_of;
use super::options::{check, cipher_of, most_packet_bytes, options_of, set_buffers, transport_config};
use super::port::{Core, Port, PortUse};
use super::stream::QuicStream;
use super::tls::of_listener;
use crate::failure::timed_out;
use crate::generated::over;
use crate::socket::{bound_socket, family, open as open_socket, time_left};
use crate::{Listener, Role, Stream, StreamKey};

/// Longest wait between two looks.
const LOOK: Duration = Duration::from_millis(10);
/// Time for an opener to come to the end of its handshake.
const OPENING_TIME: Duration = Duration::from_secs(10);
/// Openers that may be half-way through besides the streams that are expected.
const MAX_STRANGERS: usize = 64;

/// Waits for the streams of one session.
pub(super) struct QuicListener {
    port: PortUse,
    opening: Vec<Opening>,
}

/// A connection that has proved nothing yet.
struct Opening {
    stream: u16,
    link: Arc<Link>,
    since: Instant,
}

impl QuicListener {
    /// Waits on `local`, one address; port 0 is the kernel's choice.
    ///
    /// # Errors
    /// `Busy` when another process has the port, `Spec` when the address is not one of this host.
    pub(super) fn bind(local: SocketAddr, spec: &RunSpec) -> Result<Self, Failure> {
        check(spec)?;
        let port = Port::of_listener(local, spec, || {
            let socket = bound_socket(local, spec, false)?;
            set_buffers(&socket, spec)?;
            Ok(socket)
        })?;
        Ok(Self {
            port,
            opening: Vec::new(),
        })
    }

    /// Lets in who asks for a stream of `expected`.
    fn admit(&mut self, core: &mut Core, spec: &RunSpec, expected: &[StreamKey]) -> Result<(), Failure> {
        let known = |id: &[u8]| expected.iter().find(|key| id.starts_with(&name_of(key)));
        while self.opening.len() < MAX_STRANGERS + expected.len() {
            let Some((incoming, key)) = core.take_caller(known) else {
                break;
            };
            if let Some(link) = self.answer(core, incoming, spec, key)? {
                self.opening.push(Opening {
                    stream: key.stream,
                    link,
                    since: Instant::now(),
                });
            }
        }
        Ok(())
    }

    /// A connection for a caller under the keys of its stream.
    fn answer(
        &self,
        core: &mut Core,
        incoming: Incoming,
        spec: &RunSpec,
        key: &StreamKey,
    ) -> Result<Option<Arc<Link>>, Failure> {
        let remote = incoming.remote_address();
        let most = packet_bytes_to(remote, spec);
        let tls = of_listener(&key.proof, cipher_of(spec))?;
        let mut config = ServerConfig::with_crypto(Arc::new(tls));
        config.transport_config(transport_config(spec, most));
        let mut answer = Vec::new();
        let accepted = core
            .endpoint
            .accept(incoming, Instant::now(), &mut answer, Some(Arc::new(config)));
        match accepted {
            Ok(accepted) => {
                let window = options_of(spec).window_bytes.get();
                Ok(Some(Link::join(self.port.port(), core, accepted, window)))
            }
            Err(refusal) => {
                debug!(peer = %remote, reason = %refusal.cause, "QUIC caller refused");
                if let Some(transmit) = refusal.response {
                    self.port.io.send(&transmit, &answer);
                }
                Ok(None)
            }
        }
    }

    /// One of those half-way through that has been opened, even if it has been closed since: whoever reads it is told.
    /// Those that failed before, or take too long, are forgotten.
    fn next_open(&mut self) -> Option<(u16, Arc<Link>)> {
        let mut index = 0;
        while let Some(opening) = self.opening.get(index) {
            let (is_open, loss) = opening.link.peek(|state| (state.is_open, state.loss()));
            let is_late = opening.since.elapsed() > OPENING_TIME;
            if let (Some(failure), false) = (&loss, is_open) {
                debug!(
                    reason = failure.message,
                    "connection refused: it is no stream of this session"
                );
            }
            match (loss.is_some() || is_late, is_open) {
                (false, false) => index += 1,
                (true, false) => self.opening.remove(index).link.close(),
                (_, true) => {
                    let opening = self.opening.remove(index);
                    return Some((opening.stream, opening.link));
                }
            }
        }
        None
    }
}

/// What the first hop to `remote` takes.
fn packet_bytes_to(remote: SocketAddr, spec: &RunSpec) -> u16 {
    let connected = || -> std::io::Result<Socket> {
        let socket = open_socket(remote, Type::DGRAM, Some(Protocol::UDP))?;
        socket.connect(&remote.into())?;
        Ok(socket)
    };
    // Without a way there the handshake fails by itself.
    connected().map_or(1200, |socket| most_packet_bytes(&socket, family(remote), spec))
}

impl Listener for QuicListener {
    fn local_addr(&self) -> SocketAddr {
        self.port.local
    }

    fn accept(
        &mut self,
        spec: &RunSpec,
        expected: &[StreamKey],
        role_of: &dyn Fn(u16) -> Role,
        deadline: Instant,
    ) -> Result<(u16, Stream), Failure> {
        let port = Arc::clone(self.port.port());
        let (number, link) = loop {
            let before = self.opening.len();
            self.admit(&mut port.core(), spec, expected)?;
            // What has been admitted answers at once.
            self.opening[before.min(self.opening.len())..]
                .iter()
                .for_each(|opening| opening.link.look_after());
            if let Some(open) = self.next_open() {
                break open;
            }
            let Some(left) = time_left(deadline) else {
                return Err(timed_out(format!("data port {}", port.local)));
            };
            port.wait_for_change(port.core(), left.min(LOOK));
        };
        let role = role_of(number);
        let stream = QuicStream::new(link, self.port.again(), spec, role, port.local)?;
        let rate_bps = spec.rate_bps.map_or(0, |rate| rate.get());
        Ok((
            number,
            over(Box::new(stream), spec, role, number).at_rate(rate_bps, role),
        ))
    }
}

impl Drop for QuicListener {
    fn drop(&mut self) {
        self.opening.iter().for_each(|opening| opening.link.close());
    }
}
