//! The UDT machine of `farline-proto` in a world: a connection, its application, and what the link takes it for.
//!
//! A bulk sender writes bytes that follow from a seed and their place; a reader checks every one. Both ends are the
//! machine that runs on sockets, with real datagrams of real bytes; only the handshake may be left out
//! ([`Flow::open`]), since most tables are not about it ([`Flow::call`] has it).
//!
//! # Scale
//! Bytes cost time to make and to check, and a link at 10 Gbit/s has many of them. [`Scale`] lets a datagram of few
//! real bytes stand for a large one: the link is told the large size, so that rates, queues and losses per packet are
//! those of large packets, while the machine has as many packets and headers as it would have. Control packets keep
//! their real size. What a scale cannot show is what depends on bytes: copying, buffers in bytes, and how many ranges
//! of losses fit into one datagram (fewer than in reality).
//!
//! What it leaves out: sockets, their buffers, offloads, and the time that a machine takes to do its work.

mod application;
mod content;
mod end;
mod scale;
mod stage;
mod trial;

pub use application::{Application, Figures, Work};
pub use end::{End, EndConfig, Packet, Replay};
pub use scale::Scale;
pub use trial::Trial;

use farline_proto::udt::Config;
use farline_proto::udt::handshake::Agreed;
use farline_proto::udt::wire::{Sequence, SocketKind};
use farline_spec::UdtControl;

use crate::{Endpoint, EndpointId, World};
use stage::Stage;

/// Socket ids of the two ends of every flow: worlds tell flows apart by their machines.
const SOCKETS: [u32; 2] = [0x1001, 0x1002];

/// What a flow is made from.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowConfig {
    /// Congestion control of the sender.
    pub control: UdtControl,
    /// Most payload bits per second of the sender, in real bytes.
    pub max_payload_bps: Option<u64>,
    /// What it carries.
    pub kind: SocketKind,
    /// What a datagram stands for.
    pub scale: Scale,
    /// Packets that go in one call.
    pub burst_packets: usize,
    /// Most packets under way, and packets in the receive buffer.
    pub flow_window_packets: u64,
    /// What the sender writes.
    pub work: Work,
    /// When it begins.
    pub start_ns: u64,
    /// Sequence numbers that both directions begin with.
    pub isn: [u32; 2],
    /// Seed of contents and controls.
    pub seed: u64,
    /// Old packets that come again.
    pub replay: Option<Replay>,
}

impl FlowConfig {
    /// An endless stream in packets that stand for 1500 bytes, from time 0.
    pub fn endless(control: UdtControl) -> Self {
        Self {
            control,
            max_payload_bps: None,
            kind: SocketKind::Stream,
            scale: Scale::small(1500),
            burst_packets: 44,
            flow_window_packets: 1_000_000,
            work: Work::endless(),
            start_ns: 0,
            isn: [1_000, 2_000],
            seed: 1,
            replay: None,
        }
    }

    fn machine(&self, end: u32) -> Config {
        Config {
            burst_packets: self.burst_packets,
            send_buffer_packets: None,
            receive_buffer_packets: self.flow_window_packets,
            flow_window_packets: self.flow_window_packets,
            control: self.control,
            max_payload_bps: self.max_payload_bps,
            token: 0xfa00 + end,
            seed: self.seed,
        }
    }

    fn end(&self, end: u32) -> EndConfig {
        EndConfig {
            machine: self.machine(end),
            kind: self.kind,
            scale: self.scale,
            work: if end == 0 { self.work } else { self.work.none() },
            start_ns: self.start_ns,
            content_seed: self.seed,
            replay: self.replay,
        }
    }

    fn agreed(&self, end: usize) -> Agreed {
        Agreed {
            socket: SOCKETS[end],
            peer_socket: SOCKETS[1 - end],
            send_isn: Sequence::new(self.isn[end]),
            receive_isn: Sequence::new(self.isn[1 - end]),
            mss_bytes: self.scale.mss_bytes(),
            peer_flight_packets: u32::try_from(self.flow_window_packets).unwrap_or(u32::MAX),
            kind: self.kind,
            is_rendezvous: false,
            is_marked: true,
        }
    }
}

/// The two ends of a flow in a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// The end that has something to send.
    pub sender: EndpointId,
    /// The end that reads.
    pub receiver: EndpointId,
}

impl Flow {
    /// Puts both ends of an open connection into `world`, at ports of its layout; they begin at once, or at the start
    /// that `config` says.
    pub fn open(world: &mut World<End>, from_port: usize, to_port: usize, config: &FlowConfig) -> Self {
        Self::open_in(world, [from_port, to_port], config, |end| end, |end| Some(end))
    }

    /// The same in a world of several kinds of machines: `wrap` makes one of them from an end, `unwrap` finds it again.
    pub fn open_in<E: Endpoint>(
        world: &mut World<E>,
        ports: [usize; 2],
        config: &FlowConfig,
        wrap: impl Fn(End) -> E,
        unwrap: impl Fn(&mut E) -> Option<&mut End>,
    ) -> Self {
        let ends = [0, 1].map(|end| {
            let now_ns = world.now_ns();
            let stage = Stage::open(&config.machine(end), config.agreed(end as usize), now_ns);
            End::new(config.end(end), stage)
        });
        Self::join(world, ports, ends.map(wrap), unwrap)
    }

    /// Puts a caller and a listener into `world`: the connection opens by the handshake.
    pub fn call(world: &mut World<End>, from_port: usize, to_port: usize, config: &FlowConfig) -> Self {
        let ends = [0, 1].map(|end| {
            let offer = stage::offer(SOCKETS[end as usize], config.isn[0], &config.agreed(end as usize));
            let stage = if end == 0 {
                Stage::calling(config.machine(end), offer, world.now_ns())
            } else {
                Stage::listening(config.machine(end), offer, config.seed)
            };
            End::new(config.end(end), stage)
        });
        Self::join(world, [from_port, to_port], ends, |end| Some(end))
    }

    fn join<E: Endpoint>(
        world: &mut World<E>,
        ports: [usize; 2],
        ends: [E; 2],
        unwrap: impl Fn(&mut E) -> Option<&mut End>,
    ) -> Self {
        let [sender, receiver] = ends;
        let receiver = world.add(ports[1], receiver);
        let sender = world.add(ports[0], sender);
        for (id, peer) in [(receiver, sender), (sender, receiver)] {
            world.command(id, |_, machine| {
                if let Some(end) = unwrap(machine) {
                    end.meet(peer);
                }
            });
        }
        Self { sender, receiver }
    }
}
