//! HighSpeed TCP (RFC 3649).

use super::{AckEvent, CongestionControl};

/// Window up to which it is Reno, and the loss rate that goes with it (section 5: Low_Window, Low_P).
const LOW: (f64, f64) = (38.0, 1e-3);

/// Window and loss rate at the other end of the response function (High_Window, High_P).
const HIGH: (f64, f64) = (83_000.0, 1e-7);

/// Decrease at the largest window (High_Decrease).
const HIGH_DECREASE: f64 = 0.1;

/// Increase and decrease depend on the window such that w = 0.12 / p^0.835.
#[derive(Debug)]
pub struct HighSpeed;

/// How far `window` lies from the low to the high one, on a logarithmic scale.
fn position(window: f64) -> f64 {
    (libm::log(window) - libm::log(LOW.0)) / (libm::log(HIGH.0) - libm::log(LOW.0))
}

/// b(w): the share given up at congestion (section 5, equation 7).
pub fn decrease(window: f64) -> f64 {
    if window <= LOW.0 {
        return 0.5;
    }
    (HIGH_DECREASE - 0.5) * position(window) + 0.5
}

/// a(w): segments more per round trip (section 5), from the loss rate at which `window` is the average one.
pub fn increase(window: f64) -> f64 {
    if window <= LOW.0 {
        return 1.0;
    }
    let loss = libm::exp(libm::log(LOW.1) + position(window) * (libm::log(HIGH.1) - libm::log(LOW.1)));
    let decrease = decrease(window);
    (window * window * loss * 2.0 * decrease / (2.0 - decrease)).max(1.0)
}

impl CongestionControl for HighSpeed {
    fn grow(&mut self, window: f64, event: &AckEvent<'_>) -> f64 {
        window + increase(window) * event.segments / window
    }

    fn reduce(&mut self, _now_ns: u64, window: f64) -> f64 {
        window * (1.0 - decrease(window))
    }
}

#[cfg(test)]
mod tests {
    use super::{decrease, increase};

    /// Rows of the table in RFC 3649, appendix B: w, a(w), b(w).
    const ROWS: [(f64, f64, f64); 8] = [
        (38.0, 1.0, 0.50),
        (118.0, 2.0, 0.44),
        (221.0, 3.0, 0.41),
        (1_058.0, 8.0, 0.33),
        (5_036.0, 20.0, 0.25),
        (10_661.0, 30.0, 0.21),
        (15_265.0, 36.0, 0.19),
        (25_618.0, 46.0, 0.16),
    ];

    #[test]
    fn increase_and_decrease_are_those_of_the_rfcs_table() {
        for (window, a, b) in ROWS {
            assert!(
                (increase(window) - a).abs() < 1.1,
                "a({window}) = {}, {a}",
                increase(window)
            );
            assert!(
                (decrease(window) - b).abs() < 0.0151,
                "b({window}) = {}, {b}",
                decrease(window)
            );
        }
    }
}
