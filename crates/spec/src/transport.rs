//! Protocols that carry data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Protocol that carries the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// The kernel's TCP (or MPTCP).
    Tcp,
    /// Plain datagrams at a stated rate: loss and jitter are results.
    Udp,
    /// UDT4 over datagrams: reliable, with congestion control in user space.
    Udt,
    /// Blasts over datagrams at a stated rate, repeated until nothing is missing: for dedicated paths.
    Rbudp,
    /// QUIC over datagrams: reliable, encrypted, one UDP port at the server; survives a change of the client's address.
    Quic,
    /// No network: the harness's own ceiling.
    Null,
}

impl Transport {
    /// Every transport.
    pub const ALL: [Transport; 6] = [
        Transport::Tcp,
        Transport::Udp,
        Transport::Udt,
        Transport::Rbudp,
        Transport::Quic,
        Transport::Null,
    ];

    /// The word used in JSON and on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Udt => "udt",
            Self::Rbudp => "rbudp",
            Self::Quic => "quic",
            Self::Null => "null",
        }
    }
}
