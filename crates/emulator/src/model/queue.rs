//! The packets that wait in front of a wire.

use std::collections::VecDeque;

use super::transit::Transit;

/// Waiting trains, first in, first out, with their sums.
#[derive(Debug)]
pub(super) struct Queue<P> {
    waiting: VecDeque<Transit<P>>,
    framing_bytes: u64,
    bytes: u64,
    packets: u64,
}

impl<P: Clone> Queue<P> {
    pub(super) fn new(framing_bytes: u64) -> Self {
        Self {
            waiting: VecDeque::new(),
            framing_bytes,
            bytes: 0,
            packets: 0,
        }
    }

    /// Bytes on the wire that wait.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Packets that wait.
    pub(super) fn packets(&self) -> u64 {
        self.packets
    }

    pub(super) fn push(&mut self, transit: Transit<P>) {
        self.bytes += transit.train.wire_bytes(self.framing_bytes);
        self.packets += u64::from(transit.segments());
        self.waiting.push_back(transit);
    }

    pub(super) fn head(&self) -> Option<&Transit<P>> {
        self.waiting.front()
    }

    /// Takes the first `count` segments of the train at the head, or all it has.
    pub(super) fn take(&mut self, count: u16) -> Option<Transit<P>> {
        let head = self.waiting.front_mut()?;
        let taken = if count < head.segments() {
            head.take_front(count)
        } else {
            self.waiting.pop_front()?
        };
        self.bytes -= taken.train.wire_bytes(self.framing_bytes);
        self.packets -= u64::from(taken.segments());
        Some(taken)
    }
}
