//! A reference TCP: what a window-based sender does to a path, with the kernel's refinements left out.
//!
//! The sender counts segments, sends trains as offloads do, and learns of every loss exactly once. Each segment is
//! acknowledged by itself, with the run of transmissions it ends and all that came in order, so that a lost
//! acknowledgement is made up for by the next. Windows are reduced once per round trip (RFC 6582), a lost
//! retransmission is seen as one, time-outs follow RFC 6298. Nothing is paced.
//!
//! What the machine leaves out against a kernel is listed in `docs/design/simulator.md`.

pub mod control;
mod receiver;
mod rtt;
mod scoreboard;
mod sender;

pub use receiver::{Receiver, ReceiverFigures};
pub use rtt::RttEstimator;
pub use sender::{Congestion, Sender, SenderConfig, SenderFigures};

use crate::{Endpoint, EndpointId, Gauges, Received, Transmit, World};
use control::CongestionControl;

/// Bytes of IPv4 and TCP headers with timestamps in each segment.
pub const HEADER_BYTES: u32 = 52;

/// Bytes of a pure acknowledgement: the headers and one selective block.
pub const ACK_BYTES: u32 = 64;

/// What a packet of a flow carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment {
    /// Data: the packet at place i of the train is segment `sequence + i` and transmission `number + i`.
    Data {
        /// Number of the segment in the stream.
        sequence: u64,
        /// Number of the transmission, which no retransmission has twice.
        number: u64,
    },
    /// Acknowledgements: the packet at place i answers transmission `number + i`.
    Ack(Ack),
}

/// A train of acknowledgements, one for each segment of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack {
    /// Transmission that the first packet of the train answers.
    pub number: u64,
    /// Segment that the first packet of the train answers.
    pub sequence: u64,
    /// Packets in the train as it was sent.
    pub segments: u16,
    /// All transmissions from here to the one answered have arrived (the first selective block of RFC 2018, counted
    /// in transmissions).
    pub run_from: u64,
    /// All segments before this one had arrived before the run.
    pub cumulative_before: u64,
    /// All segments before this one have arrived with the last of the run.
    pub cumulative_after: u64,
    /// The data had a congestion mark (RFC 3168; told per run, not until answered).
    pub marked: bool,
}

/// Either end of a flow.
#[derive(Debug)]
pub enum End {
    /// The end that has data to send.
    Sender(Box<Sender>),
    /// The end that acknowledges.
    Receiver(Receiver),
}

impl End {
    /// The sender, if it is one.
    pub fn sender(&self) -> Option<&Sender> {
        match self {
            Self::Sender(sender) => Some(sender),
            Self::Receiver(_) => None,
        }
    }

    /// The receiver, if it is one.
    pub fn receiver(&self) -> Option<&Receiver> {
        match self {
            Self::Sender(_) => None,
            Self::Receiver(receiver) => Some(receiver),
        }
    }
}

impl Endpoint for End {
    type Packet = Segment;

    fn handle_packet(&mut self, now_ns: u64, received: Received<Segment>) {
        match self {
            Self::Sender(sender) => sender.handle_packet(now_ns, received),
            Self::Receiver(receiver) => receiver.handle_packet(now_ns, received),
        }
    }

    fn handle_timeout(&mut self, now_ns: u64) {
        if let Self::Sender(sender) = self {
            sender.handle_timeout(now_ns);
        }
    }

    fn poll_transmit(&mut self, now_ns: u64) -> Option<Transmit<Segment>> {
        match self {
            Self::Sender(sender) => sender.poll_transmit(now_ns),
            Self::Receiver(receiver) => receiver.poll_transmit(now_ns),
        }
    }

    fn next_timeout(&self) -> Option<u64> {
        match self {
            Self::Sender(sender) => sender.next_timeout(),
            Self::Receiver(_) => None,
        }
    }

    fn gauges(&self) -> Gauges {
        match self {
            Self::Sender(sender) => sender.gauges(),
            Self::Receiver(receiver) => receiver.gauges(),
        }
    }
}

/// The two ends of a flow in a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// The end that sends data.
    pub sender: EndpointId,
    /// The end that acknowledges.
    pub receiver: EndpointId,
}

impl Flow {
    /// Puts both ends of a new flow into `world`, at ports of its layout.
    pub fn open(
        world: &mut World<End>,
        from_port: usize,
        to_port: usize,
        config: SenderConfig,
        control: Box<dyn CongestionControl>,
    ) -> Self {
        let receiver = world.add(to_port, End::Receiver(Receiver::new()));
        let sender = world.add(
            from_port,
            End::Sender(Box::new(Sender::new(receiver, config, control))),
        );
        Self { sender, receiver }
    }

    /// The sender as it stands.
    pub fn sending<'a>(&self, world: &'a World<End>) -> &'a Sender {
        world.endpoint(self.sender).sender().expect("opened as a sender")
    }

    /// The receiver as it stands.
    pub fn receiving<'a>(&self, world: &'a World<End>) -> &'a Receiver {
        world
            .endpoint(self.receiver)
            .receiver()
            .expect("opened as a receiver")
    }
}
