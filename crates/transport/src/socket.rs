//! What TCP and UDP sockets have in common: addresses, devices, marks, buffers.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use farline_spec::{Failure, FailureKind, RunSpec};
use farline_sys::flow_label;
use farline_sys::option::{self, Family};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::Connect;

/// Longest time inside one blocking call, so that the caller can look at its stop flag.
pub(crate) const SLICE: Duration = Duration::from_millis(100);

/// IPv4 addresses in IPv6 dress are IPv4 addresses: the options of the right protocol must be set.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip if ip == address.ip() => address,
        ip => SocketAddr::new(ip, address.port()),
    }
}

/// Which version of IP `address` is of.
pub(crate) fn family(address: SocketAddr) -> Family {
    if address.is_ipv4() { Family::V4 } else { Family::V6 }
}

/// A socket for `address` that does not mix versions of IP.
pub(crate) fn open(address: SocketAddr, kind: Type, protocol: Option<Protocol>) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), kind, protocol)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    Ok(socket)
}

/// A failure to bind or listen on `local`: someone else's port, someone else's address, or the kernel's.
pub(crate) fn while_listening(local: SocketAddr, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::AddrInUse => Failure::new(FailureKind::Busy, format!("data port {local}: {error}")),
        io::ErrorKind::AddrNotAvailable => Failure::option("pairs.destination", not_here(local)),
        _ => Failure::system(&format!("data port {local}"), error),
    }
}

fn not_here(address: SocketAddr) -> String {
    format!("{} is not an address of this host", address.ip())
}

/// A UDP socket on `local`, which several of this user's sockets may share if all of them say so: the kernel
/// gives a datagram to the one that is connected to where it comes from, and to the listening one otherwise.
pub(crate) fn bound_socket(local: SocketAddr, spec: &RunSpec, shared: bool) -> Result<Socket, Failure> {
    let failed = |error: io::Error| while_listening(local, &error);
    let socket = open(local, Type::DGRAM, Some(Protocol::UDP)).map_err(failed)?;
    socket.set_reuse_port(shared).map_err(failed)?;
    set_tos(&socket, spec, family(local))?;
    socket.bind(&local.into()).map_err(failed)?;
    Ok(socket)
}

/// Binds to the source address and device that `request` names.
pub(crate) fn bind_source(socket: &Socket, request: &Connect<'_>, remote: SocketAddr) -> Result<(), Failure> {
    if let Some(device) = request.source_device {
        socket
            .bind_device(Some(device.as_bytes()))
            .map_err(|error| match error.kind() {
                io::ErrorKind::PermissionDenied => {
                    Failure::system(&format!("binding to device {device}"), &error)
                }
                _ => Failure::option("pairs.source_device", format!("{device}: {error}")),
            })?;
    }
    let Some(source) = request.source.map(|source| source.to_canonical()) else {
        return Ok(());
    };
    let local = SocketAddr::new(source, 0);
    if local.is_ipv4() != remote.is_ipv4() {
        return Err(Failure::option(
            "pairs.source",
            format!("{source} and {remote} use different IP versions"),
        ));
    }
    socket.bind(&local.into()).map_err(|error| match error.kind() {
        io::ErrorKind::AddrNotAvailable => Failure::option("pairs.source", not_here(local)),
        _ => Failure::system(&format!("binding to {source}"), &error),
    })
}

/// Sets type of service or traffic class.
pub(crate) fn set_tos(socket: &Socket, spec: &RunSpec, family: Family) -> Result<(), Failure> {
    let Some(tos) = spec.tos else { return Ok(()) };
    let tos = u32::from(tos.get());
    match family {
        Family::V4 => socket.set_tos_v4(tos),
        Family::V6 => socket.set_tclass_v6(tos),
    }
    .map_err(|error| Failure::option("tos", error))
}

/// A line if the kernel uses another type of service than was asked for.
pub(crate) fn tos_note(socket: &Socket, spec: &RunSpec, family: Family) -> Option<String> {
    let asked = u32::from(spec.tos?.get());
    let used = match family {
        Family::V4 => socket.tos_v4(),
        Family::V6 => socket.tclass_v6(),
    };
    let used = used.ok().filter(|&used| used != asked)?;
    Some(format!(
        "tos: requested {asked}, in use {used}: the kernel controls the ECN bits"
    ))
}

/// Leases the flow label, if one is asked for, and gives the address to connect to with it.
pub(crate) fn labelled(socket: &Socket, spec: &RunSpec, remote: SocketAddr) -> Result<SockAddr, Failure> {
    let Some(label) = spec.flow_label.map(|label| label.get()) else {
        return Ok(remote.into());
    };
    let SocketAddr::V6(mut remote) = remote else {
        return Err(Failure::option(
            "flow_label",
            format!("{remote} is IPv4, but flow labels exist only in IPv6"),
        ));
    };
    flow_label::lease(socket.as_fd(), *remote.ip(), label)
        .map_err(|error| Failure::option("flow_label", format!("{label}: {error}")))?;
    remote.set_flowinfo(flow_label::flow_info(label));
    Ok(SocketAddr::from(remote).into())
}

/// One end's address as records have it; empty where the kernel no longer tells.
pub(crate) fn address_text(address: io::Result<SockAddr>) -> String {
    address
        .ok()
        .and_then(|address| address.as_socket())
        .map_or_else(String::new, |address| address.to_string())
}

/// Headers of IP and UDP in front of every datagram.
pub(crate) fn header_bytes(family: Family) -> usize {
    match family {
        Family::V4 => 28,
        Family::V6 => 48,
    }
}

/// Sets the send buffer past `net.core.wmem_max` where that is permitted, and up to it otherwise.
pub(crate) fn force_send_buffer(socket: &Socket, bytes: usize) -> io::Result<()> {
    or_unforced(option::force_send_buffer(socket.as_fd(), bytes), || {
        socket.set_send_buffer_size(bytes)
    })
}

/// Sets the receive buffer past `net.core.rmem_max` where that is permitted, and up to it otherwise.
pub(crate) fn force_receive_buffer(socket: &Socket, bytes: usize) -> io::Result<()> {
    or_unforced(option::force_receive_buffer(socket.as_fd(), bytes), || {
        socket.set_recv_buffer_size(bytes)
    })
}

/// Without the privilege to force a buffer, the ordinary way grants what the sysctl allows.
fn or_unforced(forced: io::Result<()>, ordinary: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    match forced {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => ordinary(),
        result => result,
    }
}

/// A line if the kernel granted another buffer than was asked for. It reports twice what it grants.
pub(crate) fn buffer_note(what: &str, sysctl: &str, asked: Option<u64>, reported: u64) -> Option<String> {
    let asked = asked.filter(|asked| asked.saturating_mul(2) != reported)?;
    let granted = reported / 2;
    let reason = if granted < asked {
        format!(": {sysctl} caps it")
    } else {
        String::new()
    };
    Some(format!(
        "{what}: requested {asked} bytes, granted {granted} bytes{reason}"
    ))
}

/// Time left until `deadline`, if any.
pub(crate) fn time_left(deadline: Instant) -> Option<Duration> {
    Some(deadline.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero())
}

/// Linux's numbers of the errors that have no [`io::ErrorKind`] of their own.
pub(crate) mod errno {
    pub(crate) const EPERM: i32 = 1;
    pub(crate) const EIO: i32 = 5;
    pub(crate) const EINVAL: i32 = 22;
    pub(crate) const EMSGSIZE: i32 = 90;
    pub(crate) const ENETDOWN: i32 = 100;
    pub(crate) const ENETUNREACH: i32 = 101;
    pub(crate) const ENOBUFS: i32 = 105;
    pub(crate) const EHOSTUNREACH: i32 = 113;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapped_address_is_taken_for_what_it_is() {
        let mapped: SocketAddr = "[::ffff:127.0.0.1]:7".parse().unwrap();
        assert_eq!(canonical(mapped), "127.0.0.1:7".parse().unwrap());
        let scoped: SocketAddr = "[fe80::1%3]:7".parse().unwrap();
        assert_eq!(canonical(scoped), scoped);
    }

    #[test]
    fn a_buffer_is_noted_only_when_it_differs() {
        assert_eq!(buffer_note("send buffer", "x", None, 10), None);
        assert_eq!(buffer_note("send buffer", "x", Some(5), 10), None);
        let note = buffer_note("send buffer", "net.core.wmem_max", Some(50), 20).unwrap();
        assert_eq!(
            note,
            "send buffer: requested 50 bytes, granted 10 bytes: net.core.wmem_max caps it"
        );
        assert!(
            !buffer_note("send buffer", "x", Some(1), 4608)
                .unwrap()
                .contains("caps")
        );
    }
}
