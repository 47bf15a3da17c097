//! The client's side of the thirteen steps.

use std::collections::VecDeque;
use std::time::Duration;

use farline_spec::{AdjustRequest, Failure, FailureKind, RunSpec};

use super::adjust::Adjusting;
use super::client_parts::input_of;
pub use super::client_parts::{ClientAction, ClientEvent, ClientPlan};
pub use super::client_state::{ClientInput, ClientState};
use super::grant::check_grant;
use super::timing::Clock;
use super::{RunTurn, misplaced, out_of_place, overdue};
use crate::message::profile::ProfileAssembler;
use crate::message::{
    ADJUSTS, Adjusted, ClientMessage, ClientProfile, Established, Grant, Handshake, Listeners, ProfilePart,
    ProfilingEnd, ServerMessage, ServerProfile, SessionId, Task, VersionRange, tame_failure, tame_line,
};
use crate::streams::{End, destinations};

/// Notes on a grant that are taken over.
const MAX_NOTES: usize = 64;
/// A whole profile may take so many times what one message may.
const MOST_EXCHANGE_WAITS: u32 = 20;

/// The client's machine; see the [module](super) for the order of calls.
#[derive(Debug)]
pub struct ClientMachine {
    state: ClientState,
    plan: ClientPlan,
    clock: Clock,
    deadline: Option<Duration>,
    actions: VecDeque<ClientAction>,
    session: SessionId,
    version: u32,
    notes: Vec<String>,
    /// Whether PROFILING_END has been sent.
    said_end: bool,
    /// What the run of a copy came to before the other end's had begun.
    early: Vec<ClientInput>,
    assembler: ProfileAssembler,
    /// What changes while the copy runs.
    adjusting: Adjusting,
    /// When all of the server's profile must be here.
    exchange_until: Option<Duration>,
    server_profile: Option<ServerProfile>,
    failure: Option<Failure>,
}

impl ClientMachine {
    /// A session whose channel stands `now`.
    pub fn new(plan: ClientPlan, now: Duration) -> Self {
        let connect = Duration::from_millis(plan.spec.connect_timeout_ms.get().into());
        let clock = Clock {
            timing: plan.timing.of_copy(&plan.spec),
            connect,
            run: None,
            most: None,
        };
        let state = ClientState::Greeting;
        Self {
            deadline: clock.deadline(state.wait(), now),
            actions: VecDeque::from([ClientAction::Stage(state.stage())]),
            assembler: ProfileAssembler::new(&plan.spec),
            adjusting: Adjusting::new(&plan.spec),
            state,
            plan,
            clock,
            session: SessionId([0; 16]),
            version: 0,
            notes: Vec::new(),
            said_end: false,
            early: Vec::new(),
            exchange_until: None,
            server_profile: None,
            failure: None,
        }
    }

    /// Where it stands.
    pub fn state(&self) -> ClientState {
        self.state
    }

    /// Whether the session is over.
    pub fn is_over(&self) -> bool {
        self.state.is_over()
    }

    /// Whether it ended in order and the server begins another session on the connection.
    pub fn goes_on(&self) -> bool {
        self.state == ClientState::Done && self.plan.keeps_at(self.version)
    }

    /// The spec: as asked for, and from HANDSHAKE on as granted.
    pub fn spec(&self) -> &RunSpec {
        &self.plan.spec
    }

    /// What the server changed about the spec and why.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Version agreed on; 0 before.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Why the session failed or was stopped.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Data streams in force, and those of them that are being opened.
    pub fn streams(&self) -> (u16, u16) {
        self.adjusting.streams()
    }

    /// Takes out the server's profile, once it came.
    pub fn take_server_profile(&mut self) -> Option<ServerProfile> {
        self.server_profile.take()
    }

    /// The next thing to do.
    pub fn poll_action(&mut self, now: Duration) -> Option<ClientAction> {
        let action = self.actions.pop_front()?;
        if matches!(action, ClientAction::Send(_)) {
            self.deadline = self.deadline.max(self.clock.deadline(self.state.wait(), now));
        }
        Some(action)
    }

    /// When to call [`Self::handle_timeout`], as time since the session began.
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.deadline
    }

    /// A message came.
    pub fn handle_message(&mut self, now: Duration, message: ServerMessage) {
        let input = input_of(&message);
        if self.is_over() {
            return;
        }
        let (before, deadline) = (self.state, self.deadline);
        if !self.advance(now, input) {
            let allowed = self.state.allowed();
            return self.fail(now, out_of_place(input.word(), self.state.name(), &allowed));
        }
        if self.state == before {
            self.deadline = self.deadline.min(self.most_renewed(deadline));
        }
        let followed = match message {
            ServerMessage::CtrlChanEst(offer) => self.on_established(offer),
            ServerMessage::Handshake(grant) => self.on_granted(*grant),
            ServerMessage::CreateStreams(listeners) => self.on_listening(listeners),
            ServerMessage::ProfilingStart => {
                self.on_started(now);
                Ok(())
            }
            ServerMessage::Adjusted(answer) => self.on_adjusted(answer),
            ServerMessage::Stages(stages) => {
                self.actions.push_back(ClientAction::Stages(stages));
                Ok(())
            }
            ServerMessage::ProfilingEnd(end) => {
                self.on_peer_ended(now, end);
                Ok(())
            }
            ServerMessage::ExchangeProfile(part) => self.on_profile(part),
            // No state of a run takes names.
            ServerMessage::TpgDone | ServerMessage::Names(_) | ServerMessage::Name(_) => Ok(()),
            ServerMessage::Error(failure) => {
                self.note_failure(as_seen_from_here(tame_failure(failure)));
                Ok(())
            }
        };
        if let Err(failure) = followed {
            self.fail(now, failure);
        }
    }

    /// A message that changes no state buys no time for the next, or the other end could hold this one for ever. Only the
    /// parts of a profile do, for a while: they may be many.
    fn most_renewed(&self, deadline: Option<Duration>) -> Option<Duration> {
        match self.state {
            ClientState::Exchanging => self.exchange_until.or(deadline),
            _ => deadline,
        }
    }

    /// Something happened at this end.
    pub fn handle_event(&mut self, now: Duration, event: ClientEvent) {
        if self.is_over() {
            return;
        }
        match event {
            ClientEvent::Run(RunTurn::NotOpen(failure)) => self.fail(now, failure),
            ClientEvent::Run(RunTurn::StreamsOpen) => self.on_streams_open(now),
            ClientEvent::Run(RunTurn::SendersDone) => self.on_run_ended(now, ClientInput::SendersDone),
            ClientEvent::Run(RunTurn::AllDone) => self.on_run_ended(now, ClientInput::AllDone),
            // Streams that break may be the echo of something the other end knows better.
            ClientEvent::Run(RunTurn::Failed(failure))
                if failure.kind != FailureKind::Protocol || failure.permanent =>
            {
                self.fail(now, failure)
            }
            ClientEvent::Run(RunTurn::Failed(failure)) => {
                if self.advance_own(now, ClientInput::RunFailed) {
                    self.failure.get_or_insert(failure);
                }
            }
            ClientEvent::Adjust(request) => self.on_adjust(now, request),
            ClientEvent::LateStreams { missing, why } => {
                // Of a run that is joined nobody needs them.
                if self.advance(now, ClientInput::LateStreams) {
                    self.adjusting.opened(missing, why.as_deref());
                    self.adjust();
                }
            }
            ClientEvent::Collected(profile) => self.on_collected(now, profile),
            ClientEvent::Stop => self.on_stop(now),
            ClientEvent::Failed(failure) => self.fail(now, failure),
        }
    }

    /// The other end closed the channel.
    pub fn handle_closed(&mut self, now: Duration) {
        if self.is_over() {
            return;
        }
        let line = format!(
            "the server closed the control connection {}: its program has ended, or something between cut the connection",
            self.state.moment()
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
        let late = overdue(self.state.stage(), self.state.wait(), now);
        self.advance(now, ClientInput::Elapsed);
        if self.state == ClientState::Collecting {
            return self.collect(Duration::ZERO);
        }
        let failure = self.failure.take().unwrap_or(late);
        self.report(failure);
    }

    fn on_established(&mut self, offer: Established) -> Result<(), Failure> {
        let offered = VersionRange {
            min: offer.min_version,
            max: offer.max_version,
        };
        self.version = self.plan.versions.common(offered)?;
        self.session = offer.session;
        self.plan.fit_to(self.version)?;
        let handshake = Handshake {
            version: self.version,
            ticket: self.plan.ticket.take(),
            task: Task::Profile(self.plan.spec.clone()),
            keeps: self.plan.keeps_at(self.version),
        };
        self.send(ClientMessage::Handshake(Box::new(handshake)));
        if self.is_copy() {
            self.send(ClientMessage::CreateStreams);
        }
        Ok(())
    }

    fn on_granted(&mut self, grant: Grant) -> Result<(), Failure> {
        check_grant(&self.plan.spec, &grant.spec)?;
        self.plan.spec = grant.spec;
        self.notes = grant
            .notes
            .iter()
            .take(MAX_NOTES)
            .map(|note| tame_line(note))
            .collect();
        self.actions
            .extend(self.notes.iter().cloned().map(ClientAction::Notice));
        if !self.is_copy() {
            self.send(ClientMessage::CreateStreams);
        }
        Ok(())
    }

    /// A copy spares round trips: a small file has the path to itself for one or two. So it asks for its listeners together
    /// with its task, its streams begin with the word that they are open, and the server tells what it did unasked.
    fn is_copy(&self) -> bool {
        self.plan.spec.copy.is_some()
    }

    fn on_listening(&mut self, listeners: Listeners) -> Result<(), Failure> {
        let wanted = destinations(&self.plan.spec);
        let given: Vec<_> = listeners
            .listeners
            .iter()
            .map(|listener| listener.destination)
            .collect();
        if given != wanted {
            let line =
                format!("opening data streams: listeners for {given:?}, but {wanted:?} were requested");
            return Err(Failure::new(FailureKind::Protocol, line));
        }
        if listeners.messages_port.is_some() != self.plan.spec.copy.is_some() {
            let line = "opening data streams: a copy needs exactly one port for messages, and a run none";
            return Err(Failure::new(FailureKind::Protocol, line));
        }
        self.actions.push_back(ClientAction::OpenStreams {
            session: self.session,
            listeners,
        });
        Ok(())
    }

    fn on_streams_open(&mut self, now: Duration) {
        if self.advance_own(now, ClientInput::StreamsOpen) {
            self.send(ClientMessage::ProfilingStart);
            if self.is_copy() {
                self.start_run(now);
            }
        }
    }

    fn on_started(&mut self, now: Duration) {
        if !self.is_copy() {
            self.start_run(now);
        }
        self.adjust();
        for input in std::mem::take(&mut self.early) {
            self.on_run_ended(now, input);
        }
    }

    /// A wish: it goes to the server once the run is under way at both ends, and is refused once nothing can change any more.
    fn on_adjust(&mut self, now: Duration, request: AdjustRequest) {
        self.adjusting.want(request);
        let is_early = !self.state.has_started();
        if is_early {
            return;
        }
        let (before, deadline) = (self.state, self.deadline);
        if !self.advance(now, ClientInput::AdjustAsked) {
            return self.refuse_adjusting("the copy is ending");
        }
        debug_assert_eq!(self.state, before);
        self.deadline = deadline;
        self.adjust();
    }

    /// Sends the next change, or says why there is none.
    fn adjust(&mut self) {
        match self.state {
            ClientState::Running if !self.is_copy() => {
                self.refuse_adjusting("only a copy of files can change while it runs");
            }
            ClientState::Running if self.version < ADJUSTS => {
                let line = format!(
                    "the other end has an older farline (protocol {}, needed: {ADJUSTS}): update it to change a copy while it runs",
                    self.version
                );
                self.refuse_adjusting(&line);
            }
            ClientState::Running => {
                if let Some(message) = self.adjusting.next_message() {
                    self.send(ClientMessage::Adjust(message));
                }
                self.tell_adjusted();
            }
            // It waits for the server's start.
            ClientState::Starting => self.tell_adjusted(),
            _ => self.refuse_adjusting("the copy is ending"),
        }
    }

    fn on_adjusted(&mut self, answer: Adjusted) -> Result<(), Failure> {
        if let Some(local) = self.adjusting.answered(answer)? {
            if let Some((first, count)) = local.open {
                self.assembler
                    .expect_streams(usize::from(first) + usize::from(count));
            }
            self.actions.push_back(ClientAction::Adjust(local));
        }
        self.adjust();
        Ok(())
    }

    /// A wish that came after the end; [`Self::end_adjusting`] refuses it.
    pub fn want_too_late(&mut self, request: AdjustRequest) {
        self.adjusting.want(request);
    }

    /// The session is over for its driver: wishes that nobody answered are refused.
    pub fn end_adjusting(&mut self) {
        self.refuse_adjusting("the copy is over");
    }

    fn refuse_adjusting(&mut self, why: &str) {
        self.adjusting.refuse(why);
        self.tell_adjusted();
    }

    fn tell_adjusted(&mut self) {
        while let Some(change) = self.adjusting.next_told() {
            self.actions.push_back(ClientAction::Adjusted(change));
        }
    }

    fn start_run(&mut self, now: Duration) {
        let watchdog = self.clock.start_run(now, &self.plan.spec, End::Client, None);
        self.deadline = self.clock.deadline(self.state.wait(), now);
        self.actions.push_back(ClientAction::StartRun(watchdog));
    }

    fn on_peer_ended(&mut self, now: Duration, end: ProfilingEnd) {
        if self.state == ClientState::Collecting {
            return self.collect(self.clock.drain());
        }
        if end.stopped {
            self.stop_run(now);
        }
    }

    /// The run's senders, or all of its streams, have ended.
    fn on_run_ended(&mut self, now: Duration, input: ClientInput) {
        self.clock.note(|run| {
            run.sending = false;
            // All streams have ended, the other end's too.
            run.peer_sends &= input != ClientInput::AllDone;
        });
        if !self.advance_own(now, input) {
            return;
        }
        match self.state {
            // The other end is told once it listens.
            ClientState::Starting => self.early.push(input),
            ClientState::Ending => self.say_end(false),
            ClientState::Collecting => self.collect(self.clock.drain()),
            _ => {}
        }
    }

    fn on_stop(&mut self, now: Duration) {
        let before = self.state;
        if self.clock.stopped() || !self.advance_own(now, ClientInput::Stop) {
            return;
        }
        match before {
            // The other end hears of it before it sees streams that end.
            ClientState::Running | ClientState::Draining => {
                self.say_end(true);
                self.stop_run(now);
            }
            // The other end still sends, and knows only that this one does not.
            ClientState::Ending => {
                self.send(ClientMessage::ProfilingEnd(ProfilingEnd { stopped: true }));
                self.stop_run(now);
            }
            _ if self.state == ClientState::Failed => return self.report(stopped()),
            _ => return,
        }
        self.failure.get_or_insert_with(stopped);
    }

    fn stop_run(&mut self, now: Duration) {
        self.actions.push_back(ClientAction::StopRun);
        self.clock.note(|run| run.stopped = true);
        self.deadline = self.clock.deadline(self.state.wait(), now);
    }

    fn on_collected(&mut self, now: Duration, profile: ClientProfile) {
        if !self.advance_own(now, ClientInput::Collected) {
            return;
        }
        if let Some(failure) = &profile.failure {
            self.failure.get_or_insert_with(|| failure.clone());
        }
        self.send(ClientMessage::ExchangeProfile(profile));
        // It came unasked.
        if self.server_profile.is_some() && self.advance_own(now, ClientInput::ProfileEnd) {
            self.has_all();
        }
    }

    fn on_profile(&mut self, part: ProfilePart) -> Result<(), Failure> {
        if let Some(profile) = self.assembler.add(part)? {
            self.server_profile = Some(profile);
            if self.state == ClientState::Finishing {
                self.has_all();
            }
        }
        Ok(())
    }

    fn has_all(&mut self) {
        let far = self
            .server_profile
            .as_ref()
            .and_then(|profile| profile.failure.clone());
        if let Some(failure) = far {
            self.failure.get_or_insert(failure);
        }
        self.send(ClientMessage::TpgDone);
    }

    fn collect(&mut self, within: Duration) {
        self.say_end(false);
        self.actions.push_back(ClientAction::FinishRun(within));
    }

    fn say_end(&mut self, stopped: bool) {
        if !std::mem::replace(&mut self.said_end, true) {
            self.send(ClientMessage::ProfilingEnd(ProfilingEnd { stopped }));
        }
    }

    fn send(&mut self, message: ClientMessage) {
        self.actions.push_back(ClientAction::Send(message));
    }

    /// Gives up and says why.
    fn fail(&mut self, now: Duration, failure: Failure) {
        self.advance(now, ClientInput::Broken);
        self.report(failure);
    }

    fn report(&mut self, failure: Failure) {
        self.actions.retain(|action| {
            matches!(
                action,
                ClientAction::Stage(_) | ClientAction::Notice(_) | ClientAction::Adjusted(_)
            )
        });
        self.refuse_adjusting("the copy is over");
        self.send(ClientMessage::Error(failure.clone().for_the_wire()));
        self.note_failure(failure);
    }

    /// What follows from a stop by the user is no failure: it stays a stop.
    fn note_failure(&mut self, failure: Failure) {
        let is_stopped = |noted: &Failure| noted.kind == FailureKind::Interrupted && self.clock.stopped();
        if !self.failure.as_ref().is_some_and(is_stopped) {
            self.failure = Some(failure);
        }
    }

    /// As [`Self::advance`]; an input that is not valid is a defect of the driver.
    fn advance_own(&mut self, now: Duration, input: ClientInput) -> bool {
        let valid = self.advance(now, input);
        if !valid {
            self.fail(now, misplaced(input.word(), self.state.name()));
        }
        valid
    }

    /// Follows the table; false if `input` is not valid here.
    fn advance(&mut self, now: Duration, input: ClientInput) -> bool {
        let Some(next) = self.state.next(input) else {
            return false;
        };
        if next.stage() != self.state.stage() {
            self.actions.push_back(ClientAction::Stage(next.stage()));
        }
        if next == ClientState::Exchanging && self.exchange_until.is_none() {
            self.exchange_until = Some(now + MOST_EXCHANGE_WAITS * self.clock.timing.message);
        }
        self.state = next;
        self.deadline = self.clock.deadline(next.wait(), now);
        true
    }
}

/// What someone over there stopped was not stopped by the caller here: it is the other end's doing.
fn as_seen_from_here(failure: Failure) -> Failure {
    if failure.kind != FailureKind::Interrupted {
        return failure;
    }
    Failure {
        kind: FailureKind::Protocol,
        ..failure
    }
}

fn stopped() -> Failure {
    Failure::new(FailureKind::Interrupted, "the run was stopped by the client")
}
