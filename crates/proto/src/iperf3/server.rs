//! The server's end of one control connection, from the parameters to the goodbye.
//!
//! In: bytes of the client, what became of what was asked for ([`ServerMachine::handle_streams_open`] and the like), the time.
//! Out: [`ServerAction`]s. Times are [`Duration`]s since the cookie came. Whatever a client does, the machine ends: every state
//! has a deadline, and what a client may send is bounded in every state.

use std::collections::VecDeque;
use std::time::Duration;

use super::document::{Inbox, MAX_PARAMETERS, MAX_RESULTS, frame};
use super::parameters::Parameters;
use super::results::Results;
use super::word::{ErrorCode, Word};

/// Longest wait for parameters, for results and for the goodbye.
const ANSWER: Duration = Duration::from_secs(10);
/// Longest wait for all streams. iperf3's clients wait up to 30 s for one.
const STREAMS: Duration = Duration::from_secs(35);
/// What a test may take longer than it said: control messages on a path with a round trip of seconds.
const GRACE: Duration = Duration::from_secs(20);

/// What this server allows in one test; what is absent is without bound.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Allowed {
    /// Streams in all.
    pub streams: usize,
    /// Rate over all streams.
    pub rate_bps: Option<u64>,
    /// Length, the omitted time included.
    pub duration: Option<Duration>,
    /// Bytes over all streams.
    pub bytes: Option<u64>,
    /// Whether clients have to say who they are.
    pub needs_token: bool,
}

impl Allowed {
    /// Whether a test may be as `wanted`.
    fn check(&self, wanted: &Parameters) -> Result<(), ErrorCode> {
        let is_timed = !wanted.is_counted();
        let length = Duration::from_secs(u64::from(wanted.time_s) + u64::from(wanted.omit_s));
        let is_endless = is_timed && wanted.time_s == 0;
        let knows_limit = wanted.version() >= (3, 20);
        let too_long = if knows_limit {
            ErrorCode::DURATION_LIMIT
        } else {
            ErrorCode::DURATION
        };
        let broken = |limit: Option<u64>, wanted: u64| limit.is_some_and(|limit| wanted > limit);
        let rules = [
            (
                self.needs_token && wanted.token.is_none(),
                ErrorCode::AUTHORISATION,
            ),
            (wanted.total() > self.streams, ErrorCode::STREAMS),
            (
                self.duration.is_some_and(|limit| length > limit || is_endless),
                too_long,
            ),
            (broken(self.rate_bps, wanted.total_rate_bps()), ErrorCode::RATE),
            (broken(self.bytes, wanted.bytes), ErrorCode::DURATION),
        ];
        rules
            .into_iter()
            .find(|(broken, _)| *broken)
            .map_or(Ok(()), |(_, code)| Err(code))
    }
}

/// What the machine wants done, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerAction {
    /// Send this to the client.
    Send(Vec<u8>),
    /// Find out whether the client of [`ServerMachine::parameters`] is who it says, and answer with
    /// [`ServerMachine::handle_authorised`].
    Authorise,
    /// Get ready to take streams, and answer with [`ServerMachine::handle_ready`] once it may open them.
    TakeStreams,
    /// Let data flow.
    Run,
    /// End the data, and answer with [`ServerMachine::handle_results`].
    Collect,
    /// Send what is left, then close: see [`ServerMachine::ending`].
    Close,
}

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Both ends have each other's results.
    Complete,
    /// The client ended it before its time.
    ClientStopped,
    /// The client vanished.
    ClientGone,
    /// This server was stopped, or its time was up.
    ServerStopped,
    /// It was refused before it began.
    Refused(ErrorCode),
    /// It went wrong.
    Failed(ErrorCode),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Parameters,
    Authorising,
    Preparing,
    Streams,
    Running,
    /// The client has sent all; its results are waited for, and ours.
    Results,
    Goodbye,
    Over,
}

/// The server's end of one session.
#[derive(Debug)]
pub struct ServerMachine {
    allowed: Allowed,
    state: State,
    deadline: Duration,
    inbox: Inbox,
    actions: VecDeque<ServerAction>,
    parameters: Option<Parameters>,
    own: Option<Results>,
    client: Option<Results>,
    ending: Option<Ending>,
}

impl ServerMachine {
    /// A session whose cookie came at time 0.
    pub fn new(allowed: Allowed) -> Self {
        let mut machine = Self {
            allowed,
            state: State::Parameters,
            deadline: ANSWER,
            inbox: Inbox::default(),
            actions: VecDeque::new(),
            parameters: None,
            own: None,
            client: None,
            ending: None,
        };
        machine.say(Word::ParamExchange);
        machine
    }

    /// What the client wants, once it has said so.
    pub fn parameters(&self) -> Option<&Parameters> {
        self.parameters.as_ref()
    }

    /// What the client measured, once it has said so.
    pub fn client_results(&self) -> Option<&Results> {
        self.client.as_ref()
    }

    /// How the session ended, once it has.
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// Whether data flow.
    pub fn is_running(&self) -> bool {
        self.state == State::Running
    }

    /// When [`Self::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Duration> {
        (self.state != State::Over).then_some(self.deadline)
    }

    /// What to do next.
    pub fn poll_action(&mut self) -> Option<ServerAction> {
        self.actions.pop_front()
    }

    /// Takes bytes of the client.
    pub fn handle_bytes(&mut self, now: Duration, bytes: &[u8]) {
        let (most, code) = match self.state {
            State::Parameters => (MAX_PARAMETERS, ErrorCode::PARAMETERS),
            State::Results => (MAX_RESULTS, ErrorCode::RESULTS),
            _ => (0, ErrorCode::WORD),
        };
        if !self.inbox.push(bytes, most) {
            return self.fail(code);
        }
        while self.step(now) {}
    }

    /// The client has closed its side.
    pub fn handle_closed(&mut self) {
        match self.state {
            State::Over => {}
            // Clients of some versions close without a goodbye.
            State::Goodbye => self.end(Ending::Complete),
            _ => self.end(Ending::ClientGone),
        }
    }

    /// The client is, or is not, who it says.
    pub fn handle_authorised(&mut self, now: Duration, is_right: bool) {
        if self.state != State::Authorising {
            return;
        }
        if is_right {
            self.prepare(now);
        } else {
            self.refuse(ErrorCode::AUTHORISATION);
        }
    }

    /// Streams can be opened.
    pub fn handle_ready(&mut self, now: Duration) {
        if self.state == State::Preparing {
            self.say(Word::CreateStreams);
            self.enter(State::Streams, now + STREAMS);
        }
    }

    /// All streams are open.
    pub fn handle_streams_open(&mut self, now: Duration) {
        if self.state != State::Streams {
            return;
        }
        self.say(Word::TestStart);
        self.say(Word::TestRunning);
        self.actions.push_back(ServerAction::Run);
        self.enter(State::Running, now.saturating_add(self.longest()));
    }

    /// What this end measured, asked for by [`ServerAction::Collect`].
    pub fn handle_results(&mut self, now: Duration, results: Results) {
        if self.state == State::Results && self.own.is_none() {
            self.own = Some(results);
            self.say(Word::ExchangeResults);
            self.deadline = now + ANSWER;
            while self.step(now) {}
        }
    }

    /// This end cannot go on.
    pub fn handle_failure(&mut self, code: ErrorCode) {
        match self.state {
            State::Over => {}
            State::Authorising | State::Preparing => self.refuse(code),
            _ => self.fail(code),
        }
    }

    /// This server is being stopped.
    pub fn handle_stop(&mut self) {
        if self.state != State::Over {
            self.say(Word::ServerTerminate);
            self.end(Ending::ServerStopped);
        }
    }

    /// Ends what has taken too long.
    pub fn handle_timeout(&mut self, now: Duration) {
        if self.state == State::Over || now < self.deadline {
            return;
        }
        match self.state {
            State::Running if self.version() >= (3, 21) => self.fail(ErrorCode::EXPIRED),
            State::Running => self.handle_stop(),
            State::Parameters => self.fail(ErrorCode::PARAMETERS),
            State::Results => self.fail(ErrorCode::RESULTS),
            State::Goodbye => self.end(Ending::Complete),
            _ => self.fail(ErrorCode::ACCEPT),
        }
    }

    /// One step with what has come; false if it has to wait for more.
    fn step(&mut self, now: Duration) -> bool {
        match self.state {
            State::Parameters => self.take_parameters(now),
            State::Results if self.own.is_some() => self.take_results(now),
            State::Streams | State::Running | State::Goodbye => self.take_word(now),
            _ => false,
        }
    }

    fn take_parameters(&mut self, now: Duration) -> bool {
        let document = self.inbox.document(MAX_PARAMETERS, ErrorCode::PARAMETERS);
        let checked = document.and_then(|document| {
            let Some(document) = document else { return Ok(None) };
            let wanted = Parameters::decode(&document)?;
            self.allowed.check(&wanted)?;
            Ok(Some(wanted))
        });
        match checked {
            Ok(None) => return false,
            Ok(Some(wanted)) => {
                self.parameters = Some(wanted);
                if self.allowed.needs_token {
                    self.actions.push_back(ServerAction::Authorise);
                    self.enter(State::Authorising, now + ANSWER);
                } else {
                    self.prepare(now);
                }
            }
            Err(code) => self.refuse(code),
        }
        true
    }

    fn prepare(&mut self, now: Duration) {
        self.actions.push_back(ServerAction::TakeStreams);
        self.enter(State::Preparing, now + STREAMS);
    }

    fn take_word(&mut self, now: Duration) -> bool {
        let Some([byte]) = self.inbox.take() else {
            return false;
        };
        match (self.state, Word::of(byte)) {
            (State::Running, Some(Word::TestEnd)) => {
                self.actions.push_back(ServerAction::Collect);
                self.enter(State::Results, now + ANSWER);
            }
            (State::Goodbye, Some(Word::Done)) => self.end(Ending::Complete),
            (_, Some(Word::ClientTerminate | Word::Done)) => self.end(Ending::ClientStopped),
            _ => self.fail(ErrorCode::WORD),
        }
        true
    }

    fn take_results(&mut self, now: Duration) -> bool {
        match self.inbox.document(MAX_RESULTS, ErrorCode::RESULTS) {
            Ok(None) => return false,
            Ok(Some(document)) => match Results::decode(&document) {
                Ok(results) => self.answer(now, results),
                Err(code) => self.fail(code),
            },
            Err(code) => self.fail(code),
        }
        true
    }

    fn answer(&mut self, now: Duration, client: Results) {
        self.client = Some(client);
        let own = self.own.iter().map(|own| frame(&own.encode()));
        self.actions.extend(own.map(ServerAction::Send));
        self.say(Word::DisplayResults);
        self.enter(State::Goodbye, now + ANSWER);
    }

    /// Longest that data may flow.
    fn longest(&self) -> Duration {
        let wanted = self
            .parameters
            .as_ref()
            .filter(|wanted| !wanted.is_counted() && wanted.time_s > 0);
        let stated =
            wanted.map(|wanted| Duration::from_secs(u64::from(wanted.time_s) + u64::from(wanted.omit_s)));
        stated
            .or(self.allowed.duration)
            .map_or(Duration::MAX, |longest| longest + GRACE)
    }

    fn version(&self) -> (u32, u32) {
        self.parameters.as_ref().map_or((0, 0), Parameters::version)
    }

    fn refuse(&mut self, code: ErrorCode) {
        self.say_error(code);
        self.end(Ending::Refused(code));
    }

    fn fail(&mut self, code: ErrorCode) {
        if self.state != State::Over {
            self.say_error(code);
            self.end(Ending::Failed(code));
        }
    }

    fn say(&mut self, word: Word) {
        self.actions.push_back(ServerAction::Send(vec![word.byte()]));
    }

    /// The word for an error, its number, and no number of the system's.
    fn say_error(&mut self, code: ErrorCode) {
        let mut bytes = vec![Word::ServerError.byte()];
        bytes.extend(code.0.to_be_bytes());
        bytes.extend(0u32.to_be_bytes());
        self.actions.push_back(ServerAction::Send(bytes));
    }

    fn enter(&mut self, state: State, deadline: Duration) {
        (self.state, self.deadline) = (state, deadline);
    }

    fn end(&mut self, ending: Ending) {
        self.ending = Some(ending);
        self.state = State::Over;
        self.actions.push_back(ServerAction::Close);
    }
}
