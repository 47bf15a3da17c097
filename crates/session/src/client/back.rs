//! The other way round: the client listens and the server connects, for a client whose server cannot be reached.
//!
//! Everything else stays: the server still shows its key, the client still asks, streams still prove who they are. All
//! connections come to one port, so only TCP can.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use farline_spec::{Failure, FailureKind, RunSpec, Transport};
use farline_sys::wake::poll_readable;
use farline_transport::StreamKey;

use crate::message::SessionId;
use crate::run::OpenStream;
use crate::server::data::DataListeners;
use crate::server::listen;
use crate::server::one_port::{Arrivals, NAME_BYTES};
use crate::streams::End;

/// How often a wait looks whether it is still wanted.
const SLICE: Duration = Duration::from_millis(10);
/// Time for an opener to say which stream it opens.
const NAME_TIME: Duration = Duration::from_secs(1);
/// Openers that may be half-way through at once, besides the streams that are expected. One more takes the place of the oldest.
const MAX_STRANGERS: usize = 64;
/// How long to rest after the kernel had no connection to give: what it lacks may be there again.
const PAUSE: Duration = Duration::from_millis(100);

/// Where the server is waited for.
#[derive(Debug)]
pub struct ReverseListener {
    listener: TcpListener,
    local: SocketAddr,
}

impl ReverseListener {
    /// Listens on `address`; port 0 lets the kernel choose.
    ///
    /// # Errors
    /// [`FailureKind::System`] for an address that cannot be had; [`FailureKind::Spec`] for a run that needs other
    /// connections than those of TCP.
    pub fn open(address: SocketAddr, spec: &RunSpec) -> Result<Self, Failure> {
        if spec.transport != Transport::Tcp {
            let line = "transport: a server that connects back supports only tcp";
            return Err(Failure::new(FailureKind::Spec, line));
        }
        let failed = |error: std::io::Error| listen::failed(address, &error);
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let local = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, local })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.local
    }

    /// The next connection.
    ///
    /// # Errors
    /// [`FailureKind::Timeout`] at `deadline`, [`FailureKind::Interrupted`] once `unwanted` says so.
    pub fn next(&self, deadline: Instant, unwanted: &dyn Fn() -> bool) -> Result<TcpStream, Failure> {
        loop {
            if unwanted() {
                return Err(Failure::new(
                    FailureKind::Interrupted,
                    "stopped while waiting for the server",
                ));
            }
            if Instant::now() >= deadline {
                let line = format!(
                    "{}: the server did not connect within the connect timeout",
                    self.local
                );
                return Err(Failure::new(FailureKind::Timeout, line));
            }
            if let Some(socket) = self.take()? {
                return Ok(socket);
            }
        }
    }

    fn take(&self) -> Result<Option<TcpStream>, Failure> {
        let waiting = |error| Failure::system("waiting for the server", &error);
        poll_readable(&[self.listener.as_fd()], Some(SLICE)).map_err(waiting)?;
        let socket = match self.listener.accept() {
            Ok((socket, _)) => socket,
            Err(error) => {
                if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionAborted) {
                    std::thread::sleep(PAUSE);
                }
                return Ok(None);
            }
        };
        socket.set_nonblocking(false).map_err(waiting)?;
        Ok(Some(socket))
    }

    /// All streams of a session, which the server opens.
    ///
    /// # Errors
    /// As [`DataListeners::accept`]; [`FailureKind::Spec`] for an option that needs a port of its own.
    pub fn streams(
        &self,
        spec: &RunSpec,
        session: SessionId,
        keys: &[StreamKey],
        deadline: Instant,
        cancelled: &AtomicBool,
    ) -> Result<Vec<OpenStream>, Failure> {
        let arrivals = Arrivals::default();
        let doors = DataListeners::handed(spec, End::Client, self.local, arrivals.expect(session, spec))?;
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| self.sort(&arrivals, MAX_STRANGERS + keys.len(), &done));
            let streams = doors.accept(spec, keys, deadline, cancelled);
            done.store(true, Ordering::Release);
            streams
        })
    }

    /// Brings those who come to `arrivals`; nobody waits for one who does not say which stream he opens.
    fn sort(&self, arrivals: &Arrivals, places: usize, done: &AtomicBool) {
        let mut openers: VecDeque<Opener> = VecDeque::new();
        while !done.load(Ordering::Acquire) {
            // Trouble of the kernel's passes, or the deadline of the streams comes.
            if let Ok(Some(socket)) = self.take() {
                let since = Instant::now();
                openers.push_back(Opener { socket, since });
            }
            if openers.len() > places {
                openers.pop_front();
            }
            openers = openers
                .into_iter()
                .filter_map(|opener| opener.go_on(arrivals))
                .collect();
        }
    }
}

/// A connection that has not said yet which stream it is.
struct Opener {
    socket: TcpStream,
    since: Instant,
}

impl Opener {
    /// Brings it to `arrivals` once it has said its name; gives it back while it may still do so. Strangers are closed.
    fn go_on(self, arrivals: &Arrivals) -> Option<Self> {
        let mut name = [0; NAME_BYTES];
        self.socket.set_nonblocking(true).ok()?;
        let seen = self.socket.peek(&mut name);
        self.socket.set_nonblocking(false).ok()?;
        match seen {
            Ok(NAME_BYTES) => {
                // A stranger's is closed.
                drop(arrivals.deliver(self.socket, &name));
                None
            }
            Ok(0) => None,
            Err(error) if error.kind() != ErrorKind::WouldBlock => None,
            Ok(_) | Err(_) => (self.since.elapsed() < NAME_TIME).then_some(self),
        }
    }
}
