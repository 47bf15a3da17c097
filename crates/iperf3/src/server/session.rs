//! One session: does what its machine says.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use farline_proto::iperf3::parameters::Parameters;
use farline_proto::iperf3::results::Results;
use farline_proto::iperf3::server::{Allowed, Ending, ServerAction, ServerMachine};
use farline_proto::iperf3::word::ErrorCode;
use farline_session::message::SessionId;
use farline_session::{AuditEvent, SessionEnd, SessionStart};
use farline_spec::{Direction, Failure, FailureKind, RunStatus, Transport};
use farline_sys::wake::{Interest, poll_readable, poll_ready};
use ring::rand::{SecureRandom, SystemRandom};
use tracing::debug;

use super::lanes::Measurement;
use super::output::Output;
use super::register::{Arrival, Seat};
use super::{Shared, protocol};

/// Longest that the client may take to take what is sent to it.
const SEND_MOST: Duration = Duration::from_secs(10);
/// Longest wait for the client to close after the last word.
const LINGER: Duration = Duration::from_secs(1);
/// How often a test that runs is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// Longest that a test may go on without a byte.
const SILENCE: Duration = Duration::from_secs(60);
const READ_BYTES: usize = 16_384;
/// Longest note of an event.
const NOTE_BYTES: usize = 300;

/// Who comes, and the place it has.
pub struct Caller {
    /// Its control connection, which does not block.
    pub socket: TcpStream,
    /// Where it comes from.
    pub peer: SocketAddr,
    /// Its place.
    pub seat: Seat,
}

/// Serves one session to its end.
pub fn serve(shared: &Shared, caller: Caller) {
    let mut session = Session::new(shared, caller);
    session.act();
    while !session.is_closed {
        if let Err(error) = session.turn() {
            debug!(%error, "the control connection failed");
            session.machine.handle_closed();
        }
        session.act();
    }
    session.end();
}

struct Session<'a> {
    shared: &'a Shared,
    control: TcpStream,
    peer: SocketAddr,
    seat: Seat,
    id: SessionId,
    machine: ServerMachine,
    /// What machine time counts from.
    began: Instant,
    /// Streams that have come.
    arrived: Vec<Arrival>,
    /// Whether streams may come only when another session's have.
    waits_for_turn: bool,
    /// Streams are open, and their threads wait.
    measurement: Option<Measurement>,
    output: Option<Output>,
    user: Option<String>,
    /// When the test is looked at again.
    looks_at: Instant,
    /// Bytes moved at the last look that saw some, and when that was.
    progress: (u64, Instant),
    is_started: bool,
    is_closed: bool,
    failure: Option<Failure>,
}

impl<'a> Session<'a> {
    fn new(shared: &'a Shared, Caller { socket, peer, seat }: Caller) -> Self {
        let now = Instant::now();
        // Words are of one byte and must not wait; without the option they only come later.
        let _ = socket.set_nodelay(true);
        Self {
            shared,
            control: socket,
            peer,
            seat,
            id: session_id(),
            machine: ServerMachine::new(allowed(shared)),
            began: now,
            arrived: Vec::new(),
            waits_for_turn: false,
            measurement: None,
            output: None,
            user: None,
            looks_at: now,
            progress: (0, now),
            is_started: false,
            is_closed: false,
            failure: None,
        }
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Waits for the client, for streams, for a time that is due, and deals with what there is.
    fn turn(&mut self) -> io::Result<()> {
        let ready = poll_readable(&[self.control.as_fd(), self.seat.bell.as_fd()], self.patience())?;
        if self.seat.bell.drain() {
            self.look_up();
            self.act();
        }
        if ready[0] {
            self.read()?;
        }
        if self.machine.is_running() {
            self.look_at_test(Instant::now());
        }
        self.machine.handle_timeout(self.now());
        Ok(())
    }

    fn patience(&self) -> Option<Duration> {
        let machine = self
            .machine
            .poll_timeout()
            .map(|at| at.saturating_sub(self.now()));
        let until = |at: Instant| at.saturating_duration_since(Instant::now());
        let is_running = self.machine.is_running();
        let look = is_running.then(|| until(self.looks_at));
        let omit = self
            .measurement
            .as_ref()
            .filter(|_| is_running)
            .and_then(Measurement::omit_ends)
            .map(until);
        [machine, look, omit].into_iter().flatten().min()
    }

    /// Deals with what the bell was rung for.
    fn look_up(&mut self) {
        if self.shared.is_stopping() {
            self.machine.handle_stop();
        }
        if self.waits_for_turn {
            self.take_streams();
        }
        self.arrived.extend(self.seat.arrivals.try_iter());
        let wanted = self.machine.parameters().map(Parameters::total);
        if self.measurement.is_none() && wanted == Some(self.arrived.len()) {
            self.open();
        }
    }

    fn read(&mut self) -> io::Result<()> {
        let mut bytes = [0; READ_BYTES];
        loop {
            match self.control.read(&mut bytes) {
                Ok(0) => {
                    self.machine.handle_closed();
                    return Ok(());
                }
                Ok(length) => {
                    self.machine.handle_bytes(self.now(), &bytes[..length]);
                    self.act();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
            if self.is_closed {
                return Ok(());
            }
        }
    }

    /// All streams have come: makes them ready, and says so.
    fn open(&mut self) {
        let Some(wanted) = self.machine.parameters().cloned().map(Arc::new) else {
            return;
        };
        let arrived = std::mem::take(&mut self.arrived);
        match Measurement::open(arrived, &wanted, self.seat.rate.as_ref()) {
            Ok(measurement) => {
                if wanted.wants_output {
                    self.output = Some(Output::new(&wanted, self.peer, measurement.endpoints()));
                }
                self.tell_start(&wanted, measurement.notes());
                self.measurement = Some(measurement);
                self.machine.handle_streams_open(self.now());
            }
            Err((code, failure)) => {
                self.failure = Some(failure);
                self.machine.handle_failure(code);
            }
        }
    }

    fn act(&mut self) {
        while let Some(action) = self.machine.poll_action() {
            match action {
                ServerAction::Send(bytes) => {
                    if let Err(error) = send(&self.control, &bytes) {
                        debug!(%error, "the client does not take what it is told");
                        self.machine.handle_closed();
                    }
                }
                ServerAction::Authorise => self.authorise(),
                ServerAction::TakeStreams => self.take_streams(),
                ServerAction::Run => self.run(),
                ServerAction::Collect => self.collect(),
                ServerAction::Close => self.is_closed = true,
            }
        }
    }

    fn authorise(&mut self) {
        let token = self
            .machine
            .parameters()
            .and_then(|wanted| wanted.token.as_deref());
        let guard = self.shared.guard.as_ref();
        self.user = guard.zip(token).and_then(|(guard, token)| guard.user_of(token));
        self.machine.handle_authorised(self.now(), self.user.is_some());
    }

    fn take_streams(&mut self) {
        let Some(wanted) = self.machine.parameters() else {
            return;
        };
        if wanted.is_udp() {
            self.waits_for_turn = !self.seat.expect_datagrams(wanted.total());
        } else {
            self.seat.expect_connections(wanted.total());
        }
        if !self.waits_for_turn {
            self.machine.handle_ready(self.now());
        }
    }

    fn run(&mut self) {
        let now = Instant::now();
        (self.looks_at, self.progress) = (now + LOOK, (0, now));
        if let Some(measurement) = &mut self.measurement {
            measurement.release();
        }
    }

    fn collect(&mut self) {
        let Some(measurement) = &mut self.measurement else {
            return;
        };
        let mut results = measurement.finish();
        results.output = self.output.take().map(|output| {
            let elapsed = results.streams.first().map_or(0.0, |stream| stream.elapsed_s);
            output.finish(Duration::from_secs_f64(elapsed), &measurement.standings())
        });
        self.machine.handle_results(self.now(), results);
    }

    /// Ends the omitted time, writes rows of output, and holds the test to its limits.
    fn look_at_test(&mut self, now: Instant) {
        let Some(measurement) = &mut self.measurement else {
            return;
        };
        if measurement.end_omitting(now) {
            self.looks_at = now + LOOK;
            if let Some(output) = &mut self.output {
                let (elapsed, standings) = measurement.omitted();
                output.omitted(elapsed, standings);
            }
        }
        if now < self.looks_at {
            return;
        }
        self.looks_at += LOOK;
        if let Some(output) = &mut self.output {
            output.interval(measurement.elapsed(), measurement.standings());
        }
        if let Some((code, line)) = self.broken_limit(now) {
            self.failure = Some(Failure::new(FailureKind::Limit, line));
            self.machine.handle_failure(code);
        }
    }

    fn broken_limit(&mut self, now: Instant) -> Option<(ErrorCode, String)> {
        let limits = &self.shared.config.limits;
        let measurement = self.measurement.as_mut()?;
        let (sent, received) = measurement.moved();
        if sent + received > self.progress.0 {
            self.progress = (sent + received, now);
        }
        let is_udp = self.machine.parameters().is_some_and(Parameters::is_udp);
        let rate = limits
            .rate_bps
            .map(|rate| rate.get())
            .filter(|&rate| rate > 0 && is_udp);
        if let Some(rate_bps) = rate.filter(|&rate_bps| measurement.receives_too_much(rate_bps, now)) {
            return Some((
                ErrorCode::RATE,
                format!("more than {rate_bps} bit/s came over the last seconds"),
            ));
        }
        let most = limits.total_bytes.map_or(u64::MAX, |total| total.get());
        if sent + received > most {
            return Some((ErrorCode::RATE, format!("the test moved more than {most} bytes")));
        }
        let is_silent = now.saturating_duration_since(self.progress.1) > SILENCE;
        is_silent.then(|| {
            (
                ErrorCode::SILENT,
                format!("no byte moved for {} s", SILENCE.as_secs()),
            )
        })
    }

    fn tell_start(&mut self, wanted: &Parameters, notes: &[String]) {
        self.is_started = true;
        let version = if wanted.client_version.is_empty() {
            "of unknown version"
        } else {
            &wanted.client_version
        };
        let title = wanted.title.iter().map(|title| format!("title {title:?}"));
        let notes = [format!("iperf3 {version}")]
            .into_iter()
            .chain(title)
            .chain(notes.iter().cloned());
        let limits = &self.shared.config.limits;
        debug!(rate_bps = limits.rate_bps.map(|rate| rate.get()), "test begins");
        self.shared
            .log
            .write(AuditEvent::SessionStarted(Box::new(SessionStart {
                session: self.id,
                peer: self.peer,
                ticket: self.user.clone(),
                transport: if wanted.is_udp() {
                    Transport::Udp
                } else {
                    Transport::Tcp
                },
                direction: direction(wanted),
                streams: wanted.total(),
                copy: false,
                root: None,
                duration_s: (!wanted.is_counted()).then(|| f64::from(wanted.time_s)),
                total_bytes: (wanted.bytes > 0).then_some(wanted.bytes),
                notes: notes
                    .map(|note| farline_spec::plain_line(&note, NOTE_BYTES))
                    .collect(),
            })));
    }

    /// Closes the control connection and tells how the session ended.
    fn end(mut self) {
        let (sent, received) = self.measurement.as_ref().map_or((0, 0), Measurement::moved);
        let errors = self.measurement.take().map(|mut measurement| {
            measurement.abandon();
            measurement.errors()
        });
        let ending = self.machine.ending().unwrap_or(Ending::ClientGone);
        let error = self
            .failure
            .take()
            .or_else(|| failure_of(ending, errors.unwrap_or_default()));
        linger(&self.control);
        if !self.is_started {
            return self.tell_refusal(error, ending);
        }
        self.shared
            .log
            .write(AuditEvent::SessionEnded(Box::new(SessionEnd {
                session: self.id,
                peer: self.peer,
                status: status(ending),
                error,
                session_s: self.began.elapsed().as_secs_f64(),
                bytes_sent: sent,
                bytes_received: received,
                client_bytes_received: self.client_received(),
                copy: None,
            })));
    }

    fn tell_refusal(&self, error: Option<Failure>, ending: Ending) {
        if let Some(error) = error {
            self.shared.log.refuse(self.peer, error);
        } else {
            debug!(?ending, "a session ended before its streams were open");
        }
    }

    /// Bytes that the client says it received on the streams on which this end sent.
    fn client_received(&self) -> Option<u64> {
        let (wanted, results) = (self.machine.parameters()?, self.machine.client_results()?);
        let received = |results: &Results| {
            results
                .streams
                .iter()
                .skip(wanted.forward())
                .map(|stream| stream.bytes)
                .sum()
        };
        (wanted.backward() > 0).then(|| received(results))
    }
}

/// What a client may ask for.
fn allowed(shared: &Shared) -> Allowed {
    let limits = &shared.config.limits;
    Allowed {
        streams: limits
            .streams
            .map_or(shared.config.max_streams, |streams| {
                streams.min(shared.config.max_streams)
            })
            .get()
            .into(),
        rate_bps: limits.rate_bps.map(|rate| rate.get()).filter(|&rate| rate > 0),
        duration: limits
            .duration_s
            .map(|duration| Duration::from_secs_f64(duration.get())),
        bytes: limits.total_bytes.map(|total| total.get()),
        needs_token: shared.guard.is_some(),
    }
}

fn direction(wanted: &Parameters) -> Direction {
    match (wanted.forward(), wanted.backward()) {
        (_, 0) => Direction::Forward,
        (0, _) => Direction::Reverse,
        _ => Direction::Bidirectional,
    }
}

fn status(ending: Ending) -> RunStatus {
    match ending {
        Ending::Complete => RunStatus::Complete,
        Ending::ClientStopped | Ending::ServerStopped => RunStatus::Partial,
        Ending::ClientGone | Ending::Refused(_) | Ending::Failed(_) => RunStatus::Failed,
    }
}

/// Why a session did not come to its end, for this server's owner.
fn failure_of(ending: Ending, errors: Vec<String>) -> Option<Failure> {
    let failure = match ending {
        Ending::Complete => return errors.into_iter().next().map(protocol),
        Ending::ClientStopped => Failure::new(FailureKind::Interrupted, "the client ended the test"),
        Ending::ServerStopped => Failure::new(FailureKind::Interrupted, "this server ended the test"),
        Ending::ClientGone => protocol("the client closed the control connection"),
        Ending::Refused(ErrorCode::AUTHORISATION) => {
            Failure::new(FailureKind::Auth, ErrorCode::AUTHORISATION.to_string())
        }
        Ending::Refused(code) => Failure::new(FailureKind::Limit, code.to_string()),
        Ending::Failed(code) => protocol(code.to_string()),
    };
    Some(failure)
}

fn session_id() -> SessionId {
    let mut bytes = [0; 16];
    // A name only: where the kernel has no random bytes to give, sessions are called alike.
    let _ = SystemRandom::new().fill(&mut bytes);
    SessionId(bytes)
}

/// Sends all of `bytes` on a socket that does not block.
fn send(mut socket: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    let deadline = Instant::now() + SEND_MOST;
    while !bytes.is_empty() {
        match socket.write(bytes) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(ErrorKind::TimedOut.into());
                }
                poll_ready(&[(socket.as_fd(), Interest::Writable)], Some(left))?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Says that nothing follows and waits a moment for the client to close: a connection that is closed with bytes unread is
/// reset, and the client may lose the last word.
fn linger(mut socket: &TcpStream) {
    let deadline = Instant::now() + LINGER;
    let mut bytes = [0; READ_BYTES];
    // Refused by a connection that is gone already.
    let mut is_open = socket.shutdown(Shutdown::Write).is_ok();
    while is_open && Instant::now() < deadline {
        match socket.read(&mut bytes) {
            Ok(0) => is_open = false,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let left = deadline.saturating_duration_since(Instant::now());
                is_open = poll_readable(&[socket.as_fd()], Some(left)).is_ok();
            }
            Err(_) => is_open = false,
        }
    }
}
