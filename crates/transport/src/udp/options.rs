//! Sets what `UdpOptions` asks for and reads back what the kernel granted.

use std::os::fd::AsFd;

use farline_spec::{Failure, RunSpec, UdpOptions, kernel_words};
use farline_sys::datagram::{self, MAX_BATCH_BYTES, MAX_BATCH_SEGMENTS};
use farline_sys::option::{self, Family};
use socket2::Socket;

use crate::Role;
use crate::socket::{self, family, header_bytes};
use crate::udp::header::HEADER_BYTES;

/// Receive buffer where none is asked for, as far as the kernel grants it: a receiver that is off its CPU
/// for 4 ms at 10 Gbit/s needs 5 MB, and the kernel's usual 200 KB would be measured instead of the path.
const RECEIVE_BUFFER_BYTES: usize = 16 << 20;
/// Time that one batch may take at the stated rate, if the batch size is left open.
const BATCH_US: u64 = 100;

/// What a UDP stream uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setup {
    /// UDP payload per datagram.
    pub(super) packet_bytes: usize,
    /// Datagrams per call.
    pub(super) batch_packets: usize,
    /// Whether the kernel cuts batches.
    pub(super) gso: bool,
    /// Whether the kernel collects batches.
    pub(super) gro: bool,
    /// What was changed, one line each.
    pub(super) notes: Vec<String>,
}

impl Setup {
    /// Sets everything on a connected socket.
    pub(super) fn apply(socket: &Socket, spec: &RunSpec, role: Role) -> Result<Self, Failure> {
        let options = spec.udp.clone().unwrap_or_default();
        let remote = socket.peer_addr().ok().and_then(|address| address.as_socket());
        let family = remote.map_or(Family::V4, family);
        set_fragments(socket, &options, family)?;
        set_buffers(socket, &options, role)?;
        let mtu = option::path_mtu(socket.as_fd(), family)
            .map_err(|error| Failure::system("path MTU", &error))? as usize;
        let fits = mtu
            .saturating_sub(header_bytes(family))
            .clamp(HEADER_BYTES, MAX_BATCH_BYTES);
        let packet_bytes = packet_bytes(&options, fits, mtu)?;
        let mut setup = Self {
            packet_bytes,
            batch_packets: 1,
            gso: false,
            gro: false,
            notes: Vec::new(),
        };
        setup.set_batch(spec, &options);
        match role {
            Role::Sender => setup.set_gso(socket, &options, fits, mtu),
            Role::Receiver => {
                setup.set_gro(socket, &options);
                datagram::note_arrivals(socket.as_fd())
                    .map_err(|error| Failure::system("SO_TIMESTAMPNS", &error))?;
            }
        }
        Ok(setup)
    }

    fn set_batch(&mut self, spec: &RunSpec, options: &UdpOptions) {
        let block = spec
            .block_bytes
            .map_or(MAX_BATCH_BYTES as u64, |block| block.get());
        let most = (MAX_BATCH_BYTES / self.packet_bytes).clamp(1, MAX_BATCH_SEGMENTS);
        let most = most
            .min(usize::try_from(block).unwrap_or(usize::MAX) / self.packet_bytes)
            .max(1);
        let rate_bps = spec.rate_bps.map_or(0, |rate| rate.get());
        let asked = options.batch_packets.map(|batch| usize::from(batch.get()));
        self.batch_packets = match asked {
            Some(asked) => asked.min(most),
            None if rate_bps == 0 => most,
            None => batch_for(rate_bps, self.packet_bytes).clamp(1, most),
        };
        if let Some(asked) = asked.filter(|&asked| asked > most) {
            self.notes.push(format!(
                "batch: requested {asked} datagrams, in use {most}: a call takes at most {MAX_BATCH_BYTES} bytes, {MAX_BATCH_SEGMENTS} datagrams and one block"
            ));
        }
    }

    fn set_gso(&mut self, socket: &Socket, options: &UdpOptions, fits: usize, mtu: usize) {
        if !options.gso || self.batch_packets == 1 {
            return;
        }
        if self.packet_bytes > fits {
            let packet = self.packet_bytes;
            self.notes.push(format!(
                "gso: off: {packet} bytes exceed the path's MTU of {mtu} and are fragmented"
            ));
            return;
        }
        // A datagram is at most 65,507 bytes.
        match datagram::set_segment_size(socket.as_fd(), self.packet_bytes as u16) {
            Ok(()) => self.gso = true,
            Err(error) => self.notes.push(format!("gso: off: {}", kernel_words(&error))),
        }
    }

    fn set_gro(&mut self, socket: &Socket, options: &UdpOptions) {
        if !options.gro {
            return;
        }
        match datagram::allow_batches(socket.as_fd()) {
            Ok(()) => self.gro = true,
            Err(error) => self.notes.push(format!("gro: off: {}", kernel_words(&error))),
        }
    }
}

/// Datagrams of a batch that takes [`BATCH_US`] at `rate_bps`.
fn batch_for(rate_bps: u64, packet_bytes: usize) -> usize {
    let bytes = u128::from(rate_bps) * u128::from(BATCH_US) / 8_000_000;
    usize::try_from(bytes).unwrap_or(usize::MAX) / packet_bytes
}

fn packet_bytes(options: &UdpOptions, fits: usize, mtu: usize) -> Result<usize, Failure> {
    match options.packet_bytes.map(|packet| usize::from(packet.get())) {
        Some(packet) if packet > fits && options.dont_fragment => Err(over_mtu(packet, fits, mtu)),
        Some(packet) => Ok(packet),
        None => Ok(fits),
    }
}

/// The failure of a datagram that is too long and must not be fragmented.
pub(super) fn over_mtu(packet: usize, fits: usize, mtu: usize) -> Failure {
    let reason =
        format!("{packet} bytes exceed the path's MTU of {mtu} with dont_fragment; allowed: up to {fits}");
    Failure::option("udp.packet_bytes", reason)
}

/// As [`over_mtu`], once the kernel has refused one: asks it again what fits.
pub(super) fn over_mtu_now(socket: &Socket, packet: usize) -> Failure {
    let remote = socket.peer_addr().ok().and_then(|address| address.as_socket());
    let family = remote.map_or(Family::V4, family);
    let mtu = option::path_mtu(socket.as_fd(), family).unwrap_or(0) as usize;
    over_mtu(packet, mtu.saturating_sub(header_bytes(family)), mtu)
}

fn set_fragments(socket: &Socket, options: &UdpOptions, family: Family) -> Result<(), Failure> {
    let result = if options.dont_fragment {
        option::forbid_fragments(socket.as_fd(), family)
    } else {
        option::allow_fragments(socket.as_fd(), family)
    };
    result.map_err(|error| Failure::option("udp.dont_fragment", error))
}

fn set_buffers(socket: &Socket, options: &UdpOptions, role: Role) -> Result<(), Failure> {
    let bytes = |asked: farline_spec::unit::BufferBytes| asked.get() as usize;
    if let Some(asked) = options.send_buffer_bytes.map(bytes) {
        socket::force_send_buffer(socket, asked)
            .map_err(|error| Failure::option("udp.send_buffer_bytes", error))?;
    }
    let wanted = (role == Role::Receiver).then_some(RECEIVE_BUFFER_BYTES);
    if let Some(asked) = options.receive_buffer_bytes.map(bytes).or(wanted) {
        socket::force_receive_buffer(socket, asked)
            .map_err(|error| Failure::option("udp.receive_buffer_bytes", error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_takes_a_tenth_of_a_millisecond() {
        assert_eq!(batch_for(10_000_000_000, 1472), 84);
        assert_eq!(batch_for(1_000_000_000, 1472), 8);
        assert_eq!(batch_for(1_000_000, 1472), 0);
    }

    #[test]
    fn a_datagram_over_the_mtu_is_named_with_what_fits() {
        let packet = |bytes| Some(farline_spec::unit::PacketBytes::new(bytes).unwrap());
        let strict = UdpOptions {
            dont_fragment: true,
            packet_bytes: packet(1473),
            ..UdpOptions::default()
        };
        let failure = packet_bytes(&strict, 1472, 1500).unwrap_err();
        assert!(failure.message.contains("allowed: up to 1472"), "{failure}");
        let loose = UdpOptions {
            dont_fragment: false,
            ..strict
        };
        assert_eq!(packet_bytes(&loose, 1472, 1500), Ok(1473));
        assert_eq!(packet_bytes(&UdpOptions::default(), 1472, 1500), Ok(1472));
    }
}
