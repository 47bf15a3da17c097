//! Hosts: namespaces with devices, addresses, routes and kernel settings, made from a topology.

use std::fmt::Write as _;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use farline_spec::{Failure, FailureKind, HostSpec, Topology};
use farline_sys::interface;
use farline_sys::namespace::{HostNamespaces, write_sysctl};
use farline_sys::stack_counters::StackCounters;
use farline_sys::tun::Tun;

use crate::layout::{Layout, PortLayout};

/// Packets (super-packets) between a host and the emulator; the kernel's 500 overflow in one burst of datagrams.
const TX_QUEUE_PACKETS: u32 = 20_000;

/// Below this MTU Linux takes IPv6 away from a device (RFC 8200, section 5).
const LEAST_V6_MTU_BYTES: u32 = 1280;

/// Settings of every host, before its own: windows large enough for any path, and no memory of earlier runs.
const SYSCTLS: [(&str, &str); 5] = [
    // A device takes the stricter of its own setting, which is the default's at its birth, and that of all: with either,
    // what comes over another link than the answer would take is dropped.
    ("net.ipv4.conf.all.rp_filter", "0"),
    ("net.ipv4.conf.default.rp_filter", "0"),
    ("net.ipv4.tcp_rmem", "4096 131072 1073741824"),
    ("net.ipv4.tcp_wmem", "4096 16384 1073741824"),
    ("net.ipv4.tcp_no_metrics_save", "1"),
];

/// Files through which another process enters a host, as long as this process holds them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespacePaths {
    /// Network.
    pub net: String,
    /// Mounts.
    pub mount: String,
    /// Host name.
    pub uts: String,
}

/// Namespaces of all hosts, in the order of the topology.
pub struct Hosts {
    held: Mutex<Vec<HostNamespaces>>,
    notices: Vec<String>,
}

/// What making the hosts gives.
pub struct Made {
    /// The namespaces.
    pub hosts: Hosts,
    /// One device for each port.
    pub devices: Vec<Tun>,
    /// One for each host.
    pub stacks: Vec<StackCounters>,
}

/// What making one host gives.
struct MadeHost {
    devices: Vec<(usize, Tun)>,
    stack: StackCounters,
}

impl Hosts {
    /// Makes the hosts of a topology and writes their names, as each host sees them, to `hosts_file.HOST`.
    ///
    /// # Errors
    /// "spec" for a kernel setting that is not allowed, "system" when the machine refuses; nothing is left then.
    pub fn make(topology: &Topology, layout: &Layout, hosts_file: &Path) -> Result<Made, Failure> {
        let (mut held, mut devices, mut stacks) = (Vec::new(), Vec::new(), Vec::new());
        let mut notices = Vec::new();
        for (number, spec) in topology.hosts.iter().enumerate() {
            let names = write_names(layout, number, hosts_file)?;
            let (namespaces, made) =
                HostNamespaces::create(&spec.name, Some(&names), || Ok(set_up(number, spec, layout)))
                    .map_err(|error| Failure::system(&format!("host {}", spec.name), &error))?;
            let made = made?;
            notices.extend(notice(&spec.name, &namespaces));
            notices.extend(small_devices(layout, number));
            held.push(namespaces);
            devices.extend(made.devices);
            stacks.push(made.stack);
        }
        devices.sort_by_key(|(port, _)| *port);
        Ok(Made {
            hosts: Self {
                held: Mutex::new(held),
                notices,
            },
            devices: devices.into_iter().map(|(_, device)| device).collect(),
            stacks,
        })
    }

    /// Where a host's namespaces can be entered; none after [`Hosts::close`].
    pub fn namespace_paths(&self, host: usize) -> Option<NamespacePaths> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        let path = |descriptor: &OwnedFd| format!("/proc/{process}/fd/{}", descriptor.as_raw_fd());
        held.get(host).map(|namespaces| NamespacePaths {
            net: path(&namespaces.network),
            mount: path(&namespaces.mount),
            uts: path(&namespaces.names),
        })
    }

    /// What is not quite as it should be, one line each.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Lets go of the hosts: each is gone with its last process.
    pub fn close(&self) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

fn notice(host: &str, namespaces: &HostNamespaces) -> Option<String> {
    let refusal = namespaces.sys_refusal.as_ref()?;
    Some(format!(
        "host {host}: /sys shows the machine's devices, not the host's: {refusal}"
    ))
}

/// A line about each device that is too small for IPv6.
fn small_devices(layout: &Layout, number: usize) -> impl Iterator<Item = String> {
    let host = &layout.hosts[number];
    let ports = host.ports.iter().map(|&port| &layout.ports[port]);
    ports.filter(|port| !has_v6(port)).map(|port| {
        let (name, device, mtu_bytes) = (&host.name, &port.device, port.mtu_bytes);
        format!(
            "host {name}: {device} has no IPv6: its MTU of {mtu_bytes} bytes is below {LEAST_V6_MTU_BYTES}"
        )
    })
}

fn has_v6(port: &PortLayout) -> bool {
    port.mtu_bytes >= LEAST_V6_MTU_BYTES
}

/// Writes the names as a host sees them, and gives the file.
fn write_names(layout: &Layout, number: usize, hosts_file: &Path) -> Result<PathBuf, Failure> {
    let mut file = hosts_file.as_os_str().to_owned();
    file.push(format!(".{}", layout.hosts[number].name));
    let file = PathBuf::from(file);
    std::fs::write(&file, hosts_table(layout, number))
        .map_err(|error| Failure::system(&format!("hosts file {}", file.display()), &error))?;
    Ok(file)
}

/// Names and addresses as host `seen_from` sees them, in the format of hosts(5).
fn hosts_table(layout: &Layout, seen_from: usize) -> String {
    let mut table = String::from("127.0.0.1 localhost\n::1 localhost\n");
    for (number, host) in layout.hosts.iter().enumerate() {
        let nearest = layout
            .nearest_port(seen_from, number)
            .or_else(|| host.ports.first().copied());
        for &number in &host.ports {
            let port = &layout.ports[number];
            let mut names = format!("{}-{}", host.name, port.device);
            if nearest == Some(number) {
                names.insert_str(0, &format!("{} ", host.name));
            }
            // Writing to a String cannot fail.
            let _ = writeln!(table, "{} {names}", port.v4);
            if has_v6(port) {
                let _ = writeln!(table, "{} {names}", port.v6);
            }
        }
    }
    table
}

/// Runs inside the new host.
fn set_up(number: usize, spec: &HostSpec, layout: &Layout) -> Result<MadeHost, Failure> {
    let refused = |error: io::Error| Failure::system(&format!("host {}", spec.name), &error);
    for (key, value) in SYSCTLS {
        write_sysctl(key, value).map_err(refused)?;
    }
    let devices = set_up_devices(number, layout).map_err(refused)?;
    // After the devices, so that settings of a device can be among them.
    for (key, value) in &spec.sysctls {
        write_sysctl(key, value).map_err(|error| {
            let what = format!("hosts.{}.sysctls: {error}", spec.name);
            Failure::new(FailureKind::Spec, what)
        })?;
    }
    let stack = StackCounters::open().map_err(refused)?;
    Ok(MadeHost { devices, stack })
}

fn set_up_devices(number: usize, layout: &Layout) -> io::Result<Vec<(usize, Tun)>> {
    interface::bring_up("lo")?;
    let host = &layout.hosts[number];
    let mut devices = Vec::new();
    for &port in &host.ports {
        devices.push((port, set_up_device(port, layout)?));
    }
    for route in &host.routes {
        let device = &layout.ports[route.via_port].device;
        let destination = &layout.ports[route.to_port];
        interface::add_route(device, IpAddr::V4(destination.v4))?;
        if has_v6(&layout.ports[route.via_port]) && has_v6(destination) {
            interface::add_route(device, IpAddr::V6(destination.v6))?;
        }
    }
    Ok(devices)
}

fn set_up_device(port: usize, layout: &Layout) -> io::Result<Tun> {
    let port = &layout.ports[port];
    let tun = Tun::open(&port.device, TX_QUEUE_PACKETS)?;
    interface::keep_quiet(&port.device)?;
    interface::set_mtu(&port.device, port.mtu_bytes)?;
    interface::bring_up(&port.device)?;
    interface::add_address(&port.device, IpAddr::V4(port.v4))?;
    if has_v6(port) {
        interface::add_address(&port.device, IpAddr::V6(port.v6))?;
    }
    Ok(tun)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_address_that_is_in_reach() {
        let topology: Topology = serde_json::from_str(
            r#"{"name": "triangle", "hosts": [{"name": "a"}, {"name": "b"}, {"name": "c"}],
                "links": [{"name": "a-b", "a": "a", "b": "b"}, {"name": "b-c", "a": "b", "b": "c"},
                          {"name": "a-c", "a": "a", "b": "c"}]}"#,
        )
        .unwrap();
        let layout = Layout::new(&topology).unwrap();
        let c_of = |seen_from: usize| {
            let table = hosts_table(&layout, seen_from);
            let line = table.lines().find(|line| line.contains(" c c-eth")).unwrap();
            line.to_owned()
        };
        assert_eq!(c_of(0), "10.77.0.6 c c-eth1", "over the link a-c");
        assert_eq!(c_of(1), "10.77.0.4 c c-eth0", "over the link b-c");
    }

    #[test]
    fn a_device_too_small_for_ipv6_has_no_such_address_and_says_so() {
        let topology: Topology = serde_json::from_str(
            r#"{"name": "small", "hosts": [{"name": "a"}, {"name": "b"}],
                "links": [{"name": "l", "a": "a", "b": "b", "forward": {"mtu_bytes": 1279},
                           "reverse": {"mtu_bytes": 1280}}]}"#,
        )
        .unwrap();
        let layout = Layout::new(&topology).unwrap();
        let table = hosts_table(&layout, 0);
        assert!(table.contains("10.77.0.1 a a-eth0\n") && !table.contains("fd77::1 "));
        assert!(table.contains("fd77::2 b b-eth0\n"), "{table}");
        let notices: Vec<_> = small_devices(&layout, 0).collect();
        assert!(notices.len() == 1 && notices[0].starts_with("host a: eth0 has no IPv6"));
        assert_eq!(small_devices(&layout, 1).count(), 0);
    }
}
