//! The server: a daemon that runs its end of one session per client.
//!
//! What it does: listens on its addresses, gives every connection a thread, lets in who has the right
//! and finds room ([`admission`]), opens the data ports of a session ([`data`]), drives
//! [`ServerMachine`](crate::machine::ServerMachine), and tells its owner what happened ([`events`]).
//! After a session nothing of it is left: the next one starts fresh.
//! What it must not do: print, exit, handle signals, trust a length or a time that a client states.
//!
//! In: `ServerConfig`. Out: [`ServerEvent`]s.
//!
//! Limits: `max_sessions` sessions, 1,024 connections that have not said what they are (2 s each, without a
//! thread: `lobby.rs`), 64 in the handshake (5 s: `permits.rs`), a watchdog on every run. One more session
//! is told BUSY with a reason and a time; of too many connections the oldest of the address with the most
//! is closed. Refusals of one address are summarised once they are many (`refusals.rs`).
//!
//! Start with [`Server`], then `reception.rs` (who comes), `serving.rs` (one connection) and `session.rs` (one session); `names.rs` is one without a run.

pub mod admission;
mod connection;
pub mod data;
pub mod events;
pub mod listen;
mod lobby;
mod names;
pub(crate) mod one_port;
mod permits;
mod reception;
mod refusals;
mod register;
mod serving;
mod session;
pub(crate) mod slots;

use std::net::{SocketAddr, TcpListener};
use std::os::fd::RawFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::Receiver;
use farline_spec::{Failure, ServerConfig};
use farline_sys::process::raise_open_files;

use crate::channel::Interrupt;
use crate::machine::Timing;
use crate::state_dir::{ServerFolders, StateDir};
use crate::ticket::{TicketOffice, now_s};
use crate::tls::{Fingerprint, ServerIdentity};
use admission::AdmissionControl;
use connection::KeptSeats;
use data::PortRange;
use events::EventLog;
pub use events::{AuditEvent, ServerEvent, SessionEnd, SessionStart};
use one_port::Arrivals;
use permits::Permits;
pub use refusals::RefusalSummary;
use register::Register;

/// Longest that running sessions may go on after [`Server::stop`].
pub const GRACE: Duration = Duration::from_secs(10);

/// Files that a process may open where the kernel does not say.
const FEW_FILES: u64 = 256;

/// What the threads of a server have in common.
#[derive(Debug)]
struct Shared {
    identity: ServerIdentity,
    gate: AdmissionControl,
    ports: PortRange,
    log: EventLog,
    timing: Timing,
    register: Register,
    /// Data streams that come in on the control port, where they do.
    arrivals: Option<Arrivals>,
    /// Threads of clients that have not been admitted yet.
    permits: Permits,
    /// Threads of clients whose session is over and who may want another.
    kept: KeptSeats,
    /// Files that this process may open.
    open_files: u64,
    stopping: AtomicBool,
    grace: Mutex<Duration>,
    /// Wakes the reception.
    bell: Interrupt,
}

/// A server that runs.
#[derive(Debug)]
pub struct Server {
    addresses: Vec<SocketAddr>,
    shared: Arc<Shared>,
    events: Receiver<ServerEvent>,
    reception: Mutex<Option<JoinHandle<()>>>,
}

impl Server {
    /// Starts a server; it listens when this returns.
    ///
    /// # Errors
    /// [`FailureKind::Spec`](farline_spec::FailureKind::Spec) for a configuration that contradicts itself,
    /// [`FailureKind::System`](farline_spec::FailureKind::System) when an address is taken or the state folder
    /// cannot be used.
    pub fn start(config: ServerConfig) -> Result<Self, Failure> {
        Self::start_with(&config, Timing::default())
    }

    /// As [`Self::start`], with other limits on waiting; for tests.
    ///
    /// # Errors
    /// As [`Self::start`].
    #[doc(hidden)]
    pub fn start_with(config: &ServerConfig, timing: Timing) -> Result<Self, Failure> {
        Self::at(config, timing, listen::bind(&config.listen, config.port.get())?)
    }

    /// As [`Self::start`], on sockets that whoever started this process opened: descriptors by their numbers, which stay
    /// the caller's. `listen` and `port` of `config` say nothing then.
    ///
    /// # Errors
    /// As [`Self::start`]; [`FailureKind::System`](farline_spec::FailureKind::System) for what is no listening TCP socket.
    pub fn start_on(config: &ServerConfig, sockets: &[RawFd]) -> Result<Self, Failure> {
        Self::at(config, Timing::default(), listen::handed_down(sockets)?)
    }

    fn at(config: &ServerConfig, timing: Timing, listeners: Vec<TcpListener>) -> Result<Self, Failure> {
        let addresses = listen::addresses(&listeners)?;
        Self::launch(config, timing, addresses, move |shared| {
            reception::run(shared, listeners)
        })
    }

    /// Serves one session over connections that it opens to a client which waits at `client`: for a server that cannot be
    /// reached. It ends with that session.
    ///
    /// # Errors
    /// As [`Self::start`]. A client that does not answer is an event.
    pub fn connect_back(config: &ServerConfig, client: SocketAddr) -> Result<Self, Failure> {
        let work = move |shared: &Arc<Shared>| reception::run_back(shared, client);
        Self::launch(config, Timing::default(), Vec::new(), work)
    }

    fn launch(
        config: &ServerConfig,
        timing: Timing,
        addresses: Vec<SocketAddr>,
        work: impl FnOnce(&Arc<Shared>) + Send + 'static,
    ) -> Result<Self, Failure> {
        let ports = PortRange::new(config)?;
        let state = StateDir::of(ServerFolders {
            state: Path::new(&config.state_dir),
            keys: Path::new(config.keys_dir.as_ref().unwrap_or(&config.state_dir)),
        })?;
        let office = TicketOffice::open(&state)?;
        office.forget_expired(now_s())?;
        let identity = ServerIdentity::load(&state)?;
        let (log, events) = EventLog::new();
        let bell = Interrupt::new()?;
        let shared = Arc::new(Shared {
            identity,
            gate: AdmissionControl::new(config, office),
            ports,
            log,
            timing,
            register: Register::default(),
            arrivals: config.single_port.then(Arrivals::default),
            permits: Permits::new(bell.clone()),
            kept: KeptSeats::default(),
            open_files: raise_open_files().unwrap_or(FEW_FILES),
            stopping: AtomicBool::new(false),
            grace: Mutex::new(GRACE),
            bell,
        });
        let own = Arc::clone(&shared);
        let reception = std::thread::Builder::new()
            .name("fl-reception".into())
            .spawn(move || work(&own))
            .map_err(|error| Failure::system("starting thread fl-reception", &error))?;
        Ok(Self {
            addresses,
            shared,
            events,
            reception: Mutex::new(Some(reception)),
        })
    }

    /// Where it listens for control connections.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The key by which clients know it.
    pub fn fingerprint(&self) -> Fingerprint {
        self.shared.identity.fingerprint
    }

    /// The next event; `None` when `timeout` has passed, or after the last one, [`AuditEvent::Stopped`].
    pub fn poll_event(&self, timeout: Duration) -> Option<ServerEvent> {
        self.events.recv_timeout(timeout).ok()
    }

    /// Takes no more clients; sessions that run have ten seconds to end before they are aborted.
    pub fn stop(&self) {
        self.stop_within(GRACE);
    }

    /// As [`Self::stop`], with another time for running sessions.
    pub fn stop_within(&self, grace: Duration) {
        *self.shared.grace.lock().unwrap_or_else(PoisonError::into_inner) = grace;
        self.shared.stopping.store(true, Ordering::Release);
        self.shared.bell.waker().wake();
    }

    /// Waits until the server has stopped and all its threads have ended.
    pub fn join(&self) {
        let thread = self
            .reception
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            // A panic was reported by the panic hook; there is nothing left to wait for.
            let _ = thread.join();
        }
    }
}

/// A server that nobody can stop any more is stopped.
impl Drop for Server {
    fn drop(&mut self) {
        self.stop_within(Duration::ZERO);
        self.join();
    }
}

impl Shared {
    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Whether no further session is admitted.
    fn takes_no_more(&self) -> bool {
        self.is_stopping() || self.gate.slots().is_used_up()
    }

    fn grace(&self) -> Duration {
        *self.grace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
