//! What the kernel knows about a TCP or MPTCP connection.

use std::io;
use std::os::fd::BorrowedFd;

use crate::option::{Plain, get};

/// `struct tcp_info` of linux/tcp.h, whole. Times in µs unless said otherwise, rates in bytes per second.
///
/// An older kernel fills only the first part: [`TcpInfo::known_bytes`] says how much.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
#[allow(
    missing_docs,
    reason = "the kernel's names without their tcpi_ prefix, see tcp(7) and linux/tcp.h"
)]
pub struct RawTcpInfo {
    pub state: u8,
    pub ca_state: u8,
    pub retransmits: u8,
    pub probes: u8,
    pub backoff: u8,
    pub options: u8,
    pub window_scales: u8,
    pub app_limited_and_fastopen: u8,
    pub rto: u32,
    pub ato: u32,
    pub snd_mss: u32,
    pub rcv_mss: u32,
    pub unacked: u32,
    pub sacked: u32,
    pub lost: u32,
    pub retrans: u32,
    pub fackets: u32,
    pub last_data_sent_ms: u32,
    pub last_ack_sent_ms: u32,
    pub last_data_recv_ms: u32,
    pub last_ack_recv_ms: u32,
    pub pmtu: u32,
    pub rcv_ssthresh: u32,
    pub rtt: u32,
    pub rttvar: u32,
    pub snd_ssthresh: u32,
    pub snd_cwnd: u32,
    pub advmss: u32,
    pub reordering: u32,
    pub rcv_rtt: u32,
    pub rcv_space: u32,
    pub total_retrans: u32,
    pub pacing_rate: u64,
    pub max_pacing_rate: u64,
    pub bytes_acked: u64,
    pub bytes_received: u64,
    pub segs_out: u32,
    pub segs_in: u32,
    pub notsent_bytes: u32,
    pub min_rtt: u32,
    pub data_segs_in: u32,
    pub data_segs_out: u32,
    pub delivery_rate: u64,
    pub busy_time: u64,
    pub rwnd_limited: u64,
    pub sndbuf_limited: u64,
    pub delivered: u32,
    pub delivered_ce: u32,
    pub bytes_sent: u64,
    pub bytes_retrans: u64,
    pub dsack_dups: u32,
    pub reord_seen: u32,
    pub rcv_ooopack: u32,
    pub snd_wnd: u32,
    pub rcv_wnd: u32,
    pub rehash: u32,
    pub total_rto: u16,
    pub total_rto_recoveries: u16,
    pub total_rto_time: u32,
}

// SAFETY: repr(C) of integers only, ordered so that no padding lies between them (the test checks the
// size); every bit pattern is valid.
unsafe impl Plain for RawTcpInfo {}

/// TCP_INFO, and how much of it the kernel filled in.
#[derive(Debug, Clone, Copy)]
pub struct TcpInfo {
    raw: RawTcpInfo,
    known_bytes: usize,
}

impl TcpInfo {
    /// Facts about the connection of `fd` (for MPTCP: about its first subflow).
    ///
    /// # Errors
    /// The kernel's, for a socket that is not TCP.
    pub fn of(fd: BorrowedFd<'_>) -> io::Result<Self> {
        let (raw, known_bytes) = get(fd, libc::IPPROTO_TCP, libc::TCP_INFO)?;
        Ok(Self { raw, known_bytes })
    }

    /// The figures; those past [`Self::known_bytes`] are 0.
    pub fn raw(&self) -> &RawTcpInfo {
        &self.raw
    }

    /// Bytes of the struct that this kernel fills in.
    pub fn known_bytes(&self) -> usize {
        self.known_bytes
    }

    /// Window the receiver last offered, or `None` before Linux 5.4.
    pub fn peer_window_bytes(&self) -> Option<u32> {
        self.known(std::mem::offset_of!(RawTcpInfo, snd_wnd) + 4)
            .then_some(self.raw.snd_wnd)
    }

    /// Window this end offers, or `None` before Linux 6.2.
    pub fn own_window_bytes(&self) -> Option<u32> {
        self.known(std::mem::offset_of!(RawTcpInfo, rcv_wnd) + 4)
            .then_some(self.raw.rcv_wnd)
    }

    fn known(&self, bytes: usize) -> bool {
        self.known_bytes >= bytes
    }
}

/// Whether the connection of `fd` speaks Multipath TCP at both ends (RFC 8684), as far as is known now.
///
/// False for a plain TCP socket and for an MPTCP socket that fell back to TCP.
pub fn speaks_mptcp(fd: BorrowedFd<'_>) -> bool {
    const SOL_MPTCP: libc::c_int = 284;
    const MPTCP_INFO: libc::c_int = 1;
    get::<MptcpInfo>(fd, SOL_MPTCP, MPTCP_INFO)
        .is_ok_and(|(info, _)| info.flags & (FELL_BACK | REMOTE_KEY_RECEIVED) == REMOTE_KEY_RECEIVED)
}

const FELL_BACK: u32 = 1;
const REMOTE_KEY_RECEIVED: u32 = 2;

/// First part of `struct mptcp_info` of linux/mptcp.h; the kernel fills in as much as it is given room for.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct MptcpInfo {
    limits: [u8; 6],
    reserved: [u8; 2],
    flags: u32,
    token: u32,
}

// SAFETY: repr(C) of integers only, the gap that the kernel's struct has before `flags` spelled out;
// every bit pattern is valid.
unsafe impl Plain for MptcpInfo {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::AsFd;

    #[test]
    fn the_structs_have_the_kernels_layout() {
        assert_eq!(std::mem::offset_of!(RawTcpInfo, pacing_rate), 104);
        assert_eq!(std::mem::offset_of!(RawTcpInfo, busy_time), 168);
        assert_eq!(std::mem::offset_of!(RawTcpInfo, snd_wnd), 228);
        assert_eq!(size_of::<RawTcpInfo>(), 248);
        assert_eq!(std::mem::offset_of!(MptcpInfo, flags), 8);
    }

    #[test]
    fn a_connection_that_moved_data_says_so() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        near.write_all(&[1; 4096]).unwrap();
        far.read_exact(&mut [0; 4096]).unwrap();
        let (sender, receiver) = (
            TcpInfo::of(near.as_fd()).unwrap(),
            TcpInfo::of(far.as_fd()).unwrap(),
        );
        assert_eq!(sender.raw().bytes_sent, 4096);
        assert_eq!(receiver.raw().bytes_received, 4096);
        assert!(sender.raw().snd_mss > 500 && sender.raw().rtt > 0 && sender.raw().snd_cwnd > 0);
        assert!(sender.peer_window_bytes().is_none_or(|window| window > 0));
        assert!(!speaks_mptcp(near.as_fd()));
    }

    #[test]
    fn a_datagram_socket_has_no_tcp_info() {
        assert!(TcpInfo::of(UdpSocket::bind("127.0.0.1:0").unwrap().as_fd()).is_err());
    }

    #[test]
    fn mptcp_is_told_from_its_fallback() {
        let mptcp = || {
            let protocol = Some(socket2::Protocol::MPTCP);
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, protocol)
        };
        let (Ok(listener), Ok(client)) = (mptcp(), mptcp()) else {
            assert!(
                !crate::capability::has_mptcp(),
                "MPTCP sockets fail though the probe finds them"
            );
            return;
        };
        let any: std::net::SocketAddr = "127.0.0.1:0".parse().unwrap();
        listener.bind(&any.into()).unwrap();
        listener.listen(4).unwrap();
        let address = listener.local_addr().unwrap();
        client.connect(&address).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        assert!(speaks_mptcp(client.as_fd()) && speaks_mptcp(accepted.as_fd()));
        let plain = TcpStream::connect(address.as_socket().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        assert!(!speaks_mptcp(plain.as_fd()) && !speaks_mptcp(accepted.as_fd()));
    }
}
