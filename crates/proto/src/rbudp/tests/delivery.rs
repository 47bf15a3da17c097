//! Whatever the path does, every blast becomes whole, in order, with the right bytes, in bounded time.

use super::*;
use proptest::prelude::*;

fn path() -> impl Strategy<Value = Path> {
    let odds = (0.0..0.5f64, 0.0..0.3f64, 0.0..0.3f64);
    let times = (0..100 * MS, 0..50 * MS, 0..300 * MS);
    (odds, times, any::<u64>()).prop_map(
        |((loss, doubles, late), (delay_ns, lateness_ns, tcp_lateness_ns), seed)| Path {
            delay_ns,
            loss,
            doubles,
            late,
            lateness_ns,
            tcp_lateness_ns,
            bottleneck_bps: 0,
            seed,
        },
    )
}

fn sizes() -> impl Strategy<Value = (usize, u64, u32, usize)> {
    (1usize..120, 1u64..3_000, 1u32..6, 1usize..9_000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_blast_becomes_whole(
        path in path(), (packet_bytes, payload_bytes, in_flight, payload) in sizes(),
        early: bool, checksum: bool, most_given in 1u64..5_000, kernel_takes in 1usize..50, bound in prop::option::of(0.0..0.5f64), window_bytes in prop::option::of(1u64..3_000),
    ) {
        // No more than a few hundred blasts: each takes a round trip.
        let payload = payload.min(300 * payload_bytes as usize);
        let options = SenderOptions { packet_bytes, payload_bytes, in_flight, early, checksum, loss_bound: bound, window_bytes, ..options(&path) };
        let mut world = World::new(path, options, payload);
        (world.most_given, world.kernel_takes) = (most_given, kernel_takes);
        world.run();
        let blasts = payload.div_ceil(payload_bytes as usize);
        let sent: Vec<_> = std::iter::from_fn(|| world.sender.poll_blast()).collect();
        let came: Vec<_> = std::iter::from_fn(|| world.receiver.poll_blast()).collect();
        prop_assert_eq!((sent.len(), came.len()), (blasts, blasts));
        for (ours, theirs) in sent.iter().zip(&came) {
            prop_assert_eq!((ours.bytes, ours.packets), (theirs.bytes, theirs.packets));
            prop_assert_eq!((ours.passes, ours.first_pass_lost_packets), (theirs.passes, theirs.first_pass_lost_packets));
            prop_assert!(ours.sent_packets >= ours.packets);
        }
        let (sender, receiver) = (world.sender.statistics(), world.receiver.statistics());
        prop_assert_eq!(receiver.fresh_packets, sender.sent_packets - sender.repeated_packets);
        prop_assert!(sender.repeated_packets <= sender.reported_lost_packets, "less where a late packet came first");
        prop_assert_eq!((receiver.missing_now, receiver.foreign_packets, sender.unacknowledged_packets), (0, 0, 0));
        prop_assert_eq!(world.sender.waiting_since(), None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn blasts_may_end_before_they_are_full(
        path in path(), (packet_bytes, payload_bytes, in_flight, payload) in sizes(),
        early: bool, checksum: bool, pause_every in 1u64..4_000, kernel_takes in 1usize..50,
    ) {
        let shortest = payload_bytes.min(pause_every) as usize;
        let payload = payload.min(200 * shortest);
        let options = SenderOptions { packet_bytes, payload_bytes, in_flight, early, checksum, ..options(&path) };
        let mut world = World::new(path, options, payload);
        (world.pause_every, world.kernel_takes) = (pause_every, kernel_takes);
        world.run();
        let of_pause = |bytes: u64| bytes.div_ceil(payload_bytes);
        let (pauses, rest) = (payload as u64 / pause_every, payload as u64 % pause_every);
        let blasts = pauses * of_pause(pause_every) + of_pause(rest);
        let came: Vec<_> = std::iter::from_fn(|| world.receiver.poll_blast()).collect();
        prop_assert_eq!(came.len() as u64, blasts);
        prop_assert!(came.iter().all(|blast| blast.bytes <= payload_bytes.min(pause_every)));
    }
}

#[test]
fn closing_what_is_empty_makes_no_blast() {
    let path = Path::default();
    let mut sender = Sender::new(options(&path));
    sender.close_blast();
    assert_eq!(sender.give(0), None);
    assert_eq!(sender.give(10), Some(0));
    sender.close_blast();
    sender.close_blast();
    assert_eq!((sender.give(7), sender.give(7)), (Some(1), Some(1)));
}

#[test]
fn a_clean_path_takes_one_pass_and_no_packet_twice() {
    for early in [false, true] {
        let path = Path::default();
        let mut world = World::new(
            path.clone(),
            SenderOptions {
                early,
                ..options(&path)
            },
            1_000_050,
        );
        world.run();
        let statistics = world.sender.statistics();
        assert_eq!(
            (statistics.sent_packets, statistics.repeated_packets),
            (10_001, 0)
        );
        let blasts: Vec<_> = std::iter::from_fn(|| world.sender.poll_blast()).collect();
        assert_eq!(blasts.len(), 11);
        assert!(blasts.iter().all(|blast| blast.passes == 1));
        assert_eq!(blasts[10].bytes, 50);
    }
}

#[test]
fn a_stream_of_nothing_ends() {
    let path = Path::default();
    let mut world = World::new(path.clone(), options(&path), 0);
    world.sender.finish(0);
    world.run();
    assert_eq!(world.now_ns, 2 * path.delay_ns);
}

#[test]
fn a_blast_that_is_not_released_holds_its_slot() {
    let path = Path::default();
    let options = SenderOptions {
        in_flight: 1,
        payload_bytes: 500,
        ..options(&path)
    };
    let mut sender = Sender::new(options);
    sender.give(500);
    assert_eq!(sender.room(), 0, "the one slot is taken");
    let mut receiver = Receiver::new(ReceiverOptions {
        packet_bytes: 100,
        payload_bytes: 500,
        in_flight: 1,
        settle_ns: MS,
        checksum: false,
    });
    let total = wire::Total { bytes: 500, sum: 0 };
    (0..5).for_each(|packet| assert_eq!(receiver.note(0, 0, packet, 100, 0), Arrival::Fresh));
    receiver
        .handle_done(
            0,
            wire::Done {
                blast: 0,
                upto: 5,
                served: 0,
                total: Some(total),
            },
        )
        .unwrap();
    assert_eq!(receiver.poll_whole(), Ok(Some((0, 500))));
    assert_eq!(receiver.poll_whole(), Ok(None));
    assert_eq!(receiver.look(1, 0, 100), Arrival::Foreign);
    assert_eq!(
        receiver.poll_message(0),
        None,
        "nothing to say before the settling time is over"
    );
    let answer = receiver.poll_message(MS);
    assert!(matches!(answer, Some(wire::Message::Missing(missing)) if missing.packets.is_empty()));
    receiver.release(0);
    assert_eq!(receiver.poll_message(MS), Some(wire::Message::Whole { blast: 0 }));
    assert_eq!(receiver.look(1, 0, 100), Arrival::Fresh);
    assert_eq!(receiver.look(0, 0, 100), Arrival::Duplicate);
}

#[test]
fn a_blast_whose_hashes_do_not_add_up_fails() {
    let mut receiver = Receiver::new(ReceiverOptions {
        packet_bytes: 100,
        payload_bytes: 500,
        in_flight: 1,
        settle_ns: MS,
        checksum: true,
    });
    receiver.note(0, 0, 0, 50, 7);
    let total = wire::Total { bytes: 50, sum: 8 };
    receiver
        .handle_done(
            0,
            wire::Done {
                blast: 0,
                upto: 1,
                served: 0,
                total: Some(total),
            },
        )
        .unwrap();
    let violation = receiver.poll_whole().unwrap_err();
    assert!(
        violation.to_string().starts_with("blast 0 is corrupted: "),
        "{violation}"
    );
}
