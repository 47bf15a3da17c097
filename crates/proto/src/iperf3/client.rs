//! The client's end of one control connection, from the cookie to the goodbye.
//!
//! In: bytes of the server, what became of what was asked for, the time. Out: [`ClientAction`]s. Times are [`Duration`]s since the
//! connection stood; the cookie is the first thing to be sent.

use std::collections::VecDeque;
use std::time::Duration;

use super::Cookie;
use super::document::{Inbox, MAX_RESULTS, frame};
use super::parameters::Parameters;
use super::results::Results;
use super::word::{ErrorCode, Word};

/// Longest wait for a server's next word, but for those of a test that runs.
const ANSWER: Duration = Duration::from_secs(30);

/// What the machine wants done, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientAction {
    /// Send this to the server.
    Send(Vec<u8>),
    /// Open the streams, those on which the client sends first, and answer with [`ClientMachine::handle_streams_open`].
    OpenStreams,
    /// Let data flow; say [`ClientMachine::handle_enough`] when the time is up.
    Run,
    /// End the data, and answer with [`ClientMachine::handle_results`].
    Collect,
    /// Close: see [`ClientMachine::ending`].
    Close,
}

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Both ends have each other's results.
    Complete,
    /// The server runs another's test, or knows nobody of this name.
    Busy,
    /// The server ended it before its time.
    ServerStopped,
    /// The server vanished.
    ServerGone,
    /// The server says what went wrong, with an error number of its system if there is one.
    ServerError(ErrorCode, u32),
    /// The server said what has no place.
    Unexpected,
    /// The server said nothing for too long.
    Silent,
    /// This end failed or was stopped.
    Stopped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Until the server asks for the parameters.
    Greeting,
    /// Until it asks for streams.
    Admission,
    /// Streams are opened, and until both ends begin.
    Streams,
    Running,
    /// What was measured is put together.
    Collecting,
    /// Until the server asks for results.
    Exchange,
    Results,
    Display,
    ErrorNumbers,
    Over,
}

/// The client's end of one session.
#[derive(Debug)]
pub struct ClientMachine {
    parameters: Parameters,
    state: State,
    deadline: Duration,
    inbox: Inbox,
    actions: VecDeque<ClientAction>,
    own: Option<Results>,
    server: Option<Results>,
    ending: Option<Ending>,
}

impl ClientMachine {
    /// A session of `parameters` that begins now.
    pub fn new(cookie: &Cookie, parameters: Parameters) -> Self {
        Self {
            parameters,
            state: State::Greeting,
            deadline: ANSWER,
            inbox: Inbox::default(),
            actions: VecDeque::from([ClientAction::Send(cookie.to_vec())]),
            own: None,
            server: None,
            ending: None,
        }
    }

    /// What the server measured, once it has said so.
    pub fn server_results(&self) -> Option<&Results> {
        self.server.as_ref()
    }

    /// How the session ended, once it has.
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// When [`Self::handle_timeout`] is due; while data flow, the caller has a clock of its own.
    pub fn poll_timeout(&self) -> Option<Duration> {
        (!matches!(self.state, State::Over | State::Running)).then_some(self.deadline)
    }

    /// What to do next.
    pub fn poll_action(&mut self) -> Option<ClientAction> {
        self.actions.pop_front()
    }

    /// Takes bytes of the server.
    pub fn handle_bytes(&mut self, now: Duration, bytes: &[u8]) {
        if self.state == State::Over {
            return;
        }
        if !self.inbox.push(bytes, MAX_RESULTS) {
            return self.end(Ending::Unexpected);
        }
        while self.step(now) {}
    }

    /// The server has closed its side.
    pub fn handle_closed(&mut self) {
        if self.state != State::Over {
            self.end(Ending::ServerGone);
        }
    }

    /// All streams are open.
    pub fn handle_streams_open(&mut self, now: Duration) {
        self.deadline = now + ANSWER;
    }

    /// The test has lasted as long as it should.
    pub fn handle_enough(&mut self, now: Duration) {
        if self.state == State::Running {
            self.say(Word::TestEnd);
            self.actions.push_back(ClientAction::Collect);
            self.enter(State::Collecting, now);
        }
    }

    /// What this end measured, asked for by [`ClientAction::Collect`].
    pub fn handle_results(&mut self, now: Duration, results: Results) {
        if self.state == State::Collecting {
            self.own = Some(results);
            self.enter(State::Exchange, now);
            while self.step(now) {}
        }
    }

    /// This end fails, or its user wants it to stop.
    pub fn handle_stop(&mut self) {
        if self.state != State::Over {
            self.say(Word::ClientTerminate);
            self.end(Ending::Stopped);
        }
    }

    /// Ends what has taken too long.
    pub fn handle_timeout(&mut self, now: Duration) {
        if self.poll_timeout().is_some_and(|deadline| now >= deadline) {
            self.end(Ending::Silent);
        }
    }

    fn step(&mut self, now: Duration) -> bool {
        match self.state {
            State::Results => self.take_results(now),
            State::ErrorNumbers => self.take_error(),
            State::Over => false,
            // The server closes its streams and asks for results while ours are put together.
            State::Collecting => false,
            _ => self.take_word(now),
        }
    }

    fn take_word(&mut self, now: Duration) -> bool {
        let Some([byte]) = self.inbox.take() else {
            return false;
        };
        match (self.state, Word::of(byte)) {
            (State::Greeting, Some(Word::ParamExchange)) => {
                let document = frame(&self.parameters.encode());
                self.actions.push_back(ClientAction::Send(document));
                self.enter(State::Admission, now);
            }
            (State::Admission, Some(Word::CreateStreams)) => {
                self.actions.push_back(ClientAction::OpenStreams);
                self.enter(State::Streams, now);
            }
            (State::Streams, Some(Word::TestStart)) => {}
            (State::Streams, Some(Word::TestRunning)) => {
                self.actions.push_back(ClientAction::Run);
                self.enter(State::Running, now);
            }
            (State::Exchange, Some(Word::ExchangeResults)) => {
                let own = self.own.iter().map(|own| frame(&own.encode()));
                self.actions.extend(own.map(ClientAction::Send));
                self.enter(State::Results, now);
            }
            (State::Display, Some(Word::DisplayResults)) => {
                self.say(Word::Done);
                self.end(Ending::Complete);
            }
            (_, Some(Word::AccessDenied)) => self.end(Ending::Busy),
            (_, Some(Word::ServerTerminate)) => self.end(Ending::ServerStopped),
            (_, Some(Word::ServerError)) => self.enter(State::ErrorNumbers, now),
            _ => self.end(Ending::Unexpected),
        }
        true
    }

    fn take_results(&mut self, now: Duration) -> bool {
        match self.inbox.document(MAX_RESULTS, ErrorCode::RESULTS) {
            Ok(None) => return false,
            Ok(Some(document)) => match Results::decode(&document) {
                Ok(results) => {
                    self.server = Some(results);
                    self.enter(State::Display, now);
                }
                Err(_) => self.end(Ending::Unexpected),
            },
            Err(_) => self.end(Ending::Unexpected),
        }
        true
    }

    fn take_error(&mut self) -> bool {
        let Some([a, b, c, d, system @ ..]) = self.inbox.take::<8>() else {
            return false;
        };
        let code = ErrorCode(i32::from_be_bytes([a, b, c, d]));
        self.end(Ending::ServerError(code, u32::from_be_bytes(system)));
        true
    }

    fn say(&mut self, word: Word) {
        self.actions.push_back(ClientAction::Send(vec![word.byte()]));
    }

    fn enter(&mut self, state: State, now: Duration) {
        (self.state, self.deadline) = (state, now + ANSWER);
    }

    fn end(&mut self, ending: Ending) {
        self.ending = Some(ending);
        self.state = State::Over;
        self.actions.push_back(ClientAction::Close);
    }
}
