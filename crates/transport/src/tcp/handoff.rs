//! Streams on a port that is somebody else's: connections that begin with a data preamble are handed on to the session
//! that waits for them.

use std::net::{SocketAddr, TcpStream};

use crossbeam_channel::Receiver;
use farline_spec::{Failure, RunSpec, Transport};

use super::bytes;
use super::listener::TcpListener;
use crate::Listener;

/// Waits for streams whose connections `receiver` brings, with nothing read from them yet; whoever sends there listens on
/// `local`. For TCP alone; options that must stand before a connection exists are refused ([`needs_own_listener`]).
pub fn handoff_listener(receiver: Receiver<TcpStream>, local: SocketAddr) -> Box<dyn Listener> {
    Box::new(TcpListener::handed(receiver, local))
}

/// The option of `spec` for which a port of its own is needed, if there is one.
pub fn needs_own_listener(spec: &RunSpec) -> Option<&'static str> {
    if spec.transport != Transport::Tcp {
        return Some("transport");
    }
    let tcp = spec.tcp.clone().unwrap_or_default();
    let wanted = [
        (tcp.send_buffer_bytes.is_some(), "tcp.send_buffer_bytes"),
        (tcp.receive_buffer_bytes.is_some(), "tcp.receive_buffer_bytes"),
        (tcp.mss_bytes.is_some(), "tcp.mss_bytes"),
        (tcp.mptcp, "tcp.mptcp"),
        (spec.flow_label.is_some(), "flow_label"),
    ];
    wanted
        .into_iter()
        .find_map(|(is_wanted, name)| is_wanted.then_some(name))
}

/// Refuses what cannot be had on a port of somebody else's.
///
/// # Errors
/// `Spec` that names the option.
pub(super) fn check(spec: &RunSpec) -> Result<(), Failure> {
    match needs_own_listener(spec) {
        Some(option) => Err(Failure::option(
            option,
            "must be set before the connection exists, which a server with a single port cannot do",
        )),
        None => bytes::check(spec),
    }
}
