//! Setting up network interfaces of the calling thread's namespace, by ioctl (netdevice(7)).
//!
//! Every function needs CAP_NET_ADMIN in that namespace. Addresses are host addresses (/32, /128): what lies behind
//! a device is said by routes alone.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use crate::call::{check, explain};
use crate::namespace::write_sysctl;
use crate::transmit_queue;

/// Metric of the routes made here, as the kernel gives it to its own IPv6 routes (`IP6_RT_PRIO_USER`).
const ROUTE_METRIC_V6: u32 = 1024;
/// `RTF_LOCAL` of linux/ipv6_route.h.
const LOCAL_ROUTE: u32 = 0x8000_0000;
/// The kernel's work on a new address waits for other changes to devices, of which there may be many at once.
const PATIENCE: Duration = Duration::from_secs(2);

/// Largest packet of `device`, in bytes.
///
/// # Errors
/// The kernel's, with the device's name.
pub fn set_mtu(device: &str, mtu_bytes: u32) -> io::Result<()> {
    let mut request = request(device)?;
    request.ifr_ifru.ifru_mtu = as_int(mtu_bytes)?;
    send(Domain::IPV4, libc::SIOCSIFMTU, &mut request)
        .map_err(|error| explain(&error, format_args!("device {device}: MTU of {mtu_bytes} bytes")))
}

/// Length of the transmit queue of `device`, in packets.
///
/// # Errors
/// The kernel's, with the device's name.
pub fn set_tx_queue(device: &str, packets: u32) -> io::Result<()> {
    let set = index(device).and_then(|index| transmit_queue::set_length(index, packets));
    set.map_err(|error| {
        explain(
            &error,
            format_args!("device {device}: queue of {packets} packets"),
        )
    })
}

/// Starts `device` (`lo` too).
///
/// # Errors
/// The kernel's, with the device's name.
pub fn bring_up(device: &str) -> io::Result<()> {
    let mut request = request(device)?;
    let place = format!("device {device}: up");
    send(Domain::IPV4, libc::SIOCGIFFLAGS, &mut request).map_err(|error| explain(&error, &place))?;
    // SAFETY: SIOCGIFFLAGS has just filled in this member of the union.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    request.ifr_ifru.ifru_flags = flags | libc::IFF_UP as libc::c_short;
    send(Domain::IPV4, libc::SIOCSIFFLAGS, &mut request).map_err(|error| explain(&error, &place))
}

/// Keeps the kernel from sending anything over `device` by itself: no link-local address, no router solicitation,
/// no duplicate address detection. Call it before [`bring_up`].
///
/// # Errors
/// As [`write_sysctl`].
pub fn keep_quiet(device: &str) -> io::Result<()> {
    let values = [
        ("addr_gen_mode", "1"),
        ("accept_ra", "0"),
        ("router_solicitations", "0"),
        ("accept_dad", "0"),
    ];
    for (name, value) in values {
        write_sysctl(&format!("net/ipv6/conf/{device}/{name}"), value)?;
    }
    Ok(())
}

/// Gives `device`, which must be up, an address of its own, as /32 or /128; it can be used when this returns.
///
/// # Errors
/// The kernel's, with device and address; `TimedOut` if an IPv6 address is not ready for use after two seconds.
pub fn add_address(device: &str, address: IpAddr) -> io::Result<()> {
    match address {
        IpAddr::V4(address) => add_v4(device, address),
        IpAddr::V6(address) => add_v6(device, address),
    }
    .map_err(|error| explain(&error, format_args!("device {device}: address {address}")))
}

/// Sends packets for `destination` over `device`. The sender's address follows from the device.
///
/// # Errors
/// The kernel's, with device and destination: the device must be up.
pub fn add_route(device: &str, destination: IpAddr) -> io::Result<()> {
    match destination {
        IpAddr::V4(destination) => add_route_v4(device, destination),
        IpAddr::V6(destination) => add_route_v6(device, destination),
    }
    .map_err(|error| explain(&error, format_args!("device {device}: route to {destination}")))
}

fn add_v4(device: &str, address: Ipv4Addr) -> io::Result<()> {
    let mut request = request(device)?;
    request.ifr_ifru.ifru_addr = socket_address(address);
    send(Domain::IPV4, libc::SIOCSIFADDR, &mut request)?;
    request.ifr_ifru.ifru_netmask = socket_address(Ipv4Addr::BROADCAST);
    send(Domain::IPV4, libc::SIOCSIFNETMASK, &mut request)
}

fn add_v6(device: &str, address: Ipv6Addr) -> io::Result<()> {
    let mut request = libc::in6_ifreq {
        ifr6_addr: in6(address),
        ifr6_prefixlen: 128,
        ifr6_ifindex: index(device)?,
    };
    send(Domain::IPV6, libc::SIOCSIFADDR, &mut request)?;
    wait_for_local_route(device, address)
}

/// Even without duplicate address detection the kernel finishes an IPv6 address some time later, on a thread of its
/// own; its last act is the route by which packets for the address are taken in.
fn wait_for_local_route(device: &str, address: Ipv6Addr) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !has_local_route(
        &std::fs::read_to_string("/proc/thread-self/net/ipv6_route")?,
        device,
        address,
    ) {
        if Instant::now() > deadline {
            let message = "not ready for use yet (the device must be up)";
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    Ok(())
}

/// Columns of the table: destination, its length, source, its length, next hop, metric, two counts, flags, device.
fn has_local_route(table: &str, device: &str, address: Ipv6Addr) -> bool {
    let wanted = format!("{:032x}", u128::from(address));
    table.lines().any(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [to, bits, .., flags, name] = words[..] else {
            return false;
        };
        let flags = u32::from_str_radix(flags, 16).unwrap_or(0);
        to == wanted && bits == "80" && name == device && flags & LOCAL_ROUTE != 0
    })
}

/// `struct rtentry` (linux/route.h), which libc does not have for every C library.
#[repr(C)]
struct RouteV4 {
    pad1: libc::c_ulong,
    destination: libc::sockaddr,
    gateway: libc::sockaddr,
    mask: libc::sockaddr,
    flags: libc::c_ushort,
    pad2: libc::c_short,
    pad3: libc::c_ulong,
    pad4: *mut libc::c_void,
    metric: libc::c_short,
    device: *const libc::c_char,
    mtu: libc::c_ulong,
    window: libc::c_ulong,
    initial_rtt: libc::c_ushort,
}

fn add_route_v4(device: &str, destination: Ipv4Addr) -> io::Result<()> {
    let name = request(device)?.ifr_name;
    let mut route = RouteV4 {
        pad1: 0,
        destination: socket_address(destination),
        gateway: socket_address(Ipv4Addr::UNSPECIFIED),
        mask: socket_address(Ipv4Addr::BROADCAST),
        flags: libc::RTF_UP | libc::RTF_HOST,
        pad2: 0,
        pad3: 0,
        pad4: std::ptr::null_mut(),
        metric: 0,
        device: name.as_ptr(),
        mtu: 0,
        window: 0,
        initial_rtt: 0,
    };
    send(Domain::IPV4, libc::SIOCADDRT, &mut route)
}

/// `struct in6_rtmsg` (linux/ipv6_route.h), whose fields libc keeps private.
#[repr(C)]
struct RouteV6 {
    destination: libc::in6_addr,
    source: libc::in6_addr,
    gateway: libc::in6_addr,
    kind: u32,
    destination_bits: u16,
    source_bits: u16,
    metric: u32,
    info: libc::c_ulong,
    flags: u32,
    index: libc::c_int,
}

fn add_route_v6(device: &str, destination: Ipv6Addr) -> io::Result<()> {
    let mut route = RouteV6 {
        destination: in6(destination),
        source: in6(Ipv6Addr::UNSPECIFIED),
        gateway: in6(Ipv6Addr::UNSPECIFIED),
        kind: 0,
        destination_bits: 128,
        source_bits: 0,
        metric: ROUTE_METRIC_V6,
        info: 0,
        flags: u32::from(libc::RTF_UP | libc::RTF_HOST),
        index: index(device)?,
    };
    send(Domain::IPV6, libc::SIOCADDRT, &mut route)
}

fn index(device: &str) -> io::Result<libc::c_int> {
    let mut request = request(device)?;
    send(Domain::IPV4, libc::SIOCGIFINDEX, &mut request)?;
    // SAFETY: SIOCGIFINDEX has just filled in this member of the union.
    Ok(unsafe { request.ifr_ifru.ifru_ifindex })
}

/// What the kernel reads and writes for each request, by the layout it documents.
///
/// # Safety
/// Implement it only for the structures that the requests of this module take.
unsafe trait Request {}
// SAFETY: netdevice(7) defines it for every SIOC[GS]IF request on IPv4 sockets.
unsafe impl Request for libc::ifreq {}
// SAFETY: linux/ipv6.h defines it for SIOCSIFADDR on IPv6 sockets.
unsafe impl Request for libc::in6_ifreq {}
// SAFETY: same layout as rtentry, which SIOCADDRT takes on IPv4 sockets.
unsafe impl Request for RouteV4 {}
// SAFETY: same layout as in6_rtmsg, which SIOCADDRT takes on IPv6 sockets.
unsafe impl Request for RouteV6 {}

fn send<R: Request>(domain: Domain, name: libc::c_ulong, request: &mut R) -> io::Result<()> {
    let socket = Socket::new(domain, Type::DGRAM.cloexec(), None)?;
    // SAFETY: `request` is the structure that this request takes on a socket of this family (each caller in this
    // module pairs them so); it lives through the call, and so does the name that a route points to.
    check(unsafe {
        libc::ioctl(
            socket.as_raw_fd(),
            name as libc::Ioctl,
            std::ptr::from_mut(request),
        )
    })
    .map(drop)
}

/// An empty request about `device`.
pub(crate) fn request(device: &str) -> io::Result<libc::ifreq> {
    // SAFETY: ifreq is characters, integers and a pointer for which all zeros is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let fits = (1..libc::IFNAMSIZ).contains(&device.len()) && !device.bytes().any(|byte| byte == 0);
    if !fits {
        let message = format!("device {device:?}: a name has 1 to 15 bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    Ok(request)
}

fn as_int(value: u32) -> io::Result<libc::c_int> {
    libc::c_int::try_from(value).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
}

fn in6(address: Ipv6Addr) -> libc::in6_addr {
    libc::in6_addr {
        s6_addr: address.octets(),
    }
}

/// An IPv4 address as the kernel's generic socket address: family, port 0, address (`struct sockaddr_in`).
fn socket_address(address: Ipv4Addr) -> libc::sockaddr {
    let mut data = [0; 14];
    for (to, from) in data[2..6].iter_mut().zip(address.octets()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    libc::sockaddr {
        sa_family: libc::AF_INET as libc::sa_family_t,
        sa_data: data,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_does_not_fit_is_refused() {
        for name in ["", "sixteen-letters-", "a\0b"] {
            assert_eq!(
                request(name).err().unwrap().kind(),
                io::ErrorKind::InvalidInput,
                "{name:?}"
            );
        }
        assert!(request("fifteen-letters").is_ok());
    }

    #[test]
    fn an_address_is_ready_with_its_local_route() {
        let line = |bits: &str, flags: &str| {
            let none = "0".repeat(32);
            format!(
                "fd770000000000000000000000000001 {bits} {none} 00 {none} 00000000 00000001 00000000 {flags}     eth0\n"
            )
        };
        let address: Ipv6Addr = "fd77::1".parse().unwrap();
        assert!(has_local_route(&line("80", "80200001"), "eth0", address));
        assert!(!has_local_route(&line("80", "00000001"), "eth0", address));
        assert!(!has_local_route(&line("40", "80200001"), "eth0", address));
        assert!(!has_local_route(&line("80", "80200001"), "eth1", address));
        assert!(!has_local_route("broken\n", "eth0", address));
    }

    #[test]
    fn an_unknown_device_is_named_in_the_error() {
        let error = bring_up("no-such-device").unwrap_err();
        assert!(error.to_string().contains("no-such-device"), "{error}");
        assert!(set_mtu("no-such-device", 1500).is_err());
    }
}
