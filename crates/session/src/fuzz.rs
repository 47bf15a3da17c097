//! Bodies of the fuzz targets: bytes in, a panic for whatever must not happen.
//!
//! `fuzz/` runs them under libFuzzer for as long as one likes; `cargo test` runs each briefly on
//! random bytes, so that they hold together and a regression shows at once.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::time::Duration;

use farline_spec::unit::StreamCount;
use farline_spec::{
    AdjustRequest, Failure, FailureKind, NameAnswer, NameRequest, NameRights, RunSpec, Samples, StreamRecord,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use crate::copy::fuzz::{frames as seal, seeds as seal_seeds};
use crate::machine::{
    ClientAction, ClientEvent, ClientMachine, ClientPlan, RunTurn, ServerAction, ServerEvent, ServerMachine,
    ServerPlan, Timing,
};
use crate::message::frame::{Decoder, MAX_FRAME_BYTES, encode};
use crate::message::profile::ProfileEnd;
use crate::message::{
    Adjust, Adjusted, ClientMessage, ClientProfile, Established, FarStages, Grant, Handshake,
    ListenerAddress, Listeners, ProfilePart, ProfilingEnd, ServerMessage, SessionId, Task, VERSIONS,
};
use crate::target::Target;

/// Deadlines in a row that a machine may need to come to its end.
const MOST_TIMEOUTS: usize = 8;
/// Actions in a row that a machine may ask for without any input.
const MOST_ACTIONS: usize = 64;

/// Bytes of a control channel, cut anywhere: messages come out whole or not at all.
pub fn frames(data: &[u8]) {
    let Some((&size, data)) = data.split_first() else {
        return;
    };
    decode_all::<ClientMessage>(data, usize::from(size) + 1);
    decode_all::<ServerMessage>(data, usize::from(size) + 1);
}

fn decode_all<M: DeserializeOwned + Serialize + PartialEq + Debug>(data: &[u8], size: usize) {
    let mut decoder = Decoder::<M>::default();
    for piece in data.chunks(size) {
        decoder.push(piece);
        loop {
            match decoder.next_message() {
                Ok(Some(message)) => check_round_trip(&message),
                Ok(None) => break,
                Err(failure) => {
                    assert_eq!(failure.kind, FailureKind::Protocol);
                    assert!(decoder.next_message().is_err(), "an error is for good");
                    return;
                }
            }
        }
    }
}

fn check_round_trip<M: DeserializeOwned + Serialize + PartialEq + Debug>(message: &M) {
    // What is written may be longer than what was read: defaults are spelled out.
    let Ok(frame) = encode(message) else { return };
    assert!(frame.len() <= MAX_FRAME_BYTES + 4);
    let mut decoder = Decoder::<M>::default();
    decoder.push(&frame);
    assert_eq!(decoder.next_message().unwrap().as_ref(), Some(message));
}

/// Text that someone gives as a server's address.
pub fn addresses(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    for text in [text.to_owned(), format!("farline://{text}")] {
        if let Ok(target) = Target::parse(&text) {
            assert_eq!(Target::parse(&target.url()), Ok(target));
        }
    }
}

/// Two machines and whatever may come between them: messages late, lost, doubled or made up,
/// events at the wrong moment, time in leaps, channels that close.
pub fn operations(data: &[u8]) {
    let mut play = Play::new();
    let mut bytes = data.iter().copied();
    while let Some(operation) = bytes.next() {
        play.step(operation, bytes.next().unwrap_or(0));
    }
    play.end();
}

struct Play {
    client: ClientMachine,
    server: ServerMachine,
    now: Duration,
    to_client: VecDeque<ServerMessage>,
    to_server: VecDeque<ClientMessage>,
    at_client: VecDeque<ClientEvent>,
    at_server: VecDeque<ServerEvent>,
}

fn spec(choice: u8) -> RunSpec {
    let direction = ["forward", "reverse", "bidirectional"][usize::from(choice) % 3];
    let text = format!(r#"{{"direction":"{direction}","duration_s":2,"streams":2}}"#);
    let spec: RunSpec = serde_json::from_str(&text).expect("a valid spec");
    spec.resolved().expect("a valid spec")
}

fn failure() -> Failure {
    Failure::new(FailureKind::Protocol, "made up")
}

impl Play {
    fn new() -> Self {
        let timing = Timing::default();
        let client = ClientPlan {
            spec: spec(0),
            ticket: None,
            versions: VERSIONS,
            keeps: true,
            timing,
        };
        let server = ServerPlan {
            session: SessionId([1; 16]),
            versions: VERSIONS,
            timing,
        };
        Self {
            client: ClientMachine::new(client, Duration::ZERO),
            server: ServerMachine::new(server, Duration::ZERO),
            now: Duration::ZERO,
            to_client: VecDeque::new(),
            to_server: VecDeque::new(),
            at_client: VecDeque::new(),
            at_server: VecDeque::new(),
        }
    }

    /// Half of all operations are what an honest driver would do next.
    fn step(&mut self, operation: u8, choice: u8) {
        let now = self.now;
        match operation % 16 {
            0..8 => self.honest(operation),
            8 => self.client.handle_event(now, client_event(choice)),
            9 => self.server.handle_event(now, server_event(choice)),
            10 => self.client.handle_message(now, server_message(choice)),
            11 => self.server.handle_message(now, client_message(choice)),
            12 => self.pass(Duration::from_millis(1 << (choice % 24))),
            13 if choice < 16 => self.client.handle_closed(now),
            13 if choice < 32 => self.server.handle_closed(now),
            14 if choice % 2 == 0 => drop(self.to_client.pop_front()),
            14 => drop(self.to_server.pop_front()),
            15 if choice % 2 == 0 => self.to_client.extend(self.to_client.front().cloned()),
            15 => self.to_server.extend(self.to_server.front().cloned()),
            _ => {}
        }
    }

    fn honest(&mut self, operation: u8) {
        let now = self.now;
        if let Some(event) = self.at_client.pop_front().filter(|_| operation & 1 == 0) {
            self.client.handle_event(now, event);
        }
        if let Some(event) = self.at_server.pop_front().filter(|_| operation & 2 == 0) {
            self.server.handle_event(now, event);
        }
        self.act();
        if let Some(message) = self.to_client.pop_front() {
            self.client.handle_message(now, message);
        }
        if let Some(message) = self.to_server.pop_front() {
            self.server.handle_message(now, message);
        }
        self.act();
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.client.handle_timeout(self.now);
        self.server.handle_timeout(self.now);
    }

    fn act(&mut self) {
        for count in 0.. {
            let Some(action) = self.client.poll_action(self.now) else {
                break;
            };
            assert!(count < MOST_ACTIONS, "the client never rests");
            self.do_client(action);
        }
        for count in 0.. {
            let Some(action) = self.server.poll_action(self.now) else {
                break;
            };
            assert!(count < MOST_ACTIONS, "the server never rests");
            self.do_server(action);
        }
    }

    fn do_client(&mut self, action: ClientAction) {
        match action {
            ClientAction::Send(message) => self.to_server.push_back(message),
            ClientAction::OpenStreams { .. } => {
                self.at_client.push_back(ClientEvent::Run(RunTurn::StreamsOpen))
            }
            ClientAction::StartRun(_) => self.at_client.extend([
                ClientEvent::Run(RunTurn::SendersDone),
                ClientEvent::Run(RunTurn::AllDone),
            ]),
            ClientAction::FinishRun(_) => {
                self.at_client.clear();
                self.at_client
                    .push_back(ClientEvent::Collected(ClientProfile::default()));
            }
            ClientAction::Adjust(change) if change.open.is_some() => {
                let (missing, why) = (0, None);
                self.at_client
                    .push_front(ClientEvent::LateStreams { missing, why });
            }
            ClientAction::StopRun
            | ClientAction::Adjust(_)
            | ClientAction::Adjusted(_)
            | ClientAction::Stages(_)
            | ClientAction::Stage(_)
            | ClientAction::Notice(_) => {}
        }
    }

    fn do_server(&mut self, action: ServerAction) {
        match action {
            ServerAction::Send(message) => self.to_client.push_back(message),
            ServerAction::Admit(handshake) => {
                self.at_server.push_back(match handshake.task {
                    Task::Profile(spec) => ServerEvent::Admitted {
                        grant: grant(spec),
                        duration_limit: None,
                    },
                    Task::Names => ServerEvent::NamesAdmitted {
                        rights: NameRights {
                            read: true,
                            write: true,
                        },
                        duration_limit: None,
                    },
                });
            }
            ServerAction::Bind(_) => self.at_server.push_back(server_event(1)),
            ServerAction::Accept(_) => self.at_server.push_back(ServerEvent::Run(RunTurn::StreamsOpen)),
            ServerAction::StartRun(_) => self.at_server.extend([
                ServerEvent::Run(RunTurn::SendersDone),
                ServerEvent::Run(RunTurn::AllDone),
            ]),
            ServerAction::FinishRun(_) => {
                self.at_server.clear();
                self.at_server.push_back(ServerEvent::Collected(Box::default()));
            }
            ServerAction::Adjust(change) => self.at_server.push_front(ServerEvent::Adjusted(Adjusted {
                number: change.number,
                first_stream: 5,
                ..Adjusted::default()
            })),
            ServerAction::Answer(_) => self
                .at_server
                .push_back(ServerEvent::NameAnswered(NameAnswer::Done { count: 1 })),
            ServerAction::StopRun => {}
        }
    }

    /// Without any more input, time alone ends both.
    fn end(mut self) {
        for _ in 0..MOST_TIMEOUTS {
            self.act();
            let next = [self.client.poll_timeout(), self.server.poll_timeout()]
                .into_iter()
                .flatten()
                .min();
            let Some(next) = next else { break };
            self.pass(next.saturating_sub(self.now));
        }
        assert!(
            self.client.is_over(),
            "the client hangs in {:?}",
            self.client.state()
        );
        assert!(
            self.server.is_over(),
            "the server hangs in {:?}",
            self.server.state()
        );
        let (client, server) = (self.client.state(), self.server.state());
        self.client.handle_message(self.now, server_message(0));
        self.server.handle_message(self.now, client_message(0));
        assert_eq!(
            (self.client.state(), self.server.state()),
            (client, server),
            "what is over stays over"
        );
    }
}

fn grant(spec: RunSpec) -> Box<Grant> {
    Box::new(Grant {
        spec,
        notes: Vec::new(),
    })
}

fn client_event(choice: u8) -> ClientEvent {
    match choice % 9 {
        7 => ClientEvent::Adjust(AdjustRequest {
            streams: StreamCount::new(u16::from(choice / 9) + 1).ok(),
            ..AdjustRequest::default()
        }),
        8 => ClientEvent::LateStreams {
            missing: u16::from(choice / 9),
            why: None,
        },
        0 => ClientEvent::Run(RunTurn::StreamsOpen),
        1 => ClientEvent::Run(RunTurn::SendersDone),
        2 => ClientEvent::Run(RunTurn::AllDone),
        3 => ClientEvent::Run(RunTurn::Failed(failure())),
        4 => ClientEvent::Collected(ClientProfile::default()),
        5 => ClientEvent::Stop,
        _ => ClientEvent::Failed(failure()),
    }
}

fn server_event(choice: u8) -> ServerEvent {
    match choice % 10 {
        8 => ServerEvent::Adjusted(Adjusted::default()),
        9 => ServerEvent::Stages(FarStages::default()),
        0 => ServerEvent::Admitted {
            grant: grant(spec(choice / 10)),
            duration_limit: None,
        },
        1 => ServerEvent::Bound(Listeners {
            listeners: vec![ListenerAddress {
                destination: None,
                port: 1,
            }],
            messages_port: None,
            is_vacant: false,
        }),
        2 => ServerEvent::Run(RunTurn::StreamsOpen),
        3 => ServerEvent::Run(RunTurn::SendersDone),
        4 => ServerEvent::Run(RunTurn::AllDone),
        5 => ServerEvent::Run(RunTurn::Failed(failure())),
        6 => ServerEvent::Collected(Box::default()),
        _ => ServerEvent::Failed(failure()),
    }
}

fn server_message(choice: u8) -> ServerMessage {
    let more = choice / 10;
    match choice % 10 {
        8 => ServerMessage::Adjusted(Adjusted {
            number: u32::from(more % 3),
            first_stream: u16::from(more),
            ..Adjusted::default()
        }),
        9 => ServerMessage::Stages(FarStages::default()),
        0 => ServerMessage::CtrlChanEst(Established {
            min_version: u32::from(more % 3),
            max_version: u32::from(more % 5),
            session: SessionId([more; 16]),
        }),
        1 => ServerMessage::Handshake(Box::new(Grant {
            spec: spec(more),
            notes: vec!["note".into(); more.into()],
        })),
        2 => ServerMessage::CreateStreams(Listeners {
            messages_port: None,
            is_vacant: false,
            listeners: vec![
                ListenerAddress {
                    destination: None,
                    port: 1
                };
                usize::from(more % 3)
            ],
        }),
        3 => ServerMessage::ProfilingStart,
        4 => ServerMessage::ProfilingEnd(ProfilingEnd {
            stopped: more % 2 == 1,
        }),
        5 => ServerMessage::ExchangeProfile(profile_part(more)),
        6 => ServerMessage::TpgDone,
        _ => ServerMessage::Error(failure()),
    }
}

fn profile_part(choice: u8) -> ProfilePart {
    match choice % 4 {
        0 => ProfilePart::Samples(Box::new(Samples {
            end: vec![1],
            ..Samples::default()
        })),
        1 => ProfilePart::Streams(vec![StreamRecord {
            end: choice / 4,
            ..StreamRecord::default()
        }]),
        2 => ProfilePart::Interfaces(Vec::new()),
        _ => ProfilePart::End(Box::new(ProfileEnd {
            report: Default::default(),
            failure: None,
        })),
    }
}

fn client_message(choice: u8) -> ClientMessage {
    let more = choice / 8;
    match choice % 8 {
        _ if choice >= 248 => ClientMessage::Handshake(Box::new(Handshake {
            version: VERSIONS.max,
            ticket: None,
            task: Task::Names,
            keeps: false,
        })),
        _ if choice >= 240 => ClientMessage::Name(NameRequest::List {
            path: String::new(),
            after: None,
        }),
        7 => ClientMessage::Adjust(Adjust {
            number: u32::from(more),
            open: u16::from(more),
            ..Adjust::default()
        }),
        0 => ClientMessage::Handshake(Box::new(Handshake {
            version: u32::from(more % 3),
            ticket: None,
            task: Task::Profile(spec(more)),
            keeps: more % 2 == 1,
        })),
        1 => ClientMessage::CreateStreams,
        2 => ClientMessage::ProfilingStart,
        3 => ClientMessage::ProfilingEnd(ProfilingEnd {
            stopped: more % 2 == 1,
        }),
        4 => ClientMessage::ExchangeProfile(ClientProfile::default()),
        5 => ClientMessage::TpgDone,
        _ => ClientMessage::Error(failure()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::client::ClientState;
    use crate::machine::server::ServerState;
    use proptest::prelude::*;

    #[test]
    fn honest_operations_alone_lead_to_the_end() {
        let mut play = Play::new();
        for _ in 0..30 {
            play.step(0, 0);
        }
        assert_eq!(
            (play.client.state(), play.server.state()),
            (ClientState::Done, ServerState::Done)
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn operations_never_panic_or_hang(data in prop::collection::vec(any::<u8>(), 0..200)) {
            operations(&data);
        }

        #[test]
        fn a_little_mischief_late_in_an_honest_session(honest in 0usize..30, data in prop::collection::vec(any::<u8>(), 0..12)) {
            let mut whole = vec![0; 2 * honest];
            whole.extend(data);
            operations(&whole);
        }

        #[test]
        fn bytes_never_panic(data in prop::collection::vec(any::<u8>(), 0..400)) {
            frames(&data);
            addresses(&data);
        }

        #[test]
        fn frames_of_almost_valid_json_never_panic(choice in any::<u8>(), place in any::<prop::sample::Index>(), byte in any::<u8>()) {
            for mut frame in [encode(&client_message(choice)).unwrap(), encode(&server_message(choice)).unwrap()] {
                let place = place.index(frame.len());
                frame[place] = byte;
                frame.insert(0, 6);
                frames(&frame);
            }
        }
    }
}
