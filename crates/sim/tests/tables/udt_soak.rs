//! UDT over paths that do everything wrong that a path can do, for hours of virtual time.
//!
//! Sequence numbers begin half a million before their end, so that they wrap on the way. Numbers of ACKs and messages
//! begin at 1 and are too many for a run to wrap.

use farline_proto::udt::wire::SocketKind;
use farline_proto::udt::{Closed, State};
use farline_sim::scenario::Path;
use farline_sim::udt::{End, Flow, FlowConfig, Replay, Work};
use farline_sim::{World, ns};
use farline_spec::unit::{DelayS, Probability, QueueBytes};
use farline_spec::{
    BurstLoss, LinkChange, LinkDirection, PipeChange, PipeSpec, ScheduledChange, Topology, UdtControl,
};

const HOUR_S: f64 = 3600.0;
/// Time after which the cuts come again.
const TURN_S: f64 = 600.0;
const RATE_BPS: u64 = 3_000_000;
const RTT_S: f64 = 0.06;
/// Packets of the receive buffer.
const WINDOW_PACKETS: u64 = 4_096;

fn chance(value: f64) -> Option<Probability> {
    Some(Probability::new(value).expect("a probability"))
}

fn at(at_s: f64, up: bool) -> ScheduledChange {
    ScheduledChange {
        at_s: DelayS::new(at_s).expect("in range"),
        change: PipeChange {
            up: Some(up),
            ..PipeChange::default()
        },
    }
}

/// Everything at once.
fn spoil(pipe: &mut PipeSpec) {
    pipe.queue.capacity_bytes = Some(QueueBytes::new(60_000).expect("in range"));
    pipe.loss.random = chance(0.002);
    pipe.loss.burst = Some(BurstLoss {
        enter: Probability::new(0.001).expect("a probability"),
        leave: Probability::new(0.1).expect("a probability"),
        loss_good: Probability::min(),
        loss_bad: Probability::max(),
    });
    pipe.corrupt = chance(0.001);
    pipe.duplicate = chance(0.005);
    pipe.reorder = chance(0.005);
    pipe.reorder_delay_s = Some(DelayS::new(0.02).expect("in range"));
    pipe.jitter_s = Some(DelayS::new(0.002).expect("in range"));
}

fn hostile(seed: u64) -> Topology {
    let mut path = Path::new(RATE_BPS, ns(RTT_S));
    path.seed = seed;
    let mut topology = path.topology();
    let link = &mut topology.links[0];
    spoil(&mut link.forward);
    if let Some(reverse) = &mut link.reverse {
        spoil(reverse);
    }
    topology
}

fn soak(control: UdtControl, kind: SocketKind, work: Work) -> FlowConfig {
    FlowConfig {
        kind,
        work,
        flow_window_packets: WINDOW_PACKETS,
        isn: [0x7fff_ffff - 500_000, 0x7fff_ffff - 50],
        replay: Some(Replay {
            every: 977,
            after_ns: ns(40.0),
        }),
        // A fixed rate somewhat below the path's, in real bits.
        max_payload_bps: (control == UdtControl::Fixed).then_some(400 * 56 * 8),
        ..FlowConfig::endless(control)
    }
}

/// Cuts of 2, 8 and 20 s, of one direction, of the other, and of both.
fn cut(world: &mut World<End>, from_s: f64) {
    let directions = [
        LinkDirection::Forward,
        LinkDirection::Reverse,
        LinkDirection::Both,
    ];
    for (index, direction) in directions.into_iter().enumerate() {
        let begin_s = from_s + 60.0 + 150.0 * index as f64;
        for (at_s, up) in [(begin_s, false), (begin_s + [2.0, 8.0, 20.0][index], true)] {
            world.run_until(ns(at_s)).expect("no packet unaccounted for");
            let change = LinkChange {
                link: "path".to_string(),
                direction,
                change: PipeChange {
                    up: Some(up),
                    ..PipeChange::default()
                },
            };
            world.change(&change).expect("the link is there");
        }
    }
}

/// Runs for `hours`, finishes, and gives the world when both ends have come to their end.
fn run(config: &FlowConfig, hours: f64) -> (World<End>, Flow) {
    let mut world = World::new(&hostile(config.seed), 0).expect("a topology that holds together");
    let flow = Flow::open(&mut world, 0, 1, config);
    for turn in 0..(hours * HOUR_S / TURN_S) as u32 {
        cut(&mut world, TURN_S * f64::from(turn));
    }
    world
        .run_until(ns(hours * HOUR_S))
        .expect("no packet unaccounted for");
    world.command(flow.sender, |_, end| {
        end.command(|connection| connection.finish())
    });
    world
        .run_until(ns(hours * HOUR_S + 120.0))
        .expect("no packet unaccounted for");
    (world, flow)
}

/// Both ends know how it ended, and nothing is left in a buffer.
fn assert_over(world: &World<End>, flow: Flow) {
    let ends = [flow.sender, flow.receiver].map(|id| world.endpoint(id));
    let states = ends.map(|end| end.connection().map(|connection| connection.state()));
    assert_eq!(states[0], Some(State::Closed(Closed::ByUs)));
    assert_eq!(states[1], Some(State::Closed(Closed::ByPeer)));
    let [sender, receiver] = ends.map(|end| end.statistics(world.now_ns()));
    assert_eq!(sender.flight_packets, 0);
    let payload = FlowConfig::endless(UdtControl::Bbr).scale.payload_bytes();
    assert_eq!(
        receiver.receive_buffer_free_bytes,
        WINDOW_PACKETS * u64::from(payload)
    );
    assert!(
        receiver.duplicate_packets > 0 && receiver.receive_lost_packets > 0,
        "the path was hostile"
    );
}

#[test]
fn two_hours_of_a_hostile_path_leave_every_byte_of_a_stream_in_its_place() {
    for control in [UdtControl::Bbr, UdtControl::Fixed] {
        let (world, flow) = run(&soak(control, SocketKind::Stream, Work::endless()), 2.0);
        let (written, read) = (
            world.endpoint(flow.sender).figures(),
            world.endpoint(flow.receiver).figures(),
        );
        assert_eq!(
            (read.wrong, read.read),
            (0, written.written),
            "{}",
            control.word()
        );
        // The wrap was on the way.
        assert!(
            read.read > 600_000 * 56,
            "{}: {} bytes",
            control.word(),
            read.read
        );
        assert_over(&world, flow);
    }
}

#[test]
fn an_hour_of_a_hostile_path_leaves_every_message_whole_and_once() {
    for is_ordered in [true, false] {
        let work = Work {
            is_ordered,
            ..Work::endless()
        };
        let (world, flow) = run(&soak(UdtControl::Bbr, SocketKind::Message, work), 1.0);
        let (written, read) = (
            world.endpoint(flow.sender).figures(),
            world.endpoint(flow.receiver).figures(),
        );
        assert_eq!(
            (read.wrong, read.repeated, read.missing),
            (0, 0, 0),
            "ordered {is_ordered}"
        );
        assert_eq!(read.read, written.written, "ordered {is_ordered}");
        assert!(read.read > 10_000, "ordered {is_ordered}: {} messages", read.read);
        assert_eq!(
            read.early > 0,
            !is_ordered,
            "{} messages before an earlier one",
            read.early
        );
        assert_over(&world, flow);
    }
}

#[test]
fn messages_with_a_time_to_live_arrive_whole_or_not_at_all() {
    let work = Work {
        // More than the second and a half that a message waits for its first sending.
        ttl_ns: Some(ns(3.0)),
        ..Work::endless()
    };
    let (world, flow) = run(&soak(UdtControl::Bbr, SocketKind::Message, work), 0.5);
    let (written, read) = (
        world.endpoint(flow.sender).figures(),
        world.endpoint(flow.receiver).figures(),
    );
    assert_eq!((read.wrong, read.repeated), (0, 0));
    assert!(read.missing > 0, "some were given up");
    assert!(
        read.read > written.written / 2,
        "{} of {} came",
        read.read,
        written.written
    );
    assert_over(&world, flow);
}

#[test]
fn a_path_that_never_comes_back_ends_the_connection_at_both_ends() {
    let mut path = Path::new(RATE_BPS, ns(RTT_S));
    path.forward.schedule = vec![at(10.0, false)];
    let mut topology = path.topology();
    if let Some(reverse) = &mut topology.links[0].reverse {
        reverse.schedule = vec![at(10.0, false)];
    }
    let mut world = World::new(&topology, 0).expect("a topology that holds together");
    let config = soak(UdtControl::Bbr, SocketKind::Stream, Work::endless());
    let flow = Flow::open(&mut world, 0, 1, &config);
    world.run_until(ns(120.0)).expect("no packet unaccounted for");
    for id in [flow.sender, flow.receiver] {
        let state = world
            .endpoint(id)
            .connection()
            .map(|connection| connection.state());
        assert_eq!(state, Some(State::Closed(Closed::PeerDead)));
    }
}

#[test]
fn damage_that_checksums_hide_reaches_the_machine_and_breaks_nothing_but_bytes() {
    let mut path = Path::new(RATE_BPS, ns(RTT_S));
    path.forward.corrupt = chance(0.01);
    path.forward.corrupt_hidden = true;
    let mut world = World::new(&path.topology(), 0).expect("a topology that holds together");
    let config = soak(UdtControl::Bbr, SocketKind::Stream, Work::endless());
    let flow = Flow::open(&mut world, 0, 1, &config);
    world.run_until(ns(600.0)).expect("no packet unaccounted for");
    let receiver = world.endpoint(flow.receiver).statistics(world.now_ns());
    // 244 packets a second are what the path carries.
    assert!(
        receiver.received_packets > 100_000,
        "{}",
        receiver.received_packets
    );
}

#[test]
fn a_connection_opens_over_a_hostile_path_by_the_handshake() {
    for seed in 0..20 {
        let mut topology = hostile(seed);
        for link in &mut topology.links {
            link.forward.loss.random = chance(0.2);
        }
        let mut world = World::new(&topology, 0).expect("a topology that holds together");
        let config = FlowConfig {
            seed,
            ..soak(UdtControl::Bbr, SocketKind::Stream, Work::of(200_000))
        };
        let flow = Flow::call(&mut world, 0, 1, &config);
        world.run_until(ns(150.0)).expect("no packet unaccounted for");
        let figures = world.endpoint(flow.receiver).figures();
        let state = world
            .endpoint(flow.receiver)
            .connection()
            .map(|connection| connection.state());
        assert_eq!(
            (figures.wrong, figures.read),
            (0, 200_000),
            "seed {seed}: {state:?}"
        );
        assert_eq!(state, Some(State::Closed(Closed::ByPeer)), "seed {seed}");
    }
}
