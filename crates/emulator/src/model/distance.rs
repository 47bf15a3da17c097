//! The way from the end of the wire to the far end: delay, jitter, packets that are late on purpose.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use super::jitter::Jitter;
use super::transit::Transit;

/// Segments of a train that arrive within so long of each other stay together under jitter.
const JOINED_NS: u64 = 100_000;

/// Everything that has left the wire and not arrived.
#[derive(Debug)]
pub(super) struct Distance<P> {
    pub(super) delay_ns: u64,
    pub(super) jitter: Option<Jitter>,
    /// How much later than the others a packet arrives that was made late.
    pub(super) late_by_ns: u64,
    in_order: VecDeque<Transit<P>>,
    late: BinaryHeap<Reverse<Late<P>>>,
    /// Arrival of the last packet in order: none behind it may come sooner.
    last_ns: u64,
    packets: u64,
    late_count: u64,
}

impl<P: Clone> Distance<P> {
    pub(super) fn new(delay_ns: u64, jitter: Option<Jitter>, late_by_ns: u64) -> Self {
        Self {
            delay_ns,
            jitter,
            late_by_ns,
            in_order: VecDeque::new(),
            late: BinaryHeap::new(),
            last_ns: 0,
            packets: 0,
            late_count: 0,
        }
    }

    /// Packets under way.
    pub(super) fn packets(&self) -> u64 {
        self.packets
    }

    /// Puts a run on its way that left the wire at its instants; `number` is that of its first packet. A part of a piece
    /// left the wire before the piece did, at `now_ns`; with next to no delay it arrives now, not in the past.
    pub(super) fn push(&mut self, mut run: Transit<P>, number: u64, now_ns: u64) {
        if self.jitter.is_some() {
            return self.push_jittered(run, number, now_ns);
        }
        let (first_ns, last_ns) = (run.first_ns() + self.delay_ns, run.at_ns + self.delay_ns);
        run.put(first_ns.max(self.last_ns), last_ns.max(self.last_ns).max(now_ns));
        self.append(run);
    }

    fn push_jittered(&mut self, mut rest: Transit<P>, mut number: u64, now_ns: u64) {
        let (mut joined, mut first_ns, mut before_ns) = (0, 0, self.last_ns);
        while joined < rest.segments() {
            let at_ns = self.arrival_ns(rest.segment_ns(joined), number).max(before_ns);
            if joined == 0 {
                first_ns = at_ns;
            } else if at_ns - first_ns > JOINED_NS {
                let mut front = rest.take_front(joined);
                front.put(first_ns, before_ns.max(now_ns));
                self.append(front);
                (joined, first_ns) = (0, at_ns);
            }
            before_ns = at_ns;
            joined += 1;
            number += 1;
        }
        rest.put(first_ns, before_ns.max(now_ns));
        self.append(rest);
    }

    /// Puts a single packet on its way that does not keep its place: it falls behind those in order, which may
    /// themselves be held back.
    pub(super) fn push_late(&mut self, mut one: Transit<P>, number: u64, now_ns: u64) {
        let in_order_ns = self.arrival_ns(one.at_ns, number).max(self.last_ns);
        let at_ns = now_ns.max(in_order_ns + self.late_by_ns);
        one.put(at_ns, at_ns);
        self.packets += u64::from(one.segments());
        self.late_count += 1;
        self.late.push(Reverse(Late {
            order: self.late_count,
            transit: one,
        }));
    }

    /// When packet `number` arrives that leaves the wire at `departure_ns`, if none is in its way.
    fn arrival_ns(&self, departure_ns: u64, number: u64) -> u64 {
        let offset_ns = self.jitter.as_ref().map_or(0, |jitter| jitter.offset_ns(number));
        departure_ns + self.delay_ns.saturating_add_signed(offset_ns)
    }

    fn append(&mut self, run: Transit<P>) {
        self.last_ns = run.at_ns;
        self.packets += u64::from(run.segments());
        self.in_order.push_back(run);
    }

    /// When the next train arrives.
    pub(super) fn next_ns(&self) -> Option<u64> {
        let in_order = self.in_order.front().map(|transit| transit.at_ns);
        let late = self.late.peek().map(|late| late.0.transit.at_ns);
        in_order.into_iter().chain(late).min()
    }

    /// Takes the next train that arrives until `now_ns`.
    pub(super) fn take(&mut self, now_ns: u64) -> Option<Transit<P>> {
        let at_ns = self.next_ns().filter(|at_ns| *at_ns <= now_ns)?;
        let ordered = self
            .in_order
            .front()
            .is_some_and(|transit| transit.at_ns == at_ns);
        let transit = if ordered {
            self.in_order.pop_front()?
        } else {
            self.late.pop()?.0.transit
        };
        self.packets -= u64::from(transit.segments());
        Some(transit)
    }

    /// Loses everything; says how many packets.
    pub(super) fn clear(&mut self) -> u64 {
        self.in_order.clear();
        self.late.clear();
        self.last_ns = 0;
        std::mem::take(&mut self.packets)
    }
}

/// A late packet, ordered by its arrival, then by which was made late first.
#[derive(Debug)]
struct Late<P> {
    order: u64,
    transit: Transit<P>,
}

impl<P> Late<P> {
    fn key(&self) -> (u64, u64) {
        (self.transit.at_ns, self.order)
    }
}

impl<P> PartialEq for Late<P> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<P> Eq for Late<P> {}

impl<P> PartialOrd for Late<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> Ord for Late<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}
