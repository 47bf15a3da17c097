//! A UDP socket and the connections on it.
//!
//! Locks are taken in this order: a connection's, the port's, an inbox. The port's is never held while a connection is
//! waited for.

use std::collections::HashMap;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use farline_spec::{Failure, RunSpec};
use farline_sys::thread;
use farline_sys::wake::{Interest, Waker, wait_ready};
use quinn_proto::{
    ConnectionEvent, ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig, Incoming,
    ServerConfig, Transmit,
};
use quinn_udp::{RecvMeta, UdpSockRef, UdpSocketState};
use ring::rand::{SecureRandom, SystemRandom};
use socket2::{SockRef, Socket};
use tracing::debug;

use super::link::Link;
use super::options::MOST_PACKET_BYTES;
use super::tls;
use crate::crowd::Crowd;

/// Datagrams, or bundles of them, that one call receives at most.
const RECEIVE_CALLS: usize = 4;
/// Calls that receive before the timers are looked at again.
const ROUNDS: usize = 8;
/// Longest sleep of the thread of a port.
const DOZE: Duration = Duration::from_millis(250);
/// The same while data flow: so long may a timer be late that was set meanwhile.
const NAP: Duration = Duration::from_millis(2);
/// How long data flow after the last datagram.
const FLOWS: Duration = Duration::from_millis(10);
/// How long a full socket is waited for before what was to be sent counts as lost.
const FULL: Duration = Duration::from_millis(10);
/// Callers that may wait for somebody to take them; of more, the oldest of the host with the most gives way.
const MOST_CALLERS: usize = 512;
/// How long one of them may wait.
const CALLER_TIME: Duration = Duration::from_secs(5);

/// Ports of this process that wait for callers, by their address: sessions share them.
static PORTS: LazyLock<Mutex<HashMap<SocketAddr, Weak<Port>>>> = LazyLock::new(Mutex::default);

/// A UDP socket with its offloads.
pub(super) struct Io {
    pub(super) socket: UdpSocket,
    state: UdpSocketState,
}

impl Io {
    fn new(socket: Socket) -> Result<Self, Failure> {
        let failed = |error| Failure::system("UDP socket", &error);
        let state = UdpSocketState::new(UdpSockRef::from(&socket)).map_err(failed)?;
        Ok(Self {
            socket: socket.into(),
            state,
        })
    }

    /// Datagrams that one call may send.
    pub(super) fn segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    /// Whether one call may bring several datagrams.
    pub(super) fn gathers(&self) -> bool {
        self.state.gro_segments() > 1
    }

    /// Sends what `transmit` describes. What the kernel does not take is lost, as it may be anywhere on the path: the
    /// protocol repeats it, and gives up when it has to.
    pub(super) fn send(&self, transmit: &Transmit, contents: &[u8]) {
        let parcel = quinn_udp::Transmit {
            destination: transmit.destination,
            ecn: transmit
                .ecn
                .and_then(|ecn| quinn_udp::EcnCodepoint::from_bits(ecn as u8)),
            contents: &contents[..transmit.size],
            segment_size: transmit.segment_size,
            src_ip: None,
        };
        let send = || self.state.send(UdpSockRef::from(&self.socket), &parcel);
        if send().is_err() {
            let full = [(self.socket.as_fd(), Interest::Writable)];
            if wait_ready(full, FULL).is_ok() {
                let _ = send();
            }
        }
    }
}

/// A UDP socket and the connections on it.
pub(super) struct Port {
    pub(super) io: Io,
    pub(super) local: SocketAddr,
    core: Mutex<Core>,
    /// A caller has come, or a connection is open.
    changed: Condvar,
    waker: Waker,
    epoch: Instant,
    /// When the thread wakes next, in microseconds since `epoch`.
    wakes_us: AtomicU64,
    /// Listeners and streams that use it.
    users: AtomicUsize,
    is_running: AtomicBool,
}

/// What is done under the port's lock.
pub(super) struct Core {
    pub(super) endpoint: Endpoint,
    pub(super) links: HashMap<ConnectionHandle, Arc<Link>>,
    callers: Crowd<Caller>,
}

struct Caller {
    incoming: Incoming,
    since: Instant,
}

impl Core {
    /// The caller that `wanted` knows by the connection id it has chosen, with what that gave.
    pub(super) fn take_caller<T>(&mut self, wanted: impl Fn(&[u8]) -> Option<T>) -> Option<(Incoming, T)> {
        while self
            .callers
            .get(0)
            .is_some_and(|caller| caller.since.elapsed() > CALLER_TIME)
        {
            let stale = self.callers.remove(0);
            self.endpoint.ignore(stale.incoming);
        }
        for index in 0..self.callers.len() {
            let known = self
                .callers
                .get(index)
                .and_then(|caller| wanted(caller.incoming.orig_dst_cid()));
            if let Some(known) = known {
                return Some((self.callers.remove(index).incoming, known));
            }
        }
        None
    }

    fn add_caller(&mut self, incoming: Incoming) {
        let from = incoming.remote_address().ip();
        let since = Instant::now();
        self.callers.join(from, Caller { incoming, since });
        if let Some(index) = self
            .callers
            .busiest()
            .filter(|_| self.callers.len() > MOST_CALLERS)
        {
            let out = self.callers.remove(index);
            self.endpoint.ignore(out.incoming);
        }
    }
}

impl Port {
    /// The port of one that opens streams.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn of_opener(socket: Socket) -> Result<PortUse, Failure> {
        Self::start(socket, None)
    }

    /// The port at `local` for those who open, made by `open` unless this process has it already.
    ///
    /// # Errors
    /// The kernel's, and those of `open`.
    pub(super) fn of_listener(
        local: SocketAddr,
        spec: &RunSpec,
        open: impl FnOnce() -> Result<Socket, Failure>,
    ) -> Result<PortUse, Failure> {
        let mut ports = locked(&PORTS);
        if let Some(port) = ports.get(&local).and_then(Weak::upgrade) {
            let used = PortUse::new(&port);
            // Somebody may have kept it who only looks at what is over.
            if !port.is_running.load(Ordering::Acquire) {
                port.start_thread()?;
            }
            return Ok(used);
        }
        ports.retain(|_, port| port.strong_count() > 0);
        let mut nobodys = [0; 32];
        SystemRandom::new()
            .fill(&mut nobodys)
            .map_err(|_| Failure::system("random numbers", &io::Error::other("none to be had")))?;
        // Nobody is ever let in by these keys: whoever is gets those of its stream.
        let tls = tls::of_listener(&nobodys, super::options::cipher_of(spec))?;
        let server = ServerConfig::with_crypto(Arc::new(tls));
        let port = Self::start(open()?, Some(Arc::new(server)))?;
        ports.insert(port.local, Arc::downgrade(&port.0));
        Ok(port)
    }

    fn start(socket: Socket, server: Option<Arc<ServerConfig>>) -> Result<PortUse, Failure> {
        let failed = |error: io::Error| Failure::system("UDP socket", &error);
        let local = socket.local_addr().map_err(failed)?;
        let local = local
            .as_socket()
            .ok_or_else(|| failed(io::ErrorKind::AddrNotAvailable.into()))?;
        let mut config = EndpointConfig::default();
        // In range by its type.
        let _ = config.max_udp_payload_size(MOST_PACKET_BYTES);
        let core = Core {
            endpoint: Endpoint::new(Arc::new(config), server, true, None),
            links: HashMap::new(),
            callers: Crowd::default(),
        };
        let port = Arc::new(Self {
            io: Io::new(socket)?,
            local,
            core: Mutex::new(core),
            changed: Condvar::new(),
            waker: Waker::new().map_err(failed)?,
            epoch: Instant::now(),
            wakes_us: AtomicU64::new(0),
            users: AtomicUsize::new(0),
            is_running: AtomicBool::new(false),
        });
        let used = PortUse::new(&port);
        port.start_thread()?;
        Ok(used)
    }

    fn start_thread(self: &Arc<Self>) -> Result<(), Failure> {
        let (port, session) = (Arc::clone(self), tracing::Span::current());
        self.is_running.store(true, Ordering::Release);
        let started = std::thread::Builder::new()
            .name("fl-quic".to_owned())
            .spawn(move || session.in_scope(|| port.run()));
        if started.is_err() {
            self.is_running.store(false, Ordering::Release);
        }
        started
            .map(drop)
            .map_err(|error| Failure::system("thread of a QUIC port", &error))
    }

    pub(super) fn core(&self) -> MutexGuard<'_, Core> {
        locked(&self.core)
    }

    /// Waits until a caller has come or a connection is open, or for `most`.
    pub(super) fn wait_for_change(&self, core: MutexGuard<'_, Core>, most: Duration) {
        drop(self.changed.wait_timeout(core, most));
    }

    /// Tells those who wait for it that a connection is open, or will not be.
    pub(super) fn tell_change(&self) {
        self.changed.notify_all();
    }

    /// As timers of connections are written down.
    pub(super) fn micros(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.epoch).as_micros();
        u64::try_from(since).unwrap_or(u64::MAX)
    }

    /// Wakes the thread if it would sleep through `due_us`.
    pub(super) fn wake_before(&self, due_us: u64) {
        if due_us.saturating_add(1_000) < self.wakes_us.load(Ordering::Acquire) {
            self.waker.wake();
        }
    }

    /// The life of the thread.
    fn run(&self) {
        thread::set_finest_timer_slack();
        let mut buffers = Buffers::new();
        let mut flowed: Option<Instant> = None;
        while !self.is_over() {
            self.sleep(flowed);
            if self.receive(&mut buffers) {
                flowed = Some(Instant::now());
            }
            self.look_after_links();
        }
        debug!(local = %self.local, "QUIC port closed");
    }

    /// Nobody uses it any more, and nothing is left to be said.
    fn is_over(&self) -> bool {
        if self.users.load(Ordering::Acquire) > 0 {
            return false;
        }
        // Whoever wants it again takes the same lock to find it.
        let _ports = locked(&PORTS);
        let is_over = self.users.load(Ordering::Acquire) == 0 && self.core().links.is_empty();
        if is_over {
            self.is_running.store(false, Ordering::Release);
        }
        is_over
    }

    fn sleep(&self, flowed: Option<Instant>) {
        let now = Instant::now();
        let most = match flowed {
            Some(at) if now.duration_since(at) < FLOWS => NAP,
            _ => DOZE,
        };
        let now_us = self.micros(now);
        let due_us = self.core().links.values().map(|link| link.due_us()).min();
        let latest_us = now_us + most.as_micros() as u64;
        let wakes_us = due_us.unwrap_or(u64::MAX).min(latest_us);
        self.wakes_us.store(wakes_us, Ordering::Release);
        let fds = [
            (self.io.socket.as_fd(), Interest::Readable),
            (self.waker.as_fd(), Interest::Readable),
        ];
        let left = Duration::from_micros(wakes_us.saturating_sub(now_us));
        if wait_ready(fds, left).is_ok_and(|[_, is_woken]| is_woken) {
            self.waker.drain();
        }
    }

    /// Receives what has come; gives whether anything had.
    fn receive(&self, buffers: &mut Buffers) -> bool {
        for round in 0..ROUNDS {
            let count = match buffers.fill(&self.io) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return round > 0,
                // An ICMP error of an answer to somebody who is gone.
                Err(_) => continue,
            };
            self.sort(buffers, count);
        }
        true
    }

    /// Gives datagrams to the connections they are for.
    fn sort(&self, buffers: &Buffers, count: usize) {
        let now = Instant::now();
        let mut touched: Vec<(Arc<Link>, Vec<ConnectionEvent>)> = Vec::new();
        let mut core = self.core();
        for (meta, buffer) in buffers.metas.iter().zip(&buffers.all).take(count) {
            let mut rest = BytesMut::from(&buffer[..meta.len]);
            let ecn = meta.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8));
            while !rest.is_empty() {
                let one = rest.split_to(meta.stride.clamp(1, rest.len()));
                let mut answer = Vec::new();
                match core.endpoint.handle(now, meta.addr, None, ecn, one, &mut answer) {
                    Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                        let Some(link) = core.links.get(&handle) else {
                            continue;
                        };
                        match touched.iter_mut().find(|(other, _)| Arc::ptr_eq(other, link)) {
                            Some((_, events)) => events.push(event),
                            None => touched.push((Arc::clone(link), vec![event])),
                        }
                    }
                    Some(DatagramEvent::NewConnection(incoming)) => {
                        core.add_caller(incoming);
                        self.changed.notify_all();
                    }
                    Some(DatagramEvent::Response(transmit)) => self.io.send(&transmit, &answer),
                    None => {}
                }
            }
        }
        drop(core);
        for (link, events) in touched {
            link.put(events);
        }
    }

    /// Does what timers demand of connections that nobody looks after.
    fn look_after_links(&self) {
        let now_us = self.micros(Instant::now());
        let due: Vec<_> = self
            .core()
            .links
            .values()
            .filter(|link| link.due_us() <= now_us)
            .cloned()
            .collect();
        for link in due {
            link.look_after();
        }
    }
}

/// Somebody's use of a port: its thread ends some time after the last.
pub(super) struct PortUse(Arc<Port>);

impl PortUse {
    fn new(port: &Arc<Port>) -> Self {
        port.users.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(port))
    }

    /// One more use of the same port.
    pub(super) fn again(&self) -> Self {
        Self::new(&self.0)
    }

    /// The port itself, for as long as it lasts.
    pub(super) fn port(&self) -> &Arc<Port> {
        &self.0
    }
}

impl std::ops::Deref for PortUse {
    type Target = Port;

    fn deref(&self) -> &Port {
        &self.0
    }
}

impl Drop for PortUse {
    fn drop(&mut self) {
        self.0.users.fetch_sub(1, Ordering::AcqRel);
        self.0.waker.wake();
    }
}

/// Where datagrams are received to.
struct Buffers {
    all: Vec<Box<[u8]>>,
    metas: [RecvMeta; RECEIVE_CALLS],
}

impl Buffers {
    fn new() -> Self {
        Self {
            all: vec![vec![0; 1 << 16].into_boxed_slice(); RECEIVE_CALLS],
            metas: [RecvMeta::default(); RECEIVE_CALLS],
        }
    }

    fn fill(&mut self, io: &Io) -> io::Result<usize> {
        let mut all = self.all.iter_mut();
        // As many as there are buffers.
        let mut slices: [IoSliceMut<'_>; RECEIVE_CALLS] =
            std::array::from_fn(|_| IoSliceMut::new(all.next().map_or(&mut [], |buffer| &mut buffer[..])));
        io.state
            .recv(UdpSockRef::from(&io.socket), &mut slices, &mut self.metas)
    }
}

/// Sizes of the buffers of a socket: sending, receiving.
pub(super) fn buffer_bytes(io: &Io) -> (Option<u64>, Option<u64>) {
    let socket = SockRef::from(&io.socket);
    let bytes = |size: io::Result<usize>| size.ok().map(|bytes| bytes as u64);
    (bytes(socket.send_buffer_size()), bytes(socket.recv_buffer_size()))
}

/// What the lock protects stays whole whoever panics while holding it.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
