//! Callers and listeners over a network that loses, doubles and delays.

use proptest::prelude::*;

use super::network::{Network, fates};
use super::*;

#[test]
fn a_call_takes_four_datagrams_and_both_ends_agree() {
    let mut network = Network::call(Vec::new());
    network.run(10 * S);
    let [caller, listener] = &network.ends;
    assert_eq!((caller.sent, listener.sent), (2, 2));
    let expected = Agreed {
        socket: 1,
        peer_socket: 2,
        send_isn: offer(1).initial_sequence,
        receive_isn: offer(1).initial_sequence,
        mss_bytes: 1401,
        peer_flight_packets: 10_002,
        kind: SocketKind::Stream,
        is_rendezvous: false,
        is_marked: true,
    };
    assert_eq!(caller.agreed, [expected]);
    assert_eq!(listener.agreed[0].peer_flight_packets, 10_001);
    assert_mirrored(&caller.agreed[0], &listener.agreed[0]);
}

#[test]
fn a_caller_asks_every_250_ms_and_gives_up_after_3_s() {
    let mut network = Network::call(vec![(0, 0); 100]);
    network.run(10 * S);
    assert_eq!((network.ends[0].sent, network.ends[0].over_ns), (12, 3 * S));
    assert_eq!((network.ends[1].heard, &network.ends[0].agreed), (0, &Vec::new()));
}

#[test]
fn a_caller_whose_cookie_is_no_longer_good_asks_for_another() {
    let mut network = Network::call(Vec::new());
    network.run(45 * MS);
    network.ends[1].listening = Some(Listening::new([8; 32]));
    network.run(10 * S);
    assert_mirrored(&network.ends[0].agreed[0], &network.ends[1].agreed[0]);
    assert!(
        network.ends[0].over_ns <= 1100 * MS,
        "{}",
        network.ends[0].over_ns
    );
}

#[test]
fn the_same_challenge_twice_is_answered_once() {
    let mut caller = Opening::caller(offer(1), peer(), 0);
    assert_eq!(said(&caller.poll_transmit(0).unwrap()).1.request, REQUEST);
    let challenge = |cookie| word(&offer(1), REQUEST, 1, |handshake| handshake.cookie = cookie);
    assert_eq!(caller.handle(MS, &challenge(9)), Step::Wait);
    let (destination, conclusion) = said(&caller.poll_transmit(MS).unwrap());
    assert_eq!(
        (destination, conclusion.request, conclusion.cookie),
        (0, CONCLUSION, 9)
    );
    assert_eq!(conclusion.peer_ip, [0x0102_00c0, 0, 0, 0]);
    assert_eq!(caller.handle(2 * MS, &challenge(9)), Step::Wait);
    assert_eq!(caller.poll_transmit(2 * MS), None);
    assert_eq!(caller.next_timeout(), 251 * MS);
    assert_eq!(caller.handle(3 * MS, &challenge(10)), Step::Wait);
    assert_eq!(
        said(&caller.poll_transmit(3 * MS).unwrap()).1.cookie,
        10,
        "a newer one counts"
    );
}

#[test]
fn a_caller_says_why_there_is_no_connection() {
    let own = offer(1).initial_sequence;
    let answered = |request: i32, change: &dyn Fn(&mut Handshake)| {
        let mut caller = Opening::caller(offer(1), peer(), 0);
        let answer = word(&offer(2), request, 1, |handshake| {
            handshake.initial_sequence = own;
            change(handshake);
        });
        let step = caller.handle(MS, &answer);
        assert_eq!(caller.handle(2 * MS, &[]), step, "what is decided stays so");
        assert!(step == Step::Wait || caller.poll_transmit(MS).is_none());
        step
    };
    let refused = |request, change: &dyn Fn(&mut Handshake)| match answered(request, change) {
        Step::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    };
    let rejected = refused(REFUSED, &|_| ());
    assert_eq!(rejected, Refusal::Rejected { code: 1002 });
    assert_eq!(rejected.to_string(), "the peer refuses the connection");
    assert_eq!(refused(1004, &|_| ()), Refusal::Rejected { code: 1004 });
    assert_eq!(
        refused(-1, &|theirs| theirs.version = 3),
        Refusal::Version { version: 3 }
    );
    assert_eq!(refused(-1, &|theirs| theirs.kind = 2), Refusal::Kind { kind: 2 });
    let small = refused(-1, &|theirs| theirs.mss_bytes = 75);
    assert_eq!(small, Refusal::SegmentSize { mss_bytes: 75 });
    let other = refused(-1, &|theirs| theirs.initial_sequence = Sequence::new(5));
    assert_eq!(other, Refusal::InitialSequence);
    let zeros = answered(-1, &|theirs| (theirs.version, theirs.kind) = (0, 0));
    assert!(
        matches!(zeros, Step::Done(_)),
        "libudt's repeated answers leave them out"
    );
}

#[test]
fn a_caller_hears_only_what_is_for_it() {
    let mut caller = Opening::caller(offer(1), peer(), 0);
    caller.poll_transmit(0);
    let of_ours = |handshake: &mut Handshake| handshake.initial_sequence = offer(1).initial_sequence;
    let mut short = word(&offer(2), CONCLUSION, 1, of_ours).to_vec();
    short.pop();
    let foreign = [
        word(&offer(2), CONCLUSION, 3, of_ours).to_vec(),
        word(&offer(2), CONCLUSION, 0, of_ours).to_vec(),
        word(&offer(2), REQUEST, 1, |_| ()).to_vec(),
        word(&offer(2), REFUSED, 1, |_| ()).to_vec(),
        word(&offer(2), RENDEZVOUS, 1, of_ours).to_vec(),
        word(&offer(0), CONCLUSION, 1, of_ours).to_vec(),
        short,
        vec![0; 64],
        Vec::new(),
    ];
    for datagram in foreign {
        assert_eq!(caller.handle(MS, &datagram), Step::Wait);
        assert_eq!(caller.poll_transmit(MS), None, "{datagram:?}");
    }
}

fn ask(listening: &Listening, now_ns: u64, port: u16, request: i32, cookie: u32) -> Heard {
    let datagram = word(&offer(1), request, 0, |handshake| handshake.cookie = cookie);
    listening.handle(now_ns, address(port), &datagram, &offer(2))
}

fn challenged(listening: &Listening, now_ns: u64, port: u16) -> u32 {
    let Heard::Answer(answer) = ask(listening, now_ns, port, REQUEST, 0) else {
        panic!("no answer");
    };
    let (destination, challenge) = said(&answer);
    let asked = introduce(&offer(1), REQUEST, [0; 4]);
    let cookie = challenge.cookie;
    assert_eq!(
        (destination, challenge),
        (1, Handshake { cookie, ..asked }),
        "its own words come back"
    );
    cookie
}

#[test]
fn a_cookie_is_good_for_one_window_more_than_its_own() {
    let listening = Listening::new([7; 32]);
    let is_wanted = |now_ns, cookie| match ask(&listening, now_ns, 1000, CONCLUSION, cookie) {
        Heard::Wanted(_) => true,
        Heard::Nothing => false,
        Heard::Answer(answer) => panic!("{answer:?}"),
    };
    for made_ns in [0, 63 * S, 64 * S, 100 * S] {
        let cookie = challenged(&listening, made_ns, 1000);
        assert!(is_wanted(made_ns, cookie) && is_wanted(made_ns + 64 * S, cookie));
        assert!(!is_wanted(made_ns + 128 * S, cookie));
        assert!(!is_wanted(made_ns, cookie ^ 1) && !is_wanted(made_ns, 0));
    }
    assert_ne!(
        challenged(&listening, 0, 1000),
        challenged(&listening, 64 * S, 1000)
    );
}

#[test]
fn a_cookie_is_good_for_one_caller_and_one_listener() {
    let listening = Listening::new([7; 32]);
    let cookie = challenged(&listening, 0, 1000);
    assert_eq!(
        ask(&listening, 0, 1001, CONCLUSION, cookie),
        Heard::Nothing,
        "another port"
    );
    let other = Listening::new([8; 32]);
    assert_eq!(
        ask(&other, 0, 1000, CONCLUSION, cookie),
        Heard::Nothing,
        "another listener"
    );
    let datagram = word(&offer(1), CONCLUSION, 0, |handshake| handshake.cookie = cookie);
    let from = |ip: &str| {
        listening.handle(
            0,
            (ip.parse::<IpAddr>().unwrap(), 1000).into(),
            &datagram,
            &offer(2),
        )
    };
    assert_eq!(from("192.0.2.3"), Heard::Nothing, "another address");
    assert!(
        matches!(from("::ffff:192.0.2.2"), Heard::Wanted(_)),
        "the same one, through a socket of IPv6"
    );
}

#[test]
fn a_listener_refuses_what_it_cannot_carry() {
    let listening = Listening::new([7; 32]);
    let cookie = challenged(&listening, 0, 1000);
    let heard = |change: &dyn Fn(&mut Handshake)| {
        let datagram = word(&offer(1), CONCLUSION, 0, |handshake| {
            handshake.cookie = cookie;
            change(handshake);
        });
        listening.handle(0, address(1000), &datagram, &offer(2))
    };
    assert!(matches!(heard(&|_| ()), Heard::Wanted(_)));
    let wrong: [&dyn Fn(&mut Handshake); 5] = [
        &|theirs| theirs.version = 5,
        &|theirs| theirs.version = 0,
        &|theirs| theirs.kind = 2,
        &|theirs| theirs.kind = 0,
        &|theirs| theirs.mss_bytes = 75,
    ];
    for change in wrong {
        let Heard::Answer(answer) = heard(change) else {
            panic!("no answer");
        };
        let (destination, refusal) = said(&answer);
        assert_eq!((destination, refusal.request, refusal.socket), (1, REFUSED, 1));
        let step = Opening::caller(offer(1), peer(), 0).handle(0, &answer);
        assert_eq!(step, Step::Refused(Refusal::Rejected { code: REFUSED }));
    }
}

#[test]
fn a_listener_hears_only_callers() {
    let listening = Listening::new([7; 32]);
    let heard = |datagram: &[u8]| listening.handle(0, address(1000), datagram, &offer(2));
    assert_eq!(
        heard(&word(&offer(1), REQUEST, 2, |_| ())),
        Heard::Nothing,
        "for a connection"
    );
    assert_eq!(heard(&word(&offer(1), RENDEZVOUS, 0, |_| ())), Heard::Nothing);
    assert_eq!(heard(&word(&offer(1), ANSWER, 0, |_| ())), Heard::Nothing);
    assert_eq!(heard(&word(&offer(1), REFUSED, 0, |_| ())), Heard::Nothing);
    assert_eq!(heard(&word(&offer(0), REQUEST, 0, |_| ())), Heard::Nothing);
    assert_eq!(
        heard(&word(&offer(1), REQUEST, 0, |_| ())[..63]),
        Heard::Nothing,
        "never more than it got"
    );
    assert_eq!(heard(&[0; 64]), Heard::Nothing);
}

#[test]
fn what_a_listener_answers_is_what_libudt_answers() {
    let theirs = Handshake {
        cookie: 77,
        ..introduce(&offer(1), CONCLUSION, [1; 4])
    };
    let (agreed, answer) = Listening::accept(&theirs, address(1).ip(), &offer(2));
    let (destination, answer) = said(&answer);
    assert_eq!(
        (destination, answer.request, answer.socket, answer.cookie),
        (1, CONCLUSION, 2, 77)
    );
    assert_eq!(answer.initial_sequence, theirs.initial_sequence);
    assert_eq!((answer.mss_bytes, answer.flight_packets), (1401, 10_002));
    assert_eq!(answer.peer_ip, [0x0202_00c0, 0, 0, 0]);
    assert_eq!(
        (agreed.send_isn, agreed.receive_isn),
        (theirs.initial_sequence, theirs.initial_sequence)
    );
}

#[test]
fn windows_that_no_connection_could_use_are_limited() {
    let flight = |flight_packets| {
        let theirs = Handshake {
            flight_packets,
            ..introduce(&offer(1), CONCLUSION, [0; 4])
        };
        Listening::accept(&theirs, peer(), &offer(2))
            .0
            .peer_flight_packets
    };
    assert_eq!(
        [flight(0), flight(1), flight(25_600), flight(u32::MAX)],
        [2, 2, 25_600, 1 << 29]
    );
}

#[test]
fn farline_ends_know_each_other_by_a_word_that_others_ignore() {
    let (request, _) = request_and_caller();
    assert!(said(&request).1.is_marked());
    let answered = |marked: bool| {
        let theirs = introduce(&offer(1), CONCLUSION, [0; 4]);
        let theirs = if marked { theirs.marked() } else { theirs };
        let (agreed, answer) = Listening::accept(&theirs, peer(), &offer(2));
        (agreed.is_marked, said(&answer).1.mark != 0)
    };
    assert_eq!(answered(true), (true, true));
    assert_eq!(
        answered(false),
        (false, false),
        "nobody is told who has not asked"
    );
}

#[test]
fn a_listener_that_repeats_a_callers_header_is_not_taken_for_farline() {
    let (request, caller) = request_and_caller();
    let mark = said(&request).1.mark;
    for (mark, is_marked) in [
        (mark, false),
        (0, false),
        (introduce(&offer(2), -1, [0; 4]).marked().mark, true),
    ] {
        let answer = word(&offer(2), CONCLUSION, 1, |handshake| {
            handshake.initial_sequence = offer(1).initial_sequence;
            handshake.mark = mark;
        });
        let step = caller().handle(MS, &answer);
        assert!(
            matches!(step, Step::Done(agreed) if agreed.is_marked == is_marked),
            "{step:?}"
        );
    }
}

/// A caller's request, and what makes callers.
fn request_and_caller() -> ([u8; HANDSHAKE_BYTES], impl Fn() -> Opening) {
    let caller = || Opening::caller(offer(1), peer(), 0);
    (caller().poll_transmit(0).unwrap(), caller)
}

proptest! {
    #[test]
    fn calls_survive_loss_doubles_and_disorder(fates in fates(8)) {
        let mut network = Network::call(fates);
        network.run(60 * S);
        let [caller, listener] = &network.ends;
        prop_assert_eq!((caller.agreed.len(), listener.agreed.len()), (1, 1), "one connection at each end");
        assert_mirrored(&caller.agreed[0], &listener.agreed[0]);
        prop_assert!(listener.sent <= listener.heard, "at most one answer for each datagram");
        prop_assert!(caller.over_ns < 3 * S);
    }

    #[test]
    fn hopeless_networks_end_in_time(fates in fates(200)) {
        let mut network = Network::call(fates);
        network.run(60 * S);
        prop_assert!(network.ends[0].over_ns <= 3 * S && network.ends[0].over_ns > 0);
        prop_assert!(network.ends[1].agreed.len() <= 1);
    }
}
