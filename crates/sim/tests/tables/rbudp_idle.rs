//! How long a path idles under a stream of blasts.

use farline_sim::ns;
use farline_sim::rbudp::formula::mean_passes;
use farline_sim::rbudp::{PACKET_BYTES, StreamConfig, Trial};
use farline_sim::scenario::Path;
use farline_sim::table::{Table, figure};

const RATE_BPS: u64 = 250_000_000;
const BLAST_BYTES: u64 = 16_000_000;
const IN_FLIGHT: u32 = 8;

#[test]
fn with_early_reports_the_path_idles_in_the_last_round_trips_alone() {
    let mut table = Table::new(&[
        "RTT ms",
        "loss %",
        "early, 8 at once: idle %",
        "passes, 8 at once %",
        "passes, 1 at once %",
    ]);
    for rtt_s in [0.01, 0.1, 0.366] {
        for loss in [0.0, 0.001, 0.07, 0.33] {
            let idle = |early, in_flight| {
                let path = Path::new(10_000_000_000, ns(rtt_s));
                let path = if loss > 0.0 { path.loss(loss) } else { path };
                let config = StreamConfig {
                    blast_bytes: BLAST_BYTES,
                    in_flight,
                    early,
                    ..StreamConfig::paper(16 * BLAST_BYTES, RATE_BPS, path.rtt_ns)
                };
                let mut trial = Trial::new(&path, &config);
                let took_s = trial.run_s(600.0);
                (took_s, trial.idle_share(took_s))
            };
            let ((took_s, early), (_, passes), (_, one)) =
                (idle(true, IN_FLIGHT), idle(false, IN_FLIGHT), idle(false, 1));
            let mut row = vec![(1e3 * rtt_s).to_string(), figure(100.0 * loss, 2)];
            row.extend([early, passes, one].map(|share| format!("{:.2}", 100.0 * share)));
            table.row(&row);
            // What all blasts under way hold must outlast the rounds that a blast takes to become whole.
            let rounds = mean_passes(BLAST_BYTES / PACKET_BYTES as u64, loss) + 4.0;
            let tail_s = rounds * (1.2 * rtt_s + 0.005);
            if tail_s < 8.0 * IN_FLIGHT as f64 * BLAST_BYTES as f64 / RATE_BPS as f64 {
                assert!(
                    early * took_s < tail_s,
                    "{rtt_s} s, {loss}: {early} of {took_s} s"
                );
            }
            assert!(passes < one, "{rtt_s} s, {loss}: {passes} {one}");
        }
    }
    insta::assert_snapshot!("rbudp_idle", table.text());
}
