//! Rendezvous: both ends call.

use proptest::prelude::*;

use super::network::{Network, fates};
use super::*;
use crate::udt::wire::{Boundary, DataHeader, MessageWord, write_control};

fn ready() -> Opening {
    let mut opening = Opening::rendezvous(offer(1), peer(), 0);
    let (destination, greeting) = said(&opening.poll_transmit(0).unwrap());
    assert_eq!(
        (destination, greeting.request, greeting.cookie),
        (0, RENDEZVOUS, 0)
    );
    opening
}

fn expected() -> Agreed {
    Agreed {
        socket: 1,
        peer_socket: 2,
        send_isn: offer(1).initial_sequence,
        receive_isn: offer(2).initial_sequence,
        mss_bytes: 1401,
        peer_flight_packets: 10_002,
        kind: SocketKind::Stream,
        is_rendezvous: true,
        is_marked: true,
    }
}

/// With a peer that is not farline.
fn unmarked() -> Agreed {
    Agreed {
        is_marked: false,
        ..expected()
    }
}

#[test]
fn both_ends_keep_their_own_sequence_numbers() {
    let mut network = Network::meeting(Vec::new(), 0);
    network.run(40 * S);
    assert_eq!(network.ends[0].agreed, [expected()]);
    assert_mirrored(&network.ends[0].agreed[0], &network.ends[1].agreed[0]);
    assert!(network.ends[0].over_ns <= 40 * MS, "one round trip");
}

#[test]
fn an_end_waits_30_s_for_the_other() {
    let mut network = Network::meeting(Vec::new(), 29 * S);
    network.run(100 * S);
    assert_mirrored(&network.ends[0].agreed[0], &network.ends[1].agreed[0]);
    let mut network = Network::meeting(Vec::new(), 31 * S);
    network.run(100 * S);
    assert_eq!(
        (network.ends[0].over_ns, network.ends[1].over_ns),
        (30 * S, 61 * S)
    );
    assert_eq!((network.ends[0].sent, network.ends[0].agreed.len()), (120, 0));
}

#[test]
fn a_greeting_is_answered_at_once_with_a_conclusion() {
    let mut opening = ready();
    let greeting = word(&offer(2), RENDEZVOUS, 0, |_| ());
    for now_ns in [MS, 2 * MS] {
        assert_eq!(opening.handle(now_ns, &greeting), Step::Wait);
        let (destination, conclusion) = said(&opening.poll_transmit(now_ns).unwrap());
        assert_eq!(
            (destination, conclusion.request, conclusion.socket),
            (2, CONCLUSION, 1)
        );
    }
    assert_eq!(opening.poll_transmit(2 * MS), None);
    assert_eq!(
        opening.handle(3 * MS, &word(&offer(2), CONCLUSION, 1, |_| ())),
        Step::Done(unmarked())
    );
    let (destination, last_word) = said(&opening.poll_transmit(3 * MS).unwrap());
    assert_eq!(
        (destination, last_word.request),
        (2, ANSWER),
        "so that the peer need not ask again"
    );
    assert_eq!(opening.poll_transmit(3 * MS), None);
}

#[test]
fn an_answer_or_anything_of_a_connection_ends_the_opening() {
    let answer = word(&offer(2), ANSWER, 1, |theirs| {
        (theirs.version, theirs.kind) = (0, 0)
    });
    assert_eq!(ready().handle(MS, &answer), Step::Done(unmarked()));
    let data = DataHeader {
        sequence: Sequence::new(5),
        message: MessageWord::new(Boundary::Only, false, 1),
        timestamp_us: 0,
        destination: 1,
    };
    let mut datagrams = [vec![0; 100], Vec::new(), Vec::new()];
    data.write(&mut datagrams[0]);
    write_control(&Control::KeepAlive, 0, 1, &mut datagrams[1]);
    write_control(&Control::Custom { kind: 1, body: &[] }, 0, 1, &mut datagrams[2]);
    for datagram in datagrams {
        let mut opening = ready();
        assert_eq!(
            opening.handle(MS, &datagram),
            Step::Wait,
            "the peer is not known yet"
        );
        opening.handle(MS, &word(&offer(2), RENDEZVOUS, 0, |_| ()));
        let mut foreign = datagram.clone();
        foreign[15] = 3;
        assert_eq!(opening.handle(MS, &foreign), Step::Wait, "for another socket");
        assert_eq!(opening.handle(MS, &datagram), Step::Done(unmarked()));
    }
}

#[test]
fn ends_that_do_not_fit_are_refused_and_told() {
    let messages = Offer {
        kind: SocketKind::Message,
        ..offer(2)
    };
    let mut opening = ready();
    let step = opening.handle(MS, &word(&messages, RENDEZVOUS, 0, |_| ()));
    assert_eq!(step, Step::Refused(Refusal::Kind { kind: 2 }));
    let refusal = opening.poll_transmit(MS).unwrap();
    let mut other = Opening::rendezvous(messages, peer(), 0);
    assert_eq!(
        other.handle(MS, &refusal),
        Step::Refused(Refusal::Rejected { code: REFUSED })
    );
}

#[test]
fn who_has_not_heard_from_us_cannot_end_it() {
    let mut opening = ready();
    for request in [CONCLUSION, ANSWER, REFUSED] {
        assert_eq!(
            opening.handle(MS, &word(&offer(2), request, 0, |_| ())),
            Step::Wait
        );
    }
    for destination in [0, 1] {
        let call = word(&offer(2), REQUEST, destination, |_| ());
        assert_eq!(
            opening.handle(MS, &call),
            Step::Wait,
            "callers are not for a rendezvous"
        );
    }
    assert_eq!(opening.poll_transmit(MS), None);
}

proptest! {
    #[test]
    fn meetings_survive_loss_doubles_and_disorder(fates in fates(30), later_ms in 0u64..2000) {
        let mut network = Network::meeting(fates, later_ms * MS);
        network.run(100 * S);
        let [one, other] = &network.ends;
        prop_assert_eq!((one.agreed.len(), other.agreed.len()), (1, 1));
        assert_mirrored(&one.agreed[0], &other.agreed[0]);
    }
}
