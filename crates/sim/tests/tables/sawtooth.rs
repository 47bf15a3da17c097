//! Reno's and CUBIC's sawtooth: period and loss per period against formula.

use farline_sim::formula::{Sawtooth, cubic_sawtooth, reno_sawtooth};
use farline_sim::scenario::Path;
use farline_sim::table::{Table, figure};
use farline_sim::tcp::SenderConfig;
use farline_sim::tcp::control::{CongestionControl, Cubic, Reno};
use farline_sim::{ns, seconds};

use crate::run::{Alone, SEGMENT_BYTES, assert_close, off};

/// Rate in bit/s and round trip in ms; the queue holds one bandwidth-delay product.
type Place = (u64, f64);

/// Reno's periods grow with the square of the window, which bounds what can be asked of it.
const RENO: [Place; 6] = [
    (10_000_000, 40.0),
    (10_000_000, 100.0),
    (100_000_000, 10.0),
    (100_000_000, 20.0),
    (1_000_000_000, 4.0),
    (1_000_000_000, 10.0),
];

/// The first three in CUBIC's Reno-friendly region, the others beyond.
const CUBIC: [Place; 6] = [
    (10_000_000, 40.0),
    (100_000_000, 10.0),
    (1_000_000_000, 4.0),
    (100_000_000, 50.0),
    (1_000_000_000, 40.0),
    (1_000_000_000, 100.0),
];

/// Mean time between reductions, reductions per segment, share of the rate used.
struct Measured {
    period_s: f64,
    events: usize,
    loss: f64,
    used: f64,
}

fn measure(path: &Path, control: Box<dyn CongestionControl>, expected: &Sawtooth) -> Measured {
    let (from_s, to_s) = (3.0 * expected.period_s, 10.0 * expected.period_s);
    let mut alone = Alone::new(path, control, SenderConfig::endless(SEGMENT_BYTES));
    alone.run_until_s(to_s);
    let events = alone.congestions(from_s);
    assert!(
        events.iter().all(|event| !event.timeout),
        "no time-out in steady state"
    );
    let span_s = seconds(events[events.len() - 1].at_ns - events[0].at_ns);
    let period_s = span_s / (events.len() - 1) as f64;
    let segments = alone.delivered(from_s, to_s) * period_s;
    Measured {
        period_s,
        events: events.len(),
        loss: 1.0 / segments,
        used: alone.used(from_s, to_s),
    }
}

fn table(
    places: &[Place],
    control: fn() -> Box<dyn CongestionControl>,
    formula: fn(f64, f64, f64) -> Sawtooth,
    tolerance: f64,
) -> String {
    let mut table = Table::new(&[
        "Mbit/s",
        "RTT ms",
        "events",
        "period s",
        "formula s",
        "off %",
        "loss rate",
        "formula",
        "off %",
        "used %",
        "formula %",
    ]);
    for &(rate_bps, rtt_ms) in places {
        let path = Path::new(rate_bps, ns(rtt_ms / 1000.0)).queue_bdp(1.0);
        let (bdp, rate) = (path.bdp_packets(SEGMENT_BYTES), path.packets_per_s(SEGMENT_BYTES));
        let expected = formula(bdp, bdp, rate);
        let measured = measure(&path, control(), &expected);
        let loss = 1.0 / expected.segments;
        table.row(&[
            (rate_bps / 1_000_000).to_string(),
            rtt_ms.to_string(),
            measured.events.to_string(),
            figure(measured.period_s, 4),
            figure(expected.period_s, 4),
            off(measured.period_s, expected.period_s),
            figure(measured.loss, 3),
            figure(loss, 3),
            off(measured.loss, loss),
            format!("{:.1}", 100.0 * measured.used),
            format!("{:.1}", 100.0 * expected.used),
        ]);
        let place = format!("{rate_bps} bit/s, {rtt_ms} ms");
        assert_close(
            &format!("{place}: period"),
            measured.period_s,
            expected.period_s,
            tolerance,
        );
        assert_close(&format!("{place}: loss rate"), measured.loss, loss, tolerance);
        assert_close(&format!("{place}: rate used"), measured.used, expected.used, 0.02);
    }
    table.text()
}

#[test]
fn renos_period_and_loss_rate_are_the_formulas_within_a_tenth() {
    insta::assert_snapshot!(
        "sawtooth_reno",
        table(&RENO, || Box::new(Reno), reno_sawtooth, 0.1)
    );
}

#[test]
fn cubics_period_and_loss_rate_are_the_formulas_within_an_eighth() {
    insta::assert_snapshot!(
        "sawtooth_cubic",
        table(
            &CUBIC,
            || Box::new(Cubic::without_fast_convergence()),
            cubic_sawtooth,
            0.125
        )
    );
}
