//! What happens to packets on the wire: how often, to which, and independent of what.

use farline_emulator::model::{PipeCounters, Train};
use serde_json::{Value, json};

use crate::bed::{Bed, IP_BYTES, MS, SECOND, US, topology};

/// Sends `count` single packets, 10 us apart, and says which of them arrived.
fn arrived(forward: Value, count: u64) -> Vec<bool> {
    let mut bed = Bed::pair(forward);
    for place in 0..count {
        bed.send(place * 10 * US, Train::single(place, IP_BYTES));
    }
    bed.drain();
    let mut arrived = vec![false; count as usize];
    for payload in bed.payloads() {
        arrived[payload as usize] = true;
    }
    arrived
}

fn lost(forward: Value, count: u64) -> Vec<u64> {
    let arrived = arrived(forward, count);
    (1..=count)
        .filter(|number| !arrived[*number as usize - 1])
        .collect()
}

/// Whether `count` of `total` lies in the interval that holds a binomial count 999 times of 1000.
fn plausible(count: u64, total: u64, probability: f64) -> bool {
    let mean = total as f64 * probability;
    let deviation = (mean * (1.0 - probability)).sqrt();
    (count as f64 - mean).abs() <= 3.2905 * deviation + 0.5
}

#[test]
fn random_loss_is_as_frequent_as_stated() {
    for (seed, probability) in [(1, 0.5), (2, 0.1), (3, 0.01), (4, 0.001)] {
        let mut document = crate::bed::pair(json!({"loss": {"random": probability}}));
        document.seed = seed;
        let mut bed = Bed::new(&document);
        for _ in 0..5_000 {
            bed.send(0, Train::uniform(0, 40, IP_BYTES));
        }
        let losses = bed.counters().loss_packets;
        assert!(
            plausible(losses, 200_000, probability),
            "{losses} for {probability}"
        );
    }
}

#[test]
fn random_losses_are_independent_of_each_other() {
    let arrived = arrived(json!({"loss": {"random": 0.3}}), 100_000);
    let losses = arrived.iter().filter(|arrived| !**arrived).count() as f64;
    let rest = arrived.len() as f64 - losses;
    let runs = 1 + arrived.windows(2).filter(|pair| pair[0] != pair[1]).count();
    // Runs test of Wald and Wolfowitz (1940).
    let mean = 1.0 + 2.0 * losses * rest / (losses + rest);
    let variance = (mean - 1.0) * (mean - 2.0) / (losses + rest - 1.0);
    let score = (runs as f64 - mean) / variance.sqrt();
    assert!(score.abs() < 3.2905, "{runs} runs, {mean} expected");
}

#[test]
fn nothing_passes_a_loss_of_one_and_all_a_loss_of_zero() {
    assert_eq!(lost(json!({"loss": {"random": 1.0}}), 1_000).len(), 1_000);
    assert_eq!(lost(json!({"loss": {"random": 0.0}}), 1_000).len(), 0);
}

#[test]
fn chosen_packets_are_lost_and_no_other() {
    let spec = json!({"loss": {"packets": [7, 1, 44, 7], "every": 20}});
    assert_eq!(lost(spec.clone(), 60), [1, 7, 20, 40, 44, 60]);
    let mut bed = Bed::pair(spec);
    bed.send(0, Train::uniform(0, 60, IP_BYTES));
    bed.drain();
    let trains: Vec<_> = bed
        .arrivals
        .iter()
        .map(|arrival| (arrival.train.first, arrival.train.segments))
        .collect();
    // Counted from 0; split only where a segment is missing.
    assert_eq!(trains, [(1, 5), (7, 12), (20, 19), (40, 3), (44, 15)]);
}

#[test]
fn bursts_have_the_loss_and_the_length_of_their_chain() {
    let (enter, leave) = (0.005, 0.2);
    let spec = json!({"loss": {"burst": {"enter": enter, "leave": leave}}});
    let total = 400_000;
    let losses = lost(spec, total);
    let bursts = 1 + losses.windows(2).filter(|pair| pair[1] - pair[0] > 1).count();
    let share = losses.len() as f64 / total as f64;
    let stationary = enter / (enter + leave);
    // A chain's losses cluster: the variance of a share grows by (1 + r) / (1 - r), r = 1 - enter - leave.
    let r = 1.0 - enter - leave;
    let deviation = (stationary * (1.0 - stationary) / total as f64 * (1.0 + r) / (1.0 - r)).sqrt();
    assert!(
        (share - stationary).abs() < 3.2905 * deviation,
        "{share} for {stationary}"
    );
    let length = losses.len() as f64 / bursts as f64;
    // Lengths are geometric with mean 1 / leave and deviation sqrt(1 - leave) / leave.
    let deviation = (1.0 - leave).sqrt() / leave / (bursts as f64).sqrt();
    assert!(
        (length - 1.0 / leave).abs() < 3.2905 * deviation,
        "{length} packets"
    );
}

#[test]
fn bursts_lose_in_both_states_as_stated() {
    let spec = json!({"loss": {"burst": {"enter": 0.5, "leave": 0.5, "loss_good": 0.1, "loss_bad": 0.7}}});
    let losses = lost(spec, 100_000).len() as u64;
    // Equal times in both states, and states follow each other without memory: 0.4 on average.
    assert!(plausible(losses, 100_000, 0.4), "{losses}");
}

fn everything() -> Value {
    json!({
        "rate_bps": 1_000_000_000,
        "delay_s": 0.002,
        "queue": {"capacity_bytes": 100_000_000},
        "loss": {"random": 0.02, "burst": {"enter": 0.01, "leave": 0.3}, "packets": [5], "every": 97},
        "corrupt": 0.03,
        "duplicate": 0.03,
        "reorder": 0.03,
    })
}

/// Which packets, by number, met what: (number, copies, entropy of the corruption).
fn met(bed: &Bed, trains: u64) -> Vec<(u64, u64, Option<u64>)> {
    let mut met = vec![(0, None); 44 * trains as usize];
    for arrival in &bed.arrivals {
        let train = &arrival.train;
        for segment in train.first..train.first + train.segments {
            let (copies, entropy) = &mut met[(train.payload * 44) as usize + usize::from(segment)];
            *copies += 1;
            *entropy = train.corrupt.map(|corruption| corruption.entropy);
        }
    }
    let numbered = met.into_iter().zip(1..);
    numbered
        .map(|((copies, entropy), number)| (number, copies, entropy))
        .collect()
}

fn send_trains(bed: &mut Bed, trains: u64, gap_ns: u64, parts: &[u16]) {
    for payload in 0..trains {
        let mut rest = Train::uniform(payload, 44, IP_BYTES);
        for count in parts {
            let part = rest.take_front(*count);
            bed.send(payload * gap_ns, part);
        }
        bed.send(payload * gap_ns, rest);
    }
    bed.drain();
}

#[test]
fn the_same_seed_gives_every_packet_the_same_fate_whatever_its_time_and_train() {
    let mut reference = Bed::pair(everything());
    send_trains(&mut reference, 200, MS, &[]);
    let fates = met(&reference, 200);
    let counters = reference.counters();
    assert!(
        counters.loss_packets > 300 && counters.duplicated_packets > 100 && counters.corrupted_packets > 100
    );
    let cuts: [&[u16]; 3] = [&[1; 43], &[10, 3, 20], &[43]];
    for (gap_ns, parts) in [0, 17 * US, 5 * MS].into_iter().zip(cuts) {
        let mut bed = Bed::pair(everything());
        send_trains(&mut bed, 200, gap_ns, parts);
        assert_eq!(met(&bed, 200), fates, "gap {gap_ns}, parts {parts:?}");
        assert_eq!(bed.counters(), counters);
    }
    let mut other = crate::bed::pair(everything());
    other.seed = 43;
    let mut other = Bed::new(&other);
    send_trains(&mut other, 200, MS, &[]);
    assert_ne!(met(&other, 200), fates);
}

#[test]
fn what_else_is_switched_on_does_not_change_which_packets_are_lost() {
    let alone = lost(json!({"delay_s": 0.002, "loss": {"random": 0.05}}), 10_000);
    let spec = json!({"delay_s": 0.002, "loss": {"random": 0.05}, "duplicate": 0.2, "reorder": 0.1, "corrupt": 0.3, "jitter_s": 0.001});
    assert_eq!(lost(spec, 10_000), alone);
}

#[test]
fn other_links_do_not_change_a_links_fates() {
    let run = |others: u64| {
        let mut bed = Bed::new(&topology(json!({
            "name": "lanes",
            "hosts": [{"name": "a"}, {"name": "b"}],
            "links": [
                {"name": "first", "a": "a", "b": "b", "forward": everything()},
                {"name": "second", "a": "a", "b": "b", "forward": everything()},
            ],
        })));
        for place in 0..5_000 {
            bed.send(place * 20 * US, Train::single(place, IP_BYTES));
            for _ in 0..others {
                assert!(bed.network.send(place * 20 * US, 2, 3, Train::single(0, 500)));
            }
        }
        bed.drain();
        (bed.network.counters(0), bed.network.counters(2))
    };
    let (quiet, _) = run(0);
    let (beside, second) = run(1);
    assert_eq!(quiet, beside);
    let fates = |counters: PipeCounters| (counters.loss_packets, counters.duplicated_packets);
    assert_ne!(fates(beside), fates(second), "links have fates of their own");
}

#[test]
fn corrupted_packets_travel_alone_and_say_which_bit() {
    let mut bed = Bed::pair(json!({"corrupt": 0.1, "corrupt_hidden": true}));
    for payload in 0..1_000 {
        bed.send(payload * US, Train::uniform(payload, 44, IP_BYTES));
    }
    bed.drain();
    let trains = bed.arrivals.iter().map(|arrival| &arrival.train);
    let corrupt: Vec<_> = trains
        .filter_map(|train| train.corrupt.map(|corruption| (train.segments, corruption)))
        .collect();
    assert!(
        corrupt
            .iter()
            .all(|(segments, corruption)| *segments == 1 && corruption.hidden)
    );
    assert_eq!(corrupt.len() as u64, bed.counters().corrupted_packets);
    assert!(plausible(corrupt.len() as u64, 44_000, 0.1));
    let upper = corrupt
        .iter()
        .filter(|(_, corruption)| corruption.entropy >> 63 == 1)
        .count();
    assert!(plausible(upper as u64, corrupt.len() as u64, 0.5));
}

#[test]
fn a_changed_probability_holds_from_then_on() {
    let mut bed = Bed::pair(json!({"loss": {"random": 1.0}}));
    bed.send_singles(0, 0, 100);
    bed.change(SECOND, json!({"loss": 0.0, "duplicate": 1.0}));
    bed.send_singles(SECOND, 100, 100);
    bed.drain();
    let counters = bed.counters();
    assert_eq!(
        (
            counters.loss_packets,
            counters.duplicated_packets,
            counters.out_packets
        ),
        (100, 100, 200)
    );
}
