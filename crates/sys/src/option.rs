//! Socket options that no library wraps.
//!
//! Each function sets or reads one option by the type the kernel documents for it, so a wrong size cannot
//! be passed. What `socket2` offers (ordinary buffers, MSS, no-delay, congestion control, TOS, devices) is
//! not here.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::call::check;

/// Integers as `setsockopt` takes them: any bit pattern is a value.
///
/// # Safety
/// Implement it only for types without padding for which every bit pattern is valid.
pub(crate) unsafe trait Plain: Copy + Default {}
// SAFETY: integers have no padding, and every bit pattern is one.
unsafe impl Plain for libc::c_int {}
// SAFETY: as above.
unsafe impl Plain for u64 {}

pub(crate) fn set<T: Plain>(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: T,
) -> io::Result<()> {
    let (pointer, size) = (
        std::ptr::from_ref(&value).cast(),
        size_of::<T>() as libc::socklen_t,
    );
    // SAFETY: pointer and size are those of `value`, which lives through the call; the kernel only reads.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, pointer, size) }).map(drop)
}

/// Reads an option; gives the value and how many bytes of it the kernel knows.
pub(crate) fn get<T: Plain>(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
) -> io::Result<(T, usize)> {
    let mut value = T::default();
    let mut size = size_of::<T>() as libc::socklen_t;
    let pointer = std::ptr::from_mut(&mut value).cast();
    // SAFETY: the kernel writes at most `size` bytes, the size of `value`, and `Plain` promises that
    // whatever it writes is a valid T.
    check(unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, pointer, &mut size) })?;
    Ok((value, size as usize))
}

fn as_int(bytes: usize) -> libc::c_int {
    libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX)
}

/// Calls a stream socket readable once `bytes` are there, or the end is (`SO_RCVLOWAT`). For `poll`: a call that waits for
/// itself takes what comes first and then waits for as much again.
/// A TCP receive buffer that cannot hold so much grows, unless its size was asked for.
///
/// # Errors
/// The kernel's, on sockets that have no such mark.
pub fn set_receive_low_water(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
    set(fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT, as_int(bytes))
}

/// Sets the send buffer past `net.core.wmem_max` (`SO_SNDBUFFORCE`); the kernel doubles the figure.
///
/// # Errors
/// `PermissionDenied` without CAP_NET_ADMIN.
pub fn force_send_buffer(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
    set(fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, as_int(bytes))
}

/// Sets the receive buffer past `net.core.rmem_max` (`SO_RCVBUFFORCE`); the kernel doubles the figure.
///
/// # Errors
/// `PermissionDenied` without CAP_NET_ADMIN.
pub fn force_receive_buffer(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
    set(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, as_int(bytes))
}

/// Makes the kernel pace the socket (`SO_MAX_PACING_RATE`, bytes per second). TCP paces by itself;
/// UDP needs the `fq` queueing discipline for it.
///
/// # Errors
/// The kernel's.
pub fn set_max_pacing_rate(fd: BorrowedFd<'_>, bytes_per_s: u64) -> io::Result<()> {
    set(fd, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, bytes_per_s)
}

/// Rate set by [`set_max_pacing_rate`] in bytes per second; `u64::MAX` if none.
///
/// # Errors
/// The kernel's.
pub fn max_pacing_rate(fd: BorrowedFd<'_>) -> io::Result<u64> {
    get(fd, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE).map(|(rate, _)| rate)
}

/// Allows [`crate::zerocopy`] on the socket (`SO_ZEROCOPY`).
///
/// # Errors
/// The kernel's, where the protocol has no zero-copy.
pub fn allow_zerocopy(fd: BorrowedFd<'_>) -> io::Result<()> {
    set::<libc::c_int>(fd, libc::SOL_SOCKET, libc::SO_ZEROCOPY, 1)
}

/// Lets binding to an address leave the choice of the port to `connect` (`IP_BIND_ADDRESS_NO_PORT`), so
/// that many connections from one address do not run out of ports.
///
/// # Errors
/// The kernel's.
pub fn bind_address_without_port(fd: BorrowedFd<'_>) -> io::Result<()> {
    const IP_BIND_ADDRESS_NO_PORT: libc::c_int = 24;
    set::<libc::c_int>(fd, libc::IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
}

/// Bytes in the send queue that the other end has not acknowledged (`SIOCOUTQ`).
///
/// # Errors
/// The kernel's.
pub fn unacknowledged_bytes(fd: BorrowedFd<'_>) -> io::Result<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: TIOCOUTQ (the same number as SIOCOUTQ) writes one int, which `bytes` is.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCOUTQ, &mut bytes) })?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// Protocol numbers that differ between the two versions of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// MTU of the path of a connected socket (`IP_MTU`, `IPV6_MTU`), IP header included.
///
/// # Errors
/// `NotConnected` before the socket is connected.
pub fn path_mtu(fd: BorrowedFd<'_>, family: Family) -> io::Result<u32> {
    let (mtu, _) = match family {
        Family::V4 => get::<libc::c_int>(fd, libc::IPPROTO_IP, libc::IP_MTU)?,
        Family::V6 => get::<libc::c_int>(fd, libc::IPPROTO_IPV6, libc::IPV6_MTU)?,
    };
    Ok(u32::try_from(mtu).unwrap_or(0))
}

/// Forbids fragmentation: what exceeds the path's MTU fails with EMSGSIZE (`IP_PMTUDISC_DO`).
///
/// # Errors
/// The kernel's.
pub fn forbid_fragments(fd: BorrowedFd<'_>, family: Family) -> io::Result<()> {
    match family {
        Family::V4 => set(fd, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO),
        Family::V6 => {
            set(
                fd,
                libc::IPPROTO_IPV6,
                libc::IPV6_MTU_DISCOVER,
                libc::IPV6_PMTUDISC_DO,
            )?;
            set::<libc::c_int>(fd, libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, 1)
        }
    }
}

/// Lets the kernel fragment what exceeds the path's MTU, without setting "don't fragment" on the rest
/// (`IP_PMTUDISC_DONT`).
///
/// # Errors
/// The kernel's.
pub fn allow_fragments(fd: BorrowedFd<'_>, family: Family) -> io::Result<()> {
    match family {
        Family::V4 => set(
            fd,
            libc::IPPROTO_IP,
            libc::IP_MTU_DISCOVER,
            libc::IP_PMTUDISC_DONT,
        ),
        Family::V6 => set(
            fd,
            libc::IPPROTO_IPV6,
            libc::IPV6_MTU_DISCOVER,
            libc::IPV6_PMTUDISC_DONT,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::AsFd;

    fn tcp_pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    #[test]
    fn a_pacing_rate_reads_back() {
        let (near, _far) = tcp_pair();
        assert_eq!(max_pacing_rate(near.as_fd()).unwrap(), u64::MAX);
        set_max_pacing_rate(near.as_fd(), 12_500_000_000).unwrap();
        assert_eq!(max_pacing_rate(near.as_fd()).unwrap(), 12_500_000_000);
    }

    #[test]
    fn sent_bytes_leave_the_queue_when_they_are_acknowledged() {
        let (mut near, mut far) = tcp_pair();
        near.write_all(&[7; 1000]).unwrap();
        far.read_exact(&mut [0; 1000]).unwrap();
        let start = std::time::Instant::now();
        while unacknowledged_bytes(near.as_fd()).unwrap() > 0 {
            assert!(
                start.elapsed().as_secs() < 5,
                "1000 bytes are still unacknowledged"
            );
        }
    }

    #[test]
    fn path_mtu_is_known_once_connected() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let error = path_mtu(socket.as_fd(), Family::V4).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotConnected);
        socket.connect("127.0.0.1:9").unwrap();
        assert!(path_mtu(socket.as_fd(), Family::V4).unwrap() >= 1280);
    }

    #[test]
    fn a_datagram_over_the_mtu_is_refused_when_fragments_are_forbidden() {
        let target = UdpSocket::bind("[::1]:0").unwrap();
        let socket = UdpSocket::bind("[::1]:0").unwrap();
        socket.connect(target.local_addr().unwrap()).unwrap();
        forbid_fragments(socket.as_fd(), Family::V6).unwrap();
        let mtu = path_mtu(socket.as_fd(), Family::V6).unwrap() as usize;
        if mtu - 48 < 65_507 {
            assert!(socket.send(&vec![0; mtu - 47]).is_err());
        }
        assert!(socket.send(&vec![0; (mtu - 48).min(65_507)]).is_ok());
        allow_fragments(socket.as_fd(), Family::V6).unwrap();
    }
}
