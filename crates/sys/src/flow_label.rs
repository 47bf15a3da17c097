//! IPv6 flow labels (RFC 6437): leasing one from the kernel and sending with it.
//!
//! Linux sends a label only after the socket has leased it for the destination and, where labels are
//! leased exclusively, nobody else holds it. A socket that connects then names the label in the address;
//! a socket that was accepted can only reflect the label of its opener, if the host allows that.

use std::io;
use std::net::Ipv6Addr;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::call::check;
use crate::option::set;

const ACTION_GET: u8 = 0;
const FLAG_CREATE: u16 = 1;
const FLAG_REFLECT: u16 = 4;
const SHARE_ANY: u8 = 255;

/// `struct in6_flowlabel_req` of linux/in6.h.
#[repr(C)]
struct Request {
    destination: [u8; 16],
    label: [u8; 4],
    action: u8,
    share: u8,
    flags: u16,
    expires: u16,
    linger: u16,
    padding: u32,
}

/// Leases `label` (20 bits) for packets of this socket to `destination` and lets the socket send it.
///
/// Give [`flow_info`] of the same label in the address the socket connects to.
///
/// # Errors
/// The kernel's: `PermissionDenied` if another user leased the label exclusively.
pub fn lease(fd: BorrowedFd<'_>, destination: Ipv6Addr, label: u32) -> io::Result<()> {
    request(fd, destination, label, FLAG_CREATE)?;
    set::<libc::c_int>(fd, libc::IPPROTO_IPV6, libc::IPV6_FLOWINFO_SEND, 1)
}

/// Makes connections accepted on this listening socket answer with the label of their opener.
///
/// # Errors
/// `PermissionDenied` while the sysctl `net.ipv6.flowlabel_consistency` is 1, the kernel's default.
pub fn reflect(fd: BorrowedFd<'_>) -> io::Result<()> {
    request(fd, Ipv6Addr::UNSPECIFIED, 0, FLAG_REFLECT)
}

/// The label as the `flowinfo` of a socket address, which Linux takes in network byte order.
pub fn flow_info(label: u32) -> u32 {
    (label & 0x000f_ffff).to_be()
}

fn request(fd: BorrowedFd<'_>, destination: Ipv6Addr, label: u32, flags: u16) -> io::Result<()> {
    let request = Request {
        destination: destination.octets(),
        label: (label & 0x000f_ffff).to_be_bytes(),
        action: ACTION_GET,
        share: SHARE_ANY,
        flags,
        expires: 0,
        linger: 0,
        padding: 0,
    };
    let (pointer, size) = (
        std::ptr::from_ref(&request).cast(),
        size_of::<Request>() as libc::socklen_t,
    );
    // SAFETY: pointer and size are those of `request`, laid out as the kernel's struct without implicit
    // padding. The kernel reads it; it writes a label back only if label 0 was requested for creation,
    // which no caller here does, and even then it writes through its own copy of the pointer into
    // memory that lives through the call and is not read afterwards.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::IPPROTO_IPV6,
            libc::IPV6_FLOWLABEL_MGR,
            pointer,
            size,
        )
    };
    check(result).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::{ControlBuffer, receive, u32_at};
    use std::net::{SocketAddrV6, UdpSocket};
    use std::os::fd::AsFd;

    #[test]
    fn the_request_is_as_large_as_the_kernels() {
        assert_eq!(size_of::<Request>(), 32);
    }

    #[test]
    fn packets_carry_the_leased_label() {
        const IPV6_FLOWINFO: libc::c_int = 11;
        let target = UdpSocket::bind("[::1]:0").unwrap();
        set::<libc::c_int>(target.as_fd(), libc::IPPROTO_IPV6, IPV6_FLOWINFO, 1).unwrap();
        let socket = UdpSocket::bind("[::1]:0").unwrap();
        lease(socket.as_fd(), Ipv6Addr::LOCALHOST, 0x12345).unwrap();
        let port = target.local_addr().unwrap().port();
        socket
            .connect(SocketAddrV6::new(
                Ipv6Addr::LOCALHOST,
                port,
                flow_info(0x12345),
                0,
            ))
            .unwrap();
        socket.send(b"x").unwrap();

        let mut controls = ControlBuffer::default();
        let message = receive(target.as_fd(), &mut [0; 8], &mut controls, 0).unwrap();
        let label = message.find_control(|control| {
            let is_label = control.level == libc::IPPROTO_IPV6 && control.kind == IPV6_FLOWINFO;
            is_label
                .then(|| u32_at(control.data, 0).map(u32::from_be))
                .flatten()
        });
        assert_eq!(label.map(|info| info & 0xf_ffff), Some(0x12345));
    }

    #[test]
    fn reflection_depends_on_the_host() {
        let path = "/proc/sys/net/ipv6/flowlabel_consistency";
        let strict = std::fs::read_to_string(path).unwrap().trim() != "0";
        let listener = std::net::TcpListener::bind("[::1]:0").unwrap();
        assert_eq!(reflect(listener.as_fd()).is_err(), strict);
    }
}
