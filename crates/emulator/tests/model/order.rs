//! Which packets arrive before which.

use farline_emulator::model::{Arrival, Train};
use serde_json::json;

use crate::bed::{Bed, IP_BYTES, MS, SECOND, US};

#[test]
fn jitter_changes_delays_and_never_the_order() {
    for shape in ["uniform", "normal"] {
        let mut bed = Bed::pair(json!({"delay_s": 0.020, "jitter_s": 0.002, "jitter_shape": shape}));
        for place in 0..20_000 {
            bed.send(place * MS, Train::single(place, IP_BYTES));
        }
        bed.drain();
        assert!(bed.payloads().is_sorted() && bed.times().is_sorted());
        let delays = bed.times().into_iter().zip(bed.payloads());
        let delays: Vec<u64> = delays.map(|(at_ns, place)| at_ns - place * MS).collect();
        let (least, most) = (delays.iter().min(), delays.iter().max());
        // Order makes a packet wait for a slower one before it, so short delays are rare, not absent.
        assert!(
            least < Some(&(20 * MS)) && most > Some(&(21_900 * US)),
            "{least:?} to {most:?}"
        );
        assert!(most <= Some(&(28 * MS)));
    }
}

#[test]
fn the_delay_of_packets_far_apart_is_distributed_as_stated() {
    let mut bed = Bed::pair(json!({"delay_s": 0.020, "jitter_s": 0.002}));
    for place in 0..20_000 {
        bed.send(place * 5 * MS, Train::single(place, IP_BYTES));
    }
    bed.drain();
    let delays = bed.times().into_iter().zip(bed.payloads());
    let offsets: Vec<f64> = delays
        .map(|(at_ns, place)| (at_ns - place * 5 * MS) as f64 / 1e6 - 20.0)
        .collect();
    let count = offsets.len() as f64;
    let mean = offsets.iter().sum::<f64>() / count;
    let variance = offsets.iter().map(|offset| (offset - mean).powi(2)).sum::<f64>() / count;
    // Uniform between -2 and 2: mean 0, variance 4 / 3.
    assert!(mean.abs() < 3.3 * (4.0_f64 / 3.0 / count).sqrt(), "mean {mean}");
    assert!((variance - 4.0 / 3.0).abs() < 0.04, "variance {variance}");
    assert!(offsets.iter().all(|offset| offset.abs() <= 2.0));
}

#[test]
fn jitter_as_large_as_the_delay_does_not_go_back_in_time() {
    let mut bed = Bed::pair(json!({"delay_s": 0.010, "jitter_s": 0.010}));
    for place in 0..1_000 {
        bed.send(place * 50 * MS, Train::single(place, IP_BYTES));
    }
    bed.drain();
    let sent = bed.payloads().into_iter().map(|place| place * 50 * MS);
    assert!(
        bed.times()
            .into_iter()
            .zip(sent)
            .all(|(at_ns, sent_ns)| at_ns >= sent_ns)
    );
}

#[test]
fn a_late_packet_falls_behind_others_that_jitter_holds_back() {
    let spec = json!({"delay_s": 0.020, "jitter_s": 0.010, "reorder": 0.1, "reorder_delay_s": 0.001});
    let mut bed = Bed::pair(spec);
    for place in 0..2_000 {
        bed.send(place * 10 * US, Train::single(place, IP_BYTES));
    }
    bed.drain();
    let payloads = bed.payloads();
    let overtaken = |place: usize| payloads[..place].iter().any(|before| *before > payloads[place]);
    let overtaking = |place: usize| payloads[place + 1..].iter().any(|after| *after < payloads[place]);
    let places = 0..payloads.len();
    let late = places.clone().filter(|&place| overtaken(place)).count() as u64;
    // The last ones have nothing behind them that could go before.
    let ordered = bed.counters().reordered_packets;
    assert!(
        late <= ordered && late + 5 >= ordered,
        "{late} of {ordered} are behind another"
    );
    assert!(places.filter(|&place| overtaking(place)).count() > 0);
}

#[test]
fn trains_stay_together_under_jitter_where_their_segments_arrive_together() {
    let mut bed = Bed::pair(json!({"rate_bps": 10_000_000_000_u64, "delay_s": 0.020, "jitter_s": 0.002}));
    for payload in 0..100 {
        bed.send(payload * 10 * MS, Train::uniform(payload, 44, IP_BYTES));
    }
    bed.drain();
    assert_eq!(bed.counters().out_packets, 4_400);
    assert!(bed.times().is_sorted());
    let parts = bed.arrivals.len();
    // The largest of 44 delays holds up those behind it: some parts per train, far fewer than segments.
    assert!((200..2_000).contains(&parts), "{parts} parts");
}

#[test]
fn jitter_belongs_to_the_packet_whatever_its_train() {
    let run = |segments: u16| {
        let mut bed = Bed::pair(json!({"delay_s": 0.020, "jitter_s": 0.002, "loss": {"every": 5}}));
        for payload in 0..200 {
            let mut rest = Train::uniform(payload, 4, IP_BYTES);
            while rest.segments > segments {
                let part = rest.take_front(segments);
                bed.send(payload * 5 * MS, part);
            }
            bed.send(payload * 5 * MS, rest);
        }
        bed.drain();
        let mut times = Vec::new();
        for Arrival { at_ns, train, .. } in &bed.arrivals {
            let segments = train.first..train.first + train.segments;
            times.extend(segments.map(|segment| (train.payload, segment, *at_ns)));
        }
        times
    };
    let (singles, trains) = (run(1), run(4));
    assert_eq!((singles.len(), trains.len()), (640, 640));
    for (single, of_train) in singles.into_iter().zip(trains) {
        assert_eq!((single.0, single.1), (of_train.0, of_train.1));
        // Segments that arrive within 100 us of each other are handed over with the last of them.
        assert!(
            (0..=100 * US).contains(&(of_train.2 - single.2)),
            "{single:?}, {of_train:?}"
        );
    }
}

#[test]
fn reordered_packets_come_late_and_all_others_in_order() {
    let mut bed = Bed::pair(json!({"delay_s": 0.005, "reorder": 0.1, "reorder_delay_s": 0.003}));
    for place in 0..10_000 {
        bed.send(place * 100 * US, Train::single(place, IP_BYTES));
    }
    bed.drain();
    let mut late = 0;
    let mut others = Vec::new();
    for arrival in &bed.arrivals {
        match arrival.at_ns - arrival.train.payload * 100 * US {
            delay if delay == 8 * MS => late += 1,
            delay => {
                assert_eq!(delay, 5 * MS);
                others.push(arrival.train.payload);
            }
        }
    }
    assert!(others.is_sorted() && bed.times().is_sorted());
    assert_eq!(late, bed.counters().reordered_packets);
    assert!((900..1_100).contains(&late), "{late}");
}

#[test]
fn a_late_segment_leaves_its_train() {
    let mut bed = Bed::pair(json!({"reorder": 0.05}));
    for payload in 0..200 {
        bed.send(payload * 10 * MS, Train::uniform(payload, 44, IP_BYTES));
    }
    bed.drain();
    let late = bed
        .arrivals
        .iter()
        .filter(|arrival| arrival.at_ns % (10 * MS) == MS);
    assert!(late.clone().all(|arrival| arrival.train.segments == 1));
    assert_eq!(late.count() as u64, bed.counters().reordered_packets);
    assert_eq!(bed.counters().out_packets, 200 * 44);
}

#[test]
fn a_copy_comes_right_behind_its_packet() {
    let mut bed = Bed::pair(json!({"delay_s": 0.001, "duplicate": 0.2}));
    for place in 0..1_000 {
        bed.send(place * US, Train::single(place, IP_BYTES));
    }
    bed.drain();
    assert!(bed.payloads().is_sorted());
    let copies = bed.arrivals.windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert_eq!(copies as u64, bed.counters().duplicated_packets);
    assert!((150..250).contains(&copies));
    assert_eq!(bed.arrivals.len(), 1_000 + copies);
}

#[test]
fn a_shorter_delay_does_not_let_packets_overtake() {
    let mut bed = Bed::pair(json!({"delay_s": 0.100}));
    bed.send(0, Train::single(0, IP_BYTES));
    bed.change(10 * MS, json!({"delay_s": 0.010}));
    bed.send(20 * MS, Train::single(1, IP_BYTES));
    bed.send(95 * MS, Train::single(2, IP_BYTES));
    bed.change(SECOND, json!({"delay_s": 0.200}));
    bed.send(SECOND, Train::single(3, IP_BYTES));
    bed.drain();
    assert_eq!(bed.payloads(), [0, 1, 2, 3]);
    assert_eq!(bed.times(), [100 * MS, 100 * MS, 105 * MS, SECOND + 200 * MS]);
}
