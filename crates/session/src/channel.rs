//! The control channel: one TCP connection with TLS on it, typed messages inside.
//!
//! Every wait has an end: a deadline, a peer that closes, or [`Interrupt`], by which another
//! thread makes the owner look up from whatever it waits for.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use farline_spec::{Failure, FailureKind};
use farline_sys::wake::{Interest, Waker, poll_readable, poll_ready};
use rustls::Connection;
use serde::Serialize;
use serde::de::DeserializeOwned;
use socket2::{SockRef, TcpKeepalive};
use tracing::debug;

use crate::message::frame::{Decoder, encode};
use crate::message::tame_line;
use crate::tls::speaks_farline;

/// How often a wait without a waker looks whether it was interrupted.
const SLICE: Duration = Duration::from_millis(100);
/// Longest that a send may go without moving a byte.
const SEND_STALL: Duration = Duration::from_secs(30);
/// Longest that one message may take, however steadily its bytes move.
const SEND_MOST: Duration = Duration::from_secs(120);
/// Longest that the last words to a peer may take.
const FAREWELL: Duration = Duration::from_secs(1);
/// A peer that is gone without a word is noticed after idle + 4 times the interval: 35 s.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const READ_BYTES: usize = 16_384;

/// Makes the owner of a channel look up.
#[derive(Debug, Clone)]
pub struct Interrupt {
    raised: Arc<AtomicBool>,
    waker: Arc<Waker>,
}

impl Interrupt {
    /// One that nobody raised yet.
    ///
    /// # Errors
    /// [`FailureKind::System`] when no file descriptor is left.
    pub fn new() -> Result<Self, Failure> {
        let waker = Waker::new().map_err(|error| Failure::system("eventfd", &error))?;
        Ok(Self {
            raised: Arc::default(),
            waker: Arc::new(waker),
        })
    }

    /// Ends all waiting for good.
    pub fn raise(&self) {
        self.raised.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Whether it was raised.
    pub fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Acquire)
    }

    /// Ends one wait: something else than a message is to be looked at.
    pub fn waker(&self) -> &Arc<Waker> {
        &self.waker
    }
}

/// What a wait brought.
#[derive(Debug)]
pub struct Arrival<In> {
    /// Whole messages, in order.
    pub messages: Vec<In>,
    /// Whether the peer has closed; nothing more will come.
    pub closed: bool,
    /// What came but is no message.
    pub failure: Option<Failure>,
}

/// What is heard of a peer that need not say anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// Nothing so far.
    Lasts,
    /// It says something.
    Broken,
    /// It has closed.
    Final,
}

impl<In> Arrival<In> {
    fn is_empty(&self) -> bool {
        self.messages.is_empty() && !self.closed && self.failure.is_none()
    }
}

/// A control channel on which messages of type `In` arrive.
#[derive(Debug)]
pub struct Channel<In> {
    socket: TcpStream,
    tls: Connection,
    decoder: Decoder<In>,
    interrupt: Interrupt,
    /// Messages may have come with the end of the handshake: they are read already, and the socket does not tell of them.
    may_hold_some: bool,
    /// Bytes that came from the other end.
    heard: usize,
}

impl<In: DeserializeOwned> Channel<In> {
    /// Goes through the TLS handshake until `deadline`. A server goes on as soon as it may speak: what it hears comes after the
    /// client's last word of the handshake all the same.
    ///
    /// # Errors
    /// [`FailureKind::Timeout`], [`FailureKind::Interrupted`], [`FailureKind::Protocol`] for a peer that closes, or does not
    /// speak farline in TLS 1.3, and [`FailureKind::Busy`] for a server that closes before it has said anything.
    pub fn open(
        socket: TcpStream,
        tls: Connection,
        interrupt: Interrupt,
        deadline: Instant,
    ) -> Result<Self, Failure> {
        prepare(&socket).map_err(|error| Failure::system("control socket", &error))?;
        let mut channel = Self {
            socket,
            tls,
            decoder: Decoder::default(),
            interrupt,
            may_hold_some: true,
            heard: 0,
        };
        while channel.tls.is_handshaking() && !channel.may_speak() {
            channel.shake(deadline)?;
        }
        channel.flush(deadline)?;
        debug!(
            version = channel
                .tls
                .protocol_version()
                .and_then(|version| version.as_str()),
            cipher = channel
                .tls
                .negotiated_cipher_suite()
                .and_then(|found| found.suite().as_str()),
            "TLS of the control channel stands"
        );
        if !speaks_farline(&channel.tls) {
            debug!("the other end uses TLS, but is not farline");
            return Err(protocol("the other end uses TLS, but is not farline"));
        }
        Ok(channel)
    }

    /// Whether this is a server that has heard enough to speak.
    fn may_speak(&self) -> bool {
        matches!(self.tls, Connection::Server(_)) && speaks_farline(&self.tls)
    }

    /// The TLS session, from which proofs are derived.
    pub fn tls(&self) -> &Connection {
        &self.tls
    }

    /// Sends one message whole.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`] for a peer that closed, [`FailureKind::Timeout`] for one that takes nothing
    /// for 30 s or not all of it in two minutes, [`FailureKind::Interrupted`].
    pub fn send<Out: Serialize>(&mut self, message: &Out) -> Result<(), Failure> {
        self.write(message, None)
    }

    /// Sends last words, does `meanwhile`, and closes. Waits for a peer that gets an error to take it,
    /// but for no more than a second in all; what cannot be sent by then is lost.
    pub fn farewell<Out: Serialize>(mut self, message: Option<&Out>, meanwhile: impl FnOnce()) {
        let deadline = Instant::now() + FAREWELL;
        // The interrupt ends waiting for the peer, not telling it why.
        self.interrupt.raised = Arc::default();
        let told = message.map_or(Ok(()), |message| self.write(message, Some(deadline)));
        self.tls.send_close_notify();
        let told = told.and_then(|()| self.flush(deadline)).is_ok();
        meanwhile();
        if told && message.is_some() {
            linger(&self.socket, deadline);
        }
    }

    /// Goes on under another interrupt: the channel is a later session's.
    pub fn hand_over(&mut self, interrupt: Interrupt) {
        self.interrupt = interrupt;
        self.may_hold_some = true;
    }

    /// What is heard within `within` of a peer that need not say anything; less where the interrupt's waker is woken.
    ///
    /// # Errors
    /// [`FailureKind::System`] when the kernel refuses to wait.
    pub fn silence(&self, within: Duration) -> Result<Silence, Failure> {
        let fds = [self.socket.as_fd(), self.interrupt.waker.as_fd()];
        let ready = poll_readable(&fds, Some(within)).map_err(|error| Failure::system("poll", &error))?;
        self.interrupt.waker.drain();
        Ok(match ready[0] {
            false => Silence::Lasts,
            true if matches!(self.socket.peek(&mut [0; 1]), Ok(1)) => Silence::Broken,
            true => Silence::Final,
        })
    }

    /// Whether this end wants it to be over.
    pub fn is_interrupted(&self) -> bool {
        self.interrupt.is_raised()
    }

    /// Whether something has come that was not read, or the peer has closed.
    pub fn has_more(&self) -> bool {
        poll_readable(&[self.socket.as_fd()], Some(Duration::ZERO)).is_ok_and(|ready| ready[0])
    }

    /// Waits until something came, the interrupt's waker was woken, or `timeout` has passed.
    ///
    /// # Errors
    /// [`FailureKind::System`] when the kernel refuses to wait.
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<Arrival<In>, Failure> {
        let mut arrival = Arrival {
            messages: Vec::new(),
            closed: false,
            failure: None,
        };
        if std::mem::take(&mut self.may_hold_some) {
            arrival.failure = self.read_held(&mut arrival).err();
            if !arrival.is_empty() {
                return Ok(arrival);
            }
        }
        let fds = [self.socket.as_fd(), self.interrupt.waker.as_fd()];
        let ready = poll_readable(&fds, timeout).map_err(|error| Failure::system("poll", &error))?;
        self.interrupt.waker.drain();
        if ready[0] {
            let read = self.read_once(&mut arrival);
            arrival.failure = read.err();
        }
        Ok(arrival)
    }

    fn read_once(&mut self, arrival: &mut Arrival<In>) -> Result<(), Failure> {
        arrival.closed = self.pull()?;
        self.read_held(arrival)
    }

    /// Takes the messages out of what TLS has read.
    fn read_held(&mut self, arrival: &mut Arrival<In>) -> Result<(), Failure> {
        let mut bytes = [0; READ_BYTES];
        loop {
            match self.tls.reader().read(&mut bytes) {
                Ok(0) => {
                    arrival.closed = true;
                    return Ok(());
                }
                Ok(count) => self.decoder.push(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                // Closed without a farewell: a peer that vanished.
                Err(_) => {
                    arrival.closed = true;
                    return Ok(());
                }
            }
            while let Some(message) = self.decoder.next_message()? {
                arrival.messages.push(message);
            }
        }
    }

    /// Takes what the socket has into TLS; true if the peer closed.
    fn pull(&mut self) -> Result<bool, Failure> {
        let count = match self.tls.read_tls(&mut self.socket) {
            Err(error) if is_again(&error) => return Ok(false),
            // A reset is an end like any other.
            Err(_) => 0,
            Ok(count) => count,
        };
        self.heard = self.heard.saturating_add(count);
        if let Err(error) = self.tls.process_new_packets() {
            // The alert that says why; if it cannot be sent, the close must do.
            let _ = self.tls.write_tls(&mut self.socket);
            return Err(protocol(&tame_line(&format!("TLS: {error}"))));
        }
        Ok(count == 0)
    }

    fn shake(&mut self, deadline: Instant) -> Result<(), Failure> {
        self.flush(deadline)?;
        if !self.tls.is_handshaking() {
            return Ok(());
        }
        self.ready(Interest::Readable, deadline, "TLS handshake")?;
        let before = self.heard;
        if !self.pull()? {
            return Ok(());
        }
        if before == 0 && matches!(self.tls, Connection::Client(_)) {
            let line = "the server closed the connection without an answer: it is full, or it is not a farline server; try again later";
            return Err(Failure::new(FailureKind::Busy, line));
        }
        Err(protocol(
            "the other end closed the connection in the TLS handshake",
        ))
    }

    /// Without a deadline, each byte that moves buys time for the next, but only so much in all.
    fn write<Out: Serialize>(&mut self, message: &Out, deadline: Option<Instant>) -> Result<(), Failure> {
        let frame = encode(message)?;
        let most = Instant::now() + SEND_MOST;
        let mut rest = frame.as_slice();
        while !rest.is_empty() {
            let taken = self
                .tls
                .writer()
                .write(rest)
                .map_err(|error| Failure::system("TLS", &error))?;
            rest = &rest[taken..];
            self.flush_until(|| deadline.unwrap_or_else(|| most.min(Instant::now() + SEND_STALL)))?;
        }
        Ok(())
    }

    fn flush(&mut self, deadline: Instant) -> Result<(), Failure> {
        self.flush_until(|| deadline)
    }

    fn flush_until(&mut self, deadline: impl Fn() -> Instant) -> Result<(), Failure> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if is_again(&error) => {
                    self.ready(Interest::Writable, deadline(), "control channel")?
                }
                Err(error) => return Err(protocol(&format!("control channel: {error}"))),
            }
        }
        Ok(())
    }

    fn ready(&self, interest: Interest, deadline: Instant, what: &str) -> Result<(), Failure> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Failure::new(
                    FailureKind::Timeout,
                    format!("{what}: no progress within the time limit"),
                ));
            }
            if self.interrupt.is_raised() {
                return Err(Failure::new(
                    FailureKind::Interrupted,
                    format!("{what}: stopped by this end"),
                ));
            }
            let fds = [
                (self.socket.as_fd(), interest),
                (self.interrupt.waker.as_fd(), Interest::Readable),
            ];
            // Until the session has begun nobody wakes but who interrupts.
            let watched = if self.tls.is_handshaking() {
                &fds[..]
            } else {
                &fds[..1]
            };
            let ready = poll_ready(watched, Some(left.min(SLICE)));
            if ready.map_err(|error| Failure::system("poll", &error))?[0] {
                return Ok(());
            }
        }
    }
}

/// No small packets that wait for one another, and no peer that is gone without being noticed.
fn prepare(socket: &TcpStream) -> std::io::Result<()> {
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(4);
    SockRef::from(socket).set_tcp_keepalive(&keepalive)?;
    // Where a path loses much, waits that double after each loss would keep a session longer than its run.
    SockRef::from(socket).set_tcp_thin_linear_timeouts(true)?;
    socket.set_nodelay(true)?;
    socket.set_nonblocking(true)
}

/// Reads and drops until the peer closes: closing a socket with unread bytes would make the
/// kernel send a reset, which takes last words away from the peer.
fn linger(socket: &TcpStream, deadline: Instant) {
    let mut socket = socket;
    if socket.shutdown(std::net::Shutdown::Write).is_err() {
        return;
    }
    let mut bytes = [0; READ_BYTES];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let waited = poll_readable(&[socket.as_fd()], Some(left));
        if left.is_zero()
            || !waited.is_ok_and(|ready| ready[0])
            || !matches!(socket.read(&mut bytes), Ok(1..))
        {
            return;
        }
    }
}

fn is_again(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn protocol(line: &str) -> Failure {
    Failure::new(FailureKind::Protocol, line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{ClientMessage, ServerMessage};
    use crate::state_dir::StateDir;
    use crate::tls::{ClientSide, ServerIdentity};
    use std::net::TcpListener;

    const SOON: Duration = Duration::from_secs(5);

    type Ends = (Channel<ServerMessage>, Channel<ClientMessage>);

    fn sockets() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    fn server_tls() -> Connection {
        let folder = tempfile::tempdir().unwrap();
        let identity = ServerIdentity::load(&StateDir::open(folder.path()).unwrap()).unwrap();
        rustls::ServerConnection::new(identity.config).unwrap().into()
    }

    fn open<In: DeserializeOwned>(socket: TcpStream, tls: Connection) -> Result<Channel<In>, Failure> {
        Channel::open(socket, tls, Interrupt::new().unwrap(), Instant::now() + SOON)
    }

    fn ends() -> Ends {
        let (near, far) = sockets();
        let server = std::thread::spawn(move || open(far, server_tls()).unwrap());
        let (tls, _) = ClientSide::new(None).unwrap().split();
        (open(near, tls).unwrap(), server.join().unwrap())
    }

    /// The next that comes; a wait may bring the rest of a handshake and nothing else.
    fn next<In: DeserializeOwned>(channel: &mut Channel<In>) -> Arrival<In> {
        let until = Instant::now() + SOON;
        loop {
            let arrival = channel.wait(Some(SOON)).unwrap();
            if !arrival.is_empty() || Instant::now() > until {
                return arrival;
            }
        }
    }

    #[test]
    fn messages_go_both_ways_and_the_end_is_seen() {
        let (mut client, mut server) = ends();
        server.send(&ServerMessage::TpgDone).unwrap();
        assert_eq!(next(&mut client).messages, [ServerMessage::TpgDone]);
        let thread = std::thread::spawn(move || client.farewell(Some(&ClientMessage::TpgDone), || ()));
        let arrival = next(&mut server);
        assert_eq!(arrival.messages, [ClientMessage::TpgDone]);
        assert!(arrival.closed || next(&mut server).closed);
        drop(server);
        thread.join().unwrap();
    }

    #[test]
    fn what_a_server_says_first_comes_with_its_part_of_the_handshake() {
        let (near, far) = sockets();
        let (mut tls, _) = ClientSide::new(None).unwrap().split();
        // A client that has said its first word and nothing more.
        tls.write_tls(&mut &near).unwrap();
        let mut server: Channel<ClientMessage> = open(far, server_tls()).unwrap();
        server.send(&ServerMessage::TpgDone).unwrap();
        let mut client: Channel<ServerMessage> = open(near, tls).unwrap();
        assert_eq!(next(&mut client).messages, [ServerMessage::TpgDone]);
        client.send(&ClientMessage::TpgDone).unwrap();
        assert_eq!(next(&mut server).messages, [ClientMessage::TpgDone]);
    }

    #[test]
    fn a_peer_that_vanishes_is_closed_and_not_an_error() {
        let (client, mut server) = ends();
        drop(client);
        let arrival = next(&mut server);
        assert!(arrival.closed && arrival.messages.is_empty() && arrival.failure.is_none());
    }

    #[test]
    fn another_protocol_is_refused_in_the_handshake() {
        for greeting in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            b"SSH-2.0-OpenSSH_9.2\r\n",
            &[0; 64],
        ] {
            let (mut near, far) = sockets();
            near.write_all(greeting).unwrap();
            let refusal = open::<ClientMessage>(far, server_tls()).unwrap_err();
            assert_eq!(refusal.kind, FailureKind::Protocol);
        }
    }

    #[test]
    fn a_silent_peer_costs_the_deadline_and_no_more() {
        let (_near, far) = sockets();
        let before = Instant::now();
        let deadline = before + Duration::from_millis(150);
        let refusal = Channel::<ClientMessage>::open(far, server_tls(), Interrupt::new().unwrap(), deadline);
        assert_eq!(refusal.unwrap_err().kind, FailureKind::Timeout);
        assert!(before.elapsed() < Duration::from_secs(2));
    }

    #[test]
    fn an_interrupt_ends_a_send_to_a_peer_that_takes_nothing() {
        let (_client, mut server) = ends();
        let interrupt = server.interrupt.clone();
        let thread = std::thread::spawn(move || {
            let long = ServerMessage::Error(Failure::new(FailureKind::Busy, "x".repeat(500_000)));
            loop {
                if let Err(failure) = server.send(&long) {
                    return failure;
                }
            }
        });
        std::thread::sleep(Duration::from_millis(100));
        interrupt.raise();
        assert_eq!(thread.join().unwrap().kind, FailureKind::Interrupted);
    }

    #[test]
    fn garbage_inside_tls_is_a_failure_after_what_came_before() {
        let (mut client, mut server) = ends();
        client.send(&ClientMessage::TpgDone).unwrap();
        client.tls.writer().write_all(&[0xff; 8]).unwrap();
        client.flush(Instant::now() + SOON).unwrap();
        let (mut messages, mut failure) = (Vec::new(), None);
        while failure.is_none() {
            let arrival = next(&mut server);
            messages.extend(arrival.messages);
            failure = arrival.failure;
        }
        assert_eq!(messages, [ClientMessage::TpgDone]);
        assert_eq!(failure.unwrap().kind, FailureKind::Protocol);
    }
}
