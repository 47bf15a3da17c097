//! No packet vanishes and no queue overflows, whatever happens.

use farline_emulator::model::Train;
use farline_spec::{LinkChange, Topology};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::bed::{Bed, SECOND, topology};

/// Something a user does, and how long before.
#[derive(Debug, Clone)]
enum Act {
    Send {
        from: usize,
        to: usize,
        train: Train<u64>,
    },
    Change(LinkChange),
    Pass,
}

fn maybe<T: std::fmt::Debug + Clone + Into<Value>>(
    values: impl Strategy<Value = T>,
) -> impl Strategy<Value = Value> {
    proptest::option::of(values).prop_map(|value| value.map_or(Value::Null, Into::into))
}

/// A pipe with any of its features; `null` is absent.
fn pipe() -> impl Strategy<Value = Value> {
    let line = (maybe(1_000_000_u64..20_000_000_000), 0.0..0.02, maybe(0.0..1.0));
    let queue = (
        maybe(2_000_u64..400_000),
        maybe(1_u64..100),
        any::<bool>(),
        maybe(1_u64..100_000),
    );
    let fates = (
        maybe(0.0..0.3),
        maybe(0.0..0.2),
        maybe(0.0..0.2),
        maybe(0.0..0.2),
        maybe(1_u64..50),
    );
    (line, queue, fates, 576_u64..9_001).prop_map(|(line, queue, fates, mtu_bytes)| {
        let jitter_s = line.2.as_f64().map(|share| share * line.1);
        let capacity_bytes = queue.0.as_u64().map(|bytes| bytes.max(mtu_bytes + 38));
        let codel = queue.2 && !line.0.is_null();
        json!({
            "rate_bps": line.0, "delay_s": line.1, "jitter_s": jitter_s, "mtu_bytes": mtu_bytes,
            "queue": {
                "capacity_bytes": capacity_bytes, "capacity_packets": queue.1, "ecn_threshold_bytes": queue.3,
                "discipline": if codel { "codel" } else { "drop-tail" }, "ecn": codel,
            },
            "loss": {"random": fates.0, "every": fates.4},
            "corrupt": fates.1, "duplicate": fates.2, "reorder": fates.3,
        })
    })
}

/// Three hosts around two routers, with two links between the routers.
fn network() -> impl Strategy<Value = Topology> {
    proptest::collection::vec(pipe(), 10).prop_map(|pipes| {
        let ends = [("a", "r"), ("b", "r"), ("r", "s"), ("s", "r"), ("s", "c")];
        let links = ends.iter().zip(pipes.chunks(2)).map(|((a, b), pair)| {
            json!({"name": format!("{a}-{b}"), "a": a, "b": b, "forward": pair[0], "reverse": pair[1]})
        });
        topology(json!({
            "name": "any",
            "hosts": [{"name": "a"}, {"name": "b"}, {"name": "c"}],
            "routers": ["r", "s"],
            "links": links.collect::<Vec<Value>>(),
        }))
    })
}

fn train() -> impl Strategy<Value = Train<u64>> {
    (1_u16..50, 60_u32..2_000, 60_u32..2_000, any::<bool>()).prop_map(
        |(segments, body, last, ecn_capable)| Train {
            last_bytes: last.min(body),
            ecn_capable,
            ..Train::uniform(0, segments, body)
        },
    )
}

/// Capacity is left alone, so that no backlog may exceed it.
fn change() -> impl Strategy<Value = LinkChange> {
    let link = prop::sample::select(vec!["a-r", "b-r", "r-s", "s-r", "s-c"]);
    let change = (
        maybe(0_u64..5_000_000_000),
        maybe(0.0..0.02),
        maybe(0.0..0.5),
        maybe(any::<bool>()),
    );
    (link, change).prop_map(|(link, (rate_bps, delay_s, loss, up))| {
        let change = json!({"rate_bps": rate_bps, "delay_s": delay_s, "loss": loss, "up": up});
        serde_json::from_value(json!({"link": link, "change": change})).expect("a change")
    })
}

fn acts() -> impl Strategy<Value = Vec<(u64, Act)>> {
    let act = prop_oneof![
        6 => (0_usize..3, 0_usize..3, train()).prop_map(|(from, to, train)| Act::Send { from, to, train }),
        1 => change().prop_map(Act::Change),
        2 => Just(Act::Pass),
    ];
    proptest::collection::vec((0_u64..2_000_000, act), 1..150)
}

/// Every pipe's account, and the sum over the network.
fn check(bed: &mut Bed, topology: &Topology, sent: u64, now_ns: u64) -> Result<(), TestCaseError> {
    let arrived: u64 = bed
        .arrivals
        .iter()
        .map(|arrival| u64::from(arrival.train.segments))
        .sum();
    let mut network = sent as i64 - arrived as i64;
    for pipe in 0..bed.layout.pipes.len() {
        let counters = bed.network.counters(pipe);
        let state = bed.network.state(pipe, now_ns);
        prop_assert_eq!(
            counters.unaccounted_packets(),
            state.in_flight_packets as i64,
            "pipe {}",
            pipe
        );
        let gone = counters.tail_drop_packets
            + counters.codel_drop_packets
            + counters.loss_packets
            + counters.cut_packets
            + counters.mtu_drop_packets;
        network += counters.duplicated_packets as i64 - gone as i64 - state.in_flight_packets as i64;
        let spec = &topology.links[pipe / 2];
        let queue = if pipe % 2 == 0 {
            &spec.forward.queue
        } else {
            &spec.backward().queue
        };
        if let Some(capacity) = queue.capacity_bytes {
            prop_assert!(state.backlog_bytes <= capacity.get());
            prop_assert!(bed.network.take_backlog_max(pipe) <= capacity.get());
        }
    }
    prop_assert_eq!(network, 0, "over the whole network");
    prop_assert!(bed.times().is_sorted());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn packets_in_are_packets_out_dropped_or_under_way(topology in network(), acts in acts()) {
        let mut bed = Bed::new(&topology);
        let (mut now_ns, mut sent) = (0, 0);
        for (gap_ns, act) in acts {
            now_ns += gap_ns;
            match act {
                Act::Send { from, to, train } => {
                    let segments = u64::from(train.segments);
                    sent += if bed.network.send(now_ns, from, to, train) { segments } else { 0 };
                }
                Act::Change(change) => bed.network.change(now_ns, &change).expect("a link"),
                Act::Pass => {}
            }
            bed.run(now_ns);
            check(&mut bed, &topology, sent, now_ns)?;
        }
        bed.run(now_ns + 1_000 * SECOND);
        check(&mut bed, &topology, sent, now_ns + 1_000 * SECOND)?;
    }
}
