//! Takes connections, gives each a thread, and sees them all out.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use farline_spec::{Failure, FailureKind};
use farline_sys::wake::poll_readable;

use super::connection::Caller;
use super::events::AuditEvent;
use super::lobby::{Left, Lobby, Visitor};
use super::permits::HandshakePermit;
use super::serving::serve;
use super::{Shared, listen};
use crate::channel::Interrupt;

/// Connections taken before those that wait are looked at again.
const ROUND: usize = 64;
/// Threads beyond those of sessions: handshakes that go on, and the last words to the refused.
const MAX_OTHER_THREADS: usize = 256;
/// Connections that give way at once when the process can open no more files.
const ROOM: usize = 16;
/// Longest wait for a client that is connected to.
const CONNECT_BACK: Duration = Duration::from_secs(10);
/// Pause after the kernel could not give a connection and nobody could give way.
const PAUSE: Duration = Duration::from_millis(100);
/// How often to look whether a handshake has become slow enough to give way.
const LOOK: Duration = Duration::from_millis(100);

/// Serves until the server is stopped or has served all the sessions it should; then sees all threads end.
pub fn run(shared: &Arc<Shared>, listeners: Vec<TcpListener>) {
    let mut crew = Crew::new(shared);
    while !shared.takes_no_more() {
        crew.turn(&listeners);
        crew.reap();
        shared.log.summarise();
    }
    drop(listeners);
    crew.see_out();
    shared.log.write_last(AuditEvent::Stopped {
        sessions: shared.gate.slots().admitted(),
    });
}

/// Serves one session over a connection to `client`; then sees its thread end.
pub fn run_back(shared: &Arc<Shared>, client: SocketAddr) {
    let mut crew = Crew::new(shared);
    match TcpStream::connect_timeout(&client, CONNECT_BACK) {
        Ok(socket) => crew.call(socket, client),
        Err(error) => {
            let line = format!("{client}: the client does not answer: {error}");
            let error = Failure::new(FailureKind::Unreachable, line);
            shared.log.refuse(client, error);
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
    shared.log.write_last(AuditEvent::Stopped {
        sessions: shared.gate.slots().admitted(),
    });
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
    lobby: Lobby,
    guests: Vec<Guest>,
    /// Until when no connections are taken.
    rests_until: Option<Instant>,
}

impl Crew {
    fn new(shared: &Arc<Shared>) -> Self {
        let timing = &shared.timing;
        let times = (timing.greeting.min(timing.setup), timing.setup);
        Self {
            shared: Arc::clone(shared),
            lobby: Lobby::new(shared.open_files, times, shared.arrivals.is_some()),
            guests: Vec::new(),
            rests_until: None,
        }
    }

    /// Waits until something happens, and does what follows from it.
    fn turn(&mut self, listeners: &[TcpListener]) {
        let began = Instant::now();
        let is_resting = self.rests_until.is_some_and(|until| until > began);
        let doors = if is_resting { &[][..] } else { listeners };
        let mut fds = vec![self.shared.bell.waker().as_fd()];
        fds.extend(doors.iter().map(AsFd::as_fd));
        fds.extend(self.lobby.fds(began));
        let ready = match poll_readable(&fds, self.patience(began)) {
            Ok(ready) => ready,
            Err(error) => {
                self.shared
                    .log
                    .trouble(Failure::system("waiting for connections", &error));
                std::thread::sleep(PAUSE);
                return;
            }
        };
        self.shared.bell.waker().drain();
        let (own, visitors) = ready.split_at(1 + doors.len());
        for left in self.lobby.look(visitors, began, Instant::now()) {
            self.see_off(left);
        }
        for (door, _) in doors.iter().zip(&own[1..]).filter(|(_, ready)| **ready) {
            self.take(door);
        }
        self.give_threads();
    }

    fn patience(&self, now: Instant) -> Option<Duration> {
        let rests = self.rests_until.filter(|&until| until > now);
        let slow = self.lobby.has_ready().then(|| now + LOOK);
        let due = [rests, slow, self.lobby.deadline(), self.shared.log.due()];
        let next = due.into_iter().flatten().min();
        next.map(|next| next.saturating_duration_since(now))
    }

    fn take(&mut self, door: &TcpListener) {
        for _ in 0..ROUND {
            match door.accept() {
                Ok((socket, peer)) => {
                    let left = self.lobby.enter(socket, listen::plain(peer), Instant::now());
                    left.into_iter().for_each(|left| self.see_off(left));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // The peer was gone before it was taken.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    self.shared
                        .log
                        .trouble(Failure::system("taking a connection", &error));
                    return self.make_room();
                }
            }
        }
    }

    /// Closes some of those who wait, or rests if nobody does: what the kernel lacked may be there then.
    fn make_room(&mut self) {
        if self.lobby.is_empty() {
            self.rests_until = Some(Instant::now() + PAUSE);
        }
        for _ in 0..ROOM {
            let left = self.lobby.make_room();
            left.into_iter().for_each(|left| self.see_off(left));
        }
    }

    /// Brings a data stream to its session, or tells why a connection came to nothing.
    fn see_off(&self, left: Left) {
        let (peer, error) = match left {
            Left::Refused(peer, error) => (peer, error),
            Left::Stream(socket, peer, name) => {
                let delivered = self
                    .shared
                    .arrivals
                    .as_ref()
                    .map(|arrivals| arrivals.deliver(socket, &name));
                match delivered {
                    Some(Err(error)) => (peer, error),
                    Some(Ok(())) | None => return,
                }
            }
        };
        self.shared.log.refuse(peer, error);
    }

    /// Gives threads to those whose greeting is whole, as far as there are permits.
    fn give_threads(&mut self) {
        let most = self
            .shared
            .gate
            .slots()
            .most_at_once()
            .saturating_add(MAX_OTHER_THREADS);
        while self.guests.len() < most {
            let (permits, now) = (&self.shared.permits, Instant::now());
            let next = self.lobby.next_ready(
                |peer| permits.of_host(peer),
                |peer| permits.has_one_for(peer, now),
            );
            let Some(Visitor { socket, peer, .. }) = next else {
                return;
            };
            let interrupt = Interrupt::new().or_else(|_| {
                self.make_room();
                Interrupt::new()
            });
            let seated =
                interrupt.and_then(
                    |interrupt| match self.shared.permits.take(peer, &interrupt, now) {
                        Some(permit) => self.seat(socket, Caller { peer, back: None }, interrupt, permit),
                        None => Err(Failure::new(
                            FailureKind::Busy,
                            "the server stayed full for the time limit",
                        )),
                    },
                );
            if let Err(error) = seated {
                self.shared.log.refuse(peer, error);
            }
        }
    }

    fn call(&mut self, socket: TcpStream, client: SocketAddr) {
        let caller = Caller {
            peer: client,
            back: Some(client),
        };
        let seated = Interrupt::new().and_then(|interrupt| {
            let permit = self.shared.permits.invited(client, &interrupt);
            self.seat(socket, caller, interrupt, permit)
        });
        if let Err(error) = seated {
            self.shared.log.refuse(client, error);
        }
    }

    fn seat(
        &mut self,
        socket: TcpStream,
        caller: Caller,
        interrupt: Interrupt,
        permit: HandshakePermit,
    ) -> Result<(), Failure> {
        let (shared, own) = (Arc::clone(&self.shared), interrupt.clone());
        let over = Arc::new(AtomicBool::new(false));
        let leaving = Leaving(Arc::clone(&over), Arc::clone(&self.shared));
        let body = move || {
            let _leaving = leaving;
            serve(&shared, socket, caller, own, permit);
        };
        let spawned = std::thread::Builder::new().name("fl-session".into()).spawn(body);
        let thread = spawned.map_err(|error| Failure::system("starting thread fl-session", &error))?;
        self.guests.push(Guest {
            interrupt,
            over,
            thread,
        });
        Ok(())
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
            self.shared.log.write(AuditEvent::Trouble { error });
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
