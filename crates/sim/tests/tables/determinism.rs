//! Same seed, same table; and machines of two kinds in one world.

use farline_sim::datagram::{self, Arrivals, SourceConfig};
use farline_sim::scenario::Path;
use farline_sim::tcp::control::Control;
use farline_sim::tcp::{self, Flow, SenderConfig};
use farline_sim::{Either, World, ns};
use farline_spec::unit::{DelayS, Probability, QueueBytes, WireRateBps};
use farline_spec::{LinkChange, LinkDirection, PipeChange, QueueDiscipline};
use proptest::prelude::*;

use crate::run::{Alone, FORWARD, SEGMENT_BYTES};

/// Everything a run tells, as text.
fn told(seed: u64, control: Control) -> String {
    let mut path = Path::new(50_000_000, ns(0.03)).queue_bdp(0.5).loss(1e-3);
    path.seed = seed;
    let mut alone = Alone::endless(&path, control);
    alone.run_until_s(20.0);
    let samples = alone.world.samples();
    format!(
        "{:?} {:?} {:?} {:?}",
        alone.figures(),
        alone.congestions(0.0),
        samples.pipes,
        samples.endpoints
    )
}

#[test]
fn the_same_seed_tells_the_same_and_another_tells_something_else() {
    for control in Control::ALL {
        assert_eq!(told(7, control), told(7, control), "{}", control.name());
        assert_ne!(told(7, control), told(8, control), "{}", control.name());
    }
}

#[test]
fn stopping_on_the_way_changes_nothing() {
    let path = Path::new(50_000_000, ns(0.03)).queue_bdp(0.5).loss(1e-3);
    let mut straight = Alone::endless(&path, Control::Cubic);
    straight.run_until_s(20.0);
    let mut stopping = Alone::endless(&path, Control::Cubic);
    for stop in 1..=200 {
        stopping.run_until_s(f64::from(stop) / 10.0);
    }
    assert_eq!(straight.figures(), stopping.figures());
    assert_eq!(straight.world.counters(FORWARD), stopping.world.counters(FORWARD));
}

#[test]
fn machines_of_two_kinds_share_a_bottleneck() {
    type Both = Either<tcp::End, datagram::End>;
    let path = Path::new(100_000_000, ns(0.02)).queue_bdp(1.0);
    let mut world: World<Both> =
        World::new(&path.dumbbell(&[0, 0]), 0).expect("a topology that holds together");
    let receiver = world.add(1, Either::Left(tcp::End::Receiver(tcp::Receiver::new())));
    let sender = tcp::Sender::new(
        receiver,
        SenderConfig::endless(SEGMENT_BYTES),
        Control::Reno.build(),
    );
    world.add(0, Either::Left(tcp::End::Sender(Box::new(sender))));
    let sink = world.add(3, Either::Right(datagram::End::Sink(datagram::Sink::default())));
    let config = SourceConfig {
        rate_bps: 40_000_000,
        packet_bytes: 1462,
        train: 1,
        arrivals: Arrivals::Poisson(5),
        start_ns: 0,
        stop_ns: ns(60.0),
        ecn: false,
    };
    world.add(
        2,
        Either::Right(datagram::End::Source(datagram::Source::new(sink, config))),
    );
    world.run_until(ns(60.0)).expect("no packet unaccounted for");
    let Either::Left(tcp::End::Receiver(receiver)) = world.endpoint(receiver) else {
        panic!("a receiver")
    };
    let tcp_bps = receiver.figures().in_order as f64 * 1538.0 * 8.0 / 60.0;
    assert!(
        (52e6..59e6).contains(&tcp_bps),
        "TCP takes what is left: {tcp_bps}"
    );
    let Either::Right(datagram::End::Sink(sink)) = world.endpoint(sink) else {
        panic!("a sink")
    };
    assert!(sink.figures().packets > 200_000, "{:?}", sink.figures());
}

#[test]
fn a_limited_window_gives_window_over_round_trip() {
    let path = Path::new(1_000_000_000, ns(0.1)).queue_bdp(1.0);
    let config = SenderConfig {
        window_limit_segments: 500.0,
        train_segments: 1,
        ..SenderConfig::endless(SEGMENT_BYTES)
    };
    let mut alone = Alone::new(&path, Control::Cubic.build(), config);
    alone.run_until_s(30.0);
    crate::run::assert_close(
        "window over round trip",
        alone.delivered(5.0, 30.0),
        500.0 / 0.1,
        0.01,
    );
    assert_eq!(alone.figures().lost, 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever the path does, all data arrive, once each for the application, and every pipe's books are right.
    #[test]
    fn every_segment_arrives_over_any_path(
        seed in any::<u64>(),
        rate_mbps in 1u64..1000,
        rtt_ms in 0u64..200,
        queue_bytes in 10_000u64..2_000_000,
        loss in 0.0f64..0.05,
        reorder in 0.0f64..0.02,
        duplicate in 0.0f64..0.02,
        corrupt in 0.0f64..0.02,
        control in prop::sample::select(Control::ALL.to_vec()),
    ) {
        let mut path = Path::new(rate_mbps * 1_000_000, rtt_ms * 1_000_000).queue_bytes(queue_bytes).loss(loss);
        path.seed = seed;
        let chance = |value: f64| Some(farline_spec::unit::Probability::new(value).expect("a probability"));
        path.forward.reorder = chance(reorder);
        path.forward.duplicate = chance(duplicate);
        path.forward.corrupt = chance(corrupt);
        let mut world = World::new(&path.topology(), 0).expect("a topology that holds together");
        let config = SenderConfig { total_segments: Some(3_000), ..SenderConfig::endless(SEGMENT_BYTES) };
        let flow = Flow::open(&mut world, 0, 1, config, control.build());
        let mut end_s = 0.0;
        while !flow.sending(&world).is_done() && end_s < 3_600.0 {
            end_s += 10.0;
            world.run_until(ns(end_s)).expect("no packet unaccounted for");
        }
        prop_assert!(flow.sending(&world).is_done(), "not done after {end_s} s");
        prop_assert_eq!(flow.receiving(&world).figures().in_order, 3_000);
        let figures = flow.sending(&world).figures();
        prop_assert_eq!(figures.sent, 3_000 + figures.retransmitted);
    }
}

/// A change of the path, as someone makes it while packets are under way.
fn any_change() -> impl Strategy<Value = PipeChange> {
    let rate = (0u64..200).prop_map(|mbps| WireRateBps::new(mbps * 1_000_000).ok());
    let delay = (0u64..80).prop_map(|ms| DelayS::new(ms as f64 / 1000.0).ok());
    let capacity = (3_000u64..300_000).prop_map(|bytes| QueueBytes::new(bytes).ok());
    let chance = || (0.0f64..0.1).prop_map(|value| Probability::new(value).ok());
    prop_oneof![
        rate.prop_map(|rate_bps| PipeChange {
            rate_bps,
            ..PipeChange::default()
        }),
        delay.prop_map(|delay_s| PipeChange {
            delay_s,
            ..PipeChange::default()
        }),
        capacity.prop_map(|capacity_bytes| PipeChange {
            capacity_bytes,
            ..PipeChange::default()
        }),
        chance().prop_map(|duplicate| PipeChange {
            duplicate,
            ..PipeChange::default()
        }),
        chance().prop_map(|reorder| PipeChange {
            reorder,
            ..PipeChange::default()
        }),
        any::<bool>().prop_map(|up| PipeChange {
            up: Some(up),
            ..PipeChange::default()
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever is changed while trains are under way, books stay right, and a restored path delivers everything.
    #[test]
    fn no_change_under_way_loses_count_of_a_packet(
        seed in any::<u64>(),
        codel in any::<bool>(),
        jitter_ms in 0u64..3,
        steps in prop::collection::vec((any_change(), 0usize..3, 1u64..700), 1..30),
    ) {
        let mut path = Path::new(50_000_000, 30_000_000).queue_bytes(100_000);
        path.seed = seed;
        path.forward.jitter_s = (jitter_ms > 0).then(|| DelayS::new(jitter_ms as f64 / 1000.0).expect("in range"));
        path.forward.queue.discipline = if codel { QueueDiscipline::Codel } else { QueueDiscipline::DropTail };
        let mut world = World::new(&path.dumbbell(&[0, 5_000_000]), 0).expect("a topology that holds together");
        let config = SenderConfig { total_segments: Some(5_000), ..SenderConfig::endless(SEGMENT_BYTES) };
        let flows = [0, 2].map(|port| Flow::open(&mut world, port, port + 1, config, Control::Cubic.build()));
        let mut now_ns = 0;
        let make = |world: &mut World<tcp::End>, change, direction| {
            let link = "path".to_string();
            world.change(&LinkChange { link, direction, change }).expect("the link is there");
            world.check().expect("no packet unaccounted for");
        };
        for (change, direction, wait_ms) in steps {
            now_ns += wait_ms * 1_000_000;
            world.run_until(now_ns).expect("no packet unaccounted for");
            let directions = [LinkDirection::Forward, LinkDirection::Reverse, LinkDirection::Both];
            make(&mut world, change, directions[direction]);
        }
        let usable = PipeChange {
            up: Some(true),
            rate_bps: WireRateBps::new(50_000_000).ok(),
            ..PipeChange::default()
        };
        make(&mut world, usable, LinkDirection::Both);
        world.run_until(now_ns + ns(600.0)).expect("no packet unaccounted for");
        for flow in flows {
            prop_assert_eq!(flow.receiving(&world).figures().in_order, 5_000);
        }
    }
}
