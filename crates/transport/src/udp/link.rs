//! What the thread of a stream and its observers share.

use std::net::{Shutdown, SocketAddr};
use std::os::fd::AsFd;

use farline_sys::option::path_mtu;
use socket2::Socket;

use crate::socket::family;
use crate::tally::{Count, Tally};
use crate::{Counters, Probe, Role};

/// The socket of a stream, its figures, and the way to stop it.
pub(super) struct Link {
    pub(super) socket: Socket,
    pub(super) tally: Tally,
    pub(super) packets: Count,
    pub(super) lost_packets: Count,
    pub(super) reordered_packets: Count,
    pub(super) duplicate_packets: Count,
    pub(super) jitter_ns: Count,
    pub(super) role: Role,
}

impl Link {
    pub(super) fn new(socket: Socket, role: Role) -> Self {
        Self {
            socket,
            tally: Tally::default(),
            packets: Count::default(),
            lost_packets: Count::default(),
            reordered_packets: Count::default(),
            duplicate_packets: Count::default(),
            jitter_ns: Count::default(),
            role,
        }
    }

    pub(super) fn remote(&self) -> Option<SocketAddr> {
        self.socket.peer_addr().ok()?.as_socket()
    }
}

impl Probe for Link {
    fn sample(&self) -> Counters {
        let known_here = |count: &Count| {
            if self.role == Role::Receiver {
                count.get()
            } else {
                -1
            }
        };
        let mtu = self
            .remote()
            .and_then(|remote| path_mtu(self.socket.as_fd(), family(remote)).ok());
        Counters {
            bytes: self.tally.bytes.get(),
            blocks: self.tally.blocks.get(),
            packets: self.packets.get(),
            lost_packets: known_here(&self.lost_packets),
            reordered_packets: known_here(&self.reordered_packets),
            duplicate_packets: known_here(&self.duplicate_packets),
            jitter_ns: known_here(&self.jitter_ns),
            paced_wait_us: if self.role == Role::Sender {
                self.tally.paced_wait_us.get()
            } else {
                -1
            },
            path_mtu_bytes: mtu.map_or(-1, i64::from),
            ..Counters::UNKNOWN
        }
    }

    fn abort(&self) {
        self.tally.abort();
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}
