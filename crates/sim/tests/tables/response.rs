//! Response functions: the mean window against the rate of loss, on a path that nothing else limits.
//!
//! The path has no rate and no queue, so each round trip is one burst and the mean window is the delivery rate times
//! the round-trip time. Periodic loss takes exactly every n-th packet; formulas for it are exact but for whole round trips.

use farline_sim::formula::{RENO_RANDOM, cubic_window, highspeed_window, reno_window, scalable_window};
use farline_sim::scenario::Path;
use farline_sim::table::{Table, figure};
use farline_sim::tcp::SenderConfig;
use farline_sim::tcp::control::{CongestionControl, Cubic, HighSpeed, Reno, Scalable};
use farline_sim::{ns, seconds};
use farline_spec::unit::QueuePackets;

use crate::run::{Alone, SEGMENT_BYTES, assert_close, off};

/// Mean of CUBIC's window over its largest: (3 + beta) / 4.
const CUBIC_MEAN: f64 = 0.925;

/// Mean window over `epochs` losses, the first eighth left out. A loss right at the start leaves the flow about where
/// it ends up: CUBIC's plateau comes to its final place by less and less in each epoch, and would need hundreds.
fn mean_window(
    path: Path,
    control: Box<dyn CongestionControl>,
    expected: f64,
    loss: f64,
    epochs: f64,
) -> f64 {
    let config = SenderConfig {
        train_segments: 1_000,
        ..SenderConfig::endless(SEGMENT_BYTES)
    };
    let full = expected / CUBIC_MEAN;
    let config = SenderConfig {
        initial_window_segments: full,
        initial_threshold_segments: full,
        ..config
    };
    let mut path = path;
    path.forward.loss.packets = vec![2 * full as u64];
    let mut alone = Alone::new(&path, control, config);
    let end_s = epochs / (loss * expected) * seconds(path.rtt_ns);
    alone.run_until_s(end_s);
    alone.delivered(end_s / 8.0, end_s) * seconds(path.rtt_ns)
}

fn every(path: Path, loss: f64) -> Path {
    let mut path = path;
    let packets = (1.0 / loss).round() as u64;
    path.forward.loss.every = Some(QueuePackets::new(packets).expect("within the spec's range"));
    path
}

#[test]
fn renos_mean_window_is_the_square_root_law_within_a_tenth() {
    let mut table = Table::new(&[
        "loss",
        "random",
        "1.31/sqrt(p)",
        "off %",
        "periodic",
        "formula",
        "off %",
    ]);
    for (loss, epochs) in [
        (1e-2, 4_000.0),
        (1e-3, 2_000.0),
        (1e-4, 1_000.0),
        (1e-5, 400.0),
        (1e-6, 120.0),
    ] {
        let path = Path::new(0, ns(0.1));
        let formula = RENO_RANDOM / f64::sqrt(loss);
        let random = mean_window(path.clone().loss(loss), Box::new(Reno), formula, loss, epochs);
        let exact = reno_window(loss);
        let periodic = mean_window(every(path, loss), Box::new(Reno), exact, loss, 60.0);
        table.row(&[
            figure(loss, 1),
            figure(random, 4),
            figure(formula, 4),
            off(random, formula),
            figure(periodic, 4),
            figure(exact, 4),
            off(periodic, exact),
        ]);
        assert_close(&format!("random loss of {loss}"), random, formula, 0.1);
        assert_close(&format!("periodic loss of {loss}"), periodic, exact, 0.06);
    }
    insta::assert_snapshot!("response_reno", table.text());
}

/// Table of one control's mean window under periodic loss.
fn table(
    control: fn() -> Box<dyn CongestionControl>,
    rtt_s: f64,
    losses: &[f64],
    formula: impl Fn(f64) -> f64,
    tolerance: f64,
) -> String {
    let mut table = Table::new(&["loss", "window", "formula", "off %"]);
    for &loss in losses {
        let expected = formula(loss);
        let path = every(Path::new(0, ns(rtt_s)), loss);
        let window = mean_window(path, control(), expected, loss, 60.0);
        table.row(&[
            figure(loss, 1),
            figure(window, 4),
            figure(expected, 4),
            off(window, expected),
        ]);
        assert_close(&format!("loss of {loss}"), window, expected, tolerance);
    }
    table.text()
}

/// The formula knows nothing of fast convergence.
fn plain_cubic() -> Box<dyn CongestionControl> {
    Box::new(Cubic::without_fast_convergence())
}

#[test]
fn cubics_mean_window_is_that_of_rfc_9438_within_a_tenth() {
    let losses = [1e-3, 1e-4, 1e-5, 1e-6];
    let long = table(plain_cubic, 0.1, &losses, |loss| cubic_window(loss, 0.1), 0.1);
    insta::assert_snapshot!("response_cubic_100_ms", long);
    let short = table(plain_cubic, 0.01, &losses, |loss| cubic_window(loss, 0.01), 0.1);
    insta::assert_snapshot!("response_cubic_10_ms", short);
}

#[test]
fn highspeeds_mean_window_is_that_of_rfc_3649_within_a_seventh() {
    let losses = [1e-3, 1e-4, 1e-5, 1e-6];
    insta::assert_snapshot!(
        "response_highspeed",
        table(|| Box::new(HighSpeed), 0.1, &losses, highspeed_window, 0.15)
    );
}

#[test]
fn scalables_mean_window_is_seven_hundredths_over_loss_within_a_fourteenth() {
    let losses = [1e-3, 1e-4, 1e-5, 1e-6];
    insta::assert_snapshot!(
        "response_scalable",
        table(|| Box::new(Scalable), 0.1, &losses, scalable_window, 0.07)
    );
}
