//! One connection, from the TLS handshake to the last word: does what the server's machine says.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use farline_spec::unit::counted;
use farline_spec::unit::{FileCount, RateBps};
use farline_spec::{EndReport, Failure, FailureKind, NameRequest, RunSpec};
use farline_sys::wake::poll_readable;
use tracing::{Span, debug, error_span, field};

use super::admission::Admission;
use super::data::DataListeners;
use super::events::{AuditEvent, SessionEnd, SessionStart};
use super::names::NamesSession;
use super::permits::HandshakePermit;
use super::register::{Claim, CopyName};
use super::{Shared, listen};
use crate::channel::{Arrival, Channel, Interrupt};
use crate::client::connect::{StreamPlan, Way};
use crate::copy::CopyPlan;
use crate::facts::{host_facts, version_info};
use crate::machine::server::MAX_ACCEPT;
use crate::machine::{LocalChange, ServerAction, ServerEvent, ServerMachine, ServerPlan};
use crate::message::{
    ADJUSTS, Adjust, Adjusted, COUNTS_UPDATES, ClientMessage, HEALS_FRAMES, Handshake, KNOWS_NAMES,
    KNOWS_SUMS, ListenerAddress, Listeners, ServerMessage, ServerProfile, SessionId, TAKES_NAMES_APART, Task,
    VERSIONS,
};
use crate::run::{OwnStages, RunEvent, RunOutcome, RunTurn};
use crate::run_controller::RunController;
use crate::state_dir::random;
use crate::streams::{End, MOST_LATE, destinations, first_late, has_files, numbers};
use crate::tls::{StreamKeys, seal_keys};

/// Least time between two words about how far this end of a copy is.
const LEAST_STAGES: Duration = Duration::from_millis(100);

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
    match Session::open(shared, socket, caller, interrupt, permit) {
        Ok(Some(session)) => session.drive(),
        Ok(None) => {}
        Err(error) => shared.log.refuse(caller.peer, error),
    }
}

/// Whether a connection ends before its first byte: somebody measured the path, which is no client and no trouble.
fn is_only_a_look(socket: &TcpStream, interrupt: &Interrupt, within: Duration) -> bool {
    let fds = [socket.as_fd(), interrupt.waker().as_fd()];
    let is_ready = poll_readable(&fds, Some(within)).is_ok_and(|ready| ready[0]);
    is_ready && matches!(socket.peek(&mut [0; 1]), Ok(0))
}

/// A session that was admitted.
struct Admitted {
    admission: Admission,
    began: Instant,
    outcome: RunOutcome,
    /// The copy into this server that it does.
    claim: Option<Claim>,
}

struct Session<'a> {
    shared: &'a Shared,
    machine: ServerMachine,
    channel: Channel<ClientMessage>,
    id: SessionId,
    peer: SocketAddr,
    /// Where the client listens, if it does instead of this end.
    back: Option<SocketAddr>,
    local: SocketAddr,
    interrupt: Interrupt,
    /// Given back once the client is admitted.
    permit: Option<HandshakePermit>,
    admitted: Option<Admitted>,
    /// What it is where it is about names.
    names: Option<NamesSession>,
    doors: Option<DataListeners>,
    /// Number of the next data stream that comes while a copy runs.
    next_stream: u16,
    seat: RunController,
    /// What machine time counts from: the TCP connection.
    began: Instant,
    last_words: Option<ServerMessage>,
    /// When the client was told last how far this end of a copy is.
    told_stages: Option<Instant>,
}

impl<'a> Session<'a> {
    fn open(
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
        let id = SessionId(random()?);
        Span::current().record("session", field::display(id));
        let plan = ServerPlan {
            session: id,
            versions: VERSIONS,
            timing: shared.timing,
        };
        Ok(Some(Self {
            shared,
            machine: ServerMachine::new(plan, began.elapsed()),
            channel,
            id,
            peer: caller.peer,
            back: caller.back,
            local: listen::plain(local),
            seat: RunController::new(End::Server, interrupt.waker().clone()),
            interrupt,
            permit: Some(permit),
            admitted: None,
            names: None,
            doors: None,
            next_stream: 0,
            began,
            last_words: None,
            told_stages: None,
        }))
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn drive(mut self) {
        self.act();
        while !self.machine.is_over() {
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
        self.close();
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

    fn act(&mut self) {
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

    fn admit(&mut self, handshake: Handshake) -> Result<ServerEvent, Failure> {
        self.permit.take().map_or(Ok(()), HandshakePermit::give_back)?;
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
        self.permit.take().map_or(Ok(()), HandshakePermit::give_back)?;
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

    /// Changes the copy as the client wants it, if it may.
    fn adjust(&mut self, change: &Adjust) -> Result<ServerEvent, Failure> {
        let mut answer = Adjusted {
            number: change.number,
            first_stream: self.next_stream,
            ..Adjusted::default()
        };
        match self
            .judge(change)?
            .and_then(|rate| Ok((rate, self.listen_late(change.open)?)))
        {
            Err(why) => {
                debug!(reason = why, "change of the copy refused");
                answer.refused = Some(why);
            }
            Ok((rate, listeners)) => {
                (answer.total_rate_bps, answer.listeners) = (rate, listeners);
                self.seat.change(&LocalChange {
                    dismiss: change.dismiss,
                    concurrency: change.concurrency,
                    total_rate_bps: rate,
                    ..LocalChange::default()
                });
                debug!(
                    opening = change.open,
                    ending = change.dismiss,
                    concurrency = change.concurrency.map(FileCount::get),
                    total_rate_bps = rate.map(RateBps::get),
                    "copy changed"
                );
            }
        }
        Ok(ServerEvent::Adjusted(answer))
    }

    /// The rate that a change brings, if it brings one; or why it may not be.
    fn judge(&mut self, change: &Adjust) -> Result<Result<Option<RateBps>, String>, Failure> {
        let (streams, opening) = (self.seat.streams(), self.seat.is_opening_late());
        let (connects_back, next) = (self.back.is_some(), self.next_stream);
        let admission = &self.admitted()?.admission;
        let after = streams + u32::from(change.open);
        let first = first_late(&admission.grant.spec);
        Ok(if change.open == 0 {
            admission.judge_rate(change.total_rate_bps, after)
        } else if connects_back {
            Err("streams cannot be added where the server connects to the client".to_owned())
        } else if opening {
            Err("streams are still being opened for an earlier change".to_owned())
        } else if u32::from(change.open) + u32::from(next - first) > u32::from(MOST_LATE) {
            Err(format!(
                "more than {MOST_LATE} streams opened while one copy runs"
            ))
        } else if after > u32::from(admission.most_streams) {
            let most = admission.most_streams;
            Err(format!(
                "{} requested, but the server allows up to {most}",
                counted(after, "stream")
            ))
        } else {
            admission.judge_rate(change.total_rate_bps, after)
        })
    }

    /// Listens for so many data streams more, while the copy runs; where, or why not.
    fn listen_late(&mut self, count: u16) -> Result<Vec<ListenerAddress>, String> {
        if count == 0 {
            return Ok(Vec::new());
        }
        self.accept_late(count).map_err(|failure| failure.message)
    }

    fn accept_late(&mut self, count: u16) -> Result<Vec<ListenerAddress>, Failure> {
        let spec = self.admitted()?.admission.grant.spec.clone();
        let arrivals = self.shared.arrivals.as_ref();
        let handed = arrivals.map(|arrivals| arrivals.expect(self.id, &spec));
        let doors = DataListeners::open_data(&spec, self.local, &self.shared.ports, handed)?;
        let listeners = doors.addresses().listeners;
        let keys = StreamKeys::new(self.channel.tls(), self.id)?;
        let numbers = self.next_stream..self.next_stream + count;
        let expected: Vec<_> = numbers.clone().map(|stream| keys.key(stream)).collect();
        let within = Duration::from_millis(spec.connect_timeout_ms.get().into()).min(MAX_ACCEPT);
        let deadline = Instant::now() + within;
        self.seat.open_late(count, move |sink, cancelled| {
            doors.accept_late(&spec, &expected, deadline, cancelled, sink);
        })?;
        self.next_stream = numbers.end;
        Ok(listeners)
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
                host: host_facts(),
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

    fn close(self) {
        let (mut aborted, mut seat) = (RunOutcome::default(), self.seat);
        self.channel
            .farewell(self.last_words.as_ref(), || aborted = seat.abort_and_join());
        if let Some(names) = self.names {
            let end = names.end(self.machine.failure());
            drop(names);
            return self.shared.log.write(end);
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
