//! What theory expects of a flow, with its source.
//!
//! Windows are in segments, `loss` is the probability per segment, rates are in segments per second. All hold for one
//! acknowledgement per segment.

use crate::tcp::control;

/// Constant of Reno's window sqrt(3 / 2) / sqrt(loss) when exactly every (1 / loss)-th segment is lost
/// (Mathis, Semke, Mahdavi, Ott 1997, equation 3).
pub const RENO_PERIODIC: f64 = 1.224_744_871_391_589;

/// The same constant when losses are independent (Ott, Kemperman, Mathis 1996, "The stationary behavior of ideal TCP
/// congestion avoidance"): the mean is larger since long gaps weigh more than short ones.
pub const RENO_RANDOM: f64 = 1.309_8;

/// Reno's mean window under periodic loss with the round trip of recovery, in which the window does not grow: of
/// W / 2 + 1 round trips, 3 W^2 / 8 segments are sent in the first W / 2 and W / 2 in the last.
pub fn reno_window(loss: f64) -> f64 {
    let full = (-0.5 + (0.25 + 1.5 / loss).sqrt()) / 0.75;
    1.0 / loss / (full / 2.0 + 1.0)
}

/// Jain's index of fairness: 1 when all are alike, 1/n when one has all (Jain, Chiu, Hawe 1984).
pub fn jain(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    sum * sum / (rates.len() as f64 * squares)
}

/// One sawtooth of a flow alone on a drop-tail path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sawtooth {
    /// Time from one congestion to the next.
    pub period_s: f64,
    /// Segments sent in it.
    pub segments: f64,
    /// Share of the path's rate that is used.
    pub used: f64,
}

/// Additive increase by `alpha` per round trip from `beta` of the full window to the full one.
///
/// `bdp` is the bandwidth-delay product and `queue` the capacity of the queue, in segments. Up to `bdp` a round trip
/// takes the base time, beyond it W / rate, as the queue then holds what is over. The round trip of recovery, in which
/// the window does not grow and what is over drains, comes on top: with the full window's round-trip time and the
/// reduced window's segments.
pub fn aimd_sawtooth(alpha: f64, beta: f64, bdp: f64, queue: f64, rate: f64) -> Sawtooth {
    let full = bdp + queue;
    let low = beta * full;
    let knee = low.max(bdp);
    let round_s = bdp / rate;
    let growing_s = ((knee - low) * round_s + (full * full - knee * knee) / (2.0 * rate)) / alpha;
    let recovery_s = low.max(bdp) / rate;
    let segments = (full * full - low * low) / (2.0 * alpha) + low;
    let period_s = growing_s + recovery_s;
    Sawtooth {
        period_s,
        segments,
        used: (segments / (rate * period_s)).min(1.0),
    }
}

/// Reno's sawtooth (RFC 5681).
pub fn reno_sawtooth(bdp: f64, queue: f64, rate: f64) -> Sawtooth {
    aimd_sawtooth(1.0, 0.5, bdp, queue, rate)
}

/// CUBIC's sawtooth: that of its Reno-friendly region (RFC 9438, section 4.3) or the time K in which the cubic
/// function comes back to the window of the last congestion (equation 2), whichever is shorter.
///
/// The cubic part holds for queues of at least `bdp * (1 / 0.7 - 1)`, with which the path stays full.
pub fn cubic_sawtooth(bdp: f64, queue: f64, rate: f64) -> Sawtooth {
    let friendly = aimd_sawtooth(control::CUBIC_ALPHA, control::CUBIC_BETA, bdp, queue, rate);
    let full = bdp + queue;
    let plateau_s = libm::cbrt((1.0 - control::CUBIC_BETA) * full / control::CUBIC_STEEPNESS);
    let period_s = plateau_s + control::CUBIC_BETA * full / rate;
    if friendly.period_s <= period_s {
        return friendly;
    }
    Sawtooth {
        period_s,
        segments: rate * period_s,
        used: 1.0,
    }
}

/// CUBIC's mean window under periodic loss (RFC 9438, section 5.1, equation 5), at least that of Reno.
pub fn cubic_window(loss: f64, rtt_s: f64) -> f64 {
    let beta = control::CUBIC_BETA;
    let factor = libm::pow(
        control::CUBIC_STEEPNESS * (3.0 + beta) / (4.0 * (1.0 - beta)),
        0.25,
    );
    (factor * libm::pow(rtt_s / loss, 0.75)).max(RENO_PERIODIC / loss.sqrt())
}

/// HighSpeed TCP's mean window (RFC 3649, section 5, equation 5), at least that of Reno.
pub fn highspeed_window(loss: f64) -> f64 {
    (0.12 / libm::pow(loss, 0.835)).max(RENO_PERIODIC / loss.sqrt())
}

/// Scalable TCP's mean window under periodic loss.
///
/// Each of the 1 / loss segments between two losses but those of the round trip of recovery, (1 - b) W of them, adds
/// a; congestion takes b W: W = a / loss / (b + a (1 - b)), the paper's a / (b loss) but for recovery. Growth is
/// exponential, so the mean over time is (W - (1 - b) W) / ln(1 / (1 - b)).
pub fn scalable_window(loss: f64) -> f64 {
    let (a, b) = (control::SCALABLE_INCREASE, control::SCALABLE_DECREASE);
    let full = a / loss / (b + a * (1.0 - b));
    full * b / libm::log(1.0 / (1.0 - b))
}

/// H-TCP's window `since_s` after congestion left it at `window`, on a path of constant round-trip time: the integral
/// of 2 (1 - beta) alpha(t) / RTT, in steps of a millisecond.
pub fn htcp_window(window: f64, beta: f64, rtt_s: f64, since_s: f64) -> f64 {
    let steps = (since_s * 1000.0).round() as u64;
    let growth = (0..steps).map(|step| {
        let alpha = control::htcp_increase((step as f64 + 0.5) / 1000.0) * control::htcp_rtt_scale(rtt_s);
        2.0 * (1.0 - beta) * alpha.max(1.0) / rtt_s / 1000.0
    });
    window + growth.sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(value: f64, expected: f64, share: f64) -> bool {
        (value / expected - 1.0).abs() < share
    }

    #[test]
    fn jains_index_of_known_shares() {
        assert!(close(jain(&[9.0, 1.0]), 0.609_756, 1e-5));
        assert!(close(jain(&[200.0, 160.0, 110.0, 95.0, 150.0]), 0.936_095, 1e-5));
        assert_eq!(jain(&[5.0, 5.0]), 1.0);
    }

    #[test]
    fn cubics_window_is_that_of_the_rfcs_tables() {
        for (loss, rtt_s, window) in [
            (1e-4, 0.1, 187.0),
            (1e-6, 0.1, 5926.0),
            (1e-8, 0.1, 187_400.0),
            (1e-8, 0.01, 33_325.0),
        ] {
            assert!(close(cubic_window(loss, rtt_s), window, 0.01), "{loss} {rtt_s}");
        }
        assert!(
            close(cubic_window(1e-2, 0.01), 12.2, 0.01),
            "Reno's where that is larger"
        );
    }

    #[test]
    fn renos_use_of_a_path_without_a_queue_is_three_quarters() {
        let bare = reno_sawtooth(1e6, 0.0, 1e6);
        assert!(close(bare.used, 0.75, 1e-3), "{bare:?}");
        let one = reno_sawtooth(1000.0, 1000.0, 10_000.0);
        assert!(
            close(one.used, 1.0, 1e-3) && close(one.period_s, 150.1, 1e-3),
            "{one:?}"
        );
    }

    #[test]
    fn scalables_window_is_seven_and_a_half_segments_per_percent_of_loss() {
        assert!(
            close(scalable_window(1e-4), 700.0, 0.01),
            "{}",
            scalable_window(1e-4)
        );
    }

    #[test]
    fn htcps_window_after_three_seconds() {
        // 10 rounds of 1, then 1 + 10 u + u^2 / 4 integrated over u in 0..2, times 10 rounds per second.
        let expected = 1000.0 + 10.0 + 10.0 * (2.0 + 20.0 + 8.0 / 12.0);
        assert!(close(htcp_window(1000.0, 0.5, 0.1, 3.0), expected, 1e-5));
    }
}
