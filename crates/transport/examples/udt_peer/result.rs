//! What came of it, as one line of JSON.

use std::fmt::Write;

use farline_sys::process;
use farline_transport::udt::Statistics;

use crate::options::Options;
use crate::pattern::Hash;

/// libudt's error codes.
pub const NO_ANSWER: u32 = 1001;
pub const REFUSED: u32 = 1002;
pub const BROKEN: u32 = 2001;
pub const TIMED_OUT: u32 = 6003;

/// What one connection did.
#[derive(Default)]
pub struct Result {
    pub sent: u64,
    pub received: u64,
    pub steady_bytes: u64,
    pub steady_s: f64,
    pub seconds: f64,
    pub sent_hash: Hash,
    pub received_hash: Hash,
    pub messages_sent: u64,
    pub messages_received: u64,
    pub messages: Vec<u64>,
    pub error: u32,
    pub text: String,
    pub statistics: Statistics,
}

impl Result {
    pub fn failed(error: u32, text: String) -> Self {
        let mut result = Self::default();
        result.fail(error, text);
        result
    }

    /// The first error stands.
    pub fn fail(&mut self, error: u32, text: String) {
        if self.error == 0 {
            (self.error, self.text) = (error, text);
        }
    }
}

/// Prints the results of all connections; gives the exit code.
pub fn print(options: &Options, results: &[Result], seconds: f64) -> i32 {
    let bad = results.iter().find(|result| result.error != 0);
    let cpu = process::cpu_time().map_or(0.0, |used| (used.user + used.system).as_secs_f64());
    let (code, text) = bad.map_or((0, ""), |bad| (bad.error, bad.text.as_str()));
    let connections: Vec<_> = results
        .iter()
        .map(|result| describe(result, options.is_constant))
        .collect();
    println!(
        "{{\"role\":\"{}\",\"implementation\":\"farline\",\"seconds\":{seconds:.6},\"cpu_s\":{cpu:.6},\
         \"rss_kb\":{},\"error_code\":{code},\"error\":\"{}\",\"connections\":[{}]}}",
        options.role,
        largest_resident_kb(),
        escaped(text),
        connections.join(",")
    );
    i32::from(bad.is_some())
}

fn describe(result: &Result, is_constant: bool) -> String {
    let hash = |hash: &Hash| if is_constant { 0 } else { hash.value() };
    let mut text = format!(
        "{{\"sent_bytes\":{},\"sent_hash\":\"{:016x}\",\"received_bytes\":{},\"received_hash\":\"{:016x}\",\
         \"steady_bytes\":{},\"steady_s\":{:.6},\"messages_sent\":{},\"messages_received\":{},",
        result.sent,
        hash(&result.sent_hash),
        result.received,
        hash(&result.received_hash),
        result.steady_bytes,
        result.steady_s,
        result.messages_sent,
        result.messages_received,
    );
    let hashes: Vec<_> = result
        .messages
        .iter()
        .map(|hash| format!("\"{hash:016x}\""))
        .collect();
    let _ = write!(
        text,
        "\"message_hashes\":[{}],\"seconds\":{:.6},\"error_code\":{},\"error\":\"{}\",{}}}",
        hashes.join(","),
        result.seconds,
        result.error,
        escaped(&result.text),
        statistics(&result.statistics),
    );
    text
}

/// Under the names of the reference library's `perfmon`.
fn statistics(seen: &Statistics) -> String {
    format!(
        "\"statistics\":{{\"pktSent\":{},\"pktRecv\":{},\"pktSndLoss\":{},\"pktRcvLoss\":{},\"pktRetrans\":{},\
         \"pktSentACK\":{},\"pktRecvACK\":{},\"pktSentNAK\":{},\"pktRecvNAK\":{},\"msRTT\":{:.3},\
         \"usPktSndPeriod\":{:.3}}}",
        seen.sent_packets,
        seen.received_packets,
        seen.send_lost_packets,
        seen.receive_lost_packets,
        seen.repeated_packets,
        seen.sent_acks,
        seen.received_acks,
        seen.sent_naks,
        seen.received_naks,
        seen.rtt_ns as f64 / 1e6,
        seen.send_period_ns as f64 / 1e3,
    )
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// Largest resident set of this process in KiB; 0 where the kernel does not say.
fn largest_resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok())
        .unwrap_or(0)
}
