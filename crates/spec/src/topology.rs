//! Emulated paths: hosts, routers and the links between them.
//!
//! A link joins two points, `a` and `b`, and carries packets both ways; each way is a [`PipeSpec`] of its own.
//! Every count of bytes on a link, its queue included, is in bytes on the wire: IP packet plus `framing_bytes`.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::unit::{
    CpuIndex, CpuShare, DelayS, DiskRate, FramingBytes, IntervalS, MtuBytes, Probability, QueueBdp,
    QueueBytes, QueuePackets, WireRateBps,
};
use crate::{Failure, SCHEMA_VERSION};

/// How the emulator waits for the moment at which a packet is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EmulatorMode {
    /// Sleeps: leaves the CPU to the hosts, and delivers some tens of microseconds late.
    #[default]
    Shared,
    /// Spins: needs a CPU of its own, and delivers within some microseconds.
    Precise,
}

/// Shape of the random part of a delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum JitterShape {
    /// Every delay between minus and plus `jitter_s` is equally likely.
    #[default]
    Uniform,
    /// Normal with `jitter_s` as its standard deviation, cut off at four of them.
    Normal,
}

/// What decides which packets a queue gives up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QueueDiscipline {
    /// First in, first out; what does not fit is dropped.
    #[default]
    DropTail,
    /// Controlled delay (RFC 8289), within the same capacity.
    Codel,
}

/// The queue in front of a link. Its capacity is the smallest of those stated; if none is, one
/// bandwidth-delay product of the link's own round trip, and at least ten milliseconds of its rate and 150,000 bytes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QueueSpec {
    /// Limit the queue to this many bytes on the wire.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--queue-bytes"]))]
    pub capacity_bytes: Option<QueueBytes>,
    /// Limit the queue to this many packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--queue-packets"]))]
    pub capacity_packets: Option<QueuePackets>,
    /// Limit the queue to this many bandwidth-delay products of the link.
    ///
    /// The product is the link's rate times the delays of both its directions. A queue holds at least one packet, and where both delays are 0 that many times ten milliseconds of the rate and at least 150,000 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--queue-bdp"]))]
    pub capacity_bdp: Option<QueueBdp>,
    /// Drop packets from the queue by this discipline.
    #[schemars(extend("x-flags" = ["--queue-discipline"]))]
    pub discipline: QueueDiscipline,
    /// Mark ECN-capable packets where CoDel would drop them (RFC 3168).
    #[schemars(extend("x-flags" = ["--ecn"]))]
    pub ecn: bool,
    /// Mark ECN-capable packets when this many bytes are queued (RFC 8257, section 3.1).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--ecn-threshold"]))]
    pub ecn_threshold_bytes: Option<QueueBytes>,
    /// CoDel's acceptable standing delay; 5 ms if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub codel_target_s: Option<DelayS>,
    /// CoDel's interval; 100 ms if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub codel_interval_s: Option<DelayS>,
}

/// Loss in bursts: a chain of two states, stepped once per packet (Gilbert 1960, Elliott 1963).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BurstLoss {
    /// Probability per packet of going from the good state to the bad one.
    pub enter: Probability,
    /// Probability per packet of going back.
    pub leave: Probability,
    /// Probability of loss in the good state.
    #[serde(default = "Probability::min")]
    pub loss_good: Probability,
    /// Probability of loss in the bad state.
    #[serde(default = "Probability::max")]
    pub loss_bad: Probability,
}

/// Packets lost on the wire, after they left the queue. All causes add up.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LossSpec {
    /// Lose each packet with this probability.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--loss"]))]
    pub random: Option<Probability>,
    /// Loss in bursts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<BurstLoss>,
    /// Packets lost by their number: the first one that leaves the queue is 1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 65536))]
    pub packets: Vec<u64>,
    /// Every packet whose number is a multiple of this is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<QueuePackets>,
}

/// One direction of a link, in the order a packet meets it: queue, wire, distance.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PipeSpec {
    /// Limit the rate on the wire, framing included (default: no limit).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--rate"]))]
    pub rate_bps: Option<WireRateBps>,
    /// Delay packets by this propagation time, one way.
    #[schemars(extend("x-flags" = ["--delay"]))]
    pub delay_s: DelayS,
    /// Add a random delay of up to this much, at most the delay itself.
    ///
    /// With the normal shape it is at most a quarter of the delay. Packets stay in order: on a busy link they wait for the slowest before them, and the mean delay grows towards the largest.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--jitter"]))]
    pub jitter_s: Option<DelayS>,
    /// Draw the random delay from this distribution.
    #[schemars(extend("x-flags" = ["--jitter-shape"]))]
    pub jitter_shape: JitterShape,
    /// The queue in front of the wire.
    pub queue: QueueSpec,
    /// Packets lost on the wire.
    pub loss: LossSpec,
    /// Flip one bit of a packet's transport payload with this probability.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--corrupt"]))]
    pub corrupt: Option<Probability>,
    /// Recompute checksums after corruption, so that only an end-to-end check finds it.
    #[schemars(extend("x-flags" = ["--corrupt-hidden"]))]
    pub corrupt_hidden: bool,
    /// Deliver a packet twice with this probability.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--duplicate"]))]
    pub duplicate: Option<Probability>,
    /// Deliver a packet late by `reorder_delay_s`, behind others, with this probability.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--reorder"]))]
    pub reorder: Option<Probability>,
    /// Deliver reordered packets this much later (default 1 ms).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--reorder-delay"]))]
    pub reorder_delay_s: Option<DelayS>,
    /// Limit IP packets to this size (default 1500 bytes).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--mtu"]))]
    pub mtu_bytes: Option<MtuBytes>,
    /// Count this many bytes on the wire around each IP packet (default 38: Ethernet with preamble, check sequence and gap).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--framing"]))]
    pub framing_bytes: Option<FramingBytes>,
    /// What changes by itself, in the order of time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 65536))]
    pub schedule: Vec<ScheduledChange>,
    /// The schedule starts again after this time; it runs once if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule_period_s: Option<IntervalS>,
}

/// What can change while a link is in use. What is absent stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PipeChange {
    /// New rate on the wire; 0 is without limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<WireRateBps>,
    /// New propagation delay. Packets on the way keep the one they left with; order is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_s: Option<DelayS>,
    /// New probability of independent loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Probability>,
    /// New capacity of the queue, in the place of one in bytes or in bandwidth-delay products; what waits already stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_bytes: Option<QueueBytes>,
    /// The same in bandwidth-delay products; beside `capacity_bytes` the smaller one holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_bdp: Option<QueueBdp>,
    /// New probability of corruption.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrupt: Option<Probability>,
    /// New probability of duplication.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<Probability>,
    /// New probability of reordering.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder: Option<Probability>,
    /// False cuts the link: what is on the wire and what comes is lost, what waits in the queue stays. True restores it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up: Option<bool>,
}

impl PipeChange {
    /// Whether it states a capacity of the queue, in bytes, in bandwidth-delay products or in both.
    pub fn states_capacity(&self) -> bool {
        self.capacity_bytes.is_some() || self.capacity_bdp.is_some()
    }
}

impl PipeSpec {
    /// Takes over what a change states; a cut is not part of a description.
    pub fn take_over(&mut self, change: &PipeChange) {
        if let Some(rate) = change.rate_bps {
            self.rate_bps = Some(rate).filter(|rate| rate.get() > 0);
        }
        self.delay_s = change.delay_s.unwrap_or(self.delay_s);
        self.loss.random = change.loss.or(self.loss.random);
        self.corrupt = change.corrupt.or(self.corrupt);
        self.duplicate = change.duplicate.or(self.duplicate);
        self.reorder = change.reorder.or(self.reorder);
        if change.states_capacity() {
            self.queue.capacity_bytes = change.capacity_bytes;
            self.queue.capacity_bdp = change.capacity_bdp;
        }
    }
}

/// A change at a stated time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduledChange {
    /// Seconds since the emulator started, or since the period did.
    pub at_s: DelayS,
    /// What changes.
    pub change: PipeChange,
}

/// Which direction of a link is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LinkDirection {
    /// From `a` to `b`.
    Forward,
    /// From `b` to `a`.
    Reverse,
    /// Both.
    #[default]
    Both,
}

/// A change to a link, now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkChange {
    /// Name of the link.
    pub link: String,
    /// Which direction is meant.
    #[serde(default)]
    pub direction: LinkDirection,
    /// What changes.
    pub change: PipeChange,
}

/// A link between two points, each a host or a router.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// Name of the link.
    #[schemars(length(min = 1, max = 32))]
    pub name: String,
    /// One end.
    pub a: String,
    /// The other end.
    pub b: String,
    /// From `a` to `b`.
    #[serde(default)]
    pub forward: PipeSpec,
    /// From `b` to `a`; the same as `forward` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverse: Option<PipeSpec>,
}

impl LinkSpec {
    /// The direction from `b` to `a`.
    pub fn backward(&self) -> &PipeSpec {
        self.reverse.as_ref().unwrap_or(&self.forward)
    }
}

/// One host: a kernel's network stack of its own, with a network device for each of its links.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostSpec {
    /// Name, also its host name.
    #[schemars(length(min = 1, max = 32))]
    pub name: String,
    /// Kernel settings of the host, `net.ipv4.tcp_rmem` and its like.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctls: BTreeMap<String, String>,
    /// CPUs the host's programs may use; all if empty. Those that no host may use are the emulator's alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<CpuIndex>,
    /// CPU time the host's programs get together, in CPUs; without limit if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_limit: Option<CpuShare>,
    /// Bytes per second the host's programs read from disks; without limit if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_read_bytes_per_s: Option<DiskRate>,
    /// Bytes per second the host's programs write to disks; without limit if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_write_bytes_per_s: Option<DiskRate>,
}

/// A whole emulated network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// Version of this document.
    #[serde(default = "schema_version")]
    pub schema: u32,
    /// Name of the topology.
    #[schemars(length(min = 1, max = 32))]
    pub name: String,
    /// What it is for, in a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Seed of every packet's fate: same seed, same packets, same fate.
    #[serde(default)]
    pub seed: u64,
    /// How the emulator waits.
    #[serde(default)]
    pub mode: EmulatorMode,
    /// Seconds between two samples of every link.
    #[serde(default = "tenth_of_a_second")]
    pub interval_s: IntervalS,
    /// Hosts.
    #[schemars(length(min = 2, max = 64))]
    pub hosts: Vec<HostSpec>,
    /// Names of points that only forward.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routers: Vec<String>,
    /// Links.
    #[schemars(length(min = 1, max = 256))]
    pub links: Vec<LinkSpec>,
    /// The link that options such as `--rtt` and `--rate` mean; the first if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub main_link: Option<String>,
}

fn schema_version() -> u32 {
    SCHEMA_VERSION
}

fn tenth_of_a_second() -> IntervalS {
    IntervalS::new(0.1).expect("in range")
}

impl Topology {
    /// The document, if it holds together: names unique, ends known, numbers of parts within limits.
    ///
    /// # Errors
    /// [`FailureKind::Spec`](crate::FailureKind::Spec) with the place and what is allowed.
    pub fn checked(self) -> Result<Self, Failure> {
        if self.schema != SCHEMA_VERSION {
            let known = format!("{} is not known; allowed: {SCHEMA_VERSION}", self.schema);
            return Err(Failure::option("schema", known));
        }
        check_name("name", &self.name)?;
        check_count("hosts", self.hosts.len(), 2, 64)?;
        check_count("routers", self.routers.len(), 0, 64)?;
        check_count("links", self.links.len(), 1, 256)?;
        let points = self.check_points()?;
        self.check_links(&points)?;
        match &self.main_link {
            Some(name) if self.links.iter().all(|link| link.name != *name) => {
                Err(Failure::option("main_link", format!("{name:?} is not a link")))
            }
            _ => Ok(self),
        }
    }

    fn check_points(&self) -> Result<BTreeSet<&str>, Failure> {
        let mut points = BTreeSet::new();
        let hosts = self.hosts.iter().map(|host| host.name.as_str());
        for name in hosts.chain(self.routers.iter().map(String::as_str)) {
            check_name("hosts and routers", name)?;
            if !points.insert(name) {
                return Err(Failure::option(
                    "hosts and routers",
                    format!("{name:?} is listed twice"),
                ));
            }
        }
        Ok(points)
    }

    fn check_links(&self, points: &BTreeSet<&str>) -> Result<(), Failure> {
        let mut names = BTreeSet::new();
        for link in &self.links {
            check_name("links", &link.name)?;
            if !names.insert(link.name.as_str()) {
                return Err(Failure::option(
                    "links",
                    format!("{:?} is listed twice", link.name),
                ));
            }
            for end in [&link.a, &link.b] {
                if !points.contains(end.as_str()) {
                    let known: Vec<_> = points.iter().copied().collect();
                    let place = format!("links.{}", link.name);
                    return Err(Failure::option(
                        &place,
                        format!("{end:?} is not a host or router; allowed: {}", known.join(", ")),
                    ));
                }
            }
            if link.a == link.b {
                return Err(Failure::option(
                    &format!("links.{}", link.name),
                    "both ends are the same node",
                ));
            }
            check_schedule(&link.name, &link.forward)?;
            check_schedule(&link.name, link.backward())?;
        }
        Ok(())
    }
}

/// A schedule that repeats takes at least so long per step on average: faster ones could not be kept up with.
const LEAST_STEP_S: f64 = 100e-6;

fn check_schedule(link: &str, pipe: &PipeSpec) -> Result<(), Failure> {
    let place = format!("links.{link}.schedule");
    check_count(&place, pipe.schedule.len(), 0, 65_536)?;
    check_count(
        &format!("links.{link}.loss.packets"),
        pipe.loss.packets.len(),
        0,
        65_536,
    )?;
    if let Some(period) = pipe.schedule_period_s {
        let most = (period.get() / LEAST_STEP_S) as usize;
        check_count(&place, pipe.schedule.len(), 0, most)?;
    }
    let times: Vec<f64> = pipe.schedule.iter().map(|step| step.at_s.get()).collect();
    if times.windows(2).any(|pair| pair[1] < pair[0]) {
        return Err(Failure::option(&place, "times must not decrease"));
    }
    match (pipe.schedule_period_s, times.last()) {
        (Some(period), Some(last)) if *last >= period.get() => Err(Failure::option(
            &place,
            format!("{last} s is not before the end of the period, {} s", period.get()),
        )),
        _ => Ok(()),
    }
}

fn check_name(place: &str, name: &str) -> Result<(), Failure> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let fine = (1..=32).contains(&name.len())
        && name.bytes().all(allowed)
        && name.as_bytes()[0].is_ascii_alphanumeric();
    if fine {
        return Ok(());
    }
    Err(Failure::option(
        place,
        format!("{name:?} is not a name: use 1 to 32 of a-z, 0-9 and -, not starting with -"),
    ))
}

fn check_count(place: &str, count: usize, min: usize, max: usize) -> Result<(), Failure> {
    if (min..=max).contains(&count) {
        return Ok(());
    }
    Err(Failure::option(
        place,
        format!("has {count} of them; allowed: {min} to {max}"),
    ))
}

/// How far a run over an emulated path can be trusted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ValidityStamp {
    /// Whether the emulator did what it was asked over the whole interval.
    pub valid: bool,
    /// Why not, one line each.
    pub reasons: Vec<String>,
    /// Length of the interval the stamp is about.
    pub wall_s: f64,
    /// Packets (super-packets) handed to hosts.
    pub deliveries: u64,
    /// Median of how late packets were handed over.
    pub lateness_p50_us: f64,
    /// 99th percentile of the same.
    pub lateness_p99_us: f64,
    /// Largest of the same.
    pub lateness_max_us: f64,
    /// CPU time the hypervisor gave to others, over all CPUs.
    pub steal_s: f64,
    /// Packets the kernel dropped between a host and the emulator (transmit ring of a TUN device).
    pub ring_drops: u64,
    /// Packets the emulator could not hold or hand over.
    pub emulator_drops: u64,
    /// Datagrams a host dropped because a socket's receive buffer was full: the host's doing, not the path's.
    pub receive_buffer_drops: u64,
    /// Times a host's kernel came short of memory for TCP or UDP: received data given up, datagrams refused, windows held small.
    pub memory_prunes: u64,
    /// Packets in minus packets out, dropped and in flight, over all links; 0 if nothing is unexplained.
    pub unexplained_packets: i64,
}

/// The emulated path a run went over.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EmulatedPath {
    /// Name of the testbed.
    pub testbed: String,
    /// Host the client ran on.
    pub client_host: String,
    /// Host the server ran on.
    pub server_host: String,
    /// Round-trip time as emulated: propagation only, over the links between the two hosts.
    pub rtt_s: f64,
    /// Smallest rate on the wire between the two hosts, client to server.
    pub rate_bps: Option<u64>,
    /// The whole topology, as it stood at the end of the run.
    pub topology: Option<Topology>,
    /// How far the run can be trusted.
    pub stamp: ValidityStamp,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::from_json;

    fn read(text: &str) -> Result<Topology, Failure> {
        from_json::<Topology>(text)?.checked()
    }

    fn pair(link: &str) -> String {
        format!(
            r#"{{"name":"pair","hosts":[{{"name":"a"}},{{"name":"b"}}],"links":[{{"name":"wan","a":"a","b":"b"{link}}}]}}"#
        )
    }

    #[test]
    fn a_link_of_nothing_but_its_ends_is_the_same_both_ways() {
        let topology = read(&pair(r#","forward":{"rate_bps":1000,"delay_s":0.5}"#)).unwrap();
        assert_eq!(topology.links[0].backward(), &topology.links[0].forward);
        assert_eq!(topology.interval_s.get(), 0.1);
        let text = serde_json::to_string(&topology).unwrap();
        assert_eq!(read(&text).unwrap(), topology);
    }

    #[test]
    fn what_does_not_hold_together_is_refused_with_its_place() {
        let refusal = |text: &str| read(text).unwrap_err().message;
        let message = refusal(&pair("").replace(r#""b":"b""#, r#""b":"c""#));
        assert_eq!(
            message,
            r#"links.wan: "c" is not a host or router; allowed: a, b"#
        );
        let message = refusal(&pair("").replace(r#""b":"b""#, r#""b":"a""#));
        assert_eq!(message, "links.wan: both ends are the same node");
        let message = refusal(&pair("").replace(r#"{"name":"b"}"#, r#"{"name":"a"}"#));
        assert_eq!(message, r#"hosts and routers: "a" is listed twice"#);
        let message = refusal(&pair("").replace(r#""name":"pair""#, r#""name":"Pair""#));
        assert!(message.starts_with(r#"name: "Pair" is not a name"#), "{message}");
        let message = refusal(&pair(r#","forward":{"loss":{"random":1.5}}"#));
        assert!(message.ends_with("allowed: 0 to 1"), "{message}");
    }

    #[test]
    fn schedules_run_forward_and_within_their_period() {
        let schedule =
            |times: &str, period: &str| pair(&format!(r#","forward":{{"schedule":[{times}]{period}}}"#));
        let step = |at: f64| format!(r#"{{"at_s":{at},"change":{{"up":false}}}}"#);
        let forward = [step(1.0), step(2.0)].join(",");
        assert!(read(&schedule(&forward, "")).is_ok());
        assert!(read(&schedule(&[step(2.0), step(1.0)].join(","), "")).is_err());
        assert!(read(&schedule(&forward, r#","schedule_period_s":2"#)).is_err());
    }
}
