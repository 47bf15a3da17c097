//! What to run: one immutable document per run.
//!
//! Extension keywords in the schema drive the command line: `x-flags` are the
//! spellings, the first long one being the canonical one; `x-unit` (from the
//! type) decides how a text such as `1M` or `10Gbit` is read; `x-sweep: false`
//! keeps an option out of a campaign's grid.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tuning::{
    QuicOptions, RbudpOptions, RbudpReceiver, TcpOptions, UdpOptions, UdtControl, UdtOptions,
};
use crate::unit::{
    BlastCount, BlockBytes, CpuIndex, DurationS, FlowLabel, IntervalS, OmitS, RateBps, StreamCount,
    StripeCount, TimeoutMs, TotalBytes, TypeOfService, counted, size_text,
};
use crate::{CopySpec, Failure, SCHEMA_VERSION, Tool, ToolServer, Transport};

/// Most memory that the blasts of one run may ask a receiver for.
const RBUDP_MEMORY_BYTES: u64 = 16 << 30;

/// Which way the data go, seen from the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Client to server.
    Forward,
    /// Server to client.
    Reverse,
    /// Both at once, with `streams` streams each way.
    Bidirectional,
}

impl Direction {
    /// The word used in JSON and on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Reverse => "reverse",
            Self::Bidirectional => "bidirectional",
        }
    }
}

/// Which version of IP carries control and data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IpVersion {
    /// What the name resolves to first.
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

/// One NIC-to-NIC connection (Yun et al. 2015, section III.B). Streams take the pairs in turn.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AddressPair {
    /// Address on the client that the stream is bound to; the kernel's choice if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<IpAddr>,
    /// Network device on the client that the stream is bound to (SO_BINDTODEVICE).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_device: Option<String>,
    /// Address on the server that the stream goes to; the one the control channel uses if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<IpAddr>,
}

/// One run: everything that can be chosen about it.
///
/// A document of `{}` is a ten-second TCP run of one stream with the kernel's own choices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunSpec {
    /// Version of this document.
    #[schemars(range(min = 1, max = 1), extend("x-sweep" = false))]
    pub schema: u32,
    /// Measure or copy with this tool instead of farline's own engine: farline tools lists them (default native).
    #[serde(skip_serializing_if = "Tool::is_native")]
    #[schemars(extend("x-flags" = ["--tool"]))]
    pub tool: Tool,
    /// Start the tool's server here, over ssh, or use one that runs (default auto: on a testbed's host or this one, else one that runs).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--tool-server"], "x-sweep" = false))]
    pub tool_server: Option<ToolServer>,
    /// End the tool when it runs longer than this (default: its duration and 20 s; a copy ends when it stalls).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--tool-timeout"], "x-sweep" = false))]
    pub tool_timeout_s: Option<DurationS>,
    /// Spread each file over this many data movers of the tool's server (gridftp; default 1).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--tool-stripes"]))]
    pub tool_stripes: Option<StripeCount>,
    /// Add these words to the tool's command line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-sweep" = false))]
    pub tool_args: Vec<String>,
    /// Run this command line as the client, with --tool command; {host}, {port}, {source} and options by name are filled in.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096), extend("x-flags" = ["--tool-command"], "x-sweep" = false))]
    pub tool_command: Option<String>,
    /// Run this command line as its server.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096), extend("x-flags" = ["--tool-server-command"], "x-sweep" = false))]
    pub tool_server_command: Option<String>,
    /// Find its figures by this regular expression with named groups, or by JSON paths (bits_per_second=$.end.rate).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096), extend("x-flags" = ["--tool-result"], "x-sweep" = false))]
    pub tool_result: Option<String>,
    /// Send the data by this protocol.
    #[schemars(extend("x-flags" = ["--transport"]))]
    pub transport: Transport,
    /// Send data this way, as seen from the client.
    #[schemars(extend("x-flags" = ["--direction"]))]
    pub direction: Direction,
    /// Use this many parallel streams.
    ///
    /// Each has a thread of its own at both ends.
    #[schemars(extend("x-flags" = ["-P", "--streams", "--parallel"]))]
    pub streams: StreamCount,
    /// Pass this many bytes to each send or receive call (default 128 KiB; 64 KiB for UDP).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["-l", "--block", "--length"]))]
    pub block_bytes: Option<BlockBytes>,
    /// Send for this long (default 10 s unless `total_bytes` is given).
    ///
    /// The time counts from the end of `omit_s`. A server's limit on the duration is on both together.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["-t", "--time", "--duration"]))]
    pub duration_s: Option<DurationS>,
    /// Send this many payload bytes instead of for a time.
    ///
    /// They count over all streams of a direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["-n", "--bytes"]))]
    pub total_bytes: Option<TotalBytes>,
    /// Leave this much time at the start out of steady-state figures (default: found from the data by MSER-5).
    ///
    /// A run of a duration lasts this much longer; one of `total_bytes` does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["-O", "--omit"]))]
    pub omit_s: Option<OmitS>,
    /// Take a sample at this interval (default: from the duration, 50 ms to 1 s).
    ///
    /// If not stated, `probe` and `profile` derive it from the duration (a hundredth of it within 50 and 100 ms; for a run of over a minute a six-hundredth, at most 1 s), and `copy` takes 0.5 s.
    #[schemars(extend("x-flags" = ["-i", "--interval"], "x-chosen" = true))]
    pub interval_s: IntervalS,
    /// Limit each stream's payload rate; 0 means no limit (default 1 Mbit/s for UDP, no limit otherwise; RBUDP requires a rate).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["-b", "--rate", "--bitrate"]))]
    pub rate_bps: Option<RateBps>,
    /// Connect these two NICs; repeat the option to spread streams over several pairs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-flags" = ["--pair"]))]
    pub pairs: Vec<AddressPair>,
    /// Pin the client's streams to these CPUs in turn (default: not pinned).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), extend("x-flags" = ["--client-cpus"]))]
    pub client_cpus: Vec<CpuIndex>,
    /// Pin the server's streams to these CPUs in turn (default: not pinned).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), extend("x-flags" = ["--server-cpus"]))]
    pub server_cpus: Vec<CpuIndex>,
    /// Use this version of IP.
    #[schemars(extend("x-flags" = ["--ip-version"]))]
    pub ip_version: IpVersion,
    /// Set the IPv4 type of service or IPv6 traffic class of data packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["-S", "--tos"]))]
    pub tos: Option<TypeOfService>,
    /// Set the IPv6 flow label of data packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["-L", "--flow-label"]))]
    pub flow_label: Option<FlowLabel>,
    /// Give up when setting up the control channel or a stream takes longer than this.
    #[schemars(extend("x-flags" = ["--connect-timeout"], "x-sweep" = false))]
    pub connect_timeout_ms: TimeoutMs,
    /// Seed all random values, including the payload.
    #[schemars(extend("x-flags" = ["--seed"], "x-sweep" = false))]
    pub seed: u64,
    /// Store this title with the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024), extend("x-flags" = ["-T", "--title"], "x-sweep" = false))]
    pub title: Option<String>,
    /// Store this text with the record, for use by programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 65536), extend("x-flags" = ["--extra-data"], "x-sweep" = false))]
    pub extra_data: Option<String>,
    /// Parameters of TCP; only with `transport` "tcp".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpOptions>,
    /// Parameters of UDP; only with `transport` "udp".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub udp: Option<UdpOptions>,
    /// Parameters of UDT; only with `transport` "udt".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub udt: Option<UdtOptions>,
    /// Parameters of RBUDP; only with `transport` "rbudp".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rbudp: Option<RbudpOptions>,
    /// Parameters of QUIC; only with `transport` "quic".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quic: Option<QuicOptions>,
    /// Files to move; without it the streams carry a payload made up on the spot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy: Option<CopySpec>,
}

impl Default for RunSpec {
    fn default() -> Self {
        Self {
            schema: SCHEMA_VERSION,
            tool: Tool::Native,
            tool_server: None,
            tool_timeout_s: None,
            tool_stripes: None,
            tool_args: Vec::new(),
            tool_command: None,
            tool_server_command: None,
            tool_result: None,
            transport: Transport::Tcp,
            direction: Direction::Forward,
            streams: StreamCount::MIN,
            block_bytes: None,
            duration_s: None,
            total_bytes: None,
            omit_s: None,
            interval_s: IntervalS::new(1.0).expect("in range"),
            rate_bps: None,
            pairs: Vec::new(),
            client_cpus: Vec::new(),
            server_cpus: Vec::new(),
            ip_version: IpVersion::Any,
            tos: None,
            flow_label: None,
            connect_timeout_ms: TimeoutMs::new(10_000).expect("in range"),
            seed: 0,
            title: None,
            extra_data: None,
            tcp: None,
            udp: None,
            udt: None,
            rbudp: None,
            quic: None,
            copy: None,
        }
    }
}

impl RunSpec {
    /// Fills in what farline itself decides when it was left open, and checks the document as a whole.
    ///
    /// The kernel's choices stay open. Resolving twice changes nothing.
    ///
    /// # Errors
    /// [`FailureKind::Spec`](crate::FailureKind::Spec) when options contradict each other.
    pub fn resolved(mut self) -> Result<Self, Failure> {
        self.check()?;
        if let Some(copy) = &mut self.copy {
            copy.resolve_hash();
        }
        if self.duration_s.is_none() && self.total_bytes.is_none() && self.copy.is_none() {
            self.duration_s = Some(DurationS::new(10.0).expect("in range"));
        }
        let (block, rate) = match self.transport {
            Transport::Tcp | Transport::Udt | Transport::Rbudp | Transport::Quic | Transport::Null => {
                (131_072, 0)
            }
            Transport::Udp => (65_507, 1_000_000),
        };
        self.block_bytes
            .get_or_insert(BlockBytes::new(block).expect("in range"));
        self.rate_bps.get_or_insert(RateBps::new(rate).expect("in range"));
        match self.transport {
            Transport::Tcp => drop(self.tcp.get_or_insert_default()),
            Transport::Udp => drop(self.udp.get_or_insert_default()),
            Transport::Udt => drop(self.udt.get_or_insert_default()),
            Transport::Rbudp => self.resolve_rbudp(),
            Transport::Quic => drop(self.quic.get_or_insert_default()),
            Transport::Null => {}
        }
        Ok(self)
    }

    /// Refuses a run that is for another tool than farline's own engine.
    ///
    /// # Errors
    /// [`FailureKind::Spec`](crate::FailureKind::Spec) with the option.
    pub fn check_native(&self) -> Result<(), Failure> {
        if self.tool.is_native() {
            return Ok(());
        }
        Err(Failure::option(
            "tool",
            "the engine runs native only: a driver runs other tools",
        ))
    }

    fn check(&self) -> Result<(), Failure> {
        if self.schema != SCHEMA_VERSION {
            return Err(Failure::option(
                "schema",
                format!("unknown schema {}; expected {SCHEMA_VERSION}", self.schema),
            ));
        }
        if self.duration_s.is_some() && self.total_bytes.is_some() {
            return Err(Failure::option(
                "total_bytes",
                "cannot be combined with duration_s: give one of the two",
            ));
        }
        if let Some(copy) = &self.copy {
            // What a driven tool can copy by, its driver says.
            let transport = if self.tool.is_native() {
                self.transport
            } else {
                Transport::Tcp
            };
            copy.check(transport, self.direction, self.streams)?;
            if self.duration_s.is_some() || self.total_bytes.is_some() || self.omit_s.is_some() {
                return Err(Failure::option(
                    "duration_s",
                    "a copy ends when all files are copied: leave out duration_s, total_bytes and omit_s",
                ));
            }
        }
        let sections = [
            ("tcp", self.tcp.is_some()),
            ("udp", self.udp.is_some()),
            ("udt", self.udt.is_some()),
            ("rbudp", self.rbudp.is_some()),
            ("quic", self.quic.is_some()),
        ];
        for (name, given) in sections {
            if given && name != self.transport.word() {
                let transport = self.transport.word();
                return Err(Failure::option(
                    name,
                    format!("works only with transport {name}; the transport is {transport}"),
                ));
            }
        }
        self.check_rbudp()?;
        let is_fixed = self
            .udt
            .as_ref()
            .is_some_and(|udt| udt.congestion_control == UdtControl::Fixed);
        if is_fixed && self.rate_bps.is_none_or(|rate| rate.get() == 0) {
            return Err(Failure::option(
                "udt.congestion_control",
                "fixed needs a rate: give rate_bps above 0",
            ));
        }
        self.check_lengths()
    }

    /// As many blasts under way as memory holds.
    fn resolve_rbudp(&mut self) {
        let streams = self.stream_total() as u64;
        let options = self.rbudp.get_or_insert_default();
        let most = RBUDP_MEMORY_BYTES / (options.payload_bytes.get() * streams);
        let most = u8::try_from(most).unwrap_or(u8::MAX);
        let in_flight = most.clamp(BlastCount::MIN.get(), BlastCount::MAX.get());
        options
            .in_flight
            .get_or_insert(BlastCount::new(in_flight).expect("in range"));
    }

    fn check_rbudp(&self) -> Result<(), Failure> {
        if self.transport != Transport::Rbudp || !self.tool.is_native() {
            return Ok(());
        }
        if self.rate_bps.is_none() {
            return Err(Failure::option(
                "rate_bps",
                "rbudp sends at a stated rate: give one (0 is as fast as the host can)",
            ));
        }
        let options = self.rbudp.clone().unwrap_or_default();
        check_text("rbudp.file", options.file.as_deref(), 1, 4096)?;
        if options.file.is_some() && self.stream_total() > 1 {
            return Err(Failure::option(
                "rbudp.file",
                "works only with one stream in one direction",
            ));
        }
        if options.file.is_some()
            && options.receiver != RbudpReceiver::Naive
            && self.direction == Direction::Reverse
        {
            return Err(Failure::option(
                "rbudp.receiver",
                "receiving into a file needs the receiver naive",
            ));
        }
        let streams = self.stream_total() as u64;
        let in_flight = options.in_flight.map_or(1, |count| u64::from(count.get()));
        let memory = options.payload_bytes.get() * in_flight * streams;
        if memory > RBUDP_MEMORY_BYTES {
            let reason = format!(
                "{} in flight (payload_bytes times in_flight, over all streams); allowed: {}",
                size_text(memory),
                size_text(RBUDP_MEMORY_BYTES)
            );
            return Err(Failure::option("rbudp.payload_bytes", reason));
        }
        Ok(())
    }

    fn check_lengths(&self) -> Result<(), Failure> {
        let congestion_control = self
            .tcp
            .as_ref()
            .and_then(|tcp| tcp.congestion_control.as_deref());
        check_text("tcp.congestion_control", congestion_control, 1, 15)?;
        check_text("title", self.title.as_deref(), 0, 1024)?;
        check_text("extra_data", self.extra_data.as_deref(), 0, 65_536)?;
        for pair in &self.pairs {
            check_text("pairs.source_device", pair.source_device.as_deref(), 1, 15)?;
        }
        check_items("pairs", self.pairs.len(), 64)?;
        check_items("client_cpus", self.client_cpus.len(), 256)?;
        check_items("server_cpus", self.server_cpus.len(), 256)
    }

    /// Seconds in which senders send: `omit_s` and then `duration_s`. None where bytes end the run.
    pub fn sending_s(&self) -> Option<f64> {
        let omit_s = self.omit_s.map_or(0.0, |omit| omit.get());
        self.duration_s.map(|duration| omit_s + duration.get())
    }

    /// Streams in all: twice `streams` when both directions run.
    pub fn stream_total(&self) -> usize {
        let each_way = usize::from(self.streams.get());
        if self.direction == Direction::Bidirectional {
            2 * each_way
        } else {
            each_way
        }
    }
}

fn check_text(place: &str, text: Option<&str>, min: usize, max: usize) -> Result<(), Failure> {
    match text.map(str::len) {
        Some(length) if length < min || length > max => Err(Failure::option(
            place,
            format!("has {}; allowed: {min} to {max}", counted(length, "character")),
        )),
        _ => Ok(()),
    }
}

fn check_items(place: &str, count: usize, max: usize) -> Result<(), Failure> {
    if count > max {
        return Err(Failure::option(
            place,
            format!("has {count} of them; allowed: 0 to {max}"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::from_json;

    fn resolve(text: &str) -> Result<RunSpec, Failure> {
        from_json::<RunSpec>(text)?.resolved()
    }

    #[test]
    fn nothing_asked_is_a_ten_second_tcp_run() {
        let spec = resolve("{}").unwrap();
        assert_eq!(spec.transport, Transport::Tcp);
        assert_eq!(spec.duration_s.unwrap().get(), 10.0);
        assert_eq!(spec.block_bytes.unwrap().get(), 131_072);
        assert!(spec.tcp.is_some() && spec.udp.is_none());
    }

    #[test]
    fn resolving_twice_changes_nothing() {
        let once = resolve(r#"{"transport":"udp","total_bytes":7}"#).unwrap();
        assert_eq!(once.clone().resolved().unwrap(), once);
        assert!(once.duration_s.is_none());
    }

    #[test]
    fn udp_keeps_the_rate_iperf3_users_expect() {
        assert_eq!(
            resolve(r#"{"transport":"udp"}"#).unwrap().rate_bps.unwrap().get(),
            1_000_000
        );
        assert_eq!(
            resolve(r#"{"transport":"udp","rate_bps":0}"#)
                .unwrap()
                .rate_bps
                .unwrap()
                .get(),
            0
        );
    }

    #[test]
    fn contradictions_are_refused() {
        let message = resolve(r#"{"duration_s":1,"total_bytes":1}"#)
            .unwrap_err()
            .message;
        assert_eq!(
            message,
            "total_bytes: cannot be combined with duration_s: give one of the two"
        );
        let message = resolve(r#"{"transport":"udp","tcp":{}}"#).unwrap_err().message;
        assert_eq!(
            message,
            "tcp: works only with transport tcp; the transport is udp"
        );
        assert!(resolve(r#"{"schema":9}"#).is_err());
        assert!(resolve(r#"{"tcp":{"congestion_control":"a-name-that-is-too-long"}}"#).is_err());
    }

    #[test]
    fn a_fixed_rate_is_stated() {
        let fixed = r#"{"transport":"udt","udt":{"congestion_control":"fixed"}"#;
        let message = resolve(&format!("{fixed}}}")).unwrap_err().message;
        assert_eq!(
            message,
            "udt.congestion_control: fixed needs a rate: give rate_bps above 0"
        );
        assert!(resolve(&format!("{fixed},\"rate_bps\":1000000}}")).is_ok());
        let plain = resolve(r#"{"transport":"udt"}"#).unwrap();
        assert_eq!(plain.rate_bps.unwrap().get(), 0);
        assert_eq!(plain.udt.unwrap().congestion_control, UdtControl::Bbr);
    }

    #[test]
    fn a_blast_states_its_rate_and_bounds_its_memory() {
        let message = resolve(r#"{"transport":"rbudp"}"#).unwrap_err().message;
        assert!(
            message.starts_with("rate_bps: rbudp sends at a stated rate"),
            "{message}"
        );
        let spec = resolve(r#"{"transport":"rbudp","rate_bps":0}"#).unwrap();
        let options = spec.rbudp.unwrap();
        assert_eq!(
            (options.payload_bytes.get(), options.in_flight.unwrap().get()),
            (16 << 20, 64)
        );
        let many = resolve(r#"{"transport":"rbudp","rate_bps":0,"streams":256}"#).unwrap();
        assert_eq!(many.rbudp.unwrap().in_flight.unwrap().get(), 4);
        let greedy =
            r#"{"transport":"rbudp","rate_bps":0,"streams":256,"rbudp":{"payload_bytes":8589934592}}"#;
        let message = resolve(greedy).unwrap_err().message;
        assert!(
            message.ends_with(
                "2 TiB in flight (payload_bytes times in_flight, over all streams); allowed: 16 GiB"
            ),
            "{message}"
        );
        let two = r#"{"transport":"rbudp","rate_bps":0,"streams":2,"rbudp":{"file":"a"}}"#;
        let message = resolve(two).unwrap_err().message;
        assert_eq!(message, "rbudp.file: works only with one stream in one direction");
    }

    #[test]
    fn json_round_trip_keeps_the_spec() {
        let spec = resolve(
            r#"{"streams":4,"pairs":[{"source":"127.0.0.2","destination":"::1"}],"tcp":{"mss_bytes":1400}}"#,
        )
        .unwrap();
        let text = serde_json::to_string(&spec).unwrap();
        assert_eq!(from_json::<RunSpec>(&text).unwrap(), spec);
    }
}
