//! Scalable TCP (Kelly 2003, "Scalable TCP: improving performance in highspeed wide area networks").

use super::{AckEvent, CongestionControl};

/// Window below which it behaves as Reno (section 3.2 of the paper: the legacy window).
const LEGACY_SEGMENTS: f64 = 16.0;

/// A hundredth of a segment more per segment acknowledged.
pub(crate) const INCREASE: f64 = 0.01;

/// An eighth less after congestion.
pub(crate) const DECREASE: f64 = 0.125;

/// Multiplicative increase, multiplicative decrease: recovery takes the same number of round trips at every rate.
#[derive(Debug)]
pub struct Scalable;

impl CongestionControl for Scalable {
    fn grow(&mut self, window: f64, event: &AckEvent<'_>) -> f64 {
        if window <= LEGACY_SEGMENTS {
            return window + event.segments / window;
        }
        window + INCREASE * event.segments
    }

    fn reduce(&mut self, _now_ns: u64, window: f64) -> f64 {
        if window <= LEGACY_SEGMENTS {
            window / 2.0
        } else {
            window * (1.0 - DECREASE)
        }
    }
}
