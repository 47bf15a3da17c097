//! Tools of other makers that are driven: their words, and what is known of a run of one.
//!
//! A driven run is a [`RunRecord`](crate::RunRecord) like any other, but it has no streams: what happened inside the tool is
//! not known. What it says stands in [`DrivenRun`], and what it does not say is absent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What moves the data or measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Tool {
    /// farline's own engine.
    #[default]
    Native,
    /// GridFTP: globus-url-copy and its server.
    Gridftp,
    /// iperf3.
    Iperf3,
    /// nuttcp.
    Nuttcp,
    /// xrdcp, the copy program of XRootD.
    Xrdcp,
    /// rsync, by its daemon or over ssh.
    Rsync,
    /// scp.
    Scp,
    /// rclone.
    Rclone,
    /// Globus transfers, by the globus command.
    Globus,
    /// FDT, Fast Data Transfer.
    Fdt,
    /// bbcp.
    Bbcp,
    /// UFTP, multicast and unicast file transfer over UDP.
    Uftp,
    /// libudt's own UDT.
    Udt,
    /// iperf, version 2.
    Iperf2,
    /// Any other program, by a template of its command line.
    Command,
}

impl Tool {
    /// Whether it is farline's own engine.
    pub fn is_native(&self) -> bool {
        *self == Self::Native
    }
}

/// Where the other end of a driven tool comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolServer {
    /// Started on the host of a testbed, or on this host, where the target is one of these; else one that runs already.
    Auto,
    /// Started on this host.
    Here,
    /// Started on the target over ssh.
    Ssh,
    /// One that runs already on the target.
    Standing,
}

/// What came of one direction of a driven run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DrivenFlow {
    /// Payload bytes that count: of a mover those found at the destination, of a tester those that it reports.
    pub bytes: u64,
    /// Seconds that count: of a mover the wall clock of its client, of a tester its own time.
    pub elapsed_s: f64,
    /// Payload bytes by the tool's own account.
    pub own_bytes: Option<u64>,
    /// Seconds by the tool's own account.
    pub own_elapsed_s: Option<f64>,
    /// Bits per second by the tool's own account.
    pub own_rate_bps: Option<f64>,
}

/// How far the destination of a mover was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Proof {
    /// Every file has the size and the SHA-256 hash of its source.
    Hash,
    /// Every file has the size of its source.
    Size,
    /// The destination cannot be seen from here: the tool's word alone.
    None,
}

/// A run of a tool of another maker: what it was told, and what it says. What is absent it does not say.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DrivenRun {
    /// The tool.
    pub tool: Tool,
    /// Version of its client, as it says it.
    pub version: Option<String>,
    /// Options of the spec, by dotted path, that the tool was told; the others say nothing of this run.
    pub told: Vec<String>,
    /// Command line of the client; a secret in it is `***`.
    pub client_command: Vec<String>,
    /// Command line of the server that farline started.
    pub server_command: Vec<String>,
    /// Where the server ran.
    pub server: String,
    /// Exit code of the client; 128 + n for signal n.
    pub exit_code: Option<i32>,
    /// Seconds from the start of the client to its end.
    pub wall_s: f64,
    /// Client to server.
    pub forward: Option<DrivenFlow>,
    /// Server to client.
    pub reverse: Option<DrivenFlow>,
    /// Segments or packets sent again.
    pub retransmits: Option<u64>,
    /// Datagrams sent.
    pub sent_packets: Option<u64>,
    /// Datagrams that never came.
    pub lost_packets: Option<u64>,
    /// Jitter.
    pub jitter_ns: Option<u64>,
    /// Smallest round-trip time.
    pub min_rtt_us: Option<u64>,
    /// Mean round-trip time.
    pub mean_rtt_us: Option<f64>,
    /// Congestion control of the sender.
    pub congestion_control: Option<String>,
    /// How far the destination was looked at; only of movers of files.
    pub proof: Option<Proof>,
    /// Files found at the destination.
    pub files: Option<u64>,
    /// What is to be known of these figures, one line each.
    pub notes: Vec<String>,
    /// The last lines that the client printed, of a run that failed.
    pub output: Vec<String>,
}

#[cfg(test)]
mod tests {
    use crate::{FailureKind, RunSpec, Tool, from_json};

    #[test]
    fn another_tool_is_named_in_a_spec_and_left_to_its_driver() {
        let spec = from_json::<RunSpec>(r#"{"tool":"gridftp","tool_stripes":2,"transport":"udt"}"#)
            .unwrap()
            .resolved()
            .unwrap();
        assert_eq!(spec.tool, Tool::Gridftp);
        assert_eq!(spec.check_native().unwrap_err().kind, FailureKind::Spec);
    }

    #[test]
    fn farlines_own_engine_is_not_written_down() {
        let text = serde_json::to_string(&RunSpec::default()).unwrap();
        assert!(
            !text.contains("tool"),
            "settings of older campaigns keep their keys"
        );
        assert!(RunSpec::default().check_native().is_ok());
    }

    #[test]
    fn a_copy_by_another_tool_may_go_by_any_transport() {
        let copy = r#""copy":{"sources":["a"],"destination":"b","cipher":"none"}"#;
        let udp = format!(r#"{{"transport":"udp",{copy}}}"#);
        assert!(from_json::<RunSpec>(&udp).unwrap().resolved().is_err());
        let uftp = format!(r#"{{"tool":"uftp","transport":"udp",{copy}}}"#);
        assert!(from_json::<RunSpec>(&uftp).unwrap().resolved().is_ok());
    }
}
