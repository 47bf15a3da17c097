//! What this kernel can do, found by trying on sockets that are closed again at once.

use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;

use crate::{datagram, option};

/// What the kernel has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// Cuts one buffer into datagrams (UDP_SEGMENT).
    pub gso: bool,
    /// Delivers several datagrams at once (UDP_GRO).
    pub gro: bool,
    /// Sends without a copy (MSG_ZEROCOPY).
    pub zerocopy: bool,
    /// Multipath TCP, built in and enabled.
    pub mptcp: bool,
    /// Congestion controls that are loaded.
    pub congestion_controls: Vec<String>,
    /// Congestion controls that need no privilege.
    pub allowed_congestion_controls: Vec<String>,
}

impl Capabilities {
    /// Tries all of them.
    pub fn probe() -> Self {
        let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).ok();
        let udp_can = |works: &dyn Fn(&UdpSocket) -> bool| udp.as_ref().is_some_and(works);
        Self {
            gso: udp_can(&|socket| datagram::set_segment_size(socket.as_fd(), 1000).is_ok()),
            gro: udp_can(&|socket| datagram::allow_batches(socket.as_fd()).is_ok()),
            zerocopy: has_zerocopy(),
            mptcp: has_mptcp(),
            congestion_controls: congestion_controls(),
            allowed_congestion_controls: words("/proc/sys/net/ipv4/tcp_allowed_congestion_control"),
        }
    }
}

/// Whether TCP sockets can send without a copy.
pub fn has_zerocopy() -> bool {
    socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)
        .is_ok_and(|socket| option::allow_zerocopy(socket.as_fd()).is_ok())
}

/// Whether MPTCP sockets can be made.
pub fn has_mptcp() -> bool {
    let protocol = Some(socket2::Protocol::MPTCP);
    socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, protocol).is_ok()
}

/// Congestion controls that are loaded, by the kernel's names.
pub fn congestion_controls() -> Vec<String> {
    words("/proc/sys/net/ipv4/tcp_available_congestion_control")
}

fn words(path: &str) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_can_be_used() {
        let found = Capabilities::probe();
        assert!(
            found.congestion_controls.iter().any(|name| name == "reno"),
            "every kernel has reno"
        );
        assert!(
            found
                .allowed_congestion_controls
                .iter()
                .all(|name| found.congestion_controls.contains(name))
        );
        assert_eq!(found, Capabilities::probe());
    }
}
