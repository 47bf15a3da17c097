//! Takes connections, sorts them by their cookie, gives sessions a thread, and sees them all out.

use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use farline_proto::iperf3::word::Word;
use farline_session::AuditEvent;
use farline_session::server::listen::plain;
use farline_spec::{Failure, FailureKind};
use farline_sys::wake::poll_readable;

use super::openings::Openings;
use super::register::{Delivery, Seat};
use super::session::{self, Caller};
use super::visitors::{Left, Named, Visitors};
use super::{Shared, protocol};

/// Connections taken before those that wait are looked at again.
const ROUND: usize = 64;
/// Pause after the kernel could not give a connection.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until the server is stopped or has served all the sessions it should; then sees all threads end.
pub fn run(shared: &Arc<Shared>, listeners: Vec<TcpListener>, openings: Openings) {
    let mut reception = Reception {
        shared,
        listeners,
        openings,
        visitors: Visitors::new(),
        guests: Vec::new(),
        rests_until: None,
    };
    while !reception.is_over() {
        reception.turn();
        reception.reap();
        shared.log.summarise();
    }
    reception.see_out();
    shared.log.write_last(AuditEvent::Stopped {
        sessions: shared.register.admitted(),
    });
}

struct Guest {
    over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

struct Reception<'a> {
    shared: &'a Arc<Shared>,
    listeners: Vec<TcpListener>,
    openings: Openings,
    visitors: Visitors,
    guests: Vec<Guest>,
    rests_until: Option<Instant>,
}

impl Reception<'_> {
    /// Whether the server was stopped, or the last of the sessions it should serve has ended.
    fn is_over(&self) -> bool {
        let has_served = self.shared.register.is_used_up() && self.guests.is_empty();
        has_served || self.shared.is_stopping()
    }

    fn turn(&mut self) {
        let now = Instant::now();
        let is_resting = self.rests_until.is_some_and(|until| until > now);
        let doors = if is_resting { &[][..] } else { &self.listeners };
        let mut fds = vec![self.shared.bell.as_fd()];
        fds.extend(self.openings.fds());
        fds.extend(doors.iter().map(AsFd::as_fd));
        fds.extend(self.visitors.fds());
        let ready = poll_readable(&fds, self.patience(now));
        if let Err(error) = ready {
            self.shared
                .log
                .trouble(Failure::system("waiting for connections", &error));
            std::thread::sleep(PAUSE);
            return;
        }
        self.shared.bell.drain();
        if !is_resting {
            self.take_connections();
        }
        for left in self.visitors.look(Instant::now()) {
            self.see_off(left);
        }
        self.openings.take(self.shared);
    }

    fn patience(&self, now: Instant) -> Option<Duration> {
        let rests = self.rests_until.filter(|&until| until > now);
        let due = [rests, self.visitors.deadline(), self.shared.log.due()];
        due.into_iter()
            .flatten()
            .min()
            .map(|next| next.saturating_duration_since(now))
    }

    fn take_connections(&mut self) {
        for index in 0..self.listeners.len() {
            for _ in 0..ROUND {
                match self.listeners[index].accept() {
                    Ok((socket, peer)) => {
                        let left = self.visitors.enter(socket, plain(peer), Instant::now());
                        left.into_iter().for_each(|left| self.see_off(left));
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    // The peer was gone before it was taken.
                    Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                    Err(error) => {
                        self.shared
                            .log
                            .trouble(Failure::system("taking a connection", &error));
                        self.rests_until = Some(Instant::now() + PAUSE);
                        return;
                    }
                }
            }
        }
    }

    fn see_off(&mut self, left: Left) {
        let outcome = left.and_then(|named| {
            let peer = named.peer;
            self.bring(named).map_err(|error| (peer, error))
        });
        if let Err((peer, error)) = outcome {
            self.shared.log.refuse(peer, error);
        }
    }

    /// Brings a connection to its session, or begins one with it.
    fn bring(&mut self, named: Named) -> Result<(), Failure> {
        let Named {
            socket,
            peer,
            order,
            cookie,
        } = named;
        let mut socket = match self.shared.register.deliver(socket, order, &cookie) {
            Delivery::Delivered => return Ok(()),
            Delivery::Unexpected => return Err(protocol("a stream came that its session does not expect")),
            Delivery::New(socket) => socket,
        };
        let local = socket.local_addr().map(plain);
        let local = local.map_err(|error| Failure::system("control socket", &error))?;
        let seat = if self.shared.register.is_used_up() {
            Err(Failure::new(
                FailureKind::Busy,
                "the server has served all the sessions it should",
            ))
        } else {
            self.shared.register.admit(&cookie, peer, local)
        };
        match seat {
            Ok(seat) => self.seat(socket, peer, seat),
            Err(error) => {
                // Best effort: whoever does not read it is closed all the same.
                let _ = socket.write(&[Word::AccessDenied.byte()]);
                Err(error)
            }
        }
    }

    fn seat(&mut self, socket: TcpStream, peer: SocketAddr, seat: Seat) -> Result<(), Failure> {
        let (shared, over) = (Arc::clone(self.shared), Arc::new(AtomicBool::new(false)));
        let leaving = Leaving(Arc::clone(&over), Arc::clone(self.shared));
        let thread = std::thread::Builder::new()
            .name("fl-iperf3-ctl".into())
            .spawn(move || {
                let _leaving = leaving;
                session::serve(&shared, Caller { socket, peer, seat });
            })
            .map_err(|error| Failure::system("starting thread fl-iperf3-ctl", &error))?;
        self.guests.push(Guest { over, thread });
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

    /// Ends the sessions that run, each of which tells its client.
    fn see_out(&mut self) {
        self.shared.register.wake_all();
        for guest in std::mem::take(&mut self.guests) {
            self.join(guest);
        }
    }
}

/// Says that a session's thread is about to end, however it ends.
struct Leaving(Arc<AtomicBool>, Arc<Shared>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
        self.1.bell.wake();
    }
}
