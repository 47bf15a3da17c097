//! What one end measured, for the other.

use serde_json::{Map, Value, json};

use super::document::{count, real, signed, text};
use super::parameters::seconds;
use super::word::ErrorCode;

/// Longest name of a congestion control that is kept.
const MAX_CONGESTION: usize = 15;
/// Most streams of one end: 128 each way.
const MAX_STREAMS: usize = 256;
/// Most characters of what a server says it measured.
const MAX_OUTPUT: usize = 2 * 1024 * 1024;

/// What one end measured.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Results {
    /// CPU time in per cent of the time that passed: in all, of the program, of the kernel.
    pub cpu_percent: [f64; 3],
    /// Whether the sender counts what it sent again: 1, 0, or -1 for an end that does not send.
    pub sender_has_retransmits: i64,
    /// Congestion control in use.
    pub congestion: Option<String>,
    /// What the server would have printed.
    pub output: Option<String>,
    /// Every stream of the test.
    pub streams: Vec<StreamResult>,
}

/// What one end measured of one stream.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StreamResult {
    /// Number of the stream.
    pub id: i64,
    /// Bytes sent or received, without those omitted.
    pub bytes: u64,
    /// Segments sent again; -1 if that is not known.
    pub retransmits: i64,
    /// Jitter at the end.
    pub jitter_s: f64,
    /// Datagrams that did not come, those of the omitted time included.
    pub errors: u64,
    /// Of these, those of the omitted time.
    pub omitted_errors: u64,
    /// Datagrams sent, or the highest number received, those of the omitted time included.
    pub packets: u64,
    /// Of these, those of the omitted time.
    pub omitted_packets: u64,
    /// Seconds that were measured.
    pub elapsed_s: f64,
}

impl Results {
    /// Reads results.
    ///
    /// # Errors
    /// [`ErrorCode::RESULTS`] where something is missing that both ends need.
    pub fn decode(document: &Value) -> Result<Self, ErrorCode> {
        let cpu = |name| real(document, name).ok_or(ErrorCode::RESULTS);
        let streams = document.get("streams").and_then(Value::as_array);
        let streams = streams
            .filter(|streams| streams.len() <= MAX_STREAMS)
            .ok_or(ErrorCode::RESULTS)?;
        Ok(Self {
            cpu_percent: [
                cpu("cpu_util_total")?,
                cpu("cpu_util_user")?,
                cpu("cpu_util_system")?,
            ],
            sender_has_retransmits: signed(document, "sender_has_retransmits").ok_or(ErrorCode::RESULTS)?,
            congestion: text(document, "congestion_used", MAX_CONGESTION),
            output: text(document, "server_output_text", MAX_OUTPUT),
            streams: streams
                .iter()
                .map(StreamResult::decode)
                .collect::<Result<_, _>>()?,
        })
    }

    /// As they are sent.
    pub fn encode(&self) -> Value {
        let mut out = Map::new();
        for (name, percent) in ["cpu_util_total", "cpu_util_user", "cpu_util_system"]
            .into_iter()
            .zip(self.cpu_percent)
        {
            out.insert(name.into(), json!(percent));
        }
        out.insert(
            "sender_has_retransmits".into(),
            self.sender_has_retransmits.into(),
        );
        for (name, text) in [
            ("congestion_used", &self.congestion),
            ("server_output_text", &self.output),
        ] {
            if let Some(text) = text {
                out.insert(name.into(), text.as_str().into());
            }
        }
        let streams = self.streams.iter().map(StreamResult::encode);
        out.insert("streams".into(), streams.collect());
        Value::Object(out)
    }
}

impl StreamResult {
    fn decode(document: &Value) -> Result<Self, ErrorCode> {
        let has_all = ["bytes", "jitter", "errors", "packets"]
            .iter()
            .all(|name| real(document, name).is_some());
        let id = signed(document, "id")
            .filter(|_| has_all)
            .ok_or(ErrorCode::RESULTS)?;
        Ok(Self {
            id,
            bytes: count(document, "bytes"),
            retransmits: signed(document, "retransmits").ok_or(ErrorCode::RESULTS)?,
            jitter_s: seconds(document, "jitter"),
            errors: count(document, "errors"),
            omitted_errors: count(document, "omitted_errors"),
            packets: count(document, "packets"),
            omitted_packets: count(document, "omitted_packets"),
            elapsed_s: (seconds(document, "end_time") - seconds(document, "start_time")).max(0.0),
        })
    }

    fn encode(&self) -> Value {
        json!({
            "id": self.id,
            "bytes": self.bytes,
            "retransmits": self.retransmits,
            "jitter": self.jitter_s,
            "errors": self.errors,
            "omitted_errors": self.omitted_errors,
            "packets": self.packets,
            "omitted_packets": self.omitted_packets,
            "start_time": 0,
            "end_time": self.elapsed_s,
        })
    }
}
