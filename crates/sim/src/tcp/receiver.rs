//! The end that acknowledges.

use std::collections::{BTreeMap, VecDeque};

use super::{ACK_BYTES, Ack, Segment};
use crate::{Endpoint, Gauges, Received, Transmit};

/// Counts of a receiver since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReceiverFigures {
    /// Segments that arrived whole.
    pub segments: u64,
    /// Of these, segments that had arrived before.
    pub duplicates: u64,
    /// Segments that arrived damaged and were dropped.
    pub corrupt: u64,
    /// Segments that arrived with a congestion mark.
    pub marked: u64,
    /// Segments in order, from the start: what an application could read.
    pub in_order: u64,
}

/// Puts segments in order and answers each.
#[derive(Debug, Default)]
pub struct Receiver {
    figures: ReceiverFigures,
    out_of_order: BTreeMap<u64, u64>,
    waiting: u64,
    run_from: u64,
    run_to: u64,
    answers: VecDeque<Transmit<Segment>>,
}

impl Receiver {
    /// A receiver that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts since the beginning.
    pub fn figures(&self) -> ReceiverFigures {
        self.figures
    }

    /// Notes that the transmissions `from..to` arrived; gives the start of the run they end.
    fn extend_run(&mut self, from: u64, to: u64) -> u64 {
        if from == self.run_to {
            self.run_to = to;
            return self.run_from;
        }
        if from > self.run_to {
            (self.run_from, self.run_to) = (from, to);
        }
        from
    }

    /// Notes that the segments `from..to` arrived.
    fn insert(&mut self, from: u64, to: u64) {
        let before = self.figures.in_order + self.waiting;
        if from <= self.figures.in_order {
            self.figures.in_order = self.figures.in_order.max(to);
            self.join_front();
        } else {
            self.hold(from, to);
        }
        self.figures.segments += to - from;
        self.figures.duplicates += (to - from) - (self.figures.in_order + self.waiting - before);
    }

    fn join_front(&mut self) {
        while let Some(entry) = self.out_of_order.first_entry() {
            let start = *entry.key();
            if start > self.figures.in_order {
                return;
            }
            let end = entry.remove();
            self.waiting -= end - start;
            self.figures.in_order = self.figures.in_order.max(end);
        }
    }

    fn hold(&mut self, mut from: u64, mut to: u64) {
        while let Some((&start, &end)) = self.out_of_order.range(..=to).next_back() {
            if end < from {
                break;
            }
            self.out_of_order.remove(&start);
            self.waiting -= end - start;
            from = from.min(start);
            to = to.max(end);
        }
        self.out_of_order.insert(from, to);
        self.waiting += to - from;
    }
}

impl Endpoint for Receiver {
    type Packet = Segment;

    fn handle_packet(&mut self, _now_ns: u64, received: Received<Segment>) {
        let Segment::Data { sequence, number } = received.packet else {
            return;
        };
        if received.is_damaged() {
            self.figures.corrupt += u64::from(received.segments);
            return;
        }
        let (place, segments) = (u64::from(received.first), u64::from(received.segments));
        let (sequence, number) = (sequence + place, number + place);
        self.figures.marked += if received.marked { segments } else { 0 };
        let run_from = self.extend_run(number, number + segments);
        let cumulative_before = self.figures.in_order;
        self.insert(sequence, sequence + segments);
        let ack = Ack {
            number,
            sequence,
            segments: received.segments,
            run_from,
            cumulative_before,
            cumulative_after: self.figures.in_order,
            marked: received.marked,
        };
        let answer = Transmit::train(received.from, Segment::Ack(ack), received.segments, ACK_BYTES);
        self.answers.push_back(answer);
    }

    fn handle_timeout(&mut self, _now_ns: u64) {}

    fn poll_transmit(&mut self, _now_ns: u64) -> Option<Transmit<Segment>> {
        self.answers.pop_front()
    }

    fn next_timeout(&self) -> Option<u64> {
        None
    }

    fn gauges(&self) -> Gauges {
        Gauges {
            delivered: self.figures.in_order,
            ..Gauges::default()
        }
    }
}
