//! What is said about changes of a copy that runs.

use farline_spec::unit::{FileCount, RateBps};
use serde::{Deserialize, Serialize};

use super::ListenerAddress;

/// A change that the client wants. The streams that are to end are the sending end's choice; that they have ended their data
/// say themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adjust {
    /// Number of the change, from 1.
    pub number: u32,
    /// Data streams that the client wants to open.
    #[serde(default)]
    pub open: u16,
    /// Data streams that are to end.
    #[serde(default)]
    pub dismiss: u16,
    /// Files sent at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<FileCount>,
    /// Payload rate over all data streams; 0 is without limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_rate_bps: Option<RateBps>,
}

/// What the server made of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adjusted {
    /// Number of the change.
    pub number: u32,
    /// Number of the first stream that may come now; the others follow it.
    #[serde(default)]
    pub first_stream: u16,
    /// Where they may come, one entry per destination address of the spec; for as long as connecting may take.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listeners: Vec<ListenerAddress>,
    /// The rate that is in force now, where one was asked for: what a ticket allows at most, if none was to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_rate_bps: Option<RateBps>,
    /// Why nothing of it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// How far the server's end of a copy is: counters since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FarStages {
    /// Bytes read from files, or written to them.
    pub file_bytes: u64,
    /// Payload bytes sent, or received.
    pub moved_bytes: u64,
    /// Frames that wait between files and streams.
    pub queued_frames: u64,
    /// How many fit there.
    pub room_frames: u64,
    /// Segments or packets sent again on data streams.
    pub retransmits: u64,
}
