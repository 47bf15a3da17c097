//! The stated rate whatever happens: for paths that belong to one sender alone.

use super::{AckEvent, Control, LossEvent};

/// No window, one rate.
#[derive(Debug)]
pub(super) struct Fixed {
    rate_pps: Option<f64>,
}

impl Fixed {
    pub(super) fn new(rate_pps: Option<f64>) -> Self {
        Self { rate_pps }
    }
}

impl Control for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn on_ack(&mut self, _ack: &AckEvent) {}

    fn on_loss(&mut self, _loss: &LossEvent) {}

    fn on_timeout(&mut self, _now_ns: u64, _in_flight: u64) {}

    fn window_packets(&self) -> f64 {
        f64::INFINITY
    }

    fn rate_pps(&self) -> Option<f64> {
        self.rate_pps
    }
}
