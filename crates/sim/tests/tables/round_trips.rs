//! The round-trip times of the testbed of Rao et al. 2018 at 10 Gbit/s, back to back: one CUBIC flow for a minute each.
//!
//! `cargo run --release -p farline-sim --example round_trips` takes ten minutes of virtual time each.

use farline_sim::formula::cubic_sawtooth;
use farline_sim::ns;
use farline_sim::scenario::Path;
use farline_sim::table::{Table, figure};
use farline_sim::tcp::SenderConfig;
use farline_sim::tcp::control::Control;

use crate::run::{Alone, FORWARD};

/// Milliseconds; 0 is the two hosts side by side.
const ROUND_TRIPS_MS: [f64; 7] = [0.0, 11.8, 22.6, 45.6, 91.6, 183.0, 366.0];

const END_S: f64 = 60.0;

/// From here on the flow has found the path's rate.
const STEADY_S: f64 = 20.0;

/// A segment of a path with jumbo frames.
const JUMBO_BYTES: u32 = 9000;

fn run(rtt_ms: f64) -> (Path, Alone) {
    let path = Path::new(10_000_000_000, ns(rtt_ms / 1000.0)).mtu_bytes(9000);
    let config = SenderConfig {
        train_segments: 13,
        ..SenderConfig::endless(JUMBO_BYTES)
    };
    let mut alone = Alone::new(&path, Control::Cubic.build(), config);
    alone.run_until_s(END_S);
    (path, alone)
}

fn row(rtt_ms: f64) -> Vec<String> {
    let (path, alone) = run(rtt_ms);
    let whole = alone.used(0.0, END_S);
    let steady = alone.used(STEADY_S, END_S);
    let queue = alone.world.samples().max_backlog_bytes(FORWARD, 0);
    let bdp = path.bdp_packets(JUMBO_BYTES);
    let period_s = cubic_sawtooth(bdp, bdp, alone.rate()).period_s;
    let reductions = alone.congestions(STEADY_S).len();
    assert_eq!(
        alone.figures().timeouts,
        0,
        "{rtt_ms} ms: no time-out on a path with a queue"
    );
    assert!(steady > 0.99, "{rtt_ms} ms: {steady} of the rate after 20 s");
    assert!(whole > 0.85, "{rtt_ms} ms: {whole} of the rate over a minute");
    if rtt_ms >= 11.8 {
        let expected = (END_S - STEADY_S) / period_s;
        let apart = (reductions as f64 - expected).abs();
        assert!(
            apart <= 1.0 + 0.15 * expected,
            "{rtt_ms} ms: {reductions} reductions, {expected} by formula"
        );
    }
    vec![
        rtt_ms.to_string(),
        format!("{:.2}", 100.0 * whole),
        format!("{:.2}", 100.0 * steady),
        reductions.to_string(),
        figure(period_s, 3),
        alone.figures().retransmitted.to_string(),
        format!("{:.1}", queue as f64 / 1e6),
    ]
}

#[test]
fn a_minute_at_ten_gigabits_fill_the_path_at_every_round_trip() {
    let mut table = Table::new(&[
        "RTT ms",
        "used %",
        "from 20 s %",
        "reductions",
        "period s by formula",
        "sent again",
        "longest queue MB",
    ]);
    for rtt_ms in ROUND_TRIPS_MS {
        table.row(&row(rtt_ms));
    }
    insta::assert_snapshot!("round_trips", table.text());
}
