//! One UDT connection as a program uses it.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use farline_proto::udt::{Closed, MessageRead, Reader, Statistics};
use farline_spec::{Failure, FailureKind, Granted};
use farline_sys::time;

use super::SLICE_NS;
use super::driver::Driver;
use super::opening::{Way, open_on, port_between};
use super::options::SocketOptions;
use crate::failure::timed_out;

/// Bytes after which a sender takes a turn, however fast it is given more.
const TURN_BYTES: usize = 64 << 10;
/// Time after which it does so however slowly.
const TURN_NS: u64 = 50_000;

/// One open connection, driven by the calls of one thread.
///
/// Between two calls nothing is received, acknowledged or repeated: a program that has nothing to send or to receive
/// for more than a few seconds calls [`Self::idle`] now and then. Dropping a socket ends the connection at once;
/// [`Self::close`] delivers what was sent first.
#[derive(Debug)]
pub struct Socket {
    pub(super) driver: Driver,
    options: SocketOptions,
    /// Bytes taken since the last turn, and when that was.
    untold_bytes: usize,
    turned_ns: u64,
}

impl Socket {
    /// Calls the listener at `remote`, which may also come later, as long as it is there by `deadline`. Where `local`
    /// names a port, connections of this process between the same two ports share it.
    ///
    /// # Errors
    /// `Timeout` when nobody answers, `Protocol` when the listener refuses, `Busy` for a local port that is
    /// another's, `Spec` for options that cannot be honoured here.
    pub fn connect(
        local: Option<SocketAddr>,
        remote: SocketAddr,
        options: &SocketOptions,
        deadline: Instant,
    ) -> Result<Self, Failure> {
        let port = port_between(local, remote, options)?;
        open_on(port, Way::PatientCaller, options, deadline).map(|driver| Self::new(driver, options))
    }

    /// Meets `remote`, which does the same towards `local` at about the same time.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub fn rendezvous(
        local: SocketAddr,
        remote: SocketAddr,
        options: &SocketOptions,
        deadline: Instant,
    ) -> Result<Self, Failure> {
        let port = port_between(Some(local), remote, options)?;
        open_on(port, Way::Rendezvous, options, deadline).map(|driver| Self::new(driver, options))
    }

    pub(super) fn new(driver: Driver, options: &SocketOptions) -> Self {
        Self {
            driver,
            options: options.clone(),
            untold_bytes: 0,
            turned_ns: 0,
        }
    }

    /// Sends bytes of a stream; gives how many were taken, which is all of them unless `deadline` has passed.
    ///
    /// The last ones may wait for company as long as no further call is made: see [`Self::flush`].
    ///
    /// # Errors
    /// When the connection is over, or the socket fails.
    pub fn send(&mut self, bytes: &[u8], deadline: Instant) -> Result<usize, Failure> {
        let mut taken = 0;
        loop {
            let now_ns = time::now_ns();
            let end = bytes.len().min(taken + TURN_BYTES);
            let written = self.driver.connection.write(now_ns, &bytes[taken..end]);
            taken += written;
            self.untold_bytes += written;
            let is_due = self.untold_bytes >= TURN_BYTES || now_ns - self.turned_ns >= TURN_NS;
            if taken == bytes.len() && !is_due {
                return Ok(taken);
            }
            let moved = self.turn(now_ns)?;
            self.still_open()?;
            if taken == bytes.len() {
                return Ok(taken);
            }
            if moved == 0 && written == 0 {
                let Some(until_ns) = slice_ns(deadline) else {
                    return Ok(taken);
                };
                self.driver.wait(until_ns)?;
            }
        }
    }

    fn turn(&mut self, now_ns: u64) -> Result<usize, Failure> {
        (self.untold_bytes, self.turned_ns) = (0, now_ns);
        self.driver.turn(&mut Reader::none())
    }

    /// Sends what waits for company as soon as the other end and the path allow, without waiting for that.
    ///
    /// # Errors
    /// When the connection is over, or the socket fails.
    pub fn flush(&mut self) -> Result<(), Failure> {
        let now_ns = time::now_ns();
        self.driver.connection.flush();
        self.turn(now_ns)?;
        self.still_open()
    }

    /// Receives bytes of a stream as they come; 0 is the end.
    ///
    /// # Errors
    /// `Timeout` when nothing has come by `deadline`; the connection's end other than by finishing; the socket's.
    pub fn receive(&mut self, buffer: &mut [u8], deadline: Instant) -> Result<usize, Failure> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            let filled = self.driver.fill(buffer)?;
            if filled > 0 {
                return Ok(filled);
            }
            if self.driver.connection.readable_bytes() > 0 {
                continue;
            }
            if self.has_ended()? {
                return Ok(0);
            }
            self.wait(deadline)?;
        }
    }

    /// Sends a whole message, which the receiver gets in one piece; in the order of sending if `in_order`. After
    /// `lifetime` it is given up if it has not arrived.
    ///
    /// # Errors
    /// `Spec` for one that is larger than the send buffer, `Timeout` when there is no room by `deadline`; as
    /// [`Self::send`].
    pub fn send_message(
        &mut self,
        message: &[u8],
        in_order: bool,
        lifetime: Option<Duration>,
        deadline: Instant,
    ) -> Result<(), Failure> {
        if message.is_empty() {
            return Err(Failure::option(
                "message",
                "it is empty, and UDT cannot send an empty message",
            ));
        }
        let lifetime_ns = lifetime.map(|it| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX));
        loop {
            let now_ns = time::now_ns();
            let connection = &mut self.driver.connection;
            let is_taken = connection.room_bytes() > 0
                && connection.write_message(now_ns, message, in_order, lifetime_ns);
            let moved = self.turn(now_ns)?;
            self.still_open()?;
            if is_taken {
                return Ok(());
            }
            if moved == 0 {
                self.check_message(message)?;
                self.wait(deadline)?;
            }
        }
    }

    /// A message that an empty buffer has no room for will never have any.
    fn check_message(&self, message: &[u8]) -> Result<(), Failure> {
        let statistics = self.driver.statistics();
        let is_empty = statistics.flight_packets == 0 && statistics.send_buffer_free_bytes > 0;
        let is_hopeless = is_empty && message.len() as u64 > statistics.send_buffer_free_bytes;
        if is_hopeless {
            let (length, free) = (message.len(), statistics.send_buffer_free_bytes);
            let reason = format!("{length} bytes: the send buffer has room for {free}");
            return Err(Failure::option("message", reason));
        }
        Ok(())
    }

    /// Receives the next whole message, cut to the length of `buffer`; none at the end.
    ///
    /// # Errors
    /// As [`Self::receive`].
    pub fn receive_message(
        &mut self,
        buffer: &mut [u8],
        deadline: Instant,
    ) -> Result<Option<MessageRead>, Failure> {
        loop {
            if let Some(message) = self.driver.connection.read_message(time::now_ns(), buffer) {
                return Ok(Some(message));
            }
            let moved = self.driver.turn(&mut Reader::none());
            if let Some(message) = self.driver.connection.read_message(time::now_ns(), buffer) {
                return Ok(Some(message));
            }
            if self.has_ended()? {
                return Ok(None);
            }
            if moved? == 0 {
                self.wait(deadline)?;
            }
        }
    }

    /// Drives the connection without sending or receiving anything of the program's until `until`.
    ///
    /// # Errors
    /// The socket's.
    pub fn idle(&mut self, until: Instant) -> Result<(), Failure> {
        while let Some(until_ns) = slice_ns(until) {
            let now_ns = time::now_ns();
            if self.turn(now_ns)? == 0 {
                self.driver.wait(until_ns)?;
            }
        }
        Ok(())
    }

    /// Delivers what was sent, for `linger` at most, and ends the connection.
    ///
    /// # Errors
    /// `Timeout` when the other end does not have everything by then; as [`Self::send`].
    pub fn close(mut self, linger: Duration) -> Result<(), Failure> {
        self.finish(linger)
    }

    /// As [`Self::close`], with the figures still there to be asked for.
    ///
    /// # Errors
    /// As [`Self::close`].
    pub fn finish(&mut self, linger: Duration) -> Result<(), Failure> {
        let until_ns = time::now_ns().saturating_add(u64::try_from(linger.as_nanos()).unwrap_or(u64::MAX));
        if self.has_ended()? || self.driver.finish(until_ns, &|| Ok(()))? {
            return Ok(());
        }
        Err(timed_out(format!("UDT connection with {}", self.peer_addr())))
    }

    /// Figures up to now.
    pub fn statistics(&self) -> Statistics {
        self.driver.statistics()
    }

    /// Whether the other end has said that it is farline.
    pub fn is_peer_farline(&self) -> bool {
        self.driver.connection.is_peer_farline()
    }

    /// What the kernel granted, and where it differs from what was asked for.
    pub fn granted(&self) -> Granted {
        self.driver.granted(&self.options.spec)
    }

    /// Address and port of this end.
    ///
    /// # Errors
    /// The kernel's.
    pub fn local_addr(&self) -> Result<SocketAddr, Failure> {
        let address = self.driver.member.port.socket.local_addr();
        let address = address.map_err(|error| Failure::system("local address", &error))?;
        address
            .as_socket()
            .ok_or_else(|| Failure::new(FailureKind::Internal, "a UDP socket without an IP address"))
    }

    /// Address and port of the other end.
    pub fn peer_addr(&self) -> SocketAddr {
        self.driver.member.port.remote
    }

    fn still_open(&self) -> Result<(), Failure> {
        self.driver
            .closed()
            .map_or(Ok(()), |closed| Err(self.driver.failure(closed)))
    }

    /// Whether the other end has finished. Everything it had sent before has been read when this is asked.
    fn has_ended(&self) -> Result<bool, Failure> {
        match self.driver.closed() {
            None => Ok(false),
            Some(Closed::ByPeer | Closed::ByUs) => Ok(true),
            Some(closed) => Err(self.driver.failure(closed)),
        }
    }

    fn wait(&mut self, deadline: Instant) -> Result<(), Failure> {
        let until_ns = slice_ns(deadline)
            .ok_or_else(|| timed_out(format!("UDT connection with {}", self.peer_addr())))?;
        self.driver.wait(until_ns)
    }
}

/// `deadline`, or the end of a slice if that is earlier; none if it has passed.
fn slice_ns(deadline: Instant) -> Option<u64> {
    let left = deadline.saturating_duration_since(Instant::now());
    let left_ns = u64::try_from(left.as_nanos()).unwrap_or(u64::MAX);
    (left_ns > 0).then(|| time::now_ns() + left_ns.min(SLICE_NS))
}
