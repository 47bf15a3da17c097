//! What a server allows, and to whom.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::unit::{DurationS, Port, RateBps, SessionCount, StreamCount, TotalBytes};

/// What the holder of a ticket may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", tag = "may")]
pub enum Scope {
    /// Memory-to-memory profiling.
    Profile,
    /// Read files under a root.
    Read {
        /// The root.
        root: String,
    },
    /// Write files under a root.
    Write {
        /// The root.
        root: String,
    },
}

/// Bounds on what a client may ask for; what is absent is without bound.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Payload rate over all streams of a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<RateBps>,
    /// Length of one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<DurationS>,
    /// Payload bytes of one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<TotalBytes>,
    /// Data streams of one run at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<StreamCount>,
    /// Sessions in all, over the ticket's life.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions: Option<SessionCount>,
}

/// What a ticket says. The server signs it; whoever holds it may use it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TicketClaims {
    /// Unique name of the ticket.
    pub id: String,
    /// What it allows.
    pub scope: Scope,
    /// Bounds.
    #[serde(default)]
    pub limits: Limits,
    /// Seconds since 1970 after which it is void.
    pub expires_at_s: u64,
}

/// A ticket as its server's folder remembers it: all but the signature, so that nobody can use what is listed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TicketRecord {
    /// What the ticket says.
    pub claims: TicketClaims,
    /// Where its server is reached, `host:port`.
    pub address: String,
    /// Seconds since 1970 at which it was made; absent for a ticket that the folder has no record of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made_at_s: Option<u64>,
    /// Sessions used so far; counted only where their number is limited.
    pub used_sessions: u64,
    /// Whether it was revoked.
    pub revoked: bool,
    /// Whether the server of this folder signed it.
    pub signed_here: bool,
}

/// How `farline serve` runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServerConfig {
    /// Addresses to listen on; every one of the machine if empty.
    #[schemars(length(max = 64))]
    pub listen: Vec<IpAddr>,
    /// Control port; 0 lets the kernel choose.
    pub port: Port,
    /// First port for data streams; 0 lets the kernel choose each.
    pub data_port_first: Port,
    /// Last port for data streams.
    pub data_port_last: Port,
    /// Folder of the server's record of tickets, and of its keys unless `keys_dir` is given; made at first start, readable by its owner alone.
    pub state_dir: String,
    /// Folder of the server's keys alone, `server.pem` and `ticket.key`; `state_dir` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys_dir: Option<String>,
    /// Sessions at once; one more is told BUSY.
    pub max_sessions: SessionCount,
    /// Whether clients without a ticket may profile memory to memory.
    pub anonymous: bool,
    /// Bounds on clients without a ticket.
    pub anonymous_limits: Limits,
    /// Whether files move only under a cipher; otherwise a client may choose clear text.
    pub require_cipher: bool,
    /// Whether clients may have owners and groups kept: told of files they read, set for files they write.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keep_owners: bool,
    /// Take data streams in on the control port too, so that a firewall needs one opening only; TCP alone can.
    pub single_port: bool,
    /// Stop after this many sessions; never if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_after_sessions: Option<SessionCount>,
}

impl Default for ServerConfig {
    fn default() -> Self {
        let port = |number| Port::new(number).expect("in range");
        Self {
            listen: Vec::new(),
            port: port(5470),
            data_port_first: port(0),
            data_port_last: port(0),
            state_dir: String::new(),
            keys_dir: None,
            max_sessions: SessionCount::new(4).expect("in range"),
            anonymous: false,
            anonymous_limits: Limits {
                rate_bps: Some(RateBps::new(10_000_000_000).expect("in range")),
                duration_s: Some(DurationS::new(60.0).expect("in range")),
                ..Limits::default()
            },
            require_cipher: false,
            keep_owners: false,
            single_port: false,
            stop_after_sessions: None,
        }
    }
}

/// How `farline serve --iperf3` answers iperf3's clients: memory to memory, for whoever asks, within limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Iperf3Config {
    /// Addresses to listen on; every one of the machine if empty.
    #[schemars(length(max = 64))]
    pub listen: Vec<IpAddr>,
    /// Port for TCP and UDP; 0 lets the kernel choose.
    pub port: Port,
    /// Sessions at once; one more is told that the server is busy.
    pub max_sessions: SessionCount,
    /// Sessions at once of one client address (an IPv4 address, an IPv6 network of 64 bits).
    pub max_sessions_per_address: SessionCount,
    /// Streams of one session.
    pub max_streams: StreamCount,
    /// Bounds on one client address: the rate over all its sessions, the length and the bytes of each of them, and how many it may
    /// have while the server runs.
    pub limits: Limits,
    /// File with the RSA key by which clients encrypt who they are; then only users may come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private_key: Option<String>,
    /// File with those users, one `name,sha256` a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub users: Option<String>,
    /// Seconds by which a client's clock may differ from the server's, where it says who it is.
    #[schemars(range(max = 86400))]
    pub time_skew_s: u32,
    /// Expect the older padding of clients before 3.17.
    pub pkcs1_padding: bool,
    /// Stop after this many sessions; never if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_after_sessions: Option<SessionCount>,
}

impl Default for Iperf3Config {
    fn default() -> Self {
        let sessions = |number| SessionCount::new(number).expect("in range");
        Self {
            listen: Vec::new(),
            port: Port::new(5201).expect("in range"),
            max_sessions: sessions(4),
            max_sessions_per_address: sessions(2),
            max_streams: StreamCount::new(128).expect("in range"),
            limits: ServerConfig::default().anonymous_limits,
            private_key: None,
            users: None,
            time_skew_s: 10,
            pkcs1_padding: false,
            stop_after_sessions: None,
        }
    }
}
