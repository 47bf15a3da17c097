//! What a protocol machine is to the simulator.
//!
//! The shape is that of sans-I/O protocol libraries: packets and time go in, packets and the time of the next
//! wake-up come out, and the machine never waits, sends or looks at a clock by itself.

use farline_emulator::model::Corruption;

/// Number of a machine in its [`crate::World`], in the order of their adding: the address packets are sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointId(pub(crate) u32);

/// What a machine says of itself; what does not apply to it is 0.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Gauges {
    /// Window in packets.
    pub window: f64,
    /// Packets under way.
    pub in_flight: u64,
    /// Packets delivered so far: known to have arrived (a sender), ready to be read (a receiver).
    pub delivered: u64,
    /// Latest round-trip time.
    pub rtt_ns: u64,
}

/// A train of packets to send: `segments` packets back to back, all `segment_bytes` long but the last.
///
/// A machine that sends single packets sets `segments` to 1. Packets of a train are told apart by their place, so
/// that `packet` is the same for all of them; see [`Received::first`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit<P> {
    /// Machine it goes to.
    pub to: EndpointId,
    /// Content: bytes, or anything else that can be cloned.
    pub packet: P,
    /// Packets in the train, at least 1.
    pub segments: u16,
    /// Length of each packet but the last, IP header included.
    pub segment_bytes: u32,
    /// Length of the last packet, IP header included.
    pub last_bytes: u32,
    /// Whether a queue may mark it instead of dropping it (RFC 3168).
    pub ecn_capable: bool,
}

impl<P> Transmit<P> {
    /// A train of equally long packets that cannot be marked.
    pub fn train(to: EndpointId, packet: P, segments: u16, segment_bytes: u32) -> Self {
        Self {
            to,
            packet,
            segments,
            segment_bytes,
            last_bytes: segment_bytes,
            ecn_capable: false,
        }
    }

    /// The same around another content.
    pub fn map<Q>(self, wrap: impl FnOnce(P) -> Q) -> Transmit<Q> {
        Transmit {
            to: self.to,
            packet: wrap(self.packet),
            segments: self.segments,
            segment_bytes: self.segment_bytes,
            last_bytes: self.last_bytes,
            ecn_capable: self.ecn_capable,
        }
    }
}

/// A run of packets of one train that arrived together; a train that met losses or a slow link arrives as several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received<P> {
    /// Machine it came from.
    pub from: EndpointId,
    /// Content, as it was sent.
    pub packet: P,
    /// Place in the train, as sent, of the first packet of this run.
    pub first: u16,
    /// Packets in this run.
    pub segments: u16,
    /// Bytes of the run, IP headers included.
    pub bytes: u64,
    /// Marked with congestion experienced.
    pub marked: bool,
    /// The bit that was turned over on the way.
    pub corrupt: Option<Corruption>,
}

impl<P> Received<P> {
    /// Whether the checksums of IP, TCP or UDP show that it is damaged, so that a kernel would drop it.
    pub fn is_damaged(&self) -> bool {
        self.corrupt.is_some_and(|corruption| !corruption.hidden)
    }
}

impl<P> Received<P> {
    /// The same around another content, if `unwrap` accepts it.
    pub fn try_map<Q>(self, unwrap: impl FnOnce(P) -> Option<Q>) -> Option<Received<Q>> {
        Some(Received {
            from: self.from,
            packet: unwrap(self.packet)?,
            first: self.first,
            segments: self.segments,
            bytes: self.bytes,
            marked: self.marked,
            corrupt: self.corrupt,
        })
    }
}

/// A protocol machine. Times are nanoseconds since the world began.
///
/// After every `handle_*` the world calls [`Endpoint::poll_transmit`] until it gives nothing, then
/// [`Endpoint::next_timeout`].
pub trait Endpoint {
    /// What its packets carry.
    type Packet: Clone;

    /// A run of packets arrived.
    fn handle_packet(&mut self, now_ns: u64, received: Received<Self::Packet>);

    /// The time that [`Endpoint::next_timeout`] gave has come.
    fn handle_timeout(&mut self, now_ns: u64);

    /// The next train to send now, if there is one.
    fn poll_transmit(&mut self, now_ns: u64) -> Option<Transmit<Self::Packet>>;

    /// When to be woken; a time that has passed means at once.
    fn next_timeout(&self) -> Option<u64>;

    /// Figures for the samples; all zero for a machine that has none.
    fn gauges(&self) -> Gauges {
        Gauges::default()
    }
}

/// Two kinds of machines in one world: `Either<tcp::End, MyProtocol>`. Nests for more than two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Either<A, B> {
    /// The one.
    Left(A),
    /// The other.
    Right(B),
}

impl<A: Endpoint, B: Endpoint> Endpoint for Either<A, B> {
    type Packet = Either<A::Packet, B::Packet>;

    /// A packet of the other kind is not for this machine and is dropped, as a host drops an unknown protocol.
    fn handle_packet(&mut self, now_ns: u64, received: Received<Self::Packet>) {
        match self {
            Self::Left(machine) => {
                let own = |packet| match packet {
                    Either::Left(own) => Some(own),
                    Either::Right(_) => None,
                };
                if let Some(received) = received.try_map(own) {
                    machine.handle_packet(now_ns, received);
                }
            }
            Self::Right(machine) => {
                let own = |packet| match packet {
                    Either::Left(_) => None,
                    Either::Right(own) => Some(own),
                };
                if let Some(received) = received.try_map(own) {
                    machine.handle_packet(now_ns, received);
                }
            }
        }
    }

    fn handle_timeout(&mut self, now_ns: u64) {
        match self {
            Self::Left(machine) => machine.handle_timeout(now_ns),
            Self::Right(machine) => machine.handle_timeout(now_ns),
        }
    }

    fn poll_transmit(&mut self, now_ns: u64) -> Option<Transmit<Self::Packet>> {
        match self {
            Self::Left(machine) => Some(machine.poll_transmit(now_ns)?.map(Either::Left)),
            Self::Right(machine) => Some(machine.poll_transmit(now_ns)?.map(Either::Right)),
        }
    }

    fn next_timeout(&self) -> Option<u64> {
        match self {
            Self::Left(machine) => machine.next_timeout(),
            Self::Right(machine) => machine.next_timeout(),
        }
    }

    fn gauges(&self) -> Gauges {
        match self {
            Self::Left(machine) => machine.gauges(),
            Self::Right(machine) => machine.gauges(),
        }
    }
}
