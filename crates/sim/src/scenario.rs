//! Ready topologies: one path, and a dumbbell.

use farline_spec::unit::{DelayS, MtuBytes, Probability, QueueBdp, QueueBytes, WireRateBps};
use farline_spec::{HostSpec, LinkSpec, PipeSpec, Topology};

use crate::seconds;

/// Bytes on the wire around each IP packet, as the link model has it by default.
pub const FRAMING_BYTES: u64 = 38;

/// A link with one bottleneck queue in each direction.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// Rate on the wire; 0 is without limit.
    pub rate_bps: u64,
    /// Round-trip time without queueing.
    pub rtt_ns: u64,
    /// Everything else about the way from the sender: queue, loss, MTU. Its rate and delay are set from the above.
    pub forward: PipeSpec,
    /// Seed of what happens to packets.
    pub seed: u64,
}

impl Path {
    /// A path with a drop-tail queue of one bandwidth-delay product, at least ten milliseconds of the rate.
    pub fn new(rate_bps: u64, rtt_ns: u64) -> Self {
        Self {
            rate_bps,
            rtt_ns,
            forward: PipeSpec::default(),
            seed: 1,
        }
    }

    /// The same with another MTU.
    pub fn mtu_bytes(mut self, mtu_bytes: u16) -> Self {
        self.forward.mtu_bytes = Some(MtuBytes::new(mtu_bytes).expect("an MTU within the spec's range"));
        self
    }

    /// The same with a queue of `bdp` bandwidth-delay products.
    pub fn queue_bdp(mut self, bdp: f64) -> Self {
        self.forward.queue.capacity_bdp = Some(QueueBdp::new(bdp).expect("a queue within the spec's range"));
        self
    }

    /// The same with a queue of `bytes` on the wire.
    pub fn queue_bytes(mut self, bytes: u64) -> Self {
        self.forward.queue.capacity_bytes =
            Some(QueueBytes::new(bytes).expect("a queue within the spec's range"));
        self
    }

    /// The same with independent loss on the way from the sender.
    pub fn loss(mut self, probability: f64) -> Self {
        self.forward.loss.random = Some(Probability::new(probability).expect("a probability"));
        self
    }

    /// Packets of `packet_bytes` (IP) that the rate carries per second.
    pub fn packets_per_s(&self, packet_bytes: u32) -> f64 {
        self.rate_bps as f64 / (8.0 * (u64::from(packet_bytes) + FRAMING_BYTES) as f64)
    }

    /// Packets of `packet_bytes` (IP) in one bandwidth-delay product.
    pub fn bdp_packets(&self, packet_bytes: u32) -> f64 {
        self.packets_per_s(packet_bytes) * seconds(self.rtt_ns)
    }

    fn pipe(&self, delay_ns: u64) -> PipeSpec {
        let mut pipe = self.forward.clone();
        let rate = WireRateBps::new(self.rate_bps).expect("a rate within the spec's range");
        pipe.rate_bps = (self.rate_bps > 0).then_some(rate);
        pipe.delay_s = delay(delay_ns);
        pipe
    }

    /// Two hosts, `a` (port 0) and `b` (port 1), and the path as the only link, `path` (pipes 0 and 1). What is
    /// ordered for the way from the sender holds for that way alone; the way back has the same rate, delay and MTU.
    pub fn topology(&self) -> Topology {
        let link = self.link("path", "a", "b");
        topology("path", self.seed, &["a", "b"], &[], vec![link])
    }

    fn link(&self, name: &str, a: &str, b: &str) -> LinkSpec {
        let half_ns = self.rtt_ns / 2;
        let bare = PipeSpec {
            mtu_bytes: self.forward.mtu_bytes,
            ..PipeSpec::default()
        };
        let back = Self {
            forward: bare,
            ..self.clone()
        };
        LinkSpec {
            name: name.to_string(),
            a: a.to_string(),
            b: b.to_string(),
            forward: self.pipe(half_ns),
            reverse: Some(back.pipe(self.rtt_ns - half_ns)),
        }
    }

    /// Senders `a0`, `a1`, ... and receivers `b0`, `b1`, ..., a pair for each entry of `access_rtt_ns`, with the path
    /// between routers `left` and `right`. Pair i has the port `2 * i` at its sender and `2 * i + 1` at its receiver,
    /// and its round-trip time is that of the path plus `access_rtt_ns[i]`. The path's pipes come last.
    pub fn dumbbell(&self, access_rtt_ns: &[u64]) -> Topology {
        let mut names = Vec::new();
        let mut links = Vec::new();
        for (index, &rtt_ns) in access_rtt_ns.iter().enumerate() {
            let (a, b) = (format!("a{index}"), format!("b{index}"));
            links.push(self.access(&a, "left", rtt_ns));
            links.push(self.access(&b, "right", 0));
            names.extend([a, b]);
        }
        links.push(self.link("path", "left", "right"));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        topology("dumbbell", self.seed, &names, &["left", "right"], links)
    }

    fn access(&self, host: &str, router: &str, rtt_ns: u64) -> LinkSpec {
        let pipe = |delay_ns| PipeSpec {
            delay_s: delay(delay_ns),
            mtu_bytes: self.forward.mtu_bytes,
            ..PipeSpec::default()
        };
        LinkSpec {
            name: host.to_string(),
            a: host.to_string(),
            b: router.to_string(),
            forward: pipe(rtt_ns / 2),
            reverse: Some(pipe(rtt_ns - rtt_ns / 2)),
        }
    }
}

fn delay(delay_ns: u64) -> DelayS {
    DelayS::new(seconds(delay_ns)).expect("a delay within the spec's range")
}

fn topology(name: &str, seed: u64, hosts: &[&str], routers: &[&str], links: Vec<LinkSpec>) -> Topology {
    let host = |name: &&str| HostSpec {
        name: name.to_string(),
        sysctls: Default::default(),
        cpus: Vec::new(),
        cpu_limit: None,
        disk_read_bytes_per_s: None,
        disk_write_bytes_per_s: None,
    };
    Topology {
        schema: farline_spec::SCHEMA_VERSION,
        name: name.to_string(),
        description: None,
        seed,
        mode: Default::default(),
        interval_s: farline_spec::unit::IntervalS::new(0.1).expect("in range"),
        hosts: hosts.iter().map(host).collect(),
        routers: routers.iter().map(ToString::to_string).collect(),
        links,
        main_link: Some("path".to_string()),
    }
}
