//! What happened: one record per run, whole spec and both hosts included.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Adjustment, CopyReport, DrivenRun, EmulatedPath, Failure, HostFacts, RunSpec};

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// It ran to its end and both ends reported.
    Complete,
    /// It was stopped before its end; what is there is true as far as it goes.
    Partial,
    /// It failed; `error` says why. A failed run is a failure, not a zero.
    Failed,
}

impl RunStatus {
    /// The word used in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Partial => "partial",
            Self::Failed => "failed",
        }
    }
}

/// Versions behind a record.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VersionInfo {
    /// Version of farline.
    pub farline: String,
    /// Commit it was built from, where known.
    pub commit: String,
    /// Build profile (`release` or `debug`): a figure from a debug build is no figure.
    pub profile: String,
    /// Version of the control protocol that was agreed on.
    pub protocol: u32,
}

/// CPU time used by one end during the run.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CpuUse {
    /// User time of the process over the run.
    pub user_s: f64,
    /// System time of the process over the run.
    pub system_s: f64,
    /// Wall time over which both were taken.
    pub wall_s: f64,
    /// Time the hypervisor gave to others, over all CPUs.
    pub steal_s: f64,
}

/// What one end says about the run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EndReport {
    /// The host.
    pub host: HostFacts,
    /// Versions of farline there.
    pub version: VersionInfo,
    /// CPU time used.
    pub cpu: CpuUse,
    /// What this end of a copy did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy: Option<CopyReport>,
}

/// What the kernel really granted to one end of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Granted {
    /// Local address and port.
    pub local: String,
    /// Remote address and port.
    pub remote: String,
    /// Congestion control in use.
    pub congestion_control: Option<String>,
    /// MSS in use.
    pub mss_bytes: Option<u32>,
    /// Send buffer as the kernel reports it (twice what was asked for, on Linux).
    pub send_buffer_bytes: Option<u64>,
    /// Receive buffer as the kernel reports it.
    pub receive_buffer_bytes: Option<u64>,
    /// Whether both ends really speak Multipath TCP on this stream.
    pub mptcp: Option<bool>,
    /// UDP payload per datagram in use.
    pub packet_bytes: Option<u32>,
    /// Datagrams per call in use.
    pub batch_packets: Option<u32>,
    /// Whether segmentation offload is in use.
    pub gso: Option<bool>,
    /// Whether receive offload is in use.
    pub gro: Option<bool>,
    /// CPU the stream's thread is pinned to.
    pub cpu: Option<u32>,
    /// Requests the kernel refused or changed, one line each.
    pub notes: Vec<String>,
}

/// One blast of RBUDP: a payload that is sent until nothing of it is missing (He et al. 2002, section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Blast {
    /// Payload bytes.
    pub bytes: u64,
    /// How often packets of it were sent and a report was waited for: 1 when nothing was missing (He et al. 2002: N_resend + 1).
    pub passes: u32,
    /// Packets it consists of.
    pub packets: u64,
    /// Of these, missing after they had been sent once.
    pub first_pass_lost_packets: u64,
    /// Packets sent in all, repeated ones included; 0 at the receiver.
    pub sent_packets: u64,
    /// Microseconds from its first packet until this end knew that it was whole.
    pub elapsed_us: u64,
}

/// What a path carried of a short train at the stated rate before the blasts began.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PathCheck {
    /// Payload rate of the trains, over all streams.
    pub rate_bps: u64,
    /// Payload rate at which the path let the best train through, losses left out.
    pub carried_bps: u64,
    /// Smallest round-trip time before the trains.
    pub min_rtt_us: u64,
    /// Median round-trip time before the trains: what is above the smallest is others' queue.
    pub idle_rtt_us: u64,
    /// Share of the trains' packets that never came.
    pub lost_share: f64,
    /// Whether others use the path, or it cannot carry the rate without queues.
    pub shared: bool,
}

/// What one end of one stream did.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StreamRecord {
    /// Number of the stream, from 0.
    pub stream: u32,
    /// 0 client, 1 server.
    pub end: u8,
    /// 0 sends, 1 receives.
    pub role: u8,
    /// Payload bytes this end sent or received.
    pub bytes: u64,
    /// Microseconds from the start of the run at this end to this end's last byte.
    pub elapsed_us: u64,
    /// Calls that moved a block.
    pub blocks: u64,
    /// Datagrams sent or received.
    pub packets: u64,
    /// Datagrams that never came.
    pub lost_packets: u64,
    /// Datagrams that came after a later one.
    pub reordered_packets: u64,
    /// Datagrams that came twice.
    pub duplicate_packets: u64,
    /// Jitter at the end of the run (RFC 3550, section 6.4.1).
    pub jitter_ns: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Bytes sent with MSG_ZEROCOPY that the kernel copied after all.
    pub zerocopy_copied_bytes: u64,
    /// Bytes sent with MSG_ZEROCOPY that were not copied.
    pub zerocopy_true_bytes: u64,
    /// Smallest round-trip time the kernel saw, in microseconds.
    pub min_rtt_us: u64,
    /// CPU time of this end's thread of the stream, in microseconds.
    pub thread_cpu_us: u64,
    /// Time in which this end's thread of the stream could have run but had no CPU, in microseconds.
    pub thread_wait_us: u64,
    /// Blasts that ended whole, the first 256 of them; RBUDP only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blasts: Vec<Blast>,
    /// All blasts that ended whole.
    #[serde(skip_serializing_if = "is_zero")]
    pub whole_blasts: u64,
    /// What the path carried before the blasts began, where it was measured; RBUDP only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_check: Option<PathCheck>,
    /// What the kernel granted.
    pub granted: Granted,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A throughput with what is needed to judge it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Throughput {
    /// Payload bits per second over the whole run, ramp included.
    pub total_bps: f64,
    /// Payload bits per second after the warm-up, if enough samples are left.
    pub steady_bps: Option<f64>,
    /// Seconds left out as warm-up.
    pub omitted_s: f64,
    /// How the warm-up was found: `mser-5`, `stated` or `none`; with `, by the sender` where the receiver gave no samples.
    pub warmup_rule: String,
    /// Payload bytes received.
    pub bytes: u64,
    /// Seconds from the start of the run to the last byte at the receiver.
    pub elapsed_s: f64,
}

/// What a run comes to, computed from its samples.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Summary {
    /// Client to server, as the receiver saw it.
    pub forward: Option<Throughput>,
    /// Server to client, as the receiver saw it.
    pub reverse: Option<Throughput>,
    /// Segments sent again, over all streams.
    pub retransmits: Option<u64>,
    /// Datagrams sent, over all streams.
    pub sent_packets: Option<u64>,
    /// Datagrams that never came, over all streams.
    pub lost_packets: Option<u64>,
    /// Mean over streams of the jitter at the end of the run.
    pub jitter_ns: Option<u64>,
    /// Mean of the round-trip-time samples at the senders.
    pub mean_rtt_us: Option<f64>,
    /// Smallest round-trip time the kernel saw.
    pub min_rtt_us: Option<u64>,
    /// CPU seconds of both ends per 10^9 payload bytes received.
    pub cpu_s_per_gb: Option<f64>,
    /// CPU time of the client over wall time; 1 is one CPU; absent where it is not known.
    pub client_cpu: Option<f64>,
    /// CPU time of the server over wall time; 1 is one CPU; absent where it is not known.
    pub server_cpu: Option<f64>,
}

/// What can limit a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LimitedBy {
    /// The receiver's window held the senders back.
    ReceiveWindow,
    /// The receiver's socket buffer overflowed (datagrams).
    ReceiveBuffer,
    /// The sender's socket buffer was full.
    SendBuffer,
    /// The congestion window or the pacing rate of the congestion control.
    Cwnd,
    /// CPU at the sender.
    SenderCpu,
    /// CPU at the receiver.
    ReceiverCpu,
    /// The sending program had nothing queued.
    Application,
    /// The path carries no more.
    Path,
    /// The rate that was asked for.
    Rate,
    /// farline itself: there was no network in the run.
    Harness,
    /// The disk at the sender.
    SenderDisk,
    /// The disk at the receiver.
    ReceiverDisk,
    /// Making and naming many small files.
    FileNames,
    /// Nothing stands out.
    #[default]
    Unknown,
}

/// What limited a run, with the evidence.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Verdict {
    /// What limited it.
    pub limit: LimitedBy,
    /// One line for people.
    pub line: String,
    /// Figures the verdict rests on, one line each.
    pub evidence: Vec<String>,
    /// Commands or options that would lift the limit, one line each.
    pub remedies: Vec<String>,
}

/// One run: what was asked, what was granted, what happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// Version of this document.
    pub schema: u32,
    /// Unique, and sorts by time (ULID).
    pub run_id: String,
    /// How it ended.
    pub status: RunStatus,
    /// Why it failed or was stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// Start of the run by the client's clock (RFC 3339, UTC, microseconds).
    pub started_at: String,
    /// Seconds from the client's first step to its last, set-up and exchange included.
    pub session_s: f64,
    /// Seconds in which data could flow, by the client's clock.
    pub run_s: f64,
    /// Server as it was addressed, `host:port`.
    pub server_address: String,
    /// Whole spec, resolved.
    pub spec: RunSpec,
    /// Limits the server applied to this run that changed the spec, one line each.
    #[serde(default)]
    pub server_notes: Vec<String>,
    /// The client's end.
    pub client: Option<EndReport>,
    /// The server's end.
    pub server: Option<EndReport>,
    /// Both ends of every stream.
    pub streams: Vec<StreamRecord>,
    /// What the run comes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// What limited it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The emulated path it went over, where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<EmulatedPath>,
    /// What a copy came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<CopyReport>,
    /// What is known of the run where another tool did it; such a run has no streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driven: Option<DrivenRun>,
    /// What was changed while it ran, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adjustments: Vec<Adjustment>,
}
