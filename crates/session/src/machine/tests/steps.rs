//! The thirteen steps and the ways out of them.

use farline_spec::unit::{DurationS, RateBps};
use farline_spec::{FailureKind, NameAnswer, NameRequest, NameRights};

use super::*;
use crate::machine::client::ClientState;
use crate::machine::server::ServerState;
use crate::message::{Established, ProfilePart, ProfilingEnd};

const DIRECTIONS: [&str; 3] = ["forward", "reverse", "bidirectional"];

fn one_of(direction: &str) -> Pair {
    Pair::new(
        &format!(r#"{{"direction":"{direction}","duration_s":5,"streams":2}}"#),
        50,
    )
}

fn sent(machine: &mut ClientMachine) -> Vec<ClientMessage> {
    std::iter::from_fn(|| machine.poll_action(Duration::ZERO))
        .filter_map(|action| match action {
            ClientAction::Send(message) => Some(message),
            _ => None,
        })
        .collect()
}

fn greeting(min_version: u32, max_version: u32) -> ServerMessage {
    ServerMessage::CtrlChanEst(Established {
        min_version,
        max_version,
        session: SessionId([1; 16]),
    })
}

#[test]
fn a_server_that_knows_blake3_alone_is_asked_in_words_that_it_knows() {
    for (hash, verify) in [("auto", "tree"), ("blake3", "tree"), ("none", "none")] {
        for (version, is_said) in [(4, false), (5, hash != "auto")] {
            let copy = format!(r#"{{"copy":{{"sources":["s"],"destination":"d","hash":"{hash}"}}}}"#);
            let mut machine = client(spec(&copy));
            machine.handle_message(Duration::ZERO, greeting(1, version));
            let asked = serde_json::to_value(&sent(&mut machine)[0]).unwrap();
            let copy = &asked["HANDSHAKE"]["task"]["profile"]["copy"];
            assert_eq!(copy["verify"], verify, "{hash} {version}");
            assert_eq!(copy.get("hash").is_some(), is_said, "{hash} {version}");
        }
    }
    let copy = r#"{"copy":{"sources":["s"],"destination":"d","hash":"xxh3"}}"#;
    let mut machine = client(spec(copy));
    machine.handle_message(Duration::ZERO, greeting(1, 4));
    assert_eq!(machine.failure().unwrap().kind, FailureKind::Version);
}

#[test]
fn every_direction_goes_through_the_states_of_the_paper() {
    for direction in DIRECTIONS {
        let mut pair = one_of(direction);
        pair.run();
        assert_eq!(
            pair.client.state(),
            ClientState::Done,
            "{direction}: {:?}",
            pair.client.failure()
        );
        assert_eq!(
            pair.server.state(),
            ServerState::Done,
            "{direction}: {:?}",
            pair.server.failure()
        );
        let names = [
            "CTRL_CHAN_EST",
            "HANDSHAKE",
            "CREATE_STREAMS",
            "PROFILING_START",
            "PROFILING_END",
            "EXCHANGE_PROFILE",
            "TPG_DONE",
        ];
        assert_eq!(pair.stages, names, "{direction}");
        assert!(pair.profile().is_some() && pair.client.failure().is_none());
        assert!(
            pair.now < Duration::from_secs(7),
            "{direction} took {:?}",
            pair.now
        );
    }
}

#[test]
fn a_stop_ends_the_run_early_at_both_ends_and_keeps_the_profile() {
    for direction in DIRECTIONS {
        let mut pair = one_of(direction);
        pair.pass_to(Duration::from_secs(2));
        assert_eq!(pair.server.state(), ServerState::Running);
        pair.at_client(ClientEvent::Stop);
        pair.at_client(ClientEvent::Stop);
        pair.run();
        assert_eq!(
            pair.client.state(),
            ClientState::Done,
            "{direction}: {:?}",
            pair.client.failure()
        );
        assert_eq!(pair.client.failure().unwrap().kind, FailureKind::Interrupted);
        assert!(pair.server.client_stopped() && pair.profile().is_some());
        assert!(
            pair.now < Duration::from_secs(3),
            "{direction} took {:?}",
            pair.now
        );
    }
}

#[test]
fn a_stop_reaches_a_server_that_sends_on_after_the_client_is_done() {
    let mut pair = one_of("bidirectional");
    pair.run_until(|pair| {
        pair.server.state() == ServerState::Running && pair.client.state() == ClientState::Running
    });
    pair.at_client(ClientEvent::Run(RunTurn::SendersDone));
    pair.at_client(ClientEvent::Stop);
    let before = pair.now;
    pair.run();
    assert!(pair.server.client_stopped());
    assert!(
        pair.now - before < Duration::from_secs(1),
        "took {:?}",
        pair.now - before
    );
}

#[test]
fn a_stop_before_the_run_is_an_error_to_the_server() {
    let mut pair = one_of("forward");
    pair.run_until(|pair| pair.client.state() == ClientState::CreatingStreams);
    pair.at_client(ClientEvent::Stop);
    pair.run();
    assert_eq!(pair.client.failure().unwrap().kind, FailureKind::Interrupted);
    assert_eq!(pair.server.failure().unwrap().kind, FailureKind::Interrupted);
}

#[test]
fn a_lost_end_of_data_costs_the_drain_time_and_no_more() {
    for direction in DIRECTIONS {
        let mut pair = one_of(direction);
        pair.end_is_lost = true;
        pair.run();
        assert_eq!(
            pair.client.state(),
            ClientState::Done,
            "{direction}: {:?}",
            pair.client.failure()
        );
        assert!(
            pair.now < Duration::from_secs(17),
            "{direction} took {:?}",
            pair.now
        );
    }
}

#[test]
fn a_deaf_client_fails_by_time_and_the_server_hears_of_it() {
    for state in [
        ServerState::Greeting,
        ServerState::Granted,
        ServerState::Ready,
        ServerState::Running,
    ] {
        let mut pair = one_of("forward");
        pair.run_until(|pair| pair.server.state() == state);
        pair.deaf = true;
        pair.run();
        let failure = pair.client.failure().unwrap();
        assert_eq!(failure.kind, FailureKind::Timeout, "{state:?}: {failure}");
        assert_eq!(
            pair.server.failure().unwrap().kind,
            FailureKind::Timeout,
            "{state:?}"
        );
    }
}

#[test]
fn the_first_message_has_five_seconds_from_the_connection() {
    let mut server = server();
    assert_eq!(server.poll_timeout(), Some(Duration::from_secs(5)));
    assert!(server.poll_action(Duration::from_secs(4)).is_some());
    assert_eq!(
        server.poll_timeout(),
        Some(Duration::from_secs(5)),
        "sending does not buy time"
    );
    server.handle_timeout(Duration::from_secs(5));
    assert_eq!(server.state(), ServerState::Failed);
}

#[test]
fn a_version_outside_the_offer_is_refused_by_either_end() {
    let mut client = client(spec("{}"));
    client.handle_message(Duration::ZERO, greeting(VERSIONS.max + 1, VERSIONS.max + 2));
    assert_eq!(client.failure().unwrap().kind, FailureKind::Version);
    assert!(
        matches!(sent(&mut client)[..], [ClientMessage::Error(_)]),
        "the server hears why"
    );

    let mut server = server();
    let handshake = crate::message::Handshake {
        version: VERSIONS.max + 1,
        ticket: None,
        task: Task::Profile(spec("{}")),
        keeps: false,
    };
    server.handle_message(Duration::ZERO, ClientMessage::Handshake(Box::new(handshake)));
    assert_eq!(server.failure().unwrap().kind, FailureKind::Version);
}

#[test]
fn the_newest_common_version_is_named() {
    let range = VersionRange { min: 1, max: 9 };
    let plan = ClientPlan {
        spec: spec("{}"),
        ticket: None,
        versions: range,
        keeps: true,
        timing: Timing::default(),
    };
    let mut client = ClientMachine::new(plan, Duration::ZERO);
    client.handle_message(Duration::ZERO, greeting(3, 5));
    let [ClientMessage::Handshake(handshake)] = &sent(&mut client)[..] else {
        panic!("no handshake")
    };
    assert_eq!(handshake.version, 5);
}

fn hold(spec: &mut RunSpec, bps: u64) {
    spec.copy.as_mut().unwrap().total_rate_bps = RateBps::new(bps).ok();
}

#[test]
fn a_grant_may_lower_the_rate_and_nothing_else() {
    let granted = |asked: &str, change: fn(&mut RunSpec)| {
        let mut client = client(spec(asked));
        client.handle_message(Duration::ZERO, greeting(1, 1));
        let mut grant = Grant {
            spec: spec(asked),
            notes: vec!["a\x07b".into()],
        };
        change(&mut grant.spec);
        client.handle_message(Duration::ZERO, ServerMessage::Handshake(Box::new(grant)));
        client
    };
    let rate = |bps| Some(RateBps::new(bps).unwrap());
    let lowered = granted("{}", |spec| spec.rate_bps = Some(RateBps::new(5).unwrap()));
    assert_eq!(
        (lowered.spec().rate_bps, lowered.notes()),
        (rate(5), &["a b".to_owned()][..])
    );
    assert!(granted("{}", |_| ()).failure().is_none());
    let copy = r#"{"copy":{"sources":["s"],"destination":"d","total_rate_bps":100}}"#;
    assert!(granted(copy, |spec| hold(spec, 50)).failure().is_none());
    assert!(
        granted(copy, |spec| hold(spec, 200)).failure().is_some(),
        "no higher rate"
    );
    assert!(
        granted(copy, |spec| hold(spec, 0)).failure().is_some(),
        "0 is without limit"
    );
    let weaker = |spec: &mut RunSpec| spec.copy.as_mut().unwrap().cipher = farline_spec::Cipher::None;
    assert!(
        granted(copy, weaker).failure().is_some(),
        "a cipher is never downgraded"
    );
    for (asked, change) in [
        ("{}", (|spec| spec.seed = 1) as fn(&mut RunSpec)),
        (r#"{"rate_bps":100}"#, |spec| {
            spec.rate_bps = Some(RateBps::new(200).unwrap())
        }),
        (r#"{"rate_bps":100}"#, |spec| {
            spec.rate_bps = Some(RateBps::new(0).unwrap())
        }),
    ] {
        assert_eq!(
            granted(asked, change).failure().unwrap().kind,
            FailureKind::Protocol,
            "{asked}"
        );
    }
}

#[test]
fn listeners_must_be_those_of_the_spec() {
    let mut pair = one_of("forward");
    pair.run_until(|pair| pair.client.state() == ClientState::CreatingStreams);
    let listeners = crate::message::Listeners {
        listeners: vec![],
        messages_port: None,
        is_vacant: false,
    };
    pair.client
        .handle_message(pair.now, ServerMessage::CreateStreams(listeners));
    assert_eq!(pair.client.failure().unwrap().kind, FailureKind::Protocol);
}

#[test]
fn a_message_out_of_place_names_state_and_what_is_allowed() {
    let mut server = server();
    server.handle_message(Duration::ZERO, ClientMessage::ProfilingStart);
    let line = &server.failure().unwrap().message;
    assert_eq!(
        line,
        "protocol error: unexpected message PROFILING_START in session state Greeting; expected: HANDSHAKE"
    );
}

#[test]
fn what_the_other_end_knows_about_a_failed_run_wins() {
    let mut pair = one_of("forward");
    pair.run_until(|pair| {
        pair.server.state() == ServerState::Running && pair.client.state() == ClientState::Running
    });
    let limit = Failure::new(FailureKind::Limit, "over the rate");
    pair.at_server(ServerEvent::Failed(limit.clone()));
    pair.at_client(ClientEvent::Run(RunTurn::Failed(Failure::new(
        FailureKind::Protocol,
        "stream 0: reset",
    ))));
    pair.run();
    assert_eq!(pair.client.failure(), Some(&limit));
}

#[test]
fn a_failed_run_is_told_after_a_moment_of_listening() {
    let mut pair = one_of("reverse");
    pair.run_until(|pair| pair.client.state() == ClientState::Running);
    let (before, failure) = (pair.now, Failure::new(FailureKind::Protocol, "stream 0: reset"));
    pair.at_client(ClientEvent::Run(RunTurn::Failed(failure.clone())));
    assert_eq!(pair.client.state(), ClientState::Failing);
    pair.run();
    assert_eq!(
        (pair.client.failure(), pair.server.failure()),
        (Some(&failure), Some(&failure))
    );
    assert!(pair.now - before >= Timing::default().grace);
}

#[test]
fn a_closed_channel_is_a_failure_everywhere() {
    for state in [
        ClientState::Greeting,
        ClientState::OpeningStreams,
        ClientState::Running,
        ClientState::Exchanging,
    ] {
        let mut pair = one_of("forward");
        pair.run_until(|pair| pair.client.state() == state);
        pair.client.handle_closed(pair.now);
        assert_eq!(
            pair.client.failure().unwrap().kind,
            FailureKind::Protocol,
            "{state:?}"
        );
        pair.server.handle_closed(pair.now);
        assert!(pair.server.is_over());
    }
}

#[test]
fn events_out_of_place_are_our_own_defect() {
    let mut client = client(spec("{}"));
    client.handle_event(Duration::ZERO, ClientEvent::Run(RunTurn::AllDone));
    assert_eq!(client.failure().unwrap().kind, FailureKind::Internal);
}

#[test]
fn a_long_exchange_is_not_cut_while_it_moves() {
    let mut pair = one_of("forward");
    pair.run_until(|pair| pair.server.state() == ServerState::Finishing);
    let later = pair.now + Duration::from_secs(29);
    pair.client.handle_message(
        later,
        ServerMessage::ProfilingEnd(ProfilingEnd { stopped: false }),
    );
    assert!(pair.client.is_over(), "and a second end is out of place");
}

#[test]
fn each_part_of_a_profile_buys_time_for_the_next() {
    let mut pair = one_of("forward");
    pair.run_until(|pair| pair.client.state() == ClientState::Exchanging);
    let at = pair.now + Duration::from_secs(20);
    let part = ProfilePart::Interfaces(vec![farline_spec::InterfaceFacts::default()]);
    pair.client
        .handle_message(at, ServerMessage::ExchangeProfile(part));
    assert_eq!(pair.client.poll_timeout(), Some(at + Duration::from_secs(30)));
}

#[test]
fn a_failure_that_is_no_echo_is_told_at_once() {
    let mut pair = one_of("reverse");
    pair.run_until(|pair| pair.client.state() == ClientState::Running);
    pair.at_client(ClientEvent::Run(RunTurn::Failed(Failure::new(
        FailureKind::Timeout,
        "watchdog",
    ))));
    assert_eq!(pair.client.state(), ClientState::Failed);
}

#[test]
fn a_copy_may_take_hours_at_either_end_and_is_given_up_by_nobody() {
    for direction in ["forward", "reverse"] {
        let text = format!(r#"{{"direction":"{direction}","copy":{{"sources":["s"],"destination":"d"}}}}"#);
        let mut pair = Pair::new(&text, 50);
        pair.lasts_s = 20.0 * 3600.0;
        pair.run();
        assert_eq!(
            (pair.client.failure(), pair.server.failure()),
            (None, None),
            "{direction}"
        );
        assert!(pair.now > Duration::from_secs(20 * 3600) && pair.now < Duration::from_secs(20 * 3600 + 60));
        assert!(pair.profile().is_some());
    }
}

#[test]
fn a_stopped_copy_ends_soon_at_both_ends() {
    let text = r#"{"copy":{"sources":["s"],"destination":"d"}}"#;
    let mut pair = Pair::new(text, 50);
    pair.lasts_s = 20.0 * 3600.0;
    pair.pass_to(Duration::from_secs(60));
    pair.at_client(ClientEvent::Stop);
    pair.run();
    assert_eq!(pair.client.failure().unwrap().kind, FailureKind::Interrupted);
    assert!(pair.now < Duration::from_secs(120) && pair.profile().is_some());
}

#[test]
fn a_port_for_messages_is_for_copies_and_for_all_of_them() {
    let listeners = |messages_port| {
        let listeners = vec![ListenerAddress {
            destination: None,
            port: 7,
        }];
        ServerMessage::CreateStreams(Listeners {
            listeners,
            messages_port,
            is_vacant: false,
        })
    };
    let copy = r#"{"copy":{"sources":["s"],"destination":"d"}}"#;
    for (text, port) in [(copy, None), ("{}", Some(7))] {
        let mut pair = Pair::new(text, 1);
        pair.run_until(|pair| pair.client.state() == ClientState::CreatingStreams);
        pair.client.handle_message(pair.now, listeners(port));
        assert_eq!(pair.client.failure().unwrap().kind, FailureKind::Protocol);
    }
}

const COPY: &str = r#"{"copy":{"sources":["s"],"destination":"d"}}"#;

#[test]
fn a_copy_waits_for_no_word_that_it_does_not_need() {
    for (direction, lasts_ms) in [("forward", 100), ("reverse", 100), ("forward", 1), ("reverse", 1)] {
        let text = format!(r#"{{"direction":"{direction}","copy":{{"sources":["s"],"destination":"d"}}}}"#);
        let mut pair = Pair::new(&text, 50);
        pair.lasts_s = Duration::from_millis(lasts_ms).as_secs_f64();
        pair.run_until(|pair| pair.client.state() == ClientState::Finishing);
        // Half a round trip for the greeting, one for the task and its listeners, one to connect; the client's streams
        // begin then and the server's half a round trip later; its last word takes another half.
        let most = Duration::from_millis(50 + 100 + 100 + 50 + lasts_ms + 50);
        assert_eq!(pair.now, most, "{direction}, {lasts_ms} ms");
        pair.run();
        assert_eq!((pair.client.failure(), pair.server.failure()), (None, None));
        assert!(pair.profile().is_some() && pair.server.client_profile().is_some());
    }
}

#[test]
fn what_goes_wrong_before_the_other_end_has_begun_is_said_and_not_what_follows() {
    let starting = || {
        let mut pair = Pair::new(COPY, 50);
        pair.lasts_s = 3600.0;
        pair.run_until(|pair| pair.client.state() == ClientState::Starting);
        pair
    };
    let mut pair = starting();
    let failure = Failure::new(FailureKind::Protocol, "stream 0: reset");
    pair.at_client(ClientEvent::Run(RunTurn::Failed(failure.clone())));
    pair.run();
    assert_eq!(
        (pair.client.failure(), pair.server.failure()),
        (Some(&failure), Some(&failure))
    );
    let mut pair = starting();
    pair.at_client(ClientEvent::Stop);
    pair.run();
    for failure in [pair.client.failure(), pair.server.failure()] {
        assert_eq!(failure.unwrap().kind, FailureKind::Interrupted);
    }
}

fn names_session(limit_s: Option<f64>) -> ServerMachine {
    let mut server = server();
    let handshake = crate::message::Handshake {
        version: VERSIONS.max,
        ticket: Some("v1.a.b".into()),
        task: Task::Names,
        keeps: false,
    };
    server.handle_message(Duration::ZERO, ClientMessage::Handshake(Box::new(handshake)));
    let rights = NameRights {
        read: true,
        write: false,
    };
    let duration_limit = limit_s.map(|limit_s| DurationS::new(limit_s).unwrap());
    server.handle_event(
        Duration::ZERO,
        ServerEvent::NamesAdmitted {
            rights,
            duration_limit,
        },
    );
    while server.poll_action(Duration::ZERO).is_some() {}
    server
}

fn list() -> ClientMessage {
    ClientMessage::Name(NameRequest::List {
        path: String::new(),
        after: None,
    })
}

#[test]
fn requests_about_names_are_answered_one_by_one_until_the_client_has_enough() {
    let mut server = names_session(None);
    for second in 1..5 {
        let now = Duration::from_secs(50 * second);
        server.handle_timeout(now);
        server.handle_message(now, list());
        assert!(matches!(server.poll_action(now), Some(ServerAction::Answer(_))));
        server.handle_event(now, ServerEvent::NameAnswered(NameAnswer::Done { count: 0 }));
        let sent = server.poll_action(now);
        assert!(
            matches!(sent, Some(ServerAction::Send(ServerMessage::Name(_)))),
            "{sent:?}"
        );
    }
    server.handle_message(Duration::from_secs(201), ClientMessage::TpgDone);
    assert_eq!(server.state(), ServerState::Done);
    assert!(server.failure().is_none());
}

#[test]
fn two_requests_at_once_and_long_silence_end_a_session_about_names() {
    let mut server = names_session(None);
    server.handle_message(Duration::ZERO, list());
    server.handle_message(Duration::ZERO, list());
    assert_eq!(server.failure().unwrap().kind, FailureKind::Protocol);
    let mut server = names_session(None);
    server.handle_timeout(Duration::from_secs(60));
    assert_eq!(server.failure().unwrap().kind, FailureKind::Timeout);
}

#[test]
fn a_session_about_names_lasts_no_longer_than_its_ticket_says() {
    let mut server = names_session(Some(20.0));
    server.handle_message(Duration::from_secs(19), list());
    while server.poll_action(Duration::from_secs(19)).is_some() {}
    server.handle_event(
        Duration::from_secs(19),
        ServerEvent::NameAnswered(NameAnswer::Done { count: 0 }),
    );
    server.handle_timeout(Duration::from_secs(20));
    assert_eq!(server.state(), ServerState::Failed);
}

#[test]
fn a_run_is_not_asked_about_names() {
    let mut server = server();
    server.handle_message(Duration::ZERO, list());
    assert_eq!(server.failure().unwrap().kind, FailureKind::Protocol);
}
