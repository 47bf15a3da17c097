//! How much of a path is used with queues from a tenth of a bandwidth-delay product to four.

use farline_sim::formula::reno_sawtooth;
use farline_sim::ns;
use farline_sim::scenario::Path;
use farline_sim::table::Table;
use farline_sim::tcp::SenderConfig;
use farline_sim::tcp::control::Control;

use crate::run::{Alone, FORWARD, SEGMENT_BYTES, assert_close};

const RATE_BPS: u64 = 20_000_000;
const RTT_S: f64 = 0.05;

const DEPTHS_BDP: [f64; 6] = [0.1, 0.25, 0.5, 1.0, 2.0, 4.0];

/// Share of the rate used from 40 s on; the backlog must have stayed within the queue.
fn used(control: Control, depth_bdp: f64) -> f64 {
    let path = Path::new(RATE_BPS, ns(RTT_S)).queue_bdp(depth_bdp);
    // Trains would fill the short queues at once.
    let config = SenderConfig {
        train_segments: 1,
        ..SenderConfig::endless(SEGMENT_BYTES)
    };
    let mut alone = Alone::new(&path, control.build(), config);
    alone.run_until_s(150.0);
    let backlog = alone.world.samples().max_backlog_bytes(FORWARD, 0) as f64;
    let capacity = depth_bdp * RATE_BPS as f64 * RTT_S / 8.0;
    assert!(
        backlog <= capacity,
        "{depth_bdp} BDP: {backlog} bytes waited, {capacity} fit"
    );
    assert!(
        backlog > 0.85 * capacity,
        "{depth_bdp} BDP: only {backlog} bytes waited, {capacity} fit"
    );
    alone.used(40.0, 150.0)
}

#[test]
fn deeper_queues_use_more_of_the_path_and_reno_as_much_as_its_formula_within_four_percent() {
    let mut table = Table::new(&[
        "queue BDP",
        "reno",
        "formula",
        "cubic",
        "htcp",
        "highspeed",
        "scalable",
    ]);
    let mut before = [0.0; 5];
    for depth_bdp in DEPTHS_BDP {
        let shares = Control::ALL.map(|control| used(control, depth_bdp));
        let path = Path::new(RATE_BPS, ns(RTT_S));
        let bdp = path.bdp_packets(SEGMENT_BYTES);
        let formula = reno_sawtooth(bdp, depth_bdp * bdp, path.packets_per_s(SEGMENT_BYTES)).used;
        assert_close(&format!("reno with {depth_bdp} BDP"), shares[0], formula, 0.04);
        for (control, (share, before)) in Control::ALL.iter().zip(shares.iter().zip(before)) {
            let place = format!("{} with {depth_bdp} BDP", control.name());
            assert!(
                *share > before - 0.01,
                "{place}: {share} after {before} with a shorter queue"
            );
            assert!(depth_bdp < 1.0 || *share > 0.98, "{place}: {share} of the rate");
        }
        before = shares;
        let [reno, others @ ..] = shares.map(|share| format!("{share:.3}"));
        let mut row = vec![depth_bdp.to_string(), reno, format!("{formula:.3}")];
        row.extend(others);
        table.row(&row);
    }
    insta::assert_snapshot!("depth", table.text());
}
