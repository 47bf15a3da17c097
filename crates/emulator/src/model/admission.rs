//! Which segments of a train a full queue still takes, each at its own arrival.

use super::line::BYTE_NS;
use super::transit::Transit;

/// What becomes of a segment that comes to a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    Taken,
    TakenMarked,
    Dropped,
}

/// A queue as a train finds it, at the arrival of the train's last segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Admission {
    pub(super) capacity_bytes: u64,
    pub(super) capacity_packets: u64,
    /// Mark what finds so many bytes before it.
    pub(super) threshold_bytes: u64,
    pub(super) rate_bps: u64,
    pub(super) framing_bytes: u64,
    /// Waiting and being sent.
    pub(super) backlog_bytes: u64,
    /// Waiting and being sent.
    pub(super) backlog_packets: u64,
    /// If nothing waits or is sent: for how long.
    pub(super) idle_ns: Option<u64>,
}

impl Admission {
    /// Whether the whole train fits unmarked, even if nothing had left the queue while it came.
    pub(super) fn has_room<P>(&self, transit: &Transit<P>) -> bool {
        let drained = u128::from(transit.span_ns) * u128::from(self.rate_bps) / u128::from(BYTE_NS);
        let most = u128::from(self.backlog_bytes)
            + u128::from(transit.train.wire_bytes(self.framing_bytes))
            + drained
            + u128::from(transit.span_ns > 0);
        // A span with a limit in packets takes the longer way: how many packets it drained depends on their sizes.
        let few = self.capacity_packets == u64::MAX
            || transit.span_ns == 0
                && self.backlog_packets + u64::from(transit.segments()) <= self.capacity_packets;
        let markable = transit.train.ecn_capable && !transit.train.marked;
        few && most <= u128::from(self.capacity_bytes)
            && !(markable && most > u128::from(self.threshold_bytes))
    }

    /// What becomes of each segment, as runs of equal fate.
    pub(super) fn runs<P>(&self, transit: &Transit<P>) -> Vec<(Entry, u16)> {
        let train = &transit.train;
        let markable = train.ecn_capable && !train.marked;
        let packet_bytes = u64::from(train.segment_bytes) + self.framing_bytes;
        let mut bytes = self.level(transit.span_ns, self.backlog_bytes);
        // Packets are counted as bytes of this train's segments: only so can a part of one have been sent.
        let mut packets = self.level(transit.span_ns, self.backlog_packets.saturating_mul(packet_bytes));
        let packets_limit = self.capacity_packets.saturating_mul(packet_bytes);
        let mut runs: Vec<(Entry, u16)> = Vec::new();
        let mut before_ns = transit.first_ns();
        for place in 0..train.segments {
            let at_ns = transit.segment_ns(place);
            let drained = u128::from(at_ns - before_ns) * u128::from(self.rate_bps);
            before_ns = at_ns;
            bytes.drain(drained);
            packets.drain(drained);
            let wire_bytes = u64::from(train.bytes_at(place)) + self.framing_bytes;
            let mark = markable && bytes.reaches(self.threshold_bytes);
            let fits =
                bytes.fits(wire_bytes, self.capacity_bytes) && packets.fits(packet_bytes, packets_limit);
            let entry = match (fits, mark) {
                (false, _) => Entry::Dropped,
                (true, false) => Entry::Taken,
                (true, true) => Entry::TakenMarked,
            };
            if fits {
                bytes.fill(wire_bytes);
                packets.fill(packet_bytes);
            }
            match runs.last_mut() {
                Some((last, count)) if *last == entry => *count += 1,
                _ => runs.push((entry, 1)),
            }
        }
        runs
    }

    /// The level when the first segment came, from what is left now.
    fn level(&self, span_ns: u64, now: u64) -> Level {
        let busy_ns = span_ns - self.idle_ns.unwrap_or(0).min(span_ns);
        let mut level = Level(u128::from(busy_ns) * u128::from(self.rate_bps));
        level.fill(now);
        level
    }
}

/// Bytes in a queue, in units of a byte over [`BYTE_NS`], so that draining is exact.
#[derive(Debug, Clone, Copy)]
struct Level(u128);

impl Level {
    fn drain(&mut self, amount: u128) {
        self.0 = self.0.saturating_sub(amount);
    }

    fn fill(&mut self, bytes: u64) {
        self.0 += u128::from(bytes) * u128::from(BYTE_NS);
    }

    fn fits(&self, bytes: u64, limit_bytes: u64) -> bool {
        self.0 + u128::from(bytes) * u128::from(BYTE_NS) <= u128::from(limit_bytes) * u128::from(BYTE_NS)
    }

    fn reaches(&self, bytes: u64) -> bool {
        self.0 >= u128::from(bytes) * u128::from(BYTE_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::train::Train;

    const EMPTY: Admission = Admission {
        capacity_bytes: 15_000,
        capacity_packets: u64::MAX,
        threshold_bytes: u64::MAX,
        rate_bps: 1_000_000_000,
        framing_bytes: 38,
        backlog_bytes: 0,
        backlog_packets: 0,
        idle_ns: Some(1_000_000),
    };

    fn transit(segments: u16, span_ns: u64) -> Transit<()> {
        Transit {
            train: Train::uniform((), segments, 1462),
            from_port: 0,
            to_port: 1,
            at_ns: 1_000_000,
            span_ns,
        }
    }

    #[test]
    fn a_train_at_once_fills_the_queue_to_the_last_whole_segment() {
        let runs = EMPTY.runs(&transit(44, 0));
        assert_eq!(runs, [(Entry::Taken, 10), (Entry::Dropped, 34)]);
        assert!(EMPTY.has_room(&transit(10, 0)) && !EMPTY.has_room(&transit(11, 0)));
    }

    #[test]
    fn a_train_as_slow_as_the_wire_never_fills_it() {
        let runs = EMPTY.runs(&transit(44, 43 * 12_000));
        assert_eq!(runs, [(Entry::Taken, 44)]);
        let few = Admission {
            capacity_packets: 1,
            ..EMPTY
        };
        assert_eq!(few.runs(&transit(44, 43 * 12_000)), [(Entry::Taken, 44)]);
    }

    #[test]
    fn a_train_twice_as_fast_as_the_wire_loses_every_other_segment_of_a_full_queue() {
        let runs = EMPTY.runs(&transit(44, 43 * 6_000));
        let dropped: u16 = runs
            .iter()
            .filter(|run| run.0 == Entry::Dropped)
            .map(|run| run.1)
            .sum();
        // Ten fit, one more for every two that came meanwhile: 44 - 10 - 43 / 2.
        assert_eq!(dropped, 13);
    }

    #[test]
    fn packets_are_a_limit_of_their_own() {
        let few = Admission {
            capacity_packets: 7,
            backlog_packets: 3,
            backlog_bytes: 4_500,
            idle_ns: None,
            ..EMPTY
        };
        assert_eq!(
            few.runs(&transit(10, 0)),
            [(Entry::Taken, 4), (Entry::Dropped, 6)]
        );
        assert!(few.has_room(&transit(4, 0)) && !few.has_room(&transit(5, 0)));
    }

    #[test]
    fn marks_begin_where_the_threshold_waits() {
        let marking = Admission {
            threshold_bytes: 6_000,
            ..EMPTY
        };
        let mut capable = transit(8, 0);
        assert_eq!(marking.runs(&capable), [(Entry::Taken, 8)], "not capable");
        capable.train.ecn_capable = true;
        assert!(!marking.has_room(&capable));
        assert_eq!(
            marking.runs(&capable),
            [(Entry::Taken, 4), (Entry::TakenMarked, 4)]
        );
    }
}
