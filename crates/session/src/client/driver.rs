//! Does what the client's machine says.

use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime};

use crossbeam_channel::Sender;
use farline_spec::{Failure, FailureKind, RunSpec, Samples};

use super::connect::{self, StreamPlan};
use super::record::Ending;
use super::{Event, Orders};
use crate::channel::{Arrival, Channel};
use crate::machine::{ClientAction, ClientEvent, ClientMachine, ClientPlan, Timing};
use crate::message::{ClientMessage, ClientProfile, Listeners, ServerMessage, SessionId, VERSIONS};
use crate::run::RunOutcome;
use crate::seat::{Bounds, Seat, SeatEvent, check_rows, payload_bytes};
use crate::streams::{End, numbers};
use crate::target::Target;
use crate::tls::{ClientSide, SeenKey, StreamKeys};

/// Longest that the TLS handshake may take once the connection stands, should the spec allow more.
const MAX_HANDSHAKE: Duration = Duration::from_secs(30);

/// One run from the first step to the record.
pub(super) fn run(target: &Target, spec: RunSpec, events: &Sender<Event>, orders: Orders) {
    let began = Instant::now();
    let mut ending = Ending::new(target.address(), spec.clone());
    let connected = prepare(target, spec).and_then(|spec| {
        ending.spec = spec.clone();
        Driver::connect(target, spec, events, orders, began)
    });
    match connected {
        Ok(driver) => driver.drive(&mut ending),
        Err(failure) => ending.failure = Some(failure),
    }
    if let Some(server) = &mut ending.server {
        emit(events, Event::Samples(std::mem::take(&mut server.samples)));
    }
    ending.session = began.elapsed();
    emit(events, Event::Done(Box::new(ending.into_record())));
}

/// A caller that dropped its handle hears nothing any more; the session ends all the same.
fn emit(events: &Sender<Event>, event: Event) {
    let _ = events.send(event);
}

fn prepare(target: &Target, spec: RunSpec) -> Result<RunSpec, Failure> {
    let spec = spec.resolved()?;
    check_rows(&spec)?;
    if target.ticket.is_some() && target.pin.is_none() {
        let line = "a ticket is sent only to a server whose key is known: give its URL with ?key=sha256-...";
        return Err(Failure::new(FailureKind::Usage, line));
    }
    Ok(spec)
}

struct Driver<'a> {
    machine: ClientMachine,
    channel: Channel<ServerMessage>,
    server: SocketAddr,
    seat: Seat,
    events: &'a Sender<Event>,
    orders: Orders,
    /// What machine time counts from.
    began: Instant,
    run_began: Option<SystemTime>,
    outcome: RunOutcome,
    last_words: Option<ClientMessage>,
    told_to_stop: bool,
}

impl<'a> Driver<'a> {
    fn connect(
        target: &Target,
        spec: RunSpec,
        events: &'a Sender<Event>,
        orders: Orders,
        began: Instant,
    ) -> Result<Self, Failure> {
        let allowed = Duration::from_millis(spec.connect_timeout_ms.get().into());
        let unwanted = || orders.is_stopped() || orders.interrupt.is_raised();
        let socket = connect::control(target, &spec, began + allowed, &unwanted)?;
        let server = socket
            .peer_addr()
            .map_err(|error| Failure::system("control socket", &error))?;
        let (tls, seen) = ClientSide::new(target.pin)?.split();
        let deadline = Instant::now() + allowed.min(MAX_HANDSHAKE);
        let channel = Channel::open(socket, tls, orders.interrupt.clone(), deadline);
        let channel = report_key(&seen, events, channel)?;
        let ticket = target.ticket.clone();
        let plan = ClientPlan {
            spec,
            ticket,
            versions: VERSIONS,
            timing: Timing::default(),
        };
        Ok(Self {
            machine: ClientMachine::new(plan, began.elapsed()),
            channel,
            server,
            seat: Seat::new(End::Client, orders.interrupt.waker().clone()),
            events,
            orders,
            began,
            run_began: None,
            outcome: RunOutcome::default(),
            last_words: None,
            told_to_stop: false,
        })
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn drive(mut self, ending: &mut Ending) {
        self.act();
        while !self.machine.is_over() {
            let timeout = self
                .machine
                .poll_timeout()
                .map(|at| at.saturating_sub(self.now()));
            match self.channel.wait(timeout) {
                Ok(arrival) => self.take(arrival),
                Err(failure) => self.event(ClientEvent::Failed(failure)),
            }
            self.obey();
            self.look_at_seat();
            self.machine.handle_timeout(self.now());
            self.act();
        }
        self.close(ending);
    }

    fn take(&mut self, arrival: Arrival<ServerMessage>) {
        for message in arrival.messages {
            self.machine.handle_message(self.now(), message);
            self.act();
        }
        if let Some(failure) = arrival.failure {
            self.event(ClientEvent::Failed(failure));
        }
        if arrival.closed {
            self.machine.handle_closed(self.now());
        }
    }

    fn obey(&mut self) {
        if self.orders.interrupt.is_raised() {
            let failure = Failure::new(FailureKind::Interrupted, "the run was aborted by the client");
            self.event(ClientEvent::Failed(failure));
        }
        if self.orders.is_stopped() && !std::mem::replace(&mut self.told_to_stop, true) {
            self.event(ClientEvent::Stop);
        }
    }

    fn look_at_seat(&mut self) {
        while let Some(event) = self.seat.poll() {
            match event {
                SeatEvent::StreamsOpen => self.event(ClientEvent::StreamsOpen),
                SeatEvent::NotOpen(failure) => self.event(ClientEvent::Failed(failure)),
                SeatEvent::Samples(samples) => self.emit_samples([samples]),
                SeatEvent::SendersDone => self.event(ClientEvent::SendersDone),
                SeatEvent::AllDone => self.event(ClientEvent::AllDone),
                SeatEvent::RunFailed(failure) => self.event(ClientEvent::RunFailed(failure)),
            }
        }
    }

    fn event(&mut self, event: ClientEvent) {
        self.machine.handle_event(self.now(), event);
        self.act();
    }

    fn emit_samples(&self, batches: impl IntoIterator<Item = Samples>) {
        batches
            .into_iter()
            .for_each(|samples| emit(self.events, Event::Samples(samples)));
    }

    fn act(&mut self) {
        while let Some(action) = self.machine.poll_action(self.now()) {
            if let Err(failure) = self.perform(action) {
                self.machine
                    .handle_event(self.now(), ClientEvent::Failed(failure));
            }
        }
    }

    fn perform(&mut self, action: ClientAction) -> Result<(), Failure> {
        match action {
            ClientAction::Send(message @ ClientMessage::Error(_)) => self.last_words = Some(message),
            ClientAction::Send(message) => self.channel.send(&message)?,
            ClientAction::Stage(stage) => emit(self.events, Event::Stage(stage)),
            ClientAction::Notice(line) => emit(self.events, Event::Notice(line)),
            ClientAction::OpenStreams { session, listeners } => self.open_streams(session, listeners)?,
            ClientAction::StartRun(watchdog) => {
                self.run_began = Some(SystemTime::now());
                self.seat
                    .start(self.machine.spec(), watchdog, Bounds::default())?;
            }
            ClientAction::StopRun => self.seat.stop(),
            ClientAction::FinishRun(within) => self.finish_run(within),
        }
        Ok(())
    }

    fn open_streams(&mut self, session: SessionId, listeners: Listeners) -> Result<(), Failure> {
        let spec = self.machine.spec().clone();
        let keys = StreamKeys::new(self.channel.tls(), session)?;
        let allowed = Duration::from_millis(spec.connect_timeout_ms.get().into());
        let plan = StreamPlan {
            keys: numbers(&spec).map(|stream| keys.key(stream)).collect(),
            spec,
            server: self.server,
            listeners,
            deadline: Instant::now() + allowed,
        };
        self.seat.open(move |cancelled| plan.open(cancelled))
    }

    fn finish_run(&mut self, within: Duration) {
        let (outcome, rest) = self.seat.finish(within);
        self.emit_samples(rest);
        let (bytes_sent, bytes_received) = payload_bytes(&outcome);
        let profile = ClientProfile {
            bytes_sent,
            bytes_received,
            failure: outcome.failure.clone(),
        };
        self.outcome = outcome;
        self.machine
            .handle_event(self.now(), ClientEvent::Collected(profile));
    }

    fn close(mut self, ending: &mut Ending) {
        let (mut aborted, mut rest) = (RunOutcome::default(), Vec::new());
        let abort = || (aborted, rest) = self.seat.abort();
        self.channel.farewell(self.last_words.as_ref(), abort);
        rest.into_iter()
            .for_each(|samples| emit(self.events, Event::Samples(samples)));
        ending.outcome = if aborted.streams.is_empty() {
            self.outcome
        } else {
            aborted
        };
        ending.server = self.machine.take_server_profile();
        ending.server_notes = self.machine.notes().to_vec();
        ending.version = self.machine.version();
        ending.spec = self.machine.spec().clone();
        ending.failure = self.machine.failure().cloned();
        if let Some(began) = self.run_began {
            ending.started_at = began;
        }
    }
}

fn report_key<T>(seen: &SeenKey, events: &Sender<Event>, opened: Result<T, Failure>) -> Result<T, Failure> {
    if let Some(fingerprint) = seen.fingerprint() {
        emit(events, Event::ServerKey(fingerprint));
    }
    opened.map_err(|failure| seen.mismatch().unwrap_or(failure))
}
