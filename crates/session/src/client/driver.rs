//! Does what the client's machine says.

mod changes;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use crossbeam_channel::Sender;
use farline_mover::Root;
use farline_spec::{Adjustment, Cipher, Failure, FailureKind, IpVersion, RunSpec};
use tracing::{debug, error_span, field};

use super::back::ReverseListener;
use super::connect::{StreamPlan, Way};
use super::greeting::reach;
use super::kept::{ConnectionKeeper, Kept};
use super::record::Ending;
use super::{Event, Local, RunControl, emit};
use crate::channel::{Arrival, Channel};
use crate::copy::{CopyPlan, origin};
use crate::machine::{ClientAction, ClientEvent, ClientMachine, ClientPlan, ClientState, Timing};
use crate::message::{
    ADJUSTS, COUNTS_UPDATES, ClientMessage, ClientProfile, FarStages, HEALS_FRAMES, KNOWS_SUMS, Listeners,
    ServerMessage, SessionId, TAKES_NAMES_APART, TAKES_TOP_XATTRS,
};
use crate::run::{RunEvent, RunOutcome};
use crate::run_controller::{Bounds, RunController, check_rows, payload_bytes};
use crate::streams::{End, numbers};
use crate::target::Target;
use crate::tls::{Fingerprint, StreamKeys, seal_keys};

/// One run from the first step to the record.
pub(super) fn run(
    target: &Target,
    spec: RunSpec,
    local: Local,
    events: &Sender<Event>,
    orders: RunControl,
    run_id: String,
) {
    let began = Instant::now();
    let _within = error_span!("session", session = field::Empty).entered();
    let mut ending = Ending {
        run_id,
        ..Ending::new(target.address(), spec.clone())
    };
    let connected = prepare(target, spec, &local).and_then(|spec| {
        ending.spec = spec.clone();
        Driver::connect(target, spec, local, events, orders, began)
    });
    match connected {
        Ok(driver) => driver.drive(&mut ending),
        Err(failure) => ending.failure = Some(failure),
    }
    if let Some(server) = &mut ending.server {
        emit(events, Event::Samples(std::mem::take(&mut server.samples)));
        if !server.mover_samples.is_empty() {
            emit(
                events,
                Event::MoverSamples(std::mem::take(&mut server.mover_samples)),
            );
        }
    }
    ending.session = began.elapsed();
    tell_end(&ending);
    emit(events, Event::Done(Box::new(ending.into_record())));
}

/// Says how a run ended at this end.
fn tell_end(ending: &Ending) {
    let (bytes_sent, bytes_received) = payload_bytes(&ending.spec, &ending.outcome);
    debug!(
        kind = ending.failure.as_ref().map(|failure| failure.kind.word()),
        reason = ending.failure.as_ref().map(|failure| failure.message.as_str()),
        bytes_sent,
        bytes_received,
        session_s = ending.session.as_secs_f64(),
        "client's session ends"
    );
}

/// Tells the caller what the run was seen to do; what else it says is the machine's.
fn emit_one(events: &Sender<Event>, seen: RunEvent) {
    match seen {
        RunEvent::Samples(samples) => emit(events, Event::Samples(samples)),
        RunEvent::MoverSamples(samples) => emit(events, Event::MoverSamples(samples)),
        RunEvent::Progress(progress) => emit(events, Event::Progress(progress)),
        _ => {}
    }
}

fn prepare(target: &Target, spec: RunSpec, local: &Local) -> Result<RunSpec, Failure> {
    spec.check_native()?;
    let mut spec = spec.resolved()?;
    check_rows(&spec)?;
    let direction = spec.direction;
    if let Some(copy) = spec.copy.as_mut().filter(|copy| copy.origin.is_none()) {
        copy.origin = Some(origin(copy, direction, &target.address()));
    }
    if target.ticket.is_some() && target.pin.is_none() {
        let line = "a ticket is sent only to a server whose key is known: give its URL with ?key=sha256-...";
        return Err(Failure::new(FailureKind::Usage, line));
    }
    if local.listen.is_some() && target.pin.is_none() {
        let line = "waiting for a server needs its key: give its URL with ?key=sha256-...";
        return Err(Failure::new(FailureKind::Usage, line));
    }
    Ok(spec)
}

/// Says what the server is asked for; of the ticket no more than that there is one.
fn tell_asked(spec: &RunSpec, target: &Target) {
    debug!(
        transport = spec.transport.word(),
        direction = spec.direction.word(),
        streams = spec.streams.get(),
        is_copy = spec.copy.is_some(),
        cipher = spec.copy.as_ref().map(|copy| copy.cipher.word()),
        has_ticket = target.ticket.is_some(),
        "run asked for"
    );
}

struct Driver<'a> {
    machine: ClientMachine,
    channel: Channel<ServerMessage>,
    server: SocketAddr,
    seat: RunController,
    events: &'a Sender<Event>,
    orders: RunControl,
    session: Option<SessionId>,
    /// The server has said that nothing is at the destination of a copy.
    is_vacant: bool,
    receipt: Option<PathBuf>,
    /// Where this end listens, if the server connects.
    back: Option<ReverseListener>,
    /// What of the connection is needed to keep it.
    keeps: Option<(ConnectionKeeper, Target, IpVersion)>,
    key: Option<Fingerprint>,
    /// What came after the session was over, or before it began.
    heard: Vec<ServerMessage>,
    /// What machine time counts from.
    began: Instant,
    run_began: Option<SystemTime>,
    outcome: RunOutcome,
    last_words: Option<ClientMessage>,
    told_to_stop: bool,
    /// When the run began.
    run_zero: Option<Instant>,
    /// How far the server's end of a copy is.
    far_stages: Option<FarStages>,
    adjustments: Vec<Adjustment>,
}

impl<'a> Driver<'a> {
    fn connect(
        target: &Target,
        spec: RunSpec,
        local: Local,
        events: &'a Sender<Event>,
        orders: RunControl,
        began: Instant,
    ) -> Result<Self, Failure> {
        let allowed = Duration::from_millis(spec.connect_timeout_ms.get().into());
        let back = local
            .listen
            .map(|address| ReverseListener::open(address, &spec))
            .transpose()?;
        let keeper = local.keeper.filter(|_| back.is_none());
        let kept = keeper
            .as_ref()
            .and_then(|keeper| keeper.take(target, spec.ip_version, &orders.interrupt, began + allowed));
        let (greeted, heard) = match kept {
            Some(kept) => {
                kept.key
                    .iter()
                    .for_each(|&key| emit(events, Event::ServerKey(key)));
                ((kept.server, kept.key, kept.channel), kept.heard)
            }
            None => {
                let door = back.as_ref();
                let greeted = reach(target, &spec, local.contact, door, events, &orders, began)?;
                (greeted, Vec::new())
            }
        };
        let (server, key, channel) = greeted;
        tell_asked(&spec, target);
        let ticket = target.ticket.clone();
        let keeps = keeper.map(|keeper| (keeper, target.clone(), spec.ip_version));
        let plan = ClientPlan {
            spec,
            ticket,
            versions: local.versions,
            keeps: keeps.is_some(),
            timing: Timing::default(),
        };
        Ok(Self {
            machine: ClientMachine::new(plan, began.elapsed()),
            channel,
            server,
            seat: RunController::new(End::Client, orders.interrupt.waker().clone()),
            events,
            orders,
            session: None,
            is_vacant: false,
            receipt: local.receipt,
            back,
            keeps,
            key,
            heard,
            began,
            run_began: None,
            outcome: RunOutcome::default(),
            last_words: None,
            told_to_stop: false,
            run_zero: None,
            far_stages: None,
            adjustments: Vec::new(),
        })
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn drive(mut self, ending: &mut Ending) {
        self.act();
        let heard = std::mem::take(&mut self.heard);
        self.take_messages(heard);
        while !self.machine.is_over() && !self.has_all() {
            if self.seat.is_running() {
                ending.host.read();
            }
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

    /// Whether only the server's last word is missing: for a copy, which many wait for, that is not worth a round trip.
    fn has_all(&self) -> bool {
        self.machine.spec().copy.is_some() && self.machine.state() == ClientState::Finishing
    }

    fn take(&mut self, arrival: Arrival<ServerMessage>) {
        self.take_messages(arrival.messages);
        if let Some(failure) = arrival.failure {
            self.event(ClientEvent::Failed(failure));
        }
        if arrival.closed {
            self.machine.handle_closed(self.now());
        }
    }

    fn take_messages(&mut self, messages: Vec<ServerMessage>) {
        for message in messages {
            if self.machine.is_over() {
                // Of the session that follows on the connection.
                self.heard.push(message);
                continue;
            }
            self.machine.handle_message(self.now(), message);
            self.act();
        }
    }

    fn obey(&mut self) {
        if self.orders.interrupt.is_raised() {
            let failure = Failure::new(FailureKind::Interrupted, "the run was aborted by the client");
            self.event(ClientEvent::Failed(failure));
        }
        while let Ok(request) = self.orders.wishes.try_recv() {
            self.event(ClientEvent::Adjust(request));
        }
        if self.orders.is_stopped() && !std::mem::replace(&mut self.told_to_stop, true) {
            self.event(ClientEvent::Stop);
        }
    }

    fn look_at_seat(&mut self) {
        while let Some(event) = self.seat.poll() {
            match event {
                RunEvent::Turn(turn) => self.event(ClientEvent::Run(turn)),
                RunEvent::Stages(own) => self.tell_stages(&own),
                RunEvent::LateStreams { missing, why } => {
                    self.event(ClientEvent::LateStreams { missing, why });
                }
                seen => self.emit_seen([seen]),
            }
        }
    }

    fn event(&mut self, event: ClientEvent) {
        self.machine.handle_event(self.now(), event);
        self.act();
    }

    fn emit_seen(&self, seen: impl IntoIterator<Item = RunEvent>) {
        seen.into_iter().for_each(|event| emit_one(self.events, event));
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
            ClientAction::Stage(stage) => {
                debug!(stage, "stage of the run reached");
                emit(self.events, Event::Stage(stage));
            }
            ClientAction::Notice(line) => {
                debug!(note = line, "run granted with a change");
                emit(self.events, Event::Notice(line));
            }
            ClientAction::OpenStreams { session, listeners } => self.open_streams(session, listeners)?,
            ClientAction::Adjust(change) => self.change(&change)?,
            ClientAction::Adjusted(change) => self.tell_adjusted(change),
            ClientAction::Stages(stages) => self.far_stages = Some(stages),
            ClientAction::StartRun(watchdog) => {
                self.run_began = Some(SystemTime::now());
                self.run_zero = Some(Instant::now());
                let plan = self.copy_plan()?;
                self.seat
                    .start(self.machine.spec(), watchdog, Bounds::default(), plan)?;
            }
            ClientAction::StopRun => self.seat.stop(),
            ClientAction::FinishRun(within) => self.finish_run(within),
        }
        Ok(())
    }

    fn open_streams(&mut self, session: SessionId, listeners: Listeners) -> Result<(), Failure> {
        let spec = self.machine.spec().clone();
        let keys = StreamKeys::new(self.channel.tls(), session)?;
        self.session = Some(session);
        self.is_vacant = listeners.is_vacant;
        tracing::Span::current().record("session", field::display(session));
        debug!(
            version = self.machine.version(),
            ports = ?listeners.listeners.iter().map(|listener| listener.port).collect::<Vec<_>>(),
            is_empty = listeners.is_vacant,
            "run granted; streams are opened"
        );
        let allowed = Duration::from_millis(spec.connect_timeout_ms.get().into());
        let deadline = Instant::now() + allowed;
        let keys: Vec<_> = numbers(&spec).map(|stream| keys.key(stream)).collect();
        if let Some(door) = self.back.take() {
            return self
                .seat
                .open(move |cancelled| door.streams(&spec, session, &keys, deadline, cancelled));
        }
        let way = Way::ToServer {
            server: self.server,
            listeners,
        };
        let plan = StreamPlan {
            spec,
            keys,
            way,
            deadline,
        };
        self.seat.open(move |cancelled| plan.open(cancelled))
    }

    /// The client's end of a copy: its own files, wherever its user may go.
    fn copy_plan(&mut self) -> Result<Option<CopyPlan>, Failure> {
        let Some(copy) = &self.machine.spec().copy else {
            return Ok(None);
        };
        let missing = || Failure::new(FailureKind::Internal, "a copy without a session");
        let session = self.session.ok_or_else(missing)?;
        let line = match copy.cipher {
            Cipher::None => "files are not encrypted (cipher none)".to_owned(),
            cipher => format!("files are encrypted with {}", cipher.word()),
        };
        debug!(cipher = copy.cipher.word(), "copy begins");
        emit(self.events, Event::Notice(line));
        Ok(Some(CopyPlan {
            root: Root::own(),
            is_vacant: self.is_vacant,
            counts_updates: self.machine.version() >= COUNTS_UPDATES,
            heals_frames: self.machine.version() >= HEALS_FRAMES,
            takes_names_apart: self.machine.version() >= TAKES_NAMES_APART,
            takes_top_xattrs: self.machine.version() >= TAKES_TOP_XATTRS,
            adjusts: self.machine.version() >= ADJUSTS,
            knows_sums: self.machine.version() >= KNOWS_SUMS,
            receipt: self.receipt.take(),
            most_bytes: None,
            seals: seal_keys(self.channel.tls(), session, copy.cipher)?,
        }))
    }

    fn finish_run(&mut self, within: Duration) {
        let (outcome, rest) = self.seat.finish(within);
        self.emit_seen(rest);
        let (bytes_sent, bytes_received) = payload_bytes(self.machine.spec(), &outcome);
        let profile = ClientProfile {
            bytes_sent,
            bytes_received,
            failure: outcome.failure.clone().map(Failure::for_the_wire),
        };
        self.outcome = outcome;
        self.machine
            .handle_event(self.now(), ClientEvent::Collected(profile));
    }

    fn close(mut self, ending: &mut Ending) {
        self.orders.is_deaf.store(true, Ordering::Release);
        while let Ok(request) = self.orders.wishes.try_recv() {
            self.machine.want_too_late(request);
        }
        self.machine.end_adjusting();
        self.act();
        let (mut aborted, mut rest) = (RunOutcome::default(), Vec::new());
        match self.keeps.filter(|_| self.machine.goes_on()) {
            Some((keeper, target, ip_version)) => keeper.put(Kept {
                target,
                ip_version,
                server: self.server,
                key: self.key,
                channel: self.channel,
                heard: self.heard,
                since: Instant::now(),
            }),
            None => {
                let abort = || (aborted, rest) = self.seat.abort();
                self.channel.farewell(self.last_words.as_ref(), abort);
            }
        }
        let events = self.events;
        rest.into_iter().for_each(|seen| emit_one(events, seen));
        ending.outcome = if aborted.streams.is_empty() {
            self.outcome
        } else {
            aborted
        };
        ending.server = self.machine.take_server_profile();
        ending.adjustments = self.adjustments;
        ending.server_notes = self.machine.notes().to_vec();
        ending.version = self.machine.version();
        ending.spec = self.machine.spec().clone();
        ending.failure = self.machine.failure().cloned();
        if let Some(began) = self.run_began {
            ending.started_at = began;
        }
    }
}
