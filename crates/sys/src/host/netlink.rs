//! The kernel's list of links, by one RTM_GETLINK dump (rtnetlink(7)).

use std::io;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

const HEADER_BYTES: usize = 16;
const LINK_BYTES: usize = 16;
const ATTRIBUTE_HEADER_BYTES: usize = 4;
/// The kernel fills at most 32 KiB per message of a dump.
const BUFFER_BYTES: usize = 65_536;
/// An answer comes at once or not at all.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the dump says of one link.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Link {
    pub(super) index: u32,
    pub(super) up: bool,
    pub(super) name: String,
    pub(super) mtu_bytes: u32,
    pub(super) tx_queue_packets: Option<u32>,
    pub(super) qdisc: Option<String>,
}

/// Sends a request to rtnetlink; the answer is read from the socket, and does not keep a reader waiting.
///
/// # Errors
/// The kernel's, where netlink is not permitted.
pub(crate) fn ask(request: &[u8]) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::from(libc::AF_NETLINK),
        Type::RAW.cloexec(),
        Some(Protocol::from(libc::NETLINK_ROUTE)),
    )?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.send(request)?;
    Ok(socket)
}

/// Every link of this network namespace, in the kernel's order.
///
/// # Errors
/// The kernel's, where netlink is not permitted.
pub(super) fn links() -> io::Result<Vec<Link>> {
    let socket = ask(&request())?;
    let mut links = Vec::new();
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let length = io::Read::read(&mut &socket, &mut buffer)?;
        if take_messages(&buffer[..length], &mut links)? {
            return Ok(links);
        }
    }
}

/// `nlmsghdr` and an empty `ifinfomsg`: all links.
fn request() -> [u8; HEADER_BYTES + LINK_BYTES] {
    let mut message = [0; HEADER_BYTES + LINK_BYTES];
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    message[..4].copy_from_slice(&((HEADER_BYTES + LINK_BYTES) as u32).to_ne_bytes());
    message[4..6].copy_from_slice(&libc::RTM_GETLINK.to_ne_bytes());
    message[6..8].copy_from_slice(&flags.to_ne_bytes());
    message
}

/// Adds the links in one datagram; true once the dump is complete.
fn take_messages(mut datagram: &[u8], links: &mut Vec<Link>) -> io::Result<bool> {
    while let Some(length) = u32_at(datagram, 0).map(|length| length as usize) {
        if length < HEADER_BYTES || length > datagram.len() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "netlink: message of wrong length",
            ));
        }
        let body = &datagram[HEADER_BYTES..length];
        match u16_at(datagram, 4).map(i32::from) {
            Some(libc::NLMSG_DONE) => return Ok(true),
            Some(libc::NLMSG_ERROR) => return Err(refusal(body)),
            Some(kind) if kind == i32::from(libc::RTM_NEWLINK) => links.extend(parse_link(body)),
            _ => {}
        }
        datagram = &datagram[align(length).min(datagram.len())..];
    }
    Ok(false)
}

fn refusal(body: &[u8]) -> io::Error {
    let code = body
        .get(..4)
        .and_then(|code| code.try_into().ok())
        .map_or(0, i32::from_ne_bytes);
    io::Error::from_raw_os_error(code.saturating_neg())
}

fn parse_link(body: &[u8]) -> Option<Link> {
    let flags = u32_at(body, 8)?;
    let mut link = Link {
        index: u32_at(body, 4)?,
        up: flags & libc::IFF_UP as u32 != 0,
        ..Link::default()
    };
    let mut rest = body.get(LINK_BYTES..)?;
    while let (Some(length), Some(kind)) = (u16_at(rest, 0).map(usize::from), u16_at(rest, 2)) {
        let value = rest.get(ATTRIBUTE_HEADER_BYTES..length)?;
        match kind {
            libc::IFLA_IFNAME => link.name = text(value),
            libc::IFLA_MTU => link.mtu_bytes = u32_at(value, 0)?,
            libc::IFLA_TXQLEN => link.tx_queue_packets = u32_at(value, 0),
            libc::IFLA_QDISC => link.qdisc = Some(text(value)),
            _ => {}
        }
        rest = &rest[align(length).min(rest.len())..];
    }
    Some(link)
}

fn align(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn text(value: &[u8]) -> String {
    let end = value.iter().position(|&byte| byte == 0).unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end]).into_owned()
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_there() {
        let links = links().unwrap();
        let loopback = links.iter().find(|link| link.name == "lo").unwrap();
        assert!(loopback.index >= 1 && loopback.mtu_bytes >= 1_280);
        assert!(loopback.qdisc.is_some());
    }

    #[test]
    fn lengths_that_lie_are_refused() {
        let mut links = Vec::new();
        let mut datagram = request();
        datagram[..4].copy_from_slice(&400u32.to_ne_bytes());
        assert!(take_messages(&datagram, &mut links).is_err());
        datagram[..4].copy_from_slice(&3u32.to_ne_bytes());
        assert!(take_messages(&datagram, &mut links).is_err());
        assert!(links.is_empty());
    }

    #[test]
    fn an_attribute_beyond_the_end_makes_no_link() {
        let mut body = vec![0; LINK_BYTES];
        body.extend([200, 0, 3, 0]);
        assert_eq!(parse_link(&body), None);
        assert_eq!(parse_link(&body[..10]), None);
        body[16] = 1;
        assert_eq!(parse_link(&body), None);
    }

    #[test]
    fn an_error_of_the_kernel_is_passed_on() {
        let mut datagram = [0; 20];
        datagram[0] = 20;
        datagram[4..6].copy_from_slice(&(libc::NLMSG_ERROR as u16).to_ne_bytes());
        datagram[16..].copy_from_slice(&(-libc::EPERM).to_ne_bytes());
        let error = take_messages(&datagram, &mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }
}
