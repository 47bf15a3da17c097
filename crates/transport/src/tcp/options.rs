//! Sets what `TcpOptions` asks for and reads back what the kernel granted.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

use farline_spec::{Failure, Granted, RunSpec, TcpOptions};
use farline_sys::tcp_info::{TcpInfo, speaks_mptcp};
use farline_sys::{capability, option};
use socket2::{Protocol, Socket, Type};

use crate::Role;
use crate::socket::{self, address_text, buffer_note, tos_note};

/// A TCP or MPTCP socket for `address`.
pub(super) fn open(address: SocketAddr, spec: &RunSpec) -> Result<Socket, Failure> {
    let wants_mptcp = spec.tcp.as_ref().is_some_and(|tcp| tcp.mptcp);
    let protocol = if wants_mptcp {
        Protocol::MPTCP
    } else {
        Protocol::TCP
    };
    socket::open(address, Type::STREAM, Some(protocol)).map_err(|error| {
        if wants_mptcp && !capability::has_mptcp() {
            return Failure::option(
                "tcp.mptcp",
                format!("this kernel has no MPTCP or net.mptcp.enabled is 0 ({error})"),
            );
        }
        Failure::system("TCP socket", &error)
    })
}

/// Sets what must stand before a connection exists, on a connecting or a listening socket.
pub(super) fn before_connection(socket: &Socket, spec: &RunSpec, role: Role) -> Result<(), Failure> {
    let Some(tcp) = &spec.tcp else { return Ok(()) };
    set_buffers(socket, tcp)?;
    if let Some(mss) = tcp.mss_bytes {
        socket
            .set_tcp_mss(u32::from(mss.get()))
            .map_err(|error| Failure::option("tcp.mss_bytes", format!("{} bytes: {error}", mss.get())))?;
    }
    for_role(socket, spec, role)
}

fn set_buffers(socket: &Socket, tcp: &TcpOptions) -> Result<(), Failure> {
    // Not forced past the sysctl: a TCP buffer beyond it would be a figure no ordinary program gets.
    if let Some(bytes) = tcp.send_buffer_bytes {
        socket
            .set_send_buffer_size(bytes.get() as usize)
            .map_err(|error| Failure::option("tcp.send_buffer_bytes", error))?;
    }
    if let Some(bytes) = tcp.receive_buffer_bytes {
        socket
            .set_recv_buffer_size(bytes.get() as usize)
            .map_err(|error| Failure::option("tcp.receive_buffer_bytes", error))?;
    }
    Ok(())
}

/// Sets what depends on the job of this end; may be done on an open connection too.
pub(super) fn for_role(socket: &Socket, spec: &RunSpec, role: Role) -> Result<(), Failure> {
    let Some(tcp) = &spec.tcp else { return Ok(()) };
    socket
        .set_tcp_nodelay(tcp.no_delay)
        .map_err(|error| Failure::option("tcp.no_delay", error))?;
    if let Some(timeout) = tcp.user_timeout_ms {
        socket
            .set_tcp_user_timeout(Some(Duration::from_millis(timeout.get().into())))
            .map_err(|error| no_user_timeout(tcp, &error))?;
    }
    if role == Role::Receiver {
        return Ok(());
    }
    if let Some(name) = &tcp.congestion_control {
        socket
            .set_tcp_congestion(name.as_bytes())
            .map_err(|error| unknown_congestion_control(name, &error))?;
    }
    match tcp.pacing_rate_bps.map_or(0, |rate| rate.get()) {
        0 => Ok(()),
        rate_bps => option::set_max_pacing_rate(socket.as_fd(), rate_bps.div_ceil(8))
            .map_err(|error| Failure::option("tcp.pacing_rate_bps", error)),
    }
}

fn no_user_timeout(tcp: &TcpOptions, error: &io::Error) -> Failure {
    let whose = if tcp.mptcp { "Multipath TCP" } else { "TCP" };
    Failure::option(
        "tcp.user_timeout_ms",
        format!("this kernel's {whose} does not take it ({error})"),
    )
}

fn unknown_congestion_control(name: &str, error: &io::Error) -> Failure {
    let found = capability::Capabilities::probe();
    let (reason, names) = if error.kind() == io::ErrorKind::PermissionDenied {
        (
            "needs CAP_NET_ADMIN here; allowed without it",
            found.allowed_congestion_controls,
        )
    } else {
        ("is not available here; allowed", found.congestion_controls)
    };
    Failure::option(
        "tcp.congestion_control",
        format!("{name} {reason}: {}", names.join(", ")),
    )
}

/// What the kernel granted to an open connection, and where that differs from `spec`.
pub(super) fn granted(socket: &Socket, spec: &RunSpec, role: Role, earlier_notes: &[String]) -> Granted {
    let info = TcpInfo::of(socket.as_fd()).ok();
    let mut granted = Granted {
        local: address_text(socket.local_addr()),
        remote: address_text(socket.peer_addr()),
        congestion_control: socket.tcp_congestion().ok().map(|name| name_of(&name)),
        mss_bytes: info.map(|info| info.raw().snd_mss),
        send_buffer_bytes: socket.send_buffer_size().ok().map(|bytes| bytes as u64),
        receive_buffer_bytes: socket.recv_buffer_size().ok().map(|bytes| bytes as u64),
        mptcp: Some(speaks_mptcp(socket.as_fd())),
        notes: earlier_notes.to_vec(),
        ..Granted::default()
    };
    let differences = spec
        .tcp
        .as_ref()
        .map(|tcp| differences(socket, tcp, role, &granted))
        .unwrap_or_default();
    granted.notes.extend(differences);
    granted
        .notes
        .extend(local_family(socket).and_then(|family| tos_note(socket, spec, family)));
    granted
}

fn local_family(socket: &Socket) -> Option<option::Family> {
    Some(socket::family(socket.local_addr().ok()?.as_socket()?))
}

/// The kernel pads the name with zeros.
fn name_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}

fn differences(socket: &Socket, tcp: &TcpOptions, role: Role, granted: &Granted) -> Vec<String> {
    let send_buffer = buffer_note(
        "send buffer",
        "net.core.wmem_max",
        tcp.send_buffer_bytes.map(|bytes| bytes.get()),
        granted.send_buffer_bytes.unwrap_or(0),
    );
    let receive_buffer = buffer_note(
        "receive buffer",
        "net.core.rmem_max",
        tcp.receive_buffer_bytes.map(|bytes| bytes.get()),
        granted.receive_buffer_bytes.unwrap_or(0),
    );
    let mptcp = (tcp.mptcp && granted.mptcp == Some(false))
        .then(|| "mptcp: not supported by the other end or the path, fell back to TCP".to_owned());
    [
        send_buffer,
        receive_buffer,
        mss_note(tcp, granted),
        mptcp,
        pacing_note(socket, tcp, role),
        user_timeout_note(socket, tcp),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn mss_note(tcp: &TcpOptions, granted: &Granted) -> Option<String> {
    let (asked, used) = (u32::from(tcp.mss_bytes?.get()), granted.mss_bytes?);
    (asked != used).then(|| {
        format!("mss: requested {asked} bytes, in use {used}: TCP options and the path's MTU reduce it")
    })
}

fn pacing_note(socket: &Socket, tcp: &TcpOptions, role: Role) -> Option<String> {
    let asked = tcp.pacing_rate_bps?.get().div_ceil(8);
    let used = option::max_pacing_rate(socket.as_fd()).ok()?;
    (role == Role::Sender && asked > 0 && asked != used)
        .then(|| format!("pacing rate: requested {asked} bytes/s, in use {used}"))
}

fn user_timeout_note(socket: &Socket, tcp: &TcpOptions) -> Option<String> {
    let asked = u128::from(tcp.user_timeout_ms?.get());
    let used = socket
        .tcp_user_timeout()
        .ok()?
        .map_or(0, |timeout| timeout.as_millis());
    (asked != used).then(|| format!("user timeout: requested {asked} ms, in use {used}"))
}
