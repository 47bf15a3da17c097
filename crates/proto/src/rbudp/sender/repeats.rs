//! What reports asked for, and which of them have been served.

use crate::rbudp::PacketSet;
use crate::rbudp::bits::Bits;

/// Packets of one blast to be sent again.
///
/// Reports are served in batches: while one is being sent, the next gathers what comes meanwhile, so that `served` grows
/// however fast reports come.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    now: Bits,
    next: Bits,
    /// The last report in `now`, and in `next`.
    now_report: u32,
    next_report: u32,
    served: u32,
    /// No number below is in `now`.
    floor: u32,
}

impl Repeats {
    /// Takes report number `report`, which is above all before it; numbers of `packets` are below `limit`.
    pub(super) fn ask(&mut self, report: u32, packets: &PacketSet, limit: u32) {
        self.settle();
        if self.served == self.now_report {
            self.now_report = report;
            self.floor = 0;
            self.now.extend(packets, limit);
        } else {
            self.next.extend(packets, limit);
        }
        self.next_report = report;
    }

    /// Moves up to `max` numbers into `packets`, ascending.
    pub(super) fn take(&mut self, max: usize, packets: &mut Vec<u32>) {
        self.settle();
        while packets.len() < max {
            let Some(number) = self.now.next(self.floor) else {
                break;
            };
            self.now.remove(number);
            self.floor = number + 1;
            packets.push(number);
        }
    }

    /// Takes back numbers that the latest `take` gave.
    pub(super) fn put_back(&mut self, packets: &[u32]) {
        for &number in packets {
            self.now.insert(number);
            self.floor = self.floor.min(number);
        }
    }

    /// Whether there is nothing to be sent again.
    pub(super) fn is_empty(&self) -> bool {
        self.now.len() == 0 && self.next.len() == 0
    }

    /// The last report all packets of which have been taken.
    pub(super) fn served(&mut self) -> u32 {
        self.settle();
        self.served
    }

    /// Goes on to the next batch once all of one has been taken. Not when the last is taken: it may be put back.
    fn settle(&mut self) {
        while self.now.len() == 0 && self.served != self.next_report {
            self.served = self.now_report;
            if self.now_report != self.next_report {
                std::mem::swap(&mut self.now, &mut self.next);
                self.now_report = self.next_report;
                self.floor = 0;
            }
        }
    }
}
