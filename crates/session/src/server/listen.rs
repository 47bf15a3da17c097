//! The addresses a server listens on for control connections.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::RawFd;

use farline_spec::{Failure, FailureKind, kernel_words};
use socket2::{Domain, Protocol, Socket, Type};

/// Connections that the kernel may hold ready for us (it caps this at net.core.somaxconn).
const BACKLOG: i32 = 1024;
const MAX_ADDRESSES: usize = 64;

/// Listens on `port` of `addresses`: on one socket for both versions of IP if there is none, otherwise on one per address.
///
/// # Errors
/// [`FailureKind::Spec`] for too many addresses, [`FailureKind::System`] that names the address that cannot be had.
pub fn bind(wanted: &[IpAddr], port: u16) -> Result<Vec<TcpListener>, Failure> {
    check_count(wanted.len())?;
    if wanted.is_empty() {
        let any = bind_any(port);
        return any.map(|listener| vec![listener]);
    }
    let dual = !wanted.contains(&IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    let bind = |address: &IpAddr| {
        let address = SocketAddr::new(*address, port);
        bind_one(address, dual).map_err(|error| failed(address, &error))
    };
    wanted.iter().map(bind).collect()
}

/// Listeners that a service manager opened and handed down by the numbers of their descriptors (sd_listen_fds(3)).
/// Each is listened on by a duplicate.
///
/// # Errors
/// [`FailureKind::Spec`] for too many, [`FailureKind::System`] that names the first which is no listening TCP socket.
pub fn handed_down(numbers: &[RawFd]) -> Result<Vec<TcpListener>, Failure> {
    check_count(numbers.len())?;
    let take = |number: &RawFd| {
        let listens = || -> std::io::Result<Option<Socket>> {
            let socket = Socket::from(farline_sys::handed_down::duplicate(*number)?);
            let internet = [Domain::IPV4, Domain::IPV6].contains(&socket.domain()?);
            let is_tcp = internet && socket.r#type()? == Type::STREAM && socket.is_listener()?;
            socket.set_nonblocking(true)?;
            Ok(is_tcp.then_some(socket))
        };
        let line =
            |why: &str| format!("cannot listen on file descriptor {number} from the service manager: {why}");
        match listens() {
            Ok(Some(socket)) => Ok(socket.into()),
            Ok(None) => Err(line(
                "it is not a listening TCP socket; use ListenStream= with Accept=no",
            )),
            Err(error) => Err(line(&kernel_words(&error))),
        }
    };
    let taken: Result<_, String> = numbers.iter().map(take).collect();
    taken.map_err(|line| Failure::new(FailureKind::System, line))
}

/// Refuses more sockets than a server listens on.
fn check_count(count: usize) -> Result<(), Failure> {
    if count <= MAX_ADDRESSES {
        return Ok(());
    }
    let line = format!("listen: {count} addresses; allowed: 0 to {MAX_ADDRESSES}");
    Err(Failure::new(FailureKind::Spec, line))
}

/// Where `listeners` listen, with the ports that the kernel chose.
///
/// # Errors
/// [`FailureKind::System`] when the kernel does not say.
pub fn addresses(listeners: &[TcpListener]) -> Result<Vec<SocketAddr>, Failure> {
    let address = |listener: &TcpListener| {
        listener
            .local_addr()
            .map_err(|error| Failure::system("listening", &error))
    };
    listeners.iter().map(address).collect()
}

/// `address` with an IPv4 address in the clothes of IPv6 undressed.
pub fn plain(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::new(ip.into(), address.port()),
        IpAddr::V6(_) => address,
    }
}

/// Both versions of IP, or IPv4 alone on a host without IPv6; the address in use tells which.
fn bind_any(port: u16) -> Result<TcpListener, Failure> {
    let both = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port);
    let only_v4 = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port);
    match bind_one(both, true) {
        Err(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::AddrInUse | std::io::ErrorKind::PermissionDenied
            ) =>
        {
            Err(failed(both, &error))
        }
        Err(_) => bind_one(only_v4, false).map_err(|error| failed(only_v4, &error)),
        Ok(listener) => Ok(listener),
    }
}

fn bind_one(address: SocketAddr, dual: bool) -> std::io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(!dual)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Why nobody can listen on `address`, and what to do about it.
pub fn failed(address: impl std::fmt::Display, error: &std::io::Error) -> Failure {
    let why = match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            "another program uses this port; stop that program, or choose another port".to_owned()
        }
        std::io::ErrorKind::PermissionDenied => "ports below 1024 need root; choose a higher port".to_owned(),
        std::io::ErrorKind::AddrNotAvailable => {
            "this host does not have this address; ip addr lists those it has".to_owned()
        }
        _ => kernel_words(error),
    };
    Failure::new(
        FailureKind::System,
        format!("listening on {address} failed: {why}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;
    use std::os::fd::AsRawFd;

    fn bound(listen: &str) -> Result<Vec<SocketAddr>, Failure> {
        let wanted: Vec<IpAddr> = serde_json::from_str(listen).unwrap();
        let listeners = bind(&wanted, 0)?;
        for address in addresses(&listeners)? {
            if address.ip().is_unspecified() {
                TcpStream::connect((Ipv4Addr::LOCALHOST, address.port())).unwrap();
            }
        }
        addresses(&listeners)
    }

    #[test]
    fn without_addresses_every_one_of_the_machine_is_served() {
        let all = bound("[]").unwrap();
        assert_eq!(all.len(), 1);
        assert!(all[0].ip().is_unspecified() && all[0].port() != 0);
    }

    #[test]
    fn named_addresses_are_listened_on_one_by_one() {
        let named = bound(r#"["127.0.0.1","127.0.0.2"]"#).unwrap();
        assert_eq!(
            named
                .iter()
                .map(|address| address.ip().to_string())
                .collect::<Vec<_>>(),
            ["127.0.0.1", "127.0.0.2"]
        );
    }

    #[test]
    fn an_address_of_another_machine_is_named() {
        let refusal = bound(r#"["192.0.2.1"]"#).unwrap_err();
        assert_eq!(refusal.kind, FailureKind::System);
        assert_eq!(
            refusal.message,
            "listening on 192.0.2.1:0 failed: this host does not have this address; ip addr lists those it has"
        );
    }

    #[test]
    fn a_port_that_is_taken_comes_with_what_to_do() {
        let taken = bind(&[Ipv4Addr::LOCALHOST.into()], 0).unwrap();
        let address = addresses(&taken).unwrap()[0];
        let refusal = bind(&[address.ip()], address.port()).unwrap_err();
        assert_eq!(
            refusal.message,
            format!(
                "listening on {address} failed: another program uses this port; stop that program, or choose another port"
            )
        );
    }

    #[test]
    fn sockets_that_were_handed_down_are_listened_on() {
        let open = bind(&[Ipv4Addr::LOCALHOST.into()], 0).unwrap();
        let numbers: Vec<RawFd> = open.iter().map(AsRawFd::as_raw_fd).collect();
        let taken = handed_down(&numbers).unwrap();
        assert_eq!(addresses(&taken).unwrap(), addresses(&open).unwrap());
        drop(open);
        TcpStream::connect(addresses(&taken).unwrap()[0]).unwrap();
    }

    #[test]
    fn what_is_no_listening_socket_is_refused_by_its_number() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connected = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let file = std::fs::File::open("/dev/null").unwrap();
        for number in [
            connected.as_raw_fd(),
            datagrams.as_raw_fd(),
            file.as_raw_fd(),
            1 << 20,
            -1,
        ] {
            let refusal = handed_down(&[number]).unwrap_err();
            assert_eq!(refusal.kind, FailureKind::System);
            assert!(
                refusal
                    .message
                    .contains(&format!("cannot listen on file descriptor {number} from")),
                "{refusal}"
            );
        }
    }

    #[test]
    fn an_address_in_the_clothes_of_another_is_recognised() {
        let plain = |text: &str| super::plain(text.parse().unwrap()).to_string();
        assert_eq!(plain("[::ffff:10.0.0.1]:7"), "10.0.0.1:7");
        assert_eq!(plain("[fe80::1%2]:7"), "[fe80::1%2]:7");
    }
}
