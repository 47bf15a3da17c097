//! Sets what `UdtOptions` asks for and reads back what the kernel granted.

use std::os::fd::AsFd;

use farline_proto::udt::Config;
use farline_proto::udt::handshake::{Agreed, Offer};
use farline_proto::udt::wire::{IP_UDP_BYTES, Sequence, SocketKind};
use farline_spec::{Failure, Granted, RunSpec, UdtOptions, kernel_words};
use farline_sys::datagram::{self, MAX_BATCH_BYTES, MAX_BATCH_SEGMENTS};
use farline_sys::option;
use socket2::Socket;

use super::chance;
use crate::socket::{
    address_text, buffer_note, family, force_receive_buffer, force_send_buffer, header_bytes, tos_note,
};

/// Receive buffer of the UDP socket where none is asked for, as far as the kernel grants it. The window of a fast
/// stream is larger than the usual 200 KB by far, and whoever is off the CPU for 4 ms at 30 Gbit/s needs 15 MB; the
/// kernel charges more than twice of that for small packets.
const UDP_RECEIVE_BYTES: usize = 64 << 20;
/// Send buffer of the UDP socket where none is asked for: some tens of bursts in the queue of the device.
const UDP_SEND_BYTES: usize = 4 << 20;
/// Most that is kept of a stream at the receiving end where nothing is asked for.
const KEPT_BYTES: u64 = 1 << 30;
/// Most packets under way where nothing is asked for: the option allows no more.
const WIDEST_PACKETS: u64 = 1 << 24;
/// Least packets of a buffer, as in the reference library.
const LEAST_PACKETS: u64 = 32;
/// Packets under way in libudt 4.11 if nobody says otherwise (UDT_FC).
const LIBUDT_FLOW_WINDOW: u32 = 25_600;
/// Least payload of a datagram: a handshake must fit.
const LEAST_PACKET_BYTES: usize = 64;

/// How a socket is to behave.
#[derive(Debug, Clone)]
pub struct SocketOptions {
    /// Of this the section `udt`, `rate_bps`, `tos` and `flow_label` count.
    pub spec: RunSpec,
    /// A stream of bytes, or messages.
    pub kind: SocketKind,
    /// Sequence number of the first packet of a caller (and with it of both directions) or of one end of a rendezvous;
    /// drawn by chance if absent.
    pub initial_sequence: Option<u32>,
}

impl SocketOptions {
    /// A stream of bytes with the options of `spec`.
    pub fn of(spec: &RunSpec) -> Self {
        Self {
            spec: spec.clone(),
            kind: SocketKind::Stream,
            initial_sequence: None,
        }
    }

    pub(super) fn udt(&self) -> UdtOptions {
        self.spec.udt.clone().unwrap_or_default()
    }
}

/// What a UDP socket was set to for a connection.
#[derive(Debug, Clone)]
pub(super) struct Setup {
    udt: UdtOptions,
    kind: SocketKind,
    /// UDP payload that this end can take.
    packet_bytes: usize,
    /// UDP payload that fits the path without fragments.
    fits: usize,
    mtu: usize,
    pub(super) gro: bool,
    pub(super) notes: Vec<String>,
}

/// Sets the buffers of a socket before anything can come to it.
pub(super) fn set_buffers(socket: &Socket, options: &SocketOptions) -> Result<(), Failure> {
    let udt = options.udt();
    let bytes = |asked: Option<farline_spec::unit::BufferBytes>, default| {
        asked.map_or(default, |asked| asked.get() as usize)
    };
    force_send_buffer(socket, bytes(udt.udp_send_buffer_bytes, UDP_SEND_BYTES))
        .map_err(|error| Failure::option("udt.udp_send_buffer_bytes", error))?;
    force_receive_buffer(socket, bytes(udt.udp_receive_buffer_bytes, UDP_RECEIVE_BYTES))
        .map_err(|error| Failure::option("udt.udp_receive_buffer_bytes", error))
}

impl Setup {
    /// Sets everything else on a connected socket.
    pub(super) fn apply(socket: &Socket, options: &SocketOptions) -> Result<Self, Failure> {
        let udt = options.udt();
        let remote = socket.peer_addr().ok().and_then(|address| address.as_socket());
        let family = remote.map_or(option::Family::V4, family);
        // As the reference library: a packet that the other end asked for must arrive, in fragments if need be.
        option::allow_fragments(socket.as_fd(), family)
            .map_err(|error| Failure::system("IP_MTU_DISCOVER", &error))?;
        let mtu = option::path_mtu(socket.as_fd(), family)
            .map_err(|error| Failure::system("path MTU", &error))? as usize;
        let fits = mtu
            .saturating_sub(header_bytes(family))
            .clamp(LEAST_PACKET_BYTES, MAX_BATCH_BYTES);
        let asked = udt.packet_bytes.map(|packet| usize::from(packet.get()));
        let mut setup = Self {
            kind: options.kind,
            packet_bytes: asked.unwrap_or(fits),
            fits,
            mtu,
            gro: false,
            notes: Vec::new(),
            udt,
        };
        if setup.udt.gro {
            match datagram::allow_batches(socket.as_fd()) {
                Ok(()) => setup.gro = true,
                Err(error) => setup.notes.push(format!("gro: off: {}", kernel_words(&error))),
            }
        }
        Ok(setup)
    }

    /// What this end brings to a connection.
    pub(super) fn offer(&self, socket: u32, initial_sequence: Option<u32>) -> Result<Offer, Failure> {
        let sequence = match initial_sequence {
            Some(sequence) => sequence,
            None => chance::word()?,
        };
        Ok(Offer {
            socket,
            initial_sequence: Sequence::new(sequence),
            mss_bytes: (self.packet_bytes + IP_UDP_BYTES) as u32,
            flight_packets: self.first_window(),
            kind: self.kind,
        })
    }

    /// The window that the handshake states: at least libudt's own default, unless the user asked for less. The real
    /// one is in every ACK, and nobody sends more than a few packets before the first. A libudt sender that was told of
    /// a small one leaves its slow start when its window reaches it, before it has learnt any rate, and then
    /// crawls (docs/design/udt.md).
    fn first_window(&self) -> u32 {
        let asked = self
            .udt
            .flow_window_packets
            .map_or(LIBUDT_FLOW_WINDOW, |packets| packets.get());
        let window = self
            .window_packets(self.packet_bytes)
            .max(u64::from(asked.min(LIBUDT_FLOW_WINDOW)));
        u32::try_from(window).unwrap_or(u32::MAX)
    }

    /// Packets of `packet_bytes` that may be under way towards this end.
    fn window_packets(&self, packet_bytes: usize) -> u64 {
        let kept = self.receive_packets(packet_bytes);
        let asked = self
            .udt
            .flow_window_packets
            .map(|packets| u64::from(packets.get()));
        asked.map_or(kept, |asked| asked.min(kept))
    }

    fn receive_packets(&self, packet_bytes: usize) -> u64 {
        let bytes = self
            .udt
            .receive_buffer_bytes
            .map_or(KEPT_BYTES, |bytes| bytes.get());
        (bytes / packet_bytes as u64).max(LEAST_PACKETS)
    }

    /// How the connection that was agreed on is to behave.
    pub(super) fn config(&self, agreed: &Agreed, options: &SocketOptions) -> Result<Config, Failure> {
        let packet_bytes = packet_bytes(agreed);
        let send_buffer = self.udt.send_buffer_bytes.map(|bytes| bytes.get());
        let rate_bps = options.spec.rate_bps.map_or(0, |rate| rate.get());
        let asked_window = self
            .udt
            .flow_window_packets
            .map(|packets| u64::from(packets.get()));
        Ok(Config {
            burst_packets: (MAX_BATCH_BYTES / packet_bytes).clamp(1, MAX_BATCH_SEGMENTS),
            send_buffer_packets: send_buffer.map(|bytes| (bytes / packet_bytes as u64).max(1)),
            receive_buffer_packets: self.receive_packets(packet_bytes),
            flow_window_packets: asked_window.unwrap_or(WIDEST_PACKETS),
            control: self.udt.congestion_control,
            max_payload_bps: (rate_bps > 0).then_some(rate_bps),
            token: chance::word()?,
            // Two streams of a run that drew alike would probe in step.
            seed: options.spec.seed ^ u64::from(chance::word()?),
        })
    }

    /// Whether the kernel may cut bursts into packets of the size that was agreed on.
    pub(super) fn choose_gso(&mut self, packet_bytes: usize) -> bool {
        if self.udt.gso && packet_bytes > self.fits {
            self.notes.push(format!(
                "gso: off: {packet_bytes} bytes exceed the path's MTU of {} and are fragmented",
                self.mtu
            ));
        }
        self.udt.gso && packet_bytes <= self.fits
    }

    /// Where the socket differs from what was asked for, and what it is.
    pub(super) fn granted(&self, socket: &Socket, spec: &RunSpec) -> Granted {
        let mut granted = Granted {
            local: address_text(socket.local_addr()),
            remote: address_text(socket.peer_addr()),
            send_buffer_bytes: socket.send_buffer_size().ok().map(|bytes| bytes as u64),
            receive_buffer_bytes: socket.recv_buffer_size().ok().map(|bytes| bytes as u64),
            gro: Some(self.gro),
            notes: self.notes.clone(),
            ..Granted::default()
        };
        let send_buffer = buffer_note(
            "UDP send buffer",
            "net.core.wmem_max",
            self.udt.udp_send_buffer_bytes.map(|bytes| bytes.get()),
            granted.send_buffer_bytes.unwrap_or(0),
        );
        let receive_buffer = buffer_note(
            "UDP receive buffer",
            "net.core.rmem_max",
            self.udt.udp_receive_buffer_bytes.map(|bytes| bytes.get()),
            granted.receive_buffer_bytes.unwrap_or(0),
        );
        let remote = socket.peer_addr().ok().and_then(|address| address.as_socket());
        let tos = remote.and_then(|remote| tos_note(socket, spec, family(remote)));
        granted
            .notes
            .extend([send_buffer, receive_buffer, tos].into_iter().flatten());
        granted
    }

    /// A line if the receive buffer is larger than was asked for.
    pub(super) fn receive_note(&self, packet_bytes: usize) -> Option<String> {
        let asked = self.udt.receive_buffer_bytes?.get();
        let least = LEAST_PACKETS * packet_bytes as u64;
        (asked < least).then(|| {
            format!(
                "receive buffer: requested {asked} bytes, in use {least} bytes: at least {LEAST_PACKETS} packets"
            )
        })
    }

    /// A line if the other end could only take smaller packets than were asked for.
    pub(super) fn packet_note(&self, agreed: &Agreed) -> Option<String> {
        let asked = usize::from(self.udt.packet_bytes?.get());
        let used = packet_bytes(agreed);
        (asked != used)
            .then(|| format!("packet: requested {asked} bytes, in use {used}: the maximum of the other end"))
    }
}

/// UDP payload of a full packet of a connection.
pub(super) fn packet_bytes(agreed: &Agreed) -> usize {
    agreed.mss_bytes as usize - IP_UDP_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use farline_spec::from_json;
    use socket2::{Domain, Type};
    use std::net::SocketAddr;

    fn setup(text: &str) -> Setup {
        let spec = from_json::<RunSpec>(text).unwrap().resolved().unwrap();
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        let anyone: SocketAddr = "127.0.0.1:9".parse().unwrap();
        socket.connect(&anyone.into()).unwrap();
        Setup::apply(&socket, &SocketOptions::of(&spec)).unwrap()
    }

    #[test]
    fn a_packet_is_what_fits_the_path_or_what_was_asked_for() {
        let offer = setup(r#"{"transport":"udt"}"#).offer(1, None).unwrap();
        assert_eq!(offer.mss_bytes as usize, MAX_BATCH_BYTES + IP_UDP_BYTES);
        let asked = setup(r#"{"transport":"udt","udt":{"packet_bytes":1472}}"#);
        assert_eq!(asked.offer(1, Some(7)).unwrap().mss_bytes, 1500);
    }

    #[test]
    fn a_receive_buffer_that_is_raised_is_noted() {
        let note = |bytes: u32| {
            let text = format!(r#"{{"transport":"udt","udt":{{"receive_buffer_bytes":{bytes}}}}}"#);
            setup(&text).receive_note(1472)
        };
        assert_eq!(
            note(16_384).unwrap(),
            "receive buffer: requested 16384 bytes, in use 47104 bytes: at least 32 packets"
        );
        assert_eq!(note(47_104), None);
        assert_eq!(setup(r#"{"transport":"udt"}"#).receive_note(1472), None);
    }

    #[test]
    fn the_first_window_is_never_below_libudts_unless_less_is_asked_for() {
        let small = r#"{"transport":"udt","udt":{"packet_bytes":1472,"receive_buffer_bytes":1048576"#;
        let offer = |text: &str| setup(text).offer(1, None).unwrap().flight_packets;
        assert_eq!(offer(&format!("{small}}}}}")), LIBUDT_FLOW_WINDOW);
        assert_eq!(offer(&format!("{small},\"flow_window_packets\":100}}}}")), 100);
        assert_eq!(offer(&format!("{small},\"flow_window_packets\":1000}}}}")), 1000);
    }
}
