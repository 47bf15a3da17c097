//! One connection, from the TLS handshake to its end: a session, or several one after the other.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use farline_spec::Failure;
use farline_sys::wake::poll_readable;
use tracing::{debug, error_span, field};

use super::Shared;
use super::permits::HandshakePermit;
use super::session::Session;
use crate::channel::{Channel, Interrupt, Silence};
use crate::machine::Timing;
use crate::message::{ClientMessage, ServerMessage};

/// Most connections whose session is over that are kept at once: each has a thread that only waits.
const MOST_KEPT: usize = 16;
/// How often one of them looks whether the server takes any more sessions.
const LOOK: Duration = Duration::from_millis(100);

/// Who is at the other end of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Caller {
    /// Its address.
    pub peer: SocketAddr,
    /// Where it listens, if it was this server that connected, and so opens the streams too.
    pub back: Option<SocketAddr>,
}

/// Serves one connection. Whatever comes of it is written to the log.
pub fn serve(
    shared: &Shared,
    socket: TcpStream,
    caller: Caller,
    interrupt: Interrupt,
    permit: HandshakePermit,
) {
    let _within = error_span!("session", session = field::Empty).entered();
    debug!(peer = %caller.peer, "TLS handshake with a client");
    let opened = Session::open(shared, socket, caller, interrupt, permit);
    let mut left = see_through(shared, caller, opened);
    drop(_within);
    while let Some(connection) = left {
        let _within = error_span!("session", session = field::Empty).entered();
        left = see_through(shared, caller, connection.next_session(shared));
    }
}

/// One session to its end; what is left of it, should the connection go on.
fn see_through(
    shared: &Shared,
    caller: Caller,
    opened: Result<Option<Session>, Failure>,
) -> Option<Connection> {
    match opened {
        Ok(session) => session?.drive(),
        Err(error) => {
            shared.log.refuse(caller.peer, error);
            None
        }
    }
}

/// A connection on which a session can begin.
pub struct Connection {
    /// The control channel.
    pub channel: Channel<ClientMessage>,
    /// Who is at its other end.
    pub caller: Caller,
    /// This end's address.
    pub local: SocketAddr,
    /// Ends all of its waiting.
    pub interrupt: Interrupt,
}

impl Connection {
    /// The next session, once the client wants one; none where it does not in time, or this server waits for enough others.
    fn next_session(self, shared: &Shared) -> Result<Option<Session<'_>>, Failure> {
        let Some(seat) = shared.kept.sit() else {
            debug!("enough connections are kept: this one is closed");
            self.channel.farewell(None::<&ServerMessage>, || ());
            return Ok(None);
        };
        let timing = Timing {
            setup: shared.timing.kept + shared.timing.setup,
            ..shared.timing
        };
        let mut session = Session::on(shared, self, timing, Instant::now())?;
        session.kept = Some(seat);
        session.act();
        let until = session.began + shared.timing.kept;
        while Instant::now() < until && !shared.takes_no_more() && !session.interrupt.is_raised() {
            match session.channel.silence(LOOK)? {
                Silence::Lasts => {}
                Silence::Broken => return Ok(Some(session)),
                Silence::Final => return Ok(None),
            }
        }
        session.channel.farewell(None::<&ServerMessage>, || ());
        Ok(None)
    }
}

/// Whether a connection ends before its first byte: somebody measured the path, which is no client and no trouble.
pub fn is_only_a_look(socket: &TcpStream, interrupt: &Interrupt, within: Duration) -> bool {
    let fds = [socket.as_fd(), interrupt.waker().as_fd()];
    let is_ready = poll_readable(&fds, Some(within)).is_ok_and(|ready| ready[0]);
    is_ready && matches!(socket.peek(&mut [0; 1]), Ok(0))
}

/// Places for connections that are kept.
#[derive(Debug, Default)]
pub struct KeptSeats(AtomicUsize);

/// One of them; given back when dropped.
#[derive(Debug)]
pub struct KeptSeat<'a>(&'a AtomicUsize);

impl KeptSeats {
    /// A place, if one is free.
    pub fn sit(&self) -> Option<KeptSeat<'_>> {
        let more = |taken| (taken < MOST_KEPT).then_some(taken + 1);
        let sat = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        sat.ok().map(|_| KeptSeat(&self.0))
    }
}

impl Drop for KeptSeat<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_is_given_back_is_free_for_another() {
        let seats = KeptSeats::default();
        let mut taken: Vec<_> = std::iter::from_fn(|| seats.sit()).collect();
        assert_eq!(taken.len(), MOST_KEPT);
        taken.pop();
        assert!(seats.sit().is_some());
    }
}
