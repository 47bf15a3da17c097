//! What this host is: everything about it that bears on moving data.
//!
//! What it does: reads the kernel's own files, one netlink dump and a few ethtool
//! requests, and gives plain values; measures the memory's copy rate on request.
//! What it must not do: judge, guess, or run programs. What cannot be read is absent.
//!
//! In: nothing. Out: [`Host`], in well under 5 ms, because every session asks for it;
//! what cannot change while the process lives is read once.
//!
//! Everything is seen from the network namespace of the calling process.
//!
//! Start with [`facts`]; `interface.rs` joins what netlink, sysfs and ethtool say of an
//! interface, `sysctl.rs` lists the kernel parameters that count, `bandwidth.rs` measures.

mod bandwidth;
mod cpu;
mod ethtool;
mod interface;
pub(crate) mod netlink;
mod sysctl;
mod system;

use std::collections::BTreeMap;
use std::path::Path;

pub use bandwidth::{MAX_SECONDS, MAX_THREADS, memory_copy_bps};

/// The processors.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cpu {
    /// Model name as the kernel prints it; empty where it prints none.
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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Interface {
    /// Name.
    pub name: String,
    /// Addresses as text, IPv4 and IPv6, without prefix lengths.
    pub addresses: Vec<String>,
    /// MTU.
    pub mtu_bytes: u32,
    /// Whether it is up.
    pub up: bool,
    /// Driver, if ethtool names one.
    pub driver: Option<String>,
    /// Link speed, if the driver knows it.
    pub speed_bps: Option<u64>,
    /// NUMA node of the device, if it has one.
    pub numa_node: Option<u32>,
    /// Queueing discipline at the root.
    pub qdisc: Option<String>,
    /// Length of the transmit queue, in packets.
    pub tx_queue_packets: Option<u32>,
    /// Offloads by the long names of `ethtool -k`, on or off.
    pub offloads: BTreeMap<String, bool>,
}

/// A host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Host {
    /// Name of the host.
    pub hostname: String,
    /// Kernel release.
    pub kernel: String,
    /// Operating system, as os-release names it.
    pub operating_system: String,
    /// Machine architecture.
    pub architecture: String,
    /// Processors.
    pub cpu: Cpu,
    /// Physical memory.
    pub memory_bytes: u64,
    /// Kernel parameters by sysctl name; runs of blanks are one space.
    pub sysctls: BTreeMap<String, String>,
    /// Congestion controls the kernel has loaded.
    pub congestion_controls: Vec<String>,
    /// Congestion controls that a user without privileges may choose.
    pub allowed_congestion_controls: Vec<String>,
    /// Network interfaces, at most 64: those that are up first, then in the kernel's order.
    pub interfaces: Vec<Interface>,
    /// Clock source of the kernel.
    pub clock_source: Option<String>,
}

/// What this host is now.
pub fn facts() -> Host {
    let names = system::names();
    Host {
        hostname: names.hostname,
        kernel: names.kernel,
        operating_system: system::operating_system(),
        architecture: names.architecture,
        cpu: cpu::facts(),
        memory_bytes: system::memory_bytes(),
        sysctls: sysctl::facts(),
        congestion_controls: sysctl::words("net.ipv4.tcp_available_congestion_control"),
        allowed_congestion_controls: sysctl::words("net.ipv4.tcp_allowed_congestion_control"),
        interfaces: interface::facts(),
        clock_source: line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    }
}

/// The one line of a small kernel file; `None` if it cannot be read or is empty.
fn line(path: impl AsRef<Path>) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn this_host_is_somebody() {
        let host = facts();
        assert!(!host.hostname.is_empty() && !host.kernel.is_empty() && !host.architecture.is_empty());
        assert!(host.cpu.online >= 1 && host.cpu.numa_nodes >= 1);
        assert!(host.memory_bytes > 1 << 26);
        assert!(host.congestion_controls.iter().any(|name| name == "reno"));
        assert!(host.sysctls.contains_key("net.ipv4.tcp_rmem"));
    }

    #[test]
    fn it_is_fast_enough_to_be_asked_in_every_session() {
        let once = || {
            let before = Instant::now();
            facts();
            before.elapsed()
        };
        // The best of many: other tests run beside this one.
        let best = std::iter::repeat_with(once).take(50).min().unwrap();
        assert!(best < Duration::from_millis(5), "{best:?}");
    }
}
