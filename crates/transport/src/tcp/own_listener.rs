//! What streams on a port that is somebody else's cannot have.

use farline_spec::{Failure, RunSpec, Transport};

use super::bytes;

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
