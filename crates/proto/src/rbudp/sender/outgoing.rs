//! One blast at the sending end.

use std::collections::VecDeque;

use farline_spec::Blast;

use super::SenderOptions;
use super::repeats::Repeats;
use crate::rbudp::generations::Generations;
use crate::rbudp::packet_count;
use crate::rbudp::wire::{Done, Missing, Total};

/// A blast from its first byte until the other end has it.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) number: u32,
    /// Where it begins in the stream's payload.
    pub(super) offset: u64,
    /// Payload given so far.
    pub(super) bytes: u64,
    /// No more is given.
    pub(super) is_closed: bool,
    /// Packets that have been sent at least once: those below.
    pub(super) upto: u32,
    pub(super) repeats: Repeats,
    /// Sum of the hashes of first transmissions.
    pub(super) sum: u64,
    /// The newest statement, and when it was made.
    pub(super) stated: Option<Done>,
    pub(super) stated_ns: u64,
    /// Packets sent since, and when the first of them was.
    pub(super) unstated_packets: u64,
    pub(super) unstated_ns: u64,
    /// Whether the newest statement is to be made again, when, and how often it was.
    pub(super) is_due_again: bool,
    pub(super) again_ns: u64,
    pub(super) again_count: u32,
    /// `upto` and `served` of the last report, and its number.
    pub(super) answered: (u32, u32),
    pub(super) reports: u32,
    /// Reports with packets that are not yet answered for: number and packets.
    asked: VecDeque<(u32, u64)>,
    pub(super) generations: Generations,
    pub(super) sent_packets: u64,
    pub(super) started_ns: Option<u64>,
    pub(super) whole_ns: Option<u64>,
}

impl Outgoing {
    pub(super) fn new(number: u32, offset: u64) -> Self {
        Self {
            number,
            offset,
            bytes: 0,
            is_closed: false,
            upto: 0,
            repeats: Repeats::default(),
            sum: 0,
            stated: None,
            stated_ns: 0,
            unstated_packets: 0,
            unstated_ns: 0,
            is_due_again: false,
            again_ns: u64::MAX,
            again_count: 0,
            answered: (0, 0),
            reports: 0,
            asked: VecDeque::new(),
            generations: Generations::default(),
            sent_packets: 0,
            started_ns: None,
            whole_ns: None,
        }
    }

    /// Packets that can be sent: whole ones, and the short last one once it is known to be that.
    pub(super) fn ready_packets(&self, options: &SenderOptions) -> u32 {
        if self.is_closed {
            packet_count(self.bytes, options.packet_bytes)
        } else {
            (self.bytes / options.packet_bytes as u64) as u32
        }
    }

    /// Payload bytes of a packet.
    pub(super) fn packet_bytes(&self, packet: u32, options: &SenderOptions) -> usize {
        let rest = self.bytes - u64::from(packet) * options.packet_bytes as u64;
        rest.min(options.packet_bytes as u64) as usize
    }

    /// Nothing of it can be sent now.
    pub(super) fn is_idle(&self, options: &SenderOptions) -> bool {
        self.whole_ns.is_some() || (self.repeats.is_empty() && self.upto == self.ready_packets(options))
    }

    /// All packets have been sent at least once, and none come any more.
    pub(super) fn is_sent(&self, options: &SenderOptions) -> bool {
        self.is_closed && self.upto == self.ready_packets(options)
    }

    /// Whether a statement now would say more than the newest.
    pub(super) fn has_news(&self, options: &SenderOptions) -> bool {
        let states_total = self.stated.is_some_and(|done| done.total.is_some());
        self.unstated_packets > 0 || (self.is_sent(options) && !states_total)
    }

    /// What can be said now.
    pub(super) fn statement(&mut self, options: &SenderOptions) -> Done {
        let total = self.is_sent(options).then_some(Total {
            bytes: self.bytes,
            sum: if options.checksum { self.sum } else { 0 },
        });
        Done {
            blast: self.number,
            upto: self.upto,
            served: self.repeats.served(),
            total,
        }
    }

    /// Whether the newest statement has been answered by a report.
    pub(super) fn is_answered(&self) -> bool {
        self.stated
            .is_none_or(|done| (done.upto, done.served) == self.answered)
    }

    /// Whether the other end has something to say: a report, or, when all is said and sent, that the blast is whole.
    pub(super) fn is_owed(&self) -> bool {
        let states_total = self.stated.is_some_and(|done| done.total.is_some());
        let rests = self.unstated_packets == 0 && self.repeats.is_empty();
        self.whole_ns.is_none() && (!self.is_answered() || (states_total && rests))
    }

    /// What a report is about: the packets that it says something of.
    pub(super) fn covered_packets(&self, missing: &Missing) -> u64 {
        let again = self
            .asked
            .iter()
            .take_while(|&&(report, _)| report <= missing.served);
        u64::from(missing.upto - self.answered.0) + again.map(|&(_, packets)| packets).sum::<u64>()
    }

    /// Takes a report that has been found right. Gives how many packets of it had been sent once only.
    pub(super) fn take_report(&mut self, missing: &Missing, limit: u32) -> u64 {
        while self
            .asked
            .front()
            .is_some_and(|&(report, _)| report <= missing.served)
        {
            self.asked.pop_front();
        }
        if !missing.packets.is_empty() {
            self.asked.push_back((missing.report, missing.packets.len()));
        }
        self.answered = (missing.upto, missing.served);
        self.reports = missing.report;
        self.repeats.ask(missing.report, &missing.packets, limit);
        self.generations.note(&missing.packets, limit)
    }

    /// Packets that have been sent, and of which no report says that they came.
    pub(super) fn unacknowledged_packets(&self) -> u64 {
        if self.whole_ns.is_some() {
            return 0;
        }
        let asked: u64 = self.asked.iter().map(|&(_, packets)| packets).sum();
        u64::from(self.upto - self.answered.0) + asked
    }

    /// What is to be recorded of a blast that is whole.
    pub(super) fn record(&self, options: &SenderOptions) -> Blast {
        let elapsed_ns = self
            .whole_ns
            .unwrap_or(0)
            .saturating_sub(self.started_ns.unwrap_or(0));
        Blast {
            bytes: self.bytes,
            passes: self.generations.passes(),
            packets: u64::from(packet_count(self.bytes, options.packet_bytes)),
            first_pass_lost_packets: self.generations.lost_packets(),
            sent_packets: self.sent_packets,
            elapsed_us: elapsed_ns / 1_000,
        }
    }
}
