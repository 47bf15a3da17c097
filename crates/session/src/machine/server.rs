//! The server's side of the thirteen steps.

use std::collections::VecDeque;
use std::time::Duration;

use farline_spec::unit::DurationS;
use farline_spec::{Failure, FailureKind, NameAnswer, NameRequest, NameRights, RunSpec};

use super::table::state_table;
use super::timing::{Clock, Timing};
use super::{RunTurn, misplaced, out_of_place, overdue};
use crate::message::{
    ADJUSTS, Adjust, Adjusted, ClientMessage, ClientProfile, Established, FarStages, Grant, Handshake, KEEPS,
    Listeners, ProfilingEnd, ServerMessage, ServerProfile, SessionId, VersionRange, tame_failure,
};
use crate::streams::End;

/// Longest that the server waits for a client's data streams, whatever the client allows itself.
pub const MAX_ACCEPT: Duration = Duration::from_secs(30);

state_table! {
    /// Where the server stands in one session.
    ServerState,
    /// What may happen to the server in one session.
    ServerInput;

    inputs {
        Asked = "HANDSHAKE",
        Admitted = "admitted",
        NamesAdmitted = "names admitted",
        NameAsked = "NAME",
        NameAnswered = "answered",
        StreamsAsked = "CREATE_STREAMS",
        Bound = "listeners bound",
        StreamsOpen = "streams open",
        StartAsked = "PROFILING_START",
        SendersDone = "senders done",
        AllDone = "all done",
        FilesDone = "all files done",
        AdjustAsked = "ADJUST",
        PeerEnded = "PROFILING_END",
        RunFailed = "run failed",
        Collected = "collected",
        ProfileAsked = "EXCHANGE_PROFILE",
        PeerDone = "TPG_DONE",
        PeerError = "ERROR",
        Elapsed = "time over",
        Broken = "failure",
    }
    states {
        Greeting [Setup] "has said CTRL_CHAN_EST" { Asked => Admitting }
        Admitting [Own] "checks version, ticket and limits" { Admitted => Granted, NamesAdmitted => Naming }
        Naming [Request] "answers about names" { NameAsked => Answering, PeerDone => Done }
        Answering [Request] "does what was asked with a name" { NameAnswered => Naming }
        Granted [Message] "has granted the task" { StreamsAsked => Binding }
        Binding [Own] "opens its listeners" { Bound => Accepting }
        Accepting [Connect] "accepts the data streams" { StreamsOpen => Ready, StartAsked => AcceptingLast }
        AcceptingLast [Connect] "the client has opened all; accepts the last" { StreamsOpen => Running }
        Ready [Message] "all data streams are open" { StartAsked => Running }
        Running [Watchdog] "data flow" {
            SendersDone => Ending, AllDone => Ending, FilesDone => Collecting, PeerEnded => Draining,
            RunFailed => Failing, AdjustAsked => Running,
        }
        Ending [PeerEnd] "sends no more and has said so" {
            SendersDone => Ending, AllDone => Ending, FilesDone => Collecting, PeerEnded => Collecting,
            RunFailed => Failing, AdjustAsked => Ending,
        }
        Draining [Drain] "the other end sends no more; reads what is under way" {
            SendersDone => Draining, AllDone => Collecting, FilesDone => Collecting, PeerEnded => Draining,
            Elapsed => Collecting, RunFailed => Failing,
        }
        Collecting [Own] "joins its streams" {
            Collected => Reporting, ProfileAsked => CollectingAsked, PeerEnded => Collecting,
            AdjustAsked => Collecting,
        }
        CollectingAsked [Own] "joins its streams; the client waits" { Collected => Finishing }
        Reporting [Message] "has its profile ready" {
            ProfileAsked => Finishing, PeerEnded => Reporting, AdjustAsked => Reporting,
        }
        Finishing [Message] "has sent its profile" { PeerDone => Done }
        Failing [Grace] "its run failed; listens whether the other end knows why" {
            SendersDone => Failing, AllDone => Failing, FilesDone => Failing, PeerEnded => Failing,
            RunFailed => Failing, AdjustAsked => Failing,
        }
        Done [Nothing] "the session is over; the server is free for the next" {}
        Failed [Nothing] "the session is over and failed; the server is free for the next" {}
    }
    from_any { PeerError => Failed, Elapsed => Failed, Broken => Failed }
}

/// What the server brings into the session.
#[derive(Debug, Clone)]
pub struct ServerPlan {
    /// Name of the session.
    pub session: SessionId,
    /// Versions this end speaks.
    pub versions: VersionRange,
    /// Limits on waiting.
    pub timing: Timing,
}

/// What happens at the server's own end.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerEvent {
    /// The client may do what it asked for.
    Admitted {
        /// The spec as granted, and what was changed.
        grant: Box<Grant>,
        /// Longest a run of bytes may take.
        duration_limit: Option<DurationS>,
    },
    /// The client may ask about names.
    NamesAdmitted {
        /// What it may do with them.
        rights: NameRights,
        /// How long it may go on.
        duration_limit: Option<DurationS>,
    },
    /// What came of the client's request.
    NameAnswered(NameAnswer),
    /// The listeners stand.
    Bound(Listeners),
    /// What happened to the streams and their run.
    Run(RunTurn),
    /// The run is joined; this is what it came to.
    Collected(Box<ServerProfile>),
    /// What became of the client's change.
    Adjusted(Adjusted),
    /// How far this end of a copy is.
    Stages(FarStages),
    /// Something else failed at this end, or the session is refused.
    Failed(Failure),
}

/// What the driver has to do.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerAction {
    /// Send this.
    Send(ServerMessage),
    /// Judge the client's wish; then [`ServerEvent::Admitted`], [`ServerEvent::NamesAdmitted`] or [`ServerEvent::Failed`].
    Admit(Box<Handshake>),
    /// Do this with a name; then [`ServerEvent::NameAnswered`].
    Answer(NameRequest),
    /// Listen for the streams of this run; then [`ServerEvent::Bound`].
    Bind(Box<RunSpec>),
    /// Accept them within this time; then [`RunTurn::StreamsOpen`].
    Accept(Duration),
    /// Start the run with this watchdog.
    StartRun(Duration),
    /// Judge this change of the copy and do it; then [`ServerEvent::Adjusted`].
    Adjust(Adjust),
    /// Let the run's senders stop.
    StopRun,
    /// Join the run within this time; then [`ServerEvent::Collected`]. No event of the run may follow.
    FinishRun(Duration),
}

/// The server's machine for one session; see the [module](super) for the order of calls.
#[derive(Debug)]
pub struct ServerMachine {
    state: ServerState,
    plan: ServerPlan,
    clock: Clock,
    deadline: Option<Duration>,
    actions: VecDeque<ServerAction>,
    spec: Option<RunSpec>,
    duration_limit: Option<DurationS>,
    /// Whether PROFILING_END has been sent.
    said_end: bool,
    profile: Option<Box<ServerProfile>>,
    client_profile: Option<ClientProfile>,
    client_stopped: bool,
    /// Version that the client chose; 0 before.
    version: u32,
    /// Whether the client wants another session on the connection.
    keeps: bool,
    failure: Option<Failure>,
}

impl ServerMachine {
    /// A session whose channel stands `now`, counted from the TCP connection.
    pub fn new(plan: ServerPlan, now: Duration) -> Self {
        let clock = Clock {
            timing: plan.timing,
            connect: MAX_ACCEPT,
            run: None,
            most: None,
        };
        let state = ServerState::Greeting;
        let greeting = ServerMessage::CtrlChanEst(Established {
            min_version: plan.versions.min,
            max_version: plan.versions.max,
            session: plan.session,
        });
        Self {
            deadline: clock.deadline(state.wait(), now),
            actions: VecDeque::from([ServerAction::Send(greeting)]),
            state,
            plan,
            clock,
            spec: None,
            duration_limit: None,
            said_end: false,
            profile: None,
            client_profile: None,
            client_stopped: false,
            version: 0,
            keeps: false,
            failure: None,
        }
    }

    /// Where it stands.
    pub fn state(&self) -> ServerState {
        self.state
    }

    /// Whether the session is over.
    pub fn is_over(&self) -> bool {
        self.state.is_over()
    }

    /// Whether it ended in order and the client wants another session on the connection.
    pub fn goes_on(&self) -> bool {
        self.state == ServerState::Done && self.keeps
    }

    /// Why the session failed.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Whether the client stopped the run before its end.
    pub fn client_stopped(&self) -> bool {
        self.client_stopped
    }

    /// What the client says the run came to at its end.
    pub fn client_profile(&self) -> Option<&ClientProfile> {
        self.client_profile.as_ref()
    }

    /// The next thing to do.
    pub fn poll_action(&mut self, now: Duration) -> Option<ServerAction> {
        let action = self.actions.pop_front()?;
        if matches!(action, ServerAction::Send(_)) {
            self.deadline = self.deadline.max(self.clock.deadline(self.state.wait(), now));
        }
        Some(action)
    }

    /// When to call [`Self::handle_timeout`], as time since the session began.
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.deadline
    }

    /// A message came.
    pub fn handle_message(&mut self, now: Duration, message: ClientMessage) {
        let (before, input) = (self.state, input_of(&message));
        if self.is_over() {
            return;
        }
        let deadline = self.deadline;
        if !self.advance(now, input) {
            let allowed = self.state.allowed();
            return self.fail(now, out_of_place(input.word(), self.state.name(), &allowed));
        }
        if self.state == before {
            // What changes no state buys no time for more of it.
            self.deadline = self.deadline.min(deadline);
        }
        match message {
            ClientMessage::Handshake(handshake) => self.on_asked(now, handshake),
            ClientMessage::CreateStreams => self.on_streams_asked(now),
            ClientMessage::Name(request) => self.actions.push_back(ServerAction::Answer(request)),
            ClientMessage::ProfilingStart => self.start_if_ready(now),
            ClientMessage::Adjust(change) => self.on_adjust(now, change),
            ClientMessage::ProfilingEnd(end) => self.on_peer_ended(now, before, end),
            ClientMessage::ExchangeProfile(profile) => {
                let failure = profile.failure.map(tame_failure);
                self.client_profile = Some(ClientProfile { failure, ..profile });
                self.report_if_wanted();
            }
            ClientMessage::TpgDone => self.send(ServerMessage::TpgDone),
            ClientMessage::Error(failure) => self.failure = Some(tame_failure(failure)),
        }
    }

    /// Something happened at this end.
    pub fn handle_event(&mut self, now: Duration, event: ServerEvent) {
        if self.is_over() {
            return;
        }
        match event {
            ServerEvent::Admitted {
                grant,
                duration_limit,
            } => self.on_admitted(now, grant, duration_limit),
            ServerEvent::NamesAdmitted {
                rights,
                duration_limit,
            } => {
                self.clock.most = duration_limit.map(|limit| now + Duration::from_secs_f64(limit.get()));
                if self.advance_own(now, ServerInput::NamesAdmitted) {
                    self.send(ServerMessage::Names(rights));
                }
            }
            ServerEvent::NameAnswered(answer) => {
                if self.advance_own(now, ServerInput::NameAnswered) {
                    self.send(ServerMessage::Name(answer));
                }
            }
            ServerEvent::Bound(listeners) => self.on_bound(now, listeners),
            ServerEvent::Run(RunTurn::NotOpen(failure)) => self.fail(now, failure),
            ServerEvent::Run(RunTurn::StreamsOpen) => {
                if self.advance_own(now, ServerInput::StreamsOpen) {
                    self.start_if_ready(now);
                }
            }
            ServerEvent::Run(RunTurn::SendersDone) => self.on_run_ended(now, ServerInput::SendersDone),
            // Files are settled at both ends or the copy has failed: there is nothing to wait for.
            ServerEvent::Run(RunTurn::AllDone) if self.is_copy() => {
                self.on_run_ended(now, ServerInput::FilesDone)
            }
            ServerEvent::Run(RunTurn::AllDone) => self.on_run_ended(now, ServerInput::AllDone),
            // Streams that break may be the echo of something the other end knows better.
            ServerEvent::Run(RunTurn::Failed(failure)) if failure.kind != FailureKind::Protocol => {
                self.fail(now, failure)
            }
            ServerEvent::Run(RunTurn::Failed(failure)) => {
                if self.advance_own(now, ServerInput::RunFailed) {
                    self.failure.get_or_insert(failure);
                }
            }
            ServerEvent::Collected(profile) => {
                if self.advance_own(now, ServerInput::Collected) {
                    self.profile = Some(profile);
                    self.report_if_wanted();
                }
            }
            ServerEvent::Adjusted(answer) => self.send(ServerMessage::Adjusted(answer)),
            ServerEvent::Stages(stages) => {
                if self.version >= ADJUSTS && self.is_copy() && self.state == ServerState::Running {
                    self.send(ServerMessage::Stages(stages));
                }
            }
            ServerEvent::Failed(failure) => self.fail(now, failure),
        }
    }

    /// The other end closed the channel.
    pub fn handle_closed(&mut self, now: Duration) {
        if self.is_over() {
            return;
        }
        let line = format!(
            "the client closed the control connection before the session was over (its state: {})",
            self.state.name()
        );
        let failure = self
            .failure
            .take()
            .unwrap_or_else(|| Failure::new(FailureKind::Protocol, line));
        self.fail(now, failure);
    }

    /// Time has passed; acts only when the deadline is reached.
    pub fn handle_timeout(&mut self, now: Duration) {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return;
        }
        let late = overdue(self.state.name(), self.state.wait(), now);
        self.advance(now, ServerInput::Elapsed);
        if self.state == ServerState::Collecting {
            return self.collect(Duration::ZERO);
        }
        let failure = self.failure.take().unwrap_or(late);
        self.report(failure);
    }

    fn on_asked(&mut self, now: Duration, handshake: Box<Handshake>) {
        if self.plan.versions.holds(handshake.version) {
            self.version = handshake.version;
            self.keeps = handshake.keeps && handshake.version >= KEEPS;
            return self.actions.push_back(ServerAction::Admit(handshake));
        }
        let line = format!(
            "unsupported protocol version {}; supported: {}",
            handshake.version, self.plan.versions
        );
        self.fail(now, Failure::new(FailureKind::Version, line));
    }

    fn on_admitted(&mut self, now: Duration, grant: Box<Grant>, duration_limit: Option<DurationS>) {
        if !self.advance_own(now, ServerInput::Admitted) {
            return;
        }
        let asked = Duration::from_millis(grant.spec.connect_timeout_ms.get().into());
        self.clock.connect = asked.min(MAX_ACCEPT);
        self.spec = Some(grant.spec.clone());
        self.duration_limit = duration_limit;
        self.send(ServerMessage::Handshake(grant));
    }

    fn on_streams_asked(&mut self, now: Duration) {
        match &self.spec {
            Some(spec) => self.actions.push_back(ServerAction::Bind(Box::new(spec.clone()))),
            None => self.fail(now, misplaced("CREATE_STREAMS", self.state.name())),
        }
    }

    fn on_bound(&mut self, now: Duration, listeners: Listeners) {
        if self.advance_own(now, ServerInput::Bound) {
            self.send(ServerMessage::CreateStreams(listeners));
            self.actions.push_back(ServerAction::Accept(self.clock.connect));
        }
    }

    /// The receivers stand before the client hears that it may send.
    fn start_if_ready(&mut self, now: Duration) {
        if self.state != ServerState::Running {
            return;
        }
        let Some(spec) = &self.spec else {
            return self.fail(now, misplaced("start", self.state.name()));
        };
        self.clock.timing = self.clock.timing.stopping(spec);
        let watchdog = self.clock.start_run(now, spec, End::Server, self.duration_limit);
        self.deadline = self.clock.deadline(self.state.wait(), now);
        self.actions.push_back(ServerAction::StartRun(watchdog));
        self.send(ServerMessage::ProfilingStart);
    }

    /// A change is judged while data flow; what comes later is too late, and no fault: the client cannot know.
    fn on_adjust(&mut self, now: Duration, change: Adjust) {
        if self.version < ADJUSTS || !self.is_copy() {
            let allowed = self.state.allowed();
            return self.fail(now, out_of_place("ADJUST", self.state.name(), &allowed));
        }
        if self.state == ServerState::Running {
            return self.actions.push_back(ServerAction::Adjust(change));
        }
        self.send(ServerMessage::Adjusted(Adjusted {
            number: change.number,
            refused: Some("the copy is ending".to_owned()),
            ..Adjusted::default()
        }));
    }

    /// A client says so once, and a second time if it is stopped while this end still sends.
    fn on_peer_ended(&mut self, now: Duration, before: ServerState, end: ProfilingEnd) {
        self.client_stopped |= end.stopped;
        if before == ServerState::Ending {
            self.clock.note(|run| run.stopped |= end.stopped);
            return self.collect(self.clock.drain());
        }
        if end.stopped && self.state == ServerState::Draining {
            self.actions.push_back(ServerAction::StopRun);
            self.clock.note(|run| run.stopped = true);
            self.deadline = self.clock.deadline(self.state.wait(), now);
        }
    }

    /// The run's senders, or all of its streams, have ended.
    fn on_run_ended(&mut self, now: Duration, input: ServerInput) {
        self.clock.note(|run| {
            run.sending = false;
            // All streams have ended, the other end's too.
            run.peer_sends &= input != ServerInput::AllDone;
        });
        if !self.advance_own(now, input) {
            return;
        }
        match self.state {
            ServerState::Ending => self.say_end(),
            ServerState::Collecting => self.collect(self.clock.drain()),
            _ => {}
        }
    }

    /// Tells what the run came to, once: when asked for it; of a copy, which many wait for, as soon as it is known.
    fn report_if_wanted(&mut self) {
        if self.state != ServerState::Finishing && !self.is_copy() {
            return;
        }
        let parts = self
            .profile
            .take()
            .map_or_else(Vec::new, |profile| profile.into_parts());
        let messages = parts.into_iter().map(ServerMessage::ExchangeProfile);
        self.actions.extend(messages.map(ServerAction::Send));
    }

    fn is_copy(&self) -> bool {
        self.spec.as_ref().is_some_and(|spec| spec.copy.is_some())
    }

    fn collect(&mut self, within: Duration) {
        self.say_end();
        self.actions.push_back(ServerAction::FinishRun(within));
    }

    fn say_end(&mut self) {
        if !std::mem::replace(&mut self.said_end, true) {
            let stopped = self.client_stopped;
            self.send(ServerMessage::ProfilingEnd(ProfilingEnd { stopped }));
        }
    }

    fn send(&mut self, message: ServerMessage) {
        self.actions.push_back(ServerAction::Send(message));
    }

    /// Gives up and says why.
    fn fail(&mut self, now: Duration, failure: Failure) {
        self.advance(now, ServerInput::Broken);
        self.report(failure);
    }

    fn report(&mut self, failure: Failure) {
        self.actions.clear();
        self.send(ServerMessage::Error(failure.clone().for_the_wire()));
        self.failure = Some(failure);
    }

    /// As [`Self::advance`]; an input that is not valid is a defect of the driver.
    fn advance_own(&mut self, now: Duration, input: ServerInput) -> bool {
        let valid = self.advance(now, input);
        if !valid {
            self.fail(now, misplaced(input.word(), self.state.name()));
        }
        valid
    }

    /// Follows the table; false if `input` is not valid here.
    fn advance(&mut self, now: Duration, input: ServerInput) -> bool {
        let Some(next) = self.state.next(input) else {
            return false;
        };
        self.state = next;
        self.deadline = self.clock.deadline(next.wait(), now);
        true
    }
}

fn input_of(message: &ClientMessage) -> ServerInput {
    match message {
        ClientMessage::Handshake(_) => ServerInput::Asked,
        ClientMessage::CreateStreams => ServerInput::StreamsAsked,
        ClientMessage::ProfilingStart => ServerInput::StartAsked,
        ClientMessage::ProfilingEnd(_) => ServerInput::PeerEnded,
        ClientMessage::Adjust(_) => ServerInput::AdjustAsked,
        ClientMessage::Name(_) => ServerInput::NameAsked,
        ClientMessage::ExchangeProfile(_) => ServerInput::ProfileAsked,
        ClientMessage::TpgDone => ServerInput::PeerDone,
        ClientMessage::Error(_) => ServerInput::PeerError,
    }
}
