//! How the client comes to a control channel: it connects to the server or waits for it, and goes through TLS.

use std::collections::VecDeque;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crossbeam_channel::{Sender, unbounded};
use farline_spec::{Failure, RunSpec};
use tracing::debug;

use super::back::ReverseListener;
use super::connect::{self, Contact};
use super::{Event, RunControl, emit};
use crate::channel::{Channel, Interrupt};
use crate::message::ServerMessage;
use crate::target::Target;
use crate::tls::{ClientSide, Fingerprint};

/// Longest that the TLS handshake may take once the connection stands, should the spec allow more.
const MAX_HANDSHAKE: Duration = Duration::from_secs(30);
/// Longest that somebody who connects may take over it, where the server is waited for.
const STRANGER_TIME: Duration = Duration::from_secs(5);
/// Connections that are greeted at once, where the server is waited for.
const MAX_GUESTS: usize = 16;

/// Where the server is, the key that it showed, and the channel to it.
pub(super) type Greeted = (SocketAddr, Option<Fingerprint>, Channel<ServerMessage>);

/// The server, connected to or waited for at `door`, within the spec's time to connect.
pub(super) fn reach(
    target: &Target,
    spec: &RunSpec,
    mut contact: Option<Contact>,
    door: Option<&ReverseListener>,
    events: &Sender<Event>,
    orders: &RunControl,
    began: Instant,
) -> Result<Greeted, Failure> {
    let allowed = Duration::from_millis(spec.connect_timeout_ms.get().into());
    let deadline = began + allowed;
    if let Some(door) = door {
        emit(events, Event::Listening(door.address()));
        return await_server(door, target, events, orders, deadline);
    }
    let unwanted = || orders.is_stopped() || orders.interrupt.is_raised();
    let mut greet_once = || {
        let contact = match contact.take() {
            Some(contact) => contact,
            None => connect::control(target, spec.ip_version, deadline, &unwanted)?,
        };
        let by = Instant::now() + allowed.min(MAX_HANDSHAKE);
        greet(contact.socket, target, &orders.interrupt, by, &|key| {
            emit(events, Event::ServerKey(key));
        })
    };
    connect::again_while_busy(&mut greet_once, deadline, &unwanted)
}

/// TLS over a connection, as the client of it whoever opened it. The key that the server shows is told, whatever comes of it.
pub(super) fn greet(
    socket: TcpStream,
    target: &Target,
    interrupt: &Interrupt,
    deadline: Instant,
    tell: &dyn Fn(Fingerprint),
) -> Result<Greeted, Failure> {
    let server = socket
        .peer_addr()
        .map_err(|error| Failure::system("control socket", &error))?;
    debug!(server = %server, is_pinned = target.pin.is_some(), "TLS handshake with the server");
    let (tls, seen) = ClientSide::new(target.pin)?.split();
    let opened = Channel::open(socket, tls, interrupt.clone(), deadline);
    let key = seen.fingerprint();
    if let Some(key) = key {
        debug!(server_key = %key, "server has shown its key");
        tell(key);
    }
    let channel = opened
        .map_err(|failure| seen.mismatch().unwrap_or(failure))
        .inspect_err(|failure| debug!(reason = failure.message, "handshake failed"))?;
    Ok((server, key, channel))
}

/// Takes connections until one of them is the server's: whoever else comes is closed. Several are greeted at once, so that
/// one who says nothing keeps nobody out.
fn await_server(
    door: &ReverseListener,
    target: &Target,
    events: &Sender<Event>,
    orders: &RunControl,
    deadline: Instant,
) -> Result<Greeted, Failure> {
    let (said, outcomes) = unbounded();
    let unwanted = || orders.is_stopped() || orders.interrupt.is_raised() || !outcomes.is_empty();
    std::thread::scope(|scope| {
        let mut guests = Guests::default();
        loop {
            if let Ok((peer, outcome)) = outcomes.try_recv() {
                guests.0.retain(|guest| guest.peer_addr().ok() != Some(peer));
                let Ok(greeted) = outcome else { continue };
                // It is the pinned one; what strangers showed is nobody's business.
                target
                    .pin
                    .iter()
                    .for_each(|&key| emit(events, Event::ServerKey(key)));
                return Ok(greeted);
            }
            let socket = match door.next(deadline, &unwanted) {
                Ok(socket) => socket,
                Err(_) if !outcomes.is_empty() => continue,
                Err(failure) => return Err(failure),
            };
            let Some(peer) = guests.take(&socket) else {
                continue;
            };
            let said = said.clone();
            scope.spawn(move || {
                let by = deadline.min(Instant::now() + STRANGER_TIME);
                let greeted = greet(socket, target, &orders.interrupt, by, &|_| ());
                // Who waits no longer has the server already, or has given up.
                let _ = said.send((peer, greeted));
            });
        }
    })
}

/// Connections that are being greeted; closed when dropped.
#[derive(Default)]
struct Guests(VecDeque<TcpStream>);

impl Guests {
    /// Where `socket` comes from, once there is a place for it: the oldest gives way.
    fn take(&mut self, socket: &TcpStream) -> Option<SocketAddr> {
        let (own, peer) = (socket.try_clone().ok()?, socket.peer_addr().ok()?);
        self.0.push_back(own);
        let oldest = (self.0.len() > MAX_GUESTS).then(|| self.0.pop_front());
        oldest.flatten().iter().for_each(close);
        Some(peer)
    }
}

impl Drop for Guests {
    fn drop(&mut self) {
        self.0.iter().for_each(close);
    }
}

fn close(guest: &TcpStream) {
    // Refused by one that is closed already.
    let _ = guest.shutdown(Shutdown::Both);
}
