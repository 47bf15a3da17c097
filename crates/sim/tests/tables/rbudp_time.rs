//! How long a blast takes, against the corrected model of He et al. 2002.

use farline_sim::rbudp::{StreamConfig, Trial};
use farline_sim::scenario::Path;
use farline_sim::table::{Table, figure};
use farline_sim::{ns, seconds};

use crate::run::{assert_close, off};

const MB: u64 = 1_000_000;

fn path(rtt_s: f64, loss: f64) -> Path {
    let path = Path::new(10_000_000_000, ns(rtt_s));
    if loss > 0.0 { path.loss(loss) } else { path }
}

#[test]
fn in_the_papers_way_a_blast_takes_what_the_corrected_model_says_within_a_hundredth() {
    let mut table = Table::new(&[
        "MB", "Mbit/s", "RTT ms", "loss %", "passes", "took s", "model s", "off %",
    ]);
    let mut run = |bytes: u64, rate_bps: u64, rtt_s: f64, loss: f64| {
        let path = path(rtt_s, loss);
        let mut trial = Trial::new(&path, &StreamConfig::paper(bytes, rate_bps, path.rtt_ns));
        trial.run_s(600.0);
        let blast = trial.blast();
        let (took_s, model_s) = (seconds(1_000 * blast.elapsed_us), trial.course().time_s());
        table.row(&[
            (bytes / MB).to_string(),
            (rate_bps / MB).to_string(),
            figure(1e3 * rtt_s, 3),
            format!("{:.0}", 100.0 * loss),
            blast.passes.to_string(),
            figure(took_s, 5),
            figure(model_s, 5),
            off(took_s, model_s),
        ]);
        assert_close(
            &format!("{bytes} bytes, {rate_bps} bit/s, {rtt_s} s, {loss}"),
            took_s,
            model_s,
            0.01,
        );
    };
    for rate_bps in [100_000_000, 1_000_000_000, 9_000_000_000] {
        for rtt_s in [0.0, 0.01, 0.11, 0.366] {
            for loss in [0.0, 0.07] {
                run(64 * MB, rate_bps, rtt_s, loss);
            }
        }
    }
    for loss in [0.0, 0.01, 0.07, 0.33] {
        run(600 * MB, 600_000_000, 0.11, loss);
    }
    for bytes in [MB, 10 * MB, 100 * MB, 2_000 * MB] {
        run(bytes, 1_000_000_000, 0.1, 0.01);
    }
    insta::assert_snapshot!("rbudp_time_paper", table.text());
}

#[test]
fn early_reports_leave_one_round_trip_after_the_last_new_packet_without_loss_and_a_few_with() {
    let mut table = Table::new(&[
        "Mbit/s",
        "RTT ms",
        "loss %",
        "passes",
        "took s",
        "sending s",
        "after it, RTT",
    ]);
    for rate_bps in [100_000_000, 1_000_000_000, 9_000_000_000] {
        for rtt_s in [0.0, 0.01, 0.11, 0.366] {
            for loss in [0.0, 0.001, 0.07, 0.33] {
                let path = path(rtt_s, loss);
                let config = StreamConfig {
                    early: true,
                    ..StreamConfig::paper(256 * MB, rate_bps, path.rtt_ns)
                };
                let mut trial = Trial::new(&path, &config);
                trial.run_s(600.0);
                let blast = trial.blast();
                let took_s = seconds(1_000 * blast.elapsed_us);
                let sending_s = 8.0 * trial.sent_bytes() / rate_bps as f64;
                let after_s = took_s - sending_s;
                // A round trip, its settling, and half of a wait between two statements.
                let round_s = trial.course().rtt_s + trial.course().settle_s;
                table.row(&[
                    (rate_bps / MB).to_string(),
                    figure(1e3 * rtt_s, 3),
                    figure(100.0 * loss, 2),
                    blast.passes.to_string(),
                    figure(took_s, 4),
                    figure(sending_s, 4),
                    format!("{:.2}", after_s / round_s),
                ]);
                let what = format!("{rate_bps} bit/s, {rtt_s} s, {loss}");
                if loss == 0.0 {
                    assert_close(&what, took_s, sending_s + rtt_s, 0.01);
                }
                let most = 1.1 + f64::from(blast.passes);
                assert!(after_s < most * round_s + 0.001, "{what}: {after_s} s");
            }
        }
    }
    insta::assert_snapshot!("rbudp_time_early", table.text());
}
