//! One connection, from the TLS handshake to its end: a session, or several one after the other.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use farline_spec::Failure;
use tracing::{debug, error_span, field};

use super::Shared;
use super::connection::{Caller, Connection};
use super::permits::HandshakePermit;
use super::session::Session;
use crate::channel::{Interrupt, Silence};
use crate::machine::Timing;
use crate::message::ServerMessage;

/// How often a connection that is kept looks whether the server takes any more sessions.
const LOOK: Duration = Duration::from_millis(100);

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
        left = see_through(shared, caller, next_session(connection, shared));
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

/// The next session on a connection, once the client wants one; none where it does not in time, or this server waits for
/// enough others.
fn next_session(connection: Connection, shared: &Shared) -> Result<Option<Session<'_>>, Failure> {
    let Some(seat) = shared.kept.sit() else {
        debug!("enough connections are kept: this one is closed");
        connection.channel.farewell(None::<&ServerMessage>, || ());
        return Ok(None);
    };
    let timing = Timing {
        setup: shared.timing.kept + shared.timing.setup,
        ..shared.timing
    };
    let mut session = Session::on(shared, connection, timing, Instant::now())?;
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
