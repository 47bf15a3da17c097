//! A connection: the protocol machine, who works it, and what is to be told to it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use farline_spec::{Failure, FailureKind};
use farline_sys::datagram::MAX_BATCH_BYTES;
use quinn_proto::{
    Connection, ConnectionError, ConnectionEvent, ConnectionHandle, Dir, Event, ReadError, ReadableError,
    StreamEvent, StreamId, VarInt, WriteError,
};

use super::in_order::InOrder;
use super::options::FIRST_WINDOW_BYTES;
use super::port::{Core, Port, locked};
use crate::Received;
use crate::tally::Tally;

/// Bytes written before the connection is worked again: what leaves while it is still in the cache.
const PIECE_BYTES: usize = 64 << 10;
/// A stream may be written ahead by what leaves within this time: no more, for on a slow path what was written ahead takes
/// minutes to arrive after the run is over.
const AHEAD: Duration = Duration::from_millis(250);
/// Most bytes that [`AHEAD`] allows, on a fast path.
const MOST_AHEAD_BYTES: u64 = 4 << 20;
/// Datagrams after which all that the machine has of a stream is taken out of it. It ends the connection where more than 1,024 pieces
/// wait behind gaps, and looks when there are 2,048.
const MOST_UNTAKEN: usize = 512;
/// A round trip counts as no shorter when the window is sized.
const LEAST_RTT: Duration = Duration::from_millis(1);
/// How an end says that it has all, or has given all.
const DONE: VarInt = VarInt::from_u32(0);
/// How an end says that it wants no more of it.
const GONE: VarInt = VarInt::from_u32(1);

/// One connection, which carries one stream of bytes one way.
pub(super) struct Link {
    pub(super) port: Arc<Port>,
    handle: ConnectionHandle,
    pub(super) tally: Tally,
    /// When its next timer is due, in microseconds of the port.
    due_us: AtomicU64,
    inbox: Mutex<Inbox>,
    stirred: Condvar,
    state: Mutex<State>,
}

/// What has come for the connection and nobody has told it yet.
#[derive(Default)]
struct Inbox {
    events: Vec<ConnectionEvent>,
    /// The connection has changed since whoever waits looked at it.
    is_stirred: bool,
    /// Somebody waits who will work the connection.
    is_awaited: bool,
}

/// The connection, for whoever works it.
pub(super) struct State {
    pub(super) connection: Connection,
    stream: Option<StreamId>,
    pub(super) is_open: bool,
    /// This end has said that it was all.
    is_finishing: bool,
    /// The other end has all.
    is_finished: bool,
    /// All that the other end sent has been read.
    has_ended: bool,
    /// This end goes before all was sent, once the other knows.
    is_leaving: bool,
    /// Datagrams that the machine has not counted: the first of a caller.
    uncounted: u64,
    lost: Option<ConnectionError>,
    most_window_bytes: u64,
    reading: Reading,
    /// What came before what is to be read next.
    in_order: InOrder,
    /// The machine has nothing of the stream any more.
    has_all: bool,
    /// What has come since all that the machine had of the stream was taken.
    untaken: usize,
    /// The receive window as the machine knows it.
    granted_bytes: u64,
    buffer: Vec<u8>,
}

/// How fast this end reads, and the window that goes with it, as Linux sizes that of TCP. Who does not read
/// keeps little waiting, who keeps up with the path gets a window four times what a round trip brings.
struct Reading {
    window_bytes: u64,
    most_bytes: u64,
    since: Instant,
    bytes: u64,
}

impl Reading {
    fn new(most_bytes: u64) -> Self {
        Self {
            window_bytes: most_bytes.min(FIRST_WINDOW_BYTES.into()),
            most_bytes,
            since: Instant::now(),
            bytes: 0,
        }
    }

    /// So many bytes were read: the window may be larger from now on.
    fn read(&mut self, bytes: usize, now: Instant, rtt: Duration) {
        self.bytes += bytes as u64;
        if now.duration_since(self.since) < rtt {
            return;
        }
        let keeps_up = self.bytes > self.window_bytes / 4;
        (self.since, self.bytes) = (now, 0);
        if keeps_up {
            self.window_bytes = (2 * self.window_bytes).min(self.most_bytes);
        }
    }
}

impl Link {
    /// Takes care of `connection` from now on; `core` is the port's.
    pub(super) fn join(
        port: &Arc<Port>,
        core: &mut Core,
        (handle, connection): (ConnectionHandle, Connection),
        most_window_bytes: u64,
    ) -> Arc<Self> {
        let uncounted = u64::from(connection.side().is_server());
        let link = Arc::new(Self {
            port: Arc::clone(port),
            handle,
            tally: Tally::default(),
            due_us: AtomicU64::new(0),
            inbox: Mutex::default(),
            stirred: Condvar::new(),
            state: Mutex::new(State {
                connection,
                stream: None,
                is_open: false,
                is_finishing: false,
                is_finished: false,
                has_ended: false,
                is_leaving: false,
                uncounted,
                lost: None,
                most_window_bytes,
                reading: Reading::new(most_window_bytes),
                in_order: InOrder::default(),
                has_all: false,
                untaken: 0,
                granted_bytes: most_window_bytes.min(FIRST_WINDOW_BYTES.into()),
                buffer: Vec::new(),
            }),
        });
        core.links.insert(handle, Arc::clone(&link));
        link
    }

    pub(super) fn due_us(&self) -> u64 {
        self.due_us.load(Ordering::Acquire)
    }

    /// Has whoever waits work the connection with `events`, or does so here.
    pub(super) fn put(&self, events: Vec<ConnectionEvent>) {
        let mut inbox = locked(&self.inbox);
        inbox.events.extend(events);
        let is_awaited = inbox.is_awaited;
        drop(inbox);
        match is_awaited {
            true => self.stirred.notify_all(),
            false => self.look_after(),
        }
    }

    /// Works the connection unless somebody does, or waits to.
    pub(super) fn look_after(&self) {
        if locked(&self.inbox).is_awaited {
            self.stirred.notify_all();
            return;
        }
        // Who has the connection now looks into the inbox before leaving it.
        if let Some(mut state) = self.try_state() {
            self.turn(&mut state);
            drop(state);
            self.empty_inbox();
            self.stir();
        }
    }

    fn try_state(&self) -> Option<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(std::sync::TryLockError::Poisoned(state)) => Some(PoisonError::into_inner(state)),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }

    /// Looks at the connection and changes it with `work`; it is worked before and after.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        let mut state = locked(&self.state);
        self.turn(&mut state);
        let result = work(&mut state);
        self.turn(&mut state);
        drop(state);
        self.empty_inbox();
        self.port.wake_before(self.due_us());
        result
    }

    /// Looks at the connection as it is.
    pub(super) fn peek<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        let result = look(&locked(&self.state));
        self.empty_inbox();
        result
    }

    /// What came while the connection was taken and whoever brought it left it to who had it.
    fn empty_inbox(&self) {
        while !locked(&self.inbox).events.is_empty() {
            let Some(mut state) = self.try_state() else { return };
            self.turn(&mut state);
        }
    }

    /// The connection is to be looked at again by who waits.
    pub(super) fn stir(&self) {
        locked(&self.inbox).is_stirred = true;
        self.stirred.notify_all();
    }

    /// Waits until there is something to do, a timer is due, or `until`.
    pub(super) fn wait(&self, until: Instant) {
        let now = Instant::now();
        let due_us = self.due_us().saturating_sub(self.port.micros(now));
        let left = until.saturating_duration_since(now);
        let left = left.min(Duration::from_micros(due_us));
        let mut inbox = locked(&self.inbox);
        if inbox.events.is_empty() && !inbox.is_stirred && !left.is_zero() {
            inbox.is_awaited = true;
            let waited = self.stirred.wait_timeout(inbox, left);
            inbox = waited.unwrap_or_else(PoisonError::into_inner).0;
            inbox.is_awaited = false;
        }
        inbox.is_stirred = false;
    }

    /// Tells the connection what has come and what time it is, and sends what it has to send.
    fn turn(&self, state: &mut State) {
        let events = std::mem::take(&mut locked(&self.inbox).events);
        for event in events {
            state.connection.handle_event(event);
            state.gather_if_many();
        }
        let now = Instant::now();
        if state.connection.poll_timeout().is_some_and(|due| due <= now) {
            state.connection.handle_timeout(now);
        }
        self.exchange(state);
        self.transmit(state);
        if state.may_go() {
            state.go();
            self.transmit(state);
        }
        let due = state.connection.poll_timeout();
        let due_us = due.map_or(u64::MAX, |due| self.port.micros(due));
        self.due_us.store(due_us, Ordering::Release);
    }

    /// What the connection and its port have to tell each other, and what it tells us.
    fn exchange(&self, state: &mut State) {
        while let Some(event) = state.connection.poll_endpoint_events() {
            let is_drained = event.is_drained();
            let mut core = self.port.core();
            let answer = core.endpoint.handle_event(self.handle, event);
            if is_drained {
                core.links.remove(&self.handle);
            }
            drop(core);
            if let Some(answer) = answer {
                state.connection.handle_event(answer);
            }
        }
        while let Some(event) = state.connection.poll() {
            match event {
                Event::Connected => {
                    state.is_open = true;
                    self.port.tell_change();
                }
                Event::ConnectionLost { reason } => {
                    state.lost.get_or_insert(reason);
                    self.port.tell_change();
                }
                Event::Stream(StreamEvent::Finished { .. }) => state.is_finished = true,
                _ => {}
            }
        }
    }

    fn transmit(&self, state: &mut State) {
        loop {
            let packet_bytes = usize::from(state.connection.current_mtu()).max(1);
            let most = (MAX_BATCH_BYTES / packet_bytes).clamp(1, self.port.io.segments());
            state.buffer.clear();
            let transmit = state
                .connection
                .poll_transmit(Instant::now(), most, &mut state.buffer);
            match transmit {
                Some(transmit) => self.port.io.send(&transmit, &state.buffer),
                None => return,
            }
        }
    }

    /// Writes what the connection takes of `bytes`; 0 if it takes none now.
    ///
    /// # Errors
    /// That of a connection that is gone.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<usize, Failure> {
        self.with(|state| {
            let mut taken = 0;
            while taken < bytes.len() {
                let end = bytes.len().min(taken + PIECE_BYTES);
                match state.write(&bytes[taken..end])? {
                    0 => break,
                    more => taken += more,
                }
                self.turn(state);
            }
            Ok(taken)
        })
    }

    /// Reads what has come into `into`; nothing if nothing has.
    ///
    /// # Errors
    /// That of a connection that is gone before all came.
    pub(super) fn read(&self, into: &mut [u8]) -> Result<Received, Failure> {
        self.with(|state| state.read(into))
    }

    /// Says that this was all, once; gives whether the other end has it all.
    ///
    /// # Errors
    /// That of a connection that is gone.
    pub(super) fn finish(&self) -> Result<bool, Failure> {
        self.with(State::finish)
    }

    /// Ends the connection; whoever has the port sees to it where this takes a while.
    pub(super) fn close(&self) {
        self.with(State::leave);
    }
}

impl State {
    /// Why the connection is gone, if it is.
    pub(super) fn loss(&self) -> Option<Failure> {
        self.lost.as_ref().map(|reason| {
            let kind = match reason {
                ConnectionError::TimedOut => FailureKind::Timeout,
                ConnectionError::LocallyClosed => FailureKind::Interrupted,
                _ => FailureKind::Protocol,
            };
            let why = match reason {
                ConnectionError::ApplicationClosed(_) => "the other end has closed it".to_owned(),
                ConnectionError::TimedOut => "nothing came from the other end for 30 s".to_owned(),
                other => other.to_string(),
            };
            Failure::new(kind, format!("data stream: QUIC connection: {why}"))
        })
    }

    /// Ends the connection; where data are still to be sent, when their stream has been taken back. (The machine holds a
    /// close back while the window is full, and takes no acknowledgement after it; a stream that is reset goes before.)
    fn leave(&mut self) {
        let is_sender = self
            .stream
            .is_some_and(|stream| stream.initiator() == self.connection.side());
        if !is_sender || self.is_finished || self.lost.is_some() {
            return self.go();
        }
        if let Some(stream) = self.stream {
            // One that is closed already has nothing to take back.
            let _ = self.connection.send_stream(stream).reset(GONE);
        }
        self.is_leaving = true;
    }

    /// Whether the other end has been told that the stream is taken back.
    fn may_go(&self) -> bool {
        self.is_leaving && !self.connection.is_closed() && self.connection.stats().frame_tx.reset_stream > 0
    }

    fn go(&mut self) {
        let is_done = self.is_finished || self.has_ended;
        let code = if is_done { DONE } else { GONE };
        self.connection.close(Instant::now(), code, Bytes::new());
    }

    /// Datagrams that have come.
    pub(super) fn datagrams(&self) -> u64 {
        self.connection.stats().udp_rx.datagrams + self.uncounted
    }

    /// Opens the stream of an end that sends.
    pub(super) fn open_stream(&mut self) -> Result<(), Failure> {
        self.stream = self.connection.streams().open(Dir::Uni);
        match self.stream {
            Some(_) => Ok(()),
            None => Err(Failure::new(
                FailureKind::Protocol,
                "data stream: the other end allows no QUIC stream",
            )),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<usize, Failure> {
        if let Some(failure) = self.loss() {
            return Err(failure);
        }
        let Some(stream) = self.stream else {
            return Ok(0);
        };
        let window = written_ahead(self.connection.congestion_state().window(), self.connection.rtt());
        self.connection
            .set_send_window(window.min(self.most_window_bytes));
        match self.connection.send_stream(stream).write(bytes) {
            Ok(taken) => Ok(taken),
            Err(WriteError::Blocked) => Ok(0),
            Err(error) => Err(Failure::new(
                FailureKind::Protocol,
                format!("data stream: QUIC: {error}"),
            )),
        }
    }

    fn read(&mut self, into: &mut [u8]) -> Result<Received, Failure> {
        if self.has_ended {
            return Ok(Received::End);
        }
        if self.stream.is_none() {
            self.stream = self.connection.streams().accept(Dir::Uni);
        }
        let mut filled = 0;
        if let Some(id) = self.stream {
            self.read_stream(id, into, &mut filled)?;
            let rtt = self.connection.rtt().max(LEAST_RTT);
            self.reading.read(filled, Instant::now(), rtt);
            self.grant();
        }
        match filled {
            0 if self.has_ended => Ok(Received::End),
            0 => self.loss().map_or(Ok(Received::Bytes(0)), Err),
            _ => Ok(Received::Bytes(filled)),
        }
    }

    /// Reads what has come of stream `id` into `into`, and counts it in `filled`.
    fn read_stream(&mut self, id: StreamId, into: &mut [u8], filled: &mut usize) -> Result<(), Failure> {
        *filled = self.in_order.read(into);
        while *filled < into.len() && !self.has_all && self.fetch(id, false)? {
            *filled += self.in_order.read(&mut into[*filled..]);
        }
        self.has_ended = self.has_all && self.in_order.waiting_bytes() == 0;
        Ok(())
    }

    /// Takes what the machine has before there are more pieces behind a gap than it bears: the reader may be late.
    fn gather_if_many(&mut self) {
        self.untaken += 1;
        if self.untaken < MOST_UNTAKEN || self.has_all {
            return;
        }
        self.untaken = 0;
        let incoming = self
            .stream
            .filter(|stream| stream.initiator() != self.connection.side())
            .or_else(|| self.connection.streams().accept(Dir::Uni));
        if let Some(id) = incoming {
            self.stream = Some(id);
            // What is wrong with the stream its reader is told when it asks.
            let _ = self.fetch(id, true);
            self.grant();
        }
    }

    /// Tells the machine how much may come: what is taken out of it and waits behind a gap, or for a reader, counts as if it were in it.
    fn grant(&mut self) {
        let window = self.reading.window_bytes;
        let free = window.saturating_sub(self.in_order.waiting_bytes()).max(1);
        if free.abs_diff(self.granted_bytes) < window / 8 {
            return;
        }
        if let Ok(bytes) = VarInt::from_u64(free) {
            self.connection.set_receive_window(bytes);
            self.granted_bytes = free;
        }
    }

    /// Takes chunks of stream `id`, all of them or until the next byte to be read is among them; whether it is.
    fn fetch(&mut self, id: StreamId, all: bool) -> Result<bool, Failure> {
        let mut stream = self.connection.recv_stream(id);
        let mut chunks = match stream.read(false) {
            Ok(chunks) => chunks,
            Err(ReadableError::ClosedStream) => return Err(broken("the stream is closed")),
            Err(error) => return Err(broken(&error.to_string())),
        };
        while all || !self.in_order.has_next() {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => self.in_order.take(chunk.offset, chunk.bytes),
                Ok(None) => {
                    self.has_all = true;
                    break;
                }
                Err(ReadError::Blocked) => {
                    self.untaken = 0;
                    break;
                }
                Err(ReadError::Reset(_)) => return Err(broken("the other end has reset it")),
            }
        }
        // The next turn sends what this demands.
        let _ = chunks.finalize();
        Ok(self.in_order.has_next())
    }

    fn finish(&mut self) -> Result<bool, Failure> {
        if self.is_finished {
            return Ok(true);
        }
        if let Some(failure) = self.loss() {
            // Who has read all goes, and what says so may come before what acknowledges the end.
            let has_all = matches!(&self.lost, Some(ConnectionError::ApplicationClosed(close)) if close.error_code == DONE);
            self.is_finished = has_all && self.is_finishing;
            return if self.is_finished { Ok(true) } else { Err(failure) };
        }
        if let Some(stream) = self.stream.filter(|_| !self.is_finishing) {
            self.is_finishing = true;
            self.connection
                .send_stream(stream)
                .finish()
                .map_err(|error| broken(&error.to_string()))?;
        }
        Ok(false)
    }
}

fn broken(why: &str) -> Failure {
    Failure::new(FailureKind::Protocol, format!("data stream: QUIC stream: {why}"))
}

/// Bytes that may have been written and not acknowledged in order: twice what may be under way, enough for the next round trip, and
/// at least what leaves within [`AHEAD`] at `window` bytes a round trip, or in the two for which a gap lasts.
fn written_ahead(window: u64, rtt: Duration) -> u64 {
    let trips = AHEAD.as_micros() / rtt.as_micros().max(1);
    let ahead = window.saturating_mul(u64::try_from(trips).unwrap_or(u64::MAX));
    let least = u64::try_from(PIECE_BYTES).unwrap_or(u64::MAX);
    let ahead = ahead.max(window.saturating_mul(4)).clamp(least, MOST_AHEAD_BYTES);
    window.saturating_mul(2).max(ahead)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_ahead_leaves_soon() {
        let ms = Duration::from_millis;
        let kib = 1 << 10;
        assert_eq!(written_ahead(12 * kib, ms(200)), 64 * kib, "slow");
        assert_eq!(written_ahead(12 * kib, ms(10)), 25 * 12 * kib, "at the start");
        assert_eq!(
            written_ahead(1024 * kib, Duration::from_micros(50)),
            4096 * kib,
            "near"
        );
        assert_eq!(written_ahead(1024 * kib, Duration::ZERO), 4096 * kib);
        assert_eq!(written_ahead(65_536 * kib, ms(366)), 2 * 65_536 * kib, "far");
        assert_eq!(written_ahead(u64::MAX, ms(1)), u64::MAX);
    }

    #[test]
    fn the_window_grows_for_who_keeps_up_and_stays_for_who_does_not() {
        let (mib, rtt) = (1 << 20, Duration::from_millis(100));
        let mut reading = Reading::new(64 * mib);
        let start = reading.since;
        let mut window_after = |bytes, rounds| {
            reading.read(bytes, start + rtt * rounds / 2, rtt);
            reading.window_bytes
        };
        assert_eq!(window_after(3 << 20, 1), 8 * mib, "within a round trip");
        assert_eq!(window_after(0, 2), 16 * mib);
        assert_eq!(window_after(1 << 20, 4), 16 * mib, "slow");
        let grown: Vec<u64> = (3..6).map(|round| window_after(64 << 20, 2 * round)).collect();
        assert_eq!(grown, [32 * mib, 64 * mib, 64 * mib]);
    }
}
