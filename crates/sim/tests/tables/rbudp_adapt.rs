//! A bottleneck below the stated rate, with a bound for losses.

use farline_sim::ns;
use farline_sim::rbudp::{PACKET_BYTES, StreamConfig, Trial};
use farline_sim::scenario::Path;
use farline_sim::table::Table;

/// Payload share of a frame on the wire.
const PAYLOAD_SHARE: f64 = PACKET_BYTES as f64 / 1538.0;

#[test]
fn a_loss_bound_finds_the_bottleneck_and_keeps_it_busy() {
    let mut table = Table::new(&["RTT ms", "stated / carried", "bound %", "carried %", "repeated %"]);
    for rtt_s in [0.01, 0.1] {
        for stated in [0.5, 1.1, 2.0, 10.0] {
            for bound in [None, Some(0.02)] {
                let path = Path::new(1_000_000_000, ns(rtt_s)).queue_bdp(0.25);
                let carried_bps = 1e9 * PAYLOAD_SHARE;
                let config = StreamConfig {
                    blast_bytes: 32_000_000,
                    in_flight: 8,
                    early: true,
                    loss_bound: bound,
                    ..StreamConfig::paper(2_000_000_000, (stated * carried_bps) as u64, path.rtt_ns)
                };
                let mut trial = Trial::new(&path, &config);
                let took_s = trial.run_s(600.0);
                let statistics = trial.sending().statistics();
                let repeated = statistics.repeated_packets as f64 / statistics.sent_packets as f64;
                let carried = 8.0 * config.total_bytes as f64 / took_s / carried_bps;
                table.row(&[
                    (1e3 * rtt_s).to_string(),
                    stated.to_string(),
                    bound.map_or_else(|| "none".to_owned(), |bound| (100.0 * bound).to_string()),
                    format!("{:.1}", 100.0 * carried),
                    format!("{:.1}", 100.0 * repeated),
                ]);
                let what = format!("{rtt_s} s, {stated}, {bound:?}: {carried} carried, {repeated} repeated");
                if bound.is_some() && (1.0..=2.0).contains(&stated) {
                    assert!(carried > 0.95 && repeated < 0.05, "{what}");
                }
                if stated < 1.0 {
                    assert!(repeated == 0.0 && carried > 0.94 * stated, "{what}");
                }
            }
        }
    }
    insta::assert_snapshot!("rbudp_adapt", table.text());
}
