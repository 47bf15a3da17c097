//! The wire's clock: how long sending takes, without error in the long run.

use super::train::Train;

/// A byte at one bit per second takes this many nanoseconds: a rate times a time in nanoseconds, over this, is bytes.
pub(super) const BYTE_NS: u64 = 8_000_000_000;

/// When a wire of a given rate is free. What a nanosecond cannot express is carried over to the next packet.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Rate on the wire; 0 is without limit.
    rate_bps: u64,
    free_at_ns: u64,
    /// Part of a nanosecond past `free_at_ns`, in units of one over the rate.
    carry: u64,
}

impl Line {
    pub(super) fn new(rate_bps: u64) -> Self {
        Self {
            rate_bps,
            ..Self::default()
        }
    }

    pub(super) fn rate_bps(&self) -> u64 {
        self.rate_bps
    }

    /// When what was given to the wire has been sent.
    pub(super) fn free_at_ns(&self) -> u64 {
        self.free_at_ns
    }

    /// Sends `bytes` as soon as the wire is free but not before `ready_ns`; gives the end.
    pub(super) fn send(&mut self, ready_ns: u64, bytes: u64) -> u64 {
        self.free_from(ready_ns);
        let work = u128::from(bytes) * u128::from(BYTE_NS) + u128::from(self.carry);
        self.occupy(self.free_at_ns, work)
    }

    /// Nothing is sent before `ready_ns`; an idle wire starts afresh.
    pub(super) fn free_from(&mut self, ready_ns: u64) {
        if ready_ns > self.free_at_ns {
            (self.free_at_ns, self.carry) = (ready_ns, 0);
        }
    }

    /// The wire stops at `now_ns`, whatever it was sending.
    pub(super) fn stop(&mut self, now_ns: u64) {
        (self.free_at_ns, self.carry) = (now_ns, 0);
    }

    /// Changes the rate; what is left of the packet being sent goes at the new one. Gives its end.
    pub(super) fn set_rate(&mut self, now_ns: u64, rate_bps: u64) -> u64 {
        let old_bps = std::mem::replace(&mut self.rate_bps, rate_bps);
        if self.free_at_ns <= now_ns {
            self.carry = 0;
            return self.free_at_ns;
        }
        let left = u128::from(self.free_at_ns - now_ns) * u128::from(old_bps) + u128::from(self.carry);
        self.occupy(now_ns, left)
    }

    fn occupy(&mut self, from_ns: u64, work: u128) -> u64 {
        let (ns, carry) = match self.rate_bps {
            0 => (0, 0),
            rate => divide(work, rate),
        };
        (self.free_at_ns, self.carry) = (from_ns + ns, carry);
        self.free_at_ns
    }

    /// Bytes still to be sent at `now_ns`, a part of one as a whole.
    pub(super) fn bytes_left(&self, now_ns: u64) -> u64 {
        let left = u128::from(self.free_at_ns.saturating_sub(now_ns)) * u128::from(self.rate_bps);
        divide(left + u128::from(BYTE_NS - 1), BYTE_NS).0
    }

    /// How long `bytes` take, rounded down.
    pub(super) fn duration_ns(&self, bytes: u64) -> u64 {
        match self.rate_bps {
            0 => 0,
            rate => divide(u128::from(bytes) * u128::from(BYTE_NS), rate).0,
        }
    }

    /// How many segments of a train go in one piece: as many as fit into `piece_ns`, and at least one.
    pub(super) fn piece<P>(&self, train: &Train<P>, framing_bytes: u64, piece_ns: u64) -> u16 {
        let segment = (u64::from(train.segment_bytes) + framing_bytes) * BYTE_NS;
        if self.rate_bps == 0 || train.segments == 1 || segment == 0 {
            return train.segments;
        }
        let (count, _) = divide(u128::from(piece_ns) * u128::from(self.rate_bps), segment);
        count.clamp(1, u64::from(train.segments)) as u16
    }
}

/// Quotient and remainder; the division of 64 bits, which nearly always does, is several times faster.
fn divide(work: u128, by: u64) -> (u64, u64) {
    match u64::try_from(work) {
        Ok(work) => (work / by, work % by),
        Err(_) => ((work / u128::from(by)) as u64, (work % u128::from(by)) as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_rates_have_no_error_after_a_million_packets() {
        for rate_bps in [622_000_000, 9_000_000_000, 999_999_937] {
            let mut line = Line::new(rate_bps);
            for _ in 0..1_000_000 {
                line.send(0, 1538);
            }
            let exact = 1_000_000 * 1538 * u128::from(BYTE_NS) / u128::from(rate_bps);
            assert_eq!(u128::from(line.free_at_ns()), exact, "{rate_bps} bit/s");
        }
    }

    #[test]
    fn an_idle_wire_keeps_nothing_of_the_past() {
        let mut line = Line::new(3_000_000_000);
        assert_eq!(line.send(0, 1), 2);
        assert_eq!(line.send(10, 1), 12);
        assert_eq!(line.send(0, 1), 15, "2/3 + 2/3 of a nanosecond");
    }

    #[test]
    fn a_new_rate_holds_for_what_is_left() {
        let mut line = Line::new(1_000_000_000);
        assert_eq!(line.send(0, 1_000), 8_000);
        assert_eq!(line.set_rate(4_000, 500_000_000), 12_000);
        assert_eq!(line.bytes_left(10_000), 125);
        assert_eq!(line.set_rate(8_000, 0), 8_000);
    }

    #[test]
    fn pieces_have_one_segment_or_fit_the_time() {
        let train = Train::uniform((), 44, 1462);
        let piece = |rate_bps| Line::new(rate_bps).piece(&train, 38, 100_000);
        assert_eq!(piece(100_000_000), 1, "120 us each");
        assert_eq!(piece(1_000_000_000), 8, "12 us each");
        assert_eq!(piece(10_000_000_000), 44);
        assert_eq!(piece(0), 44);
    }
}
