//! What a transfer is expected to take, before it runs: the answer of `farline estimate`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an estimate rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EstimateBasis {
    /// Transfers of files over this path.
    OwnPath,
    /// Measurements of this path between memories: disks are not in them.
    Probes,
    /// The first moments of this very transfer.
    Sample,
    /// Transfers over other paths.
    LikePaths,
    /// A model of published transfers, and nothing that was measured here.
    Model,
}

/// Where the rate and the duration of a share of such transfers lie.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EstimateInterval {
    /// Share of transfers: 0.5, 0.8 or 0.95.
    pub cover: f64,
    /// Lowest payload rate.
    pub rate_low_bps: f64,
    /// Highest payload rate.
    pub rate_high_bps: f64,
    /// Shortest duration.
    pub duration_low_s: f64,
    /// Longest duration.
    pub duration_high_s: f64,
}

/// A reservation to ask a network for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkReservation {
    /// Rate on the wire, headers included, rounded up to three digits.
    pub rate_bps: u64,
    /// When it begins, RFC 3339 with an offset.
    pub start: String,
    /// When it ends, RFC 3339 with an offset.
    pub end: String,
}

/// What a transfer is expected to take: how long, how fast, how sure, and what to reserve.
///
/// Times are RFC 3339 with an offset; rates are of payload over the whole time, but for the reservation's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransferEstimate {
    /// Version of this document.
    pub schema: u32,
    /// Where the data are, as asked.
    pub source: String,
    /// Where they are to go, as asked.
    pub destination: String,
    /// When the question was asked.
    pub estimated_at: String,
    /// Bytes of all files.
    pub bytes: u64,
    /// Files.
    pub files: u64,
    /// Streams that are assumed: as asked, else those of the path's last transfer.
    pub streams: u32,
    /// Rate in the middle: half of such transfers are faster.
    pub rate_bps: f64,
    /// Duration in the middle: half of such transfers take longer.
    pub duration_s: f64,
    /// Intervals of half, 80 % and 95 % of such transfers.
    pub intervals: Vec<EstimateInterval>,
    /// Confidence that was asked for.
    pub confidence: f64,
    /// Rate that is reached with that confidence.
    pub rate_at_confidence_bps: f64,
    /// Duration that is kept with that confidence.
    pub duration_at_confidence_s: f64,
    /// What the estimate rests on.
    pub basis: EstimateBasis,
    /// Transfers that it rests on.
    pub transfers: u64,
    /// When the newest of them ended.
    pub newest_transfer: Option<String>,
    /// Whether the path has had no transfer of this kind: the interval is wider then.
    pub new_kind: bool,
    /// When the transfer is to begin.
    pub start: String,
    /// When it is to be complete.
    pub deadline: Option<String>,
    /// Whether it is complete by then with the confidence that was asked for.
    pub meets_deadline: Option<bool>,
    /// How sure the deadline is, 0.01 to 0.99.
    pub deadline_confidence: Option<f64>,
    /// When it has to begin for the deadline to hold with the confidence that was asked for.
    pub latest_start: Option<String>,
    /// What to reserve; null where the deadline does not hold with the confidence that was asked for.
    pub reservation: Option<NetworkReservation>,
}
