//! What theory says of a blast: He et al. 2002, section 4, with the gaps of its model filled.

use libm::{ceil, log1p, pow};

/// Packets after which a passes' chance is none.
const NEVER: f64 = 1e-9;

/// Chance that a blast of `packets` is whole after `passes`, when each packet is lost by itself with chance `loss`:
/// (1 - L^k)^n. Equation 5 is the pass at which n L^k falls below one packet.
pub fn whole_after(packets: u64, loss: f64, passes: u32) -> f64 {
    if loss == 0.0 {
        return 1.0;
    }
    libm::exp(packets as f64 * log1p(-pow(loss, f64::from(passes))))
}

/// Mean number of passes: 1 and the sum of the chances that k were not enough.
pub fn mean_passes(packets: u64, loss: f64) -> f64 {
    let more = (1..).map(|passes| 1.0 - whole_after(packets, loss, passes));
    1.0 + more.take_while(|&chance| chance > NEVER).sum::<f64>()
}

/// What a blast in the paper's way did.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    /// Payload bytes sent, repetitions included.
    pub sent_bytes: f64,
    /// Payload rate.
    pub rate_bps: f64,
    /// Round-trip time.
    pub rtt_s: f64,
    /// How long the receiver waits before it reports.
    pub settle_s: f64,
    /// Bytes of each report.
    pub report_bytes: Vec<usize>,
}

impl Course {
    /// How long it should have taken (equation 1 with T_ack as TCP has it): sending, for each report a round trip, the
    /// settling time and the rounds that slow start adds, and the round trip of the last pass.
    pub fn time_s(&self) -> f64 {
        let reports = self.report_bytes.len() as f64;
        let rounds: f64 = extra_rounds(&self.report_bytes);
        8.0 * self.sent_bytes / self.rate_bps
            + reports * (self.rtt_s + self.settle_s)
            + (1.0 + rounds) * self.rtt_s
    }
}

/// Round trips beyond the first that messages take, one after the other, on a connection that starts with ten segments
/// of 1448 bytes and doubles.
fn extra_rounds(message_bytes: &[usize]) -> f64 {
    let mut window = 10.0;
    let mut rounds = 0.0;
    for &bytes in message_bytes {
        let mut left = ceil(bytes as f64 / 1448.0);
        while left > window {
            left -= window;
            window *= 2.0;
            rounds += 1.0;
        }
        window += left;
    }
    rounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distribution_is_that_of_the_references() {
        // 600 MB in packets of 1500 bytes at 7 %: resends are passes less 1.
        let chances = [4, 5, 6, 7].map(|passes| whole_after(400_000, 0.07, passes));
        for (chance, expected) in chances.into_iter().zip([0.0001, 0.5105, 0.9540, 0.9967]) {
            assert!((chance - expected).abs() < 1e-4, "{chance}");
        }
        assert!((mean_passes(400_000, 0.07) - 5.539).abs() < 1e-3);
        assert!((mean_passes(400_000, 0.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_bitmap_of_50_kb_takes_two_rounds_more_the_first_time_only() {
        assert_eq!(extra_rounds(&[50_000]), 2.0);
        assert_eq!(extra_rounds(&[50_000, 50_000]), 2.0);
        assert_eq!(extra_rounds(&[14_480, 14_480]), 0.0);
    }
}
