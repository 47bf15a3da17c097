//! What is under way, what has arrived, what is lost.
//!
//! Every transmission has a number of its own and a path keeps order unless told otherwise, so what was sent three
//! transmissions before one that has arrived, and has not arrived itself, is lost (the threshold of RFC 5681, 3.2,
//! counted in transmissions as RFC 9002, 6.1.1 does). That holds for retransmissions too.

use std::collections::VecDeque;

/// Transmissions that may overtake another before it counts as lost.
const REORDERING: u64 = 3;

/// A run of transmissions sent as one train.
#[derive(Debug, Clone, Copy)]
struct Sent {
    number: u64,
    sequence: u64,
    segments: u64,
    sent_ns: u64,
}

impl Sent {
    fn end(&self) -> u64 {
        self.number + self.segments
    }

    fn cut_front(&mut self, segments: u64) {
        self.number += segments;
        self.sequence += segments;
        self.segments -= segments;
    }
}

/// What an acknowledgement brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Acked {
    /// Segments that were under way and have arrived.
    pub segments: u64,
    /// When the latest of them was sent.
    pub newest_sent_ns: Option<u64>,
}

/// What an acknowledgement showed to be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Missing {
    /// Segments lost.
    pub lost: u64,
    /// Segments whose own acknowledgements are missing, but which a cumulative one covers.
    pub covered: u64,
    /// Number of the latest lost transmission.
    pub newest_lost: Option<u64>,
}

/// Transmissions under way and segments waiting to be sent again.
#[derive(Debug, Default)]
pub struct Scoreboard {
    under_way: VecDeque<Sent>,
    to_repeat: VecDeque<(u64, u64)>,
    next_number: u64,
    acked_to: u64,
    in_flight: u64,
}

impl Scoreboard {
    /// Number of the next transmission.
    pub fn next_number(&self) -> u64 {
        self.next_number
    }

    /// Every transmission that has arrived is below this number.
    pub fn acked_to(&self) -> u64 {
        self.acked_to
    }

    /// Segments under way.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Notes a train of `segments` from `sequence`; gives the number of its first transmission.
    pub fn sent(&mut self, now_ns: u64, sequence: u64, segments: u64) -> u64 {
        let number = self.next_number;
        self.next_number += segments;
        self.in_flight += segments;
        self.under_way.push_back(Sent {
            number,
            sequence,
            segments,
            sent_ns: now_ns,
        });
        number
    }

    /// Takes the transmissions `from..to`, all of which have arrived, off those under way.
    pub fn acknowledge(&mut self, from: u64, to: u64) -> Acked {
        self.acked_to = self.acked_to.max(to);
        let mut acked = Acked::default();
        let mut index = match self.under_way.front() {
            Some(front) if front.end() > from => 0,
            _ => self.under_way.partition_point(|sent| sent.end() <= from),
        };
        while let Some(sent) = self.under_way.get(index).copied() {
            if sent.number >= to {
                break;
            }
            let covered = sent.end().min(to) - sent.number.max(from);
            acked.segments += covered;
            acked.newest_sent_ns = Some(sent.sent_ns);
            index = self.take(index, sent, from, to);
        }
        self.in_flight -= acked.segments;
        acked
    }

    /// Removes `from..to` from the train at `index`; gives the index after what is left of it below `to`.
    fn take(&mut self, index: usize, sent: Sent, from: u64, to: u64) -> usize {
        let before = from.saturating_sub(sent.number);
        let after = sent.end().saturating_sub(to);
        match (before, after) {
            (0, 0) => {
                self.under_way.remove(index);
                index
            }
            (0, _) => {
                self.under_way[index].cut_front(sent.segments - after);
                index
            }
            (_, 0) => {
                self.under_way[index].segments = before;
                index + 1
            }
            _ => {
                self.under_way[index].segments = before;
                let mut rest = sent;
                rest.cut_front(sent.segments - after);
                self.under_way.insert(index + 1, rest);
                index + 1
            }
        }
    }

    /// Moves what must be lost to what is to be sent again; what lies below `cumulative` has arrived after all.
    pub fn find_lost(&mut self, cumulative: u64) -> Missing {
        let mut missing = Missing::default();
        let safe_from = self.acked_to.saturating_sub(REORDERING);
        while let Some(front) = self.under_way.front().copied() {
            if front.number >= safe_from {
                break;
            }
            let segments = front.segments.min(safe_from - front.number);
            self.drop_front(segments);
            let covered = cumulative.saturating_sub(front.sequence).min(segments);
            missing.covered += covered;
            if covered < segments {
                missing.lost += segments - covered;
                missing.newest_lost = Some(front.number + segments - 1);
                self.repeat(front.sequence + covered, segments - covered);
            }
        }
        missing
    }

    /// Gives up everything under way, as a time-out does; gives the number of segments.
    pub fn give_up(&mut self) -> u64 {
        let lost = self.in_flight;
        while let Some(sent) = self.under_way.pop_front() {
            self.repeat(sent.sequence, sent.segments);
        }
        self.in_flight = 0;
        lost
    }

    /// Takes `segments` from `sequence`, which have arrived although given up, off those to send again; gives how many
    /// were among them.
    pub fn forget(&mut self, sequence: u64, segments: u64) -> u64 {
        let end = sequence + segments;
        let mut forgotten = 0;
        let mut index = 0;
        while let Some(&(start, count)) = self.to_repeat.get(index) {
            let (from, to) = (start.max(sequence), (start + count).min(end));
            if from >= to {
                index += 1;
                continue;
            }
            forgotten += to - from;
            self.to_repeat.remove(index);
            for (start, end) in [(to, start + count), (start, from)] {
                if start < end {
                    self.to_repeat.insert(index, (start, end - start));
                }
            }
        }
        forgotten
    }

    /// The next segments to send again, at most `limit`, none below `cumulative`: first and count.
    pub fn next_lost(&mut self, limit: u64, cumulative: u64) -> Option<(u64, u64)> {
        while let Some(&(sequence, segments)) = self.to_repeat.front() {
            let arrived = cumulative.saturating_sub(sequence).min(segments);
            let (sequence, segments) = (sequence + arrived, segments - arrived);
            let count = segments.min(limit);
            if count == segments {
                self.to_repeat.pop_front();
            } else {
                self.to_repeat[0] = (sequence + count, segments - count);
            }
            if count > 0 {
                return Some((sequence, count));
            }
        }
        None
    }

    fn drop_front(&mut self, segments: u64) {
        self.in_flight -= segments;
        if self.under_way[0].segments == segments {
            self.under_way.pop_front();
        } else {
            self.under_way[0].cut_front(segments);
        }
    }

    fn repeat(&mut self, sequence: u64, segments: u64) {
        match self.to_repeat.back_mut() {
            Some((start, count)) if *start + *count == sequence => *count += segments,
            _ => self.to_repeat.push_back((sequence, segments)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Acked, Missing, Scoreboard};

    fn board(trains: &[u64]) -> Scoreboard {
        let mut board = Scoreboard::default();
        let mut sequence = 0;
        for (index, segments) in trains.iter().enumerate() {
            board.sent(index as u64, sequence, *segments);
            sequence += segments;
        }
        board
    }

    #[test]
    fn runs_that_arrive_in_order_leave_nothing_behind() {
        let mut board = board(&[10, 10]);
        assert_eq!(
            board.acknowledge(0, 4),
            Acked {
                segments: 4,
                newest_sent_ns: Some(0)
            }
        );
        assert_eq!(
            board.acknowledge(0, 13),
            Acked {
                segments: 9,
                newest_sent_ns: Some(1)
            }
        );
        assert_eq!(
            board.acknowledge(0, 20),
            Acked {
                segments: 7,
                newest_sent_ns: Some(1)
            }
        );
        assert_eq!((board.in_flight(), board.find_lost(20)), (0, Missing::default()));
    }

    #[test]
    fn a_hole_within_a_train_is_lost_once_three_later_ones_are_in() {
        let mut board = board(&[10]);
        board.acknowledge(0, 4);
        board.acknowledge(6, 8);
        assert_eq!(board.find_lost(4).lost, 1, "5 is only two behind the latest");
        board.acknowledge(6, 9);
        let missing = board.find_lost(4);
        assert_eq!(
            missing,
            Missing {
                lost: 1,
                covered: 0,
                newest_lost: Some(5)
            }
        );
        assert_eq!(board.next_lost(8, 4), Some((4, 2)));
        assert_eq!((board.in_flight(), board.next_lost(8, 4)), (1, None));
    }

    #[test]
    fn a_cumulative_acknowledgement_makes_up_for_lost_ones() {
        let mut board = board(&[10]);
        board.acknowledge(8, 10);
        let missing = board.find_lost(10);
        assert_eq!(
            missing,
            Missing {
                lost: 0,
                covered: 7,
                newest_lost: None
            }
        );
        assert_eq!(board.in_flight(), 1, "the one within the threshold");
    }

    #[test]
    fn a_lost_retransmission_is_lost_again() {
        let mut board = board(&[10]);
        board.acknowledge(0, 2);
        board.acknowledge(3, 10);
        assert_eq!(board.find_lost(2).lost, 1);
        let (sequence, segments) = board.next_lost(10, 2).expect("one lost");
        let number = board.sent(50, sequence, segments);
        board.sent(51, 10, 5);
        board.acknowledge(number + 1, number + 6);
        assert_eq!(board.find_lost(2).newest_lost, Some(number));
        assert_eq!(board.next_lost(10, 2), Some((2, 1)));
    }

    #[test]
    fn what_arrives_after_it_was_given_up_is_not_sent_again() {
        let mut board = board(&[10]);
        board.give_up();
        assert_eq!(board.forget(3, 2), 2);
        assert_eq!(board.forget(3, 2), 0);
        assert_eq!(board.next_lost(20, 0), Some((0, 3)));
        assert_eq!(board.next_lost(20, 0), Some((5, 5)));
    }

    #[test]
    fn giving_up_queues_everything_and_what_arrived_meanwhile_is_skipped() {
        let mut board = board(&[4, 4]);
        board.acknowledge(0, 2);
        assert_eq!((board.give_up(), board.in_flight()), (6, 0));
        assert_eq!(board.next_lost(3, 5), Some((5, 3)));
        assert_eq!(board.next_lost(3, 5), None);
    }
}
