//! Both machines against each other in virtual time, over a modelled path and run.

mod adjust;
mod kept;
mod page;
mod steps;
mod wire;

use std::time::Duration;

use farline_spec::{RunSpec, from_json};

use super::*;
use crate::message::{
    Adjusted, ClientMessage, ClientProfile, Grant, ListenerAddress, Listeners, ServerMessage, ServerProfile,
    SessionId, Task, VERSIONS, VersionRange,
};
use crate::streams::{End, destinations, first_late, sends};

pub(super) fn spec(text: &str) -> RunSpec {
    from_json::<RunSpec>(text).unwrap().resolved().unwrap()
}

pub(super) fn client(spec: RunSpec) -> ClientMachine {
    client_of(spec, VERSIONS)
}

fn client_of(spec: RunSpec, versions: VersionRange) -> ClientMachine {
    let plan = ClientPlan {
        spec,
        ticket: None,
        versions,
        keeps: true,
        timing: Timing::default(),
    };
    ClientMachine::new(plan, Duration::ZERO)
}

pub(super) fn server() -> ServerMachine {
    let plan = ServerPlan {
        session: SessionId([7; 16]),
        versions: VERSIONS,
        timing: Timing::default(),
    };
    ServerMachine::new(plan, Duration::ZERO)
}

/// Something that will happen.
#[allow(clippy::large_enum_variant, reason = "a test holds a handful")]
#[derive(Debug, Clone)]
enum Item {
    ToClient(ServerMessage),
    ToServer(ClientMessage),
    AtClient(ClientEvent),
    AtServer(ServerEvent),
}

/// Two machines, the path between them, and a run as a model: senders send for their
/// duration, receivers see the end one latency later.
pub(super) struct Pair {
    pub client: ClientMachine,
    pub server: ServerMachine,
    pub now: Duration,
    /// Stages the client reported, in order.
    pub stages: Vec<&'static str>,
    /// What the two said to each other, as JSON.
    pub said: Vec<String>,
    /// Whether the messages of the server are lost from now on.
    pub deaf: bool,
    /// Whether the receivers never see the end of the data.
    pub end_is_lost: bool,
    /// How long a run lasts whose spec does not say.
    pub lasts_s: f64,
    latency: Duration,
    queue: Vec<(Duration, Item)>,
    server_spec: Option<RunSpec>,
    started: [bool; 2],
    finished: [bool; 2],
    /// What the client's end was told to change, and when.
    pub changes: Vec<(Duration, LocalChange)>,
    /// What came of wishes, and when.
    pub adjusted: Vec<(Duration, KnobChange)>,
    /// Streams of each change that fail to open.
    pub missing: u16,
    /// Streams that the server lets one change open.
    pub most_open: u16,
    next_stream: u16,
}

impl Pair {
    pub fn new(text: &str, latency_ms: u64) -> Self {
        Self {
            client: client(spec(text)),
            server: server(),
            now: Duration::ZERO,
            stages: Vec::new(),
            said: Vec::new(),
            deaf: false,
            end_is_lost: false,
            lasts_s: 5.0,
            latency: Duration::from_millis(latency_ms),
            queue: Vec::new(),
            server_spec: None,
            started: [false; 2],
            finished: [false; 2],
            changes: Vec::new(),
            adjusted: Vec::new(),
            missing: 0,
            most_open: 256,
            next_stream: first_late(&spec(text)),
        }
    }

    /// The same, by a client that knows no newer version than this one.
    pub fn speaking(version: u32, text: &str) -> Self {
        let versions = VersionRange { min: 1, max: version };
        Self {
            client: client_of(spec(text), versions),
            ..Self::new(text, 1)
        }
    }

    /// Goes on until both are over; panics when virtual time runs past a day.
    pub fn run(&mut self) {
        self.run_until(|pair| pair.client.is_over() && pair.server.is_over());
    }

    pub fn run_until(&mut self, stop: impl Fn(&Self) -> bool) {
        loop {
            self.act();
            if stop(self) {
                return;
            }
            assert!(
                self.step(),
                "nothing left to happen in {:?} and {:?}",
                self.client.state(),
                self.server.state()
            );
            assert!(self.now < Duration::from_secs(86_400), "still going after a day");
        }
    }

    /// Goes on to `at`, even if nothing happens then.
    pub fn pass_to(&mut self, at: Duration) {
        self.act();
        while self.next_at().is_some_and(|next| next <= at) {
            self.step();
            self.act();
        }
        self.now = self.now.max(at);
    }

    pub fn at_client(&mut self, event: ClientEvent) {
        self.client.handle_event(self.now, event);
    }

    pub fn at_server(&mut self, event: ServerEvent) {
        self.server.handle_event(self.now, event);
    }

    fn act(&mut self) {
        while let Some(action) = self.client.poll_action(self.now) {
            self.do_client(action);
        }
        while let Some(action) = self.server.poll_action(self.now) {
            self.do_server(action);
        }
    }

    fn later(&mut self, delay: Duration, item: Item) {
        self.queue.push((self.now + delay, item));
    }

    fn do_client(&mut self, action: ClientAction) {
        match action {
            ClientAction::Send(message) => {
                self.said
                    .push(format!("client {}", serde_json::to_string(&message).unwrap()));
                self.later(self.latency, Item::ToServer(message));
            }
            ClientAction::Stage(stage) => self.stages.push(stage),
            ClientAction::Notice(_) | ClientAction::Stages(_) => {}
            ClientAction::Adjust(change) => {
                let opens = change.open.is_some();
                self.changes.push((self.now, change));
                if opens {
                    let (missing, why) = (self.missing, Some("refused".to_owned()));
                    self.later(
                        2 * self.latency,
                        Item::AtClient(ClientEvent::LateStreams { missing, why }),
                    );
                }
            }
            ClientAction::Adjusted(change) => self.adjusted.push((self.now, change)),
            ClientAction::OpenStreams { .. } => {
                self.later(
                    2 * self.latency,
                    Item::AtClient(ClientEvent::Run(RunTurn::StreamsOpen)),
                );
                self.later(
                    2 * self.latency,
                    Item::AtServer(ServerEvent::Run(RunTurn::StreamsOpen)),
                );
            }
            ClientAction::StartRun(_) => self.start(End::Client),
            ClientAction::StopRun => self.end_sending(End::Client, Duration::ZERO),
            ClientAction::FinishRun(_) => {
                self.finished[0] = true;
                self.at_client(ClientEvent::Collected(ClientProfile::default()));
            }
        }
    }

    fn do_server(&mut self, action: ServerAction) {
        match action {
            ServerAction::Send(_) if self.deaf => {}
            ServerAction::Send(message) => {
                self.said
                    .push(format!("server {}", serde_json::to_string(&message).unwrap()));
                self.later(self.latency, Item::ToClient(message));
            }
            ServerAction::Admit(handshake) => {
                let Task::Profile(spec) = handshake.task else {
                    panic!("no client machine asks about names");
                };
                self.server_spec = Some(spec.clone());
                let grant = Box::new(Grant { spec, notes: vec![] });
                self.at_server(ServerEvent::Admitted {
                    grant,
                    duration_limit: None,
                });
            }
            ServerAction::Bind(spec) => {
                let address = |destination| ListenerAddress { destination, port: 1 };
                self.at_server(ServerEvent::Bound(Listeners {
                    listeners: destinations(&spec).into_iter().map(address).collect(),
                    messages_port: spec.copy.as_ref().map(|_| 2),
                    is_vacant: false,
                }));
            }
            ServerAction::Accept(_) => {}
            ServerAction::Adjust(change) => {
                let first_stream = self.next_stream;
                self.next_stream += change.open;
                let refused = (change.open > self.most_open).then(|| "too many".to_owned());
                self.at_server(ServerEvent::Adjusted(Adjusted {
                    number: change.number,
                    first_stream,
                    total_rate_bps: change.total_rate_bps,
                    refused,
                    ..Adjusted::default()
                }));
            }
            ServerAction::StartRun(_) => self.start(End::Server),
            ServerAction::Answer(_) => panic!("no client machine asks about names"),
            ServerAction::StopRun => self.end_sending(End::Server, Duration::ZERO),
            ServerAction::FinishRun(_) => {
                self.finished[1] = true;
                self.at_server(ServerEvent::Collected(Box::default()));
            }
        }
    }

    fn start(&mut self, end: End) {
        self.started[usize::from(end.number())] = true;
        let duration = self
            .client
            .spec()
            .duration_s
            .map_or(self.lasts_s, |duration| duration.get());
        self.end_sending(end, Duration::from_secs_f64(duration));
    }

    /// The senders of `end` stop after `delay`; whoever has only receivers is done one latency later.
    fn end_sending(&mut self, end: End, delay: Duration) {
        let Some(spec) = self.server_spec.clone() else {
            return;
        };
        if !sends(&spec, end) {
            return;
        }
        let mutual = sends(&spec, end.other());
        let (own, far) = match end {
            End::Client => (
                [
                    Item::AtClient(ClientEvent::Run(RunTurn::SendersDone)),
                    Item::AtClient(ClientEvent::Run(RunTurn::AllDone)),
                ],
                Item::AtServer(ServerEvent::Run(RunTurn::AllDone)),
            ),
            End::Server => (
                [
                    Item::AtServer(ServerEvent::Run(RunTurn::SendersDone)),
                    Item::AtServer(ServerEvent::Run(RunTurn::AllDone)),
                ],
                Item::AtClient(ClientEvent::Run(RunTurn::AllDone)),
            ),
        };
        let [senders_done, all_done] = own;
        self.later(delay, senders_done);
        if !mutual {
            self.later(delay, all_done);
        }
        if !self.end_is_lost {
            self.later(delay + self.latency, far);
        }
    }

    fn next_item(&self) -> Option<usize> {
        (0..self.queue.len()).min_by_key(|&place| self.queue[place].0)
    }

    fn next_at(&self) -> Option<Duration> {
        let item = self.next_item().map(|place| self.queue[place].0);
        [item, self.client.poll_timeout(), self.server.poll_timeout()]
            .into_iter()
            .flatten()
            .min()
    }

    fn step(&mut self) -> bool {
        let Some(at) = self.next_at() else { return false };
        self.now = self.now.max(at);
        match self.next_item() {
            Some(place) if self.queue[place].0 <= at => {
                let (_, item) = self.queue.remove(place);
                self.deliver(item);
            }
            _ => {
                self.client.handle_timeout(self.now);
                self.server.handle_timeout(self.now);
            }
        }
        true
    }

    fn deliver(&mut self, item: Item) {
        match item {
            Item::ToClient(message) => self.client.handle_message(self.now, message),
            Item::ToServer(message) => self.server.handle_message(self.now, message),
            Item::AtClient(event)
                if !self.past_run(0, matches!(event, ClientEvent::Run(RunTurn::StreamsOpen))) =>
            {
                self.at_client(event);
            }
            Item::AtServer(event)
                if !self.past_run(1, matches!(event, ServerEvent::Run(RunTurn::StreamsOpen))) =>
            {
                self.at_server(event);
            }
            Item::AtClient(_) | Item::AtServer(_) => {}
        }
    }

    /// A run that has not begun, or is joined, has no events.
    fn past_run(&self, end: usize, of_setup: bool) -> bool {
        !of_setup && (self.finished[end] || !self.started[end])
    }

    /// The profile that the client ended up with.
    pub fn profile(&mut self) -> Option<ServerProfile> {
        self.client.take_server_profile()
    }
}
