//! What queues hold, drop and mark.

use farline_emulator::model::Train;
use serde_json::json;

use crate::bed::{Bed, IP_BYTES, MS, SECOND, US, topology};

#[test]
fn what_does_not_fit_is_dropped_segment_by_segment() {
    let mut bed = Bed::pair(json!({"rate_bps": 1_000_000_000, "queue": {"capacity_bytes": 15_000}}));
    bed.send(0, Train::uniform(1, 44, IP_BYTES));
    assert_eq!(bed.counters().tail_drop_packets, 34);
    // After 18 us the first segment is out and half of the second: one more fits, not two.
    bed.send(18 * US, Train::uniform(2, 2, IP_BYTES));
    bed.drain();
    assert_eq!(bed.counters().tail_drop_packets, 35);
    assert_eq!(bed.counters().out_packets, 11);
    assert_eq!(bed.network.take_backlog_max(0), 15_000);
    assert_eq!(bed.network.take_backlog_max(0), 0, "it starts again from now");
}

#[test]
fn a_train_that_comes_over_another_wire_finds_room_as_its_segments_come() {
    let mut bed = Bed::new(&topology(json!({
        "name": "chain",
        "hosts": [{"name": "a"}, {"name": "b"}],
        "routers": ["r"],
        "links": [
            {"name": "first", "a": "a", "b": "r", "forward": {"rate_bps": 10_000_000_000_u64}},
            {"name": "second", "a": "r", "b": "b",
             "forward": {"rate_bps": 1_000_000_000, "queue": {"capacity_bytes": 15_000}}},
        ],
    })));
    bed.send(0, Train::uniform(1, 44, IP_BYTES));
    bed.drain();
    // Room for ten, and while the last 43 come, 1.2 us each, four more go out, 12 us each.
    assert_eq!(bed.network.counters(2).tail_drop_packets, 30);
    assert_eq!(bed.times().last(), Some(&(1_200 + 14 * 12 * US)));
    assert!(bed.network.take_backlog_max(2) <= 15_000);
}

#[test]
fn a_short_last_segment_fits_where_a_full_one_does_not() {
    let mut bed = Bed::pair(json!({"rate_bps": 1_000_000_000, "queue": {"capacity_bytes": 4_000}}));
    let train = Train {
        last_bytes: 500,
        ..Train::uniform(1, 5, IP_BYTES)
    };
    bed.send(0, train);
    bed.drain();
    assert_eq!(bed.segments(), [0, 1, 4]);
    assert_eq!(
        bed.arrivals.last().map(|arrival| arrival.train.last_bytes),
        Some(500)
    );
}

#[test]
fn a_queue_can_be_limited_in_packets() {
    let mut bed = Bed::pair(json!({"rate_bps": 1_000_000_000, "queue": {"capacity_packets": 10}}));
    bed.send(0, Train::uniform(1, 8, IP_BYTES));
    bed.send_singles(13 * US, 2, 5);
    bed.drain();
    // One of the eight is out after 12 us, the second is being sent and counts.
    assert_eq!(bed.counters().tail_drop_packets, 2);
}

#[test]
fn a_queue_in_bandwidth_delay_products_holds_them() {
    let spec = json!({"rate_bps": 1_000_000_000, "delay_s": 0.012, "queue": {"capacity_bdp": 0.5}});
    let mut bed = Bed::pair(spec);
    bed.send_singles(0, 0, 1_000);
    // Half of 1 Gb/s times 12 ms there and nothing back: 750,000 bytes are 500 packets.
    assert_eq!(bed.counters().tail_drop_packets, 500);
}

#[test]
fn a_queue_in_bandwidth_delay_products_follows_rate_and_delay() {
    let spec = json!({"rate_bps": 1_000_000_000, "delay_s": 0.012, "queue": {"capacity_bdp": 0.5}});
    let mut bed = Bed::pair(spec);
    bed.change(0, json!({"rate_bps": 500_000_000}));
    // Both directions: 12 ms each, so the round trip doubles while the rate halves.
    bed.change(0, json!({"delay_s": 0.012}));
    bed.send_singles(0, 0, 1_000);
    assert_eq!(bed.counters().tail_drop_packets, 500);
    let mut bed = Bed::pair(json!({"rate_bps": 1_000_000_000, "queue": {"capacity_bytes": 750_000}}));
    bed.change(0, json!({"rate_bps": 2_000_000_000, "delay_s": 0.5}));
    bed.send_singles(0, 0, 1_000);
    assert_eq!(bed.counters().tail_drop_packets, 500, "stated bytes stay");
}

#[test]
fn a_new_capacity_leaves_what_waits() {
    let mut bed = Bed::pair(json!({"rate_bps": 1_000_000_000, "queue": {"capacity_bytes": 150_000}}));
    bed.send_singles(0, 0, 100);
    bed.change(0, json!({"capacity_bytes": 30_000}));
    bed.send_singles(0, 100, 1);
    bed.drain();
    assert_eq!((bed.counters().tail_drop_packets, bed.arrivals.len()), (1, 100));
}

#[test]
fn a_queue_without_rate_never_fills() {
    let mut bed = Bed::pair(json!({"queue": {"capacity_bytes": 3_000}}));
    bed.send(0, Train::uniform(1, 44, IP_BYTES));
    bed.drain();
    assert_eq!((bed.counters().tail_drop_packets, bed.segments().len()), (0, 44));
}

#[test]
fn packets_behind_the_threshold_are_marked_if_they_allow_it() {
    let spec = json!({"rate_bps": 1_000_000_000, "queue": {"ecn_threshold_bytes": 6_000}});
    let mut bed = Bed::pair(spec);
    let capable = Train {
        ecn_capable: true,
        ..Train::uniform(1, 10, IP_BYTES)
    };
    bed.send(0, capable.clone());
    bed.send(0, Train::uniform(2, 10, IP_BYTES));
    bed.send(SECOND, capable.clone());
    bed.send(
        2 * SECOND,
        Train {
            marked: true,
            ..capable
        },
    );
    bed.drain();
    assert_eq!(
        bed.counters().ecn_marked_packets,
        12,
        "six of each train that is capable and unmarked"
    );
    let marked = |payload: u64, marked: bool| {
        let trains = bed.arrivals.iter().map(|arrival| &arrival.train);
        let these = trains.filter(move |train| train.payload == payload && train.marked == marked);
        these.map(|train| u64::from(train.segments)).sum::<u64>()
    };
    assert_eq!((marked(1, true), marked(1, false)), (6 + 6 + 10, 4 + 4));
    assert_eq!((marked(2, true), marked(2, false)), (0, 10));
}

/// Sends twice what a wire of 12 Mb/s (1 ms per packet) carries; gives the times at which CoDel acted.
fn overdrive(bed: &mut Bed, until_ns: u64, ecn_capable: bool) -> Vec<u64> {
    let acted = |bed: &Bed| bed.counters().codel_drop_packets + bed.counters().ecn_marked_packets;
    let mut times = Vec::new();
    for at_ns in (0..until_ns).step_by(500 * US as usize) {
        let before = acted(bed);
        bed.run(at_ns);
        times.extend((before..acted(bed)).map(|_| at_ns));
        let packet = Train {
            ecn_capable,
            ..Train::single(0, IP_BYTES)
        };
        bed.send(at_ns, packet);
    }
    times
}

fn codel(ecn: bool) -> Bed {
    let queue = json!({"discipline": "codel", "capacity_packets": 100_000, "ecn": ecn});
    Bed::pair(json!({"rate_bps": 12_000_000, "queue": queue}))
}

#[test]
fn codel_drops_an_interval_after_its_target_is_passed_and_then_ever_faster() {
    let mut bed = codel(false);
    let drops = overdrive(&mut bed, 2 * SECOND, false);
    // At twice the rate the packet dequeued at t has waited t / 2: 5 ms are passed at 10 ms.
    assert!(
        drops[0].abs_diff(110 * MS) <= 3 * MS,
        "first drop at {}",
        drops[0]
    );
    for (place, pair) in drops.windows(2).enumerate().take(100) {
        let spacing = 100.0 * MS as f64 / ((place + 1) as f64).sqrt();
        let found = (pair[1] - pair[0]) as f64;
        // Departures are a millisecond apart, and the caller looks every half.
        assert!((found - spacing).abs() <= 1.6e6, "{place}: {found} for {spacing}");
    }
    assert_eq!(bed.counters().tail_drop_packets, 0);
}

#[test]
fn codel_marks_what_allows_it_and_drops_nothing_of_it() {
    let (mut dropping, mut marking) = (codel(false), codel(true));
    let drops = overdrive(&mut dropping, SECOND, true);
    let marks = overdrive(&mut marking, SECOND, true);
    assert_eq!(marking.counters().codel_drop_packets, 0);
    assert_eq!(dropping.counters().ecn_marked_packets, 0, "not asked to mark");
    assert!(drops.len().abs_diff(marks.len()) <= 1 && drops.len() > 10);
    let mut unable = codel(true);
    overdrive(&mut unable, SECOND, false);
    assert_eq!(unable.counters().ecn_marked_packets, 0);
    assert_eq!(unable.counters().codel_drop_packets, drops.len() as u64);
}

#[test]
fn codel_leaves_a_short_queue_alone() {
    let mut bed = codel(false);
    for place in 0..10_000 {
        bed.send(place * MS, Train::single(place, IP_BYTES));
    }
    bed.drain();
    assert_eq!(
        (bed.counters().codel_drop_packets, bed.arrivals.len()),
        (0, 10_000)
    );
}

#[test]
fn codel_treats_the_segments_of_trains_as_it_treats_packets() {
    let run = |segments: u64, ecn_capable: bool| {
        let mut bed = codel(true);
        for at_ns in (0..2 * SECOND).step_by(22 * MS as usize) {
            for part in 0..44 / segments {
                let train = Train::uniform(part, segments as u16, IP_BYTES);
                bed.send(at_ns, Train { ecn_capable, ..train });
            }
        }
        bed.drain();
        bed.counters()
    };
    for ecn_capable in [false, true] {
        let singles = run(1, ecn_capable);
        assert!(singles.codel_drop_packets + singles.ecn_marked_packets > 20);
        assert_eq!(run(44, ecn_capable), singles);
        assert_eq!(run(11, ecn_capable), singles);
    }
}

#[test]
fn codel_marks_within_the_pieces_of_a_fast_wire() {
    let queue = json!({"discipline": "codel", "ecn": true, "capacity_bytes": 1_000_000_000, "codel_interval_s": 0.01});
    let run = |segments: u64| {
        let mut bed = Bed::pair(json!({"rate_bps": 1_000_000_000, "queue": queue}));
        for at_ns in (0..SECOND / 4).step_by(400 * US as usize) {
            for part in 0..44 / segments {
                let train = Train::uniform(part, segments as u16, IP_BYTES);
                let capable = Train {
                    ecn_capable: true,
                    ..train
                };
                bed.send(at_ns, capable);
            }
        }
        bed.drain();
        let marked = bed.arrivals.iter().filter(|arrival| arrival.train.marked);
        let marked: u64 = marked.map(|arrival| u64::from(arrival.train.segments)).sum();
        assert_eq!(marked, bed.counters().ecn_marked_packets);
        (bed.counters(), bed.times().last().copied())
    };
    let singles = run(1);
    assert!(singles.0.ecn_marked_packets > 100);
    assert_eq!(run(44), singles);
}

#[test]
fn options_without_effect_are_refused() {
    use farline_emulator::layout::Layout;
    use farline_emulator::model::Network;
    for (spec, place) in [
        (json!({"queue": {"ecn": true}}), "links.link.forward.queue.ecn"),
        (
            json!({"queue": {"codel_target_s": 0.01}}),
            "links.link.forward.queue.codel_target_s",
        ),
        (
            json!({"schedule_period_s": 1.0}),
            "links.link.forward.schedule_period_s",
        ),
        (
            json!({"queue": {"discipline": "codel"}}),
            "links.link.forward.queue.discipline: has no effect without a rate",
        ),
        (
            json!({"jitter_shape": "normal"}),
            "links.link.forward.jitter_shape",
        ),
        (
            json!({"delay_s": 0.001, "jitter_s": 0.002}),
            "links.link.forward.jitter_s: 0.002 s is more than the delay allows; allowed: up to 0.001 s",
        ),
        (
            json!({"rate_bps": 1000, "queue": {"capacity_bytes": 1537}}),
            "links.link.forward.queue.capacity_bytes: 1537 is less than one packet on the wire; allowed: 1538",
        ),
    ] {
        let topology = crate::bed::pair(spec);
        let layout = Layout::new(&topology).expect("a layout");
        let refusal = Network::<()>::new(&topology, &layout).expect_err("no effect");
        assert!(refusal.to_string().contains(place), "{refusal}");
    }
}
