//! When statements are made, repeated and answered.

use super::*;
use crate::rbudp::wire::{Done, Message, Missing};

fn sender(early: bool) -> Sender {
    let mut sender = Sender::new(SenderOptions {
        packet_bytes: 100,
        payload_bytes: 1_000,
        in_flight: 2,
        early,
        rtt_ns: 100 * MS,
        rate_bps: 0,
        loss_bound: None,
        window_bytes: None,
        checksum: false,
    });
    sender.give(1_000);
    sender
}

fn send(sender: &mut Sender, now_ns: u64, packets: usize) -> Vec<u32> {
    let mut burst = Burst::default();
    sender.next_burst(now_ns, packets, &mut burst);
    burst.packets
}

fn report(upto: u32, served: u32, report: u32, packets: &[(u32, u32)]) -> Message {
    let packets = PacketSet::from_runs(packets.iter().copied()).unwrap();
    Message::Missing(Missing {
        blast: 0,
        upto,
        served,
        report,
        packets,
    })
}

#[test]
fn the_papers_way_states_a_pass_once_and_repeats_the_statement_while_nothing_answers() {
    let mut sender = sender(false);
    assert_eq!(send(&mut sender, 0, 6), [0, 1, 2, 3, 4, 5]);
    assert_eq!(sender.poll_mark(60 * MS), None, "the pass is not over");
    assert_eq!(send(&mut sender, 60 * MS, 9), [6, 7, 8, 9]);
    let total = Some(wire::Total { bytes: 1_000, sum: 0 });
    let first = Done {
        blast: 0,
        upto: 10,
        served: 0,
        total,
    };
    assert_eq!(sender.poll_mark(60 * MS), Some((first, 8)));
    assert_eq!(sender.poll_message(), Some(Message::Done(first)));
    assert_eq!((sender.poll_mark(61 * MS), sender.poll_message()), (None, None));
    assert!(sender.is_idle());
    assert_eq!(sender.waiting_since(), Some(60 * MS));
    // 5/4 of 100 ms, 20 ms, and an eighth for settling; then twice that.
    let patience_ns = 125 * MS + 20 * MS + 12_500_000;
    let again_ns = 60 * MS + patience_ns;
    assert_eq!(sender.poll_timeout(), Some(again_ns));
    sender.handle_timeout(again_ns);
    assert_eq!(sender.poll_mark(again_ns), Some((first, 8)));
    assert_eq!(sender.poll_timeout(), Some(again_ns + 2 * patience_ns));
    sender
        .handle_message(again_ns, report(10, 0, 1, &[(2, 2), (9, 1)]))
        .unwrap();
    assert_eq!(
        (sender.poll_timeout(), sender.waiting_since()),
        (None, None),
        "it is our turn"
    );
    assert_eq!(send(&mut sender, again_ns, 9), [2, 3, 9]);
    let second = Done { served: 1, ..first };
    assert_eq!(sender.poll_mark(again_ns), Some((second, 8)));
}

#[test]
fn early_statements_come_every_quarter_of_a_round_trip() {
    let mut sender = sender(true);
    send(&mut sender, 0, 2);
    assert_eq!(sender.poll_mark(0), None);
    assert_eq!(sender.poll_timeout(), Some(25 * MS));
    send(&mut sender, 24 * MS, 2);
    let first = Done {
        blast: 0,
        upto: 4,
        served: 0,
        total: None,
    };
    assert_eq!(sender.poll_mark(25 * MS), Some((first, 2)));
    assert_eq!(sender.poll_message(), None, "more follows");
    send(&mut sender, 26 * MS, 2);
    assert_eq!(sender.poll_mark(49 * MS), None);
    assert_eq!(sender.poll_mark(50 * MS).map(|(done, _)| done.upto), Some(6));
    sender
        .handle_message(120 * MS, report(4, 0, 1, &[(1, 1)]))
        .unwrap();
    assert_eq!(send(&mut sender, 120 * MS, 3), [1], "gaps go first");
    assert_eq!(send(&mut sender, 120 * MS, 9), [6, 7, 8, 9]);
    let end = sender.poll_mark(120 * MS).unwrap();
    assert_eq!(
        (end.0.upto, end.0.served, end.0.total.is_some(), end.1),
        (10, 1, true, 8)
    );
}

#[test]
fn gaps_of_the_older_blast_go_before_new_packets() {
    let mut sender = sender(true);
    sender.give(sender.room());
    send(&mut sender, 0, 10);
    sender.poll_mark(0);
    send(&mut sender, 0, 1);
    sender.handle_message(MS, report(10, 0, 1, &[(4, 1)])).unwrap();
    let mut burst = Burst::default();
    assert!(sender.next_burst(MS, 5, &mut burst));
    assert_eq!(
        (burst.blast, burst.is_repeat, &burst.packets[..]),
        (0, true, &[4][..])
    );
    assert!(sender.next_burst(MS, 5, &mut burst));
    assert_eq!(
        (burst.blast, burst.is_repeat, burst.offset, burst.packets[0]),
        (1, false, 1_000, 1)
    );
}

#[test]
fn what_the_kernel_did_not_take_goes_again_and_counts_once() {
    let mut sender = sender(false);
    let mut burst = Burst::default();
    sender.next_burst(0, 8, &mut burst);
    sender.not_sent(&burst, 3);
    sender.next_burst(0, 8, &mut burst);
    assert_eq!(burst.packets, [3, 4, 5, 6, 7, 8, 9]);
    sender.not_sent(&burst, 7);
    assert_eq!(sender.statistics().sent_packets, 10);
    sender.poll_mark(0);
    sender.handle_message(0, report(10, 0, 1, &[(0, 10)])).unwrap();
    sender.next_burst(0, 8, &mut burst);
    sender.not_sent(&burst, 0);
    assert_eq!(sender.poll_mark(0), None, "nothing has been served");
    sender.next_burst(0, 10, &mut burst);
    assert_eq!((burst.packets.len(), burst.is_repeat), (10, true));
    assert_eq!(sender.poll_mark(0).map(|(done, _)| done.served), Some(1));
    assert_eq!(sender.statistics().repeated_packets, 10);
}

#[test]
fn a_report_that_comes_while_one_is_served_does_not_hold_it_up() {
    let mut sender = sender(true);
    send(&mut sender, 0, 4);
    sender.poll_mark(25 * MS);
    send(&mut sender, 26 * MS, 4);
    sender.poll_mark(50 * MS);
    sender
        .handle_message(100 * MS, report(4, 0, 1, &[(0, 2)]))
        .unwrap();
    assert_eq!(send(&mut sender, 100 * MS, 1), [0]);
    sender
        .handle_message(101 * MS, report(8, 0, 2, &[(5, 3)]))
        .unwrap();
    assert_eq!(send(&mut sender, 101 * MS, 1), [1]);
    assert_eq!(send(&mut sender, 101 * MS, 1), [5], "the next batch");
    assert_eq!(sender.poll_mark(101 * MS).map(|(done, _)| done.served), Some(1));
    assert_eq!(send(&mut sender, 101 * MS, 9), [6, 7]);
    assert_eq!(sender.poll_mark(130 * MS).map(|(done, _)| done.served), Some(2));
}

fn receiver() -> Receiver {
    Receiver::new(ReceiverOptions {
        packet_bytes: 100,
        payload_bytes: 1_000,
        in_flight: 2,
        settle_ns: 10 * MS,
        checksum: false,
    })
}

#[test]
fn an_overtaken_packet_that_comes_while_a_statement_settles_is_not_reported() {
    let mut receiver = receiver();
    for packet in [0, 1, 3] {
        receiver.note(0, 0, packet, 100, 0);
    }
    receiver
        .handle_done(
            0,
            Done {
                blast: 0,
                upto: 6,
                served: 0,
                total: None,
            },
        )
        .unwrap();
    assert_eq!(receiver.poll_timeout(), Some(10 * MS));
    assert_eq!(receiver.poll_message(10 * MS - 1), None);
    receiver.note(5 * MS, 0, 2, 100, 0);
    assert_eq!(receiver.poll_message(10 * MS), Some(report(6, 0, 1, &[(4, 2)])));
}

#[test]
fn a_report_is_about_what_no_report_was_about_and_what_was_served() {
    let mut receiver = receiver();
    let mut answer = |now_ns, upto, served| {
        receiver
            .handle_done(
                now_ns,
                Done {
                    blast: 0,
                    upto,
                    served,
                    total: None,
                },
            )
            .unwrap();
        receiver.poll_message(now_ns + 10 * MS)
    };
    assert_eq!(answer(0, 4, 0), Some(report(4, 0, 1, &[(0, 4)])));
    assert_eq!(
        answer(20 * MS, 6, 0),
        Some(report(6, 0, 2, &[(4, 2)])),
        "report 1 is not served yet"
    );
    assert_eq!(answer(40 * MS, 6, 0), None, "nothing new is stated");
    assert_eq!(answer(50 * MS, 5, 0), None, "an old DONE, overtaken");
    assert_eq!(answer(60 * MS, 7, 1), Some(report(7, 1, 3, &[(0, 4), (6, 1)])));
}

#[test]
fn statements_that_are_due_together_are_answered_by_one_report() {
    let mut receiver = receiver();
    for (at_ns, upto) in [(0, 2), (MS, 4), (2 * MS, 6)] {
        receiver
            .handle_done(
                at_ns,
                Done {
                    blast: 0,
                    upto,
                    served: 0,
                    total: None,
                },
            )
            .unwrap();
    }
    assert_eq!(receiver.poll_message(11 * MS), Some(report(4, 0, 1, &[(0, 4)])));
    assert_eq!(receiver.poll_message(11 * MS), None);
    assert_eq!(receiver.poll_message(12 * MS), Some(report(6, 0, 2, &[(4, 2)])));
}

#[test]
fn a_pass_that_ends_while_another_blast_goes_on_is_stated_over_tcp_only_if_nothing_answers() {
    let mut sender = sender(true);
    sender.give(sender.room());
    send(&mut sender, 0, 10);
    let (done, copies) = sender.poll_mark(0).unwrap();
    assert_eq!((done.blast, done.total.is_some(), copies), (0, true, 4));
    assert_eq!(sender.poll_message(), None);
    let again_ns = sender.poll_timeout().unwrap();
    sender.handle_timeout(again_ns);
    assert_eq!(sender.poll_mark(again_ns), Some((done, 4)));
    assert_eq!(sender.poll_message(), Some(Message::Done(done)));
}

#[test]
fn a_done_over_tcp_waits_for_what_it_has_overtaken() {
    let mut receiver = receiver();
    let done = Done {
        blast: 0,
        upto: 6,
        served: 0,
        total: None,
    };
    receiver.handle_message(0, Message::Done(done)).unwrap();
    for packet in 0..4 {
        receiver.note(u64::from(packet) * 9 * MS, 0, packet, 100, 0);
        assert_eq!(receiver.poll_message(u64::from(packet) * 9 * MS), None);
    }
    assert_eq!(
        receiver.poll_timeout(),
        Some(37 * MS),
        "10 ms after the last packet that came"
    );
    receiver.handle_done(28 * MS, done).unwrap();
    assert_eq!(
        receiver.poll_timeout(),
        Some(38 * MS),
        "now what is missing is lost"
    );
    receiver.note(36 * MS, 0, 4, 100, 0);
    assert_eq!(receiver.poll_message(38 * MS), Some(report(6, 0, 1, &[(5, 1)])));
    assert_eq!(
        (receiver.poll_message(99 * MS), receiver.poll_timeout()),
        (None, None)
    );
}

#[test]
fn a_window_holds_new_packets_back_until_reports_open_it_and_lets_gaps_pass() {
    let path = Path::default();
    let mut sender = Sender::new(SenderOptions {
        window_bytes: Some(800),
        rtt_ns: 100 * MS,
        ..options(&path)
    });
    sender.give(10_000);
    assert_eq!(send(&mut sender, 0, 44).len(), 8);
    assert_eq!(send(&mut sender, 0, 44).len(), 0);
    let (done, copies) = sender.poll_mark(0).unwrap();
    assert_eq!((done.upto, copies), (8, 8), "nothing goes before an answer comes");
    assert_eq!(sender.poll_message(), Some(Message::Done(done)));
    sender
        .handle_message(100 * MS, report(8, 0, 1, &[(2, 3)]))
        .unwrap();
    assert_eq!(send(&mut sender, 100 * MS, 44), [2, 3, 4]);
    assert_eq!(send(&mut sender, 100 * MS, 44), [8, 9, 10, 11, 12]);
    assert_eq!(
        send(&mut sender, 100 * MS, 44).len(),
        0,
        "three are still in doubt"
    );
}
