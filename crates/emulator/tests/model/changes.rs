//! Links that change while in use.

use farline_emulator::layout::Layout;
use farline_emulator::model::{Network, Train};
use farline_spec::{LinkChange, Topology};
use serde_json::json;

use crate::bed::{Bed, IP_BYTES, MS, SECOND, US, pair};

#[test]
fn a_new_rate_holds_for_what_is_left_of_the_packet_being_sent() {
    let mut bed = Bed::pair(json!({"rate_bps": 1_000_000_000}));
    bed.send_singles(0, 0, 2);
    bed.change(6 * US, json!({"rate_bps": 500_000_000}));
    bed.drain();
    // Half of the first in 6 us, the other half in 12, the second in 24.
    assert_eq!(bed.times(), [18 * US, 42 * US]);
}

#[test]
fn without_rate_everything_that_waits_goes_at_once() {
    let mut bed = Bed::pair(json!({"rate_bps": 1_000_000}));
    bed.send_singles(0, 0, 10);
    bed.change(MS, json!({"rate_bps": 0}));
    bed.drain();
    assert_eq!(bed.times(), [MS; 10]);
    bed.change(SECOND, json!({"rate_bps": 1_000_000_000}));
    bed.send_singles(SECOND, 10, 1);
    bed.drain();
    assert_eq!(bed.times().last(), Some(&(SECOND + 12 * US)));
}

#[test]
fn a_cut_loses_what_is_under_way_and_keeps_what_waits() {
    let mut bed = Bed::pair(json!({"rate_bps": 12_000_000, "delay_s": 0.0035}));
    bed.send_singles(0, 0, 10);
    // One has arrived (4.5 ms), four are on the way, the sixth is being sent.
    bed.change(5 * MS + 500 * US, json!({"up": false}));
    assert!(!bed.network.is_up(0));
    bed.send_singles(6 * MS, 10, 3);
    bed.run(SECOND);
    assert_eq!((bed.payloads(), bed.counters().cut_packets), (vec![0, 1], 4 + 3));
    assert_eq!(bed.network.state(0, SECOND).in_flight_packets, 4);
    assert_eq!(bed.network.state(0, SECOND).backlog_bytes, 4 * 1500);
    bed.change(2 * SECOND, json!({"up": true}));
    bed.drain();
    assert_eq!(bed.payloads(), [0, 1, 6, 7, 8, 9]);
    assert_eq!(bed.times()[2], 2 * SECOND + MS + 3_500 * US);
}

#[test]
fn a_schedule_changes_the_link_at_its_times_whoever_looks() {
    let spec = json!({
        "delay_s": 0.001,
        "schedule": [
            {"at_s": 0.010, "change": {"delay_s": 0.002}},
            {"at_s": 0.020, "change": {"delay_s": 0.003, "up": false}},
            {"at_s": 0.030, "change": {"up": true}},
        ],
    });
    let mut bed = Bed::pair(spec);
    assert_eq!(bed.network.next_event_ns(), Some(10 * MS));
    for (at_ms, number) in [5, 10, 15, 25, 30].into_iter().zip(0..) {
        bed.send(at_ms * MS, Train::single(number, IP_BYTES));
    }
    bed.run(SECOND);
    assert_eq!(bed.payloads(), [0, 1, 2, 4]);
    assert_eq!(bed.times(), [6, 12, 17, 33].map(|ms| ms * MS));
    assert_eq!(bed.network.next_event_ns(), None, "it runs once");
}

#[test]
fn a_schedule_with_a_period_starts_again() {
    let spec = json!({
        "rate_bps": 12_000_000,
        "queue": {"capacity_bytes": 10_000_000},
        "schedule": [
            {"at_s": 0.0, "change": {"rate_bps": 12_000_000}},
            {"at_s": 0.1, "change": {"rate_bps": 120_000_000}},
        ],
        "schedule_period_s": 0.2,
    });
    let mut bed = Bed::pair(spec);
    bed.send_singles(0, 0, 6_000);
    bed.run(SECOND);
    // Ten tenths of a second: 100 packets in the slow ones, 1,000 in the fast ones.
    assert_eq!(bed.arrivals.len(), 5 * 1_100);
    assert_eq!(bed.network.state(0, SECOND).rate_bps, 12_000_000);
}

#[test]
fn a_scheduled_delay_moves_the_capacity_of_the_other_direction() {
    let mut topology =
        pair(json!({"delay_s": 0.012, "schedule": [{"at_s": 1.0, "change": {"delay_s": 0.024}}]}));
    topology.links[0].reverse = Some(
        serde_json::from_value(json!({"rate_bps": 1_000_000_000, "queue": {"capacity_bdp": 0.5}}))
            .expect("a pipe"),
    );
    for (at_ns, dropped) in [(0, 500), (SECOND, 0)] {
        let mut bed = Bed::new(&topology);
        bed.run(at_ns);
        for _ in 0..1_000 {
            assert!(bed.network.send(at_ns, 1, 0, Train::single(0, IP_BYTES)));
        }
        assert_eq!(bed.network.counters(1).tail_drop_packets, dropped);
    }
}

#[test]
fn the_topology_tells_how_links_stand() {
    let started = pair(json!({"rate_bps": 1_000_000_000, "delay_s": 0.01, "queue": {"capacity_bdp": 2.0}}));
    let mut bed = Bed::new(&started);
    assert_eq!(bed.network.topology(), started);
    let change =
        json!({"rate_bps": 0, "delay_s": 0.5, "loss": 0.1, "capacity_bytes": 77_000, "duplicate": 0.2});
    let change: LinkChange =
        serde_json::from_value(json!({"link": "link", "direction": "forward", "change": change}))
            .expect("a change");
    bed.network.change(0, &change).expect("a link");
    let mut expected: Topology = started;
    expected.links[0].forward = serde_json::from_value(json!({
        "delay_s": 0.5, "queue": {"capacity_bytes": 77_000}, "loss": {"random": 0.1}, "duplicate": 0.2,
    }))
    .expect("a pipe");
    assert_eq!(bed.network.topology(), expected);
}

#[test]
fn a_change_of_one_direction_gives_the_other_a_description_of_its_own() {
    let mut symmetric = pair(json!({"delay_s": 0.01}));
    symmetric.links[0].reverse = None;
    let layout = Layout::new(&symmetric).expect("a layout");
    let mut network = Network::<()>::new(&symmetric, &layout).expect("a network");
    assert_eq!(network.topology(), symmetric);
    let change: LinkChange =
        serde_json::from_value(json!({"link": "link", "direction": "reverse", "change": {"delay_s": 0.02}}))
            .expect("a change");
    network.change(0, &change).expect("a link");
    let now = network.topology();
    assert_eq!(now.links[0].forward, symmetric.links[0].forward);
    assert_eq!(now.links[0].backward().delay_s.get(), 0.02);
}

#[test]
fn a_queue_too_small_for_a_packet_is_refused_and_nothing_changes() {
    let mut bed = Bed::pair(json!({"rate_bps": 1_000_000, "queue": {"capacity_bytes": 3_000}}));
    let before = bed.network.topology();
    let change = json!({"link": "link", "change": {"rate_bps": 5, "capacity_bytes": 100}});
    let change: LinkChange = serde_json::from_value(change).expect("a change");
    assert!(bed.network.change(0, &change).is_err());
    assert_eq!(bed.network.topology(), before);
}

#[test]
fn a_queue_stated_in_products_later_follows_the_link() {
    let mut bed = Bed::pair(json!({
        "rate_bps": 1_000_000_000, "delay_s": 0.010, "queue": {"capacity_bytes": 3_000}}));
    bed.change(0, json!({"capacity_bdp": 0.5}));
    bed.send_singles(0, 0, 1_000);
    // The other direction's delay counts as well.
    let round_trip_bytes = bed.network.topology().links[0].backward().delay_s.get() * 1e9 / 8.0 + 1_250_000.0;
    let most = bed.network.take_backlog_max(0);
    assert!(
        most <= (round_trip_bytes / 2.0) as u64 && most > 600_000,
        "{most}"
    );
}

#[test]
fn an_unknown_link_is_refused_with_those_known() {
    let mut bed = Bed::pair(json!({}));
    let change: LinkChange =
        serde_json::from_value(json!({"link": "wan", "change": {"up": false}})).expect("a change");
    let refusal = bed.network.change(0, &change).expect_err("no such link");
    assert!(
        refusal
            .to_string()
            .contains("\"wan\" is not a link; allowed: link"),
        "{refusal}"
    );
}
