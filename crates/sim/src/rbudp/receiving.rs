//! The end that receives.

use farline_proto::rbudp::wire::{Message, packet_hash};
use farline_proto::rbudp::{Receiver, ReceiverStatistics};
use farline_spec::Blast;

use super::channel::Channel;
use super::{PACKET_BYTES, Packet, StreamConfig};
use crate::{EndpointId, Gauges, Received, Transmit};

/// A receiver, its application, which is done with a blast at once, and its end of the TCP connection.
#[derive(Debug)]
pub struct Receiving {
    machine: Receiver,
    peer: Option<EndpointId>,
    channel: Channel,
    blasts: Vec<Blast>,
    report_bytes: Vec<usize>,
    delivered_bytes: u64,
}

impl Receiving {
    pub(super) fn new(config: &StreamConfig) -> Self {
        Self {
            machine: Receiver::new(config.receiver()),
            peer: None,
            channel: Channel::new(config.rtt_ns),
            blasts: Vec::new(),
            report_bytes: Vec::new(),
            delivered_bytes: 0,
        }
    }

    /// Says who the other end is.
    pub(super) fn meet(&mut self, peer: EndpointId) {
        self.peer = Some(peer);
    }

    /// What the machine counted.
    pub fn statistics(&self) -> ReceiverStatistics {
        self.machine.statistics()
    }

    /// Blasts that are whole.
    pub fn blasts(&self) -> &[Blast] {
        &self.blasts
    }

    /// Bytes of each report on the TCP connection, in order.
    pub fn report_bytes(&self) -> &[usize] {
        &self.report_bytes
    }

    /// Payload that the application got.
    pub fn delivered_bytes(&self) -> u64 {
        self.delivered_bytes
    }

    pub(super) fn handle_packet(&mut self, now_ns: u64, received: &Received<Packet>) {
        match &received.packet {
            Packet::Data {
                blast,
                packets,
                last_bytes,
            } => {
                let first = usize::from(received.first);
                for (place, &packet) in packets
                    .iter()
                    .enumerate()
                    .skip(first)
                    .take(usize::from(received.segments))
                {
                    let bytes = if place + 1 == packets.len() {
                        *last_bytes
                    } else {
                        PACKET_BYTES
                    };
                    self.machine
                        .note(now_ns, *blast, packet, bytes, packet_hash(*blast, packet, &[]));
                }
            }
            Packet::Mark(done) => {
                self.machine
                    .handle_done(now_ns, *done)
                    .expect("a sender that keeps to the protocol");
            }
            Packet::Tcp(segment) => {
                for message in self.channel.handle(segment) {
                    let message = Message::clone(&message);
                    self.machine
                        .handle_message(now_ns, message)
                        .expect("a sender that keeps to the protocol");
                }
            }
        }
        while let Some((blast, bytes)) = self.machine.poll_whole().expect("hashes that add up") {
            self.delivered_bytes += bytes;
            self.machine.release(blast);
        }
        self.blasts
            .extend(std::iter::from_fn(|| self.machine.poll_blast()));
    }

    pub(super) fn poll_transmit(&mut self, now_ns: u64) -> Option<Transmit<Packet>> {
        let to = self.peer?;
        self.channel.handle_timeout(now_ns);
        while let Some(message) = self.machine.poll_message(now_ns) {
            let is_report = matches!(message, Message::Missing(_));
            let bytes = self.channel.push(message);
            self.report_bytes.extend(is_report.then_some(bytes));
        }
        let (segment, bytes) = self.channel.poll(now_ns)?;
        Some(Transmit::train(to, Packet::Tcp(segment), 1, bytes))
    }

    pub(super) fn next_timeout(&self) -> Option<u64> {
        let own_ns = [self.channel.timeout_ns(), self.machine.poll_timeout()];
        own_ns.into_iter().flatten().min()
    }

    pub(super) fn gauges(&self) -> Gauges {
        Gauges {
            delivered: self.machine.statistics().fresh_packets,
            ..Gauges::default()
        }
    }
}
