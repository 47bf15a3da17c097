//! One session, from the first word to the last: does what the server's machine says.

mod changes;

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use farline_spec::{EndReport, Failure, FailureKind, NameRequest, RunSpec};
use tracing::{Span, debug, field};

use super::admission::Admission;
use super::connection::{Caller, Connection, KeptSeat, is_only_a_look};
use super::data::DataListeners;
use super::events::{AuditEvent, SessionEnd, SessionStart};
use super::names::NamesSession;
use super::permits::HandshakePermit;
use super::register::{Claim, CopyName};
use super::{Shared, listen};
use crate::channel::{Arrival, Channel, Interrupt};
use crate::client::connect::{StreamPlan, Way};
use crate::copy::CopyPlan;
use crate::facts::{OwnHost, version_info};
use crate::machine::{ServerAction, ServerEvent, ServerMachine, ServerPlan, Timing};
use crate::message::{
    ADJUSTS, COUNTS_UPDATES, ClientMessage, HEALS_FRAMES, Handshake, KNOWS_NAMES, KNOWS_SUMS,
    ListenerAddress, Listeners, ServerMessage, ServerProfile, SessionId, TAKES_NAMES_APART, TAKES_TOP_XATTRS,
    Task, VERSIONS,
};
use crate::run::{OwnStages, RunEvent, RunOutcome, RunTurn};
use crate::run_controller::RunController;
use crate::state_dir::random;
use crate::streams::{End, destinations, first_late, has_files, numbers};
use crate::tls::{StreamKeys, seal_keys};

/// Least time between two words about how far this end of a copy is.
const LEAST_STAGES: Duration = Duration::from_millis(100);

/// A session that was admitted.
struct Admitted {
    admission: Admission,
    began: Instant,
    outcome: RunOutcome,
    /// The copy into this server that it does.
    claim: Option<Claim>,
}

pub struct Session<'a> {
    shared: &'a Shared,
    machine: ServerMachine,
    pub(super) channel: Channel<ClientMessage>,
    id: SessionId,
    peer: SocketAddr,
    /// Where the client listens, if it does instead of this end.
    back: Option<SocketAddr>,
    local: SocketAddr,
    pub(super) interrupt: Interrupt,
    /// Given back once the client is admitted.
    permit: Option<HandshakePermit>,
    /// The place of a connection that is kept, until then.
    pub(super) kept: Option<KeptSeat<'a>>,
    admitted: Option<Admitted>,
    /// What it is where it is about names.
    names: Option<NamesSession>,
    doors: Option<DataListeners>,
    /// Number of the next data stream that comes while a copy runs.
    next_stream: u16,
    seat: RunController,
    host: OwnHost,
    /// What machine time counts from: the TCP connection.
    pub(super) began: Instant,
    last_words: Option<ServerMessage>,
    /// When the client was told last how far this end of a copy is.
    told_stages: Option<Instant>,
}

impl<'a> Session<'a> {
    /// Goes through the TLS handshake; none where somebody only looked whether this end is there.
    ///
    /// # Errors
    /// Those of the handshake, [`FailureKind::Busy`] without room for a session.
    pub fn open(
        shared: &'a Shared,
        socket: TcpStream,
        caller: Caller,
        interrupt: Interrupt,
        permit: HandshakePermit,
    ) -> Result<Option<Self>, Failure> {
        let began = Instant::now();
        if caller.back.is_some() && is_only_a_look(&socket, &interrupt, shared.timing.setup) {
            return Ok(None);
        }
        let local = socket
            .local_addr()
            .map_err(|error| Failure::system("control socket", &error))?;
        let tls = rustls::ServerConnection::new(Arc::clone(&shared.identity.config))
            .map_err(|error| Failure::new(FailureKind::Internal, format!("TLS: {error}")))?;
        let opened = Channel::open(socket, tls.into(), interrupt.clone(), began + shared.timing.setup);
        let channel = opened.map_err(|failure| permit.revoked().unwrap_or(failure))?;
        if let Err(busy) = shared.gate.slots().check() {
            channel.farewell(Some(&ServerMessage::Error(busy.clone())), || ());
            return Err(busy);
        }
        let connection = Connection {
            channel,
            caller,
            local: listen::plain(local),
            interrupt,
        };
        let session = Self::on(shared, connection, shared.timing, began)?;
        Ok(Some(Self {
            permit: Some(permit),
            ..session
        }))
    }

    /// A session on a connection on which nothing of it has been said.
    ///
    /// # Errors
    /// [`FailureKind::System`] without random numbers.
    pub fn on(
        shared: &'a Shared,
        connection: Connection,
        timing: Timing,
        began: Instant,
    ) -> Result<Self, Failure> {
        let Connection {
            channel,
            caller,
            local,
            interrupt,
        } = connection;
        let id = SessionId(random()?);
        Span::current().record("session", field::display(id));
        let plan = ServerPlan {
            session: id,
            versions: VERSIONS,
            timing,
        };
        Ok(Self {
            shared,
            machine: ServerMachine::new(plan, began.elapsed()),
            channel,
            id,
            peer: caller.peer,
            back: caller.back,
            local,
            seat: RunController::new(End::Server, interrupt.waker().clone()),
            host: OwnHost::default(),
            interrupt,
            permit: None,
            kept: None,
            admitted: None,
            names: None,
            doors: None,
            next_stream: 0,
            began,
            last_words: None,
            told_stages: None,
        })
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Goes on until it is over; gives the connection where another session may follow.
    pub fn drive(mut self) -> Option<Connection> {
        self.act();
        while !self.machine.is_over() {
            if self.seat.is_running() {
                self.host.read();
            }
            let timeout = self
                .machine
                .poll_timeout()
                .map(|at| at.saturating_sub(self.now()));
            match self.channel.wait(timeout) {
                Ok(arrival) => self.take(arrival),
                Err(failure) => self.event(ServerEvent::Failed(failure)),
            }
            if self.interrupt.is_raised() {
                self.event(ServerEvent::Failed(self.why_interrupted()));
            }
            self.look_at_seat();
            self.machine.handle_timeout(self.now());
            self.act();
        }
        self.close()
    }

    fn why_interrupted(&self) -> Failure {
        let claim = self
            .admitted
            .as_ref()
            .and_then(|admitted| admitted.claim.as_ref());
        let stopped = || {
            let line = "the server is being stopped by its operator";
            Failure::new(FailureKind::Interrupted, line)
        };
        let revoked = self.permit.as_ref().and_then(HandshakePermit::revoked);
        claim
            .and_then(Claim::replaced)
            .or(revoked)
            .unwrap_or_else(stopped)
    }

    fn take(&mut self, arrival: Arrival<ClientMessage>) {
        for message in arrival.messages {
            self.machine.handle_message(self.now(), message);
            self.act();
        }
        if let Some(failure) = arrival.failure {
            self.event(ServerEvent::Failed(failure));
        }
        if arrival.closed {
            self.machine.handle_closed(self.now());
        }
    }

    fn look_at_seat(&mut self) {
        while let Some(event) = self.seat.poll() {
            match event {
                RunEvent::Turn(turn) => {
                    match &turn {
                        RunTurn::StreamsOpen => debug!("all streams are open"),
                        RunTurn::NotOpen(failure) => debug!(reason = failure.message, "streams not open"),
                        _ => {}
                    }
                    self.event(ServerEvent::Run(turn));
                }
                RunEvent::Stages(stages) => self.tell_stages(&stages),
                RunEvent::LateStreams { missing, why } => {
                    debug!(missing, reason = why, "streams of a change have come");
                }
                // They are in what the run comes to as well.
                RunEvent::Samples(_) | RunEvent::MoverSamples(_) | RunEvent::Progress(_) => {}
            }
        }
    }

    /// The client hears how far this end is, a few times a second at most.
    fn tell_stages(&mut self, stages: &OwnStages) {
        let is_due = self.told_stages.is_none_or(|at| at.elapsed() >= LEAST_STAGES);
        if is_due {
            self.told_stages = Some(Instant::now());
            self.event(ServerEvent::Stages(stages.figures));
        }
    }

    fn event(&mut self, event: ServerEvent) {
        self.machine.handle_event(self.now(), event);
        self.act();
    }

    /// Does what the machine says.
    pub fn act(&mut self) {
        while let Some(action) = self.machine.poll_action(self.now()) {
            match self.perform(action) {
                Ok(Some(event)) => self.machine.handle_event(self.now(), event),
                Ok(None) => {}
                Err(failure) => self
                    .machine
                    .handle_event(self.now(), ServerEvent::Failed(failure)),
            }
        }
    }

    /// Does one thing, and gives the event that follows from it.
    fn perform(&mut self, action: ServerAction) -> Result<Option<ServerEvent>, Failure> {
        match action {
            ServerAction::Send(message @ ServerMessage::Error(_)) => self.last_words = Some(message),
            ServerAction::Send(message) => self.channel.send(&message)?,
            ServerAction::Admit(handshake) if handshake.task == Task::Names => {
                return self.admit_names(&handshake).map(Some);
            }
            ServerAction::Admit(handshake) => return self.admit(*handshake).map(Some),
            ServerAction::Answer(request) => return self.answer(&request).map(Some),
            ServerAction::Bind(spec) => return self.bind(&spec).map(Some),
            ServerAction::Accept(within) => self.accept(within)?,
            ServerAction::StartRun(watchdog) => {
                let plan = self.copy_plan()?;
                self.next_stream = first_late(&self.admitted()?.admission.grant.spec);
                let admission = &self.admitted()?.admission;
                let (spec, bounds) = (admission.grant.spec.clone(), admission.bounds);
                self.seat.start(&spec, watchdog, bounds, plan)?;
            }
            ServerAction::Adjust(change) => return self.adjust(&change).map(Some),
            ServerAction::StopRun => self.seat.stop(),
            ServerAction::FinishRun(within) => return self.finish_run(within).map(Some),
        }
        Ok(None)
    }

    /// The client has said what it wants: it takes no place of those who have not.
    fn leave_the_queue(&mut self) -> Result<(), Failure> {
        self.kept = None;
        self.permit.take().map_or(Ok(()), HandshakePermit::give_back)
    }

    fn admit(&mut self, handshake: Handshake) -> Result<ServerEvent, Failure> {
        self.leave_the_queue()?;
        let admission = self.shared.gate.admit(handshake)?;
        let (grant, ticket) = (Box::new(admission.grant.clone()), admission.ticket.clone());
        let duration_limit = admission.duration_limit;
        let cipher = grant.spec.copy.as_ref().map(|copy| copy.cipher.word());
        debug!(
            version = admission.version,
            cipher,
            most_bps = admission.bounds.rate_bps,
            most_bytes = admission.bounds.bytes,
            "client admitted"
        );
        let mut start = SessionStart::new(self.id, self.peer, ticket, &grant.spec, &grant.notes);
        start.root = admission.root.as_ref().map(|(name, _)| name.clone());
        self.shared.log.write(AuditEvent::SessionStarted(Box::new(start)));
        self.admitted = Some(Admitted {
            admission,
            began: Instant::now(),
            outcome: RunOutcome::default(),
            claim: None,
        });
        Ok(ServerEvent::Admitted {
            grant,
            duration_limit,
        })
    }

    fn admit_names(&mut self, handshake: &Handshake) -> Result<ServerEvent, Failure> {
        self.leave_the_queue()?;
        if handshake.version < KNOWS_NAMES {
            let line = format!("requests about names need protocol version {KNOWS_NAMES}");
            return Err(Failure::new(FailureKind::Version, line));
        }
        let admission = self.shared.gate.admit_names(handshake)?;
        debug!(version = handshake.version, "client admitted for names");
        let (rights, duration_limit) = (admission.rights, admission.duration_limit);
        let names = NamesSession::new(admission, self.id, self.peer);
        self.shared.log.write(names.start());
        self.names = Some(names);
        Ok(ServerEvent::NamesAdmitted {
            rights,
            duration_limit,
        })
    }

    /// Does what the client asked for; nobody says anything meanwhile, so one who does has gone.
    fn answer(&mut self, request: &NameRequest) -> Result<ServerEvent, Failure> {
        let (interrupt, channel) = (&self.interrupt, &self.channel);
        let is_wanted = || !interrupt.is_raised() && !channel.has_more();
        let missing = || Failure::new(FailureKind::Internal, "a request about names before the ticket");
        let names = self.names.as_mut().ok_or_else(missing)?;
        let (answer, change) = names.answer(request, &is_wanted);
        change
            .into_iter()
            .for_each(|change| self.shared.log.write(change));
        Ok(ServerEvent::NameAnswered(answer))
    }

    fn admitted(&mut self) -> Result<&mut Admitted, Failure> {
        let missing = || Failure::new(FailureKind::Internal, "a session that was not admitted");
        self.admitted.as_mut().ok_or_else(missing)
    }

    fn bind(&mut self, spec: &RunSpec) -> Result<ServerEvent, Failure> {
        let mut listeners = match self.back {
            Some(client) => at_client(spec, client),
            None => {
                let arrivals = self.shared.arrivals.as_ref();
                let handed = arrivals.map(|arrivals| arrivals.expect(self.id, spec));
                let doors = DataListeners::open(spec, self.local, &self.shared.ports, handed)?;
                self.doors.insert(doors).addresses()
            }
        };
        listeners.is_vacant = self.is_vacant(spec)?;
        debug!(
            ports = ?listeners.listeners.iter().map(|listener| listener.port).collect::<Vec<_>>(),
            messages_port = listeners.messages_port,
            is_empty = listeners.is_vacant,
            "listening for the streams"
        );
        Ok(ServerEvent::Bound(listeners))
    }

    /// Whether files come to a destination where nothing is: said now, it need not be waited for when the streams are open.
    fn is_vacant(&mut self, spec: &RunSpec) -> Result<bool, Failure> {
        let Some(copy) = spec.copy.as_ref().filter(|_| !has_files(spec, End::Server)) else {
            return Ok(false);
        };
        let origin = copy.origin.as_deref().unwrap_or_default();
        let root = self.admitted()?.admission.root.as_ref();
        Ok(root.is_some_and(|(_, root)| farline_mover::is_vacant(root, copy, origin)))
    }

    fn accept(&mut self, within: Duration) -> Result<(), Failure> {
        let spec = self.admitted()?.admission.grant.spec.clone();
        let keys = StreamKeys::new(self.channel.tls(), self.id)?;
        let expected: Vec<_> = numbers(&spec).map(|stream| keys.key(stream)).collect();
        let deadline = Instant::now() + within;
        if let Some(client) = self.back {
            let way = Way::ToClient(client);
            let plan = StreamPlan {
                spec,
                keys: expected,
                way,
                deadline,
            };
            return self.seat.open(move |cancelled| plan.open(cancelled));
        }
        let doors = self
            .doors
            .take()
            .ok_or_else(|| Failure::new(FailureKind::Internal, "no listeners"))?;
        self.seat
            .open(move |cancelled| doors.accept(&spec, &expected, deadline, cancelled))
    }

    /// The server's end of a copy, held to the folder of the ticket.
    fn copy_plan(&mut self) -> Result<Option<CopyPlan>, Failure> {
        let client = self.peer.ip();
        let admission = &mut self.admitted()?.admission;
        let spec = admission.grant.spec.clone();
        let Some(copy) = &spec.copy else {
            return Ok(None);
        };
        let missing = || {
            Failure::new(
                FailureKind::Internal,
                "a copy without a folder that it may not leave",
            )
        };
        let (name, root) = admission.root.take().ok_or_else(missing)?;
        let most_bytes = admission.most_bytes;
        let version = admission.version;
        if !has_files(&spec, End::Server) {
            let name = CopyName::new(client, &name, copy);
            let claim = self.shared.register.claim(name, &self.interrupt)?;
            self.admitted()?.claim = Some(claim);
        }
        Ok(Some(CopyPlan {
            root,
            is_vacant: false,
            counts_updates: version >= COUNTS_UPDATES,
            heals_frames: version >= HEALS_FRAMES,
            takes_names_apart: version >= TAKES_NAMES_APART,
            takes_top_xattrs: version >= TAKES_TOP_XATTRS,
            adjusts: version >= ADJUSTS,
            knows_sums: version >= KNOWS_SUMS,
            receipt: None,
            most_bytes,
            seals: seal_keys(self.channel.tls(), self.id, copy.cipher)?,
        }))
    }

    fn finish_run(&mut self, within: Duration) -> Result<ServerEvent, Failure> {
        let (mut outcome, _) = self.seat.finish(within);
        let profile = ServerProfile {
            report: EndReport {
                host: self.host.take(),
                version: version_info(VERSIONS.max),
                cpu: outcome.cpu,
                copy: outcome.copy.clone(),
            },
            streams: outcome.streams.clone(),
            samples: std::mem::take(&mut outcome.samples),
            mover_samples: std::mem::take(&mut outcome.mover_samples),
            failure: outcome.failure.clone().map(Failure::for_the_wire),
        };
        self.admitted()?.outcome = outcome;
        Ok(ServerEvent::Collected(Box::new(profile)))
    }

    /// Ends it, or leaves the connection to the next.
    fn close(self) -> Option<Connection> {
        let (mut aborted, mut seat) = (RunOutcome::default(), self.seat);
        let goes_on = self.machine.goes_on() && self.back.is_none();
        let left = if goes_on {
            Some(Connection {
                channel: self.channel,
                caller: Caller {
                    peer: self.peer,
                    back: None,
                },
                local: self.local,
                interrupt: self.interrupt,
            })
        } else {
            self.channel
                .farewell(self.last_words.as_ref(), || aborted = seat.abort_and_join());
            None
        };
        if let Some(names) = self.names {
            let end = names.end(self.machine.failure());
            drop(names);
            self.shared.log.write(end);
            return left;
        }
        match self.admitted {
            Some(admitted) => {
                let outcome = if aborted.streams.is_empty() {
                    admitted.outcome
                } else {
                    aborted
                };
                let spec = &admitted.admission.grant.spec;
                let lasted = admitted.began.elapsed();
                let end = SessionEnd::of(self.id, self.peer, &self.machine, (spec, &outcome), lasted);
                drop(admitted.admission);
                self.shared.log.write(AuditEvent::SessionEnded(Box::new(end)));
            }
            None => {
                let unknown = || Failure::new(FailureKind::Internal, "refused without a reason");
                let error = self.machine.failure().cloned().unwrap_or_else(unknown);
                self.shared.log.refuse(self.peer, error);
            }
        }
        left
    }
}

/// Where streams go that the server opens: the client's one port, whatever their destination.
fn at_client(spec: &RunSpec, client: SocketAddr) -> Listeners {
    let port = client.port();
    let address = |destination| ListenerAddress { destination, port };
    Listeners {
        listeners: destinations(spec).into_iter().map(address).collect(),
        messages_port: spec.copy.as_ref().map(|_| port),
        is_vacant: false,
    }
}
