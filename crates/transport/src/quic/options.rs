//! Options of a QUIC stream, as the protocol machine takes them.

use std::sync::Arc;
use std::time::Duration;

use farline_spec::{Cipher, Failure, QuicControl, QuicOptions, RunSpec};
use farline_sys::option::{Family, path_mtu};
use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::{MtuDiscoveryConfig, TransportConfig, VarInt};
use socket2::Socket;
use std::os::fd::AsFd;

use crate::failure::refused;
use crate::socket::{force_receive_buffer, force_send_buffer, header_bytes};

/// So long after losses that look like those of a smaller MTU the path is tried with longer packets again.
const BLACK_HOLE_COOLDOWN: Duration = Duration::from_millis(500);
/// Without a word for so long the other end is taken for gone.
const IDLE: Duration = Duration::from_secs(30);
/// Buffers of the UDP socket where none are asked for: some milliseconds of 10 Gbit/s, for a thread that wakes late.
const SOCKET_BYTES: usize = 8 << 20;
/// Bytes that may wait to be read on a stream at first; the window grows for readers that keep up.
pub(super) const FIRST_WINDOW_BYTES: u32 = 8 << 20;
/// Largest UDP payload that a socket of this room receives.
pub(super) const MOST_PACKET_BYTES: u16 = 65_507;

/// The section of `spec`, or its defaults.
pub(super) fn options_of(spec: &RunSpec) -> QuicOptions {
    spec.quic.clone().unwrap_or_default()
}

/// The cipher of a run: that of the copy, or the faster one.
pub(super) fn cipher_of(spec: &RunSpec) -> Cipher {
    spec.copy.as_ref().map_or(Cipher::Aes128Gcm, |copy| copy.cipher)
}

/// Refuses what cannot be had of QUIC.
///
/// # Errors
/// `Spec` that names the option.
pub(super) fn check(spec: &RunSpec) -> Result<(), Failure> {
    if spec.tos.is_some() {
        return Err(refused(
            "tos",
            "QUIC sets the ECN bits of each packet itself and cannot set the others; use tcp, udp, udt or rbudp",
        ));
    }
    if spec.flow_label.is_some() {
        return Err(refused(
            "flow_label",
            "QUIC cannot set one; use tcp, udp, udt or rbudp",
        ));
    }
    Ok(())
}

/// Sets the buffers of a UDP socket.
///
/// # Errors
/// The kernel's.
pub(super) fn set_buffers(socket: &Socket, spec: &RunSpec) -> Result<(), Failure> {
    let options = options_of(spec);
    let failed = |error| Failure::system("UDP buffer", &error);
    let asked = |bytes: Option<u64>| bytes.map_or(SOCKET_BYTES, |bytes| bytes as usize);
    let send = asked(options.udp_send_buffer_bytes.map(|bytes| bytes.get()));
    force_send_buffer(socket, send).map_err(failed)?;
    let receive = asked(options.udp_receive_buffer_bytes.map(|bytes| bytes.get()));
    force_receive_buffer(socket, receive).map_err(failed)
}

/// Largest UDP payload to try on the path that `connected` goes: what its first hop takes, or what was asked for.
pub(super) fn most_packet_bytes(connected: &Socket, family: Family, spec: &RunSpec) -> u16 {
    let hop = path_mtu(connected.as_fd(), family).unwrap_or(1500) as usize;
    let hop = u16::try_from(hop.saturating_sub(header_bytes(family))).unwrap_or(MOST_PACKET_BYTES);
    let asked = options_of(spec).packet_bytes.map(|bytes| bytes.get());
    asked.unwrap_or(hop).clamp(1200, MOST_PACKET_BYTES)
}

/// What the protocol machine is told.
pub(super) fn transport_config(spec: &RunSpec, most_packet_bytes: u16) -> Arc<TransportConfig> {
    let options = options_of(spec);
    let window = VarInt::from_u64(options.window_bytes.get()).unwrap_or(VarInt::MAX);
    let mut discovery = MtuDiscoveryConfig::default();
    // Random losses are taken for a smaller MTU now and then: not for a minute.
    discovery.black_hole_cooldown(BLACK_HOLE_COOLDOWN);
    discovery.upper_bound(most_packet_bytes);
    let mut config = TransportConfig::default();
    config
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .max_concurrent_uni_streams(VarInt::from_u32(1))
        .datagram_receive_buffer_size(None)
        .receive_window(window.min(VarInt::from_u32(FIRST_WINDOW_BYTES)))
        .stream_receive_window(window)
        .send_window(options.window_bytes.get())
        .max_idle_timeout(IDLE.try_into().ok())
        .keep_alive_interval(Some(Duration::from_secs_f64(options.keep_alive_s.get())))
        .mtu_discovery_config(Some(discovery))
        .congestion_controller_factory(congestion(&options))
        .enable_segmentation_offload(options.gso);
    Arc::new(config)
}

fn congestion(options: &QuicOptions) -> Arc<dyn ControllerFactory + Send + Sync> {
    let initial = options.initial_window_bytes.map(|bytes| bytes.get());
    macro_rules! control {
        ($config:ty) => {{
            let mut config = <$config>::default();
            if let Some(bytes) = initial {
                config.initial_window(bytes);
            }
            Arc::new(config)
        }};
    }
    match options.congestion_control {
        QuicControl::Cubic => control!(CubicConfig),
        QuicControl::Newreno => control!(NewRenoConfig),
        QuicControl::Bbr => control!(BbrConfig),
    }
}
