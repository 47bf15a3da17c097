//! What may change while a copy runs, what did, and what a controller goes by.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::unit::{FileCount, RateBps, StreamCount};

/// A change that is wanted of a copy that runs; what is absent stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AdjustRequest {
    /// Data streams from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<StreamCount>,
    /// Files that are sent at once from now on, at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<FileCount>,
    /// Payload rate over all data streams from now on; 0 is without limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_rate_bps: Option<RateBps>,
}

impl AdjustRequest {
    /// Whether nothing is wanted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// This wish with what `later` says of the same things instead.
    #[must_use]
    pub fn then(self, later: Self) -> Self {
        Self {
            streams: later.streams.or(self.streams),
            concurrency: later.concurrency.or(self.concurrency),
            total_rate_bps: later.total_rate_bps.or(self.total_rate_bps),
        }
    }
}

/// What of a copy can change while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AdjustKnob {
    /// Data streams.
    Streams,
    /// Files sent at once.
    Concurrency,
    /// Payload rate over all data streams, bit/s.
    TotalRate,
}

/// One change of a copy while it ran, or one that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Adjustment {
    /// Microseconds from the start of the run at the client until the change was in force.
    pub at_us: u64,
    /// What changed.
    pub knob: AdjustKnob,
    /// The value before; absent where farline itself chose it, or where a rate had no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// The value from then on, or the one that was refused; absent for a rate without limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// Why it was refused, or not made in full; absent for a change that was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// How far the three stages of a copy (reading, network, writing) are, told once an interval while it runs. Counters run from
/// its start, so that a reader takes differences; what the other end has not told yet is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CopyStages {
    /// Microseconds since this end started the run.
    pub at_us: u64,
    /// Data streams in force.
    pub streams: u32,
    /// Data streams that are being opened and count already.
    pub opening_streams: u32,
    /// Bytes read from files by the end that has them.
    pub read_bytes: Option<u64>,
    /// Payload bytes that its streams took.
    pub sent_bytes: Option<u64>,
    /// Payload bytes that the other end's streams brought.
    pub received_bytes: Option<u64>,
    /// Bytes written to files there.
    pub written_bytes: Option<u64>,
    /// Frames that wait between reading and the network, and how many fit.
    pub send_queue_frames: Option<u64>,
    /// How many fit; 0 where streams read for themselves.
    pub send_room_frames: Option<u64>,
    /// Frames that wait between the network and writing.
    pub receive_queue_frames: Option<u64>,
    /// How many fit; 0 where streams write for themselves.
    pub receive_room_frames: Option<u64>,
    /// Segments or packets sent again by the sending end, over its data streams.
    pub retransmits: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::from_json;

    #[test]
    fn a_later_wish_takes_the_place_of_an_earlier_one_of_the_same_thing() {
        let wish = |text| from_json::<AdjustRequest>(text).unwrap();
        let first = wish(r#"{"streams":4,"concurrency":2}"#);
        let both = first.then(wish(r#"{"streams":8,"total_rate_bps":0}"#));
        assert_eq!(both, wish(r#"{"streams":8,"concurrency":2,"total_rate_bps":0}"#));
        assert!(!both.is_empty() && wish("{}").is_empty());
    }

    #[test]
    fn a_wish_out_of_range_is_refused_with_what_is_allowed() {
        let refusal = from_json::<AdjustRequest>(r#"{"streams":0}"#).unwrap_err();
        assert!(refusal.message.contains("1 to 256 streams"), "{refusal}");
        assert!(from_json::<AdjustRequest>(r#"{"stream":1}"#).is_err());
    }
}
