//! How fast packets arrive: rate samples from bursts sent and acknowledgements received.
//!
//! After draft-cheng-iccrg-delivery-rate-estimation, with bursts instead of packets as the unit that carries a
//! snapshot. An acknowledgement of UDT does not name what arrived out of order, it counts it at best; therefore
//! transmissions are taken as resolved (arrived or lost) in the order of their sending: so many are resolved as are
//! not under way any more.

use std::collections::VecDeque;

/// A measured rate of delivery.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateSample {
    /// Packets that arrived per second.
    pub pps: f64,
    /// Round-trip time of the newest packet resolved, or what the caller measured if that is shorter.
    pub rtt_ns: Option<u64>,
    /// Whether the sender had nothing to send for part of the time, so that the path may be faster.
    pub is_app_limited: bool,
    /// Round trips since the start, counted by packets.
    pub round: u64,
    /// Packets under way when the burst of the sample went, it included.
    pub prior_in_flight: u64,
    /// Packets marked lost since then.
    pub lost_packets: u64,
}

/// A burst under way, and what was known when it went.
#[derive(Debug, Clone, Copy)]
struct Sent {
    /// Transmissions up to and with this burst.
    end: u64,
    sent_ns: u64,
    /// When the burst went that had last been resolved then.
    first_sent_ns: u64,
    delivered: u64,
    delivered_ns: u64,
    lost: u64,
    in_flight: u64,
    is_app_limited: bool,
}

/// The state of the estimation.
#[derive(Debug)]
pub struct Delivery {
    bursts: VecDeque<Sent>,
    transmitted: u64,
    in_flight: u64,
    /// Packets that a sending knew to be lost and no acknowledgement has counted yet.
    lost_ahead: u64,
    delivered: u64,
    delivered_ns: u64,
    lost: u64,
    first_sent_ns: u64,
    /// Until so many have arrived, what is under way was sent with a gap in it; 0: no gap.
    app_limited_until: u64,
    round: u64,
    round_end: u64,
    latest_pps: f64,
}

impl Delivery {
    /// Before the first packet, at `now_ns`.
    pub fn new(now_ns: u64) -> Self {
        Self {
            bursts: VecDeque::new(),
            transmitted: 0,
            in_flight: 0,
            lost_ahead: 0,
            delivered: 0,
            delivered_ns: now_ns,
            lost: 0,
            first_sent_ns: now_ns,
            app_limited_until: 0,
            round: 0,
            round_end: 0,
            latest_pps: 0.0,
        }
    }

    /// A burst of `packets` went; `in_flight` packets were under way without it.
    /// `is_app_limited`: there was nothing more to send after it, although more was allowed.
    pub fn on_sent(&mut self, now_ns: u64, packets: u64, in_flight: u64, is_app_limited: bool) {
        if in_flight == 0 {
            // What was sent before is resolved; a pause does not count as time it took to deliver.
            self.bursts.clear();
            self.first_sent_ns = now_ns;
            self.delivered_ns = now_ns;
        }
        self.transmitted += packets;
        self.lost_ahead += self.in_flight.saturating_sub(in_flight);
        self.in_flight = in_flight + packets;
        if is_app_limited {
            self.app_limited_until = (self.delivered + self.in_flight).max(1);
        }
        self.bursts.push_back(Sent {
            end: self.transmitted,
            sent_ns: now_ns,
            first_sent_ns: self.first_sent_ns,
            delivered: self.delivered,
            delivered_ns: self.delivered_ns,
            lost: self.lost,
            in_flight: self.in_flight,
            is_app_limited: self.app_limited_until > 0,
        });
        self.forget_resolved();
    }

    /// An acknowledgement, on a path whose least round-trip time is `min_rtt_ns`: so many packets have arrived and
    /// were marked lost since the start. Nothing if it brings no news.
    pub fn on_ack(
        &mut self,
        now_ns: u64,
        delivered_total: u64,
        lost_total: u64,
        rtt_ns: Option<u64>,
        min_rtt_ns: u64,
    ) -> Option<RateSample> {
        let arrived = delivered_total.saturating_sub(self.delivered);
        let lost = lost_total.saturating_sub(self.lost);
        let unknown = lost.saturating_sub(std::mem::take(&mut self.lost_ahead));
        self.in_flight = self.in_flight.saturating_sub(arrived + unknown);
        self.lost += lost;
        self.forget_resolved();
        if arrived == 0 {
            return None;
        }
        self.delivered = delivered_total;
        self.delivered_ns = now_ns;
        if self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        let newest = *self.bursts.front()?;
        self.first_sent_ns = newest.sent_ns;
        if newest.delivered >= self.round_end {
            self.round_end = self.delivered;
            self.round += 1;
        }
        let sample = self.sample(now_ns, &newest, rtt_ns, min_rtt_ns);
        self.latest_pps = sample.map_or(self.latest_pps, |sample| sample.pps);
        sample
    }

    /// The rate that was measured last; 0 before the first.
    pub fn latest_pps(&self) -> f64 {
        self.latest_pps
    }

    /// The rate over the longer of two times: that in which the packets went and that in which they were
    /// acknowledged, so that neither a burst of sending nor one of acknowledgements looks like a fast path.
    fn sample(&self, now_ns: u64, newest: &Sent, rtt_ns: Option<u64>, min_rtt_ns: u64) -> Option<RateSample> {
        let sending_ns = newest.sent_ns.saturating_sub(newest.first_sent_ns);
        let acking_ns = now_ns.saturating_sub(newest.delivered_ns);
        let interval_ns = sending_ns.max(acking_ns);
        // Less than a round trip: what arrives was sent before this burst, and was wrongly taken for lost.
        if interval_ns == 0 || interval_ns < min_rtt_ns {
            return None;
        }
        let newest_ns = now_ns.saturating_sub(newest.sent_ns);
        Some(RateSample {
            pps: (self.delivered - newest.delivered) as f64 * 1e9 / interval_ns as f64,
            rtt_ns: Some(rtt_ns.map_or(newest_ns, |rtt_ns| rtt_ns.min(newest_ns))),
            is_app_limited: newest.is_app_limited,
            round: self.round,
            prior_in_flight: newest.in_flight,
            lost_packets: self.lost - newest.lost,
        })
    }

    /// Drops bursts that are resolved before the one with the transmission that was resolved last.
    fn forget_resolved(&mut self) {
        let resolved = self.transmitted - self.in_flight.min(self.transmitted);
        while self.bursts.len() > 1 && self.bursts[0].end < resolved {
            self.bursts.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    /// Bursts of 10 packets, one each millisecond; the first at 0.
    fn bursts(delivery: &mut Delivery, from: u64, to: u64) {
        for burst in from..to {
            let in_flight = delivery.transmitted - delivery.delivered - delivery.lost;
            delivery.on_sent(burst * MS, 10, in_flight, false);
        }
    }

    #[test]
    fn a_steady_flow_is_measured_at_its_rate() {
        let mut delivery = Delivery::new(0);
        bursts(&mut delivery, 0, 20);
        for burst in 0..50 {
            let now_ns = (burst + 20) * MS;
            let sample = delivery.on_ack(now_ns, (burst + 1) * 10, 0, None, 0);
            let sample = sample.expect("news");
            if burst >= 20 {
                assert_eq!(sample.pps, 10_000.0);
                assert_eq!(sample.rtt_ns, Some(20 * MS));
                assert_eq!(sample.prior_in_flight, 200);
            }
            bursts(&mut delivery, burst + 20, burst + 21);
        }
        assert_eq!(delivery.latest_pps(), 10_000.0);
        assert!((2..=4).contains(&delivery.round), "{}", delivery.round);
    }

    #[test]
    fn acknowledgements_that_come_at_once_do_not_look_like_a_fast_path() {
        let mut delivery = Delivery::new(0);
        bursts(&mut delivery, 0, 20);
        delivery.on_ack(20 * MS, 10, 0, None, 0);
        // The other nineteen bursts' within a microsecond of each other, when the last of them has arrived.
        for burst in 1..20 {
            let now_ns = 40 * MS + burst * 1_000;
            let total = (burst + 1) * 10;
            let sample = delivery.on_ack(now_ns, total, 0, None, 0).expect("news");
            assert!(sample.pps <= 10_001.0, "{}", sample.pps);
        }
    }

    #[test]
    fn packets_out_of_order_count_where_the_peer_counts_them() {
        let mut delivery = Delivery::new(0);
        bursts(&mut delivery, 0, 20);
        let sample = delivery.on_ack(25 * MS, 45, 5, None, 0).expect("news");
        assert_eq!((sample.rtt_ns, sample.lost_packets), (Some(21 * MS), 5));
        assert_eq!(delivery.delivered, 45);
    }

    #[test]
    fn an_acknowledgement_without_news_gives_nothing() {
        let mut delivery = Delivery::new(0);
        bursts(&mut delivery, 0, 2);
        assert!(delivery.on_ack(20 * MS, 10, 0, None, 0).is_some());
        assert_eq!(delivery.on_ack(21 * MS, 10, 0, None, 0), None);
        assert_eq!(
            delivery.on_ack(22 * MS, 5, 0, None, 0),
            None,
            "an old one neither"
        );
    }

    #[test]
    fn a_sender_without_data_says_so_until_its_gap_has_passed() {
        let mut delivery = Delivery::new(0);
        delivery.on_sent(0, 10, 0, true);
        delivery.on_sent(50 * MS, 10, 10, false);
        let sample = delivery.on_ack(51 * MS, 10, 0, None, 0).expect("news");
        assert!(sample.is_app_limited);
        let sample = delivery.on_ack(70 * MS, 20, 0, None, 0).expect("news");
        assert!(sample.is_app_limited, "sent when the gap was under way");
        delivery.on_sent(80 * MS, 10, 0, false);
        let sample = delivery.on_ack(100 * MS, 30, 0, None, 0).expect("news");
        assert!(!sample.is_app_limited);
    }

    #[test]
    fn losses_that_a_sending_knew_of_are_not_taken_off_twice() {
        let mut delivery = Delivery::new(0);
        bursts(&mut delivery, 0, 20);
        // Of 200 packets 30 are marked lost before the next burst goes; the acknowledgement counts them later.
        delivery.on_sent(20 * MS, 10, 170, false);
        let sample = delivery.on_ack(21 * MS, 20, 30, None, 0).expect("news");
        assert_eq!(sample.rtt_ns, Some(17 * MS), "the fifth burst was resolved last");
    }

    proptest! {
        #[test]
        fn whatever_is_told_rates_are_finite_and_memory_is_bounded(
            steps in proptest::collection::vec((0u64..3, 0u64..5_000_000, 1u64..45, 0u64..400), 1..300)
        ) {
            let mut delivery = Delivery::new(0);
            let (mut now_ns, mut delivered, mut lost) = (0, 0, 0);
            for (what, wait_ns, packets, in_flight) in steps {
                now_ns += wait_ns;
                match what {
                    0 => delivery.on_sent(now_ns, packets, in_flight, wait_ns % 7 == 0),
                    1 => delivered += packets,
                    _ => lost += packets,
                }
                if what > 0 {
                    if let Some(sample) = delivery.on_ack(now_ns, delivered, lost, None, 0) {
                        prop_assert!(sample.pps.is_finite() && sample.pps >= 0.0);
                    }
                }
                prop_assert!(delivery.bursts.len() as u64 <= delivery.in_flight + 2);
            }
        }
    }
}
