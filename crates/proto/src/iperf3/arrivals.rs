//! What a receiver of datagrams counts, as iperf3 does, so that both ends mean the same by a figure.

use super::datagram::Header;

/// Counts of one stream. All but the jitter run from the start of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Arrivals {
    /// Highest number that came.
    pub packets: u64,
    /// Numbers that were passed over and have not come since.
    pub errors: u64,
    /// Datagrams that came after one with a higher number.
    pub out_of_order: u64,
    /// Smoothed difference of transit times (RFC 3550, appendix A.8), in microseconds.
    pub jitter_us: f64,
    transit_us: Option<i64>,
}

impl Arrivals {
    /// Takes note of a datagram. A number further ahead than 2^62 is no number of a datagram.
    pub fn observe(&mut self, header: Header, arrived_us: u64) {
        if header.number > self.packets {
            let jump = header.number - self.packets;
            if jump > 1 << 62 {
                return;
            }
            self.errors = self.errors.saturating_add(jump - 1);
            self.packets = header.number;
        } else {
            self.out_of_order += 1;
            self.errors = self.errors.saturating_sub(1);
        }
        // The clocks need not agree: only differences count, and they wrap together.
        let transit_us = arrived_us.wrapping_sub(header.sent_us) as i64;
        let before_us = self.transit_us.replace(transit_us).unwrap_or(transit_us);
        let difference_us = transit_us.wrapping_sub(before_us).unsigned_abs() as f64;
        self.jitter_us += (difference_us - self.jitter_us) / 16.0;
    }

    /// Forgets the jitter: what came so far does not count.
    pub fn forget_jitter(&mut self) {
        (self.jitter_us, self.transit_us) = (0.0, None);
    }
}
