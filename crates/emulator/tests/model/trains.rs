//! Super-packets are treated segment by segment, whatever they are cut into.

use farline_emulator::model::{PipeCounters, Train};
use serde_json::{Value, json};

use crate::bed::{Bed, IP_BYTES, MS, US};

/// Sends 500 super-packets of 44 segments, as such or as single packets, and counts.
fn counted(forward: Value, whole: bool) -> (PipeCounters, u64) {
    let mut bed = Bed::pair(forward);
    for payload in 0..500 {
        let at_ns = payload * 400 * US;
        let mut rest = Train::uniform(payload, 44, IP_BYTES);
        while !whole && rest.segments > 1 {
            let one = rest.take_front(1);
            bed.send(at_ns, one);
        }
        bed.send(at_ns, rest);
    }
    bed.drain();
    (bed.counters(), bed.network.take_backlog_max(0))
}

#[test]
fn forty_four_segments_meet_what_forty_four_packets_meet() {
    // 44 packets of 1500 bytes every 400 us are 1.32 Gb/s: the wire of 1 Gb/s drops a quarter.
    for queue in [
        json!({"capacity_bytes": 100_000}),
        json!({"capacity_packets": 50}),
        json!({"capacity_bytes": 1_000_000, "discipline": "codel", "codel_interval_s": 0.01}),
    ] {
        let spec = json!({
            "rate_bps": 1_000_000_000,
            "delay_s": 0.001,
            "queue": queue,
            "loss": {"random": 0.01},
            "corrupt": 0.01,
            "duplicate": 0.01,
            "reorder": 0.01,
        });
        let whole = counted(spec.clone(), true);
        assert_eq!(whole, counted(spec, false));
        assert!(whole.0.tail_drop_packets + whole.0.codel_drop_packets > 50);
    }
}

#[test]
fn a_train_that_nothing_happens_to_is_not_split() {
    let spec = json!({"rate_bps": 10_000_000_000_u64, "loss": {"random": 1e-9}, "queue": {"ecn_threshold_bytes": 1}});
    let mut bed = Bed::pair(spec);
    for payload in 0..1_000 {
        bed.send(payload * MS, Train::uniform(payload, 44, IP_BYTES));
    }
    bed.drain();
    assert_eq!(bed.arrivals.len(), 1_000);
}

#[test]
fn a_part_of_a_piece_arrives_when_it_is_out_but_not_in_the_past() {
    let spec =
        |delay_s: f64| json!({"rate_bps": 10_000_000_000_u64, "delay_s": delay_s, "loss": {"packets": [21]}});
    for (delay_s, times) in [
        (0.0, [44 * 1_200, 44 * 1_200]),
        (0.001, [20 * 1_200 + MS, 44 * 1_200 + MS]),
    ] {
        let mut bed = Bed::pair(spec(delay_s));
        bed.send(0, Train::uniform(0, 44, IP_BYTES));
        bed.drain();
        assert_eq!(bed.times(), times);
    }
}

#[test]
fn watched_trains_are_those_that_left_the_wire() {
    let mut bed =
        Bed::pair(json!({"rate_bps": 10_000_000_000_u64, "delay_s": 0.05, "loss": {"packets": [2]}}));
    bed.send(0, Train::uniform(0, 4, IP_BYTES));
    bed.drain();
    assert_eq!(bed.network.take_watched(), [], "nobody watched");
    bed.network.watch(0, true);
    bed.send(100 * MS, Train::uniform(1, 2, IP_BYTES));
    bed.drain();
    let watched = bed.network.take_watched();
    assert_eq!(watched.len(), 1);
    assert_eq!(
        (watched[0].pipe, watched[0].at_ns, watched[0].train.segments),
        (0, 100 * MS + 2_400, 2)
    );
    bed.network.watch(0, false);
    bed.send(200 * MS, Train::uniform(2, 2, IP_BYTES));
    bed.drain();
    assert_eq!(bed.network.take_watched(), []);
}
