//! CUBIC (RFC 9438), with its Reno-friendly region and fast convergence.

use super::{AckEvent, CongestionControl};
use crate::seconds;

/// Steepness, in segments per second cubed (section 5: C).
pub(crate) const STEEPNESS: f64 = 0.4;

/// What is left after congestion (section 4.6: beta_cubic).
pub(crate) const BETA: f64 = 0.7;

/// Growth per round trip that makes Reno with [`BETA`] as fast as Reno (section 4.3: alpha_cubic).
pub(crate) const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// Congestion avoidance since the last congestion.
#[derive(Debug, Clone, Copy)]
struct Epoch {
    start_ns: u64,
    /// Time to reach `plateau` (K, equation 2).
    plateau_s: f64,
    /// W_max.
    plateau: f64,
    /// W_est, what Reno would have.
    estimate: f64,
}

/// A cubic function of the time since the last congestion, flat where that happened.
#[derive(Debug)]
pub struct Cubic {
    fast_convergence: bool,
    epoch: Option<Epoch>,
    /// W_max as the last congestion left it.
    plateau: Option<f64>,
    /// Window just before the last congestion (cwnd_prior).
    prior: f64,
}

impl Default for Cubic {
    fn default() -> Self {
        Self {
            fast_convergence: true,
            epoch: None,
            plateau: None,
            prior: 0.0,
        }
    }
}

impl Cubic {
    /// Without fast convergence, as section 4.7 wants it for a flow that is alone and as response functions assume.
    pub fn without_fast_convergence() -> Self {
        Self {
            fast_convergence: false,
            ..Self::default()
        }
    }

    fn begin(&self, now_ns: u64, window: f64) -> Epoch {
        let plateau = self.plateau.map_or(window, |plateau| plateau.max(window));
        Epoch {
            start_ns: now_ns,
            plateau_s: libm::cbrt((plateau - window) / STEEPNESS),
            plateau,
            estimate: window,
        }
    }

    /// W_est after an acknowledgement (section 4.3, equation 4).
    fn estimate(&self, epoch: &Epoch, window: f64, segments: f64) -> f64 {
        let alpha = if epoch.estimate >= self.prior { 1.0 } else { ALPHA };
        epoch.estimate + alpha * segments / window
    }
}

impl Epoch {
    /// W_cubic at `t_s` (section 4.2, equation 1).
    fn at(&self, t_s: f64) -> f64 {
        let from_plateau_s = t_s - self.plateau_s;
        STEEPNESS * from_plateau_s * from_plateau_s * from_plateau_s + self.plateau
    }
}

impl CongestionControl for Cubic {
    fn grow(&mut self, window: f64, event: &AckEvent<'_>) -> f64 {
        let mut epoch = self.epoch.unwrap_or_else(|| self.begin(event.now_ns, window));
        epoch.estimate = self.estimate(&epoch, window, event.segments);
        self.epoch = Some(epoch);
        let since_s = seconds(event.now_ns - epoch.start_ns);
        if epoch.at(since_s) < epoch.estimate {
            return epoch.estimate.max(window);
        }
        let ahead = epoch.at(since_s + seconds(event.rtt.smoothed_ns()));
        let target = ahead.clamp(window, 1.5 * window);
        (window + (target - window) * event.segments / window).min(target)
    }

    fn reduce(&mut self, _now_ns: u64, window: f64) -> f64 {
        let converging = self.fast_convergence && self.plateau.is_some_and(|plateau| window < plateau);
        self.plateau = Some(if converging {
            window * (1.0 + BETA) / 2.0
        } else {
            window
        });
        self.prior = window;
        self.epoch = None;
        window * BETA
    }

    fn restart(&mut self) {
        self.epoch = None;
    }
}
