//! UDT alone on a path: control by loss by round-trip time by queue.

use farline_sim::ns;
use farline_sim::scenario::Path;
use farline_sim::table::Table;
use farline_sim::udt::{FlowConfig, Trial};
use farline_spec::UdtControl;

/// Round-trip time, rate, and when a run ends; figures are of its second half.
const PATHS: [(f64, u64, f64); 4] = [
    (0.001, 10_000_000_000, 1.2),
    (0.01, 10_000_000_000, 1.6),
    (0.1, 1_000_000_000, 10.0),
    (0.366, 500_000_000, 24.0),
];
const LOSSES: [f64; 5] = [0.0, 1e-5, 1e-4, 1e-3, 1e-2];
const QUEUES_BDP: [f64; 2] = [0.1, 1.0];
/// Share of the path that the fixed rate takes.
const FIXED: f64 = 0.9;

/// A place in the grid.
#[derive(Debug, Clone, Copy)]
struct Cell {
    rtt_s: f64,
    rate_bps: u64,
    loss: f64,
    queue_bdp: f64,
}

/// What a flow made of it.
#[derive(Debug, Clone, Copy)]
struct Outcome {
    used: f64,
    repeated: f64,
    queue_bdp: f64,
}

fn run(control: UdtControl, cell: Cell, end_s: f64) -> Outcome {
    let mut path = Path::new(cell.rate_bps, ns(cell.rtt_s)).queue_bdp(cell.queue_bdp);
    if cell.loss > 0.0 {
        path = path.loss(cell.loss);
    }
    let mut config = FlowConfig::endless(control);
    if control == UdtControl::Fixed {
        let payload_bits = 8.0 * f64::from(config.scale.payload_bytes());
        let pps = FIXED * path.packets_per_s(config.scale.declared_bytes());
        config.max_payload_bps = Some((pps * payload_bits) as u64);
    }
    let mut trial = Trial::new(&path, &config);
    trial.run_until_s(end_s);
    Outcome {
        used: trial.used(end_s / 2.0, end_s),
        repeated: trial.repeated(),
        queue_bdp: trial.queue_bdp(end_s / 2.0),
    }
}

/// Fills the table of a control; `check` says what may be relied on.
fn table(control: UdtControl, check: impl Fn(Cell, Outcome)) {
    let mut table = Table::new(&[
        "RTT ms",
        "Gbit/s",
        "queue BDP",
        "loss",
        "used %",
        "repeated %",
        "mean queue BDP",
    ]);
    for (rtt_s, rate_bps, end_s) in PATHS {
        for queue_bdp in QUEUES_BDP {
            for loss in LOSSES {
                let cell = Cell {
                    rtt_s,
                    rate_bps,
                    loss,
                    queue_bdp,
                };
                let outcome = run(control, cell, end_s);
                table.row(&[
                    (1e3 * rtt_s).to_string(),
                    (rate_bps as f64 / 1e9).to_string(),
                    queue_bdp.to_string(),
                    loss.to_string(),
                    format!("{:.1}", 100.0 * outcome.used),
                    format!("{:.2}", 100.0 * outcome.repeated),
                    format!("{:.3}", outcome.queue_bdp),
                ]);
                check(cell, outcome);
            }
        }
    }
    insta::assert_snapshot!(format!("udt_grid_{}", control.word()), table.text());
}

#[test]
fn bbr_fills_paths_whatever_is_lost_by_chance() {
    table(UdtControl::Bbr, |cell, outcome| {
        // A run of 24 s at 366 ms is short: 65 round trips, 13 of them for the start.
        let least = if cell.rtt_s > 0.3 { 0.92 } else { 0.95 } - 5.0 * cell.loss;
        assert!(outcome.used > least, "{cell:?}: {outcome:?}");
        assert!(outcome.queue_bdp < 1.0, "{cell:?}: {outcome:?}");
        assert!(outcome.repeated < 0.05 + cell.loss, "{cell:?}: {outcome:?}");
    });
}

#[test]
fn native_fills_clean_paths_and_loses_its_rate_to_losses() {
    table(UdtControl::Native, |cell, outcome| {
        if cell.loss >= 1e-3 && cell.rtt_s >= 0.1 {
            assert!(outcome.used < 0.6, "{cell:?}: {outcome:?}");
        }
        assert!(outcome.used > 0.0, "{cell:?}: {outcome:?}");
    });
}

#[test]
fn reno_stays_within_reach_of_its_formula() {
    table(UdtControl::Reno, |cell, outcome| {
        let bdp = Path::new(cell.rate_bps, ns(cell.rtt_s)).bdp_packets(1500);
        let formula = farline_sim::formula::reno_window(cell.loss.max(1e-9)) / bdp;
        // A run is short for the sawtooth of a long path: what slow start left is still there.
        assert!(outcome.used < 5.0 * formula + 0.1, "{cell:?}: {outcome:?}");
    });
}

#[test]
fn fixed_keeps_its_rate_whatever_is_lost() {
    table(UdtControl::Fixed, |cell, outcome| {
        let expected = FIXED * (1.0 - cell.loss);
        assert!(
            (outcome.used / expected - 1.0).abs() < 0.02,
            "{cell:?}: {outcome:?}"
        );
    });
}
