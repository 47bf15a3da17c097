//! Takes connections, gives each a thread, and sees them all out.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use farline_spec::{Failure, FailureKind};
use farline_sys::wake::poll_readable;

use super::events::Happening;
use super::session::Caller;
use super::{Shared, listen, session};
use crate::channel::Interrupt;

/// Connections in set-up at once.
pub const MAX_IN_SETUP: usize = 16;
/// As many where data streams come in the same way.
const MAX_IN_SETUP_ONE_PORT: usize = 128;
/// Longest wait for a client that is connected to.
const CONNECT_BACK: Duration = Duration::from_secs(10);
/// Pause after the kernel could not give a connection (no descriptor left, say).
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until the server is stopped or has served all the sessions it should; then sees all threads end.
pub fn run(shared: &Arc<Shared>, listeners: Vec<TcpListener>) {
    let mut crew = Crew {
        shared: Arc::clone(shared),
        guests: Vec::new(),
    };
    while !shared.is_stopping() && !shared.gate.slots().is_used_up() {
        match wait(shared, &listeners) {
            Ok(ready) => listeners
                .iter()
                .zip(ready)
                .filter(|(_, ready)| *ready)
                .for_each(|(door, _)| crew.take(door)),
            Err(error) => crew.trouble(Failure::system("waiting for connections", &error)),
        }
        crew.reap();
    }
    drop(listeners);
    crew.see_out();
    shared.log.write_last(Happening::Stopped {
        sessions: shared.gate.slots().admitted(),
    });
}

/// Serves one session over a connection to `client`; then sees its thread end.
pub fn run_back(shared: &Arc<Shared>, client: SocketAddr) {
    let mut crew = Crew {
        shared: Arc::clone(shared),
        guests: Vec::new(),
    };
    match TcpStream::connect_timeout(&client, CONNECT_BACK) {
        Ok(socket) => crew.seat(socket, client, Some(client)),
        Err(error) => {
            let line = format!("{client}: the client does not answer: {error}");
            crew.refuse(client, Failure::new(FailureKind::Unreachable, line));
        }
    }
    while !shared.is_stopping() && !crew.guests.is_empty() {
        if poll_readable(&[shared.bell.waker().as_fd()], None).is_err() {
            break;
        }
        shared.bell.waker().drain();
        crew.reap();
    }
    crew.see_out();
    shared.log.write_last(Happening::Stopped {
        sessions: shared.gate.slots().admitted(),
    });
}

fn wait(shared: &Shared, listeners: &[TcpListener]) -> std::io::Result<Vec<bool>> {
    let mut fds: Vec<_> = listeners.iter().map(AsFd::as_fd).collect();
    fds.push(shared.bell.waker().as_fd());
    let mut ready = poll_readable(&fds, None)?;
    shared.bell.waker().drain();
    ready.truncate(listeners.len());
    Ok(ready)
}

/// A place in set-up; free again when dropped.
#[derive(Debug)]
pub struct SetupPlace(Arc<AtomicUsize>);

impl SetupPlace {
    fn take(count: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let free = |taken| (taken < most).then_some(taken + 1);
        count
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, free)
            .ok()
            .map(|_| Self(Arc::clone(count)))
    }
}

impl Drop for SetupPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Serves a client, or brings a data stream to the session that waits for it.
fn receive(shared: &Shared, socket: TcpStream, peer: SocketAddr, interrupt: Interrupt, place: SetupPlace) {
    let sorted = match &shared.arrivals {
        Some(arrivals) => arrivals.sort(socket, Instant::now() + shared.timing.setup),
        None => Ok(Some(socket)),
    };
    match sorted {
        Ok(Some(client)) => {
            let caller = Caller { peer, back: None };
            session::serve(shared, client, caller, interrupt, place);
        }
        Ok(None) => {}
        Err(error) => shared.log.write(Happening::Refused { peer, error }),
    }
}

struct Guest {
    interrupt: Interrupt,
    /// Said before the bell rings: a thread that rang it may not have finished yet for whoever looks at once.
    over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// Rings the bell when the thread of a guest has done its work, or panicked.
struct Leaving(Arc<AtomicBool>, Arc<Shared>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
        self.1.bell.waker().wake();
    }
}

struct Crew {
    shared: Arc<Shared>,
    guests: Vec<Guest>,
}

impl Crew {
    fn take(&mut self, door: &TcpListener) {
        match door.accept() {
            Ok((socket, peer)) => self.seat(socket, listen::plain(peer), None),
            // The peer was gone before it was taken.
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionAborted => {}
            Err(error) => self.trouble(Failure::system("taking a connection", &error)),
        }
    }

    fn trouble(&self, error: Failure) {
        self.shared.log.write(Happening::Trouble { error });
        std::thread::sleep(PAUSE);
    }

    fn seat(&mut self, socket: TcpStream, peer: SocketAddr, back: Option<SocketAddr>) {
        let most = if self.shared.arrivals.is_some() {
            MAX_IN_SETUP_ONE_PORT
        } else {
            MAX_IN_SETUP
        };
        let Some(place) = SetupPlace::take(&self.shared.in_setup, most) else {
            let line = format!("{most} connections are being set up, that many are allowed");
            return self.refuse(peer, Failure::new(FailureKind::Busy, line));
        };
        match self.start(socket, peer, place, back) {
            Ok(guest) => self.guests.push(guest),
            Err(failure) => self.refuse(peer, failure),
        }
    }

    fn start(
        &self,
        socket: TcpStream,
        peer: SocketAddr,
        place: SetupPlace,
        back: Option<SocketAddr>,
    ) -> Result<Guest, Failure> {
        let interrupt = Interrupt::new()?;
        let (shared, own) = (Arc::clone(&self.shared), interrupt.clone());
        let over = Arc::new(AtomicBool::new(false));
        let leaving = Leaving(Arc::clone(&over), Arc::clone(&self.shared));
        let body = move || {
            let _leaving = leaving;
            match back {
                Some(_) => session::serve(&shared, socket, Caller { peer, back }, own, place),
                None => receive(&shared, socket, peer, own, place),
            }
        };
        let spawned = std::thread::Builder::new().name("fl-session".into()).spawn(body);
        let thread = spawned.map_err(|error| Failure::system("starting thread fl-session", &error))?;
        Ok(Guest {
            interrupt,
            over,
            thread,
        })
    }

    fn refuse(&self, peer: SocketAddr, error: Failure) {
        self.shared.log.write(Happening::Refused { peer, error });
    }

    fn reap(&mut self) {
        let (over, on): (Vec<_>, Vec<_>) = std::mem::take(&mut self.guests)
            .into_iter()
            .partition(|guest| guest.over.load(Ordering::Acquire));
        self.guests = on;
        over.into_iter().for_each(|guest| self.join(guest));
    }

    fn join(&self, guest: Guest) {
        if guest.thread.join().is_err() {
            let error = Failure::new(FailureKind::Internal, "the thread of a session panicked");
            self.shared.log.write(Happening::Trouble { error });
        }
    }

    /// Lets sessions end by themselves for a while, then ends them.
    fn see_out(&mut self) {
        let stopped = Instant::now();
        while !self.guests.is_empty() && stopped.elapsed() < self.shared.grace() {
            let left = self.shared.grace().saturating_sub(stopped.elapsed());
            // An error of the wait only makes the grace shorter.
            if poll_readable(&[self.shared.bell.waker().as_fd()], Some(left)).is_err() {
                break;
            }
            self.shared.bell.waker().drain();
            self.reap();
        }
        self.guests.iter().for_each(|guest| guest.interrupt.raise());
        for guest in std::mem::take(&mut self.guests) {
            self.join(guest);
        }
    }
}
