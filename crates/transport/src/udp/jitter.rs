//! Interarrival jitter after RFC 3550, section 6.4.1.
//!
//! The RFC's estimate takes one step per packet. Datagrams of one batch are sent and received by one call
//! each and carry one time stamp; counted singly they would say nothing new 43 times out of 44 and draw the
//! mean towards zero. The estimate therefore takes one step per time stamp.

/// Smoothed difference of transit times. Only differences count, so the two clocks need not agree.
#[derive(Debug, Clone, Default)]
pub(super) struct Jitter {
    last: Option<(u64, u64)>,
    /// Sixteen times the estimate, as RFC 3550, appendix A.8 keeps it.
    scaled_ns: u64,
}

impl Jitter {
    /// Takes note of a datagram sent at `sent_ns` and received at `received_ns`.
    #[inline]
    pub(super) fn observe(&mut self, sent_ns: u64, received_ns: u64) {
        match self.last {
            // A late one of an earlier batch says how it was delayed, not how transit times vary.
            Some((sent_before, _)) if sent_ns <= sent_before => return,
            Some((sent_before, received_before)) => {
                let apart_ns = received_ns.wrapping_sub(received_before) as i64;
                let difference_ns = apart_ns
                    .wrapping_sub_unsigned(sent_ns - sent_before)
                    .unsigned_abs();
                self.scaled_ns = (self.scaled_ns - (self.scaled_ns + 8) / 16).saturating_add(difference_ns);
            }
            None => {}
        }
        self.last = Some((sent_ns, received_ns));
    }

    /// The estimate.
    pub(super) fn get_ns(&self) -> u64 {
        self.scaled_ns / 16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_transit_has_no_jitter_whatever_the_clocks() {
        let mut jitter = Jitter::default();
        for step in 0..1000u64 {
            jitter.observe(step * 1_000, u64::MAX / 2 + step * 1_000);
        }
        assert_eq!(jitter.get_ns(), 0);
    }

    #[test]
    fn alternating_delay_converges_to_its_difference() {
        let mut jitter = Jitter::default();
        for step in 1..1000u64 {
            jitter.observe(step * 100_000, step * 100_000 + (step % 2) * 8_000);
        }
        assert!((7_900..=8_100).contains(&jitter.get_ns()), "{}", jitter.get_ns());
    }

    #[test]
    fn datagrams_of_one_batch_count_once() {
        let (mut once, mut often) = (Jitter::default(), Jitter::default());
        for step in 1..100u64 {
            let (sent, received) = (step * 100_000, step * 100_000 + (step % 3) * 5_000);
            once.observe(sent, received);
            (0..44).for_each(|_| often.observe(sent, received));
        }
        assert_eq!(once.get_ns(), often.get_ns());
    }

    #[test]
    fn hostile_times_do_no_harm() {
        let mut jitter = Jitter::default();
        for (sent, received) in [(0, u64::MAX), (u64::MAX, 0), (5, 5), (u64::MAX, u64::MAX)] {
            jitter.observe(sent, received);
        }
        let _ = jitter.get_ns();
    }
}
