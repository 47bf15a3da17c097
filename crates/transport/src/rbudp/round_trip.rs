//! Round trips of a stream's own datagrams: from a statement to the report that answers it.
//!
//! The connection's own figure is no use while data go: hardly anything is sent on it, and not in the same queue.

use std::collections::VecDeque;

use farline_proto::rbudp::wire::{Done, Missing};

/// Statements that wait for their reports, at most; the oldest is given up for a newer one.
const MOST_WAITING: usize = 64;
/// Share of the newest in the smoothed figure, as the kernel's.
const WEIGHT: u64 = 8;

/// Measures round trips.
#[derive(Debug, Default)]
pub(super) struct RoundTrips {
    /// What the receiver waits before it answers.
    settle_ns: u64,
    waiting: VecDeque<(Done, u64)>,
    smoothed_ns: u64,
    least_ns: u64,
}

impl RoundTrips {
    pub(super) fn new(settle_ns: u64) -> Self {
        Self {
            settle_ns,
            ..Self::default()
        }
    }

    /// Notes that `done` is said now. Of one that is said again nobody knows which is answered.
    pub(super) fn said(&mut self, now_ns: u64, done: &Done) {
        let before = self.waiting.len();
        self.waiting.retain(|(waiting, _)| !is_same(waiting, done));
        if self.waiting.len() < before {
            return;
        }
        if before == MOST_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back((*done, now_ns));
    }

    /// Notes a report that came now.
    pub(super) fn heard(&mut self, now_ns: u64, report: &Missing) {
        let answered = |(done, _): &(Done, u64)| {
            (done.blast, done.upto, done.served) == (report.blast, report.upto, report.served)
        };
        let Some(index) = self.waiting.iter().position(answered) else {
            return;
        };
        let sent_ns = self.waiting[index].1;
        self.waiting.drain(..=index);
        let trip_ns = now_ns
            .saturating_sub(sent_ns)
            .saturating_sub(self.settle_ns)
            .max(1_000);
        self.smoothed_ns = match self.smoothed_ns {
            0 => trip_ns,
            before => before - before / WEIGHT + trip_ns / WEIGHT,
        };
        self.least_ns = match self.least_ns {
            0 => trip_ns,
            least => least.min(trip_ns),
        };
    }

    /// The smoothed round trip and the shortest, in microseconds, once there are any.
    pub(super) fn figures_us(&self) -> Option<(u64, u64)> {
        (self.least_ns > 0).then_some((self.smoothed_ns / 1_000, self.least_ns / 1_000))
    }
}

fn is_same(one: &Done, other: &Done) -> bool {
    (one.blast, one.upto, one.served) == (other.blast, other.upto, other.served)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farline_proto::rbudp::PacketSet;

    const MS: u64 = 1_000_000;

    fn done(upto: u32) -> Done {
        Done {
            blast: 3,
            upto,
            served: 0,
            total: None,
        }
    }

    fn report(upto: u32) -> Missing {
        Missing {
            blast: 3,
            upto,
            served: 0,
            report: 1,
            packets: PacketSet::default(),
        }
    }

    #[test]
    fn a_round_trip_is_from_statement_to_report_without_the_settling() {
        let mut trips = RoundTrips::new(2 * MS);
        assert_eq!(trips.figures_us(), None);
        trips.said(0, &done(10));
        trips.said(5 * MS, &done(20));
        trips.heard(27 * MS, &report(20));
        assert_eq!(trips.figures_us(), Some((20_000, 20_000)));
        trips.heard(30 * MS, &report(10));
        assert_eq!(trips.figures_us(), Some((20_000, 20_000)), "it was left out");
        trips.said(100 * MS, &done(30));
        trips.heard(110 * MS, &report(30));
        assert_eq!(trips.figures_us(), Some((18_500, 8_000)));
    }

    #[test]
    fn what_is_said_twice_measures_nothing_and_waiting_is_bounded() {
        let mut trips = RoundTrips::new(0);
        trips.said(0, &done(10));
        trips.said(50 * MS, &done(10));
        trips.heard(60 * MS, &report(10));
        assert_eq!(trips.figures_us(), None);
        (0..1_000).for_each(|upto| trips.said(0, &done(upto)));
        assert_eq!(trips.waiting.len(), MOST_WAITING);
    }
}
