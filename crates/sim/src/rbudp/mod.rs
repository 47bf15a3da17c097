//! Both machines of RBUDP in a world: a stream of blasts, its pacing, and the TCP connection beside it.
//!
//! What it does: gives a sender payload, sends its bursts at the rate that it says with the pacer that runs on sockets,
//! and carries the messages of both ends over a [`Channel`] that keeps order, repeats what is lost and starts slowly.
//! What it must not do: hold payload. Packets are numbers; a packet's hash follows from its number, so that a blast that
//! is whole is one whose packets all came once.
//!
//! In: a [`StreamConfig`]. Out: the machines as they ended, their blasts, the sizes of the reports. [`formula`] says how
//! long a blast should have taken.
//!
//! What it leaves out: sockets and their buffers, the time that a machine takes to do its work, and what TCP does besides
//! slow start and repetition.
//!
//! Start with [`Stream::open`], then [`Trial`].

mod channel;
pub mod formula;
mod receiving;
mod sending;
mod trial;

use std::rc::Rc;

use farline_proto::rbudp::wire::{Done, HEADER_BYTES};
use farline_proto::rbudp::{ReceiverOptions, SenderOptions, settle_ns};

pub use channel::Channel;
pub use receiving::Receiving;
pub use sending::Sending;
pub use trial::Trial;

use crate::{Endpoint, EndpointId, Gauges, Received, Transmit, World};
use channel::Segment;

/// Headers of IP and UDP.
const IP_UDP_BYTES: u32 = 28;
/// Payload of a packet that fills an Ethernet frame.
pub const PACKET_BYTES: usize = 1500 - IP_UDP_BYTES as usize - HEADER_BYTES;

/// What a stream is made from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StreamConfig {
    /// Payload of the whole stream.
    pub total_bytes: u64,
    /// Payload of a blast.
    pub blast_bytes: u64,
    /// Blasts under way at once.
    pub in_flight: u32,
    /// Reports while a blast goes on.
    pub early: bool,
    /// Stated payload rate.
    pub rate_bps: u64,
    /// Round-trip time, as both ends know it.
    pub rtt_ns: u64,
    /// Share of losses above which the rate falls.
    pub loss_bound: Option<f64>,
}

impl StreamConfig {
    /// The paper's way: one blast, one report after each pass.
    pub fn paper(bytes: u64, rate_bps: u64, rtt_ns: u64) -> Self {
        Self {
            total_bytes: bytes,
            blast_bytes: bytes,
            in_flight: 1,
            early: false,
            rate_bps,
            rtt_ns,
            loss_bound: None,
        }
    }

    fn sender(&self) -> SenderOptions {
        SenderOptions {
            packet_bytes: PACKET_BYTES,
            payload_bytes: self.blast_bytes,
            in_flight: self.in_flight,
            early: self.early,
            rtt_ns: self.rtt_ns,
            rate_bps: self.rate_bps,
            loss_bound: self.loss_bound,
            window_bytes: None,
            checksum: true,
        }
    }

    fn receiver(&self) -> ReceiverOptions {
        ReceiverOptions {
            packet_bytes: PACKET_BYTES,
            payload_bytes: self.blast_bytes,
            in_flight: self.in_flight,
            settle_ns: settle_ns(self.rtt_ns),
            checksum: true,
        }
    }
}

/// What travels.
#[derive(Debug, Clone)]
pub enum Packet {
    /// Packets of a blast; the one at place i of the train is `packets[i]`.
    Data {
        /// Which blast.
        blast: u32,
        /// Their numbers.
        packets: Rc<[u32]>,
        /// Payload bytes of the last of them.
        last_bytes: usize,
    },
    /// Copies of a DONE.
    Mark(Done),
    /// A piece of the TCP connection.
    Tcp(Segment),
}

/// Either end.
#[derive(Debug)]
pub enum End {
    /// The end that sends.
    Sending(Box<Sending>),
    /// The end that receives.
    Receiving(Box<Receiving>),
}

/// The two ends of a stream in a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    /// The end that sends.
    pub sender: EndpointId,
    /// The end that receives.
    pub receiver: EndpointId,
}

impl Stream {
    /// Puts both ends into `world`, at ports of its layout; the sender begins at once.
    pub fn open(world: &mut World<End>, from_port: usize, to_port: usize, config: &StreamConfig) -> Self {
        let receiver = world.add(to_port, End::Receiving(Box::new(Receiving::new(config))));
        let sender = world.add(from_port, End::Sending(Box::new(Sending::new(config, receiver))));
        world.command(receiver, |_, end| {
            if let End::Receiving(end) = end {
                end.meet(sender);
            }
        });
        Self { sender, receiver }
    }

    /// The end that sends.
    ///
    /// # Panics
    /// When the world is not the one that the stream was opened in.
    pub fn sending(self, world: &World<End>) -> &Sending {
        match world.endpoint(self.sender) {
            End::Sending(end) => end,
            End::Receiving(_) => panic!("another world"),
        }
    }

    /// The end that receives.
    ///
    /// # Panics
    /// When the world is not the one that the stream was opened in.
    pub fn receiving(self, world: &World<End>) -> &Receiving {
        match world.endpoint(self.receiver) {
            End::Receiving(end) => end,
            End::Sending(_) => panic!("another world"),
        }
    }
}

impl Endpoint for End {
    type Packet = Packet;

    /// A damaged packet is dropped, as a kernel does, or as the check of a packet where it was put does.
    fn handle_packet(&mut self, now_ns: u64, received: Received<Packet>) {
        if received.corrupt.is_some() {
            return;
        }
        match self {
            Self::Sending(end) => end.handle_packet(now_ns, &received),
            Self::Receiving(end) => end.handle_packet(now_ns, &received),
        }
    }

    fn handle_timeout(&mut self, now_ns: u64) {
        if let Self::Sending(end) = self {
            end.handle_timeout(now_ns);
        }
    }

    fn poll_transmit(&mut self, now_ns: u64) -> Option<Transmit<Packet>> {
        match self {
            Self::Sending(end) => end.poll_transmit(now_ns),
            Self::Receiving(end) => end.poll_transmit(now_ns),
        }
    }

    fn next_timeout(&self) -> Option<u64> {
        match self {
            Self::Sending(end) => end.next_timeout(),
            Self::Receiving(end) => end.next_timeout(),
        }
    }

    fn gauges(&self) -> Gauges {
        match self {
            Self::Sending(end) => end.gauges(),
            Self::Receiving(end) => end.gauges(),
        }
    }
}
