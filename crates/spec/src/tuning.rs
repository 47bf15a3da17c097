//! Tunable parameters of each transport (Yun et al. 2015, section III.B): one struct per protocol, one section of a plan.
//!
//! Extension keywords of the schema are explained in `options.rs`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::unit::{
    BatchPackets, BlastBytes, BlastCount, BufferBytes, FlowWindowPackets, InitialWindowBytes, KeepAliveS,
    LingerS, LossShare, MssBytes, PacketBytes, QuicPacketBytes, RateBps, RbudpPacketBytes, UdtPacketBytes,
    UserTimeoutMs, WindowBytes,
};

/// How a TCP sender gives bytes to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SendMode {
    /// `send`: the kernel copies.
    Copy,
    /// `send` with MSG_ZEROCOPY: completions are counted, also those the kernel copied after all.
    Zerocopy,
    /// `sendfile` from a memory file.
    Sendfile,
    /// `splice` from a memory file through a pipe.
    Splice,
}

/// What a TCP receiver does with the bytes that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReceiveMode {
    /// Read into one buffer, over and over: what iperf3 does.
    Read,
    /// Read, then copy into application memory: app_perf of He et al. 2002, section 3.
    Copy,
    /// Let the kernel drop them (MSG_TRUNC): no copy at all.
    Discard,
}

/// Tunable parameters of TCP. What is absent is the kernel's choice, and what the kernel chose is in the record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TcpOptions {
    /// Use this congestion control at the sender, by its kernel name (default: the kernel's).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 15), extend("x-flags" = ["-C", "--congestion"]))]
    pub congestion_control: Option<String>,
    /// Set the send buffer, SO_SNDBUF (default: autotuned).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--send-buffer"]))]
    pub send_buffer_bytes: Option<BufferBytes>,
    /// Set the receive buffer, SO_RCVBUF (default: autotuned).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--receive-buffer"]))]
    pub receive_buffer_bytes: Option<BufferBytes>,
    /// Limit segments to this size, TCP_MAXSEG (default: the kernel's).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["-M", "--mss"]))]
    pub mss_bytes: Option<MssBytes>,
    /// Send small segments at once (TCP_NODELAY).
    #[schemars(extend("x-flags" = ["-N", "--no-delay"]))]
    pub no_delay: bool,
    /// Pass data to the kernel by this method.
    #[schemars(extend("x-flags" = ["--send-mode"]))]
    pub send_mode: SendMode,
    /// Read received data, read and copy it, or have the kernel discard it.
    #[schemars(extend("x-flags" = ["--receive-mode"]))]
    pub receive_mode: ReceiveMode,
    /// Use Multipath TCP (RFC 8684).
    #[schemars(extend("x-flags" = ["-m", "--mptcp"]))]
    pub mptcp: bool,
    /// Pace each stream in the kernel, SO_MAX_PACING_RATE (default: not paced).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--fq-rate", "--pacing-rate"]))]
    pub pacing_rate_bps: Option<RateBps>,
    /// Give up a connection when sent data stay unacknowledged for this long, TCP_USER_TIMEOUT (default: the kernel's).
    ///
    /// A receiver that takes no more data for this long counts too. See RFC 5482.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--user-timeout"]))]
    pub user_timeout_ms: Option<UserTimeoutMs>,
}

impl Default for TcpOptions {
    fn default() -> Self {
        Self {
            congestion_control: None,
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
            mss_bytes: None,
            no_delay: false,
            send_mode: SendMode::Copy,
            receive_mode: ReceiveMode::Read,
            mptcp: false,
            pacing_rate_bps: None,
            user_timeout_ms: None,
        }
    }
}

/// What a UDP receiver does with the datagrams that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UdpReceiveMode {
    /// Read into one buffer, over and over: what iperf3 does.
    Read,
    /// Read, then copy into application memory: app_perf of He et al. 2002, section 3.
    Copy,
}

/// Tunable parameters of UDP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UdpOptions {
    /// Send this much payload in each datagram (default: what fits the path's MTU).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--packet"]))]
    pub packet_bytes: Option<PacketBytes>,
    /// Send this many datagrams in one call (default: as many as the rate and the kernel allow).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--batch"]))]
    pub batch_packets: Option<BatchPackets>,
    /// Let the kernel or the NIC split a batch into datagrams (UDP_SEGMENT).
    #[schemars(extend("x-flags" = ["--gso"]))]
    pub gso: bool,
    /// Receive datagrams from the kernel in batches (UDP_GRO).
    #[schemars(extend("x-flags" = ["--gro"]))]
    pub gro: bool,
    /// Set the send buffer, SO_SNDBUF, beyond wmem_max where permitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--send-buffer"]))]
    pub send_buffer_bytes: Option<BufferBytes>,
    /// Set the receive buffer, SO_RCVBUF, beyond rmem_max where permitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--receive-buffer"]))]
    pub receive_buffer_bytes: Option<BufferBytes>,
    /// Fail on datagrams larger than the path's MTU instead of fragmenting them.
    #[schemars(extend("x-flags" = ["--dont-fragment"]))]
    pub dont_fragment: bool,
    /// Read received datagrams, or read and copy them.
    #[schemars(extend("x-flags" = ["--receive-mode"]))]
    pub receive_mode: UdpReceiveMode,
}

impl Default for UdpOptions {
    fn default() -> Self {
        Self {
            packet_bytes: None,
            batch_packets: None,
            gso: true,
            gro: true,
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
            dont_fragment: false,
            receive_mode: UdpReceiveMode::Read,
        }
    }
}

/// How a UDT sender decides how fast to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UdtControl {
    /// From a model of the path, delivery rate and least round-trip time: after BBR. Losses by chance do not slow it down.
    #[default]
    Bbr,
    /// UDT's own: a rate that grows with the spare capacity and falls by a ninth at a loss (CUDTCC).
    Native,
    /// A window as TCP's NewReno has it.
    Reno,
    /// The stated rate whatever happens; needs `rate_bps`. For dedicated paths only.
    Fixed,
}

impl UdtControl {
    /// Every control.
    pub const ALL: [UdtControl; 4] = [Self::Bbr, Self::Native, Self::Reno, Self::Fixed];

    /// The word used in JSON and on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Bbr => "bbr",
            Self::Native => "native",
            Self::Reno => "reno",
            Self::Fixed => "fixed",
        }
    }
}

/// Tunable parameters of UDT (Yun et al. 2015, section IV.A). The most one connection may send (UDT_MAXBW, TPG's -B) is `rate_bps`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UdtOptions {
    /// Send datagrams of this size, including UDT's 16-byte header (default: what fits the path's MTU).
    ///
    /// This is UDT_MSS less 28. The smaller value of the two ends applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--packet"]))]
    pub packet_bytes: Option<UdtPacketBytes>,
    /// Use this congestion control at the sender.
    #[schemars(extend("x-flags" = ["-C", "--congestion"]))]
    pub congestion_control: UdtControl,
    /// Set the send buffer, UDT_SNDBUF, which also holds unacknowledged data (default: what the path needs, up to 1 GiB).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--send-buffer"]))]
    pub send_buffer_bytes: Option<BufferBytes>,
    /// Set the receive buffer, UDT_RCVBUF (default: what the path needs, up to 1 GiB).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--receive-buffer"]))]
    pub receive_buffer_bytes: Option<BufferBytes>,
    /// Allow this many packets in flight, UDT_FC (default: what the receive buffer holds).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--flow-window"]))]
    pub flow_window_packets: Option<FlowWindowPackets>,
    /// Set the UDP socket's send buffer, UDP_SNDBUF, beyond wmem_max where permitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--udp-send-buffer"]))]
    pub udp_send_buffer_bytes: Option<BufferBytes>,
    /// Set the UDP socket's receive buffer, UDP_RCVBUF, beyond rmem_max where permitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--udp-receive-buffer"]))]
    pub udp_receive_buffer_bytes: Option<BufferBytes>,
    /// Wait this long at the end for the receiver to get all data (UDT_LINGER).
    #[schemars(extend("x-flags" = ["--linger"]))]
    pub linger_s: LingerS,
    /// Let the kernel or the NIC split a batch into datagrams (UDP_SEGMENT).
    #[schemars(extend("x-flags" = ["--gso"]))]
    pub gso: bool,
    /// Receive datagrams from the kernel in batches (UDP_GRO).
    #[schemars(extend("x-flags" = ["--gro"]))]
    pub gro: bool,
}

impl Default for UdtOptions {
    fn default() -> Self {
        Self {
            packet_bytes: None,
            congestion_control: UdtControl::default(),
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
            flow_window_packets: None,
            udp_send_buffer_bytes: None,
            udp_receive_buffer_bytes: None,
            linger_s: LingerS::new(180.0).expect("in range"),
            gso: true,
            gro: true,
        }
    }
}

/// How a QUIC sender decides how much may be under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum QuicControl {
    /// CUBIC (RFC 9438).
    #[default]
    Cubic,
    /// NewReno (RFC 9002, section 7).
    Newreno,
    /// From a model of the path: quinn's BBR, which it calls experimental.
    Bbr,
}

impl QuicControl {
    /// Every control.
    pub const ALL: [QuicControl; 3] = [Self::Cubic, Self::Newreno, Self::Bbr];

    /// The word used in JSON and on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Newreno => "newreno",
            Self::Bbr => "bbr",
        }
    }
}

/// Tunable parameters of QUIC (RFC 9000). Each stream has a connection of its own; all of a server's use one UDP port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QuicOptions {
    /// Use this congestion control at the sender.
    #[schemars(extend("x-flags" = ["-C", "--congestion"]))]
    pub congestion_control: QuicControl,
    /// Send datagrams of at most this size, found by probing from 1200 upwards (default: what fits the MTU of the first hop).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--packet"]))]
    pub packet_bytes: Option<QuicPacketBytes>,
    /// Send this much before the first acknowledgement (default: 14,720 bytes with cubic and newreno, 240,000 with bbr).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--initial-window"]))]
    pub initial_window_bytes: Option<InitialWindowBytes>,
    /// Allow this much in flight or waiting to be read on each stream.
    #[schemars(extend("x-flags" = ["--flow-window-bytes"]))]
    pub window_bytes: WindowBytes,
    /// Send a keep-alive after this much silence, which also keeps NAT mappings open.
    #[schemars(extend("x-flags" = ["--keep-alive"]))]
    pub keep_alive_s: KeepAliveS,
    /// Set the UDP socket's send buffer beyond wmem_max where permitted (default 8 MiB).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--udp-send-buffer"]))]
    pub udp_send_buffer_bytes: Option<BufferBytes>,
    /// Set the UDP socket's receive buffer beyond rmem_max where permitted (default 8 MiB).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--udp-receive-buffer"]))]
    pub udp_receive_buffer_bytes: Option<BufferBytes>,
    /// Let the kernel or the NIC split a batch into datagrams (UDP_SEGMENT).
    #[schemars(extend("x-flags" = ["--gso"]))]
    pub gso: bool,
}

impl Default for QuicOptions {
    fn default() -> Self {
        Self {
            congestion_control: QuicControl::default(),
            packet_bytes: None,
            initial_window_bytes: None,
            window_bytes: WindowBytes::new(256 << 20).expect("in range"),
            keep_alive_s: KeepAliveS::new(5.0).expect("in range"),
            udp_send_buffer_bytes: None,
            udp_receive_buffer_bytes: None,
            gso: true,
        }
    }
}

/// How an RBUDP receiver puts packets where they belong (He et al. 2002, section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RbudpReceiver {
    /// Look at each packet that came, then move it to its place.
    Naive,
    /// Predict which packets come next and receive them straight into their places; move those that were guessed wrong.
    #[default]
    Gather,
    /// Keep account of the packets and never move them: what the protocol costs by itself. Nothing arrives in memory.
    Fake,
}

impl RbudpReceiver {
    /// Every receiver.
    pub const ALL: [RbudpReceiver; 3] = [Self::Naive, Self::Gather, Self::Fake];

    /// The word used in JSON and on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Naive => "naive",
            Self::Gather => "gather",
            Self::Fake => "fake",
        }
    }
}

/// What to do when the path shows that others use it, or cannot carry the stated rate without queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SharedPath {
    /// Measure, say what the blast does to others, and blast.
    #[default]
    Warn,
    /// Measure, and refuse to blast.
    Refuse,
    /// Do not measure.
    Allow,
}

/// Tunable parameters of Reliable Blast UDP (He et al. 2002). The sending rate of the blasts is `rate_bps`, which must be stated; for dedicated paths only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RbudpOptions {
    /// Send datagrams of this size, including RBUDP's 16-byte header (default: what fits the path's MTU).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--packet"]))]
    pub packet_bytes: Option<RbudpPacketBytes>,
    /// Send this much payload per blast; longer payloads take several blasts.
    ///
    /// It is S of He et al. 2002.
    #[schemars(extend("x-flags" = ["--payload"]))]
    pub payload_bytes: BlastBytes,
    /// Keep this many blasts in flight (default 64, fewer if they need over 16 GiB).
    ///
    /// New data go while the gaps of earlier blasts are filled; 1 is the protocol as published.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--in-flight"]))]
    pub in_flight: Option<BlastCount>,
    /// Request loss reports during a blast and fill its gaps at once.
    ///
    /// Off is the protocol as published: one report after each pass.
    #[schemars(extend("x-flags" = ["--early"]))]
    pub early: bool,
    /// Place received packets in memory by this method.
    #[schemars(extend("x-flags" = ["--receiver"]))]
    pub receiver: RbudpReceiver,
    /// Verify every packet where it was placed, and each blast as a whole.
    #[schemars(extend("x-flags" = ["--checksum"]))]
    pub checksum: bool,
    /// Reduce the rate while more than this share of packets is lost, then raise it again up to `rate_bps` (default: never).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--loss-bound"]))]
    pub loss_bound: Option<LossShare>,
    /// Warn, refuse or continue when others use the path or it cannot carry the rate without queues.
    #[schemars(extend("x-flags" = ["--shared-path"]))]
    pub shared_path: SharedPath,
    /// Send this file of the client, or receive into it (default: memory).
    ///
    /// The server's side is always memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096), extend("x-flags" = ["-F", "--file"]))]
    pub file: Option<String>,
    /// Set the UDP socket's send buffer, SO_SNDBUF, beyond wmem_max where permitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--udp-send-buffer"]))]
    pub udp_send_buffer_bytes: Option<BufferBytes>,
    /// Set the UDP socket's receive buffer, SO_RCVBUF, beyond rmem_max where permitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--udp-receive-buffer"]))]
    pub udp_receive_buffer_bytes: Option<BufferBytes>,
    /// Let the kernel or the NIC split a batch into datagrams (UDP_SEGMENT).
    #[schemars(extend("x-flags" = ["--gso"]))]
    pub gso: bool,
    /// Receive datagrams from the kernel in batches (UDP_GRO).
    #[schemars(extend("x-flags" = ["--gro"]))]
    pub gro: bool,
}

impl Default for RbudpOptions {
    fn default() -> Self {
        Self {
            packet_bytes: None,
            payload_bytes: BlastBytes::new(16 << 20).expect("in range"),
            in_flight: None,
            early: true,
            receiver: RbudpReceiver::default(),
            checksum: true,
            loss_bound: None,
            shared_path: SharedPath::default(),
            file: None,
            udp_send_buffer_bytes: None,
            udp_receive_buffer_bytes: None,
            gso: true,
            gro: true,
        }
    }
}
