//! Loss in bursts against independent loss with the same mean.

use farline_sim::ns;
use farline_sim::scenario::Path;
use farline_sim::table::{Table, figure};
use farline_sim::tcp::control::Control;
use farline_spec::BurstLoss;
use farline_spec::unit::Probability;

use crate::run::{Alone, FORWARD, assert_close};

/// Mean probability of loss in all rows.
const MEAN: f64 = 5e-4;

/// Loss that lasts `packets` packets on average.
fn bursts(packets: f64) -> BurstLoss {
    let leave = 1.0 / packets;
    let chance = |value: f64| Probability::new(value).expect("a probability");
    BurstLoss {
        enter: chance(MEAN * leave / (1.0 - MEAN)),
        leave: chance(leave),
        loss_good: chance(0.0),
        loss_bad: chance(1.0),
    }
}

#[test]
fn a_window_that_loses_many_at_once_is_reduced_once_so_bursts_hurt_less() {
    let mut table = Table::new(&[
        "burst packets",
        "loss measured",
        "reductions",
        "per 1000 lost",
        "segments/s",
        "to independent",
    ]);
    let mut independent = 0.0;
    for packets in [1.0, 2.0, 5.0, 10.0] {
        let mut path = Path::new(0, ns(0.05));
        if packets == 1.0 {
            path = path.loss(MEAN);
        } else {
            path.forward.loss.burst = Some(bursts(packets));
        }
        let mut alone = Alone::endless(&path, Control::Reno);
        alone.run_until_s(2_000.0);
        let counters = alone.world.counters(FORWARD);
        let measured = counters.loss_packets as f64 / counters.in_packets as f64;
        let rate = alone.delivered(100.0, 2_000.0);
        let reductions = alone.congestions(0.0).len();
        independent = if packets == 1.0 { rate } else { independent };
        table.row(&[
            packets.to_string(),
            figure(measured, 3),
            reductions.to_string(),
            format!("{:.0}", 1000.0 * reductions as f64 / counters.loss_packets as f64),
            figure(rate, 4),
            format!("{:.2}", rate / independent),
        ]);
        // Mean of some thousand bursts: one part in ten is three standard errors and more.
        assert_close(&format!("bursts of {packets}: loss"), measured, MEAN, 0.1);
        // One reduction per burst: the square root law with a rate of events that much smaller.
        assert_close(
            &format!("bursts of {packets}: rate"),
            rate,
            independent * packets.sqrt(),
            0.2,
        );
    }
    insta::assert_snapshot!("loss_bursts", table.text());
}
