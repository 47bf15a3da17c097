//! The end that sends.

use std::rc::Rc;

use farline_proto::Pacer;
use farline_proto::rbudp::wire::{HEADER_BYTES, Message, packet_hash};
use farline_proto::rbudp::{Burst, Sender, SenderStatistics};
use farline_spec::Blast;

use super::channel::Channel;
use super::{IP_UDP_BYTES, PACKET_BYTES, Packet, StreamConfig};
use crate::{EndpointId, Gauges, NS_PER_S, Received, Transmit};

/// Packets of a burst, and what the rate carries while it lasts: short, so that figures are about the protocol.
const PACKETS: std::ops::RangeInclusive<usize> = 4..=44;
const BURST_NS: u64 = 10_000;
/// Size of a DONE as an IP packet, with its total.
const MARK_BYTES: u32 = IP_UDP_BYTES + HEADER_BYTES as u32 + 24;

/// A sender, its application, its pacer and its end of the TCP connection.
#[derive(Debug)]
pub struct Sending {
    machine: Sender,
    peer: EndpointId,
    channel: Channel,
    pacer: Pacer,
    rate_bps: u64,
    left_bytes: u64,
    is_complete: bool,
    burst: Burst,
    /// Nothing can be sent before a message comes.
    is_blocked: bool,
    was_idle: bool,
    blasts: Vec<Blast>,
    finished_ns: Option<u64>,
    /// When the last blast so far was whole.
    whole_ns: u64,
}

impl Sending {
    pub(super) fn new(config: &StreamConfig, peer: EndpointId) -> Self {
        let machine = Sender::new(config.sender());
        Self {
            pacer: machine.pacer()(config.rate_bps, 0),
            machine,
            peer,
            channel: Channel::new(config.rtt_ns),
            rate_bps: config.rate_bps,
            left_bytes: config.total_bytes,
            is_complete: false,
            burst: Burst::default(),
            is_blocked: false,
            was_idle: false,
            blasts: Vec::new(),
            finished_ns: None,
            whole_ns: 0,
        }
    }

    /// What the machine counted.
    pub fn statistics(&self) -> SenderStatistics {
        self.machine.statistics()
    }

    /// The rate that it sends at now.
    pub fn rate_bps(&self) -> u64 {
        self.machine.rate_bps()
    }

    /// Blasts that are whole at the other end.
    pub fn blasts(&self) -> &[Blast] {
        &self.blasts
    }

    /// When the other end had everything, as far as this one knows.
    pub fn finished_ns(&self) -> Option<u64> {
        self.finished_ns
    }

    /// When it knew that the last of its blasts was whole.
    pub fn whole_ns(&self) -> u64 {
        self.whole_ns
    }

    pub(super) fn handle_packet(&mut self, now_ns: u64, received: &Received<Packet>) {
        let Packet::Tcp(segment) = &received.packet else {
            return;
        };
        self.is_blocked = false;
        for message in self.channel.handle(segment) {
            let message = Message::clone(&message);
            self.machine
                .handle_message(now_ns, message)
                .expect("a receiver that keeps to the protocol");
        }
        while let Some(blast) = self.machine.poll_blast() {
            self.blasts.push(blast);
            self.whole_ns = now_ns;
        }
        if self.machine.is_finished() && self.finished_ns.is_none() {
            self.finished_ns = Some(now_ns);
        }
    }

    pub(super) fn handle_timeout(&mut self, now_ns: u64) {
        self.channel.handle_timeout(now_ns);
        self.machine.handle_timeout(now_ns);
    }

    pub(super) fn poll_transmit(&mut self, now_ns: u64) -> Option<Transmit<Packet>> {
        if let Some((done, copies)) = self.machine.poll_mark(now_ns) {
            let copies = u16::try_from(copies).expect("a handful of copies");
            return Some(Transmit::train(self.peer, Packet::Mark(done), copies, MARK_BYTES));
        }
        while let Some(message) = self.machine.poll_message() {
            self.channel.push(message);
        }
        if let Some((segment, bytes)) = self.channel.poll(now_ns) {
            return Some(Transmit::train(self.peer, Packet::Tcp(segment), 1, bytes));
        }
        self.poll_burst(now_ns)
    }

    fn poll_burst(&mut self, now_ns: u64) -> Option<Transmit<Packet>> {
        self.follow_rate();
        if self.is_blocked || self.pacer.ready_ns() > now_ns {
            return None;
        }
        self.give(now_ns);
        let bytes_at_once = self.rate_bps / 8 * BURST_NS / NS_PER_S;
        let most = (bytes_at_once as usize / PACKET_BYTES).clamp(*PACKETS.start(), *PACKETS.end());
        if !self.machine.next_burst(now_ns, most, &mut self.burst) {
            (self.is_blocked, self.was_idle) = (true, true);
            return None;
        }
        if std::mem::take(&mut self.was_idle) {
            // Nothing was late: there was nothing to send.
            self.pacer = self.machine.pacer()(self.rate_bps, now_ns);
        }
        let burst = &self.burst;
        let payload = (burst.packets.len() - 1) * burst.packet_bytes + burst.last_bytes;
        self.pacer.sent(now_ns, payload as u64);
        if !burst.is_repeat {
            let hashes = burst
                .packets
                .iter()
                .map(|&packet| packet_hash(burst.blast, packet, &[]));
            self.machine
                .add_hashes(burst.blast, hashes.fold(0, u64::wrapping_add));
        }
        Some(self.train())
    }

    fn train(&self) -> Transmit<Packet> {
        let size = |payload: usize| (payload + HEADER_BYTES) as u32 + IP_UDP_BYTES;
        let packet = Packet::Data {
            blast: self.burst.blast,
            packets: Rc::from(self.burst.packets.as_slice()),
            last_bytes: self.burst.last_bytes,
        };
        let segments = self.burst.packets.len() as u16;
        Transmit {
            last_bytes: size(self.burst.last_bytes),
            ..Transmit::train(self.peer, packet, segments, size(self.burst.packet_bytes))
        }
    }

    fn give(&mut self, now_ns: u64) {
        let bytes = self.left_bytes.min(self.machine.room());
        self.machine.give(bytes);
        self.left_bytes -= bytes;
        if self.left_bytes == 0 && !self.is_complete {
            self.is_complete = true;
            self.machine.finish(now_ns);
        }
    }

    fn follow_rate(&mut self) {
        let rate_bps = self.machine.rate_bps();
        if rate_bps != self.rate_bps {
            self.rate_bps = rate_bps;
            self.pacer.set_rate(rate_bps);
        }
    }

    pub(super) fn next_timeout(&self) -> Option<u64> {
        let burst_ns = (!self.is_blocked).then(|| self.pacer.ready_ns());
        let own_ns = [self.channel.timeout_ns(), self.machine.poll_timeout()];
        own_ns.into_iter().chain([burst_ns]).flatten().min()
    }

    pub(super) fn gauges(&self) -> Gauges {
        let statistics = self.machine.statistics();
        Gauges {
            window: self.machine.rate_bps() as f64,
            in_flight: statistics.unacknowledged_packets,
            delivered: statistics.sent_packets - statistics.unacknowledged_packets,
            rtt_ns: 0,
        }
    }
}
