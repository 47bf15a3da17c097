//! When packets arrive.

use farline_emulator::model::Train;
use serde_json::json;

use crate::bed::{Bed, IP_BYTES, MS, SECOND, US, topology};

#[test]
fn a_packet_takes_its_time_on_the_wire_and_the_delay() {
    let mut bed = Bed::pair(json!({"rate_bps": 1_000_000_000, "delay_s": 0.005}));
    bed.send(7, Train::single(1, IP_BYTES));
    assert_eq!(bed.network.next_event_ns(), Some(7 + 12 * US));
    bed.drain();
    assert_eq!(bed.times(), [7 + 12 * US + 5 * MS]);
    assert_eq!(bed.arrivals[0].port, 1);
    assert_eq!(bed.counters().out_bytes, 1500, "framing is counted");
}

#[test]
fn packets_that_come_together_leave_one_after_the_other() {
    let mut bed = Bed::pair(json!({"rate_bps": 1_000_000_000, "framing_bytes": 0}));
    for bytes in [1500, 100, 1500] {
        bed.send(0, Train::single(0, bytes));
    }
    bed.drain();
    assert_eq!(bed.times(), [12_000, 12_800, 24_800]);
}

#[test]
fn without_rate_and_delay_a_packet_is_there_at_once() {
    let mut bed = Bed::pair(json!({}));
    bed.send(3 * MS, Train::uniform(1, 44, IP_BYTES));
    assert_eq!(bed.network.next_event_ns(), Some(3 * MS));
    bed.run(3 * MS);
    assert_eq!((bed.times(), bed.segments().len()), (vec![3 * MS], 44));
    assert_eq!(bed.network.next_event_ns(), None);
}

#[test]
fn a_train_on_a_fast_wire_arrives_as_one_when_its_last_segment_does() {
    let mut bed = Bed::pair(json!({"rate_bps": 10_000_000_000_u64, "delay_s": 0.001}));
    bed.send(0, Train::uniform(1, 44, IP_BYTES));
    bed.drain();
    assert_eq!(bed.times(), [44 * 1_200 + MS]);
    assert_eq!(bed.arrivals[0].train.segments, 44);
}

#[test]
fn a_train_on_a_slow_wire_arrives_in_pieces_of_at_most_a_hundred_microseconds() {
    let mut bed = Bed::pair(json!({"rate_bps": 100_000_000, "delay_s": 0.001}));
    bed.send(0, Train::uniform(1, 44, IP_BYTES));
    bed.drain();
    let each: Vec<u64> = (1..=44).map(|count| count * 120 * US + MS).collect();
    assert_eq!(bed.times(), each);
    let mut bed = Bed::pair(json!({"rate_bps": 1_000_000_000}));
    bed.send(0, Train::uniform(1, 44, IP_BYTES));
    bed.drain();
    assert_eq!(bed.times(), [96, 192, 288, 384, 480, 528].map(|us| us * US));
}

#[test]
fn a_full_wire_carries_exactly_its_rate() {
    for rate_bps in [622_000_000_u64, 9_000_000_000] {
        let mut bed = Bed::pair(json!({"rate_bps": rate_bps, "queue": {"capacity_bytes": 2_000_000}}));
        let mut last_ns = 0;
        for _ in 0..1_000 {
            for _ in 0..25 {
                bed.send(last_ns, Train::uniform(1, 40, IP_BYTES));
            }
            bed.drain();
            last_ns = bed.arrivals.last().expect("arrivals").at_ns;
            bed.arrivals.clear();
        }
        // Every thousand packets the queue runs dry for an instant, which costs less than a nanosecond.
        let exact = 1_000_000 * 1_500 * 8 * u128::from(SECOND) / u128::from(rate_bps);
        assert!(
            u128::from(last_ns).abs_diff(exact) <= 1_000,
            "{last_ns} for {exact}"
        );
        assert_eq!(bed.counters().out_packets, 1_000_000);
    }
}

#[test]
fn a_wire_that_never_idles_has_no_error_at_all() {
    let mut bed =
        Bed::pair(json!({"rate_bps": 622_000_000, "queue": {"capacity_bytes": 60_000_000_000_u64}}));
    for _ in 0..25_000 {
        bed.send(0, Train::uniform(1, 40, IP_BYTES));
    }
    bed.run(u64::MAX);
    let exact = 1_000_000 * 1_500 * 8 * SECOND / 622_000_000;
    assert_eq!(bed.arrivals.last().map(|arrival| arrival.at_ns), Some(exact));
}

#[test]
fn a_late_caller_does_not_move_what_arrives() {
    let (mut prompt, mut late) = (
        Bed::pair(json!({"rate_bps": 50_000_000, "delay_s": 0.002})),
        Bed::pair(json!({"rate_bps": 50_000_000, "delay_s": 0.002})),
    );
    for place in 0..100 {
        let at_ns = place * 300 * US;
        prompt.run(at_ns);
        for bed in [&mut prompt, &mut late] {
            bed.send(at_ns, Train::uniform(place, 3, IP_BYTES));
        }
    }
    prompt.drain();
    late.run(SECOND);
    assert_eq!(prompt.arrivals, late.arrivals);
    assert!(late.times().is_sorted());
}

#[test]
fn a_time_that_goes_back_is_taken_as_now() {
    let mut bed = Bed::pair(json!({"rate_bps": 1_000_000_000}));
    bed.run(SECOND);
    bed.send(0, Train::single(1, IP_BYTES));
    bed.drain();
    assert_eq!(bed.times(), [SECOND + 12 * US]);
}

#[test]
fn a_train_passes_the_second_wire_segment_by_segment() {
    let wire = |rate_bps: u64| json!({"rate_bps": rate_bps, "delay_s": 0.001});
    let chain = |second_bps: u64| {
        Bed::new(&topology(json!({
            "name": "chain",
            "hosts": [{"name": "a"}, {"name": "b"}],
            "routers": ["r"],
            "links": [
                {"name": "first", "a": "a", "b": "r", "forward": wire(10_000_000_000)},
                {"name": "second", "a": "r", "b": "b", "forward": wire(second_bps)},
            ],
        })))
    };
    // On equal wires the second adds one segment's time, not the train's.
    let mut bed = chain(10_000_000_000);
    bed.send(0, Train::uniform(1, 44, IP_BYTES));
    bed.drain();
    assert_eq!(bed.times(), [45 * 1_200 + 2 * MS]);
    // A slower second wire starts with the first segment and is busy from then on.
    let mut bed = chain(1_000_000_000);
    bed.send(0, Train::uniform(1, 44, IP_BYTES));
    bed.drain();
    assert_eq!(bed.times().last(), Some(&(1_200 + 44 * 12 * US + 2 * MS)));
    // A faster one is done one of its own segments after the last has come.
    let mut bed = chain(100_000_000_000);
    bed.send(0, Train::uniform(1, 44, IP_BYTES));
    bed.drain();
    assert_eq!(bed.times(), [44 * 1_200 + 120 + 2 * MS]);
}
