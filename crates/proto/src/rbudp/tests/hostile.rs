//! Ends that say what cannot be.

use super::*;
use crate::rbudp::wire::{Done, Message, Missing, Total};
use proptest::prelude::*;

const SENDER: SenderOptions = SenderOptions {
    packet_bytes: 100,
    payload_bytes: 950,
    in_flight: 2,
    early: true,
    rtt_ns: 10 * MS,
    rate_bps: 1_000_000,
    loss_bound: Some(0.1),
    window_bytes: None,
    checksum: true,
};

/// A sender that has stated 10 packets.
fn sender() -> Sender {
    let mut sender = Sender::new(SENDER);
    sender.give(950);
    sender.next_burst(0, 20, &mut Burst::default());
    sender.poll_mark(0).unwrap();
    sender
}

fn receiver() -> Receiver {
    Receiver::new(ReceiverOptions {
        packet_bytes: 100,
        payload_bytes: 950,
        in_flight: 2,
        settle_ns: MS,
        checksum: true,
    })
}

fn report(blast: u32, upto: u32, served: u32, report: u32, first: u32, count: u32) -> Message {
    let packets = PacketSet::from_runs([(first, count)]).unwrap();
    Message::Missing(Missing {
        blast,
        upto,
        served,
        report,
        packets,
    })
}

fn refused(message: Message) -> String {
    sender().handle_message(MS, message).unwrap_err().to_string()
}

#[test]
fn a_report_that_answers_nothing_is_refused() {
    assert_eq!(
        refused(report(1, 10, 0, 1, 0, 1)),
        "a report for blast 1; in flight: blasts 0 to 0"
    );
    assert_eq!(
        refused(report(0, 10, 0, 2, 0, 1)),
        "report 2 of blast 0 comes after report 0"
    );
    assert_eq!(
        refused(report(0, 11, 0, 1, 0, 1)),
        "report 1 of blast 0 answers packets below 11 and reports to 0; allowed: 0 to 10 and 0 to 0"
    );
    assert!(refused(report(0, 10, 1, 1, 0, 1)).contains("reports to 1"));
    assert_eq!(
        refused(report(0, 4, 0, 1, 4, 1)),
        "report 1 of blast 0 names packet 4, it is about those below 4"
    );
    let mut sender = sender();
    sender.handle_message(MS, report(0, 10, 0, 1, 0, 1)).unwrap();
    let violation = sender.handle_message(MS, report(0, 10, 0, 2, 3, 1)).unwrap_err();
    assert_eq!(
        violation.to_string(),
        "report 2 of blast 0 says that 1 packets are missing, the statement was about 0"
    );
}

#[test]
fn messages_out_of_turn_are_refused() {
    let mut early = Sender::new(SENDER);
    early.give(100);
    early.next_burst(0, 1, &mut Burst::default());
    let violation = early.handle_message(MS, Message::Whole { blast: 0 }).unwrap_err();
    assert_eq!(
        violation.to_string(),
        "WHOLE for blast 0, whose end has not been stated yet"
    );
    assert_eq!(
        refused(Message::EndSeen),
        "END-SEEN, although no END was sent or it came before"
    );
    assert_eq!(
        refused(Message::Failed("disk full".to_owned())),
        "the other end failed: disk full"
    );
    assert!(refused(Message::End { blasts: 0 }).contains("a message of a sender"));
    let mut twice = sender();
    twice.handle_message(MS, Message::Whole { blast: 0 }).unwrap();
    assert!(twice.handle_message(MS, Message::Whole { blast: 0 }).is_err());
    let violation = receiver()
        .handle_message(0, Message::End { blasts: 1 })
        .unwrap_err();
    assert_eq!(
        violation.to_string(),
        "END after 1 blasts, of which 0 are complete and 0 in flight"
    );
    assert!(receiver().handle_message(0, Message::EndSeen).is_err());
}

fn refused_done(dones: &[Done]) -> String {
    let mut receiver = receiver();
    receiver.note(0, 0, 0, 100, 1);
    let (last, before) = dones.split_last().unwrap();
    before
        .iter()
        .for_each(|done| receiver.handle_done(0, *done).unwrap());
    receiver.handle_done(0, *last).unwrap_err().to_string()
}

#[test]
fn a_statement_that_cannot_be_is_refused() {
    let done = |upto, served, total: Option<(u64, u64)>| Done {
        blast: 0,
        upto,
        served,
        total: total.map(|(bytes, sum)| Total { bytes, sum }),
    };
    assert!(
        refused_done(&[Done {
            blast: 2,
            ..done(1, 0, None)
        }])
        .contains("one of the 2 from 0 on")
    );
    assert_eq!(
        refused_done(&[done(11, 0, None)]),
        "DONE of blast 0 states 11 packets, the blast has 10"
    );
    assert_eq!(
        refused_done(&[done(5, 1, None)]),
        "DONE of blast 0 answers report 1, but there are only 0"
    );
    assert!(refused_done(&[done(10, 0, Some((951, 0)))]).contains("allowed: 1 to 950"));
    assert!(refused_done(&[done(1, 0, Some((0, 0)))]).contains("allowed: 1 to 950"));
    assert!(refused_done(&[done(2, 0, Some((100, 0)))]).contains("not what came before"));
    assert!(refused_done(&[done(5, 0, None), done(4, 0, Some((400, 0)))]).contains("not what came before"));
}

#[test]
fn packets_that_cannot_be_are_foreign() {
    let mut receiver = receiver();
    for (blast, packet, bytes) in [
        (2, 0, 100),
        (0, 10, 1),
        (0, 9, 100),
        (0, 9, 51),
        (0, 0, 0),
        (0, 0, 101),
        (u32::MAX, 0, 100),
    ] {
        assert_eq!(
            receiver.note(0, blast, packet, bytes, 0),
            Arrival::Foreign,
            "{blast} {packet} {bytes}"
        );
    }
    assert_eq!(
        receiver.note(0, 0, 5, 30, 0),
        Arrival::Fresh,
        "a short packet ends the blast"
    );
    for (packet, bytes) in [(5, 31), (5, 100), (4, 30), (6, 100), (9, 50)] {
        assert_eq!(
            receiver.look(0, packet, bytes),
            Arrival::Foreign,
            "{packet} {bytes}"
        );
    }
    assert_eq!(receiver.look(0, 5, 30), Arrival::Duplicate);
    assert_eq!(receiver.note(0, 1, 7, 100, 0), Arrival::Fresh);
    assert_eq!(
        receiver.look(1, 6, 99),
        Arrival::Foreign,
        "something came after it"
    );
    assert_eq!(receiver.statistics().foreign_packets, 7);
}

fn small() -> impl Strategy<Value = u32> {
    prop_oneof![8 => 0u32..12, 1 => any::<u32>()]
}

fn message() -> impl Strategy<Value = Message> {
    let total = prop::option::of((0u64..1_000, 0u64..2).prop_map(|(bytes, sum)| Total { bytes, sum }));
    prop_oneof![
        3 => (0u32..3, small(), small(), total).prop_map(|(blast, upto, served, total)| Message::Done(Done { blast, upto, served, total })),
        3 => (0u32..2, small(), small(), 0u32..4, 0u32..12, 1u32..5).prop_map(|(blast, upto, served, number, first, count)| report(blast, upto, served, number, first, count)),
        1 => small().prop_map(|blast| Message::Whole { blast }),
        1 => small().prop_map(|blasts| Message::End { blasts }),
        1 => Just(Message::EndSeen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn no_message_makes_either_end_panic(steps in prop::collection::vec((message(), small(), 0usize..120, 0u64..30 * MS), 0..60)) {
        let (mut sender, mut receiver) = (sender(), receiver());
        let (mut burst, mut expected, mut now_ns) = (Burst::default(), Vec::new(), 0);
        for (message, packet, bytes, passed_ns) in steps {
            now_ns += passed_ns;
            // A driver would stop at an error; going on must do no harm either.
            let _ = sender.handle_message(now_ns, message.clone());
            let _ = receiver.handle_message(now_ns, message);
            receiver.note(now_ns, packet % 3, packet, bytes, 0);
            receiver.expected(9, &mut expected);
            sender.handle_timeout(now_ns);
            sender.give(bytes as u64);
            if sender.next_burst(now_ns, 1 + bytes, &mut burst) {
                sender.not_sent(&burst, bytes);
            }
            prop_assert!(std::iter::from_fn(|| sender.poll_mark(now_ns)).count() <= 4);
            prop_assert!(std::iter::from_fn(|| sender.poll_message()).count() <= 4);
            prop_assert!(std::iter::from_fn(|| receiver.poll_message(now_ns)).count() <= 6);
            if let Ok(Some((blast, bytes))) = receiver.poll_whole() {
                prop_assert!(bytes <= 950);
                receiver.release(blast);
            }
            let _ = (sender.statistics(), receiver.statistics(), sender.poll_blast(), receiver.poll_blast());
        }
    }
}
