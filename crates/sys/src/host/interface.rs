//! Network interfaces: what netlink, sysfs and ethtool say, joined by name.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use super::ethtool::Ethtool;
use super::netlink::{self, Link};
use super::{Interface, line};
use crate::call::check;

/// A machine full of containers has thousands; a record of a run needs the ones in use.
const MAX_INTERFACES: usize = 64;

/// Interfaces of this network namespace; none where the kernel does not let us list them.
pub(super) fn facts() -> Vec<Interface> {
    let mut links = netlink::links().unwrap_or_default();
    // Stable: within the two groups the kernel's order stays.
    links.sort_by_key(|link| !link.up);
    links.truncate(MAX_INTERFACES);
    let mut addresses = addresses();
    let ethtool = Ethtool::open().ok();
    let join = |link: Link| {
        let found = addresses.remove(&link.name).unwrap_or_default();
        join(link, found, ethtool.as_ref())
    };
    links.into_iter().map(join).collect()
}

fn join(link: Link, addresses: Vec<String>, ethtool: Option<&Ethtool>) -> Interface {
    let device = Device::of(&link);
    Interface {
        addresses,
        mtu_bytes: link.mtu_bytes,
        up: link.up,
        driver: ethtool.and_then(|ethtool| ethtool.driver(&link.name)),
        speed_bps: device.as_ref().and_then(Device::speed_bps),
        numa_node: device.as_ref().and_then(Device::numa_node),
        qdisc: link.qdisc,
        tx_queue_packets: link.tx_queue_packets,
        offloads: ethtool
            .map(|ethtool| ethtool.offloads(&link.name))
            .unwrap_or_default(),
        name: link.name,
    }
}

/// An interface in sysfs.
struct Device(PathBuf);

impl Device {
    /// `None` unless sysfs means the same interface: it may show another network namespace.
    fn of(link: &Link) -> Option<Self> {
        let path = PathBuf::from("/sys/class/net").join(&link.name);
        let index: u32 = line(path.join("ifindex"))?.parse().ok()?;
        (index == link.index).then_some(Self(path))
    }

    /// −1 or an error is how drivers say that they do not know.
    fn speed_bps(&self) -> Option<u64> {
        let megabits: u64 = line(self.0.join("speed"))?.parse().ok()?;
        // Virtual devices answer with the largest 32-bit number.
        (megabits > 0 && megabits < u64::from(u32::MAX)).then(|| megabits * 1_000_000)
    }

    /// −1 is how a device says that it has none.
    fn numa_node(&self) -> Option<u32> {
        line(self.0.join("device/numa_node"))?.parse().ok()
    }
}

/// Addresses by the name of the interface.
fn addresses() -> HashMap<String, Vec<String>> {
    let mut found: HashMap<String, Vec<String>> = HashMap::new();
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the library allocates a list and writes its head into `list`.
    if check(unsafe { libc::getifaddrs(&mut list) }).is_err() {
        return found;
    }
    let mut entry = list;
    while !entry.is_null() {
        // SAFETY: `entry` is a node of the list, which lives until freeifaddrs below.
        let node = unsafe { &*entry };
        if let Some(address) = address(node.ifa_addr) {
            // SAFETY: every node of the list has a name that ends with a zero byte.
            let name = unsafe { std::ffi::CStr::from_ptr(node.ifa_name) };
            found
                .entry(name.to_string_lossy().into_owned())
                .or_default()
                .push(address.to_string());
        }
        entry = node.ifa_next;
    }
    // SAFETY: `list` came from getifaddrs, is freed once, and nothing refers to its nodes any more.
    unsafe { libc::freeifaddrs(list) };
    found
}

fn address(pointer: *const libc::sockaddr) -> Option<IpAddr> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: a non-null ifa_addr leads to a socket address, whose family comes first in every kind of it.
    match i32::from(unsafe { (*pointer).sa_family }) {
        libc::AF_INET => {
            // SAFETY: the family says that it is a sockaddr_in; the list aligns its addresses for all kinds.
            let address = unsafe { &*pointer.cast::<libc::sockaddr_in>() };
            Some(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: the family says that it is a sockaddr_in6; the list aligns its addresses for all kinds.
            let address = unsafe { &*pointer.cast::<libc::sockaddr_in6>() };
            Some(Ipv6Addr::from(address.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_its_address_and_its_offloads() {
        let interfaces = facts();
        let loopback = interfaces
            .iter()
            .find(|interface| interface.name == "lo")
            .unwrap();
        assert!(
            loopback.addresses.iter().any(|address| address == "127.0.0.1"),
            "{loopback:?}"
        );
        assert!(!loopback.offloads.is_empty());
        assert_eq!((loopback.speed_bps, loopback.numa_node), (None, None));
    }

    #[test]
    fn sysfs_of_another_namespace_is_not_believed() {
        let link = Link {
            index: 4_000_000,
            name: "lo".to_owned(),
            ..Link::default()
        };
        assert!(Device::of(&link).is_none());
    }
}
