//! One connection after its handshake: both directions, every timer, no socket.
//!
//! `incoming` takes datagrams, `outgoing` gives them, `timers` knows when something is to be done without either;
//! `acks` is the receiver's duty to report, `round_trip`, `pacing` and `limits` keep figures. Memory is bounded by
//! the two buffers; nothing a peer sends makes it grow beyond them.
//!
//! ```text
//! Connection::new ─► loop: handle_datagrams (what has come) ─► handle_timeout (if next_timeout has passed)
//!                          read, write, flush, finish       ─► poll_transmit … until None ─► wait until next_timeout
//! ```
//!
//! Call order: after anything that was done to it, [`Connection::poll_transmit`] until it gives `None`, and only then
//! [`Connection::next_timeout`], which is asked anew each time: every call may change it. Datagrams that have come by then are
//! handled before [`Connection::handle_timeout`], or what they acknowledge is taken for lost. A burst is handed to the kernel,
//! or thrown away, before the next call; thrown away it counts as lost on the path. `read` and `write` say 0 where nothing can be
//! taken or given now: ask again after the next datagrams. After [`Connection::finish`] the loop goes on until [`Connection::state`]
//! is closed; after [`Connection::close`] until `poll_transmit` gives `None`. Times are nanoseconds of one monotonic clock and
//! never go back.
//!
//! What the reference library does otherwise, and why a peer cannot tell: `docs/design/udt.md`.

mod acks;
mod incoming;
mod limits;
mod outgoing;
mod pacing;
mod round_trip;
#[cfg(test)]
mod tests;
mod timers;

use farline_spec::UdtControl;

use self::acks::Acknowledger;
use self::limits::Limits;
use self::pacing::Pacing;
use self::round_trip::RoundTrip;
use self::timers::{Expiry, PeerDetection, ShutdownTimer};
use super::congestion::{Control, ControlConfig, control_for};
use super::delivery::Delivery;
use super::estimate::{ArrivalRate, Capacity};
use super::gaps::Gaps;
use super::handshake::Agreed;
use super::receive_buffer::{MessageRead, ReceiveBuffer, ReceiveLayout};
use super::send_buffer::{SendBuffer, SendLayout};
use super::statistics::Statistics;
use super::wire::{HEADER_BYTES, IP_UDP_BYTES, Sequence, SocketKind};

/// Bytes of an elastic send buffer that wait for their first sending, in bursts.
const WAITING_BURSTS: u64 = 8;
/// Time of sending at a stated rate that may wait in an elastic send buffer.
const WAITING_NS: u64 = 10_000_000;
/// Most payload bytes that an elastic send buffer holds, those under way included.
const ELASTIC_BYTES: u64 = 1 << 30;

/// How this end behaves.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Packets that the kernel takes in one call, at least 1.
    pub burst_packets: usize,
    /// Packets kept for sending, those under way included; as many as the path needs if absent.
    pub send_buffer_packets: Option<u64>,
    /// Packets kept for receiving.
    pub receive_buffer_packets: u64,
    /// Most packets under way in either direction (UDT_FC).
    pub flow_window_packets: u64,
    /// Congestion control of this sender.
    pub control: UdtControl,
    /// Most payload bits per second of this sender (UDT_MAXBW).
    pub max_payload_bps: Option<u64>,
    /// What a farline peer must know to end this connection: unpredictable.
    pub token: u32,
    /// Seed of everything drawn by chance.
    pub seed: u64,
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// We ended it, and everything sent before that was acknowledged or given up on purpose.
    ByUs,
    /// The other end ended it after it had sent everything.
    ByPeer,
    /// The other end gave up in the middle.
    Aborted,
    /// Nothing came from the other end for too long.
    PeerDead,
    /// The other end reported an error (4000: of its file).
    PeerError(u32),
}

/// Where a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Data may flow.
    Open,
    /// What was written is being delivered; nothing more may be written.
    Finishing,
    /// Over. What arrived before may still be read.
    Closed(Closed),
}

/// Where payload may go without passing through the receive buffer.
#[derive(Debug)]
pub struct Reader<'a> {
    /// Memory of the application.
    pub buffer: &'a mut [u8],
    /// Bytes of it that are filled.
    pub filled: usize,
}

impl<'a> Reader<'a> {
    /// A reader into `buffer`, empty so far.
    pub fn new(buffer: &'a mut [u8]) -> Self {
        Self { buffer, filled: 0 }
    }

    /// No reader: everything goes to the receive buffer.
    pub fn none() -> Reader<'static> {
        Reader {
            buffer: &mut [],
            filled: 0,
        }
    }

    /// Room that is left.
    pub fn room(&self) -> usize {
        self.buffer.len() - self.filled
    }

    fn put(&mut self, payload: &[u8]) {
        let end = self.filled + payload.len();
        self.buffer[self.filled..end].copy_from_slice(payload);
        self.filled = end;
    }
}

/// Datagrams to hand to the kernel in one call: all `segment_bytes` long but the last, which may be shorter.
#[derive(Debug, PartialEq, Eq)]
pub struct Transmit<'a> {
    /// The datagrams, one behind the other.
    pub bytes: &'a [u8],
    /// Length of each but the last.
    pub segment_bytes: usize,
    /// How many there are.
    pub packets: usize,
}

/// One open connection.
#[derive(Debug)]
pub struct Connection {
    kind: SocketKind,
    socket: u32,
    peer_socket: u32,
    send_isn: Sequence,
    receive_isn: Sequence,
    packet_bytes: usize,
    burst_packets: usize,
    flow_window_packets: u64,
    token: u32,
    is_elastic: bool,
    max_payload_bps: Option<u64>,
    /// The same in full packets.
    stated_pps: Option<f64>,
    opened_ns: u64,
    state: State,

    send: SendBuffer,
    control: Box<dyn Control>,
    delivery: Delivery,
    pacing: Pacing,
    /// First index that the peer's window does not allow.
    window_edge: u64,
    /// After so many bytes a packet ends early while the peer is not known to be farline: libudt acknowledges a
    /// packet of odd size at once, others only when 10 ms have passed and another one comes.
    part_bytes: usize,
    part_left: usize,
    /// What was written before this index goes without waiting for more.
    flush_below: u64,
    /// When the oldest bytes that wait for company were written.
    waiting_since_ns: Option<u64>,
    is_app_limited: bool,
    /// Distinct packets that a farline peer says it has.
    peer_received: u64,
    pending_ack2: Option<u32>,
    keep_alive_due: bool,
    last_ack2_ns: Option<u64>,
    peer_capacity_pps: Option<f64>,
    peer_arrival_pps: Option<f64>,

    receive: ReceiveBuffer,
    gaps: Gaps,
    /// Ranges of indices to report as missing.
    naks: Vec<(u64, u64)>,
    arrival: ArrivalRate,
    capacity: Capacity,
    acks: Acknowledger,

    rtt: RoundTrip,
    expiry: Expiry,
    greeting: PeerDetection,
    parting: ShutdownTimer,
    limits: Limits,
    counted: Statistics,
    scratch: Vec<u8>,
}

impl Connection {
    /// A connection as it was agreed on, open from now.
    ///
    /// # Panics
    /// When `agreed.mss_bytes` leaves no room for payload (the handshake refuses such a peer) or `config` has a
    /// burst of no packets.
    pub fn new(config: &Config, agreed: &Agreed, now_ns: u64) -> Self {
        let packet_bytes = agreed.mss_bytes as usize - IP_UDP_BYTES;
        let payload_bytes = packet_bytes - HEADER_BYTES;
        let elastic_packets = ELASTIC_BYTES / payload_bytes as u64;
        let send = SendLayout {
            packet_bytes,
            burst_packets: config.burst_packets,
            capacity_packets: config.send_buffer_packets.unwrap_or(elastic_packets).max(1),
            isn: agreed.send_isn,
            destination: agreed.peer_socket,
            kind: agreed.kind,
        };
        let receive = ReceiveLayout {
            payload_bytes,
            burst_packets: config.burst_packets,
            capacity_packets: config.receive_buffer_packets.max(2),
            kind: agreed.kind,
        };
        let part_bytes = part_bytes(&send, agreed);
        let stated_pps = stated_pps(config, payload_bytes);
        Self {
            kind: agreed.kind,
            socket: agreed.socket,
            peer_socket: agreed.peer_socket,
            send_isn: agreed.send_isn,
            receive_isn: agreed.receive_isn,
            packet_bytes,
            burst_packets: config.burst_packets,
            flow_window_packets: config.flow_window_packets.max(2),
            token: config.token,
            is_elastic: config.send_buffer_packets.is_none(),
            max_payload_bps: config.max_payload_bps,
            stated_pps,
            opened_ns: now_ns,
            state: State::Open,
            send: SendBuffer::new(send),
            control: control_of(config, packet_bytes, stated_pps, now_ns),
            delivery: Delivery::new(now_ns),
            pacing: Pacing::new(now_ns, config.max_payload_bps),
            window_edge: u64::from(agreed.peer_flight_packets),
            part_bytes,
            part_left: part_bytes,
            flush_below: 0,
            waiting_since_ns: None,
            is_app_limited: false,
            peer_received: 0,
            pending_ack2: None,
            keep_alive_due: false,
            last_ack2_ns: None,
            peer_capacity_pps: None,
            peer_arrival_pps: None,
            receive: ReceiveBuffer::new(receive),
            gaps: Gaps::new(),
            naks: Vec::new(),
            arrival: ArrivalRate::new(),
            capacity: Capacity::new(agreed.receive_isn),
            acks: Acknowledger::new(
                now_ns,
                config.receive_buffer_packets.min(config.flow_window_packets),
            ),
            rtt: RoundTrip::new(),
            expiry: Expiry::new(now_ns),
            greeting: PeerDetection::new(now_ns, agreed.is_marked),
            parting: ShutdownTimer::new(),
            limits: Limits::new(now_ns),
            counted: Statistics::default(),
            scratch: Vec::with_capacity(packet_bytes),
        }
    }

    /// Where the connection stands.
    pub fn state(&self) -> State {
        self.state
    }

    /// Bytes of payload in a full packet.
    pub fn payload_bytes(&self) -> usize {
        self.packet_bytes - HEADER_BYTES
    }

    /// Takes as many of `bytes` as there is room for, to be sent; 0 unless the connection is an open stream.
    ///
    /// They go when a whole burst has come together, 50 µs have passed, or [`Self::flush`] is called.
    pub fn write(&mut self, now_ns: u64, bytes: &[u8]) -> usize {
        if self.state != State::Open || self.kind != SocketKind::Stream {
            return 0;
        }
        let room = self.room_bytes();
        let taken = self.write_parts(&bytes[..bytes.len().min(room)]);
        if taken > 0 {
            self.waiting_since_ns.get_or_insert(now_ns);
        }
        taken
    }

    fn write_parts(&mut self, bytes: &[u8]) -> usize {
        if self.is_peer_farline() {
            return self.send.write(bytes);
        }
        let mut taken = 0;
        while taken < bytes.len() {
            let part = (bytes.len() - taken).min(self.part_left);
            let written = self.send.write(&bytes[taken..taken + part]);
            taken += written;
            self.part_left -= written;
            if self.part_left == 0 {
                self.send.end_packet();
                self.part_left = self.part_bytes;
            }
            if written < part {
                break;
            }
        }
        taken
    }

    /// Bytes that [`Self::write`] would take now.
    pub fn room_bytes(&self) -> usize {
        let free = self.send.free_bytes();
        if !self.is_elastic && self.max_payload_bps.is_none() {
            return usize::try_from(free).unwrap_or(usize::MAX);
        }
        let burst_bytes = (self.burst_packets * self.payload_bytes()) as u64;
        let limit = match self.max_payload_bps {
            Some(bps) => (bps / 8)
                .saturating_mul(WAITING_NS)
                .div_ceil(1_000_000_000)
                .clamp(self.payload_bytes() as u64, WAITING_BURSTS * burst_bytes),
            None => WAITING_BURSTS * burst_bytes,
        };
        let room = limit.saturating_sub(self.send.unsent_bytes()).min(free);
        usize::try_from(room).unwrap_or(usize::MAX)
    }

    /// Takes a whole message to be sent, or nothing and gives false: no room now, not an open connection of
    /// messages, or larger than the whole send buffer. After `ttl_ns` it is given up if it has not arrived.
    pub fn write_message(
        &mut self,
        now_ns: u64,
        message: &[u8],
        in_order: bool,
        ttl_ns: Option<u64>,
    ) -> bool {
        if self.state != State::Open || self.kind != SocketKind::Message {
            return false;
        }
        let expires_ns = ttl_ns.map(|ttl_ns| now_ns.saturating_add(ttl_ns));
        let taken = self.send.write_message(message, in_order, expires_ns);
        if taken {
            self.flush();
        }
        taken
    }

    /// What was written goes as soon as window and rate allow.
    pub fn flush(&mut self) {
        self.flush_below = self.send.end();
    }

    /// Copies what has arrived in order to `into`; gives the bytes. 0: nothing now.
    pub fn read(&mut self, now_ns: u64, into: &mut [u8]) -> usize {
        let bytes = self.receive.read(into);
        self.counted.delivered_bytes += bytes as u64;
        self.note_read(now_ns, bytes > 0);
        bytes
    }

    /// Next whole message, cut to the length of `into`.
    pub fn read_message(&mut self, now_ns: u64, into: &mut [u8]) -> Option<MessageRead> {
        let message = self.receive.read_message(into)?;
        self.counted.delivered_bytes += message.bytes as u64;
        self.note_read(now_ns, true);
        Some(message)
    }

    /// Whether [`Self::read`] would give something.
    pub fn readable_bytes(&self) -> u64 {
        self.receive.readable_bytes()
    }

    /// The window has opened: the sender must hear of it if it had come near its end.
    fn note_read(&mut self, now_ns: u64, has_read: bool) {
        if has_read && matches!(self.state, State::Open | State::Finishing) {
            let window = self.window_packets();
            self.acks.note_window(now_ns, window, self.receive.next());
        }
    }

    /// Packets that this end allows under way towards it, from the first missing one.
    fn window_packets(&self) -> u64 {
        self.receive.free_packets().min(self.flow_window_packets).max(2)
    }

    /// Nothing more will be written; when everything is acknowledged the connection ends.
    pub fn finish(&mut self) {
        if self.state == State::Open {
            self.flush();
            self.state = State::Finishing;
        }
    }

    /// Ends the connection now; what is not acknowledged is given up. One datagram is left to be sent.
    pub fn close(&mut self, now_ns: u64) {
        if matches!(self.state, State::Closed(_)) {
            return;
        }
        self.parting.say(now_ns, self.is_delivered());
        self.state = State::Closed(Closed::ByUs);
    }

    /// Whether the other end has acknowledged everything that was written, or it was given up on purpose.
    pub fn is_delivered(&self) -> bool {
        self.send.acked() == self.send.end()
    }

    /// Whether the other end has said that it is farline.
    pub fn is_peer_farline(&self) -> bool {
        self.greeting.peer_token().is_some()
    }

    /// Name of the congestion control.
    pub fn control_name(&self) -> &'static str {
        self.control.name()
    }

    /// Packets taken for being under way: sent, not known to have arrived, not known to be lost.
    fn flight_packets(&self) -> u64 {
        let arrived = self.send.acked().max(self.peer_received);
        self.send
            .sent()
            .saturating_sub(arrived)
            .saturating_sub(self.send.lost_packets())
    }

    /// Figures up to now.
    pub fn statistics(&self, now_ns: u64) -> Statistics {
        let payload = self.payload_bytes() as u64;
        let limits = self.limits.up_to(now_ns);
        Statistics {
            busy_ns: limits.busy_ns,
            receive_window_limited_ns: limits.window_ns,
            send_buffer_limited_ns: limits.buffer_ns,
            paced_wait_ns: limits.pacing_ns,
            send_period_ns: self.rate_pps().map_or(0, period_ns),
            flow_window_packets: self.window_edge.saturating_sub(self.send.acked()),
            congestion_window_packets: self.control.window_packets().min(1e15) as u64,
            flight_packets: self.flight_packets(),
            rtt_ns: self.rtt.smoothed_ns(),
            rtt_variance_ns: self.rtt.variance_ns(),
            min_rtt_ns: self.rtt.min_ns(),
            delivery_pps: self.delivery.latest_pps(),
            link_capacity_pps: self
                .peer_capacity_pps
                .or_else(|| self.capacity.pps())
                .unwrap_or(0.0),
            send_buffer_free_bytes: self.send.free_bytes(),
            receive_buffer_free_bytes: self.receive.free_packets() * payload,
            ..self.counted
        }
    }
}

/// A quarter of what may be under way, less one byte: a packet that is not full ends it.
fn part_bytes(send: &SendLayout, agreed: &Agreed) -> usize {
    let packets = send.capacity_packets.min(u64::from(agreed.peer_flight_packets)) / 4;
    let payload_bytes = send.packet_bytes - HEADER_BYTES;
    (packets.clamp(8, 2_048) as usize * payload_bytes)
        .saturating_sub(1)
        .max(1)
}

fn stated_pps(config: &Config, payload_bytes: usize) -> Option<f64> {
    let bps = config.max_payload_bps?;
    Some(bps as f64 / (8.0 * payload_bytes as f64))
}

fn control_of(
    config: &Config,
    packet_bytes: usize,
    max_rate_pps: Option<f64>,
    now_ns: u64,
) -> Box<dyn Control> {
    control_for(&ControlConfig {
        kind: config.control,
        max_rate_pps,
        packet_bytes,
        burst_packets: config.burst_packets,
        now_ns,
        seed: config.seed,
    })
}

fn period_ns(rate_pps: f64) -> u64 {
    if rate_pps > 0.0 {
        (1e9 / rate_pps).round() as u64
    } else {
        0
    }
}
