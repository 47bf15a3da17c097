//! Growth of the window after one loss on a path of constant round-trip time.

use farline_sim::formula::htcp_window;
use farline_sim::scenario::Path;
use farline_sim::table::{Table, figure};
use farline_sim::tcp::SenderConfig;
use farline_sim::tcp::control::Control;
use farline_sim::{ns, seconds};

use crate::run::{Alone, SEGMENT_BYTES, assert_close, off};

const RTT_S: f64 = 0.05;

/// A flow at 1000 segments that loses its 20,000th packet and none else; the path has no rate and no queue.
fn one_loss(control: Control) -> Alone {
    let mut path = Path::new(0, ns(RTT_S));
    path.forward.loss.packets = vec![20_000];
    let config = SenderConfig {
        initial_window_segments: 1_000.0,
        initial_threshold_segments: 1_000.0,
        ..SenderConfig::endless(SEGMENT_BYTES)
    };
    Alone::new(&path, control.build(), config)
}

/// Window at each of `times_s` after the loss was seen, and the window it was reduced to.
fn windows(control: Control, times_s: &[f64]) -> (f64, Vec<f64>) {
    let mut alone = one_loss(control);
    alone.run_until_s(1.2);
    let loss = alone.congestions(0.0)[0];
    let at = |time_s: &f64| {
        alone.run_until_s(seconds(loss.at_ns) + time_s);
        alone.flow.sending(&alone.world).window_segments()
    };
    let windows = times_s.iter().map(at).collect();
    (loss.after_segments, windows)
}

#[test]
fn htcps_window_grows_by_its_formula_within_a_twentieth() {
    let times_s = [1.0, 2.0, 3.0, 5.0, 10.0, 20.0];
    let (start, windows) = windows(Control::Htcp, &times_s);
    let mut table = Table::new(&["s after loss", "grown by", "formula", "off %"]);
    for (time_s, window) in times_s.iter().zip(windows) {
        // The round trip of recovery does not grow the window: 1 segment less by the formula's first second.
        let formula = htcp_window(start, 0.5, RTT_S, *time_s) - start - 1.0;
        table.row(&[
            time_s.to_string(),
            figure(window - start, 4),
            figure(formula, 4),
            off(window - start, formula),
        ]);
        assert_close(&format!("{time_s} s"), window - start, formula, 0.05);
    }
    insta::assert_snapshot!("growth_htcp", table.text());
}

#[test]
fn cubics_window_follows_its_cubic_function_within_a_fiftieth() {
    let times_s = [1.0, 3.0, 5.0, 8.0, 10.0, 12.0, 15.0];
    let (start, windows) = windows(Control::Cubic, &times_s);
    let full = start / 0.7;
    let plateau_s = f64::cbrt(0.3 * full / 0.4);
    let mut table = Table::new(&["s after loss", "window", "0.4(t-K)^3+Wmax", "off %"]);
    for (time_s, window) in times_s.iter().zip(windows) {
        // Congestion avoidance begins a round trip after the loss is seen; each window is the function a round trip
        // ahead, reached a round trip later (RFC 9438, section 4.4).
        let formula = 0.4 * (time_s - RTT_S - plateau_s).powi(3) + full;
        table.row(&[
            time_s.to_string(),
            figure(window, 5),
            figure(formula, 5),
            off(window, formula),
        ]);
        assert_close(&format!("{time_s} s"), window, formula, 0.02);
    }
    insta::assert_snapshot!("growth_cubic", table.text());
}

/// Segments gained from 5 s to 6 s after the loss, beyond recovery and beyond H-TCP's first second.
#[test]
fn htcp_outgrows_reno_by_far_and_reno_gains_a_segment_per_round_trip() {
    let gain = |control| {
        let (_, windows) = windows(control, &[5.0, 6.0]);
        windows[1] - windows[0]
    };
    assert_close("reno", gain(Control::Reno), 1.0 / RTT_S, 0.06);
    assert!(gain(Control::Htcp) > 10.0 * gain(Control::Reno));
}
