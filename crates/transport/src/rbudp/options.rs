//! Sets what `RbudpOptions` asks for and reads back what the kernel granted.

use std::os::fd::AsFd;

use farline_spec::unit::RbudpPacketBytes;
use farline_spec::{Failure, FailureKind, Granted, RbudpOptions, RbudpReceiver, RunSpec, kernel_words};
use farline_sys::datagram::{self, MAX_BATCH_BYTES, MAX_BATCH_SEGMENTS};
use farline_sys::option::{self, Family};
use socket2::Socket;

use super::link::Link;
use crate::Role;
use crate::socket::{
    address_text, buffer_note, family, force_receive_buffer, force_send_buffer, header_bytes, tos_note,
};

/// Receive buffer of the UDP socket where none is asked for: a receiver that is off its CPU for 4 ms at 30 Gbit/s needs
/// 15 MB, and the kernel charges more than twice of that for small packets.
const UDP_RECEIVE_BYTES: usize = 64 << 20;
/// Send buffer of the UDP socket where none is asked for: some tens of bursts in the queue of the device.
const UDP_SEND_BYTES: usize = 4 << 20;
/// Time that one burst should take at the stated rate.
const BURST_US: u64 = 100;
/// Fewer packets cost more wake-ups than they save queue, as long as they take no longer than this.
const FEW_PACKETS: usize = 8;
const LONG_BURST_US: u64 = 2_000;
/// Rate of a fast host, where none is stated.
const FAST_BPS: u64 = 40_000_000_000;
/// Bursts that kernels before 6.9 take.
const OLDER_BURST: usize = 64;

/// What a stream uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setup {
    /// UDP payload per datagram, header included; the smaller one of both ends once they have agreed.
    pub(super) datagram_bytes: usize,
    /// Most datagrams per call.
    pub(super) burst_packets: usize,
    /// Whether the kernel cuts bursts.
    pub(super) gso: bool,
    /// Whether the kernel collects bursts.
    pub(super) gro: bool,
    /// What was changed, one line each.
    pub(super) notes: Vec<String>,
}

/// The options of `spec`, or the usual ones.
pub(super) fn options_of(spec: &RunSpec) -> RbudpOptions {
    spec.rbudp.clone().unwrap_or_default()
}

/// Blasts under way at once.
pub(super) fn in_flight_of(options: &RbudpOptions) -> u32 {
    options.in_flight.map_or(1, |count| u32::from(count.get()))
}

/// Blasts that a sender has under way at once. Files are given as fast as they are read: no more of them are kept than
/// the rate and four round trips need, and four blasts besides, even where more are allowed.
pub(super) fn in_flight_at(spec: &RunSpec, rtt_ns: u64) -> u32 {
    let options = options_of(spec);
    let most = in_flight_of(&options);
    if spec.copy.is_none() {
        return most;
    }
    let bytes = path_bytes(spec, 4 * rtt_ns) / u128::from(options.payload_bytes.get());
    most.min(4 + u32::try_from(bytes).unwrap_or(u32::MAX / 2))
}

/// Payload that the stated rate sends in `time_ns`; where none is stated a fast host's.
pub(super) fn path_bytes(spec: &RunSpec, time_ns: u64) -> u128 {
    let rate_bps = spec.rate_bps.map_or(0, |rate| rate.get());
    let rate_bps = if rate_bps == 0 { FAST_BPS } else { rate_bps };
    u128::from(rate_bps) * u128::from(time_ns) / 8_000_000_000
}

/// Refuses options that say where a payload made up on the spot goes, or that it goes nowhere.
///
/// # Errors
/// `Spec` that names the option.
pub(super) fn check(spec: &RunSpec) -> Result<(), Failure> {
    let Some(options) = spec.rbudp.as_ref().filter(|_| spec.copy.is_some()) else {
        return Ok(());
    };
    if options.file.is_some() {
        return Err(Failure::option(
            "rbudp.file",
            "cannot be combined with a copy, whose files are the data",
        ));
    }
    if options.receiver == RbudpReceiver::Fake {
        return Err(Failure::option(
            "rbudp.receiver",
            "fake discards all data; use naive or gather to receive files",
        ));
    }
    Ok(())
}

impl Setup {
    /// Sets everything on a connected socket.
    ///
    /// # Errors
    /// `Spec` for datagrams over the path's MTU or a buffer of no size; the kernel's.
    pub(super) fn apply(socket: &Socket, spec: &RunSpec, role: Role) -> Result<Self, Failure> {
        let options = options_of(spec);
        let remote = socket.peer_addr().ok().and_then(|address| address.as_socket());
        let family = remote.map_or(Family::V4, family);
        // A fragment that is lost takes its datagram with it, and the kernel cuts no burst into fragments.
        option::forbid_fragments(socket.as_fd(), family)
            .map_err(|error| Failure::system("forbidding fragments", &error))?;
        set_buffers(socket, &options, role)?;
        let mtu = option::path_mtu(socket.as_fd(), family)
            .map_err(|error| Failure::system("path MTU", &error))? as usize;
        let fits = mtu.saturating_sub(header_bytes(family)).min(MAX_BATCH_BYTES);
        let mut setup = Self {
            datagram_bytes: datagram_bytes(&options, fits, mtu)?,
            burst_packets: 1,
            gso: options.gso,
            gro: false,
            notes: Vec::new(),
        };
        if role == Role::Receiver && options.gro {
            match datagram::allow_batches(socket.as_fd()) {
                Ok(()) => setup.gro = true,
                Err(error) => setup.notes.push(format!("gro: off: {}", kernel_words(&error))),
            }
        }
        Ok(setup)
    }

    /// Settles on datagrams that fit both ends, and on how many of them make a burst at `rate_bps`.
    ///
    /// # Errors
    /// `Protocol` when what fits the other end holds no payload.
    pub(super) fn agree(&mut self, other_bytes: usize, rate_bps: u64) -> Result<(), Failure> {
        if other_bytes < self.datagram_bytes {
            self.notes.push(format!(
                "packet: {other_bytes} bytes, the maximum of the other end (here {})",
                self.datagram_bytes
            ));
            self.datagram_bytes = other_bytes;
        }
        if self.datagram_bytes < usize::from(RbudpPacketBytes::MIN.get()) {
            let line = format!("data stream: the other end accepts datagrams of at most {other_bytes} bytes");
            return Err(Failure::new(FailureKind::Protocol, line));
        }
        let most = (MAX_BATCH_BYTES / self.datagram_bytes).clamp(1, MAX_BATCH_SEGMENTS);
        self.burst_packets = if rate_bps == 0 {
            most
        } else {
            let within = |time_us: u64| {
                let bytes = u128::from(rate_bps) * u128::from(time_us) / 8_000_000;
                usize::try_from(bytes).unwrap_or(usize::MAX) / self.datagram_bytes
            };
            within(BURST_US)
                .max(within(LONG_BURST_US).min(FEW_PACKETS))
                .clamp(1, most)
        };
        Ok(())
    }

    /// The kernel or the device refuses a burst: smaller ones from now on, then single datagrams.
    pub(super) fn reduce(&mut self, error: &std::io::Error) {
        if self.burst_packets > OLDER_BURST {
            self.burst_packets = OLDER_BURST;
            self.notes.push(format!(
                "burst: {OLDER_BURST} datagrams: this kernel supports no more ({})",
                kernel_words(error)
            ));
        } else {
            self.gso = false;
            self.notes.push(format!(
                "gso: off: the kernel or the device refuses bursts ({})",
                kernel_words(error)
            ));
        }
    }
}

fn datagram_bytes(options: &RbudpOptions, fits: usize, mtu: usize) -> Result<usize, Failure> {
    let asked = options.packet_bytes.map(|packet| usize::from(packet.get()));
    match asked {
        Some(packet) if packet > fits => {
            let reason = format!("{packet} bytes exceed the path's MTU of {mtu}; allowed: up to {fits}");
            Err(Failure::option("rbudp.packet_bytes", reason))
        }
        Some(packet) => Ok(packet),
        None => Ok(fits),
    }
}

fn set_buffers(socket: &Socket, options: &RbudpOptions, role: Role) -> Result<(), Failure> {
    let bytes = |asked: farline_spec::unit::BufferBytes| asked.get() as usize;
    let (send, receive) = match role {
        Role::Sender => (Some(UDP_SEND_BYTES), None),
        Role::Receiver => (None, Some(UDP_RECEIVE_BYTES)),
    };
    if let Some(wanted) = options.udp_send_buffer_bytes.map(bytes).or(send) {
        force_send_buffer(socket, wanted)
            .map_err(|error| Failure::option("rbudp.udp_send_buffer_bytes", error))?;
    }
    if let Some(wanted) = options.udp_receive_buffer_bytes.map(bytes).or(receive) {
        force_receive_buffer(socket, wanted)
            .map_err(|error| Failure::option("rbudp.udp_receive_buffer_bytes", error))?;
    }
    Ok(())
}

/// What the kernel granted, and where that differs from `spec`.
pub(super) fn granted(link: &Link, setup: &Setup, spec: &RunSpec) -> Granted {
    let socket = &link.socket;
    let is_sender = link.role() == Role::Sender;
    let mut granted = Granted {
        local: address_text(socket.local_addr()),
        remote: address_text(socket.peer_addr()),
        send_buffer_bytes: socket.send_buffer_size().ok().map(|bytes| bytes as u64),
        receive_buffer_bytes: socket.recv_buffer_size().ok().map(|bytes| bytes as u64),
        // A datagram is at most 65,507 bytes, a burst at most 128 datagrams.
        packet_bytes: Some(setup.datagram_bytes as u32),
        batch_packets: is_sender.then_some(setup.burst_packets as u32),
        gso: is_sender.then_some(setup.gso),
        gro: (!is_sender).then_some(setup.gro),
        notes: setup.notes.clone(),
        ..Granted::default()
    };
    let options = options_of(spec);
    let send = buffer_note(
        "UDP send buffer",
        "net.core.wmem_max",
        options.udp_send_buffer_bytes.map(|bytes| bytes.get()),
        granted.send_buffer_bytes.unwrap_or(0),
    );
    let receive = buffer_note(
        "UDP receive buffer",
        "net.core.rmem_max",
        options.udp_receive_buffer_bytes.map(|bytes| bytes.get()),
        granted.receive_buffer_bytes.unwrap_or(0),
    );
    let tos = link
        .remote()
        .and_then(|remote| tos_note(socket, spec, family(remote)));
    granted.notes.extend([send, receive, tos].into_iter().flatten());
    granted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(datagram_bytes: usize) -> Setup {
        Setup {
            datagram_bytes,
            burst_packets: 1,
            gso: true,
            gro: false,
            notes: Vec::new(),
        }
    }

    #[test]
    fn both_ends_settle_on_what_fits_both() {
        let mut jumbo = setup(8972);
        jumbo.agree(1472, 0).unwrap();
        assert_eq!((jumbo.datagram_bytes, jumbo.burst_packets), (1472, 44));
        assert!(jumbo.notes[0].contains("the maximum of the other end"));
        assert!(setup(1472).agree(16, 0).is_err());
        assert!(setup(1472).agree(63, 0).is_err());
    }

    #[test]
    fn a_burst_takes_a_tenth_of_a_millisecond_or_is_a_few_packets() {
        let burst = |rate_bps| {
            let mut setup = setup(1472);
            setup.agree(1472, rate_bps).unwrap();
            setup.burst_packets
        };
        assert_eq!(burst(1_000_000), 1);
        assert_eq!(burst(30_000_000), 5);
        assert_eq!(burst(500_000_000), 8);
        assert_eq!(burst(2_000_000_000), 16);
        assert_eq!(burst(100_000_000_000), 44);
    }

    #[test]
    fn a_packet_over_the_mtu_is_named_with_what_fits() {
        let options = RbudpOptions {
            packet_bytes: Some(farline_spec::unit::RbudpPacketBytes::new(1473).unwrap()),
            ..RbudpOptions::default()
        };
        let failure = datagram_bytes(&options, 1472, 1500).unwrap_err();
        assert!(failure.message.contains("allowed: up to 1472"), "{failure}");
        assert_eq!(datagram_bytes(&options, 1473, 1501), Ok(1473));
    }
}
