//! A server for iperf3's clients.
//!
//! What it does: listens on TCP and UDP of one port, sorts what comes by its cookie ([`visitors`]) or its address
//! ([`openings`]), gives every session a thread ([`session`]) and a place among its address's ([`register`]).
//! What it must not do: print, exit, trust a length, a count or a time that a client states.
//!
//! Limits: `max_sessions` and `max_sessions_per_address` at once (one more hears that the server is busy), the rate of an address
//! over all its sessions, the time and the bytes of each; 256 connections that have not said their cookie, 8 s each, half of
//! them from one address; 128 streams; every state of a session has a deadline.

mod guard;
mod lanes;
mod openings;
mod output;
mod reception;
mod register;
mod session;
mod visitors;

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::Receiver;
use farline_session::ServerEvent;
use farline_session::server::events::EventLog;
use farline_session::server::listen;
use farline_spec::{Failure, FailureKind, Iperf3Config};
use farline_sys::wake::Waker;

use crate::stream::locked;
use guard::Guard;
use openings::Openings;
use register::Register;

/// What the threads of a server have in common.
#[derive(Debug)]
struct Shared {
    config: Iperf3Config,
    guard: Option<Guard>,
    register: Register,
    log: EventLog,
    stopping: AtomicBool,
    /// Wakes the reception.
    bell: Waker,
}

impl Shared {
    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }
}

/// A server for iperf3's clients, which runs.
#[derive(Debug)]
pub struct Iperf3Server {
    addresses: Vec<SocketAddr>,
    shared: Arc<Shared>,
    events: Receiver<ServerEvent>,
    reception: Mutex<Option<JoinHandle<()>>>,
}

impl Iperf3Server {
    /// Starts a server; it listens when this returns.
    ///
    /// # Errors
    /// [`FailureKind::Spec`] for a configuration that contradicts itself, [`FailureKind::System`] when a port is taken or a file
    /// cannot be read.
    pub fn start(config: Iperf3Config) -> Result<Self, Failure> {
        let guard = Guard::open(&config)?;
        let listeners = listen::bind(&config.listen, config.port.get())?;
        let addresses = listen::addresses(&listeners)?;
        let openings = Openings::bind(&addresses)?;
        let (log, events) = EventLog::new();
        let shared = Arc::new(Shared {
            register: Register::new(&config),
            config,
            guard,
            log,
            stopping: AtomicBool::new(false),
            bell: Waker::new().map_err(|error| Failure::system("eventfd", &error))?,
        });
        let reception = spawn_reception(&shared, listeners, openings)?;
        Ok(Self {
            addresses,
            shared,
            events,
            reception: Mutex::new(Some(reception)),
        })
    }

    /// Where it listens, over TCP and UDP.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The next event; `None` when `timeout` has passed, or after the last one.
    pub fn poll_event(&self, timeout: Duration) -> Option<ServerEvent> {
        self.events.recv_timeout(timeout).ok()
    }

    /// Takes no more clients and ends the tests that run.
    pub fn stop(&self) {
        self.shared.stopping.store(true, Ordering::Release);
        self.shared.bell.wake();
    }

    /// Waits until all its threads have ended.
    pub fn join(&self) {
        let thread = locked(&self.reception).take();
        if let Some(thread) = thread {
            // A panic was reported by the panic hook; there is nothing left to wait for.
            let _ = thread.join();
        }
    }
}

fn spawn_reception(
    shared: &Arc<Shared>,
    listeners: Vec<TcpListener>,
    openings: Openings,
) -> Result<JoinHandle<()>, Failure> {
    let own = Arc::clone(shared);
    std::thread::Builder::new()
        .name("fl-iperf3".into())
        .spawn(move || reception::run(&own, listeners, openings))
        .map_err(|error| Failure::system("starting thread fl-iperf3", &error))
}

/// A server that nobody can stop any more is stopped.
impl Drop for Iperf3Server {
    fn drop(&mut self) {
        self.stop();
        self.join();
    }
}

/// A failure of the protocol's other end.
fn protocol(line: impl Into<String>) -> Failure {
    Failure::new(FailureKind::Protocol, line.into())
}
