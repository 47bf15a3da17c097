//! The client opens all connections, in reverse too: that works through address translation.

use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use farline_spec::{AddressPair, Failure, FailureKind, IpVersion, RunSpec};
use farline_sys::wake::{Interest, poll_ready};
use farline_transport::{Connect, StreamKey, transport_for};
use socket2::{Domain, Protocol, Socket, Type};
use tracing::{Span, debug, error_span};

use crate::message::Listeners;
use crate::run::OpenStream;
use crate::run_controller::LateSink;
use crate::streams::{End, Part, cpu, own_spec, pair, part, role};
use crate::target::Target;

/// Pauses before a connection that a server closed without a word is tried again.
const BUSY_PAUSES: [Duration; 3] = [
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_millis(600),
];
/// How often such a pause looks whether the run is still wanted.
const BUSY_LOOK: Duration = Duration::from_millis(10);
/// Streams that are being opened at once: each costs a round trip or more, in which its thread only waits.
const WORKERS: usize = 128;
/// How often a wait for a connection looks whether it is still wanted.
const SLICE: Duration = Duration::from_millis(50);
/// EINPROGRESS, which std has no name for on stable.
const IN_PROGRESS: i32 = 115;

/// A connection to a server on which nothing has been said, and what making it told about the path.
#[derive(Debug)]
pub struct Contact {
    /// The connection.
    pub(super) socket: TcpStream,
    /// How long the server's host took to answer: the round-trip time of the path.
    pub rtt: Duration,
}

impl Contact {
    /// Connects within `timeout`.
    ///
    /// # Errors
    /// [`FailureKind::Unreachable`] with the last address's reason, and [`FailureKind::Timeout`].
    pub fn make(target: &Target, version: IpVersion, timeout: Duration) -> Result<Self, Failure> {
        Self::make_unless(target, version, timeout, &|| false)
    }

    /// As [`Self::make`], for as long as `unwanted` does not say otherwise.
    ///
    /// # Errors
    /// As [`Self::make`], and [`FailureKind::Interrupted`].
    pub fn make_unless(
        target: &Target,
        version: IpVersion,
        timeout: Duration,
        unwanted: &dyn Fn() -> bool,
    ) -> Result<Self, Failure> {
        control(target, version, Instant::now() + timeout, unwanted)
    }

    /// The connection, which does not block.
    pub fn into_socket(self) -> TcpStream {
        self.socket
    }

    /// The address of this end.
    pub fn local_address(&self) -> Option<IpAddr> {
        self.socket.local_addr().ok().map(|address| address.ip())
    }
}

/// Connects the control channel: every address of the name in turn, each with its share of the time left.
///
/// Looking the name up takes as long as the system's resolver lets it.
///
/// # Errors
/// [`FailureKind::Unreachable`] with the last address's reason, [`FailureKind::Timeout`], and
/// [`FailureKind::Interrupted`] once `unwanted` says so.
pub(super) fn control(
    target: &Target,
    version: IpVersion,
    deadline: Instant,
    unwanted: &dyn Fn() -> bool,
) -> Result<Contact, Failure> {
    let addresses = resolve(target, version)
        .inspect_err(|failure| debug!(host = target.host, reason = failure.message, "no address found"))?;
    debug!(host = target.host, addresses = ?addresses, "addresses found");
    let mut last = None;
    for (tried, &address) in addresses.iter().enumerate() {
        let left = deadline.saturating_duration_since(Instant::now());
        let share = left / u32::try_from(addresses.len() - tried).unwrap_or(1);
        let began = Instant::now();
        debug!(address = %address, allowed_s = share.as_secs_f64(), "connecting");
        let connected = connect(address, began + share, unwanted)
            .inspect_err(|failure| debug!(address = %address, reason = failure.message, "not connected"));
        match connected {
            Ok(socket) => {
                let rtt = began.elapsed();
                debug!(address = %address, rtt_us = rtt.as_micros() as u64, "connected");
                return Ok(Contact { socket, rtt });
            }
            Err(failure) if failure.kind == FailureKind::Interrupted => return Err(failure),
            Err(failure) => last = Some(failure),
        }
    }
    Err(last.unwrap_or_else(|| unreachable(&target.address(), "has no address")))
}

fn resolve(target: &Target, version: IpVersion) -> Result<Vec<SocketAddr>, Failure> {
    let found = (target.host.as_str(), target.port).to_socket_addrs();
    let found = found.map_err(|error| {
        let text = error.to_string();
        let why = text.rsplit(": ").next().unwrap_or(&text);
        let line = format!("this name has no address ({why}); check its spelling, or give an address");
        unreachable(&target.host, &line)
    })?;
    let wanted: Vec<_> = found
        .filter(|address| match version {
            IpVersion::Any => true,
            IpVersion::V4 => address.is_ipv4(),
            IpVersion::V6 => address.is_ipv6(),
        })
        .collect();
    match version {
        _ if !wanted.is_empty() => Ok(wanted),
        IpVersion::V4 => Err(unreachable(
            &target.host,
            "has no IPv4 address, but IPv4 alone was chosen",
        )),
        IpVersion::V6 => Err(unreachable(
            &target.host,
            "has no IPv6 address, but IPv6 alone was chosen",
        )),
        IpVersion::Any => Err(unreachable(&target.host, "has no address")),
    }
}

fn connect(
    address: SocketAddr,
    deadline: Instant,
    unwanted: &dyn Fn() -> bool,
) -> Result<TcpStream, Failure> {
    let refused = |error: &std::io::Error| connect_failure(address, error);
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP));
    let socket = socket.map_err(|error| Failure::system("control socket", &error))?;
    socket
        .set_nonblocking(true)
        .map_err(|error| Failure::system("control socket", &error))?;
    match socket.connect(&address.into()) {
        Err(error) if error.raw_os_error() != Some(IN_PROGRESS) => return Err(refused(&error)),
        _ => {}
    }
    while !poll_ready(&[(socket.as_fd(), Interest::Writable)], Some(SLICE)).is_ok_and(|ready| ready[0]) {
        if unwanted() {
            return Err(Failure::new(FailureKind::Interrupted, "stopped while connecting"));
        }
        if Instant::now() >= deadline {
            let line = format!("{address}: no answer within the connect timeout");
            return Err(Failure::new(FailureKind::Timeout, line));
        }
    }
    match socket.take_error() {
        Ok(None) => Ok(socket.into()),
        Ok(Some(error)) | Err(error) => Err(refused(&error)),
    }
}

/// A refusal of the path is the path's; one of this machine (no descriptor, no permission) its own.
fn connect_failure(address: SocketAddr, error: &std::io::Error) -> Failure {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::TimedOut => Failure::new(FailureKind::Timeout, format!("{address}: {error}")),
        ErrorKind::PermissionDenied | ErrorKind::OutOfMemory | ErrorKind::AddrNotAvailable => {
            Failure::system(&format!("connecting to {address}"), error)
        }
        ErrorKind::ConnectionRefused => unreachable(
            &address.to_string(),
            "connection refused: nothing listens on this port; start the server on that host, or check the port",
        ),
        ErrorKind::InvalidInput if lacks_interface(address) => {
            let line = format!(
                "{address}: a link-local address needs its interface: [{}%eth0]",
                address.ip()
            );
            Failure::new(FailureKind::Usage, line)
        }
        _ => unreachable(&address.to_string(), &error.to_string()),
    }
}

/// Whether each link has an address like this, and nothing says which link is meant.
fn lacks_interface(address: SocketAddr) -> bool {
    matches!(address, SocketAddr::V6(one) if one.ip().is_unicast_link_local() && one.scope_id() == 0)
}

fn unreachable(what: &str, why: &str) -> Failure {
    Failure::new(FailureKind::Unreachable, format!("{what}: {why}"))
}

/// Everything that opening the data streams needs.
pub struct StreamPlan {
    /// The spec as granted.
    pub spec: RunSpec,
    /// Names and proofs, in the order of the streams.
    pub keys: Vec<StreamKey>,
    /// Whose they are and where they go.
    pub way: Way,
    /// When to give up.
    pub deadline: Instant,
}

/// Which end opens the streams.
pub enum Way {
    /// The client, to where the server listens.
    ToServer {
        /// Where the control channel goes.
        server: SocketAddr,
        /// Where the server listens.
        listeners: Listeners,
    },
    /// The server, to the one port on which the client listens.
    ToClient(SocketAddr),
}

impl Way {
    const fn end(&self) -> End {
        match self {
            Self::ToServer { .. } => End::Client,
            Self::ToClient(_) => End::Server,
        }
    }
}

impl StreamPlan {
    /// Opens all streams, some at a time, so that a long path costs few round trips.
    ///
    /// # Errors
    /// The first stream's that fails; the others are closed.
    pub fn open(&self, cancelled: &AtomicBool) -> Result<Vec<OpenStream>, Failure> {
        let next = AtomicUsize::new(0);
        let opened = Mutex::new(Ok(Vec::with_capacity(self.keys.len())));
        let session = Span::current();
        std::thread::scope(|scope| {
            for _ in 0..WORKERS.min(self.keys.len()) {
                scope.spawn(|| session.in_scope(|| self.work(&next, &opened, cancelled)));
            }
        });
        let mut streams = opened
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner)?;
        streams.sort_by_key(|open: &OpenStream| open.stream);
        Ok(streams)
    }

    /// As [`Self::open`], of streams that come while a copy runs: each is put into `sink` as it is open, and one that fails
    /// closes no other.
    pub fn open_late(&self, cancelled: &AtomicBool, sink: &LateSink) {
        let next = AtomicUsize::new(0);
        let session = Span::current();
        let work = || {
            while !cancelled.load(Ordering::Acquire) {
                let Some(key) = self.keys.get(next.fetch_add(1, Ordering::Relaxed)) else {
                    return;
                };
                sink.put(self.open_one(key));
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..WORKERS.min(self.keys.len()) {
                scope.spawn(|| session.in_scope(work));
            }
        });
    }

    fn work(
        &self,
        next: &AtomicUsize,
        opened: &Mutex<Result<Vec<OpenStream>, Failure>>,
        cancelled: &AtomicBool,
    ) {
        while !cancelled.load(Ordering::Acquire) {
            let Some(key) = self.keys.get(next.fetch_add(1, Ordering::Relaxed)) else {
                return;
            };
            let stream = self.open_one(key);
            let mut all = opened.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            match (&mut *all, stream) {
                (Ok(streams), Ok(stream)) => streams.push(stream),
                (Ok(_), Err(failure)) => *all = Err(failure),
                (Err(_), _) => return,
            }
        }
    }

    fn open_one(&self, key: &StreamKey) -> Result<OpenStream, Failure> {
        let pair = pair(&self.spec, key.stream);
        let role = role(&self.spec, self.way.end(), key.stream);
        let (source, source_device) = match self.way {
            Way::ToServer { .. } => (pair.source, pair.source_device.as_deref()),
            Way::ToClient(_) => (pair.destination, None),
        };
        let spec = own_spec(&self.spec, key.stream);
        let _within = error_span!("stream", stream = key.stream).entered();
        let remote = self.remote(&pair, part(&self.spec, key.stream))?;
        debug!(remote = %remote, transport = spec.transport.word(), role = ?role, "opening stream");
        let connected = transport_for(&spec).connect(&Connect {
            spec: &spec,
            role,
            source,
            source_device,
            remote,
            key,
            deadline: self.deadline,
        });
        let io = connected
            .inspect(|_| debug!("stream opened"))
            .inspect_err(|failure| debug!(reason = failure.message, "stream not opened"))?;
        Ok(OpenStream {
            stream: key.stream,
            role,
            cpu: cpu(&self.spec, self.way.end(), key.stream),
            io,
        })
    }

    fn remote(&self, pair: &AddressPair, part: Part) -> Result<SocketAddr, Failure> {
        let (server, listeners) = match &self.way {
            Way::ToServer { server, listeners } => (*server, listeners),
            // Nowhere else, whatever the spec says: that is a client's word, and it has no business at other hosts.
            Way::ToClient(client) => return Ok(*client),
        };
        let listener = listeners
            .listeners
            .iter()
            .find(|listener| listener.destination == pair.destination);
        let port = match part {
            Part::Data => listener.map(|listener| listener.port),
            Part::Catalogue | Part::Feedback => listeners.messages_port,
        };
        let port = port
            .ok_or_else(|| Failure::new(FailureKind::Protocol, "the server has no listener for a stream"))?;
        let mut remote = match pair.destination {
            Some(destination) => SocketAddr::new(destination, port),
            // With its scope, should it be link-local.
            None => server,
        };
        remote.set_port(port);
        Ok(remote)
    }
}

/// Begins anew where the server had no place for a connection: one of many that came at once may find one a moment later.
///
/// # Errors
/// That of the last attempt.
pub fn again_while_busy<T>(
    greet: &mut dyn FnMut() -> Result<T, Failure>,
    deadline: Instant,
    unwanted: &dyn Fn() -> bool,
) -> Result<T, Failure> {
    for pause in BUSY_PAUSES {
        match greet() {
            Err(failure) if failure.kind == FailureKind::Busy => {
                let pause_ms = pause.as_millis() as u64;
                debug!(
                    reason = failure.message,
                    pause_ms, "server is busy; connecting again"
                );
            }
            greeted => return greeted,
        }
        let until = deadline.min(Instant::now() + pause);
        while Instant::now() < until && !unwanted() {
            std::thread::sleep(BUSY_LOOK);
        }
    }
    greet()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ListenerAddress;

    const WANTED: &dyn Fn() -> bool = &|| false;

    fn to(text: &str, version: IpVersion) -> Result<Contact, Failure> {
        Contact::make(&Target::parse(text).unwrap(), version, Duration::from_secs(5))
    }

    #[test]
    fn a_contact_tells_the_round_trip_and_the_own_address() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let contact = to(&listener.local_addr().unwrap().to_string(), IpVersion::Any).unwrap();
        assert!(contact.rtt < Duration::from_secs(1), "{contact:?}");
        assert_eq!(contact.local_address(), "127.0.0.1".parse().ok());
    }

    #[test]
    fn a_port_without_a_server_is_unreachable() {
        let free = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let refusal = to(&free.to_string(), IpVersion::Any).unwrap_err();
        assert_eq!(refusal.kind, FailureKind::Unreachable);
        assert!(refusal.message.contains(&free.to_string()), "{refusal}");
    }

    #[test]
    fn a_link_local_address_without_its_interface_is_told() {
        let failure = connect_failure(
            "[fe80::1]:5470".parse().unwrap(),
            &std::io::ErrorKind::InvalidInput.into(),
        );
        assert_eq!(failure.kind, FailureKind::Usage);
        assert_eq!(
            failure.message,
            "[fe80::1]:5470: a link-local address needs its interface: [fe80::1%eth0]"
        );
        let other = connect_failure(
            "[fe80::1%3]:5470".parse().unwrap(),
            &std::io::ErrorKind::InvalidInput.into(),
        );
        assert_eq!(other.kind, FailureKind::Unreachable);
    }

    #[test]
    fn the_version_of_ip_is_kept_to() {
        let refusal = to("127.0.0.1:1", IpVersion::V6).unwrap_err();
        assert_eq!(
            refusal.message,
            "127.0.0.1: has no IPv6 address, but IPv6 alone was chosen"
        );
        assert_eq!(
            to("[::1]:1", IpVersion::V4).unwrap_err().kind,
            FailureKind::Unreachable
        );
    }

    #[test]
    fn nobody_waits_for_a_connection_that_is_not_wanted() {
        // A full backlog never answers.
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        listener
            .bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into())
            .unwrap();
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap().as_socket().unwrap();
        let _first = TcpStream::connect(address).unwrap();
        let far = Instant::now() + Duration::from_secs(60);
        let refusal = connect(address, far, &|| true).unwrap_err();
        assert_eq!(refusal.kind, FailureKind::Interrupted);
        let soon = Instant::now() + Duration::from_millis(100);
        assert_eq!(
            connect(address, soon, WANTED).unwrap_err().kind,
            FailureKind::Timeout
        );
    }

    #[test]
    fn streams_go_where_the_server_listens() {
        let server = "[fe80::1%3]:5470".parse().unwrap();
        let named = "10.0.0.7".parse().ok();
        let address = |destination, port| ListenerAddress { destination, port };
        let plan = StreamPlan {
            spec: RunSpec::default(),
            keys: vec![],
            way: Way::ToServer {
                server,
                listeners: Listeners {
                    listeners: vec![address(None, 7), address(named, 8)],
                    messages_port: Some(9),
                    is_vacant: false,
                },
            },
            deadline: Instant::now(),
        };
        let to = |destination| {
            let pair = AddressPair {
                destination,
                ..AddressPair::default()
            };
            assert_eq!(plan.remote(&pair, Part::Feedback).unwrap().port(), 9);
            plan.remote(&pair, Part::Data)
        };
        assert_eq!(to(None).unwrap(), "[fe80::1%3]:7".parse().unwrap());
        assert_eq!(to(named).unwrap(), "10.0.0.7:8".parse().unwrap());
        assert_eq!(
            to("10.0.0.8".parse().ok()).unwrap_err().kind,
            FailureKind::Protocol
        );
    }
}
