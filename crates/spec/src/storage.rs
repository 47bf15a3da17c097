//! What a file system is measured with, what comes of it, and what one on the testbed can do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::unit::{CreditCount, DelayS, DurationS, MessageBytes, QueueDepth, RequestBytes, WireRateBps};
use crate::{Failure, FailureKind, PathText};

/// Most memory that requests under way take in one process.
const MOST_MEMORY_BYTES: u64 = 4 << 30;
/// Most lanes of one process.
const MOST_LANES: usize = 1024;

/// Which way bytes move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StorageAction {
    /// From the file system into memory.
    Read,
    /// From memory to the file system.
    Write,
}

/// When what was written is brought to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StorageSync {
    /// Whenever the kernel likes.
    None,
    /// Once, after the last write; the time for it counts.
    End,
    /// After each write.
    Each,
}

/// A part of a file that one thread goes through, from its start to its end and again from the start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StorageLane {
    /// The file, which must be there.
    pub file: PathText,
    /// Where the part begins.
    pub offset_bytes: u64,
    /// How long it is; at least one request.
    pub span_bytes: u64,
    /// From the start of a request to that of the next: the size of a request in sequence, more with gaps. The next pass goes
    /// through what the gaps left out.
    pub step_bytes: u64,
}

/// What one process does to files in one measurement: a thread for each lane, all begun at one time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StorageLoad {
    /// Read or write.
    pub action: StorageAction,
    /// Bytes of each request.
    pub request_bytes: RequestBytes,
    /// Requests that each thread has under way; above 1 by io_uring.
    pub depth: QueueDepth,
    /// Past the page cache (O_DIRECT).
    pub direct: bool,
    /// When writes are brought to the device.
    pub sync: StorageSync,
    /// Whether the lanes are taken out of the page cache before it begins.
    pub drop_cache: bool,
    /// When to begin, nanoseconds of CLOCK_MONOTONIC; at once if that is past.
    pub begin_at_ns: u64,
    /// No request begins later than this after the begin.
    pub duration_s: DurationS,
    /// Most bytes that each lane moves; 0: as many as it can.
    pub most_lane_bytes: u64,
    /// One for each thread.
    pub lanes: Vec<StorageLane>,
}

impl StorageLoad {
    /// The same, if its numbers fit together.
    ///
    /// # Errors
    /// [`FailureKind::Spec`] that says what is allowed.
    pub fn checked(self) -> Result<Self, Failure> {
        let request = self.request_bytes.get();
        if self.lanes.is_empty() || self.lanes.len() > MOST_LANES {
            return Err(spec(format!(
                "lanes: {}; allowed: 1 to {MOST_LANES}",
                self.lanes.len()
            )));
        }
        let memory = request * u64::from(self.depth.get()) * self.lanes.len() as u64;
        if memory > MOST_MEMORY_BYTES {
            return Err(spec(format!(
                "requests in flight would take {memory} bytes of memory; allowed: {MOST_MEMORY_BYTES}; use smaller \
                 requests, less depth or fewer threads"
            )));
        }
        for lane in &self.lanes {
            let end = lane.offset_bytes.checked_add(lane.span_bytes);
            if lane.span_bytes < request || lane.step_bytes < request || end.is_none() {
                return Err(spec(format!(
                    "lane of {} bytes with steps of {}: requests of {request} bytes do not fit",
                    lane.span_bytes, lane.step_bytes
                )));
            }
        }
        Ok(self)
    }
}

/// What came of a [`StorageLoad`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StorageLoadReport {
    /// Bytes moved by all lanes.
    pub bytes: u64,
    /// Requests that were over.
    pub requests: u64,
    /// When the first request began, nanoseconds of CLOCK_MONOTONIC.
    pub began_ns: u64,
    /// When the last one was over, a sync at the end included.
    pub ended_ns: u64,
    /// How much of that the sync at the end took, in the lane in which it took longest.
    pub sync_ns: u64,
    /// Bytes of the lanes that were in the page cache when it was asked to begin; absent where the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_before_bytes: Option<u64>,
    /// Bytes of the lanes that were still there when the first request began; absent where the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_bytes: Option<u64>,
    /// Bytes of all lanes.
    pub span_bytes: u64,
    /// How many requests took how long: place i counts those from 2^(i/4) to 2^((i+1)/4) microseconds, the first also the
    /// shorter ones.
    pub latency_counts: Vec<u64>,
    /// The longest, in nanoseconds.
    pub latency_max_ns: u64,
}

/// What a file system of the testbed can do. Reads and writes do not take from each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StorageSpec {
    /// Name that mounts are listed under.
    pub name: String,
    /// Rate at which one process reads at most; absent: as fast as all together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_read_bps: Option<WireRateBps>,
    /// Rate at which one process writes at most; absent: as fast as all together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_write_bps: Option<WireRateBps>,
    /// Rate at which all processes together read at most.
    pub total_read_bps: WireRateBps,
    /// Rate at which all processes together write at most.
    pub total_write_bps: WireRateBps,
    /// Time from the last byte of a message to its answer.
    pub latency_s: DelayS,
    /// Messages that may be on their way at once, as LNet's peer credits; absent: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credits: Option<CreditCount>,
    /// Bytes of a message: larger requests are cut into several.
    pub message_bytes: MessageBytes,
    /// Bytes that it has room for; they are kept in memory.
    pub capacity_bytes: u64,
}

/// What a file system of the testbed has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StorageCounters {
    /// Bytes that were read.
    pub read_bytes: u64,
    /// Bytes that were written.
    pub written_bytes: u64,
    /// Bytes that files take now.
    pub used_bytes: u64,
    /// Messages that had to wait for a credit.
    pub waited_for_credit: u64,
}

fn spec(message: String) -> Failure {
    Failure::new(FailureKind::Spec, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::from_json;

    fn load(lane: &str, depth: u16) -> Result<StorageLoad, Failure> {
        let text = format!(
            r#"{{"action": "read", "request_bytes": 4096, "depth": {depth}, "direct": true, "sync": "end", "drop_cache": true,
                "begin_at_ns": 0, "duration_s": 1, "most_lane_bytes": 0, "lanes": [{lane}]}}"#
        );
        from_json::<StorageLoad>(&text)?.checked()
    }

    #[test]
    fn a_lane_holds_a_request_and_its_steps_pass_no_byte_twice() {
        let lane = |span, step| {
            format!(r#"{{"file": "a", "offset_bytes": 0, "span_bytes": {span}, "step_bytes": {step}}}"#)
        };
        assert!(load(&lane(4096, 4096), 1).is_ok());
        for (span, step) in [(4095, 4096), (8192, 4095)] {
            let failure = load(&lane(span, step), 1).unwrap_err();
            assert_eq!(failure.kind, FailureKind::Spec, "{}", failure.message);
        }
        assert!(load("", 1).unwrap_err().message.contains("allowed: 1 to"));
    }
}
