//! How fast the link model is: `cargo run --release -p farline-emulator --example model_speed`.
//!
//! A link of 10 Gb/s and 50 ms is kept full for two seconds of virtual time, with super-packets of 44 segments and with
//! single packets, with and without something to decide for every packet. The share of a core is what the model alone
//! would take of it to keep up with that link in real time.

use std::time::Instant;

use farline_emulator::layout::Layout;
use farline_emulator::model::{Network, Train};
use farline_spec::Topology;
use serde_json::{Value, json};

const RATE_BPS: u64 = 10_000_000_000;
const VIRTUAL_NS: u64 = 2_000_000_000;
const IP_BYTES: u32 = 1500;

fn main() {
    println!(
        "{:<28} {:>14} {:>14} {:>10}",
        "case", "segments/s", "events/s", "of a core"
    );
    let loss = json!({"random": 0.001, "burst": {"enter": 0.0001, "leave": 0.5}});
    for (name, segments, more) in [
        ("trains of 44", 44, json!({})),
        ("trains of 44, loss", 44, json!({"loss": loss})),
        (
            "trains of 44, CoDel",
            44,
            json!({"queue": {"discipline": "codel"}}),
        ),
        ("single packets", 1, json!({})),
        ("single packets, loss", 1, json!({"loss": loss})),
    ] {
        let mut topology = pair(more);
        topology.seed = 1;
        let (segments, events, seconds) = fill(&topology, segments);
        let share = seconds / (VIRTUAL_NS as f64 / 1e9);
        println!(
            "{name:<28} {:>14.0} {:>14.0} {:>9.2}%",
            segments as f64 / seconds,
            events as f64 / seconds,
            100.0 * share
        );
    }
}

fn pair(mut forward: Value) -> Topology {
    forward["rate_bps"] = json!(RATE_BPS);
    forward["delay_s"] = json!(0.050);
    let document = json!({
        "name": "speed",
        "hosts": [{"name": "a"}, {"name": "b"}],
        "links": [{"name": "link", "a": "a", "b": "b", "forward": forward}],
    });
    serde_json::from_value(document).expect("a topology")
}

/// Keeps the link full; gives segments sent, calls and arrivals, and seconds taken.
fn fill(topology: &Topology, segments: u16) -> (u64, u64, f64) {
    let layout = Layout::new(topology).expect("a layout");
    let mut network = Network::new(topology, &layout).expect("a network");
    let gap_ns = u64::from(segments) * u64::from(IP_BYTES + 38) * 8_000_000_000 / RATE_BPS;
    let (mut sent, mut events, mut now_ns) = (0, 0, 0);
    let started = Instant::now();
    while now_ns < VIRTUAL_NS {
        network.send(now_ns, 0, 1, Train::uniform(sent, segments, IP_BYTES));
        sent += u64::from(segments);
        events += 1;
        while let Some(at_ns) = network.next_event_ns().filter(|at_ns| *at_ns <= now_ns) {
            network.advance(at_ns, &mut |_| events += 1);
            events += 1;
        }
        now_ns += gap_ns;
    }
    (sent, events, started.elapsed().as_secs_f64())
}
