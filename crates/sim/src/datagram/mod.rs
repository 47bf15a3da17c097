//! Datagrams at a stated rate, and a sink that says what became of them.
//!
//! The sink knows order, loss, repetition, one-way delay and jitter. A source may send trains; the delay of a train is
//! that of its last packet, so delays are for single packets.

mod sink;
mod source;

pub use sink::{Sink, SinkFigures};
pub use source::{Arrivals, Source, SourceConfig};

use crate::{Endpoint, EndpointId, Gauges, Received, Transmit, World};

/// What a datagram carries: the packet at place i of its train has number `number + i`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram {
    /// Number of the train's first packet, counted from 0.
    pub number: u64,
    /// When it was sent.
    pub sent_ns: u64,
}

/// Either end.
#[derive(Debug, Clone)]
pub enum End {
    /// The end that sends.
    Source(Source),
    /// The end that counts.
    Sink(Sink),
}

impl End {
    /// Puts a source and its sink into `world`, at ports of its layout; gives their numbers.
    pub fn open(
        world: &mut World<Self>,
        from_port: usize,
        to_port: usize,
        config: SourceConfig,
    ) -> (EndpointId, EndpointId) {
        let sink = world.add(to_port, Self::Sink(Sink::default()));
        let source = world.add(from_port, Self::Source(Source::new(sink, config)));
        (source, sink)
    }

    /// The sink, if it is one.
    pub fn sink(&self) -> Option<&Sink> {
        match self {
            Self::Source(_) => None,
            Self::Sink(sink) => Some(sink),
        }
    }

    /// The source, if it is one.
    pub fn source(&self) -> Option<&Source> {
        match self {
            Self::Source(source) => Some(source),
            Self::Sink(_) => None,
        }
    }
}

impl Endpoint for End {
    type Packet = Datagram;

    fn handle_packet(&mut self, now_ns: u64, received: Received<Datagram>) {
        if let Self::Sink(sink) = self {
            sink.take(now_ns, &received);
        }
    }

    fn handle_timeout(&mut self, now_ns: u64) {
        if let Self::Source(source) = self {
            source.wake(now_ns);
        }
    }

    fn poll_transmit(&mut self, now_ns: u64) -> Option<Transmit<Datagram>> {
        match self {
            Self::Source(source) => source.next(now_ns),
            Self::Sink(_) => None,
        }
    }

    fn next_timeout(&self) -> Option<u64> {
        match self {
            Self::Source(source) => source.next_ns(),
            Self::Sink(_) => None,
        }
    }

    fn gauges(&self) -> Gauges {
        let delivered = match self {
            Self::Source(source) => source.sent(),
            Self::Sink(sink) => sink.figures().packets,
        };
        Gauges {
            delivered,
            ..Gauges::default()
        }
    }
}
