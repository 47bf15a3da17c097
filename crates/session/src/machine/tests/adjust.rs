//! Changes of a copy while it runs, in virtual time.

use farline_spec::{AdjustKnob, AdjustRequest};

use super::*;
use crate::machine::client::ClientState;
use crate::machine::server::ServerState;
use crate::message::Adjust;

const LATENCY_MS: u64 = 50;
const ROUND_TRIP: Duration = Duration::from_millis(2 * LATENCY_MS);

fn copy(direction: &str) -> Pair {
    let text =
        format!(r#"{{"direction":"{direction}","streams":2,"copy":{{"sources":["s"],"destination":"d"}}}}"#);
    Pair::new(&text, LATENCY_MS)
}

fn wish(text: &str) -> ClientEvent {
    ClientEvent::Adjust(from_json::<AdjustRequest>(text).unwrap())
}

fn running(direction: &str) -> Pair {
    let mut pair = copy(direction);
    pair.run_until(|pair| pair.client.state() == ClientState::Running);
    pair
}

#[test]
fn streams_are_in_force_two_round_trips_after_the_wish_in_either_direction() {
    for direction in ["forward", "reverse"] {
        let mut pair = running(direction);
        let asked = pair.now;
        pair.at_client(wish(r#"{"streams":6}"#));
        pair.pass_to(asked + 2 * ROUND_TRIP);
        let (told, change) = pair.adjusted.pop().expect("told by now");
        assert!(told - asked <= 2 * ROUND_TRIP, "{direction}: {:?}", told - asked);
        assert_eq!(
            (change.before, change.after, change.refused),
            (Some(2), Some(6), None)
        );
        assert_eq!(pair.changes[0].1.open, Some((4, 4)));
        pair.at_client(wish(r#"{"streams":1,"concurrency":3}"#));
        pair.pass_to(pair.now + ROUND_TRIP);
        assert_eq!(pair.changes[1].1.dismiss, 5);
        assert_eq!(pair.adjusted.len(), 2);
        pair.run();
        assert_eq!(
            (pair.client.state(), pair.server.state()),
            (ClientState::Done, ServerState::Done),
            "{direction}: {:?} {:?}",
            pair.client.failure(),
            pair.server.failure()
        );
    }
}

#[test]
fn a_wish_before_the_start_waits_for_it() {
    let mut pair = copy("forward");
    pair.at_client(wish(r#"{"streams":3}"#));
    pair.run_until(|pair| pair.client.state() == ClientState::Running);
    assert_eq!(pair.adjusted, []);
    pair.pass_to(pair.now + 2 * ROUND_TRIP);
    assert_eq!(pair.adjusted[0].1.after, Some(3));
}

#[test]
fn what_the_server_refuses_or_cannot_be_opened_is_told_and_the_copy_goes_on() {
    let mut pair = running("forward");
    pair.most_open = 3;
    pair.at_client(wish(r#"{"streams":9}"#));
    pair.pass_to(pair.now + ROUND_TRIP);
    assert_eq!(pair.adjusted[0].1.refused.as_deref(), Some("too many"));
    assert_eq!(pair.changes, []);
    pair = running("forward");
    pair.missing = 1;
    pair.at_client(wish(r#"{"streams":4}"#));
    pair.pass_to(pair.now + 2 * ROUND_TRIP);
    assert_eq!(pair.adjusted[0].1.after, Some(3));
    pair.run();
    assert_eq!(pair.client.state(), ClientState::Done);
}

#[test]
fn a_change_at_any_moment_ends_as_the_copy_does() {
    for direction in ["forward", "reverse"] {
        for at_ms in (0..6_000).step_by(25) {
            let mut pair = copy(direction);
            pair.pass_to(Duration::from_millis(at_ms));
            for streams in [5, 1, 3] {
                pair.at_client(wish(&format!(r#"{{"streams":{streams},"total_rate_bps":9}}"#)));
            }
            pair.run();
            let is_over = pair.now >= Duration::from_millis(at_ms) && pair.client.is_over();
            assert!(
                is_over && pair.client.failure().is_none(),
                "{direction} {at_ms}: {:?}",
                pair.client.failure()
            );
            assert_eq!(pair.server.failure(), None, "{direction} {at_ms}");
        }
    }
}

#[test]
fn a_run_that_is_no_copy_and_an_older_server_are_refused_in_plain_words() {
    let mut pair = Pair::new(r#"{"duration_s":5}"#, LATENCY_MS);
    pair.run_until(|pair| pair.client.state() == ClientState::Running);
    pair.at_client(wish(r#"{"streams":3}"#));
    pair.pass_to(pair.now);
    assert!(
        pair.adjusted[0]
            .1
            .refused
            .as_ref()
            .unwrap()
            .contains("only a copy")
    );
    let mut pair = copy("forward");
    let plan = ServerPlan {
        session: SessionId([7; 16]),
        versions: VersionRange { min: 1, max: 3 },
        timing: Timing::default(),
    };
    pair.server = ServerMachine::new(plan, Duration::ZERO);
    pair.run_until(|pair| pair.client.state() == ClientState::Running);
    pair.at_client(wish(r#"{"streams":3,"concurrency":1}"#));
    pair.pass_to(pair.now);
    let knobs: Vec<_> = pair.adjusted.iter().map(|(_, change)| change.knob).collect();
    assert_eq!(knobs, [AdjustKnob::Streams, AdjustKnob::Concurrency]);
    let why = pair.adjusted[0].1.refused.clone().unwrap();
    assert!(
        why.contains("older farline") && why.contains("protocol 3"),
        "{why}"
    );
    pair.run();
    assert_eq!(pair.client.state(), ClientState::Done);
}

#[test]
fn a_server_takes_no_change_of_an_older_client_nor_of_what_is_no_copy() {
    for (version, copy) in [(3, true), (4, false)] {
        let mut pair = match copy {
            true => running("forward"),
            false => {
                let mut pair = Pair::new(r#"{"duration_s":5}"#, LATENCY_MS);
                pair.run_until(|pair| pair.client.state() == ClientState::Running);
                pair
            }
        };
        if copy {
            let mut older = self::copy("forward");
            let plan = ClientPlan {
                spec: older.client.spec().clone(),
                ticket: None,
                versions: VersionRange { min: 1, max: version },
                keeps: false,
                timing: Timing::default(),
            };
            older.client = ClientMachine::new(plan, Duration::ZERO);
            older.run_until(|pair| pair.server.state() == ServerState::Running);
            pair = older;
        }
        pair.server
            .handle_message(pair.now, ClientMessage::Adjust(Adjust::default()));
        let why = pair.server.failure().expect("refused").message.clone();
        assert!(why.contains("unexpected message ADJUST"), "{why}");
    }
}
