//! What a host is: recorded with every run, and judged by `farline host`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The processors of a host.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CpuFacts {
    /// Model name as the kernel prints it.
    pub model: String,
    /// CPUs that are online.
    pub online: u32,
    /// Frequency governor of CPU 0, if the kernel has one.
    pub governor: Option<String>,
    /// NUMA nodes.
    pub numa_nodes: u32,
    /// Whether the kernel says that it runs under a hypervisor.
    pub virtualised: bool,
}

/// One network interface.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct InterfaceFacts {
    /// Name.
    pub name: String,
    /// Addresses.
    pub addresses: Vec<String>,
    /// MTU.
    pub mtu_bytes: u32,
    /// Whether it is up.
    pub up: bool,
    /// Driver, if the kernel names one.
    pub driver: Option<String>,
    /// Link speed, if the driver knows it.
    pub speed_bps: Option<u64>,
    /// NUMA node of the device, if it has one.
    pub numa_node: Option<u32>,
    /// Queueing discipline.
    pub qdisc: Option<String>,
    /// Length of the transmit queue, in packets.
    pub tx_queue_packets: Option<u32>,
    /// Offloads by ethtool's names, on or off.
    pub offloads: BTreeMap<String, bool>,
}

/// What a host is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HostFacts {
    /// Name of the host.
    pub hostname: String,
    /// Kernel release.
    pub kernel: String,
    /// Operating system, as os-release names it.
    pub operating_system: String,
    /// Machine architecture.
    pub architecture: String,
    /// Processors.
    pub cpu: CpuFacts,
    /// Physical memory.
    pub memory_bytes: u64,
    /// Kernel parameters that matter to transport, by sysctl name; tabs become spaces.
    pub sysctls: BTreeMap<String, String>,
    /// Congestion controls the kernel has loaded.
    pub congestion_controls: Vec<String>,
    /// Congestion controls that a user without privileges may choose.
    pub allowed_congestion_controls: Vec<String>,
    /// Network interfaces.
    pub interfaces: Vec<InterfaceFacts>,
    /// Clock source of the kernel.
    pub clock_source: Option<String>,
}
