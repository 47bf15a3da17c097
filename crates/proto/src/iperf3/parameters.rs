//! What a client wants of a server.

use serde_json::{Map, Value, json};

use super::document::{count, flag, real, signed, text};
use super::word::ErrorCode;

/// Bytes per call over TCP when the client does not say.
pub const TCP_BLOCK_BYTES: u32 = 128 * 1024;
/// Bytes of a datagram when the client does not say.
pub const UDP_BLOCK_BYTES: u32 = 1460;
/// Longest block over TCP.
pub const MAX_TCP_BLOCK: u32 = 1024 * 1024;
/// Longest and shortest datagram: what IPv4 carries, and the header.
pub const MAX_UDP_BLOCK: u32 = 65_507;
const MIN_UDP_BLOCK: u32 = 16;
const MAX_WINDOW: u32 = 512 * 1024 * 1024;
const MAX_MSS: u32 = 32 * 1024 - 1;
const MAX_TIME_S: u32 = 86_400;
const MAX_OMIT_S: u32 = 600;
const MAX_BURST: u32 = 1000;
const MAX_STREAMS: u16 = 128;
/// Longest name of a congestion control (`TCP_CA_NAME_MAX`), with its zero.
const MAX_CONGESTION: usize = 15;
const MAX_TITLE: usize = 256;
/// An RSA key of 16,384 bits makes tokens of 2,732 characters.
const MAX_TOKEN: usize = 4096;
const MAX_VERSION: usize = 32;

/// What carries the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
}

/// What a client wants. A zero is "not said", as in iperf3.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Parameters {
    /// What carries the data.
    pub protocol: Protocol,
    /// Seconds at the start that do not count.
    pub omit_s: u32,
    /// Seconds after those; 0 if bytes or blocks end the test.
    pub time_s: u32,
    /// Bytes after which the client ends the test.
    pub bytes: u64,
    /// Blocks after which the client ends the test.
    pub blocks: u64,
    /// Segment size.
    pub mss_bytes: u32,
    /// Whether small segments go at once.
    pub no_delay: bool,
    /// Streams each way.
    pub streams: u16,
    /// The server sends.
    pub reverse: bool,
    /// Both ends send.
    pub bidirectional: bool,
    /// Multipath TCP.
    pub mptcp: bool,
    /// Socket buffers.
    pub window_bytes: u32,
    /// Bytes of a call or a datagram.
    pub block_bytes: u32,
    /// Rate of each stream of the sender, by its own schedule.
    pub rate_bps: u64,
    /// Rate of each stream of the sender, by the kernel's.
    pub pacing_rate_bps: u64,
    /// Blocks that go at once when a rate is held.
    pub burst: u32,
    /// Whether one call may carry several datagrams to the kernel.
    pub gso: bool,
    /// Whether the kernel may bring several datagrams at once.
    pub gro: bool,
    /// Type of service.
    pub tos: u8,
    /// Title of the test.
    pub title: Option<String>,
    /// Congestion control.
    pub congestion: Option<String>,
    /// Whether the server is to say what it would print.
    pub wants_output: bool,
    /// Whether datagrams are numbered in 64 bits.
    pub counters_64bit: bool,
    /// Whether the payload is digits over and over instead of random bytes.
    pub repeating_payload: bool,
    /// Whether the sender is to save copies.
    pub zerocopy: bool,
    /// Whether datagrams may not be cut into fragments.
    pub dont_fragment: bool,
    /// Whether the receiver is to leave what came in the kernel.
    pub skip_receive_copy: bool,
    /// CPU that the server is to use.
    pub server_cpu: Option<u16>,
    /// Name, password and time, encrypted with the server's key.
    pub token: Option<String>,
    /// Version of the client.
    pub client_version: String,
}

impl Parameters {
    /// Reads parameters.
    ///
    /// # Errors
    /// The code for what is not allowed in any test, whoever asks.
    pub fn decode(document: &Value) -> Result<Self, ErrorCode> {
        if flag(document, "sctp") {
            return Err(ErrorCode::SCTP);
        }
        let small = |name: &str| u32::try_from(count(document, name)).unwrap_or(u32::MAX);
        let is_udp = flag(document, "udp");
        let parameters = Self {
            protocol: if is_udp { Protocol::Udp } else { Protocol::Tcp },
            omit_s: small("omit"),
            time_s: small("time"),
            bytes: count(document, "num"),
            blocks: count(document, "blockcount"),
            mss_bytes: small("MSS"),
            no_delay: flag(document, "nodelay"),
            streams: u16::try_from(count(document, "parallel").max(1)).unwrap_or(u16::MAX),
            reverse: flag(document, "reverse"),
            bidirectional: flag(document, "bidirectional"),
            mptcp: flag(document, "mptcp"),
            window_bytes: small("window"),
            block_bytes: small("len"),
            rate_bps: count(document, "bandwidth"),
            pacing_rate_bps: count(document, "fqrate"),
            burst: small("burst"),
            gso: flag(document, "gso"),
            gro: flag(document, "gro"),
            tos: u8::try_from(count(document, "TOS")).map_err(|_| ErrorCode::TOS)?,
            title: text(document, "title", MAX_TITLE),
            congestion: text(document, "congestion", MAX_CONGESTION + 1),
            wants_output: flag(document, "get_server_output"),
            counters_64bit: flag(document, "udp_counters_64bit"),
            repeating_payload: flag(document, "repeating_payload"),
            zerocopy: flag(document, "zerocopy"),
            dont_fragment: flag(document, "dont_fragment"),
            skip_receive_copy: flag(document, "skip_rx_copy"),
            server_cpu: cpu(document)?,
            token: text(document, "authtoken", MAX_TOKEN),
            client_version: text(document, "client_version", MAX_VERSION).unwrap_or_default(),
        };
        parameters.with_defaults().checked()
    }

    /// As a client sends them.
    pub fn encode(&self) -> Value {
        let mut out = Map::new();
        let protocol = if self.is_udp() { "udp" } else { "tcp" };
        out.insert(protocol.into(), true.into());
        for (name, always) in [
            ("omit", self.omit_s.into()),
            ("time", self.time_s.into()),
            ("num", self.bytes),
            ("blockcount", self.blocks),
        ] {
            out.insert(name.into(), json!(always));
        }
        out.insert("parallel".into(), self.streams.into());
        for (name, flag) in self.flags() {
            if flag {
                out.insert(name.into(), true.into());
            }
        }
        for (name, number) in self.numbers() {
            if number > 0 {
                out.insert(name.into(), number.into());
            }
        }
        for (name, text) in [
            ("title", &self.title),
            ("congestion", &self.congestion),
            ("authtoken", &self.token),
        ] {
            if let Some(text) = text {
                out.insert(name.into(), text.as_str().into());
            }
        }
        if let Some(cpu) = self.server_cpu {
            out.insert("server_affinity".into(), cpu.into());
        }
        out.insert("client_version".into(), self.client_version.as_str().into());
        Value::Object(out)
    }

    /// What stands there as true or not at all.
    fn flags(&self) -> [(&'static str, bool); 4] {
        [
            ("nodelay", self.no_delay),
            ("reverse", self.reverse),
            ("bidirectional", self.bidirectional),
            ("mptcp", self.mptcp),
        ]
    }

    /// What stands there as a number or not at all; iperf3 has some of its flags among them.
    fn numbers(&self) -> [(&'static str, u64); 16] {
        [
            ("MSS", self.mss_bytes.into()),
            ("window", self.window_bytes.into()),
            ("len", self.block_bytes.into()),
            ("bandwidth", self.rate_bps),
            ("fqrate", self.pacing_rate_bps),
            ("burst", self.burst.into()),
            ("gso", self.gso.into()),
            ("gro", self.gro.into()),
            ("TOS", self.tos.into()),
            ("get_server_output", self.wants_output.into()),
            ("udp_counters_64bit", self.counters_64bit.into()),
            ("repeating_payload", self.repeating_payload.into()),
            ("zerocopy", self.zerocopy.into()),
            ("dont_fragment", self.dont_fragment.into()),
            ("skip_rx_copy", self.skip_receive_copy.into()),
            ("pacing_timer", if self.rate_bps > 0 { 1000 } else { 0 }),
        ]
    }

    fn with_defaults(mut self) -> Self {
        if self.block_bytes == 0 {
            self.block_bytes = if self.is_udp() {
                UDP_BLOCK_BYTES
            } else {
                TCP_BLOCK_BYTES
            };
        }
        self
    }

    fn checked(self) -> Result<Self, ErrorCode> {
        let congestion = self.congestion.as_deref().unwrap_or("x");
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let block = if self.is_udp() {
            MIN_UDP_BLOCK..=MAX_UDP_BLOCK
        } else {
            1..=MAX_TCP_BLOCK
        };
        let block_code = if self.is_udp() {
            ErrorCode::DATAGRAM
        } else {
            ErrorCode::BLOCK
        };
        let rules = [
            (self.reverse && self.bidirectional, ErrorCode::DIRECTION),
            (self.streams > MAX_STREAMS, ErrorCode::STREAMS),
            (!block.contains(&self.block_bytes), block_code),
            (self.window_bytes > MAX_WINDOW, ErrorCode::BUFFER),
            (self.mss_bytes > MAX_MSS, ErrorCode::MSS),
            (self.time_s > MAX_TIME_S, ErrorCode::DURATION),
            (self.omit_s > MAX_OMIT_S, ErrorCode::OMIT),
            (self.burst > MAX_BURST, ErrorCode::BURST),
            (
                congestion.is_empty() || congestion.len() > MAX_CONGESTION,
                ErrorCode::CONGESTION,
            ),
            (!congestion.bytes().all(is_name), ErrorCode::CONGESTION),
        ];
        match rules.into_iter().find(|(broken, _)| *broken) {
            Some((_, code)) => Err(code),
            None => Ok(self),
        }
    }

    /// Whether UDP carries the data.
    pub fn is_udp(&self) -> bool {
        self.protocol == Protocol::Udp
    }

    /// Streams on which the client sends.
    pub fn forward(&self) -> usize {
        if self.reverse { 0 } else { self.streams.into() }
    }

    /// Streams on which the server sends.
    pub fn backward(&self) -> usize {
        if self.reverse || self.bidirectional {
            self.streams.into()
        } else {
            0
        }
    }

    /// Streams in all.
    pub fn total(&self) -> usize {
        self.forward() + self.backward()
    }

    /// The rate that the test asks for over all streams: the larger of the two ways to say it; 0 for as fast as it goes.
    pub fn total_rate_bps(&self) -> u64 {
        self.rate_bps
            .max(self.pacing_rate_bps)
            .saturating_mul(self.total() as u64)
    }

    /// Whether bytes or blocks end the test instead of the clock.
    pub fn is_counted(&self) -> bool {
        self.bytes > 0 || self.blocks > 0
    }

    /// Major and minor version of the client; zeros where it does not say.
    pub fn version(&self) -> (u32, u32) {
        let mut numbers = self.client_version.split(|other: char| !other.is_ascii_digit());
        let mut next = || numbers.next().and_then(|number| number.parse().ok()).unwrap_or(0);
        (next(), next())
    }
}

/// The CPU for the server; iperf3's clients leave it out, or say -1, for none.
fn cpu(document: &Value) -> Result<Option<u16>, ErrorCode> {
    match signed(document, "server_affinity") {
        None | Some(..0) => Ok(None),
        Some(cpu) => u16::try_from(cpu).map(Some).map_err(|_| ErrorCode::AFFINITY),
    }
}

/// A time in a document, in seconds; 0 if there is none.
pub(super) fn seconds(document: &Value, name: &str) -> f64 {
    real(document, name).unwrap_or(0.0)
}
