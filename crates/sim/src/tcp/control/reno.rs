//! Reno: one segment more per round trip, half after congestion (RFC 5681, 3.1; RFC 6582).

use super::{AckEvent, CongestionControl};

/// Additive increase by 1, multiplicative decrease by half.
#[derive(Debug)]
pub struct Reno;

impl CongestionControl for Reno {
    fn grow(&mut self, window: f64, event: &AckEvent<'_>) -> f64 {
        window + event.segments / window
    }

    fn reduce(&mut self, _now_ns: u64, window: f64) -> f64 {
        window / 2.0
    }
}
