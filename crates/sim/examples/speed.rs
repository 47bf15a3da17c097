//! How fast virtual time passes: simulated seconds per second for one CUBIC flow.
//!
//! `cargo run --release -p farline-sim --example speed [SIMULATED_SECONDS]`; an hour is 3600.

use std::time::Instant;

use farline_sim::scenario::Path;
use farline_sim::tcp::control::Control;
use farline_sim::tcp::{Flow, SenderConfig};
use farline_sim::{World, ns};
use farline_spec::Failure;

/// Rate in bit/s, round trip in s, segment in bytes.
const FLOWS: [(u64, f64, u32); 5] = [
    (100_000_000, 0.05, 1500),
    (1_000_000_000, 0.05, 1500),
    (1_000_000_000, 0.05, 9000),
    (10_000_000_000, 0.05, 1500),
    (10_000_000_000, 0.05, 9000),
];

fn run(rate_bps: u64, rtt_s: f64, segment_bytes: u32, end_s: f64) -> Result<f64, Failure> {
    let mtu = u16::try_from(segment_bytes).expect("a segment fits into an IP packet");
    let path = Path::new(rate_bps, ns(rtt_s)).mtu_bytes(mtu).queue_bdp(1.0);
    let mut world = World::new(&path.topology(), ns(1.0))?;
    let config = SenderConfig::endless(segment_bytes);
    let flow = Flow::open(&mut world, 0, 1, config, Control::Cubic.build());
    world.run_until(ns(end_s))?;
    Ok(flow.receiving(&world).figures().in_order as f64 / (path.packets_per_s(segment_bytes) * end_s))
}

fn main() -> Result<(), Failure> {
    let end_s = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(120.0);
    println!(
        "{:>8}  {:>6}  {:>13}  {:>8}  {:>14}  {:>15}",
        "Mbit/s", "RTT ms", "segment bytes", "path used", "took s", "simulated s / s"
    );
    for (rate_bps, rtt_s, segment_bytes) in FLOWS {
        let begun = Instant::now();
        let used = run(rate_bps, rtt_s, segment_bytes, end_s)?;
        let took_s = begun.elapsed().as_secs_f64();
        println!(
            "{:>8}  {:>6}  {segment_bytes:>13}  {:>8.1}%  {took_s:>14.2}  {:>15.0}",
            rate_bps / 1_000_000,
            1000.0 * rtt_s,
            100.0 * used,
            end_s / took_s
        );
    }
    Ok(())
}
