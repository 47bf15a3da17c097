//! One end of a connection as the world sees it.

use std::collections::VecDeque;
use std::rc::Rc;

use farline_proto::udt::wire::{SocketKind, is_control};
use farline_proto::udt::{Config, Connection, Reader, Statistics};

use super::application::{Application, Figures, Work};
use super::scale::Scale;
use super::stage::Stage;
use crate::{Endpoint, EndpointId, Gauges, Received, Transmit};

/// First word of a handshake.
const HANDSHAKE_WORD: [u8; 4] = [0x80, 0, 0, 0];
/// Room for what one receive call brings: the payload of the longest train.
const READER_BYTES: usize = 1 << 17;
/// Old trains that wait to come again.
const REPLAYS: usize = 64;

/// Datagrams, one behind the other.
#[derive(Debug, Clone)]
pub struct Packet {
    bytes: Rc<[u8]>,
    segment_bytes: usize,
}

/// Trains that come again long after: what a path with a loop, or somebody who recorded them, does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replay {
    /// Each train whose number is a multiple of this.
    pub every: u64,
    /// How long after it was first sent.
    pub after_ns: u64,
}

/// What an end is made from.
#[derive(Debug, Clone, PartialEq)]
pub struct EndConfig {
    /// The machine.
    pub machine: Config,
    /// What it carries.
    pub kind: SocketKind,
    /// What a datagram stands for.
    pub scale: Scale,
    /// What its application writes.
    pub work: Work,
    /// When that begins.
    pub start_ns: u64,
    /// Seed of the bytes, the same at both ends.
    pub content_seed: u64,
    /// Old packets that come again.
    pub replay: Option<Replay>,
}

/// A connection and its application.
#[derive(Debug)]
pub struct End {
    stage: Stage,
    peer: Option<EndpointId>,
    scale: Scale,
    application: Application,
    /// When the application begins, until it has.
    start_ns: Option<u64>,
    replay: Option<Replay>,
    replays: VecDeque<(u64, Transmit<Packet>)>,
    trains: u64,
    reader: Vec<u8>,
}

impl End {
    pub(super) fn new(config: EndConfig, stage: Stage) -> Self {
        let is_message = stage.is_message();
        Self {
            stage,
            peer: None,
            scale: config.scale,
            application: Application::new(config.work, config.content_seed, is_message),
            start_ns: Some(config.start_ns),
            replay: config.replay,
            replays: VecDeque::new(),
            trains: 0,
            reader: vec![0; READER_BYTES],
        }
    }

    /// Says who the other end is.
    pub(super) fn meet(&mut self, peer: EndpointId) {
        self.peer = Some(peer);
    }

    /// The connection, once there is one.
    pub fn connection(&self) -> Option<&Connection> {
        self.stage.connection()
    }

    /// The connection's figures; all zero before there is one.
    pub fn statistics(&self, now_ns: u64) -> Statistics {
        self.connection()
            .map_or_else(Statistics::default, |connection| connection.statistics(now_ns))
    }

    /// What has become of the work.
    pub fn figures(&self) -> Figures {
        self.application.figures()
    }

    /// Calls a method of the connection, as its application would; nothing before there is one.
    pub fn command<T>(&mut self, command: impl FnOnce(&mut Connection) -> T) -> Option<T> {
        self.stage.connection_mut().map(command)
    }

    fn take(&mut self, now_ns: u64, bytes: &[u8], segment_bytes: usize) {
        if bytes.starts_with(&HANDSHAKE_WORD) || self.stage.connection().is_none() {
            self.stage.hear(now_ns, bytes);
        }
        let Some(connection) = self.stage.connection_mut() else {
            return;
        };
        let mut reader = Reader::new(&mut self.reader);
        connection.handle_datagrams(now_ns, bytes, segment_bytes, &mut reader);
        let filled = reader.filled;
        self.application.take_stream(&self.reader[..filled]);
        self.application.read(now_ns, connection);
    }

    /// The next datagrams of the connection.
    fn poll_connection(&mut self, now_ns: u64, to: EndpointId) -> Option<Transmit<Packet>> {
        let connection = self.stage.connection_mut()?;
        if self.start_ns.is_none_or(|start_ns| start_ns <= now_ns) {
            self.start_ns = None;
            self.application.write(now_ns, connection);
        }
        let sent = connection.poll_transmit(now_ns)?;
        let packets = u16::try_from(sent.packets).expect("a burst of fewer than 65536 packets");
        let last = sent.bytes.len() - (sent.packets - 1) * sent.segment_bytes;
        let size = |bytes: usize| {
            let bytes = u32::try_from(bytes).expect("a datagram");
            if is_control(sent.bytes) {
                Scale::control(bytes)
            } else {
                self.scale.declare(bytes)
            }
        };
        Some(Transmit {
            to,
            segments: packets,
            segment_bytes: size(sent.segment_bytes),
            last_bytes: size(last),
            ecn_capable: false,
            packet: Packet {
                bytes: Rc::from(sent.bytes),
                segment_bytes: sent.segment_bytes,
            },
        })
    }

    fn poll_replay(&mut self, now_ns: u64) -> Option<Transmit<Packet>> {
        self.replays.front().filter(|(due_ns, _)| *due_ns <= now_ns)?;
        self.replays.pop_front().map(|(_, transmit)| transmit)
    }

    fn remember(&mut self, now_ns: u64, transmit: &Transmit<Packet>) {
        self.trains += 1;
        if let Some(replay) = self.replay {
            if self.trains % replay.every == 0 && self.replays.len() < REPLAYS {
                self.replays
                    .push_back((now_ns + replay.after_ns, transmit.clone()));
            }
        }
    }
}

/// One handshake as a train.
fn handshake(to: EndpointId, bytes: [u8; 64]) -> Transmit<Packet> {
    let packet = Packet {
        bytes: Rc::from(bytes.as_slice()),
        segment_bytes: bytes.len(),
    };
    Transmit::train(to, packet, 1, Scale::control(64))
}

impl Endpoint for End {
    type Packet = Packet;

    /// A damaged packet is dropped, as a kernel does; one whose damage its checksum hides comes with a bit turned over.
    fn handle_packet(&mut self, now_ns: u64, received: Received<Packet>) {
        if received.is_damaged() {
            return;
        }
        let Packet { bytes, segment_bytes } = &received.packet;
        let first = usize::from(received.first) * segment_bytes;
        let end = (first + usize::from(received.segments) * segment_bytes).min(bytes.len());
        let Some(corruption) = received.corrupt else {
            self.take(now_ns, &bytes[first..end], *segment_bytes);
            return;
        };
        let mut wrong = bytes[first..end].to_vec();
        let bit = (corruption.entropy % (wrong.len() as u64 * 8)) as usize;
        wrong[bit / 8] ^= 1 << (bit % 8);
        self.take(now_ns, &wrong, *segment_bytes);
    }

    fn handle_timeout(&mut self, now_ns: u64) {
        if let Some(connection) = self.stage.connection_mut() {
            connection.handle_timeout(now_ns);
            self.application.read(now_ns, connection);
        }
    }

    fn poll_transmit(&mut self, now_ns: u64) -> Option<Transmit<Packet>> {
        let to = self.peer?;
        if let Some(bytes) = self.stage.poll_handshake(now_ns) {
            return Some(handshake(to, bytes));
        }
        if let Some(transmit) = self.poll_replay(now_ns) {
            return Some(transmit);
        }
        let transmit = self.poll_connection(now_ns, to)?;
        self.remember(now_ns, &transmit);
        Some(transmit)
    }

    fn next_timeout(&self) -> Option<u64> {
        self.peer?;
        let replay_ns = self.replays.front().map(|(due_ns, _)| *due_ns);
        let start_ns = self.start_ns.filter(|_| self.stage.connection().is_some());
        let own_ns = self.stage.next_timeout();
        [replay_ns, start_ns, own_ns].into_iter().flatten().min()
    }

    /// Delivered are the different packets that have come: bytes become readable in leaps where packets are lost.
    fn gauges(&self) -> Gauges {
        let Some(connection) = self.connection() else {
            return Gauges::default();
        };
        let statistics = connection.statistics(0);
        Gauges {
            window: statistics.congestion_window_packets as f64,
            in_flight: statistics.flight_packets,
            delivered: statistics.received_packets - statistics.duplicate_packets,
            rtt_ns: statistics.rtt_ns,
        }
    }
}
