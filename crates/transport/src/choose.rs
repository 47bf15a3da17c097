//! The one place that knows every transport: protocols do not know each other.

use farline_spec::{RunSpec, Transport as Word};

use crate::{Transport, null, quic, rbudp, tcp, udp, udt};

/// The transport that `spec` names.
pub fn transport_for(spec: &RunSpec) -> Box<dyn Transport> {
    match spec.transport {
        Word::Tcp => Box::new(tcp::Tcp),
        Word::Udp => Box::new(udp::Udp),
        Word::Udt => Box::new(udt::Udt),
        Word::Rbudp => Box::new(rbudp::Rbudp),
        Word::Quic => Box::new(quic::Quic),
        Word::Null => Box::new(null::Null),
    }
}
