//! How far an end has come: asking, listening, or open.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use farline_proto::udt::handshake::{Agreed, Heard, Listening, Offer, Opening, Step, late_answer};
use farline_proto::udt::wire::{Sequence, SocketKind};
use farline_proto::udt::{Config, Connection};

/// The address that every machine has for the handshake: worlds have none.
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// An end's way to its connection.
#[derive(Debug)]
pub(super) struct Stage {
    machine: Config,
    offer: Offer,
    opening: Option<Opening>,
    listening: Option<Listening>,
    agreed: Option<Agreed>,
    connection: Option<Box<Connection>>,
    /// A handshake to be sent.
    answer: Option<[u8; 64]>,
}

/// What an end brings, so that what is agreed on is `agreed`.
pub(super) fn offer(socket: u32, isn: u32, agreed: &Agreed) -> Offer {
    Offer {
        socket,
        initial_sequence: Sequence::new(isn),
        mss_bytes: agreed.mss_bytes,
        flight_packets: agreed.peer_flight_packets,
        kind: agreed.kind,
    }
}

impl Stage {
    fn new(machine: Config, offer: Offer) -> Self {
        Self {
            machine,
            offer,
            opening: None,
            listening: None,
            agreed: None,
            connection: None,
            answer: None,
        }
    }

    pub(super) fn open(machine: &Config, agreed: Agreed, now_ns: u64) -> Self {
        let offer = offer(agreed.socket, agreed.send_isn.get(), &agreed);
        let mut stage = Self::new(machine.clone(), offer);
        stage.begin(agreed, now_ns);
        stage
    }

    pub(super) fn calling(machine: Config, offer: Offer, now_ns: u64) -> Self {
        let mut stage = Self::new(machine, offer);
        stage.opening = Some(Opening::caller(offer, ADDRESS, now_ns));
        stage
    }

    pub(super) fn listening(machine: Config, offer: Offer, seed: u64) -> Self {
        let mut secret = [0; 32];
        secret[..8].copy_from_slice(&seed.to_le_bytes());
        let mut stage = Self::new(machine, offer);
        stage.listening = Some(Listening::new(secret));
        stage
    }

    pub(super) fn connection(&self) -> Option<&Connection> {
        self.connection.as_deref()
    }

    pub(super) fn connection_mut(&mut self) -> Option<&mut Connection> {
        self.connection.as_deref_mut()
    }

    fn begin(&mut self, agreed: Agreed, now_ns: u64) {
        self.connection = Some(Box::new(Connection::new(&self.machine, &agreed, now_ns)));
        self.agreed = Some(agreed);
        self.opening = None;
    }

    /// A datagram, for the handshake to look at.
    pub(super) fn hear(&mut self, now_ns: u64, datagram: &[u8]) {
        if let Some(opening) = &mut self.opening {
            if let Step::Done(agreed) = opening.handle(now_ns, datagram) {
                self.begin(agreed, now_ns);
            }
        } else if let Some(listening) = &self.listening {
            match listening.handle(now_ns, SocketAddr::new(ADDRESS, 9), datagram, &self.offer) {
                Heard::Nothing => {}
                Heard::Answer(answer) => self.answer = Some(answer),
                Heard::Wanted(wanted) => {
                    let (agreed, answer) = Listening::accept(&wanted, ADDRESS, &self.offer);
                    self.answer = Some(answer);
                    if self.connection.is_none() {
                        self.begin(agreed, now_ns);
                    }
                }
            }
        } else if let Some(agreed) = &self.agreed {
            self.answer = late_answer(agreed, &self.offer, datagram).or(self.answer);
        }
    }

    /// A handshake to be sent now.
    pub(super) fn poll_handshake(&mut self, now_ns: u64) -> Option<[u8; 64]> {
        let asked = self
            .opening
            .as_mut()
            .and_then(|opening| opening.poll_transmit(now_ns));
        asked.or_else(|| self.answer.take())
    }

    pub(super) fn next_timeout(&self) -> Option<u64> {
        let opening = self.opening.as_ref().map(Opening::next_timeout);
        opening.or_else(|| self.connection()?.next_timeout())
    }

    /// Whether messages go instead of a stream.
    pub(super) fn is_message(&self) -> bool {
        self.offer.kind == SocketKind::Message
    }
}
