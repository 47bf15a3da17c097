//! The back-to-back round-trip times of Rao et al. 2018 at 10 Gbit/s: one CUBIC flow each, ten minutes of virtual time.
//!
//! `cargo run --release -p farline-sim --example round_trips [SIMULATED_SECONDS]`

use farline_sim::scenario::Path;
use farline_sim::table::Table;
use farline_sim::tcp::control::Control;
use farline_sim::tcp::{Flow, SenderConfig};
use farline_sim::{World, ns};
use farline_spec::Failure;

/// Milliseconds; 0 is the two hosts side by side.
const ROUND_TRIPS_MS: [f64; 7] = [0.0, 11.8, 22.6, 45.6, 91.6, 183.0, 366.0];

/// A segment of a path with jumbo frames; thirteen are what the link sends in 100 us.
const SEGMENT_BYTES: u32 = 9000;
const TRAIN_SEGMENTS: u16 = 13;

fn row(rtt_ms: f64, end_s: f64) -> Result<[String; 5], Failure> {
    let path = Path::new(10_000_000_000, ns(rtt_ms / 1000.0)).mtu_bytes(9000);
    let mut world = World::new(&path.topology(), ns(0.1))?;
    let config = SenderConfig {
        train_segments: TRAIN_SEGMENTS,
        ..SenderConfig::endless(SEGMENT_BYTES)
    };
    let flow = Flow::open(&mut world, 0, 1, config, Control::Cubic.build());
    world.run_until(ns(end_s))?;
    let rate = path.packets_per_s(SEGMENT_BYTES);
    let used = |from_s: f64| {
        let delivered = world.samples().delivery_rate(flow.sender, ns(from_s), ns(end_s));
        format!("{:.2}", 100.0 * delivered / rate)
    };
    let sender = flow.sending(&world);
    Ok([
        rtt_ms.to_string(),
        used(0.0),
        used(end_s / 5.0),
        sender.history().len().to_string(),
        sender.figures().retransmitted.to_string(),
    ])
}

fn main() -> Result<(), Failure> {
    let end_s = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(600.0);
    let mut table = Table::new(&["RTT ms", "used %", "last 4/5 %", "reductions", "sent again"]);
    for rtt_ms in ROUND_TRIPS_MS {
        table.row(&row(rtt_ms, end_s)?);
    }
    print!("{}", table.text());
    Ok(())
}
