//! One blast at the receiving end.

use std::collections::VecDeque;

use farline_spec::Blast;

use super::waiting::Waiting;
use super::{Arrival, ReceiverOptions};
use crate::rbudp::PacketSet;
use crate::rbudp::bits::Bits;
use crate::rbudp::generations::Generations;
use crate::rbudp::packet_count;
use crate::rbudp::wire::Total;

/// Where a blast ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    pub(super) packets: u32,
    pub(super) last_bytes: usize,
}

impl End {
    pub(super) fn of(bytes: u64, packet_bytes: usize) -> Self {
        let packets = packet_count(bytes, packet_bytes);
        let before = u64::from(packets - 1) * packet_bytes as u64;
        Self {
            packets,
            last_bytes: (bytes - before) as usize,
        }
    }
}

/// A blast from its first packet until its slot is free.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) received: Bits,
    /// One past the highest packet that came.
    pub(super) seen: u32,
    /// Known from its short last packet or from its total.
    pub(super) end: Option<End>,
    pub(super) total: Option<Total>,
    pub(super) sum: u64,
    pub(super) started_ns: Option<u64>,
    pub(super) whole_ns: Option<u64>,
    /// The application has been told that it is whole, and is done with it.
    pub(super) is_given: bool,
    pub(super) is_released: bool,
    /// The newest statement.
    pub(super) stated: (u32, u32),
    /// Statements that wait to be answered.
    pub(super) waiting: VecDeque<Waiting>,
    /// `upto` that the last report was about, and its number.
    pub(super) answered_upto: u32,
    pub(super) reports: u32,
    /// Reports that the sender has not served yet, as far as it has said.
    pub(super) asked: VecDeque<(u32, PacketSet)>,
    pub(super) generations: Generations,
}

impl Incoming {
    pub(super) fn new(max_packets: u32) -> Self {
        Self {
            received: Bits::new(max_packets),
            seen: 0,
            end: None,
            total: None,
            sum: 0,
            started_ns: None,
            whole_ns: None,
            is_given: false,
            is_released: false,
            stated: (0, 0),
            waiting: VecDeque::new(),
            answered_upto: 0,
            reports: 0,
            asked: VecDeque::new(),
            generations: Generations::default(),
        }
    }

    /// Packets of full size that it can have.
    pub(super) fn full_packets(&self, options: &ReceiverOptions) -> u32 {
        match self.end {
            Some(end) => end.packets - u32::from(end.last_bytes < options.packet_bytes),
            None => (options.payload_bytes / options.packet_bytes as u64) as u32,
        }
    }

    /// What a packet is.
    #[inline]
    pub(super) fn look(&self, packet: u32, bytes: usize, options: &ReceiverOptions) -> Arrival {
        let fits = if bytes == options.packet_bytes {
            packet < self.full_packets(options)
        } else {
            self.can_end(packet, bytes, options)
        };
        match (fits, self.received.contains(packet)) {
            (false, _) => Arrival::Foreign,
            (true, true) => Arrival::Duplicate,
            (true, false) => Arrival::Fresh,
        }
    }

    /// Whether a packet that is not of full size can be the last one.
    fn can_end(&self, packet: u32, bytes: usize, options: &ReceiverOptions) -> bool {
        if bytes == 0 || bytes > options.packet_bytes {
            return false;
        }
        match self.end {
            Some(end) => packet.checked_add(1) == Some(end.packets) && bytes == end.last_bytes,
            None => {
                let start = u64::from(packet) * options.packet_bytes as u64;
                packet >= self.seen && start + bytes as u64 <= options.payload_bytes
            }
        }
    }

    /// Notes a packet that `look` called fresh.
    #[inline]
    pub(super) fn note(
        &mut self,
        now_ns: u64,
        packet: u32,
        bytes: usize,
        hash: u64,
        options: &ReceiverOptions,
    ) {
        self.received.insert(packet);
        self.seen = self.seen.max(packet + 1);
        self.sum = self.sum.wrapping_add(hash);
        if self.started_ns.is_none() {
            self.started_ns = Some(now_ns);
        }
        if bytes < options.packet_bytes {
            self.end = Some(End {
                packets: packet + 1,
                last_bytes: bytes,
            });
        }
        self.complete(now_ns);
    }

    /// Notes that it is whole, if it is.
    #[inline]
    pub(super) fn complete(&mut self, now_ns: u64) {
        if let (Some(_), Some(end), None) = (self.total, self.end, self.whole_ns) {
            if self.received.len() == end.packets {
                self.whole_ns = Some(now_ns);
            }
        }
    }

    /// Packets that are missing below the highest known to have been sent.
    pub(super) fn missing_packets(&self) -> u64 {
        u64::from(self.seen.max(self.stated.0) - self.received.len())
    }

    /// What is to be recorded of a blast that is whole.
    pub(super) fn record(&self) -> Blast {
        let elapsed_ns = self
            .whole_ns
            .unwrap_or(0)
            .saturating_sub(self.started_ns.unwrap_or(0));
        Blast {
            bytes: self.total.map_or(0, |total| total.bytes),
            passes: self.generations.passes(),
            packets: u64::from(self.received.len()),
            first_pass_lost_packets: self.generations.lost_packets(),
            sent_packets: 0,
            elapsed_us: elapsed_ns / 1_000,
        }
    }
}
