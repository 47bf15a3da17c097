//! What an open connection answers to handshakes that come late.

use super::*;

/// What a listener's connection with socket 2 agreed on with a caller with socket 1.
fn called() -> (Agreed, Offer) {
    let theirs = introduce(&offer(1), CONCLUSION, [0; 4]);
    (Listening::accept(&theirs, peer(), &offer(2)).0, offer(2))
}

#[test]
fn a_repeated_conclusion_gets_the_same_answer_again() {
    let (agreed, ours) = called();
    for request in [REQUEST, CONCLUSION] {
        let repeat = word(&offer(1), request, 0, |theirs| theirs.cookie = 5);
        let (destination, answer) = said(&late_answer(&agreed, &ours, &repeat).unwrap());
        assert_eq!(
            (destination, answer.request, answer.socket, answer.cookie),
            (1, CONCLUSION, 2, 5)
        );
        assert_eq!(answer.initial_sequence, offer(1).initial_sequence);
        assert_eq!((answer.mss_bytes, answer.flight_packets), (1401, 10_002));
        let step = Opening::caller(offer(1), peer(), 0).handle(0, &answer.datagram(1));
        assert!(matches!(step, Step::Done(_)));
    }
}

#[test]
fn a_request_to_the_connection_itself_may_leave_out_what_libudt_leaves_out() {
    let (agreed, ours) = called();
    let zeros = |theirs: &mut Handshake| (theirs.version, theirs.kind) = (0, 0);
    assert!(late_answer(&agreed, &ours, &word(&offer(1), REQUEST, 2, zeros)).is_some());
}

#[test]
fn strangers_and_answers_are_not_answered() {
    let (agreed, ours) = called();
    let silent = [
        word(&offer(3), CONCLUSION, 0, |_| ()),
        word(&offer(1), CONCLUSION, 3, |_| ()),
        word(&offer(1), CONCLUSION, 0, |theirs| {
            theirs.initial_sequence = Sequence::new(1)
        }),
        word(&offer(1), CONCLUSION, 2, |_| ()),
        word(&offer(1), RENDEZVOUS, 0, |_| ()),
        word(&offer(1), REFUSED, 0, |_| ()),
        [0; 64],
    ];
    for datagram in silent {
        assert_eq!(late_answer(&agreed, &ours, &datagram), None, "{datagram:?}");
    }
    assert_eq!(late_answer(&agreed, &ours, &[]), None);
}

#[test]
fn answers_never_bring_about_answers() {
    let (listener, ours) = called();
    let caller = Agreed {
        socket: 1,
        peer_socket: 2,
        ..listener
    };
    let repeat = word(&offer(1), CONCLUSION, 0, |_| ());
    let answer = late_answer(&listener, &ours, &repeat).unwrap();
    assert_eq!(late_answer(&caller, &offer(1), &answer), None);
    let mut challenge = word(&offer(1), REQUEST, 1, |theirs| theirs.cookie = 9);
    assert_eq!(
        late_answer(&caller, &offer(1), &challenge),
        None,
        "a late challenge repeats our own id"
    );
    challenge[15] = 0;
    assert_eq!(late_answer(&caller, &offer(1), &challenge), None);
}

#[test]
fn in_a_rendezvous_everything_but_answers_is_answered() {
    let agreed = Agreed {
        receive_isn: offer(1).initial_sequence,
        send_isn: offer(2).initial_sequence,
        is_rendezvous: true,
        is_marked: false,
        ..called().0
    };
    for (request, destination) in [(RENDEZVOUS, 0), (RENDEZVOUS, 2), (CONCLUSION, 2), (REQUEST, 2)] {
        let late = word(&offer(1), request, destination, |_| ());
        let (destination, answer) = said(&late_answer(&agreed, &offer(2), &late).unwrap());
        assert_eq!((destination, answer.request, answer.socket), (1, ANSWER, 2));
        assert_eq!(answer.initial_sequence, offer(2).initial_sequence);
        assert_eq!(
            late_answer(&agreed, &offer(2), &word(&offer(1), ANSWER, 2, |_| ())),
            None
        );
    }
    assert_eq!(
        late_answer(&agreed, &offer(2), &word(&offer(1), REFUSED, 2, |_| ())),
        None
    );
    assert_eq!(
        late_answer(&agreed, &offer(2), &word(&offer(3), CONCLUSION, 2, |_| ())),
        None
    );
}
